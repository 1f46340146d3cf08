"""Pawl as a grammar backend of SGLang.

    python -m sglang.launch_server --model-path MODEL --grammar-backend pawl

Installed next to SGLang nothing more is needed: the entry point `sglang.srt.plugins` calls `register`
in every process, which uses SGLang's own registry of backends. One function is put in the place of
SGLang's: the walk over a tree of drafts (`traverse_tree`), which asks a backend for one row after the
other, and here for all of them in one call. It is compared with what it was in 0.5.23 first.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import pawl

NAME = "pawl"
VERSIONS = "0.5.23"
_MARK = "_pawl_original"
_lock = threading.Lock()
_classes: Dict[str, Any] = {}
_fillers: Dict[int, Any] = {}


class CompileQueue:
    """Compiles grammars on a few threads. Requests for one key share a compile; one that no request
    waits for any more when its turn comes is dropped. A compile that runs ends by itself: Pawl's
    compilers work with a bound on their steps."""

    def __init__(self, compile_key: Callable[[Tuple[str, str]], Any], threads: int = 2) -> None:
        self._compile = compile_key
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pawl-compile")
        self._lock = threading.Lock()
        self._waiting: Dict[Tuple[str, str], List[Future]] = {}
        self.compiled = self.dropped = self.shared = 0

    def submit(self, key: Tuple[str, str], finish: Callable[[Any], Any]) -> Future:
        """A future of finish(compiled)."""
        future: Future = Future()
        future.pawl_finish = finish  # type: ignore[attr-defined]
        with self._lock:
            if key in self._waiting:
                self._waiting[key].append(future)
                self.shared += 1
                return future
            self._waiting[key] = [future]
        self._pool.submit(self._run, key)
        return future

    def _run(self, key: Tuple[str, str]) -> None:
        with self._lock:
            wanted = [f for f in self._waiting[key] if not f.cancelled()]
            if not wanted:
                del self._waiting[key]
                self.dropped += 1
                return
        value, error = None, None
        try:
            value = self._compile(key)
        except BaseException as caught:  # whatever it was, requests must not wait for ever
            error = caught
        with self._lock:
            futures = self._waiting.pop(key)
            self.compiled += 1
        for future in futures:
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if error is not None:
                    raise error
                future.set_result(future.pawl_finish(value))  # type: ignore[attr-defined]
            except BaseException as caught:
                future.set_exception(caught)

    def shutdown(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def options_of(serving: Any) -> Dict[str, Any]:
    """The options of JSON Schemas that the server's arguments ask for."""
    options: Dict[str, Any] = {"whitespace": "bounded"}
    if getattr(serving, "constrained_json_disable_any_whitespace", False):
        options["whitespace"] = "compact"
    most = getattr(serving, "constrained_json_max_whitespace_cnt", None)
    if most is not None:
        options["max_whitespace"] = int(most)
    pattern = getattr(serving, "constrained_json_whitespace_pattern", None)
    if pattern is not None:
        raise ValueError("--constrained-json-whitespace-pattern is not supported by the grammar "
                         "backend pawl; --constrained-json-max-whitespace-cnt bounds white space")
    return options


def compile_key(compiler: pawl.Compiler, key: Tuple[str, str], options: Dict[str, Any]) -> Any:
    kind, text = key
    if kind == "json":
        # What SGLang writes for "any JSON object".
        return compiler.json_schema('{"type": "object"}' if text == "$$ANY$$" else text, **options)
    if kind == "regex":
        return compiler.regex(text)
    if kind in ("ebnf", "full_assistant_ebnf"):
        return compiler.grammar(text, "ebnf", **options)
    if kind == "structural_tag":
        return compiler.structural_tag(text)
    raise pawl.PawlError("unsupported", f"pawl.sglang does not know grammars of the kind {kind!r}")


def content_of(key: Tuple[str, str]) -> Any:
    """The format of a structural tag whose text is that of the key."""
    kind, text = key
    if kind == "json":
        schema = {"type": "object"} if text == "$$ANY$$" else json.loads(text)
        return {"type": "json_schema", "json_schema": schema}
    if kind == "regex":
        return {"type": "regex", "pattern": text}
    if kind == "structural_tag":
        tag = json.loads(text)
        return tag.get("format") if isinstance(tag, dict) else None
    return {"type": "grammar", "grammar": text}


def _sglang() -> Any:
    from sglang.srt.constrained import base_grammar_backend

    return base_grammar_backend


def _filler(rows: int) -> Any:
    threads = 0 if rows >= 64 else 1  # waking threads costs more than a handful of rows
    with _lock:
        if threads not in _fillers:
            _fillers[threads] = pawl.BatchFiller(threads)
        return _fillers[threads]


def _allocate(vocab_size: int, batch_size: int) -> Any:
    import torch

    return torch.full(pawl.mask_shape(batch_size, vocab_size), -1, dtype=torch.int32,
                      pin_memory=torch.cuda.is_available())


class GrammarMethods:
    """PawlGrammar without its base class, which is SGLang's."""

    def __init__(self, matcher: Any, key: Tuple[str, str], end_tokens: Any) -> None:
        super().__init__()
        self.matcher, self.key, self.end_tokens = matcher, key, end_tokens
        self.grammar_stats = _sglang().GrammarStats(dispatch_type=key[0])

    def accept_token(self, token: int) -> None:
        if self.matcher.terminated:
            return
        self.current_token = token
        if not self.matcher.accept(int(token)):
            raise ValueError(f"token {int(token)} does not fit the {self.key[0]} "
                             f"{self.key[1][:200]!r}")

    def rollback(self, k: int) -> None:
        try:
            self.matcher.rollback(k)
        except IndexError:
            raise ValueError(f"{k} tokens cannot be taken back") from None

    def is_terminated(self) -> bool:
        return self.matcher.terminated

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        return _allocate(vocab_size, batch_size)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        self.matcher.fill_mask(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: List[Any], vocab_mask: Any) -> None:
        # What the reasoner wraps answers for itself.
        plain = [e for e in entries if isinstance(e.grammar, GrammarMethods)]
        if plain:
            _filler(len(plain)).fill([e.grammar.matcher for e in plain], vocab_mask,
                                    [e.row for e in plain])
        for entry in entries:
            if not isinstance(entry.grammar, GrammarMethods):
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: Any) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        if logits.device.type in ("cuda", "xpu", "musa"):
            from sglang.kernels.ops.grammar.bitmask_ops import (
                apply_token_bitmask_inplace_triton)
            apply_token_bitmask_inplace_triton(logits, vocab_mask)
        else:
            pawl.apply_mask(logits, vocab_mask)

    def copy(self) -> Any:
        """A grammar of the cache for a new request, at its start."""
        matcher = pawl.Matcher(self.matcher.grammar, self.end_tokens)
        made = type(self)(matcher, self.key, self.end_tokens)
        made.grammar_stats.is_cache_hit = True
        return made

    def try_jump_forward(self, tokenizer: Any) -> Optional[Tuple[List[int], str]]:
        text = self.matcher.forced_bytes()
        try:
            jump = text.decode()
        except UnicodeDecodeError as error:
            jump = text[:error.start].decode()
        return ([], jump) if jump else None

    def jump_forward_str_state(self, helper: Tuple[List[int], str]) -> Tuple[str, int]:
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: List[int], new_output_ids: List[int],
                            next_state: int) -> None:
        same = 0
        for old, new in zip(old_output_ids, new_output_ids):
            if old != new:
                break
            same += 1
        self.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)

    def fill_tree(self, draft: List[int], parents: List[int], rows: Any) -> None:
        """Rows of a tree whose node 0 is the last verified token: what a refused node has is
        never read, and what follows the end neither; both allow everything, as the rows that
        SGLang's own walk leaves alone do."""
        fits = self.matcher.fill_tree_masks([-1, *draft[1:]], parents, rows)
        for node, fit in enumerate(fits):
            if not fit or not rows[node].any():
                rows[node].fill_(-1)


class BackendMethods:
    """PawlBackend without its base class. At most `cached` grammars are kept, those used last."""

    def __init__(self, tokenizer: Any, vocab_size: int, end_tokens: Any = None,
                 options: Optional[Dict[str, Any]] = None, cached: int = 512) -> None:
        super().__init__()
        self.executor.shutdown(wait=False)
        self.vocab_size, self.cached = vocab_size, cached
        self.end_tokens = sorted(end_tokens) if end_tokens else None
        self.options = dict(options or {})
        self.vocabulary = pawl.Vocabulary.from_huggingface(
            tokenizer, padded_size=vocab_size, end_tokens=self.end_tokens)
        self.compiler = pawl.Compiler(self.vocabulary)
        self.compiler.warm_up()
        self.framing = self.compiler
        self.cache: OrderedDict = OrderedDict()
        self._cache_lock = threading.Lock()
        self.queue = CompileQueue(lambda key: self._init_value_dispatch(key, False))

    def _object(self, grammar: Any, key: Tuple[str, str]) -> Any:
        return classes()["grammar"](pawl.Matcher(grammar, self.end_tokens), key, self.end_tokens)

    def _dispatch(self, key: Tuple[str, str]) -> Any:
        try:
            return self._object(compile_key(self.compiler, key, self.options), key)
        except ValueError as error:  # PawlError is one
            return _sglang().InvalidGrammarObject(str(error))

    def dispatch_json(self, key_string: str) -> Any:
        return self._dispatch(("json", key_string))

    def dispatch_regex(self, key_string: str) -> Any:
        return self._dispatch(("regex", key_string))

    def dispatch_ebnf(self, key_string: str) -> Any:
        return self._dispatch(("ebnf", key_string))

    def dispatch_structural_tag(self, key_string: str) -> Any:
        return self._dispatch(("structural_tag", key_string))

    def get_cached_or_future_value(self, key: Tuple[str, str],
                                   require_reasoning: bool) -> Tuple[Any, bool]:
        with self._cache_lock:
            value = self.cache.get(key)
            if value is not None:
                self.cache.move_to_end(key)
        if value is not None:
            value = value.copy()
            value.maybe_init_reasoning(require_reasoning)
            return value, True
        # Requests that share a compile must not share what it made.
        return self.queue.submit(key, lambda made: made.copy()), False

    def set_cache(self, key: Tuple[str, str], value: Any) -> None:
        with self._cache_lock:
            self.cache[key] = value
            self.cache.move_to_end(key)
            while len(self.cache) > self.cached:
                self.cache.popitem(last=False)

    def reset(self) -> None:
        with self._cache_lock:
            self.cache.clear()

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int,
                                     device: Any) -> Any:
        return _sglang().register_vocab_mask_buffer(name, _allocate(vocab_size, max_rows), max_rows)

    def reserve_framing_tokens(self, token_ids: Sequence[int]) -> None:
        known = self.vocabulary
        tokens = [known.bytes(i) for i in range(len(known))]
        special = sorted({*known.special, *(int(t) for t in token_ids)})
        self.framing = pawl.Compiler(pawl.Vocabulary(tokens, special, known.end_tokens))

    def compile_framed_grammar(self, grammar: Any,
                               frame: Callable[[dict], dict]) -> Optional[Any]:
        content = content_of(grammar.key)
        if content is None:  # an old tag without a format
            return None
        tag = json.dumps(frame(content))
        return self._object(self.framing.structural_tag(tag), ("structural_tag", tag))

    # What strict thinking needs of a backend.
    is_support_token_filter = property(lambda self: True)

    @staticmethod
    def set_token_filter(vocab_mask: Any, token_ids: List[int], batch_idx: int,
                         is_allowed: bool = True, reset_vocab_mask: bool = True) -> None:
        row = vocab_mask[batch_idx]
        if reset_vocab_mask:
            row.fill_(0 if is_allowed else -1)
        for token in token_ids:
            word, bit = divmod(int(token), 32)
            value = 1 << bit if bit < 31 else -(1 << 31)
            row[word] = row[word] | value if is_allowed else row[word] & ~value

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> Any:
        return _allocate(vocab_size, batch_size)

    move_vocab_mask = staticmethod(GrammarMethods.move_vocab_mask)
    apply_vocab_mask = staticmethod(GrammarMethods.apply_vocab_mask)


def _make_classes() -> Dict[str, Any]:
    class PawlGrammar(GrammarMethods, _sglang().BaseGrammarObject):
        pass

    class PawlBackend(BackendMethods, _sglang().BaseGrammarBackend):
        pass

    return {"grammar": PawlGrammar, "backend": PawlBackend}


def classes() -> Dict[str, Any]:
    """PawlGrammar and PawlBackend, made when SGLang is there."""
    if not _classes:
        made = _make_classes()
        with _lock:
            _classes.update({} if _classes else made)
    return _classes


def create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None) -> Any:
    """What SGLang calls. A registered backend stands in for all of its own choice, so that the
    reasoner is put around it here."""
    from sglang.srt.runtime_context import get_serving

    serving = get_serving()
    ends = [eos_token_ids] if isinstance(eos_token_ids, int) else eos_token_ids
    backend = classes()["backend"](tokenizer, vocab_size, ends, options_of(serving))
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False,
                             tokenizer=tokenizer)
    return ReasonerGrammarBackend(backend, parser, tokenizer,
                                  enable_strict_thinking=serving.enable_strict_thinking)


def _expect(function: Callable[..., Any], parameters: Sequence[str]) -> Callable[..., Any]:
    function = getattr(function, _MARK, function)
    have = list(inspect.signature(function).parameters)
    if have != list(parameters):
        raise RuntimeError(f"pawl.sglang was written for SGLang {VERSIONS}: "
                           f"{function.__module__}.{function.__qualname__} takes "
                           f"({', '.join(have)}) here, not ({', '.join(parameters)})")
    return function


def patch_tree_walk() -> bool:
    """Trees of drafts in one call. False where SGLang's module of speculation cannot be imported,
    as on machines without its kernels; there are no drafts then."""
    try:
        from sglang.srt.speculative import spec_utils
    except Exception:  # ImportError, or what a library of kernels raises
        return False
    original = _expect(spec_utils.traverse_tree,
                       ["retrieve_next_token", "retrieve_next_sibling", "draft_tokens", "grammar",
                        "allocate_token_bitmask", "vocab_size"])
    if hasattr(spec_utils.traverse_tree, _MARK):
        return True

    def traverse_tree(retrieve_next_token: Any, retrieve_next_sibling: Any, draft_tokens: Any,
                      grammar: Any, allocate_token_bitmask: Any,
                      vocab_size: Optional[int] = None) -> None:
        draft = draft_tokens.tolist()
        ours = isinstance(grammar, classes()["grammar"]) and not grammar.is_terminated()
        size = grammar.matcher.grammar.vocabulary_size if ours else 0
        if not ours or any(not 0 <= t < min(size, vocab_size or size) for t in draft[1:]):
            return original(retrieve_next_token, retrieve_next_sibling, draft_tokens, grammar,
                            allocate_token_bitmask, vocab_size)
        parents = pawl.draft_tree_parents(retrieve_next_token.tolist(),
                                          retrieve_next_sibling.tolist())
        grammar.fill_tree(draft, parents, allocate_token_bitmask[:len(draft)])

    setattr(traverse_tree, _MARK, original)
    spec_utils.traverse_tree = traverse_tree
    return True


def register() -> None:
    """Makes "pawl" a grammar backend of the SGLang in this process. May be called again."""
    from sglang.srt.arg_groups.choices import (GRAMMAR_BACKEND_CHOICES,
                                               add_grammar_backend_choices)
    from sglang.srt.constrained import base_grammar_backend as base

    _expect(base.create_grammar_backend,
            ["server_args", "tokenizer", "vocab_size", "eos_token_ids", "think_end_ids"])
    _expect(base.BaseGrammarBackend.get_cached_or_future_value,
            ["self", "key", "require_reasoning"])
    _expect(base.BaseGrammarObject.fill_vocab_mask_batched, ["entries", "vocab_mask"])
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    base.register_grammar_backend(NAME, create)
    patch_tree_walk()
