"""Constraints for the library transformers: generate, continuous batching, and a decode loop.

    processor = pawl.transformers.LogitsProcessor(grammar)
    model.generate(**inputs, logits_processor=[processor])

One grammar for all rows, or a list with one for each prompt (None: no constraint). Each row's place
in its grammar is found from the row's own tokens, so that rows may be reordered (beam search),
repeated, dropped or cut back (assisted generation) between two steps. One processor serves any number
of calls of generate, one after the other: rows that do not go on from those of the step before are the
prompts of a new one.

Continuous batching has no place for a processor of one's own, and asks for one integer per token:

    outputs = pawl.transformers.generate_batch(model, prompts, [grammar, None, other])

`decode` goes in the place of generate's own loop and verifies several tokens in a call: those that the
grammar forces, and those that the text before suggests. Its outputs are the same with and without:

    model.generate(**inputs, custom_generate=pawl.transformers.decode, grammar=grammar, seed=3)

With `sampler=` or `fidelity=` it draws with a sampler that keeps the model's distribution:

    model.generate(**inputs, custom_generate=pawl.transformers.decode, grammar=grammar, seed=3,
                   fidelity="exact", n=10)
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

import pawl

from ._sampling import Check, SamplerStats, WeightedOutput, run as _run_sampler

__all__ = ["DecodeStats", "LogitsProcessor", "SamplerStats", "WeightedOutput", "constrain", "decode",
           "generate_batch"]


class LogitsProcessor:
    """`end_tokens`: in place of the vocabulary's. `prompt_length`: how many tokens of each row come
    before the output; by default those of the first step of each call of generate, which has the
    prompts alone, padding included. With a list of grammars, a prompt may have several rows
    (num_beams, num_return_sequences). A row with a token that its grammar refuses may only end: it
    has ended already and is being padded, or another processor forced the token. `max_new_tokens`: the
    budget that generate was given; when it is nearly spent, a row is closed with a short valid end rather
    than cut, and one that is too small for any output is an error."""

    def __init__(
        self,
        grammar: Union[pawl.Grammar, Sequence[Optional[pawl.Grammar]]],
        *,
        end_tokens: Optional[Sequence[int]] = None,
        prompt_length: Optional[int] = None,
        threads: int = 0,
        max_new_tokens: Optional[int] = None,
    ) -> None:
        self._budget = max_new_tokens
        grammars = [grammar] if isinstance(grammar, pawl.Grammar) else list(grammar)
        if not grammars:
            raise ValueError("there must be a grammar")
        self._starts = [
            None if one is None else pawl.Matcher(one, None if end_tokens is None
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
        self._filler = pawl.BatchFiller(threads)
        # What the rows of the step before have written, for each grammar: None after a token that
        # did not fit (padding of a finished row, or a token that another processor forced).
        self._known: Dict[Tuple[int, Tuple[int, ...]], Optional[pawl.Matcher]] = {}
        # The tokens that close them, of those that have to be closed.
        self._plans: Dict[Tuple[int, Tuple[int, ...]], Tuple[int, ...]] = {}

    def _matcher(self, index: int, output: Tuple[int, ...]) -> Optional[pawl.Matcher]:
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
        self._known, self._plans = {}, {}
        if self._budget is not None:
            for start in self._starts:
                if start is not None:
                    pawl.check_budget(start, self._budget)
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
        known: Dict[Tuple[int, Tuple[int, ...]], Optional[pawl.Matcher]] = {}
        matchers: List[Optional[pawl.Matcher]] = []
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
        mask = pawl.allocate_mask(len(live), max(max(self._sizes), scores.shape[1]))
        # Beams that wrote the same share a matcher, which is fine: filling does not change it.
        empty = self._filler.fill([matchers[row] for row in live], mask)
        if empty:
            raise RuntimeError("a row has no token that fits its grammar")
        if self._budget is not None:
            left = self._budget - len(outputs[0])
            plans: Dict[Tuple[int, Tuple[int, ...]], Tuple[int, ...]] = {}
            for at, row in enumerate(live):
                key = row // each, outputs[row]
                if key not in plans:
                    before = self._plans.get((key[0], key[1][:-1]), ())
                    plans[key] = pawl.closing_tokens(matchers[row], left, before)
                if plans[key]:
                    token = plans[key][0]
                    mask[at] = 0
                    mask.view("uint32")[at, token // 32] = 1 << (token % 32)
            self._plans = plans
        where = torch.tensor(live, device=scores.device)
        chosen = scores.index_select(0, where)
        pawl.apply_mask(chosen, mask)
        return scores.index_copy(0, where, chosen)


# ---- Continuous batching ------------------------------------------------------------------------


class _States:
    """Where requests stand, as one integer each: what continuous batching carries from the moment a
    batch is put together to the moment its logits are there. A request that was away for a step is
    found again by what it has written."""

    FREE = -1

    def __init__(self) -> None:
        self._known: Dict[str, Tuple[Tuple[int, ...], pawl.Matcher]] = {}
        self.by_id: Dict[int, pawl.Matcher] = {}
        self._next = 0

    def begin_step(self) -> None:
        self.by_id = {}
        self._next = 0

    def forget_all_but(self, requests: Sequence[str]) -> None:
        self._known = {name: self._known[name] for name in requests if name in self._known}

    def state_of(self, request: str, grammar: pawl.Grammar, output: Tuple[int, ...]) -> int:
        seen, matcher = self._known.get(request, ((), None))
        if matcher is None or output[:len(seen)] != seen:
            seen, matcher = (), pawl.Matcher(grammar)
        for token in output[len(seen):]:
            if not matcher.terminated and not matcher.accept(token):
                raise ValueError(f"token {token} does not fit the constraint of request {request}")
        self._known[request] = output, matcher
        if matcher.terminated:
            return self.FREE
        self._next += 1
        self.by_id[self._next] = matcher
        return self._next


def _output_of(state: Any) -> Tuple[int, ...]:
    """What a request has written. After a preemption part of it has become its prompt."""
    begun = state._true_initial_tokens
    before = state.initial_tokens[begun:] if begun else []
    return (*before, *state.generated_tokens)


def _continuous_class() -> type:
    from transformers.generation.continuous_batching.cb_logits_processors import (
        ContinuousBatchingLogitsProcessor)

    class ContinuousProcessor(ContinuousBatchingLogitsProcessor):
        supported_kwargs = {"grammar": pawl.Grammar}
        ignored_kwargs: Tuple[str, ...] = ()

        def __init__(self, default: Optional[pawl.Grammar] = None, threads: int = 1) -> None:
            self.default, self.states = default, _States()
            self._filler = pawl.BatchFiller(threads)

        def fill_defaults(self, int32_tensor: Any) -> None:
            int32_tensor.fill_(_States.FREE)

        def prepare_tensor_args(self, requests_with_new_token: List[Any]) -> Any:
            self.states.begin_step()
            ids: List[int] = []
            for request in requests_with_new_token:
                state = request.state
                grammar = state.logit_processor_kwargs.get("grammar", self.default)
                ids.append(_States.FREE if grammar is None else self.states.state_of(
                    state.request_id, grammar, _output_of(state)))
            self.states.forget_all_but([r.state.request_id for r in requests_with_new_token])
            return torch.tensor(ids, dtype=torch.int32)

        def __call__(self, scores: Any, tensor_arg: Any) -> Any:
            wide = scores.dim() == 3
            rows = scores[0] if wide else scores
            ids = tensor_arg[:rows.shape[0]].tolist()
            live = [(row, self.states.by_id[i]) for row, i in enumerate(ids) if i > 0]
            if not live:
                return scores
            size = max(matcher.grammar.vocabulary_size for _, matcher in live)
            mask = pawl.allocate_mask(rows.shape[0], max(size, rows.shape[1]))
            if self._filler.fill([m for _, m in live], mask, [row for row, _ in live]):
                raise RuntimeError("a request has no token that fits its grammar")
            rows = rows.clone()
            pawl.apply_mask(rows, mask)
            return rows.unsqueeze(0) if wide else rows

    return ContinuousProcessor


def constrain(manager: Any, grammar: Optional[pawl.Grammar] = None) -> Any:
    """Adds constraints to a ContinuousBatchingManager that has not been started. Requests then take
    `grammar=` (manager.add_request(..., grammar=g)); `grammar` here is for those that name none."""
    if manager.continuous_batching_config.use_async_batching:
        raise ValueError("asynchronous batching asks for a mask before the token before it is known; "
                         "use ContinuousBatchingConfig(use_async_batching=False)")
    processors = manager.logit_processor
    for name in ("logits_processor", "tensors_required", "do_processing"):
        if not hasattr(processors, name):
            raise RuntimeError("pawl.transformers was written for transformers 5.23: the logits "
                               f"processors of continuous batching have no {name} here")
    ours = _continuous_class()(grammar)
    # First: behind top-k the tokens that fit may be gone.
    processors.logits_processor.insert(0, ours)
    processors.tensors_required += 1
    processors.do_processing = True
    processors._retrieve_processors_kwargs()
    return ours


def generate_batch(model: Any, prompts: Sequence[Sequence[int]],
                   grammars: Union[pawl.Grammar, Sequence[Optional[pawl.Grammar]], None], *,
                   max_new_tokens: int = 256, generation_config: Any = None,
                   continuous_batching_config: Any = None) -> List[Any]:
    """model.generate_batch with a grammar for all prompts or one for each. The results are those of
    generate_batch, in the order of the prompts; a request that failed has its `error`."""
    if grammars is None or isinstance(grammars, pawl.Grammar):
        grammars = [grammars] * len(prompts)
    if len(grammars) != len(prompts):
        raise ValueError(f"{len(grammars)} grammars for {len(prompts)} prompts")
    if continuous_batching_config is None:
        from transformers import ContinuousBatchingConfig
        continuous_batching_config = ContinuousBatchingConfig(use_async_batching=False)
    manager = model.init_continuous_batching(
        generation_config=generation_config,
        continuous_batching_config=continuous_batching_config)
    constrain(manager)
    manager.start()
    try:
        order: Dict[str, int] = {}
        for at, (prompt, grammar) in enumerate(zip(prompts, grammars)):
            extra = {} if grammar is None else {"grammar": grammar}
            name = manager.add_request(list(prompt), request_id=f"pawl-{at}",
                                       max_new_tokens=max_new_tokens, **extra)
            order[name] = at
        results: List[Any] = [None] * len(prompts)
        left = len(order)
        while left:
            result = manager.get_result(timeout=1)
            if result is None:
                if not manager.is_running():
                    raise RuntimeError("continuous batching stopped before all requests were done")
            elif result.is_finished() or result.error:
                results[order[result.request_id]] = result
                left -= 1
        return results
    finally:
        manager.stop(block=True)


# ---- A decode loop ------------------------------------------------------------------------------


@dataclasses.dataclass
class DecodeStats:
    """`calls` of the model, `tokens` written, and of the drafts how many were `drafted` and held."""

    calls: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    closed: bool = False


def _lookup(tokens: List[int], most: int) -> List[int]:
    """What followed the last tokens where they came before."""
    for length in (3, 2):
        if len(tokens) <= length:
            continue
        tail = tokens[-length:]
        for at in range(len(tokens) - length - 1, -1, -1):
            if tokens[at:at + length] == tail:
                return tokens[at + length:at + length + most]
    return []


def _draft(matcher: pawl.Matcher, tokens: List[int], most: int,
           encode: Optional[Callable[[bytes], Sequence[int]]]) -> List[int]:
    """Tokens that are likely to come: what the grammar forces, then what the text suggests, as far
    as the grammar takes it."""
    walk = matcher.copy()
    draft: List[int] = []
    while len(draft) < most and not walk.terminated:
        more = walk.forced_tokens(encode=encode)
        if not more:
            guess = _lookup(tokens + draft, most - len(draft))
            more = guess[:walk.validate_tokens(guess)]
        more = more[:most - len(draft)]
        if not more:
            break
        for token in more:
            if not walk.accept(token):
                return draft
            draft.append(token)
    return draft


def _draw(scores: Any, seed: Optional[int], position: int) -> int:
    """The token of a position: a function of the scores, the seed and the position alone, so that
    guessing tokens before they are drawn changes nothing."""
    if seed is None:
        return int(scores.argmax())
    generator = torch.Generator().manual_seed((seed * 1_000_003 + position) & (2**63 - 1))
    noise = torch.empty(scores.shape[-1], dtype=torch.float64).exponential_(generator=generator)
    return int((scores.double().cpu() - noise.log()).argmax())


def decode(model: Any, input_ids: Any, logits_processor: Any = None, stopping_criteria: Any = None,
           generation_config: Any = None, synced_gpus: Any = None, streamer: Any = None, *,
           grammar: Optional[pawl.Grammar] = None, seed: Optional[int] = None, draft_tokens: int = 8,
           encode: Optional[Callable[[bytes], Sequence[int]]] = None,
           stats: Union[DecodeStats, SamplerStats, None] = None, sampler: Optional[str] = None,
           fidelity: Optional[str] = None, n: int = 1, particles: int = 5,
           check: Optional[Check] = None, ess_threshold: float = 0.5,
           attempts: Optional[int] = None, oracle_bytes: int = 256 << 20,
           **model_kwargs: Any) -> Any:
    """For generate(custom_generate=decode, grammar=...): one sequence, with the model's own cache.

    `seed` draws from the processed scores (temperature, top-k and so on, as the configuration says),
    None takes the most probable. `draft_tokens`: how many tokens to verify in one call at most; 0:
    one after the other. `encode`: the tokenizer's encoding of bytes, for forced text in its spelling.
    When max_length is nearly reached the output is closed with a short valid end. `stats` is filled in.

    With `sampler` ("gcd", "awrs", "smc", "asap", "cars") or `fidelity` ("fast", "aligned", "exact") the
    result has `n` rows, padded behind the end, and stats (a SamplerStats) has the weights. The law is
    the model's at the configuration's temperature; processors, top-k and the like are refused, since
    they make another one. `check(tokens, ended)` says whether an output may go on like that, or end.
    """
    if grammar is None:
        raise ValueError("custom_generate=pawl.transformers.decode needs grammar=")
    if input_ids.shape[0] != 1:
        raise ValueError(f"pawl.transformers.decode writes one sequence, not {input_ids.shape[0]}; "
                         "for more use LogitsProcessor or generate_batch")
    if sampler is not None or fidelity is not None:
        return _sample(model, input_ids, logits_processor, generation_config, stats, grammar=grammar,
                       sampler=sampler, fidelity=fidelity, n=n, particles=particles, check=check,
                       seed=seed, ess_threshold=ess_threshold, attempts=attempts,
                       oracle_bytes=oracle_bytes)
    if check is not None or n != 1:
        raise ValueError("check and n need a sampler or a fidelity")
    from transformers import DynamicCache

    stats = stats if stats is not None else DecodeStats()
    matcher = pawl.Matcher(grammar)
    tokens = input_ids[0].tolist()
    prompt = len(tokens)
    limit = getattr(generation_config, "max_length", None) or prompt + 256
    cache = model_kwargs.get("past_key_values")
    if cache is None or not hasattr(cache, "crop"):
        cache = DynamicCache(config=model.config)
    size = grammar.vocabulary_size
    plan: Tuple[int, ...] = ()  # the tokens that close the output, once it has to be
    while not matcher.terminated and len(tokens) < limit:
        room = limit - len(tokens) - 1
        draft = _draft(matcher, tokens, min(draft_tokens, max(room, 0)), encode)
        known = cache.get_seq_length()
        feed = torch.tensor([tokens[known:] + draft], device=input_ids.device)
        output = model(input_ids=feed, past_key_values=cache, use_cache=True,
                       attention_mask=torch.ones(1, known + feed.shape[1], dtype=torch.long,
                                                 device=input_ids.device))
        cache = output.past_key_values
        logits = output.logits[0, feed.shape[1] - len(draft) - 1:].float()
        mask = pawl.allocate_mask(len(draft) + 1, max(size, logits.shape[1]))
        pawl.BatchFiller(1).fill_drafts([matcher], [draft], mask)
        pawl.apply_mask(logits, mask)
        stats.calls += 1
        stats.drafted += len(draft)
        for at in range(len(draft) + 1):
            plan = pawl.closing_tokens(matcher, limit - len(tokens), plan)
            if plan:
                token = plan[0]
                stats.closed = True
            else:
                row = logits[at:at + 1]
                if logits_processor:
                    row = logits_processor(torch.tensor([tokens], device=row.device), row)
                token = _draw(row[0], seed, len(tokens) - prompt)
            if not matcher.accept(token):
                raise RuntimeError(f"token {token} does not fit: a logits processor forced it")
            tokens.append(token)
            stats.tokens += 1
            if streamer is not None:
                streamer.put(torch.tensor([token]))
            if matcher.terminated or len(tokens) >= limit:
                break
            if at < len(draft):
                if draft[at] != token:
                    break
                stats.accepted += 1
        excess = cache.get_seq_length() - (len(tokens) - 1)
        if excess > 0:
            cache.crop(-excess)
        if stopping_criteria is not None and bool(
                stopping_criteria(torch.tensor([tokens], device=input_ids.device), None).all()):
            break
    if streamer is not None:
        streamer.end()
    return torch.tensor([tokens], device=input_ids.device)


# What a configuration may say in addition to a sampler: it changes no probability.
_LAWFUL = {"TemperatureLogitsWarper"}


def _sample(model: Any, input_ids: Any, processors: Any, config: Any, stats: Any,
            **options: Any) -> Any:
    """The part of `decode` that draws by the model's law."""
    other = [type(p).__name__ for p in processors or () if type(p).__name__ not in _LAWFUL]
    if other:
        raise ValueError(f"a sampler keeps the model's law; {', '.join(other)} would make another one. "
                         "Generate with top_k=0, top_p=1 and no penalties")
    stats = stats if stats is not None else SamplerStats()
    if not isinstance(stats, SamplerStats):
        raise TypeError("stats of a sampler is a SamplerStats")
    prompt = input_ids[0].tolist()
    room = (getattr(config, "max_length", None) or len(prompt) + 256) - len(prompt)
    temperature = getattr(config, "temperature", None)
    temperature = 1.0 if temperature is None else float(temperature)
    outputs = _run_sampler(model, prompt, options.pop("grammar"), room, temperature=temperature,
                           stats=stats, **options)
    pad = getattr(config, "pad_token_id", None)
    if pad is None:
        ends = getattr(model.config, "eos_token_id", None)
        pad = (ends[0] if isinstance(ends, (list, tuple)) and ends else ends) or 0
    longest = max(len(output.tokens) for output in outputs)
    rows = [prompt + output.tokens + [pad] * (longest - len(output.tokens)) for output in outputs]
    return torch.tensor(rows, device=input_ids.device)
