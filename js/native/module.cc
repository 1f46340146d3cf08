// What JavaScript needs besides the functions of pawl.h. It knows no offsets of structs with many
// fields, so options of schemas are set by name; the names are the fields of JsonSchemaOptions
// (grammar/languages/option_fields.h). Texts come back in memory that the caller frees.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <list>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "grammar/languages/option_fields.h"
#include "js/native/copied.h"
#include "src/capi/handles.h"

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

struct pawl_wasm_options {
  pawl_json_schema_options options;
  std::list<std::string> texts;  // stay where they are
};

namespace {

pawl_status NoSuchOption(pawl_error** error, std::string_view name) {
  return BadArgument(error, std::string(name), "is no option of JSON Schemas");
}

// A field of JsonSchemaOptions that is a number, a flag or a choice.
template <typename Field, typename Given>
pawl_status SetNumber(const char* name, Given& given, double value, pawl_error** error) {
  constexpr double kExact = 9007199254740992.0;
  const double most = sizeof(Given) == 4 ? 2147483647.0 : kExact;
  if (std::is_enum_v<Field>) return BadArgument(error, name, "must be a string");
  if (!(value >= 0) || value > most || value != std::floor(value))
    return BadArgument(error, name, "must be a whole number from 0 on");
  given = static_cast<Given>(value);
  return PAWL_OK;
}

template <typename Field, typename Given>
pawl_status SetChoice(const char* name, Given& given, std::string_view text, pawl_error** error) {
  if constexpr (std::is_enum_v<Field>) {
    std::string names;
    Given value = 0;
    for (const char* const known : OptionNames(Field())) {
      if (text == known) {
        given = value;
        return PAWL_OK;
      }
      names += (names.empty() ? "" : ", ") + std::string(known);
      ++value;
    }
    return BadArgument(error, name, "must be one of " + names);
  } else {
    return BadArgument(error, name, "must be a number or a boolean");
  }
}

}  // namespace

extern "C" {

pawl_status pawl_wasm_options_create(pawl_wasm_options** out, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    *out = new pawl_wasm_options{};
    pawl_json_schema_options_init(&(*out)->options, sizeof(pawl_json_schema_options));
    return PAWL_OK;
  });
}
const pawl_json_schema_options* pawl_wasm_options_get(const pawl_wasm_options* options) {
  return &options->options;
}
void pawl_wasm_options_free(pawl_wasm_options* options) { delete options; }

// Numbers and truth values.
pawl_status pawl_wasm_options_set_number(pawl_wasm_options* options, const char* data,
                                         size_t length, double value, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    const std::string_view name = Text(data, length);
#define PAWL_NUMBER(field)                                                                      \
  if (name == #field) {                                                                         \
    return SetNumber<decltype(JsonSchemaOptions::field)>(#field, options->options.field, value, \
                                                         error);                                \
  }
#define PAWL_NO_NUMBER(field) \
  if (name == #field) return BadArgument(error, #field, "must be a string");
    PAWL_JSON_SCHEMA_FIELDS(PAWL_NUMBER, PAWL_NO_NUMBER)
#undef PAWL_NUMBER
#undef PAWL_NO_NUMBER
    return NoSuchOption(error, name);
  });
}

// Texts, and the names of choices.
pawl_status pawl_wasm_options_set_text(pawl_wasm_options* options, const char* data, size_t length,
                                       const char* text, size_t text_length, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    const std::string_view name = Text(data, length);
    const std::string& value = options->texts.emplace_back(Text(text, text_length));
#define PAWL_CHOICE(field)                                                                      \
  if (name == #field) {                                                                         \
    return SetChoice<decltype(JsonSchemaOptions::field)>(#field, options->options.field, value, \
                                                         error);                                \
  }
#define PAWL_TEXT(field)                            \
  if (name == #field) {                             \
    options->options.field = value.data();          \
    options->options.field##_length = value.size(); \
    return PAWL_OK;                                 \
  }
    PAWL_JSON_SCHEMA_FIELDS(PAWL_CHOICE, PAWL_TEXT)
#undef PAWL_CHOICE
#undef PAWL_TEXT
    return NoSuchOption(error, name);
  });
}

// *tokens is released by the caller; NULL for none.
pawl_status pawl_wasm_encode(const pawl_vocabulary* vocabulary, const char* text, size_t length,
                             int32_t parse_special, int32_t** tokens, size_t* count,
                             pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    const Tokenizer* const tokenizer = vocabulary->data->tokenizer.get();
    if (tokenizer == nullptr)
      return BadArgument(error, "vocabulary", "has no tokenizer: it was made of tokens");
    EncodeOptions options;
    options.parse_special = parse_special != 0;
    const std::vector<TokenId> ids = tokenizer->Encode(Text(text, length), options);
    *tokens = Copied(ids.data(), ids.size());
    *count = ids.size();
    return PAWL_OK;
  });
}

// *bytes is released by the caller; NULL for none.
pawl_status pawl_wasm_decode(const pawl_vocabulary* vocabulary, const int32_t* tokens, size_t count,
                             int32_t keep_special, char** bytes, size_t* length,
                             pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    const Vocabulary& all = *vocabulary->data->vocabulary;
    const auto known = [&](TokenId id) { return id >= 0 && id < all.size(); };
    for (size_t i = 0; i < count; ++i) {
      if (known(tokens[i])) continue;
      return BadArgument(error, "tokens[" + std::to_string(i) + "]",
                         std::to_string(tokens[i]) + " is no token");
    }
    std::string text;
    if (const Tokenizer* const tokenizer = vocabulary->data->tokenizer.get()) {
      text = tokenizer->Decode({tokens, count}, keep_special != 0);
    } else {
      for (size_t i = 0; i < count; ++i) text += all.bytes(tokens[i]);
    }
    *bytes = Copied(text.data(), text.size());
    *length = text.size();
    return PAWL_OK;
  });
}

}  // extern "C"
