// Logits of integer weights: the digests are those of every architecture. That of its kernels alone
// is in tests/kernels/integer_matmul_test.cc; here are the tables of rotations, norms, attention
// and the softmax besides.
#include <cstring>
#include <random>

#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

TEST(ArchitectureTest, LogitsOfIntegerWeights) {
  const std::pair<WeightDtype, uint64_t> expected[] = {{WeightDtype::kInt8, 846318736780278653u},
                                                       {WeightDtype::kInt4, 6119263729349073269u}};
  for (const auto& [dtype, digest] : expected) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (const char* name : {"smollm2-bf16", "gemma2-bf16", "qwen3-fp16-yarn"}) {
      ModelOptions options;
      options.threads = 1;
      options.dtype = dtype;
      Result<std::unique_ptr<Model>> model = LoadModel(GoldenFolder(name), options);
      ASSERT_TRUE(model.ok()) << model.error().ToString();
      std::mt19937 random(5);
      const int vocabulary = static_cast<int>((*model)->info().vocabulary_size);
      const std::vector<TokenId> tokens = RandomTokens(random, vocabulary, 40);
      const SequenceId sequence = MakeSequence(**model, 40);
      for (const float logit : RunChunk(**model, sequence, 0, tokens)) {
        uint32_t bits;
        std::memcpy(&bits, &logit, sizeof bits);
        sum = (sum ^ bits) * 0x100000001b3u;
      }
    }
    EXPECT_EQ(sum, digest) << static_cast<int>(dtype);
  }
}

}  // namespace
}  // namespace pawl
