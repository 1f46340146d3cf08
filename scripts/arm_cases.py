#!/usr/bin/env python3
"""Runs the cases of a test program for 64-bit ARM under qemu, for scripts/test_arm.sh: those that its results do not have yet.

  scripts/arm_cases.py [--cpu NAME] [--seconds N] [--most N] [--jobs N] PROGRAM ...

build-arm/results/PROGRAM.tsv gets a line for each case, when the case ends: program, case, passed, skipped or failed. A run
that was cut goes on with the cases that have no line. Those that are short on this machine (build/reports) come first.
--seconds: the processor time that a case, with what it starts, may take before it is stopped; it then gets the line "slow". A
case that waits for ten times as long is stopped, too. --most: cases that took longer than so many seconds on this machine get
this line without a run. --jobs: programs at a time.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-arm"
RESULTS = BUILD / "results"
TOGETHER = 20  # cases that one process runs: its memory grows under qemu, which gives none back
LINE = re.compile(r"^\[ *(RUN|OK|FAILED|SKIPPED) *\] ([\w/.]+)")
NAMES = {"OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}
# qemu runs what vfork() begins as a process of its own, so posix_spawn() does not tell that a program is not there. These cases
# ask for that, the one of cli_test for a time; they get the line "emulator".
NOT_UNDER_QEMU = {"input_test": {"PdfTest.PdftotextIsRun"}, "sampling_test": {"ProgramCheckTest.BadOptions"},
                  "cli_test": {"ShippedModelTest.ARecordTakesLessThanTwoSecondsWithTheStart"}}
lock = threading.Lock()
running_now = set()  # processes


def environment(processor):
    libraries = f"/usr/aarch64-linux-gnu/lib:{BUILD}/root/usr/lib/aarch64-linux-gnu"
    return {**os.environ, "QEMU_CPU": processor, "QEMU_LD_PREFIX": "/usr/aarch64-linux-gnu", "LD_LIBRARY_PATH": libraries,
            "GTEST_BRIEF": "0", "GTEST_COLOR": "no"}


def cases_of(program, env):
    out = subprocess.run(["qemu-aarch64-static", BUILD / "bin" / program, "--gtest_list_tests"], env=env, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    names, suite = [], ""
    for line in out.splitlines():
        word = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = word
        elif "DISABLED_" not in suite + word:
            names.append(suite + word)
    return names


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def processor_seconds(session):
    """What the processes of a session, and those that they have waited for, took."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue  # it ended
        if int(fields[3]) == session:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


class Watch:
    """Stops a process when its case takes too long."""

    def __init__(self, process, seconds):
        self.process, self.seconds = process, seconds
        self.slow, self.ended = False, threading.Event()
        self.begin()
        threading.Thread(target=self.look, daemon=True).start()

    def begin(self):
        self.since = (time.monotonic(), processor_seconds(self.process.pid))

    def look(self):
        while not self.ended.wait(1):
            began, used = self.since
            if time.monotonic() - began < self.seconds:
                continue
            taken = processor_seconds(self.process.pid) - used
            if (began, used) == self.since and (taken > self.seconds or time.monotonic() - began > 10 * self.seconds):
                self.slow = True
                stop(self.process)
                return


def run(program, names, seconds, env):
    """Runs cases in one process; yields (case, result, what was printed). The last ones may be missing."""
    process = subprocess.Popen(
        ["qemu-aarch64-static", BUILD / "bin" / program, "--gtest_filter=" + ":".join(names)], env=env, cwd=ROOT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", text=True,
        start_new_session=True)
    running_now.add(process)
    running, printed = None, []
    watch = Watch(process, seconds)
    try:
        for line in process.stdout:
            found = LINE.match(line)
            if found and found[1] == "RUN":
                running, printed = found[2], []
                watch.begin()
            elif found and found[2] == running:
                yield running, NAMES[found[1]], printed
                running = None
            else:
                printed.append(line)
        process.wait()
        if running:
            yield running, "slow" if watch.slow else "failed", printed
    finally:
        watch.ended.set()
        stop(process)
        running_now.discard(process)


def times_here(program):
    """What cases took when the tests of this machine ran."""
    times = {}
    for path in (ROOT / "build/reports").glob(f"{program}.*xml"):
        for case in ElementTree.parse(path).iter("testcase"):
            times[f"{case.get('classname')}.{case.get('name')}"] = float(case.get("time", 0))
    return times


def program_results(program, options):
    env = environment(options.cpu)
    path = RESULTS / f"{program}.tsv"
    lines = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    known = {line[1]: line[2] for line in lines}
    todo = [name for name in cases_of(program, env) if name not in known]
    times = times_here(program)
    left_out = {name: "slow" for name, took in times.items() if 0 < options.most < took}
    left_out.update(dict.fromkeys(NOT_UNDER_QEMU.get(program, ()), "emulator"))
    for name in [name for name in todo if name in left_out]:
        known[name] = left_out[name]
        with open(path, "a", encoding="utf-8") as out:
            out.write(f"{program}\t{name}\t{known[name]}\n")
    todo = sorted([name for name in todo if name not in known], key=lambda name: times.get(name, 0))
    while todo:
        first, ran = todo[:TOGETHER], []
        for name, result, printed in run(program, first, options.seconds, env):
            ran.append(name)
            known[name] = result
            with open(path, "a", encoding="utf-8") as out:
                out.write(f"{program}\t{name}\t{result}\n")
            if result in ("failed", "slow"):
                (RESULTS / f"{program}.{name.replace('/', '.')}.log").write_text("".join(printed[-200:]))
                with lock:
                    print(f"{program} {name}: {result}", flush=True)
        if not ran:
            raise RuntimeError(f"{program} ran none of its cases, of which the first is {first[0]}")
        todo = [name for name in todo if name not in known]
    counts = {}
    for result in known.values():
        counts[result] = counts.get(result, 0) + 1
    with lock:
        print(program + ":", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())), flush=True)
    return not counts.get("failed")


def end(number, _):
    for process in list(running_now):
        stop(process)
    os._exit(128 + number)


def main():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--cpu", default="max", help="qemu's processor (max)")
    parser.add_argument("--seconds", type=float, default=600, help="what a case may take (600)")
    parser.add_argument("--most", type=float, default=0, help="what a case may have taken here (0: any time)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at a time (one for each processor)")
    options = parser.parse_args()
    missing = [program for program in options.programs if not (BUILD / "bin" / program).exists()]
    if missing:
        parser.error(f"no program {missing[0]} in build-arm/bin; scripts/test_arm.sh builds the programs")
    RESULTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        return 0 if all(list(pool.map(lambda program: program_results(program, options), options.programs))) else 1


if __name__ == "__main__":
    sys.exit(main())
