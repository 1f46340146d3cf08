"""The logits processor on scores as generate hands them over, and under generate itself."""

import pytest

torch = pytest.importorskip("torch")

import pawl  # noqa: E402
from pawl.transformers import LogitsProcessor  # noqa: E402

TOKENS = [b"<pad>", b"a", b"b", b"1", b"<end>"]
PAD, A, B, ONE, END = range(5)


@pytest.fixture(scope="module")
def compiler():
    return pawl.Compiler(pawl.Vocabulary(TOKENS, [PAD, END], [END]))


def allowed(scores):
    return [[i for i, score in enumerate(row.tolist()) if score != float("-inf")] for row in scores]


def test_rows_left_padding_and_the_end(compiler):
    processor = LogitsProcessor(compiler.regex("ab?1"))
    prompts = torch.tensor([[PAD, PAD, B], [ONE, A, A]])  # prompts are not read
    assert allowed(processor(prompts, torch.zeros(2, 5))) == [[A], [A]]
    ids = torch.cat([prompts, torch.tensor([[A], [A]])], 1)
    assert allowed(processor(ids, torch.zeros(2, 5))) == [[B, ONE], [B, ONE]]
    ids = torch.cat([ids, torch.tensor([[ONE], [B]])], 1)
    assert allowed(processor(ids, torch.zeros(2, 5))) == [[END], [ONE]]
    ids = torch.cat([ids, torch.tensor([[END], [ONE]])], 1)
    # The first row has ended: its scores stay, generate pads it.
    assert allowed(processor(ids, torch.zeros(2, 5))) == [[0, 1, 2, 3, 4], [END]]
    ids = torch.cat([ids, torch.tensor([[PAD], [END]])], 1)
    assert allowed(processor(ids, torch.zeros(2, 5))) == [[0, 1, 2, 3, 4]] * 2


def test_beams_may_be_reordered_and_dropped(compiler):
    processor = LogitsProcessor(compiler.choice(["aab", "ab1", "b11"]))
    prompt = torch.tensor([[ONE]] * 3)
    processor(prompt, torch.zeros(3, 5))
    one = torch.tensor([[ONE, A], [ONE, B], [ONE, A]])
    assert allowed(processor(one, torch.zeros(3, 5))) == [[A, B], [ONE], [A, B]]
    two = torch.tensor([[ONE, B, ONE], [ONE, A, B], [ONE, A, A]])  # another order
    assert allowed(processor(two, torch.zeros(3, 5))) == [[ONE], [ONE], [B]]
    three = torch.tensor([[ONE, A, A, B], [ONE, A, A, B], [ONE, B, ONE, ONE]])
    assert allowed(processor(three, torch.zeros(3, 5))) == [[END]] * 3


def test_a_second_generate_begins_anew(compiler):
    processor = LogitsProcessor(compiler.choice(["aab"]))
    assert allowed(processor(torch.tensor([[ONE]]), torch.zeros(1, 5))) == [[A]]
    assert allowed(processor(torch.tensor([[ONE, A]]), torch.zeros(1, 5))) == [[A]]
    # A longer prompt, one that begins like the output before, a shorter one, and the same again.
    for prompt in ([B, B, B, B], [ONE, A, A, B], [B], [B]):
        assert allowed(processor(torch.tensor([prompt]), torch.zeros(1, 5))) == [[A]]
        assert allowed(processor(torch.tensor([prompt + [A]]), torch.zeros(1, 5))) == [[A]]
    fixed = LogitsProcessor(compiler.choice(["aab"]), prompt_length=1)
    fixed(torch.tensor([[ONE]]), torch.zeros(1, 5))
    with pytest.raises(ValueError, match="prompt_length"):
        fixed(torch.tensor([[B, B, B]]), torch.zeros(1, 5))


def test_cut_back_as_assisted_generation_does(compiler):
    processor = LogitsProcessor(compiler.choice(["aab", "ab1"]))
    processor(torch.tensor([[ONE]]), torch.zeros(1, 5))
    for row in ([ONE, A], [ONE, A, A], [ONE, A, A, B]):  # a draft
        processor(torch.tensor([row]), torch.zeros(1, 5))
    assert allowed(processor(torch.tensor([[ONE, A, B]]), torch.zeros(1, 5))) == [[ONE]]


def test_a_forced_token_that_does_not_fit_ends_the_row(compiler):
    processor = LogitsProcessor(compiler.choice(["aab"]))
    processor(torch.tensor([[ONE], [ONE]]), torch.zeros(2, 5))
    scores = processor(torch.tensor([[ONE, B], [ONE, A]]), torch.zeros(2, 5))
    assert allowed(scores) == [[END], [A]]
    scores = processor(torch.tensor([[ONE, B, END], [ONE, A, A]]), torch.zeros(2, 5))
    assert allowed(scores) == [[END], [B]]


def test_widths_that_differ(compiler):
    wide = LogitsProcessor(compiler.choice(["a"]))
    assert allowed(wide(torch.tensor([[A]]), torch.zeros(1, 70))) == [[A]]
    narrow = LogitsProcessor(compiler.choice(["a"]))
    assert allowed(narrow(torch.tensor([[A]]), torch.zeros(1, 3))) == [[A]]


def test_a_grammar_for_each_prompt(compiler):
    processor = LogitsProcessor([compiler.choice(["a"]), None, compiler.choice(["b"])])
    scores = processor(torch.zeros(6, 1, dtype=torch.long), torch.zeros(6, 5))
    every = [0, 1, 2, 3, 4]
    assert allowed(scores) == [[A], [A], every, every, [B], [B]]
    with pytest.raises(ValueError):
        processor(torch.zeros(4, 1, dtype=torch.long), torch.zeros(4, 5))


@pytest.mark.parametrize("arguments", [
    {"do_sample": True}, {"num_beams": 3}, {"num_beams": 4, "num_return_sequences": 4}])
def test_generate(compiler, arguments):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=9, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, pad_token_id=PAD, bos_token_id=None,
        eos_token_id=END))
    prompts = torch.tensor([[PAD, A], [B, A]])
    output = model.generate(
        prompts, attention_mask=(prompts != PAD).long(), max_new_tokens=12, pad_token_id=PAD,
        eos_token_id=END, logits_processor=[LogitsProcessor(compiler.regex("(ab|1){2,4}"))],
        **arguments)
    grammar = compiler.regex("(ab|1){2,4}")
    for row in output[:, 2:].tolist():
        row = row[: row.index(END) + 1]
        matcher = pawl.Matcher(grammar)
        assert all(matcher.accept(token) for token in row) and matcher.terminated


# ---- With a random model ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=9, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, pad_token_id=PAD, bos_token_id=None,
        eos_token_id=END)).eval()


def fits(grammar, row):
    matcher = pawl.Matcher(grammar)
    row = row[: row.index(END) + 1] if END in row else row
    return all(matcher.accept(token) for token in row) and matcher.terminated


def test_one_processor_for_two_calls_of_generate(compiler, model):
    grammar = compiler.regex("(ab|1){2,4}")
    processor = LogitsProcessor(grammar)
    for prompt in ([[A, B]], [[B, ONE, A]], [[A, B]]):
        prompt = torch.tensor(prompt)
        output = model.generate(prompt, max_new_tokens=12, do_sample=True, eos_token_id=END,
                                pad_token_id=PAD, logits_processor=[processor])
        assert fits(grammar, output[0, prompt.shape[1]:].tolist())


def test_the_budget_closes_the_output(compiler, model):
    grammar = compiler.regex("1(ab|1)*bb")
    for budget in (6, 30, 60):
        output = model.generate(torch.tensor([[A]]), max_new_tokens=budget, do_sample=True,
                                eos_token_id=END, pad_token_id=PAD, temperature=1.5,
                                logits_processor=[LogitsProcessor(grammar, max_new_tokens=budget)])
        assert fits(grammar, output[0, 1:].tolist())


def test_assisted_generation(compiler, model):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    assistant = transformers.LlamaForCausalLM(model.config).eval()
    grammar = compiler.regex("(ab|1){6,9}")
    plain = model.generate(torch.tensor([[A, B]]), max_new_tokens=20, do_sample=False,
                           eos_token_id=END, pad_token_id=PAD,
                           logits_processor=[LogitsProcessor(grammar)])
    assisted = model.generate(torch.tensor([[A, B]]), max_new_tokens=20, do_sample=False,
                              eos_token_id=END, pad_token_id=PAD, assistant_model=assistant,
                              logits_processor=[LogitsProcessor(grammar)])
    assert fits(grammar, assisted[0, 2:].tolist())
    assert assisted.tolist() == plain.tolist()


def test_continuous_batching(compiler, model):
    transformers = pytest.importorskip("transformers")
    from pawl.transformers import generate_batch

    grammars = [compiler.regex("(ab|1){2,4}"), None, compiler.choice(["bb1", "a"])] * 3
    config = transformers.GenerationConfig(do_sample=True, eos_token_id=END, pad_token_id=PAD,
                                           temperature=1.5)
    results = generate_batch(model, [[A, B], [B], [ONE, A, A]] * 3, grammars, max_new_tokens=12,
                             generation_config=config)
    for grammar, result in zip(grammars, results):
        assert result.error is None
        assert grammar is None or fits(grammar, result.generated_tokens)


def test_states_of_requests_are_found_again(compiler):
    from pawl.transformers import _States

    states = _States()
    grammar = compiler.choice(["aab", "ab1"])
    states.begin_step()
    assert states.by_id == {}
    first = states.state_of("x", grammar, (A,))
    assert states.by_id[first].allowed_tokens() == [A, B]
    states.forget_all_but([])  # it was away for a step
    states.begin_step()
    second = states.state_of("x", grammar, (A, B))
    assert states.by_id[second].allowed_tokens() == [ONE]
    states.begin_step()
    assert states.state_of("x", grammar, (A, B, ONE, END)) == states.FREE
    with pytest.raises(ValueError, match="does not fit"):
        states.state_of("y", grammar, (ONE,))


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_decode_writes_the_same_with_and_without_drafts(compiler, model, seed):
    from pawl.transformers import DecodeStats, decode

    grammar = compiler.regex("(ab|1){2}bbbb(ab1|ba){3,9}1")
    outputs = []
    for drafts in (0, 1, 4, 8):
        stats = DecodeStats()
        output = model.generate(torch.tensor([[A, B]]), max_new_tokens=60, eos_token_id=END,
                                pad_token_id=PAD, do_sample=seed is not None,
                                custom_generate=decode, grammar=grammar, seed=seed,
                                draft_tokens=drafts, stats=stats)
        assert fits(grammar, output[0, 2:].tolist())
        assert stats.tokens == output.shape[1] - 2
        assert stats.calls < stats.tokens if drafts else stats.calls == stats.tokens
        outputs.append(output.tolist())
    assert all(output == outputs[0] for output in outputs)


def test_decode_says_what_it_cannot(compiler, model):
    from pawl.transformers import decode

    with pytest.raises(ValueError, match="one sequence"):
        model.generate(torch.tensor([[A], [B]]), max_new_tokens=4, eos_token_id=END,
                       pad_token_id=PAD, custom_generate=decode, grammar=compiler.regex("a"))
    with pytest.raises(ValueError, match="needs grammar="):
        model.generate(torch.tensor([[A]]), max_new_tokens=4, eos_token_id=END, pad_token_id=PAD,
                       custom_generate=decode)
