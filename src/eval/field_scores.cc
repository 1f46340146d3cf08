// A right record and a written one are walked together. Scalars and lists without objects are
// fields. Objects in lists have no order that counts: they are paired so that as many fields as
// possible agree (the assignment problem, solved by the Hungarian algorithm in its form with
// potentials, Kuhn 1955, Jonker and Volgenant 1987), and then compared pair by pair. The idea that
// a schema names the metric of each field is ExtractBench's (arXiv 2602.12247).
#include "src/eval/field_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

namespace pawl::eval {
namespace {

using json::Type;
using json::Value;

const Value kNullValue{};

bool IsNull(const Value* value) { return value == nullptr || value->type == Type::kNull; }

bool HasObjects(const Value& value) {
  return value.type == Type::kArray && std::ranges::any_of(value.items, [](const Value& item) {
           return item.type == Type::kObject;
         });
}

// The number that a JSON value is, or that its text spells with separators and a currency.
std::optional<double> NumberOf(const Value& value) {
  if (value.type != Type::kNumber && value.type != Type::kString) return std::nullopt;
  std::string digits;
  bool seen = false;
  for (const char c : value.text) {
    if (c == ',' || c == ' ' || c == '\'') continue;
    const bool part =
        (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
    if (value.type == Type::kString && !part) {
      // A currency or a unit before or behind the number.
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return std::nullopt;
      continue;
    }
    seen = seen || (c >= '0' && c <= '9');
    digits += c;
  }
  if (!seen) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<Metric> MetricNamed(std::string_view name) {
  if (name == "exact" || name.ends_with("_exact")) return Metric::kExact;
  if (name == "normalised" || name == "normalized" || name == "string_case_insensitive")
    return Metric::kNormalised;
  if (name == "numeric" || name == "number_tolerance") return Metric::kNumeric;
  if (name == "ignore") return Metric::kIgnored;
  return std::nullopt;
}

std::string Joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// Reads "evaluation_config" on the paths of fields. References to definitions are followed a few
// levels deep, so that schemas that contain themselves end.
class MetricReader {
 public:
  MetricReader(const Value& root, std::map<std::string, FieldMetric>& named)
      : root_(root), named_(named) {}

  Status Read(const Value& schema, const std::string& path, const std::string& pointer, int depth) {
    constexpr int kMostDepth = 32;
    if (schema.type != Type::kObject || depth > kMostDepth) return {};
    if (const Value* config = schema.Find("evaluation_config")) {
      if (Status status = Take(*config, path, pointer + "/evaluation_config"); !status.ok()) {
        return status;
      }
    }
    if (const Value* reference = schema.Find("$ref"); reference != nullptr) {
      if (const Value* target = Target(reference->text)) {
        if (Status status = Read(*target, path, reference->text, depth + 1); !status.ok())
          return status;
      }
    }
    for (const char* name : {"anyOf", "oneOf", "allOf"}) {
      const Value* branches = schema.Find(name);
      if (branches == nullptr) continue;
      for (size_t i = 0; i < branches->items.size(); ++i) {
        const std::string at = pointer + "/" + name + "/" + std::to_string(i);
        if (Status status = Read(branches->items[i], path, at, depth + 1); !status.ok())
          return status;
      }
    }
    if (const Value* properties = schema.Find("properties")) {
      for (const auto& [key, member] : properties->members) {
        const std::string at = json::PointerJoin(pointer + "/properties", key);
        if (Status status = Read(member, Joined(path, key), at, depth + 1); !status.ok())
          return status;
      }
    }
    if (const Value* items = schema.Find("items")) {
      if (Status status = Read(*items, path + "[]", pointer + "/items", depth + 1); !status.ok())
        return status;
    }
    return {};
  }

 private:
  const Value* Target(const std::string& reference) const {
    if (!reference.starts_with("#/")) return reference == "#" ? &root_ : nullptr;
    const Value* at = &root_;
    for (const std::string& token : json::PointerTokens(reference.substr(1))) {
      at = at->type == Type::kArray ? json::ItemAt(*at, token) : at->Find(token);
      if (at == nullptr) return nullptr;
    }
    return at;
  }

  Status Take(const Value& config, const std::string& path, const std::string& pointer) {
    const Value* name = config.type == Type::kObject ? config.Find("metric") : &config;
    const auto wrong = [&](std::string message) {
      return Error{ErrorCode::kInvalid, std::move(message), pointer};
    };
    if (name == nullptr || name->type != Type::kString)
      return wrong("must be the name of a metric, or an object with one under \"metric\"");
    const std::optional<Metric> metric = MetricNamed(name->text);
    if (!metric) {
      return wrong("unknown metric " + json::Quote(name->text) +
                   "; known: exact, normalised, numeric, ignore");
    }
    FieldMetric field{.metric = *metric};
    if (const Value* tolerance = config.Find("tolerance")) {
      const std::optional<double> value = NumberOf(*tolerance);
      if (tolerance->type != Type::kNumber || !value || *value < 0)
        return wrong("the tolerance must be a number of at least 0");
      field.tolerance = *value;
    }
    named_[path] = field;
    return {};
  }

  const Value& root_;
  std::map<std::string, FieldMetric>& named_;
};

// Where two values that are compared stand in their records. Only verdicts need it.
struct Places {
  std::string right, written;
  Places At(const std::string& right_token, const std::string& written_token) const {
    return {json::PointerJoin(right, right_token), json::PointerJoin(written, written_token)};
  }
};

// Compares one right record with one written record.
class Scorer {
 public:
  Scorer(const FieldMetrics& metrics, RecordScore& score,
         std::vector<FieldVerdict>* verdicts = nullptr, Places places = {})
      : metrics_(metrics), score_(score), verdicts_(verdicts), places_(std::move(places)) {}

  // `written`: nullptr where there is none. `listed`: inside an object of a list.
  void Compare(const Value& right, const Value* written, const std::string& path, bool listed) {
    if (right.type == Type::kObject) return CompareObjects(right, written, path, listed);
    // An empty list, where the other one has objects, is a list of objects.
    const bool objects = HasObjects(right) || (right.type == Type::kArray && right.items.empty() &&
                                               written != nullptr && HasObjects(*written));
    if (objects) return CompareLists(right, written, path);
    CompareLeaf(right, written, path, listed);
  }

 private:
  void CompareObjects(const Value& right, const Value* written, const std::string& path,
                      bool listed) {
    const bool object = written != nullptr && written->type == Type::kObject;
    for (const json::Member& one : right.members) {
      const std::string& key = one.first;
      Inside(key, key, [&] {
        Compare(one.second, object ? written->Find(key) : nullptr, Joined(path, key), listed);
      });
    }
    if (!object) return;
    for (const json::Member& one : written->members) {
      const std::string& key = one.first;
      const Value& value = one.second;
      if (right.Find(key) != nullptr || IsNull(&value)) continue;
      ++score_.invented;
      CountWritten(value, listed);
      Inside(key, key, [&] { Tell(Joined(path, key), kNullValue, &value, false); });
    }
  }

  void CompareLists(const Value& right, const Value* written, const std::string& path) {
    static const std::vector<Value> kNone;
    const bool list = written != nullptr && written->type == Type::kArray;
    const std::vector<Value>& found = list ? written->items : kNone;
    score_.list_records.expected += static_cast<int64_t>(right.items.size());
    score_.list_records.written += static_cast<int64_t>(found.size());
    if (found.empty() && !right.items.empty()) score_.empty_list = true;
    std::vector<std::vector<int64_t>> weights(right.items.size());
    for (size_t i = 0; i < right.items.size(); ++i) {
      for (const Value& other : found) {
        RecordScore trial;
        Scorer(metrics_, trial).Compare(right.items[i], &other, path + "[]", true);
        // Of pairings with as many right fields, the one with more whole records.
        weights[i].push_back(kOverWhole * trial.values.right + IsWhole(trial));
      }
    }
    const std::vector<int> pairs = BestPairs(weights);
    std::vector<bool> used(found.size());
    for (size_t i = 0; i < right.items.size(); ++i) {
      const bool paired = pairs[i] >= 0;
      if (paired) used[static_cast<size_t>(pairs[i])] = true;
      const Value* other = paired ? &found[static_cast<size_t>(pairs[i])] : nullptr;
      RecordScore one;
      Scorer(metrics_, one, verdicts_,
             places_.At(std::to_string(i), std::to_string(paired ? pairs[i] : 0)))
          .Compare(right.items[i], other, path + "[]", true);
      score_.list_records.right += paired && IsWhole(one);
      Take(one);
    }
    for (size_t j = 0; j < found.size(); ++j) {
      if (used[j]) continue;
      CountWritten(found[j], true);
      const std::string item = std::to_string(j);
      Inside(item, item, [&] { Tell(path + "[]", kNullValue, &found[j], false); });
    }
  }

  static constexpr int64_t kOverWhole = 4096;
  static bool IsWhole(const RecordScore& score) {
    return score.right() == score.scored() && score.invented == 0;
  }

  void CompareLeaf(const Value& right, const Value* written, const std::string& path, bool listed) {
    const FieldMetric metric = metrics_.For(path);
    if (metric.metric == Metric::kIgnored) return;
    const std::string name = path.empty() ? "(value)" : path;
    FieldCounts& counts = score_.fields[name];
    if (!IsNull(written)) CountWritten(*written, listed);
    if (IsNull(&right)) {
      ++counts.nulls;
      counts.right_nulls += IsNull(written);
      Tell(name, right, written, IsNull(written));
      return;
    }
    const Value& other = written == nullptr ? kNullValue : *written;
    const bool exact = SameExactly(right, other);
    const bool normalised = SameNormalised(right, other);
    const bool numeric = SameWithin(right, other, metric.tolerance);
    const bool good = metric.metric == Metric::kExact        ? exact
                      : metric.metric == Metric::kNormalised ? normalised
                                                             : numeric;
    ++counts.values;
    counts.exact += exact;
    counts.normalised += normalised;
    counts.numeric += numeric;
    counts.right += good;
    Tell(name, right, written, good);
    const auto count = [&](PairCounts& pairs) {
      ++pairs.expected;
      pairs.right += good;
    };
    count(score_.values);
    if (listed) count(score_.list_fields);
  }

  // Values that were written, right or not.
  void CountWritten(const Value& value, bool listed) {
    if (value.type == Type::kNull) return;
    if (value.type == Type::kObject) {
      for (const auto& [key, member] : value.members) CountWritten(member, listed);
      return;
    }
    if (HasObjects(value)) {
      for (const Value& item : value.items) CountWritten(item, listed);
      return;
    }
    ++score_.values.written;
    if (listed) ++score_.list_fields.written;
  }

  void Take(const RecordScore& part) {
    for (const auto& [name, counts] : part.fields) score_.fields[name].Add(counts);
    score_.values.Add(part.values);
    score_.list_records.Add(part.list_records);
    score_.list_fields.Add(part.list_fields);
    score_.invented += part.invented;
    score_.empty_list = score_.empty_list || part.empty_list;
  }

  // `part` on members or items of the values that are compared.
  template <typename Part>
  void Inside(const std::string& right_token, const std::string& written_token, const Part& part) {
    if (verdicts_ == nullptr) return part();
    Places inner = places_.At(right_token, written_token);
    std::swap(inner, places_);
    part();
    std::swap(inner, places_);
  }

  void Tell(const std::string& field, const Value& right, const Value* written, bool good) {
    if (verdicts_ == nullptr) return;
    verdicts_->push_back({field, places_.right,
                          written == nullptr ? std::nullopt : std::optional(places_.written),
                          json::Dump(right), good});
  }

  const FieldMetrics& metrics_;
  RecordScore& score_;
  std::vector<FieldVerdict>* const verdicts_;
  Places places_;
};

std::optional<double> Ratio(int64_t part, int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

// ---- Metrics ----

Result<FieldMetrics> FieldMetrics::Of(const Value& schema) {
  FieldMetrics metrics;
  Status status = MetricReader(schema, metrics.named_).Read(schema, "", "#", 0);
  if (!status.ok()) return status.error();
  return metrics;
}

FieldMetric FieldMetrics::For(const std::string& field) const {
  const auto found = named_.find(field);
  return found == named_.end() ? FieldMetric() : found->second;
}

bool SameExactly(const Value& a, const Value& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::kNumber:
      return a.text == b.text || NumberOf(a) == NumberOf(b);
    case Type::kString:
      return a.text == b.text;
    case Type::kArray:
      return std::ranges::equal(a.items, b.items, SameExactly);
    case Type::kObject:
      return a.members.size() == b.members.size() &&
             std::ranges::all_of(a.members, [&](const json::Member& member) {
               const Value* other = b.Find(member.first);
               return other != nullptr && SameExactly(member.second, *other);
             });
    default:
      return true;
  }
}

std::string Normalised(std::string_view text) {
  std::string out;
  bool gap = false;
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<signed char>(c) < 0;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // Inside a word, as in "3.5" and "o'clock", punctuation stays.
    const bool inside = i > 0 && i + 1 < text.size() && is_word(text[i - 1]) &&
                        is_word(text[i + 1]) && c != ' ' && c != '\t' && c != '\n' && c != '\r';
    if (!is_word(c) && !inside) {
      gap = true;
      continue;
    }
    if (gap && !out.empty()) out += ' ';
    gap = false;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

bool SameNormalised(const Value& a, const Value& b) {
  if (SameExactly(a, b)) return true;
  if (a.type == Type::kArray && b.type == Type::kArray)
    return std::ranges::equal(a.items, b.items, SameNormalised);
  const bool text = a.type == Type::kString || b.type == Type::kString;
  const bool plain = (a.type == Type::kString || a.type == Type::kNumber) &&
                     (b.type == Type::kString || b.type == Type::kNumber);
  if (!text || !plain) return false;
  if (const auto number = NumberOf(a); number && number == NumberOf(b)) return true;
  return Normalised(a.text) == Normalised(b.text);
}

bool SameWithin(const Value& a, const Value& b, double tolerance) {
  if (a.type == Type::kArray && b.type == Type::kArray) {
    return std::ranges::equal(a.items, b.items, [&](const Value& x, const Value& y) {
      return SameWithin(x, y, tolerance);
    });
  }
  const auto x = NumberOf(a), y = NumberOf(b);
  if (!x || !y) return SameExactly(a, b);
  return std::abs(*x - *y) <= tolerance * std::abs(*x);
}

// ---- Counts ----

void FieldCounts::Add(const FieldCounts& other) {
  values += other.values;
  right += other.right;
  exact += other.exact;
  normalised += other.normalised;
  numeric += other.numeric;
  nulls += other.nulls;
  right_nulls += other.right_nulls;
}

std::optional<double> PairCounts::precision() const { return Ratio(right, written); }
std::optional<double> PairCounts::recall() const { return Ratio(right, expected); }
std::optional<double> PairCounts::f1() const { return Ratio(2 * right, written + expected); }

void PairCounts::Add(const PairCounts& other) {
  right += other.right;
  written += other.written;
  expected += other.expected;
}

int64_t RecordScore::right() const {
  int64_t sum = 0;
  for (const auto& [name, counts] : fields) sum += counts.right + counts.right_nulls;
  return sum;
}

int64_t RecordScore::scored() const {
  int64_t sum = 0;
  for (const auto& [name, counts] : fields) sum += counts.values + counts.nulls;
  return sum;
}

std::vector<int> BestPairs(const std::vector<std::vector<int64_t>>& weights) {
  const size_t rows = weights.size();
  const size_t columns = rows == 0 ? 0 : weights[0].size();
  std::vector<int> pairs(rows, -1);
  if (columns == 0) return pairs;
  // A square of costs; what has no partner costs as much as a pair of weight 0.
  const size_t n = std::max(rows, columns);
  const auto cost = [&](size_t i, size_t j) {
    return i < rows && j < columns ? -weights[i][j] : int64_t{0};
  };
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
  std::vector<int64_t> of_row(n + 1), of_column(n + 1);
  std::vector<size_t> row_of(n + 1), way(n + 1);  // columns from 1; 0: none
  for (size_t i = 1; i <= n; ++i) {
    row_of[0] = i;
    size_t column = 0;
    std::vector<int64_t> least(n + 1, kFar);
    std::vector<bool> used(n + 1);
    do {
      used[column] = true;
      const size_t row = row_of[column];
      size_t next = 0;
      int64_t delta = kFar;
      for (size_t j = 1; j <= n; ++j) {
        if (used[j]) continue;
        const int64_t reduced = cost(row - 1, j - 1) - of_row[row] - of_column[j];
        if (reduced < least[j]) {
          least[j] = reduced;
          way[j] = column;
        }
        if (least[j] < delta) {
          delta = least[j];
          next = j;
        }
      }
      for (size_t j = 0; j <= n; ++j) {
        if (used[j]) {
          of_row[row_of[j]] += delta;
          of_column[j] -= delta;
        } else {
          least[j] -= delta;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    while (column != 0) {
      row_of[column] = row_of[way[column]];
      column = way[column];
    }
  }
  for (size_t j = 1; j <= columns; ++j) {
    if (row_of[j] >= 1 && row_of[j] <= rows) pairs[row_of[j] - 1] = static_cast<int>(j - 1);
  }
  return pairs;
}

// ---- Records ----

RecordScore ScoreRecord(const Value& right, const Value& written, const FieldMetrics& metrics,
                        std::vector<FieldVerdict>* verdicts) {
  RecordScore score;
  Scorer(metrics, score, verdicts).Compare(right, &written, "", false);
  const int64_t extra = score.list_records.written - score.list_records.expected;
  score.whole = score.right() == score.scored() && score.invented == 0 && extra <= 0;
  return score;
}

RecordScore ScoreMissing(const Value& right, const FieldMetrics& metrics) {
  RecordScore score;
  Scorer(metrics, score).Compare(right, nullptr, "", false);
  // Nothing was written, so a null was not found either.
  for (auto& [name, counts] : score.fields) counts.right_nulls = 0;
  score.empty_list = false;
  return score;
}

void EvalScores::Add(const RecordScore& score) {
  ++texts;
  whole += score.whole;
  invented += score.invented;
  empty_lists += score.empty_list;
  for (const auto& [name, counts] : score.fields) fields[name].Add(counts);
  values.Add(score.values);
  list_records.Add(score.list_records);
  list_fields.Add(score.list_fields);
}

FieldCounts EvalScores::all() const {
  FieldCounts sum;
  for (const auto& [name, counts] : fields) sum.Add(counts);
  return sum;
}

}  // namespace pawl::eval
