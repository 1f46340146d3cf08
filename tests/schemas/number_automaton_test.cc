// The automaton against its oracle: parse the whole text to an exact Decimal and compare.
#include "schemas/number/number_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "schemas/limits.h"

namespace pawl {
namespace {

using Random = std::mt19937_64;

// PAWL_TEST_SCALE=20 makes the random tests twenty times as long, with other numbers.
int Scale() {
  const char* scale = std::getenv("PAWL_TEST_SCALE");
  return scale == nullptr ? 1 : std::max(1, std::atoi(scale));
}

Decimal DecimalOf(const std::string& text) {
  Result<Decimal> d = Decimal::Parse(text);
  EXPECT_TRUE(d.ok()) << text;
  return d.ok() ? *d : Decimal();
}

std::string Describe(const NumberConstraint& c) {
  std::string out = c.integer_text ? "integer text" : c.integer ? "integer" : "number";
  if (c.minimum) out += (c.exclusive_minimum ? " > " : " >= ") + c.minimum->ToString();
  if (c.maximum) out += (c.exclusive_maximum ? " < " : " <= ") + c.maximum->ToString();
  if (c.multiple_of) out += " multiple of " + c.multiple_of->ToString();
  if (c.no_minus_zero) out += " without -0";
  return out;
}

bool Fulfils(const NumberConstraint& c, const Decimal& v) {
  if (c.minimum && (v < *c.minimum || (c.exclusive_minimum && v == *c.minimum))) return false;
  if (c.maximum && (v > *c.maximum || (c.exclusive_maximum && v == *c.maximum))) return false;
  if (c.multiple_of && !v.IsMultipleOf(*c.multiple_of)) return false;
  return (!c.integer && !c.integer_text) || v.IsInteger();
}

bool FulfilsText(const NumberConstraint& c, const std::string& text) {
  if (c.no_minus_zero && text[0] == '-' && DecimalOf(text).is_zero()) return false;
  return Fulfils(c, DecimalOf(text)) && (!c.integer_text || text.find_first_of(".eE") == text.npos);
}

// The texts the automaton is documented to read.
bool Readable(const NumberConstraint& c, bool allow_exponents, const std::string& text) {
  if (!Decimal::Parse(text).ok()) return false;
  const size_t e = text.find_first_of("eE");
  if (e == std::string::npos) return true;
  if (!c.minimum && !c.maximum && !c.multiple_of && !c.integer && !c.integer_text) return true;
  return allow_exponents;
}

// The exponent as written, without its sign; 0 without one.
int ExponentOf(const std::string& text) {
  const size_t e = text.find_first_of("eE");
  return e == std::string::npos ? 0 : std::abs(std::atoi(text.c_str() + e + 1));
}

class Walker {
 public:
  Walker(const NumberConstraint& c, bool allow_exponents)
      : constraint_(c), exponents_(allow_exponents) {
    auto automaton = NumberAutomaton::Create(c, allow_exponents);
    EXPECT_TRUE(automaton.ok()) << Describe(c) << ": " << automaton.error().ToString();
    automaton_ = std::move(*automaton);
  }
  uint32_t Walk(const std::string& text) {
    uint32_t state = automaton_->Start();
    for (const char c : text) {
      state = automaton_->Step(state, c);
      if (state == NumberAutomaton::kDead) break;
    }
    return state;
  }
  bool Expected(const std::string& text) const {
    return Readable(constraint_, exponents_, text) && FulfilsText(constraint_, text);
  }
  NumberAutomaton& automaton() { return *automaton_; }

  // Everything that must hold of one text and the path there.
  void Check(const std::string& text) {
    uint32_t state = automaton_->Start();
    for (size_t i = 0; i <= text.size(); ++i) {
      const std::string prefix = text.substr(0, i);
      const std::string context = Describe(constraint_) + (exponents_ ? " with" : " without") +
                                  " exponents, after '" + prefix + "'";
      const bool readable = Readable(constraint_, exponents_, prefix);
      if (state == NumberAutomaton::kDead) {
        const bool zero = prefix.substr(0, prefix.find_first_of("eE")).find_first_of("123456789") ==
                          std::string::npos;
        EXPECT_TRUE(!readable || (ExponentOf(prefix) > limits::kTextExponent && !zero)) << context;
        return;
      }
      ASSERT_EQ(automaton_->Complete(state), readable) << context;
      ASSERT_EQ(automaton_->Accepting(state), readable && FulfilsText(constraint_, prefix))
          << context;
      ASSERT_TRUE(!automaton_->Accepting(state) || automaton_->CanAccept(state)) << context;
      if (automaton_->CanAccept(state)) {
        const std::string completed = prefix + automaton_->ShortestAccepting(state);
        ASSERT_TRUE(Expected(completed)) << context << " completed to " << completed;
        ASSERT_TRUE(automaton_->Accepting(Walk(completed)))
            << context << " completed to " << completed;
      } else {
        // Once lost, lost for good.
        for (const char c : std::string("0159.e-")) {
          const uint32_t next = automaton_->Step(state, c);
          ASSERT_FALSE(automaton_->CanAccept(next)) << context << " then " << c;
        }
      }
      if (i < text.size()) state = automaton_->Step(state, text[i]);
    }
  }

  // No completion of at most `depth` characters is accepted where CanAccept says so.
  void CheckExhaustively(std::string& text, uint32_t state, int depth) {
    ASSERT_FALSE(Expected(text)) << Describe(constraint_) << ": " << text;
    if (depth == 0) return;
    for (const char c : std::string("0123456789.e-+")) {
      const uint32_t next = automaton_->Step(state, c);
      if (next == NumberAutomaton::kDead) continue;
      text.push_back(c);
      CheckExhaustively(text, next, depth - 1);
      text.pop_back();
    }
  }

 private:
  NumberConstraint constraint_;
  bool exponents_;
  std::unique_ptr<NumberAutomaton> automaton_;
};

std::string RandomDigits(Random& random, int most) {
  std::string out;
  for (int n = static_cast<int>(random() % static_cast<uint64_t>(most)) + 1; n > 0; --n) {
    out += static_cast<char>('0' + (random() % 3 == 0 ? (random() % 2) * 9 : random() % 10));
  }
  return out;
}

std::string RandomNumber(Random& random, int digits, bool exponents) {
  std::string out = random() % 3 == 0 ? "-" : "";
  std::string integer = random() % 4 == 0 ? "0" : RandomDigits(random, digits);
  while (integer.size() > 1 && integer[0] == '0') integer.erase(0, 1);
  out += integer;
  if (random() % 2 == 0) out += "." + RandomDigits(random, digits);
  if (exponents && random() % 2 == 0) {
    out += random() % 2 == 0 ? "e" : "E";
    if (random() % 2 == 0) out += random() % 2 == 0 ? "-" : "+";
    out += std::to_string(random() % (random() % 10 == 0 ? 402 : 9));
  }
  return out;
}

Decimal RandomBound(Random& random) {
  switch (random() % 8) {
    case 0:
      return Decimal();
    case 1:
      return DecimalOf(RandomNumber(random, 30, false));
    case 2:
      return DecimalOf(std::string(random() % 2 ? "-" : "") + "1e" +
                       std::to_string(static_cast<int>(random() % 9) - 4));
    case 3:
      return DecimalOf(RandomNumber(random, 8, true));
    default:
      return DecimalOf(RandomNumber(random, 2, false));
  }
}

Decimal RandomDivisor(Random& random) {
  static const char* const kDivisors[] = {"0.01", "0.1",       "3",        "2.5",
                                          "1e-7", "1",         "7",        "10",
                                          "100",  "1000",      "0.3",      "0.25",
                                          "12",   "123456789", "0.000037", "1.5",
                                          "1e9",  "6e-3",      "1024",     "999999999999999999"};
  return DecimalOf(kDivisors[random() % std::size(kDivisors)]);
}

NumberConstraint RandomConstraint(Random& random) {
  for (;;) {
    NumberConstraint c;
    if (random() % 3 != 0) c.minimum = RandomBound(random);
    if (random() % 3 != 0) {
      c.maximum = RandomBound(random);
      if (c.minimum && random() % 3 == 0) {
        // A narrow range: the other end shares most digits.
        std::string text = c.minimum->ToString();
        if (text.find('e') == std::string::npos) {
          text.back() = static_cast<char>('0' + random() % 10);
          c.maximum = DecimalOf(text);
        }
      }
    }
    c.exclusive_minimum = random() % 3 == 0;
    c.exclusive_maximum = random() % 3 == 0;
    if (random() % 2 == 0) c.multiple_of = RandomDivisor(random);
    c.integer = random() % 4 == 0;
    c.integer_text = random() % 16 == 0;
    c.no_minus_zero = random() % 4 == 0;
    if (NumberAutomaton::Create(c, false).ok()) return c;  // the common divisor may be too long
  }
}

// A text whose value is near one the constraint names, written in one way or another.
std::string NearText(Random& random, const NumberConstraint& c, bool exponents) {
  std::vector<Decimal> seeds;
  if (c.minimum) seeds.push_back(*c.minimum);
  if (c.maximum) seeds.push_back(*c.maximum);
  if (c.multiple_of) seeds.push_back(*c.multiple_of);
  if (seeds.empty() || random() % 4 == 0) return RandomNumber(random, 6, exponents);
  std::string text = seeds[random() % seeds.size()].ToString();
  if (!exponents && text.find('e') != std::string::npos) return RandomNumber(random, 6, false);
  const size_t e = std::min(text.find('e'), text.size());
  if (text[0] == '0' && random() % 4 == 0) return "-" + text + (random() % 2 == 0 ? ".00" : "");
  switch (random() % 5) {
    case 0:
      break;
    case 1:
      text[e - 1] = static_cast<char>('0' + random() % 10);
      break;
    case 2:
      text.insert(e, RandomDigits(random, 3));
      break;
    case 3:
      text.insert(e, text.find('.') == std::string::npos ? ".0" : "00");
      break;
    case 4:
      if (exponents && e == text.size()) {
        // Shift the point, keep the value or miss it by a power of ten.
        const int shift = static_cast<int>(random() % 5) - 2;
        Decimal moved = DecimalOf(text + "e" + std::to_string(shift));
        text = moved.ToString();
        if (text.find('e') == std::string::npos) text += "e" + std::to_string(-shift);
      }
      break;
  }
  return text;
}

TEST(NumberAutomatonTest, AgreesWithExactArithmetic) {
  Random random(19 + static_cast<unsigned>(Scale()));
  int texts = 0, accepted = 0;
  for (int i = 0; i < 6000 * Scale(); ++i) {
    const NumberConstraint c = RandomConstraint(random);
    const bool exponents = i % 2 == 0;
    Walker walker(c, exponents);
    for (int j = 0; j < 12; ++j, ++texts) {
      const std::string text = NearText(random, c, exponents || j == 0);
      walker.Check(text);
      accepted += walker.Expected(text);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(texts, 50'000);
  EXPECT_GT(accepted, texts / 10);
}

TEST(NumberAutomatonTest, CanAcceptMissesNothing) {
  Random random(20 + static_cast<unsigned>(Scale()));
  int lost = 0;
  for (int i = 0; i < 4000 * Scale() && lost < 1500 * Scale(); ++i) {
    const NumberConstraint c = RandomConstraint(random);
    Walker walker(c, i % 2 == 0);
    for (int j = 0; j < 4; ++j) {
      const std::string text = NearText(random, c, i % 2 == 0);
      std::string prefix = text.substr(0, random() % (text.size() + 1));
      const uint32_t state = walker.Walk(prefix);
      if (state == NumberAutomaton::kDead || walker.automaton().CanAccept(state)) continue;
      ++lost;
      walker.CheckExhaustively(prefix, state, 3);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(lost, 500);
}

TEST(NumberAutomatonTest, ZeroWithoutMinus) {
  const auto check = [](const NumberConstraint& c, std::initializer_list<const char*> accepted,
                        std::initializer_list<const char*> refused) {
    for (const bool exponents : {false, true}) {
      Walker walker(c, exponents);
      for (const char* text : accepted) {
        EXPECT_TRUE(walker.automaton().Accepting(walker.Walk(text))) << Describe(c) << ": " << text;
        walker.Check(text);
      }
      for (const char* text : refused) {
        EXPECT_FALSE(walker.automaton().CanAccept(walker.Walk(text)))
            << Describe(c) << ": " << text;
        walker.Check(text);
      }
    }
  };
  NumberConstraint c;
  c.no_minus_zero = true;
  check(c, {"0", "0.0", "0e5", "-1", "-0.5", "-0.0001", "-0.5e3", "-10"}, {"-0e", "-0.0e5"});
  Walker any(c, false);
  for (const char* text : {"-", "-0", "-0.", "-0.00"}) {
    EXPECT_FALSE(any.automaton().Accepting(any.Walk(text))) << text;
    EXPECT_TRUE(any.automaton().CanAccept(any.Walk(text))) << text;
  }
  c.minimum = DecimalOf("0");
  check(c, {"0", "0.0", "0.5"}, {"-"});
  c.minimum = DecimalOf("-0.01");
  c.multiple_of = DecimalOf("0.01");
  check(c, {"0", "-0.01", "-0.010"}, {"-0.00e1", "-2e0"});
  c.minimum = DecimalOf("-3");
  c.multiple_of = DecimalOf("1");
  check(c, {"0", "0.0", "-3", "-1.0"}, {"-4"});
  Walker whole(c, false);  // no fraction, so nothing but zero follows
  EXPECT_FALSE(whole.automaton().CanAccept(whole.Walk("-0")));
}

TEST(NumberAutomatonTest, EmptinessCombinesRangeAndDivisor) {
  const auto empty = [](const char* low, const char* high, const char* multiple,
                        bool integer = false) {
    NumberConstraint c;
    if (*low) c.minimum = DecimalOf(low);
    if (*high) c.maximum = DecimalOf(high);
    if (*multiple) c.multiple_of = DecimalOf(multiple);
    c.integer = integer;
    const bool plain = (*NumberAutomaton::Create(c, false))->IsEmpty();
    EXPECT_EQ(plain, (*NumberAutomaton::Create(c, true))->IsEmpty()) << Describe(c);
    return plain;
  };
  EXPECT_TRUE(empty("5", "9", "10"));
  EXPECT_FALSE(empty("5", "10", "10"));
  EXPECT_FALSE(empty("-5", "9", "10"));  // 0
  EXPECT_TRUE(empty("0.1", "0.9", "", true));
  EXPECT_TRUE(empty("2", "1", ""));
  EXPECT_FALSE(empty("1", "1", ""));
  EXPECT_TRUE(empty("1000000000000000000000000000000", "1000000000000000000000000000001", "3"));
  EXPECT_FALSE(empty("1000000000000000000000000000000", "1000000000000000000000000000002", "3"));
  EXPECT_TRUE(empty("1", "999999999999999998", "999999999999999999"));
  EXPECT_FALSE(empty("1", "", "999999999999999999"));
  EXPECT_TRUE(empty("1e-9", "9e-8", "1e-7"));
  EXPECT_FALSE(empty("1e-9", "1e-7", "1e-7"));
}

TEST(NumberAutomatonTest, PlainAutomataAreSmall) {
  Random random(22);
  const auto states = [&](const NumberConstraint& c, bool exponents, bool write_exponents) {
    Walker walker(c, exponents);
    for (int i = 0; i < 3000; ++i)
      walker.Walk(RandomNumber(random, i % 20 == 0 ? 200 : 6, write_exponents));
    return walker.automaton().num_states();
  };
  NumberConstraint c;
  EXPECT_LE(states(c, true, true), 12u);
  c.integer = true;
  EXPECT_LE(states(c, false, false), 16u);
  c.minimum = Decimal(3);
  EXPECT_LE(states(c, false, false), 24u);
  c.maximum = DecimalOf("123456");
  EXPECT_LE(states(c, false, false), 80u);
  c = NumberConstraint{};
  c.minimum = DecimalOf("-0.5");
  c.maximum = DecimalOf("123456789012345678901234567890.5");
  EXPECT_LE(states(c, false, false), 200u);
  c = NumberConstraint{};
  c.multiple_of = DecimalOf("0.01");
  EXPECT_LE(states(c, false, false), 24u);
  c.multiple_of = DecimalOf("7");
  EXPECT_LE(states(c, false, false), 60u);
  // With exponents the digits are counted up to the limit, but no digit string is a state of its
  // own.
  c = NumberConstraint{};
  c.minimum = Decimal(3);
  EXPECT_LE(states(c, true, false), 3000u);
  c = NumberConstraint{};
  c.integer = true;
  EXPECT_LE(states(c, true, false), 1000u);
}

TEST(NumberAutomatonTest, LongTextsEndInFewStates) {
  NumberConstraint c;
  c.minimum = DecimalOf("0.1");
  c.maximum = DecimalOf("12345.678");
  c.multiple_of = DecimalOf("0.002");
  for (const bool exponents : {false, true}) {
    Walker walker(c, exponents);
    const std::string zeros(100'000, '0');
    EXPECT_TRUE(walker.automaton().Accepting(walker.Walk("12.5" + zeros)));
    EXPECT_FALSE(walker.automaton().CanAccept(walker.Walk("12.5" + zeros + "1")));
    EXPECT_FALSE(walker.automaton().CanAccept(walker.Walk("1" + zeros)));
    EXPECT_TRUE(walker.automaton().Complete(walker.Walk("1" + zeros)));
    EXPECT_LE(walker.automaton().num_states(), 2500u);
  }
}

TEST(NumberAutomatonTest, ExponentsReachAsFarAsDocumented) {
  NumberConstraint c;
  c.minimum = Decimal(1);
  c.maximum = DecimalOf("9e399");
  Walker bounded(c, true);
  NumberAutomaton& a = bounded.automaton();
  EXPECT_TRUE(a.Accepting(bounded.Walk("5e399")));
  EXPECT_TRUE(a.Accepting(bounded.Walk("0.5e400")));
  EXPECT_FALSE(a.CanAccept(bounded.Walk("5e400")));
  EXPECT_TRUE(a.Complete(bounded.Walk("5e400")));
  EXPECT_EQ(bounded.Walk("5e401"), NumberAutomaton::kDead);
  EXPECT_TRUE(a.Accepting(bounded.Walk("5" + std::string(400, '0') + "e-0001")));
  EXPECT_TRUE(a.CanAccept(bounded.Walk("5" + std::string(700, '0'))));  // e-400 brings it back
  EXPECT_FALSE(a.CanAccept(bounded.Walk("5" + std::string(900, '0'))));
  EXPECT_TRUE(a.CanAccept(bounded.Walk("0." + std::string(300, '0') + "5")));
  EXPECT_FALSE(a.CanAccept(bounded.Walk("0." + std::string(400, '0') + "5")));

  Walker anything(NumberConstraint{}, false);
  EXPECT_TRUE(anything.automaton().Accepting(anything.Walk("-5.25e+99999")));
  NumberConstraint positive;
  positive.minimum = Decimal();
  positive.exclusive_minimum = true;
  Walker sign(positive, true);
  EXPECT_TRUE(sign.automaton().Accepting(sign.Walk("1e-99999")));
  EXPECT_FALSE(sign.automaton().CanAccept(sign.Walk("0.00e")));
  EXPECT_FALSE(sign.automaton().CanAccept(sign.Walk("-")));
}

// Bug: exponents of zero had the limit of exponents that matter.
TEST(NumberAutomatonTest, ZeroHasAnyExponent) {
  NumberConstraint c;
  c.minimum = Decimal(-3);
  c.maximum = DecimalOf("17.5");
  c.exclusive_maximum = true;
  c.multiple_of = DecimalOf("0.25");
  NumberConstraint positive;
  positive.minimum = Decimal(1);
  NumberConstraint multiple;
  multiple.multiple_of = Decimal(7);
  for (const char* text : {"0e640", "0.0e640", "-0.00E-99999", "0e+12345678901234567890",
                           "0.000000000e401", "0.0e0000400"}) {
    for (const NumberConstraint& constraint : {c, positive, multiple}) {
      Walker walker(constraint, true);
      const uint32_t state = walker.Walk(text);
      EXPECT_EQ(walker.automaton().Accepting(state), !(constraint.minimum == Decimal(1)))
          << Describe(constraint) << ": " << text;
      EXPECT_TRUE(walker.automaton().Complete(state)) << Describe(constraint) << ": " << text;
      walker.Check(text);
    }
  }
  Walker walker(c, true);
  EXPECT_EQ(walker.Walk("0.01e640"), NumberAutomaton::kDead);
  EXPECT_EQ(Walker(positive, true).Walk("0.1e401"), NumberAutomaton::kDead);
}

TEST(NumberAutomatonTest, SyntaxIsJson) {
  Walker walker(NumberConstraint{}, true);
  for (const char* text :
       {"+1", "01", "-01", ".5", "1.e", "1.-", "e5", "1e5.", "1ee", "--1", "1e+-5", "1.5.", "00"}) {
    EXPECT_EQ(walker.Walk(text), NumberAutomaton::kDead) << text;
  }
  for (const char* text : {"", "-", "1.", "1e", "1e+", "-0."}) {
    const uint32_t state = walker.Walk(text);
    ASSERT_NE(state, NumberAutomaton::kDead) << text;
    EXPECT_FALSE(walker.automaton().Complete(state)) << text;
    EXPECT_TRUE(walker.automaton().CanAccept(state)) << text;
  }
  EXPECT_EQ(walker.automaton().Step(walker.automaton().Start(), 'x'), NumberAutomaton::kDead);
}

TEST(NumberAutomatonTest, LimitsAreErrors) {
  NumberConstraint c;
  c.multiple_of = DecimalOf("1234567890123456789");
  EXPECT_EQ(NumberAutomaton::Create(c, false).error().code, ErrorCode::kLimit);
  c.multiple_of = DecimalOf("1e-1001");
  EXPECT_EQ(NumberAutomaton::Create(c, false).error().code, ErrorCode::kLimit);
  c.multiple_of = DecimalOf("-2");
  EXPECT_EQ(NumberAutomaton::Create(c, false).error().code, ErrorCode::kInvalid);
  c.multiple_of.reset();
  c.maximum = DecimalOf("1e1000");
  EXPECT_EQ(NumberAutomaton::Create(c, false).error().code, ErrorCode::kLimit);
  c.maximum = DecimalOf("1e999");
  EXPECT_TRUE(NumberAutomaton::Create(c, true).ok());
}

}  // namespace
}  // namespace pawl
