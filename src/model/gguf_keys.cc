// A key that was read, even in vain, counts as known: RefuseTheRest names the others.
#include "src/model/gguf_keys.h"

#include <cmath>

namespace pawl {

const GgufValue* GgufKeys::Find(const std::string& key) {
  used_.insert(prefix_ + key);
  return file_.FindValue(prefix_ + key);
}

std::vector<int64_t> GgufKeys::Ints(const std::string& key, int count, int64_t high,
                                    std::optional<int64_t> otherwise, int64_t low) {
  const auto size = static_cast<size_t>(count);
  const GgufValue* value = Find(key);
  if (value == nullptr || value->kind != GgufValue::Kind::kArray) {
    return std::vector<int64_t>(size, Int(key, high, otherwise, low));
  }
  std::vector<int64_t> numbers = value->integers;
  if (numbers.size() != size) {
    Fail(ErrorCode::kInvalid, key,
         "must be a list of " + std::to_string(count) + " integers, has " +
             std::to_string(numbers.size()));
  }
  numbers.resize(size, low);
  for (int64_t& number : numbers) {
    if (number >= low && number <= high) continue;
    Fail(ErrorCode::kInvalid, key,
         "must have integers from " + std::to_string(low) + " to " + std::to_string(high));
    number = low;
  }
  return numbers;
}

int64_t GgufKeys::Int(const std::string& key, int64_t high, std::optional<int64_t> otherwise,
                      int64_t low) {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    if (!otherwise) Fail(ErrorCode::kInvalid, key, "is missing");
    return otherwise.value_or(low);
  }
  using Kind = GgufValue::Kind;
  const auto number = static_cast<int64_t>(value->number);
  if ((value->kind != Kind::kUnsigned && value->kind != Kind::kSigned) || number < low ||
      number > high) {
    Fail(ErrorCode::kInvalid, key,
         "must be an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }
  return number;
}

double GgufKeys::Positive(const std::string& key, std::optional<double> otherwise) {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    if (!otherwise) Fail(ErrorCode::kInvalid, key, "is missing");
    return otherwise.value_or(1.0);
  }
  if (value->kind != GgufValue::Kind::kFloat || !std::isfinite(value->real) || !(value->real > 0)) {
    Fail(ErrorCode::kInvalid, key, "must be a finite number above 0");
    return 1.0;
  }
  return value->real;
}

std::string GgufKeys::String(const std::string& key, std::string otherwise) {
  const GgufValue* value = Find(key);
  if (value == nullptr) return otherwise;
  if (value->kind != GgufValue::Kind::kString) {
    Fail(ErrorCode::kInvalid, key, "must be a string");
    return otherwise;
  }
  return std::string(value->text);
}

TokenId GgufKeys::Token(const std::string& key, int64_t vocabulary) {
  const GgufValue* value = Find(key);
  if (value == nullptr) return kNoToken;
  if (value->kind != GgufValue::Kind::kUnsigned ||
      value->number >= static_cast<uint64_t>(vocabulary)) {
    Fail(ErrorCode::kInvalid, key, "must be a token id below " + std::to_string(vocabulary));
    return kNoToken;
  }
  return static_cast<TokenId>(value->number);
}

bool GgufKeys::Bool(const std::string& key, bool otherwise) {
  const GgufValue* value = Find(key);
  if (value == nullptr) return otherwise;
  if (value->kind != GgufValue::Kind::kBool) Fail(ErrorCode::kInvalid, key, "must be a bool");
  return value->number != 0;
}

void GgufKeys::Fail(ErrorCode code, const std::string& key, std::string message) {
  if (!error_) error_ = Error{code, std::move(message), file_.path() + ": " + prefix_ + key};
}

void GgufKeys::RefuseTheRest() {
  for (const auto& [key, value] : file_.values()) {
    if (!key.starts_with(prefix_) || used_.contains(key)) continue;
    Fail(ErrorCode::kUnsupported, key.substr(prefix_.size()).substr(0, 200),
         "expected nothing, this setting is not known");
  }
}

}  // namespace pawl
