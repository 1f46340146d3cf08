// Masks of values. Most places where a value may come want one of a few things (any string, an
// integer, ...), and a value neither knows nor cares where it stands. So the tokens that stay
// inside the value are found once for each goal, in a text that is the value and nothing else, and
// shared by all places with that goal; a place has only to walk the few tokens that go on behind
// the value.
#include <algorithm>
#include <array>
#include <bitset>

#include "grammar/masks/mask_builder.h"
#include "grammar/masks/mask_path.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/masks/structure_tokens.h"

namespace pawl::schema {
namespace {
constexpr size_t kDigitsAtOnce = 32;  // longer numbers in one token are walked like anything else
}

Machine::Key SchemaMachine::Detached(Key state) {
  const Lexeme& lexeme = lexemes_[LexemeOf(state)];
  switch (lexeme.mode) {
    case Mode::kColon:
    case Mode::kValue:
    case Mode::kNumber:
    case Mode::kLiteral:
      break;
    default:
      return kDead;
  }
  const Node& node = nodes_[FrameOf(state)];
  const Frame& frame = frames_[node.frame];
  if (node.tracks_items || !frame.has_pending || !frame.waiting.empty()) return kDead;
  if (frame.kind == kNullValue) return kDead;  // it stands alone already
  Node alone;
  alone.frame = frames_.Root(frame.pending_must);
  return MakeKey(InternNode(alone), LexemeOf(state));
}

bool SchemaMachine::Exits(Key state, uint8_t byte) {
  if (!IsSpace(byte) && byte != ',' && byte != ']' && byte != '}') return false;
  if (nodes_[FrameOf(state)].parent != 0) return false;
  const Lexeme& lexeme = lexemes_[LexemeOf(state)];
  return lexeme.mode == Mode::kAfter ||
         (lexeme.mode == Mode::kNumber && numbers_[lexeme.search]->Accepts(lexeme.state));
}

Machine::Key SchemaMachine::AfterDetached(Key state) { return EndValue(FrameOf(state), {}, -1); }

uint64_t SchemaMachine::SpacesAllowed(Key state) const {
  const Lexeme& lexeme = lexemes_[LexemeOf(state)];
  switch (options_.whitespace) {
    case JsonSchemaOptions::Whitespace::kCompact:
      return 0;
    case JsonSchemaOptions::Whitespace::kBounded: {
      const auto most = static_cast<uint32_t>(std::max(0, options_.max_whitespace));
      if (lexeme.mode == Mode::kAfter && nodes_[FrameOf(state)].parent == 0) return 0;
      return lexeme.state < most ? most - lexeme.state : 0;
    }
    case JsonSchemaOptions::Whitespace::kAny:
      return UINT64_MAX;
  }
  return 0;
}

void SchemaMachine::WalkAll(Key state, const Vocabulary& vocabulary, uint32_t* words) {
  const TokenTrie& trie = vocabulary.trie();
  std::vector<Key> stack(static_cast<size_t>(trie.max_depth()) + 1);
  const auto leaves = Leaves(vocabulary);
  const Mode mode = lexemes_[LexemeOf(state)].mode;
  if (mode == Mode::kNumber || mode == Mode::kLiteral) {
    for (uint32_t i = 0; i < trie.size(); i = trie.nodes()[i].end) {
      if (detaching_ != nullptr && Exits(state, trie.nodes()[i].byte)) {
        detaching_->ends_here = true;
        continue;
      }
      if (const Key entered = Step(state, trie.nodes()[i].byte); entered != kDead)
        WalkBelow(*this, vocabulary, i, entered, words, stack, leaves);
    }
    return;
  }
  if (const std::string_view owed = Owed(lexemes_[LexemeOf(state)]); !owed.empty()) {
    uint32_t at = TokenTrie::kRoot;
    for (const char c : owed) {
      at = trie.Child(at, static_cast<uint8_t>(c));
      if (at == TokenTrie::kNone) return;
      state = StepFrame(state, static_cast<uint8_t>(c));
      trie.SetBits(trie.nodes()[at], words);
    }
    WalkBelow(*this, vocabulary, at, state, words, stack, leaves);
    return;
  }
  const StructureTokens& structure = vocabulary.Derived<StructureTokens>();
  const uint64_t spaces = SpacesAllowed(state);
  structure.SetSpaces(spaces, {words, static_cast<size_t>(vocabulary.mask_words())});
  for (const char* byte = Following(mode); *byte != 0; ++byte) {
    const auto places = structure.PlacesOf(static_cast<uint8_t>(*byte));
    if (places.empty()) continue;
    const Key entered = StepFrame(state, static_cast<uint8_t>(*byte));
    if (entered == kDead) continue;
    for (const StructureTokens::Place& place : places) {
      if (place.spaces <= spaces)
        WalkBelow(*this, vocabulary, place.node, entered, words, stack, leaves);
    }
  }
}

const SchemaMachine::ValueMask& SchemaMachine::ValueMaskOf(Key detached,
                                                           const Vocabulary& vocabulary) {
  std::unique_ptr<ValueMask>& slot = value_masks_[detached];
  if (slot != nullptr) return *slot;
  auto mask = std::make_unique<ValueMask>();
  mask->words.assign(static_cast<size_t>(vocabulary.mask_words()), 0);
  detaching_ = mask.get();
  WalkAll(detached, vocabulary, mask->words.data());
  detaching_ = nullptr;
  slot = std::move(mask);
  return *slot;
}

void SchemaMachine::FillNumber(Key state, const Vocabulary& vocabulary, uint32_t begin,
                               uint32_t* words) {
  const TokenTrie& trie = vocabulary.trie();
  const auto nodes = trie.nodes();
  std::vector<Key> below;
  std::array<LexemeId, kDigitsAtOnce> stack;
  const uint16_t top = nodes[begin].depth;
  stack[0] = LexemeOf(state);
  const Lexeme lexeme = lexemes_[stack[0]];
  const auto is_digit = [](uint8_t byte) { return byte >= '0' && byte <= '9'; };
  const bool any_digits = numbers_[lexeme.search]->TakesAnyDigits(lexeme.state);
  std::array<uint8_t, kDigitsAtOnce> path;  // byte by depth below `begin`
  size_t passed = 0;                        // digits of the path that were taken without a look
  for (uint32_t i = begin + 1; i < nodes[begin].end;) {
    const TokenTrie::Node& node = nodes[i];
    const auto depth = static_cast<size_t>(node.depth - top);
    const bool fits = depth < kDigitsAtOnce;
    passed = std::min(passed, depth - 1);
    if (fits && any_digits && passed == depth - 1 && is_digit(node.byte)) {
      path[depth] = node.byte;
      passed = depth;
      trie.SetBits(node, words);
      ++i;
      continue;
    }
    LexemeId before = stack[0];
    if (passed == depth - 1) {
      for (size_t k = 1; k < depth; ++k) before = StepNumber(before, path[k]);
    } else {
      before = stack[depth - 1];
    }
    const LexemeId after = StepNumber(before, node.byte);
    if (after == kDeadLexeme) {
      i = node.end;
    } else if (after == kLeavesLexeme || !fits) {
      const Key key = MakeKey(FrameOf(state), before);
      if (detaching_ != nullptr && Exits(key, node.byte)) {
        detaching_->exits.push_back(i);
      } else if (const Key entered = Step(key, node.byte); entered != kDead) {
        below.resize(static_cast<size_t>(trie.max_depth()) + 1);
        WalkBelow(*this, vocabulary, i, entered, words, below, Leaves(vocabulary));
      }
      i = node.end;
    } else {
      path[depth] = node.byte;
      stack[depth] = after;
      trie.SetBits(node, words);
      ++i;
    }
  }
}

bool SchemaMachine::FillValue(Key state, const Vocabulary& vocabulary, uint32_t* words) {
  if (TracksText(FrameOf(state))) return false;
  TokensOf(vocabulary);
  const Key detached = Detached(state);
  if (detached == kDead) {
    WalkAll(state, vocabulary, words);
    last_mask_path = MaskPath::kStructure;
    return true;
  }
  const ValueMask& mask = ValueMaskOf(detached, vocabulary);
  last_mask_path = MaskPath::kValue;
  std::copy(mask.words.begin(), mask.words.end(), words);
  if (mask.exits.empty() && mask.closings.empty() && !mask.ends_here) return true;
  const Key after = AfterDetached(state);
  if (after == kDead) return true;
  if (mask.ends_here) WalkAll(after, vocabulary, words);
  if (!mask.closings.empty()) {
    const Rests& rests = RestsAfter(after);
    for (const auto& [token, rest] : mask.closings) {
      if (((rests[rest >> 6] >> (rest & 63)) & 1) != 0)
        words[static_cast<size_t>(token) >> 5] |= 1u << (token & 31);
    }
  }
  const TokenTrie& trie = vocabulary.trie();
  std::array<Key, 256> left;
  std::bitset<256> known;
  std::vector<Key> stack(static_cast<size_t>(trie.max_depth()) + 1);
  for (const uint32_t exit : mask.exits) {
    const TokenTrie::Node& node = trie.nodes()[exit];
    if (!known[node.byte]) {
      known[node.byte] = true;
      left[node.byte] = Step(after, node.byte);
    }
    if (left[node.byte] != kDead)
      WalkBelow(*this, vocabulary, exit, left[node.byte], words, stack,
                [](Key, uint32_t) { return false; });
  }
  last_mask_path = MaskPath::kValue;
  return true;
}

}  // namespace pawl::schema
