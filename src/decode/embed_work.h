// EmbedWork: one vector for given tokens, made of what the head reads behind them, as a work of a
// batch.
//
//   engine.Add(std::make_unique<EmbedWork>(model, tokens, Pooling{Pooling::Kind::kMean, true},
//       [](Result<std::vector<float>> embedding) { ... }));
#ifndef PAWL_SRC_DECODE_EMBED_WORK_H_
#define PAWL_SRC_DECODE_EMBED_WORK_H_

#include <functional>
#include <vector>

#include "src/decode/given_tokens_work.h"

namespace pawl {

// How the states of a text become one vector (Sentence-BERT, Reimers and Gurevych, 2019).
struct Pooling {
  enum class Kind { kMean, kLast };  // the mean of all tokens' states; the last token's
  Kind kind = Kind::kMean;
  bool normalize = true;  // to length 1
};

// Scales to length 1. A vector of zeros stays.
void Normalize(std::vector<float>& vector);

class EmbedWork final : public GivenTokensWork {
 public:
  // `done` is called on the thread of the engine. Its errors: kUnsupported for a model that fills
  // masks, and where a device draws the tokens; kInvalid for states that are not finite; those of
  // the model.
  EmbedWork(Model& model, std::vector<TokenId> tokens, const Pooling& pooling,
            std::function<void(Result<std::vector<float>>)> done);

  Result<bool> Start(bool may_wait) override;
  Status Reuse() override;
  void Ask(RowSink& sink, int most) override;
  void Ran(const CallAnswers& answers, double seconds, bool failed) override;
  Result<bool> Take(const CallAnswers& answers, bool later) override;
  void Evict() override;
  void Done() override;

 private:
  const Pooling pooling_;
  const std::function<void(Result<std::vector<float>>)> done_;
  std::vector<double> sum_;
  std::vector<float> embedding_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_EMBED_WORK_H_
