// Where few texts may follow - keys, enum values, constants, the marks between them - the grammar
// is a list of candidates.
//
// The candidates are the allowed tokens that no allowed token continues: of "n", "na" and "name"
// the tokenizer writes the last. Which one comes is counted by list: the same list at another place
// or in another request is the same choice. Before anything is counted, the prompt tells: a schema
// that stands there names its keys in their order, so the candidate that comes next behind the one
// chosen last is the first guess.
#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "src/decode/draft/source.h"

namespace pawl {
namespace {

constexpr int kMostTold = 512;
constexpr size_t kMostCandidates = 64;
constexpr size_t kSpellings = 6;
// Shares of the memory of all sources: for lists of candidates, kept by mask, and for counts.
constexpr int64_t kShareOfLists = 8, kShareOfCounts = 8;
constexpr int64_t kNodeBytes = 96;  // of an entry, without what it refers to

struct Candidates {
  std::shared_ptr<const Mask> mask;  // keeps its id from being another's
  uint64_t hash = 0;
  std::vector<TokenId> tokens;
};

struct Counts {
  uint32_t total = 0;
  std::vector<std::pair<TokenId, uint32_t>> tokens;
  uint32_t Of(TokenId token) const {
    for (const auto& [t, n] : tokens) {
      if (t == token) return n;
    }
    return 0;
  }
};

class LiteralsSource : public DraftSource {
 public:
  explicit LiteralsSource(const DraftSetting& setting) : setting_(setting) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override;
  int64_t bytes() const override { return list_bytes_ + count_bytes_; }

  // nullptr: is not there, and takes long to `make`.
  const Candidates* Of(const std::shared_ptr<const Mask>& mask, bool make) {
    const auto found = lists_.find(mask.get());
    if (found != lists_.end()) return &found->second;
    if (!make) return nullptr;
    Candidates list;
    list.mask = mask;
    Fill(*mask, list);
    const auto bytes = kNodeBytes + static_cast<int64_t>(mask->words().size_bytes() +
                                                         list.tokens.capacity() * sizeof(TokenId));
    if (list_bytes_ + bytes > DraftBytes(setting_.options) / kShareOfLists) {
      lists_.clear();
      list_bytes_ = 0;
    }
    list_bytes_ += bytes;
    return &(lists_[mask.get()] = std::move(list));
  }
  const Counts* CountsOf(uint64_t hash) const {
    const auto found = counts_.find(hash);
    return found == counts_.end() ? nullptr : &found->second;
  }
  void Count(uint64_t hash, TokenId token) {
    if (count_bytes_ > DraftBytes(setting_.options) / kShareOfCounts) {
      counts_.clear();
      count_bytes_ = 0;
    }
    const auto [entry, fresh] = counts_.try_emplace(hash);
    Counts& counts = entry->second;
    const size_t room = counts.tokens.capacity();
    if (fresh) count_bytes_ += kNodeBytes;
    ++counts.total;
    for (auto& [t, n] : counts.tokens) {
      if (t == token) {
        ++n;
        return;
      }
    }
    if (counts.tokens.size() < kMostCandidates) counts.tokens.push_back({token, 1});
    count_bytes_ +=
        static_cast<int64_t>((counts.tokens.capacity() - room) * sizeof(counts.tokens[0]));
  }
  const DraftSetting& setting() const { return setting_; }

 private:
  // Each first byte has a candidate of its own.
  bool HasFewFirstBytes(const Mask& mask) const {
    const Vocabulary& vocabulary = *setting_.vocabulary;
    std::array<bool, 256> seen = {};
    size_t count = 0;
    const std::span<const uint32_t> words = mask.words();
    for (size_t w = 0; w < words.size(); ++w) {
      for (uint32_t word = words[w]; word != 0; word &= word - 1) {
        const auto token = static_cast<TokenId>(w * 32) + __builtin_ctz(word);
        if (token >= vocabulary.size() || vocabulary.is_end(token)) continue;
        const std::string_view bytes = vocabulary.bytes(token);
        if (bytes.empty() || std::exchange(seen[static_cast<uint8_t>(bytes[0])], true)) continue;
        if (++count > kMostCandidates) return false;
      }
    }
    return true;
  }
  void Fill(const Mask& mask, Candidates& made) const {
    if (!HasFewFirstBytes(mask)) return;
    const Vocabulary& vocabulary = *setting_.vocabulary;
    std::vector<TokenId> tokens = mask.Tokens();
    std::erase_if(tokens, [&](TokenId t) { return vocabulary.is_end(t); });
    std::sort(tokens.begin(), tokens.end(),
              [&](TokenId a, TokenId b) { return vocabulary.bytes(a) < vocabulary.bytes(b); });
    // A token's continuations stand right behind it.
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view bytes = vocabulary.bytes(tokens[i]);
      if (i + 1 < tokens.size() && vocabulary.bytes(tokens[i + 1]).starts_with(bytes)) continue;
      if (made.tokens.size() == kMostCandidates) {
        made.tokens.clear();
        return;
      }
      made.tokens.push_back(tokens[i]);
    }
    made.hash = 1;
    for (const TokenId token : made.tokens) {
      made.hash = (made.hash ^ static_cast<uint64_t>(token)) * 0x9e3779b97f4a7c15u;
      made.hash ^= made.hash >> 29;
    }
  }

  const DraftSetting& setting_;
  std::unordered_map<const Mask*, Candidates> lists_;
  std::unordered_map<uint64_t, Counts> counts_;
  int64_t list_bytes_ = 0, count_bytes_ = 0;
};

class LiteralsFollower : public DraftSession {
 public:
  LiteralsFollower(LiteralsSource& source, uint64_t owner) : source_(source), owner_(owner) {}

  void Append(std::span<const TokenId> tokens) override {
    if (!first_) return;
    first_ = false;
    const Vocabulary& vocabulary = *source_.setting().vocabulary;
    for (const TokenId t : tokens) {
      if (prompt_.size() > kMostPrompt) break;
      if (t >= 0 && t < vocabulary.size() && !vocabulary.is_special(t)) {
        prompt_ += vocabulary.bytes(t);
      }
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
    if (place.at == nullptr || place.mask == nullptr || place.mask->count() > kMostTold ||
        place.mask->count() < 2) {
      return;
    }
    const Candidates* const known = source_.Of(place.at->mask(), place.paid);
    if (known == nullptr || known->tokens.empty()) return;
    const Candidates& list = *known;
    const uint64_t hash = list.hash ^ owner_;
    asked_.push_back({hash, {}});
    cursor.a = static_cast<uint32_t>(asked_.size());
    const Counts* counts = source_.CountsOf(hash);
    const auto n = static_cast<float>(list.tokens.size());
    std::vector<Ranked> ranked;
    for (const TokenId token : list.tokens) {
      const float count = counts == nullptr ? 0 : static_cast<float>(counts->Of(token));
      const float total = counts == nullptr ? 0 : static_cast<float>(counts->total);
      ranked.push_back({token, (count + 0.5f) / (total + 0.5f * n), total > 0, 0});
    }
    if (list.tokens.size() <= kRanked) RankByPrompt(place, ranked);
    // What the prompt says first, counts more than a guess; counts say more than the prompt.
    std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
      if (a.share != b.share) return a.share > b.share;
      return a.order != b.order ? a.order < b.order : a.token < b.token;
    });
    for (size_t i = 0; i < std::min(ranked.size(), kSpellings); ++i) {
      const Ranked& r = ranked[i];
      asked_.back().order.push_back({r.token, r.place});
      out.push_back({r.token, BucketOf(r, i, list.tokens.size()),
                     r.counted ? r.share : (i == 0 ? 0.5f : 0.3f / n)});
    }
  }
  void Learn(DraftCursor cursor, TokenId came) override {
    if (cursor.a == 0) return;
    const Asked& asked = asked_[cursor.a - 1];
    source_.Count(asked.hash, came);
    for (const auto& [token, place] : asked.order) {
      if (token == came && place != std::string::npos) last_ = place;
    }
  }

 private:
  struct Ranked {
    TokenId token;
    float share;  // of what was counted
    bool counted;
    size_t order;                      // by the prompt
    size_t place = std::string::npos;  // there
  };
  struct Asked {
    uint64_t hash;
    std::vector<std::pair<TokenId, size_t>> order;
  };
  static constexpr size_t kRanked = 24, kMostPrompt = 1 << 18;

  static uint8_t BucketOf(const Ranked& r, size_t rank, size_t candidates) {
    const uint8_t many = candidates <= 2 ? 0 : candidates <= 4 ? 1 : candidates <= 12 ? 2 : 3;
    if (r.counted) {
      const float s = r.share;
      const uint8_t level = s > 0.9f ? 0 : s > 0.7f ? 1 : s > 0.4f ? 2 : s > 0.15f ? 3 : 4;
      return static_cast<uint8_t>(level * 4 + many);
    }
    const uint8_t level = r.order == 0 ? 0 : r.order == 1 ? 1 : r.order < 1000 ? 2 : 3;
    (void)rank;
    return static_cast<uint8_t>(20 + level * 4 + many);
  }

  // Where the prompt has the word that the token begins, the first few times.
  const std::vector<size_t>& PlacesOf(const DraftPlace& place, TokenId token) {
    const auto [known, fresh] = places_.try_emplace({place.mask, token});
    if (!fresh) return known->second;
    std::string text(source_.setting().vocabulary->bytes(token));
    if (const auto next = place.at->Next(token)) text += next->forced(64);
    const size_t begin = text.find_first_not_of(" ,:{}[]\"'\n\t\r");
    if (begin == std::string::npos) return known->second;
    const size_t end = std::min(text.find('"', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (word.size() < 2) return known->second;
    if (begin > 0 && text[begin - 1] == '"' && end < text.size()) word = '"' + word + '"';
    for (size_t at = prompt_.find(word); at != std::string::npos && known->second.size() < 16;
         at = prompt_.find(word, at + 1)) {
      known->second.push_back(at);
    }
    return known->second;
  }

  // The words of the candidates in the order in which the prompt has them behind the last one.
  void RankByPrompt(const DraftPlace& place, std::vector<Ranked>& ranked) {
    if (places_.size() > 4096) places_.clear();
    std::vector<std::pair<size_t, size_t>> order;  // distance, index
    for (size_t i = 0; i < ranked.size(); ++i) {
      ranked[i].order = 1000;
      const std::vector<size_t>& places = PlacesOf(place, ranked[i].token);
      if (places.empty()) continue;
      auto next = last_ == std::string::npos
                      ? places.begin()
                      : std::upper_bound(places.begin(), places.end(), last_);
      // Behind the last one first, then from the beginning again.
      order.push_back({next != places.end() ? *next : prompt_.size() + places[0], i});
      ranked[i].place = next != places.end() ? *next : places[0];
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) ranked[order[i].second].order = i;
  }

  LiteralsSource& source_;
  const uint64_t owner_;
  std::string prompt_;
  // By mask and token. A mask that is gone may give its address to another: a wrong guess.
  std::map<std::pair<const Mask*, TokenId>, std::vector<size_t>> places_;
  bool first_ = true;
  size_t last_ = std::string::npos;  // where the prompt has what was chosen last
  std::vector<Asked> asked_;
};

std::unique_ptr<DraftSession> LiteralsSource::Follow(const DraftRequest& request) {
  return std::make_unique<LiteralsFollower>(*this, request.owner());
}

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeLiteralsSource(const DraftSetting& setting) {
  return std::unique_ptr<DraftSource>(std::make_unique<LiteralsSource>(setting));
}

}  // namespace pawl
