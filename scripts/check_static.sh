#!/usr/bin/env bash
# Checks a command without shared libraries (scripts/build_cross.sh): in a folder that has the command, the model that ships
# and a text, and nothing else, it writes the records of the README and of scripts/quickstart.sh, and serves /health.
#
#   scripts/check_static.sh [TARGET]    x86_64-linux-musl by default; aarch64-linux-musl runs under qemu (qemu-user-static)
#
# Needs chroot, as root or in a namespace of its own (unshare), and curl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' scripts/check_static.sh; exit 0 ;;
  -*) echo "check_static.sh: unknown option '$1'" >&2; exit 2 ;;
esac
target=${1:-x86_64-linux-musl}
command=build-cross/$target/build/pawl
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
mkdir -p "$root/bin" "$root/models"
cp "$command" "$root/bin/pawl"
cp -r models/tiny-extract "$root/models/"
cp examples/invoice.txt schemas/examples/invoice.json "$root/"
echo '{"type":"object","properties":{"name":{"type":"string"},"phone":{"type":["string","null"]},"city":{"enum":["Leeds","Porto",null]}},"required":["name","phone","city"],"additionalProperties":false}' >"$root/person.json"
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

expect() {  # what it is to print, arguments
  local printed
  printed=$("${change_root[@]}" "${run[@]}" "${@:2}")
  if [[ $printed != "$1" ]]; then
    printf 'check_static.sh: pawl %s printed:\n%s\nand not:\n%s\n' "$2" "$printed" "$1" >&2
    exit 1
  fi
  echo "$printed"
}
expect '{"invoice_number":"INV-2041","vendor":"Northwind Traders","customer":"Alder & Sons","invoice_date":"2025-03-03","due_date":"2025-04-02","total":1240.50,"currency":"EUR","items":[]}' \
  extract --schema /invoice.json --file /invoice.txt
expect '{"name":"Ann Lee","phone":"020 7946 0018","city":"Porto"}' \
  extract --schema /person.json --text "Ann Lee lives in Porto. Phone: 020 7946 0018."

"${change_root[@]}" "${run[@]}" serve --port 0 --log none >"$root/listening" &
server=$!
for _ in {1..300}; do
  [[ ! -s $root/listening ]] || break
  sleep 0.2
done
address=$(sed -n 's/^listening on //p' "$root/listening")
[[ $(curl -s -o /dev/null -w '%{http_code}' "$address/health") == 200 ]] || { echo "check_static.sh: no /health at '$address'" >&2; exit 1; }
kill "$server"
wait "$server" || { echo "check_static.sh: the server did not end well" >&2; exit 1; }
server=
echo "$target: all well, $(($(stat -c %s "$command") / 1024)) KiB, no shared libraries"
