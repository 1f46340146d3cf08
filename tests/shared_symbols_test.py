#!/usr/bin/env python3
"""A shared libpawl_engine finds all that it takes from a shared libpawl_core.

    tests/shared_symbols_test.py FOLDER     # of a build with static libraries; ctest runs it as SharedSymbols

Shared libraries are built by few, and a function that libpawl_core hides is missing only where libpawl_engine is linked
with it. Objects tell as much: a symbol that the objects of libpawl_engine take from those of libpawl_core has to have
PAWL_EXPORT. Both libraries have objects of src/base of their own.
"""

import subprocess
import sys
from pathlib import Path


def symbols(library):
    """Symbols of a static library: (undefined names, {defined name: its visibility})."""
    table = subprocess.run(["readelf", "-sW", library], capture_output=True, text=True, check=True).stdout
    undefined, defined = set(), {}
    for line in table.splitlines():
        # 12: 0000000000000000 42 FUNC GLOBAL HIDDEN 7 _ZN4pawl...
        fields = line.split()
        if len(fields) != 8 or fields[4] not in ("GLOBAL", "WEAK", "UNIQUE"):
            continue
        if fields[6] == "UND":
            undefined.add(fields[7])
        else:
            defined[fields[7]] = fields[5]
    return undefined, defined


def main():
    folder = Path(sys.argv[1])
    libraries = {name: folder / path for name, path in (("core", "libpawl_core.a"), ("engine", "libpawl_engine.a"), ("base", "src/base/libpawl_base.a"))}
    absent = [str(path) for path in libraries.values() if not path.exists()]
    if absent:
        print("skipped: not there:", ", ".join(absent))
        return 0
    (taken, own), (_, core), (_, base) = (symbols(libraries[name]) for name in ("engine", "core", "base"))
    from_core = {name for name in taken if name in core and name not in own and name not in base}
    if len(from_core) < 10:
        sys.exit(f"shared_symbols_test.py: only {len(from_core)} symbols taken from {libraries['core']}: readelf was misread")
    hidden = sorted(name for name in from_core if core[name] != "DEFAULT")
    if hidden:
        shown = subprocess.run(["c++filt"], input="\n".join(hidden), capture_output=True, text=True, check=True).stdout
        print("A shared libpawl_core hides what libpawl_engine takes from it; mark the declarations with PAWL_EXPORT:", shown, sep="\n")
        return 1
    print(f"{len(from_core)} symbols of libpawl_core, none hidden")
    return 0


if __name__ == "__main__":
    sys.exit(main())
