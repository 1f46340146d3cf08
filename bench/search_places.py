#!/usr/bin/env python3
"""Strategies of a search at the 88 places of the sample repository of scripts/tiny_code: what they write, and what it costs.

    bench/search_places.py --pawl build/pawl --out bench/results/search_places-DATE.json

At each place the model completes code behind a "." before the rest of the file, in the form of its markers. The output up
to its line end is put into the file. Reported for each strategy: rows of the model behind the prompt and in all, as sums
over the places, how many outputs are equal to the plain one, and how many files have no syntax error by TypeScript's own
compiler (`tsc`, Debian: node-typescript). Plain is greedy decoding, or for `cntp` sampling with the same seeds.
"""

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STRATEGIES = {
    "greedy": ["--search", "beam", "--num-beams", "1"],
    "adadec, threshold 0.5": ["--search", "adadec", "--search-arg", "threshold=0.5"],
    "adadec, threshold 1": ["--search", "adadec", "--search-arg", "threshold=1"],
    "adadec, threshold 2": ["--search", "adadec", "--search-arg", "threshold=2"],
    "self-infill, 1 loop": ["--self-infill", "--self-infill-loops", "1"],
    "self-infill, 2 loops": ["--self-infill"],
    "sampling": ["--search", "cntp", "--search-arg", "max_trials=1", "--seed", "1"],
    "cntp": ["--search", "cntp", "--seed", "1"],
}


def evaluation():
    spec = importlib.util.spec_from_file_location("evaluate", ROOT / "scripts/tiny_code/evaluate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def syntax_errors(files):
    """Which of the texts tsc finds syntax errors in (TS1...)."""
    with tempfile.TemporaryDirectory() as folder:
        for i, text in enumerate(files):
            (Path(folder) / f"c{i}.ts").write_text(text)
        answer = subprocess.run(["tsc", "--noEmit", "--target", "es2020", "--pretty", "false"] + [f"c{i}.ts" for i in range(len(files))],
                                cwd=folder, capture_output=True, text=True, check=False)
    return {int(m[1]) for m in re.finditer(r"c(\d+)\.ts\(\d+,\d+\): error TS1\d{3}", answer.stdout)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model", default="models/tiny-code")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--out")
    options = parser.parse_args()
    evaluate = evaluation()
    places = []
    for path in sorted(evaluate.SAMPLE.glob("*.ts")):
        text = path.read_text()
        places += [(text[:start], text[text.find("\n", start):]) for start, _ in evaluate.places(text)]
    report = {"places": len(places), "tokens": options.tokens, "model": options.model, "strategies": {}}
    plain = {}
    for name, flags in STRATEGIES.items():
        outputs, rows, all_rows = [], 0, 0
        for before, behind in places:
            prompt = f"<|fim_prefix|>{before}<|fim_suffix|>{behind}<|fim_middle|>"
            command = [options.pawl, "generate", "--model", options.model, "--special", "--prompt-file", "-", "--max-tokens",
                       str(options.tokens), "--json", *flags]
            run = subprocess.run(command, input=prompt, capture_output=True, text=True, check=False)
            if run.returncode != 0:
                sys.exit(run.stderr)
            answer = json.loads(run.stdout)
            rows += answer["rows"]
            outputs.append(answer["outputs"][0]["text"].split("\n")[0])
            all_rows += len(answer["outputs"][0]["tokens"])
        base = plain.setdefault("sampling" if name in ("sampling", "cntp") else "greedy", outputs)
        broken = syntax_errors([before + out + behind for (before, behind), out in zip(places, outputs)])
        report["strategies"][name] = {"rows": rows, "tokens": all_rows, "equal_to_plain": sum(a == b for a, b in zip(outputs, base)),
                                      "parse": len(places) - len(broken)}
        print(name, json.dumps(report["strategies"][name]), flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
