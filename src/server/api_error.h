// ApiError: what is wrong with a request, in the shape that OpenAI's clients read.
//
//   {"error": {"message": "#/response_format/json_schema/schema/type: ...", "type":
//    "invalid_request_error", "param": "response_format.json_schema.schema.type", "code":
//    "invalid"}}
#ifndef PAWL_SRC_SERVER_API_ERROR_H_
#define PAWL_SRC_SERVER_API_ERROR_H_

#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/server/http.h"

namespace pawl::server {

struct ApiError {
  int status = 400;
  std::string message = {};
  std::string param = {};  // a JSON Pointer into the request ("/tools/0/function"), or empty
  std::string code = {};   // a word for programs; empty: by the status
  int retry_seconds = 0;   // of Retry-After, where it is not 0

  std::string type() const;
  // As clients and the log get them: what a request has in them of any length is cut.
  std::string ShortMessage() const;
  std::string ShortParam() const;
  // {"message": ..., "type": ..., "param": ..., "code": ...}
  std::string Object() const;
  // {"error": {...}}
  std::string Body() const { return "{\"error\":" + Object() + "}"; }
  HttpReply ToReply() const;
};

// An error of the engine at a place of the request: `pointer` is where what failed stands in it
// ("/response_format/json_schema/schema"); a JSON Pointer in the error's own place is appended.
// What memory ran out for is 503: it may be there the next time.
ApiError FromError(const Error& error, std::string_view pointer);

// The text, or its beginning and how many bytes it has where these are more than `most`.
std::string Shortened(std::string_view text, size_t most);
inline constexpr size_t kMostMessageBytes = 1000, kMostPointerBytes = 300;

// For an exception that was caught (src/base/failure.h). Throws nothing, also without memory.
ApiError FailureError(const Error& error) noexcept;

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_API_ERROR_H_
