// Numbers keep their text in json::Value, so that reading one here decides what counts as an
// integer.
#include "src/model/json_fields.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace pawl {

std::optional<int64_t> AsInt(const json::Value& value) {
  if (value.type != json::Type::kNumber) return std::nullopt;
  int64_t number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<double> AsDouble(const json::Value& value) {
  if (value.type != json::Type::kNumber) return std::nullopt;
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string Shown(const json::Value& value) {
  std::string text = json::Dump(value);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

const json::Value* JsonFields::Find(std::string_view key) const {
  const json::Value* value = object_.Find(key);
  return value == nullptr || value->type == json::Type::kNull ? nullptr : value;
}

Error JsonFields::ErrorAt(ErrorCode code, std::string_view key, std::string message) const {
  return {code, std::move(message), path_ + "#" + json::PointerJoin(pointer_, key)};
}

Result<std::optional<int64_t>> JsonFields::Int(std::string_view key, int64_t low,
                                               int64_t high) const {
  const json::Value* value = Find(key);
  if (value == nullptr) return std::optional<int64_t>();
  const std::optional<int64_t> number = AsInt(*value);
  if (!number) {
    return ErrorAt(
        ErrorCode::kInvalid, key,
        std::string("must be an integer, is ") +
            (value->type == json::Type::kNumber ? Shown(*value) : TypeName(value->type)));
  }
  if (*number < low || *number > high) {
    return ErrorAt(ErrorCode::kInvalid, key,
                   "must be from " + std::to_string(low) + " to " + std::to_string(high) + ", is " +
                       Shown(*value));
  }
  return number;
}

Result<std::optional<double>> JsonFields::Double(std::string_view key) const {
  const json::Value* value = Find(key);
  if (value == nullptr) return std::optional<double>();
  const std::optional<double> number = AsDouble(*value);
  if (!number) {
    return ErrorAt(
        ErrorCode::kInvalid, key,
        std::string("must be a finite number, is ") +
            (value->type == json::Type::kNumber ? Shown(*value) : TypeName(value->type)));
  }
  return number;
}

Result<std::optional<bool>> JsonFields::Bool(std::string_view key) const {
  const json::Value* value = Find(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_bool()) {
    return ErrorAt(ErrorCode::kInvalid, key,
                   std::string("must be true or false, is ") + TypeName(value->type));
  }
  return std::optional<bool>(value->type == json::Type::kTrue);
}

Result<std::optional<std::string>> JsonFields::String(std::string_view key) const {
  const json::Value* value = Find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (value->type != json::Type::kString) {
    return ErrorAt(ErrorCode::kInvalid, key,
                   std::string("must be a string, is ") + TypeName(value->type));
  }
  return std::optional<std::string>(value->text);
}

}  // namespace pawl
