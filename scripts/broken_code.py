#!/usr/bin/env python3
"""Damages source files at random and reads them under the monitors: nothing may crash or hang.

  scripts/broken_code.py FILE... [--count 2000] [--pawl build/pawl] [--repo DIR] [--seed N] [--json OUT]

Each of --count texts is one of the files (give files that are accepted as they are) with bytes deleted and pieces
inserted at one to four random places; names are not touched. A refusal before the first damage is wrong: up to there
the text is the intact one. The exit code is 0 when nothing crashed, hung or was refused wrongly.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

PIECES = ["(", ")", "{", "}", "[", "]", '"', "'", "`", "/*", "//", "#", ".", ";", ":", ",", "\n", "<", ">", "=", "@", "?"]


def damage(text, rng):
    """A damaged text and where its first damage is."""
    first = len(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        if rng.random() < 0.5:
            while at < len(text) and (text[at].isalnum() or text[at] in "_$"):
                at += 1
            end = at
            while end < len(text) and end - at < 5 and not (text[end].isalnum() or text[end] in "_$"):
                end += 1
            text = text[:at] + text[end:]
        else:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        first = min(first, at)
    return text, first


def said_at(text, entry):
    """Where the refusal was said: behind the name, or where the call ends whose arguments are too many or too few."""
    at = entry["byte"] + len(entry["identifier"].encode())
    if entry["monitor"] not in ("arguments", "new"):
        return at
    depth, at = 0, max(at, text.find(b"(", at))
    while at < len(text):
        depth += (text[at] in b"([{") - (text[at] in b")]}")
        if depth <= 0:
            break
        at += 1
    return at


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--repo")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    counts = {"texts": 0, "refused": 0, "wrong": 0, "crashed": 0, "hung": 0}
    with tempfile.TemporaryDirectory() as scratch:
        for start in range(0, args.count, 50):
            firsts, sources = {}, {}
            for i in range(start, min(start + 50, args.count)):
                source = rng.choice(args.files)
                text, first = damage(source.read_text(encoding="utf-8", errors="replace"), rng)
                path = pathlib.Path(scratch) / f"{i}{source.suffix}"
                path.write_text(text, encoding="utf-8", newline="")
                sources[str(path)] = source
                firsts[str(path)] = len(text[:first].encode())
            report = pathlib.Path(scratch) / "report.json"
            command = [args.pawl, "monitor", *firsts, "--unfinished", "--json", str(report)]
            if args.repo:
                command += ["--repo", args.repo]
            try:
                done = subprocess.run(command, capture_output=True, timeout=600, check=False)
            except subprocess.TimeoutExpired:
                counts["hung"] += 1
                continue
            counts["texts"] += len(firsts)
            if done.returncode not in (0, 1):
                counts["crashed"] += 1
                print(done.stderr.decode()[-300:], sorted(firsts)[:3], file=sys.stderr)
                continue
            for entry in json.loads(report.read_text())["files"]:
                if not entry["accepted"]:
                    counts["refused"] += 1
                    wrong = said_at(pathlib.Path(entry["name"]).read_bytes(), entry) < firsts[entry["name"]]
                    counts["wrong"] += wrong
                    if wrong:
                        print(f"{sources[entry['name']]}: byte {entry['byte']}: {entry['identifier']}", file=sys.stderr)
    print(json.dumps(counts))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(counts))
    sys.exit(0 if counts["wrong"] + counts["crashed"] + counts["hung"] == 0 else 1)


if __name__ == "__main__":
    main()
