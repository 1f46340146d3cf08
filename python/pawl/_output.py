"""What comes back from an Engine: outputs, and outputs that are not complete yet."""

from __future__ import annotations

import codecs
import json
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Generic, Iterator, List,
                    Optional, Tuple, TypeVar, cast)

from . import _pawl
from ._errors import PawlError
from ._running import FOREVER

if TYPE_CHECKING:
    from types import TracebackType

    from ._engine import Engine
    from ._options import Sorted

T = TypeVar("T")
ValueMaker = Callable[[str], Any]

_MISSING = object()


class Output(Generic[T]):
    """A finished output.

    `text`, `tokens` (without the end token), and `finish_reason`: "stop" (the model came to the end,
    or a stop text came), "length" (the budget ran out), "cancelled" or "refused" (a constraint that is
    not exact refused every token). `closed`: it was closed with the shortest valid end because the budget
    was nearly spent, a limit was reached (`notes`) or the output repeated itself (`closed_by`); `stop`:
    the stop text that ended it.
    With details=True, of a record: `spans`, `byte_spans`, `probability`, `surprise` and `alternatives`, each
    by JSON Pointer, and with document=True `conflicts` (docs/extraction.md).
    `report` has what it cost, with the keys of the command's --stats-json. `notes`: texts for those who
    read the output, mostly none, e.g. that a grammar has too many readings, so that the output
    was closed. `reasoning`: what the model thought before it answered, which is no part of `text`.
    """

    __slots__ = ("text", "tokens", "finish_reason", "closed", "closed_by", "stop", "report", "notes",
                 "reasoning", "logprobs", "spans", "byte_spans", "probability", "surprise",
                 "alternatives", "conflicts", "_job", "_make_value", "_value")

    def __init__(self, job: _pawl.Job, make_value: Optional[ValueMaker]) -> None:
        text, tokens, why, stop, report, notes, reasoning, closed_by = job.output()
        self.text: str = text.decode("utf-8", "replace")
        self.tokens: List[int] = tokens
        self.finish_reason: str = {"end": "stop", "closed": "length"}.get(why, why)
        self.closed: bool = why == "closed"
        #: Of an output that was closed: "budget", "steps" (a limit of the grammar) or "repetition".
        self.closed_by: Optional[str] = closed_by or None
        self.stop: Optional[str] = stop.decode("utf-8") if why == "stop" else None
        self.report: Dict[str, Any] = report
        self.notes: List[str] = notes
        self.reasoning: str = reasoning.decode("utf-8", "replace")
        #: Of each token, where logprobs were asked for: (token, log-probability, the most probable
        #: ones with theirs).
        self.logprobs: List[Tuple[int, float, List[Tuple[int, float]]]] = job.logs()
        details: Dict[str, Any] = json.loads(job.details())
        #: Where the text has the value: [begin, end) in characters, and in bytes.
        self.spans: Dict[str, List[int]] = details.get("spans", {})
        self.byte_spans: Dict[str, List[int]] = details.get("byte_spans", {})
        #: None where the shortest completion wrote the value.
        self.probability: Dict[str, Optional[float]] = details.get("probability", {})
        self.surprise: Dict[str, Optional[float]] = details.get("surprise", {})
        #: Of each choice: {"value": ..., "probability": ...}, most probable first.
        self.alternatives: Dict[str, List[Dict[str, Any]]] = details.get("alternatives", {})
        #: Of a document: the values that other chunks had in place of the record's.
        self.conflicts: Dict[str, List[Dict[str, Any]]] = details.get("conflicts", {})
        self._job = job if job.has_captures else None
        self._make_value = make_value
        self._value: Any = _MISSING

    @property
    def value(self) -> T:
        """The record, where the output is JSON for a schema: an instance of the type that the schema
        was given as, or dicts and lists. Raises PawlError where the output was cut."""
        if self._value is _MISSING:
            if self._make_value is None:
                raise PawlError("invalid", "the output was not asked to be JSON for a schema")
            if self.finish_reason in ("cancelled", "refused") or (self.finish_reason == "length" and not self.closed):
                raise PawlError("limit", "the output was cut, so it is no value", "max_tokens")
            self._value = self._make_value(self.text)
        return cast(T, self._value)

    @property
    def captures(self) -> List[Tuple[str, int, int, bytes]]:
        """(name, begin, end, bytes) of what the grammar captures."""
        return [] if self._job is None else self._job.captures()

    def __repr__(self) -> str:
        return f"Output({self.text!r}, finish_reason={self.finish_reason!r})"

    def __str__(self) -> str:
        return self.text


def with_spans(output: Output[Any], engine: "Engine", options: "Sorted") -> Output[Any]:
    """Of `generate` and `chat`: with details=True the places in `source`, where they were given one."""
    source = options.schema.get("source")
    if source is not None and options.kind == "schema" and options.sampling.get("details"):
        schema = engine._text_of_schema(options.constraint["schema"])
        output.spans, output.byte_spans = engine._engine().find_spans(output.text, source, schema)
    return output


class _Pieces:
    """Bytes as they come, as characters: the first bytes of one wait for its rest."""

    def __init__(self, job: _pawl.Job) -> None:
        self._job = job
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.done = False

    def take(self) -> str:
        piece, _, self.done = self._job.take()
        return self._decode(piece, self.done)


class Stream:
    """The pieces of an output as they come: an iterator of str.

        with engine.stream("Once ") as stream:
            for piece in stream:
                print(piece, end="", flush=True)
        stream.output.finish_reason

    Leaving it early, by `with`, close() or an exception, ends the generation.
    """

    def __init__(self, engine: "Engine", job: _pawl.Job, make_value: Optional[ValueMaker]) -> None:
        self._engine = engine  # which ends its jobs when it goes
        self._job = job
        self._make_value = make_value
        self._pieces = _Pieces(job)
        self._output: Optional[Output[Any]] = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._pieces.done:
            try:
                self._engine._running.call(self._job.wait, FOREVER)
            except BaseException:
                self.close()
                raise
            piece = self._pieces.take()
            if piece:
                return piece
        self._finish()
        raise StopIteration

    def _finish(self) -> None:
        if self._output is None:
            self._output = Output(self._job, self._make_value)

    @property
    def output(self) -> Output[Any]:
        """The whole output; waits for it."""
        while not self._job.done:
            self._engine._running.call(self._job.wait_done, FOREVER)
        self._finish()
        assert self._output is not None
        return self._output

    def close(self) -> None:
        self._job.cancel()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: Any, error: Any, trace: "Optional[TracebackType]") -> None:
        self.close()


class AsyncStream:
    """The same for asyncio: an asynchronous iterator, and an asynchronous context manager."""

    def __init__(self, engine: "Engine", job: _pawl.Job, make_value: Optional[ValueMaker]) -> None:
        self._engine = engine
        self._job = job
        self._make_value = make_value
        self._pieces = _Pieces(job)
        self._output: Optional[Output[Any]] = None

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not self._pieces.done:
            await self._engine._running.news(self._job)
            self._engine._running.hold_at_exit()
            piece = self._pieces.take()
            if piece:
                return piece
        self._finish()
        raise StopAsyncIteration

    def _finish(self) -> None:
        if self._output is None:
            self._output = Output(self._job, self._make_value)

    @property
    def output(self) -> Output[Any]:
        """The whole output, once the iterator has come to its end."""
        if not self._job.done:
            raise PawlError("invalid", "the stream has not come to its end")
        self._finish()
        assert self._output is not None
        return self._output

    async def aclose(self) -> None:
        self._job.cancel()

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: "Optional[TracebackType]") -> None:
        self._job.cancel()
