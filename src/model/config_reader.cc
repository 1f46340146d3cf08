// A setting that is not understood may be harmless or may change every number; there is no telling
// from its name. So a key with a value is either asked for, known to be harmless, or an error.
#include "src/model/config_reader.h"

#include <utility>

namespace pawl {
namespace {

bool SaysNothing(const json::Value& value) {
  return value.type == json::Type::kNull || value.type == json::Type::kFalse ||
         (value.type == json::Type::kString && value.text.empty()) ||
         ((value.type == json::Type::kArray || value.type == json::Type::kObject) &&
          value.size() == 0);
}

}  // namespace

template <typename T>
std::optional<T> ConfigReader::Take(std::string_view key, Result<std::optional<T>> result) {
  used_.emplace(key);
  if (result.ok()) return *result;
  Fail(result.error());
  return std::nullopt;
}

int ConfigReader::RequiredInt(std::string_view key, int64_t high) {
  const std::optional<int64_t> value = Take(key, fields_.Int(key, 1, high));
  if (!value) Fail(ErrorCode::kInvalid, key, "is missing");
  return static_cast<int>(value.value_or(1));
}

int ConfigReader::Int(std::string_view key, int64_t high, int64_t otherwise) {
  return static_cast<int>(Take(key, fields_.Int(key, 1, high)).value_or(otherwise));
}

double ConfigReader::Positive(std::string_view key, std::optional<double> otherwise) {
  const std::optional<double> value = Take(key, fields_.Double(key));
  if (value && !(*value > 0)) {
    Fail(ErrorCode::kInvalid, key, "must be above 0, is " + Shown(*Find(key)));
    return 1.0;
  }
  if (!value && !otherwise) Fail(ErrorCode::kInvalid, key, "is missing");
  return value.value_or(otherwise.value_or(1.0));
}

std::optional<double> ConfigReader::PositiveOrNull(std::string_view key,
                                                   std::optional<double> absent) {
  used_.emplace(key);
  if (!Has(key)) return absent;
  if (Find(key) == nullptr) return std::nullopt;
  return Positive(key, 1.0);
}

bool ConfigReader::Bool(std::string_view key, bool otherwise) {
  return Take(key, fields_.Bool(key)).value_or(otherwise);
}

std::string ConfigReader::String(std::string_view key, std::string otherwise) {
  return Take(key, fields_.String(key)).value_or(std::move(otherwise));
}

const json::Value* ConfigReader::Find(std::string_view key) {
  used_.emplace(key);
  return fields_.Find(key);
}

void ConfigReader::ExpectString(std::string_view key, std::string_view supported,
                                std::string_view otherwise) {
  const std::string value = String(key, std::string(otherwise));
  if (value != supported) {
    Fail(ErrorCode::kUnsupported, key,
         "is " + json::Quote(value.substr(0, 50)) + "; expected " + json::Quote(supported) +
             ", the only one supported for this architecture");
  }
}

void ConfigReader::ExpectNothing(std::string_view key) {
  const json::Value* value = Find(key);
  if (value == nullptr || SaysNothing(*value)) return;
  Fail(ErrorCode::kUnsupported, key,
       "is " + Shown(*value) + "; expected null or false, this is not supported here");
}

void ConfigReader::Fail(ErrorCode code, std::string_view key, std::string message) {
  if (!error_) error_ = fields_.ErrorAt(code, key, std::move(message));
}

void ConfigReader::RefuseTheRest(std::string_view owner) {
  for (const auto& [key, value] : object_.members) {
    if (error_ || used_.contains(key) || key.starts_with("_") || SaysNothing(value)) continue;
    Fail(ErrorCode::kUnsupported, key,
         "is " + Shown(value) + "; expected nothing, this setting is not known for " +
             std::string(owner));
  }
}

}  // namespace pawl
