# macOS 12 or newer on processors of Intel (scripts/build_cross.sh).
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(PAWL_CROSS_NAME x86_64-macos)
set(PAWL_CROSS_TARGET x86_64-macos.12.0)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
