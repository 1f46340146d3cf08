"""value_of: JSON as a value of the Python type that its schema came from.

Pydantic makes its own. For the rest (dataclasses, TypedDict, Enum, dates and what is made of them)
this is the way back from schema_of: what it has a schema for, this has a value for.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import re
import typing
import uuid
from typing import Any, Callable, Dict, Tuple

from ._errors import PawlError
from ._schema import ARRAYS, MAPS, SETS, UNIONS, extensions


class _NoFit(Exception):
    """The value is not one of this type: another member of the union may be meant."""


def value_of(type_: Any, text: str) -> Any:
    """`text`: JSON that is valid for schema_of(type_)."""
    if hasattr(type_, "model_validate_json"):
        return type_.model_validate_json(text)
    if type(type_).__name__ == "TypeAdapter":
        return type_.validate_json(text)
    try:
        return _make(type_, json.loads(text))
    except _NoFit as error:
        raise PawlError("invalid", f"no {type_!r}: {error}") from None


def plain_value(value: Any) -> Any:
    """A record as dicts and lists: what a record of the schema's type is as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_value(getattr(value, field.name))
                for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return plain_value(value.value)
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_value(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, decimal.Decimal)):
        return str(value)
    return value


def _duration(text: str) -> datetime.timedelta:
    match = re.fullmatch(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
                         text)
    if match is None:
        raise ValueError(f"{text!r} has years or months, which no timedelta has")
    weeks, days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _iso(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        # Before Python 3.11 fromisoformat knows no Z, and 3 or 6 decimals alone.
        text = re.sub(r"[zZ]\Z", "+00:00", text)
        text = re.sub(r"\.(\d+)", lambda m: "." + (m.group(1) + "000000")[:6], text)
        return parse(text)

    return read


_FROM_TEXT: Dict[Any, Callable[[str], Any]] = {
    datetime.datetime: _iso(datetime.datetime.fromisoformat),
    datetime.date: datetime.date.fromisoformat,
    datetime.time: _iso(datetime.time.fromisoformat),
    datetime.timedelta: _duration,
    uuid.UUID: uuid.UUID,
}
_PLAIN: Dict[Any, Tuple[type, ...]] = {
    str: (str,),
    bool: (bool,),
    int: (int, float),
    float: (int, float),
    list: (list,),
    tuple: (list,),
    dict: (dict,),
}


def _check(value: Any, *kinds: type) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _NoFit(repr(value))


def _plain(type_: Any, value: Any) -> Any:
    _check(value, *_PLAIN[type_])
    return value if type_ is dict or isinstance(value, type_) else type_(value)


def _make(type_: Any, value: Any) -> Any:
    if type_ is Any or type_ is object:
        return value
    if type_ is None or type_ is type(None):
        if value is not None:
            raise _NoFit(repr(value))
        return None
    if isinstance(type_, type) and type_ in _PLAIN:
        return _plain(type_, value)
    if isinstance(type_, type) and type_ in _FROM_TEXT:
        _check(value, str)
        try:
            return _FROM_TEXT[type_](value)
        except ValueError as error:
            raise _NoFit(str(error)) from None
    if type_ is decimal.Decimal:
        _check(value, int, float)
        return decimal.Decimal(repr(value))
    if hasattr(type_, "__supertype__"):
        return _make(type_.__supertype__, value)
    if type(type_).__name__ == "TypeAliasType":
        return _make(type_.__value__, value)
    return _make_generic(type_, value)


def _make_generic(type_: Any, value: Any) -> Any:
    origin = typing.get_origin(type_)
    arguments = typing.get_args(type_)
    if origin is typing.Annotated or origin is getattr(extensions, "Annotated", None):
        return _make(arguments[0], value)
    if origin in (typing.Literal, getattr(extensions, "Literal", None)):
        return _choose(arguments, value)
    if origin in UNIONS:
        return _first(arguments, value)
    if origin is tuple:
        _check(value, list)
        kinds = arguments
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            kinds = arguments[:1] * len(value)
        if len(kinds) != len(value):
            raise _NoFit(repr(value))
        return tuple(_make(kind, item) for kind, item in zip(kinds, value))
    if origin in ARRAYS:
        _check(value, list)
        return [_make(arguments[0], item) for item in value]
    if origin in SETS:
        _check(value, list)
        made = {_make(arguments[0], item) for item in value}
        return frozenset(made) if origin is frozenset else made
    if origin in MAPS:
        _check(value, dict)
        return {_make_key(arguments[0], key): _make(arguments[1], item)
                for key, item in value.items()}
    return _make_class(type_, value)


def _make_key(type_: Any, key: str) -> Any:
    return int(key) if type_ is int else _make(type_, key)


def _make_class(type_: Any, value: Any) -> Any:
    if isinstance(type_, type):
        if issubclass(type_, enum.Enum):
            return _choose(tuple(type_), value)
        if dataclasses.is_dataclass(type_):
            _check(value, dict)
            hints = typing.get_type_hints(type_, include_extras=True)
            return type_(**{name: _make(hints[name], item) for name, item in value.items()})
        if hasattr(type_, "model_validate"):
            return _of_pydantic(type_.model_validate, value)
        if issubclass(type_, tuple) and hasattr(type_, "_fields"):
            _check(value, list)
            hints = typing.get_type_hints(type_, include_extras=True)
            return type_(*(_make(hints.get(name, Any), item)
                           for name, item in zip(getattr(type_, "_fields"), value)))
        if type_ in SETS:
            _check(value, list)
            return frozenset(value) if type_ is frozenset else set(value)
    if hasattr(type_, "__required_keys__"):
        _check(value, dict)
        hints = {name: _unwrapped(hint)
                 for name, hint in extensions.get_type_hints(type_, include_extras=True).items()}
        return {name: _make(hints[name], item) for name, item in value.items()}
    if isinstance(type_, enum.Enum):
        return _choose((type_,), value)
    if getattr(type_, "__pydantic_validator__", None) is not None:
        from pydantic import TypeAdapter

        return _of_pydantic(TypeAdapter(type_).validate_python, value)
    return value


def _of_pydantic(validate: Callable[[Any], Any], value: Any) -> Any:
    try:
        return validate(value)
    except ValueError as error:  # pydantic.ValidationError
        raise _NoFit(str(error)) from error


def _unwrapped(hint: Any) -> Any:
    """Without NotRequired[...] and the like."""
    while getattr(typing.get_origin(hint), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        hint = typing.get_args(hint)[0]
    return hint


def _choose(choices: Tuple[Any, ...], value: Any) -> Any:
    for choice in choices:
        of = choice.value if isinstance(choice, enum.Enum) else choice
        if isinstance(of, tuple):
            of = list(of)
        # 1 and true are equal in Python, and not in JSON.
        if of == value and isinstance(of, bool) == isinstance(value, bool):
            return choice
    raise _NoFit(repr(value))


def _first(kinds: Tuple[Any, ...], value: Any) -> Any:
    for exact in (True, False):
        for kind in kinds:
            # An int is not made a float where the union has int as well.
            if exact and kind in (int, float) and type(value) is not kind:
                continue
            try:
                return _make(kind, value)
            except _NoFit:
                pass
    raise _NoFit(repr(value))
