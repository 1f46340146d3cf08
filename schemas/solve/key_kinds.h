// KeyKinds: the keys that an object's schema does not name, sorted by what its conditions on keys
// say of them. Keys of one kind are alike to the schema, so trying one of them stands for all.
#ifndef PAWL_SCHEMAS_SOLVE_KEY_KINDS_H_
#define PAWL_SCHEMAS_SOLVE_KEY_KINDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schemas/frames/frames.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

class KeyKinds {
 public:
  struct Kind {
    std::vector<bool> truth;        // of the atoms of the layout's program
    StringProgram::StateId state;   // of that program, after a key of this kind
    std::vector<std::string> keys;  // shortest first
    std::vector<NameId> names;      // of keys
    bool all = false;               // there are no others
    size_t MemoryBytes() const { return HeapBytes(truth, keys, names); }
  };

  // nullptr where the kinds are too many to be told, or the conditions too large to be sure.
  static std::unique_ptr<KeyKinds> Of(Frames& frames, const ObjectLayout& layout, int64_t fuel);

  const std::vector<Kind>& kinds() const { return kinds_; }
  // A key that stands for the ones that end in `state` of `program`, which has the atoms of the
  // layout's: the first of its kind that the frame has not seen. kAnyName where they are many, so
  // that none takes the place of another.
  NameId StandIn(const Frames& frames, const Frame& frame, const ObjectLayout& layout,
                 const StringProgram& program, StringProgram::StateId state) const;
  size_t MemoryBytes() const { return HeapBytes(kinds_); }

 private:
  std::vector<Kind> kinds_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SOLVE_KEY_KINDS_H_
