"""pawl.Engine with the model that ships: the same outputs as the command's, and every way to ask."""

import asyncio
import codecs
import dataclasses
import datetime
import enum
import json
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import typing

import pytest

import pawl

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas" / "examples"
CONTACT = json.loads((SCHEMAS / "contact.json").read_text())
TEXTS = [
    "Ann Lee works at Harrow Ltd. Phone: 020 7946 0018.",
    "Write to Bo Ek at bo.ek@harrow.com.",
    "Zoë Ångström, buyer at Café Noir in Zürich, zoe@noir.ch",
    "Please call Mr Tan on +65 6123 4567 about the order.",
]
needs_command = pytest.mark.skipif("PAWL_COMMAND" not in os.environ, reason="PAWL_COMMAND is not set")


@pytest.fixture(scope="module")
def engine():
    with pawl.Engine() as engine:
        yield engine


def command(*arguments, **options):
    done = subprocess.run([os.environ["PAWL_COMMAND"], *map(str, arguments)], capture_output=True,
                          timeout=60, **options)
    return done


def test_details_of_records():
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "kind": {"enum": ["x", "y"]}},
              "required": ["name", "kind"]}
    with pawl.Engine() as engine:
        plain = engine.extract_outputs("Zoë Lee, 7", schema)
        assert plain.spans == plain.probability == plain.alternatives == {}
        output = engine.extract_outputs("Zoë Lee, 7", schema, details=True)
    assert output.text == plain.text
    assert set(output.probability) == set(output.surprise) == {"/name", "/kind"}
    assert 0 < output.probability["/name"] <= 1
    for pointer, (begin, end) in output.spans.items():
        name_begin, name_end = output.byte_spans[pointer]
        assert "Zoë Lee, 7".encode()[name_begin:name_end].decode() == "Zoë Lee, 7"[begin:end]
    assert {one["value"] for one in output.alternatives["/kind"]} == {"x", "y"}
    assert sum(one["probability"] for one in output.alternatives["/kind"]) == pytest.approx(1)


def test_documents():
    text = "".join(f"Zoë Lee pays {10 + i} EUR.\n\n" for i in range(20))
    schema = {"type": "object", "required": ["paid"], "properties": {
        "paid": {"type": "array", "items": {"type": "number", "x-pawl-source": "span"}, "minItems": 1}}}
    with pawl.Engine() as engine:
        output = engine.extract_outputs(text, schema, document=True, chunk_tokens=40, passes=2)
        for pointer, (begin, end) in output.spans.items():
            name_begin, name_end = output.byte_spans[pointer]
            assert text.encode()[name_begin:name_end].decode() == text[begin:end]
            assert float(text[begin:end]) == output.value["paid"][int(pointer.rsplit("/")[-1])]
        assert len(output.spans) > 3 and output.conflicts == {} and output.alternatives == {}
        short = engine.extract_outputs("Bo pays 7 EUR", schema)
        assert engine.extract("Bo pays 7 EUR", schema, document=True) == short.value
        for options, place in (({"chunk_tokens": 40}, "chunk_tokens"), ({"document": True, "passes": 17}, "passes"),
                               ({"document": True, "max_retries": 1}, "max_retries"),
                               ({"document": True, "stop": "x"}, "stops")):
            with pytest.raises(pawl.PawlError) as error:
                engine.extract(text, schema, **options)
            assert error.value.place == place


@needs_command
@pytest.mark.parametrize("options", [
    {},
    {"temperature": 1.5, "seed": 7},
    {"temperature": 5, "max_tokens": 110},
    {"whitespace": "bounded", "order": "any", "temperature": 0.7, "top_k": 20},
    {"max_string": 5, "ascii": True},
    {"draft": "auto", "temperature": 1, "seed": 3},
    {"contrast": 0.5},
    {"contrast": "auto", "temperature": 1, "seed": 3},
])
def test_extract_is_what_the_command_writes(options):
    engine_options = {name: options.pop(name) for name in ("draft",) if name in options}
    arguments = []
    for name, value in {**options, **engine_options}.items():
        arguments += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
    lines = "".join(json.dumps(text) + "\n" for text in TEXTS)
    done = command("extract", "--schema", SCHEMAS / "contact.json", "--json-lines", *arguments,
                   input=lines.encode())
    wanted = done.stdout.decode().splitlines()
    with pawl.Engine(**engine_options) as engine:
        outputs = engine.extract_outputs(TEXTS, CONTACT, **options)
        # White space that would break a line of the command is a space there.
        assert [output.text.translate({10: " ", 13: " "}) for output in outputs] == wanted
        assert engine.extract(TEXTS, SCHEMAS / "contact.json", **options) == list(map(json.loads, wanted))
        # Alone, each is what it is among others.
        assert [engine.extract(text, CONTACT, **options) for text in TEXTS] == list(map(json.loads, wanted))


@needs_command
@pytest.mark.parametrize("options", [
    {"choice": ["red", "green", "blue"]},
    {"regex": r"\+[1-9][0-9]{1,2} [0-9]{3}-[0-9]{4}"},
    {"grammar": ROOT / "grammar" / "examples" / "sql.ebnf", "max_tokens": 60},
    {},
])
def test_generate_is_what_the_command_writes(engine, options):
    options = {"temperature": 1, "seed": 11, "max_tokens": 40, **options}
    arguments = []
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            arguments += ["--" + name.replace("_", "-"), str(one)]
    done = command("generate", "--prompt", "A colour: ", *arguments)
    assert engine.generate("A colour: ", **options).text + "\n" == done.stdout.decode("utf-8", "replace")


def test_reports(engine):
    output = engine.generate("Once ", max_tokens=12)
    assert (output.finish_reason, output.closed, output.stop) == ("length", False, None)
    assert len(output.tokens) == output.report["output_tokens"] == output.report["sampled_tokens"] == 12
    assert engine.decode(output.tokens) == output.text
    forced = engine.generate("Once ", regex="abcdefgh")
    assert forced.finish_reason == "stop" and forced.report["forced_tokens"] == len(forced.tokens)
    closed = engine.generate("Once ", regex="a[a-z ]*z", max_tokens=10)
    assert closed.notes == [] == forced.notes
    assert closed.closed and closed.finish_reason == "length" and closed.report["closing_tokens"] > 0


def test_streams_are_the_output_in_pieces(engine):
    for seed in range(4):
        options = dict(max_tokens=60, temperature=3, seed=seed)
        stream = engine.stream("Once ", **options)
        pieces = list(stream)
        assert all(pieces) and "".join(pieces) == stream.output.text
        assert stream.output.text == engine.generate("Once ", **options).text


def test_stop_texts(engine):
    options = dict(max_tokens=80, temperature=2, seed=5)
    whole = engine.generate("Once ", **options).text
    for begin in range(3, len(whole) - 6, 7):
        stop = whole[begin:begin + 3]
        output = engine.generate("Once ", stop=["never there", stop], **options)
        assert output.text == whole[:whole.find(stop)]
        assert (output.finish_reason, output.stop) == ("stop", stop)
        assert "".join(engine.stream("Once ", stop=stop, **options)) == output.text
    with pytest.raises(pawl.PawlError, match="stop: must not be empty"):
        engine.generate("Once ", stop="")


def test_a_stream_that_is_left_ends(engine):
    with engine.stream("Once ", max_tokens=4000) as stream:
        next(stream)
    assert stream.output.finish_reason == "cancelled"
    assert len(stream.output.tokens) < 4000


@dataclasses.dataclass
class Place:
    city: typing.Optional[str]
    visits: int = 1


class Kind(enum.Enum):
    PERSON = "person"
    COMPANY = "company"


class Note(typing.TypedDict):
    kind: Kind
    day: datetime.date
    places: typing.List[Place]


def test_dataclasses_and_typed_dicts(engine):
    place = engine.extract(TEXTS[2], Place, temperature=1)
    assert isinstance(place, Place) and isinstance(place.visits, int)
    for note in engine.extract(TEXTS[:2], Note, temperature=1.5, seed=3, max_tokens=300):
        assert isinstance(note["kind"], Kind) and isinstance(note["day"], datetime.date)
        assert all(isinstance(place, Place) for place in note["places"])


def test_pydantic(engine):
    pydantic = pytest.importorskip("pydantic")

    class Contact(pydantic.BaseModel):
        name: str
        email: typing.Optional[str]
        tags: typing.List[typing.Literal["a", "b"]] = []

    records = engine.extract(TEXTS, Contact, max_tokens=60)
    assert all(isinstance(record, Contact) for record in records) and len(records) == len(TEXTS)
    assert engine.generate("Ann: ", schema=Contact, max_tokens=60).value.name is not None
    assert isinstance(engine.extract(TEXTS[0], pydantic.TypeAdapter(typing.List[Contact]), max_tokens=60),
                      list)
    assert asyncio.run(engine.aextract(TEXTS, Contact, max_tokens=60)) == records


OPEN = {"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"},
                                         "phone": {"type": ["string", "null"]}}, "required": ["name"]}


def test_extract_invents_no_key_and_asks_for_each(engine):
    records = engine.extract(TEXTS * 3, OPEN, temperature=2, seed=5, max_tokens=300)
    assert all(set(record) <= {"name", "email", "phone"} and "phone" in record for record in records)
    open_ = engine.extract(TEXTS * 3, OPEN, temperature=2, seed=5, max_tokens=300, additional_properties=True,
                           keys="required")
    assert any(set(record) - {"name", "email", "phone"} for record in open_)
    # null means "not there" where the schema does not take it; a stream has the same record.
    outputs = engine.extract_outputs(TEXTS, OPEN)
    for output in outputs:
        written = b"".join(engine.vocabulary.bytes(token) for token in output.tokens).decode()
        assert set(json.loads(written)) == {"name", "email", "phone"}
        assert json.loads(output.text).get("email", "") is not None
        assert output.text == engine.compiler.json_schema(
            json.dumps(OPEN), whitespace="compact", additional_properties=False, keys="all",
            max_string=256).record(written)
    with engine.stream("Ann: ", schema=OPEN, keys="all", additional_properties=False) as stream:
        assert "".join(stream) == stream.output.text
    dropped = engine.extract(TEXTS, OPEN, nulls="drop")
    assert all(None not in record.values() for record in dropped)


def test_what_nothing_fits_closed_is_read_as_it_stands(engine):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"], "maxProperties": 2}
    assert "b" in engine.extract(TEXTS[0], schema, max_tokens=200)
    with pytest.raises(pawl.PawlError):
        engine.extract(TEXTS[0], schema, additional_properties=False)


def test_instruction_and_examples(engine):
    # The prompt of the model that ships has no place for them.
    with pytest.raises(pawl.PawlError, match="no {instruction}"):
        engine.extract(TEXTS[0], OPEN, instruction="Find the person.")
    with pytest.raises(pawl.PawlError, match="no {examples}"):
        engine.extract(TEXTS[0], OPEN, examples=[("Ann", {"name": "Ann"})])
    with pytest.raises(pawl.PawlError, match="does not fit the schema"):
        engine.extract(TEXTS[0], OPEN, examples=[{"text": "Ann", "record": {"name": 1}}])
    with pytest.raises(pawl.PawlError, match="schema_view"):
        engine.extract(TEXTS[0], OPEN, schema_view="all")
    with pytest.raises(TypeError, match="there is no option instruction"):
        engine.generate("a", instruction="b")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The model that ships, asked by Pawl's own prompt, which has places for all that is shown."""
    folder = tmp_path_factory.mktemp("plain")
    shipped = pathlib.Path(pawl._paths.shipped_model())
    for file in shipped.iterdir():
        if file.is_file() and file.name != "pawl.json":
            shutil.copy(file, folder)
    with pawl.Engine(folder, threads=2) as engine:
        yield engine


CHOICE = {"type": "object", "properties": {"a": {"enum": ["x", "y", "z"]}}, "required": ["a"]}
WARM = {"temperature": 5, "seed": 1}


def test_a_refused_record_is_tried_again(plain, engine):
    firsts = {one.extract("Bo", CHOICE, **WARM)["a"] for one in (plain, engine)}
    other = next(letter for letter in "xyz" if letter not in firsts)
    asked = []

    def wants(record):
        asked.append(record["a"])
        assert record["a"] == other, f"must be {other}"

    for one in (plain, engine):
        output = one.extract_outputs("Bo", CHOICE, check=wants, max_retries=80, **WARM)
        tries = output.report["tries"]
        assert output.value == {"a": other} and tries["first"]["calls"] == 1
        assert tries["retries"]["calls"] >= 1
    # The record and the error are in the prompt, where it has a place for them.
    tries = plain.extract_outputs("Bo", CHOICE, check=wants, max_retries=80, **WARM).report["tries"]
    assert tries["retries"]["prompt_tokens"] > tries["retries"]["calls"] * tries["first"]["prompt_tokens"]
    with pytest.raises(AssertionError, match="must be"):
        plain.extract("Bo", CHOICE, check=[lambda record: True, wants], **WARM)
    with pytest.raises(pawl.PawlError, match="never"):
        plain.extract("Bo", CHOICE, check=lambda record: "never", max_retries=2)
    rows = plain.extract(["Bo", "Al"], CHOICE, check=lambda record: record["a"] == "none", errors="return")
    assert all(isinstance(row, pawl.PawlError) and row.place.startswith("texts[") for row in rows)
    # A mistake in the check itself is no verdict.
    with pytest.raises(KeyError):
        plain.extract("Bo", CHOICE, check=lambda record: record["none"], max_retries=2)
    with pytest.raises(TypeError, match="max_retries"):
        plain.extract("Bo", CHOICE, max_retries="2")
    with pytest.raises(TypeError, match="check must be a function"):
        plain.extract("Bo", CHOICE, check="regex:a")

    async def many():
        one = await plain.aextract("Bo", CHOICE, check=wants, max_retries=80, **WARM)
        several = [record async for record in plain.aextract_iter(["Al", "Cy"], CHOICE, check=wants, max_retries=80, **WARM)]
        return [one, *several, *await plain.aextract(["Di"], CHOICE, check=wants, max_retries=80, **WARM)]

    assert asyncio.run(many()) == [{"a": other}] * 4


def test_validators_of_pydantic_are_checks(plain):
    pydantic = pytest.importorskip("pydantic")
    first = plain.extract("Bo", CHOICE, **WARM)["a"]

    class Choice(pydantic.BaseModel):
        a: typing.Literal["x", "y", "z"]

        @pydantic.field_validator("a")
        @classmethod
        def other(cls, value):
            if value == first:
                raise ValueError("is the wrong letter")
            return value

    with pytest.raises(pydantic.ValidationError, match="is the wrong letter"):
        plain.extract("Bo", Choice, **WARM)
    assert plain.extract("Bo", Choice, max_retries=80, **WARM).a != first


def test_settings_of_a_model(tmp_path, engine):
    assert engine.extract_defaults["keys"] == ("all", "default")
    for file in pathlib.Path(pawl._paths.shipped_model()).iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    (tmp_path / "pawl.json").write_text('{"extract": {"keys": "required", "separators": [", ", ": "], "schema_view": "none"}}')
    with pawl.Engine(tmp_path, threads=2, settings=tmp_path / "none") as own:
        assert own.extract_defaults["keys"] == ("required", "pawl.json")
        assert own.extract_outputs("Bo", CHOICE).text.startswith('{"a": ')
        assert own.extract_outputs("Bo", CHOICE, whitespace="compact").text.startswith('{"a":"')


def test_why_an_output_was_closed(engine):
    output = engine.extract_outputs(TEXTS[0], CONTACT, max_tokens=110)
    assert output.closed == (output.closed_by is not None)
    closed = engine.generate("a", regex="[ab]{500}", max_tokens=520, close_repetition=True)
    assert closed.closed_by in (None, "repetition") and closed.closed == (closed.closed_by is not None)
    assert engine.generate("a", regex="a*", max_tokens=5, logit_bias={}).closed_by in (None, "budget")


def test_rows_that_fail(engine):
    rows = engine.extract([TEXTS[0], "", TEXTS[1], None, "\ud800"], CONTACT, errors="return")
    assert [type(row) for row in rows] == [dict, pawl.PawlError, dict, pawl.PawlError, pawl.PawlError]
    assert str(rows[1]) == "texts[1]: is empty"
    assert "texts[3]: a text must be a str, not NoneType" == str(rows[3])
    assert rows[4].place == "texts[4]"
    with pytest.raises(pawl.PawlError, match=r"texts\[1\]: holds only white space"):
        engine.extract([TEXTS[0], "  \n"], CONTACT)
    assert engine.extract([], CONTACT) == [] and engine.generate([]) == []
    for texts in (None, 5, {"text": "a"}):
        with pytest.raises(TypeError, match="texts must be a str or several, not "):
            engine.extract(texts, CONTACT)
    with pytest.raises(TypeError, match="schema must be a type or a JSON Schema, not None"):
        engine.extract(TEXTS[0], None)
    with pytest.raises(pawl.PawlError, match="text: has [0-9]+ tokens, but the model's context"):
        engine.extract("word " * 5_000, CONTACT)
    with pytest.raises(pawl.PawlError, match="not UTF-8 at byte 3"):
        engine.extract(b"abc\xff", CONTACT)
    with pytest.raises(TypeError, match=r"texts\[0\]: a text must be a str, not int"):
        engine.extract([3], CONTACT)


@pytest.mark.parametrize("options, error, message", [
    ({"tempreature": 1}, TypeError, "there is no option tempreature; is temperature meant?"),
    ({"temperature": "hot"}, TypeError, "temperature must be a number"),
    ({"temperature": -1}, pawl.PawlError, "temperature: "),
    ({"seed": -1}, TypeError, "seed must be an int from 0"),
    ({"max_tokens": 0}, pawl.PawlError, "max_tokens: "),
    ({"regex": "(", "max_tokens": 5}, pawl.PawlError, "byte "),
    ({"regex": "a", "choice": ["a"]}, pawl.PawlError, "choice: is a second constraint next to regex"),
    ({"schema": {"type": "integer", "minimum": "18"}}, pawl.PawlError, "#/minimum: must be a number"),
    ({"schema": "{"}, pawl.PawlError, ""),
    ({"schema": {"type": {1}}}, TypeError, ""),
    ({"schema": pathlib.Path("no/such.json")}, pawl.PawlError, "no/such.json: No such file"),
    ({"schema": {}, "whitespace": "some"}, pawl.PawlError, "whitespace must be one of"),
    ({"at_budget": "explode"}, pawl.PawlError, "at_budget: must be one of"),
    ({"grammar": 'root ::= "a"'}, pawl.PawlError, "language: must say"),
])
def test_bad_options(engine, options, error, message):
    with pytest.raises(error) as raised:
        engine.generate("Once ", **options)
    assert message in str(raised.value)


def test_contrast_of_records(engine):
    plain = engine.extract(TEXTS, CONTACT)
    assert [engine.extract(TEXTS, CONTACT, contrast=none) for none in (0, None)] == [plain, plain]
    output = engine.extract_outputs(TEXTS[0], CONTACT, contrast=1)
    assert output.tokens and output.finish_reason == "stop"
    for options, place in [({"contrast": "much"}, None), ({"contrast": True}, None), ({"contrast": 1e9}, "contrast"),
                           ({"contrast": 1, "logprobs": 1}, "logprobs"), ({"contrast": 1, "stop": "x"}, "stop"),
                           ({"contrast": 1, "free_first": 9}, "free_first"), ({"contrast": 1, "details": True}, "details"),
                           ({"contrast": 1, "prefer_text": 2}, "prefer_text")]:
        with pytest.raises(TypeError if place is None else pawl.PawlError) as raised:
            engine.extract(TEXTS[0], CONTACT, **options)
        assert place is None or raised.value.place == place
    with pytest.raises(TypeError, match="no option contrast"):
        engine.generate("a", contrast=1)


def test_free_text_first(engine):
    output = engine.generate("Ann is 7. ", regex="[a-c]{3}", free_first=9, max_tokens=80)
    assert len(output.text) == 3 and output.reasoning
    assert engine.generate("a", regex="[a-c]{3}", free_first=0).text == engine.generate("a", regex="[a-c]{3}").text
    record = engine.extract_outputs(TEXTS[0], CONTACT, free_first=12)
    assert set(record.value) == set(engine.extract(TEXTS[0], CONTACT)) and record.reasoning
    for options in [{"free_first": 9}, {"free_first": -1, "regex": "a"}]:
        with pytest.raises(pawl.PawlError) as raised:
            engine.generate("a", **options)
        assert raised.value.place == "free_first"


def test_bad_models(tmp_path):
    with pytest.raises(pawl.PawlError, match="no/such"):
        pawl.Engine("no/such")
    with pytest.raises(pawl.PawlError, match=str(tmp_path)):
        pawl.Engine(tmp_path)
    with pytest.raises(pawl.PawlError, match="batch: must be from 1"):
        pawl.Engine(batch=0)
    with pytest.raises(pawl.PawlError, match="model: is empty"):
        pawl.Engine("")
    with pytest.raises(pawl.PawlError, match='draft_text: needs draft="auto", or text among'):
        pawl.Engine(draft="suffix", draft_text="a.txt")
    with pytest.raises(TypeError, match="model must be a path, not int"):
        pawl.Engine(7)
    with pytest.raises(pawl.PawlError, match="dtype: must be one of .*not \"int3\""):
        pawl.Engine(dtype="int3")
    with pytest.raises(pawl.PawlError, match="sources|draft"):
        pawl.Engine(draft="telepathy")
    with pytest.raises(pawl.PawlError, match="draft_verify: there is no rule"):
        pawl.Engine(draft="auto", draft_verify="luck")
    with pytest.raises(pawl.PawlError, match="draft_shape: must be heap, or delayed:D,K"):
        pawl.Engine(draft="auto", draft_shape="delayed:1")
    closed = pawl.Engine()
    closed.close()
    closed.close()
    with pytest.raises(pawl.PawlError, match="the engine is closed"):
        closed.generate("Once ")


def test_a_schema_that_is_a_path_in_a_str(engine):
    with pytest.raises(pawl.PawlError, match="pathlib.Path"):
        engine.extract(TEXTS[0], str(SCHEMAS / "contact.json"))


def test_asyncio(engine):
    wanted = engine.extract(TEXTS, CONTACT)

    async def source():
        for text in TEXTS:
            await asyncio.sleep(0)
            yield text

    async def run():
        assert await asyncio.gather(*(engine.aextract(text, CONTACT) for text in TEXTS)) == wanted
        assert await engine.aextract(TEXTS, CONTACT) == wanted
        assert [r async for r in engine.aextract_iter(source(), CONTACT)] == wanted
        assert [r async for r in engine.aextract_iter(TEXTS, CONTACT, ahead=1)] == wanted
        one = await engine.agenerate("Once ", max_tokens=9)
        async with engine.astream("Once ", max_tokens=9) as stream:
            assert "".join([piece async for piece in stream]) == one.text == stream.output.text
        with pytest.raises(pawl.PawlError, match=r"texts\[1\]: is empty"):
            await engine.aextract(["a", ""], CONTACT)
        rows = await engine.aextract(["a", ""], CONTACT, errors="return")
        assert isinstance(rows[1], pawl.PawlError)

    asyncio.run(run())


def test_records_come_while_texts_are_waited_for(engine):
    async def run():
        given = asyncio.Event()

        async def source():
            yield TEXTS[0]
            await given.wait()
            yield TEXTS[1]

        records = engine.aextract_iter(source(), CONTACT)
        first = await asyncio.wait_for(records.__anext__(), 30)
        given.set()
        second = await asyncio.wait_for(records.__anext__(), 30)
        assert [first, second] == engine.extract(TEXTS[:2], CONTACT)
        await records.aclose()

    asyncio.run(run())


def test_a_cancelled_task_ends_its_generation(engine):
    async def run():
        task = asyncio.ensure_future(engine.agenerate("Once ", max_tokens=4000))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    # What comes next does not wait for it.
    assert engine.generate("Once ", max_tokens=1).report["output_tokens"] == 1


def test_iterators_read_ahead_with_a_bound(engine):
    read = []

    def source():
        for i in range(40):
            read.append(i)
            yield TEXTS[i % len(TEXTS)]

    records = engine.extract_iter(source(), CONTACT, ahead=4)
    first = next(records)
    assert first == engine.extract(TEXTS[0], CONTACT) and len(read) <= 5
    assert len(list(records)) == 39

    def broken():
        yield TEXTS[0]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(engine.extract_iter(broken(), CONTACT))


def test_threads_share_an_engine(engine):
    wanted = engine.extract(TEXTS, CONTACT)
    found = [None] * len(TEXTS)

    def work(i):
        found[i] = engine.extract(TEXTS[i], CONTACT)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(TEXTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted


_INTERRUPTED = """
import os, signal, threading, time
import pawl

# A shell's background jobs begin with SIGINT ignored, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)
engine = pawl.Engine()
engine.generate("Once ", max_tokens=2)
def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
for way in (lambda: engine.generate("Once ", max_tokens=4000, temperature=2),
            lambda: list(engine.stream("Once ", max_tokens=4000, temperature=2)),
            lambda: engine.generate(["Once "] * 30, max_tokens=4000, temperature=2)):
    threading.Thread(target=interrupt).start()
    try:
        while True:
            way()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print(engine.generate("Once ", max_tokens=3).report["output_tokens"])
"""


def test_ctrl_c_ends_a_generation():
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, timeout=60)
    assert done.stdout.decode().split() == ["interrupted"] * 3 + ["3"], done.stderr.decode()


def test_an_engine_travels_to_other_processes_and_not_through_forks(engine):
    again = pickle.loads(pickle.dumps(engine))
    assert again.extract(TEXTS[0], CONTACT) == engine.extract(TEXTS[0], CONTACT)
    again.close()
    script = ("import os, pawl\nengine = pawl.Engine()\nengine.generate('Once ', max_tokens=2)\n"
              "pid = os.fork()\n"
              "if pid == 0:\n"
              "    try:\n        engine.generate('Once ')\n"
              "    except pawl.PawlError as error:\n        print(error, flush=True)\n"
              "    raise SystemExit(5)\n"
              "assert os.waitpid(pid, 0)[1] == 5 << 8\n"
              "assert engine.generate('Once ', max_tokens=3).tokens\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, timeout=60)
    assert b"does not survive a fork" in done.stdout and done.returncode == 0, done.stderr.decode()


def test_tokens_biases_and_logprobs(engine):
    tokens = engine.encode("Once ")
    assert engine.decode(tokens) == "Once "
    first = engine.generate("Once ", max_tokens=1, logprobs=3)
    token, logprob, top = first.logprobs[0]
    assert token == first.tokens[0] and len(top) == 3 and top[0] == (token, logprob)
    other = engine.generate("Once ", max_tokens=1, logit_bias={token: -100.0})
    assert other.tokens[0] == top[1][0]


def test_a_compiled_grammar_may_be_used_again(engine):
    grammar = engine.compiler.lark('start: "a" /[a-z]{3}/') if hasattr(engine.compiler, "lark") else \
        engine.compiler.grammar('start: "a" /[a-z]{3}/', "lark")
    texts = {engine.generate("Once ", grammar=grammar, temperature=3, seed=s).text for s in range(8)}
    assert len(texts) > 1 and all(text[0] == "a" and len(text) == 4 for text in texts)
    stranger = pawl.Compiler(pawl.Vocabulary([b"a", b"<e>"], [1], [1])).regex("a+")
    with pytest.raises(pawl.PawlError, match="grammar: was compiled for another vocabulary"):
        engine.generate("Once ", grammar=stranger)


def test_captures(engine):
    grammar = engine.compiler.grammar('start: "<" word ">"\nword[capture]: /[a-z]{2,4}/', "lark")
    output = engine.generate("Once ", grammar=grammar, temperature=2)
    (name, begin, end, text), = output.captures
    assert (name, text) == ("word", output.text[1:-1].encode()) and (begin, end) == (1, len(output.text) - 1)


def test_values_of_outputs_that_are_none(engine):
    with pytest.raises(pawl.PawlError, match="not asked to be JSON"):
        engine.generate("Once ", max_tokens=1).value
    cut = engine.generate("Once ", schema=CONTACT, max_tokens=3, at_budget="cut")
    assert cut.finish_reason == "length" and not cut.closed
    with pytest.raises(pawl.PawlError, match="was cut"):
        cut.value
    with pytest.raises(pawl.PawlError, match="max_tokens|grammar"):
        engine.generate("Once ", schema=CONTACT, max_tokens=3)


CHAT = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"


def test_chat():
    with pawl.Engine(chat_template=CHAT) as engine:
        assert engine.info.has_chat_template
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Far?"}]
        # A template writes the beginning itself, so the prompt is tokens and not a text.
        laid_out = engine.encode("system: Be brief.\nuser: Far?\nassistant:")
        plain = engine.generate(laid_out, max_tokens=8)
        said = engine.chat(messages, max_tokens=8)
        assert said.text == plain.text
        assert [o.text for o in engine.chat([messages, messages], max_tokens=8)] == [plain.text] * 2
        assert "".join(engine.stream(messages, max_tokens=8)) == plain.text
        assert asyncio.run(engine.achat(messages, max_tokens=8)).text == plain.text
        assert engine.chat("Far?", choice=["yes", "no"]).text in ("yes", "no")
        with pytest.raises(pawl.PawlError, match="messages: there are none"):
            engine.chat([])
        with pytest.raises(pawl.PawlError, match="role"):
            engine.chat([{"content": "Far?"}])
    with pytest.raises(pawl.PawlError, match="chat_template"):
        pawl.Engine(chat_template="{% for %}")


def test_thinking():
    deaf = ("{% for m in messages %}{{ m.content }}\n{% endfor %}"
            "{% if false %}</think>{% endif %}<think>\n")
    with pawl.Engine(chat_template=deaf) as engine:
        options = {"regex": "(yes|no)!", "temperature": 1.2, "seed": 3, "max_tokens": 200}
        for thinking in (9, "auto"):
            output = engine.chat("Far?", thinking=thinking, **options)
            assert output.text in ("yes!", "no!")
            assert output.reasoning and "think>" not in output.reasoning
            assert output.report["reasoning_tokens"] >= 9
        assert engine.chat("Far?", **options).reasoning
        for thinking in ("off", 0, False):
            output = engine.chat("Far?", thinking=thinking, **options)
            assert output.text in ("yes!", "no!") and output.reasoning == ""
        with engine.stream([{"role": "user", "content": "Far?"}], thinking=9, **options) as stream:
            assert "".join(stream) in ("yes!", "no!")
            assert stream.output.reasoning
        output = engine.extract_outputs([TEXTS[0]], CONTACT)[0]
        assert output.reasoning == "" and output.value["name"]
        with pytest.raises(pawl.PawlError, match="thinking"):
            engine.chat("Far?", thinking="much")
        with pytest.raises(pawl.PawlError, match="thinking"):
            engine.generate("Far?", thinking=5)
    marked = "{% for m in messages %}{{ m.content }}\n{% endfor %}(("
    with pawl.Engine(chat_template=marked, reasoning_marks=("((", "))")) as engine:
        output = engine.chat("Far?", thinking=5, regex="[a-z]{3}", temperature=1.2)
        assert output.reasoning and len(output.text) == 3


def test_a_chat_without_a_template_says_so(engine):
    with pytest.raises(pawl.PawlError, match="no chat template"):
        engine.chat("Is it far?")


def test_progress(engine, capsys):
    pytest.importorskip("tqdm")
    engine.extract(TEXTS, CONTACT, progress=True)
    shown = capsys.readouterr().err
    assert "extract" in shown and "4/4" in shown
    engine.extract(TEXTS, CONTACT)
    assert capsys.readouterr().err == ""


def test_rules_of_rejection_keep_greedy_outputs(engine):
    with pawl.Engine(draft="auto", draft_verify="traversal", draft_shape="delayed:1,2") as drafting:
        assert (drafting.extract(TEXTS[0], CONTACT, temperature=0)
                == engine.extract(TEXTS[0], CONTACT, temperature=0))


def test_drafts_change_nothing_and_are_kept(tmp_path, engine):
    history = tmp_path / "history"
    wanted = engine.extract(TEXTS, CONTACT, temperature=1)
    with pawl.Engine(draft="auto", draft_history=history) as drafting:
        outputs = drafting.extract_outputs(TEXTS, CONTACT, temperature=1)
        assert [output.value for output in outputs] == wanted
        # How many are drafted depends on the time that calls take.
        assert all(output.report["drafts"]["accepted"] <= output.report["drafts"]["rows"] for output in outputs)
    assert history.stat().st_size > 0


_DAEMON = """
import asyncio, threading
import pawl

engine = pawl.Engine()
begun = threading.Event()

def stream():
    for piece in engine.stream("Once ", max_tokens=4000, temperature=2, seed=1):
        begun.set()

def generate():
    engine.generate("Once ", max_tokens=2)
    begun.set()
    while True:
        engine.generate("Once ", max_tokens=20, temperature=2)

def batches():
    begun.set()
    while True:
        engine.generate(["Once "] * 4, max_tokens=20, temperature=2, progress=False)

async def astream():
    async for piece in engine.astream("Once ", max_tokens=4000, temperature=2, seed=1):
        begun.set()

threading.Thread(target=WORK, daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize("work", ["stream", "generate", "batches", "lambda: asyncio.run(astream())"])
def test_the_end_of_the_interpreter_is_no_error_of_daemon_threads(work):
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", _DAEMON.replace("WORK", work)], capture_output=True,
                              timeout=60)
        assert done.stderr.decode() == "" and done.returncode == 0


def test_import_is_quick_and_light():
    # numpy comes with the first mask, not with the package.
    script = ("import sys, pawl\n"
              "heavy = {'numpy', 'torch', 'transformers', 'pydantic', 'tqdm', 'vllm', 'ray'}\n"
              "print(sorted(heavy & set(sys.modules)))\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.stdout.decode().strip() == "[]", done.stderr.decode()


def test_the_command_is_found(tmp_path):
    if not os.path.exists(os.path.join(os.path.dirname(pawl.__file__), "bin", "pawl")):
        pytest.skip("the command is not in this package")
    done = subprocess.run([sys.executable, "-m", "pawl", "--version"], capture_output=True, timeout=60)
    assert done.stdout.decode().startswith("pawl ") and done.returncode == 0


def test_options_of_diffusion_models(engine):
    with pawl.Engine(ROOT / "models" / "tiny-extract-diffusion", threads=1) as filler:
        schema = {"type": "object", "properties": {"name": {"type": "string", "x-pawl-source": "span"}}, "required": ["name"]}
        found = filler.extract_outputs("Ann Lee works at Halden Glass.", schema, max_tokens=30, details=True)
        assert found.probability == {"/name": None} and found.surprise == {"/name": None} and "/name" in found.spans

        def made(**diffusion):
            return filler.generate("Ann Lee, ", regex="[a-z]{4,8}, [a-z]{2,6}", max_tokens=24, diffusion=diffusion)

        steps = made()
        assert made(schedule="stepwise").text == made(schedule="ssd").text == steps.text
        assert made(cache="prefix", kv_refresh=1).text == steps.text
        assert made(threshold=0).report["forward_calls"] < steps.report["forward_calls"]
        assert made(prefix="ann", gaps=[", ", ""], gap_tokens=8).text.partition(", ")[1] == ", "
        for diffusion, place in [({"stepz": 1}, "diffusion.stepz"), ({"steps": 0}, "diffusion.steps"),
                                 ({"steps": 4, "threshold": 0.5}, "diffusion.steps"), ({"cache": "all"}, "diffusion.cache")]:
            with pytest.raises(pawl.PawlError) as error:
                made(**diffusion)
            assert error.value.place == place
        for refused in ({"mirostat": 2}, {"logprobs": 1}, {"top_k": 3}):
            with pytest.raises(pawl.PawlError) as error:
                filler.generate("a", max_tokens=4, **refused)
            assert error.value.place in refused
    with pytest.raises(pawl.PawlError) as error:
        engine.generate("a", max_tokens=4, diffusion={"alg_temp": 0.5})
    assert error.value.place == "diffusion.alg_temp"
    with pytest.raises(pawl.PawlError, match="draft: means nothing"):
        pawl.Engine(ROOT / "models" / "tiny-extract-diffusion", draft="lookahead")
