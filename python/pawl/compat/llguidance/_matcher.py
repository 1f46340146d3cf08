"""LLMatcher and LLExecutor, and what writes grammars for them: grammar_from and StructTag.

A matcher never raises for what is wrong with a grammar or a token: it goes into an error state, and get_error() tells.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any, Dict, List, Literal, Optional, Sequence, Tuple, Union

import numpy as np

from ... import _pawl
from ..._compiler import Compiler
from ..._errors import PawlError
from ._tokenizer import LLTokenizer

_WARNING = "WARNING:"


class LLParserLimits:
    """Kept for who passes it; Pawl's own limits are those of docs/python.md."""

    _DEFAULTS = dict(max_items_in_row=2000, initial_lexer_fuel=1_000_000, step_lexer_fuel=200_000,
                     step_max_items=50_000, max_lexer_states=250_000, max_grammar_size=500_000,
                     precompute_large_lexemes=True, verbose_errors=True)

    def __init__(self, **limits: Any) -> None:
        unknown = set(limits) - set(self._DEFAULTS)
        if unknown:
            raise TypeError(f"there is no limit {sorted(unknown)[0]}")
        given = {name: value for name, value in limits.items() if value is not None}
        self.__dict__.update({**self._DEFAULTS, **given})


def _json_options(given: Dict[str, Any]) -> Dict[str, Any]:
    options: Dict[str, Any] = {"canonical_spelling": False, "allow_exponents": True}
    if given.get("whitespace_flexible", True) is False:
        options.update(whitespace="compact",
                       item_separator=given.get("item_separator") or ",",
                       key_separator=given.get("key_separator") or ":")
    else:
        options["whitespace"] = "any"
    return options


def _compile(compiler: Compiler, grammar: str) -> _pawl.Grammar:
    """Lark, or JSON: of llguidance, or with "pawl" for what llguidance has no form for."""
    text = grammar.lstrip()
    options = _json_options({})
    if not text.startswith("{"):
        return compiler.grammar(grammar, "lark", **options)
    try:
        read = json.loads(text)
    except ValueError as error:
        raise PawlError("invalid", f"neither Lark nor JSON: {error}") from error
    ours = read.get("pawl") if isinstance(read, dict) else None
    if isinstance(ours, dict):
        if "gbnf" in ours:
            return compiler.grammar(ours["gbnf"], "gbnf", **options)
        return compiler.choice(ours["choice"])
    grammars = read.get("grammars") if isinstance(read, dict) else None
    if isinstance(grammars, list) and len(grammars) == 1 and "json_schema" in grammars[0]:
        schema = grammars[0]["json_schema"]
        given = schema.get("x-guidance", {}) if isinstance(schema, dict) else {}
        return compiler.json_schema(json.dumps(schema), **_json_options(given))
    return compiler.grammar(grammar, "llguidance", **options)


class LLMatcher:
    def __init__(
        self,
        tokenizer: LLTokenizer,
        grammar: str,
        *,
        log_level: int = 1,
        limits: Optional[LLParserLimits] = None,
    ) -> None:
        if not isinstance(tokenizer, LLTokenizer):
            raise TypeError(f"{type(tokenizer).__name__} object is not an LLTokenizer")
        self._tokenizer = tokenizer
        self._error = ""
        self._native: Optional[_pawl.Matcher] = None
        try:
            self._native = _pawl.Matcher(
                _compile(Compiler(tokenizer._vocabulary), _text(grammar)))
        except PawlError as error:
            self._error = str(error)

    # Grammars.

    @staticmethod
    def validate_grammar(
        grammar: str,
        tokenizer: Optional[LLTokenizer] = None,
        *,
        limits: Optional[LLParserLimits] = None,
    ) -> str:
        """What is wrong, or ""."""
        vocabulary = (_pawl.Vocabulary([b""], [0]) if tokenizer is None
                      else tokenizer._vocabulary)
        try:
            _compile(Compiler(vocabulary), _text(grammar))
        except PawlError as error:
            return str(error)
        return ""

    @staticmethod
    def validate_grammar_with_warnings(
        grammar: str,
        tokenizer: Optional[LLTokenizer] = None,
        *,
        limits: Optional[LLParserLimits] = None,
    ) -> Tuple[bool, List[str]]:
        message = LLMatcher.validate_grammar(grammar, tokenizer, limits=limits)
        return bool(message), [message] if message else []

    @staticmethod
    def is_validate_warning(message: str) -> bool:
        return message.startswith(_WARNING)

    @staticmethod
    def grammar_from_json_schema(
        schema: Union[str, Dict[str, Any]],
        defaults: Optional[Dict[str, Any]] = None,
        overrides: Optional[Dict[str, Any]] = None,
    ) -> str:
        read = json.loads(schema) if isinstance(schema, str) else schema
        if isinstance(read, dict) and (defaults or overrides):
            read = {**read, "x-guidance": {**(defaults or {}), **read.get("x-guidance", {}),
                                           **(overrides or {})}}
        return json.dumps({"grammars": [{"json_schema": read}]})

    @staticmethod
    def grammar_from_lark(lark: str) -> str:
        return json.dumps({"grammars": [{"lark_grammar": lark}]})

    @staticmethod
    def grammar_from_regex(regex: str) -> str:
        escaped = regex.replace("\\/", "/").replace("/", "\\/").replace("\n", "\\n")
        return json.dumps({"grammars": [{"lark_grammar": f"start: /{escaped}/"}]})

    # The state.

    def is_error(self) -> bool:
        return bool(self._error)

    def get_error(self) -> str:
        return self._error

    def get_grammar_warnings(self) -> List[str]:
        return []

    def _fail(self, message: str) -> bool:
        self._error = self._error or message
        return False

    def deep_copy(self) -> "LLMatcher":
        other = object.__new__(LLMatcher)
        other.__dict__.update(self.__dict__)
        other._native = None if self._native is None else self._native.copy()
        return other

    def is_accepting(self) -> bool:
        return self._native is not None and not self._error and self._native.accepting

    def is_stopped(self) -> bool:
        """Nothing but the end may follow, or the end has come, or there was an error."""
        if self._native is None or self._error or self._native.terminated:
            return True
        if not self._native.accepting:
            return False
        ends = set(self._tokenizer.eos_tokens)
        return all(token in ends for token in self._native.allowed_tokens())

    def stop_reason(self) -> str:
        if self._native is None or self._error:
            return "InternalError"
        if self._native.terminated:
            return "EndOfSentence"
        return "NoExtension" if self.is_stopped() else "NotStopped"

    def rollback(self, num_tokens: int) -> bool:
        if self._native is None or self._error:
            return False
        try:
            self._native.rollback(num_tokens)
        except IndexError:
            return self._fail(f"there are no {num_tokens} tokens to take back")
        return True

    def reset(self) -> bool:
        if self._native is None or self._error:
            return False
        self._native.reset()
        return True

    def consume_token(self, sampled_token: int) -> bool:
        if self._native is None or self._error:
            return False
        if not isinstance(sampled_token, (int, np.integer)):
            raise TypeError("a token is an int")
        if not 0 <= sampled_token < self._tokenizer.vocab_size:
            return self._fail(f"token {sampled_token} is out of range")
        if self._native.accept(int(sampled_token)):
            return True
        return self._fail(f"token {self._tokenizer.dbg_tokens([sampled_token])!r} "
                          "doesn't satisfy the grammar")

    def consume_tokens(self, sampled_tokens: Sequence[int]) -> bool:
        if self._native is not None and not self._error and not self._in_range(sampled_tokens):
            return False
        return all(self.consume_token(token) for token in sampled_tokens)

    def try_consume_tokens(self, tokens: Sequence[int]) -> int:
        """Takes tokens while they fit; how many did."""
        if self._native is None or self._error:
            return 0
        for count, token in enumerate(tokens):
            if not self._native.accept(token):
                return count
        return len(tokens)

    def _in_range(self, tokens: Sequence[int]) -> bool:
        size = self._tokenizer.vocab_size
        wrong = [token for token in tokens if not 0 <= token < size]
        return not wrong or self._fail(f"token {wrong[0]} is out of range")

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        if self._native is None or self._error or not self._in_range(tokens):
            return 0
        return self._native.validate_tokens(list(tokens))

    def compute_ff_bytes(self) -> bytes:
        if self._native is None or self._error:
            return b""
        return self._native.forced_bytes()

    def compute_ff_tokens(self) -> List[int]:
        if self._native is None or self._error:
            return []
        encode = self._tokenizer._encode_text
        return self._native.forced_tokens(encode=encode)

    # Masks. A stopped matcher allows the end, one in error nothing but the end.

    def _fill(self, row: np.ndarray) -> None:
        row[:] = 0
        if self._native is None or self._error or self._native.terminated:
            for token in self._tokenizer.eos_tokens:
                row.view(np.uint32)[token // 32] |= np.uint32(1 << (token % 32))
            return
        self._native.fill_mask(row)

    def _row(self) -> np.ndarray:
        row = np.zeros((self._tokenizer.vocab_size + 31) // 32, dtype=np.int32)
        self._fill(row)
        return row

    def compute_bitmask(self) -> bytes:
        return self._row().tobytes()

    def compute_logit_bias(self) -> bytes:
        """A byte for each token: 200 where it may come, else 0."""
        bits = np.unpackbits(self._row().view(np.uint8), bitorder="little")
        return (bits[: self._tokenizer.vocab_size] * np.uint8(200)).tobytes()

    def unsafe_compute_mask_ptr(self, trg_pointer: int, trg_byte_size: int) -> None:
        row = _memory(trg_pointer, trg_byte_size, self._tokenizer.vocab_size, 1)
        self._fill(row[0])

    def get_capture(self, name: str) -> Optional[bytes]:
        """The last one of that name."""
        return dict(self.get_captures()).get(name)

    def get_captures(self) -> List[Tuple[str, bytes]]:
        if self._native is None or self._error:
            return []
        return [(name, text) for name, _, _, text in self._native.captures()]


def _text(grammar: Any) -> str:
    return grammar if isinstance(grammar, str) else json.dumps(grammar)


def _memory(pointer: int, row_bytes: int, vocab_size: int, rows: int) -> np.ndarray:
    if not pointer:
        raise ValueError("Null pointer")
    if pointer % 4:
        raise ValueError("Pointer not aligned")
    words = (vocab_size + 31) // 32
    if row_bytes != words * 4:
        raise ValueError(f"Invalid buffer size: {row_bytes} bytes, not {words * 4}")
    buffer = (ctypes.c_int32 * (words * rows)).from_address(pointer)
    return np.frombuffer(buffer, dtype=np.int32).reshape(rows, words)


def _checked(items: Any, size: int) -> List[Tuple[Any, ...]]:
    if not items:
        raise ValueError("No matchers")
    seen = set()
    for item in items:
        if not isinstance(item, tuple):
            raise TypeError(f"'{type(item).__name__}' object is not an instance of 'tuple'")
        if len(item) != size:
            raise ValueError(f"Expecting a tuple of {size}")
        if not isinstance(item[0], LLMatcher):
            raise TypeError(
                f"'{type(item[0]).__name__}' object is not an instance of 'LLMatcher'")
        if not isinstance(item[1], int):
            raise TypeError("the second of a tuple must be an int")
        if id(item[0]) in seen:
            raise RuntimeError("Already borrowed: a matcher stands here twice")
        seen.add(id(item[0]))
    return list(items)


class LLExecutor:
    """Many matchers at once, over a pool of threads."""

    def __init__(self, num_threads: Optional[int] = None) -> None:
        self._filler = _pawl.BatchFiller(num_threads or 0)

    def _fill(self, work: List[Tuple[LLMatcher, np.ndarray, int]], rows: np.ndarray) -> None:
        plain = []
        for matcher, row, index in work:
            if matcher._native is None or matcher._error or matcher._native.terminated:
                matcher._fill(row)
            else:
                plain.append((matcher._native, index))
        self._filler.fill([native for native, _ in plain], rows, [index for _, index in plain])

    def unsafe_compute_mask_ptr(
        self, interpreters: List[Tuple[LLMatcher, int]], trg_pointer: int, one_mask_bytes: int,
        trg_batch_size: int,
    ) -> None:
        items = _checked(interpreters, 2)
        if any(not 0 <= index < trg_batch_size for _, index in items):
            raise ValueError("Target index out of bounds")
        rows = _memory(trg_pointer, one_mask_bytes, items[0][0]._tokenizer.vocab_size,
                       trg_batch_size)
        self._fill([(matcher, rows[index], index) for matcher, index in items], rows)

    def unsafe_compute_mask_ptr_with_draft_token(
        self, interpreters: List[Tuple[LLMatcher, int, List[int]]], trg_pointer: int,
        one_mask_bytes: int, trg_batch_size: int,
    ) -> None:
        """The row after draft token i is that of the matcher plus i + 1; rows after a draft token
        that does not fit stay as they are."""
        items = _checked(interpreters, 3)
        if any(index < 0 or index + len(drafts) >= trg_batch_size for _, index, drafts in items):
            raise ValueError("Target index out of bounds")
        rows = _memory(trg_pointer, one_mask_bytes, items[0][0]._tokenizer.vocab_size,
                       trg_batch_size)
        for matcher, index, drafts in items:
            step = matcher.deep_copy()
            step._fill(rows[index])
            for offset, token in enumerate(drafts):
                if step._native is None or not step._native.accept(token):
                    break
                step._fill(rows[index + offset + 1])

    def consume_token_par(self, matchers: List[Tuple[LLMatcher, int]]) -> List[bool]:
        return [matcher.consume_token(token) for matcher, token in _checked(matchers, 2)]


GrammarFormat = Literal["lark", "gbnf", "ebnf", "cfg", "grammar", "json_schema", "json", "regex",
                        "choice", "llguidance"]


def grammar_from(format: GrammarFormat, text: Union[str, List[str]]) -> str:
    """Grammars of every kind as the one text that LLMatcher takes: Lark, or JSON that names Lark grammars
    and JSON Schemas. EBNF and GBNF stay what they are, in JSON of Pawl's own."""
    if format == "choice":
        choices = json.loads(text) if isinstance(text, str) else text
        return json.dumps({"pawl": {"choice": choices}})
    assert isinstance(text, str)
    if format == "lark":
        return LLMatcher.grammar_from_lark(text)
    if format in ("gbnf", "ebnf", "cfg", "grammar"):
        if "::=" in text:
            return json.dumps({"pawl": {"gbnf": text}})
        return LLMatcher.grammar_from_lark(text)
    if format in ("json_schema", "json"):
        return LLMatcher.grammar_from_json_schema(text)
    if format == "regex":
        return LLMatcher.grammar_from_regex(text)
    if format == "llguidance":
        return text
    raise ValueError(f"there is no format {format!r}")


class StructTag:
    """A tag in free text: `trigger` begins it, `begin` (which starts with the trigger) is its head,
    `grammar` (a JSON Schema or Lark) its inside, `end` what closes it."""

    def __init__(
        self, *, trigger: str, begin: str, grammar: Union[str, Dict[str, Any]], end: str
    ) -> None:
        if not trigger:
            raise AssertionError("the trigger must not be empty")
        if not begin.startswith(trigger):
            raise AssertionError("begin must start with the trigger")
        self.trigger = trigger
        self.begin = begin
        self.grammar = grammar
        self.end = end

    @staticmethod
    def to_grammar(
        tags: List["StructTag"], *, assume_special: bool = True, text_regex: str = r"(.|\n)*"
    ) -> str:
        """Lark: text with tags. With `assume_special`, a trigger <|...|> is a special token."""
        if not tags:
            raise AssertionError("there must be a tag")
        if "/" in text_regex:
            raise AssertionError("text_regex must not have a /")
        rules = []
        choices = []
        for number, tag in enumerate(tags):
            special = (assume_special and tag.trigger.startswith("<|")
                       and tag.trigger.endswith("|>"))
            rest = tag.begin[len(tag.trigger):]
            head = (f"TEXT {tag.trigger}" if special else f"tag_{number}_trigger")
            if not special:
                rules.append(f"tag_{number}_trigger[lazy]: TEXT {json.dumps(tag.trigger)}")
            grammar = tag.grammar
            if isinstance(grammar, dict) or grammar.lstrip().startswith("{"):
                text = json.dumps(grammar) if isinstance(grammar, dict) else grammar
                inside = f"%json {text}"
            else:
                inside = "%lark {\n" + grammar + "\n}"
            parts = [head, json.dumps(rest) if rest else "", f"tag_{number}_inside",
                     json.dumps(tag.end) if tag.end else ""]
            rules.append(f"tag_{number}_inside: {inside}")
            rules.append(f"tag_{number}: " + " ".join(part for part in parts if part))
            choices.append(f"tag_{number}")
        return "\n".join(["%llguidance {}", f"start: ({' | '.join(choices)})* TEXT",
                          f"TEXT: /{text_regex}/", *rules])
