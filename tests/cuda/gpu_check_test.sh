#!/usr/bin/env bash
# scripts/gpu_check.sh with stand-ins: a device and tools that say they are there, the benchmarks and some of the tests on
# the host emulation. What it prints, the files it writes and its exit code, when all goes well and when it does not, with
# a build and with a bundle. The stand-in for the build leaves programs where the real build has them.
#
#   gpu_check_test.sh BUILD_FOLDER GPU_BENCH_REHEARSAL KERNEL_BENCH_REHEARSAL CUDA_EMULATION_TEST PAWL
# shellcheck disable=SC2016  # what stand-ins expand
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
real_build=$(realpath "$1") bench=$(realpath "$2") kernels=$(realpath "$3") tests=$(realpath "$4") pawl=$(realpath "$5")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/out"

fail() {
  echo "gpu_check_test: $*" >&2
  cat "$work/said" >&2
  exit 1
}
# stub FILE, a script from standard input
stub() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
nvidia_smi() {
  stub "$work/bin/nvidia-smi" <<<'case "$1" in *compute_cap*) echo 9.0; echo 9.0 ;; *) echo "NVIDIA Stand-in/1"; echo "another" ;; esac'
}
nvidia_smi
stub "$work/bin/nvcc" <<<'echo "Cuda compilation tools, release 13.0, V13.0.88"'
stub "$work/bin/cmake" <<<"echo \"\$*\" >>'$work/cmake.log'
[[ \"\$*\" != *--build* || -z \${BROKEN_BUILD:-} ]] || { echo 'no rule'; exit 2; }"
stub "$work/bin/python3" <<<'exit 1'  # no torch
stub "$work/bin/ncu" <<<'echo "profiled: $*"'
stub "$work/bin/compute-sanitizer" <<'END'
while [[ $1 == --tool || $1 == --error-exitcode ]]; do shift 2; done
[[ -z ${REFUSED:-} ]] || { echo "[  SKIPPED ] 5 tests, listed below:"; exit 0; }
exec "$@"
END
# programs FOLDER_OF_TESTS PAWL: what a build or a bundle has.
programs() {
  stub "$1/gpu_bench" <<END
if [[ \$1 != --json ]]; then exit 2; fi
if [[ -n \${NO_DEVICE:-} ]]; then echo "gpu_bench: no usable device: none" >&2; exit 77; fi
if [[ -n \${NO_BENCH:-} ]]; then
  printf '{\n  "results": [1],\n  "checks": {\n    "so": "so"\n  }\n}\n' >"\$2"
  exit 0
fi
exec "$bench" --rehearse "\$@"
END
  stub "$1/kernel_bench" <<END
[[ \$1 != --list ]] || exit 0
if [[ -n \${NO_DEVICE:-} ]]; then echo "kernel_bench: no usable device: none" >&2; exit 77; fi
if [[ -n \${NO_BENCH:-} ]]; then
  printf '{\n  "slowest": [\n    "matmul 8b down bf16, 1 rows",\n    "top_k 8b, 1 rows"\n  ]\n}\n' >"\$2"
  exit 0
fi
[[ "\$*" != *--profile* ]] || exec "$kernels" --rehearse "\$@"
exec "$kernels" --rehearse --only "top_k toy, 1 rows" "\$@"
END
  stub "$1/cuda_device_test" <<END
[[ \$1 != --gtest_list_tests ]] || exit 0
[[ -z \${BROKEN_TESTS:-} ]] || exit 1
if [[ -n \${NO_DEVICE:-} ]]; then
  printf 'Skipped\nno usable device: none\n[  SKIPPED ] 5 tests, listed below:\n'
  exit 0
fi
exec "$tests" --gtest_brief=1 --gtest_filter=LayerTest.*
END
  stub "$2" <<END
[[ -z \${NO_DEVICE:-} || "\$*" != *cuda* ]] || { echo "pawl generate: cuda: none"; exit 2; }
exec "$pawl" "\${@/#cuda/cpu}"
END
}
relative() { realpath --relative-to="$real_build" "$1"; }
programs "$work/build/$(dirname "$(relative "$tests")")" "$work/build/$(relative "$pawl")"

# check EXPECTED_CODE [VARIABLE=VALUE ...]
check() {
  local expected=$1 code=0
  shift
  rm -f "$work/cmake.log"
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
# has FILE TEXT: of the logs
has() {
  tar -xzOf "$work/out/NVIDIA-Stand-in-1-logs.tar.gz" "logs/$1" | grep -qF -- "$2" || fail "logs/$1 does not have: $2"
}

check 0
says "== NVIDIA Stand-in/1, compute capability 90, CUDA 13.0"
says "CUDA tests: passed"
says "verify 8 rows / decode step, 8B"
says "racecheck, models: passed"
says "== all passed"
cmp "$work/said" "$work/out/NVIDIA-Stand-in-1.log" || fail "the log is not what was said"
is "CUDA tests" passed
is "greedy tokens of the shipped models equal the CPU's" passed
is "kernel figures" passed
is "memcheck, MatMulTest" passed
[[ $(find "$work/out" -type f | wc -l) -eq 5 ]] || fail "did not leave five files: $(ls "$work/out")"
has kernel_bench.log "1 cases, 0 failed, 0 left out"
has profile.0.log "--only top_k toy, 1 rows --profile"
grep -qF "kernel figures: passed" "$work/out/NVIDIA-Stand-in-1.txt" || fail "no summary"

# A sanitizer that lets no test see a device has found nothing out.
check 1 NO_BENCH=1 REFUSED=1
says "racecheck, MatMulTest: FAILED, exit code 8"
says "memcheck, models: FAILED, exit code 8"
has profile.1.log "--only top_k 8b, 1 rows --profile"

check 1 NO_BENCH=1 BROKEN_TESTS=1
says "CUDA tests: FAILED, exit code 1"
says "something FAILED"

check 1 BROKEN_BUILD=1
says "build: FAILED, exit code 2"
[[ ! -e $figures ]] || fail "figures of an earlier run are left"

# Without time: each thing that does not fit is named.
check 1 PAWL_GPU_SECONDS=3
says "configure: FAILED, no time is left for it"

# A bundle: as an archive, as a folder.
programs "$work/made/pawl-gpu-sm_90/bin" "$work/made/pawl-gpu-sm_90/bin/pawl"
mkdir -p "$work/made/pawl-gpu-sm_90/models" "$work/archive"
cp -r models/tiny-extract models/tiny-extract-diffusion "$work/made/pawl-gpu-sm_90/models/"
printf 'capability 90\nmade from a test\n' >"$work/made/pawl-gpu-sm_90/bundle.txt"
tar -C "$work/made" -czf "$work/archive/pawl-gpu-sm_90.tar.gz" pawl-gpu-sm_90
for bundle in "$work/archive" "$work/made/pawl-gpu-sm_90"; do
  check 0 NO_BENCH=1 PAWL_GPU_PREBUILT="$bundle"
  says "bundle: made from a test"
  says "CUDA tests: passed"
  says "== all passed"
  [[ ! -e $work/cmake.log ]] || fail "something was built, in spite of $bundle"
done
# One that is not there, not for this device, or does not start: a build.
check 0 NO_BENCH=1 PAWL_GPU_PREBUILT="$work/nowhere"
says "so everything is built"
[[ -e $work/cmake.log ]] || fail "nothing was built"
sed -i 's/90/80/' "$work/made/pawl-gpu-sm_90/bundle.txt"
check 0 NO_BENCH=1 PAWL_GPU_PREBUILT="$work/made/pawl-gpu-sm_90"
says "bundle: for compute capability 80, and this device has 90, so everything is built"
[[ -e $work/cmake.log ]] || fail "nothing was built"
mv "$work/made/pawl-gpu-sm_90/bin/pawl" "$work/pawl"
stub "$work/made/pawl-gpu-sm_90/bin/pawl" <<<'echo "version GLIBC_2.99 not found" >&2; exit 1'
check 0 NO_BENCH=1 PAWL_GPU_PREBUILT="$work/made/pawl-gpu-sm_90"
says "bundle: its programs do not start here, so everything is built"
[[ -e $work/cmake.log ]] || fail "nothing was built"
mv "$work/pawl" "$work/made/pawl-gpu-sm_90/bin/pawl"

# A bundle is made in a folder of any name, with the real compiler and a precompiled header of a carried package; the
# stand-in for the build compiles as it was configured. No program has the folder's path, and each starts elsewhere.
clone="$work/a clone, fresh"
mkdir -p "$clone/tests/data" "$clone/models" "$clone/bench/peers" "$work/elsewhere"
cp -r scripts "$clone/"
cp bench/peers/gpu_masks.py "$clone/bench/peers/"
cp -r tests/data/models "$clone/tests/data/"
cp -r models/tiny-extract models/tiny-extract-diffusion "$clone/models/"
stub "$work/bin/ccache" <<<'exit 1'
stub "$work/bin/cmake" <<'END'
set -e
if [[ $1 != --build ]]; then
  : >flags
  for option in "$@"; do
    case $option in
      -DCMAKE_CXX_FLAGS=*) echo "${option#*=}" >flags ;;
      -DCMAKE_PREFIX_PATH=*) packages=${option#*=} ;;
    esac
  done
  echo "$packages" >packages
  exit
fi
folder=$2 packages=$(cat packages)
mkdir -p "$folder/bin"
cat >"$packages/include/where.h" <<'HEADER'
inline const char* WhereOfHeader() { return __FILE__; }
HEADER
echo '#include "where.h"' >"$folder/all.h"
cat >"$folder/program.cc" <<'SOURCE'
#include <cstdio>
#include <cstring>
int main(int count, char** arguments) {
  std::printf("%s %s\n", WhereOfHeader(), __FILE__);
  if (count > 1 && std::strncmp(arguments[1], "--help", 6) == 0) return 2;
  if (count > 1 && (std::strcmp(arguments[1], "--gtest_list_tests") == 0 || std::strncmp(arguments[1], "--", 2) != 0 ||
                    std::strcmp(arguments[1], "--list") == 0 || std::strcmp(arguments[1], "--version") == 0)) return 0;
  return 77;
}
SOURCE
# As CMake's generators do it: the flags are a part of a command line.
run() { eval "c++ $(cat flags) $*"; }
run "-isystem '$packages/include' -x c++-header '$PWD/$folder/all.h' -o '$folder/all.h.gch'"
run "-isystem '$packages/include' -include '$PWD/$folder/all.h' '$PWD/$folder/program.cc' -o '$folder/pawl'"
for program in cuda_device_test gpu_bench kernel_bench; do cp "$folder/pawl" "$folder/bin/$program"; done
END
if PATH="$work/bin:$PATH" "$clone/scripts/gpu_check.sh" --bundle "$work/elsewhere" >"$work/said" 2>&1; then
  says "pawl-gpu-sm_90.tar.gz"
else
  fail "no bundle"
fi
tar -C "$work/elsewhere" -xzf "$work/elsewhere/pawl-gpu-sm_90.tar.gz"
rm -rf "$clone"
for program in cuda_device_test gpu_bench kernel_bench pawl; do
  unpacked="$work/elsewhere/pawl-gpu-sm_90/bin/$program"
  ! grep -qaF "a clone, fresh" "$unpacked" || fail "$program has the path of the folder in it"
  [[ $("$unpacked" --version) == "build-bundle-carried/usr/include/where.h build-bundle/program.cc" ]] || fail "$program: $("$unpacked" --version)"
done
rm "$work/bin/ccache"
stub "$work/bin/cmake" <<<"echo \"\$*\" >>'$work/cmake.log'"

# No device: one line where things would have to be built, and a line for each part of a bundle.
stub "$work/bin/nvidia-smi" <<<'exit 9'
check 77
says "gpu_check.sh: skipped, no NVIDIA device answers (nvidia-smi)"
check 77 NO_DEVICE=1 PAWL_GPU_PREBUILT="$work/made/pawl-gpu-sm_90"
for name in environment "CUDA tests" "greedy tokens of the shipped models equal the CPU's" "engine figures" "kernel figures" \
  compute-sanitizer profiles; do
  says "$name: skipped, "
done
[[ ! -e $work/cmake.log ]] || fail "something was built without a device"
[[ -s $work/out/no-device.txt ]] || fail "no summary without a device"
check 77 PAWL_GPU_PREBUILT="$work/nowhere"
says "build: skipped, no NVIDIA device answers (nvidia-smi)"
[[ ! -e $work/cmake.log ]] || fail "something was built without a device"
echo "gpu_check_test: passed"
