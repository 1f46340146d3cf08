// The scanner follows texts of which a JSON parser has said, or will say, that they are JSON; it
// only keeps the places. Choices are looked for along the keywords that lead from a schema to the
// schema of a member or an item. What they find may be more than the schema allows, never less, so
// callers ask the grammar about each.
#include "src/engine/record_values.h"

#include <span>
#include <utility>

namespace pawl {

const json::Value* ReferenceTarget(const json::Value& root, const json::Value& schema) {
  const json::Value* const ref = schema.Find("$ref");
  if (ref == nullptr || !ref->text.starts_with('#')) return nullptr;
  const std::string_view pointer = std::string_view(ref->text).substr(1);
  if (!pointer.empty() && pointer.front() != '/') return nullptr;
  const json::Value* at = &root;
  for (const std::string& token : json::PointerTokens(pointer)) {
    at = at->type == json::Type::kArray ? json::ItemAt(*at, token) : at->Find(token);
    if (at == nullptr) return nullptr;
  }
  return at;
}

namespace {

constexpr int kDeepestValue = 512;

class ValueScanner {
 public:
  explicit ValueScanner(std::string_view text) : text_(text) {}

  bool Scan(const std::string& pointer, size_t from, int depth) {
    Space();
    const size_t begin = at_;
    if (depth > kDeepestValue || at_ >= text_.size()) return false;
    const char first = text_[at_];
    if (first == '{' || first == '[') {
      const char close = first == '{' ? '}' : ']';
      ++at_;
      const size_t inside = at_;
      Space();
      if (!Eat(close)) return Inner(pointer, close, inside, depth);
    } else if (first == '"') {
      if (!String()) return false;
    } else {
      constexpr std::string_view kEnds = ",:]}\"[{ \t\r\n";
      while (at_ < text_.size() && kEnds.find(text_[at_]) == std::string_view::npos) ++at_;
      if (at_ == begin) return false;
    }
    places_.push_back({pointer, from, begin, at_});
    return true;
  }

  size_t at() const { return at_; }
  std::vector<ValuePlace> Take() { return std::move(places_); }

 private:
  bool Inner(const std::string& pointer, char close, size_t from, int depth) {
    for (size_t i = 0;; ++i) {
      std::string token = std::to_string(i);
      if (close == '}') {
        Space();
        const size_t key = at_;
        if (!String()) return false;
        const Result<json::Value> name = json::Parse(text_.substr(key, at_ - key));
        if (!name.ok()) return false;
        token = name->text;
        Space();
        if (!Eat(':')) return false;
        from = at_;
      }
      if (!Scan(json::PointerJoin(pointer, token), from, depth + 1)) return false;
      Space();
      if (Eat(close)) return true;
      if (!Eat(',')) return false;
      from = at_;
    }
  }

  bool String() {
    if (!Eat('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    return Eat('"');
  }
  bool Eat(char c) {
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }
  void Space() {
    constexpr std::string_view kSpace = " \t\r\n";
    while (at_ < text_.size() && kSpace.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::vector<ValuePlace> places_;
};

// Schemas that hold at one place of a record, all of them or, below anyOf and oneOf, one of them.
class ChoiceFinder {
 public:
  explicit ChoiceFinder(const json::Value& root) : root_(root) {}

  // Those of the value to which the tokens lead from a schema.
  std::optional<std::vector<std::string>> At(const json::Value& schema,
                                             std::span<const std::string> tokens) {
    if (++steps_ > kMostSteps || schema.type != json::Type::kObject) return std::nullopt;
    if (tokens.empty()) {
      if (auto own = Own(schema)) return own;
    } else if (const json::Value* const next = Below(schema, tokens.front())) {
      if (auto own = At(*next, tokens.subspan(1))) return own;
    }
    if (const json::Value* const target = ReferenceTarget(root_, schema)) {
      if (auto found = At(*target, tokens)) return found;
    }
    if (const json::Value* const all = schema.Find("allOf")) {
      for (const json::Value& one : all->items) {
        if (auto found = At(one, tokens)) return found;
      }
    }
    for (const char* const name : {"anyOf", "oneOf"}) {
      if (const json::Value* const any = schema.Find(name)) {
        if (auto found = Any(*any, tokens)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr int kMostSteps = 2'000;

  static std::optional<std::vector<std::string>> Own(const json::Value& schema) {
    std::vector<std::string> out;
    if (const json::Value* const one = schema.Find("const")) return std::vector{json::Dump(*one)};
    if (const json::Value* const list = schema.Find("enum")) {
      for (const json::Value& one : list->items) out.push_back(json::Dump(one));
      return out;
    }
    const json::Value* const type = schema.Find("type");
    if (type == nullptr) return std::nullopt;
    std::vector<std::string> names = {type->text};
    if (type->type == json::Type::kArray) {
      names.clear();
      for (const json::Value& one : type->items) names.push_back(one.text);
    }
    for (const std::string& name : names) {
      if (name == "boolean") {
        out.insert(out.end(), {"true", "false"});
      } else if (name == "null") {
        out.emplace_back("null");
      } else {
        return std::nullopt;
      }
    }
    return out;
  }

  static const json::Value* Below(const json::Value& schema, const std::string& token) {
    if (const json::Value* const properties = schema.Find("properties")) {
      if (const json::Value* const one = properties->Find(token)) return one;
    }
    const json::Value* const items = schema.Find("items");
    for (const json::Value* const list : {schema.Find("prefixItems"), items}) {
      if (list == nullptr || list->type != json::Type::kArray) continue;
      if (const json::Value* const one = json::ItemAt(*list, token)) return one;
    }
    if (items != nullptr && items->type == json::Type::kObject) return items;
    return schema.Find("additionalProperties");
  }

  // Where each of the schemas that may hold lists its values.
  std::optional<std::vector<std::string>> Any(const json::Value& schemas,
                                              std::span<const std::string> tokens) {
    std::vector<std::string> out;
    for (const json::Value& one : schemas.items) {
      // An object has no part in what stands below a list, and the other way round.
      if (!tokens.empty() && one.type == json::Type::kObject &&
          Below(one, tokens.front()) == nullptr && ReferenceTarget(root_, one) == nullptr &&
          one.Find("anyOf") == nullptr && one.Find("oneOf") == nullptr &&
          one.Find("allOf") == nullptr) {
        continue;
      }
      auto found = At(one, tokens);
      if (!found) return std::nullopt;
      out.insert(out.end(), found->begin(), found->end());
    }
    if (out.empty()) return std::nullopt;
    return out;
  }

  const json::Value& root_;
  int steps_ = 0;
};

}  // namespace

std::optional<std::vector<ValuePlace>> ValuesIn(std::string_view text, size_t* end) {
  ValueScanner scanner(text);
  if (!scanner.Scan("", 0, 0)) return std::nullopt;
  if (end != nullptr) *end = scanner.at();
  return scanner.Take();
}

std::optional<std::vector<std::string>> ChoicesAt(const json::Value& schema,
                                                  std::string_view pointer) {
  const std::vector<std::string> tokens = json::PointerTokens(pointer);
  return ChoiceFinder(schema).At(schema, tokens);
}

}  // namespace pawl
