// extract HEADER... OUT.cc OUT.c: the examples at the top of the public headers, as code to
// compile.
//
// Of a comment that opens a header the lines that are indented by three blanks more are its
// example. Those of one header become one function in a namespace named after it, so that they may
// go on with each other's variables; what they take for granted is declared in prelude.h. `...`
// stands for what the reader has to say: for nothing.
#include <cctype>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace {

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// The line with `;` in place of `...`, strings and comments aside.
std::string WithoutDots(const std::string& line) {
  std::string out;
  bool string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) string = !string;
    if (!string && line.compare(i, 2, "//") == 0) return out + line.substr(i);
    if (!string && line.compare(i, 3, "...") == 0) {
      out += ';';
      i += 2;
    } else {
      out += line[i];
    }
  }
  return out;
}

// The example of a header whose comment's lines begin with `mark`; "" where there is none.
// `once`: it is one block, since lists further down are indented in the same way.
std::string ExampleOf(std::istream& in, const std::string& mark, bool once) {
  std::string out, line;
  std::getline(in, line);
  while (std::getline(in, line) && StartsWith(line, mark)) {
    if (StartsWith(line, mark + "   ")) {
      out += WithoutDots(line.substr(mark.size() + 1)) + "\n";
    } else if (once && !out.empty()) {
      break;
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::ofstream cc(argv[argc - 2]), c(argv[argc - 1]);
  cc << "#include \"tests/examples/prelude.h\"\n";
  c << "#include \"tests/examples/prelude_c.h\"\nint Example(void) {\n";
  int examples = 0;
  for (int i = 1; i < argc - 2; ++i) {
    const std::string path = argv[i];
    std::ifstream in(path);
    std::string name = path.substr(path.rfind('/') + 1);
    const bool is_c = name == "pawl.h";
    const std::string code = ExampleOf(in, is_c ? " *" : "//", is_c);
    if (code.empty()) continue;
    ++examples;
    if (is_c) {
      c << code;
      continue;
    }
    for (char& letter : name)
      letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
    cc << "namespace from_" << name << " {\nint Example() {\n" << code << "  return 0;\n}\n}\n";
  }
  c << "  return 0;\n}\n";
  if (examples >= 12) return 0;
  std::cerr << "extract: " << examples << " examples: the headers had more\n";
  return 1;
}
