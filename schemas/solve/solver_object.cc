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

#include "schemas/formula/constant.h"
#include "schemas/solve/solver.h"
#include "schemas/unique/distinct.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

struct Member {
  std::string name;
  int rank;  // -1: not named in the schema
  StringProgram::StateId state;
  FormulaId demand;
};

// Members beyond the named ones that are written down.
constexpr uint64_t kMaxPlanned = 5000;

}  // namespace

// Each set is the one before it and one key more, which is looked at once.
size_t Solver::RequiredIn(const ObjectLayout& layout, AtomId atom, IdSets::Id seen) {
  const auto& required = frames_.Required(layout, atom);
  std::vector<IdSets::Id> way;
  size_t count = 0;
  for (; seen != IdSets::kEmpty; seen = frames_.seen().Before(seen)) {
    if (const auto known = required_in_.find({atom, seen}); known != required_in_.end()) {
      count = known->second;
      break;
    }
    way.push_back(seen);
  }
  for (auto it = way.rbegin(); it != way.rend(); ++it) {
    const NameId last = frames_.seen().Last(*it);
    count += std::binary_search(required.begin(), required.end(), last) ? 1 : 0;
    required_in_.emplace(std::pair(atom, *it), count);
  }
  return count;
}

Found Solver::SolveObject(const Frame& frame, const Cube& cube) {
  FormulaArena& formulas = table_.formulas;
  Found no{Answer::kNo, std::nullopt};
  Found unknown{Answer::kUnknown, std::nullopt};
  const ObjectLayout& layout = frames_.layout(frame.layout);
  StringProgram& program = *layout.program;
  const bool ordered = options_.order == JsonSchemaOptions::Order::kSchema;

  const auto demand_of = [&](AtomId atom, StringProgram::StateId state, int rank) {
    return frames_.PropertyDemand(layout, atom, program, state, rank);
  };
  const auto positive_demand = [&](StringProgram::StateId state, int rank) {
    FormulaId demand = kTrueFormula;
    for (const AtomId atom : cube.positive)
      demand = formulas.And(demand, demand_of(atom, state, rank));
    return demand;
  };
  NamedDemands& cached = named_demands_[{frame.layout, cube.positive}];
  if (cached.by_rank.empty()) cached.by_rank.assign(layout.names.size(), kUnset);
  const auto named_demand = [&](size_t rank) {
    FormulaId& demand = cached.by_rank[rank];
    if (demand == kUnset)
      demand = positive_demand(layout.name_states[rank], static_cast<int>(rank));
    return demand;
  };
  const auto available = [&](size_t rank) {
    if (frames_.Seen(frame, layout.name_ids[rank])) return false;
    return !ordered || static_cast<int64_t>(rank) > frame.last_rank;
  };

  std::map<int, Member> named;  // by rank
  std::vector<Member> others;
  std::set<std::string> other_names;
  const auto planned = [&] { return frame.count + named.size() + others.size(); };
  const auto add_named = [&](size_t rank) -> Member& {
    const int r = static_cast<int>(rank);
    return named
        .try_emplace(r, Member{layout.names[rank], r, layout.name_states[rank], named_demand(rank)})
        .first->second;
  };

  // What the positive atoms force.
  uint64_t max_count = kUnbounded, min_count = 0;
  uint64_t missing_names = 0;
  bool uncertain = false;
  for (const AtomId atom : cube.positive) {
    const ObjectAtom& object = table_.object(atom);
    max_count = std::min(max_count, object.max_properties);
    min_count = std::max(min_count, object.min_properties);
  }
  if (min_count > max_count) return no;
  // Most frames need no more than this: every missing key may still come and has a value.
  const bool plan = want_text_ || !cube.negative.empty() || cube.positive.size() > 1;
  // In any order all keys that are missing may still come, so they need not be looked at again.
  const bool counted = !plan && !ordered && cube.positive.size() == 1 && cached.all_required;
  if (counted) {
    missing_names = frames_.Required(layout, cube.positive[0]).size() -
                    RequiredIn(layout, cube.positive[0], frame.seen);
  }
  for (const AtomId atom : cube.positive) {
    if (counted) break;
    bool all = frame.seen == IdSets::kEmpty;
    for (const NameId id : frames_.Required(layout, atom)) {
      if (frames_.Seen(frame, id)) continue;
      const size_t rank = static_cast<size_t>(layout.rank_of.at(id));
      if (!available(rank)) return no;
      const Answer answer = Value(named_demand(rank)).answer;
      if (answer == Answer::kNo) return no;
      uncertain = uncertain || answer == Answer::kUnknown;
      all = all && answer == Answer::kYes;
      ++missing_names;
      if (plan) add_named(rank);
    }
    if (all && cube.positive.size() == 1) cached.all_required = true;
  }
  if (plan) missing_names = named.size();
  if (max_count != kUnbounded && frame.count + missing_names > max_count) return no;
  if (!plan) {
    if (frame.count + missing_names >= min_count)
      return {uncertain ? Answer::kUnknown : Answer::kYes, std::nullopt};
    for (const NameId id : frames_.Required(layout, cube.positive[0])) {
      if (!frames_.Seen(frame, id)) add_named(static_cast<size_t>(layout.rank_of.at(id)));
    }
  }

  // Keys that the schema does not name and that can have a value.
  StringSearch other_keys(
      program,
      [&](StringProgram::StateId state) {
        if (layout.has_names && program.Literal(state, layout.names_atom) >= 0) return false;
        return Value(positive_demand(state, -1)).answer == Answer::kYes;
      },
      options_.step_fuel / 8);
  // For members nobody required: a few plain names, the shortest key that each pattern knows, and
  // as many as are missing.
  std::vector<std::pair<std::string, StringProgram::StateId>> spare;
  const auto collect_spare = [&] {
    if (!spare.empty()) return;
    std::vector<std::string> candidates;
    const auto add_variants = [&](const std::string& key) {
      candidates.push_back(key);
      for (char c = 'a'; c <= 'e'; ++c) candidates.push_back(key + c);
      for (char c = '0'; c <= '4'; ++c) candidates.push_back(key + c);
    };
    for (const AtomId atom : layout.atoms) {
      for (const ObjectAtom::Pattern& pattern : table_.object(atom).patterns) {
        StringSearch& search = scalars_.String({pattern.name, {}, kNoFrame});
        if (const auto text = search.Shortest(search.program().start(), 200)) {
          add_variants(EncodeCodepoints(*text));
        }
      }
      // A key that fits propertyNames, and one that does not, for where that is to fail.
      const FormulaId names = table_.object(atom).property_names;
      for (const FormulaId wanted : {names, formulas.Not(names)}) {
        if (formulas.IsConstant(wanted)) continue;
        StringSearch& search = scalars_.String({wanted, {}, kNoFrame});
        if (const auto text = search.Shortest(search.program().start(), 200)) {
          add_variants(EncodeCodepoints(*text));
        }
      }
    }
    if (layout.has_key_conditions) {
      // The shortest texts over one character of each class, whatever the patterns make of them.
      std::deque<std::u32string> queue = {U""};
      for (int tried = 0; tried < 100 && !queue.empty(); ++tried) {
        const std::u32string key = std::move(queue.front());
        queue.pop_front();
        candidates.push_back(EncodeCodepoints(key));
        for (int cls = 0; cls < program.classes() && queue.size() < 300; ++cls) {
          const char32_t c = program.Representative(cls);
          if (c < 0xD800 || c > 0xDFFF) queue.push_back(key + c);
        }
      }
    }
    for (char c = 'a'; c <= 'z'; ++c) candidates.emplace_back(1, c);
    const uint64_t missing = std::min(min_count - std::min(min_count, planned()), kMaxPlanned);
    if (layout.has_key_conditions && missing > 0 && other_keys.Live(program.start())) {
      const size_t wanted = missing + frames_.seen().Size(frame.seen) + layout.names.size();
      for (const std::u32string& key : Continuations(other_keys, program.start(), wanted))
        candidates.push_back(EncodeCodepoints(key));
    }
    const uint64_t numbered = layout.has_key_conditions ? 40 : 40 + frame.count + missing;
    for (uint64_t i = 0; i < std::min(numbered, kMaxPlanned); ++i)
      candidates.push_back("k" + std::to_string(i));
    std::set<std::string> known;
    for (const std::string& name : candidates) {
      const NameId id = frames_.InternName(name);
      if (layout.rank_of.contains(id) || frames_.Seen(frame, id) || !known.insert(name).second)
        continue;
      StringProgram::StateId state = program.start();
      for (const char32_t c : DecodeCodepoints(name))
        state = program.Next(state, program.ClassOf(c));
      spare.emplace_back(name, state);
    }
  };

  // No key beyond the named ones can have a value.
  const auto closed_to_others = [&] {
    FormulaId demand = kTrueFormula;
    for (const AtomId atom : cube.positive) {
      const ObjectAtom& object = table_.object(atom);
      if (object.patterns.empty()) demand = formulas.And(demand, object.additional);
      const auto barren = [&](const ObjectAtom::Pattern& pattern) {
        return Value(pattern.value).answer == Answer::kNo;
      };
      if (!object.patterns.empty() && std::ranges::all_of(object.patterns, barren) &&
          Value(object.additional).answer == Answer::kNo)
        return true;
    }
    return Value(demand).answer == Answer::kNo;
  };
  // Whether anything could make a negative atom fail; when nothing can, the cube is empty.
  const std::map<int, Member> forced = named;
  const auto can_fail = [&](AtomId atom) {
    const ObjectAtom& object = table_.object(atom);
    for (const NameId id : frames_.Required(layout, atom)) {
      if (!frames_.Seen(frame, id) && !forced.contains(layout.rank_of.at(id))) return true;
    }
    if (frame.count + forced.size() < object.min_properties || object.max_properties < max_count)
      return true;
    for (size_t rank = 0; rank < layout.names.size(); ++rank) {
      if (!available(rank)) continue;
      const FormulaId demand = demand_of(atom, layout.name_states[rank], static_cast<int>(rank));
      if (demand == kTrueFormula) continue;
      if (Value(formulas.And(named_demand(rank), formulas.Not(demand))).answer != Answer::kNo)
        return true;
    }
    // Other keys: none may come, or none can hurt.
    const bool harmless = object.patterns.empty() && object.additional == kTrueFormula &&
                          object.property_names == kTrueFormula;
    return !closed_to_others() && !harmless;
  };

  // One reason to fail for each negative atom.
  std::set<std::string> forbidden;  // keys whose absence is such a reason,
  std::set<std::string> never;      // the only one there is
  const auto strengthen = [&](Member& member, FormulaId against) {
    const FormulaId demand = formulas.And(member.demand, formulas.Not(against));
    if (Value(demand).answer != Answer::kYes) return false;
    member.demand = demand;
    return true;
  };
  const auto fail_by_member = [&](AtomId atom) {
    for (auto& [rank, member] : named) {
      const FormulaId demand = demand_of(atom, member.state, rank);
      if (demand != kTrueFormula && strengthen(member, demand)) return true;
    }
    for (Member& member : others) {
      const FormulaId demand = demand_of(atom, member.state, -1);
      if (demand != kTrueFormula && strengthen(member, demand)) return true;
    }
    if (planned() + 1 > max_count) return false;
    for (size_t rank = 0; rank < layout.names.size(); ++rank) {
      if (named.contains(static_cast<int>(rank)) || !available(rank) ||
          forbidden.contains(layout.names[rank]))
        continue;
      const FormulaId demand = demand_of(atom, layout.name_states[rank], static_cast<int>(rank));
      if (demand == kTrueFormula) continue;
      Member member{layout.names[rank], static_cast<int>(rank), layout.name_states[rank],
                    positive_demand(layout.name_states[rank], static_cast<int>(rank))};
      if (!strengthen(member, demand)) continue;
      named.emplace(static_cast<int>(rank), std::move(member));
      return true;
    }
    collect_spare();
    for (const auto& [name, state] : spare) {
      if (other_names.contains(name)) continue;
      const FormulaId demand = demand_of(atom, state, -1);
      if (demand == kTrueFormula) continue;
      Member member{name, -1, state, positive_demand(state, -1)};
      if (!strengthen(member, demand)) continue;
      other_names.insert(name);
      others.push_back(std::move(member));
      return true;
    }
    return false;
  };
  for (const AtomId atom : cube.negative) {
    if (!can_fail(atom)) return no;
  }
  for (const AtomId atom : cube.negative) {
    const ObjectAtom& object = table_.object(atom);
    const auto& required = frames_.Required(layout, atom);
    const auto missing = std::find_if(required.begin(), required.end(), [&](NameId id) {
      return !frames_.Seen(frame, id) && !named.contains(layout.rank_of.at(id));
    });
    if (missing != required.end()) {
      forbidden.insert(frames_.Name(*missing));
      const bool only_way = required.size() == 1 && object.properties.empty() &&
                            object.patterns.empty() && object.additional == kTrueFormula &&
                            object.property_names == kTrueFormula && object.min_properties == 0 &&
                            object.max_properties == kUnbounded;
      if (only_way) never.insert(frames_.Name(*missing));
    } else if (object.min_properties > std::max<uint64_t>(planned(), min_count)) {
      max_count = std::min(max_count, object.min_properties - 1);
    } else if (!fail_by_member(atom)) {
      if (object.max_properties == kUnbounded) return unknown;
      min_count = std::max(min_count, object.max_properties + 1);
    }
  }

  // As many members as the counts want.
  if (max_count != kUnbounded && min_count > max_count) return cube.negative.empty() ? no : unknown;
  bool exhausted = true;
  if (planned() < min_count) {
    for (size_t rank = 0; rank < layout.names.size() && planned() < min_count; ++rank) {
      if (named.contains(static_cast<int>(rank)) || !available(rank)) continue;
      const FormulaId demand = named_demand(rank);
      const Answer answer = Value(demand).answer;
      if (forbidden.contains(layout.names[rank])) {
        exhausted = exhausted && (answer == Answer::kNo || never.contains(layout.names[rank]));
      } else if (answer == Answer::kYes) {
        named.emplace(static_cast<int>(rank), Member{layout.names[rank], static_cast<int>(rank),
                                                     layout.name_states[rank], demand});
      } else if (answer == Answer::kUnknown) {
        exhausted = false;
      }
    }
  }
  const bool endless = planned() < min_count && !want_text_ && cube.negative.empty() &&
                       other_keys.Live(program.start()) && Endless(other_keys, program.start());
  if (planned() < min_count && !endless) {
    collect_spare();
    for (size_t i = 0; i < spare.size() && planned() < min_count; ++i) {
      if (other_names.contains(spare[i].first)) continue;
      const FormulaId demand = positive_demand(spare[i].second, -1);
      if (Value(demand).answer != Answer::kYes) continue;
      other_names.insert(spare[i].first);
      others.push_back({spare[i].first, -1, spare[i].second, demand});
    }
    if (planned() < min_count) {
      // Closed objects prove it; otherwise more keys may exist than were tried.
      const bool closed = exhausted && closed_to_others();
      return closed ? no : unknown;
    }
  }

  // The reasons must still stand, and every member needs a value.
  for (const AtomId atom : cube.negative) {
    const ObjectAtom& object = table_.object(atom);
    bool fails = planned() < object.min_properties || planned() > object.max_properties;
    for (const NameId id : frames_.Required(layout, atom)) {
      fails = fails || (!frames_.Seen(frame, id) && !named.contains(layout.rank_of.at(id)));
    }
    const auto refutes = [&](const Member& member) {
      const FormulaId demand = demand_of(atom, member.state, member.rank);
      return demand != kTrueFormula &&
             Value(formulas.And(member.demand, demand)).answer == Answer::kNo;
    };
    for (const auto& [rank, member] : named) fails = fails || refutes(member);
    for (const Member& member : others) fails = fails || refutes(member);
    if (!fails) return unknown;
  }
  std::string text;
  bool has_text = want_text_;
  const auto write = [&](const Member& member) {
    const Found& value = Value(member.demand, want_text_);
    if (value.answer != Answer::kYes) uncertain = true;
    if (!value.text) has_text = false;
    if (!has_text) return;
    if (!text.empty()) text += ',';
    text += json::Quote(member.name) + ":" + *value.text;
    if (text.size() > kMaxWitness) has_text = false;
  };
  for (const auto& [rank, member] : named) write(member);
  for (const Member& member : others) write(member);
  if (uncertain) return unknown;
  return {Answer::kYes, has_text ? std::optional(text) : std::nullopt};
}

}  // namespace pawl::schema
