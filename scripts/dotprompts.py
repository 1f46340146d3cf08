#!/usr/bin/env python3
"""Reads the Java files of DotPrompts under the monitors, and counts what they say at its prompts.

DotPrompts (of monitor-guided decoding) is a list of dereferences in methods of Java repositories: for each a
repository, a file and the place of the point. The repositories are not part of it; check each one out at the
commit that the list of repositories names, into CHECKOUTS/OWNER+NAME, then

  scripts/dotprompts.py --prompts dataset.csv --checkouts CHECKOUTS --pawl build/pawl --json OUT

Each file that has prompts is read by `pawl monitor --repo` as if a model wrote it. A prompt is a miss when the
name behind its point is refused; it is constrained when only names that the monitors know may stand there.
The exit code is 0 when there is no miss and at least --share of the prompts are constrained.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile


def prompts_of(path):
    """{repository: {file: [places of points, in characters]}}"""
    found = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["repo"], {}).setdefault(row["classFileName"], []).append(int(row["dot_idx"]))
    return found


def normalized(source, target):
    """Writes a text with the line ends that the prompts' places count; returns it."""
    text = source.read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="")
    return text


def judge(pawl, folder, files, scratch):
    names = {}
    for i, name in enumerate(sorted(files)):
        if (folder / name).is_file():
            target = scratch / f"{i}.java"
            names[str(target)] = (name, normalized(folder / name, target))
    report = scratch / "report.json"
    command = [pawl, "monitor", *names, "--repo", str(folder), "--unfinished", "--places", "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder.name}: {done.stderr.strip()}")
    counts = {"prompts": 0, "constrained": 0, "missed": 0, "unread": 0}
    misses = []
    for entry in json.loads(report.read_text())["files"]:
        name, text = names[entry["name"]]
        places = {byte: kept for byte, monitor, kept in entry["places"] if monitor == "dereference"}
        for dot in files[name]:
            if dot >= len(text) or text[dot] != ".":
                continue  # another version of the file
            counts["prompts"] += 1
            behind = dot + 1
            while behind < len(text) and text[behind].isspace():
                behind += 1
            byte = len(text[:behind].encode())
            refused = entry["byte"]
            if refused is not None and refused < byte:
                counts["unread"] += 1  # a refusal before it ended the reading
            elif refused == byte:
                counts["missed"] += 1
            counts["constrained"] += bool(places.get(byte))
        if entry["byte"] is not None:
            misses.append(f"{name}: byte {entry['byte']}: {entry['identifier']} ({entry['monitor']})")
    return counts, misses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", required=True, help="dataset.csv of DotPrompts")
    parser.add_argument("--checkouts", required=True, type=pathlib.Path, help="folder with OWNER+NAME folders")
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--share", type=float, default=0.30, help="least share of constrained prompts")
    parser.add_argument("--json", help="write the counts")
    args = parser.parse_args()
    rows = {}
    for repository, files in sorted(prompts_of(args.prompts).items()):
        folder = args.checkouts / repository.replace("/", "+")
        if not folder.is_dir():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            rows[repository], misses = judge(args.pawl, folder, files, pathlib.Path(scratch))
        print(repository, json.dumps(rows[repository]), *misses, sep="\n  " if misses else " ", flush=True)
    if not rows:
        sys.exit(f"no repository of the list is in {args.checkouts}")
    total = {key: sum(row[key] for row in rows.values()) for key in next(iter(rows.values()))}
    share = total["constrained"] / max(1, total["prompts"])
    print(f"{len(rows)} repositories", json.dumps(total), f"constrained {share:.1%}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"repositories": rows, "total": total, "share": share}))
    sys.exit(0 if total["missed"] + total["unread"] == 0 and share >= args.share else 1)


if __name__ == "__main__":
    main()
