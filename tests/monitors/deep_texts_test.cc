// Texts that are nested deeper than 65,535, where the parser of older versions of tree-sitter wrote
// beyond its memory, and texts behind which its recovery from errors copies more and more: each is
// parsed, or given up within a budget that grows with the text.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/syntax.h"
#include "plugins/monitors/work.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

struct Deep {
  Language language;
  std::string_view unit;
};

const std::vector<Deep>& DeepUnits() {
  static const std::vector<Deep> units = {
      {Language::kPython, "("},       {Language::kPython, "["},
      {Language::kPython, "{"},       {Language::kPython, "f("},
      {Language::kPython, "not "},    {Language::kPython, "lambda:"},
      {Language::kPython, "if x:"},   {Language::kPython, "a if "},
      {Language::kPython, "-"},       {Language::kPython, ")"},
      {Language::kTypeScript, "("},   {Language::kTypeScript, "{"},
      {Language::kTypeScript, "<"},   {Language::kTypeScript, "a<"},
      {Language::kTypeScript, "a?"},  {Language::kTypeScript, "`${"},
      {Language::kTypeScript, "a=>"}, {Language::kTypeScript, "if(a)"},
      {Language::kJava, "("},         {Language::kJava, "{"},
      {Language::kJava, "class A{"},  {Language::kJava, "a<"},
  };
  return units;
}

std::string Repeated(std::string_view unit, size_t count) {
  std::string text;
  text.reserve(unit.size() * count);
  for (size_t i = 0; i < count; ++i) text += unit;
  return text;
}

constexpr size_t kDeep = 66'000;

// Steps that the parser took at most: its operations and the KiB that it allocated.
uint64_t MostSteps(size_t bytes) {
  return kParserOperations + kParserOperationsPerByte * bytes +
         (kParserBytes + kParserBytesPerByte * bytes) / 1024;
}

class DeepTextsTest : public testing::TestWithParam<int> {};

TEST_P(DeepTextsTest, AreParsedOrGivenUp) {
  const Deep& deep = DeepUnits()[static_cast<size_t>(GetParam())];
  for (const std::string_view before : {"", "x = 1\nx."}) {
    Parser parser(deep.language);
    const std::string text = std::string(before) + Repeated(deep.unit, kDeep);
    const std::unique_ptr<Tree> tree = parser.Parse(text);
    EXPECT_LE(parser.steps(), MostSteps(text.size())) << deep.unit;
    EXPECT_TRUE(tree->cut() || tree->text().size() == text.size()) << deep.unit;
    EXPECT_TRUE(tree->broken()) << deep.unit;
    // The parser goes on as before.
    const std::string_view plain =
        deep.language == Language::kJava ? "class A { int x; }" : "x = 1";
    EXPECT_FALSE(parser.Parse(std::string(plain))->broken()) << deep.unit;
    // Also where the deep part comes into a text that was parsed before.
    const std::string longer = std::string(plain) + "\n" + Repeated(deep.unit, kDeep);
    (void)parser.Parse(longer);
    EXPECT_FALSE(parser.Parse(std::string(plain))->broken()) << deep.unit;
  }
}

INSTANTIATE_TEST_SUITE_P(Units, DeepTextsTest,
                         testing::Range(0, static_cast<int>(DeepUnits().size())));

// What is parsed of real programs is not given up.
TEST(DeepTexts, ProgramsStayFarBelowTheBudget) {
  std::string text;
  for (int i = 0; i < 2'000; ++i) {
    text += "def f" + std::to_string(i) + "(a: int, b: dict[str, list[int]]) -> int:\n" +
            "    return sum(b.get(str(a), [a * (a + 1) // 2, -a, ~a]))\n";
  }
  Parser parser(Language::kPython);
  const std::unique_ptr<Tree> tree = parser.Parse(text);
  EXPECT_FALSE(tree->broken());
  EXPECT_LT(parser.steps(), MostSteps(text.size()) / 2);
}

}  // namespace
}  // namespace pawl::monitors
