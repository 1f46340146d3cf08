"""The samplers of pawl.transformers.decode against a law that is added up string by string."""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import pawl  # noqa: E402
from pawl.transformers import SamplerStats, decode  # noqa: E402

PAD, ZERO, ONE, END = range(4)
PROMPT = [ONE, ZERO]


@pytest.fixture(scope="module")
def compiler():
    return pawl.Compiler(pawl.Vocabulary([b"<pad>", b"0", b"1", b"<end>"], [PAD, END], [END]))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(4)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=4, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.6,
        bos_token_id=None, eos_token_id=END, pad_token_id=PAD)).eval()


def law_of(model, strings, temperature=1.0):
    """P of each string with its end, by the model run over the whole of it."""
    law = {}
    for text in strings:
        tokens = [ZERO + int(c) for c in text] + [END]
        with torch.no_grad():
            logits = model(torch.tensor([PROMPT + tokens])).logits[0].double() / temperature
        rows = torch.log_softmax(logits, -1)
        law[text] = math.exp(sum(float(rows[len(PROMPT) - 1 + i, t]) for i, t in enumerate(tokens)))
    return law


STRINGS = ["00000"] + ["1" + "".join(s) for s in itertools.product("01", repeat=4)]
REGEX = "00000|1[01]{4}"


def text_of(tokens):
    return "".join(str(t - ZERO) for t in tokens if t in (ZERO, ONE))


def sample(model, grammar, **options):
    stats = SamplerStats()
    options.setdefault("seed", 1)
    temperature = options.pop("temperature", None)
    more = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {}
    rows = model.generate(torch.tensor([PROMPT]), max_new_tokens=options.pop("most", 10),
                          eos_token_id=END, pad_token_id=PAD, custom_generate=decode,
                          grammar=grammar, stats=stats, **more, **options)
    assert rows.shape[0] == len(stats.outputs)
    for row, output in zip(rows.tolist(), stats.outputs):
        assert row[:2] == PROMPT and row[2:2 + len(output.tokens)] == output.tokens
        assert set(row[2 + len(output.tokens):]) <= {PAD}
    return stats


def no_two_ones_at_the_end(tokens, ended):
    """Says no late: only a whole output shows it."""
    return not (ended and tokens[-2:] == [ONE, ONE])


def valid_law(model, check, temperature=1.0):
    law = law_of(model, STRINGS, temperature)
    return {t: p for t, p in law.items() if not (check and t.endswith("11"))}


@pytest.mark.parametrize("sampler", ["gcd", "awrs", "smc", "asap", "cars"])
@pytest.mark.parametrize("check", [None, no_two_ones_at_the_end])
def test_weights_are_unbiased_and_outputs_of_cars_have_the_law(compiler, model, sampler, check):
    law = valid_law(model, check)
    mass = sum(law.values())
    n = 2000 if sampler == "cars" else 800
    stats = sample(model, compiler.regex(REGEX), sampler=sampler, n=n, check=check, particles=20)
    outputs = stats.outputs
    assert len(outputs) == n
    weights = np.array([math.exp(o.log_weight) for o in outputs])
    texts = [text_of(o.tokens) for o in outputs]
    for output, text in zip(outputs, texts):
        if output.valid:
            assert math.isclose(output.log_probability, math.log(law[text]), abs_tol=1e-4)
    if sampler == "cars":
        assert (weights == 1).all()
        expected = {t: p / mass for t, p in law.items()}
    else:
        expected = law
    # Each string's mean weight, within five standard errors; with particles these are over populations.
    group = 20 if sampler == "smc" else 1
    for text in law:
        each = np.array([w if t == text else 0.0 for w, t in zip(weights, texts)])
        each = each.reshape(-1, group).mean(1)
        # A string that is rare may not have come at all: its own error is then unknown.
        error = max(each.std() / math.sqrt(len(each)), math.sqrt(expected[text] * mass / n), 1e-9)
        assert abs(each.mean() - expected[text]) < 5 * error, (text, each.mean(), expected[text])
    if check:
        assert stats.evaluations > 0


def test_masks_alone_bend_the_law_and_cars_costs_less_as_it_learns(compiler, model):
    law = valid_law(model, None)
    mass = sum(law.values())

    def distance(outputs):
        texts = [text_of(o.tokens) for o in outputs]
        return sum(abs(texts.count(t) / len(texts) - p / mass) for t, p in law.items()) / 2
    bent = distance(sample(model, compiler.regex(REGEX), sampler="gcd", n=1000).outputs)
    exact = sample(model, compiler.regex(REGEX), sampler="cars", n=1000)
    assert distance(exact.outputs) < 0.08 and bent > 2 * distance(exact.outputs)
    assert exact.calls < 100  # rows are found once
    assert exact.attempts < 2000


def test_a_trie_without_memory_bends_nothing(compiler, model):
    law = valid_law(model, no_two_ones_at_the_end)
    mass = sum(law.values())
    stats = sample(model, compiler.regex(REGEX), sampler="cars", n=300, oracle_bytes=900,
                   check=no_two_ones_at_the_end)
    texts = [text_of(o.tokens) for o in stats.outputs]
    for text, p in law.items():
        assert abs(texts.count(text) / 300 - p / mass) < 5 * math.sqrt(p / mass / 300) + 0.01


def test_temperature_is_part_of_the_law_and_seeds_repeat(compiler, model):
    grammar = compiler.regex(REGEX)
    law = law_of(model, STRINGS, 0.5)
    one = sample(model, grammar, sampler="cars", n=5, temperature=0.5, seed=9)
    for output in one.outputs:
        assert math.isclose(output.log_probability, math.log(law[text_of(output.tokens)]), abs_tol=1e-4)
    two = sample(model, grammar, sampler="cars", n=5, temperature=0.5, seed=9)
    assert [o.tokens for o in one.outputs] == [o.tokens for o in two.outputs]


def test_fidelities(compiler, model):
    grammar = compiler.regex(REGEX)
    for fidelity in ("fast", "aligned", "exact"):
        stats = sample(model, grammar, fidelity=fidelity, n=3)
        assert stats.reached == fidelity and all(o.valid for o in stats.outputs)
    # Attempts that do not suffice fall back.
    stats = sample(model, grammar, fidelity="exact", n=1, attempts=1, seed=3,
                   check=lambda tokens, ended: not ended or tokens == [ZERO] * 5)
    assert stats.reached == "aligned"


def test_the_budget_and_what_cannot_be(compiler, model):
    # Of 1, 10, 100, ... only what ends within three tokens is valid.
    grammar = compiler.regex("10*")
    for sampler in ("gcd", "awrs", "smc", "asap", "cars"):
        outputs = sample(model, grammar, sampler=sampler, n=40, most=3, particles=4).outputs
        assert all(o.tokens[-1] == END and len(o.tokens) <= 3 for o in outputs if o.valid)
        assert {text_of(o.tokens) for o in outputs if o.valid} <= {"1", "10"}
        outputs = sample(model, grammar, sampler=sampler, n=2, particles=2,
                         check=lambda tokens, ended: False).outputs
        assert not any(o.valid for o in outputs)


def test_wrong_arguments_are_named(compiler, model):
    grammar = compiler.regex("1")
    for message, options in [("no sampler 'x'", {"sampler": "x"}), ("no fidelity", {"fidelity": "best"}),
                             ("cannot be given with", {"fidelity": "fast", "sampler": "smc"}),
                             ("at least 1", {"sampler": "smc", "particles": 0}),
                             ("a check answers", {"sampler": "awrs", "check": lambda t, e: "maybe"})]:
        with pytest.raises(ValueError, match=message):
            sample(model, grammar, **options)
    with pytest.raises(ValueError, match="need a sampler"):
        model.generate(torch.tensor([PROMPT]), max_new_tokens=4, custom_generate=decode,
                       grammar=grammar, n=2)
    with pytest.raises(ValueError, match="TopKLogitsWarper would make another"):
        model.generate(torch.tensor([PROMPT]), max_new_tokens=4, custom_generate=decode, do_sample=True,
                       top_k=2, grammar=grammar, sampler="cars")
