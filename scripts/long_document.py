#!/usr/bin/env python3
"""Reads a long document with `pawl extract --document`: once whole, and once killed and gone on with. Compares both.

    scripts/long_document.py [--megabytes 10] [--kill 300,400] [--model MODEL] [--build build] [--folder FOLDER]

The document has orders in the shapes of bench/extract, with paragraphs of CHANGELOG.md between them. --kill: the seconds
after which a run is killed, one run for each. Told are processor time and memory of each run, whether the two records
are equal, and whether each value stands at its place.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/extract"))
import make_texts as texts  # pylint: disable=import-error,wrong-import-position

SPAN = {"type": "string", "x-pawl-source": "span"}
ORDER = {"type": "object", "required": ["order_id", "customer", "total"],
         "properties": {"order_id": SPAN, "customer": SPAN, "total": {"type": ["number", "null"], "x-pawl-source": "span"}}}
SCHEMA = {"type": "object", "properties": {"orders": {"type": "array", "items": ORDER}}, "required": ["orders"]}


def order(rng):
    values = {"order_id": "".join(rng.choice("ABCDEFGHKLMNPRSTUVWXZ") for _ in range(2)) + f"-{rng.randint(0, 9999):04}",
              "customer": f"{rng.choice(texts.FIRST)} {rng.choice(texts.LAST)}", "company": rng.choice(texts.COMPANY),
              "city": rng.choice(texts.CITY), "total": texts.amount(rng)[1], "status": rng.choice(texts.STATUS)}
    name, shape = rng.choice(texts.SHAPES)
    gone = {field for field in texts.FIELDS[2:] if rng.random() < 1 / 3}
    if name == "memo" and "company" in gone:
        gone.add("city")
    return texts.fill(shape, values, values, gone)


def document(size):
    rng = random.Random("pawl document 1")
    lines = [line.strip("- ") for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n") if len(line) > 60]
    parts, written = [], 0
    while written < size:
        other = " ".join(rng.choice(lines) for _ in range(rng.randint(2, 5)))
        parts.append(order(rng) if rng.random() < 0.5 else other)
        written += len(parts[-1].encode()) + 2
    return "\n\n".join(parts)


def run(command, seconds=None):
    """Runs, and kills after so many seconds. Tells what it took; the memory is the most of all runs so far."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    try:
        subprocess.run(command, check=True, timeout=seconds)
        end = "came to its end"
    except subprocess.TimeoutExpired:
        end = "was killed"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{end} after {time.time() - begin:.0f} s, {used:.0f} s of processor time, {after.ru_maxrss / 1024:.0f} MB", flush=True)


def wrong_places(line, text):
    wrong = 0
    for pointer, (begin, end) in line["spans"].items():
        _, _, number, key = pointer.split("/")
        value = line["record"]["orders"][int(number)][key]
        wrong += isinstance(value, str) and " ".join(text[begin:end].split()) != value
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--kill", default="300,400")
    parser.add_argument("--model", default=str(ROOT / "models/tiny-extract"))
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--folder", type=Path, help="keeps the files there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        text = document(int(arguments.megabytes * (1 << 20)))
        (folder / "document.txt").write_text(text, encoding="utf-8")
        (folder / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
        command = [arguments.build / "pawl", "extract", "--model", arguments.model, "--schema", folder / "schema.json",
                   "--file", folder / "document.txt", "--document", "--chunk-tokens", "512", "--details", "--output"]
        whole, cut = folder / "whole.jsonl", folder / "cut.jsonl"
        run([*command, whole])
        for i, seconds in enumerate(arguments.kill.split(",")):
            run([*command, cut, *(["--resume"] if i else [])], float(seconds))
        run([*command, cut, "--resume"])
        equal = whole.read_bytes() == cut.read_bytes()
        line = json.loads(whole.read_text(encoding="utf-8"))
        wrong = wrong_places(line, text)
        print(f"{line['chunks']} chunks, {len(line['record']['orders'])} orders, {len(line['spans'])} places, {wrong} wrong;",
              "equal" if equal else "NOT equal")
        sys.exit(0 if equal and not wrong else 1)


if __name__ == "__main__":
    main()
