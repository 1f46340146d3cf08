#!/usr/bin/env bash
# Checks a command without shared libraries (scripts/build_cross.sh): in a folder that has the command, the model that ships
# and a text, and nothing else, it writes the records of the README and of scripts/quickstart.sh, and serves /health.
#
#   scripts/check_static.sh [TARGET [FOLDER]]    x86_64-linux-musl by default; aarch64-linux-musl runs under qemu
#                                                (qemu-user-static). FOLDER: build-cross/TARGET/build by default
#
# Needs chroot, as root or in a namespace of its own (unshare), and curl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' scripts/check_static.sh; exit 0 ;;
  -*) echo "check_static.sh: unknown option '$1'" >&2; exit 2 ;;
esac
target=${1:-x86_64-linux-musl}
command=${2:-build-cross/$target/build}/pawl
[[ -x $command ]] || { echo "check_static.sh: no $command; scripts/build_cross.sh $target makes it" >&2; exit 1; }

if readelf --program-headers --dynamic "$command" | grep -E 'INTERP|NEEDED'; then
  echo "check_static.sh: $command needs shared libraries" >&2
  exit 1
fi

root=$(mktemp -d)
server=
stop() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  rm -rf "$root"
}
trap stop EXIT
mkdir -p "$root/bin"
cp "$command" "$root/bin/pawl"
# shellcheck source=scripts/readme_records.sh
source scripts/readme_records.sh
record_files "$root"
run=(/bin/pawl)
case "$target" in
  "$(uname -m)"-*) ;;
  *)
    emulator=qemu-${target%%-*}-static
    cp "$(command -v "$emulator")" "$root/bin/$emulator"
    run=("/bin/$emulator" /bin/pawl) ;;
esac
change_root=(chroot "$root")
[[ $(id -u) -eq 0 ]] || change_root=(unshare -r chroot "$root")

check_records "${change_root[@]}" "${run[@]}" || { echo "check_static.sh: FAILED" >&2; exit 1; }

"${change_root[@]}" "${run[@]}" serve --port 0 --log none >"$root/listening" &
server=$!
check_health "$root/listening" || { echo "check_static.sh: FAILED" >&2; exit 1; }
kill "$server"
wait "$server" || { echo "check_static.sh: the server did not end well" >&2; exit 1; }
server=
echo "$target: all well, $(($(stat -c %s "$command") / 1024)) KiB, no shared libraries"
