// Random schemas, instances and vocabularies for the property tests. Everything follows from the
// random stream, so a seed names a case.
#ifndef PAWL_TESTS_SCHEMAS_PROPERTY_GENERATORS_H_
#define PAWL_TESTS_SCHEMAS_PROPERTY_GENERATORS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/base/json.h"

namespace pawl::property {

// Small draws from a fixed stream.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  size_t Below(size_t n) { return static_cast<size_t>(engine_() % n); }
  bool Percent(size_t percent) { return Below(100) < percent; }
  int Between(int low, int high) {
    return low + static_cast<int>(Below(static_cast<size_t>(high - low + 1)));
  }
  template <typename Container>
  const auto& Pick(const Container& c) {
    return c[Below(std::size(c))];
  }

 private:
  std::mt19937_64 engine_;
};

json::Value MakeNumber(const std::string& text);
json::Value MakeString(const std::string& text);
json::Value MakeBool(bool value);

// A schema of draft 2020-12 over few keys, letters and numbers, so that keywords meet each other's
// values.
json::Value RandomSchema(Dice& dice);

// A value over the same keys, letters and numbers.
json::Value RandomValue(Dice& dice, int depth);
// A value that has a fair chance to be valid for the schema.
json::Value LikelyValue(Dice& dice, const json::Value& schema);
// The value with one thing changed.
json::Value Mutated(Dice& dice, const json::Value& value);
// JSON text of the value, in one of its many spellings: white space, escapes, forms of numbers.
std::string Spelled(Dice& dice, const json::Value& value);

// All 256 bytes, tokens that JSON is full of, tokens that cross the ends of its lexemes or split
// code points and escapes, random others, and two special tokens of which the last ends the output.
std::shared_ptr<const Vocabulary> RandomVocabulary(Dice& dice, int random_tokens);

// The smallest schema found by taking parts away from `schema` for which `fails` still holds.
json::Value Shrunk(const json::Value& schema, const std::function<bool(const json::Value&)>& fails);

}  // namespace pawl::property

#endif  // PAWL_TESTS_SCHEMAS_PROPERTY_GENERATORS_H_
