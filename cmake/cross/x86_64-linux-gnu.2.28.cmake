# Linux on x86-64 with glibc 2.28 or newer: wheels (scripts/build_wheels.sh --target manylinux_2_28_x86_64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(PAWL_CROSS_NAME x86_64-linux-gnu.2.28)
set(PAWL_CROSS_TARGET x86_64-linux-gnu.2.28)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
