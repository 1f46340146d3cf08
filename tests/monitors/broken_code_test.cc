// Texts with bytes deleted and inserted at random: no crash, no hang, and a mutation behind the
// cursor changes nothing before it. scripts/broken_code.py does the same to thousands of files.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

constexpr const char* kProgram = R"(
interface Shape { kind: "circle" | "square"; size: number; name?: string }
enum Color { Red, Green = 5, Blue }
class Stack<T> {
  private items: T[] = [];
  constructor(readonly limit: number, public label = "stack") {}
  push(item: T): void { if (this.items.length < this.limit) this.items.push(item); }
  pop(): T | undefined { return this.items.pop(); }
  static of<U>(...items: U[]): Stack<U> { const s = new Stack<U>(items.length); items.forEach(i => s.push(i)); return s; }
}
function area(shape: Shape): number {
  switch (shape.kind) {
    case "circle": return Math.PI * shape.size ** 2;
    case "square": return shape.size * shape.size;
  }
}
const counts: Map<string, number> = new Map();
for (const word of "a b c".split(/\s+/)) { counts.set(word, (counts.get(word) ?? 0) + 1); }
const total = [...counts.values()].reduce((a, b) => a + b, 0);
let text = `total: ${total.toFixed(2)} of ${counts.size > 0 ? "some" : `none ${1}`}`;
try { JSON.parse(text); } catch (e) { text = String(e); } finally { text += "!"; }
const { kind, size: s = 3 } = { kind: "circle", size: 4 } as Shape;
label: for (let i = 0, j = 10; i < j; i++, j--) { if (i % 3 === 0) continue label; do { j -= 1; } while (j > 5); }
)";

TEST(BrokenCodeTest, RandomDamageNeverCrashes) {
  auto set = AllMonitors(Language::kTypeScript);
  ASSERT_FALSE(Judge(*set, kProgram).has_value())
      << Judge(*set, kProgram)->identifier << Judge(*set, kProgram)->message;
  std::mt19937 random(7);
  const std::string original = kProgram;
  const std::string_view pieces[] = {"(",  ")",  "{",  "}",      "[",         "]",       "`",
                                     "${", "\"", "'",  "/*",     "//",        ".",       "?.",
                                     ";",  "\n", "=>", "class ", "function ", "import ", "<",
                                     ">",  "?",  ":",  "case ",  "\\",        "\xff"};
  for (int round = 0; round < 80; ++round) {
    std::string text = original;
    for (int k = 0; k < 1 + static_cast<int>(random() % 4); ++k) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, 1 + random() % 20);
      } else {
        text.insert(at, pieces[random() % std::size(pieces)]);
      }
      if (text.empty()) text = " ";
    }
    Judge(*set, text);
    set->FinishStrict(text);
  }
}

TEST(BrokenCodeTest, WhatIsBehindTheCursorDoesNotMatter) {
  auto set = AllMonitors(Language::kTypeScript);
  const std::string text = kProgram;
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const size_t cut = random() % text.size();
    TextState state = set->Start(text.substr(0, cut));
    Refusal refusal;
    EXPECT_TRUE(state.Add(std::string_view(text).substr(cut), &refusal))
        << cut << " " << refusal.identifier;
  }
}

// The parser's recovery costs the length of the text: what is no program is hardly asked about.
TEST(BrokenCodeTest, TrashIsAskedAboutLessAndLess) {
  std::mt19937 random(5);
  const std::string_view letters = "abcd  \n(){}[].,;:=+-<>\"'`/*#@!?&|0123";
  std::string text;
  for (int i = 0; i < 12000; ++i) text += letters[random() % letters.size()];
  for (const Language language : {Language::kTypeScript, Language::kJava, Language::kPython}) {
    auto set = AllMonitors(language);
    TextState state = set->Start("");
    Refusal refusal;
    state.Add(text, &refusal);
    EXPECT_LT(set->counts().points, 100U) << LanguageName(language);
    set->counts() = {};
    TextState binary = set->Start(std::string("a.b\0", 4));
    binary.Add("list.a; list.b; list.c", &refusal);
    EXPECT_EQ(set->counts().points, 0U) << LanguageName(language);
  }
}

TEST(BrokenCodeTest, DeepNestingIsNoProblem) {
  auto set = AllMonitors(Language::kTypeScript);
  std::string text = "const a = ";
  for (int i = 0; i < 3000; ++i) text += "(";
  TextState state = set->Start(text + "Math");
  Refusal refusal;
  state.Add(".ma", &refusal);
  for (int i = 0; i < 3000; ++i) text += "[";
  set->Finish(text);
  std::string sum = "const b = 1";
  for (int i = 0; i < 20000; ++i) sum += " + 1";
  EXPECT_FALSE(set->Finish(sum + ";\nb.toFixed();\n").has_value());
  set->FinishStrict(sum + ";\n");
}

}  // namespace
}  // namespace pawl::monitors
