// What of a schema demands nothing, and why: for those who want to know that each word of theirs
// was understood. Unknown keywords and formats are noted where they are read, in any case; here
// come the known ones that are annotations by the specification, and those that would demand
// something in another dialect, beside another keyword or under other options.
#include <algorithm>
#include <iterator>

#include "schemas/limits.h"
#include "schemas/read/reader_internal.h"

namespace pawl::schema {

bool IsAnnotation(std::string_view keyword) {
  constexpr std::string_view kNames[] = {
      "$comment", "title",     "description",     "default",          "examples",     "deprecated",
      "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema"};
  return std::ranges::find(kNames, keyword) != std::end(kNames);
}

// Empty: it is no annotation, or noted by those who read it.
std::string Reader::WhyAnnotation(const std::string& name, const Value& value,
                                  const Value& schema) const {
  if (IsAnnotation(name)) return "an annotation by the specification";
  if (Ignored(name)) return "the $vocabulary of the metaschema leaves it without meaning";
  if (name == "format") {
    if (!options_.assert_formats) return "formats are annotations by option";
    if (value.text == "float" || value.text == "double")
      return json::Quote(value.text) + " allows every number";
    return "";
  }
  const auto without = [&](std::string_view other) { return schema.Find(other) == nullptr; };
  if (name == "if" && At(Dialect::kDraft7) && without("then") && without("else"))
    return "without then and else it has no effect";
  if ((name == "then" || name == "else") && At(Dialect::kDraft7) && without("if"))
    return "without if it has no effect";
  if ((name == "minContains" || name == "maxContains") && At(Dialect::k2019) && without("contains"))
    return "without contains it has no effect";
  if (name == "additionalItems") {
    const Value* items = schema.Find("items");
    const bool tuple = items != nullptr && items->type == json::Type::kArray;
    return tuple ? "" : "without an array under items it has no effect";
  }
  if (dialect() == Dialect::kDraft4 && ((name == "exclusiveMinimum" && without("minimum")) ||
                                        (name == "exclusiveMaximum" && without("maximum"))))
    return "in draft 4 it has no effect without its bound";
  if (name == "$vocabulary") return "it tells of a metaschema, not of values";
  if ((name == "id" && At(Dialect::kDraft6)) || (name == "$id" && !At(Dialect::kDraft6)) ||
      ((name == "$anchor" || name == "$dynamicAnchor") && !At(Dialect::k2019)) ||
      (name == "$recursiveAnchor" && dialect() != Dialect::k2019))
    return "not a keyword of this dialect";
  return "";
}

void Reader::ListAnnotations(const Value& schema, const Path& path) {
  const bool reference = !At(Dialect::k2019) && schema.Find("$ref") != nullptr;
  for (const auto& [name, value] : schema.members) {
    // Definitions and the dialect do count beside a reference.
    if (reference &&
        (name == "$ref" || name == "$schema" || name == "$defs" || name == "definitions"))
      continue;
    const std::string why = reference ? "beside $ref, where nothing counts up to draft 7"
                                      : WhyAnnotation(name, value, schema);
    if (why.empty() || noted_.contains(&value)) continue;
    if (++listed_ <= limits::kAnnotationNotes) {
      Note(value, {&path, name}, why);
    } else {
      noted_.insert(&value);  // counted once
    }
  }
}

std::vector<std::string> Reader::TakeNotes() {
  if (listed_ > limits::kAnnotationNotes)
    notes_.push_back("and " + std::to_string(listed_ - limits::kAnnotationNotes) +
                     " more annotations");
  return std::move(notes_);
}

}  // namespace pawl::schema
