"""Pawl as a structured-output backend of vLLM.

    vllm serve MODEL --structured-outputs-config '{"backend": "pawl"}'

Installed next to vLLM nothing more is needed: the entry point `vllm.general_plugins` calls `register`
in every process of the engine. A program that makes an `LLM` calls it first, since `LLM` checks its
arguments before plugins are loaded:

    import pawl.vllm
    pawl.vllm.register()
    llm = vllm.LLM(model, structured_outputs_config={"backend": "pawl"})

vLLM has no registry of backends, so `register` puts functions in the place of vLLM's own. Each is
looked at first: one that is missing, or that takes other parameters than those of the versions this
was written for, is an error, and nothing is changed.

Options of JSON Schemas for all requests (docs/python.md lists them):
`--additional-config '{"pawl": {"whitespace": "compact", "max_string": 200}}'`. With `"close": true` an
output is closed with a short valid end when the request's `max_tokens` are nearly spent, rather than cut.
"""

from __future__ import annotations

import inspect
import json
import threading
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterable, List, Literal, Optional, Set, Tuple, get_args

import pawl

NAME = "pawl"
VERSIONS = "0.32 and 0.33"
# The name under which vLLM's own checks of a request run before ours; see `_patch_validation`.
_CHECKED_NAME = "xgrammar-pawl"
_MARK = "_pawl_original"
_OPTIONS = "_pawl_options"
_CLOSES = "_pawl_closes"
_lock = threading.Lock()


def _options(config: Any) -> Tuple[Dict[str, Any], int]:
    """The options of JSON Schemas that the engine's configuration asks for, and the cache's size."""
    extra = getattr(config, "additional_config", None)
    chosen = dict((extra.get(NAME) or {}) if isinstance(extra, dict) else {})
    cached = int(chosen.pop("cached_grammars", 512))
    for ours in ("close", "prepare_bytes"):
        chosen.pop(ours, None)
    outputs = config.structured_outputs_config
    options: Dict[str, Any] = {
        "whitespace": "compact" if outputs.disable_any_whitespace else "bounded"}
    if outputs.disable_additional_properties:
        options["additional_properties"] = False
    options.update(chosen)
    return options, cached


# Of the text whose masks are found while a grammar is compiled. That is away from the steps of the
# outputs, and still takes less time than the other backends need to compile.
PREPARE_BYTES = 600


def prepare_bytes(config: Any) -> int:
    """How much of a grammar's specimen its masks are found along when it is compiled; 0: none."""
    extra = getattr(config, "additional_config", None)
    chosen = (extra.get(NAME) or {}) if isinstance(extra, dict) else {}
    return int(chosen.get("prepare_bytes", PREPARE_BYTES))


def prepare(grammar: Any, tokenizer: Any, limit: int) -> int:
    """Finds the masks that an output of the grammar will most likely ask for, along texts that have
    all it names, in the tokens that the tokenizer writes them with. The number of masks."""
    found = 0
    # The library's own tokenizer where there is one: it takes half the time, and many threads.
    backend = getattr(tokenizer, "backend_tokenizer", None)
    for text in grammar.specimens(limit) if limit > 0 else ():
        try:
            if backend is not None:
                tokens = backend.encode(text.decode(), add_special_tokens=False).ids
            else:
                tokens = tokenizer.encode(text.decode(), add_special_tokens=False)
        except Exception:  # bytes that are no text, or a tokenizer of another kind
            break
        found += grammar.prepare_masks(tokens)
    return found


def closes(config: Any) -> bool:
    """Whether the engine closes outputs whose tokens are nearly spent."""
    extra = getattr(config, "additional_config", None)
    return isinstance(extra, dict) and bool((extra.get(NAME) or {}).get("close"))


def compile_request(compiler: pawl.Compiler, kind: Any, spec: str,
                    options: Dict[str, Any]) -> Any:
    """The grammar of a request: `kind` is one of vLLM's StructuredOutputOptions."""
    from vllm.v1.structured_output.utils import grammar_is_likely_lark

    name = kind.name
    if name == "JSON":
        return compiler.json_schema(spec, **options)
    if name == "JSON_OBJECT":
        return compiler.json_schema('{"type": "object"}', **options)
    if name == "REGEX":
        return compiler.regex(spec)
    if name == "CHOICE":
        return compiler.choice(json.loads(spec))
    if name == "GRAMMAR":
        if grammar_is_likely_lark(spec):
            return compiler.grammar(spec, "lark", **options)
        return compiler.grammar(spec, "ebnf", **options)
    if name == "STRUCTURAL_TAG":
        return compiler.structural_tag(spec)
    raise pawl.PawlError("unsupported", f"pawl.vllm does not know requests of the kind {name}")


def vocabulary_of(tokenizer: Any, vocab_size: int) -> Any:
    """Tokenizers whose names are not what they spell hand out what they made for XGrammar (PLaMo's);
    all others are read as the library transformers has them."""
    ready = getattr(tokenizer, "init_xgrammar", None)
    if callable(ready):
        info, ends = ready()
        tokens = [bytes(token) for token in info.decoded_vocab]
        tokens += [b""] * (vocab_size - len(tokens))
        special = {i for i, token in enumerate(tokens) if not token} | set(ends)
        return pawl.Vocabulary(tokens, sorted(special), sorted(ends))
    return pawl.Vocabulary.from_huggingface(tokenizer, padded_size=vocab_size)


def _grammar_class() -> type:
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

    class PawlGrammar(StructuredOutputGrammar):
        """One request. What the host asks for is a look at the matcher or a step of it."""

        def __init__(self, matcher: Any) -> None:
            self.matcher = matcher
            self.plan: Tuple[int, ...] = ()  # the tokens that close it, once it has to be

        def accept_tokens(self, request_id: str, tokens: List[int]) -> bool:
            matcher = self.matcher
            for token in tokens:
                if matcher.terminated:  # what a host writes behind the end is no error
                    return True
                if not matcher.accept(token):
                    return False
            return True

        def validate_tokens(self, tokens: List[int]) -> List[int]:
            return tokens[:self.matcher.validate_tokens(tokens)]

        def rollback(self, num_tokens: int) -> None:
            if num_tokens <= 0:
                return
            try:
                self.matcher.rollback(num_tokens)
            except IndexError:
                raise RuntimeError(f"{num_tokens} tokens cannot be taken back") from None

        def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
            self.matcher.fill_mask(bitmask, batch_index)

        def is_terminated(self) -> bool:
            return self.matcher.terminated

        def reset(self) -> None:
            self.matcher.reset()
            self.plan = ()

    return PawlGrammar


def _backend_class() -> type:
    from vllm.v1.structured_output.backend_types import StructuredOutputBackend

    grammar_class = _grammar_class()

    class PawlBackend(StructuredOutputBackend):
        """One for each engine; requests are compiled on the host's threads."""

        def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
            super().__init__(vllm_config, tokenizer, vocab_size)
            vocabulary = vocabulary_of(tokenizer, vocab_size)
            self.options, cached = _options(vllm_config)
            self.close = closes(vllm_config)
            self.prepare_bytes = prepare_bytes(vllm_config)
            self.compiler = pawl.Compiler(vocabulary, cached_grammars=cached)
            self.compiler.warm_up()
            # For a handful of rows waking threads costs more than the rows do.
            self.one_thread, self.all_threads = pawl.BatchFiller(1), pawl.BatchFiller(0)
            self._tensor = self._view = None
            # Schemas whose masks were prepared, the newest last: as many as the compiler keeps.
            self._prepared: Dict[str, None] = {}
            self._most_prepared = cached

        def compile_grammar(self, request_type: Any, grammar_spec: str,
                            stop_token_ids: Optional[Set[int]] = None) -> Any:
            grammar = compile_request(self.compiler, request_type, grammar_spec, self.options)
            self._prepare(request_type.name, grammar_spec, grammar)
            ends = sorted(t for t in stop_token_ids or () if 0 <= t < self.vocab_size)
            return grammar_class(pawl.Matcher(grammar, ends or None))

        def _prepare(self, kind: str, spec: str, grammar: Any) -> None:
            """On the host's thread for compiling, away from the steps."""
            if kind == "JSON":  # which are kept: another request with the schema finds all there
                with _lock:
                    if spec in self._prepared:
                        return
                    self._prepared[spec] = None
                    if len(self._prepared) > self._most_prepared:
                        self._prepared.pop(next(iter(self._prepared)))
            prepare(grammar, self.tokenizer, self.prepare_bytes)

        def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
            import torch

            return torch.full(pawl.mask_shape(max_num_seqs, self.vocab_size), -1,
                              dtype=torch.int32)

        def fill(self, bitmask: Any, matchers: List[Any], drafts: List[Any],
                 rows: List[int]) -> None:
            """All rows of a step in one call, without the interpreter's lock."""
            filler = self.all_threads if len(matchers) >= 128 else self.one_thread
            if self._tensor is not bitmask:  # a view is made once: it costs more than a row
                self._tensor, self._view = bitmask, bitmask.numpy()
            fits = filler.fill_drafts(matchers, drafts, self._view, rows)
            if fits and min(fits) < 0:
                self._end_stuck(matchers, drafts, rows, fits)

        def _end_stuck(self, matchers: List[Any], drafts: List[Any], rows: List[int],
                       fits: List[int]) -> None:
            """A row without a token would break the sampler for everybody. Such a request may only
            take an end token, which its grammar then refuses: it ends with an error, alone."""
            for matcher, draft, first, fit in zip(matchers, drafts, rows, fits):
                if fit >= 0:
                    continue
                for row in range(first, first + len(draft) + 1):
                    if not self._view[row].any():
                        for token in matcher.grammar.end_tokens:
                            bit = 1 << (token & 31)
                            self._view[row, token >> 5] |= bit - (1 << 32) if bit >> 31 else bit

        def destroy(self) -> None:
            del self.compiler, self.one_thread, self.all_threads

    PawlBackend.Grammar = grammar_class
    return PawlBackend


_classes: Dict[str, type] = {}


def backend_class() -> type:
    """PawlBackend, made when vLLM is there."""
    with _lock:
        if not _classes:
            _classes["backend"] = _backend_class()
        return _classes["backend"]


# ---- A request's check in the front end ---------------------------------------------------------


class _Checker:
    """Compiles over bytes alone, so that a grammar that is wrong is an answer of 400 and not a
    request that fails in the engine. Tags name tokens of the real vocabulary, which only the engine
    has: of those the JSON is checked here, and the rest there."""

    def __init__(self) -> None:
        tokens = [bytes([b]) for b in range(256)] + [b"<end>"]
        self.compiler = pawl.Compiler(pawl.Vocabulary(tokens, [256], [256]), cached_grammars=64)

    def check(self, structured_outputs: Any, options: Dict[str, Any]) -> Any:
        """The grammar over bytes; None of a tag."""
        from vllm.exceptions import VLLMValidationError
        from vllm.v1.structured_output.request import get_structured_output_key

        kind, spec = get_structured_output_key(structured_outputs)
        try:
            if kind.name == "STRUCTURAL_TAG":
                json.loads(spec)
                return None
            return compile_request(self.compiler, kind, spec, options)
        except ValueError as error:  # PawlError is one
            kind_of = "Invalid grammar specification: " if kind.name == "GRAMMAR" else ""
            raise VLLMValidationError(
                f"{kind_of}pawl: {error}{self._blamed(kind, spec, options)}") from error

    def _blamed(self, kind: Any, spec: str, options: Dict[str, Any]) -> str:
        """Which of the engine's options alone stands between a request and its grammar."""
        for name in options:
            rest = {key: value for key, value in options.items() if key != name}
            try:
                compile_request(self.compiler, kind, spec, rest)
            except ValueError:
                continue
            return f" (under this engine's option {name}={options[name]!r})"
        return ""


_checker: Optional[_Checker] = None


def _check(params: Any, config: Any, tokenizer: Any) -> None:
    """`config`: the engine's StructuredOutputsConfig, on which `_patch_front_end` left the options
    that the engine will compile with."""
    global _checker
    with _lock:
        _checker = _checker or _Checker()
    grammar = _checker.check(params.structured_outputs, getattr(config, _OPTIONS, {}))
    if grammar is not None and getattr(config, _CLOSES, False) and params.max_tokens is not None:
        _check_budget(grammar, params.max_tokens, tokenizer)


def _check_budget(grammar: Any, budget: int, tokenizer: Any) -> None:
    """An engine that closes outputs promises whole ones: a budget that is too small for any is told
    here. Counted are the tokens that the tokenizer writes the shortest output with."""
    from vllm.exceptions import VLLMValidationError

    shortest = pawl.Matcher(grammar).shortest_completion()
    if shortest is None or len(shortest) < budget or tokenizer is None:
        return
    try:
        tokens = len(tokenizer.encode(shortest.decode(), add_special_tokens=False)) + 1
    except Exception:  # bytes that are no text, or a tokenizer of another kind
        return
    if tokens > budget:
        raise VLLMValidationError(f"pawl: max_tokens: the shortest output that was found takes {tokens} "
                                  f"tokens, but the budget is {budget}")


# ---- A step's masks -----------------------------------------------------------------------------


def _closing(grammar: Any, request: Any, drafts: int) -> Tuple[int, ...]:
    """The tokens that a request has to take so that it ends within its budget. Completions are looked
    for now and then while there is time, and at every step when there is little."""
    most = request.sampling_params.max_tokens
    if most is None:
        return ()
    left, step = most - request.num_output_tokens, drafts + 1
    if left > 160 * step and left // step % 16 and not grammar.plan:
        return ()
    # Between two looks the completion may have grown, and the look is a step early.
    early = 16 * step if left > 160 * step else step
    grammar.plan = pawl.closing_tokens(grammar.matcher, left - early, grammar.plan)
    return tuple(grammar.plan)


def grammar_bitmask(manager: Any, requests: Dict[str, Any], ids: List[str],
                    scheduled: Dict[str, List[int]]) -> Any:
    """What StructuredOutputManager.grammar_bitmask gives, with all rows filled in one call.

    vLLM 0.33 gives every request the rows of a step with all drafts; 0.32 puts the rows that are
    used one after another. Rows before the end of the reasoning allow everything, but for (0.33)
    tokens that would end it where the constraint cannot go on from them.
    """
    if not ids:
        return None
    backend, most = manager.backend, manager.vllm_config.num_speculative_tokens
    if manager._grammar_bitmask is None:
        manager._grammar_bitmask = backend.allocate_token_bitmask(
            manager.vllm_config.scheduler_config.max_num_seqs * (1 + most))
    bitmask = manager._grammar_bitmask
    masked_ends = getattr(manager, "_masked_reasoning_ends", None)
    stride = most + 1 if masked_ends is not None else None
    always = manager.enable_in_reasoning or manager.reasoner_cls is None
    matchers: List[Any] = []
    drafts: List[Any] = []
    rows: List[int] = []
    free: List[Tuple[int, int, Tuple[int, ...]]] = []  # rows that come out unconstrained
    closing: List[Tuple[int, int]] = []  # rows with the one token that leads to the end
    at = 0
    for index, request_id in enumerate(ids):
        if stride is not None:
            at = index * stride
        request = requests[request_id]
        structured = request.structured_output_request
        tokens: Any = scheduled.get(request_id, ())
        count = len(tokens)
        if count and tokens[-1] < 0:
            tokens = tokens[:next(i for i, token in enumerate(tokens) if token < 0)]
        if always or structured.reasoning_ended:
            begin = constrained = 0
        else:
            begin, constrained = manager._get_constraint_bounds(request, list(tokens))
        if constrained:
            ends = masked_ends(request) if masked_ends is not None else ()
            free.append((at, at + min(constrained, count + 1), ends))
        if begin <= len(tokens):
            matchers.append(structured.grammar.matcher)
            drafts.append(tokens[begin:])
            rows.append(at + begin)
            if backend.close and begin == 0:
                # One token alone in each row that the drafts reach on the way to the end.
                plan = _closing(structured.grammar, request, most)
                for row, token in enumerate(plan):
                    if row > len(tokens) or (row and tokens[row - 1] != plan[row - 1]):
                        break
                    closing.append((at + row, token))
        if len(tokens) < count:  # padding: nothing is sampled behind it
            free.append((at + len(tokens) + 1, at + count + 1, ()))
        at += count + 1
    if matchers:
        backend.fill(bitmask, matchers, drafts, rows)
    for first, last, ends in free:
        bitmask[first:last].fill_(-1)
        for token in ends:
            word = bitmask[first:last, token >> 5]
            bit = 1 << (token & 31)
            word.bitwise_and_(~(bit - (1 << 32) if bit >> 31 else bit))
    for row, token in closing:
        bitmask[row].fill_(0)
        bitmask[row, token >> 5] = 1 << (token & 31) if (token & 31) < 31 else -(1 << 31)
    used = len(ids) * stride if stride is not None else at
    return bitmask[:used].numpy()


# ---- What is put in the place of vLLM's own -----------------------------------------------------


def _expect(owner: Any, name: str, parameters: Iterable[str]) -> Callable[..., Any]:
    """vLLM's function, if it is as this was written for."""
    where = f"{getattr(owner, '__name__', owner)}.{name}"
    found = getattr(owner, name, None)
    if found is None:
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: there is no {where} here")
    found = getattr(found, _MARK, found)
    have, want = list(inspect.signature(found).parameters), list(parameters)
    if have != want:
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: {where} takes "
                           f"({', '.join(have)}) here, not ({', '.join(want)})")
    return found


def _replace(owner: Any, name: str, original: Callable[..., Any],
             new: Callable[..., Any]) -> None:
    setattr(new, _MARK, original)
    setattr(owner, name, new)


def _patch_name() -> None:
    """Adds "pawl" to the names that the configuration takes, and to what its check allows."""
    import vllm.config.structured_outputs as module
    import vllm.config.vllm as whole
    from pydantic.dataclasses import rebuild_dataclass

    known = get_args(module.StructuredOutputsBackend)
    if "xgrammar" not in known:
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: StructuredOutputsBackend is "
                           f"no Literal with xgrammar here")
    cls = module.StructuredOutputsConfig
    check = "_validate_structured_output_config"
    decorators = cls.__pydantic_decorators__.model_validators
    if check not in decorators:
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: StructuredOutputsConfig has "
                           f"no {check} here")
    if NAME in known:
        return
    original = decorators[check].func

    def allow_whitespace(self: Any, *info: Any) -> Any:
        # Both options are enforced by Pawl; the host's check knows only its own backends.
        return self if self.backend == NAME else original(self, *info)

    decorators[check].func = allow_whitespace
    names = Literal[(*known, NAME)]  # type: ignore[valid-type]
    module.StructuredOutputsBackend = names
    cls.__annotations__["backend"] = names
    cls.__dataclass_fields__["backend"].type = names
    cls.__pydantic_fields__["backend"].annotation = names
    rebuild_dataclass(cls, force=True)
    # It holds the old schema of the nested class, through which dicts and JSON go.
    rebuild_dataclass(whole.VllmConfig, force=True)


def _patch_validation() -> None:
    """vLLM's checks of a request run as for a backend whose name begins with "xgrammar", which ends
    in a call of validate_xgrammar_grammar: ours, when the request is ours."""
    import vllm.sampling_params as sampling
    import vllm.v1.structured_output.backend_xgrammar as xgrammar

    owner = sampling.SamplingParams
    outer = _expect(owner, "_validate_structured_outputs",
                    ["self", "model_config", "structured_outputs_config", "tokenizer"])
    inner = _expect(xgrammar, "validate_xgrammar_grammar", ["sampling_params"])
    checking = threading.local()  # the configuration of the check that runs on this thread

    def validate_xgrammar_grammar(sampling_params: Any) -> None:
        outputs = sampling_params.structured_outputs
        if outputs is not None and outputs._backend == _CHECKED_NAME:
            _check(sampling_params, getattr(checking, "config", None),
                   getattr(checking, "tokenizer", None))
        else:
            inner(sampling_params)

    def _validate_structured_outputs(self: Any, model_config: Any, structured_outputs_config: Any,
                                     tokenizer: Any) -> None:
        outputs = self.structured_outputs
        if (structured_outputs_config is None or outputs is None
                or structured_outputs_config.backend != NAME):
            return outer(self, model_config, structured_outputs_config, tokenizer)
        asked = outputs._backend
        outputs._backend = _CHECKED_NAME if asked in (None, NAME) else asked
        checking.config, checking.tokenizer = structured_outputs_config, tokenizer
        try:
            outer(self, model_config, SimpleNamespace(backend=_CHECKED_NAME), tokenizer)
        except Exception:
            outputs._backend = asked
            raise
        finally:
            checking.config = checking.tokenizer = None
        outputs._backend = NAME

    _replace(xgrammar, "validate_xgrammar_grammar", inner, validate_xgrammar_grammar)
    _replace(owner, "_validate_structured_outputs", outer, _validate_structured_outputs)


def _front_end() -> type:
    from vllm.v1.engine.input_processor import InputProcessor

    found = getattr(InputProcessor.__init__, _MARK, InputProcessor.__init__)
    if list(inspect.signature(found).parameters)[:2] != ["self", "vllm_config"]:
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: InputProcessor.__init__ does "
                           "not begin with (self, vllm_config) here")
    return InputProcessor


def _patch_front_end() -> None:
    """A request's check is given the configuration of structured outputs and not the engine's, which
    has our options: without them a schema that only an option leaves without a value would fail in
    the engine, where no client is told why."""
    owner = _front_end()
    original = owner.__init__

    def __init__(self: Any, vllm_config: Any, *arguments: Any, **named: Any) -> None:
        original(self, vllm_config, *arguments, **named)
        outputs = vllm_config.structured_outputs_config
        if outputs is not None and outputs.backend == NAME:
            object.__setattr__(outputs, _OPTIONS, _options(vllm_config)[0])
            object.__setattr__(outputs, _CLOSES, closes(vllm_config))

    _replace(owner, "__init__", original, __init__)


def _patch_manager() -> None:
    import vllm.v1.structured_output as module

    owner = module.StructuredOutputManager
    init = _expect(owner, "grammar_init", ["self", "request"])
    masks = _expect(owner, "grammar_bitmask",
                    ["self", "requests", "structured_output_request_ids",
                     "scheduled_spec_decode_tokens"])
    bounds = "_get_constraint_bounds"
    _expect(owner, bounds, ["self", "request", "spec_tokens", "spec_tokens_committed"])

    def grammar_init(self: Any, request: Any) -> None:
        if (self.backend is None and request.structured_output_request is not None
                and request.sampling_params.structured_outputs._backend == NAME):
            self.backend = backend_class()(
                self.vllm_config, tokenizer=self.tokenizer,
                vocab_size=self.vllm_config.model_config.get_vocab_size())
            if hasattr(self, "backend_name"):
                self.backend_name = NAME
        init(self, request)

    def bitmask(self: Any, requests: Dict[str, Any], structured_output_request_ids: List[str],
                scheduled_spec_decode_tokens: Dict[str, List[int]]) -> Any:
        # Of the host's own backends, and of diffusion, nothing is changed.
        ours = isinstance(self.backend, backend_class())
        if not ours or self.vllm_config.model_config.is_diffusion:
            return masks(self, requests, structured_output_request_ids,
                         scheduled_spec_decode_tokens)
        return grammar_bitmask(self, requests, structured_output_request_ids,
                               scheduled_spec_decode_tokens)

    _replace(owner, "grammar_init", init, grammar_init)
    _replace(owner, "grammar_bitmask", masks, bitmask)


def _beam_search_owners() -> List[type]:
    import vllm.entrypoints.generate.beam_search.offline as module

    name = "_init_beam_search_structured_output"
    return [c for c in vars(module).values() if isinstance(c, type) and name in vars(c)]


def _patch_beam_search() -> None:
    """Offline beam search sets a backend up by itself."""
    name = "_init_beam_search_structured_output"
    owners = _beam_search_owners()
    if not owners:
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: no class has a {name} here")
    for owner in owners:
        original = _expect(owner, name, ["self", "structured_outputs", "tokenizer"])

        def start(self: Any, structured_outputs: Any, tokenizer: Any,
                  _original: Callable[..., Any] = original) -> Any:
            from vllm.v1.structured_output.request import get_structured_output_key

            config = self.llm_engine.vllm_config
            chosen = structured_outputs._backend or config.structured_outputs_config.backend
            if chosen != NAME:
                return _original(self, structured_outputs, tokenizer)
            structured_outputs._backend = NAME
            backend = backend_class()(config, tokenizer=tokenizer,
                                      vocab_size=self.model_config.get_vocab_size())
            return (backend, get_structured_output_key(structured_outputs),
                    backend.allocate_token_bitmask(1))

        _replace(owner, name, original, start)


def register() -> None:
    """Makes "pawl" a backend of the vLLM in this process. May be called any number of times."""
    import vllm.v1.structured_output as module

    if hasattr(module.StructuredOutputManager.grammar_init, _MARK):
        return
    import vllm.sampling_params as sampling
    import vllm.v1.structured_output.backend_types as types

    # Everything is looked at before anything is changed.
    _front_end()
    _expect(module.StructuredOutputManager, "grammar_init", ["self", "request"])
    _expect(sampling.SamplingParams, "_validate_structured_outputs",
            ["self", "model_config", "structured_outputs_config", "tokenizer"])
    _expect(types.StructuredOutputBackend, "compile_grammar",
            ["self", "request_type", "grammar_spec", "stop_token_ids"])
    _expect(types.StructuredOutputGrammar, "validate_tokens", ["self", "tokens"])
    kinds = {kind.name for kind in types.StructuredOutputOptions}
    unknown = kinds - {"JSON", "JSON_OBJECT", "REGEX", "GRAMMAR", "CHOICE", "STRUCTURAL_TAG"}
    if unknown:
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: requests may be of the kinds "
                           f"{', '.join(sorted(unknown))} here")
    if not _beam_search_owners():
        raise RuntimeError(f"pawl.vllm was written for vLLM {VERSIONS}: no class sets up beam search "
                           "here")
    _patch_name()
    _patch_validation()
    _patch_front_end()
    _patch_manager()
    _patch_beam_search()
