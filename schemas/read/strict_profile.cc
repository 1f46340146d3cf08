// A walk through the places where schemas stand, with a list of the keywords that may stand there.
// Everything not on the list is refused, so that a schema that passes says nothing outside of the
// profile; texts inside of enum, const, default and examples are data and are not looked into.
//
// The rules are those of OpenAI's guide "Structured Outputs", section "Supported schemas", in the
// edition of August 2026. Where the guide leaves a question open, docs/json_schema.md says how it
// is answered here.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "schemas/read/reader_internal.h"
#include "schemas/read/references.h"

namespace pawl::schema {
namespace {

using json::Type;
using json::Value;

constexpr size_t kMaxProperties = 5'000;
constexpr int kMaxObjectLevels = 10;
constexpr size_t kMaxNameCharacters = 120'000;
constexpr size_t kMaxEnumValues = 1'000;
constexpr size_t kLargeEnum = 250;  // more strings than this have a limit of their own
constexpr size_t kMaxLargeEnumCharacters = 15'000;

bool IsConstraint(std::string_view keyword) {
  static const std::unordered_set<std::string_view> kNames = {
      "type",       "enum",     "const",           "anyOf",    "$ref",
      "items",      "required", "minItems",        "maxItems", "additionalProperties",
      "properties", "pattern",  "format",          "minimum",  "exclusiveMinimum",
      "multipleOf", "maximum",  "exclusiveMaximum"};
  return kNames.contains(keyword);
}

bool IsAllowed(std::string_view keyword, bool root) {
  return IsConstraint(keyword) || IsAnnotation(keyword) || keyword == "$defs" ||
         keyword == "definitions" || (root && (keyword == "$schema" || keyword == "$id"));
}

// What to write instead of a keyword that the profile does not have.
std::string_view Instead(std::string_view keyword) {
  constexpr std::string_view kCases = "write an anyOf with a branch for each case";
  constexpr std::string_view kNames = "name every key under properties";
  constexpr std::string_view kTuple = "write an object with a property for each place";
  constexpr std::string_view kItems = "leave it out; items, minItems and maxItems are there";
  constexpr std::string_view kLength = R"(write a pattern such as ^[\s\S]{1,20}$)";
  constexpr std::string_view kReference = R"(refer to schemas by "#" or "#/$defs/NAME")";
  static const std::unordered_map<std::string_view, std::string_view> kInstead = {
      {"allOf", "write what its parts say into one schema"},
      {"oneOf", "write anyOf"},
      {"not", "write what is allowed, by type, enum or anyOf"},
      {"if", kCases},
      {"then", kCases},
      {"else", kCases},
      {"dependentRequired", kCases},
      {"dependentSchemas", kCases},
      {"dependencies", kCases},
      {"patternProperties", kNames},
      {"propertyNames", kNames},
      {"minProperties", kNames},
      {"maxProperties", kNames},
      {"unevaluatedProperties", R"(write "additionalProperties": false)"},
      {"prefixItems", kTuple},
      {"additionalItems", kTuple},
      {"unevaluatedItems", kTuple},
      {"uniqueItems", kItems},
      {"contains", kItems},
      {"minContains", kItems},
      {"maxContains", kItems},
      {"minLength", kLength},
      {"maxLength", kLength},
      {"$id", kReference},
      {"id", kReference},
      {"$anchor", kReference},
      {"$dynamicAnchor", kReference},
      {"$dynamicRef", kReference},
      {"$recursiveAnchor", kReference},
      {"$recursiveRef", kReference}};
  const auto it = kInstead.find(keyword);
  return it == kInstead.end() ? "leave it out" : it->second;
}

bool IsListedFormat(const std::string& format) {
  static const std::unordered_set<std::string_view> kFormats = {
      "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"};
  return kFormats.contains(format);
}

// Code points of UTF-8: all bytes but those that go on with one.
size_t CharacterCount(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// The type is `name`, or may be.
bool HasType(const Value& schema, std::string_view name) {
  const Value* type = schema.Find("type");
  if (type == nullptr) return false;
  const auto is = [&](const Value& v) { return v.type == Type::kString && v.text == name; };
  return is(*type) || std::any_of(type->items.begin(), type->items.end(), is);
}

class Checker {
 public:
  Checker(const Value& document, const JsonSchemaOptions& options)
      : document_(document), options_(options) {}

  Status Check() {
    if (Status status = Language(); !status.ok()) return status;
    if (Status status = Root(); !status.ok()) return status;
    if (Status status = Schema(document_, Path{}, 0); !status.ok()) return status;
    return Targets();
  }

 private:
  static Status Refuse(const Path& path, const std::string& message) {
    return Error{ErrorCode::kUnsupported, "strict profile: " + message, path.ToString()};
  }

  // A dialect that we do not know could mean something else by each keyword.
  Status Language() {
    std::string name =
        options_.force_dialect.empty() ? options_.default_dialect : options_.force_dialect;
    const Value* named = document_.Find("$schema");
    const bool counts = named != nullptr && options_.force_dialect.empty();
    if (counts && named->type == Type::kString) name = named->text;
    dialect_ = DialectOf(name);
    const Path root;
    if (!dialect_ && counts)
      return Refuse({&root, "$schema"}, "the dialect must be a known one; leave it out");
    return {};
  }

  Status Root() {
    const Value* type = document_.Find("type");
    if (type != nullptr && type->type == Type::kString && type->text == "object") {
      const Path root;
      if (document_.Find("anyOf") == nullptr) return {};
      return Refuse({&root, "anyOf"},
                    "the root must not be a choice; put the anyOf under a property of it");
    }
    return Refuse({},
                  R"(the root must be an object; write "type": "object" and put the value under a )"
                  "property of it");
  }

  // `objects`: how many objects there are around.
  Status Schema(const Value& schema, const Path& path, int objects) {
    if (schema.is_bool()) {
      return Refuse(path, "true and false say nothing of the value; write a schema with its type");
    }
    if (schema.type != Type::kObject) return {};
    schemas_.insert(&schema);
    if (Status status = Keywords(schema, path); !status.ok()) return status;
    const bool described =
        std::any_of(schema.members.begin(), schema.members.end(), [](const json::Member& member) {
          const std::string& name = member.first;
          return name == "type" || name == "enum" || name == "const" || name == "anyOf" ||
                 name == "$ref";
        });
    if (!described)
      return Refuse(path, "a schema must say what the value is; write its type (or an anyOf)");
    const bool object = HasType(schema, "object") || schema.Find("properties") != nullptr ||
                        schema.Find("required") != nullptr ||
                        schema.Find("additionalProperties") != nullptr;
    if (object) {
      if (++objects > kMaxObjectLevels) {
        return Refuse(path, "objects must not be nested deeper than " +
                                std::to_string(kMaxObjectLevels) +
                                " levels; write a flatter schema");
      }
      if (Status status = Object(schema, path); !status.ok()) return status;
    }
    if (HasType(schema, "array") && schema.Find("items") == nullptr)
      return Refuse(path, "an array must say what its items are; write items");
    return Parts(schema, path, objects);
  }

  // The keywords of one schema, each by itself.
  Status Keywords(const Value& schema, const Path& path) {
    for (const auto& [name, value] : schema.members) {
      const Path at{&path, name};
      if (!IsAllowed(name, &schema == &document_) ||
          (name == "const" && dialect_ == Dialect::kDraft4)) {
        return Refuse(at, json::Quote(name) + " must not be used; " +
                              std::string(name == "const" ? "write an enum" : Instead(name)));
      }
      Status status;
      if (name == "format" && value.type == Type::kString && !IsListedFormat(value.text)) {
        status = Refuse(at, "the format " + json::Quote(value.text) +
                                " must not be used; write a pattern, or one of date-time, time, "
                                "date, duration, email, hostname, ipv4, ipv6 and uuid");
      } else if (name == "enum" && value.type == Type::kArray) {
        status = Enum(value, at);
      } else if (name == "const") {
        status = Characters(CharactersOf(value), at);
      } else if (name == "items" && value.type == Type::kArray) {
        status = Refuse(
            at, "items must be one schema for all items; " + std::string(Instead("prefixItems")));
      } else if (name == "$ref") {
        status = Reference(schema, value, path);
      }
      if (!status.ok()) return status;
    }
    return {};
  }

  Status Object(const Value& schema, const Path& path) {
    const Value* additional = schema.Find("additionalProperties");
    if (additional == nullptr)
      return Refuse(path, R"(an object must be closed; write "additionalProperties": false)");
    if (additional->type != Type::kFalse) {
      return Refuse({&path, "additionalProperties"},
                    "must be false; name every key under properties");
    }
    const Value* properties = schema.Find("properties");
    const Value* required = schema.Find("required");
    std::unordered_set<std::string_view> names;
    if (required != nullptr) {
      for (const Value& name : required->items) {
        if (name.type == Type::kString) names.insert(name.text);
      }
    }
    if (properties != nullptr && properties->type == Type::kObject) {
      const Path at{&path, "properties"};
      for (const auto& [name, value] : properties->members) {
        if (names.erase(name) > 0) continue;
        return Refuse({&at, name},
                      "every property must be required; add it to required (where it may be "
                      "missing, let it be null)");
      }
      properties_ += properties->size();
      if (properties_ > kMaxProperties) {
        return Refuse(at, "there must not be more than " + std::to_string(kMaxProperties) +
                              " properties in all; split the schema");
      }
    }
    if (required == nullptr || names.empty()) return {};
    // The first of those left over, in the order of the schema.
    const auto left = std::find_if(required->items.begin(), required->items.end(),
                                   [&](const Value& name) { return names.contains(name.text); });
    return Refuse({&path, "required"}, "names " + json::Quote(left->text) +
                                           ", which is no property; add it to properties");
  }

  // The schemas inside of `schema`.
  Status Parts(const Value& schema, const Path& path, int objects) {
    for (const auto& [name, value] : schema.members) {
      const Path at{&path, name};
      if (name == "items") {
        if (Status status = Schema(value, at, objects); !status.ok()) return status;
      } else if (name == "anyOf") {
        for (size_t i = 0; i < value.items.size(); ++i) {
          if (Status status = Schema(value.items[i], {&at, {}, i}, objects); !status.ok())
            return status;
        }
      } else if (name == "properties" || name == "$defs" || name == "definitions") {
        // A definition stands nowhere in particular: its levels are counted from itself.
        const int around = name == "properties" ? objects : 0;
        for (const auto& [key, inner] : value.members) {
          const Path place{&at, key};
          if (Status status = Characters(CharacterCount(key), place); !status.ok()) return status;
          if (Status status = Schema(inner, place, around); !status.ok()) return status;
        }
      }
    }
    return {};
  }

  Status Enum(const Value& values, const Path& path) {
    size_t characters = 0;
    bool strings = true;
    for (const Value& value : values.items) {
      characters += CharactersOf(value);
      strings = strings && value.type == Type::kString;
    }
    enum_values_ += values.size();
    if (enum_values_ > kMaxEnumValues) {
      return Refuse(path, "there must not be more than " + std::to_string(kMaxEnumValues) +
                              " enum values in all; write a string with a pattern");
    }
    if (strings && values.size() > kLargeEnum && characters > kMaxLargeEnumCharacters) {
      return Refuse(path, "the strings of an enum with more than " + std::to_string(kLargeEnum) +
                              " values must not have more than " +
                              std::to_string(kMaxLargeEnumCharacters) +
                              " characters; write shorter or fewer ones");
    }
    return Characters(characters, path);
  }

  static size_t CharactersOf(const Value& value) {
    return CharacterCount(value.type == Type::kString ? value.text : json::Dump(value));
  }

  Status Characters(size_t more, const Path& path) {
    characters_ += more;
    if (characters_ <= kMaxNameCharacters) return {};
    return Refuse(path,
                  "names of properties and definitions and values of enum and const must "
                  "not have more than " +
                      std::to_string(kMaxNameCharacters) +
                      " characters in all; write shorter or fewer ones");
  }

  Status Reference(const Value& schema, const Value& reference, const Path& path) {
    for (const auto& [name, value] : schema.members) {
      if (name == "$ref" || !IsConstraint(name)) continue;
      return Refuse({&path, name},
                    "nothing that constrains may stand beside $ref; write it into the schema that "
                    "the reference leads to");
    }
    if (reference.type != Type::kString) return {};
    const std::string place = Path{&path, "$ref"}.ToString();
    if (!reference.text.starts_with('#'))
      return Error{ErrorCode::kUnsupported,
                   "strict profile: a reference must stay in the schema; copy what it leads to "
                   "into $defs",
                   place};
    references_.push_back({&reference, place});
    return {};
  }

  // References lead to places that were checked, not into data.
  Status Targets() {
    if (references_.empty() || !dialect_) return {};
    References index(document_, *dialect_, options_);
    for (const auto& [reference, place] : references_) {
      const auto target = index.Resolve(index.root(), reference->text);
      if (!target.ok() || schemas_.contains(target->value)) continue;
      return Error{ErrorCode::kUnsupported,
                   "strict profile: the reference must lead to a schema; put what it leads to "
                   "into $defs",
                   place};
    }
    return {};
  }

  const Value& document_;
  const JsonSchemaOptions& options_;
  std::optional<Dialect> dialect_;
  std::unordered_set<const Value*> schemas_;  // those checked
  struct Referring {
    const Value* reference;
    std::string place;
  };
  std::vector<Referring> references_;
  size_t properties_ = 0;
  size_t enum_values_ = 0;
  size_t characters_ = 0;
};

}  // namespace

Status CheckStrictProfile(const json::Value& document, const JsonSchemaOptions& options) {
  return Checker(document, options).Check();
}

}  // namespace pawl::schema
