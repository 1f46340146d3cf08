// Masks of values. Most places where a value may come want one of a few things (any string, an
// integer, ...), and a value neither knows nor cares where it stands. So the tokens that stay
// inside the value are found once for each goal, in a text that is the value and nothing else, and
// shared by all places with that goal; a place has only to walk the few tokens that go on behind
// the value.
#include <algorithm>
#include <array>
#include <bitset>

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "schemas/limits.h"
#include "schemas/masks/schema_masks.h"

namespace pawl::schema {
namespace {
// In place of a state: digits that were taken without a look.
constexpr uint32_t kPassed = UINT32_MAX - 1;
}  // namespace

Machine::Key SchemaMasks::Standalone(Key state) {
  const Mode mode = LexemeAt(state).mode;
  if (mode != Mode::kColon && mode != Mode::kValue && mode != Mode::kNumber &&
      mode != Mode::kLiteral)
    return Machine::kDead;
  const Node& node = NodeAt(state);
  const Frame& frame = frames_[node.frame];
  if (node.tracks_items || !frame.has_pending || !frame.waiting.empty()) return Machine::kDead;
  if (frame.kind == kNullValue) return Machine::kDead;  // it stands alone already
  const NodeId alone = machine_.InternNode({.frame = frames_.Root(frame.pending_must)});
  return Machine::MakeKey(alone, Machine::LexemeOf(state));
}

bool SchemaMasks::Exits(Key state, uint8_t byte) const {
  if (!machine_.IsSpace(byte) && byte != ',' && byte != ']' && byte != '}') return false;
  if (NodeAt(state).parent != 0) return false;
  const Lexeme& lexeme = LexemeAt(state);
  return lexeme.mode == Mode::kAfter ||
         (lexeme.mode == Mode::kNumber && machine_.number(lexeme).Accepts(lexeme.state));
}

void SchemaMasks::WalkAll(Key state, uint32_t* words, ValueMask* apart) {
  const Mode mode = LexemeAt(state).mode;
  if (mode == Mode::kNumber || mode == Mode::kLiteral) {
    for (uint32_t i = 0; i < trie_.size(); i = trie_.nodes()[i].end) {
      if (apart != nullptr && Exits(state, trie_.nodes()[i].byte)) {
        apart->ends_here = true;
        continue;
      }
      if (const Key entered = machine_.Step(state, trie_.nodes()[i].byte);
          entered != Machine::kDead)
        WalkFrom(i, entered, words, apart);
    }
    return;
  }
  if (const std::string_view owed = machine_.Owed(LexemeAt(state)); !owed.empty()) {
    uint32_t at = TokenTrie::kRoot;
    for (const char c : owed) {
      at = trie_.Child(at, static_cast<uint8_t>(c));
      if (at == TokenTrie::kNone) return;
      state = machine_.StepFrame(state, static_cast<uint8_t>(c));
      trie_.SetBits(trie_.nodes()[at], words);
    }
    WalkFrom(at, state, words, apart);
    return;
  }
  const StructureTokens& structure = TableOf<StructureTokens>(vocabulary_);
  const uint64_t spaces = machine_.SpacesAllowed(state);
  structure.SetSpaces(spaces, {words, static_cast<size_t>(vocabulary_.mask_words())});
  for (const char* byte = SchemaMachine::Following(mode); *byte != 0; ++byte) {
    const auto places = structure.PlacesOf(static_cast<uint8_t>(*byte));
    if (places.empty()) continue;
    const Key entered = machine_.StepFrame(state, static_cast<uint8_t>(*byte));
    if (entered == Machine::kDead) continue;
    for (const StructureTokens::Place& place : places) {
      if (place.spaces <= spaces) WalkFrom(place.node, entered, words, apart);
    }
  }
}

const SchemaMasks::ValueMask& SchemaMasks::ValueMaskOf(Key detached) {
  std::unique_ptr<ValueMask>& slot = value_masks_[detached];
  if (slot != nullptr) return *slot;
  auto mask = std::make_unique<ValueMask>();
  mask->words.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
  WalkAll(detached, mask->words.data(), mask.get());
  slot = std::move(mask);
  return *slot;
}

// A number may end after any of its digits, and what may follow it is the same after each.
const SchemaMasks::SparseWords& SchemaMasks::WordsAfter(Key after) {
  const auto [it, fresh] = words_after_.try_emplace(after);
  if (!fresh) return it->second;
  scratch_words_.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
  WalkAll(after, scratch_words_.data(), nullptr);
  SparseWords found;
  for (uint32_t i = 0; i < scratch_words_.size(); ++i) {
    if (scratch_words_[i] != 0) found.emplace_back(i, scratch_words_[i]);
  }
  return words_after_[after] = std::move(found);
}

// Below a node that has led into a number.
std::optional<MaskStrategy> SchemaMasks::FillNumber(const Place& place) {
  const uint32_t frame = Machine::FrameOf(place.state), first = Machine::LexemeOf(place.state);
  const Lexeme lexeme = LexemeAt(place.state);
  if (place.root() || lexeme.mode != Mode::kNumber || machine_.TracksText(frame))
    return std::nullopt;
  const auto nodes = trie_.nodes();
  const uint16_t top = nodes[place.node].depth;
  const bool any_digits = machine_.number(lexeme).TakesAnyDigits(lexeme.state);
  std::array<uint8_t, limits::kDigitsAtOnce> path;  // byte by depth below the node
  Walk(trie_, place.node, first, number_stack_, [&](uint32_t before, uint32_t i) {
    const TokenTrie::Node& node = nodes[i];
    const auto depth = static_cast<size_t>(node.depth - top);
    const bool fits = depth < limits::kDigitsAtOnce;
    if (fits) path[depth] = node.byte;
    if (fits && any_digits && (depth == 1 || before == kPassed) && node.byte >= '0' &&
        node.byte <= '9') {
      trie_.SetBits(node, place.words);
      return kPassed;
    }
    if (before == kPassed) {
      before = first;
      for (size_t k = 1; k < depth; ++k) before = machine_.StepNumber(before, path[k]);
    }
    const uint32_t after = machine_.StepNumber(before, node.byte);
    if (after == Machine::kDeadLexeme) return after;
    if (after != Machine::kLeavesLexeme && fits) {
      trie_.SetBits(node, place.words);
      return after;
    }
    const Key key = Machine::MakeKey(frame, before);
    if (place.apart != nullptr && Exits(key, node.byte)) {
      place.apart->exits.push_back(i);
    } else if (const Key entered = machine_.Step(key, node.byte); entered != Machine::kDead) {
      WalkFrom(i, entered, place.words, place.apart);
    }
    return Machine::kDeadLexeme;
  });
  return MaskStrategy::kValue;
}

std::optional<MaskStrategy> SchemaMasks::FillValue(const Place& place) {
  const Mode mode = LexemeAt(place.state).mode;
  if (!place.root() || mode == Mode::kString || mode == Mode::kKey ||
      machine_.TracksText(Machine::FrameOf(place.state))) {
    return std::nullopt;
  }
  const Key detached = Standalone(place.state);
  if (detached == Machine::kDead) {
    WalkAll(place.state, place.words, nullptr);
    return MaskStrategy::kStructure;
  }
  const ValueMask& mask = ValueMaskOf(detached);
  std::copy(mask.words.begin(), mask.words.end(), place.words);
  if (mask.exits.empty() && mask.closings.empty() && !mask.ends_here) return MaskStrategy::kValue;
  const Key after = AfterDetached(place.state);
  if (after == Machine::kDead) return MaskStrategy::kValue;
  if (mask.ends_here) {
    for (const auto& [word, bits] : WordsAfter(after)) place.words[word] |= bits;
  }
  if (!mask.closings.empty()) {
    const Remainders& rests = RestsAfter(after);
    for (const auto& [token, rest] : mask.closings) {
      if (Allows(rests, rest)) Set(place, token);
    }
  }
  std::array<Key, 256> left;
  std::bitset<256> known;
  for (const uint32_t exit : mask.exits) {
    const uint8_t byte = trie_.nodes()[exit].byte;
    if (!known[byte]) {
      known[byte] = true;
      left[byte] = machine_.Step(after, byte);
    }
    if (left[byte] != Machine::kDead) WalkFrom(exit, left[byte], place.words, nullptr);
  }
  return MaskStrategy::kValue;
}

}  // namespace pawl::schema
