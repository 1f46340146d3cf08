// Scores of records against the records that are right, field by field.
//
//   Result<FieldMetrics> metrics = FieldMetrics::Of(schema);       // or FieldMetrics() without one
//   RecordScore score = ScoreRecord(right, written, metrics);
//   EvalScores total;
//   total.Add(score);
//   total.fields["total"].right
//
// A field is a leaf of the right record: a scalar, or a list without objects. Its name is the path,
// with [] for the items of a list of objects: "lines[].price". Null and a key that is not there are
// the same. The schema names the metric of a field under "evaluation_config" (docs/evaluation.md).
#ifndef PAWL_SRC_EVAL_FIELD_SCORES_H_
#define PAWL_SRC_EVAL_FIELD_SCORES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::eval {

enum class Metric {
  kExact,       // the same JSON value; numbers by value
  kNormalised,  // texts without case, punctuation and repeated white space; numbers in texts too
  kNumeric,     // within a tolerance
  kIgnored,     // not scored
};

struct FieldMetric {
  Metric metric = Metric::kExact;
  double tolerance = 0.01;  // of kNumeric: the relative error
};

// The metrics that a schema names, by the names of fields.
class FieldMetrics {
 public:
  // Errors: kInvalid with the JSON Pointer of an unknown metric.
  static Result<FieldMetrics> Of(const json::Value& schema);
  FieldMetric For(const std::string& field) const;

 private:
  std::map<std::string, FieldMetric> named_;
};

// Whether two values are the same under a metric.
bool SameExactly(const json::Value& a, const json::Value& b);
bool SameNormalised(const json::Value& a, const json::Value& b);
bool SameWithin(const json::Value& a, const json::Value& b, double tolerance);
// A text without case, punctuation at the ends of words and repeated white space.
std::string Normalised(std::string_view text);

struct FieldCounts {
  int64_t values = 0;  // fields that have a value
  int64_t right = 0;   // of these: by the metric of the field
  int64_t exact = 0, normalised = 0, numeric = 0;
  int64_t nulls = 0, right_nulls = 0;  // fields without a value
  void Add(const FieldCounts& other);
};

// Right ones of those that were written and of those that are right. A share of nothing is nullopt.
struct PairCounts {
  int64_t right = 0, written = 0, expected = 0;
  std::optional<double> precision() const;
  std::optional<double> recall() const;
  std::optional<double> f1() const;
  void Add(const PairCounts& other);
};

struct RecordScore {
  std::map<std::string, FieldCounts> fields;
  PairCounts values;        // fields with a value
  PairCounts list_records;  // objects in lists, right where each of their fields is
  PairCounts list_fields;   // fields with a value in them
  int64_t invented = 0;     // keys that the right record does not have, with a value
  bool whole = false;       // each field is right
  bool empty_list = false;  // a list of objects is empty that should not be
  // Fields that are right, nulls included, and all fields: what settings are compared by.
  int64_t right() const;
  int64_t scored() const;
};

// One field of a record: what was compared with what.
struct FieldVerdict {
  std::string field;                      // its name, as above
  std::string right_at;                   // JSON Pointer in the right record
  std::optional<std::string> written_at;  // in the written one; nullopt: it has none there
  std::string right_json;                 // the right value; of an invented key "null"
  bool right = false;
};

// `verdicts`: gets one for each field, and for each key and item that should not be there.
RecordScore ScoreRecord(const json::Value& right, const json::Value& written,
                        const FieldMetrics& metrics, std::vector<FieldVerdict>* verdicts = nullptr);
// Of a text for which there is no record.
RecordScore ScoreMissing(const json::Value& right, const FieldMetrics& metrics);

// The items of two lists that belong together: for each of the `expected` the index of its partner,
// or -1. The sum of `weights[i][j]` over the pairs is the largest that there is.
std::vector<int> BestPairs(const std::vector<std::vector<int64_t>>& weights);

struct EvalScores {
  int64_t texts = 0, failed = 0, whole = 0, invented = 0, empty_lists = 0;
  std::map<std::string, FieldCounts> fields;
  PairCounts values, list_records, list_fields;
  void Add(const RecordScore& score);
  FieldCounts all() const;
};

}  // namespace pawl::eval

#endif  // PAWL_SRC_EVAL_FIELD_SCORES_H_
