// The validator's numbers against whole numbers of the machine, and against the product's decimals:
// two that were written apart and have to agree.
#include "tests/oracle/exact_number.h"

#include <gtest/gtest.h>

#include <random>

#include "schemas/number/decimal.h"

namespace pawl::oracle {
namespace {

std::string Text(std::mt19937& random) {
  const auto digits = [&](int most) {
    std::string out;
    for (int n = 1 + static_cast<int>(random() % most); n > 0; --n)
      out += "0123456789"[random() % 10];
    return out;
  };
  std::string out = random() % 2 ? "-" : "";
  out += random() % 4 == 0 ? "0" : std::to_string(1 + random() % 2000);
  if (random() % 2) out += "." + digits(3);
  if (random() % 3 == 0) out += std::string(random() % 2 ? "e" : "E-") + digits(1);
  return out;
}

TEST(ExactNumberTest, WholeNumbersAsTheMachineHasThem) {
  for (int a = -40; a <= 40; ++a) {
    for (int b = -40; b <= 40; ++b) {
      const auto x = ExactNumber::Read(std::to_string(a)), y = ExactNumber::Read(std::to_string(b));
      ASSERT_TRUE(x && y);
      EXPECT_EQ(*x <=> *y, a <=> b) << a << " " << b;
      EXPECT_EQ(*x == *y, a == b);
      if (b > 0) {
        EXPECT_EQ(x->IsMultipleOf(*y), a % b == 0) << a << " " << b;
      }
    }
  }
}

TEST(ExactNumberTest, AgreesWithDecimal) {
  std::mt19937 random(7);
  int multiples = 0, equal = 0;
  for (int i = 0; i < 40'000; ++i) {
    const std::string a = Text(random), b = Text(random);
    const auto x = ExactNumber::Read(a), y = ExactNumber::Read(b);
    const auto p = Decimal::Parse(a), q = Decimal::Parse(b);
    ASSERT_TRUE(x && y && p.ok() && q.ok()) << a << " " << b;
    EXPECT_EQ(*x <=> *y, *p <=> *q) << a << " " << b;
    EXPECT_EQ(x->IsInteger(), p->IsInteger()) << a;
    equal += *x == *y;
    if (q->is_zero()) continue;
    EXPECT_EQ(x->IsMultipleOf(*y), p->IsMultipleOf(*q)) << a << " " << b;
    multiples += x->IsMultipleOf(*y);
  }
  EXPECT_GT(multiples, 500);
  EXPECT_GT(equal, 10);
}

TEST(ExactNumberTest, OnlyNumbersOfJson) {
  for (const char* text : {"", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1", "1 ", "NaN"})
    EXPECT_FALSE(ExactNumber::Read(text)) << text;
  EXPECT_TRUE(ExactNumber::Read("-0.00e7")->IsZero());
  EXPECT_FALSE(ExactNumber::Read("1e999999999999999999999"));
}

}  // namespace
}  // namespace pawl::oracle
