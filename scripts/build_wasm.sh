#!/usr/bin/env bash
# Builds the package for JavaScript: js/pawl.wasm, for browsers and Node.
#
#   scripts/build_wasm.sh [FOLDER]             # build-wasm/ by default, which keeps what was compiled
#   scripts/build_wasm.sh --engine [FOLDER]    # js/pawl-engine.wasm, with models; build-wasm-engine/ by default
#
# The compiler is zig's C++ compiler, of the Python package index: `ziglang`, in an environment in the folder. ZIG names
# another zig. Besides: cmake, ninja, Python 3 with venv, nlohmann/json (scripts/install_deps.sh), and wasm-opt, which makes
# the module a fifth smaller (Debian's package binaryen).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
engine=OFF
target=pawl_wasm
name=pawl
folder="build-wasm"
most=
case "${1:-}" in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/build_wasm.sh; exit 0 ;;
  --engine)
    shift
    engine=ON
    target=pawl_engine_wasm
    name=pawl-engine
    folder="build-wasm-engine"
    most=40  # a source of many costs less than many sources
    ;;
  -*) echo "build_wasm.sh: unknown option '$1'" >&2; exit 2 ;;
esac
build=$(realpath -m "${1:-$folder}")

for tool in cmake ninja python3; do
  command -v "$tool" > /dev/null || { echo "missing: $tool (scripts/install_deps.sh installs it)" >&2; exit 1; }
done
command -v wasm-opt > /dev/null || { echo "missing: wasm-opt (apt-get install binaryen)" >&2; exit 1; }
# shellcheck source=scripts/zig_commands.sh
source scripts/zig_commands.sh
zig_commands "$build"
lib=$(dirname "$(realpath "$ZIG")")/lib
[[ -d $lib/libcxxabi ]] || { echo "missing: the sources of zig's C++ library ($lib/libcxxabi)" >&2; exit 1; }
# Without a compiler cache: its results would not know of zig's own.
cmake -S . -B "$build" -G Ninja --toolchain "$PWD/cmake/wasm32-wasi.cmake" -DCMAKE_BUILD_TYPE=Release \
  -DPAWL_ZIG_COMMANDS="$build/bin" -DPAWL_ZIG_LIB="$lib" -DPAWL_BUILD_ENGINE="$engine" -DPAWL_BUILD_COMMAND=OFF \
  -DPAWL_CUDA=OFF -DPAWL_BUILD_C=ON -DPAWL_BUILD_TESTS=OFF -DPAWL_BUILD_BENCH=OFF -DPAWL_INSTALL=OFF -DPAWL_WERROR=OFF \
  -DPAWL_PRECOMPILE=OFF -DPAWL_UNITY=ON -DPAWL_UNITY_MOST="$most" > "$build/configure.log" || { tail -20 "$build/configure.log" >&2; exit 1; }
cmake --build "$build" --target "$target"
features=(--enable-bulk-memory --enable-exception-handling --enable-multivalue --enable-mutable-globals
  --enable-nontrapping-float-to-int --enable-reference-types --enable-sign-ext --enable-simd)
# In the module with models the loops of the kernels are to stay as they are: -O2.
level=(-Oz -Oz --merge-similar-functions)
[[ $engine == OFF ]] || level=(-O2)
wasm-opt "${level[@]}" "${features[@]}" --zero-filled-memory --strip-producers --strip-target-features \
  "$build/bin/$name.wasm" -o "$build/$name.wasm"
cp "$build/$name.wasm" "js/$name.wasm"
printf 'js/%s.wasm: %d bytes, %d compressed\n' "$name" "$(stat -c %s "js/$name.wasm")" "$(gzip -9c "js/$name.wasm" | wc -c)"
