"""Vocabularies from the tokenizers of others, and how these write bytes in the names of their tokens."""

from __future__ import annotations

import os
import re
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Union

from . import _pawl
from ._errors import PawlError

RAW = "raw"
BYTE_FALLBACK = "byte_fallback"  # "<0x0A>", "▁word"
BYTE_LEVEL = "byte_level"  # each byte as a printable character, "Ġword"


def _alphabet() -> Dict[str, int]:
    """GPT-2's characters for bytes: printable Latin-1 stands for itself, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + i): byte for i, byte in enumerate(others)})
    return table


_BYTE_OF = _alphabet()
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


def detect_encoding(names: Union[Mapping[str, int], Iterable[str]]) -> str:
    """From the names alone: 256 byte tokens, or single characters for most bytes."""
    known = set(names)
    if sum(f"<0x{byte:02X}>" in known for byte in range(256)) >= 128:
        return BYTE_FALLBACK
    if sum(character in known for character in _BYTE_OF) >= 128 and "Ġ" in known:
        return BYTE_LEVEL
    if any(name.startswith("Ġ") for name in known) and not any(" " in name for name in known):
        return BYTE_LEVEL
    if any(name.startswith("▁") for name in known):
        return BYTE_FALLBACK
    return RAW


def bytes_of_token(name: Union[str, bytes], encoding: str) -> bytes:
    if isinstance(name, bytes):
        if encoding == RAW:
            return name
        try:
            return bytes_of_token(name.decode("utf-8"), encoding)
        except UnicodeDecodeError:
            return name
    if encoding == BYTE_FALLBACK:
        match = _BYTE_TOKEN.match(name)
        if match:
            return bytes([int(match.group(1), 16)])
        return name.replace("▁", " ").encode("utf-8", "surrogatepass")
    if encoding == BYTE_LEVEL:
        try:
            return bytes(_BYTE_OF[character] for character in name)
        except KeyError:  # an added token stands for itself
            pass
    return name.encode("utf-8", "surrogatepass")


def bytes_of_tokens(
    names: Iterable[Union[str, bytes]], encoding: str, verbatim: Collection[int] = ()
) -> List[bytes]:
    """`verbatim`: tokens whose names are their text (added and special ones)."""
    return [
        bytes_of_token(name, RAW if index in verbatim else encoding)
        for index, name in enumerate(names)
    ]


Vocabulary = _pawl.Vocabulary


def _from_tokenizer_json(
    path: "os.PathLike[str] | str",
    *,
    padded_size: int = 0,
    end_tokens: Optional[Iterable[int]] = None,
) -> _pawl.Vocabulary:
    """From a tokenizer.json or the folder that holds one. tokenizer_config.json and
    generation_config.json next to it tell the end tokens, when `end_tokens` does not.
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
