// Which fields of a record are preferred from the text, and by how much.
#include "src/engine/copied_fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "pawl/engine.h"

namespace pawl {
namespace {

constexpr const char* kContact =
    R"({"type":"object","properties":{"name":{"type":"string"},"note":{"type":"string"},)"
    R"("mail":{"type":"string","format":"email"},"day":{"type":"string","format":"date"},)"
    R"("codes":{"type":"array","items":{"$ref":"#/$defs/code"}}},)"
    R"("$defs":{"code":{"anyOf":[{"type":"string","pattern":"^[A-Z]{3}[0-9]{4}$"},{"type":"null"}]}}})";

ExtractInput Contact(std::optional<double> prefer_text = {}) {
  ExtractInput input;
  input.text = "Ann Lee, ann@example.org, codes ABC1234";
  input.schema = kContact;
  input.prefer_text = prefer_text;
  return input;
}

void ExpectNats(const PreferenceNats& found, const PreferenceNats& expected) {
  EXPECT_EQ(found.begin, expected.begin);
  EXPECT_EQ(found.inside, expected.inside);
}

TEST(CopiedFieldsTest, PatternsAndUnlikelyFormatsAreLikelyToBeCopied) {
  const TextPreference preference = PreferenceOf(Contact());
  ExpectNats(preference.nats, kPreferText);
  ASSERT_EQ(preference.by_field.size(), 2u);
  ExpectNats(preference.by_field.at("/mail"), kPreferLikelyText);
  ExpectNats(preference.by_field.at("/codes/*"), kPreferLikelyText);
}

TEST(CopiedFieldsTest, ANumberOfTheCallerCountsForAllFields) {
  // Inside a value the preference is never less than the default's.
  const TextPreference low = PreferenceOf(Contact(2.5));
  ExpectNats(low.nats, {2.5F, kPreferText.inside});
  ExpectNats(low.by_field.at("/mail"), {2.5F, kPreferText.inside});
  const TextPreference high = PreferenceOf(Contact(40));
  ExpectNats(high.nats, {40, 40});
  ExpectNats(high.by_field.at("/codes/*"), {40, 40});
  EXPECT_FALSE(PreferenceOf(Contact(0)).any());
}

TEST(CopiedFieldsTest, ExamplesAreEvidence) {
  ExtractInput input = Contact();
  input.examples = {
      {"Call Bob Ray on 3 May.", R"({"name":"Bob Ray","note":"call","mail":"none"})"},
      {"Eve Fox \n wrote.", R"({"name":"Eve Fox","note":"wrote"})"},
  };
  const TextPreference preference = PreferenceOf(input);
  ExpectNats(preference.by_field.at("/name"), kPreferLikelyText);
  // "call" is another spelling of "Call", and "none" stands in no text, so the format does not
  // count.
  ExpectNats(preference.by_field.at("/note"), PreferenceNats());
  ExpectNats(preference.by_field.at("/mail"), PreferenceNats());
}

TEST(CopiedFieldsTest, BoundsOfTheNumber) {
  EXPECT_TRUE(CheckPreferText(Contact()).ok());
  EXPECT_TRUE(CheckPreferText(Contact(0)).ok());
  EXPECT_TRUE(CheckPreferText(Contact(kMostPreferText)).ok());
  for (const double wrong :
       {-0.5, std::nextafter(kMostPreferText, 2000.0), std::numeric_limits<double>::quiet_NaN()}) {
    const Status status = CheckPreferText(Contact(wrong));
    ASSERT_FALSE(status.ok()) << wrong;
    EXPECT_EQ(status.error().place, "prefer_text");
  }
  EXPECT_NE(CheckPreferText(Contact(-0.5)).error().message.find("not -0.5"), std::string::npos);
}

}  // namespace
}  // namespace pawl
