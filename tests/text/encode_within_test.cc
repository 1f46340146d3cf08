// Texts that a context cannot hold are refused, others never; and every loop over a text looks at
// the stop flag. For each tokenizer of the goldens, which have all parts that formats have.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/stop_scope.h"
#include "src/text/added_tokens.h"
#include "src/text/bpe_model.h"
#include "src/text/normalizer.h"
#include "src/text/split_regex.h"
#include "src/text/tokenizer.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

struct Named {
  std::string name;
  std::shared_ptr<const Tokenizer> tokenizer;
};

const std::vector<Named>& Goldens() {
  static const std::vector<Named> all = [] {
    std::vector<Named> out;
    for (const auto& entry :
         std::filesystem::directory_iterator(SourceDir() + "/tests/data/tokenizers")) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".tokenizer.json")) continue;
      const auto loaded = Tokenizer::FromFile(entry.path().string());
      EXPECT_TRUE(loaded.ok()) << name;
      if (loaded.ok()) out.push_back({name, *loaded});
    }
    return out;
  }();
  return all;
}

std::string RandomText(std::mt19937& random) {
  static constexpr std::string_view kParts[] = {" ",
                                                "  ",
                                                "a",
                                                "the",
                                                " Invoice",
                                                "12",
                                                "\n",
                                                "\t",
                                                "\xC3\xA9",
                                                "e\xCC\x81",
                                                "\xEF\xAC\x81",
                                                "<s>",
                                                "<|endoftext|>",
                                                "\xF0\x9F\x98\x80",
                                                "\xFF",
                                                "\xE2\x96\x81",
                                                "!?",
                                                "ABC",
                                                "\xE6\xBC\xA2",
                                                "            "};
  std::string text;
  const size_t parts = random() % 30;
  for (size_t i = 0; i < parts; ++i) text += kParts[random() % std::size(kParts)];
  return text;
}

// The tokens that a text has are space enough for it, whatever is in it.
TEST(EncodeWithinTest, WhatFitsIsNotRefused) {
  std::mt19937 random(7);
  ASSERT_GE(Goldens().size(), 20U);
  for (const auto& [name, tokenizer] : Goldens()) {
    for (int round = 0; round < 300; ++round) {
      const std::string text = RandomText(random);
      const EncodeOptions options{.parse_special = round % 2 == 1};
      const std::vector<TokenId> tokens = tokenizer->Encode(text, options);
      const auto within = tokenizer->EncodeWithin(text, static_cast<int>(tokens.size()), options);
      ASSERT_TRUE(within.ok()) << name << ": " << within.error().message << ": " << text;
      EXPECT_EQ(*within, tokens) << name;
    }
  }
}

// Llama's normalizer makes three bytes of a space.
TEST(EncodeWithinTest, BytesAreThoseOfNormalizedText) {
  const auto message = [](const std::string& name, const std::string& text, int max_tokens) {
    for (const Named& one : Goldens()) {
      if (one.name != name + ".tokenizer.json") continue;
      const auto within = one.tokenizer->EncodeWithin(text, max_tokens, {});
      return within.ok() ? std::string() : within.error().message;
    }
    return std::string("no such tokenizer");
  };
  const std::string spaces(100000, ' ');
  EXPECT_TRUE(message("llama2", spaces, 10)
                  .starts_with("has 300003 bytes, but 10 tokens hold no "
                               "more than "));
  EXPECT_TRUE(message("gpt2", spaces, 10).starts_with("has 100000 bytes, but 10 tokens"));
  EXPECT_EQ(message("gpt2", spaces, 100000), "");
  EXPECT_NE(message("gpt2", "a", 0), "");
  EXPECT_EQ(message("gpt2", "", 0), "");
}

// A normalizer that makes the text shorter, and formats that drop some of it.
TEST(EncodeWithinTest, WhatIsDroppedDoesNotCount) {
  const auto refused = [](const std::string& parts, const std::string& text) {
    const auto loaded = Tokenizer::FromJson(
        R"({"version":"1.0",)" + parts +
        R"("model":{"type":"BPE","unk_token":"?","vocab":{"a":0,"b":1," ":2,"?":3},"merges":[]}})");
    EXPECT_TRUE(loaded.ok()) << loaded.error().ToString();
    return !(*loaded)->EncodeWithin(text, 2, {}).ok();
  };
  const std::string spaces = "a" + std::string(1000, ' ');
  EXPECT_TRUE(refused("", spaces));
  EXPECT_FALSE(refused(R"("normalizer":{"type":"Replace","pattern":{"Regex":" +"},"content":" "},)",
                       spaces));
  EXPECT_FALSE(
      refused(R"("normalizer":{"type":"Strip","strip_left":true,"strip_right":true},)", spaces));
  EXPECT_FALSE(refused(R"("pre_tokenizer":{"type":"WhitespaceSplit"},)", spaces));
  // One token of many unknown characters.
  const auto fused = Tokenizer::FromJson(
      R"({"version":"1.0","model":{"type":"BPE","unk_token":"?","fuse_unk":true,)"
      R"("vocab":{"a":0,"?":1},"merges":[]}})");
  ASSERT_TRUE(fused.ok());
  const auto one = (*fused)->EncodeWithin(std::string(1000, 'z'), 2, {});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->size(), 1U);
}

template <typename Work>
bool Stops(const Work& work) {
  const std::atomic<bool> stop{true};
  const StopScope scope(&stop);
  try {
    work();
  } catch (const Stopped&) {
    return true;
  }
  return false;
}

TEST(StopTest, EveryTokenizerLooksAtTheFlag) {
  for (const Named& golden : Goldens()) {
    const std::string& name = golden.name;
    const Tokenizer* const tokenizer = golden.tokenizer.get();
    for (const std::string& text :
         {std::string(3000, ' '), std::string(3000, '7'), std::string(3000, 'x')}) {
      EXPECT_TRUE(Stops([&] { (void)tokenizer->Encode(text); })) << name;
      EXPECT_TRUE(Stops([&] { (void)tokenizer->EncodeWithin(text, 1 << 20); })) << name;
    }
    const std::vector<TokenId> tokens(3000, 0);
    EXPECT_TRUE(Stops([&] { (void)tokenizer->Decode(tokens); })) << name;
    // A text that is done in fewer steps does not look.
    EXPECT_FALSE(Stops([&] { (void)tokenizer->Encode("a"); })) << name;
  }
}

// Each loop by itself: 1,100 steps are too many for it.
TEST(StopTest, EveryLoopLooksAtTheFlag) {
  const std::string text(1100, 'a');
  std::vector<char32_t> units;
  EXPECT_TRUE(Stops([&] { DecodeUnits(text, units); }));
  units.assign(1100, U'a');
  std::vector<SplitRegex::Match> matches;
  EXPECT_TRUE(Stops([&] { SplitRegex::Compile("a+")->FindAll(units, matches); }));
  EXPECT_TRUE(Stops([&] { SplitRegex::Compile("a")->FindAll(units, matches); }));
  EXPECT_TRUE(Stops([&] { (void)NormalizeUnicode(text, NormalizationForm::kNfc); }));
  EXPECT_TRUE(Stops([&] { (void)LowercaseUnicode(text); }));
  AddedTokenMatcher matcher;
  matcher.Add({.id = 1, .content = "<s>", .form = "<s>"});
  std::vector<AddedTokenMatcher::Part> parts;
  EXPECT_TRUE(Stops([&] { matcher.Split(text, {}, parts); }));
  // A word of many characters: all merges of it.
  BpeInit init{.vocab = {{"a", 0}, {"aa", 1}, {"?", 2}}, .merges = {{"a", "a"}}, .unk_token = "?"};
  const auto model = BpeModel::Create(init);
  ASSERT_TRUE(model.ok());
  BpeModel::Scratch scratch;
  std::vector<TokenId> tokens;
  EXPECT_TRUE(Stops([&] { model->Encode(text, scratch, tokens); }));
  EXPECT_FALSE(Stops([&] { model->Encode("aaaa", scratch, tokens); }));
}

// A run of combining marks is one segment for normalizing.
TEST(StopTest, CombiningMarksAreNoExcuse) {
  std::string marks = "a";
  for (int i = 0; i < 1100; ++i) marks += "\xCC\x81";
  EXPECT_TRUE(Stops([&] { (void)NormalizeUnicode(marks, NormalizationForm::kNfc); }));
}

}  // namespace
}  // namespace pawl
