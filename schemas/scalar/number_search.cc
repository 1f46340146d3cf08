// Let M be the digits of a mantissa, as a number. Digits and an exponent that follow turn it into a
// number from M * 10^u up to, but not including, (M + 1) * 10^u, for some shift u, and every
// decimal of these windows can be written. Which u there are depends on the point and on the
// exponents that are read: none but one behind a point without exponents, all from 0 on for an
// integer without.
//
// The bounds and listed values of the conditions (NumberClasses) cut a window into cuts, each
// asked for by itself, and the gaps between them. In a gap the divisors decide alone. Most numbers
// of it are multiples of none; those that have exactly some of them are multiples of a step, and of
// so many multiples in a row (by Kanold's bound on Jacobsthal's function, and a table of it) at
// least one is no multiple of any other divisor.
//
// Windows below all cuts and steps, or above, are all alike, so finitely many shifts matter.
//
// A mantissa that is complete has one value for each exponent. Its order passes those of the cuts
// one after the other, and a divisor divides it from some exponent on, so the exponents that make
// it wanted are a few ranges.
#include "schemas/scalar/number_search.h"

#include <algorithm>
#include <set>

#include "schemas/limits.h"
#include "schemas/number/decimal.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

// With n cuts the line has 2n + 1 places, points and gaps in turn, so a bound is the number of a
// place and a condition without a divisor is an interval of places. Within a place the divisors
// that divide a value decide the rest.

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

namespace {

// Adds to a string of decimal digits; it may become longer.
void Add(std::string& digits, uint64_t amount) {
  for (size_t i = digits.size(); amount > 0;) {
    if (i == 0) {
      digits.insert(0, 1, '0');
      i = 1;
    }
    --i;
    amount += static_cast<uint64_t>(digits[i] - '0');
    digits[i] = static_cast<char>('0' + amount % 10);
    amount /= 10;
  }
}

// The value in whole units of 10^unit, rounded down. REQUIRES: not negative.
std::string Units(const Decimal& value, int64_t unit) {
  std::string out = value.digits();
  const int64_t zeros = value.exponent() - unit;
  if (zeros >= 0) {
    if (!out.empty()) out.append(static_cast<size_t>(zeros), '0');
  } else {
    out.resize(static_cast<size_t>(std::max<int64_t>(0, static_cast<int64_t>(out.size()) + zeros)));
  }
  return out;
}

// 10^digits, at most limits::kFarExponent.
int64_t PowerOfTen(int64_t digits) {
  int64_t out = 1;
  for (; digits > 0 && out < limits::kFarExponent; --digits) out *= 10;
  return std::min(out, limits::kFarExponent);
}

std::string Padded(int64_t value, int64_t width) {
  std::string out = std::to_string(value);
  if (static_cast<int64_t>(out.size()) < width)
    out.insert(0, static_cast<size_t>(width) - out.size(), '0');
  return out;
}

// The digits of `value` that come after the first `count`.
std::string DigitsAfter(const Decimal& value, int64_t count) {
  const std::string& digits = value.digits();
  return digits.substr(std::min(digits.size(), static_cast<size_t>(count)));
}

void KeepShorter(std::string& best, bool& any, std::string candidate) {
  if (!any || candidate.size() < best.size()) best = std::move(candidate);
  any = true;
}

// What follows the mantissa of a value in the window of a shift.
std::string Spelled(const Mantissa& m, const Decimal& value, bool plain, bool not_plain,
                    int64_t limit) {
  const int64_t size = m.size();
  const int64_t shift = value.order() - size;
  std::string more = DigitsAfter(value, size);
  const auto extra = static_cast<int64_t>(more.size());
  if (m.point) {
    if (!m.complete && more.empty()) more = "0";
    return more + ExponentText(shift + m.places);
  }
  std::string best;
  bool any = false;
  if (shift >= extra) {
    std::string whole = more + std::string(static_cast<size_t>(shift - extra), '0');
    KeepShorter(best, any, not_plain ? whole + ".0" : std::move(whole));
  } else if (shift >= 0) {
    KeepShorter(
        best, any,
        more.substr(0, static_cast<size_t>(shift)) + "." + more.substr(static_cast<size_t>(shift)));
  }
  if (plain) return best;
  if (std::abs(shift - extra) <= limit && shift != extra)
    KeepShorter(best, any, more + ExponentText(shift - extra));
  if (shift < 0 && extra > 0 && -shift <= limit)
    KeepShorter(best, any, "." + more + ExponentText(shift));
  return best;
}

}  // namespace

void Mantissa::Push(char c) {
  if (c == '-') {
    negative = true;
  } else if (c == '.') {
    point = true;
    complete = false;
  } else {
    begun = complete = true;
    if (point) ++places;
    if (c == '0') {
      if (!digits.empty()) ++zeros;
    } else {
      digits.append(static_cast<size_t>(zeros), '0');
      zeros = 0;
      digits.push_back(c);
    }
  }
}

Decimal Mantissa::High(int64_t shift, bool rough) const {
  // No bound or listed value has as many places as would lie between.
  const int64_t most = rough ? std::min(zeros, limits::kZerosWritten) : zeros;
  std::string next = digits + std::string(static_cast<size_t>(most), '0');
  pawl::schema::Add(next, 1);
  return Decimal::Of(false, std::move(next), shift + zeros - most);
}

void ExponentRanges::Add(int64_t first, int64_t last) {
  if (!ranges_.empty() && ranges_.back().second + 1 >= first) {
    ranges_.back().second = last;
  } else {
    ranges_.emplace_back(first, last);
  }
}

std::optional<int64_t> ExponentRanges::Nearest(int64_t first, int64_t last) const {
  std::optional<int64_t> out;
  for (const auto& [from, to] : ranges_) {
    const int64_t low = std::max(first, from), high = std::min(last, to);
    if (low > high) continue;
    const int64_t near = low > 0 ? low : high < 0 ? high : 0;
    if (!out || std::abs(near) < std::abs(*out)) out = near;
  }
  return out;
}

std::optional<std::string> ExponentRanges::Completion(bool negative, bool any,
                                                      int64_t digits) const {
  const auto nearest = [&](int64_t first, int64_t last) -> std::optional<int64_t> {
    const auto out = negative ? Nearest(-last, -first) : Nearest(first, last);
    return out ? std::optional(std::abs(*out)) : std::nullopt;
  };
  if (!any) {
    const auto exponent = nearest(0, limits::kFarExponent);
    return exponent ? std::optional(std::to_string(*exponent)) : std::nullopt;
  }
  for (int64_t more = 0;; ++more) {
    const int64_t scale = PowerOfTen(more);
    // Zeros so far: whatever follows is the exponent.
    const bool far = scale >= limits::kFarExponent || digits > limits::kFarExponent / scale;
    const int64_t first = !far ? digits * scale : digits > 0 ? limits::kFarExponent : 0;
    const int64_t last =
        !far ? std::min(limits::kFarExponent, first + scale - 1) : limits::kFarExponent;
    if (const auto exponent = nearest(first, last)) {
      if (more == 0) return "";
      return far ? std::string(static_cast<size_t>(more), '0') : Padded(*exponent - first, more);
    }
    if (far) return std::nullopt;
  }
}

NumberSearch::NumberSearch(NumberClasses& classes, Wanted wanted, bool plain, bool no_minus_zero)
    : classes_(classes), wanted_(std::move(wanted)), plain_(plain), no_minus_zero_(no_minus_zero) {
  const std::vector<Decimal>& cuts = classes_.cuts();
  for (size_t i = 0; i < cuts.size(); ++i) {
    const auto place = static_cast<uint32_t>(2 * i + 1);
    if (cuts[i].is_zero()) {
      zero_ = place;
    } else {
      cuts_[cuts[i].negative() ? 1 : 0].push_back({cuts[i].Abs(), place});
    }
  }
  std::reverse(cuts_[1].begin(), cuts_[1].end());
}

bool NumberSearch::Accepts(const Class& c) {
  if (const auto known = accepted_.find(c); known != accepted_.end()) return known->second;
  const bool wanted = wanted_(c);  // may ask again itself
  accepted_.emplace(c, wanted);
  return wanted;
}

bool NumberSearch::AcceptsMagnitude(const Question& q, const Decimal& magnitude) {
  if (q.plain && !magnitude.IsInteger()) return false;
  return Accepts(classes_.Of(q.negative ? magnitude.Negated() : magnitude, q.plain));
}

uint32_t NumberSearch::GapAfter(const Question& q, size_t cuts) const {
  const uint32_t place = cuts == 0 ? zero_ : cuts_[q.negative ? 1 : 0][cuts - 1].place;
  return q.negative ? place - 1 : place + 1;
}

const std::vector<uint32_t>& NumberSearch::Options(const Question& q, uint32_t gap) {
  auto& options = options_[q.plain ? 1 : 0];
  if (const auto known = options.find(gap); known != options.end()) return known->second;
  std::vector<uint32_t> out;
  const NumberClasses::Lattices& lattices = classes_.LatticesOf(q.plain);
  for (uint32_t i = 0; i < lattices.all.size(); ++i) {
    const bool plain = q.plain && classes_.asks_spelling();
    if (Accepts({gap, lattices.all[i].multiples, plain})) out.push_back(i);
  }
  return options.emplace(gap, std::move(out)).first->second;
}

bool NumberSearch::Complete(const Question& q) { return classes_.LatticesOf(q.plain).complete; }

std::optional<Decimal> NumberSearch::Dense(const Question& q, const Window& open) {
  // Below all divisors and ends every tenth number is a multiple at most.
  int64_t least = std::min(classes_.least_unit(), open.high.exponent());
  if (!open.low.is_zero()) least = std::min(least, open.low.exponent());
  for (int64_t unit = open.high.order() - 1; unit >= least - 2; --unit) {
    std::string digits = Units(open.low, unit);
    for (int i = 0; i < 11; ++i) {
      StopScope::Step();
      Add(digits, 1);
      Decimal candidate = Decimal::Of(false, digits, unit);
      if (candidate >= open.high) break;
      if (AcceptsMagnitude(q, candidate)) return candidate;
    }
  }
  return std::nullopt;
}

NumberSearch::Answer NumberSearch::Multiple(const Question& q, const Decimal& step,
                                            const Window& open, Decimal* found) {
  const uint64_t divisor = ToUint64(step.digits());
  std::string digits = Units(open.low, step.exponent());
  Add(digits, divisor - DigitsMod(digits, divisor));
  for (int i = 0; i < limits::kMultiplesInARow; ++i) {
    StopScope::Step();
    Decimal candidate = Decimal::Of(false, digits, step.exponent());
    if (candidate >= open.high) return Answer::kNo;
    if (AcceptsMagnitude(q, candidate)) {
      if (found != nullptr) *found = std::move(candidate);
      return Answer::kYes;
    }
    Add(digits, divisor);
  }
  return Answer::kUnknown;
}

NumberSearch::Answer NumberSearch::InGap(const Question& q, uint32_t gap, const Window& open,
                                         Decimal* found) {
  Answer answer = Complete(q) ? Answer::kNo : Answer::kUnknown;
  const std::vector<uint32_t> options = Options(q, gap);
  for (const uint32_t option : options) {
    const std::optional<Decimal> step = classes_.LatticesOf(q.plain).all[option].step;
    if (!step) {
      if (found == nullptr) return Answer::kYes;
      auto value = Dense(q, open);
      if (!value) return Answer::kUnknown;
      *found = *std::move(value);
      return Answer::kYes;
    }
    const Answer one = Multiple(q, *step, open, found);
    if (one == Answer::kYes) return one;
    if (one == Answer::kUnknown) answer = one;
  }
  return answer;
}

NumberSearch::Answer NumberSearch::In(const Question& q, const Window& window, Decimal* found) {
  if (!window.low.is_zero() && AcceptsMagnitude(q, window.low)) {
    if (found != nullptr) *found = window.low;
    return Answer::kYes;
  }
  const std::vector<Cut>& cuts = cuts_[q.negative ? 1 : 0];
  auto cut = static_cast<size_t>(
      std::upper_bound(cuts.begin(), cuts.end(), window.low,
                       [](const Decimal& low, const Cut& c) { return low < c.at; }) -
      cuts.begin());
  Window open{window.low, window.high};
  Answer answer = Answer::kNo;
  for (;; ++cut) {
    StopScope::Step();
    const bool last = cut == cuts.size() || cuts[cut].at >= window.high;
    open.high = last ? window.high : cuts[cut].at;
    const Answer gap = InGap(q, GapAfter(q, cut), open, found);
    if (gap == Answer::kYes) return gap;
    if (gap == Answer::kUnknown) answer = gap;
    if (last) return answer;
    if (AcceptsMagnitude(q, cuts[cut].at)) {
      if (found != nullptr) *found = cuts[cut].at;
      return Answer::kYes;
    }
    open.low = cuts[cut].at;
  }
}

std::pair<int64_t, int64_t> NumberSearch::Shifts(const Question& q, int64_t digits, int64_t at) {
  int64_t low = at, high = at;
  bool any = false;
  const auto include = [&](int64_t first, int64_t last) {
    low = any ? std::min(low, first) : first;
    high = any ? std::max(high, last) : last;
    any = true;
  };
  const std::vector<Cut>& cuts = cuts_[q.negative ? 1 : 0];
  if (!cuts.empty())
    include(cuts.front().at.order() - digits - 1, cuts.back().at.order() - digits + 1);
  // From a thousand steps on a window has enough multiples.
  for (const NumberClasses::Lattice& lattice : classes_.LatticesOf(q.plain).all) {
    if (lattice.step) include(lattice.step->order() - digits - 1, lattice.step->order() + 3);
  }
  return {low, high};
}

NumberSearch::Answer NumberSearch::CompletesDigits(const Question& q, const Mantissa& m,
                                                   int64_t limit, std::string* text) {
  const bool not_plain = !q.plain && classes_.asks_spelling();
  const bool rough = text == nullptr && classes_.divisors().empty();
  Answer answer = Answer::kNo;
  Decimal found;
  const auto at = [&](int64_t shift) {
    const Answer one =
        In(q, {m.Low(shift), m.High(shift, rough)}, text == nullptr ? nullptr : &found);
    if (one == Answer::kUnknown) answer = one;
    if (one != Answer::kYes) return false;
    if (text != nullptr) *text = Spelled(m, found, q.plain, not_plain, limit);
    answer = one;
    return true;
  };
  const int64_t here = -m.places;
  if (at(here)) return answer;
  auto [low, high] = Shifts(q, m.size(), here);
  // What the text can still have.
  const int64_t first = q.plain || limit == 0 ? here : here - limit;
  const int64_t last = !m.point ? std::max(here, high) : here + limit;
  low = std::clamp(low, first, last);
  high = std::clamp(high, first, last);
  const bool appends = !m.point;
  if (appends) {
    for (int64_t shift = std::max(here + 1, low); shift <= high; ++shift) {
      if (at(shift)) return answer;
    }
    for (int64_t shift = std::min(here - 1, high); shift >= low; --shift) {
      if (at(shift)) return answer;
    }
    return answer;
  }
  const int64_t farthest = std::max(std::abs(low - here), std::abs(high - here));
  for (int64_t distance = 1; distance <= farthest; ++distance) {
    StopScope::Step();
    for (const int64_t shift : {here + distance, here - distance}) {
      if (shift >= low && shift <= high && at(shift)) return answer;
    }
  }
  return answer;
}

NumberSearch::Answer NumberSearch::CompletesZero(const Question& q, const Mantissa& m,
                                                 int64_t limit, std::string* text) {
  const bool not_plain = !q.plain && classes_.asks_spelling();
  const bool zero = !q.negative || !no_minus_zero_;
  if (zero && Accepts(classes_.Of(Decimal(), q.plain))) {
    if (text != nullptr) *text = !m.complete ? "0" : not_plain && !m.point ? ".0" : "";
    return Answer::kYes;
  }
  if (q.plain) return Answer::kNo;
  Answer answer = Answer::kNo;
  Decimal found;
  const int64_t high = Shifts(q, 0, -m.places).second;
  for (const int64_t shift : {-m.places, std::min(limit - m.places, high)}) {
    if (shift < -m.places) break;
    const Answer one =
        In(q, {Decimal(), Decimal::Of(false, "1", shift)}, text == nullptr ? nullptr : &found);
    if (one == Answer::kUnknown) answer = one;
    if (one != Answer::kYes) continue;
    if (text == nullptr) return one;
    // Zeros, or an exponent that makes up for them.
    const int64_t order = found.order() + m.places;
    const auto zeros = static_cast<size_t>(std::max<int64_t>(0, -order));
    const std::string point = m.point ? "" : ".";
    bool any = false;
    if (order <= 0) KeepShorter(*text, any, point + std::string(zeros, '0') + found.digits());
    if (order != 0 && std::abs(order) <= limit)
      KeepShorter(*text, any, point + found.digits() + ExponentText(order));
    return one;
  }
  return answer;
}

NumberSearch::Answer NumberSearch::Completes(const Mantissa& mantissa, int64_t limit,
                                             std::string* text) {
  const auto ask = [&](bool plain) {
    const Question q{mantissa.negative, plain};
    return mantissa.digits.empty() ? CompletesZero(q, mantissa, limit, text)
                                   : CompletesDigits(q, mantissa, limit, text);
  };
  Answer answer = Answer::kNo;
  if (!mantissa.point && (plain_ || classes_.asks_spelling())) {
    answer = ask(true);
    if (answer == Answer::kYes) return answer;
  }
  if (plain_) return answer;
  const Answer other = ask(false);
  return other == Answer::kNo ? answer : other;
}

bool NumberSearch::Endless(const Mantissa& m) {
  const Question q{m.negative, plain_ || (!m.point && classes_.asks_spelling())};
  if (!m.point) {
    if (m.digits.empty()) return false;
    return !Options(q, GapAfter(q, cuts_[q.negative ? 1 : 0].size())).empty();
  }
  if (plain_) return false;
  // Some gap in the window where multiples of no divisor are wanted.
  const Decimal low = m.Low(-m.places), high = m.High(-m.places, false);
  const std::vector<Cut>& cuts = cuts_[q.negative ? 1 : 0];
  for (size_t cut = 0; cut <= cuts.size(); ++cut) {
    if (cut < cuts.size() && cuts[cut].at <= low) continue;
    if (cut > 0 && cuts[cut - 1].at >= high) break;
    const std::vector<uint32_t>& options = Options(q, GapAfter(q, cut));
    if (!options.empty() && options[0] == 0) return true;  // the first has no step
  }
  return false;
}

bool NumberSearch::TakesAnyDigits(const Mantissa& m) {
  if (!m.point) {
    // Digits alone lead beyond all cuts, into windows as wide as one likes.
    if (m.digits.empty()) return false;
    for (const bool plain : {true, false}) {
      if (plain ? !plain_ && !classes_.asks_spelling() : plain_) continue;
      const Question q{m.negative, plain};
      const uint32_t last = GapAfter(q, cuts_[m.negative ? 1 : 0].size());
      if (!Complete(q) || !Options(q, last).empty()) return true;
    }
    return false;
  }
  if (plain_) return false;
  const Question q{m.negative, false};
  if (!Complete(q)) return true;
  // All that can follow lies in one gap, of which the multiples of no divisor are wanted.
  const Decimal low = m.Low(-m.places), high = m.High(-m.places, false);
  const std::vector<Cut>& cuts = cuts_[m.negative ? 1 : 0];
  const auto cut =
      std::upper_bound(cuts.begin(), cuts.end(), low,
                       [](const Decimal& value, const Cut& c) { return value < c.at; });
  if (cut != cuts.end() && cut->at < high) return false;
  const std::vector<uint32_t>& options =
      Options(q, GapAfter(q, static_cast<size_t>(cut - cuts.begin())));
  return !options.empty() && options[0] == 0;  // the first has no step
}

ExponentRanges NumberSearch::Exponents(const Mantissa& mantissa, int64_t limit) {
  ExponentRanges out;
  const Decimal value = mantissa.value();
  if (value.is_zero()) {
    const bool zero = !mantissa.negative || !no_minus_zero_;
    if (zero && Accepts(classes_.Of(value, false)))
      out.Add(-limits::kFarExponent, limits::kFarExponent);
    return out;
  }
  // Where the class may change: the first exponents of new ones.
  std::vector<int64_t> changes;
  for (const Cut& cut : cuts_[mantissa.negative ? 1 : 0]) {
    const int64_t same = cut.at.order() - value.order();
    changes.push_back(same);
    changes.push_back(same + 1);
  }
  for (const Decimal& step : classes_.divisors()) {
    const uint64_t divisor = ToUint64(step.digits());
    uint64_t rest = DigitsMod(value.digits(), divisor);
    // More zeros than a divisor has factors 2 or 5 do not help.
    for (int64_t zeros = 0; zeros <= 64; ++zeros) {
      if (rest == 0) {
        changes.push_back(step.exponent() - value.exponent() + zeros);
        break;
      }
      rest = MulMod(rest, 10, divisor);
    }
  }
  SortUnique(changes);
  int64_t reach = 0;
  for (const int64_t change : changes) reach = std::max(reach, std::abs(change) + 1);
  out.set_reach(limit == limits::kFarExponent ? reach : limit);
  int64_t first = -limit;
  for (size_t i = 0; i <= changes.size(); ++i) {
    const int64_t last = i < changes.size() ? std::min(changes[i] - 1, limit) : limit;
    if (last < first) continue;
    // The end that is nearer to zero: the far ones stand for all beyond.
    const int64_t at = std::abs(first) < std::abs(last) ? first : last;
    const int64_t exponent = std::clamp(at, -out.reach(), out.reach());
    if (Accepts(classes_.Of(value.Shifted(exponent), false))) out.Add(first, last);
    first = last + 1;
  }
  return out;
}

}  // namespace pawl::schema
