// Scores of records: cases, and pairs of items against all orders of them.
#include "src/eval/field_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace pawl::eval {
namespace {

json::Value Parsed(const std::string& text) {
  Result<json::Value> value = json::Parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *std::move(value) : json::Value();
}

RecordScore Score(const std::string& right, const std::string& written,
                  const std::string& schema = "{}") {
  const Result<FieldMetrics> metrics = FieldMetrics::Of(Parsed(schema));
  EXPECT_TRUE(metrics.ok()) << metrics.error().ToString();
  return ScoreRecord(Parsed(right), Parsed(written), *metrics);
}

TEST(FieldScoresTest, NullAndAMissingKeyAreTheSame) {
  const RecordScore score = Score(R"({"a": null, "b": 1, "c": null})", R"({"b": 1.0, "c": "x"})");
  EXPECT_EQ(score.fields.at("a").right_nulls, 1);
  EXPECT_EQ(score.fields.at("b").right, 1);
  EXPECT_EQ(score.fields.at("c").right_nulls, 0);
  EXPECT_EQ(score.right(), 2);
  EXPECT_EQ(score.scored(), 3);
  EXPECT_FALSE(score.whole);
}

// As many verdicts are right as fields are, and each says what was compared with what.
TEST(FieldScoresTest, VerdictsSayWhatWasCompared) {
  const json::Value right = Parsed(
      R"({"a": 1, "b": null, "gone": "x", "tags": ["u", "v"], "rows": [{"n": 1}, {"n": 2}, {"n": 3}]})");
  const json::Value written = Parsed(
      R"({"a": 2, "tags": ["u", "v"], "more": true, "rows": [{"n": 2}, {"n": 9}, {"n": 1}, {"n": 3}]})");
  std::vector<FieldVerdict> verdicts;
  const RecordScore score = ScoreRecord(right, written, FieldMetrics(), &verdicts);
  std::vector<std::string> said;
  int64_t good = 0;
  for (const FieldVerdict& one : verdicts) {
    good += one.right;
    said.push_back(one.field + " " + one.right_at + " " + one.written_at.value_or("-") + " " +
                   one.right_json + (one.right ? " right" : " wrong"));
  }
  EXPECT_EQ(said,
            (std::vector<std::string>{
                "a /a /a 1 wrong", "b /b - null right", "gone /gone - \"x\" wrong",
                "tags /tags /tags [\"u\",\"v\"] right", "rows[].n /rows/0/n /rows/2/n 1 right",
                "rows[].n /rows/1/n /rows/0/n 2 right", "rows[].n /rows/2/n /rows/3/n 3 right",
                "rows[] /rows/1 /rows/1 null wrong", "more /more /more null wrong"}));
  EXPECT_EQ(good, score.right());
}

TEST(FieldScoresTest, InventedKeysCount) {
  const RecordScore score = Score(R"({"a": 1})", R"({"a": 1, "b": 2, "c": null})");
  EXPECT_EQ(score.invented, 1);
  EXPECT_FALSE(score.whole);
  EXPECT_EQ(score.values.written, 2);
  EXPECT_EQ(score.values.expected, 1);
}

TEST(FieldScoresTest, MetricsOfTheSchema) {
  const std::string schema = R"({"properties": {
    "name": {"type": "string", "evaluation_config": "normalised"},
    "total": {"$ref": "#/$defs/money"},
    "note": {"evaluation_config": "ignore"},
    "rows": {"items": {"properties": {"id": {"evaluation_config": "string_case_insensitive"}}}}},
    "$defs": {"money": {"evaluation_config": {"metric": "numeric", "tolerance": 0.1}}}})";
  const std::string right =
      R"({"name": "Alder & Finch", "total": 100, "note": "x", "rows": [{"id": "A1"}]})";
  const RecordScore score = Score(
      right,
      R"({"name": " alder  finch.", "total": "109.00 EUR", "note": 7, "rows": [{"id": "a1"}]})",
      schema);
  EXPECT_EQ(score.fields.at("name").right, 1);
  EXPECT_EQ(score.fields.at("name").exact, 0);
  EXPECT_EQ(score.fields.count("note"), 0u);
  EXPECT_EQ(score.fields.at("rows[].id").right, 1);
  // A unit makes it a text, which is no number.
  EXPECT_EQ(score.fields.at("total").right, 0);
  EXPECT_EQ(Score(right, R"({"total": 109})", schema).fields.at("total").right, 1);
  EXPECT_EQ(Score(right, R"({"total": "$ 1,09"})", schema).fields.at("total").right, 1);
  EXPECT_EQ(Score(right, R"({"total": 111})", schema).fields.at("total").right, 0);
}

TEST(FieldScoresTest, UnknownMetricsHaveAPlace) {
  const auto metrics =
      FieldMetrics::Of(Parsed(R"({"properties": {"a/b": {"evaluation_config": "llm"}}})"));
  ASSERT_FALSE(metrics.ok());
  EXPECT_EQ(metrics.error().place, "#/properties/a~1b/evaluation_config");
  EXPECT_NE(metrics.error().message.find("\"llm\""), std::string::npos);
}

TEST(FieldScoresTest, SchemasThatContainThemselvesEnd) {
  EXPECT_TRUE(FieldMetrics::Of(Parsed(R"({"properties": {"a": {"$ref": "#"}}})")).ok());
}

TEST(FieldScoresTest, ListsOfRecords) {
  const std::string right = R"([{"p": "a", "n": 1}, {"p": "b", "n": 2}, {"p": "c", "n": null}])";
  const RecordScore score =
      Score(right, R"([{"p": "c"}, {"p": "x", "n": 9}, {"p": "a", "n": 1}, {"p": "b", "n": 3}])");
  EXPECT_EQ(score.list_records.expected, 3);
  EXPECT_EQ(score.list_records.written, 4);
  EXPECT_EQ(score.list_records.right, 2);  // a and c
  EXPECT_EQ(score.list_fields.right, 4);   // a, 1, b, c
  EXPECT_EQ(score.list_fields.expected, 5);
  EXPECT_EQ(score.list_fields.written, 7);
  EXPECT_DOUBLE_EQ(score.list_records.f1().value(), 4.0 / 7);
  EXPECT_FALSE(score.empty_list);
  EXPECT_TRUE(Score(right, "[]").empty_list);
  EXPECT_TRUE(Score("[]", "[]").whole);
  EXPECT_FALSE(Score("[]", R"([{"p": "a"}])").whole);
  EXPECT_EQ(Score("[]", R"([{"p": "a"}])").list_records.written, 1);
}

TEST(FieldScoresTest, WithoutARecordNothingIsRight) {
  const RecordScore score = ScoreMissing(Parsed(R"({"a": 1, "b": null})"), FieldMetrics());
  EXPECT_EQ(score.right(), 0);
  EXPECT_EQ(score.scored(), 2);
}

TEST(FieldScoresTest, NormalisedTexts) {
  EXPECT_EQ(Normalised("  The  QUICK, brown-fox 3.5! "), "the quick brown-fox 3.5");
  EXPECT_TRUE(SameNormalised(Parsed("\"1,250.50\""), Parsed("1250.5")));
  EXPECT_FALSE(SameNormalised(Parsed("\"12 a\""), Parsed("12")));
  EXPECT_TRUE(SameNormalised(Parsed("[\"A\"]"), Parsed("[\"a \"]")));
}

// The largest sum over all orders of the longer side.
int64_t BestSum(const std::vector<std::vector<int64_t>>& weights) {
  const size_t rows = weights.size(), columns = weights[0].size(), n = std::max(rows, columns);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  int64_t best = 0;
  do {
    int64_t sum = 0;
    for (size_t i = 0; i < rows; ++i) sum += order[i] < columns ? weights[i][order[i]] : 0;
    best = std::max(best, sum);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST(FieldScoresTest, PairsAreTheBestOnes) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const size_t rows = 1 + random() % 6, columns = 1 + random() % 6;
    std::vector<std::vector<int64_t>> weights(rows, std::vector<int64_t>(columns));
    for (auto& row : weights) {
      for (int64_t& weight : row) weight = static_cast<int64_t>(random() % 7);
    }
    const std::vector<int> pairs = BestPairs(weights);
    ASSERT_EQ(pairs.size(), rows);
    int64_t sum = 0;
    std::vector<int> used;
    for (size_t i = 0; i < rows; ++i) {
      if (pairs[i] < 0) continue;
      ASSERT_LT(pairs[i], static_cast<int>(columns));
      sum += weights[i][static_cast<size_t>(pairs[i])];
      used.push_back(pairs[i]);
    }
    std::ranges::sort(used);
    EXPECT_TRUE(std::ranges::adjacent_find(used) == used.end());
    EXPECT_EQ(sum, BestSum(weights));
  }
}

}  // namespace
}  // namespace pawl::eval
