# macOS 12 or newer on Apple's processors (scripts/build_cross.sh).
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(PAWL_CROSS_NAME aarch64-macos)
set(PAWL_CROSS_TARGET aarch64-macos.12.0)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
