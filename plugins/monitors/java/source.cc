// The members of classes that are written in Java, read from their declarations when they are first
// asked for. A class with anything that could not be read is open.
#include <algorithm>

#include "plugins/monitors/java/symbol_table.h"

namespace pawl::monitors::java {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

struct Modifiers {
  bool is_static = false;
  bool is_abstract = false;
  Visibility visibility = Visibility::kPackage;
};

Modifiers ModifiersOf(const Node& node, bool in_interface) {
  Modifiers found;
  if (in_interface) found.visibility = Visibility::kPublic;
  if (const Node* list = node.first(K::k_modifiers)) {
    for (const Node& word : list->kids()) {
      const std::string_view text = word.text();
      if (text == "static") found.is_static = true;
      if (text == "abstract") found.is_abstract = true;
      if (text == "public") found.visibility = Visibility::kPublic;
      if (text == "protected") found.visibility = Visibility::kProtected;
      if (text == "private") found.visibility = Visibility::kPrivate;
    }
  }
  return found;
}

}  // namespace

void SymbolTable::ReadVariables(const Node* list, std::vector<std::string>& into) {
  for (const Node& parameter : list->kids()) {
    if (!parameter.is(K::k_type_parameter)) continue;
    for (const Node& kid : parameter.kids()) {
      if (!kid.is(K::k_type_identifier) && !kid.is(K::k_identifier)) continue;
      into.emplace_back(kid.text());
      break;
    }
  }
}

void SymbolTable::ReadClass(Class& c) {
  if (c.read || c.node == nullptr) return;
  c.read = true;
  ReadHead(c);
  const Node* node = c.node;
  const Node* body = node->at(F::k_body);
  if (body == nullptr) body = node->first(K::k_class_body);
  if (const Node* list = node->at(F::k_parameters); list && node->is(K::k_record_declaration)) {
    Member constructor{.kind = Member::Kind::kConstructor, .name = "<init>"};
    for (const Node& parameter : list->kids()) {
      const Node* name = parameter.at(F::k_name);
      if (!parameter.is(K::k_formal_parameter) || name == nullptr) {
        if (parameter.is(K::k_spread_parameter)) c.open = true;
        continue;
      }
      const Type type = WithDimensions(TypeFromNode(parameter.at(F::k_type), *c.file),
                                       parameter.at(F::k_dimensions));
      Member field{.kind = Member::Kind::kField, .name = std::string(name->text())};
      field.visibility = Visibility::kPrivate;
      field.type = type;
      Member getter{.kind = Member::Kind::kMethod, .name = field.name};
      getter.type = type;
      constructor.parameters.push_back(type);
      c.members.push_back(std::move(field));
      c.members.push_back(std::move(getter));
    }
    c.members.push_back(std::move(constructor));
  }
  if (c.is_enum) {
    const Type self = ClassType(c.name);
    Member values{.kind = Member::Kind::kMethod, .name = "values", .is_static = true};
    values.type = ArrayOf(self);
    Member value_of{.kind = Member::Kind::kMethod, .name = "valueOf", .is_static = true};
    value_of.type = self;
    value_of.parameters = {ClassType("java.lang.String")};
    c.members.push_back(std::move(values));
    c.members.push_back(std::move(value_of));
  }
  if (body == nullptr) {
    c.open = true;
    return;
  }
  for (const Node& kid : body->kids()) {
    if (kid.broken()) c.open = true;
    if (kid.is(K::k_enum_body_declarations)) {
      for (const Node& inner : kid.kids()) {
        if (inner.is(K::k_ERROR)) c.open = true;
        ReadMember(inner, c);
      }
    } else {
      ReadMember(kid, c);
    }
  }
}

void SymbolTable::ReadHead(Class& c) {
  if (c.head_read || c.node == nullptr) return;
  c.head_read = true;
  const Node* node = c.node;
  SourceFile& file = *c.file;
  const auto list = [&](const Node* clause) {
    if (clause == nullptr) return;
    for (const Node& kid : clause->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      if (kid.is(K::k_type_list) || kid.is(K::k_interface_type_list)) {
        for (const Node& type : kid.kids()) {
          if (type.named && !type.is(K::k_comment)) c.supers.push_back(TypeFromNode(&type, file));
        }
      } else {
        c.supers.push_back(TypeFromNode(&kid, file));
      }
    }
  };
  if (node->is(K::k_object_creation_expression)) {
    c.supers.push_back(TypeFromNode(node->at(F::k_type), file));
  } else if (node->is(K::k_enum_constant)) {
    Class* of = nullptr;
    for (const Node* up = node->parent; up != nullptr && of == nullptr; up = up->parent) {
      if (up->is(K::k_enum_declaration)) of = ClassOf(up, file);
    }
    c.supers.push_back(of == nullptr ? Type{} : ClassType(of->name));
  }
  list(node->at(F::k_superclass));
  list(node->at(F::k_interfaces));
  list(node->first(K::k_extends_interfaces));
  if (c.is_enum) {
    Type super = ClassType("java.lang.Enum");
    super.args.push_back(ClassType(c.name));
    c.supers.push_back(std::move(super));
  }
  if (node->is(K::k_record_declaration)) c.supers.push_back(ClassType("java.lang.Record"));
  if (node->is(K::k_annotation_type_declaration))
    c.supers.push_back(ClassType("java.lang.annotation.Annotation"));
  c.supers.push_back(ClassType("java.lang.Object"));
}

void SymbolTable::ReadMember(const Node& node, Class& c) {
  SourceFile& file = *c.file;
  const Modifiers modifiers = ModifiersOf(node, c.is_interface);
  const Node* name = node.at(F::k_name);
  switch (node.kind) {
    case K::k_field_declaration:
    case K::k_constant_declaration:
      for (const Node& kid : node.kids()) {
        const Node* id = kid.field == F::k_declarator ? kid.at(F::k_name) : nullptr;
        if (id == nullptr) continue;
        Member field{.kind = Member::Kind::kField, .name = std::string(id->text())};
        field.is_static = modifiers.is_static || c.is_interface;
        field.visibility = modifiers.visibility;
        field.type =
            WithDimensions(TypeFromNode(node.at(F::k_type), file), kid.at(F::k_dimensions));
        c.members.push_back(std::move(field));
      }
      break;
    case K::k_enum_constant:
      if (name != nullptr) {
        Member constant{.kind = Member::Kind::kField, .name = std::string(name->text())};
        constant.is_static = constant.is_constant = true;
        constant.type = ClassType(c.name);
        c.members.push_back(std::move(constant));
      }
      break;
    case K::k_method_declaration:
    case K::k_constructor_declaration:
    case K::k_annotation_type_element_declaration: {
      if (name == nullptr) break;
      Member method{.kind = Member::Kind::kMethod, .name = std::string(name->text())};
      if (node.is(K::k_constructor_declaration)) {
        method.kind = Member::Kind::kConstructor;
        method.name = "<init>";
      }
      method.is_static = modifiers.is_static;
      method.is_abstract =
          modifiers.is_abstract || (c.is_interface && node.at(F::k_body) == nullptr);
      method.visibility = modifiers.visibility;
      if (const Node* list = node.at(F::k_type_parameters)) ReadVariables(list, method.variables);
      method.type =
          WithDimensions(TypeFromNode(node.at(F::k_type), file), node.at(F::k_dimensions));
      if (const Node* list = node.at(F::k_parameters)) {
        for (const Node& parameter : list->kids()) {
          if (parameter.is(K::k_formal_parameter)) {
            method.parameters.push_back(WithDimensions(TypeFromNode(parameter.at(F::k_type), file),
                                                       parameter.at(F::k_dimensions)));
          } else if (parameter.is(K::k_spread_parameter)) {
            method.varargs = true;
            const Node* type = nullptr;
            for (const Node& kid : parameter.kids()) {
              if (kid.named && !kid.is(K::k_modifiers) && !kid.is(K::k_comment)) {
                type = &kid;
                break;
              }
            }
            Type element = TypeFromNode(type, file);
            method.parameters.push_back(element.known() ? ArrayOf(std::move(element)) : Type{});
          } else if (parameter.is(K::k_ERROR)) {
            c.open = true;
          }
        }
      }
      c.members.push_back(std::move(method));
      break;
    }
    case K::k_class_declaration:
    case K::k_interface_declaration:
    case K::k_enum_declaration:
    case K::k_record_declaration:
    case K::k_annotation_type_declaration: {
      if (name == nullptr) break;
      Member type{.kind = Member::Kind::kType, .name = std::string(name->text())};
      type.is_static = true;
      type.visibility = modifiers.visibility;
      type.type = ClassType(c.name + "." + type.name);
      c.members.push_back(std::move(type));
      break;
    }
    default:
      break;
  }
}

}  // namespace pawl::monitors::java
