// What a prompt shows of a schema, and examples as the grammar writes them.
//
//   SchemaTemplate(*json::Parse(schema))      // {"name": "string", "tags": ["string"]}
//
#ifndef PAWL_SRC_ENGINE_SCHEMA_VIEW_H_
#define PAWL_SRC_ENGINE_SCHEMA_VIEW_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl {

// "auto", "template", "keys", "schema" or "none".
std::optional<SchemaView> SchemaViewNamed(std::string_view name);
const char* NameOf(SchemaView view);
inline constexpr const char* kSchemaViewNames =
    R"(must be "auto", "template", "keys", "schema" or "none")";
// "budget", "steps" or "repetition"; "" for kNothing.
const char* NameOf(ClosedBy why);

// An object with the type of each key. nullopt for a schema that names no keys, or whose template
// would be longer than 16 KiB.
std::optional<std::string> SchemaTemplate(const json::Value& schema);
// The same in short, for models that are trained on it: "name;total:number;tags[];kind:a|b", with
// descriptions of at most 60 bytes in parentheses. "" where there are no keys or it is over 2 KiB.
std::string SchemaFields(const json::Value& schema);
// The keys of the object, or of the objects of a list, that the schema describes.
std::vector<std::string> SchemaKeys(const json::Value& schema);
// The values of SchemaKeys are scalars and lists of scalars.
bool IsFlatSchema(const json::Value& schema);
// The schema describes a list of records.
bool IsListSchema(const json::Value& schema);

// A template as NuExtract has it, as a JSON Schema: {"name": "verbatim-string", "kind": ["a",
// "b"]}. Errors: kInvalid with the JSON Pointer.
Result<std::string> SchemaOfTemplate(const json::Value& given);

// A record as the grammar writes it: in its order of keys, with its white space, with null for keys
// that are asked for and not there. Errors: kInvalid where it is no text of the grammar, with the
// JSON Pointer of what does not fit as place.
Result<std::string> WriteRecord(const Grammar& grammar, const json::Value& schema,
                                const json::Value& record);
// The same for all records of `examples`. Errors: with "examples: N: POINTER" as place, N from 1.
Status WriteExamples(const Grammar& grammar, std::string_view schema,
                     std::vector<ExtractExample>& examples);

// Examples as a file has them: lines of {"text": ..., "record": ...}. `line_numbers`: gets the line
// of each; nullptr: no one wants them. Errors: kInvalid with "line N" as place.
Result<std::vector<ExtractExample>> ReadExamples(std::string_view lines,
                                                 std::vector<int>* line_numbers = nullptr);
// The same as a JSON list. Errors: with a JSON Pointer as place.
Result<std::vector<ExtractExample>> ExamplesFromJson(std::string_view list);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_SCHEMA_VIEW_H_
