#!/usr/bin/env python3
"""Runs `pawl extract` on many schemas and checks every output with the jsonschema package.

    scripts/validate_outputs.py --count 200 --seed 1 FOLDER_OF_SCHEMAS

FOLDER_OF_SCHEMAS holds *.json files: JSON Schemas, or objects with one under "schema" (the files of MaskBench, from
github.com/guidance-ai/jsonschemabench, are like that). Each schema gets an arbitrary text and temperature 1.5 with a seed of its own. An
output has to be valid, or the schema has to be refused with a message that names a place in it. Needs: pip install jsonschema.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent


def one(pawl, schema, text, seed, temperature, max_tokens):
    """('valid' | 'refused' | 'invalid' | 'failed', detail, seconds)."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(schema, file)
        file.flush()
        start = time.monotonic()
        try:
            done = subprocess.run(
                [pawl, "extract", "--schema", file.name, "--text", text, "--temperature", str(temperature), "--seed", str(seed),
                 "--max-tokens", str(max_tokens)],
                capture_output=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return "failed", "timeout", 120.0
        seconds = time.monotonic() - start
        message = done.stderr.decode("utf-8", "replace").strip().replace(file.name, "schema.json")
    if done.returncode == 2:
        return "refused" if "#" in message or "tokens" in message else "failed", message, seconds
    if done.returncode != 0:
        return "failed", f"exit code {done.returncode}: {message}", seconds
    try:
        value = json.loads(done.stdout.decode("utf-8"))
    except ValueError as error:
        return "invalid", f"not JSON: {error}", seconds
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    errors = [e.message[:200] for e in validator(schema).iter_errors(value)]
    return ("invalid", errors[0], seconds) if errors else ("valid", message, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=1.5)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--pawl", default=str(ROOT / "build" / "pawl"))
    parser.add_argument("--verbose", action="store_true", help="print every refusal too")
    options = parser.parse_args()
    pick = random.Random(options.seed)
    files = sorted(options.folder.glob("*.json"))
    files = pick.sample(files, min(options.count, len(files)))
    counts = collections.Counter()
    times = []
    for i, path in enumerate(files):
        schema = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(schema, dict) and "schema" in schema and "tests" in schema:
            schema = schema["schema"]
        text = " ".join(pick.choice(["order", "7", "Ann Lee", "2024-03-01", "EUR", "a", "blue", "12.5"]) for _ in range(12))
        outcome, detail, seconds = one(options.pawl, schema, text, i, options.temperature, options.max_tokens)
        counts[outcome] += 1
        times.append(seconds)
        if seconds > 3:
            print(f"slow: {path.name}: {seconds:.1f} s", flush=True)
        if outcome in ("invalid", "failed") or (options.verbose and outcome == "refused"):
            print(f"{outcome}: {path.name}: {detail}", flush=True)
    times.sort()
    print(f"{len(files)} schemas: " + ", ".join(f"{counts[k]} {k}" for k in ("valid", "refused", "invalid", "failed")) +
          f"; seconds: median {times[len(times) // 2]:.3f}, largest {times[-1]:.2f}")
    return 1 if counts["invalid"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
