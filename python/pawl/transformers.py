"""LogitsProcessor: constraints for model.generate of the library transformers.

    processor = pawl.transformers.LogitsProcessor(grammar)
    model.generate(**inputs, logits_processor=[processor])

One grammar for all rows, or a list with one for each prompt (None: no constraint). Each row's place
in its grammar is found from the row's own tokens, with the places of all prefixes kept, so that rows
may be reordered (beam search), repeated or dropped between two steps. One processor serves one call
of generate.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch

from . import _pawl
from ._masks import allocate_mask, apply_mask


class LogitsProcessor:
    """`end_tokens`: in place of the vocabulary's. `prompt_length`: how many tokens of each row come
    before the output; by default those of the first call, which generate makes with the prompts
    alone, padding included. With a list of grammars, a prompt may have several rows (num_beams,
    num_return_sequences)."""

    def __init__(
        self,
        grammar: Union[_pawl.Grammar, Sequence[Optional[_pawl.Grammar]]],
        *,
        end_tokens: Optional[Sequence[int]] = None,
        prompt_length: Optional[int] = None,
        threads: int = 0,
    ) -> None:
        grammars = [grammar] if isinstance(grammar, _pawl.Grammar) else list(grammar)
        if not grammars:
            raise ValueError("there must be a grammar")
        self._starts = [
            None if one is None else _pawl.Matcher(one, None if end_tokens is None
                                                   else list(end_tokens))
            for one in grammars
        ]
        self._sizes = [0 if one is None else one.vocabulary_size for one in grammars]
        self._prompt_length = prompt_length
        self._filler = _pawl.BatchFiller(threads)
        # What the rows of the step before have written, for each grammar: None after a token that
        # did not fit (padding of a finished row, or a token that another processor forced).
        self._known: Dict[Tuple[int, Tuple[int, ...]], Optional[_pawl.Matcher]] = {}

    def _matcher(self, index: int, output: Tuple[int, ...]) -> Optional[_pawl.Matcher]:
        start = self._starts[index]
        if start is None:
            return None
        # The longest prefix that is known; from step to step that is all but the last token.
        length = len(output)
        while length and (index, output[:length]) not in self._known:
            length -= 1
        matcher = self._known[index, output[:length]] if length else start
        for at in range(length, len(output)):
            if matcher is None:
                return None
            matcher = matcher.copy()
            if not matcher.accept(output[at]):
                matcher = None
        return matcher

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        rows = input_ids.shape[0]
        if self._prompt_length is None:
            self._prompt_length = input_ids.shape[1]
        if rows % len(self._starts):
            raise ValueError(f"{rows} rows for {len(self._starts)} grammars")
        each = rows // len(self._starts)
        outputs = [tuple(row) for row in input_ids[:, self._prompt_length:].tolist()]
        known: Dict[Tuple[int, Tuple[int, ...]], Optional[_pawl.Matcher]] = {}
        matchers: List[Optional[_pawl.Matcher]] = []
        for row, output in enumerate(outputs):
            index = row // each
            key = index, output
            if key not in known:
                known[key] = self._matcher(index, output)
            matchers.append(known[key])
        self._known = known
        # Rows that have ended, or that have no constraint, keep their scores: generate itself writes
        # padding after the end.
        live = [row for row, matcher in enumerate(matchers)
                if matcher is not None and not matcher.terminated]
        if not live:
            return scores
        mask = allocate_mask(len(live), max(max(self._sizes), scores.shape[1]))
        # Beams that wrote the same share a matcher, which is fine: filling does not change it.
        empty = self._filler.fill([matchers[row] for row in live], mask)
        if empty:
            raise RuntimeError("a row has no token that fits its grammar")
        where = torch.tensor(live, device=scores.device)
        chosen = scores.index_select(0, where)
        apply_mask(chosen, mask)
        return scores.index_copy(0, where, chosen)
