#!/usr/bin/env python3
"""Compares the text of HTML pages with that of BeautifulSoup, and the places of words with the files.

    scripts/check_html_text.py [--build BUILD] [--limit 200] [--seed 1] [FOLDER or FILE ...]

Needs bs4 (pip install beautifulsoup4) and BUILD/bin/html_tool (ninja -C BUILD html_tool). For each page: the text
equals BeautifulSoup(page, "html.parser").get_text(), white space aside; and each word stands at its place: the bytes of
the file there, read by BeautifulSoup, are the word. Without arguments: pages of /usr/share/doc.
"""

import argparse
import json
import random
import subprocess
import sys
import warnings
from pathlib import Path

from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning

warnings.filterwarnings("ignore", category=MarkupResemblesLocatorWarning)

CUT = 300  # pages at a time


def squeezed(text):
    return "".join(text.split())


def decoded(data):
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("windows-1252", "replace")


def places_wrong(data, text, words):
    """Words whose place in the file has another text."""
    wrong = []
    raw = text.encode()
    for begin, end, file_begin, file_end in words:
        word = raw[begin:end].decode()
        piece = decoded(data[file_begin:file_end])
        plain = piece == word
        if not plain and squeezed(BeautifulSoup(piece, "html.parser").get_text()) != squeezed(word):
            wrong.append((word, piece))
    return wrong


def pages_of(paths):
    for path in map(Path, paths):
        yield from sorted(p for p in path.rglob("*") if p.suffix in (".html", ".htm")) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("paths", nargs="*", default=["/usr/share/doc"])
    args = parser.parse_args()
    pages = [page for page in pages_of(args.paths) if page.is_file()]
    random.Random(args.seed).shuffle(pages)
    pages = pages[:args.limit]
    equal = words_all = words_wrong = 0
    for first in range(0, len(pages), CUT):
        some = pages[first:first + CUT]
        lines = subprocess.run([f"{args.build}/bin/html_tool", *some], capture_output=True, text=True, check=True).stdout
        for page, line in zip(some, lines.splitlines()):
            data = page.read_bytes()
            read = json.loads(line)
            if "error" in read:
                print(f"{page}: {read['error']}")
                continue
            wanted = squeezed(BeautifulSoup(decoded(data), "html.parser").get_text())
            got = squeezed(read["text"])
            if got == wanted:
                equal += 1
            else:
                at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
                print(f"{page}: differs at {at}: {got[at - 20:at + 40]!r}, not {wanted[at - 20:at + 40]!r}")
            wrong = places_wrong(data, read["text"], read["words"])
            words_all += len(read["words"])
            words_wrong += len(wrong)
            for word, piece in wrong[:3]:
                print(f"{page}: {word!r} is at {piece!r}")
    print(f"{len(pages)} pages: {equal} with equal text; {words_all} words, {words_wrong} of them not at their place")
    return 0 if equal == len(pages) and words_wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
