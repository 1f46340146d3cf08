# Sourced by the scripts about wheels. list_pythons: one CPython for each version from 3.9 on that this machine has with its
# headers, newest patch first where there are several: of PATH, and of pyenv.
# shellcheck shell=bash
list_pythons() {
  local python version seen=" "
  local candidates=()
  for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do
    [[ -x $python ]] && candidates+=("$python")
  done
  for version in 9 10 11 12 13 14 15; do
    python=$(command -v "python3.$version" || true)
    [[ -n $python ]] && candidates+=("$python")
  done
  for python in "${candidates[@]}"; do
    version=$("$python" -c '
import os, sys, sysconfig
headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
usable = sys.implementation.name == "cpython" and sys.version_info >= (3, 9) and headers
print("3.%02d" % sys.version_info[1] if usable else "")' 2>/dev/null) || continue
    [[ -n $version && $seen != *" $version "* ]] || continue
    seen+="$version "
    echo "$version $python"
  done | sort | cut -d' ' -f2
}
