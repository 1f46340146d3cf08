# pawl_target(name): the settings every target of our own code shares.
function(pawl_target name)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${pawl_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_include_directories(${name} PRIVATE ${pawl_SOURCE_DIR})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wno-unused-parameter>)
  # GCC 12 sees an overlap that cannot be in "literal" + std::string (GCC bug 105651).
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
  if(PAWL_WERROR)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(PAWL_SANITIZE)
    target_compile_options(${name} PUBLIC -fsanitize=${PAWL_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${name} PUBLIC -fsanitize=${PAWL_SANITIZE})
    if(PAWL_SANITIZE MATCHES undefined)
      target_compile_options(${name} PUBLIC -fno-sanitize-recover=undefined)
    endif()
  endif()
endfunction()
