// Numbers keep their text in json::Value, so that what counts as a whole number is decided here.
#include "src/base/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pawl {
namespace {

// All of the text of a number as a T.
template <typename T>
std::optional<T> Parsed(const json::Value& value) {
  if (value.type != json::Type::kNumber) return std::nullopt;
  T number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::string ShownBound(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

namespace json {

std::optional<int64_t> WholeOf(const Value& value) {
  constexpr double kExact = 9e15;  // below it doubles tell whole numbers apart
  if (const std::optional<int64_t> whole = Parsed<int64_t>(value)) return whole;
  const std::optional<double> number = NumberOf(value);
  if (!number || *number != std::floor(*number) || std::abs(*number) > kExact) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> NumberOf(const Value& value) {
  const std::optional<double> number = Parsed<double>(value);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::string Shown(const Value& value) {
  constexpr size_t kMost = 50;
  std::string text = Dump(value);
  if (text.size() > kMost) text = text.substr(0, kMost - 3) + "...";
  return text;
}

}  // namespace json

JsonReader JsonReader::operator[](std::string_view name) const {
  const json::Value* const member = value_ == nullptr || !ok() ? nullptr : value_->Find(name);
  if (member != nullptr && !in_array_) shared_->read.insert(member);
  return JsonReader(*this, member, json::PointerJoin(place_, name));
}

JsonReader JsonReader::Item(size_t i) const {
  const bool there = IsArray() && ok() && i < value_->items.size();
  JsonReader item(*this, there ? &value_->items[i] : nullptr,
                  json::PointerJoin(place_, std::to_string(i)));
  item.in_array_ = true;
  return item;
}

JsonReader JsonReader::Expect(json::Type type, const char* wanted, bool required) const {
  if (Is(type) || (!required && !present())) return *this;
  Wrong(wanted);
  return JsonReader(*this, nullptr, place_);
}

void JsonReader::Wrong(const std::string& wanted, bool number) const {
  if (!ok()) return;
  if (value_ == nullptr) return Fail("is missing, must be " + wanted);
  number = number && value_->type == json::Type::kNumber;
  Fail("must be " + wanted + ", not " +
       (number ? json::Shown(*value_) : json::TypeName(value_->type)));
}

const std::string& JsonReader::String() const {
  static const std::string kEmpty;
  if (IsString()) return value_->text;
  Wrong("a string");
  return kEmpty;
}

bool JsonReader::Bool() const {
  if (value_ == nullptr || !value_->is_bool()) Wrong("true or false");
  return Is(json::Type::kTrue);
}

int64_t JsonReader::Whole(int64_t low, int64_t high) const {
  const std::optional<int64_t> whole = value_ == nullptr ? std::nullopt : json::WholeOf(*value_);
  if (whole && *whole >= low && *whole <= high) return *whole;
  const bool above = low != std::numeric_limits<int64_t>::min();
  const bool below = high != std::numeric_limits<int64_t>::max();
  std::string wanted = "a whole number";
  if (above) wanted += (below ? " from " : " of at least ") + std::to_string(low);
  if (below) wanted += (above ? " to " : " of at most ") + std::to_string(high);
  Wrong(wanted, true);
  return std::clamp(int64_t{0}, low, high);
}

double JsonReader::Number(double low, double high) const {
  const std::optional<double> number = value_ == nullptr ? std::nullopt : json::NumberOf(*value_);
  if (number && *number >= low && *number <= high) return *number;
  const bool bounded = low != std::numeric_limits<double>::lowest();
  Wrong(
      bounded ? "a number from " + ShownBound(low) + " to " + ShownBound(high) : "a finite number",
      true);
  return std::clamp(0.0, low, high);
}

double JsonReader::Positive() const {
  const double number = Number();
  if (number > 0) return number;
  Wrong("above 0", true);
  return 1;
}

bool JsonReader::ReadStrings(std::vector<std::string>& out, size_t most) const {
  if (!present()) return false;
  std::vector<std::string> read;
  if (IsString()) {
    read = {value_->text};
  } else if (!IsArray()) {
    Wrong("a string or a list of strings");
  } else if (size() > most) {
    Fail("has more than " + std::to_string(most) + " items", ErrorCode::kLimit);
  } else {
    for (const JsonReader item : items()) read.push_back(item.String());
  }
  if (ok()) out = std::move(read);
  return ok();
}

void JsonReader::OnlyMembers(std::span<const std::string_view> names) const {
  const JsonReader object = Object();
  if (object.value() == nullptr) return;
  for (const auto& [name, value] : value_->members) {
    if (std::ranges::find(names, name) != names.end()) continue;
    std::string known;
    for (const std::string_view one : names)
      known += (known.empty() ? "" : ", ") + std::string(one);
    return (*this)[name].Unsupported("unknown member; known are " + known);
  }
}

std::vector<const json::Member*> JsonReader::Unread(size_t most) const {
  std::vector<const json::Member*> unread;
  if (value_ == nullptr || !ok()) return unread;
  for (const json::Member& member : value_->members) {
    if (unread.size() == most) break;
    const bool null = member.second.type == json::Type::kNull;
    if (!null && !shared_->read.contains(&member.second)) unread.push_back(&member);
  }
  return unread;
}

}  // namespace pawl
