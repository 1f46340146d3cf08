// The model of tests that need no weights. What a row's logits are is a function that the test
// gives. The function is told the tokens that the row finds in its pages, so any slip in what is
// fed, kept, shared or evicted changes the output.
//
//   ToyModel model({.vocabulary_size = 16}, [](const ToyModel::Place& place, std::span<float> out)
//   {
//     for (size_t v = 0; v < out.size(); ++v) out[v] = UniformAt(place.Hash(), 1, v);
//   });
#ifndef PAWL_TESTS_SUPPORT_TOY_MODEL_H_
#define PAWL_TESTS_SUPPORT_TOY_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "src/model/kv_sequences.h"
#include "src/model/model.h"

namespace pawl {

struct ToyOptions {
  int vocabulary_size = 0;
  int context_length = 1000;
  // Of kPagePositions tokens: all that there are, and how many stay for prefixes that come again.
  int32_t pages = 1000, kept = 0;
  // Without: no pages, and the function is told no tokens. Much faster.
  bool reads = true;
  bool draws = false;  // the model draws the tokens itself
};

class ToyModel : public Model {
 public:
  struct Place {
    const Row& row;
    std::span<const TokenId> tokens;  // up to the row's own
  };
  // Logits that are not a number make a bad row.
  using Logits = std::function<void(const Place& place, std::span<float> out)>;

  ToyModel(const ToyOptions& options, Logits logits);

  const ModelInfo& info() const override { return model_info; }
  Result<SequenceId> NewSequence(int capacity) override;
  void FreeSequence(SequenceId id) override;
  void Truncate(SequenceId id, int length) override;
  int ReusePrefix(SequenceId id, std::span<const TokenId> tokens) override;
  int ReuseCopying(SequenceId id, std::span<const TokenId> tokens) override;
  KvMemory kv_memory() const override;
  Status Run(const ModelCall& call) override;
  bool samples() const override { return options_.draws; }
  std::span<const int32_t> bad_rows() const override { return bad_; }
  Status CommitTree(SequenceId id, int row) override;

  ModelInfo model_info;
  KvSequences sequences;
  // Called for each call before and after the rows have run. They may fail, or throw.
  std::function<Status(std::span<const Row> rows)> before, after;
  int alive = 0;                                        // sequences
  int calls = 0;                                        // of Run
  int most_rows = 0;                                    // in a call
  std::map<uint64_t, std::vector<float>> temperatures;  // drawn with, by position in the output

 private:
  Status Compute(std::span<const Row> rows, std::span<float> logits, bool keep_tree);
  std::vector<TokenId> TokensOf(const PlannedRow& row) const;
  void Copy(const std::vector<SlotCopy>& copies);

  const ToyOptions options_;
  const Logits logits_;
  RowPlan plan_;
  std::vector<TokenId> memory_;  // by slot
  std::vector<int32_t> bad_;
};

// A hash of tokens, different for each list of them.
inline uint64_t HashOf(std::span<const TokenId> tokens, uint64_t hash = 1) {
  for (const TokenId t : tokens) {
    hash = (hash ^ static_cast<uint64_t>(t + 1)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

// Logits from 0 to 4 by the hash of the tokens before.
void HashedLogits(const ToyModel::Place& place, std::span<float> out);

}  // namespace pawl

#endif  // PAWL_TESTS_SUPPORT_TOY_MODEL_H_
