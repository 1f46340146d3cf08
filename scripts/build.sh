#!/usr/bin/env bash
# Builds Pawl; the release preset leaves the command at build/pawl.
#
#   scripts/build.sh [--with-cuda] [preset] [target ...]     presets: release (default), debug, asan, tsan, fuzz, arm, cuda
#
# CUDA kernels are compiled where there is a device, in the preset cuda, and with --with-cuda where there is nvcc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

with_cuda=no
if [[ ${1:-} == --with-cuda ]]; then with_cuda=yes; shift; fi
preset=${1:-release}
[[ $# -gt 0 ]] && shift
case "$preset" in
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "scripts/build.sh"; exit 0 ;;
  release) folder=build ;;
  debug | asan | tsan | fuzz | arm | cuda) folder=build-$preset ;;
  *) echo "build.sh: unknown preset '$preset' (release, debug, asan, tsan, fuzz, arm, cuda)" >&2; exit 2 ;;
esac
for tool in cmake ninja; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "build.sh: $tool is missing; scripts/install_deps.sh installs it" >&2
    exit 1
  fi
done

configure() {  # arguments of CMake
  mkdir -p "$folder"
  if ! cmake "$@" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    echo "build.sh: configuring failed (see above)" >&2
    exit 1
  fi
}
# A configuration that worked is kept; CMake itself notices when its files change.
if [[ ! -f $folder/build.ninja ]]; then
  options=(--preset "$preset")
  if [[ -z ${CCACHE_DISABLE:-} ]] && command -v ccache >/dev/null 2>&1; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    # With a compiler cache each source is compiled alone. GCC 12 then sees faults in library headers that are none.
    options+=(-DPAWL_WERROR=OFF)
  fi
  configure "${options[@]}"
fi
# Without a device the code is to compile and link: for one kind of device and hardly optimized, which takes a seventh of the time.
if [[ $with_cuda == yes ]] && command -v nvcc >/dev/null 2>&1 && ! grep -q '^CMAKE_CUDA_COMPILER:' "$folder/CMakeCache.txt"; then
  quick=--Ofast-compile=max
  nvcc --help | grep -q -e --Ofast-compile || quick=
  configure -S . -B "$folder" -DPAWL_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=90-real -DCMAKE_CUDA_FLAGS="$quick"
fi
targets=()
for target in "$@"; do targets+=(--target "$target"); done
# As many compilers as processors: Ninja's two more would only push each other out of the caches.
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc 2>/dev/null || echo 2)}
# A line for each step, or the last step alone where no terminal shows it.
if [[ -n ${PAWL_PROGRESS:-} ]]; then
  export NINJA_STATUS="[%f of %t, %es] "
  cmake --build "$folder" --parallel "$jobs" "${targets[@]}" |
    awk -v every="$PAWL_PROGRESS" '/^\[/ {n = substr($0, 2) + 0; if (n % every == 0) {sub(/\].*/, "]"); print; fflush()} next} {print}'
else
  cmake --build "$folder" --parallel "$jobs" "${targets[@]}"
fi
