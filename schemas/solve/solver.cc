// A value is solved kind by kind; a container by turning what is still undecided into cubes (atoms
// that have to hold, atoms that have to fail) and building the members or items that a cube needs.
// Purely positive cubes, which is what schemas without not/oneOf give, are decided exactly.
// Recursion is cut where a formula meets itself: a value that needs itself is no value (least
// fixpoint).
#include "schemas/solve/solver.h"

#include <algorithm>

#include "schemas/limits.h"
#include "src/base/json.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {

void Found::Improve(Found candidate) {
  const auto length = [](const Found& f) {
    return f.text ? f.text->size() : limits::kTextBytes + 1;
  };
  if (candidate.answer > answer || (candidate.answer == Answer::kYes && answer == Answer::kYes &&
                                    length(candidate) < length(*this))) {
    *this = std::move(candidate);
  }
}

Solver::Solver(Frames& frames, const JsonSchemaOptions& options)
    : frames_(frames),
      table_(frames.table()),
      options_(options),
      scalars_(table_, options,
               [this](FrameId frame, const std::vector<bool>& truth) {
                 return AroundAccepts(frame, truth);
               }),
      unique_(frames_, scalars_, options_, *this) {
  frames_.SetItemRules(&unique_);
}

const Found& Solver::Value(FormulaId formula, bool want_text) {
  StopScope::Step();
  if (const auto it = values_.find(formula);
      it != values_.end() && (it->second.with_text || !want_text)) {
    return it->second.found;
  }
  if (const auto it = solving_.find(formula); it != solving_.end()) {
    lowest_reused_ = std::min(lowest_reused_, it->second);
    return kNothing;
  }
  if (depth_ >= limits::kSolverDepth) {
    lowest_reused_ = 0;
    return kOpen;
  }
  if (depth_ == 0) fuel_ = options_.step_fuel;
  if (!Spend()) return kOpen;
  const int outer_reused = lowest_reused_;
  lowest_reused_ = INT32_MAX;
  solving_.emplace(formula, depth_);
  ++depth_;
  const bool outer_text = want_text_;
  want_text_ = want_text;
  Found found = SolveValue(formula);
  want_text_ = outer_text;
  --depth_;
  solving_.erase(formula);
  const bool self_contained = lowest_reused_ >= depth_;
  lowest_reused_ = std::min(outer_reused, self_contained ? INT32_MAX : lowest_reused_);
  if (found.answer == Answer::kYes || self_contained) {
    return values_.insert_or_assign(formula, Known{std::move(found), want_text})
        .first->second.found;
  }
  return found.answer == Answer::kNo ? kNothing : kOpen;
}

Found Solver::SolveString(const Goal& goal, const std::string& format) {
  if (!format.empty()) {
    if (auto known = table_.witnesses->Find(format)) return {Answer::kYes, *std::move(known)};
  }
  StringSearch& search = scalars_.String(goal);
  const StringProgram::StateId start = search.program().start();
  if (!search.Live(start)) return {Answer::kNo, std::nullopt};
  if (!want_text_) return {Answer::kYes, std::nullopt};
  const auto text = search.Shortest(start, limits::kTextBytes);
  if (!text) return {Answer::kYes, std::nullopt};
  std::string quoted = json::Quote(EncodeCodepoints(*text));
  if (!format.empty() && !table_.spending->Stopped()) table_.witnesses->Keep(format, quoted);
  return {Answer::kYes, std::move(quoted)};
}

Found Solver::SolveValue(FormulaId formula) {
  FormulaArena& formulas = table_.formulas;
  if (formula == kFalseFormula) return {Answer::kNo, std::nullopt};
  if (formula == kTrueFormula) return {Answer::kYes, "0"};
  Found best;
  const Goal goal{formula, {}, kNoFrame};
  if (!want_text_) {
    for (const Kind kind : {kNullValue, kTrueValue, kFalseValue}) {
      if (formulas.ForKind(formula, kind) == kTrueFormula) return {Answer::kYes, std::nullopt};
    }
  }
  if (formulas.ForKind(formula, kNumberValue) != kFalseFormula) {
    NumberProgram* program = scalars_.Number(goal);
    if (program == nullptr) {
      best.Improve({Answer::kUnknown, std::nullopt});
    } else if (program->Live(program->start())) {
      if (!want_text_) return {Answer::kYes, std::nullopt};
      best.Improve({Answer::kYes, program->Shortest(program->start())});
    }
  }
  if (const FormulaId string = formulas.ForKind(formula, kStringValue); string != kFalseFormula) {
    Found found = SolveString(goal, scalars_.FormatOf(string));
    if (!want_text_ && found.answer == Answer::kYes) return found;
    if (found.answer == Answer::kYes) best.Improve(std::move(found));
  }
  if (formulas.ForKind(formula, kNullValue) == kTrueFormula) best.Improve({Answer::kYes, "null"});
  if (formulas.ForKind(formula, kTrueValue) == kTrueFormula) best.Improve({Answer::kYes, "true"});
  if (formulas.ForKind(formula, kFalseValue) == kTrueFormula) best.Improve({Answer::kYes, "false"});
  if (best.answer == Answer::kYes && best.text && best.text->size() <= 5) return best;
  for (const Kind kind : {kArrayValue, kObjectValue}) {
    const FrameId frame = frames_.Open(kind, goal);
    if (frame == kNoFrame) continue;
    if (!want_text_) {
      best.Improve({Container(frame), std::nullopt});
      if (best.answer == Answer::kYes) return best;
      continue;
    }
    Found found = ContainerText(frame);
    if (found.text)
      found.text = kind == kArrayValue ? "[" + *found.text + "]" : "{" + *found.text + "}";
    best.Improve(std::move(found));
  }
  return best;
}

Found Solver::GuardedContainer(FrameId frame, bool want_text, bool& self_contained) {
  const int outer_reused = lowest_reused_;
  const bool outer_text = want_text_;
  lowest_reused_ = INT32_MAX;
  want_text_ = want_text;
  if (depth_ == 0) fuel_ = options_.step_fuel;
  ++depth_;
  Found found = SolveContainer(frame);
  --depth_;
  want_text_ = outer_text;
  self_contained = lowest_reused_ >= depth_;
  lowest_reused_ = std::min(outer_reused, self_contained ? INT32_MAX : lowest_reused_);
  return found;
}

Answer Solver::Container(FrameId frame) {
  StopScope::Step();
  if (const auto it = containers_.find(frame); it != containers_.end()) return it->second;
  bool self_contained;
  const Answer answer = GuardedContainer(frame, false, self_contained).answer;
  if (answer == Answer::kYes || self_contained) containers_.emplace(frame, answer);
  return answer;
}

Found Solver::ContainerText(FrameId frame) {
  bool self_contained;
  Found found = GuardedContainer(frame, true, self_contained);
  if (found.answer == Answer::kYes || self_contained)
    containers_.insert_or_assign(frame, found.answer);
  return found;
}

// One at a time: of a thousand tracks (an enum of objects) the first that is tried usually does.
template <typename Fn>
void Solver::TryVectors(const std::vector<FormulaId>& tracks, bool& complete, const Fn& fn) {
  const size_t m = tracks.size();
  size_t open = 0;
  for (const FormulaId track : tracks) open += table_.formulas.IsConstant(track) ? 0 : 1;
  const auto attempt = [&](const std::vector<bool>& truth) {
    return fn(truth, [&] { return Outcomes(tracks, truth); });
  };
  complete = true;
  if (open > limits::kTracksEnumerated) {
    if (const auto classes = ClassesOf(tracks)) {
      for (size_t i = 0; i < classes->size(); ++i) {
        if (fn(classes->Truth(i), [&] { return classes->Formula(i); })) return;
      }
      return;
    }
    complete = false;
  }
  std::vector<bool> all(m, true), base(m);
  for (size_t i = 0; i < m; ++i) {
    all[i] = tracks[i] != kFalseFormula;
    base[i] = tracks[i] == kTrueFormula;
  }
  // Most tracks true first: the usual completion satisfies them.
  if (complete) {
    std::vector<bool> v = std::move(all);
    while (!attempt(v)) {
      size_t i = 0;
      for (; i < m; ++i) {
        if (table_.formulas.IsConstant(tracks[i])) continue;
        v[i] = !v[i];
        if (!v[i]) break;
      }
      if (i == m) return;
    }
    return;
  }
  if (attempt(all)) return;
  for (size_t i = 0; i < m; ++i) {
    if (table_.formulas.IsConstant(tracks[i])) continue;
    std::vector<bool> one = base;
    one[i] = true;
    if (attempt(one)) return;
  }
  attempt(base);
}

bool Solver::EachOutcome(FrameId pending, const OnOutcome& fn) {
  const Goal goal = frames_.PendingGoal(pending);
  bool complete = true;
  TryVectors(goal.tracks, complete, [&](const std::vector<bool>& truth, const auto& values) {
    return fn(truth, [&] { return table_.formulas.And(goal.must, values()); });
  });
  return complete;
}

FormulaId Solver::Outcomes(const std::vector<FormulaId>& tracks, const std::vector<bool>& truth) {
  std::vector<FormulaId> parts;
  for (size_t i = 0; i < tracks.size(); ++i)
    parts.push_back(truth[i] ? tracks[i] : table_.formulas.Not(tracks[i]));
  return table_.formulas.And(parts);
}

bool Solver::AroundAccepts(FrameId id, const std::vector<bool>& truth) {
  if (frames_[id].kind == kArrayValue && truth.size() == 1) {
    if (const auto live = unique_.CanFinish(Frame(frames_[id]), 1, truth[0])) return *live;
  }
  const FrameId after = frames_.AfterValue(id, truth);
  if (after == kNoFrame || !Live(after)) return false;
  if (!unique_.HasToTry(Frame(frames_[id]))) return true;
  const std::optional<bool> live = LiveUnique(id, &truth);
  return CountsAsLive(!live ? Answer::kUnknown : *live ? Answer::kYes : Answer::kNo);
}

bool Solver::Closable(FrameId id) {
  const Frame frame = frames_[id];
  std::vector<bool> truth;
  if (!frames_.EndTruth(frame, truth)) return false;
  return frame.tracks.empty() || AroundAccepts(frame.around, truth);
}

bool Solver::LivePending(FrameId id) {
  if (const auto it = pending_.find(id); it != pending_.end()) return it->second;
  const Goal goal = frames_.PendingGoal(id);
  if (const Frame frame = frames_[id]; frame.kind == kArrayValue) {
    if (const auto live = unique_.CanFinish(frame, 1, std::nullopt)) return pending_[id] = *live;
    if (unique_.HasToTry(frame)) {
      if (const auto live = LiveUnique(id)) return pending_[id] = *live;
      ++undecided_;
    }
  }
  bool complete;
  bool live = false;
  TryVectors(goal.tracks, complete, [&](const std::vector<bool>& truth, const auto& values) {
    const FrameId after = frames_.AfterValue(id, truth);
    live = after != kNoFrame &&
           CountsAsLive(Value(table_.formulas.And(goal.must, values())).answer) && Live(after);
    return live;
  });
  if (!live && !complete && Value(goal.must).answer != Answer::kNo)
    live = CountsAsLive(Answer::kUnknown);
  pending_.emplace(id, live);
  return live;
}

std::optional<std::string> Solver::PendingValue(FrameId id) {
  const Goal goal = frames_.PendingGoal(id);
  if (const Frame frame = frames_[id]; frame.kind == kArrayValue) {
    if (auto value = unique_.NextItem(frame)) return value;
  }
  bool complete;
  std::optional<std::string> best;
  int tried = 0;  // once something is found
  TryVectors(goal.tracks, complete, [&](const std::vector<bool>& truth, const auto& values) {
    if (best && ++tried > limits::kShorterTries) return true;
    const FrameId after = frames_.AfterValue(id, truth);
    if (after == kNoFrame || Container(after) != Answer::kYes) return false;
    const Found& found = Value(table_.formulas.And(goal.must, values()), true);
    if (found.answer == Answer::kYes && found.text && (!best || found.text->size() < best->size()))
      best = found.text;
    return false;
  });
  return best;
}

std::shared_ptr<const Solver::Cubes> Solver::CubesOf(FormulaId formula) {
  if (const auto it = cubes_.find(formula); it != cubes_.end()) return it->second;
  auto out = std::make_shared<Cubes>();
  out->cubes = table_.formulas.Cubes(formula, limits::kCubes, out->complete);
  if (!table_.formulas.IsConjunction(formula)) {
    if (cubes_.size() >= limits::kKeptCubes) cubes_.clear();
    cubes_.emplace(formula, out);
  }
  return out;
}

Found Solver::SolveContainer(FrameId id) {
  const Frame frame = frames_[id];
  if (frame.kind == kNullValue) return {Answer::kYes, ""};  // the root: the one value is there
  if (Closable(id)) return {Answer::kYes, ""};
  std::vector<FormulaId> wanted;
  bool complete = true;
  if (frame.tracks.empty()) {
    wanted.push_back(frame.must);
  } else {
    TryVectors(frame.tracks, complete, [&](const std::vector<bool>& truth, const auto& values) {
      if (AroundAccepts(frame.around, truth))
        wanted.push_back(table_.formulas.And(frame.must, values()));
      return false;
    });
  }
  Found best;
  for (const FormulaId formula : wanted) {
    if (best.answer == Answer::kYes && !want_text_) break;
    best.Improve(SolveFormula(frame, formula, {}));
  }
  if (best.answer == Answer::kNo && !complete) best.answer = Answer::kUnknown;
  if (best.answer == Answer::kUnknown) {
    if (Found few = Few(id); few.answer != Answer::kUnknown) best = std::move(few);
  }
  return best;
}

Found Solver::SolveFormula(const Frame& frame, FormulaId formula, const SettledKeys& settled) {
  if (settled.size() > 0 || !HasManyClauses(frame, formula))
    return SolveBranches(frame, formula, settled);
  const FormulaId rest = WithoutPast(frame, formula);
  if (rest == kFalseFormula) return kNothing;
  if (!HasManyClauses(frame, rest)) return SolveBranches(frame, rest, settled);
  // So few keys are settled one by one, which finds shorter texts.
  if (auto found = SolveClauses(frame, rest, want_text_ ? limits::kSettledKeys + 1 : 1))
    return *std::move(found);
  Found found = SolveBranches(frame, rest, settled);
  if (want_text_ && !found.text) {
    if (auto other = SolveClauses(frame, rest, 1)) return *std::move(other);
  }
  return found;
}

Found Solver::SolveBranches(const Frame& frame, FormulaId formula, const SettledKeys& settled) {
  if (const auto key = KeyToSettle(frame, formula, settled, limits::kManyBranches))
    return SettleKey(frame, formula, settled, *key);
  const std::shared_ptr<const Cubes> cubes = CubesOf(formula);
  Found best = SolveCubes(frame, *cubes, settled);
  if (best.answer == Answer::kNo && !cubes->complete) best.answer = Answer::kUnknown;
  if (best.answer == Answer::kUnknown) {
    if (const auto other = KeyToSettle(frame, formula, settled, 1)) {
      if (Found found = SettleKey(frame, formula, settled, *other);
          found.answer != Answer::kUnknown)
        return found;
    }
  }
  return best;
}

Found Solver::SolveCubes(const Frame& frame, const Cubes& cubes, const SettledKeys& settled) {
  Found best;
  int tried = 0;
  for (const Cube& cube : cubes.cubes) {
    if (best.answer == Answer::kYes && (!want_text_ || ++tried > limits::kShorterTries)) break;
    best.Improve(SolveCube(frame, cube, settled));
  }
  return best;
}

Found Solver::SolveCube(const Frame& frame, const Cube& cube, const SettledKeys& settled) {
  if (!Spend()) return {Answer::kUnknown, std::nullopt};
  std::optional<Cube> shorter;
  if (!SettleConstants(frame.kind, cube, shorter)) return {Answer::kNo, std::nullopt};
  const Cube& rest = shorter ? *shorter : cube;
  return frame.kind == kObjectValue ? SolveObject(frame, rest, settled) : SolveArray(frame, rest);
}

bool Solver::SettleConstants(Kind kind, const Cube& cube, std::optional<Cube>& rest) const {
  const auto text = [&](AtomId atom) -> const std::string& {
    return kind == kObjectValue ? table_.object(atom).constant : table_.array(atom).constant;
  };
  const auto chosen = std::find_if(cube.positive.begin(), cube.positive.end(),
                                   [&](AtomId atom) { return !text(atom).empty(); });
  if (chosen == cube.positive.end()) return true;
  const std::string& constant = text(*chosen);
  const auto other = [&](AtomId atom) { return !text(atom).empty() && text(atom) != constant; };
  if (std::any_of(cube.positive.begin(), cube.positive.end(), other)) return false;
  const auto same = [&](AtomId atom) { return text(atom) == constant; };
  if (std::any_of(cube.negative.begin(), cube.negative.end(), same)) return false;
  if (std::none_of(cube.negative.begin(), cube.negative.end(), other)) return true;
  rest = cube;
  std::erase_if(rest->negative, other);
  return true;
}

bool Solver::HasValue(FormulaId formula, bool& final) {
  const int outer_reused = lowest_reused_;
  lowest_reused_ = INT32_MAX;
  const bool yes = Value(formula).answer == Answer::kYes;
  if (!yes && lowest_reused_ != INT32_MAX) final = false;
  lowest_reused_ = std::min(outer_reused, lowest_reused_);
  return yes;
}

bool Solver::HasNoValue(FormulaId formula) {
  const int outer_reused = lowest_reused_;
  lowest_reused_ = INT32_MAX;
  const bool none = Value(formula).answer == Answer::kNo && lowest_reused_ == INT32_MAX;
  lowest_reused_ = std::min(outer_reused, lowest_reused_);
  return none;
}

// A branching on the value of one key is a decision diagram, not a product. Two hundred cases of
// "if country is X, then ..." multiply out to 2^200 cubes, but a country is one of 200 names or
// none of them, and with each of these every `if` is settled: what is left is short. So where many
// conditions look at one key, the values of the key are told apart first (value_classes.h), each is
// tried, and so is the object without that key. Together these are all objects there are: where
// none of them can be completed, nothing can.

bool Solver::AsksForLists(FormulaId formula) {
  const auto [it, fresh] = lists_.try_emplace(formula, false);
  if (fresh) it->second = ValueClasses::IsListed(table_, formula);
  return it->second;
}

bool Solver::MayCome(const Frame& frame, size_t rank) const {
  const ObjectLayout& layout = frames_.layout(frame.layout);
  if (frames_.Seen(frame, layout.name_ids[rank])) return false;
  return options_.order != JsonSchemaOptions::Order::kSchema ||
         static_cast<int64_t>(rank) > frame.last_rank;
}

std::optional<size_t> Solver::KeyToSettle(const Frame& frame, FormulaId formula,
                                          const SettledKeys& settled, size_t least) {
  if (frame.kind != kObjectValue || settled.size() >= limits::kSettledKeys) return std::nullopt;
  const std::vector<AtomId>& atoms = table_.formulas.Atoms(formula);
  if (atoms.size() < least) return std::nullopt;
  const std::vector<AtomId> must = table_.formulas.MustAtoms(formula);
  std::vector<AtomId> open;
  std::ranges::set_difference(atoms, must, std::back_inserter(open));
  if (open.size() < least) return std::nullopt;
  const ObjectLayout& layout = frames_.layout(frame.layout);
  std::optional<size_t> best;
  size_t most = least - 1;
  for (size_t rank = 0; rank < layout.names.size(); ++rank) {
    if (layout.by_rank[rank].size() <= most || settled.Knows(rank) || !MayCome(frame, rank))
      continue;
    size_t count = 0;
    for (const auto& [atom, demand] : layout.by_rank[rank]) {
      if (demand != kTrueFormula && std::ranges::binary_search(open, atom) && AsksForLists(demand))
        ++count;
    }
    if (count <= most) continue;
    most = count;
    best = rank;
  }
  return best;
}

// Whether nothing that can still come makes the atom fail, where it has to come out so once the key
// `rank` is settled; its own demand on that key is met.
bool Solver::CannotFail(const Frame& frame, AtomId atom, const SettledKeys& settled, size_t rank) {
  const ObjectLayout& layout = frames_.layout(frame.layout);
  const ObjectAtom& object = table_.object(atom);
  if (object.additional != kTrueFormula || object.property_names != kTrueFormula ||
      !object.patterns.empty() || object.max_properties != kUnbounded)
    return false;
  if (object.min_properties > frame.count + settled.members.size()) return false;
  for (const NameId name : frames_.Required(layout, atom)) {
    if (!frames_.Seen(frame, name) && !settled.members.contains(layout.rank_of.at(name)))
      return false;
  }
  for (const auto& [name, demand] : object.properties) {
    if (demand == kTrueFormula) continue;
    const int at = layout.rank_of.at(frames_.InternName(name));
    if (static_cast<size_t>(at) == rank || settled.absent.contains(at)) continue;
    if (const auto member = settled.members.find(at); member != settled.members.end()) {
      const FormulaId against = table_.formulas.And(member->second, table_.formulas.Not(demand));
      if (Value(against).answer == Answer::kNo) continue;
    } else if (!MayCome(frame, static_cast<size_t>(at))) {
      continue;  // it has come, and the atom was not the worse for it
    }
    return false;
  }
  return true;
}

Found Solver::SettleKey(const Frame& frame, FormulaId formula, const SettledKeys& settled,
                        size_t rank) {
  const ObjectLayout& layout = frames_.layout(frame.layout);
  const int key = static_cast<int>(rank);
  const std::vector<AtomId> atoms = table_.formulas.Atoms(formula);
  Found best;
  int tried = 0;
  const auto attempt = [&](std::vector<std::pair<AtomId, bool>> truth, const SettledKeys& next) {
    if (!Spend()) {
      best.Improve({Answer::kUnknown, std::nullopt});
      return;
    }
    const FormulaId rest = table_.formulas.Assign(formula, truth);
    if (rest != kFalseFormula) best.Improve(SolveFormula(frame, rest, next));
  };
  const auto enough = [&] {
    return best.answer == Answer::kYes && (!want_text_ || ++tried > limits::kShorterTries);
  };

  SettledKeys next = settled;
  next.absent.insert(key);
  std::vector<std::pair<AtomId, bool>> truth;
  for (const AtomId atom : atoms) {
    if (std::ranges::binary_search(frames_.Required(layout, atom), layout.name_ids[rank])) {
      truth.emplace_back(atom, false);
    } else if (CannotFail(frame, atom, next, rank)) {
      truth.emplace_back(atom, true);
    }
  }
  attempt(std::move(truth), next);
  if (enough()) return best;

  // Demands on the key that are told apart; what else an atom asks of the key goes on to count.
  std::vector<FormulaId> demands;
  std::vector<std::pair<AtomId, FormulaId>> users;
  std::vector<std::pair<AtomId, bool>> barred;
  for (const AtomId atom : atoms) {
    const FormulaId demand =
        frames_.PropertyDemand(layout, atom, *layout.program, layout.name_states[rank], key);
    if (demand == kFalseFormula) {
      barred.emplace_back(atom, false);
    } else if (demand != kTrueFormula && AsksForLists(demand)) {
      demands.push_back(demand);
      users.emplace_back(atom, demand);
    }
  }
  SortUnique(demands);
  const std::shared_ptr<const ValueClasses> classes = ClassesOf(demands);
  if (!classes) {
    best.Improve({Answer::kUnknown, std::nullopt});
    return best;
  }
  for (size_t i = classes->size(); i-- > 0 && !enough();) {
    const std::vector<bool> holds = classes->Truth(i);
    next = settled;
    next.members.emplace(key, classes->Formula(i));
    truth = barred;
    for (const auto& [atom, demand] : users) {
      const auto at = std::ranges::lower_bound(demands, demand) - demands.begin();
      const bool met = holds[static_cast<size_t>(at)];
      if (!met || CannotFail(frame, atom, next, rank)) truth.emplace_back(atom, met);
    }
    std::ranges::sort(truth);
    attempt(std::move(truth), next);
  }
  return best;
}

std::shared_ptr<const ValueClasses> Solver::ClassesOf(const std::vector<FormulaId>& formulas) {
  if (classes_.size() > limits::kKeptClasses) classes_.clear();
  const auto [it, fresh] = classes_.try_emplace(formulas);
  if (fresh) {
    if (auto classes = ValueClasses::Of(table_, formulas))
      it->second = std::make_shared<const ValueClasses>(*std::move(classes));
  }
  return it->second;
}

}  // namespace pawl::schema
