// The formats: own tables, and the optional format cases of the JSON Schema test suite when it is
// there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "grammar/regex/formats.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "tests/grammar/regex_test_util.h"

namespace pawl {
namespace {

using regex_test::Decode;
using regex_test::MatchesByDfa;

struct FormatCase {
  const char* format;
  std::vector<std::string> valid;
  std::vector<std::string> invalid;
};

TEST(Formats, Tables) {
  const std::vector<FormatCase> cases = {
      {"date",
       {"2024-02-29", "2000-02-29", "2023-12-31"},
       {"2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", ""}},
      {"time",
       {"23:59:60Z", "00:00:00.5+01:30", "01:29:60+01:30", "15:59:60-08:00"},
       {"23:58:60Z", "24:00:00Z", "12:00:00", "15:59:60-07:00"}},
      {"date-time",
       {"2024-02-29T12:00:00Z", "2024-01-01t00:00:00z"},
       {"2024-02-30T12:00:00Z", "2024-01-01 00:00:00Z"}},
      {"duration",
       {"P1Y2M3DT4H5M6S", "PT5M", "P3W", "P1M"},
       {"P", "PT", "P1W2D", "P1D1M", "P1Y1D"}},
      {"email",
       {"a.b@example.com", "\"a b\"@[127.0.0.1]"},
       {"a..b@example.com", "a@", "@b", "a@b@c"}},
      {"idn-email", {"\xE4\xB8\xAD@\xE4\xB8\xAD.com"}, {"a"}},
      {"hostname",
       {"example.com", std::string(63, 'a')},
       {std::string(64, 'a'), "-a", "a-.b", "a..b", ""}},
      {"idn-hostname",
       {"l\xC2\xB7l.com",
        "b\xC3\xBC"
        "cher.example"},
       {"\xC2\xB7l", "a--", ""}},
      {"ipv4", {"127.0.0.1", "255.255.255.255"}, {"256.0.0.1", "01.2.3.4", "1.2.3"}},
      {"ipv6",
       {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "1::8"},
       {":", ":::", "1:2:3:4:5:6:7", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", "::1.2.3"}},
      {"uri",
       {"http://a.b/c?d#e", "urn:x:y", "a:", "http://[::1]:80/"},
       {"a/b", "http://a b", "//a", "http://%zz"}},
      {"uri-reference", {"", "a/b", "//a", "#x", "http://a"}, {"a b", "%", "\\"}},
      {"iri", {"http://\xC3\xA9.example/\xE4\xB8\xAD"}, {"\xC3\xA9", "http://a b"}},
      {"iri-reference", {"\xC3\xA9"}, {" "}},
      {"uri-template", {"/a/{b}{?c,d*}", "{+x:3}"}, {"{", "{}", "{a:0}", "a b"}},
      {"uuid", {"2EB8AA08-AA98-11EA-B4AA-73B441D16380"}, {"2EB8AA08AA9811EAB4AA73B441D16380", ""}},
      {"json-pointer", {"", "/a/~0~1", "/"}, {"a", "/~", "/~2"}},
      {"relative-json-pointer", {"0", "1/a", "2#"}, {"/a", "01", "-1", "1##"}},
      {"regex",
       {"", "^[a-z]+(?:x|y){2,10}?$", "(a(b(c(d))))", "\\u{1F600}\\p{Lu}", "[^\\]-]", "a|b|",
        "(?=a)(?<!b)", "\\0", "a\\0\\0b", "\\0*9", "\\0{2}9", "(\\0)9", "[9\\0]", "[^\\0\\0a9-]"},
       {"\\09", "\\0\\09", "(\\09)", "[\\09]", "[a\\00-5]", "(", "a)", "[", "[z-a]", "a{3,2}", "*",
        "\\", "a**", "(?", "^*", "\\a"}},
      {"byte",
       {"", "YQ==", "YWI=", "YWJj",
        "-----BEGIN CERTIFICATE-----\nMIID\nZ+/\n-----END CERTIFICATE-----",
        "-----BEGIN EC PRIVATE KEY-----\r\nYWI=\r\n-----END EC PRIVATE KEY-----\r\n",
        "-----BEGIN X.509 CERTIFICATE-----\n-----END X.509 CERTIFICATE-----\n"},
       {"Y", "YQ=", "Y=Q=", "YW J", "-----BEGIN CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nMIID\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nYQ==\nYQ==\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nYWJj-----END CERTIFICATE-----",
        "-----BEGIN X1509 CERTIFICATE-----\n-----END X1509 CERTIFICATE-----",
        "-----BEGIN LETTER-----\nYWJj\n-----END LETTER-----",
        "-----BEGIN CERTIFICATE-----\nMI D\n-----END CERTIFICATE-----"}},
      {"binary", {"", "anything\n"}, {}},
  };
  EXPECT_EQ(cases.size(), KnownFormats().size());
  for (const FormatCase& c : cases) {
    ASSERT_TRUE(IsKnownFormat(c.format));
    auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = FormatRegex(*arena, c.format);
    ASSERT_TRUE(id.ok()) << c.format << ": " << id.error().ToString();
    RegexDfa dfa(arena, *id);
    for (const std::string& text : c.valid) {
      EXPECT_TRUE(MatchesByDfa(dfa, Decode(text))) << c.format << ": " << text;
    }
    for (const std::string& text : c.invalid) {
      EXPECT_FALSE(MatchesByDfa(dfa, Decode(text))) << c.format << ": " << text;
    }
    EXPECT_FALSE(dfa.overflow());
    // Looking ahead would make a search for emptiness of each step.
    EXPECT_TRUE(c.format != std::string_view("regex") || !arena->HasBoolean(*id));
  }
}

TEST(Formats, UnknownNameIsUnsupported) {
  RegexArena arena;
  EXPECT_FALSE(IsKnownFormat("colour"));
  const Result<ReId> id = FormatRegex(arena, "colour");
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, ErrorCode::kUnsupported);
}

// Every string that "regex" accepts must be a pattern: sampled by walking the automaton.
TEST(Formats, RegexFormatAcceptsOnlyPatterns) {
  auto arena = std::make_shared<RegexArena>();
  const Result<ReId> id = FormatRegex(*arena, "regex");
  ASSERT_TRUE(id.ok());
  RegexDfa dfa(arena, *id);
  uint32_t random = 12345;
  const auto below = [&](uint32_t n) {
    return (random = random * 1664525 + 1013904223) / 65536 % n;
  };
  int checked = 0;
  for (int round = 0; round < 600; ++round) {
    std::string text;
    uint32_t state = dfa.Start();
    for (int i = 0; i < 60; ++i) {
      if (dfa.Accepting(state) && below(8) == 0) break;
      const int cls = static_cast<int>(below(static_cast<uint32_t>(dfa.classes())));
      const uint32_t next = dfa.Next(state, cls);
      if (next == RegexDfa::kDead) continue;
      AppendUtf8(dfa.Representative(cls), text);
      state = next;
    }
    if (!dfa.Accepting(state)) continue;
    ++checked;
    RegexArena other;
    const Result<ReId> parsed = ParseEcma(other, text);
    if (!parsed.ok()) {
      EXPECT_NE(parsed.error().code, ErrorCode::kInvalid)
          << text << ": " << parsed.error().ToString();
    }
  }
  EXPECT_GT(checked, 100);
}

// Of each file at least this share must be answered as the suite says; docs/regex.md explains the
// rest.
TEST(Formats, JsonSchemaTestSuite) {
#ifdef PAWL_DATA_DIR
  std::string folder = PAWL_DATA_DIR;
#else
  std::string folder;
#endif
  if (const char* named = std::getenv("PAWL_DATA_DIR")) folder = named;
  folder += "/json-schema-test-suite/tests/draft2020-12/optional/format";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "PAWL_DATA_DIR does not name a folder with json-schema-test-suite";
  }
  const std::map<std::string, double> least = {{"hostname", 0.6}, {"idn-hostname", 0.95}};
  for (const std::string_view format : KnownFormats()) {
    const std::string path = folder + "/" + std::string(format) + ".json";
    if (!std::filesystem::exists(path)) continue;
    const Result<std::string> text = ReadFile(path);
    ASSERT_TRUE(text.ok());
    const Result<json::Value> groups = json::Parse(*text);
    ASSERT_TRUE(groups.ok()) << path;
    auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = FormatRegex(*arena, format);
    ASSERT_TRUE(id.ok());
    RegexDfa dfa(arena, *id);
    int right = 0, all = 0;
    std::string wrong;
    for (const json::Value& group : groups->items) {
      for (const json::Value& test : group.Find("tests")->items) {
        const json::Value& data = *test.Find("data");
        if (data.type != json::Type::kString) continue;
        ++all;
        const bool expected = test.Find("valid")->type == json::Type::kTrue;
        if (MatchesByDfa(dfa, Decode(data.text)) == expected) {
          ++right;
        } else {
          wrong += "\n  " + json::Quote(data.text) + " " + test.Find("description")->text;
        }
      }
    }
    const auto exception = least.find(std::string(format));
    const double share = exception == least.end() ? 1.0 : exception->second;
    std::printf("%-22s %d of %d%s\n", std::string(format).c_str(), right, all,
                right == all ? "" : "  (differs)");
    EXPECT_GE(right, share * all) << format << wrong;
    if (right < all) RecordProperty(std::string(format), wrong);
    EXPECT_FALSE(dfa.overflow()) << format;
  }
}

}  // namespace
}  // namespace pawl
