// Trained heads that draft: their logits and draft steps against those of an independent program
// (scripts/make_head_goldens.py), what they read after prefixes, trees and truncated sequences, and
// files that are damaged or of another model's head.
#include "src/model/draft_head.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "src/base/file.h"
#include "tests/model/head_test_util.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeads[] = {"eagle3", "eagle3-training", "eagle3-wide",
                                  "medusa", "medusa-blocks",   "hydra"};

TEST(DraftHeadTest, LogitsAndStepsAreThoseOfTheTwin) {
  for (const std::string name : kHeads) {
    const auto model = LoadWithHead(name);
    ASSERT_NE(model, nullptr);
    const bool eagle = name.starts_with("eagle3");
    EXPECT_EQ(model->info().draft_heads[0].name, eagle             ? "EAGLE-3"
                                                 : name == "hydra" ? "Hydra"
                                                                   : "Medusa");
    EXPECT_EQ(model->info().layers, 6);
    const auto file = SafetensorsFile::Open(HeadFolder(name) + "/golden.safetensors");
    ASSERT_TRUE(file.ok());
    for (const char* const length : {"2", "7", "40", "150"}) {
      const auto tokens = ReadTensor<int64_t>(*file, std::string("tokens.") + length);
      const auto expected = ReadTensor<float>(*file, std::string("logits.") + length);
      const auto guesses = ReadTensor<int64_t>(*file, std::string("guesses.") + length);
      const std::vector<TokenId> prompt(tokens.begin(), tokens.end() - 1);
      for (const int chunk : {1000, 3}) {
        const SequenceId sequence = MakeSequence(*model, 200);
        RunPrompt(*model, sequence, prompt, 0, chunk);
        const auto logits =
            DraftSteps(*model, sequence, static_cast<TokenId>(tokens.back()),
                       static_cast<int>(prompt.size()), static_cast<int>(guesses.size()));
        const size_t width = logits[0].size();
        for (size_t i = 0; i < logits.size(); ++i) {
          EXPECT_EQ(Argmax(logits[i]), guesses[i]) << name << ", " << length << ", step " << i;
          std::vector<float> own, golden;
          for (size_t t = 0; t < width; ++t) {
            const float value = expected[i * width + t];
            // Tokens that the head lacks.
            EXPECT_EQ(logits[i][t] <= kNoHeadLogit, value <= kNoHeadLogit);
            if (value <= kNoHeadLogit) continue;
            own.push_back(logits[i][t]);
            golden.push_back(value);
          }
          EXPECT_EQ(golden.size(), eagle && name != "eagle3-wide" ? 70u : 130u);
          EXPECT_LT(RelativeError(own, golden), 1e-4) << name << ", " << length << ", step " << i;
        }
        model->FreeSequence(sequence);
      }
    }
  }
}

TEST(DraftHeadTest, TheModelsOwnLogitsStayToTheBit) {
  std::mt19937 random(7);
  const auto plain = LoadGolden("heads/target");
  ASSERT_NE(plain, nullptr);
  const auto tokens = RandomTokens(random, 130, 150);
  const auto expected = RunChunk(*plain, MakeSequence(*plain, 200), 0, tokens);
  for (const char* const name : kHeads) {
    const auto model = LoadWithHead(name);
    ASSERT_NE(model, nullptr);
    EXPECT_TRUE(SameBits(RunChunk(*model, MakeSequence(*model, 200), 0, tokens), expected));
  }
}

// What a prefix, a tree, a fork or a step back leaves is what the tokens say.
TEST(DraftHeadTest, StatesAreThoseOfTheTokens) {
  std::mt19937 random(11);
  for (const char* const name : kHeads) {
    const auto model = LoadWithHead(name);
    ASSERT_NE(model, nullptr);
    const int steps =
        model->info().draft_heads[0].steps > 0 ? model->info().draft_heads[0].steps : 5;
    const auto tokens = RandomTokens(random, 130, 60);
    const std::span<const TokenId> all = tokens;
    const SequenceId first = MakeSequence(*model, 100);
    RunPrompt(*model, first, all.first(59));
    const auto expected = DraftSteps(*model, first, tokens[59], 59, steps);
    const auto expect_same = [&](SequenceId sequence, const char* what) {
      const auto logits = DraftSteps(*model, sequence, tokens[59], 59, steps);
      for (size_t i = 0; i < logits.size(); ++i) {
        EXPECT_TRUE(SameBits(logits[i], expected[i])) << name << ", " << what << ", step " << i;
      }
    };
    expect_same(first, "again");
    // Pages of another sequence.
    const SequenceId second = MakeSequence(*model, 100);
    const int reused = model->ReusePrefix(second, all.first(59));
    ASSERT_GE(reused, 48);
    RunPrompt(*model, second, all.first(59), reused);
    expect_same(second, "a prefix");
    // A step back, into a page that others have, and other tokens in between.
    const SequenceId third = MakeSequence(*model, 100);
    RunPrompt(*model, third, all.first(40));
    RunPrompt(*model, third, RandomTokens(random, 130, 59), 35);
    model->Truncate(third, 35);
    RunPrompt(*model, third, all.first(59), 35);
    expect_same(third, "a step back");
    // A tree: the last eight tokens in two branches of which the second is wrong.
    const SequenceId fourth = MakeSequence(*model, 100);
    RunPrompt(*model, fourth, all.first(50));
    CommitBranch(*model, fourth, tokens, 50, 9);
    expect_same(fourth, "a tree");
  }
}

TEST(DraftHeadTest, TheHeadIsInThePages) {
  ModelOptions options;
  options.kv_bytes = 1 << 20;
  auto model = *LoadModel(HeadFolder("target"), options);
  const KvMemory before = model->kv_memory();
  ASSERT_TRUE(AttachDraftHead(model, HeadFolder("eagle3")).ok());
  const KvMemory after = model->kv_memory();
  // A state of 32 floats, keys and values of one head of 12.
  const int64_t of_position = (32 + 2 * 12) * int64_t{sizeof(float)};
  EXPECT_EQ(after.page_bytes - before.page_bytes, of_position * before.page_positions);
  EXPECT_LE(after.pages * after.page_bytes, 1 << 20);
  EXPECT_GT((after.pages + 1) * after.page_bytes, 1 << 20);
}

TEST(DraftHeadTest, UnderAMaskTheWantedLogitsAreTheSame) {
  std::mt19937 random(13);
  const auto model = LoadWithHead("eagle3");
  ASSERT_NE(model, nullptr);
  const auto tokens = RandomTokens(random, 130, 20);
  const SequenceId sequence = MakeSequence(*model, 100);
  RunPrompt(*model, sequence, tokens);
  const auto all = DraftSteps(*model, sequence, 9, 20, 1)[0];
  for (int n = 0; n < 20; ++n) {
    const std::vector<uint32_t> words = {static_cast<uint32_t>(random() & random()),
                                         n % 3 == 0 ? 0 : static_cast<uint32_t>(random()), 0,
                                         static_cast<uint32_t>(random())};
    const Row row = {.token = 9, .position = 20, .sequence = sequence, .allowed = words};
    const auto some = AskHead(*model, {row}, nullptr, false);
    for (size_t t = 0; t < 128; ++t) {
      if ((words[t / 32] >> t % 32 & 1) != 0) {
        EXPECT_EQ(some[t], all[t]) << t;
      }
    }
  }
}

// Every token that `t2d` marks has one row of the head.
TEST(DraftHeadTest, OffsetsLeadThereAndBack) {
  const auto config = ReadTransformerConfig(HeadFolder("target"));
  ASSERT_TRUE(config.ok());
  const auto head = LoadDraftHead(HeadFolder("eagle3"), *config, 1);
  ASSERT_TRUE(head.ok()) << head.error().ToString();
  const auto file = SafetensorsFile::Open(HeadFolder("eagle3") + "/model.safetensors");
  const auto marked = ReadTensor<uint8_t>(*file, "t2d");
  ASSERT_EQ(head->targets.size(), 70u);
  std::vector<uint8_t> found(marked.size(), 0);
  for (const TokenId token : head->targets) ++found[static_cast<size_t>(token)];
  EXPECT_EQ(found, marked);
  EXPECT_TRUE(LoadDraftHead(HeadFolder("eagle3-wide"), *config, 1)->targets.empty());
}

TEST(DraftHeadTest, CallsOfAHeadAreChecked) {
  const auto model = LoadWithHead("eagle3");
  ASSERT_NE(model, nullptr);
  const SequenceId sequence = MakeSequence(*model, 100);
  std::vector<float> logits(130);
  const int layers[] = {6};
  Row row = {.token = 3, .position = 0, .sequence = sequence, .output = 0};
  ModelCall call;
  call.rows = {&row, 1};
  call.logits = logits;
  call.layers = layers;
  EXPECT_EQ(model->Run(call).error().place, "row 0");
  RunPrompt(*model, sequence, std::vector<TokenId>{3, 4});
  row.position = 2;
  EXPECT_TRUE(model->Run(call).ok());
  std::vector<float> few(31);
  call.inputs = few;
  EXPECT_EQ(model->Run(call).error().place, "inputs");
  call.inputs = {};
  const ModelTap tap[] = {{6, few}};
  call.taps = tap;
  EXPECT_EQ(model->Run(call).error().place, "taps");
  // Without a head there is no such layer.
  const auto plain = LoadGolden("heads/target");
  EXPECT_EQ(plain->Run(call).error().place, "layers");
}

// ---- Files ----

class HeadFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pawl-heads-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Copy(const std::string& head) {
    for (const char* const file : {"config.json", "model.safetensors"}) {
      fs::copy_file(HeadFolder(head) + "/" + file, folder_ + "/" + file,
                    fs::copy_options::overwrite_existing);
    }
  }
  void Change(const std::string& file, const std::function<void(std::string&)>& change) {
    std::string text = *ReadFile(folder_ + "/" + file);
    change(text);
    ASSERT_TRUE(WriteFile(folder_ + "/" + file, text).ok());
  }
  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    Change(file, [&](std::string& text) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    });
  }
  std::string Refused() {
    std::unique_ptr<Model> model = LoadGolden("heads/target");
    const Status status = AttachDraftHead(model, folder_);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(model, nullptr);
    if (status.ok()) return "";
    std::string text = status.error().ToString();
    for (size_t at; (at = text.find(folder_)) != std::string::npos;)
      text.replace(at, folder_.size(), "D");
    return text;
  }

  std::string folder_;
};

TEST_F(HeadFilesTest, HeadsOfOtherModels) {
  const struct {
    const char *head, *from, *to, *error;
  } cases[] = {
      {"eagle3", "\"hidden_size\": 32", "\"hidden_size\": 64",
       "D/config.json#/hidden_size: is 64, but the model's is 32: the head is for another model"},
      {"eagle3", "\"vocab_size\": 130", "\"vocab_size\": 128",
       "D/config.json#/vocab_size: is 128, but the model's is 130: the head is for another model"},
      {"eagle3-training", "      5\n", "      11\n", "is layer 11, but the model has 6 layers"},
      {"eagle3", "\"draft_vocab_size\": 70", "\"draft_vocab_size\": 131",
       "is 131, but the model has 130 tokens"},
      {"eagle3", "\"draft_vocab_size\": 70", "\"draft_vocab_size\": 71",
       "tensor \"lm_head.weight\": has shape [70, 32]; expected [71, 32]"},
      {"eagle3", "\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2", "must be 1"},
      {"eagle3", "\"intermediate_size\": 48", "\"intermediate_size\": 47",
       "has shape [48, 32]; expected [47, 32]"},
      {"eagle3", "\"num_attention_heads\": 4", "\"num_attention_heads\": 0", "from 1 to"},
      {"eagle3", "\"silu\"", "\"gelu\"", "gelu"},
      {"medusa", "\"medusa_num_heads\": 3", "\"medusa_num_heads\": 4",
       "tensor \"3.0.linear.weight\": is missing"},
      {"medusa", "\"medusa_num_heads\": 3", "\"medusa_num_heads\": 99", "from 1 to 16, not 99"},
      {"hydra", "\"hydra_num_heads\": 3", "\"hydra_num_heads\": 4",
       "tensor \"hydra_mlp.3.1.res_connection.weight\": is missing"},
      {"hydra", "\"grounded_heads\": true", "\"grounded_heads\": false", "is false"},
      {"hydra", "\"grounded_heads\": true", "\"hydra_head_arch\": \"mlp\"", "expected prefix-mlp"},
      {"medusa-blocks", "\"vocab_size\": 130", "\"vocab_size\": 131",
       "D/config.json#/vocab_size: is 131, but the model's is 130: the head is for another model"},
      {"medusa", "\"medusa_num_layers\": 1", "\"medusa_num_layers\": 2",
       "tensor \"0.1.linear.weight\": is missing"},
  };
  for (const auto& c : cases) {
    Copy(c.head);
    if (std::string(c.head) == "eagle3-training") {
      Change("config.json", [](std::string& text) {
        text = text.substr(0, text.find("\"eagle_config\"")) +
               "\"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": [0, 3,\n      5\n]}, "
               "\"norm_before_residual\": true}";
      });
    }
    Replace("config.json", c.from, c.to);
    EXPECT_NE(Refused().find(c.error), std::string::npos) << Refused() << "\n" << c.error;
  }
}

TEST_F(HeadFilesTest, DamagedFiles) {
  // An offset out of the vocabulary, and one to a token that another row has.
  const std::string file = "model.safetensors";
  Copy("eagle3");
  const auto head = SafetensorsFile::Open(folder_ + "/" + file);
  ASSERT_TRUE(head.ok());
  const std::string stored = *ReadFile(folder_ + "/" + file);
  const TensorView* const offsets = head->Find("d2t");
  ASSERT_NE(offsets, nullptr);
  const size_t at = stored.find(std::string(reinterpret_cast<const char*>(offsets->data),
                                            static_cast<size_t>(offsets->bytes)));
  ASSERT_NE(at, std::string::npos);
  const auto set = [&](size_t row, int64_t offset) {
    Change(file, [&](std::string& text) {
      text = stored;
      std::memcpy(text.data() + at + row * sizeof offset, &offset, sizeof offset);
    });
  };
  for (const int64_t offset : {int64_t{-8}, int64_t{123}, INT64_MAX, INT64_MIN}) {
    set(7, offset);
    EXPECT_NE(Refused().find("D/model.safetensors: tensor \"d2t\": token 7 has the offset " +
                             std::to_string(offset) + ", which leads out of the vocabulary of 130"),
              std::string::npos)
        << Refused();
  }
  int64_t before = 0;
  std::memcpy(&before, stored.data() + at + 6 * sizeof before, sizeof before);
  set(7, before - 1);
  EXPECT_NE(Refused().find("which leads to a token that another one has"), std::string::npos);
  // A tensor that is missing, one of another type, a file that ends early, and one that is none.
  for (const char* const name : {"fc.weight", "midlayer.hidden_norm.weight", "norm.weight",
                                 "midlayer.self_attn.q_proj.weight", "d2t"}) {
    Copy("eagle3");
    std::string other = name;
    other[0] = 'X';
    Replace(file, std::string("\"") + name, "\"" + other);
    EXPECT_NE(Refused().find(std::string("\"") + name + "\": is missing"), std::string::npos)
        << Refused();
  }
  Copy("eagle3");
  Replace(file, "\"I64\"", "\"F64\"");
  EXPECT_NE(Refused().find("tensor \"d2t\": is F64 [70]; expected I64 [70]"), std::string::npos)
      << Refused();
  Copy("medusa");
  Change(file, [](std::string& text) { text.resize(text.size() / 2); });
  EXPECT_NE(Refused().find("D/model.safetensors"), std::string::npos) << Refused();
  fs::remove(folder_ + "/" + file);
  EXPECT_NE(Refused().find("D"), std::string::npos);
  ASSERT_TRUE(WriteFile(folder_ + "/medusa_lm_head.pt", "PK").ok());
  EXPECT_NE(Refused().find("D/medusa_lm_head.pt: is in PyTorch's format"), std::string::npos);
  ASSERT_TRUE(WriteFile(folder_ + "/config.json", "{").ok());
  EXPECT_FALSE(IsDraftHead(folder_));
  EXPECT_NE(Refused().find("D/config.json"), std::string::npos);
}

TEST_F(HeadFilesTest, WhatIsAHeadAndForWhat) {
  for (const char* const name : kHeads) EXPECT_TRUE(IsDraftHead(HeadFolder(name))) << name;
  EXPECT_FALSE(IsDraftHead(HeadFolder("target")));
  EXPECT_FALSE(IsDraftHead(folder_));
  Copy("medusa");
  std::unique_ptr<Model> model = LoadGolden("diffusion/llada");
  const Status status = AttachDraftHead(model, folder_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().place, folder_);
  EXPECT_NE(model, nullptr);
}

}  // namespace
}  // namespace pawl
