"""Process-wide settings of XGrammar. Pawl does not recurse on the depth of its input, so the depth is
kept for who asks for it and has no other effect."""

from __future__ import annotations

import contextlib
from typing import Iterator

from .tokenizer_info import SERIALIZATION_VERSION

_depth = 10_000


def get_max_recursion_depth() -> int:
    return _depth


def set_max_recursion_depth(max_recursion_depth: int) -> None:
    global _depth
    if not 0 < max_recursion_depth <= 1_000_000:
        raise RuntimeError("the depth must be between 1 and 1000000")
    _depth = max_recursion_depth


@contextlib.contextmanager
def max_recursion_depth(temp_depth: int) -> Iterator[None]:
    before = get_max_recursion_depth()
    set_max_recursion_depth(temp_depth)
    try:
        yield
    finally:
        set_max_recursion_depth(before)


def get_serialization_version() -> str:
    return SERIALIZATION_VERSION
