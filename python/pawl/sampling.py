"""Outputs that keep the model's distribution, with Python functions as checks.

    from pawl import sampling

    model = sampling.Model("models/tiny-extract")

    def check(text, tokens, ended):
        if "!" in text:
            return "dead"                       # no way to go on makes it valid
        return "accept"                         # or "live", "unknown"; True is "accept", False "dead"

    outputs = model.generate("Once ", sampler="smc", n=20, particles=5, check=check,
                             regex="[a-z !]{3,40}", max_tokens=50)
    for output in outputs:
        use(output.text, output.log_weight)

    model.score("Once ", tokens=outputs[0].tokens) == outputs[0].log_probability

The options are those of `pawl generate --sampler` and `pawl score`, with underscores for hyphens; docs/sampling.md
tells what they mean and what comes back. The model runs in this process, without the interpreter lock. Checks are
called from several threads, each with the lock. An exception in one ends the run and is raised here.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, Optional, Sequence, Union

from . import _pawl
from ._compiler import schema_text
from ._engine import Engine
from ._errors import PawlError
from ._options import _SCHEMA, json_text
from ._paths import command_path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import SchemaOptions

__all__ = ["Check", "ChoiceProbability", "Choices", "Model", "Samples", "SearchOutput", "SearchResult", "WeightedOutput",
           "generate", "score"]

#: (text, tokens, ended) -> "dead", "live", "accept" or "unknown", or a bool
CheckFunction = Callable[[str, "list[int]", bool], Union[str, bool]]
#: The same arguments -> a natural logarithm, -inf for what must not be
CriticFunction = Callable[[str, "list[int]", bool], float]

_LANGUAGES = (".ebnf", ".gbnf", ".lark")

#: A check that is made once and used in several calls: samplers that learn know it again.
#: Check.from_function(function, granularity), Check.from_grammar(grammar, granularity), Model.check_of(spec).
Check = _pawl.Check


@dataclasses.dataclass(frozen=True)
class WeightedOutput:
    """A line of `pawl generate --json-lines`."""

    text: str
    tokens: "list[int]"
    log_weight: float
    log_probability: float
    report: "dict[str, Any]"


@dataclasses.dataclass(frozen=True)
class SearchOutput:
    """An output of Model.search: docs/search.md. `log_probability`: None where a limit closed the output."""

    text: str
    tokens: "list[int]"
    score: float
    log_probability: Optional[float]
    ended: bool
    closed: bool
    missing_phrases: "list[str]"


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """What Model.search found, the best output first. `at_limit`: "rows" or "nodes", where a limit ended it. `paths`:
    of a lattice, the outputs that it holds. `steps`, `pauses`: of adadec and cntp, the choices of a token or a
    continuation, and those before which it looked ahead. `notes`: what the command says of the outputs."""

    outputs: "list[SearchOutput]"
    at_limit: Optional[str]
    rows: int
    calls: int
    nodes: int
    paths: float = 0
    steps: int = 0
    pauses: int = 0
    notes: "list[str]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class ChoiceProbability:
    """A choice of Model.classify. `probability` is given that one of the choices is written. None: no spelling of it
    was followed to its end."""

    text: str
    probability: Optional[float]
    log_probability: Optional[float]


@dataclasses.dataclass(frozen=True)
class Choices:
    """What Model.classify found. At most `missing` is missing of `valid`, and of each choice."""

    choices: "list[ChoiceProbability]"
    valid: float
    missing: float
    at_limit: Optional[str]
    rows: int
    calls: int


class Samples(List[WeightedOutput]):
    """The outputs of a run, a list. `effective_size`: of how many outputs of equal weight the averages would be as
    good. `timed_out`: `seconds` ended the run."""

    def __init__(self, outputs: "Iterable[WeightedOutput]" = (), effective_size: float = 0,
                 timed_out: bool = False) -> None:
        super().__init__(outputs)
        self.effective_size = effective_size
        self.timed_out = timed_out


def _output(native: "tuple[bytes, list[int], float, float, str]") -> WeightedOutput:
    text, tokens, log_weight, log_probability, report = native
    return WeightedOutput(text.decode(errors="replace"), tokens, log_weight, log_probability, json.loads(report))


class Model:
    """A model folder or GGUF file; without a path the model that ships. Or a pawl.Engine, whose weights it uses:
    an engine generates, samples and scores at the same time. A Model may be used by several threads.

    `oracle_bytes`: memory for what asap, ars and cars learn about prompts, which later calls with the same prompt,
    constraint, check objects, temperature and max_tokens go on from. With an engine its options hold.
    """

    def __init__(self, path: "Union[None, Engine, os.PathLike[str], str]" = None, *, threads: int = 0,
                 dtype: str = "stored", oracle_bytes: int = 256 << 20) -> None:
        self.engine: Engine = (path if isinstance(path, Engine) else
                               Engine(path, threads=threads, dtype=dtype, oracle_bytes=oracle_bytes))
        self.vocabulary = self.engine.vocabulary
        # The same text is the same grammar, by which the engine knows what it has learnt.
        self._compiler = self.engine.compiler

    def encode(self, text: str) -> "list[int]":
        """The text as the tokenizer spells it, with nothing before or behind it."""
        return self.engine.encode(text)

    def check_of(self, spec: str, *, check_timeout: float = 5) -> Check:
        """KIND:VALUE or KIND@GRANULARITY:VALUE, as `pawl generate --check` takes it. Checks of code, such as
        "syntax:python", are answered by the command: see pawl.command_path()."""
        if spec.startswith(("syntax", "monitor")):
            try:
                _pawl.set_check_command(command_path())
            except PawlError:  # a package that was not installed has none: that in PATH
                _pawl.set_check_command("")
        return self.engine._engine().check_of(spec, check_timeout)

    def _grammar(self, regex: Optional[str], schema: Any, choice: "Optional[Iterable[str]]",
                 grammar: "Union[None, _pawl.Grammar, os.PathLike[str], str]",
                 layout: "Mapping[str, Any]") -> Optional[_pawl.Grammar]:
        if sum(one is not None for one in (regex, schema, choice, grammar)) > 1:
            raise PawlError("invalid", "at most one of regex, schema, choice and grammar can be given")
        if isinstance(grammar, _pawl.Grammar):
            return grammar
        if regex is not None:
            return self._compiler.regex(regex)
        if choice is not None:
            return self._compiler.choice([choice] if isinstance(choice, str) else list(choice))
        # JSON is written as `generate` and `extract` write it.
        layout = {"whitespace": "compact", **layout}
        if layout.get("source") is not None:
            layout["source"] = self.engine._engine().as_seen(layout["source"]) or " "
        if schema is not None:
            text = _text_of(schema) if isinstance(schema, (str, os.PathLike)) else schema_text(schema)
            return self._compiler.json_schema(text, **layout)
        if grammar is not None:
            extension = os.path.splitext(os.fspath(grammar))[1]
            if extension not in _LANGUAGES:
                raise PawlError("invalid", f"its name does not end in one of {', '.join(_LANGUAGES)}",
                                os.fspath(grammar))
            return self._compiler.grammar(_text_of(grammar), extension[1:], **layout)
        return None

    def _check(self, one: "Union[Check, str, CheckFunction]", granularity: str, check_timeout: float) -> Check:
        if isinstance(one, Check):
            return one
        if isinstance(one, str):
            return self.check_of(one, check_timeout=check_timeout)
        return Check.from_function(one, granularity)

    def generate(self, prompt: "Union[None, str, Sequence[int]]" = None, *, messages: Any = None,
                 special: bool = False, regex: Optional[str] = None, schema: Any = None,
                 choice: "Optional[Iterable[str]]" = None,
                 grammar: "Union[None, _pawl.Grammar, os.PathLike[str], str]" = None,
                 sampler: Optional[str] = None, fidelity: Optional[str] = None, n: int = 1, particles: int = 5,
                 temperature: float = 1, seed: int = 0, max_tokens: int = 512,
                 check: "Union[None, Check, str, CheckFunction, Sequence[Union[Check, str, CheckFunction]]]" = None,
                 granularity: str = "token", check_timeout: float = 5,
                 critic: "Union[None, str, CriticFunction]" = None, estimator: str = "recursive",
                 max_rejects: int = 0, accepts: int = 2, resampling: str = "stratified",
                 ess_threshold: float = 0.5, attempts: int = 0, lookahead: int = 8, batch: int = 32,
                 seconds: float = 0, proposal: "Optional[Model]" = None,
                 on_output: "Optional[Callable[[WeightedOutput], Optional[bool]]]" = None,
                 lora: Optional[str] = None, **layout: "Unpack[SchemaOptions]") -> "Samples":
        """What `pawl generate --sampler` writes.

        `prompt` is a text or token ids; `messages` in its place are a list of {"role", "content"} for the model's chat
        template. `schema` is a dict, a type, or the path of a file; `grammar` the path of a file or a pawl.Grammar
        for this model's vocabulary. `layout`: how JSON is written and schemas are read, such as whitespace="any"
        (SchemaOptions). A check is a function, asked at `granularity`, or what Check or check_of made, or
        a text for check_of; several in a list. `on_output` is told of each output as soon as it is there; False from
        it ends the run. `lora`: an adapter of the engine.
        """
        _at_least_one(max_tokens)
        other = next((name for name in layout if name not in _SCHEMA), None)
        if other is not None:
            raise TypeError(f"there is no option {other}")
        if sampler is not None and fidelity is not None:
            raise PawlError("invalid", "picks the sampler, so it cannot be given with a sampler", "fidelity")
        options = dict(n=n, particles=particles, temperature=temperature, seed=seed, max_tokens=max_tokens,
                       estimator=estimator, max_rejects=max_rejects, accepts=accepts, resampling=resampling,
                       ess_threshold=ess_threshold, attempts=attempts, lookahead=lookahead, batch=batch,
                       seconds=seconds)
        if fidelity is not None:
            options["fidelity"] = fidelity
        else:
            options["sampler"] = sampler or "smc"
        checks = [] if check is None else list(check) if isinstance(check, (list, tuple)) else [check]
        made = [self._check(one, granularity, check_timeout) for one in checks]
        tell = None if on_output is None else lambda native: on_output(_output(native))
        outputs, size, timed_out = self._call(
            self.engine._engine().sample, _prompt(prompt, messages, special, lora),
            self._grammar(regex, schema, choice, grammar, layout), options, made, critic,
            None if proposal is None else proposal.engine._engine(), tell)
        return Samples([_output(native) for native in outputs], size, timed_out)

    def search(self, prompt: "Union[None, str, Sequence[int]]" = None, *, messages: Any = None,
               special: bool = False, regex: Optional[str] = None, schema: Any = None,
               choice: "Optional[Iterable[str]]" = None,
               grammar: "Union[None, _pawl.Grammar, os.PathLike[str], str]" = None,
               check: "Union[None, Check, str, CheckFunction, Sequence[Union[Check, str, CheckFunction]]]" = None,
               checks: "Sequence[Union[Check, str, CheckFunction]]" = (),
               granularity: str = "token", check_timeout: float = 5,
               critic: "Union[None, str, CriticFunction]" = None, lora: Optional[str] = None,
               **options: Any) -> SearchResult:
        """What `pawl generate --search` finds: outputs of high probability.

            model.search("Once ", strategy="beam", num_beams=8, n=3, regex="[a-z ]{3,40}")

        Further options are those of docs/search.md: strategy, n, num_beams, length_penalty, max_tokens, ... Prompt,
        constraint, its layout, check and critic are those of `generate`. `checks`: more of them, as the other interfaces have
        them; what is wrong with one names its place, such as "checks/0".
        """
        _at_least_one(options.get("max_tokens"))
        layout = {name: options.pop(name) for name in list(options) if name in _SCHEMA}
        given = [] if check is None else list(check) if isinstance(check, (list, tuple)) else [check]
        made = [self._check(one, granularity, check_timeout) for one in given]
        for i, one in enumerate([checks] if isinstance(checks, str) else checks):
            try:
                made.append(self._check(one, granularity, check_timeout))
            except PawlError as error:
                raise PawlError(error.code, str(error), f"checks/{i}") from None
        compiled = self._grammar(regex, schema, choice, grammar, layout)
        found = json.loads(self._call(self.engine._engine().search, _prompt(prompt, messages, special, lora),
                                      compiled, _json(options), made, critic))
        result = SearchResult(**{**found, "outputs": [SearchOutput(**one) for one in found["outputs"]]})
        result.notes.extend(_search_notes(result, options.get("n", 1), compiled is not None))
        return result

    def classify(self, prompt: "Union[None, str, Sequence[int]]" = None, *, choices: "Iterable[str]",
                 messages: Any = None, special: bool = False, temperature: float = 1, exact_missing: float = 1e-6,
                 exact_rows: int = 4096, lora: Optional[str] = None) -> Choices:
        """The probability of each choice behind the prompt, over all of its spellings: `pawl generate --exact`."""
        if isinstance(choices, (str, bytes)):
            raise PawlError("invalid", "must be several texts, not one", "choices")
        options = dict(choices=list(choices), temperature=temperature, exact_missing=exact_missing,
                       exact_rows=exact_rows)
        found = json.loads(self._call(self.engine._engine().classify, _prompt(prompt, messages, special, lora),
                                      _json(options)))
        return Choices(**{**found, "choices": [ChoiceProbability(**one) for one in found["choices"]]})

    def score_each(self, prompt: "Union[None, str, Sequence[int]]" = None, *, messages: Any = None,
                   special: bool = False, text: Optional[str] = None, tokens: "Optional[Sequence[int]]" = None,
                   temperature: float = 1, end: bool = False, lora: Optional[str] = None) -> "list[float]":
        """The log-probability of each token of `tokens`, or of `text` as the tokenizer spells it, behind the prompt.
        `end`: and of the end token behind them."""
        if (text is None) == (tokens is None):
            raise PawlError("invalid", "one of text and tokens is wanted")
        ids = self.encode(text) if tokens is None else list(tokens)
        if end:
            if not self.vocabulary.end_tokens:
                raise PawlError("invalid", "the model has no end token", "end")
            ids.append(self.vocabulary.end_tokens[0])
        return self._call(self.engine._engine().score, _prompt(prompt, messages, special, lora), ids, temperature)

    def score(self, prompt: "Union[None, str, Sequence[int]]" = None, **options: Any) -> float:
        """What `pawl score` prints: the sum of score_each."""
        return sum(self.score_each(prompt, **options))

    def _call(self, native: "Callable[..., Any]", *arguments: Any) -> Any:
        return self.engine._running.call(native, *arguments)


def _search_notes(result: SearchResult, n: int, constrained: bool) -> "list[str]":
    notes = []
    outputs = result.outputs
    if result.at_limit is not None:
        notes.append(f"the limit of {result.at_limit} was reached, so these are the best outputs so far")
    if not outputs:
        notes.append("no complete output was found, or the checks refused all of them")
    elif len(outputs) < n:
        notes.append(f"of {n} outputs {len(outputs)} were found")
    if not constrained and any(not one.ended and not one.closed for one in outputs):
        notes.append("the output was cut at the budget")
    for phrase in dict.fromkeys(phrase for one in outputs for phrase in one.missing_phrases):
        notes.append(f"an output lacks the phrase {json.dumps(phrase, ensure_ascii=False)}")
    return notes


def _at_least_one(max_tokens: Any) -> None:
    if isinstance(max_tokens, int) and max_tokens < 1:
        raise PawlError("invalid", f"must be at least 1, not {max_tokens}", "max_tokens")


def _json(options: "Mapping[str, Any]") -> str:
    for name, value in options.items():
        json_text(value, name)
    return json_text(options, "")


def _text_of(path: "os.PathLike[str] | str") -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise PawlError("io", f"cannot read: {error.strerror}", os.fspath(path)) from None


def _prompt(prompt: "Union[None, str, Sequence[int]]", messages: Any, special: bool,
            lora: Optional[str] = None) -> "tuple[Any, ...]":
    if lora:
        return "lora", lora, _prompt(prompt, messages, special)
    if (prompt is None) == (messages is None):
        raise PawlError("invalid", "one of prompt and messages is wanted")
    if messages is not None:
        return "chat", messages if isinstance(messages, str) else json.dumps(messages)
    return ("prompt", prompt, special) if isinstance(prompt, (str, bytes)) else ("tokens", list(prompt))


def generate(prompt: "Union[None, str, Sequence[int]]" = None, *,
             model: "Union[None, Model, Engine, os.PathLike[str], str]" = None,
             **options: Any) -> "list[WeightedOutput]":
    """Model(model).generate(prompt, ...); a Model is used as it is."""
    return (model if isinstance(model, Model) else Model(model)).generate(prompt, **options)


def score(prompt: "Union[None, str, Sequence[int]]" = None, *,
          model: "Union[None, Model, Engine, os.PathLike[str], str]" = None,
          **options: Any) -> float:
    """Model(model).score(prompt, ...); a Model is used as it is."""
    return (model if isinstance(model, Model) else Model(model)).score(prompt, **options)
