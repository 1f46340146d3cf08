// Values that later places need. Under uniqueItems a value may be right for its own place and still
// leave nothing for another: after ["x" no array of [x or y, x] can be finished. Which values those
// are is a matching problem: each later place that few values fit needs one of its own, and a value
// that every such assignment uses must not come before (P. Hall, 1935; the assignments are found by
// augmenting paths, as H. W. Kuhn's are). Places with endless values always find another one.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "schemas/limits.h"
#include "schemas/unique/uniqueness.h"

namespace pawl::schema {
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
    const FewValues* const few = source_.FewValuesOf(demand);
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
