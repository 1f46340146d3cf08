// A place is a pair of neighbouring bytes in a token: one that can end the lexeme and one that can
// come after it. The index lists the trie's nodes by such pairs, so for each byte with which the
// continuation can begin the places are read off, the lexeme is followed to them, and the tokens
// behind are walked.
#include "grammar/cfg/automaton_masks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "grammar/masks/machine_masks.h"
#include "grammar/vocabulary_tables.h"

namespace pawl {
namespace {

constexpr size_t kStepsPerPlace = 6;  // that following a place takes, against one of a walk

}  // namespace

BytePairs::BytePairs(const Vocabulary& vocabulary) {
  const auto nodes = TrieOf(vocabulary).nodes();
  begin_.assign((size_t{1} << 16) + 1, 0);
  std::vector<uint8_t> path(static_cast<size_t>(TrieOf(vocabulary).max_depth()) + 1);
  const auto each = [&](const auto& f) {
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      path[nodes[i].depth] = nodes[i].byte;
      if (nodes[i].depth < 2) continue;
      f(static_cast<size_t>(path[nodes[i].depth - 1u]) << 8 | nodes[i].byte, i);
    }
  };
  each([&](size_t pair, uint32_t) { ++begin_[pair + 1]; });
  for (size_t pair = 0; pair + 1 < begin_.size(); ++pair) begin_[pair + 1] += begin_[pair];
  nodes_.resize(begin_.back());
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  each([&](size_t pair, uint32_t node) { nodes_[next[pair]++] = node; });
}

std::optional<std::vector<uint32_t>> AutomatonMasks::Fill(Machine& machine, Machine::Key key,
                                                          const std::bitset<256>& first,
                                                          uint32_t* words) {
  const TokenTrie& trie = TrieOf(vocabulary_);
  if (pairs_ == nullptr) pairs_ = &TableOf<BytePairs>(vocabulary_);
  auto known = last_bytes_.find(&machine);
  if (known == last_bytes_.end()) known = last_bytes_.emplace(&machine, machine.LastBytes()).first;
  const std::bitset<256>& last = known->second;
  size_t places = 0;
  for (int b = 0; b < 256; ++b) {
    if (!first[b]) continue;
    for (int a = 0; a < 256; ++a) {
      if (last[a]) places += pairs_->Of(static_cast<uint8_t>(a), static_cast<uint8_t>(b)).size();
    }
  }
  if (places * kStepsPerPlace > trie.size()) return std::nullopt;
  MachineMasks* const masks = machine.Masks(vocabulary_);
  scratch_.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
  if (masks == nullptr || !masks->Fill(key, scratch_.data())) return std::nullopt;
  for (size_t i = 0; i < scratch_.size(); ++i) words[i] |= scratch_[i];
  std::vector<uint32_t> leaving;
  std::array<Machine::Key, 256> after_first;
  std::bitset<256> asked;
  for (int b = 0; b < 256; ++b) {
    if (!first[b]) continue;
    for (int a = 0; a < 256; ++a) {
      if (!last[a]) continue;
      for (const uint32_t node : pairs_->Of(static_cast<uint8_t>(a), static_cast<uint8_t>(b))) {
        const std::string_view bytes = vocabulary_.bytes(trie.order()[trie.FirstToken(node)]);
        const auto start = static_cast<uint8_t>(bytes[0]);
        if (!asked[start]) {
          asked.set(start);
          after_first[start] = machine.Step(key, start);
        }
        Machine::Key at = after_first[start];
        for (size_t i = 1; i + 1 < trie.nodes()[node].depth && at != Machine::kDead; ++i)
          at = machine.Step(at, static_cast<uint8_t>(bytes[i]));
        if (at != Machine::kDead && machine.Accepting(at)) leaving.push_back(node);
      }
    }
  }
  return leaving;
}

}  // namespace pawl
