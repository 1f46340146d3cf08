"""Texts that the model is measured on or shown with: hashes of them and of their sentences, so that training has none.

The texts are those of bench/extract, the hand-written ones of the model and of development, those of commands in README.md and
docs/, and those of examples/.
"""

import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def digest(text: str) -> bytes:
    return hashlib.sha256(" ".join(re.findall(r"\w+", text.lower())).encode()).digest()[:8]


def digests(text: str) -> set[bytes]:
    """Of the text and of its lines and sentences with five words or more."""
    parts = re.split(r"[\n.!?]+\s", text + "\n")
    return {digest(text)} | {digest(part) for part in parts if len(part.split()) >= 5}


def texts():
    for file in [*sorted((ROOT / "bench/extract").glob("*.jsonl")), ROOT / "models/tiny-extract/eval/handwritten.jsonl",
                 ROOT / "scripts/tiny_extract/development.jsonl"]:
        yield from (json.loads(line)["text"] for line in file.read_text().splitlines() if line.strip())
    yield from (file.read_text() for file in sorted((ROOT / "examples").glob("*.txt")))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        yield from (text for text in re.findall(r'--text "([^"]+)"', page.read_text()) if len(text.split()) > 1)


@lru_cache(maxsize=1)
def kept() -> set[bytes]:
    return set().union(*map(digests, texts()))


def is_kept(text: str) -> bool:
    return not kept().isdisjoint(digests(text))
