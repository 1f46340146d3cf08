"""`extract(sampler=...)`: records that keep the model's distribution, given the checks. The command is the oracle:
PAWL_COMMAND, or pawl in PATH."""
import asyncio
import collections
import json
import os
import shutil
import subprocess
import typing

import pytest

pytest.importorskip("pawl.sampling", reason="this build has no models")
import pawl  # noqa: E402

COMMAND = os.environ.get("PAWL_COMMAND") or shutil.which("pawl")
CHOICE = {"type": "object", "properties": {"a": {"enum": ["x", "y", "z"]}}, "required": ["a"]}
PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "city": {"type": ["string", "null"]}},
          "required": ["name", "city"]}
TEXT = "Ann Lee lives in Porto."


@pytest.fixture(scope="module")
def engine():
    with pawl.Engine(threads=2) as one:
        yield one


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("check", [[], ["regex:[^0-9]*"]])
def test_records_are_those_of_the_command(engine, tmp_path, seed, check):
    if COMMAND is None:
        pytest.skip("no pawl command: set PAWL_COMMAND")
    schema = tmp_path / "person.json"
    schema.write_text(json.dumps(PERSON))
    words = [word for one in check for word in ("--check", one)]
    done = subprocess.run([COMMAND, "extract", "--model", engine.path, "--schema", str(schema), "--text", TEXT, "--sampler", "smc",
                           "--seed", str(seed), *words], capture_output=True, check=True)
    output = engine.extract_outputs(TEXT, PERSON, sampler="smc", seed=seed, check=check)
    assert output.text == done.stdout.decode().rstrip("\n") and output.finish_reason == "stop"


def test_checks_are_those_of_the_sampler(engine):
    pydantic = pytest.importorskip("pydantic")
    asked = []

    class Choice(pydantic.BaseModel):
        a: typing.Literal["x", "y", "z"]

        @pydantic.field_validator("a")
        @classmethod
        def not_x(cls, value):
            asked.append(value)
            if value == "x":
                raise ValueError("x is no value")
            return value

    def not_y(record):
        assert record.a != "y", "y is no value"

    # All draws pass, whatever the model thinks of the value; rejected ones are not tried again by retries.
    for seed in range(8):
        assert engine.extract("Bo", Choice, sampler="cars", attempts=400, check=not_y, seed=seed).a == "z"
    assert {"x", "y"} & set(asked)
    # Without checks the shares are the model's.
    free = collections.Counter(engine.extract("Bo", CHOICE, sampler="gcd", seed=seed, temperature=8)["a"]
                               for seed in range(30))
    assert len(free) > 1


def test_refused_draws_are_tried_again(engine):
    def never(record):
        raise ValueError(f"{record['a']} is wrong")

    with pytest.raises(ValueError, match="is wrong"):
        engine.extract("Bo", CHOICE, sampler="smc", check=never, max_retries=2)
    seen = []

    def third(record):
        seen.append(record["a"])
        assert len(seen) > 2, "too early"

    output = engine.extract_outputs("Bo", CHOICE, sampler="gcd", check=third, max_retries=9)
    assert output.report["tries"]["retries"]["calls"] >= 1 and output.report["log_weight"] <= 0
    with pytest.raises(KeyError):  # a mistake in the check is no verdict
        engine.extract("Bo", CHOICE, sampler="smc", check=lambda record: record["none"], max_retries=2)

    async def several():
        one = await engine.aextract("Bo", CHOICE, sampler="smc", seed=1)
        return [one, *await engine.aextract(["Bo", "Bo"], CHOICE, sampler="smc", seed=1)]

    assert asyncio.run(several()) == [engine.extract("Bo", CHOICE, sampler="smc", seed=1)] * 3


@pytest.mark.parametrize("options, place", [
    ({"sampler": "best"}, "sampler"), ({"fidelity": "most", "sampler": None}, "fidelity"),
    ({"sampler": "smc", "fidelity": "exact"}, "fidelity"), ({"sampler": "smc", "particles": 0}, "particles"),
    ({"sampler": "smc", "n": 2}, "n"), ({"sampler": "smc", "top_k": 3}, "top_k"),
    ({"sampler": "smc", "details": True}, "details"), ({"sampler": "smc", "document": True}, "document"),
    ({"sampler": "smc", "contrast": 1}, "contrast"), ({"sampler": "smc", "temperature": -1.0}, "temperature"),
    ({"sampler": "smc", "stop": "x"}, "stop"), ({"particles": 3}, "particles"),
    ({"sampler": "smc", "check": "regex:(", }, "check"), ({"sampler": "smc", "max_tokens": 0}, "max_tokens"),
    ({"sampler": "smc", "check_timeout": 0, "check": "regex:a"}, "check_timeout")])
def test_bad_values_name_the_argument(engine, options, place):
    with pytest.raises(pawl.PawlError) as error:
        engine.extract("Bo", CHOICE, **options)
    assert place in error.value.place, str(error.value)


def test_wrong_types_and_empty_texts(engine):
    for options, name in [({"sampler": 3}, "sampler"), ({"sampler": "smc", "particles": "5"}, "particles"),
                          ({"sampler": "smc", "check": 3}, "check")]:
        with pytest.raises(TypeError, match=name):
            engine.extract("Bo", CHOICE, **options)
    rows = engine.extract(["Bo", " "], CHOICE, sampler="smc", errors="return")
    assert rows[0]["a"] in "xyz" and rows[1].place == "texts[1]"


@pytest.mark.parametrize("option", ["temperature", "max_tokens", "prefer_text", "seed"])
def test_true_is_no_number(engine, option):
    with pytest.raises(TypeError, match=f"{option} must be a"):
        engine.extract(TEXT, PERSON, **{option: True})
