// KvSequences: the sequences of a model, the pages they are stored in, and the prefix cache. All
// that a backend adds is memory: a page's keys and values, and copying slots.
//
//   pawl::KvSequences sequences({.pages = 1000, .kept_pages = 200}, context_length);
//   Status status = sequences.Plan(rows, limits, plan);   // Forward:
//   ... plan.copies, then the rows; plan.changes[i].failed where it went wrong ...
//   sequences.Finish(rows, plan);
#ifndef PAWL_SRC_MODEL_KV_SEQUENCES_H_
#define PAWL_SRC_MODEL_KV_SEQUENCES_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/model/kv_pool.h"
#include "src/model/model.h"
#include "src/model/row_plan.h"

namespace pawl {

// One thread at a time.
class KvSequences {
 public:
  KvSequences(const KvLimits& limits, int context_length);

  // As the methods of Model with these names.
  Result<SequenceId> New(int capacity, int adapter = 0);
  void Free(SequenceId sequence);
  void Truncate(SequenceId sequence, int length);
  int ReusePrefix(SequenceId sequence, std::span<const TokenId> tokens);
  // As Model::ReuseCopying. `copies`: what the backend has to copy before it writes anything else.
  int ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens,
                   std::vector<SlotCopy>& copies);
  // `copies`: what the backend has to copy, all sources before it writes anything else.
  Status CommitTree(SequenceId sequence, int row, std::vector<SlotCopy>& copies);

  // As Model::CopySequence, of sequences that have published nothing.
  Status Copy(SequenceId from, SequenceId to, std::vector<SlotCopy>& copies);

  // The beginning and the end of a call.
  Status Plan(std::span<const Row> rows, const PlanLimits& limits, RowPlan& plan);
  void Finish(std::span<const Row> rows, RowPlan& plan);
  // Of a model with recurrent layers: the rows that change `change` of a call computes again first,
  // StateChange::from up to its base, and a plan for them. They write what is there already.
  void PlanAgain(const RowPlan& plan, size_t change, std::vector<Row>& rows, RowPlan& again) const;

  bool Known(SequenceId sequence) const;
  int length(SequenceId sequence) const { return sequences_[static_cast<size_t>(sequence)].length; }
  const SequenceState& state(SequenceId sequence) const {
    return sequences_[static_cast<size_t>(sequence)];
  }
  const KvPool& pool() const { return pool_; }
  // What does not add up, or "": counts references anew and checks the tables. For tests.
  std::string Check() const;

 private:
  SequenceState& At(SequenceId sequence) { return sequences_[static_cast<size_t>(sequence)]; }
  // Puts the pages that the first `length` positions fill into the prefix cache, or takes the equal
  // ones that are there.
  void Publish(SequenceState& state, int length);
  // The whole pages behind those of the sequence that the prefix cache has for `tokens`; of a model
  // with recurrent layers up to the last one with a checkpoint.
  std::vector<int32_t> FindPages(const SequenceState& state, std::span<const TokenId> tokens) const;
  // The sequence that agrees with `tokens` to the furthest position of the page that they begin at
  // `begin` with, behind the same pages, and that position; nullptr: none comes further than
  // `length`.
  std::pair<const SequenceState*, size_t> FindBegun(const SequenceState& state,
                                                    std::span<const TokenId> tokens, size_t begin,
                                                    size_t length) const;

  KvPool pool_;
  int context_length_;
  int32_t reserved_pages_ = 0;
  std::vector<SequenceState> sequences_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_KV_SEQUENCES_H_
