// Solver: can it still be completed, and how? The look-ahead behind "no dead ends" and
// completion_length.
//
// Satisfiability of a formula and of what is left of a frame, each with a witness text. Answers are
// memoised by id, so equal positions of a schema are decided once. "No" is a proof; "yes" comes
// with a construction; where neither is found within the fuel (some combinations of not/oneOf over
// containers) the answer is unknown, and the position counts as live: the byte that would break the
// schema is refused when it comes, since frames decide exactly at the end.
#ifndef PAWL_SCHEMAS_SOLVE_SOLVER_H_
#define PAWL_SCHEMAS_SOLVE_SOLVER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "pawl/compiler.h"
#include "schemas/formula/value_classes.h"
#include "schemas/frames/frames.h"
#include "schemas/frames/scalars.h"
#include "schemas/limits.h"
#include "schemas/solve/uniqueness.h"
#include "src/base/json.h"
#include "src/base/memory_size.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

// The keys that an object's schema does not name, sorted by what its conditions on keys say of
// them. Keys of one kind are alike to the schema, so trying one of them stands for all.
class KeyKinds {
 public:
  struct Kind {
    std::vector<bool> truth;        // of the atoms of the layout's program
    StringProgram::StateId state;   // of that program, after a key of this kind
    std::vector<std::string> keys;  // shortest first
    std::vector<NameId> names;      // of keys
    bool all = false;               // there are no others
    size_t MemoryBytes() const { return HeapBytes(truth, keys, names); }
  };

  // nullptr where the kinds are too many to be told, or the conditions too large to be sure.
  static std::unique_ptr<KeyKinds> Of(Frames& frames, const ObjectLayout& layout, int64_t fuel);

  const std::vector<Kind>& kinds() const { return kinds_; }
  // A key that stands for the ones that end in `state` of `program`, which has the atoms of the
  // layout's: the first of its kind that the frame has not seen. kAnyName where they are many, so
  // that none takes the place of another.
  NameId StandIn(const Frames& frames, const Frame& frame, const ObjectLayout& layout,
                 const StringProgram& program, StringProgram::StateId state) const;
  size_t MemoryBytes() const { return HeapBytes(kinds_); }

 private:
  std::vector<Kind> kinds_;
};

enum class Answer : uint8_t { kNo, kUnknown, kYes };

struct Found {
  Answer answer = Answer::kNo;
  // Witness text when answer is kYes and the text is not too long: a JSON value; for a frame the
  // missing members or items joined by ',' (without the closing bracket).
  std::optional<std::string> text;
  size_t MemoryBytes() const { return HeapBytes(text); }

  // Keeps the better of two answers: yes before unknown before no, the shorter text of two yeses.
  void Improve(Found candidate);
};
inline const Found kNothing{Answer::kNo, std::nullopt};
inline const Found kOpen{Answer::kUnknown, std::nullopt};

// Keys of an object about which a branch has decided (solver.cc), by their rank: those
// that come, with what is demanded of their values, and those that do not.
struct SettledKeys {
  std::map<int, FormulaId> members;
  std::set<int> absent;
  size_t MemoryBytes() const { return HeapBytes(members, absent); }
  size_t size() const { return members.size() + absent.size(); }
  bool Knows(size_t rank) const {
    return members.contains(static_cast<int>(rank)) || absent.contains(static_cast<int>(rank));
  }
};

class Solver {
 public:
  Solver(Frames& frames, const JsonSchemaOptions& options);

  // Is there a value that makes the formula true? Its text is looked for only when it is wanted:
  // most questions are about whether something is possible, and finding an example is dearer.
  const Found& Value(FormulaId formula, bool want_text = false);
  // Can this container (nothing pending) be completed so that its goal is met?
  Answer Container(FrameId frame);
  bool Live(FrameId frame) { return CountsAsLive(Container(frame)); }
  // Questions whose answer was not found, so that something counted as live without a proof.
  uint64_t undecided() const { return undecided_; }
  // Cubes and branches looked at so far.
  uint64_t steps() const { return steps_; }
  // Clauses looked at so far (formula/clauses.h).
  uint64_t clause_steps() const { return clause_steps_; }
  // The same with the text; not memoised, so that frames, of which there are many, do not each keep
  // one.
  Found ContainerText(FrameId frame);
  // The same where the items that are missing are numbers and strings without end, or values to be
  // counted: then the text is known to fit, and need not be read to be sure. nullopt elsewhere.
  std::optional<Uniqueness::Finished> CountedText(FrameId frame);
  // Is there a value for the pending place after which the frame is live?
  bool LivePending(FrameId frame);
  // A value for the pending place of the frame, after which it is live; nullopt when none is known.
  std::optional<std::string> PendingValue(FrameId frame);
  // Whether the frame can live with these outcomes of its pending tracks.
  bool AroundAccepts(FrameId frame, const std::vector<bool>& truth);
  // The container may end here.
  bool Closable(FrameId frame);
  // The name under which a frame gets a key that its schema does not name, of which `program` says
  // what it says in `state`. Keys that could take each other's place are told apart where more than
  // plain demands are in play.
  NameId StandIn(FrameId frame, const StringProgram& program, StringProgram::StateId state);

  // What uniqueness asks. A value that makes the formula true is known; `final`: the answer does
  // not rest on a question that is still open further up.
  bool HasValue(FormulaId formula, bool& final);
  // There is none, whatever is open further up.
  bool HasNoValue(FormulaId formula);
  // nullptr where the values cannot be listed (solver_few.cc).
  FewValues* FewValuesOf(FormulaId formula);
  // 1, 0, or -1 where that cannot be said.
  int Holds(FormulaId formula, const json::Value& value);

  Scalars& scalars() { return scalars_; }
  Frames& frames() { return frames_; }

  size_t MemoryBytes() const {
    return HeapBytes(scalars_, values_, containers_, named_demands_, required_in_, spare_in_,
                     cubes_, lists_, unique_, few_, pending_, solving_, kinds_) +
           classes_.size() * kClassesBytes;
  }
  size_t GrowthHint() const {
    return scalars_.GrowthHint() + values_.size() * 100 + containers_.size() * 40 +
           pending_.size() * 40 + (required_in_.size() + spare_in_.size()) * 64 + spare_keys_ * 64 +
           cubes_.size() * 200 + unique_.GrowthHint() + few_.size() * 1000;
  }

 private:
  static constexpr size_t kClassesBytes = 1024;  // of a ValueClasses, about
  struct Cubes {
    std::vector<Cube> cubes;
    bool complete;
    size_t MemoryBytes() const { return HeapBytes(cubes); }
  };
  // Keys that the schema does not name, for members that no keyword requires.
  struct SpareKey {
    std::string name;
    NameId id;
    StringProgram::StateId state;
    size_t MemoryBytes() const { return HeapBytes(name); }
  };
  struct SpareKeys {
    std::vector<SpareKey> keys;
    bool all = false;                // there are no other keys
    std::vector<NameId> with_value;  // of so many as are wanted the ids, sorted
    uint32_t number = 0;             // of all lists
    size_t MemoryBytes() const { return HeapBytes(keys, with_value); }
  };
  bool CountsAsLive(Answer answer) {
    undecided_ += answer == Answer::kUnknown ? 1 : 0;
    return answer != Answer::kNo;
  }
  // One step; false when the fuel of the question is spent.
  bool Spend() {
    ++steps_;
    StopScope::Step();
    if (--fuel_ > 0 && !table_.spending->Stopped()) return true;
    lowest_reused_ = std::min(lowest_reused_, depth_ - 1);
    return false;
  }
  Found SolveValue(FormulaId formula);
  // `format`: see Scalars::FormatOf.
  Found SolveString(const Goal& goal, const std::string& format);
  Found SolveContainer(FrameId frame);
  Found GuardedContainer(FrameId frame, bool want_text, bool& self_contained);
  // Completing the frame so that the formula, which is over its atoms, is true.
  Found SolveFormula(const Frame& frame, FormulaId formula, const SettledKeys& settled);
  // By the values of a key, or else by cubes.
  Found SolveBranches(const Frame& frame, FormulaId formula, const SettledKeys& settled);
  Found SolveCubes(const Frame& frame, const Cubes& cubes, const SettledKeys& settled);
  Found SolveCube(const Frame& frame, const Cube& cube, const SettledKeys& settled);
  // Of a cube whose value is a known constant: false when another constant contradicts it; `rest`:
  // the cube without the constants that it differs from, when there are any.
  bool SettleConstants(Kind kind, const Cube& cube, std::optional<Cube>& rest) const;
  class ObjectPlan;
  Found SolveObject(const Frame& frame, const Cube& cube, const SettledKeys& settled);
  // The key may still come, as far as the order of keys has it.
  bool MayCome(const Frame& frame, size_t rank) const;
  // Branches on the value of one key (solver.cc). The key that settles the most conditions
  // which are still open; nullopt when there are fewer than `least` (at least 1).
  std::optional<size_t> KeyToSettle(const Frame& frame, FormulaId formula,
                                    const SettledKeys& settled, size_t least);
  Found SettleKey(const Frame& frame, FormulaId formula, const SettledKeys& settled, size_t rank);
  bool CannotFail(const Frame& frame, AtomId atom, const SettledKeys& settled, size_t rank);
  bool AsksForLists(FormulaId formula);
  // The values of all keys that decide many conditions, at once (solver_clauses.cc); nullopt where
  // neither a value nor a proof was found.
  class ClausePlan;
  bool HasManyClauses(const Frame& frame, FormulaId formula) const;
  // Where at least so many keys decide.
  std::optional<Found> SolveClauses(const Frame& frame, FormulaId formula, size_t least_keys);
  // The formula, in which atoms that nothing can break any more are true, and those that miss a key
  // which cannot come any more are false.
  FormulaId WithoutPast(const Frame& frame, FormulaId formula);
  // nullptr where the formulas ask for too much else; sorted formulas, so that equal questions are
  // one.
  std::shared_ptr<const ValueClasses> ClassesOf(const std::vector<FormulaId>& formulas);
  // How many keys of the set the atom requires.
  size_t RequiredIn(const ObjectLayout& layout, AtomId atom, IdSets::Id seen);
  // How many keys of the set are among those of the list that have a value.
  size_t SpareIn(const SpareKeys& spare, IdSets::Id seen);
  class ArrayPlan;
  class ValueList;
  Found SolveArray(const Frame& frame, const Cube& cube);
  std::unique_ptr<FewValues> ListValues(FormulaId formula);
  // All that fit, where they can be listed.
  std::optional<std::set<std::u32string>> AllStrings(StringSearch& search);
  // All that fit; false when they are too many.
  bool ListStrings(StringSearch& search, std::set<std::u32string>& out);
  bool ListNumbers(NumberProgram& program, std::set<std::string>& out);
  bool ListContainers(FrameId frame, const std::string& text, size_t rank,
                      std::vector<std::string>& out);
  template <typename Fn>
  bool EachValue(FrameId pending, const Fn& fn, const std::vector<bool>* wanted = nullptr);
  // Whether the frame can live with one of the values that may come (and have these outcomes); they
  // are told apart, which matters where items have to be unique under further conditions.
  std::optional<bool> LiveUnique(FrameId pending, const std::vector<bool>* wanted = nullptr);
  bool HasFewAtoms(FrameId frame);
  template <typename Fn>
  bool EachNext(FrameId frame, size_t rank, const Fn& fn);
  bool OtherKeysMayCome(FrameId object);
  // The same of objects, with one value for each of the ways in which a member can come out, and
  // one key of each kind that is not named. Places behind the named keys are kinds.
  template <typename Fn>
  bool EachMember(FrameId frame, size_t place, const Fn& fn);
  const KeyKinds* KindsOf(uint32_t layout);
  // The container by trying all that may come, where that is little.
  Found Few(FrameId frame);
  using Searched = std::map<std::pair<FrameId, size_t>, Answer>;
  Found SearchFew(FrameId frame, size_t rank, Searched& known);
  // Calls fn(outcomes, values) for the outcome vectors of the tracks worth trying, which are all of
  // them when they are few, until it returns true. `values`: a formula for what has these outcomes.
  // `complete`: there are no others.
  template <typename Fn>
  void TryVectors(const std::vector<FormulaId>& tracks, bool& complete, const Fn& fn);
  // The same for the pending value of a frame, with all that it has to be; answers `complete`.
  using OnOutcome =
      std::function<bool(const std::vector<bool>& truth, const std::function<FormulaId()>& value)>;
  bool EachOutcome(FrameId pending, const OnOutcome& fn);
  std::shared_ptr<const Cubes> CubesOf(FormulaId formula);
  FormulaId Outcomes(const std::vector<FormulaId>& tracks, const std::vector<bool>& truth);

  Frames& frames_;
  SchemaTable& table_;
  const JsonSchemaOptions& options_;
  Scalars scalars_;
  Uniqueness unique_;
  struct Known {
    Found found;
    bool with_text;
    size_t MemoryBytes() const { return HeapBytes(found); }
  };
  std::unordered_map<FormulaId, Known> values_;
  std::unordered_map<FrameId, Answer> containers_;
  // What the positive atoms of a cube demand of each named key, for a layout; filled as it is asked
  // for.
  struct NamedDemands {
    std::vector<FormulaId> by_rank;    // kUnset where not asked yet
    bool all_required = false;         // each required key is known to have a value
    std::optional<bool> endless_keys;  // there is no end of other keys
    // By how many keys are wanted, and how many names with a number were tried: both stay what they
    // are while members are added up to minProperties.
    std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const SpareKeys>> spare;
    size_t MemoryBytes() const { return HeapBytes(by_rank, spare); }
  };
  static constexpr FormulaId kUnset = UINT32_MAX;
  std::map<std::pair<uint32_t, std::vector<AtomId>>, NamedDemands> named_demands_;
  std::map<std::pair<AtomId, IdSets::Id>, size_t> required_in_;
  std::map<std::pair<uint32_t, IdSets::Id>, size_t> spare_in_;  // by number of the list
  uint32_t spare_lists_ = 0;
  size_t spare_keys_ = 0;  // of all lists so far
  std::unordered_map<FormulaId, std::shared_ptr<const Cubes>> cubes_;
  std::map<std::vector<FormulaId>, std::shared_ptr<const ValueClasses>> classes_;
  std::unordered_map<FormulaId, bool> lists_;
  std::unordered_map<FormulaId, std::unique_ptr<FewValues>> few_;
  std::unordered_map<uint32_t, std::unique_ptr<KeyKinds>> kinds_;  // by layout
  uint64_t undecided_ = 0, steps_ = 0, clause_steps_ = 0;
  int64_t clause_total_ = limits::kClauseStepsOfAll;  // that are left
  int few_depth_ = 0;
  bool few_as_written_ = true;  // of the values put together so far
  // Steps that are left: of one listing or search, of all listings, of all searches.
  int64_t few_steps_ = 0, few_total_ = limits::kListingStepsOfAll;
  int64_t search_total_ = limits::kTryingStepsOfAll;
  bool want_text_ = false;
  std::unordered_map<FrameId, bool> pending_;
  // Formulas being solved further up, with their depth: meeting one again is no proof of anything
  // but "not by this way", so answers that rest on it are not remembered above that depth.
  std::unordered_map<FormulaId, int> solving_;
  int depth_ = 0;
  int lowest_reused_ = INT32_MAX;
  int64_t fuel_ = 0;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SOLVE_SOLVER_H_
