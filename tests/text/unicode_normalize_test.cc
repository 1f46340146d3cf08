// The four normalization forms: against goldens of another implementation, known cases, and the
// laws that hold between them on every code point.
#include <gtest/gtest.h>

#include <random>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/text/normalizer.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using Form = NormalizationForm;

TEST(UnicodeNormalizeTest, Golden) {
  const auto text = ReadFile(SourceDir() + "/tests/data/tokenizers/normalization.json");
  ASSERT_TRUE(text.ok());
  const auto cases = json::Parse(*text);
  ASSERT_TRUE(cases.ok());
  ASSERT_GT(cases->items.size(), 200u);
  for (const json::Value& item : cases->items) {
    const std::string& source = item.items[0].text;
    EXPECT_EQ(NormalizeUnicode(source, Form::kNfc), item.items[1].text) << source;
    EXPECT_EQ(NormalizeUnicode(source, Form::kNfd), item.items[2].text) << source;
    EXPECT_EQ(NormalizeUnicode(source, Form::kNfkc), item.items[3].text) << source;
    EXPECT_EQ(NormalizeUnicode(source, Form::kNfkd), item.items[4].text) << source;
    EXPECT_EQ(LowercaseUnicode(source), item.items[5].text) << source;
  }
}

TEST(UnicodeNormalizeTest, KnownCases) {
  EXPECT_EQ(NormalizeUnicode("e\u0301", Form::kNfc), "\u00E9");
  EXPECT_EQ(NormalizeUnicode("\u00E9", Form::kNfd), "e\u0301");
  EXPECT_EQ(NormalizeUnicode("\u1112\u1161\u11AB", Form::kNfc), "\uD55C");
  EXPECT_EQ(NormalizeUnicode("\uD55C", Form::kNfd), "\u1112\u1161\u11AB");
  EXPECT_EQ(NormalizeUnicode("\u0958", Form::kNfc), "\u0915\u093C");  // excluded from composition
  EXPECT_EQ(NormalizeUnicode("\u212B", Form::kNfc), "\u00C5");        // singleton
  EXPECT_EQ(NormalizeUnicode("\uFB01\u00B2", Form::kNfkc), "fi2");
  EXPECT_EQ(NormalizeUnicode("\u0DD9\u0DCF\u0DCA", Form::kNfc),
            "\u0DDD");  // starter, starter, mark
  EXPECT_EQ(NormalizeUnicode("q\u0307\u0323", Form::kNfc), "q\u0323\u0307");
  EXPECT_EQ(LowercaseUnicode("\u0130\u03A3"), "i\u0307\u03C3");
}

TEST(UnicodeNormalizeTest, BytesThatAreNotUtf8Stay) {
  EXPECT_EQ(NormalizeUnicode("e\xFF\u0301", Form::kNfc), "e\xFF\u0301");
  EXPECT_EQ(NormalizeUnicode("\xC3", Form::kNfc), "\xC3");
  EXPECT_EQ(LowercaseUnicode("A\xFFZ"), "a\xFFz");
}

// The forms are idempotent and agree with each other, on every code point and on random strings.
TEST(UnicodeNormalizeTest, FormsAreConsistent) {
  std::mt19937 random(11);
  const auto check = [](const std::string& s) {
    const std::string nfc = NormalizeUnicode(s, Form::kNfc), nfd = NormalizeUnicode(s, Form::kNfd);
    const std::string nfkc = NormalizeUnicode(s, Form::kNfkc),
                      nfkd = NormalizeUnicode(s, Form::kNfkd);
    ASSERT_EQ(NormalizeUnicode(nfd, Form::kNfc), nfc);
    ASSERT_EQ(NormalizeUnicode(nfc, Form::kNfd), nfd);
    ASSERT_EQ(NormalizeUnicode(nfc, Form::kNfc), nfc);
    ASSERT_EQ(NormalizeUnicode(nfd, Form::kNfd), nfd);
    ASSERT_EQ(NormalizeUnicode(nfkd, Form::kNfkc), nfkc);
    ASSERT_EQ(NormalizeUnicode(nfc, Form::kNfkd), nfkd);
    ASSERT_EQ(NormalizeUnicode(nfkc, Form::kNfd), nfkd);
  };
  for (char32_t c = 0; c < 0x30000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    if (c > 0x3400 && c < 0xF000 && c % 64 != 0) continue;  // ideographs and Hangul: a sample
    std::string s;
    AppendUtf8(c, s);
    check(s);
  }
  for (int round = 0; round < 3000; ++round) {
    std::string s;
    for (size_t n = random() % 12; n > 0; --n) {
      static constexpr char32_t kBases[] = {'a',   'o',   0x1100, 0x1161, 0x11A8,
                                            0x9C7, 0x9BE, 0xDD9,  0xAC00, 0x915};
      AppendUtf8(random() % 2 ? kBases[random() % std::size(kBases)] : 0x300 + random() % 0x60, s);
    }
    check(s);
  }
}

}  // namespace
}  // namespace pawl
