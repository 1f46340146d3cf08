"""What one call of `extract` asks, judges and asks again."""

from __future__ import annotations

import copy
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Generator, List, Mapping, Optional, Tuple, cast

from . import _pawl
from ._convert import plain_value, value_of
from ._drawn import NO_OPTIONS, SAMPLER_OPTIONS, Drawn, Draws
from ._errors import PawlError
from ._options import Sorted, json_text
from ._output import Output, ValueMaker
from ._prompts import checked_text
from ._running import Request, groups

if TYPE_CHECKING:
    from ._engine import Engine

_EXTRACT_TOKENS = 4096  # as `pawl extract`; a record in single bytes easily has a thousand
_LEAST_MAX_STRING = 256
#: At most, as a bound of strings.
_CHARACTERS_OF_A_TOKEN = 16
_RETRY_TEMPERATURE = 0.7


class Extract:
    """What one call of `extract` asks."""

    def __init__(self, engine: Engine, schema: Any, options: Mapping[str, Any]) -> None:
        self._engine = engine
        self._group = next(groups)
        given = dict(options)
        drawing = {name: given.pop(name) for name in (*SAMPLER_OPTIONS, *NO_OPTIONS) if name in given}
        draws = drawing.get("sampler") is not None or drawing.get("fidelity") is not None
        if drawing and not draws:
            other = next((name for name, value in drawing.items() if value is not None), None)
            if other is not None:
                raise PawlError("invalid", "needs sampler", other)
        checks = _checks(given.pop("check", None), draws)
        #: Functions of a record.
        self._checks = [check for check in checks if callable(check)]
        self._retries = _retries(given.pop("max_retries", 0))
        contrast = _contrast(given.pop("contrast", None))
        self._options = Sorted(given, with_constraint=False)
        self._record = record_of(given)
        if contrast:
            if self._options.asking.get("prefer_text"):
                raise PawlError("unsupported", "cannot be used with contrast", "prefer_text")
            self._options.sampling["contrast"] = contrast
        self._options.sampling.setdefault("max_tokens", _EXTRACT_TOKENS)
        self._draws = Draws(engine, drawing, self._options, checks) if draws else None
        self._layout = _layout(engine.extract_defaults, self._options.schema)
        self._schema = engine._text_of_schema(schema)
        self._make_value = value_maker(schema)
        #: Texts whose records are judged, by the number of their job.
        self._texts: Dict[int, str] = {}
        asking = self._options.asking
        self._asking = (str(asking.get("instruction", "")),
                        json_text(_examples(asking.get("examples", ())), "examples"),
                        str(asking.get("schema_view", "")))
        self._prefer_text = asking.get("prefer_text")
        sampling = self._options.sampling
        #: No string is longer than the text that the model sees.
        self._longest = sys.maxsize
        if sampling.get("document"):
            if self._retries:
                raise PawlError("unsupported", "is not for documents", "max_retries")
            tokens = sampling.get("chunk_tokens") or engine.info.context_length // 2
            self._longest = _CHARACTERS_OF_A_TOKEN * int(tokens)
        # What is wrong with the schema is told before there is a text.
        self._grammar_for("")

    def request(self, text: Any) -> Request:
        def submit(streams: bool) -> _pawl.Job:
            return self._submit(checked_text(text), ("", ""), self._options, streams)

        return submit

    def output(self, job: _pawl.Job) -> Output[Any]:
        """The output of the job; where its record is refused, that of the first further try that is not."""
        tries = self._tries(job)
        try:
            request = next(tries)
            while True:
                request = tries.send(self._engine._running.one(request))
        except StopIteration as end:
            return cast("Output[Any]", end.value)

    async def aoutput(self, job: _pawl.Job) -> Output[Any]:
        tries = self._tries(job)
        try:
            request = next(tries)
            while True:
                request = tries.send(await self._engine._running.aone(request))
        except StopIteration as end:
            return cast("Output[Any]", end.value)

    async def avalue(self, job: _pawl.Job) -> Any:
        return self._record(await self.aoutput(job))

    def _submit(self, text: str, wrong: Tuple[str, str], options: Sorted, streams: bool) -> _pawl.Job:
        prompt = ("extract", self._schema, text, *self._asking, *wrong, self._prefer_text)
        try:
            grammar = self._grammar_for(text)
            job = (cast("_pawl.Job", self._draws.draw(prompt, grammar, options, self._problem_of_text)) if self._draws
                   else self._engine._submit(prompt, grammar, options, streams, self._group))
        except PawlError as error:
            raise self._of_text(error) from None
        if self._checks or self._retries or self._draws:
            self._texts[job.id] = text
        return job

    def _tries(self, job: _pawl.Job) -> "Generator[Request, _pawl.Job, Output[Any]]":
        output = self._made(job)
        text = self._texts.pop(job.id, None)
        if text is None:
            return output
        first, retries = _count(output), {"calls": 0, "prompt_tokens": 0, "output_tokens": 0}
        for number in range(1, self._retries + 2):
            problem = job.refused() if isinstance(job, Drawn) else self._problem(lambda: output.value)
            if problem is None:
                break
            if number > self._retries:
                raise problem
            request = self._retry(text, output.text, problem, number)
            job = yield request
            self._texts.pop(job.id, None)
            output = self._made(job)
            for name, value in _count(output).items():
                retries[name] += value
        output.report["tries"] = {"first": first, "retries": retries}
        return output

    def _retry(self, text: str, record: str, problem: Exception, number: int) -> Request:
        """Another draw where the prompt cannot tell what was wrong, or has told it."""
        options = copy.copy(self._options)
        options.sampling = dict(options.sampling, seed=options.sampling.get("seed", 0) + number)
        if number > 1 or not self._engine._engine().shows_views:
            options.sampling["temperature"] = max(options.sampling.get("temperature", 0), _RETRY_TEMPERATURE)
        return lambda streams: self._submit(text, (record, str(problem)), options, streams)

    def _made(self, job: _pawl.Job) -> Output[Any]:
        try:
            return Output(job, self._make_value)
        except PawlError as error:
            raise self._of_text(error) from None

    def _of_text(self, error: PawlError) -> PawlError:
        if error.place not in ("prompt", "text"):
            return error
        chunks = error.code == "limit" and not self._options.sampling.get("document")
        return PawlError(error.code, error.message + "; document=True reads it in chunks" * chunks, "text")

    def _problem_of_text(self, text: str) -> Optional[Exception]:
        return self._problem(lambda: self._make_value(text))

    def _problem(self, value_of_record: Callable[[], Any]) -> Optional[Exception]:
        """What the type of the records or a check has against a record."""
        try:
            value = value_of_record()
            for check in self._checks:
                said = check(value)
                if said is False or isinstance(said, str):
                    name = getattr(check, "__name__", repr(check))
                    return PawlError("invalid", said or f"{name} refuses the record", "check")
        except PawlError as error:
            if error.code == "limit":
                raise
            return error
        except (ValueError, AssertionError) as error:  # Pydantic's is a ValueError
            return error
        return None

    def _grammar_for(self, text: str) -> _pawl.Grammar:
        options = {**self._layout, "additional_properties": False, **self._options.schema}
        # Closed objects that were not asked for are opened where nothing fits with them.
        options.setdefault("open_if_unsatisfiable", "additional_properties" not in self._options.schema)
        if options.get("max_string") is None:
            # A model that repeats itself has to end, and no one wants what is longer than the text.
            options["max_string"] = max(_LEAST_MAX_STRING, min(len(text), self._longest))
        # Without a source the engine binds it to the text.
        self._engine._copy_from(self._options.schema, options)
        return self._engine.compiler.json_schema(self._schema, **options)


def record_of(options: Mapping[str, Any]) -> Callable[[Output[Any]], Any]:
    """What `extract` returns of an output: with details=True all of it."""
    return (lambda output: output) if options.get("details") else (lambda output: output.value)


def _layout(defaults: "Mapping[str, Tuple[Any, str]]", asked: Mapping[str, Any]) -> Dict[str, Any]:
    """How records are written where the call does not say."""
    value = {name: setting for name, (setting, _) in defaults.items()}
    layout = {"keys": value["keys"], "nulls": value["nulls"], "whitespace": "compact"}
    if not {"whitespace", "item_separator", "key_separator"} & set(asked):
        layout.update(whitespace=value["whitespace"], item_separator=value["separators"][0],
                      key_separator=value["separators"][1])
    return layout


def _checks(given: Any, draws: bool) -> List[Any]:
    """Samplers also take the checks of pawl.sampling, and their texts."""
    checks = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    for check in checks:
        if not callable(check) and not (draws and isinstance(check, (str, _pawl.Check))):
            raise TypeError(f"check must be a function, or several, not {type(check).__name__}")
    return checks


def _contrast(given: Any) -> str:
    if given is None or given == "auto":
        return given or ""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f'contrast must be a number or "auto", not {given!r}')
    return repr(float(given))


def _retries(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"max_retries must be an int, not {type(given).__name__}")
    if given < 0:
        raise PawlError("invalid", f"must be at least 0, not {given}", "max_retries")
    return given


def _count(output: Output[Any]) -> Dict[str, int]:
    return {"calls": 1, "prompt_tokens": output.report["prompt_tokens"],
            "output_tokens": output.report["output_tokens"]}


def value_maker(schema: Any) -> ValueMaker:
    if isinstance(schema, (str, bytes, bool, Mapping, os.PathLike)):
        schema = Any
    return lambda text: value_of(schema, text)


def _examples(examples: Any) -> List[Any]:
    """Pairs of a text and a record: a record may be of the schema's type."""
    out = []
    for example in examples:
        if isinstance(example, Mapping):
            text, record = example["text"], example["record"]
        else:
            text, record = example
        out.append({"text": text, "record": plain_value(record)})
    return out
