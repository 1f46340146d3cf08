// Each keyword has a line in a table: its vocabulary, the drafts that know it, and the shape of its
// value. The documents are written from that table when somebody asks for them, which takes less
// space than their texts. Drafts 4, 6 and 7: the metaschema of each; drafts 2019-09 and 2020-12
// (section 8.1.2): one document for each vocabulary and one that applies them all.
#include "schemas/read/references.h"

namespace pawl::schema {
namespace {

// What a keyword's value must be.
enum class Shape {
  kAny,
  kBoolean,
  kString,
  kRegex,
  kUri,
  kUriReference,
  kIdentifier,  // a URI reference without a fragment, from 2019-09
  kAnchor,
  kNumber,
  kFactor,  // a number above 0
  kCount,   // an integer, at least 0
  kStrings,
  kConstants,  // enum
  kExamples,
  kTypes,
  kSchema,
  kSchemaOrBoolean,  // where booleans are not yet schemas
  kSchemas,          // a list of schemas, not empty
  kItems,            // a schema or a list of them
  kNamedSchemas,     // an object of schemas
  kPatternSchemas,   // an object of schemas whose keys are patterns
  kDependencies,     // an object of schemas and of lists of names
  kNamedStrings,     // an object of lists of names
  kVocabularies,
};

enum class Vocabulary {
  kCore,
  kApplicator,
  kUnevaluated,
  kValidation,
  kMetaData,
  kFormat,
  kContent,
  kLegacy,  // in the document that applies all others
};

struct KeywordShape {
  const char* name;
  Shape shape;
  Vocabulary vocabulary;
  Dialect first = Dialect::kDraft4;
  Dialect last = Dialect::k2020;
};

using enum Shape;
using enum Dialect;
using enum Vocabulary;

constexpr KeywordShape kShapes[] = {
    {"id", kString, kCore, kDraft4, kDraft4},
    {"$id", kUriReference, kCore, kDraft6, kDraft7},
    {"$id", kIdentifier, kCore, k2019},
    {"$schema", kString, kCore, kDraft4, kDraft4},
    {"$schema", kUri, kCore, kDraft6},
    {"$ref", kUriReference, kCore, kDraft6},
    {"$anchor", kAnchor, kCore, k2019},
    {"$recursiveRef", kUriReference, kCore, k2019, k2019},
    {"$recursiveAnchor", kBoolean, kCore, k2019, k2019},
    {"$dynamicRef", kUriReference, kCore, k2020},
    {"$dynamicAnchor", kAnchor, kCore, k2020},
    {"$vocabulary", kVocabularies, kCore, k2019},
    {"$comment", kString, kCore, kDraft7},
    {"$defs", kNamedSchemas, kCore, k2019},
    {"definitions", kNamedSchemas, kLegacy},
    {"dependencies", kDependencies, kLegacy},
    {"$recursiveAnchor", kAnchor, kLegacy, k2020},
    {"$recursiveRef", kUriReference, kLegacy, k2020},
    {"prefixItems", kSchemas, kApplicator, k2020},
    {"items", kItems, kApplicator, kDraft4, k2019},
    {"items", kSchema, kApplicator, k2020},
    {"additionalItems", kSchemaOrBoolean, kApplicator, kDraft4, kDraft4},
    {"additionalItems", kSchema, kApplicator, kDraft6, k2019},
    {"contains", kSchema, kApplicator, kDraft6},
    {"additionalProperties", kSchemaOrBoolean, kApplicator, kDraft4, kDraft4},
    {"additionalProperties", kSchema, kApplicator, kDraft6},
    {"properties", kNamedSchemas, kApplicator},
    {"patternProperties", kPatternSchemas, kApplicator},
    {"dependentSchemas", kNamedSchemas, kApplicator, k2019},
    {"propertyNames", kSchema, kApplicator, kDraft6},
    {"if", kSchema, kApplicator, kDraft7},
    {"then", kSchema, kApplicator, kDraft7},
    {"else", kSchema, kApplicator, kDraft7},
    {"allOf", kSchemas, kApplicator},
    {"anyOf", kSchemas, kApplicator},
    {"oneOf", kSchemas, kApplicator},
    {"not", kSchema, kApplicator},
    {"unevaluatedItems", kSchema, kApplicator, k2019, k2019},
    {"unevaluatedProperties", kSchema, kApplicator, k2019, k2019},
    {"unevaluatedItems", kSchema, kUnevaluated, k2020},
    {"unevaluatedProperties", kSchema, kUnevaluated, k2020},
    {"type", kTypes, kValidation},
    {"const", kAny, kValidation, kDraft6},
    {"enum", kConstants, kValidation},
    {"multipleOf", kFactor, kValidation},
    {"maximum", kNumber, kValidation},
    {"minimum", kNumber, kValidation},
    {"exclusiveMaximum", kBoolean, kValidation, kDraft4, kDraft4},
    {"exclusiveMinimum", kBoolean, kValidation, kDraft4, kDraft4},
    {"exclusiveMaximum", kNumber, kValidation, kDraft6},
    {"exclusiveMinimum", kNumber, kValidation, kDraft6},
    {"maxLength", kCount, kValidation},
    {"minLength", kCount, kValidation},
    {"pattern", kRegex, kValidation},
    {"maxItems", kCount, kValidation},
    {"minItems", kCount, kValidation},
    {"uniqueItems", kBoolean, kValidation},
    {"maxContains", kCount, kValidation, k2019},
    {"minContains", kCount, kValidation, k2019},
    {"maxProperties", kCount, kValidation},
    {"minProperties", kCount, kValidation},
    {"required", kStrings, kValidation},
    {"dependentRequired", kNamedStrings, kValidation, k2019},
    {"title", kString, kMetaData},
    {"description", kString, kMetaData},
    {"default", kAny, kMetaData},
    {"deprecated", kBoolean, kMetaData, k2019},
    {"readOnly", kBoolean, kMetaData, kDraft7},
    {"writeOnly", kBoolean, kMetaData, k2019},
    {"examples", kExamples, kMetaData, kDraft6},
    {"format", kString, kFormat},
    {"contentEncoding", kString, kContent, kDraft7},
    {"contentMediaType", kString, kContent, kDraft7},
    {"contentSchema", kSchema, kContent, k2019},
};

struct VocabularyName {
  Vocabulary vocabulary;
  const char* name;
  Dialect first, last;
};
constexpr VocabularyName kVocabularyNames[] = {
    {kCore, "core", k2019, k2020},
    {kApplicator, "applicator", k2019, k2020},
    {kUnevaluated, "unevaluated", k2020, k2020},
    {kValidation, "validation", k2019, k2020},
    {kMetaData, "meta-data", k2019, k2020},
    {kFormat, "format", k2019, k2019},
    {kFormat, "format-annotation", k2020, k2020},
    {kFormat, "format-assertion", k2020, k2020},
    {kContent, "content", k2019, k2020},
};

std::string Quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

std::string Reference(std::string_view to) { return "{\"$ref\":" + Quoted(to) + "}"; }

// Writes the document of one vocabulary, or of a whole draft where it has only one.
class Writer {
 public:
  Writer(Dialect dialect, Vocabulary vocabulary) : dialect_(dialect), vocabulary_(vocabulary) {}

  std::string ValueOf(Shape shape) const;
  std::string Definitions() const;
  std::string Properties() const;
  std::string Types() const {
    return dialect_ == kDraft4 ? R"("object")" : R"(["object","boolean"])";
  }

 private:
  bool Modern() const { return dialect_ >= k2019; }
  std::string Schema() const {
    if (dialect_ == k2020) return R"({"$dynamicRef":"#meta"})";
    return dialect_ == k2019 ? R"({"$recursiveRef":"#"})" : R"({"$ref":"#"})";
  }
  // A place in the definitions of this document, or of the one that has it.
  std::string Definition(std::string_view name, Vocabulary home) const {
    std::string to = "#/definitions/";
    if (Modern()) to = "#/$defs/";
    if (Modern() && vocabulary_ != home)
      to = (home == kCore ? "meta/core" : "meta/validation") + to;
    return Reference(to + std::string(name));
  }
  static std::string Named(const std::string& value, const std::string& also = "") {
    return R"({"type":"object","additionalProperties":)" + value + also + "}";
  }

  Dialect dialect_;
  Vocabulary vocabulary_;
};

std::string Writer::ValueOf(Shape shape) const {
  switch (shape) {
    case kAny:
      return dialect_ < kDraft7 ? "{}" : "true";
    case kBoolean:
      return R"({"type":"boolean"})";
    case kString:
      return R"({"type":"string"})";
    case kRegex:
      return R"({"type":"string","format":"regex"})";
    case kUri:
      return dialect_ == k2020 ? Definition("uriString", kCore)
                               : R"({"type":"string","format":"uri"})";
    case kUriReference:
      return dialect_ == k2020 ? Definition("uriReferenceString", kCore)
                               : R"({"type":"string","format":"uri-reference"})";
    case kIdentifier:
      return R"({"type":"string","format":"uri-reference","pattern":"^[^#]*#?$"})";
    case kAnchor:
      return dialect_ == k2020 ? Definition("anchorString", kCore)
                               : R"({"type":"string","pattern":"^[A-Za-z][-A-Za-z0-9.:_]*$"})";
    case kNumber:
      return R"({"type":"number"})";
    case kFactor:
      return dialect_ == kDraft4 ? R"({"type":"number","minimum":0,"exclusiveMinimum":true})"
                                 : R"({"type":"number","exclusiveMinimum":0})";
    case kCount:
      return Definition(dialect_ == kDraft4 ? "positiveInteger" : "nonNegativeInteger",
                        kValidation);
    case kStrings:
      return Definition("stringArray", kValidation);
    case kConstants:
      return dialect_ == kDraft4 ? R"({"type":"array","minItems":1,"uniqueItems":true})"
                                 : R"({"type":"array"})";
    case kExamples:
      return R"({"type":"array"})";
    case kTypes: {
      const std::string one = Definition("simpleTypes", kValidation);
      return R"({"anyOf":[)" + one + R"(,{"type":"array","items":)" + one +
             R"(,"minItems":1,"uniqueItems":true}]})";
    }
    case kSchema:
      return Schema();
    case kSchemaOrBoolean:
      return R"({"anyOf":[{"type":"boolean"},)" + Schema() + "]}";
    case kSchemas:
      return Definition("schemaArray", vocabulary_);
    case kItems:
      return R"({"anyOf":[)" + Schema() + ',' + Definition("schemaArray", vocabulary_) + "]}";
    case kNamedSchemas:
      return Named(Schema());
    case kPatternSchemas:
      return Named(Schema(), dialect_ == kDraft4 ? "" : R"(,"propertyNames":{"format":"regex"})");
    case kDependencies:
      return Named(R"({"anyOf":[)" + Schema() + ',' + Definition("stringArray", kValidation) +
                   "]}");
    case kNamedStrings:
      return Named(Definition("stringArray", kValidation));
    case kVocabularies:
      return Named(R"({"type":"boolean"})", R"(,"propertyNames":)" + ValueOf(kUri));
  }
  return "{}";
}

std::string Writer::Definitions() const {
  const bool all = !Modern();
  std::string out;
  const auto add = [&](std::string_view name, const std::string& value) {
    out += (out.empty() ? "" : ",") + Quoted(name) + ':' + value;
  };
  if (dialect_ == k2020 && vocabulary_ == kCore) {
    add("anchorString", R"({"type":"string","pattern":"^[A-Za-z_][-A-Za-z0-9._]*$"})");
    add("uriString", R"({"type":"string","format":"uri"})");
    add("uriReferenceString", R"({"type":"string","format":"uri-reference"})");
  }
  if (all || vocabulary_ == kApplicator)
    add("schemaArray", R"({"type":"array","minItems":1,"items":)" + Schema() + "}");
  if (all || vocabulary_ == kValidation) {
    const std::string count = dialect_ == kDraft4 ? "positiveInteger" : "nonNegativeInteger";
    add(count, R"({"type":"integer","minimum":0})");
    add(count + "Default0", Definition(count, vocabulary_));
    add("simpleTypes",
        R"({"enum":["array","boolean","integer","null","number","object","string"]})");
    add("stringArray", std::string(R"({"type":"array","items":{"type":"string"},)") +
                           (dialect_ == kDraft4 ? R"("minItems":1,)" : "") +
                           R"("uniqueItems":true})");
  }
  return "{" + out + "}";
}

std::string Writer::Properties() const {
  std::string out;
  for (const KeywordShape& keyword : kShapes) {
    if (dialect_ < keyword.first || dialect_ > keyword.last) continue;
    if (Modern() && keyword.vocabulary != vocabulary_) continue;
    out += (out.empty() ? "" : ",") + Quoted(keyword.name) + ':' + ValueOf(keyword.shape);
  }
  return "{" + out + "}";
}

std::string Legacy(Dialect dialect, std::string_view uri) {
  const Writer writer(dialect, kCore);
  const std::string identifier = Quoted(std::string(uri) + "#");
  std::string out = (dialect == kDraft4 ? R"({"id":)" : R"({"$id":)") + identifier +
                    R"(,"$schema":)" + identifier + R"(,"definitions":)" + writer.Definitions() +
                    R"(,"type":)" + writer.Types() + R"(,"properties":)" + writer.Properties();
  if (dialect == kDraft4) {
    out += R"(,"dependencies":{"exclusiveMaximum":["maximum"],"exclusiveMinimum":["minimum"]})";
  }
  return out + "}";
}

// `base` ends with a slash; `name` is "schema" or "meta/core" and the like.
std::optional<std::string> Modern(Dialect dialect, std::string_view base, std::string_view name) {
  const std::string prefix(base);
  const auto used = [&](const VocabularyName& it) {
    return it.first <= dialect && dialect <= it.last;
  };
  const auto head = [&](const std::string& vocabularies) {
    return R"({"$id":)" + Quoted(prefix + std::string(name)) + R"(,"$schema":)" +
           Quoted(prefix + "schema") + R"(,"$vocabulary":{)" + vocabularies + "}," +
           (dialect == k2019 ? R"("$recursiveAnchor":true)" : R"("$dynamicAnchor":"meta")");
  };
  if (name == "schema") {
    std::string vocabularies, parts;
    for (const VocabularyName& it : kVocabularyNames) {
      const std::string_view called = it.name;
      if (!used(it) || called == "format-assertion") continue;
      if (!parts.empty()) vocabularies += ',', parts += ',';
      vocabularies +=
          Quoted(prefix + "vocab/" + it.name) + ':' + (called == "format" ? "false" : "true");
      parts += Reference("meta/" + std::string(called));
    }
    const Writer writer(dialect, kLegacy);
    return head(vocabularies) + R"(,"allOf":[)" + parts + R"(],"type":)" + writer.Types() +
           R"(,"properties":)" + writer.Properties() + "}";
  }
  for (const VocabularyName& it : kVocabularyNames) {
    if (!used(it) || name != "meta/" + std::string(it.name)) continue;
    const Writer writer(dialect, it.vocabulary);
    return head(Quoted(prefix + "vocab/" + it.name) + ":true") + R"(,"type":)" + writer.Types() +
           R"(,"properties":)" + writer.Properties() + R"(,"$defs":)" + writer.Definitions() + "}";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Metaschema(std::string_view uri) {
  if (uri == "http://json-schema.org/draft-04/schema") return Legacy(kDraft4, uri);
  if (uri == "http://json-schema.org/draft-06/schema") return Legacy(kDraft6, uri);
  if (uri == "http://json-schema.org/draft-07/schema") return Legacy(kDraft7, uri);
  constexpr std::pair<Dialect, std::string_view> kBases[] = {
      {k2019, "https://json-schema.org/draft/2019-09/"},
      {k2020, "https://json-schema.org/draft/2020-12/"},
  };
  for (const auto& [dialect, base] : kBases) {
    if (uri.starts_with(base)) return Modern(dialect, base, uri.substr(base.size()));
  }
  return std::nullopt;
}

}  // namespace pawl::schema
