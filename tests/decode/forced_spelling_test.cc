// The spelling of forced runs against its definition, tried on all tails and all tokens, and its
// use in the decode loop over a model with no taste at all.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/compiler.h"
#include "tests/support/session.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// The longest token each time: a spelling that differs from the fewest tokens and is easy to tell.
Encoder Greedy(const std::shared_ptr<const Vocabulary>& vocabulary) {
  return [vocabulary](std::string_view text) {
    std::vector<TokenId> out;
    while (!text.empty()) {
      const TokenId token = vocabulary->LongestPrefix(text);
      if (token == kNoToken) return std::vector<TokenId>{};
      out.push_back(token);
      text.remove_prefix(vocabulary->bytes(token).size());
    }
    return out;
  };
}

std::string Spelled(const Vocabulary& vocabulary, const Encoder& encode, std::string_view forced) {
  std::string out;
  for (const TokenId token : SpellForced(vocabulary, encode, forced)) {
    out += vocabulary.bytes(token);
    out += '|';
  }
  return out;
}

TEST(ForcedSpellingTest, LeavesOutWhatALongerTokenMaySwallow) {
  const auto words =
      VocabularyOf({"\"", ":", "a", "b", "c", "ab", "abc", "\":", "inter", "n", "internal"});
  const Encoder encode = Greedy(words);
  EXPECT_EQ(Spelled(*words, encode, "\"abc\":"), "\"|abc|\":|");
  EXPECT_EQ(Spelled(*words, encode, "\"abc\""), "\"|abc|");  // the quote may become ":
  EXPECT_EQ(Spelled(*words, encode, "\"ab"), "\"|");         // ab may become abc
  EXPECT_EQ(Spelled(*words, encode, ":intern"), ":|");       // two tokens, one token later
  EXPECT_EQ(Spelled(*words, encode, "x"), "");               // cannot be spelled
  EXPECT_EQ(Spelled(*words, encode, ""), "");
  const Encoder spaced = [&](std::string_view text) { return encode(":" + std::string(text)); };
  EXPECT_EQ(Spelled(*words, spaced, "abc:"), "") << "an encoding of other bytes is not used";
  const Encoder special = [&](std::string_view) { return std::vector<TokenId>{words->size() - 1}; };
  EXPECT_EQ(Spelled(*words, special, "<end>"), "");
}

TEST(ForcedSpellingTest, AgreesWithItsDefinition) {
  std::mt19937 rng(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    for (int i = 0; i < 12; ++i) {
      std::string token;
      for (unsigned n = 2 + rng() % 4; n > 0; --n) token += static_cast<char>('a' + rng() % 3);
      tokens.push_back(token);
    }
    const auto vocabulary = VocabularyOf(tokens);
    const Encoder encode = Greedy(vocabulary);
    std::string forced;
    for (unsigned n = 1 + rng() % 12; n > 0; --n) forced += static_cast<char>('a' + rng() % 3);
    const std::vector<TokenId> all = encode(forced);
    // Keep the first k tokens for the largest k such that no tail from a kept boundary is open.
    size_t keep = all.size();
    std::string tail;
    for (size_t i = all.size(); i-- > 0;) {
      tail = std::string(vocabulary->bytes(all[i])) + tail;
      for (const std::string& token : tokens) {
        if (token.size() > tail.size() && token.starts_with(tail)) keep = i;
      }
    }
    std::string want;
    for (size_t i = 0; i < keep; ++i) want += std::string(vocabulary->bytes(all[i])) + "|";
    EXPECT_EQ(Spelled(*vocabulary, encode, forced), want) << forced;
  }
}

TEST(ForcedSpellingTest, TheSessionWritesForcedRunsAsTheTokenizerDoes) {
  const auto vocabulary =
      VocabularyOf(Letters(' ', '~', {"customer", "custom", "cat", "dog", "\":"}));
  const auto grammar = Compiler(vocabulary).CompileRegex("\"customer\":(cat|dog)");
  ASSERT_TRUE(grammar.ok());
  // Likes short tokens best, whatever came before.
  ToyModel model({.vocabulary_size = vocabulary->size(), .reads = false},
                 [&](const ToyModel::Place&, std::span<float> out) {
                   for (TokenId t = 0; t < vocabulary->size(); ++t)
                     out[static_cast<size_t>(t)] = -static_cast<float>(vocabulary->bytes(t).size());
                 });
  const auto run = [&](Encoder encode, bool skip_forced) {
    Session session(model, vocabulary, std::move(encode));
    GenerateOptions options;
    options.max_tokens = 40;
    options.skip_forced = skip_forced;
    const std::vector<TokenId> prompt = {0};
    const auto out = session.Generate(prompt, MakeConstraint(*grammar), options);
    EXPECT_TRUE(out.ok());
    std::string spelling;
    for (const TokenId t : out->tokens) spelling += std::string(vocabulary->bytes(t)) + "|";
    return spelling;
  };
  EXPECT_EQ(run({}, true), "\"|c|u|s|t|o|m|e|r|\"|:|c|a|t|");
  EXPECT_EQ(run(Greedy(vocabulary), false), "\"|c|u|s|t|o|m|e|r|\"|:|c|a|t|");
  // "cat" is not forced until its first letter is there.
  EXPECT_EQ(run(Greedy(vocabulary), true), "\"|customer|\":|c|a|t|");
}

// "at" could be the beginning of "attic", which a mask may not allow: then nothing is left to the
// model but the spelling.
TEST(ForcedSpellingTest, WhatNoAllowedTokenGoesBeyondIsForced) {
  const auto vocabulary = VocabularyOf(Letters(' ', '~', {"at", "attic", "att"}));
  ToyModel model({.vocabulary_size = vocabulary->size(), .reads = false},
                 [&](const ToyModel::Place&, std::span<float> out) {
                   for (TokenId t = 0; t < vocabulary->size(); ++t)
                     out[static_cast<size_t>(t)] = -static_cast<float>(vocabulary->bytes(t).size());
                 });
  const auto run = [&](const char* pattern, int& sampled) {
    const auto grammar = Compiler(vocabulary).CompileRegex(pattern);
    EXPECT_TRUE(grammar.ok());
    Session session(model, vocabulary, Greedy(vocabulary));
    GenerateOptions options;
    options.max_tokens = 40;
    const std::vector<TokenId> prompt = {0};
    const auto out = session.Generate(prompt, MakeConstraint(*grammar), options);
    EXPECT_TRUE(out.ok());
    sampled = out->stats.sampled_tokens;
    std::string spelling;
    for (const TokenId t : out->tokens) spelling += std::string(vocabulary->bytes(t)) + "|";
    return spelling;
  };
  int sampled = 0;
  EXPECT_EQ(run("cat |dog", sampled), "c|at| |");
  EXPECT_EQ(sampled, 1);
  // "att" goes beyond "at".
  EXPECT_EQ(run("cat[ t]|dog", sampled), "c|a|t| |");
  EXPECT_GT(sampled, 2);
}

}  // namespace
}  // namespace pawl
