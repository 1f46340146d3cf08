#!/usr/bin/env bash
# Installs what is missing, builds, runs all tests, prints one summary. Non-zero on any failure.
#
#   scripts/test.sh [ctest arguments]                 for example: scripts/test.sh -R decode_test
#   scripts/test.sh --cases PATTERN [...]             the cases of all programs that match, as --gtest_filter has it: 'Sampler*'
#   scripts/test.sh --kernels NAME [...]              as on a processor that has no more instructions than the kernels
#                                                     NAME need: portable, avx2, avx512, avx512-vnni; all: each in turn
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kernels=("")
selection=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' scripts/test.sh; exit 0 ;;
    --kernels)
      case "${2:-}" in
        portable | avx2 | avx512 | avx512-vnni) kernels=("$2") ;;
        all) kernels=(portable avx2 avx512 avx512-vnni) ;;
        *) echo "test.sh: --kernels: portable, avx2, avx512, avx512-vnni or all, not '${2:-}'" >&2; exit 2 ;;
      esac
      shift 2
      ;;
    --cases)
      [[ -n ${2:-} ]] || { echo "test.sh: --cases: no pattern" >&2; exit 2; }
      export GTEST_FILTER=$2
      selection=(-L '^gtest$')
      shift 2
      ;;
    *) break ;;
  esac
done
scripts/install_deps.sh
PAWL_PROGRESS=${PAWL_PROGRESS:-50} scripts/build.sh --with-cuda release

run() {  # kernels ("": all), ctest arguments
  local name=${1:+ ($1)} log=build/test.log report=$PWD/build/test${1:+-$1}.xml status=0 passed failed skipped
  rm -rf build/reports
  PAWL_KERNELS=$1 ctest --test-dir build --output-on-failure --no-tests=error --output-junit "$report" -j "$(nproc)" \
    "${selection[@]}" "${@:2}" 2>&1 | tee "$log" || status=$?
  # CTest runs programs in shards, each with many cases: their reports tell about the cases.
  local cases
  cases=$(python3 scripts/test_times.py --join build/reports "$report") || status=1
  read -r passed failed skipped <<<"$(tail -1 <<<"$cases")" || true
  sed '$d' <<<"$cases"
  # The ten programs that take longest; the rest: scripts/test_times.py.
  python3 scripts/test_times.py --most 10 "$report" || true
  if [[ ${passed:-0} -eq 0 && ${skipped:-0} -eq 0 && $status -eq 0 ]]; then
    echo "test.sh: no case matches" >&2
    status=1
  fi
  # The one line to look at.
  if [[ $status -eq 0 && ${failed:-0} -eq 0 ]]; then
    echo "Pawl tests$name: all well, $passed passed, $skipped skipped."
  else
    echo "Pawl tests$name: FAILED, ${failed:-0} failed, ${passed:-0} passed, ${skipped:-0} skipped." >&2
    [[ $status -ne 0 ]] || status=1
  fi
  return "$status"
}
result=0
for name in "${kernels[@]}"; do run "$name" "$@" || result=$?; done
exit "$result"
