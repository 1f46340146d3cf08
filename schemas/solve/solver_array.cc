// Completing an array for one cube: items up to minItems, more while `contains` is short of
// matches, each item strengthened by what is still wanted (a match of contains, a reason for a
// negative atom to fail, being different from the others).
#include <algorithm>
#include <map>
#include <set>

#include "schemas/formula/constant.h"
#include "schemas/solve/solver.h"

namespace pawl::schema {
namespace {
constexpr uint64_t kMaxBuiltItems = 4096;  // longer arrays are known to exist, but not written down
constexpr uint64_t kMaxPlannedApart = 40;  // each is kept apart from all before it
constexpr size_t kMaxCompared = 32;        // different `contains`
}  // namespace

Found Solver::SolveArray(const Frame& frame, const Cube& cube) {
  FormulaArena& formulas = table_.formulas;
  Found no{Answer::kNo, std::nullopt};
  Found unknown{Answer::kUnknown, std::nullopt};
  const auto matches = [&](AtomId atom) {
    for (const auto& [a, count] : frame.contained) {
      if (a == atom) return count;
    }
    return uint64_t{0};
  };

  uint64_t min_count = frame.count, max_count = kUnbounded, prefix = 0;
  bool unique = false;
  std::map<AtomId, uint64_t> missing;  // matches of contains still wanted
  uint64_t total_missing = 0, sum_missing = 0;
  for (const AtomId atom : cube.positive) {
    const ArrayAtom& array = table_.array(atom);
    min_count = std::max(min_count, array.min_items);
    max_count = std::min(max_count, array.max_items);
    prefix = std::max<uint64_t>(prefix, array.prefix.size());
    unique = unique || array.unique;
    if (array.has_contains && matches(atom) < array.min_contains) {
      missing[atom] = array.min_contains - matches(atom);
      total_missing = std::max(total_missing, missing[atom]);
      sum_missing += std::min(missing[atom], kUnbounded / 64);
    }
  }
  if (min_count > max_count) return no;
  if (cube.negative.empty()) {
    if (const auto can = unique_.CanFinish(frame, 0, std::nullopt)) {
      if (!*can) return no;
      return {Answer::kYes, want_text_ ? unique_.Finish(frame, kMaxWitness) : std::nullopt};
    }
  }
  if (missing.size() > 1 && missing.size() <= kMaxCompared && max_count != kUnbounded) {
    // Where no item can match two of them, the matches need a place each.
    bool apart = true;
    uint64_t sum = 0;
    for (auto a = missing.begin(); a != missing.end(); ++a) {
      sum += std::min(a->second, max_count);
      for (auto b = std::next(a); apart && b != missing.end(); ++b) {
        const FormulaId both =
            formulas.And(table_.array(a->first).contains, table_.array(b->first).contains);
        apart = Value(both).answer == Answer::kNo;
      }
    }
    if (apart) total_missing = std::max(total_missing, sum);
  }
  if (max_count != kUnbounded && total_missing > max_count - std::min(max_count, frame.count))
    return no;
  for (const auto& [atom, wanted] : missing) {
    // How many places can match: each of the prefix by itself, all of those beyond or none.
    uint64_t places = 0;
    for (uint64_t index = frame.count; places < wanted && index < max_count; ++index) {
      FormulaId item = table_.array(atom).contains;
      for (const AtomId other : cube.positive)
        item = formulas.And(item, frames_.ItemDemand(frame, other, index));
      const bool possible = Value(item).answer != Answer::kNo;
      if (index >= prefix) {
        if (possible) places += std::min(wanted, max_count - index);
        break;
      }
      places += possible ? 1 : 0;
    }
    if (places < wanted) return no;
  }
  for (const AtomId atom : cube.negative) {
    // Whether anything could make it fail; when nothing can, the cube is empty.
    const ArrayAtom& array = table_.array(atom);
    uint64_t last =
        std::max<uint64_t>(frame.count, std::max<uint64_t>(prefix, array.prefix.size()));
    const auto can_come = [&](uint64_t index) {
      FormulaId item = kTrueFormula;
      for (const AtomId other : cube.positive)
        item = formulas.And(item, frames_.ItemDemand(frame, other, index));
      return Value(item).answer != Answer::kNo;
    };
    const bool twice =
        array.unique && max_count >= 2 && can_come(frame.count) && (frame.count > 0 || can_come(1));
    bool possible = twice || array.has_contains || array.min_items > min_count ||
                    (array.max_items < max_count && can_come(frame.count));
    for (uint64_t index = frame.count; !possible && index <= last; ++index) {
      if (index >= max_count) break;
      FormulaId item = formulas.Not(frames_.ItemDemand(frame, atom, index));
      for (const AtomId other : cube.positive)
        item = formulas.And(item, frames_.ItemDemand(frame, other, index));
      possible = Value(item).answer != Answer::kNo;
    }
    if (!possible) return no;
  }
  std::set<AtomId> to_fail(cube.negative.begin(), cube.negative.end());
  for (const AtomId atom : cube.negative)
    prefix = std::max<uint64_t>(prefix, table_.array(atom).prefix.size());
  const auto fails_by_count = [&](AtomId atom, uint64_t count) {
    const ArrayAtom& array = table_.array(atom);
    return count < array.min_items || count > array.max_items ||
           (array.has_contains && matches(atom) < array.min_contains && count == frame.count);
  };
  std::set<AtomId> avoiding;
  for (const AtomId atom : cube.negative) {
    const ArrayAtom& array = table_.array(atom);
    if (array.has_contains && matches(atom) < array.min_contains) avoiding.insert(atom);
  }

  // Where items have to differ, what was planned before matters to what comes next.
  const bool needs_text =
      want_text_ || unique ||
      std::ranges::any_of(cube.negative, [&](AtomId atom) { return table_.array(atom).unique; });
  uint64_t planned = 0;
  std::map<AtomId, uint64_t> matched;  // by items planned, of `contains`
  std::vector<std::string> texts;
  size_t steps = 0, text_size = 0;
  bool uncertain = false, has_text = true;
  uint64_t limit = std::max(min_count, std::max(frame.count, prefix) +
                                           std::max(total_missing, sum_missing) + 1) +
                   to_fail.size();
  for (const AtomId atom : cube.negative) {
    // Matches one too many, or one item too many, are reasons as well.
    const ArrayAtom& array = table_.array(atom);
    if (array.max_items < kMaxBuiltItems) limit = std::max(limit, array.max_items + 1);
    if (array.unique) limit = std::max(limit, frame.count + 2);
    if (array.has_contains && array.max_contains < kMaxBuiltItems)
      limit = std::max(limit, frame.count + array.max_contains + 1);
  }
  limit = std::min(limit, max_count);
  // Values that have to stand at later places are left to them.
  std::vector<std::pair<uint64_t, uint32_t>> reserved;  // (place, item)
  for (uint64_t index = frame.count + 1; unique && index < std::min(prefix, min_count); ++index) {
    if (index > frame.count + kMaxPlannedApart) break;
    FormulaId any = kTrueFormula;
    for (const AtomId atom : cube.positive)
      any = formulas.And(any, frames_.AnyItemDemand(atom, index));
    const FewValues* const few = FewValuesOf(any);
    if (few != nullptr && few->items.size() == 1) reserved.emplace_back(index, few->items[0]);
  }
  for (uint64_t index = frame.count; index < limit; ++index) {
    const uint64_t count = frame.count + planned;
    // A count at which an atom fails is a reason only while the array ends with it.
    const bool failing = std::all_of(to_fail.begin(), to_fail.end(), [&](AtomId atom) {
      return avoiding.contains(atom) || fails_by_count(atom, count);
    });
    if (count >= min_count && missing.empty() && failing) break;
    FormulaId item = kTrueFormula;
    for (const AtomId atom : cube.positive)
      item = formulas.And(item, frames_.ItemDemand(frame, atom, index));
    if (unique) {
      // The demands know of items read (of those that matter to them), not of those planned here.
      IdSets::Id apart = frame.items;
      for (const std::string& text : texts) {
        if (auto value = json::Parse(text); value.ok())
          apart = frames_.items().With(apart, frames_.InternItem(CanonicalText(*value)));
      }
      for (const auto& [place, value] : reserved) {
        if (place > index) apart = frames_.items().With(apart, value);
      }
      if (apart != IdSets::kEmpty) item = formulas.And(item, unique_.DifferentFrom(apart));
    }
    for (const AtomId atom : cube.positive) {
      const ArrayAtom& array = table_.array(atom);
      if (array.has_contains && matches(atom) + matched[atom] >= array.max_contains) {
        item = formulas.And(item, formulas.Not(array.contains));
      }
    }
    Answer answer = Value(item).answer;
    if (answer == Answer::kNo) {
      if (count >= min_count && missing.empty()) break;
      // A choice of earlier items could have been better, unless there was none, or all places are
      // alike and the different values have run out.
      const bool all_alike = cube.negative.empty() && prefix <= frame.count;
      return planned == 0 || (cube.negative.empty() && (!unique || all_alike)) ? no : unknown;
    }
    // How often the same item can be planned: beyond the prefix one place is like the next.
    const bool alike = index >= prefix && !unique && cube.negative.empty();
    uint64_t times = missing.empty() && alike ? std::max(min_count, count + 1) - count : kUnbounded;
    std::vector<AtomId> matching;
    for (auto it = missing.begin(); it != missing.end();) {
      const FormulaId better = formulas.And(item, table_.array(it->first).contains);
      if (Value(better).answer != Answer::kYes) {
        ++it;
        continue;
      }
      item = better;
      matching.push_back(it->first);
      times = std::min(times, it->second);
      ++it;
    }
    // Matches beyond those are avoided where their number is bounded, or are counted.
    std::vector<AtomId> forced;
    for (const AtomId atom : cube.positive) {
      const ArrayAtom& array = table_.array(atom);
      const uint64_t so_far = matches(atom) + matched[atom];
      if (!array.has_contains || array.max_contains == kUnbounded || so_far >= array.max_contains ||
          std::ranges::find(matching, atom) != matching.end())
        continue;
      const FormulaId better = formulas.And(item, formulas.Not(array.contains));
      if (Value(better).answer == Answer::kYes) {
        item = better;
      } else {
        forced.push_back(atom);
        times = std::min(times, array.max_contains - so_far);
      }
    }
    if (!alike || times == kUnbounded) times = 1;
    times = std::min(times, limit - index);
    for (const AtomId atom : forced) matched[atom] += times;
    for (const AtomId atom : matching) {
      matched[atom] += times;
      if ((missing[atom] -= times) == 0) missing.erase(atom);
    }
    // `contains` fails when no item matches, so keep avoiding matches as long as that works.
    for (auto it = avoiding.begin(); it != avoiding.end();) {
      const FormulaId better = formulas.And(item, formulas.Not(table_.array(*it).contains));
      if (Value(better).answer != Answer::kYes) {
        it = avoiding.erase(it);
      } else {
        item = better;
        ++it;
      }
    }
    for (auto it = to_fail.begin(); it != to_fail.end();) {
      if (fails_by_count(*it, std::max(count + 1, min_count))) {
        ++it;
        continue;
      }
      const FormulaId demand = frames_.ItemDemand(frame, *it, index);
      FormulaId better = formulas.And(item, formulas.Not(demand));
      if (table_.array(*it).unique && !texts.empty() && Value(better).answer != Answer::kYes) {
        // The item planned before this one, once more.
        const auto value = json::Parse(texts.back());
        const auto again = value.ok() ? ConstantFormula(table_, *value) : kFalseFormula;
        if (again.ok()) better = formulas.And(item, *again);
      }
      if (Value(better).answer != Answer::kYes) {
        ++it;
        continue;
      }
      item = better;
      it = to_fail.erase(it);
    }
    const Found& found = Value(item, needs_text);
    uncertain = uncertain || found.answer == Answer::kUnknown;
    planned += times;
    index += times - 1;
    if (!found.text) {
      has_text = false;
    } else if (has_text) {
      text_size += times > kMaxWitness ? times : times * (found.text->size() + 1);
      has_text = text_size <= kMaxWitness;
      if (has_text) texts.insert(texts.end(), times, *found.text);
    }
    if (++steps > (unique ? kMaxPlannedApart : kMaxBuiltItems)) return unknown;
  }
  const uint64_t count = frame.count + planned;
  std::erase_if(
      to_fail, [&](AtomId atom) { return fails_by_count(atom, count) || avoiding.contains(atom); });
  if (count < min_count || !missing.empty() || !to_fail.empty() || uncertain) return unknown;
  std::string text;
  for (const std::string& one : texts) {
    if (!text.empty()) text += ',';
    text += one;
    if (text.size() > kMaxWitness) has_text = false;
  }
  return {Answer::kYes, has_text ? std::optional(text) : std::nullopt};
}

}  // namespace pawl::schema
