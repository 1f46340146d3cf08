// Outputs that repeat themselves, and records as they come.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "tests/support/session.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// A model that writes a text again and again, whatever stands before, under a pattern of the
// letters a to d. The end has the least logit.
Result<Generation> Repeated(const std::string& period, const GenerateOptions& options,
                            const std::string& pattern = "[abcd]*") {
  const auto vocabulary = VocabularyOf({"a", "b", "c", "d"});
  const Compiler compiler(vocabulary);
  const Result<Grammar> grammar = compiler.CompileRegex(pattern);
  EXPECT_TRUE(grammar.ok());
  ToyModel model({.vocabulary_size = 5, .context_length = 4000, .reads = false},
                 [&](const ToyModel::Place& place, std::span<float> out) {
                   for (float& logit : out) logit = 0;
                   const auto at = static_cast<size_t>(place.row.position) % period.size();
                   out[static_cast<size_t>(period[at] - 'a')] = 9;
                   out[4] = -9;
                 });
  Session session(model, vocabulary);
  const TokenId prompt[] = {0};
  return session.Generate(prompt, MakeConstraint(*grammar), options);
}

TEST(RepetitionTest, IsClosedAfterTwoHundredTokens) {
  GenerateOptions options;
  options.max_tokens = 1000;
  options.close_repetition = true;
  for (const char* period : {"a", "ab", "abcdabcaabcdabcabcdd"}) {
    const Result<Generation> output = Repeated(period, options);
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    EXPECT_EQ(output->stop, StopReason::kClosed) << period;
    EXPECT_EQ(output->closed_by, ClosedBy::kRepetition);
    EXPECT_EQ(output->tokens.size(), 200u) << period;
  }
  // Eight times.
  EXPECT_EQ(Repeated(std::string(29, 'a') + "b", options)->tokens.size(), 240u);
  EXPECT_EQ(Repeated(std::string(63, 'a') + "b", options)->tokens.size(), 512u);
}

TEST(RepetitionTest, LongerPeriodsAndOtherOutputsGoOn) {
  GenerateOptions options;
  options.max_tokens = 600;
  const std::string long_period = std::string(64, 'a') + "b";
  options.close_repetition = true;
  EXPECT_EQ(Repeated(long_period, options)->tokens.size(), 600u);
  EXPECT_EQ(Repeated(long_period, options)->closed_by, ClosedBy::kBudget);
  for (const std::optional<bool> off : {std::optional<bool>(), std::optional<bool>(false)}) {
    options.close_repetition = off;
    EXPECT_EQ(Repeated("a", options)->tokens.size(), 600u);
  }
}

TEST(RepetitionTest, TheOutputIsComplete) {
  GenerateOptions options;
  options.max_tokens = 1000;
  options.close_repetition = true;
  const Result<Generation> output = Repeated("ab", options, "([abc]*d){2}");
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->closed_by, ClosedBy::kRepetition);
  ASSERT_GE(output->text.size(), 2u);
  EXPECT_EQ(output->text.substr(output->text.size() - 2), "dd");
}

// Writes the shortest text that the mask allows, with null where it may.
TEST(RepetitionTest, CallbacksGetTheRecord) {
  std::vector<std::string> tokens;
  for (int c = 32; c < 127; ++c) tokens.emplace_back(1, static_cast<char>(c));
  tokens.emplace_back("null");
  const auto vocabulary = VocabularyOf(tokens);
  const int size = vocabulary->size();
  JsonSchemaOptions json;
  json.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  json.additional_properties = false;
  json.keys = JsonSchemaOptions::Keys::kAll;
  const Compiler compiler(vocabulary);
  const Result<Grammar> grammar = compiler.CompileJsonSchema(
      R"({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]},
          "c": {"type": "integer"}}})",
      json);
  ASSERT_TRUE(grammar.ok());
  const TokenId null = size - 2;
  ToyModel model({.vocabulary_size = size, .context_length = 4000, .reads = false},
                 [&](const ToyModel::Place&, std::span<float> out) {
                   for (float& logit : out) logit = 0;
                   out[static_cast<size_t>(null)] = 9;
                 });
  Session session(model, vocabulary);
  const TokenId prompt[] = {0};
  std::string told, reported;
  GenerateOptions options;
  options.on_token = [&](TokenId, std::string_view bytes) {
    told += bytes;
    return true;
  };
  options.on_report = [&](const TokenReport& report) {
    reported += report.bytes;
    return true;
  };
  const Result<Generation> output = session.Generate(prompt, MakeConstraint(*grammar), options);
  ASSERT_TRUE(output.ok()) << output.error().ToString();
  EXPECT_EQ(output->text, R"({"b":null})");
  EXPECT_EQ(told, output->text);
  EXPECT_EQ(reported, output->text);
  std::string written;
  for (const TokenId token : output->tokens) written += vocabulary->bytes(token);
  EXPECT_EQ(written, R"({"a":null,"b":null,"c":null})");
  EXPECT_EQ(output->stats.output_tokens, static_cast<int>(output->tokens.size()));
}

}  // namespace
}  // namespace pawl
