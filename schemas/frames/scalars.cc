#include "schemas/frames/scalars.h"

#include <algorithm>

namespace pawl::schema {

Scalars::Shape Scalars::ShapeFor(const Goal& goal, Kind kind) {
  FormulaArena& formulas = table_.formulas;
  std::vector<FormulaId> tracks;
  bool constant = true;
  for (const FormulaId track : goal.tracks) {
    tracks.push_back(OfKind(track, kind));
    constant = constant && formulas.IsConstant(tracks.back());
  }
  FormulaId must = OfKind(goal.must, kind);
  if (constant) {
    // The kind alone decides all tracks, so the frame around can be asked at once.
    if (!tracks.empty()) {
      std::vector<bool> truth;
      truth.reserve(tracks.size());
      for (const FormulaId track : tracks) truth.push_back(track == kTrueFormula);
      if (!around_accepts_(goal.around, truth)) must = kFalseFormula;
    }
    return {must, {}, kNoFrame};
  }
  return {must, std::move(tracks), goal.around};
}

std::vector<AtomId> Scalars::AtomsOf(const Shape& shape) {
  std::vector<AtomId> out = table_.formulas.Atoms(std::get<0>(shape));
  for (const FormulaId track : std::get<1>(shape)) {
    const std::vector<AtomId>& more = table_.formulas.Atoms(track);
    out.insert(out.end(), more.begin(), more.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::shared_ptr<StringProgram> Scalars::Program(const std::vector<AtomId>& atoms) {
  auto& program = programs_[atoms];
  if (!program) program = std::make_shared<StringProgram>(table_, atoms);
  return program;
}

bool Scalars::overflow() const {
  if (table_.regexes->overflow()) return true;
  for (const auto& [atoms, program] : programs_) {
    if (program->overflow()) return true;
  }
  return false;
}

StringSearch& Scalars::String(const Goal& goal) {
  Shape shape = ShapeFor(goal, kStringValue);
  const auto found = strings_.find(shape);
  if (found != strings_.end()) return *found->second.search;
  std::shared_ptr<StringProgram> program = Program(AtomsOf(shape));
  StringProgram* const p = program.get();
  const auto accept = [this, p, shape](StringProgram::StateId state) {
    const auto truth_of = [&](AtomId atom) { return p->Truth(state, atom); };
    const auto& [must, tracks, around] = shape;
    if (!table_.formulas.Evaluate(must, truth_of)) return false;
    if (tracks.empty()) return true;
    std::vector<bool> truth;
    for (const FormulaId track : tracks) truth.push_back(table_.formulas.Evaluate(track, truth_of));
    return around_accepts_(around, truth);
  };
  const std::vector<AtomId>& atoms = program->atoms();
  const bool one_atom = std::get<1>(shape).empty() && atoms.size() == 1 &&
                        table_.formulas.op(std::get<0>(shape)) == FormulaArena::Op::kAtom;
  StringEntry entry{program,
                    std::make_unique<StringSearch>(*p, accept, options_.step_fuel, one_atom)};
  const FormulaId must = std::get<0>(shape);
  if (std::get<1>(shape).empty() && table_.formulas.IsConjunction(must))
    entry.search->SetConjunction();
  uint64_t least = 0;
  for (const AtomId atom : table_.formulas.MustAtoms(must)) {
    const StringAtom& string = table_.string(atom);
    if (string.type == StringAtom::Type::kLength) least = std::max(least, string.min);
  }
  entry.search->SetHints(least, [this, p, must](StringProgram::StateId state) {
    return table_.formulas.EvaluatePartly(
               must, [&](AtomId atom) { return p->Settled(state, atom); }) == 0;
  });
  return *strings_.emplace(std::move(shape), std::move(entry)).first->second.search;
}

NumberProgram* Scalars::Number(const Goal& goal) {
  Shape shape = ShapeFor(goal, kNumberValue);
  const auto found = numbers_.find(shape);
  if (found != numbers_.end()) return found->second.get();
  const auto& [must, tracks, around] = shape;
  std::vector<AtomId> atoms = AtomsOf(shape);
  const std::vector<AtomId> must_atoms = table_.formulas.MustAtoms(must);
  const bool conjunction = tracks.empty() && table_.formulas.IsConjunction(must);
  auto& slot = numbers_[shape];
  const auto accept = [this, shape](const NumberProgram::TruthOf& truth_of) {
    if (!table_.formulas.Evaluate(std::get<0>(shape), truth_of)) return false;
    if (std::get<1>(shape).empty()) return true;
    std::vector<bool> truth;
    for (const FormulaId track : std::get<1>(shape)) {
      truth.push_back(table_.formulas.Evaluate(track, truth_of));
    }
    return around_accepts_(std::get<2>(shape), truth);
  };
  auto program = NumberProgram::Create(table_, std::move(atoms), must_atoms, conjunction, accept,
                                       options_.allow_exponents, options_.canonical_spelling);
  if (program.ok()) slot = std::move(*program);
  return slot.get();
}

std::vector<bool> Scalars::StringTruth(const Goal& goal, StringProgram::StateId state) {
  StringProgram& program = String(goal).program();
  std::vector<bool> out;
  for (const FormulaId track : goal.tracks) {
    out.push_back(table_.formulas.Evaluate(
        OfKind(track, kStringValue), [&](AtomId atom) { return program.Truth(state, atom); }));
  }
  return out;
}

std::vector<bool> Scalars::NumberTruth(const Goal& goal, NumberProgram::StateId state) {
  NumberProgram* program = Number(goal);
  std::vector<bool> out;
  for (const FormulaId track : goal.tracks) {
    out.push_back(table_.formulas.Evaluate(
        OfKind(track, kNumberValue), [&](AtomId atom) { return program->Truth(state, atom); }));
  }
  return out;
}

}  // namespace pawl::schema
