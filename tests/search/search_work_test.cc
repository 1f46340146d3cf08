// Searches in a batch with outputs, under little memory, and cancelled.
#include <gtest/gtest.h>

#include <cmath>

#include "src/decode/batch.h"
#include "tests/search/toy_language.h"

namespace pawl {
namespace {

ToyModel HashedModel(int32_t pages) {
  return ToyModel({.vocabulary_size = 24, .context_length = 400, .pages = pages, .kept = 4},
                  HashedLogits);
}

std::shared_ptr<const Vocabulary> HashedVocabulary() { return VocabularyOf(Letters('a', 'w')); }

void ExpectSameOutputs(const SearchResult& got, const SearchResult& wanted) {
  ASSERT_EQ(got.outputs.size(), wanted.outputs.size());
  for (size_t i = 0; i < got.outputs.size(); ++i) {
    EXPECT_EQ(got.outputs[i].tokens, wanted.outputs[i].tokens) << i;
    const double log_p = wanted.outputs[i].log_probability;  // NaN: not computed
    EXPECT_TRUE(got.outputs[i].log_probability == log_p ||
                (std::isnan(got.outputs[i].log_probability) && std::isnan(log_p)))
        << i;
  }
}

TEST(SearchWorkTest, OutputsAreThoseOfEachAlone) {
  const auto vocabulary = HashedVocabulary();
  const Grammar grammar = *Compiler(vocabulary).CompileRegex("[a-g]{3}h{5}[a-g]{6,20}");
  for (const char* strategy : {"beam", "best-first", "diverse-beam"}) {
    for (const int32_t pages : {1000, 40}) {
      SearchOptions options{.strategy = strategy, .n = 3, .num_beams = 8, .max_tokens = 30};
      // Rows that run again count, so a limit of hypotheses comes at the same place.
      options.max_rows = 1000000;
      options.max_nodes = 5000;
      SCOPED_TRACE(std::string(strategy) + " " + std::to_string(pages));
      const std::vector<TokenId> prompt(21, 3);
      ToyModel alone = HashedModel(1000);
      const Result<SearchResult> wanted =
          RunSearch({alone, *vocabulary, {}, prompt, MakeConstraint(grammar)}, options);
      ASSERT_TRUE(wanted.ok()) << wanted.error().ToString();

      ToyModel shared = HashedModel(pages);
      std::optional<Result<SearchResult>> got;
      int chats = 0;
      {
        BatchEngine engine(shared, vocabulary, {}, {.look_threads = 2});
        for (int i = 0; i < 4; ++i) {
          BatchRequest request;
          request.prompt.assign(static_cast<size_t>(20 + i), static_cast<TokenId>(i));
          request.options.max_tokens = 60;
          request.done = [&](Result<Generation> output) {
            EXPECT_TRUE(output.ok()) << output.error().ToString();
            ++chats;
          };
          engine.Add(std::move(request));
        }
        engine.Add(MakeSearchWork({shared, *vocabulary, {}, prompt, MakeConstraint(grammar)},
                                  options,
                                  [&](Result<SearchResult> result) { got = std::move(result); }));
        while (engine.Step()) {
        }
      }
      EXPECT_EQ(chats, 4);
      ASSERT_TRUE(got.has_value() && got->ok()) << strategy;
      ExpectSameOutputs(**got, *wanted);
      EXPECT_EQ(shared.alive, 0);
    }
  }
}

TEST(SearchWorkTest, EndsWhereItIsCancelled) {
  const auto vocabulary = HashedVocabulary();
  ToyModel model = HashedModel(1000);
  SearchOptions options{.strategy = "best-first", .n = 4, .max_tokens = 300};
  std::optional<Result<SearchResult>> got;
  BatchEngine engine(model, vocabulary, {}, {.look_threads = 2});
  const RequestId id = engine.Add(
      MakeSearchWork({model, *vocabulary, {}, std::vector<TokenId>(9, 1), nullptr}, options,
                     [&](Result<SearchResult> result) { got = std::move(result); }));
  for (int i = 0; i < 20; ++i) engine.Step();
  ASSERT_FALSE(got.has_value());
  engine.Cancel(id);
  while (engine.Step()) {
  }
  ASSERT_TRUE(got.has_value());
  ASSERT_FALSE(got->ok());
  EXPECT_EQ(got->error().message, "the request was cancelled");
  EXPECT_EQ(model.alive, 0);
}

}  // namespace
}  // namespace pawl
