"""The errors of XGrammar's names. All are RuntimeErrors, as there; the text is Pawl's, with the
place of what is wrong."""

from __future__ import annotations

import contextlib
from typing import Iterator, Type

from ..._errors import PawlError


class DeserializeFormatError(RuntimeError):
    """The text is not one that serialize_json wrote."""


class DeserializeVersionError(RuntimeError):
    """The text is one that another version wrote."""


class InvalidStructuralTagError(RuntimeError):
    """The structural tag is wrong."""


class InvalidJSONError(RuntimeError):
    """The text is not JSON."""


@contextlib.contextmanager
def as_runtime_error(kind: Type[RuntimeError] = RuntimeError) -> Iterator[None]:
    try:
        yield
    except PawlError as error:
        raise kind(str(error)) from error
