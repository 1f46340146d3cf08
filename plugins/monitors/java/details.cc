// What an editor shows of Java's names: a method's or field's declaration with types, and the
// Javadoc of what a source declares. Class files have no Javadoc.
#include "plugins/monitors/java/details.h"

#include <algorithm>
#include <unordered_map>

#include "plugins/monitors/name_details.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::java {
namespace {

using DK = NameDetail::Kind;

std::string TextOfType(const Type& type, int depth = 0) {
  if (depth > 4) return "...";
  std::string args;
  if (type.is(Type::Kind::kClass) || type.is(Type::Kind::kEither)) {
    for (const Type& arg : type.args) {
      args += (args.empty()                   ? ""
               : type.is(Type::Kind::kEither) ? " | "
                                              : ", ") +
              TextOfType(arg, depth + 1);
    }
  }
  switch (type.kind) {
    case Type::Kind::kUnknown:
      return "?";
    case Type::Kind::kVoid:
      return "void";
    case Type::Kind::kNull:
      return "null";
    case Type::Kind::kPrimitive:
    case Type::Kind::kVariable:
      return type.name;
    case Type::Kind::kClass: {
      const size_t point = type.name.rfind('.');
      const std::string simple =
          point == std::string::npos ? type.name : type.name.substr(point + 1);
      return simple + (args.empty() ? "" : "<" + args + ">");
    }
    case Type::Kind::kArray:
      return (type.args.empty() ? "?" : TextOfType(type.args[0], depth + 1)) + "[]";
    case Type::Kind::kExtends:
      return type.args.empty() ? "?" : "? extends " + TextOfType(type.args[0], depth + 1);
    case Type::Kind::kSuper:
      return type.args.empty() ? "?" : "? super " + TextOfType(type.args[0], depth + 1);
    case Type::Kind::kEither:
      return args;
  }
  return "?";
}

// The Javadoc above the member of that name in the class's body.
std::string JavadocOf(const Class& c, std::string_view name) {
  if (c.node == nullptr || c.node->tree == nullptr) return "";
  const Node* body = c.node->at(Field::k_body);
  if (body == nullptr) return "";
  for (const Node& kid : body->kids()) {
    Work::Step();
    const Node* id = kid.at(Field::k_name);
    if (id == nullptr) {
      const Node* declarator = kid.at(Field::k_declarator);
      id = declarator != nullptr ? declarator->at(Field::k_name) : nullptr;
    }
    if (id == nullptr || id->text() != name) continue;
    std::string found = CommentAbove(c.node->tree->text(), kid.start);
    if (!found.empty()) return found;
  }
  return "";
}

void OfMember(const Member& m, const Class& c, const Substitution& with, NameDetail& detail) {
  switch (m.kind) {
    case Member::Kind::kField:
      detail.kind = m.is_constant ? DK::kEnumMember : DK::kField;
      detail.detail = OneLine(TextOfType(Substitute(m.type, with)));
      break;
    case Member::Kind::kType:
      detail.kind = DK::kClass;
      detail.detail = OneLine(TextOfType(m.type));
      break;
    default: {
      detail.kind = m.kind == Member::Kind::kMethod ? DK::kMethod : DK::kConstructor;
      std::string text = TextOfType(Substitute(m.type, with)) + " " + m.name + "(";
      for (size_t i = 0; i < m.parameters.size(); ++i) {
        std::string parameter = TextOfType(Substitute(m.parameters[i], with));
        const bool last = i + 1 == m.parameters.size();
        if (last && m.varargs && parameter.ends_with("[]"))
          parameter.replace(parameter.size() - 2, 2, "...");
        text += (i == 0 ? "" : ", ") + parameter;
      }
      detail.detail = OneLine(text + ")");
    }
  }
  detail.documentation = JavadocOf(c, m.name);
}

}  // namespace

void MemberDetails(SymbolTable& world, const Value& value, std::span<const std::string> names,
                   std::vector<NameDetail>& details) {
  std::unordered_map<std::string_view, size_t> wanted;
  for (size_t i = 0; i < names.size(); ++i) {
    wanted.emplace(names[i], i);
    const std::string& name = names[i];
    if (name == "new" || name == "class" || name == "this" || name == "super")
      details[i].kind = DK::kKeyword;
  }
  std::vector<Type> todo = {ReadFrom(value.type)};
  for (size_t i = 0; i < todo.size() && i < 64; ++i) {
    const Type one = ReadFrom(todo[i]);
    if (one.is(Type::Kind::kEither)) {
      todo.insert(todo.end(), one.args.begin(), one.args.end());
    } else if (one.is(Type::Kind::kVariable)) {
      todo.push_back(one.args.empty() ? ClassType("java.lang.Object") : one.args[0]);
    } else if (one.is(Type::Kind::kArray)) {
      if (const auto length = wanted.find("length"); length != wanted.end())
        details[length->second] = {.kind = DK::kField, .detail = "int", .documentation = ""};
      todo.push_back(ClassType("java.lang.Object"));
    } else if (one.is(Type::Kind::kClass)) {
      world.Walk(one, [&](Class& c, const Substitution& with) {
        world.ReadClass(c);
        Work::Step(c.members.size());
        for (const Member& m : c.members) {
          const auto found = wanted.find(m.name);
          if (m.kind == Member::Kind::kConstructor || found == wanted.end()) continue;
          const size_t at = found->second;
          const bool known = details[at].kind != DK::kUnknown;
          if (!known || details[at].kind == DK::kKeyword) OfMember(m, c, with, details[at]);
        }
        return false;
      });
    }
  }
}

void KnownMembers(SymbolTable& world, const Value& value, std::vector<std::string>& names) {
  std::vector<Type> todo = {ReadFrom(value.type)};
  for (size_t i = 0; i < todo.size() && i < 64; ++i) {
    const Type one = ReadFrom(todo[i]);
    if (one.is(Type::Kind::kEither)) {
      todo.insert(todo.end(), one.args.begin(), one.args.end());
    } else if (one.is(Type::Kind::kVariable) && !one.args.empty()) {
      todo.push_back(one.args[0]);
    } else if (one.is(Type::Kind::kClass)) {
      world.Walk(one, [&](Class& c, const Substitution&) {
        world.ReadClass(c);
        Work::Step(c.members.size());
        for (const Member& m : c.members) {
          const bool seen = m.visibility == Visibility::kPublic || c.file == &world.program();
          const bool fits = m.is_static || !value.names_type;
          if (m.kind != Member::Kind::kConstructor && seen && fits) names.push_back(m.name);
        }
        return false;
      });
    }
  }
  std::erase(names, "pawl_name__");
}

void PackageDetails(std::span<const std::string> names, std::vector<NameDetail>& details) {
  for (size_t i = 0; i < names.size(); ++i) {
    const bool type = !names[i].empty() && names[i][0] >= 'A' && names[i][0] <= 'Z';
    details[i].kind = type ? DK::kClass : DK::kModule;
  }
}

}  // namespace pawl::monitors::java
