// StringProgram: several conditions on one string, run side by side over its code points.
//
// A state is the product of one DFA state per regex, one trie node per literal set and one counter;
// all atoms keep their truth, so any Boolean combination of them can be asked at the end. States
// are hash-consed and made lazily. JSON quoting and UTF-8 are not its business (json_string.h).
#ifndef PAWL_SCHEMAS_SCALAR_STRING_PROGRAM_H_
#define PAWL_SCHEMAS_SCALAR_STRING_PROGRAM_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/regex/regex_dfa.h"
#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/scalar/class_trie.h"
#include "schemas/scalar/source_trie.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// A few regexes side by side, as one automaton whose steps are remembered. Of many regexes a
// product has no end of states, and each would take a word and a look for each regex. A few of them
// have few states together, so a product of groups takes a word and a look for each group.
// Not thread-safe.
class RegexGroup {
 public:
  // `classes`: how many there are; Add tells what they are to each regex.
  explicit RegexGroup(int classes) : classes_(static_cast<size_t>(classes)) {}
  // Both outlive the group. REQUIRES: fewer than limits::kRegexesInGroup so far, and no state has
  // been made.
  void Add(RegexDfa* dfa, const std::vector<int>* class_map) { parts_.push_back({dfa, class_map}); }

  uint32_t Start();
  uint32_t Next(uint32_t state, int cls) {
    const uint32_t row = states_[state].row;
    if (row != kNone) {
      const uint32_t next = cells_[row * classes_ + static_cast<size_t>(cls)];
      if (next != kNone) return next;
    }
    return FindNext(state, cls);
  }
  // The state of a regex.
  uint32_t StateOf(uint32_t state, size_t part) const {
    return keys_[state * parts_.size() + part];
  }
  // The state in which another regex's state is `changed`.
  uint32_t With(uint32_t state, size_t part, uint32_t changed);
  // By part: whether it accepts.
  uint8_t Truths(uint32_t state) const { return states_[state].truths; }
  // By part: whether no code point changes its state any more.
  uint8_t Settled(uint32_t state) {
    return states_[state].settled >= 0 ? static_cast<uint8_t>(states_[state].settled)
                                       : FindSettled(state);
  }
  bool AllSettled(uint32_t state) { return Settled(state) == (1u << parts_.size()) - 1; }
  // The classes that lead to a state in which more is settled, by `slots`: the bit that stands for
  // a class (several may share one).
  using ClassBits = std::array<uint64_t, 2>;
  const ClassBits& Settling(uint32_t state, const std::vector<uint8_t>& slots) {
    const State& known = states_[state];
    return known.knows_settling ? known.settling : FindSettling(state, slots);
  }
  size_t MemoryBytes() const { return HeapBytes(parts_, states_, keys_, cells_, index_); }
  // What the states take, roughly.
  size_t bytes() const { return states_.size() * 64 + 4 * (keys_.size() + cells_.size()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Part {
    RegexDfa* dfa;
    const std::vector<int>* class_map;
  };
  struct State {
    uint32_t row = kNone;  // in cells_
    uint8_t truths = 0;
    bool knows_settling = false;
    int16_t settled = -1;  // unknown
    ClassBits settling{};  // next to the row: one load brings both
  };
  uint32_t Intern(const uint32_t* key);
  uint32_t FindNext(uint32_t state, int cls);
  uint8_t FindSettled(uint32_t state);
  const ClassBits& FindSettling(uint32_t state, const std::vector<uint8_t>& slots);

  const size_t classes_;
  std::vector<Part> parts_;
  std::vector<State> states_;
  std::vector<uint32_t> keys_, cells_;
  HashIndex index_;
};

class StringProgram {
 public:
  using StateId = uint32_t;
  // Of the trie of a list of literals.
  struct TrieNode {
    char32_t character = 0;        // that leads here
    uint32_t first = 0, last = 0;  // children: [first, last), by character
    int literal = -1;
    uint32_t missing = 0;  // characters to the nearest literal
    uint32_t nearest = 0;  // the child that leads there; 0: none
  };

  // `atoms`: string atoms of `table`, sorted. The table must outlive the program.
  StringProgram(const SchemaTable& table, std::vector<AtomId> atoms);

  StateId start() const { return 0; }
  // Classes of code points that no atom tells apart; class_of is O(log) off ASCII.
  int classes() const { return class_count_; }
  int ClassOf(char32_t c) const { return c < 128 ? ascii_class_[c] : interval_class_[Interval(c)]; }
  // The same for ASCII, numbered from 0 on by themselves.
  int ascii_classes() const { return static_cast<int>(class_of_ascii_.size()); }
  uint8_t AsciiClass(uint8_t c) const { return ascii_place_[c]; }
  int ClassOfAsciiClass(uint8_t place) const { return class_of_ascii_[place]; }
  char32_t Representative(int cls) const { return representative_[static_cast<size_t>(cls)]; }
  StateId Next(StateId state, int cls) {
    const size_t row = rows_[state];
    if (row != kNoRow) {
      const StateId next =
          next_[row * static_cast<size_t>(class_count_) + static_cast<size_t>(cls)];
      if (next != kUnknown) return next;
    }
    return ComputeNext(state, cls);
  }
  StateId After(std::u32string_view text) {
    StateId state = start();
    for (const char32_t c : text) state = Next(state, ClassOf(c));
    return state;
  }
  // Next without remembering that it was asked, for those who remember it themselves.
  StateId NextOnce(StateId state, int cls);
  // Calls fn(class) for the classes of the code points lo..hi until fn returns true; whether it
  // did.
  template <typename Fn>
  bool AnyClassIn(char32_t lo, char32_t hi, const Fn& fn) const {
    for (size_t i = Interval(lo); i < boundaries_.size() && boundaries_[i] <= hi; ++i) {
      if (fn(static_cast<int>(interval_class_[i]))) return true;
    }
    return false;
  }

  // The program's classes of the characters that look alike from outside, each once.
  std::span<const int> ClassesOf(CharClass like) const { return classes_of_[like]; }

  static constexpr StateId kNoState = HashIndex::kNone;
  // The one state that every code point beyond ASCII leads to; kNoState when they differ.
  StateId NextBeyondAscii(StateId state);

  // Whether the string read so far, taken as a whole, fulfils the atom. REQUIRES: atom is one of
  // atoms().
  bool Truth(StateId state, AtomId atom) const;
  // Index of the literal of a kLiterals atom that the string read so far is; -1 when it is none.
  int Literal(StateId state, AtomId atom) const;
  const std::vector<AtomId>& atoms() const { return atoms_; }
  // The program is one regex, and its state leads to acceptance without a doubt.
  bool SurelyLive(StateId state) const;
  // The same where all atoms are to be true together: all but one regex are fulfilled for good, and
  // that one leads to acceptance without a doubt.
  bool SurelyLiveTogether(StateId state);
  // A state that can be reached from here, and from whatever state follows; kNoState when none is
  // known.
  StateId AlwaysAhead(StateId state);
  // The program is one regex, and whatever comes it can still be fulfilled.
  bool IsSearch(StateId state) const;
  // Whether the atom will be true (1) or false (0) of the string whatever follows; -1: that
  // depends. May say -1 where it does not.
  int Settled(StateId state, AtomId atom);
  // Nothing but one list of literals is in play.
  bool OnlyLiterals() const {
    return tries_.size() == 1 && regexes_.empty() && sources_.empty() && !counting_;
  }
  // Spans of a text are in play; nothing else is. Of the latter states are nodes of only_source().
  bool HasSources() const { return !sources_.empty(); }
  bool OnlySource() const {
    return sources_.size() == 1 && regexes_.empty() && tries_.empty() && !counting_;
  }
  SourceTrie& only_source() { return sources_[0].trie; }
  size_t source_count() const { return sources_.size(); }
  SourceTrie& source(size_t i) { return sources_[i].trie; }
  const SourceTrie& source(size_t i) const { return sources_[i].trie; }
  AtomId SourceAtom(size_t i) const { return sources_[i].atom; }
  uint32_t SourceNode(StateId state, size_t i = 0) const {
    return key(state)[regex_words_ + tries_.size() + i];
  }
  // Puts nodes of the sources, none where there are too few, and a count into the words of a state.
  void SetSources(uint32_t* words, const std::vector<uint32_t>& nodes, uint64_t count) const {
    for (size_t i = 0; i < sources_.size(); ++i)
      words[regex_words_ + tries_.size() + i] = i < nodes.size() ? nodes[i] : kNoNode;
    if (counting_) SetCount(words, std::min(count, count_cap_));
  }
  StateId AtSourceNode(uint32_t node) { return Intern(&node); }
  // kNoState: no span goes on so. REQUIRES: OnlySource().
  StateId AfterSource(StateId state, std::u32string_view text) {
    const uint32_t node = SourceNode(state);
    const uint32_t after = node == kNoNode ? kNoNode : only_source().After(node, text);
    return after == kNoNode ? kNoState : AtSourceNode(after);
  }
  // REQUIRES: HasSources(). The code points with which the first source goes on.
  std::vector<char32_t> SourceFollowing(StateId state) {
    const uint32_t node = key(state)[regex_words_ + tries_.size()];
    if (node == kNoNode) return {};
    return sources_[0].trie.Following(node);
  }
  // REQUIRES: OnlyLiterals(). Some literal goes on from here; the class that the shortest such
  // literal goes on with, -1 at its end.
  bool Begins(StateId state) const { return key(state)[0] != kNoNode; }
  int ClassTowardsShortest(StateId state) const {
    const std::vector<TrieNode>& nodes = tries_[0].nodes;
    const uint32_t child = nodes[key(state)[0]].nearest;
    return child == 0 ? -1 : ClassOf(nodes[child].character);
  }
  // A guess at how many more characters an accepted string needs at least, given that what each
  // regex and each list of literals needs can be read at once (or, with `apart`, only one behind
  // the other); guides searches.
  uint32_t Distance(StateId state, bool apart = false) const;
  // Steps of the regexes' arena so far.
  uint64_t work() const { return table_.regexes->work(); }
  SearchSpending& spending() const { return *table_.spending; }
  // Which states of the regexes were met.
  using Met = std::vector<std::vector<bool>>;
  // The steps of the arena that the steps from this state took, of the regexes' states that are
  // not in `met` yet. REQUIRES: all steps from the state have been taken.
  uint64_t FreshWork(StateId state, Met& met) const;
  // What a step from a state costs, in about 10 ns.
  int64_t StepCost() const {
    return static_cast<int64_t>(4 + regexes_.size() + tries_.size() + (counting_ ? 1 : 0)) / 4;
  }
  // Only the counter still looks at what follows: every class leads to the same state, so questions
  // about the future are arithmetic.
  bool Quiet(StateId state);
  uint64_t Count(StateId state) const { return counting_ ? CountOf(key(state)) : 0; }
  // Counts at which the truth of a length atom changes, sorted.
  const std::vector<uint64_t>& critical_counts() const { return critical_; }
  bool counting() const { return counting_; }
  // The state with another count. REQUIRES: counting().
  StateId AtCount(StateId state, uint64_t count);
  // A regex needed more states or work than the limits allow, and answered "dead" where it could
  // not go on.
  bool overflow() const;
  size_t size() const { return keys_.size() / width_; }
  // With the automata of the regexes, whose arena is the table's.
  size_t MemoryBytes() const {
    return HeapBytes(atoms_, regexes_, groups_, searches_, tries_, slots_, slot_by_atom_, critical_,
                     sources_, boundaries_, pages_, interval_class_, representative_, class_slots_,
                     class_of_ascii_, classes_of_, classes_apart_, keys_, rows_, next_, quiet_,
                     index_, after_, peeked_, never_settled_);
  }
  // What the states take, roughly.
  size_t bytes() const {
    size_t groups = 0;
    for (const RegexGroup& group : groups_) groups += group.bytes();
    return size() * (width_ * 4 + 64) + next_.size() * sizeof(StateId) + groups;
  }

  // A state that is only looked at: what Next would give, without keeping it. The atoms' truth is
  // all that may be asked of it, until the next call of Peek; kPeeked, or the state itself where it
  // is there already.
  static constexpr StateId kPeeked = kNoState - 8;
  StateId Peek(StateId state, int cls);
  // The same over keys, the words of a state, for who walks far and keeps no states: width() words
  // of a state; a step (`after` may not be `words`); whether nothing but the counter still looks at
  // what follows; the state, kept or only looked at.
  size_t width() const { return width_; }
  void CopyKey(StateId state, uint32_t* to) const { std::copy_n(key(state), width_, to); }
  void StepKey(const uint32_t* words, int cls, uint32_t* after) { Step(words, cls, after); }
  bool QuietKey(const uint32_t* words);
  // The classes of which a step may settle something: the bits that SlotOfClass names.
  RegexGroup::ClassBits SettlingKey(const uint32_t* words);
  uint8_t SlotOfClass(int cls) const { return class_slots_[static_cast<size_t>(cls)]; }
  StateId KeepKey(const uint32_t* words) { return Intern(words); }
  // Regex by regex, as settling_tokens.h asks: how many there are; the state of one in a key, a
  // step from a state, whether it is settled (see Settled), and a key in which it is.
  size_t regexes() const { return regexes_.size(); }
  uint32_t RegexState(const uint32_t* words, size_t regex) const {
    if (groups_.empty()) return words[regex];
    return groups_[regex / limits::kRegexesInGroup].StateOf(words[regex / limits::kRegexesInGroup],
                                                            regex % limits::kRegexesInGroup);
  }
  uint32_t StepRegex(size_t regex, uint32_t state, int cls) {
    const Regex& one = regexes_[regex];
    if (state == RegexDfa::kDead) return state;
    return one.dfa->Next(state, one.class_map[static_cast<size_t>(cls)]);
  }
  int SettledRegex(size_t regex, uint32_t state) {
    RegexDfa& dfa = *regexes_[regex].dfa;
    if (!dfa.Absorbing(state)) return -1;
    return state != RegexDfa::kDead && dfa.Accepting(state) ? 1 : 0;
  }
  void SettleRegex(uint32_t* words, size_t regex, bool truth);
  // No literals and no counter look at what follows the state with these words.
  bool OnlyRegexesLeft(const uint32_t* words) const;
  // Some regex is never settled, whatever characters with a class (class_trie.h) come. May say
  // false where that is so.
  bool NeverSettled(const uint32_t* words);
  // kNoState: not kept.
  StateId FindKey(const uint32_t* words) const { return FindKey(words, HashOf(words)); }
  StateId PeekKey(const uint32_t* words) {
    std::copy_n(words, width_, peeked_.data());
    return kPeeked;
  }

  // For those who look at the regexes one by one: the state of each and what is left of it.
  size_t RegexCount() const { return regexes_.size(); }
  uint32_t RegexStateOf(StateId state, size_t regex) const { return RegexState(key(state), regex); }
  ReId RegexTerm(StateId state, size_t regex) const {
    return regexes_[regex].dfa->Term(RegexStateOf(state, regex));
  }
  // A regex of `.*r` goes on wherever it began: what it accepts from its start, it accepts from
  // each of its states. `words` with those regexes at their start that have not found their r yet.
  // What is accepted from there, is accepted from `words`.
  bool Restarts() const { return !searches_.empty(); }
  void Restart(uint32_t* words);
  // A regex or list of literals of these words has no end any more.
  bool AnyDead(const uint32_t* words) const;
  bool HasLiterals() const { return !tries_.empty(); }
  RegexArena& regex_arena() { return *table_.regexes; }

  // Several conditions side by side, whose states may be many.
  bool wide() const { return regexes_.size() + tries_.size() + sources_.size() > 1; }
  // The truth of all atoms, and which literals are there: states alike in that end alike.
  std::string Signature(StateId state) const;

 private:
  static constexpr StateId kUnknown = UINT32_MAX;
  static constexpr uint32_t kNoNode = UINT32_MAX;
  struct Regex {
    AtomId atom;
    std::unique_ptr<RegexDfa> dfa;
    std::vector<int> class_map;  // our class -> its class
    size_t MemoryBytes() const { return HeapBytes(dfa, class_map); }
  };
  struct Trie {
    AtomId atom;
    std::vector<TrieNode> nodes;
    size_t MemoryBytes() const { return HeapBytes(nodes); }
  };
  struct Source {
    AtomId atom;
    SourceTrie trie;
    size_t MemoryBytes() const { return HeapBytes(trie); }
  };
  static_assert(SourceTrie::kNone == kNoNode);
  // Words behind those of the regexes that are kNoNode once nothing more is looked at.
  size_t node_words() const { return tries_.size() + sources_.size(); }
  bool NodesLeft(const uint32_t* words) const {
    return !std::all_of(words + regex_words_, words + regex_words_ + node_words(),
                        [](uint32_t node) { return node == kNoNode; });
  }
  size_t Interval(char32_t c) const;
  void BuildClasses();
  StateId ComputeNext(StateId state, int cls);
  // The place of the atom's regex, list of literals or source in a key; kNoSlot for others.
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  uint32_t SlotOf(AtomId atom) const {
    if (!slot_by_atom_.empty()) {
      const size_t at = atom - atoms_.front();
      return at < slot_by_atom_.size() ? slot_by_atom_[at] : kNoSlot;
    }
    const auto it = std::lower_bound(atoms_.begin(), atoms_.end(), atom);
    if (it == atoms_.end() || *it != atom) return kNoSlot;
    return slots_[static_cast<size_t>(it - atoms_.begin())];
  }
  void FindSlots();
  template <typename List>
  static size_t PlaceOf(const List& list, AtomId atom) {
    const auto it = std::lower_bound(list.begin(), list.end(), atom,
                                     [](const auto& entry, AtomId a) { return entry.atom < a; });
    return it != list.end() && it->atom == atom ? static_cast<size_t>(it - list.begin())
                                                : list.size();
  }
  uint64_t HashOf(const uint32_t* words) const;
  StateId FindKey(const uint32_t* words, uint64_t hash) const {
    return index_.Find(
        hash, [&](StateId state) { return std::equal(words, words + width_, key(state)); });
  }
  StateId Intern(const uint32_t* words);
  void Step(const uint32_t* from, int cls, uint32_t* after);
  const uint32_t* key(StateId state) const {
    return state == kPeeked ? peeked_.data() : &keys_[static_cast<size_t>(state) * width_];
  }
  // The last two words, the lower half first.
  uint64_t CountOf(const uint32_t* state_key) const {
    return state_key[width_ - 2] | uint64_t{state_key[width_ - 1]} << 32;
  }
  void SetCount(uint32_t* state_key, uint64_t count) const {
    state_key[width_ - 2] = static_cast<uint32_t>(count);
    state_key[width_ - 1] = static_cast<uint32_t>(count >> 32);
  }
  const StringAtom& atom(AtomId id) const { return table_.string(id); }

  const SchemaTable& table_;
  std::vector<AtomId> atoms_;
  std::vector<Regex> regexes_;      // both by atom
  std::vector<RegexGroup> groups_;  // of many regexes
  std::vector<uint32_t> searches_;  // places of the regexes that Restart is about
  size_t regex_words_ = 0;          // words of a key for the groups, or else for the regexes
  std::vector<Trie> tries_;
  std::vector<Source> sources_;
  std::vector<uint32_t> slots_, slot_by_atom_;  // of atoms_; from atoms_.front() on
  bool counting_ = false;
  uint64_t count_cap_ = 0;
  std::vector<uint64_t> critical_;
  // Words of a state's key: regexes or groups of them, tries, sources, two for the count; at
  // least 1.
  size_t width_ = 1;

  int class_count_ = 1;
  std::vector<char32_t> boundaries_;
  std::vector<uint32_t> pages_;  // intervals of 0, 256, 512 ... 0x10000; empty where they are few
  std::vector<uint32_t> interval_class_;
  std::vector<char32_t> representative_;
  int ascii_class_[128];
  uint8_t ascii_place_[128];
  static constexpr uint8_t kBeyondSlot = 127, kApartSlot = 126;
  std::vector<uint8_t> class_slots_;  // by class; none where they are too many
  std::vector<int> class_of_ascii_;
  std::array<std::vector<int>, kCharClasses> classes_of_;
  std::vector<int> classes_apart_;  // of code points beyond ASCII, what classes_of_ does not hold

  std::vector<uint32_t> keys_;
  // Most states of a mask are left again at once, so rows of next states are made when asked for.
  static constexpr uint32_t kNoRow = UINT32_MAX;
  std::vector<uint32_t> rows_;  // by state: its row in next_
  std::vector<StateId> next_;
  std::vector<int8_t> quiet_;                         // by state, -1 unknown
  HashIndex index_;                                   // of keys_
  std::vector<uint32_t> after_, peeked_;              // keys being made
  std::unordered_map<uint64_t, bool> never_settled_;  // by regex and state
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_STRING_PROGRAM_H_
