# pawl_target(name): the settings every target of our own code shares.
function(pawl_target name)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${pawl_SOURCE_DIR}/include>)
  # Shared libraries show what include/pawl/result.h marks, and nothing else.
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${name} PRIVATE ${pawl_SOURCE_DIR})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>)
  # GCC 12 sees an overlap that cannot be in "literal" + std::string (GCC bug 105651).
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
  # Every arm64 has a fused multiply-add. Without it results have the bits of x86-64, whose first level has none.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
  endif()
  # -O3 takes a sixth more processor time to build everything, and gives nothing but where pawl_hot asks for it. A page loads
  # what is built for it, so there size counts.
  set(pawl_level -O2)
  if(PAWL_WASM)
    set(pawl_level -Os)
    # zig makes -Os of -Oz, so Clang's own option is given: a fifth less. It wins over pawl_hot, which the engine alone needs.
    if(NOT PAWL_BUILD_ENGINE)
      list(APPEND pawl_level "SHELL:-Xclang -Oz")
    endif()
  endif()
  target_compile_options(${name} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:${pawl_level}>")
  if(PAWL_WERROR)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(PAWL_FUZZ)
    target_compile_options(${name} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
  if(PAWL_SANITIZE)
    # A fifth of the time to compile: a null pointer ends in the address sanitizer, an object's type is not cast here.
    set(without "")
    if(PAWL_SANITIZE MATCHES undefined)
      set(without -fno-sanitize=null,vptr,object-size)
    endif()
    if(NOT PAWL_SANITIZE_ONLY)
      target_compile_options(${name} PUBLIC -fsanitize=${PAWL_SANITIZE} -fno-omit-frame-pointer ${without})
      if(PAWL_SANITIZE MATCHES undefined)
        target_compile_options(${name} PUBLIC -fno-sanitize-recover=undefined)
      endif()
    elseif(name IN_LIST PAWL_SANITIZE_ONLY)
      target_compile_options(${name} PRIVATE -fsanitize=${PAWL_SANITIZE} -fno-omit-frame-pointer -O1 -g1 -Wno-maybe-uninitialized ${without})
    endif()
    target_link_options(${name} PUBLIC -fsanitize=${PAWL_SANITIZE})
  endif()
endfunction()

# pawl_hot(name): after pawl_target, for loops over numbers that the compiler is to make into vectors.
function(pawl_hot name)
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-O3>)
endfunction()

# pawl_cold(name): after pawl_target, for code that is compiled more often than it runs long: compiling takes a quarter less.
function(pawl_cold name)
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-O1>)
endfunction()

# Precompiled headers save processor time. Sources include what they
# need all the same, and other compilers than GCC show when one does not.
# Not with a compiler cache, which answers for a tree that it has not seen only when the headers are not precompiled.
set(pawl_precompile_default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(pawl_precompile_default OFF)
endif()
option(PAWL_PRECOMPILE "Precompile the headers that most sources read (GCC)" ${pawl_precompile_default})

# pawl_precompiled(name kind): `name` reads cmake/precompiled/KIND.h, which is compiled once for all targets of that kind.
# Libraries read `standard`, programs of tests `tests`: code for one is not code for the other (-fPIC, -fPIE; -O2, -O1). The
# command has its own.
function(pawl_precompiled name kind)
  if(NOT PAWL_PRECOMPILE OR name IN_LIST PAWL_SANITIZE_ONLY OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  # GCC 12 sees overflows in std::string that cannot be (as in pawl_target), and tells of those in precompiled headers.
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow;-Wno-array-bounds>")
  # A precompiled header is for one set of flags, and some libraries of tests ask for this one.
  if(kind STREQUAL tests)
    target_compile_options(${name} PRIVATE -pthread $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overread>)
  endif()
  if(kind STREQUAL command)
    target_precompile_headers(${name} PRIVATE ${pawl_SOURCE_DIR}/cmake/precompiled/${kind}.h)
    return()
  endif()
  set(shared pawl_precompiled_${kind})
  if(NOT TARGET ${shared})
    if(kind STREQUAL standard)
      add_library(${shared} STATIC ${pawl_SOURCE_DIR}/cmake/precompiled/empty.cc)
    else()
      add_executable(${shared} ${pawl_SOURCE_DIR}/cmake/precompiled/empty.cc)
      target_link_libraries(${shared} PRIVATE GTest::gtest)
      target_compile_options(${shared} PRIVATE -pthread)
    endif()
    pawl_target(${shared})
    if(kind STREQUAL tests)
      pawl_cold(${shared})
    endif()
    target_compile_options(${shared} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow;-Wno-array-bounds>")
    target_precompile_headers(${shared} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${pawl_SOURCE_DIR}/cmake/precompiled/${kind}.h>)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${shared})
endfunction()

# Sources of one folder are compiled together, `most` at a time: most of what a source takes are the headers and templates that
# its neighbours take too. Not with a compiler cache, to which a source that has not changed costs nothing.
option(PAWL_UNITY "Compile the sources of a folder together" ${pawl_precompile_default})
set(PAWL_UNITY_MOST "" CACHE STRING "How many sources of a folder are compiled together, in place of a number for each library")
function(pawl_unity name most)
  if(NOT PAWL_UNITY)
    return()
  endif()
  if(PAWL_UNITY_MOST)
    set(most ${PAWL_UNITY_MOST})
  endif()
  get_target_property(sources ${name} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.cc$" AND NOT source MATCHES "[$]" AND NOT IS_ABSOLUTE ${source})
      # A replaced operator new is a file of its own: inlined, GCC takes its `free` for the wrong end of `new`.
      file(STRINGS ${source} replaces REGEX "^void\\* operator new" LIMIT_COUNT 1)
      if(replaces)
        continue()
      endif()
      get_filename_component(folder ${source} DIRECTORY)
      string(MAKE_C_IDENTIFIER "all_${folder}" folder)
      math(EXPR group "0${count_${folder}} / ${most}")
      math(EXPR count_${folder} "0${count_${folder}} + 1")
      set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${folder}_${group})
    endif()
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # What is a class of one source looks as if it came from a header.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# pawl_self_contained(name): with PAWL_SELF_CONTAINED the compiler's libraries become part of `name`, as those of others do
# that were found as archives (cmake/pawl_dependencies.cmake).
function(pawl_self_contained name)
  if(PAWL_SELF_CONTAINED AND UNIX AND NOT APPLE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
    # Functions that came out the same are one: 5 % of the command. The linker that does it need not be there.
    include(CheckLinkerFlag)
    check_linker_flag(CXX "-fuse-ld=gold;-Wl,--icf=safe" PAWL_LINKER_FOLDS)
    if(PAWL_LINKER_FOLDS)
      target_link_options(${name} PRIVATE -fuse-ld=gold -Wl,--icf=safe)
    endif()
  endif()
endfunction()

# pawl_small(name): what is rarely hot is made for its size in what is shipped. The command is 0.7 MB smaller for it; masks and
# models are not among it.
function(pawl_small name)
  if(PAWL_SELF_CONTAINED)
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-Os;-ffunction-sections;-fdata-sections>")
  endif()
endfunction()
