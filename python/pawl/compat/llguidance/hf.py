"""Tokenizers of the library transformers."""

from __future__ import annotations

from typing import Any, Iterable, List, Optional, Union

from ._tokenizer import LLTokenizer


def from_tokenizer(
    hf_tokenizer: Any,
    n_vocab: Optional[int] = None,
    eos_token: Optional[Union[int, Iterable[int]]] = None,
    slices: Optional[List[str]] = None,
) -> LLTokenizer:
    return LLTokenizer(hf_tokenizer, n_vocab=n_vocab, eos_token=eos_token, slices=slices)
