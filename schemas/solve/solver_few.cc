// Values that can be counted: those of an enum, the numbers between two near bounds, short tuples
// and closed objects of such. They are listed one by one, to a budget; where that ends within it,
// what is left of them under uniqueItems is known, and so is what a frame can still become where
// conditions on arrays and objects are combined such that greedy planning fails.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/number/number_set.h"
#include "schemas/solve/distinct.h"
#include "schemas/solve/solver.h"
#include "src/base/json.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {
bool Solver::ListStrings(StringSearch& search, std::set<std::u32string>& out) {
  std::vector<std::u32string> texts;
  const auto within = [this](size_t steps, size_t) {
    return steps <= limits::kListedValues && (few_steps_ -= 8) >= 0;
  };
  const bool all = ListTexts(search, within, texts);
  out.insert(texts.begin(), texts.end());
  return all;
}

std::optional<std::set<std::u32string>> Solver::AllStrings(StringSearch& search) {
  const bool outermost = few_depth_ == 0;
  if (outermost) few_steps_ = std::min<int64_t>(limits::kListingSteps, few_total_);
  const int64_t steps_before = few_steps_;
  std::set<std::u32string> out;
  const bool all = ListStrings(search, out);
  if (outermost) few_total_ -= steps_before - few_steps_;
  if (!all) return std::nullopt;
  return out;
}

bool Solver::ListNumbers(NumberProgram& program, std::set<std::string>& out) {
  std::vector<std::pair<NumberProgram::StateId, std::string>> queue;
  if (program.Live(program.start())) queue.emplace_back(program.start(), "");
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto [state, text] = queue[i];
    // "-0" is a number too, but not the way to write it.
    if (program.Accepts(state)) out.insert(text == "-0" ? "0" : text);
    if (queue.size() > limits::kListedValues || (few_steps_ -= 2) < 0) return false;
    for (const char c : std::string_view("0123456789.-eE+")) {
      const NumberProgram::StateId next = program.Step(state, c);
      if (next != 0 && program.Live(next)) queue.emplace_back(next, text + c);
    }
  }
  return true;
}

// Calls fn(text, frame after) for each value that may come in the pending place, until it returns
// true; `wanted`: only those with these outcomes. False: there are others that were not listed.
template <typename Fn>
bool Solver::EachValue(FrameId pending, const Fn& fn, const std::vector<bool>* wanted) {
  if (pending == kNoFrame) return true;
  const Goal goal = frames_.PendingGoal(pending);
  const FewValues* few = FewValuesOf(goal.must);
  if (few == nullptr && !goal.tracks.empty()) {
    // A value that fits nothing which is waited for may be no way on.
    const FrameId failed = frames_.AfterValue(pending, std::vector<bool>(goal.tracks.size()));
    if (failed == kNoFrame || Container(failed) == Answer::kNo)
      few = FewValuesOf(table_.formulas.And(goal.must, table_.formulas.Or(goal.tracks)));
  }
  if (few == nullptr) return Value(goal.must).answer == Answer::kNo;
  few_as_written_ = few_as_written_ && few->as_written;
  for (size_t i = 0; i < few->items.size(); ++i) {
    if (--few_steps_ < 0) return false;
    StopScope::Step();
    const std::string canonical = frames_.ItemText(few->items[i]);
    std::vector<bool> truth;
    if (!goal.tracks.empty()) {
      const auto value = json::Parse(few->texts[i]);
      if (!value.ok()) return false;
      for (const FormulaId track : goal.tracks) {
        const int holds = Holds(track, *value);
        if (holds < 0) return false;
        truth.push_back(holds == 1);
      }
    }
    if (wanted != nullptr && truth != *wanted) continue;
    const FrameId after = frames_.AfterValue(pending, truth, &canonical);
    if (after != kNoFrame && fn(few->texts[i], after)) return true;
  }
  return true;
}

// The same for each member or item that may come next in the frame, with the place from which on
// named keys may follow; they are not looked at before `rank`.
template <typename Fn>
bool Solver::EachNext(FrameId id, size_t rank, const Fn& fn) {
  const Frame frame = frames_[id];
  if (frame.kind == kArrayValue) {
    return EachValue(frames_.WithItem(id), [&](const std::string& text, FrameId after) {
      return fn(text, after, size_t{0});
    });
  }
  const ObjectLayout& layout = frames_.layout(frame.layout);
  if (layout.has_key_conditions) return false;
  StringProgram& program = *layout.program;
  bool all = true, stopped = false;
  for (; rank < layout.names.size() && !stopped; ++rank) {
    const FrameId pending = frames_.WithKey(id, program, layout.name_states[rank],
                                            static_cast<int>(rank), layout.name_ids[rank]);
    const std::string key = json::Quote(layout.names[rank]) + ":";
    const bool listed = EachValue(pending, [&](const std::string& text, FrameId after) {
      return stopped = fn(key + text, after, rank + 1);
    });
    all = all && listed;
  }
  return stopped || (all && !OtherKeysMayCome(id));
}

// Keys that stand in no list.
bool Solver::OtherKeysMayCome(FrameId id) {
  StringProgram& program = *frames_.layout(frames_[id].layout).program;
  const FrameId other = frames_.WithKey(id, program, program.start(), -1, kAnyName);
  return other != kNoFrame && LivePending(other);
}

// Of many conditions each step would ask for all. Constants are but compared.
bool Solver::HasFewAtoms(FrameId id) {
  const Frame& frame = frames_[id];
  const std::vector<AtomId> atoms = frames_.Atoms(frame);
  return std::ranges::count_if(atoms, [&](AtomId a) {
           return (frame.kind == kArrayValue ? table_.array(a).constant : table_.object(a).constant)
               .empty();
         }) <= limits::kTriedConditions;
}

// With what is known of the items: LivePending without it.
std::optional<bool> Solver::LiveUnique(FrameId pending, const std::vector<bool>* wanted) {
  if (few_depth_ >= limits::kTryingDepth || search_total_ <= 0 || !HasFewAtoms(pending))
    return std::nullopt;
  if (few_depth_++ == 0) few_steps_ = std::min(limits::kTryingSteps, search_total_);
  const int64_t steps = few_steps_;
  bool live = false;
  const bool all = EachValue(
      pending, [&](const std::string&, FrameId after) { return live = Live(after); }, wanted);
  if (--few_depth_ == 0) search_total_ -= steps - few_steps_;
  if (live || all) return live;
  return std::nullopt;
}

bool Solver::ListContainers(FrameId id, const std::string& text, size_t rank,
                            std::vector<std::string>& out) {
  if (--few_steps_ < 0 || out.size() > limits::kListedValues || few_depth_ >= limits::kTryingDepth)
    return false;
  // Asked before the values of thousands of members are listed in vain.
  if (frames_[id].kind == kObjectValue && OtherKeysMayCome(id)) return false;
  std::vector<bool> truth;
  if (frames_.EndTruth(frames_[id], truth)) out.push_back(text + (text[0] == '[' ? ']' : '}'));
  bool all = true;
  const bool listed = EachNext(id, rank, [&](const std::string& next, FrameId after, size_t from) {
    if (Container(after) == Answer::kNo) return false;
    ++few_depth_;
    all = ListContainers(after, text + (text.size() > 1 ? "," : "") + next, from, out);
    --few_depth_;
    return !all;
  });
  return listed && all;
}

const KeyKinds* Solver::KindsOf(uint32_t layout) {
  const auto [it, fresh] = kinds_.try_emplace(layout);
  if (fresh) it->second = KeyKinds::Of(frames_, frames_.layout(layout), options_.step_fuel / 8);
  return it->second.get();
}

NameId Solver::StandIn(FrameId id, const StringProgram& program, StringProgram::StateId state) {
  const Frame& frame = frames_[id];
  const ObjectLayout& layout = frames_.layout(frame.layout);
  if (!layout.has_key_conditions ||
      (frame.tracks.empty() && table_.formulas.IsConjunction(frame.must)))
    return kAnyName;
  const KeyKinds* const kinds = KindsOf(frame.layout);
  return kinds == nullptr ? kAnyName : kinds->StandIn(frames_, frame, layout, program, state);
}

template <typename Fn>
bool Solver::EachMember(FrameId id, size_t place, const Fn& fn) {
  const Frame frame = frames_[id];
  const ObjectLayout& layout = frames_.layout(frame.layout);
  bool all = true, stopped = false;
  const auto try_key = [&](const std::string& key, StringProgram::StateId state, int rank,
                           NameId name, size_t next) {
    const FrameId pending = frames_.WithKey(id, *layout.program, state, rank, name);
    if (pending == kNoFrame) return;
    const bool complete =
        EachOutcome(pending, [&](const std::vector<bool>& truth, const auto& formula) {
          if (--few_steps_ < 0) {
            all = false;
            return true;
          }
          const FrameId after = frames_.AfterValue(pending, truth);
          if (after == kNoFrame) return false;
          const Found value = Value(formula(), want_text_);
          const bool told = value.text || !want_text_;
          if (value.answer == Answer::kYes && told) {
            stopped = fn(want_text_ ? json::Quote(key) + ":" + *value.text : "", after, next);
          } else if (value.answer != Answer::kNo) {
            all = false;
          }
          return stopped;
        });
    all = all && complete;
  };
  const size_t named = layout.names.size();
  for (; place < named && !stopped; ++place)
    try_key(layout.names[place], layout.name_states[place], static_cast<int>(place),
            layout.name_ids[place], place + 1);
  const KeyKinds* const kinds = stopped ? nullptr : KindsOf(frame.layout);
  if (kinds == nullptr) return stopped;
  for (; place - named < kinds->kinds().size() && !stopped; ++place) {
    const KeyKinds::Kind& kind = kinds->kinds()[place - named];
    size_t k = 0;
    while (k < kind.names.size() && frames_.Seen(frame, kind.names[k])) ++k;
    if (k < kind.names.size()) {
      try_key(kind.keys[k], kind.state, -1, kind.names[k], place);
    } else {
      all = all && kind.all;
    }
  }
  return stopped || all;
}

Found Solver::SearchFew(FrameId id, size_t rank, Searched& known) {
  if (Closable(id)) return {Answer::kYes, ""};
  if (const auto it = known.find({id, rank}); it != known.end() && it->second == Answer::kNo)
    return {Answer::kNo, std::nullopt};
  if (few_depth_ >= limits::kTryingDepth) return {Answer::kUnknown, std::nullopt};
  Found best{Answer::kNo, std::nullopt};
  const auto next = [&](const std::string& text, FrameId after, size_t from) {
    ++few_depth_;
    Found rest = SearchFew(after, from, known);
    --few_depth_;
    if (rest.answer == Answer::kYes && rest.text) {
      best = {Answer::kYes, text + (rest.text->empty() ? "" : "," + *rest.text)};
    } else if (rest.answer == Answer::kUnknown) {
      best.answer = Answer::kUnknown;
    }
    return best.answer == Answer::kYes;
  };
  bool all = frames_[id].kind == kObjectValue && EachMember(id, rank, next);
  if (!all) {
    // The values themselves, which say more where nothing is said of how they come out.
    best.answer = Answer::kNo;
    all = EachNext(id, rank, next);
  }
  if (best.answer == Answer::kNo && !all) best.answer = Answer::kUnknown;
  known[{id, rank}] = best.answer;
  return best;
}

Found Solver::Few(FrameId id) {
  if (few_depth_ >= limits::kTryingDepth || search_total_ <= 0 || !HasFewAtoms(id))
    return {Answer::kUnknown, std::nullopt};
  if (few_depth_++ == 0) few_steps_ = std::min(limits::kTryingSteps, search_total_);
  const int64_t steps = few_steps_;
  Searched known;
  Found found = SearchFew(id, 0, known);
  if (--few_depth_ == 0) search_total_ -= steps - few_steps_;
  if (!want_text_ || (found.text && found.text->size() > limits::kTextBytes)) found.text.reset();
  return found;
}

// 1, 0, or -1 where that cannot be said.
int Solver::Holds(FormulaId formula, const json::Value& value) {
  FormulaArena& formulas = table_.formulas;
  const auto both = [](int a, int b) { return a == 0 || b == 0 ? 0 : std::min(a, b); };
  const FormulaId f = formulas.ForKind(formula, KindOf(value));
  if (formulas.IsConstant(f)) return f == kTrueFormula ? 1 : 0;
  if (value.type == json::Type::kString) {
    const auto program = scalars_.Program(formulas.Atoms(f));
    const StringProgram::StateId state = program->After(DecodeCodepoints(value.text));
    return formulas.Evaluate(f, [&](AtomId a) { return program->Truth(state, a); }) ? 1 : 0;
  }
  if (value.type == json::Type::kNumber) {
    NumberProgram* const program = scalars_.Number({f, {}, kNoFrame});
    // An exponent is how long numbers are written here, not how the program reads them.
    if (program == nullptr || value.text.find_first_of("eE") != std::string::npos) return -1;
    const NumberProgram::StateId state = program->After(value.text);
    return state != 0 && program->Accepts(state) ? 1 : 0;
  }
  if (value.type == json::Type::kArray) {
    return formulas.EvaluatePartly(f, [&](AtomId id) {
      const ArrayAtom& atom = table_.array(id);
      const size_t size = value.items.size();
      if (!atom.constant.empty()) return atom.constant == CanonicalText(value) ? 1 : 0;
      if (size < atom.min_items || size > atom.max_items) return 0;
      int holds = 1;
      uint64_t least = 0, most = 0;
      std::set<std::string> texts;
      for (size_t i = 0; i < size && holds != 0; ++i) {
        const json::Value& item = value.items[i];
        holds = both(holds, Holds(i < atom.prefix.size() ? atom.prefix[i] : atom.items, item));
        if (atom.unique && !texts.insert(CanonicalText(item)).second) holds = 0;
        if (!atom.has_contains) continue;
        const int match = Holds(atom.contains, item);
        least += match == 1 ? 1 : 0;
        most += match != 0 ? 1 : 0;
      }
      if (holds == 0 || !atom.has_contains) return holds;
      if (most < atom.min_contains || least > atom.max_contains) return 0;
      return least >= atom.min_contains && most <= atom.max_contains ? holds : -1;
    });
  }
  return formulas.EvaluatePartly(f, [&](AtomId id) {
    const ObjectAtom& atom = table_.object(id);
    if (!atom.constant.empty()) return atom.constant == CanonicalText(value) ? 1 : 0;
    if (value.members.size() < atom.min_properties || value.members.size() > atom.max_properties)
      return 0;
    for (const std::string& name : atom.required) {
      if (value.Find(name) == nullptr) return 0;
    }
    int holds = 1;
    for (const auto& [name, member] : value.members) {
      json::Value key;
      key.type = json::Type::kString;
      key.text = name;
      holds = both(holds, Holds(atom.property_names, key));
      bool matched = false;
      for (const auto& [other, demand] : atom.properties) {
        if (other != name) continue;
        matched = true;
        holds = both(holds, Holds(demand, member));
      }
      for (const ObjectAtom::Pattern& pattern : atom.patterns) {
        const int match = Holds(pattern.name, key);
        if (match == 0) continue;
        matched = true;
        holds = both(holds, match < 0 ? -1 : Holds(pattern.value, member));
      }
      if (!matched) holds = both(holds, Holds(atom.additional, member));
      if (holds == 0) return 0;
    }
    return holds;
  });
}

FewValues* Solver::FewValuesOf(FormulaId formula) {
  const auto [it, fresh] = few_.try_emplace(formula);
  if (!fresh) return it->second.get();
  if (few_depth_ >= limits::kTryingDepth) return nullptr;
  // One budget for all that is listed on the way.
  const bool outermost = few_depth_ == 0;
  if (outermost) few_steps_ = std::min<int64_t>(limits::kListingSteps, few_total_);
  const int64_t steps_before = few_steps_;
  ++few_depth_;
  const int outer_reused = lowest_reused_;
  lowest_reused_ = INT32_MAX;
  std::unique_ptr<FewValues> values = ListValues(formula);
  // What is said of a formula that is being solved further up holds on this way only.
  if (lowest_reused_ != INT32_MAX) values = nullptr;
  lowest_reused_ = std::min(outer_reused, lowest_reused_);
  --few_depth_;
  if (outermost) few_total_ -= steps_before - few_steps_;
  return (few_[formula] = std::move(values)).get();
}

// The values of a formula one by one; each step is false where they are not known to be few.
class Solver::ValueList {
 public:
  ValueList(Solver& solver, FormulaId formula)
      : solver_(solver), table_(solver.table_), formula_(formula) {}

  bool AddContainers(Kind kind);
  bool AddStrings();
  bool AddNumbers();
  void AddLiterals();
  // In the order of their items, each once, and by kind.
  std::unique_ptr<FewValues> Sorted();

 private:
  FormulaId Of(Kind kind) { return table_.formulas.ForKind(formula_, kind); }
  // "What the formula says of the kind, and nothing but that kind."
  bool Unbounded(Kind kind) {
    FormulaArena& formulas = table_.formulas;
    return solver_.unique_.Unbounded(formulas.And(Of(kind), formulas.Kinds(KindBit(kind))));
  }
  // Nothing but what stands in a list fits.
  template <typename Listed>
  bool OnlyListed(Kind kind, const Listed& listed) {
    return table_.formulas.EvaluatePartly(Of(kind), [&](AtomId a) { return listed(a) ? 0 : -1; }) ==
           0;
  }
  bool AddComposite(Kind kind);
  void Add(std::string text);

  Solver& solver_;
  SchemaTable& table_;
  FormulaId formula_;
  FewValues out_;
};

void Solver::ValueList::Add(std::string text) {
  const auto value = json::Parse(text);
  if (!value.ok()) return;
  out_.items.push_back(solver_.frames_.InternItem(CanonicalText(*value)));
  out_.texts.push_back(std::move(text));
}

bool Solver::ValueList::AddComposite(Kind kind) {
  std::vector<std::string> composite;
  const FrameId frame = solver_.frames_.Open(kind, {Of(kind), {}, kNoFrame});
  if (frame == kNoFrame) return true;
  const bool outer_written = std::exchange(solver_.few_as_written_, true);
  const bool all = solver_.ListContainers(frame, kind == kArrayValue ? "[" : "{", 0, composite);
  const bool written = std::exchange(solver_.few_as_written_, outer_written);
  out_.as_written = out_.as_written && written;
  for (size_t i = 0; all && i < composite.size(); ++i) Add(std::move(composite[i]));
  return all;
}

bool Solver::ValueList::AddContainers(Kind kind) {
  FormulaArena& formulas = table_.formulas;
  const FormulaId f = Of(kind);
  if (formulas.IsConstant(f)) return f == kFalseFormula;
  const auto constant = [&](AtomId a) -> const std::string& {
    return kind == kArrayValue ? table_.array(a).constant : table_.object(a).constant;
  };
  const std::vector<AtomId> atoms = formulas.Atoms(f);
  const auto listed = [&](AtomId a) { return !constant(a).empty(); };
  if (!std::ranges::all_of(atoms, listed) || atoms.size() > limits::kEnumValues ||
      formulas.Evaluate(f, [](AtomId) { return false; }))
    return AddComposite(kind);
  std::map<std::string, AtomId> texts;
  for (const AtomId a : atoms) texts.emplace(constant(a), a);
  if (atoms.size() * texts.size() > limits::kTriedValues) return false;
  for (const auto& entry : texts) {
    const std::string& text = entry.first;
    if (!formulas.Evaluate(f, [&](AtomId a) { return constant(a) == text; })) continue;
    // Its members in their order, its numbers as they have to be spelled.
    const FormulaId only =
        formulas.And({formula_, formulas.Kinds(KindBit(kind)), formulas.Atom(entry.second, kind)});
    const Found& found = solver_.Value(only, true);
    if (!found.text) out_.as_written = false;
    Add(found.text ? *found.text : text);
  }
  return true;
}

void Solver::ValueList::AddLiterals() {
  if (Of(kNullValue) != kFalseFormula) Add("null");
  if (Of(kFalseValue) != kFalseFormula) Add("false");
  if (Of(kTrueValue) != kFalseFormula) Add("true");
}

bool Solver::ValueList::AddStrings() {
  if (Of(kStringValue) == kFalseFormula) return true;
  const auto listed = [&](AtomId a) {
    return table_.string(a).type == StringAtom::Type::kLiterals;
  };
  const Goal goal{formula_, {}, kNoFrame};
  std::set<std::u32string> texts;
  if (!OnlyListed(kStringValue, listed) &&
      (Unbounded(kStringValue) || !solver_.ListStrings(solver_.scalars_.String(goal), texts)))
    return false;
  const std::vector<AtomId> atoms = table_.formulas.Atoms(Of(kStringValue));
  for (const AtomId a : atoms) {
    if (listed(a)) texts.insert(table_.string(a).literals.begin(), table_.string(a).literals.end());
  }
  if (texts.size() > limits::kEnumValues) return false;
  const auto fits = [&](const std::u32string& text) {
    // Where there are nothing but lists no program has to read the text.
    if (std::ranges::all_of(atoms, listed)) {
      return table_.formulas.Evaluate(Of(kStringValue), [&](AtomId a) {
        return std::ranges::binary_search(table_.string(a).literals, text);
      });
    }
    StringSearch& search = solver_.scalars_.String(goal);
    return search.Accepts(search.program().After(text));
  };
  for (const std::u32string& text : texts) {
    if (fits(text)) Add(json::Quote(EncodeCodepoints(text)));
  }
  return true;
}

bool Solver::ValueList::AddNumbers() {
  if (Of(kNumberValue) == kFalseFormula) return true;
  NumberProgram* const program = solver_.scalars_.Number({formula_, {}, kNoFrame});
  if (program == nullptr) return false;
  std::set<std::string> texts;
  if (!OnlyListed(kNumberValue, [&](AtomId a) { return !table_.number(a).values.empty(); })) {
    if (Unbounded(kNumberValue) || !solver_.ListNumbers(*program, texts)) return false;
    out_.bounded = true;
  }
  for (const AtomId a : table_.formulas.Atoms(Of(kNumberValue))) {
    for (const Decimal& value : table_.number(a).values) texts.insert(NumberSet::Plain(value));
  }
  if (texts.size() > limits::kEnumValues) return false;
  for (const std::string& text : texts) {
    const NumberProgram::StateId state = program->After(text);
    if (state != 0 && program->Accepts(state)) Add(text);
  }
  return true;
}

std::unique_ptr<FewValues> Solver::ValueList::Sorted() {
  std::vector<size_t> order(out_.items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return out_.items[i]; });
  auto sorted = std::make_unique<FewValues>();
  sorted->as_written = out_.as_written;
  sorted->bounded = out_.bounded;
  for (const size_t i : order) {
    const uint32_t item = out_.items[i];
    if (!sorted->items.empty() && sorted->items.back() == item) continue;
    sorted->items.push_back(item);
    sorted->texts.push_back(std::move(out_.texts[i]));
    const auto value = json::Parse(solver_.frames_.ItemText(item));
    if (!value.ok()) return nullptr;
    if (value->type == json::Type::kNumber) {
      auto decimal = Decimal::Parse(value->text);
      if (!decimal.ok()) return nullptr;
      sorted->numbers.emplace_back(*std::move(decimal), item);
    } else if (value->type == json::Type::kString) {
      sorted->strings.emplace_back(DecodeCodepoints(value->text), item);
    } else if (value->type == json::Type::kArray || value->type == json::Type::kObject) {
      sorted->containers = true;
    } else {
      sorted->literals.emplace_back(KindOf(*value), item);
    }
  }
  return sorted;
}

std::unique_ptr<FewValues> Solver::ListValues(FormulaId formula) {
  ValueList list(*this, formula);
  if (!list.AddContainers(kArrayValue) || !list.AddContainers(kObjectValue)) return nullptr;
  list.AddLiterals();
  return list.AddStrings() && list.AddNumbers() ? list.Sorted() : nullptr;
}

std::optional<Uniqueness::Finished> Solver::CountedText(FrameId id) {
  return unique_.FinishAsWritten(Frame(frames_[id]), limits::kTextBytes);
}

}  // namespace pawl::schema
