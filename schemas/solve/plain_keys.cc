// Whether an object's keys are independent is asked of its formula once. Then "may this key come"
// is: not seen, in order, no required key passed by, and a value for it exists, each of which is
// kept.
#include "schemas/solve/plain_keys.h"

#include <algorithm>

#include "src/base/utf8.h"

namespace pawl::schema {

bool PlainKeys::Fits(Frames& frames, const JsonSchemaOptions& options, const Frame& frame) {
  if (frame.kind != kObjectValue || !frame.tracks.empty()) return false;
  if (frames.layout(frame.layout).has_key_conditions) return false;
  SchemaTable& table = frames.table();
  if (!table.formulas.IsConjunction(frame.must)) return false;
  const bool ordered = options.order == JsonSchemaOptions::Order::kSchema;
  for (const AtomId atom : table.formulas.Atoms(frame.must)) {
    const ObjectAtom& object = table.object(atom);
    if (object.max_properties != kUnbounded) return false;
    // In order, a key passes others by, which may have been needed to make up the number.
    if (ordered && object.min_properties > 0) return false;
  }
  return true;
}

PlainKeys::PlainKeys(Frames& frames, Solver& solver, const JsonSchemaOptions& options,
                     const Frame& frame)
    : frames_(frames),
      solver_(solver),
      layout_(frames.layout(frame.layout)),
      atoms_(frames.table().formulas.Atoms(frame.must)),
      ordered_(options.order == JsonSchemaOptions::Order::kSchema),
      possible_(layout_.names.size() + 1, -1) {
  for (const AtomId atom : atoms_) {
    for (const NameId name : frames.Required(layout_, atom))
      required_rank_.emplace_back(layout_.rank_of.at(name), name);
  }
  std::sort(required_rank_.begin(), required_rank_.end());
  for (size_t rank = 0; rank < layout_.names.size(); ++rank)
    sorted_.push_back({static_cast<int>(rank), DecodeCodepoints(layout_.names[rank])});
  std::sort(sorted_.begin(), sorted_.end(),
            [](const Name& a, const Name& b) { return a.text < b.text; });
  place_.resize(sorted_.size());
  StringProgram& program = *layout_.program;
  for (uint32_t k = 0; k < sorted_.size(); ++k) {
    place_[static_cast<size_t>(sorted_[k].rank)] = k;
    StringProgram::StateId state = program.start();
    for (uint32_t depth = 0;; ++depth) {
      Range& range = ranges_.try_emplace(state, Range{k, k, depth}).first->second;
      range.end = k + 1;
      if (depth == sorted_[k].text.size()) break;
      state = program.Next(state, program.ClassOf(sorted_[k].text[depth]));
    }
  }
}

PlainKeys::Range PlainKeys::Below(StringProgram::StateId state) const {
  const auto found = ranges_.find(state);
  return found == ranges_.end() ? Range{} : found->second;
}

FormulaId PlainKeys::Demand(int rank) {
  StringProgram& program = *layout_.program;
  const StringProgram::StateId state =
      rank < 0 ? program.start() : layout_.name_states[static_cast<size_t>(rank)];
  FormulaId demand = kTrueFormula;
  for (const AtomId atom : atoms_) {
    demand = frames_.table().formulas.And(
        demand, frames_.PropertyDemand(layout_, atom, program, state, rank));
  }
  return demand;
}

size_t PlainKeys::FirstMissing(IdSets::Id seen) {
  if (const auto known = first_missing_.find(seen); known != first_missing_.end())
    return known->second;
  size_t place = 0;
  if (seen != IdSets::kEmpty) {
    const auto before = first_missing_.find(frames_.seen().Before(seen));
    if (before != first_missing_.end()) place = before->second;
  }
  while (place < required_rank_.size() &&
         frames_.seen().Contains(seen, required_rank_[place].second))
    ++place;
  first_missing_.emplace(seen, place);
  return place;
}

bool PlainKeys::NameAllowed(FrameId id, int rank) {
  const Frame& frame = frames_[id];  // gone once the solver makes new frames
  if (frames_.Seen(frame, layout_.name_ids[static_cast<size_t>(rank)])) return false;
  if (ordered_) {
    if (rank <= frame.last_rank) return false;
    const size_t missing = FirstMissing(frame.seen);
    if (missing < required_rank_.size() && required_rank_[missing].first < rank) return false;
  }
  int8_t& possible = possible_[static_cast<size_t>(rank) + 1];
  if (possible < 0) possible = solver_.Value(Demand(rank)).answer != Answer::kNo;
  return possible == 1;
}

bool PlainKeys::OthersAllowed(FrameId id) {
  if (ordered_ && FirstMissing(frames_[id].seen) < required_rank_.size()) return false;
  if (possible_[0] < 0) possible_[0] = solver_.Value(Demand(-1)).answer != Answer::kNo;
  return possible_[0] == 1;
}

bool PlainKeys::Live(FrameId id, StringProgram::StateId state) {
  if (OthersAllowed(id)) return true;
  const Range range = Below(state);
  if (ordered_) {
    // From the last name to the next required one, where that is nearer.
    const Frame& frame = frames_[id];
    const size_t missing = FirstMissing(frame.seen);
    const int64_t last = missing < required_rank_.size() ? required_rank_[missing].first
                                                         : static_cast<int64_t>(place_.size()) - 1;
    const int64_t first = std::min(frame.last_rank, last) + 1;
    if (last - first < static_cast<int64_t>(range.end) - range.begin) {
      for (int64_t rank = first; rank <= last; ++rank) {
        const uint32_t place = place_[static_cast<size_t>(rank)];
        if (place >= range.begin && place < range.end && NameAllowed(id, static_cast<int>(rank)))
          return true;
      }
      return false;
    }
  }
  for (uint32_t k = range.begin; k < range.end; ++k) {
    if (NameAllowed(id, sorted_[k].rank)) return true;
  }
  return false;
}

}  // namespace pawl::schema
