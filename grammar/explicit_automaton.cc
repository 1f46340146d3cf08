// Exploring is a breadth-first walk that tries every byte in every state. A view finds the states
// that can reach its set by a breadth-first walk from the set over the edges turned round, and what
// cannot is dead: so a view is live exactly.
#include "grammar/explicit_automaton.h"

#include <algorithm>
#include <unordered_map>

#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl {

ExplicitAutomaton::ExplicitAutomaton(std::vector<State> states) : states_(std::move(states)) {
  for (uint32_t from = 0; from < size(); ++from) {
    for (const Edge& edge : states_[from].edges)
      states_[edge.to].into.push_back({edge.first, edge.last, from});
  }
}

Result<std::shared_ptr<const ExplicitAutomaton>> ExplicitAutomaton::Explore(
    Machine& machine, Machine::Key start, const ExploreLimits& limits) {
  std::vector<State> states;
  std::vector<Machine::Key> keys;
  std::unordered_map<Machine::Key, uint32_t> index;
  const auto id_of = [&](Machine::Key key) {
    const auto [known, inserted] = index.emplace(key, static_cast<uint32_t>(keys.size()));
    if (inserted) {
      keys.push_back(key);
      states.emplace_back();
    }
    return known->second;
  };
  if (start != Machine::kDead) id_of(start);
  for (uint32_t at = 0; at < keys.size(); ++at) {
    if (keys.size() > limits.max_states || uint64_t{at} * 256 > limits.max_steps)
      return Error{ErrorCode::kLimit, "has more states than can be listed", ""};
    const Machine::Key key = keys[at];
    states[at].accepting = machine.Accepting(key);
    for (int byte = 0; byte < 256; ++byte) {
      StopScope::Step();
      const Machine::Key next = machine.Step(key, static_cast<uint8_t>(byte));
      if (next == Machine::kDead) continue;
      const uint32_t to = id_of(next);
      std::vector<Edge>& edges = states[at].edges;
      if (!edges.empty() && edges.back().to == to && edges.back().last + 1 == byte) {
        edges.back().last = static_cast<uint8_t>(byte);
      } else {
        edges.push_back({static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), to});
      }
    }
  }
  if (states.empty()) states.emplace_back();  // no text at all
  return std::make_shared<const ExplicitAutomaton>(std::move(states));
}

std::vector<bool> ExplicitAutomaton::accepting() const {
  std::vector<bool> out(size());
  for (uint32_t i = 0; i < size(); ++i) out[i] = states_[i].accepting;
  return out;
}

uint32_t ExplicitAutomaton::Step(uint32_t state, uint8_t byte) const {
  const std::vector<Edge>& edges = states_[state].edges;
  const auto after =
      std::upper_bound(edges.begin(), edges.end(), byte,
                       [](uint8_t value, const Edge& edge) { return value < edge.first; });
  if (after == edges.begin() || std::prev(after)->last < byte) return kNone;
  return std::prev(after)->to;
}

AutomatonTarget::AutomatonTarget(const ExplicitAutomaton& automaton, std::vector<bool> states)
    : accepting(std::move(states)), distance(automaton.size(), kFar) {
  std::vector<uint32_t> queue;
  for (uint32_t i = 0; i < automaton.size(); ++i) {
    if (!accepting[i]) continue;
    distance[i] = 0;
    queue.push_back(i);
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const ExplicitAutomaton::Edge& edge : automaton.state(queue[i]).into) {
      if (distance[edge.to] != kFar) continue;
      distance[edge.to] = distance[queue[i]] + 1;
      queue.push_back(edge.to);
    }
  }
}

bool AutomatonView::Ends(Key state) {
  return std::ranges::all_of(automaton_->state(LexemeOf(state) - 1).edges,
                             [this](const auto& edge) { return Far(edge.to); });
}

std::optional<std::string> AutomatonView::CompletionBytes(Key key) {
  uint32_t at = LexemeOf(key) - 1;
  if (Far(at)) return std::nullopt;
  const std::vector<uint32_t>& distance = target_->distance;
  std::string text;
  while (distance[at] > 0) {
    for (const ExplicitAutomaton::Edge& edge : automaton_->state(at).edges) {
      if (distance[edge.to] != distance[at] - 1) continue;
      // A letter looks better than a control character.
      const auto letter = static_cast<uint8_t>('a');
      text.push_back(
          static_cast<char>(edge.first <= letter && letter <= edge.last ? letter : edge.first));
      at = edge.to;
      break;
    }
  }
  return text;
}

std::bitset<256> AutomatonView::LastBytes() {
  std::bitset<256> last;
  for (uint32_t i = 0; i < automaton_->size(); ++i) {
    if (!target_->accepting[i]) continue;
    for (const ExplicitAutomaton::Edge& edge : automaton_->state(i).into) {
      for (int byte = edge.first; byte <= edge.last; ++byte) last.set(static_cast<size_t>(byte));
    }
  }
  return last;
}

// A set of states is where the part of the text that was read may have begun. A character takes it
// back over its bytes, last byte first, along the automaton's edges turned round: the subset
// construction, made as far as it is walked. Nothing is listed before a character that may end a
// text is taken, so that a machine with endlessly many states does no harm where texts are not cut
// inside of it.

namespace {

size_t LengthOf(uint8_t first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

}  // namespace

uint32_t ReversedMachine::Intern(Place place) {
  if (place == Place{}) return 0;
  const auto [known, inserted] = index_.emplace(place, static_cast<uint32_t>(places_.size()));
  if (inserted) places_.push_back(std::move(place));
  return known->second;
}

bool ReversedMachine::List() {
  if (automaton_ != nullptr || failed_) return !failed_;
  auto listed = ExplicitAutomaton::Explore(*machine_, machine_->Start());
  failed_ = !listed.ok();
  if (!failed_) automaton_ = *std::move(listed);
  return !failed_;
}

uint32_t ReversedMachine::Settle(uint32_t at) {
  const Place place = places_[at];
  if (place.bytes.empty() || place.bytes.size() < LengthOf(static_cast<uint8_t>(place.bytes[0])))
    return at;
  if (const auto known = settled_.find(at); known != settled_.end()) return known->second;
  std::vector<uint32_t> states;
  if (List()) {
    if (place.set > 0) {
      states = sets_[place.set - 1];
    } else {
      for (uint32_t i = 0; i < automaton_->size(); ++i) {
        if (automaton_->state(i).accepting) states.push_back(i);
      }
    }
    for (size_t i = place.bytes.size(); i-- > 0;) {
      const auto byte = static_cast<uint8_t>(place.bytes[i]);
      std::vector<uint32_t> before;
      for (const uint32_t state : states) {
        for (const ExplicitAutomaton::Edge& edge : automaton_->state(state).into) {
          if (edge.first <= byte && byte <= edge.last) before.push_back(edge.to);
        }
      }
      SortUnique(before);
      states = std::move(before);
    }
  }
  const auto [set, inserted] = set_index_.emplace(states, static_cast<uint32_t>(sets_.size() + 1));
  if (inserted) sets_.push_back(states);
  const uint32_t to = Intern({.set = set->second});
  settled_.emplace(at, to);
  return to;
}

Machine::Key ReversedMachine::StepFrame(Key state, uint8_t byte) {
  Place place = places_[Settle(LexemeOf(state) - 1)];
  if (place.set > 0 && sets_[place.set - 1].empty()) return kDead;
  if (place.bytes.empty() ? byte >= 0x80 && byte < 0xC2 : (byte & 0xC0) != 0x80) return kDead;
  place.bytes.push_back(static_cast<char>(byte));
  if (place.set == 0 && place.bytes.size() == LengthOf(static_cast<uint8_t>(place.bytes[0])) &&
      !last_bytes_[byte]) {
    return kDead;
  }
  return MakeKey(1, Intern(std::move(place)) + 1);
}

bool ReversedMachine::Accepting(Key state) {
  const Place& place = places_[Settle(LexemeOf(state) - 1)];
  if (!place.bytes.empty()) return false;
  if (place.set == 0) {
    const Key start = machine_->Start();
    return start != kDead && machine_->Accepting(start);
  }
  const std::vector<uint32_t>& states = sets_[place.set - 1];
  return !states.empty() && states[0] == 0;
}

std::shared_ptr<Machine> ReversedMachine::Before(Key state) {
  const Place& place = places_[Settle(LexemeOf(state) - 1)];
  if (place.set == 0) return machine_;
  if (failed_) return nullptr;
  std::vector<bool> ends(automaton_->size());
  for (const uint32_t at : sets_[place.set - 1]) ends[at] = true;
  return std::make_shared<AutomatonView>(automaton_, 0, std::move(ends));
}

}  // namespace pawl
