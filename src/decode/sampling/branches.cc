// A branch is a sequence of the model and the tokens that it ought to hold. Rows are made for those
// that it does not hold yet when logits are asked for, so that appending, forking and going back
// cost nothing by themselves.
//
// The prompt is a branch of its own, number 0, which holds its pages as long as the others live.
#include "src/decode/sampling/branches.h"

#include <algorithm>
#include <utility>

namespace pawl {

Branches::Branches(Model& model, std::vector<TokenId> prompt, int capacity, int max_rows)
    : model_(model),
      prompt_(std::move(prompt)),
      capacity_(capacity),
      max_rows_(std::max(max_rows, 1)) {}

Branches::~Branches() {
  for (Branch& branch : branches_) {
    if (branch.sequence >= 0) model_.FreeSequence(branch.sequence);
  }
}

Status Branches::Start() {
  Result<int> made = Make(prompt_);
  if (!made.ok()) return made.error();
  const int root[] = {*made};
  if (Status status = Run(root); !status.ok()) return status;
  prompt_logits_.assign(logits(0).begin(), logits(0).end());
  return {};
}

Result<int> Branches::Make(std::vector<TokenId> tokens) {
  size_t at = 0;
  while (at < branches_.size() && branches_[at].sequence >= 0) ++at;
  // Before the sequence, which no branch would free if there were no memory for it.
  if (at == branches_.size()) branches_.emplace_back();
  Result<SequenceId> sequence = model_.NewSequence(capacity_);
  if (!sequence.ok()) return sequence.error();
  Branch& branch = branches_[at];
  branch.sequence = *sequence;
  branch.computed = model_.ReusePrefix(*sequence, tokens);
  branch.tokens = std::move(tokens);
  branch.tokens.reserve(static_cast<size_t>(capacity_));
  return static_cast<int>(at);
}

Result<int> Branches::New() { return Make(prompt_); }
Result<int> Branches::Fork(int branch) { return Make(At(branch).tokens); }

void Branches::Free(int branch) {
  model_.FreeSequence(At(branch).sequence);
  At(branch) = Branch();
}

void Branches::Append(int branch, TokenId token) { At(branch).tokens.push_back(token); }

void Branches::Seek(int branch, std::span<const TokenId> output) {
  Branch& b = At(branch);
  size_t same = prompt_.size();
  while (same < b.tokens.size() && same - prompt_.size() < output.size() &&
         b.tokens[same] == output[same - prompt_.size()]) {
    ++same;
  }
  b.tokens.resize(same);
  b.tokens.insert(b.tokens.end(), output.begin() + static_cast<ptrdiff_t>(same - prompt_.size()),
                  output.end());
  if (b.computed > static_cast<int>(same)) {
    b.computed = static_cast<int>(same);
    model_.Truncate(b.sequence, b.computed);
  }
  // Others may have been there before.
  b.computed = std::max(b.computed, model_.ReusePrefix(b.sequence, b.tokens));
}

Status Branches::Call(std::span<const Row> rows) {
  ++calls_;
  rows_count_ += static_cast<int64_t>(rows.size());
  return model_.Forward(rows, logits_);
}

std::span<const float> Branches::logits(size_t nth) const {
  const auto size = static_cast<size_t>(model_.info().vocabulary_size);
  return std::span(logits_).subspan(nth * size, size);
}

Status Branches::Run(std::span<const int> branches) {
  logits_.resize(std::max(logits_.size(), branches.size() * static_cast<size_t>(width())));
  rows_.clear();
  const auto flush = [&]() -> Status {
    if (rows_.empty()) return {};
    Status status = Call(rows_);
    rows_.clear();
    return status;
  };
  for (size_t nth = 0; nth < branches.size(); ++nth) {
    Branch& b = At(branches[nth]);
    const int size = static_cast<int>(b.tokens.size());
    // The last row runs in any case: its logits are wanted.
    int at = std::min(b.computed, size - 1);
    while (at < size) {
      // A part of a branch may end a call; a call may not begin with a part of one behind others.
      if (static_cast<int>(rows_.size()) == max_rows_) {
        if (Status status = flush(); !status.ok()) return status;
      }
      const int room = max_rows_ - static_cast<int>(rows_.size());
      const int end = std::min(size, at + room);
      for (; at < end; ++at) {
        rows_.push_back({.token = b.tokens[static_cast<size_t>(at)],
                         .position = at,
                         .sequence = b.sequence,
                         .output = at + 1 == size ? static_cast<int32_t>(nth) : -1});
      }
    }
    b.computed = size;
  }
  return flush();
}

Status Branches::LookBehind(int branch, std::span<const TokenId> tokens) {
  Branch& b = At(branch);
  const int size = static_cast<int>(b.tokens.size());
  const int room = kMaxTreeRows - static_cast<int>(tokens.size());
  if (size - std::min(b.computed, size - 1) > room) {
    const int run[] = {branch};
    if (Status status = Run(run); !status.ok()) return status;
  }
  logits_.resize(std::max(logits_.size(), tokens.size() * static_cast<size_t>(width())));
  rows_.clear();
  uint64_t path = 0;
  for (int at = std::min(b.computed, size - 1); at < size; ++at) {
    path = path << 1 | 1;
    rows_.push_back(
        {.token = b.tokens[static_cast<size_t>(at)], .position = at, .sequence = b.sequence});
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows_.push_back({.token = tokens[i],
                     .position = size,
                     .sequence = b.sequence,
                     .ancestors = path,
                     .output = static_cast<int32_t>(i)});
  }
  b.computed = size;
  return Call(rows_);
}

}  // namespace pawl
