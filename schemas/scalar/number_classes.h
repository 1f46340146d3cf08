// NumberClasses: what several conditions on one number can tell apart. Two numbers of one class
// fulfil the same of them, so that a Boolean combination is decided once for each class.
//
// The bounds and listed values of all conditions cut the line of numbers into places; within a
// place only the divisors differ, and, to draft 4 and in canonical spelling, whether an integer is
// written as one.
#ifndef PAWL_SCHEMAS_SCALAR_NUMBER_CLASSES_H_
#define PAWL_SCHEMAS_SCALAR_NUMBER_CLASSES_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "schemas/formula/atoms.h"
#include "schemas/number/decimal.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// Not thread-safe.
class NumberClasses {
 public:
  struct Class {
    // 2i + 1 at cut i, 2i between it and the one before, 2 * cuts().size() behind the last.
    uint32_t place = 0;
    uint32_t multiples = 0;  // which divisors divide the value, interned
    bool plain = false;      // written without '.' and 'e'; false where nothing asks
    friend auto operator<=>(const Class&, const Class&) = default;
  };
  // Numbers that have exactly these divisors among them: multiples of `step` without those of other
  // divisors; without a step, whatever has none.
  struct Lattice {
    std::optional<Decimal> step;
    uint32_t multiples = 0;
    size_t MemoryBytes() const { return HeapBytes(step); }
  };
  struct Lattices {
    std::vector<Lattice> all;
    bool complete = true;  // false: there are more, or some with steps that are too long
    size_t MemoryBytes() const { return HeapBytes(all); }
  };

  // `atoms`: number atoms of the table, sorted. `canonical`: integers are written as such where
  // integers are asked for. The table outlives this.
  NumberClasses(const SchemaTable& table, const std::vector<AtomId>& atoms, bool canonical);

  Class Of(const Decimal& value, bool plain);
  // The numbers of the class fulfil the atom. REQUIRES: one of `atoms`.
  bool Holds(const Class& c, AtomId atom) const;
  // The same, and the number is not an integer, asked for as one, that is written with '.' or 'e'.
  bool HoldsAsWritten(const Class& c, AtomId atom) const;

  // Bounds, listed values and zero, sorted.
  const std::vector<Decimal>& cuts() const { return cuts_; }
  const std::vector<Decimal>& divisors() const { return divisors_; }
  // A number with a digit other than zero below 10^least_unit() is a multiple of no divisor.
  int64_t least_unit() const { return least_unit_; }
  // The sets of divisors that numbers (`integers`: integers) can have.
  const Lattices& LatticesOf(bool integers);
  // Some condition asks how an integer is written.
  bool asks_spelling() const { return asks_spelling_; }
  size_t MemoryBytes() const {
    return HeapBytes(leaves_, cuts_, divisors_, multiples_, multiples_index_, lattices_);
  }

 private:
  struct Leaf {
    AtomId atom;
    uint32_t low = 0, high = UINT32_MAX;  // places, both included
    std::vector<uint32_t> divisors;       // all of them have to divide
    bool integer = false, plain = false;
    std::vector<uint32_t> places;  // of the listed values; none: it is a constraint
    size_t MemoryBytes() const { return HeapBytes(divisors, places); }
  };

  const Leaf& LeafOf(AtomId atom) const;
  uint32_t Intern(const std::vector<bool>& divides);
  // Which divisors divide every multiple of `step`.
  std::vector<bool> DividersOf(const std::optional<Decimal>& step) const;

  std::vector<Leaf> leaves_;  // by atom
  std::vector<Decimal> cuts_, divisors_;
  int64_t least_unit_ = 0;
  bool asks_spelling_ = false;
  std::vector<std::vector<bool>> multiples_;
  std::map<std::vector<bool>, uint32_t> multiples_index_;
  std::array<std::optional<Lattices>, 2> lattices_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_NUMBER_CLASSES_H_
