"""Writes the stubs of Python's standard library and the names that they leave out as a C++ file.

    embed_stubs.py TYPESHED UNLISTED.txt OUT.cc
"""

import pathlib
import sys


def table(name: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"extern const PackagedText {name}[];\nconst PackagedText {name}[] = {{\n"]
    for key, text in sorted(rows):
        # A literal has a limit in some compilers; those that stand next to one another are one.
        parts = "\n".join(f'R"pawl({text[at : at + 12000]})pawl"' for at in range(0, max(len(text), 1), 12000))
        lines.append(f'{{"{key}",\n{parts}}},\n')
    return "".join(lines) + "};\n"


def main() -> None:
    folder, unlisted, out = map(pathlib.Path, sys.argv[1:])
    stubs = [
        (path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")) for path in folder.rglob("*.pyi")
    ]
    names = []
    for line in unlisted.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            owner, _, rest = line.partition(" ")
            names.append((owner, rest))
    with out.open("w", encoding="utf-8") as file:
        file.write("// Made by embed_stubs.py.\n#include <cstddef>\n#include <string_view>\n\n")
        file.write("namespace pawl::monitors::python {\n\n")
        file.write("struct PackagedText {\n  std::string_view name;\n  std::string_view text;\n};\n")
        for name, rows in (("kPackagedStub", stubs), ("kUnlistedName", names)):
            file.write(table(name + "s", rows))
            file.write(f"extern const size_t {name}Count;\nconst size_t {name}Count = {len(rows)};\n\n")
        file.write("}  // namespace pawl::monitors::python\n")


if __name__ == "__main__":
    main()
