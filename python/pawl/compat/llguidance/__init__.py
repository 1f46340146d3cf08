"""The matcher API of llguidance on top of Pawl: replace

    import llguidance

by

    import pawl.compat.llguidance as llguidance

What is different is written down in docs/python.md.
"""

from ._matcher import GrammarFormat, LLExecutor, LLMatcher, LLParserLimits, StructTag, grammar_from
from ._tokenizer import LLTokenizer, TokenizerWrapper


class LarkCompiler:
    def compile(self, lark: str, check: bool = True) -> str:
        return _checked(LLMatcher.grammar_from_lark(lark), check)


class RegexCompiler:
    def compile(self, regex: str, check: bool = True) -> str:
        return _checked(LLMatcher.grammar_from_regex(regex), check)


class JsonCompiler:
    def __init__(self, separators=None, whitespace_flexible: bool = False, **_: object) -> None:
        item, key = separators if separators else (",", ":")
        self.options = {"item_separator": item, "key_separator": key,
                        "whitespace_flexible": whitespace_flexible}

    def compile(self, schema: str, check: bool = True) -> str:
        return _checked(LLMatcher.grammar_from_json_schema(schema, overrides=self.options), check)


def _checked(grammar: str, check: bool) -> str:
    message = LLMatcher.validate_grammar(grammar) if check else ""
    if message:
        raise ValueError(message)
    return grammar


def get_version() -> str:
    from ... import __version__

    return f"pawl {__version__}"


__all__ = [
    "GrammarFormat",
    "JsonCompiler",
    "LLExecutor",
    "LLMatcher",
    "LLParserLimits",
    "LLTokenizer",
    "LarkCompiler",
    "RegexCompiler",
    "StructTag",
    "TokenizerWrapper",
    "get_version",
    "grammar_from",
]
