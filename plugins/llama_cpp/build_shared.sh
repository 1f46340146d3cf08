#!/usr/bin/env bash
# build_shared.sh OUT.so LLAMA_INCLUDE LLAMA_LIB PAWL_PREFIX: the sampler as a shared library, for programs that load it (pawl.llama_cpp.Sampler).
#   LLAMA_INCLUDE  folders with llama.h and ggml.h, separated by a colon
#   LLAMA_LIB      the folder of libllama.so that the program uses (of llama-cpp-python: .../site-packages/llama_cpp/lib)
#   PAWL_PREFIX    where Pawl is installed: include/pawl/pawl.h, lib/libpawl.so
set -euo pipefail
out=$1 include=$2 lib=$3 pawl=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
flags=()
IFS=: read -ra folders <<<"$include"
for folder in "${folders[@]}"; do flags+=("-I$folder"); done
ggml=$(find "$lib" -maxdepth 1 -name 'libggml-base.so*' -o -maxdepth 1 -name 'libggml.so*' | sort)
llama=$(find "$lib" -maxdepth 1 -name 'libllama.so*' | sort | head -1)
pawl_lib=$(find "$pawl" -maxdepth 3 -name 'libpawl.so' | head -1)
# shellcheck disable=SC2086 # a list of files
"${CC:-cc}" -std=c11 -O2 -fPIC -shared "${flags[@]}" "-I$pawl/include" "$here/pawl_llama.c" -o "$out" \
  "$pawl_lib" "$llama" $ggml "-Wl,-rpath,$(dirname "$pawl_lib"):$lib"
