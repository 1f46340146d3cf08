// The fields of JsonSchemaOptions, listed once: what Python and the C functions read, what a
// grammar is serialized with, and the key under which it is kept all follow from this list.
//
//   VisitOptions(options, [](const char* name, auto& field) { ... });
//
// A field that the list forgets does not compile (EveryOptionIsListed), so no form can forget it
// and no cache can serve a grammar of other options.
#ifndef PAWL_GRAMMAR_LANGUAGES_OPTION_FIELDS_H_
#define PAWL_GRAMMAR_LANGUAGES_OPTION_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "pawl/compiler.h"
#include "src/base/names.h"

namespace pawl {

// In the order of the struct, which is also that of the bytes of a serialized grammar: numbers and
// choices are a value, strings a text. resolve_document, a function, is the one further field.
#define PAWL_JSON_SCHEMA_FIELDS(value, text)                                                    \
  value(order) value(whitespace) value(max_whitespace) text(item_separator) text(key_separator) \
      text(default_dialect) text(force_dialect) value(assert_formats) value(canonical_spelling) \
          value(max_digits) value(max_decimals) value(max_string) text(excluded_texts)          \
              value(ascii) value(additional_properties) value(allow_exponents) value(profile)   \
                  value(list_annotations) value(max_documents) value(max_schema_bytes)          \
                      value(max_depth) value(step_fuel) value(keys) value(nulls)                \
                          value(open_if_unsatisfiable) text(source) value(verbatim)             \
                              value(bind_source)

// As many names as fields, and no more: neither too few nor too many compile.
inline void EveryOptionIsListed(JsonSchemaOptions& options) {
#define PAWL_NAME_FIELD(name) name##_,
  [[maybe_unused]] auto& [PAWL_JSON_SCHEMA_FIELDS(PAWL_NAME_FIELD, PAWL_NAME_FIELD) resolve_] =
      options;
#undef PAWL_NAME_FIELD
}

template <typename Options, typename Visitor>
void VisitOptions(Options& options, Visitor&& visit) {
#define PAWL_VISIT_FIELD(name) visit(#name, options.name);
  PAWL_JSON_SCHEMA_FIELDS(PAWL_VISIT_FIELD, PAWL_VISIT_FIELD)
#undef PAWL_VISIT_FIELD
}

// All options: numbers as text, texts with their lengths, so that no two settings have the same
// key. resolve_document, a function, is not in it.
inline std::string KeyOf(const JsonSchemaOptions& options) {
  std::string key;
  VisitOptions(options, [&key]<typename Field>(const char*, const Field& field) {
    if constexpr (std::is_same_v<Field, std::string>) {
      key += std::to_string(field.size()) + ' ' + field;
    } else {
      key += std::to_string(static_cast<int64_t>(field)) + ' ';
    }
  });
  return key;
}

// The names of a choice, in the order of its values.
inline std::span<const char* const> OptionNames(JsonSchemaOptions::Order) {
  static constexpr const char* kNames[] = {"schema", "any"};
  return kNames;
}
inline std::span<const char* const> OptionNames(JsonSchemaOptions::Whitespace) {
  static constexpr const char* kNames[] = {"compact", "bounded", "any"};
  return kNames;
}
inline std::span<const char* const> OptionNames(JsonSchemaOptions::Keys) {
  static constexpr const char* kNames[] = {"required", "all"};
  return kNames;
}
inline std::span<const char* const> OptionNames(JsonSchemaOptions::Nulls) {
  static constexpr const char* kNames[] = {"keep", "drop"};
  return kNames;
}
inline std::span<const char* const> OptionNames(JsonSchemaOptions::Verbatim) {
  static constexpr const char* kNames[] = {"none", "strings", "all"};
  return kNames;
}
inline std::span<const char* const> OptionNames(JsonSchemaOptions::Profile) {
  static constexpr const char* kNames[] = {"full", "strict"};
  return kNames;
}

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_OPTION_FIELDS_H_
