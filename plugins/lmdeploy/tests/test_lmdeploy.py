"""LMDeploy's own manager of guided decoding over Pawl: a request of each kind, and the forks that its
speculation makes."""

import asyncio
import json

import pytest

torch = pytest.importorskip("torch")
guided = pytest.importorskip("lmdeploy.pytorch.engine.guided_process")

import pawl.lmdeploy as plugin  # noqa: E402

plugin.register()
plugin.register()

from lmdeploy import _guided_decoding as checks  # noqa: E402
from lmdeploy.pytorch.spec_decode.guided_spec_helper import GuidedSpecHelper  # noqa: E402

END = 256


@pytest.fixture(scope="module")
def manager():
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate(alphabet)}
    vocab["<end>"] = END
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    made = guided.GuidedDecodingManager(fast, None)
    made.spell = lambda text: fast.encode(text, add_special_tokens=False)
    return made


FORMATS = [
    ({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "integer"}}}, "12"),
    ({"type": "regex_schema", "regex_schema": "ab*c"}, "abbc"),
    ({"type": "json_object"}, '{"a":1}'),
    ({"type": "structural_tag", "format": {"type": "const_string", "value": "hi"}}, "hi"),
]


@pytest.mark.parametrize("at, form, text", [(i, *f) for i, f in enumerate(FORMATS)])
def test_every_kind(manager, at, form, text):
    checks._check_response_format(json.dumps(form))
    processor = manager.get_processor(at, 0, form)
    for token in manager.spell(text) + [END]:
        mask = manager.allocate_batched_bitmap(1)
        manager.fill_bitmap(processor, mask, 0)
        logits = torch.zeros(1, 257)
        manager.apply_batched_bitmap(logits, mask)
        assert torch.isfinite(logits[0, token])
        manager.accept_token(processor, token)
    assert manager.is_terminated(processor)
    manager.remove_processor(at)


def test_speculation_forks_and_leaves_the_matcher_alone(manager):
    helper = GuidedSpecHelper(manager)
    processor = manager.get_processor(9, 0, {"type": "regex_schema", "regex_schema": "abcd"})
    scores = torch.zeros(1, 4, 257)
    draft = torch.tensor([manager.spell("abc")])
    asyncio.run(helper.apply_serial_bitmask(scores, {0: processor}, draft, 3))
    for position, letter in enumerate("abcd"):
        finite = torch.isfinite(scores[0, position]).nonzero().flatten().tolist()
        assert finite == manager.spell(letter)
    mask = manager.allocate_batched_bitmap(1)
    manager.fill_bitmap(processor, mask, 0)
    logits = torch.zeros(1, 257)
    manager.apply_batched_bitmap(logits, mask)
    assert torch.isfinite(logits[0]).nonzero().flatten().tolist() == manager.spell("a")


def test_errors_name_the_place():
    with pytest.raises(Exception, match="minLength"):
        checks._check_response_format(json.dumps(
            {"type": "json_schema", "json_schema": {"schema": {"minLength": "x"}}}))
