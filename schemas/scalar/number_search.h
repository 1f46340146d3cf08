// NumberSearch: which numbers a combination of conditions takes, and whether what was read of a
// number can still become one of them. Decided by arithmetic on the text's digits; see the .cc.
#ifndef PAWL_SCHEMAS_SCALAR_NUMBER_SEARCH_H_
#define PAWL_SCHEMAS_SCALAR_NUMBER_SEARCH_H_

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/formula/atoms.h"
#include "schemas/number/decimal.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// What several conditions on one number can tell apart. Two numbers of one class fulfil the same
// of them, so that a Boolean combination is decided once for each class.
//
// The bounds and listed values of all conditions cut the line of numbers into places; within a
// place only the divisors differ, and, to draft 4 and in canonical spelling, whether an integer is
// written as one.
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

// The text of a number up to its exponent, as far as it was read.
struct Mantissa {
  bool negative = false;
  bool begun = false;     // has a digit
  bool point = false;     // read
  bool complete = false;  // ends with a digit
  std::string digits;     // from the first to the last that is not zero
  int64_t zeros = 0;      // behind those; 0 while there are none
  int64_t places = 0;     // digits after the point

  size_t MemoryBytes() const { return HeapBytes(digits); }
  // REQUIRES: the text and `c` begin a JSON number without an exponent.
  void Push(char c);
  // Digits from the first that is not zero.
  int64_t size() const { return static_cast<int64_t>(digits.size()) + zeros; }
  Decimal value() const { return Decimal::Of(negative, digits, zeros - places); }
  // With the digits as a whole number M: M * 10^shift, and (M + 1) * 10^shift.
  Decimal Low(int64_t shift) const { return Decimal::Of(false, digits, zeros + shift); }
  // `rough`: a little more when zeros by the thousand are written out for nothing otherwise.
  Decimal High(int64_t shift, bool rough) const;
};

// What exponents may follow a mantissa: those of some ranges.
class ExponentRanges {
 public:
  size_t MemoryBytes() const { return HeapBytes(ranges_); }
  // From `first` to `last`, both included. REQUIRES: above all that were added.
  void Add(int64_t first, int64_t last);
  // Exponents beyond are all alike, or none of them is in a range.
  void set_reach(int64_t reach) { reach_ = reach; }
  int64_t reach() const { return reach_; }
  // The one nearest to zero.
  std::optional<int64_t> Nearest(int64_t first, int64_t last) const;
  // Digits that complete an exponent: the shortest, nullopt when there are none. `digits`: how it
  // begins, without sign, as a number; `any`: whether there are such digits; `negative`: its sign.
  std::optional<std::string> Completion(bool negative, bool any, int64_t digits) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;
  int64_t reach_ = 0;
};

// Not thread-safe.
class NumberSearch {
 public:
  using Class = NumberClasses::Class;
  // Whether numbers of the class are wanted; asked once for each.
  using Wanted = std::function<bool(const Class&)>;
  enum class Answer { kNo, kYes, kUnknown };

  // `plain`: only texts without '.' and exponent are wanted. `no_minus_zero`: no text of zero that
  // begins with '-' is.
  NumberSearch(NumberClasses& classes, Wanted wanted, bool plain, bool no_minus_zero);

  size_t MemoryBytes() const { return HeapBytes(accepted_, cuts_, options_); }
  bool Accepts(const Class& c);
  // Something wanted begins like that, its exponent between -limit and limit (0: it has none).
  // With kYes `text` (may be null) becomes what has to follow, short but not always shortest.
  Answer Completes(const Mantissa& mantissa, int64_t limit, std::string* text);
  // Digits alone lead from it to infinitely many wanted values. "No" may be wrong, "yes" is not.
  bool Endless(const Mantissa& mantissa);
  // Whatever digits follow, something wanted may still begin like that. "No" may be wrong.
  bool TakesAnyDigits(const Mantissa& mantissa);
  // The exponents that make it wanted. `limit`: as above, or none when it is limits::kFarExponent.
  ExponentRanges Exponents(const Mantissa& mantissa, int64_t limit);

 private:
  // The magnitudes of the cuts of one sign, and their places.
  struct Cut {
    Decimal at;
    uint32_t place;
    size_t MemoryBytes() const { return HeapBytes(at); }
  };
  // What is asked of the completions of one mantissa.
  struct Question {
    bool negative;
    bool plain;  // integers, as they are written plainly
  };
  // Magnitudes from `low` (excluded if zero) to `high` (excluded).
  struct Window {
    Decimal low, high;
  };

  bool AcceptsMagnitude(const Question& q, const Decimal& magnitude);
  uint32_t GapAfter(const Question& q, size_t cuts) const;
  // Which sets of divisors make the numbers of a gap wanted: indices of the lattices.
  const std::vector<uint32_t>& Options(const Question& q, uint32_t gap);
  bool Complete(const Question& q);
  // Some magnitude of the window is wanted.
  Answer In(const Question& q, const Window& window, Decimal* found);
  Answer InGap(const Question& q, uint32_t gap, const Window& open, Decimal* found);
  std::optional<Decimal> Dense(const Question& q, const Window& open);
  Answer Multiple(const Question& q, const Decimal& step, const Window& open, Decimal* found);
  // Beyond these shifts of a mantissa with so many digits nothing changes any more; `at` when
  // nothing does anywhere.
  std::pair<int64_t, int64_t> Shifts(const Question& q, int64_t digits, int64_t at);
  Answer CompletesZero(const Question& q, const Mantissa& m, int64_t limit, std::string* text);
  Answer CompletesDigits(const Question& q, const Mantissa& m, int64_t limit, std::string* text);

  NumberClasses& classes_;
  Wanted wanted_;
  bool plain_, no_minus_zero_;
  std::map<Class, bool> accepted_;
  std::array<std::vector<Cut>, 2> cuts_;                              // positive, negative
  uint32_t zero_ = 0;                                                 // its place
  std::array<std::map<uint32_t, std::vector<uint32_t>>, 2> options_;  // by gap; plain ones second
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_NUMBER_SEARCH_H_
