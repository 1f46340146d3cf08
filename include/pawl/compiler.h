// Compiler: turns a JSON Schema, a regex, a list of choices, a context-free grammar or a
// structural tag into a Grammar over one vocabulary.
//
//   pawl::Compiler compiler(vocabulary);
//   auto grammar = compiler.CompileJsonSchema(schema_text, options);
//
// Thread safety: all methods may be called from several threads at once.
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

// Options and limits of compiling a JSON Schema, one documented struct.

struct JsonSchemaOptions {
  // Order of named properties. kSchema: as they stand in `properties` (keys that only patterns or
  // additionalProperties allow come after them); kAny: any order.
  enum class Order { kSchema, kAny };
  Order order = Order::kSchema;

  // White space between the tokens of JSON: none but what the separators have; at most
  // `max_whitespace` characters at each place; any amount. Compact is what makes keys forced bytes.
  enum class Whitespace { kCompact, kBounded, kAny };
  Whitespace whitespace = Whitespace::kBounded;
  int max_whitespace = 24;
  // With kCompact: what stands between two items or members, and between a key and its value. A
  // comma (a colon), then up to 16 characters of white space: ", " and ": " give what Python's
  // json.dumps writes.
  std::string item_separator = ",";
  std::string key_separator = ":";

  // The dialect when the schema has no "$schema": "draft4", "draft6", "draft7", "2019-09",
  // "2020-12".
  std::string default_dialect = "2020-12";
  // When not empty, used in place of "$schema".
  std::string force_dialect;

  // "format" is an assertion for the formats that Pawl knows; unknown ones are annotations.
  bool assert_formats = true;

  // One spelling instead of all that JSON allows: strings and keys with escapes where JSON needs
  // them (quotes, backslashes, controls) and nowhere else; integers, and numbers of an enum,
  // without ".0". For text that a model writes: keys are then forced bytes. Turn it off to check
  // texts that others wrote.
  bool canonical_spelling = true;

  // What else canonical spelling bounds, since a model that repeats itself would go on to the end
  // of its budget: the significant digits of a number; the decimals of the seconds in the formats
  // time and date-time, and the digits of each number in a duration. A number that fits only with
  // more digits, and a time or duration for which the schema asks more, get more. 0: no bound.
  int max_digits = 17;
  int max_decimals = 9;
  // The characters (code points) of a string value to which the schema sets no end: neither a
  // maxLength nor a choice of texts. A string that fits only when it is longer may be longer. 0: no
  // bound. In any spelling.
  int64_t max_string = 0;

  // Texts that no string value may contain, one a line, as structural tags ask for it ("excludes"):
  // markers of a model's own, which would end what is around the JSON.
  std::string excluded_texts;

  // Strings and keys are ASCII: every other character is written \uXXXX (two of them beyond the
  // Basic Multilingual Plane).
  bool ascii = false;

  // What an object may have beyond the keys that the schema speaks of, where the schema says
  // neither additionalProperties nor unevaluatedProperties. The specification: anything (true).
  // false closes every object of which the schema names a key or a pattern, together with all that
  // is applied to it in place (allOf, $ref, ...), as unevaluatedProperties would; each branch of a
  // plain anyOf or oneOf is closed by itself. An object about which nothing is said stays open.
  bool additional_properties = true;

  // Numbers may be written with an exponent ("1e3"); from -400 to 400 where a bound or a divisor is
  // asked of the number.
  bool allow_exponents = false;

  // The keywords that may be used. kStrict: only those of "strict" structured outputs as OpenAI
  // describes them (docs/json_schema.md has the rules); what breaks a rule is kUnsupported, with
  // what to write instead. What is accepted means the same under both.
  enum class Profile { kFull, kStrict };
  Profile profile = Profile::kFull;

  // Grammar::notes() also lists each keyword that demands nothing and why, one "POINTER: keyword:
  // why" for each: annotations by the specification, and what the dialect or these options leave
  // without effect. At most 1000, then one "and N more".
  bool list_annotations = false;

  // The text of another document that a reference leads to, by its absolute URI without fragment.
  // Asked while compiling only; an error refuses the schema at the reference, with the error's
  // message. Asked for the metaschema of an unknown "$schema" too, whose "$vocabulary" then counts.
  // Not set: only the schema itself is there. Pawl itself never fetches anything.
  std::function<Result<std::string>(std::string_view uri)> resolve_document;
  int max_documents = 256;  // how many it may give; together at most max_schema_bytes

  // Limits. Fuel is counted in steps, so the same input always ends the same way.
  int64_t max_schema_bytes = 16 << 20;
  int max_depth = 256;          // schemas in schemas; the JSON of the text: twice as deep, and 8
  int64_t step_fuel = 200'000;  // for one question "can this still be completed?"
};

// Options and limits of compiling a grammar, and the languages that grammars are written in.

// The languages of grammars, see docs/grammars.md.
enum class GrammarLanguage : uint8_t {
  kEbnf,          // as XGrammar reads it
  kGbnf,          // as llama.cpp reads it
  kLark,          // in llguidance's dialect
  kLarkXgrammar,  // in XGrammar's dialect
  kLlguidance,    // several of those and JSON Schemas that name each other, as llguidance's JSON
};

struct GrammarOptions {
  // The rule that the whole text is (EBNF and GBNF; Lark's is "start", and another name is an
  // error).
  std::string root = "root";
  // Lark and llguidance: grammars inside are in XGrammar's dialect (kLarkXgrammar says so itself).
  bool lark_as_xgrammar = false;
  // For JSON Schemas inside of grammars (Lark's %json).
  JsonSchemaOptions json_schema;
  size_t max_bytes = size_t{4} << 20;
  int max_nesting = 250;  // groups in groups
  // Parts of masks that many states share are found while the grammar is compiled, so that fewer
  // masks take long: for each terminal, which tokens stay inside of it where it begins and where
  // most tokens lead. At most so many steps, of about 5 ns; a grammar of few terminals takes fewer.
  // The masks are the same with any number; 0 leaves all to the first mask that needs it, and a
  // million or more is for a grammar in long use. Not for JSON Schemas inside of the grammar, nor
  // structural tags.
  uint64_t prepare_steps = 0;
};

// "ebnf", "gbnf", "lark", "lark_xgrammar" or "llguidance": the name of a language, or the extension
// of a file's name without its dot.
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
  // Grammars to keep, with the masks found so far, for when the same text comes again with the same
  // options; those used longest ago go first. Not those compiled with resolve_document, whose
  // answers may change. Threads that ask for the same grammar at once compile it once.
  size_t cached_grammars = 0;
  // Bytes that all grammars of the compiler together may keep: what was found of their states and
  // masks, and the texts they were made of. When it is spent, grammars give back what no state in
  // use needs and find it again when it is wanted, the largest first; which changes the time and
  // nothing else. States in use stay valid, as do masks that somebody holds; what they need may go
  // beyond the budget. The vocabulary, which may have other users, does not count.
  size_t memory_budget = size_t{256} << 20;
};

class PAWL_EXPORT Compiler {
 public:
  explicit Compiler(std::shared_ptr<const Vocabulary> vocabulary,
                    const CompilerOptions& options = {});

  // Errors name the keyword by JSON Pointer; kUnsatisfiable when no value fits. `stop`, here and
  // below, lets another thread end it, with kLimit.
  Result<Grammar> CompileJsonSchema(std::string_view schema, const JsonSchemaOptions& options = {},
                                    const std::shared_ptr<StopFlag>& stop = nullptr) const;
  // The output matches the whole pattern (ECMA-262 syntax, see docs/regex.md). Place: "byte N".
  Result<Grammar> CompileRegex(std::string_view pattern) const;
  // The output is one of the strings.
  Result<Grammar> CompileChoice(std::span<const std::string> choices) const;
  // The output is a span of the text, from any place to any other; it may be empty. With
  // `whole_words` it is made of whole runs of white space, of word characters (letters, numbers,
  // '_') and of others. Takes time and space linear in the text, of which a million characters (or
  // runs) are the most: kLimit. Place: "byte N".
  Result<Grammar> CompileSubstring(std::string_view text, bool whole_words = false) const;
  // The output is a text of the grammar's root rule. Place: "line:column". kUnsatisfiable when the
  // root has no text at all.
  Result<Grammar> CompileGrammar(std::string_view text, GrammarLanguage language,
                                 const GrammarOptions& options = {},
                                 const std::shared_ptr<StopFlag>& stop = nullptr) const;
  // The output is a text of this structural tag, free text in which triggers start constrained
  // regions (docs/structural_tags.md). Place: a JSON Pointer into the structural tag.
  Result<Grammar> CompileStructuralTag(std::string_view json_text,
                                       const GrammarOptions& options = {},
                                       const std::shared_ptr<StopFlag>& stop = nullptr) const;

  // Bytes that the grammars keep now (CompilerOptions::memory_budget). Walks over all of it: for
  // reports, not for every token.
  size_t memory_bytes() const;
  // Frees grammars beyond the memory budget that no state uses and that were not used since the
  // previous call; they are compiled again when they are used. A grammar frees memory when a
  // grammar grows, so only a process that may stay idle has to call this, every few seconds.
  void FreeUnused() const;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<class MemoryBudget> budget_;
  std::shared_ptr<schema::Witnesses> witnesses_;  // what its schemas share
  std::shared_ptr<class GrammarCache> cache_;     // none when nothing is kept
};

// Structural tags for the tool calls of model families.
//
//   const pawl::Tool tools[] = {{"get_weather", R"({"type":"object",...})"}};
//   auto tag = pawl::ToolCallTag(pawl::ToolCallFormat::kHermes, tools, {.reasoning = true});
//   auto grammar = compiler.CompileStructuralTag(*tag);
//
// The tag is JSON text as docs/structural_tags.md describes it, to be compiled as it is or changed.
//
// Errors: kInvalid for no tools where a call is required, a tool that is not there, parameters that
// are not JSON; place: the tool's name.
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
};

struct ToolCallOptions {
  enum class Choice {
    kAuto,      // text with any number of calls in it
    kRequired,  // calls, at least one, from the first byte on
    kNamed,     // one call of the tool `named`
  };
  Choice choice = Choice::kAuto;
  std::string named = {};
  bool parallel = true;  // more than one call
  // First comes what the model thinks: text up to </think> ([/THINK], or messages in the analysis
  // channel); the mark that opens it may stand in the prompt or in the output. Llama 3 has none.
  bool reasoning = false;
};

// "llama3", "hermes", "qwen", "qwen_xml", "deepseek_r1", "deepseek_v3", "deepseek_v3_1", "mistral",
// "gpt_oss"; nullopt for other names.
PAWL_EXPORT std::optional<ToolCallFormat> ToolCallFormatOf(std::string_view name);

PAWL_EXPORT Result<std::string> ToolCallTag(ToolCallFormat format, std::span<const Tool> tools,
                                            const ToolCallOptions& options = {});

}  // namespace pawl

#endif  // PAWL_COMPILER_H_
