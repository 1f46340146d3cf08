// The automaton of Aho and Corasick over bytes, with what is begun of a UTF-8 character next to it.
// A mask differs from the one between two stops (nothing of any stop read) only below the bytes
// that go on with a stop: the trie is walked from both places at once, and a subtree is left as
// soon as both are in the same state. So all masks but the first take microseconds.
#include "grammar/cfg/free_text.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "grammar/cfg/automaton_masks.h"
#include "grammar/masks/machine_masks.h"
#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "src/base/memory_size.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

constexpr uint8_t kBadUtf8 = 255;

// What is begun of a character: so many continuation bytes to come (1 to 3), or after one of the
// first bytes that want a narrower second one.
constexpr uint8_t kWhole = 0, kOne = 1, kTwo = 2, kThree = 3;
constexpr uint8_t kAfterE0 = 4, kAfterEd = 5, kAfterF0 = 6, kAfterF4 = 7;

uint8_t StepUtf8(uint8_t state, uint8_t byte) {
  const auto in = [byte](uint8_t low, uint8_t high, uint8_t next) {
    return byte >= low && byte <= high ? next : kBadUtf8;
  };
  switch (state) {
    case kWhole:
      if (byte < 0x80) return kWhole;
      if (byte < 0xC2) return kBadUtf8;
      if (byte < 0xE0) return kOne;
      if (byte == 0xE0) return kAfterE0;
      if (byte == 0xED) return kAfterEd;
      if (byte < 0xF0) return kTwo;
      if (byte == 0xF0) return kAfterF0;
      if (byte < 0xF4) return kThree;
      return byte == 0xF4 ? kAfterF4 : kBadUtf8;
    case kOne:
      return in(0x80, 0xBF, kWhole);
    case kTwo:
      return in(0x80, 0xBF, kOne);
    case kThree:
      return in(0x80, 0xBF, kTwo);
    case kAfterE0:
      return in(0xA0, 0xBF, kOne);
    case kAfterEd:
      return in(0x80, 0x9F, kOne);
    case kAfterF0:
      return in(0x90, 0xBF, kTwo);
    default:
      return in(0x80, 0x8F, kTwo);
  }
}

// The tokens of a vocabulary that UTF-8 text goes on with where no character is begun.
struct Utf8Tokens {
  explicit Utf8Tokens(const Vocabulary& vocabulary)
      : words(static_cast<size_t>(vocabulary.mask_words()), 0) {
    // One more than the state, which leaves 0 for what does not fit.
    const TokenTrie& trie = TrieOf(vocabulary);
    std::vector<uint8_t> stack = WalkStack<uint8_t>(trie);
    Walk(trie, TokenTrie::kRoot, uint8_t{kWhole + 1}, stack, [&](uint8_t before, uint32_t i) {
      const uint8_t next = StepUtf8(static_cast<uint8_t>(before - 1), trie.nodes()[i].byte);
      if (next != kBadUtf8) trie.SetBits(trie.nodes()[i], words.data());
      return static_cast<uint8_t>(next + 1);  // kBadUtf8 + 1 is 0
    });
  }
  std::vector<uint32_t> words;
};

void ClearBelow(const TokenTrie& trie, uint32_t node, uint32_t* words) {
  for (uint32_t t = trie.FirstToken(node); t < trie.FirstToken(trie.nodes()[node].end); ++t) {
    const TokenId id = trie.order()[t];
    words[id >> 5] &= ~(1u << (id & 31));
  }
}

}  // namespace

FreeText::FreeText(const FreeTextRules& rules) : stops_(rules.stops), max_chars_(rules.max_chars) {
  nodes_.emplace_back();
  for (const std::string& stop : rules.stops) {
    uint32_t at = 0;
    for (const char c : stop) {
      const uint64_t edge = uint64_t{at} << 8 | static_cast<uint8_t>(c);
      if (const uint32_t* known = children_.Find(edge)) {
        at = *known;
        continue;
      }
      at = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
      children_.Insert(edge, at);
    }
    nodes_[at].stop = true;
  }
  // By breadth: a node's longest proper suffix that is a node too.
  std::vector<std::vector<std::pair<uint8_t, uint32_t>>> children(nodes_.size());
  for (const std::string& stop : rules.stops) {
    uint32_t at = 0;
    for (const char c : stop) {
      const auto byte = static_cast<uint8_t>(c);
      const uint32_t child = *children_.Find(uint64_t{at} << 8 | byte);
      if (std::ranges::find(children[at], std::pair(byte, child)) == children[at].end())
        children[at].emplace_back(byte, child);
      at = child;
    }
  }
  std::vector<uint32_t> queue = {0};
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t at = queue[i];
    for (const auto& [byte, child] : children[at]) {
      nodes_[child].fail = at == 0 ? 0 : Next(nodes_[at].fail, byte);
      nodes_[child].stop = nodes_[child].stop || nodes_[nodes_[child].fail].stop;
      queue.push_back(child);
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    const uint32_t* child = children_.Find(static_cast<uint64_t>(byte));
    first_[byte] = child == nullptr ? 0 : *child;
  }
  start_ = KeyOf({0, 0, kWhole});
  if (rules.before.empty()) return;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    bool reached = nodes_[node].stop;
    uint32_t at = node;
    for (size_t i = 0; i + 1 < rules.before.size() && !reached; ++i) {
      at = Next(at, static_cast<uint8_t>(rules.before[i]));
      reached = nodes_[at].stop;
    }
    if (!reached || nodes_[node].stop) continue;
    if (restricted_.empty()) restricted_.assign(nodes_.size(), false);
    restricted_[node] = true;
  }
  if (!restricted_.empty() && restricted_[0]) start_ = kDead;  // `before` has a stop inside
}

uint32_t FreeText::Next(uint32_t node, uint8_t byte) const {
  while (true) {
    if (node == 0) {
      if (const uint32_t known = first_[byte]; known != 0) return known;
    }
    if (const uint32_t* child = children_.Find(uint64_t{node} << 8 | byte)) return *child;
    if (node == 0) return 0;
    node = nodes_[node].fail;
  }
}

Machine::Key FreeText::StepFrame(Key state, uint8_t byte) {
  Place place = PlaceOf(state);
  if (max_chars_ && place.utf8 == kWhole && place.chars++ >= *max_chars_) return kDead;
  place.utf8 = StepUtf8(place.utf8, byte);
  if (place.utf8 == kBadUtf8) return kDead;
  place.node = Next(place.node, byte);
  return nodes_[place.node].stop ? kDead : KeyOf(place);
}

bool FreeText::Accepting(Key state) {
  const Place place = PlaceOf(state);
  return place.utf8 == kWhole && (restricted_.empty() || !restricted_[place.node]);
}

// One character that is begun has to be ended; a few more may lead away from a restricted place.
std::optional<std::string> FreeText::CompletionBytes(Key state) {
  struct Step {
    Key key;
    uint32_t before;
    uint8_t byte;
  };
  constexpr size_t kMaxSteps = 4096;
  std::vector<Step> steps = {{state, 0, 0}};
  std::unordered_set<Key> known = {state};
  for (size_t i = 0; i < steps.size() && steps.size() < kMaxSteps; ++i) {
    if (Accepting(steps[i].key)) {
      std::string text;
      for (size_t at = i; at != 0; at = steps[at].before)
        text.push_back(static_cast<char>(steps[at].byte));
      std::reverse(text.begin(), text.end());
      return text;
    }
    StopScope::Steps(256);
    for (int byte = 0; byte < 256; ++byte) {
      const Key next = StepFrame(steps[i].key, static_cast<uint8_t>(byte));
      if (next != kDead && known.insert(next).second)
        steps.push_back({next, static_cast<uint32_t>(i), static_cast<uint8_t>(byte)});
    }
  }
  return std::nullopt;
}

class FreeTextMasks : public MachineMasks {
 public:
  FreeTextMasks(FreeText& text, const Vocabulary& vocabulary)
      : text_(text),
        vocabulary_(vocabulary),
        trie_(TrieOf(vocabulary)),
        stack_(WalkStack<Both>(trie_)) {}

  std::optional<MaskStrategy> Fill(Machine::Key state, uint32_t* words) override;
  size_t MemoryBytes() const override { return HeapBytes(between_, stack_); }
  size_t GrowthHint() const override {
    return between_.size() * static_cast<size_t>(vocabulary_.mask_words()) * sizeof(uint32_t);
  }

 private:
  using Key = Machine::Key;
  using Place = FreeText::Place;
  // A state, and the one between two stops after the same bytes.
  struct Both {
    Key here = Machine::kDead, there = Machine::kDead;
    bool operator==(const Both&) const = default;
  };
  // The mask between two stops.
  const std::vector<uint32_t>& Between(const Place& place);

  FreeText& text_;
  const Vocabulary& vocabulary_;
  const TokenTrie& trie_;
  // What may follow between two stops, by what is begun of a character.
  std::map<uint8_t, std::vector<uint32_t>> between_;
  std::vector<Both> stack_;
};

FreeText::~FreeText() = default;

size_t FreeText::MemoryBytes() const {
  return HeapBytes(stops_, nodes_, children_, restricted_, masks_);
}

size_t FreeText::GrowthHint() const { return masks_ == nullptr ? 0 : masks_->GrowthHint(); }

MachineMasks* FreeText::Masks(const Vocabulary& vocabulary) {
  if (masks_ == nullptr) masks_ = std::make_unique<FreeTextMasks>(*this, vocabulary);
  return masks_.get();
}

// All of UTF-8, less the tokens with a stop inside; those are found by the stop's first two bytes.
const std::vector<uint32_t>& FreeTextMasks::Between(const Place& place) {
  std::vector<uint32_t>& words = between_[place.utf8];
  if (!words.empty()) return words;
  if (place.utf8 != kWhole) {
    words.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
    const Both start{FreeText::KeyOf({0, place.chars, place.utf8}), Machine::kDead};
    Walk(trie_, TokenTrie::kRoot, start, stack_, [&](const Both& before, uint32_t i) {
      const Key next = text_.StepFrame(before.here, trie_.nodes()[i].byte);
      if (next != Machine::kDead) trie_.SetBits(trie_.nodes()[i], words.data());
      return Both{next, Machine::kDead};
    });
    return words;
  }
  words = TableOf<Utf8Tokens>(vocabulary_).words;
  const BytePairs& pairs = TableOf<BytePairs>(vocabulary_);
  for (const std::string& stop : text_.stops_) {
    const auto follow = [&](uint32_t node, size_t from) {
      for (size_t k = from; k < stop.size() && node != TokenTrie::kNone; ++k)
        node = trie_.Child(node, static_cast<uint8_t>(stop[k]));
      if (node != TokenTrie::kNone) ClearBelow(trie_, node, words.data());
    };
    const auto first = static_cast<uint8_t>(stop[0]);
    if (stop.size() > 1) {
      for (const uint32_t node : pairs.Of(first, static_cast<uint8_t>(stop[1]))) follow(node, 2);
      continue;
    }
    if (const uint32_t node = trie_.Child(TokenTrie::kRoot, first); node != TokenTrie::kNone)
      follow(node, 1);
    for (int before = 0; before < 256; ++before) {
      for (const uint32_t node : pairs.Of(static_cast<uint8_t>(before), first)) follow(node, 1);
    }
  }
  return words;
}

std::optional<MaskStrategy> FreeTextMasks::Fill(Key state, uint32_t* words) {
  const Place place = text_.PlaceOf(state);
  if (text_.max_chars_ &&
      *text_.max_chars_ - place.chars < static_cast<uint32_t>(trie_.max_depth()))
    return std::nullopt;
  const Key between = FreeText::KeyOf({0, place.chars, place.utf8});
  const std::vector<uint32_t>& known = Between(place);
  std::copy(known.begin(), known.end(), words);
  if (between == state) return MaskStrategy::kTrieWalk;
  Walk(trie_, TokenTrie::kRoot, Both{state, between}, stack_, [&](Both at, uint32_t i) {
    at.here = text_.StepFrame(at.here, trie_.nodes()[i].byte);
    at.there = text_.StepFrame(at.there, trie_.nodes()[i].byte);
    if (at.here == Machine::kDead && at.there != Machine::kDead) ClearBelow(trie_, i, words);
    return at.here == Machine::kDead || at.here == at.there ? Both{} : at;
  });
  return MaskStrategy::kTrieWalk;
}

}  // namespace pawl
