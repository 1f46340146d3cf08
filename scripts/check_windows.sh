#!/usr/bin/env bash
# Checks pawl.exe and pawl.dll (scripts/build_cross.sh x86_64-windows-gnu) under Wine: the records of the README and of
# scripts/quickstart.sh, an error, /health of the server; the library exports the functions of pawl.h and nothing else, and the
# test of each of them (tests/capi/capi_test.c) passes.
#
#   scripts/check_windows.sh [FOLDER]    the folder of both, build-cross/x86_64-windows-gnu/build by default
#
# Needs Wine (wine64), curl and zig (scripts/zig_commands.sh). Without Wine it says "skipped:" and ends well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' scripts/check_windows.sh; exit 0 ;;
  -*) echo "check_windows.sh: unknown option '$1'" >&2; exit 2 ;;
esac
wine=
for name in wine64 wine /usr/lib/wine/wine64; do
  wine=$(command -v "$name" || true)
  [[ -z $wine ]] || break
done
[[ -n $wine ]] || { echo "skipped: no wine64 (Debian's package wine64)"; exit 0; }
folder=${1:-build-cross/x86_64-windows-gnu/build}
command=$(find "$folder" -maxdepth 2 -name pawl.exe -print -quit 2>/dev/null || true)
library=$(find "$folder" -maxdepth 2 -name pawl.dll -print -quit 2>/dev/null || true)
[[ -n $command ]] || { echo "check_windows.sh: no pawl.exe in $folder; scripts/build_cross.sh x86_64-windows-gnu makes it" >&2; exit 1; }

root=$(mktemp -d)
server=
export WINEPREFIX=$root/wine WINEDEBUG=-all DISPLAY=
stop() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  "${wine%/*}/wineserver" -k 2>/dev/null || wineserver -k 2>/dev/null || true
  sleep 1
  rm -rf "$root"
}
trap stop EXIT
fail() { echo "check_windows.sh: $*" >&2; exit 1; }

mkdir -p "$root/work/bin"
cp "$command" "$root/work/bin/pawl.exe"
# shellcheck source=scripts/readme_records.sh
source scripts/readme_records.sh
record_files "$root/work"
source_folder=$PWD
cd "$root/work"
"$wine" bin/pawl.exe --version >"$root/first.log" 2>&1 || { cat "$root/first.log" >&2; fail "pawl.exe does not start"; }
check_records "$wine" bin/pawl.exe || fail "the records are wrong"
code=0
"$wine" bin/pawl.exe extract --schema nothing.json --text a 2>"$root/error" || code=$?
grep -q nothing.json "$root/error" || fail "the error of a file that is not there does not name it: $(cat "$root/error")"
[[ $code -ne 0 ]] || fail "an error ended with the code 0"

"$wine" bin/pawl.exe serve --port 0 --log none >"$root/listening" &
server=$!
check_health "$root/listening" || fail "the server does not answer"
kill "$server"
wait "$server" 2>/dev/null || true
server=
echo "pawl.exe: all well"
[[ -n $library ]] || fail "no pawl.dll in $folder"

cd "$source_folder"
diff <(grep -v '^ \*\|^/\*' include/pawl/pawl.h | grep -o 'pawl_[a-z_]*(' | tr -d '(' | sort -u) \
  <(objdump -p "$library" | sed -n '/Ordinal\/Name Pointer/,/^$/s/^[[:space:]]*\[ *[0-9]*\].* \([A-Za-z_?@0-9]*\)$/\1/p' | sort -u) ||
  fail "pawl.dll does not export what pawl.h has (<: missing, >: too much)"
# shellcheck source=scripts/zig_commands.sh
source scripts/zig_commands.sh
zig_commands "$PWD/build-cross"
cp "$library" "$root/work/pawl.dll"
build-cross/bin/zig-cc -target x86_64-windows-gnu -std=c11 -O1 -Iinclude -Itests/capi tests/capi/capi_test.c "$library" \
  -o "$root/work/capi_test.exe"
(cd "$root/work" && "$wine" capi_test.exe models/tiny-extract) || fail "capi_test failed"
echo "pawl.dll: all well"
