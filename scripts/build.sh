#!/usr/bin/env bash
# Builds Pawl; the release preset leaves the command at build/pawl.
#
#   scripts/build.sh [preset] [target ...]     presets: release (default), debug, asan, tsan, fuzz, cuda
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-release}
[[ $# -gt 0 ]] && shift
case "$preset" in
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "scripts/build.sh"; exit 0 ;;
  release) folder=build ;;
  debug | asan | tsan | fuzz | cuda) folder=build-$preset ;;
  *) echo "build.sh: unknown preset '$preset' (release, debug, asan, tsan, fuzz, cuda)" >&2; exit 2 ;;
esac
for tool in cmake ninja; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "build.sh: $tool is missing; scripts/install_deps.sh installs it" >&2
    exit 1
  fi
done

configure=(cmake --preset "$preset")
if command -v ccache >/dev/null 2>&1; then
  configure+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
# A configuration that worked is kept; CMake itself notices when its files change.
if [[ ! -f $folder/build.ninja ]]; then
  mkdir -p "$folder"
  if ! "${configure[@]}" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    echo "build.sh: configuring failed (see above)" >&2
    exit 1
  fi
fi
targets=()
for target in "$@"; do targets+=(--target "$target"); done
cmake --build "$folder" "${targets[@]}"
