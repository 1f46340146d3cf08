// The classes of values next to trying each value on each formula.
#include "schemas/formula/value_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/base/utf8.h"
#include "tests/schemas/property_generators.h"

namespace pawl::schema {
namespace {

using property::Dice;

struct Sample {
  Kind kind;
  std::u32string text;
  int number = 0;
};

std::vector<Sample> Samples() {
  std::vector<Sample> out;
  for (const Kind kind : {kNullValue, kFalseValue, kTrueValue, kArrayValue, kObjectValue})
    out.push_back({kind, U"", 0});
  for (const char32_t* text : {U"", U"a", U"b", U"c", U"d", U"other"})
    out.push_back({kStringValue, text, 0});
  for (int number = 0; number < 6; ++number) out.push_back({kNumberValue, U"", number});
  return out;
}

Decimal Number(int value) { return *Decimal::Parse(std::to_string(value)); }

// Slow and obvious.
bool Holds(const SchemaTable& table, FormulaId f, const Sample& sample) {
  const FormulaArena& arena = table.formulas;
  switch (arena.op(f)) {
    case FormulaArena::Op::kFalse:
      return false;
    case FormulaArena::Op::kTrue:
      return true;
    case FormulaArena::Op::kKindSet:
      return (arena.value(f) >> sample.kind & 1) != 0;
    case FormulaArena::Op::kAtom: {
      const AtomId atom = arena.value(f);
      if (table.kind(atom) != sample.kind) return true;
      if (sample.kind == kStringValue) {
        const StringAtom& string = table.string(atom);
        if (string.type == StringAtom::Type::kLength)
          return sample.text.size() >= string.min && sample.text.size() <= string.max;
        return std::ranges::count(string.literals, sample.text) > 0;
      }
      return std::ranges::count(table.number(atom).values, Number(sample.number)) > 0;
    }
    case FormulaArena::Op::kNot:
      return !Holds(table, arena.kids(f)[0], sample);
    default:
      break;
  }
  size_t count = 0;
  for (const FormulaId kid : arena.kids(f)) count += Holds(table, kid, sample) ? 1 : 0;
  if (arena.op(f) == FormulaArena::Op::kAnd) return count == arena.kids(f).size();
  return arena.op(f) == FormulaArena::Op::kOr ? count > 0 : count == 1;
}

FormulaId RandomFormula(SchemaTable& table, Dice& dice, int depth, bool lengths) {
  FormulaArena& arena = table.formulas;
  if (depth > 0 && dice.Percent(60)) {
    std::vector<FormulaId> kids;
    for (int i = dice.Between(1, 3); i > 0; --i)
      kids.push_back(RandomFormula(table, dice, depth - 1, lengths));
    switch (dice.Below(4)) {
      case 0:
        return arena.And(kids);
      case 1:
        return arena.Or(kids);
      case 2:
        return arena.ExactlyOne(kids);
      default:
        return arena.Not(kids[0]);
    }
  }
  if (lengths && dice.Percent(15))
    return table.AddString({.type = StringAtom::Type::kLength,
                            .literals = {},
                            .min = static_cast<uint64_t>(dice.Between(0, 1)),
                            .max = 1});
  if (dice.Percent(20)) return arena.Kinds(static_cast<KindSet>(dice.Below(128)));
  if (dice.Percent(50)) {
    StringAtom atom{.type = StringAtom::Type::kLiterals, .literals = {}};
    static constexpr const char32_t* kTexts[] = {U"", U"a", U"b", U"c", U"d"};
    for (const char32_t* text : kTexts) {
      if (dice.Percent(40)) atom.literals.emplace_back(text);
    }
    if (atom.literals.empty()) atom.literals.emplace_back(U"a");
    return table.AddString(std::move(atom));
  }
  return table.AddList({Number(dice.Between(0, 2)), Number(3 + dice.Between(0, 1))});
}

TEST(ValueClassesTest, EachValueIsInOneClassThatTellsTheTruth) {
  Dice dice(11);
  int listed = 0, combined = 0;
  for (int round = 0; round < 400; ++round) {
    SchemaTable table;
    std::vector<FormulaId> formulas;
    for (int i = dice.Between(1, 6); i > 0; --i)
      formulas.push_back(RandomFormula(table, dice, 2, round % 2 == 1));
    const auto classes = ValueClasses::Of(table, formulas);
    bool lists = true;
    for (const FormulaId f : formulas) lists = lists && ValueClasses::IsListed(table, f);
    if (lists) {
      ASSERT_TRUE(classes.has_value());
    }
    if (!classes) continue;
    ++(lists ? listed : combined);
    for (const Sample& sample : Samples()) {
      int found = 0;
      for (size_t i = 0; i < classes->size(); ++i) {
        if (!Holds(table, classes->Formula(i), sample)) continue;
        ++found;
        const std::vector<bool> truth = classes->Truth(i);
        for (size_t f = 0; f < formulas.size(); ++f)
          EXPECT_EQ(truth[f], Holds(table, formulas[f], sample)) << round;
      }
      EXPECT_EQ(found, 1) << round;
    }
  }
  EXPECT_GE(listed, 150);
  EXPECT_GE(combined, 50);
}

// A thousand constants have a thousand and one outcomes, not 2^1000.
TEST(ValueClassesTest, ThereAreAsManyAsConstants) {
  SchemaTable table;
  std::vector<FormulaId> formulas;
  for (int i = 0; i < 1000; ++i) {
    StringAtom atom{.type = StringAtom::Type::kLiterals, .literals = {}};
    atom.literals.push_back(DecodeCodepoints(std::to_string(i)));
    formulas.push_back(table.AddString(std::move(atom)));
  }
  const auto classes = ValueClasses::Of(table, formulas);
  ASSERT_TRUE(classes.has_value());
  EXPECT_EQ(classes->size(), 1002u);  // other strings; other kinds, of which all atoms are true
}

}  // namespace
}  // namespace pawl::schema
