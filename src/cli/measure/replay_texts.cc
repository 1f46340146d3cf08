// The text of an instance is what Python's json.dumps writes, so the grammar is compiled with those
// separators. Its keys come in the order of the text: where that is the schema's, as a model that
// follows the schema writes, the grammar has that order too; elsewhere it allows any. Likewise
// numbers and escapes are canonical where the text's are.
#include "src/cli/measure/replay_texts.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "src/base/file.h"
#include "src/cli/measure/python_json.h"
#include "src/cli/options.h"

namespace pawl::cli {
namespace {

void ListedStrings(const json::Value& schema, std::set<std::string, std::less<>>& out) {
  for (const auto& [key, value] : schema.members) {
    if (key == "enum") {
      for (const json::Value& item : value.items) {
        if (item.type == json::Type::kString) out.insert(item.text);
      }
    } else if (key == "const" && value.type == json::Type::kString) {
      out.insert(value.text);
    }
    ListedStrings(value, out);
  }
  for (const json::Value& item : schema.items) ListedStrings(item, out);
}

// The schema as compact JSON without what only describes it. `names`: the members are names.
void WithoutAnnotations(const json::Value& schema, bool names, std::string& out) {
  constexpr std::string_view kAnnotations[] = {"description", "title",   "$id",
                                               "$schema",     "default", "examples"};
  if (schema.type == json::Type::kArray) {
    out += '[';
    for (const json::Value& item : schema.items) {
      WithoutAnnotations(item, false, out);
      out += ',';
    }
    out += ']';
  } else if (schema.type == json::Type::kObject) {
    out += '{';
    for (const auto& [key, value] : schema.members) {
      if (!names && std::ranges::find(kAnnotations, key) != std::end(kAnnotations)) continue;
      out += json::Quote(key) + ':';
      WithoutAnnotations(value, !names && key == "properties", out);
      out += ',';
    }
    out += '}';
  } else {
    out += json::Dump(schema);
  }
}

size_t EndOfString(std::string_view text, size_t begin) {
  size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

bool Accepts(const Grammar& grammar, std::span<const TokenId> tokens) {
  State state = grammar.Start();
  for (const TokenId token : tokens) {
    std::optional<State> next = state.Advance(token);
    if (!next) return false;
    state = *next;
  }
  return state.accepting();
}

// One grammar for each way to write, compiled when it is needed.
class Grammars {
 public:
  Grammars(const Compiler& compiler, std::string schema)
      : compiler_(compiler), schema_(std::move(schema)) {}
  const Grammar* Find(std::span<const TokenId> tokens) {
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!tried_[i]) {
        tried_[i] = true;
        JsonSchemaOptions options = LayoutFor(i);
        Result<Grammar> grammar = compiler_.CompileJsonSchema(schema_, options);
        if (grammar.ok()) made_[i] = *std::move(grammar);
      }
      if (made_[i] && Accepts(*made_[i], tokens)) return &*made_[i];
    }
    return nullptr;
  }

 private:
  static JsonSchemaOptions LayoutFor(size_t i) {
    LayoutFlags layout;
    layout.whitespace = "compact";
    layout.order = i % 2 == 0 ? "schema" : "any";
    layout.spelling = i < 2 ? "canonical" : "any";
    layout.separators = {", ", ": "};
    return layout.ToOptions();
  }
  const Compiler& compiler_;
  const std::string schema_;
  std::array<bool, 4> tried_ = {};
  std::array<std::optional<Grammar>, 4> made_;
};

}  // namespace

std::vector<TextKind> KindsOfBytes(std::string_view text, const json::Value& schema,
                                   std::string_view prompt, bool tool) {
  if (tool) return std::vector<TextKind>(text.size(), TextKind::kTools);
  std::set<std::string, std::less<>> listed;
  ListedStrings(schema, listed);
  std::vector<TextKind> kinds(text.size(), TextKind::kObjects);
  std::vector<bool> in_array;
  const auto fill = [&](size_t begin, size_t end, TextKind kind) {
    std::fill(kinds.begin() + static_cast<ptrdiff_t>(begin),
              kinds.begin() + static_cast<ptrdiff_t>(end), kind);
  };
  constexpr size_t kShortCopy = 4;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const bool array = !in_array.empty() && in_array.back();
    size_t end = i + 1;
    TextKind kind = array ? TextKind::kArrays : TextKind::kObjects;
    if (c == '"') {
      end = EndOfString(text, i);
      const bool key = !array && end < text.size() && text[end] == ':';
      const std::string_view inner = text.substr(i + 1, end - i - 2);
      if (!key) {
        kind = listed.contains(inner) ? TextKind::kEnums
               : inner.size() >= kShortCopy && prompt.find(inner) != std::string_view::npos
                   ? TextKind::kCopied
                   : TextKind::kFree;
      } else {
        kind = TextKind::kObjects;
      }
    } else if (c == '{' || c == '[') {
      in_array.push_back(c == '[');
      kind = c == '[' ? TextKind::kArrays : TextKind::kObjects;
    } else if (c == '}' || c == ']') {
      kind = c == ']' ? TextKind::kArrays : TextKind::kObjects;
      if (!in_array.empty()) in_array.pop_back();
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      while (end < text.size() &&
             std::string_view("0123456789.eE+-").find(text[end]) != std::string_view::npos) {
        ++end;
      }
      kind = TextKind::kNumbers;
    } else if (c >= 'a' && c <= 'z') {
      while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
      kind = TextKind::kEnums;
    }
    fill(i, end, kind);
    i = end;
  }
  return kinds;
}

Result<std::vector<std::string>> ReplayFiles(const std::string& folder, int limit) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  if (error) return Error{ErrorCode::kIo, error.message(), folder};
  if (files.empty()) {
    return Error{ErrorCode::kInvalid, "holds no .json files of MaskBench", folder};
  }
  std::sort(files.begin(), files.end());
  if (limit <= 0 || static_cast<size_t>(limit) >= files.size()) return files;
  std::vector<std::string> some;
  for (int i = 0; i < limit; ++i) {
    some.push_back(files[static_cast<size_t>(i) * files.size() / static_cast<size_t>(limit)]);
  }
  return some;
}

bool IsToolFile(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.starts_with("BFCL") || name.starts_with("Glaive");
}

Result<std::optional<ReplayFile>> ReadReplayFile(const std::string& path, const ModelText& text) {
  Result<std::string> content = ReadFile(path);
  if (!content.ok()) return content.error();
  Result<json::Value> file =
      json::Parse(*content, {.max_depth = 2000, .allow_duplicate_keys = true});
  if (!file.ok()) return InFile(path, file.error());
  const json::Value* schema = file->Find("schema");
  const json::Value* tests = file->Find("tests");
  if (schema == nullptr) {
    return Error{ErrorCode::kInvalid, "has no \"schema\": not a file of MaskBench", path};
  }
  if (tests == nullptr) return std::optional<ReplayFile>();
  ReplayFile out;
  out.name = std::filesystem::path(path).filename().string();
  const bool tool = IsToolFile(path);
  out.is_tool = tool;
  if (tool) WithoutAnnotations(*schema, false, out.tool);
  const std::string prompt = PythonJson(*schema);
  const Compiler compiler(text.vocabulary);
  Grammars grammars(compiler, json::Dump(*schema));
  for (const json::Value& test : tests->items) {
    const json::Value* valid = test.Find("valid");
    const json::Value* data = test.Find("data");
    if (valid == nullptr || data == nullptr || valid->type != json::Type::kTrue) continue;
    const std::string instance = PythonJson(*data);
    std::vector<TokenId> tokens = text.tokenizer->Encode(instance);
    const Grammar* grammar = grammars.Find(tokens);
    if (grammar == nullptr || tokens.empty()) {
      ++out.skipped;
      continue;
    }
    ReplayText made = {*grammar, std::move(tokens), {}};
    const std::vector<TextKind> bytes = KindsOfBytes(instance, *schema, prompt, tool);
    size_t at = 0;
    for (const TokenId token : made.tokens) {
      // A mark before a value belongs to the token of the value's first letters.
      const size_t end = std::min(bytes.size(), at + text.vocabulary->bytes(token).size());
      made.kinds.push_back(at < bytes.size() ? bytes[end > at ? end - 1 : at] : TextKind::kObjects);
      at = end;
    }
    out.texts.push_back(std::move(made));
  }
  if (out.texts.empty() && out.skipped == 0) return std::optional<ReplayFile>();
  if (!out.texts.empty()) out.prompt = text.tokenizer->Encode(prompt);
  return std::optional<ReplayFile>(std::move(out));
}

}  // namespace pawl::cli
