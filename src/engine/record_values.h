// The values of a JSON text with their places in it, and the choices that a schema gives for each.
//
//   const std::optional<std::vector<ValuePlace>> places = ValuesIn(R"({"a":[1,2]})");
//   (*places)[1].pointer                                // "/a/1"
//   ChoicesAt(schema, "/a/1")                           // the texts of its enum
#ifndef PAWL_SRC_ENGINE_RECORD_VALUES_H_
#define PAWL_SRC_ENGINE_RECORD_VALUES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"

namespace pawl {

// A string, number, boolean or null, or an empty list or object.
struct ValuePlace {
  std::string pointer;
  size_t from = 0;            // behind the colon, the comma or the bracket in front of it
  size_t begin = 0, end = 0;  // of the value itself
};

// Those of the JSON value with which the text begins. `end`: behind this value. nullopt: the text
// begins with no JSON.
std::optional<std::vector<ValuePlace>> ValuesIn(std::string_view text, size_t* end = nullptr);

// What the $ref of a schema leads to, where that is a JSON pointer into the same document, `root`;
// otherwise nullptr.
const json::Value* ReferenceTarget(const json::Value& root, const json::Value& schema);

// JSON texts of the values that the schema gives for the place of a record, where it lists them
// (enum, const, boolean, null). nullopt: it does not, or not in a form that is followed here.
std::optional<std::vector<std::string>> ChoicesAt(const json::Value& schema,
                                                  std::string_view pointer);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_RECORD_VALUES_H_
