#!/usr/bin/env python3
"""Counts the calls of the model that a field takes: free, and copied from the text (`verbatim`).

    scripts/field_calls.py --data TEXTS.jsonl --model MODEL [--model MODEL ...] [--limit N] [--json FILE]

A call is a token that was chosen: what the constraint dictates takes none. The tokens of a field are those with a byte from behind the
colon to the value's end. Counted are the fields and items that `--verbatim` copies: strings without `enum`, `const` and `format`.
Records are greedy. TEXTS.jsonl is what `pawl eval` reads.

The result has, for each model and setting, the `strings` that were written with their calls and characters, and the same for all
`fields`, nulls among them. `ratio` is calls per character of a copied string by that of a free one, as well as calls per string and per
field. `choices` says what the calls of the copied strings decide:

    null or string    whether there is a value
    first             where the value begins
    end or go on      whether the value ends here
    branch            how the value goes on; it cannot end
    spelling          one character goes on; only the tokens that spell it differ

No constraint that allows the same values takes fewer calls than the first four together: each of them has more than one outcome.
"""

import argparse
import collections
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


ALTERNATIVES = 20


def choice(begins, first, allowed):
    """What a call inside a value decides. `allowed`: the bytes of the tokens that it chose from, at most ALTERNATIVES."""
    if begins:
        return "null or string"
    if first:
        return "first"
    ends = [b'"' in one for one in allowed]
    if any(ends):
        return "end or go on"
    return "spelling" if len({one[:1] for one in allowed}) == 1 and len(allowed) < ALTERNATIVES else "branch"


def calls_of(output, schema, bytes_of, choices):
    """(calls, characters, whether it is a string) of each such field of an output. Counts the choices of strings."""
    text, places = b"", []
    for token, _, top in output.logprobs:
        piece = bytes_of(token)
        places.append((len(text), len(text) + len(piece), [bytes_of(one[0]) for one in top or []]))
        text += piece
    chars = text.decode("utf-8")
    byte_at = [0]
    for c in chars:
        byte_at.append(byte_at[-1] + len(c.encode()))
    out = []
    for begin, end, found in fields(chars, schema):
        inside = [place for place in places if place[0] < byte_at[end] and place[1] > byte_at[begin]]
        out.append((sum(bool(allowed) for _, _, allowed in inside), len(found) if isinstance(found, str) else 0, isinstance(found, str)))
        if not isinstance(found, str):
            continue
        quote = text.index(b'"', byte_at[begin])
        for first, _, allowed in inside:
            if allowed:
                choices[choice(first <= quote, first == quote + 1, allowed)] += 1
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
                counted, skipped, choices = [], 0, collections.Counter()
                for line in lines:
                    try:
                        output = engine.extract_outputs(line["text"], line["schema"], logprobs=ALTERNATIVES, temperature=0, **options)
                        counted += calls_of(output, line["schema"], lambda token: native.decode([token]), choices)
                    except pawl.PawlError as error:
                        skipped += 1
                        print(f"{setting}: {error}", file=sys.stderr)
                strings = [one for one in counted if one[2]]
                rows[setting] = {
                    "strings": {"number": len(strings), "calls": sum(one[0] for one in strings), "characters": sum(one[1] for one in strings)},
                    "fields": {"number": len(counted), "calls": sum(one[0] for one in counted)},
                    "skipped": skipped,
                }
                if setting == "verbatim":
                    rows[setting]["choices"] = dict(choices.most_common())
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
