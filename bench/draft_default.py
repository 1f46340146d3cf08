#!/usr/bin/env python3
"""What `--draft auto` costs and saves against `off`, by whole processes in turn.

    bench/draft_default.py --pawl build/pawl [--smollm2 FILE.gguf] [--pairs 15] [--threads 1] [--out RESULTS.json]

Work: `pawl extract` with the shipped model for 1, 8 and 64 of its hand-written texts (one schema), at 1, 8 and 64 texts at a
time; with --smollm2 also records of that model and free text. Each pair runs both, one after the other, and the order changes
from pair to pair; the outputs must be equal. A row is the median of the ratios auto / off of processor time and of time by the
clock, with the smallest and largest, and the calls of the model and their rows with each.

With --price it counts instead of timing, which needs no quiet machine: a call costs 1, each further row of it the share that
`pawl bench decode` shows for the model ((T(8) / T(1) - 1) / 7), and the host's seconds for drafts count by their share of the
output's. Calls of a batch are those of its outputs divided by the outputs at a time. The prompts, which are the same, are left out.

    bench/draft_default.py --price shipped=0.14 --price SmolLM2=0.1 --smollm2 FILE.gguf
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPTS = ["The three largest cities of Italy are", "A short letter to the landlord about the broken window:", "How does a bicycle stay upright?",
           "def mean(values):\n"]


def run(command):
    """Output, processor time, time by the clock."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if done.returncode != 0:
        sys.exit(f"draft_default.py: {' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, used, end - begin


def price(stats, batch, share):
    """What the rows of the outputs cost, in calls of one row."""
    rows = stats["output_tokens"] + stats["drafts"]["rows"] - stats["drafts"]["accepted"]
    return stats["forward_calls"] / batch * (1 - share) + share * rows


def priced(command, batch, share, pairs, file):
    """Medians over the runs: calls and rows, and what they cost with `auto` by what they cost with `off`."""
    told = {"off": [], "auto": []}
    for _ in range(pairs):
        for draft, runs in told.items():
            run([*command, "--draft", draft, "--stats-json", file])
            runs.append(json.loads(file.read_text(encoding="utf-8")))
    row = {}
    for draft, runs in told.items():
        row[f"calls_{draft}"] = statistics.median(stats["forward_calls"] for stats in runs)
    row["drafted"] = statistics.median(stats["drafts"]["rows"] for stats in told["auto"])
    row["accepted"] = statistics.median(stats["drafts"]["accepted"] for stats in told["auto"])
    row["model"] = statistics.median(price(auto, batch, share) / price(off, batch, share) for off, auto in zip(told["off"], told["auto"]))
    row["host"] = statistics.median(stats["drafts"]["seconds"] / max(stats["seconds"]["output"], 1e-3) for stats in told["auto"])
    row["priced"] = row["model"] + row["host"]
    return row


def works(options, folder):
    """Names and commands without --draft."""
    lines = (ROOT / "models/tiny-extract/eval/handwritten.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    schema = folder / "schema.json"
    schema.write_text(json.dumps(rows[0]["schema"]), encoding="utf-8")
    models = [("shipped", [], 64)] + ([("SmolLM2", ["--model", options.smollm2], 8)] if options.smollm2 else [])
    for name, model, most in models:
        for count in (1, 8, 64):
            if count > most:
                continue
            texts = folder / f"texts-{count}.jsonl"
            texts.write_text("".join(json.dumps({"text": row["text"]}) + "\n" for row in rows[:count]), encoding="utf-8")
            for batch in (1, 8, 64):
                if batch <= count:
                    yield f"{name}, {count} texts, batch {batch}", batch, [options.pawl, "extract", *model, "--schema", schema, "--json-lines", "--file",
                                                                   texts, "--batch", batch, "--threads", options.threads]
    if options.smollm2:
        for number, prompt in enumerate(PROMPTS):
            yield f"SmolLM2, free text {number + 1}", 1, [options.pawl, "generate", "--model", options.smollm2, "--prompt", prompt, "--max-tokens", 96,
                                                      "--threads", options.threads]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default=ROOT / "build/pawl")
    parser.add_argument("--smollm2", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="rows whose name begins so")
    parser.add_argument("--price", action="append", default=[], metavar="MODEL=SHARE", help="count calls and rows: what a further row costs")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        shares = {name: float(share) for name, share in (one.split("=") for one in options.price)}
        for name, batch, command in works(options, folder):
            if not name.startswith(options.only):
                continue
            if shares:
                results[name] = priced(command, batch, shares[name.split(",")[0]], options.pairs, folder / "stats.json")
                print(f"{name:32}", *(f"{what} {number:.3f}" for what, number in results[name].items()), flush=True)
                continue
            ratios, counts = {"processor": [], "clock": []}, {}
            for pair in range(options.pairs):
                told = {}
                for draft in (("off", "auto"), ("auto", "off"))[pair % 2]:
                    told[draft] = run([*command, "--draft", draft])
                if told["off"][0] != told["auto"][0]:
                    sys.exit(f"draft_default.py: {name}: other output with drafts")
                for which, at in (("processor", 1), ("clock", 2)):
                    ratios[which].append(told["auto"][at] / told["off"][at])
            for draft in ("off", "auto"):
                file = folder / "stats.json"
                run([*command, "--draft", draft, "--stats-json", file])
                stats = json.loads(file.read_text(encoding="utf-8"))
                counts[draft] = {"calls": stats["forward_calls"], "drafted": stats["drafts"]["rows"], "accepted": stats["drafts"]["accepted"]}
            results[name] = {which: {"median": statistics.median(all), "least": min(all), "most": max(all)} for which, all in ratios.items()}
            results[name]["calls"] = counts
            print(f"{name:32}", *(f"{which} {row['median']:.3f} ({row['least']:.3f} to {row['most']:.3f})"
                                  for which, row in results[name].items() if which != "calls"), counts, flush=True)
    if options.out:
        options.out.write_text(json.dumps({"pairs": options.pairs, "threads": options.threads, "rows": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
