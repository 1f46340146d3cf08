// What the text of a parameter means as JSON, by the schema of the parameters: a string stands
// there as it is, so "7" is a string or a number by what the schema allows.
//
//   const json::Value* schema = ParameterSchema(parameters, "days");   // nullptr: anything
//   std::string json = ParameterJson(parameters, schema, "7");
//
// Thread safety: no shared state.
#ifndef PAWL_SRC_ENGINE_ARGUMENT_VALUE_H_
#define PAWL_SRC_ENGINE_ARGUMENT_VALUE_H_

#include <string>
#include <string_view>

#include "src/base/json.h"

namespace pawl {

// Types that a schema allows, as far as its own keywords, references within the document and
// unions of schemas say.
struct TypeSet {
  bool string = true, object = true, array = true, null = true, other = true;
};
TypeSet TypesOf(const json::Value& root, const json::Value* schema);

// The schema of a key: of "properties", else of "additionalProperties"; nullptr: anything.
const json::Value* ParameterSchema(const json::Value& root, const json::Value* object,
                                   std::string_view key);
// The schema of a list's items; nullptr: anything.
const json::Value* ItemSchema(const json::Value& root, const json::Value* array);

std::string ParameterJson(const json::Value& root, const json::Value* schema,
                          std::string_view text);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_ARGUMENT_VALUE_H_
