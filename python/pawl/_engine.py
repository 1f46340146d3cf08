"""Engine: a language model, and records and texts out of it.

One thread of the native module runs the model for all that is asked of an engine, so that calls from
several threads and tasks share its steps. Every call here is: sort the options, submit requests, wait.
Waiting hears Ctrl-C, and whatever ends a call early ends its requests.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import threading
import weakref
from typing import (TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Callable, Dict, Iterable,
                    Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union, overload)

from . import _pawl
from ._compiler import Compiler, schema_text
from ._errors import PawlError
from ._extract import Extract, record_of, value_maker
from ._options import Sorted, language_of, read_text
from ._output import AsyncStream, Output, Stream, ValueMaker, with_spans
from ._paths import shipped_model
from ._prompts import Chat, ahead_of, any_prompt, is_conversation, is_one, prompt_of, refuse_path, several
from ._running import Request, Running, agather, asynchronous, avalues, bar, gather, groups, values
from ._stores import resolve_model, store_paths

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from ._options import ExtractOptions, GenerateOptions
    from .sampling import Choices, SearchResult, WeightedOutput

    Message = Mapping[str, Any]
    Conversation = Union[str, Sequence[Message]]

T = TypeVar("T")

_KEPT_GRAMMARS = 64


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """What an engine knows of its model."""

    architecture: str
    weights: str
    kernels: str
    parameters: int
    weight_bytes: int
    context_length: int
    threads: int
    has_chat_template: bool
    lora: Sequence[str] = ()


class Engine:
    """A language model that runs here: on the CPU, or on a CUDA device where Pawl was built for it.

        engine = pawl.Engine()                      # the model that ships with Pawl
        engine = pawl.Engine("models/SmolLM2-1.7B-Instruct", dtype="int8")

    `model`: a folder as on the Hugging Face hub (config.json, *.safetensors, tokenizer.json), a GGUF
    file, or the name of a model that is on this machine: "org/name", "org/name:Q8_0", "ollama:name",
    "lmstudio:org/name". Nothing is fetched; `pawl.pull` does that. The options are those of the command: docs/python.md. An engine may be used by many
    threads and by asyncio at the same time, and `with` closes it. `settings`: the folder of choices that
    `pawl eval --save` has measured; None: that of the environment. `lora`: folders of LoRA adapters by name,
    which calls choose with `lora="NAME"`; or one folder, whose name is the adapter's.
    """

    def __init__(
        self,
        model: "Union[str, os.PathLike[str], None]" = None,
        *,
        batch: int = 8,
        dtype: str = "stored",
        threads: int = 0,
        device: str = "cpu",
        kv_dtype: str = "bf16",
        kernels: str = "auto",
        kv_bytes: int = 0,
        kept_kv_bytes: int = -1,
        chat_template: Optional[str] = None,
        reasoning_marks: Optional[Tuple[str, str]] = None,
        settings: "Union[str, os.PathLike[str], None]" = None,
        draft: Union[str, Sequence[str]] = "auto",
        draft_nodes: int = 16,
        draft_text: "Union[str, os.PathLike[str], None]" = None,
        draft_model: "Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]], None]" = None,
        draft_history: "Union[str, os.PathLike[str], None]" = None,
        draft_history_bytes: int = 64 << 20,
        draft_memory: int = 64,
        draft_verify: str = "coupled",
        draft_shape: str = "heap",
        oracle_bytes: int = 256 << 20,
        lora: "Union[None, str, os.PathLike[str], Mapping[str, Union[str, os.PathLike[str]]]]" = None,
        lora_bytes: int = 1 << 30,
    ) -> None:
        if model is not None and not isinstance(model, (str, os.PathLike)):
            raise TypeError(f"model must be a path, not {type(model).__name__}")
        if model is not None and not os.fspath(model):
            raise PawlError("invalid", "is empty", "model")
        _check_drafts(draft, draft_text=draft_text, draft_model=draft_model,
                      draft_history=draft_history)
        self.path: str = (shipped_model() if model is None
                          else resolve_model(os.path.expanduser(os.fspath(model))))
        drafters = ([] if not draft_model
                    else [draft_model] if isinstance(draft_model, (str, os.PathLike))
                    else list(draft_model))
        if settings is None:
            settings = store_paths().settings
        files = {"settings": settings, "draft_text": draft_text, "draft_history": draft_history}
        self._options: Dict[str, Any] = dict(
            batch=batch, dtype=dtype, threads=threads, device=device, kv_dtype=kv_dtype,
            kernels=kernels, kv_bytes=kv_bytes, kept_kv_bytes=kept_kv_bytes,
            chat_template=chat_template,
            reasoning_marks=reasoning_marks, draft=draft if isinstance(draft, str) else ",".join(draft),
            draft_nodes=draft_nodes, draft_history_bytes=draft_history_bytes,
            draft_memory=draft_memory, draft_verify=draft_verify, draft_shape=draft_shape,
            oracle_bytes=oracle_bytes, lora=_adapters(lora), lora_bytes=lora_bytes,
            draft_model=[resolve_model(os.fspath(path)) for path in drafters],
            **{name: None if path is None else os.fspath(path) for name, path in files.items()})
        self._native: Optional[_pawl.Engine] = _native(self.path, self._options)
        self._process = os.getpid()
        self._ahead = 8 * batch
        self.vocabulary: _pawl.Vocabulary = self._native.vocabulary
        #: Compiles grammars for this model.
        self.compiler: Compiler = Compiler._around(self._native.compiler(_KEPT_GRAMMARS),
                                                   self.vocabulary)
        self._schema_texts: "collections.OrderedDict[Any, str]" = collections.OrderedDict()
        self._lock = threading.Lock()
        self._running = Running(self._native)
        # Also at the end of the interpreter, while threads can still be waited for.
        self._end = weakref.finalize(self, self._running.close_quietly)

    # What it is.

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(**self._engine().info)

    @property
    def extract_defaults(self) -> Dict[str, Tuple[Any, str]]:
        """Each setting of `extract` where a call says nothing: its value, and where it comes from:
        "measured choice" (`pawl eval --variants --save`), "pawl.json" or "default"."""
        return {name: (json.loads(value), source)
                for name, value, source in self._engine().extract_defaults}

    def encode(self, text: Union[str, bytes], *, special: bool = False) -> List[int]:
        """`special`: special tokens that the text spells become those tokens."""
        return self._engine().encode(text, special)

    def decode(self, tokens: Sequence[int]) -> str:
        return self._engine().decode(tokens).decode("utf-8", "replace")

    def close(self) -> None:
        """Ends what still runs and gives the memory back. With draft_history, writes it."""
        native, self._native = self._native, None
        self._end.detach()
        if native is not None:
            self._running.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"pawl.Engine({self.path!r})"

    def __reduce__(self) -> Any:
        # For processes of a pool: each loads the model for itself, out of the same mapped file.
        return _load, (self.path, self._options)

    # Texts.

    @overload
    def generate(  # type: ignore[overload-overlap]  # a str is an Iterable[str] too
                 self, prompt: Union[str, Sequence[int]], *, progress: Optional[bool] = None,
                 **options: "Unpack[GenerateOptions]") -> Output[Any]: ...
    @overload
    def generate(self, prompt: Iterable[str], *, errors: "Literal['return']",
                 progress: Optional[bool] = None,
                 **options: "Unpack[GenerateOptions]") -> List[Union[Output[Any], Exception]]: ...
    @overload
    def generate(self, prompt: Iterable[str], *, errors: "Literal['raise']" = "raise",
                 progress: Optional[bool] = None,
                 **options: "Unpack[GenerateOptions]") -> List[Output[Any]]: ...
    def generate(self, prompt: Any, *, errors: str = "raise", progress: Optional[bool] = None,
                 **options: Any) -> Any:
        """Goes on from a prompt: a text, or tokens. Several prompts give a list, made together.

            engine.generate("A colour: ", choice=["red", "green"], temperature=1, seed=3).text
            engine.generate("Ann Lee, ann@lee.org", schema=Contact).value

        At most one of `schema`, `regex`, `choice`, `grammar`, `structural_tag`, `substring`; and next to
        it `constraint`, a Constraint of your own.
        `errors="return"`: what fails stands in the list as its exception.
        """
        call = _Call(self, options)
        if is_one(prompt):
            return call.output(self._running.one(call.request(prompt_of(prompt, call.special))))
        prompts = several(prompt, "prompt")
        jobs = self._running.run((call.request(prompt_of(p, call.special)) for p in prompts), self._ahead)
        return gather(jobs, call.output, errors, "prompt", bar(progress, len(prompts), "generate"))

    async def agenerate(self, prompt: Any, *, errors: str = "raise",
                        **options: "Unpack[GenerateOptions]") -> Any:
        """As `generate`, for asyncio. A task that is cancelled ends its generation."""
        call = _Call(self, dict(options))
        if is_one(prompt):
            return call.output(await self._running.aone(call.request(prompt_of(prompt, call.special))))
        requests = (call.request(prompt_of(p, call.special)) for p in several(prompt, "prompt"))
        return await agather(self._running.arun(asynchronous(requests), self._ahead), call.output, errors,
                              "prompt")

    def chat(self, messages: Any, *, tools: Optional[Sequence[Any]] = None,
             documents: Optional[Sequence[Any]] = None,
             chat_args: Optional[Mapping[str, Any]] = None, errors: str = "raise",
             progress: Optional[bool] = None, **options: "Unpack[GenerateOptions]") -> Any:
        """What the model says next in a conversation: a list of messages, or the text of a user.

            engine.chat([{"role": "system", "content": "Be brief."},
                         {"role": "user", "content": "Is it far?"}], max_tokens=50).text

        Several conversations, lists in a list, give a list. `chat_args`: variables of the model's chat
        template, such as {"enable_thinking": False}.
        """
        call = _Call(self, dict(options))
        lay_out = Chat(tools, documents, chat_args)
        if is_conversation(messages):
            return call.output(self._running.one(call.request(lay_out(messages))))
        all_messages = list(messages)
        jobs = self._running.run((call.request(lay_out(m)) for m in all_messages), self._ahead)
        return gather(jobs, call.output, errors, "messages",
                       bar(progress, len(all_messages), "chat"))

    async def achat(self, messages: Any, *, tools: Optional[Sequence[Any]] = None,
                    documents: Optional[Sequence[Any]] = None,
                    chat_args: Optional[Mapping[str, Any]] = None, errors: str = "raise",
                    **options: "Unpack[GenerateOptions]") -> Any:
        """As `chat`, for asyncio."""
        call = _Call(self, dict(options))
        lay_out = Chat(tools, documents, chat_args)
        if is_conversation(messages):
            return call.output(await self._running.aone(call.request(lay_out(messages))))
        requests = (call.request(lay_out(m)) for m in list(messages))
        return await agather(self._running.arun(asynchronous(requests), self._ahead), call.output, errors,
                              "messages")

    def stream(self, prompt: "Union[str, Sequence[int], Sequence[Message]]", *,
               tools: Optional[Sequence[Any]] = None, documents: Optional[Sequence[Any]] = None,
               chat_args: Optional[Mapping[str, Any]] = None,
               **options: "Unpack[GenerateOptions]") -> Stream:
        """The same as it comes: an iterator over pieces of text. A list of messages is a chat.

            for piece in engine.stream("Once ", max_tokens=50):
                print(piece, end="", flush=True)
        """
        call = _Call(self, dict(options))
        request = call.request(any_prompt(prompt, call.special, Chat(tools, documents, chat_args)))
        return Stream(self, request(True), call.make_value)

    def astream(self, prompt: "Union[str, Sequence[int], Sequence[Message]]", *,
                tools: Optional[Sequence[Any]] = None, documents: Optional[Sequence[Any]] = None,
                chat_args: Optional[Mapping[str, Any]] = None,
                **options: "Unpack[GenerateOptions]") -> AsyncStream:
        """As `stream`, for asyncio:

            async with engine.astream("Once ") as stream:
                async for piece in stream:
                    ...
        """
        call = _Call(self, dict(options))
        request = call.request(any_prompt(prompt, call.special, Chat(tools, documents, chat_args)))
        return AsyncStream(self, request(True), call.make_value)

    # Records.

    @overload
    def extract(  # type: ignore[overload-overlap]
                self, texts: str, schema: "type[T]", *, details: "Literal[True]",
                **options: Any) -> Output[T]: ...
    @overload
    def extract(  # type: ignore[overload-overlap]
                self, texts: Iterable[str], schema: "type[T]", *, details: "Literal[True]",
                **options: Any) -> List[Output[T]]: ...
    @overload
    def extract(  # type: ignore[overload-overlap]
                self, texts: str, schema: "type[T]", *, progress: Optional[bool] = None,
                **options: "Unpack[ExtractOptions]") -> T: ...
    @overload
    def extract(self, texts: Iterable[str], schema: "type[T]", *, errors: "Literal['return']",
                progress: Optional[bool] = None,
                **options: "Unpack[ExtractOptions]") -> List[Union[T, Exception]]: ...
    @overload
    def extract(self, texts: Iterable[str], schema: "type[T]", *, errors: "Literal['raise']" = "raise",
                progress: Optional[bool] = None,
                **options: "Unpack[ExtractOptions]") -> List[T]: ...
    @overload
    def extract(self, texts: str, schema: Any, *, progress: Optional[bool] = None,
                **options: "Unpack[ExtractOptions]") -> Any: ...
    @overload
    def extract(self, texts: Iterable[str], schema: Any, *, errors: str = "raise",
                progress: Optional[bool] = None,
                **options: "Unpack[ExtractOptions]") -> List[Any]: ...
    def extract(self, texts: Any, schema: Any, *, errors: str = "raise",
                progress: Optional[bool] = None, **options: Any) -> Any:
        """A record out of each text, as `pawl extract` makes it.

            class Invoice(pydantic.BaseModel):
                vendor: str
                total: float

            engine.extract(texts, Invoice)             # list[Invoice], in the order of the texts
            engine.extract(text, {"type": "object", ...})       # a dict

        `schema`: a Pydantic model, a dataclass, a TypedDict or what is made of them; or a JSON Schema as
        a dict, text or pathlib.Path: then records are dicts. `errors="return"`: what fails stands in
        the list as its exception and does not stop the others.

        `document=True`: a text may be longer than the model's context. It is read in chunks of
        `chunk_tokens` tokens (default: half of the context), `passes` times (docs/extraction.md).

        `check`: a function of a record, or several, that raises ValueError or AssertionError, returns False or
        says what is wrong. `max_retries`: further tries where a check or the validators of the type refuse a
        record; the model sees the record and the error. After the last one the error is raised.

        `sampler`: records that keep the model's distribution, given the checks, as `sample` draws them
        ("smc", "cars", ...) and with its options; a check may then be what `sample` takes, too.

        `details=True`: an Output in place of each record, its `value`: with `spans`, `byte_spans`, `probability`,
        `surprise` and `alternatives` (docs/extraction.md).

        `contrast`: a number or "auto". Makes more probable what the text adds to the prompt (docs/search.md).
        """
        return self._extract(texts, schema, errors, progress, options, record_of(options))

    @overload
    def extract_outputs(  # type: ignore[overload-overlap]
                        self, texts: str, schema: "type[T]", *, progress: Optional[bool] = None,
                        **options: "Unpack[ExtractOptions]") -> Output[T]: ...
    @overload
    def extract_outputs(self, texts: Iterable[str], schema: "type[T]", *,
                        errors: "Literal['raise']" = "raise", progress: Optional[bool] = None,
                        **options: "Unpack[ExtractOptions]") -> List[Output[T]]: ...
    @overload
    def extract_outputs(self, texts: Any, schema: Any, *, errors: str = "raise",
                        progress: Optional[bool] = None,
                        **options: "Unpack[ExtractOptions]") -> Any: ...
    def extract_outputs(self, texts: Any, schema: Any, *, errors: str = "raise",
                        progress: Optional[bool] = None, **options: Any) -> Any:
        """As `extract`, but with the whole Output: its `value` is the record."""
        return self._extract(texts, schema, errors, progress, options, lambda output: output)

    def _extract(self, texts: Any, schema: Any, errors: str, progress: Optional[bool],
                 options: Dict[str, Any], of: Callable[[Output[Any]], Any]) -> Any:
        call = Extract(self, schema, options)
        if isinstance(texts, (str, bytes)):
            return of(call.output(self._running.one(call.request(texts))))
        all_texts = several(texts)
        jobs = self._running.run(map(call.request, all_texts), self._ahead)
        return gather(jobs, lambda job: of(call.output(job)), errors, "texts",
                       bar(progress, len(all_texts), "extract"))

    @overload
    async def aextract(  # type: ignore[overload-overlap]
                       self, texts: str, schema: "type[T]",
                       **options: "Unpack[ExtractOptions]") -> T: ...
    @overload
    async def aextract(self, texts: Iterable[str], schema: "type[T]", *, errors: "Literal['return']",
                       **options: "Unpack[ExtractOptions]") -> List[Union[T, Exception]]: ...
    @overload
    async def aextract(self, texts: Iterable[str], schema: "type[T]", *,
                       errors: "Literal['raise']" = "raise",
                       **options: "Unpack[ExtractOptions]") -> List[T]: ...
    @overload
    async def aextract(self, texts: str, schema: Any,
                       **options: "Unpack[ExtractOptions]") -> Any: ...
    @overload
    async def aextract(self, texts: Iterable[str], schema: Any, *, errors: str = "raise",
                       **options: "Unpack[ExtractOptions]") -> List[Any]: ...
    async def aextract(self, texts: Any, schema: Any, *, errors: str = "raise",
                       **options: Any) -> Any:
        """As `extract`, for asyncio."""
        call = Extract(self, schema, options)
        if isinstance(texts, (str, bytes)):
            return await call.avalue(await self._running.aone(call.request(texts)))
        requests = asynchronous(map(call.request, several(texts)))
        return await agather(self._running.arun(requests, self._ahead), call.avalue, errors, "texts")

    @overload
    def extract_iter(self, texts: Iterable[str], schema: "type[T]", *,
                     errors: "Literal['raise']" = "raise", ahead: Optional[int] = None,
                     **options: "Unpack[ExtractOptions]") -> Iterator[T]: ...
    @overload
    def extract_iter(self, texts: Iterable[str], schema: Any, *, errors: str = "raise",
                     ahead: Optional[int] = None,
                     **options: "Unpack[ExtractOptions]") -> Iterator[Any]: ...
    def extract_iter(self, texts: Iterable[str], schema: Any, *, errors: str = "raise",
                     ahead: Optional[int] = None, **options: Any) -> Iterator[Any]:
        """The records of texts that need not all be there yet, in their order. At most `ahead` texts
        (default: 8 times the engine's batch) are read before the first record is given."""
        call = Extract(self, schema, options)
        jobs = self._running.run(map(call.request, texts), ahead_of(ahead, self._ahead))
        return values(jobs, lambda job: call._record(call.output(job)), errors, "texts")

    @overload
    def aextract_iter(self, texts: Union[Iterable[str], AsyncIterable[str]], schema: "type[T]", *,
                      errors: "Literal['raise']" = "raise", ahead: Optional[int] = None,
                      **options: "Unpack[ExtractOptions]") -> AsyncIterator[T]: ...
    @overload
    def aextract_iter(self, texts: Union[Iterable[str], AsyncIterable[str]], schema: Any, *,
                      errors: str = "raise", ahead: Optional[int] = None,
                      **options: "Unpack[ExtractOptions]") -> AsyncIterator[Any]: ...
    async def aextract_iter(self, texts: Any, schema: Any, *, errors: str = "raise",
                            ahead: Optional[int] = None, **options: Any) -> AsyncIterator[Any]:
        """The same for asyncio. Records are given while the next texts are waited for."""
        call = Extract(self, schema, options)

        async def requests() -> AsyncIterator[Request]:
            if isinstance(texts, AsyncIterable):
                async for text in texts:
                    yield call.request(text)
            else:
                for text in texts:
                    yield call.request(text)

        jobs = self._running.arun(requests(), ahead_of(ahead, self._ahead))
        async for value in avalues(jobs, call.avalue, errors, "texts"):
            yield value

    # Samples and scores.

    def sample(self, prompt: Union[None, str, Sequence[int]] = None, **options: Any) -> "List[WeightedOutput]":
        """Outputs that keep the model's distribution: docs/sampling.md.

            engine.sample("Once ", sampler="smc", n=20, particles=5, regex="[a-z ]{3,40}")

        The arguments are those of pawl.sampling.Model.generate. The rows of the samplers run in the calls of the
        model that the other outputs of this engine make.
        """
        from .sampling import Model

        return Model(self).generate(prompt, **options)

    def search(self, prompt: Union[None, str, Sequence[int]] = None, **options: Any) -> "SearchResult":
        """Outputs of high probability, as pawl.sampling.Model.search: docs/search.md.

            engine.search("Once ", strategy="beam", num_beams=8, regex="[a-z ]{3,40}")
        """
        from .sampling import Model

        return Model(self).search(prompt, **options)

    def classify(self, prompt: Union[None, str, Sequence[int]] = None, **options: Any) -> "Choices":
        """The probabilities of choices, as pawl.sampling.Model.classify.

            engine.classify("The sea is ", choices=["blue", "green"])
        """
        from .sampling import Model

        return Model(self).classify(prompt, **options)

    def score(self, prompt: Union[None, str, Sequence[int]] = None, **options: Any) -> float:
        """The log-probability of `text` or `tokens` behind a prompt, as pawl.sampling.Model.score."""
        from .sampling import Model

        return Model(self).score(prompt, **options)

    def score_each(self, prompt: Union[None, str, Sequence[int]] = None, **options: Any) -> List[float]:
        """The log-probability of each token, as pawl.sampling.Model.score_each."""
        from .sampling import Model

        return Model(self).score_each(prompt, **options)

    # Running.

    def _engine(self) -> _pawl.Engine:
        if self._native is None:
            raise PawlError("invalid", "the engine is closed")
        self._running.hold_at_exit()
        if self._process != os.getpid():
            raise PawlError("invalid", "an engine does not survive a fork: make it in the process that "
                                       "uses it, or start processes with spawn")
        return self._native

    def _submit(self, prompt: Tuple[Any, ...], grammar: Optional[_pawl.Grammar], options: Sorted,
                streams: bool, group: int) -> _pawl.Job:
        if options.lora:
            prompt = ("lora", options.lora, prompt)
        return self._running.call(self._engine().submit, prompt, grammar, options.sampling,
                                  options.stops, options.logit_bias, streams, group, options.own)

    def _copy_from(self, given: Mapping[str, Any], options: Dict[str, Any]) -> None:
        """What fields are copied from: `source` as the model sees it, or the text or messages of each request."""
        if given.get("source") is not None:
            options["source"] = self._engine().as_seen(given["source"]) or " "  # neither has spans
        else:
            options["bind_source"] = True

    def _text_of_schema(self, schema: Any) -> str:
        """As compact JSON. Those of types are kept, since making them takes milliseconds."""
        if schema is None:
            raise TypeError("schema must be a type or a JSON Schema, not None")
        if isinstance(schema, os.PathLike):
            return _pawl.compact_json(read_text(schema))
        if isinstance(schema, str):
            refuse_path(schema)
        if not isinstance(schema, type):
            return _pawl.compact_json(schema_text(schema))
        with self._lock:
            known = self._schema_texts.get(schema)
        if known is None:
            known = _pawl.compact_json(schema_text(schema))
            with self._lock:
                self._schema_texts[schema] = known
                while len(self._schema_texts) > _KEPT_GRAMMARS:
                    self._schema_texts.popitem(last=False)
        return known


def _load(path: str, options: Dict[str, Any]) -> Engine:
    lora = dict(one.split("=", 1) for one in options["lora"])
    return Engine(path, **{**options, "lora": lora})


def _adapters(lora: Any) -> List[str]:
    """NAME=DIR of each."""
    if lora is None:
        return []
    if isinstance(lora, (str, os.PathLike)):
        path = os.fspath(lora)
        lora = {os.path.basename(os.path.normpath(path)): path}
    if not isinstance(lora, Mapping):
        raise TypeError(f"lora must be a folder, or folders by name, not {type(lora).__name__}")
    for name in lora:
        if not isinstance(name, str) or not name or "=" in name:
            raise PawlError("invalid", f"{name!r} is no name of an adapter", "lora")
    return [f"{name}={os.path.abspath(os.path.expanduser(os.fspath(path)))}" for name, path in lora.items()]


def _native(path: str, options: Dict[str, Any]) -> _pawl.Engine:
    options = dict(options)
    marks = options.pop("reasoning_marks") or (None, None)
    try:
        return _pawl.Engine(path, {**options, "reasoning_open": marks[0], "reasoning_close": marks[1]})
    except PawlError as error:
        if error.place != "max_batch":
            raise
        raise PawlError(error.code, error.message, "batch") from None


def _check_drafts(draft: Union[str, Sequence[str]], **files: Any) -> None:
    names = draft.split(",") if isinstance(draft, str) else draft
    for option, value in files.items():
        source = option[len("draft_"):]
        if value not in (None, []) and "auto" not in names and source not in names:
            raise PawlError("invalid", f'needs draft="auto", or {source} among its sources', option)


class _Call:
    """What one call of `generate`, `chat` or `stream` asks of each of its outputs."""

    def __init__(self, engine: Engine, options: Mapping[str, Any]) -> None:
        self._engine = engine
        self._group = next(groups)
        self._options = Sorted(options, with_constraint=True)
        self.special = self._options.special
        self.make_value: Optional[ValueMaker] = None
        self._grammar = self._compile()

    def request(self, prompt: Tuple[Any, ...]) -> Request:
        return lambda streams: self._engine._submit(prompt, self._grammar, self._options, streams,
                                                    self._group)

    def output(self, job: _pawl.Job) -> Output[Any]:
        return with_spans(Output(job, self.make_value), self._engine, self._options)

    def _compile(self) -> Optional[_pawl.Grammar]:
        options = self._options
        compiler = self._engine.compiler
        given: Any = options.constraint.get(options.kind) if options.kind else None
        json_options = {"whitespace": "compact", **options.schema}
        self._engine._copy_from(options.schema, json_options)
        if options.kind == "schema":
            self.make_value = value_maker(given)
            return compiler.json_schema(self._engine._text_of_schema(given), **json_options)
        if options.kind == "regex":
            return compiler.regex(given)
        if options.kind == "choice":
            return compiler.choice([given] if isinstance(given, str) else several(given, "choice"))
        if options.kind == "substring":
            return compiler.substring(given)
        if options.kind == "structural_tag":
            own = {name: value for name, value in json_options.items()
                   if name in options.schema or name == "bind_source"}
            return compiler.structural_tag(given, **own)
        if options.kind == "grammar":
            if isinstance(given, _pawl.Grammar):
                return given
            text = read_text(given) if isinstance(given, os.PathLike) else given
            return compiler.grammar(text, language_of(given, options.constraint.get("language")),
                                    root=options.constraint.get("root", "root"), **json_options)
        return None
