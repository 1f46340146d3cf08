#!/usr/bin/env bash
# Opens the playground of `pawl serve` in Chromium without a window (playground_test.py). Apart from CI; needs chromium.
#
#   playground.sh [--screenshots] [MODEL...]    # without a model: the one that ships. Screenshots go to docs/.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v chromium >/dev/null || command -v google-chrome >/dev/null || { echo "playground.sh: SKIPPED, no chromium" >&2; exit 0; }
pictures=()
if [[ ${1:-} == --screenshots ]]; then pictures=(--screenshots "$root/docs"); shift; fi
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
failed=0
[[ $# -gt 0 ]] || set -- "$root/models/tiny-extract"
for model in "$@"; do
  : >"$work/out"
  "$root/build/pawl" serve --model "$model" --port 0 --log none >"$work/out" 2>"$work/err" &
  server=$!
  for _ in $(seq 600); do
    grep -q listening "$work/out" && break
    sleep 0.1
  done
  name=$(basename "$model")
  echo "playground: $name"
  PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/clients/playground_test.py" "$(sed -n 's/^listening on //p' "$work/out")" "$name" "${pictures[@]}" || failed=1
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
  pictures=()
done
exit "$failed"
