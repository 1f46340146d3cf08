#!/usr/bin/env bash
# Makes what Pawl needs from others for another system or C library, with zig's compiler: build-cross/TARGET/root.
#
#   scripts/cross_deps.sh TARGET ...    x86_64-linux-musl, aarch64-linux-musl, x86_64-linux-gnu.2.28, aarch64-linux-gnu.2.28,
#                                       x86_64-windows-gnu, aarch64-macos, x86_64-macos
#
# SQLite and zlib are compiled from Debian's source packages. nlohmann/json, CLI11 and {fmt} are headers, which are copied
# alone: of the folder of the system's headers, which are for its own C library, nothing else is seen. tree-sitter and the
# parser tables of build/grammars (scripts/install_deps.sh) are sources, which Pawl's own build compiles.
# Needs apt-get, dpkg-source (dpkg-dev), tclsh (tcl), make, Python 3 with venv, and the headers that scripts/install_deps.sh
# installs. What is there is not made again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' scripts/cross_deps.sh; exit 0 ;;
    -*) echo "cross_deps.sh: unknown option '$argument'" >&2; exit 2 ;;
    *)
      if [[ $argument == zig || ! -f cmake/cross/$argument.cmake ]]; then
        echo "cross_deps.sh: unknown target '$argument'; there are: $(find cmake/cross -name '*.cmake' ! -name zig.cmake -printf '%f\n' | sed 's/\.cmake$//' | sort | xargs)" >&2
        exit 2
      fi
      targets+=("$argument") ;;
  esac
done
if [[ ${#targets[@]} -eq 0 ]]; then
  echo "cross_deps.sh: name a target (--help)" >&2
  exit 2
fi
cross=$PWD/build-cross
todo=()
for target in "${targets[@]}"; do
  [[ -f $cross/$target/root/complete ]] || todo+=("$target")
done

# shellcheck source=scripts/zig_commands.sh
source scripts/zig_commands.sh
zig_commands "$cross"
[[ ${#todo[@]} -gt 0 ]] || exit 0
for tool in apt-get:apt dpkg-source:dpkg-dev tclsh:tcl make:make; do
  command -v "${tool%%:*}" >/dev/null || { echo "cross_deps.sh: missing: ${tool%%:*} (Debian's package ${tool##*:})" >&2; exit 1; }
done
for header in nlohmann/json.hpp CLI/CLI.hpp fmt/format-inl.h; do
  [[ -f /usr/include/$header ]] || { echo "cross_deps.sh: missing: the header <$header> (scripts/install_deps.sh)" >&2; exit 1; }
done

# Source packages, from a list of sources of our own: the machine's may name none.
fetch_sources() {
  local suite apt
  [[ ! -f $cross/sources/complete ]] || return 0
  mkdir -p "$cross/sources/lists/partial"
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
    >"$cross/sources/sources.list"
  apt=(apt-get -o Acquire::Retries=3 -o "Dir::Etc::SourceList=$cross/sources/sources.list" -o Dir::Etc::SourceParts=-
    -o "Dir::State::Lists=$cross/sources/lists" -o APT::Sandbox::User=root -qq)
  "${apt[@]}" update
  (cd "$cross/sources" && rm -rf sqlite3-*/ zlib-*/ && "${apt[@]}" source sqlite3 zlib >/dev/null)
  # The library as one file, which its own scripts put together.
  (cd "$cross"/sources/sqlite3-*/ && ./configure --disable-tcl --disable-readline >configure.log && make sqlite3.c >make.log)
  touch "$cross/sources/complete"
}

# A package for find_package(NAME) that is a folder of headers.
header_package() {  # root, name, target, version, definitions
  local folder=$1/lib/cmake/$2
  mkdir -p "$folder"
  cat >"$folder/$2Config.cmake" <<END
add_library($3 INTERFACE IMPORTED)
target_include_directories($3 INTERFACE \${CMAKE_CURRENT_LIST_DIR}/../../../include)
target_compile_definitions($3 INTERFACE $5)
END
  cat >"$folder/$2ConfigVersion.cmake" <<END
set(PACKAGE_VERSION $4)
if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
END
}

version_in() {  # header, prefix: numbers of the definitions PREFIX_MAJOR, _MINOR, _PATCH
  sed -n "s/^#define $2_\(MAJOR\|MINOR\|PATCH\)[[:space:]]*\([0-9]*\).*/\2/p" "$1" | head -3 | paste -sd.
}

fetch_sources
for target in "${todo[@]}"; do
  root=$cross/$target/root
  rm -rf "$root"
  mkdir -p "$root/include" "$root/lib" "$cross/$target/objects"
  cp -r /usr/include/nlohmann /usr/include/CLI /usr/include/fmt "$root/include/"
  header_package "$root" nlohmann_json nlohmann_json::nlohmann_json \
    "$(version_in "$(grep -rl "^#define NLOHMANN_JSON_VERSION_PATCH" /usr/include/nlohmann | head -1)" NLOHMANN_JSON_VERSION)" ""
  header_package "$root" CLI11 CLI11::CLI11 "$(version_in /usr/include/CLI/Version.hpp CLI11_VERSION)" ""
  header_package "$root" fmt fmt::fmt "$(sed -n 's/^#define FMT_VERSION \([0-9]*\)\([0-9][0-9]\)\([0-9][0-9]\)$/\1.\2.\3/p' /usr/include/fmt/core.h)" \
    FMT_HEADER_ONLY=1
  zig_target=$(sed -n 's/^set(PAWL_CROSS_TARGET \(.*\))$/\1/p' "cmake/cross/$target.cmake")
  # Without what a debugger reads, which has the names of folders.
  compile=("$cross/bin/zig-cc" -target "$zig_target" -O2 -g0 -fPIC -fno-sanitize=undefined -DNDEBUG -w)
  objects=$cross/$target/objects
  echo "== $target: SQLite"
  sqlite=$(echo "$cross"/sources/sqlite3-*/)
  "${compile[@]}" -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -c "$sqlite/sqlite3.c" -o "$objects/sqlite3.o"
  "$cross/bin/zig-ar" rcs "$root/lib/libsqlite3.a" "$objects/sqlite3.o"
  cp "$sqlite/sqlite3.h" "$root/include/"
  echo "== $target: zlib"
  zlib=$(echo "$cross"/sources/zlib-*/)
  # On macOS this zlib takes fdopen() for one that is not there, unless it is a macro.
  [[ $target != *-macos ]] || compile+=(-Dfdopen=fdopen)
  for source in adler32 compress crc32 deflate infback inffast inflate inftrees trees uncompr zutil; do
    "${compile[@]}" -DHAVE_UNISTD_H -c "$zlib/$source.c" -o "$objects/$source.o"
  done
  "$cross/bin/zig-ar" rcs "$root/lib/libz.a" "$objects"/{adler32,compress,crc32,deflate,infback,inffast,inflate,inftrees,trees,uncompr,zutil}.o
  cp "$zlib/zlib.h" "$zlib/zconf.h" "$root/include/"
  touch "$root/complete"
done
