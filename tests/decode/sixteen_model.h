// A model over sixteen letters whose logits are the same everywhere: what comes out of a decode
// loop has a distribution that is known.
#ifndef PAWL_TESTS_DECODE_SIXTEEN_MODEL_H_
#define PAWL_TESTS_DECODE_SIXTEEN_MODEL_H_

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "pawl/vocabulary.h"
#include "src/model/model.h"

namespace pawl {

class SixteenModel : public Model {
 public:
  SixteenModel() {
    info_.vocabulary_size = 16;
    info_.context_length = 1 << 20;
  }
  const ModelInfo& info() const override { return info_; }
  Result<SequenceId> NewSequence(int) override { return 0; }
  void FreeSequence(SequenceId) override {}
  void Truncate(SequenceId, int) override {}
  Status Run(const ModelCall& call) override {
    const std::span<const Row> rows = call.rows;
    const std::span<float> logits = call.logits;
    for (const Row& row : rows) {
      for (size_t v = 0; v < 16 && row.output >= 0; ++v) {
        logits[static_cast<size_t>(row.output) * 16 + v] = Logit(v);
      }
    }
    return {};
  }
  Status CommitTree(SequenceId, int) override { return {}; }
  static float Logit(size_t v) { return 0.37f * static_cast<float>((v * 7) % 16) - 2; }

 private:
  ModelInfo info_;
};

// "a" to "p".
inline std::shared_ptr<const Vocabulary> SixteenLetters() {
  VocabularyInit init;
  for (int i = 0; i < 16; ++i) init.tokens.push_back(std::string(1, static_cast<char>('a' + i)));
  return *Vocabulary::Create(std::move(init));
}

}  // namespace pawl

#endif  // PAWL_TESTS_DECODE_SIXTEEN_MODEL_H_
