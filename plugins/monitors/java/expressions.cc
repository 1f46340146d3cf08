// Expressions that are not calls, and names. A name is a variable if one is in scope, else a field,
// else a type; a lower one that none of these is may be part of a package's name.
#include <algorithm>
#include <utility>

#include "plugins/monitors/java/typer.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::java {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr int kMaxDepth = 80;

// The node that stands for a class whose body this is, nullptr: it is no body.
const Node* ClassAround(const Node* node) {
  if (DeclaresClass(*node)) return node;
  if (node->is(K::k_class_body) && node->parent != nullptr &&
      (node->parent->is(K::k_object_creation_expression) || node->parent->is(K::k_enum_constant))) {
    return node->parent;
  }
  return nullptr;
}

}  // namespace

Value Typer::Evaluate(const Node* node) {
  if (node == nullptr) return {};
  const auto found = known_.find(node);
  if (found != known_.end()) return found->second;
  if (depth_ > kMaxDepth) return {};
  Work::Bytes(node->end - node->start);
  // While it is computed a node is not known: an expression that depends on itself ends here.
  known_[node] = {};
  ++depth_;
  Value value;
  if (node->is(K::k_identifier)) {
    value = Identifier(node->text(), node);
  } else if (node->is(K::k_field_access)) {
    const Node* object = node->at(F::k_object);
    const Node* field = node->at(F::k_field);
    if (object != nullptr && field != nullptr) {
      const Value of = Evaluate(object);
      const std::string_view name = field->text();
      bool closed = true;
      if (field->is(K::k_this)) {
        if (of.names_type) value.type = of.type;
      } else if (of.type.known()) {
        if (const auto type = FieldOf(of.type, name, closed)) {
          value.type = *type;
        } else if (of.names_type && of.type.is(TK::kClass)) {
          Class* in = world_.Find(of.type.name);
          bool known = true;
          if (in != nullptr) value.type = world_.NestedType(*in, name, known);
          value.names_type = value.type.known();
        }
      } else if (object->is(K::k_identifier) || object->is(K::k_field_access)) {
        const std::string full = WithoutSpace(node->text());
        if (full.find_first_of("()[]\"") == std::string::npos && world_.Find(full) != nullptr) {
          value.type = ClassType(full);
          value.names_type = true;
        }
      }
    }
  } else {
    value.type = Compute(node);
  }
  --depth_;
  known_[node] = value;
  return value;
}

Type Typer::TypeOf(const Node* node) {
  Value value = Evaluate(node);
  return value.names_type ? Type{} : std::move(value.type);
}

Type Typer::Compute(const Node* node) {
  switch (node->kind) {
    case K::k_this:
      return SelfType(node);
    case K::k_super: {
      Class* self = EnclosingClass(node);
      if (self == nullptr) return {};
      world_.ReadHead(*self);
      return self->supers.empty() ? Type{} : self->supers.front();
    }
    case K::k_string_literal:
      return ClassType("java.lang.String");
    case K::k_character_literal:
      return Primitive("char");
    case K::kTrue:
    case K::kFalse:
    case K::k_instanceof_expression:
      return Primitive("boolean");
    case K::k_null_literal:
      return {.kind = TK::kNull, .name = {}, .args = {}};
    case K::k_decimal_integer_literal:
    case K::k_hex_integer_literal:
    case K::k_octal_integer_literal:
    case K::k_binary_integer_literal:
      return Primitive(node->text().ends_with("L") || node->text().ends_with("l") ? "long" : "int");
    case K::k_decimal_floating_point_literal:
    case K::k_hex_floating_point_literal:
      return Primitive(node->text().ends_with("f") || node->text().ends_with("F") ? "float"
                                                                                  : "double");
    case K::k_parenthesized_expression:
      return TypeOf(node->first_named());
    case K::k_cast_expression: {
      std::vector<Type> types;  // (A & B) x
      for (const Node& kid : node->kids()) {
        if (kid.field == F::k_type) types.push_back(world_.TypeFromNode(&kid, world_.program()));
      }
      return Either(std::move(types));
    }
    case K::k_ternary_expression: {
      std::vector<Type> types = {TypeOf(node->at(F::k_consequence)),
                                 TypeOf(node->at(F::k_alternative))};
      if (types[0].is(TK::kPrimitive) != types[1].is(TK::kPrimitive)) {
        types[0] = Boxed(types[0]);
        types[1] = Boxed(types[1]);
      }
      return Either(std::move(types));
    }
    case K::k_assignment_expression:
      return TypeOf(node->at(F::k_left));
    case K::k_binary_expression:
      return Binary(node);
    case K::k_unary_expression: {
      const Node* op = node->at(F::k_operator);
      if (op != nullptr && op->text() == "!") return Primitive("boolean");
      const Type type =
          TypeOf(node->at(Field::k_operator) != nullptr ? &node->kids().back() : nullptr);
      return type.is(TK::kPrimitive) ? type : Type{};
    }
    case K::k_array_access:
      if (const Type array = TypeOf(node->at(F::k_array)); array.is(TK::kArray))
        return array.args[0];
      return {};
    case K::k_array_creation_expression: {
      Type type = world_.TypeFromNode(node->at(F::k_type), world_.program());
      if (!type.known()) return {};
      for (const Node& kid : node->kids()) {
        if (kid.field != F::k_dimensions) continue;
        if (kid.is(K::k_dimensions)) {
          type = SymbolTable::WithDimensions(std::move(type), &kid);
        } else {
          type = ArrayOf(std::move(type));  // [n]
        }
      }
      return type;
    }
    case K::k_object_creation_expression: {
      if (node->first(K::k_class_body) != nullptr) return {};
      const Node* type = node->at(F::k_type);
      // outer.new Inner()
      if (type == nullptr || node->kids().empty() || node->kids().front().named) return {};
      return world_.TypeFromNode(type, world_.program());
    }
    case K::k_class_literal: {
      Type type = ClassType("java.lang.Class");
      type.args.push_back(Boxed(world_.TypeFromNode(node->first_named(), world_.program())));
      return type;
    }
    case K::k_method_invocation:
      return CallType(node);
    default:
      return {};
  }
}

Type Typer::Binary(const Node* node) {
  const Node* op = node->at(F::k_operator);
  if (op == nullptr) return {};
  const std::string_view sign = op->text();
  if (sign == "==" || sign == "!=" || sign == "<" || sign == ">" || sign == "<=" || sign == ">=" ||
      sign == "&&" || sign == "||") {
    return Primitive("boolean");
  }
  const Type left = TypeOf(node->at(F::k_left));
  const Type right = TypeOf(node->at(F::k_right));
  const Type text = ClassType("java.lang.String");
  if (sign == "+" && (left == text || right == text)) return text;
  if (left.is(TK::kPrimitive) && left == right &&
      (left.name == "int" || left.name == "long" || left.name == "double" ||
       left.name == "boolean"))
    return left;
  return {};
}

Class* Typer::EnclosingClass(const Node* at) {
  for (const Node* up = at; up != nullptr; up = up->parent) {
    if (const Node* of = ClassAround(up)) return world_.ClassOf(of, world_.program());
  }
  return nullptr;
}

Type Typer::SelfType(const Node* at) {
  Class* self = EnclosingClass(at);
  if (self == nullptr) return {};
  Type type = ClassType(self->name);
  for (const std::string& name : self->variables)
    type.args.push_back(Type{.kind = TK::kVariable, .name = name, .args = {Type{}}});
  return type;
}

Type Typer::ElementOf(const Type& of) {
  const Type type = ReadFrom(of);
  if (type.is(TK::kArray)) return type.args[0];
  if (!type.is(TK::kClass)) return {};
  const Type iterable = world_.As(type, "java.lang.Iterable");
  return iterable.args.size() == 1 ? ReadFrom(iterable.args[0]) : Type{};
}

Type Typer::DeclaratorType(const Node& declaration, const Node& declarator) {
  const Node* type = declaration.at(F::k_type);
  if (type != nullptr && type->text() == "var") {
    const Node* value = declarator.at(F::k_value);
    // var x = (cursor)
    if (value == nullptr || Unfinished(value)) return {};
    return TypeOf(value);
  }
  return SymbolTable::WithDimensions(world_.TypeFromNode(type, world_.program()),
                                     declarator.at(F::k_dimensions));
}

std::optional<Type> Typer::DeclaredBy(const Node& statement, std::string_view name) {
  if (!statement.is(K::k_local_variable_declaration)) return std::nullopt;
  for (const Node& kid : statement.kids()) {
    const Node* id = kid.field == F::k_declarator ? kid.at(F::k_name) : nullptr;
    if (id != nullptr && id->text() == name) return DeclaratorType(statement, kid);
  }
  return std::nullopt;
}

std::optional<Type> Typer::Parameter(const Node* list, std::string_view name) {
  for (const Node& parameter : list->kids()) {
    if (parameter.is(K::k_formal_parameter) || parameter.is(K::k_catch_formal_parameter)) {
      const Node* id = parameter.at(F::k_name);
      if (id == nullptr || id->text() != name) continue;
      return SymbolTable::WithDimensions(
          world_.TypeFromNode(parameter.at(F::k_type), world_.program()),
          parameter.at(F::k_dimensions));
    }
    if (parameter.is(K::k_spread_parameter)) {
      const Node* declarator = parameter.first(K::k_variable_declarator);
      const Node* id = declarator == nullptr ? nullptr : declarator->at(F::k_name);
      if (id == nullptr || id->text() != name) continue;
      for (const Node& kid : parameter.kids()) {
        if (!kid.named || kid.is(K::k_modifiers) || kid.is(K::k_comment)) continue;
        Type element = world_.TypeFromNode(&kid, world_.program());
        return element.known() ? ArrayOf(std::move(element)) : Type{};
      }
    }
  }
  return std::nullopt;
}

// x instanceof Foo name, case Foo name: all before the place, in the same method.
std::vector<Type> Typer::Patterns(std::string_view name, const Node* at) {
  const Node* method = at;
  while (method->parent != nullptr && ClassAround(method->parent) == nullptr &&
         !method->is(K::k_method_declaration) && !method->is(K::k_constructor_declaration)) {
    method = method->parent;
  }
  if (method->text().substr(0, at->start - method->start).find("instanceof") ==
          std::string_view::npos &&
      method->text().substr(0, at->start - method->start).find("case") == std::string_view::npos) {
    return {};
  }
  std::vector<Type> found;
  std::vector<const Node*> todo = {method};
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    Work::Step();
    if (node->start >= at->start) continue;
    if (node->is(K::k_instanceof_expression)) {
      const Node* id = node->at(F::k_name);
      if (id != nullptr && id->text() == name)
        found.push_back(world_.TypeFromNode(node->at(F::k_right), world_.program()));
    } else if (node->is(K::k_type_pattern) || node->is(K::k_record_pattern_component)) {
      const Node* id = nullptr;
      for (const Node& kid : node->kids()) {
        if (kid.is(K::k_identifier)) id = &kid;
      }
      if (id != nullptr && id->text() == name)
        found.push_back(world_.TypeFromNode(node->first_named(), world_.program()));
    }
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return found;
}

// Declared before `below`, a part of the block.
std::optional<Type> Typer::LocalOfBlock(const Node* block, std::string_view name,
                                        const Node* below) {
  std::optional<Type> found;
  for (const Node& statement : block->kids()) {
    if (statement.start > below->start ||
        (&statement == below && !statement.is(K::k_local_variable_declaration)))
      break;
    if (auto type = DeclaredBy(statement, name)) found = std::move(type);
    // Groups of a switch see what earlier groups declare.
    if (block->is(K::k_switch_block)) {
      for (const Node& inner : statement.kids()) {
        if (auto type = DeclaredBy(inner, name)) found = std::move(type);
      }
    }
    if (&statement == below) break;
  }
  return found;
}

// Declared before `at` by one of the resources of a `try`.
std::optional<Type> Typer::LocalOfResources(const Node* list, std::string_view name,
                                            const Node* at) {
  if (list == nullptr) return std::nullopt;
  for (const Node& resource : list->kids()) {
    const Node* id = resource.is(K::k_resource) ? resource.at(F::k_name) : nullptr;
    if (id == nullptr || id->text() != name || resource.start > at->start) continue;
    if (resource.at(F::k_type) != nullptr) return DeclaratorType(resource, resource);
  }
  return std::nullopt;
}

std::optional<Type> Typer::LocalOfCatch(const Node* clause, std::string_view name) {
  for (const Node& kid : clause->kids()) {
    const Node* id = kid.is(K::k_catch_formal_parameter) ? kid.at(F::k_name) : nullptr;
    if (id == nullptr || id->text() != name) continue;
    // The common super type of the alternatives is not computed.
    const Node* types = kid.first(K::k_catch_type);
    const Node* only = nullptr;
    int count = 0;
    if (types != nullptr) {
      for (const Node& type : types->kids()) {
        if (type.named && !type.is(K::k_comment)) {
          only = &type;
          ++count;
        }
      }
    }
    return count == 1 ? world_.TypeFromNode(only, world_.program())
                      : ClassType("java.lang.Throwable", {});
  }
  return std::nullopt;
}

std::optional<Type> Typer::LocalOfLambda(const Node* lambda, std::string_view name) {
  const Node* parameters = lambda->at(F::k_parameters);
  if (parameters == nullptr) return std::nullopt;
  if (parameters->is(K::k_identifier)) {
    if (parameters->text() != name) return std::nullopt;
    return LambdaParameter(lambda, 0).value_or(Type{});
  }
  // (var a, var b) -> ...
  if (!parameters->is(K::k_inferred_parameters)) return Parameter(parameters, name);
  size_t which = 0;
  for (const Node& kid : parameters->kids()) {
    if (!kid.is(K::k_identifier)) continue;
    if (kid.text() == name) return LambdaParameter(lambda, which).value_or(Type{});
    ++which;
  }
  return std::nullopt;
}

// Declared by the node itself for what stands below.
std::optional<Type> Typer::LocalOf(const Node* up, std::string_view name, const Node* below,
                                   const Node* at) {
  switch (up->kind) {
    case K::k_block:
    case K::k_constructor_body:
    case K::k_switch_block_statement_group:
    case K::k_switch_block:
    case K::k_program:
      return LocalOfBlock(up, name, below);
    case K::k_for_statement:
      for (const Node& kid : up->kids()) {
        if (auto type = DeclaredBy(kid, name)) return type;
      }
      return std::nullopt;
    case K::k_enhanced_for_statement: {
      const Node* id = up->at(F::k_name);
      if (id == nullptr || id->text() != name || below->field == F::k_value) return std::nullopt;
      const Node* type = up->at(F::k_type);
      if (type != nullptr && type->text() == "var") return ElementOf(TypeOf(up->at(F::k_value)));
      return SymbolTable::WithDimensions(world_.TypeFromNode(type, world_.program()),
                                         up->at(F::k_dimensions));
    }
    case K::k_try_with_resources_statement:
      return LocalOfResources(up->first(K::k_resource_specification), name, at);
    case K::k_resource_specification:
      return LocalOfResources(up, name, at);
    case K::k_catch_clause:
      return LocalOfCatch(up, name);
    case K::k_lambda_expression:
      return LocalOfLambda(up, name);
    case K::k_method_declaration:
    case K::k_constructor_declaration: {
      const Node* list = up->at(F::k_parameters);
      return list == nullptr ? std::nullopt : Parameter(list, name);
    }
    case K::k_compact_constructor_declaration: {
      const Node* record = up->Enclosing(K::k_record_declaration);
      const Node* list = record == nullptr ? nullptr : record->at(F::k_parameters);
      return list == nullptr ? std::nullopt : Parameter(list, name);
    }
    default:
      return std::nullopt;
  }
}

std::optional<Type> Typer::Local(std::string_view name, const Node* at) {
  const Node* below = at;
  for (const Node* up = at->parent; up != nullptr; below = up, up = up->parent) {
    Work::Step();
    if (auto type = LocalOf(up, name, below, at)) return type;
    // What is around a class is seen from a local one; fields of the class come first.
    if (ClassAround(up) != nullptr) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Type> Typer::FieldOf(const Type& of, std::string_view name, bool& closed) {
  const Type type = ReadFrom(of);
  if (type.is(TK::kArray)) {
    if (name == "length") return Primitive("int");
    return std::nullopt;
  }
  if (type.is(TK::kVariable) && !type.args.empty()) return FieldOf(type.args[0], name, closed);
  std::optional<Type> found;
  bool open = false;
  const bool walked = world_.Walk(type, [&](Class& c, const Substitution& with) {
    world_.ReadClass(c);
    for (const Member& m : c.members) {
      if (m.kind != Member::Kind::kField || m.name != name) continue;
      // One that the text does not see.
      if (m.visibility == Visibility::kPrivate && c.file != &world_.program()) continue;
      found = open ? Type{} : Substitute(m.type, with);
      return true;
    }
    open = open || (c.open && !c.unfinished);
    return false;
  });
  closed = closed && walked;
  return found;
}

bool Typer::NoVariable(const Node* identifier) {
  bool none = false;
  Identifier(identifier->text(), identifier, &none);
  return none;
}

// Above.super: the class above an enclosing one, or an interface above.
Value Typer::AboveOf(const Node* access) {
  const Value above = Evaluate(access->at(F::k_object));
  Class* c = above.names_type && above.type.is(TK::kClass) ? world_.Find(above.type.name) : nullptr;
  if (c == nullptr) return {};
  for (const Node* up = access; up != nullptr; up = up->parent) {
    const Node* around = ClassAround(up);
    if (around == nullptr || world_.ClassOf(around, world_.program()) != c) continue;
    world_.ReadHead(*c);
    return c->supers.empty() ? Value{} : Value{.type = c->supers.front()};
  }
  return c->is_interface ? Value{.type = above.type} : Value{};
}

Value Typer::Identifier(std::string_view name, const Node* at, bool* no_variable) {
  std::vector<Type> variables = Patterns(name, at);
  bool closed = true;
  bool hides = false;  // a class further in may declare a field of this name further down
  // From the inside to the outside: the variables of a class's method, then the class's fields.
  const Node* from = at;
  for (;;) {
    if (auto local = Local(name, from)) {
      variables.push_back(std::move(*local));
      return {.type = ReadFrom(Either(std::move(variables)))};
    }
    const Node* around = from->parent;
    while (around != nullptr && ClassAround(around) == nullptr) around = around->parent;
    if (around == nullptr) break;
    const Node* of = ClassAround(around);
    Class* c = world_.ClassOf(of, world_.program());
    Type self = ClassType(c->name);
    for (const std::string& v : c->variables) {
      self.args.push_back(world_.Named(
          v, around->first_named() != nullptr ? around->first_named() : around, world_.program()));
    }
    bool here = true;
    if (auto field = FieldOf(self, name, here)) {
      // An outer field that something unknown in between may hide.
      if (!closed || hides) return {};
      variables.push_back(std::move(*field));
      return {.type = ReadFrom(Either(std::move(variables)))};
    }
    // That the class is not finished is no reason to doubt; unknown classes above it are.
    const bool supers_known = here || world_.SupersKnown(self);
    closed = closed && supers_known;
    hides = hides || (c->unfinished && DeclaresClass(*of));
    from = of;
  }
  if (!variables.empty()) return {.type = closed ? ReadFrom(Either(std::move(variables))) : Type{}};
  for (const Import& import : world_.program().imports) {
    if (!import.is_static) continue;
    std::string owner = import.name;
    if (!import.all) {
      if (!import.name.ends_with("." + std::string(name))) continue;
      owner = import.name.substr(0, import.name.size() - name.size() - 1);
    }
    bool known = true;
    if (auto field = FieldOf(ClassType(owner), name, known)) return {.type = *field};
    if (!known) closed = false;
    if (!import.all && !known) return {};
  }
  if (no_variable != nullptr) *no_variable = closed;
  // Constants are written as types that are abbreviations: URL, UUID.
  const bool shouted =
      std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!closed && shouted) return {};
  if (name.empty() || (name[0] >= 'a' && name[0] <= 'z')) return {};
  Type type = world_.Named(name, at, world_.program());
  if (!type.is(TK::kClass)) return {};
  return {.type = std::move(type), .names_type = true};
}

void Typer::Visible(Class& c, const Node* at, bool only_static, std::vector<std::string>& names) {
  const Class* here = EnclosingClass(at);
  const bool same_top = here != nullptr && here->top == c.top;
  const bool same_package = c.package == world_.program().package;
  Work::Step(c.members.size());
  for (const Member& m : c.members) {
    if (m.kind == Member::Kind::kConstructor) continue;
    if (m.visibility == Visibility::kPrivate && !same_top) continue;
    if (m.visibility == Visibility::kPackage && !same_package && c.file == nullptr) continue;
    if (only_static && !m.is_static) continue;
    names.push_back(m.name);
  }
}

namespace {

// What stands before the name may be a type: a variable may be called as a type is.
bool MayNameType(const Node* name) {
  const Node* object = name->parent == nullptr ? nullptr : name->parent->at(F::k_object);
  if (object == nullptr) return true;
  if (object->is(K::k_field_access)) object = object->at(F::k_field);
  if (object == nullptr || !object->is(K::k_identifier)) return false;
  const std::string_view text = object->text();
  return text.empty() || text[0] < 'a' || text[0] > 'z';
}

bool Within(const Node* node, K kind) {
  while (node != nullptr && !node->is(kind)) node = node->parent;
  return node != nullptr;
}

}  // namespace

bool Typer::ImportedByStar(const std::string& type) {
  const size_t dot = type.rfind('.');
  if (dot == std::string::npos) return false;
  bool star = false;
  for (const Import& import : world_.program().imports) {
    if (!import.all && import.name == type) return false;
    star = star || (import.all && type.compare(0, dot, import.name) == 0);
  }
  return star;
}

std::optional<std::vector<std::string>> Typer::MemberNames(const Value& value, const Node* at) {
  const Type type = ReadFrom(value.type);
  std::vector<std::string> names;
  std::vector<Type> todo = {type};
  bool any = false;
  for (size_t i = 0; i < todo.size() && i < 64; ++i) {
    Type one = ReadFrom(todo[i]);
    if (one.is(TK::kEither)) {
      todo.insert(todo.end(), one.args.begin(), one.args.end());
      continue;
    }
    if (one.is(TK::kPrimitive) || one.is(TK::kVoid) || one.is(TK::kNull)) continue;
    if (one.is(TK::kVariable)) {
      todo.push_back(one.args.empty() ? ClassType("java.lang.Object") : one.args[0]);
      continue;
    }
    if (one.is(TK::kArray)) {
      names.insert(names.end(), {"length", "clone"});
      todo.push_back(ClassType("java.lang.Object"));
      any = true;
      continue;
    }
    if (!one.is(TK::kClass)) return std::nullopt;
    any = true;
    const bool closed = world_.Walk(one, [&](Class& c, const Substitution& with) {
      (void)with;
      world_.ReadClass(c);
      Visible(c, at, value.names_type, names);
      return false;
    });
    if (!closed) return std::nullopt;
  }
  if (!any) return std::nullopt;
  // A type of this name that is declared further down hides one that is imported by ".*". Where
  // that one has nothing for its name to be followed by, it is the other one that is meant.
  if (value.names_type && names.empty() && ImportedByStar(type.name)) return std::nullopt;
  names.emplace_back("new");  // outer.new Inner()
  // Map.class, Outer.this, Interface.super
  if (value.names_type || MayNameType(at)) names.insert(names.end(), {"class", "super", "this"});
  // outer.super(), a constructor's first statement
  if (Within(at, K::k_constructor_body)) names.emplace_back("super");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<std::vector<std::string>> Typer::LabelsOf(const Node* label) {
  const Node* of = label;
  while (of != nullptr && !of->is(K::k_switch_expression)) of = of->parent;
  if (of == nullptr) return std::nullopt;
  const Type type = ReadFrom(TypeOf(of->at(F::k_condition)));
  Class* c = type.is(TK::kClass) ? world_.Find(type.name) : nullptr;
  if (c == nullptr || !c->is_enum) return std::nullopt;
  world_.ReadClass(*c);
  if (c->open) return std::nullopt;
  std::vector<std::string> names;
  for (const Member& m : c->members) {
    if (m.is_constant) names.push_back(m.name);
  }
  if (names.empty()) return std::nullopt;
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pawl::monitors::java
