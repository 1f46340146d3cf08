// The automaton proper is only a table: prefixes (number_automaton.h) are hash-consed to small ids,
// and what was computed about a state (its successors, whether it accepts, whether anything beyond
// it can) is kept.
//
// Every prefix from which the constraint cannot be fulfilled is replaced by one that remembers the
// syntax alone. So the hopeless part of the language has a handful of states, and CanAccept is a
// stored bit.
#include "schemas/number/number_automaton.h"

#include <algorithm>
#include <utility>

#include "grammar/hash_index.h"
#include "schemas/limits.h"
#include "schemas/number/decimal.h"

namespace pawl {

// What to remember of the beginning of a number.
//
// A text without its exponent part is read as  S * 10^w : S the digits up to the last nonzero one,
// w the weight of that digit. The exponent E shifts it to S * 10^(w+E). Three questions are asked
// of the value.
//
// 1. Bounds. Write a bound as B = 0.b1b2...bn * 10^x. The text has order h (its first nonzero digit
// weighs
//    10^(h-1)), so |value| has order h+E, which is compared with x first; only when they are equal
//    do the digits decide, lexicographically. Hence it is enough to remember h and, for each bound,
//    how many of b1b2... the digits have matched so far, or that they have become less or greater
//    for good. With exponents limited to |E| <= L, h has finitely many cases: beyond max(x) + L the
//    text is greater than every bound whatever follows, below min(x) - L less. Without exponents L
//    = 0, and h is forgotten at the point.
//
// 2. multipleOf. With the divisor D * 10^e (D not a multiple of 10), decimal.cc shows: the value is
// a multiple
//    exactly when w+E >= e and S * 10^(w+E-e) = 0 (mod D). So S mod D and w are remembered. w of an
//    integer text (its trailing zeros) matters up to L+e; zeros beyond that are multiplied into the
//    remainder instead. After the point, digits at more than L-e places can only be zeros.
//    "integer" is multipleOf 1 and is worked in with a least common multiple.
//
// 3. Zero is decided by itself: it is a multiple of everything, so only the bounds count, and the
// sign where "-0" is not written.
//
// Two designs were possible for exponents: to allow them only where nothing depends on the
// mantissa, or to remember the mantissa exactly, which makes every digit string a state of its own.
// The representation above avoids both: it is finite, decides every exponent up to the limit
// exactly, and with L = 0 shrinks to what the plain forms need (a few states for "minimum": 3).
//
// The states are not minimal, but small: a bound costs its number of digits, a divisor its residues
// that are really met.

namespace {

Error TooManyPlaces(const char* what) {
  return {ErrorCode::kLimit,
          std::string(what) + " with more than " + std::to_string(limits::kNumberPlaces) +
              " digits before or after the decimal point",
          ""};
}

bool WithinPlaces(const Decimal& d) {
  return d.is_zero() ||
         (d.order() <= limits::kNumberPlaces && d.exponent() >= -limits::kNumberPlaces);
}

}  // namespace

int NumberRules::Symbol(char c) {
  constexpr std::string_view kSigns = "-+.e";  // from kMinus on
  if (IsDigit(c)) return c - '0';
  const size_t at = kSigns.find(c == 'E' ? 'e' : c);
  return at == std::string_view::npos ? -1 : kMinus + static_cast<int>(at);
}

size_t NumberRules::PrefixHash::operator()(const Prefix& p) const {
  uint64_t hash =
      HashMix(p.remainder, static_cast<uint64_t>(p.phase) | static_cast<uint64_t>(p.hope) << 8 |
                               static_cast<uint64_t>(p.negative) << 16 |
                               static_cast<uint64_t>(p.nonzero) << 17);
  for (const int32_t part :
       {int32_t{p.exponent_sign}, p.exponent, p.order, p.low, p.high, p.weight, p.places})
    hash = HashMix(hash, static_cast<uint32_t>(part));
  return static_cast<size_t>(hash);
}

NumberRules::Side NumberRules::MakeSide(const std::optional<Decimal>& low, bool low_exclusive,
                                        const std::optional<Decimal>& high, bool high_exclusive) {
  // Only the absolute values above zero are at issue here.
  Side side;
  if (high && (high->negative() || high->is_zero())) side.empty = true;
  if (low && high && (*low > *high || (*low == *high && (low_exclusive || high_exclusive)))) {
    side.empty = true;
  }
  if (side.empty) return side;
  if (low && !low->negative() && !low->is_zero()) {
    side.low = Bound{low->digits(), low->order(), low_exclusive};
  }
  if (high) side.high = Bound{high->digits(), high->order(), high_exclusive};
  return side;
}

Result<NumberRules> NumberRules::Create(const NumberConstraint& c, bool allow_exponents) {
  NumberRules rules;
  std::optional<Decimal> divisor = c.multiple_of;
  if (divisor && (divisor->is_zero() || divisor->negative())) {
    return Error{ErrorCode::kInvalid, "a divisor must be greater than 0", ""};
  }
  if (c.integer || c.integer_text) {
    // Every multiple of an integer is one.
    if (!divisor) {
      divisor = Decimal(1);
    } else if (!divisor->IsInteger()) {
      Result<Decimal> common = Decimal::Lcm(*divisor, Decimal(1));
      if (!common.ok()) return common.error();
      divisor = *common;
    }
  }
  if (divisor) {
    if (divisor->digits().size() > limits::kDivisorDigits) {
      return Error{ErrorCode::kLimit,
                   "a divisor with more than " + std::to_string(limits::kDivisorDigits) +
                       " significant digits",
                   ""};
    }
    if (!WithinPlaces(*divisor)) return TooManyPlaces("a divisor");
    rules.divisor_ = ToUint64(divisor->digits());
    rules.divisor_exponent_ = static_cast<int32_t>(divisor->exponent());
  }
  if ((c.minimum && !WithinPlaces(*c.minimum)) || (c.maximum && !WithinPlaces(*c.maximum))) {
    return TooManyPlaces("a bound");
  }
  rules.trivial_ = !divisor && !c.minimum && !c.maximum;
  rules.exponents_ = rules.trivial_ || allow_exponents;
  rules.integer_text_ = c.integer_text;
  rules.no_minus_zero_ = c.no_minus_zero;
  // An integer text has no exponent; one that is read all the same is past hope.
  rules.exponent_limit_ = allow_exponents && !c.integer_text ? limits::kTextExponent : 0;
  const Decimal zero;
  rules.zero_ok_ =
      !(c.minimum && (*c.minimum > zero || (*c.minimum == zero && c.exclusive_minimum))) &&
      !(c.maximum && (*c.maximum < zero || (*c.maximum == zero && c.exclusive_maximum)));
  const auto negated = [](const std::optional<Decimal>& d) {
    return d ? std::optional<Decimal>(d->Negated()) : std::nullopt;
  };
  rules.sides_[0] = MakeSide(c.minimum, c.exclusive_minimum, c.maximum, c.exclusive_maximum);
  rules.sides_[1] =
      MakeSide(negated(c.maximum), c.exclusive_maximum, negated(c.minimum), c.exclusive_minimum);
  return rules;
}

// The exact value of the mantissa matters, not only whether it is zero.
bool NumberRules::TakesAnyDigits(const Prefix& p) const {
  if (p.hope != Hope::kAlive) return false;
  const Side& side = SideOf(p);
  switch (p.phase) {
    case Phase::kInteger:  // what is too small, or no multiple, may grow until it is
      return trivial_ || (!side.empty && !side.high);
    case Phase::kFraction:
      return trivial_ ||
             (!side.empty && !side.low && !side.high && divisor_ == 0 && !integer_text_);
    case Phase::kDigits:
      return trivial_;
    default:
      return false;
  }
}

bool NumberRules::Tracked(const Prefix& p) const {
  const Side& side = SideOf(p);
  return !trivial_ && !side.empty && (side.low || side.high || divisor_ != 0);
}

// The next digits lie below everything the divisor can divide, whatever the exponent.
bool NumberRules::OnlyZerosFollow(const Prefix& p) const {
  return divisor_ != 0 && (p.phase == Phase::kPoint || p.phase == Phase::kFraction) &&
         p.places >= std::max(0, exponent_limit_ - divisor_exponent_);
}

// One digit of the mantissa. p.phase is already that of the text with the digit.
void NumberRules::Feed(Prefix& p, int digit) const {
  if (p.hope != Hope::kAlive) {
    p.nonzero = p.nonzero || digit != 0;
    return;
  }
  const bool fraction = p.phase == Phase::kFraction;
  if (OnlyZerosFollow(p) && digit != 0) {
    p.nonzero = true;
    p = Lost(p);
    return;
  }
  if (fraction && !OnlyZerosFollow(p)) ++p.places;
  if (digit != 0 || p.nonzero) {
    const Side& side = SideOf(p);
    const auto advance = [digit](const std::optional<Bound>& bound, int32_t& progress) {
      if (!bound || progress < 0) return;
      const bool within = static_cast<size_t>(progress) < bound->digits.size();
      const int expected = within ? bound->digits[static_cast<size_t>(progress)] - '0' : 0;
      if (digit != expected) {
        progress = digit < expected ? kLess : kGreater;
      } else if (within) {
        ++progress;
      }
    };
    advance(side.low, p.low);
    advance(side.high, p.high);
  }
  if (p.order != kResolved) {
    if (!fraction) {
      p.order += p.nonzero || digit != 0;
    } else if (!p.nonzero && digit == 0) {
      --p.order;
    }
  }
  if (divisor_ != 0 && digit != 0) {
    const int32_t unit = fraction ? -p.places : 0;
    // An integer's weight is counted before this digit, so the digits shift by one place more.
    const int32_t shift = p.weight - unit + (fraction ? 0 : 1);
    p.remainder = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(
             MulMod(p.remainder, Pow10Mod(static_cast<uint64_t>(shift), divisor_), divisor_)) +
         static_cast<unsigned>(digit)) %
        divisor_);
    p.weight = unit;
  } else if (divisor_ != 0 && !fraction && p.nonzero) {
    if (p.weight < std::max(0, exponent_limit_ + divisor_exponent_)) {
      ++p.weight;
    } else {
      p.remainder = MulMod(p.remainder, 10, divisor_);
    }
  }
  p.nonzero = p.nonzero || digit != 0;
  if (p.nonzero && SideOf(p).empty) p = Lost(p);
}

NumberRules::Prefix NumberRules::Lost(const Prefix& p) const {
  Prefix lost;
  lost.phase = p.phase;
  const bool any_exponent = !Tracked(p) || p.phase <= Phase::kMinus;
  lost.hope = any_exponent ? Hope::kLostForever : Hope::kLost;
  lost.exponent = any_exponent ? 0 : p.exponent;
  lost.nonzero = !any_exponent && p.nonzero;
  return lost;
}

// Forgets what cannot make a difference any more, so that equal futures become equal prefixes.
void NumberRules::Normalize(Prefix& p) const {
  if (p.hope != Hope::kAlive) {
    Prefix lost;
    lost.phase = p.phase;
    lost.hope = p.hope;
    if (p.hope == Hope::kLost) lost.exponent = p.exponent;
    lost.nonzero = p.hope == Hope::kLost && p.nonzero;
    p = lost;
    return;
  }
  if (!Tracked(p)) {
    Prefix kept;
    kept.phase = p.phase;
    kept.negative = p.negative && (!trivial_ || (no_minus_zero_ && !p.nonzero));
    kept.nonzero = p.nonzero && !ZeroOk(kept);
    p = kept;
    return;
  }
  NormalizeOrder(p);
  NormalizeRemainder(p);
}

void NumberRules::NormalizeOrder(Prefix& p) const {
  const Side& side = SideOf(p);
  if (!side.low && !side.high) {
    p.order = p.low = p.high = 0;
    return;
  }
  if (p.order == kResolved) return;
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (const std::optional<Bound>* bound : {&side.low, &side.high}) {
    if (!*bound) continue;
    least = std::min(least, (*bound)->order);
    most = std::max(most, (*bound)->order);
  }
  const int64_t limit = exponent_limit_;
  if (p.phase == Phase::kInteger) {
    const auto cap = static_cast<int32_t>(std::max<int64_t>(1, most + limit + 1));
    if (p.order >= cap) {
      p.order = cap;
      if (side.low) p.low = kGreater;
      if (side.high) p.high = kGreater;
    }
    return;
  }
  if (!p.nonzero) {
    if (p.phase >= Phase::kExponent) p.order = 0;
    p.order = std::max(p.order, static_cast<int32_t>(std::min<int64_t>(0, least - limit - 1)));
    return;
  }
  // The order is final. Settle the bounds it decides for every exponent.
  bool open = false;
  const auto settle = [&](const std::optional<Bound>& bound, int32_t& progress) {
    if (!bound) return;
    if (p.order + limit < bound->order) {
      progress = kLess;
    } else if (p.order - limit > bound->order) {
      progress = kGreater;
    } else if (limit > 0) {
      open = true;
    }
  };
  settle(side.low, p.low);
  settle(side.high, p.high);
  if (!open) p.order = kResolved;
}

void NumberRules::NormalizeRemainder(Prefix& p) const {
  if (p.phase >= Phase::kExponent) p.places = 0;
  if (divisor_ == 0) {
    p.places = 0;
    return;
  }
  if (!p.nonzero) {
    p.remainder = 0;
    p.weight = 0;
    return;
  }
  // Without exponents the zeros that a fraction ends in need no account of their own.
  if (exponent_limit_ == 0 && p.phase == Phase::kFraction && -p.places >= divisor_exponent_ &&
      p.weight > -p.places) {
    const auto zeros = static_cast<uint64_t>(int64_t{p.weight} + p.places);
    p.remainder = MulMod(p.remainder, Pow10Mod(zeros, divisor_), divisor_);
    p.weight = -p.places;
  }
}

std::optional<NumberRules::Prefix> NumberRules::Next(const Prefix& prefix, int symbol) const {
  Prefix p = prefix;
  const bool digit = symbol < 10;
  switch (p.phase) {
    case Phase::kStart:
    case Phase::kMinus:
      if (symbol == kMinus && p.phase == Phase::kStart) {
        p.phase = Phase::kMinus;
        p.negative = true;
        break;
      }
      if (!digit) return std::nullopt;
      p.phase = symbol == 0 ? Phase::kZero : Phase::kInteger;
      Feed(p, symbol);
      break;
    case Phase::kZero:
    case Phase::kInteger:
    case Phase::kPoint:
    case Phase::kFraction:
      if (digit) {
        if (p.phase == Phase::kZero) return std::nullopt;
        if (p.phase == Phase::kPoint) p.phase = Phase::kFraction;
        Feed(p, symbol);
      } else if (symbol == kPoint && (p.phase == Phase::kZero || p.phase == Phase::kInteger)) {
        p.phase = Phase::kPoint;
      } else if (symbol == kExponent && exponents_ && p.phase != Phase::kPoint) {
        p.phase = Phase::kExponent;
      } else {
        return std::nullopt;
      }
      break;
    case Phase::kExponent:
    case Phase::kSign:
    case Phase::kDigits:
      if (digit) {
        // Where the value of the exponent matters it is limited; elsewhere, as for zero, it need
        // not be known.
        if (p.nonzero && (p.hope == Hope::kLost || (p.hope == Hope::kAlive && Tracked(p)))) {
          p.exponent = p.exponent * 10 + symbol;
          if (p.exponent > exponent_limit_) return std::nullopt;
        }
        p.phase = Phase::kDigits;
      } else if ((symbol == kMinus || symbol == kPlus) && p.phase == Phase::kExponent) {
        p.phase = Phase::kSign;
        p.exponent_sign = symbol == kMinus ? -1 : 1;
      } else {
        return std::nullopt;
      }
      break;
  }
  if (integer_text_ && (p.phase == Phase::kPoint || p.phase == Phase::kExponent)) {
    p.hope = Hope::kLostForever;
  }
  Normalize(p);
  return p;
}

bool NumberRules::Complete(const Prefix& p) {
  return p.phase == Phase::kZero || p.phase == Phase::kInteger || p.phase == Phase::kFraction ||
         p.phase == Phase::kDigits;
}

NumberAutomaton::NumberAutomaton(NumberRules rules) : rules_(std::move(rules)) {
  State dead;
  dead.next.fill(kDead);
  states_.push_back(dead);
  start_ = Intern(NumberRules::Prefix{});
}

Result<std::unique_ptr<NumberAutomaton>> NumberAutomaton::Create(const NumberConstraint& constraint,
                                                                 bool allow_exponents) {
  Result<NumberRules> rules = NumberRules::Create(constraint, allow_exponents);
  if (!rules.ok()) return rules.error();
  return std::unique_ptr<NumberAutomaton>(new NumberAutomaton(std::move(*rules)));
}

uint32_t NumberAutomaton::Intern(const NumberRules::Prefix& prefix) {
  const uint64_t hash = NumberRules::PrefixHash()(prefix);
  const uint32_t known = ids_.Find(hash, [&](uint32_t id) { return states_[id].prefix == prefix; });
  if (known != HashIndex::kNone) return known;
  const bool can_accept = rules_.CanReach(prefix);
  if (!can_accept && prefix.hope == NumberRules::Hope::kAlive) return Intern(rules_.Lost(prefix));
  State state;
  state.prefix = prefix;
  state.can_accept = can_accept;
  state.accepting = rules_.Accepts(prefix);
  state.complete = NumberRules::Complete(prefix);
  state.next.fill(kUnknown);
  const auto id = static_cast<uint32_t>(states_.size());
  states_.push_back(state);
  ids_.Insert(hash, id);
  return id;
}

uint32_t NumberAutomaton::Step(uint32_t state, char c) {
  const int symbol = NumberRules::Symbol(c);
  if (symbol < 0) return kDead;
  const uint32_t known = states_[state].next[static_cast<size_t>(symbol)];
  if (known != kUnknown) return known;
  const auto next = rules_.Next(states_[state].prefix, symbol);
  const uint32_t id = next ? Intern(*next) : kDead;
  states_[state].next[static_cast<size_t>(symbol)] = id;
  return id;
}

std::string NumberAutomaton::ShortestAccepting(uint32_t state) {
  return rules_.ShortCompletion(states_[state].prefix);
}

}  // namespace pawl
