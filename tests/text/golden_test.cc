// Small tokenizers of every kind against what Hugging Face's library does with them; see
// scripts/make_tokenizer_goldens.py.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/text/token_decoder.h"
#include "src/text/tokenizer.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

const std::string kGoldenFolder = SourceDir() + "/tests/data/tokenizers/";

json::Value LoadGolden(const std::string& name) {
  const Result<std::string> text = ReadFile(kGoldenFolder + name);
  EXPECT_TRUE(text.ok()) << name;
  Result<json::Value> value = json::Parse(text.ok() ? *text : "null");
  EXPECT_TRUE(value.ok()) << name;
  return value.ok() ? std::move(*value) : json::Value{};
}

std::vector<TokenId> Ids(const json::Value& list) {
  std::vector<TokenId> out;
  for (const json::Value& id : list.items) out.push_back(std::stoi(id.text));
  return out;
}

class GoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto loaded = Tokenizer::FromFile(kGoldenFolder + GetParam() + ".tokenizer.json");
    ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    tokenizer_ = *loaded;
    golden_ = LoadGolden(GetParam() + std::string(".golden.json"));
    const json::Value strings = LoadGolden("strings.json");
    const size_t count = golden_.Find("ids")->items.size();
    ASSERT_GE(count, 100u);
    for (size_t i = 0; i < count; ++i) strings_.push_back(strings.items[i].text);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  json::Value golden_;
  std::vector<std::string> strings_;
};

TEST_P(GoldenTest, EncodesAndDecodesLikeHuggingFace) {
  for (size_t i = 0; i < strings_.size(); ++i) {
    const std::string& text = strings_[i];
    const std::vector<TokenId> expected = Ids(golden_.Find("ids")->items[i]);
    EXPECT_EQ(tokenizer_->Encode(text), expected) << text;

    const json::Value* parsed = golden_.Find("parsed")->Find(std::to_string(i));
    EXPECT_EQ(tokenizer_->Encode(text, {.parse_special = true}), parsed ? Ids(*parsed) : expected)
        << text;

    const json::Value* decoded = golden_.Find("decoded")->Find(std::to_string(i));
    EXPECT_EQ(tokenizer_->Decode(expected), decoded ? decoded->text : text);
  }
}

TEST_P(GoldenTest, PostProcessorAddsTokens) {
  for (const auto& [index, ids] : golden_.Find("added")->members) {
    const std::string& text = strings_[std::stoul(index)];
    EXPECT_EQ(tokenizer_->Encode(text, {.add_special_tokens = true}), Ids(ids)) << text;
  }
}

TEST_P(GoldenTest, StreamingGivesTheSameText) {
  for (const std::string& text : strings_) {
    const std::vector<TokenId> ids = tokenizer_->Encode(text, {.parse_special = true});
    for (const bool keep_special : {false, true}) {
      StreamDecoder stream(*tokenizer_, keep_special);
      std::string out;
      for (const TokenId id : ids) out += stream.Feed(id);
      out += stream.Finish();
      EXPECT_EQ(out, tokenizer_->Decode(ids, keep_special)) << text;
    }
  }
}

// The bytes in the vocabulary are those that a token adds behind any other text.
TEST_P(GoldenTest, VocabularyAgreesWithDecode) {
  const auto made = tokenizer_->MakeVocabulary();
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  const Vocabulary& vocabulary = **made;
  ASSERT_EQ(vocabulary.size(), tokenizer_->size());
  TokenId front = kNoToken;
  for (TokenId id = 0; id < vocabulary.size() && front == kNoToken; ++id) {
    if (tokenizer_->NameOf(id) == "a") front = id;
  }
  ASSERT_NE(front, kNoToken);
  const std::string before = tokenizer_->Decode({{front}});
  int text_tokens = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_special(id)) continue;
    ++text_tokens;
    const std::vector<TokenId> pair = {front, id};
    EXPECT_EQ(before + std::string(vocabulary.bytes(id)), tokenizer_->Decode(pair)) << id;
  }
  EXPECT_GT(text_tokens, 100);
}

TEST_P(GoldenTest, UserTextNeverBecomesSpecial) {
  const auto vocabulary = tokenizer_->MakeVocabulary();
  ASSERT_TRUE(vocabulary.ok());
  const TokenId unknown = tokenizer_->IdOf("<unk>");
  std::vector<std::string> texts = strings_;
  for (TokenId id = 0; id < tokenizer_->size(); ++id) texts.emplace_back(tokenizer_->NameOf(id));
  for (const std::string& text : texts) {
    for (const TokenId id : tokenizer_->Encode(text)) {
      EXPECT_TRUE(id == unknown || !(*vocabulary)->is_special(id)) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tokenizers, GoldenTest,
    testing::Values("bert", "bytes", "cased", "digits", "falcon", "fixed", "flags", "gemma", "gpt2",
                    "gpt2_prefix", "han", "llama2", "llama3", "metaspace_always", "metaspace_first",
                    "metaspace_never", "qwen2", "split_contiguous", "split_contiguous_inverted",
                    "split_isolated", "split_isolated_inverted", "split_merged_with_next",
                    "split_merged_with_next_inverted", "split_merged_with_previous",
                    "split_merged_with_previous_inverted", "split_removed", "scripts",
                    "split_removed_inverted", "tekken", "thousands", "words"),
    [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace pawl
