// Decide, propagate, learn. Each clause is watched at two of its literals: as long as neither is
// false, nothing follows from the clause. When one gets false the clause finds another literal, or
// what is left has to be true. A clause that is false teaches a new one: what was decided is traced
// back through the reasons to the one literal of the last decision through which all paths lead
// (the first unique implication point). The search goes back to the decision that this clause
// depends on last, so it does not try the same mistake in another place. Variables that were met
// while learning are decided first. (Marques-Silva and Sakallah 1996; Moskewicz et al. 2001.)
#include "schemas/formula/clauses.h"

#include <algorithm>
#include <utility>

#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

Clauses::Literal Clauses::NewVariable(bool first) {
  const auto variable = static_cast<Literal>(levels_.size());
  levels_.push_back(0);
  reasons_.push_back(kNone);
  first_.push_back(first);
  activity_.push_back(0);
  seen_.push_back(false);
  values_.resize(values_.size() + 2, kOpen);
  watches_.resize(watches_.size() + 2);
  return 2 * variable;
}

void Clauses::Add(std::vector<Literal> clause) {
  Undo(0);
  SortUnique(clause);
  for (size_t i = 0; i + 1 < clause.size(); ++i) {
    if (clause[i + 1] == Not(clause[i])) return;
  }
  if (std::ranges::any_of(clause, [&](Literal l) { return values_[l] == kTrue; })) return;
  std::erase_if(clause, [&](Literal l) { return values_[l] == kFalse; });
  for (const Literal literal : clause) activity_[literal >> 1] += 1;
  if (clause.empty()) {
    impossible_ = true;
  } else if (clause.size() == 1) {
    Assign(clause[0], kNone);
  } else {
    Keep(std::move(clause));
  }
}

uint32_t Clauses::Keep(std::vector<Literal> clause) {
  const auto id = static_cast<uint32_t>(clauses_.size());
  watches_[clause[0]].push_back(id);
  watches_[clause[1]].push_back(id);
  clauses_.push_back(std::move(clause));
  return id;
}

void Clauses::Assign(Literal literal, uint32_t reason) {
  values_[literal] = kTrue;
  values_[Not(literal)] = kFalse;
  levels_[literal >> 1] = static_cast<uint32_t>(decisions_.size());
  reasons_[literal >> 1] = reason;
  trail_.push_back(literal);
}

void Clauses::Undo(size_t level) {
  if (decisions_.size() <= level) return;
  const size_t size = decisions_[level];
  for (size_t i = size; i < trail_.size(); ++i)
    values_[trail_[i]] = values_[Not(trail_[i])] = kOpen;
  trail_.resize(size);
  decisions_.resize(level);
  next_ = size;
}

uint32_t Clauses::Propagate(int64_t& steps) {
  for (; next_ < trail_.size(); ++next_) {
    const Literal gone = Not(trail_[next_]);
    std::vector<uint32_t>& watched = watches_[gone];
    size_t kept = 0;
    for (size_t i = 0; i < watched.size(); ++i) {
      --steps;
      StopScope::Step();
      std::vector<Literal>& clause = clauses_[watched[i]];
      if (clause[0] == gone) std::swap(clause[0], clause[1]);
      const auto other = std::find_if(clause.begin() + 2, clause.end(),
                                      [&](Literal l) { return values_[l] != kFalse; });
      if (values_[clause[0]] != kTrue && other != clause.end()) {
        std::swap(clause[1], *other);
        watches_[clause[1]].push_back(watched[i]);
        continue;
      }
      watched[kept++] = watched[i];
      if (values_[clause[0]] == kTrue) continue;
      if (values_[clause[0]] == kFalse) {
        const uint32_t conflict = watched[i];
        while (++i < watched.size()) watched[kept++] = watched[i];
        watched.resize(kept);
        return conflict;
      }
      Assign(clause[0], watched[i]);
    }
    watched.resize(kept);
  }
  return kNone;
}

void Clauses::Learn(uint32_t clause, int64_t& steps) {
  std::vector<Literal> learned = {0};  // the first is the one that all paths lead through
  std::vector<uint32_t> met;
  size_t open = 0, level = 0;
  size_t at = trail_.size();
  do {
    --steps;
    for (const Literal literal : clauses_[clause]) {
      const uint32_t variable = literal >> 1;
      if (seen_[variable] || levels_[variable] == 0 || values_[literal] != kFalse) continue;
      seen_[variable] = true;
      met.push_back(variable);
      activity_[variable] += bump_;
      if (levels_[variable] == decisions_.size()) {
        ++open;
      } else {
        learned.push_back(literal);
        level = std::max<size_t>(level, levels_[variable]);
      }
    }
    while (!seen_[trail_[--at] >> 1]) {
    }
    clause = reasons_[trail_[at] >> 1];
  } while (--open > 0);
  learned[0] = Not(trail_[at]);
  for (const uint32_t variable : met) seen_[variable] = false;
  if ((bump_ *= 1.05) > 1e100) {
    for (double& activity : activity_) activity *= 1e-100;
    bump_ *= 1e-100;
  }
  // The second watches, too: it gets open again last.
  for (size_t i = 2; i < learned.size(); ++i) {
    if (levels_[learned[i] >> 1] > levels_[learned[1] >> 1]) std::swap(learned[1], learned[i]);
  }
  Undo(level);
  const Literal literal = learned[0];
  Assign(literal, learned.size() == 1 ? kNone : Keep(std::move(learned)));
}

Clauses::Answer Clauses::Solve(int64_t& steps) {
  while (!impossible_) {
    const uint32_t clause = Propagate(steps);
    if (clause != kNone) {
      impossible_ = decisions_.empty();
      if (!impossible_) Learn(clause, steps);
      continue;
    }
    if (steps <= 0) return Answer::kUnknown;
    uint32_t best = kNone;
    for (uint32_t variable = 0; variable < levels_.size(); ++variable) {
      if (values_[2 * variable] == kOpen &&
          (best == kNone || activity_[variable] > activity_[best]))
        best = variable;
    }
    if (best == kNone) return Answer::kYes;
    decisions_.push_back(trail_.size());
    Assign(2 * best + (first_[best] ? 0 : 1), kNone);
  }
  return Answer::kNo;
}

}  // namespace pawl::schema
