// A node that is missing or of the wrong type reads as an empty one, so what is below it reads as
// defaults and says nothing more: one mistake, one message.
#include "src/text/json_node.h"

#include <algorithm>
#include <charconv>

namespace pawl {

void LoadErrors::Add(ErrorCode code, std::string message, std::string place) {
  if (!first_) first_ = Error{code, std::move(message), std::move(place)};
}

JsonNode JsonNode::Member(std::string_view name) const {
  return JsonNode(value_ == nullptr ? nullptr : value_->Find(name),
                  json::PointerJoin(pointer_, name), errors_);
}

JsonNode JsonNode::Item(size_t i) const {
  const bool there = value_ != nullptr && i < value_->items.size();
  return JsonNode(there ? &value_->items[i] : nullptr,
                  json::PointerJoin(pointer_, std::to_string(i)), errors_);
}

size_t JsonNode::ArraySize() const {
  if (present() && value_->type == json::Type::kArray) return value_->items.size();
  WrongType("an array");
  return 0;
}

void JsonNode::OnlyMembers(std::initializer_list<std::string_view> names) const {
  if (!IsObject()) return WrongType("an object");
  for (const auto& [name, value] : value_->members) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      Member(name).Unsupported("unknown member");
    }
  }
}

void JsonNode::WrongType(const char* wanted) const {
  Fail(ErrorCode::kInvalid, value_ == nullptr ? std::string("missing, must be ") + wanted
                                              : std::string("must be ") + wanted + ", not " +
                                                    json::TypeName(value_->type));
}

const std::string& JsonNode::String() const {
  static const std::string kEmpty;
  if (IsString()) return value_->text;
  WrongType("a string");
  return kEmpty;
}

bool JsonNode::Bool() const {
  if (value_ != nullptr && value_->is_bool()) return value_->type == json::Type::kTrue;
  WrongType("true or false");
  return false;
}

int64_t JsonNode::Integer() const {
  int64_t out = 0;
  if (present() && value_->type == json::Type::kNumber) {
    const std::string& text = value_->text;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (status == std::errc() && end == text.data() + text.size()) return out;
  }
  WrongType("a whole number");
  return 0;
}

std::string JsonNode::StringOr(std::string_view otherwise) const {
  return present() ? String() : std::string(otherwise);
}
bool JsonNode::BoolOr(bool otherwise) const { return present() ? Bool() : otherwise; }
int64_t JsonNode::IntegerOr(int64_t otherwise) const { return present() ? Integer() : otherwise; }

}  // namespace pawl
