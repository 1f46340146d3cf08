// Captures against trying every derivation, on random grammars; and what they mean, by examples.
#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "pawl/matcher.h"
#include "tests/grammar/capture_reference.h"
#include "tests/grammar/cfg_reference.h"
#include "tests/grammar/mask_oracle.h"
#include "tests/support/vocabularies.h"

namespace pawl {

void PrintTo(const Capture& capture, std::ostream* out) {
  *out << capture.name << '[' << capture.begin << ',' << capture.end << ")=" << capture.text;
}

namespace {

using ExprId = GrammarIr::ExprId;
using RuleId = GrammarIr::RuleId;

std::shared_ptr<const Vocabulary> CaptureTokens() {
  return VocabularyOf({"a", "b", "c", "ab", "<tool>", ""}, {"<tool>", ""});
}

// Some rules with a capture; recursion of every kind, empty rules, ambiguity.
void MakeRandomCaptures(GrammarIr& ir, std::mt19937& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<RuleId> rules;
  const int count = 2 + pick(4);
  for (int i = 0; i < count; ++i) rules.push_back(ir.AddRule("r" + std::to_string(i)));
  const auto expr = [&](auto& self, int depth) -> ExprId {
    switch (pick(depth > 2 ? 5 : 11)) {
      case 0:
      case 1:
        return ir.Literal(std::string(1, static_cast<char>('a' + pick(2))));
      case 2:
      case 3:
        return ir.Call(rules[static_cast<size_t>(pick(count))]);
      case 4: {
        RegexArena& arena = ir.arena();
        const ReId letter = arena.Set(CodepointSet::Of('a', static_cast<char32_t>('a' + pick(2))));
        const ReId word = pick(3) == 0 ? arena.Star(letter) : arena.Repeat(letter, 1, std::nullopt);
        return ir.Regex(word, pick(5) == 0);
      }
      case 5:
      case 6:
      case 7:
        return ir.Sequence({self(self, depth + 1), self(self, depth + 1)});
      case 8:
        return ir.Choice({self(self, depth + 1), self(self, depth + 1), ir.Literal("")});
      case 9:
        return ir.Choice({self(self, depth + 1), self(self, depth + 1)});
      default: {
        const auto min = static_cast<uint32_t>(pick(3));
        return ir.Repeat(
            self(self, depth + 1), min,
            pick(2) == 0 ? GrammarIr::kUnbounded : min + static_cast<uint32_t>(pick(3)));
      }
    }
  };
  for (const RuleId rule : rules) {
    ir.Define(rule, expr(expr, 0));
    if (pick(3) != 0) ir.SetAttributes(rule, {.capture = ir.rule(rule).name});
  }
  ir.SetRoot(rules[0]);
}

TEST(CaptureTest, RandomGrammarsGiveThePreferredDerivation) {
  const auto vocabulary = CaptureTokens();
  int compared = 0, captures = 0, circular = 0;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    GrammarIr ir;
    MakeRandomCaptures(ir, random);
    auto machine = CfgMachine::Create(ir, *vocabulary);
    if (!machine.ok()) continue;
    const Grammar grammar(*machine, vocabulary);
    CfgReference reference(ir);
    for (int i = 0; i < 12; ++i) {
      std::string text;
      for (size_t size = random() % 6; text.size() < size;)
        text += static_cast<char>('a' + random() % 2);
      if (!reference.Accepts(text)) continue;
      const std::vector<OutputPiece> pieces = {{.bytes = text}};
      const auto found = grammar.FindCaptures(pieces);
      ASSERT_TRUE(found.ok()) << "seed " << seed << " text " << text << ": "
                              << found.error().ToString();
      CaptureReference slow(ir, reference, text);
      const auto expected = slow.Run();
      if (!expected) continue;
      captures += static_cast<int>(expected->size());
      if (!slow.circular()) {
        EXPECT_EQ(*found, *expected) << "seed " << seed << " text " << text;
        ++compared;
        continue;
      }
      ++circular;
      for (const Capture& capture : *found) {
        RuleId rule = 0;
        while (ir.rule(rule).name != capture.name) ++rule;
        ASSERT_TRUE(reference.RuleEndsOf(rule, capture.begin).contains(capture.end))
            << "seed " << seed << " text " << text;
      }
    }
  }
  EXPECT_GT(compared, 10000);
  EXPECT_GT(captures, 15000);
  EXPECT_GT(circular, 500);
}

// Limits of tokens that may be overrun: the mask is what trying every token says, every state can
// be finished, and what was written that way has its captures.
TEST(CaptureTest, RandomWalksUnderLimitsOfTokens) {
  const auto vocabulary = CaptureTokens();
  int states = 0, limits = 0, found = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed + 5000);
    GrammarIr ir;
    MakeRandomCaptures(ir, random);
    for (RuleId rule = 0; rule < ir.rule_count(); ++rule) {
      if (ir.expr(ir.rule(rule).body).kind != GrammarIr::Kind::kRegex) continue;
      GrammarIr::Attributes attributes = ir.rule(rule).attributes;
      attributes.max_tokens = 1 + random() % 3;
      attributes.relaxed = true;
      ir.SetAttributes(rule, attributes);
      ++limits;
    }
    auto machine = CfgMachine::Create(ir, *vocabulary);
    if (!machine.ok()) continue;
    const Grammar grammar(*machine, vocabulary);
    State state = grammar.Start();
    std::vector<OutputPiece> pieces;
    for (int step = 0; step < 10; ++step) {
      const std::vector<TokenId> allowed =
          AllowedTokens(state, *vocabulary, "seed " + std::to_string(seed));
      const auto rest = state.CompletionBytes();
      ASSERT_TRUE(rest && state.Advance(*rest)->accepting()) << "seed " << seed;
      const auto captures = grammar.FindCaptures(pieces);
      ASSERT_TRUE(captures.ok()) << "seed " << seed << ": " << captures.error().ToString();
      found += static_cast<int>(captures->size());
      ++states;
      if (allowed.empty()) break;
      pieces.push_back({.token = allowed[random() % allowed.size()]});
      state = *state.Advance(pieces.back().token);
    }
  }
  EXPECT_GT(states, 4000);
  EXPECT_GT(limits, 200);
  EXPECT_GT(found, 4000);
}

using Language = GrammarLanguage;

Grammar CompileLark(std::string_view text, Language language = Language::kLark) {
  auto grammar = Compiler(CaptureTokens()).CompileGrammar(text, language);
  EXPECT_TRUE(grammar.ok()) << text << "\n" << grammar.error().ToString();
  return *grammar;
}

// "name=text" of each, with the span where the text is not what stands there.
std::vector<std::string> Captures(const Grammar& grammar, std::string_view text) {
  const std::vector<OutputPiece> pieces = {{.bytes = std::string(text)}};
  const auto captures = grammar.FindCaptures(pieces);
  if (!captures.ok()) return {captures.error().ToString()};
  std::vector<std::string> out;
  for (const Capture& capture : *captures) {
    out.push_back(capture.name + "=" + capture.text);
    if (text.substr(capture.begin, capture.end - capture.begin) != capture.text)
      out.back() += "[" + std::to_string(capture.begin) + "," + std::to_string(capture.end) + ")";
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(CaptureTest, Lark) {
  const Grammar list =
      CompileLark("start: \"[\" [n (\",\" n)*] \"]\"\nn[capture=\"item\"]: /[0-9]+/");
  EXPECT_EQ(Captures(list, "[1,22,333]"), (Texts{"item=1", "item=22", "item=333"}));
  EXPECT_EQ(Captures(list, "[]"), Texts{});
  EXPECT_EQ(Captures(list, "[1,2"), (Texts{"item=1", "item=2"}));  // as "]" would end it
  EXPECT_EQ(Captures(list, "[1,"), Texts{"item=1"});
  EXPECT_EQ(Captures(list, "(1"), Texts{"the output does not fit the grammar"});
  const Grammar nested = CompileLark("start: o\no[capture]: \"x\" i \"!\"\ni[capture]: /[a-z]*/");
  EXPECT_EQ(Captures(nested, "xabc!"), (Texts{"i=abc", "o=xabc!"}));
  EXPECT_EQ(Captures(nested, "x!"), (Texts{"i=", "o=x!"}));
  // What is ignored behind a rule is not captured; the longest text from left to right.
  EXPECT_EQ(
      Captures(CompileLark("start: a b\na[capture]: /x+/\nb[capture]: /x*/ \".\"\n%ignore / +/"),
               "xxx ."),
      (Texts{"a=xxx", "b=."}));
  EXPECT_EQ(Captures(CompileLark("start: list\nlist[capture]: \"a\" \",\" list | \"a\""), "a,a,a"),
            (Texts{"list=a", "list=a,a", "list=a,a,a"}));
  EXPECT_EQ(Captures(CompileLark("start: list\nlist[capture]: list \",\" \"a\" | \"a\""), "a,a,a"),
            (Texts{"list=a", "list=a,a", "list=a,a,a"}));
  EXPECT_EQ(
      Captures(CompileLark("start: call* text\ncall: head n \"</f>\"\nhead[lazy]: TEXT \"<f>\"\n"
                           "n[capture]: /[0-9]+/\ntext[capture]: TEXT\nTEXT: /(.|\\n)*/"),
               "go<f>12</f><f>3</f>on"),
      (Texts{"n=12", "n=3", "text=on"}));
}

TEST(CaptureTest, OtherLanguages) {
  EXPECT_EQ(Captures(CompileLark("root ::= (n \";\")+\nn[capture=\"x\"] ::= [0-9]+ | \"(\" n \")\"",
                                 Language::kEbnf),
                     "1;(2);"),
            (Texts{"x=1", "x=2", "x=(2)"}));
}

// A capture ends before the marker; a stop of XGrammar's is in no capture at all, one of
// llguidance's stands behind its rule.
TEST(CaptureTest, Markers) {
  const std::string inner = "r[capture=\"in\", stop_capture=\"end\", ";
  const auto grammar = [&](std::string_view attribute, std::string_view rest) {
    return "start[capture=\"all\"]: r \"z\"\n" + inner + std::string(attribute) +
           "]: " + std::string(rest);
  };
  for (const Language language : {Language::kLark, Language::kLarkXgrammar}) {
    EXPECT_EQ(Captures(CompileLark(grammar("suffix=/!!+/", "/[a-z]*/"), language), "ab!!z"),
              (Texts{"end=!!", "in=ab", "all=ab!!z"}));
    EXPECT_EQ(Captures(CompileLark(grammar("suffix=/b?a/", "\"b\""), language), "baz"),
              (Texts{"end=a", "in=b", "all=baz"}));
  }
  EXPECT_EQ(
      Captures(CompileLark(grammar("stop=/!!+/", "/[a-z]*/"), Language::kLarkXgrammar), "ab!!z"),
      (Texts{"end=!!", "in=ab", "all=abz[0,5)"}));
  EXPECT_EQ(
      Captures(CompileLark("start[capture=\"all\"]: r \"!z\"\n" + inner + "stop=\"!\"]: /.*/"),
               "ab!z"),
      (Texts{"end=!", "in=ab", "all=ab!z"}));
}

TEST(CaptureTest, TokensAndHistory) {
  const auto vocabulary = CaptureTokens();
  const auto grammar =
      Compiler(vocabulary)
          .CompileGrammar("start: wrap\nwrap[capture]: \"a\" <tool> word\nword[capture]: /[a-z]/+",
                          Language::kLark);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  EXPECT_TRUE(grammar->has_captures());
  Matcher matcher(*grammar);
  for (const TokenId token : {0, 4, 3}) ASSERT_TRUE(matcher.Accept(token));
  ASSERT_TRUE(matcher.AcceptBytes("cc"));
  const auto captures = matcher.Captures();
  ASSERT_TRUE(captures.ok()) << captures.error().ToString();
  EXPECT_EQ(*captures,
            (std::vector<Capture>{{"word", 7, 11, "abcc"}, {"wrap", 0, 11, "a<tool>abcc"}}));
  Matcher other = matcher;
  ASSERT_TRUE(matcher.Rollback(1));
  ASSERT_TRUE(matcher.AcceptBytes("x"));
  EXPECT_EQ(matcher.Captures()->front().text, "abx");
  ASSERT_TRUE(other.Accept(6));
  EXPECT_EQ(other.Captures()->front().text, "abcc");
  ASSERT_TRUE(matcher.Rollback(3));  // only a token can come
  EXPECT_EQ(*matcher.Captures(), std::vector<Capture>());
  matcher.Reset();
  EXPECT_EQ(*matcher.Captures(), std::vector<Capture>());
}

TEST(CaptureTest, OutputsThatOnlyATokenCompletes) {
  const Grammar grammar = CompileLark(
      "start: (x <tool>)+ y <tool> (\"c\" | <tool>)\nx[capture]: /a+/\ny[capture]: /b/");
  EXPECT_EQ(Captures(grammar, "a"), (Texts{"x=a"}));
  EXPECT_EQ(Captures(grammar, "b"), (Texts{"the output does not fit the grammar"}));
  Matcher matcher(grammar);
  ASSERT_TRUE(matcher.AcceptBytes("aa"));
  for (const TokenId token : {4, 0, 4}) ASSERT_TRUE(matcher.Accept(token));
  const std::vector<Capture> both = {{"x", 0, 2, "aa"}, {"x", 8, 9, "a"}};
  EXPECT_EQ(*matcher.Captures(), both);
  ASSERT_TRUE(matcher.AcceptBytes("b"));
  EXPECT_EQ(matcher.Captures()->size(), 3u);
  EXPECT_EQ(matcher.Captures()->back(), (Capture{"y", 15, 16, "b"}));
}

// Before what must be a token: the captures of the whole that the completion gives, but for those
// that end or begin later.
TEST(CaptureTest, RandomGrammarsBeforeAToken) {
  const auto vocabulary = CaptureTokens();
  int compared = 0, captures = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed + 9000);
    GrammarIr ir;
    MakeRandomCaptures(ir, random);
    const RuleId outer = ir.AddRule("outer");
    ir.Define(outer, ir.Sequence({ir.Call(0), ir.Tokens({.ranges = {{4, 4}}}), ir.Call(1)}));
    ir.SetAttributes(outer, {.capture = "outer"});
    ir.SetRoot(outer);
    auto machine = CfgMachine::Create(ir, *vocabulary);
    if (!machine.ok()) continue;
    const Grammar grammar(*machine, vocabulary);
    for (int i = 0; i < 6; ++i) {
      std::string text;
      for (uint32_t n = random() % 6; n > 0; --n) text += random() % 2 == 0 ? 'a' : 'b';
      const std::optional<State> state = grammar.Start().Advance(text);
      if (!state) continue;
      const auto rest = state->CompletionTokens();
      if (!rest) continue;
      EXPECT_EQ(state->CompletionBytes(), std::nullopt);
      std::vector<OutputPiece> pieces = {{.bytes = text}};
      const auto found = grammar.FindCaptures(pieces);
      ASSERT_TRUE(found.ok()) << "seed " << seed << ": " << found.error().ToString();
      for (const TokenId token : *rest) pieces.push_back({.token = token});
      const auto whole = grammar.FindCaptures(pieces);
      ASSERT_TRUE(whole.ok()) << "seed " << seed << ": " << whole.error().ToString();
      EXPECT_EQ(whole->back().name, "outer");
      std::vector<Capture> expected;
      for (const Capture& capture : *whole) {
        if (capture.end <= text.size() && capture.begin < text.size()) expected.push_back(capture);
      }
      EXPECT_EQ(*found, expected) << "seed " << seed << " text " << text;
      ++compared;
      captures += static_cast<int>(found->size());
    }
  }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(captures, 1000);
}

// Ten times the text takes no more than forty times as long, whatever the recursion.
TEST(CaptureTest, LinearInTheText) {
  for (const char* const rules :
       {"list: item \",\" list | item", "list: list \",\" item | item", "list: item (\",\" item)*",
        "list: (item | \"(\" list \")\") [\",\" list]"}) {
    const Grammar grammar =
        CompileLark("start: list\n" + std::string(rules) + "\nitem[capture]: /[a-z]+/");
    double seconds[2];
    for (const int big : {0, 1}) {
      std::string text = "ab";
      for (int i = 1; i < (big != 0 ? 10000 : 1000); ++i) text += ",ab";
      const std::clock_t begin = std::clock();  // of this process: the machine may be busy
      EXPECT_EQ(Captures(grammar, text).size(), big != 0 ? 10000u : 1000u);
      seconds[big] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    }
    EXPECT_LT(seconds[1], 40 * seconds[0] + 0.2) << rules;
  }
}

TEST(CaptureTest, TemperatureOfTheInnermostRule) {
  const Grammar grammar = CompileLark(
      "start: \"a\" x \"b\" | \"c\" y\nx[temperature=0.5]: %lark {\n start: \"x\" z\n"
      " z[temperature=0.25]: /z+/\n}\ny[temperature=2]: /y*/");
  const auto at = [&](std::string_view text) {
    return grammar.Start().Advance(text)->temperature();
  };
  EXPECT_EQ(at(""), std::nullopt);
  EXPECT_EQ(at("a"), 0.5f);
  EXPECT_EQ(at("ax"), 0.25f);
  EXPECT_EQ(at("axz"), 0.25f);
  EXPECT_EQ(at("axzb"), std::nullopt);
  EXPECT_EQ(at("cyy"), 2.0f);
  EXPECT_EQ(CompileLark("start: \"a\"").Start().temperature(), std::nullopt);
}

// A grammar inside is one lexeme whose tokens are counted; where it may not end it goes on.
TEST(CaptureTest, MaxTokensOfGrammarsInside) {
  const Grammar grammar = CompileLark(
      "start: list \"c\"\nlist[max_tokens=2]: item | list item\nitem: \"a\" item \"b\" | \"ab\"",
      Language::kLarkXgrammar);
  State state = *grammar.Start().Advance(TokenId{3});
  EXPECT_TRUE(state.mask()->Allows(2));
  EXPECT_TRUE(state.mask()->Allows(0));
  const State two = *state.Advance(TokenId{3});
  EXPECT_EQ(two.mask()->Tokens(), std::vector<TokenId>{2});
  const State open = *grammar.Start().Advance(TokenId{0})->Advance(TokenId{0});
  EXPECT_EQ(open.mask()->Tokens(), (std::vector<TokenId>{0, 1, 3}));
  EXPECT_EQ(open.Advance(TokenId{3})->Advance(TokenId{1})->Advance(TokenId{1})->mask()->Tokens(),
            std::vector<TokenId>{2});
}

}  // namespace
}  // namespace pawl
