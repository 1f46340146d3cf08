"""Makes training examples: a text, a schema, the record, and the bytes the model is scored on.

    python gen.py show --count 5 [--domain invoice]     print samples
    python gen.py examples --out schemas/examples       write the named schemas as JSON Schema files
    python gen.py list                                  count schemas, slots and phrasings
"""

import argparse
import importlib
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import values as V
import words as W
from grammar import DOMAINS, Domain, S, Writer, encode_record, is_held_out, named_layout, object_schema, random_layout

for module in ("domains_main", "domains_more", "domains_other", "domains_extra"):
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name != module:
            raise

from catalogue import Records, mixed_domain
from kept_texts import is_kept
from shapes import ShapeWriter

HELD_OUT_DOMAINS = {"vet_visit", "rental", "donation", "match", "lost_item"}
BOS, EOS, PAD = range(3)
DECISION = 3                                         # weight of a token where the model decides, against one it copies on
MAIN = ["contact", "invoice", "event", "product", "ticket", "job", "booking", "measurement"]
DRAWN = MAIN + ["invoice"] * 4                       # invoices are what everybody tries first
TRAIN_DOMAINS = [name for name in DOMAINS if name not in HELD_OUT_DOMAINS]


@dataclass
class Example:
    text: str
    schema: dict
    record: dict
    domain: str
    output: bytes
    mask: bytes
    held_paths: list      # paths of the fields that a held-out phrasing said
    source: tuple = ()    # the domain and the writer, for further questions about the same text


def free_domain(rng) -> Domain:
    """A domain made up on the spot: random key words, generic phrasings. Teaches to match keys the model never saw."""
    kinds = [V.PERSON, V.CITY, V.COMPANY, V.CODE, V.PRODUCT, V.TITLE, V.EMAIL, V.PHONE, V.Integer(0, 500), V.Decimal(0, 900), V.Date(), V.Time(),
             V.CLAUSE, V.Text(lambda c: V.invented(c.rng)), V.Text(lambda c: c.rng.choice(W.NOUN)), V.Flag(), V.Strings(lambda c: c.rng.choice(W.NOUN)),
             V.Text(lambda c: " ".join(V.invented(c.rng) for _ in range(c.rng.randint(1, 3)))), V.Duration(), V.URL]
    slots, seen = {}, set()
    for _ in range(rng.randint(2, 8)):
        word = rng.choice(W.NOUN) if rng.random() < 0.6 else rng.choice(W.THING) if rng.random() < 0.6 else V.invented(rng, 2, 3).lower()
        if rng.random() < 0.35:
            word = rng.choice(W.ADJ + W.NOUN) + "_" + word
        if word in seen:
            continue
        seen.add(word)
        slots[word] = S(word, rng.choice(kinds), word, word.replace("_", " ").capitalize())
    return Domain("free", {s.name.replace("_", ""): rename(s) for s in slots.values()})


def rename(slot):
    slot.name = slot.name.replace("_", "")
    return slot


def make(rng, held=False, domains=None, named=None) -> Example:
    """One example. `named`: True for the domain's own schema, False for a variant, None for either."""
    while True:
        if domains is None and rng.random() < 0.05:
            domain = free_domain(rng)
            layout = random_layout(rng, domain)
        else:
            names = domains or (DRAWN if rng.random() < 0.8 else TRAIN_DOMAINS)
            domain = DOMAINS[rng.choice(names)]
            own = rng.random() < 0.5 if named is None else named
            layout = named_layout(domain) if own else random_layout(rng, domain)
        asked = list(dict.fromkeys(f[1] for f in layout.fields))
        missing = rng.choice([0, 0.1, 0.2, 0.3, 0.4, 0.6])
        nullables = {f[1] for f in layout.fields if f[3].get("type") == "array" or "null" in f[3].get("type", "") or None in f[3].get("enum", [])}
        present = [n for n in asked if n not in nullables or rng.random() >= missing]
        absent = [n for n in asked if n not in present]
        if not present:
            continue
        taken = {path[-1] for path, *_ in layout.fields}
        extra = [n for n in domain.slots if n not in asked and not taken & {k for keys in domain.slots[n].keys.values() for k in keys}
                 and not clashes(domain, n, asked)]
        if extra and rng.random() < 0.3:
            present = present + rng.sample(extra, min(len(extra), rng.randint(1, 3)))
        writer = Writer(rng, domain, held)
        text = writer.text(present, absent)
        if len(text.encode()) > 800:
            continue
        return fill(domain, writer, layout, text)


def fill(domain, writer, layout, text) -> Example:
    """The record of a layout for a text that has been written."""
    shared = writer.values
    record = layout.record(shared)
    # The same fact may have been said by another slot (a city as part of an address).
    for path, slot, part, schema in layout.fields:
        if slot not in shared and schema.get("type") != "array":
            for other, value in shared.items():
                found = [p for p, keys in domain.slots[other].keys.items() if path[-1] in keys and p in value.parts and p != "currency"]
                if found and domain.slots[other].kind.schemas[found[0]].get("type") == domain.slots[slot].kind.schemas[part].get("type"):
                    set_path(record, path, value.parts[found[0]])
    # A currency key stands for every amount of the text: it is known as soon as one amount is said.
    for path, slot, part, schema in layout.fields:
        if part == "currency" and slot not in shared and any("currency" in v.parts for v in shared.values()):
            set_path(record, path, writer.ctx.currency)
    schema = layout.schema()
    output, mask = encode_record(record, schema)
    held_paths = [tuple(p) for p, slot, *_ in layout.fields if slot in writer.said_held]
    example = Example(text, schema, record, domain.name, output, mask, held_paths)
    example.source = (domain, writer)
    return example


def group(rng, count) -> list[Example]:
    """One schema and several texts for it. Training puts them into one sequence, so that the schema is read once."""
    roll = rng.random()
    if roll < 0.55:
        domain, own = mixed_domain(rng), False
    elif roll < 0.58:
        domain, own = free_domain(rng), False
    else:
        domain, own = DOMAINS[rng.choice(DRAWN if rng.random() < 0.5 else TRAIN_DOMAINS)], rng.random() < 0.3
    layout = named_layout(domain) if own else random_layout(rng, domain)
    lists = [f[1] for f in layout.fields if isinstance(domain.slots[f[1]].kind, Records)]
    bare = bool(lists) and rng.random() < 0.3       # the list itself is what is asked for
    if bare:
        layout.fields = [f for f in layout.fields if f[1] == lists[0]]
    if rng.random() < 0.1:
        describe(rng, domain, layout)
    asked = list(dict.fromkeys(f[1] for f in layout.fields))
    needed = {f[1] for f in layout.fields if f[3].get("type") != "array" and "null" not in f[3].get("type", "") and None not in f[3].get("enum", [])}
    taken = {path[-1] for path, *_ in layout.fields}
    extra = [n for n in domain.slots if n not in asked and not taken & {k for keys in domain.slots[n].keys.values() for k in keys}
             and not clashes(domain, n, asked)]
    out, tries = [], 0
    while len(out) < count and tries < 12:
        tries += 1
        missing = rng.choice([0, 0, 0.1, 0.2, 0.3, 0.45, 0.6])
        present = [n for n in asked if n in needed or rng.random() >= missing]
        absent = [n for n in asked if n not in present]
        if extra and rng.random() < 0.35:
            present = present + rng.sample(extra, min(len(extra), rng.randint(1, 3)))
        if not present:
            continue
        writer = ShapeWriter(rng, domain, asked, present)
        text = writer.text(present, absent)
        if len(text.encode()) > 800 or is_kept(text):
            continue
        out.append(fill(domain, writer, layout, text))
        if bare:
            (key,), _, _, schema = layout.fields[0]
            example = out[-1]
            example.schema, example.record = schema, example.record[key]
            example.output, example.mask = encode_record(example.record, schema)
    return out or group(rng, count)


def describe(rng, domain, layout):
    """Gives some of the fields a description: a label or the plain words of another key."""
    for number, (path, name, part, schema) in enumerate(layout.fields):
        if rng.random() < 0.6:
            slot = domain.slots[name]
            words = rng.choice([rng.choice(slot.labels).lower(), rng.choice(slot.keys[part]).replace("_", " ")])
            text = rng.choice(["{}", "the {}", "The {}", "the {} in the text", "{} or null"]).format(words)
            layout.fields[number] = (path, name, part, dict(schema) | {"description": text})


def view(schema) -> str:
    """The schema as the prompt shows it: `name;total:number;status:new|paid;items[{product;quantity:integer}]`."""
    return ";".join(key + shown(sub) for key, sub in schema["properties"].items()) if "properties" in schema else shown(schema)


def shown(schema) -> str:
    kind = schema.get("type", "")
    kind = next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else kind
    note = f"({schema['description']})" if "description" in schema else ""
    if "enum" in schema:
        return ":" + "|".join(str(m) for m in schema["enum"] if m is not None) + note
    if kind == "object":
        return "{" + ";".join(key + shown(sub) for key, sub in schema["properties"].items()) + "}" + note
    if kind == "array":
        return "[" + shown(schema["items"]) + "]" + note
    kind = schema.get("format", "pattern" if "pattern" in schema else "") if kind == "string" else kind
    return (":" + kind if kind else "") + note


def clashes(domain, name, asked):
    """An unasked fact is left out where a reader could take it for an asked one that is missing."""
    kind = type(domain.slots[name].kind)
    return kind in (V.Range, V.Dates, V.Times) and any(type(domain.slots[a].kind) in (V.Money, V.Date, V.Time) for a in asked)


def set_path(record, path, value):
    for key in path[:-1]:
        record = record[key]
    record[path[-1]] = value


def scored(example, encode):
    """Tokens of a record, and their weights: 0 for those that the grammar forces.

    A token is scored if the model chooses its first byte or a later one; the first token after forced ones counts DECISION times,
    because there the model decides what to say: null, which name.
    """
    output = encode(example.output.decode())
    chosen = [int(any(example.mask[begin:end])) for _, begin, end in output]
    return [token for token, _, _ in output], [DECISION if now and not before else now for before, now in zip([0] + chosen, chosen)]


def sequence(rng, count, encode):
    """Token ids, loss mask, positions and part numbers of one schema with several texts and their records.

    Part 0 is the schema; every text with its record sees the schema and itself only, and its positions follow the schema's.
    `encode` gives the tokens of a text with their byte ranges.
    """
    examples = group(rng, count)
    fields = view(examples[0].schema) if rng.random() < 0.98 else ""       # as for a schema that is too long to be shown
    ids = [BOS] + [token for token, _, _ in encode(fields + "\n")]
    start = len(ids)
    mask, places, parts = [0] * start, list(range(start)), [0] * start
    for number, example in enumerate(examples):
        text = [token for token, _, _ in encode(example.text + "\n")]
        output, weights = scored(example, encode)
        length = len(text) + len(output) + 1
        ids += text + output + [EOS]
        mask += [0] * len(text) + weights + [0]
        places += range(start, start + length)
        parts += [number + 1] * length
    return ids, mask, places, parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show")
    show.add_argument("--count", type=int, default=5)
    show.add_argument("--seed", type=int, default=0)
    show.add_argument("--domain")
    show.add_argument("--held", action="store_true")
    examples = commands.add_parser("examples")
    examples.add_argument("--out", required=True)
    examples.add_argument("--names", default=" ".join(MAIN + ["recipe", "shipment", "appointment", "flight", "review", "order"]))
    commands.add_parser("list")
    options = parser.parse_args()
    if options.command == "show":
        rng = random.Random(options.seed)
        for _ in range(options.count):
            for example in [make(rng, options.held, [options.domain])] if options.domain or options.held else group(rng, 1):
                print(f"--- {example.domain}: {view(example.schema)}\n{example.text}\n>>> {example.output.decode()}")
    elif options.command == "examples":
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.names.split():
            schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name.replace("_", " ")} | named_layout(DOMAINS[name]).schema()
            (folder / f"{name}.json").write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
    else:
        patterns = [p for d in DOMAINS.values() for s in d.slots.values() for p in s.patterns + [q for qs in s.says.values() for q in qs]]
        patterns += [p for d in DOMAINS.values() for p in d.multi + d.frames]
        print(f"{len(DOMAINS)} schemas ({len(TRAIN_DOMAINS)} trained), {sum(len(d.slots) for d in DOMAINS.values())} slots, {len(patterns)} phrasings, "
              f"{sum(map(is_held_out, patterns))} held out")


if __name__ == "__main__":
    main()
