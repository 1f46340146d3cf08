#!/usr/bin/env bash
# Installs a build into an empty folder and builds and runs the programs of examples/ against it, outside of the tree.
#
#   scripts/check_install.sh [BUILD]      default: build
#   scripts/check_install.sh BUILD --all  also builds Pawl as a part of another project, as a shared library (minutes)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac
build=$(cd "${1:-$root/build}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
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

cmake --install "$build" --prefix "$prefix" >install.log
if find "$prefix/include" -type f ! -path "$prefix/include/pawl/*.h" | grep .; then
  echo "check_install.sh: only include/pawl/*.h may be installed" >&2
  exit 1
fi
if grep -rl nlohmann "$prefix/include"; then
  echo "check_install.sh: a public header needs nlohmann/json" >&2
  exit 1
fi

cmake -S examples/cpp_find_package -B find_package -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >cmake.log
cmake --build find_package >>cmake.log
expect "C++, find_package" find_package/print_mask

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
export LD_LIBRARY_PATH=${libdir%/pkgconfig}
expect "C, pkg-config" ./print_mask_c

read -ra flags <<<"$(pkg-config --static --cflags --libs pawl-core)"
"${CXX:-c++}" -std=c++20 examples/cpp_find_package/print_mask.cc "${flags[@]}" -o print_mask_cc
expect "C++, pkg-config" ./print_mask_cc

if [[ ${2:-} == --all ]]; then
  options=(-DPAWL_DIR="$root" -DBUILD_SHARED_LIBS=ON -DPAWL_INSTALL=ON -DCMAKE_BUILD_TYPE=Release)
  if command -v ccache >/dev/null 2>&1; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake -S examples/cpp_subdirectory -B subdirectory -G Ninja "${options[@]}" >>cmake.log
  cmake --build subdirectory >>cmake.log
  expect "C++, FetchContent, shared" subdirectory/print_mask
fi
