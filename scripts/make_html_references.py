#!/usr/bin/env python3
"""Writes src/input/html_references.inc: the named character references of HTML, out of Python's own table.

    scripts/make_html_references.py > src/input/html_references.inc
"""

from html.entities import html5


def literal(text):
    out = ""
    for char in text:
        plain = 32 <= ord(char) < 127 and char not in '"\\?'
        out += char if plain else "".join(f"\\{byte:03o}" for byte in char.encode())
    return f'"{out}"'


def main():
    print("// Written by scripts/make_html_references.py: sorted by name.")
    line = ""
    for name in sorted(html5, key=str.encode):
        entry = f"{{{literal(name)}, {literal(html5[name])}}}, "
        if len(line) + len(entry) > 118:
            print(line.rstrip())
            line = ""
        line += entry
    print(line.rstrip())


main()
