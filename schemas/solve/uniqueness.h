// Uniqueness: what uniqueItems asks of the items of an array, and whether enough different values
// are left.
//
// The values that a place can hold are endless, or few enough to be listed, or neither. Of endless
// ones there is always one more, so only those have to be kept apart beforehand that a text could
// run into: values of which some beginning has few continuations. Few ones are counted. With
// `contains` the values that match it and those that do not are two such sets. Where a set is
// neither, nothing is said here, and the solver looks for different values one by one.
#ifndef PAWL_SCHEMAS_SOLVE_UNIQUENESS_H_
#define PAWL_SCHEMAS_SOLVE_UNIQUENESS_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "schemas/frames/frames.h"
#include "schemas/frames/scalars.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// All values that fit a formula, where they can be listed: those of an enum, say.
struct FewValues {
  std::vector<uint32_t> items;  // as Frames::InternItem has them; sorted
  std::vector<std::string> texts;
  std::unordered_map<IdSets::Id, IdSets::Id> taken;  // those of a set that are among them
  // The same values by kind, with their items; the rest are arrays and objects.
  std::vector<std::pair<Decimal, uint32_t>> numbers;
  std::vector<std::pair<std::u32string, uint32_t>> strings;
  std::vector<std::pair<Kind, uint32_t>> literals;
  bool containers = false;
  bool bounded = false;  // numbers that no list of the schema holds
  // The texts are as the options have them written; members of constants may be in another order.
  bool as_written = true;
  std::unordered_map<IdSets::Id, FormulaId> left;  // those that are not in a set of items
  size_t MemoryBytes() const {
    return HeapBytes(items, texts, taken, numbers, strings, literals, left);
  }
};

class Solver;

class Uniqueness : public ItemRules {
 public:
  Uniqueness(Frames& frames, Scalars& scalars, const JsonSchemaOptions& options, Solver& solver)
      : frames_(frames),
        table_(frames.table()),
        scalars_(scalars),
        options_(options),
        solver_(solver) {}

  size_t MemoryBytes() const {
    return HeapBytes(different_, unions_, tight_, leaves_enough_, plentiful_, listed_) +
           countings_.size() * kCountingBytes;
  }
  size_t GrowthHint() const {
    return (different_.size() + plentiful_.size()) * 40 +
           (unions_.size() + tight_.size() + leaves_enough_.size()) * 64 + listed_.size() * 400 +
           countings_.size() * kCountingBytes;
  }

  // Demands on single items.
  FormulaId ItemDemand(const Frame& frame, uint64_t index, FormulaId demand) override;
  FormulaId LeavesEnough(const Frame& frame) override;
  FrameId Equivalent(FrameId frame) override;
  // "Different from all of these items."
  FormulaId DifferentFrom(IdSets::Id items);

  // The items matter, and it is not known how many different values are left: they have to be
  // tried.
  bool HasToTry(const Frame& frame);
  // Whether the array can be finished with at least `more` further items, of which the next one
  // matches `contains` or does not. nullopt where the values are not counted.
  std::optional<bool> CanFinish(const Frame& frame, uint64_t more, std::optional<bool> next);
  // The same with no condition on the next: the items, joined by commas, if they are not too long.
  // REQUIRES: CanFinish says yes.
  std::optional<std::string> Finish(const Frame& frame, size_t max_size);
  // The same where the items are known to fit as they are written if each of `samples`, read as
  // the next item, does: the others only differ from those in one value.
  struct Finished {
    std::string text;
    std::vector<std::string> samples;
  };
  std::optional<Finished> FinishAsWritten(const Frame& frame, size_t max_size);
  // A value for the next item after which the array can be finished. nullopt where that has to be
  // looked for by another method.
  std::optional<std::string> NextItem(const Frame& frame);

  // Whether the values that fit have no end. "No" may be wrong.
  bool Unbounded(FormulaId formula);
  // Up to `count` short values that fit and are none of `items`.
  std::vector<std::string> NewValues(FormulaId formula, IdSets::Id items, size_t count);

 private:
  // A set of values that may come.
  struct Cell {
    FormulaId formula = kFalseFormula;
    bool endless = false;
    FewValues* few = nullptr;
    bool known() const { return formula == kFalseFormula || endless || few != nullptr; }
  };
  // Arrays all of whose further items have the same demands.
  struct Counting {
    bool counts = false;  // all that follows is known
    bool has_contains = false;
    AtomId contains_atom = 0;
    uint64_t min_items = 0, max_items = kUnbounded, prefix = 0;
    FormulaId demand = kTrueFormula;  // on each item
    Cell cells[2];                    // by whether they match `contains`; cell 1 only next to one
  };
  // How many items of each cell there may be, and how many together.
  struct Plan {
    uint64_t least[2] = {0, 0}, most[2] = {0, 0};
    uint64_t total_least = 0, total_most = kUnbounded;
    bool feasible() const;
  };
  // Values that must not come now, since later places have nothing else, where the atoms hold;
  // nullopt: those places are too many as it is.
  std::optional<std::vector<uint32_t>> NeededLater(const Frame& frame,
                                                   const std::vector<AtomId>& atoms);
  const Counting* CountingOf(const Frame& frame);
  Cell CellOf(FormulaId formula);
  // Those of `items` that are among the values.
  IdSets::Id Taken(FewValues& values, IdSets::Id items);
  uint64_t LeftIn(const Cell& cell, IdSets::Id items);
  Plan PlanOf(const Counting& counting, const Frame& frame, uint64_t more,
              std::optional<bool> next);
  // By cell.
  std::optional<std::array<std::vector<std::string>, 2>> ItemsFor(const Counting& counting,
                                                                  const Frame& frame);
  static std::optional<std::string> Joined(const std::array<std::vector<std::string>, 2>& items,
                                           size_t max_size);
  std::vector<std::string> Values(const Cell& cell, IdSets::Id items, size_t count);

  IdSets::Id Union(IdSets::Id a, IdSets::Id b);
  // Of all values that fit those that are none of the items; nullopt where they are not listed.
  std::optional<FormulaId> LeftOf(FormulaId demand, IdSets::Id items);
  // Whether some beginning of the value has so few continuations that fit the demand that ruling
  // out the value may leave none. kSoft: in odd spellings only. kCapped: only since canonical
  // numbers have few digits, which they do no longer once some number is ruled out.
  enum class Tightness : uint8_t { kNone, kSoft, kCapped, kHard };
  Tightness TightnessOf(FormulaId demand, const std::string& canonical);
  // The members of `items` that are tight under the demand; `outside`: values that do not fit it
  // may be among them.
  IdSets::Id Tight(FormulaId demand, IdSets::Id items, bool outside = false);

  bool PlentifulScalars(FormulaId formula);
  bool GrowsFreely(FormulaId number, const std::string& text);
  bool HasNumber(IdSets::Id items) const;
  // A place in the values of a kind that can hold anything of an endless set, whatever else is
  // asked.
  struct FreePlace {
    FormulaId demand;
    std::string name;  // of a member; arrays: the first item
  };
  std::optional<FreePlace> FreePlaceOf(FormulaId formula, Kind kind, bool& final);
  std::optional<FreePlace> FreeMemberOf(FormulaId formula, const Cube& cube);
  std::optional<FreePlace> FreeItemOf(const Cube& cube);
  // "This value stands in the place."
  FormulaId WithValueAt(Kind kind, const FreePlace& place, const std::string& text);
  // The first values that fit, as texts and as items: at least `wanted`, if they are found.
  struct Listed {
    size_t wanted = 0;
    std::vector<std::pair<std::string, uint32_t>> values;
    size_t MemoryBytes() const { return HeapBytes(values); }
  };
  static constexpr size_t kCountingBytes = 512;  // of a Counting, about
  const Listed& ValuesOf(FormulaId formula, size_t wanted);

  Frames& frames_;
  SchemaTable& table_;
  Scalars& scalars_;
  const JsonSchemaOptions& options_;
  Solver& solver_;
  std::unordered_map<FormulaId, Counting> countings_;  // by the frame's `must`
  std::unordered_map<IdSets::Id, FormulaId> different_;
  std::map<std::pair<IdSets::Id, IdSets::Id>, IdSets::Id> unions_;
  std::map<std::pair<FormulaId, IdSets::Id>, IdSets::Id> tight_;
  std::map<std::tuple<FormulaId, IdSets::Id, uint64_t>, FormulaId> leaves_enough_;
  std::unordered_map<FormulaId, bool> plentiful_;
  std::unordered_map<FormulaId, Listed> listed_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SOLVE_UNIQUENESS_H_
