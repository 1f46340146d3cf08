#!/usr/bin/env python3
"""Forced phrases: how many of 64 a search meets, and what they cost next to one phrase.

    bench/forced_phrases.py --pawl build/pawl --out bench/results/forced_phrases-DATE.json

For each prompt, 64 phrases of one to four words are forced into letters and spaces, so an output with all of them exists.
Reported: the prompts at which all were met; for every tenth prompt (--every) also the same search with one phrase, right before or
behind it: hypotheses a step (each is a look-up of a mask), rows of the model behind the prompt a step, and seconds a step,
as medians of the pairs' ratios. The rows of the prompt are taken off: they are those of a search of one token.
"""

import argparse
import json
import random
import statistics
import subprocess
import time
from pathlib import Path

WORDS = """red blue green stone river house small large old new bread water light dark paper table window door garden
street market bridge tower north south east west morning evening winter summer silver gold iron cotton leather wooden
quiet loud quick slow early late first last left right open closed round square plain double simple empty full heavy
bright narrow wide deep high low warm cold""".split()


def phrases(rng, count):
    found = set()
    while len(found) < count:
        found.add(" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4))))
    return sorted(found)


def search(options, prompt, forced):
    command = [options.pawl, "generate", "--model", options.model, "--prompt", prompt, "--search", "beam", "--num-beams",
               str(options.beams), "--max-tokens", str(options.tokens), "--regex", "[a-z ]{3,8000}", "--json", "--threads", "1"]
    for phrase in forced:
        command += ["--force-phrase", phrase]
    begin = time.monotonic()
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    found = json.loads(answer.stdout)
    best = found["outputs"][0]
    # The first call is that of the prompt.
    return {"missing": len(best["missing_phrases"]), "steps": found["calls"] - 1, "nodes": found["nodes"], "rows": found["rows"],
            "seconds": seconds, "limit": found["at_limit"]}


def prompt_rows(options, prompt):
    """A greedy search for one letter has one row behind the prompt."""
    command = [options.pawl, "generate", "--model", options.model, "--prompt", prompt, "--search", "beam", "--num-beams", "1", "--regex", "[a-z]",
               "--max-tokens", "1", "--json", "--threads", "1"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rows"] - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model", default="models/tiny-extract")
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--phrases", type=int, default=64)
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=700)
    parser.add_argument("--every", type=int, default=10, help="prompts for each one that runs with one phrase, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    met, many, pairs = 0, [], []
    for i in range(options.prompts):
        prompt = f"The {rng.choice(WORDS)} {rng.choice(WORDS)} says "
        forced = phrases(rng, options.phrases)
        pair, first = i % options.every == 0, i % (2 * options.every) == 0
        one = search(options, prompt, forced[:1]) if pair and not first else None
        result = search(options, prompt, forced)
        if first:
            one = search(options, prompt, forced[:1])
        met += result["missing"] == 0
        many.append(result)
        if one:
            before = prompt_rows(options, prompt)
            one["rows"] -= before
            result["rows"] -= before
            pairs.append((one, result))
        if i % 10 == 9:
            print(i + 1, "prompts,", met, "met", flush=True)
    def ratios(of):
        return [of(b) / of(a) for a, b in pairs]
    time_ratios = ratios(lambda r: r["seconds"] / r["steps"])
    report = {"model": options.model, "prompts": options.prompts, "phrases": options.phrases, "beams": options.beams, "tokens": options.tokens,
              "met": met, "missing": [r["missing"] for r in many if r["missing"]], "pairs": len(pairs),
              "nodes_a_step": ratios(lambda r: r["nodes"] / r["steps"]), "rows_a_step": ratios(lambda r: r["rows"] / r["steps"]),
              "seconds_a_step": time_ratios,
              "median": {"nodes_a_step": statistics.median(ratios(lambda r: r["nodes"] / r["steps"])),
                         "rows_a_step": statistics.median(ratios(lambda r: r["rows"] / r["steps"])),
                         "seconds_a_step": statistics.median(time_ratios)}}
    print(json.dumps(report["median"]), met, "of", options.prompts)
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
