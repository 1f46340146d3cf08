// Compiler: makes a Grammar over one vocabulary from a JSON Schema, a regex, a list of choices, a
// context-free grammar or a structural tag.
//
//   pawl::Compiler compiler(vocabulary);
//   auto grammar = compiler.CompileJsonSchema(schema_text, options);
//
// Errors are returned as pawl::Error with the place of the fault in the input.
//
// Thread safety: several threads may call all methods at the same time.
#ifndef PAWL_COMPILER_H_
#define PAWL_COMPILER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Options and limits for JSON Schemas. docs/json_schema.md explains them.

struct JsonSchemaOptions {
  // The order of keys. kSchema: the order of `properties`; keys that only patterns or
  // additionalProperties allow come last. kAny: any order.
  enum class Order { kSchema, kAny };
  Order order = Order::kSchema;

  // White space between the tokens of JSON. kCompact: only that of the separators. Keys are then
  // forced bytes. kBounded: at most `max_whitespace` characters at each place. kAny: any amount.
  enum class Whitespace { kCompact, kBounded, kAny };
  Whitespace whitespace = Whitespace::kBounded;
  int max_whitespace = 24;
  // With kCompact: the text between two items or members, and between a key and its value. A comma
  // or a colon, then up to 16 characters of white space. ", " and ": " are those of Python's
  // json.dumps.
  std::string item_separator = ",";
  std::string key_separator = ":";

  // The draft of a schema without "$schema": "draft4", "draft6", "draft7", "2019-09", "2020-12".
  std::string default_dialect = "2020-12";
  // The draft to use in place of "$schema". Empty: "$schema" counts.
  std::string force_dialect;

  // true: the formats that Pawl knows are enforced. Unknown formats are annotations.
  bool assert_formats = true;

  // true: one spelling of each value. Strings and keys have escapes only where JSON needs them
  // (quotes, backslashes, controls). Integers, and numbers of an enum, have no ".0". Keys are then
  // forced bytes. false: all spellings of JSON, to check texts that others wrote.
  bool canonical_spelling = true;

  // Bounds of canonical spelling, so that a model that repeats itself stops. The significant digits
  // of a number are at most max_digits. The decimals of the seconds in the formats time and
  // date-time are at most max_decimals, and so are the digits of each number in a duration. A value
  // that fits the schema only with more gets more. 0: no bound.
  int max_digits = 17;
  int max_decimals = 9;
  // In any spelling: the most characters (code points) of a string value without a maxLength and
  // without a choice of texts. A string that fits the schema only when it is longer may be longer.
  // 0: no bound.
  int64_t max_string = 0;

  // Texts that no string value may contain, one a line. Structural tags use them ("excludes"), for
  // markers that would end the text around the JSON.
  std::string excluded_texts;

  // true: strings and keys are ASCII. Other characters are written \uXXXX, beyond the Basic
  // Multilingual Plane as two of these.
  bool ascii = false;

  // true, as the specification says: an object may have keys that the schema does not name. Only
  // additionalProperties and unevaluatedProperties forbid them. false: an object for which the
  // schema names a key or a pattern, and has neither keyword, is closed. Subschemas that apply to
  // the same object (allOf, $ref, ...) count together, as for unevaluatedProperties. Each branch of
  // a plain anyOf or oneOf is closed separately. An object that the schema does not describe stays
  // open.
  bool additional_properties = true;

  // true: numbers may have an exponent ("1e3"). If the schema has a bound or a divisor for the
  // number, the exponent is from -400 to 400.
  bool allow_exponents = false;

  // The keywords that are allowed. kStrict: only those of OpenAI's strict structured outputs
  // (docs/json_schema.md has the rules). Others are kUnsupported, with a replacement in the
  // message. An accepted schema has the same meaning under both profiles.
  enum class Profile { kFull, kStrict };
  Profile profile = Profile::kFull;

  // true: Grammar::notes() also lists each keyword that demands nothing, as "POINTER: keyword:
  // why". These are annotations by the specification, and keywords without effect in this draft or
  // with these options. At most 1000 notes, then "and N more".
  bool list_annotations = false;

  // Returns the text of another document that a reference names, by its absolute URI without
  // fragment. Called only while compiling. Also called for the metaschema of an unknown "$schema",
  // whose "$vocabulary" then counts. An error refuses the schema at the reference, with the error's
  // message. Not set: there are no other documents. Pawl itself never fetches a document.
  std::function<Result<std::string>(std::string_view uri)> resolve_document;
  int max_documents = 256;  // most documents; together at most max_schema_bytes

  // Limits. Steps are counted, so the same input always ends the same way.
  int64_t max_schema_bytes = 16 << 20;
  int max_depth = 256;          // of nested schemas; JSON may nest 2 * max_depth + 8 deep
  int64_t step_fuel = 200'000;  // steps for one question whether a text can be completed

  // kAll: every key of `properties` is written, in objects up to 64 of whose keys are not required.
  // Where such a key need not be there and its schema does not take null, the text has null for
  // "not there". Grammar::Record() leaves these keys out, and so do the outputs of engines. The
  // record is then valid for the schema as it was given. Keys stay optional, and a note says so,
  // where other keywords judge the object too (docs/json_schema.md). kRequired: keys are written as
  // the schema asks for them.
  enum class Keys { kRequired, kAll };
  Keys keys = Keys::kRequired;
  // What null means for a key that need not be there and whose schema takes null. kKeep: null is a
  // value like others. kDrop: no record has it. With kAll the record then leaves the key out. With
  // kRequired null is not written.
  enum class Nulls { kKeep, kDrop };
  Nulls nulls = Nulls::kKeep;
  // Without additional_properties: where no value fits with closed objects, the schema is read as
  // it stands, and Grammar::notes() says so. false: that is kUnsatisfiable.
  bool open_if_unsatisfiable = false;

  // Strings, numbers and dates that are copied from a text (docs/extraction.md). A field with
  // "x-pawl-source" takes spans of `source` only. Empty: there is no text, and the keyword is an
  // error unless `bind_source` is true.
  std::string source;
  // kStrings: strings without enum, const and format are spans too. kAll: numbers and dates as
  // well.
  enum class Verbatim { kNone, kStrings, kAll };
  Verbatim verbatim = Verbatim::kNone;
  // true: the text comes later (Grammar::Bind).
  bool bind_source = false;
};

// Options and limits for grammars, and the languages of grammars.

// The languages of grammars, see docs/grammars.md and docs/lark.md.
enum class GrammarLanguage : uint8_t {
  kEbnf,          // XGrammar's dialect
  kGbnf,          // llama.cpp's dialect
  kLark,          // llguidance's dialect
  kLarkXgrammar,  // XGrammar's dialect of Lark
  kLlguidance,    // llguidance's JSON: several grammars and JSON Schemas that name each other
};

struct GrammarOptions {
  // The root rule, for EBNF and GBNF. Lark's root is "start", and another name is an error.
  std::string root = "root";
  // For kLark and kLlguidance. true: the Lark grammars inside are in XGrammar's dialect.
  bool lark_as_xgrammar = false;
  // For JSON Schemas inside grammars (Lark's %json).
  JsonSchemaOptions json_schema;
  size_t max_bytes = size_t{4} << 20;
  int max_nesting = 250;  // of groups
  // The most steps, of about 5 ns, to prepare masks while the grammar is compiled. For each
  // terminal the tokens are found that stay inside it, at its beginning and at the place to which
  // most tokens lead. Fewer masks then take long. The masks are the same with any number. 0:
  // nothing is prepared. A million or more: for a grammar in long use. JSON Schemas inside the
  // grammar and structural tags are not prepared.
  uint64_t prepare_steps = 0;
};

// The language of a name or of a file's extension without its dot: "ebnf", "gbnf", "lark",
// "lark_xgrammar" or "llguidance". nullopt for other names.
inline std::optional<GrammarLanguage> GrammarLanguageOf(std::string_view name) {
  if (name == "ebnf") return GrammarLanguage::kEbnf;
  if (name == "gbnf") return GrammarLanguage::kGbnf;
  if (name == "lark") return GrammarLanguage::kLark;
  if (name == "lark_xgrammar") return GrammarLanguage::kLarkXgrammar;
  if (name == "llguidance") return GrammarLanguage::kLlguidance;
  return std::nullopt;
}

namespace schema {
class Witnesses;
}

struct CompilerOptions {
  // The number of grammars to keep, with their masks, for the same text with the same options. The
  // grammar used longest ago is dropped first. Grammars compiled with resolve_document are not
  // kept, because the documents may change. Threads that ask for the same grammar at the same time
  // compile it once.
  size_t cached_grammars = 0;
  // Memory in bytes for all grammars of the compiler: their states and masks, and the texts that
  // they were made from. Above this limit the largest grammar frees the data that no state in use
  // needs, and recomputes them on demand. This changes the time only. States and masks in use stay
  // valid, and may take memory beyond the budget. The vocabulary does not count.
  size_t memory_budget = size_t{256} << 20;
};

class PAWL_EXPORT Compiler {
 public:
  explicit Compiler(std::shared_ptr<const Vocabulary> vocabulary,
                    const CompilerOptions& options = {});

  // The output is JSON that is valid for the schema (docs/json_schema.md). Place of errors: the
  // keyword as a JSON Pointer. kUnsatisfiable if no value fits. `stop`, here and below, lets
  // another thread end the compilation, with kLimit.
  Result<Grammar> CompileJsonSchema(std::string_view schema, const JsonSchemaOptions& options = {},
                                    const std::shared_ptr<StopFlag>& stop = nullptr) const;
  // The whole output matches the pattern (ECMA-262, docs/regex.md). Place of errors: "byte N".
  Result<Grammar> CompileRegex(std::string_view pattern) const;
  // The output is one of the strings.
  Result<Grammar> CompileChoice(std::span<const std::string> choices) const;
  // The output is a span of the text, which may be empty. With `whole_words` the span neither
  // begins nor ends with white space, inside a word or inside a number (docs/extraction.md#spans).
  // Time and memory are linear in the text. Place of errors: "byte N".
  Result<Grammar> CompileSubstring(std::string_view text, bool whole_words = false) const;
  // The output is a text of the grammar's root rule (docs/grammars.md). Place of errors:
  // "line:column". kUnsatisfiable if the root rule has no text.
  Result<Grammar> CompileGrammar(std::string_view text, GrammarLanguage language,
                                 const GrammarOptions& options = {},
                                 const std::shared_ptr<StopFlag>& stop = nullptr) const;
  // The output is free text in which triggers start constrained parts, as this structural tag
  // describes (docs/structural_tags.md). Place of errors: a JSON Pointer into the structural tag.
  Result<Grammar> CompileStructuralTag(std::string_view json_text,
                                       const GrammarOptions& options = {},
                                       const std::shared_ptr<StopFlag>& stop = nullptr) const;

  // Memory in bytes that the grammars use now (CompilerOptions::memory_budget). The call visits all
  // of this memory, so use it for reports and not for every token.
  size_t memory_bytes() const;
  // Frees grammars beyond the memory budget that no state uses and that were not used since the
  // previous call. A freed grammar is compiled again at its next use. Memory is otherwise freed
  // when a grammar grows. So only a process that may be idle must call this, every few seconds.
  void FreeUnused() const;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<class MemoryBudget> budget_;
  std::shared_ptr<schema::Witnesses> witnesses_;  // shared by its schemas
  std::shared_ptr<class GrammarCache> cache_;     // nullptr if no grammars are kept
};

// Structural tags for the tool calls of model families.
//
//   const pawl::Tool tools[] = {{"get_weather", R"({"type":"object",...})"}};
//   auto tag = pawl::ToolCallTag(pawl::ToolCallFormat::kHermes, tools, {.reasoning = true});
//   auto grammar = compiler.CompileStructuralTag(*tag);
//
// The tag is JSON text (docs/structural_tags.md). Compile it as it is, or change it first.
//
// Errors: kInvalid if a call is required and there are no tools, if a tool does not exist, or if
// parameters are not JSON. Place: the tool's name.
//
// Thread safety: no shared state.

struct Tool {
  std::string name;
  std::string parameters = {};  // a JSON Schema as text; empty: any object
};

enum class ToolCallFormat {
  kLlama3,      // {"name": "f", "parameters": {...}}
  kHermes,      // <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>: Hermes, Qwen 2.5, 3
  kQwenXml,     // <tool_call>\n<function=f>\n<parameter=a>...: Qwen 3 Coder, 3.5
  kDeepSeekR1,  // DeepSeek R1 and V3: the arguments in a code fence
  kDeepSeekV31,  // DeepSeek V3.1
  kMistral,      // [TOOL_CALLS][{"name": "f", "arguments": {...}}]
  kGptOss,       // harmony: channels analysis, commentary (to=functions.f) and final
  // The others are in the table of docs/structural_tags.md.
  kSeed,
  kDeepSeekV32,
  kDeepSeekV4,
  kMinistral,
  kMistralSmall,
  kGlm,
  kHunyuan,
  kApriel,
  kGemma4,
  kKimiK2,
  kKimiK3,
  kLfm2,
  kOlmo3,
  kMiniCpm5,
  kGranite3,
  kNemotron,
  kFunctools,
  kPhi4Mini,
  kCohere,
  kCommandR7b,
  kCommandR,
  kMinimaxM1,
  kMinimaxM2,
  kMinimaxM3,
  kApertus,
  kGigaChat3,
  kGigaChat31,
  kFunctionary31,
  kFunctionary32,
  kSolar,
  kGlimmer,
};

struct ToolCallOptions {
  enum class Choice {
    kAuto,      // text with any number of calls
    kRequired,  // at least one call; the output begins with a call
    kNamed,     // one call of the tool `named`
  };
  Choice choice = Choice::kAuto;
  std::string named = {};
  bool parallel = true;  // more than one call is allowed
  // true: the model may think first. Its thoughts end at </think>, at [/THINK] or at the mark of
  // its family. The opening mark may be in the prompt or in the output. Llama 3 has none.
  bool reasoning = false;
};

// The format of a name: "llama3", "hermes", "qwen", "glm", ...: the names of the table in
// docs/structural_tags.md. nullopt for other names.
PAWL_EXPORT std::optional<ToolCallFormat> ToolCallFormatOf(std::string_view name);

// The structural tag, as JSON text, for calls of these tools. See above for errors.
PAWL_EXPORT Result<std::string> ToolCallTag(ToolCallFormat format, std::span<const Tool> tools,
                                            const ToolCallOptions& options = {});

}  // namespace pawl

#endif  // PAWL_COMPILER_H_
