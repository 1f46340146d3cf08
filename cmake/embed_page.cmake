# A text file as a C++ source with one function: IN, OUT, HEADER, NAMESPACE, FUNCTION. SCRIPT: a file that takes the place
# of /*NAME*/ in the text, where NAME is its own without an ending.
file(READ ${IN} text)
if(SCRIPT)
  get_filename_component(name ${SCRIPT} NAME_WE)
  file(READ ${SCRIPT} script)
  string(REPLACE "/*${name}*/" "${script}" text "${text}")
endif()
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 4000 piece)
  string(APPEND pieces "R\"pawlpage(${piece})pawlpage\"\n")
  math(EXPR at "${at} + 4000")
endwhile()
file(WRITE ${OUT} "#include \"${HEADER}\"

namespace ${NAMESPACE} {

std::string_view ${FUNCTION}() {
  static constexpr char kPage[] =
${pieces};
  return {kPage, sizeof kPage - 1};
}

}  // namespace ${NAMESPACE}
")
