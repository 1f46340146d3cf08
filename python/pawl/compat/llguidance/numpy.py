"""Masks as numpy arrays."""

from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np

from ..._masks import allocate_mask, apply_mask, mask_shape
from ._matcher import LLExecutor, LLMatcher

get_bitmask_shape = mask_shape
allocate_token_bitmask = allocate_mask


def apply_token_bitmask_inplace(logits: np.ndarray, mask: np.ndarray) -> None:
    assert mask.dtype == np.int32, "Mask must be int32"
    rows = 1 if mask.ndim == 1 else mask.shape[0]
    assert rows == (1 if logits.ndim == 1 else logits.shape[0]), "Batch size mismatch"
    apply_mask(logits, mask)


def _checked(bitmask: np.ndarray) -> np.ndarray:
    assert bitmask.dtype == np.int32, "Mask must be int32"
    assert bitmask.ndim == 2, "Mask must be 2D"
    assert bitmask.flags["C_CONTIGUOUS"], "Mask must be contiguous"
    return bitmask


def fill_next_token_bitmask(interp: LLMatcher, bitmask: np.ndarray, index: int = 0) -> None:
    row = _checked(bitmask)[index]
    interp.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: List[Tuple[LLMatcher, int]], bitmask: np.ndarray
) -> None:
    rows, words = _checked(bitmask).shape
    executor.unsafe_compute_mask_ptr(matchers, bitmask.ctypes.data, words * 4, rows)


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: List[Tuple[LLMatcher, int, List[int]]], bitmask: np.ndarray
) -> None:
    rows, words = _checked(bitmask).shape
    executor.unsafe_compute_mask_ptr_with_draft_token(
        matchers, bitmask.ctypes.data, words * 4, rows)


def consume_token_par(executor: LLExecutor, matchers: List[Tuple[LLMatcher, Any]]) -> List[bool]:
    return executor.consume_token_par(matchers)
