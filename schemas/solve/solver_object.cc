// Completing an object for one cube: the members that the positive atoms require, then one reason
// to fail for each negative atom, then as many further members as minProperties wants.
//
// For the positive part every step is forced, so a failure there proves that the cube is empty.
// Reasons to fail are picked greedily and checked at the end; when that does not work out the
// answer is unknown.
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/solve/distinct.h"
#include "schemas/solve/solver.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {

// The kinds of keys: the states of a layout's program are walked in breadth. Those that the same
// conditions are true of are one kind. Then each kind's keys are listed; where they are many, a few
// of them.

namespace {

std::vector<bool> TruthOf(const ObjectLayout& layout, const StringProgram& program,
                          StringProgram::StateId state) {
  std::vector<bool> truth;
  for (const AtomId atom : layout.program->atoms()) truth.push_back(program.Truth(state, atom));
  return truth;
}

bool IsNamed(const ObjectLayout& layout, const StringProgram& program,
             StringProgram::StateId state) {
  return layout.has_names && program.Literal(state, layout.names_atom) >= 0;
}

}  // namespace

std::unique_ptr<KeyKinds> KeyKinds::Of(Frames& frames, const ObjectLayout& layout, int64_t fuel) {
  StringProgram& program = *layout.program;
  auto out = std::make_unique<KeyKinds>();
  std::map<std::vector<bool>, size_t> index;
  std::vector<StringProgram::StateId> queue = {program.start()};
  std::set<StringProgram::StateId> seen = {program.start()};
  for (size_t i = 0; i < queue.size(); ++i) {
    const StringProgram::StateId state = queue[i];
    if (!IsNamed(layout, program, state)) {
      std::vector<bool> truth = TruthOf(layout, program, state);
      if (index.try_emplace(truth, out->kinds_.size()).second)
        out->kinds_.push_back({std::move(truth), state, {}, {}, false});
    }
    if (out->kinds_.size() > limits::kKeyKinds) return nullptr;
    for (int cls = 0; cls < program.classes(); ++cls) {
      const char32_t c = program.Representative(cls);
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      const StringProgram::StateId next = program.Next(state, cls);
      if (seen.insert(next).second) queue.push_back(next);
    }
    if (queue.size() > limits::kKeyStates) return nullptr;
  }
  if (program.overflow()) return nullptr;
  for (Kind& kind : out->kinds_) {
    StringSearch search(
        program,
        [&](StringProgram::StateId state) {
          return !IsNamed(layout, program, state) && TruthOf(layout, program, state) == kind.truth;
        },
        fuel);
    std::vector<std::u32string> keys;
    kind.all = ListTexts(
        search,
        [](size_t steps, size_t found) {
          return found <= limits::kKeysOfAKind && steps <= limits::kKeyListSteps;
        },
        keys);
    if (!kind.all) keys = Continuations(search, program.start(), limits::kSomeKeysOfAKind);
    for (const std::u32string& key : keys) {
      kind.keys.push_back(EncodeCodepoints(key));
      kind.names.push_back(frames.InternName(kind.keys.back()));
    }
  }
  return out;
}

NameId KeyKinds::StandIn(const Frames& frames, const Frame& frame, const ObjectLayout& layout,
                         const StringProgram& program, StringProgram::StateId state) const {
  const std::vector<bool> truth = TruthOf(layout, program, state);
  for (const Kind& kind : kinds_) {
    if (kind.truth != truth) continue;
    if (!kind.all) return kAnyName;
    for (const NameId name : kind.names) {
      if (!frames.Seen(frame, name)) return name;
    }
  }
  return kAnyName;
}

size_t Solver::RequiredIn(const ObjectLayout& layout, AtomId atom, IdSets::Id seen) {
  const auto& required = frames_.Required(layout, atom);
  const auto with = [&](size_t count, NameId key) {
    return count + (std::ranges::binary_search(required, key) ? 1 : 0);
  };
  return frames_.seen().Fold(required_in_, seen, size_t{0}, with, atom);
}

size_t Solver::SpareIn(const SpareKeys& spare, IdSets::Id seen) {
  const auto with = [&](size_t count, NameId key) {
    return count + (std::ranges::binary_search(spare.with_value, key) ? 1 : 0);
  };
  return frames_.seen().Fold(spare_in_, seen, size_t{0}, with, spare.number);
}

// Each phase answers as soon as the question is settled.
class Solver::ObjectPlan {
 public:
  ObjectPlan(Solver& solver, const Frame& frame, const Cube& cube, const SettledKeys& settled)
      : solver_(solver),
        frames_(solver.frames_),
        table_(solver.table_),
        formulas_(solver.table_.formulas),
        frame_(frame),
        cube_(cube),
        settled_(settled),
        layout_(solver.frames_.layout(frame.layout)),
        program_(*layout_.program),
        cached_(solver.named_demands_[{frame.layout, cube.positive}]) {
    if (cached_.by_rank.empty()) cached_.by_rank.assign(layout_.names.size(), kUnset);
  }

  Found Solve() {
    if (auto found = Force()) return *std::move(found);
    if (auto found = Refute()) return *std::move(found);
    if (auto found = FillUp()) return *std::move(found);
    return Write();
  }

 private:
  struct Member {
    std::string name;
    int rank;  // -1: not named in the schema
    StringProgram::StateId state;
    FormulaId demand;
  };

  // What the positive atoms force.
  std::optional<Found> Force();
  std::optional<Found> ForceRequired(bool plan);
  // A reason to fail for each negative atom.
  std::optional<Found> Refute();
  // Whether anything could make a negative atom fail; when nothing can, the cube is empty.
  bool CanFail(AtomId atom);
  bool FailByMember(AtomId atom);
  bool Strengthen(Member& member, FormulaId against);
  // As many members as the counts want.
  std::optional<Found> FillUp();
  void AddNamed(bool& exhausted);
  void AddOthers();
  bool KeysAreEndless();
  template <typename Fn>
  bool Settles(const Fn& find);
  // The reasons must still stand, and every member needs a value.
  Found Write();
  bool StillFails(AtomId atom);

  FormulaId DemandOf(AtomId atom, StringProgram::StateId state, int rank) {
    return frames_.PropertyDemand(layout_, atom, program_, state, rank);
  }
  // What the positive atoms demand.
  FormulaId PositiveDemand(StringProgram::StateId state, int rank);
  FormulaId NamedDemand(size_t rank);
  bool Available(size_t rank) const {
    return !settled_.absent.contains(static_cast<int>(rank)) && solver_.MayCome(frame_, rank);
  }
  uint64_t Planned() const { return frame_.count + named_.size() + others_.size(); }
  Member& AddNamed(size_t rank);
  // Keys that the schema does not name and that can have a value.
  StringSearch& OtherKeys();
  // For members that are not required: a few plain names, the shortest key that each pattern knows,
  // and as many as are missing; where all other keys can be listed, these. They do not depend on
  // the keys that have come, so they are kept: thousands of keys are looked for once, and what a
  // frame has of them is counted.
  const SpareKeys& Spare();
  std::shared_ptr<const SpareKeys> FindSpare(uint64_t wanted, uint64_t numbered);
  std::vector<std::string> Candidates(uint64_t wanted, uint64_t numbered, bool& all);
  // Calls fn(key) for those that may be added, in their order, until it returns true.
  template <typename Fn>
  void EachSpare(const Fn& fn);
  // No key beyond the named ones can have a value.
  bool ClosedToOthers();

  Solver& solver_;
  Frames& frames_;
  SchemaTable& table_;
  FormulaArena& formulas_;
  const Frame& frame_;
  const Cube& cube_;
  const SettledKeys& settled_;
  const ObjectLayout& layout_;
  StringProgram& program_;
  NamedDemands& cached_;

  std::map<int, Member> named_;  // by rank
  std::vector<Member> others_;
  std::set<std::string> other_names_;
  uint64_t min_count_ = 0, max_count_ = kUnbounded;
  bool uncertain_ = false;
  std::set<int> forced_;             // ranks of members that the positive atoms want
  std::set<std::string> forbidden_;  // keys whose absence is a reason to fail,
  std::set<std::string> never_;      // the only one there is
  bool count_is_reason_ = false;     // minProperties was raised to make an atom fail
  std::optional<StringSearch> other_keys_;
  bool unsure_of_keys_ = false;             // whether some other key has a value
  std::shared_ptr<const SpareKeys> spare_;  // nullptr: not asked for yet
};

Found Solver::SolveObject(const Frame& frame, const Cube& cube, const SettledKeys& settled) {
  return ObjectPlan(*this, frame, cube, settled).Solve();
}

FormulaId Solver::ObjectPlan::PositiveDemand(StringProgram::StateId state, int rank) {
  FormulaId demand = kTrueFormula;
  for (const AtomId atom : cube_.positive)
    demand = formulas_.And(demand, DemandOf(atom, state, rank));
  return demand;
}

FormulaId Solver::ObjectPlan::NamedDemand(size_t rank) {
  FormulaId& demand = cached_.by_rank[rank];
  if (demand == kUnset) demand = PositiveDemand(layout_.name_states[rank], static_cast<int>(rank));
  const auto settled = settled_.members.find(static_cast<int>(rank));
  return settled == settled_.members.end() ? demand : formulas_.And(demand, settled->second);
}

Solver::ObjectPlan::Member& Solver::ObjectPlan::AddNamed(size_t rank) {
  const int r = static_cast<int>(rank);
  return named_
      .try_emplace(r, Member{layout_.names[rank], r, layout_.name_states[rank], NamedDemand(rank)})
      .first->second;
}

std::optional<Found> Solver::ObjectPlan::Force() {
  for (const AtomId atom : cube_.positive) {
    const ObjectAtom& object = table_.object(atom);
    max_count_ = std::min(max_count_, object.max_properties);
    min_count_ = std::max(min_count_, object.min_properties);
  }
  if (min_count_ > max_count_) return kNothing;
  // Most frames need no more than this: every missing key may still come and has a value.
  const bool plan = solver_.want_text_ || !cube_.negative.empty() || cube_.positive.size() > 1 ||
                    !settled_.members.empty();
  if (auto found = ForceRequired(plan)) return found;
  for (const auto& [rank, demand] : settled_.members) {
    if (!Available(static_cast<size_t>(rank))) return kNothing;
    const Answer answer = solver_.Value(AddNamed(static_cast<size_t>(rank)).demand).answer;
    if (answer == Answer::kNo) return kNothing;
    uncertain_ = uncertain_ || answer == Answer::kUnknown;
  }
  for (const auto& [rank, member] : named_) forced_.insert(rank);
  if (max_count_ != kUnbounded && Planned() > max_count_) return kNothing;
  return std::nullopt;
}

std::optional<Found> Solver::ObjectPlan::ForceRequired(bool plan) {
  const bool ordered = solver_.options_.order == JsonSchemaOptions::Order::kSchema;
  uint64_t missing_names = 0;
  // In any order all keys that are missing may still come, so they need not be looked at again.
  const bool counted = !plan && !ordered && cube_.positive.size() == 1 && cached_.all_required &&
                       settled_.absent.empty();
  if (counted) {
    missing_names = frames_.Required(layout_, cube_.positive[0]).size() -
                    solver_.RequiredIn(layout_, cube_.positive[0], frame_.seen);
  }
  for (const AtomId atom : cube_.positive) {
    if (counted) break;
    bool all = frame_.seen == IdSets::kEmpty;
    for (const NameId id : frames_.Required(layout_, atom)) {
      if (frames_.Seen(frame_, id)) continue;
      const size_t rank = static_cast<size_t>(layout_.rank_of.at(id));
      if (!Available(rank)) return kNothing;
      const Answer answer = solver_.Value(NamedDemand(rank)).answer;
      if (answer == Answer::kNo) return kNothing;
      uncertain_ = uncertain_ || answer == Answer::kUnknown;
      all = all && answer == Answer::kYes;
      ++missing_names;
      if (plan) AddNamed(rank);
    }
    if (all && cube_.positive.size() == 1 && settled_.members.empty()) cached_.all_required = true;
  }
  if (plan) missing_names = named_.size();
  if (max_count_ != kUnbounded && frame_.count + missing_names > max_count_) return kNothing;
  if (plan) return std::nullopt;
  if (frame_.count + missing_names >= min_count_)
    return Found{uncertain_ ? Answer::kUnknown : Answer::kYes, std::nullopt};
  for (const AtomId atom : cube_.positive) {
    for (const NameId id : frames_.Required(layout_, atom)) {
      if (!frames_.Seen(frame_, id)) AddNamed(static_cast<size_t>(layout_.rank_of.at(id)));
    }
  }
  return std::nullopt;
}

StringSearch& Solver::ObjectPlan::OtherKeys() {
  if (other_keys_) return *other_keys_;
  other_keys_.emplace(
      program_,
      [this](StringProgram::StateId state) {
        if (layout_.has_names && program_.Literal(state, layout_.names_atom) >= 0) return false;
        const Answer answer = solver_.Value(PositiveDemand(state, -1)).answer;
        unsure_of_keys_ = unsure_of_keys_ || answer == Answer::kUnknown;
        return answer == Answer::kYes;
      },
      solver_.options_.step_fuel / 8);
  return *other_keys_;
}

std::vector<std::string> Solver::ObjectPlan::Candidates(uint64_t wanted, uint64_t numbered,
                                                        bool& all) {
  std::vector<std::string> candidates;
  const auto add_variants = [&](FormulaId keys) {
    StringSearch& search = solver_.scalars_.String({keys, {}, kNoFrame});
    const auto text = search.Shortest(search.program().start(), 200);
    if (!text) return;
    const std::string key = EncodeCodepoints(*text);
    candidates.push_back(key);
    for (char c = 'a'; c <= 'e'; ++c) candidates.push_back(key + c);
    for (char c = '0'; c <= '4'; ++c) candidates.push_back(key + c);
  };
  for (const AtomId atom : layout_.atoms) {
    for (const ObjectAtom::Pattern& pattern : table_.object(atom).patterns)
      add_variants(pattern.name);
    // A key that fits propertyNames, and one that does not, for where that is to fail.
    const FormulaId names = table_.object(atom).property_names;
    for (const FormulaId keys : {names, formulas_.Not(names)}) {
      if (!formulas_.IsConstant(keys)) add_variants(keys);
    }
  }
  if (layout_.has_key_conditions) {
    // The shortest texts over one character of each class, whatever the patterns make of them.
    std::deque<std::u32string> queue = {U""};
    for (int tried = 0; tried < 100 && !queue.empty(); ++tried) {
      const std::u32string key = std::move(queue.front());
      queue.pop_front();
      candidates.push_back(EncodeCodepoints(key));
      for (int cls = 0; cls < program_.classes() && queue.size() < 300; ++cls) {
        const char32_t c = program_.Representative(cls);
        if (c < 0xD800 || c > 0xDFFF) queue.push_back(key + c);
      }
    }
  }
  for (char c = 'a'; c <= 'z'; ++c) candidates.emplace_back(1, c);
  if (layout_.has_key_conditions && wanted > 0 && !OtherKeys().Live(program_.start())) {
    all = !unsure_of_keys_;  // there is none
    if (all) return {};
  } else if (layout_.has_key_conditions && wanted > 0) {
    if (!Endless(OtherKeys(), program_.start())) {
      if (const auto keys = solver_.AllStrings(OtherKeys()); keys && !unsure_of_keys_) {
        all = true;
        candidates.clear();
        for (const std::u32string& key : *keys) candidates.push_back(EncodeCodepoints(key));
        return candidates;
      }
    }
    for (const std::u32string& key : Continuations(OtherKeys(), program_.start(), wanted))
      candidates.push_back(EncodeCodepoints(key));
  }
  for (uint64_t i = 0; i < numbered; ++i) candidates.push_back("k" + std::to_string(i));
  return candidates;
}

// What rests on a question that is open further up is not kept.
template <typename Fn>
bool Solver::ObjectPlan::Settles(const Fn& find) {
  const int outer_reused = std::exchange(solver_.lowest_reused_, INT32_MAX);
  find();
  const bool settled = solver_.lowest_reused_ == INT32_MAX;
  solver_.lowest_reused_ = std::min(outer_reused, solver_.lowest_reused_);
  return settled;
}

const Solver::SpareKeys& Solver::ObjectPlan::Spare() {
  if (spare_ != nullptr) return *spare_;
  const uint64_t missing =
      std::min(min_count_ - std::min(min_count_, Planned()), limits::kPlannedMembers);
  // So many keys that have come may be among those that are found.
  const uint64_t wanted =
      missing == 0 ? 0 : missing + frames_.seen().Size(frame_.seen) + layout_.names.size();
  const uint64_t numbered = std::min(layout_.has_key_conditions ? 40 : 40 + frame_.count + missing,
                                     limits::kPlannedMembers);
  const std::pair key{wanted, numbered};
  if (const auto known = cached_.spare.find(key); known != cached_.spare.end())
    return *(spare_ = known->second);
  if (Settles([&] { spare_ = FindSpare(wanted, numbered); })) {
    if (cached_.spare.size() >= limits::kSpareLists) cached_.spare.clear();
    cached_.spare.emplace(key, spare_);
  }
  return *spare_;
}

std::shared_ptr<const Solver::SpareKeys> Solver::ObjectPlan::FindSpare(uint64_t wanted,
                                                                       uint64_t numbered) {
  auto out = std::make_shared<SpareKeys>();
  out->number = ++solver_.spare_lists_;
  std::unordered_set<NameId> known;
  for (std::string& name : Candidates(wanted, numbered, out->all)) {
    const NameId id = frames_.InternName(name);
    if (layout_.rank_of.contains(id) || !known.insert(id).second) continue;
    const StringProgram::StateId state = program_.After(DecodeCodepoints(name));
    out->keys.push_back({std::move(name), id, state});
  }
  for (const SpareKey& key : out->keys) {
    if (out->with_value.size() >= wanted) break;
    if (solver_.Value(PositiveDemand(key.state, -1)).answer == Answer::kYes)
      out->with_value.push_back(key.id);
  }
  std::ranges::sort(out->with_value);
  solver_.spare_keys_ += out->keys.size();
  return out;
}

template <typename Fn>
void Solver::ObjectPlan::EachSpare(const Fn& fn) {
  const SpareKeys& spare = Spare();
  const auto is_free = [&](const SpareKey& key) { return !frames_.Seen(frame_, key.id); };
  size_t end = spare.keys.size();
  if (spare.all && frames_.Seen(frame_, kAnyName)) {
    // One of them is there already, not known which.
    while (end > 0 && !is_free(spare.keys[end - 1])) --end;
    end -= end > 0 ? 1 : 0;
  }
  for (size_t i = 0; i < end; ++i) {
    const SpareKey& key = spare.keys[i];
    if (is_free(key) && !other_names_.contains(key.name) && fn(key)) return;
  }
}

bool Solver::ObjectPlan::ClosedToOthers() {
  FormulaId demand = kTrueFormula;
  for (const AtomId atom : cube_.positive) {
    const ObjectAtom& object = table_.object(atom);
    if (object.patterns.empty()) demand = formulas_.And(demand, object.additional);
    const auto barren = [&](const ObjectAtom::Pattern& pattern) {
      return solver_.Value(pattern.value).answer == Answer::kNo;
    };
    if (!object.patterns.empty() && std::ranges::all_of(object.patterns, barren) &&
        solver_.Value(object.additional).answer == Answer::kNo)
      return true;
  }
  return solver_.Value(demand).answer == Answer::kNo;
}

bool Solver::ObjectPlan::CanFail(AtomId atom) {
  const ObjectAtom& object = table_.object(atom);
  for (const NameId id : frames_.Required(layout_, atom)) {
    if (!frames_.Seen(frame_, id) && !forced_.contains(layout_.rank_of.at(id))) return true;
  }
  if (frame_.count + forced_.size() < object.min_properties || object.max_properties < max_count_)
    return true;
  for (size_t rank = 0; rank < layout_.names.size(); ++rank) {
    if (!Available(rank)) continue;
    const FormulaId demand = DemandOf(atom, layout_.name_states[rank], static_cast<int>(rank));
    if (demand == kTrueFormula) continue;
    const FormulaId against = formulas_.And(NamedDemand(rank), formulas_.Not(demand));
    if (solver_.Value(against).answer != Answer::kNo) return true;
  }
  // Other keys: none may come, or none can hurt.
  const bool harmless = object.patterns.empty() && object.additional == kTrueFormula &&
                        object.property_names == kTrueFormula;
  return !ClosedToOthers() && !harmless;
}

bool Solver::ObjectPlan::Strengthen(Member& member, FormulaId against) {
  const FormulaId demand = formulas_.And(member.demand, formulas_.Not(against));
  if (solver_.Value(demand).answer != Answer::kYes) return false;
  member.demand = demand;
  return true;
}

bool Solver::ObjectPlan::FailByMember(AtomId atom) {
  for (auto& [rank, member] : named_) {
    const FormulaId demand = DemandOf(atom, member.state, rank);
    if (demand != kTrueFormula && Strengthen(member, demand)) return true;
  }
  for (Member& member : others_) {
    const FormulaId demand = DemandOf(atom, member.state, -1);
    if (demand != kTrueFormula && Strengthen(member, demand)) return true;
  }
  if (Planned() + 1 > max_count_) return false;
  for (size_t rank = 0; rank < layout_.names.size(); ++rank) {
    const int r = static_cast<int>(rank);
    if (named_.contains(r) || !Available(rank) || forbidden_.contains(layout_.names[rank]))
      continue;
    const FormulaId demand = DemandOf(atom, layout_.name_states[rank], r);
    if (demand == kTrueFormula) continue;
    Member member{layout_.names[rank], r, layout_.name_states[rank], NamedDemand(rank)};
    if (!Strengthen(member, demand)) continue;
    named_.emplace(r, std::move(member));
    return true;
  }
  bool failed = false;
  EachSpare([&](const SpareKey& key) {
    const FormulaId demand = DemandOf(atom, key.state, -1);
    if (demand == kTrueFormula) return false;
    Member member{key.name, -1, key.state, PositiveDemand(key.state, -1)};
    if (!Strengthen(member, demand)) return false;
    other_names_.insert(key.name);
    others_.push_back(std::move(member));
    return failed = true;
  });
  return failed;
}

std::optional<Found> Solver::ObjectPlan::Refute() {
  for (const AtomId atom : cube_.negative) {
    if (!CanFail(atom)) return kNothing;
  }
  for (const AtomId atom : cube_.negative) {
    const ObjectAtom& object = table_.object(atom);
    const auto& required = frames_.Required(layout_, atom);
    const auto missing = std::find_if(required.begin(), required.end(), [&](NameId id) {
      return !frames_.Seen(frame_, id) && !named_.contains(layout_.rank_of.at(id));
    });
    if (missing != required.end()) {
      forbidden_.insert(frames_.Name(*missing));
      const bool only_way = required.size() == 1 && object.properties.empty() &&
                            object.patterns.empty() && object.additional == kTrueFormula &&
                            object.property_names == kTrueFormula && object.min_properties == 0 &&
                            object.max_properties == kUnbounded;
      if (only_way) never_.insert(frames_.Name(*missing));
    } else if (object.min_properties > std::max<uint64_t>(Planned(), min_count_)) {
      max_count_ = std::min(max_count_, object.min_properties - 1);
    } else if (!FailByMember(atom)) {
      if (object.max_properties == kUnbounded) return kOpen;
      min_count_ = std::max(min_count_, object.max_properties + 1);
      count_is_reason_ = true;
    }
  }
  return std::nullopt;
}

void Solver::ObjectPlan::AddNamed(bool& exhausted) {
  for (size_t rank = 0; rank < layout_.names.size() && Planned() < min_count_; ++rank) {
    if (named_.contains(static_cast<int>(rank)) || !Available(rank)) continue;
    const Answer answer = solver_.Value(NamedDemand(rank)).answer;
    if (forbidden_.contains(layout_.names[rank])) {
      exhausted = exhausted && (answer == Answer::kNo || never_.contains(layout_.names[rank]));
    } else if (answer == Answer::kYes) {
      AddNamed(rank);
    } else if (answer == Answer::kUnknown) {
      exhausted = false;
    }
  }
}

void Solver::ObjectPlan::AddOthers() {
  EachSpare([&](const SpareKey& key) {
    if (Planned() >= min_count_) return true;
    const FormulaId demand = PositiveDemand(key.state, -1);
    if (solver_.Value(demand).answer != Answer::kYes) return false;
    other_names_.insert(key.name);
    others_.push_back({key.name, -1, key.state, demand});
    return false;
  });
}

bool Solver::ObjectPlan::KeysAreEndless() {
  if (cached_.endless_keys) return *cached_.endless_keys;
  bool endless = false;
  const bool settled = Settles([&] {
    endless = OtherKeys().Live(program_.start()) && Endless(OtherKeys(), program_.start());
  });
  if (settled || endless) cached_.endless_keys = endless;
  return endless;
}

std::optional<Found> Solver::ObjectPlan::FillUp() {
  if (max_count_ != kUnbounded && min_count_ > max_count_)
    return cube_.negative.empty() ? kNothing : kOpen;
  bool exhausted = true;
  if (Planned() < min_count_) AddNamed(exhausted);
  if (Planned() >= min_count_) return std::nullopt;
  const bool counts = !solver_.want_text_ && cube_.negative.empty();
  if (counts && KeysAreEndless()) return std::nullopt;
  if (counts && others_.empty()) {
    const size_t found = Spare().with_value.size();
    const size_t gone = solver_.SpareIn(Spare(), frame_.seen) +
                        (Spare().all && frames_.Seen(frame_, kAnyName) ? 1 : 0);
    if (Planned() + found >= min_count_ + gone) return std::nullopt;
  } else {
    AddOthers();
    if (Planned() >= min_count_) return std::nullopt;
  }
  // Closed objects prove it, and those of whose keys all were tried; otherwise there may be more.
  const bool only_reason = !count_is_reason_ || cube_.negative.size() == 1;
  return exhausted && only_reason && (ClosedToOthers() || Spare().all) ? kNothing : kOpen;
}

bool Solver::ObjectPlan::StillFails(AtomId atom) {
  const ObjectAtom& object = table_.object(atom);
  if (Planned() < object.min_properties || Planned() > object.max_properties) return true;
  for (const NameId id : frames_.Required(layout_, atom)) {
    if (!frames_.Seen(frame_, id) && !named_.contains(layout_.rank_of.at(id))) return true;
  }
  const auto refutes = [&](const Member& member) {
    const FormulaId demand = DemandOf(atom, member.state, member.rank);
    return demand != kTrueFormula &&
           solver_.Value(formulas_.And(member.demand, demand)).answer == Answer::kNo;
  };
  return std::ranges::any_of(named_, [&](const auto& entry) { return refutes(entry.second); }) ||
         std::ranges::any_of(others_, refutes);
}

Found Solver::ObjectPlan::Write() {
  for (const AtomId atom : cube_.negative) {
    if (!StillFails(atom)) return kOpen;
  }
  std::string text;
  bool has_text = solver_.want_text_;
  const auto write = [&](const Member& member) {
    const Found& value = solver_.Value(member.demand, solver_.want_text_);
    if (value.answer != Answer::kYes) uncertain_ = true;
    if (!value.text) has_text = false;
    if (!has_text) return;
    AddToList(text, json::Quote(member.name) + ":" + *value.text);
    if (text.size() > limits::kTextBytes) has_text = false;
  };
  for (const auto& [rank, member] : named_) write(member);
  for (const Member& member : others_) write(member);
  if (uncertain_) return kOpen;
  return {Answer::kYes, has_text ? std::optional(text) : std::nullopt};
}

}  // namespace pawl::schema
