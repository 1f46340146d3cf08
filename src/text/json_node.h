// JsonNode: reading the parts of a tokenizer.json, each with its JSON Pointer.
//
// Readers of many optional members would drown in error checks, so errors are collected: the first
// one is kept in the LoadErrors that all nodes of a file share, reading goes on with defaults, and
// whoever started looks at it once at the end.
#ifndef PAWL_SRC_TEXT_JSON_NODE_H_
#define PAWL_SRC_TEXT_JSON_NODE_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl {

// How deep steps of a tokenizer.json may contain others.
inline constexpr int kMaxNesting = 16;

class LoadErrors {
 public:
  void Add(ErrorCode code, std::string message, std::string place);
  bool any() const { return first_.has_value(); }
  const Error& first() const { return *first_; }

 private:
  std::optional<Error> first_;
};

class JsonNode {
 public:
  // `value` may be nullptr: an absent member.
  JsonNode(const json::Value* value, std::string pointer, LoadErrors* errors)
      : value_(value), pointer_(std::move(pointer)), errors_(errors) {}

  // Neither absent nor null.
  bool present() const { return value_ != nullptr && value_->type != json::Type::kNull; }
  bool IsString() const { return present() && value_->type == json::Type::kString; }
  bool IsObject() const { return present() && value_->type == json::Type::kObject; }
  const json::Value* value() const { return value_; }
  const std::string& pointer() const { return pointer_; }
  LoadErrors* errors() const { return errors_; }

  JsonNode Member(std::string_view name) const;
  JsonNode Item(size_t i) const;
  // Number of items; 0, with an error, when this is no array.
  size_t ArraySize() const;
  // An error unless this is an object whose members are all among `names`.
  void OnlyMembers(std::initializer_list<std::string_view> names) const;

  // These report an error and return a default when the value is absent or of another type.
  const std::string& String() const;
  bool Bool() const;
  int64_t Integer() const;
  // These return `otherwise` when the value is absent or null.
  std::string StringOr(std::string_view otherwise) const;
  bool BoolOr(bool otherwise) const;
  int64_t IntegerOr(int64_t otherwise) const;

  void Fail(ErrorCode code, std::string message) const {
    errors_->Add(code, std::move(message), pointer_);
  }
  void Unsupported(std::string message) const { Fail(ErrorCode::kUnsupported, std::move(message)); }

 private:
  void WrongType(const char* wanted) const;

  const json::Value* value_;
  std::string pointer_;
  LoadErrors* errors_;
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_JSON_NODE_H_
