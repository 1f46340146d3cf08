#!/usr/bin/env bash
# Opens the playground of `pawl serve` in headless Chromium: it has to stream the record and show its tokens. Writes
# screenshots to docs/ with --screenshots. Apart from CI; needs chromium.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
chromium=$(command -v chromium || command -v google-chrome) || { echo "playground.sh: SKIPPED, no chromium" >&2; exit 0; }
work=$(mktemp -d)
"$root/build/pawl" serve --port 0 --log none >"$work/out" 2>"$work/err" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do
  grep -q listening "$work/out" && break
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$work/out")
browse() {  # options, URL
  timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=15000 "$@" 2>/dev/null
}
failed=0
expect() {  # what, pattern
  if grep -q "$2" "$work/page"; then echo "playground: $1: ok"; else echo "playground: $1: FAILED"; failed=1; fi
}
# The browser's clock runs ahead of a machine that is busy, and may end before the stream does.
for _ in 1 2 3 4 5; do
  browse --dump-dom "$url/#tokens" >"$work/page"
  if grep -q '<dt>Prompt</dt>' "$work/page"; then break; fi
done
expect "the model's name" 'id="model">tiny-extract<'
expect "the schema is checked" 'class="good">Enforced'
expect "the record is streamed" '"name":"Ann Lee","email":"ann@example.org"'
expect "tokens that the model chose" 'class="sampled"[^>]*aria-label='
expect "tokens that the schema dictated" 'class="forced"[^>]*aria-label='
expect "figures" '<dt>Tokens per second</dt>'
expect "the same request for curl" 'curl http://127.0.0.1:'
expect "the same request for Python" 'openai.OpenAI(base_url='
if grep -qE '(src|href)="?https?:' "$work/page"; then echo "playground: FAILED, it loads something from elsewhere"; failed=1; fi
if [[ ${1:-} == --screenshots ]]; then
  browse --window-size=1280,740 --screenshot="$root/docs/playground.png" "$url/#tokens" >/dev/null
  browse --window-size=1280,740 --blink-settings=preferredColorScheme=0 --screenshot="$root/docs/playground_dark.png" "$url/#run" >/dev/null
  browse --window-size=412,1240 --screenshot="$root/docs/playground_phone.png" "$url/#run" >/dev/null
fi
exit "$failed"
