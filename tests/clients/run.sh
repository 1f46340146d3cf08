#!/usr/bin/env bash
# Runs clients that people use - from PyPI, in an environment of their own - against `pawl serve` with the model that
# ships. Apart from CI, which has a small client of its own (tests/server). The result goes to tests/clients/RESULTS.txt.
#
#   tests/clients/run.sh [--venv DIR] [--no-install] [--model MODEL] [TEST...]
#
# --model: another model than the one that ships; then the form of what it writes is tested, not the values.
# DIR-agents is a second environment: the agents' packages ask for another openai than Instructor does.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
venv=$root/build/clients-venv
install=yes
model=()
while [[ ${1:-} == --* ]]; do
  case "$1" in
    --venv) venv=$2; shift 2 ;;
    --no-install) install=no; shift ;;
    --model) model=(--model "$2"); export PAWL_ANY_VALUES=1; shift 2 ;;
    *) echo "run.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
pawl=$root/build/pawl
[[ -x $pawl ]] || { echo "run.sh: build pawl first (scripts/build.sh release pawl)" >&2; exit 2; }
if [[ $install == yes ]]; then
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  [[ -x $venv-agents/bin/python ]] || python3 -m venv "$venv-agents"
  "$venv/bin/pip" install --quiet \
    instructor anthropic openai langchain-openai ollama pydantic "lm-eval[api]" "ray[data]" aiohttp
  "$venv-agents/bin/pip" install --quiet openai openai-agents anthropic pydantic
  "$venv-agents/bin/pip" install --quiet pydantic-ai-slim
fi
here=() agents=()
for test in "$@"; do
  case "$test" in
    openai_agents | pydantic_ai) agents+=("$test") ;;
    *) here+=("$test") ;;
  esac
done
[[ $# -gt 0 ]] || here=(-openai_agents -pydantic_ai) agents=(openai_agents pydantic_ai)
work=$(mktemp -d)
"$pawl" serve "${model[@]}" --port 0 --log none >"$work/out" 2>"$work/err" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do
  grep -q listening "$work/out" && break
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$work/out")
[[ -n $url ]] || { cat "$work/err" >&2; exit 1; }
# run_tests VENV PACKAGES TEST...: versions of the packages, then the tests
run_tests() {
  "$1/bin/pip" list 2>/dev/null | grep -iE "^($2) " || true
  PAWL_URL=$url "$1/bin/python" "$root/tests/clients/clients_test.py" "${@:3}"
}
{
  code=0
  date -u +"%Y-%m-%d"
  if [[ ${#here[@]} -gt 0 ]]; then
    run_tests "$venv" 'openai|langchain-openai|instructor|anthropic|ollama|lm_eval|ray' "${here[@]}" || code=1
  fi
  if [[ ${#agents[@]} -gt 0 ]]; then
    run_tests "$venv-agents" 'openai|openai-agents|anthropic|pydantic-ai-slim' "${agents[@]}" || code=1
  fi
  exit "$code"
} | tee "$work/result"
code=${PIPESTATUS[0]}
[[ $# -gt 0 || ${#model[@]} -gt 0 ]] || cp "$work/result" "$root/tests/clients/RESULTS.txt"
kill -TERM "$server"
wait "$server"
echo "the server ended with exit code $?"
exit "$code"
