// Drafts in a batch: which outputs get some, the rows that verify them, and the walk.
//
// The rule. The token at a position is a function of the logits there, the mask, the seed and the
// position, and of nothing else; forced and closing tokens are functions of the state.
// OutputBuilder decides all of that, and it does not know of drafts. A tree only means that the
// logits behind some tokens are at hand already: as long as what OutputBuilder takes is a path in
// the tree, it is given the next logits from there, and where it leaves the tree the step ends. So
// the output is the one without drafts, whatever was drafted, and there is nothing to roll back.
//
// Rows. A node's row runs under the node's own mask, so the logits that the head computes are those
// that the state there may need, the last one included. The likeliest chain runs as plain rows of
// its sequence, and the rest as a tree next to it: where the output goes along the chain, keys and
// values stay where they are.
//
// Failures. A call with drafts may fail because there is no memory for the tree, or because a row
// that no output comes by has logits that are not numbers. BatchEngine makes such a call again
// without drafts. An exception while drafts are made means a call without drafts.
#include "src/decode/draft/verifier.h"

#include <algorithm>
#include <string>

#include "src/base/failure.h"
#include "src/decode/draft/source.h"

namespace pawl {
namespace {

// Of the time for which a device needs nothing, what draft models may take: the head runs in it
// too, and it waits for them.
constexpr double kShareOfWindow = 0.5;
// Of context_of_all_: the call before read a prompt.
constexpr int64_t kBehindPrompt = -2;
// How fast what is known of this time falls and grows.
constexpr double kWindowFalls = 0.5, kWindowGrows = 1.0 / 16;

// What is known of a constraint, for drafts, which are made on the thread that may not wait. A
// place of which the mask is not known is none to draft for.
class KnownView final : public LoopConstraint {
 public:
  explicit KnownView(std::shared_ptr<const LoopConstraint> of)
      : of_(std::move(of)), known_(of_->known()) {}
  bool knows_place() const { return known_.place; }

  Place Look() const override { return known_.at; }
  std::shared_ptr<const Mask> mask() const override { return known_.at.mask; }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    std::shared_ptr<const LoopConstraint> next = of_->KnownNext(token);
    if (next == nullptr) return nullptr;
    auto view = std::make_shared<KnownView>(std::move(next));
    return view->knows_place() ? view : nullptr;
  }
  bool exact() const override { return of_->exact(); }
  bool accepting() const override { return known_.at.accepting; }
  std::string forced(size_t limit) const override { return known_.at.forced.substr(0, limit); }
  std::optional<std::vector<TokenId>> Completion(int) const override { return std::nullopt; }
  int CompletionLength(int) const override { return known_.close.value_or(-1); }

 private:
  const std::shared_ptr<const LoopConstraint> of_;
  const Known known_;
};

}  // namespace

OutputDrafts::OutputDrafts(OutputBuilder& run, const Drafter& drafter)
    : run_(run),
      lossy_(drafter.options().lossy),
      rejects_(drafter.rules().rejects()),
      tree_rule_(drafter.rules(), run.options().sampling.seed),
      rule_([this](Sampler& sampler, std::span<const float> logits, const Mask* mask,
                   const TokenHistory& history, TokenId sampled) {
        return rejects_ ? ByRule(history) : Probable(sampler, logits, mask, history, sampled);
      }) {}

Result<TokenId> OutputDrafts::ByRule(const TokenHistory& history) {
  return tree_rule_.Next(
      reached_, history.output.size(),
      [this](int node, std::vector<TokenMass>& law) { return LawOf(node, law); });
}

Result<bool> OutputDrafts::LawOf(int index, std::vector<TokenMass>& law) const {
  const DraftTree& tree = drafted_->tree;
  const DraftNode& node = tree.nodes[static_cast<size_t>(index)];
  std::vector<TokenId> path;
  for (int i = index; i != reached_; i = tree.nodes[static_cast<size_t>(i)].parent) {
    path.push_back(tree.nodes[static_cast<size_t>(i)].token);
  }
  std::reverse(path.begin(), path.end());
  std::optional<float> temperature;
  if (node.at != nullptr) {
    const Constraint::Place place = node.at->LookUnforced();
    temperature = place.temperature;
    // The loop takes what is forced and asks for nothing.
    const bool few = node.mask->count() <= LoopConstraint::kMostSpellings;
    if (!path.empty() && run_.options().skip_forced && few &&
        (node.mask->count() <= 1 || !node.at->forced(LoopConstraint::kForcedLimit).empty())) {
      return false;
    }
  }
  const Status found =
      run_.LawBehind(path, temperature, node.mask.get(),
                     answers_.Logits(node_rows_[static_cast<size_t>(index)].output), law);
  if (!found.ok()) return found.error();
  return true;
}

Result<TokenId> OutputDrafts::Probable(Sampler& sampler, std::span<const float> logits,
                                       const Mask* mask, const TokenHistory& history,
                                       TokenId sampled) {
  if (children_.empty()) return kNoToken;
  Result<TokenId> probable = sampler.ProbableDraft(logits, mask, history, children_, lossy_);
  if (probable.ok() && *probable == sampled) return kNoToken;
  if (probable.ok() && *probable != kNoToken) drafted_->CountLossy();
  return probable;
}

std::unique_ptr<OutputDrafts> DraftVerifier::New(OutputBuilder& run) const {
  if (!run.options().drafts || rests()) return nullptr;
  // What is not a grammar is known only after a question, and this thread may not ask.
  if (!setting_.may_wait && run.at() != nullptr && run.at()->foreign()) return nullptr;
  // A device that draws hands out log-probabilities for a token at a time.
  if (setting_.draws && run.wants_top()) return nullptr;
  // Rules of rejection need the law of a token: one that is no law of its own would be bent.
  if (setting_.drafter->rules().rejects() &&
      (run.options().sampling.stages.mirostat != 0 ||
       (run.at() != nullptr && (!run.at()->exact() || run.at()->prefers())))) {
    return nullptr;
  }
  auto drafts = std::make_unique<OutputDrafts>(run, *setting_.drafter);
  drafts->finds_grammar_ = run.at() != nullptr && setting_.drafter->learns_grammars();
  if (run.at() != nullptr) drafts->fingerprint_ = DraftRequest::kUnknownGrammar;
  return drafts;
}

void DraftVerifier::Prepare(OutputDrafts& drafts) {
  if (asks_first(drafts)) drafts.fingerprint_ = FingerprintOf(drafts.run_.at().get());
}

void DraftVerifier::Begin(OutputDrafts& drafts) {
  const OutputBuilder& run = drafts.run_;
  double seconds = 0;
  {
    Timer timer(seconds);
    drafts.drafted_ = setting_.drafter->Begin({.prompt = run.tokens().first(run.prompt_size()),
                                               .constraint = run.at(),
                                               .grammar = drafts.fingerprint_,
                                               .options = &run.options()});
  }
  setting_.drafter->Spend(seconds);
}

// ---- Trees ----

void DraftVerifier::BeginCall(int64_t pages, int others, bool prompts_wait, bool draws) {
  setting_.drafter->CountCall();
  prompts_wait_ = prompts_wait;
  grown_ = false;
  began_.reset();
  drafted_rows_ = 0;
  const Drafter& drafter = *setting_.drafter;
  overlaps_ = draws && drafter.foresees() &&
              (drafter.options().always ||
               (window_ > 0 && drafter.call_seconds() <= kShareOfWindow * window_));
  tasks_.clear();
  pages_ = pages;
  rows_ = others;
  outputs_ = 0;
  context_ = 0;
  // The first call behind a prompt finds its weights in no cache. Others are like those that drafts
  // save.
  const bool behind_prompt = context_of_all_ == -1 && curve_.known();
  context_of_all_ = others > 0 ? -1 : behind_prompt ? kBehindPrompt : 0;
}

void DraftVerifier::Offer(OutputDrafts* drafts, const OutputBuilder& run, SequenceId sequence,
                          int length, int rows) {
  ++outputs_;
  rows_ += rows;
  if (!run.asked()) context_of_all_ = -1;
  if (context_of_all_ >= 0) context_of_all_ += length + rows;
  if (drafts == nullptr) return;
  drafts->nodes_.clear();
  drafts->visited_.clear();
  if (drafts->drafted_ == nullptr) return;
  drafts->drafted_->tree.nodes.clear();
  if (rows != static_cast<int>(run.tokens().size()) - length || run.asks()) return;
  // The last token of the budget needs no row.
  const int depth = run.tokens_left() - 1;
  const int nodes = std::min(setting_.drafter->options().nodes, kMaxTreeRows - rows);
  const KvMemory memory = model_.kv_memory();
  const int64_t needed = 2 * Pages(nodes, memory.page_positions) + 2 +
                         memory.state.ForRows(rows + nodes) - memory.state.ForRows(0);
  if (depth <= 0 || nodes <= 0 || needed > pages_) return;
  std::shared_ptr<const LoopConstraint> at = run.at();
  if (at != nullptr && !setting_.may_wait) {
    if (auto simpler = at->for_drafts(); simpler != nullptr) at = std::move(simpler);
    auto view = std::make_shared<KnownView>(std::move(at));
    if (!view->knows_place()) return;
    at = std::move(view);
  }
  const bool free_text = at == nullptr;
  pages_ -= needed;
  context_ += length + rows;
  tasks_.push_back({.request = drafts->drafted_.get(),
                    .tokens = run.tokens(),
                    .prompt = run.prompt_size(),
                    .at = std::move(at),
                    .mask = run.mask(),
                    .most_nodes = nodes,
                    .most_depth = depth,
                    .target = {&model_, sequence, length},
                    .free_text = free_text});
}

bool DraftVerifier::Grow() {
  if (tasks_.empty()) return false;
  const bool weighs = !setting_.drafter->options().always;
  if (weighs && (prompts_wait_ || !curve_.known())) return false;
  setting_.drafter->Draft(tasks_, {.most_nodes = setting_.max_rows - rows_,
                                   .rows = rows_,
                                   .context = static_cast<int>(context_ / std::ssize(tasks_)),
                                   .curve = weighs ? &curve_ : nullptr,
                                   .overlaps = overlaps_});
  grown_ = true;
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const DraftTask& task) { return task.request->tree.drafts() > 0; });
}

void DraftVerifier::Drop(OutputDrafts& drafts) {
  drafts.nodes_.clear();
  drafts.visited_.clear();
  if (drafts.drafted_ != nullptr) drafts.drafted_->tree.nodes.clear();
}

void DraftVerifier::GiveUp(OutputDrafts& drafts) {
  Drop(drafts);
  drafts.drafted_.reset();
}

// ---- Rows ----

int DraftVerifier::AddRows(OutputDrafts& drafts, const Where& where, std::vector<Row>& rows) {
  drafts.nodes_.clear();
  drafts.plain_rows_ = where.pending;
  if (!drafts.has_tree()) return 0;
  const DraftTree& tree = drafts.drafted_->tree;
  const int root = where.length + where.pending - 1;  // its position
  drafts.node_rows_.assign(tree.nodes.size(), {});
  OutputDrafts::NodeRow& first = drafts.node_rows_[0];
  first.row = where.pending - 1;
  first.path = (uint64_t{1} << (where.pending - 1)) - 1;
  first.output = where.root_output;
  const auto add = [&](int index, bool plain) {
    const DraftNode& node = tree.nodes[static_cast<size_t>(index)];
    const OutputDrafts::NodeRow& parent = drafts.node_rows_[static_cast<size_t>(node.parent)];
    OutputDrafts::NodeRow& mine = drafts.node_rows_[static_cast<size_t>(index)];
    const auto nth = static_cast<int>(drafts.nodes_.size());
    mine.row = where.pending + nth;
    mine.path = parent.path | uint64_t{1} << parent.row;
    mine.output = where.next_output + nth;
    Row row = {.token = node.token,
               .position = root + node.depth,
               .sequence = where.sequence,
               .ancestors = plain ? 0 : mine.path,
               .output = mine.output};
    if (!where.draws) row.allowed = drafts.run_.AllowedBy(node.mask.get());
    rows.push_back(row);
    drafts.nodes_.push_back(index);
  };
  for (int i = tree.LikeliestChild(0); i >= 0; i = tree.LikeliestChild(i)) {
    add(i, true);
    ++drafts.plain_rows_;
  }
  for (int i = 1; i < static_cast<int>(tree.nodes.size()); ++i) {
    if (drafts.node_rows_[static_cast<size_t>(i)].output < 0) add(i, false);
  }
  const auto added = static_cast<int>(drafts.nodes_.size());
  counts_.rows += added;
  drafted_rows_ += added;
  return added;
}

void DraftVerifier::Ask(OutputDrafts& drafts, int nth, SampleRequest& wanted) {
  const int index = drafts.nodes_[static_cast<size_t>(nth)];
  OutputDrafts::NodeRow& row = drafts.node_rows_[static_cast<size_t>(index)];
  const Status asked = Guarded([&]() -> Status {
    const DraftTree& tree = drafts.drafted_->tree;
    const DraftNode& node = tree.nodes[static_cast<size_t>(index)];
    wanted.unwanted = !node.legal || (node.mask != nullptr && node.mask->count() == 0);
    if (wanted.unwanted) return {};
    std::vector<TokenId> path;
    for (int i = index; i > 0; i = tree.nodes[static_cast<size_t>(i)].parent) {
      path.push_back(tree.nodes[static_cast<size_t>(i)].token);
    }
    std::reverse(path.begin(), path.end());
    std::optional<float> temperature;
    if (node.at != nullptr) temperature = node.at->LookUnforced().temperature;
    wanted = drafts.run_.RequestBehind(path, temperature, node.mask, row.seen);
    return {};
  });
  if (asked.ok()) return;
  wanted.unwanted = true;
  row.failure = CopyOf(asked.error());
}

// ---- While a device computes ----

void DraftVerifier::GoOn(Clock::time_point began) {
  began_ = began;
  if (!overlaps_ || !grown_) return;
  const bool always = setting_.drafter->options().always;
  (void)Guarded([&]() -> Status {
    setting_.drafter->GoOn(tasks_, [&](double seconds) {
      const std::chrono::duration<double> passed = Clock::now() - began;
      return always || passed.count() + seconds <= kShareOfWindow * window_;
    });
    return {};
  });
}

void DraftVerifier::Answered() {
  if (!began_.has_value() || context_of_all_ < 0 || outputs_ == 0) return;
  const std::chrono::duration<double> passed = Clock::now() - *began_;
  const double change = passed.count() - window_;
  window_ += change * (window_ <= 0 ? 1.0 : change < 0 ? kWindowFalls : kWindowGrows);
}

// ---- The walk ----

Result<bool> DraftVerifier::Take(OutputDrafts& drafts, const CallAnswers& answers,
                                 const std::function<Result<bool>()>& look) const {
  drafts.took_ = true;
  drafts.reached_ = 0;
  if (drafts.rejects_) drafts.tree_rule_.Begin(drafts.drafted_->tree);
  return TakeFrom(drafts, answers, look);
}

Result<bool> DraftVerifier::TakeOn(OutputDrafts& drafts, const CallAnswers& answers,
                                   const std::function<Result<bool>()>& look) const {
  drafts.waits_ = false;
  drafts.visited_.pop_back();
  if (!Walk(drafts, drafts.waits_at_)) return true;
  return TakeFrom(drafts, answers, look);
}

bool DraftVerifier::Walk(OutputDrafts& drafts, size_t before) {
  const std::span<const TokenId> tokens = drafts.run_.tokens();
  // A token was taken, and perhaps forced ones behind it.
  for (size_t i = before; i < tokens.size(); ++i) {
    drafts.visited_.push_back({drafts.reached_, tokens[i], i == before});
    const int child = drafts.drafted_->tree.Child(drafts.reached_, tokens[i]);
    if (child < 0 || (drafts.rejects_ && drafts.tree_rule_.left())) return false;
    drafts.reached_ = child;
    drafts.run_.MarkDrafted(i);
  }
  return tokens.size() > before;
}

Result<bool> DraftVerifier::TakeFrom(OutputDrafts& drafts, const CallAnswers& answers,
                                     const std::function<Result<bool>()>& look) const {
  const DraftTree& tree = drafts.drafted_->tree;
  OutputBuilder& run = drafts.run_;
  drafts.answers_ = answers;
  const bool has_rule = drafts.lossy_ > 0 || drafts.rejects_;
  for (;;) {
    const int node = drafts.reached_;
    const size_t before = run.tokens().size();
    OutputDrafts::NodeRow& row = drafts.node_rows_[static_cast<size_t>(node)];
    if (row.failure) return std::move(*row.failure);
    const TokenId drawn =
        answers.drawn() ? answers.tokens[static_cast<size_t>(row.output)] : kNoToken;
    if (answers.drawn() && drawn == kNoToken) {
      return Error{ErrorCode::kInternal, "the mask allows no token", ""};
    }
    if (drafts.lossy_ > 0) tree.ChildrenOf(node, drafts.children_);
    Result<bool> wants =
        answers.drawn() ? run.TakeToken(drawn)
                        : run.Take(answers.Logits(row.output), has_rule ? &drafts.rule_ : nullptr);
    if (wants.ok() && *wants) wants = look();
    const std::span<const TokenId> tokens = run.tokens();
    if (wants.ok() && *wants && run.asks()) {
      // The rest of the look is another thread's. What the tree has behind the token is left, or
      // TakeOn goes on with it.
      if (tokens.size() == before) return wants;
      drafts.visited_.push_back({node, tokens[before], true});
      drafts.waits_ = !drafts.rejects_ && tree.Child(node, tokens[before]) >= 0;
      drafts.waits_at_ = before;
      return wants;
    }
    const bool inside = Walk(drafts, before);
    if (!wants.ok() || !*wants || !inside) return wants;
  }
}

int DraftVerifier::Settle(OutputDrafts& drafts, const CallAnswers& answers, SequenceId sequence,
                          int length, bool ended) {
  drafts.waits_ = false;
  if (!drafts.has_tree() || !std::exchange(drafts.took_, false)) return length;
  Drafter& drafter = *setting_.drafter;
  const DraftTree& tree = drafts.drafted_->tree;
  const bool sees = (drafter.wants_logits() || drafter.wants_all_logits()) && !answers.drawn();
  const auto see = [&](int at, bool visited) {
    if (!sees) return;
    drafter.SeeLogits(*drafts.drafted_, at, tree.nodes[static_cast<size_t>(at)].token,
                      answers.Logits(drafts.node_rows_[static_cast<size_t>(at)].output), visited);
  };
  double seconds = 0;
  {
    Timer timer(seconds);
    if (sees && drafter.wants_all_logits()) {
      for (const int at : drafts.nodes_) {
        if (tree.nodes[static_cast<size_t>(at)].legal) see(at, false);
      }
    }
    for (const auto& [at, came, drawn] : drafts.visited_) {
      see(at, true);
      drafter.Verified(*drafts.drafted_, at, came, drawn);
    }
  }
  const auto node = static_cast<size_t>(drafts.reached_);
  const int accepted = tree.nodes[node].depth;
  counts_.accepted += accepted;
  drafts.visited_.clear();
  const int pending = drafts.node_rows_[0].row + 1;
  const int rows = pending + static_cast<int>(drafts.nodes_.size());
  drafts.nodes_.clear();
  const int row = drafts.node_rows_[node].row;
  bool kept = true;
  if (!ended) {
    Timer timer(seconds);
    if (rows > drafts.plain_rows_) {
      kept = model_.CommitTree(sequence, row).ok();
      if (!kept) model_.Truncate(sequence, length);
    } else if (row + 1 < drafts.plain_rows_) {
      model_.Truncate(sequence, length + accepted);
    }
  }
  drafter.SpendOnCall(seconds);
  return ended || !kept ? length : length + accepted;
}

void DraftVerifier::End(OutputDrafts& drafts, bool failed) {
  if (drafts.drafted_ == nullptr) return;
  OutputBuilder& run = drafts.run_;
  const bool whole = !failed && (run.stop_reason() == StopReason::kEnd ||
                                 run.stop_reason() == StopReason::kClosed);
  // The output is what it is, also where its drafts cannot learn from it.
  (void)Guarded([&]() -> Status {
    std::span<const TokenId> output;
    if (whole) output = run.tokens().subspan(run.prompt_size());
    setting_.drafter->Finish(*drafts.drafted_, output);
    run.stats().drafts = drafts.drafted_->stats();
    return {};
  });
  drafts.drafted_.reset();
}

// Calls in which no prompt is read tell what a row costs.
void DraftVerifier::Learn(int rows, double seconds) {
  if (context_of_all_ < 0 || outputs_ == 0) return;
  curve_.Learn(rows, static_cast<int>(context_of_all_ / outputs_), seconds, drafted_rows_);
}

}  // namespace pawl
