# Windows on x86-64 with the C library of every Windows since 10 (UCRT): pawl.exe and pawl.dll (scripts/build_cross.sh).
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(PAWL_CROSS_NAME x86_64-windows-gnu)
set(PAWL_CROSS_TARGET x86_64-windows-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
