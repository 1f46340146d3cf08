# shellcheck shell=bash
# For scripts that build with zig's C++ compiler (build_wasm.sh, cross_deps.sh, build_cross.sh): source this file.
#
#   zig_commands FOLDER    # FOLDER/bin/zig-cc, zig-c++, zig-ar, zig-ranlib, zig-rc for CMake; ZIG is set to the program
#
# PAWL_ZIG_FLAGS, when a command runs, are flags that come after all others. ZIG names a zig that is there. Otherwise `ziglang` of the Python package index is installed into FOLDER/venv.
zig_commands() {
  local folder=$1 package tool
  mkdir -p "$folder/bin"
  if [[ -z ${ZIG:-} ]]; then
    ZIG=$folder/zig/zig
    if [[ ! -x $ZIG ]]; then
      python3 -m venv "$folder/venv"
      "$folder/venv/bin/pip" install -q ziglang==0.17.1
      package=$("$folder/venv/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
      ln -sfn "$package" "$folder/zig"
    fi
  fi
  for tool in ar ranlib rc; do
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$ZIG" "$tool" > "$folder/bin/zig-$tool"
  done
  # zig reads the name of a processor where GCC has an architecture. The script that is written expands its words.
  # shellcheck disable=SC2016
  for tool in cc c++; do
    {
      printf '#!/bin/bash\nargs=("${@/#-march=armv8.2-a+/-mcpu=generic+v8_2a+}")\n'
      printf 'exec "%s" %s "${args[@]}" ${PAWL_ZIG_FLAGS:-}\n' "$ZIG" "$tool"
    } > "$folder/bin/zig-$tool"
  done
  chmod +x "$folder"/bin/zig-*
}
