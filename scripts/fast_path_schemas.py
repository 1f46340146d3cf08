#!/usr/bin/env python3
"""Schemas that MaskBench does not have, for which some ways to a mask were made, as folders of MaskBench files.

    scripts/fast_path_schemas.py OUT
    build/pawl maskbench --tokenizer llama3_1 --data OUT/union_patterns --thread-time

docs/architecture.md has the table of what each path gives on them.
"""
import argparse
import json
import os
import random
import string

RANDOM = random.Random(7)


def word(length):
    return "".join(RANDOM.choice(string.ascii_lowercase) for _ in range(length))


def schemas():
    """Pairs of a name and (a schema, a value that fits)."""
    words = [word(8) for _ in range(1000)]
    keys = [word(9) + str(RANDOM.randrange(99)) + word(5).upper() for _ in range(12)]
    items = lambda schema, values: ({"type": "array", "items": schema}, values)
    yield "union_patterns", items(
        {"type": "string", "anyOf": [{"pattern": f"^{w}-[0-9]+$"} for w in words]}, [w + "-123" for w in words[:30]])
    yield "one_of_constants", items({"oneOf": [{"const": w} for w in words]}, words[:40])
    yield "key_patterns", (
        {"type": "object", "patternProperties": {
            f"^.*{w[:2]}.*{i % 10}": {"type": "integer", "minimum": i} for i, w in enumerate(words[:300])}},
        {key: 1000 for key in keys})
    yield "few_patterns", items(
        {"type": "object", "maxProperties": 5, "propertyNames": {"pattern": "^[a-z_]+$"},
         "patternProperties": {"^a.*z": {"type": "integer"}, "b+c": {"type": "string"}, "^x": {"minimum": 3}}},
        [{"kalpha": 1, "kbeta": 2, "kgamma": i, "xray": 5} for i in range(40)])
    yield "multiples", items(
        {"type": "integer", "multipleOf": 7919, "minimum": -10**12},
        [7919 * RANDOM.randrange(10**6) for _ in range(60)])
    yield "many_multiples", items(
        {"type": "number", "anyOf": [{"multipleOf": m} for m in (7, 11, 13, 0.25, 0.1)], "not": {"multipleOf": 17}},
        [7 * 17 * i + 7 for i in range(60)])
    yield "references", (
        {"type": "object",
         "properties": {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(3000)},
         "$defs": {f"d{i}": {"type": "string", "maxLength": i % 50 + 3} for i in range(3000)}},
        {f"p{i}": "ab" for i in range(20)})
    yield "not_patterns", items(
        {"type": "string", "allOf": [{"not": {"pattern": f"{w[:2]}.*{w[2:4]}"}} for w in words[:50]]},
        ["The lazy dog 4711 lies there", "0123456789 ABC"])
    yield "all_of_patterns", items(
        {"type": "string", "allOf": [{"pattern": "[aeiou]"}, {"pattern": "[0-9]"}, {"pattern": "^[^x]*$"},
                                     {"not": {"pattern": "foo"}}]},
        [f"hello world {i} and more of it" for i in range(30)])
    yield "other_keys", items(
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        [{word(6) + " \u00e9": i for i in range(3)} for _ in range(40)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="folder to write to; a folder for each schema is made in it")
    out = parser.parse_args().out
    try:
        for name, (schema, value) in schemas():
            folder = os.path.join(out, name)
            os.makedirs(folder, exist_ok=True)
            tests = [{"description": "fits", "valid": True, "data": value}]
            with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
                json.dump({"description": name, "meta": {}, "schema": schema, "tests": tests}, file)
    except OSError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
