// Which of several models a request is for.
#ifndef PAWL_SRC_SERVER_MODEL_CHOICE_H_
#define PAWL_SRC_SERVER_MODEL_CHOICE_H_

#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/base/json.h"
#include "src/server/http.h"

namespace pawl::server {

struct ModelChoice {
  std::string name;  // empty: the request names none
  std::optional<double> keep_alive = std::nullopt;
};

// The members `model` and `keep_alive` of a body, `model` of a query where there is no body. The
// rest of the body is not looked at. Errors: place is a JSON Pointer into the request.
Result<ModelChoice> ChoiceOf(const HttpRequest& request);

// A part of a path with %41 read as "A".
std::string PercentDecoded(std::string_view text);

// Seconds: a number, or a text such as "90", "5m", "1h30m" or "500ms"; negative, or over 30
// years: for ever, which is -1. nullopt for anything else.
std::optional<double> KeepAliveOf(const json::Value& value);
std::optional<double> KeepAliveOf(std::string_view text);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_MODEL_CHOICE_H_
