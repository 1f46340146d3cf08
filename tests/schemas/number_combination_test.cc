// Conditions on numbers, combined in full, against an oracle with arithmetic of its own: it
// evaluates the schema on the exact value of a text, exponent and all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

using json::Type;
using json::Value;
using Random = std::mt19937_64;

constexpr int kMaxExponent = 400;  // of what has to be accepted

// PAWL_TEST_SCALE=20 makes the random tests twenty times as long, with other numbers.
int Scale() {
  const char* scale = std::getenv("PAWL_TEST_SCALE");
  return scale == nullptr ? 1 : std::max(1, std::atoi(scale));
}

// --- The oracle -----------------------------------------------------------------------------

// digits * 10^exponent, the digits without zeros at either end.
struct Exact {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
  bool plain = true;  // written without '.' and 'e'
};

// Of "+12" or "-0012"; far ones are cut.
int64_t ExponentOf(std::string text) {
  const bool negative = text[0] == '-';
  if (negative || text[0] == '+') text.erase(0, 1);
  int64_t out = 0;
  for (const char c : text) out = std::min(out * 10 + (c - '0'), int64_t{1'000'000'000'000});
  return negative ? -out : out;
}

Exact Read(const std::string& text) {
  Exact out;
  size_t i = 0;
  if (text[i] == '-') out.negative = true, ++i;
  bool point = false;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    out.digits += text[i];
    out.exponent -= point ? 1 : 0;
  }
  out.plain = !point && i == text.size();
  if (i < text.size()) out.exponent += ExponentOf(text.substr(i + 1));
  while (!out.digits.empty() && out.digits[0] == '0') out.digits.erase(0, 1);
  while (!out.digits.empty() && out.digits.back() == '0') out.digits.pop_back(), ++out.exponent;
  if (out.digits.empty()) out.negative = false, out.exponent = 0;
  return out;
}

// First by the place of the first digit, then with as many digits.
int Compare(const Exact& a, const Exact& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  if (a.digits.empty() || b.digits.empty()) {
    const int order = (a.digits.empty() ? 0 : 1) - (b.digits.empty() ? 0 : 1);
    return a.negative ? -order : order;
  }
  const auto place = [](const Exact& x) {
    return static_cast<int64_t>(x.digits.size()) + x.exponent;
  };
  int order = place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0;
  if (order == 0) {
    std::string x = a.digits, y = b.digits;
    const size_t size = std::max(x.size(), y.size());
    x.append(size - x.size(), '0');
    y.append(size - y.size(), '0');
    order = x < y ? -1 : x > y ? 1 : 0;
  }
  return a.negative ? -order : order;
}

bool IsMultiple(const Exact& value, const Exact& divisor) {
  std::string digits = value.digits;
  // More zeros than the divisor can have factors 2 and 5 make no difference.
  int64_t zeros = std::min<int64_t>(value.exponent - divisor.exponent, 100);
  for (; zeros < 0; ++zeros) {
    if (digits.empty()) break;
    if (digits.back() != '0') return false;
    digits.pop_back();
  }
  if (!digits.empty()) digits.append(static_cast<size_t>(std::max<int64_t>(0, zeros)), '0');
  const uint64_t by = std::stoull(divisor.digits);
  unsigned __int128 rest = 0;
  for (const char c : digits) rest = (rest * 10 + static_cast<unsigned>(c - '0')) % by;
  return rest == 0;
}

// The schema holds for the value, a number or an array of numbers.
bool Holds(const Value& schema, const Value& value, bool draft4);

bool SameNumber(const Value& a, const Value& b) { return Compare(Read(a.text), Read(b.text)) == 0; }

bool HoldsForNumber(const std::string& name, const Value& says, const Exact& x, bool draft4) {
  if (name == "minimum") return Compare(x, Read(says.text)) >= 0;
  if (name == "maximum") return Compare(x, Read(says.text)) <= 0;
  if (name == "exclusiveMinimum") return Compare(x, Read(says.text)) > 0;
  if (name == "exclusiveMaximum") return Compare(x, Read(says.text)) < 0;
  if (name == "multipleOf") return IsMultiple(x, Read(says.text));
  if (name == "const") return Compare(x, Read(says.text)) == 0;
  if (name == "enum") {
    return std::ranges::any_of(says.items,
                               [&](const Value& one) { return Compare(x, Read(one.text)) == 0; });
  }
  if (name == "type" && says.text == "integer")
    return IsMultiple(x, Read("1")) && (!draft4 || x.plain);
  return true;
}

bool Holds(const Value& schema, const Value& value, bool draft4) {
  if (schema.is_bool()) return schema.type == Type::kTrue;
  const auto holds = [&](const Value& part) { return Holds(part, value, draft4); };
  const bool number = value.type == Type::kNumber;
  for (const auto& [name, keyword] : schema.members) {
    const Value& says = keyword;  // Clang 14 takes no name of a binding into a lambda expression
    bool fits = true;
    if (name == "type") {
      fits = says.text == "array" ? !number : number && says.text != "string";
    }
    if (number) fits = fits && HoldsForNumber(name, says, Read(value.text), draft4);
    if (name == "not") fits = !holds(says);
    const auto count = [&] { return std::ranges::count_if(says.items, holds); };
    if (name == "allOf") fits = count() == static_cast<int>(says.size());
    if (name == "anyOf") fits = count() > 0;
    if (name == "oneOf") fits = count() == 1;
    if (name == "if") {
      const Value* branch = schema.Find(holds(says) ? "then" : "else");
      fits = branch == nullptr || holds(*branch);
    }
    if (!number) {
      if (name == "items") {
        fits = std::ranges::all_of(value.items,
                                   [&](const Value& item) { return Holds(says, item, draft4); });
      }
      if (name == "contains") {
        const auto found = std::ranges::count_if(
            value.items, [&](const Value& item) { return Holds(says, item, draft4); });
        const Value* least = schema.Find("minContains");
        const Value* most = schema.Find("maxContains");
        fits = found >= (least != nullptr ? std::stoi(least->text) : 1) &&
               (most == nullptr || found <= std::stoi(most->text));
      }
      if (name == "maxItems") fits = value.items.size() <= std::stoul(says.text);
      if (name == "minItems") fits = value.items.size() >= std::stoul(says.text);
      if (name == "uniqueItems") {
        for (size_t i = 0; i < value.items.size(); ++i) {
          for (size_t j = 0; j < i; ++j) fits = fits && !SameNumber(value.items[i], value.items[j]);
        }
      }
    }
    if (!fits) return false;
  }
  return true;
}

// --- Random schemas and texts ---------------------------------------------------------------

const char* const kValues[] = {"0",   "1",    "5",    "7",     "10",   "12",  "15",    "100",
                               "150", "1000", "-3",   "-0.5",  "1.5",  "0.3", "0.03",  "0.001",
                               "2e3", "1e5",  "1e-7", "12.34", "-1e4", "999", "99.99", "-150"};
const char* const kDivisors[] = {"1",   "2",   "3",   "7",     "10",  "12",   "100",   "0.01",
                                 "0.3", "0.5", "2.5", "0.001", "1e3", "6e-3", "0.125", "35"};

template <typename List>
std::string Pick(Random& random, const List& list) {
  return list[random() % std::size(list)];
}

std::string Condition(Random& random, bool draft4) {
  switch (random() % (draft4 ? 8u : 11u)) {
    case 0:
    case 1:
      return R"({"type":"integer"})";
    case 2:
      return R"({"minimum":)" + Pick(random, kValues) + "}";
    case 3:
      return R"({"maximum":)" + Pick(random, kValues) + "}";
    case 4:
    case 5:
      return R"({"multipleOf":)" + Pick(random, kDivisors) + "}";
    case 6:
    case 7: {
      std::string out = R"({"enum":[)" + Pick(random, kValues);
      for (auto more = random() % 4; more > 0; --more) out += "," + Pick(random, kValues);
      return out + "]}";
    }
    case 8:
      return R"({"exclusiveMinimum":)" + Pick(random, kValues) + "}";
    case 9:
      return R"({"exclusiveMaximum":)" + Pick(random, kValues) + "}";
    default:
      return R"({"const":)" + Pick(random, kValues) + "}";
  }
}

std::string RandomSchema(Random& random, int depth, bool draft4) {
  if (depth == 0) return Condition(random, draft4);
  const auto more = [&] { return RandomSchema(random, random() % 2 == 0 ? depth - 1 : 0, draft4); };
  const auto list = [&](const char* name) {
    std::string out = std::string("{\"") + name + "\":[" + more();
    for (auto n = 1 + random() % 3; n > 0; --n) out += "," + more();
    return out + "]}";
  };
  switch (random() % (draft4 ? 4u : 5u)) {
    case 0:
      return R"({"not":)" + more() + "}";
    case 1:
      return list("allOf");
    case 2:
      return list("anyOf");
    case 3:
      return list("oneOf");
    default:
      return R"({"if":)" + more() + R"(,"then":)" + more() + R"(,"else":)" + more() + "}";
  }
}

std::string Numbers(const std::string& schema) {
  return R"({"type":"number","allOf":[)" + schema + "]}";
}

// A value of the pool or near it, its point anywhere and an exponent that makes up for it, or does
// not.
std::string RandomText(Random& random, bool exponents) {
  const Exact value = Read(Pick(random, kValues));
  std::string digits = value.digits;
  auto exponent = static_cast<int>(value.exponent);
  if (random() % 3 == 0) {
    digits += std::to_string(random() % (random() % 2 == 0 ? 10 : 1000));
    if (random() % 2 == 0) exponent -= static_cast<int>(random() % 3);
  }
  for (auto zeros = random() % 4; zeros > 0; --zeros) digits += '0', --exponent;
  if (digits.empty()) digits = "0";
  if (!exponents) {
    // Written out.
    if (exponent > 0) digits.append(static_cast<size_t>(exponent), '0'), exponent = 0;
  } else if (random() % 4 == 0) {
    exponent += static_cast<int>(random() % 5) - 2;
  } else if (random() % 8 == 0) {
    exponent = static_cast<int>(random() % 1000) - 500;
  }
  auto places = exponents ? static_cast<int>(random() % (digits.size() + 3)) : -exponent;
  std::string out = value.negative || random() % 10 == 0 ? "-" : "";
  if (places >= static_cast<int>(digits.size()))
    digits.insert(0, static_cast<size_t>(places) - digits.size() + 1, '0');
  std::string whole = digits.substr(0, digits.size() - static_cast<size_t>(places));
  while (whole.size() > 1 && whole[0] == '0') whole.erase(0, 1);
  out += whole;
  if (places > 0) out += "." + digits.substr(digits.size() - static_cast<size_t>(places));
  exponent += places;
  if (!exponents || (exponent == 0 && random() % 4 != 0)) return out;
  out += random() % 2 == 0 ? "e" : "E";
  if (exponent < 0) {
    out += "-";
  } else if (random() % 3 == 0) {
    out += "+";
  }
  out +=
      std::string(random() % 5 == 0 ? random() % 4 : 0, '0') + std::to_string(std::abs(exponent));
  return out;
}

// The largest exponent of a number whose digits are not all zeros.
int64_t ExponentIn(const Value& value) {
  int64_t out = 0;
  for (const Value& item : value.items) out = std::max(out, ExponentIn(item));
  const size_t e = value.type == Type::kNumber ? value.text.find_first_of("eE") : value.text.npos;
  if (e != value.text.npos && !Read(value.text).digits.empty())
    out = std::max(out, std::abs(ExponentOf(value.text.substr(e + 1))));
  return out;
}

// --- What is checked ------------------------------------------------------------------------

// Zero with a sign, which canonical spelling has not.
bool HasMinusZero(const Value& value) {
  if (value.type == Type::kNumber) return value.text[0] == '-' && Read(value.text).digits.empty();
  return std::ranges::any_of(value.items, HasMinusZero) ||
         std::ranges::any_of(value.members,
                             [](const auto& member) { return HasMinusZero(member.second); });
}

struct Subject {
  std::string text;
  Value schema;
  bool draft4 = false, exponents = true, canonical = false;
  std::optional<Grammar> grammar;  // null: called unsatisfiable

  // nullopt: no JSON.
  std::optional<bool> Valid(const std::string& instance) const {
    const auto value = json::Parse(instance);
    if (!value.ok()) return std::nullopt;
    return Holds(schema, *value, draft4) && !(canonical && HasMinusZero(*value));
  }
  bool MustRead(const std::string& instance) const {
    return Valid(instance).value_or(false) && ExponentIn(*json::Parse(instance)) <= kMaxExponent &&
           (exponents || instance.find_first_of("eE") == std::string::npos) &&
           (!canonical || IsCanonical(instance));
  }
  // The text of a number that canonical spelling cannot be without.
  static bool IsCanonical(const std::string& number) {
    const Exact value = Read(number);
    if (value.digits.empty()) return number == "0";
    if (value.exponent >= 0) return value.plain;
    return number.find_first_of("eE") == number.npos && !number.ends_with('0');
  }
};

Subject Make(const std::string& schema, bool draft4, bool exponents, bool canonical = false) {
  static const Compiler compiler(Bytes());
  Subject out;
  out.text = draft4 ? R"({"$schema":"http://json-schema.org/draft-04/schema#",)" + schema.substr(1)
                    : schema;
  out.schema = *json::Parse(schema);
  out.draft4 = draft4;
  out.exponents = exponents;
  out.canonical = canonical;
  JsonSchemaOptions options;
  options.canonical_spelling = canonical;
  options.allow_exponents = exponents;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  auto grammar = compiler.CompileJsonSchema(out.text, options);
  if (grammar.ok()) {
    out.grammar = *grammar;
  } else {
    EXPECT_EQ(grammar.error().code, ErrorCode::kUnsatisfiable)
        << out.text << ": " << grammar.error().ToString();
  }
  return out;
}

struct Counts {
  int accepted = 0, refused = 0, with_exponent = 0, dead_ends_looked_for = 0;
};

// Nothing that begins like `begun` and goes on with at most `depth` characters is valid.
void ExpectHopeless(const Subject& s, std::string& begun, int depth, bool array, Counts& counts) {
  ++counts.dead_ends_looked_for;
  const std::string whole = array && !begun.ends_with(']') ? begun + "]" : begun;
  ASSERT_FALSE(s.MustRead(whole)) << s.text << " refuses the beginning of " << whole;
  if (depth == 0) return;
  for (const char c : std::string_view("0135.e-")) {
    begun.push_back(c);
    ExpectHopeless(s, begun, depth - 1, array, counts);
    begun.pop_back();
  }
}

// Everything that must hold of one text and the path there.
void Check(const Subject& s, const std::string& text, bool array, int depth, Counts& counts) {
  const bool valid = s.Valid(text).value_or(false);
  if (!s.grammar) {
    ASSERT_FALSE(s.MustRead(text)) << s.text << " is called unsatisfiable: " << text;
    return;
  }
  State state = s.grammar->Start();
  for (size_t i = 0; i <= text.size(); ++i) {
    std::string begun = text.substr(0, i);
    if (state.accepting()) {
      ASSERT_TRUE(s.Valid(begun).value_or(false)) << s.text << " accepts " << begun;
    }
    const auto rest = state.CompletionBytes();
    ASSERT_TRUE(rest.has_value()) << s.text << " after " << begun;
    ASSERT_TRUE(s.Valid(begun + *rest).value_or(false))
        << s.text << " completes " << begun << " with " << *rest;
    const auto end = state.Advance(*rest);
    ASSERT_TRUE(end && end->accepting()) << s.text << " refuses its completion " << begun << *rest;
    if (i == text.size()) break;
    const auto mask = state.mask();
    const auto next = state.Advance(std::string_view(text).substr(i, 1));
    ASSERT_EQ(next.has_value(), mask->Allows(static_cast<unsigned char>(text[i])))
        << s.text << " after " << begun << " with " << text[i];
    if (!next) {
      ASSERT_FALSE(s.MustRead(text)) << s.text << " refuses " << text << " after " << begun;
      ++counts.refused;
      begun.push_back(text[i]);
      ExpectHopeless(s, begun, depth, array, counts);
      return;
    }
    state = *next;
  }
  ASSERT_TRUE(state.accepting() || !s.MustRead(text)) << s.text << " does not accept " << text;
  ++(state.accepting() ? counts.accepted : counts.refused);
  if (state.accepting() && text.find_first_of("eE") != std::string::npos) ++counts.with_exponent;
  ASSERT_TRUE(!state.accepting() || valid) << s.text << " accepts " << text;
}

// Any way through the masks leads on, and ends only in what is valid.
void Walk(const Subject& s, Random& random, int steps) {
  if (!s.grammar) return;
  // The parser reads no number beyond 10^4932.
  const auto fits = [&](const std::string& whole) {
    const auto value = json::Parse(whole);
    return value.ok() ? s.Valid(whole).value() : value.error().code == ErrorCode::kLimit;
  };
  State state = s.grammar->Start();
  std::string text;
  for (int i = 0; i < steps; ++i) {
    if (state.accepting()) {
      ASSERT_TRUE(fits(text)) << s.text << " accepts " << text;
    }
    const std::vector<TokenId> tokens = state.mask()->Tokens();
    ASSERT_FALSE(tokens.empty()) << s.text << ": a dead end after " << text;
    const TokenId token = tokens[random() % tokens.size()];
    if (s.grammar->vocabulary().is_end(token)) break;
    const auto next = state.Advance(token);
    ASSERT_TRUE(next.has_value()) << s.text << " after " << text;
    state = *next;
    text += s.grammar->vocabulary().bytes(token);
    const auto rest = state.CompletionBytes();
    ASSERT_TRUE(rest && fits(text + *rest)) << s.text << " after " << text;
  }
}

TEST(NumberCombinationTest, TheOracleCalculates) {
  EXPECT_EQ(Compare(Read("15e-1"), Read("1.50")), 0);
  EXPECT_EQ(Compare(Read("-0.0e7"), Read("0")), 0);
  EXPECT_LT(Compare(Read("-1e400"), Read("-9e399")), 0);
  EXPECT_GT(Compare(Read("1e-400"), Read("0")), 0);
  EXPECT_TRUE(IsMultiple(Read("1e300"), Read("7e-3")) == false);
  EXPECT_TRUE(IsMultiple(Read("2.1E+1"), Read("7e-3")));
  EXPECT_FALSE(IsMultiple(Read("15e-1"), Read("1")));
}

TEST(NumberCombinationTest, AgreesWithExactArithmetic) {
  Random random(41 + static_cast<unsigned>(Scale()));
  Counts counts;
  for (int i = 0; i < 800 * Scale() && !HasFatalFailure(); ++i) {
    const bool draft4 = i % 8 == 0;
    const bool exponents = i % 4 != 1;
    const Subject s =
        Make(Numbers(RandomSchema(random, 1 + static_cast<int>(random() % 2), draft4)), draft4,
             exponents, i % 8 >= 5);
    for (int n = 0; n < 25 && !HasFatalFailure(); ++n)
      Check(s, RandomText(random, exponents || n == 0), false, n < 3 ? 3 : 1, counts);
  }
  std::cout << counts.accepted << " accepted, " << counts.with_exponent << " with an exponent, "
            << counts.refused << " refused\n";
  EXPECT_GT(counts.with_exponent, 3000);
  EXPECT_GT(counts.refused, 2000);
}

TEST(NumberCombinationTest, NoDeadEnds) {
  Random random(42 + static_cast<unsigned>(Scale()));
  for (int i = 0; i < 800 * Scale() && !HasFatalFailure(); ++i) {
    const bool draft4 = i % 8 == 0;
    const Subject s =
        Make(Numbers(RandomSchema(random, 2, draft4)), draft4, i % 4 != 1, i % 3 == 0);
    for (int n = 0; n < 4 && !HasFatalFailure(); ++n) Walk(s, random, 40);
  }
}

std::string RandomArraySchema(Random& random) {
  std::string out = R"({"type":"array","maxItems":4,"items":)";
  out += random() % 2 == 0 ? R"({"type":"number"})"
                           : R"({"type":"number",)" + Condition(random, true).substr(1);
  if (out.find("\"type\":\"number\",\"type\"") != std::string::npos)
    out = R"({"type":"array","maxItems":4,"items":{"type":"integer"})";
  // Both at once are not always completed: look-ahead does not count what is left to contain.
  if (random() % 3 == 0) return out + R"(,"uniqueItems":true})";
  out += R"(,"contains":)" + RandomSchema(random, static_cast<int>(random() % 2), false);
  if (random() % 2 == 0) out += R"(,"minContains":)" + std::to_string(random() % 3);
  if (random() % 2 == 0) out += R"(,"maxContains":)" + std::to_string(1 + random() % 2);
  return out + "}";
}

TEST(NumberCombinationTest, Arrays) {
  Random random(43 + static_cast<unsigned>(Scale()));
  Counts counts;
  for (int i = 0; i < 300 * Scale() && !HasFatalFailure(); ++i) {
    const Subject s = Make(RandomArraySchema(random), false, i % 4 != 1);
    for (int n = 0; n < 12 && !HasFatalFailure(); ++n) {
      std::string text = "[";
      for (auto items = random() % 4; items > 0; --items)
        text += (text.size() > 1 ? "," : "") + RandomText(random, true);
      Check(s, text + "]", true, 1, counts);
    }
    Walk(s, random, 40);
  }
  std::cout << counts.accepted << " accepted, " << counts.with_exponent << " with an exponent, "
            << counts.refused << " refused\n";
  EXPECT_GT(counts.with_exponent, 300);
}

// What is remembered of a text that goes on and on is what makes a difference.
TEST(NumberCombinationTest, LongTexts) {
  const std::string zeros(5'000, '0'), ones(5'000, '1');
  const struct {
    const char* schema;
    std::string text;
    bool accepted;
  } cases[] = {
      {R"({"type":"number","not":{"const":5}})", "5." + zeros, false},
      {R"({"type":"number","not":{"const":5}})", "5" + zeros + "e-5000", false},
      {R"({"type":"number","not":{"const":5}})", "5" + zeros + "e-4999", true},
      {R"({"type":"number","not":{"const":5}})", "0.0" + zeros + "5e5002", false},
      {R"({"type":"number","not":{"enum":[5]},"multipleOf":7})", "5" + zeros, false},
      {R"({"type":"number","not":{"enum":[5]},"multipleOf":5})", "5" + zeros, true},
      {R"({"type":"number","oneOf":[{"type":"integer"},{"minimum":10}]})", "9." + zeros, true},
      {R"({"type":"number","oneOf":[{"type":"integer"},{"minimum":10}]})", "11" + zeros, false},
      {R"({"type":"number","oneOf":[{"type":"integer"},{"minimum":10}]})", ones + ".5", true},
  };
  for (const auto& c : cases) {
    const Subject s = Make(c.schema, false, true);
    State state = s.grammar->Start();
    for (size_t i = 0; i <= c.text.size(); ++i) {
      if (i % 1'237 == 0 || i == c.text.size()) {
        const auto rest = state.CompletionBytes();
        ASSERT_TRUE(rest.has_value()) << c.schema << " after " << i;
        const auto end = state.Advance(*rest);
        ASSERT_TRUE(end && end->accepting()) << c.schema << " after " << i << ": " << *rest;
      }
      if (i == c.text.size()) break;
      const auto next = state.Advance(std::string_view(c.text).substr(i, 1));
      if (!next) {
        EXPECT_FALSE(c.accepted) << c.schema << " refuses byte " << i;
        break;
      }
      state = *next;
      if (i + 1 == c.text.size()) {
        EXPECT_EQ(state.accepting(), c.accepted) << c.schema;
      }
    }
  }
}

// In canonical spelling an integer that is asked for as one has one text; a number may have more.
TEST(NumberCombinationTest, CanonicalIntegers) {
  const struct {
    const char* schema;
    std::vector<const char*> accepted, refused;
  } cases[] = {
      {R"({"type":"integer"})", {"0", "-1", "10"}, {"-0", "0.0", "1.0", "-", "-01"}},
      {R"({"type":"integer","minimum":0,"maximum":0})", {"0"}, {"-0", "-"}},
      {R"({"type":"number"})", {"0", "0.0", "1.0", "1.50", "-0.5"}, {"-0", "-0.0", "-0e5"}},
      {R"({})", {"0", "-0.5", "[0,-1]"}, {"-0", "-0.0", "[-0]", R"({"a":-0})"}},
      {R"({"type":"number","minimum":-1})", {"0", "-0.5", "-1"}, {"-0", "-0.00"}},
      {R"({"type":"number","not":{"multipleOf":0.5}})", {"-0.1"}, {"-0", "-0.0", "-0.5"}},
      {R"({"type":"number","not":{"minimum":1,"maximum":2}})", {"0.0", "-0.1"}, {"-0", "-0.0"}},
      {R"({"anyOf":[{"type":"integer","minimum":5},{"type":"integer","maximum":-5}]})",
       {"5", "-50"},
       {"5.0", "5.", "-5.0", "0", "-0"}},
      {R"({"oneOf":[{"type":"integer"},{"const":3}]})", {"4"}, {"3", "4.0", "3.0"}},
      {R"({"anyOf":[{"type":"integer"},{"type":"number","minimum":5}]})",
       {"4", "6.0", "5.5"},
       {"4.0", "4.5"}},
      {R"({"type":"number","not":{"type":"integer"}})", {"4.5"}, {"4", "4.0"}},
      {R"({"enum":[[1],[2]]})", {"[1]", "[2]"}, {"[1.0]", "[2.000]", "[1."}},
      {R"({"enum":[{"a":1},{"a":2.5}]})", {R"({"a":1})", R"({"a":2.5})"}, {R"({"a":1.0})"}},
      {R"({"oneOf":[{"type":"object","properties":{"v":{"const":1}},"required":["v"]},
                    {"type":"object","properties":{"v":{"const":2}},"required":["v"]}]})",
       {R"({"v":1})", R"({"v":2})"},
       {R"({"v":1.0})", R"({"v":2.)"}},
  };
  for (const auto& c : cases) {
    const Subject s = Make(c.schema, false, false, true);
    ASSERT_TRUE(s.grammar.has_value()) << c.schema;
    for (const char* text : c.accepted) {
      const auto state = s.grammar->Start().Advance(std::string_view(text));
      EXPECT_TRUE(state && state->accepting()) << c.schema << " " << text;
    }
    for (const char* text : c.refused) {
      const auto state = s.grammar->Start().Advance(std::string_view(text));
      EXPECT_FALSE(state && state->accepting()) << c.schema << " " << text;
    }
  }
}

// Every text of at most `depth` more characters that is accepted; on the way masks are what Advance
// takes, and something can follow.
void AcceptedBelow(const Subject& s, const State& state, std::string& text, int depth,
                   std::vector<std::string>& out) {
  if (state.accepting()) out.push_back(text);
  const auto rest = state.CompletionBytes();
  ASSERT_TRUE(rest && s.Valid(text + *rest).value_or(false)) << s.text << " after " << text;
  if (depth == 0) return;
  const auto mask = depth > 1 ? state.mask() : nullptr;
  for (const char c : std::string_view("-0125.e")) {
    const auto next = state.Advance(std::string_view(&c, 1));
    if (mask != nullptr) {
      ASSERT_EQ(next.has_value(), mask->Allows(static_cast<unsigned char>(c)))
          << s.text << " after " << text << " with " << c;
    }
    if (!next) continue;
    text.push_back(c);
    AcceptedBelow(s, *next, text, depth - 1, out);
    text.pop_back();
  }
}

// All numbers of at most four of those characters.
std::vector<std::string> ShortNumbers() {
  std::vector<std::string> out, begun = {""};
  for (int i = 0; i < 4; ++i) {
    std::vector<std::string> longer;
    for (const std::string& text : begun) {
      for (const char c : std::string_view("-0125.e")) longer.push_back(text + c);
    }
    begun = std::move(longer);
    std::ranges::copy_if(begun, std::back_inserter(out),
                         [](const std::string& text) { return json::Parse(text).ok(); });
  }
  return out;
}

// Canonical spelling over all short texts. Numbers may end with zeros, or have an exponent where
// those are on; but one that is an integer, or listed, whatever else is asked, has one text.
TEST(NumberCombinationTest, CanonicalTexts) {
  Random random(44 + static_cast<unsigned>(Scale()));
  const std::vector<std::string> all = ShortNumbers();
  int accepted = 0, zeros = 0;
  for (int i = 0; i < 400 * Scale() && !HasFatalFailure(); ++i) {
    const bool exponents = i % 4 == 0, number = i % 3 == 0;
    const char* const common = number       ? R"({"type":"number")"
                               : i % 3 == 1 ? R"({"type":"integer")"
                                            : R"({"type":"number","enum":[0,-1,1,0.5,-0.5,2,10])";
    const Subject s =
        Make(std::string(common) + R"(,"allOf":[)" +
                 RandomSchema(random, 1 + static_cast<int>(random() % 2), false) + "]}",
             false, exponents, true);
    std::vector<std::string> texts;
    std::string text;
    if (s.grammar) AcceptedBelow(s, s.grammar->Start(), text, 4, texts);
    std::ranges::sort(texts);
    for (const std::string& one : texts) {
      ASSERT_TRUE(s.Valid(one).value_or(false)) << s.text << " accepts " << one;
      ASSERT_TRUE(number || s.IsCanonical(one)) << s.text << " accepts " << one;
    }
    for (const std::string& one : all) {
      ASSERT_TRUE(!s.MustRead(one) || std::ranges::binary_search(texts, one))
          << s.text << " refuses " << one;
    }
    accepted += static_cast<int>(texts.size());
    zeros += std::ranges::binary_search(texts, "0") ? 1 : 0;
  }
  EXPECT_GT(accepted, 10'000);
  EXPECT_GT(zeros, 50);
}

// Around numbers: the sign of a zero is refused wherever conditions meet.
TEST(NumberCombinationTest, CanonicalZeros) {
  const struct {
    const char *schema, *accepted, *refused;
  } cases[] = {
      {R"({"type":"integer","minimum":0,"maximum":2,"not":{"enum":[1]}})", "0", "-"},
      {R"({"type":"integer","minimum":-2,"maximum":2,"not":{"enum":[1]}})", "-2", "-0"},
      {R"({"oneOf":[{"properties":{"t":{"const":0}},"required":["t"],"type":"object"},
                    {"properties":{"t":{"const":1}},"required":["t"],"type":"object"}]})",
       R"({"t":0})", R"({"t":-0)"},
      {R"({"oneOf":[{"properties":{"t":{"const":0}},"required":["t"],"type":"object"},
                    {"properties":{"t":{"const":-1}},"required":["t"],"type":"object"}]})",
       R"({"t":-1})", R"({"t":-0)"},
      {R"({"type":"array","items":{"type":"integer","minimum":0,"maximum":1},"uniqueItems":true})",
       "[1,0]", "[1,-"},
      {R"({"type":"array","items":{"type":"integer","minimum":-1,"maximum":1},
           "uniqueItems":true,"contains":{"const":1}})",
       "[1,-1]", "[1,-0"},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],
           "additionalProperties":false,
           "if":{"properties":{"a":{"const":0}}},"then":true,"else":{"maxProperties":1}})",
       R"({"a":0})", R"({"a":-0)"},
      {R"({"type":"object","properties":{"a":{"type":"number"}},"required":["a"],
           "additionalProperties":false,
           "if":{"properties":{"a":{"minimum":0}}},"then":{"maxProperties":1},"else":false})",
       R"({"a":0.0})", R"({"a":-0.0})"},
  };
  Random random(45 + static_cast<unsigned>(Scale()));
  for (const auto& c : cases) {
    for (const bool canonical : {true, false}) {
      const Subject s = Make(c.schema, false, false, canonical);
      ASSERT_TRUE(s.grammar.has_value()) << c.schema;
      const auto right = s.grammar->Start().Advance(std::string_view(c.accepted));
      EXPECT_TRUE(right && right->accepting()) << c.schema << " " << c.accepted;
      const auto wrong = s.grammar->Start().Advance(std::string_view(c.refused));
      EXPECT_EQ(wrong.has_value(), !canonical) << c.schema << " " << c.refused;
    }
    const Subject s = Make(c.schema, false, false, true);
    for (int n = 0; n < 40; ++n) {
      State state = s.grammar->Start();
      std::string text;
      for (int i = 0; i < 60; ++i) {
        const std::vector<TokenId> tokens = state.mask()->Tokens();
        ASSERT_FALSE(tokens.empty()) << s.text << ": a dead end after " << text;
        const TokenId token = tokens[random() % tokens.size()];
        if (s.grammar->vocabulary().is_end(token)) break;
        state = *state.Advance(token);
        text += s.grammar->vocabulary().bytes(token);
      }
      text += state.CompletionBytes().value_or("?");
      const auto value = json::Parse(text);
      ASSERT_TRUE(value.ok() && !HasMinusZero(*value)) << s.text << " writes " << text;
    }
  }
}

TEST(NumberCombinationTest, Examples) {
  const struct {
    const char *schema, *accepted, *refused;
  } cases[] = {
      {R"({"not":{"type":"integer"},"type":"number"})", "15e-1", "150e-1"},
      {R"({"not":{"type":"integer"},"type":"number"})", "0.15E1", "1.5E+2"},
      {R"({"type":"number","oneOf":[{"multipleOf":3},{"multipleOf":5}]})", "9e0000", "15e-0"},
      {R"({"anyOf":[{"maximum":-5,"type":"number"},{"minimum":5,"type":"number"}]})", "-5e+00",
       "-49e-1"},
      {R"({"type":"number","not":{"const":5}})", "5e-1", "0.5e1"},
      {R"({"type":"number","not":{"const":5}})", "5e9999999999999999999", "50000e-4"},
      {R"({"type":"number","if":{"minimum":100},"then":{"multipleOf":0.3}})", "3e2", "1e2"},
      {R"({"type":"array","items":{"type":"number"},"contains":{"const":7},"maxContains":1})",
       "[70e-1,0.7]", "[70e-1,0.7E1]"},
      {R"({"type":"array","items":{"enum":[1,20]},"uniqueItems":true})", "[10e-1,2e1]",
       "[10e-1,1]"},
      {R"({"type":"array","prefixItems":[{"type":"number"}],"contains":{"minimum":1e3},
           "unevaluatedItems":false})",
       "[1e3]", "[1e2]"},
  };
  for (const auto& c : cases) {
    const Subject s = Make(c.schema, false, true);
    ASSERT_TRUE(s.grammar.has_value()) << c.schema;
    const auto accepts = [&](const char* text) {
      const auto state = s.grammar->Start().Advance(std::string_view(text));
      return state && state->accepting();
    };
    EXPECT_TRUE(accepts(c.accepted)) << c.schema << " " << c.accepted;
    EXPECT_FALSE(accepts(c.refused)) << c.schema << " " << c.refused;
  }
}

}  // namespace
}  // namespace pawl
