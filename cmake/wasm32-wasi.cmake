# Builds the module of js/ for browsers and Node: WebAssembly, one thread, with the compiler and the C++ library of zig.
# scripts/build_wasm.sh installs zig and writes the three commands that PAWL_ZIG_COMMANDS names a folder of.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(PAWL_WASM ON)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PAWL_ZIG_COMMANDS)
set(CMAKE_C_COMPILER ${PAWL_ZIG_COMMANDS}/zig-cc)
set(CMAKE_CXX_COMPILER ${PAWL_ZIG_COMMANDS}/zig-c++)
set(CMAKE_AR ${PAWL_ZIG_COMMANDS}/zig-ar)
set(CMAKE_RANLIB ${PAWL_ZIG_COMMANDS}/zig-ranlib)
# Of browsers since 2022: SIMD, exceptions, and what every build of Clang has switched on since.
set(pawl_wasm_flags "-target wasm32-wasi \
-mcpu=generic+bulk_memory+exception_handling+multivalue+mutable_globals+nontrapping_fptoint+reference_types+sign_ext+simd128")
set(CMAKE_C_FLAGS_INIT "${pawl_wasm_flags}")
set(CMAKE_ASM_FLAGS_INIT "${pawl_wasm_flags}")
set(CMAKE_CXX_FLAGS_INIT "${pawl_wasm_flags} -fwasm-exceptions -fno-ident")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-mexec-model=reactor")
