"""The backend driven through vLLM's own classes: its manager, its requests' checks, its reasoning
boundary. No engine and no model; with vLLM 0.32 or 0.33 in the environment."""

import json
import random
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
vllm = pytest.importorskip("vllm")

import numpy as np  # noqa: E402
import pawl  # noqa: E402
import pawl.vllm as plugin  # noqa: E402

plugin.register()

import vllm.v1.structured_output as host  # noqa: E402
from vllm.config.structured_outputs import StructuredOutputsConfig  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: E402
from vllm.v1.structured_output.backend_types import StructuredOutputOptions as Kind  # noqa: E402
from vllm.v1.structured_output.request import StructuredOutputRequest  # noqa: E402

THINK, END = 298, 299


class Tokenizer:
    """As much of a Hugging Face tokenizer as vocabularies are made from."""

    eos_token_id = END
    all_special_ids = [THINK, END]
    added_tokens_decoder = {}

    def get_vocab(self):
        vocab = {f"<0x{b:02X}>": b for b in range(256)}
        words = ['{"', '":', '"a', 'true', 'false', ', "', 'ab', 'abc', '12', '123', ' a', '"}',
                 "<tool>", "</tool>"]
        vocab.update({word.replace(" ", "\u2581"): 256 + i for i, word in enumerate(words)})
        vocab.update({f"<unused{i}>": i for i in range(256 + len(words), THINK)})
        vocab.update({"</think>": THINK, "</s>": END})
        return vocab


class Reasoner:
    """Ends at </think>, as vLLM's basic reasoning parsers do."""

    def __init__(self, tokenizer, **kwargs):
        pass

    def is_reasoning_end(self, ids):
        return THINK in ids

    def is_reasoning_end_streaming(self, ids, delta):
        return THINK in delta


def config(drafts=0, extra=None, **outputs):
    outputs = {"disable_any_whitespace": False, "disable_additional_properties": False,
               "reasoning_parser": "", "reasoning_parser_plugin": "", "enable_in_reasoning": False,
               "backend": "pawl", **outputs}
    return SimpleNamespace(
        additional_config=extra or {}, num_speculative_tokens=drafts, speculative_config=None,
        structured_outputs_config=SimpleNamespace(**outputs),
        scheduler_config=SimpleNamespace(max_num_seqs=64),
        parallel_config=SimpleNamespace(distributed_executor_backend="external_launcher"),
        model_config=SimpleNamespace(skip_tokenizer_init=True, is_diffusion=False,
                                     get_vocab_size=lambda: 320))


def manager(drafts=0, reasoner=None, **arguments):
    made = host.StructuredOutputManager(config(drafts, **arguments))
    made.tokenizer = Tokenizer()
    made.reasoner_cls = reasoner
    return made


class Request(SimpleNamespace):
    use_structured_output = True


def request(made, name="r", stop=(), **constraint):
    params = SamplingParams(structured_outputs=StructuredOutputsParams(**constraint),
                            stop_token_ids=list(stop))
    params._all_stop_token_ids = {END, *stop}
    params.structured_outputs._backend = "pawl"
    one = Request(request_id=name, sampling_params=params, prompt_token_ids=[1],
                  all_token_ids=[1],
                  structured_output_request=StructuredOutputRequest.from_sampling_params(params))
    made.grammar_init(one)
    grammar = one.structured_output_request.grammar
    if isinstance(grammar, Exception):
        raise grammar
    return one


def grammar_of(one):
    return one.structured_output_request.grammar


def allowed(rows, row=0):
    bits = np.unpackbits(np.ascontiguousarray(rows[row]).view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits[:320]).tolist())


def spell(text):
    return list(text.encode())


CONSTRAINTS = [
    ({"json": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
     '{"a":12}'),
    ({"json": '{"enum": ["x", 7]}'}, "7"),
    ({"json_object": True}, '{"k": [1, null]}'),
    ({"regex": "ab*c"}, "abbc"),
    ({"choice": ["yes", "no"]}, "no"),
    ({"grammar": 'root ::= "x" [0-9]+'}, "x12"),
    ({"grammar": 'start: "<" WORD ">"\nWORD: /[a-z]+/'}, "<abc>"),
    ({"structural_tag": json.dumps({"type": "structural_tag", "format": {
        "type": "tag", "begin": "<tool>", "end": "</tool>",
        "content": {"type": "json_schema", "json_schema": {"type": "integer"}}}})},
     "<tool>12</tool>"),
    ({"structural_tag": json.dumps({"structures": [
        {"begin": "<f>", "schema": {"type": "boolean"}, "end": "</f>"}], "triggers": ["<f>"]})},
     "hi <f>true</f>"),
]


@pytest.mark.parametrize("constraint, text", CONSTRAINTS)
def test_every_kind(constraint, text):
    made = manager()
    one = request(made, **constraint)
    for token in spell(text):
        rows = made.grammar_bitmask({"r": one}, ["r"], {})
        assert token in allowed(rows)
        assert made.accept_tokens(one, [token])
    assert END in allowed(made.grammar_bitmask({"r": one}, ["r"], {}))
    assert not grammar_of(one).is_terminated()
    assert made.accept_tokens(one, [END])
    assert grammar_of(one).is_terminated()
    assert len(allowed(made.grammar_bitmask({"r": one}, ["r"], {}))) == 320
    grammar_of(one).reset()
    assert not grammar_of(one).is_terminated()


def test_a_token_that_does_not_fit_is_refused():
    made = manager()
    one = request(made, regex="ab")
    assert not made.accept_tokens(one, [ord("b")])
    assert made.accept_tokens(one, spell("ab"))


def test_stop_tokens_wait_for_the_end():
    made = manager()
    one = request(made, stop=[ord("b")], regex="ac?")
    assert allowed(made.grammar_bitmask({"r": one}, ["r"], {})) == {ord("a")}
    made.accept_tokens(one, [ord("a")])
    assert allowed(made.grammar_bitmask({"r": one}, ["r"], {})) == {ord("c"), ord("b"), END}
    made.accept_tokens(one, [ord("b")])
    assert grammar_of(one).is_terminated()


def test_requests_share_a_grammar_and_nothing_else():
    made = manager()
    a, b = (request(made, name, choice=["ab", "cd"]) for name in "ab")
    made.accept_tokens(a, [ord("a")])
    rows = made.grammar_bitmask({"a": a, "b": b}, ["b", "a"], {})
    assert ord("c") in allowed(rows, 0) and ord("c") not in allowed(rows, 1)


def test_drafts_are_cut_without_advancing():
    made = manager(drafts=4)
    one = request(made, regex="abc")
    assert made.validate_tokens(one, [*spell("abx"), -1]) == spell("ab")
    assert made.validate_tokens(one, [9999]) == []
    assert ord("a") in allowed(made.grammar_bitmask({"r": one}, ["r"], {}))


@pytest.mark.parametrize("drafts", [0, 3])
def test_an_output_is_closed_within_its_budget_whatever_is_drafted(drafts):
    closed = 0
    for seed in range(12):
        rng = random.Random(seed)
        made = manager(drafts, extra={"pawl": {"close": True}})
        # Each further item takes forty tokens: a row that let a comma through would be too much.
        item = {"type": "object", "properties": {"k" * 30: {"type": "integer"}}, "required": ["k" * 30],
                "additionalProperties": False}
        one = request(made, json={"type": "array", "minItems": 1, "items": item})
        grammar, out, budget = grammar_of(one), [], 200 + seed
        one.sampling_params.max_tokens, one.num_output_tokens = budget, 0
        while not grammar.is_terminated() and len(out) < budget:
            # Half of the drafts are the way to the end, so that rows behind them count.
            way = list(grammar.matcher.completion_tokens() or [])[:drafts]
            if rng.random() < 0.5:
                way = [rng.choice(sorted(grammar.matcher.allowed_tokens())) for _ in way[:1]]
            draft = made.validate_tokens(one, way) if way else []
            rows = made.grammar_bitmask({"r": one}, ["r"], {"r": draft} if draft else {})
            closed += bool(grammar.plan)
            taken = []
            for row in range(len(draft) + 1):
                may = allowed(rows, row)
                taken.append(rng.choice(sorted(may - {END, ord("]")} or may)))  # on, if it can be
                if taken[-1] == END or draft[row:row + 1] != taken[-1:]:
                    break
            assert made.accept_tokens(one, taken[:budget - len(out)])
            out += taken[:budget - len(out)]
            one.num_output_tokens = len(out)
        assert grammar.is_terminated(), bytes(t for t in out if t < 256)
    assert closed >= 12


def host_rows(made, *arguments):
    """The same rows by the host's own loop, one call of the interface after the other."""
    function = getattr(host.StructuredOutputManager.grammar_bitmask, "_pawl_original")
    return function(made, *arguments)


@pytest.mark.parametrize("reasoning", [False, True])
@pytest.mark.parametrize("drafts", [0, 4])
def test_rows_equal_those_of_the_hosts_own_loop(drafts, reasoning):
    rng = random.Random(11)
    for _ in range(60):
        made = manager(drafts, reasoner=Reasoner if reasoning else None)
        requests, scheduled = {}, {}
        for i in range(rng.randint(1, 5)):
            constraint, text = rng.choice(CONSTRAINTS)
            one = request(made, str(i), **constraint)
            requests[str(i)] = one
            text = spell(text) + [END]
            cut = rng.randint(0, len(text))
            ended = not reasoning or rng.random() < 0.5
            if ended:
                one.structured_output_request.reasoning_ended = True
                assert made.accept_tokens(one, text[:cut])
            draft = text[cut:cut + rng.randint(0, drafts)] if drafts else []
            if not ended:
                draft = (spell("hm") + [THINK] + text)[rng.randint(0, 2):][:rng.randint(0, drafts)]
            if draft and rng.random() < 0.3:
                draft[rng.randrange(len(draft))] = rng.choice([-1, 7, 300])
                if -1 in draft:
                    draft[draft.index(-1):] = [-1] * (len(draft) - draft.index(-1))
            if draft:
                scheduled[str(i)] = draft
        ids = list(requests)
        want = host_rows(made, requests, ids, scheduled).copy()
        made._grammar_bitmask.fill_(0)
        got = made.grammar_bitmask(requests, ids, scheduled)
        assert got.shape == want.shape and got.dtype == want.dtype
        at = 0
        for name in ids:
            if hasattr(made, "_masked_reasoning_ends"):
                at = ids.index(name) * (drafts + 1)
            for row in range(len(scheduled.get(name, ())) + 1):
                ours, theirs = allowed(got, at + row), allowed(want, at + row)
                assert {t for t in ours if t < 300} == {t for t in theirs if t < 300}
            at += len(scheduled.get(name, ())) + 1


def test_the_constraint_begins_behind_the_reasoning():
    made = manager(drafts=3, reasoner=Reasoner)
    one = request(made, regex="abc")
    assert len(allowed(made.grammar_bitmask({"r": one}, ["r"], {}))) == 320
    rows = made.grammar_bitmask({"r": one}, ["r"], {"r": [ord("x"), THINK, ord("a")]})
    assert len(allowed(rows, 0)) == len(allowed(rows, 1)) == 320
    assert allowed(rows, 2) == {ord("a"), 262, 263} and ord("b") in allowed(rows, 3)
    one.all_token_ids += [ord("x"), THINK, ord("a")]
    assert made.accept_tokens(one, [ord("x"), THINK, ord("a")])
    assert one.structured_output_request.reasoning_ended
    assert ord("b") in allowed(made.grammar_bitmask({"r": one}, ["r"], {}))


def check(constraint, backend="pawl"):
    params = SamplingParams(structured_outputs=StructuredOutputsParams(**constraint))
    params._validate_structured_outputs(SimpleNamespace(is_diffusion=False),
                                        StructuredOutputsConfig(backend=backend), Tokenizer())
    return params.structured_outputs._backend


@pytest.mark.parametrize("constraint, text", CONSTRAINTS)
def test_the_front_end_takes_what_the_engine_takes(constraint, text):
    assert check(constraint) == "pawl"


@pytest.mark.parametrize("constraint, message", [
    ({"json": {"type": "string", "minLength": "3"}}, "#/minLength"),
    ({"json": {"type": "integer", "minimum": 3, "maximum": 2}}, "no value can ever fit"),
    ({"regex": "(a"}, "pawl: "),
    ({"grammar": 'root ::= "a" item'}, "1:14"),
    ({"grammar": " "}, "empty"),
    ({"choice": []}, "empty"),
    ({"regex": "a\x00"}, "NUL"),
    ({"structural_tag": "{"}, "pawl: "),
])
def test_the_front_end_names_what_is_wrong(constraint, message):
    with pytest.raises((VLLMValidationError, ValueError), match=message):
        check(constraint)


def test_the_front_end_knows_the_engines_options(monkeypatch):
    """What only an option leaves without a value is refused where the answer is written."""
    from vllm.v1.engine.input_processor import InputProcessor

    monkeypatch.setattr(InputProcessor, "__init__", lambda self, vllm_config: None)
    plugin._patch_front_end()
    outputs = StructuredOutputsConfig(backend="pawl")
    options = {"max_string": 8, "additional_properties": False}
    InputProcessor(SimpleNamespace(structured_outputs_config=outputs,
                                   additional_config={"pawl": options}))
    unnamed = {"type": "object", "required": ["b"], "properties": {"a": {"type": "string"}}}
    for config, fits in ((outputs, False), (StructuredOutputsConfig(backend="pawl"), True)):
        params = SamplingParams(structured_outputs=StructuredOutputsParams(json=unnamed))
        arguments = SimpleNamespace(is_diffusion=False), config, Tokenizer()
        if fits:
            params._validate_structured_outputs(*arguments)
        else:
            with pytest.raises(VLLMValidationError, match="no value.*additional_properties=False"):
                params._validate_structured_outputs(*arguments)


def test_a_budget_that_no_output_fits_is_refused_where_outputs_are_closed(monkeypatch):
    from vllm.v1.engine.input_processor import InputProcessor

    class Spelling(Tokenizer):
        def encode(self, text, add_special_tokens=True):
            return list(text.encode()) + ([END] if add_special_tokens else [])

    monkeypatch.setattr(InputProcessor, "__init__", lambda self, vllm_config: None)
    plugin._patch_front_end()
    for close, budget, fits in ((True, 12, False), (True, 13, True), (False, 12, True)):
        outputs = StructuredOutputsConfig(backend="pawl")
        InputProcessor(SimpleNamespace(structured_outputs_config=outputs,
                                       additional_config={"pawl": {"close": close}}))
        params = SamplingParams(max_tokens=budget,
                                structured_outputs=StructuredOutputsParams(regex="a{12}b?"))
        arguments = SimpleNamespace(is_diffusion=False), outputs, Spelling()
        if fits:
            params._validate_structured_outputs(*arguments)
        else:
            with pytest.raises(VLLMValidationError, match="max_tokens: .* takes 13 tokens"):
                params._validate_structured_outputs(*arguments)


def test_other_backends_are_as_they_were():
    assert check({"regex": "ab*"}, "xgrammar") == "xgrammar"
    with pytest.raises(VLLMValidationError):
        params = SamplingParams(structured_outputs=StructuredOutputsParams(regex="a"))
        params.structured_outputs._backend = "guidance"
        params._validate_structured_outputs(SimpleNamespace(is_diffusion=False),
                                            StructuredOutputsConfig(backend="pawl"), Tokenizer())


def test_the_configuration_takes_the_name_and_both_options():
    chosen = StructuredOutputsConfig(backend="pawl", disable_any_whitespace=True,
                                     disable_additional_properties=True)
    assert chosen.backend == "pawl"
    for bad in ({"backend": "outlines", "disable_any_whitespace": True}, {"backend": "paul"}):
        with pytest.raises(ValueError):
            StructuredOutputsConfig(**bad)
    made = manager(disable_any_whitespace=True, disable_additional_properties=True)
    one = request(made, json={"type": "object", "properties": {"a": {}}})
    made.accept_tokens(one, spell("{"))
    assert {t for t in allowed(made.grammar_bitmask({"r": one}, ["r"], {})) if t < 256} == \
        {ord('"'), ord("}")}
    made.accept_tokens(one, spell('"'))
    assert {t for t in allowed(made.grammar_bitmask({"r": one}, ["r"], {})) if t < 256} == {97}


def test_options_of_schemas_for_the_engine():
    made = manager(extra={"pawl": {"max_string": 2, "whitespace": "compact"}})
    one = request(made, json={"type": "string"})
    made.accept_tokens(one, spell('"xy'))
    assert allowed(made.grammar_bitmask({"r": one}, ["r"], {})) == {ord('"')}


class EncodingTokenizer(Tokenizer):
    """Writes texts in the longest tokens."""

    def encode(self, text, add_special_tokens):
        assert add_special_tokens is False
        known = {name.replace("\u2581", " ").encode(): token for name, token in self.get_vocab().items()
                 if not name.startswith("<")}
        known.update({bytes([b]): b for b in range(256)})
        data, tokens = text.encode(), []
        while data:
            token = max((name for name in known if data.startswith(name)), key=len)
            tokens.append(known[token])
            data = data[len(token):]
        return tokens


def test_masks_of_likely_outputs_are_found_while_compiling():
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "string"}, "ab": {"enum": [12]}}})
    text = '{"a": "a", "ab": 12}'
    cold = plugin.backend_class()(config(extra={"pawl": {"prepare_bytes": 0}}), EncodingTokenizer(), 320)
    warm = plugin.backend_class()(config(), EncodingTokenizer(), 320)
    assert (cold.prepare_bytes, warm.prepare_bytes) == (0, plugin.PREPARE_BYTES)
    tokens = warm.tokenizer.encode(text, add_special_tokens=False)
    grammar = warm.compiler.json_schema(schema, **warm.options)
    assert grammar.specimens() == [text.encode()]
    assert plugin.prepare(grammar, warm.tokenizer, plugin.PREPARE_BYTES) == len(tokens) + 1
    assert plugin.prepare(grammar, warm.tokenizer, 0) == 0
    assert plugin.prepare(grammar, Tokenizer(), 600) == 0  # it has no encode
    # Once for a schema, however many requests there are.
    asked = []
    warm.tokenizer.encode = lambda *a, **n: asked.append(1) or EncodingTokenizer().encode(*a, **n)
    made = [warm.compile_grammar(Kind.JSON, schema) for _ in range(3)]
    assert len(asked) == 1
    other = cold.compile_grammar(Kind.JSON, schema)
    rows = cold.allocate_token_bitmask(2)
    for token in tokens:
        made[0].fill_bitmask(rows, 0)
        other.fill_bitmask(rows, 1)
        assert torch.equal(rows[0], rows[1])
        assert made[0].accept_tokens("r", [token]) and other.accept_tokens("r", [token])


def test_white_space_ends_by_itself():
    made = manager()
    one = request(made, json={"type": "array", "items": {"type": "integer"}})
    made.accept_tokens(one, spell("["))
    for steps in range(100):
        if ord(" ") not in allowed(made.grammar_bitmask({"r": one}, ["r"], {})):
            break
        made.accept_tokens(one, [ord(" ")])
    assert steps < 32


def test_taking_back_nothing_changes_nothing():
    backend = plugin.backend_class()(config(), Tokenizer(), 300)
    made = backend.compile_grammar(Kind.REGEX, "ab")
    assert made.accept_tokens("r", [ord("a"), ord("b"), END]) and made.is_terminated()
    for count in (0, -1):
        made.rollback(count)
        assert made.is_terminated()
    made.rollback(2)
    assert made.validate_tokens([ord("b"), END]) == [ord("b"), END]


def test_a_tokenizer_that_hands_out_its_bytes():
    class Plain:
        eos_token_id = 0

        def init_xgrammar(self):
            return SimpleNamespace(decoded_vocab=[b"", b'"', b"<0x22>"]), [0]

    backend = plugin.backend_class()(config(), Plain(), 8)
    made = backend.compile_grammar(Kind.REGEX, '"<0x22>')
    assert made.accept_tokens("r", [1, 2, 0]) and made.is_terminated()


def test_registering_twice_changes_nothing():
    before = host.StructuredOutputManager.grammar_init
    plugin.register()
    assert host.StructuredOutputManager.grammar_init is before


@pytest.mark.parametrize("name", ["grammar_init", "grammar_bitmask", "_get_constraint_bounds"])
def test_a_host_that_changed_is_an_error(monkeypatch, name):
    monkeypatch.setattr(host.StructuredOutputManager, name, lambda self, other: None)
    with pytest.raises(RuntimeError, match=f"{name} takes"):
        plugin._patch_manager()
    monkeypatch.delattr(host.StructuredOutputManager, name)
    with pytest.raises(RuntimeError, match="there is no"):
        plugin._patch_manager()


def test_a_front_end_that_changed_is_an_error(monkeypatch):
    from vllm.v1.engine.input_processor import InputProcessor

    monkeypatch.setattr(InputProcessor, "__init__", lambda self, config: None)
    with pytest.raises(RuntimeError, match="InputProcessor"):
        plugin._patch_front_end()


def test_kinds_of_requests_are_all_known():
    assert {kind.name for kind in Kind} == {
        "JSON", "JSON_OBJECT", "REGEX", "GRAMMAR", "CHOICE", "STRUCTURAL_TAG"}
    with pytest.raises(pawl.PawlError, match="OTHER"):
        plugin.compile_request(None, SimpleNamespace(name="OTHER"), "", {})
