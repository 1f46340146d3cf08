// What an output must be: the answer's constraint, the tools, and which of them may be called. One
// form for the server, whose requests spell it variously (src/server/constraint_spec.h), and for
// all others that ask for chats.
//
//   RequestConstraints asked;
//   asked.answer.kind = ConstraintSpec::Kind::kJsonSchema;
//   asked.answer.text = R"({"type":"integer"})";
//   Result<OutputPlan> plan = MakePlan(asked, ...);  // src/engine/output_plan.h
#ifndef PAWL_SRC_ENGINE_OUTPUT_CONSTRAINT_H_
#define PAWL_SRC_ENGINE_OUTPUT_CONSTRAINT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl {

// How JSON is laid out, and the like: what is the same for all schemas of a request.
struct LayoutSpec {
  JsonSchemaOptions::Whitespace whitespace = JsonSchemaOptions::Whitespace::kCompact;
  std::string item_separator = ",", key_separator = ":";
  bool asked_whitespace = false;
  // Whether an object may have keys that the schema does not speak of, where it does not say. Not
  // asked for by the request: where nothing fits without such keys they are allowed.
  bool additional_properties = false;
  bool asked_additional_properties = false;
  JsonSchemaOptions::Keys keys = JsonSchemaOptions::Keys::kRequired;
  JsonSchemaOptions::Nulls nulls = JsonSchemaOptions::Nulls::kKeep;
  bool asked_keys = false, asked_nulls = false;
  // Most characters of strings without a bound of their own; -1: as the server has it.
  int max_string = -1;
  // What fields with "x-pawl-source" are copied from, where the request gives it; see
  // JsonSchemaOptions.
  std::string source;
  JsonSchemaOptions::Verbatim verbatim = JsonSchemaOptions::Verbatim::kNone;
  bool bind_source = false;

  JsonSchemaOptions ToOptions() const;
  // What the request does not ask for is as in `defaults`.
  void FillIn(const JsonSchemaOptions& defaults);
};

struct ConstraintSpec {
  enum class Kind { kNone, kJsonSchema, kRegex, kChoice, kGrammar, kStructuralTag };
  Kind kind = Kind::kNone;
  // The schema or structural tag as compact JSON with the keys in their order; the pattern; the
  // grammar.
  std::string text;
  std::vector<std::string> choices;
  GrammarLanguage language = GrammarLanguage::kEbnf;
  std::string pointer;      // where `text` stands in the request: "#/response_format/..."
  std::string name;         // of a JSON Schema, where it has one
  bool deprecated = false;  // spelled as it was once

  // The same as a format of structural tags (docs/structural_tags.md); any text for kNone.
  Result<std::string> AsFormat() const;
};

struct ToolSpec {
  enum class Kind { kFunction, kCustom };
  Kind kind = Kind::kFunction;
  std::string name, description;
  ConstraintSpec input;  // of the arguments, or of a custom tool's input; kNone: any text
  std::string pointer;
  // The schema of the arguments is open and names no key: there are none.
  bool takes_nothing = false;

  // `input`, closed where the tool takes nothing.
  ConstraintSpec Arguments() const;
  // As a chat template wants it: {"type": "function", "function": {...}}. Templates know functions:
  // a custom tool is shown as one with a single text.
  json::Value Declared() const;
};

struct ToolChoice {
  enum class Mode { kNone, kAuto, kRequired };
  Mode mode = Mode::kNone;
  bool named = false;           // one call of the one tool that is left
  bool as_one_of = false;       // the one tool that is left is called in the form of several
  std::vector<size_t> allowed;  // indices of tools
};

struct RequestConstraints {
  ConstraintSpec answer;
  LayoutSpec layout;
  std::vector<ToolSpec> tools;
  ToolChoice choice;
  bool parallel = true;         // more than one call
  bool asked_parallel = false;  // the request says which
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_OUTPUT_CONSTRAINT_H_
