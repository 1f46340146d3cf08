// A set of states is where the part of the text that was read may have begun. A character takes it
// back over its bytes, last byte first, along the automaton's edges turned round: the subset
// construction, made as far as it is walked. Nothing is listed before a character that may end a
// text is taken, so that a machine with endlessly many states does no harm where texts are not cut
// inside of it.
#include "grammar/derived_machines.h"

#include <algorithm>

#include "src/base/sorted.h"

namespace pawl {
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
