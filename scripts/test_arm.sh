#!/usr/bin/env bash
# Builds the tests for 64-bit ARM and runs them under qemu. Times under an emulator mean nothing.
#
#   scripts/test_arm.sh --quick       base, grammar, schemas and kernels: four test programs, without random and large tests.
#                                     Says "skipped:" where the compiler and the emulator cannot be had
#   scripts/test_arm.sh [PROGRAM ...] these programs, or all: each case that build-arm/results/ has no result of. A run that was
#                                     cut goes on where it ended; --again runs all cases, --no-build only what is built
#   scripts/test_arm.sh --write       bench/results/arm.tsv from build-arm/results/: program, case, result
#
# PAWL_ARM_CPU=NAME: qemu's processor (max; cortex-a72, neoverse-n1, ...). What runs models is seven times as fast with
# neoverse-n1: qemu computes BFMMLA and SMMLA slowly. PAWL_ARM_SECONDS: the processor time that a case may take (600).
# PAWL_ARM_MOST: cases that took longer than so many seconds in build/reports are left out (scripts/arm_cases.py --help).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=all
again=no
build=yes
programs=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' scripts/test_arm.sh; exit 0 ;;
    --quick) mode=quick ;;
    --write) mode="write" ;;
    --again) again=yes ;;
    --no-build) build=no ;;
    -*) echo "test_arm.sh: unknown option '$argument' (--help tells what there is)" >&2; exit 2 ;;
    *) programs+=("$argument") ;;
  esac
done
root=$PWD/build-arm/root
results="build-arm/results"

on_arm() {  # processor, program, arguments
  qemu-aarch64-static -cpu "$1" -L /usr/aarch64-linux-gnu \
    -E "LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib:$root/usr/lib/aarch64-linux-gnu" "${@:2}"
}

# What each processor is to choose.
check_choice() {
  local entry processor chosen
  for entry in cortex-a72:neon neoverse-n1:neon-dot max:neon-bfmmla; do
    processor=${entry%%:*}
    chosen=$(on_arm "$processor" build-arm/bin/kernels_test --gtest_filter='*AutoIsTheWidest*' | sed -n 's/^chosen kernels: //p')
    if [[ $chosen != "${entry##*:}" ]]; then
      echo "test_arm.sh: on $processor the kernels are '$chosen', not '${entry##*:}'" >&2
      return 1
    fi
    echo "$processor: $chosen"
  done
}

# The results of a quick run, in place of what there was of the same cases.
keep_quick() {  # program
  python3 - "$1" "build-arm/quick/$1.json" "$results/$1.tsv" <<'END'
import json, os, sys
program, report, path = sys.argv[1:]
lines = {}
if os.path.exists(path):
    lines = {line.split("\t")[1]: line for line in open(path)}
for suite in json.load(open(report))["testsuites"]:
    for case in suite["testsuite"]:
        if case["status"] != "RUN":
            continue
        name = suite["name"] + "." + case["name"]
        result = "failed" if "failures" in case else "skipped" if case["result"] == "SKIPPED" else "passed"
        lines[name] = f"{program}\t{name}\t{result}\n"
open(path, "w").writelines(lines.values())
print(program + ":", sum(line.endswith("\tpassed\n") for line in lines.values()), "of", len(lines), "passed")
END
}

if [[ $mode == write ]]; then
  sort "$results"/*.tsv >bench/results/arm.tsv
  cut -f3 bench/results/arm.tsv | sort | uniq -c
  exit 0
fi

# Programs that start others run where this system gives programs for ARM to qemu (binfmt_misc, Debian's binfmt-support).
starters='^(cli_test|server_test|engine_test|stores_test)$'
[[ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]] || starters='^$'
if [[ $mode == quick ]]; then
  programs=(base_test grammar_test schemas_test kernels_test)
elif [[ ${#programs[@]} -eq 0 ]]; then
  mapfile -t programs < <({ echo engine_test; sed -n 's/^ *pawl_test(\([a-z_]*\).*/\1/p' tests/*/CMakeLists.txt; } |
    grep -v -E "$starters" | grep -v -E '^(amx_emulation|cuda_device|cuda_emulation)_test$')
fi
if [[ $build == yes ]]; then
  if ! scripts/install_deps.sh --arm; then
    [[ $mode == quick ]] || exit 1
    echo "skipped: no compiler and emulator for ARM (see above)"
    exit 0
  fi
  PAWL_PROGRESS=${PAWL_PROGRESS:-10} scripts/build.sh arm "${programs[@]}"
else
  mapfile -t programs < <(for program in "${programs[@]}"; do [[ ! -x build-arm/bin/$program ]] || echo "$program"; done)
  [[ ${#programs[@]} -gt 0 ]] || { echo "test_arm.sh: none of these programs is in build-arm/bin" >&2; exit 2; }
fi
[[ ! -x build-arm/bin/kernels_test ]] || check_choice

if [[ $mode == quick ]]; then
  export GTEST_FILTER='-*Random*:*Hostile*:*Large*:*AgreesWith*:*InTime*:*MayBeAnything*:*MatMul:*MatMulRowsAreIndependent:*MatMulOfIntegers'
  GTEST_FILTER+=':MetaschemaTest.*:*LongChains*:*LongContainers*:*CompletionsAreFound'
  export GTEST_BRIEF=1
  status=0
  mkdir -p "$results" build-arm/quick
  running=()
  for program in "${programs[@]}"; do
    on_arm max "build-arm/bin/$program" "--gtest_output=json:build-arm/quick/$program.json" &
    running+=("$!")
    if [[ ${#running[@]} -ge $(nproc) ]]; then
      wait "${running[0]}" || status=1
      running=("${running[@]:1}")
    fi
  done
  for process in "${running[@]}"; do wait "$process" || status=1; done
  for program in "${programs[@]}"; do keep_quick "$program"; done
  if [[ $status -eq 0 ]]; then echo "Pawl on ARM: all well."; else echo "Pawl on ARM: FAILED." >&2; fi
  exit "$status"
fi

options=(--cpu "${PAWL_ARM_CPU:-max}" --seconds "${PAWL_ARM_SECONDS:-600}" --most "${PAWL_ARM_MOST:-0}")
[[ $again == no ]] || for program in "${programs[@]}"; do rm -f "$results/$program.tsv"; done
scripts/arm_cases.py "${options[@]}" "${programs[@]}"
