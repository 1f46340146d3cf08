// A model over sixteen letters whose logits are the same everywhere: what comes out of a decode
// loop has a distribution that is known.
#ifndef PAWL_TESTS_DECODE_SIXTEEN_MODEL_H_
#define PAWL_TESTS_DECODE_SIXTEEN_MODEL_H_

#include <memory>
#include <span>

#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {

inline constexpr ToyOptions kSixteen = {
    .vocabulary_size = 16, .context_length = 1 << 20, .reads = false};

class SixteenModel : public ToyModel {
 public:
  SixteenModel()
      : ToyModel(kSixteen, [](const Place&, std::span<float> out) {
          for (size_t v = 0; v < out.size(); ++v) out[v] = Logit(v);
        }) {}
  static float Logit(size_t v) { return 0.37f * static_cast<float>((v * 7) % 16) - 2; }
};

// "a" to "p", and nothing that ends an output.
inline std::shared_ptr<const Vocabulary> SixteenLetters() {
  return VocabularyOf(Letters('a', 'p'), {}, {});
}

}  // namespace pawl

#endif  // PAWL_TESTS_DECODE_SIXTEEN_MODEL_H_
