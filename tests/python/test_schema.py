import dataclasses
import decimal
import enum
import json
import re
import typing
from typing import Dict, List, Literal, Optional, Tuple, TypedDict, Union

import pytest

import pawl


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclasses.dataclass
class Node:
    name: str
    color: Color
    weight: float = 1.0
    children: "List[Node]" = dataclasses.field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: int


class Extra(Movie, total=False):
    tags: List[str]


def accepts(type_, value):
    # Every byte a token.
    vocabulary = pawl.Vocabulary([bytes([byte]) for byte in range(256)])
    matcher = pawl.Matcher(pawl.Compiler(vocabulary).json_schema(type_, order="any"))
    text = value if isinstance(value, str) else json.dumps(value)
    return matcher.accept_bytes(text) and matcher.accepting


@pytest.mark.parametrize("type_, good, bad", [
    (int, [1, -3], ["x", 1.5]),
    (Optional[str], ["x", None], [1]),
    (Union[int, bool], [1, True], ["x"]),
    (Literal["a", 1, None], ['"a"', 1, None], ['"b"', 2]),
    (List[int], [[], [1, 2]], [["a"], {}]),
    (Tuple[int, str], [[1, "a"]], [[1], ["a", 1], [1, "a", 2]]),
    (Tuple[int, ...], [[], [1, 2]], [["a"]]),
    (Dict[str, int], [{}, {"a": 1}], [{"a": "b"}]),
    (Dict[int, int], [{"1": 1}], [{"a": 1}]),
    (Color, ['"red"'], ['"blue"']),
    (Movie, [{"title": "x", "year": 1}], [{"title": "x"}, {"title": "x", "year": 1, "z": 1}]),
    (Extra, [{"title": "x", "year": 1}, {"title": "x", "year": 1, "tags": ["a"]}],
     [{"year": 1, "tags": []}]),
    (Node, [{"name": "a", "color": "red"},
            {"name": "a", "color": "red", "children": [{"name": "b", "color": "green"}]}],
     [{"name": "a"}, {"name": "a", "color": "red", "children": [{"name": "b"}]}]),
    (typing.Any, [1, {}, "\"x\""], []),
])
def test_types(type_, good, bad):
    for value in good:
        assert accepts(type_, '"x"' if value == "x" else value), value
    for value in bad:
        assert not accepts(type_, '"x"' if value == "x" else value), value


def test_no_schema():
    with pytest.raises(pawl.PawlError) as caught:
        pawl.schema_of(List[complex])
    assert caught.value.code == "unsupported"


def test_pydantic():
    pydantic = pytest.importorskip("pydantic")

    class Item(pydantic.BaseModel):
        price: float = pydantic.Field(gt=0)
        color: Color

    class Order(pydantic.BaseModel):
        items: List[Item]

    assert accepts(Order, {"items": [{"price": 1.5, "color": "red"}]})
    assert not accepts(Order, {"items": [{"price": -1.5, "color": "red"}]})

    @dataclasses.dataclass
    class Holder:
        order: Order

    assert accepts(Holder, {"order": {"items": []}})
    assert accepts(typing.Annotated[int, pydantic.Field(ge=3)], 3)
    assert not accepts(typing.Annotated[int, pydantic.Field(ge=3)], 2)


def test_the_text_of_a_decimal_is_a_number():
    pydantic = pytest.importorskip("pydantic")

    class Price(pydantic.BaseModel):
        amount: decimal.Decimal
        other: typing.Union[float, str]

    properties = pawl.schema_of(Price)["properties"]
    pattern = properties["amount"]["anyOf"][1]["pattern"]
    assert re.search(pattern, "-12.50") and not re.search(pattern, "2026-01-02") and not re.search(pattern, "12 EUR")
    # Elsewhere any text goes.
    assert properties["other"]["anyOf"][1] == {"type": "string"}
