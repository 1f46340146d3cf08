// The ways to a mask, asked in their order, and the walk that is left where none of them knows the
// state. Within a walk the strategies are asked again at the bytes behind which much may follow: a
// quote, which opens a string, and a digit.
#include "schemas/masks/schema_masks.h"

#include <algorithm>
#include <string_view>

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

// One pass over the trie: below white space the walk goes on, at any other byte the node is written
// down under that byte and its subtree is passed by. Tokens of white space alone are kept by
// length.

StructureTokens::StructureTokens(const Vocabulary& vocabulary) {
  constexpr std::string_view kSpace = " \t\n\r";
  const TokenTrie& trie = TrieOf(vocabulary);
  const auto nodes = trie.nodes();
  for (uint32_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    if (kSpace.find(static_cast<char>(node.byte)) == std::string_view::npos) {
      places_[node.byte].push_back({i, node.depth - 1u});
      i = node.end;
      continue;
    }
    trie.ForTokens(node, [&](TokenId token) { spaces_.emplace_back(node.depth, token); });
    ++i;
  }
  quotes_before_.reserve(nodes.size() + 1);
  ends_.reserve(nodes.size());
  uint32_t quotes = 0;
  for (const TokenTrie::Node& node : nodes) {
    quotes_before_.push_back(quotes);
    ends_.push_back(node.end);
    quotes += node.byte == '"' ? 1 : 0;
  }
  quotes_before_.push_back(quotes);
  std::sort(spaces_.begin(), spaces_.end());
}

void StructureTokens::SetSpaces(uint64_t most, std::span<uint32_t> words) const {
  for (const auto& [length, token] : spaces_) {
    if (length > most) break;
    words[static_cast<size_t>(token) >> 5] |= 1u << (token & 31);
  }
}

}  // namespace pawl::schema
