// A model that does what another one does. Tests override what they watch or break.
#ifndef PAWL_TESTS_SUPPORT_MODEL_AROUND_H_
#define PAWL_TESTS_SUPPORT_MODEL_AROUND_H_

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "src/model/model.h"

namespace pawl {

class ModelAround : public Model {
 public:
  explicit ModelAround(std::unique_ptr<Model> inner) : owned_(std::move(inner)), inner_(*owned_) {}
  // Outlives it.
  explicit ModelAround(Model& inner) : inner_(inner) {}

  const ModelInfo& info() const override { return inner_.info(); }
  std::optional<MaskFilling> filling() const override { return inner_.filling(); }
  Result<SequenceId> NewSequence(int capacity) override { return inner_.NewSequence(capacity); }
  void FreeSequence(SequenceId id) override { inner_.FreeSequence(id); }
  void Truncate(SequenceId id, int length) override { inner_.Truncate(id, length); }
  int ReusePrefix(SequenceId id, std::span<const TokenId> tokens) override {
    return inner_.ReusePrefix(id, tokens);
  }
  int ReuseCopying(SequenceId id, std::span<const TokenId> tokens) override {
    return inner_.ReuseCopying(id, tokens);
  }
  KvMemory kv_memory() const override { return inner_.kv_memory(); }
  Status Run(const ModelCall& call) override { return inner_.Run(call); }
  std::span<const int32_t> bad_rows() const override { return inner_.bad_rows(); }
  Status CommitTree(SequenceId id, int row) override { return inner_.CommitTree(id, row); }
  Status CopySequence(SequenceId from, SequenceId to) override {
    return inner_.CopySequence(from, to);
  }

 private:
  const std::unique_ptr<Model> owned_;

 protected:
  Model& inner_;
};

}  // namespace pawl

#endif  // PAWL_TESTS_SUPPORT_MODEL_AROUND_H_
