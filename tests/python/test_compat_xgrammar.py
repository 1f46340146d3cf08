"""The names and the behaviour of XGrammar's matcher API; scripts/peer_tests.py runs its own tests."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

import pawl.compat.xgrammar as xgr  # noqa: E402

VOCAB = ["<s>", "</s>", "a", "b", "ab", "1", '"', "{", "}"]


def allowed(bitmask, row=0):
    masked = xgr.testing._get_masked_tokens_from_bitmask(bitmask, len(VOCAB), row)
    return sorted(set(range(len(VOCAB))) - set(masked))


def test_a_loop_of_an_engine():
    info = xgr.TokenizerInfo(VOCAB)
    assert info.stop_token_ids == [1] and info.vocab_size == len(VOCAB)
    compiler = xgr.GrammarCompiler(info)
    compiled = compiler.compile_grammar('root ::= "ab" "1"?')
    assert compiler.compile_grammar('root ::= "ab" "1"?') is compiled
    matcher = xgr.GrammarMatcher(compiled)
    bitmask = xgr.allocate_token_bitmask(1, info.vocab_size)
    assert matcher.fill_next_token_bitmask(bitmask) and allowed(bitmask) == [2, 4]
    logits = torch.zeros(1, len(VOCAB))
    xgr.apply_token_bitmask_inplace(logits, bitmask)
    assert (logits[0] == 0).nonzero().flatten().tolist() == [2, 4]
    assert matcher.accept_token(2) and matcher.find_jump_forward_string() == "b"
    assert not matcher.accept_token(5) and matcher.accept_token(3) and matcher.is_completed()
    fork = matcher.fork()
    assert matcher.accept_token(1) and matcher.is_terminated() and not fork.is_terminated()
    with pytest.raises(RuntimeError):
        matcher.fill_next_token_bitmask(bitmask)
    matcher.rollback(2)
    assert not matcher.is_completed()
    with pytest.raises(RuntimeError):
        matcher.rollback(2)


def test_sources_and_errors():
    accepts = xgr.testing._is_grammar_accept_string
    assert accepts(xgr.Grammar.from_regex("[ab]+"), "abba")
    assert accepts(xgr.Grammar.from_lark("start: /[ab]+/"), "abba")
    schema = xgr.Grammar.from_json_schema({"type": "object", "properties": {"a": {}}})
    assert accepts(schema, '{ "a" : 1}') and not accepts(schema, '{"b": 1}')
    assert accepts(xgr.Grammar.builtin_json_grammar(), '{"a": [1, -2.5e3, "\\u00e9", null]}')
    for make in (lambda: xgr.Grammar.from_ebnf("root ::= "), lambda: xgr.Grammar.from_regex("("),
                 lambda: xgr.Grammar.from_json_schema("{")):
        with pytest.raises(RuntimeError):
            make()
    again = xgr.Grammar.deserialize_json(schema.serialize_json())
    assert accepts(again, '{"a":1}')
    with pytest.raises(xgr.InvalidJSONError):
        xgr.Grammar.deserialize_json("{")
    text = '{"type": "%s", "format": {"type": "const_string", "value": "ab"}}'
    assert accepts(xgr.Grammar.from_structural_tag(text % "structural_tag"), "ab")
    with pytest.raises(xgr.InvalidStructuralTagError):
        xgr.Grammar.from_structural_tag(text % "structure")


def test_batches_and_draft_trees():
    compiled = xgr.GrammarCompiler(xgr.TokenizerInfo(VOCAB)).compile_grammar('root ::= "a"* "1"')
    matchers = [xgr.GrammarMatcher(compiled) for _ in range(3)]
    assert xgr.BatchGrammarMatcher.batch_accept_token(matchers, [2, 3, 5]) == [True, False, True]
    bitmask = xgr.allocate_token_bitmask(4, len(VOCAB))
    xgr.BatchGrammarMatcher(2).batch_fill_next_token_bitmask(matchers, bitmask, [3, 1, 0])
    assert [allowed(bitmask, row) for row in (3, 1, 0)] == [[2, 5], [2, 5], [1]]
    tree = xgr.allocate_token_bitmask(3, len(VOCAB))
    assert matchers[0].traverse_draft_tree(
        torch.tensor([1, -1, -1]), torch.tensor([-1, 2, -1]), torch.tensor([0, 2, 5]), tree)
    assert [allowed(tree, row) for row in range(3)] == [[2, 5], [2, 5], [1]]


def test_lark_of_xgrammar():
    grammar = xgr.Grammar.from_lark(
        'start[capture="all"]: w "1"\nw[capture, stop="b"]: /[a]*/\n%ignore / +/')
    info = xgr.TokenizerInfo(VOCAB)
    matcher = xgr.GrammarMatcher(xgr.GrammarCompiler(info).compile_grammar(grammar),
                                 terminate_without_stop_token=True, default_temperature=0.25)
    assert matcher.temperature == 0.25
    assert matcher.accept_string("aab1  ") and matcher.is_terminated()
    assert matcher.get_captures() == [("w", b"aa"), ("all", b"aa1")]
    either = xgr.GrammarCompiler(info).compile_grammar(
        xgr.Grammar.union(xgr.Grammar.from_lark('start: "x"'), xgr.Grammar.from_regex("[0-9]")))
    for text, expected in (("x", True), ("7", True), ("x7", False)):
        assert xgr.GrammarMatcher(either).accept_string(text) == expected
