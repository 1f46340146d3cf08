"""The backend driven through SGLang's own classes: its registry, its reasoner, its walk over trees of
drafts. No engine and no model; with SGLang 0.5.23 in the environment. Where its kernels are missing (a
CPU), SGLANG_KERNEL_STUB names a folder with a module sgl_kernel to import in their place."""

import json
import os
import random
import sys
import threading
import time
from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
if "SGLANG_KERNEL_STUB" in os.environ:
    sys.path.insert(0, os.environ["SGLANG_KERNEL_STUB"])
base = pytest.importorskip("sglang.srt.constrained.base_grammar_backend")

import numpy as np  # noqa: E402
import pawl  # noqa: E402
import pawl.sglang as plugin  # noqa: E402

plugin.register()
plugin.register()

THINK, END, VOCAB = 298, 299, 320


class Tokenizer:
    eos_token_id = END
    all_special_ids = [THINK, END]
    added_tokens_decoder = {}

    def get_vocab(self):
        vocab = {f"<0x{b:02X}>": b for b in range(256)}
        vocab.update({f"w{i}": i for i in range(256, THINK)})
        vocab.update({"ab": 256, "abc": 257, "</think>": THINK, "</s>": END})
        del vocab["w256"], vocab["w257"]
        return vocab


@pytest.fixture(scope="module")
def backend():
    return plugin.classes()["backend"](Tokenizer(), VOCAB, {END}, {"whitespace": "bounded"})


def grammar(backend, kind, text):
    value, hit = backend.get_cached_or_future_value((kind, text), False)
    made = value if hit else value.result(timeout=30)
    if not hit:
        backend.set_cache((kind, text), made)
        made = made.copy()
    if isinstance(made, base.InvalidGrammarObject):
        raise ValueError(made.error_message)
    return made


def allowed(mask, row=0):
    bits = np.unpackbits(mask[row].numpy().view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits[:VOCAB]).tolist())


def spell(text):
    return list(text.encode())


CASES = [
    ("json", json.dumps({"type": "object", "properties": {"a": {"type": "integer"}},
                         "required": ["a"]}), '{"a": 12}'),
    ("json", "$$ANY$$", '{"k": [1]}'),
    ("regex", "ab*c", "abbc"),
    ("ebnf", 'root ::= "x" [0-9]+', "x12"),
    ("full_assistant_ebnf", 'root ::= "y"', "y"),
    ("structural_tag", json.dumps({"type": "structural_tag", "format": {
        "type": "tag", "begin": "<t>", "end": "</t>",
        "content": {"type": "json_schema", "json_schema": {"type": "integer"}}}}), "<t>12</t>"),
    ("structural_tag", json.dumps({"structures": [
        {"begin": "<f>", "schema": {"type": "boolean"}, "end": "</f>"}], "triggers": ["<f>"]}),
     "hi <f>true</f>"),
]


@pytest.mark.parametrize("kind, text, output", CASES)
def test_every_kind(backend, kind, text, output):
    made = grammar(backend, kind, text)
    for token in spell(output):
        mask = made.allocate_vocab_mask(VOCAB, 2, "cpu")
        made.fill_vocab_mask(mask, 1)
        assert token in allowed(mask, 1) and len(allowed(mask, 0)) == VOCAB
        made.accept_token(token)
    made.fill_vocab_mask(mask, 0)
    assert END in allowed(mask) and not made.is_terminated()
    logits = torch.zeros(1, VOCAB)
    made.apply_vocab_mask(logits, mask[:1])
    assert set(torch.isfinite(logits[0]).nonzero().flatten().tolist()) == allowed(mask)
    made.accept_token(END)
    assert made.is_terminated()
    made.rollback(1)
    assert not made.is_terminated()


def test_a_token_that_does_not_fit_raises(backend):
    made = grammar(backend, "regex", "ab*c")
    with pytest.raises(ValueError, match="does not fit the regex"):
        made.accept_token(ord("z"))


@pytest.mark.parametrize("kind, text, message", [
    ("json", '{"minLength": "x"}', "#/minLength"), ("regex", "(a", "byte"),
    ("ebnf", 'root ::= "a" item', "1:14"), ("structural_tag", "{", ""), ("json", '{"a":"\\u0000"}', "NUL"),
])
def test_errors_name_the_place(backend, kind, text, message):
    with pytest.raises(ValueError, match=message):
        grammar(backend, kind, text)


def test_a_copy_is_at_the_start(backend):
    first = grammar(backend, "regex", "ab*c")
    first.accept_token(ord("a"))
    second = grammar(backend, "regex", "ab*c")
    second.accept_token(ord("a"))  # would be refused behind the first one's
    assert second.grammar_stats.is_cache_hit


def test_rows_of_a_batch_in_one_call(backend):
    grammars = [grammar(backend, kind, text) for kind, text, _ in CASES]
    mask = grammars[0].allocate_vocab_mask(VOCAB, len(grammars) + 1, "cpu")
    rows = [base.GrammarRow(len(grammars) - i, g) for i, g in enumerate(grammars)]
    grammars[0].fill_vocab_mask_batched(rows, mask)
    assert len(allowed(mask, 0)) == VOCAB  # not listed: left alone
    for row, made in rows:
        alone = made.allocate_vocab_mask(VOCAB, 1, "cpu")
        made.fill_vocab_mask(alone, 0)
        assert allowed(mask, row) == allowed(alone)


def test_jump_forward_and_retokenizing(backend):
    made = grammar(backend, "ebnf", 'root ::= "abcd" [0-9]')
    helper = made.try_jump_forward(None)
    assert made.jump_forward_str_state(helper) == ("abcd", -1)
    made.accept_token(ord("a"))
    made.jump_and_retokenize([ord("a")], [257, ord("d")], -1)
    mask = made.allocate_vocab_mask(VOCAB, 1, "cpu")
    made.fill_vocab_mask(mask, 0)
    assert allowed(mask) == set(range(48, 58))


def tree_of(rng, size):
    """First child, next sibling, as SGLang's drafters write a tree whose node 0 is verified."""
    child, sibling, last = [-1] * size, [-1] * size, {}
    for node in range(1, size):
        parent = rng.randrange(node)
        if parent in last:
            sibling[last[parent]] = node
        else:
            child[parent] = node
        last[parent] = node
    return torch.tensor(child), torch.tensor(sibling)


def test_trees_of_drafts_equal_the_hosts_own_walk(backend):
    spec_utils = pytest.importorskip("sglang.srt.speculative.spec_utils")
    own = getattr(spec_utils.traverse_tree, "_pawl_original")
    rng = random.Random(4)
    for _ in range(150):
        kind, text, output = rng.choice(CASES)
        made = grammar(backend, kind, text)
        cut = rng.randrange(len(output) + 1)
        for token in spell(output)[:cut]:
            made.accept_token(token)
        size = rng.randint(1, 9)
        child, sibling = tree_of(rng, size)
        following = (spell(output) + [END, END] + [0] * 12)[cut:]
        tokens = torch.tensor([0] + [rng.choice([following[0], following[1], END, 7, 500])
                                     for _ in range(size - 1)])
        want = made.allocate_vocab_mask(VOCAB, size, "cpu")
        got = made.allocate_vocab_mask(VOCAB, size, "cpu")
        own(child, sibling, tokens, made, want, VOCAB)
        spec_utils.traverse_tree(child, sibling, tokens, made, got, VOCAB)
        for row in range(size):
            assert {t for t in allowed(got, row) if t < 300} == \
                {t for t in allowed(want, row) if t < 300}


def serving(**fields):
    return SimpleNamespace(**{
        "reasoning_parser": None, "enable_strict_thinking": False,
        "constrained_json_disable_any_whitespace": False,
        "constrained_json_max_whitespace_cnt": None,
        "constrained_json_whitespace_pattern": None, **fields})


def test_the_registry_and_the_servers_options(monkeypatch):
    import sglang.srt.runtime_context as context
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    assert GRAMMAR_BACKEND_CHOICES.count("pawl") == 1
    make = base.GRAMMAR_BACKEND_REGISTRY["pawl"]
    monkeypatch.setattr(context, "get_serving", lambda: serving(
        constrained_json_disable_any_whitespace=True))
    made = make(None, Tokenizer(), VOCAB, {END})
    compact = grammar(made, "json", '{"type": "array", "minItems": 1}')
    compact.accept_token(ord("["))
    mask = compact.allocate_vocab_mask(VOCAB, 1, "cpu")
    compact.fill_vocab_mask(mask, 0)
    assert ord(" ") not in allowed(mask)
    monkeypatch.setattr(context, "get_serving", lambda: serving(
        constrained_json_whitespace_pattern="[ ]"))
    with pytest.raises(ValueError, match="whitespace-pattern"):
        make(None, Tokenizer(), VOCAB, {END})


def test_behind_the_reasoner(backend):
    reasoner = pytest.importorskip("sglang.srt.constrained.reasoner_grammar_backend")
    wrapped = reasoner.ReasonerGrammarObject(grammar(backend, "regex", "ab*c"), [THINK])
    wrapped.maybe_init_reasoning(True)
    mask = wrapped.allocate_vocab_mask(VOCAB, 1, "cpu")
    wrapped.fill_vocab_mask(mask, 0)
    assert len(allowed(mask)) == VOCAB
    for token in [*spell("hm"), THINK]:
        wrapped.accept_token(token)
    mask = wrapped.allocate_vocab_mask(VOCAB, 1, "cpu")
    wrapped.fill_vocab_mask(mask, 0)
    assert allowed(mask) == {ord("a"), 256, 257}
    plain = grammar(backend, "regex", "ab*c")
    both = plain.allocate_vocab_mask(VOCAB, 2, "cpu")
    plain.fill_vocab_mask_batched([base.GrammarRow(0, wrapped), base.GrammarRow(1, plain)], both)
    assert allowed(both, 0) == allowed(both, 1) == {ord("a"), 256, 257}


def test_a_frame_around_a_grammar(backend):
    backend.reserve_framing_tokens([THINK])
    made = backend.compile_framed_grammar(grammar(backend, "regex", "ab*c"), lambda content: {
        "type": "structural_tag", "format": {"type": "sequence", "elements": [
            {"type": "const_string", "value": "<"}, content]}})
    for token in spell("<ac"):
        made.accept_token(token)
    made.accept_token(END)
    assert made.is_terminated()


def test_token_filters():
    backend = plugin.classes()["backend"]
    mask = backend.allocate_vocab_mask(VOCAB, 2, "cpu")
    backend.set_token_filter(mask, [3, 31, 63], 1)
    assert allowed(mask, 1) == {3, 31, 63}
    backend.set_token_filter(mask, [3, 31], 0, is_allowed=False)
    assert allowed(mask, 0) == set(range(VOCAB)) - {3, 31}


def test_few_grammars_are_kept(backend):
    small = plugin.classes()["backend"](Tokenizer(), VOCAB, {END}, cached=3)
    for i in range(8):
        grammar(small, "regex", f"a{i}")
    assert list(small.cache) == [("regex", f"a{i}") for i in (5, 6, 7)]
    small.reset()
    assert not small.cache


class Compiled:
    def copy(self):
        return Compiled()


def test_compiles_that_nobody_wants_are_dropped():
    gate, seen = threading.Event(), []

    def compile_key(key):
        seen.append(key)
        gate.wait(10)
        if key[1] == "bad":
            raise ValueError("bad")
        return Compiled()

    queue = plugin.CompileQueue(compile_key, threads=1)
    first = queue.submit(("regex", "1"), lambda made: made.copy())
    again = queue.submit(("regex", "1"), lambda made: made.copy())
    unwanted = queue.submit(("regex", "2"), lambda made: made.copy())
    bad = queue.submit(("regex", "bad"), lambda made: made.copy())
    assert unwanted.cancel()
    assert again.cancel()
    gate.set()
    assert isinstance(first.result(10), Compiled)
    with pytest.raises(CancelledError):
        again.result(1)
    with pytest.raises(ValueError, match="bad"):
        bad.result(10)
    for _ in range(100):
        if queue.dropped:
            break
        time.sleep(0.01)
    assert seen == [("regex", "1"), ("regex", "bad")]
    assert (queue.compiled, queue.dropped, queue.shared) == (2, 1, 1)
    queue.shutdown()


class Held:
    """pawl.sglang.compile_key with a gate in front, and what came to it."""

    def __init__(self):
        self.gate, self.seen, self.inner = threading.Event(), [], plugin.compile_key

    def __call__(self, compiler, key, options):
        self.seen.append(key)
        self.gate.wait(10)
        return self.inner(compiler, key, options)


@pytest.fixture()
def manager(monkeypatch):
    """SGLang's own GrammarManager around a backend of its registry, with SGLang's own requests."""
    host = pytest.importorskip("sglang.srt.constrained.grammar_manager")
    batch = pytest.importorskip("sglang.srt.managers.schedule_batch")
    import sglang.srt.runtime_context as context

    serves = serving(skip_tokenizer_init=False)
    alone = SimpleNamespace(pp_rank=0, pp_size=1, tp_rank=0)
    for module in (host, context):
        monkeypatch.setattr(module, "get_serving", lambda: serves)
    for module in (host, batch):
        monkeypatch.setattr(module, "get_parallel", lambda: alone)
    monkeypatch.setattr(base, "get_exec",
                        lambda: SimpleNamespace(kernel=SimpleNamespace(grammar_backend="pawl")))
    made = host.GrammarManager(SimpleNamespace(
        server_args=None, tokenizer=Tokenizer(), dp_tp_cpu_group=None, pp_group=None,
        dp_tp_group=SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True),
        model_config=SimpleNamespace(vocab_size=VOCAB, hf_eos_token_id={END}, think_end_ids=None)))
    made.held = Held()
    monkeypatch.setattr(plugin, "compile_key", made.held)
    yield made
    made.held.gate.set()
    made.grammar_backend.queue.shutdown()


def ask(manager, rid, regex):
    from array import array

    from sglang.srt.managers.schedule_batch import Req
    from sglang.srt.sampling.sampling_params import SamplingParams

    request = Req(rid, "", array("q", [1]), SamplingParams(regex=regex), vocab_size=VOCAB)
    assert manager.process_req_with_grammar(request)  # it waits for a compile
    return request


def until(reached):
    for _ in range(500):
        if reached():
            return
        time.sleep(0.01)
    raise AssertionError("not within 5 s")


def test_the_hosts_aborts_drop_compiles(manager):
    from sglang.srt.managers.io_struct import AbortReq

    queue, held = manager.grammar_backend.queue, manager.held
    first = [ask(manager, "first-0", "a0"), ask(manager, "first-1", "a1")]
    until(lambda: len(held.seen) == 2)  # both threads are at work
    left = ask(manager, "left", "b+")
    stays = ask(manager, "stays", "b+")
    gone = [ask(manager, f"gone-{i}", "c+") for i in range(3)]
    running = ask(manager, "running", "a1")
    for rid in ("left", "gone", "running"):  # SGLang takes what rids begin with
        manager.abort_requests(AbortReq(rid=rid))
    held.gate.set()
    until(lambda: queue.dropped == 1)
    ready = []
    until(lambda: ready.extend(manager.get_ready_grammar_requests()) or not len(manager))
    assert sorted(held.seen) == [("regex", "a0"), ("regex", "a1"), ("regex", "b+")]
    assert sorted(r.rid for r in ready) == sorted(
        r.rid for r in (*first, left, stays, *gone, running))
    for request in (left, *gone, running):
        assert request.grammar is None and "Abort" in request.to_finish.message
    stays.grammar.accept_token(ord("b"))
    first[1].grammar.accept_token(ord("a"))
    # What was dropped is compiled when somebody asks again.
    again = ask(manager, "again", "c+")
    until(lambda: manager.get_ready_grammar_requests() == [again])
    again.grammar.accept_token(ord("c"))


def test_the_hosts_patience_ends_and_its_compiles_with_it(manager):
    manager.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS = 1
    queue, held = manager.grammar_backend.queue, manager.held
    late = [ask(manager, f"late-{i}", f"a{i}") for i in range(4)]
    until(lambda: len(held.seen) == 2)
    assert manager.get_ready_grammar_requests() == late and not len(manager)
    assert all("timed out" in r.to_finish.message for r in late)
    held.gate.set()
    until(lambda: queue.dropped == 2)
    assert sorted(held.seen) == [("regex", "a0"), ("regex", "a1")]
    until(lambda: queue.compiled == 2)  # what ran came to its end, for no request
    assert not queue._waiting


def test_a_host_that_changed_is_an_error(monkeypatch):
    monkeypatch.setattr(base, "create_grammar_backend", lambda server_args: None)
    with pytest.raises(RuntimeError, match="0.5.23"):
        plugin.register()
