"""Masks as torch tensors."""

from __future__ import annotations

from typing import List, Tuple

import torch

from ..._masks import apply_mask, mask_shape
from . import numpy as _numpy
from ._matcher import LLExecutor, LLMatcher
from .numpy import consume_token_par

__all__ = ["allocate_token_bitmask", "apply_token_bitmask_inplace", "consume_token_par",
           "fill_next_token_bitmask", "fill_next_token_bitmask_par",
           "fill_next_token_bitmask_par_with_draft_tokens", "get_bitmask_shape"]

get_bitmask_shape = mask_shape


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    return torch.full(mask_shape(batch_size, vocab_size), -1, dtype=torch.int32,
                      pin_memory=torch.cuda.is_available())


def apply_token_bitmask_inplace(logits: torch.Tensor, mask: torch.Tensor) -> None:
    assert mask.dtype == torch.int32, "Mask must be int32"
    rows = 1 if mask.dim() == 1 else mask.shape[0]
    assert rows == (1 if logits.dim() == 1 else logits.shape[0]), "Batch size mismatch"
    apply_mask(logits, mask)


def fill_next_token_bitmask(interp: LLMatcher, bitmask: torch.Tensor, index: int = 0) -> None:
    _numpy.fill_next_token_bitmask(interp, bitmask.numpy(), index)


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: List[Tuple[LLMatcher, int]], bitmask: torch.Tensor
) -> None:
    _numpy.fill_next_token_bitmask_par(executor, matchers, bitmask.numpy())


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: List[Tuple[LLMatcher, int, List[int]]], bitmask: torch.Tensor
) -> None:
    _numpy.fill_next_token_bitmask_par_with_draft_tokens(executor, matchers, bitmask.numpy())
