// Loading (good files, hostile files, the files next to them), special tokens, bytes that are not
// UTF-8.
#include "src/text/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/text/token_decoder.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

std::string Golden(const std::string& name) {
  const auto text = ReadFile(SourceDir() + "/tests/data/tokenizers/" + name + ".tokenizer.json");
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : "";
}

// A tokenizer over a, b, c, ab with `extra` members, which may replace the defaults.
std::string Small(const std::string& extra, const std::string& model_extra = "") {
  return R"({"version": "1.0", )" + (extra.empty() ? "" : extra + ", ") +
         R"("model": {"type": "BPE", )" + (model_extra.empty() ? "" : model_extra + ", ") +
         R"("vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, " ": 4, "<s>": 5}, "merges": ["a b"]}})";
}

std::string LoadError(const std::string& json) {
  const auto loaded = Tokenizer::FromJson(json);
  return loaded.ok() ? "none" : loaded.error().ToString();
}

std::vector<TokenId> Encode(const std::string& json, std::string_view text,
                            const EncodeOptions& options = {}) {
  const auto loaded = Tokenizer::FromJson(json);
  EXPECT_TRUE(loaded.ok()) << loaded.error().ToString();
  return loaded.ok() ? (*loaded)->Encode(text, options) : std::vector<TokenId>{};
}

TEST(TokenizerTest, Small) {
  const auto loaded = Tokenizer::FromJson(Small(""));
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  const Tokenizer& tokenizer = **loaded;
  EXPECT_EQ(tokenizer.size(), 6);
  EXPECT_EQ(tokenizer.Encode("cab a"), (std::vector<TokenId>{2, 3, 4, 0}));
  EXPECT_EQ(tokenizer.Decode(std::vector<TokenId>{2, 3}),
            "c ab");  // no decoder: joined with spaces
  EXPECT_EQ(tokenizer.IdOf("ab"), 3);
  EXPECT_EQ(tokenizer.IdOf("ba"), kNoToken);
  EXPECT_EQ(tokenizer.NameOf(3), "ab");
  EXPECT_EQ(tokenizer.NameOf(-1), "");
  EXPECT_EQ(tokenizer.NameOf(6), "");
  EXPECT_EQ(tokenizer.Decode(std::vector<TokenId>{-5, 99, 0}), "a");
  EXPECT_EQ(tokenizer.bos(), kNoToken);
  EXPECT_TRUE(tokenizer.end_tokens().empty());
}

TEST(TokenizerTest, UnsupportedIsNamedByJsonPointer) {
  const std::pair<std::string, std::string> kCases[] = {
      {R"("normalizer": {"type": "Nmt"})", "#/normalizer/type: normalizer \"Nmt\""},
      {R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Precompiled"}]})",
       "#/normalizer/normalizers/1/type: normalizer \"Precompiled\""},
      {R"("normalizer": {"type": "NFC", "fast": true})",
       "#/normalizer/fast: unknown member; known are type"},
      {R"("normalizer": {"type": "Prepend"})",
       "#/normalizer/prepend: is missing, must be a string"},
      {R"j("normalizer": {"type": "Replace", "pattern": {"Regex": "a(?<=b)"}, "content": ""})j",
       "#/normalizer/pattern/Regex: in the pattern, byte 1: a group of this kind"},
      {R"("normalizer": 7)", "#/normalizer/type: is missing, must be a string"},
      {R"("pre_tokenizer": {"type": "Odd"})", "#/pre_tokenizer/type: pre-tokenizer \"Odd\""},
      {R"("pre_tokenizer": {"type": "FixedLength", "length": 0})",
       "#/pre_tokenizer/length: must be a whole number from 1 to 100000, not 0"},
      {R"("pre_tokenizer": {"type": "FixedLength", "length": 100001})",
       "#/pre_tokenizer/length: must be a whole number from 1 to 100000, not 100001"},
      {R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [
           {"type": "ByteLevel", "add_prefix_space": false}, {"type": "Metaspace", "replacement": "_"}]})",
       "#/pre_tokenizer/pretokenizers/1/type: pre-tokenizer \"Metaspace\" after ByteLevel"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "Odd", "invert": false})",
       "#/pre_tokenizer/behavior: behavior \"Odd\""},
      {R"("decoder": {"type": "CTC"})", "#/decoder/type: decoder \"CTC\""},
      {R"("decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})",
       "#/decoder/decoders/1/type: decoder \"ByteFallback\" on the joined text"},
      {R"("decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"},
           {"type": "Strip", "content": " ", "start": 0, "stop": 1}]})",
       "#/decoder/decoders/1/stop: cutting the end of the whole text"},
      {R"("post_processor": {"type": "Odd"})", "#/post_processor/type: post-processor \"Odd\""},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B"}}]})",
       "#/post_processor/single/0/Sequence: a second text"},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}},
           {"SpecialToken": {"id": "x"}}], "special_tokens": {"x": {"ids": [77]}}})",
       "#/post_processor: there is no token 77"},
      {R"("truncation": {"max_length": 3})", "#/truncation: truncation"},
      {R"("padding": {"strategy": {"Fixed": 8}})",
       "#/padding/strategy: must be a string, not object"},
      {R"("surprise": 1)",
       "#/surprise: unknown member; known are version, truncation, padding, added_tokens, "
       "normalizer, pre_tokenizer, post_processor, decoder, model"},
      {R"("added_tokens": {})", "#/added_tokens: must be an array, not object"},
      {R"("added_tokens": [{"id": 0, "content": "z"}])",
       "#/added_tokens/0: the vocabulary has another id for it, or another token for its id"},
      {R"("added_tokens": [{"id": 9, "content": "a"}])",
       "#/added_tokens/0: the vocabulary has another id for it, or another token for its id"},
      {R"("added_tokens": [{"id": 9, "content": "x"}, {"id": 9, "content": "y"}])",
       "#/added_tokens/1: its id is used twice"},
      {R"("added_tokens": [{"id": 9, "content": "x"}, {"id": 10, "content": "x"}])",
       "#/added_tokens: \"x\" is there twice"},
      {R"("added_tokens": [{"id": 9, "content": ""}])",
       "#/added_tokens/0/content: must not be empty"},
      {R"("added_tokens": [{"id": 16000000, "content": "x"}])",
       "#/added_tokens/0: token id out of range"},
      {R"("added_tokens": [{"id": 99999999999, "content": "x"}])",
       "#/added_tokens/0/id: must be a whole number from 0 to 16777215, not 99999999999"},
      {R"("added_tokens": [{"id": 1.5, "content": "x"}])",
       "#/added_tokens/0/id: must be a whole number from 0 to 16777215, not 1.5"},
  };
  for (const auto& [extra, message] : kCases) EXPECT_EQ(LoadError(Small(extra)), message) << extra;

  const std::pair<std::string, std::string> kModels[] = {
      {R"("dropout": 0.1)", "#/model/dropout: dropout"},
      {R"("end_of_word_suffix": "</w>")", "#/model/end_of_word_suffix: marks inside words"},
      {R"("unk_token": "nope")", "#/model/unk_token: the unknown token is not in the vocabulary"},
      {R"("fuse_unk": 1)", "#/model/fuse_unk: must be true or false, not number"},
      {R"("odd": 1)",
       "#/model/odd: unknown member; known are type, dropout, unk_token, "
       "continuing_subword_prefix, end_of_word_suffix, fuse_unk, byte_fallback, ignore_merges, "
       "vocab, merges"},
  };
  for (const auto& [extra, message] : kModels)
    EXPECT_EQ(LoadError(Small("", extra)), message) << extra;
}

TEST(TokenizerTest, HostileModels) {
  const std::pair<std::string, std::string> kCases[] = {
      {"", "is empty; expected a tokenizer.json"},
      {"[]", "#: must be an object, not array"},
      {"{}", "#/model: is missing, must be an object"},
      {R"({"model": {"type": "WordPiece", "vocab": {}}})", "#/model/type: model \"WordPiece\""},
      {R"({"model": {"type": "BPE", "vocab": [], "merges": []}})",
       "#/model/vocab: must be an object"},
      {R"({"model": {"type": "BPE", "vocab": {"a": "0"}, "merges": []}})",
       "#/model/vocab/a: must be a token id"},
      {R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})",
       "#/model/vocab/a: must be a token id"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 1e3}, "merges": []}})",
       "#/model/vocab/a: must be a token id"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}})",
       "#/model/vocab/a: must be a token id"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 16000000}, "merges": []}})",
       "#/model/vocab/a: token id 16000000 is out of range"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}})", "duplicate key"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}})",
       "#/model/vocab/b: token id 0 is used twice"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}})",
       "#/model/merges/0: must be two tokens"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]}})",
       "#/model/merges/0: must be two tokens"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}})",
       "#/model/merges/0: must be two tokens"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", 1]]}})",
       "#/model/merges/0: must be two tokens"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}})",
       "#/model/merges/0: \"aa\" is not in the vocabulary"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0, "": 1}, "merges": [["", "a"]]}})",
       "#/model/merges/0: a merge with an empty side"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}}})",
       "#/model/merges: is missing, must be an array"},
  };
  for (const auto& [json, message] : kCases) {
    EXPECT_NE(LoadError(json).find(message), std::string::npos) << json << "\n" << LoadError(json);
  }
  std::string deep = R"({"type": "NFC"})";
  for (int i = 0; i < 100; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
  EXPECT_NE(LoadError(Small("\"normalizer\": " + deep)).find("nested too deeply"),
            std::string::npos);
}

// Every truncation and thousands of small mutations either load or say why not; what loads must
// work.
TEST(TokenizerTest, MutatedFiles) {
  std::mt19937 random(23);
  for (const char* name : {"llama2", "flags", "metaspace_first", "qwen2"}) {
    const std::string good = Golden(name);
    for (size_t cut = 0; cut < good.size(); cut += 97) {
      EXPECT_FALSE(Tokenizer::FromJson(good.substr(0, cut)).ok());
    }
    int loaded = 0;
    for (int round = 0; round < 400; ++round) {
      std::string bad = good;
      for (int k = 1 + static_cast<int>(random() % 3); k > 0; --k) {
        // Half of the changes in the first part, where the settings are.
        const size_t at = random() % (round % 2 ? bad.size() : std::min<size_t>(bad.size(), 2500));
        switch (random() % 5) {
          case 0:
            bad[at] = static_cast<char>(random() % 128);
            break;
          case 1:
            bad.erase(at, 1 + random() % 8);
            break;
          case 2:
            bad.insert(at, bad.substr(random() % bad.size(), random() % 20));
            break;
          case 3:
            bad[at] = static_cast<char>("0123456789{}[]\",:truefalsn"[random() % 26]);
            break;
          case 4:  // a setting the other way round
            if (const size_t word = bad.find("false", at); word != std::string::npos)
              bad.replace(word, 5, "true");
            break;
        }
      }
      const auto tokenizer = Tokenizer::FromJson(bad);
      if (!tokenizer.ok()) {
        EXPECT_FALSE(tokenizer.error().message.empty());
        continue;
      }
      ++loaded;
      const std::vector<TokenId> ids =
          (*tokenizer)
              ->Encode("The <s>\xFF end\n\n 12é",
                       {.add_special_tokens = true, .parse_special = true});
      for (const TokenId id : ids) EXPECT_TRUE(id >= 0 && id < (*tokenizer)->size());
      (*tokenizer)->Decode(ids, true);
    }
    EXPECT_GT(loaded, 5) << "mutations that all fail test only the JSON parser";
  }
}

TEST(TokenizerTest, AnyBytesComeBack) {
  std::mt19937 random(29);
  for (const char* name : {"gpt2", "llama3", "tekken", "digits", "bytes", "llama2", "gemma"}) {
    const auto tokenizer = Tokenizer::FromJson(Golden(name));
    ASSERT_TRUE(tokenizer.ok());
    for (int round = 0; round < 400; ++round) {
      std::string bytes;
      for (size_t n = random() % 80; n > 0; --n) {
        bytes.push_back(
            static_cast<char>(random() % 3 ? random() % 256 : "aeé ĉ\n\r t12"[random() % 13]));
      }
      // These two write spaces as U+2581, so that one comes back as a space.
      const bool sentencepiece = name == std::string("llama2") || name == std::string("gemma");
      if (sentencepiece && bytes.find("\xE2\x96\x81") != std::string::npos) continue;
      const auto ids = (*tokenizer)->Encode(bytes);
      EXPECT_EQ((*tokenizer)->Decode(ids), bytes) << name;
      StreamDecoder stream(**tokenizer);
      std::string streamed;
      for (const TokenId id : ids) streamed += stream.Feed(id);
      EXPECT_EQ(streamed + stream.Finish(), bytes) << name;
    }
  }
}

// Time is near linear in the text, whatever it is made of: a quadratic step would take minutes
// here.
TEST(TokenizerTest, LongTexts) {
  for (const char* name : {"gpt2", "llama3", "tekken", "cased", "llama2", "gemma",
                           "metaspace_always", "qwen2", "flags"}) {
    const auto tokenizer = Tokenizer::FromJson(Golden(name));
    ASSERT_TRUE(tokenizer.ok());
    for (const char* unit :
         {"a", " ", "\n", " a", "é", "語", "e\u0301", "=", "1", "\xFF", "\n ", "raw"}) {
      std::string text;
      while (text.size() < 100'000) text += unit;
      EXPECT_FALSE((*tokenizer)->Encode(text).empty() && text[0] != ' ' && text[0] != '\n') << name;
    }
  }
}

TEST(TokenizerTest, StreamHoldsBackPartsOfCodePoints) {
  const auto tokenizer = Tokenizer::FromJson(Golden("bytes"));  // one token for each byte
  ASSERT_TRUE(tokenizer.ok());
  StreamDecoder stream(**tokenizer);
  std::vector<std::string> pieces;
  for (const TokenId id : (*tokenizer)->Encode("aé👍")) pieces.push_back(stream.Feed(id));
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "é", "", "", "", "👍"}));
  for (const TokenId id : (*tokenizer)->Encode("\xF0\x9F")) EXPECT_EQ(stream.Feed(id), "");
  EXPECT_EQ(stream.Finish(), "\xF0\x9F");
}

TEST(TokenizerTest, StreamKeepsTheLeadingSpaceRule) {
  const auto tokenizer = Tokenizer::FromJson(Golden("llama2"));
  ASSERT_TRUE(tokenizer.ok());
  StreamDecoder stream(**tokenizer);
  std::vector<TokenId> ids = {(*tokenizer)->IdOf("<s>")};
  for (const TokenId id : (*tokenizer)->Encode("  x")) ids.push_back(id);
  std::string out;
  for (const TokenId id : ids) out += stream.Feed(id);
  EXPECT_EQ(out, "  x");
  EXPECT_EQ((*tokenizer)->Decode(ids), "  x");
  EXPECT_EQ((*tokenizer)->Decode(ids, true), "<s>   x");
}

TEST(TokenizerTest, VocabularyMarksWhatTextCannotBe) {
  const std::string json = Small(R"("added_tokens": [{"id": 5, "content": "<s>", "special": true},
      {"id": 8, "content": "<x>"}], "decoder": {"type": "Fuse"})");
  const auto tokenizer = Tokenizer::FromJson(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().ToString();
  ASSERT_EQ((*tokenizer)->size(), 9);
  const auto vocabulary = (*tokenizer)->MakeVocabulary(12);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().ToString();
  EXPECT_EQ((*vocabulary)->size(), 12);
  std::vector<TokenId> text;
  for (TokenId id = 0; id < 12; ++id) {
    if (!(*vocabulary)->is_special(id)) text.push_back(id);
  }
  EXPECT_EQ(text, (std::vector<TokenId>{0, 1, 2, 3, 4, 8}));
  EXPECT_EQ((*vocabulary)->bytes(8), "<x>");
  EXPECT_FALSE((*tokenizer)->MakeVocabulary(8).ok());
}

TEST(TokenizerTest, SpecialTokensOnlyWhenAsked) {
  const std::string json =
      Small(R"("added_tokens": [{"id": 5, "content": "<s>", "special": true}])",
            R"("byte_fallback": false)");
  EXPECT_EQ(Encode(json, "a<s>a"), (std::vector<TokenId>{0, 0}));
  EXPECT_EQ(Encode(json, "a<s>a", {.parse_special = true}), (std::vector<TokenId>{0, 5, 0}));
  // Neither as a whole word nor by merging.
  const std::string sly =
      R"({"added_tokens": [{"id": 2, "content": "ab", "special": true}], "model": {"type": "BPE",
      "ignore_merges": true, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";
  EXPECT_EQ(Encode(sly, "ab"), (std::vector<TokenId>{0, 1}));
  EXPECT_EQ(Encode(sly, "ab", {.parse_special = true}), (std::vector<TokenId>{2}));
}

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("pawl_tokenizer_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("tokenizer.json", Small(R"("added_tokens": [{"id": 5, "content": "<s>", "special": true},
        {"id": 6, "content": "<end>", "special": false}, {"id": 7, "content": "<eot>", "special": true}])"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile((folder_ / name).string(), text).ok());
  }
  std::shared_ptr<const Tokenizer> Load() {
    auto loaded = Tokenizer::FromFile(folder_.string());
    EXPECT_TRUE(loaded.ok()) << loaded.error().ToString();
    return loaded.ok() ? *loaded : nullptr;
  }
  std::string Error() {
    const auto loaded = Tokenizer::FromFile(folder_.string());
    if (loaded.ok()) return "none";
    std::string message = loaded.error().ToString();
    const size_t at = message.find(folder_.string());
    return at == std::string::npos ? message : message.replace(at, folder_.string().size(), "DIR");
  }
  std::filesystem::path folder_;
};

TEST_F(FolderTest, BosAndEndTokens) {
  EXPECT_EQ(Load()->bos(), kNoToken);
  Write("config.json", R"({"bos_token_id": 1, "eos_token_id": 2})");
  EXPECT_EQ(Load()->bos(), 1);
  EXPECT_EQ(Load()->end_tokens()[0], 2);
  Write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": {"content": "<end>"}, "pad_token": null})");
  auto tokenizer = Load();
  EXPECT_EQ(tokenizer->bos(), 5);
  EXPECT_EQ(std::vector<TokenId>(tokenizer->end_tokens().begin(), tokenizer->end_tokens().end()),
            std::vector<TokenId>{6});
  // Named as the end of text, it is special although tokenizer.json does not say so.
  EXPECT_TRUE(tokenizer->Encode("<end>").empty());
  EXPECT_EQ(tokenizer->Encode("<end>", {.parse_special = true}), std::vector<TokenId>{6});
  EXPECT_TRUE((*tokenizer->MakeVocabulary())->is_end(6));
  Write("generation_config.json", R"({"eos_token_id": [7, 6]})");
  tokenizer = Load();
  EXPECT_EQ(std::vector<TokenId>(tokenizer->end_tokens().begin(), tokenizer->end_tokens().end()),
            (std::vector<TokenId>{6, 7}));
  Write("generation_config.json", R"({"eos_token_id": 7})");
  tokenizer = Load();
  EXPECT_EQ(tokenizer->end_tokens().size(), 2u);
}

TEST_F(FolderTest, NullMeansNoBos) {
  Write("generation_config.json", R"({"bos_token_id": 1})");
  EXPECT_EQ(Load()->bos(), 1);
  Write("tokenizer_config.json", R"({"bos_token": null})");
  EXPECT_EQ(Load()->bos(), kNoToken);
}

// Python writes it; one function reads the settings of a model for all.
TEST_F(FolderTest, InfinityInConfigJson) {
  Write("config.json", R"({"time_step_limit": [0.0, Infinity], "bos_token_id": 1})");
  EXPECT_EQ(Load()->bos(), 1);
}

TEST_F(FolderTest, Errors) {
  Write("tokenizer_config.json", R"({"eos_token": "<nope>"})");
  EXPECT_EQ(Error(), "DIR/tokenizer_config.json#/eos_token: no token of tokenizer.json");
  Write("tokenizer_config.json", R"({"eos_token": 3})");
  EXPECT_EQ(Error(), "DIR/tokenizer_config.json#/eos_token: must be a string, not number");
  Write("tokenizer_config.json", "{}");
  Write("generation_config.json", R"({"eos_token_id": [1, 99]})");
  EXPECT_EQ(Error(), "DIR/generation_config.json#/eos_token_id/1: no token of tokenizer.json");
  Write("generation_config.json", "{");
  EXPECT_EQ(Error().substr(0, 41), "DIR/generation_config.json: 1:2 (byte 1):");
  Write("generation_config.json", "{}");
  Write("tokenizer.json", Small("\"normalizer\": 3"));
  EXPECT_EQ(Error(), "DIR/tokenizer.json#/normalizer/type: is missing, must be a string");
  std::filesystem::remove(folder_ / "tokenizer.json");
  const auto missing = Tokenizer::FromFile(folder_.string());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

// The files of real models, where PAWL_DATA_DIR names a folder that has them; their encodings are
// compared with the reference by scripts/check_tokenizers.py.
TEST(TokenizerTest, RealFiles) {
  const char* folder = std::getenv("PAWL_DATA_DIR");
  if (folder == nullptr) GTEST_SKIP() << "PAWL_DATA_DIR is not set";
  const std::pair<const char*, int> kSizes[] = {{"gpt2", 50257},     {"llama3_1", 128256},
                                                {"qwen2_5", 151665}, {"llama2", 32000},
                                                {"gemma2", 256000},  {"mistral_nemo", 131072}};
  for (const auto& [name, size] : kSizes) {
    const auto tokenizer = Tokenizer::FromFile(std::string(folder) + "/tokenizers/" + name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().ToString();
    EXPECT_EQ((*tokenizer)->size(), size) << name;
    EXPECT_FALSE((*tokenizer)->end_tokens().empty()) << name;
    const auto vocabulary = (*tokenizer)->MakeVocabulary(size + 64);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().ToString();
    const std::string text = "{\"name\": \"Zoë\", \"n\": [1, 2.5e3]}\n";
    std::string joined;
    for (const TokenId id : (*tokenizer)->Encode(text)) joined += (*vocabulary)->bytes(id);
    EXPECT_TRUE(joined == text || joined == " " + text) << name << ": " << joined;
  }
}

}  // namespace
}  // namespace pawl
