// Lookahead decoding (Fu et al., arXiv 2402.02057): the model corrects a window of guesses, call by
// call, and what the guesses have been on the way is a pool of n-grams to draft from.
//
// A token is a function of (logits, mask, seed, position), so the output is the only fixed point of
// guessing each token from the guesses before it (Jacobi iteration), at every temperature. The
// window has N-1 levels of W columns. Level 0 is a chain of W guesses behind the last token. The
// guess at level l+1 of a column is what the model draws behind that at level l, when it sees the
// level 0 up to the column and then the column: so columns are branches of the chain. When all
// levels are there, a column and what is drawn behind it are an n-gram for the pool, and level 1
// becomes level 0, one position later. With N = 2 there is no pool, and this is Jacobi decoding.
//
// Nodes of the window are made for what is learned from them, so they have a worth: right drafts of
// this source for each such row, counted. The drafter weighs it against the time of rows.
//
// The pool also has the n-grams of the text. Pool and window belong to one request.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "src/base/random.h"
#include "src/decode/draft/guess_drawer.h"
#include "src/decode/draft/source.h"

namespace pawl {
namespace {

constexpr size_t kMostLevels = 4;  // N-1
constexpr size_t kMostKeys = size_t{1} << 16;
constexpr int kTriesWithoutLogits = 8;

// Columns, levels and n-grams for a first token that a number of nodes has room for.
struct LookaheadShape {
  size_t levels, columns, grams;
  static LookaheadShape For(int nodes) {
    if (nodes >= 56) return {4, 7, 7};
    if (nodes >= 28) return {3, 5, 4};
    const auto quarter = static_cast<size_t>(nodes / 4);
    if (quarter >= 2) return {2, quarter, quarter};
    return {1, static_cast<size_t>(std::max(1, nodes)), 0};
  }
};

class LookaheadSource : public DraftSource {
 public:
  explicit LookaheadSource(const DraftSetting& setting)
      : setting_(setting), shape_(LookaheadShape::For(setting.options.nodes)) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override;

  const DraftSetting& setting() const { return setting_; }
  const LookaheadShape& shape() const { return shape_; }
  void CountRow() { Add(rows_); }
  void CountHit() { Add(hits_); }
  // Of a row of the window, in right tokens.
  float worth() const { return (hits_ + 4) / (rows_ + 16); }

 private:
  void Add(float& count) {
    count += 1;
    if (rows_ < 4000) return;
    rows_ /= 2;
    hits_ /= 2;
  }
  const DraftSetting& setting_;
  const LookaheadShape shape_;
  float rows_ = 0, hits_ = 0;
};

class LookaheadFollower : public DraftSession {
 public:
  LookaheadFollower(LookaheadSource& source, const DraftRequest& request)
      : source_(source),
        shape_(source.shape()),
        seed_(request.output_options().sampling.seed),
        prompt_(request.prompt.size()),
        drawer_(source.setting(), request.output_options(), 3) {}

  void Append(std::span<const TokenId> tokens) override {
    if (tokens.empty()) return;
    const size_t before = tokens_.size();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    for (size_t i = std::max(before, shape_.levels); i < tokens_.size() && shape_.grams > 0; ++i) {
      KeepGram(std::span(tokens_).subspan(i - shape_.levels, shape_.levels + 1));
    }
    if (window_.empty()) {
      window_.emplace_back(shape_.columns, kNoToken);
    } else {
      Slide(tokens.size());
    }
    for (TokenId& guess : window_[0]) {
      if (guess == kNoToken) guess = Filler();
    }
    fresh_.assign(shape_.columns, kNoToken);
  }

  // a: one more than the number of the node in nodes_. Node 0 is the root.
  DraftCursor Root() override {
    nodes_.assign(1, {});
    active_.clear();
    const auto found = pool_.find(tokens_.empty() ? kNoToken : tokens_.back());
    if (found != pool_.end()) active_ = found->second;
    nodes_[0].grams = (1u << active_.size()) - 1;
    return {1, 0};
  }

  DraftCursor Next(DraftCursor at, TokenId token) override {
    if (at.a == 0) return {};
    const Place from = nodes_[at.a - 1];
    Place to;
    to.parent = at.a;
    to.token = token;
    to.depth = from.depth + 1;
    for (size_t i = 0; i < active_.size(); ++i) {
      if ((from.grams >> i & 1) != 0 && from.depth < shape_.levels &&
          active_[i][from.depth] == token) {
        to.grams |= 1u << i;
      }
    }
    for (size_t level = 0; level < window_.size(); ++level) {
      const TokenId* const guess = GuessBehind(from, level);
      if (guess != nullptr && *guess == token) to.levels |= 1u << level;
    }
    if (to.grams == 0 && to.levels == 0) return {};
    nodes_.push_back(to);
    return {static_cast<uint32_t>(nodes_.size()), 0};
  }

  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    if (cursor.a == 0) return;
    // A device that draws the tokens itself tells no logits.
    if (cursor.a == 1 && !sees_logits_ && ++tries_ > kTriesWithoutLogits) cursor = {};
    if (cursor.a == 0) return;
    const Place& at = nodes_[cursor.a - 1];
    for (size_t i = 0; i < active_.size(); ++i) {
      if ((at.grams >> i & 1) == 0 || at.depth >= shape_.levels) continue;
      const TokenId token = active_[i][at.depth];
      if (!place.Allows(token)) {
        ++place.refused;
        continue;
      }
      const auto bucket = static_cast<uint8_t>(at.depth * 8 + std::min<size_t>(i, 7));
      Offer({token, bucket, i == 0 ? 0.4f : 0.15f}, out);
    }
    for (size_t level = 0; level < window_.size(); ++level) {
      TokenId* const guess = GuessBehind(at, level);
      if (guess == nullptr || *guess == kNoToken) continue;
      if (!place.Allows(*guess)) *guess = AllowedAt(place);
      if (*guess == kNoToken) continue;
      const auto bucket =
          static_cast<uint8_t>(level == 0 ? 32 + std::min<size_t>(at.depth, 15) : 48 + level);
      Offer({*guess, bucket, level == 0 ? 0.1f : 0.05f, source_.worth()}, out);
    }
  }

  bool wants_all_logits() const override { return true; }
  void SeeLogits(const DraftAnswer& answer) override {
    if (answer.cursor.a == 0) return;
    sees_logits_ = true;
    const Place& at = nodes_[answer.cursor.a - 1];
    if (at.levels == 0) return;
    source_.CountRow();
    const size_t top = window_.size() - 1;
    if ((at.levels >> top & 1) == 0) return;
    path_.clear();
    for (uint32_t i = answer.cursor.a; i > 1; i = nodes_[i - 1].parent) {
      path_.push_back(nodes_[i - 1].token);
    }
    std::reverse(path_.begin(), path_.end());
    DraftPlace place;
    place.tokens = tokens_;
    place.prompt = prompt_;
    place.path = path_;
    place.at = answer.at;
    place.mask = answer.mask;
    drawer_.Draw(place, answer.logits, drawn_);
    if (!drawn_.empty()) fresh_[at.depth - 1 - top] = drawn_[0];
  }

  void Learn(DraftCursor cursor, TokenId came) override {
    if (cursor.a != 0 && Next(cursor, came).a != 0) source_.CountHit();
  }

 private:
  using Tail = std::array<TokenId, kMostLevels>;  // of an n-gram, behind its first token
  struct Place {
    uint32_t parent = 0;  // as DraftCursor::a
    TokenId token = kNoToken;
    uint32_t depth = 0;
    uint32_t grams = 0;   // bit i: the path is the beginning of active_[i]
    uint32_t levels = 0;  // bit l: the node is at level l, in the column depth - 1 - l
  };

  // The guess of the window behind a node, at that level; nullptr: there is none.
  TokenId* GuessBehind(const Place& at, size_t level) {
    const bool chain = at.depth == 0 || (at.levels & 1) != 0;
    const bool behind = level == 0 ? chain : (at.levels >> (level - 1) & 1) != 0;
    if (!behind || at.depth < level) return nullptr;
    const size_t column = at.depth - level;
    return column < shape_.columns ? &window_[level][column] : nullptr;
  }

  static void Offer(const DraftProposal& proposal, std::vector<DraftProposal>& out) {
    for (DraftProposal& known : out) {
      if (known.token != proposal.token) continue;
      known.worth = std::max(known.worth, proposal.worth);
      return;
    }
    out.push_back(proposal);
  }

  void KeepGram(std::span<const TokenId> gram) {
    if (pool_.size() >= kMostKeys && !pool_.contains(gram[0])) return;
    Tail tail;
    tail.fill(kNoToken);
    std::copy(gram.begin() + 1, gram.end(), tail.begin());
    std::vector<Tail>& tails = pool_[gram[0]];
    const auto known = std::find(tails.begin(), tails.end(), tail);
    if (known != tails.end()) {
      std::rotate(tails.begin(), known, known + 1);
      return;
    }
    tails.insert(tails.begin(), tail);
    if (tails.size() > shape_.grams) tails.pop_back();
  }

  // The output has gained so many tokens.
  void Slide(size_t gained) {
    const bool learned =
        std::ranges::any_of(fresh_, [](TokenId guess) { return guess != kNoToken; });
    if (learned) {
      window_.push_back(fresh_);
      if (window_.size() > shape_.levels) {
        for (size_t column = 0; column < shape_.columns && shape_.grams > 0; ++column) {
          std::vector<TokenId> gram;
          for (const std::vector<TokenId>& level : window_) gram.push_back(level[column]);
          if (std::ranges::find(gram, kNoToken) == gram.end()) KeepGram(gram);
        }
        // Its guesses stand one position behind those of the level before.
        window_.erase(window_.begin());
        --gained;
      }
    }
    for (std::vector<TokenId>& level : window_) {
      const size_t gone = std::min(gained, level.size());
      level.erase(level.begin(), level.begin() + static_cast<ptrdiff_t>(gone));
      level.resize(shape_.columns, kNoToken);
    }
  }

  // Any token of the text.
  TokenId Filler() {
    const PhiloxBlock block = Philox4x32(seed_, fillers_++, 0);
    return tokens_.empty() ? kNoToken : tokens_[block.word[0] % tokens_.size()];
  }

  // In place of a guess that the mask refuses.
  TokenId AllowedAt(const DraftPlace& place) {
    if (place.mask->singleton() != kNoToken) return place.mask->singleton();
    for (int i = 0; i < 8; ++i) {
      const TokenId token = Filler();
      if (token != kNoToken && place.Allows(token)) return token;
    }
    return kNoToken;
  }

  LookaheadSource& source_;
  const LookaheadShape shape_;
  const uint64_t seed_;
  const size_t prompt_;
  GuessDrawer drawer_;
  std::vector<TokenId> tokens_;
  std::unordered_map<TokenId, std::vector<Tail>> pool_;  // the newest first
  std::vector<std::vector<TokenId>> window_;             // by level and column
  std::vector<TokenId> fresh_;                           // the next level
  std::vector<Tail> active_;                             // n-grams behind the root
  std::vector<Place> nodes_;
  std::vector<TokenId> path_, drawn_;
  uint64_t fillers_ = 0;
  int tries_ = 0;
  bool sees_logits_ = false;
};

std::unique_ptr<DraftSession> LookaheadSource::Follow(const DraftRequest& request) {
  return std::make_unique<LookaheadFollower>(*this, request);
}

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeLookaheadSource(const DraftSetting& setting) {
  return std::unique_ptr<DraftSource>(std::make_unique<LookaheadSource>(setting));
}

}  // namespace pawl
