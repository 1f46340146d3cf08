#!/usr/bin/env python3
"""Makes tests/data/models/diffusion/loops.json: canvases that a second program fills, token for token.

The program has the loop of src/decode/diffusion without a constraint, written anew from the rules of LLaDA, Dream and
Fast-dLLM, and the forward pass of make_diffusion_goldens.py in double precision. Each family has 200 canvases, with
prompts, lengths, blocks and options drawn by a seed. The numbers that are drawn by lot are those of src/base/random.h.

Usage: make_diffusion_loops.py [--canvases N] [--output FILE]
Needs numpy and safetensors.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from make_diffusion_goldens import CONFIGS, forward
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests/data/models/diffusion"
WIDTH, END, MASK = 46, 45, 46  # the test's vocabulary: 45 tokens, and the end
LEADS = (7.5, 5, 2.5)


def philox(seed, high, low):
    keep = 0xFFFFFFFF
    c = [low & keep, low >> 32 & keep, high & keep, high >> 32 & keep]
    k = [seed & keep, seed >> 32 & keep]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & keep, p0 >> 32 ^ c[3] ^ k[1], p0 & keep]
        k = [(k[0] + 0x9E3779B9) & keep, (k[1] + 0xBB67AE85) & keep]
    return c


def uniform(seed, position, index):
    return ((philox(seed, position, index >> 2)[index & 3] >> 9) + 0.5) / 8388608


class Loop:
    def __init__(self, name, tensors, prompt, length, given, temperature, seed):
        self.name, self.tensors, self.prompt, self.length, self.given = name, tensors, prompt, length, given
        self.temperature, self.seed = temperature, seed
        self.canvas = [MASK] * length
        self.shifted = name == "dream"

    def laws(self):
        def logits(prompt):
            rows = forward(self.name, self.tensors, np.array(prompt + self.canvas))[:, :WIDTH]
            first = len(prompt) - self.shifted
            return rows[first:first + self.length]

        out = logits(self.prompt)
        if scale := self.given.get("cfg_scale", 0):
            without = logits([MASK] * len(self.prompt))
            out = without + (scale + 1) * (out - without)
        shares = np.exp(out - out.max(-1, keepdims=True))
        return shares / shares.sum(-1, keepdims=True)

    def confidence(self, share, call, position):
        best = np.sort(share)[::-1]
        if self.given.get("remasking") == "random":
            return uniform(self.seed, call, position)
        if self.given.get("alg") == "topk_margin":
            return best[0] - best[1]
        if self.given.get("alg") == "entropy":
            return float(np.exp((share * np.log(share)).sum()))
        return best[0]

    def token(self, share, call, position):
        if self.temperature == 0:
            return int(share.argmax())
        noise = [uniform(self.seed, position << 32 | call, t) for t in range(WIDTH)]
        return int((np.log(share) - self.temperature * np.log(-np.log(noise))).argmax())

    def chosen(self, masks, sure, shares, call, step, calls):
        """Positions that become tokens, and whether they are all that are left."""
        given = self.given
        schedule = given.get("schedule", "threshold" if {"threshold", "factor"} & set(given) else "stepwise")
        order = sorted(masks, key=lambda i: -sure[i])
        if schedule in ("threshold", "localleap"):
            threshold = given.get("threshold", 0.9)
            if "factor" in given:
                n = 0
                while n < len(order) and (n == 0 or sure[order[n]] >= 1 - given["factor"] / (n + 2)):
                    n += 1
                return order[:n]
            anchors = [i for i in masks if sure[i] >= threshold]
            near = [i for i in order if schedule == "localleap" and any(abs(i - a) <= 4 for a in anchors)]
            taken = [i for i in order if sure[i] >= threshold or (i in near and sure[i] >= 0.75)]
            return taken or order[:1]
        if schedule == "prophet":
            best = [np.sort(shares[i])[::-1] for i in masks]
            lead = np.mean([np.log(b[0]) - np.log(b[1]) for b in best])
            if lead >= LEADS[min(2, 3 * step // calls)]:
                return masks
        left = len(masks)
        if not self.shifted:
            return order[:max(1, -(-left // max(1, calls - step)))]
        times = np.linspace(1, given.get("eps", 1e-3), calls + 1)
        share = 1.0 if step + 1 >= calls else 1 - times[step + 1] / times[step]
        lots = {i: uniform(self.seed ^ 0x6D61736B, call, i) for i in masks}
        if given.get("alg") == "origin":
            order = sorted(masks, key=lots.get)
            return order[:max(1, sum(lots[i] < share for i in masks))]
        if temp := given.get("alg_temp", 0):
            level = {i: np.log(sure[i]) if given.get("alg") == "entropy" else sure[i] for i in masks}
            order = sorted(masks, key=lambda i: -(level[i] - temp * np.log(-np.log(lots[i]))))
        return order[:max(1, int(left * share + 1e-9))]

    def run(self):
        first, block, call, step, calls = 0, None, 0, 0, 1
        size = min(self.given.get("block_length", 32), self.length)
        while True:
            while first < self.length and self.canvas[first] != MASK:
                first += 1
                if self.canvas[first - 1] == END:
                    return self.canvas[:first - 1], call
            if first == self.length:
                return self.canvas, call
            begin = first // size * size
            end = min(self.length, begin + size)
            if begin != block:
                blocks = -(-self.length // size)
                block, step = begin, 0
                calls = max(1, self.given["steps"] // blocks if "steps" in self.given else end - begin)
            masks = [i for i in range(first, end) if self.canvas[i] == MASK]
            shares = self.laws()
            sure = {i: self.confidence(shares[i], call, i) for i in masks}
            early = self.given.get("schedule") == "prophet"
            taken = self.chosen(masks, sure, shares, call, step, calls)
            for i in taken:
                # What Prophet ends with is the best there is.
                greedy = early and taken is masks
                self.canvas[i] = int(shares[i].argmax()) if greedy else self.token(shares[i], call, i)
            call, step = call + 1, step + 1


def draw_options(rng, name):
    kind = rng.integers(0, 8)
    given = {"block_length": int(rng.choice([4, 8, 16, 64]))}
    if kind == 0:
        return given | {"threshold": float(rng.choice([0.2, 0.5, 0.9]))}
    if kind == 1:
        return given | {"factor": float(rng.choice([0.5, 1.0, 2.0]))}
    if kind == 2:
        return given | {"schedule": "localleap"}
    given |= {"steps": int(rng.choice([4, 8, 16]))}
    if kind == 3:
        given |= {"schedule": "prophet"}
    if kind == 4:
        given |= {"cfg_scale": float(rng.choice([0.5, 2.0]))}
    if name == "llada":
        given |= {"remasking": str(rng.choice(["low_confidence", "random"]))}
    else:
        given |= {"alg": str(rng.choice(["origin", "maskgit_plus", "topk_margin", "entropy"]))}
        if given["alg"] != "origin" and rng.random() < 0.4:
            given |= {"alg_temp": float(rng.choice([0.1, 1.0]))}
        if rng.random() < 0.3:
            given |= {"eps": float(rng.choice([0.01, 0.3]))}
    return given


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvases", type=int, default=200)
    parser.add_argument("--output", type=Path, default=FOLDER / "loops.json")
    options = parser.parse_args()
    lines = []
    for number, name in enumerate(CONFIGS):
        tensors = load_file(FOLDER / name / "model.safetensors")
        rng = np.random.default_rng(4300 + number)
        for _ in range(options.canvases):
            prompt = rng.integers(0, 45, rng.integers(1, 13)).tolist()
            length = int(rng.integers(4, 33))
            given = draw_options(rng, name)
            temperature, seed = float(rng.choice([0, 0, 0.7])), int(rng.integers(0, 1 << 40))
            tokens, calls = Loop(name, tensors, prompt, length, given, temperature, seed).run()
            lines.append(json.dumps({"model": name, "prompt": prompt, "length": length, "diffusion": given,
                                     "temperature": temperature, "seed": seed, "tokens": tokens, "calls": calls}))
    options.output.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
