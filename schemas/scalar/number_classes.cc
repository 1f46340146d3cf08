// With n cuts the line has 2n + 1 places, points and gaps in turn, so a bound is the number of a
// place and a condition without a divisor is an interval of places. Within a place the divisors
// that divide a value decide the rest.
#include "schemas/scalar/number_classes.h"

#include <algorithm>
#include <set>

#include "schemas/limits.h"
#include "src/base/sorted.h"

namespace pawl::schema {
namespace {

uint32_t IndexIn(const std::vector<Decimal>& sorted, const Decimal& value) {
  return static_cast<uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                               sorted.begin());
}

}  // namespace

NumberClasses::NumberClasses(const SchemaTable& table, const std::vector<AtomId>& atoms,
                             bool canonical) {
  cuts_.emplace_back();  // zero, where the two signs meet
  for (const AtomId atom : atoms) {
    const NumberAtom& number = table.number(atom);
    const NumberConstraint& c = number.constraint;
    cuts_.insert(cuts_.end(), number.values.begin(), number.values.end());
    if (c.minimum) cuts_.push_back(*c.minimum);
    if (c.maximum) cuts_.push_back(*c.maximum);
    if (c.multiple_of) divisors_.push_back(*c.multiple_of);
    if (c.integer || c.integer_text) divisors_.emplace_back(1);
    asks_spelling_ =
        asks_spelling_ || c.integer_text ||
        (canonical && (c.integer || std::ranges::any_of(number.values, [](const auto& value) {
                         return value.IsInteger();
                       })));
  }
  SortUnique(cuts_);
  SortUnique(divisors_);
  for (const Decimal& divisor : divisors_) least_unit_ = std::min(least_unit_, divisor.exponent());
  for (const AtomId atom : atoms) {
    const NumberAtom& number = table.number(atom);
    const NumberConstraint& c = number.constraint;
    Leaf& leaf = leaves_.emplace_back();
    leaf.atom = atom;
    for (const Decimal& value : number.values) leaf.places.push_back(2 * IndexIn(cuts_, value) + 1);
    if (c.minimum) leaf.low = 2 * IndexIn(cuts_, *c.minimum) + (c.exclusive_minimum ? 2 : 1);
    if (c.maximum) leaf.high = 2 * IndexIn(cuts_, *c.maximum) + (c.exclusive_maximum ? 0 : 1);
    if (c.multiple_of) leaf.divisors.push_back(IndexIn(divisors_, *c.multiple_of));
    if (c.integer || c.integer_text) leaf.divisors.push_back(IndexIn(divisors_, Decimal(1)));
    leaf.plain = c.integer_text;
    leaf.integer = c.integer || c.integer_text;
  }
}

uint32_t NumberClasses::Intern(const std::vector<bool>& divides) {
  const auto [it, fresh] =
      multiples_index_.try_emplace(divides, static_cast<uint32_t>(multiples_.size()));
  if (fresh) multiples_.push_back(divides);
  return it->second;
}

NumberClasses::Class NumberClasses::Of(const Decimal& value, bool plain) {
  Class out;
  const uint32_t cut = IndexIn(cuts_, value);
  out.place = 2 * cut + (cut < cuts_.size() && cuts_[cut] == value ? 1 : 0);
  std::vector<bool> divides(divisors_.size());
  for (size_t i = 0; i < divisors_.size(); ++i) divides[i] = value.IsMultipleOf(divisors_[i]);
  out.multiples = Intern(divides);
  out.plain = plain && asks_spelling_;
  return out;
}

const NumberClasses::Leaf& NumberClasses::LeafOf(AtomId atom) const {
  return *std::lower_bound(leaves_.begin(), leaves_.end(), atom,
                           [](const Leaf& l, AtomId wanted) { return l.atom < wanted; });
}

bool NumberClasses::HoldsAsWritten(const Class& c, AtomId atom) const {
  if (!Holds(c, atom)) return false;
  const Leaf& leaf = LeafOf(atom);
  // Of a listed value the place is a cut.
  const bool integer = leaf.places.empty() ? leaf.integer : cuts_[c.place / 2].IsInteger();
  return c.plain || !integer;
}

bool NumberClasses::Holds(const Class& c, AtomId atom) const {
  const Leaf& leaf = LeafOf(atom);
  if (!leaf.places.empty())
    return std::binary_search(leaf.places.begin(), leaf.places.end(), c.place);
  if (c.place < leaf.low || c.place > leaf.high || (leaf.plain && !c.plain)) return false;
  const std::vector<bool>& divides = multiples_[c.multiples];
  return std::ranges::all_of(leaf.divisors, [&](uint32_t divisor) { return divides[divisor]; });
}

std::vector<bool> NumberClasses::DividersOf(const std::optional<Decimal>& step) const {
  std::vector<bool> out(divisors_.size());
  for (size_t i = 0; step && i < divisors_.size(); ++i) out[i] = step->IsMultipleOf(divisors_[i]);
  return out;
}

const NumberClasses::Lattices& NumberClasses::LatticesOf(bool integers) {
  std::optional<Lattices>& slot = lattices_[integers ? 1 : 0];
  if (slot) return *slot;
  slot.emplace(Lattices{});
  // From each set one divisor more, and with it all that divide the common multiple.
  std::vector<std::optional<Decimal>> queue = {integers ? std::optional(Decimal(1)) : std::nullopt};
  std::set<std::vector<bool>> seen = {DividersOf(queue[0])};
  for (size_t at = 0; at < queue.size(); ++at) {
    const std::optional<Decimal> step = queue[at];
    const std::vector<bool> divides = DividersOf(step);
    slot->all.push_back({step, Intern(divides)});
    for (size_t i = 0; i < divisors_.size(); ++i) {
      if (divides[i]) continue;
      const auto more = step ? Decimal::Lcm(*step, divisors_[i]) : Result<Decimal>(divisors_[i]);
      if (!more.ok() || queue.size() >= limits::kLattices) {
        slot->complete = false;
      } else if (seen.insert(DividersOf(*more)).second) {
        queue.emplace_back(*more);
      }
    }
  }
  return *slot;
}

}  // namespace pawl::schema
