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

#include "src/server/request_reader.h"

namespace pawl::server {
namespace {

using Kind = ConstraintSpec::Kind;
using json::PointerJoin;
using json::Quote;
using json::Value;

constexpr size_t kMaxChoices = 50'000;
// Regexes and choices compile in a time linear in their bytes, which nothing stops: a second at
// most.
constexpr size_t kMaxTextBytes = size_t{1} << 20;
constexpr size_t kMaxTools = 512;
constexpr size_t kMaxNameBytes = 128;

Error Wrong(std::string pointer, std::string message, ErrorCode code = ErrorCode::kInvalid) {
  return Error{code, std::move(message), std::move(pointer)};
}

// XGrammar's EBNF and GBNF define rules with "::=", Lark with ":".
GrammarLanguage LanguageOf(std::string_view grammar) {
  return grammar.find("::=") != std::string_view::npos ? GrammarLanguage::kEbnf
                                                       : GrammarLanguage::kLark;
}

class Reader {
 public:
  Reader(const Value& body, const std::vector<ToolSpec>* known)
      : in_(body, "#"), known_tools_(known) {}

  Result<RequestConstraints> Read() {
    if (in_.ok()) ReadLayout();
    if (in_.ok()) ReadResponseFormat();
    if (in_.ok()) ReadTextFormat();
    if (in_.ok()) ReadStructuredOutputs();
    if (in_.ok()) ReadOldNames();
    if (in_.ok()) ReadOllama();
    if (in_.ok()) ReadTools();
    if (in_.ok()) ReadChoice();
    if (!in_.ok()) return in_.error();
    out_.read = in_.found();
    return std::move(out_);
  }

 private:
  void Fail(std::string pointer, std::string message, ErrorCode code = ErrorCode::kInvalid) {
    in_.Fail(Wrong(std::move(pointer), std::move(message), code));
  }

  void Take(ConstraintSpec spec) {
    if (out_.answer.kind != Kind::kNone) {
      return Fail(spec.pointer,
                  "is a second constraint beside " + out_.answer.pointer + "; give exactly one");
    }
    out_.answer = std::move(spec);
  }

  // ---- The parts of a constraint ----

  // A schema: an object or a boolean, or the same as text.
  std::optional<ConstraintSpec> Schema(const Value& value, const std::string& pointer,
                                       bool as_text = false) {
    ConstraintSpec spec;
    spec.kind = Kind::kJsonSchema;
    spec.pointer = pointer;
    if (value.type == json::Type::kObject || value.is_bool()) {
      spec.text = json::Dump(value);
      return spec;
    }
    if (as_text && value.type == json::Type::kString && !value.text.empty()) {
      Result<Value> parsed = json::Parse(value.text);
      if (!parsed.ok()) {
        Fail(pointer, "is a text that is not JSON: " + parsed.error().ToString());
        return std::nullopt;
      }
      return Schema(*parsed, pointer);
    }
    Fail(pointer, "must be a JSON Schema, an object");
    return std::nullopt;
  }

  std::optional<ConstraintSpec> Text(Kind kind, const Value& value, const std::string& pointer) {
    if (value.type != json::Type::kString || value.text.empty()) {
      Fail(pointer, "must be a string that is not empty");
      return std::nullopt;
    }
    if (kind == Kind::kRegex && value.text.size() > kMaxTextBytes) {
      Fail(pointer, "has more than " + std::to_string(kMaxTextBytes) + " bytes", ErrorCode::kLimit);
      return std::nullopt;
    }
    ConstraintSpec spec;
    spec.kind = kind;
    spec.text = value.text;
    spec.pointer = pointer;
    return spec;
  }

  std::optional<ConstraintSpec> GrammarText(const Value& value, const std::string& pointer,
                                            std::optional<GrammarLanguage> language = {}) {
    std::optional<ConstraintSpec> spec = Text(Kind::kGrammar, value, pointer);
    if (spec) spec->language = language ? *language : LanguageOf(spec->text);
    return spec;
  }

  std::optional<ConstraintSpec> Choice(const Value& value, const std::string& pointer) {
    if (value.type != json::Type::kArray || value.items.empty() ||
        value.items.size() > kMaxChoices) {
      Fail(pointer, "must be a list of 1 to " + std::to_string(kMaxChoices) + " strings");
      return std::nullopt;
    }
    ConstraintSpec spec;
    spec.kind = Kind::kChoice;
    spec.pointer = pointer;
    size_t bytes = 0;
    for (const Value& item : value.items) bytes += item.text.size();
    if (bytes > kMaxTextBytes) {
      Fail(pointer, "has more than " + std::to_string(kMaxTextBytes) + " bytes in its strings",
           ErrorCode::kLimit);
      return std::nullopt;
    }
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (value.items[i].type != json::Type::kString) {
        Fail(PointerJoin(pointer, std::to_string(i)), "must be a string");
        return std::nullopt;
      }
      spec.choices.push_back(value.items[i].text);
    }
    return spec;
  }

  std::optional<ConstraintSpec> AnyObject(const std::string& pointer) {
    ConstraintSpec spec;
    spec.kind = Kind::kJsonSchema;
    spec.text = R"({"type":"object"})";
    spec.pointer = pointer;
    return spec;
  }

  // An object, or the same as text (vLLM takes it as text).
  std::optional<ConstraintSpec> StructuralTag(const Value& value, const std::string& pointer) {
    ConstraintSpec spec;
    spec.kind = Kind::kStructuralTag;
    spec.pointer = pointer;
    if (value.type == json::Type::kObject) {
      spec.text = json::Dump(value);
      return spec;
    }
    if (value.type == json::Type::kString && !value.text.empty()) {
      Result<Value> parsed = json::Parse(value.text);
      if (!parsed.ok()) {
        Fail(pointer, "is a text that is not JSON: " + parsed.error().ToString());
        return std::nullopt;
      }
      return StructuralTag(*parsed, pointer);
    }
    Fail(pointer, "must be a structural tag, an object");
    return std::nullopt;
  }

  void TakeIf(std::optional<ConstraintSpec> spec, bool deprecated = false) {
    if (!spec) return;
    spec->deprecated = deprecated;
    Take(*std::move(spec));
  }

  // ---- Where they stand ----

  void ReadLayout() {
    std::string whitespace;
    if (in_.String("whitespace", whitespace)) {
      using Whitespace = JsonSchemaOptions::Whitespace;
      if (whitespace == "compact") {
        out_.layout.whitespace = Whitespace::kCompact;
      } else if (whitespace == "bounded") {
        out_.layout.whitespace = Whitespace::kBounded;
      } else {
        Fail("#/whitespace", R"(must be "compact" or "bounded")");
      }
    }
    in_.Int("max_string", out_.layout.max_string, 0, 1 << 30);
    if (in_.Bool("additional_properties", out_.layout.additional_properties)) {
      out_.layout.asked_additional_properties = true;
    }
    out_.asked_parallel = in_.Bool("parallel_tool_calls", out_.parallel);
  }

  void ReadFormat(const Value& format, const std::string& pointer) {
    RequestReader in(format, pointer);
    std::string type;
    if (in.ok() && !in.String("type", type)) in.Fail("type", "is missing");
    if (in.ok()) ReadFormat(in, type);
    if (!in.ok()) in_.Fail(in.error());
  }

  void ReadFormat(RequestReader& in, const std::string& type) {
    if (type == "text") return;
    const Value* bare = in.Find("schema");
    if (type == "json_object") {
      // With a schema: llama.cpp's.
      if (bare != nullptr) return TakeIf(Schema(*bare, in.PointerOf("schema")));
      return TakeIf(AnyObject(in.pointer()));
    }
    if (type == "json_schema") return ReadJsonSchema(in, bare);
    if (type == "grammar" || type == "regex" || type == "choice") {
      const Value* value = in.Find(type == "regex" ? "pattern" : type);
      const std::string key = value == nullptr || type != "regex" ? type : std::string("pattern");
      if (value == nullptr) value = in.Find(key);
      if (value == nullptr) return in.Fail(key, "is missing");
      const std::string place = in.PointerOf(key);
      if (type == "regex") return TakeIf(Text(Kind::kRegex, *value, place));
      if (type == "choice") return TakeIf(Choice(*value, place));
      return TakeIf(GrammarText(*value, place));
    }
    if (type == "structural_tag") return TakeIf(StructuralTag(in.object(), in.pointer()));
    in.Fail("type", "is " + Quote(type) +
                        ", which is not known; there are text, json_object, json_schema, grammar, "
                        "regex, choice and structural_tag");
  }

  void ReadJsonSchema(RequestReader& in, const Value* bare) {
    const Value* wrapped = in.FindObject("json_schema");
    if (!in.ok()) return;
    if (wrapped == nullptr && bare == nullptr) return in.Fail("json_schema", "is missing");
    if (wrapped != nullptr && bare != nullptr) {
      return in.Fail("schema", "is a second schema beside that of json_schema");
    }
    std::string name;
    bool strict = false;
    if (wrapped == nullptr) {
      in.String("name", name);
      in.Bool("strict", strict);
      if (!in.ok()) return;
      std::optional<ConstraintSpec> spec = Schema(*bare, in.PointerOf("schema"));
      if (spec) spec->name = name;
      return TakeIf(std::move(spec));
    }
    RequestReader inner(*wrapped, in.PointerOf("json_schema"));
    inner.String("name", name);
    inner.Bool("strict", strict);
    const Value* schema = inner.Find("schema");
    std::string ignored;
    inner.String("description", ignored);
    if (!inner.ok()) return in.Fail(inner.error());
    std::optional<ConstraintSpec> spec;
    if (schema != nullptr) {
      spec = Schema(*schema, inner.PointerOf("schema"));
    } else if (wrapped->Find("type") != nullptr || wrapped->Find("properties") != nullptr) {
      spec = Schema(*wrapped, inner.pointer());  // the schema itself, without its wrapper
    } else {
      spec = AnyObject(inner.pointer());
    }
    if (spec) spec->name = name;
    TakeIf(std::move(spec));
  }

  void ReadResponseFormat() {
    if (const Value* format = in_.Find("response_format")) ReadFormat(*format, "#/response_format");
  }

  void ReadTextFormat() {
    const Value* text = in_.Find("text");
    if (text == nullptr || text->type != json::Type::kObject) return;
    const Value* format = text->Find("format");
    if (format != nullptr && format->type != json::Type::kNull) {
      ReadFormat(*format, "#/text/format");
    }
  }

  void ReadStructuredOutputs() {
    const Value* value = in_.FindObject("structured_outputs");
    if (value == nullptr) return;
    RequestReader in(*value, "#/structured_outputs");
    int given = 0;
    for (const auto& [key, member] : value->members) {
      if (member.type == json::Type::kNull) continue;
      const std::string place = in.PointerOf(key);
      if (key == "disable_any_whitespace") {
        bool ignored = false;  // that is the default here
        in.Bool(key, ignored);
      } else if (key == "disable_additional_properties") {
        bool closed = false;
        if (in.Bool(key, closed)) {
          out_.layout.additional_properties = !closed;
          out_.layout.asked_additional_properties = true;
        }
      } else if (key == "whitespace_pattern") {
        in.Fail(key, "is not supported; \"whitespace\" may be \"compact\" or \"bounded\"",
                ErrorCode::kUnsupported);
      } else if (key == "json_object" && member.type == json::Type::kFalse) {
        continue;
      } else if (key == "json" || key == "json_object" || key == "regex" || key == "choice" ||
                 key == "grammar" || key == "structural_tag") {
        ++given;
        ReadNamed(key, member, place, false);
      } else if (!key.starts_with("_")) {
        in.Fail(key,
                "is not known; there are json, regex, choice, grammar, json_object and "
                "structural_tag");
      }
    }
    if (!in.ok()) return in_.Fail(in.error());
    if (given == 0) {
      Fail(in.pointer(),
           "must have one of json, regex, choice, grammar, json_object and structural_tag");
    }
  }

  void ReadNamed(const std::string& key, const Value& value, const std::string& place, bool old) {
    if (key == "json") return TakeIf(Schema(value, place, true), old);
    if (key == "regex") return TakeIf(Text(Kind::kRegex, value, place), old);
    if (key == "choice") return TakeIf(Choice(value, place), old);
    if (key == "grammar") return TakeIf(GrammarText(value, place), old);
    if (key == "structural_tag") return TakeIf(StructuralTag(value, place), old);
    if (value.type != json::Type::kTrue) return Fail(place, "must be true");
    TakeIf(AnyObject(place), old);
  }

  void ReadOldNames() {
    for (const char* name : {"json", "regex", "choice", "grammar"}) {
      const std::string key = std::string("guided_") + name;
      if (const Value* value = in_.Find(key)) ReadNamed(name, *value, "#/" + key, true);
    }
    if (const Value* value = in_.Find("guided_whitespace_pattern")) {
      (void)value;
      Fail("#/guided_whitespace_pattern",
           "is not supported; \"whitespace\" may be \"compact\" or \"bounded\"",
           ErrorCode::kUnsupported);
    }
    if (const Value* value = in_.Find("structural_tag")) {
      TakeIf(StructuralTag(*value, "#/structural_tag"), true);
    }
    if (const Value* value = in_.Find("regex")) TakeIf(Text(Kind::kRegex, *value, "#/regex"));
    if (const Value* value = in_.Find("ebnf")) {
      TakeIf(GrammarText(*value, "#/ebnf", GrammarLanguage::kEbnf));
    }
    if (const Value* value = in_.Find("grammar")) {
      // llama.cpp's clients send an empty one for none.
      if (value->type == json::Type::kString && value->text.empty()) return;
      TakeIf(GrammarText(*value, "#/grammar", GrammarLanguage::kGbnf));
    }
    if (const Value* value = in_.Find("json_schema")) TakeIf(Schema(*value, "#/json_schema"));
  }

  void ReadOllama() {
    const Value* format = in_.Find("format");
    if (format == nullptr) return;
    if (format->type == json::Type::kString) {
      if (format->text.empty()) return;
      if (format->text == "json") return TakeIf(AnyObject("#/format"));
      return Fail("#/format", R"(must be "json" or a JSON Schema)");
    }
    TakeIf(Schema(*format, "#/format"));
  }

  // ---- Tools ----

  void ReadTools() {
    for (const char* name : {"functions", "function_call"}) {
      if (in_.Find(name) != nullptr) {
        return in_.Fail(name, "is the older form of tools and tool_choice, which is not supported",
                        ErrorCode::kUnsupported);
      }
    }
    const Value* tools = in_.FindArray("tools");
    if (known_tools_ != nullptr) out_.tools = *known_tools_;
    if (tools == nullptr) return;
    if (tools->items.size() > kMaxTools) {
      return Fail("#/tools", "has more than " + std::to_string(kMaxTools) + " tools",
                  ErrorCode::kLimit);
    }
    std::set<std::string> names;
    for (size_t i = 0; i < tools->items.size() && in_.ok(); ++i) {
      RequestReader in(tools->items[i], "#/tools/" + std::to_string(i));
      ToolSpec tool = ReadTool(in);
      if (in.ok() && !names.insert(tool.name).second) {
        in.Fail("name", "is " + Quote(tool.name) + ", as that of another tool");
      }
      if (!in.ok()) return in_.Fail(in.error());
      out_.tools.push_back(std::move(tool));
    }
  }

  ToolSpec ReadTool(RequestReader& in) {
    ToolSpec tool;
    std::string type = "function";
    if (in.ok()) in.String("type", type);
    if (!in.ok()) return tool;
    if (type != "function" && type != "custom") {
      in.Fail("type", "is " + Quote(type) + "; this server has function and custom tools",
              ErrorCode::kUnsupported);
      return tool;
    }
    tool.kind = type == "custom" ? ToolSpec::Kind::kCustom : ToolSpec::Kind::kFunction;
    // /v1/chat/completions wraps what /v1/responses does not.
    const Value* wrapped = in.FindObject(type);
    if (!in.ok()) return tool;
    RequestReader inner(wrapped != nullptr ? *wrapped : in.object(),
                        wrapped != nullptr ? in.PointerOf(type) : in.pointer());
    tool.pointer = inner.pointer();
    if (!inner.String("name", tool.name) && inner.ok()) inner.Fail("name", "is missing");
    if (inner.ok()) CheckName(inner, tool.name);
    inner.String("description", tool.description);
    bool strict = false;
    inner.Bool("strict", strict);
    if (inner.ok() && tool.kind == ToolSpec::Kind::kFunction) ReadParameters(inner, tool);
    if (inner.ok() && tool.kind == ToolSpec::Kind::kCustom) ReadCustomFormat(inner, tool);
    if (!inner.ok()) in.Fail(inner.error());
    return tool;
  }

  static void CheckName(RequestReader& in, const std::string& name) {
    const bool good = !name.empty() && name.size() <= kMaxNameBytes &&
                      std::all_of(name.begin(), name.end(), [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                               (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.' ||
                               c == ':' || c == '/';
                      });
    if (!good) {
      in.Fail("name",
              "must be 1 to " + std::to_string(kMaxNameBytes) + " letters, digits and _ - . : /");
    }
  }

  static void ReadParameters(RequestReader& in, ToolSpec& tool) {
    tool.input.kind = Kind::kJsonSchema;
    tool.input.pointer = in.PointerOf("parameters");
    const Value* parameters = in.FindObject("parameters");
    tool.input.text = R"({"type":"object"})";
    // {} is how some clients say "no parameters".
    if (parameters != nullptr && parameters->size() > 0) tool.input.text = json::Dump(*parameters);
    if (parameters != nullptr && parameters->size() > 0 && parameters->Find("type") == nullptr &&
        parameters->Find("$ref") == nullptr && parameters->Find("anyOf") == nullptr &&
        parameters->Find("oneOf") == nullptr && parameters->Find("allOf") == nullptr) {
      // Arguments are an object even where the schema leaves that open.
      Value typed = *parameters;
      Value object;
      object.type = json::Type::kString;
      object.text = "object";
      typed.members.emplace(typed.members.begin(), "type", std::move(object));
      tool.input.text = json::Dump(typed);
    }
  }

  static void ReadCustomFormat(RequestReader& in, ToolSpec& tool) {
    tool.input.pointer = in.pointer();
    const Value* format = in.FindObject("format");
    if (format == nullptr) return;
    RequestReader outer(*format, in.PointerOf("format"));
    std::string type;
    if (!outer.String("type", type) && outer.ok()) outer.Fail("type", "is missing");
    if (outer.ok() && type != "text" && type != "grammar") {
      outer.Fail("type", R"(must be "text" or "grammar")");
    }
    if (!outer.ok()) return in.Fail(outer.error());
    if (type == "text") return;
    const Value* wrapped = outer.FindObject("grammar");
    if (!outer.ok()) return in.Fail(outer.error());
    RequestReader grammar(wrapped != nullptr ? *wrapped : *format,
                          wrapped != nullptr ? outer.PointerOf("grammar") : outer.pointer());
    std::string syntax;
    if (!grammar.String("syntax", syntax) && grammar.ok()) grammar.Fail("syntax", "is missing");
    if (!grammar.String("definition", tool.input.text) && grammar.ok()) {
      grammar.Fail("definition", "is missing");
    }
    if (grammar.ok() && tool.input.text.empty()) grammar.Fail("definition", "is empty");
    if (grammar.ok() && syntax != "lark" && syntax != "regex") {
      grammar.Fail("syntax", R"(must be "lark" or "regex")");
    }
    if (!grammar.ok()) return in.Fail(grammar.error());
    tool.input.pointer = grammar.PointerOf("definition");
    tool.input.kind = syntax == "lark" ? Kind::kGrammar : Kind::kRegex;
    tool.input.language = GrammarLanguage::kLark;
  }

  // ---- tool_choice ----

  void AllowAll() {
    for (size_t i = 0; i < out_.tools.size(); ++i) out_.choice.allowed.push_back(i);
  }

  std::optional<size_t> ToolNamed(const std::string& name) const {
    for (size_t i = 0; i < out_.tools.size(); ++i) {
      if (out_.tools[i].name == name) return i;
    }
    return std::nullopt;
  }

  // The name in {"type": "function", "function": {"name": ...}}, {"type": "function", "name": ...}.
  std::optional<size_t> NamedBy(const Value& value, const std::string& pointer) {
    RequestReader in(value, pointer);
    std::string type = "function", name;
    if (in.ok()) in.String("type", type);
    const Value* wrapped = in.ok() ? in.FindObject(type) : nullptr;
    if (in.ok()) {
      RequestReader inner(wrapped != nullptr ? *wrapped : value,
                          wrapped != nullptr ? in.PointerOf(type) : pointer);
      if (!inner.String("name", name) && inner.ok()) inner.Fail("name", "is missing");
      if (!inner.ok()) {
        in.Fail(inner.error());
      } else if (!ToolNamed(name)) {
        inner.Fail("name", "is " + Quote(name) + ", which none of the tools is called");
        in.Fail(inner.error());
      }
    }
    if (!in.ok()) {
      in_.Fail(in.error());
      return std::nullopt;
    }
    return ToolNamed(name);
  }

  void SetMode(const std::string& mode, const std::string& pointer) {
    using Mode = ToolChoice::Mode;
    if (mode == "none") {
      out_.choice.mode = Mode::kNone;
    } else if (mode == "auto") {
      out_.choice.mode = Mode::kAuto;
    } else if (mode == "required" || mode == "any") {
      out_.choice.mode = Mode::kRequired;
      if (out_.tools.empty()) Fail(pointer, "requires a call, but there are no tools");
    } else {
      Fail(pointer, "is " + Quote(mode) + R"(; there are "none", "auto" and "required")");
    }
  }

  void ReadChoice() {
    const Value* choice = in_.Find("tool_choice");
    if (choice == nullptr) {
      out_.choice.mode = out_.tools.empty() ? ToolChoice::Mode::kNone : ToolChoice::Mode::kAuto;
      return AllowAll();
    }
    const std::string pointer = "#/tool_choice";
    if (choice->type == json::Type::kString) {
      SetMode(choice->text, pointer);
      if (out_.tools.empty()) out_.choice.mode = ToolChoice::Mode::kNone;
      return AllowAll();
    }
    if (choice->type != json::Type::kObject) {
      return Fail(pointer, "must be a string or an object");
    }
    const Value* type = choice->Find("type");
    if (type != nullptr && type->text == "allowed_tools") return ReadAllowed(*choice, pointer);
    const std::optional<size_t> tool = NamedBy(*choice, pointer);
    if (!tool) return;
    out_.choice.mode = ToolChoice::Mode::kRequired;
    out_.choice.named = true;
    out_.choice.allowed = {*tool};
  }

  void ReadAllowed(const Value& choice, const std::string& pointer) {
    RequestReader outer(choice, pointer);
    const Value* wrapped = outer.FindObject("allowed_tools");
    if (!outer.ok()) return in_.Fail(outer.error());
    RequestReader in(wrapped != nullptr ? *wrapped : choice,
                     wrapped != nullptr ? outer.PointerOf("allowed_tools") : pointer);
    std::string mode = "auto";
    in.String("mode", mode);
    const Value* tools = in.FindArray("tools");
    if (in.ok() && (tools == nullptr || tools->items.empty())) in.Fail("tools", "is missing");
    if (!in.ok()) return in_.Fail(in.error());
    for (size_t i = 0; i < tools->items.size(); ++i) {
      const std::optional<size_t> tool =
          NamedBy(tools->items[i], PointerJoin(in.PointerOf("tools"), std::to_string(i)));
      if (!tool) return;
      auto& allowed = out_.choice.allowed;
      if (std::find(allowed.begin(), allowed.end(), *tool) == allowed.end()) {
        allowed.push_back(*tool);
      }
    }
    SetMode(mode, in.PointerOf("mode"));
  }

  RequestReader in_;
  const std::vector<ToolSpec>* const known_tools_;
  RequestConstraints out_;
};

std::string Format(std::string_view type, std::string_view key, const std::string& value) {
  std::string out;
  out.reserve(value.size() + type.size() + key.size() + 16);
  out += "{\"type\":\"";
  out += type;
  out += "\",\"";
  out += key;
  out += "\":";
  out += value;
  return out += '}';
}

// The older form of a structural tag as a format.
Result<std::string> FormatOfOldTag(const Value& tag, const std::string& pointer) {
  const Value* structures = tag.Find("structures");
  const Value* triggers = tag.Find("triggers");
  if (structures == nullptr || triggers == nullptr || structures->type != json::Type::kArray) {
    return Wrong(pointer, R"(must have "format", or "structures" and "triggers")");
  }
  std::string tags;
  for (size_t i = 0; i < structures->items.size(); ++i) {
    const Value& one = structures->items[i];
    const Value *begin = one.Find("begin"), *schema = one.Find("schema"), *end = one.Find("end");
    if (begin == nullptr || schema == nullptr || end == nullptr) {
      return Wrong(pointer + "/structures/" + std::to_string(i),
                   R"(must have "begin", "schema" and "end")");
    }
    tags += (i > 0 ? "," : "") + Format("tag", "begin", json::Dump(*begin));
    tags.pop_back();
    tags += ",\"content\":" + Format("json_schema", "json_schema", json::Dump(*schema)) +
            ",\"end\":" + json::Dump(*end) + "}";
  }
  return "{\"type\":\"triggered_tags\",\"triggers\":" + json::Dump(*triggers) + ",\"tags\":[" +
         tags + "]}";
}

}  // namespace

JsonSchemaOptions LayoutSpec::ToOptions() const {
  JsonSchemaOptions options;
  options.whitespace = whitespace;
  if (whitespace == JsonSchemaOptions::Whitespace::kBounded) options.max_whitespace = 8;
  options.additional_properties = additional_properties;
  options.max_string = std::max(max_string, 0);
  return options;
}

Result<std::string> ConstraintSpec::AsFormat() const {
  switch (kind) {
    case Kind::kNone:
      return std::string(R"({"type":"any_text"})");
    case Kind::kJsonSchema:
      return Format("json_schema", "json_schema", text);
    case Kind::kRegex:
      return Format("regex", "pattern", Quote(text));
    case Kind::kChoice: {
      std::string list;
      for (const std::string& choice : choices) {
        list += (list.empty() ? "" : ",") + Format("const_string", "value", Quote(choice));
      }
      return Format("or", "elements", "[" + list + "]");
    }
    case Kind::kGrammar: {
      const char* syntax = language == GrammarLanguage::kLark   ? "lark"
                           : language == GrammarLanguage::kGbnf ? "gbnf"
                                                                : "ebnf";
      return "{\"type\":\"grammar\",\"grammar\":" + Quote(text) + ",\"syntax\":\"" + syntax + "\"}";
    }
    case Kind::kStructuralTag:
      break;
  }
  const Result<Value> tag = json::Parse(text);
  if (!tag.ok()) return tag.error();
  if (const Value* format = tag->Find("format")) return json::Dump(*format);
  return FormatOfOldTag(*tag, pointer);
}

json::Value ToolSpec::Declared() const {
  std::string parameters = input.text;
  if (kind == ToolSpec::Kind::kCustom) {
    parameters =
        R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"]})";
  }
  const Result<Value> declared =
      json::Parse(R"({"type":"function","function":{"name":)" + Quote(name) + R"(,"description":)" +
                  Quote(description) + R"(,"parameters":)" + parameters + "}}");
  return declared.ok() ? *declared : Value();
}

Result<RequestConstraints> ReadConstraints(const json::Value& body,
                                           const std::vector<ToolSpec>* known) {
  return Reader(body, known).Read();
}

}  // namespace pawl::server
