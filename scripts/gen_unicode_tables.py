#!/usr/bin/env python3
"""Writes src/base/unicode_tables.inc from the files of the Unicode Character Database.

    python3 scripts/gen_unicode_tables.py [UCD_FOLDER] > src/base/unicode_tables.inc

UCD_FOLDER holds UnicodeData.txt, Scripts.txt, ... (Debian and Ubuntu: package unicode-data, in
/usr/share/unicode). The format of the files is described in UAX #44.

Every property becomes a list of disjoint, sorted, non-adjacent inclusive ranges; equal lists are stored
once. NFKC, which IDNA2008_PVALID needs, comes from the unicodedata module of the Python that runs this.
Names are stored in the loose form of UAX #44 (LM3): lower case, without spaces, '-' and '_'.
"""
import collections
import os
import sys
import unicodedata

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode"
MAX = 0x10FFFF
BINARY = """ASCII_Hex_Digit Alphabetic Bidi_Control Case_Ignorable Cased Changes_When_Casefolded
Changes_When_Casemapped Changes_When_Lowercased Changes_When_Titlecased Changes_When_Uppercased Dash
Default_Ignorable_Code_Point Deprecated Diacritic Emoji Emoji_Component Emoji_Modifier Emoji_Modifier_Base
Emoji_Presentation Extended_Pictographic Extender Grapheme_Base Grapheme_Extend Hex_Digit
IDS_Binary_Operator IDS_Trinary_Operator ID_Continue ID_Start Ideographic Join_Control
Logical_Order_Exception Lowercase Math Noncharacter_Code_Point Pattern_Syntax Pattern_White_Space
Quotation_Mark Radical Regional_Indicator Sentence_Terminal Soft_Dotted Terminal_Punctuation
Unified_Ideograph Uppercase Variation_Selector White_Space XID_Continue XID_Start""".split()
SHORT = {"Alphabetic": "Alpha", "Lowercase": "Lower", "Uppercase": "Upper", "White_Space": "space",
         "ID_Start": "IDS", "ID_Continue": "IDC", "XID_Start": "XIDS", "XID_Continue": "XIDC",
         "Hex_Digit": "Hex", "ASCII_Hex_Digit": "AHex", "Ideographic": "Ideo", "Emoji_Modifier": "EMod",
         "Emoji_Presentation": "EPres", "Emoji_Component": "EComp", "Emoji_Modifier_Base": "EBase",
         "Extended_Pictographic": "ExtPict", "Variation_Selector": "VS", "Diacritic": "Dia",
         "Extender": "Ext", "Quotation_Mark": "QMark", "Noncharacter_Code_Point": "NChar",
         "Regional_Indicator": "RI", "Case_Ignorable": "CI", "Unified_Ideograph": "UIdeo"}
BINARY_FILES = ["PropList.txt", "DerivedCoreProperties.txt", "emoji/emoji-data.txt"]


def rows(name):
    """The fields of each line of a UCD file, comments dropped."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                yield [field.strip() for field in line.split(";")]


def span(text):
    first, _, last = text.partition("..")
    return int(first, 16), int(last or first, 16)


def merge(ranges):
    out = []
    for lo, hi in sorted(ranges):
        if out and lo <= out[-1][1] + 1:
            out[-1][1] = max(out[-1][1], hi)
        else:
            out.append([lo, hi])
    return tuple(tuple(r) for r in out)


def complement(ranges):
    out, at = [], 0
    for lo, hi in ranges:
        if at < lo:
            out.append((at, lo - 1))
        at = hi + 1
    if at <= MAX:
        out.append((at, MAX))
    return tuple(out)


def loose(name):
    return "".join(c for c in name.lower() if c not in " -_")


def general_categories():
    by_category = collections.defaultdict(list)
    first = None
    for fields in rows("UnicodeData.txt"):
        code, name, category = int(fields[0], 16), fields[1], fields[2]
        if name.endswith(", First>"):
            first = code
            continue
        by_category[category].append((first if name.endswith(", Last>") else code, code))
        first = None
    sets = {c: merge(r) for c, r in by_category.items()}
    sets["Cn"] = complement(merge(r for ranges in sets.values() for r in ranges))
    for letter in "CLMNPSZ":
        sets[letter] = merge(r for c, ranges in sets.items() if c[0] == letter and len(c) == 2 for r in ranges)
    sets["LC"] = merge(sets["Lu"] + sets["Ll"] + sets["Lt"])
    return sets


def scripts():
    """Script and Script_Extensions, by long name, and the aliases of each long name."""
    aliases = {f[2]: f[1:] for f in rows("PropertyValueAliases.txt") if f[0] == "sc"}
    long_of = {f[1]: f[2] for f in rows("PropertyValueAliases.txt") if f[0] == "sc"}
    sc = collections.defaultdict(list)
    for code, name in rows("Scripts.txt"):
        sc[name].append(span(code))
    extended = collections.defaultdict(list)
    listed = []
    for code, names in rows("ScriptExtensions.txt"):
        listed.append(span(code))
        for short in names.split():
            extended[long_of[short]].append(span(code))
    unlisted = complement(merge(listed))
    sc = {name: merge(ranges) for name, ranges in sc.items()}
    sc["Unknown"] = complement(merge(r for ranges in sc.values() for r in ranges))
    scx = {}
    for name, ranges in sc.items():  # a code point that is listed has exactly the listed scripts
        kept = [(max(a, c), min(b, d)) for a, b in ranges for c, d in unlisted if max(a, c) <= min(b, d)]
        scx[name] = merge(kept + extended[name])
    return sc, scx, aliases


def idna_valid(gc, binary):
    """The code points that RFC 5892 derives as PVALID (internationalized host names, IDNA 2008)."""
    def points(ranges):
        return {c for lo, hi in ranges for c in range(lo, hi + 1)}

    def stable(c):
        once = unicodedata.normalize("NFKC", chr(c)).casefold()
        return unicodedata.normalize("NFKC", once) == chr(c)

    letters = points(r for name in ("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc") for r in gc[name])
    jamo = points([(0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF)])
    ignorable = points(binary["Default_Ignorable_Code_Point"] + binary["White_Space"] +
                       binary["Noncharacter_Code_Point"])
    blocks = points([(0x20D0, 0x20FF), (0x1D100, 0x1D1FF), (0x1D200, 0x1D24F)])
    valid = {c for c in letters - jamo - ignorable - blocks if stable(c)}
    valid |= points([(0x2D, 0x2D), (0x30, 0x39), (0x61, 0x7A)])
    # Section 2.6, exceptions.
    valid |= {0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007}
    valid -= {0x640, 0x7FA, 0x302E, 0x302F, 0x3031, 0x3032, 0x3033, 0x3034, 0x3035, 0x303B}
    valid -= {0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB} | set(range(0x660, 0x66A)) | set(range(0x6F0, 0x6FA))
    return merge((c, c) for c in valid)


def main():
    names = {}  # loose name -> ranges

    def add(name, ranges):
        if names.setdefault(loose(name), ranges) != ranges:
            print(f"{name}: already taken", file=sys.stderr)

    gc = general_categories()
    binary = collections.defaultdict(list)
    for name in BINARY_FILES:
        for fields in rows(name):
            if fields[1] in BINARY:
                binary[fields[1]].append(span(fields[0]))
    missing = [name for name in BINARY if name not in binary]
    if missing:
        sys.exit(f"no data for {missing}")
    add("Any", ((0, MAX),))
    add("ASCII", ((0, 0x7F),))
    add("Assigned", complement(gc["Cn"]))
    for fields in rows("PropertyValueAliases.txt"):
        if fields[0] == "gc":
            for alias in fields[1:]:
                for prefix in ("", "gc=", "General_Category="):
                    add(prefix + alias, gc[fields[1]])
    for name in BINARY:
        add(name, merge(binary[name]))
        if name in SHORT:
            add(SHORT[name], merge(binary[name]))
    sc, scx, aliases = scripts()
    for long_name in sc:
        for alias in aliases[long_name]:
            for prefix in ("", "sc=", "Script="):
                add(prefix + alias, sc[long_name])
            for prefix in ("scx=", "Script_Extensions="):
                add(prefix + alias, scx[long_name])

    # What host names need in addition (RFC 5892, RFC 5893).
    for fields in rows("extracted/DerivedBidiClass.txt"):
        if fields[1] in ("R", "AL", "AN", "EN", "L", "NSM", "ES", "CS", "ET", "ON", "BN"):
            binary["bc=" + fields[1]].append(span(fields[0]))
    for fields in rows("extracted/DerivedJoiningType.txt"):
        if fields[1] in ("L", "R", "D", "T"):
            binary["jt=" + fields[1]].append(span(fields[0]))
    for fields in rows("extracted/DerivedCombiningClass.txt"):
        if fields[1] == "9":
            binary["ccc=9"].append(span(fields[0]))
    for name in sorted(name for name in binary if "=" in name):
        add(name, merge(binary[name]))
    add("IDNA2008_PVALID", idna_valid(gc, binary))

    offsets, ranges = {}, []
    for value in names.values():
        if value not in offsets:
            offsets[value] = len(ranges)
            ranges.extend(value)
    folds = sorted((int(f[0], 16), int(f[2], 16)) for f in rows("CaseFolding.txt") if f[1] in "CS")

    with open(os.path.join(FOLDER, "Scripts.txt"), encoding="utf-8") as file:
        version = file.readline().strip("# \n").removeprefix("Scripts-").removesuffix(".txt")
    print(f"// Generated by scripts/gen_unicode_tables.py from the Unicode Character Database {version}.")
    print("// Do not edit. Ranges are inclusive.")
    print(f"inline constexpr CodepointRange kPropertyRanges[{len(ranges)}] = {{")
    emit("".join(f"{{{lo},{hi}}}," for lo, hi in ranges))
    print("};")
    print(f"inline constexpr PropertyName kPropertyNames[{len(names)}] = {{")
    emit("".join(f'{{"{n}",{offsets[v]},{len(v)}}},' for n, v in sorted(names.items())))
    print("};")
    print(f"inline constexpr CaseFold kCaseFolds[{len(folds)}] = {{")
    emit("".join(f"{{{a},{b}}}," for a, b in folds))
    print("};")


def emit(text, width=100):
    """Prints `{..},{..},` broken into lines between elements."""
    line = ""
    for element in text.split("},"):
        if not element:
            continue
        element += "},"
        if len(line) + len(element) > width:
            print(line)
            line = ""
        line += element
    if line:
        print(line)


if __name__ == "__main__":
    main()
