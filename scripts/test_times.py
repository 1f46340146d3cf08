#!/usr/bin/env python3
"""Where the time of the tests goes: seconds by test program, from the report that scripts/test.sh keeps.

    scripts/test_times.py [build/test.xml] [--cases N] [--compare OTHER.xml]

A line for each program of tests (the label in CTest; for scripts the part of the name before the dot): seconds, cases,
the slowest case. --cases N lists the N slowest cases instead. --compare puts the seconds of another report next to them.
Seconds are those of the clock, of tests that ran side by side: compare reports of the same machine and load.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent


def cases_of(report):
    """(name, seconds) of what ran; skipped cases are left out."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.get("status") in ("run", "fail"):
            yield case.get("name"), float(case.get("time") or 0)


def labels_of(build):
    run = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=False)
    labels = {}
    for test in json.loads(run.stdout)["tests"] if run.returncode == 0 else ():
        for entry in test.get("properties", ()):
            if entry["name"] == "LABELS" and entry["value"]:
                labels[test["name"]] = entry["value"][0]
    return labels


def suites_of(report, labels):
    suites = {}
    for name, seconds in cases_of(report):
        suites.setdefault(labels.get(name, name.split(".")[0]), []).append((seconds, name))
    return suites


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", nargs="?", default=ROOT / "build/test.xml", type=Path)
    parser.add_argument("--cases", type=int, metavar="N", help="the N slowest cases")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="only the N slowest programs")
    parser.add_argument("--compare", type=Path, metavar="REPORT", help="an older report")
    options = parser.parse_args()
    if not options.report.exists():
        sys.exit(f"test_times.py: {options.report} is missing: scripts/test.sh writes it")
    if options.cases:
        for name, seconds in sorted(cases_of(options.report), key=lambda case: -case[1])[:options.cases]:
            print(f"{seconds:8.2f} s  {name}")
        return
    labels = labels_of(options.report.parent)
    suites = suites_of(options.report, labels)
    before = suites_of(options.compare, labels) if options.compare else {}
    order = sorted(suites, key=lambda name: -sum(seconds for seconds, _ in suites[name]))
    for name in order[:options.most or None]:
        total, (slowest, case) = sum(seconds for seconds, _ in suites[name]), max(suites[name])
        old = f"  (was {sum(s for s, _ in before[name]):.1f})" if name in before else ""
        print(f"{total:8.1f} s{old}  {len(suites[name]):4} cases  {name}: {slowest:.1f} s {case}")
    everything = sum(seconds for group in suites.values() for seconds, _ in group)
    print(f"{everything:8.1f} s together, {sum(map(len, suites.values()))} cases of {len(suites)} programs")


if __name__ == "__main__":
    main()
