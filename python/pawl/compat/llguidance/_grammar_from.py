"""Grammars of every kind as the one text that LLMatcher takes: Lark, or JSON that names Lark
grammars and JSON Schemas. EBNF and GBNF stay what they are, in JSON of Pawl's own."""

from __future__ import annotations

import json
from typing import List, Literal, Union

GrammarFormat = Literal["lark", "gbnf", "ebnf", "cfg", "grammar", "json_schema", "json", "regex",
                        "choice", "llguidance"]


def grammar_from(format: GrammarFormat, text: Union[str, List[str]]) -> str:
    from ._matcher import LLMatcher

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
