// Decimals against 64-bit integers of a common unit: comparing, dividing, common multiples, and the
// limits.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "schemas/number/decimal.h"

namespace pawl {
namespace {

Decimal D(const std::string& text) {
  Result<Decimal> d = Decimal::Parse(text);
  EXPECT_TRUE(d.ok()) << text;
  return d.ok() ? *d : Decimal();
}

TEST(DecimalTest, EqualValuesHaveOneForm) {
  EXPECT_EQ(D("5"), D("5.0"));
  EXPECT_EQ(D("5"), D("0.5e1"));
  EXPECT_EQ(D("5"), D("500E-2"));
  EXPECT_EQ(D("-0"), D("0e999999999999999999999"));
  EXPECT_EQ(D("-0.0"), Decimal());
  EXPECT_EQ(D("-120"), Decimal(-120));
  EXPECT_EQ(D("-9223372036854775808"), Decimal(INT64_MIN));
  EXPECT_NE(D("5"), D("-5"));
}

TEST(DecimalTest, PrintsCanonically) {
  EXPECT_EQ(D("-0").ToString(), "0");
  EXPECT_EQ(D("1.50e3").ToString(), "1500");
  EXPECT_EQ(D("-12.340").ToString(), "-12.34");
  EXPECT_EQ(D("1e-7").ToString(), "0.0000001");
  EXPECT_EQ(D("1e30").ToString(), "1e+30");
  EXPECT_EQ(D("-123e-40").ToString(), "-1.23e-38");
}

TEST(DecimalTest, RefusesWhatIsNoJsonNumber) {
  for (const char* text : {"", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1.e1", "0x1", "1 ",
                           " 1", "NaN", "Infinity", "1e1.5", "--1", "1-"}) {
    const auto d = Decimal::Parse(text);
    ASSERT_FALSE(d.ok()) << text;
    EXPECT_EQ(d.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(d.error().place.substr(0, 5), "byte ");
  }
}

TEST(DecimalTest, LimitsAreErrors) {
  for (const std::string& text :
       {std::string("1e100001"), std::string("1e-100001"), std::string("1e99999999999999999999"),
        std::string(10'001, '7')}) {
    const auto d = Decimal::Parse(text);
    ASSERT_FALSE(d.ok());
    EXPECT_EQ(d.error().code, ErrorCode::kLimit);
  }
  EXPECT_TRUE(Decimal::Parse(std::string(10'000, '7')).ok());
  EXPECT_TRUE(Decimal::Parse(std::string(1, '1').append(50'000, '0')).ok());
  EXPECT_TRUE(Decimal::Parse("1e100000").ok());
}

// Decimals as integers of units 10^-6.
TEST(DecimalTest, ComparesAndDividesLikeIntegers) {
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t range) {
    const int64_t scales[] = {1, 10, 1000, 1'000'000};
    return static_cast<int64_t>(random() % static_cast<uint64_t>(2 * range + 1)) - range +
           static_cast<int64_t>(random() % 3) * scales[random() % 4];
  };
  const auto text = [&](int64_t units) {
    const std::string sign = units < 0 ? "-" : "";
    std::string digits = std::to_string(std::abs(units));
    if (random() % 2 == 0) return sign + digits + "e-6";
    if (digits.size() < 7) digits.insert(0, 7 - digits.size(), '0');
    return sign + digits.substr(0, digits.size() - 6) + "." + digits.substr(digits.size() - 6);
  };
  for (int i = 0; i < 20'000; ++i) {
    const int64_t range = i % 2 == 0 ? 50 : 50'000'000;
    const int64_t a = draw(range), b = draw(range);
    const Decimal da = D(text(a)), db = D(text(b));
    EXPECT_EQ(da < db, a < b) << a << " " << b;
    EXPECT_EQ(da == db, a == b) << a << " " << b;
    EXPECT_EQ(da.IsInteger(), a % 1'000'000 == 0) << a;
    EXPECT_EQ(D(da.ToString()), da);
    if (b != 0) {
      EXPECT_EQ(da.IsMultipleOf(db), a % b == 0) << a << " " << b;
      EXPECT_TRUE(D(text(b * (a % 1000))).IsMultipleOf(db)) << a << " " << b;
    }
    if (a > 0 && b > 0) {
      const auto lcm = Decimal::Lcm(da, db);
      ASSERT_TRUE(lcm.ok());
      EXPECT_EQ(*lcm, D(std::to_string(std::lcm(a, b)) + "e-6")) << a << " " << b;
    }
  }
}

TEST(DecimalTest, LongDivisorsDivideExactly) {
  const std::string seven(40, '7');
  EXPECT_TRUE(D(seven + seven).IsMultipleOf(D(seven)));
  EXPECT_FALSE(D(seven + "0" + std::string(39, '7')).IsMultipleOf(D(seven)));
  EXPECT_TRUE(D("1e308").IsMultipleOf(D("1e-8")));
  EXPECT_FALSE(D("1e308").IsMultipleOf(D("0.123456789")));
  EXPECT_TRUE(D("4.02").IsMultipleOf(D("0.01")));
  EXPECT_FALSE(D("4.021").IsMultipleOf(D("0.01")));
}

TEST(DecimalTest, CommonMultiplesHaveLimits) {
  EXPECT_EQ(*Decimal::Lcm(D("2.5"), D("1")), D("5"));
  EXPECT_EQ(*Decimal::Lcm(D("0.123456789"), D("1")), D("123456789"));
  EXPECT_EQ(*Decimal::Lcm(D("1e-300"), D("1e300")), D("1e300"));
  EXPECT_EQ(*Decimal::Lcm(D("0.4"), D("0.6")), D("1.2"));
  EXPECT_EQ(Decimal::Lcm(D("999999999999999989"), D("3")).error().code, ErrorCode::kLimit);
  EXPECT_EQ(Decimal::Lcm(D("0"), D("3")).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Decimal::Lcm(D("3"), D("-3")).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace pawl
