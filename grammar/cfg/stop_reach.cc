// The automaton of Aho and Corasick over the texts: a stop reaches into another one when a proper
// suffix of it is a node on the way to the other one's end, and these suffixes are what its last
// node fails to.
#include "grammar/cfg/stop_reach.h"

#include <algorithm>
#include <numeric>

#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl {

StopReach::StopReach(std::span<const std::u32string> stops) : stops_(stops.begin(), stops.end()) {
  nodes_.push_back({0, 0, 0});
  std::vector<uint32_t> ends;  // by stop
  for (const std::u32string& stop : stops_) {
    uint32_t at = 0;
    for (const char32_t c : stop) {
      StopScope::Step();
      const uint32_t* const known = Child(at, c);
      if (known != nullptr) {
        at = *known;
        continue;
      }
      const auto child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({at, nodes_[at].depth + 1, c});
      children_.Insert(uint64_t{at} << 32 | c, child);
      at = child;
    }
    nodes_[at].stop = true;
    ends.push_back(at);
  }
  std::vector<uint32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [this](uint32_t node) { return nodes_[node].depth; });
  for (const uint32_t id : order) {
    StopScope::Step();
    Node& node = nodes_[id];
    if (node.depth > 1) {
      uint32_t from = nodes_[node.parent].fail;
      const uint32_t* child = Child(from, node.last);
      for (; child == nullptr && from != 0; child = Child(from, node.last))
        from = nodes_[from].fail;
      node.fail = child == nullptr ? 0 : *child;
    }
    node.stop = node.stop || nodes_[node.fail].stop;
  }
  for (uint32_t i = 0; i < stops_.size(); ++i) {
    for (uint32_t at = nodes_[ends[i]].fail; at != 0; at = nodes_[at].fail) {
      StopScope::Step();
      nodes_[at].ends.push_back(i);
    }
  }
}

StopReach::Into StopReach::IntoText(const std::u32string& text) const {
  Into into;
  uint32_t at = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    at = *Child(at, text[i]);
    into.never = into.never || nodes_[at].stop;
    if (!nodes_[at].ends.empty()) into.nodes.push_back(at);
  }
  return into;
}

std::optional<std::vector<std::u32string>> StopReach::Beginnings(const Into& into,
                                                                 size_t most) const {
  std::vector<std::u32string> out;
  for (const uint32_t node : into.nodes) {
    for (const uint32_t stop : nodes_[node].ends) {
      StopScope::Step();
      const size_t size = stops_[stop].size() - nodes_[node].depth;
      if (size > most) return std::nullopt;
      most -= size;
      out.push_back(stops_[stop].substr(0, size));
    }
  }
  SortUnique(out);
  return out;
}

}  // namespace pawl
