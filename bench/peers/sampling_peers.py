#!/usr/bin/env python3
"""Pawl's SMC next to genlm-control's, in one run: the same model, constraint, number of particles and posterior.

    python3 -m venv venv && venv/bin/pip install genlm-control
    venv/bin/python bench/peers/sampling_peers.py --command build/pawl

The model is that of bench/toy_language.py, a transformer whose law is known, or --model; genlm-control runs it through its
Hugging Face backend.

Both run AWRS steps in populations of --particles with resampling below half of the effective size. The constraint is a
regex used as a check, asked about the tokens that are drawn, without a mask: genlm-control's BoolFSA, and Pawl's --check.
Its language has few strings, so the posterior can be compared string by string.

The time: processor seconds by particle and step (a token, the end included), with Pawl's start of the process and loading
of the model left in; genlm-control's start and loading are left out.

Two-sample test: for each string the mean over populations of the unnormalised weight on it, which both estimate without
bias; the differences, divided by their standard errors, squared and summed, are compared with the 99.9 % point of the
chi-square distribution.
"""
import argparse
import asyncio
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import toy_language  # noqa: E402


def pawl(options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(
        [options.command, "generate", "--model", options.model, "--prompt", options.prompt, "--sampler", "smc",
         "--particles", str(options.particles), "--n", str(options.particles * options.populations), "--check",
         "regex:" + options.regex, "--temperature", str(options.temperature), "--max-tokens", str(options.max_tokens),
         "--threads", "1", "--json-lines"], capture_output=True, text=True, check=False)
    if out.returncode not in (0, 1):
        sys.exit(out.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    populations, steps = [], 0
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    for begin in range(0, len(lines), options.particles):
        weights = {}
        for line in lines[begin:begin + options.particles]:
            steps += len(line["report"]["removed"])
            if line["report"]["valid"]:
                weights[line["text"]] = weights.get(line["text"], 0) + math.exp(line["log_weight"]) / options.particles
        populations.append(weights)
    return populations, seconds, steps


def peer(options):
    from genlm.control import AWRS, BoolFSA, PromptedLLM

    llm = PromptedLLM.from_name(options.model, backend="hf", temperature=options.temperature)
    # As Pawl begins prompts of this model: with <s>.
    ids = llm.model.tokenizer.encode(options.prompt, add_special_tokens=False)
    llm.prompt_ids = [llm.model.tokenizer.bos_token_id] + ids
    check = BoolFSA.from_regex(options.regex).coerce(llm, f=b"".join)
    sampler = AWRS(llm, check)

    async def run():
        populations, steps = [], 0
        for _ in range(options.peer_populations):
            sequences = await sampler.smc(n_particles=options.particles, max_tokens=options.max_tokens + 1,
                                          ess_threshold=0.5)
            weights = {}
            for context, log_weight in zip(sequences.contexts, sequences.log_weights):
                steps += len(context)
                if log_weight == -math.inf:
                    continue
                text = b"".join(t for t in context if isinstance(t, bytes)).decode(errors="replace")
                weights[text] = weights.get(text, 0) + math.exp(log_weight) / options.particles
            populations.append(weights)
        return populations, steps

    start = time.process_time()
    populations, steps = asyncio.run(run())
    return populations, time.process_time() - start, steps


def moments(populations, text):
    values = [weights.get(text, 0) for weights in populations]
    mean = sum(values) / len(values)
    return mean, sum((v - mean) ** 2 for v in values) / max(1, len(values) - 1) / len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/pawl")
    parser.add_argument("--model", help="default: that of bench/toy_language.py")
    parser.add_argument("--prompt", default=toy_language.PROMPT)
    parser.add_argument("--regex", default=toy_language.REGEX)
    parser.add_argument("--temperature", type=float, default=1)
    parser.add_argument("--particles", type=int, default=5)
    parser.add_argument("--populations", type=int, default=2000, help="of Pawl")
    parser.add_argument("--peer-populations", type=int, default=200)
    parser.add_argument("--max-tokens", type=int, default=6)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.model is None:
            toy_language.write(folder)
            options.model = folder
        sys.exit(compare(options))


def compare(options):
    theirs, their_seconds, their_steps = peer(options)
    ours, our_seconds, our_steps = pawl(options)
    texts = sorted({t for weights in ours + theirs for t in weights})
    chi = degrees = 0
    print(f"{'string':12} {'Pawl':>12} {'genlm-control':>14} {'z':>7}")
    for text in texts:
        a, va = moments(ours, text)
        b, vb = moments(theirs, text)
        z = (a - b) / math.sqrt(va + vb) if va + vb > 0 else 0
        print(f"{text:12} {a:12.4g} {b:14.4g} {z:7.2f}")
        if va > 0 and vb > 0:
            chi += z * z
            degrees += 1
    limit = degrees + 3.09 * math.sqrt(2 * degrees) + 2 * 3.09 ** 2 / 3 if degrees else 0
    same = chi <= limit
    print(f"chi-square {chi:.1f} of {degrees} strings, 99.9 % point about {limit:.1f}: "
          f"{'the same posterior' if same else 'DIFFERENT'}")
    ours_each = our_seconds / our_steps * 1e6
    theirs_each = their_seconds / their_steps * 1e6
    print(f"Pawl:          {ours_each:10.1f} us by particle and step ({our_steps} steps, {our_seconds:.2f} s)")
    print(f"genlm-control: {theirs_each:10.1f} us by particle and step ({their_steps} steps, {their_seconds:.2f} s)")
    print(f"ratio {theirs_each / ours_each:.1f}")
    if options.json:
        from importlib.metadata import version
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"genlm-control": version("genlm-control"), "particles": options.particles,
                       "regex": options.regex, "chi_square": chi, "strings": degrees, "limit": limit, "same": same,
                       "pawl": {"us_by_particle_and_step": ours_each, "steps": our_steps, "seconds": our_seconds},
                       "peer": {"us_by_particle_and_step": theirs_each, "steps": their_steps,
                                "seconds": their_seconds},
                       "ratio": theirs_each / ours_each}, file, indent=1)
            file.write("\n")
    return 0 if same else 1


if __name__ == "__main__":
    main()
