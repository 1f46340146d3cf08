// Logits of integer weights have the same bits on every processor: their digests were recorded on
// x86-64, and scripts/test_arm.sh runs this test on ARM.
#include <string>
#include <string_view>
#include <vector>

#include "src/base/digest.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

struct RecordedLogits {
  const char* model;  // below tests/data/models, or "tiny-extract"
  WeightDtype dtype;
  const char* sha256;  // of the logits, little-endian floats
};

constexpr RecordedLogits kRecordedLogits[] = {
    {"tiny-extract", WeightDtype::kInt8,
     "9aba1735af62f4fef80048d01a8f181f1358a7be690466f9e41b58e261075ad5"},
    {"tiny-extract", WeightDtype::kInt4,
     "9aba7096b6120dcae6b2dd458f83d4e72dcde725ea5841d0faab8408dca997fe"},
    {"llama-bf16-llama3", WeightDtype::kInt8,
     "9ea2e4a761bbede774a7a89ba718473d0f3f5c8a4e444243ee27ab5a17b1e5ad"},
    {"llama-bf16-llama3", WeightDtype::kInt4,
     "3d062cd2b504050099e8bc1d50cbe6d4a6e9c53a109b26d292f613592ae5e350"},
    {"qwen3-fp16-yarn", WeightDtype::kInt8,
     "f77c0725354be6a2dcbc0fc33c058f6f8438f6a9d9f81c1bf63766afee07f87f"},
    {"gemma3-bf16", WeightDtype::kInt8,
     "baa1423cdb753723bc853170278b09eab88eeb29a698556200a4a3ddc2147f7e"},
    {"gemma3-bf16", WeightDtype::kInt4,
     "9cfa02a623a2fcfe98dc413aba8289ed8d79cdfb3a8a13e04236483f85423b9c"},
    {"families/gpt_oss-mxfp4", WeightDtype::kAsStored,
     "11d95ae70f07add9c1e9f273d8de41108d767a531b4d5ea23e759ff0e53f4ac9"},
};

// A prompt of 40 tokens, read at once, and eight tokens after it, one by one.
std::string DigestOfLogits(Model& model) {
  const int vocabulary = model.info().vocabulary_size;
  std::vector<TokenId> prompt;
  for (int i = 0; i < 40; ++i) prompt.push_back((i * 37 + 11) % vocabulary);
  const SequenceId sequence = MakeSequence(model, 64);
  Digest digest(DigestKind::kSha256);
  std::vector<float> logits = RunChunk(model, sequence, 0, prompt);
  const auto add = [&] {
    digest.Add({reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float)});
  };
  add();
  for (int position = 40; position < 48; ++position) {
    const TokenId next = Argmax(std::span(logits).last(static_cast<size_t>(vocabulary)));
    logits = RunChunk(model, sequence, position, std::span(&next, 1));
    add();
  }
  model.FreeSequence(sequence);
  return digest.Hex();
}

TEST(SameBitsTest, LogitsOfIntegerWeightsAreThoseRecordedOnX86) {
  for (const RecordedLogits& recorded : kRecordedLogits) {
    const std::string name = recorded.model;
    int variants = 0;
    for (const KernelVariant variant : kExactKernels) {
      if (FindKernels(variant) == nullptr) continue;
      ModelOptions options;
      options.threads = 2;
      options.kernels = variant;
      options.dtype = recorded.dtype;
      const Result<std::unique_ptr<Model>> model = LoadModel(
          name == "tiny-extract" ? SourceDir() + "/models/" + name : GoldenFolder(name), options);
      ASSERT_TRUE(model.ok()) << model.error().ToString();
      EXPECT_EQ(DigestOfLogits(**model), recorded.sha256)
          << name << ", " << (*model)->info().dtype << ", " << (*model)->info().kernels;
      ++variants;
    }
    EXPECT_GE(variants, 2) << "portable kernels, and those of the processor";
  }
}

}  // namespace
}  // namespace pawl
