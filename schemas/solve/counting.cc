// How many values are left. An array whose further places are all alike is finished by so many
// items that match `contains` and so many that do not; each number has bounds, from the keywords
// and from what is left of each set of values, and so has their sum. Whether there are such numbers
// is arithmetic.
#include <algorithm>
#include <set>
#include <string>

#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/solve/distinct.h"
#include "schemas/solve/solver.h"
#include "schemas/solve/uniqueness.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

uint64_t Sum(uint64_t a, uint64_t b) { return a > kUnbounded - b ? kUnbounded : a + b; }
uint64_t Less(uint64_t a, uint64_t b) { return a == kUnbounded ? a : a - std::min(a, b); }

}  // namespace

Uniqueness::Cell Uniqueness::CellOf(FormulaId formula) {
  Cell cell{formula, false, nullptr};
  if (formula == kFalseFormula) return cell;
  cell.endless = Unbounded(formula);
  if (!cell.endless) cell.few = solver_.FewValuesOf(formula);
  if (!cell.known() && solver_.HasNoValue(formula)) cell.formula = kFalseFormula;
  return cell;
}

const Uniqueness::Counting* Uniqueness::CountingOf(const Frame& frame) {
  if (frame.kind != kArrayValue || !frame.tracks.empty() ||
      !table_.formulas.IsConjunction(frame.must))
    return nullptr;
  const auto known = countings_.find(frame.must);
  if (known != countings_.end() && known->second.counts)
    return known->second.prefix <= frame.count ? &known->second : nullptr;
  Counting counting;
  bool unique = false;
  for (const AtomId atom : table_.formulas.MustAtoms(frame.must)) {
    const ArrayAtom& array = table_.array(atom);
    unique = unique || array.unique;
    counting.min_items = std::max(counting.min_items, array.min_items);
    counting.max_items = std::min(counting.max_items, array.max_items);
    counting.prefix = std::max<uint64_t>(counting.prefix, array.prefix.size());
    counting.demand = table_.formulas.And(counting.demand, array.items);
    if (!array.has_contains) continue;
    if (counting.has_contains) return nullptr;  // two of them
    counting.has_contains = true;
    counting.contains_atom = atom;
  }
  if (!unique || counting.prefix > frame.count) return nullptr;
  if (counting.has_contains) {
    const FormulaId contains = table_.array(counting.contains_atom).contains;
    counting.cells[0] = CellOf(table_.formulas.And(counting.demand, table_.formulas.Not(contains)));
    counting.cells[1] = CellOf(table_.formulas.And(counting.demand, contains));
  } else {
    counting.cells[0] = CellOf(counting.demand);
  }
  counting.counts = counting.cells[0].known() && counting.cells[1].known();
  // Where it is not known, it may be once questions that are open further up are settled.
  const Counting& kept = countings_[frame.must] = counting;
  return kept.counts ? &kept : nullptr;
}

IdSets::Id Uniqueness::Taken(FewValues& values, IdSets::Id items) {
  const auto with = [&](IdSets::Id out, uint32_t item) {
    return std::ranges::binary_search(values.items, item) ? frames_.items().With(out, item) : out;
  };
  return frames_.items().Fold(values.taken, items, IdSets::kEmpty, with);
}

uint64_t Uniqueness::LeftIn(const Cell& cell, IdSets::Id items) {
  if (cell.formula == kFalseFormula) return 0;
  if (cell.endless) return kUnbounded;
  return cell.few->items.size() - frames_.items().Size(Taken(*cell.few, items));
}

bool Uniqueness::Plan::feasible() const {
  return least[0] <= most[0] && least[1] <= most[1] && Sum(least[0], least[1]) <= total_most &&
         total_least <= total_most && Sum(most[0], most[1]) >= total_least;
}

Uniqueness::Plan Uniqueness::PlanOf(const Counting& counting, const Frame& frame, uint64_t more,
                                    std::optional<bool> next) {
  Plan plan;
  for (const int v : {0, 1}) plan.most[v] = LeftIn(counting.cells[v], frame.items);
  plan.total_least = std::max(Less(counting.min_items, frame.count), more);
  plan.total_most = Less(counting.max_items, frame.count);
  if (counting.has_contains) {
    const ArrayAtom& array = table_.array(counting.contains_atom);
    uint64_t matched = 0;
    for (const auto& [atom, count] : frame.contained) {
      if (atom == counting.contains_atom) matched = count;
    }
    plan.least[1] = Less(array.min_contains, matched);
    if (matched > array.max_contains) plan.total_most = 0, plan.total_least = 1;
    plan.most[1] = std::min(plan.most[1], Less(array.max_contains, matched));
    if (next) plan.least[*next ? 1 : 0] = std::max<uint64_t>(plan.least[*next ? 1 : 0], 1);
  }
  return plan;
}

bool Uniqueness::HasToTry(const Frame& frame) {
  return frames_.NeedsCanonicalItems(frame) && !frames_.PlainUnique(frame) &&
         CountingOf(frame) == nullptr;
}

std::optional<bool> Uniqueness::CanFinish(const Frame& frame, uint64_t more,
                                          std::optional<bool> next) {
  const Counting* const counting = CountingOf(frame);
  if (counting == nullptr) return std::nullopt;
  return PlanOf(*counting, frame, more, next).feasible();
}

std::vector<std::string> Uniqueness::Values(const Cell& cell, IdSets::Id items, size_t count) {
  if (cell.few == nullptr) return NewValues(cell.formula, items, count);
  std::vector<std::string> out;
  for (size_t i = 0; i < cell.few->items.size() && out.size() < count; ++i) {
    if (!frames_.items().Contains(items, cell.few->items[i])) out.push_back(cell.few->texts[i]);
  }
  return out;
}

std::optional<std::array<std::vector<std::string>, 2>> Uniqueness::ItemsFor(
    const Counting& counting, const Frame& frame) {
  const Plan plan = PlanOf(counting, frame, 0, std::nullopt);
  uint64_t count[2] = {plan.least[0], plan.least[1]};
  for (const int v : {0, 1}) {
    const uint64_t missing = Less(plan.total_least, Sum(count[0], count[1]));
    count[v] += std::min(missing, plan.most[v] - count[v]);
  }
  if (Sum(count[0], count[1]) > limits::kCountedItems) return std::nullopt;
  std::array<std::vector<std::string>, 2> out;
  for (const size_t v : {0, 1}) {
    if (count[v] == 0) continue;
    out[v] = Values(counting.cells[v], frame.items, count[v]);
    if (out[v].size() < count[v]) return std::nullopt;
  }
  return out;
}

std::optional<std::string> Uniqueness::Joined(const std::array<std::vector<std::string>, 2>& items,
                                              size_t max_size) {
  std::string text;
  for (const std::vector<std::string>& cell : items) {
    for (const std::string& value : cell) {
      AddToList(text, value);
      if (text.size() > max_size) return std::nullopt;
    }
  }
  return text;
}

std::optional<std::string> Uniqueness::Finish(const Frame& frame, size_t max_size) {
  const Counting* const counting = CountingOf(frame);
  if (counting == nullptr) return std::nullopt;
  const auto items = ItemsFor(*counting, frame);
  return items ? Joined(*items, max_size) : std::nullopt;
}

std::optional<Uniqueness::Finished> Uniqueness::FinishAsWritten(const Frame& frame,
                                                                size_t max_size) {
  const Counting* const counting = CountingOf(frame);
  if (counting == nullptr || !PlanOf(*counting, frame, 0, std::nullopt).feasible())
    return std::nullopt;
  const auto items = ItemsFor(*counting, frame);
  if (!items) return std::nullopt;
  Finished out;
  for (const size_t v : {0, 1}) {
    const Cell& cell = counting->cells[v];
    if ((*items)[v].empty()) continue;
    if (cell.few != nullptr && !cell.few->as_written) return std::nullopt;
    // Objects and arrays have an order of keys of their own.
    const char first = (*items)[v][0][0];
    if (cell.few == nullptr && (first == '{' || first == '['))
      out.samples.push_back((*items)[v][0]);
  }
  auto text = Joined(*items, max_size);
  if (!text) return std::nullopt;
  out.text = *std::move(text);
  return out;
}

std::optional<std::string> Uniqueness::NextItem(const Frame& frame) {
  const Counting* const counting = CountingOf(frame);
  if (counting == nullptr) return std::nullopt;
  if (!counting->has_contains) {
    // The demand on the item knows the few that are left.
    if (frame.items == IdSets::kEmpty || !counting->cells[0].endless) return std::nullopt;
  }
  for (const bool next : {false, true}) {
    if (next && !counting->has_contains) continue;
    if (!PlanOf(*counting, frame, 1, next).feasible()) continue;
    std::vector<std::string> values = Values(counting->cells[next ? 1 : 0], frame.items, 1);
    if (!values.empty()) return std::move(values[0]);
  }
  return std::nullopt;
}

// Whole numbers on a side without a bound: whatever the divisors, digits lead to endless multiples.
// Fractions: where there is no divisor either.
bool Uniqueness::GrowsFreely(FormulaId number, const std::string& text) {
  const bool negative = text[0] == '-', fraction = text.find('.') != std::string::npos;
  if (text == "0" || text == "-0" ||
      text.find_first_not_of("0123456789.", negative ? 1 : 0) != std::string::npos ||
      !table_.formulas.IsConjunction(number))
    return false;
  return std::ranges::all_of(table_.formulas.MustAtoms(number), [&](AtomId id) {
    const NumberAtom& atom = table_.number(id);
    const NumberConstraint& is = atom.constraint;
    if (fraction && (is.integer || is.integer_text || is.multiple_of)) return false;
    return atom.values.empty() && !(negative ? is.minimum : is.maximum).has_value();
  });
}

// Any one number that can grow for ever is enough, or a string.
bool Uniqueness::PlentifulScalars(FormulaId formula) {
  FormulaArena& formulas = table_.formulas;
  const Goal goal{formula, {}, kNoFrame};
  if (formulas.ForKind(formula, kStringValue) != kFalseFormula) {
    StringSearch& search = scalars_.String(goal);
    const StringSearch::StateId start = search.program().start();
    if (search.Live(start) && Endless(search, start)) return true;
  }
  const FormulaId number = formulas.ForKind(formula, kNumberValue);
  if (number == kFalseFormula) return false;
  if (GrowsFreely(number, "1") || GrowsFreely(number, "-1")) return true;
  NumberProgram* const program = scalars_.Number(goal);
  if (program == nullptr) return false;
  const auto grows = [&](const std::string& text) {
    return Endless(*program, program->After(text), text, false);
  };
  for (const char* text : {"1", "9", "0.", "-1", "-9", "-0."}) {
    if (grows(text)) return true;
  }
  const auto shortest =
      program->Live(program->start()) ? program->Shortest(program->start()) : std::nullopt;
  return shortest && grows(*shortest);
}

bool Uniqueness::Unbounded(FormulaId formula) {
  if (const auto it = plentiful_.find(formula); it != plentiful_.end()) return it->second;
  bool final = true;
  bool endless = PlentifulScalars(formula);
  plentiful_[formula] = endless;  // while it is looked for: a value that holds itself is none
  for (const Kind kind : {kObjectValue, kArrayValue}) {
    if (!endless) endless = FreePlaceOf(formula, kind, final).has_value();
  }
  if (!final && !endless) {
    plentiful_.erase(formula);
  } else {
    plentiful_[formula] = endless;
  }
  return endless;
}

// Where nothing that the formula asks for looks at a member (or an item), and that can be any of
// endless values, there are endless containers. What has to fail fails without it.
std::optional<Uniqueness::FreePlace> Uniqueness::FreePlaceOf(FormulaId formula, Kind kind,
                                                             bool& final) {
  FormulaArena& formulas = table_.formulas;
  const FormulaId f = formulas.ForKind(formula, kind);
  if (f == kFalseFormula) return std::nullopt;
  bool complete = true;
  const std::vector<Cube> cubes = formulas.Cubes(f, 1, complete);
  if (!complete || cubes.size() != 1) return std::nullopt;
  const FormulaId of_kind = formulas.And(f, formulas.Kinds(KindBit(kind)));
  std::optional<FreePlace> place =
      kind == kObjectValue ? FreeMemberOf(f, cubes[0]) : FreeItemOf(cubes[0]);
  if (!place || !solver_.HasValue(of_kind, final)) return std::nullopt;
  // Some value has to have the place, with one of its endless values there.
  const auto sample = ValuesOf(place->demand, 1);
  if (sample.values.empty() ||
      !solver_.HasValue(formulas.And(of_kind, WithValueAt(kind, *place, sample.values[0].first)),
                        final))
    return std::nullopt;
  return place;
}

std::optional<Uniqueness::FreePlace> Uniqueness::FreeMemberOf(FormulaId formula, const Cube& cube) {
  const FrameId id = frames_.Open(kObjectValue, {formula, {}, kNoFrame});
  if (id == kNoFrame) return std::nullopt;
  const ObjectLayout& layout = frames_.layout(frames_[id].layout);
  for (const AtomId atom : cube.positive) {
    if (table_.object(atom).max_properties != kUnbounded) return std::nullopt;
  }
  const auto free_at = [&](const std::string& name, StringProgram::StateId state,
                           int rank) -> std::optional<FreePlace> {
    const auto demand_of = [&](AtomId atom) {
      return frames_.PropertyDemand(layout, atom, *layout.program, state, rank);
    };
    const auto looks_at = [&](AtomId atom) {
      return demand_of(atom) != kTrueFormula || table_.object(atom).min_properties > 0 ||
             (rank >= 0 && std::ranges::binary_search(frames_.Required(layout, atom),
                                                      layout.name_ids[static_cast<size_t>(rank)]));
    };
    if (std::ranges::any_of(cube.negative, looks_at)) return std::nullopt;
    FormulaId demand = kTrueFormula;
    for (const AtomId atom : cube.positive) demand = table_.formulas.And(demand, demand_of(atom));
    if (!PlentifulScalars(demand)) return std::nullopt;
    return FreePlace{demand, name};
  };
  for (size_t rank = 0; rank < layout.names.size(); ++rank) {
    if (auto place = free_at(layout.names[rank], layout.name_states[rank], static_cast<int>(rank)))
      return place;
  }
  // Some key that no schema names.
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const std::string name(1, letter);
    if (layout.rank_of.contains(frames_.InternName(name))) continue;
    StringProgram& program = *layout.program;
    const auto state =
        program.Next(program.start(), program.ClassOf(static_cast<char32_t>(letter)));
    return free_at(name, state, -1);
  }
  return std::nullopt;
}

std::optional<Uniqueness::FreePlace> Uniqueness::FreeItemOf(const Cube& cube) {
  if (!cube.negative.empty()) return std::nullopt;
  FormulaId demand = kTrueFormula;
  for (const AtomId atom : cube.positive) {
    if (table_.array(atom).has_contains) return std::nullopt;
    demand = table_.formulas.And(demand, frames_.AnyItemDemand(atom, 0));
  }
  if (!PlentifulScalars(demand)) return std::nullopt;
  return FreePlace{demand, ""};
}

FormulaId Uniqueness::WithValueAt(Kind kind, const FreePlace& place, const std::string& text) {
  const auto value = json::Parse(text);
  const auto constant = value.ok() ? ConstantFormula(table_, *value) : kFalseFormula;
  if (!constant.ok()) return kFalseFormula;
  if (kind == kArrayValue) {
    ArrayAtom atom;
    atom.prefix.push_back(*constant);
    atom.min_items = 1;
    return table_.AddArray(std::move(atom));
  }
  ObjectAtom atom;
  atom.properties.emplace_back(place.name, *constant);
  atom.required.push_back(place.name);
  return table_.AddObject(std::move(atom));
}

const Uniqueness::Listed& Uniqueness::ValuesOf(FormulaId formula, size_t wanted) {
  if (listed_.size() > limits::kValueLists) listed_.clear();
  Listed& listed = listed_[formula];
  if (listed.wanted >= wanted) return listed;
  const size_t want = 2 * wanted;
  Listed found{want, {}};
  FormulaArena& formulas = table_.formulas;
  const Goal goal{formula, {}, kNoFrame};
  std::set<uint32_t> known;
  const auto add = [&](std::string text) {
    const auto value = json::Parse(text);
    if (!value.ok()) return;
    const uint32_t item = frames_.InternItem(CanonicalText(*value));
    if (known.insert(item).second) found.values.emplace_back(std::move(text), item);
  };
  if (formulas.ForKind(formula, kNumberValue) != kFalseFormula) {
    // Some texts only spell a value with other digits.
    if (NumberProgram* program = scalars_.Number(goal); program != nullptr) {
      for (std::string& text : Continuations(*program, program->start(), 2 * want))
        add(std::move(text));
    }
  }
  if (known.size() < want && formulas.ForKind(formula, kStringValue) != kFalseFormula) {
    StringSearch& search = scalars_.String(goal);
    if (search.Live(search.program().start())) {
      for (const std::u32string& text : Continuations(search, search.program().start(), want))
        add(json::Quote(EncodeCodepoints(text)));
    }
  }
  for (const Kind kind : {kObjectValue, kArrayValue}) {
    bool final = true;
    if (known.size() >= want || !Unbounded(formula)) break;
    const auto place = FreePlaceOf(formula, kind, final);
    if (!place) continue;
    const FormulaId of_kind = formulas.And(formula, formulas.Kinds(KindBit(kind)));
    for (const auto& [text, item] : std::vector(ValuesOf(place->demand, want).values)) {
      if (known.size() >= want) break;
      if (auto one =
              solver_.Value(formulas.And(of_kind, WithValueAt(kind, *place, text)), true).text)
        add(*std::move(one));
    }
  }
  return listed_[formula] = std::move(found);
}

std::vector<std::string> Uniqueness::NewValues(FormulaId formula, IdSets::Id items, size_t count) {
  std::vector<std::string> out;
  for (const auto& [text, item] : ValuesOf(formula, count + frames_.items().Size(items)).values) {
    if (out.size() >= count) break;
    if (!frames_.items().Contains(items, item)) out.push_back(text);
  }
  return out;
}

}  // namespace pawl::schema
