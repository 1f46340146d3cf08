// Python's float is the shortest text that reads back as the same double, which std::to_chars gives
// as digits and an exponent; where the point goes is Python's rule.
#include "src/cli/measure/python_json.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace pawl::cli {
namespace {

// repr(float(text)): the shortest digits that read back as the same double, positional for
// exponents from -4 to 15.
std::string PythonFloat(const std::string& text) {
  const double value = std::strtod(text.c_str(), nullptr);
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view shown(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (shown.front() == '-') {
    out = "-";
    shown.remove_prefix(1);
  }
  const size_t e = shown.find('e');
  std::string digits(1, shown[0]);
  if (e > 2) digits += shown.substr(2, e - 2);
  const int exponent = std::atoi(std::string(shown.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    const int size = std::abs(exponent);
    return out + (exponent < 0 ? "e-" : "e+") + (size < 10 ? "0" : "") + std::to_string(size);
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

void Append(const json::Value& value, std::string& out) {
  switch (value.type) {
    case json::Type::kNull:
      out += "null";
      return;
    case json::Type::kFalse:
      out += "false";
      return;
    case json::Type::kTrue:
      out += "true";
      return;
    case json::Type::kNumber:
      if (value.text.find_first_of(".eE") != std::string::npos) {
        out += PythonFloat(value.text);
      } else {
        out += value.text == "-0" ? "0" : value.text;
      }
      return;
    case json::Type::kString:
      out += json::Quote(value.text);
      return;
    case json::Type::kArray:
      out += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ", ";
        Append(value.items[i], out);
      }
      out += ']';
      return;
    case json::Type::kObject:
      out += '{';
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) out += ", ";
        out += json::Quote(value.members[i].first) + ": ";
        Append(value.members[i].second, out);
      }
      out += '}';
      return;
  }
}

}  // namespace

std::string PythonJson(const json::Value& value) {
  std::string out;
  Append(value, out);
  return out;
}

}  // namespace pawl::cli
