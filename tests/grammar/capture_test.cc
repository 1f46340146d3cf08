// Captures against trying every derivation, on random grammars; and what they mean, by examples.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "pawl/matcher.h"
#include "tests/grammar/capture_reference.h"
#include "tests/grammar/cfg_reference.h"

namespace pawl {

void PrintTo(const Capture& capture, std::ostream* out) {
  *out << capture.name << '[' << capture.begin << ',' << capture.end << ")=" << capture.text;
}

namespace {

using ExprId = GrammarIr::ExprId;
using RuleId = GrammarIr::RuleId;

std::shared_ptr<const Vocabulary> Letters() {
  VocabularyInit init;
  init.tokens = {"a", "b", "c", "ab", "<tool>", "", "<end>"};
  init.special = {4, 5, 6};
  init.end_tokens = {6};
  return *Vocabulary::Create(std::move(init));
}

// Some rules with a capture; recursion of every kind, empty rules, ambiguity.
void MakeRandom(GrammarIr& ir, std::mt19937& random) {
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
        return ir.Repeat(self(self, depth + 1), min,
                         pick(2) == 0 ? GrammarIr::kUnbounded
                                      : min + static_cast<uint32_t>(pick(3)));
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
  const auto vocabulary = Letters();
  int compared = 0, captures = 0, circular = 0;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    GrammarIr ir;
    MakeRandom(ir, random);
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

}  // namespace
}  // namespace pawl
