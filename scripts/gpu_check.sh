#!/usr/bin/env bash
# Everything about the CUDA backend that needs a device, in one call: the CUDA tests, the shipped model's tokens next to
# the CPU's, the engine's and each kernel's figures, compute-sanitizer, profiles of the three kernels that lose most.
# Without a device: each part says so, exit code 77.
#
#   scripts/gpu_check.sh [OUTDIR]           default: bench/results. Under nine minutes. Builds what it runs (build-gpu), or
#                                           takes it from where PAWL_GPU_PREBUILT names a bundle
#   scripts/gpu_check.sh --bundle [FOLDER]  on a machine with nvcc, with or without a device: makes FOLDER (by default
#                                           gpu_bundle/) with one archive of stripped programs for compute capability 9.0,
#                                           what their tests read, and this script
#   scripts/gpu_check.sh --carry [FOLDER]   on a machine with the packages: copies what the build needs of them
#                                           (GoogleTest, fmt, CLI11, nlohmann-json; headers and static libraries) to
#                                           FOLDER, by default carried/, for a device machine that has no packages
#
# OUTDIR gets GPU.json (the engine's ratios and all checks), GPU-kernels.json, GPU.log (what was printed), GPU.txt (a line
# for each part) and GPU-logs.tar.gz (every part's own output, the machine, profiles), GPU being the device's name.
#
# PAWL_GPU_PREBUILT   a folder with a bundle's archive, or an unpacked one: nothing is configured or built, unless its
#                     programs do not start here or are not for this device
# PAWL_GPU_BUILD      the build folder; default build-gpu, for the device's own architecture alone
# PAWL_GPU_SECONDS    for all of it, the build counted; default 535. What does not fit is named and counts as failed
#
# A build needs cmake, a C++20 compiler and nvcc; ninja or make.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
total=${PAWL_GPU_SECONDS:-535}
build=${PAWL_GPU_BUILD:-build-gpu}
prebuilt=${PAWL_GPU_PREBUILT:-}
carried=carried
programs=(cuda_device_test gpu_bench kernel_bench pawl)

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

find_nvcc() {
  local folder
  for folder in /usr/local/cuda/bin /usr/local/cuda-*/bin; do
    [[ ! -d $folder ]] || PATH=$PATH:$folder
  done
  for tool in cmake nvcc; do
    command -v "$tool" >/dev/null 2>&1 || { say "$tool is missing, so nothing can be built"; return 1; }
  done
}

# Configures a build of what this script runs.
configure() { # BUILD_FOLDER ARCHITECTURES [OPTION...]
  local folder=$1 architectures=$2
  shift 2
  # Warnings are for those who write the code: a compiler that knows others is no failure of the device.
  local options=(-DCMAKE_BUILD_TYPE=Release -DPAWL_CUDA=ON -DPAWL_GPU_CHECK=ON -DPAWL_BUILD_C=OFF -DPAWL_INSTALL=OFF
    -DPAWL_WERROR=OFF -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DCMAKE_CUDA_COMPILER="$(command -v nvcc)")
  if command -v ninja >/dev/null 2>&1; then options+=(-G Ninja); fi
  if command -v ccache >/dev/null 2>&1; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  cmake -S . -B "$folder" "${options[@]}" "$@"
}

# Where a build leaves a program.
built() { # BUILD_FOLDER PROGRAM
  if [[ $2 == pawl ]]; then echo "$1/pawl"; else echo "$1/bin/$2"; fi
}

# The option for compilers that lets the paths in programs (__FILE__, also of the carried packages' headers, also in
# precompiled headers) begin at the top of the sources: these programs go to other machines.
from_the_top() { # c or cuda
  local top before=
  if [[ $1 == cuda ]]; then
    # nvcc takes options of the host's compiler apart at commas and spaces.
    [[ ! $PWD$(pwd -P) =~ [[:space:],] ]] || return 0
    before=-Xcompiler=
  fi
  for top in "$PWD" "$(pwd -P)"; do printf '%s"-ffile-prefix-map=%s/=" ' "$before" "$top"; done
}

# The libraries that programs of a bundle may ask for: those of every Linux with glibc.
plain_libraries='linux-vdso|libc|libm|libdl|librt|libpthread|ld-linux-x86-64'
bundle() { # FOLDER
  local to=$1 folder=build-bundle stage name=pawl-gpu-sm_90 program other bytes maps
  find_nvcc || return 1
  mkdir -p "$to" || return 1
  # fmt as headers, GoogleTest as archives: nothing that the device machine would have to have.
  carry "$folder-carried" || return 1
  maps=$(from_the_top c)
  configure "$folder" 90-real -DPAWL_WERROR=ON "-DCMAKE_PREFIX_PATH=$PWD/$folder-carried/usr" \
    "-DCMAKE_C_FLAGS=${CFLAGS:-} $maps" "-DCMAKE_CXX_FLAGS=${CXXFLAGS:-} $maps" \
    "-DCMAKE_CUDA_FLAGS=${CUDAFLAGS:-} $(from_the_top cuda)" \
    "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc" || return 1
  cmake --build "$folder" -j "$(nproc)" --target "${programs[@]}" || return 1
  stage=$(mktemp -d)
  mkdir -p "$stage/$name/bin" "$stage/$name/scripts" "$stage/$name/bench/peers" "$stage/$name/tests/data" "$stage/$name/models"
  for program in "${programs[@]}"; do
    strip -o "$stage/$name/bin/$program" "$(built "$folder" "$program")" || return 1
    other=$(ldd "$stage/$name/bin/$program" | grep -Ev "^\s*(/\S*/)?($plain_libraries)[.]so" || true)
    if [[ -n $other ]]; then
      say "$program asks for libraries that a device machine may not have: $other"
      return 1
    fi
    # The command looks for its model next to itself first.
    if [[ $program != pawl ]] && grep -qaF "$PWD" "$stage/$name/bin/$program"; then
      say "$program has the path of this folder in it"
      return 1
    fi
  done
  cp scripts/gpu_check.sh "$stage/$name/scripts/"
  cp bench/peers/gpu_masks.py "$stage/$name/bench/peers/"
  cp -r tests/data/models "$stage/$name/tests/data/"
  cp -r models/tiny-extract models/tiny-extract-diffusion "$stage/$name/models/"
  {
    echo "capability 90"
    echo "made from $(git describe --always --dirty 2>/dev/null || echo "sources without a history")"
    nvcc --version | sed -n 's/.*release \([^,]*\).*/CUDA \1/p'
  } >"$stage/$name/bundle.txt"
  tar -C "$stage" -cf - "$name" | gzip -9 >"$to/$name.tar.gz"
  # Each program starts where it was unpacked.
  rm -rf "${stage:?}/$name"
  tar -C "$stage" -xzf "$to/$name.tar.gz"
  starts "$stage/$name" || { say "the programs of the bundle do not start"; return 1; }
  rm -rf "$stage"
  bytes=$(stat -c %s "$to/$name.tar.gz")
  echo "$to/$name.tar.gz: $((bytes / 1024)) KiB"
  if ((bytes > 40 << 20)); then say "the archive has more than 40 MiB"; return 1; fi
}

# Whether all programs of an unpacked bundle start here.
starts() { # FOLDER
  local program
  for program in "${programs[@]}"; do
    case $program in
      cuda_device_test) set -- "$1" --gtest_list_tests ;;
      kernel_bench) set -- "$1" --list ;;
      pawl) set -- "$1" --version ;;
      *) set -- "$1" --help-that-there-is-not ;; # 2: usage
    esac
    local result=0
    "$1/bin/$program" "$2" >/dev/null 2>&1 || result=$?
    [[ $result -eq 0 || ($program == gpu_bench && $result -eq 2) ]] || return 1
  done
}

case "${1:-}" in
  -h | --help) sed -n '2,/^set -euo/s/^# \{0,1\}//p' scripts/gpu_check.sh; exit 0 ;;
  --carry) carry "${2:-$carried}"; exit ;;
  --bundle) bundle "${2:-gpu_bundle}"; exit ;;
  -*) say "unknown option '$1' (--help tells what there is)"; exit 2 ;;
esac
out=${1:-bench/results}

ask() { # FIELD: of the first device
  nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null | sed -n 1p
}
device=
if command -v nvidia-smi >/dev/null 2>&1; then device=$(ask name) || device=; fi
capability=none
if [[ -z $device ]]; then
  if [[ -z $prebuilt ]]; then
    say "skipped, no NVIDIA device answers (nvidia-smi)"
    exit 77
  fi
else
  capability=$(ask compute_cap | tr -d '. ')
  if [[ ! $capability =~ ^[0-9]+$ ]]; then
    say "nvidia-smi does not tell the compute capability ('$capability')"
    exit 1
  fi
fi
gpu=$(tr ' /' '--' <<<"${device:-no-device}" | tr -s '-')
mkdir -p "$out"
out=$(cd "$out" && pwd)
log=$out/$gpu.log
figures=$out/$gpu.json
kernel_figures=$out/$gpu-kernels.json
rm -f "$figures" "$kernel_figures" "$out/$gpu.txt" "$out/$gpu-logs.tar.gz" # of an earlier run
work=$(mktemp -d)
logs=$work/logs
mkdir "$logs"
exec > >(tee "$log") 2>&1
logger=$!
# The last lines are in the log, too, before the caller goes on.
# shellcheck disable=SC2317  # called by the trap
finish() {
  tar -C "$work" -czf "$out/$gpu-logs.tar.gz" logs 2>/dev/null || true
  rm -rf "$work"
  exec >&- 2>&-
  for _ in {1..50}; do
    kill -0 "$logger" || break
    sleep 0.1
  done || true
}
trap finish EXIT

# cuBLASLt may be no part of the toolkit but of a Python package (nvidia-cublas), which is no place that compilers and
# loaders look at.
cublas_from_python() {
  local toolkit folders
  toolkit=/usr/local/cuda
  if command -v nvcc >/dev/null 2>&1; then toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")"); fi
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

# ---- Parts ----

left() { echo $((total - SECONDS)); }
checked=() # for the file of figures
status=0
devices=1
# A line for each part, on the terminal and in the summary.
tell() { # NAME TEXT
  echo "$1: $2"
  echo "$1: $2" >>"$out/$gpu.txt"
}
# Adds a line to the checks of the file of figures, where gpu_bench has written one.
record() { # NAME WORD
  checked+=(--checked "$1=$2")
  [[ ! -f $figures ]] || sed -i "s|^  \"checks\": {\$|&\n    \"$1\": \"$2\",|" "$figures"
}
# Runs a command within SECONDS, or what is left, and says how it went. Its output goes to the logs as FILE.
part() { # NAME FILE SECONDS COMMAND...
  local name=$1 file=$logs/$2.log limit=$3 begin=$SECONDS result=0 have
  shift 3
  have=$(left)
  ((limit < have)) || limit=$have
  if ((limit < 5)); then
    tell "$name" "FAILED, no time is left for it"
    record "$name" "no time"
    status=1
    return 1
  fi
  timeout "$limit" "$@" >"$file" 2>&1 || result=$?
  case $result in
    0)
      tell "$name" "passed ($((SECONDS - begin)) s)"
      record "$name" passed
      return 0
      ;;
    77)
      tell "$name" "skipped, $(tail -1 "$file" | sed 's/^[a-z_]*: //')"
      record "$name" "no device"
      devices=0
      return 0
      ;;
    124) tell "$name" "FAILED, more than $limit s" ;;
    *) tell "$name" "FAILED, exit code $result" ;;
  esac
  tail -40 "$file"
  record "$name" failed
  status=1
  return 1
}

# ---- What is run ----

source=prebuilt
if [[ -n $prebuilt ]]; then
  if [[ ! -d $prebuilt/bin ]]; then
    archive=$(compgen -G "$prebuilt/*.tar.gz" | head -1) || archive=
    if [[ -n $archive ]]; then
      mkdir "$work/bundle"
      tar -C "$work/bundle" -xzf "$archive"
      prebuilt=$(compgen -G "$work/bundle/*" | head -1)
    fi
  fi
  made_for=$(sed -n 's/^capability //p' "$prebuilt/bundle.txt" 2>/dev/null) || made_for=
  if [[ ! -d $prebuilt/bin ]]; then
    tell "bundle" "none in $PAWL_GPU_PREBUILT, so everything is built"
    source=build
  elif ! starts "$prebuilt"; then
    tell "bundle" "its programs do not start here, so everything is built"
    source=build
  elif [[ $capability != none && $capability != "$made_for" ]]; then
    tell "bundle" "for compute capability $made_for, and this device has $capability, so everything is built"
    source=build
  else
    tell "bundle" "$(sed 1d "$prebuilt/bundle.txt" | tr '\n' ' ')"
  fi
else
  source=build
fi
if [[ $source == build && -z $device ]]; then
  tell "build" "skipped, no NVIDIA device answers (nvidia-smi)"
  exit 77
fi
[[ $source == prebuilt ]] || find_nvcc || exit 1
echo "== ${device:-no device}, compute capability $capability, $(nvcc --version 2>/dev/null | sed -n 's/.*release \([^,]*\).*/CUDA \1/p')"
cublas_from_python

# shellcheck disable=SC2317  # called by part
environment() {
  uname -a
  sed -n 's/^model name.*: //p' /proc/cpuinfo | sort | uniq -c
  free -g || true
  nvidia-smi || true
  nvidia-smi -q || true
  nvcc --version || true
  python3 -c 'import torch; print("torch", torch.__version__, torch.cuda.is_available())' || true
  echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
  if [[ -z $device ]]; then
    echo "no NVIDIA device answers (nvidia-smi)"
    return 77
  fi
}
export -f environment
export device
part "environment" environment 30 bash -c environment || true

if [[ $source == build ]]; then
  echo "== build"
  export carried
  export -f configure
  # shellcheck disable=SC2016  # expanded by that shell
  part "configure" configure 60 bash -c \
    'if [[ -d $carried/usr ]]; then set -- "$@" "-DCMAKE_PREFIX_PATH=$PWD/$carried/usr"; fi; configure "$@"' \
    configure "$build" "$capability-real" || exit 1
  part "build" build 300 cmake --build "$build" -j "$(nproc)" --target "${programs[@]}" || exit 1
  at() { built "$build" "$1"; }
  data=$PWD
else
  at() { echo "$prebuilt/bin/$1"; }
  data=$(cd "$prebuilt" && pwd)
fi
test=$(at cuda_device_test)
checked=()

echo "== tests"
# The tests pass over what they have no device for, which is a failure where there is one: 8.
cat >"$work/run_tests" <<'END'
"$@" >"$0.log" 2>&1 || { result=$?; cat "$0.log"; exit "$result"; }
cat "$0.log"
if grep -q 'SKIPPED' "$0.log"; then
  if [[ -z $device ]]; then grep -o 'no usable device: .*' "$0.log" | head -1; exit 77; fi
  echo "tests were skipped"
  exit 8
fi
grep -Eq '^\[==========\] [1-9][0-9]* tests? from' "$0.log" || { echo "no test ran"; exit 8; }
END
part "CUDA tests" tests 150 bash "$work/run_tests" "$test" --gtest_brief=1 "--gtest_output=json:$logs/tests.json" || true
# shellcheck disable=SC2317  # called by the shell that part starts
same_tokens() { # a shipped model, on the device beside the CPU
  local on_cpu on_gpu errors result=0 prompt="Invoice 7 from Acme, 30 EUR"
  local common=(generate --model "$data/models/$1" --prompt "$prompt" --max-tokens "$2")
  on_cpu=$("$pawl" "${common[@]}" --device cpu) || return 1
  errors=$(mktemp)
  on_gpu=$("$pawl" "${common[@]}" --device cuda --kv-dtype fp32 2>"$errors") || result=$?
  cat "$errors"
  rm -f "$errors"
  [[ $result -eq 0 || -n $device ]] || return 77
  [[ $result -eq 0 && $on_cpu == "$on_gpu" ]] && return
  printf 'cpu:  %s\ncuda: %s\n' "$on_cpu" "$on_gpu"
  return 1
}
pawl=$(at pawl)
export data pawl
export -f same_tokens
# A canvas of more than 64 rows would be rounded to bf16.
part "greedy tokens of the shipped models equal the CPU's" tokens 30 \
  bash -c 'same_tokens tiny-extract 60 && same_tokens tiny-extract-diffusion 32' || true

echo "== sanitizers"
# In parallel, a process for each suite of kernel tests and one for the forward pass of a few models. Before the figures, which
# want the device to themselves.
sanitize() {
  local sanitizer suites models suite filter tool pids=() begin=$SECONDS limit i=0 names=()
  if [[ -z $device ]]; then
    tell "compute-sanitizer" "skipped, no NVIDIA device answers (nvidia-smi)"
    devices=0
    return
  fi
  sanitizer=$(command -v compute-sanitizer || true)
  if [[ -z $sanitizer ]]; then
    tell "compute-sanitizer" "FAILED, not found"
    record compute-sanitizer "not found"
    status=1
    return
  fi
  suites=(MatMulTest ExpertsTest MaskedRowsTest LayerTest AttentionTest HeadTest ProcessTest models)
  models='All/FamilyTest.*/llama_fp32_tied:TransformerTest.SampledTokens*:TransformerTest.FilteredTokens*:ExpertsModelTest.DrawnTokens*'
  # The figures come after.
  limit=$(($(left) * 2 / 5))
  ((limit < 200)) || limit=200
  if ((limit < 20)); then
    tell "compute-sanitizer" "FAILED, no time is left for it"
    record compute-sanitizer "no time"
    status=1
    return
  fi
  for tool in memcheck racecheck; do
    for suite in "${suites[@]}"; do
      filter="$suite.*"
      [[ $suite != models ]] || filter=$models
      cp "$work/run_tests" "$work/run_tests.$i"
      timeout "$limit" bash "$work/run_tests.$i" "$sanitizer" --tool "$tool" --error-exitcode 9 "$test" --gtest_brief=1 \
        "--gtest_filter=$filter" >"$logs/sanitizer.$i.log" 2>&1 &
      pids+=($!)
      names+=("$tool, $suite")
      i=$((i + 1))
    done
  done
  for i in "${!pids[@]}"; do
    local result=0
    wait "${pids[i]}" || result=$?
    if [[ $result -eq 0 ]]; then
      tell "${names[i]}" "passed (within $((SECONDS - begin)) s)"
      record "${names[i]}" passed
    else
      [[ $result -ne 124 ]] || echo "${names[i]}: more than $limit s"
      tell "${names[i]}" "FAILED, exit code $result"
      record "${names[i]}" failed
      tail -40 "$logs/sanitizer.$i.log"
      status=1
    fi
  done
}
sanitize

echo "== figures"
# With the device to themselves. What is left then is for the profiles.
share=$(($(left) * 3 / 5))
((share < 200)) || share=200
# It writes the checks so far into its file; its own is added afterwards.
part "engine figures" gpu_bench "$share" "$(at gpu_bench)" --json "$figures" "${checked[@]}" || true
[[ ! -s $logs/gpu_bench.log ]] || cat "$logs/gpu_bench.log"
share=$(($(left) * 4 / 5))
((share < 130)) || share=130
part "kernel figures" kernel_bench "$share" "$(at kernel_bench)" --json "$kernel_figures" --seconds $((share - 4)) || true
[[ ! -s $logs/kernel_bench.log ]] || grep -E 'FAILED|loses most|cases,|copy ' "$logs/kernel_bench.log" || true
if [[ ! -f $figures ]]; then
  echo "peers' mask kernels: not measured (there is nothing to put beside them)"
elif python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  part "peers' mask kernels" peers 40 python3 "$data/bench/peers/gpu_masks.py" "$figures" || true
else
  echo "peers' mask kernels: not measured (no torch with CUDA)"
fi

echo "== profiles"
# Of the three kernels that lose most. What the profiler cannot do here is no failure of ours.
profile() {
  local slowest i=0 case ncu
  if [[ -z $device ]]; then
    tell "profiles" "skipped, no NVIDIA device answers (nvidia-smi)"
    devices=0
    return
  fi
  ncu=$(command -v ncu || true)
  if [[ -z $ncu ]]; then
    tell "profiles" "not made (no ncu)"
    return
  fi
  mapfile -t slowest < <(sed -n '/"slowest"/,/]/s/^ *"\(.* .*\)",\{0,1\}$/\1/p' "$kernel_figures" 2>/dev/null)
  for case in "${slowest[@]}"; do
    if (($(left) < 10)); then
      tell "profile of $case" "not made, no time is left for it"
      continue
    fi
    local limit=$(($(left) - 3)) result=0
    ((limit < 40)) || limit=40
    # The clocks stay as they are. --launch-count: not what fills memory before.
    timeout "$limit" "$ncu" --clock-control none --set full --launch-count 12 "$(at kernel_bench)" --only "$case" --profile \
      >"$logs/profile.$i.log" 2>&1 || result=$?
    if [[ $result -eq 0 ]]; then
      tell "profile of $case" "made (profile.$i.log)"
    else
      tell "profile of $case" "not made, exit code $result"
    fi
    i=$((i + 1))
  done
  [[ ${#slowest[@]} -gt 0 ]] || tell "profiles" "not made (no kernel figures)"
}
profile

if [[ $status -eq 0 && $devices -eq 0 ]]; then
  echo "== no device: nothing was measured; logs: $out/$gpu-logs.tar.gz"
  exit 77
fi
echo "== $([[ $status -eq 0 ]] && echo "all passed" || echo "something FAILED") after $SECONDS s; figures: $figures"
exit "$status"
