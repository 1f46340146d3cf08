# The libraries that others link, put together from the objects of the layers, and their packages.
#
#   pawl::core   libpawl_core: grammars, schemas, masks, matcher; C++, static or shared by BUILD_SHARED_LIBS
#   pawl::engine libpawl_engine: models, tokenizers and the decode loop behind pawl/engine.h; needs pawl::core, kind as core
#   pawl::cuda   libpawl_cuda_kernels: masks on logits in device memory (pawl/cuda_kernels.h); static, where nvcc was found
#   pawl::c      libpawl: the same, tokenizers and, where the engine is built, models behind the C functions of pawl.h; shared always
#
# Installed with them: include/pawl, the files for find_package(pawl COMPONENTS core engine cuda c), and pawl.pc,
# pawl-core.pc and pawl-engine.pc.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Until 1.0 each minor version may change the binary interface.
set(PAWL_SOVERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(PAWL_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()

# pawl_library(name LAYERS ... SYMBOLS file): settings of a library made of layers. SYMBOLS: what it shows when shared.
function(pawl_library name)
  cmake_parse_arguments(ARG "" "SYMBOLS" "LAYERS" ${ARGN})
  pawl_target(${name})
  foreach(layer IN LISTS ARG_LAYERS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${layer}>)
  endforeach()
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PAWL_SOVERSION})
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "SHARED_LIBRARY" AND UNIX AND NOT APPLE)
    target_link_options(${name} PRIVATE -Wl,--version-script=${ARG_SYMBOLS} -Wl,--as-needed)
    set_target_properties(${name} PROPERTIES LINK_DEPENDS ${ARG_SYMBOLS})
    if(NOT PAWL_SANITIZE)
      target_link_options(${name} PRIVATE -Wl,--no-undefined)
    endif()
  endif()
endfunction()

# pawl_c_exports(name): where linkers take no pattern, they take a list: of the functions that pawl.h has, and no others.
# (zig's linker for macOS reads over the list; scripts/check_macos.py counts what it shows.)
function(pawl_c_exports name)
  if(NOT WIN32 AND NOT APPLE)
    return()
  endif()
  set(header ${pawl_SOURCE_DIR}/include/pawl/pawl.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(READ ${header} text)
  string(REGEX MATCHALL "PAWL_API [^;{(]*[ *]pawl_[a-z0-9_]+\\(" declared "${text}")
  list(TRANSFORM declared REPLACE ".*[ *](pawl_[a-z0-9_]+)\\($" "\\1")
  set(list ${pawl_BINARY_DIR}/package/pawl.def)
  set(lines EXPORTS ${declared})
  if(APPLE)
    set(list ${pawl_BINARY_DIR}/package/pawl.exports)
    list(TRANSFORM declared PREPEND _ OUTPUT_VARIABLE lines)
    target_link_options(${name} PRIVATE -Wl,-exported_symbols_list,${list})
    # Programs find the library where they look for libraries, and not where it was built.
    set_target_properties(${name} PROPERTIES INSTALL_NAME_DIR "@rpath" BUILD_WITH_INSTALL_NAME_DIR ON)
  else()
    target_sources(${name} PRIVATE ${list})
  endif()
  list(JOIN lines "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${list})
endfunction()

add_library(pawl_core)
pawl_library(pawl_core LAYERS pawl_base pawl_grammar pawl_schemas SYMBOLS ${pawl_SOURCE_DIR}/cmake/pawl_core.symbols)
target_link_libraries(pawl_core PUBLIC Threads::Threads)
target_compile_features(pawl_core PUBLIC cxx_std_20)
set_target_properties(pawl_core PROPERTIES EXPORT_NAME core)
add_library(pawl::core ALIAS pawl_core)
set(PAWL_COMPONENTS core)

# What layers stand on, down to those that pawl_core holds: our own targets into LAYERS, all others into OTHERS.
function(pawl_layers_under layer layers others)
  set(seen)
  set(outside)
  set(next ${layer})
  while(next)
    list(POP_FRONT next target)
    if(target IN_LIST seen OR target MATCHES "^pawl_(grammar|schemas)$")
      continue()
    elseif(target MATCHES "^pawl_")
      list(APPEND seen ${target})
      get_target_property(links ${target} LINK_LIBRARIES)
      if(links)
        list(APPEND next ${links})
      endif()
    else()
      list(APPEND outside ${target})
    endif()
  endwhile()
  list(REMOVE_DUPLICATES outside)
  # nlohmann/json is headers that our sources alone include.
  list(REMOVE_ITEM outside Threads::Threads nlohmann_json::nlohmann_json)
  set(${layers} ${seen} PARENT_SCOPE)
  set(${others} ${outside} PARENT_SCOPE)
endfunction()

if(PAWL_BUILD_ENGINE)
  pawl_layers_under(pawl_engine_api PAWL_ENGINE_LAYERS PAWL_ENGINE_OTHERS)
  add_library(pawl_engine)
  get_target_property(type pawl_engine TYPE)
  if(NOT type STREQUAL "SHARED_LIBRARY")
    # A static pawl_core shows its pawl_base; a shared one hides it, and pawl_engine has its own.
    list(REMOVE_ITEM PAWL_ENGINE_LAYERS pawl_base)
  endif()
  pawl_library(pawl_engine LAYERS ${PAWL_ENGINE_LAYERS} SYMBOLS ${pawl_SOURCE_DIR}/cmake/pawl_core.symbols)
  target_link_libraries(pawl_engine PUBLIC pawl_core PRIVATE Threads::Threads ${PAWL_ENGINE_OTHERS})
  set_target_properties(pawl_engine PROPERTIES EXPORT_NAME engine)
  add_library(pawl::engine ALIAS pawl_engine)
  list(APPEND PAWL_COMPONENTS engine)
endif()

if(PAWL_BUILD_C)
  add_library(pawl_c SHARED)
  pawl_layers_under(pawl_capi PAWL_C_LAYERS PAWL_C_OTHERS)
  list(APPEND PAWL_C_LAYERS pawl_base pawl_grammar pawl_schemas)
  list(REMOVE_DUPLICATES PAWL_C_LAYERS)
  pawl_library(pawl_c LAYERS ${PAWL_C_LAYERS} SYMBOLS ${pawl_SOURCE_DIR}/cmake/pawl_c.symbols)
  target_link_libraries(pawl_c PRIVATE Threads::Threads ${PAWL_C_OTHERS})
  set_target_properties(pawl_c PROPERTIES EXPORT_NAME c OUTPUT_NAME pawl)
  if(WIN32)
    set_target_properties(pawl_c PROPERTIES PREFIX "")  # pawl.dll
  endif()
  pawl_c_exports(pawl_c)
  add_library(pawl::c ALIAS pawl_c)
  list(APPEND PAWL_COMPONENTS c)
endif()

if(PAWL_HAVE_CUDA)
  add_library(pawl_cuda_component STATIC)
  pawl_library(pawl_cuda_component LAYERS pawl_cuda_masks)
  target_link_libraries(pawl_cuda_component PRIVATE CUDA::cudart_static)
  target_compile_features(pawl_cuda_component PUBLIC cxx_std_17)
  set_target_properties(pawl_cuda_component PROPERTIES EXPORT_NAME cuda OUTPUT_NAME pawl_cuda_kernels)
  add_library(pawl::cuda ALIAS pawl_cuda_component)
  list(APPEND PAWL_COMPONENTS cuda)
endif()

if(NOT PAWL_INSTALL)
  return()
endif()

set(PAWL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/pawl)
foreach(component IN LISTS PAWL_COMPONENTS)
  set(target pawl_${component})
  if(component STREQUAL cuda)
    set(target pawl_cuda_component)
  endif()
  install(TARGETS ${target} EXPORT pawl_${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
  install(EXPORT pawl_${component} NAMESPACE pawl:: FILE pawl-${component}.cmake DESTINATION ${PAWL_PACKAGE_DIR}
    COMPONENT development)
endforeach()
set(PAWL_HEADERS_LEFT_OUT)
if(NOT PAWL_BUILD_ENGINE)
  set(PAWL_HEADERS_LEFT_OUT REGEX "/(check|constraint|drafts|engine|generation|model_options|sampling)\\.h$" EXCLUDE)
endif()
install(DIRECTORY ${pawl_SOURCE_DIR}/include/pawl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h" ${PAWL_HEADERS_LEFT_OUT})
if(TARGET pawl)
  install(TARGETS pawl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  install(DIRECTORY ${pawl_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/pawl COMPONENT command
    PATTERN eval EXCLUDE PATTERN training.json EXCLUDE)
endif()

configure_package_config_file(${pawl_SOURCE_DIR}/cmake/pawl-config.cmake.in ${pawl_BINARY_DIR}/package/pawl-config.cmake
  INSTALL_DESTINATION ${PAWL_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
set(compatible SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatible SameMinorVersion)
endif()
write_basic_package_version_file(${pawl_BINARY_DIR}/package/pawl-config-version.cmake COMPATIBILITY ${compatible})
install(FILES ${pawl_BINARY_DIR}/package/pawl-config.cmake ${pawl_BINARY_DIR}/package/pawl-config-version.cmake
  DESTINATION ${PAWL_PACKAGE_DIR} COMPONENT development)

# pkg-config files name folders relative to where they lie, so that an installation can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE PAWL_PC_PREFIX)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE PAWL_PC_LIBDIR)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE PAWL_PC_INCLUDEDIR)
set(PAWL_PC_STATIC_LIBS "-lstdc++ -pthread -lm")
set(PAWL_PC_ENGINE_STATIC_LIBS ${PAWL_PC_STATIC_LIBS})
if("CUDA::cudart_static" IN_LIST PAWL_ENGINE_OTHERS)
  string(APPEND PAWL_PC_ENGINE_STATIC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl")
endif()
foreach(component IN LISTS PAWL_COMPONENTS)
  if(component STREQUAL cuda)
    continue()  # CUDA's own libraries have no pkg-config file to depend on
  endif()
  if(component STREQUAL c)
    set(name pawl)
  else()
    set(name pawl-${component})
  endif()
  configure_file(${pawl_SOURCE_DIR}/cmake/${name}.pc.in ${pawl_BINARY_DIR}/package/${name}.pc @ONLY)
  install(FILES ${pawl_BINARY_DIR}/package/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

if(PROJECT_IS_TOP_LEVEL)
  include(${pawl_SOURCE_DIR}/cmake/pawl_packages.cmake)
endif()
