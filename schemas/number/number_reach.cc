// Can this beginning of a number still become one that fulfils the constraint? Decided by
// arithmetic, for every ending at once; nothing is explored.
//
// Let M be the digits read so far as an integer and 10^u the weight of the last one. An ending
// turns the value into M * 10^u + x with 0 <= x < 10^u, where every decimal x can be written. What
// can vary is u: digits appended to an integer raise it, an exponent shifts it ("shift" below; for
// an integer text the two are the same thing). For a given shift the bounds become a window for x:
// the whole of [0, 10^u) when the digits already differ from the bound's, else an end of the window
// is what remains of the bound's digits. Without a divisor it remains to see that the window is not
// empty. With a divisor D * 10^e, x must be X * 10^e with X = -M * 10^(u-e) (mod D): the least such
// X from the window's lower end on either lies in the window or none does. If u <= e, x can only be
// 0.
//
// Only finitely many shifts matter: those that give the value an order between those of the bounds,
// and without an upper bound some shift always works, because a window of 10^u >= D units contains
// a multiple.
//
// While all digits read are zeros the same is asked of x alone, and the largest shift covers the
// others.
#include <algorithm>
#include <utility>

#include "schemas/limits.h"
#include "schemas/number/decimal.h"
#include "schemas/number/number_automaton.h"

namespace pawl {
namespace {

// Adds to a string of decimal digits of fixed length; false when it overflows.
bool AddTo(std::string& digits, uint64_t amount) {
  for (size_t i = digits.size(); i-- > 0 && amount > 0;) {
    amount += static_cast<uint64_t>(digits[i] - '0');
    digits[i] = static_cast<char>('0' + amount % 10);
    amount /= 10;
  }
  return amount == 0;
}

// Subtracts 1; false when the digits are all zeros.
bool Decrement(std::string& digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '0') {
      --digits[i];
      return true;
    }
    digits[i] = '9';
  }
  return false;
}

// The fraction 0.digits as a whole number of units 10^-places, rounded down; *exact unless digits
// were cut.
std::string Scale(std::string_view fraction, size_t places, bool* exact) {
  std::string out(fraction.substr(0, std::min(places, fraction.size())));
  *exact = fraction.size() <= places || fraction.find_first_not_of('0', places) == fraction.npos;
  out.resize(places, '0');
  return out;
}

void TrimZeros(std::string& digits, size_t keep) {
  const size_t last = digits.find_last_not_of('0');
  digits.resize(std::max(keep, last == std::string::npos ? 0 : last + 1));
}

}  // namespace

int32_t NumberRules::Relation(const Prefix& p, const Bound& bound, int32_t progress,
                              int64_t shift) const {
  if (p.order == kResolved) return progress;
  const int64_t order = p.order + shift;
  if (order != bound.order) return order < bound.order ? kLess : kGreater;
  return progress;
}

// The mantissa as it stands, times 10^shift, fulfils the constraint.
bool NumberRules::AcceptsShifted(const Prefix& p, int64_t shift) const {
  if (p.hope != Hope::kAlive) return false;
  if (!p.nonzero) return ZeroOk(p);
  if (trivial_) return true;
  const Side& side = SideOf(p);
  if (side.empty) return false;
  if (!Tracked(p)) return true;
  if (divisor_ != 0) {
    const int64_t zeros = p.weight + shift - divisor_exponent_;
    if (zeros < 0) return false;
    const uint64_t scale = Pow10Mod(static_cast<uint64_t>(zeros), divisor_);
    if (MulMod(p.remainder, scale, divisor_) != 0) return false;
  }
  // The digits that are missing from a bound's are not all zeros.
  const auto compare = [&](const Bound& bound, int32_t progress) {
    const int32_t relation = Relation(p, bound, progress, shift);
    if (relation < 0) return relation == kLess ? -1 : 1;
    return static_cast<size_t>(relation) < bound.digits.size() ? -1 : 0;
  };
  if (side.low) {
    const int order = compare(*side.low, p.low);
    if (order < 0 || (order == 0 && side.low->exclusive)) return false;
  }
  if (side.high) {
    const int order = compare(*side.high, p.high);
    if (order > 0 || (order == 0 && side.high->exclusive)) return false;
  }
  return true;
}

bool NumberRules::Accepts(const Prefix& p) const {
  if (!Complete(p)) return false;
  return AcceptsShifted(p, p.exponent_sign < 0 ? -p.exponent : p.exponent);
}

// Some fraction lies in the window; the one with the fewest digits.
bool NumberRules::Fill(const Window& w, std::string* digits) const {
  if (w.high) {
    // Neither end has trailing zeros, so strings compare as the fractions they are.
    const int order = w.low.compare(*w.high);
    if (order > 0 || (order == 0 && (w.low_exclusive || w.high_exclusive))) return false;
  }
  if (digits == nullptr) return true;
  const size_t longest = std::max(w.low.size(), w.high ? w.high->size() : 0) + 1;
  for (size_t places = 0; places <= longest; ++places) {
    bool exact = false;
    std::string candidate = Scale(w.low, places, &exact);
    if ((!exact || w.low_exclusive) && !AddTo(candidate, 1)) continue;
    if (w.high) {
      std::string trimmed = candidate;
      TrimZeros(trimmed, 0);
      const int order = trimmed.compare(*w.high);
      if (order > 0 || (order == 0 && w.high_exclusive)) continue;
    }
    *digits = candidate;
    return true;
  }
  return false;  // not reached: the window holds a fraction of `longest` places
}

// Some whole number of units 10^-places that is `residue` modulo the divisor lies in the window;
// the least.
bool NumberRules::FillMultiple(const Window& w, int64_t places, uint64_t residue,
                               std::string* digits) const {
  if (w.low.empty() && !w.low_exclusive && !w.high && digits == nullptr) {
    if (places >= static_cast<int64_t>(limits::kDivisorDigits)) return true;
    uint64_t units = 1;
    for (int64_t i = 0; i < places; ++i) units *= 10;
    return residue < units;
  }
  const auto length = static_cast<size_t>(places);
  bool exact = false;
  std::string value = Scale(w.low, length, &exact);
  if ((!exact || w.low_exclusive) && !AddTo(value, 1)) return false;
  const uint64_t at = DigitsMod(value, divisor_);
  if (!AddTo(value, residue >= at ? residue - at : divisor_ - at + residue)) return false;
  if (w.high) {
    std::string high = Scale(*w.high, length, &exact);
    if (exact && w.high_exclusive && !Decrement(high)) return false;
    if (value > high) return false;
  }
  if (digits != nullptr) *digits = value;
  return true;
}

// Digits can follow such that the mantissa, times 10^shift, fulfils the constraint. For an integer
// text `shift` includes the number of digits appended to it. REQUIRES: Tracked(p), p.nonzero.
bool NumberRules::Reach(const Prefix& p, int64_t shift, std::string* digits) const {
  const Side& side = SideOf(p);
  Window window;
  if (side.low) {
    const int32_t relation = Relation(p, *side.low, p.low, shift);
    if (relation == kLess) return false;
    if (relation >= 0) {
      window.low = std::string_view(side.low->digits).substr(static_cast<size_t>(relation));
      window.low_exclusive = side.low->exclusive;
    }
  }
  if (side.high) {
    const int32_t relation = Relation(p, *side.high, p.high, shift);
    if (relation == kGreater) return false;
    if (relation >= 0) {
      window.high = std::string_view(side.high->digits).substr(static_cast<size_t>(relation));
      window.high_exclusive = side.high->exclusive;
    }
  }
  if (divisor_ == 0) return Fill(window, digits);
  const int64_t places = shift - p.places - divisor_exponent_;
  if (places <= 0 || OnlyZerosFollow(p)) {
    if (digits != nullptr) digits->clear();
    return AcceptsShifted(p, shift);
  }
  // M = S * 10^(weight + places read), so M * 10^places as S times a power of ten:
  const auto zeros = static_cast<uint64_t>(p.weight + p.places + places);
  const uint64_t residue = MulMod(p.remainder, Pow10Mod(zeros, divisor_), divisor_);
  return FillMultiple(window, places, residue == 0 ? 0 : divisor_ - residue, digits);
}

// The same for a mantissa of zeros so far ("0", "0.", "0.00"), to a value that is not zero.
bool NumberRules::ReachFromZero(const Prefix& p, int64_t shift, std::string* digits) const {
  const Side& side = SideOf(p);
  if (side.empty || OnlyZerosFollow(p)) return false;
  if (!Tracked(p)) {
    if (digits != nullptr) digits->assign(1, '1');
    return true;
  }
  // What follows weighs less than 10^unit. With a divisor the places are counted, else the order.
  const int64_t unit = shift + (divisor_ != 0 ? -p.places : p.order);
  std::string low, high;
  Window window;
  window.low_exclusive = true;
  if (side.low) {
    if (side.low->order > unit) return false;
    low = std::string(static_cast<size_t>(unit - side.low->order), '0') + side.low->digits;
    window.low = low;
    window.low_exclusive = side.low->exclusive;
  }
  if (side.high && side.high->order <= unit) {
    high = std::string(static_cast<size_t>(unit - side.high->order), '0') + side.high->digits;
    window.high = high;
    window.high_exclusive = side.high->exclusive;
  }
  if (divisor_ == 0) return Fill(window, digits);
  const int64_t places = unit - divisor_exponent_;
  return places > 0 && FillMultiple(window, places, 0, digits);
}

// The shifts that can put the value between the bounds, as far as its order tells, within the
// exponents of the texts; for an integer text the upper end is open and only the bounds limit it.
// An empty range has first > second. REQUIRES: Tracked(p), p.nonzero.
std::pair<int64_t, int64_t> NumberRules::ShiftRange(const Prefix& p) const {
  const bool integer = p.phase == Phase::kInteger;
  int64_t first = -exponent_limit_, last = exponent_limit_;
  if (integer) last = INT32_MAX;
  if (p.order == kResolved) return {first, last};
  const Side& side = SideOf(p);
  if (side.low) first = std::max(first, side.low->order - p.order);
  if (side.high) last = std::min(last, side.high->order - p.order);
  return {first, last};
}

bool NumberRules::CanReachInteger(const Prefix& p) const {
  const auto [first, last] = ShiftRange(p);
  if (!SideOf(p).high) return true;
  for (int64_t shift = first; shift <= last; ++shift) {
    if (Reach(p, shift, nullptr)) return true;
  }
  return false;
}

bool NumberRules::CanReachExponent(const Prefix& p) const {
  const int64_t limit = exponent_limit_;
  const auto any = [&](int64_t from, int64_t to) {
    for (int64_t e = from; e <= std::min(to, limit); ++e) {
      if (AcceptsShifted(p, p.exponent_sign < 0 ? -e : e)) return true;
      if (p.exponent_sign == 0 && p.phase == Phase::kExponent && AcceptsShifted(p, -e)) return true;
    }
    return false;
  };
  if (!Tracked(p) || !p.nonzero) return AcceptsShifted(p, 0);
  if (p.phase != Phase::kDigits || p.exponent == 0) return any(0, limit);
  for (int64_t from = p.exponent, to = p.exponent; from <= limit; from *= 10, to = to * 10 + 9) {
    if (any(from, to)) return true;
  }
  return false;
}

bool NumberRules::CanReach(const Prefix& p) const {
  if (p.hope != Hope::kAlive) return false;
  if (trivial_ && !p.negative) return true;
  switch (p.phase) {
    case Phase::kStart:
    case Phase::kMinus:
      for (int symbol = 0; symbol <= kMinus; ++symbol) {
        const auto next = Next(p, symbol);
        if (next && CanReach(*next)) return true;
      }
      return false;
    case Phase::kZero:
    case Phase::kInteger:
    case Phase::kPoint:
    case Phase::kFraction: {
      if (!p.nonzero && ZeroOk(p)) return true;
      if (SideOf(p).empty) return false;
      if (!Tracked(p)) return true;
      if (!p.nonzero) return ReachFromZero(p, exponent_limit_, nullptr);
      if (p.phase == Phase::kInteger) return CanReachInteger(p);
      const auto [first, last] = ShiftRange(p);
      for (int64_t shift = first; shift <= last; ++shift) {
        if (Reach(p, shift, nullptr)) return true;
      }
      return false;
    }
    case Phase::kExponent:
    case Phase::kSign:
    case Phase::kDigits:
      return CanReachExponent(p);
  }
  return false;
}

std::string NumberRules::ShortCompletion(const Prefix& p) const {
  if (Accepts(p)) return "";
  switch (p.phase) {
    case Phase::kStart:
    case Phase::kMinus: {
      std::string best;
      for (int symbol = 0; symbol <= kMinus; ++symbol) {
        const auto next = Next(p, symbol);
        if (!next || !CanReach(*next)) continue;
        std::string text(1, symbol == kMinus ? '-' : static_cast<char>('0' + symbol));
        text += ShortCompletion(*next);
        if (best.empty() || text.size() < best.size()) best = std::move(text);
      }
      return best;
    }
    case Phase::kInteger:
      return CompleteInteger(p);
    case Phase::kZero:
    case Phase::kPoint:
    case Phase::kFraction:
      return CompleteFraction(p);
    case Phase::kExponent:
    case Phase::kSign:
    case Phase::kDigits:
      return CompleteExponent(p);
  }
  return "";
}

// REQUIRES: Tracked(p); an untracked integer text is Accepting.
std::string NumberRules::CompleteInteger(const Prefix& p) const {
  const auto [first, last] = ShiftRange(p);
  std::string best, digits;
  bool found = false;
  for (int64_t shift = std::max<int64_t>(0, first); shift <= last; ++shift) {
    if (found && static_cast<size_t>(shift) >= best.size()) break;
    if (!Reach(p, shift, &digits)) continue;
    const auto integers = static_cast<size_t>(shift);
    digits.resize(std::max(digits.size(), integers), '0');
    TrimZeros(digits, integers);
    if (digits.size() > integers) digits.insert(integers, 1, '.');
    if (!found || digits.size() < best.size()) best = digits;
    found = true;
  }
  if (found) return best;
  for (int64_t shift = std::min<int64_t>(-1, last); shift >= first; --shift) {
    if (!Reach(p, shift, &digits)) continue;
    TrimZeros(digits, 0);
    if (!digits.empty()) digits.insert(0, 1, '.');
    return digits + ExponentText(shift);
  }
  return "";
}

std::string NumberRules::CompleteFraction(const Prefix& p) const {
  if (!p.nonzero && ZeroOk(p)) return p.phase == Phase::kPoint ? "0" : "";
  std::string digits;
  for (int64_t magnitude = 0; magnitude <= exponent_limit_; ++magnitude) {
    for (const int64_t shift : {magnitude, -magnitude}) {
      if (Tracked(p) && p.nonzero) {
        if (!Reach(p, shift, &digits)) continue;
      } else if (p.nonzero || SideOf(p).empty) {
        digits.clear();
      } else if (!ReachFromZero(p, shift, &digits)) {
        continue;
      }
      TrimZeros(digits, 0);
      if (p.phase == Phase::kPoint && digits.empty()) digits.assign(1, '0');
      if (p.phase == Phase::kZero) digits.insert(0, 1, '.');
      return digits + ExponentText(shift);
    }
  }
  return "";
}

std::string NumberRules::CompleteExponent(const Prefix& p) const {
  if (!Tracked(p) || !p.nonzero) return "0";
  const auto accepts = [&](int64_t e) {
    return e <= exponent_limit_ && AcceptsShifted(p, p.exponent_sign < 0 ? -e : e);
  };
  if (p.phase == Phase::kDigits) {
    // The digits that follow, shortest first.
    int64_t scale = 10;
    for (int64_t from = p.exponent * 10; from <= exponent_limit_ && scale <= 1000;
         from *= 10, scale *= 10) {
      for (int64_t more = 0; more < scale; ++more) {
        if (!accepts(from + more)) continue;
        std::string text = std::to_string(scale + more);
        return text.substr(1);
      }
    }
    return "";
  }
  for (int64_t e = 0; e <= exponent_limit_; ++e) {
    if (accepts(e)) return std::to_string(e);
    if (p.phase == Phase::kExponent && AcceptsShifted(p, -e)) return std::to_string(-e);
  }
  return "";
}

}  // namespace pawl
