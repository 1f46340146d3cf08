#!/usr/bin/env bash
# Tests of the package for JavaScript: js_test.sh node, or js_test.sh chromium, which opens examples/web/ in the browser. With
# models: js_test.sh engine_node, js_test.sh engine_chromium.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
skip() { echo "skipped: $1"; exit 0; }

case ${1:-} in
  engine_*) [[ -f js/pawl-engine.wasm ]] || skip "no js/pawl-engine.wasm (scripts/build_wasm.sh --engine)" ;;
  *) [[ -f js/pawl.wasm ]] || skip "no js/pawl.wasm (scripts/build_wasm.sh)" ;;
esac
case ${1:-} in
  node)
    command -v node > /dev/null || skip "no node"
    exec node --test js/test/pawl.test.mjs ;;
  chromium)
    command -v chromium > /dev/null || skip "no chromium"
    python3 tests/js/page_test.py
    exec python3 tests/js/trouble_test.py masks ;;
  engine_node)
    command -v node > /dev/null || skip "no node"
    exec node --test js/test/engine.test.mjs ;;
  engine_chromium)
    command -v chromium > /dev/null || skip "no chromium"
    python3 tests/js/record_test.py
    exec python3 tests/js/trouble_test.py model ;;
  *) echo "js_test.sh [engine_]node|[engine_]chromium" >&2; exit 2 ;;
esac
