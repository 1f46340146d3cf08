// Drafts in a batch: which requests get some, the rows that verify them, and the walk.
//
// The rule. The token at a position is a function of the logits there, the mask, the seed and the
// position, and of nothing else; forced and closing tokens are functions of the state. OutputRun
// decides all of that, and it does not know of drafts. A tree only means that the logits behind
// some tokens are at hand already: as long as what OutputRun takes is a path in the tree, it is
// given the next logits from there, and where it leaves the tree the step ends. So the output is
// the one without drafts, whatever was drafted, and there is nothing to roll back.
//
// Rows. A node's row runs under the node's own mask, so the logits that the head computes are those
// that the state there may need, the last one included. The likeliest chain runs as plain rows of
// its sequence and the rest as a tree beside it: where the output goes along the chain, keys and
// values stay where they are.
//
// A call with drafts that fails - no memory for the tree, logits that are not numbers in a row that
// no output comes by - is made again without them. An exception while drafts are made means a call
// without drafts.
#include <algorithm>
#include <utility>

#include "src/decode/batch.h"
#include "src/decode/batch_request.h"

namespace pawl {
namespace {

// What is known of a constraint, for drafts, which are made on the thread that may not wait. A
// place of which the mask is not known is none to draft for.
class KnownView : public Constraint {
 public:
  explicit KnownView(std::shared_ptr<const Constraint> of)
      : of_(std::move(of)), known_(of_->known()) {}
  bool knows_place() const { return known_.place; }

  std::shared_ptr<const Mask> mask() const override { return known_.mask; }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    std::shared_ptr<const Constraint> next = of_->KnownAdvance(token);
    if (next == nullptr) return nullptr;
    auto view = std::make_shared<KnownView>(std::move(next));
    return view->knows_place() ? view : nullptr;
  }
  bool exact() const override { return of_->exact(); }
  bool accepting() const override { return known_.accepting; }
  std::string forced(size_t limit) const override {
    return known_.forced == nullptr ? "" : known_.forced->substr(0, limit);
  }
  std::optional<float> temperature() const override { return known_.temperature; }
  std::optional<std::vector<TokenId>> Closing() const override { return std::nullopt; }
  int shortest_close() const override { return known_.close.value_or(-1); }

 private:
  const std::shared_ptr<const Constraint> of_;
  const Known known_;
};

}  // namespace

void BatchEngine::BeginDrafts(Request& request) {
  if (options_.drafter == nullptr || request.ended || !request.run.options().drafts) return;
  // A device that draws hands out log-probabilities for a token at a time.
  if (options_.sample_in_model && model_.samples() && request.run.wants_top()) return;
  request.drafted =
      options_.drafter->Begin({.prompt = request.run.tokens().first(request.run.prompt_size()),
                               .constraint = request.run.at(),
                               .grammar = request.fingerprint,
                               .options = &request.run.options()});
}

// Also a root alone: the sources learn what came there.
bool BatchEngine::HasTree(const Request& request) {
  return request.drafted != nullptr && !request.drafted->tree.nodes.empty();
}

void BatchEngine::DropDrafts(std::span<const Share> shares) {
  for (const Share& share : shares) {
    share.request->draft_rows = 0;
    share.request->visited.clear();
    if (share.request->drafted != nullptr) share.request->drafted->tree.nodes.clear();
  }
}

// Requests whose drafts an exception has left half made get none from here on.
bool BatchEngine::DraftsMade(std::span<const Share> shares) {
  const Result<bool> made = Guarded([&]() -> Result<bool> { return MakeDrafts(shares); });
  if (made.ok()) return *made;
  DropDrafts(shares);
  for (const Share& share : shares) share.request->drafted.reset();
  return false;
}

bool BatchEngine::MakeDrafts(std::span<const Share> shares) {
  Drafter* const drafter = options_.drafter.get();
  if (drafter == nullptr) return false;
  int rows = 0;
  int64_t context = 0;
  for (const Share& share : shares) rows += share.rows;
  const KvMemory memory = model_.kv_memory();
  int64_t pages = memory.available - MissingPages();
  const int page = memory.page_positions;
  draft_tasks_.clear();
  for (const Share& share : shares) {
    Request& request = *share.request;
    request.draft_rows = 0;
    request.visited.clear();
    if (request.drafted == nullptr) continue;
    request.drafted->tree.nodes.clear();
    if (share.rows != request.pending()) continue;
    // The last token of the budget needs no row.
    const int depth = request.run.tokens_left() - 1;
    const int nodes = std::min(drafter->options().nodes, kMaxTreeRows - share.rows);
    const int64_t needed = 2 * Pages(nodes, page) + 2;
    if (depth <= 0 || nodes <= 0 || needed > pages) continue;
    std::shared_ptr<const Constraint> at = request.run.at();
    if (at != nullptr && !MayWait()) {
      auto view = std::make_shared<KnownView>(std::move(at));
      if (!view->knows_place()) continue;
      at = std::move(view);
    }
    pages -= needed;
    context += request.length + share.rows;
    draft_tasks_.push_back({.request = request.drafted.get(),
                            .tokens = request.run.tokens(),
                            .prompt = request.run.prompt_size(),
                            .at = std::move(at),
                            .mask = request.run.mask(),
                            .most_nodes = nodes,
                            .most_depth = depth});
  }
  if (draft_tasks_.empty()) return false;
  const bool weighs = !drafter->options().always;
  if (weighs && !std::exchange(curve_tried_, true)) (void)curve_.Measure(model_);
  drafter->Draft(draft_tasks_,
                 {.most_nodes = options_.max_rows - rows,
                  .rows = rows,
                  .context = static_cast<int>(context / static_cast<int64_t>(draft_tasks_.size())),
                  .curve = weighs && curve_.known() ? &curve_ : nullptr});
  return std::any_of(draft_tasks_.begin(), draft_tasks_.end(),
                     [](const DraftTask& task) { return task.request->tree.drafts() > 0; });
}

void BatchEngine::AddDraftRows(Request& request, int pending, bool draws) {
  request.draft_rows = 0;
  request.plain_rows = pending;
  if (!HasTree(request)) return;
  const DraftTree& tree = request.drafted->tree;
  const int root = request.length + pending - 1;  // its position
  request.node_rows.assign(tree.nodes.size(), {});
  const auto path_of_plain = [](int row) { return (uint64_t{1} << row) - 1; };
  request.node_rows[0].row = pending - 1;
  request.node_rows[0].path = path_of_plain(pending - 1);
  request.node_rows[0].output = rows_.back().output;
  const auto add = [&](int index, bool plain) {
    const DraftNode& node = tree.nodes[static_cast<size_t>(index)];
    const Request::NodeRow& parent = request.node_rows[static_cast<size_t>(node.parent)];
    Request::NodeRow& mine = request.node_rows[static_cast<size_t>(index)];
    mine.row = pending + request.draft_rows;
    mine.path = parent.path | uint64_t{1} << parent.row;
    mine.output = static_cast<int32_t>(asking_.size());
    Row row = {.token = node.token,
               .position = root + node.depth,
               .sequence = request.sequence,
               .ancestors = plain ? 0 : mine.path,
               .output = mine.output};
    if (!draws) row.allowed = request.run.AllowedBy(node.mask.get());
    rows_.push_back(row);
    asking_.push_back({&request, index});
    ++request.draft_rows;
  };
  for (int i = tree.LikeliestChild(0); i >= 0; i = tree.LikeliestChild(i)) {
    add(i, true);
    ++request.plain_rows;
  }
  for (int i = 1; i < static_cast<int>(tree.nodes.size()); ++i) {
    if (request.node_rows[static_cast<size_t>(i)].output < 0) add(i, false);
  }
  stats_.drafts += request.draft_rows;
}

// How the model is to draw the token behind a node.
void BatchEngine::AskBehind(Request& request, int index, SampleRequest& wanted) const {
  const DraftTree& tree = request.drafted->tree;
  const DraftNode& node = tree.nodes[static_cast<size_t>(index)];
  if (!node.legal || (node.mask != nullptr && node.mask->count() == 0)) {
    wanted.unwanted = true;
    return;
  }
  std::vector<TokenId> path;
  for (int i = index; i > 0; i = tree.nodes[static_cast<size_t>(i)].parent) {
    path.push_back(tree.nodes[static_cast<size_t>(i)].token);
  }
  std::reverse(path.begin(), path.end());
  Request::NodeRow& row = request.node_rows[static_cast<size_t>(index)];
  wanted = request.run.RequestBehind(path, node.at.get(), node.mask, row.seen);
}

Result<bool> BatchEngine::TakeDrafted(Request& request) {
  const bool draws = request.drawn != kNoToken;
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  request.logits = nullptr;
  request.drawn = kNoToken;
  const DraftTree& tree = request.drafted->tree;
  const float lossy = options_.drafter->options().lossy;
  std::vector<TokenId> children;
  request.took_drafted = true;
  request.reached = 0;
  for (int node = 0;;) {
    const size_t before = request.run.tokens().size();
    const auto output = static_cast<size_t>(request.node_rows[static_cast<size_t>(node)].output);
    if (auto& failure = request.node_rows[static_cast<size_t>(node)].failure; failure) {
      return std::move(*failure);
    }
    if (draws && tokens_[output] == kNoToken) {
      return Error{ErrorCode::kInternal, "the mask allows no token", ""};
    }
    if (lossy > 0) tree.ChildrenOf(node, children);
    Result<bool> wants =
        draws ? request.run.TakeToken(tokens_[output])
              : request.run.TakeOrDrafted(std::span(logits_).subspan(output * width, width),
                                          children, lossy);
    if (wants.ok() && *wants) wants = LookHere(request);
    if (request.run.came_lossy()) request.drafted->CountLossy();
    // A token was taken, and perhaps forced ones behind it.
    const std::span<const TokenId> tokens = request.run.tokens();
    bool inside = tokens.size() > before;
    if (wants.ok() && *wants && request.run.asks()) {
      // The rest of the look is another thread's. What the tree has behind the token is left.
      if (inside) request.visited.push_back({node, tokens[before]});
      return wants;
    }
    for (size_t i = before; inside && i < tokens.size(); ++i) {
      request.visited.push_back({node, tokens[i]});
      const int child = tree.Child(node, tokens[i]);
      inside = child >= 0;
      if (!inside) break;
      request.reached = node = child;
      request.run.MarkDrafted(i);
    }
    if (!wants.ok() || !*wants || !inside) return wants;
  }
}

void BatchEngine::SettleDrafts(Request& request) {
  if (!HasTree(request) || !std::exchange(request.took_drafted, false)) return;
  Drafter& drafter = *options_.drafter;
  const DraftTree& tree = request.drafted->tree;
  const bool sees = drafter.wants_logits() && !(options_.sample_in_model && model_.samples());
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  for (const auto& [at, came] : request.visited) {
    if (sees) {
      const auto output = static_cast<size_t>(request.node_rows[static_cast<size_t>(at)].output);
      drafter.SeeLogits(*request.drafted, at, tree.nodes[static_cast<size_t>(at)].token,
                        std::span(logits_).subspan(output * width, width));
    }
    drafter.Verified(*request.drafted, at, came);
  }
  const int node = request.reached;
  const int accepted = tree.nodes[static_cast<size_t>(node)].depth;
  stats_.accepted += accepted;
  request.visited.clear();
  const int pending = request.node_rows[0].row + 1;
  const int rows = pending + request.draft_rows;
  request.draft_rows = 0;
  if (request.ended) return;  // its sequence goes
  const int row = request.node_rows[static_cast<size_t>(node)].row;
  const int length = request.length + accepted;
  if (rows > request.plain_rows) {
    if (model_.CommitTree(request.sequence, row).ok()) {
      request.length = length;
    } else {
      model_.Truncate(request.sequence, request.length);
    }
  } else {
    if (row + 1 < request.plain_rows) model_.Truncate(request.sequence, length);
    request.length = length;
  }
}

void BatchEngine::FinishDrafts(Request& request) {
  if (request.drafted == nullptr) return;
  const bool whole = !request.error && (request.run.stop_reason() == StopReason::kEnd ||
                                        request.run.stop_reason() == StopReason::kClosed);
  // The output is what it is, also where its drafts cannot learn from it.
  (void)Guarded([&]() -> Status {
    std::span<const TokenId> output;
    if (whole) output = request.run.tokens().subspan(request.run.prompt_size());
    options_.drafter->Finish(*request.drafted, output);
    request.run.stats().drafts = request.drafted->stats();
    return {};
  });
  request.drafted.reset();
}

// Calls in which nobody reads a prompt tell what a row costs.
void BatchEngine::LearnCost(std::span<const Share> shares, double seconds) {
  if (!curve_.known()) return;
  int64_t context = 0;
  for (const Share& share : shares) {
    if (!share.request->run.asked()) return;
    context += share.request->length + share.rows;
  }
  curve_.Learn(static_cast<int>(rows_.size()),
               static_cast<int>(context / static_cast<int64_t>(shares.size())), seconds);
}

}  // namespace pawl
