"""Writes the scores of the model card from eval/RESULTS.json, and the parameters from the weights; the other text stays.

    python card.py --model models/tiny-extract [--check]

`--check` writes nothing, and fails where the card says something else.
"""

import argparse
import json
import re
import struct
import sys
from pathlib import Path

GOALS = {"seen templates, new values": 97, "held-out templates": 85, "held-out schemas": 78, "hand-written texts": 88}


def parameters(file) -> int:
    """Of all tensors, by the header of the safetensors file."""
    with open(file, "rb") as weights:
        header = json.loads(weights.read(struct.unpack("<Q", weights.read(8))[0]))
    total = 0
    for name, tensor in header.items():
        if name != "__metadata__":
            count = 1
            for length in tensor["shape"]:
                count *= length
            total += count
    return total


def rows(results) -> str:
    out = ""
    for name, goal in GOALS.items():
        r = results[name]
        missed = ", missed" if 100 * r["field_accuracy"] < goal else ""
        out += (f"| {name} | {r['records']} | {r['fields']} | **{100 * r['field_accuracy']:.1f} %** | {100 * r['stated_field_accuracy']:.1f} % | "
                f"{100 * r['record_accuracy']:.1f} % | {goal} %{missed} |\n")
    return out


def replaced(pattern, text, card):
    out, found = re.subn(pattern, lambda _: text, card, flags=re.M)
    if found != 1:
        sys.exit(f"README.md: there is {'no' if not found else 'more than one'} place like {pattern!r}")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where the card says something else")
    options = parser.parse_args()
    folder = Path(options.model)
    results = json.loads((folder / "eval" / "RESULTS.json").read_text())
    before = (folder / "README.md").read_text()
    card = replaced(r"(?<=^\|---\|---\|---\|---\|---\|---\|---\|\n)(\|.*\n)+", rows(results), before)
    card = replaced(r"^\| parameters \| .*$", f"| parameters | {parameters(folder / 'model.safetensors'):,} |", card)
    if not options.check:
        (folder / "README.md").write_text(card)
    elif card != before:
        sys.exit("README.md differs from eval/RESULTS.json and model.safetensors: python card.py --model " + options.model)


if __name__ == "__main__":
    main()
