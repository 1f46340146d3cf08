"""GrammarCompiler: binds grammars to the vocabulary of one tokenizer, and keeps those used last."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any, Dict, List, Optional, Tuple, Type, Union, TYPE_CHECKING

from ... import _pawl
from ..._compiler import Compiler
from .exception import as_runtime_error
from .grammar import Grammar
from .tokenizer_info import SERIALIZATION_VERSION, TokenizerInfo, read_serialized

if TYPE_CHECKING:
    from pydantic import BaseModel

# What a grammar without its masks takes, roughly; masks are found while it is used.
_BYTES_PER_GRAMMAR = 4096


class CompiledGrammar:
    def __init__(self, grammar: Grammar, native: _pawl.Grammar, info: TokenizerInfo) -> None:
        self._grammar = grammar
        self._native = native
        self._info = info

    @property
    def grammar(self) -> Grammar:
        return self._grammar

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        return self._info

    @property
    def memory_size_bytes(self) -> int:
        return _BYTES_PER_GRAMMAR + 2 * len(self._grammar._key())

    def serialize_json(self) -> str:
        return json.dumps({
            "__VERSION__": SERIALIZATION_VERSION, "grammar": self._grammar._value(),
            "tokenizer_metadata": json.loads(self._info.dump_metadata())})

    @staticmethod
    def deserialize_json(json_string: str, tokenizer_info: TokenizerInfo) -> "CompiledGrammar":
        read = read_serialized(json_string, ("grammar", "tokenizer_metadata"))
        if read["tokenizer_metadata"] != json.loads(tokenizer_info.dump_metadata()):
            raise RuntimeError("the grammar was compiled for another tokenizer")
        compiler = GrammarCompiler(tokenizer_info, cache_enabled=False)
        return compiler.compile_grammar(Grammar._of_value(read["grammar"]))


class GrammarCompiler:
    """max_threads is accepted and has no effect: masks are computed while they are asked for."""

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: Union[int, str] = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
        **_: Any,
    ) -> None:
        if not isinstance(tokenizer_info, TokenizerInfo):
            raise ValueError("tokenizer_info must be a TokenizerInfo; "
                             "TokenizerInfo.from_huggingface makes one of a tokenizer")
        if cache_limit_bytes < -1:
            raise RuntimeError("cache_limit_bytes must be -1 (no limit) or more")
        self._info = tokenizer_info
        self._compiler = Compiler(tokenizer_info._vocabulary)
        self._cache_enabled = cache_enabled
        self._limit = cache_limit_bytes
        self._lock = threading.Lock()
        self._kept: "OrderedDict[str, CompiledGrammar]" = OrderedDict()

    def compile_grammar(
        self, grammar: Union[str, Grammar], *, root_rule_name: str = "root"
    ) -> CompiledGrammar:
        if isinstance(grammar, str):
            grammar = Grammar("ebnf", {"text": grammar, "root": root_rule_name})
        elif not isinstance(grammar, Grammar):
            raise ValueError("a grammar is a string or a Grammar")
        key = grammar._key()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with as_runtime_error():
            compiled = CompiledGrammar(grammar, grammar._compile(self._compiler), self._info)
        if self._cache_enabled:
            with self._lock:
                self._kept[key] = compiled
                while self._limit >= 0 and self._kept and self._size() > self._limit:
                    self._kept.popitem(last=False)
        return compiled

    def compile_json_schema(
        self,
        schema: Union[str, Type["BaseModel"], Dict[str, Any]],
        *,
        any_whitespace: bool = True,
        indent: Optional[int] = None,
        separators: Optional[Tuple[str, str]] = None,
        strict_mode: bool = True,
        max_whitespace_cnt: Optional[int] = None,
        any_order: bool = False,
    ) -> CompiledGrammar:
        return self.compile_grammar(Grammar.from_json_schema(
            schema, any_whitespace=any_whitespace, indent=indent, separators=separators,
            strict_mode=strict_mode, max_whitespace_cnt=max_whitespace_cnt, any_order=any_order))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        return self.compile_grammar(Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        return self.compile_grammar(Grammar("regex", regex))

    def compile_lark(
        self, lark_string: str,
        *,
        named_grammars: Optional[Dict[str, Union[Grammar, str]]] = None,
    ) -> CompiledGrammar:
        return self.compile_grammar(Grammar.from_lark(
            lark_string, tokenizer_info=self._info, named_grammars=named_grammars))

    def compile_structural_tag(self, *args: Any, **kwargs: Any) -> CompiledGrammar:
        return self.compile_grammar(Grammar.from_structural_tag(*args, **kwargs))

    def clear_cache(self) -> None:
        with self._lock:
            self._kept.clear()

    def _size(self) -> int:
        return sum(compiled.memory_size_bytes for compiled in self._kept.values())

    def get_cache_size_bytes(self) -> int:
        with self._lock:
            return self._size()

    @property
    def cache_limit_bytes(self) -> int:
        return self._limit


__all__: List[str] = ["CompiledGrammar", "GrammarCompiler"]
