#!/usr/bin/env python3
"""Counts the calls of the model that a field takes: free, and copied from the text (`verbatim`).

    scripts/field_calls.py --data TEXTS.jsonl --model MODEL [--model MODEL ...] [--limit N] [--json FILE]

A call is a token that was chosen: what the constraint dictates takes none. The tokens of a field are those with a byte from behind the
colon to the value's end. Counted are the fields and items that `--verbatim` copies: strings without `enum`, `const` and `format`.
Records are greedy. TEXTS.jsonl is what `pawl eval` reads.

The result has, for each model and setting, the `strings` that were written with their calls and characters, and the same for all
`fields`, nulls among them. `ratio` is calls per character of a copied string by that of a free one, as well as calls per string and per
field.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def copied(schema):
    """Whether --verbatim copies a field of this schema, and the schemas of its keys and items."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    return "string" in types and not {"enum", "const", "format"} & set(schema)


def fields(text, schema):
    """(begin, end, value) of each field of the JSON text that --verbatim copies; places are bytes."""
    at = 0
    decoder = json.JSONDecoder()
    out = []

    def blank():
        nonlocal at
        while at < len(text) and text[at] in " \t\r\n":
            at += 1

    def value(schema, behind):
        nonlocal at
        blank()
        if text[at] in "{[":
            closing = "}" if text[at] == "{" else "]"
            at += 1
            blank()
            while text[at] != closing:
                below = schema.get("items", {})
                if closing == "}":
                    key, at = decoder.raw_decode(text, at)
                    below = schema.get("properties", {}).get(key, {})
                    blank()
                    at += 1  # the colon
                value(below if isinstance(below, dict) else {}, at)
                blank()
                if text[at] == ",":
                    at += 1
                    blank()
            at += 1
            return
        found, at = decoder.raw_decode(text, at)
        if copied(schema):
            out.append((behind, at, found))

    value(schema, 0)
    return out


def calls_of(output, schema, bytes_of):
    """(calls, characters, whether it is a string) of each such field of an output."""
    text, places = b"", []
    for token, _, top in output.logprobs:
        piece = bytes_of(token)
        places.append((len(text), len(text) + len(piece), bool(top)))
        text += piece
    chars = text.decode("utf-8")
    byte_at = [0]
    for c in chars:
        byte_at.append(byte_at[-1] + len(c.encode()))
    out = []
    for begin, end, found in fields(chars, schema):
        calls = sum(chosen for first, last, chosen in places if first < byte_at[end] and last > byte_at[begin])
        out.append((calls, len(found) if isinstance(found, str) else 0, isinstance(found, str)))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--model", required=True, action="append")
    parser.add_argument("--limit", type=int, help="so many texts")
    parser.add_argument("--json", type=Path, help="writes the result there")
    arguments = parser.parse_args()
    import pawl  # pylint: disable=import-outside-toplevel

    lines = [json.loads(line) for line in arguments.data.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = lines[: arguments.limit]
    results = []
    for path in arguments.model:
        rows = {}
        with pawl.Engine(path) as engine:
            native = engine._native  # pylint: disable=protected-access
            for setting, options in (("free", {}), ("verbatim", {"verbatim": "strings"})):
                counted, skipped = [], 0
                for line in lines:
                    try:
                        output = engine.extract_outputs(line["text"], line["schema"], logprobs=1, temperature=0, **options)
                        counted += calls_of(output, line["schema"], lambda token: native.decode([token]))
                    except pawl.PawlError as error:
                        skipped += 1
                        print(f"{setting}: {error}", file=sys.stderr)
                strings = [one for one in counted if one[2]]
                rows[setting] = {
                    "strings": {"number": len(strings), "calls": sum(one[0] for one in strings), "characters": sum(one[1] for one in strings)},
                    "fields": {"number": len(counted), "calls": sum(one[0] for one in counted)},
                    "skipped": skipped,
                }
        def share(setting, part, by, rows=rows):
            return rows[setting][part]["calls"] / max(1, rows[setting][part][by])

        rows["ratio"] = {name: share("verbatim", part, by) / share("free", part, by)
                         for name, part, by in (("string", "strings", "number"), ("character", "strings", "characters"), ("field", "fields", "number"))}
        results.append({"model": Path(path).name, "data": arguments.data.name, **rows})
        print(json.dumps(results[-1]))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
