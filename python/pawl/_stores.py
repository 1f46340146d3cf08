"""Models by name: where the stores of this machine are."""

from __future__ import annotations

import functools
import os

from . import _pawl


@functools.lru_cache(maxsize=None)
def store_paths() -> _pawl.ModelPaths:
    """The stores that the environment names, which is read once."""
    return _pawl.ModelPaths({name: os.fsencode(value) for name, value in os.environ.items()})


def resolve_model(name: str) -> str:
    """The path of a model folder or a GGUF file: a path that exists, or the name of a model in a store."""
    return _pawl.resolve_model(name, store_paths())
