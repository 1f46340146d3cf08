// The tokens that the model found likely after a token but did not choose, kept for the next time
// that token comes (Luo et al., "Turning Trash into Treasure", arXiv 2408.08696). An adjacency of
// the likeliest eight by token, in a table of fixed size: less than 2 MB whatever the vocabulary.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "src/decode/draft/source.h"

namespace pawl {
namespace {

constexpr size_t kNeighbours = 8, kMostTokens = 49152;
constexpr int64_t kShareOfRows = 8;  // of the memory of all sources
// Reading a whole row of logits would take longer than it saves.
constexpr int kMostRead = 8192;

struct TokenRow {
  TokenId token = kNoToken;
  uint32_t owner = 0;  // a part of it that tells owners apart
  std::array<TokenId, kNeighbours> next = {};
};

class FollowersTable {
 public:
  explicit FollowersTable(size_t rows) : rows_(rows) {}
  const TokenRow* Find(uint64_t owner, TokenId token) const {
    if (token < 0 || rows_.empty()) return nullptr;
    const TokenRow& row = rows_[Place(owner, token)];
    return row.token == token && row.owner == Tag(owner) ? &row : nullptr;
  }
  TokenRow* At(uint64_t owner, TokenId token) {
    if (token < 0 || rows_.empty()) return nullptr;
    TokenRow& row = rows_[Place(owner, token)];
    if (row.token != token || row.owner != Tag(owner)) {
      row.token = token;
      row.owner = Tag(owner);
      row.next.fill(kNoToken);
    }
    return &row;
  }
  int64_t bytes() const { return static_cast<int64_t>(rows_.size() * sizeof(TokenRow)); }

 private:
  static uint32_t Tag(uint64_t owner) { return static_cast<uint32_t>(owner >> 32); }
  size_t Place(uint64_t owner, TokenId token) const {
    return static_cast<size_t>(owner + static_cast<uint64_t>(token)) % rows_.size();
  }
  std::vector<TokenRow> rows_;
};
static_assert(sizeof(TokenRow) * kMostTokens < 2'000'000);

class RecyclingFollower : public DraftSession {
 public:
  RecyclingFollower(FollowersTable& table, uint64_t owner) : table_(table), owner_(owner) {}
  bool wants_logits() const override { return true; }

  void Propose(const DraftPlace& place, DraftCursor&, std::vector<DraftProposal>& out) override {
    if (place.path.empty() && place.tokens.empty()) return;
    const TokenRow* row =
        table_.Find(owner_, place.path.empty() ? place.tokens.back() : place.path.back());
    if (row == nullptr) return;
    uint8_t rank = 0;
    for (const TokenId token : row->next) {
      if (token == kNoToken || rank == 3) break;
      if (!place.Allows(token)) {
        ++place.refused;
        continue;
      }
      out.push_back({token, rank, rank == 0 ? 0.3f : 0.1f});
      ++rank;
    }
  }

  void SeeLogits(const DraftAnswer& answer) override {
    const std::span<const float> logits = answer.logits;
    const auto* const mask = answer.mask;
    if (!answer.visited) return;
    if (mask != nullptr ? mask->count() > kMostRead : logits.size() > size_t{4} * kMostRead) return;
    std::array<std::pair<float, TokenId>, kNeighbours> best;
    best.fill({-3.4e38f, kNoToken});
    const auto see = [&](size_t t) {
      if (t >= logits.size() || !(logits[t] > best.back().first)) return;
      size_t i = kNeighbours - 1;
      for (; i > 0 && logits[t] > best[i - 1].first; --i) best[i] = best[i - 1];
      best[i] = {logits[t], static_cast<TokenId>(t)};
    };
    if (mask == nullptr) {
      for (size_t t = 0; t < logits.size(); ++t) see(t);
    } else {
      const std::span<const uint32_t> words = mask->words();
      for (size_t w = 0; w < words.size(); ++w) {
        for (uint32_t word = words[w]; word != 0; word &= word - 1) {
          see(w * 32 + static_cast<size_t>(std::countr_zero(word)));
        }
      }
    }
    TokenRow* row = table_.At(owner_, answer.token);
    if (row == nullptr) return;
    // What a mask hid may be likely where another one does not.
    std::array<TokenId, kNeighbours> next;
    size_t n = 0;
    for (const auto& [logit, t] : best) {
      if (t != kNoToken) next[n++] = t;
    }
    for (const TokenId old : row->next) {
      if (n == kNeighbours || old == kNoToken) break;
      if (std::find(next.begin(), next.begin() + static_cast<ptrdiff_t>(n), old) ==
          next.begin() + static_cast<ptrdiff_t>(n)) {
        next[n++] = old;
      }
    }
    std::fill(next.begin() + static_cast<ptrdiff_t>(n), next.end(), kNoToken);
    row->next = next;
  }

 private:
  FollowersTable& table_;
  const uint64_t owner_;
};

class RecyclingSource : public DraftSource {
 public:
  explicit RecyclingSource(size_t rows) : table_(rows) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override {
    return std::make_unique<RecyclingFollower>(table_, request.owner());
  }
  int64_t bytes() const override { return table_.bytes(); }

 private:
  FollowersTable table_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeRecyclingSource(const DraftSetting& setting) {
  const auto held =
      static_cast<size_t>(DraftBytes(setting.options) / kShareOfRows) / sizeof(TokenRow);
  const auto size = static_cast<size_t>(setting.vocabulary->size());
  return std::unique_ptr<DraftSource>(
      std::make_unique<RecyclingSource>(std::min({size, kMostTokens, held})));
}

}  // namespace pawl
