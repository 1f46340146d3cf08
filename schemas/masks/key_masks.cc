// Masks inside keys, where keys are plain (plain_keys.h). The names that may still come are
// followed through the trie, a few steps each; and where other keys may come as well, all that any
// string allows is allowed, but for the tokens that would close a key which may not come.
#include <algorithm>

#include "grammar/masks/mask_builder.h"
#include "schemas/machine/schema_machine.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {

PlainKeys* SchemaMachine::PlainKeysOf(FrameId id) {
  if (id >= plain_.size()) plain_.resize(frames_.size(), kNotAsked);
  if (plain_[id] == kNotAsked) {
    const Frame& frame = frames_[id];
    plain_[id] = kNotPlain;
    if (PlainKeys::Fits(frames_, options_, frame)) {
      const auto [it, fresh] = plain_index_.try_emplace(uint64_t{frame.layout} << 32 | frame.must,
                                                        static_cast<uint32_t>(plain_keys_.size()));
      if (fresh)
        plain_keys_.push_back(std::make_unique<PlainKeys>(frames_, solver_, options_, frame));
      plain_[id] = it->second;
    }
  }
  return plain_[id] == kNotPlain ? nullptr : plain_keys_[plain_[id]].get();
}

void SchemaMachine::SetRests(const Below& below, const Rests& rests, uint32_t first,
                             uint32_t last) {
  const auto [begin, end] = below.index.CrossingsOf(first, last);
  for (uint32_t i = begin; i < end; ++i) Allow(below, rests, below.index.crossings()[i]);
}

const SchemaMachine::SparseWords& SchemaMachine::SimpleClosings(const StringIndex& index,
                                                                const Rests& rests) {
  const auto [it, fresh] = simple_closings_.try_emplace({&index, &rests});
  if (!fresh) return it->second;
  std::vector<std::pair<uint32_t, uint32_t>> bits;
  for (const StringIndex::Crossing& crossing : index.crossings()) {
    if (crossing.escaped || crossing.intricate || !Allows(rests, crossing)) continue;
    bits.emplace_back(static_cast<uint32_t>(crossing.token) >> 5, 1u << (crossing.token & 31));
  }
  std::sort(bits.begin(), bits.end());
  SparseWords& words = it->second;
  for (const auto& [word, bit] : bits) {
    if (!words.empty() && words.back().first == word) {
      words.back().second |= bit;
    } else {
      words.emplace_back(word, bit);
    }
  }
  return words;
}

bool SchemaMachine::FillPlainKeys(const Below& below, bool fresh) {
  const NodeId node = FrameOf(below.state);
  const FrameId frame_id = nodes_[node].frame;
  PlainKeys* const plain = PlainKeysOf(frame_id);
  if (plain == nullptr) return false;
  const ObjectLayout& layout = frames_.layout(frames_[frame_id].layout);
  const Lexeme lexeme = lexemes_[LexemeOf(below.state)];
  const StringProgram& program = strings_[lexeme.search]->program();
  const TokenTrie& trie = below.vocabulary.trie();
  const PlainKeys::Range range = plain->Below(lexeme.state);
  const auto clear = [&](uint32_t quote) {
    for (uint32_t t = trie.FirstToken(quote); t < trie.FirstToken(trie.nodes()[quote].end); ++t) {
      const TokenId token = trie.order()[t];
      below.words[static_cast<size_t>(token) >> 5] &= ~(1u << (token & 31));
    }
  };
  const bool others = plain->OthersAllowed(frame_id);
  if (others) {
    if (fresh) {
      const auto base = tokens_->AtMost(kUnbounded);
      std::copy(base.begin(), base.end(), below.words);
    } else {
      for (const auto& [word, bits] : below.index.inside()) below.words[word] |= bits;
    }
    const Rests& rests = RestsAfterKey(node, program, program.start(), -1);
    for (const auto& [word, bits] : SimpleClosings(below.index, rests)) below.words[word] |= bits;
    for (const uint32_t quote : QuotesOfSeenKeys(below)) clear(quote);
    const std::optional<std::string> begun = BegunKey(below);
    for (const StringIndex::Special& special : below.index.special()) {
      const StringIndex::Crossing& crossing = below.index.crossings()[special.place];
      if (!Allows(rests, crossing)) continue;
      // A key that nobody has heard of is like any other.
      const bool unheard =
          !crossing.intricate && begun && special.text && !frames_.IsName(*begun + *special.text);
      const bool fits = unheard || WalkToken(below, crossing.token) != kDead;
      const auto token = static_cast<size_t>(crossing.token);
      if (fits) below.words[token >> 5] |= 1u << (token & 31);
    }
  }
  std::vector<uint32_t> escapes;  // where an escape may stand for the next character of a name
  for (uint32_t k = range.begin; k < range.end; ++k) {
    const PlainKeys::Name& name = plain->sorted()[k];
    const bool allowed = plain->NameAllowed(frame_id, name.rank);
    if (!allowed && !others) continue;
    const auto at = FollowName(below, name, range.depth, others, escapes);
    if (!at) continue;
    if (others) clear(*at);
    if (!allowed) continue;
    const auto state = layout.name_states[static_cast<size_t>(name.rank)];
    SetRests(below, RestsAfterKey(node, program, state, name.rank), trie.FirstToken(*at),
             trie.FirstToken(trie.nodes()[*at].end));
  }
  return true;
}

std::optional<uint32_t> SchemaMachine::FollowName(const Below& below, const PlainKeys::Name& name,
                                                  size_t depth, bool others,
                                                  std::vector<uint32_t>& escapes) {
  const TokenTrie& trie = below.vocabulary.trie();
  uint32_t at = below.node;
  for (size_t i = depth; i < name.text.size(); ++i) {
    const uint32_t escape = others || spelling_.canonical ? TokenTrie::kNone : trie.Child(at, '\\');
    if (escape != TokenTrie::kNone && std::ranges::find(escapes, escape) == escapes.end()) {
      escapes.push_back(escape);
      WalkEscape(below, escape);
    }
    const std::string bytes = Quoted(EncodeCodepoints({&name.text[i], 1}));
    for (size_t b = 1; b + 1 < bytes.size(); ++b) {
      at = trie.Child(at, static_cast<uint8_t>(bytes[b]));
      if (at == TokenTrie::kNone) return std::nullopt;
      if (!others) trie.SetBits(trie.nodes()[at], below.words);
    }
  }
  at = trie.Child(at, '"');
  if (at == TokenTrie::kNone) return std::nullopt;
  return at;
}

Machine::Key SchemaMachine::WalkToken(const Below& below, TokenId token, size_t end) {
  Key key = below.state;
  const std::string_view bytes = below.vocabulary.bytes(token);
  const size_t from =
      below.node == TokenTrie::kRoot ? 0 : below.vocabulary.trie().nodes()[below.node].depth;
  for (size_t i = from; i < std::min(end, bytes.size()) && key != kDead; ++i)
    key = Step(key, static_cast<uint8_t>(bytes[i]));
  return key;
}

void SchemaMachine::WalkEscape(const Below& below, uint32_t escape) {
  const TokenTrie& trie = below.vocabulary.trie();
  uint32_t any = escape;  // a token that goes through it
  while (trie.nodes()[any].token == kNoToken) ++any;
  const Key entered = WalkToken(below, trie.nodes()[any].token, trie.nodes()[escape].depth);
  if (entered == kDead) return;
  std::vector<Key> stack(static_cast<size_t>(trie.max_depth()) + 1);
  WalkBelow(*this, below.vocabulary, escape, entered, below.words, stack,
            [](Key, uint32_t) { return false; });
}

}  // namespace pawl::schema
