// A word starts as its characters (or bytes); again and again the neighbouring pair with the best
// rank is replaced by the token it makes, the leftmost first among equals. Symbols are a linked
// list in an array. Short words scan for the best pair, which beats a heap up to some dozens of
// symbols; long ones (the whole text, for formats without a pre-tokenizer) keep candidates in a
// heap and drop those that have gone stale.
//
// A candidate is stale when its pair is no longer there. As the token that a pair makes is the
// pair's concatenated text, and text at a position only grows, comparing the made token suffices.
#include "src/text/bpe_model.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"
#include "src/text/tokenizer_steps.h"

namespace pawl {
namespace {

constexpr size_t kShortWord = 48;  // symbols; measured, the two methods cost the same around here
constexpr uint32_t kNoRank = UINT32_MAX;
constexpr TokenId kMaxTokens = TokenId{1} << 24;

Error Invalid(std::string message, std::string place) {
  return {ErrorCode::kInvalid, std::move(message), std::move(place)};
}

uint64_t MixPair(uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15u;
  return pair ^ (pair >> 32);
}

size_t PowerOfTwoFor(size_t count) {
  size_t size = 16;
  while (size < count * 2) size *= 2;
  return size;
}

}  // namespace

uint64_t TokenIndex::Hash(std::string_view name) {
  return MixPair(std::hash<std::string_view>()(name));
}

void TokenIndex::Reserve(size_t count) {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(PowerOfTwoFor(count)));
  count_ = 0;
  for (const Slot& slot : old) {
    if (slot.id != kNoToken) Insert(slot.name, slot.id);
  }
}

bool TokenIndex::Insert(std::string_view name, TokenId id) {
  if ((count_ + 1) * 2 > slots_.size()) Reserve((count_ + 1) * 2);
  size_t at = Hash(name) & (slots_.size() - 1);
  for (; slots_[at].id != kNoToken; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].name == name) return false;
  }
  slots_[at] = {name, id};
  ++count_;
  return true;
}

TokenId TokenIndex::Find(std::string_view name) const {
  if (slots_.empty()) return kNoToken;
  for (size_t at = Hash(name) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].id == kNoToken || slots_[at].name == name) return slots_[at].id;
  }
}

Result<BpeModel> BpeModel::Create(BpeInit init) {
  BpeModel model;
  model.fuse_unk_ = init.fuse_unk;
  model.byte_fallback_ = init.byte_fallback;
  model.ignore_merges_ = init.ignore_merges;
  model.byte_level_ = init.byte_level;
  model.byte_tokens_.fill(kNoToken);

  // Ids may have gaps, but not so many that a small file makes a huge table.
  const size_t count = init.vocab.size();
  const auto limit =
      static_cast<TokenId>(std::min<size_t>(static_cast<size_t>(kMaxTokens), count * 8 + 65536));
  TokenId largest = -1;
  for (const auto& [name, id] : init.vocab) {
    if (id < 0 || id >= limit) {
      return Error{ErrorCode::kLimit, "token id " + std::to_string(id) + " is out of range",
                   "/vocab/" + name};
    }
    largest = std::max(largest, id);
  }
  model.names_.resize(static_cast<size_t>(largest + 1));
  std::vector<bool> used(model.names_.size());
  model.storage_.reserve(count);
  model.index_.Reserve(count);
  for (auto& [name, id] : init.vocab) {
    if (used[static_cast<size_t>(id)]) {
      return Invalid("token id " + std::to_string(id) + " is used twice", "/vocab/" + name);
    }
    used[static_cast<size_t>(id)] = true;
    model.storage_.push_back(std::move(name));
    model.names_[static_cast<size_t>(id)] = model.storage_.back();
    if (!model.index_.Insert(model.storage_.back(), id)) {
      return Invalid("the token is there twice", "/vocab/" + model.storage_.back());
    }
  }

  std::vector<bool> forbidden(model.names_.size());
  for (const std::string& name : init.forbidden) {
    const TokenId id = model.index_.Find(name);
    if (id != kNoToken) forbidden[static_cast<size_t>(id)] = true;
  }
  if (init.byte_level) model.bytes_.reserve(count);
  model.words_.Reserve(count);
  for (TokenId id = 0; id <= largest; ++id) {
    const auto i = static_cast<size_t>(id);
    if (!used[i] || forbidden[i]) continue;
    std::string_view word = model.names_[i];
    if (init.byte_level) {
      std::optional<std::string> bytes = AlphabetToBytes(word);
      if (!bytes) continue;  // outside the alphabet: no word can spell it
      model.bytes_.push_back(std::move(*bytes));
      word = model.bytes_.back();
      if (word.size() == 1) model.byte_tokens_[static_cast<unsigned char>(word[0])] = id;
    }
    model.words_.Insert(word, id);
    model.longest_ = std::max(model.longest_, word.size());
  }
  if (init.byte_fallback && !init.byte_level) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte) {
      const char name[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
      const TokenId id = model.index_.Find({name, sizeof(name)});
      if (id != kNoToken && !forbidden[static_cast<size_t>(id)]) {
        model.byte_tokens_[static_cast<size_t>(byte)] = id;
      }
    }
  }
  if (!init.unk_token.empty()) {
    model.unknown_ = model.index_.Find(init.unk_token);
    if (model.unknown_ == kNoToken) {
      return Invalid("the unknown token is not in the vocabulary", "/unk_token");
    }
  }
  constexpr size_t kCharacter = 4;  // the most bytes of one
  const bool all_bytes =
      (init.byte_level || init.byte_fallback) &&
      std::ranges::find(model.byte_tokens_, kNoToken) == model.byte_tokens_.end();
  model.longest_ = std::max(model.longest_, kCharacter);
  if (!all_bytes && (model.unknown_ == kNoToken || model.fuse_unk_)) model.longest_ = 0;
  // A merge that makes a special token is kept out: text must never turn into one.
  model.merges_.resize(PowerOfTwoFor(init.merges.size()));
  std::string joined;
  for (size_t rank = 0; rank < init.merges.size(); ++rank) {
    const auto& [left, right] = init.merges[rank];
    joined.assign(left).append(right);
    const TokenId a = model.index_.Find(left), b = model.index_.Find(right),
                  c = model.index_.Find(joined);
    const auto place = [rank] { return "/merges/" + std::to_string(rank); };
    if (left.empty() || right.empty()) return Invalid("a merge with an empty side", place());
    if (a == kNoToken) return Invalid("\"" + left + "\" is not in the vocabulary", place());
    if (b == kNoToken) return Invalid("\"" + right + "\" is not in the vocabulary", place());
    if (c == kNoToken) return Invalid("\"" + joined + "\" is not in the vocabulary", place());
    if (!forbidden[static_cast<size_t>(c)]) model.InsertMerge(a, b, static_cast<uint32_t>(rank), c);
  }
  return model;
}

void BpeModel::InsertMerge(TokenId left, TokenId right, uint32_t rank, TokenId merged) {
  const uint64_t pair = (static_cast<uint64_t>(left) << 32) | static_cast<uint32_t>(right);
  const size_t mask = merges_.size() - 1;
  size_t at = MixPair(pair) & mask;
  while (merges_[at].pair != UINT64_MAX && merges_[at].pair != pair) at = (at + 1) & mask;
  merges_[at] = {pair, rank, merged};  // of a pair that is listed twice the later rank counts
}

const BpeModel::MergeSlot* BpeModel::FindMerge(TokenId left, TokenId right) const {
  const uint64_t pair = (static_cast<uint64_t>(left) << 32) | static_cast<uint32_t>(right);
  const size_t mask = merges_.size() - 1;
  for (size_t at = MixPair(pair) & mask;; at = (at + 1) & mask) {
    if (merges_[at].pair == pair) return &merges_[at];
    if (merges_[at].pair == UINT64_MAX) return nullptr;
  }
}

void BpeModel::Split(std::string_view word, std::vector<Scratch::Symbol>& symbols) const {
  bool after_unknown = false;
  StopSteps steps;
  const auto add = [&](TokenId id) { symbols.push_back({id, 0, 0}); };
  for (size_t i = 0; i < word.size();) {
    steps.Step();
    const auto byte = static_cast<unsigned char>(word[i]);
    size_t length = 1;
    TokenId id;
    if (byte_level_) {
      id = byte_tokens_[byte];
    } else {
      length = byte < 0x80 ? 1 : static_cast<size_t>(DecodeUtf8(word.substr(i)).length);
      id = words_.Find(word.substr(i, length));
    }
    const std::string_view character = word.substr(i, length);
    i += length;
    if (id != kNoToken) {
      add(id);
      after_unknown = false;
      continue;
    }
    if (byte_fallback_ && !byte_level_) {
      const auto token = [this](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
      if (std::all_of(character.begin(), character.end(),
                      [&](char c) { return token(c) != kNoToken; })) {
        for (const char c : character) add(token(c));
        after_unknown = false;
        continue;
      }
    }
    if (unknown_ != kNoToken && !(after_unknown && fuse_unk_)) add(unknown_);
    after_unknown = true;
  }
  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[static_cast<size_t>(i)].previous = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
}

void BpeModel::MergeShort(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& ranks = scratch.ranks;  // ranks[i]: of symbols i and i + 1
  const auto rank_of = [&](size_t i) {
    const MergeSlot* merge = FindMerge(symbols[i].id, symbols[i + 1].id);
    return merge == nullptr ? kNoRank : merge->rank;
  };
  ranks.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) ranks.push_back(rank_of(i));
  while (!ranks.empty()) {
    const auto best = std::min_element(ranks.begin(), ranks.end());
    if (*best == kNoRank) return;
    const auto i = static_cast<size_t>(best - ranks.begin());
    symbols[i].id = FindMerge(symbols[i].id, symbols[i + 1].id)->merged;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(i) + 1);
    ranks.erase(best);
    if (i < ranks.size()) ranks[i] = rank_of(i);
    if (i > 0) ranks[i - 1] = rank_of(i - 1);
  }
}

void BpeModel::MergeLong(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  heap.clear();
  StopSteps steps;
  const auto later = [&steps](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    steps.Step();
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto candidate = [&](int32_t position) {
    const auto& left = symbols[static_cast<size_t>(position)];
    if (left.next < 0) return false;
    const MergeSlot* merge = FindMerge(left.id, symbols[static_cast<size_t>(left.next)].id);
    if (merge != nullptr) heap.push_back({merge->rank, position, merge->merged});
    return merge != nullptr;
  };
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) {
    steps.Step();
    candidate(i);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Scratch::Candidate top = heap.back();
    heap.pop_back();
    auto& left = symbols[static_cast<size_t>(top.position)];
    if (left.id == kNoToken || left.next < 0) continue;  // merged away, or nothing to its right
    auto& right = symbols[static_cast<size_t>(left.next)];
    const MergeSlot* merge = FindMerge(left.id, right.id);
    if (merge == nullptr || merge->merged != top.merged) continue;
    left.id = top.merged;
    left.next = right.next;
    right.id = kNoToken;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = top.position;
    if (candidate(top.position)) std::push_heap(heap.begin(), heap.end(), later);
    if (left.previous >= 0 && candidate(left.previous)) {
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
}

void BpeModel::Encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    const TokenId whole = words_.Find(word);
    if (whole != kNoToken) {
      out.push_back(whole);
      return;
    }
  }
  scratch.symbols.clear();
  Split(word, scratch.symbols);
  if (scratch.symbols.size() <= kShortWord) {
    MergeShort(scratch);
    for (const auto& symbol : scratch.symbols) out.push_back(symbol.id);
    return;
  }
  MergeLong(scratch);
  for (int32_t i = 0; i >= 0; i = scratch.symbols[static_cast<size_t>(i)].next) {
    out.push_back(scratch.symbols[static_cast<size_t>(i)].id);
  }
}

}  // namespace pawl
