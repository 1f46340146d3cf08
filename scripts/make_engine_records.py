#!/usr/bin/env python3
"""Writes js/test/engine_records.json: what the native library makes of the README's text and of twenty further ones.

    PYTHONPATH=build/python/site scripts/make_engine_records.py

The texts are spread evenly over models/tiny-extract/eval/handwritten.jsonl. Of the first six the file has the records with int8
weights, too."""

import json
from pathlib import Path

import pawl

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/tiny-extract"
README = {
    "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "phone": {"type": ["string", "null"]}, "city": {"enum": ["Leeds", "Porto", None]}},
        "required": ["name", "phone", "city"],
        "additionalProperties": False,
    },
    "text": "Ann Lee lives in Porto. Phone: 020 7946 0018.",
}


def record_of(engine, case):
    output = engine.extract_outputs(case["text"], json.dumps(case["schema"]))
    return {"record": output.text, "tokens": list(output.tokens)}


def main():
    lines = [json.loads(line) for line in (MODEL / "eval/handwritten.jsonl").read_text().splitlines()]
    cases = [README] + [{"schema": one["schema"], "text": one["text"]} for one in lines[:: len(lines) // 20][:20]]
    with pawl.Engine(str(MODEL)) as stored, pawl.Engine(str(MODEL), dtype="int8") as int8:
        records = [{**case, **record_of(stored, case)} for case in cases]
        for record in records[:6]:
            record["int8"] = record_of(int8, record)
    texts = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in records]
    (ROOT / "js/test/engine_records.json").write_text("[\n" + ",\n".join(texts) + "\n]\n")


if __name__ == "__main__":
    main()
