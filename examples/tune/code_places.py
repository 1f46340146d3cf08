#!/usr/bin/env python3
"""The places of TypeScript files at which a name follows a ".", as prompts for `pawl tune`.

    examples/tune/code_places.py scripts/tiny_code/sample/*.ts > places.jsonl
    pawl tune --model models/tiny-code --special --prompts places.jsonl --regex "[A-Za-z_][A-Za-z0-9_]{0,30}" --max-tokens 16
    pawl tune --model models/tiny-code --special --entropy places.jsonl --regex "[A-Za-z_][A-Za-z0-9_]{0,30}"

A line has the prompt for a gap, with the markers of the model, and the name that stood there. What stood behind it on its
line is left out.
"""
import json
import re
import sys

DEREFERENCE = re.compile(r"(?<=[\w)\]])\.([A-Za-z_]\w*)")


def places(text):
    for match in DEREFERENCE.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if line.count('"') % 2 == 0:
            before, behind = text[:match.start(1)], text[text.find("\n", match.start(1)):]
            yield {"prompt": f"<|fim_prefix|>{before}<|fim_suffix|>{behind}<|fim_middle|>", "expect": match.group(1)}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for place in places(file.read()):
                print(json.dumps(place))
