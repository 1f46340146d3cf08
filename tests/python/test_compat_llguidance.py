"""The names and the behaviour of llguidance's matcher API; scripts/peer_tests.py runs its own tests."""

import json

import numpy as np
import pytest

import pawl.compat.llguidance as llguidance
from pawl.compat.llguidance import LLExecutor, LLMatcher, LLTokenizer, grammar_from
from pawl.compat.llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask_par


@pytest.fixture(scope="module")
def tokenizer():
    return LLTokenizer("byte")


def accepts(tokenizer, grammar, text):
    matcher = LLMatcher(tokenizer, grammar)
    assert not matcher.is_error(), matcher.get_error()
    tokens = tokenizer.tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


@pytest.mark.parametrize("kind, text, good, bad", [
    ("lark", 'start: "a"+ /[0-9]/', "aa1", "1"),
    ("gbnf", 'root ::= "a"+ [0-9]', "aa1", "1"),
    ("regex", "a/[0-9]+", "a/12", "a12"),
    ("choice", '["yes", "no"]', "no", "maybe"),
    ("json_schema", '{"type": "integer"}', "12", "x"),
    ("llguidance", json.dumps({"grammars": [{"lark_grammar": "start: @x \"!\""},
                                            {"name": "x", "json_schema": {"const": 1}}]}),
     "1!", "2!"),
])
def test_grammars(tokenizer, kind, text, good, bad):
    grammar = grammar_from(kind, text)
    assert LLMatcher.validate_grammar(grammar) == ""
    assert accepts(tokenizer, grammar, good) and not accepts(tokenizer, grammar, bad)


def test_errors_are_states(tokenizer):
    broken = LLMatcher(tokenizer, "start: nothing")
    assert broken.is_error() and "nothing" in broken.get_error()
    assert not broken.consume_token(97) and broken.stop_reason() == "InternalError"
    matcher = LLMatcher(tokenizer, 'start: "ab"')
    assert not matcher.consume_token(98) and matcher.is_error()
    assert not LLMatcher(tokenizer, 'start: "ab"').consume_token(100000)
    with pytest.raises(ValueError):
        grammar_from("no such format", "")


def test_masks_and_fast_forward(tokenizer):
    matcher = LLMatcher(tokenizer, "start: /(foo[12]23|bar)/")
    assert [i for i, bias in enumerate(matcher.compute_logit_bias()) if bias] == [98, 102]
    assert matcher.consume_token(102) and matcher.compute_ff_bytes() == b"oo"
    assert matcher.compute_ff_tokens() == [111, 111]
    other = LLMatcher(tokenizer, 'start: "x"')
    mask = allocate_token_bitmask(3, tokenizer.vocab_size)
    fill_next_token_bitmask_par(LLExecutor(2), [(matcher, 2), (other, 0)], mask)
    rows = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")
    assert np.flatnonzero(rows[2]).tolist() == [111] and np.flatnonzero(rows[0]).tolist() == [120]
    assert (mask[1] == -1).all()
    assert other.consume_token(120) and other.is_stopped() and other.is_accepting()
    assert other.rollback(1) and not other.is_stopped()
    assert llguidance.get_version().startswith("pawl")


def test_captures(tokenizer):
    matcher = LLMatcher(tokenizer, 'start: n (" " n)*\nn[capture="item"]: /[a-z]+/')
    assert matcher.get_captures() == [] and matcher.get_capture("item") is None
    assert matcher.consume_tokens(list(b"ab cd"))
    assert matcher.get_captures() == [("item", b"ab"), ("item", b"cd")]
    assert matcher.get_capture("item") == b"cd" and matcher.get_capture("other") is None
