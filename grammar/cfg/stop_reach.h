// StopReach: which of some texts another one of them may reach into. Free text ends where the first
// of them ends, so before "ab" the text must not end with "x" where "xa" is one of them as well.
//
//   StopReach reach(stops);
//   StopReach::Into into = reach.IntoText(stops[0]);
//   auto beginnings = reach.Beginnings(into, 1000);      // {"x"}: must not stand before stops[0]
//
// Takes time linear in the length of all texts. Immutable.
#ifndef PAWL_GRAMMAR_CFG_STOP_REACH_H_
#define PAWL_GRAMMAR_CFG_STOP_REACH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grammar/flat_map.h"

namespace pawl {

class StopReach {
 public:
  // None is empty.
  explicit StopReach(std::span<const std::u32string> stops);

  struct Into {
    bool never = false;           // another one ends inside of the text, whatever stands before it
    std::vector<uint32_t> nodes;  // of the trie: parts of the text with which others end
    friend auto operator<=>(const Into&, const Into&) = default;
  };
  // REQUIRES: the text is one of the stops.
  Into IntoText(const std::u32string& text) const;
  // The texts behind which another stop ends before the whole text is there; sorted. The same for
  // all texts with the same Into. nullopt where they have more than `most` characters together.
  std::optional<std::vector<std::u32string>> Beginnings(const Into& into, size_t most) const;

 private:
  struct Node {
    uint32_t parent, depth;
    char32_t last;
    uint32_t fail = 0;                // the longest proper suffix that is a node
    bool stop = false;                // some stop ends here
    std::vector<uint32_t> ends = {};  // longer stops that end with this node's text
  };
  const uint32_t* Child(uint32_t node, char32_t c) const {
    return children_.Find(uint64_t{node} << 32 | c);
  }

  const std::vector<std::u32string> stops_;
  std::vector<Node> nodes_;
  FlatMap<uint32_t> children_;  // by node << 32 | character
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_STOP_REACH_H_
