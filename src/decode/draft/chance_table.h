// How often the drafts of a node are right, by how likely they seem.
//
// Each source's share of right guesses is counted, but sources see the same text and are right and
// wrong together. So what they say together is counted once more: by the sources that agree, by the
// rank of the draft among those of its node, by their number, and by the chance that the shares
// give. The chance is then that of the drafts for which the same was true.
#ifndef PAWL_SRC_DECODE_DRAFT_CHANCE_TABLE_H_
#define PAWL_SRC_DECODE_DRAFT_CHANCE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pawl {

class ChanceTable {
 public:
  // The case that a draft is one of. `sources`: bits of those that agree. `rank`: 0 is the
  // likeliest of `count` drafts.
  static uint32_t CaseOf(uint32_t sources, size_t rank, size_t count, float chance);
  // `chance`: as long as little was counted.
  float Of(uint32_t which, float chance) const;
  void Count(uint32_t which, bool right);

 private:
  static constexpr int kBits = 14;
  struct Counter {
    float right = 0, asked = 0;
  };
  std::vector<Counter> counters_;  // by hash; empty before the first count
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_CHANCE_TABLE_H_
