"""Pawl's constraints as a Potential of genlm-control.

    import pawl, pawl.genlm
    from genlm.control import AWRS, PromptedLLM

    llm = PromptedLLM.from_name("gpt2")
    compiler = pawl.genlm.compiler_of(llm.vocab)
    potential = pawl.genlm.Potential(compiler.json_schema({"type": "integer"}), llm.vocab)
    sequences = await AWRS(llm, potential).smc(n_particles=10, ess_threshold=0.5, max_tokens=50)

A context weighs 0 (log 1) where it can still become a text of the grammar, else minus infinity.
`sparse_logw_next` gives the tokens that fit and nothing else, so that a step costs what the mask
costs and not what the vocabulary has.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

import pawl


def _bytes_of(token: Any) -> bytes:
    if isinstance(token, int):
        return bytes([token])
    if isinstance(token, str):
        return token.encode()
    return bytes(getattr(token, "byte_string", token))


def compiler_of(vocabulary: Sequence[Any], special: Sequence[int] = (), **options: Any) -> Any:
    """A compiler over a potential's vocabulary. A token's number is its place there, and the end has
    the number after the last. `special`: places of tokens that no text matches."""
    tokens: List[bytes] = [_bytes_of(token) for token in vocabulary]
    end = len(tokens)
    empty = [i for i, text in enumerate(tokens) if not text]
    return pawl.Compiler(
        pawl.Vocabulary([*tokens, b""], sorted({*special, *empty, end}), [end]), **options)


def _base() -> type:
    from genlm.control import Potential
    return Potential


class _Lazy(type):
    """genlm is imported when the first potential is made, not with this module."""

    _made: Optional[type] = None

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        if _Lazy._made is None:
            _Lazy._made = _make_class()
        return _Lazy._made(*arguments, **keywords)


class Potential(metaclass=_Lazy):
    """`grammar`: from compiler_of(vocabulary). `vocabulary`, `tables`: as genlm's Potential takes
    them. `kept`: how many contexts to remember the place of."""


def _make_class() -> type:
    base = _base()

    class PawlPotential(base):  # type: ignore[valid-type, misc]
        def __init__(self, grammar: Any, vocabulary: List[Any], *, tables: Any = None,
                     kept: int = 4096) -> None:
            super().__init__(vocabulary, tables=tables)
            if grammar.vocabulary_size != len(vocabulary) + 1:
                raise ValueError(f"the grammar is over {grammar.vocabulary_size} tokens; "
                                 f"pawl.genlm.compiler_of(vocabulary) makes one over "
                                 f"{len(vocabulary)} and the end")
            self.grammar, self.kept = grammar, kept
            self._start = pawl.Matcher(grammar)
            self._known: OrderedDict = OrderedDict()
            self._row = pawl.allocate_mask(1, grammar.vocabulary_size)

        def _at(self, context: Sequence[Any]) -> Any:
            """The matcher behind a context, or None where it leaves the grammar."""
            ids: Tuple[int, ...] = tuple(self.lookup[token] for token in context)
            length = len(ids)
            while length and ids[:length] not in self._known:
                length -= 1
            matcher = self._known[ids[:length]] if length else self._start
            for at in range(length, len(ids)):
                if matcher is not None:
                    matcher = matcher.copy()
                    if not matcher.accept(ids[at]):
                        matcher = None
                self._known[ids[:at + 1]] = matcher
            if ids:
                self._known.move_to_end(ids)
            while len(self._known) > self.kept:
                self._known.popitem(last=False)
            return matcher

        async def prefix(self, context: Sequence[Any]) -> float:
            return -math.inf if self._at(context) is None else 0.0

        async def complete(self, context: Sequence[Any]) -> float:
            matcher = self._at(context)
            return 0.0 if matcher is not None and matcher.accepting else -math.inf

        def _fits(self, context: Sequence[Any]) -> Tuple[Any, bool]:
            matcher = self._at(context)
            if matcher is None:
                raise ValueError(f"Context {context!r} has weight zero under `prefix`.")
            matcher.fill_mask(self._row)
            bits = np.unpackbits(self._row.view(np.uint8)[0], bitorder="little",
                                 count=len(self.vocab_eos))
            places = np.flatnonzero(bits)
            ends = bool(len(places)) and int(places[-1]) == len(self.vocab)
            return (places[:-1] if ends else places), ends

        async def sparse_logw_next(self, context: Sequence[Any]) -> Tuple[Any, float, float]:
            places, ends = self._fits(context)
            return places, 0.0, (0.0 if ends else -math.inf)

        async def logw_eos(self, context: Sequence[Any]) -> float:
            return await self.complete(context)

    return PawlPotential
