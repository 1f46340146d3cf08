// RegexArena: regular expressions over Unicode characters, closed under and/or/not, as hash-consed
// terms.
//
//   RegexArena arena;
//   ReId word = arena.Repeat(arena.Set(letters), 1, std::nullopt);
//   ReId not_foo = arena.And(word, arena.Not(arena.Literal(U"foo")));
//   ReId after_f = arena.Derive(not_foo, U'f');     // what may follow an 'f'
//   bool done = arena.Nullable(after_f);            // may the text end here?
//
// Equal ids mean equal languages; the converse holds only as far as the simplifications reach.
//
// The alphabet is the Unicode scalar values: surrogates are never part of a text. Set() drops them
// and Derive() by one is kNothing.
//
// Thread safety: none; the caller locks. Ids are valid as long as the arena lives. Nothing throws;
// when a limit of RegexLimits is reached, overflow() becomes true and results since then mean
// nothing.
#ifndef PAWL_GRAMMAR_REGEX_REGEX_ARENA_H_
#define PAWL_GRAMMAR_REGEX_REGEX_ARENA_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/regex/codepoint_set.h"
#include "src/base/memory_size.h"

namespace pawl {

using ReId = uint32_t;

struct RegexLimits {
  // Terms an arena may hold (about 50 bytes each).
  uint32_t max_terms = 8u << 20;
  // Nested operators that Derive() and Close() follow; concatenation does not nest.
  int max_depth = 2000;
  // Steps (see RegexArena::work) that one derivative may take.
  uint64_t max_derive_work = 1u << 20;
};

class RegexArena {
 public:
  static constexpr ReId kNothing = 0;   // no string at all
  static constexpr ReId kEpsilon = 1;   // the empty string
  static constexpr ReId kAnything = 2;  // every string
  static constexpr ReId kAnyChar = 3;   // every string of one character
  static constexpr uint32_t kInfinite = std::numeric_limits<uint32_t>::max();

  explicit RegexArena(const RegexLimits& limits = {});
  RegexArena(const RegexArena&) = delete;
  RegexArena& operator=(const RegexArena&) = delete;

  // One character out of a set; surrogates are dropped.
  ReId Set(const CodepointSet& set);
  ReId Char(char32_t codepoint);
  ReId Literal(std::u32string_view text);
  // Build long concatenations from the right: O(1) then, O(length of the left side) otherwise.
  ReId Concat(ReId left, ReId right);
  ReId Concat(std::span<const ReId> parts);
  ReId Concat(std::initializer_list<ReId> parts) {
    return Concat(std::span<const ReId>(parts.begin(), parts.size()));
  }
  ReId Or(std::span<const ReId> alternatives);
  ReId Or(ReId a, ReId b);
  ReId And(std::span<const ReId> operands);
  ReId And(ReId a, ReId b);
  ReId Not(ReId id);
  // Between min and max times (nullopt: no upper limit). Kept as a counter, not unrolled. A max
  // below min gives kNothing.
  ReId Repeat(ReId id, uint32_t min, std::optional<uint32_t> max);
  ReId Optional(ReId id) { return Repeat(id, 0, 1); }
  ReId Star(ReId id) { return Repeat(id, 0, std::nullopt); }

  // The same term as `id` of another arena, as it stands there: nothing is simplified again.
  ReId Import(const RegexArena& other, ReId id);

  // The texts of `id` read from their ends to their beginnings. nullopt when the term holds
  // lookahead, which no term says backwards. Reverse(Reverse(id)) is id.
  std::optional<ReId> Reverse(ReId id);

  // For front ends with lookahead. Look(r) matches the empty string where the whole rest of the
  // text is in r; terms that hold one are open: what follows them in a concatenation is part of
  // that rest. Close() ends the rest at the end of the term. And, Not and Derive close their
  // operands.
  ReId Look(ReId rest);
  ReId Close(ReId id) { return Close(id, kEpsilon); }
  // Close(Concat(id, rest)) for a closed rest, in fewer steps.
  ReId Close(ReId id, ReId rest);
  bool IsOpen(ReId id) const { return (nodes_[id].flags & kOpen) != 0; }

  bool Nullable(ReId id) const { return (nodes_[id].flags & kNullable) != 0; }
  // The strings w with (codepoint w) in the language of id.
  // kNothing as well when a limit stopped it: derive_failed() then says so until the next call.
  ReId Derive(ReId id, char32_t codepoint);
  bool derive_failed() const { return derive_failed_; }
  // For lookbehind, whose body ends where it stands while its lookaheads see what follows: the
  // derivative of a term that stays open, and the rests of the text before which an open term
  // matches the empty string.
  ReId DeriveOpen(ReId id, char32_t codepoint);
  ReId RestAfter(ReId id);
  // Holds And, Not or lookahead anywhere.
  bool HasBoolean(ReId id) const { return (nodes_[id].flags & kBoolean) != 0; }
  // Whether the language may be empty, as far as a glance can tell: And, Not or lookahead stand
  // where no alternative does without.
  bool MayBeEmpty(ReId id) const { return id == kNothing || (nodes_[id].flags & kDoubtful) != 0; }
  // Whatever is read, some continuation of it is in the language (`then_anything`: whatever follows
  // that continuation), as far as a glance can tell: an alternative searches for what it needs.
  bool IsSearch(ReId id, bool then_anything) const;
  // The expression, or one of its alternatives, begins with a set of characters repeated without a
  // limit.
  bool BeginsWithLoop(ReId id) const;
  // Bounds on the number of characters of every string of the language (kInfinite: no bound known).
  uint32_t MinLength(ReId id) const { return nodes_[id].min_length; }
  uint32_t MaxLength(ReId id) const { return nodes_[id].max_length; }
  // A shortest string of the language, read off the structure in a time linear in its length.
  // nullopt for terms with And, Not or lookahead, for sets of surrogates alone, and where the
  // string has more than `most` characters.
  std::optional<std::u32string> ShortestText(ReId id, size_t most) const;
  // Two terms whose automata are small where counters, and conjunctions of long choices, make that
  // of `id` large (regex_outline.cc). The language of `wide` holds that of `id`. Of the strings of
  // `kernel`, those of no more than `length` characters are in the language of `id`. Most terms are
  // their own outline.
  struct Outline {
    ReId wide, kernel;
    uint32_t length;  // kInfinite: all of them
  };
  // REQUIRES: id is closed.
  Outline OutlineOf(ReId id);
  // The alternatives of a choice, or the term alone; a copy, since making terms moves them.
  std::vector<ReId> Alternatives(ReId id) const {
    if (kind(id) != Kind::kOr) return {id};
    return {operands(id).begin(), operands(id).end()};
  }
  // Calls fn with each of them. REQUIRES: fn makes no terms.
  template <typename Fn>
  void ForAlternatives(ReId id, const Fn& fn) const {
    if (kind(id) != Kind::kOr) return fn(id);
    for (const ReId each : operands(id)) fn(each);
  }
  // What follows kAnything at the head of a concatenation; kNothing for other terms.
  ReId AfterAnything(ReId id) const {
    return kind(id) == Kind::kConcat && node(id).a == kAnything ? node(id).b : ReId{kNothing};
  }
  // Every distinct character set in the term.
  std::vector<const CodepointSet*> Sets(ReId id) const;

  // A term taken apart, for printers: its operands are those of a whole concatenation or choice.
  struct View {
    enum class Op : uint8_t { kNothing, kEmpty, kSet, kConcat, kRepeat, kOr, kBoolean };
    Op op = Op::kNothing;
    const CodepointSet* set = nullptr;  // kSet
    std::vector<ReId> operands = {};    // kConcat, kOr; kRepeat: one
    uint32_t min = 0, max = 0;          // kRepeat; kInfinite: no limit
  };
  View Inspect(ReId id) const;

  // A term in a notation of its own, for tests and messages; cut at about `limit` bytes.
  std::string ToString(ReId id, size_t limit = 2000) const;

  size_t size() const { return nodes_.size(); }
  size_t MemoryBytes() const {
    return HeapBytes(nodes_, lists_, sets_, index_, chars_, derivatives_, closed_, empty_parts_,
                     non_empty_, reversed_, outlines_, leaves_);
  }
  // About that, in a few loads.
  size_t GrowthHint() const {
    return nodes_.size() * (sizeof(Node) + 8) + derivatives_.size() * 40 + lists_.size() * 4;
  }
  bool overflow() const { return overflow_; }
  // Steps done so far: a deterministic measure of time (a few ten nanoseconds each).
  uint64_t work() const { return work_; }
  // While a budget of so many steps stands, operations beyond it give up and answer kNothing; what
  // they answered since exhausted() must be thrown away, the arena stays good. Budgets nest.
  class WorkBudget {
   public:
    WorkBudget(RegexArena& arena, uint64_t steps);
    ~WorkBudget();
    WorkBudget(const WorkBudget&) = delete;
    WorkBudget& operator=(const WorkBudget&) = delete;
    bool exhausted() const { return arena_.stopped_; }

   private:
    RegexArena& arena_;
    const uint64_t outer_end_;
    const bool outer_stopped_;
  };
  const RegexLimits& limits() const { return limits_; }

 private:
  enum class Kind : uint8_t {
    kEmptySet,
    kEpsilon,
    kSet,
    kConcat,
    kRepeat,
    kOr,
    kAnd,
    kNot,
    kLook,
    kScope
  };
  enum Flags : uint8_t { kNullable = 1, kBoolean = 2, kOpen = 4, kDoubtful = 8 };

  struct Node {
    Kind kind;
    uint8_t flags;
    uint32_t a;    // kSet: index in sets_; kOr, kAnd: offset in lists_; else the (left) operand
    uint32_t b;    // kConcat: the right operand; kOr, kAnd: number of operands
    uint32_t min;  // kRepeat
    uint32_t max;  // kRepeat, kInfinite for none
    uint32_t min_length;
    uint32_t max_length;
  };
  struct Alternative;

  const Node& node(ReId id) const { return nodes_[id]; }
  Kind kind(ReId id) const { return nodes_[id].kind; }
  std::span<const ReId> operands(ReId id) const {
    return std::span<const ReId>(lists_).subspan(nodes_[id].a, nodes_[id].b);
  }
  // The choice of what `fn` makes of each.
  template <typename Fn>
  ReId OrOfEach(ReId id, const Fn& fn) {
    std::vector<ReId> parts = Alternatives(id);
    for (ReId& part : parts) part = fn(part);
    return Or(parts);
  }
  // The factors of a concatenation, or the term alone.
  std::vector<ReId> Factors(ReId id) const {
    std::vector<ReId> factors;
    for (; kind(id) == Kind::kConcat; id = node(id).b) factors.push_back(node(id).a);
    factors.push_back(id);
    return factors;
  }
  // What is left of a repetition after one iteration.
  ReId OnceLess(const Node& n) {
    return MakeRepeat(n.a, n.min == 0 ? 0 : n.min - 1, n.max == kInfinite ? kInfinite : n.max - 1);
  }
  // A concatenation's first factor and rest; (id, kEpsilon) for other terms.
  ReId Head(ReId id) const { return kind(id) == Kind::kConcat ? nodes_[id].a : id; }
  ReId Tail(ReId id) const { return kind(id) == Kind::kConcat ? nodes_[id].b : ReId{kEpsilon}; }

  // Whether the budget is exhausted; then results may be wrong and must not be remembered.
  bool Stopped() { return stopped_ = stopped_ || work_ > work_end_; }
  static uint64_t HashOf(const Node& term, std::span<const ReId> list, const CodepointSet* set);
  ReId Intern(const Node& node, std::span<const ReId> list, const CodepointSet* set);
  ReId MakeConcat(ReId head, ReId tail);
  ReId MakeRepeat(ReId id, uint32_t min, uint32_t max);
  ReId MakeList(Kind kind, std::span<const ReId> list);
  ReId MakeUnary(Kind kind, ReId id);
  ReId ConcatOne(ReId head, ReId tail);

  ReId OrOfDistinct(std::vector<ReId> alternatives, int depth);
  bool MergeRepeats(std::vector<ReId>& alternatives);
  bool FactorPrefixes(std::vector<ReId>& alternatives, int depth);
  bool MergeHeads(std::vector<ReId>& alternatives);
  void DropSubsumed(std::vector<ReId>& alternatives);
  ReId AndRepeatedSets(std::vector<ReId>& operands);

  ReId CloseWith(ReId id, ReId rest, int depth);
  ReId CloseOpen(ReId id, ReId rest, int depth);
  ReId DeriveAt(ReId id, char32_t codepoint, int depth);
  ReId DeriveOpenAt(ReId id, char32_t codepoint, int depth);
  ReId DeriveConditions(ReId id, char32_t codepoint);
  ReId EmptyPart(ReId id, int depth);
  ReId NonEmpty(ReId id, int depth);
  bool TooDeep(int depth);
  uint32_t Leaves(ReId id, int depth);
  Outline OutlineAt(ReId id, bool coarse, int depth);
  Outline OutlineOfAnd(ReId id, bool coarse, int depth);
  ReId CoarseSet(ReId id);

  RegexLimits limits_;
  std::vector<Node> nodes_;
  std::vector<ReId> lists_;
  std::vector<CodepointSet> sets_;
  HashIndex index_;  // of nodes_, but for kNothing and kEpsilon
  std::unordered_map<char32_t, ReId> chars_;
  FlatMap<ReId> derivatives_;
  FlatMap<ReId> closed_;
  std::unordered_map<ReId, ReId> empty_parts_;
  std::unordered_map<ReId, ReId> non_empty_;
  std::unordered_map<ReId, ReId> reversed_;
  std::array<std::unordered_map<ReId, Outline>, 2> outlines_;  // coarse ones behind the others
  std::unordered_map<ReId, uint32_t> leaves_;
  bool in_or_ = false;
  int64_t factor_fuel_ = 0;
  bool derive_failed_ = false;
  uint64_t work_end_ = std::numeric_limits<uint64_t>::max();  // the innermost budget's
  bool stopped_ = false;                                      // and whether it is exhausted
  bool overflow_ = false;
  uint64_t work_ = 0;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_REGEX_ARENA_H_
