# Linux on 64-bit ARM with glibc 2.28 or newer: wheels (scripts/build_wheels.sh --target manylinux_2_28_aarch64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(PAWL_CROSS_NAME aarch64-linux-gnu.2.28)
set(PAWL_CROSS_TARGET aarch64-linux-gnu.2.28)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
