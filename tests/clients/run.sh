#!/usr/bin/env bash
# Runs clients that people use - from PyPI, in an environment of their own - against `pawl serve` with the model that
# ships. Apart from CI, which has a small client of its own (tests/server). The result goes to tests/clients/RESULTS.txt.
#
#   tests/clients/run.sh [--venv DIR] [--no-install] [TEST...]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
venv=$root/build/clients-venv
install=yes
while [[ ${1:-} == --* ]]; do
  case "$1" in
    --venv) venv=$2; shift 2 ;;
    --no-install) install=no; shift ;;
    *) echo "run.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
pawl=$root/build/pawl
[[ -x $pawl ]] || { echo "run.sh: build pawl first (scripts/build.sh release pawl)" >&2; exit 2; }
if [[ $install == yes ]]; then
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet openai langchain-openai instructor ollama pydantic "lm-eval[api]" "ray[data]" aiohttp
fi
work=$(mktemp -d)
"$pawl" serve --port 0 --log none >"$work/out" 2>"$work/err" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do
  grep -q listening "$work/out" && break
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$work/out")
[[ -n $url ]] || { cat "$work/err" >&2; exit 1; }
{
  date -u +"%Y-%m-%d"
  "$venv/bin/pip" list 2>/dev/null | grep -iE '^(openai|langchain-openai|instructor|ollama|lm_eval|ray) ' || true
  PAWL_URL=$url "$venv/bin/python" "$root/tests/clients/clients_test.py" "$@"
} | tee "$work/result"
code=${PIPESTATUS[0]}
[[ $# -gt 0 ]] || cp "$work/result" "$root/tests/clients/RESULTS.txt"
kill -TERM "$server"
wait "$server"
echo "the server ended with exit code $?"
exit "$code"
