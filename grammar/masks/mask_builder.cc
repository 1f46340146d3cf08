// One pass over the trie finds, for a lexeme state, the tokens that stay inside the lexeme and the
// places where a token leaves it. Both depend on the lexeme state alone, so they are kept; what
// remains for a new frame are the subtrees behind the crossing places (for a JSON string: the few
// hundred tokens with a closing quote), walked with full steps. Where every byte leaves the lexeme
// (structure, the start of a value) the first half is empty and the second is the whole walk, which
// is narrow there. A machine may know its lexemes better than that (Machine::FillBelow).
#include "grammar/masks/mask_builder.h"

#include <array>
#include <bitset>

#include "grammar/masks/mask_path.h"

namespace pawl {
namespace {
constexpr size_t kMaxInsideBytes = size_t{256}
                                   << 20;  // forget everything beyond that: it can be recomputed
}  // namespace

MaskBuilder::MaskBuilder(Machine& machine, const Vocabulary& vocabulary)
    : machine_(machine), vocabulary_(vocabulary) {
  const size_t depth = static_cast<size_t>(vocabulary.trie().max_depth()) + 1;
  stack_.resize(depth);
  lexeme_stack_.resize(depth);
}

const MaskBuilder::Inside& MaskBuilder::InsideOf(uint32_t lexeme) {
  auto it = inside_.find(lexeme);
  if (it != inside_.end()) return *it->second;
  auto inside = std::make_unique<Inside>();
  inside->words.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
  const TokenTrie& trie = vocabulary_.trie();
  const auto nodes = trie.nodes();
  lexeme_stack_[0] = lexeme;
  for (uint32_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const uint32_t before = lexeme_stack_[node.depth - 1u];
    const uint32_t after = machine_.StepLexeme(before, node.byte);
    if (after == Machine::kLeavesLexeme) {
      inside->crossings.push_back({i, before});
      i = node.end;
    } else if (after == Machine::kDeadLexeme) {
      i = node.end;
    } else {
      lexeme_stack_[node.depth] = after;
      trie.SetBits(node, inside->words.data());
      ++i;
    }
  }
  inside_bytes_ +=
      inside->words.size() * 4 + inside->crossings.size() * sizeof(Inside::Crossing) + 64;
  if (inside_bytes_ > kMaxInsideBytes) {
    inside_.clear();
    inside_bytes_ = 0;
  }
  return *(inside_[lexeme] = std::move(inside));
}

void MaskBuilder::WalkTrie(Machine::Key state, std::vector<uint32_t>& words) {
  const uint32_t lexeme = Machine::LexemeOf(state);
  const Inside& inside = InsideOf(lexeme);
  words = inside.words;
  const TokenTrie& trie = vocabulary_.trie();
  const auto nodes = trie.nodes();
  const uint32_t frame = Machine::FrameOf(state);
  const bool tracks_text = machine_.TracksText(frame);
  // Many tokens leave the same lexeme by the same byte (white space before a bracket).
  std::array<Machine::Key, 256> left;
  std::bitset<256> known;
  uint32_t known_lexeme = Machine::kDeadLexeme;
  for (const Inside::Crossing& crossing : inside.crossings) {
    const TokenTrie::Node& start = nodes[crossing.node];
    Machine::Key entered;
    if (tracks_text && start.depth > 1) {
      // The frame has to see the bytes up to here; any token below this node begins with them.
      uint32_t below = crossing.node;
      while (nodes[below].token == kNoToken) ++below;
      const std::string_view path =
          vocabulary_.bytes(nodes[below].token).substr(0, start.depth - 1u);
      uint32_t tracked = frame;
      for (const char c : path) tracked = machine_.AppendText(tracked, static_cast<uint8_t>(c));
      entered = machine_.StepFrame(Machine::MakeKey(tracked, crossing.lexeme), start.byte);
    } else {
      if (crossing.lexeme != known_lexeme) {
        known.reset();
        known_lexeme = crossing.lexeme;
      }
      if (!known[start.byte]) {
        known[start.byte] = true;
        left[start.byte] = machine_.StepFrame(Machine::MakeKey(frame, crossing.lexeme), start.byte);
      }
      entered = left[start.byte];
    }
    if (entered == Machine::kDead) continue;
    WalkBelow(machine_, vocabulary_, crossing.node, entered, words.data(), stack_,
              [](Machine::Key, uint32_t) { return false; });
  }
}

std::vector<uint32_t> MaskBuilder::Build(Machine::Key state) {
  std::vector<uint32_t> words(static_cast<size_t>(vocabulary_.mask_words()), 0);
  Build(state, words);
  return words;
}

void MaskBuilder::Build(Machine::Key state, std::vector<uint32_t>& words) {
  if (!machine_.FillBelow(state, vocabulary_, TokenTrie::kRoot, true, words.data())) {
    WalkTrie(state, words);
    last_mask_path = MaskPath::kTrieWalk;
  }
  machine_.FillTokens(state, vocabulary_, words.data());
  if (machine_.Accepting(state)) {
    for (const TokenId id : vocabulary_.end_tokens())
      words[static_cast<size_t>(id) >> 5] |= 1u << (id & 31);
  }
}

}  // namespace pawl
