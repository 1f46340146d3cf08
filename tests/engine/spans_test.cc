// Where in a text the values of a record are found, by examples.
#include "src/engine/spans.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace pawl {
namespace {

std::map<std::string, std::pair<size_t, size_t>> Find(const std::string& record,
                                                      const std::string& text) {
  std::map<std::string, std::pair<size_t, size_t>> out;
  for (const Span& span : FindSpans(*json::Parse(record), text)) {
    out[span.pointer] = {span.begin, span.end};
  }
  return out;
}

TEST(SpansTest, ValuesAreFoundWhereTheyStandAlone) {
  const std::string text = "Müller paid 12.5 of 312 on 12; total 12, an island: Ann";
  const auto spans = Find(R"({"who":"Müller","n":12,"m":12,"p":12.5,"x":"an","a":"Ann","no":"zz",
    "t":true,"l":[{"v":312}]})",
                          text);
  EXPECT_EQ(spans.at("/who"), (std::pair<size_t, size_t>{0, 6}));
  EXPECT_EQ(spans.at("/n"), (std::pair<size_t, size_t>{27, 29}));
  EXPECT_EQ(spans.at("/m"), (std::pair<size_t, size_t>{37, 39}));
  EXPECT_EQ(spans.at("/p"), (std::pair<size_t, size_t>{12, 16}));  // behind nothing: from the start
  EXPECT_EQ(spans.at("/x"), (std::pair<size_t, size_t>{41, 43}));
  EXPECT_EQ(spans.at("/a"), (std::pair<size_t, size_t>{52, 55}));
  EXPECT_EQ(spans.at("/l/0/v"), (std::pair<size_t, size_t>{20, 23}));
  EXPECT_EQ(spans.count("/no") + spans.count("/t"), 0u);
}

// Bug: a value whose white space or spelling differs from the text had no place.
TEST(SpansTest, OtherSpellingsHaveTheirPlace) {
  const std::string text = "Acme\n  Corp owes 1.240,50 since March 5, 2024";
  const auto spans = Find(R"({"who":"Acme Corp","sum":1240.5,"day":"2024-03-05"})", text);
  EXPECT_EQ(spans.at("/who"), (std::pair<size_t, size_t>{0, 11}));
  EXPECT_EQ(spans.at("/sum"), (std::pair<size_t, size_t>{17, 25}));
  EXPECT_EQ(spans.at("/day"), (std::pair<size_t, size_t>{32, 45}));
}

TEST(SpansTest, BytesCountWhatCharactersTake) {
  const std::vector<Span> spans = FindSpans(*json::Parse(R"({"who":"Zoë","n":7})"), "für Zoë: 7");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(std::pair(spans[0].begin_byte, spans[0].end_byte), (std::pair<size_t, size_t>{5, 9}));
  EXPECT_EQ(std::pair(spans[1].begin_byte, spans[1].end_byte), (std::pair<size_t, size_t>{11, 12}));
}

}  // namespace
}  // namespace pawl
