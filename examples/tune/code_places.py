#!/usr/bin/env python3
"""The places of TypeScript files at which a name follows a ".", as prompts for `pawl tune`.

    examples/tune/code_places.py scripts/tiny_code/sample/*.ts > places.jsonl
    NAMES=$(examples/tune/code_places.py --names scripts/tiny_code/sample/*.ts)
    pawl tune --model models/tiny-code --special --prompts places.jsonl --regex "$NAMES" --max-tokens 16
    pawl tune --model models/tiny-code --special --entropy places.jsonl --regex "$NAMES"

A line has the prompt for a gap, with the markers of the model, and the name that stood there. What stood behind it on its
line is left out. With --names all names are written, as a regex.
"""
import json
import re
import sys

DEREFERENCE = re.compile(r"(?<=[\w)\]])\.([A-Za-z_]\w*)")


def places(text):
    """(prompt, name) of each place."""
    for match in DEREFERENCE.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if line.count('"') % 2 == 0:
            before, behind = text[:match.start(1)], text[text.find("\n", match.start(1)):]
            yield f"<|fim_prefix|>{before}<|fim_suffix|>{behind}<|fim_middle|>", match.group(1)


def main():
    files = [one for one in sys.argv[1:] if one != "--names"]
    if not files or any(one.startswith("--") for one in files):
        sys.exit(__doc__)
    found = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            found += places(file.read())
    if len(files) < len(sys.argv) - 1:
        print("|".join(sorted({name for _, name in found})))
        return
    for prompt, name in found:
        print(json.dumps({"prompt": prompt, "expect": name}))


if __name__ == "__main__":
    main()
