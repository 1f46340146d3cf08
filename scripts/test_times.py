#!/usr/bin/env python3
"""What the tests did and where their time goes, by program and by case, from the report that scripts/test.sh keeps.

    scripts/test_times.py [build/test.xml] [--cases N] [--compare OTHER.xml]
    scripts/test_times.py --join build/reports build/test.xml

A line for each program of tests (for scripts the part of the name before the dot): seconds, cases, the slowest case.
--cases N lists the N slowest cases instead. --compare puts the seconds of another report next to them. Seconds are those
of the clock, of tests that ran at the same time: compare reports of the same machine and load.

--join is what scripts/test.sh calls after CTest. CTest's report has one entry for a shard of a program (pawl_shards in
tests/CMakeLists.txt), and the folder has the reports that GoogleTest wrote for the shards. --join rewrites CTest's report
with one entry for each case. It prints the skipped and failed cases, and as its last line: passed, failed, skipped.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent


class Case:
    """One case of a program: what came of it is passed, failed or skipped."""

    def __init__(self, program, name, seconds, result, reason=""):
        self.program, self.name, self.seconds, self.result, self.reason = program, name, seconds, result, reason


def cases_of_shard(report, program):
    """The cases in a report of GoogleTest."""
    for case in ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        result, reason = "passed", ""
        if case.find("failure") is not None:
            result = "failed"
        elif skipped is not None or case.get("result") == "skipped":
            result = "skipped"
            # The first line of the message is the place.
            reason = " ".join((skipped.get("message") if skipped is not None else "").split("\n")[1:]).strip()
        elif case.get("status") == "notrun":
            result, reason = "skipped", "disabled"
        yield Case(program, f"{case.get('classname')}.{case.get('name')}", float(case.get("time") or 0), result, reason)


def cases_of_ctest(report, folder):
    """The cases of a run of CTest: those of the shards, and the other tests as they are."""
    for test in ElementTree.parse(report).iter("testcase"):
        name, status = test.get("name"), test.get("status")
        program, seconds = name.split(".")[0], float(test.get("time") or 0)
        shard = folder / f"{name}.xml"
        result = {"run": "passed", "fail": "failed"}.get(status, "skipped")
        if shard.exists():
            cases = list(cases_of_shard(shard, program))
            yield from cases
            if result == "failed" and not any(case.result == "failed" for case in cases):
                yield Case(program, f"{name} (all of its cases passed)", 0, "failed")
        elif result == "failed":
            yield Case(program, name, seconds, "failed", "ended before it wrote a report" if program.endswith("_test") else "")
        else:
            output = (test.findtext("system-out") or "").strip().split("\n")
            yield Case(program, name, seconds, result, output[0] if result == "skipped" else "")


def write(cases, report):
    root = ElementTree.Element("testsuites")
    suites = {}
    for case in cases:
        if case.program not in suites:
            suites[case.program] = ElementTree.SubElement(root, "testsuite", name=case.program)
        entry = ElementTree.SubElement(suites[case.program], "testcase", name=case.name, classname=case.program, time=f"{case.seconds:.3f}")
        if case.result != "passed":
            ElementTree.SubElement(entry, {"failed": "failure", "skipped": "skipped"}[case.result], message=case.reason)
    for suite in suites.values():
        suite.set("tests", str(len(suite)))
    ElementTree.ElementTree(root).write(report, encoding="utf-8", xml_declaration=True)


def join(folder, report):
    cases = list(cases_of_ctest(report, folder))
    write(cases, report)
    reasons = Counter((case.program, case.reason) for case in cases if case.result == "skipped")
    for (program, reason), count in reasons.items():
        names = [case.name for case in cases if case.result == "skipped" and (case.program, case.reason) == (program, reason)]
        print(f"skipped: {count} of {program}: {reason} ({', '.join(names[:3])}{', ...' if count > 3 else ''})")
    for case in cases:
        if case.result == "failed":
            print(f"FAILED: {case.program}: {case.name}{': ' + case.reason if case.reason else ''}")
    print(*(sum(case.result == result for case in cases) for result in ("passed", "failed", "skipped")))


def suites_of(report):
    """The cases that ran, by program: (seconds, name)."""
    suites = {}
    for suite in ElementTree.parse(report).iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.find("skipped") is None:
                suites.setdefault(suite.get("name"), []).append((float(case.get("time") or 0), case.get("name")))
    return suites


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", nargs="?", default=ROOT / "build/test.xml", type=Path)
    parser.add_argument("--cases", type=int, metavar="N", help="the N slowest cases")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="only the N slowest programs")
    parser.add_argument("--compare", type=Path, metavar="REPORT", help="an older report")
    parser.add_argument("--join", type=Path, metavar="FOLDER", help="put the reports of the shards into CTest's")
    options = parser.parse_args()
    if not options.report.exists():
        sys.exit(f"test_times.py: {options.report} is missing: scripts/test.sh writes it")
    if options.join:
        join(options.join, options.report)
        return
    suites = suites_of(options.report)
    if options.cases:
        cases = [(seconds, f"{program}: {name}") for program, group in suites.items() for seconds, name in group]
        for seconds, name in sorted(cases, reverse=True)[:options.cases]:
            print(f"{seconds:8.2f} s  {name}")
        return
    before = suites_of(options.compare) if options.compare else {}
    order = sorted(suites, key=lambda name: -sum(seconds for seconds, _ in suites[name]))
    for name in order[:options.most or None]:
        total, (slowest, case) = sum(seconds for seconds, _ in suites[name]), max(suites[name])
        old = f"  (was {sum(s for s, _ in before[name]):.1f})" if name in before else ""
        print(f"{total:8.1f} s{old}  {len(suites[name]):4} cases  {name}: {slowest:.1f} s {case}")
    everything = sum(seconds for group in suites.values() for seconds, _ in group)
    print(f"{everything:8.1f} s together, {sum(map(len, suites.values()))} cases of {len(suites)} programs")


if __name__ == "__main__":
    main()
