#!/usr/bin/env bash
# Whether two builds of the committed tree, in folders of different names and at different times, give equal bytes.
#
#   scripts/check_reproducible.sh [--work FOLDER] [--quick] [PART ...]    all parts without names
#
#   static     the command without shared libraries (scripts/build_cross.sh x86_64-linux-musl)
#   library    libpawl, the C library, with this machine's compiler
#   wheel      a wheel of this machine's newest Python for manylinux_2_28_x86_64 (scripts/build_wheels.sh --target)
#   module     js/pawl.wasm (scripts/build_wasm.sh)
#
# A line for each part: its name, "equal" or "differs", and the SHA-256 of both files. FOLDER (build-reproducible) keeps what
# was built: a run that was cut goes on. Each part takes twice as long as its build. --quick: the static command, the library
# and the wheel are built without optimization. Sources that others ship (build/grammars, build-cross/sources) are copied, when
# they are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$PWD/build-reproducible
quick=() place=build
library=(-DCMAKE_BUILD_TYPE=Release)
parts=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' scripts/check_reproducible.sh; exit 0 ;;
    --work) work=$(realpath -m "${2:?--work needs a folder}"); shift ;;
    --quick)
      quick=(--quick) place=quick
      # Release would optimize again.
      library=(-DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0 -DNDEBUG"
        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -DNDEBUG" -DPAWL_UNITY_MOST=24) ;;
    static | library | wheel | module) parts+=("$1") ;;
    *) echo "check_reproducible.sh: unknown part '$1' (static, library, wheel, module)" >&2; exit 2 ;;
  esac
  shift
done
[[ ${#parts[@]} -gt 0 ]] || parts=(static library wheel module)

commit=$(git rev-parse HEAD)
# What a file's name or age could leak into differs: the length of the path, the ages of all sources.
folders=("$work/a/pawl" "$work/another-place/of-a-longer-name")
ages=("2001-02-03 04:05:06" "2020-12-13 14:15:16")
for i in 0 1; do
  folder=${folders[$i]}
  if [[ ! -f $folder/.commit || $(<"$folder/.commit") != "$commit" ]]; then
    rm -rf "$folder"
    mkdir -p "$folder/build"
    git archive HEAD | tar -x -C "$folder"
    find "$folder" -type f -exec touch -d "${ages[$i]}" {} +
    [[ ! -d build/grammars ]] || cp -r build/grammars "$folder/build/"
    if [[ -f build-cross/sources/complete ]]; then
      mkdir -p "$folder/build-cross"
      cp -r build-cross/sources "$folder/build-cross/"
    fi
    echo "$commit" >"$folder/.commit"
  fi
done
# The time that files in archives have: that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1

build_part() {
  case "$1" in
    static) scripts/build_cross.sh "${quick[@]}" x86_64-linux-musl ;;
    library)
      cmake -S . -B build -G Ninja -DPAWL_BUILD_TESTS=OFF -DPAWL_BUILD_BENCH=OFF -DPAWL_CUDA=OFF "${library[@]}"
      cmake --build build --target pawl_c --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" ;;
    wheel)
      # shellcheck source=scripts/list_pythons.sh
      source scripts/list_pythons.sh
      [[ $place == build ]] || export PAWL_ZIG_FLAGS=-O0
      scripts/build_wheels.sh --target manylinux_2_28_x86_64 "$(list_pythons | tail -1)" ;;
    module) scripts/build_wasm.sh ;;
  esac
}
made_of() {  # part: the file that it makes, in the folder
  case "$1" in
    static) find "build-cross/x86_64-linux-musl/$place" -maxdepth 2 -name pawl -type f -perm -u+x ;;
    library) realpath -e build/libpawl.so ;;
    wheel) find dist -name 'pawl-*-manylinux_2_28_x86_64.whl' ;;
    module) realpath -e js/pawl.wasm ;;
  esac | head -1
}

status=0
for part in "${parts[@]}"; do
  sums=()
  made=()
  for folder in "${folders[@]}"; do
    log=$folder/$part.$place.log
    if [[ ! -f $folder/$part.$place.done ]]; then
      (cd "$folder" && build_part "$part" >"$log" 2>&1) || { tail -20 "$log" >&2; echo "check_reproducible.sh: $part: the build failed ($log)" >&2; exit 1; }
      touch "$folder/$part.$place.done"
      sleep 2
    fi
    file=$(cd "$folder" && realpath "$(made_of "$part")")
    sums+=("$(sha256sum "$file" | cut -d' ' -f1)")
    made+=("$file")
  done
  if cmp -s "${made[0]}" "${made[1]}"; then
    result=equal
  else
    result=differs
    status=1
  fi
  printf '%s\t%s\t%s\t%s\n' "$part" "$result" "${sums[0]}" "${sums[1]}"
done
exit "$status"
