#!/usr/bin/env bash
# The server under sanitizers: its tests, then 10,000 broken requests (address, undefined) or load from many clients (thread).
#
#   scripts/sanitize_server.sh address|thread [--only-server] [--requests N]
#
# Builds into build-asan or build-tsan. --only-server compiles only the server and JSON with the sanitizer, a tenth of the work;
# what the address sanitizer sees of memory that other code allocates and frees is the same.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  address) preset=asan kind=address,undefined ;;
  thread) preset=tsan kind=thread ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
mode=$1
shift
requests=10000
configure=(-DPAWL_SANITIZE_ONLY=)
while [[ $# -gt 0 ]]; do
  case "$1" in
    --only-server)
      configure=("-DPAWL_SANITIZE_ONLY=pawl_server;pawl_http;pawl_base;server_test;http_test;server_driver" -DCMAKE_BUILD_TYPE=Release)
      [[ $mode == thread ]] || kind=address
      shift ;;
    --requests) requests=$2; shift 2 ;;
    *) echo "sanitize_server.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
build=build-$preset
cmake --preset "$preset" "-DPAWL_SANITIZE=$kind" "${configure[@]}" ${CMAKE_LAUNCHER:+-DCMAKE_CXX_COMPILER_LAUNCHER=$CMAKE_LAUNCHER} >/dev/null
ninja -C "$build" ${JOBS:+-j "$JOBS"} server_test http_test server_driver
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
"$build/bin/http_test" --gtest_brief=1
"$build/bin/server_test" --gtest_brief=1
driver=$build/bin/server_driver
[[ -x $driver ]] || driver=$build/tests/server/server_driver
if [[ $mode == address ]]; then
  bench/server/load.py fuzz --requests "$requests" --pawl "$driver"
else
  bench/server/load.py streams --clients 64 --rounds 2 --pawl "$driver"
  bench/server/load.py soak --requests "$requests" --clients 16 --pawl "$driver"
fi
