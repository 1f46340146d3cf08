// Formulas against truth tables: every operator, what stands in for atoms, and the list of cubes.
#include "schemas/formula/formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace pawl::schema {
namespace {

constexpr int kAtoms = 5, kRows = 1 << kAtoms;
using Table = uint32_t;  // bit r: true where bit a of r is the truth of atom a

struct Both {
  FormulaId formula;
  Table table;
};

class FormulaTest : public testing::Test {
 protected:
  Both Random(int depth) {
    if (depth == 0 || random_() % 6 == 0) {
      if (random_() % 8 == 0) return {kTrueFormula, ~Table{0}};
      const AtomId atom = random_() % kAtoms;
      Table table = 0;
      for (int row = 0; row < kRows; ++row) table |= Table{(row >> atom) & 1u} << row;
      return {arena_.Atom(atom, kStringValue), table};
    }
    if (random_() % 4 == 0) {
      const Both kid = Random(depth - 1);
      return {arena_.Not(kid.formula), ~kid.table};
    }
    std::vector<FormulaId> kids;
    Table all = ~Table{0}, any = 0, once = 0, twice = 0;
    for (size_t n = 1 + random_() % 4; n > 0; --n) {
      const Both kid = Random(depth - 1);
      kids.push_back(kid.formula);
      all &= kid.table;
      any |= kid.table;
      twice |= once & kid.table;
      once |= kid.table;
    }
    switch (random_() % 3) {
      case 0:
        return {arena_.And(kids), all};
      case 1:
        return {arena_.Or(kids), any};
      default:
        return {arena_.ExactlyOne(kids), once & ~twice};
    }
  }
  Table TableOf(FormulaId f) {
    Table out = 0;
    for (int row = 0; row < kRows; ++row) {
      const auto truth = [&](AtomId atom) { return ((row >> atom) & 1) != 0; };
      if (arena_.Evaluate(f, truth)) out |= Table{1} << row;
    }
    return out;
  }

  std::mt19937 random_{5};
  FormulaArena arena_;
};

TEST_F(FormulaTest, OperatorsAgreeWithTruthTables) {
  for (int i = 0; i < 3000; ++i) {
    const Both both = Random(4);
    const FormulaId f = arena_.ForKind(both.formula, kStringValue);
    ASSERT_EQ(TableOf(f), both.table) << i;
    // Of a value of another kind every atom is true.
    const bool other = ((both.table >> (kRows - 1)) & 1) != 0;
    EXPECT_EQ(arena_.ForKind(both.formula, kArrayValue), other ? kTrueFormula : kFalseFormula);
  }
}

TEST_F(FormulaTest, AssignedAtomsAndOpenOnes) {
  for (int i = 0; i < 2000; ++i) {
    const Both both = Random(4);
    const FormulaId f = arena_.ForKind(both.formula, kStringValue);
    const AtomId atom = random_() % kAtoms;
    const bool value = random_() % 2 != 0;
    const std::pair<AtomId, bool> assigned[] = {{atom, value}};
    Table expected = 0;
    for (int row = 0; row < kRows; ++row) {
      const int there = value ? row | 1 << atom : row & ~(1 << atom);
      expected |= Table{(both.table >> there) & 1u} << row;
    }
    EXPECT_EQ(TableOf(arena_.Assign(f, assigned)), expected);
    // With one atom settled and the others open, an answer holds for all of them.
    const int partly = arena_.EvaluatePartly(f, [&](AtomId a) {
      return a != atom ? -1 : value ? 1 : 0;
    });
    if (partly >= 0) {
      EXPECT_EQ(expected, partly == 1 ? ~Table{0} : Table{0});
    }
  }
}

TEST_F(FormulaTest, CubesAreTheFormula) {
  int whole = 0;
  for (int i = 0; i < 2000; ++i) {
    const Both both = Random(3);
    const FormulaId f = arena_.ForKind(both.formula, kStringValue);
    bool complete = false;
    const size_t limit = 1 + random_() % 12;
    const std::vector<Cube> cubes = arena_.Cubes(f, limit, complete);
    EXPECT_LE(cubes.size(), limit);
    Table sum = 0;
    for (const Cube& cube : cubes) {
      for (int row = 0; row < kRows; ++row) {
        const auto is = [&](AtomId atom) { return ((row >> atom) & 1) != 0; };
        if (std::ranges::all_of(cube.positive, is) && std::ranges::none_of(cube.negative, is))
          sum |= Table{1} << row;
      }
    }
    EXPECT_EQ(sum & ~both.table, 0u) << "a cube that the formula does not have";
    whole += complete;
    if (complete) {
      EXPECT_EQ(sum, both.table);
    }
    for (const AtomId atom : arena_.MustAtoms(f)) {
      for (int row = 0; row < kRows; ++row)
        EXPECT_FALSE(((both.table >> row) & 1) != 0 && ((row >> atom) & 1) == 0);
    }
  }
  EXPECT_GT(whole, 500);
}

}  // namespace
}  // namespace pawl::schema
