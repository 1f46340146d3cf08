#!/usr/bin/env python3
"""Tests scripts/check_macos.py with Mach-O files that are written here, and with each fault that it is to find."""

import importlib.util
import struct
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("check_macos", ROOT / "scripts/check_macos.py")
macos = importlib.util.module_from_spec(spec)
spec.loader.exec_module(macos)

UNDEFINED, DEFINED = 0x01, 0x0F


def command(number, body):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<2I", number, 8 + len(body)) + body


def library(number, name):
    return command(number, struct.pack("<4I", 24, 0, 0, 0) + name.encode() + b"\0")


def file_of(processor=0x0100000C, kind=2, minimum=(12, 0), platform=1, libraries=macos.SYSTEM[:1], signed=True, flags=0x85,
            symbols=(("_malloc", UNDEFINED, 1),), name="@rpath/libpawl.0.1.dylib"):
    """A file of load commands and symbols alone; a symbol is its name, its kind, and the number of its library."""
    commands = [library(0xC, name) for name in libraries]
    if kind == 6:
        commands.append(library(0xD, name))
    if minimum:
        commands.append(command(0x32, struct.pack("<4I", platform, minimum[0] << 16 | minimum[1] << 8, 0, 0)))
    if signed:
        commands.append(command(0x1D, struct.pack("<2I", 0, 64)))
    size = sum(map(len, commands)) + 24
    names, table = b"\0", b""
    for name, kind_of, ordinal in symbols:
        table += struct.pack("<IBBHQ", len(names), kind_of, 0, ordinal << 8, 0)
        names += name.encode() + b"\0"
    commands.append(command(0x2, struct.pack("<4I", 32 + size, len(symbols), 32 + size + len(table), len(names))))
    head = struct.pack("<8I", 0xFEEDFACF, processor, 0, kind, len(commands), size, flags, 0)
    return head + b"".join(commands) + table + names


class MacosFiles(unittest.TestCase):
    def check(self, data, processor=None, minimum=(12, 0)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(data)
            return macos.check(path, minimum, processor)

    def test_good_files(self):
        line = self.check(file_of(), "aarch64")
        self.assertIn("command for aarch64, macOS 12.0 or newer, 1 symbols of libSystem.B.dylib", line)
        self.assertIn("x86_64", self.check(file_of(0x01000007, signed=False), "x86_64"))
        self.check(file_of(minimum=(11, 3)))

    def test_faults(self):
        for words, fault in (
            ("not for x86_64", {"processor": 0x0100000C}),
            ("from macOS 12.1 on only", {"processor": 0x01000007, "minimum": (12, 1)}),
            ("does not say", {"processor": 0x01000007, "minimum": None}),
            ("platform 2", {"processor": 0x01000007, "platform": 2}),
            ("asks for /opt/homebrew/lib/libz.dylib", {"processor": 0x01000007, "libraries": ("/opt/homebrew/lib/libz.dylib",)}),
            ("bound to no library: _zip", {"processor": 0x01000007, "symbols": (("_zip", UNDEFINED, 0),)}),
            ("bound to no library: _zip", {"processor": 0x01000007, "symbols": (("_zip", UNDEFINED, 254),)}),
            ("bound to no library: _malloc", {"processor": 0x01000007, "flags": 0}),
            ("no table of symbols", {"processor": 0x01000007, "symbols": ()}),
        ):
            with self.subTest(words), self.assertRaisesRegex(macos.Bad, words):
                self.check(file_of(**fault), "x86_64")
        with self.assertRaisesRegex(macos.Bad, "not signed"):
            self.check(file_of(signed=False))
        with self.assertRaisesRegex(macos.Bad, "not a Mach-O file"):
            self.check(b"\x7fELF" + bytes(60))

    def test_any_beginning_of_a_file_is_an_error(self):
        whole = file_of()
        for length in range(len(whole)):
            with self.subTest(length), self.assertRaises(macos.Bad):
                self.check(whole[:length])

    def test_libraries_have_the_functions_of_the_header(self):
        names = sorted(macos.functions_of_header())
        self.assertGreater(len(names), 90)
        symbols = [("_malloc", UNDEFINED, 1)] + [(name, DEFINED, 0) for name in names]
        self.assertIn(f"exports the {len(names)} functions", self.check(file_of(kind=6, symbols=symbols)))
        with self.assertRaisesRegex(macos.Bad, "does not export 1 names: " + names[-1]):
            self.check(file_of(kind=6, symbols=symbols[:-1]))
        with self.assertRaisesRegex(macos.Bad, "not as a file of @rpath"):
            self.check(file_of(kind=6, symbols=symbols, name="/home/someone/build/libpawl.dylib"))
        more = self.check(file_of(kind=6, symbols=symbols + [("__ZTV1C", DEFINED, 0)]))
        self.assertIn("and 1 others", more)


if __name__ == "__main__":
    unittest.main()
