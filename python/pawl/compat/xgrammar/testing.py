"""Helpers for tests, with XGrammar's names."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple, Union

import numpy as np
import torch

from .compiler import GrammarCompiler
from .grammar import Grammar
from .matcher import GrammarMatcher, bitmask_dtype
from .tokenizer_info import TokenizerInfo


def _get_matcher_from_grammar(grammar: Union[Grammar, str], **kwargs: Any) -> GrammarMatcher:
    return _get_matcher_from_grammar_and_tokenizer_info(
        grammar, TokenizerInfo([]), terminate_without_stop_token=True, **kwargs)


def _get_matcher_from_grammar_and_tokenizer_info(
    grammar: Union[Grammar, str], tokenizer_info: Optional[TokenizerInfo] = None, **kwargs: Any
) -> GrammarMatcher:
    info = TokenizerInfo([]) if tokenizer_info is None else tokenizer_info
    return GrammarMatcher(
        GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar), **kwargs)


def _is_grammar_accept_string(
    grammar: Union[Grammar, str],
    input_str: Union[str, bytes],
    *,
    debug_print: bool = False,
    print_time: bool = False,
    require_termination: bool = True,
) -> bool:
    matcher = _get_matcher_from_grammar(grammar)
    if not matcher.accept_string(input_str):
        return False
    return not require_termination or matcher.is_terminated()


def _bits(bitmask: torch.Tensor, vocab_size: int, index: int) -> np.ndarray:
    words = np.ascontiguousarray(bitmask.numpy().reshape(-1, bitmask.shape[-1])[index])
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:vocab_size]


def _get_masked_tokens_from_bitmask(
    bitmask: torch.Tensor, vocab_size: int, index: int = 0
) -> List[int]:
    if bitmask.device.type != "cpu":
        raise ValueError("the mask must be on the CPU")
    if bitmask.dtype != bitmask_dtype:
        raise ValueError(f"the mask must have the type {bitmask_dtype}")
    return np.flatnonzero(_bits(bitmask, vocab_size, index) == 0).tolist()


def _is_single_token_bitmask(
    bitmask: torch.Tensor, vocab_size: int, index: int = 0
) -> Tuple[bool, int]:
    allowed = np.flatnonzero(_bits(bitmask, vocab_size, index))
    return (True, int(allowed[0])) if len(allowed) == 1 else (False, -1)


def bool_mask_to_bitmask(bool_mask: torch.Tensor) -> torch.Tensor:
    """Bits beyond the last token become 1."""
    rows = bool_mask.cpu().numpy().astype(np.uint8)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 32)), constant_values=1)
    words = np.packbits(rows, axis=1, bitorder="little").view(np.int32)
    return torch.from_numpy(words.copy()).to(bool_mask.device)


def bitmask_to_bool_mask(bit_mask: torch.Tensor, vocab_size: Optional[int] = None) -> torch.Tensor:
    if bit_mask.device.type != "cpu":
        raise ValueError("the mask must be on the CPU")
    if bit_mask.dtype != bitmask_dtype:
        raise ValueError(f"the mask must have the type {bitmask_dtype}")
    size = bit_mask.shape[1] * 32 if vocab_size is None else vocab_size
    if size > bit_mask.shape[1] * 32:
        raise ValueError("the vocabulary is larger than the mask")
    rows = np.ascontiguousarray(bit_mask.numpy()).view(np.uint8)
    return torch.from_numpy(np.unpackbits(rows, axis=1, bitorder="little")[:, :size] != 0)


def _traverse_draft_tree(
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    draft_tokens: torch.Tensor,
    matcher: GrammarMatcher,
    allocate_token_bitmask: torch.Tensor,
    time_threshold: float = -1.0,
) -> bool:
    return matcher.traverse_draft_tree(retrieve_next_token, retrieve_next_sibling, draft_tokens,
                                       allocate_token_bitmask, time_threshold)
