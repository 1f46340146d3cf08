// A trie of the plain decimal forms. JSON forbids leading zeros, so only zeros at the end of a
// fraction give a value several texts: a node that ends a value and stands in a fraction takes
// zeros for ever, by staying where it is, or through a child for the zeros where a longer value
// begins the same way.
#include "schemas/number/number_set.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

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

}  // namespace pawl
