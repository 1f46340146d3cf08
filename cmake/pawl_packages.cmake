# Debian packages of what is installed, a package for each component:
#
#   pawl         command: the command and the models that ship
#   libpawl0.1   library: the C library (with BUILD_SHARED_LIBS also those of C++)
#   libpawl-dev  development: headers, archives, files for find_package and pkg-config
#
# `cpack --config build/CPackConfig.cmake -B FOLDER` writes them; scripts/check_packages.sh installs and removes them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pawl)
set(CPACK_PACKAGE_VENDOR "The Pawl authors")
set(CPACK_PACKAGE_CONTACT "The Pawl authors <pawl@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library development)
if(TARGET pawl)
  list(APPEND CPACK_COMPONENTS_ALL command)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME pawl)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libpawl${PAWL_SOVERSION})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libpawl-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libpawl${PAWL_SOVERSION} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "The pawl command: records, text and code from language models under a grammar.
 Also a server and three small models to try it with.")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The C library: grammars, masks, and text from language models.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, static libraries and package files, to link Pawl into C and C++ programs.")
include(CPack)
