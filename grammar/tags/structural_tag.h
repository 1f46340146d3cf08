// ReadStructuralTag: structural tags in XGrammar's JSON form, to the GrammarIr.
//
//   {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<call>"],
//     "tags": [{"begin": "<call>", "content": {"type": "json_schema", "json_schema": {...}},
//               "end": "</call>"}]}}
//
// docs/structural_tags.md describes the formats. Errors have a JSON Pointer into the document as
// their place; what is wrong inside a schema there has that schema's pointer and then the one
// inside of it, what is wrong inside a grammar or a regex the pointer and the place in that text.
//
// Thread safety: none needed, nothing is shared.
#ifndef PAWL_GRAMMAR_TAGS_STRUCTURAL_TAG_H_
#define PAWL_GRAMMAR_TAGS_STRUCTURAL_TAG_H_

#include <functional>
#include <memory>
#include <string_view>

#include "grammar/cfg/grammar_ir.h"
#include "pawl/compiler.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

struct StructuralTagContext {
  // Where names of tokens are looked up.
  const Vocabulary& vocabulary;
  const GrammarOptions& options;
  // Compiles a JSON Schema.
  std::function<Result<std::shared_ptr<Machine>>(std::string_view, const JsonSchemaOptions&)>
      json_schema;
};

Result<GrammarIr> ReadStructuralTag(std::string_view text, const StructuralTagContext& context);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_TAGS_STRUCTURAL_TAG_H_
