#!/usr/bin/env bash
# Makes what a release consists of, into a folder, with checksums and a bill of materials.
#
#   scripts/release.sh OUT [PART ...]     all parts without names: source bill deb wheels module formula
#
#   source   the committed tree as pawl-VERSION.tar.gz: equal bytes for equal commits
#   bill     pawl-VERSION.cdx.json (CycloneDX 1.6; scripts/bill_of_materials.py)
#   deb      packages for Debian and Ubuntu, of build/ (scripts/build.sh makes it)
#   wheels   scripts/build_wheels.sh
#   module   the npm package with the WebAssembly module (scripts/build_wasm.sh; needs wasm-opt and npm)
#   formula  Homebrew's formula with the address and the checksum of the source: PAWL_RELEASE_URL is the folder's address
#
# SHA256SUMS has a line for each file. A part that cannot be made is an error; name the parts that can.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  "" | -h | --help) sed -n '2,14s/^# \{0,1\}//p' "scripts/release.sh"; exit 0 ;;
esac
[[ $1 != -* ]] || { echo "release.sh: unknown option '$1'" >&2; exit 2; }
out=$(realpath -m "$1")
shift
parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(source bill deb wheels module formula)
for part in "${parts[@]}"; do
  case "$part" in
    source | bill | deb | wheels | module | formula) ;;
    *) echo "release.sh: unknown part '$part' (source, bill, deb, wheels, module, formula)" >&2; exit 2 ;;
  esac
done
version=$(sed -n 's/^project(pawl VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
mkdir -p "$out"

make_source() {
  git archive --format=tar --prefix="pawl-$version/" HEAD | gzip -n -9 >"$out/pawl-$version.tar.gz"
}
make_bill() {
  scripts/bill_of_materials.py >"$out/pawl-$version.cdx.json"
}
make_deb() {
  [[ -f build/CPackConfig.cmake ]] || { echo "release.sh: build/ is not built; scripts/build.sh makes it" >&2; exit 1; }
  local log=build/cpack.log
  cpack --config build/CPackConfig.cmake -B build/packages >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  mv build/packages/*.deb "$out/"
}
make_wheels() {
  scripts/build_wheels.sh --out "$out"
}
make_module() {
  command -v npm >/dev/null || { echo "release.sh: npm is missing" >&2; exit 1; }
  scripts/build_wasm.sh
  (cd js && npm pack --silent --pack-destination "$out" >/dev/null)
}
make_formula() {
  [[ -f $out/pawl-$version.tar.gz ]] || make_source
  local sum url=${PAWL_RELEASE_URL:-https://example.invalid}
  sum=$(sha256sum "$out/pawl-$version.tar.gz" | cut -d' ' -f1)
  sed -e "s|^  url \".*\"|  url \"$url/pawl-$version.tar.gz\"|" -e "s|^  sha256 \".*\"|  sha256 \"$sum\"|" \
    packaging/homebrew/pawl.rb >"$out/pawl.rb"
}
for part in "${parts[@]}"; do
  echo "== $part"
  "make_$part"
done
rm -f "$out/SHA256SUMS"
sums=$(cd "$out" && find . -maxdepth 1 -type f -printf '%f\n' | LC_ALL=C sort | xargs -d '\n' sha256sum)
printf '%s\n' "$sums" >"$out/SHA256SUMS"
cat "$out/SHA256SUMS"
