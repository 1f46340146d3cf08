// uniqueItems. Where values have no end an array can always be completed, whatever stands in it,
// and only a text that shows it has to look at the items at all. What look-ahead needs to know of
// single items (Tight) is which of them could be run into: a value all of whose beginnings have
// endless other continuations never traps anybody. Where there are few values, those of an enum, it
// is enough to count the ones that are left.
#include <algorithm>
#include <numeric>
#include <set>

#include "schemas/formula/constant.h"
#include "schemas/solve/solver.h"
#include "schemas/unique/distinct.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {
// Arrays and objects that are counted, and all kept apart: each makes all others dearer.
constexpr size_t kMaxApart = 256;
constexpr size_t kMaxListed = 1000;  // demands of which the first values are kept
}  // namespace
bool Solver::Plentiful(FormulaId formula) {
  const auto [it, fresh] = plentiful_.try_emplace(formula, false);
  if (!fresh) return it->second;
  FormulaArena& formulas = table_.formulas;
  const Goal goal{formula, {}, kNoFrame};
  bool endless = false;
  if (formulas.ForKind(formula, kStringValue) != kFalseFormula) {
    StringSearch& search = scalars_.String(goal);
    const StringSearch::StateId start = search.program().start();
    endless = search.Live(start) && Endless(search, start);
  }
  if (!endless && formulas.ForKind(formula, kNumberValue) != kFalseFormula) {
    if (NumberProgram* program = scalars_.Number(goal); program != nullptr) {
      // Any one number that can grow for ever is enough.
      for (const char* text : {"1", "9", "0."}) {
        NumberProgram::StateId state = program->start();
        for (const char* c = text; *c != 0 && state != 0; ++c) state = program->Step(state, *c);
        endless = endless || Endless(*program, state, text, false);
      }
    }
  }
  return plentiful_[formula] = endless;
}

Frames::Tightness Solver::Tight(FormulaId formula, const std::string& canonical) {
  using Tightness = Frames::Tightness;
  const auto value = json::Parse(canonical);
  if (!value.ok()) return Tightness::kHard;
  FormulaArena& formulas = table_.formulas;
  const Goal goal{formula, {}, kNoFrame};
  if (value->type == json::Type::kString) {
    if (formulas.ForKind(formula, kStringValue) == kFalseFormula) return Tightness::kNone;
    StringSearch& search = scalars_.String(goal);
    StringSearch::StateId state = search.program().start();
    for (const char32_t c : DecodeCodepoints(value->text)) {
      state = search.program().Next(state, search.program().ClassOf(c));
      if (!search.Live(state)) return Tightness::kNone;  // not a value that could come
    }
    return Endless(search, state) ? Tightness::kNone : Tightness::kHard;
  }
  if (value->type == json::Type::kArray || value->type == json::Type::kObject) {
    const FewValues* const few = FewValuesOf(formula);
    return few != nullptr && few->items.size() <= kMaxApart ? Tightness::kHard : Tightness::kSoft;
  }
  if (value->type != json::Type::kNumber) return Tightness::kHard;
  const FormulaId number = formulas.ForKind(formula, kNumberValue);
  if (number == kFalseFormula) return Tightness::kNone;
  NumberProgram* program = scalars_.Number(goal);
  if (program == nullptr || canonical == "0") return Tightness::kHard;
  NumberProgram::StateId state = program->start();
  for (const char c : canonical) {
    state = program->Step(state, c);
    if (state == 0) return Tightness::kHard;
  }
  // Where a condition forbids fractions, spellings such as "5." or "50e-" lead to the one value.
  const bool one_spelling =
      number == kTrueFormula || (options_.canonical_spelling && !options_.allow_exponents);
  if (!Endless(*program, state, canonical, one_spelling)) return Tightness::kHard;
  return one_spelling ? Tightness::kNone : Tightness::kSoft;
}

const Solver::Listed& Solver::ValuesOf(FormulaId formula, size_t wanted) {
  if (listed_.size() > kMaxListed) listed_.clear();
  Listed& listed = listed_[formula];
  if (listed.wanted >= wanted) return listed;
  listed.wanted = 2 * wanted;
  listed.values.clear();
  FormulaArena& formulas = table_.formulas;
  const Goal goal{formula, {}, kNoFrame};
  std::set<uint32_t> known;
  const auto add = [&](std::string text) {
    const auto value = json::Parse(text);
    if (!value.ok()) return;
    const uint32_t item = frames_.InternItem(CanonicalText(*value));
    if (known.insert(item).second) listed.values.emplace_back(std::move(text), item);
  };
  if (formulas.ForKind(formula, kNumberValue) != kFalseFormula) {
    // Some texts only spell a value in another way.
    if (NumberProgram* program = scalars_.Number(goal); program != nullptr) {
      for (std::string& text : Continuations(*program, program->start(), 2 * listed.wanted))
        add(std::move(text));
    }
  }
  if (known.size() < listed.wanted && formulas.ForKind(formula, kStringValue) != kFalseFormula) {
    StringSearch& search = scalars_.String(goal);
    if (search.Live(search.program().start())) {
      for (const std::u32string& text :
           Continuations(search, search.program().start(), listed.wanted)) {
        add(json::Quote(EncodeCodepoints(text)));
      }
    }
  }
  return listed;
}

std::vector<std::string> Solver::NewValues(FormulaId formula, IdSets::Id items, size_t count) {
  std::vector<std::string> out;
  for (const auto& [text, item] : ValuesOf(formula, count + frames_.items().Size(items)).values) {
    if (out.size() >= count) break;
    if (!frames_.items().Contains(items, item)) out.push_back(text);
  }
  return out;
}

std::optional<Solver::FewLeft> Solver::FewLeftIn(const Frame& frame) {
  if (!frames_.PlainUnique(frame)) return std::nullopt;
  FormulaId demand = kTrueFormula;
  for (const AtomId atom : table_.formulas.MustAtoms(frame.must)) {
    const ArrayAtom& array = table_.array(atom);
    if (array.prefix.size() > frame.count) return std::nullopt;
    demand = table_.formulas.And(demand, array.items);
  }
  FewValues* const values = FewValuesOf(demand);
  if (values == nullptr) return std::nullopt;
  std::vector<IdSets::Id> way;
  size_t taken = 0;
  for (IdSets::Id set = frame.items; set != IdSets::kEmpty; set = frames_.items().Before(set)) {
    if (const auto known = values->taken.find(set); known != values->taken.end()) {
      taken = known->second;
      break;
    }
    way.push_back(set);
  }
  for (auto it = way.rbegin(); it != way.rend(); ++it) {
    taken += std::ranges::binary_search(values->items, frames_.items().Last(*it)) ? 1 : 0;
    values->taken.emplace(*it, taken);
  }
  return FewLeft{values, values->items.size() - taken};
}

std::optional<Found> Solver::SolveUnique(const Frame& frame, FormulaId item, uint64_t items) {
  if (!Plentiful(item)) return std::nullopt;
  if (!want_text_ || items > kMaxWitness) return Found{Answer::kYes, std::nullopt};
  const std::vector<std::string> values = NewValues(item, frame.items, items);
  if (values.size() < items) return Found{Answer::kYes, std::nullopt};
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  if (text.size() > kMaxWitness) return Found{Answer::kYes, std::nullopt};
  return Found{Answer::kYes, std::move(text)};
}

}  // namespace pawl::schema
