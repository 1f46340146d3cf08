// Spans of a text under further conditions. As a rule a table of the text decides
// (source_table.h). Where spans of two kinds or very many lengths meet, what the text goes on with
// is walked, the shortest values first. The first end that is met is the nearest one, and every
// state on the way to it is live. Where the walk ends without an end, all that it met is dead.
// After limits::kSourceSteps each condition counts by itself: the state is live.
#include <unordered_map>
#include <vector>

#include "schemas/limits.h"
#include "schemas/scalar/string_search.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

void StringSearch::MakeSourceTable() {
  table_ = std::make_unique<SourceTable>(program_, *main_source_, accept_, hopeless_);
  program_.spending().nodes += table_->steps();
}

StringSearch::StateId StringSearch::BesideSpans(StateId state) {
  words_.resize(program_.width());
  program_.CopyKey(state, words_.data());
  program_.SetSources(words_.data(), {}, program_.Count(state));
  return program_.KeepKey(words_.data());
}

void StringSearch::DecideBySource(StateId start) {
  if (SourceTable* const table = Table()) {
    const bool live = table->Live(start) || (beside_spans_ && Live(BesideSpans(start)));
    At(start).live = live ? Verdict::kLive : Verdict::kDead;
    return;
  }
  if (one_atom_) {
    // Each beginning of a span goes on to one.
    const bool begins = program_.SourceNode(start) != SourceTrie::kNone;
    At(start).live = begins ? Verdict::kLive : Verdict::kDead;
    return;
  }
  struct Visit {
    StateId from;
    int via;
  };
  At(start).sought = true;
  std::unordered_map<StateId, Visit> visited = {{start, {start, -1}}};
  std::vector<StateId> queue = {start};
  size_t steps = 0;
  for (size_t head = 0; head < queue.size(); ++head) {
    const StateId state = queue[head];
    if (At(state).live == Verdict::kDead) continue;
    if (hopeless_ && hopeless_(state)) {
      At(state).live = Verdict::kDead;
      continue;
    }
    if (Accepts(state)) {
      At(state).live = Verdict::kLive;
      for (StateId s = state; s != start;) {
        const Visit visit = visited.at(s);
        At(visit.from).live = Verdict::kLive;
        At(visit.from).via = visit.via;
        s = visit.from;
      }
      program_.spending().steps += static_cast<int64_t>(steps);
      return;
    }
    for (const char32_t c : program_.SourceFollowing(state)) {
      StopScope::Step();
      if (++steps > limits::kSourceSteps) {
        At(start).live = Verdict::kLive;
        return;
      }
      const int cls = program_.ClassOf(c);
      const StateId next = program_.NextOnce(state, cls);
      if (visited.try_emplace(next, Visit{state, cls}).second) queue.push_back(next);
    }
  }
  program_.spending().steps += static_cast<int64_t>(steps);
  for (const auto& [state, visit] : visited) At(state).live = Verdict::kDead;
  found_dead_ = true;
}

}  // namespace pawl::schema
