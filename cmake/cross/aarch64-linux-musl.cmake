# Linux on 64-bit ARM with musl: a command without shared libraries (scripts/build_cross.sh).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(PAWL_CROSS_NAME aarch64-linux-musl)
set(PAWL_CROSS_TARGET aarch64-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
