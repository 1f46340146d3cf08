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
