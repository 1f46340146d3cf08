#!/usr/bin/env bash
# Builds the floors of the core (base, grammar, schemas) under the address and undefined-behaviour sanitizers and runs their tests.
# Takes a quarter of an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  -h | --help) sed -n '2,3s/^# \{0,1\}//p' scripts/sanitize.sh; exit 0 ;;
esac
scripts/install_deps.sh
mapfile -t core < <(sed -n 's/^pawl_test(\([a-z_]*\).*/\1/p' tests/{base,grammar,schemas,oracle}/CMakeLists.txt)
PAWL_PROGRESS=50 scripts/build.sh asan "${core[@]}"
labels=$(IFS='|'; echo "${core[*]}")
ctest --test-dir build-asan --output-on-failure --no-tests=error -j "$(nproc)" -L "^($labels)\$" >build-asan/test.log 2>&1 ||
  { grep -v ' Passed ' build-asan/test.log; exit 1; }
grep 'tests passed' build-asan/test.log
