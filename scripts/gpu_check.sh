#!/usr/bin/env bash
# Everything about the CUDA backend that needs a device: builds, runs the CUDA tests, measures, runs the tests under
# compute-sanitizer where there is one, writes the figures. Without a device: says so, exit code 77.
#
#   scripts/gpu_check.sh [OUTDIR]           default: bench/results. Under ten minutes, the build counted.
#   scripts/gpu_check.sh --carry [FOLDER]   on a machine with the packages: copies what the build needs of them
#                                           (GoogleTest, fmt, CLI11, nlohmann-json; headers and static libraries) to
#                                           FOLDER, by default carried/, for a device machine that has no packages
#
# OUTDIR/<gpu>.json has the ratios, OUTDIR/<gpu>.log the output of all of it. The build folder is build-gpu, for the
# device's own architecture alone (PAWL_GPU_BUILD names another). PAWL_GPU_SECONDS: of all of it, default 585; what does not
# fit into it is named and counts as failed. Needs cmake, a C++20 compiler and nvcc; ninja or make.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
total=${PAWL_GPU_SECONDS:-585}
build=${PAWL_GPU_BUILD:-build-gpu}
carried=carried

say() { echo "gpu_check.sh: $*" >&2; }

carry() { # FOLDER
  local to=$1/usr arch=lib/x86_64-linux-gnu item
  rm -rf "$to"
  mkdir -p "$to/include" "$to/$arch/cmake" "$to/share/cmake"
  for item in gtest fmt CLI nlohmann; do
    [[ -d /usr/include/$item ]] || { say "/usr/include/$item is missing; scripts/install_deps.sh installs it"; return 1; }
    cp -r "/usr/include/$item" "$to/include/"
  done
  for item in libgtest.a libgtest_main.a; do
    [[ -f /usr/$arch/$item ]] || { say "/usr/$arch/$item is missing"; return 1; }
    cp "/usr/$arch/$item" "$to/$arch/"
  done
  # Their own CMake files also name what is not carried; these name what is.
  mkdir -p "$to/$arch/cmake/GTest" "$to/share/cmake/fmt" "$to/share/cmake/CLI11" "$to/share/cmake/nlohmann_json"
  # shellcheck disable=SC2016  # CMake's variables, not the shell's
  {
    static='add_library(%s STATIC IMPORTED)\nset_target_properties(%s PROPERTIES IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/../../%s" INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../../../../include")\n'
    headers='add_library(%s INTERFACE IMPORTED)\nset_target_properties(%s PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../../../include")\n'
    # shellcheck disable=SC2059
    {
      { printf "$static" GTest::gtest GTest::gtest libgtest.a; printf "$static" GTest::gtest_main GTest::gtest_main libgtest_main.a; } >"$to/$arch/cmake/GTest/GTestConfig.cmake"
      printf "$headers" fmt::fmt fmt::fmt >"$to/share/cmake/fmt/fmt-config.cmake"
      printf "$headers" CLI11::CLI11 CLI11::CLI11 >"$to/share/cmake/CLI11/CLI11Config.cmake"
      printf "$headers" nlohmann_json::nlohmann_json nlohmann_json::nlohmann_json >"$to/share/cmake/nlohmann_json/nlohmann_jsonConfig.cmake"
    }
    echo 'target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)' >>"$to/share/cmake/fmt/fmt-config.cmake"
    echo 'target_link_libraries(GTest::gtest INTERFACE pthread)' >>"$to/$arch/cmake/GTest/GTestConfig.cmake"
  }
  printf 'set(PACKAGE_VERSION "3.11.0")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n' \
    >"$to/share/cmake/nlohmann_json/nlohmann_jsonConfigVersion.cmake"
  du -sh "$1" | sed 's/^/carried: /'
}

case "${1:-}" in
  -h | --help) sed -n '2,14s/^# \{0,1\}//p' scripts/gpu_check.sh; exit 0 ;;
  --carry) carry "${2:-$carried}"; exit ;;
  -*) say "unknown option '$1' (--help tells what there is)"; exit 2 ;;
esac
out=${1:-bench/results}

ask() { # FIELD: of the first device
  nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null | sed -n 1p
}
if ! command -v nvidia-smi >/dev/null 2>&1 || ! name=$(ask name) || [[ -z $name ]]; then
  say "skipped, no NVIDIA device answers (nvidia-smi)"
  exit 77
fi
for folder in /usr/local/cuda/bin /usr/local/cuda-*/bin; do
  [[ ! -d $folder ]] || PATH=$PATH:$folder
done
for tool in cmake nvcc; do
  command -v "$tool" >/dev/null 2>&1 || { say "$tool is missing, so nothing can be built"; exit 1; }
done
capability=$(ask compute_cap | tr -d '. ')
if [[ ! $capability =~ ^[0-9]+$ ]]; then
  say "nvidia-smi does not tell the compute capability ('$capability')"
  exit 1
fi
gpu=$(tr ' /' '--' <<<"$name" | tr -s '-')
mkdir -p "$out"
out=$(cd "$out" && pwd)
log=$out/$gpu.log
figures=$out/$gpu.json
rm -f "$figures" # of an earlier run
exec > >(tee "$log") 2>&1
logger=$!
# The last lines are in the log, too, before the caller goes on.
# shellcheck disable=SC2317  # called by the trap
finish() {
  exec >&- 2>&-
  for _ in {1..50}; do
    kill -0 "$logger" || break
    sleep 0.1
  done || true
}
trap finish EXIT
echo "== $name, compute capability $capability, $(nvcc --version | sed -n 's/.*release \([^,]*\).*/CUDA \1/p')"

# cuBLASLt may be no part of the toolkit but of a Python package (nvidia-cublas), which is no place that compilers and
# loaders look at.
cublas_from_python() {
  local toolkit folders
  toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  if [[ -e $toolkit/include/cublasLt.h ]] && compgen -G "/usr/local/cuda/lib64/libcublasLt.so.*" >/dev/null; then return; fi
  folders=$(python3 -c '
import glob, os, nvidia
for pattern in ("*/include/cublasLt.h", "*/lib/libcublasLt.so.*"):
    found = [path for root in nvidia.__path__ for path in sorted(glob.glob(os.path.join(root, pattern)))]
    print(os.path.dirname(found[-1]) if found else "")' 2>/dev/null) || folders=
  echo "cuBLASLt is not all in $toolkit; of the Python packages: ${folders//$'\n'/, }"
  [[ -n $folders ]] || return 0
  if [[ ! -e $toolkit/include/cublasLt.h ]]; then
    CPLUS_INCLUDE_PATH=${CPLUS_INCLUDE_PATH:+$CPLUS_INCLUDE_PATH:}$(sed -n 1p <<<"$folders")
    export CPLUS_INCLUDE_PATH
  fi
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(sed -n 2p <<<"$folders")
  export LD_LIBRARY_PATH
}
cublas_from_python

left() { echo $((total - SECONDS)); }
checked=() # for the file of figures
status=0
# Adds a line to the checks of the file of figures, where gpu_bench has written one.
record() { # NAME WORD
  [[ ! -f $figures ]] || sed -i "s|^  \"checks\": {\$|&\n    \"$1\": \"$2\",|" "$figures"
}
# Runs a command within SECONDS, or what is left, and says how it went.
check() { # NAME SECONDS COMMAND...
  local name=$1 limit=$2 begin=$SECONDS result=0 have
  shift 2
  have=$(left)
  ((limit < have)) || limit=$have
  if ((limit < 5)); then
    echo "$name: FAILED, no time is left for it"
    checked+=(--checked "$name=no time")
    status=1
    return
  fi
  timeout "$limit" "$@" >"$out/step.log" 2>&1 || result=$?
  if [[ $result -eq 0 ]]; then
    echo "$name: passed ($((SECONDS - begin)) s)"
    checked+=(--checked "$name=passed")
  else
    [[ $result -ne 124 ]] || echo "$name: more than $limit s"
    echo "$name: FAILED, exit code $result"
    tail -40 "$out/step.log"
    checked+=(--checked "$name=failed")
    status=1
  fi
  rm -f "$out/step.log"
}

echo "== build"
# Warnings are for those who write the code: a compiler that knows others is no failure of the device.
options=(-DCMAKE_BUILD_TYPE=Release -DPAWL_CUDA=ON -DPAWL_GPU_CHECK=ON -DPAWL_BUILD_C=OFF -DPAWL_INSTALL=OFF -DPAWL_WERROR=OFF
  -DCMAKE_CUDA_ARCHITECTURES="$capability-real" -DCMAKE_CUDA_COMPILER="$(command -v nvcc)")
if command -v ninja >/dev/null 2>&1; then options+=(-G Ninja); fi
if [[ -d $carried/usr ]]; then options+=(-DCMAKE_PREFIX_PATH="$PWD/$carried/usr"); fi
if command -v ccache >/dev/null 2>&1; then
  options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
check "configure" 60 cmake -S . -B "$build" "${options[@]}"
[[ $status -eq 0 ]] || exit 1
check "build" 300 cmake --build "$build" -j "$(nproc)" --target cuda_device_test gpu_bench pawl
[[ $status -eq 0 ]] || exit 1
checked=()

echo "== tests"
test=$build/bin/cuda_device_test
# The tests pass over what they have no device for, which is a failure here: 8.
cat >"$out/run_tests" <<'END'
"$@" >"$0.log" 2>&1 || { result=$?; cat "$0.log"; exit "$result"; }
cat "$0.log"
if grep -q 'SKIPPED' "$0.log"; then echo "tests were skipped"; exit 8; fi
grep -Eq '^\[==========\] [1-9][0-9]* tests? from' "$0.log" || { echo "no test ran"; exit 8; }
END
check "CUDA tests" 150 bash "$out/run_tests" "$test" --gtest_brief=1
# shellcheck disable=SC2317  # called by the shell that check starts
same_tokens() { # the shipped model, on the device beside the CPU
  local on_cpu on_gpu prompt="Invoice 7 from Acme, 30 EUR"
  on_cpu=$("$build/bin/pawl" generate --prompt "$prompt" --max-tokens 60 --device cpu) || return 1
  on_gpu=$("$build/bin/pawl" generate --prompt "$prompt" --max-tokens 60 --device cuda --kv-dtype fp32) || return 1
  [[ $on_cpu == "$on_gpu" ]] && return
  printf 'cpu:  %s\ncuda: %s\n' "$on_cpu" "$on_gpu"
  return 1
}
export build
export -f same_tokens
check "greedy tokens of the shipped model equal the CPU's" 30 bash -c same_tokens

# Under the sanitizers, side by side: every kernel on the smaller cases, the whole forward pass for a few models. The
# figures are measured before, with the device to themselves.
sanitize() {
  local sanitizer kernels models tool pids=() begin=$SECONDS limit i=0 names=()
  sanitizer=$(command -v compute-sanitizer || true)
  if [[ -z $sanitizer ]]; then
    echo "compute-sanitizer: FAILED, not found"
    record compute-sanitizer "not found"
    status=1
    return
  fi
  kernels='MatMulTest.*:MaskedRowsTest.*:LayerTest.*:AttentionTest.*:HeadTest.*:ProcessTest.*'
  models='All/FamilyTest.*/llama_fp32_tied:TransformerTest.SampledTokens*:TransformerTest.FilteredTokens*'
  limit=$(($(left) - 5))
  if ((limit < 20)); then
    echo "compute-sanitizer: FAILED, no time is left for it"
    record compute-sanitizer "no time"
    status=1
    return
  fi
  for tool in memcheck racecheck; do
    for filter in "$kernels" "$models"; do
      cp "$out/run_tests" "$out/run_tests.$i"
      timeout "$limit" bash "$out/run_tests.$i" "$sanitizer" --tool "$tool" --error-exitcode 9 "$test" --gtest_brief=1 \
        "--gtest_filter=$filter" >"$out/sanitizer.$i" 2>&1 &
      pids+=($!)
      names+=("$tool, $([[ $filter == "$kernels" ]] && echo kernels || echo models)")
      i=$((i + 1))
    done
  done
  for i in "${!pids[@]}"; do
    local result=0
    wait "${pids[i]}" || result=$?
    if [[ $result -eq 0 ]]; then
      echo "${names[i]}: passed (within $((SECONDS - begin)) s)"
      record "${names[i]}" passed
    else
      [[ $result -ne 124 ]] || echo "${names[i]}: more than $limit s"
      echo "${names[i]}: FAILED, exit code $result"
      record "${names[i]}" failed
      tail -40 "$out/sanitizer.$i"
      status=1
    fi
    rm -f "$out/sanitizer.$i" "$out/run_tests.$i"*
  done
}

echo "== figures"
have=$(left)
# A third of what is left is for the sanitizers.
if ((have < 15)); then
  echo "gpu_bench: FAILED, no time is left for it"
  status=1
elif ! timeout $((have * 2 / 3)) "$build/bin/gpu_bench" --json "$figures" "${checked[@]}"; then
  echo "gpu_bench: FAILED; the file has what was measured"
  status=1
fi
if [[ ! -f $figures ]]; then
  echo "peers' mask kernels: not measured (there is nothing to put beside them)"
elif python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  timeout 40 python3 bench/peers/gpu_masks.py "$figures" || status=1
else
  echo "peers' mask kernels: not measured (no torch with CUDA)"
fi

echo "== sanitizers"
sanitize
rm -f "$out/run_tests"*
echo "== $([[ $status -eq 0 ]] && echo "all passed" || echo "something FAILED") after $SECONDS s; figures: $figures"
exit "$status"
