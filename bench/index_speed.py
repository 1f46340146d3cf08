#!/usr/bin/env python3
"""How long `pawl index` takes for a repository of many lines, and for one edited file.

    bench/index_speed.py FOLDER... [--pawl build/pawl] [--lines 1000000] [--threads 2] [--json OUT]

Copies Java, TypeScript and Python files of the folders into an empty one until they have --lines lines, more than once
where the folders have fewer. Prints the time of the first index, wall clock and processor; of a second one in which nothing
has changed; and over 20 edits, each of another file, what bringing that file up to date takes: by the clock inside of the
program, and in processor time of the whole program, its start with it.
"""
import argparse
import itertools
import json
import pathlib
import random
import re
import resource
import statistics
import subprocess
import tempfile
import time


def timed(command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return out.strip(), time.perf_counter() - start, used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--lines", type=int, default=1000000)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = sorted(p for f in options.folders for p in f.rglob("*") if p.suffix in (".java", ".ts", ".py") and p.is_file())
    if not found:
        parser.error("no .java, .ts or .py file in the folders")
    with tempfile.TemporaryDirectory() as folder:
        lines, copies = 0, []
        for n, path in enumerate(itertools.cycle(found)):
            if lines >= options.lines:
                break
            data = path.read_bytes()
            if len(data) > 1 << 20 or b"\0" in data:
                continue
            copy = pathlib.Path(folder, str(n // 500), f"{n}{path.suffix}")
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(data + b"\n")
            lines += data.count(b"\n") + 1
            copies.append(copy)
        index = [options.pawl, "index", folder, "--threads", options.threads]
        said, wall, used = timed(index)
        print(said)
        _, again, again_used = timed(index)
        edits, processor = [], []
        for copy in random.Random(1).sample(copies, 20):
            copy.write_bytes(copy.read_bytes() + b"\n")
            out, _, used_ms = timed(index + ["--file", str(copy.relative_to(folder))])
            processor.append(1e3 * used_ms)
            edits.append(float(re.search(r"([0-9.]+) ms$", out)[1]))
        figures = {"lines": lines, "files": len(copies), "wall_seconds": wall, "processor_seconds": used,
                   "again_wall_seconds": again, "again_processor_seconds": again_used,
                   "edit_ms": statistics.median(edits), "largest_edit_ms": max(edits),
                   "edit_processor_ms": statistics.median(processor), "largest_edit_processor_ms": max(processor)}
    print(", ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
