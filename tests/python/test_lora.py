"""LoRA adapters of an engine: calls name them, and one engine has several."""

import json
import pathlib
import pickle

import pytest

import pawl

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTACT = json.loads((ROOT / "schemas/examples/contact.json").read_text())
TEXTS = ["Ann Lee works at Harrow Ltd. Phone: 020 7946 0018."]


def test_adapters(tmp_path):
    folder = ROOT / "tests/data/lora/tiny-extract"
    with pawl.Engine(lora={"mine": folder}) as engine, pawl.Engine() as plain:
        assert list(engine.info.lora) == ["mine"] and list(plain.info.lora) == []
        asked = dict(max_tokens=8, temperature=1, seed=5)
        base = plain.generate("Ann Lee, ", **asked).tokens
        assert engine.generate("Ann Lee, ", **asked).tokens == base
        assert engine.generate("Ann Lee, ", lora="mine", **asked).tokens != base
        assert engine.score("Ann", text=" Lee", lora="mine") != engine.score("Ann", text=" Lee") == plain.score(
            "Ann", text=" Lee")
        record = engine.extract_outputs(TEXTS[0], CONTACT, lora="mine")
        assert json.loads(record.text).keys() == plain.extract_outputs(TEXTS[0], CONTACT).value.keys()
        samples = engine.sample("Ann", sampler="smc", n=2, particles=2, regex="[a-z]{1,3}", lora="mine")
        assert len(samples) == 2 and samples.effective_size >= 1 and samples.timed_out is False
        engine.search("Ann", strategy="beam", num_beams=2, max_tokens=4, regex="[a-z]{1,3}", lora="mine")
        with pytest.raises(pawl.PawlError, match="it has mine") as error:
            engine.generate("Ann", lora="yours")
        assert error.value.place == "lora"
        with pytest.raises(TypeError):
            engine.generate("Ann", lora=7)
        copy = pickle.loads(pickle.dumps(engine))
        assert copy.generate("Ann Lee, ", lora="mine", **asked).tokens == engine.generate(
            "Ann Lee, ", lora="mine", **asked).tokens
        copy.close()
    with pawl.Engine(lora=folder) as engine:
        assert list(engine.info.lora) == ["tiny-extract"]
    with pytest.raises(pawl.PawlError, match="adapter_config.json"):
        pawl.Engine(lora=tmp_path)
    with pytest.raises(TypeError):
        pawl.Engine(lora=7)
