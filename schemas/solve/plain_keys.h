// PlainKeys: the keys of an object whose members do not depend on each other.
//
// Most objects name some keys, say what other keys may hold, and no more: no patterns for keys, no
// choice between schemas, no bound on the number of members that could stop one. There a key may
// come exactly when it has not come yet and has a value that fits; nothing needs to be searched.
#ifndef PAWL_SCHEMAS_SOLVE_PLAIN_KEYS_H_
#define PAWL_SCHEMAS_SOLVE_PLAIN_KEYS_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schemas/frames/frames.h"
#include "schemas/solve/solver.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// For one layout and one conjunction of its atoms. Not thread-safe.
class PlainKeys {
 public:
  // Whether keys are plain in this frame.
  static bool Fits(Frames& frames, const JsonSchemaOptions& options, const Frame& frame);
  // REQUIRES: Fits(frame).
  PlainKeys(Frames& frames, Solver& solver, const JsonSchemaOptions& options, const Frame& frame);

  // The same questions for any frame with this layout and `must`.
  bool NameAllowed(FrameId id, int rank);
  bool OthersAllowed(FrameId id);
  // Some key that begins with what led to `state` may come.
  bool Live(FrameId id, StringProgram::StateId state);

  // The named keys that begin with what led to `state`, as places in sorted(), and its length in
  // code points. Empty beyond all names.
  struct Range {
    uint32_t begin = 0, end = 0, depth = 0;
  };
  Range Below(StringProgram::StateId state) const;
  struct Name {
    int rank;
    std::u32string text;
    size_t MemoryBytes() const { return HeapBytes(text); }
  };
  const std::vector<Name>& sorted() const { return sorted_; }
  size_t MemoryBytes() const {
    return HeapBytes(atoms_, required_rank_, first_missing_, possible_, sorted_, place_, ranges_);
  }

 private:
  FormulaId Demand(int rank);
  // Place in required_rank_ of the first required name that is not among `seen`.
  size_t FirstMissing(IdSets::Id seen);

  Frames& frames_;
  Solver& solver_;
  const ObjectLayout& layout_;
  std::vector<AtomId> atoms_;
  bool ordered_;
  std::vector<std::pair<int, NameId>> required_rank_;  // by rank
  std::unordered_map<IdSets::Id, size_t> first_missing_;
  std::vector<int8_t> possible_;  // by rank + 1: has a value; -1 unknown
  std::vector<Name> sorted_;      // by text
  std::vector<uint32_t> place_;   // by rank: in sorted_
  std::unordered_map<StringProgram::StateId, Range> ranges_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SOLVE_PLAIN_KEYS_H_
