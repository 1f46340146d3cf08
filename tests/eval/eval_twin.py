#!/usr/bin/env python3
"""Compares the scores of `pawl eval --written` with those of a second implementation, on random records.

    tests/eval/eval_twin.py BUILD/pawl [rounds]

The twin shares no code and no method with src/eval: pairs of list items are found by trying all of them, numbers are
decimals, and the paired test goes through all signs.
"""

import itertools
import json
import random
import subprocess
import sys
import tempfile
from decimal import Decimal, InvalidOperation
from pathlib import Path


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return Decimal(str(value).replace(",", "").strip("$ "))
    except InvalidOperation:
        return None


def plain(text):
    """A text in lower case, with single spaces, without the stop at its end."""
    return " ".join(text.lower().split()).strip(" .")


def normal(a, b):
    if same(a, b):
        return True
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(normal, a, b))
    if not isinstance(a, str) and not isinstance(b, str):
        return False
    if number(a) is not None and number(a) == number(b):
        return True
    return isinstance(a, str) and isinstance(b, str) and plain(a) == plain(b)


def near(a, b, tolerance):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b))
    x, y = number(a), number(b)
    if x is None or y is None:
        return same(a, b)
    return abs(x - y) <= Decimal(str(tolerance)) * abs(x)


METRICS = {"name": ("normalised", 0), "total": ("numeric", 0.05), "note": ("ignore", 0), "rows[].price": ("numeric", 0.01)}
SCHEMA = {"properties": {"name": {"evaluation_config": "normalised"},
                         "total": {"evaluation_config": {"metric": "numeric", "tolerance": 0.05}},
                         "note": {"evaluation_config": "ignore"},
                         "rows": {"type": "array", "items": {"properties": {"price": {"evaluation_config": "number_tolerance"}}}}}}


class Sums(dict):
    def add(self, key, count=1):
        self[key] = self.get(key, 0) + count


def objects(value):
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def leaves(value):
    """Values that were written."""
    if value is None:
        return 0
    if isinstance(value, dict):
        return sum(map(leaves, value.values()))
    if objects(value):
        return sum(map(leaves, value))
    return 1


def compare(right, written, path, listed, sums):
    if isinstance(right, dict):
        other = written if isinstance(written, dict) else {}
        for key, value in right.items():
            compare(value, other.get(key), f"{path}.{key}" if path else key, listed, sums)
        for key, value in other.items():
            if key not in right and value is not None:
                sums.add("invented")
                count_written(value, listed, sums)
        return
    if objects(right) or (right == [] and objects(written)):
        items = written if isinstance(written, list) else []
        sums.add("list_expected", len(right))
        sums.add("list_written", len(items))
        if right and not items:
            sums["empty"] = 1
        best, kept = -1, None
        slots = list(range(len(items))) + [None] * len(right)
        for order in set(itertools.permutations(slots, len(right))):
            if sum(one is not None for one in order) < min(len(items), len(right)):
                continue
            parts, total = [], 0
            for item, one in zip(right, order):
                part = Sums()
                compare(item, None if one is None else items[one], path + "[]", True, part)
                parts.append((part, one))
                whole = one is not None and part.get("right", 0) == part.get("scored", 0) and not part.get("invented")
                total += 4096 * part.get("right_values", 0) + whole
            if total > best:
                best, kept = total, (parts, order)
        parts, order = kept if kept else ([], ())
        for part, one in parts:
            whole = one is not None and part.get("right", 0) == part.get("scored", 0) and not part.get("invented")
            sums.add("list_right", int(whole))
            for key, count in part.items():
                if key == "empty":
                    sums["empty"] = 1
                else:
                    sums.add(key, count)
        for j, item in enumerate(items):
            if j not in order:
                count_written(item, True, sums)
        return
    metric, tolerance = METRICS.get(path, ("exact", 0.01))
    if metric == "ignore":
        return
    count_written(written, listed, sums)
    sums.add("scored")
    if right is None:
        sums.add("nulls")
        sums.add("right_nulls", int(written is None))
        sums.add("right", int(written is None))
        return
    tolerance = tolerance or 0.01
    exact, normalised, close = same(right, written), normal(right, written), near(right, written, tolerance)
    good = {"exact": exact, "normalised": normalised, "numeric": close}[metric]
    for key, count in (("values", 1), ("exact", exact), ("normalised", normalised), ("numeric", close), ("right_values", good),
                       ("right", good), ("values_expected", 1)):
        sums.add(key, int(count))
    if listed:
        sums.add("fields_expected")
        sums.add("fields_right", int(good))


def count_written(value, listed, sums):
    sums.add("values_written", leaves(value))
    if listed:
        sums.add("fields_written", leaves(value))


def f1(right, written, expected):
    return None if written + expected == 0 else 2 * right / (written + expected)


# ---- Random records ----

TEXTS = ["Alder", "alder", "Blue  Harbour", "blue harbour.", "", "x", "12", "1,200"]
NUMBERS = [0, 1, 1.0, 100, 104, 106, 1200, 2.5]


def scalar(rng):
    return rng.choice([None, True, False, rng.choice(TEXTS), rng.choice(TEXTS), rng.choice(NUMBERS), rng.choice(NUMBERS)])


def record(rng):
    out = {"name": rng.choice(TEXTS + [None]), "total": rng.choice(NUMBERS + [None, "1,200"]), "note": scalar(rng),
           "tags": rng.choice([[], ["a"], ["A", "b"], None]), "place": {"city": rng.choice(TEXTS), "zip": scalar(rng)}}
    # Of pairs that are as good as others any may be taken, so no other count may depend on the choice.
    out["rows"] = [{"product": rng.choice(["Alder", "Blue", "x", "y"]), "price": rng.choice(NUMBERS)} for _ in range(rng.randint(0, 3))]
    return out


def changed(rng, value):
    out = json.loads(json.dumps(value))
    for key in list(out):
        if rng.random() < 0.35:
            out[key] = record(rng)[key]
        elif rng.random() < 0.1:
            del out[key]
    if rng.random() < 0.2:
        out["more"] = scalar(rng)
    if isinstance(out.get("rows"), list):
        rng.shuffle(out["rows"])
        if out["rows"] and rng.random() < 0.3:
            out["rows"].pop()
    return out


def paired(a, b):
    differences = [y - x for x, y in zip(a, b)]
    seen = abs(sum(differences))
    small = [d for d in differences if d]
    far = sum(abs(sum(d * s for d, s in zip(small, signs))) >= seen for signs in itertools.product((1, -1), repeat=len(small)))
    return far / 2 ** len(small)


def check(pawl, rng, folder):
    texts = [record(rng) for _ in range(9)]
    runs = [[changed(rng, one) if rng.random() < 0.93 else None for one in texts] for _ in range(2)]
    Path(folder, "schema.json").write_text(json.dumps(SCHEMA))
    Path(folder, "data.jsonl").write_text("".join(json.dumps({"text": "t", "record": one}) + "\n" for one in texts))
    command = [pawl, "eval", "--schema", f"{folder}/schema.json", "--data", f"{folder}/data.jsonl", "--json"]
    for i, run in enumerate(runs):
        Path(folder, f"{i}.jsonl").write_text("".join(json.dumps({"record": one}) + "\n" for one in run))
        command += ["--written", f"{folder}/{i}.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr)
    report = json.loads(done.stdout)
    rights = []
    for got, run in zip(report["settings"], runs):
        sums, right, whole = Sums(), [], 0
        for want, one in zip(texts, run):
            part = Sums()
            compare(want, one, "", False, part)
            if one is None:
                part["right"] = part["right_nulls"] = part["empty"] = 0
            right.append(part.get("right", 0))
            extra = part.get("list_written", 0) - part.get("list_expected", 0)
            whole += one is not None and part["right"] == part["scored"] and not part.get("invented") and extra <= 0
            for key, count in part.items():
                sums.add(key, count)
        rights.append(right)
        expected = {
            "texts": len(texts), "failed": run.count(None), "records_right": whole, "invented_keys": sums.get("invented", 0),
            "empty_lists": sums.get("empty", 0)}
        of = sums.get
        for key, want in expected.items():
            assert got[key] == want, (key, got[key], want)
        for key, twin in (("values", "values"), ("right", "right_values"), ("exact", "exact"), ("normalised", "normalised"),
                          ("numeric", "numeric"), ("nulls", "nulls"), ("right_nulls", "right_nulls")):
            assert got["all"][key] == of(twin, 0), (key, got["all"], sums)
        for key, names in (("values", ("right_values", "values_written", "values_expected")),
                           ("list_records", ("list_right", "list_written", "list_expected")),
                           ("list_fields", ("fields_right", "fields_written", "fields_expected"))):
            want = f1(*(of(name, 0) for name in names))
            same = got[key]["f1"] is None if want is None else abs(got[key]["f1"] - want) < 1e-5
            assert same, (key, got[key], sums)
    (test,) = report["comparisons"]
    assert abs(test["p"] - paired(*rights)) < 1e-5, (test, rights)
    assert test["fields"] == sum(rights[1]) - sum(rights[0])


def main():
    pawl, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(pawl, random.Random(seed), folder)
            except AssertionError as error:
                sys.exit(f"seed {seed}: {error}")
    print(f"{rounds} rounds agree")


if __name__ == "__main__":
    main()
