#!/usr/bin/env python3
"""How many of the well-typed programs `pawl monitor --strict` accepts, and how many of the ill-typed it refuses.

  scripts/strict_programs.py --programs programs.jsonl [--half rules|figures] [--limit N] [--pawl build/pawl]
      [--show accepted|refused] [--report FILE.json]

A line of the file is an object with `program`, `label` (well_typed, type_error) and `tsc_semantic`, the compiler's
numbers of its errors. Programs are split by a hash of their text: rules are made on the half `rules`, figures are of
the half `figures`. The report counts the ill-typed programs that are accepted by the compiler's numbers, and the
well-typed ones that are refused by the message; `--show` prints them.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def half_of(program):
    return "figures" if hashlib.sha256(program.encode()).digest()[0] % 2 else "rules"


def judge(pawl, programs):
    """The entries of `pawl monitor --strict` of the programs, in order."""
    with tempfile.TemporaryDirectory() as folder:
        texts = pathlib.Path(folder) / "programs.jsonl"
        lines = [json.dumps({"program": one["program"]}) + "\n" for one in programs]
        texts.write_text("".join(lines), encoding="utf-8")
        report = pathlib.Path(folder) / "report.json"
        command = [pawl, "monitor", "--strict", "--language", "typescript", "--json", str(report), str(texts)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1) or not report.exists():
            sys.exit(f"strict_programs.py: {pawl}: {done.stderr.strip()}")
        return json.loads(report.read_text(encoding="utf-8"))["files"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--half", choices=("rules", "figures"), default="figures")
    parser.add_argument("--limit", type=int, default=0, help="the first N programs of the half")
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--show", choices=("accepted", "refused"),
                        help="ill-typed programs that are accepted, or well-typed ones that are refused")
    parser.add_argument("--report")
    arguments = parser.parse_args()
    try:
        lines = pathlib.Path(arguments.programs).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        sys.exit(f"strict_programs.py: --programs: {error}")
    programs = [json.loads(line) for line in lines if line]
    programs = [one for one in programs
                if one["label"] in ("well_typed", "type_error") and half_of(one["program"]) == arguments.half]
    if arguments.limit:
        programs = programs[: arguments.limit]
    if not programs:
        sys.exit("strict_programs.py: --programs: the file has no program of this half")
    counts, slips, reasons = collections.Counter(), collections.Counter(), collections.Counter()
    for one, entry in zip(programs, judge(arguments.pawl, programs), strict=True):
        counts[one["label"], entry["accepted"]] += 1
        if one["label"] == "type_error" and entry["accepted"]:
            slips[" ".join(f"TS{code}" for code in sorted(set(one["tsc_semantic"])))] += 1
            if arguments.show == "accepted":
                print(f"--- {one['tsc_semantic']}\n{one['program']}")
        if one["label"] == "well_typed" and not entry["accepted"]:
            reasons[re.sub(r": .*", "", f"{entry['monitor']}: {entry['message']}".replace("strict: ", ""))] += 1
            if arguments.show == "refused":
                line = one["program"].encode()[: entry["byte"]].count(b"\n")
                text = one["program"].splitlines()
                print(f"--- {entry['identifier']!r}: {entry['message']}\n{text[line] if line < len(text) else ''}")
    good, bad = (counts[label, True] + counts[label, False] for label in ("well_typed", "type_error"))
    figures = {
        "half": arguments.half, "well_typed": good, "accepted": counts["well_typed", True],
        "ill_typed": bad, "refused": counts["type_error", False],
        "accepted_ill_typed": dict(slips.most_common()), "refused_well_typed": dict(reasons.most_common(40)),
    }
    if arguments.report:
        pathlib.Path(arguments.report).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    accepted, refused = figures["accepted"], figures["refused"]
    print(f"{accepted} of {good} well-typed programs accepted ({100 * accepted / max(good, 1):.1f} %), "
          f"{refused} of {bad} ill-typed refused ({100 * refused / max(bad, 1):.1f} %)")
    for what, counted in (("accepted, ill-typed", slips), ("refused, well-typed", reasons)):
        for kind, count in counted.most_common(15):
            print(f"{what}: {count} {kind}")


if __name__ == "__main__":
    main()
