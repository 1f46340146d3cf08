// A mask is what the bytes of tokens allow, then the tokens that a machine takes as a whole, then
// the end of the output.
#include "grammar/masks/mask_builder.h"

#include <string_view>

#include "grammar/masks/machine_masks.h"
#include "grammar/vocabulary_tables.h"

namespace pawl {

// The half of a mask that depends on the lexeme alone is one walk with lexeme states for the
// automaton: a byte that the lexeme's state cannot answer for is a crossing.

namespace {
constexpr size_t kMaxInsideBytes = size_t{256}
                                   << 20;  // forget everything beyond that: it can be recomputed
}  // namespace

LexemeMasks::LexemeMasks(Machine& machine, const Vocabulary& vocabulary)
    : machine_(machine),
      vocabulary_(vocabulary),
      stack_(WalkStack<Machine::Key>(TrieOf(vocabulary))),
      lexeme_stack_(WalkStack<uint32_t>(TrieOf(vocabulary))) {}

const LexemeMasks::Inside& LexemeMasks::InsideOf(uint32_t lexeme) {
  const auto it = inside_.find(lexeme);
  if (it != inside_.end()) return *it->second;
  auto inside = std::make_unique<Inside>();
  inside->words.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
  const TokenTrie& trie = TrieOf(vocabulary_);
  Walk(trie, TokenTrie::kRoot, lexeme, lexeme_stack_, [&](uint32_t before, uint32_t i) {
    const TokenTrie::Node& node = trie.nodes()[i];
    const uint32_t after = machine_.StepLexeme(before, node.byte);
    if (after == Machine::kLeavesLexeme) {
      inside->crossings.push_back({i, before});
      return Machine::kDeadLexeme;
    }
    if (after != Machine::kDeadLexeme) trie.SetBits(node, inside->words.data());
    return after;
  });
  inside_bytes_ +=
      inside->words.size() * 4 + inside->crossings.size() * sizeof(Inside::Crossing) + 64;
  if (inside_bytes_ > kMaxInsideBytes) {
    inside_.clear();
    inside_bytes_ = 0;
  }
  return *(inside_[lexeme] = std::move(inside));
}

uint32_t LexemeMasks::Tracked(uint32_t frame, uint32_t node) {
  const auto nodes = TrieOf(vocabulary_).nodes();
  uint32_t below = node;  // any token below this node begins with the bytes up to here
  while (nodes[below].token == kNoToken) ++below;
  for (const char c : vocabulary_.bytes(nodes[below].token).substr(0, nodes[node].depth - 1u))
    frame = machine_.AppendText(frame, static_cast<uint8_t>(c));
  return frame;
}

std::vector<uint32_t> MaskBuilder::Build(Machine::Key state) {
  std::vector<uint32_t> words(static_cast<size_t>(vocabulary_.mask_words()), 0);
  Build(state, words);
  return words;
}

MaskStrategy MaskBuilder::Build(Machine::Key state, std::vector<uint32_t>& words) {
  state = machine_.AtToken(state, vocabulary_);
  MachineMasks* const own = machine_.Masks(vocabulary_);
  std::optional<MaskStrategy> path = own == nullptr ? std::nullopt : own->Fill(state, words.data());
  if (!path) {
    lexemes_.Fill(state, words.data());
    path = MaskStrategy::kTrieWalk;
  }
  machine_.FillTokens(state, words.data());
  if (machine_.Accepting(state)) {
    for (const TokenId id : vocabulary_.end_tokens())
      words[static_cast<size_t>(id) >> 5] |= 1u << (id & 31);
  }
  return *path;
}

}  // namespace pawl
