// Uniqueness is one more demand on each item: to differ from those before it. What is kept apart
// beforehand is what look-ahead could run into; the byte that would complete any other duplicate is
// refused when it comes. A value all of whose beginnings have endless other continuations, among
// those with the same outcome of `contains`, never traps anybody.
#include "schemas/solve/uniqueness.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/solve/distinct.h"
#include "schemas/solve/solver.h"
#include "src/base/utf8.h"

namespace pawl::schema {

FormulaId Uniqueness::ItemDemand(const Frame& frame, uint64_t index, FormulaId demand) {
  IdSets::Id apart = frame.items;
  if (const Counting* counting = CountingOf(frame); counting != nullptr && counting->has_contains) {
    if (const auto left = LeftOf(counting->demand, frame.items)) return *left;
    apart = Tight(counting->demand, frame.items);
    for (const Cell& cell : counting->cells) {
      if (cell.formula != kFalseFormula)
        apart = Union(apart, Tight(cell.formula, frame.items, true));
    }
  } else if (frames_.PlainUnique(frame)) {
    FormulaId all = demand;
    for (const AtomId other : table_.formulas.MustAtoms(frame.must)) {
      const ArrayAtom& o = table_.array(other);
      all = table_.formulas.And(all, index < o.prefix.size() ? o.prefix[index] : o.items);
    }
    if (const auto left = LeftOf(all, frame.items)) return *left;
    apart = Tight(all, frame.items);
  }
  return table_.formulas.And(demand, DifferentFrom(apart));
}

// Of endless values no item matters, so look-ahead sees the same array whatever they are.
FrameId Uniqueness::Equivalent(FrameId id) {
  const Frame& frame = frames_[id];
  if (frame.items == IdSets::kEmpty) return id;
  const Counting* const counting = CountingOf(frame);
  if (counting == nullptr || !counting->has_contains) return id;
  IdSets::Id kept = IdSets::kEmpty;
  for (const Cell& cell : counting->cells) {
    if (cell.few != nullptr) kept = Union(kept, Taken(*cell.few, frame.items));
  }
  if (kept == frame.items) return id;
  Frame alike = frame;
  alike.items = kept;
  return frames_.Intern(std::move(alike));
}

IdSets::Id Uniqueness::Union(IdSets::Id a, IdSets::Id b) {
  if (a == IdSets::kEmpty || a == b) return b;
  if (b == IdSets::kEmpty) return a;
  const auto [it, fresh] = unions_.try_emplace(std::pair(a, b), a);
  if (fresh) {
    for (const uint32_t item : frames_.items().Members(b))
      it->second = frames_.items().With(it->second, item);
  }
  return it->second;
}

FormulaId Uniqueness::DifferentFrom(IdSets::Id items) {
  const auto it = different_.find(items);
  if (it != different_.end()) return it->second;
  std::vector<json::Value> values;
  for (const uint32_t item : frames_.items().Members(items)) {
    // Numbers beyond the limits are not kept apart beforehand, only refused at their end.
    auto value = json::Parse(frames_.ItemText(item), {.max_depth = 1 << 20});
    if (value.ok()) values.push_back(*std::move(value));
  }
  std::vector<const json::Value*> pointers;
  pointers.reserve(values.size());
  for (const json::Value& value : values) pointers.push_back(&value);
  auto same = EnumFormula(table_, pointers);
  if (!same.ok()) {
    std::erase_if(pointers,
                  [&](const json::Value* v) { return !ConstantFormula(table_, *v).ok(); });
    same = EnumFormula(table_, pointers);
  }
  const FormulaId formula = same.ok() ? table_.formulas.Not(*same) : kTrueFormula;
  different_.emplace(items, formula);
  return formula;
}

IdSets::Id Uniqueness::Tight(FormulaId demand, IdSets::Id items, bool outside) {
  const auto with = [&](IdSets::Id out, uint32_t item) {
    const std::string& text = frames_.ItemText(item);
    if (outside) {
      const auto value = json::Parse(text, {.max_depth = 1 << 20});
      if (value.ok() && solver_.Holds(demand, *value) == 0) return out;
    }
    const Tightness tight = TightnessOf(demand, text);
    const bool keep =
        tight == Tightness::kHard || (tight == Tightness::kCapped && !HasNumber(out)) ||
        (tight == Tightness::kSoft && frames_.items().Size(out) < limits::kKeptApartBeforehand);
    return keep ? frames_.items().With(out, item) : out;
  };
  return frames_.items().Fold(tight_, items, IdSets::kEmpty, with, demand);
}

bool Uniqueness::HasNumber(IdSets::Id items) const {
  for (; items != IdSets::kEmpty; items = frames_.items().Before(items)) {
    const char first = frames_.ItemText(frames_.items().Last(items))[0];
    if (first == '-' || (first >= '0' && first <= '9')) return true;
  }
  return false;
}

Uniqueness::Tightness Uniqueness::TightnessOf(FormulaId formula, const std::string& canonical) {
  const auto value = json::Parse(canonical);
  if (!value.ok()) return Tightness::kHard;
  FormulaArena& formulas = table_.formulas;
  const Goal goal{formula, {}, kNoFrame};
  if (value->type == json::Type::kString) {
    if (formulas.ForKind(formula, kStringValue) == kFalseFormula) return Tightness::kNone;
    StringSearch& search = scalars_.String(goal);
    const auto state = search.LiveAfter(DecodeCodepoints(value->text));
    return state && !Endless(search, *state) ? Tightness::kHard : Tightness::kNone;
  }
  if (value->type == json::Type::kArray || value->type == json::Type::kObject) {
    // Of its kind: next to endless numbers there may be one object.
    const Kind kind = value->type == json::Type::kArray ? kArrayValue : kObjectValue;
    const FewValues* const few =
        solver_.FewValuesOf(formulas.And(formula, formulas.Kinds(KindBit(kind))));
    return few != nullptr && few->items.size() <= limits::kKeptApart ? Tightness::kHard
                                                                     : Tightness::kSoft;
  }
  if (value->type != json::Type::kNumber) return Tightness::kHard;
  const FormulaId number = formulas.ForKind(formula, kNumberValue);
  if (number == kFalseFormula) return Tightness::kNone;
  NumberProgram* program = scalars_.Number(goal);
  if (program == nullptr || canonical == "0") return Tightness::kHard;
  const bool grows = GrowsFreely(number, canonical);
  const NumberProgram::StateId state = program->After(canonical);
  if (state == 0) return grows ? Tightness::kCapped : Tightness::kHard;
  // Where a condition forbids fractions, spellings such as "5." or "50e-" lead to the one value.
  const bool one_spelling =
      number == kTrueFormula || (options_.canonical_spelling && !options_.allow_exponents);
  if (!(grows && !one_spelling) && !Endless(*program, state, canonical, one_spelling))
    return grows ? Tightness::kCapped : Tightness::kHard;
  return one_spelling ? Tightness::kNone : Tightness::kSoft;
}

std::optional<FormulaId> Uniqueness::LeftOf(FormulaId demand, IdSets::Id items) {
  FewValues* const values = solver_.FewValuesOf(demand);
  if (values == nullptr) return std::nullopt;
  const auto [it, fresh] = values->left.try_emplace(items, kFalseFormula);
  if (!fresh) return it->second;
  FormulaArena& formulas = table_.formulas;
  const auto left = [&](const auto& pair) { return !frames_.items().Contains(items, pair.second); };
  std::vector<FormulaId> parts;
  KindSet kinds = 0;
  for (const auto& pair : values->literals) kinds |= left(pair) ? KindBit(pair.first) : 0;
  if (kinds != 0) parts.push_back(formulas.Kinds(kinds));
  std::vector<Decimal> numbers;
  for (const auto& pair : values->numbers) {
    if (left(pair)) numbers.push_back(pair.first);
  }
  if (!numbers.empty()) {
    FormulaId number = kTrueFormula;
    if (!values->bounded) {
      number = table_.AddList(std::move(numbers));
    } else {
      // A list of the schema has one spelling for each; where bounds say what fits, "-0" is
      // another.
      std::vector<Decimal> gone;
      for (const auto& pair : values->numbers) {
        if (!left(pair)) gone.push_back(pair.first);
      }
      number = formulas.And(demand, formulas.Not(table_.AddList(std::move(gone))));
    }
    parts.push_back(formulas.And(formulas.Kinds(KindBit(kNumberValue)), number));
  }
  std::vector<std::u32string> strings;
  for (const auto& pair : values->strings) {
    if (left(pair)) strings.push_back(pair.first);
  }
  if (!strings.empty()) {
    parts.push_back(
        formulas.And(formulas.Kinds(KindBit(kStringValue)), table_.AddList(std::move(strings))));
  }
  if (values->containers) {
    IdSets::Id apart = IdSets::kEmpty;
    for (const uint32_t item : frames_.items().Members(items)) {
      const char first = frames_.ItemText(item)[0];
      if ((first == '[' || first == '{') && std::ranges::binary_search(values->items, item))
        apart = frames_.items().With(apart, item);
    }
    const FormulaId container = formulas.Kinds(KindBit(kArrayValue) | KindBit(kObjectValue));
    parts.push_back(formulas.And({demand, container, DifferentFrom(Tight(demand, apart))}));
  }
  return values->left[items] = formulas.Or(parts);
}

// Values that later places need. Under uniqueItems a value may be right for its own place and still
// leave nothing for another: after ["x" no array of [x or y, x] can be finished. Which values those
// are is a matching problem: each later place that few values fit needs one of its own, and a value
// that every such assignment uses must not come before (P. Hall, 1935; the assignments are found by
// augmenting paths, as H. W. Kuhn's are). Places with endless values always find another one.

namespace {

// Gives each place a value of its own.
class Assignment {
 public:
  // `places`: the values that fit each, sorted. False: they are too few.
  explicit Assignment(std::vector<std::vector<uint32_t>> places) : places_(std::move(places)) {}

  bool Complete() {
    for (size_t place = 0; place < places_.size(); ++place) {
      seen_.clear();
      if (!Place(place, std::nullopt)) return false;
    }
    return true;
  }

  // The values without which there is no assignment. REQUIRES: Complete() said yes.
  std::vector<uint32_t> Needed() {
    std::vector<uint32_t> out;
    const std::map<uint32_t, size_t> found = place_of_;
    for (const auto& [value, place] : found) {
      place_of_ = found;
      place_of_.erase(value);
      seen_.clear();
      if (!Place(place, value)) out.push_back(value);
    }
    place_of_ = found;
    return out;
  }

 private:
  bool Place(size_t place, std::optional<uint32_t> banned) {
    for (const uint32_t value : places_[place]) {
      if (value == banned || std::ranges::find(seen_, value) != seen_.end()) continue;
      seen_.push_back(value);
      const auto taken = place_of_.find(value);
      if (taken == place_of_.end() || Place(taken->second, banned)) {
        place_of_[value] = place;
        return true;
      }
    }
    return false;
  }

  const std::vector<std::vector<uint32_t>> places_;
  std::map<uint32_t, size_t> place_of_;
  std::vector<uint32_t> seen_;  // values tried for one place
};

}  // namespace

std::optional<std::vector<uint32_t>> Uniqueness::NeededLater(const Frame& frame,
                                                             const std::vector<AtomId>& atoms) {
  bool unique = false;
  uint64_t prefix = 0, count = frame.count;
  for (const AtomId atom : atoms) {
    const ArrayAtom& array = table_.array(atom);
    unique = unique || array.unique;
    prefix = std::max<uint64_t>(prefix, array.prefix.size());
    count = std::max(count, array.min_items);
  }
  // Beyond the prefix all places are alike, and are counted.
  if (!unique || frame.count >= prefix) return std::vector<uint32_t>{};
  std::vector<std::vector<uint32_t>> places;
  for (uint64_t place = frame.count + 1;
       place < count && place <= frame.count + limits::kPlannedApart; ++place) {
    FormulaId demand = kTrueFormula;
    for (const AtomId atom : atoms)
      demand = table_.formulas.And(demand, frames_.AnyItemDemand(atom, place));
    const FewValues* const few = solver_.FewValuesOf(demand);
    if (few == nullptr || few->items.size() > limits::kPlannedApart) continue;
    std::vector<uint32_t>& left = places.emplace_back();
    for (const uint32_t item : few->items) {
      if (!frames_.items().Contains(frame.items, item)) left.push_back(item);
    }
  }
  Assignment assignment(std::move(places));
  if (!assignment.Complete()) return std::nullopt;
  return assignment.Needed();
}

FormulaId Uniqueness::LeavesEnough(const Frame& frame) {
  bool unique = false, ordered = false;
  for (const AtomId atom : frames_.Atoms(frame)) {
    unique = unique || table_.array(atom).unique;
    ordered = ordered || table_.array(atom).prefix.size() > frame.count;
  }
  if (!unique || !ordered) return kTrueFormula;
  const std::tuple key{frame.must, frame.items, frame.count};
  if (const auto known = leaves_enough_.find(key); known != leaves_enough_.end())
    return known->second;
  bool complete = true, possible = false;
  const auto cubes = table_.formulas.Cubes(frame.must, limits::kComparedContains, complete);
  std::optional<std::vector<uint32_t>> needed;  // in each way to fit
  for (const Cube& cube : cubes) {
    const auto here = NeededLater(frame, cube.positive);
    if (!here) continue;
    possible = true;
    if (needed) {
      std::erase_if(*needed, [&](uint32_t v) { return !std::ranges::binary_search(*here, v); });
    } else {
      needed = here;
    }
  }
  FormulaId formula = kTrueFormula;
  if (complete && !possible) {
    formula = kFalseFormula;
  } else if (complete && !needed->empty()) {
    IdSets::Id apart = IdSets::kEmpty;
    for (const uint32_t value : *needed) apart = frames_.items().With(apart, value);
    formula = DifferentFrom(apart);
  }
  leaves_enough_.emplace(key, formula);
  return formula;
}

}  // namespace pawl::schema
