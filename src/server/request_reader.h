// RequestReader: typed members of a JSON object. The first thing that is wrong is kept, with its
// JSON Pointer; everything after that reads nothing.
//
//   RequestReader in(body, "#");
//   int n = 1;
//   in.Int("n", n, 1, 64);
//   if (!in.ok()) return in.error();            // "#/n: must be a whole number from 1 to 64"
//
// A member that is null counts as absent, as in the APIs that this server speaks.
#ifndef PAWL_SRC_SERVER_REQUEST_READER_H_
#define PAWL_SRC_SERVER_REQUEST_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::server {

// The number as a whole one; nullopt where it is none (1.5, 1e30). "2.0" is 2.
std::optional<int64_t> WholeOf(const json::Value& value);
std::optional<double> NumberOf(const json::Value& value);

class RequestReader {
 public:
  // `pointer`: where the object stands in the request. What is no object is an error.
  RequestReader(const json::Value& object, std::string pointer);

  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }
  void Fail(std::string_view name, std::string message, ErrorCode code = ErrorCode::kInvalid);
  void Fail(const Error& error);

  // nullptr: absent, null, or something is wrong already.
  const json::Value* Find(std::string_view name) const;
  const json::Value* FindString(std::string_view name);
  const json::Value* FindArray(std::string_view name);
  const json::Value* FindObject(std::string_view name);

  // Each returns whether the member was there and good.
  bool Int(std::string_view name, int& value, int least, int most);
  bool Int64(std::string_view name, int64_t& value);
  bool Float(std::string_view name, float& value, double least, double most);
  bool Bool(std::string_view name, bool& value);
  bool String(std::string_view name, std::string& value);
  // A string, or a list of them.
  bool Strings(std::string_view name, std::vector<std::string>& values, size_t most);

  std::string PointerOf(std::string_view name) const { return json::PointerJoin(pointer_, name); }
  const std::string& pointer() const { return pointer_; }
  const json::Value& object() const { return object_; }
  // The members that were looked for and are there.
  const std::vector<const json::Value*>& found() const { return found_; }
  // The pointers, without '#', of those that are neither among these nor among `others`, nor null.
  // The first of them, where there are many.
  static constexpr size_t kMostUnread = 256;
  std::vector<std::string> Unread(const std::vector<const json::Value*>& others = {}) const;

 private:
  const json::Value& object_;
  const std::string pointer_;
  std::optional<Error> error_;
  mutable std::vector<const json::Value*> found_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_REQUEST_READER_H_
