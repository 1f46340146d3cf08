"""Field accuracy of an exported model under greedy decoding, as `pawl extract` decodes.

    python evaluate.py --pawl build/pawl --model models/tiny-extract [--count 300] [--out models/tiny-extract/eval/RESULTS.json] [--failures]

Four sets: training phrasings with new values, held-out phrasings, held-out schemas, and the hand-written texts. A fifth one,
`--only shown`, has twenty variants each of the texts that the README and the quickstart show, with other names and figures. A
field is a leaf of the record (a list counts as one field); it is right if it is equal to the expected value (numbers by value).
"""

import argparse
import collections
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import gen


def leaves(record, path=()):
    if isinstance(record, dict):
        for key, value in record.items():
            yield from leaves(value, path + (key,))
    else:
        yield path, record


def same(a, b) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def extract(pawl, model, examples, dtype="stored", more=(), stats=None):
    """The record that the command makes of each text, or what it said instead. `stats`: gets what --stats-json says of each schema's texts."""
    groups = collections.defaultdict(list)
    for number, (_, schema, *_) in enumerate(examples):
        groups[json.dumps(schema, ensure_ascii=False)].append(number)
    outputs = [None] * len(examples)
    with tempfile.TemporaryDirectory() as folder:
        for schema, numbers in groups.items():
            file = Path(folder) / "schema.json"
            file.write_text(schema)
            lines = "".join(json.dumps({"text": examples[n][0]}, ensure_ascii=False) + "\n" for n in numbers)
            run = subprocess.run([pawl, "extract", "--schema", file, "--model", model, "--json-lines", "--max-tokens", "700", "--threads", "1", "--dtype", dtype, *more,
                                  "--stats-json", Path(folder) / "stats.json"],
                                 input=lines, capture_output=True, text=True)
            if run.returncode > 1:
                sys.exit(f"{' '.join(map(str, run.args))}: {run.stderr}")
            if stats is not None:
                stats.append(json.loads((Path(folder) / "stats.json").read_text()))
            for number, line in zip(numbers, run.stdout.splitlines(), strict=True):
                outputs[number] = line
    return outputs


def score(outputs, examples, failures=None):
    """examples: [(text, schema, record, scored paths or None, tag)]"""
    right = total = whole = broken = nulls = null_right = 0
    by_tag = collections.defaultdict(lambda: [0, 0])
    whole_by_tag = collections.Counter()
    for (text, schema, record, paths, tag), output in zip(examples, outputs):
        try:
            got = dict(leaves(json.loads(output)))
        except ValueError:
            got, broken = {}, broken + 1
        good = True
        for path, want in leaves(record):
            if paths is not None and path not in paths:
                continue
            ok = path in got and same(got[path], want)
            total += 1
            right += ok
            good &= ok
            nulls += want is None
            null_right += ok and want is None
            by_tag[tag][0] += ok
            by_tag[tag][1] += 1
            if not ok and failures is not None:
                failures.append((tag, text, path, want, got.get(path)))
        whole += good
        whole_by_tag[tag] += good
    return {"fields": total, "field_accuracy": round(right / max(total, 1), 4), "records": len(examples),
            "record_accuracy": round(whole / max(len(examples), 1), 4),
            "stated_field_accuracy": round((right - null_right) / max(total - nulls, 1), 4),
            "unfinished": broken, "by_schema": {k: round(a / b, 3) for k, (a, b) in sorted(by_tag.items())},
            "records_by_schema": dict(sorted(whole_by_tag.items()))}


def generated(seed, count, held=False, domains=None, named=None):
    rng = random.Random(f"evaluation/{seed}")
    out = []
    while len(out) < count:
        example = gen.make(rng, held, domains, named)
        paths = {p for p in example.held_paths} if held else None
        if held and not paths:
            continue
        record = json.loads(example.output.decode())
        if held:   # an array or object field stands under the path of its slot
            paths = {p for p, _ in leaves(record) if any(p[:len(h)] == h for h in paths)}
        out.append((example.text, example.schema, record, paths, example.domain))
    return out


def handwritten(path):
    out = []
    for line in Path(path).read_text().splitlines():
        if line.strip():
            item = json.loads(line)
            out.append((item["text"], item["schema"], item["record"], None, item.get("kind", "text")))
    return out


def shown(seed, count=20):
    """The texts of README.md, docs/cli.md and examples/invoice.txt with other names and figures."""
    rng = random.Random(f"shown/{seed}")
    folder = Path(__file__).resolve().parents[2] / "schemas" / "examples"
    invoice, contact = (json.loads((folder / f"{name}.json").read_text()) for name in ("invoice", "contact"))
    out = []
    for _ in range(count):
        ctx = gen.V.Context(rng)
        name, phone, mail, firm, other = gen.V.person(ctx), gen.V.phone(ctx), gen.V.email(ctx), gen.V.company(ctx), gen.V.company(ctx)
        day, due = gen.V.Date().make(ctx), gen.V.Date().make(ctx)
        cities = rng.sample(gen.W.CITY, 2)
        person = {"type": "object", "properties": {"name": {"type": "string"}, "phone": {"type": ["string", "null"]}, "city": {"enum": [*cities, None]}},
                  "required": ["name", "phone", "city"], "additionalProperties": False}
        out.append((f"{name} lives in {cities[1]}. Phone: {phone}.", person, {"name": name, "phone": phone, "city": cities[1]}, None, "person"))
        record = dict.fromkeys(contact["properties"])
        out.append((f"{name} works at {firm}. Phone: {phone}.", contact, record | {"name": name, "phone": phone, "company": firm}, None, "contact"))
        out.append((f"Write to {name} at {mail}.", contact, record | {"name": name, "email": mail}, None, "letter"))
        number, cents = f"INV-{gen.V.digits(rng, 4)}", rng.randint(20000, 999999)
        text = f"Invoice {number} from {firm}, issued to {other} on {day.surface}. Please pay {cents // 100:,}.{cents % 100:02d} {ctx.currency} by {due.surface}."
        out.append((text, invoice, {"invoice_number": number, "vendor": firm, "customer": other, "invoice_date": day.parts["value"], "due_date": due.parts["value"],
                                    "total": cents / 100, "currency": ctx.currency, "items": []}, None, "invoice"))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model", default="models/tiny-extract")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    parser.add_argument("--failures", type=int, default=0, help="print this many wrong fields of each set")
    parser.add_argument("--only", default="seen,templates,schemas,handwritten")
    parser.add_argument("--extract-args", default="", help="further options of `pawl extract`, for example \"--threshold 0.9\"")
    parser.add_argument("--handwritten", help="the hand-written texts (default: eval/handwritten.jsonl of the model)")
    options = parser.parse_args()
    sets = {"seen": lambda: generated(options.seed, options.count),
            "templates": lambda: generated(options.seed + 1, options.count, held=True),
            "schemas": lambda: generated(options.seed + 2, options.count, domains=sorted(gen.HELD_OUT_DOMAINS)),
            "shown": lambda: shown(options.seed),
            "handwritten": lambda: handwritten(options.handwritten or Path(options.model) / "eval" / "handwritten.jsonl")}
    names = {"seen": "seen templates, new values", "templates": "held-out templates", "schemas": "held-out schemas", "shown": "texts of the README", "handwritten": "hand-written texts"}
    results = {}
    for name in options.only.split(","):
        began, failures = time.time(), []
        examples = sets[name]()
        results[names[name]] = result = score(extract(options.pawl, options.model, examples, more=options.extract_args.split()), examples, failures)
        print(f"{names[name]:28} fields {result['field_accuracy']:.3f} of {result['fields']}, not null {result['stated_field_accuracy']:.3f}, "
              f"whole records {result['record_accuracy']:.3f}  ({time.time() - began:.0f} s)", flush=True)
        if name == "shown":
            print("   whole records of 20:", result["records_by_schema"])
        random.Random(0).shuffle(failures)
        for tag, text, path, want, got in failures[:options.failures]:
            print(f"   {tag} {'.'.join(path)}: want {want!r}, got {got!r}\n      {text[:400]!r}")
    if options.out:
        command = f"python scripts/tiny_extract/evaluate.py --model {options.model} --count {options.count} --seed {options.seed} --out {options.out}"
        Path(options.out).write_text(json.dumps({"command": command, "decoding": "greedy, constrained by the schema"} | results, indent=2) + "\n")


if __name__ == "__main__":
    main()
