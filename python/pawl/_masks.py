"""Arrays for masks, and masks upon logits. Bit i of word i // 32 is 1 when token i is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Tuple

from ._errors import PawlError

if TYPE_CHECKING:  # imported by the first mask: half of the time that `import pawl` would take
    import numpy as np


def mask_words(vocab_size: int) -> int:
    """Words of 32 bits in one row."""
    return (vocab_size + 31) // 32


def mask_shape(batch: int, vocab_size: int) -> Tuple[int, int]:
    return batch, mask_words(vocab_size)


def allocate_mask(batch: int, vocab_size: int) -> np.ndarray:
    """`batch` rows that allow every token, as int32 (torch.from_numpy shares the memory)."""
    import numpy as np

    return np.full(mask_shape(batch, vocab_size), -1, dtype=np.int32)


def _allowed(mask: np.ndarray, width: int) -> np.ndarray:
    """Booleans of shape (rows, width); what is beyond the mask is not allowed."""
    import numpy as np

    rows = np.ascontiguousarray(mask).view(np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little", count=min(width, rows.shape[1] * 8))
    allowed = np.zeros((mask.shape[0], width), dtype=bool)
    allowed[:, : bits.shape[1]] = bits
    return allowed


def _check_rows(logits: Any, mask: Any) -> None:
    shapes = tuple(logits.shape), tuple(mask.shape)
    rows, masks = (1 if len(shape) == 1 else shape[0] if len(shape) == 2 else None
                   for shape in shapes)
    # Reshaping would deal out the words of other rows.
    if rows is None or rows != masks:
        raise PawlError("invalid", f"the logits have the shape {shapes[0]}, the mask {shapes[1]}; it "
                                   "needs a row for each row of the logits")


def apply_mask(logits: Any, mask: Any) -> None:
    """Sets the logits of tokens that are not allowed to -inf, in place.

    `logits` is a numpy array or a torch tensor (on any device) of shape (rows, width) or (width,),
    `mask` has a row for each of its rows, (words,) being one row. Logits beyond the mask belong to no
    token and become -inf too.
    """
    import numpy as np

    if isinstance(logits, np.ndarray):
        bits = np.asarray(mask)
        _check_rows(logits, bits)
        view = logits.reshape(1, -1) if logits.ndim == 1 else logits
        view[~_allowed(bits.reshape(view.shape[0], bits.shape[-1]), view.shape[1])] = -np.inf
        return
    import torch  # type: ignore[import-not-found,unused-ignore]

    bits = mask if isinstance(mask, torch.Tensor) else torch.from_numpy(np.asarray(mask))
    _check_rows(logits, bits)
    view = logits.unsqueeze(0) if logits.dim() == 1 else logits
    bits = bits.reshape(view.shape[0], bits.shape[-1]).to(view.device).view(torch.int32)
    index = torch.arange(bits.shape[1] * 32, device=view.device)
    allowed = (bits[:, index // 32] >> (index % 32).to(torch.int32)) & 1 != 0
    width = min(view.shape[1], allowed.shape[1])
    view[:, :width].masked_fill_(~allowed[:, :width], float("-inf"))
    view[:, width:].fill_(float("-inf"))
