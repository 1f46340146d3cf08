#!/usr/bin/env bash
# Builds the layers of the core (base, grammar, schemas) under the address and undefined-behaviour sanitizers and runs their tests.
#
#   scripts/sanitize.sh           all of them: a quarter of an hour on two cores
#   scripts/sanitize.sh --quick   without those that try many random or hostile inputs: nine minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=no
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' scripts/sanitize.sh; exit 0 ;;
  --quick) quick=yes ;;
  "") ;;
  *) echo "sanitize.sh: unknown option '$1' (--help tells what there is)" >&2; exit 2 ;;
esac
scripts/install_deps.sh
mapfile -t core < <(sed -n 's/^pawl_test(\([a-z_]*\).*/\1/p' tests/{base,grammar,schemas,oracle}/CMakeLists.txt)
if [[ $quick == yes ]]; then
  # Also not built: what has such tests alone.
  mapfile -t core < <(printf '%s\n' "${core[@]}" | grep -v -x -e property_test -e dead_end_test -e string_walk_test -e pattern_steps_test)
  export GTEST_FILTER='-*Random*:*Hostile*:*AgreesWith*:*AgreeWith*:*InTime*:*MayBeAnything*:*StringWalkTest*:*NoDeadEnds*'
fi
PAWL_PROGRESS=50 scripts/build.sh asan "${core[@]}"
labels=$(IFS='|'; echo "${core[*]}")
rm -rf build-asan/reports
status=0
ctest --test-dir build-asan --output-on-failure --no-tests=error --output-junit "$PWD/build-asan/test.xml" -j "$(nproc)" -L "^($labels)\$" \
  >build-asan/test.log 2>&1 || status=$?
[[ $status -eq 0 ]] || grep -v ' Passed ' build-asan/test.log
cases=$(python3 scripts/test_times.py --join build-asan/reports build-asan/test.xml)
sed '$d' <<<"$cases"
tail -1 <<<"$cases" | sed 's/\(.*\) \(.*\) \(.*\)/Pawl sanitizers: \1 passed, \2 failed, \3 skipped./'
exit "$status"
