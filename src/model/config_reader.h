// Reading one object of config.json: the first error of a run of reads is kept, so that each read
// stays one line, and every key asked for is remembered, so that what nobody asked for is found.
#ifndef PAWL_SRC_MODEL_CONFIG_READER_H_
#define PAWL_SRC_MODEL_CONFIG_READER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "src/model/json_fields.h"

namespace pawl {

class ConfigReader {
 public:
  // `fields` and the object it reads must outlive the reader.
  explicit ConfigReader(const JsonFields& fields, const json::Value& object)
      : fields_(fields), object_(object) {}

  int RequiredInt(std::string_view key, int64_t high);
  int Int(std::string_view key, int64_t high, int64_t otherwise);
  // A number above zero; an error when absent and there is no `otherwise`.
  double Positive(std::string_view key, std::optional<double> otherwise);
  // nullopt when null; `absent` when the key is not there at all.
  std::optional<double> PositiveOrNull(std::string_view key, std::optional<double> absent);
  bool Bool(std::string_view key, bool otherwise);
  std::string String(std::string_view key, std::string otherwise);
  // The member, nullptr when absent or null.
  const json::Value* Find(std::string_view key);
  // The key is there, be it null.
  bool Has(std::string_view key) const { return object_.Find(key) != nullptr; }
  // A setting with one supported value: anything else is an error that says so.
  void ExpectString(std::string_view key, std::string_view supported, std::string_view otherwise);
  void ExpectNothing(std::string_view key);
  // The key is known and changes nothing.
  void Ignore(std::string_view key) { used_.emplace(key); }

  void Fail(ErrorCode code, std::string_view key, std::string message);
  void Fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  // kUnsupported for the first member that was not asked for and says something (not null, false or
  // empty). `owner`: "LlamaForCausalLM", for the message.
  void RefuseTheRest(std::string_view owner);

  const std::optional<Error>& error() const { return error_; }
  const JsonFields& fields() const { return fields_; }

 private:
  template <typename T>
  std::optional<T> Take(std::string_view key, Result<std::optional<T>> result);

  const JsonFields& fields_;
  const json::Value& object_;
  std::set<std::string, std::less<>> used_;
  std::optional<Error> error_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_CONFIG_READER_H_
