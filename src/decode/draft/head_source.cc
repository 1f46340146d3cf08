// A trained head of the model (src/model/draft_head.h) drafts, on the model's own states.
//
// EAGLE-3 is asked node by node: a row of its layer for each, behind the rows of the nodes above
// (ModelCall::keep_tree). The rows of the output that have not run yet stand in front of the first
// node, one call each, because their states are the head's own too. Hydra is asked node by node
// too, with the node's path. Medusa's guesses depend on the last state alone, so a step is asked
// once for a tree.
//
// The first child of a node is what the output would draw from the head's logits. The next
// likeliest tokens come behind it, as in the trees of both papers; the drafter's heap decides which
// of them are verified. Under a rule of rejection the children are drawn from the head's law alone.
//
// Where the model has several heads, calls of one end what another one has in its tree. It then
// runs the path to a node again, with the states that it knows, in one call.
#include <algorithm>
#include <span>
#include <utility>

#include "src/decode/draft/guess_drawer.h"
#include "src/decode/draft/model_source.h"

namespace pawl {
namespace {

constexpr size_t kMostHeadCalls = 16, kMostHeadPending = 8, kMostHeadChildren = 4;
constexpr uint32_t kHeadDepths = 8;

class HeadSource : public DraftSource {
 public:
  HeadSource(const DraftSetting& setting, int number) : setting_(setting), number_(number) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override;
  const DraftSetting& setting() const { return setting_; }
  int number() const { return number_; }

 private:
  const DraftSetting& setting_;
  const int number_;  // in ModelInfo::draft_heads
};

class HeadFollower : public DraftSession {
 public:
  HeadFollower(HeadSource& source, const DraftRequest& request)
      : source_(source), drawer_(source.setting(), request.output_options(), 3) {}

  // a: one more than the number of the node. Node 0 is the root. b: the depth.
  DraftCursor Root() override {
    nodes_.assign(1, {});
    steps_.clear();
    pending_states_.clear();
    rows_ = 0;
    calls_ = 0;
    return {1, 0};
  }
  DraftCursor Next(DraftCursor at, TokenId token) override {
    if (at.a == 0 || nodes_[at.a - 1].row < 0) return {};
    nodes_.push_back({.parent = at.a - 1, .token = token});
    return {static_cast<uint32_t>(nodes_.size()), at.b + 1};
  }

  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    if (cursor.a == 0 || cursor.b >= kHeadDepths || place.target == nullptr) return;
    const ModelInfo& info = place.target->model->info();
    const auto number = static_cast<size_t>(source_.number());
    if (number >= info.draft_heads.size() || place.target->length < 1) return;
    const std::span<const float> logits = info.draft_heads[number].steps > 0
                                              ? AskStep(place, cursor.a - 1)
                                              : AskNode(place, cursor.a - 1);
    if (logits.empty()) return;
    drawer_.Draw(place, logits, guesses_);
    std::erase_if(guesses_, [&](TokenId token) { return !Known(logits[Index(token)]); });
    if (!source_.setting().rules.rejects()) AddLikeliest(place, logits);
    const size_t margin = Margin(logits);
    for (size_t i = 0; i < guesses_.size(); ++i) {
      const size_t column = i == 0 ? margin : std::min<size_t>(i, 3) + kMargins - 1;
      out.push_back(
          {guesses_[i], static_cast<uint8_t>(cursor.b * 8 + column),
           i == 0 ? source_.setting().rules.first_chance(0.6f) : 0.2f / static_cast<float>(i + 1)});
    }
  }

 private:
  static constexpr size_t kMargins = 5;
  struct Node {
    uint32_t parent = 0;
    TokenId token = kNoToken;
    int row = -1;       // of the sequence in the calls of this tree; -1: not asked
    uint64_t path = 0;  // of the row
    int epoch = 0;      // of the call of the row
    std::vector<float> state = {};
  };
  static size_t Index(TokenId token) { return static_cast<size_t>(token); }
  static bool Known(float logit) { return logit > kNoHeadLogit / 2; }

  // Behind what was drawn, the likeliest tokens that may come.
  void AddLikeliest(const DraftPlace& place, std::span<const float> logits) {
    likeliest_.clear();
    const auto end =
        std::min(logits.size(), static_cast<size_t>(source_.setting().vocabulary_size));
    for (size_t t = 0; t < end; ++t) {
      const float logit = logits[t];
      if (likeliest_.size() == kMostHeadChildren && !(logit > likeliest_.back().first)) continue;
      const auto token = static_cast<TokenId>(t);
      // What a mask leaves out has no logit.
      if (place.mask != nullptr &&
          (t / 32 >= place.mask->words().size() || !place.mask->Allows(token))) {
        continue;
      }
      if (!Known(logit)) continue;
      if (likeliest_.size() == kMostHeadChildren) likeliest_.pop_back();
      const auto at =
          std::ranges::find_if(likeliest_, [&](const auto& other) { return logit > other.first; });
      likeliest_.insert(at, {logit, token});
    }
    for (const auto& [logit, token] : likeliest_) {
      if (guesses_.size() >= kMostHeadChildren) break;
      if (std::ranges::find(guesses_, token) == guesses_.end()) guesses_.push_back(token);
    }
  }

  // How far the first guess is from the likeliest other token, as one of kMargins columns.
  size_t Margin(std::span<const float> logits) const {
    if (likeliest_.size() < 2 || guesses_.empty() || guesses_[0] != likeliest_[0].second) return 0;
    const float margin = logits[Index(likeliest_[0].second)] - likeliest_[1].first;
    constexpr float kSteps[kMargins - 1] = {0.5f, 1.5f, 3, 6};
    return static_cast<size_t>(
        std::ranges::count_if(kSteps, [&](float at) { return margin > at; }));
  }

  // ---- EAGLE-3, blocks of the model's own ----

  std::span<const float> AskNode(const DraftPlace& place, uint32_t index) {
    const auto pending = place.tokens.size() - static_cast<size_t>(place.target->length);
    if (calls_ >= kMostHeadCalls || pending < 1 || pending > kMostHeadPending) return {};
    const Node& parent = nodes_[nodes_[index].parent];
    if (index > 0) {
      if (rows_ >= kMaxTreeRows) return {};
      const auto position = static_cast<int32_t>(place.tokens.size() + place.path.size() - 1);
      const uint64_t path = parent.path | uint64_t{1} << parent.row;
      if (parent.epoch == epoch_ &&
          !Run(place, nodes_[index], parent.state, position, path, true).empty()) {
        return logits_;
      }
      return place.target->model->info().draft_heads.size() > 1 ? RunAgain(place, index)
                                                                : std::span<const float>();
    }
    std::vector<float> state;
    for (size_t i = 0; i < pending; ++i) {
      const auto at = static_cast<size_t>(place.target->length) + i;
      nodes_[0].token = place.tokens[at];
      const bool last = i + 1 == pending;
      const uint64_t path = (uint64_t{1} << i) - 1;
      if (Run(place, nodes_[0], state, static_cast<int32_t>(at), path, last).empty()) return {};
      state = nodes_[0].state;
      pending_states_.push_back(state);
    }
    return logits_;
  }

  // The rows from the last one that the model has run to the node, in one call.
  std::span<const float> RunAgain(const DraftPlace& place, uint32_t index) {
    if (calls_ > kMostHeadCalls) return {};
    const auto base = static_cast<size_t>(place.target->length);
    const size_t pending = place.tokens.size() - base;
    std::vector<uint32_t> path;
    for (uint32_t i = index; i > 0; i = nodes_[i].parent) path.push_back(i);
    std::reverse(path.begin(), path.end());
    if (pending + path.size() > static_cast<size_t>(kMaxTreeRows)) return {};
    std::vector<Row> rows;
    std::vector<float> before;
    for (size_t i = 0; i < pending + path.size(); ++i) {
      const bool written = i < pending;
      rows.push_back({.token = written ? place.tokens[base + i] : nodes_[path[i - pending]].token,
                      .position = static_cast<int32_t>(base + i),
                      .sequence = place.target->sequence});
      if (i + 1 == pending + path.size()) break;
      const std::vector<float>& state =
          written ? pending_states_[i] : nodes_[path[i - pending]].state;
      before.insert(before.end(), state.begin(), state.end());
    }
    ++epoch_;
    std::vector<float> states;
    if (!Call(place, rows, before, true, false, states)) return {};
    rows_ = static_cast<int>(rows.size());
    nodes_[0].row = static_cast<int>(pending) - 1;
    nodes_[0].epoch = epoch_;
    for (size_t i = 0; i < path.size(); ++i) {
      Node& node = nodes_[path[i]];
      node.row = static_cast<int>(pending + i);
      node.path = (uint64_t{1} << (pending + i)) - 1;
      node.epoch = epoch_;
    }
    nodes_[index].state.assign(states.end() - place.target->model->info().hidden, states.end());
    return logits_;
  }

  // One row. `before`: the head's state in front of it; empty: the model's. Not empty where it ran.
  std::span<const float> Run(const DraftPlace& place, Node& node, std::span<const float> before,
                             int32_t position, uint64_t path, bool answers) {
    Row row = {.token = node.token,
               .position = position,
               .sequence = place.target->sequence,
               .ancestors = path};
    if (!Call(place, {&row, 1}, before, answers, path != 0, state_)) {
      // Another source's calls ended the tree, or memory is short.
      if (place.target->model->info().draft_heads.size() < 2) calls_ = kMostHeadCalls;
      node.row = -1;
      return {};
    }
    node.row = rows_++;
    node.path = path;
    node.epoch = epoch_;
    node.state = state_;
    return logits_;
  }

  // A call of the head. `before`: the states in front of the last rows. False where it failed.
  bool Call(const DraftPlace& place, std::span<Row> rows, std::span<const float> before,
            bool answers, bool keep_tree, std::vector<float>& states) {
    Model& model = *place.target->model;
    logits_.resize(static_cast<size_t>(model.info().vocabulary_size));
    states.resize(rows.size() * static_cast<size_t>(model.info().hidden));
    rows.back().output = answers ? 0 : -1;
    if (place.mask != nullptr) rows.back().allowed = place.mask->words();
    const int layers[] = {model.info().layers + source_.number()};
    const ModelTap tap[] = {{layers[0] + 1, states}};
    ModelCall call;
    call.rows = rows;
    call.logits = logits_;
    call.layers = layers;
    call.inputs = before;
    call.taps = tap;
    call.keep_tree = keep_tree;
    ++calls_;
    return model.Run(call).ok();
  }

  // ---- Medusa and Hydra ----

  std::span<const float> AskStep(const DraftPlace& place, uint32_t index) {
    Model& model = *place.target->model;
    const auto base = static_cast<size_t>(place.target->length);
    const size_t rows = place.tokens.size() - base + place.path.size();
    const ModelInfo::DraftHead& head =
        model.info().draft_heads[static_cast<size_t>(source_.number())];
    if (rows < 1 || rows > static_cast<size_t>(head.steps)) return {};
    nodes_[index].row = 0;
    if (steps_.size() < rows) steps_.resize(rows);
    const bool same = head.name == "Medusa";
    std::vector<float>& logits = same ? steps_[rows - 1] : logits_;
    if (same && !logits.empty()) return logits;
    if (!same && calls_++ >= kMostHeadCalls) return {};
    call_rows_.clear();
    for (size_t i = base; i < base + rows; ++i) {
      const bool written = i < place.tokens.size();
      call_rows_.push_back(
          {.token = written ? place.tokens[i] : place.path[i - place.tokens.size()],
           .position = static_cast<int32_t>(i),
           .sequence = place.target->sequence});
    }
    call_rows_.back().output = 0;
    if (!same && place.mask != nullptr) call_rows_.back().allowed = place.mask->words();
    logits.resize(static_cast<size_t>(model.info().vocabulary_size));
    const int layers[] = {model.info().layers + source_.number()};
    ModelCall call;
    call.rows = call_rows_;
    call.logits = logits;
    call.layers = layers;
    if (!model.Run(call).ok()) logits.clear();
    return logits;
  }

  HeadSource& source_;
  GuessDrawer drawer_;
  std::vector<Node> nodes_;
  std::vector<std::vector<float>> steps_;           // logits of this tree, by step
  std::vector<std::vector<float>> pending_states_;  // behind the rows up to the root
  int rows_ = 0;                                    // in the calls of this tree
  int epoch_ = 0;                                   // of the rows that the model keeps
  size_t calls_ = 0;
  std::vector<TokenId> guesses_;
  std::vector<std::pair<float, TokenId>> likeliest_;
  std::vector<float> logits_, state_;
  std::vector<Row> call_rows_;
};

std::unique_ptr<DraftSession> HeadSource::Follow(const DraftRequest& request) {
  return std::make_unique<HeadFollower>(*this, request);
}

}  // namespace

std::unique_ptr<DraftSource> MakeHeadSource(const DraftSetting& setting, int number) {
  return std::make_unique<HeadSource>(setting, number);
}

}  // namespace pawl
