#!/usr/bin/env bash
# Installs each wheel into an empty environment of its Python, far from the sources, and uses it as a newcomer would: a record with
# the model that ships, the command, the time until then, the time of the import, the size.
#
#   scripts/check_wheels.sh [WHEEL...]     default: dist/*.whl
#   scripts/check_wheels.sh --tests ...    also runs tests/python/test_engine.py there (installs pytest and pydantic)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tests=no
wheels=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --tests) tests=yes ;;
    *) wheels+=("$(realpath "$argument")") ;;
  esac
done
if [[ ${#wheels[@]} -eq 0 ]]; then
  mapfile -t wheels < <(find "$root/dist" -name 'pawl-*.whl' | sort -V)
fi
if [[ ${#wheels[@]} -eq 0 ]]; then
  echo "check_wheels.sh: no wheels; scripts/build_wheels.sh makes them" >&2
  exit 1
fi
# shellcheck source=scripts/list_pythons.sh
source "$root/scripts/list_pythons.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$root/schemas/examples/contact.json" "$scratch"
cd "$scratch"

fail() {
  echo "check_wheels.sh: $*" >&2
  exit 1
}
text="Ann Lee works at Harrow Ltd. Phone: 020 7946 0018."
expected='{"name":"Ann Lee","email":null,"phone":"020 7946 0018","company":"Harrow Ltd","job_title":null,"city":null}'

for wheel in "${wheels[@]}"; do
  tag=$(basename "$wheel" | cut -d- -f3)  # cp311
  python=""
  while read -r candidate; do
    if [[ $("$candidate" -c 'import sys; print("cp%d%d" % sys.version_info[:2])') == "$tag" ]]; then
      python=$candidate
    fi
  done < <(list_pythons)
  [[ -n $python ]] || fail "no Python for $wheel"
  case "$wheel" in *manylinux*) ;; *) fail "$wheel is no manylinux wheel" ;; esac
  bytes=$(stat -c %s "$wheel")
  ((bytes < 15000000)) || fail "$wheel has $bytes bytes"

  rm -rf venv
  "$python" -m venv venv
  begin=$(date +%s)
  venv/bin/python -m pip install --quiet --disable-pip-version-check "$wheel"
  packages=$(venv/bin/python -m pip list --format=freeze --disable-pip-version-check | grep -viE '^(pip|setuptools|wheel)=' |
    cut -d= -f1 | sort | xargs)
  [[ $packages == "numpy pawl" ]] || fail "$tag installs: $packages"
  got=$(venv/bin/pawl extract --schema contact.json --text "$text")
  [[ $got == "$expected" ]] || fail "$tag: pawl extract printed: $got"
  seconds=$(($(date +%s) - begin))
  ((seconds < 60)) || fail "$tag: the first record came after $seconds seconds"
  venv/bin/pawl --help | grep -q "structured output" || fail "$tag: pawl --help"
  venv/bin/python -m pawl --version >/dev/null || fail "$tag: python -m pawl"
  got=$(venv/bin/python -c "
import json, pathlib, pawl
record = pawl.Engine().extract('''$text''', pathlib.Path('contact.json'))
print(json.dumps(record, separators=(',', ':')))")
  [[ $got == "$expected" ]] || fail "$tag: pawl.Engine().extract gave: $got"
  # Masks for other engines, with numpy.
  venv/bin/python -c "
import pawl
vocabulary = pawl.Vocabulary.from_tokenizer_json(pawl.shipped_model())
mask = pawl.allocate_mask(1, len(vocabulary))
assert pawl.Matcher(pawl.Compiler(vocabulary).regex('a+')).fill_mask(mask)" || fail "$tag: masks"
  if venv/bin/pawl extract --schema missing.json --text a 2>error.txt; then
    fail "$tag: a schema that is missing is no error"
  fi
  grep -q "missing.json" error.txt || fail "$tag: $(cat error.txt)"
  # The monitors: Python's stubs and TypeScript's declarations are in the program.
  for subcommand in monitor complete index lsp; do
    venv/bin/pawl "$subcommand" --help >help.txt || fail "$tag: pawl $subcommand --help"
  done
  printf 'import os\nhere = os.getcwd()\n' >good.py
  printf 'import os\nhere = os.getcwdd()\n' >bad.py
  printf 'const n: number = "a".lenght;\n' >bad.ts
  venv/bin/pawl monitor good.py >monitor.txt || fail "$tag: pawl monitor refuses what exists: $(cat monitor.txt)"
  for bad in bad.py bad.ts; do
    if venv/bin/pawl monitor "$bad" >monitor.txt; then fail "$tag: pawl monitor takes $bad"; fi
    grep -q "refused at" monitor.txt || fail "$tag: pawl monitor: $(cat monitor.txt)"
  done
  # Processor time, the least of several runs: the first one compiles and reads from disk.
  import=$(for _ in 1 2 3 4 5; do
    venv/bin/python -c "import time; t = time.process_time(); import pawl; print(int(1000 * (time.process_time() - t)))"
  done | sort -n | head -1)
  ((import < 150)) || fail "$tag: import pawl takes $import ms"
  if [[ $tests == yes ]]; then
    venv/bin/python -m pip install --quiet --disable-pip-version-check pytest pydantic tqdm
    cp -r "$root/schemas" "$root/grammar" . 2>/dev/null || true
    mkdir -p tests/python && cp "$root/tests/python/test_engine.py" tests/python/
    (cd tests && PAWL_COMMAND=$scratch/venv/lib/python3.${tag#cp3}/site-packages/pawl/bin/pawl \
      ../venv/bin/python -m pytest -q -p no:cacheprovider python/test_engine.py) || fail "$tag: tests"
  fi
  echo "$(basename "$wheel"): well; $((bytes / 1024)) KiB, the first record after $seconds s, import $import ms"
done
