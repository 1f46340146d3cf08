# pawl_page(source page header namespace function): a page of HTML as the source of a function that returns it.
# src/engine/value_places.js takes the place of /*value_places*/ in it.
function(pawl_page source page header namespace function)
  set(script ${pawl_SOURCE_DIR}/src/engine/value_places.js)
  set(embed ${pawl_SOURCE_DIR}/cmake/embed_page.cmake)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DIN=${page} -DOUT=${source} -DSCRIPT=${script} -DHEADER=${header} -DNAMESPACE=${namespace}
            -DFUNCTION=${function} -P ${embed}
    DEPENDS ${page} ${script} ${embed}
    VERBATIM)
endfunction()
