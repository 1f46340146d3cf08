// The classes of the program are the coarsest partition of the code points that refines those of
// all regexes and keeps apart every code point that stands in a literal. Intervals of the line are
// cut at all boundaries; intervals with equal signatures (one class per atom) are the same class.
#include "schemas/string_program.h"

#include <algorithm>

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
  std::sort(critical_.begin(), critical_.end());
  critical_.erase(std::unique(critical_.begin(), critical_.end()), critical_.end());
  width_ = std::max<size_t>(1, regexes_.size() + tries_.size() + (counting_ ? 1 : 0));
  BuildClasses();
  std::vector<uint64_t> start(width_, 0);
  for (size_t i = 0; i < regexes_.size(); ++i) start[i] = regexes_[i].dfa->Start();
  Intern(start);
}

void StringProgram::BuildClasses() {
  std::vector<char32_t> cuts = {0};
  for (const Regex& regex : regexes_) {
    cuts.insert(cuts.end(), regex.dfa->boundaries().begin(), regex.dfa->boundaries().end());
  }
  std::vector<char32_t> literal_points;
  for (const Trie& trie : tries_) {
    for (const std::u32string& literal : atom(trie.atom).literals) {
      literal_points.insert(literal_points.end(), literal.begin(), literal.end());
    }
  }
  std::sort(literal_points.begin(), literal_points.end());
  literal_points.erase(std::unique(literal_points.begin(), literal_points.end()),
                       literal_points.end());
  for (const char32_t c : literal_points) {
    cuts.push_back(c);
    cuts.push_back(c + 1);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  while (!cuts.empty() && cuts.back() > kMaxCodepoint) cuts.pop_back();
  boundaries_ = std::move(cuts);

  std::map<std::vector<uint32_t>, uint32_t> classes;
  interval_class_.resize(boundaries_.size());
  for (size_t i = 0; i < boundaries_.size(); ++i) {
    const char32_t c = boundaries_[i];
    std::vector<uint32_t> signature;
    for (const Regex& regex : regexes_)
      signature.push_back(static_cast<uint32_t>(regex.dfa->ClassOf(c)));
    const bool in_literal = std::binary_search(literal_points.begin(), literal_points.end(), c);
    signature.push_back(in_literal ? c + 1 : 0);
    const auto [it, fresh] =
        classes.try_emplace(std::move(signature), static_cast<uint32_t>(classes.size()));
    interval_class_[i] = it->second;
    if (fresh) representative_.push_back(c);
    // A printable character reads better in completions than the control character that opens an
    // interval.
    const char32_t last = i + 1 < boundaries_.size() ? boundaries_[i + 1] - 1 : kMaxCodepoint;
    char32_t& chosen = representative_[it->second];
    const auto plain = [](char32_t p) { return p >= 0x20 && p < 0x7F && p != '"' && p != '\\'; };
    if (!plain(chosen)) {
      for (const char32_t candidate : {U'a', U'0', U'A', U' ', c, static_cast<char32_t>(c + 1)}) {
        if (candidate >= c && candidate <= last && plain(candidate)) {
          chosen = candidate;
          break;
        }
      }
      if (!plain(chosen) && chosen < 0x80 && last >= 0x80 && c < 0x80)
        chosen = 0x80 <= last ? last : chosen;
      if (chosen >= 0xD800 && chosen <= 0xDFFF && last > 0xDFFF) chosen = 0xE000;
    }
  }
  class_count_ = static_cast<int>(classes.size());
  for (char32_t c = 0; c < 128; ++c)
    ascii_class_[c] = static_cast<int>(interval_class_[Interval(c)]);
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
  for (Trie& trie : tries_) {
    trie.nodes.emplace_back();
    const auto& literals = atom(trie.atom).literals;
    for (size_t k = 0; k < literals.size(); ++k) {
      uint32_t node = 0;
      for (const char32_t c : literals[k]) {
        const int cls = ClassOf(c);
        auto& children = trie.nodes[node].children;
        const auto it = std::lower_bound(children.begin(), children.end(), std::pair(cls, 0u));
        if (it != children.end() && it->first == cls) {
          node = it->second;
        } else {
          const uint32_t fresh = static_cast<uint32_t>(trie.nodes.size());
          children.insert(it, {cls, fresh});
          trie.nodes.emplace_back();
          node = fresh;
        }
      }
      trie.nodes[node].literal = static_cast<int>(k);
    }
    // Children stand behind their parents.
    std::vector<uint32_t> missing(trie.nodes.size(), 0);
    for (size_t node = trie.nodes.size(); node-- > 0;) {
      Trie::Node& at = trie.nodes[node];
      if (at.literal >= 0) continue;
      missing[node] = UINT32_MAX;
      for (const auto& [cls, child] : at.children) {
        if (missing[child] + 1 >= missing[node]) continue;
        missing[node] = missing[child] + 1;
        at.towards_shortest = cls;
      }
    }
  }
}

size_t StringProgram::Interval(char32_t c) const {
  return static_cast<size_t>(std::upper_bound(boundaries_.begin(), boundaries_.end(), c) -
                             boundaries_.begin()) -
         1;
}

StringProgram::StateId StringProgram::Intern(const std::vector<uint64_t>& state_key) {
  uint64_t hash = 0;
  for (const uint64_t word : state_key)
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u, hash ^= hash >> 31;
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (std::equal(state_key.begin(), state_key.end(), key(it->second))) return it->second;
  }
  const StateId id = static_cast<StateId>(keys_.size() / width_);
  keys_.insert(keys_.end(), state_key.begin(), state_key.end());
  rows_.push_back(kNoRow);
  index_.emplace(hash, id);
  return id;
}

StringProgram::StateId StringProgram::ComputeNext(StateId state, int cls) {
  std::vector<uint64_t> after(key(state), key(state) + width_);
  size_t slot = 0;
  for (Regex& regex : regexes_) {
    uint64_t& s = after[slot++];
    if (s != RegexDfa::kDead) {
      s = regex.dfa->Next(static_cast<uint32_t>(s), regex.class_map[static_cast<size_t>(cls)]);
    }
  }
  for (const Trie& trie : tries_) {
    uint64_t& s = after[slot++];
    if (s == kNoNode) continue;
    const auto& children = trie.nodes[s].children;
    const auto it = std::lower_bound(children.begin(), children.end(), std::pair(cls, 0u));
    s = it != children.end() && it->first == cls ? it->second : kNoNode;
  }
  if (counting_) after[slot] = std::min(after[slot] + 1, count_cap_);
  const StateId next = Intern(after);
  if (rows_[state] == kNoRow) {
    rows_[state] = static_cast<uint32_t>(next_.size() / static_cast<size_t>(class_count_));
    next_.resize(next_.size() + static_cast<size_t>(class_count_), kUnknown);
  }
  return next_[size_t{rows_[state]} * static_cast<size_t>(class_count_) +
               static_cast<size_t>(cls)] = next;
}

StringProgram::StateId StringProgram::AtCount(StateId state, uint64_t count) {
  std::vector<uint64_t> other(key(state), key(state) + width_);
  other[width_ - 1] = std::min(count, count_cap_);
  return Intern(other);
}

bool StringProgram::Quiet(StateId state) {
  if (state >= quiet_.size()) quiet_.resize(size(), -1);
  if (quiet_[state] >= 0) return quiet_[state] == 1;
  bool quiet = true;
  size_t slot = 0;
  for (const Regex& regex : regexes_)
    quiet = quiet && regex.dfa->Absorbing(static_cast<uint32_t>(key(state)[slot++]));
  for (size_t i = 0; i < tries_.size(); ++i) quiet = quiet && key(state)[slot++] == kNoNode;
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
  if (regexes_.size() != 1 || !tries_.empty() || counting_) return false;
  return regexes_[0].dfa->IsSearch(static_cast<uint32_t>(key(state)[0]), false);
}

StringProgram::StateId StringProgram::AlwaysAhead(StateId state) {
  if (counting_) return kNoState;
  // What finds each regex, one behind the other, and then what leads out of the literals.
  std::vector<uint64_t> ahead(key(state), key(state) + width_);
  size_t slot = 0;
  for (Regex& regex : regexes_) {
    uint64_t& s = ahead[slot++];
    if (regex.dfa->Absorbing(static_cast<uint32_t>(s))) continue;
    if (!regex.dfa->IsSearch(static_cast<uint32_t>(s), true)) return kNoState;
    s = regex.dfa->Anything();
  }
  for (size_t i = 0; i < tries_.size(); ++i) ahead[slot++] = kNoNode;
  return Intern(ahead);
}

bool StringProgram::overflow() const {
  return std::any_of(regexes_.begin(), regexes_.end(),
                     [](const Regex& regex) { return regex.dfa->overflow(); });
}

bool StringProgram::SurelyLive(StateId state) const {
  if (regexes_.size() != 1 || !tries_.empty() || counting_) return false;
  const uint32_t s = static_cast<uint32_t>(key(state)[0]);
  return s != RegexDfa::kDead && !regexes_[0].dfa->MayBeEmpty(s);
}

uint64_t StringProgram::FreshWork(StateId state, Met& met) const {
  met.resize(regexes_.size());
  uint64_t work = 0;
  for (size_t slot = 0; slot < regexes_.size(); ++slot) {
    const size_t s = key(state)[slot];
    if (s >= met[slot].size()) met[slot].resize(s + 1);
    if (met[slot][s]) continue;
    met[slot][s] = true;
    work += regexes_[slot].dfa->WorkAt(static_cast<uint32_t>(s));
  }
  return work;
}

int StringProgram::Settled(StateId state, AtomId id) {
  if (const size_t slot = RegexOf(id); slot < regexes_.size()) {
    const uint32_t s = static_cast<uint32_t>(key(state)[slot]);
    RegexDfa& dfa = *regexes_[slot].dfa;
    if (!dfa.Absorbing(s)) return -1;
    return s != RegexDfa::kDead && dfa.Accepting(s) ? 1 : 0;
  }
  if (const size_t trie = TrieOf(id); trie < tries_.size())
    return key(state)[regexes_.size() + trie] == kNoNode ? 0 : -1;
  const StringAtom& a = atom(id);
  if (a.max != kUnbounded) return Count(state) > a.max ? 0 : -1;
  return Count(state) >= a.min ? 1 : -1;
}

uint32_t StringProgram::Distance(StateId state, bool apart) const {
  uint32_t distance = 0;
  size_t slot = 0;
  for (const Regex& regex : regexes_) {
    const uint32_t s = static_cast<uint32_t>(key(state)[slot++]);
    if (s == RegexDfa::kDead) continue;
    const uint32_t needed = regex.dfa->MinLength(s);
    distance = apart ? distance + std::min(needed, 1u << 20) : std::max(distance, needed);
  }
  return distance;
}

bool StringProgram::Truth(StateId state, AtomId id) const {
  if (const size_t slot = RegexOf(id); slot < regexes_.size()) {
    const uint32_t s = static_cast<uint32_t>(key(state)[slot]);
    return s != RegexDfa::kDead && regexes_[slot].dfa->Accepting(s);
  }
  const StringAtom& a = atom(id);
  if (a.type == StringAtom::Type::kLength) {
    const uint64_t count = Count(state);
    return count >= a.min && (a.max == kUnbounded || count <= a.max);
  }
  return Literal(state, id) >= 0;
}

int StringProgram::Literal(StateId state, AtomId id) const {
  const size_t trie = TrieOf(id);
  if (trie == tries_.size()) return -1;
  const uint64_t node = key(state)[regexes_.size() + trie];
  return node == kNoNode ? -1 : tries_[trie].nodes[node].literal;
}

}  // namespace pawl::schema
