#!/usr/bin/env bash
# scripts/gpu_check.sh with stand-ins: a device and tools that say they are there, the benchmark and some of the tests on
# the host emulation. What it prints, the figures it writes and its exit code, when all goes well and when it does not.
#
#   gpu_check_test.sh GPU_BENCH_REHEARSAL CUDA_EMULATION_TEST PAWL
# shellcheck disable=SC2016  # what stand-ins expand
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=$(realpath "$1") tests=$(realpath "$2") pawl=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/out"

fail() {
  echo "gpu_check_test: $*" >&2
  cat "$work/said" >&2
  exit 1
}
# stub FOLDER/NAME, a script from standard input
stub() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
stub "$work/bin/nvidia-smi" <<<'case "$1" in *compute_cap*) echo 9.0; echo 9.0 ;; *) echo "NVIDIA Stand-in/1"; echo "another" ;; esac'
stub "$work/bin/nvcc" <<<'echo "Cuda compilation tools, release 13.0, V13.0.88"'
stub "$work/bin/cmake" <<<'[[ "$*" != *--build* || -z ${BROKEN_BUILD:-} ]] || { echo "no rule"; exit 2; }'
stub "$work/bin/python3" <<<'exit 1'  # no torch
stub "$work/bin/compute-sanitizer" <<'END'
while [[ $1 == --tool || $1 == --error-exitcode ]]; do shift 2; done
[[ -z ${REFUSED:-} ]] || { echo "[  SKIPPED ] 5 tests, listed below:"; exit 0; }
exec "$@"
END
stub "$work/build/bin/gpu_bench" <<END
if [[ -n \${NO_BENCH:-} ]]; then
  printf '{\n  "results": [1],\n  "checks": {\n    "so": "so"\n  }\n}\n' >"\$2"
  exit 0
fi
exec "$bench" --rehearse "\$@"
END
stub "$work/build/bin/cuda_device_test" <<END
[[ -z \${BROKEN_TESTS:-} ]] || exit 1
exec "$tests" --gtest_brief=1 --gtest_filter=LayerTest.*
END
stub "$work/build/bin/pawl" <<END
exec "$pawl" "\${@/#cuda/cpu}"
END

# check EXPECTED_CODE [VARIABLE=VALUE ...]
check() {
  local expected=$1 code=0
  shift
  env PATH="$work/bin:$PATH" PAWL_GPU_BUILD="$work/build" "$@" scripts/gpu_check.sh "$work/out" >"$work/said" 2>&1 || code=$?
  [[ $code -eq $expected ]] || fail "exit code $code, not $expected, with $*"
}
says() {
  grep -qF "$1" "$work/said" || fail "does not say: $1"
}
figures=$work/out/NVIDIA-Stand-in-1.json
# is NAME WORD: of the checks in the file of figures
is() {
  python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
assert found["results"], "no results"
assert found["checks"].get(sys.argv[2]) == sys.argv[3], found["checks"]' "$figures" "$1" "$2" || fail "$1 is not $2"
}

check 0
says "== NVIDIA Stand-in/1, compute capability 90, CUDA 13.0"
says "CUDA tests: passed"
says "verify 8 rows / decode step, 8B"
says "racecheck, models: passed"
says "== all passed"
cmp "$work/said" "$work/out/NVIDIA-Stand-in-1.log" || fail "the log is not what was said"
is "CUDA tests" passed
is "greedy tokens of the shipped model equal the CPU's" passed
is "memcheck, kernels" passed
[[ $(find "$work/out" -type f | wc -l) -eq 2 ]] || fail "left more than two files: $(ls "$work/out")"

# A sanitizer that lets no test see a device has found nothing out.
check 1 NO_BENCH=1 REFUSED=1
says "racecheck, kernels: FAILED, exit code 8"
is "memcheck, models" failed

check 1 NO_BENCH=1 BROKEN_TESTS=1
says "CUDA tests: FAILED, exit code 1"
says "something FAILED"

check 1 BROKEN_BUILD=1
says "build: FAILED, exit code 2"
[[ ! -e $figures ]] || fail "figures of an earlier run are left"

# Without time: each thing that does not fit is named.
check 1 PAWL_GPU_SECONDS=3
says "configure: FAILED, no time is left for it"

stub "$work/bin/nvidia-smi" <<<'exit 9'
check 77
says "gpu_check.sh: skipped, no NVIDIA device answers (nvidia-smi)"
echo "gpu_check_test: passed"
