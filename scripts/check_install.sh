#!/usr/bin/env bash
# Installs a build into an empty folder and builds and runs the programs of examples/ against it, outside of the tree.
#
#   scripts/check_install.sh [BUILD]      default: build
#   scripts/check_install.sh BUILD --all  also builds Pawl as a part of other projects, as shared libraries (minutes)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac
build=$(cd "${1:-$root/build}" && pwd)
scratch=$(mktemp -d)
# What failed is said before the folder goes.
finish() {
  local status=$?
  [[ $status -eq 0 || ! -f $scratch/cmake.log ]] || tail -n 40 "$scratch/cmake.log" >&2
  rm -rf "$scratch"
}
trap finish EXIT
prefix=$scratch/prefix
cp -r "$root/examples" "$scratch/examples"
cd "$scratch"
expected='allowed: 2b, taken: re
allowed: 04, taken: d
allowed: 80, taken: <end>'
expect() { # NAME COMMAND...: prints the three masks
  local name=$1 output
  shift
  output=$("$@")
  if [[ $output != "$expected" ]]; then
    printf 'check_install.sh: %s printed:\n%s\n' "$name" "$output" >&2
    exit 1
  fi
  echo "$name: well"
}

model=$root/models/tiny-extract
expect_answer() { # NAME COMMAND...: prints a colour and a record
  local name=$1 output
  shift
  output=$("$@")
  if ! [[ $output =~ ^(red|green)$'\n'\{\"far\":(true|false),\"hours\":[1-9]\}$ ]]; then
    printf 'check_install.sh: %s printed:\n%s\n' "$name" "$output" >&2
    exit 1
  fi
  echo "$name: well"
}
only_ours() { # LIBRARY: shows names of namespace pawl and nothing else
  if nm -D --defined-only -C "$1" | sed 's/^[0-9a-f]* [A-Za-z] //' | grep -v '^\(typeinfo \(name \)\?for \|vtable for \)\?pawl::'; then
    echo "check_install.sh: $1 shows more than its own names" >&2
    exit 1
  fi
}

cmake --install "$build" --prefix "$prefix" >install.log
if find "$prefix/include" -type f ! -path "$prefix/include/pawl/*.h" | grep .; then
  echo "check_install.sh: only include/pawl/*.h may be installed" >&2
  exit 1
fi
if grep -rl nlohmann "$prefix/include"; then
  echo "check_install.sh: a public header needs nlohmann/json" >&2
  exit 1
fi

# The monitors know Python's and TypeScript's libraries from the program itself; where Pawl was built without them, it says so.
printf 'import os\nhere = os.path.jion("a")\n' >monitored.py
printf 'const n = [1].lenght;\n' >monitored.ts
for file in monitored.py monitored.ts; do
  answer=$("$prefix/bin/pawl" monitor "$file" --tokenizer "$model" 2>&1 || true)
  case $answer in
    *"refused at"*) echo "pawl monitor $file, installed: well" ;;
    *"built without"*) echo "pawl monitor: this build has no monitors" ;;
    *) echo "check_install.sh: pawl monitor $file: $answer" >&2; exit 1 ;;
  esac
done

cmake -S examples/cpp_find_package -B find_package -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >cmake.log
cmake --build find_package >>cmake.log
expect "C++, find_package" find_package/print_mask

cmake -S examples/engine -B engine -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >>cmake.log
cmake --build engine >>cmake.log
expect_answer "C++, find_package, engine" engine/answer "$model"

if [[ -n $(find "$prefix" -name pawl-cuda.cmake) ]]; then
  cmake -S examples/cuda -B cuda -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >>cmake.log
  cmake --build cuda >>cmake.log
  masked=$(cuda/apply_mask)
  # 4 to 7 are allowed in the first row, 0 to 6 over and over are the logits of both.
  if [[ $masked != "no device: "* && $masked != $'row 0: 4 allowed, token 6\nrow 1: 100 allowed, token 4' ]]; then
    echo "check_install.sh: examples/cuda printed: $masked" >&2
    exit 1
  fi
  echo "C++, find_package, cuda: well ($(head -1 <<<"$masked"))"
fi

sed 's/COMPONENTS core/COMPONENTS telepathy/' -i examples/cpp_find_package/CMakeLists.txt
if cmake -S examples/cpp_find_package -B missing -DCMAKE_PREFIX_PATH="$prefix" >missing.log 2>&1 ||
  ! grep -q "no component 'telepathy'" missing.log; then
  echo "check_install.sh: a missing component is not named" >&2
  exit 1
fi

libdir=$(dirname "$(find "$prefix" -name pawl.pc)")
export PKG_CONFIG_PATH=$libdir
read -ra flags <<<"$(pkg-config --cflags --libs pawl)"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror examples/c/print_mask.c "${flags[@]}" -o print_mask_c
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror examples/c/stream.c "${flags[@]}" -o stream_c
export LD_LIBRARY_PATH=${libdir%/pkgconfig}
expect "C, pkg-config" ./print_mask_c

read -ra flags <<<"$(pkg-config --static --cflags --libs pawl-core)"
"${CXX:-c++}" -std=c++20 examples/cpp_find_package/print_mask.cc "${flags[@]}" -o print_mask_cc
expect "C++, pkg-config" ./print_mask_cc

read -ra flags <<<"$(pkg-config --static --cflags --libs pawl-engine)"
"${CXX:-c++}" -std=c++20 examples/engine/answer.cc "${flags[@]}" -o answer
expect_answer "C++, pkg-config, engine" ./answer "$model"

if [[ ${2:-} == --all ]]; then
  options=(-DPAWL_DIR="$root" -DBUILD_SHARED_LIBS=ON -DPAWL_INSTALL=ON -DPAWL_WERROR=ON
    -DPAWL_CUDA=OFF -DCMAKE_BUILD_TYPE=Release)
  if command -v ccache >/dev/null 2>&1; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake -S examples/cpp_subdirectory -B subdirectory -G Ninja -DPAWL_BUILD_ENGINE=ON "${options[@]}" >>cmake.log
  cmake --build subdirectory >>cmake.log
  expect "C++, FetchContent, shared" subdirectory/print_mask
  expect_answer "C++, FetchContent, shared, engine" subdirectory/answer "$model"
  only_ours subdirectory/_deps/pawl-build/libpawl_core.so
  only_ours subdirectory/_deps/pawl-build/libpawl_engine.so

  cmake --install subdirectory --prefix "$scratch/shared" >>install.log
  cmake -S examples/engine -B engine_shared -DCMAKE_PREFIX_PATH="$scratch/shared" -DCMAKE_BUILD_TYPE=Release >>cmake.log
  cmake --build engine_shared >>cmake.log
  expect_answer "C++, find_package, shared, engine" engine_shared/answer "$model"
  PKG_CONFIG_PATH=$(dirname "$(find "$scratch/shared" -name pawl-engine.pc)")
  read -ra flags <<<"$(pkg-config --cflags --libs pawl-engine)"
  "${CXX:-c++}" -std=c++20 examples/engine/answer.cc "${flags[@]}" -o answer_shared
  LD_LIBRARY_PATH=${PKG_CONFIG_PATH%/pkgconfig}
  expect_answer "C++, pkg-config, shared, engine" ./answer_shared "$model"

  # The core alone, with add_subdirectory, installs no header that it has no library for.
  mkdir plain
  {
    echo 'cmake_minimum_required(VERSION 3.22)'
    echo 'project(plain LANGUAGES C CXX)'
    echo "add_subdirectory($root pawl)"
    echo 'add_executable(print_mask ../examples/cpp_find_package/print_mask.cc)'
    echo 'target_link_libraries(print_mask PRIVATE pawl::core)'
  } >plain/CMakeLists.txt
  cmake -S plain -B plain/build -G Ninja "${options[@]:1}" >>cmake.log
  cmake --build plain/build >>cmake.log
  expect "C++, add_subdirectory" plain/build/print_mask
  cmake --install plain/build --prefix "$scratch/core" >>install.log
  if [[ -e $scratch/core/include/pawl/engine.h ]]; then
    echo "check_install.sh: engine.h is installed without the engine" >&2
    exit 1
  fi
fi
