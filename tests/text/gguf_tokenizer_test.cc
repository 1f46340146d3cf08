// A vocabulary as a GGUF file has it gives the ids that its tokenizer.json gives.
#include "src/text/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

const std::string kTokenizerFolder = SourceDir() + "/tests/data/tokenizers/";

json::Value LoadJson(const std::string& name) {
  return *json::Parse(*ReadFile(kTokenizerFolder + name));
}

// What a converter makes of a tokenizer.json.
struct Converted {
  json::Value root;
  std::deque<std::string> joined;
  GgufVocabulary vocabulary;
};

void Convert(const std::string& name, const std::string& model, const std::string& pre,
             Converted& out) {
  out.root = LoadJson(name + ".tokenizer.json");
  GgufVocabulary& v = out.vocabulary;
  v.path = "F";
  v.model = model;
  v.pre = pre;
  const auto put = [&](const std::string& token, const std::string& id, int64_t type) {
    const auto i = static_cast<size_t>(std::stoul(id));
    if (v.tokens.size() <= i) {
      v.tokens.resize(i + 1);
      v.types.resize(i + 1, 1);
    }
    v.tokens[i] = token;
    v.types[i] = type;
  };
  const json::Value* bpe = out.root.Find("model");
  for (const auto& [token, id] : bpe->Find("vocab")->members) {
    put(token, id.text, token.starts_with("<0x") && token.size() == 6 ? 6 : 1);
  }
  for (const json::Value& added : out.root.Find("added_tokens")->items) {
    const std::string& content = added.Find("content")->text;
    const bool special = added.Find("special")->type == json::Type::kTrue;
    put(content, added.Find("id")->text, content == "<unk>" ? 2 : special ? 3 : 4);
    if (content == "<unk>") v.unknown = std::stoi(added.Find("id")->text);
  }
  v.scores.resize(v.tokens.size(), -1e6f);
  float rank = 0;
  for (const json::Value& merge : bpe->Find("merges")->items) {
    const bool list = merge.type == json::Type::kArray;
    const size_t space = list ? 0 : merge.text.find(' ');
    const std::string left = list ? merge.items[0].text : merge.text.substr(0, space);
    const std::string right = list ? merge.items[1].text : merge.text.substr(space + 1);
    v.merges.push_back(out.joined.emplace_back(left + " " + right));
    const auto whole = std::find(v.tokens.begin(), v.tokens.end(), left + right);
    float& score = v.scores[static_cast<size_t>(whole - v.tokens.begin())];
    if (score == -1e6f) score = -rank;
    ++rank;
  }
}

struct Case {
  const char *name, *model, *pre;
  bool space_prefix;
};

class GgufTokenizerTest : public testing::TestWithParam<Case> {};

TEST_P(GgufTokenizerTest, GivesTheIdsOfItsTokenizerJson) {
  Converted converted;
  Convert(GetParam().name, GetParam().model, GetParam().pre, converted);
  converted.vocabulary.add_space_prefix = GetParam().space_prefix;
  const auto tokenizer = MakeGgufTokenizer(converted.vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().ToString();
  const auto expected = Tokenizer::FromFile(kTokenizerFolder + GetParam().name + ".tokenizer.json");
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ((*tokenizer)->size(), (*expected)->size());
  // What a GGUF file does not tell: tokens looked for after normalizing, and pieces without merges.
  std::vector<TokenId> untold;
  for (const json::Value& added : converted.root.Find("added_tokens")->items) {
    if (added.Find("normalized")->type == json::Type::kTrue) {
      untold.push_back(std::stoi(added.Find("id")->text));
    }
  }
  size_t tokens = 0;
  for (const json::Value& text : LoadJson("strings.json").items) {
    const std::vector<TokenId> ids = (*expected)->Encode(text.text);
    const auto has = [&](TokenId id) { return std::count(ids.begin(), ids.end(), id) > 0; };
    if (std::any_of(untold.begin(), untold.end(), has)) continue;
    const std::vector<TokenId> got = (*tokenizer)->Encode(text.text);
    if (GetParam().name == std::string("gemma") &&
        std::count(got.begin(), got.end(), (*tokenizer)->IdOf("\u2581\u2581\u2581\u2581")) > 0) {
      continue;
    }
    EXPECT_EQ(got, ids) << text.text;
    EXPECT_EQ((*tokenizer)->Decode(ids), (*expected)->Decode(ids)) << text.text;
    const EncodeOptions special{.parse_special = true};
    EXPECT_EQ((*tokenizer)->Encode(text.text, special), (*expected)->Encode(text.text, special));
    tokens += ids.size();
  }
  EXPECT_GT(tokens, 1000u);
}

INSTANTIATE_TEST_SUITE_P(
    All, GgufTokenizerTest,
    testing::Values(Case{"llama2", "llama", "default", true}, Case{"gemma", "llama", "", false},
                    Case{"gpt2", "gpt2", "gpt-2", true}, Case{"llama3", "gpt2", "llama-bpe", true},
                    Case{"qwen2", "gpt2", "qwen2", true}, Case{"tekken", "gpt2", "tekken", true}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(GgufTokenizerErrorsTest, AreNamed) {
  const auto refused = [](const std::function<void(GgufVocabulary&)>& change,
                          const std::string& place, const std::string& part) {
    Converted converted;
    Convert("llama2", "llama", "default", converted);
    change(converted.vocabulary);
    const auto made = MakeGgufTokenizer(converted.vocabulary);
    ASSERT_FALSE(made.ok()) << part;
    EXPECT_EQ(made.error().place, place) << made.error().message;
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  };
  refused([](GgufVocabulary& v) { v.model = "bert"; }, "F: tokenizer.ggml.model",
          "is \"bert\" (WordPiece, of encoders); expected gpt2, llama or gemma4");
  refused([](GgufVocabulary& v) { v.scores.clear(); }, "F: tokenizer.ggml.scores", "is missing");
  refused([](GgufVocabulary& v) { v.tokens[7] = "\xff"; }, "F: tokenizer.ggml.tokens",
          "entry 7 is not UTF-8");
  refused(
      [](GgufVocabulary& v) {
        v.model = "gpt2";
        v.pre = "nova";
      },
      "F: tokenizer.ggml.pre", "is \"nova\", which is not known here");
}

TEST(GgufTokenizerEndsTest, BeginAndEnd) {
  Converted converted;
  Convert("llama2", "llama", "default", converted);
  converted.vocabulary.bos = 1;
  converted.vocabulary.end_tokens = {2, 3};
  converted.vocabulary.add_bos = true;
  const auto made = MakeGgufTokenizer(converted.vocabulary);
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  EXPECT_EQ((*made)->bos(), 1);
  EXPECT_EQ(std::vector<TokenId>((*made)->end_tokens().begin(), (*made)->end_tokens().end()),
            (std::vector<TokenId>{2, 3}));
  EXPECT_EQ((*made)->Encode("a", {.add_special_tokens = true}).front(), 1);
}

}  // namespace
}  // namespace pawl
