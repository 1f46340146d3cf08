"""Grammar: the source of a grammar, read and checked, not yet bound to a vocabulary."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Type, Union

from ... import _pawl
from ..._compiler import Compiler, schema_text
from ..._errors import PawlError
from .exception import InvalidJSONError, InvalidStructuralTagError, as_runtime_error
from .structural_tag import StructuralTag, StructuralTagItem
from .tokenizer_info import SERIALIZATION_VERSION, read_serialized

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .tokenizer_info import TokenizerInfo

# Any JSON object or array, with white space inside.
_JSON = r"""
root ::= object | array
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" space (member (space "," space member)* space)? "}"
member ::= string space ":" space value
array ::= "[" space (value (space "," space value)* space)? "]"
string ::= "\"" ([^"\\\0-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9A-Fa-f]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
space ::= [ \n\t]*
"""

# Grammars name tokens by number before anybody says which vocabulary they are for.
_MOST_TOKENS = 1 << 18
_compiler_without_tokens: Optional[Compiler] = None


def _checker() -> Compiler:
    """Reads sources without a vocabulary, for their errors."""
    global _compiler_without_tokens
    if _compiler_without_tokens is None:
        _compiler_without_tokens = Compiler(
            _pawl.Vocabulary([b""] * _MOST_TOKENS, list(range(_MOST_TOKENS))))
    return _compiler_without_tokens


# Comments, strings and regular expressions of Lark, which stay; names in angle brackets.
_LARK_NAMES = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|/(?:\\.|[^/\\\n])+/|(<[^\s<>\[\]"/]+>)')


def _tokens_by_number(lark: str, info: Optional["TokenizerInfo"]) -> str:
    """XGrammar finds <name> among all tokens, Pawl among the special ones only: names become the
    numbers of the tokens that are written so."""
    if info is None:
        return lark
    numbers: Dict[str, List[int]] = {}
    for index, token in enumerate(info.decoded_vocab):
        if token.startswith(b"<") and token.endswith(b">"):
            numbers.setdefault(token.decode("utf-8", "replace"), []).append(index)

    def replace(match: "re.Match[str]") -> str:
        found = numbers.get(match.group(1) or "")
        return f"<[{','.join(map(str, found))}]>" if found else match.group()

    return _LARK_NAMES.sub(replace, lark)


def _convert_schema_to_str(schema: Union[str, Type["BaseModel"], Dict[str, Any]]) -> str:
    if isinstance(schema, (str, dict)) or hasattr(schema, "model_json_schema"):
        text = schema_text(schema)
        assert isinstance(text, str)
        return text
    raise ValueError("a schema is a JSON text, a dict or a Pydantic model")


def structural_tag_text(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
    if len(args) == 2 or ("tags" in kwargs and "triggers" in kwargs):
        tags, triggers = args if len(args) == 2 else (kwargs["tags"], kwargs["triggers"])
        return StructuralTag.from_legacy_structural_tag(tags, triggers).model_dump_json()
    tag = args[0] if len(args) == 1 else kwargs.get("structural_tag")
    if isinstance(tag, StructuralTag):
        return tag.model_dump_json()
    if isinstance(tag, dict):
        return json.dumps(tag, ensure_ascii=False)
    if isinstance(tag, str):
        return tag
    raise TypeError("a structural tag is a StructuralTag, a JSON text or a dict")


def _as_xgrammar_reads_arrays(schema: Any, strict_mode: bool) -> Any:
    """There, every item of prefixItems is required, additionalItems counts next to it, and
    strict_mode forbids the other items unless the schema speaks of them. (Objects are closed by
    Pawl's own option.)"""
    todo: List[Any] = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo.extend(item)
        elif isinstance(item, dict):
            first = item.get("prefixItems")
            if isinstance(first, list):
                if isinstance(item.get("minItems", 0), int):
                    item["minItems"] = max(item.get("minItems", 0), len(first))
                if "items" not in item and "additionalItems" in item:
                    item["items"] = item["additionalItems"]
                elif strict_mode and not {"items", "unevaluatedItems"} & item.keys():
                    item["items"] = False
            todo.extend(value for key, value in item.items()
                        if key not in ("enum", "const", "default", "examples"))
    return schema


def _json_options(
    any_whitespace: bool,
    indent: Optional[int],
    separators: Optional[Tuple[str, str]],
    strict_mode: bool,
    max_whitespace_cnt: Optional[int],
    any_order: bool,
) -> Dict[str, Any]:
    options: Dict[str, Any] = {
        "canonical_spelling": True,
        "allow_exponents": True,
        "additional_properties": not strict_mode,
        "order": "any" if any_order else "schema",
    }
    if any_whitespace:
        if max_whitespace_cnt is None:
            options["whitespace"] = "any"
        elif max_whitespace_cnt > 0:
            options.update(whitespace="bounded", max_whitespace=max_whitespace_cnt)
        else:
            raise RuntimeError("max_whitespace_cnt must be positive")
    elif indent is not None:
        raise RuntimeError("pawl.compat.xgrammar has no indent; use any_whitespace=True")
    else:
        item, key = separators if separators is not None else (", ", ": ")
        options.update(whitespace="compact", item_separator=item, key_separator=key)
    return options


class Grammar:
    def __init__(self, kind: str, source: Any, info: Optional["TokenizerInfo"] = None) -> None:
        # Kinds: json, regex, ebnf, lark, llguidance, tag; union and concat of other grammars.
        self._kind = kind
        self._source = source
        self._info = info

    def _compile(self, compiler: Compiler) -> _pawl.Grammar:
        if self._kind == "json":
            return compiler.json_schema(self._source["schema"], **self._source["options"])
        if self._kind == "regex":
            return compiler.regex(self._source)
        if self._kind == "ebnf":
            return compiler.grammar(self._source["text"], "ebnf", root=self._source["root"])
        if self._kind in ("lark", "llguidance"):
            return compiler.grammar(self._source, self._kind, lark_as_xgrammar=True, **_LARK_JSON)
        return compiler.structural_tag({"type": "structural_tag", "format": self._format()})

    def _format(self) -> Dict[str, Any]:
        """The grammar as one format of structural tags."""
        if self._kind == "tag":
            return json.loads(self._source)["format"]
        if self._kind in ("union", "concat"):
            return {"type": "or" if self._kind == "union" else "sequence",
                    "elements": [part._format() for part in self._source]}
        if self._kind == "regex":
            return {"type": "regex", "pattern": self._source}
        if self._kind == "json":
            return {"type": "json_schema", "json_schema": json.loads(self._source["schema"])}
        if self._kind == "ebnf" and self._source["root"] == "root":
            return {"type": "grammar", "grammar": self._source["text"]}
        raise PawlError("unsupported", f"a grammar of the kind {self._kind} inside of another one")

    def _checked(self) -> "Grammar":
        with as_runtime_error():
            if self._info is not None:
                self._compile(Compiler(self._info._vocabulary))
            else:
                self._compile(_checker())
        return self

    def _key(self) -> str:
        return json.dumps(self._value(), sort_keys=False)

    def _value(self) -> Any:
        if self._kind in ("union", "concat"):
            return {"kind": self._kind, "source": [part._value() for part in self._source]}
        return {"kind": self._kind, "source": self._source}

    @staticmethod
    def _of_value(value: Any) -> "Grammar":
        source = value["source"]
        if value["kind"] in ("union", "concat"):
            source = [Grammar._of_value(part) for part in source]
        return Grammar(value["kind"], source)

    def __str__(self) -> str:
        if self._kind == "ebnf":
            return self._source["text"]
        if self._kind in ("regex", "lark", "llguidance", "tag"):
            return self._source
        return self._source["schema"] if self._kind == "json" else self._key()

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> "Grammar":
        return Grammar("ebnf", {"text": ebnf_string, "root": root_rule_name})._checked()

    @staticmethod
    def from_json_schema(
        schema: Union[str, Type["BaseModel"], Dict[str, Any]],
        *,
        any_whitespace: bool = True,
        indent: Optional[int] = None,
        separators: Optional[Tuple[str, str]] = None,
        strict_mode: bool = True,
        max_whitespace_cnt: Optional[int] = None,
        print_converted_ebnf: bool = False,
        any_order: bool = False,
    ) -> "Grammar":
        text = _convert_schema_to_str(schema)
        options = _json_options(any_whitespace, indent, separators, strict_mode,
                                max_whitespace_cnt, any_order)
        try:
            text = json.dumps(_as_xgrammar_reads_arrays(json.loads(text), strict_mode),
                              ensure_ascii=False)
        except ValueError:
            pass  # the compiler says what is wrong
        return Grammar("json", {"schema": text, "options": options})._checked()

    @staticmethod
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> "Grammar":
        return Grammar("regex", regex_string)._checked()

    @staticmethod
    def from_lark(
        lark_string: str,
        *,
        tokenizer_info: Optional["TokenizerInfo"] = None,
        named_grammars: Optional[Dict[str, Union["Grammar", str]]] = None,
    ) -> "Grammar":
        if named_grammars is not None and not isinstance(named_grammars, dict):
            raise TypeError("named_grammars must be a dictionary")
        lark_string = _tokens_by_number(lark_string, tokenizer_info)
        if not named_grammars:
            return Grammar("lark", lark_string, tokenizer_info)._checked()
        parts: List[Dict[str, Any]] = [{"name": "start", "lark_grammar": lark_string}]
        for name, grammar in named_grammars.items():
            if not isinstance(name, str):
                raise TypeError("the names of named_grammars must be strings")
            if isinstance(grammar, str):
                parts.append({"name": name, "lark_grammar": grammar})
            elif not isinstance(grammar, Grammar):
                raise TypeError("the values of named_grammars must be Grammar instances or "
                                "Lark strings")
            else:
                parts.append(grammar._named(name))
        source = json.dumps({"grammars": parts}, ensure_ascii=False)
        return Grammar("llguidance", source, tokenizer_info)._checked()

    def _named(self, name: str) -> Dict[str, Any]:
        """The grammar as one of several in llguidance's JSON."""
        if self._kind == "json":
            return {"name": name, "json_schema": json.loads(self._source["schema"])}
        if self._kind == "lark":
            return {"name": name, "lark_grammar": self._source}
        if self._kind == "regex":
            pattern = self._source.replace("/", "\\/")
            return {"name": name, "lark_grammar": f"start: /{pattern}/"}
        raise RuntimeError(f"a grammar of the kind {self._kind} inside of Lark")

    @staticmethod
    def _with_lark(grammars: Tuple["Grammar", ...], between: str) -> "Grammar":
        """Several grammars, of which one at least is Lark, as one."""
        names = [f"part_{i}" for i in range(len(grammars))]
        parts = [{"name": "start",
                  "lark_grammar": "start: " + between.join("@" + name for name in names)}]
        parts += [grammar._named(name) for grammar, name in zip(grammars, names)]
        return Grammar("llguidance", json.dumps({"grammars": parts}, ensure_ascii=False))._checked()

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> "Grammar":
        text = structural_tag_text(args, kwargs)
        try:
            read = json.loads(text)
        except ValueError as error:
            raise InvalidJSONError(str(error)) from error
        if not isinstance(read, dict) or "format" not in read:
            raise InvalidStructuralTagError("a structural tag is an object with \"format\"")
        if read.get("type", "structural_tag") != "structural_tag":
            raise InvalidStructuralTagError("a structural tag's \"type\" is \"structural_tag\"")
        grammar = Grammar("tag", text)
        with as_runtime_error(InvalidStructuralTagError):
            try:
                grammar._compile(_checker())
            except PawlError as error:
                # Which tokens there are is known when the grammar is compiled for a tokenizer.
                if not error.message.startswith("the vocabulary has no token"):
                    raise
        return grammar

    @staticmethod
    def builtin_json_grammar() -> "Grammar":
        return Grammar("ebnf", {"text": _JSON, "root": "root"})

    @staticmethod
    def concat(*grammars: "Grammar") -> "Grammar":
        if any(grammar._kind == "lark" for grammar in grammars):
            return Grammar._with_lark(grammars, " ")
        return Grammar("concat", list(grammars))._checked()

    @staticmethod
    def union(*grammars: "Grammar") -> "Grammar":
        if any(grammar._kind == "lark" for grammar in grammars):
            return Grammar._with_lark(grammars, " | ")
        return Grammar("union", list(grammars))._checked()

    def serialize_json(self) -> str:
        return json.dumps({"__VERSION__": SERIALIZATION_VERSION, "grammar": self._value()})

    @staticmethod
    def deserialize_json(json_string: str) -> "Grammar":
        return Grammar._of_value(read_serialized(json_string, ("grammar",))["grammar"])


# JSON Schemas inside of Lark, as XGrammar reads them.
_LARK_JSON = {"canonical_spelling": False, "allow_exponents": True}

__all__ = ["Grammar", "StructuralTagItem"]
