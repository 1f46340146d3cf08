// Each spelling is read by one function that hands in a ConstraintSpec with its place; the second
// that is handed in is an error. What is empty, false or of another type where a constraint should
// stand is an error as well: several servers have taken such values for "no constraint", or died of
// them.
#include "src/server/constraint_spec.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "grammar/languages/option_fields.h"
#include "src/base/names.h"

namespace pawl::server {
namespace {

using Kind = ConstraintSpec::Kind;
using json::Quote;
using json::Value;

constexpr size_t kMaxChoices = 50'000;
// Regexes and choices compile in a time linear in their bytes, which nothing stops: a second at
// most.
constexpr size_t kMaxTextBytes = size_t{1} << 20;
constexpr size_t kMaxTools = 512;
constexpr size_t kMaxNameBytes = 128;
constexpr const char* kNoPattern =
    "is not supported; \"whitespace\" may be \"compact\" or \"bounded\"";

// XGrammar's EBNF and GBNF define rules with "::=", Lark with ":".
GrammarLanguage LanguageOf(std::string_view grammar) {
  return grammar.find("::=") != std::string_view::npos ? GrammarLanguage::kEbnf
                                                       : GrammarLanguage::kLark;
}

// What `in` wraps under this name; itself where it wraps nothing.
JsonReader Unwrapped(const JsonReader& in, std::string_view name) {
  const JsonReader wrapped = in[name].OptionalObject();
  return wrapped.present() ? wrapped : in;
}

class Reader {
 public:
  Reader(const JsonReader& in, const std::vector<ToolSpec>* known)
      : in_(in.Object()), known_tools_(known) {}

  Result<RequestConstraints> Read() {
    ReadLayout();
    if (const JsonReader in = in_["response_format"]; in.present()) ReadFormat(in);
    for (const char* config : {"text", "output_config"}) {
      if (const JsonReader in = in_[config]["format"]; in.present()) ReadFormat(in);
    }
    if (const JsonReader in = in_["output_format"]; in.present()) ReadFormat(in);
    ReadStructuredOutputs();
    ReadOldNames();
    ReadOllama();
    ReadTools();
    ReadChoice();
    if (!in_.ok()) return in_.error();
    return std::move(out_);
  }

 private:
  // The constraint of the answer, of which there may be one.
  void Take(Kind kind, std::string text, const JsonReader& at) {
    ConstraintSpec& answer = out_.answer;
    if (answer.kind != Kind::kNone) {
      return at.Fail("is a second constraint next to " + answer.pointer + "; give exactly one");
    }
    answer.kind = kind;
    answer.text = std::move(text);
    answer.pointer = at.place();
  }

  // A schema (an object or a boolean) or a structural tag (an object). `as_text`: or the same as
  // text, as vLLM takes it.
  void TakeJson(Kind kind, const JsonReader& in, bool as_text) {
    if (!in.present()) return;
    const Value* value = in.value();
    Result<Value> parsed = Value();
    if (as_text && in.IsString() && !value->text.empty()) {
      parsed = json::Parse(value->text);
      if (!parsed.ok()) return in.Fail("is a text that is not JSON: " + parsed.error().ToString());
      value = &*parsed;
    }
    const bool tag = kind == Kind::kStructuralTag;
    if (value->type == json::Type::kObject || (!tag && value->is_bool())) {
      return Take(kind, json::Dump(*value), in);
    }
    in.Fail(tag ? "must be a structural tag, an object" : "must be a JSON Schema, an object");
  }

  void TakeAnyObject(const JsonReader& in) { Take(Kind::kJsonSchema, R"({"type":"object"})", in); }

  void TakeText(Kind kind, const JsonReader& in) {
    if (!in.IsString() || in.String().empty()) return in.Fail("must be a string that is not empty");
    if (kind == Kind::kRegex && in.String().size() > kMaxTextBytes) {
      return in.Fail("has more than " + std::to_string(kMaxTextBytes) + " bytes",
                     ErrorCode::kLimit);
    }
    Take(kind, in.String(), in);
  }

  void TakeGrammar(const JsonReader& in, std::optional<GrammarLanguage> language = {}) {
    TakeText(Kind::kGrammar, in);
    if (in.ok()) out_.answer.language = language ? *language : LanguageOf(out_.answer.text);
  }

  void TakeChoice(const JsonReader& in) {
    if (!in.IsArray() || in.size() == 0 || in.size() > kMaxChoices) {
      return in.Fail("must be a list of 1 to " + std::to_string(kMaxChoices) + " strings");
    }
    size_t bytes = 0;
    for (const Value& item : in.value()->items) bytes += item.text.size();
    if (bytes > kMaxTextBytes) {
      return in.Fail("has more than " + std::to_string(kMaxTextBytes) + " bytes in its strings",
                     ErrorCode::kLimit);
    }
    Take(Kind::kChoice, "", in);
    in.ReadStrings(out_.answer.choices, kMaxChoices);
  }

  // ---- Where they stand ----

  void ReadLayout() {
    using Whitespace = JsonSchemaOptions::Whitespace;
    const JsonReader in = in_["whitespace"];
    const std::string whitespace = in.String("compact");
    out_.layout.asked_whitespace = in.present();
    if (whitespace == "bounded") {
      out_.layout.whitespace = Whitespace::kBounded;
    } else if (whitespace != "compact") {
      in.Fail(R"(must be "compact" or "bounded")");
    }
    in_["max_string"].Read(out_.layout.max_string, 0, 1 << 30);
    out_.layout.asked_additional_properties =
        in_["additional_properties"].Read(out_.layout.additional_properties);
    const JsonReader keys = in_["keys"], nulls = in_["nulls"];
    if (keys.present()) {
      out_.layout.asked_keys = true;
      ReadName(keys, out_.layout.keys);
    }
    if (nulls.present()) {
      out_.layout.asked_nulls = true;
      ReadName(nulls, out_.layout.nulls);
    }
    if (const JsonReader source = in_["source"]; source.present()) {
      out_.layout.source = source.String();
      if (out_.layout.source.empty()) out_.layout.source = " ";
    }
    if (const JsonReader verbatim = in_["verbatim"]; verbatim.present()) {
      ReadName(verbatim, out_.layout.verbatim);
    }
    out_.asked_parallel = in_["parallel_tool_calls"].Read(out_.parallel);
  }

  // A choice of JsonSchemaOptions.
  template <typename Choice>
  static void ReadName(const JsonReader& in, Choice& choice) {
    const std::string name = in.String();
    if (!in.ok()) return;
    if (const std::optional<Choice> named = OptionOf<Choice>(name)) {
      choice = *named;
      return;
    }
    std::string known;
    for (const char* one : OptionNames(Choice())) {
      known += (known.empty() ? "" : " or ") + json::Quote(one);
    }
    in.Fail("must be " + known);
  }

  void ReadFormat(const JsonReader& in) {
    const std::string& type = in.Object()["type"].String();
    if (!in.ok() || type == "text") return;
    if (type == "json_object") {
      // With a schema: llama.cpp's.
      const JsonReader schema = in["schema"];
      return schema.present() ? TakeJson(Kind::kJsonSchema, schema, false) : TakeAnyObject(in);
    }
    if (type == "json_schema") return ReadJsonSchema(in);
    if (type == "grammar" || type == "regex" || type == "choice") {
      const JsonReader pattern = in["pattern"], named = in[type];
      const JsonReader& value = type == "regex" && pattern.present() ? pattern : named;
      return value.present() ? TakeNamed(type, value) : value.Fail("is missing");
    }
    if (type == "structural_tag") return TakeJson(Kind::kStructuralTag, in, false);
    in["type"].Fail("is " + Quote(type) +
                    ", which is not known; there are text, json_object, json_schema, grammar, "
                    "regex, choice and structural_tag");
  }

  void ReadJsonSchema(const JsonReader& in) {
    const JsonReader wrapped = in["json_schema"].OptionalObject(), bare = in["schema"];
    if (!wrapped.present() && !bare.present()) return wrapped.Fail("is missing");
    if (wrapped.present() && bare.present()) {
      return bare.Fail("is a second schema next to that of json_schema");
    }
    const JsonReader& inner = wrapped.present() ? wrapped : in;
    const std::string name = inner["name"].String("");
    inner["strict"].Bool(false);
    if (wrapped.present()) inner["description"].String("");
    const JsonReader schema = inner["schema"];
    if (schema.present()) {
      TakeJson(Kind::kJsonSchema, schema, false);
    } else if (inner["type"].value() != nullptr || inner["properties"].value() != nullptr) {
      TakeJson(Kind::kJsonSchema, inner, false);  // the schema itself, without its wrapper
    } else {
      TakeAnyObject(inner);
    }
    if (in.ok()) out_.answer.name = name;
  }

  void ReadStructuredOutputs() {
    const JsonReader in = in_["structured_outputs"].OptionalObject();
    if (!in.present()) return;
    bool given = false;
    for (const auto& [key, member] : in.value()->members) {
      if (member.type == json::Type::kNull || key.starts_with("_")) continue;
      if (!in.ok()) return;
      const JsonReader one = in[key];
      if (key == "disable_any_whitespace") {
        one.Bool();  // that is the default here
      } else if (key == "disable_additional_properties") {
        out_.layout.additional_properties = !one.Bool();
        out_.layout.asked_additional_properties = true;
      } else if (key == "whitespace_pattern") {
        one.Unsupported(kNoPattern);
      } else if (key == "json_object" && member.type == json::Type::kFalse) {
        continue;
      } else if (key == "json" || key == "json_object" || key == "regex" || key == "choice" ||
                 key == "grammar" || key == "structural_tag") {
        given = true;
        TakeNamed(key, one);
      } else {
        one.Fail(
            "is not known; there are json, regex, choice, grammar, json_object and "
            "structural_tag");
      }
    }
    if (!given) {
      in.Fail("must have one of json, regex, choice, grammar, json_object and structural_tag");
    }
  }

  void TakeNamed(std::string_view key, const JsonReader& in) {
    if (key == "json") return TakeJson(Kind::kJsonSchema, in, true);
    if (key == "regex") return TakeText(Kind::kRegex, in);
    if (key == "choice") return TakeChoice(in);
    if (key == "grammar") return TakeGrammar(in);
    if (key == "structural_tag") return TakeJson(Kind::kStructuralTag, in, true);
    if (!in.Is(json::Type::kTrue)) return in.Fail("must be true");
    TakeAnyObject(in);
  }

  void ReadOldNames() {
    for (const std::string name :
         {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "structural_tag"}) {
      const JsonReader in = in_[name];
      if (!in.present()) continue;
      TakeNamed(name.starts_with("guided_") ? name.substr(7) : name, in);
      out_.answer.deprecated = true;
    }
    const JsonReader pattern = in_["guided_whitespace_pattern"], regex = in_["regex"],
                     ebnf = in_["ebnf"], gbnf = in_["grammar"];
    if (pattern.present()) pattern.Unsupported(kNoPattern);
    if (regex.present()) TakeText(Kind::kRegex, regex);
    if (ebnf.present()) TakeGrammar(ebnf, GrammarLanguage::kEbnf);
    // llama.cpp's clients send an empty one for none.
    const bool none = gbnf.IsString() && gbnf.String().empty();
    if (gbnf.present() && !none) TakeGrammar(gbnf, GrammarLanguage::kGbnf);
    TakeJson(Kind::kJsonSchema, in_["json_schema"], false);
  }

  void ReadOllama() {
    const JsonReader in = in_["format"];
    if (!in.IsString()) return TakeJson(Kind::kJsonSchema, in, false);
    if (in.String() == "json") return TakeAnyObject(in);
    if (!in.String().empty()) in.Fail(R"(must be "json" or a JSON Schema)");
  }

  // ---- Tools ----

  void ReadTools() {
    for (const char* name : {"functions", "function_call"}) {
      if (const JsonReader in = in_[name]; in.present()) {
        in.Unsupported("is the older form of tools and tool_choice, which is not supported");
      }
    }
    const JsonReader tools = in_["tools"].OptionalArray();
    if (known_tools_ != nullptr) out_.tools = *known_tools_;
    if (tools.size() > kMaxTools) {
      return tools.Fail("has more than " + std::to_string(kMaxTools) + " tools", ErrorCode::kLimit);
    }
    std::set<std::string> names;
    for (const JsonReader in : tools.items()) {
      ToolSpec tool = ReadTool(in);
      if (!names.insert(tool.name).second) {
        in.Fail(Error{ErrorCode::kInvalid, "is " + Quote(tool.name) + ", as that of another tool",
                      json::PointerJoin(tool.pointer, "name")});
      }
      out_.tools.push_back(std::move(tool));
    }
  }

  static ToolSpec ReadTool(const JsonReader& in) {
    ToolSpec tool;
    const std::string type = in.Object()["type"].String("function");
    if (type != "function" && type != "custom") {
      in["type"].Unsupported("is " + Quote(type) + "; this server has function and custom tools");
      return tool;
    }
    // Anthropic's tools have an input_schema, and functions are "custom".
    const JsonReader input = in["input_schema"];
    const bool custom = type == "custom" && !input.present();
    tool.kind = custom ? ToolSpec::Kind::kCustom : ToolSpec::Kind::kFunction;
    // /v1/chat/completions wraps what /v1/responses does not.
    const JsonReader inner = Unwrapped(in, type);
    tool.pointer = inner.place();
    tool.name = inner["name"].String();
    CheckName(inner["name"], tool.name);
    tool.description = inner["description"].String("");
    inner["strict"].Bool(false);
    tool.kind == ToolSpec::Kind::kCustom
        ? ReadCustomFormat(inner, tool)
        : ReadParameters(input.present() ? input : inner["parameters"], tool);
    return tool;
  }

  static void CheckName(const JsonReader& in, const std::string& name) {
    const bool good = !name.empty() && name.size() <= kMaxNameBytes &&
                      std::all_of(name.begin(), name.end(), [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                               (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.' ||
                               c == ':' || c == '/';
                      });
    if (good) return;
    in.Fail("must be 1 to " + std::to_string(kMaxNameBytes) + " letters, digits and _ - . : /");
  }

  // Clients send such a schema for a tool without arguments.
  static bool NamesNoKey(const Value& schema) {
    const auto speaks_of_keys = [](const json::Member& member) {
      const auto& [name, value] = member;
      if (name == "properties" || name == "patternProperties" || name == "dependentSchemas")
        return !value.members.empty();
      if (name == "required") return !value.items.empty();
      for (const char* const other :
           {"additionalProperties", "unevaluatedProperties", "$ref", "$dynamicRef", "$recursiveRef",
            "allOf", "anyOf", "oneOf", "not", "if", "enum", "const", "propertyNames",
            "minProperties", "dependencies", "dependentRequired"}) {
        if (name == other) return true;
      }
      return false;
    };
    return std::ranges::none_of(schema.members, speaks_of_keys);
  }

  static void ReadParameters(const JsonReader& in, ToolSpec& tool) {
    tool.input.kind = Kind::kJsonSchema;
    tool.input.pointer = in.place();
    tool.input.text = R"({"type":"object"})";
    // {} is how some clients say "no parameters".
    tool.takes_nothing = true;
    if (in.OptionalObject().size() == 0) return;
    const Value& parameters = *in.value();
    tool.takes_nothing = NamesNoKey(parameters);
    tool.input.text = json::Dump(parameters);
    for (const char* key : {"type", "$ref", "anyOf", "oneOf", "allOf"}) {
      if (parameters.Find(key) != nullptr) return;
    }
    // Arguments are an object even where the schema leaves that open.
    tool.input.text.insert(1, R"("type":"object",)");
  }

  static void ReadCustomFormat(const JsonReader& in, ToolSpec& tool) {
    tool.input.pointer = in.place();
    const JsonReader format = in["format"].OptionalObject();
    if (!format.present()) return;
    const std::string& type = format["type"].String();
    if (type == "text") return;
    if (type != "grammar") format["type"].Fail(R"(must be "text" or "grammar")");
    const JsonReader grammar = Unwrapped(format, "grammar");
    const JsonReader syntax = grammar["syntax"], definition = grammar["definition"];
    const std::string& named = syntax.String();
    tool.input.text = definition.String();
    if (tool.input.text.empty()) definition.Fail("is empty");
    if (named != "lark" && named != "regex") syntax.Fail(R"(must be "lark" or "regex")");
    tool.input.pointer = definition.place();
    tool.input.kind = named == "lark" ? Kind::kGrammar : Kind::kRegex;
    tool.input.language = GrammarLanguage::kLark;
  }

  // ---- tool_choice ----

  void AllowAll() {
    for (size_t i = 0; i < out_.tools.size(); ++i) out_.choice.allowed.push_back(i);
  }

  // Of {"type": "function", "function": {"name": ...}}, {"type": "function", "name": ...}; nullopt,
  // with an error, where there is none.
  std::optional<size_t> NamedBy(const JsonReader& in) const {
    const JsonReader name = Unwrapped(in.Object(), in["type"].String("function"))["name"];
    const std::string& text = name.String();
    for (size_t i = 0; in.ok() && i < out_.tools.size(); ++i) {
      if (out_.tools[i].name == text) return i;
    }
    name.Fail("is " + Quote(text) + ", which none of the tools is called");
    return std::nullopt;
  }

  void SetMode(const std::string& mode, const JsonReader& at) {
    using Mode = ToolChoice::Mode;
    if (mode == "none") {
      out_.choice.mode = Mode::kNone;
    } else if (mode == "auto") {
      out_.choice.mode = Mode::kAuto;
    } else if (mode == "required" || mode == "any") {
      out_.choice.mode = Mode::kRequired;
      if (out_.tools.empty()) at.Fail("requires a call, but there are no tools");
    } else {
      at.Fail("is " + Quote(mode) + R"(; there are "none", "auto" and "required")");
    }
  }

  void ReadChoice() {
    const JsonReader choice = in_["tool_choice"];
    if (!choice.present()) {
      out_.choice.mode = out_.tools.empty() ? ToolChoice::Mode::kNone : ToolChoice::Mode::kAuto;
      return AllowAll();
    }
    if (choice.IsString()) {
      SetMode(choice.String(), choice);
      if (out_.tools.empty()) out_.choice.mode = ToolChoice::Mode::kNone;
      return AllowAll();
    }
    if (!choice.IsObject()) return choice.Fail("must be a string or an object");
    const std::string type = choice["type"].IsString() ? choice["type"].String() : "";
    if (type == "allowed_tools") return ReadAllowed(Unwrapped(choice, "allowed_tools"));
    if (choice["disable_parallel_tool_use"].Bool(false)) {
      out_.parallel = false;
      out_.asked_parallel = true;
    }
    if (type == "auto" || type == "any" || type == "none") {
      SetMode(type, choice["type"]);
      if (out_.tools.empty()) out_.choice.mode = ToolChoice::Mode::kNone;
      return AllowAll();
    }
    if (!choice["type"].present() && !choice["function"].present() && !choice["name"].present())
      return choice["type"].Fail("is missing");
    if (choice["type"].present() && type != "function" && type != "custom" && type != "tool") {
      return choice["type"].Fail(
          "is " + Quote(type) +
          R"(; there are "function", "custom", "tool", "allowed_tools", "auto", "any" and "none")");
    }
    const std::optional<size_t> tool = NamedBy(choice);
    if (!tool) return;
    out_.choice.mode = ToolChoice::Mode::kRequired;
    out_.choice.named = true;
    out_.choice.allowed = {*tool};
  }

  void ReadAllowed(const JsonReader& in) {
    const std::string mode = in["mode"].String("auto");
    const JsonReader tools = in["tools"].Array();
    if (tools.size() == 0) tools.Fail("must not be empty");
    for (const JsonReader one : tools.items()) {
      const std::optional<size_t> tool = NamedBy(one);
      if (!tool) return;
      auto& allowed = out_.choice.allowed;
      if (std::find(allowed.begin(), allowed.end(), *tool) == allowed.end()) {
        allowed.push_back(*tool);
      }
    }
    SetMode(mode, in["mode"]);
  }

  const JsonReader in_;
  const std::vector<ToolSpec>* const known_tools_;
  RequestConstraints out_;
};

}  // namespace

Result<RequestConstraints> ReadConstraints(const JsonReader& body,
                                           const std::vector<ToolSpec>* known) {
  return Reader(body, known).Read();
}

}  // namespace pawl::server
