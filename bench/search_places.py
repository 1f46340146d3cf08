#!/usr/bin/env python3
"""Strategies of a search at the 88 places of the sample repository of scripts/tiny_code: what they write, and what it costs.

    bench/search_places.py --pawl build/pawl --out bench/results/search_places-DATE.json

At each place the model completes code behind a "." before the rest of the file, in the form of its markers, under the type
monitors and without. The output, without monitors up to its line end, is put into the file. Reported for each strategy:
rows of the model, prompts included where they are not in the prefix cache, as sums over the places, how many outputs are
equal to the plain one, the share of steps at which the strategy paused, and how many files have no syntax error by
TypeScript's own compiler (`tsc`, Debian: node-typescript). Plain is greedy decoding, or for `cntp` sampling with the same
seed. A step is a token of the output; it pauses where the entropy of what may follow is above the threshold of the
strategy (cntp: where it asks for more than one trial).
"""

import argparse
import importlib.util
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STRATEGIES = {
    "greedy": {"search": {"strategy": "beam", "num_beams": 1}},
    "adadec, threshold 0.5": {"search": {"strategy": "adadec", "search_arg": {"threshold": 0.5}}},
    "adadec, threshold 1": {"search": {"strategy": "adadec", "search_arg": {"threshold": 1}}},
    "adadec, threshold 2": {"search": {"strategy": "adadec", "search_arg": {"threshold": 2}}},
    "self-infill, 1 loop": {"self_infill": {"loops": 1}, "temperature": 0},
    "self-infill, 2 loops": {"self_infill": {"loops": 2}, "temperature": 0},
    "sampling": {"search": {"strategy": "cntp", "search_arg": {"max_trials": 1}}, "seed": 1},
    "cntp": {"search": {"strategy": "cntp"}, "seed": 1},
}


class Server:
    def __init__(self, options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([options.pawl, "serve", "--model", options.model, "--port", str(self.port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).read()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit("the server does not answer")

    def ask(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.loads(urllib.request.urlopen(request, timeout=600).read())

    def complete(self, before, behind, monitors, body):
        """The answer, and the text that it puts into the gap."""
        if monitors:
            answer = self.ask("/v1/fim/completions", {"prompt": before, "suffix": behind, "language": "typescript", **body})
            return answer, answer["choices"][0]["message"]["content"]
        prompt = f"<|fim_prefix|>{before}<|fim_suffix|>{behind}<|fim_middle|>"
        answer = self.ask("/v1/completions", {"prompt": prompt, "monitors": False, **body})
        return answer, answer["choices"][0]["text"].split("\n")[0]


def evaluation():
    spec = importlib.util.spec_from_file_location("evaluate", ROOT / "scripts/tiny_code/evaluate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def syntax_errors(tsc, files):
    """Which of the texts tsc finds syntax errors in (TS1...)."""
    with tempfile.TemporaryDirectory() as folder:
        for i, text in enumerate(files):
            (Path(folder) / f"c{i}.ts").write_text(text)
        answer = subprocess.run([tsc, "--noEmit", "--target", "es2020", "--pretty", "false"] + [f"c{i}.ts" for i in range(len(files))],
                                cwd=folder, capture_output=True, text=True, check=False)
    return {int(m[1]) for m in re.finditer(r"c(\d+)\.ts\(\d+,\d+\): error TS1\d{3}", answer.stdout)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model", default="models/tiny-code")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--tsc", default="tsc")
    parser.add_argument("--out")
    options = parser.parse_args()
    evaluate = evaluation()
    places = []
    for path in sorted(evaluate.SAMPLE.glob("*.ts")):
        text = path.read_text()
        places += [(text[:start], text[text.find("\n", start):]) for start, _ in evaluate.places(text)]
    report = {"places": len(places), "tokens": options.tokens, "model": Path(options.model).name}
    server = Server(options)
    for monitors in (True, False):
        plain, found = {}, {}
        report["with_monitors" if monitors else "without_monitors"] = found
        for name, member in STRATEGIES.items():
            outputs, rows, steps, pauses = [], 0, 0, 0
            for before, behind in places:
                answer, text = server.complete(before, behind, monitors, {"max_tokens": options.tokens, **member})
                search = answer["pawl"]["search"][0]
                rows += search["rows"]
                steps += search.get("steps", 0)
                pauses += search.get("pauses", 0)
                outputs.append(text)
            base = plain.setdefault("sampling" if name in ("sampling", "cntp") else "greedy", outputs)
            broken = syntax_errors(options.tsc, [before + out + behind for (before, behind), out in zip(places, outputs)])
            found[name] = {"rows": rows, "rows_to_greedy": round(rows / found[next(iter(found))]["rows"], 2) if found else 1,
                           "steps": steps, "paused_percent": round(100 * pauses / steps, 1) if steps else None,
                           "equal_to_plain": sum(a == b for a, b in zip(outputs, base)), "parse": len(places) - len(broken)}
            print("with monitors:" if monitors else "without:", name, json.dumps(found[name]), outputs[:3], flush=True)
    server.process.terminate()
    server.process.wait()
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
