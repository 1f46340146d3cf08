// The model drafts for itself with some of its layers (self_layers.h tells which).
//
// The calls run on the output's own sequence: the keys and values of the layers that are kept are
// there already, and what the calls write is written again when the drafts are verified. The first
// call of a tree has the pending rows of the output, and each further one adds a row to it
// (ModelCall::keep_tree). The head reads the rows that the grammar leaves. The time that the calls
// take is time of the node (drafter.cc), so the drafter stops where it does not come back.
//
// DEL watches how often each exit is right. It asks each a few times, and one in turn from time to
// time. Its counts come from drafts that were made: the exits that were not asked are not known.
//
// CLaSp looks at the model's states once in a while. Layers are tried on a token behind the last
// one, because rows of one position are branches of a tree, and a tree has a root.
#include <algorithm>
#include <utility>

#include "src/decode/draft/guess_drawer.h"
#include "src/decode/draft/self_layers.h"
#include "src/decode/draft/source.h"
#include "src/decode/generation.h"

namespace pawl {
namespace {

constexpr size_t kMostSelfChain = 8;  // calls for a tree
constexpr size_t kMostExits = 8;
constexpr double kAskedFirst = 8, kMostExitCounts = 256;
constexpr int kAskInTurn = 32, kTriedDrafts = 4;
constexpr double kNewestCall = 1.0 / 16;
constexpr int kClaspTrees = 32;  // for which its layers stay

class SelfSource : public DraftSource {
 public:
  SelfSource(const DraftSetting& setting, const SelfDrafts& drafts)
      : setting_(setting), drafts_(drafts) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override;

  const DraftSetting& setting() const { return setting_; }
  const SelfDrafts& drafts() const { return drafts_; }

  // DEL's exit for a tree.
  ExitChoice Exit(int layers) {
    if (exits_.empty()) {
      const auto most = std::clamp<size_t>(static_cast<size_t>(layers) - 1, 1, kMostExits);
      for (size_t i = 1; i <= most; ++i) {
        const int first = static_cast<int>(i) * layers / static_cast<int>(most + 1);
        exits_.push_back({.layers = static_cast<double>(std::max(1, first))});
      }
      seconds_.assign(exits_.size(), 0);
    }
    const auto least =
        std::ranges::min_element(exits_, {}, [](const ExitCount& exit) { return exit.asked; });
    ++trees_;
    if (least->asked < kAskedFirst) {
      return {static_cast<size_t>(least - exits_.begin()), kTriedDrafts};
    }
    if (trees_ % kAskInTurn == 0) {
      return {static_cast<size_t>(trees_ / kAskInTurn) % exits_.size(), kTriedDrafts};
    }
    // A call takes more than its share of the layers: the head runs too, unless a mask leaves
    // little of it. So what the calls of each exit took decides, where it is known.
    std::vector<ExitCount> priced = exits_;
    for (size_t i = 0; i < exits_.size() && plain_seconds_ > 0; ++i) {
      if (seconds_[i] > 0) priced[i].layers = seconds_[i] / plain_seconds_ * layers;
    }
    return ChooseExit(priced, layers, static_cast<int>(kMostSelfChain));
  }
  int LayersOf(size_t exit) const { return static_cast<int>(exits_[exit].layers); }
  // What a call of one row took, and what one of the whole model takes; 0: not known.
  void Timed(size_t exit, double seconds, double plain) {
    if (exit >= seconds_.size()) return;
    seconds_[exit] += (seconds - seconds_[exit]) * (seconds_[exit] > 0 ? kNewestCall : 1.0);
    plain_seconds_ = plain;
  }
  void Count(size_t exit, bool right) {
    ExitCount& count = exits_[exit];
    count.asked += 1;
    count.right += right ? 1 : 0;
    if (count.asked < kMostExitCounts) return;
    count.asked /= 2;
    count.right /= 2;
  }

 private:
  const DraftSetting& setting_;
  const SelfDrafts drafts_;
  std::vector<ExitCount> exits_;
  std::vector<double> seconds_;  // of a call, by exit; 0: not known
  double plain_seconds_ = 0;
  int64_t trees_ = 0;
};

class SelfFollower : public DraftSession {
 public:
  SelfFollower(SelfSource& source, const DraftRequest& request)
      : source_(source),
        last_(request.output_options().max_tokens),
        drawer_(source.setting(), request.output_options(), 2) {}

  // a: one more than the number of the node. Node 0 is the root.
  DraftCursor Root() override {
    nodes_.assign(1, {});
    rows_ = 0;
    asked_ = 0;
    return {1, 0};
  }
  DraftCursor Next(DraftCursor at, TokenId token) override {
    // Behind a node that no call has asked about no row can stand.
    if (at.a == 0 || nodes_[at.a - 1].row < 0) return {};
    nodes_.push_back({.parent = at.a - 1, .token = token});
    return {static_cast<uint32_t>(nodes_.size()), at.b + 1};
  }

  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    if (cursor.a == 0 || failed_ || place.target == nullptr) return;
    if (cursor.a == 1) Choose(place);
    if (failed_ || layers_.empty() || asked_ >= kMostSelfChain || cursor.b >= most_depth_) return;
    if (!Ask(place, cursor.a - 1)) return;
    ++asked_;
    drawer_.Draw(place, logits_, guesses_);
    const size_t margin = MarginOf(place.mask);
    Node& node = nodes_[cursor.a - 1];
    if (!guesses_.empty()) node.guess = guesses_[0];
    for (size_t i = 0; i < guesses_.size(); ++i) {
      const size_t column = i == 0 ? margin : std::min<size_t>(i, 2) + kMargins - 1;
      out.push_back({guesses_[i], static_cast<uint8_t>(exit_ % kMostExits * 8 + column),
                     i == 0 ? source_.setting().rules.first_chance(0.5f) : 0.15f});
    }
  }

  void Learn(DraftCursor cursor, TokenId came) override {
    if (source_.drafts().kind != SelfDrafts::Kind::kDel || cursor.a == 0) return;
    const TokenId guess = nodes_[cursor.a - 1].guess;
    if (guess != kNoToken) source_.Count(exit_, guess == came);
  }

 private:
  static constexpr size_t kMargins = 6;
  struct Node {
    uint32_t parent = 0;
    TokenId token = kNoToken;
    int row = -1;       // of the sequence in the calls of this tree; -1: not asked
    uint64_t path = 0;  // of the row
    TokenId guess = kNoToken;
  };

  // The layers for the tree that begins.
  void Choose(const DraftPlace& place) {
    using Kind = SelfDrafts::Kind;
    const SelfDrafts& drafts = source_.drafts();
    const int layers = place.target->model->info().layers;
    most_depth_ = kMostSelfChain;
    switch (drafts.kind) {
      case Kind::kUnified:
        layers_ = EvenLayers(layers, drafts.share);
        return;
      case Kind::kExit:
        layers_ = FirstLayers(std::min(layers, drafts.number));
        return;
      case Kind::kSkipDecode:
        layers_ = BudgetLayers(layers, static_cast<int>(place.tokens.size() - place.prompt), last_);
        return;
      case Kind::kClasp:
        if (clasp_trees_-- > 0) return;
        clasp_trees_ = kClaspTrees;
        failed_ = !FindClaspLayers(place, layers, std::min(drafts.number, layers - 1));
        return;
      case Kind::kDel: {
        const ExitChoice choice = source_.Exit(layers);
        exit_ = choice.exit;
        most_depth_ = static_cast<uint32_t>(choice.drafts);
        layers_ = FirstLayers(source_.LayersOf(exit_));
        return;
      }
    }
  }

  // The pending rows of the output.
  void AddPending(const DraftPlace& place) {
    for (auto i = static_cast<size_t>(place.target->length); i < place.tokens.size(); ++i) {
      call_rows_.push_back({.token = place.tokens[i],
                            .position = static_cast<int32_t>(i),
                            .sequence = place.target->sequence});
    }
  }

  // The logits behind the node.
  bool Ask(const DraftPlace& place, uint32_t index) {
    Model& model = *place.target->model;
    Node& node = nodes_[index];
    call_rows_.clear();
    if (index == 0) {
      AddPending(place);
      rows_ = static_cast<int>(call_rows_.size());
      if (rows_ == 0 || rows_ > kMaxTreeRows) return false;
      node.row = rows_ - 1;
      node.path = (uint64_t{1} << node.row) - 1;
    } else {
      if (rows_ >= kMaxTreeRows) return false;
      const Node& parent = nodes_[node.parent];
      node.row = rows_++;
      node.path = parent.path | uint64_t{1} << parent.row;
      call_rows_.push_back(
          {.token = node.token,
           .position = static_cast<int32_t>(place.tokens.size() + place.path.size() - 1),
           .sequence = place.target->sequence,
           .ancestors = node.path});
    }
    call_rows_.back().output = 0;
    if (place.mask != nullptr) call_rows_.back().allowed = place.mask->words();
    logits_.resize(static_cast<size_t>(model.info().vocabulary_size));
    ModelCall call;
    call.rows = call_rows_;
    call.logits = logits_;
    call.layers = layers_;
    call.keep_tree = index != 0;
    double seconds = 0;
    const Status status = [&] {
      Timer timer(seconds);
      return model.Run(call);
    }();
    if (status.ok() && call_rows_.size() == 1) source_.Timed(exit_, seconds, place.plain_seconds);
    if (status.ok()) return true;
    node.row = -1;
    // Where memory is short it may not be later, and another source's calls end this tree alone.
    const ErrorCode code = status.error().code;
    failed_ = code != ErrorCode::kLimit && code != ErrorCode::kInvalid;
    rows_ = kMaxTreeRows;
    return false;
  }

  bool FindClaspLayers(const DraftPlace& place, int layers, int left_out) {
    Model& model = *place.target->model;
    const auto width = static_cast<size_t>(model.info().hidden);
    const std::vector<int> all = FirstLayers(layers);
    call_rows_.clear();
    AddPending(place);
    if (call_rows_.empty() || call_rows_.size() + 2 > kMaxTreeRows) return true;
    logits_.resize(static_cast<size_t>(model.info().vocabulary_size));
    call_rows_.back().output = 0;
    if (place.mask != nullptr) call_rows_.back().allowed = place.mask->words();
    ModelCall call;
    call.rows = call_rows_;
    call.logits = logits_;
    call.layers = all;
    if (!model.Run(call).ok()) return false;
    drawer_.Draw(place, logits_, guesses_);
    if (guesses_.empty()) return true;
    // The states of the pending rows and of the guess behind them, between all layers.
    const size_t pending = call_rows_.size();
    call_rows_.back().output = -1;
    call_rows_.push_back({.token = guesses_[0],
                          .position = static_cast<int32_t>(place.tokens.size()),
                          .sequence = place.target->sequence});
    std::vector<std::vector<float>> states(all.size() + 1);
    std::vector<ModelTap> taps;
    for (size_t i = 0; i < states.size(); ++i) {
      states[i].resize(call_rows_.size() * width);
      taps.push_back({static_cast<int>(i), states[i]});
    }
    call.rows = call_rows_;
    call.taps = taps;
    if (!model.Run(call).ok()) return false;
    std::vector<float> whole;
    for (const std::vector<float>& state : states) {
      whole.insert(whole.end(), state.end() - static_cast<ptrdiff_t>(width), state.end());
    }
    const RunOneLayer run = [&](int layer, std::span<float> of) -> Status {
      const size_t branches = of.size() / width;
      std::vector<Row> rows(call_rows_.begin(), call_rows_.end() - 1);
      for (size_t i = 0; i < branches; ++i) {
        Row row = call_rows_.back();
        row.ancestors = (uint64_t{1} << pending) - 1;
        rows.push_back(row);
      }
      const std::vector<float>& before = states[static_cast<size_t>(layer)];
      std::vector<float> inputs(before.begin(),
                                before.begin() + static_cast<ptrdiff_t>(pending * width));
      inputs.insert(inputs.end(), of.begin(), of.end());
      std::vector<float> behind(inputs.size());
      const int layers_of_call[] = {layer};
      const ModelTap tap[] = {{layer + 1, behind}};
      ModelCall one;
      one.rows = rows;
      one.layers = layers_of_call;
      one.inputs = inputs;
      one.taps = tap;
      if (Status status = model.Run(one); !status.ok()) return status;
      std::copy(behind.end() - static_cast<ptrdiff_t>(of.size()), behind.end(), of.begin());
      return {};
    };
    const int most = kMaxTreeRows - static_cast<int>(pending) - 1;
    Result<std::vector<int>> kept =
        ClaspLayers(whole, layers, static_cast<int>(width), std::min(left_out, most), run);
    if (!kept.ok()) return false;
    layers_ = *std::move(kept);
    return true;
  }

  // How far the best logit is from the second, as one of kMargins columns.
  size_t MarginOf(const Mask* mask) const {
    float best = -3e38f, second = -3e38f;
    for (size_t t = 0; t < logits_.size(); ++t) {
      if (!(logits_[t] > second)) continue;
      if (mask != nullptr &&
          (t / 32 >= mask->words().size() || !mask->Allows(static_cast<TokenId>(t)))) {
        continue;
      }
      second = std::min(best, logits_[t]);
      best = std::max(best, logits_[t]);
    }
    constexpr float kSteps[kMargins - 1] = {0.25f, 0.75f, 1.5f, 3, 6};
    return static_cast<size_t>(
        std::ranges::count_if(kSteps, [&](float step) { return best - second > step; }));
  }

  SelfSource& source_;
  const int last_;
  GuessDrawer drawer_;
  std::vector<Node> nodes_;
  int rows_ = 0;  // in the calls of this tree
  size_t asked_ = 0;
  bool failed_ = false;
  std::vector<int> layers_;
  size_t exit_ = 0;
  uint32_t most_depth_ = kMostSelfChain;
  int clasp_trees_ = 0;
  std::vector<TokenId> guesses_;
  std::vector<float> logits_;
  std::vector<Row> call_rows_;
};

std::unique_ptr<DraftSession> SelfSource::Follow(const DraftRequest& request) {
  return std::make_unique<SelfFollower>(*this, request);
}

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeSelfSource(const DraftSetting& setting) {
  Result<SelfDrafts> drafts =
      ParseSelfDrafts(SettingOfSource(setting.options, "self"), setting.layers);
  if (!drafts.ok()) return drafts.error();
  return std::unique_ptr<DraftSource>(std::make_unique<SelfSource>(setting, *drafts));
}

}  // namespace pawl
