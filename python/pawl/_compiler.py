from __future__ import annotations

import json
from typing import Any, Iterable, Union

from . import _pawl
from ._schema import schema_of

Text = Union[str, bytes]


def schema_text(schema: Any) -> Text:
    """The text of a JSON Schema that is given as text, as a dict or bool, or as a type."""
    if isinstance(schema, (str, bytes)):
        return schema
    if isinstance(schema, (dict, bool)):
        return json.dumps(schema, ensure_ascii=False)
    return json.dumps(schema_of(schema), ensure_ascii=False)


# A value of each kind that schemas are made of, for Compiler.warm_up.
_WARM_SCHEMA = {
    "type": "object", "required": ["text"],
    "properties": {
        "text": {"type": "string"}, "short": {"type": "string", "minLength": 1, "maxLength": 20},
        "number": {"type": "number"}, "integer": {"type": "integer", "minimum": 0, "maximum": 100},
        "flag": {"type": "boolean"}, "choice": {"enum": ["one", "two"]},
        "list": {"type": "array", "items": {"type": "string"}},
        "any": {}, "open": {"type": "object"}, "word": {"type": "string", "pattern": "^[a-z]+$"},
    },
}
_WARM_VALUE = {
    "text": "A \"note\"\nfrom the caf\u00e9, \u4e16", "short": "abc", "number": -1.5, "integer": 12,
    "flag": True, "choice": "two", "list": ["x", "y"], "any": {"k": [1, "s", {"t": None}]},
    "open": {"new key": "v"}, "word": "abc", "other": [True, "x"],
}


class Compiler:
    """Makes grammars over one vocabulary. Every method may be called from several threads.

    `cached_grammars`: how many grammars to keep for when the same text comes again with the same options.
    `memory_budget`: bytes that all its grammars may keep of what was found of their states and
    masks; beyond that they free what no matcher needs, and find it again when it is wanted.
    """

    def __init__(self, vocabulary: _pawl.Vocabulary, *, cached_grammars: int = 0,
                 memory_budget: int = 256 << 20) -> None:
        self._native = _pawl.Compiler(vocabulary, cached_grammars, memory_budget)
        self.vocabulary = vocabulary

    @classmethod
    def _around(cls, native: _pawl.Compiler, vocabulary: _pawl.Vocabulary) -> Compiler:
        made = cls.__new__(cls)
        made._native = native
        made.vocabulary = vocabulary
        return made

    def warm_up(self) -> None:
        """Makes now what the masks of JSON need of the vocabulary once, some 50 ms for 128,000
        tokens; otherwise the first request pays. For servers, when they start."""
        from ._masks import allocate_mask

        mask = allocate_mask(1, len(self.vocabulary))
        for whitespace in ("bounded", "compact"):
            matcher = _pawl.Matcher(self.json_schema(_WARM_SCHEMA, whitespace=whitespace))
            separators = None if whitespace == "bounded" else (",", ":")
            text = json.dumps(_WARM_VALUE, ensure_ascii=False, separators=separators)
            data = text.encode()
            for at in range(len(data)):
                matcher.fill_mask(mask)
                if not matcher.accept_bytes(data[at:at + 1]):
                    raise AssertionError(f"{text} does not fit at byte {at}")

    @property
    def memory_bytes(self) -> int:
        """Bytes that the grammars keep now. Walks over all of it: for reports."""
        return self._native.memory_bytes

    def json_schema(self, schema: Any, **options: Any) -> _pawl.Grammar:
        """`schema`: JSON text, a dict, or a type: a Pydantic model, dataclass, TypedDict, Enum,
        Literal[...] or what is made of them (see schema_of). The options are those of
        JsonSchemaOptions: docs/python.md lists them."""
        return self._native.json_schema(schema_text(schema), options)

    def regex(self, pattern: Text) -> _pawl.Grammar:
        """The output matches the whole pattern (ECMA-262)."""
        return self._native.regex(pattern)

    def substring(self, text: Text, *, whole_words: bool = False) -> _pawl.Grammar:
        """The output is a span of `text`, perhaps an empty one. `whole_words`: it neither begins
        nor ends with white space, inside a word or inside a number."""
        return self._native.substring(text, whole_words)

    def choice(self, choices: Iterable[Text]) -> _pawl.Grammar:
        """The output is one of the strings."""
        return self._native.choice(list(choices))

    def grammar(
        self,
        text: Text,
        language: str,
        *,
        root: str = "root",
        max_bytes: int = 4 << 20,
        max_nesting: int = 250,
        lark_as_xgrammar: bool = False,
        prepare_steps: int = 0,
        **options: Any,
    ) -> _pawl.Grammar:
        """`language`: "ebnf" (as XGrammar reads it), "gbnf" (llama.cpp) or "lark" (llguidance's
        dialect; "lark_xgrammar", or lark_as_xgrammar with "llguidance": XGrammar's). `root` is the
        rule of the whole text (Lark's is "start"). In up to `prepare_steps` steps of about 5 ns
        parts of masks are found while the grammar is compiled; 0: with the masks that need them.
        The options are those of JSON Schemas inside of the grammar."""
        return self._native.grammar(text, language, root, max_bytes, max_nesting,
                                    lark_as_xgrammar, prepare_steps, options)

    def structural_tag(self, tag: Any, **options: Any) -> _pawl.Grammar:
        """Free text with constrained regions, as XGrammar's JSON describes them. The options are those
        of the JSON Schemas inside."""
        text = tag if isinstance(tag, (str, bytes)) else json.dumps(tag, ensure_ascii=False)
        return self._native.structural_tag(text, options)
