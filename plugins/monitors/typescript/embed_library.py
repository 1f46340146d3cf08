"""Writes the declarations of lib.es*.d.ts, without comments and references, and the names of the host as a C++ file.

    embed_library.py FOLDER HOST_NAMES.txt OUT.cc
"""

import pathlib
import re
import sys

TOKENS = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|//[^\n]*|/\*.*?\*/", re.DOTALL)


def main() -> None:
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3])
    files = sorted(folder.glob("lib.es*.d.ts"), key=lambda path: (path.name != "lib.es5.d.ts", path.name))
    if not files:
        sys.exit(f"embed_library.py: no lib.es*.d.ts in {folder}")
    text = "".join(
        TOKENS.sub(lambda m: " " if m[0].startswith("/") else m[0], path.read_text(encoding="utf-8")) for path in files
    )
    text = re.sub(r"\s*\n\s*", "\n", text)
    lines = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    host = sorted({name for line in lines if not line.startswith("#") for name in line.split()})
    parts = [text[i : i + 12000] for i in range(0, len(text), 12000)]
    with out.open("w", encoding="utf-8") as file:
        file.write("// Made by embed_library.py.\n#include <cstddef>\n#include <string_view>\n\nnamespace pawl::monitors::ts {\n\n")
        file.write("extern const char* const kPackagedLibrary[];\nextern const size_t kPackagedLibraryParts;\n\n")
        file.write("const char* const kPackagedLibrary[] = {\n")
        for part in parts:
            file.write('R"pawl(' + part + ')pawl",\n')
        file.write(f"}};\nconst size_t kPackagedLibraryParts = {len(parts)};\n\n")
        file.write("extern const std::string_view kHostNames[];\nextern const size_t kHostNameCount;\n\n")
        file.write("const std::string_view kHostNames[] = {\n" + "".join(f'"{name}",\n' for name in host))
        file.write(f"}};\nconst size_t kHostNameCount = {len(host)};\n\n}}  // namespace pawl::monitors::ts\n")


if __name__ == "__main__":
    main()
