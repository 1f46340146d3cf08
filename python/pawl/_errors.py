from __future__ import annotations

from typing import Any


class PawlError(ValueError):
    """What was wrong with the input, and where.

    `code` is one of "invalid", "unsupported", "unsatisfiable", "limit", "io", "internal". `place` is
    a JSON Pointer, "line:column", "byte N", a path, or "" when the whole input is meant.
    """

    def __init__(self, code: str, message: str, place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.code = code
        self.message = message
        self.place = place

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.message, self.place)
