"""The tool tags that XGrammar builds in, which is what vLLM's and SGLang's tool parsers ask for: each of
its model formats, with tools that may and that must be called, compiles and takes a call."""

import inspect
import json
import re

import pytest

tags = pytest.importorskip("xgrammar.builtin_structural_tag")

import pawl  # noqa: E402

MODELS = re.findall(r'^@register_model_structural_tag\("(\w+)"\)', inspect.getsource(tags), re.M)
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1},
            "units": {"enum": ["c", "f"]}, "place": {"type": "object", "properties": {
                "lat": {"type": "number"}, "lon": {"type": "number"}}}}}}},
    {"type": "function", "function": {"name": "now", "parameters": {
        "type": "object", "properties": {}}}},
]


def named_tokens(node, found):
    """Strings in a tag that may name tokens of the model's vocabulary."""
    if isinstance(node, str) and re.fullmatch(r"<[^\s<>]+>|\[[A-Z_]+\]", node):
        found.add(node)
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        named_tokens(child, found)
    return found


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("model", MODELS)
def test_tag_compiles(model, choice):
    tag = tags.get_model_structural_tag(model, TOOLS, choice).model_dump_json()
    special = sorted(named_tokens(json.loads(tag), set()))
    tokens = [*(bytes([b]) for b in range(256)), b"<end>", *(t.encode() for t in special)]
    vocabulary = pawl.Vocabulary(tokens, list(range(256, len(tokens))), [256])
    matcher = pawl.Matcher(pawl.Compiler(vocabulary).structural_tag(tag))
    rest = matcher.completion_tokens()
    assert rest is not None and matcher.validate_tokens([*rest, 256]) == len(rest) + 1
    text = b"".join(tokens[t] for t in rest)
    if choice == "required" and model != "harmony":  # whose tag has at_least_one: false there
        assert b"get_weather" in text or b"now" in text


def test_there_are_as_many_as_there_were():
    assert len(MODELS) >= 18
