#!/usr/bin/env bash
# Everything about the CUDA backend that needs a device: builds, runs the CUDA tests (also under compute-sanitizer
# where there is one), measures, writes the figures. Without a device: says so, exit code 77.
#
#   scripts/gpu_check.sh [OUTDIR]      default: bench/results. Under ten minutes once it is built.
#
# OUTDIR/<gpu>.json has the ratios, OUTDIR/<gpu>.log the output of all of it. The build folder is build-gpu, for the
# device's own architecture alone (PAWL_GPU_BUILD names another).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' scripts/gpu_check.sh; exit 0 ;;
esac
out=${1:-bench/results}
build=${PAWL_GPU_BUILD:-build-gpu}

if ! command -v nvidia-smi >/dev/null 2>&1 || ! name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1) ||
  [[ -z $name ]]; then
  echo "gpu_check.sh: skipped, no NVIDIA device answers (nvidia-smi)" >&2
  exit 77
fi
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
gpu=$(tr ' /' '--' <<<"$name" | tr -s '-')
mkdir -p "$out"
log=$out/$gpu.log
exec > >(tee "$log") 2>&1
echo "== $name, compute capability $capability"

echo "== build"
start=$SECONDS
launcher=()
if command -v ccache >/dev/null 2>&1; then
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPAWL_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$capability-real" \
  "${launcher[@]}" >"$build.configure.log" || { cat "$build.configure.log"; exit 1; }
cmake --build "$build" --target cuda_device_test gpu_bench pawl | tail -3
echo "built in $((SECONDS - start)) s"

status=0
check() { # NAME SECONDS COMMAND...
  local name=$1 limit=$2 begin=$SECONDS result=0
  shift 2
  timeout "$limit" "$@" >"$out/step.log" 2>&1 || result=$?
  if [[ $result -eq 0 ]]; then
    echo "$name: well ($((SECONDS - begin)) s)"
  else
    echo "$name: FAILED, exit code $result"
    tail -40 "$out/step.log"
    status=1
  fi
  rm -f "$out/step.log"
}

echo "== tests"
check "CUDA tests" 100 "$build/bin/cuda_device_test"
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [[ -x $sanitizer ]]; then
  # Every kernel, on the smaller cases; the whole forward pass for two families.
  kernels='MatMulTest.*:MaskedRowsTest.*:LayerTest.*:AttentionTest.*'
  models='All/FamilyTest.*/gemma3_bf16:All/FamilyTest.*/llama_fp32_tied:TransformerTest.SampledTokens*'
  for tool in memcheck racecheck; do
    check "$tool, kernels" 80 "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "$build/bin/cuda_device_test" "--gtest_filter=$kernels"
    check "$tool, models" 60 "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "$build/bin/cuda_device_test" "--gtest_filter=$models"
  done
else
  echo "compute-sanitizer: not found, left out"
fi

echo "== the shipped model: tokens on the device beside those of the CPU"
tokens() { "$build/bin/pawl" generate --prompt "Invoice 7 from Acme, 30 EUR" --max-tokens 60 --device "$1" --kv-dtype fp32; }
if on_cpu=$(tokens cpu) && on_gpu=$(tokens cuda) && [[ $on_cpu == "$on_gpu" ]]; then
  echo "greedy tokens: equal"
else
  echo "greedy tokens: FAILED, they differ"
  printf 'cpu:  %s\ncuda: %s\n' "${on_cpu:-}" "${on_gpu:-}"
  status=1
fi

echo "== figures"
timeout 180 "$build/bin/gpu_bench" --json "$out/$gpu.json" || status=1
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  timeout 30 python3 bench/peers/gpu_masks.py || status=1
else
  echo "peers' mask kernels: not measured (no torch with CUDA)"
fi
exit "$status"
