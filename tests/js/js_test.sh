#!/usr/bin/env bash
# Tests of the package for JavaScript: js_test.sh node, or js_test.sh chromium, which opens examples/web/ in the browser.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
skip() { echo "skipped: $1"; exit 0; }

[[ -f js/pawl.wasm ]] || skip "no js/pawl.wasm (scripts/build_wasm.sh)"
case ${1:-} in
  node)
    command -v node > /dev/null || skip "no node"
    exec node --test js/test/pawl.test.mjs ;;
  chromium)
    command -v chromium > /dev/null || skip "no chromium"
    exec python3 tests/js/page_test.py ;;
  *) echo "js_test.sh node|chromium" >&2; exit 2 ;;
esac
