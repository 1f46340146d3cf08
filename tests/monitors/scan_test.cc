// The scanner tells code from text in comments and strings, and closes what a piece of code has
// left open.
#include "plugins/monitors/scan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace pawl::monitors {
namespace {

Scan After(std::string_view text, Language language = Language::kTypeScript) {
  Scan scan(language);
  scan.Add(text);
  return scan;
}

TEST(ScanTest, KnowsCodeFromText) {
  EXPECT_TRUE(After("a + b").in_code());
  EXPECT_FALSE(After("a + 'b").in_code());
  EXPECT_TRUE(After("a + 'b\\'c'").in_code());
  EXPECT_FALSE(After("// b").in_code());
  EXPECT_TRUE(After("// b\n").in_code());
  EXPECT_FALSE(After("/* b *").in_code());
  EXPECT_TRUE(After("/* b **/ c").in_code());
  EXPECT_TRUE(After("/**/ c").in_code());
  EXPECT_FALSE(After("/*/ c").in_code());
  EXPECT_FALSE(After("`a ${b} c").in_code());
  EXPECT_TRUE(After("`a ${b").in_code());
  EXPECT_TRUE(After("`a ${`${b}`} c`;").in_code());
  EXPECT_FALSE(After("x = /[/]").in_code());
  EXPECT_TRUE(After("x = /[/]/.test").in_code());
  EXPECT_TRUE(After("x = a / b; y").in_code());
  EXPECT_FALSE(After("return /x'").in_code());
  EXPECT_TRUE(After("(a) / 2 + x").in_code());
}

TEST(ScanTest, PythonHasOtherStrings) {
  EXPECT_FALSE(After("x = \"\"\"a 'b' \"c", Language::kPython).in_code());
  EXPECT_TRUE(After("x = \"\"\"a\"\"\" + b", Language::kPython).in_code());
  EXPECT_TRUE(After("x = '' + b", Language::kPython).in_code());
  EXPECT_FALSE(After("x = 1 # b", Language::kPython).in_code());
  EXPECT_TRUE(After("x = 7 // b", Language::kPython).in_code());
}

TEST(ScanTest, LongStringsOfEitherQuote) {
  for (const char quote : {'\'', '"'}) {
    const std::string quotes(3, quote);
    Scan scan(Language::kPython);
    scan.Add("x = " + quotes + "\na(\n\"'");
    EXPECT_FALSE(scan.in_code()) << quotes;
    scan.Add(" " + quotes + "\n");
    EXPECT_TRUE(scan.in_code()) << quotes;
    EXPECT_EQ(scan.Closers(false), "") << quotes;
  }
  // An escaped quote, the end of the string and the beginning of the next are not three.
  Scan next(Language::kPython);
  next.Add(R"(x = '\'''b')");
  EXPECT_TRUE(next.in_code());
}

TEST(ScanTest, TheLastByteOfCode) {
  EXPECT_EQ(After("a. // b.\n").significant(), '.');
  EXPECT_EQ(After("a; // b.\n").significant(), ';');
  EXPECT_EQ(After("a /* b. */ ").significant(), 'a');
}

// The holes of f-strings are code; what closes one closes the string too.
TEST(ScanTest, FormatStrings) {
  struct Case {
    std::string text;
    bool code;
    std::string closers;
  };
  const std::vector<Case> cases = {
      {"x = f\"a", false, ""},
      {"x = f\"{a", true, "}\""},
      {"x = f'{a", true, "}'"},
      {"x = rF'{a", true, "}'"},
      {"x = f\"\"\"{a", true, "}\"\"\""},
      {"x = f'\'\'{a", true, "}'\'\'"},
      {"x = f\"{{a", false, ""},
      {"x = f\"{{{a", true, "}\""},
      {"x = f\"{{{a}}}\" + b", true, ""},
      {"x = f\"{a}", false, ""},
      {"x = f\"{a}\" + b", true, ""},
      {"x = f\"{a}{b", true, "}\""},
      {"x = f\"{a:", false, "}\""},
      {"x = f\"{a:>{b", true, "}}\""},
      {"x = f\"{a:>{b}} {c", true, "}\""},
      {"x = f\"{a:>{b}}\" + c", true, ""},
      {"x = f\"{a[b:", true, "]}\""},
      {"x = f\"{f(a, {b", true, "})}\""},
      {"x = f\"{f'{a", true, "}'}\""},
      {"x = f\"{'}' + a", true, "}\""},
      {"x = f\"{a!r}\" + b", true, ""},
      {"x = f\"\\\"{a", true, "}\""},
      // No f-strings.
      {"x = \"{a", false, ""},
      {"x = rb'{a", false, ""},
      {"x = a if'{a", false, ""},
      {"x = f, '{a", false, ""},
      // The end of the line ends the strings of one line, and no others.
      {"x = f\"{a\ny = b", true, ""},
      {"x = f\"{a:\ny = b", true, ""},
      {"x = f(f\"{'a\ny = b", true, ")"},
      {"x = f\"\"\"{a +\n b", true, "}\"\"\""},
      {"x = f\"\"\"{f'{a\n b", true, "}\"\"\""},
  };
  for (const Case& c : cases) {
    const Scan scan = After(c.text, Language::kPython);
    EXPECT_EQ(scan.in_code(), c.code) << c.text;
    EXPECT_EQ(scan.Closers(false), c.closers) << c.text;
  }
}

TEST(ScanTest, ClosesWhatIsOpen) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"f(a[b", "])"},
      {"for (let i = 0; i < a", ";){}"},
      {"for (const x of a", "){}"},
      {"if (a", "){}"},
      {"`${a", "}`"},
      {"a ? b", " : 0"},
      {"a ? b : c", ""},
      {"a?.b", ""},
      {"a ?? b", ""},
      {"f(a ? b", " : 0)"},
      {"function f(a?: number", ")"},
      {"try { a", "\n} catch {}"},
      {"switch (a", "){}"},
      {"switch (a) { case b", ":\n}"},
      {"class A extends B", " {}"},
      {"do { a", "\n} while (0)"},
  };
  for (const auto& [text, closers] : cases) EXPECT_EQ(After(text).Closers(true), closers) << text;
}

}  // namespace
}  // namespace pawl::monitors
