# A text file as a C++ source with one function.
file(READ ${IN} text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 4000 piece)
  string(APPEND pieces "R\"pawlpage(${piece})pawlpage\"\n")
  math(EXPR at "${at} + 4000")
endwhile()
file(WRITE ${OUT} "#include \"src/server/playground.h\"

namespace pawl::server {

std::string_view PlaygroundPage() {
  static constexpr char kPage[] =
${pieces};
  return {kPage, sizeof kPage - 1};
}

}  // namespace pawl::server
")
