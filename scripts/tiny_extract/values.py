"""Values: what can be asked for, how it is written in a text and what it becomes in the record.

A kind makes `Value(surface, parts)`: `surface` is the text form, `parts` the JSON values it stands for, by part name
(most kinds have the one part "value"). `kind.schemas` holds the JSON Schema of each part.
Conventions (also stated in the model card): dates with slashes are month/day/year, dates with dots are day.month.year;
money keeps its decimals as written without thousands separators; honorifics are not part of a name.
"""

import random
from dataclasses import dataclass

import words as W


@dataclass
class Value:
    surface: str
    parts: dict


class Raw(str):
    """A number kept as the text it is written with, so that 1200.50 stays 1200.50 in the record."""


class Context:
    """Choices that hold for one whole text: currency, date style, letter case."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.currency = rng.choices(CURRENCY_CODES, CURRENCY_WEIGHTS)[0]
        self.money_style = rng.random()
        self.date_style = rng.random()
        self.time_style = rng.random()
        self.party = None                # whether a party is a "person" or a "company"; None: either
        self.made_up = rng.random()      # share of invented words among the names in this text
        self.year = rng.randint(1995, 2035) if rng.random() < 0.3 else rng.randint(2021, 2028)


CURRENCY = {"USD": (["$"], ["dollars", "US dollars", "USD", "bucks"]), "EUR": (["€"], ["euros", "euro", "EUR"]),
            "GBP": (["£"], ["pounds", "GBP", "pounds sterling"]), "JPY": (["¥"], ["yen", "JPY", "Japanese yen"]),
            "CHF": (["CHF "], ["Swiss francs", "CHF", "francs"]), "CAD": (["C$", "CA$"], ["Canadian dollars", "CAD"]),
            "AUD": (["A$", "AU$"], ["Australian dollars", "AUD"]), "SEK": (["SEK "], ["kronor", "SEK", "Swedish kronor"]),
            "INR": (["₹"], ["rupees", "INR", "Indian rupees"]), "PLN": (["PLN "], ["zloty", "PLN"])}
CURRENCY_CODES = list(CURRENCY)
CURRENCY_WEIGHTS = [30, 25, 18, 5, 6, 4, 4, 3, 3, 2]
MONTHS = ("January February March April May June July August September October November December").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
         "eighteen nineteen twenty").split()


def invented(rng, low=2, high=4) -> str:
    return "".join(rng.choice(W.SYLLABLE) for _ in range(rng.randint(low, high))).capitalize()


def first_name(ctx):
    return invented(ctx.rng, 2, 3) if ctx.rng.random() < 0.15 + 0.3 * ctx.made_up else ctx.rng.choice(W.FIRST)


def last_name(ctx):
    return invented(ctx.rng, 2, 4) if ctx.rng.random() < 0.2 + 0.4 * ctx.made_up else ctx.rng.choice(W.LAST)


def person(ctx) -> str:
    rng, roll = ctx.rng, ctx.rng.random()
    if roll < 0.80:
        return f"{first_name(ctx)} {last_name(ctx)}"
    if roll < 0.86:
        return f"{first_name(ctx)} {rng.choice('ABCDEFGHJKLMNPRSTW')}. {last_name(ctx)}"
    if roll < 0.91:
        return f"{first_name(ctx)} {last_name(ctx)}-{last_name(ctx)}"
    if roll < 0.95:
        return f"{first_name(ctx)} {rng.choice(['van', 'de', 'van der', 'von', 'da', 'al', 'Mac'])} {last_name(ctx)}"
    return f"{first_name(ctx)} {first_name(ctx)} {last_name(ctx)}"


def city(ctx):
    return invented(ctx.rng, 2, 3) if ctx.rng.random() < 0.15 + 0.25 * ctx.made_up else ctx.rng.choice(W.CITY)


def company(ctx) -> str:
    rng, roll = ctx.rng, ctx.rng.random()
    stem = invented(rng, 2, 3) if rng.random() < 0.25 + 0.4 * ctx.made_up else rng.choice(W.COMPANY_A)
    if roll < 0.45:
        return f"{stem} {rng.choice(W.COMPANY_B)}"
    if roll < 0.6:
        return f"{stem} {rng.choice(W.COMPANY_END)}"
    if roll < 0.75:
        return f"{stem} {rng.choice(W.COMPANY_B)} {rng.choice(W.COMPANY_END)}"
    if roll < 0.85:
        return f"{last_name(ctx)} & {last_name(ctx)}"
    if roll < 0.88:
        return f"{last_name(ctx)} {rng.choice(W.COMPANY_B)}"
    if roll < 0.98:
        c = rng.choice
        noun, thing = c(W.NOUN).capitalize(), c(W.NOUN + W.THING).capitalize()
        return c([f"{noun} & {thing}", f"{noun}{c(['soft', 'works', 'line', 'tech', 'hub', 'craft', 'ly', 'ware', 'land', 'way'])}", f"{c(W.ADJ).capitalize()} {noun} {c(W.COMPANY_B)}",
                  f"{last_name(ctx)}'s {thing}s", f"{city(ctx)} {thing} {c(['Club', 'Shop', 'Store', 'Market', 'Hospital', 'School', 'Council', 'Service'])}",
                  f"St {first_name(ctx)}'s {c(['Hospital', 'Church', 'School', 'College'])}", f"University of {city(ctx)}", f"{city(ctx)} {c(W.COMPANY_B)}",
                  f"{c(W.ADJ).capitalize()}{c(W.NOUN)} {c(W.COMPANY_B)}", f"{noun} {c(W.COMPANY_B)}", f"The {c(W.ADJ).capitalize()} {thing}", f"{last_name(ctx)} and {c(['Sons', 'Daughters', 'Partners', last_name(ctx)])}"])
    return stem


def street(ctx) -> str:
    rng = ctx.rng
    name = invented(rng, 2, 3) if rng.random() < 0.3 else rng.choice(W.STREET + W.LAST[:60])
    if rng.random() < 0.12:
        return f"{name.capitalize()}{rng.choice(['straße', 'weg', 'gasse', 'strasse', 'allee'])} {rng.randint(1, 140)}"
    return f"{rng.randint(1, 980)}{rng.choice(['', '', '', '', 'a', 'B'])} {name} {rng.choice(W.STREET_END)}"


def postcode(ctx) -> str:
    rng = ctx.rng
    if rng.random() < 0.6:
        return f"{rng.randint(1000, 99999):05d}"
    if rng.random() < 0.6:
        return (f"{rng.choice('ABCDEGHLMNRSTW')}{rng.choice(['', 'A', 'E', 'S', 'W'])}{rng.randint(1, 29)} "
                f"{rng.randint(1, 9)}{rng.choice('ABDEFGHJLNPQRSTUW')}{rng.choice('ABDEFGHJLNPQRSTUW')}")
    return f"{rng.randint(1000, 9999)}"


def digits(rng, count):
    return "".join(rng.choice("0123456789") for _ in range(count))


def letters(rng, count):
    return "".join(rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(count))


def phone(ctx) -> str:
    rng = ctx.rng
    return rng.choice([
        lambda: f"+{rng.randint(1, 99)} {digits(rng, 2)} {digits(rng, 4)} {digits(rng, 4)}",
        lambda: f"+1 {digits(rng, 3)}-{digits(rng, 3)}-{digits(rng, 4)}",
        lambda: f"({digits(rng, 3)}) {digits(rng, 3)}-{digits(rng, 4)}",
        lambda: f"{digits(rng, 3)}-{digits(rng, 3)}-{digits(rng, 4)}",
        lambda: f"{digits(rng, 3)}-{digits(rng, 4)}",
        lambda: f"{digits(rng, 3)}.{digits(rng, 3)}.{digits(rng, 4)}",
        lambda: f"0{digits(rng, 3)} {digits(rng, 6)}",
        lambda: f"0{digits(rng, 2)} {digits(rng, 3)} {digits(rng, 2)} {digits(rng, 2)}",
        lambda: f"+{rng.randint(20, 99)}{digits(rng, 9)}",
        lambda: f"+44 {digits(rng, 4)} {digits(rng, 6)}",
        lambda: f"0{digits(rng, 4)}/{digits(rng, 6)}",
    ])()


def ascii_word(text: str) -> str:
    return "".join(c for c in text.lower() if c.isascii() and c.isalnum()) or "info"


def domain_name(ctx) -> str:
    rng = ctx.rng
    stem = ascii_word(invented(rng, 2, 4)) if rng.random() < 0.5 else ascii_word(rng.choice(W.COMPANY_A + W.LAST))
    if rng.random() < 0.3:
        stem += rng.choice(["-", ""]) + ascii_word(rng.choice(W.COMPANY_B))
    return stem + rng.choice([".com", ".com", ".com", ".org", ".net", ".io", ".de", ".co.uk", ".fr", ".eu", ".edu", ".ch"])


def email(ctx) -> str:
    rng = ctx.rng
    a, b = ascii_word(first_name(ctx)), ascii_word(last_name(ctx))
    local = rng.choice([f"{a}.{b}", f"{a}{b}", a, f"{a[0]}.{b}", f"{a[0]}{b}", f"{a}_{b}", f"{b}{rng.randint(1, 99)}", f"{a}.{b}",
                        rng.choice(["info", "sales", "office", "hello", "support", "contact", "team", "events"])])
    host = domain_name(ctx) if rng.random() < 0.7 else rng.choice(["example.com", "gmail.com", "example.org", "mail.com"])
    return f"{local}@{host}"


def url(ctx) -> str:
    rng = ctx.rng
    path = rng.choice(["", "", "", f"/{rng.choice(W.NOUN)}", f"/{rng.choice(W.NOUN)}/{rng.randint(1, 999)}"])
    return rng.choice(["https://", "https://www.", "www.", "http://", ""]) + domain_name(ctx) + path


def code(ctx) -> str:
    """An identifier: order number, SKU, serial number, reference."""
    rng = ctx.rng
    roll = rng.randrange(9)
    if roll == 0:
        return digits(rng, rng.randint(4, 8))
    if roll == 1:
        return f"{letters(rng, rng.randint(2, 3))}-{digits(rng, rng.randint(3, 6))}"
    if roll == 2:
        return f"{letters(rng, rng.randint(1, 4))}{digits(rng, rng.randint(2, 6))}"
    if roll == 3:
        return f"{letters(rng, 2)}-{rng.randint(2019, 2029)}-{digits(rng, rng.randint(2, 4))}"
    if roll == 4:
        return f"{rng.randint(2019, 2029)}-{digits(rng, rng.randint(2, 5))}"
    if roll == 5:
        return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789") for _ in range(rng.randint(5, 8)))
    if roll == 6:
        return f"{rng.choice(['INV', 'ORD', 'REF', 'TCK', 'SKU', 'RE', 'PO', 'BK', 'ID', 'A', 'X'])}-{digits(rng, rng.randint(3, 6))}"
    if roll == 7:
        return f"{digits(rng, 3)}-{digits(rng, 3)}"
    return f"{letters(rng, 1)}{digits(rng, 1)}-{letters(rng, 2)}-{digits(rng, 2)}"


def product(ctx) -> str:
    rng = ctx.rng
    thing = rng.choice(W.THING)
    if rng.random() < 0.25:
        thing = rng.choice(W.NOUN) + " " + thing
    if rng.random() < 0.22:
        thing = thing + ("es" if thing[-1] in "sxh" else "s")
    roll = rng.random()
    if roll < 0.08:
        text = f"{rng.choice(['bottles', 'bags', 'boxes', 'packs', 'sheets', 'rolls', 'cans', 'hours', 'sets', 'pairs', 'metres'])} of {rng.choice(W.NOUN + W.FOOD + W.THING)}"
    elif roll < 0.2:
        camel = rng.choice(W.NOUN).capitalize() + rng.choice(["Mate", "Pro", "Max", "Go", "Pad", "Lite", "Air", "One", "Star", rng.choice(W.NOUN).capitalize()])
        return f"{camel} {rng.choice(['', str(rng.randint(1, 900)) + ' ', 'X' + str(rng.randint(1, 9)) + ' '])}{thing}"
    elif roll < 0.45:
        text = f"{rng.choice(W.ADJ)} {thing}"
    elif roll < 0.6:
        text = f"{rng.choice(W.ADJ)} {rng.choice(W.ADJ)} {thing}"
    elif roll < 0.75:
        text = f"{invented(rng)} {thing}"
    elif roll < 0.85:
        text = f"{invented(rng)} {letters(rng, 1)}{rng.randint(1, 900)} {thing}"
    else:
        text = thing
    return text.title() if rng.random() < 0.4 else text


def title_text(ctx) -> str:
    """A short title of two to five words, capitalised in one of the usual styles."""
    rng = ctx.rng
    patterns = [("A", "N"), ("the", "A", "N"), ("N", "of", "the", "N"), ("the", "N", "and", "the", "N"), ("A", "N", "P", "the", "N"),
                ("X",), ("the", "N", "of", "X"), ("X", "and", "the", "A", "N"), ("N", "N")]
    out = []
    for item in rng.choice(patterns):
        pool = {"A": W.ADJ, "N": W.NOUN, "P": W.PREP}.get(item)
        out.append(rng.choice(pool) if pool else invented(rng) if item == "X" else item)
    small = {"the", "of", "and"}
    return " ".join(w if (w in small and i) else w[:1].upper() + w[1:] for i, w in enumerate(out))


def event_title(ctx) -> str:
    rng = ctx.rng
    text = " ".join([rng.choice(W.EVENT_A)] * (rng.random() < 0.85) + [rng.choice(W.EVENT_A)] * (rng.random() < 0.3)
                    + [rng.choice(W.EVENT_B)])
    roll = rng.random()
    if roll < 0.1:
        text = f"{invented(rng)} {text}"
    elif roll < 0.15:
        text = f"{city(ctx)} {text}"
    elif roll < 0.2:
        text = f"{text} {rng.randint(2021, 2029)}"
    return " ".join(w[:1].upper() + w[1:] for w in text.split()) if rng.random() < 0.75 else text


def venue(ctx) -> str:
    rng = ctx.rng
    roll = rng.random()
    if roll < 0.5:
        return f"{rng.choice(W.VENUE_A)} {rng.choice(W.VENUE_B)}"
    if roll < 0.65:
        return f"{invented(rng, 2, 3)} {rng.choice(W.VENUE_B)}"
    if roll < 0.75:
        return f"{rng.choice(W.ADJ).capitalize()} {rng.choice(W.NOUN).capitalize()}"
    if roll < 0.8:
        return f"{rng.choice(W.NOUN)} {rng.choice(W.NOUN)}" if rng.random() < 0.5 else rng.choice(W.NOUN)
    if roll < 0.9:
        return f"{rng.choice(['Room', 'Hall', 'Conference Room', 'Meeting Room', 'Building', 'Studio'])} {rng.choice('ABCDEFG')}" + \
            rng.choice(["", str(rng.randint(1, 40))])
    return f"{last_name(ctx)} {rng.choice(W.VENUE_B)}"


def random_sentence(ctx) -> str:
    """Plain filler: grammatical enough to look like text, with no value in it."""
    rng = ctx.rng
    c = rng.choice
    return c([
        lambda: f"The {c(W.NOUN)} {c(W.PREP)} the {c(W.NOUN)} {c(W.VERB)} the {c(W.ADJ)} {c(W.NOUN)}.",
        lambda: f"We {c(W.ADVERB)} {c(W.VERB)} the {c(W.NOUN)} {c(W.PREP)} the {c(W.NOUN)}.",
        lambda: f"I {c(W.VERB)} a {c(W.NOUN)} {c(W.ADVERB)}.",
        lambda: f"They {c(W.VERB)} our {c(W.ADJ)} {c(W.NOUN)} {c(W.PREP)} {c(W.NOUN)}.",
        lambda: f"Somebody {c(W.VERB)} the {c(W.NOUN)}, and the {c(W.NOUN)} was {c(W.ADJ)}.",
        lambda: f"It was a {c(W.ADJ)} {c(W.NOUN)} {c(W.PREP)} the {c(W.NOUN)}.",
        lambda: f"No {c(W.NOUN)} was {c(W.VERB)} {c(W.PREP)} the {c(W.NOUN)}.",
        lambda: f"My {c(W.NOUN)} {c(W.VERB)} it {c(W.ADVERB)}, but the {c(W.NOUN)} {c(W.VERB)} nothing.",
        lambda: f"There is a {c(W.ADJ)} {c(W.NOUN)} {c(W.PREP)} the {c(W.NOUN)}.",
        lambda: f"{c(W.ADVERB).capitalize()} the {c(W.NOUN)} {c(W.VERB)}.",
    ])()


TROUBLE = ("does not open|shows error 404|shows a blank page|keeps restarting|never arrives|is too slow|makes noise|is out of order|fails|stopped working|"
           "crashes|will not turn on|has the wrong name|is empty|cannot be reached|is offline|drains too fast|jams|flickers|drops|is wrong|is not responding|"
           "overheats|loses its settings|does not print|gives an error|smells strange|is stuck|does not charge|looks wrong|was charged twice|disappeared").split("|")
WHEN = ("when I open it|every morning|after the update|all the time|since yesterday|when it rains|on startup|after an hour|constantly|again and again|at night|"
        "when I save a file|in the afternoon|after a few minutes|since Monday|when two people use it|from time to time|during calls").split("|")


def clause_text(ctx) -> str:
    """A short free description, as in a ticket subject or a note."""
    rng = ctx.rng
    c = rng.choice
    return c([
        lambda: f"{c(W.NOUN)} {c(W.VERB)} {c(W.PREP)} the {c(W.NOUN)}",
        lambda: f"the {c(W.NOUN)} is {c(W.ADJ)}",
        lambda: f"{c(W.ADJ)} {c(W.NOUN)} {c(W.PREP)} {c(W.NOUN)}",
        lambda: f"{c(W.THING)} does not work",
        lambda: f"cannot {c(['open', 'print', 'log in to', 'start', 'update', 'reset', 'find', 'connect to', 'send'])} the {c(W.NOUN)}",
        lambda: f"{c(W.THING)} {c(['keeps crashing', 'is broken', 'will not start', 'makes a strange noise', 'is missing', 'is leaking'])}",
        lambda: f"{c(W.NOUN)} {c(['error', 'failure', 'outage', 'request', 'question', 'problem'])}",
        lambda: f"{c(['please', 'need to', 'must'])} {c(['bring', 'check', 'replace', 'clean', 'return'])} the {c(W.ADJ)} {c(W.NOUN)}",
        lambda: f"{c(W.ADJ)} {c(W.THING)} {c(['arrived damaged', 'stopped working', 'never arrived', 'has the wrong colour'])}",
        lambda: f"{c(['the', 'my', 'our', 'the new'])} {c(W.NOUN + W.THING)} {c(TROUBLE)}{c(['', ' ' + c(WHEN)])}",
        lambda: f"{c(W.NOUN + W.THING)} {c(TROUBLE)} {c(WHEN)}",
        lambda: f"{c(W.NOUN).capitalize()} {c(W.NOUN)} {c(TROUBLE)}",
        lambda: f"{c(W.NOUN + W.THING).capitalize()} {c(W.PREP)} the {c(W.NOUN)} {c(TROUBLE)}",
        lambda: f"{c(W.NOUN)} {c(W.PREP)} {c(W.NOUN)} {c(W.NOUN)}",
        lambda: f"{c(['a', 'one', 'two', 'some'])} {c(W.ADJ)} {c(W.NOUN)}{c(['', ' please', ' ' + c(W.PREP) + ' the ' + c(W.NOUN)])}",
        lambda: f"we {c(['need', 'would like', 'want', 'bring', 'have', 'prefer'])} {c(['a', 'our own', 'some', 'no'])} {c(W.NOUN + W.THING)}",
        lambda: f"{c(W.NOUN)} {c(W.NOUN)} {c(W.ADVERB)} {c(['freezes', 'fails', 'disappears', 'restarts', 'times out'])}",
    ])()


# --- kinds ---------------------------------------------------------------------------------------------------------

class Kind:
    schemas: dict = {"value": {"type": "string"}}

    def make(self, ctx) -> Value:
        raise NotImplementedError


class Text(Kind):
    def __init__(self, function, **extra):
        self.function = function
        self.schemas = {"value": {"type": "string"} | extra}

    def make(self, ctx):
        text = self.function(ctx)
        return Value(text, {"value": text})


def pick(options):
    """Text taken from a list, with an invented word now and then so that copying stays the safe choice."""
    return Text(lambda ctx: invented(ctx.rng) if ctx.rng.random() < 0.12 else ctx.rng.choice(options))




class Person(Kind):
    """A name; an honorific before it is not part of the value, and now and then only one of the names is known."""

    def make(self, ctx):
        roll, name = ctx.rng.random(), person(ctx)
        if roll < 0.03:
            name = last_name(ctx)
        elif roll < 0.06:
            name = first_name(ctx)
        shown = ctx.rng.choice(["Mr", "Mr.", "Mrs", "Mrs.", "Ms", "Ms.", "Dr.", "Dr", "Prof."]) + " " + name if roll < 0.1 else name
        return Value(shown, {"value": name})


class Venue(Kind):
    """A place; an article before it is not part of the value."""

    def make(self, ctx):
        name = venue(ctx)
        return Value(("the " if ctx.rng.random() < (0.35 if name[:1].isupper() else 0.7) else "") + name, {"value": name})


PERSON, CITY, COMPANY, STREET = Person(), Text(city), Text(company), Text(street)


class Party(Kind):
    """A person or an organisation; the context says which, so that two facts of a text can be told apart."""

    def make(self, ctx):
        if ctx.party == "company" or (ctx.party is None and ctx.rng.random() < 0.5):
            return COMPANY.make(ctx)
        return PERSON.make(ctx)


PARTY = Party()
POSTCODE, PHONE, EMAIL, URL, CODE = Text(postcode), Text(phone), Text(email), Text(url), Text(code)
PRODUCT, TITLE, EVENT, VENUE, CLAUSE = Text(product), Text(title_text), Text(event_title), Venue(), Text(clause_text)
COUNTRY = pick(W.COUNTRY)


def role_text(ctx):
    """A job title: from the list, or put together."""
    rng = ctx.rng
    if rng.random() < 0.5:
        text = rng.choice(W.ROLE)
    elif rng.random() < 0.3:
        text = f"head of {rng.choice(W.DEPARTMENT)}"
    else:
        text = " ".join([rng.choice(["senior", "junior", "lead", "chief", "assistant", "deputy", "regional", "principal", "field", "night", "freelance"])] * (rng.random() < 0.4)
                        + [rng.choice(W.DEPARTMENT + W.TOPIC + W.NOUN)] * (rng.random() < 0.75)
                        + [rng.choice("manager engineer officer assistant specialist analyst director coordinator buyer clerk agent designer developer consultant technician founder "
                                      "owner lead teacher advisor instructor operator planner supervisor trainer secretary representative partner administrator".split())])
    return text if rng.random() < 0.7 else text.title()


def colour_text(ctx):
    rng = ctx.rng
    return rng.choice(["", "", "", "", "dark ", "light ", "bright ", "pale ", "matt "]) + (invented(rng).lower() if rng.random() < 0.08 else rng.choice(W.COLOUR))


ROLE, COLOUR = Text(role_text), Text(colour_text)


class Integer(Kind):
    def __init__(self, low, high, words=True, schema=None):
        self.low, self.high, self.words = low, high, words
        self.schemas = {"value": {"type": "integer"} | ({"minimum": 0} if schema is None else schema)}

    def make(self, ctx):
        rng = ctx.rng
        number = rng.randint(self.low, self.high)
        if rng.random() < 0.3:      # small numbers are common in real texts
            number = rng.randint(self.low, min(self.high, self.low + 9))
        surface = str(number)
        if self.words and number <= 20 and rng.random() < 0.45:
            surface = SMALL[number]
        elif number >= 1000 and rng.random() < 0.5:
            surface = f"{number:,}"
        return Value(surface, {"value": number})


class Decimal(Kind):
    """A plain measured number, optionally negative."""
    schemas = {"value": {"type": "number"}}

    def __init__(self, low, high, places=(0, 1, 1, 2)):
        self.low, self.high, self.places = low, high, places

    def make(self, ctx):
        rng = ctx.rng
        text = f"{rng.uniform(self.low, self.high):.{rng.choice(self.places)}f}"
        if text.strip("-0.") == "":
            text = "0"
        return Value(text, {"value": Raw(text)})


class Money(Kind):
    schemas = {"amount": {"type": "number", "minimum": 0}, "currency": {"enum": CURRENCY_CODES}}

    def __init__(self, low, high, cents=0.5):
        self.low, self.high, self.cents = low, high, cents

    def make(self, ctx):
        rng = ctx.rng
        amount = min(self.high, self.low * (self.high / self.low) ** rng.random())
        raw = f"{amount:.2f}" if rng.random() < self.cents and ctx.currency != "JPY" else str(int(round(amount)))
        if "." not in raw and int(raw) > 1000 and rng.random() < 0.5:
            raw = str(round(int(raw), -2 if int(raw) > 3000 else -1))
        whole, _, cents = raw.partition(".")
        shown = f"{int(whole):,}" if int(whole) >= 1000 and rng.random() < 0.75 else whole
        if cents:
            shown += "." + cents
        signs, names = CURRENCY[ctx.currency]
        roll = (ctx.money_style + rng.random() * 0.35) % 1
        if roll < 0.5:
            surface = rng.choice(signs) + shown
        elif roll < 0.65:
            surface = f"{ctx.currency} {shown}"
        elif roll < 0.85:
            surface = f"{shown} {ctx.currency}"
        elif roll < 0.88 and ctx.currency == "EUR":
            surface = f"{shown} €"
        else:
            surface = f"{shown} {rng.choice(names)}"
        return Value(surface, {"amount": Raw(raw), "currency": ctx.currency})


class Range(Kind):
    """Salary range or price range: two amounts and one currency."""
    schemas = {"min": {"type": "number"}, "max": {"type": "number"}, "currency": {"enum": CURRENCY_CODES}}

    def __init__(self, low, high):
        self.low, self.high = low, high

    def make(self, ctx):
        rng = ctx.rng
        step = 10 ** (len(str(self.low)) - 1) // 2 or 1
        a = rng.randint(self.low // step, self.high // step) * step
        b = a + rng.randint(1, 12) * step
        signs, names = CURRENCY[ctx.currency]
        sign, name = rng.choice(signs), rng.choice(names)
        show = (lambda n: f"{n:,}") if rng.random() < 0.7 else str
        surface = rng.choice([f"{sign}{show(a)} - {sign}{show(b)}", f"{sign}{show(a)} to {sign}{show(b)}", f"{show(a)}-{show(b)} {name}",
                              f"between {show(a)} and {show(b)} {name}", f"{ctx.currency} {show(a)} to {show(b)}",
                              f"from {sign}{show(a)} up to {sign}{show(b)}", f"{sign}{show(a)}–{show(b)}",
                              f"{show(a)} to {show(b)} {name}"])
        if a % 1000 == 0 and b % 1000 == 0 and rng.random() < 0.25:
            surface = rng.choice([f"{sign}{a // 1000}k-{b // 1000}k", f"{sign}{a // 1000}k to {sign}{b // 1000}k",
                                  f"{a // 1000}k–{b // 1000}k {name}"])
        return Value(surface, {"min": a, "max": b, "currency": ctx.currency})


def ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def write_date(rng, y, m, d, style) -> str:
    name, short = MONTHS[m - 1], MONTHS[m - 1][:3]
    if style < 0.16:
        return f"{d} {name} {y}"
    if style < 0.32:
        return f"{name} {d}, {y}"
    if style < 0.40:
        return f"{name} {ordinal(d)}, {y}"
    if style < 0.46:
        return f"{ordinal(d)} {name} {y}"
    if style < 0.50:
        return f"the {ordinal(d)} of {name} {y}" if rng.random() < 0.7 else f"the {ordinal(d)} of {name}, {y}"
    if style < 0.54:
        return f"{short} {d}, {y}"
    if style < 0.58:
        return f"{d} {short} {y}"
    if style < 0.60:
        return f"{d}-{short}-{y}"
    if style < 0.62:
        return f"{short}. {d}, {y}"
    if style < 0.70:
        return f"{m:02d}/{d:02d}/{y}" if rng.random() < 0.6 else f"{m}/{d}/{y}"
    if style < 0.77:
        return f"{d:02d}.{m:02d}.{y}" if rng.random() < 0.6 else f"{d}.{m}.{y}"
    if style < 0.79:
        return f"{y}/{m:02d}/{d:02d}"
    return f"{y}-{m:02d}-{d:02d}"


class Date(Kind):
    schemas = {"value": {"type": "string", "format": "date"}}

    def __init__(self, spread=1, past=0):
        self.spread, self.past = spread, past

    def make(self, ctx):
        rng = ctx.rng
        y = max(1935, ctx.year - self.past - rng.randint(0, self.spread) + self.spread // 2)
        m, d = rng.randint(1, 12), rng.randint(1, 28)
        style = ctx.date_style if rng.random() < 0.75 else rng.random()
        text = write_date(rng, y, m, d, style)
        if style < 0.46 and rng.random() < 0.15:
            text = f"{rng.choice(DAYS)}{rng.choice([',', ''])} {text}"
        return Value(text, {"value": f"{y}-{m:02d}-{d:02d}"})


class Dates(Kind):
    """A period: start and end."""
    schemas = {"start": {"type": "string", "format": "date"}, "end": {"type": "string", "format": "date"}}

    def make(self, ctx):
        rng = ctx.rng
        y, m, d = ctx.year, rng.randint(1, 12), rng.randint(1, 27)
        if rng.random() < 0.5 and d < 26:
            e = rng.randint(d + 1, 28)
            name = MONTHS[m - 1]
            text = rng.choice([f"from {d} to {e} {name} {y}", f"{name} {d}-{e}, {y}", f"{d}-{e} {name} {y}", f"{d}–{e} {name} {y}",
                               f"from {name} {d} to {name} {e}, {y}", f"from {d} {name} to {e} {name} {y}", f"{name} {d} to {e}, {y}",
                               f"from the {ordinal(d)} to the {ordinal(e)} of {name} {y}", f"between {d} and {e} {name} {y}"])
            return Value(text, {"start": f"{y}-{m:02d}-{d:02d}", "end": f"{y}-{m:02d}-{e:02d}"})
        m2, y2, e = m + rng.randint(0, 3), y, rng.randint(1, 28)
        if m2 > 12:
            m2, y2 = m2 - 12, y + 1
        if (y2, m2, e) <= (y, m, d):
            y2, m2, e = y, m, d + 1
        style = ctx.date_style
        a, b = write_date(rng, y, m, d, style), write_date(rng, y2, m2, e, style)
        text = rng.choice([f"from {a} to {b}", f"from {a} until {b}", f"{a} to {b}", f"{a} - {b}", f"{a} – {b}", f"{a} through {b}",
                           f"between {a} and {b}"])
        return Value(text, {"start": f"{y}-{m:02d}-{d:02d}", "end": f"{y2}-{m2:02d}-{e:02d}"})


def write_time(rng, h, m, style) -> str:
    half, twelve = ("a.m.", "p.m.")[h >= 12], (h - 1) % 12 + 1
    plain = half.replace(".", "")
    if h == 12 and m == 0 and rng.random() < 0.4:
        return "noon"
    if m == 30 and 7 <= h and rng.random() < 0.04:
        return f"half past {SMALL[twelve]} in the {'morning' if h < 12 else 'afternoon' if h < 18 else 'evening'}"
    if m == 0 and rng.random() < 0.05:
        return f"{SMALL[twelve]} in the {'morning' if h < 12 else 'afternoon' if h < 18 else 'evening'}"
    if m == 0 and rng.random() < 0.05:
        return f"{twelve} o'clock in the {'morning' if h < 12 else 'afternoon' if h < 18 else 'evening'}"
    if style < 0.45:
        return f"{h:02d}:{m:02d}"
    if style < 0.5:
        return f"{h}:{m:02d}"
    if style < 0.53:
        return f"{h}h{m:02d}" if m else f"{h}h"
    clock = f"{twelve}:{m:02d}" if m or rng.random() < 0.35 else str(twelve)
    return clock + rng.choice([f" {plain}", plain, f" {plain.upper()}", plain.upper(), f" {half}"])


def clock(rng):
    return rng.randint(6, 22) if rng.random() < 0.85 else rng.randint(0, 23), rng.choice([0, 0, 0, 0, 15, 30, 30, 45, rng.randint(0, 59)])


class Time(Kind):
    schemas = {"value": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}}

    def make(self, ctx):
        h, m = clock(ctx.rng)
        text = write_time(ctx.rng, h, m, ctx.time_style if ctx.rng.random() < 0.8 else ctx.rng.random())
        return Value(text, {"value": f"{h:02d}:{m:02d}"})


class Times(Kind):
    schemas = {"start": Time.schemas["value"], "end": Time.schemas["value"]}

    def make(self, ctx):
        rng = ctx.rng
        h, m = clock(rng)
        h = min(h, 21)
        h2, m2 = rng.randint(h + 1, 23), rng.choice([0, 0, 30, 15, 45])
        style = ctx.time_style
        a, b = write_time(rng, h, m, style), write_time(rng, h2, m2, style)
        text = rng.choice([f"from {a} to {b}", f"from {a} until {b}", f"between {a} and {b}", f"{a} - {b}", f"{a} to {b}", f"{a}–{b}"])
        return Value(text, {"start": f"{h:02d}:{m:02d}", "end": f"{h2:02d}:{m2:02d}"})


class Duration(Kind):
    """Minutes, written as minutes or as simple hours."""
    schemas = {"value": {"type": "integer", "minimum": 0}}
    NAMED = [("half an hour", 30), ("an hour", 60), ("one hour", 60), ("two hours", 120), ("three hours", 180), ("an hour and a half", 90),
             ("1 hour", 60), ("2 hours", 120), ("3 hours", 180), ("4 hours", 240), ("1.5 hours", 90), ("a quarter of an hour", 15),
             ("2.5 hours", 150), ("one and a half hours", 90), ("1h30", 90), ("four hours", 240), ("five hours", 300), ("6 hours", 360)]

    def make(self, ctx):
        rng = ctx.rng
        if rng.random() < 0.3:
            text, minutes = rng.choice(self.NAMED)
            return Value(text, {"value": minutes})
        minutes = rng.choice([5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 75, 80, 90, 100, 105, 110, 120, 150, rng.randint(3, 240)])
        shown = SMALL[minutes] if minutes <= 20 and rng.random() < 0.3 else str(minutes)
        return Value(f"{shown} {rng.choice(['minutes', 'minutes', 'min', 'mins'])}", {"value": minutes})


class Enum(Kind):
    """A choice. `words` maps each member to the words that may stand for it inside a sentence."""

    def __init__(self, **words):
        self.words = {name.replace("__", "-"): text.split("|") for name, text in words.items()}
        self.schemas = {"value": {"enum": list(self.words)}}

    def make(self, ctx):
        member = ctx.rng.choice(list(self.words))
        return Value(ctx.rng.choice(self.words[member]), {"value": member})


class Flag(Kind):
    schemas = {"value": {"type": "boolean"}}

    def make(self, ctx):
        value = ctx.rng.random() < 0.5
        words = ["yes", "yes", "true", "y", "certainly", "confirmed"] if value else ["no", "no", "false", "n", "not", "none"]
        return Value(ctx.rng.choice(words[:3]), {"value": value})


def join_list(rng, items, sep=None) -> str:
    if len(items) == 1:
        return items[0]
    style = rng.random() if sep is None else 1
    if style < 0.6:
        return ", ".join(items[:-1]) + rng.choice([" and ", ", and ", " and ", " & "]) + items[-1]
    if style < 0.68:
        return "; ".join(items)
    if style < 0.72:
        return " / ".join(items)
    return ", ".join(items)


class Strings(Kind):
    schemas = {"value": {"type": "array", "items": {"type": "string"}, "maxItems": 8}}

    def __init__(self, function, low=1, high=5):
        self.function, self.low, self.high = function, low, high

    def make(self, ctx):
        rng = ctx.rng
        items = []
        for _ in range(rng.randint(self.low, self.high)):
            item = self.function(ctx)
            if item not in items:
                items.append(item)
        return Value(join_list(rng, items), {"value": items})


def strings_of(options, low=1, high=5):
    return Strings(lambda ctx: invented(ctx.rng).lower() if ctx.rng.random() < 0.1 else ctx.rng.choice(options), low, high)


class Objects(Kind):
    """An array of objects. `forms` are patterns over the named sub-kinds; one form is used for the whole list."""

    def __init__(self, fields: dict, forms: list[str], low=1, high=4):
        self.fields, self.forms, self.low, self.high = fields, forms, low, high
        properties = {}
        for name, kind in fields.items():
            for part, schema in kind.schemas.items():
                if part in ("value", "amount"):
                    properties[name] = schema
        self.schemas = {"value": {"type": "array", "maxItems": 8, "items": {
            "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}}}

    def make(self, ctx):
        rng = ctx.rng
        form = rng.choice(self.forms)
        surfaces, items = [], []
        for _ in range(rng.randint(self.low, self.high)):
            values = {name: kind.make(ctx) for name, kind in self.fields.items()}
            for name, value in values.items():      # "3x", never "threex"
                if any(t in form for t in ("{" + name + "}x", "x{" + name + "}", "{" + name + "} x", "x {" + name + "}")):
                    value.surface = str(value.parts.get("value", value.surface))
            item = {name: value.parts.get("value", value.parts.get("amount")) for name, value in values.items()}
            surface = form
            for name, value in values.items():
                surface = surface.replace("{" + name + "}", value.surface)
            surfaces.append(surface)
            items.append(item)
        if rng.random() < 0.25:
            bullet = rng.choice(["- ", "* ", "• ", "  ", "1) "])
            surface = "\n" + "\n".join((f"{i + 1}) " if bullet == "1) " else bullet) + s for i, s in enumerate(surfaces)) + "\n"
        elif any("," in s for s in surfaces) and len(surfaces) > 1:
            surface = "; ".join(surfaces)
        else:
            surface = join_list(rng, surfaces)
        return Value(surface, {"value": items})


class Address(Kind):
    def __init__(self, country=True):
        self.country = country
        names = ["street", "city", "postal_code"] + ["country"] * country
        self.schemas = {name: {"type": "string"} for name in names}

    def make(self, ctx):
        rng = ctx.rng
        s, c, p, n = street(ctx), city(ctx), postcode(ctx), COUNTRY.make(ctx).surface
        sep = rng.choice([", ", ", ", ", ", "\n"])
        text = s + sep + rng.choice([f"{p} {c}", f"{c} {p}", f"{c}, {p}"])
        if self.country:
            text += sep + n
        return Value(text, {"street": s, "city": c, "postal_code": p, "country": n} if self.country else
                     {"street": s, "city": c, "postal_code": p})
