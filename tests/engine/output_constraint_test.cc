// The options that a door reads, as options of a grammar.
#include "src/engine/output_constraint.h"

#include <gtest/gtest.h>

#include <string>

#include "pawl/compiler.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

TEST(LayoutSpecTest, BoundedWhitespaceEndsAtEight) {
  LayoutSpec layout;
  layout.whitespace = JsonSchemaOptions::Whitespace::kBounded;
  const Compiler compiler(VocabularyOf(AllBytes()));
  const auto grammar = compiler.CompileJsonSchema(R"({"const": [1]})", layout.ToOptions());
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const auto fits = [&](const std::string& text) {
    const auto state = grammar->Start().Advance(text);
    return state.has_value() && state->accepting();
  };
  EXPECT_TRUE(fits("[1]"));
  EXPECT_TRUE(fits("[" + std::string(8, ' ') + "1]"));
  EXPECT_FALSE(fits("[" + std::string(9, ' ') + "1]"));
}

}  // namespace
}  // namespace pawl
