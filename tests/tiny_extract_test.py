#!/usr/bin/env python3
"""The generator of the training texts: what it keeps out, and whether records are right by schema and text."""

import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts" / "tiny_extract"))

import gen
import kept_texts

KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "null": type(None)}


def groups(count, seed=11):
    rng = random.Random(seed)
    return [gen.group(rng, 2) for _ in range(count)]


def fits(value, schema):
    if "enum" in schema:
        return value in schema["enum"]
    if isinstance(value, gen.V.Raw):
        value = float(value) if "." in value else int(value)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, bool) != ("boolean" in kinds) and value is not None:
        return False
    if not any(isinstance(value, KINDS[kind]) for kind in kinds):
        return False
    if isinstance(value, list):
        return all(fits(item, schema["items"]) for item in value)
    if isinstance(value, dict):
        return list(value) == list(schema["properties"]) and all(fits(item, schema["properties"][key]) for key, item in value.items())
    return True


class TinyExtractTest(unittest.TestCase):
    def test_texts_that_are_kept_apart_are_known(self):
        texts = list(kept_texts.texts())
        self.assertGreater(len(texts), 600)
        for text in texts:
            self.assertTrue(kept_texts.is_kept(text.upper() + "\n"))
        self.assertTrue(kept_texts.is_kept("Hello. Ann Lee lives in Porto. Phone: 020 7946 0018.\nBye."))
        self.assertFalse(kept_texts.is_kept("A text that stands in no file of this kind."))

    def test_training_has_none_of_them(self):
        for examples in groups(400):
            for example in examples:
                self.assertFalse(kept_texts.is_kept(example.text), example.text)

    def test_a_text_that_is_kept_apart_is_drawn_again(self):
        rng = random.Random(4)
        text = gen.group(rng, 1)[0].text
        kept = kept_texts.kept()
        kept.update(kept_texts.digests(text))
        try:
            self.assertNotEqual(gen.group(random.Random(4), 1)[0].text, text)
        finally:
            kept_texts.kept.cache_clear()

    def test_held_out_domains_and_phrases_are_not_trained(self):
        self.assertFalse({e.domain for examples in groups(300) for e in examples} & gen.HELD_OUT_DOMAINS)

    def test_records_fit_their_schemas(self):
        for examples in groups(300):
            for example in examples:
                self.assertTrue(fits(example.record, example.schema), (example.schema, example.record))
                self.assertEqual(len(example.output), len(example.mask))

    def test_schemas_are_many(self):
        self.assertGreater(len({gen.view(examples[0].schema) for examples in groups(500)}), 450)

    def test_the_view_is_that_of_the_prompt(self):
        schema = {"type": "object", "properties": {
            "id": {"type": "string", "pattern": "^[0-9]+$"}, "day": {"type": "string", "format": "date"}, "kind": {"enum": ["new", "paid", None]},
            "total": {"type": ["number", "null"], "description": "in all"}, "sub": {"type": "object", "properties": {"open": {"type": "boolean"}}},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}}}}}
        self.assertEqual(gen.view(schema), "id:pattern;day:date;kind:new|paid;total:number(in all);sub{open:boolean};lines[{name;tags[]}]")
        self.assertEqual(gen.view(schema["properties"]["lines"]), "[{name;tags[]}]")

    def test_the_card_has_the_scores(self):
        root = Path(__file__).resolve().parents[1]
        check = [sys.executable, root / "scripts/tiny_extract/card.py", "--model"]
        self.assertEqual(subprocess.run([*check, root / "models/tiny-extract", "--check"]).returncode, 0)
        with tempfile.TemporaryDirectory() as name:   # a score and the parameters of another model
            model = Path(name) / "model"
            shutil.copytree(root / "models/tiny-extract", model)
            card = model / "README.md"
            right = card.read_text()
            card.write_text(right.replace("**86.6 %**", "**88.6 %**").replace("| parameters | 3,", "| parameters | 4,"))
            self.assertIn(b"README.md differs", subprocess.run([*check, model, "--check"], capture_output=True).stderr)
            self.assertEqual(subprocess.run([*check, model]).returncode, 0)
            self.assertEqual(card.read_text(), right)


if __name__ == "__main__":
    unittest.main()
