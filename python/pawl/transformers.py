"""LogitsProcessor: constraints for model.generate of the library transformers.

    processor = pawl.transformers.LogitsProcessor(grammar)
    model.generate(**inputs, logits_processor=[processor])

One grammar for all rows, or a list with one for each prompt (None: no constraint). Each row's place
in its grammar is found from the row's own tokens, so that rows may be reordered (beam search),
repeated, dropped or cut back (assisted generation) between two steps. One processor serves any number
of calls of generate, one after the other: rows that do not go on from those of the step before are the
prompts of a new one.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch

from . import _pawl
from ._masks import allocate_mask, apply_mask


class LogitsProcessor:
    """`end_tokens`: in place of the vocabulary's. `prompt_length`: how many tokens of each row come
    before the output; by default those of the first step of each call of generate, which has the
    prompts alone, padding included. With a list of grammars, a prompt may have several rows
    (num_beams, num_return_sequences). A row with a token that its grammar refuses may only end: it
    has ended already and is being padded, or another processor forced the token."""

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
        self._prompt_is_given = prompt_length is not None
        self._end_tokens = [
            [] if one is None else list(one.end_tokens if end_tokens is None
                                        else end_tokens)
            for one in grammars
        ]
        # The rows of the step before.
        self._rows: List[Tuple[int, ...]] = []
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
            if matcher is None or matcher.terminated:
                return matcher
            matcher = matcher.copy()
            if not matcher.accept(output[at]):
                matcher = None
        return matcher

    def _begin(self, rows: List[Tuple[int, ...]], each: int) -> None:
        """Takes the rows for the prompts of a new generate unless each goes on from a row that its
        grammar had in the step before: with one more token, or from where it was cut back to."""
        before = self._rows
        self._rows = rows
        length = len(rows[0])
        each_before = len(before) // len(self._starts)
        goes_on = bool(before) and length > (self._prompt_length or 0) and all(
            any(old[:length - 1] == row[:length - 1] and len(old) >= length - 1
                for old in before[at // each * each_before:(at // each + 1) * each_before])
            for at, row in enumerate(rows))
        if goes_on:
            return
        self._known = {}
        if not self._prompt_is_given:
            self._prompt_length = length
        elif length != self._prompt_length:
            raise ValueError(
                f"the rows have {length} tokens and are no continuation of the step before, but "
                f"prompt_length says {self._prompt_length}")

    @staticmethod
    def _end_only(scores: Any, row: int, end_tokens: Sequence[int]) -> Any:
        ends = torch.tensor([t for t in end_tokens if t < scores.shape[1]], dtype=torch.long,
                            device=scores.device)
        if len(ends) == 0:
            return scores
        scores = scores.clone()
        kept = scores[row, ends].clone()
        scores[row] = float("-inf")
        scores[row, ends] = torch.where(torch.isfinite(kept), kept, torch.zeros_like(kept))
        return scores

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        rows = input_ids.shape[0]
        if rows % len(self._starts):
            raise ValueError(f"{rows} rows for {len(self._starts)} grammars")
        each = rows // len(self._starts)
        tokens = [tuple(row) for row in input_ids.tolist()]
        self._begin(tokens, each)
        outputs = [row[self._prompt_length:] for row in tokens]
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
        for row, matcher in enumerate(matchers):
            if matcher is None and self._starts[row // each] is not None:
                scores = self._end_only(scores, row, self._end_tokens[row // each])
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
