// What a reader of schemas/ and grammar/ may rely on: no file has more than 800 lines and no
// function more than 100, and every source of the tree opens with an essay on its idea.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source_dir.h"

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfFile = 800, kMostOfFunction = 100;

std::string Read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// 1'000, and not '0'.
bool SeparatesDigits(std::string_view text, size_t i) {
  const auto digit = [&](size_t at) {
    return at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  return i > 0 && digit(i - 1) && digit(i + 1) && text[i + 2] != '\'';
}

// The code with blanks in place of comments, strings and preprocessor lines; lines stay.
std::string CodeOf(std::string_view text) {
  std::string out(text);
  const auto blank = [&](size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, out.size()); ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
    return to;
  };
  bool line_begins = true;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    if (c == '\n') {
      line_begins = true;
      ++i;
    } else if (StartsWith(rest, "//") || (c == '#' && line_begins)) {
      size_t end = text.find('\n', i);
      while (c == '#' && end != std::string_view::npos && text[end - 1] == '\\')
        end = text.find('\n', end + 1);
      i = blank(i, end);
    } else if (StartsWith(rest, "/*")) {
      i = blank(i, text.find("*/", i) + 2);
    } else if (StartsWith(rest, "R\"")) {
      const size_t open = text.find('(', i);
      const std::string close = ")" + std::string(text.substr(i + 2, open - i - 2)) + "\"";
      i = blank(i, text.find(close, open) + close.size());
    } else if (c == '"' || (c == '\'' && !SeparatesDigits(text, i))) {
      size_t end = i + 1;
      while (end < text.size() && text[end] != c) end += text[end] == '\\' ? 2 : 1;
      i = blank(i, end + 1);
    } else {
      line_begins = line_begins && c == ' ';
      ++i;
    }
  }
  return out;
}

struct Block {
  std::string head;  // what stands before the brace
  size_t first, lines;
};

// All blocks but those of namespaces, classes and initializers: functions, and what is in them.
std::vector<Block> BlocksOf(const std::string& code) {
  std::vector<Block> out;
  struct Open {
    std::string head;
    size_t first;
  };
  std::vector<Open> open;
  std::string head;
  size_t line = 1, first = 0;  // `first`: where the head begins; 0: nowhere yet
  int parentheses = 0;         // in a head a brace between parentheses begins no statement
  for (const char c : code) {
    if (c == '\n') ++line;
    if (c == '(') ++parentheses;
    if (c == ')') --parentheses;
    if (c == '{') {
      open.push_back({head, first == 0 ? line : first});
      head.clear();
      first = 0;
    } else if (c == '}' && !open.empty()) {
      const auto& [before, begin] = open.back();
      const size_t at = before.find_last_not_of(" \n");
      const char last = at == std::string::npos ? ' ' : before[at];
      bool type = false;
      for (const char* word : {"namespace", "class ", "struct ", "enum ", "union "})
        type = type || StartsWith(before, word);
      const bool template_type =
          StartsWith(before, "template") && before.find(')') == std::string::npos;
      const bool initializer = last == '=' || last == ',' || last == '(' || last == ' ';
      if (!type && !template_type && !initializer) out.push_back({before, begin, line - begin + 1});
      open.pop_back();
      head.clear();
      first = 0;
    } else if (c == ';' && parentheses == 0) {
      head.clear();
      first = 0;
    } else if (!head.empty() || (c != ' ' && c != '\n')) {
      if (head.empty()) first = line;
      head += c;
    }
  }
  return out;
}

std::vector<fs::path> Sources(const std::vector<const char*>& folders) {
  std::vector<fs::path> out;
  const fs::path root = pawl::SourceDir();
  for (const char* folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      for (const char* known : {".cc", ".h", ".cu", ".cuh"}) {
        if (extension == known) out.push_back(entry.path());
      }
    }
  }
  return out;
}

TEST(SourcesTest, FilesAndFunctionsAreShort) {
  size_t functions = 0;
  for (const fs::path& path : Sources({"schemas", "grammar"})) {
    const std::string text = Read(path);
    EXPECT_LE(std::ranges::count(text, '\n'), kMostOfFile) << path;
    for (const Block& block : BlocksOf(CodeOf(text))) {
      ++functions;
      EXPECT_LE(block.lines, kMostOfFunction) << path << ":" << block.first << ": " << block.head;
    }
  }
  EXPECT_GT(functions, 3000u);
}

TEST(SourcesTest, LongFunctionsAreSeen) {
  const std::string inner = "  if (a) {\n    b();\n  }\n";
  std::string body;
  for (int i = 0; i < 40; ++i) body += inner;
  const std::string code =
      "namespace n {\nstruct S {\n  int a = {1};\n};\nint F(int a,\n      int b) {\n" + body +
      "}\n}  // namespace n\n";
  size_t longest = 0;
  for (const Block& block : BlocksOf(CodeOf(code))) longest = std::max(longest, block.lines);
  EXPECT_EQ(longest, 123u);
  EXPECT_EQ(CodeOf("a = \"{\\\"\"; // {\nb = '{';"), "a =      ;     \nb =    ;");
}

TEST(SourcesTest, EverySourceOpensWithAnEssay) {
  for (const fs::path& path :
       Sources({"bench", "grammar", "kernels", "plugins", "schemas", "src", "tests"})) {
    const std::string extension = path.extension().string();
    if (extension == ".cc" || extension == ".cu") {
      EXPECT_TRUE(StartsWith(Read(path), "//")) << path;
    }
  }
}

}  // namespace
