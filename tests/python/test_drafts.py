"""Drafts of pawl.Engine: draft models."""

import json
import pathlib
import shutil

import pytest

import pawl

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTACT = json.loads((ROOT / "schemas/examples/contact.json").read_text())
TEXT = "Ann Lee works at Harrow Ltd. Phone: 020 7946 0018."


def test_one_and_two_draft_models(tmp_path):
    with pawl.Engine() as engine:
        path, expected = engine.path, engine.extract(TEXT, CONTACT, temperature=1)
    copy = shutil.copytree(path, tmp_path / "copy")
    for models in ([path, copy], (copy,), copy, str(copy)):
        with pawl.Engine(draft="model", draft_model=models) as drafting:
            assert drafting.extract(TEXT, CONTACT, temperature=1) == expected
    with pytest.raises(pawl.PawlError, match="draft_model: must be given at most twice, not 3"):
        pawl.Engine(draft="auto", draft_model=[path] * 3)
    with pytest.raises(pawl.PawlError, match="draft_model: is given twice"):
        pawl.Engine(draft="auto", draft_model=[path] * 2)


def test_a_block_that_is_not_there():
    with pytest.raises(pawl.PawlError, match='the source "mtp" needs a block for several tokens'):
        pawl.Engine(draft="mtp")


def test_drafts_are_on_by_default():
    with pawl.Engine() as engine, pawl.Engine(draft="off") as plain:
        on, off = (e.extract_outputs(TEXT, CONTACT, temperature=1) for e in (engine, plain))
        assert on.value == off.value and on.tokens == off.tokens
        assert "suffix" in on.report["drafts"]["sources"]
        assert off.report["drafts"]["sources"] == {}
        without = engine.extract_outputs(TEXT, CONTACT, temperature=1, drafts=False)
        assert without.value == off.value and without.report["drafts"]["rows"] == 0
