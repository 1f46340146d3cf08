"""How tokenizers write bytes in the names of their tokens, and back."""

from __future__ import annotations

import re
from typing import Collection, Dict, Iterable, List, Mapping, Union

RAW = "raw"
BYTE_FALLBACK = "byte_fallback"  # "<0x0A>", "▁word"
BYTE_LEVEL = "byte_level"  # each byte as a printable character, "Ġword"


def _alphabet() -> Dict[str, int]:
    """GPT-2's characters for bytes: printable Latin-1 stands for itself, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + i): byte for i, byte in enumerate(others)})
    return table


_BYTE_OF = _alphabet()
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


def detect_encoding(names: Union[Mapping[str, int], Iterable[str]]) -> str:
    """From the names alone: 256 byte tokens, or single characters for most bytes."""
    known = set(names)
    if sum(f"<0x{byte:02X}>" in known for byte in range(256)) >= 128:
        return BYTE_FALLBACK
    if sum(character in known for character in _BYTE_OF) >= 128 and "Ġ" in known:
        return BYTE_LEVEL
    if any(name.startswith("Ġ") for name in known) and not any(" " in name for name in known):
        return BYTE_LEVEL
    if any(name.startswith("▁") for name in known):
        return BYTE_FALLBACK
    return RAW


def bytes_of_token(name: Union[str, bytes], encoding: str) -> bytes:
    if isinstance(name, bytes):
        if encoding == RAW:
            return name
        try:
            return bytes_of_token(name.decode("utf-8"), encoding)
        except UnicodeDecodeError:
            return name
    if encoding == BYTE_FALLBACK:
        match = _BYTE_TOKEN.match(name)
        if match:
            return bytes([int(match.group(1), 16)])
        return name.replace("▁", " ").encode("utf-8", "surrogatepass")
    if encoding == BYTE_LEVEL:
        try:
            return bytes(_BYTE_OF[character] for character in name)
        except KeyError:  # an added token stands for itself
            pass
    return name.encode("utf-8", "surrogatepass")


def bytes_of_tokens(
    names: Iterable[Union[str, bytes]], encoding: str, verbatim: Collection[int] = ()
) -> List[bytes]:
    """`verbatim`: tokens whose names are their text (added and special ones)."""
    return [
        bytes_of_token(name, RAW if index in verbatim else encoding)
        for index, name in enumerate(names)
    ]
