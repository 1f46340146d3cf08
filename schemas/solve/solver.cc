// A value is solved kind by kind; a container by turning what is still undecided into cubes (atoms
// that have to hold, atoms that have to fail) and building the members or items that a cube needs.
// Purely positive cubes, which is what schemas without not/oneOf give, are decided exactly.
// Recursion is cut where a formula meets itself: a value that needs itself is no value (least
// fixpoint).
#include "schemas/solve/solver.h"

#include <algorithm>

#include "schemas/limits.h"
#include "src/base/json.h"
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

}  // namespace pawl::schema
