// extract HEADER... OUT.cc OUT.c: the examples in the public headers, as code to compile.
//
// The lines of a comment that are indented by three blanks more are its example. Those of one
// comment become one function, so that they may go on with each other's variables; what they take
// for granted is declared in prelude.h. `...` stands for what the reader has to say: for nothing.
#include <cctype>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

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

// The examples of a header, one for each of its comments that has one. Of a declaration's own
// comment the indented lines are lists.
std::vector<std::string> ExamplesOf(std::istream& in) {
  std::vector<std::string> out;
  std::string line, code;
  while (std::getline(in, line)) {
    if (StartsWith(line, "//   ")) code += WithoutDots(line.substr(3)) + "\n";
    if (StartsWith(line, "//") || code.empty()) continue;
    if (line.empty() || line[0] == '#') out.push_back(code);
    code.clear();
  }
  return out;
}

// The example at the top of the C header. It is one block, since lists further down are indented in
// the same way.
std::string ExampleOfC(std::istream& in) {
  std::string out, line;
  std::getline(in, line);
  while (std::getline(in, line) && StartsWith(line, " *")) {
    if (StartsWith(line, " *   ")) {
      out += WithoutDots(line.substr(3)) + "\n";
    } else if (!out.empty()) {
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
    if (is_c) {
      c << ExampleOfC(in);
      ++examples;
      continue;
    }
    for (char& letter : name)
      letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
    int number = 0;
    for (const std::string& code : ExamplesOf(in)) {
      ++examples;
      cc << "namespace from_" << name << " {\nint Example" << ++number << "() {\n"
         << code << "  return 0;\n}\n}\n";
    }
  }
  c << "  return 0;\n}\n";
  if (examples >= 15) return 0;
  std::cerr << "extract: " << examples << " examples: the headers had more\n";
  return 1;
}
