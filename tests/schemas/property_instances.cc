// Random values and their spellings, and vocabularies.
#include <algorithm>
#include <cstdio>
#include <set>

#include "schemas/number/decimal.h"
#include "src/base/utf8.h"
#include "tests/schemas/property_generators.h"
#include "tests/support/vocabularies.h"

namespace pawl::property {

using json::Type;
using json::Value;

namespace {

constexpr const char* kStrings[] = {
    "",     "a",    "b",  "ab",         "bc",       "aa",       "aab",     "c",
    "a1",   "12",   "ca", "abc",        "aXb",      "\xC3\xA9", "\u00e9a", "\xF0\x9F\x98\x80",
    "a\"b", "a\\b", "\n", "2024-02-29", "10.0.0.1", "bca",      "abab",    "0"};
constexpr const char* kInstanceKeys[] = {"a", "b", "ab", "c", "\xC3\xA9", "a\"b", "", "aa", "x"};
constexpr const char* kInstanceNumbers[] = {"0",     "1",  "-1",  "2",    "3",    "4",    "5",
                                            "6",     "7",  "10",  "12",   "-3",   "0.5",  "1.5",
                                            "-0.25", "20", "100", "2.75", "14",   "-0.0", "2.5",
                                            "0.3",   "99", "101", "1e2",  "1e-1", "0.01", "-2"};

size_t SmallCount(const Value* keyword, size_t otherwise) {
  return keyword == nullptr || keyword->text.empty() ? otherwise
                                                     : static_cast<size_t>(keyword->text[0] - '0');
}

class Sampler {
 public:
  Sampler(Dice& dice, const Value& root) : dice_(dice), root_(root) {}

  Value Sample(const Value& schema, int depth) {
    if (schema.type != Type::kObject || depth <= 0 || dice_.Percent(3))
      return RandomValue(dice_, std::min(depth, 2));
    if (const Value* ref = schema.Find("$ref")) {
      const Value* defs = root_.Find("$defs");
      const Value* target =
          defs == nullptr ? nullptr : defs->Find(ref->text.substr(ref->text.rfind('/') + 1));
      if (target != nullptr) return Sample(*target, depth - 1);
    }
    if (const Value* value = schema.Find("const")) return *value;
    if (const Value* values = schema.Find("enum"); values != nullptr && !values->items.empty()) {
      return dice_.Pick(values->items);
    }
    for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
      const Value* list = schema.Find(keyword);
      if (list != nullptr && !list->items.empty() && dice_.Percent(65))
        return Sample(dice_.Pick(list->items), depth - 1);
    }
    for (const char* keyword : {"if", "then", "else"}) {
      const Value* branch = schema.Find(keyword);
      if (branch != nullptr && dice_.Percent(25)) return Sample(*branch, depth - 1);
    }
    const std::string type = TypeOf(schema);
    if (type == "object") return Object(schema, depth);
    if (type == "array") return Array(schema, depth);
    if (type == "string") return MakeString(dice_.Pick(kStrings));
    if (type == "number") return MakeNumber(dice_.Pick(kInstanceNumbers));
    if (type == "integer") return MakeNumber(std::to_string(dice_.Between(-3, 21)));
    if (type == "boolean") return MakeBool(dice_.Percent(50));
    if (type == "null") return Value{};
    return RandomValue(dice_, 2);
  }

 private:
  std::string TypeOf(const Value& schema) {
    const Value* type = schema.Find("type");
    if (type != nullptr && type->type == Type::kString) return type->text;
    if (type != nullptr && !type->items.empty()) return dice_.Pick(type->items).text;
    static constexpr std::pair<const char*, const char*> kHints[] = {
        {"properties", "object"}, {"required", "object"}, {"items", "array"},
        {"prefixItems", "array"}, {"pattern", "string"},  {"minimum", "number"}};
    for (const auto& [keyword, hint] : kHints) {
      if (schema.Find(keyword) != nullptr) return hint;
    }
    return "";
  }

  Value Object(const Value& schema, int depth) {
    Value out{Type::kObject, {}, {}, {}};
    const Value* required = schema.Find("required");
    const auto needs = [&](const std::string& key) {
      return required != nullptr && std::any_of(required->items.begin(), required->items.end(),
                                                [&](const Value& k) { return k.text == key; });
    };
    if (const Value* properties = schema.Find("properties")) {
      for (const auto& [key, sub] : properties->members) {
        if (dice_.Percent(needs(key) ? 97 : 55))
          out.members.emplace_back(key, Sample(sub, depth - 1));
      }
    }
    const auto add = [&](const std::string& key) {
      if (out.Find(key) != nullptr) return;
      const Value* additional = schema.Find("additionalProperties");
      out.members.emplace_back(
          key, additional == nullptr ? RandomValue(dice_, 1) : Sample(*additional, depth - 1));
    };
    if (required != nullptr) {
      for (const Value& key : required->items) {
        if (dice_.Percent(95)) add(key.text);
      }
    }
    const size_t least = SmallCount(schema.Find("minProperties"), 0);
    if (dice_.Percent(20) || (out.size() < least && dice_.Percent(90)))
      add(dice_.Pick(kInstanceKeys));
    if (dice_.Percent(30)) {
      for (size_t i = out.members.size(); i > 1; --i)
        std::swap(out.members[i - 1], out.members[dice_.Below(i)]);
    }
    return out;
  }

  Value Array(const Value& schema, int depth) {
    Value out{Type::kArray, {}, {}, {}};
    const Value* prefix = schema.Find("prefixItems");
    const Value* items = schema.Find("items");
    const Value* contains = schema.Find("contains");
    const size_t length =
        SmallCount(schema.Find("minItems"), prefix == nullptr ? 0 : prefix->items.size()) +
        dice_.Below(3);
    for (size_t i = 0; i < length; ++i) {
      const Value* sub = items;
      if (prefix != nullptr && i < prefix->items.size()) sub = &prefix->items[i];
      if (contains != nullptr && dice_.Percent(50)) sub = contains;
      out.items.push_back(sub == nullptr ? RandomValue(dice_, 1) : Sample(*sub, depth - 1));
    }
    return out;
  }

  Dice& dice_;
  const Value& root_;
};

std::string Space(Dice& dice) {
  static constexpr const char* kSpaces[] = {"", "", "", "", " ", "\n", "\t ", "\r\n  "};
  return dice.Pick(kSpaces);
}

std::string SpelledString(Dice& dice, const std::string& text) {
  if (dice.Percent(60)) return json::Quote(text);
  std::string out = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const DecodedCodepoint d = DecodeUtf8(rest);
    const auto length = static_cast<size_t>(d.length);
    const bool must = d.codepoint < 0x20 || d.codepoint == '"' || d.codepoint == '\\';
    if (must || dice.Percent(40)) {
      char buffer[16];
      const char* form = dice.Percent(50) ? "\\u%04x" : "\\u%04X";
      if (d.codepoint >= 0x10000) {
        const auto high = static_cast<unsigned>(0xD800 + ((d.codepoint - 0x10000) >> 10));
        const auto low = static_cast<unsigned>(0xDC00 + ((d.codepoint - 0x10000) & 0x3FF));
        std::snprintf(buffer, sizeof buffer, form, high);
        out += buffer;
        std::snprintf(buffer, sizeof buffer, form, low);
      } else {
        std::snprintf(buffer, sizeof buffer, form, static_cast<unsigned>(d.codepoint));
      }
      out += buffer;
    } else {
      out += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  out += '"';
  return out;
}

std::string SpelledNumber(Dice& dice, const std::string& text) {
  const auto value = Decimal::Parse(text);
  if (!value.ok()) return text;
  if (dice.Percent(60)) return text;
  if (value->is_zero()) return dice.Percent(50) ? "-0" : "0.0e5";
  std::string out = value->negative() ? "-" : "";
  const auto exponent = static_cast<int>(value->exponent());
  switch (dice.Below(3)) {
    case 0:
      return out + value->digits() + "e" + std::to_string(exponent);
    case 1:
      return out + value->digits() + "0E" + std::to_string(exponent - 1);
    default:
      return text.find_first_of(".eE") == std::string::npos ? text + ".0" : text;
  }
}

}  // namespace

Value MakeNumber(const std::string& text) { return Value{Type::kNumber, text, {}, {}}; }
Value MakeString(const std::string& text) { return Value{Type::kString, text, {}, {}}; }
Value MakeBool(bool value) { return Value{value ? Type::kTrue : Type::kFalse, {}, {}, {}}; }

Value RandomValue(Dice& dice, int depth) {
  switch (dice.Below(depth > 0 ? 8 : 5)) {
    case 0:
      return Value{};
    case 1:
      return MakeBool(dice.Percent(50));
    case 2:
    case 3:
      return MakeNumber(dice.Pick(kInstanceNumbers));
    case 4:
      return MakeString(dice.Pick(kStrings));
    case 5: {
      Value out{Type::kArray, {}, {}, {}};
      for (size_t n = dice.Below(4); n > 0; --n) out.items.push_back(RandomValue(dice, depth - 1));
      return out;
    }
    default: {
      Value out{Type::kObject, {}, {}, {}};
      for (size_t n = dice.Below(4); n > 0; --n) {
        const std::string key = dice.Pick(kInstanceKeys);
        if (out.Find(key) == nullptr) out.members.emplace_back(key, RandomValue(dice, depth - 1));
      }
      return out;
    }
  }
}

Value LikelyValue(Dice& dice, const Value& schema) {
  return Sampler(dice, schema).Sample(schema, 6);
}

Value Mutated(Dice& dice, const Value& value) {
  Value out = value;
  if (value.size() > 0 && dice.Percent(70)) {
    const size_t i = dice.Below(value.size());
    Value& child = out.type == Type::kObject ? out.members[i].second : out.items[i];
    if (dice.Percent(60)) {
      const Value changed = Mutated(dice, child);
      child = changed;
    } else if (out.type == Type::kObject) {
      out.members.erase(out.members.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (dice.Percent(50)) {
      const Value copy = out.items[i];
      out.items.push_back(copy);
    } else {
      out.items.erase(out.items.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return out;
  }
  switch (value.type) {
    case Type::kArray:
      out.items.push_back(RandomValue(dice, 1));
      return out;
    case Type::kObject: {
      const std::string key = dice.Pick(kInstanceKeys);
      if (out.Find(key) == nullptr) out.members.emplace_back(key, RandomValue(dice, 1));
      return out;
    }
    case Type::kString: {
      if (dice.Percent(50) || value.text.empty()) return MakeString(dice.Pick(kStrings));
      return MakeString(value.text + dice.Pick(kStrings));
    }
    default:
      return RandomValue(dice, 1);
  }
}

std::string Spelled(Dice& dice, const Value& value) {
  std::string out = Space(dice);
  switch (value.type) {
    case Type::kNumber:
      out += SpelledNumber(dice, value.text);
      break;
    case Type::kString:
      out += SpelledString(dice, value.text);
      break;
    case Type::kArray:
      out += "[" + (value.items.empty() ? Space(dice) : "");
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ",";
        out += Spelled(dice, value.items[i]);
      }
      out += "]";
      break;
    case Type::kObject:
      out += "{" + (value.members.empty() ? Space(dice) : "");
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) out += ",";
        out += Space(dice) + SpelledString(dice, value.members[i].first) + Space(dice) + ":";
        out += Spelled(dice, value.members[i].second);
      }
      out += "}";
      break;
    default:
      out += json::Dump(value);
      break;
  }
  return out + Space(dice);
}

std::shared_ptr<const Vocabulary> RandomVocabulary(Dice& dice, int random_tokens) {
  static constexpr const char* kPieces[] = {"\"",
                                            "\",\"",
                                            "\"}",
                                            ": \"",
                                            "\":",
                                            "\": ",
                                            "{\"",
                                            "[\"",
                                            "\"]",
                                            ",\"",
                                            ", \"",
                                            "}}",
                                            "]}",
                                            "}]",
                                            "[{",
                                            "{}",
                                            "[]",
                                            "},{",
                                            "],[",
                                            " \"",
                                            "  ",
                                            "\n  ",
                                            "true",
                                            "fal",
                                            "se",
                                            "null",
                                            "nu",
                                            "ll,",
                                            "-1",
                                            "10",
                                            "12",
                                            ".5",
                                            "0.",
                                            "e1",
                                            "e-",
                                            "E+",
                                            "1.0",
                                            "123",
                                            "0,",
                                            "1}",
                                            "5]",
                                            "ab",
                                            "abc",
                                            "a\"",
                                            "a\":",
                                            "\"a",
                                            "\"a\":",
                                            "\"b\":",
                                            "b\",\"",
                                            "aa",
                                            "bc",
                                            "aab",
                                            "\\u",
                                            "\\u0",
                                            "\\u00",
                                            "00",
                                            "061",
                                            "0061",
                                            "\\u0061",
                                            "\\\"",
                                            "\\\\",
                                            "\\n",
                                            "a\\",
                                            "\\u00e",
                                            "9\"",
                                            "\xC3\xA9",
                                            "\xC3",
                                            "\xA9\"",
                                            "\xF0\x9F",
                                            "\x98\x80",
                                            "\xF0\x9F\x98\x80",
                                            "\\ud83d",
                                            "\\ude00",
                                            "d83d\\u",
                                            "de00\"",
                                            "true,",
                                            "false]",
                                            "\"\"",
                                            "\"\":",
                                            "2024-",
                                            "-02-29\"",
                                            "10.0",
                                            ".0.1",
                                            "a\\\"b",
                                            "\":[",
                                            "\":{\"",
                                            "\"},",
                                            "\"],"};
  std::vector<std::string> tokens;
  std::set<std::string> known;
  const auto add = [&](const std::string& token) {
    if (!token.empty() && token.size() < 24 && known.insert(token).second) tokens.push_back(token);
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  for (const char* piece : kPieces) add(piece);
  for (int i = 0; i < random_tokens; ++i) {
    std::string token = dice.Pick(kPieces);
    token += dice.Pick(kPieces);
    if (dice.Percent(30)) token = token.substr(dice.Below(token.size()));
    add(token);
  }
  for (size_t i = tokens.size(); i > 1; --i) std::swap(tokens[i - 1], tokens[dice.Below(i)]);
  return VocabularyOf(std::move(tokens), {"<pad>"});
}

}  // namespace pawl::property
