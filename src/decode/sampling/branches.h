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
// What a fork shares are whole pages; the at most 15 positions behind them are copied. Where the
// branch that it comes from has gone, they are computed again with the fork's next row, in the same
// call, to the same bits.
//
// A host runs the rows: a model by itself, or the batch that the branches are a work of
// (branch_work.h).
#ifndef PAWL_SRC_DECODE_SAMPLING_BRANCHES_H_
#define PAWL_SRC_DECODE_SAMPLING_BRANCHES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/model/model.h"

namespace pawl {

// A token behind the last one of a branch, or behind another such token.
struct TreeToken {
  TokenId token = kNoToken;
  int parent = -1;     // one before it in the list; -1: the branch's last token
  bool wanted = true;  // its logits are
};

// Branches as tokens on one side, as sequences of a model on the other. The two sides may be those
// of two threads: the side of the sampler changes branches and says which logits it wants; then the
// side of the model adds the rows, call by call, until the logits are there. Evict and Free are the
// exception: the side of the model may call them at any time.
class BranchSet {
 public:
  // `capacity`: the most positions of a branch. `width`: of the logits. `hidden`: of the states
  // behind the last norm, which come with the logits; 0: they do not.
  BranchSet(int capacity, int width, int hidden)
      : capacity_(capacity),
        width_(static_cast<size_t>(width)),
        hidden_(static_cast<size_t>(hidden)) {}
  size_t hidden() const { return hidden_; }

  // ---- The side of the sampler
  int Make(std::vector<TokenId> tokens);
  void Free(int branch);
  void Append(int branch, TokenId token) { At(branch).tokens.push_back(token); }
  // A position that reads several tokens (Row::mix); the first one stands for it.
  void AppendMix(int branch, std::vector<TokenWeight> mix);
  void Seek(int branch, std::span<const TokenId> tokens);
  const std::vector<TokenId>& tokens(int branch) const {
    return branches_[static_cast<size_t>(branch)].tokens;
  }
  // The logits after all tokens of each of these branches. `answers`: of each, after so many of its
  // last tokens; empty: one.
  void Want(std::span<const int> branches, std::span<const int> answers = {});
  // The logits after tokens of a tree (at most kMaxTreeRows - 1) behind the last token of a branch.
  void WantTree(int branch, std::vector<TreeToken> tree);
  std::span<const float> logits(size_t nth) const {
    return std::span(logits_).subspan(nth * width_, width_);
  }
  std::span<const float> states(size_t nth) const {
    return std::span(states_).subspan(nth * hidden_, hidden_);
  }
  int64_t calls() const { return calls_; }
  int64_t rows() const { return rows_; }
  // What is wanted next runs at most so many rows, those that run again too. Not for trees.
  void LimitRows(int64_t most) { most_rows_ = most < kNoLimit - rows_ ? rows_ + most : kNoLimit; }
  // The limit ended it before all logits were there.
  bool over_limit() const { return next_ < size() && rows_ >= most_rows_; }

  // ---- The side of the model, while logits are wanted
  // Sequences for all branches. Errors: those of Model::NewSequence.
  Status Open(Model& model);
  // Rows that are left, after Open.
  int pending() const;
  bool done() const { return next_ == size() || over_limit(); }
  // Appends rows, at most so many. `output_of(nth)`: the Row::output of the logits(nth).
  template <typename OutputOf>
  void AddRows(int most, std::vector<Row>& rows, const OutputOf& output_of);
  // They have run. `answer_of(nth)`: the logits that are wanted, or empty where they are in
  // buffer() already. `states_of(nth)`: the states; called where hidden() is not 0.
  template <typename AnswerOf, typename StatesOf>
  void Ran(const AnswerOf& answer_of, const StatesOf& states_of);
  std::span<float> buffer() { return logits_; }
  // They have not.
  void Forget(Model& model);
  // Pages for so many tokens more, and those that the next rows take.
  int64_t pages(const KvMemory& memory, int more) const;
  int64_t PagesOf(const KvMemory& memory, int rows) const;

  // ---- At any time
  void Evict(Model& model);

 private:
  struct Branch {
    uint64_t life = 0;  // 0: free
    std::vector<TokenId> tokens;
    std::map<int, std::vector<TokenWeight>> mixes;  // by position
    int same = 0;                                   // of the first tokens since Open
    bool sought = false;                            // since Open
  };
  // What the model holds of a branch.
  struct Held {
    uint64_t life = 0;
    SequenceId sequence = -1;
    int computed = 0;  // tokens whose keys and values are there
  };
  Branch& At(int branch) { return branches_[static_cast<size_t>(branch)]; }
  const Branch& At(int branch) const { return branches_[static_cast<size_t>(branch)]; }
  Held& HeldOf(int branch) { return held_[static_cast<size_t>(branch)]; }
  const Held& HeldOf(int branch) const { return held_[static_cast<size_t>(branch)]; }
  size_t size() const { return answers_; }
  void BeginWant(size_t count);
  // Calls `each(branch, first, size)` for branches with answers from number `next` on that are
  // missing: they come after the tokens from `first` on. false from it: it is the last one.
  template <typename Each>
  void ForMissing(size_t next, const Each& each) const;
  template <typename OutputOf>
  void AddRun(int most, std::vector<Row>& rows, const OutputOf& output_of);
  template <typename OutputOf>
  void AddTree(int most, std::vector<Row>& rows, const OutputOf& output_of);

  const int capacity_;
  const size_t width_, hidden_;
  std::vector<Branch> branches_;
  uint64_t lives_ = 0;
  std::vector<Held> held_;
  // What is wanted: logits of branches, so many of each, or of a tree behind one of them. Those
  // before `next_` are there.
  std::vector<std::pair<int, int>> wanted_;
  std::vector<TreeToken> tree_;
  size_t answers_ = 0, next_ = 0;
  std::vector<float> logits_, states_;
  // Of the call that is under way: what it leaves computed, and how far `next_` comes.
  std::vector<std::pair<int, int>> reached_;
  size_t reached_next_ = 0;
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  int64_t calls_ = 0, rows_ = 0, most_rows_ = kNoLimit;
};

// Runs the rows of branches.
class BranchHost {
 public:
  virtual ~BranchHost() = default;
  // As of its model, but for what changes.
  virtual KvMemory memory() const = 0;
  // `set` may want logits from here on, until Leave.
  virtual void Join(std::shared_ptr<BranchSet> set) = 0;
  virtual void Leave(const BranchSet& set) = 0;
  // Until the logits that the set wants are there. Errors: those of Model::Run.
  virtual Status Run(BranchSet& set) = 0;
};

// One thread at a time. Frees all its sequences when it goes; the host must outlive it.
class Branches {
 public:
  // `capacity`: the most positions of a branch, the prompt included. `max_rows`: of a call.
  Branches(Model& model, std::vector<TokenId> prompt, int capacity, int max_rows = 256);
  // `host` nullptr: the model by itself. `states`: logits come with the states that the head reads,
  // those of the prompt's tokens too.
  Branches(BranchHost* host, Model& model, std::vector<TokenId> prompt, int capacity,
           bool states = false);
  ~Branches();
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;

  // Computes the prompt. Errors: those of Model.
  Status Start();
  std::span<const float> prompt_logits() const { return prompt_logits_; }
  // [token][hidden]; empty without states.
  std::span<const float> prompt_states() const { return prompt_states_; }

  // A branch that stands behind the prompt.
  Result<int> New() { return set_->Make(prompt_); }
  Result<int> Fork(int branch) { return set_->Make(set_->tokens(branch)); }
  void Free(int branch) { set_->Free(branch); }
  void Append(int branch, TokenId token) { set_->Append(branch, token); }
  // REQUIRES: the branch is asked for with Run alone.
  void AppendMix(int branch, std::vector<TokenWeight> mix) {
    set_->AppendMix(branch, std::move(mix));
  }
  // The branch stands behind the prompt and these tokens; what it shares with before stays.
  void Seek(int branch, std::span<const TokenId> output);
  // The logits after all tokens of each of these branches, in one call or, where they are many
  // rows, in a few. Each branch at most once. Errors: those of Model::Run and Model::NewSequence.
  Status Run(std::span<const int> branches);
  std::span<const float> logits(size_t nth) const { return set_->logits(nth); }
  std::span<const float> states(size_t nth) const { return set_->states(nth); }

  // The logits after the last answers[i] tokens of each branch, in the order of the tokens.
  Status RunTails(std::span<const int> branches, std::span<const int> answers);
  // After the last token of a branch, each of these (at most kMaxTreeRows - 1) by itself: its
  // logits are logits(i). The branch does not get longer.
  Status LookBehind(int branch, std::span<const TokenId> tokens);
  // The same for a tree; logits(i) are those of the i-th wanted token.
  Status LookBehind(int branch, std::vector<TreeToken> tree);

  int64_t calls() const { return set_->calls(); }
  int64_t rows() const { return set_->rows(); }
  // Of the next Run or RunTails: at most so many rows. At the limit it ends without an error, and
  // there are no logits.
  void LimitRows(int64_t most) { set_->LimitRows(most); }
  bool over_limit() const { return set_->over_limit(); }

 private:
  Branches(std::unique_ptr<BranchHost> own, BranchHost* host, const Model& model,
           std::vector<TokenId> prompt, int capacity, bool states);

  const std::unique_ptr<BranchHost> own_;  // nullptr: another one's
  BranchHost& host_;
  std::vector<TokenId> prompt_;
  const std::shared_ptr<BranchSet> set_;
  std::vector<float> prompt_logits_, prompt_states_;
};

// ---- Templates ----

template <typename OutputOf>
void BranchSet::AddRows(int most, std::vector<Row>& rows, const OutputOf& output_of) {
  reached_.clear();
  reached_next_ = next_;
  const size_t before = rows.size();
  if (tree_.empty()) {
    AddRun(most, rows, output_of);
  } else {
    AddTree(most, rows, output_of);
  }
  if (rows.size() == before) return;
  ++calls_;
  rows_ += static_cast<int64_t>(rows.size() - before);
}

template <typename Each>
void BranchSet::ForMissing(size_t next, const Each& each) const {
  size_t before = 0;  // answers of the branches before
  for (const auto& [branch, answers] : wanted_) {
    const size_t end = before + static_cast<size_t>(answers);
    const int size = static_cast<int>(At(branch).tokens.size());
    const int has = next > before ? static_cast<int>(next - before) : 0;
    if (next < end && !each(branch, size - answers + has, size)) return;
    before = end;
  }
}

template <typename OutputOf>
void BranchSet::AddRun(int most, std::vector<Row>& rows, const OutputOf& output_of) {
  int left = static_cast<int>(std::min<int64_t>(most, most_rows_ - rows_));
  ForMissing(next_, [&](int branch, int first, int size) {
    const Branch& b = At(branch);
    // The rows whose logits are wanted run in any case.
    int at = std::min(HeldOf(branch).computed, first);
    const int end = std::min(size, at + left);
    left -= end - at;
    for (; at < end; ++at) {
      rows.push_back({.token = b.tokens[static_cast<size_t>(at)],
                      .position = at,
                      .sequence = HeldOf(branch).sequence,
                      .output = at >= first ? output_of(reached_next_++) : -1});
      if (const auto mix = b.mixes.find(at); mix != b.mixes.end()) rows.back().mix = mix->second;
    }
    reached_.push_back({branch, end});
    return end == size && left > 0;
  });
}

template <typename OutputOf>
void BranchSet::AddTree(int most, std::vector<Row>& rows, const OutputOf& output_of) {
  const int branch = wanted_[0].first;
  const Branch& b = At(branch);
  const int size = static_cast<int>(b.tokens.size());
  const int room = std::min(most, kMaxTreeRows);
  int at = std::min(HeldOf(branch).computed, size - 1);
  // Rows of tokens that are missing run alone where there is no place for both.
  const bool alone = size - at > 1 && size - at + static_cast<int>(tree_.size()) > room;
  const int end = alone ? std::min(size, at + most) : size;
  if (!alone && room < 2) return;
  const size_t begin = rows.size();
  uint64_t path = 0;
  for (; at < end; ++at) {
    path = path << 1 | 1;
    rows.push_back({.token = b.tokens[static_cast<size_t>(at)],
                    .position = at,
                    .sequence = HeldOf(branch).sequence});
  }
  reached_.push_back({branch, end});
  if (alone) return;
  struct Placed {
    int row = -1;  // of this call
    uint64_t path = 0;
    int depth = 0;
  };
  std::vector<Placed> placed(tree_.size());
  std::vector<size_t> missing;
  size_t number = 0;  // of a wanted token
  for (size_t i = 0; i < tree_.size(); ++i) {
    if (!tree_[i].wanted || number++ < next_) continue;
    missing.clear();
    for (int up = static_cast<int>(i); up >= 0 && placed[static_cast<size_t>(up)].row < 0;
         up = tree_[static_cast<size_t>(up)].parent) {
      missing.push_back(static_cast<size_t>(up));
    }
    const auto used = static_cast<int>(rows.size() - begin);
    if (used + static_cast<int>(missing.size()) > room) break;
    for (auto up = missing.rbegin(); up != missing.rend(); ++up) {
      const TreeToken& token = tree_[*up];
      Placed& here = placed[*up];
      here = {static_cast<int>(rows.size() - begin), path, 0};
      if (token.parent >= 0) {
        const Placed& above = placed[static_cast<size_t>(token.parent)];
        here.path = above.path | uint64_t{1} << above.row;
        here.depth = above.depth + 1;
      }
      rows.push_back({.token = token.token,
                      .position = size + here.depth,
                      .sequence = HeldOf(branch).sequence,
                      .ancestors = here.path});
    }
    rows.back().output = output_of(reached_next_++);
  }
}

template <typename AnswerOf, typename StatesOf>
void BranchSet::Ran(const AnswerOf& answer_of, const StatesOf& states_of) {
  for (const auto& [branch, computed] : reached_) HeldOf(branch).computed = computed;
  for (; next_ < reached_next_; ++next_) {
    const std::span<const float> answer = answer_of(next_);
    std::copy(answer.begin(), answer.end(),
              logits_.begin() + static_cast<ptrdiff_t>(next_ * width_));
    if (hidden_ == 0) continue;
    const std::span<const float> states = states_of(next_);
    std::copy(states.begin(), states.end(),
              states_.begin() + static_cast<ptrdiff_t>(next_ * hidden_));
  }
}

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_BRANCHES_H_
