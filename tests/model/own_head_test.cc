// Blocks of a model's own files that guess several tokens, against an independent program
// (scripts/make_mtp_goldens.py), and several heads of one model.
#include <gtest/gtest.h>

#include <filesystem>

#include "src/base/file.h"
#include "src/model/draft_head.h"
#include "tests/model/head_test_util.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnBlocks[] = {
    "mtp/qwen3_5",       "mtp/qwen3_5/model.gguf",       "mtp/qwen3_5_moe",
    "mtp/glm4_moe_lite", "mtp/glm4_moe_lite/model.gguf", "mtp/qwen3_next"};

std::unique_ptr<Model> LoadFp32(const std::string& name) {
  ModelOptions options;
  options.threads = 1;
  options.dtype = WeightDtype::kFp32;
  Result<std::unique_ptr<Model>> model = LoadModel(GoldenFolder(name), options);
  EXPECT_TRUE(model.ok()) << model.error().ToString();
  return model.ok() ? *std::move(model) : nullptr;
}

std::unique_ptr<Model> LoadWithOwnHead(const std::string& name) {
  std::unique_ptr<Model> model = LoadFp32(name);
  if (model == nullptr) return nullptr;
  EXPECT_TRUE(HasOwnHead(*model)) << name;
  const Status status = AttachOwnHead(model);
  if (!status.ok()) ADD_FAILURE() << name << ": " << status.error().ToString();
  return model;
}

TEST(OwnHeadTest, LogitsAndStepsAreThoseOfTheTwin) {
  for (const std::string name : kOwnBlocks) {
    const auto model = LoadWithOwnHead(name);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->info().draft_heads[0].name, "MTP");
    const std::string folder = name.substr(0, name.find("/model.gguf"));
    const auto file = SafetensorsFile::Open(GoldenFolder(folder) + "/golden.safetensors");
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
          const std::vector<float> golden(
              expected.begin() + static_cast<ptrdiff_t>(i * width),
              expected.begin() + static_cast<ptrdiff_t>((i + 1) * width));
          EXPECT_EQ(Argmax(logits[i]), guesses[i]) << name << ", " << length << ", step " << i;
          EXPECT_LT(RelativeError(logits[i], golden), 1e-4)
              << name << ", " << length << ", step " << i;
        }
        model->FreeSequence(sequence);
      }
    }
  }
}

// With the block's tensors in the files, and with the block attached.
TEST(OwnHeadTest, TheModelsOwnLogitsStayToTheBit) {
  std::mt19937 random(7);
  const std::pair<const char*, const char*> pairs[] = {
      {"mtp/qwen3_5", "families/qwen3_5-fp32-untied"},
      {"mtp/qwen3_5_moe", "families/qwen3_5_moe-bf16"},
      {"mtp/glm4_moe_lite", "families/glm4_moe_lite-bf16"},
      {"mtp/qwen3_next", "families/qwen3_next-bf16"}};
  for (const auto& [own, family] : pairs) {
    const auto plain = LoadFp32(family);
    const auto unused = LoadFp32(own);
    const auto attached = LoadWithOwnHead(own);
    const auto tokens = RandomTokens(random, plain->info().vocabulary_size, 150);
    const auto expected = RunChunk(*plain, MakeSequence(*plain, 200), 0, tokens);
    EXPECT_TRUE(SameBits(RunChunk(*unused, MakeSequence(*unused, 200), 0, tokens), expected));
    EXPECT_TRUE(SameBits(RunChunk(*attached, MakeSequence(*attached, 200), 0, tokens), expected));
    EXPECT_GT(attached->info().weight_bytes, unused->info().weight_bytes);
  }
}

// A file's note leaves out what drafts can use.
TEST(OwnHeadTest, ItsTensorsAreNotCalledUnused) {
  for (const char* const name : {"mtp/qwen3_5", "mtp/glm4_moe_lite/model.gguf"}) {
    std::vector<std::string> notes;
    const auto model =
        LoadModel(GoldenFolder(name), {}, [&](const std::string& note) { notes.push_back(note); });
    ASSERT_TRUE(model.ok());
    for (const std::string& note : notes) {
      EXPECT_EQ(note.find("not used"), std::string::npos) << note;
    }
  }
}

// What a prefix, a step back or a committed tree leaves is what the tokens say.
TEST(OwnHeadTest, StatesAreThoseOfTheTokens) {
  std::mt19937 random(11);
  for (const char* const name : {"mtp/qwen3_5", "mtp/glm4_moe_lite"}) {
    const auto model = LoadWithOwnHead(name);
    ASSERT_NE(model, nullptr);
    const int width = model->info().vocabulary_size;
    const auto tokens = RandomTokens(random, width, 60);
    const std::span<const TokenId> all = tokens;
    const SequenceId first = MakeSequence(*model, 100);
    RunPrompt(*model, first, all.first(59));
    const auto expected = DraftSteps(*model, first, tokens[59], 59, 5);
    const auto expect_same = [&](SequenceId sequence, const char* what) {
      const auto logits = DraftSteps(*model, sequence, tokens[59], 59, 5);
      for (size_t i = 0; i < logits.size(); ++i) {
        EXPECT_TRUE(SameBits(logits[i], expected[i])) << name << ", " << what << ", step " << i;
      }
    };
    expect_same(first, "again");
    // The drafts of a recurrent model leave a checkpoint near the prompt's end.
    const SequenceId second = MakeSequence(*model, 100);
    const int reused = model->ReusePrefix(second, all.first(59));
    EXPECT_EQ(reused, 48) << name;
    RunPrompt(*model, second, all.first(59), reused);
    expect_same(second, "a prefix");
    // Steps back, behind which recurrent layers compute their states again; also for the head
    // alone.
    const SequenceId third = MakeSequence(*model, 100);
    RunPrompt(*model, third, all.first(40));
    RunPrompt(*model, third, RandomTokens(random, width, 59), 35);
    model->Truncate(third, 35);
    RunPrompt(*model, third, all.first(59), 35);
    expect_same(third, "a step back");
    RunPrompt(*model, third, tokens, 59);
    model->Truncate(third, 59);
    expect_same(third, "a step back to the end");
    const SequenceId fourth = MakeSequence(*model, 100);
    RunPrompt(*model, fourth, all.first(50));
    CommitBranch(*model, fourth, tokens, 50, 9);
    expect_same(fourth, "a tree");
    // Calls of the head leave the model's state as it was.
    const auto next = RunChunk(*model, first, 59, all.subspan(59));
    const SequenceId fifth = MakeSequence(*model, 100);
    RunPrompt(*model, fifth, all.first(59));
    EXPECT_TRUE(SameBits(next, RunChunk(*model, fifth, 59, all.subspan(59)))) << name;
  }
}

// Each of several heads guesses what it guesses alone.
TEST(OwnHeadTest, SeveralHeadsOfOneModel) {
  std::mt19937 random(13);
  const auto tokens = RandomTokens(random, 130, 40);
  const auto steps_of = [&](Model& model, int number) {
    const int own = model.info().draft_heads[static_cast<size_t>(number)].steps;
    const SequenceId sequence = MakeSequence(model, 100);
    RunPrompt(model, sequence, std::span(tokens).first(39));
    const auto logits = DraftSteps(model, sequence, tokens[39], 39, own > 0 ? own : 5, number);
    model.FreeSequence(sequence);
    return logits;
  };
  std::vector<std::vector<std::vector<float>>> alone;
  const char* const heads[] = {"eagle3", "medusa", "hydra", "eagle3-training"};
  auto model = LoadGolden("heads/target");
  for (const char* const head : heads) {
    const auto one = LoadWithHead(head);
    alone.push_back(steps_of(*one, 0));
    ASSERT_TRUE(AttachDraftHead(model, HeadFolder(head)).ok());
  }
  ASSERT_EQ(model->info().draft_heads.size(), 4u);
  for (int number : {3, 0, 2, 1, 0}) {
    const auto logits = steps_of(*model, number);
    const auto& expected = alone[static_cast<size_t>(number)];
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_TRUE(SameBits(logits[i], expected[i])) << heads[number] << ", step " << i;
    }
  }
  EXPECT_NE(AttachDraftHead(model, HeadFolder("medusa")).error().message.find("than the 4"),
            std::string::npos);
  // A recurrent model with a head of another file next to its own block.
  auto recurrent = LoadWithOwnHead("mtp/qwen3_5");
  const auto own = steps_of(*recurrent, 0);
  ASSERT_TRUE(AttachDraftHead(recurrent, HeadFolder("medusa")).ok());
  EXPECT_EQ(recurrent->info().draft_heads[1].name, "Medusa");
  const auto next_to_it = steps_of(*recurrent, 0);
  for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(SameBits(own[i], next_to_it[i]));
}

// States in front of the last rows of a call may be given: those behind the first ones are then
// computed again in one call.
TEST(OwnHeadTest, APathInOneCall) {
  std::mt19937 random(17);
  const auto model = LoadWithOwnHead("mtp/glm4_moe_lite");
  const auto tokens = RandomTokens(random, 96, 24);
  const SequenceId sequence = MakeSequence(*model, 100);
  RunPrompt(*model, sequence, std::span(tokens).first(20));
  std::vector<float> state, states, logits;
  const auto hidden = static_cast<size_t>(model->info().hidden);
  for (int i = 0; i < 4; ++i) {
    const Row row = {.token = tokens[static_cast<size_t>(20 + i)],
                     .position = 20 + i,
                     .sequence = sequence,
                     .ancestors = (uint64_t{1} << i) - 1};
    logits = AskHead(*model, {row}, &state, i > 0);
    states.insert(states.end(), state.begin(), state.end());
  }
  std::vector<Row> rows;
  for (int i = 0; i < 4; ++i) {
    rows.push_back(
        {.token = tokens[static_cast<size_t>(20 + i)], .position = 20 + i, .sequence = sequence});
  }
  rows.back().output = 0;
  std::vector<float> again(96), behind(4 * hidden);
  const int layers[] = {model->info().layers};
  const ModelTap tap[] = {{layers[0] + 1, behind}};
  ModelCall call;
  call.rows = rows;
  call.logits = again;
  call.layers = layers;
  call.inputs = std::span(states).first(3 * hidden);
  call.taps = tap;
  ASSERT_TRUE(model->Run(call).ok());
  EXPECT_TRUE(SameBits(again, logits));
  EXPECT_TRUE(SameBits(behind, states));
}

TEST(OwnHeadTest, WhatIsNotThereIsSaid) {
  auto model = LoadGolden("heads/target");
  EXPECT_FALSE(HasOwnHead(*model));
  EXPECT_EQ(AttachOwnHead(model).error().message,
            "the source \"mtp\" needs a block for several tokens, and the files of this "
            "LlamaForCausalLM have none that is known");
  // A damaged one.
  std::string pattern = (fs::temp_directory_path() / "pawl-mtp-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::string from = GoldenFolder("mtp/qwen3_5");
  fs::copy_file(from + "/config.json", pattern + "/config.json");
  std::string text = *ReadFile(from + "/model.safetensors");
  const size_t at = text.find("mtp.pre_fc_norm_hidden.weight");
  ASSERT_NE(at, std::string::npos);
  text[at + 4] = 'x';
  ASSERT_TRUE(WriteFile(pattern + "/model.safetensors", text).ok());
  auto damaged = *LoadModel(pattern);
  const Status status = AttachOwnHead(damaged);
  fs::remove_all(pattern);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().place.find("mtp.pre_fc_norm_hidden.weight"), std::string::npos);
}

}  // namespace
}  // namespace pawl
