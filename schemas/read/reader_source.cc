// Fields that are copied from a text. A string becomes a span of it (scalar/source_trie.h). Numbers
// and dates become the list of all values that the text has (source_values.h), as an enum would be,
// and so do strings of some formats (source_formats.h).
#include <algorithm>

#include "grammar/regex/formats.h"
#include "schemas/formula/atoms.h"
#include "schemas/number/number_set.h"
#include "schemas/read/reader_internal.h"
#include "schemas/read/source_formats.h"
#include "schemas/read/source_values.h"
#include "src/base/sorted.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

bool IsDateFormat(const json::Value* format) {
  return format != nullptr &&
         (format->text == "date" || format->text == "date-time" || format->text == "time");
}

// Of these all values that a text has are listed (FormatsIn).
bool IsListedFormat(const json::Value* format) {
  return format != nullptr && HasFormatsIn(format->text);
}

}  // namespace

std::vector<std::string> Reader::NamedTypes(const Value& schema) const {
  std::vector<std::string> out;
  const Value* const type = schema.Find("type");
  if (type == nullptr) return out;
  if (type->type == json::Type::kString) out.push_back(type->text);
  for (const Value& one : type->items) out.push_back(one.text);
  return out;
}

bool Reader::IsVerbatim(const Value& schema) const {
  if (options_.verbatim == JsonSchemaOptions::Verbatim::kNone || here_.copying != Copying::kAllowed)
    return false;
  if (schema.Find("enum") != nullptr || schema.Find("const") != nullptr) return false;
  const bool all = options_.verbatim == JsonSchemaOptions::Verbatim::kAll;
  const Value* const format = schema.Find("format");
  if (format != nullptr && !(all && (IsDateFormat(format) || IsListedFormat(format)))) return false;
  return std::ranges::any_of(NamedTypes(schema), [all](const std::string& type) {
    return type == "string" || (all && (type == "number" || type == "integer"));
  });
}

Result<std::vector<std::u32string>> Reader::FormatsInSource(const std::string& format) {
  if (const auto known = found_formats_.find(format); known != found_formats_.end())
    return known->second;
  RegexArena arena;
  const auto regex =
      format_cache_ != nullptr ? format_cache_->Regex(arena, format) : FormatRegex(arena, format);
  if (!regex.ok()) return regex.error();
  std::vector<std::u32string> values;
  for (const auto& found : FormatsIn(table_.source->text(), format, arena, *regex)) {
    if (table_.source->IsWhole(found.begin, found.end)) values.push_back(found.value);
  }
  SortUnique(values);
  return found_formats_.emplace(format, std::move(values)).first->second;
}

Result<FormulaId> Reader::Source(const Value& schema, const Path& path) {
  const Value* const keyword = schema.Find("x-pawl-source");
  if (keyword == nullptr && !IsVerbatim(schema)) return kTrueFormula;
  const Path keyword_path{&path, "x-pawl-source"};
  const Path& at = keyword != nullptr ? keyword_path : path;
  SpanKind span = SpanKind::kSpan;
  if (keyword != nullptr) {
    if (keyword->text != "span" && keyword->text != "chars")
      return Wrong(at, R"("span" or "chars")");
    if (keyword->text == "chars") span = SpanKind::kChars;
    const std::vector<std::string> types = NamedTypes(schema);
    if (!types.empty() && std::ranges::none_of(types, [](const std::string& type) {
          return type == "string" || type == "number" || type == "integer";
        })) {
      return Fail(ErrorCode::kInvalid, at, "is for strings, numbers and dates");
    }
    if (here_.copying == Copying::kPlain) return kTrueFormula;
    if (here_.copying == Copying::kRefused)
      return Fail(ErrorCode::kUnsupported, at,
                  "is not for schemas under not, if and propertyNames");
  }
  if (options_.source.empty()) {
    if (options_.bind_source) return kTrueFormula;
    return Fail(ErrorCode::kInvalid, at, "needs the text that is copied from (source)");
  }
  if (table_.source == nullptr) {
    if (const size_t bad = FindInvalidSource(options_.source); bad != std::string::npos)
      return Fail(ErrorCode::kInvalid, at,
                  "the text that is copied from is not UTF-8 at byte " + std::to_string(bad));
    table_.source = std::make_shared<SourceText>(options_.source);
  }
  const std::vector<std::string> types = NamedTypes(schema);
  const auto of_type = [&](std::string_view type) {
    return std::ranges::find(types, type) != types.end();
  };
  std::vector<FormulaId> parts;
  const auto among = [&](Kind kind, FormulaId values) {
    parts.push_back(formulas_.Or(formulas_.Kinds(static_cast<KindSet>(~KindBit(kind))), values));
  };
  const bool all = keyword != nullptr || options_.verbatim == JsonSchemaOptions::Verbatim::kAll;
  if (all && (of_type("number") || of_type("integer") || types.empty())) {
    std::vector<Decimal> numbers;
    for (auto& found : NumbersIn(table_.source->text())) {
      if (table_.source->IsWhole(found.begin, found.end)) numbers.push_back(std::move(found.value));
    }
    SortUnique(numbers);
    if (numbers.empty()) {
      among(kNumberValue, kFalseFormula);
    } else {
      if (auto set = NumberSet::Create(numbers); !set.ok())
        return Fail(set.error().code, at, set.error().message);
      among(kNumberValue, table_.AddList(std::move(numbers)));
    }
  }
  const Value* const format = schema.Find("format");
  if (IsDateFormat(format)) {
    std::vector<std::u32string> dates;
    for (const auto& found : DatesIn(table_.source->text(), format->text)) {
      if (table_.source->IsWhole(found.begin, found.end))
        dates.push_back(DecodeCodepoints(found.value));
    }
    among(kStringValue, table_.AddList(std::move(dates)));
  } else if (keyword == nullptr && IsListedFormat(format)) {
    const auto found = FormatsInSource(format->text);
    if (!found.ok()) return Fail(found.error().code, at, found.error().message);
    // Where the text has none the field is free: nothing says that it is to be left out.
    if (!found->empty()) among(kStringValue, table_.AddList(*found));
  } else {
    among(kStringValue,
          table_.AddString(
              {.type = StringAtom::Type::kSource, .regex = 0, .literals = {}, .span = span}));
  }
  return formulas_.And(parts);
}

}  // namespace pawl::schema
