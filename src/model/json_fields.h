// Reading typed members of a parsed JSON file: absent is a value, of the wrong type is an error
// that names the file and the JSON Pointer.
#ifndef PAWL_SRC_MODEL_JSON_FIELDS_H_
#define PAWL_SRC_MODEL_JSON_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl {

// The number as an integer; nullopt when it has a fraction, an exponent or does not fit.
std::optional<int64_t> AsInt(const json::Value& value);
// The number as a finite double; nullopt otherwise.
std::optional<double> AsDouble(const json::Value& value);

// The value, cut where it is too long for a message.
std::string Shown(const json::Value& value);

// An object in a file, `pointer` away from its root.
class JsonFields {
 public:
  JsonFields(const json::Value& object, std::string path, std::string pointer = "")
      : object_(object), path_(std::move(path)), pointer_(std::move(pointer)) {}

  // The member, nullptr when absent or null.
  const json::Value* Find(std::string_view key) const;
  // nullopt when absent or null. Errors: kInvalid.
  Result<std::optional<int64_t>> Int(std::string_view key, int64_t low, int64_t high) const;
  Result<std::optional<double>> Double(std::string_view key) const;
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<std::string>> String(std::string_view key) const;

  Error ErrorAt(ErrorCode code, std::string_view key, std::string message) const;
  const std::string& path() const { return path_; }

 private:
  const json::Value& object_;
  std::string path_;
  std::string pointer_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_JSON_FIELDS_H_
