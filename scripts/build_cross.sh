#!/usr/bin/env bash
# Builds the command for another system or C library with zig's compiler: build-cross/TARGET/build/pawl.
#
#   scripts/build_cross.sh [--quick] TARGET [CMAKE OPTION ...]
#                                                       x86_64-linux-musl, aarch64-linux-musl: without shared libraries
#                                                       x86_64-windows-gnu, aarch64-macos, x86_64-macos: the C library, too
#
# --quick does not optimize, into build-cross/TARGET/quick: whether everything compiles and links, in a third of the time.
# scripts/cross_deps.sh makes the libraries; what it needs has to be there. CTest does not run what was built:
# scripts/check_static.sh does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

place=build
quick=()
if [[ ${1:-} == --quick ]]; then
  place=quick
  # Without optimization, reading the headers is most of the work.
  quick=(-DPAWL_UNITY_MOST=24)
  export PAWL_ZIG_FLAGS=-O0
  shift
fi
case "${1:-}" in
  -h | --help) sed -n '2,10s/^# \{0,1\}//p' scripts/build_cross.sh; exit 0 ;;
  "") echo "build_cross.sh: name a target (--help)" >&2; exit 2 ;;
  -*) echo "build_cross.sh: unknown option '$1' (--help)" >&2; exit 2 ;;
esac
target=$1
shift
scripts/cross_deps.sh "$target"
folder=$PWD/build-cross/$target/$place
wanted=pawl
library=OFF
case "$target" in
  *-windows-* | *-macos) wanted="pawl pawl_c" library=ON ;;
esac
mkdir -p "$folder"
# Without a compiler cache: its results would not know of zig's own.
cmake -S . -B "$folder" -G Ninja --toolchain "$PWD/cmake/cross/$target.cmake" -DCMAKE_BUILD_TYPE=Release \
  -DPAWL_SELF_CONTAINED=ON -DPAWL_BUILD_C=$library -DPAWL_BUILD_TESTS=OFF -DPAWL_BUILD_BENCH=OFF -DPAWL_INSTALL=OFF \
  -DPAWL_WERROR=OFF -DPAWL_PRECOMPILE=OFF -DPAWL_UNITY=ON -DPAWL_CUDA=OFF -DPAWL_BUILD_PYTHON=OFF \
  "${quick[@]}" "$@" >"$folder/configure.log" 2>&1 ||
  { tail -30 "$folder/configure.log" >&2; echo "build_cross.sh: configuring failed (see above)" >&2; exit 1; }
read -ra targets <<<"${PAWL_CROSS_TARGETS:-$wanted}"
cmake --build "$folder" --target "${targets[@]}" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
