"""schema_of: the JSON Schema of a Python type.

Pydantic models (and what only Pydantic knows) are asked themselves. Dataclasses, TypedDict, Enum,
Literal, Annotated, Optional, Union, list, tuple, set, dict, NewType and the plain types are read
here, so Pydantic need not be installed. Classes become definitions, so that they may be recursive.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import sys
import types
import typing
import uuid
from typing import Any, Dict, List, Optional, Tuple

from ._errors import PawlError

try:  # NotRequired and Required, where typing lacks them
    import typing_extensions

    extensions: types.ModuleType = typing_extensions
except ImportError:
    extensions = typing

_PLAIN: Dict[Any, Dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    decimal.Decimal: {"type": "number"},
}
ARRAYS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
           collections.abc.MutableSequence)
SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
# What annotated-types (and Pydantic's Field) call the bounds, and the keyword of each.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
           "multiple_of": "multipleOf", "pattern": "pattern"}
_LENGTHS = {"min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
            "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}}


class _Verbatim:
    """The mark of a field that is copied from the text: Annotated[str, pawl.Verbatim]."""

    def __repr__(self) -> str:
        return "pawl.Verbatim"

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Dict[str, Any]:
        return {**handler(core_schema), "x-pawl-source": "span"}


Verbatim = _Verbatim()


def schema_of(type_: Any) -> Dict[str, Any]:
    """The JSON Schema (2020-12) of a type. Raises PawlError for types that have none."""
    pydantic = _pydantic_schema(type_)
    if pydantic is not None:
        return pydantic
    reader = _Reader()
    schema = reader.read(type_, "#")
    if reader.definitions:
        if set(schema) == {"$ref"} and reader.references[schema["$ref"]] == 1:
            # The type itself, and nothing else refers to it: no need for a definition.
            schema = reader.definitions.pop(schema["$ref"][len("#/$defs/"):])
        if reader.definitions:
            schema = {**schema, "$defs": reader.definitions}
    return schema


_DECIMAL = r"^-?[0-9]{1,20}(\.[0-9]{1,20})?$"


@functools.lru_cache(maxsize=None)
def _generator() -> Any:
    """Pydantic's generator, but a text for a Decimal has to be a number. Its own schema takes any text."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> Dict[str, Any]:
            made = super().decimal_schema(schema)
            for branch in made.get("anyOf", []):
                if branch.get("type") == "string":
                    branch["pattern"] = _DECIMAL
            return made

    return Generator


def _pydantic_schema(type_: Any) -> Optional[Dict[str, Any]]:
    if hasattr(type_, "model_json_schema"):
        return dict(type_.model_json_schema(schema_generator=_generator()))
    if "pydantic" in sys.modules and getattr(type_, "__pydantic_validator__", None) is not None:
        from pydantic import TypeAdapter

        return TypeAdapter(type_).json_schema(schema_generator=_generator())
    if hasattr(type_, "json_schema") and type(type_).__name__ == "TypeAdapter":
        return dict(type_.json_schema(schema_generator=_generator()))
    return None


class _Reader:
    def __init__(self) -> None:
        self.definitions: Dict[str, Any] = {}
        self.references: Dict[str, int] = {}
        self._names: Dict[Any, str] = {}

    def read(self, type_: Any, place: str) -> Dict[str, Any]:
        try:
            if type_ in _PLAIN:
                return dict(_PLAIN[type_])
        except TypeError:  # not hashable
            pass
        if hasattr(type_, "__supertype__"):  # NewType
            return self.read(type_.__supertype__, place)
        if type(type_).__name__ == "TypeAliasType":
            return self.read(type_.__value__, place)
        origin = typing.get_origin(type_)
        arguments = typing.get_args(type_)
        if origin is typing.Annotated or origin is getattr(extensions, "Annotated", None):
            return self._bounded(self.read(arguments[0], place), arguments[1:])
        if origin is typing.Literal or origin is getattr(extensions, "Literal", None):
            return {"enum": [self._literal(value, place) for value in arguments]}
        if origin in UNIONS:
            return self._union(arguments, place)
        if origin is tuple:
            return self._tuple(arguments, place)
        if origin in ARRAYS:
            return {"type": "array", "items": self.read(arguments[0], place)}
        if origin in SETS:
            return {"type": "array", "items": self.read(arguments[0], place), "uniqueItems": True}
        if origin in MAPS:
            return self._map(arguments, place)
        if isinstance(type_, type):
            if type_ in SETS:
                return {"type": "array", "uniqueItems": True}
            if issubclass(type_, enum.Enum):
                return self._defined(type_, lambda: self._enum(type_, place))
            if dataclasses.is_dataclass(type_):
                return self._defined(type_, lambda: self._dataclass(type_, place))
            if hasattr(type_, "__required_keys__"):
                return self._defined(type_, lambda: self._typed_dict(type_, place))
            pydantic = _pydantic_schema(type_)
            if pydantic is not None:
                return self._defined(type_, lambda: self._adopt(pydantic))
            if issubclass(type_, tuple) and hasattr(type_, "_fields"):
                hints = typing.get_type_hints(type_, include_extras=True)
                return self._tuple(tuple(hints.get(name, Any) for name in getattr(type_, "_fields")), place)
        elif hasattr(type_, "__required_keys__"):
            return self._defined(type_, lambda: self._typed_dict(type_, place))
        if isinstance(type_, enum.Enum):
            return {"const": self._literal(type_, place)}
        raise PawlError("unsupported", f"{type_!r} has no JSON Schema", place)

    def _defined(self, type_: Any, make: Any) -> Dict[str, Any]:
        if type_ not in self._names:
            name = type_.__name__
            number = 2
            while name in self.definitions:
                name = f"{type_.__name__}_{number}"
                number += 1
            self._names[type_] = name
            self.definitions[name] = {}  # taken, should the type contain itself
            self.definitions[name] = make()
        reference = f"#/$defs/{self._names[type_]}"
        self.references[reference] = self.references.get(reference, 0) + 1
        return {"$ref": reference}

    def _object(
        self, fields: List[Tuple[str, Any, bool]], description: Optional[str], place: str
    ) -> Dict[str, Any]:
        schema: Dict[str, Any] = {"type": "object"}
        if description:
            schema["description"] = description
        schema["properties"] = {
            name: self.read(type_, f"{place}/{name}") for name, type_, _ in fields
        }
        required = [name for name, _, is_required in fields if is_required]
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return schema

    def _dataclass(self, type_: Any, place: str) -> Dict[str, Any]:
        hints = typing.get_type_hints(type_, include_extras=True)
        missing = dataclasses.MISSING
        fields = [
            (field.name, hints[field.name],
             field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(type_)
            if field.init
        ]
        return self._object(fields, None, place)

    def _typed_dict(self, type_: Any, place: str) -> Dict[str, Any]:
        hints = extensions.get_type_hints(type_, include_extras=True)
        wrappers = {getattr(module, name, None) for module in (typing, extensions)
                    for name in ("Required", "NotRequired", "ReadOnly")} - {None}
        fields = []
        for name, hint in hints.items():
            required = name in type_.__required_keys__
            while typing.get_origin(hint) in wrappers:
                # Under deferred annotations the class itself cannot tell.
                wrapper = str(typing.get_origin(hint))
                required = required if "ReadOnly" in wrapper else "Not" not in wrapper
                hint = typing.get_args(hint)[0]
            fields.append((name, hint, required))
        return self._object(fields, None, place)

    def _enum(self, type_: Any, place: str) -> Dict[str, Any]:
        return {"enum": [self._literal(member, place) for member in type_]}

    def _adopt(self, schema: Dict[str, Any]) -> Dict[str, Any]:
        for name, definition in schema.pop("$defs", {}).items():
            if self.definitions.setdefault(name, definition) != definition:
                raise PawlError("unsupported", f"two definitions of {name}", f"#/$defs/{name}")
        return schema

    def _union(self, arguments: Tuple[Any, ...], place: str) -> Dict[str, Any]:
        return {"anyOf": [self.read(argument, place) for argument in arguments]}

    def _tuple(self, arguments: Tuple[Any, ...], place: str) -> Dict[str, Any]:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": self.read(arguments[0], place)}
        if arguments == ((),):  # Tuple[()] before Python 3.11
            arguments = ()
        schema: Dict[str, Any] = {"type": "array"}
        if arguments:
            schema["prefixItems"] = [self.read(argument, place) for argument in arguments]
        return {**schema, "minItems": len(arguments), "maxItems": len(arguments)}

    def _map(self, arguments: Tuple[Any, ...], place: str) -> Dict[str, Any]:
        key, value = arguments
        schema = {"type": "object", "additionalProperties": self.read(value, place)}
        if key not in (str, Any):
            names = self.read(key, place)
            if names.get("type") == "integer":
                names = {"pattern": "^-?(0|[1-9][0-9]*)$"}
            schema["propertyNames"] = names
        return schema

    def _bounded(self, schema: Dict[str, Any], marks: Tuple[Any, ...]) -> Dict[str, Any]:
        for mark in marks:
            if mark is Verbatim:
                schema["x-pawl-source"] = "span"
            for part in [mark, *getattr(mark, "metadata", ())]:
                for name, keyword in _BOUNDS.items():
                    value = getattr(part, name, None)
                    if isinstance(value, (int, float, str)):
                        schema[keyword] = value
                for name, keywords in _LENGTHS.items():
                    value = getattr(part, name, None)
                    if isinstance(value, int) and schema.get("type") in keywords:
                        schema[keywords[schema["type"]]] = value
        return schema

    def _literal(self, value: Any, place: str) -> Any:
        if isinstance(value, enum.Enum):
            value = value.value
        if value is None or isinstance(value, (str, int, float)):
            return value
        if isinstance(value, (list, tuple)):
            return [self._literal(item, place) for item in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: self._literal(item, place) for key, item in value.items()}
        raise PawlError("unsupported", f"{value!r} is not a JSON value", place)
