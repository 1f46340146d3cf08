// Each reader looks up one member, checks its type and range, and keeps the first error, so a
// handler reads all that it needs and asks once whether that went well.
#include "src/server/request_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "src/server/api_error.h"

namespace pawl::server {
namespace {

std::string Shown(double value) {
  if (value == std::floor(value)) return std::to_string(static_cast<int64_t>(value));
  std::string text = std::to_string(value);
  while (text.back() == '0') text.pop_back();
  return text;
}

}  // namespace

std::optional<double> NumberOf(const json::Value& value) {
  if (value.type != json::Type::kNumber) return std::nullopt;
  double number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [at, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || at != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<int64_t> WholeOf(const json::Value& value) {
  if (value.type != json::Type::kNumber) return std::nullopt;
  int64_t whole = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [at, error] = std::from_chars(value.text.data(), end, whole);
  if (error == std::errc() && at == end) return whole;
  const std::optional<double> number = NumberOf(value);
  if (!number || *number != std::floor(*number) || std::abs(*number) > 9e15) return std::nullopt;
  return static_cast<int64_t>(*number);
}

RequestReader::RequestReader(const json::Value& object, std::string pointer)
    : object_(object), pointer_(std::move(pointer)) {
  if (object.type != json::Type::kObject) {
    error_ = Error{ErrorCode::kInvalid,
                   std::string("must be an object, not ") + json::TypeName(object.type), pointer_};
  }
}

void RequestReader::Fail(std::string_view name, std::string message, ErrorCode code) {
  if (!error_) error_ = Error{code, std::move(message), PointerOf(name)};
}

void RequestReader::Fail(const Error& error) {
  if (!error_) error_ = error;
}

const json::Value* RequestReader::Find(std::string_view name) const {
  if (error_) return nullptr;
  const json::Value* value = object_.Find(name);
  if (value != nullptr) found_.push_back(value);
  return value == nullptr || value->type == json::Type::kNull ? nullptr : value;
}

std::vector<std::string> RequestReader::Unread(
    const std::vector<const json::Value*>& others) const {
  std::vector<std::string> out;
  for (const auto& [name, value] : object_.members) {
    if (out.size() == kMostUnread) break;
    if (value.type == json::Type::kNull) continue;
    if (std::ranges::find(found_, &value) != found_.end()) continue;
    if (std::ranges::find(others, &value) != others.end()) continue;
    out.push_back(Shortened(PointerOf(name).substr(1), kMostPointerBytes));
  }
  return out;
}

const json::Value* RequestReader::FindString(std::string_view name) {
  const json::Value* value = Find(name);
  if (value == nullptr || value->type == json::Type::kString) return value;
  Fail(name, std::string("must be a string, not ") + json::TypeName(value->type));
  return nullptr;
}

const json::Value* RequestReader::FindArray(std::string_view name) {
  const json::Value* value = Find(name);
  if (value == nullptr || value->type == json::Type::kArray) return value;
  Fail(name, std::string("must be an array, not ") + json::TypeName(value->type));
  return nullptr;
}

const json::Value* RequestReader::FindObject(std::string_view name) {
  const json::Value* value = Find(name);
  if (value == nullptr || value->type == json::Type::kObject) return value;
  Fail(name, std::string("must be an object, not ") + json::TypeName(value->type));
  return nullptr;
}

bool RequestReader::Int(std::string_view name, int& value, int least, int most) {
  const json::Value* found = Find(name);
  if (found == nullptr) return false;
  const std::optional<int64_t> whole = WholeOf(*found);
  if (!whole || *whole < least || *whole > most) {
    Fail(name,
         "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return false;
  }
  value = static_cast<int>(*whole);
  return true;
}

bool RequestReader::Int64(std::string_view name, int64_t& value) {
  const json::Value* found = Find(name);
  if (found == nullptr) return false;
  const std::optional<int64_t> whole = WholeOf(*found);
  if (!whole) {
    Fail(name, "must be a whole number");
    return false;
  }
  value = *whole;
  return true;
}

bool RequestReader::Float(std::string_view name, float& value, double least, double most) {
  const json::Value* found = Find(name);
  if (found == nullptr) return false;
  const std::optional<double> number = NumberOf(*found);
  if (!number || *number < least || *number > most) {
    Fail(name, "must be a number from " + Shown(least) + " to " + Shown(most));
    return false;
  }
  value = static_cast<float>(*number);
  return true;
}

bool RequestReader::Bool(std::string_view name, bool& value) {
  const json::Value* found = Find(name);
  if (found == nullptr) return false;
  if (!found->is_bool()) {
    Fail(name, "must be true or false");
    return false;
  }
  value = found->type == json::Type::kTrue;
  return true;
}

bool RequestReader::String(std::string_view name, std::string& value) {
  const json::Value* found = FindString(name);
  if (found != nullptr) value = found->text;
  return found != nullptr;
}

bool RequestReader::Strings(std::string_view name, std::vector<std::string>& values, size_t most) {
  const json::Value* found = Find(name);
  if (found == nullptr) return false;
  if (found->type == json::Type::kString) {
    values = {found->text};
    return true;
  }
  if (found->type != json::Type::kArray) {
    Fail(name, "must be a string or a list of strings");
    return false;
  }
  if (found->items.size() > most) {
    Fail(name, "has more than " + std::to_string(most) + " items", ErrorCode::kLimit);
    return false;
  }
  values.clear();
  for (size_t i = 0; i < found->items.size(); ++i) {
    if (found->items[i].type != json::Type::kString) {
      Fail(Error{ErrorCode::kInvalid, "must be a string",
                 PointerOf(name) + "/" + std::to_string(i)});
      return false;
    }
    values.push_back(found->items[i].text);
  }
  return true;
}

}  // namespace pawl::server
