// What the output of a request must be, in every spelling that clients use, read into one form.
//
//   Result<RequestConstraints> asked = ReadConstraints(JsonReader(body));
//   asked.error()                  // "#/response_format/...: ..."
//   asked->answer.kind             // what a plain answer must be
//   asked->tools, asked->choice    // what may or must be called
//
// The spellings of the answer, of which there may be one:
//   response_format      {"type": "text"}, {"type": "json_object"} also with "schema",
//                        {"type": "json_schema", "json_schema": {"schema": ...}} also with "schema"
//                        unwrapped, {"type": "grammar", "grammar": ...}, {"type": "regex"},
//                        {"type": "structural_tag", ...} in both forms
//   text.format          of /v1/responses
//   output_config.format, output_format   of /v1/messages
//   structured_outputs   {"json" | "regex" | "choice" | "grammar" | "json_object" |
//                        "structural_tag"}
//   guided_json, guided_regex, guided_choice, guided_grammar, structural_tag: as vLLM had them
//   regex, ebnf          as SGLang has them
//   grammar, json_schema as llama.cpp has them
//   format               Ollama's "json" or a schema
#ifndef PAWL_SRC_SERVER_CONSTRAINT_SPEC_H_
#define PAWL_SRC_SERVER_CONSTRAINT_SPEC_H_

#include <vector>

#include "pawl/result.h"
#include "src/base/json_reader.h"
#include "src/engine/output_constraint.h"

namespace pawl::server {

// Of a body of /v1/chat/completions, /v1/completions, /v1/responses, /api/chat, /api/generate,
// /infill: all of these members mean the same everywhere. Errors: place is the JSON Pointer,
// beginning with '#'. `known`: what was read of the tools before; the body has null in their place.
Result<RequestConstraints> ReadConstraints(const JsonReader& body,
                                           const std::vector<ToolSpec>* known = nullptr);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_CONSTRAINT_SPEC_H_
