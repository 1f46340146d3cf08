#include "schemas/plain_keys.h"

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
  StringProgram& program = *layout_.program;
  for (uint32_t k = 0; k < sorted_.size(); ++k) {
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

bool PlainKeys::NameAllowed(FrameId id, int rank) {
  const Frame& frame = frames_[id];  // gone once the solver makes new frames
  if (frames_.Seen(frame, layout_.name_ids[static_cast<size_t>(rank)])) return false;
  if (ordered_) {
    if (rank <= frame.last_rank) return false;
    for (const auto& [other, name] : required_rank_) {
      if (other < rank && !frames_.Seen(frame, name)) return false;
    }
  }
  int8_t& possible = possible_[static_cast<size_t>(rank) + 1];
  if (possible < 0) possible = solver_.Value(Demand(rank)).answer != Answer::kNo;
  return possible == 1;
}

bool PlainKeys::OthersAllowed(FrameId id) {
  if (ordered_) {
    for (const auto& [rank, name] : required_rank_) {
      if (!frames_.Seen(frames_[id], name)) return false;
    }
  }
  if (possible_[0] < 0) possible_[0] = solver_.Value(Demand(-1)).answer != Answer::kNo;
  return possible_[0] == 1;
}

bool PlainKeys::Live(FrameId id, StringProgram::StateId state) {
  if (OthersAllowed(id)) return true;
  const Range range = Below(state);
  for (uint32_t k = range.begin; k < range.end; ++k) {
    if (NameAllowed(id, sorted_[k].rank)) return true;
  }
  return false;
}

}  // namespace pawl::schema
