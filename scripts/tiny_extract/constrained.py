"""Greedy decoding under a schema, field by field: structure is forced, the model chooses values. Mirrors the engine.

A walk over a schema is a Python generator: it yields the set of bytes that may come next (a bytes object) and receives the
byte that was taken. Where only one byte is possible the model is not asked.
"""

import json

import torch

from model import EOS, Decoder

DIGITS = b"0123456789"
STRING = bytes(b for b in range(0x20, 256) if b not in (0xC0, 0xC1) and b < 0xF5)


def literal(text: bytes):
    for byte in text:
        yield bytes([byte])


def walk_choice(members: list[bytes]):
    """One of several JSON texts."""
    place = 0
    while True:
        nexts = {m[place] for m in members if len(m) > place}
        if not nexts:
            return
        taken = yield bytes(sorted(nexts))
        members = [m for m in members if len(m) > place and m[place] == taken]
        place += 1


def walk_string(schema):
    taken = yield b'"'
    assert taken == 0x22
    shape = {"date": "dddd-dd-dd"}.get(schema.get("format"))
    if shape is None and schema.get("pattern", "").startswith("^[0-2][0-9]:"):
        shape = "tt:mm"
    if shape:
        for place, kind in enumerate(shape):
            if kind == "d":
                yield DIGITS
            elif kind == "t":
                yield b"012" if place == 0 else DIGITS
            elif kind == "m":
                yield b"012345" if place == 3 else DIGITS
            else:
                yield kind.encode()
        yield b'"'
        return
    more, length = 0, 0
    while True:
        if more:
            taken, more = (yield bytes(range(0x80, 0xC0))), more - 1
            continue
        allowed = bytes(b for b in STRING if not 0x80 <= b < 0xC0)
        taken = yield (allowed if length < 200 else b'"')
        length += 1
        if taken == 0x22:
            return
        if taken == 0x5C:
            taken = yield b'"\\/bfnrt'
        elif taken >= 0xC2:
            more = 1 if taken < 0xE0 else 2 if taken < 0xF0 else 3


def walk_number(schema, follow: bytes):
    """Returns the byte after the number, which has been taken already."""
    integer = "integer" in schema.get("type", ())
    sign = b"" if schema.get("minimum", -1) >= 0 else b"-"
    taken = yield sign + DIGITS
    if taken == 0x2D:
        taken = yield DIGITS
    leading_zero, count = taken == 0x30, 1
    while True:
        allowed = follow + (b"" if leading_zero or count > 15 else DIGITS) + (b"" if integer else b".")
        taken = yield allowed
        if taken in follow:
            return taken
        if taken == 0x2E:
            break
        count += 1
    taken = yield DIGITS
    count = 1
    while True:
        taken = yield follow + (DIGITS if count < 10 else b"")
        if taken in follow:
            return taken
        count += 1


def walk(schema, follow: bytes):
    """Yields allowed bytes; returns the byte after the value if it was taken already, else None."""
    if "enum" in schema:
        yield from walk_choice([json.dumps(m, ensure_ascii=False).encode() for m in schema["enum"]])
        return None
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = next(k for k in kinds if k != "null")
    if "null" in kinds:
        starts = {"string": b'"', "integer": b"-0123456789", "number": b"-0123456789", "boolean": b"tf"}[kind]
        starts = starts.replace(b"-", b"") if schema.get("minimum", -1) >= 0 else starts
        taken = yield b"n" + starts
        if taken == 0x6E:
            yield from literal(b"ull")
            return None
        return (yield from replay(walk({**schema, "type": kind}, follow), taken))
    if kind == "string":
        yield from walk_string(schema)
    elif kind == "boolean":
        yield from walk_choice([b"true", b"false"])
    elif kind in ("integer", "number"):
        return (yield from walk_number(schema, follow))
    elif kind == "array":
        yield from literal(b"[")
        yield from walk_array(schema)
    else:
        first = True
        pending = None
        names = list(schema["properties"])
        yield from literal(b"{")
        for place, name in enumerate(names):
            if not first and pending is None:
                yield from literal(b",")
            yield from literal(json.dumps(name, ensure_ascii=False).encode() + b":")
            pending = yield from walk(schema["properties"][name], b"," if place + 1 < len(names) else b"}")
            first = False
        if pending is None:
            yield from literal(b"}")
    return None


def walk_array(schema):
    items, limit = schema["items"], schema.get("maxItems", 16)
    if items["type"] == "string":
        taken = yield b']"'
    elif items["type"] == "object":
        taken = yield b"]{"
    else:
        taken = yield b"]-" + DIGITS
    if taken == 0x5D:
        return
    inner = walk(items, b",]")
    after = yield from replay(inner, taken)
    count = 1
    while True:
        if after is None:
            after = yield (b",]" if count < limit else b"]")
        if after == 0x5D:
            return
        after = yield from walk(items, b",]")
        count += 1


def replay(inner, taken):
    """Continues a walk whose first byte has been taken already."""
    next(inner)
    try:
        allowed = inner.send(taken)
        while True:
            allowed = inner.send((yield allowed))
    except StopIteration as stop:
        return stop.value


@torch.no_grad()
def decode(model, jobs, rows=48):
    """jobs: [(prompt ids, schema)] -> [output bytes]. Rows of similar length share a batch."""
    order = sorted(range(len(jobs)), key=lambda i: len(jobs[i][0]))
    results = [b""] * len(jobs)
    for begin in range(0, len(order), rows):
        group = order[begin:begin + rows]
        prompts = [jobs[i][0] for i in group]
        longest = max(map(len, prompts))
        room = min(model.config.context, longest + 700)
        decoder = Decoder(model, len(group), room)
        ids = torch.full((len(group), longest), 258)
        for row, prompt in enumerate(prompts):
            ids[row, :len(prompt)] = torch.tensor(prompt)
        logits = decoder.step(ids, torch.zeros(len(group), dtype=torch.long))
        rowwise = torch.tensor([len(p) for p in prompts])
        last = logits[torch.arange(len(group)), rowwise - 1]
        walks = [walk(jobs[i][1], b"") for i in group]
        allowed = [next(w) for w in walks]
        outputs = [bytearray() for _ in group]
        position = rowwise.clone()
        live = set(range(len(group)))
        while live:
            step = torch.full((len(group), 1), 258)
            for row in list(live):
                choice = allowed[row]
                if len(choice) == 1:
                    byte = choice[0]
                else:
                    options = torch.frombuffer(bytearray(choice), dtype=torch.uint8).long()
                    byte = int(options[last[row][options].argmax()])
                outputs[row].append(byte)
                step[row, 0] = byte
                try:
                    allowed[row] = walks[row].send(byte)
                except StopIteration:
                    live.discard(row)
                if int(position[row]) + 1 >= room:
                    live.discard(row)
            if not live:
                break
            last = decoder.step(step, position)[:, -1]
            position = position + 1
        for row, i in enumerate(group):
            results[i] = bytes(outputs[row])
    return results
