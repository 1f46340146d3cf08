// XmlStyleReader: the properties of an object as parameters in the way of some model family, each
// between marks of its own instead of as JSON. Inside of schemas/tag/structural_tag*.cc only.
#ifndef PAWL_SCHEMAS_TAG_STRUCTURAL_TAG_XML_H_
#define PAWL_SCHEMAS_TAG_STRUCTURAL_TAG_XML_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/tag/structural_tag_reader.h"

namespace pawl {

// What stands around a parameter: before KEY after_key [VALUE] end.
struct XmlStyle {
  enum class Marks {
    kNone,       // a value's type is not written
    kIsString,   // string="true" or "false"
    kCohere,     // type="raw", "json", "dict" or "list"; dicts and lists in the same notation
    kMinimaxM3,  // a value's type is not written; objects and lists as elements in elements
    kKimi,       // type="string", "number", "boolean", "null", "object" or "array"
  };
  Marks marks;
  std::string before, after_key, end;
};

// "qwen_xml", ...; nullopt for other names.
std::optional<XmlStyle> XmlStyleOf(std::string_view name);

class XmlStyleReader {
 public:
  XmlStyleReader(StructuralTagReader& reader, const json::Value& schema, const std::string& place,
                 const XmlStyle& style, const JsonSchemaOptions& options)
      : reader_(reader), root_(schema), place_(place), style_(style), options_(options) {}

  Result<GrammarIr::ExprId> Read() { return Object(root_, place_, 0); }

 private:
  using ExprId = GrammarIr::ExprId;
  // A way to write a value, and the mark that says which it is.
  struct Form {
    std::string mark;
    ExprId value;
  };
  struct Property {
    ExprId expr;
    bool required;
  };

  Result<ExprId> Object(const json::Value& schema, const std::string& at, int depth);
  Result<ExprId> List(const json::Value& schema, const std::string& at, int depth);
  Result<std::vector<Form>> Forms(const json::Value& schema, const std::string& at, int depth);
  Result<std::vector<Form>> FormsOfTypes(const json::Value& schema, const std::string& at,
                                         int depth);
  Result<std::vector<Form>> FormsOfValues(const std::vector<const json::Value*>& values,
                                          const json::Value& schema, const std::string& at);
  Result<ExprId> Raw(const json::Value& schema, const std::string& at);
  Result<ExprId> Json(const json::Value& schema, const std::string& at,
                      const std::vector<std::string>& types);
  // The parameter of a key (an expression) with one of the forms; kEmpty: an item of a list.
  ExprId Parameter(ExprId key, const std::vector<Form>& forms);
  ExprId InOrder(const std::vector<Property>& properties, ExprId other);
  ExprId InAnyOrder(const std::vector<Property>& properties, ExprId other);
  // What a chain of references leads to, with its place.
  Result<std::pair<const json::Value*, std::string>> Resolve(const json::Value& schema,
                                                             const std::string& at);
  Status OnlyKeywords(const json::Value& schema, const std::string& at,
                      std::initializer_list<std::string_view> known) const;
  ExprId Spaces();
  // With white space around it, where the style allows that.
  ExprId Padded(ExprId value);
  std::string MarkOf(std::string_view type) const;

  StructuralTagReader& reader_;
  const json::Value& root_;
  const std::string place_;
  const XmlStyle style_;
  const JsonSchemaOptions options_;
};

}  // namespace pawl

#endif  // PAWL_SCHEMAS_TAG_STRUCTURAL_TAG_XML_H_
