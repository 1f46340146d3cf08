// Masks inside keys, where keys are plain (plain_keys.h). The names that may still come are
// followed through the trie, a few steps each; and where other keys may come as well, all that any
// string allows is allowed, but for the tokens that would close a key which may not come.
#include <algorithm>

#include "schemas/masks/schema_masks.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {

const SchemaMasks::SparseWords& SchemaMasks::SimpleClosings(const StringIndex& index,
                                                            const Remainders& rests) {
  const auto [it, fresh] = simple_closings_.try_emplace({&index, &rests});
  if (!fresh) return it->second;
  std::map<uint32_t, uint32_t> words;
  for (const StringIndex::Crossing& crossing : index.crossings()) {
    if (crossing.escaped || crossing.intricate || !Allows(rests, crossing.rest)) continue;
    words[static_cast<uint32_t>(crossing.token) >> 5] |= 1u << (crossing.token & 31);
  }
  it->second.assign(words.begin(), words.end());
  return it->second;
}

void SchemaMasks::FillOtherKeys(const Place& place) {
  if (place.root()) {
    const auto base = tokens_.AtMost(kUnbounded);
    std::copy(base.begin(), base.end(), place.words);
  } else {
    for (const auto& [word, bits] : place.index->inside()) place.words[word] |= bits;
  }
  const StringProgram& program = SearchAt(place.state).program();
  const Remainders& rests =
      RestsAfterKey(Machine::FrameOf(place.state), program, program.start(), /*rank=*/-1);
  for (const auto& [word, bits] : SimpleClosings(*place.index, rests)) place.words[word] |= bits;
  for (const uint32_t quote : QuotesOfSeenKeys(place)) ClearBelow(place, quote);
  const std::optional<std::string> begun = BegunKey(place);
  for (const StringIndex::Special& special : place.index->special()) {
    const StringIndex::Crossing& crossing = place.index->crossings()[special.place];
    if (!Allows(rests, crossing.rest)) continue;
    // A key that no schema names is like any other.
    const bool unheard =
        !crossing.intricate && begun && special.text && !frames_.IsName(*begun + *special.text);
    if (unheard || WalkToken(place, crossing.token) != Machine::kDead) Set(place, crossing.token);
  }
}

std::optional<MaskStrategy> SchemaMasks::FillKeys(const Place& place) {
  if (!InString(place) || LexemeAt(place.state).mode != Mode::kKey) return std::nullopt;
  const NodeId node = Machine::FrameOf(place.state);
  const FrameId frame_id = machine_.node(node).frame;
  PlainKeys* const plain = machine_.PlainKeysOf(frame_id);
  if (plain == nullptr) return std::nullopt;
  const ObjectLayout& layout = frames_.layout(frames_[frame_id].layout);
  const StringProgram& program = SearchAt(place.state).program();
  const PlainKeys::Range range = plain->Below(LexemeAt(place.state).state);
  const bool others = plain->OthersAllowed(frame_id);
  if (others) FillOtherKeys(place);
  std::vector<uint32_t> escapes;  // where an escape may stand for the next character of a name
  for (uint32_t k = range.begin; k < range.end; ++k) {
    const PlainKeys::Name& name = plain->sorted()[k];
    const bool allowed = plain->NameAllowed(frame_id, name.rank);
    if (!allowed && !others) continue;
    const auto at = FollowName(place, name, range.depth, others, escapes);
    if (!at) continue;
    if (others) ClearBelow(place, *at);
    if (!allowed) continue;
    const auto state = layout.name_states[static_cast<size_t>(name.rank)];
    const Remainders& rests = RestsAfterKey(node, program, state, name.rank);
    const auto [begin, end] =
        place.index->CrossingsOf(trie_.FirstToken(*at), trie_.FirstToken(trie_.nodes()[*at].end));
    for (uint32_t i = begin; i < end; ++i) Allow(place, rests, place.index->crossings()[i]);
  }
  return MaskStrategy::kKeys;
}

std::optional<uint32_t> SchemaMasks::FollowName(const Place& place, const PlainKeys::Name& name,
                                                size_t depth, bool others,
                                                std::vector<uint32_t>& escapes) {
  uint32_t at = place.node;
  for (size_t i = depth; i < name.text.size(); ++i) {
    const uint32_t escape =
        others || machine_.spelling().canonical ? TokenTrie::kNone : trie_.Child(at, '\\');
    if (escape != TokenTrie::kNone && std::ranges::find(escapes, escape) == escapes.end()) {
      escapes.push_back(escape);
      WalkEscape(place, escape);
    }
    const std::string bytes = machine_.Quoted(EncodeCodepoints({&name.text[i], 1}));
    for (size_t b = 1; b + 1 < bytes.size(); ++b) {
      at = trie_.Child(at, static_cast<uint8_t>(bytes[b]));
      if (at == TokenTrie::kNone) return std::nullopt;
      if (!others) trie_.SetBits(trie_.nodes()[at], place.words);
    }
  }
  at = trie_.Child(at, '"');
  if (at == TokenTrie::kNone) return std::nullopt;
  return at;
}

void SchemaMasks::WalkEscape(const Place& place, uint32_t escape) {
  uint32_t any = escape;  // a token that goes through it
  while (trie_.nodes()[any].token == kNoToken) ++any;
  const Key entered = WalkToken(place, trie_.nodes()[any].token, trie_.nodes()[escape].depth);
  if (entered != Machine::kDead) WalkFrom(escape, entered, place.words, nullptr);
}

}  // namespace pawl::schema
