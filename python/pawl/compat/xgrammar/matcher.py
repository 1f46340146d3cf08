"""GrammarMatcher, and masks as torch tensors."""

from __future__ import annotations

import time
import warnings
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch

from ... import _pawl
from ..._errors import PawlError
from .compiler import CompiledGrammar

bitmask_dtype = torch.int32


def get_bitmask_shape(batch_size: int, vocab_size: int) -> Tuple[int, int]:
    return batch_size, (vocab_size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=bitmask_dtype)


def reset_token_bitmask(bitmask: torch.Tensor) -> None:
    bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    *,
    vocab_size: Optional[int] = None,
    indices: Optional[Sequence[int]] = None,
    backend: str = "auto",
) -> None:
    """Sets what the mask forbids to -inf. Logits beyond the mask stay as they are, as in XGrammar;
    pawl.apply_mask forbids them."""
    if backend not in ("auto", "cpu", "cuda", "triton", "torch_compile", "torch_native"):
        raise ValueError(f"there is no backend {backend!r}")
    if bitmask.device != logits.device:
        raise ValueError(f"the logits are on {logits.device}, the mask is on {bitmask.device}")
    if logits.dim() != bitmask.dim():
        raise ValueError("the logits and the mask must have the same number of dimensions")
    covered = bitmask.shape[-1] * 32
    if vocab_size is None and covered < logits.shape[-1]:
        warnings.warn(f"The bitmask covers only {covered} tokens but logits have "
                      f"{logits.shape[-1]}; the others are left unmasked.", stacklevel=2)
    width = min(logits.shape[-1], covered, vocab_size if vocab_size is not None else covered)
    rows = logits.unsqueeze(0) if logits.dim() == 1 else logits
    words = bitmask.reshape(-1, bitmask.shape[-1])
    if indices is None and rows.shape[0] != words.shape[0]:
        raise ValueError(f"{rows.shape[0]} rows of logits, {words.shape[0]} of the mask")
    token = torch.arange(width, device=logits.device)
    for row in range(rows.shape[0]) if indices is None else indices:
        bits = words[row][token // 32] >> (token % 32).to(torch.int32)
        rows[row, :width].masked_fill_((bits & 1) == 0, float("-inf"))


def _fill_errors(error: Exception) -> RuntimeError:
    return RuntimeError(str(error))


class GrammarMatcher:
    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: Optional[Union[int, List[int]]] = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: Optional[float] = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError("a GrammarMatcher is made of a CompiledGrammar")
        if max_rollback_tokens != -1:
            warnings.warn("max_rollback_tokens has no effect: there is no limit",
                          DeprecationWarning, stacklevel=2)
        if isinstance(override_stop_tokens, int):
            override_stop_tokens = [override_stop_tokens]
        info = compiled_grammar.tokenizer_info
        self._compiled = compiled_grammar
        self._stop = info.stop_token_ids if override_stop_tokens is None else override_stop_tokens
        self._terminate_without_stop_token = terminate_without_stop_token
        if default_temperature is not None and not 0 <= default_temperature < float("inf"):
            raise RuntimeError("default_temperature must be a finite non-negative number")
        self._default_temperature = default_temperature
        try:
            self._native = _pawl.Matcher(compiled_grammar._native, override_stop_tokens)
        except PawlError as error:
            raise RuntimeError(str(error)) from error

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        return self._native.accept(token_id)

    def accept_string(self, input_str: Union[str, bytes], *, debug_print: bool = False) -> bool:
        return self._native.accept_bytes(input_str)

    def fill_next_token_bitmask(
        self, bitmask: Any, index: int = 0, *, debug_print: bool = False
    ) -> bool:
        if self._native.terminated:
            raise RuntimeError("the matcher has terminated; there is no next token")
        try:
            self._native.fill_mask(bitmask, index)
        except (TypeError, ValueError, IndexError) as error:
            raise _fill_errors(error) from error
        words = np.asarray(bitmask).reshape(-1, bitmask.shape[-1])[index]
        size = self._compiled.tokenizer_info.vocab_size
        whole, rest = divmod(size, 32)
        full = bool((words[:whole] == -1).all())
        return not (full and (rest == 0 or int(words[whole]) == (1 << rest) - 1))

    def traverse_draft_tree(
        self,
        retrieve_next_token: torch.Tensor,
        retrieve_next_sibling: torch.Tensor,
        draft_tokens: torch.Tensor,
        token_bitmask: torch.Tensor,
        time_threshold: float = -1.0,
        temperatures: Optional[torch.Tensor] = None,
    ) -> bool:
        """Node 0 is the token verified last. False when it took longer than `time_threshold`
        seconds (above 0); the masks are then complete nevertheless."""
        began = time.monotonic()
        try:
            tokens = draft_tokens.tolist()
            parents = _pawl.draft_tree_parents(retrieve_next_token.tolist(),
                                               retrieve_next_sibling.tolist())
            size = self._compiled.tokenizer_info.vocab_size
            if len(tokens) != len(parents) or token_bitmask.shape[0] < len(tokens):
                raise RuntimeError("the tensors have different lengths")
            if any(not 0 <= token < size for token in tokens[1:]):
                return self._traverse_with_strangers(tokens, parents, token_bitmask)
            if temperatures is not None and (
                    temperatures.dtype != torch.float32 or temperatures.dim() != 1
                    or temperatures.shape[0] < len(tokens)):
                raise RuntimeError("the temperatures tensor must be 1D, float32, one for each node")
            if tokens:
                tokens[0] = -1
            self._native.fill_tree_masks(tokens, parents, token_bitmask)
        except (TypeError, ValueError, IndexError) as error:
            raise _fill_errors(error) from error
        if temperatures is not None:
            for node in range(len(tokens)):
                temperatures[node] = self._temperature_at(node, tokens, parents)
        return time_threshold <= 0 or time.monotonic() - began <= time_threshold

    def _temperature_at(self, node: int, tokens: List[int], parents: List[int]) -> float:
        """Of a node of a tree of drafts; -1: none, or the node is refused."""
        path = []
        while node > 0:
            path.append(tokens[node])
            node = parents[node]
        other = self.fork()
        if not all(other.accept_token(token) for token in reversed(path)):
            return -1.0
        return -1.0 if other.temperature is None else other.temperature

    def _traverse_with_strangers(
        self, tokens: List[int], parents: List[int], bitmask: torch.Tensor
    ) -> bool:
        """Nodes whose tokens the vocabulary lacks, and what hangs below them, get empty rows."""
        kept: List[int] = []
        place = {-1: -1}
        size = self._compiled.tokenizer_info.vocab_size
        for node, token in enumerate(tokens):
            if parents[node] in place and (node == 0 or 0 <= token < size):
                place[node] = len(kept)
                kept.append(node)
        rows = torch.zeros(len(kept), bitmask.shape[1], dtype=bitmask_dtype)
        self._native.fill_tree_masks([-1 if node == 0 else tokens[node] for node in kept],
                                     [place[parents[node]] for node in kept], rows)
        bitmask[: len(tokens)] = 0
        bitmask[kept] = rows
        return True

    def find_jump_forward_string(self) -> str:
        forced = self._native.forced_bytes(1 << 16)
        # A character that is forced only in part is left to the tokens.
        return forced.decode("utf-8", "ignore") if not forced.isascii() else forced.decode()

    def rollback(self, num_tokens: int = 1) -> None:
        try:
            self._native.rollback(num_tokens)
        except IndexError as error:
            raise RuntimeError(str(error)) from None

    def is_terminated(self) -> bool:
        if self._terminate_without_stop_token:
            return self._native.accepting
        return self._native.terminated

    def is_completed(self) -> bool:
        return self._native.accepting

    def reset(self) -> None:
        self._native.reset()

    def fork(self) -> "GrammarMatcher":
        other = object.__new__(GrammarMatcher)
        other.__dict__.update(self.__dict__)
        other._native = self._native.copy()
        return other

    @property
    def max_rollback_tokens(self) -> int:
        return -1

    @property
    def temperature(self) -> Optional[float]:
        asked = None if self._native.terminated else self._native.temperature
        return self._default_temperature if asked is None else asked

    def get_captures(self, *, deduplicate: bool = True) -> List[Tuple[str, bytes]]:
        """Those of the derivation that pawl/grammar.h prefers, each once; XGrammar's events of
        other readings (deduplicate=False) do not exist here."""
        try:
            return [(name, text) for name, _, _, text in self._native.captures()]
        except PawlError as error:
            if error.code == "unsupported":  # nothing short completes it: nothing is settled
                return []
            raise RuntimeError(str(error)) from error

    @property
    def stop_token_ids(self) -> List[int]:
        return list(self._stop)

    def _debug_print_internal_state(self) -> str:
        return (f"steps {self._native.steps}, accepting {self._native.accepting}, "
                f"forced {self._native.forced_bytes()!r}")


class BatchGrammarMatcher:
    def __init__(self, max_threads: Union[int, str] = "auto") -> None:
        if max_threads != "auto" and not (isinstance(max_threads, int) and max_threads >= 1):
            raise RuntimeError("max_threads must be \"auto\" or at least 1")
        self._filler = _pawl.BatchFiller(0 if max_threads == "auto" else max_threads)

    def batch_fill_next_token_bitmask(
        self,
        matchers: List[GrammarMatcher],
        bitmask: Any,
        indices: Optional[List[int]] = None,
        debug_print: bool = False,
    ) -> None:
        if any(matcher._native.terminated for matcher in matchers):
            raise RuntimeError("a matcher has terminated; there is no next token")
        try:
            self._filler.fill([matcher._native for matcher in matchers], bitmask, indices)
        except (TypeError, ValueError, IndexError) as error:
            raise _fill_errors(error) from error

    @staticmethod
    def batch_fill_temperature(
        matchers: List[GrammarMatcher],
        temperatures: torch.Tensor,
        indices: Optional[List[int]] = None,
    ) -> None:
        where = list(range(len(matchers))) if indices is None else indices
        if len(where) != len(matchers):
            raise RuntimeError("the indices size differs from the number of matchers")
        if temperatures.dtype != torch.float32 or temperatures.dim() != 1:
            raise RuntimeError("the temperatures tensor must be 1D and float32")
        for matcher, index in zip(matchers, where):
            if not 0 <= index < temperatures.shape[0]:
                raise RuntimeError(f"the index {index} is out of bounds")
            temperature = matcher.temperature
            temperatures[index] = -1 if temperature is None else temperature

    @staticmethod
    def batch_accept_token(
        matchers: List[GrammarMatcher], tokens: List[int], debug_print: bool = False
    ) -> List[bool]:
        _same_length(matchers, tokens)
        return [matcher.accept_token(token) for matcher, token in zip(matchers, tokens)]

    @staticmethod
    def batch_accept_string(
        matchers: List[GrammarMatcher],
        strings: List[Union[str, bytes]],
        debug_print: bool = False,
    ) -> List[bool]:
        _same_length(matchers, strings)
        return [matcher.accept_string(text) for matcher, text in zip(matchers, strings)]

    @staticmethod
    def batch_rollback(
        matchers: List[GrammarMatcher], num_tokens: Union[List[int], int] = 1
    ) -> None:
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        _same_length(matchers, counts)
        for matcher, count in zip(matchers, counts):
            matcher.rollback(count)


def _same_length(matchers: Sequence[Any], others: Sequence[Any]) -> None:
    if len(matchers) != len(others):
        raise RuntimeError(f"{len(matchers)} matchers, but {len(others)} values")
