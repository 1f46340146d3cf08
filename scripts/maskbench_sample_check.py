#!/usr/bin/env python3
"""Draws random texts from the masks of MaskBench schemas and judges every one with two independent validators.

  scripts/maskbench_sample_check.py --pawl build/pawl --data ~/maskbench/data --n-schemas 2000 --samples 20 --seed 1

`pawl sample` walks at random over what the masks allow. Each text has to be one JSON text without duplicate keys that both
`jsonschema-rs` and `jsonschema` call valid, formats asserted as far as they know them. A schema may be refused instead, with
exit code 2 and a message that names a place in it. Anything else is a failure: another exit code, no end in time, a missing
text (a dead end), an invalid one.

Where the two validators differ, jsonschema decides with exact decimals; what only jsonschema-rs objects to is counted as
"disputed" and listed with --verbose (it reads numbers as doubles, so multipleOf can go wrong in both directions). So is a leap second
(23:59:60 UTC) or a year 0000 that only jsonschema objects to: its dates have none; and a text with letters, digits or white space beyond
ASCII to which only jsonschema objects, under a schema with \\d, \\w, \\s or \\b: they are Python's there, not ECMA-262's. A validator that cannot cope with a schema, or with a
text within 20 seconds (Python's matcher backtracks), is counted as unjudged.

Exit code: 0 when nothing failed, 1 otherwise, 2 when it could not run. Needs: jsonschema, jsonschema-rs, rfc3339-validator.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

from maskbench_extract_check import LEAP_SECOND, judge

sys.setrecursionlimit(10000)  # for texts and schemas that are nested deeply
sys.set_int_max_str_digits(0)  # and for long numbers

try:
    import jsonschema_rs
except ImportError:
    sys.exit("maskbench_sample_check.py needs the Python package jsonschema-rs (pip install jsonschema-rs)")


BEYOND_ASCII = re.compile(r"(?![\x00-\x7f])[\w\s\ufeff]")
YEAR_ZERO = re.compile(r"'0000-\d\d-\d\d[^']*' is not a 'date(-time)?'")


def second_opinion(schema_text):
    """A function from a text to "valid", "invalid" or "unjudged" with a reason, by jsonschema-rs."""
    try:
        validator = jsonschema_rs.validator_for(json.loads(schema_text), validate_formats=True)
    except Exception as problem:  # references that cannot be followed, patterns that are not its own
        reason = f"{type(problem).__name__}: {problem}"
        return lambda text: ("unjudged", reason)

    def decide(text):
        try:
            validator.validate(json.loads(text))
        except jsonschema_rs.ValidationError as error:
            return "invalid", str(error).splitlines()[0]
        except Exception as problem:
            return "unjudged", f"{type(problem).__name__}: {problem}"
        return "valid", ""

    return decide


def children_seconds():
    """Processor time of the commands that this process has run."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def draw(args, index, path):
    """(outcome, detail, texts, schema text, seconds); outcome is "drawn", "refused", "failed" or "dead end"."""
    schema_text = json.dumps(json.loads(path.read_text(encoding="utf-8"))["schema"], ensure_ascii=False)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8", delete=False) as file:
        file.write(schema_text)
    command = [args.pawl, "sample", "--schema", file.name, "--n", str(args.samples), "--seed", str(args.seed * 1000003 + index),
               "--max-tokens", str(args.max_tokens), *args.pawl_args.split()]
    if args.tokenizer:
        command += ["--tokenizer", args.tokenizer]
    begin = children_seconds()
    try:
        # Processor time, so that a busy machine fails nothing.
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (args.timeout, args.timeout)))
    finally:
        os.unlink(file.name)
    seconds = children_seconds() - begin
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "failed", f"no end after {args.timeout} s", [], schema_text, seconds
    message = done.stderr.decode("utf-8", "replace").strip()
    texts = done.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]
    if done.returncode == 2 and re.search(r"#(/|:|\s|$)", message):
        return "refused", message.splitlines()[-1], [], schema_text, seconds
    if done.returncode == 1 and "dead end" in message:
        return "dead end", message[:300], texts, schema_text, seconds
    if done.returncode != 0:
        return "failed", f"exit code {done.returncode}: {message[-300:]}", texts, schema_text, seconds
    if len(texts) != args.samples:
        return "failed", f"{len(texts)} texts instead of {args.samples}", texts, schema_text, seconds
    return "drawn", "", texts, schema_text, seconds


def judge_in_time(schema_text, text):
    """judge(), given up after 20 seconds: some patterns make Python's backtracking matcher run for hours."""

    def stop(signum, frame):
        raise TimeoutError("no verdict within 20 processor seconds")

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 20)
    try:
        return judge(schema_text, text)
    except TimeoutError as problem:
        return "unjudged", str(problem)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def check(args, index, path):
    outcome, detail, texts, schema_text, seconds = draw(args, index, path)
    verdicts, notes = collections.Counter(), []
    other = second_opinion(schema_text) if texts else None
    python_classes = re.search(r"\\\\[dwsbDWSB]", schema_text)
    for text in texts:
        first, why = judge_in_time(schema_text, text)
        second, why_second = other(text)
        excused = second == "valid" and (LEAP_SECOND.search(why) or YEAR_ZERO.search(why) or python_classes and BEYOND_ASCII.search(text))
        if first == "invalid" and not excused or (first == "unjudged" and second == "invalid"):
            verdict = "invalid"
        elif second == "invalid" or excused:
            verdict = "disputed"
        else:
            verdict = "valid" if "valid" in (first, second) else "unjudged"
        verdicts[verdict] += 1
        if verdict in ("invalid", "disputed"):
            notes.append((verdict, f"{why or why_second}"[:300] + f"\n    text: {text[:300]}"))
    return path.name, outcome, detail, verdicts, notes, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl", help="the command (default: %(default)s)")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of MaskBench *.json files")
    parser.add_argument("--n-schemas", type=int, default=2000, help="schemas to draw (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=20, help="texts for each (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", help="passed on when given")
    parser.add_argument("--max-tokens", type=int, default=16384, help="budget of a text (default: %(default)s)")
    parser.add_argument("--pawl-args", default="", help="more options of pawl sample, for example '--order any'")
    parser.add_argument("--timeout", type=int, default=60, help="processor seconds for one schema (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="schemas at a time (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="also list disputed texts and refusals")
    args = parser.parse_args()
    files = sorted(args.data.glob("*.json"))
    if not files:
        print(f"no *.json files in {args.data}", file=sys.stderr)
        return 2
    if not os.access(args.pawl, os.X_OK):
        print(f"{args.pawl} is not an executable file; build it first", file=sys.stderr)
        return 2
    drawn = random.Random(args.seed).sample(files, min(args.n_schemas, len(files)))
    outcomes, verdicts, reasons, times = collections.Counter(), collections.Counter(), collections.Counter(), []
    begin = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        checked = pool.map(check, [args] * len(drawn), range(len(drawn)), drawn)
        for number, (name, outcome, detail, found, notes, seconds) in enumerate(checked, 1):
            print(f"\r{number} of {len(drawn)} schemas", end="\n" if number == len(drawn) else "", file=sys.stderr, flush=True)
            outcomes[outcome] += 1
            verdicts += found
            times.append(seconds)
            if outcome == "refused":
                reasons[re.search(r"#[^\s:]*", detail).group(0).rsplit("/", 1)[-1]] += 1
            if outcome in ("failed", "dead end") or args.verbose and outcome == "refused":
                print(f"{outcome:9} {seconds:6.2f} s  {name}  {detail}", flush=True)
            for verdict, note in notes:
                if verdict == "invalid" or args.verbose:
                    print(f"{verdict:9} {name}  {note}", flush=True)
    times.sort()
    print(f"{len(drawn)} schemas (seed {args.seed}), {args.samples} texts each: {outcomes['drawn']} drawn, {outcomes['refused']} "
          f"refused with a place named, {outcomes['dead end']} with dead ends, {outcomes['failed']} failed")
    print(f"{sum(verdicts.values())} texts: {verdicts['valid']} valid, {verdicts['invalid']} invalid, {verdicts['disputed']} "
          f"disputed, {verdicts['unjudged']} unjudged")
    print(f"seconds: {time.monotonic() - begin:.0f} in all; processor seconds for one schema: median {times[len(times) // 2]:.2f}, slowest {times[-1]:.2f}")
    for keyword, count in reasons.most_common(20):
        print(f"  refused at {keyword or '#'}: {count}")
    return 1 if outcomes["failed"] or outcomes["dead end"] or verdicts["invalid"] else 0


if __name__ == "__main__":
    sys.exit(main())
