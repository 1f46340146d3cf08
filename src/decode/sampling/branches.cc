// A branch is a sequence of the model and the tokens that it ought to hold. Rows are made for those
// that it does not hold yet when logits are asked for, so that appending, forking and going back
// cost nothing by themselves. Sequences are made, cut back and freed at that time too: what a
// sampler does between two calls asks nothing of the model, which may be busy for others.
//
// The prompt is a branch of its own, number 0, which holds its pages as long as the others live.
#include "src/decode/sampling/branches.h"

#include "src/base/stop_scope.h"
#include "src/decode/work.h"

namespace pawl {

// ---- The side of the sampler ----

int BranchSet::Make(std::vector<TokenId> tokens) {
  size_t at = 0;
  while (at < branches_.size() && branches_[at].life != 0) ++at;
  if (at == branches_.size()) branches_.emplace_back();
  Branch& branch = branches_[at];
  branch.tokens = std::move(tokens);
  branch.mixes.clear();
  branch.tokens.reserve(static_cast<size_t>(capacity_));
  branch.same = 0;
  branch.sought = false;
  branch.life = ++lives_;
  return static_cast<int>(at);
}

void BranchSet::Free(int branch) { At(branch) = Branch(); }

void BranchSet::AppendMix(int branch, std::vector<TokenWeight> mix) {
  Branch& b = At(branch);
  b.tokens.push_back(mix.front().token);
  b.mixes[static_cast<int>(b.tokens.size()) - 1] = std::move(mix);
}

void BranchSet::Seek(int branch, std::span<const TokenId> tokens) {
  Branch& b = At(branch);
  const auto [differs, ignored] =
      std::mismatch(b.tokens.begin(), b.tokens.end(), tokens.begin(), tokens.end());
  auto same = static_cast<size_t>(differs - b.tokens.begin());
  if (!b.mixes.empty()) same = std::min(same, static_cast<size_t>(b.mixes.begin()->first));
  b.mixes.clear();
  b.tokens.resize(same);
  b.tokens.insert(b.tokens.end(), tokens.begin() + static_cast<ptrdiff_t>(same), tokens.end());
  b.same = std::min(b.same, static_cast<int>(same));
  b.sought = true;
}

void BranchSet::BeginWant(size_t count) {
  answers_ = count;
  next_ = reached_next_ = 0;
  logits_.resize(std::max(logits_.size(), count * width_));
  states_.resize(std::max(states_.size(), count * hidden_));
}

void BranchSet::Want(std::span<const int> branches, std::span<const int> answers) {
  tree_.clear();
  wanted_.clear();
  size_t count = 0;
  for (size_t i = 0; i < branches.size(); ++i) {
    wanted_.push_back({branches[i], answers.empty() ? 1 : answers[i]});
    count += static_cast<size_t>(wanted_.back().second);
  }
  BeginWant(count);
}

void BranchSet::WantTree(int branch, std::vector<TreeToken> tree) {
  wanted_.assign(1, {branch, 0});
  tree_ = std::move(tree);
  BeginWant(static_cast<size_t>(std::ranges::count_if(tree_, &TreeToken::wanted)));
}

// ---- The side of the model ----

Status BranchSet::Open(Model& model) {
  held_.resize(std::max(held_.size(), branches_.size()));
  // Freed last: the pages that they share with new ones are still there for these.
  std::vector<SequenceId> dead;
  Status status;
  for (size_t i = 0; i < branches_.size() && status.ok(); ++i) {
    Branch& branch = branches_[i];
    Held& held = held_[i];
    if (held.life != branch.life) {
      if (held.sequence >= 0) dead.push_back(held.sequence);
      held = {.life = branch.life};
    }
    if (branch.life == 0) continue;
    bool reuses = branch.sought;
    if (held.sequence < 0) {
      const Result<SequenceId> sequence = model.NewSequence(capacity_);
      if (!sequence.ok()) {
        status = sequence.error();
        break;
      }
      held.sequence = *sequence;
      held.computed = 0;
      reuses = true;
    } else if (held.computed > branch.same) {
      held.computed = branch.same;
      model.Truncate(held.sequence, held.computed);
    }
    // Others may have been there before.
    if (reuses) {
      // What stands behind a mix is not a matter of tokens.
      std::span<const TokenId> plain = branch.tokens;
      if (!branch.mixes.empty()) plain = plain.first(branch.mixes.begin()->first);
      held.computed = std::max(held.computed, model.ReuseCopying(held.sequence, plain));
    }
    branch.same = static_cast<int>(branch.tokens.size());
    branch.sought = false;
  }
  for (const SequenceId sequence : dead) model.FreeSequence(sequence);
  return status;
}

int BranchSet::pending() const {
  int rows = 0;
  ForMissing(next_, [&](int branch, int first, int size) {
    rows += size - std::min(HeldOf(branch).computed, first);
    return true;
  });
  if (tree_.empty()) return rows;
  const int branch = wanted_[0].first;
  const int size = static_cast<int>(At(branch).tokens.size());
  return size - std::min(HeldOf(branch).computed, size - 1) + static_cast<int>(tree_.size());
}

void BranchSet::Forget(Model& model) {
  for (const auto& [branch, computed] : reached_) {
    model.Truncate(HeldOf(branch).sequence, HeldOf(branch).computed);
  }
  reached_.clear();
  reached_next_ = next_;
}

int64_t BranchSet::pages(const KvMemory& memory, int more) const {
  int64_t pages = 0;
  for (size_t i = 0; i < branches_.size(); ++i) {
    const Branch& b = branches_[i];
    if (b.life == 0) continue;
    const int most = std::min(capacity_, static_cast<int>(b.tokens.size()) + more);
    const bool held = i < held_.size() && held_[i].life == b.life;
    pages += memory.PagesOf(held ? held_[i].computed : 0, most);
    if (!held || held_[i].sequence < 0) pages += memory.state.most();
  }
  return std::max<int64_t>(pages, 0);
}

int64_t BranchSet::PagesOf(const KvMemory& memory, int rows) const {
  int64_t pages = 0;
  ForMissing(next_, [&](int branch, int first, int size) {
    const int at = std::min(HeldOf(branch).computed, first);
    const int end = std::min(size, at + rows);
    pages += memory.PagesOf(at, end);
    rows -= end - at;
    return rows > 0;
  });
  if (!tree_.empty()) pages += memory.PagesOf(0, std::min(rows, kMaxTreeRows));
  return pages;
}

void BranchSet::Evict(Model& model) {
  for (Held& held : held_) {
    if (held.sequence >= 0) model.FreeSequence(held.sequence);
    held.sequence = -1;
    held.computed = 0;
  }
}

// ---- A model by itself ----

namespace {

class ModelHost final : public BranchHost {
 public:
  ModelHost(Model& model, int max_rows) : model_(model), max_rows_(std::max(max_rows, 2)) {}

  KvMemory memory() const override { return model_.kv_memory(); }
  void Join(std::shared_ptr<BranchSet> set) override { sets_.push_back(std::move(set)); }
  void Leave(const BranchSet& set) override {
    std::erase_if(sets_, [&](const std::shared_ptr<BranchSet>& one) {
      if (&*one != &set) return false;
      one->Evict(model_);
      return true;
    });
  }

  Status Run(BranchSet& set) override {
    if (Status status = set.Open(model_); !status.ok()) return status;
    while (!set.done()) {
      StopScope::Check();
      rows_.clear();
      set.AddRows(max_rows_, rows_, [](size_t nth) { return static_cast<int32_t>(nth); });
      ModelCall call;
      call.rows = rows_;
      call.logits = set.buffer();
      ModelTap tap{.layer = ModelTap::kFinal, .states = {}};
      if (set.hidden() > 0) {
        states_.resize(rows_.size() * set.hidden());
        tap.states = states_;
        call.taps = {&tap, 1};
      }
      if (Status status = model_.Run(call); !status.ok()) {
        set.Forget(model_);
        return status;
      }
      CallAnswers answers;
      answers.states = states_;
      answers.hidden = set.hidden();
      answers.rows = rows_;
      set.Ran([](size_t) { return std::span<const float>(); },
              [&](size_t nth) { return answers.States(static_cast<int32_t>(nth)); });
    }
    return {};
  }

 private:
  Model& model_;
  const int max_rows_;
  std::vector<Row> rows_;
  std::vector<float> states_;
  std::vector<std::shared_ptr<BranchSet>> sets_;
};

}  // namespace

// ---- Branches ----

Branches::Branches(std::unique_ptr<BranchHost> own, BranchHost* host, const Model& model,
                   std::vector<TokenId> prompt, int capacity, bool states)
    : own_(std::move(own)),
      host_(host != nullptr ? *host : *own_),
      prompt_(std::move(prompt)),
      set_(std::make_shared<BranchSet>(capacity, model.info().vocabulary_size,
                                       states ? model.info().hidden : 0)) {
  host_.Join(set_);
}

Branches::Branches(Model& model, std::vector<TokenId> prompt, int capacity, int max_rows)
    : Branches(std::make_unique<ModelHost>(model, max_rows), nullptr, model, std::move(prompt),
               capacity, false) {}

Branches::Branches(BranchHost* host, Model& model, std::vector<TokenId> prompt, int capacity,
                   bool states)
    : Branches(host != nullptr ? nullptr : std::make_unique<ModelHost>(model, 256), host, model,
               std::move(prompt), capacity, states) {}

Branches::~Branches() { host_.Leave(*set_); }

Status Branches::Start() {
  // States of tokens come with their logits, which are wanted a few at a time.
  constexpr size_t kTogether = 32;
  const size_t together = set_->hidden() == 0 ? prompt_.size() : kTogether;
  const int root[] = {set_->Make({})};
  for (size_t done = 0; done < prompt_.size();) {
    const size_t count = std::min(together, prompt_.size() - done);
    for (size_t i = 0; i < count; ++i) Append(root[0], prompt_[done + i]);
    const int answers[] = {set_->hidden() == 0 ? 1 : static_cast<int>(count)};
    if (Status status = RunTails(root, answers); !status.ok()) return status;
    const auto last = static_cast<size_t>(answers[0]) - 1;
    prompt_logits_.assign(logits(last).begin(), logits(last).end());
    for (size_t i = 0; i < count && set_->hidden() > 0; ++i) {
      prompt_states_.insert(prompt_states_.end(), states(i).begin(), states(i).end());
    }
    done += count;
  }
  return {};
}

void Branches::Seek(int branch, std::span<const TokenId> output) {
  std::vector<TokenId> tokens = prompt_;
  tokens.insert(tokens.end(), output.begin(), output.end());
  set_->Seek(branch, tokens);
}

Status Branches::Run(std::span<const int> branches) {
  set_->Want(branches);
  return host_.Run(*set_);
}

Status Branches::RunTails(std::span<const int> branches, std::span<const int> answers) {
  set_->Want(branches, answers);
  return host_.Run(*set_);
}

Status Branches::LookBehind(int branch, std::span<const TokenId> tokens) {
  std::vector<TreeToken> tree;
  for (const TokenId token : tokens) tree.push_back({.token = token});
  return LookBehind(branch, std::move(tree));
}

Status Branches::LookBehind(int branch, std::vector<TreeToken> tree) {
  set_->WantTree(branch, std::move(tree));
  return host_.Run(*set_);
}

}  // namespace pawl
