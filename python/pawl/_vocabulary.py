"""Vocabularies from the tokenizers of others."""

from __future__ import annotations

import os
from typing import Any, Iterable, List, Optional

from . import _pawl
from ._errors import PawlError
from ._tokens import bytes_of_tokens, detect_encoding


Vocabulary = _pawl.Vocabulary


def _from_tokenizer_json(
    path: "os.PathLike[str] | str",
    *,
    padded_size: int = 0,
    end_tokens: Optional[Iterable[int]] = None,
) -> _pawl.Vocabulary:
    """From a tokenizer.json or the folder that holds one. tokenizer_config.json and
    generation_config.json beside it tell the end tokens, when `end_tokens` does not.
    `padded_size`: the width of the model's logits, when that is more."""
    vocabulary = _pawl.Tokenizer.from_file(os.fspath(path)).vocabulary(padded_size)
    return vocabulary if end_tokens is None else _with_end_tokens(vocabulary, end_tokens)


def _from_huggingface(
    tokenizer: Any,
    *,
    padded_size: int = 0,
    end_tokens: Optional[Iterable[int]] = None,
) -> _pawl.Vocabulary:
    """From a tokenizer of the library transformers, fast or slow."""
    if end_tokens is None:
        end = getattr(tokenizer, "eos_token_id", None)
        end_tokens = [] if end is None else [end] if isinstance(end, int) else list(end)
    end_tokens = list(end_tokens)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        try:
            native = _pawl.Tokenizer.from_json(backend.to_str())
            return _with_end_tokens(
                native.vocabulary(max(padded_size, len(native)) if padded_size else 0),
                end_tokens,
            )
        except PawlError as error:
            if error.code != "unsupported":
                raise
    names = tokenizer.get_vocab()
    size = max(max(names.values()) + 1, padded_size)
    tokens: List[str] = [""] * size
    for name, index in names.items():
        tokens[index] = name
    special = set(getattr(tokenizer, "all_special_ids", ())) | set(end_tokens)
    plain = {i for i, added in getattr(tokenizer, "added_tokens_decoder", {}).items()
             if not added.special}
    encoded = bytes_of_tokens(tokens, detect_encoding(names), verbatim=special | plain)
    special |= {i for i, text in enumerate(encoded) if not text}
    return Vocabulary(encoded, sorted(special), end_tokens)


def _with_end_tokens(vocabulary: _pawl.Vocabulary, end_tokens: Iterable[int]) -> _pawl.Vocabulary:
    end = sorted(set(end_tokens))
    if end == sorted(vocabulary.end_tokens):
        return vocabulary
    tokens = [vocabulary.bytes(i) for i in range(len(vocabulary))]
    return Vocabulary(tokens, sorted(set(vocabulary.special) | set(end)), end)


# The class is native; these constructors are not.
Vocabulary.from_tokenizer_json = staticmethod(_from_tokenizer_json)  # type: ignore[method-assign]
Vocabulary.from_huggingface = staticmethod(_from_huggingface)  # type: ignore[method-assign]
