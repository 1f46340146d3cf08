#!/usr/bin/env python3
"""Writes the generated texts that `pawl eval` is measured on, with their records.

    bench/extract/make_texts.py            # writes orders.jsonl and lists.jsonl next to this file
    bench/extract/make_texts.py --check    # fails where a file differs from what would be written

orders.jsonl   400 texts of one order each, in 16 sentence shapes of 25 texts; six fields (order.schema.json). Half of
               the shapes are kept apart ("split": "kept"): bars are measured on them, and no prompt, default or model
               is tuned on them. The other half is "split": "known".
lists.jsonl    100 texts with 0 to 8 order lines each (lines.schema.json).

The texts are a function of the seed. A field that a text does not name is null in its record.
"""

import argparse
import json
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

FIRST = ["Amara", "Bruno", "Cecile", "Dmitri", "Elif", "Farid", "Greta", "Hana", "Ivo", "Jasmin", "Kofi", "Lotte", "Malik",
         "Nadia", "Oskar", "Paloma", "Quentin", "Rosa", "Stellan", "Tove", "Ulrich", "Vera", "Wanda", "Xenia", "Yusuf", "Zora"]
LAST = ["Abernathy", "Bakker", "Castellano", "Dufresne", "Eklund", "Fontaine", "Grigoryan", "Hoffmann", "Ibarra", "Jelinek",
        "Kaplan", "Lindqvist", "Moreau", "Novak", "Okonkwo", "Petrov", "Quigley", "Rossi", "Szabo", "Takahashi", "Urban",
        "Vogel", "Whitaker", "Yilmaz", "Zhou"]
COMPANY = ["Alder & Finch", "Blue Harbour Foods", "Cobalt Systems", "Drift Coffee Roasters", "Ember Ceramics", "Fjord Optics",
           "Granite Paper", "Helio Bikes", "Indigo Textiles", "Juniper Labs", "Kestrel Freight", "Lumen Studio",
           "Meridian Tools", "Northlight Media", "Orchard & Sons", "Pike Street Books", "Quarry Stoneworks", "Riverbend Dairy",
           "Saffron Kitchen", "Tallow Candles", "Umbra Lighting", "Vela Sailcloth", "Willow Furniture", "Zephyr Kites"]
CITY = ["Aarhus", "Bergen", "Cork", "Dresden", "Eindhoven", "Florence", "Ghent", "Halifax", "Innsbruck", "Kyoto", "Leeds",
        "Malmo", "Nantes", "Odense", "Porto", "Quebec", "Rotterdam", "Seville", "Turin", "Utrecht", "Vilnius", "Warsaw", "York",
        "Zagreb"]
STATUS = ["new", "paid", "shipped", "cancelled"]

ORDER_SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
        "customer": {"type": "string"},
        "company": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "city": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "total": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "status": {"anyOf": [{"enum": STATUS, "type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["order_id", "customer"],
}

# The parts of a shape in square brackets are left out of a third of the texts, with their field: [field|text].
# [field|text||other]: `other` stands where the field is left out.
SHAPES = [
    ("plain", "Order {order_id} for {customer}[company| of {company}][city| in {city}][total|, total {total}][status|. Status: {status}]."),
    ("mail", "Hi team, {customer}[company| from {company}] just placed order {order_id}.[total| It comes to {total} euros.][city| Please send it to {city}.][status| It is {status} now.]"),
    ("form", "Order: {order_id}\nCustomer: {customer}[company|\nCompany: {company}][city|\nCity: {city}][total|\nTotal: {total}][status|\nStatus: {status}]"),
    ("log", "order={order_id}[status| status={status}][total| total={total}] customer=\"{customer}\"[company| company=\"{company}\"][city| city={city}]"),
    ("call", "{customer} called about {order_id}[city|, the delivery to {city}].[company| The invoice goes to {company}.][total| We agreed on {total}.][status| I marked it as {status}.]"),
    ("passive", "{order_id} was ordered by {customer}[company|, who buys for {company}].[status| So far it is {status}.][total| The amount due is {total}.][city| Destination: {city}.]"),
    ("bullets", "- number {order_id}\n- buyer {customer}[total|\n- amount {total}][city|\n- ship to {city}][company|\n- employer {company}][status|\n- {status}]"),
    ("receipt", "RECEIPT {order_id}[company|\n{company}][city|, {city}]\nSold to {customer}[total|\nAMOUNT {total}][status|\n*** {status} ***]"),
    # Kept apart.
    ("question", "Could you check what happened to {order_id}?[city| It should have gone to {city}.] The name on it is {customer}[company|, {company}].[total| I paid {total}.][status| Your site says {status}.]"),
    ("late", "[total|We are talking about {total} here. ][city|Nothing has reached {city} yet. ]My name is {customer}[company| and I work at {company}]; the number is {order_id}[status| and it shows as {status}].", ),
    ("table", "| id | name |[company| firm |][city| place |][total| sum |][status| state |]\n| {order_id} | {customer} |[company| {company} |][city| {city} |][total| {total} |][status| {status} |]"),
    ("chat", "[10:02] {customer}: hey, any news on {order_id}?[company|\n[10:02] {customer}: ordered it for {company}][city|\n[10:03] {customer}: address is in {city}][total|\n[10:04] support: that is the one over {total}, right?][status|\n[10:05] support: it is {status}]"),
    ("memo", "Memo. Regarding {customer}[company| ({company}[city|, {city}])]: the order with the number {order_id}[total|, worth {total},][status| has been set to {status} today|| was looked at today].", ),
    ("sms", "{order_id}[status| {status}]! thx {customer}[total|, {total} EUR][city|, to {city}][company|, c/o {company}]"),
    ("news", "[city|{city}. ][company|{company} buys again. ]This time {customer} signed order {order_id}[total|, a deal of {total}][status|, which is {status}].", ),
    ("slip", "Packing slip\n[city|Ship to: {city}\n][company|Bill to: {company}\n]Attn: {customer}\nRef {order_id}[status| ({status})][total|\nValue {total}]"),
]
KEPT = {name for name, *_ in SHAPES[8:]}
FIELDS = list(ORDER_SCHEMA["properties"])


def amount(rng):
    value = rng.choice([rng.randint(5, 99), rng.randint(100, 999), rng.randint(1000, 9999)])
    if rng.random() < 0.7:
        value = round(value + rng.randint(1, 99) / 100, 2)
    if isinstance(value, int):
        return value, str(value)
    text = f"{value:,.2f}" if rng.random() < 0.3 else f"{value:.2f}"
    return value, text


def fill(shape, values, texts, gone):
    """The text of a shape without the parts of the fields in `gone`."""
    out, i = "", 0
    while i < len(shape):
        if shape[i] == "[" and shape[i + 1:].split("|", 1)[0] in FIELDS:
            field, rest = shape[i + 1:].split("|", 1)
            depth, end = 1, 0
            while depth:
                depth += {"[": 1, "]": -1}.get(rest[end], 0)
                end += 1
            inner = rest[:end - 1]
            # A second text, behind "||", stands where the field is left out.
            inner, _, other = inner.partition("||")
            out += fill(other if field in gone else inner, values, texts, gone)
            i += len(field) + 2 + end
        elif shape[i] == "{":
            name = shape[i + 1:shape.index("}", i)]
            out += texts[name]
            i += len(name) + 2
        else:
            out += shape[i]
            i += 1
    return out


def orders():
    rng = random.Random("pawl orders 1")
    for number in range(25):
        for name, shape in SHAPES:
            total, total_text = amount(rng)
            values = {
                "order_id": "".join(rng.choice("ABCDEFGHKLMNPRSTUVWXZ") for _ in range(2)) + f"-{rng.randint(0, 9999):04}",
                "customer": f"{rng.choice(FIRST)} {rng.choice(LAST)}",
                "company": rng.choice(COMPANY), "city": rng.choice(CITY), "total": total, "status": rng.choice(STATUS),
            }
            gone = {field for field in FIELDS[2:] if rng.random() < 1 / 3}
            if name == "memo" and "company" in gone:
                gone.add("city")   # the city stands inside the company's part
            texts = {key: str(value) for key, value in values.items()} | {"total": total_text}
            text = fill(shape, values, texts, gone)
            record = {key: None if key in gone else value for key, value in values.items()}
            yield {"id": f"{name}-{number + 1}", "split": "kept" if name in KEPT else "known", "shape": name, "text": text,
                   "record": record}


LINES_SCHEMA = {
    "title": "Lines",
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "product": {"type": "string"},
            "quantity": {"type": "integer"},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        },
        "required": ["product", "quantity"],
    },
}
PRODUCTS = ["desk lamp", "oak stool", "cotton towel", "garden hose", "steel kettle", "wool blanket", "paper bin", "wall clock",
            "bath mat", "glass jar", "bread board", "tea tray", "picture frame", "door mat", "cork board", "water bottle",
            "sketch pad", "seed box", "rope ladder", "candle holder"]
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
EMPTY = ["Thanks for the catalogue. Nothing to order this week, we will come back in spring.",
         "Please cancel what we spoke about on the phone; there is no order from us at the moment.",
         "The delivery arrived yesterday and all is well. Best regards, {name}",
         "Could you tell me your opening hours in {city}? I want to look around before I buy anything.",
         "I am out of the office until Monday. In urgent cases please call {name}."]


def line_text(style, item, price_text):
    product, quantity = item["product"], item["quantity"]
    plural = product if quantity == 1 else product + "s"
    priced = item["price"] is not None
    if style == "prose":
        return f"{WORDS[quantity]} {plural}" + (f" at {price_text} each" if priced else "")
    if style == "list":
        return f"- {quantity} x {product}" + (f", {price_text}" if priced else "")
    if style == "table":
        return f"{product};{quantity};{price_text if priced else ''}"
    return f"{product} ({quantity}" + (f" @ {price_text})" if priced else ")")


def lists():
    rng = random.Random("pawl lists 1")
    for number in range(100):
        count = number % 9
        style = ["prose", "list", "table", "brackets"][(number // 9) % 4]
        items, texts = [], []
        for product in rng.sample(PRODUCTS, count):
            price, price_text = amount(rng)
            item = {"product": product, "quantity": rng.randint(1, 12), "price": price if rng.random() < 2 / 3 else None}
            items.append(item)
            texts.append(line_text(style, item, price_text))
        name = f"{rng.choice(FIRST)} {rng.choice(LAST)}"
        if not items:
            text = EMPTY[(number // 9) % len(EMPTY)].format(name=name, city=rng.choice(CITY))
        elif style == "prose":
            text = "Hello, please send us " + (", ".join(texts[:-1]) + " and " + texts[-1] if count > 1 else texts[0]) + f". Regards, {name}"
        elif style == "list":
            text = f"Order of {name}:\n" + "\n".join(texts)
        elif style == "table":
            text = "product;quantity;price\n" + "\n".join(texts)
        else:
            text = f"{name} wants: " + ", ".join(texts) + "."
        yield {"id": f"lines-{number + 1}", "split": "known" if number % 2 else "kept", "shape": style if items else "empty", "text": text,
               "record": items}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a file differs")
    check = parser.parse_args().check
    files = {"orders.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in orders()),
             "lists.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lists()),
             "order.schema.json": json.dumps(ORDER_SCHEMA, indent=2) + "\n",
             "lines.schema.json": json.dumps(LINES_SCHEMA, indent=2) + "\n"}
    differs = 0
    for name, text in files.items():
        path = HERE / name
        if check and (not path.is_file() or path.read_text() != text):
            print(f"{path}: differs from what {Path(__file__).name} writes", file=sys.stderr)
            differs = 1
        if not check:
            path.write_text(text)
    return differs


if __name__ == "__main__":
    sys.exit(main())
