#!/usr/bin/env bash
# Builds the package for JavaScript: js/pawl.wasm, for browsers and Node.
#
#   scripts/build_wasm.sh [FOLDER]    # build-wasm/ by default, which keeps what was compiled
#
# The compiler is zig's C++ compiler, of the Python package index: `ziglang`, in an environment in the folder. ZIG names
# another zig. Besides: cmake, ninja, Python 3 with venv, nlohmann/json (scripts/install_deps.sh), and wasm-opt, which makes
# the module a fifth smaller (Debian's package binaryen).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' scripts/build_wasm.sh; exit 0 ;;
  -*) echo "build_wasm.sh: unknown option '$1'" >&2; exit 2 ;;
esac
build=$(realpath -m "${1:-build-wasm}")

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
  -DPAWL_ZIG_COMMANDS="$build/bin" -DPAWL_ZIG_LIB="$lib" -DPAWL_BUILD_ENGINE=OFF -DPAWL_BUILD_C=ON -DPAWL_BUILD_TESTS=OFF \
  -DPAWL_BUILD_BENCH=OFF -DPAWL_INSTALL=OFF -DPAWL_WERROR=OFF -DPAWL_PRECOMPILE=OFF -DPAWL_UNITY=ON > "$build/configure.log" ||
  { tail -20 "$build/configure.log" >&2; exit 1; }
cmake --build "$build" --target pawl_wasm
features=(--enable-bulk-memory --enable-exception-handling --enable-multivalue --enable-mutable-globals
  --enable-nontrapping-float-to-int --enable-reference-types --enable-sign-ext --enable-simd)
wasm-opt -Oz -Oz "${features[@]}" --merge-similar-functions --zero-filled-memory --strip-producers --strip-target-features \
  "$build/bin/pawl.wasm" -o "$build/pawl.wasm"
cp "$build/pawl.wasm" js/pawl.wasm
printf 'js/pawl.wasm: %d bytes, %d compressed\n' "$(stat -c %s js/pawl.wasm)" "$(gzip -9c js/pawl.wasm | wc -c)"
