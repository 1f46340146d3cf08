"""Where the files are that come with the package: the shipped model and the command."""

from __future__ import annotations

import os
import sys

from ._errors import PawlError

_MODEL = "tiny-extract"


def _folders() -> "list[str]":
    # More than one where the package was installed to be edited: sources here, what was built there.
    package = sys.modules["pawl"]
    return [*dict.fromkeys([os.path.dirname(__file__), *getattr(package, "__path__", ())])]


def _find(*places: str) -> str:
    for place in places:
        if os.path.exists(place):
            return place
    raise PawlError("io", "was not found; is the package whole? looked for " + ", ".join(places),
                    os.path.basename(places[0]))


def shipped_model() -> str:
    """The folder of the model that ships with Pawl."""
    own = [os.path.join(folder, "models", _MODEL) for folder in _folders()]
    # The source tree: python/pawl and models are neighbours.
    own += [os.path.normpath(os.path.join(folder, "..", "..", "models", _MODEL))
            for folder in _folders()]
    return _find(*own)


def command_path() -> str:
    """The `pawl` command that comes with the package."""
    return _find(*(os.path.join(folder, "bin", "pawl") for folder in _folders()))
