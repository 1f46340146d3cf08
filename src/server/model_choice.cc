// keep_alive is written as Ollama's clients write it.
#include "src/server/model_choice.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "src/base/json_reader.h"
#include "src/server/body_member.h"

namespace pawl::server {
namespace {

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

// Longer times are for ever.
constexpr double kMostKeepAlive = 1e9;

double Bounded(double seconds) { return seconds > kMostKeepAlive ? -1 : seconds; }

// The parameter of a query, with its percent signs read; empty: it is not there.
std::string Parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    if (!part.starts_with(name) || part.size() <= name.size() || part[name.size()] != '=') continue;
    std::string value(part.substr(name.size() + 1));
    std::ranges::replace(value, '+', ' ');
    return PercentDecoded(value);
  }
  return "";
}

constexpr const char* kKeepAlive = R"(must be seconds, or a text such as "5m"; -1 for ever)";

}  // namespace

std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? DigitOf(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : DigitOf(text[i + 2]);
    out += low < 0 ? text[i] : static_cast<char>(high << 4 | low);
    if (low >= 0) i += 2;
  }
  return out;
}

std::optional<double> KeepAliveOf(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  const bool forever = text.starts_with('-');
  if (forever) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  for (bool first = true; !text.empty(); first = false) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty() && first) {
      seconds = number;
      break;
    }
    bool known = false;
    for (const auto& [unit, factor] : kUnits) {
      if (!text.starts_with(unit)) continue;
      seconds += number * factor;
      text.remove_prefix(unit.size());
      known = true;
      break;
    }
    if (!known) return std::nullopt;
  }
  return forever ? -1 : Bounded(seconds);
}

std::optional<double> KeepAliveOf(const json::Value& value) {
  if (value.type == json::Type::kString) return KeepAliveOf(std::string_view(value.text));
  const std::optional<double> number = json::NumberOf(value);
  if (!number) return std::nullopt;
  return *number < 0 ? -1 : Bounded(*number);
}

Result<ModelChoice> ChoiceOf(const HttpRequest& request) {
  ModelChoice choice;
  if (request.method != "POST") {
    choice.name = Parameter(request.query, "model");
    return choice;
  }
  const auto member = [&](const char* name) -> Result<json::Value> {
    const std::optional<std::string_view> text = MemberText(request.body, name);
    if (!text) return json::Value();
    // What is no JSON is told with its place in the body.
    Result<json::Value> value = json::Parse(*text);
    return value.ok() ? std::move(value) : Result<json::Value>(json::Value());
  };
  Result<json::Value> model = member("model");
  // As older clients of Ollama write it.
  if (model->type == json::Type::kNull && request.path == "/api/show") model = member("name");
  if (model->type == json::Type::kString) {
    choice.name = model->text;
  } else if (model->type != json::Type::kNull) {
    return Error{ErrorCode::kInvalid, "must be a string, not " + json::Shown(*model), "#/model"};
  }
  const Result<json::Value> keep = member("keep_alive");
  if (keep->type == json::Type::kNull) return choice;
  choice.keep_alive = KeepAliveOf(*keep);
  if (!choice.keep_alive) {
    return Error{ErrorCode::kInvalid, std::string(kKeepAlive) + ", not " + json::Shown(*keep),
                 "#/keep_alive"};
  }
  return choice;
}

}  // namespace pawl::server
