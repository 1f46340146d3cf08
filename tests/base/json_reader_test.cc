// Typed reads of JSON: what they take, what they leave as it was, and the place and words of every
// error.
#include "src/base/json_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {
namespace {

// The error of what `read` does to a document.
std::string ErrorOf(std::string_view text, const std::function<void(const JsonReader&)>& read) {
  const auto value = json::Parse(text);
  EXPECT_TRUE(value.ok()) << text;
  const JsonReader in(*value);
  read(in);
  return in.ok() ? "" : in.error().ToString();
}

TEST(JsonReaderTest, ReadsWhatIsThereAndLeavesTheRest) {
  const auto value =
      json::Parse(R"({"n": 2.0, "s": "x", "b": true, "f": 1e-3, "null": null, "l": ["a", "b"],
                      "o": {"k": [3, {"deep": 4}]}})");
  ASSERT_TRUE(value.ok());
  const JsonReader in(*value, "FILE#");
  int n = 0, absent = 7;
  int64_t big = 0;
  std::string s = "old";
  bool b = false;
  float f = 0;
  std::vector<std::string> list;
  EXPECT_TRUE(in["n"].Read(n, 0, 5) && in["s"].Read(s) && in["b"].Read(b) && in["f"].Read(f, 0, 1));
  EXPECT_TRUE(in["o"]["k"].Item(1)["deep"].Read(big));
  EXPECT_TRUE(in["l"].ReadStrings(list, 2));
  EXPECT_EQ(std::pair(n, s), std::pair(2, std::string("x")));
  EXPECT_TRUE(b);
  EXPECT_FLOAT_EQ(f, 1e-3f);
  EXPECT_EQ(big, 4);
  EXPECT_EQ(list, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(in["s"].ReadStrings(list, 2));
  EXPECT_EQ(list, std::vector<std::string>{"x"});

  EXPECT_FALSE(in["m"].Read(absent, 0, 5));
  EXPECT_FALSE(in["null"].Read(absent, 0, 5));
  EXPECT_FALSE(in["s"]["of no object"].Read(absent, 0, 5));
  EXPECT_FALSE(in["l"].Item(2).Read(s));
  EXPECT_EQ(absent, 7);
  EXPECT_EQ(in["null"].String("d"), "d");
  EXPECT_EQ(in["m"].Whole(1, 9, 3), 3);
  EXPECT_EQ(in["m"].Positive(0.5), 0.5);
  EXPECT_TRUE(in["m"].Bool(true));
  EXPECT_FALSE(in["null"].OptionalObject().present());
  EXPECT_EQ(in["o"]["k"].Item(1).place(), "FILE#/o/k/1");
  EXPECT_EQ(in["a/b~"].place(), "FILE#/a~1b~0");
  size_t items = 0;
  for (const JsonReader item : in["l"].items()) items += item.IsString();
  EXPECT_EQ(items, 2u);
  EXPECT_TRUE(in.ok());
}

TEST(JsonReaderTest, ErrorsNameThePlaceAndWhatWasExpected) {
  const std::string text = R"({"n": 6, "s": "x", "l": ["a", 7], "f": 1.5, "null": null, "o": {}})";
  const std::pair<std::function<void(const JsonReader&)>, std::string> cases[] = {
      {[](auto& in) { in["n"].Whole(0, 5); }, "#/n: must be a whole number from 0 to 5, not 6"},
      {[](auto& in) { in["n"].Whole(7); }, "#/n: must be a whole number of at least 7, not 6"},
      {[](auto& in) { in["f"].Whole(); }, "#/f: must be a whole number, not 1.5"},
      {[](auto& in) { in["s"].Whole(); }, "#/s: must be a whole number, not string"},
      {[](auto& in) { in["f"].Number(-2, 0.01); },
       "#/f: must be a number from -2 to 0.01, not 1.5"},
      {[](auto& in) { in["o"].Number(); }, "#/o: must be a finite number, not object"},
      {[](auto& in) { in["m"].Positive(); }, "#/m: is missing, must be a finite number"},
      {[](auto& in) { in["n"].String(); }, "#/n: must be a string, not number"},
      {[](auto& in) { in["m"].String(); }, "#/m: is missing, must be a string"},
      {[](auto& in) { in["null"].String(); }, "#/null: must be a string, not null"},
      {[](auto& in) { in["n"].Bool(true); }, "#/n: must be true or false, not number"},
      {[](auto& in) { in["n"].OptionalArray(); }, "#/n: must be an array, not number"},
      {[](auto& in) { in["m"].Object(); }, "#/m: is missing, must be an object"},
      {[](auto& in) { in.Array(); }, "#: must be an array, not object"},
      {[](auto& in) { in["o"]["p"].Array(); }, "#/o/p: is missing, must be an array"},
      {[](auto& in) { in["l"].Item(2).Bool(); }, "#/l/2: is missing, must be true or false"},
      {[](auto& in) {
         std::vector<std::string> list;
         in["l"].ReadStrings(list, 9);
         EXPECT_TRUE(list.empty());
       },
       "#/l/1: must be a string, not number"},
      {[](auto& in) {
         in.OnlyMembers({"n", "s"});
       },
       "#/l: unknown member; known are n, s"},
      {[](auto& in) { in["n"].OnlyMembers({"n"}); }, "#/n: must be an object, not number"},
  };
  for (const auto& [read, message] : cases) EXPECT_EQ(ErrorOf(text, read), message);
}

// One mistake has one message, and what is read behind it ends.
TEST(JsonReaderTest, AfterAnErrorEverythingIsAbsent) {
  const auto value = json::Parse(R"({"l": [1, "a", 2], "n": 5})");
  ASSERT_TRUE(value.ok());
  const JsonReader in(*value);
  size_t seen = 0;
  for (const JsonReader item : in["l"].Array().items()) {
    ++seen;
    item.Whole();
  }
  EXPECT_EQ(seen, 2u);
  int n = 1;
  EXPECT_FALSE(in["n"].Read(n, 0, 9));
  in["n"].String();
  EXPECT_EQ(n, 1);
  EXPECT_EQ(in.status().error().place, "#/l/1");
  EXPECT_TRUE(in.Unread().empty());
}

// What is returned after an error can be divided by where the bounds say so.
TEST(JsonReaderTest, WrongNumbersReadAsOneWithinTheBounds) {
  const auto value = json::Parse(R"({"n": "x"})");
  const JsonReader in(*value);
  EXPECT_EQ(in["n"].Whole(1, 9), 1);
  EXPECT_EQ(JsonReader(*value)["n"].Whole(-9, -2), -2);
  EXPECT_EQ(JsonReader(*value)["n"].Number(0.5, 2), 0.5);
  EXPECT_GT(JsonReader(*value)["n"].Positive(), 0);
}

TEST(JsonReaderTest, UnreadMembers) {
  const auto value = json::Parse(R"({"a": 1, "b": null, "c": {"d": 1, "e": 2}, "f": 3, "g": 4})");
  ASSERT_TRUE(value.ok());
  const JsonReader in(*value);
  (void)in["a"];
  in.Ignore({"g"});
  EXPECT_EQ(in["c"]["e"].Whole(), 2);
  const auto names = [](const std::vector<const json::Member*>& members) {
    std::string out;
    for (const json::Member* member : members) out += member->first;
    return out;
  };
  EXPECT_EQ(names(in.Unread()), "f");
  EXPECT_EQ(names(in["c"].Unread()), "d");
  EXPECT_EQ(names(JsonReader(*value).Unread(2)), "ac");
}

TEST(JsonReaderTest, Numbers) {
  const auto whole = [](std::string_view text) { return json::WholeOf(*json::Parse(text)); };
  EXPECT_EQ(whole("2.0"), 2);
  EXPECT_EQ(whole("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"1.5", "1e30", "9223372036854775808", "true", "\"1\"", "1e400"}) {
    EXPECT_EQ(whole(text), std::nullopt) << text;
  }
  EXPECT_EQ(json::NumberOf(*json::Parse("1e400")), std::nullopt);
  EXPECT_EQ(json::Shown(*json::Parse(std::string(400, '7'))).size(), 50u);
}

}  // namespace
}  // namespace pawl
