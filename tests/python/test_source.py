"""Values that are copied from a text, from Python: which calls take the text, and what comes back."""

import asyncio
import typing

import pytest

import pawl

NAME = {"type": "object", "properties": {"a": {"type": "string", "x-pawl-source": "span"}}, "required": ["a"],
        "additionalProperties": False}
PLACE = "#/properties/a/x-pawl-source"
TAG = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": NAME}}
LARK = "start: %json " + str(NAME).replace("'", '"').replace("False", "false")


@pytest.fixture(scope="module")
def engine():
    with pawl.Engine(chat_template="{% for m in messages %}{{ m['content'] }}\n{% endfor %}") as engine:
        yield engine


def takes(grammar, text):
    matcher = pawl.Matcher(grammar)
    return matcher.accept_bytes(text) and matcher.accepting


def test_every_constraint_with_schemas_takes_a_source(engine):
    for given in ({"schema": NAME}, {"structural_tag": TAG}, {"grammar": LARK, "language": "lark"}):
        said = engine.generate("Name: ", source="Ann", max_tokens=60, whitespace="compact", **given).text
        assert said == '{"a":"Ann"}', given
        with pytest.raises(pawl.PawlError) as error:
            engine.generate("Name: ", max_tokens=60, **given)
        assert error.value.place.endswith("x-pawl-source")
        said = engine.chat([{"role": "user", "content": "Bo"}, {"role": "user", "content": "Ek"}], max_tokens=60,
                           whitespace="compact", **given).text
        assert said in ('{"a":"Bo"}', '{"a":"Ek"}'), given
    with pytest.raises(TypeError):
        engine.generate("Name: ", schema=NAME, source=7)
    for call in (lambda: engine.generate("Name: ", schema=NAME, source=""), lambda: engine.extract("Bo", NAME, source="")):
        with pytest.raises(pawl.PawlError) as error:
            call()
        assert error.value.place == PLACE
    for call in (lambda: engine.generate("a\ud800"), lambda: engine.generate("a", schema=NAME, source="a\ud800"),
                 lambda: engine.compiler.json_schema(NAME, bind_source=True).bind("a\ud800")):
        with pytest.raises(pawl.PawlError, match="lone surrogate"):
            call()


def test_spans_of_generate_and_chat(engine):
    source = "Zo\u00eb, Ann"
    for said in (engine.generate("Name: ", source=source, schema=NAME, max_tokens=60, details=True),
                 engine.chat([{"role": "user", "content": "Bo"}], source=source, schema=NAME, max_tokens=60, details=True)):
        begin, end = said.spans["/a"]
        assert source[begin:end] == said.value["a"]
        begin, end = said.byte_spans["/a"]
        assert source.encode()[begin:end].decode() == said.value["a"]


def test_grammars_that_wait(engine):
    for make in (lambda: engine.compiler.json_schema(NAME, bind_source=True, whitespace="compact"),
                 lambda: engine.compiler.structural_tag(TAG, bind_source=True, whitespace="compact"),
                 lambda: engine.compiler.grammar(LARK, "lark", bind_source=True, whitespace="compact")):
        waits = make()
        assert waits.unbound.endswith("x-pawl-source")
        for unbound in (waits, waits.infill('{"a":"', '"}'), waits.require_words("Ann"),
                        waits & engine.compiler.regex('\\{"a":"A[^"]*"\\}')):
            with pytest.raises(pawl.PawlError) as error:
                pawl.Matcher(unbound)
            assert error.value.place == waits.unbound
            bound = unbound.bind("Ann or Bo")
            assert bound.unbound == ""
            with pytest.raises(pawl.PawlError):
                bound.bind("Eve")
        bound = waits.bind("Ann or Bo")
        assert takes(bound, '{"a":"Bo"}') and takes(bound, '{"a":"Ann or"}') and not takes(bound, '{"a":"Eve"}')
    texts = engine.compiler.json_schema(NAME, bind_source=True, whitespace="compact").bind(b"Ann\xffBo")
    assert takes(texts, '{"a":"Bo"}') and not takes(texts, '{"a":"Ann Bo"}')
    with pytest.raises(pawl.PawlError):
        engine.compiler.json_schema(NAME, source="Ann").bind("Bo")


def test_details_come_with_every_extract(engine):
    class Receipt(typing.TypedDict):
        payer: typing.Annotated[str, pawl.Verbatim]
        total: typing.Annotated[typing.Optional[float], pawl.Verbatim]

    text = "Receipt: paid 30 EUR by Ann Lee"
    plain = engine.extract(text, Receipt)
    output = engine.extract(text, Receipt, details=True)
    assert output.value == plain and set(output.spans) == {"/payer", "/total"}
    begin, end = output.spans["/payer"]
    assert text[begin:end] == plain["payer"]
    assert [one.value for one in engine.extract([text], Receipt, details=True)] == [plain]
    assert [one.spans for one in engine.extract_iter([text], Receipt, details=True)] == [output.spans]
    assert asyncio.run(engine.aextract(text, Receipt, details=True)).probability == output.probability

    async def iterated():
        return [one.surprise async for one in engine.aextract_iter([text], Receipt, details=True)]

    assert asyncio.run(iterated()) == [output.surprise]
    whole = engine.extract(text, Receipt, details=True, document=True)
    assert whole.value == plain and whole.conflicts == {}


def test_long_texts_name_the_option(engine):
    with pytest.raises(pawl.PawlError) as error:
        engine.extract("Ann Lee pays. " * 4000, NAME)
    assert error.value.place == "text" and "document" in error.value.message


def test_values_of_the_text_are_preferred(engine):
    text, schema = "Zu 7 of Ulm", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                                   "required": ["a", "b"]}
    for seed in range(5):
        record = engine.extract(text, schema, prefer_text=1000, temperature=6, seed=seed)
        assert all(value in text for value in record.values())
    free = [engine.extract(text, schema, prefer_text=0, temperature=6, seed=seed) for seed in range(5)]
    assert any(value not in text for record in free for value in record.values())
    with pytest.raises(TypeError):
        engine.extract(text, schema, prefer_text="much")
    for wrong in (-1, 1001, float("nan")):
        with pytest.raises(pawl.PawlError) as error:
            engine.extract(text, schema, prefer_text=wrong)
        assert error.value.place == "prefer_text"
