#!/usr/bin/env bash
# Whether Clang reads the sources without a warning. Nothing is compiled.
#
#   scripts/check_clang.sh [--libc++] [COMPILER [FOLDER ...]]    clang++ and all folders by default (src, tests, ...)
#
# --libc++: with Clang's own library, and not GCC's.
# The sources are those of build/ (scripts/build.sh), as they are compiled there: several of a folder at a time. The lines of
# warnings come out as they are found, each once, and their number. Warnings that CMakeLists.txt switches off stay off. FOLDER:
# src, or src/decode.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

library=()
compiler=
folders=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/check_clang.sh; exit 0 ;;
    --libc++) library=(-stdlib=libc++) ;;
    -*) echo "check_clang.sh: unknown option '$argument'" >&2; exit 2 ;;
    *) if [[ -z $compiler ]]; then compiler=$argument; else folders+=("$argument"); fi ;;
  esac
done
compiler=${compiler:-clang++}
[[ ${#folders[@]} -gt 0 ]] || folders=(src grammar schemas kernels plugins tests bench python examples)
command -v "$compiler" >/dev/null || { echo "check_clang.sh: no compiler '$compiler'" >&2; exit 1; }
[[ -f build/compile_commands.json ]] || { echo "check_clang.sh: no build/compile_commands.json; scripts/build.sh makes it" >&2; exit 1; }
exec python3 - "$compiler" "${folders[*]}" "${library[@]}" <<'PYTHON'
import json, os, re, shlex, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

compiler, folders, *library = sys.argv[1:]
OURS = re.compile("/(?:build/)?(?:%s)/" % "|".join(re.escape(folder) for folder in folders.split()))
commands = {}
for entry in json.load(open("build/compile_commands.json")):
    if entry["file"].endswith((".cc", ".cxx")) and OURS.match("/" + os.path.relpath(entry["file"])):
        commands.setdefault(entry["file"], entry)


def arguments(entry):
    words, skip = [], False
    for word in shlex.split(entry["command"])[1:]:
        if skip:
            skip = False
        elif word in ("-o", "-include", "-MF", "-MT"):
            skip = True
        elif word not in ("-c", "-MD", "-Winvalid-pch", "-Werror") and not word.startswith("-fpch"):
            words.append(word)
    return [compiler, *library, "-fsyntax-only", "-Wno-unknown-warning-option", *words]


def read(entry):
    return subprocess.run(arguments(entry), cwd=entry["directory"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, check=False)


if not commands:
    sys.exit(f"check_clang.sh: build/compile_commands.json has no source in {folders}")
lines, failed = set(), 0
with ThreadPoolExecutor(int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1)) as pool:
    for result in pool.map(read, commands.values()):
        failed += result.returncode != 0
        for line in result.stderr.splitlines():
            if re.search(r": (fatal )?(warning|error): ", line) and line not in lines:
                lines.add(line)
                print(line, flush=True)
print(f"{compiler}: {len(commands)} units, {len(lines)} warnings and errors")
sys.exit(1 if lines or failed else 0)
PYTHON
