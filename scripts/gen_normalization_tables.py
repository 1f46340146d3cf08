#!/usr/bin/env python3
"""Writes src/text/normalization_tables.inc from UnicodeData.txt, DerivedAge.txt and CompositionExclusions.txt.

    python3 scripts/gen_normalization_tables.py [UCD_FOLDER] > src/text/normalization_tables.inc

UCD_FOLDER as in gen_unicode_tables.py (Debian and Ubuntu: package unicode-data). The tables hold the
full (recursive) canonical and compatibility decompositions, the combining classes, the primary
composites and the lower-case mappings; Hangul is arithmetic and is not in them (UAX #15, section 12).
Normalization is pinned to Unicode 9.0: that is the version of Hugging Face's `tokenizers`, and a text must get
the ids that a model was trained on. (Normalization is stable, so that is today's without the code points that
came later.) Its Punctuation pre-tokenizer is at Unicode 8.0, so there is a list of that too. Lower case is today's. The result is checked against Python's unicodedata on every code point that both know.
"""
import os
import sys
import unicodedata

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode"


def rows(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                yield [field.strip() for field in line.split(";")]


PINNED = (9, 0)
combining, canonical, compatible, lower = {}, {}, {}, {}
known = set()
age = {}
for fields in rows("DerivedAge.txt"):
    version_added = tuple(int(n) for n in fields[1].split("."))
    first, _, last = fields[0].partition("..")
    for code in range(int(first, 16), int(last or first, 16) + 1):
        age[code] = version_added
        if version_added <= PINNED:
            known.add(code)
# U+166D and U+111C9 were punctuation in Unicode 8.0 and are not today; nothing went the other way.
punctuation = {0x166D, 0x111C9}
version = "?"
with open(os.path.join(FOLDER, "DerivedNormalizationProps.txt"), encoding="utf-8") as f:
    version = f.readline().strip().split("-")[-1].removesuffix(".txt")
for fields in rows("UnicodeData.txt"):
    code = int(fields[0], 16)
    if fields[2][0] == "P" and age[code] <= (8, 0):
        punctuation.add(code)
    if fields[13]:
        lower[code] = [int(fields[13], 16)]
    if code not in known:
        continue
    if fields[3] != "0":
        combining[code] = int(fields[3])
    if fields[5]:
        tag, _, rest = fields[5].rpartition("> ")
        mapping = [int(c, 16) for c in (rest if tag else fields[5]).split()]
        (compatible if tag else canonical)[code] = mapping
lower[0x130] = [0x69, 0x307]  # the one unconditional special casing to lower case (SpecialCasing.txt)
excluded = {int(f[0], 16) for f in rows("CompositionExclusions.txt")}


def full(code, with_compatible):
    mapping = canonical.get(code)
    if mapping is None and with_compatible:
        mapping = compatible.get(code)
    if mapping is None:
        return [code]
    return [c for part in mapping for c in full(part, with_compatible)]


def reorder(codes):
    out = list(codes)
    i = 1
    while i < len(out):
        a, b = combining.get(out[i - 1], 0), combining.get(out[i], 0)
        if a > b > 0:
            out[i - 1], out[i] = out[i], out[i - 1]
            i = max(i - 1, 1)
        else:
            i += 1
    return out


decompositions = {"Canonical": {}, "Compatibility": {}}
for code in sorted(set(canonical) | set(compatible)):
    plain, compat = reorder(full(code, False)), reorder(full(code, True))
    if plain != [code]:
        decompositions["Canonical"][code] = plain
    if compat != plain:  # where it says nothing new the canonical one is used
        decompositions["Compatibility"][code] = compat

composites = {}
for code, mapping in canonical.items():
    if len(mapping) != 2 or code in excluded or combining.get(code) or combining.get(mapping[0]):
        continue  # singletons and non-starter decompositions never compose
    composites[tuple(mapping)] = code

# Starters that compose with a code point before them. Push() of normalizer.cc relies on that
# code point being a starter that has not itself been composed with a mark.
seconds = sorted({b for (a, b) in composites if not combining.get(b)})
for (a, b) in composites:
    assert b not in seconds or a not in canonical or not combining.get(canonical[a][1]), hex(a)

for code in range(0x110000):
    char = chr(code)
    if unicodedata.category(char) not in ("Cn", "Cs"):
        assert [ord(c) for c in char.lower()] == lower.get(code, [code]), hex(code)
    if code not in known or unicodedata.category(char) in ("Cn", "Cs") or 0xAC00 <= code < 0xAC00 + 11172:
        continue
    plain = decompositions["Canonical"].get(code, [code])
    compat = decompositions["Compatibility"].get(code, plain)
    assert [ord(c) for c in unicodedata.normalize("NFD", char)] == plain, hex(code)
    assert [ord(c) for c in unicodedata.normalize("NFKD", char)] == compat, hex(code)
    assert unicodedata.combining(char) == combining.get(code, 0), hex(code)

pool = []
index = {}


def place(codes):
    """Offset of `codes` in the pool of code points; equal sequences are stored once."""
    key = tuple(codes)
    if key not in index:
        index[key] = len(pool)
        pool.extend(codes)
    return index[key]


def emit(kind, name, items):
    print(f"inline constexpr {kind} {name}[{len(items)}] = {{")
    line = ""
    for item in items:
        if len(line) + len(item) + 1 > 99:
            print(line)
            line = ""
        line += item + ","
    print(line)
    print("};")


def mapping_rows(table):
    return ["{%d,%d,%d}" % (code, place(codes), len(codes)) for code, codes in sorted(table.items())]


tables = {name: mapping_rows(decompositions[name]) for name in decompositions}
lower_rows = mapping_rows(lower)
classes = []
for code in sorted(combining):
    if classes and classes[-1][1] == code - 1 and classes[-1][2] == combining[code]:
        classes[-1][1] = code
    else:
        classes.append([code, code, combining[code]])
assert len(pool) < 65536

print(f"// Generated by scripts/gen_normalization_tables.py from the Unicode Character Database {version};")
print("// normalization pinned to Unicode %d.%d." % PINNED)
print("// Do not edit.")
emit("char32_t", "kMappingPool", [str(c) for c in pool])
emit("Mapping", "kCanonical", tables["Canonical"])
emit("Mapping", "kCompatibility", tables["Compatibility"])
emit("Mapping", "kLowercase", lower_rows)
emit("CombiningRange", "kCombining", ["{%d,%d,%d}" % tuple(c) for c in classes])
emit("Composite", "kComposites", ["{%d,%d,%d}" % (a, b, c) for (a, b), c in sorted(composites.items())])
emit("char32_t", "kStarterSeconds", [str(c) for c in seconds])
ranges = []
for code in sorted(punctuation):
    if ranges and ranges[-1][1] == code - 1:
        ranges[-1][1] = code
    else:
        ranges.append([code, code])
emit("CodepointRange", "kPunctuation", ["{%d,%d}" % tuple(r) for r in ranges])
