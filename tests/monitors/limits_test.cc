// Texts that make a checker endless, deep or slow: declarations that derive from themselves,
// nesting without end, long chains. Every question ends within its limits, which are counted in
// steps; a text twice as long takes at most 2.3 times the steps; what is nested too deeply is named
// by its place.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "plugins/monitors/syntax.h"
#include "plugins/monitors/work.h"
#include "src/base/stop_scope.h"
#include "tests/allowed_time.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

struct Reading {
  std::optional<Refusal> refusal;
  uint64_t steps = 0;
  uint64_t given_up = 0;
  bool too_deep() const { return refusal.has_value() && refusal->monitor == kLimits; }
};

// As `pawl monitor` reads a text.
Reading ReadText(MonitorSet& set, std::string_view text) {
  Reading reading;
  set.counts() = {};
  const uint64_t before = Work::Total();
  TextState state = set.Start("");
  Refusal refusal;
  for (const char c : text) {
    if (state.Add(c, &refusal)) continue;
    reading.refusal = refusal;
    break;
  }
  if (!reading.refusal && state.too_deep() != SIZE_MAX)
    reading.refusal = TooDeepAt(text, state.too_deep());
  if (!reading.refusal) reading.refusal = set.Finish(text);
  reading.steps = Work::Total() - before;
  reading.given_up = set.counts().given_up;
  return reading;
}

std::string ManyTimes(std::string_view part, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) text += part;
  return text;
}

// `part` for each number from 1, with "#" for the number and "@" for the one before.
std::string Numbered(std::string_view part, size_t n) {
  std::string text;
  for (size_t i = 1; i < n; ++i) {
    for (const char c : part) {
      text += c == '#' ? std::to_string(i) : c == '@' ? std::to_string(i - 1) : std::string(1, c);
    }
  }
  return text;
}

// One of each language: what is read of the library is read once.
MonitorSet& SharedMonitors(Language language) {
  static std::map<Language, std::unique_ptr<MonitorSet>> sets;
  auto& set = sets[language];
  if (set == nullptr) set = AllMonitors(language);
  return *set;
}

TEST(LimitsTest, DeclarationsThatDeriveFromThemselvesAreNoProblem) {
  const std::vector<std::pair<Language, std::string>> programs = {
      {Language::kTypeScript, "interface I extends I{}\ndeclare let i:I; i.x;\n"},
      {Language::kTypeScript, "function f<T extends T>(t:T){ t.x; }\n"},
      {Language::kTypeScript, "class A extends B{}\nclass B extends A{}\nlet a=new A(); a.z;\n"},
      {Language::kTypeScript, "class A extends A{}\nlet a=new A(1); a.z; A.y;\n"},
      {Language::kTypeScript, "interface A extends B{}\ninterface B extends A{}\nlet a:A; a.z;\n"},
      {Language::kTypeScript, "interface A<T> extends A<A<T>>{}\ndeclare let a:A<number>; a.x;\n"},
      {Language::kTypeScript,
       "interface A<T> extends B<A<T>>{}\ninterface B<T> extends A<B<T>>{}\nlet a:A<number>; "
       "a.x;\n"},
      {Language::kTypeScript, "function f<T extends U, U extends T>(t:T){ t.x; t[0]; t(); }\n"},
      {Language::kTypeScript,
       "function f<T extends U|{a:1}, U extends T|{b:2}>(t:T){ t.x; t.a.b; }\n"},
      {Language::kTypeScript, "type A = B; type B = A;\ndeclare let a:A; a.x;\n"},
      {Language::kTypeScript, "type A<T> = A<A<T>>;\ndeclare let a:A<1>; a.x;\n"},
      {Language::kTypeScript, "type A<T> = {x: A<A<T>>};\nlet a:A<1>; let b:A<2>=a.x.x.x; b.y;\n"},
      {Language::kTypeScript, "interface A extends Partial<A>{}\ndeclare let a:A; a.x;\n"},
      {Language::kTypeScript, "let a = b; let b = a; a.x;\nconst f = () => f(); f().x;\n"},
      {Language::kTypeScript, "interface I extends I{}\nlet i:I={}; let j:{a:I}={a:i}; j.a.b=i;\n"},
      {Language::kJava, "class A extends A { void f(A a) { a.x(); } }\n"},
      {Language::kJava, "class A extends B {}\nclass B extends A { void f(A a) { a.x(); } }\n"},
      {Language::kJava, "class A<T> extends A<A<T>> { void f(A<A> a) { a.x(); new A(1); } }\n"},
      {Language::kJava, "class C<T extends T> { void f(T t) { t.x(); } }\n"},
      {Language::kJava,
       "class C<T extends U, U extends T> { void f(T t, U u) { t.x(); u.y(); } }\n"},
      {Language::kPython, "class A(A):\n  pass\na = A()\na.x\n"},
      {Language::kPython, "class A(B):\n  pass\nclass B(A):\n  pass\na = A()\na.x\nB(1)\n"},
      {Language::kPython, "a = b\nb = a\na.x\n"},
      {Language::kPython,
       "class A(list['A[A]']):\n  def f(self) -> 'A': return self\nA().f().f().x\n"},
  };
  for (const auto& [language, text] : programs) {
    MonitorSet* const set = &SharedMonitors(language);
    const Reading reading = ReadText(*set, text);
    EXPECT_FALSE(reading.too_deep()) << text;
    EXPECT_EQ(reading.given_up, 0U) << text;
    EXPECT_LT(reading.steps, 2'000'000U) << text;
    set->FinishStrict(text);
    for (size_t cut = 0; cut < text.size(); ++cut) {
      TextState state = set->Start(text.substr(0, cut), text.substr(cut));
      state.Expected();
    }
  }
}

struct Family {
  const char* name;
  Language language;
  std::function<std::string(size_t)> text;
  size_t most;  // the size that has to end in two seconds
};

std::vector<Family> Families() {
  constexpr Language kTs = Language::kTypeScript;
  constexpr Language kJava = Language::kJava;
  constexpr Language kPython = Language::kPython;
  const auto nested = [](std::string before, std::string open, std::string inner, std::string close,
                         std::string behind) {
    return [=](size_t n) {
      return before + ManyTimes(open, n) + inner + ManyTimes(close, n) + behind;
    };
  };
  const auto lines = [](std::string before, std::string line, std::string behind) {
    return [=](size_t n) { return before + Numbered(line, n) + behind; };
  };
  return {
      {"brackets", kTs, nested("let x = ", "(", "1", ")", ";\n"), 200'000},
      {"brackets", kPython, nested("x = ", "(", "1", ")", "\n"), 200'000},
      {"brackets", kJava, nested("class A { int x = ", "(", "1", ")", "; }\n"), 200'000},
      {"calls", kTs, nested("let x = ", "f(", "1", ")", ";\n"), 100'000},
      {"calls", kPython, nested("x = ", "f(", "1", ")", "\n"), 100'000},
      {"template strings", kTs, nested("let x = ", "`${", "1", "}`", ";\n"), 50'000},
      {"lines", kTs, lines("let a0=1;\n", "let a#=a@+a@;\n", ""), 20'000},
      {"lines", kPython, lines("a0=1\n", "a#=a@+a@\n", ""), 20'000},
      {"lines", kJava, lines("class A { void f() {\nint a0=1;\n", "int a#=a@+a@;\n", "}}\n"),
       20'000},
      {"blocks", kTs, nested("", "{", "let x = 1;", "}", "\n"), 50'000},
      {"blocks", kJava, nested("class A { void f() {", "{", "int x = 1;", "}", "}}\n"), 50'000},
      {"extends", kTs,
       lines("class A0 {}\n", "class A# extends A@ {}\n", "let x = new A0(); x.y;\n"), 5'000},
      {"extends, looked up", kTs,
       [](size_t n) {
         const std::string last = "A" + std::to_string(n - 1);
         return "class A0 { m: number; }\n" + Numbered("class A# extends A@ { m#: 1; }\n", n) +
                "let x = new " + last + "();\nx.m;\nlet y: {m: number} = x;\n";
       },
       5'000},
      {"extends", kJava,
       [](size_t n) {
         return "class A0 {}\n" + Numbered("class A# extends A@ {}\n", n) + "class M { void f(A" +
                std::to_string(n - 1) + " x) { x.toString(); } }\n";
       },
       5'000},
      {"extends", kPython,
       [](size_t n) {
         return "class A0: pass\n" + Numbered("class A#(A@): pass\n", n) + "x = A" +
                std::to_string(n - 1) + "()\nx.y\n";
       },
       5'000},
      {"else if", kTs,
       lines("declare let a: number;\nif (a == 0) {}\n", "else if (a == #) {}\n", ""), 40'000},
      {"else if", kJava,
       lines("class A { void f(int a) {\nif (a == 0) {}\n", "else if (a == #) {}\n", "}}\n"),
       40'000},
      {"elif", kPython, lines("a = 1\nif a == 0: pass\n", "elif a == #: pass\n", ""), 40'000},
      {"unions", kTs, lines("type U = \"k\"", " | \"k#\"", ";\ndeclare let u: U;\nu.length;\n"),
       40'000},
      {"unions of names", kTs,
       lines("interface I {a: 1}\ntype U = I", "|I", ";\ndeclare let u: U;\nu.a;\n"), 40'000},
      {"unions", kPython, lines("def f(x: int", " | int", "):\n  x.bit_length()\n"), 40'000},
      {"generics", kTs,
       nested("interface B<T> {v: T}\ndeclare let x: ", "B<", "number", ">", ";\nx.v;\n"), 40'000},
      {"generics", kJava,
       nested("import java.util.*;\nclass A { ", "List<", "String", ">",
              " x; void f() { x.size(); } }\n"),
       40'000},
      {"generics", kPython, nested("def f(x: ", "list[", "int", "]", "):\n  x.append(1)\n"),
       40'000},
      {"comments", kTs, [](size_t n) { return "let x = 1;\n" + ManyTimes("/* a\n", n); }, 100'000},
      {"comments", kJava, [](size_t n) { return "class A {\n" + ManyTimes("/* a\n", n); }, 100'000},
      {"strings", kPython, [](size_t n) { return "x = 1\n" + ManyTimes("\"\"\" a\n", 2 * n + 1); },
       20'000},
      {"signs", kTs, nested("let x = ", "!", "1", "", ";\n"), 400'000},
      {"sums", kTs, lines("let a = 1;\nlet x = a", "+a", ";\nx.y;\n"), 20'000},
      {"arrows", kTs, nested("let x = ", "x=>", "x.y", "", ";\n"), 100'000},
      {"members", kTs, lines("declare let a: {b: number};\na", ".b", ";\n"), 20'000},
      {"conditions", kTs, nested("let a = 1; let x = ", "a?1:", "a", "", ";\n"), 100'000},
      {"labels", kTs, nested("", "a:", "1", "", ";\n"), 100'000},
  };
}

TEST(LimitsTest, StepsGrowWithTheText) {
  for (const Family& family : Families()) {
    MonitorSet* const set = &SharedMonitors(family.language);
    ReadText(*set, family.text(16));  // declarations of the library are read once
    uint64_t steps = 0;
    for (const size_t n : {2000, 4000, 8000, 16000}) {
      const Reading reading = ReadText(*set, family.text(n));
      if (steps > 0) {
        EXPECT_LE(static_cast<double>(reading.steps), 2.3 * static_cast<double>(steps))
            << family.name << " " << LanguageName(family.language) << " " << n;
      }
      steps = reading.steps;
    }
  }
}

TEST(LimitsTest, LargeTextsEndSoon) {
  for (const Family& family : Families()) {
    MonitorSet* const set = &SharedMonitors(family.language);
    const std::string text = family.text(family.most).substr(0, size_t{1} << 20);
    const double begin = ProcessorSeconds();
    ReadText(*set, text);
    EXPECT_LT(ProcessorSeconds() - begin, AllowedSeconds(2))
        << family.name << " " << LanguageName(family.language);
  }
}

TEST(LimitsTest, WhatIsTooDeepIsNamedByItsPlace) {
  for (const auto& [language, text, place] :
       {std::tuple{Language::kTypeScript, "\nlet x = " + ManyTimes("(", 300), "2:265"},
        std::tuple{Language::kTypeScript, "let x = " + ManyTimes("`${", 300), "1:779"},
        std::tuple{Language::kPython, "x = " + ManyTimes("[", 300) + ManyTimes("]", 300), "1:261"},
        std::tuple{Language::kJava, "class A {\n" + ManyTimes("{", 300), "2:256"}}) {
    auto set = AllMonitors(language);
    const Reading reading = ReadText(*set, text);
    ASSERT_TRUE(reading.too_deep()) << text;
    EXPECT_EQ(reading.refusal->message, std::string("too deep to analyse at ") + place);
    EXPECT_TRUE(reading.refusal->at_end);
    ASSERT_TRUE(set->Finish(text).has_value());
    EXPECT_EQ(set->Finish(text)->message, reading.refusal->message);
  }
  // As many as are allowed are analysed.
  auto set = AllMonitors(Language::kTypeScript);
  const std::string open = ManyTimes("(", MonitorLimits{}.brackets);
  const Reading fits =
      ReadText(*set, "let x = " + open + "1" + ManyTimes(")", open.size()) + ";\n");
  EXPECT_FALSE(fits.refusal.has_value()) << fits.refusal->message;
  // Not only brackets are deep.
  EXPECT_TRUE(
      ReadText(*set, "let a = 1;\nif (a) {}" + ManyTimes(" else if (a) {}", 2000)).too_deep());
}

// With few steps nothing is refused that the same text would be refused for with more, and the
// questions are counted.
TEST(LimitsTest, WhatGivesUpSaysNothing) {
  const std::string text = "const list = [1, 2];\nlist.lenght;\n";
  auto known = AllMonitors(Language::kTypeScript);
  EXPECT_TRUE(Judge(*known, text).has_value());
  MonitorOptions options;
  options.limits.question_steps = 20;
  options.limits.finish_steps = 20;
  options.limits.finish_steps_per_byte = 0;
  auto made = MonitorSet::Make(Language::kTypeScript, options);
  ASSERT_TRUE(made.ok());
  const Reading reading = ReadText(**made, text);
  EXPECT_FALSE(reading.refusal.has_value());
  EXPECT_GE(reading.given_up, 2U);
}

// A text is not asked about any more when several questions have given up, or all together have
// taken too long.
TEST(LimitsTest, TextsHaveLimitsToo) {
  const std::string text = "const s = 'a';\n" + ManyTimes("s.length;\n", 50);
  for (const bool few : {true, false}) {
    MonitorOptions options;
    options.limits.question_steps = few ? 20 : 100'000;
    options.limits.text_steps = few ? 1'000'000 : 2'000;
    auto made = MonitorSet::Make(Language::kTypeScript, options);
    ASSERT_TRUE(made.ok());
    const Reading reading = ReadText(**made, text);
    EXPECT_FALSE(reading.refusal.has_value());
    EXPECT_GT(reading.given_up, few ? 3U : 10U);
    EXPECT_LT((*made)->counts().steps, few ? 200'000U : 10'000U);
  }
}

// A question that another thread stops, at whatever step, leaves the next ones as they were.
TEST(LimitsTest, StoppedQuestionsLeaveNothingBehind) {
  const std::vector<std::pair<Language, std::string>> programs = {
      {Language::kTypeScript,
       "class A { m(): string[] { return []; } }\nclass B extends A {}\nconst b = new B();\n"
       "b.m().map(x => x.length).filter(n => n > 1)."},
      {Language::kJava,
       "import java.util.*;\nclass A { List<String> m() { return null; } }\n"
       "class B extends A { void f(B b) { b.m().stream()."},
      {Language::kPython, "import json\nclass A:\n  def m(self) -> str: return ''\nA().m()."},
  };
  for (const auto& [language, text] : programs) {
    auto fresh = AllMonitors(language);
    TextState right = fresh->Start(text);
    const auto expected = right.Expected();
    auto set = AllMonitors(language);
    std::mt19937 random(7);
    int stopped = 0;
    for (int round = 0; round < 60; ++round) {
      const std::atomic<bool> stop{true};
      const StopScope scope(&stop);
      // Another place of the text, so that the stop comes elsewhere.
      TextState state = set->Start(text.substr(0, text.size() - random() % 40));
      Work::Count(random() % 1000);
      try {
        state.Expected();
        state.Add("a.b.c(d).e", nullptr);
      } catch (const Stopped&) {
        ++stopped;
      }
    }
    TextState state = set->Start(text);
    const auto found = state.Expected();
    ASSERT_EQ(found != nullptr, expected != nullptr) << LanguageName(language);
    if (expected != nullptr) {
      EXPECT_EQ(found->names, expected->names) << LanguageName(language);
    }
    EXPECT_GT(stopped, 0) << LanguageName(language);
  }
}

// Long names are not compared with what may stand there.
TEST(LimitsTest, LongNamesTakeLinearTime) {
  const std::string name = ManyTimes("abcdefghij", 20'000);
  auto set = AllMonitors(Language::kTypeScript);
  const double begin = ProcessorSeconds();
  const Reading reading = ReadText(*set, "let a = {" + name + ": 1};\na." + name + ";\n");
  EXPECT_FALSE(reading.refusal.has_value());
  EXPECT_LT(ProcessorSeconds() - begin, AllowedSeconds(2));
}

// Each class doubles the type of the member: what is copied counts, so the question is given up
// before the type has a million nodes.
TEST(LimitsTest, TypesThatDoubleAreGivenUp) {
  std::string text = "class A0<T> { T m; }\n";
  for (int i = 1; i <= 22; ++i) {
    text += "class A" + std::to_string(i) + "<T> extends A" + std::to_string(i - 1) +
            "<java.util.Map<T,T>> {}\n";
  }
  auto set = MonitorSet::Make(Language::kJava, {});
  ASSERT_TRUE(set.ok());
  TextState state = (*set)->Start(text + "class M { void f(A22<String> a) { a.m.");
  (void)state.Expected();
  EXPECT_GT((*set)->counts().given_up, 0U);
}

}  // namespace
}  // namespace pawl::monitors
