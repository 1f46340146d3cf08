#!/usr/bin/env bash
# Builds the fuzz targets under the address and undefined-behaviour sanitizers and runs each for a while.
#
#   scripts/fuzz.sh [SECONDS] [target ...]    default: 600 seconds of each target
#   scripts/fuzz.sh 30                        a short run, for a continuous check
#
# With Clang that is libFuzzer, which learns from the code it reaches (what it finds interesting is kept in
# build-fuzz/corpus); otherwise plain mutations of the seeds in tests/fuzz/corpus. An input that fails is left in
# build-fuzz/failures; running the target with that file as its argument repeats it. Non-zero when something failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/fuzz.sh; exit 0 ;;
esac
seconds=${1:-600}
[[ $# -gt 0 ]] && shift
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "fuzz.sh: SECONDS must be a positive number, not '$seconds'" >&2
  exit 2
fi
targets=("$@")
known=(schema regex instance ebnf infill lark structural_tag capi chat gguf safetensors monitor http)
[[ $# -eq 0 ]] && targets=("${known[@]}")
for target in "${targets[@]}"; do
  if [[ ! -d tests/fuzz/corpus/$target ]]; then
    echo "fuzz.sh: no target '$target' (${known[*]})" >&2
    exit 2
  fi
done

# libFuzzer comes with Clang, but not with every package of it.
probe='#include <stddef.h>
extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, size_t) { return 0; }'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if command -v clang++ >/dev/null 2>&1 &&
  clang++ -fsanitize=fuzzer,address -x c++ -o "$scratch/probe" - <<<"$probe" >/dev/null 2>&1; then
  preset=fuzz
else
  preset=asan
  echo "fuzz.sh: no Clang with libFuzzer; mutating without guidance"
fi
scripts/build.sh "$preset" "${targets[@]/%/_fuzz}"

mkdir -p build-fuzz/failures
status=0
for target in "${targets[@]}"; do
  program=build-$preset/bin/${target}_fuzz
  seeds=tests/fuzz/corpus/$target
  echo "== $target, $seconds s"
  # Pipelined requests are longer than what other targets read, and have words of their own.
  most=400 words=words
  [[ $target == http ]] && most=1500 words=http
  if [[ $preset == fuzz ]]; then
    mkdir -p "build-fuzz/corpus/$target"
    "$program" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -max_len=$most -print_final_stats=1 -verbosity=0 \
      "-dict=tests/fuzz/$words.dict" -artifact_prefix="build-fuzz/failures/$target-" "build-fuzz/corpus/$target" "$seeds" ||
      status=1
  else
    "$program" -max_total_time="$seconds" -artifact="build-fuzz/failures/$target-input" "$seeds" || status=1
  fi
done
if [[ $status -ne 0 ]]; then echo "fuzz.sh: FAILED; the inputs are in build-fuzz/failures" >&2; fi
exit "$status"
