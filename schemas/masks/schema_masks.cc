// The ways to a mask, asked in their order, and the walk that is left where none of them knows the
// state. Within a walk the ways are asked again at the bytes behind which much may follow: a quote,
// which opens a string, and a digit.
#include "schemas/masks/schema_masks.h"

#include <algorithm>

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"

namespace pawl::schema {
namespace {

const StringTokens& TokensOf(const Vocabulary& vocabulary, StringSpelling spelling) {
  const auto choose = [&]<bool kAscii>() -> const StringTokens& {
    if (spelling.canonical) return TableOf<SpelledStringTokens<true, kAscii>>(vocabulary);
    return TableOf<SpelledStringTokens<false, kAscii>>(vocabulary);
  };
  return spelling.ascii ? choose.operator()<true>() : choose.operator()<false>();
}

bool MuchMayFollow(const TokenTrie::Node& node, uint32_t i) {
  return (node.byte == '"' || (node.byte >= '0' && node.byte <= '9')) && node.end > i + 1;
}

}  // namespace

std::unique_ptr<MachineMasks> MakeSchemaMasks(SchemaMachine& machine,
                                              const Vocabulary& vocabulary) {
  return std::make_unique<SchemaMasks>(machine, vocabulary);
}

SchemaMasks::SchemaMasks(SchemaMachine& machine, const Vocabulary& vocabulary)
    : machine_(machine),
      frames_(machine.frames()),
      solver_(machine.solver()),
      options_(machine.options()),
      vocabulary_(vocabulary),
      trie_(TrieOf(vocabulary)),
      tokens_(TokensOf(vocabulary, machine.spelling())),
      lexemes_(machine, vocabulary),
      stack_(WalkStack<Key>(trie_)),
      number_stack_(WalkStack<uint32_t>(trie_)),
      rest_stack_(WalkStack<Key>(tokens_.rests())) {}

std::optional<MaskStrategy> SchemaMasks::Fill(Key state, uint32_t* words) {
  if (const auto path = FillBelow(At(state, TokenTrie::kRoot, words, nullptr))) return path;
  lexemes_.Fill(state, words, [&](uint32_t node, Key entered) {
    return MuchMayFollow(trie_.nodes()[node], node) &&
           FillBelow(At(entered, node, words, nullptr)).has_value();
  });
  return MaskStrategy::kTrieWalk;
}

SchemaMasks::Place SchemaMasks::At(Key state, uint32_t node, uint32_t* words,
                                   ValueMask* apart) const {
  const Mode mode = LexemeAt(state).mode;
  const bool string = mode == Mode::kString || mode == Mode::kKey;
  return {state, node, words, apart, string ? tokens_.Below(node) : nullptr};
}

std::optional<MaskStrategy> SchemaMasks::FillBelow(const Place& place) {
  if (LexemeAt(place.state).part != 0) return std::nullopt;  // within a character
#define PAWL_ASK_STRATEGY(name) \
  if (const auto path = name(place)) return path;
  PAWL_MASK_STRATEGIES(PAWL_ASK_STRATEGY)
#undef PAWL_ASK_STRATEGY
  return std::nullopt;
}

Machine::Key SchemaMasks::WalkToken(const Place& place, TokenId token, size_t end) {
  Key key = place.state;
  const std::string_view bytes = vocabulary_.bytes(token);
  const size_t from = place.root() ? 0 : trie_.nodes()[place.node].depth;
  for (size_t i = from; i < std::min(end, bytes.size()) && key != Machine::kDead; ++i)
    key = machine_.Step(key, static_cast<uint8_t>(bytes[i]));
  return key;
}

void SchemaMasks::WalkFrom(uint32_t node, Key entered, uint32_t* words, ValueMask* apart) {
  const auto nodes = trie_.nodes();
  const auto known = [&](uint32_t i, Key state) {
    return MuchMayFollow(nodes[i], i) && FillBelow(At(state, i, words, apart)).has_value();
  };
  trie_.SetBits(nodes[node], words);
  if (known(node, entered)) return;
  Walk(trie_, node, entered, stack_, [&](Key before, uint32_t i) {
    if (apart != nullptr && Exits(before, nodes[i].byte)) {
      apart->exits.push_back(i);
      return Machine::kDead;
    }
    const Key after = machine_.Step(before, nodes[i].byte);
    if (after == Machine::kDead) return Machine::kDead;
    trie_.SetBits(nodes[i], words);
    return known(i, after) ? Machine::kDead : after;
  });
}

}  // namespace pawl::schema
