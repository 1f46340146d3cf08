"""Outlines with a random model: JSON, regex, grammar, batches."""

import json
import re
from typing import Literal

import pytest

torch = pytest.importorskip("torch")
outlines = pytest.importorskip("outlines")
transformers = pytest.importorskip("transformers")

import pawl  # noqa: E402
import pawl.outlines  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocab = {piece: i for i, piece in enumerate(sorted(alphabet))}
    vocab["<end>"] = len(vocab)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>",
                                                pad_token="<end>")
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=264, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, eos_token_id=vocab["<end>"],
        pad_token_id=vocab["<end>"], bos_token_id=None)).eval()
    pawl.outlines.register(max_string=8)
    return outlines.from_transformers(llama, fast)


@pytest.mark.parametrize("kind, check", [
    (outlines.types.Regex("[0-9]{3}-[a-c]+x"), lambda t: re.fullmatch("[0-9]{3}-[a-c]+x", t)),
    (Literal["red", "green"], lambda t: t in ("red", "green")),
    (outlines.types.JsonSchema({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "boolean"}, "b": {"type": "string"}}}),
     lambda t: isinstance(json.loads(t)["a"], bool) and set(json.loads(t)) <= {"a", "b"}),
    (outlines.types.CFG('start: "<" ("a" | "b")~1..4 ">"'),
     lambda t: re.fullmatch("<[ab]{1,4}>", t)),
])
def test_every_kind(model, kind, check):
    generator = outlines.Generator(model, kind, backend="pawl")
    for prompt in ("a", "longer prompt"):  # one generator, several calls
        assert check(generator(prompt, max_new_tokens=200, do_sample=True, temperature=1.5))
    for text in generator.batch(["x", "yy y"], max_new_tokens=200, do_sample=True):
        assert check(text)


def test_beams(model):
    generator = outlines.Generator(model, outlines.types.Regex("[ab]{2,5}c"), backend="pawl")
    for text in generator("x", max_new_tokens=20, num_beams=3, num_return_sequences=2):
        assert re.fullmatch("[ab]{2,5}c", text)


def test_errors(model):
    never = {"type": "integer", "minimum": 5, "maximum": 4}
    with pytest.raises(pawl.PawlError, match="no value can ever fit"):
        outlines.Generator(model, outlines.types.JsonSchema(never), backend="pawl")
    backend = pawl.outlines.backend_for(model)
    with pytest.raises(NotImplementedError, match="white space"):
        backend.get_json_schema_logits_processor("{}", "[ ]{7}")
    with pytest.raises(ValueError):
        outlines.Generator(model, outlines.types.Regex("a"), backend="none of these")
