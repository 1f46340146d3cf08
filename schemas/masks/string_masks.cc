// Masks inside strings. Which tokens close a string and how they go on depends on the string in one
// strategy only: on the state of the machine after the closing quote, and most closings share one.
// So the distinct texts behind a quote (StringTokens::rests, a few hundred) are tried once for each
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

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "schemas/limits.h"
#include "schemas/masks/schema_masks.h"
#include "schemas/scalar/string_walk.h"
#include "schemas/solve/distinct.h"
#include "src/base/json.h"

namespace pawl::schema {
// Tries the rests below the state at the nodes begin ... end - 1; where `leaves(state, node)` the
// node is left alone with all that is below it.
template <typename Leaves>
void SchemaMasks::TryRests(Key before, uint32_t begin, uint32_t end, Remainders& out,
                           const Leaves& leaves) {
  const TokenTrie& trie = tokens_.rests();
  if (begin == end) return;
  rest_stack_[trie.nodes()[begin].depth - 1u] = before;
  uint64_t visited = 0;
  WalkSpan(trie, begin, end, rest_stack_, [&](Key at, uint32_t i) {
    ++visited;
    if (leaves(at, i)) return Machine::kDead;
    const Key after = machine_.Step(at, trie.nodes()[i].byte);
    const TokenId rest = trie.nodes()[i].token;
    if (after != Machine::kDead && rest != kNoToken)
      out[static_cast<size_t>(rest) >> 6] |= uint64_t{1} << (rest & 63);
    return after;
  });
  machine_.CountNodes(visited);
}

const SchemaMasks::ValueRests& SchemaMasks::ValueRestsAfter(Key detached) {
  const auto found = value_rests_.find(detached);
  if (found != value_rests_.end()) return found->second;
  ValueRests out;
  out.inside.assign((tokens_.rest_count() + 63) / 64, 0);
  out.inside[0] = 1;  // nothing behind the quote
  const TokenTrie& trie = tokens_.rests();
  TryRests(detached, 0, trie.size(), out.inside, [&](Key before, uint32_t node) {
    if (!Exits(before, trie.nodes()[node].byte)) return false;
    out.exits.push_back(node);
    return true;
  });
  return value_rests_.emplace(detached, std::move(out)).first->second;
}

const SchemaMasks::Remainders& SchemaMasks::RestsAfter(Key state) {
  const auto found = rests_.find(state);
  if (found != rests_.end()) return *found->second;
  Remainders out((tokens_.rest_count() + 63) / 64, 0);
  const TokenTrie& trie = tokens_.rests();
  const auto nothing = [](Key, uint32_t) { return false; };
  if (state == Machine::kDead) {
    // nothing may follow
  } else if (const Key detached = Standalone(state); detached != Machine::kDead) {
    const ValueRests& value = ValueRestsAfter(detached);
    out = value.inside;
    const Key after = value.exits.empty() ? Machine::kDead : AfterDetached(state);
    for (const uint32_t exit : value.exits) {
      if (after == Machine::kDead) break;
      TryRests(after, exit, trie.nodes()[exit].end, out, nothing);
    }
  } else {
    out[0] = 1;
    TryRests(state, 0, trie.size(), out, nothing);
  }
  const Remainders& same = *distinct_rests_.insert(std::move(out)).first;
  rests_.emplace(state, &same);
  return same;
}

std::optional<MaskStrategy> SchemaMasks::FillString(const Place& place) {
  if (!InString(place)) return std::nullopt;
  const Lexeme lexeme = LexemeAt(place.state);
  StringSearch& search = machine_.string(lexeme);
  const auto walk_into = [&](uint32_t* words, std::vector<StringClosings>& closings) {
    return WalkString(search, lexeme.state, vocabulary_, place.node, tokens_, *place.index,
                      machine_.spelling(), place.root(), words, closings);
  };
  if (!place.root() || !search.program().wide()) {
    std::vector<StringClosings> closings;
    const MaskStrategy path = walk_into(place.words, closings);
    Close(place, closings);
    return path;
  }
  const uint64_t at = uint64_t{lexeme.search} << 32 | lexeme.state;
  std::shared_ptr<WideWalk> walk = wide_walks_[at];
  if (walk == nullptr) {
    walk = std::make_shared<WideWalk>();
    walk->words.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
    walk->path = walk_into(walk->words.data(), walk->closings);
    if (wide_walks_.size() > limits::kWideWalks) wide_walks_.clear();
    wide_walks_[at] = walk;
  }
  std::copy(walk->words.begin(), walk->words.end(), place.words);
  Close(place, walk->closings);
  return walk->path;
}

void SchemaMasks::Close(const Place& place, const std::vector<StringClosings>& closings) {
  if (LexemeAt(place.state).mode == Mode::kString) {
    CloseStrings(place, closings);
  } else {
    CloseKeys(place, closings);
  }
}

// Calls fn(crossing) for those of a group whose length fits.
template <typename Fn>
void SchemaMasks::ForEach(const Place& place, const StringClosings& group, const Fn& fn) {
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const StringIndex::Crossing& crossing = place.index->crossings()[i];
    const uint64_t more = uint64_t{crossing.length} - group.read;
    if (!group.free || (more >= group.min && more <= group.max)) fn(crossing);
  }
}

void SchemaMasks::CloseStrings(const Place& place, const std::vector<StringClosings>& closings) {
  if (place.apart != nullptr) {
    for (const StringClosings& group : closings) {
      ForEach(place, group, [&](const auto& crossing) {
        place.apart->closings.emplace_back(crossing.token, crossing.rest);
      });
    }
    return;
  }
  const NodeId node = Machine::FrameOf(place.state);
  StringProgram& program = SearchAt(place.state).program();
  const Goal goal = frames_.PendingGoal(machine_.node(node).frame);
  const auto rests_after = [&](StringProgram::StateId s) -> const Remainders& {
    std::vector<bool> truth;
    if (!goal.tracks.empty()) truth = solver_.scalars().StringTruth(goal, s);
    return RestsAfter(machine_.EndValue(node, truth, '"'));
  };
  const Remainders* same = nullptr;  // without tracks every string ends alike
  StringProgram::StateId same_state = 0;
  for (const StringClosings& group : closings) {
    if (goal.tracks.empty() || !group.free || !program.counting()) {
      if (same == nullptr || (!goal.tracks.empty() && same_state != group.state)) {
        same = &rests_after(group.state);
        same_state = group.state;
      }
      ForEach(place, group, [&](const auto& crossing) { Allow(place, *same, crossing); });
      continue;
    }
    ForEach(place, group, [&](const auto& crossing) {
      const uint64_t count = program.Count(group.state) + crossing.length - group.read;
      Allow(place, rests_after(program.AtCount(group.state, count)), crossing);
    });
  }
}

SchemaMasks::NodeId SchemaMasks::BeforeKey(NodeId id) {
  Node plain = machine_.node(id);
  plain.text = plain.start = 0;
  plain.reads_key = false;
  return machine_.InternNode(plain);
}

const SchemaMasks::Remainders& SchemaMasks::RestsAfterKey(NodeId id, const StringProgram& program,
                                                          StringProgram::StateId state, int rank) {
  id = BeforeKey(id);
  const uint32_t which = rank >= 0 ? 1u << 31 | static_cast<uint32_t>(rank) : state;
  const Remainders*& rests = key_rests_[uint64_t{id} << 32 | which];
  if (rests == nullptr) {
    const Frame& frame = frames_[machine_.node(id).frame];
    const NameId name = rank >= 0 ? frames_.layout(frame.layout).name_ids[static_cast<size_t>(rank)]
                                  : FreshName(frame);
    rests = &RestsAfter(machine_.AfterKey(id, program, state, rank, name));
  }
  return *rests;
}

const SchemaMasks::Remainders* SchemaMasks::RestsAfterKeys(const Place& place,
                                                           const StringClosings& group,
                                                           const std::function<Key()>& walk) {
  const NodeId id = BeforeKey(Machine::FrameOf(place.state));
  const Remainders*& rests = key_rests_[uint64_t{id} << 32 | group.state];
  if (rests == nullptr) {
    StringSearch& search = SearchAt(place.state);
    if (!Endless(search, group.state)) return nullptr;
    rests = &RestsAfter(walk());
  }
  return rests;
}

// The tokens of the group have one quote, so they close one key.
void SchemaMasks::CloseOneKey(const Place& place, const StringClosings& group) {
  const StringIndex::Crossing& any = place.index->crossings()[group.begin];
  const size_t quote = trie_.nodes()[any.quote].depth;
  std::optional<Key> after;
  const auto after_quote = [&] {
    if (!after) after = WalkToken(place, any.token, quote);
    return *after;
  };
  const Remainders* const rests = any.escaped ? nullptr : RestsAfterKeys(place, group, after_quote);
  ForEach(place, group, [&](const auto& crossing) {
    const std::string_view rest = vocabulary_.bytes(crossing.token).substr(quote);
    const size_t first = rest.find_first_not_of(" \t\n\r");
    if (first != std::string_view::npos && rest[first] != ':') return;
    // What opens another key of the object may run into this one.
    const bool other_key = rest.substr(0, rest.find('"')).find(',') != std::string_view::npos;
    if (rests != nullptr && !crossing.intricate && !other_key) {
      Allow(place, *rests, crossing);
      return;
    }
    if (machine_.StepText(after_quote(), rest) != Machine::kDead) Set(place, crossing.token);
  });
}

void SchemaMasks::CloseKeys(const Place& place, const std::vector<StringClosings>& closings) {
  const NodeId node = Machine::FrameOf(place.state);
  StringProgram& program = SearchAt(place.state).program();
  const ObjectLayout& layout = frames_.layout(frames_[machine_.node(node).frame].layout);
  std::optional<std::vector<uint32_t>> seen_quotes;
  const auto taken = [&](const StringIndex::Crossing& crossing) {
    if (!seen_quotes) seen_quotes = QuotesOfSeenKeys(place);
    return std::binary_search(seen_quotes->begin(), seen_quotes->end(), crossing.quote);
  };
  for (const StringClosings& group : closings) {
    if (const int rank = machine_.RankOf(layout, program, group.state); rank >= 0) {
      const Remainders& rests = RestsAfterKey(node, program, group.state, rank);
      ForEach(place, group, [&](const auto& crossing) { Allow(place, rests, crossing); });
      continue;
    }
    if (!group.free) {
      if (!taken(place.index->crossings()[group.begin])) CloseOneKey(place, group);
      continue;
    }
    // One key cannot stand for all where only so many are possible, or their lengths matter.
    const bool alike = group.max == kUnbounded && !program.counting();
    const Remainders* const rests =
        alike ? &RestsAfterKey(node, program, group.state, -1) : nullptr;
    ForEach(place, group, [&](const auto& crossing) {
      if (rests != nullptr && !Allows(*rests, crossing.rest)) return;
      const bool one_by_one = rests == nullptr || crossing.escaped || crossing.intricate;
      if (one_by_one ? WalkToken(place, crossing.token) != Machine::kDead : !taken(crossing))
        Set(place, crossing.token);
    });
  }
}

std::optional<std::string> SchemaMasks::BegunKey(const Place& place) const {
  const Node& node = NodeAt(place.state);
  std::string begun = machine_.TextSince(node.text, node.start).substr(1);
  if (begun.find('\\') == std::string::npos) return begun;
  auto parsed = json::Parse("\"" + begun + "\"");
  if (!parsed.ok()) return std::nullopt;
  return std::move(parsed->text);
}

std::vector<uint32_t> SchemaMasks::QuotesOfSeenKeys(const Place& place) {
  std::vector<uint32_t> out;
  const Node& node = NodeAt(place.state);
  const Frame& frame = frames_[node.frame];
  if (frame.seen == IdSets::kEmpty) return out;
  const std::optional<std::string> begun_key = BegunKey(place);
  if (!begun_key) return out;
  const std::string& begun = *begun_key;
  const StructureTokens& structure = TableOf<StructureTokens>(vocabulary_);
  // The trie node of the quote behind the name, or how much of the name leads out of the trie.
  const auto follow = [&](std::string_view name, size_t& out_at) {
    uint32_t at = place.node;
    const auto step = [&](std::string_view bytes) {
      for (const char byte : bytes) {
        at = trie_.Child(at, static_cast<uint8_t>(byte));
        if (at == TokenTrie::kNone || !structure.LeadsToQuote(at)) return false;
      }
      return true;
    };
    for (size_t i = begun.size(); i < name.size(); i = out_at) {
      out_at = i + 1;
      while (out_at < name.size() && (static_cast<uint8_t>(name[out_at]) & 0xC0) == 0x80) ++out_at;
      const std::string quoted = machine_.Quoted(name.substr(i, out_at - i));
      if (!step(std::string_view(quoted).substr(1, quoted.size() - 2))) return TokenTrie::kNone;
    }
    out_at = name.size();
    return trie_.Child(at, '"');
  };
  size_t length = 0;
  if (frames_.seen().Size(frame.seen) <= limits::kFewKeys) {
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

NameId SchemaMasks::FreshName(const Frame& frame) {
  std::string name;
  NameId id;
  do {
    name += "\xF4\x8F\xBF\xBF";  // U+10FFFF, no character
    id = frames_.InternName(name);
  } while (frames_.Seen(frame, id));
  return id;
}

}  // namespace pawl::schema
