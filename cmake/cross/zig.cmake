# What the toolchain files here share: zig's compiler for PAWL_CROSS_TARGET, with what scripts/cross_deps.sh has made for it.
#
# PAWL_CROSS_TARGET is zig's name of the target. Below it, in build-cross/, PAWL_CROSS_NAME is the folder of its libraries.
get_filename_component(pawl_cross ${CMAKE_CURRENT_LIST_DIR}/../../build-cross ABSOLUTE)
set(pawl_cross_root ${pawl_cross}/${PAWL_CROSS_NAME}/root)
if(NOT EXISTS ${pawl_cross_root}/complete)
  message(FATAL_ERROR "${pawl_cross_root}: not there; scripts/cross_deps.sh ${PAWL_CROSS_NAME} makes it")
endif()
set(CMAKE_C_COMPILER ${pawl_cross}/bin/zig-cc)
set(CMAKE_CXX_COMPILER ${pawl_cross}/bin/zig-c++)
set(CMAKE_AR ${pawl_cross}/bin/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${pawl_cross}/bin/zig-ranlib CACHE FILEPATH "")
# zig would check undefined behaviour in builds that are not optimized.
set(CMAKE_C_FLAGS_INIT "-target ${PAWL_CROSS_TARGET} -fno-sanitize=undefined -g0")
set(CMAKE_CXX_FLAGS_INIT "-target ${PAWL_CROSS_TARGET} -fno-sanitize=undefined -g0")
set(CMAKE_ASM_FLAGS_INIT "-target ${PAWL_CROSS_TARGET}")
# Without symbols, which would take nine tenths of the command.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s")
# CMake asks for tools of these systems that no target here needs.
if(CMAKE_SYSTEM_NAME STREQUAL "Windows")
  set(CMAKE_RC_COMPILER ${pawl_cross}/bin/zig-rc CACHE FILEPATH "")
elseif(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
  set(CMAKE_INSTALL_NAME_TOOL false CACHE FILEPATH "")
  set(CMAKE_OSX_SYSROOT "" CACHE PATH "")
endif()
# Nothing of this machine's own libraries and headers.
set(CMAKE_FIND_ROOT_PATH ${pawl_cross_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
