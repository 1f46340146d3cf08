// The propositional solver next to trying all values of all variables.
#include "schemas/formula/clauses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/schemas/property_generators.h"

namespace pawl::schema {
namespace {

using property::Dice;
using Literal = Clauses::Literal;

bool Holds(const std::vector<Literal>& clause, uint32_t values) {
  return std::ranges::any_of(
      clause, [&](Literal l) { return (values >> (l >> 1) & 1) == (l & 1 ? 0u : 1u); });
}

TEST(ClausesTest, AgreesWithTryingAllValues) {
  Dice dice(11);
  int yes = 0, no = 0;
  for (int round = 0; round < 500; ++round) {
    const uint32_t variables = 1 + static_cast<uint32_t>(dice.Below(11));
    Clauses solver;
    for (uint32_t v = 0; v < variables; ++v) ASSERT_EQ(solver.NewVariable(dice.Percent(50)), 2 * v);
    std::vector<std::vector<Literal>> clauses;
    const auto possible = [&] {
      for (uint32_t values = 0; values < 1u << variables; ++values) {
        if (std::ranges::all_of(clauses, [&](const auto& c) { return Holds(c, values); }))
          return true;
      }
      return false;
    };
    // Clauses are added again and again, also those that rule out what was found.
    for (int more = 0; more < 4; ++more) {
      const size_t count = dice.Below(2 * variables + 1);
      for (size_t i = 0; i < count; ++i) {
        std::vector<Literal> clause;
        for (size_t n = 1 + dice.Below(3) + (dice.Percent(70) ? 1 : 0); n > 0; --n)
          clause.push_back(static_cast<Literal>(dice.Below(2 * variables)));
        clauses.push_back(clause);
        solver.Add(clause);
      }
      int64_t steps = 1'000'000;
      const Clauses::Answer answer = solver.Solve(steps);
      ASSERT_EQ(answer, possible() ? Clauses::Answer::kYes : Clauses::Answer::kNo) << round;
      if (answer == Clauses::Answer::kNo) {
        ++no;
        break;
      }
      ++yes;
      uint32_t values = 0;
      std::vector<Literal> others;
      for (uint32_t v = 0; v < variables; ++v) {
        values |= solver.True(2 * v) ? 1u << v : 0;
        ASSERT_NE(solver.True(2 * v), solver.True(2 * v + 1));
        others.push_back(solver.True(2 * v) ? 2 * v + 1 : 2 * v);
      }
      for (const auto& clause : clauses) ASSERT_TRUE(Holds(clause, values)) << round;
      clauses.push_back(others);
      solver.Add(others);
    }
  }
  EXPECT_GT(yes, 250);
  EXPECT_GT(no, 100);
}

TEST(ClausesTest, TriesWhatIsPreferred) {
  Clauses solver;
  const Literal a = solver.NewVariable(true), b = solver.NewVariable(false);
  const Literal c = solver.NewVariable(true);
  solver.Add({Clauses::Not(a), Clauses::Not(c), b});
  int64_t steps = 100;
  ASSERT_EQ(solver.Solve(steps), Clauses::Answer::kYes);
  EXPECT_TRUE(solver.True(a) || solver.True(c));
}

// Nine pigeons in eight holes, which is slow to refute.
TEST(ClausesTest, StepsEnd) {
  for (const int64_t given : {int64_t{1000}, int64_t{100'000'000}}) {
    const uint32_t holes = given == 1000 ? 8 : 5;
    Clauses solver;
    for (uint32_t i = 0; i < (holes + 1) * holes; ++i) solver.NewVariable();
    for (uint32_t pigeon = 0; pigeon <= holes; ++pigeon) {
      std::vector<Literal> somewhere;
      for (uint32_t hole = 0; hole < holes; ++hole) {
        somewhere.push_back(2 * (pigeon * holes + hole));
        for (uint32_t other = 0; other < pigeon; ++other)
          solver.Add({2 * (pigeon * holes + hole) + 1, 2 * (other * holes + hole) + 1});
      }
      solver.Add(somewhere);
    }
    int64_t steps = given;
    EXPECT_EQ(solver.Solve(steps),
              given == 1000 ? Clauses::Answer::kUnknown : Clauses::Answer::kNo);
    EXPECT_GT(steps, -5000);
  }
}

}  // namespace
}  // namespace pawl::schema
