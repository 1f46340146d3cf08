#!/usr/bin/env bash
# Installs what is missing, builds, runs all tests, prints one summary. Non-zero on any failure.
#
#   scripts/test.sh [ctest arguments]     for example: scripts/test.sh -R Sampler
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' scripts/test.sh; exit 0 ;;
esac
scripts/install_deps.sh
scripts/build.sh release

log=build/test.log
status=0
ctest --test-dir build --output-on-failure --no-tests=error -j "$(nproc)" "$@" 2>&1 | tee "$log" || status=$?
# ctest's own last lines list failed and skipped tests; this is the one line to look at.
skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
total=$(sed -n 's/^.*tests passed, [0-9]* tests failed out of \([0-9]*\).*$/\1/p' "$log" | tail -1)
failed=$(sed -n 's/^.*tests passed, \([0-9]*\) tests failed out of.*$/\1/p' "$log" | tail -1)
total=${total:-0}
failed=${failed:-0}
if [[ $status -eq 0 ]]; then
  echo "Pawl tests: all well, $((total - skipped)) passed, $skipped skipped."
else
  echo "Pawl tests: FAILED, $failed of $total failed, $skipped skipped." >&2
fi
exit "$status"
