// Merging against the definition: look at all pairs, merge the best, begin again.
#include "src/text/bpe_model.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "src/text/tokenizer_steps.h"

namespace pawl {
namespace {

struct RandomModel {
  BpeInit init;
  std::map<std::pair<std::string, std::string>, int> ranks;
};

// Merges of random earlier tokens over a small alphabet, so that words merge deeply and in many
// orders.
RandomModel MakeRandomModel(std::mt19937& random, int merges) {
  RandomModel out;
  std::vector<std::string> tokens;
  std::map<std::string, TokenId> ids;
  const auto add = [&](const std::string& token) {
    if (ids.emplace(token, static_cast<TokenId>(ids.size())).second) tokens.push_back(token);
  };
  for (const char* c : {"a", "b", "c", "é"}) add(c);
  while (static_cast<int>(out.init.merges.size()) < merges) {
    const std::string left = tokens[random() % tokens.size()],
                      right = tokens[random() % tokens.size()];
    if (left.size() + right.size() > 12) continue;
    if (!out.ranks.emplace(std::pair(left, right), static_cast<int>(out.init.merges.size())).second)
      continue;
    out.init.merges.emplace_back(left, right);
    add(left + right);
  }
  for (const auto& [token, id] : ids) out.init.vocab.emplace_back(token, id);
  return out;
}

std::vector<std::string> MergeSlowly(std::vector<std::string> symbols, const RandomModel& model) {
  while (true) {
    int best = INT32_MAX;
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = model.ranks.find({symbols[i], symbols[i + 1]});
      if (found != model.ranks.end() && found->second < best) {
        best = found->second;
        at = i;
      }
    }
    if (best == INT32_MAX) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(BpeModelTest, AgreesWithTheDefinition) {
  std::mt19937 random(17);
  BpeModel::Scratch scratch;
  for (int round = 0; round < 60; ++round) {
    const RandomModel source = MakeRandomModel(random, 1 + static_cast<int>(random() % 60));
    const auto model = BpeModel::Create(source.init);
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    for (int i = 0; i < 30; ++i) {
      std::vector<std::string> symbols;
      std::string word;
      const size_t length = 1 + random() % (i % 3 == 0 ? 300 : 20);  // both ways of merging
      for (size_t k = 0; k < length; ++k) {
        symbols.push_back(std::vector<std::string>{"a", "b", "c", "é"}[random() % 4]);
        word += symbols.back();
      }
      std::vector<TokenId> ids;
      model->Encode(word, scratch, ids);
      std::vector<std::string> names;
      for (const TokenId id : ids) names.emplace_back(model->name(id));
      ASSERT_EQ(names, MergeSlowly(symbols, source)) << word;
    }
  }
}

std::vector<TokenId> EncodeWord(const BpeModel& model, std::string_view word) {
  BpeModel::Scratch scratch;
  std::vector<TokenId> out;
  model.Encode(word, scratch, out);
  return out;
}

TEST(BpeModelTest, UnknownCharacters) {
  BpeInit init;
  init.vocab = {{"a", 0}, {"?", 1}, {"<0xC3>", 2}, {"<0xA9>", 3}, {"<0xFF>", 4}};
  auto model = BpeModel::Create(init);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(EncodeWord(*model, "axxa"), (std::vector<TokenId>{0, 0}));  // no unknown token: dropped
  init.unk_token = "?";
  model = BpeModel::Create(init);
  EXPECT_EQ(EncodeWord(*model,
                       "axxé\xFF"
                       "a"),
            (std::vector<TokenId>{0, 1, 1, 1, 1, 0}));
  init.fuse_unk = true;
  model = BpeModel::Create(init);
  EXPECT_EQ(EncodeWord(*model, "axxéa"), (std::vector<TokenId>{0, 1, 0}));
  init.byte_fallback = true;
  model = BpeModel::Create(init);
  EXPECT_EQ(EncodeWord(*model, "axéx\xFF\xC3"), (std::vector<TokenId>{0, 1, 2, 3, 1, 4, 2}));
}

TEST(BpeModelTest, IgnoreMergesTakesWholeWords) {
  BpeInit init;
  init.vocab = {{"a", 0}, {"b", 1}, {"ab", 2}, {"aba", 3}};
  init.merges = {{"a", "b"}};
  EXPECT_EQ(EncodeWord(*BpeModel::Create(init), "aba"), (std::vector<TokenId>{2, 0}));
  init.ignore_merges = true;
  EXPECT_EQ(EncodeWord(*BpeModel::Create(init), "aba"), (std::vector<TokenId>{3}));
  EXPECT_EQ(EncodeWord(*BpeModel::Create(init), "abab"), (std::vector<TokenId>{2, 2}));
  init.forbidden = {"aba", "ab"};
  EXPECT_EQ(EncodeWord(*BpeModel::Create(init), "aba"), (std::vector<TokenId>{0, 1, 0}));
}

TEST(BpeModelTest, Errors) {
  const auto error = [](BpeInit init) {
    const auto model = BpeModel::Create(std::move(init));
    return model.ok() ? std::string("none") : model.error().ToString();
  };
  EXPECT_EQ(error({.vocab = {{"a", 0}, {"b", 0}}}), "/vocab/b: token id 0 is used twice");
  EXPECT_EQ(error({.vocab = {{"a", 0}, {"a", 1}}}), "/vocab/a: the token is there twice");
  EXPECT_EQ(error({.vocab = {{"a", 900000}}}), "/vocab/a: token id 900000 is out of range");
  EXPECT_EQ(error({.vocab = {{"a", -1}}}), "/vocab/a: token id -1 is out of range");
  EXPECT_EQ(error({.vocab = {{"a", 0}}, .merges = {{"a", "a"}}}),
            "/merges/0: \"aa\" is not in the vocabulary");
  EXPECT_EQ(error({.vocab = {{"a", 0}}, .merges = {{"a", ""}}}),
            "/merges/0: a merge with an empty side");
  EXPECT_EQ(error({.vocab = {{"a", 0}}, .unk_token = "u"}),
            "/unk_token: the unknown token is not in the vocabulary");
  EXPECT_EQ(error({}), "none");
}

TEST(ByteAlphabetTest, IsABijection) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(AlphabetToByte(ByteToAlphabet(static_cast<unsigned char>(byte))), byte);
    all.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(AlphabetToBytes(BytesToAlphabet(all)), all);
  EXPECT_EQ(BytesToAlphabet(" \n\xAD"), "\u0120\u010A\u0143");
  EXPECT_EQ(AlphabetToBytes("a b"), std::nullopt);  // a space is not in the alphabet
  EXPECT_EQ(ByteFallbackValue("<0x0A>"), 10);
  EXPECT_EQ(ByteFallbackValue("<0xGG>"), -1);
  EXPECT_EQ(ByteFallbackValue("<0x0A> "), -1);
}

}  // namespace
}  // namespace pawl
