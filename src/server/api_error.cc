// OpenAI's clients try again on 408, 409, 429 and 5xx unless the header x-should-retry says no. A
// request that is wrong stays wrong, so everything from 400 on says no but what time can heal.
#include "src/server/api_error.h"

#include "src/base/failure.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::server {

std::string ApiError::type() const {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 408:
      return "timeout_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string Shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, CompleteUtf8Prefix(text.substr(0, most)))) + "... (" +
         std::to_string(text.size()) + " bytes)";
}

std::string ApiError::ShortMessage() const { return Shortened(message, kMostMessageBytes); }
std::string ApiError::ShortParam() const { return Shortened(param, kMostPointerBytes); }

std::string ApiError::Object() const {
  std::string word = code;
  if (word.empty() && status == 401) word = "invalid_api_key";
  if (word.empty() && status == 429) word = "queue_full";
  if (word.empty() && status == 413) word = "too_large";
  std::string text = ShortMessage();
  if (!param.empty()) text = "#" + ShortParam() + ": " + text;
  return "{\"message\":" + json::Quote(text) + ",\"type\":\"" + type() +
         "\",\"param\":" + (param.empty() ? "null" : json::Quote(ShortParam())) +
         ",\"code\":" + (word.empty() ? "null" : json::Quote(word)) + "}";
}

HttpReply ApiError::ToReply() const {
  HttpReply reply;
  reply.status = status;
  reply.body = Body();
  const bool again = status == 408 || status == 429 || status == 503;
  reply.headers.emplace_back("x-should-retry", again ? "true" : "false");
  if (retry_seconds > 0) reply.headers.emplace_back("retry-after", std::to_string(retry_seconds));
  if (status == 401) reply.headers.emplace_back("www-authenticate", "Bearer");
  return reply;
}

ApiError FromError(const Error& error, std::string_view pointer) {
  if (IsOutOfMemory(error)) {
    return {.status = 503, .message = error.message, .code = "out_of_memory", .retry_seconds = 1};
  }
  ApiError out;
  out.code = ErrorCodeName(error.code);
  out.status = error.code == ErrorCode::kInternal || error.code == ErrorCode::kIo ? 500 : 400;
  if (pointer.starts_with('#')) pointer.remove_prefix(1);
  out.param = pointer;
  out.message = error.message;
  if (error.place.starts_with("#")) {
    out.param += error.place.substr(1);
  } else if (!error.place.empty()) {
    out.message = error.place + ": " + error.message;
  }
  return out;
}

ApiError FailureError(const Error& error) noexcept {
  try {
    return FromError(error, "");
  } catch (...) {
    return {.status = 503, .message = std::string(kMemoryRanOut)};
  }
}

}  // namespace pawl::server
