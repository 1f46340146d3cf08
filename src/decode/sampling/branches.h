// Branches: many continuations of one prompt in a model. The prompt is computed once; its pages are
// shared, and a branch that goes its own way has pages of its own from there on.
//
//   Branches branches(model, prompt, capacity, 256);
//   Status status = branches.Start();                 // branches.prompt_logits()
//   int a = *branches.New();
//   branches.Append(a, 17);
//   int b = *branches.Fork(a);
//   branches.Append(b, 3);
//   const int both[] = {a, b};
//   status = branches.Run(both);                      // branches.logits(0), branches.logits(1)
//
// What a fork shares are whole pages; the at most 15 positions behind them are computed again with
// the fork's next row, in the same call, to the same bits.
#ifndef PAWL_SRC_DECODE_SAMPLING_BRANCHES_H_
#define PAWL_SRC_DECODE_SAMPLING_BRANCHES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/model/model.h"

namespace pawl {

// One thread at a time. Frees all its sequences when it goes; the model must outlive it.
class Branches {
 public:
  // `capacity`: the most positions of a branch, the prompt included. `max_rows`: of a call.
  Branches(Model& model, std::vector<TokenId> prompt, int capacity, int max_rows = 256);
  ~Branches();
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;

  // Computes the prompt. Errors: those of Model.
  Status Start();
  std::span<const float> prompt_logits() const { return prompt_logits_; }

  // A branch that stands behind the prompt. Errors: those of Model::NewSequence.
  Result<int> New();
  Result<int> Fork(int branch);
  void Free(int branch);
  void Append(int branch, TokenId token);
  // The branch stands behind the prompt and these tokens; what it shares with before stays.
  void Seek(int branch, std::span<const TokenId> output);
  // The logits after all tokens of each of these branches, in one call or, where they are many
  // rows, in a few. Each branch at most once. Errors: those of Model::Forward.
  Status Run(std::span<const int> branches);
  std::span<const float> logits(size_t nth) const;

  // After the last token of a branch, each of these (at most kMaxTreeRows - 1) by itself: its
  // logits are logits(i). The branch does not get longer.
  Status LookBehind(int branch, std::span<const TokenId> tokens);

  int64_t calls() const { return calls_; }
  int64_t rows() const { return rows_count_; }

 private:
  struct Branch {
    SequenceId sequence = -1;  // -1: free
    std::vector<TokenId> tokens;
    int computed = 0;  // tokens whose keys and values are there
  };
  Branch& At(int branch) { return branches_[static_cast<size_t>(branch)]; }
  Result<int> Make(std::vector<TokenId> tokens);
  Status Call(std::span<const Row> rows);
  int width() const { return model_.info().vocabulary_size; }

  Model& model_;
  std::vector<TokenId> prompt_;
  int capacity_;
  int max_rows_;
  std::vector<Branch> branches_;
  std::vector<float> prompt_logits_;
  std::vector<float> logits_;
  std::vector<Row> rows_;
  int64_t calls_ = 0, rows_count_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_BRANCHES_H_
