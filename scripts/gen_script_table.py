#!/usr/bin/env python3
"""Writes src/text/unicode_scripts.inc from the files of the Unicode Character Database.

    python3 scripts/gen_script_table.py [UCD_FOLDER] > src/text/unicode_scripts.inc

UCD_FOLDER holds Scripts.txt and DerivedAge.txt (Debian and Ubuntu: package unicode-data, in
/usr/share/unicode). The table is that of the pre-tokenizer "UnicodeScripts" of Hugging Face's library, which
has the scripts of Unicode 9.0: characters that are younger have none, and four have changed theirs since.
Hiragana, Katakana and U+30FC count as Han, and a space as no script.
"""
import os
import sys

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode"
VERSION = (9, 0)
THEN = {0x589: "Common", 0x61C: "Common", 0x953: "Devanagari", 0x954: "Devanagari"}


def rows(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                span, value = [field.strip() for field in line.split(";")]
                first, _, last = span.partition("..")
                yield range(int(first, 16), int(last or first, 16) + 1), value


def main():
    old = set()
    for span, age in rows("DerivedAge.txt"):
        if tuple(int(n) for n in age.split(".")) <= VERSION:
            old.update(span)
    script = {c: name for span, name in rows("Scripts.txt") for c in span if c in old}
    script.update(THEN)
    for c, name in script.items():
        if name in ("Hiragana", "Katakana") or c == 0x30FC:
            script[c] = "Han"
    del script[ord(" ")]
    names = sorted(set(script.values()))
    ranges = []
    for c in sorted(script):
        number = names.index(script[c])
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == number:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, number])
    print("// Written by scripts/gen_script_table.py; do not edit.")
    print(f"constexpr ScriptRange kScriptRanges[{len(ranges)}] = {{")
    line = "   "
    for first, last, number in ranges:
        item = f" {{0x{first:X}, 0x{last:X}, {number}}},"
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")


if __name__ == "__main__":
    main()
