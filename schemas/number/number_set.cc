// A trie of the plain decimal forms. JSON forbids leading zeros, so only zeros at the end of a
// fraction give a value several texts: a node that ends a value and stands in a fraction takes
// zeros for ever, by staying where it is, or through a child for the zeros where a longer value
// begins the same way.
#include "schemas/number/number_set.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <unordered_map>

#include "grammar/hash_index.h"
#include "schemas/limits.h"
#include "src/base/stop_scope.h"

namespace pawl {

// Exponents are written out.
std::string NumberSet::Plain(const Decimal& value) {
  if (value.is_zero()) return "0";
  std::string text = value.digits();
  if (value.exponent() >= 0) {
    text.append(static_cast<size_t>(value.exponent()), '0');
  } else {
    const size_t places = static_cast<size_t>(-value.exponent());
    if (text.size() <= places) text.insert(0, places - text.size() + 1, '0');
    text.insert(text.size() - places, 1, '.');
  }
  return value.negative() ? "-" + text : text;
}

Result<NumberSet> NumberSet::Create(const std::vector<Decimal>& values, bool canonical) {
  NumberSet set;
  set.nodes_.resize(2);
  for (size_t index = 0; index < values.size(); ++index) {
    const Decimal& value = values[index];
    const int64_t places = static_cast<int64_t>(value.digits().size()) + std::abs(value.exponent());
    if (places > limits::kNumberPlaces) {
      return Error{ErrorCode::kLimit,
                   "a number with more than " + std::to_string(limits::kNumberPlaces) +
                       " places when written out",
                   ""};
    }
    set.Insert(Plain(value), static_cast<uint32_t>(index), canonical);
    if (value.is_zero() && !canonical) set.Insert("-0", static_cast<uint32_t>(index), false);
  }
  // Zeros after a value that are also the beginning of a longer one.
  const auto last = static_cast<uint32_t>(set.nodes_.size());
  for (uint32_t i = 1; i < last; ++i) {
    for (uint32_t n = i; set.nodes_[n].zeros && !set.nodes_[n].children.empty();) {
      const uint32_t next = set.AddChild(n, '0');
      set.nodes_[next].accepting = set.nodes_[next].zeros = true;
      set.nodes_[next].index = set.nodes_[n].index;
      n = next;
    }
  }
  return set;
}

void NumberSet::Insert(const std::string& plain, uint32_t index, bool canonical) {
  empty_ = false;
  uint32_t node = 1;
  for (const char c : plain) node = AddChild(node, c);
  nodes_[node].accepting = true;
  nodes_[node].index = index;
  if (canonical) return;
  if (plain.find('.') != std::string::npos) {
    nodes_[node].zeros = true;
  } else {
    // "5" is also "5." and zeros, at least one; the point itself is no end.
    const uint32_t first_zero = AddChild(AddChild(node, '.'), '0');
    nodes_[first_zero].accepting = nodes_[first_zero].zeros = true;
    nodes_[first_zero].index = index;
  }
}

uint32_t NumberSet::Child(uint32_t node, char c) const {
  const auto& children = nodes_[node].children;
  const auto it = std::lower_bound(children.begin(), children.end(), std::pair(c, uint32_t{0}));
  return it != children.end() && it->first == c ? it->second : kDead;
}

uint32_t NumberSet::AddChild(uint32_t node, char c) {
  if (const uint32_t child = Child(node, c); child != kDead) return child;
  const uint32_t fresh = static_cast<uint32_t>(nodes_.size());
  nodes_.emplace_back();
  auto& children = nodes_[node].children;
  children.insert(std::lower_bound(children.begin(), children.end(), std::pair(c, uint32_t{0})),
                  {c, fresh});
  return fresh;
}

uint32_t NumberSet::Step(uint32_t state, char c) const {
  if (state == kDead) return kDead;
  const uint32_t child = Child(state, c);
  if (child != kDead) return child;
  return c == '0' && nodes_[state].zeros ? state : kDead;
}

std::string NumberSet::ShortestAccepting(uint32_t start) const {
  std::unordered_map<uint32_t, std::pair<uint32_t, char>> from = {{start, {start, 0}}};
  std::deque<uint32_t> queue = {start};
  while (!queue.empty()) {
    const uint32_t node = queue.front();
    queue.pop_front();
    if (nodes_[node].accepting) {
      std::string out;
      for (uint32_t n = node; n != start; n = from.at(n).first) out.push_back(from.at(n).second);
      std::reverse(out.begin(), out.end());
      return out;
    }
    for (const auto& [c, child] : nodes_[node].children) {
      StopScope::Step();
      if (from.emplace(child, std::pair(node, c)).second) queue.push_back(child);
    }
  }
  return "";
}

// A value is its digits from the first to the last that is not zero, and an order: 150 is 0.15
// times 10^3. A trie has the digits of all values. A text is read along it, counting places; zeros
// are taken back when another digit follows. What exponent the text then needs is the difference of
// the orders, so a beginning is hopeless only where no value has these digits, or, once the
// exponent has begun, where none of the differences begins like it.

ExponentSet::ExponentSet(const std::vector<Decimal>& values) {
  nodes_.resize(2);
  for (const Decimal& value : values) {
    empty_ = false;
    if (value.is_zero()) {
      has_zero_ = true;
      continue;
    }
    const std::string& digits = value.digits();  // without zeros at either end
    uint32_t node = value.negative() ? 1 : 0;
    for (const char digit : digits) {
      const auto [it, fresh] =
          nodes_[node].children.try_emplace(digit, static_cast<uint32_t>(nodes_.size()));
      node = it->second;
      if (fresh) nodes_.emplace_back();
    }
    nodes_[node].orders.push_back(static_cast<int64_t>(digits.size()) + value.exponent());
  }
  states_.resize(2);  // dead, and the start
}

size_t ExponentSet::Hash::operator()(const State& s) const {
  const uint64_t signs = (s.negative ? 2 : 0) | (s.exponent_negative ? 1 : 0);
  uint64_t hash = HashMix(static_cast<uint64_t>(s.phase) << 2 | signs, s.node);
  for (const int64_t part : {s.zeros, s.order, s.exponent})
    hash = HashMix(hash, static_cast<uint64_t>(part));
  return static_cast<size_t>(hash);
}

uint32_t ExponentSet::Intern(const State& state) {
  const auto [it, fresh] = index_.try_emplace(state, static_cast<uint32_t>(states_.size()));
  if (fresh) states_.push_back(state);
  return it->second;
}

bool ExponentSet::AddDigit(State& state, char digit) const {
  if (digit == '0') {
    if (IsZero(state)) return has_zero_ || !nodes_[state.negative ? 1 : 0].children.empty();
    ++state.zeros;
    if (!nodes_[state.node].orders.empty()) return true;  // they may stay the last
    uint32_t node = state.node;
    for (int64_t i = 0; i < state.zeros; ++i) {
      const auto zero = nodes_[node].children.find('0');
      if (zero == nodes_[node].children.end()) return false;
      node = zero->second;
    }
    return true;
  }
  if (IsZero(state)) state.node = state.negative ? 1 : 0;
  for (; state.zeros > 0; --state.zeros) {
    const auto zero = nodes_[state.node].children.find('0');
    if (zero == nodes_[state.node].children.end()) return false;
    state.node = zero->second;
  }
  const auto child = nodes_[state.node].children.find(digit);
  if (child == nodes_[state.node].children.end()) return false;
  state.node = child->second;
  return true;
}

bool ExponentSet::Leads(const State& state) const {
  if (IsZero(state)) return has_zero_;
  return std::ranges::any_of(nodes_[state.node].orders, [&](int64_t order) {
    const int64_t needed = order - state.order;
    if (state.phase == Phase::kE) return true;
    if (needed != 0 && (needed < 0) != state.exponent_negative) return false;
    if (state.exponent == 0) return true;  // zeros may stand before it
    int64_t beginning = std::abs(needed);
    while (beginning > state.exponent) beginning /= 10;
    return beginning == state.exponent;
  });
}

uint32_t ExponentSet::Step(uint32_t from, char c) {
  if (from == kDead) return kDead;
  State s = states_[from];
  switch (s.phase) {
    case Phase::kStart:
      if (c == '-') {
        s.phase = Phase::kMinus;
        s.negative = true;
        return has_zero_ || !nodes_[1].children.empty() ? Intern(s) : kDead;
      }
      [[fallthrough]];
    case Phase::kMinus:
      if (!IsDigit(c)) return kDead;
      s.phase = c == '0' ? Phase::kZero : Phase::kWhole;
      s.order = c == '0' ? 0 : 1;
      return AddDigit(s, c) ? Intern(s) : kDead;
    case Phase::kZero:
    case Phase::kWhole:
    case Phase::kFraction:
      if (c == 'e' || c == 'E') {
        s.phase = Phase::kE;
        s.zeros = 0;  // of no more use
        return Leads(s) ? Intern(s) : kDead;
      }
      if (c == '.' && s.phase != Phase::kFraction) {
        s.phase = Phase::kPoint;
        return Intern(s);
      }
      if (s.phase == Phase::kZero || !IsDigit(c)) return kDead;
      if (s.phase == Phase::kWhole) {
        ++s.order;
      } else if (IsZero(s) && c == '0') {
        --s.order;
      }
      return AddDigit(s, c) ? Intern(s) : kDead;
    case Phase::kPoint:
      if (!IsDigit(c)) return kDead;
      s.phase = Phase::kFraction;
      if (IsZero(s) && c == '0') --s.order;
      return AddDigit(s, c) ? Intern(s) : kDead;
    case Phase::kE:
      if (c == '+' || c == '-') {
        s.phase = Phase::kSign;
        s.exponent_negative = c == '-';
        return Leads(s) ? Intern(s) : kDead;
      }
      [[fallthrough]];
    case Phase::kSign:
    case Phase::kExponent:
      if (!IsDigit(c)) return kDead;
      s.phase = Phase::kExponent;
      s.exponent = std::min(s.exponent * 10 + (c - '0'), limits::kFarExponent);
      if (IsZero(s)) s.exponent = 0;  // whatever it is
      return Leads(s) ? Intern(s) : kDead;
  }
  return kDead;
}

bool ExponentSet::Accepting(uint32_t state) const {
  if (state == kDead) return false;
  const State& s = states_[state];
  if (s.phase != Phase::kZero && s.phase != Phase::kWhole && s.phase != Phase::kFraction &&
      s.phase != Phase::kExponent) {
    return false;
  }
  if (IsZero(s)) return has_zero_;
  const int64_t order = s.order + (s.exponent_negative ? -s.exponent : s.exponent);
  return std::ranges::find(nodes_[s.node].orders, order) != nodes_[s.node].orders.end();
}

std::string ExponentSet::ShortestAccepting(uint32_t start) {
  std::unordered_map<uint32_t, std::pair<uint32_t, char>> from = {{start, {start, 0}}};
  std::deque<uint32_t> queue = {start};
  while (!queue.empty() && from.size() < limits::kExponentStates) {
    const uint32_t state = queue.front();
    queue.pop_front();
    if (Accepting(state)) {
      std::string out;
      for (uint32_t s = state; s != start; s = from.at(s).first) out.push_back(from.at(s).second);
      std::reverse(out.begin(), out.end());
      return out;
    }
    for (const char c : std::string_view("0123456789.e-")) {
      StopScope::Step();
      const uint32_t next = Step(state, c);
      if (next != kDead && from.emplace(next, std::pair(state, c)).second) queue.push_back(next);
    }
  }
  return "";
}

}  // namespace pawl
