// Properties of compiled schemas on random schemas. A failure prints the smallest schema found that
// still fails, and what is wrong with it.
//
//   PAWL_PROPERTY_SCHEMAS=20000 PAWL_PROPERTY_SEED=7 property_test
//   --gtest_filter=PropertyTest.Instances
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "tests/oracle/json_schema_validator.h"
#include "tests/schemas/property_checks.h"
#include "tests/schemas/property_generators.h"

namespace pawl::property {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

void RunOnRandomSchemas(Check check, uint64_t default_schemas) {
  const uint64_t schemas = FromEnvironment("PAWL_PROPERTY_SCHEMAS", default_schemas);
  const uint64_t seed = FromEnvironment("PAWL_PROPERTY_SEED", 1);
  Dice vocabulary_dice(seed);
  const auto vocabulary = RandomVocabulary(vocabulary_dice, 120);
  ASSERT_NE(vocabulary, nullptr);
  const Compiler compiler(vocabulary);
  uint64_t checked = 0, unsatisfiable = 0, refused = 0;
  std::map<std::string, int> refusals;
  uint64_t failures_left = FromEnvironment("PAWL_PROPERTY_FAILURES", 1);
  for (uint64_t i = 0; i < schemas; ++i) {
    const uint64_t case_seed = seed * 1'000'000 + i;
    Dice dice(case_seed);
    const json::Value schema = RandomSchema(dice);
    const Finding finding = check(compiler, *vocabulary, schema, case_seed);
    checked += finding.outcome == Outcome::kChecked;
    unsatisfiable += finding.outcome == Outcome::kUnsatisfiable;
    if (finding.outcome == Outcome::kRefused) {
      ++refused;
      ++refusals[finding.refusal.substr(0, 60)];
    }
    if (!finding.failure.empty()) {
      const json::Value smallest = Shrunk(schema, [&](const json::Value& candidate) {
        return !check(compiler, *vocabulary, candidate, case_seed).failure.empty();
      });
      ADD_FAILURE() << "case " << i << " of seed " << seed << "\nschema:   " << json::Dump(schema)
                    << "\nsmallest: " << json::Dump(smallest) << "\n"
                    << check(compiler, *vocabulary, smallest, case_seed).failure;
      if (--failures_left == 0) return;
    }
  }
  std::cout << checked << " checked, " << unsatisfiable << " unsatisfiable, " << refused
            << " refused\n";
  if (std::getenv("PAWL_PROPERTY_VERBOSE") != nullptr) {
    for (const auto& [why, count] : refusals) std::cout << "  " << count << " x " << why << "\n";
  }
  EXPECT_LE(refused * 10, schemas) << "too many schemas were refused";
  EXPECT_GE(checked * 2, schemas);
}

// The tests are worth something only when the cases are: valid and invalid instances, for schemas
// of all sorts.
TEST(PropertyGeneratorsTest, MakeBothValidAndInvalidInstances) {
  Dice dice(3);
  int valid = 0, invalid = 0, unknown = 0, mixed = 0;
  for (int i = 0; i < 400; ++i) {
    const json::Value schema = RandomSchema(dice);
    auto validator = oracle::Validator::Create(json::Dump(schema), {});
    ASSERT_TRUE(validator.ok()) << json::Dump(schema);
    int here = 0;
    for (int j = 0; j < 20; ++j) {
      json::Value instance = LikelyValue(dice, schema);
      if (dice.Percent(30)) instance = Mutated(dice, instance);
      const std::string text = Spelled(dice, instance);
      const auto parsed = json::Parse(text);
      ASSERT_TRUE(parsed.ok()) << text;
      ASSERT_TRUE(oracle::EqualValues(*parsed, instance))
          << text << " is not " << json::Dump(instance);
      const auto verdict = (*validator)->Validate(text);
      unknown += verdict == oracle::Verdict::kCannotTell;
      invalid += verdict == oracle::Verdict::kInvalid;
      here += verdict == oracle::Verdict::kValid;
    }
    valid += here;
    mixed += here > 0 && here < 20;
  }
  std::cout << valid << " valid, " << invalid << " invalid, " << unknown << " unknown; " << mixed
            << " of 400 mixed\n";
  EXPECT_GE(valid, 2000);
  EXPECT_GE(invalid, 2000);
  EXPECT_LE(unknown, 100);
  EXPECT_GE(mixed, 200);
}

// Exponents on numbers under nothing, and under a conjunction of bounds and divisors
// (number_combination_test.cc has the rest).
TEST(PropertyTest, Exponents) {
  Dice dice(1);
  const Compiler compiler(RandomVocabulary(dice, 0));
  const struct {
    const char *schema, *accepted, *refused;
  } cases[] = {{R"({})", "-1.5E+999", "1e"},
               {R"({"type": "integer"})", "150e-1", "155e-1"},
               {R"({"type": "integer"})", "1.5e1", "1.5e0"},
               {R"({"minimum": 5})", "0.5e1", "0.4e1"},
               {R"({"minimum": 5, "allOf": [{"maximum": 50}]})", "0.05e3", "0.05e4"},
               {R"({"multipleOf": 0.01})", "12e-2", "12e-3"},
               {R"({"exclusiveMinimum": 0})", "1e-300", "0e5"}};
  for (const auto& c : cases) {
    JsonSchemaOptions options;
    options.canonical_spelling = false;
    options.allow_exponents = true;
    const auto grammar = compiler.CompileJsonSchema(c.schema, options);
    ASSERT_TRUE(grammar.ok()) << c.schema << grammar.error().ToString();
    const auto accepts = [&](const char* text) {
      const auto state = grammar->Start().Advance(std::string_view(text));
      return state && state->accepting();
    };
    EXPECT_TRUE(accepts(c.accepted)) << c.schema << " " << c.accepted;
    EXPECT_FALSE(accepts(c.refused)) << c.schema << " " << c.refused;
  }
}

TEST(PropertyTest, Masks) { RunOnRandomSchemas(&CheckMasks, 600); }
TEST(PropertyTest, Completions) { RunOnRandomSchemas(&CheckCompletions, 500); }
TEST(PropertyTest, Walks) { RunOnRandomSchemas(&CheckWalks, 600); }
TEST(PropertyTest, Instances) { RunOnRandomSchemas(&CheckInstances, 4000); }
TEST(PropertyTest, Forced) { RunOnRandomSchemas(&CheckForced, 1000); }

}  // namespace
}  // namespace pawl::property
