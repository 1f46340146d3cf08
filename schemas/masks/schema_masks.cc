// Masks inside strings. Which tokens close a string and how they go on depends on the string in one
// way only: on the state of the machine after the closing quote, and most closings share one. So
// the distinct texts behind a quote (StringTokens::rests, a few hundred) are tried once for each
// such state, and a token is allowed when its own text behind the quote is.
//
// Keys that the schema does not name are the exception that would spoil this, for each makes a
// state of its own: the key must not come again. But where any text may be such a key, all fresh
// ones are alike, and one that stands for them all tells how they go on; the few that were seen
// already are taken out. The same goes for keys that end in one state of a pattern, as long as
// there is no end of such keys.
#include <algorithm>
#include <functional>
#include <optional>

#include "grammar/masks/mask_builder.h"
#include "grammar/masks/mask_path.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/masks/structure_tokens.h"
#include "schemas/scalar/string_walk.h"
#include "schemas/unique/distinct.h"
#include "src/base/json.h"

namespace pawl::schema {
namespace {
constexpr size_t kMaxWideWalks = 256;
}  // namespace

const StringTokens& SchemaMachine::TokensOf(const Vocabulary& vocabulary) {
  if (tokens_ == nullptr) {
    mask_bytes_ = static_cast<size_t>(vocabulary.mask_words()) * sizeof(uint32_t);
    const auto choose = [&]<bool kAscii>() -> const StringTokens* {
      if (spelling_.canonical) return &vocabulary.Derived<SpelledStringTokens<true, kAscii>>();
      return &vocabulary.Derived<SpelledStringTokens<false, kAscii>>();
    };
    tokens_ = spelling_.ascii ? choose.operator()<true>() : choose.operator()<false>();
  }
  return *tokens_;
}

// Tries the rests below `state`; where `leaves(state, byte)` the node is only written down.
template <typename Leaves>
static void TryRests(Machine& machine, const TokenTrie& trie, Machine::Key state, uint32_t begin,
                     uint32_t end, uint16_t depth, std::vector<uint64_t>& out,
                     const Leaves& leaves) {
  std::vector<Machine::Key> stack(static_cast<size_t>(trie.max_depth()) + 1);
  stack[depth] = state;
  StepThrough(machine, trie, begin, end, stack, leaves, [&](uint32_t i, Machine::Key) {
    const TokenId rest = trie.nodes()[i].token;
    if (rest != kNoToken) out[static_cast<size_t>(rest) >> 6] |= uint64_t{1} << (rest & 63);
    return i + 1;
  });
}

const SchemaMachine::ValueRests& SchemaMachine::ValueRestsAfter(Key detached) {
  const auto found = value_rests_.find(detached);
  if (found != value_rests_.end()) return found->second;
  ValueRests out;
  out.inside.assign((tokens_->rest_count() + 63) / 64, 0);
  out.inside[0] = 1;  // nothing behind the quote
  const TokenTrie& trie = tokens_->rests();
  TryRests(*this, trie, detached, 0, trie.size(), 0, out.inside, [&](Key before, uint32_t node) {
    if (!Exits(before, trie.nodes()[node].byte)) return false;
    out.exits.push_back(node);
    return true;
  });
  return value_rests_.emplace(detached, std::move(out)).first->second;
}

const SchemaMachine::Rests& SchemaMachine::RestsAfter(Key state) {
  const auto found = rests_.find(state);
  if (found != rests_.end()) return *found->second;
  Rests out((tokens_->rest_count() + 63) / 64, 0);
  const TokenTrie& trie = tokens_->rests();
  const auto nothing = [](Key, uint32_t) { return false; };
  if (state == kDead) {
    // nothing may follow
  } else if (const Key detached = Detached(state); detached != kDead) {
    const ValueRests& value = ValueRestsAfter(detached);
    out = value.inside;
    const Key after = value.exits.empty() ? kDead : AfterDetached(state);
    for (const uint32_t exit : value.exits) {
      if (after == kDead) break;
      TryRests(*this, trie, after, exit, trie.nodes()[exit].end, trie.nodes()[exit].depth - 1, out,
               nothing);
    }
  } else {
    out[0] = 1;
    TryRests(*this, trie, state, 0, trie.size(), 0, out, nothing);
  }
  const Rests& same = *distinct_rests_.insert(std::move(out)).first;
  rests_.emplace(state, &same);
  return same;
}

bool SchemaMachine::FillBelow(Key state, const Vocabulary& vocabulary, uint32_t node, bool fresh,
                              uint32_t* words) {
  const Lexeme lexeme = lexemes_[LexemeOf(state)];
  if (lexeme.part != 0) return false;
  if (nodes_[FrameOf(state)].tracks_items) return fresh && FillTracked(state, vocabulary, words);
  if (lexeme.mode != Mode::kString && lexeme.mode != Mode::kKey) {
    if (fresh) return FillValue(state, vocabulary, words);
    if (lexeme.mode != Mode::kNumber || TracksText(FrameOf(state))) return false;
    FillNumber(state, vocabulary, node, words);
    return true;
  }
  // What is behind the quote may leave the value: only for the value itself that is taken down.
  if (detaching_ != nullptr && nodes_[FrameOf(state)].parent != 0) return false;
  const StringTokens& tokens = TokensOf(vocabulary);
  const StringIndex* index = tokens.Below(node);
  if (index == nullptr) return false;
  const Below below{state, vocabulary, node, *index, words};
  if (lexeme.mode == Mode::kKey && FillPlainKeys(below, fresh)) {
    last_mask_path = MaskPath::kKeys;
    return true;
  }
  StringSearch& search = *strings_[lexeme.search];
  const auto close = [&](const std::vector<StringClosings>& closings) {
    const MaskPath path = last_mask_path;
    lexeme.mode == Mode::kString ? CloseStrings(below, closings) : CloseKeys(below, closings);
    last_mask_path = path;
  };
  if (!fresh || node != TokenTrie::kRoot || !search.program().wide()) {
    std::vector<StringClosings> closings;
    WalkString(search, lexeme.state, vocabulary, node, tokens, *index, spelling_, fresh, words,
               closings);
    close(closings);
    return true;
  }
  const uint64_t place = uint64_t{lexeme.search} << 32 | lexeme.state;
  std::shared_ptr<WideWalk> walk = wide_walks_[place];
  if (walk == nullptr) {
    walk = std::make_shared<WideWalk>();
    walk->words.assign(static_cast<size_t>(vocabulary.mask_words()), 0);
    WalkString(search, lexeme.state, vocabulary, node, tokens, *index, spelling_, fresh,
               walk->words.data(), walk->closings);
    walk->path = last_mask_path;
    if (wide_walks_.size() > kMaxWideWalks) wide_walks_.clear();
    wide_walks_[place] = walk;
  }
  std::copy(walk->words.begin(), walk->words.end(), words);
  last_mask_path = walk->path;
  close(walk->closings);
  return true;
}

// Calls fn(crossing) for those of a group whose length fits.
template <typename Fn>
void SchemaMachine::ForEach(const Below& below, const StringClosings& group, const Fn& fn) {
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const StringIndex::Crossing& crossing = below.index.crossings()[i];
    const uint64_t more = uint64_t{crossing.length} - group.read;
    if (!group.free || (more >= group.min && more <= group.max)) fn(crossing);
  }
}

bool SchemaMachine::Allows(const Rests& rests, const StringIndex::Crossing& crossing) {
  return ((rests[crossing.rest >> 6] >> (crossing.rest & 63)) & 1) != 0;
}

void SchemaMachine::Allow(const Below& below, const Rests& rests,
                          const StringIndex::Crossing& crossing) {
  if (Allows(rests, crossing))
    below.words[static_cast<size_t>(crossing.token) >> 5] |= 1u << (crossing.token & 31);
}

void SchemaMachine::CloseStrings(const Below& below, const std::vector<StringClosings>& closings) {
  if (detaching_ != nullptr) {
    for (const StringClosings& group : closings) {
      ForEach(below, group, [&](const auto& crossing) {
        detaching_->closings.emplace_back(crossing.token, crossing.rest);
      });
    }
    return;
  }
  const NodeId node = FrameOf(below.state);
  StringProgram& program = strings_[lexemes_[LexemeOf(below.state)].search]->program();
  const Goal goal = frames_.PendingGoal(nodes_[node].frame);
  const auto rests_after = [&](StringProgram::StateId s) -> const Rests& {
    std::vector<bool> truth;
    if (!goal.tracks.empty()) truth = solver_.scalars().StringTruth(goal, s);
    return RestsAfter(EndValue(node, truth, '"'));
  };
  const Rests* same = nullptr;  // without tracks every string ends alike
  StringProgram::StateId same_state = 0;
  for (const StringClosings& group : closings) {
    if (goal.tracks.empty() || !group.free || !program.counting()) {
      if (same == nullptr || (!goal.tracks.empty() && same_state != group.state)) {
        same = &rests_after(group.state);
        same_state = group.state;
      }
      ForEach(below, group, [&](const auto& crossing) { Allow(below, *same, crossing); });
      continue;
    }
    ForEach(below, group, [&](const auto& crossing) {
      const uint64_t count = program.Count(group.state) + crossing.length - group.read;
      Allow(below, rests_after(program.AtCount(group.state, count)), crossing);
    });
  }
}

const SchemaMachine::Rests& SchemaMachine::RestsAfterKey(NodeId id, const StringProgram& program,
                                                         StringProgram::StateId state, int rank) {
  // What was read of the key so far does not matter any more.
  Node plain = nodes_[id];
  plain.text = plain.start = 0;
  plain.reads_key = false;
  id = InternNode(plain);
  const uint32_t which = rank >= 0 ? 1u << 31 | static_cast<uint32_t>(rank) : state;
  const Rests*& rests = key_rests_[uint64_t{id} << 32 | which];
  if (rests == nullptr) {
    const Frame& frame = frames_[plain.frame];
    const NameId name = rank >= 0 ? frames_.layout(frame.layout).name_ids[static_cast<size_t>(rank)]
                                  : FreshName(frame);
    rests = &RestsAfter(AfterKey(id, program, state, rank, name));
  }
  return *rests;
}

const SchemaMachine::Rests* SchemaMachine::RestsAfterKeys(const Below& below,
                                                          const StringClosings& group,
                                                          const std::function<Key()>& walk) {
  Node plain = nodes_[FrameOf(below.state)];
  plain.text = plain.start = 0;
  plain.reads_key = false;
  const Rests*& rests = key_rests_[uint64_t{InternNode(plain)} << 32 | group.state];
  if (rests == nullptr) {
    StringSearch& search = *strings_[lexemes_[LexemeOf(below.state)].search];
    if (!Endless(search, group.state)) return nullptr;
    rests = &RestsAfter(walk());
  }
  return rests;
}

void SchemaMachine::CloseKeys(const Below& below, const std::vector<StringClosings>& closings) {
  const NodeId node = FrameOf(below.state);
  StringProgram& program = strings_[lexemes_[LexemeOf(below.state)].search]->program();
  const ObjectLayout& layout = frames_.layout(frames_[nodes_[node].frame].layout);
  const auto allow_if_walked = [&](const StringIndex::Crossing& crossing) {
    if (WalkToken(below, crossing.token) != kDead)
      below.words[static_cast<size_t>(crossing.token) >> 5] |= 1u << (crossing.token & 31);
  };
  std::optional<std::vector<uint32_t>> taken;
  for (const StringClosings& group : closings) {
    const int rank = RankOf(layout, program, group.state);
    if (rank >= 0) {
      const Rests& rests = RestsAfterKey(node, program, group.state, rank);
      ForEach(below, group, [&](const auto& crossing) { Allow(below, rests, crossing); });
      continue;
    }
    if (!group.free) {
      // One quote, so one key.
      const StringIndex::Crossing& any = below.index.crossings()[group.begin];
      const size_t quote = below.vocabulary.trie().nodes()[any.quote].depth;
      if (!taken) taken = QuotesOfSeenKeys(below);
      if (std::binary_search(taken->begin(), taken->end(), any.quote)) continue;
      std::optional<Key> after;
      const auto after_quote = [&] {
        if (!after) after = WalkToken(below, any.token, quote);
        return *after;
      };
      const Rests* const rests = any.escaped ? nullptr : RestsAfterKeys(below, group, after_quote);
      ForEach(below, group, [&](const auto& crossing) {
        const std::string_view rest = below.vocabulary.bytes(crossing.token).substr(quote);
        const size_t first = rest.find_first_not_of(" \t\n\r");
        if (first != std::string_view::npos && rest[first] != ':') return;
        // What opens another key of the object may run into this one.
        const bool other_key = rest.substr(0, rest.find('"')).find(',') != std::string_view::npos;
        if (rests != nullptr && !crossing.intricate && !other_key) {
          Allow(below, *rests, crossing);
          return;
        }
        Key key = after_quote();
        for (size_t i = 0; i < rest.size() && key != kDead; ++i)
          key = Step(key, static_cast<uint8_t>(rest[i]));
        if (key != kDead)
          below.words[static_cast<size_t>(crossing.token) >> 5] |= 1u << (crossing.token & 31);
      });
      continue;
    }
    // One key cannot stand for all where only so many are possible, or their lengths matter.
    if (group.max != kUnbounded || program.counting()) {
      ForEach(below, group, allow_if_walked);
      continue;
    }
    if (!taken) taken = QuotesOfSeenKeys(below);
    const Rests& rests = RestsAfterKey(node, program, group.state, -1);
    ForEach(below, group, [&](const auto& crossing) {
      if (!Allows(rests, crossing)) return;
      if (crossing.escaped || crossing.intricate) {
        allow_if_walked(crossing);
      } else if (!std::binary_search(taken->begin(), taken->end(), crossing.quote)) {
        Allow(below, rests, crossing);
      }
    });
  }
}

std::optional<std::string> SchemaMachine::BegunKey(const Below& below) const {
  const Node& node = nodes_[FrameOf(below.state)];
  std::string begun = TextSince(node.text, node.start).substr(1);
  if (begun.find('\\') == std::string::npos) return begun;
  auto parsed = json::Parse("\"" + begun + "\"");
  if (!parsed.ok()) return std::nullopt;
  return std::move(parsed->text);
}

std::vector<uint32_t> SchemaMachine::QuotesOfSeenKeys(const Below& below) {
  std::vector<uint32_t> out;
  const Node& node = nodes_[FrameOf(below.state)];
  const Frame& frame = frames_[node.frame];
  if (frame.seen == IdSets::kEmpty) return out;
  const std::optional<std::string> begun_key = BegunKey(below);
  if (!begun_key) return out;
  const std::string& begun = *begun_key;
  const TokenTrie& trie = below.vocabulary.trie();
  const StructureTokens& structure = below.vocabulary.Derived<StructureTokens>();
  // The trie node of the quote behind the name, or how much of the name leads out of the trie.
  const auto follow = [&](std::string_view name, size_t& out_at) {
    uint32_t at = below.node;
    const auto step = [&](std::string_view bytes) {
      for (const char byte : bytes) {
        at = trie.Child(at, static_cast<uint8_t>(byte));
        if (at == TokenTrie::kNone || !structure.LeadsToQuote(at)) return false;
      }
      return true;
    };
    for (size_t i = begun.size(); i < name.size(); i = out_at) {
      out_at = i + 1;
      while (out_at < name.size() && (static_cast<uint8_t>(name[out_at]) & 0xC0) == 0x80) ++out_at;
      const std::string quoted = Quoted(name.substr(i, out_at - i));
      if (!step(std::string_view(quoted).substr(1, quoted.size() - 2))) return TokenTrie::kNone;
    }
    out_at = name.size();
    return trie.Child(at, '"');
  };
  constexpr size_t kFew = 64;
  size_t length = 0;
  if (frames_.seen().Size(frame.seen) <= kFew) {
    for (const NameId id : frames_.seen().Members(frame.seen)) {
      const std::string& name = frames_.Name(id);
      if (!name.starts_with(begun)) continue;
      if (const uint32_t at = follow(name, length); at != TokenTrie::kNone) out.push_back(at);
    }
  } else {
    // Of many names few fit into a token; those that begin alike leave the trie together.
    const auto& names = frames_.SortedNames();
    for (auto it = names.lower_bound(begun); it != names.end() && it->first.starts_with(begun);) {
      const uint32_t at = follow(it->first, length);
      if (at != TokenTrie::kNone && frames_.Seen(frame, it->second)) out.push_back(at);
      if (length == it->first.size()) {
        ++it;
        continue;
      }
      std::string beyond(it->first.substr(0, length));
      ++beyond.back();  // of UTF-8, so it is no 0xFF
      it = names.lower_bound(beyond);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

NameId SchemaMachine::FreshName(const Frame& frame) {
  std::string name;
  NameId id;
  do {
    name += "\xF4\x8F\xBF\xBF";  // U+10FFFF, no character
    id = frames_.InternName(name);
  } while (frames_.Seen(frame, id));
  return id;
}

}  // namespace pawl::schema
