// The automaton of Aho and Corasick over bytes, with what is begun of a UTF-8 character beside it.
// A mask differs from the one between two stops (nothing of any stop read) only below the bytes
// that go on with a stop: the trie is walked from both places at once, and a subtree is left as
// soon as both are in the same state. So all masks but the first take microseconds.
#include "grammar/cfg/free_text.h"

#include <algorithm>

#include "grammar/cfg/automaton_masks.h"
#include "grammar/masks/token_trie.h"

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
    const TokenTrie& trie = vocabulary.trie();
    const auto nodes = trie.nodes();
    std::vector<uint8_t> states(static_cast<size_t>(trie.max_depth()) + 1, kWhole);
    for (uint32_t i = 0; i < nodes.size();) {
      const uint8_t next = StepUtf8(states[nodes[i].depth - 1u], nodes[i].byte);
      if (next == kBadUtf8) {
        i = nodes[i].end;
        continue;
      }
      states[nodes[i].depth] = next;
      trie.SetBits(nodes[i], words.data());
      ++i;
    }
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
std::optional<std::string> FreeText::ShortestCompletion(Key state) {
  struct Step {
    Key key;
    uint32_t before;
    uint8_t byte;
  };
  constexpr size_t kMaxSteps = 4096;
  std::vector<Step> steps = {{state, 0, 0}};
  for (size_t i = 0; i < steps.size() && steps.size() < kMaxSteps; ++i) {
    if (Accepting(steps[i].key)) {
      std::string text;
      for (size_t at = i; at != 0; at = steps[at].before)
        text.push_back(static_cast<char>(steps[at].byte));
      std::reverse(text.begin(), text.end());
      return text;
    }
    for (int byte = 0; byte < 256; ++byte) {
      const Key next = StepFrame(steps[i].key, static_cast<uint8_t>(byte));
      if (next != kDead)
        steps.push_back({next, static_cast<uint32_t>(i), static_cast<uint8_t>(byte)});
    }
  }
  return std::nullopt;
}

// All of UTF-8, less the tokens with a stop inside; those are found by the stop's first two bytes.
const std::vector<uint32_t>& FreeText::Between(const Place& place, const Vocabulary& vocabulary) {
  std::vector<uint32_t>& words = between_[place.utf8];
  if (!words.empty()) return words;
  const TokenTrie& trie = vocabulary.trie();
  const auto nodes = trie.nodes();
  if (place.utf8 != kWhole) {
    words.assign(static_cast<size_t>(vocabulary.mask_words()), 0);
    here_[0] = KeyOf({0, place.chars, place.utf8});
    for (uint32_t i = 0; i < nodes.size();) {
      const Key next = StepFrame(here_[nodes[i].depth - 1u], nodes[i].byte);
      if (next == kDead) {
        i = nodes[i].end;
        continue;
      }
      here_[nodes[i].depth] = next;
      trie.SetBits(nodes[i], words.data());
      ++i;
    }
    return words;
  }
  words = vocabulary.Derived<Utf8Tokens>().words;
  const BytePairs& pairs = vocabulary.Derived<BytePairs>();
  for (const std::string& stop : stops_) {
    const auto follow = [&](uint32_t node, size_t from) {
      for (size_t k = from; k < stop.size() && node != TokenTrie::kNone; ++k)
        node = trie.Child(node, static_cast<uint8_t>(stop[k]));
      if (node != TokenTrie::kNone) ClearBelow(trie, node, words.data());
    };
    const auto first = static_cast<uint8_t>(stop[0]);
    if (stop.size() > 1) {
      for (const uint32_t node : pairs.Of(first, static_cast<uint8_t>(stop[1]))) follow(node, 2);
      continue;
    }
    if (const uint32_t node = trie.Child(TokenTrie::kRoot, first); node != TokenTrie::kNone)
      follow(node, 1);
    for (int before = 0; before < 256; ++before) {
      for (const uint32_t node : pairs.Of(static_cast<uint8_t>(before), first)) follow(node, 1);
    }
  }
  return words;
}

bool FreeText::FillBelow(Key state, const Vocabulary& vocabulary, uint32_t node, bool fresh,
                         uint32_t* words) {
  const TokenTrie& trie = vocabulary.trie();
  const Place place = PlaceOf(state);
  if (node != TokenTrie::kRoot || !fresh) return false;
  if (max_chars_ && *max_chars_ - place.chars < static_cast<uint32_t>(trie.max_depth()))
    return false;
  const auto nodes = trie.nodes();
  here_.resize(static_cast<size_t>(trie.max_depth()) + 1);
  there_.resize(here_.size());
  const Key between = KeyOf({0, place.chars, place.utf8});
  const std::vector<uint32_t>& known = Between(place, vocabulary);
  std::copy(known.begin(), known.end(), words);
  if (between == state) return true;
  here_[0] = state;
  there_[0] = between;
  for (uint32_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& at = nodes[i];
    const Key next = StepFrame(here_[at.depth - 1u], at.byte);
    const Key other = StepFrame(there_[at.depth - 1u], at.byte);
    if (next == kDead && other != kDead) ClearBelow(trie, i, words);
    if (next == kDead || next == other) {
      i = at.end;
      continue;
    }
    here_[at.depth] = next;
    there_[at.depth] = other;
    ++i;
  }
  return true;
}

}  // namespace pawl
