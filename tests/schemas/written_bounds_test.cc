// What a model writes without end is bounded: digits, decimals of seconds, strings, and texts that
// strings may not contain. A bound never closes the way to what the schema asks for.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

class WrittenBoundsTest : public ::testing::Test {
 protected:
  Grammar Compile(const std::string& schema) {
    Result<Grammar> grammar = compiler_.CompileJsonSchema(schema, options_);
    EXPECT_TRUE(grammar.ok()) << schema << ": " << grammar.error().ToString();
    return *std::move(grammar);
  }
  bool Takes(const std::string& schema, const std::string& text) {
    const Grammar grammar = Compile(schema);
    State state = grammar.Start();
    for (const char c : text) {
      const auto next = state.Advance(std::string_view(&c, 1));
      if (!next.has_value()) return false;
      state = *next;
    }
    return state.accepting();
  }

  std::shared_ptr<const Vocabulary> vocabulary_ = Bytes();
  Compiler compiler_{vocabulary_};
  JsonSchemaOptions options_;
};

TEST_F(WrittenBoundsTest, DigitsOfNumbers) {
  EXPECT_TRUE(Takes(R"({"type": "number"})", "12345678901234567"));
  EXPECT_FALSE(Takes(R"({"type": "number"})", "123456789012345678"));
  EXPECT_TRUE(Takes(R"({"type": "number"})", "-0.12345678901234567"));
  EXPECT_FALSE(Takes(R"({"type": "number"})", "-0.123456789012345678"));
  EXPECT_TRUE(Takes("{}", "1.2345678901234567"));
  EXPECT_FALSE(Takes("{}", "1.23456789012345678"));
  // Zeros have an end too.
  EXPECT_TRUE(Takes(R"({"type": "number"})", "0.00001"));
  EXPECT_FALSE(Takes(R"({"type": "number"})", "0." + std::string(40, '0')));
  // What fits only with more digits gets more.
  const std::string large = R"({"type": "integer", "minimum": 1000000000000000000000})";
  EXPECT_TRUE(Takes(large, "1000000000000000000000"));
  EXPECT_FALSE(Takes(large, "10000000000000000000000"));
  EXPECT_TRUE(Takes(R"({"const": 123456789012345678901})", "123456789012345678901"));
  EXPECT_TRUE(Takes(R"({"enum": [12345678901234567, 123456789012345678]})", "123456789012345678"));
  EXPECT_TRUE(Takes(R"({"type": "number", "multipleOf": 1e-18, "exclusiveMinimum": 0,
                        "exclusiveMaximum": 1e-17})",
                    "0.000000000000000001"));
  options_.max_digits = 20;
  EXPECT_TRUE(Takes(R"({"type": "number"})", "12345678901234567890"));
  EXPECT_FALSE(Takes(R"({"type": "number"})", "123456789012345678901"));
  options_.max_digits = 0;
  EXPECT_TRUE(Takes(R"({"type": "number"})", std::string(100, '7')));
  options_ = JsonSchemaOptions();
  options_.canonical_spelling = false;
  EXPECT_TRUE(Takes(R"({"type": "number"})", std::string(100, '7')));
}

TEST_F(WrittenBoundsTest, DigitsOfDurations) {
  const std::string duration = R"({"format": "duration", "type": "string"})";
  EXPECT_TRUE(Takes(duration, "\"P123456789DT12H\""));
  EXPECT_FALSE(Takes(duration, "\"P1234567890D\""));
  EXPECT_TRUE(Takes(R"({"format": "duration", "const": "P1234567890D"})", "\"P1234567890D\""));
  options_.max_decimals = 0;
  EXPECT_TRUE(Takes(duration, "\"P1234567890D\""));
}

// Whatever is written first, the mask leaves a continuation: walks that take the highest digit.
TEST_F(WrittenBoundsTest, NoNumberIsADeadEnd) {
  for (const std::string schema :
       {R"({"type": "number"})", R"({"type": "integer", "multipleOf": 7})",
        R"({"type": "number", "multipleOf": 0.003})",
        R"({"anyOf": [{"minimum": 1e30}, {"maximum": -1e25}],
           "type": "number"})",
        R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": true, "minItems": 3,
            "maxItems": 3})"}) {
    std::mt19937 random(1);
    for (int round = 0; round < 30; ++round) {
      const Grammar grammar = Compile(schema);
      State state = grammar.Start();
      std::string text;
      for (int step = 0; step < 150 && !state.accepting(); ++step) {
        std::string next;
        for (const char c : std::string("0123456789-.[],")) {
          if (state.Advance(std::string_view(&c, 1)).has_value()) next += c;
        }
        ASSERT_FALSE(next.empty()) << schema << " after " << text;
        // Mostly one digit again and again, so that long numbers and equal items are met.
        char c = next[random() % next.size()];
        if (random() % 8 != 0 && next.find('7') != std::string::npos) c = '7';
        state = *state.Advance(std::string_view(&c, 1));
        text += c;
      }
    }
  }
}

TEST_F(WrittenBoundsTest, DecimalsOfSeconds) {
  const std::string schema = R"({"type": "string", "format": "date-time"})";
  EXPECT_TRUE(Takes(schema, R"("2024-02-29T12:00:00.123456789Z")"));
  EXPECT_FALSE(Takes(schema, R"("2024-02-29T12:00:00.1234567890Z")"));
  EXPECT_FALSE(Takes(R"({"type": "string", "format": "time"})", R"("12:00:00.1234567890Z")"));
  // Asked for by the schema.
  EXPECT_TRUE(Takes(R"({"type": "string", "format": "date-time", "pattern": "\\.[0-9]{12}Z$"})",
                    R"("2024-02-29T12:00:00.123456789012Z")"));
  EXPECT_TRUE(Takes(R"({"type": "string", "not": {"format": "time"}})", R"("12:00:00.x")"));
  // A bound on what is written may not let in more under a negation.
  EXPECT_FALSE(
      Takes(R"({"type": "string", "not": {"format": "time"}})", R"("12:00:00.1234567890Z")"));
  options_.max_decimals = 12;
  EXPECT_TRUE(Takes(schema, R"("2024-02-29T12:00:00.123456789012Z")"));
  options_.max_decimals = 0;
  EXPECT_TRUE(Takes(schema, R"("2024-02-29T12:00:00.)" + std::string(50, '1') + R"(Z")"));
}

TEST_F(WrittenBoundsTest, StringsWithoutAnEnd) {
  const auto quoted = [](size_t length) { return '"' + std::string(length, 'x') + '"'; };
  options_.max_string = 20;
  for (const std::string schema :
       {"{}", R"({"type": "string"})", R"({"type": "string", "minLength": 3})",
        R"({"type": "string", "pattern": "^x+$"})",
        R"({"oneOf": [{"type": "string"}, {"type": "null"}]})"}) {
    EXPECT_TRUE(Takes(schema, quoted(20))) << schema;
    EXPECT_FALSE(Takes(schema, quoted(21))) << schema;
  }
  // Code points, not bytes.
  std::string wide;
  for (int i = 0; i < 20; ++i) wide += "\u00e9";
  EXPECT_TRUE(Takes("{}", '"' + wide + '"'));
  // The schema's own end counts, and what it asks for.
  EXPECT_TRUE(Takes(R"({"type": "string", "maxLength": 30})", quoted(30)));
  EXPECT_TRUE(Takes(R"({"type": "string", "minLength": 40})", quoted(40)));
  EXPECT_TRUE(Takes(R"({"enum": ["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "y"]})", quoted(30)));
  EXPECT_TRUE(Takes(R"({"type": "string", "pattern": "^x{33}$"})", quoted(33)));
  EXPECT_FALSE(Takes(R"({"type": "object", "additionalProperties": {"type": "string"}})",
                     R"({"a":)" + quoted(21) + "}"));
}

TEST_F(WrittenBoundsTest, ExcludedTexts) {
  options_.excluded_texts = "<|end|>\nstop";
  EXPECT_TRUE(Takes("{}", R"("<|en stoo <|end|")"));
  EXPECT_FALSE(Takes("{}", R"("a <|end|> b")"));
  EXPECT_FALSE(Takes(R"({"type": "array"})", R"(["stop"])"));
  EXPECT_FALSE(Takes(R"({"enum": ["stop", "go"]})", R"("stop")"));
  EXPECT_TRUE(Takes(R"({"enum": ["stop", "go"]})", R"("go")"));
  EXPECT_FALSE(compiler_.CompileJsonSchema(R"({"const": "stop"})", options_).ok());
}

}  // namespace
}  // namespace pawl
