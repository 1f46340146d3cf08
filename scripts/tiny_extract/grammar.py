"""The clause grammar: patterns, slots, domains and how a text with its record is put together.

Pattern language
    {}          the slot's own value              {slot}     another slot of the domain (in multi-slot patterns)
    {~kind}     a random value that is not asked  [a|b|]     one of the alternatives
    <...>       kept only if its slots are present, and then most of the time
    leading +   a phrase that is attached to a sentence; without it the pattern is a whole sentence
    leading $   a block that stands at the end of the text (a signature)

A pattern is held out as a whole when a hash of its text says so: training never sees it, the "held-out templates"
evaluation uses nothing else where it can.
"""

import copy
import hashlib
import json
import random
import re
from dataclasses import dataclass, field
from functools import lru_cache

import values as V
import words as W

HELD_OUT_PERCENT = 15


@lru_cache(maxsize=None)
def is_held_out(pattern: str) -> bool:
    return hashlib.md5(pattern.encode()).digest()[0] * 100 // 256 < HELD_OUT_PERCENT


@dataclass
class Slot:
    name: str
    kind: V.Kind
    keys: dict            # part name -> list of key names, the first one canonical
    labels: list          # how a form names it
    patterns: list
    says: dict            # member -> patterns without a value (enums and booleans)


def S(name, kind, keys, labels, *patterns, says=None):
    """A slot. `keys` is "key synonym ..." for one part, or "part:key|synonym part:key" for several."""
    parts = list(kind.schemas)
    if ":" in keys:
        table = {item.split(":")[0]: item.split(":")[1].split("|") for item in keys.split()}
    else:
        table = {parts[0]: keys.split()}
    return Slot(name, kind, table, labels.split("|"), list(patterns), says or {})


@dataclass
class Domain:
    name: str
    slots: dict
    frames: list = field(default_factory=list)      # sentences without a value, to which phrases can be attached
    multi: list = field(default_factory=list)       # patterns over several slots
    opens: list = field(default_factory=list)
    headers: list = field(default_factory=list)
    noise: list = field(default_factory=list)
    nest: dict = field(default_factory=dict)        # group key -> {slot name: key inside the group}
    canonical: list = field(default_factory=list)   # slots of the named schema, in order
    required: list = field(default_factory=list)    # slots that are never missing in the named schema


DOMAINS: dict[str, Domain] = {}


def D(name, slots, canonical="", required="", **more):
    domain = Domain(name, {slot.name: slot for slot in slots}, **more)
    domain.canonical = canonical.split() or [slot.name for slot in slots]
    domain.required = required.split() or domain.canonical[:1]
    DOMAINS[name] = domain


RANDOM_KINDS = {
    "person": lambda c: V.PERSON.make(c).surface, "city": V.city, "company": V.company, "phone": V.phone, "email": V.email, "code": V.code, "product": V.product,
    "venue": V.venue, "url": V.url, "noun": lambda c: c.rng.choice(W.NOUN), "adj": lambda c: c.rng.choice(W.ADJ),
    "first": V.first_name, "verb": lambda c: c.rng.choice(W.VERB), "int": lambda c: str(c.rng.randint(2, 99)),
    "date": lambda c: V.Date().make(c).surface, "time": lambda c: V.Time().make(c).surface,
    "money": lambda c: V.Money(2, 5000).make(c).surface, "clause": V.clause_text, "day": lambda c: c.rng.choice(V.DAYS),
    "thing": lambda c: c.rng.choice(W.THING), "role": V.role_text, "year": lambda c: str(c.rng.randint(1950, 2025)),
}

OPTIONAL = re.compile(r"<([^<>]*)>")
CHOICE = re.compile(r"\[([^\[\]]*)\]")
PLACE = re.compile(r"\{(~?[a-z_]*)\}")
GREETINGS = ["Hi {~first},", "Hello,", "Hi,", "Hello {~first},", "Dear team,", "Dear {~first},", "Good morning,", "Hi all,", "Hey,", "Hi there,",
             "Dear Sir or Madam,", "Good afternoon,", "To whom it may concern,", "Hey {~first},", "Dear colleagues,", "Hello everyone,"]
CLOSINGS = ["Thanks!", "Thank you.", "Best regards", "Kind regards,", "Thanks in advance.", "See you soon.", "Let me know if you need anything else.",
            "Cheers", "Many thanks", "Looking forward to hearing from you.", "Please confirm.", "Have a nice day!", "All the best", "Sincerely,",
            "Regards,", "Please let me know if that works.", "Talk soon", "Please get back to me.", "That is all for now.", "More details to follow."]
DISTRACTORS = [
    "My colleague {~first} is on holiday this week.", "I will be out of the office on {~day}.", "Please ignore my last message.",
    "By the way, the {~noun} looks {~adj}.", "We talked about this on {~day}.", "As discussed, nothing else changes.",
    "The {~noun} is still {~adj}.", "I hope the {~noun} goes well.", "{~first} says hello.", "It has been a {~adj} {~noun}.",
    "We moved to this system {~int} years ago.", "About {~int} people asked the same thing.", "This replaces the earlier note.",
    "Nothing else needs to be done.", "I am writing from my phone, so please excuse typos.", "The weather was {~adj} all week.",
    "You can ignore the attachment.", "The old one was {~adj}.", "See the attached file for the rest.", "(sent from my phone)",
    "Somebody {~verb} the {~noun} again.", "We have done this {~int} times before.", "That is about {~int} percent more than before.",
    "I have copied {~first} on this.", "Our office is closed on {~day}.", "The {~thing} in the corner is not part of this.",
    "Sorry for the late reply.", "I hope you are well.", "I hope this message finds you well.", "No rush on the rest.", "Long time no see!",
    "P.S. The {~noun} was great.", "This was last checked {~int} days ago.", "The form has {~int} pages.", "Room for improvement remains.",
]


def typo(rng, text: str) -> str:
    """One slip in the fixed words of a pattern; values are put in afterwards and stay intact."""
    spots = [i for i in range(1, len(text) - 2) if text[i].isalpha() and text[i + 1].isalpha() and text[i - 1].isalpha()]
    if not spots:
        return text
    i = rng.choice(spots)
    return rng.choice([text[:i] + text[i + 1:], text[:i] + text[i + 1] + text[i] + text[i + 2:], text[:i] + text[i] + text[i:]])


class Writer:
    """Writes one text. `held` asks for held-out patterns; `used` records which slots were said by one."""

    def __init__(self, rng, domain: Domain, held: bool):
        self.rng, self.domain, self.held = rng, domain, held
        self.ctx = V.Context(rng)
        self.lower = rng.random() < 0.04
        self.typos = 0.25 if rng.random() < 0.04 else 0.0
        self.values: dict[str, V.Value] = {}
        self.said_held: set[str] = set()

    def allowed(self, patterns):
        if self.held:
            held = [p for p in patterns if is_held_out(p)]
            return held or [p for p in patterns if not is_held_out(p)]
        return [p for p in patterns if not is_held_out(p)]

    def make(self, slot: Slot):
        value = slot.kind.make(self.ctx)
        if self.lower:
            surface = value.surface
            for part, item in value.parts.items():
                if "enum" not in slot.kind.schemas[part]:
                    value.parts[part] = lower_copied(item, surface)
            value.surface = surface.lower()
        self.values[slot.name] = value

    def literal(self, text):
        if self.typos and self.rng.random() < self.typos:
            text = typo(self.rng, text)
        return text.lower() if self.lower else text

    def expand(self, pattern, own=None, pending=()):
        """The pattern as text, and the slots it said; None if a slot it needs is not there."""
        rng = self.rng

        def optional(match):
            names = [n for n in PLACE.findall(match[1]) if n and not n.startswith("~")]
            keep = all(n in pending for n in names) and (rng.random() < 0.85 if names else rng.random() < 0.5)
            return match[1] if keep else ""

        while "<" in pattern and OPTIONAL.search(pattern):
            pattern = OPTIONAL.sub(optional, pattern)
        while "[" in pattern and CHOICE.search(pattern):
            pattern = CHOICE.sub(lambda m: rng.choice(m[1].split("|")), pattern)
        pieces, said, position = [], [], 0
        if not pattern.startswith("{") and not self.lower:
            pattern = pattern[:1].upper() + pattern[1:] if own != "phrase" else pattern
        for match in PLACE.finditer(pattern):
            pieces.append(self.literal(pattern[position:match.start()]))
            name = match[1]
            if name.startswith("~"):
                text = RANDOM_KINDS[name[1:]](self.ctx)
                pieces.append(text.lower() if self.lower else text)
            else:
                if name not in pending:
                    return None
                said.append(name)
                pieces.append(self.values[name].surface)
            position = match.end()
        pieces.append(self.literal(pattern[position:]))
        return "".join(pieces), said

    def say(self, slot: Slot, phrase_ok: bool):
        """One slot by itself -> (text, is_phrase)."""
        rng, member = self.rng, None
        options = slot.patterns
        if slot.says:
            member = self.values[slot.name].parts["value"]
            member = {True: "yes", False: "no"}.get(member, member) if isinstance(member, bool) else member
            said = slot.says.get(member, [])
            if said and (not options or rng.random() < 0.75):
                options = said
        options = self.allowed([p for p in options if phrase_ok or not p.startswith("+")])
        if rng.random() < 0.12 or not options:
            options = self.allowed(GENERIC if phrase_ok else [p for p in GENERIC if not p.startswith("+")])
        pattern = rng.choice(options)
        if is_held_out(pattern):
            self.said_held.add(slot.name)
        phrase = pattern.startswith("+")
        text = pattern.lstrip("+ ") if phrase else pattern
        text = text.replace("{}", "{" + slot.name + "}").replace("LABEL", rng.choice(slot.labels).lower())
        return self.expand(text, "phrase" if phrase else None, [slot.name])[0], phrase

    def prose(self, names):
        rng, domain = self.rng, self.domain
        pending, sentences, tail = list(names), [], []
        multi = self.allowed(domain.multi)
        rng.shuffle(multi)
        if rng.random() < 0.25:
            multi = multi[:0]
        budget = rng.choice([1, 2, 3])
        for pattern in multi:
            if budget == 0:
                break
            result = self.expand(pattern.lstrip("$"), None, pending)
            if result is None or (not pattern.startswith("$") and len(result[1]) < min(2, len(pending))):
                continue
            (tail if pattern.startswith("$") else sentences).append(result[0])
            pending = [n for n in pending if n not in result[1]]
            if is_held_out(pattern):
                self.said_held.update(result[1])
            budget -= 1
        frames = self.allowed(domain.frames)
        if frames and pending and rng.random() < 0.45:
            sentences.insert(0, self.expand(rng.choice(frames), None, names)[0])
        rng.shuffle(pending)
        for name in pending:
            slot = domain.slots[name]
            text, phrase = self.say(slot, bool(sentences))
            if phrase:
                place = rng.randrange(len(sentences)) if rng.random() < 0.3 else len(sentences) - 1
                end = sentences[place][-1:]
                if end in ".!?\n":
                    sentences.append(text[:1].upper() + text[1:] if not self.lower and text[:5].isalpha() else text)
                else:
                    sentences[place] += rng.choice([" ", " ", " ", ", "]) + text
            else:
                sentences.append(text)
        return sentences, tail

    def finish(self, sentences):
        """Joins sentences with the punctuation of some style."""
        rng = self.rng
        style = rng.random()
        if style < 0.8:
            out = []
            for i, text in enumerate(sentences):
                text = text if text[-1:] in ".!?:\n)" else text + ("." if rng.random() < 0.95 else "!")
                out.append(text)
            text = ""
            for sentence in out:
                text += (("\n" if rng.random() < 0.06 else " ") if text and not text.endswith("\n") else "") + sentence
            return text
        separator = rng.choice([", ", "; ", " - ", "\n", "\n", "\n- ", " / ", ". ", "\n* ", ", and ", " | "])
        lead = separator[1:] if separator.startswith("\n") and len(separator) > 1 else ""
        return lead + separator.join(t.rstrip(".") for t in sentences)

    def form(self, names):
        """`Label: value` lines or an inline form."""
        rng, domain = self.rng, self.domain
        colon = rng.choice([": ", ": ", ": ", ": ", " = ", " - ", ":\t", " : ", ":", " "])
        separator = rng.choice(["\n", "\n", "\n", "\n", "; ", ", ", " | ", "\n- ", "\n* "])
        case = rng.random()
        lines = []
        for name in names:
            slot = domain.slots[name]
            labels = self.allowed(slot.labels)
            label = rng.choice(labels or slot.labels)
            if is_held_out(label):
                self.said_held.add(name)
            if rng.random() < 0.12:
                label = slot.keys[list(slot.keys)[0]][0].replace("_", rng.choice([" ", " ", "_"]))
            label = label.upper() if case < 0.08 else label.lower() if case < 0.25 else label
            lines.append(self.literal(label) + colon + self.values[name].surface)
        lead = separator[1:] if separator in ("\n- ", "\n* ") else ""
        return lead + separator.join(lines)

    def blank_line(self, name):
        label = self.rng.choice(self.domain.slots[name].labels)
        blank = self.rng.choice(["-", "n/a", "N/A", "none", "unknown", "--", "not given", "", "tbd", "?", "not specified", "TBC"])
        return f"{self.literal(label)}: {blank}"

    def text(self, present, absent):
        """The whole text, saying every slot of `present`."""
        rng, domain = self.rng, self.domain
        for name in present:
            self.make(domain.slots[name])
        names = list(present)
        style = rng.random()
        noise = DISTRACTORS if self.held else DISTRACTORS
        extra = self.allowed(domain.noise) * 3 + noise
        if style < 0.2:
            if rng.random() < 0.5:
                rng.shuffle(names)
            text = self.form(names)
            blanks = [n for n in absent if rng.random() < 0.3]
            for name in blanks:
                text += ("\n" if "\n" in text else "; ") + self.blank_line(name)
            if rng.random() < 0.4 and domain.headers:
                text = self.expand(rng.choice(domain.headers))[0] + "\n" + text
            if rng.random() < 0.25:
                text += "\n" + self.expand(rng.choice(extra))[0]
            return text
        if rng.random() < 0.4:
            rng.shuffle(names)
        if style < 0.32 and len(names) > 2:
            cut = rng.randint(1, len(names) - 1)
            said, tail = self.prose(names[:cut])
            text = self.finish(said) if said else ""
            block = self.form(names[cut:])
            text = f"{text}\n{block}" if rng.random() < 0.75 else f"{block}\n{text}"
            text += "\n" + "\n".join(tail) if tail else ""
            return text.strip("\n")
        said, tail = self.prose(names)
        count = rng.choice([0, 0, 0, 0, 1, 1, 2])
        for _ in range(count):
            place = rng.randint(0, len(said))
            said.insert(place, V.random_sentence(self.ctx) if rng.random() < 0.3 else self.expand(rng.choice(extra))[0])
            if self.lower:
                said[place] = said[place].lower()
        opens = self.allowed(domain.opens)
        if opens and rng.random() < 0.25:
            said.insert(0, self.expand(rng.choice(opens))[0])
        text = self.finish(said)
        if rng.random() < 0.15:
            text = self.expand(rng.choice(GREETINGS))[0] + rng.choice(["\n", "\n\n", " "]) + text
        if tail:
            text += rng.choice(["\n\n", "\n"]) + "\n".join(tail)
        elif rng.random() < 0.12:
            text += rng.choice(["\n\n", "\n", " "]) + self.expand(rng.choice(CLOSINGS))[0]
        return text


GENERIC = ["the LABEL is {}", "LABEL is {}", "LABEL: {}", "+ LABEL {}", "+ (LABEL: {})", "the LABEL will be {}", "+ with LABEL {}", "as LABEL put {}",
           "LABEL {}", "the LABEL was {}", "{} is the LABEL", "+ LABEL: {}", "+ and the LABEL is {}", "our LABEL is {}", "we have {} as LABEL"]


def lower_copied(item, surface):
    if isinstance(item, V.Raw) or item is None:
        return item
    if isinstance(item, str):
        return item.lower() if item in surface else item
    if isinstance(item, list):
        return [lower_copied(i, surface) for i in item]
    if isinstance(item, dict):
        return {k: lower_copied(v, surface) for k, v in item.items()}
    return item


# --- schemas -------------------------------------------------------------------------------------------------------

def nullable(schema):
    schema = copy.deepcopy(schema)
    if "enum" in schema:
        schema["enum"] = schema["enum"] + [None]
    elif schema.get("type") not in ("array", "object"):
        schema["type"] = [schema["type"], "null"]
    return schema


def object_schema(properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def camel(key):
    first, *rest = key.split("_")
    return first + "".join(w.capitalize() for w in rest)


@dataclass
class Layout:
    """Which keys a record has: [(path, slot name, part name, schema)] in order."""
    fields: list

    def schema(self):
        root = {}
        for path, _, _, schema in self.fields:
            level = root
            for key in path[:-1]:
                level = level.setdefault(key, object_schema({}))["properties"]
            level[path[-1]] = schema
        return close(object_schema(root))

    def record(self, values):
        root = {}
        for path, slot, part, schema in self.fields:
            level = root
            for key in path[:-1]:
                level = level.setdefault(key, {})
            missing = [] if schema.get("type") == "array" else None
            level[path[-1]] = values[slot].parts[part] if slot in values else missing
        return root


def close(schema):
    if schema.get("type") == "object":
        schema["required"] = list(schema["properties"])
        for sub in schema["properties"].values():
            close(sub)
    return schema


def named_layout(domain: Domain) -> Layout:
    """The domain's own schema: canonical keys and order; every field that is not required may be null."""
    fields, done = [], set()
    groups = {slot: (group, key) for group, table in domain.nest.items() for slot, key in table.items()}
    names = []
    for name in domain.canonical:        # members of a group stand together, at the place of the first of them
        if name in names:
            continue
        names += [n for n in domain.canonical if n in groups and groups[n][0] == groups[name][0]] if name in groups else [name]
    for name in names:
        slot = domain.slots[name]
        for part, keys in slot.keys.items():
            schema = slot.kind.schemas[part]
            schema = copy.deepcopy(schema) if name in domain.required else nullable(schema)
            path = [keys[0]]
            if name in groups:
                path = [groups[name][0], groups[name][1] or keys[0]]
            if tuple(path) not in done:
                fields.append((path, name, part, schema))
                done.add(tuple(path))
    return Layout(fields)


def random_layout(rng, domain: Domain, only=None) -> Layout:
    """A variant: some slots (of `only`, if given), in some order, under synonyms, flat or nested."""
    names = [n for n in domain.slots if only is None or n in only]
    count = min(len(names), rng.choice([2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10]))
    chosen = rng.sample(names, count)
    if rng.random() < 0.5:
        chosen.sort(key=names.index)
    style = rng.random()
    synonym = rng.random() * 0.9
    groups = {}
    for group, table in domain.nest.items():
        if rng.random() < 0.6:
            groups |= {slot: (group, key) for slot, key in table.items()}
    ordered = []
    for name in chosen:
        if name in ordered:
            continue
        ordered += [n for n in chosen if n in groups and groups[n][0] == groups[name][0]] if name in groups else [name]
    fields, done = [], set()

    def styled(key):
        if style < 0.1:
            return camel(key)
        if style < 0.14:
            return key.replace("_", " ").capitalize()
        if style < 0.16:
            return key.replace("_", "-")
        return key

    for name in ordered:
        slot = domain.slots[name]
        parts = list(slot.keys.items())
        if len(parts) > 1 and rng.random() < 0.2 and all(p != "currency" for p, _ in parts):
            parts = rng.sample(parts, rng.randint(1, len(parts)))
        elif "currency" in slot.keys and rng.random() < 0.25:
            parts = [p for p in parts if p[0] != "currency"]
        own_group = [slot.name] if len(parts) > 1 and name not in groups and rng.random() < 0.2 else []
        for part, keys in parts:
            key = rng.choice(keys) if rng.random() < synonym else keys[0]
            path = own_group + [key]
            if own_group and part in ("amount", "currency", "min", "max", "start", "end", "street", "city", "postal_code", "country"):
                path = own_group + [part]
            if name in groups:
                path = [groups[name][0], groups[name][1] or key]
            path = [styled(k) for k in path]
            if tuple(path) in done or any(tuple(path[:n]) in done for n in range(1, len(path))):
                continue
            if len(path) == 1 and any(f[0][0] == path[0] for f in fields):
                continue
            schema = slot.kind.schemas[part]
            fields.append((path, name, part, nullable(schema) if rng.random() < 0.7 else copy.deepcopy(schema)))
            done.add(tuple(path))
    return Layout(fields)


# --- records as bytes ----------------------------------------------------------------------------------------------

def encode(item, schema, out: bytearray, mask: bytearray):
    """Compact JSON; `mask` marks what the model chooses (the grammar forces the rest)."""

    def put(text, chosen):
        raw = text.encode()
        out.extend(raw)
        mask.extend(bytes([chosen]) * len(raw))

    kinds = schema.get("type")
    may_be_null = "null" in kinds if isinstance(kinds, list) else None in schema.get("enum", [])
    if isinstance(item, dict):
        put("{", 0)
        for i, (key, value) in enumerate(item.items()):
            put(("," if i else "") + quote(key) + ":", 0)
            encode(value, schema["properties"][key], out, mask)
        put("}", 0)
        return
    if isinstance(item, list):
        put("[", 0)
        first = len(mask)
        for place, value in enumerate(item):
            if place:
                put(",", 1)
            encode(value, schema["items"], out, mask)
        put("]", 1)
        mask[first] = 1     # the first item or the end: the model decides
        return
    if item is None:
        put("null", 1)
        return
    if isinstance(item, bool):
        put("true" if item else "false", 1)
        return
    if isinstance(item, V.Raw) or isinstance(item, int):
        put(str(item), 1)
        mark_next.add(len(out))     # the byte after a number says that it is over
        return
    start = len(mask)
    put(quote(item), 1)
    if not may_be_null and "enum" not in schema:
        mask[start] = 0


mark_next: set[int] = set()


def quote(text: str) -> str:

    return json.dumps(text, ensure_ascii=False)


def encode_record(record, schema):
    mark_next.clear()
    out, mask = bytearray(), bytearray()
    encode(record, schema, out, mask)
    for place in mark_next:
        if place < len(mask):
            mask[place] = 1
    return bytes(out), bytes(mask)
