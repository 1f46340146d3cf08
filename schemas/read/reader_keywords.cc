// The keywords of each kind of value: what is checked of the schema, and the atom they become.
#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "grammar/regex/ecma_parser.h"
#include "grammar/regex/formats.h"
#include "schemas/formula/atoms.h"
#include "schemas/read/near_keyword.h"
#include "schemas/read/reader_internal.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

// Keywords that never constrain (identifiers, containers of definitions), in every dialect we know.
bool NamesOrHolds(std::string_view keyword) {
  constexpr std::string_view kNames[] = {
      "$schema",          "$id",         "id",    "$anchor",    "$dynamicAnchor",
      "$recursiveAnchor", "$vocabulary", "$defs", "definitions"};
  return std::ranges::find(kNames, keyword) != std::end(kNames);
}

// Keywords with the dialect that introduced them, and the last one that has them.
struct Keyword {
  Dialect first, last;
};
const std::unordered_map<std::string_view, Keyword>& Keywords() {
  constexpr Dialect k4 = Dialect::kDraft4, k6 = Dialect::kDraft6, k7 = Dialect::kDraft7,
                    k19 = Dialect::k2019, k20 = Dialect::k2020;
  static const std::unordered_map<std::string_view, Keyword> kKeywords = {
      {"$ref", {k4, k20}},
      {"type", {k4, k20}},
      {"enum", {k4, k20}},
      {"const", {k6, k20}},
      {"properties", {k4, k20}},
      {"required", {k4, k20}},
      {"additionalProperties", {k4, k20}},
      {"patternProperties", {k4, k20}},
      {"propertyNames", {k6, k20}},
      {"minProperties", {k4, k20}},
      {"maxProperties", {k4, k20}},
      {"dependentRequired", {k19, k20}},
      {"dependentSchemas", {k19, k20}},
      {"dependencies", {k4, k20}},
      {"items", {k4, k20}},
      {"prefixItems", {k20, k20}},
      {"additionalItems", {k4, k20}},
      {"minItems", {k4, k20}},
      {"maxItems", {k4, k20}},
      {"uniqueItems", {k4, k20}},
      {"contains", {k6, k20}},
      {"minContains", {k19, k20}},
      {"maxContains", {k19, k20}},
      {"minLength", {k4, k20}},
      {"maxLength", {k4, k20}},
      {"pattern", {k4, k20}},
      {"format", {k4, k20}},
      {"minimum", {k4, k20}},
      {"maximum", {k4, k20}},
      {"exclusiveMinimum", {k4, k20}},
      {"exclusiveMaximum", {k4, k20}},
      {"multipleOf", {k4, k20}},
      {"allOf", {k4, k20}},
      {"anyOf", {k4, k20}},
      {"oneOf", {k4, k20}},
      {"not", {k4, k20}},
      {"if", {k7, k20}},
      {"then", {k7, k20}},
      {"else", {k7, k20}},
      {"unevaluatedProperties", {k19, k20}},
      {"unevaluatedItems", {k19, k20}},
      {"$dynamicRef", {k20, k20}},
      {"$recursiveRef", {k19, k19}},
      {"x-pawl-source", {k4, k20}}};
  return kKeywords;
}

std::optional<KindSet> KindsOf(const std::string& type) {
  if (type == "null") return KindBit(kNullValue);
  if (type == "boolean") return static_cast<KindSet>(KindBit(kTrueValue) | KindBit(kFalseValue));
  if (type == "number" || type == "integer") return KindBit(kNumberValue);
  if (type == "string") return KindBit(kStringValue);
  if (type == "array") return KindBit(kArrayValue);
  if (type == "object") return KindBit(kObjectValue);
  return std::nullopt;
}

// RFC 3986 by its characters; beyond ASCII as RFC 3987 has it.
bool MayBeUri(std::string_view text) {
  const auto hex = [&](size_t i) { return i < text.size() && HexDigit(text[i]) >= 0; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) <= ' ' || text[i] == 0x7F) return false;
    if (std::string_view("\"<>\\^`{|}").find(text[i]) != std::string_view::npos) return false;
    if (text[i] == '%' && !(hex(i + 1) && hex(i + 2))) return false;
  }
  return std::count(text.begin(), text.end(), '#') <= 1;
}

bool IsAnchor(std::string_view text, Dialect dialect) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool old = dialect < Dialect::k2020;
  if (text.empty() || !(letter(text[0]) || (text[0] == '_' && !old))) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
           (c == ':' && old);
  });
}

}  // namespace

bool Reader::Ignored(std::string_view keyword) const {
  if (IgnoresNone()) return false;
  static const std::unordered_set<std::string_view> kValidation = {
      "type",         "enum",      "const",         "multipleOf",       "maximum",
      "minimum",      "minLength", "maxLength",     "exclusiveMaximum", "exclusiveMinimum",
      "pattern",      "minItems",  "maxItems",      "uniqueItems",      "minContains",
      "maxContains",  "required",  "maxProperties", "minProperties",    "dependentRequired",
      "x-pawl-source"};
  return kValidation.contains(keyword);
}

// Keywords that demand nothing of a value, but have a form.
Status Reader::CheckForm(const std::string& name, const Value& value, const Path& path) {
  const bool is_string = value.type == json::Type::kString;
  if (name == "$schema" && options_.force_dialect.empty() && !is_string)
    return Wrong(path, "a string");
  if (name == "id" && !At(Dialect::kDraft6) && !is_string) {
    // A property that somebody forgot to put under "properties", more often than not.
    Note(value, path, "id is no string, so it is no keyword");
    return Status();
  }
  if (name == (At(Dialect::kDraft6) ? "$id" : "id") && !(is_string && MayBeUri(value.text)))
    return Wrong(path, "a URI reference");
  if (name == "$id" && At(Dialect::k2019) && value.text.find('#') + 1 < value.text.size() &&
      value.text.find('#') != std::string::npos)
    return Wrong(path, "a URI reference without a fragment (use $anchor for a name)");
  if (((name == "$anchor" && At(Dialect::k2019)) ||
       (name == "$dynamicAnchor" && At(Dialect::k2020))) &&
      !(is_string && IsAnchor(value.text, dialect())))
    return Wrong(path, "a name: a letter, then letters, digits, '-', '_' and '.'");
  if (name == "$recursiveAnchor" && dialect() == Dialect::k2019 && !value.is_bool())
    return Wrong(path, "a boolean");
  if (name == "$vocabulary" && At(Dialect::k2019)) {
    const bool fits = value.type == json::Type::kObject &&
                      std::all_of(value.members.begin(), value.members.end(),
                                  [](const auto& member) { return member.second.is_bool(); });
    if (!fits) return Wrong(path, "an object of booleans");
  }
  if (name == "contentSchema" && At(Dialect::k2019) && !value.is_bool() &&
      value.type != json::Type::kObject)
    return Wrong(path, "a schema (an object or a boolean)");
  return {};
}

Status Reader::CheckKeywords(const Value& schema, const Path& path) {
  for (const auto& [name, value] : schema.members) {
    if (Status form = CheckForm(name, value, {&path, name}); !form.ok()) return form;
    const auto it = Keywords().find(name);
    const bool known =
        it != Keywords().end() && dialect() >= it->second.first && dialect() <= it->second.last;
    // An unknown keyword is an annotation by the specification; worth a remark, since it is often a
    // misspelling.
    if (known || NamesOrHolds(name) || IsAnnotation(name)) continue;
    const std::string_view meant = it == Keywords().end() ? MeantBy(name) : "";
    Note(value, {&path, name},
         "not a keyword of this dialect, taken as an annotation" +
             (meant.empty() ? "" : "; is " + std::string(meant) + " meant?"));
  }
  return {};
}

std::string_view Reader::MeantBy(std::string_view name) {
  if (++hints_ > kMostHints) return "";
  std::vector<std::string_view> candidates;
  for (const auto& [keyword, of] : Keywords()) {
    if (dialect() >= of.first && dialect() <= of.last) candidates.push_back(keyword);
  }
  return NearKeyword(name, candidates);
}

Result<uint64_t> Reader::Count(const Value& value, const Path& path) {
  const std::string expected = "a non-negative integer";
  auto number = Number(value, path);
  if (!number.ok()) return Wrong(path, expected);
  if (number->negative() || !number->IsInteger()) return Wrong(path, expected);
  if (number->is_zero()) return uint64_t{0};
  if (number->order() > 18) return uint64_t{1'000'000'000'000'000'000};
  return static_cast<uint64_t>(
      std::stoull(number->digits() + std::string(static_cast<size_t>(number->exponent()), '0')));
}

Result<Decimal> Reader::Number(const Value& value, const Path& path) {
  if (value.type != json::Type::kNumber) return Wrong(path, "a number");
  auto decimal = Decimal::Parse(value.text);
  if (!decimal.ok()) return Fail(decimal.error().code, path, decimal.error().message);
  return decimal;
}

Result<std::vector<std::string>> Reader::Names(const Value& value, const Path& path) {
  std::vector<std::string> out;
  bool good = value.type == json::Type::kArray;
  std::unordered_set<std::string_view> known;
  for (const Value& item : value.items) {
    good = good && item.type == json::Type::kString;
    if (good && known.insert(item.text).second) out.push_back(item.text);
  }
  if (!good) return Wrong(path, "an array of strings");
  return out;
}

Result<FormulaId> Reader::Types(const Value& value, const Path& path) {
  std::vector<FormulaId> alternatives;
  const auto add = [&](const Value& type) {
    const auto kinds = type.type == json::Type::kString ? KindsOf(type.text) : std::nullopt;
    if (!kinds) return false;
    FormulaId formula = formulas_.Kinds(*kinds);
    if (type.text == "integer") {
      NumberConstraint integer;
      integer.integer = true;
      integer.integer_text = dialect() == Dialect::kDraft4;
      formula = formulas_.And(formula, table_.AddNumber(std::move(integer)));
    }
    alternatives.push_back(formula);
    return true;
  };
  const std::string expected =
      "null, boolean, number, integer, string, array or object, or an array of these";
  if (value.type == json::Type::kString) {
    if (!add(value)) return Wrong(path, expected);
  } else if (value.type == json::Type::kArray) {
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (!add(value.items[i]))
        return Wrong({&path, {}, i}, "null, boolean, number, integer, string, array or object");
    }
  } else {
    return Wrong(path, expected);
  }
  return formulas_.Or(alternatives);
}

Result<FormulaId> Reader::Pattern(std::string_view pattern, const Path& path) {
  auto regex = ParseEcma(*table_.regexes, pattern);
  if (!regex.ok()) {
    const Error& error = regex.error();
    return Fail(
        error.code, path,
        error.message + (error.place.empty() ? "" : " (" + error.place + " of the pattern)"));
  }
  return table_.AddRegex(*regex);
}

Result<FormulaId> Reader::Strings(const Value& schema, const Path& path) {
  std::vector<FormulaId> parts;
  StringAtom length;
  length.type = StringAtom::Type::kLength;
  for (const auto& [name, value] : schema.members) {
    if (Ignored(name)) continue;
    const Path at{&path, name};
    if (name == "minLength" || name == "maxLength") {
      if (auto e = Take(name == "minLength" ? length.min : length.max, Count(value, at))) return *e;
    } else if (name == "pattern") {
      if (value.type != json::Type::kString) return Wrong(at, "a string");
      if (auto e = Take(parts.emplace_back(), Pattern(value.text, at))) return *e;
    } else if (name == "format") {
      if (auto e = Take(parts.emplace_back(), Format(value, at))) return *e;
    }
  }
  if (length.min > length.max) {
    parts.push_back(formulas_.Kinds(static_cast<KindSet>(~KindBit(kStringValue))));
  } else {
    parts.push_back(table_.AddString(std::move(length)));
  }
  return formulas_.And(parts);
}

Result<FormulaId> Reader::Format(const Value& value, const Path& path) {
  if (value.type != json::Type::kString) return Wrong(path, "a string");
  if (!options_.assert_formats) return kTrueFormula;
  if (value.text == "int32" || value.text == "int64") {
    NumberConstraint range;
    range.minimum = *Decimal::Parse(value.text == "int32" ? "-2147483648" : "-9223372036854775808");
    range.maximum = *Decimal::Parse(value.text == "int32" ? "2147483647" : "9223372036854775807");
    return table_.AddNumber(std::move(range));
  }
  if (value.text == "float" || value.text == "double") return kTrueFormula;
  if (!IsKnownFormat(value.text)) {
    Note(value, path, "unknown format " + json::Quote(value.text) + ", taken as an annotation");
    return kTrueFormula;
  }
  if (const auto known = formats_.find(value.text); known != formats_.end()) return known->second;
  auto regex = format_cache_ != nullptr ? format_cache_->Regex(*table_.regexes, value.text)
                                        : FormatRegex(*table_.regexes, value.text);
  if (!regex.ok()) return Fail(regex.error().code, path, regex.error().message);
  const FormulaId formula = table_.AddRegex(*regex);
  const bool has_seconds = value.text == "time" || value.text == "date-time";
  const bool counts = has_seconds || value.text == "duration";
  if (counts && options_.canonical_spelling && options_.max_decimals > 0) {
    // Not as many decimals, or digits of a duration, as a model likes.
    RegexArena& regexes = *table_.regexes;
    auto many = ParseEcma(regexes, std::string(has_seconds ? "\\." : "") + "\\d{" +
                                       std::to_string(options_.max_decimals + 1) + "}");
    if (!many.ok()) return Fail(many.error().code, path, many.error().message);
    const ReId few = regexes.And(*regex, regexes.Not(*many));
    table_.written.emplace(formulas_.value(formula), table_.AddRegex(few));
  }
  table_.formats.emplace(formula, value.text);
  return formats_.emplace(value.text, formula).first->second;
}

Result<FormulaId> Reader::Numbers(const Value& schema, const Path& path) {
  std::vector<FormulaId> parts;
  for (const auto& [name, value] : schema.members) {
    if (Ignored(name)) continue;
    const Path at{&path, name};
    const bool exclusive = name == "exclusiveMinimum" || name == "exclusiveMaximum";
    if (exclusive && dialect() == Dialect::kDraft4) {
      if (!value.is_bool()) return Wrong(at, "a boolean (in draft 4)");
      continue;  // read with its bound
    }
    if (name == "minimum" || name == "maximum" || exclusive) {
      NumberConstraint one;
      const bool lower = name == "minimum" || name == "exclusiveMinimum";
      bool strict = exclusive;
      if (dialect() == Dialect::kDraft4) {
        const Value* flag = schema.Find(lower ? "exclusiveMinimum" : "exclusiveMaximum");
        strict = flag != nullptr && flag->type == json::Type::kTrue;
      }
      if (auto e = Take(lower ? one.minimum : one.maximum, Number(value, at))) return *e;
      (lower ? one.exclusive_minimum : one.exclusive_maximum) = strict;
      parts.push_back(table_.AddNumber(std::move(one)));
    } else if (name == "multipleOf") {
      auto divisor = Number(value, at);
      if (!divisor.ok()) return divisor.error();
      if (divisor->negative() || divisor->is_zero()) return Wrong(at, "greater than 0");
      NumberConstraint one;
      one.multiple_of = *divisor;
      // Limits of the automaton are found here, where the keyword can be named.
      auto automaton = NumberAutomaton::Create(one, options_.allow_exponents);
      if (!automaton.ok()) return Fail(automaton.error().code, at, automaton.error().message);
      parts.push_back(table_.AddNumber(std::move(one)));
    }
  }
  return formulas_.And(parts);
}

Result<FormulaId> Reader::Arrays(const Value& schema, const Path& path) {
  ArrayAtom atom;
  bool any = false;
  const Value* tuple = schema.Find("prefixItems");
  const char* tuple_name = "prefixItems";
  if (!At(Dialect::k2020)) tuple = nullptr;
  const Value* items = schema.Find("items");
  const char* rest_name = "items";
  const Value* rest = items;
  // An array under "items" is the older spelling of a tuple; we take it in every dialect.
  if (items != nullptr && items->type == json::Type::kArray && tuple == nullptr) {
    tuple = items;
    tuple_name = "items";
    rest = schema.Find("additionalItems");
    rest_name = "additionalItems";
  }
  if (tuple != nullptr) {
    if (auto e = Take(atom.prefix, SchemaList(*tuple, {&path, tuple_name}))) return *e;
    any = true;
  }
  if (rest != nullptr) {
    if (auto e = Take(atom.items, Schema(*rest, {&path, rest_name}))) return *e;
    any = true;
  }
  for (const auto& [name, value] : schema.members) {
    if (Ignored(name)) continue;
    const Path at{&path, name};
    if (name == "minItems" || name == "maxItems") {
      uint64_t& bound = name == "minItems" ? atom.min_items : atom.max_items;
      if (auto e = Take(bound, Count(value, at))) return *e;
      any = true;
    } else if (name == "contains" && At(Dialect::kDraft6)) {
      if (auto e = Take(atom.contains, Schema(value, at, Stands::kInPlace))) return *e;
      atom.has_contains = true;
      any = true;
    } else if ((name == "minContains" || name == "maxContains") && At(Dialect::k2019)) {
      uint64_t& bound = name == "minContains" ? atom.min_contains : atom.max_contains;
      if (auto e = Take(bound, Count(value, at))) return *e;
    } else if (name == "uniqueItems") {
      if (!value.is_bool()) return Wrong(at, "a boolean");
      atom.unique = value.type == json::Type::kTrue;
      any = any || atom.unique;
      if (atom.unique) unique_.push_back({atom.items, at.ToString()});
    }
  }
  if (!any) return kTrueFormula;
  if (atom.min_items > atom.max_items ||
      (atom.has_contains && atom.min_contains > atom.max_contains)) {
    return formulas_.Kinds(static_cast<KindSet>(~KindBit(kArrayValue)));
  }
  return table_.AddArray(std::move(atom));
}

Result<FormulaId> Reader::Objects(const Value& schema, const Path& path) {
  ObjectAtom atom;
  bool any = false;
  for (const auto& [name, value] : schema.members) {
    if (Ignored(name)) continue;
    const Path at{&path, name};
    if (name == "properties" || name == "patternProperties") {
      if (value.type != json::Type::kObject) return Wrong(at, "an object");
      for (const auto& [key, member] : value.members) {
        const Path inner{&at, key};
        FormulaId formula = kTrueFormula, pattern = kTrueFormula;
        if (auto e = Take(formula, Schema(member, inner))) return *e;
        if (name == "properties") {
          atom.properties.emplace_back(key, formula);
        } else {
          if (auto e = Take(pattern, Pattern(key, inner))) return *e;
          atom.patterns.push_back({pattern, formula});
        }
        any = true;
      }
    } else if (name == "additionalProperties") {
      if (auto e = Take(atom.additional, Schema(value, at))) return *e;
      any = true;
    } else if (name == "propertyNames" && At(Dialect::kDraft6)) {
      if (auto e = Take(atom.property_names, DeniedSchema(value, at, Stands::kAlone))) return *e;
      any = true;
    } else if (name == "required") {
      if (auto e = Take(atom.required, Names(value, at))) return *e;
      any = any || !atom.required.empty();
    } else if (name == "minProperties" || name == "maxProperties") {
      uint64_t& bound = name == "minProperties" ? atom.min_properties : atom.max_properties;
      if (auto e = Take(bound, Count(value, at))) return *e;
      any = true;
    }
  }
  if (!any) return kTrueFormula;
  if (ReadsKeys() && !here_.given) AskForKeys(path, atom);
  if (atom.min_properties > atom.max_properties)
    return formulas_.Kinds(static_cast<KindSet>(~KindBit(kObjectValue)));
  return table_.AddObject(std::move(atom));
}

// An object that has the key. One atom for each key, so that formulas over it simplify.
FormulaId Reader::Present(const std::string& name) {
  const auto [it, fresh] = present_.try_emplace(name, kTrueFormula);
  if (fresh) {
    ObjectAtom atom;
    atom.required.push_back(name);
    it->second =
        formulas_.And(formulas_.Kinds(KindBit(kObjectValue)), table_.AddObject(std::move(atom)));
  }
  return it->second;
}

// "If the key is there, then ...": the key's absence is the negation of an atom that requires it.
Result<FormulaId> Reader::Dependencies(const Value& schema, const Path& path) {
  std::vector<FormulaId> parts;
  for (const auto& [keyword, value] : schema.members) {
    if (Ignored(keyword)) continue;
    const bool both = keyword == "dependencies";
    const bool names_only = keyword == "dependentRequired" && At(Dialect::k2019);
    const bool schemas_only = keyword == "dependentSchemas" && At(Dialect::k2019);
    if (!both && !names_only && !schemas_only) continue;
    const Path at{&path, keyword};
    if (value.type != json::Type::kObject) return Wrong(at, "an object");
    for (const auto& [name, dependency] : value.members) {
      const Path inner{&at, name};
      FormulaId consequence = kTrueFormula;
      if (dependency.type == json::Type::kArray && !schemas_only) {
        ObjectAtom atom;
        if (auto e = Take(atom.required, Names(dependency, inner))) return *e;
        if (atom.required.empty()) continue;
        consequence = table_.AddObject(std::move(atom));
      } else if (names_only) {
        return Wrong(inner, "an array of strings");
      } else {
        if (auto e = Take(consequence, Schema(dependency, inner, Stands::kInPlace))) return *e;
      }
      parts.push_back(formulas_.Or(formulas_.Not(Present(name)), consequence));
    }
  }
  return formulas_.And(parts);
}

}  // namespace pawl::schema
