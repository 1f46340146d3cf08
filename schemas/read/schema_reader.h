// SchemaReader: JSON Schema text -> formulas and atoms (atoms.h), for drafts 4, 6, 7, 2019-09 and
// 2020-12.
#ifndef PAWL_SCHEMAS_READ_SCHEMA_READER_H_
#define PAWL_SCHEMAS_READ_SCHEMA_READER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/formats.h"
#include "pawl/compiler.h"
#include "pawl/result.h"
#include "schemas/formula/atoms.h"
#include "src/base/json.h"

namespace pawl::schema {

struct ReadSchema {
  std::unique_ptr<SchemaTable> table;
  std::vector<std::string> notes;  // keywords and formats taken as annotations, with their place
  bool has_object_unions = false;  // Reader::has_object_unions
};

// Errors name the keyword by JSON Pointer: kInvalid for values the dialect does not allow,
// kUnsupported for keywords that are not enforced yet, kLimit.
// `formats`: where the terms of formats are kept; nullptr: they are made anew.
Result<ReadSchema> ReadJsonSchema(const json::Value& schema, const JsonSchemaOptions& options,
                                  const FormatCache* formats = nullptr);

// An annotation by the specification.
bool IsAnnotation(std::string_view keyword);

// The strict profile: the subset of JSON Schema that services with "strict" structured outputs
// take, as OpenAI's guide "Structured Outputs" describes it (docs/json_schema.md has the rules).
// Ok when `document` keeps the rules; else kUnsupported with the place, the rule and what to write
// instead. Keywords with values that no dialect allows are left to ReadJsonSchema.
Status CheckStrictProfile(const json::Value& document, const JsonSchemaOptions& options);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_READ_SCHEMA_READER_H_
