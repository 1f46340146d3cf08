# Linux on x86-64 with musl: a command without shared libraries (scripts/build_cross.sh).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(PAWL_CROSS_NAME x86_64-linux-musl)
set(PAWL_CROSS_TARGET x86_64-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
