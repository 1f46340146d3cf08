// A goal is cut down to what it says of strings (or numbers); goals that agree there share one
// search. Conditions that can be merged are merged first. Where a string has to be short it is
// looked for among short ones first.
#include "schemas/frames/scalars.h"

#include <algorithm>

#include "grammar/languages/option_fields.h"
#include "schemas/limits.h"
#include "src/base/utf8.h"

namespace pawl::schema {

std::vector<FormulaId> Scalars::TracksOf(const Goal& goal, Kind kind) {
  std::vector<FormulaId> tracks;
  for (const FormulaId track : goal.tracks) tracks.push_back(OfKind(track, kind));
  return tracks;
}

Scalars::Shape Scalars::ShapeFor(const Goal& goal, Kind kind) {
  FormulaArena& formulas = table_.formulas;
  std::vector<FormulaId> tracks = TracksOf(goal, kind);
  const bool constant =
      std::ranges::all_of(tracks, [&](FormulaId track) { return formulas.IsConstant(track); });
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
  return table_.formulas.Atoms(std::get<0>(shape), std::get<1>(shape));
}

std::shared_ptr<StringProgram> Scalars::Program(const std::vector<AtomId>& atoms) {
  auto& program = programs_[atoms];
  if (!program) {
    program = std::make_shared<StringProgram>(table_, atoms);
    program_bytes_ += program->MemoryBytes();
  }
  return program;
}

bool Scalars::overflow() const {
  if (table_.regexes->overflow()) return true;
  for (const auto& [atoms, program] : programs_) {
    if (program->overflow()) return true;
  }
  return false;
}

std::string Scalars::FormatOf(FormulaId formula) {
  const auto found = table_.formats.find(formula);
  if (found == table_.formats.end() || table_.witnesses == nullptr) return "";
  if (options_key_.empty()) options_key_ = KeyOf(options_);
  return found->second + ' ' + options_key_;
}

// Fields wait for the text that they are copied from. No bound of canonical spelling is theirs: the
// text may have longer numbers and strings.
bool Scalars::WaitsForSource() const {
  return table_.source == nullptr && !table_.source_fields.empty();
}

FormulaId Scalars::AsWritten(FormulaId must) {
  if (WaitsForSource()) return must;
  FormulaArena& formulas = table_.formulas;
  std::vector<FormulaId> parts;
  // Next to a pattern a time is as the pattern has it.
  const auto regexes = std::ranges::count_if(formulas.Atoms(must), [this](AtomId atom) {
    return table_.string(atom).type == StringAtom::Type::kRegex;
  });
  for (const AtomId atom : formulas.MustAtoms(must)) {
    const auto found = table_.written.find(atom);
    if (regexes > 1 || found == table_.written.end()) continue;
    // In its place: two automata would run where one is enough.
    const std::pair<AtomId, bool> fulfilled[] = {{atom, true}};
    must = formulas.Assign(must, fulfilled);
    parts.push_back(found->second);
  }
  const bool has_end = std::ranges::any_of(formulas.Atoms(must), [this](AtomId atom) {
    const StringAtom& string = table_.string(atom);
    return string.type == StringAtom::Type::kLiterals || string.type == StringAtom::Type::kSource ||
           (string.type == StringAtom::Type::kLength && string.max != kUnbounded);
  });
  if (options_.max_string > 0 && !has_end) {
    StringAtom length;
    length.type = StringAtom::Type::kLength;
    length.max = static_cast<uint64_t>(options_.max_string);
    parts.push_back(table_.AddString(std::move(length)));
  }
  if (parts.empty()) return must;
  parts.push_back(must);
  return formulas.ForKind(formulas.And(parts), kStringValue);
}

FormulaId Scalars::WithoutExcluded(FormulaId must) {
  if (options_.excluded_texts.empty() || must == kFalseFormula) return must;
  std::vector<FormulaId> parts = {must};
  RegexArena& regexes = *table_.regexes;
  for (std::string_view rest = options_.excluded_texts; !rest.empty();) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (text.empty()) continue;
    parts.push_back(table_.AddRegex(regexes.Not(regexes.Concat(
        {RegexArena::kAnything, regexes.Literal(DecodeCodepoints(text)), RegexArena::kAnything}))));
  }
  return table_.formulas.ForKind(table_.formulas.And(parts), kStringValue);
}

StringSearch& Scalars::String(const Goal& goal) {
  const Shape key = ShapeFor(goal, kStringValue);
  Shape shape = key;
  const auto found = strings_.find(shape);
  if (found != strings_.end()) return *found->second.search;
  std::get<0>(shape) = WithoutExcluded(std::get<0>(shape));
  const FormulaId said = WithoutExcluded(table_.formulas.ForKind(goal.must, kStringValue));
  const FormulaId written = std::get<0>(shape) == kFalseFormula ? said : AsWritten(said);
  StringEntry entry;
  if (written != said) {
    Shape narrow = shape;
    std::get<0>(narrow) = merging_.Of(written);
    entry = SearchFor(narrow);
    // Where nothing so short is known to fit, longer ones are written. What is merely not known to
    // be dead is not enough: the path would end inside of a string.
    const size_t most = std::max(limits::kShortString, static_cast<size_t>(options_.max_string));
    if (!entry.search->Shortest(entry.program->start(), most)) entry = StringEntry();
  }
  if (entry.search == nullptr) entry = SearchFor(shape);
  return *strings_.emplace(key, std::move(entry)).first->second.search;
}

template <typename TruthOf>
std::vector<bool> Scalars::Truths(const std::vector<FormulaId>& tracks, const TruthOf& truth_of) {
  std::vector<bool> out;
  for (const FormulaId track : tracks) out.push_back(table_.formulas.Evaluate(track, truth_of));
  return out;
}

template <typename TruthOf>
bool Scalars::Fits(const Shape& shape, const TruthOf& truth_of) {
  const auto& [must, tracks, around] = shape;
  if (!table_.formulas.Evaluate(must, truth_of)) return false;
  return tracks.empty() || around_accepts_(around, Truths(tracks, truth_of));
}

// The atom stands under no negation, so what fits without it fits with it as well. Of large
// formulas that is not asked: false.
static bool OnlyHelps(const FormulaArena& formulas, FormulaId formula, AtomId atom,
                      bool negated = false) {
  using Op = FormulaArena::Op;
  if (formulas.parts(formula) > limits::kSharedParts) return false;
  const Op op = formulas.op(formula);
  if (op == Op::kAtom) return !negated || formulas.value(formula) != atom;
  const bool within = negated || op == Op::kNot || op == Op::kExactlyOne;
  return std::ranges::all_of(formulas.kids(formula),
                             [&](FormulaId kid) { return OnlyHelps(formulas, kid, atom, within); });
}

Scalars::StringEntry Scalars::SearchFor(const Shape& shape) {
  std::shared_ptr<StringProgram> program = Program(AtomsOf(shape));
  StringProgram* const p = program.get();
  const auto accept = [this, p, shape](StringProgram::StateId state) {
    return Fits(shape, [&](AtomId atom) { return p->Truth(state, atom); });
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
  if (program->HasSources()) {
    std::vector<bool> spans, helps;
    for (size_t i = 0; i < program->source_count(); ++i) {
      const AtomId source = program->SourceAtom(i);
      spans.push_back(table_.formulas.EvaluatePartly(
                          must, [source](AtomId atom) { return atom == source ? 0 : -1; }) == 0);
      helps.push_back(std::get<1>(shape).empty() && OnlyHelps(table_.formulas, must, source));
    }
    entry.search->SetSources(spans, helps);
  }
  return entry;
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
    return Fits(shape, truth_of);
  };
  const bool bounded = options_.canonical_spelling && !WaitsForSource();
  auto program = NumberProgram::Create(table_, std::move(atoms), must_atoms, conjunction, accept,
                                       options_.allow_exponents, options_.canonical_spelling,
                                       bounded ? options_.max_digits : 0);
  if (program.ok()) slot = std::move(*program);
  return slot.get();
}

std::vector<bool> Scalars::StringTruth(const Goal& goal, StringProgram::StateId state) {
  StringProgram& program = String(goal).program();
  return Truths(TracksOf(goal, kStringValue),
                [&](AtomId atom) { return program.Truth(state, atom); });
}

std::vector<bool> Scalars::NumberTruth(const Goal& goal, NumberProgram::StateId state) {
  NumberProgram* program = Number(goal);
  return Truths(TracksOf(goal, kNumberValue),
                [&](AtomId atom) { return program->Truth(state, atom); });
}

}  // namespace pawl::schema
