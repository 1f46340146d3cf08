#!/usr/bin/env bash
# Installs what Pawl needs to be built and tested. Debian 12/13 and Ubuntu 22.04/24.04 through apt-get; elsewhere
# it says what is missing. Does nothing, fast, when everything is there.
#
#   scripts/install_deps.sh          compiler, build tools, libraries
#   scripts/install_deps.sh --dev    also clang-format, clang-tidy, shellcheck and ccache, for scripts/check.sh and .ci/run
#   scripts/install_deps.sh --lsp    also clangd, Neovim and, in build/lsp, basedpyright, which tests of the monitors drive
#   scripts/install_deps.sh --arm    also a compiler for 64-bit ARM, an emulator and, in build-arm/root, libraries (Debian)
#   scripts/install_deps.sh --python also an environment in build/venv to build and test the Python module
set -euo pipefail

dev=no
python=no
lsp=no
arm=no
for arg in "$@"; do
  case "$arg" in
    --dev) dev=yes ;;
    --python) python=yes ;;
    --lsp) lsp=yes ;;
    --arm) arm=yes ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "install_deps.sh: unknown argument '$arg'" >&2; exit 2 ;;
  esac
done

missing=()   # what, for a human
packages=()  # the Debian packages that have it

need_command() {  # command, package
  if ! command -v "$1" >/dev/null 2>&1; then
    missing+=("the command $1")
    packages+=("$2")
  fi
}

# Python packages, in an environment of their own.
install_python() {
  [[ $python == yes ]] || return 0
  local venv
  venv=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/venv
  if [[ ! -x $venv/bin/python ]]; then
    mkdir -p "${venv%/*}"
    python3 -m venv "$venv"
  fi
  if ! "$venv/bin/python" -c "import mypy, nanobind, numpy, pydantic, pyright, pytest, scikit_build_core, tqdm" 2>/dev/null; then
    "$venv/bin/python" -m pip install --quiet mypy nanobind numpy pydantic pyright pytest scikit-build-core tqdm
  fi
}

# The language servers of Python, in an environment of their own.
install_lsp() {
  [[ $lsp == yes ]] || return 0
  local venv
  venv=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/lsp
  [[ -x $venv/bin/basedpyright-langserver ]] && return 0
  mkdir -p "${venv%/*}"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet basedpyright
}

# What the type monitors parse with, in build/grammars: tree-sitter (Debian's 0.20.7 writes beyond its memory where a text
# is nested 65,536 deep) and parser tables out of source distributions, the declarations of
# TypeScript's standard library out of a Debian package, and the stubs of Python's (typeshed). Without them Pawl is built without the monitors.
grammars=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/grammars
have_grammars() {
  [[ -f $grammars/typescript/typescript/src/parser.c && -f $grammars/java/src/parser.c &&
     -f $grammars/python/src/scanner.c && -f $grammars/tree-sitter/src/lib.c &&
     -f $grammars/typescript-lib/lib.es5.d.ts && -f $grammars/typeshed/builtins.pyi ]]
}
fetch_grammars() {
  local scratch=$1 package name
  python3 -m venv "$scratch/venv" &&
    "$scratch/venv/bin/python" -m pip download --quiet --no-deps --no-binary :all: --dest "$scratch" \
      tree-sitter-typescript==0.23.2 tree-sitter-java==0.23.5 tree-sitter-python==0.23.6 &&
    "$scratch/venv/bin/python" -m pip download --quiet --no-deps --no-binary :all: --dest "$scratch/library" \
      tree-sitter==0.25.2 || return 1
  for name in typescript java python; do
    mkdir -p "$grammars/$name"
    package=$(find "$scratch" -maxdepth 1 -name "tree*sitter*$name-*.tar.gz")
    tar -xzf "$package" -C "$grammars/$name" --strip-components=1 || return 1
  done
  package=$(find "$scratch/library" -name "*.tar.gz")
  mkdir -p "$scratch/core"
  tar -xzf "$package" -C "$scratch/core" --strip-components=1 || return 1
  rm -rf "$grammars/tree-sitter"
  mv "$scratch/core/tree_sitter/core/lib" "$grammars/tree-sitter"
  # Grammars include the library's own headers by this name.
  mkdir -p "$grammars/tree-sitter/include/tree_sitter"
  cp "$grammars/tree-sitter/src/"*.h "$grammars/tree-sitter/include/tree_sitter/"
  (cd "$scratch" && apt-get download -qq node-typescript && dpkg-deb -x node-typescript_*.deb declarations) || return 1
  mkdir -p "$grammars/typescript-lib"
  find "$scratch/declarations" -name 'lib.es*.d.ts' ! -name '*.full.d.ts' -exec cp {} "$grammars/typescript-lib/" \;
  # The stubs of Python's standard library, which this package has as plain files.
  "$scratch/venv/bin/python" -m pip download --quiet --no-deps --dest "$scratch" typeshed_client==2.14.0 || return 1
  python3 -m zipfile -e "$scratch"/typeshed_client-*.whl "$scratch/stubs" || return 1
  rm -rf "$grammars/typeshed"
  mv "$scratch/stubs/typeshed_client/typeshed" "$grammars/typeshed"
  have_grammars
}
install_grammars() {
  have_grammars && return 0
  local scratch
  scratch=$(mktemp -d)
  if ! fetch_grammars "$scratch" >"$scratch/log" 2>&1; then
    echo "install_deps.sh: the parsers of the type monitors could not be had; Pawl is built without them:" >&2
    tail -3 "$scratch/log" >&2
  fi
  rm -rf "$scratch"
}

# Libraries for 64-bit ARM, next to the system's own: unpacked, not installed.
arm_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build-arm/root
install_arm() {
  [[ $arm == yes && ! -f $arm_root/complete ]] || return 0
  local scratch package as_root=()
  [[ $(id -u) -eq 0 ]] || as_root=(sudo)
  if ! dpkg --print-foreign-architectures | grep -qx arm64; then
    "${as_root[@]}" dpkg --add-architecture arm64
    # Where there are no packages for it, later commands are not to look for them.
    "${as_root[@]}" apt-get -o Acquire::Retries=3 -qq update || { "${as_root[@]}" dpkg --remove-architecture arm64; return 1; }
  fi
  scratch=$(mktemp -d)
  (cd "$scratch" && apt-get -o Acquire::Retries=3 -o APT::Sandbox::User=root -qq download {libgtest-dev,libre2-dev,libre2-9,libfmt-dev,libfmt9}:arm64 \
    {libsqlite3-dev,libsqlite3-0,zlib1g-dev,zlib1g}:arm64 nlohmann-json3-dev libcli11-dev) || { rm -rf "$scratch"; return 1; }
  mkdir -p "$arm_root"
  for package in "$scratch"/*.deb; do dpkg-deb -x "$package" "$arm_root"; done
  rm -rf "$scratch"
  touch "$arm_root/complete"
}

need_command g++ g++
need_command cmake cmake
need_command ninja ninja-build
need_command pkg-config pkg-config
need_command python3 python3
if [[ $python == yes ]]; then
  python_headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null || echo /none)
  if [[ ! -f $python_headers/Python.h ]]; then
    missing+=("the header <Python.h>")
    packages+=(python3-dev python3-venv)
  fi
fi
if [[ $lsp == yes ]]; then
  need_command clangd clangd
  need_command nvim neovim
fi
if [[ $arm == yes ]]; then
  need_command aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need_command qemu-aarch64-static qemu-user-static
fi
if [[ $dev == yes ]]; then
  need_command clang-format clang-format
  need_command clang-tidy clang-tidy
  need_command shellcheck shellcheck
  need_command ccache ccache
fi

# One run of the preprocessor tells which headers are there: those that are not come out with their package.
header_packages=(
  "nlohmann/json.hpp:nlohmann-json3-dev"
  "CLI/CLI.hpp:libcli11-dev"
  "fmt/core.h:libfmt-dev"
  "re2/re2.h:libre2-dev"
  "gtest/gtest.h:libgtest-dev"
  "benchmark/benchmark.h:libbenchmark-dev"
  "sqlite3.h:libsqlite3-dev"
  "zlib.h:zlib1g-dev"
)
if command -v g++ >/dev/null 2>&1; then
  probe=""
  for entry in "${header_packages[@]}"; do
    probe+="#if !__has_include(<${entry%%:*}>)"$'\n'"MISSING:$entry"$'\n'"#endif"$'\n'
  done
  absent=$(printf '%s' "$probe" | g++ -std=c++20 -E -P -x c++ - | grep '^MISSING:' || true)
  for entry in $absent; do
    entry=${entry#MISSING:}
    missing+=("the header <${entry%%:*}>")
    packages+=("${entry##*:}")
  done
else
  for entry in "${header_packages[@]}"; do
    missing+=("the header <${entry%%:*}>")
    packages+=("${entry##*:}")
  done
fi

if ! have_grammars && ! python3 -c "import ensurepip" >/dev/null 2>&1; then
  missing+=("Python's venv")
  packages+=(python3-venv)
fi

if [[ ${#missing[@]} -eq 0 ]]; then
  install_grammars
  install_python
  install_lsp
  install_arm
  exit 0
fi

id=unknown
version=""
if [[ -r /etc/os-release ]]; then
  id=$(sed -n 's/^ID=//p' /etc/os-release | tr -d '"')
  version=$(sed -n 's/^VERSION_ID=//p' /etc/os-release | tr -d '"')
fi
if [[ $id != debian && $id != ubuntu ]] || ! command -v apt-get >/dev/null 2>&1; then
  {
    echo "install_deps.sh: this system ($id $version) is not one whose packages are known here. Missing:"
    printf '  %s\n' "${missing[@]}"
    echo "On Debian and Ubuntu they are in: ${packages[*]}"
  } >&2
  exit 1
fi

sudo=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "install_deps.sh: not root and no sudo; ask for these packages: ${packages[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
  [[ -t 0 ]] || sudo=(sudo -n)  # without a terminal nobody can type a password
fi

echo "Installing: ${packages[*]}"
apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -qq)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${packages[@]}" >/dev/null
install_grammars
install_python
install_lsp
install_arm
echo "Installed."
