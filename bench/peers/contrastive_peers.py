#!/usr/bin/env python3
"""Contrastive search of `pawl generate --search contrastive` next to its definition on transformers' hidden states.

    bench/peers/contrastive_peers.py --pawl build/pawl --model models/tiny-code --texts FOLDER --out RESULTS

Needs torch and transformers. Prompts are beginnings of the files in FOLDER. Both run in fp32. The reference computes the
whole text anew at each token: of the top_k most probable tokens the one with the largest
(1 - penalty_alpha) * p - penalty_alpha * (largest cosine of its state with that of an earlier token). The state is behind
the last norm. Prints a line of JSON: outputs that are equal, that differ first where two scores are within 1e-4, and that
differ.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys

SETTINGS = [(0.0, 4), (0.3, 4), (0.6, 4), (0.6, 8)]


def pawl_output(options, prompt, alpha, top_k):
    command = [options.pawl, "generate", "--model", options.model, "--dtype", "fp32", "--prompt", prompt, "--search", "contrastive",
               "--search-arg", f"penalty_alpha={alpha}", "--search-arg", f"top_k={top_k}", "--max-tokens", str(options.tokens), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)["outputs"][0]["tokens"]


def reference(model, torch, ids, alpha, top_k, tokens, ends):
    """The tokens, and at each step how far the best score is above the next one."""
    out, leads = [], []
    for _ in range(tokens):
        with torch.no_grad():
            now = model(torch.tensor([ids]), output_hidden_states=True)
            p = torch.softmax(now.logits[0, -1].double(), -1)
            best = torch.topk(p, top_k).indices.tolist()
            seen = torch.nn.functional.normalize(now.hidden_states[-1][0].double(), dim=-1)
            after = model(torch.tensor([ids + [t] for t in best]), output_hidden_states=True)
            states = torch.nn.functional.normalize(after.hidden_states[-1][:, -1].double(), dim=-1)
        likeness = (states @ seen.T).max(-1).values.tolist()
        scores = [(1 - alpha) * float(p[t]) - alpha * (0 if t in ends else like) for t, like in zip(best, likeness)]
        order = sorted(range(top_k), key=lambda i: -scores[i])
        out.append(best[order[0]])
        leads.append(scores[order[0]] - scores[order[1]])
        ids = ids + [out[-1]]
        if out[-1] in ends:
            break
    return out, leads


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model", required=True, help="a folder that both read")
    parser.add_argument("--texts", required=True, type=pathlib.Path)
    parser.add_argument("--prompts", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(pathlib.Path(options.model) / "tokenizer.json"))
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    files = sorted(path for path in options.texts.rglob("*") if path.is_file())
    counts = {"model": options.model, "prompts": options.prompts, "tokens": options.tokens, "equal": 0, "ties": 0, "different": 0}
    for number, path in zip(range(options.prompts), itertools.cycle(files)):
        text = path.read_text(encoding="utf-8", errors="ignore")
        begin = 37 * number % max(1, len(text) - 200)
        prompt = text[begin:begin + 40 + 3 * (number % 40)]
        alpha, top_k = SETTINGS[number % len(SETTINGS)]
        mine = pawl_output(options, prompt, alpha, top_k)
        theirs, leads = reference(model, torch, tokenizer(prompt).input_ids, alpha, top_k, options.tokens, ends)
        first = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), None)
        kind = "equal" if mine == theirs else "ties" if first is not None and leads[first] <= 1e-4 else "different"
        counts[kind] += 1
        if kind == "different":
            print(json.dumps({"prompt": prompt, "setting": [alpha, top_k], "pawl": mine, "reference": theirs}), file=sys.stderr)
    line = json.dumps(counts)
    print(line)
    if options.out:
        options.out.write_text(line + "\n")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
