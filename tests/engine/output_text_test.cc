// Texts of outputs: bytes become characters, and escapes of JSON become texts, however they are
// cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "src/base/json.h"
#include "src/engine/call_arguments.h"
#include "src/engine/output_parser.h"
#include "src/engine/output_plan.h"

namespace pawl {
namespace {

TEST(OutputParserTest, NeverHalfACharacter) {
  const std::string text = "aé€😀\xFFz\xC3";
  OutputPlan plan;
  OutputParser parser(plan);
  std::string all;
  for (const char c : text) {
    for (const Delta& delta : parser.Feed(std::string(1, c))) {
      EXPECT_TRUE(json::Parse(json::Quote(delta.text)).ok()) << delta.text;
      all += delta.text;
    }
  }
  for (const Delta& delta : parser.Finish()) all += delta.text;
  EXPECT_EQ(all, "aé€😀\xEF\xBF\xBDz\xEF\xBF\xBD");
}

// The bytes as a whole, from Unicode's table of well-formed sequences (3.9, table 3-7): the longest
// beginning of one that stands at each place is a character or, where it is none, one U+FFFD.
std::string DecodedWhole(std::string_view bytes) {
  struct Row {
    int first_low, first_high, second_low, second_high, length;
  };
  static constexpr Row kRows[] = {
      {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
      {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
      {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
  const auto in = [](char c, int low, int high) {
    const int byte = static_cast<unsigned char>(c);
    return byte >= low && byte <= high;
  };
  std::string out;
  while (!bytes.empty()) {
    size_t good = 0;
    bool whole = false;
    for (const Row& row : kRows) {
      if (!in(bytes[0], row.first_low, row.first_high)) continue;
      const auto length = static_cast<size_t>(row.length);
      for (good = 1; good < std::min(length, bytes.size()); ++good) {
        const bool second = good == 1;
        if (!in(bytes[good], second ? row.second_low : 0x80, second ? row.second_high : 0xBF))
          break;
      }
      whole = good == length;
    }
    const size_t taken = std::max<size_t>(1, good);
    out += whole ? bytes.substr(0, taken) : std::string_view("\xEF\xBF\xBD");
    bytes.remove_prefix(taken);
  }
  return out;
}

// Bytes of characters of all lengths, some of them lost, doubled or changed.
std::string BrokenBytes(std::mt19937& random) {
  static constexpr std::string_view kSome[] = {"a",
                                               "\xC3\xA9",
                                               "\xE6\xBC\xA2",
                                               "\xF0\x9F\x98\x80",
                                               "\xE0\x80\x80",
                                               "\xED\xA0\x80",
                                               "\xF4\x90\x80\x80"};
  std::string text;
  for (int i = 0; i < 6; ++i) {
    std::string part(kSome[random() % std::size(kSome)]);
    switch (random() % 4) {
      case 0:
        part.resize(random() % part.size());
        break;
      case 1:
        part.insert(random() % part.size(), 1, static_cast<char>(random() % 256));
        break;
      default:
        break;
    }
    text += part;
  }
  return text;
}

TEST(Utf8GateTest, CutsDoNotShow) {
  std::mt19937 random(34);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = BrokenBytes(random);
    const std::string whole = DecodedWhole(text);
    for (int cuts = 0; cuts < 20; ++cuts) {
      Utf8Gate gate;
      std::string pieces;
      for (size_t at = 0; at < text.size();) {
        const size_t length = cuts == 0 ? text.size() : cuts == 1 ? 1 : random() % 4;
        pieces += gate.Feed(std::string_view(text).substr(at, length));
        at += length;
      }
      pieces += gate.Finish();
      ASSERT_EQ(pieces, whole) << json::Quote(DecodedWhole(text)) << " cut no. " << cuts;
      EXPECT_EQ(gate.Finish(), "");
    }
  }
}

// What the escapes at the front become, and how many bytes are taken; 0: more bytes are asked for.
std::string Unescaped(std::string_view text, bool at_end, size_t taken) {
  std::string out;
  EXPECT_EQ(UnescapeJson(text, at_end, out), taken) << text;
  return out;
}

TEST(UnescapeJsonTest, EscapesAndTheirCuts) {
  EXPECT_EQ(Unescaped("\\nx", false, 2), "\n");
  EXPECT_EQ(Unescaped("\\\"x", false, 2), "\"");
  EXPECT_EQ(Unescaped("\\u00e9x", false, 6), "é");
  EXPECT_EQ(Unescaped("\\", false, 0), "");
  EXPECT_EQ(Unescaped("\\u00e", false, 0), "");
  // RFC 8259, section 7: a pair of surrogates is one character. Half of a pair is none.
  EXPECT_EQ(Unescaped("\\ud83d\\ude00", false, 12), "😀");
  EXPECT_EQ(Unescaped("\\ud83d\\ude", false, 0), "");
  EXPECT_EQ(Unescaped("\\ud83d\\ude", true, 6), "\xEF\xBF\xBD");
  EXPECT_EQ(Unescaped("\\ud83d\\u0041", false, 6), "\xEF\xBF\xBD");
  EXPECT_EQ(Unescaped("\\ude00\\ude00", false, 6), "\xEF\xBF\xBD");
  EXPECT_EQ(Unescaped("\\ud7ffxxxxxx", false, 6), "\xED\x9F\xBF");
  EXPECT_EQ(Unescaped("\\ue000xxxxxx", false, 6), "\xEE\x80\x80");
}

}  // namespace
}  // namespace pawl
