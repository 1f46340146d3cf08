"""A record that a sampler draws: what `extract(sampler=...)` asks and judges.

Samplers of pawl.sampling draw an output in one call, so a draw stands for the job of other records. It begins when it
is waited for.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import _pawl
from ._errors import PawlError

if TYPE_CHECKING:
    from ._engine import Engine
    from ._options import Sorted
    from .sampling import Check, CheckFunction

    Checks = List[Union[Check, str, Callable[[Any], Any]]]

#: Options of a sampler, as pawl.sampling.Model.generate has them, next to temperature, seed and max_tokens.
SAMPLER_OPTIONS = ("sampler", "fidelity", "particles", "check_timeout", "critic", "estimator", "max_rejects", "accepts",
                   "resampling", "ess_threshold", "attempts", "lookahead", "batch", "seconds", "proposal")
#: Options of Model.generate that a record has no use for.
NO_OPTIONS = ("n", "granularity", "on_output")
#: How tokens are drawn otherwise. The others are not for samplers.
_DRAWN_BY = frozenset(("temperature", "seed", "max_tokens"))


class Draws:
    """The sampler of one call of `extract`. `judge` says what is wrong with the text of a record, or None."""

    def __init__(self, engine: Engine, given: Mapping[str, Any], options: Sorted, checks: Checks) -> None:
        from .sampling import Model

        self._model = Model(engine)
        self._engine = engine
        for name in NO_OPTIONS:
            if name in given:
                raise PawlError("unsupported", "is not for extract: a text has one record, judged at its end", name)
        for name, value in options.sampling.items():
            if value and name not in _DRAWN_BY:
                raise PawlError("unsupported", "cannot be used with sampler", name)
        if options.stops or options.logit_bias:
            raise PawlError("unsupported", "cannot be used with sampler", "stop" if options.stops else "logit_bias")
        if options.asking.get("prefer_text"):
            raise PawlError("unsupported", "cannot be used with sampler", "prefer_text")
        if given.get("sampler") is not None and given.get("fidelity") is not None:
            raise PawlError("invalid", "picks the sampler, so it cannot be given with a sampler", "fidelity")
        for name in ("sampler", "fidelity"):
            if given.get(name) is not None and not isinstance(given[name], str):
                raise TypeError(f"{name} must be a str, not {type(given[name]).__name__}")
        self._settings: Dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._critic = self._settings.pop("critic", None)
        self._proposal = self._settings.pop("proposal", None)
        timeout = self._settings.pop("check_timeout", 5)
        #: Checks that read bytes and tokens; functions of a record are asked by `judge`.
        self._checks = [self._check(one, timeout) for one in checks if not callable(one)]

    def _check(self, one: Union[Check, str], timeout: float) -> Check:
        try:
            return self._model._check(one, "token", timeout)
        except PawlError as error:
            if error.place == "check_timeout":
                raise
            raise PawlError(error.code, error.message, f"check: {error.place}" if error.place else "check") from None

    def draw(self, prompt: Tuple[Any, ...], grammar: _pawl.Grammar, options: Sorted,
             judge: Callable[[str], Optional[Exception]]) -> Drawn:
        settings = dict(self._settings, temperature=1)
        settings.update({name: value for name, value in options.sampling.items() if name in _DRAWN_BY})
        if options.lora:
            prompt = ("lora", options.lora, prompt)
        return Drawn(self, prompt, grammar, settings, judge)

    def run(self, drawn: Drawn) -> Any:
        def check(text: str, tokens: List[int], ended: bool) -> str:
            if drawn.cancelled:
                raise PawlError("invalid", "the draw was cancelled", "sampler")
            if not ended:
                return "live"
            drawn.problem = drawn.judge(text)
            return "accept" if drawn.problem is None else "dead"

        native = self._engine._engine()
        made = [*self._checks, self._model._check(check, "complete", 5)]
        proposal = None if self._proposal is None else self._proposal.engine._engine()
        outputs, _, _ = self._model._call(native.sample, drawn.prompt, drawn.grammar, drawn.settings, made, self._critic,
                                          proposal, None)
        if not outputs:
            raise PawlError("limit", "the sampler has drawn no record", "sampler")
        return outputs[0], len(native.prompt_tokens(drawn.prompt))


class Drawn:
    """A draw, in place of a job."""

    has_captures = False

    def __init__(self, draws: Draws, prompt: Tuple[Any, ...], grammar: _pawl.Grammar, settings: Dict[str, Any],
                 judge: Callable[[str], Optional[Exception]]) -> None:
        self.id = -id(self)  # of no job
        self.prompt, self.grammar, self.settings, self.judge = prompt, grammar, settings, judge
        #: What was wrong with the record that was judged last.
        self.problem: Optional[Exception] = None
        self._draws = draws
        self._lock = threading.Lock()
        self._out: Any = None
        self._error: Optional[Exception] = None
        self.cancelled = False

    @property
    def done(self) -> bool:
        return self._out is not None or self._error is not None or self.cancelled

    def wait_done(self, seconds: float) -> None:
        with self._lock:
            if self.done:
                return
            try:
                self._out = self._draws.run(self)
            except Exception as error:  # of this row: told by output()
                self._error = error

    def cancel(self) -> None:
        self.cancelled = True

    def refused(self) -> Optional[Exception]:
        """Why the record is none: no draw was valid."""
        self._raise()
        if json.loads(self._out[0][4])["valid"]:
            return None
        tokens = self.settings["max_tokens"]
        return self.problem or PawlError("invalid", f"no draw of {tokens} tokens is valid", "sampler")

    def output(self) -> Tuple[Any, ...]:
        self._raise()
        (text, tokens, log_weight, log_probability, report), prompt_tokens = self._out
        figures = {**json.loads(report), "log_weight": log_weight, "log_probability": log_probability,
                   "prompt_tokens": prompt_tokens, "output_tokens": len(tokens)}
        why = "end" if figures["valid"] else "length"
        return text, tokens, why, b"", figures, [], b"", ""

    def logs(self) -> List[Any]:
        return []

    def details(self) -> str:
        return "{}"

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        if self._out is None:
            raise PawlError("invalid", "the draw was cancelled", "sampler")
