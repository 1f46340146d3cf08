"""Models by name: where the stores of this machine are, and how a model comes into one.

What is asked of a hub, and what becomes of the answers, is the native module's. The requests are made here, with
Python's own TLS.
"""

from __future__ import annotations

import functools
import http.client
import os
import ssl
import urllib.error
import urllib.request
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _pawl

_TIMEOUT = 60  # seconds without a byte
_PIECE = 1 << 18


def _environment() -> "Dict[str, bytes]":
    return {name: os.fsencode(value) for name, value in os.environ.items()}


@functools.lru_cache(maxsize=None)
def store_paths() -> _pawl.ModelPaths:
    """The stores that the environment names, which is read once."""
    return _pawl.ModelPaths(_environment())


def resolve_model(name: str) -> str:
    """The path of a model folder or a GGUF file: a path that exists, or the name of a model in a store."""
    return _pawl.resolve_model(name, store_paths())


def pull(name: str, *, progress: "Optional[Callable[[str, int, int], object]]" = None) -> str:
    """Fetches a model from the hub and returns the path of its folder or GGUF file.

        pawl.pull("Qwen/Qwen3-0.6B-GGUF:Q8_0")
        engine = pawl.Engine("Qwen/Qwen3-0.6B-GGUF:Q8_0")

    `name`: ORG/NAME, ORG/NAME@REVISION, and :FILE or :TYPE behind either, for one of several GGUF files. `progress` is
    called with a file, the bytes that are there, and the bytes of all files. What is there already is not fetched, and a
    file that was cut goes on where it ended. docs/models.md has the environment variables.
    """
    return _pawl.pull_model(name, _environment(), _Requests().get, progress)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


class _Requests:
    def __init__(self) -> None:
        context = ssl.create_default_context()
        self._opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))

    def get(self, url: str, headers: "List[Tuple[str, str]]", head: Callable[..., bool],
            body: "Callable[[bytes], bool]") -> "Optional[Tuple[bool, str]]":
        """One request. None, or whether another try may help and what went wrong."""
        request = urllib.request.Request(url, headers={"User-Agent": "pawl", **dict(headers)})
        try:
            try:
                answer: Any = self._opener.open(request, timeout=_TIMEOUT)
            except urllib.error.HTTPError as refused:
                answer = refused
            with answer:
                if not head(answer.status, list(answer.headers.items())):
                    return None
                while True:
                    piece = answer.read1(_PIECE) if hasattr(answer, "read1") else answer.read(_PIECE)
                    if not piece or not body(piece):
                        return None
        except urllib.error.URLError as error:
            return not isinstance(error.reason, ssl.SSLCertVerificationError), str(error.reason)
        except ssl.SSLCertVerificationError as error:
            return False, str(error)
        except (OSError, http.client.HTTPException) as error:
            return True, str(error) or type(error).__name__
