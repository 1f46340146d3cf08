#!/usr/bin/env python3
"""Runs `pawl extract` over random MaskBench schemas and judges every output with an independent validator.

  scripts/maskbench_extract_check.py --pawl build/pawl --data ~/maskbench/data --n 200 --seed 1

Each schema gets an arbitrary text and a high temperature, so the model's own taste hardly matters: what comes out
is what the masks allow. An output has to be one JSON text without duplicate keys that `jsonschema` (with formats
asserted) calls valid. A schema may be refused instead, with exit code 2 and a message that names a place in the schema.
Anything else (another exit code, no output in time, an invalid output, a refusal without a place) is a failure.

Exit code: 0 when nothing failed, 1 otherwise, 2 when it could not run. Needs: jsonschema.
"""

import argparse
import collections
import concurrent.futures
import decimal
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

try:
    import jsonschema
except ImportError:
    sys.exit("maskbench_extract_check.py needs the Python package jsonschema (pip install jsonschema)")

decimal.getcontext().prec = 50_000  # multipleOf of decimals is exact, and texts may hold long numbers

# A message of jsonschema about a leap second, which RFC 3339 allows at 23:59:60 UTC and its date-time never does.
LEAP_SECOND = re.compile(r":60(\.\d+)?([zZ]|[+-]\d\d:\d\d)' is not a '(date-)?time'")

WORDS = ("order invoice Maria 42 Berlin 2024-05-17 total 19.99 EUR ship to the warehouse before noon please contact "
         "support@example.com about item 7 blue large true none urgent https://example.com/a?b=1 version 3.2.1 "
         "Grüße 東京 \"quoted\" back\\slash 10:30 +49 30 1234 yes no maybe left right up down").split(" ")


def arbitrary_text(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 40)))


def no_duplicates(pairs):
    out = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"duplicate key {key!r}")
        out[key] = value
    return out


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def loads(text, integral_decimals):
    """Exact numbers. 5.0 becomes the integer 5 where the dialect means values, and stays a decimal where it means spelling."""

    def number(digits):
        value = decimal.Decimal(digits)
        if integral_decimals and value == value.to_integral_value() and value.adjusted() < 400:
            return int(value)
        return value

    return json.loads(text, parse_float=number, parse_constant=refuse_constant, object_pairs_hook=no_duplicates)


def judge(schema_text, output):
    """(verdict, detail): "valid", "invalid" or "unjudged" (the validator itself cannot cope with the schema)."""
    probe = json.loads(schema_text)
    cls = jsonschema.validators.validator_for(probe, default=jsonschema.Draft202012Validator)
    by_value = cls not in (jsonschema.Draft3Validator, jsonschema.Draft4Validator)
    try:
        value = loads(output, by_value)
    except ValueError as error:
        return "invalid", f"not one JSON text: {error}"
    schema = json.loads(schema_text, parse_float=decimal.Decimal)
    try:
        validator = cls(schema, format_checker=cls.FORMAT_CHECKER)
        error = next(iter(validator.iter_errors(value)), None)
    except Exception as problem:  # references that cannot be followed, patterns that are not Python's
        return "unjudged", f"{type(problem).__name__}: {problem}"
    if error is None:
        return "valid", ""
    if LEAP_SECOND.search(error.message):
        return "unjudged", f"{error.json_path}: {error.message} (it knows no leap seconds)"
    return "invalid", f"{error.json_path}: {error.message}"


def run_one(args, index, path):
    rng = random.Random(f"{args.seed}/{index}")
    schema_text = json.dumps(json.loads(path.read_text(encoding="utf-8"))["schema"], ensure_ascii=False)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8", delete=False) as file:
        file.write(schema_text)
    command = [args.pawl, "extract", "--schema", file.name, "--text", arbitrary_text(rng), "--temperature",
               str(args.temperature), "--seed", str(rng.randrange(2**31))]
    if args.model:
        command += ["--model", args.model]
    if args.max_tokens:
        command += ["--max-tokens", str(args.max_tokens)]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=args.timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "failed", f"no end after {args.timeout} s", args.timeout
    finally:
        os.unlink(file.name)
    seconds = time.monotonic() - begin
    message = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode == 2:
        # What needs more tokens than the model's context has is told with both numbers.
        if re.search(r"#(/|:|\s|$)", message) or "--max-tokens: the shortest output" in message:
            return "refused", message.splitlines()[-1], seconds
        return "failed", f"refused without naming a place in the schema: {message[-300:]}", seconds
    if done.returncode != 0:
        return "failed", f"exit code {done.returncode}: {message[-300:]}", seconds
    try:
        output = done.stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        return "failed", f"the output is not UTF-8: {error}", seconds
    verdict, detail = judge(schema_text, output)
    if verdict == "invalid":
        return "failed", f"invalid output: {detail[:300]}\n    output: {output.strip()[:300]}", seconds
    return verdict, detail, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl", help="the command (default: %(default)s)")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of MaskBench *.json files")
    parser.add_argument("--n", type=int, default=200, help="schemas to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=1.5)
    parser.add_argument("--model", help="model folder, when not the default one")
    parser.add_argument("--max-tokens", type=int, default=0, help="passed on when given")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one schema (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="commands at a time (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="a line for every schema")
    args = parser.parse_args()
    files = sorted(args.data.glob("*.json"))
    if not files:
        print(f"no *.json files in {args.data}", file=sys.stderr)
        return 2
    if not os.access(args.pawl, os.X_OK):
        print(f"{args.pawl} is not an executable file; build it first", file=sys.stderr)
        return 2
    sample = random.Random(args.seed).sample(files, min(args.n, len(files)))
    counts, reasons, times = collections.Counter(), collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda item: run_one(args, *item), enumerate(sample))
        for path, (verdict, detail, seconds) in zip(sample, results):
            counts[verdict] += 1
            times.append(seconds)
            if verdict == "refused":
                place = re.search(r"#[^\s:]*", detail)
                reasons[place.group(0).rsplit("/", 1)[-1] if place else "the budget of tokens"] += 1
            if verdict == "failed" or args.verbose:
                print(f"{verdict:9} {seconds:6.2f} s  {path.name}  {detail}", flush=True)
    times.sort()
    print(f"{len(sample)} schemas (seed {args.seed}): {counts['valid']} valid, {counts['refused']} refused with a place named, "
          f"{counts['unjudged']} that the validator cannot judge, {counts['failed']} failed; "
          f"median {times[len(times) // 2]:.2f} s, slowest {times[-1]:.2f} s")
    for keyword, count in reasons.most_common(12):
        print(f"  refused at {keyword or '#'}: {count}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
