#!/usr/bin/env bash
# Checks the types of the Python package: mypy (strict) and pyright over the package, and over examples/python and
# tests/python/typing_sample.py, which is what users of the package write.
#
#   scripts/check_types.sh [PYTHON]     default: that of build/venv (scripts/install_deps.sh --python makes it)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac
python=${1:-$root/build/venv/bin/python}
if ! "$python" -c "import mypy, pyright, pydantic, numpy" 2>/dev/null; then
  echo "check_types.sh: skipped: $python has no mypy, pyright, pydantic or numpy; scripts/install_deps.sh --python installs them"
  exit 0
fi
cd "$root"
echo "== mypy"
MYPYPATH=python "$python" -m mypy --strict -m pawl -m pawl.__main__
MYPYPATH=python "$python" -m mypy --strict tests/python/typing_sample.py
echo "== pyright"
"$python" -m pyright --pythonpath "$python"  # [tool.pyright] in pyproject.toml says which files
