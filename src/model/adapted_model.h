// A model as the requests of one LoRA adapter see it: new sequences have the adapter, and all else
// is the model itself. So what makes sequences need not know of adapters.
//
//   AdaptedModel legal(model, 1);
//   Result<SequenceId> sequence = legal.NewSequence(256);  // model.NewAdapted(256, 1)
#ifndef PAWL_SRC_MODEL_ADAPTED_MODEL_H_
#define PAWL_SRC_MODEL_ADAPTED_MODEL_H_

#include "src/model/model.h"

namespace pawl {

class AdaptedModel final : public Model {
 public:
  // The model outlives it.
  AdaptedModel(Model& model, int adapter) : model_(model), adapter_(adapter) {}

  const ModelInfo& info() const override { return model_.info(); }
  std::optional<MaskFilling> filling() const override { return model_.filling(); }
  Result<SequenceId> NewSequence(int capacity) override {
    return model_.NewAdapted(capacity, adapter_);
  }
  Result<SequenceId> NewAdapted(int capacity, int adapter) override {
    return model_.NewAdapted(capacity, adapter);
  }
  void FreeSequence(SequenceId sequence) override { model_.FreeSequence(sequence); }
  void Truncate(SequenceId sequence, int length) override { model_.Truncate(sequence, length); }
  int ReusePrefix(SequenceId sequence, std::span<const TokenId> tokens) override {
    return model_.ReusePrefix(sequence, tokens);
  }
  int ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens) override {
    return model_.ReuseCopying(sequence, tokens);
  }
  KvMemory kv_memory() const override { return model_.kv_memory(); }
  Status Run(const ModelCall& call) override { return model_.Run(call); }
  bool samples() const override { return model_.samples(); }
  std::span<const int32_t> bad_rows() const override { return model_.bad_rows(); }
  Status CommitTree(SequenceId sequence, int row) override {
    return model_.CommitTree(sequence, row);
  }
  Status CopySequence(SequenceId from, SequenceId to) override {
    return model_.CopySequence(from, to);
  }

 private:
  Model& model_;
  const int adapter_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_ADAPTED_MODEL_H_
