#!/usr/bin/env bash
# An example of examples/languages, compiled and run: languages_test.sh rust|go|csharp|node FOLDER, the folder of libpawl.so.
# Where the language's tools are missing it says "skipped:".
set -euo pipefail
language=$1
library=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
examples=examples/languages
text=$(cat examples/invoice.txt)
arguments=(models/tiny-extract schemas/examples/invoice.json "$text")

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null 2>&1 || { echo "skipped: no $tool"; exit 0; }
  done
}
case $language in
  rust)
    need rustc
    rustc --edition 2021 "$examples/pawl.rs" -L "$library" -C "link-arg=-Wl,-rpath,$library" -o "$scratch/pawl"
    "$scratch/pawl" "${arguments[@]}" >"$scratch/out"
    ;;
  go)
    need go gcc
    CGO_CFLAGS=-I$PWD/include CGO_LDFLAGS="-L$library -lpawl -Wl,-rpath,$library" GOCACHE=$scratch/cache GO111MODULE=off \
      go build -o "$scratch/pawl" "$examples/pawl.go"
    "$scratch/pawl" "${arguments[@]}" >"$scratch/out"
    ;;
  csharp)
    need mcs mono
    mcs -out:"$scratch/pawl.exe" "$examples/Pawl.cs"
    LD_LIBRARY_PATH=$library mono "$scratch/pawl.exe" "${arguments[@]}" >"$scratch/out"
    ;;
  node)
    need node gcc
    headers=$(node -p 'require("path").join(process.execPath, "../../include/node")')
    [[ -f $headers/node_api.h ]] || headers=/usr/include/node
    [[ -f $headers/node_api.h ]] || { echo "skipped: no node_api.h"; exit 0; }
    gcc -std=c11 -Wall -Wextra -Werror -shared -fPIC "$examples/pawl_addon.c" -I"$headers" -Iinclude -L"$library" -lpawl \
      -Wl,-rpath,"$library" -o "$scratch/pawl.node"
    node "$examples/pawl.js" "$scratch/pawl.node" "${arguments[@]}" >"$scratch/out"
    ;;
  *) echo "languages_test.sh: rust, go, csharp or node, not '$language'" >&2; exit 2 ;;
esac
diff tests/capi/languages.expected "$scratch/out"
