// Counts of what came after one to five tokens, over all outputs of one owner whatever their
// grammar, in a table of fixed size. It also has counts of what came where the grammar allowed the
// same tokens, with the last token and without: how strings end, and what begins a value.
//
// How long a context should be is not set but measured: the longest context with an entry speaks
// first, and how often entries of each length and share are right is counted by the drafter, so
// that lengths that mislead lose their rank. A bucket of the table belongs to one context; a new
// context takes the place of the one that was seen least.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "src/decode/draft/source.h"

namespace pawl {
namespace {

constexpr size_t kOrders = 5, kSlots = 4, kMostEntries = 1 << 15, kWays = 4;
constexpr int64_t kShareOfTable = 8;  // of the memory of all sources
constexpr uint16_t kMostCount = 1000;
constexpr float kLeastShare = 0.1f;  // of a context, to be proposed

struct Entry {
  uint32_t tag = 0;  // 0: free
  uint16_t total = 0;
  std::array<uint16_t, kSlots> count = {};
  std::array<TokenId, kSlots> token = {kNoToken, kNoToken, kNoToken, kNoToken};
};

// Contexts of one owner are none of another's.
uint64_t HashOf(uint64_t owner, std::span<const TokenId> context) {
  uint64_t hash = owner ^ context.size();
  for (const TokenId token : context) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

class NgramTable {
 public:
  explicit NgramTable(int64_t most_bytes)
      : entries_(std::clamp(std::bit_floor(static_cast<size_t>(most_bytes) / sizeof(Entry)), kWays,
                            kMostEntries)) {}
  const Entry* Find(uint64_t hash) const {
    const size_t first = Place(hash);
    for (size_t i = 0; i < kWays; ++i) {
      if (entries_[first + i].tag == Tag(hash)) return &entries_[first + i];
    }
    return nullptr;
  }
  void Count(uint64_t hash, TokenId token) {
    Entry* const first = &entries_[Place(hash)];
    Entry* entry =
        std::find_if(first, first + kWays, [&](const Entry& e) { return e.tag == Tag(hash); });
    if (entry == first + kWays) {
      entry = std::min_element(first, first + kWays,
                               [](const Entry& a, const Entry& b) { return a.total < b.total; });
      // Those that stay grow older, so that no bucket is full for good.
      for (size_t i = 0; i < kWays; ++i) first[i].total -= first[i].total > 1 ? 1 : 0;
      *entry = Entry();
      entry->tag = Tag(hash);
    }
    if (entry->total >= kMostCount) {
      entry->total /= 2;
      for (uint16_t& count : entry->count) count /= 2;
    }
    ++entry->total;
    size_t least = 0;
    for (size_t i = 0; i < kSlots; ++i) {
      if (entry->token[i] == token) {
        ++entry->count[i];
        return;
      }
      if (entry->count[i] < entry->count[least]) least = i;
    }
    entry->token[least] = token;
    entry->count[least] = 1;
  }
  int64_t bytes() const { return static_cast<int64_t>(entries_.size() * sizeof(Entry)); }

 private:
  static uint32_t Tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32) | 1; }
  size_t Place(uint64_t hash) const { return hash % (entries_.size() / kWays) * kWays; }
  std::vector<Entry> entries_;
};

class NgramFollower : public DraftSession {
 public:
  NgramFollower(NgramTable& table, uint64_t owner) : table_(table), owner_(owner) {}
  void Append(std::span<const TokenId> tokens) override {
    if (!std::exchange(began_, true)) return;  // the prompt is others' text
    for (const TokenId token : tokens) {
      const size_t n = std::min(kOrders, last_.size());
      for (size_t order = 1; order <= n; ++order) {
        table_.Count(HashOf(owner_, std::span(last_).last(order)), token);
      }
      last_.push_back(token);
      if (last_.size() > 64) last_.erase(last_.begin(), last_.end() - kOrders);
    }
  }
  DraftCursor Root() override {
    asked_.clear();
    return {};
  }
  // a: what was asked, from 1.
  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    cursor = {};
    ProposeByTokens(place, out);
    if (place.mask == nullptr) return;
    asked_.push_back(AllowedAt(place));
    cursor.a = static_cast<uint32_t>(asked_.size());
    ProposeByMask(place, asked_.back().behind_last, 1, out);
    ProposeByMask(place, asked_.back().anywhere, 0, out);
  }
  void Learn(DraftCursor cursor, TokenId came) override {
    if (cursor.a == 0) return;
    table_.Count(asked_[cursor.a - 1].behind_last, came);
    table_.Count(asked_[cursor.a - 1].anywhere, came);
  }

 private:
  // Contexts that are what the grammar allows.
  struct Allowed {
    uint64_t behind_last = 0, anywhere = 0;
  };

  Allowed AllowedAt(const DraftPlace& place) const {
    constexpr size_t kRead = 256;  // words; what else differs makes no difference
    const std::span<const uint32_t> words = place.mask->words();
    const size_t stride = std::max<size_t>(1, words.size() / kRead);
    uint64_t hash = owner_ ^ (static_cast<uint64_t>(place.mask->count()) << 32) ^ ~uint64_t{0};
    for (size_t i = 0; i < words.size(); i += stride) {
      hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    const TokenId last = !place.path.empty()     ? place.path.back()
                         : !place.tokens.empty() ? place.tokens.back()
                                                 : kNoToken;
    uint64_t behind = (hash ^ static_cast<uint32_t>(last)) * 0x9e3779b97f4a7c15u;
    behind ^= behind >> 29;
    return {.behind_last = behind, .anywhere = hash};
  }

  void ProposeByMask(const DraftPlace& place, uint64_t context, size_t order,
                     std::vector<DraftProposal>& out) const {
    const Entry* entry = table_.Find(context);
    if (entry == nullptr) return;
    for (size_t i = 0; i < kSlots; ++i) {
      const TokenId token = entry->token[i];
      if (entry->count[i] == 0 || !place.Allows(token)) continue;
      const bool known = std::any_of(out.begin(), out.end(),
                                     [&](const DraftProposal& p) { return p.token == token; });
      const float share = static_cast<float>(entry->count[i]) / static_cast<float>(entry->total);
      if (known || share < kLeastShare) continue;
      constexpr float kUpTo[] = {0.2f, 0.3f, 0.4f, 0.6f, 0.9f};
      size_t level = 0;
      while (level < std::size(kUpTo) && share > kUpTo[level]) ++level;
      const size_t often = entry->total > 8 ? 1 : 0;
      out.push_back({token, static_cast<uint8_t>(24 + order * 12 + level * 2 + often), share / 2});
    }
  }

  void ProposeByTokens(const DraftPlace& place, std::vector<DraftProposal>& out) const {
    // The last tokens before the place.
    std::array<TokenId, kOrders> context;
    const size_t n = std::min(kOrders, last_.size() + place.path.size());
    for (size_t i = 0; i < n; ++i) {
      context[kOrders - 1 - i] = i < place.path.size()
                                     ? place.path[place.path.size() - 1 - i]
                                     : last_[last_.size() - 1 - (i - place.path.size())];
    }
    const size_t first = out.size();
    float left = 1;
    for (size_t order = n; order >= 1 && out.size() - first < 3; --order) {
      const Entry* entry = table_.Find(HashOf(owner_, std::span(context).last(order)));
      if (entry == nullptr) continue;
      uint32_t total = 0;
      for (size_t i = 0; i < kSlots; ++i) {
        if (entry->count[i] == 0) continue;
        if (place.Allows(entry->token[i])) {
          total += entry->count[i];
        } else {
          ++place.refused;
        }
      }
      for (size_t i = 0; i < kSlots && total > 0; ++i) {
        const TokenId token = entry->token[i];
        if (entry->count[i] == 0 || !place.Allows(token)) continue;
        if (std::any_of(out.begin() + static_cast<ptrdiff_t>(first), out.end(),
                        [&](const DraftProposal& p) { return p.token == token; })) {
          continue;
        }
        const float share = static_cast<float>(entry->count[i]) / static_cast<float>(total);
        if (share < kLeastShare) continue;
        const int level = share > 0.9f ? (entry->count[i] > 3 ? 0 : 1) : share > 0.5f ? 2 : 3;
        out.push_back({token, static_cast<uint8_t>(order * 4 + static_cast<size_t>(level)),
                       left * share * static_cast<float>(order) / 6});
      }
      left *= 0.5f;
    }
  }

  NgramTable& table_;
  const uint64_t owner_;
  std::vector<Allowed> asked_;
  std::vector<TokenId> last_;
  bool began_ = false;
};

class NgramSource : public DraftSource {
 public:
  explicit NgramSource(const DraftSetting& setting)
      : table_(DraftBytes(setting.options) / kShareOfTable) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override {
    return std::make_unique<NgramFollower>(table_, request.owner());
  }
  int64_t bytes() const override { return table_.bytes(); }

 private:
  NgramTable table_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeNgramSource(const DraftSetting& setting) {
  return std::unique_ptr<DraftSource>(std::make_unique<NgramSource>(setting));
}

}  // namespace pawl
