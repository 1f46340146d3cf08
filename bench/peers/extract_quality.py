#!/usr/bin/env python3
"""Fields that are right when other libraries extract with the same model, text by text.

    bench/peers/extract_quality.py --model SmolLM2-135M-Instruct.Q4_1.gguf --texts 60 --out bench/results/NAME.json
    bench/peers/extract_quality.py --model MODEL.gguf --lists --systems pawl langextract instructor

Each system gets the same texts, instruction, examples and thread, and greedy decoding. Records are scored by
`pawl eval --written`, which also compares them with Pawl's by a paired test. Times are processor seconds, without
loading the model (Pawl's with it). Texts are of the half of bench/extract/ that is kept apart; examples are of the
other half. Needs llama-cpp-python, and of the systems those that are asked for: outlines, instructor, langextract.
"""

import argparse
import ctypes
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gguf_peers import silent, without_repacking

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench/extract"
INSTRUCTIONS = {"orders": "Extract the order as JSON.",
                "lists": "Extract all order lines from the text as a JSON list, one record for each that the text names."}
MOST_TOKENS = {"orders": 200, "lists": 500}


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def processor_seconds(who=resource.RUSAGE_SELF):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


class Task:
    def __init__(self, args):
        self.name = "lists" if args.lists else "orders"
        self.schema_file = BENCH / ("lines.schema.json" if args.lists else "order.schema.json")
        self.schema = json.loads(self.schema_file.read_text())
        rows = lines_of(BENCH / (self.name + ".jsonl"))
        kept = [row for row in rows if row["split"] == "kept"]
        # The shapes lie behind each other, so the texts are spread over all of them.
        self.rows = [kept[i * len(kept) // args.texts] for i in range(args.texts)]
        known = [row for row in rows if row["split"] == "known" and row["record"]]
        self.examples = [known[i * len(known) // args.examples] for i in range(args.examples)]
        self.instruction, self.most = INSTRUCTIONS[self.name], MOST_TOKENS[self.name]
        item = self.schema["items"] if args.lists else self.schema
        self.keys = list(item["properties"])
        # Other systems leave keys out that are not required.
        self.closed = json.loads(json.dumps(self.schema))
        item = self.closed["items"] if args.lists else self.closed
        item["required"], item["additionalProperties"] = self.keys, False

    def messages(self, text, written=lambda record: record):
        """As Pawl's prompt has them; the record of an example as `written` has it."""
        before = f"{self.instruction}\n\nKeys: {', '.join(self.keys)}\n\n"
        out = []
        for example in self.examples:
            out += [{"role": "user", "content": before + "Text: " + example["text"]},
                    {"role": "assistant", "content": json.dumps(written(example["record"]), separators=(",", ":"))}]
            before = ""
        return [*out, {"role": "user", "content": before + "Text: " + text}]


def parsed(text):
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


# ---- The systems: each gives a function from a text to a record, or None ----


def of_llama_cpp(llama, task):
    form = {"type": "json_object", "schema": task.closed}

    def extract(text):
        answer = llama.create_chat_completion(task.messages(text), response_format=form, temperature=0,
                                              max_tokens=task.most)
        return parsed(answer["choices"][0]["message"]["content"])

    return extract


def of_outlines(llama, task):
    import outlines
    from outlines.inputs import Chat
    from outlines.types import JsonSchema

    generate = outlines.Generator(outlines.from_llamacpp(llama), JsonSchema(json.dumps(task.closed)))
    return lambda text: parsed(generate(Chat(task.messages(text)), max_tokens=task.most, temperature=0))


def of_instructor(llama, task):
    import instructor
    import pydantic

    fields = {}
    item = task.closed["items"] if task.name == "lists" else task.closed
    kinds = {"string": str, "integer": int, "number": float, "boolean": bool}
    for key, schema in item["properties"].items():
        types = [one.get("type") for one in schema.get("anyOf", [schema])]
        kind = next((kinds[one] for one in types if one in kinds), str)
        fields[key] = (kind | None, ...)
    record = pydantic.create_model("Record", **fields)
    wanted = pydantic.create_model("Records", records=(list[record], ...)) if task.name == "lists" else record
    create = instructor.patch(create=llama.create_chat_completion_openai_v1, mode=instructor.Mode.JSON_SCHEMA)
    # A list is a member of what it asks for, and so it is in the examples.
    written = (lambda records: {"records": records}) if task.name == "lists" else (lambda record: record)

    def extract(text):
        try:
            made = create(messages=task.messages(text, written), response_model=wanted, temperature=0, max_tokens=task.most,
                          max_retries=1)
        except Exception:  # whatever it is, there is no record
            return None
        return [one.model_dump() for one in made.records] if task.name == "lists" else made.model_dump()

    return extract


def of_langextract(llama, task):
    import langextract as lx
    from langextract.core import base_model, types

    class Local(base_model.BaseLanguageModel):
        def infer(self, batch_prompts, **_):
            for prompt in batch_prompts:
                answer = llama.create_chat_completion([{"role": "user", "content": prompt}], temperature=0,
                                                      max_tokens=2 * task.most, response_format={"type": "json_object"})
                yield [types.ScoredOutput(score=1.0, output=answer["choices"][0]["message"]["content"])]

    def example(row):
        records = row["record"] if task.name == "lists" else [row["record"]]
        found = []
        for record in records:
            given = {key: str(value) for key, value in record.items() if value is not None}
            found.append(lx.data.Extraction(extraction_class="record", extraction_text=next(iter(given.values()), ""),
                                            attributes=given))
        return lx.data.ExampleData(text=row["text"], extractions=found)

    model, examples = Local(), [example(row) for row in task.examples]

    def value(key, text):
        item = task.schema["items"] if task.name == "lists" else task.schema
        kinds = json.dumps(item["properties"][key])
        if "integer" in kinds or "number" in kinds:
            number = parsed(str(text).replace(",", ""))
            return number if isinstance(number, (int, float)) else text
        return text

    def extract(text):
        try:
            result = lx.extract(text_or_documents=text, prompt_description=task.instruction, examples=examples, model=model,
                                show_progress=False, fence_output=False, use_schema_constraints=False)
        except Exception:
            return None
        records = [{key: value(key, one.attributes[key]) for key in task.keys if key in (one.attributes or {})}
                   for one in result.extractions or []]
        return records if task.name == "lists" else (records or [None])[0]

    return extract


PEERS = {"llama.cpp": of_llama_cpp, "outlines": of_outlines, "instructor": of_instructor, "langextract": of_langextract}


# ---- Running ----


def pawl_eval(args, task, folder, more):
    command = [args.pawl, "eval", "--schema", str(task.schema_file), "--data", str(folder / "texts.jsonl"), "--json", *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def run_pawl(args, task, folder, batch):
    more = ["--model", args.model, "--threads", "1", "--batch", str(batch), "--instruction", task.instruction,
            "--schema-view", "keys", "--max-tokens", str(task.most), "--no-mask-surprise",
            "--records", str(folder / "pawl.jsonl")]
    if task.examples:
        (folder / "examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in task.examples))
        more += ["--examples", str(folder / "examples.jsonl")]
    before = processor_seconds(resource.RUSAGE_CHILDREN)
    (setting,) = pawl_eval(args, task, folder, more)["settings"]
    # Loading is counted: a run of no texts would not tell less.
    return setting, processor_seconds(resource.RUSAGE_CHILDREN) - before, None


def run_peer(args, task, folder, name):
    llama = llama_cpp.Llama(args.model, n_ctx=4096, n_threads=1, n_threads_batch=1, verbose=False)
    extract = PEERS[name](llama, task)
    before = processor_seconds()
    records = [extract(row["text"]) for row in task.rows]
    seconds = processor_seconds() - before
    path = folder / (name + ".jsonl")
    path.write_text("".join(json.dumps({"record": record}) + "\n" for record in records))
    pawl = [folder / "pawl.jsonl"] if (folder / "pawl.jsonl").exists() else []
    scored = pawl_eval(args, task, folder, [part for one in [*pawl, path] for part in ("--written", str(one))])
    return scored["settings"][-1], seconds, scored["comparisons"][0] if pawl else None


def summary(setting, seconds, compared):
    counts = setting["all"]
    fields = counts["values"] + counts["nulls"]
    return {"fields_right": round((counts["right"] + counts["right_nulls"]) / fields, 4), "fields": fields,
            "values_right": counts["right"], "values": counts["values"], "nulls_right": counts["right_nulls"],
            "failed": setting["failed"], "f1_values": setting["values"]["f1"], "f1_records": setting["list_records"]["f1"],
            "f1_list_fields": setting["list_fields"]["f1"], "empty_lists": setting["empty_lists"],
            "processor_seconds": round(seconds, 1),
            "against_pawl": compared and {key: compared[key] for key in ("better", "worse", "same", "p")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--pawl", default=str(ROOT / "build/pawl"))
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--examples", type=int, default=1, help="LangExtract needs one or more")
    parser.add_argument("--lists", action="store_true", help="texts with lists of records in place of orders")
    parser.add_argument("--systems", nargs="+", default=["pawl", *PEERS], choices=["pawl", *PEERS])
    parser.add_argument("--batch", type=int, default=8, help="texts that Pawl works on at a time")
    parser.add_argument("--out")
    args = parser.parse_args()
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    without_repacking()
    task = Task(args)
    report = {"task": task.name, "model": Path(args.model).name, "texts": args.texts, "examples": args.examples,
              "batch": args.batch, "llama_cpp_python": llama_cpp.__version__, "systems": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in task.rows))
        for system in args.systems:
            done = run_pawl(args, task, folder, args.batch) if system == "pawl" else run_peer(args, task, folder, system)
            report["systems"][system] = summary(*done)
            print(system, json.dumps(report["systems"][system]), flush=True)
    if args.out:
        Path(args.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
