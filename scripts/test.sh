#!/usr/bin/env bash
# Installs what is missing, builds, runs all tests, prints one summary. Non-zero on any failure.
#
#   scripts/test.sh [ctest arguments]                 for example: scripts/test.sh -R Sampler
#   scripts/test.sh --kernels NAME [ctest arguments]  as on a processor that has no more instructions than the kernels
#                                                     NAME need: portable, avx2, avx512, avx512-vnni; all: each in turn
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kernels=("")
case "${1:-}" in
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' scripts/test.sh; exit 0 ;;
  --kernels)
    case "${2:-}" in
      portable | avx2 | avx512 | avx512-vnni) kernels=("$2") ;;
      all) kernels=(portable avx2 avx512 avx512-vnni) ;;
      *) echo "test.sh: --kernels: portable, avx2, avx512, avx512-vnni or all, not '${2:-}'" >&2; exit 2 ;;
    esac
    shift 2
    ;;
esac
scripts/install_deps.sh
PAWL_PROGRESS=${PAWL_PROGRESS:-50} scripts/build.sh --with-cuda release

run() {  # kernels ("": all), ctest arguments
  local name=${1:+ ($1)} log=build/test.log report=$PWD/build/test${1:+-$1}.xml status=0
  PAWL_KERNELS=$1 ctest --test-dir build --output-on-failure --no-tests=error --output-junit "$report" -j "$(nproc)" "${@:2}" 2>&1 | tee "$log" || status=$?
  # The ten programs that take longest; the rest: scripts/test_times.py.
  python3 scripts/test_times.py --most 10 "$report" || true
  # ctest's own last lines list failed and skipped tests; this is the one line to look at.
  local skipped total failed
  skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
  total=$(sed -n 's/^.*tests passed, [0-9]* tests failed out of \([0-9]*\).*$/\1/p' "$log" | tail -1)
  failed=$(sed -n 's/^.*tests passed, \([0-9]*\) tests failed out of.*$/\1/p' "$log" | tail -1)
  total=${total:-0}
  failed=${failed:-0}
  if [[ $status -eq 0 ]]; then
    echo "Pawl tests$name: all well, $((total - skipped)) passed, $skipped skipped."
  else
    echo "Pawl tests$name: FAILED, $failed of $total failed, $skipped skipped." >&2
  fi
  return "$status"
}
result=0
for name in "${kernels[@]}"; do run "$name" "$@" || result=$?; done
exit "$result"
