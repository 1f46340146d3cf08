#!/usr/bin/env python3
"""Checks what scripts/build_cross.sh links for macOS, which nothing here runs: reads the Mach-O files themselves.

  scripts/check_macos.py aarch64-macos|x86_64-macos    build-cross/TARGET/build: the command and the C library
  scripts/check_macos.py --minimum 12.0 FILE ...       these files

A file is for one processor and for macOS from the minimum version on (LC_BUILD_VERSION). It asks for the system's own
libraries alone (libSystem, libc++), and each symbol that it leaves open is bound to one of them. A file for Apple's
processors is signed, without which the kernel does not start it. A library exports the functions of include/pawl/pawl.h.
Names that it exports besides are counted: zig's linker takes no list of exports.
"""

import argparse
import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROCESSORS = {0x01000007: "x86_64", 0x0100000C: "aarch64"}
KINDS = {2: "command", 6: "library"}
LC_SYMTAB, LC_SEGMENT, LC_ID_DYLIB, LC_CODE_SIGNATURE, LC_BUILD_VERSION = 0x2, 0x19, 0xD, 0x1D, 0x32
LC_LOADS = {0xC, 0x80000018, 0x8000001F, 0x23, 0x20}  # load, weak, reexport, upward, lazy
SYSTEM = ("/usr/lib/libSystem.B.dylib", "/usr/lib/libc++.1.dylib")


class Bad(Exception):
    """What is wrong with a file."""


class MachO:
    """The load commands and the symbols of a 64-bit file for one processor."""

    def __init__(self, data):
        self.data = data
        magic, processor, _, kind, count, size, self.flags, _ = self.read("<8I", 0)
        if magic != 0xFEEDFACF:
            raise Bad(f"begins with {magic:#x}: not a Mach-O file of 64 bits for one processor")
        if processor not in PROCESSORS or kind not in KINDS:
            raise Bad(f"processor {processor:#x}, kind {kind}: not known here")
        self.processor, self.kind = PROCESSORS[processor], KINDS[kind]
        self.libraries, self.symbols, self.minimum, self.signed, self.name = [], [], None, False, None
        at, end = 32, 32 + size
        for _ in range(count):
            command, length = self.read("<2I", at)
            if length < 8 or at + length > end:
                raise Bad(f"the load command at byte {at} has {length} bytes")
            self.load(command, at, length)
            at += length

    def read(self, layout, at):
        if at < 0 or at + struct.calcsize(layout) > len(self.data):
            raise Bad(f"ends before byte {at + struct.calcsize(layout)}")
        return struct.unpack_from(layout, self.data, at)

    def text(self, at):
        end = self.data.find(b"\0", at)
        if at < 0 or end < 0:
            raise Bad(f"the text at byte {at} has no end")
        return self.data[at:end].decode("utf-8", "replace")

    def load(self, command, at, length):
        if command in LC_LOADS or command == LC_ID_DYLIB:
            name = self.text(at + self.read("<I", at + 8)[0])
            if command == LC_ID_DYLIB:
                self.name = name
            else:
                self.libraries.append(name)
        elif command == LC_BUILD_VERSION:
            platform, minimum = self.read("<2I", at + 8)
            if platform != 1:
                raise Bad(f"is for Apple's platform {platform}, and not for macOS")
            self.minimum = (minimum >> 16, minimum >> 8 & 0xFF)
        elif command == LC_CODE_SIGNATURE:
            self.signed = self.read("<2I", at + 8)[1] > 0
        elif command == LC_SYMTAB:
            first, count, names, _ = self.read("<4I", at + 8)
            for index in range(count):
                name, kind, _, description, _ = self.read("<IBBHQ", first + 16 * index)
                if not kind & 0xE0:  # not of a debugger
                    self.symbols.append((self.text(names + name), kind, description))

    def open_symbols(self):
        """(name, library that it is bound to) of each symbol that others define."""
        two_levels = bool(self.flags & 0x80)
        for name, kind, description in self.symbols:
            if kind & 0x0E == 0 and kind & 1:
                ordinal = description >> 8
                known = two_levels and 1 <= ordinal <= len(self.libraries)
                yield name, self.libraries[ordinal - 1] if known else None

    def exported(self):
        """Names that others may use: external, defined, and not private to the file."""
        return {name for name, kind, _ in self.symbols if kind & 0x0E and kind & 1 and not kind & 0x10}


def functions_of_header():
    """The functions of pawl.h, as a C compiler for macOS names them."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (ROOT / "include/pawl/pawl.h").read_text(), flags=re.S)
    return {"_" + name for name in re.findall(r"\bPAWL_API\b[^;{]*?\b(pawl_\w+)\s*\(", text)}


def check(path, minimum, processor=None):
    file = MachO(path.read_bytes())
    if processor and file.processor != processor:
        raise Bad(f"is for {file.processor}, and not for {processor}")
    if file.minimum is None:
        raise Bad("does not say from which version of macOS on it runs (LC_BUILD_VERSION)")
    if file.minimum > minimum:
        raise Bad("runs from macOS {}.{} on only, and not from {}.{}".format(*file.minimum, *minimum))
    others = [name for name in file.libraries if name not in SYSTEM]
    if others:
        raise Bad("asks for " + ", ".join(others))
    open_symbols = list(file.open_symbols())
    loose = sorted(name for name, library in open_symbols if library is None)
    if loose:
        raise Bad(f"{len(loose)} symbols are bound to no library: " + " ".join(loose[:8]))
    if not open_symbols:
        raise Bad("has no table of symbols: there is nothing to check")
    if file.processor == "aarch64" and not file.signed:
        raise Bad("is not signed; Apple's processors start it only if it is")
    line = f"{file.kind} for {file.processor}, macOS {file.minimum[0]}.{file.minimum[1]} or newer, "
    line += f"{len(open_symbols)} symbols of {', '.join(Path(name).name for name in file.libraries)}"
    if file.kind == "library":
        if not (file.name or "").startswith("@rpath/"):
            raise Bad(f"is known to programs as {file.name}, and not as a file of @rpath")
        exported, wanted = file.exported(), functions_of_header()
        missing = sorted(wanted - exported)
        if missing:
            raise Bad(f"does not export {len(missing)} names: " + " ".join(missing[:8]))
        line += f"; exports the {len(wanted)} functions of pawl.h"
        if exported - wanted:
            line += f" and {len(exported - wanted)} others"
    return f"{line}; {len(file.data) // 1024} KiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", metavar="TARGET|FILE")
    parser.add_argument("--minimum", default="12.0", help="the oldest macOS that files are to run on (12.0)")
    arguments = parser.parse_args()
    if not re.fullmatch(r"\d+(\.\d+)?", arguments.minimum):
        parser.error(f"--minimum {arguments.minimum}: a version such as 12.0 is wanted")
    minimum = tuple(int(part) for part in (arguments.minimum + ".0").split(".")[:2])
    failed = False
    for what in arguments.what:
        processor = None
        paths = [Path(what)]
        if re.fullmatch(r"(aarch64|x86_64)-macos", what):
            processor = what.split("-")[0]
            build = ROOT / "build-cross" / what / "build"
            paths = [build / "pawl", *sorted(path for path in build.glob("libpawl*.dylib") if not path.is_symlink())]
            if not paths[0].exists():
                print(f"check_macos.py: {paths[0]} is not there: scripts/build_cross.sh {what} makes it", file=sys.stderr)
                failed = True
                continue
            if len(paths) != 2:
                print(f"check_macos.py: {build}: {len(paths) - 1} libraries, and not one", file=sys.stderr)
                failed = True
        for path in paths:
            try:
                print(f"{path}: {check(path, minimum, processor)}")
            except (Bad, OSError) as error:
                print(f"check_macos.py: {path}: {error}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
