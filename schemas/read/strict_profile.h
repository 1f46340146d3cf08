// The strict profile: the subset of JSON Schema that services with "strict" structured outputs
// take, as OpenAI's guide "Structured Outputs" describes it (docs/json_schema.md has the rules).
#ifndef PAWL_SCHEMAS_STRICT_PROFILE_H_
#define PAWL_SCHEMAS_STRICT_PROFILE_H_

#include "pawl/json_schema_options.h"
#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::schema {

// Ok when `document` keeps the rules; else kUnsupported with the place, the rule and what to write
// instead. Keywords with values that no dialect allows are left to ReadJsonSchema.
Status CheckStrictProfile(const json::Value& document, const JsonSchemaOptions& options);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_STRICT_PROFILE_H_
