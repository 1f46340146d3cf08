// Completing an array for one cube: items up to minItems, more while `contains` is short of
// matches, each item strengthened by what is still wanted (a match of contains, a reason for a
// negative atom to fail, being different from the others).
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/solve/solver.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {
class Solver::ArrayPlan {
 public:
  ArrayPlan(Solver& solver, const Frame& frame, const Cube& cube)
      : solver_(solver),
        frames_(solver.frames_),
        table_(solver.table_),
        formulas_(solver.table_.formulas),
        frame_(frame),
        cube_(cube) {}

  Found Solve() {
    if (auto found = Demands()) return *std::move(found);
    for (const AtomId atom : cube_.negative) {
      if (!CanFail(atom)) return kNothing;
    }
    Prepare();
    for (uint64_t index = frame_.count; index < limit_; ++index) {
      const uint64_t count = frame_.count + planned_;
      // A count at which an atom fails is a reason only while the array ends with it.
      const bool failing = std::ranges::all_of(to_fail_, [&](AtomId atom) {
        return avoiding_.contains(atom) || FailsByCount(atom, count);
      });
      if (count >= min_count_ && missing_.empty() && failing) break;
      bool ended = false;
      if (auto found = PlanItem(index, ended)) return *std::move(found);
      if (ended) break;
    }
    return Write();
  }

 private:
  // What the positive atoms want, and whether there is room for it.
  std::optional<Found> Demands();
  bool RoomForMatches();
  uint64_t PlacesFor(AtomId atom, uint64_t wanted);
  // Whether anything could make a negative atom fail; when nothing can, the cube is empty.
  bool CanFail(AtomId atom);
  // How many items there may be, and which values are left to later places.
  void Prepare();
  void Reserve();
  // One more item, or several that are alike. `ended`: there is none, and none is needed.
  std::optional<Found> PlanItem(uint64_t& index, bool& ended);
  FormulaId ItemAt(uint64_t index);
  // Stronger demands on the item, where they can be met.
  uint64_t WantMatches(FormulaId& item, bool alike, uint64_t count, uint64_t index);
  void AvoidMatches(FormulaId& item);
  void MakeFail(FormulaId& item, uint64_t index, uint64_t count);
  Found Write();

  uint64_t Matches(AtomId atom) const {
    for (const auto& [a, count] : frame_.contained) {
      if (a == atom) return count;
    }
    return 0;
  }
  // The demands of the positive atoms, whatever is planned.
  FormulaId Positive(uint64_t index) {
    FormulaId item = kTrueFormula;
    for (const AtomId atom : cube_.positive)
      item = formulas_.And(item, frames_.ItemDemand(frame_, atom, index));
    return item;
  }
  Answer Ask(FormulaId formula) { return solver_.Value(formula).answer; }
  bool FailsByCount(AtomId atom, uint64_t count) const {
    const ArrayAtom& array = table_.array(atom);
    return count < array.min_items || count > array.max_items ||
           (array.has_contains && Matches(atom) < array.min_contains && count == frame_.count);
  }

  Solver& solver_;
  Frames& frames_;
  SchemaTable& table_;
  FormulaArena& formulas_;
  const Frame& frame_;
  const Cube& cube_;

  uint64_t min_count_ = 0, max_count_ = kUnbounded, prefix_ = 0, limit_ = 0;
  bool unique_ = false;
  std::map<AtomId, uint64_t> missing_;  // matches of contains still wanted
  uint64_t total_missing_ = 0, sum_missing_ = 0;
  std::set<AtomId> to_fail_;
  std::set<AtomId> avoiding_;  // atoms that fail while no item matches their `contains`
  std::vector<std::pair<uint64_t, uint32_t>> reserved_;  // (place, item)
  uint64_t planned_ = 0;
  std::map<AtomId, uint64_t> matched_;  // by items planned, of `contains`
  std::vector<std::string> texts_;
  bool needs_text_ = false;
  size_t steps_ = 0, text_size_ = 0;
  bool uncertain_ = false, has_text_ = true;
};

Found Solver::SolveArray(const Frame& frame, const Cube& cube) {
  return ArrayPlan(*this, frame, cube).Solve();
}

std::optional<Found> Solver::ArrayPlan::Demands() {
  min_count_ = frame_.count;
  for (const AtomId atom : cube_.positive) {
    const ArrayAtom& array = table_.array(atom);
    min_count_ = std::max(min_count_, array.min_items);
    max_count_ = std::min(max_count_, array.max_items);
    prefix_ = std::max<uint64_t>(prefix_, array.prefix.size());
    unique_ = unique_ || array.unique;
    if (array.has_contains && Matches(atom) < array.min_contains) {
      const uint64_t wanted = array.min_contains - Matches(atom);
      missing_[atom] = wanted;
      total_missing_ = std::max(total_missing_, wanted);
      sum_missing_ += std::min(wanted, kUnbounded / 64);
    }
  }
  if (min_count_ > max_count_) return kNothing;
  if (cube_.negative.empty()) {
    if (const auto can = solver_.unique_.CanFinish(frame_, 0, std::nullopt)) {
      if (!*can) return kNothing;
      return Found{Answer::kYes, solver_.want_text_
                                     ? solver_.unique_.Finish(frame_, limits::kTextBytes)
                                     : std::nullopt};
    }
  }
  if (!RoomForMatches()) return kNothing;
  for (const auto& [atom, wanted] : missing_) {
    if (PlacesFor(atom, wanted) < wanted) return kNothing;
  }
  return std::nullopt;
}

bool Solver::ArrayPlan::RoomForMatches() {
  if (missing_.size() > 1 && missing_.size() <= limits::kComparedContains &&
      max_count_ != kUnbounded) {
    // Where no item can match two of them, the matches need a place each.
    bool apart = true;
    uint64_t sum = 0;
    for (auto a = missing_.begin(); a != missing_.end(); ++a) {
      sum += std::min(a->second, max_count_);
      for (auto b = std::next(a); apart && b != missing_.end(); ++b) {
        const FormulaId both =
            formulas_.And(table_.array(a->first).contains, table_.array(b->first).contains);
        apart = Ask(both) == Answer::kNo;
      }
    }
    if (apart) total_missing_ = std::max(total_missing_, sum);
  }
  return max_count_ == kUnbounded ||
         total_missing_ <= max_count_ - std::min(max_count_, frame_.count);
}

// How many places can match: each of the prefix by itself, all of those beyond or none.
uint64_t Solver::ArrayPlan::PlacesFor(AtomId atom, uint64_t wanted) {
  uint64_t places = 0;
  for (uint64_t index = frame_.count; places < wanted && index < max_count_; ++index) {
    const FormulaId item = formulas_.And(table_.array(atom).contains, Positive(index));
    const bool possible = Ask(item) != Answer::kNo;
    if (index >= prefix_) {
      if (possible) places += std::min(wanted, max_count_ - index);
      break;
    }
    places += possible ? 1 : 0;
  }
  return places;
}

bool Solver::ArrayPlan::CanFail(AtomId atom) {
  const ArrayAtom& array = table_.array(atom);
  const uint64_t last =
      std::max<uint64_t>(frame_.count, std::max<uint64_t>(prefix_, array.prefix.size()));
  const auto can_come = [&](uint64_t index) { return Ask(Positive(index)) != Answer::kNo; };
  const bool twice = array.unique && max_count_ >= 2 && can_come(frame_.count) &&
                     (frame_.count > 0 || can_come(1));
  if (twice || array.has_contains || array.min_items > min_count_) return true;
  if (array.max_items < max_count_ && can_come(frame_.count)) return true;
  for (uint64_t index = frame_.count; index <= last && index < max_count_; ++index) {
    const FormulaId against = formulas_.Not(frames_.ItemDemand(frame_, atom, index));
    if (Ask(formulas_.And(against, Positive(index))) != Answer::kNo) return true;
  }
  return false;
}

void Solver::ArrayPlan::Prepare() {
  to_fail_.insert(cube_.negative.begin(), cube_.negative.end());
  // Where items have to differ, what was planned before matters to what comes next.
  needs_text_ = solver_.want_text_ || unique_;
  for (const AtomId atom : cube_.negative) {
    const ArrayAtom& array = table_.array(atom);
    prefix_ = std::max<uint64_t>(prefix_, array.prefix.size());
    if (array.has_contains && Matches(atom) < array.min_contains) avoiding_.insert(atom);
    needs_text_ = needs_text_ || array.unique;
  }
  limit_ = std::max(min_count_,
                    std::max(frame_.count, prefix_) + std::max(total_missing_, sum_missing_) + 1) +
           to_fail_.size();
  for (const AtomId atom : cube_.negative) {
    // Matches one too many, or one item too many, are reasons as well.
    const ArrayAtom& array = table_.array(atom);
    if (array.max_items < limits::kBuiltItems) limit_ = std::max(limit_, array.max_items + 1);
    if (array.unique) limit_ = std::max(limit_, frame_.count + 2);
    if (array.has_contains && array.max_contains < limits::kBuiltItems)
      limit_ = std::max(limit_, frame_.count + array.max_contains + 1);
  }
  limit_ = std::min(limit_, max_count_);
  if (unique_) Reserve();
}

// Values that have to stand at later places are left to them.
void Solver::ArrayPlan::Reserve() {
  for (uint64_t index = frame_.count + 1; index < std::min(prefix_, min_count_); ++index) {
    if (index > frame_.count + limits::kPlannedApart) break;
    FormulaId any = kTrueFormula;
    for (const AtomId atom : cube_.positive)
      any = formulas_.And(any, frames_.AnyItemDemand(atom, index));
    const FewValues* const few = solver_.FewValuesOf(any);
    if (few != nullptr && few->items.size() == 1) reserved_.emplace_back(index, few->items[0]);
  }
}

FormulaId Solver::ArrayPlan::ItemAt(uint64_t index) {
  FormulaId item = Positive(index);
  if (unique_) {
    // The demands know of items read (of those that matter to them), not of those planned here.
    IdSets::Id apart = frame_.items;
    for (const std::string& text : texts_) {
      if (auto value = json::Parse(text); value.ok())
        apart = frames_.items().With(apart, frames_.InternItem(CanonicalText(*value)));
    }
    for (const auto& [place, value] : reserved_) {
      if (place > index) apart = frames_.items().With(apart, value);
    }
    if (apart != IdSets::kEmpty) item = formulas_.And(item, solver_.unique_.DifferentFrom(apart));
  }
  for (const AtomId atom : cube_.positive) {
    const ArrayAtom& array = table_.array(atom);
    if (array.has_contains && Matches(atom) + matched_[atom] >= array.max_contains)
      item = formulas_.And(item, formulas_.Not(array.contains));
  }
  return item;
}

std::optional<Found> Solver::ArrayPlan::PlanItem(uint64_t& index, bool& ended) {
  const uint64_t count = frame_.count + planned_;
  FormulaId item = ItemAt(index);
  if (Ask(item) == Answer::kNo) {
    ended = count >= min_count_ && missing_.empty();
    if (ended) return std::nullopt;
    // A choice of earlier items could have been better, unless there was none, or all places are
    // alike and the different values have run out.
    const bool all_alike = cube_.negative.empty() && prefix_ <= frame_.count;
    // So could a match that was taken early, where only so many may be.
    const bool spent = !all_alike && std::ranges::any_of(matched_, [&](const auto& entry) {
      return entry.second > 0 && table_.array(entry.first).max_contains != kUnbounded;
    });
    const bool forced = cube_.negative.empty() && !spent && (!unique_ || all_alike);
    return planned_ == 0 || forced ? kNothing : kOpen;
  }
  // How often the same item can be planned: beyond the prefix one place is like the next.
  const bool alike = index >= prefix_ && !unique_ && cube_.negative.empty();
  const uint64_t times = WantMatches(item, alike, count, index);
  AvoidMatches(item);
  MakeFail(item, index, count);
  const Found& found = solver_.Value(item, needs_text_);
  uncertain_ = uncertain_ || found.answer == Answer::kUnknown;
  planned_ += times;
  index += times - 1;
  if (!found.text) {
    has_text_ = false;
  } else if (has_text_) {
    text_size_ += times > limits::kTextBytes ? times : times * (found.text->size() + 1);
    has_text_ = text_size_ <= limits::kTextBytes;
    if (has_text_) texts_.insert(texts_.end(), times, *found.text);
  }
  StopScope::Step();
  if (++steps_ > (unique_ ? limits::kPlannedApart : limits::kBuiltItems)) return kOpen;
  return std::nullopt;
}

uint64_t Solver::ArrayPlan::WantMatches(FormulaId& item, bool alike, uint64_t count,
                                        uint64_t index) {
  uint64_t times = missing_.empty() && alike ? std::max(min_count_, count + 1) - count : kUnbounded;
  std::vector<AtomId> matching;
  for (const auto& [atom, wanted] : missing_) {
    const FormulaId better = formulas_.And(item, table_.array(atom).contains);
    if (Ask(better) != Answer::kYes) continue;
    item = better;
    matching.push_back(atom);
    times = std::min(times, wanted);
  }
  // Matches beyond those are avoided where their number is bounded, or are counted.
  std::vector<AtomId> forced;
  for (const AtomId atom : cube_.positive) {
    const ArrayAtom& array = table_.array(atom);
    const uint64_t so_far = Matches(atom) + matched_[atom];
    if (!array.has_contains || array.max_contains == kUnbounded || so_far >= array.max_contains ||
        std::ranges::find(matching, atom) != matching.end())
      continue;
    const FormulaId better = formulas_.And(item, formulas_.Not(array.contains));
    if (Ask(better) == Answer::kYes) {
      item = better;
    } else {
      forced.push_back(atom);
      times = std::min(times, array.max_contains - so_far);
    }
  }
  if (!alike || times == kUnbounded) times = 1;
  times = std::min(times, limit_ - index);
  for (const AtomId atom : forced) matched_[atom] += times;
  for (const AtomId atom : matching) {
    matched_[atom] += times;
    if ((missing_[atom] -= times) == 0) missing_.erase(atom);
  }
  return times;
}

// `contains` fails when no item matches, so keep avoiding matches as long as that works.
void Solver::ArrayPlan::AvoidMatches(FormulaId& item) {
  std::erase_if(avoiding_, [&](AtomId atom) {
    const FormulaId better = formulas_.And(item, formulas_.Not(table_.array(atom).contains));
    if (Ask(better) != Answer::kYes) return true;
    item = better;
    return false;
  });
}

void Solver::ArrayPlan::MakeFail(FormulaId& item, uint64_t index, uint64_t count) {
  std::erase_if(to_fail_, [&](AtomId atom) {
    if (FailsByCount(atom, std::max(count + 1, min_count_))) return false;
    const FormulaId demand = frames_.ItemDemand(frame_, atom, index);
    FormulaId better = formulas_.And(item, formulas_.Not(demand));
    if (table_.array(atom).unique && !texts_.empty() && Ask(better) != Answer::kYes) {
      // The item planned before this one, once more.
      const auto value = json::Parse(texts_.back());
      const auto again = value.ok() ? ConstantFormula(table_, *value) : kFalseFormula;
      if (again.ok()) better = formulas_.And(item, *again);
    }
    if (Ask(better) != Answer::kYes) return false;
    item = better;
    return true;
  });
}

Found Solver::ArrayPlan::Write() {
  const uint64_t count = frame_.count + planned_;
  std::erase_if(to_fail_,
                [&](AtomId atom) { return FailsByCount(atom, count) || avoiding_.contains(atom); });
  if (count < min_count_ || !missing_.empty() || !to_fail_.empty() || uncertain_) return kOpen;
  std::string text;
  for (const std::string& one : texts_) {
    AddToList(text, one);
    if (text.size() > limits::kTextBytes) has_text_ = false;
  }
  return {Answer::kYes, has_text_ ? std::optional(text) : std::nullopt};
}

}  // namespace pawl::schema
