"""Slots from the catalogue of facts.py: drawn anew for every schema, with choices, lists and records made on the spot."""

import re

import values as V
import words as W
from facts import CATALOGUE, CHOICES, COUNTS, FLAGS, LISTS, MEASURES, RECORDS
from grammar import Domain, Slot
from values import Raw, Value


class Amount(V.Kind):
    """Money as a number alone; the text may leave the currency out."""
    schemas = {"value": {"type": "number"}}

    def make(self, ctx):
        rng = ctx.rng
        value = V.Money(1, 20000).make(ctx)
        raw = value.parts["amount"]
        if rng.random() < 0.5:
            whole, _, cents = raw.partition(".")
            shown = f"{int(whole):,}" if rng.random() < 0.4 else whole
            value.surface = shown + ("." + cents if cents else "")
        return Value(value.surface, {"value": Raw(raw)})


class Written(V.Kind):
    """A date or a time whose key takes any string: as it is written."""

    def __init__(self, kind):
        self.kind = kind

    def make(self, ctx):
        text = self.kind.make(ctx).surface
        return Value(text, {"value": text.removeprefix("the ")})


class Number(V.Kind):
    def __init__(self, low, high, places):
        self.low, self.high, self.places = low, high, places
        self.schemas = {"value": {"type": "number" if places else "integer"}}

    def make(self, ctx):
        rng = ctx.rng
        number = self.low * (self.high / self.low) ** rng.random()
        raw = f"{number:.{rng.randint(0, self.places)}f}"
        shown = f"{int(raw):,}" if "." not in raw and int(raw) > 999 and rng.random() < 0.4 else raw
        return Value(shown, {"value": Raw(raw)})


class Choice(V.Kind):
    """Some members of a pool; each may be written in other words."""

    def __init__(self, rng, pool):
        pool = rng.sample(pool, min(len(pool), rng.choice([2, 3, 3, 4, 4, 5, 6, 7])))
        case = rng.choice([str, str, str, str, str.upper, str.capitalize])
        gap = rng.choice([" ", "_", "_", "-"])
        self.words = {case(words.split("/")[0].replace(" ", gap)): words.split("/") for words in pool}
        self.schemas = {"value": {"enum": list(self.words)} | ({"type": "string"} if rng.random() < 0.5 else {})}

    def make(self, ctx):
        rng = ctx.rng
        member = rng.choice(list(self.words))
        words = self.words[member]
        text = member if rng.random() < 0.3 else words[0] if rng.random() < 0.7 else rng.choice(words)
        return Value(rng.choice([str, str, str, str.capitalize, str.upper])(text), {"value": member})


class Records(V.Kind):
    """A list of objects whose parts are drawn; said as rows, as bullets or in a sentence."""

    def __init__(self, rng, parts):
        self.parts, properties = [], {}
        for part in parts:
            names, _, kind = part.strip().partition("=")
            if kind.endswith("?") and rng.random() < 0.35:
                continue
            names = names.split()
            key = rng.choice(names) if rng.random() < 0.5 else names[0]
            self.parts.append((key, PART_KINDS[kind.rstrip("?")], kind.endswith("?")))
            properties[key] = dict(self.parts[-1][1].schemas["value"])
            if kind.endswith("?"):
                properties[key]["type"] = [properties[key]["type"], "null"]
        self.schemas = {"value": {"type": "array", "items": {"type": "object", "properties": properties, "required": list(properties),
                                                              "additionalProperties": False}}}

    def make(self, ctx):
        rng = ctx.rng
        rows, items = [], []
        blank = rng.random() * 0.5 if rng.random() < 0.5 else 0
        for _ in range(rng.choice([1, 2, 2, 3, 3, 4, 5, 6, 8])):
            made = {key: None if may and rng.random() < blank else kind.make(ctx) for key, kind, may in self.parts}
            rows.append({key: value and value.surface for key, value in made.items()})
            items.append({key: value and value.parts["value"] for key, value in made.items()})
        return Value(self.surface(rng, rows), {"value": items})

    def surface(self, rng, rows):
        keys = [key for key, *_ in self.parts]
        integer = [key for key, kind, _ in self.parts if isinstance(kind, V.Integer)]
        style = rng.random()
        if style < 0.3:
            gap = rng.choice([";", ",", " | ", "\t", " ; ", "|"])
            order = keys if rng.random() < 0.6 else rng.sample(keys, len(keys))
            lines = [gap.join((row[k] or rng.choice(["", "-"])) for k in order) for row in rows]
            head = gap.join(k.replace("_", " ") if rng.random() < 0.5 else k for k in order)
            if gap == "," and any("," in (row[k] or "") for row in rows for k in order):
                lines = [line.replace(",", ";") for line in []] or [";".join((row[k] or "") for k in order) for row in rows]
                head = head.replace(",", ";")
            return "\n" + "\n".join([head] * (rng.random() < 0.75) + lines) + "\n"
        number = integer[0] if integer and rng.random() < 0.8 else None
        rest = [k for k in keys if k != number]
        glue = {k: rng.choice(["{}", "({})", ": {}", "- {}", "@ {}", "at {}", "for {}", "at {} each", "/ {}"]) for k in rest[1:]}
        count = rng.choice(["{} ", "{} x ", "{}x ", "{} × ", "{} of the "])
        trail = rng.choice([" x {}", " ({})", ", {} pcs", " - {}", ": {}", ", qty {}"])
        front = rng.random() < 0.65
        inside = rng.random() < 0.25

        def one(row):
            text = row[rest[0]]
            if number and front:
                text = count.format(row[number]) + text
            elif number:
                text += trail.format(row[number])
            extra = [glue[k].format(row[k]) for k in rest[1:] if row[k]]
            if inside and extra:
                return text + " (" + ", ".join(e.strip("():- ") for e in extra) + ")"
            for e in extra:
                text += ("" if e[0] == ":" else "," if e[0].isalnum() and rng.random() < 0.3 else "") + " " * (e[0] != ":") + e
            return text

        if rng.random() < 0.5 and number:
            for row in rows:
                small = row[number]
                if small and small.isdigit() and int(small) <= 20 and style > 0.7:
                    row[number] = V.SMALL[int(small)]
        texts = [one(row) for row in rows]
        if style < 0.6:
            bullet = rng.choice(["- ", "* ", "", "• ", "# "])
            numbered = rng.random() < 0.15
            return "\n" + "\n".join((f"{i + 1}. " if numbered else bullet) + t for i, t in enumerate(texts)) + "\n"
        if any("," in t for t in texts):
            return "; ".join(texts)
        return V.join_list(rng, texts)


CLASSES = {"party": V.PARTY, "person": V.PERSON, "company": V.COMPANY, "city": V.CITY, "country": V.COUNTRY, "code": V.CODE, "money": Amount(),
           "date": V.Date(), "time": V.Time(), "email": V.EMAIL, "phone": V.PHONE, "url": V.URL, "street": V.STREET, "postcode": V.POSTCODE,
           "product": V.PRODUCT, "title": V.TITLE, "event": V.EVENT, "place": V.VENUE, "role": V.ROLE, "department": V.pick(W.DEPARTMENT),
           "skill": V.pick(W.SKILL), "colour": V.COLOUR, "note": V.CLAUSE}
PART_KINDS = {name: CLASSES[name] for name in ("product", "person", "company", "city", "code", "date", "time", "email", "phone", "role", "event", "title", "note")}
PART_KINDS |= {"count": V.Integer(1, 90, words=False), "price": Amount(), "decimal": Number(1, 900, 2)}
POOLS = {"noun": W.NOUN, "food": W.FOOD, "skill": W.SKILL, "topic": W.TOPIC, "symptom": W.SYMPTOM, "medicine": W.MEDICINE, "genre": W.GENRE,
         "department": W.DEPARTMENT, "language": "English German French Spanish Italian Dutch Polish Greek Danish Czech Arabic".split()}
CODES = ["{L}{L}-{D}{D}{D}{D}", "{L}{L}{D}{D}{D}", "{L}{L}{L}-{D}{D}{D}", "{L}-{D}{D}{D}{D}{D}", "{D}{D}{D}{D}{D}", "{L}{L}{L}{D}{D}{D}{D}", "{D}{D}{D}-{L}{L}",
         "{L}{L}/{D}{D}{D}{D}", "{L}{D}{D}", "{D}{D}-{D}{D}{D}{D}", "{L}{L} {D}{D}{D}", "{L}{D}{L}{D}{L}{D}", "{D}{D}{D}{D}/{D}{D}", "{L}{L}{L}{L}-{D}{D}"]


def code(ctx, form=None):
    if form is None and ctx.rng.random() < 0.4:
        return V.code(ctx)
    form = form or ctx.rng.choice(CODES)
    while "{" in form:
        form = form.replace("{L}", V.letters(ctx.rng, 1), 1).replace("{D}", V.digits(ctx.rng, 1), 1)
    return form


CLASSES["code"] = PART_KINDS["code"] = V.Text(code)


def code_of_form(rng):
    """Codes of any form, or of one that the schema gives as a pattern."""
    if rng.random() < 0.65:
        return CLASSES["code"]
    form = rng.choice(CODES)
    pattern = "^" + re.sub(r"(\{[LD]\})+", lambda m: f"[{'A-Z' if m[1] == '{L}' else '0-9'}]{{{len(m[0]) // 3}}}", re.sub(r"(\{L\})(?=\{D\})|(\{D\})(?=\{L\})", r"\1\2~", form)).replace("~", "") + "$"
    return V.Text(lambda ctx: code(ctx, form), pattern=pattern)


def lines(text):
    for line in text.strip().split("\n"):
        keys, *rest = [part.strip() for part in line.split(" | ")]
        yield keys.split(), rest


def words(text, sep=","):
    return [w.strip() for w in text.split(sep) if w.strip()]


def phrased(patterns):
    """Each phrase stands alone, or follows a sentence."""
    return [p for pattern in patterns for p in ([pattern, "+ " + pattern] if not pattern.startswith("{}") else [pattern])]


def capital(label):
    return label[:1].upper() + label[1:]


def catalogue():
    """Functions that make a slot, each with its class."""
    out = []

    def add(cls, keys, labels, patterns, kind):
        out.append((cls, keys[0], lambda rng: make_slot(cls, keys, labels, patterns, kind(rng))))

    for cls, text in CATALOGUE.items():
        for keys, (labels, says) in lines(text):
            kind = CLASSES[cls]
            if cls == "code":
                add(cls, keys, words(labels), words(says, ";"), code_of_form)
            elif cls in ("date", "time"):
                add(cls, keys, words(labels), words(says, ";"), lambda rng, kind=kind: kind if rng.random() < 0.75 else Written(kind))
            else:
                add(cls, keys, words(labels), words(says, ";"), lambda rng, kind=kind: kind)
    for noun in COUNTS:
        plain = noun.replace("_", " ")
        keys = [noun, noun + "_count", "number_of_" + noun, "num_" + noun, noun[:-1] + "_count", "total_" + noun]
        says = [f"{{}} {plain}", f"for {{}} {plain}", f"with {{}} {plain}", f"there are {{}} {plain}", f"{plain}: {{}}", f"it has {{}} {plain}", f"{{}} {plain} in all",
                f"a total of {{}} {plain}", f"we count {{}} {plain}"]
        add("count", keys, [plain, "no. of " + plain, "number of " + plain], says, lambda rng: V.Integer(2, rng.choice([9, 20, 60, 400])))
    for keys, (units, says, span) in lines(MEASURES):
        low, high, places = map(int, span.split())
        labels = [k.replace("_", " ") for k in keys]
        add("measure", keys, labels, words(says, ";"), lambda rng, a=low, b=high, c=places: Number(a, b, c))
    for keys, (says,) in lines(FLAGS):
        out.append(("flag", keys[0], lambda rng, keys=keys, says=says: flag_slot(keys, *says.split(" ", 1))))
    for keys, (members,) in lines(CHOICES):
        label = keys[0].replace("_", " ")
        says = ["it is {}", "is {}", "marked as {}", "marked {}", "set to {}", "it shows as {}", "still {}", "now {}", "({})", "{} so far", "has been {}", "{}", "it says {}",
                f"{label} {{}}", f"with {label} {{}}", f"the {label} is {{}}", f"{{}} as {label}", "going for {}", "we chose {}"]
        add("choice", keys, [k.replace("_", " ") for k in keys], says, lambda rng, members=members: Choice(rng, words(members)))
    for keys, (cls, says) in lines(LISTS):
        if cls in POOLS:
            kind = V.strings_of(POOLS[cls])
        else:
            kind = V.Strings(lambda c, cls=cls: CLASSES[cls].make(c).parts["value"])
        add("list", keys, [k.replace("_", " ") for k in keys], words(says, ";"), lambda rng, kind=kind: kind)
    for keys, parts in lines(RECORDS):
        label = keys[0].replace("_", " ")
        says = [f"{label}: {{}}", f"the {label} are {{}}", f"we have {{}}", "please send {}", "as follows: {}", "{}", "here they are: {}", f"{label} {{}}", "this is {}", "namely {}"]
        add("records", keys, [k.replace("_", " ") for k in keys], says, lambda rng, parts=parts: Records(rng, parts))
    return out


def slot_name(keys):
    return re.sub("[^a-z]", "x", keys[0])


def make_slot(cls, keys, labels, patterns, kind):
    part = next(iter(kind.schemas))
    slot = Slot(slot_name(keys), kind, {part: keys}, [capital(label) for label in labels], phrased(patterns), {})
    slot.cls = cls
    return slot


def flag_slot(keys, sort, word):
    if sort == "noun":
        plain = word.removeprefix("a ")
        yes = [f"with {word}", f"{plain} included", f"{plain} is included", f"there is {word}", f"{plain} yes", f"it has {word}", f"including {plain}", f"{plain} available"]
        no = [f"without {plain}", f"no {plain}", f"{plain} not included", f"there is no {plain}", f"{plain} is extra", f"it has no {plain}", f"not including {plain}"]
    else:
        yes = [f"it is {word}", f"{word}", f"this is {word}", f"marked as {word}", f"now {word}", f"already {word}"]
        no = [f"it is not {word}", f"not {word}", f"this is not {word}", f"not yet {word}", f"isn't {word}"]
    slot = Slot(slot_name(keys), V.Flag(), {"value": keys}, [capital(k.replace("_", " ")) for k in keys[:2]], [], {"yes": phrased(yes), "no": phrased(no)})
    slot.cls = "flag"
    return slot


JOBS = """baker painter plumber lawyer notary carpenter gardener cook chef pilot guard cleaner tailor broker dealer curator editor translator coach referee tutor mentor
librarian surgeon dentist pharmacist porter cashier clerk treasurer deputy mayor judge minister professor researcher analyst consultant planner trainer recruiter buyer
foreman surveyor welder fitter electrician roofer florist butcher barber stylist model actor producer composer conductor drummer violinist dancer sculptor printer
leader coordinator founder partner trustee guardian neighbour friend colleague successor predecessor replacement substitute helper volunteer""".split()
FIRMS = "agency dealer garage workshop laboratory gallery studio dealer theatre broker printer bakery brewery farm factory foundation association institute union museum operator caterer wholesaler".split()
SPOTS = "harbour airport terminal market village resort port capital county seat camp base yard field studio".split()
SUMS = "bonus loan bid offer toll premium pension grant wage levy surcharge advance bail stake prize stipend allowance markup loss profit saving debt premium".split()
DAYS = "start launch review audit delivery exam trial hearing opening closing installation renewal payment return departure visit harvest handover interview surgery repair".split()
UNITS = {"kg": "kg", "km": "km", "cm": "cm", "m": "m", "minutes": "minutes", "hours": "hours", "days": "days", "percent": "%", "litres": "litres", "mm": "mm", "g": "g", "watts": "W", "years": "years",
         "weeks": "weeks", "pages": "pages", "points": "points", "c": "°C", "mb": "MB", "tons": "tons", "ml": "ml"}


def free_slot(rng):
    """A fact with a key that is put together: roles, sums, days, counts, measures, choices and flags that no list has."""
    c = rng.choice
    noun, plain = c(W.NOUN), c(W.NOUN + W.THING)
    roll = rng.randrange(9)
    if roll < 2:
        word, cls = c([(c(JOBS), "person"), (c(JOBS), "person"), (c(FIRMS), "company"), (c(SPOTS), "city"), (c(["code", "number", "id", "key", "reference"]), "code")])
        keys = [word, word + "_name", c(["main", "first", "new", "former", "local", "chief", noun]) + "_" + word]
        if cls == "code":
            keys = [noun + "_" + word]
        word = keys[-1].replace("_", " ") if rng.random() < 0.3 or cls == "code" else word
        keys = [k for k in keys if word.split()[-1] in k and (" " not in word or k == word.replace(" ", "_"))]
        says = [f"the {word} is {{}}", f"{word} {{}}", f"{{}} is the {word}", f"our {word} {{}}", f"{{}}, the {word},", f"{{}} as {word}", f"with {{}} as {word}", f"the {word} was {{}}"]
        return make_slot(cls, keys, [word], says, CLASSES[cls])
    if roll == 2:
        word = c(SUMS + [noun + " cost", noun + " price", noun + " fee"])
        says = [f"the {word} is {{}}", f"a {word} of {{}}", f"{{}} {word}", f"{{}} as {word}", f"{word} {{}}", f"plus {{}} for the {word}", f"the {word} comes to {{}}"]
        return make_slot("money", [word.replace(" ", "_")] + ([word + "_amount"] if " " not in word else []), [word], says, CLASSES["money"])
    if roll == 3:
        word = c(DAYS)
        says = [f"{word} on {{}}", f"the {word} is on {{}}", f"the {word} is {{}}", f"{{}} for the {word}", f"{word} {{}}", f"we plan the {word} for {{}}"]
        return make_slot("date", [word + c(["_date", "_day", "_on"])], [word, word + " date"], says, V.Date() if rng.random() < 0.8 else Written(V.Date()))
    if roll == 4:
        nouns = plain + ("es" if plain[-1] in "sxh" else "" if plain[-1] == "s" else "s")
        keys = [nouns.replace(" ", "_"), plain + "_count", "number_of_" + nouns, "num_" + nouns]
        says = [f"{{}} {nouns}", f"with {{}} {nouns}", f"there are {{}} {nouns}", f"{{}} {nouns} in all", f"we need {{}} {nouns}", f"it has {{}} {nouns}"]
        return make_slot("count", keys, [nouns, "number of " + nouns], says, V.Integer(2, c([9, 20, 60, 400])))
    if roll == 5:
        suffix, unit = c(list(UNITS.items()))
        keys = [f"{plain}_{suffix}", f"{plain}_in_{suffix}"]
        says = [f"{plain} {{}} {unit}", f"the {plain} is {{}} {unit}", f"{{}} {unit} of {plain}", f"a {plain} of {{}} {unit}", f"{{}} {unit} for the {plain}", f"the {plain} has {{}} {unit}"]
        return make_slot("measure", keys, [f"{plain} ({unit})", plain], says, Number(1, c([20, 300, 3000]), c([0, 0, 1, 2])))
    if roll == 6:
        pool = rng.sample(c([W.ADJ, W.NOUN, W.THING, W.TOPIC, W.COLOUR, W.PET, JOBS]), 6)
        word = c([noun, noun + " type", "kind of " + noun, noun + " class"])
        says = [f"the {word} is {{}}", f"{{}} {noun}", f"{{}} as {word}", f"{word} {{}}", "{}", "a {} one", "it is {}", "{} this time", "we took {}", "the {} one please"]
        return make_slot("choice", [word.replace(" ", "_")], [word], says, Choice(rng, pool))
    if roll == 7:
        if rng.random() < 0.5:
            nouns = plain + ("es" if plain[-1] in "sxh" else "s")
            return flag_slot([c(["has_{}", "with_{}", "{}", "{}_included", "{}_allowed", "{}_available"]).format(c([plain, nouns]))], "noun", c([plain, nouns]))
        word = c(W.ADJ)
        return flag_slot([c(["is_{}", "{}"]).format(word)], "word", word)
    word = c([noun + "_name", noun + "_title", noun + "_text", "favourite_" + noun, noun + "_label"])
    shown = word.replace("_", " ")
    says = [f"the {shown} is {{}}", f"{shown}: {{}}", f"{{}} is the {shown}", f"the {noun} is called {{}}", f"the {noun} {{}}"]
    return make_slot("other", [word], [shown], says, c([V.TITLE, V.PRODUCT, V.Text(lambda ctx: V.invented(ctx.rng)), V.EVENT]))


FACTS = catalogue()
WEIGHTS = {"party": 3, "person": 2.5, "company": 3, "city": 3, "code": 3, "money": 3, "date": 2.5, "choice": 3, "records": 1.2, "list": 1.5, "flag": 1.2, "count": 0.7, "measure": 1.2,
           "time": 1.5, "product": 2, "note": 1.2, "phone": 2, "email": 2}
BY_CLASS = {}
for fact in FACTS:
    BY_CLASS.setdefault(fact[0], []).append(fact)
GROUPS = "customer contact details address payment meta info order delivery person company data".split()


def mixed_domain(rng) -> Domain:
    """Facts drawn at random, classes first. Sometimes a few of them are members of an object of their own."""
    slots, keys = {}, set()
    for _ in range(rng.randint(2, 11)):
        if rng.random() < 0.3:
            slot = free_slot(rng)
        else:
            cls = rng.choices(list(BY_CLASS), [WEIGHTS.get(c, 1) for c in BY_CLASS])[0]
            slot = rng.choice(BY_CLASS[cls])[2](rng)
        own = {k for names in slot.keys.values() for k in names}
        if own & keys or slot.name in slots or (slot.cls == "records" and any(s.cls == "records" for s in slots.values())):
            continue
        keys |= own
        slots[slot.name] = slot
    domain = Domain("mixed", slots)
    simple = [n for n, s in slots.items() if s.cls not in ("records", "list")]
    if len(simple) > 3 and rng.random() < 0.15:
        free = [g for g in GROUPS if g not in keys]
        inner = rng.sample(simple, rng.randint(2, min(4, len(simple) - 1)))
        domain.nest = {rng.choice(free): {n: None for n in inner}}
    return domain
