// WaitingLine: what waits for a place, and whose turn it is. Things come in groups (what one client
// asked for at once); the turn goes round the groups, and inside of a group it is first come, first
// served.
//
//   WaitingLine<Thing> line;
//   line.Add(std::move(thing), group);
//   while (auto next = line.Next(has_place)) ...
//
// `Thing` is a pointer that owns, and comes back as nullptr where there is none.
#ifndef PAWL_SRC_DECODE_WAITING_LINE_H_
#define PAWL_SRC_DECODE_WAITING_LINE_H_

#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pawl {

template <typename Thing>
class WaitingLine {
 public:
  bool empty() const { return size_ == 0; }
  int size() const { return size_; }

  // A group that has nothing in the line joins it as the last one. Where memory runs out, `thing`
  // and the line stay as they are; so too below.
  void Add(Thing&& thing, uint64_t group) {
    Put(group, [&](std::deque<Thing>& things) { things.push_back(std::move(thing)); });
  }
  // What had its turn and has to wait again: the first of its group.
  void Return(Thing&& thing, uint64_t group) {
    Put(group, [&](std::deque<Thing>& things) { things.push_front(std::move(thing)); });
  }

  // The first of the group whose turn it is, out of the line: of the groups for which `rank` is
  // least (at least 0), the one that has waited longest since its last turn. nullptr: the line is
  // empty.
  template <typename Rank>
  Thing Next(const Rank& rank) {
    auto chosen = groups_.end();
    int least = 0;
    for (auto it = groups_.begin(); it != groups_.end(); ++it) {
      const int of_group = rank(it->id);
      if (chosen != groups_.end() && of_group >= least) continue;
      chosen = it;
      least = of_group;
      if (least == 0) break;
    }
    if (chosen == groups_.end()) return nullptr;
    Thing next = std::move(chosen->things.front());
    chosen->things.pop_front();
    --size_;
    if (chosen->things.empty()) {
      places_.erase(chosen->id);
      groups_.erase(chosen);
    } else {
      groups_.splice(groups_.end(), groups_, chosen);
    }
    return next;
  }

  // Whether the line has a group for which `is` holds.
  template <typename Is>
  bool HasGroup(const Is& is) const {
    for (const Group& group : groups_) {
      if (is(group.id)) return true;
    }
    return false;
  }

  template <typename Do>
  void ForEach(const Do& act) {
    for (Group& group : groups_) {
      for (Thing& thing : group.things) act(thing);
    }
  }
  // After ForEach has moved things out of the line.
  void DropEmpty() {
    for (auto it = groups_.begin(); it != groups_.end();) {
      size_ -= static_cast<int>(std::erase(it->things, nullptr));
      if (!it->things.empty()) {
        ++it;
        continue;
      }
      places_.erase(it->id);
      it = groups_.erase(it);
    }
  }

 private:
  struct Group {
    uint64_t id;
    std::deque<Thing> things;
  };

  template <typename PutInto>
  void Put(uint64_t id, const PutInto& put) {
    const auto known = places_.find(id);
    const auto at = known != places_.end() ? known->second : NewGroup(id);
    try {
      put(at->things);
    } catch (...) {
      if (at->things.empty()) {
        places_.erase(id);
        groups_.erase(at);
      }
      throw;
    }
    ++size_;
  }
  typename std::list<Group>::iterator NewGroup(uint64_t id) {
    std::list<Group> one;
    one.push_back({id, {}});
    places_.emplace(id, one.begin());
    groups_.splice(groups_.end(), one);
    return std::prev(groups_.end());
  }

  std::list<Group> groups_;  // in the order of their turns
  std::unordered_map<uint64_t, typename std::list<Group>::iterator> places_;
  int size_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_WAITING_LINE_H_
