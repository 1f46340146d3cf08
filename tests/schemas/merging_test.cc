// Conditions that are made one (merging.h) against each of them asked by itself.
#include "schemas/formula/merging.h"

#include <gtest/gtest.h>

#include "grammar/regex/ecma_parser.h"
#include "tests/schemas/property_generators.h"

namespace pawl::schema {
namespace {

// The strings over "ab" of up to four characters.
std::vector<std::u32string> Strings() {
  std::vector<std::u32string> out = {U""};
  for (size_t i = 0; out[i].size() < 4; ++i) {
    for (const char32_t c : {U'a', U'b'}) out.push_back(out[i] + c);
  }
  return out;
}

class MergingTest : public testing::Test {
 protected:
  bool Truth(FormulaId formula, const std::u32string& text) {
    return table_.formulas.Evaluate(formula, [&](AtomId id) {
      const StringAtom& atom = table_.string(id);
      if (atom.type == StringAtom::Type::kLength)
        return text.size() >= atom.min && text.size() <= atom.max;
      if (atom.type == StringAtom::Type::kLiterals)
        return std::find(atom.literals.begin(), atom.literals.end(), text) != atom.literals.end();
      ReId rest = atom.regex;
      for (const char32_t c : text) rest = table_.regexes->Derive(rest, c);
      return table_.regexes->Nullable(rest);
    });
  }
  bool Truth(FormulaId formula, const Decimal& number) {
    return table_.formulas.Evaluate(formula, [&](AtomId id) {
      const NumberAtom& atom = table_.number(id);
      if (atom.values.empty()) return number <= *atom.constraint.maximum;
      return std::find(atom.values.begin(), atom.values.end(), number) != atom.values.end();
    });
  }
  FormulaId RandomString(property::Dice& dice) {
    static const std::vector<std::u32string> strings = Strings();
    StringAtom atom;
    if (dice.Percent(10)) {
      atom.type = StringAtom::Type::kLength;
      atom.max = dice.Below(4);
    } else if (dice.Percent(50)) {
      atom.type = StringAtom::Type::kLiterals;
      for (size_t n = 1 + dice.Below(4); n > 0; --n) atom.literals.push_back(dice.Pick(strings));
    } else {
      static const char* const kPatterns[] = {"^a",  "b$",    "^ab*$", "aa",        "^(ab)*$",
                                              "^.b", "^b?a$", "^a{2}", "^[ab]{3}$", "^b+$",
                                              "ba",  "^$",    "^aba"};
      atom.regex = *ParseEcma(*table_.regexes, dice.Pick(kPatterns));
    }
    return table_.AddString(std::move(atom));
  }
  FormulaId RandomNumber(property::Dice& dice) {
    if (dice.Percent(15)) {
      NumberConstraint most;
      most.maximum = *Decimal::Parse(std::to_string(dice.Below(8)));
      return table_.AddNumber(most);
    }
    std::vector<Decimal> values;
    for (size_t n = 1 + dice.Below(3); n > 0; --n)
      values.push_back(*Decimal::Parse(std::to_string(dice.Below(8))));
    return table_.AddList(std::move(values));
  }
  template <typename Leaf>
  FormulaId Random(property::Dice& dice, int depth, const Leaf& leaf) {
    if (depth == 0) return dice.Percent(40) ? table_.formulas.Not(leaf()) : leaf();
    std::vector<FormulaId> kids;
    const size_t most = dice.Percent(30) ? 120 : 14;
    for (size_t n = 2 + dice.Below(most); n > 0; --n)
      kids.push_back(Random(dice, dice.Percent(15) ? depth - 1 : 0, leaf));
    switch (dice.Below(3)) {
      case 0:
        return table_.formulas.And(kids);
      case 1:
        return table_.formulas.Or(kids);
      default:
        return table_.formulas.ExactlyOne(kids);
    }
  }
  SchemaTable table_;
};

TEST_F(MergingTest, StringsAreTheSame) {
  property::Dice dice(11);
  Merging merging(table_);
  const std::vector<std::u32string> strings = Strings();
  int changed = 0;
  for (int round = 0; round < 600; ++round) {
    const FormulaId formula = Random(dice, 2, [&] { return RandomString(dice); });
    const FormulaId merged = merging.Of(formula);
    changed += merged != formula ? 1 : 0;
    for (const std::u32string& text : strings)
      ASSERT_EQ(Truth(merged, text), Truth(formula, text)) << round;
  }
  EXPECT_GT(changed, 150);
}

TEST_F(MergingTest, NumbersAreTheSame) {
  property::Dice dice(12);
  Merging merging(table_);
  for (int round = 0; round < 600; ++round) {
    const FormulaId formula = Random(dice, 2, [&] { return RandomNumber(dice); });
    const FormulaId merged = merging.Of(formula);
    for (int i = 0; i < 10; ++i) {
      const Decimal number = *Decimal::Parse(std::to_string(i));
      ASSERT_EQ(Truth(merged, number), Truth(formula, number)) << round;
    }
  }
}

TEST_F(MergingTest, ManyBecomeOne) {
  std::vector<FormulaId> patterns, constants;
  for (int i = 0; i < 500; ++i) {
    StringAtom pattern, constant;
    pattern.regex = *ParseEcma(*table_.regexes, "^k" + std::to_string(i) + "[a-z]*$");
    patterns.push_back(table_.AddString(std::move(pattern)));
    constant.type = StringAtom::Type::kLiterals;
    constant.literals = {U"value", std::u32string(static_cast<size_t>(i), U'x')};
    constants.push_back(table_.AddString(std::move(constant)));
  }
  Merging merging(table_);
  EXPECT_EQ(table_.formulas.Atoms(merging.Of(table_.formulas.Or(patterns))).size(), 1u);
  // What one of them alone has, less what all have.
  const FormulaId one = merging.Of(table_.formulas.ExactlyOne(constants));
  EXPECT_LE(table_.formulas.Atoms(one).size(), 2u);
  EXPECT_FALSE(Truth(one, U"value"));
  EXPECT_TRUE(Truth(one, U"xxx"));
}

TEST_F(MergingTest, PatternsThatAreTextsAreLists) {
  struct Case {
    const char* pattern;
    std::vector<std::u32string> texts;  // none: it stays a pattern
  };
  for (const Case& c : std::vector<Case>{{"^Pow$", {U"Pow"}},
                                         {"^$", {U""}},
                                         {"^(json|yaml)$", {U"json", U"yaml"}},
                                         {"^(?:|\\.txt)$", {}},
                                         {"^a\\u00e9$", {U"a\u00e9"}},
                                         {"Pow", {}},
                                         {"^Pow", {}},
                                         {"^[Pp]ow$", {}},
                                         {"^(json|ya?ml)$", {}},
                                         {"^(?=a)(?!a)$", {}}}) {
    StringAtom atom;
    atom.regex = *ParseEcma(*table_.regexes, c.pattern);
    const FormulaId formula = table_.AddString(std::move(atom));
    const StringAtom& made = table_.string(table_.formulas.value(formula));
    EXPECT_EQ(made.literals, c.texts) << c.pattern;
    EXPECT_EQ(made.type == StringAtom::Type::kLiterals, !c.texts.empty()) << c.pattern;
  }
}

}  // namespace
}  // namespace pawl::schema
