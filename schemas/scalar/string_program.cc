// The classes of the program are the coarsest partition of the code points that refines those of
// all regexes and keeps apart every code point that stands in a literal. Intervals of the line are
// cut at all boundaries; intervals with equal signatures (one class per atom) are the same class.
#include "schemas/scalar/string_program.h"

#include <algorithm>
#include <array>
#include <utility>

#include "schemas/limits.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {

namespace {
// Real patterns need a few thousand steps. A long text may need many more, so what reading may cost
// is only bounded from afar.
constexpr RegexDfaLimits kRegexLimits{.max_states = 1 << 18, .max_search_work = 1u << 21};
}  // namespace

StringProgram::StringProgram(const SchemaTable& table, std::vector<AtomId> atoms)
    : table_(table), atoms_(std::move(atoms)) {
  for (const AtomId id : atoms_) {
    const StringAtom& a = atom(id);
    switch (a.type) {
      case StringAtom::Type::kRegex:
        regexes_.push_back(
            {id, std::make_unique<RegexDfa>(table.regexes, a.regex, kRegexLimits), {}});
        break;
      case StringAtom::Type::kLiterals:
        tries_.push_back({id, {}});
        break;
      case StringAtom::Type::kSource:
        sources_.push_back({id, SourceTrie(*table.source, a.span)});
        break;
      case StringAtom::Type::kLength:
        counting_ = true;
        critical_.push_back(a.min);
        count_cap_ = std::max(count_cap_, a.min);
        if (a.max != kUnbounded) {
          critical_.push_back(a.max);
          critical_.push_back(a.max + 1);
          count_cap_ = std::max(count_cap_, a.max + 1);
        }
        break;
    }
  }
  SortUnique(critical_);
  const bool grouped = regexes_.size() > limits::kRegexesInGroup;
  regex_words_ = grouped ? (regexes_.size() - 1) / limits::kRegexesInGroup + 1 : regexes_.size();
  width_ = std::max<size_t>(1, regex_words_ + node_words() + (counting_ ? 2 : 0));
  after_.resize(width_);
  peeked_.resize(width_);
  FindSlots();
  BuildClasses();
  for (size_t i = 0; grouped && i < regexes_.size(); ++i) {
    if (i % limits::kRegexesInGroup == 0) groups_.emplace_back(class_count_);
    groups_.back().Add(regexes_[i].dfa.get(), &regexes_[i].class_map);
  }
  for (size_t i = 0; i < regex_words_; ++i)
    after_[i] = grouped ? groups_[i].Start() : regexes_[i].dfa->Start();
  for (size_t i = 0; i < sources_.size(); ++i)
    after_[regex_words_ + tries_.size() + i] = sources_[i].trie.start();
  Intern(after_.data());
  for (uint32_t i = 0; !grouped && node_words() == 0 && i < regexes_.size(); ++i) {
    const ReId term = RegexTerm(start(), i);
    const RegexArena::View view = table_.regexes->Inspect(term);
    if (view.op == RegexArena::View::Op::kConcat && view.operands[0] == RegexArena::kAnything)
      searches_.push_back(i);
  }
}

void StringProgram::Restart(uint32_t* words) {
  for (const uint32_t i : searches_) {
    if (!regexes_[i].dfa->Absorbing(words[i])) words[i] = key(start())[i];
  }
}

bool StringProgram::AnyDead(const uint32_t* words) const {
  return std::any_of(words, words + regexes_.size(),
                     [](uint32_t state) { return state == RegexDfa::kDead; });
}

// Combinations of many conditions ask for them all at each state: with a row of slots by atom, if
// that is not too long.
void StringProgram::FindSlots() {
  slots_.resize(atoms_.size(), kNoSlot);
  for (size_t i = 0; i < atoms_.size(); ++i) {
    const size_t regex = PlaceOf(regexes_, atoms_[i]), trie = PlaceOf(tries_, atoms_[i]);
    if (regex < regexes_.size()) slots_[i] = static_cast<uint32_t>(regex);
    if (trie < tries_.size()) slots_[i] = static_cast<uint32_t>(regexes_.size() + trie);
    if (const size_t source = PlaceOf(sources_, atoms_[i]); source < sources_.size())
      slots_[i] = static_cast<uint32_t>(regexes_.size() + tries_.size() + source);
  }
  if (atoms_.empty() || atoms_.back() - atoms_.front() >= limits::kSlotRow) return;
  slot_by_atom_.resize(atoms_.back() - atoms_.front() + 1, kNoSlot);
  for (size_t i = 0; i < atoms_.size(); ++i) slot_by_atom_[atoms_[i] - atoms_.front()] = slots_[i];
}

// What stands for a class, of the character that did and those from c to last: one that can be
// printed reads better in completions than the control character that opens an interval.
static char32_t Readable(char32_t chosen, char32_t c, char32_t last) {
  const auto plain = [](char32_t p) { return p >= 0x20 && p < 0x7F && p != '"' && p != '\\'; };
  if (plain(chosen)) return chosen;
  for (const char32_t candidate : {U'a', U'0', U'A', U' ', c, static_cast<char32_t>(c + 1)}) {
    if (candidate >= c && candidate <= last && plain(candidate)) return candidate;
  }
  if (chosen < 0x80 && last >= 0x80 && c < 0x80) chosen = last;
  if (chosen >= 0xD800 && chosen <= 0xDFFF && last > 0xDFFF) chosen = 0xE000;
  return chosen;
}

// Breadth first, so that children lie side by side: a node is a run of the sorted literals that
// begin alike.
static void BuildTrie(std::vector<StringProgram::TrieNode>& nodes,
                      const std::vector<std::u32string>& literals) {
  struct Run {
    size_t begin, end, depth;
  };
  std::vector<Run> runs = {{0, literals.size(), 0}};
  nodes.emplace_back();
  for (size_t node = 0; node < runs.size(); ++node) {
    StopScope::Step();
    auto [begin, end, depth] = runs[node];
    if (begin < end && literals[begin].size() == depth)
      nodes[node].literal = static_cast<int>(begin++);
    nodes[node].first = static_cast<uint32_t>(runs.size());
    while (begin < end) {
      const char32_t c = literals[begin][depth];
      const size_t first = begin;
      while (begin < end && literals[begin][depth] == c) ++begin;
      nodes.push_back({.character = c});
      runs.push_back({first, begin, depth + 1});
    }
    nodes[node].last = static_cast<uint32_t>(runs.size());
  }
  // The way to the nearest literal: children stand behind their parents.
  for (size_t node = nodes.size(); node-- > 0;) {
    StringProgram::TrieNode& at = nodes[node];
    at.missing = at.literal >= 0 ? 0 : UINT32_MAX;
    for (uint32_t child = at.first; at.literal < 0 && child < at.last; ++child) {
      if (nodes[child].missing + 1 >= at.missing) continue;
      at.missing = nodes[child].missing + 1;
      at.nearest = child;
    }
  }
}

void StringProgram::BuildClasses() {
  std::vector<char32_t> cuts = {0};
  for (const Regex& regex : regexes_) {
    cuts.insert(cuts.end(), regex.dfa->boundaries().begin(), regex.dfa->boundaries().end());
  }
  // Long lists of literals repeat a few characters of ASCII, which are not worth sorting.
  std::vector<char32_t> literal_points;
  std::array<bool, 128> in_ascii = {};
  for (const Trie& trie : tries_) {
    for (const std::u32string& literal : atom(trie.atom).literals) {
      StopScope::Step();
      for (const char32_t c : literal) {
        if (c >= 128) {
          literal_points.push_back(c);
        } else if (!std::exchange(in_ascii[c], true)) {
          literal_points.push_back(c);
        }
      }
    }
  }
  if (!sources_.empty()) {
    const std::u32string& letters = table_.source->letters();
    literal_points.insert(literal_points.end(), letters.begin(), letters.end());
  }
  SortUnique(literal_points);
  for (const char32_t c : literal_points) {
    cuts.push_back(c);
    cuts.push_back(c + 1);
  }
  SortUnique(cuts);
  while (!cuts.empty() && cuts.back() > kMaxCodepoint) cuts.pop_back();
  boundaries_ = std::move(cuts);
  if (boundaries_.size() > limits::kPagedIntervals) {
    std::vector<uint32_t> pages;
    for (char32_t c = 0; c <= 0x10000; c += 256)
      pages.push_back(static_cast<uint32_t>(Interval(c)));
    pages_ = std::move(pages);
  }

  std::map<std::vector<uint32_t>, uint32_t> classes;
  uint32_t apart_from_all = UINT32_MAX;  // without regexes: what no literal has
  interval_class_.resize(boundaries_.size());
  for (size_t i = 0; i < boundaries_.size(); ++i) {
    const char32_t c = boundaries_[i];
    const bool in_literal = std::binary_search(literal_points.begin(), literal_points.end(), c);
    auto cls = static_cast<uint32_t>(representative_.size());
    if (regexes_.empty()) {
      if (!in_literal) cls = apart_from_all = std::min(apart_from_all, cls);
    } else {
      std::vector<uint32_t> signature;
      for (const Regex& regex : regexes_)
        signature.push_back(static_cast<uint32_t>(regex.dfa->ClassOf(c)));
      signature.push_back(in_literal ? c + 1 : 0);
      cls = classes.try_emplace(std::move(signature), cls).first->second;
    }
    interval_class_[i] = cls;
    if (cls == representative_.size()) representative_.push_back(c);
    const char32_t last = i + 1 < boundaries_.size() ? boundaries_[i + 1] - 1 : kMaxCodepoint;
    char32_t& chosen = representative_[cls];
    chosen = Readable(chosen, c, last);
  }
  class_count_ = static_cast<int>(representative_.size());
  for (char32_t c = 0; c < 128; ++c)
    ascii_class_[c] = static_cast<int>(interval_class_[Interval(c)]);
  for (size_t c = 0; c < 128; ++c) {
    const auto it = std::find(class_of_ascii_.begin(), class_of_ascii_.end(), ascii_class_[c]);
    ascii_place_[c] = static_cast<uint8_t>(it - class_of_ascii_.begin());
    if (it == class_of_ascii_.end()) class_of_ascii_.push_back(ascii_class_[c]);
  }
  const auto add = [](std::vector<int>& to, int cls) {
    if (std::find(to.begin(), to.end(), cls) == to.end()) to.push_back(cls);
  };
  for (uint8_t c = 0; c < 128; ++c) {
    if (IsPlainAscii(c)) add(classes_of_[ClassOfAscii(c)], ascii_class_[c]);
  }
  std::vector<bool> beyond(representative_.size()), apart(representative_.size());
  for (size_t i = Interval(128); i < boundaries_.size(); ++i) {
    const char32_t lo = std::max<char32_t>(boundaries_[i], 128);
    if (lo >= 0xD800 && lo <= 0xDFFF) continue;
    const char32_t hi = i + 1 < boundaries_.size() ? boundaries_[i + 1] - 1 : kMaxCodepoint;
    (AllSetApart(lo, hi) ? apart : beyond)[interval_class_[i]] = true;
  }
  class_slots_.assign(representative_.size(), kApartSlot);
  for (size_t cls = 0; cls < beyond.size(); ++cls) {
    if (beyond[cls]) class_slots_[cls] = kBeyondSlot;
  }
  for (size_t place = 0; place < class_of_ascii_.size(); ++place)
    class_slots_[static_cast<size_t>(class_of_ascii_[place])] =
        static_cast<uint8_t>(std::min<size_t>(place, kApartSlot));
  for (size_t cls = 0; cls < beyond.size(); ++cls) {
    if (beyond[cls]) {
      classes_of_[kBeyondClass].push_back(static_cast<int>(cls));
    } else if (apart[cls]) {
      classes_apart_.push_back(static_cast<int>(cls));
    }
  }
  for (Regex& regex : regexes_) {
    regex.class_map.resize(static_cast<size_t>(class_count_));
    for (size_t i = 0; i < boundaries_.size(); ++i) {
      regex.class_map[interval_class_[i]] = regex.dfa->ClassOf(boundaries_[i]);
    }
  }
  for (Trie& trie : tries_) BuildTrie(trie.nodes, atom(trie.atom).literals);
}

size_t StringProgram::Interval(char32_t c) const {
  auto first = boundaries_.begin(), last = boundaries_.end();
  if (const size_t page = c >> 8; page + 1 < pages_.size()) {
    last = first + pages_[page + 1] + 1;
    first += pages_[page];
  }
  return static_cast<size_t>(std::upper_bound(first, last, c) - boundaries_.begin()) - 1;
}

uint64_t StringProgram::HashOf(const uint32_t* words) const {
  uint64_t hash = 0;
  for (size_t i = 0; i < width_; ++i) hash = HashMix(hash, words[i]);
  return hash;
}

StringProgram::StateId StringProgram::Intern(const uint32_t* words) {
  const uint64_t hash = HashOf(words);
  const StateId known = FindKey(words, hash);
  if (known != kNoState) return known;
  const StateId id = static_cast<StateId>(size());
  keys_.insert(keys_.end(), words, words + width_);
  rows_.push_back(kNoRow);
  index_.Insert(hash, id);
  ++table_.spending->states;
  return id;
}

RegexGroup::ClassBits StringProgram::SettlingKey(const uint32_t* words) {
  // Few regexes, literals and counters are looked at after each step.
  const bool simple = !groups_.empty() && !counting_ && !NodesLeft(words);
  if (!simple) return {UINT64_MAX, UINT64_MAX};
  RegexGroup::ClassBits bits{};
  for (size_t i = 0; i < groups_.size(); ++i) {
    const RegexGroup::ClassBits& some = groups_[i].Settling(words[i], class_slots_);
    bits[0] |= some[0];
    bits[1] |= some[1];
  }
  return bits;
}

void StringProgram::SettleRegex(uint32_t* words, size_t regex, bool truth) {
  const uint32_t settled = truth ? regexes_[regex].dfa->Anything() : RegexDfa::kDead;
  if (groups_.empty()) {
    words[regex] = settled;
    return;
  }
  uint32_t& word = words[regex / limits::kRegexesInGroup];
  word =
      groups_[regex / limits::kRegexesInGroup].With(word, regex % limits::kRegexesInGroup, settled);
}

bool StringProgram::OnlyRegexesLeft(const uint32_t* words) const {
  return !counting_ && !NodesLeft(words);
}

bool StringProgram::NeverSettled(const uint32_t* words) {
  for (size_t regex = 0; regex < regexes_.size(); ++regex) {
    const uint32_t start = RegexState(words, regex);
    const auto [it, fresh] = never_settled_.try_emplace(uint64_t{regex} << 32 | start, false);
    if (!fresh) {
      if (it->second) return true;
      continue;
    }
    RegexDfa& dfa = *regexes_[regex].dfa;
    std::vector<uint32_t> states = {start};
    bool never = true;
    for (size_t at = 0; never && at < states.size(); ++at) {
      never = !dfa.Absorbing(states[at]) && states.size() <= limits::kSettlingStates;
      for (const std::vector<int>& classes : classes_of_) {
        for (const int cls : classes) {
          StopScope::Step();
          const uint32_t next = StepRegex(regex, states[at], cls);
          if (std::ranges::find(states, next) == states.end()) states.push_back(next);
        }
      }
    }
    if (it->second = never; never) return true;
  }
  return false;
}

bool StringProgram::QuietKey(const uint32_t* words) {
  for (size_t i = 0; i < regex_words_; ++i) {
    const bool quiet =
        groups_.empty() ? regexes_[i].dfa->Absorbing(words[i]) : groups_[i].AllSettled(words[i]);
    if (!quiet) return false;
  }
  return !NodesLeft(words);
}

void StringProgram::Step(const uint32_t* from, int cls, uint32_t* after) {
  StopScope::Step();
  std::copy_n(from, width_, after);
  size_t slot = 0;
  for (RegexGroup& group : groups_) {
    after[slot] = group.Next(after[slot], cls);
    ++slot;
  }
  for (size_t i = 0; groups_.empty() && i < regexes_.size(); ++i) {
    uint32_t& s = after[slot++];
    if (s == RegexDfa::kDead) continue;
    s = regexes_[i].dfa->Next(s, regexes_[i].class_map[static_cast<size_t>(cls)]);
  }
  for (const Trie& trie : tries_) {
    uint32_t& s = after[slot++];
    if (s == kNoNode) continue;
    // A character of a literal has a class of its own.
    const char32_t c = Representative(cls);
    const auto first = trie.nodes.begin() + trie.nodes[s].first;
    const auto last = trie.nodes.begin() + trie.nodes[s].last;
    const auto child = std::ranges::lower_bound(first, last, c, {}, &TrieNode::character);
    s = child != last && child->character == c ? static_cast<uint32_t>(child - trie.nodes.begin())
                                               : kNoNode;
  }
  for (Source& source : sources_) {
    uint32_t& s = after[slot++];
    if (s != kNoNode) s = source.trie.Child(s, Representative(cls));
  }
  if (counting_) SetCount(after, std::min(CountOf(after) + 1, count_cap_));
}

StringProgram::StateId StringProgram::Peek(StateId state, int cls) {
  Step(key(state), cls, peeked_.data());
  const StateId known = FindKey(peeked_.data());
  return known != kNoState ? known : kPeeked;
}

StringProgram::StateId StringProgram::NextOnce(StateId state, int cls) {
  const size_t row = rows_[state];
  if (row != kNoRow || (!wide() && sources_.empty())) return Next(state, cls);
  Step(key(state), cls, after_.data());
  return Intern(after_.data());
}

StringProgram::StateId StringProgram::ComputeNext(StateId state, int cls) {
  Step(key(state), cls, after_.data());
  const StateId next = Intern(after_.data());
  if (rows_[state] == kNoRow) {
    rows_[state] = static_cast<uint32_t>(next_.size() / static_cast<size_t>(class_count_));
    next_.resize(next_.size() + static_cast<size_t>(class_count_), kUnknown);
  }
  return next_[size_t{rows_[state]} * static_cast<size_t>(class_count_) +
               static_cast<size_t>(cls)] = next;
}

StringProgram::StateId StringProgram::AtCount(StateId state, uint64_t count) {
  std::copy_n(key(state), width_, after_.data());
  SetCount(after_.data(), std::min(count, count_cap_));
  return Intern(after_.data());
}

bool StringProgram::Quiet(StateId state) {
  if (state >= quiet_.size()) quiet_.resize(size(), -1);
  if (quiet_[state] >= 0) return quiet_[state] == 1;
  const bool quiet = QuietKey(key(state));
  quiet_[state] = quiet;
  return quiet;
}

StringProgram::StateId StringProgram::NextBeyondAscii(StateId state) {
  StateId same = kNoState;
  for (const std::vector<int>* classes : {&classes_of_[kBeyondClass], &classes_apart_}) {
    for (const int cls : *classes) {
      const StateId next = Next(state, cls);
      if (same != kNoState && next != same) return kNoState;
      same = next;
    }
  }
  return same;
}

bool StringProgram::IsSearch(StateId state) const {
  if (regexes_.size() != 1 || node_words() > 0 || counting_) return false;
  return regexes_[0].dfa->IsSearch(key(state)[0], false);
}

StringProgram::StateId StringProgram::AlwaysAhead(StateId state) {
  if (counting_) return kNoState;
  // What finds each regex, one behind the other, and then what leads out of the literals.
  std::vector<uint32_t> ahead(key(state), key(state) + width_);
  for (size_t i = 0; i < regexes_.size(); ++i) {
    RegexDfa& dfa = *regexes_[i].dfa;
    const uint32_t s = RegexState(key(state), i);
    if (dfa.Absorbing(s)) continue;
    if (!dfa.IsSearch(s, true)) return kNoState;
    if (groups_.empty()) {
      ahead[i] = dfa.Anything();
    } else {
      uint32_t& word = ahead[i / limits::kRegexesInGroup];
      word = groups_[i / limits::kRegexesInGroup].With(word, i % limits::kRegexesInGroup,
                                                       dfa.Anything());
    }
  }
  for (size_t i = 0; i < node_words(); ++i) ahead[regex_words_ + i] = kNoNode;
  return Intern(ahead.data());
}

bool StringProgram::overflow() const {
  return std::any_of(regexes_.begin(), regexes_.end(),
                     [](const Regex& regex) { return regex.dfa->overflow(); });
}

bool StringProgram::SurelyLive(StateId state) const {
  if (regexes_.size() != 1 || node_words() > 0 || counting_) return false;
  const uint32_t s = key(state)[0];
  return s != RegexDfa::kDead && !regexes_[0].dfa->MayBeEmpty(s);
}

bool StringProgram::SurelyLiveTogether(StateId state) {
  if (node_words() > 0 || counting_ || regexes_.size() < 2) return false;
  bool open = false;
  for (size_t i = 0; i < regexes_.size(); ++i) {
    const uint32_t s = RegexState(key(state), i);
    RegexDfa& dfa = *regexes_[i].dfa;
    if (s == RegexDfa::kDead) return false;
    if (dfa.Accepting(s) && dfa.Absorbing(s)) continue;
    if (open || dfa.MayBeEmpty(s)) return false;
    open = true;
  }
  return true;
}

uint64_t StringProgram::FreshWork(StateId state, Met& met) const {
  met.resize(regexes_.size());
  uint64_t work = 0;
  for (size_t slot = 0; slot < regexes_.size(); ++slot) {
    const size_t s = RegexState(key(state), slot);
    if (s >= met[slot].size()) met[slot].resize(s + 1);
    if (met[slot][s]) continue;
    met[slot][s] = true;
    work += regexes_[slot].dfa->WorkAt(static_cast<uint32_t>(s));
  }
  return work;
}

int StringProgram::Settled(StateId state, AtomId id) {
  const uint32_t slot = SlotOf(id);
  if (slot < regexes_.size()) {
    if (!groups_.empty()) {
      const uint32_t word = key(state)[slot / limits::kRegexesInGroup];
      RegexGroup& group = groups_[slot / limits::kRegexesInGroup];
      const size_t part = slot % limits::kRegexesInGroup;
      return (group.Settled(word) >> part & 1) == 0 ? -1 : group.Truths(word) >> part & 1;
    }
    const uint32_t s = key(state)[slot];
    RegexDfa& dfa = *regexes_[slot].dfa;
    if (!dfa.Absorbing(s)) return -1;
    return s != RegexDfa::kDead && dfa.Accepting(s) ? 1 : 0;
  }
  if (slot != kNoSlot) return key(state)[regex_words_ + slot - regexes_.size()] == kNoNode ? 0 : -1;
  const StringAtom& a = atom(id);
  if (a.max != kUnbounded) return Count(state) > a.max ? 0 : -1;
  return Count(state) >= a.min ? 1 : -1;
}

uint32_t StringProgram::Distance(StateId state, bool apart) const {
  uint32_t distance = 0;
  const auto need = [&](uint32_t characters) {
    distance = apart ? distance + std::min(characters, 1u << 20) : std::max(distance, characters);
  };
  for (size_t i = 0; i < regexes_.size(); ++i) {
    const uint32_t s = RegexState(key(state), i);
    if (s != RegexDfa::kDead) need(regexes_[i].dfa->MinLength(s));
  }
  for (size_t i = 0; i < tries_.size(); ++i) {
    const uint32_t node = key(state)[regex_words_ + i];
    if (node != kNoNode) need(tries_[i].nodes[node].missing);
  }
  return distance;
}

bool StringProgram::Truth(StateId state, AtomId id) const {
  const uint32_t slot = SlotOf(id);
  if (slot < regexes_.size()) {
    if (!groups_.empty()) {
      const uint32_t word = key(state)[slot / limits::kRegexesInGroup];
      return (groups_[slot / limits::kRegexesInGroup].Truths(word) >>
                  slot % limits::kRegexesInGroup &
              1) != 0;
    }
    const uint32_t s = key(state)[slot];
    return s != RegexDfa::kDead && regexes_[slot].dfa->Accepting(s);
  }
  if (slot != kNoSlot && slot >= regexes_.size() + tries_.size()) {
    const size_t source = slot - regexes_.size() - tries_.size();
    const uint32_t node = key(state)[regex_words_ + tries_.size() + source];
    return node != kNoNode && sources_[source].trie.IsSpan(node);
  }
  if (slot != kNoSlot) return Literal(state, id) >= 0;
  const StringAtom& a = atom(id);
  const uint64_t count = Count(state);
  return count >= a.min && (a.max == kUnbounded || count <= a.max);
}

std::string StringProgram::Signature(StateId state) const {
  std::string out;
  const uint32_t* const words = key(state);
  for (size_t i = 0; i < groups_.size(); ++i)
    out.push_back(static_cast<char>(groups_[i].Truths(words[i])));
  for (size_t i = 0; groups_.empty() && i < regexes_.size(); ++i) {
    const bool truth = words[i] != RegexDfa::kDead && regexes_[i].dfa->Accepting(words[i]);
    out.push_back(truth ? 1 : 0);
  }
  const auto append = [&out](uint64_t word) {
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(word >> 8 * i));
  };
  for (size_t i = 0; i < tries_.size(); ++i) {
    const uint32_t node = words[regex_words_ + i];
    append(node == kNoNode ? UINT64_MAX : static_cast<uint64_t>(tries_[i].nodes[node].literal));
  }
  for (size_t i = 0; i < sources_.size(); ++i) append(words[regex_words_ + tries_.size() + i]);
  if (counting_) {
    append(static_cast<uint64_t>(
        std::upper_bound(critical_.begin(), critical_.end(), Count(state)) - critical_.begin()));
  }
  return out;
}

int StringProgram::Literal(StateId state, AtomId id) const {
  const uint32_t slot = SlotOf(id);
  if (slot == kNoSlot || slot < regexes_.size()) return -1;
  const uint32_t node = key(state)[regex_words_ + slot - regexes_.size()];
  return node == kNoNode ? -1 : tries_[slot - regexes_.size()].nodes[node].literal;
}

// States are the tuples of the regexes' own states, interned; each has a bit for each regex that
// accepts. A state gets a row of next states when it is first left, and each cell is filled when it
// is first asked.

uint32_t RegexGroup::Intern(const uint32_t* key) {
  const size_t width = parts_.size();
  uint64_t hash = 0;
  for (size_t i = 0; i < width; ++i) hash = HashMix(hash, key[i]);
  const uint32_t known = index_.Find(
      hash, [&](uint32_t id) { return std::equal(key, key + width, &keys_[id * width]); });
  if (known != HashIndex::kNone) return known;
  const auto id = static_cast<uint32_t>(states_.size());
  State& state = states_.emplace_back();
  for (size_t i = 0; i < width; ++i) {
    const bool truth = key[i] != RegexDfa::kDead && parts_[i].dfa->Accepting(key[i]);
    state.truths = static_cast<uint8_t>(state.truths | (truth ? 1u << i : 0u));
  }
  keys_.insert(keys_.end(), key, key + width);
  index_.Insert(hash, id);
  return id;
}

uint32_t RegexGroup::Start() {
  std::array<uint32_t, limits::kRegexesInGroup> key{};
  for (size_t i = 0; i < parts_.size(); ++i) key[i] = parts_[i].dfa->Start();
  return Intern(key.data());
}

uint32_t RegexGroup::FindNext(uint32_t state, int cls) {
  std::array<uint32_t, limits::kRegexesInGroup> key{};
  for (size_t i = 0; i < parts_.size(); ++i) {
    const uint32_t s = StateOf(state, i);
    const Part& part = parts_[i];
    if (s != RegexDfa::kDead)
      key[i] = part.dfa->Next(s, (*part.class_map)[static_cast<size_t>(cls)]);
  }
  const uint32_t next = Intern(key.data());
  if (states_[state].row == kNone) {
    states_[state].row = static_cast<uint32_t>(cells_.size() / classes_);
    cells_.resize(cells_.size() + classes_, kNone);
  }
  return cells_[states_[state].row * classes_ + static_cast<size_t>(cls)] = next;
}

uint32_t RegexGroup::With(uint32_t state, size_t part, uint32_t changed) {
  std::array<uint32_t, limits::kRegexesInGroup> key{};
  for (size_t i = 0; i < parts_.size(); ++i) key[i] = StateOf(state, i);
  key[part] = changed;
  return Intern(key.data());
}

uint8_t RegexGroup::FindSettled(uint32_t state) {
  uint32_t settled = 0;
  for (size_t i = 0; i < parts_.size(); ++i)
    settled |= parts_[i].dfa->Absorbing(StateOf(state, i)) ? 1u << i : 0u;
  states_[state].settled = static_cast<int16_t>(settled);
  return static_cast<uint8_t>(settled);
}

const RegexGroup::ClassBits& RegexGroup::FindSettling(uint32_t state,
                                                      const std::vector<uint8_t>& slots) {
  ClassBits bits{};
  const uint8_t settled = Settled(state);
  for (size_t cls = 0; cls < classes_; ++cls) {
    if (Settled(Next(state, static_cast<int>(cls))) != settled)
      bits[slots[cls] >> 6] |= uint64_t{1} << (slots[cls] & 63);
  }
  states_[state].settling = bits;
  states_[state].knows_settling = true;
  return states_[state].settling;
}

}  // namespace pawl::schema
