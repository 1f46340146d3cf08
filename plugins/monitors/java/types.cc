// Operations on Java's types.
#include "plugins/monitors/java/types.h"

#include <algorithm>
#include <array>

#include "plugins/monitors/work.h"

namespace pawl::monitors::java {

using TypeKind = Type::Kind;

Type ClassType(std::string name, std::vector<Type> args) {
  return {.kind = TypeKind::kClass, .name = std::move(name), .args = std::move(args)};
}

Type Primitive(std::string_view name) {
  return {.kind = TypeKind::kPrimitive, .name = std::string(name), .args = {}};
}

Type ArrayOf(Type element) {
  Type array{.kind = TypeKind::kArray, .name = {}, .args = {}};
  array.args.push_back(std::move(element));
  return array;
}

Type Either(std::vector<Type> types) {
  Work::Step(1 + types.size());
  std::vector<Type> different;
  for (Type& type : types) {
    if (!type.known()) return {};
    if (type.is(TypeKind::kNull) && types.size() > 1) continue;
    if (type.is(TypeKind::kEither)) {
      for (Type& one : type.args) {
        if (std::find(different.begin(), different.end(), one) == different.end())
          different.push_back(std::move(one));
      }
    } else if (std::find(different.begin(), different.end(), type) == different.end()) {
      different.push_back(std::move(type));
    }
  }
  constexpr size_t kMost = 24;
  if (different.empty() || different.size() > kMost) return {};
  if (different.size() == 1) return std::move(different.front());
  return {.kind = TypeKind::kEither, .name = {}, .args = std::move(different)};
}

Type Boxed(const Type& type) {
  if (!type.is(TypeKind::kPrimitive)) return type;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kBoxes = {
      {{"int", "java.lang.Integer"},
       {"long", "java.lang.Long"},
       {"short", "java.lang.Short"},
       {"byte", "java.lang.Byte"},
       {"char", "java.lang.Character"},
       {"boolean", "java.lang.Boolean"},
       {"float", "java.lang.Float"},
       {"double", "java.lang.Double"}}};
  for (const auto& [primitive, box] : kBoxes) {
    if (type.name == primitive) return ClassType(std::string(box));
  }
  return {};
}

Type ReadFrom(const Type& type) {
  if (type.is(TypeKind::kExtends)) return type.args.empty() ? Type{} : ReadFrom(type.args[0]);
  if (type.is(TypeKind::kSuper)) return {};
  return type;
}

Type Substitute(const Type& type, const Substitution& with) {
  const Work::Deeper deeper;
  Work::Step(2 + with.size() / 4);
  if (type.is(TypeKind::kVariable)) {
    for (const auto& [name, value] : with) {
      if (name == type.name) return Work::CountedCopy(value);
    }
    return type;
  }
  if (type.args.empty()) return type;
  Type result{.kind = type.kind, .name = type.name, .args = {}};
  result.args.reserve(type.args.size());
  for (const Type& arg : type.args) result.args.push_back(Substitute(arg, with));
  if ((type.is(TypeKind::kArray) || type.is(TypeKind::kExtends) || type.is(TypeKind::kSuper)) &&
      !result.args[0].known()) {
    return {};
  }
  if (type.is(TypeKind::kExtends) &&
      (result.args[0].is(TypeKind::kExtends) || result.args[0].is(TypeKind::kSuper)))
    return result.args[0].is(TypeKind::kExtends) ? result.args[0] : Type{};
  if (type.is(TypeKind::kSuper) &&
      (result.args[0].is(TypeKind::kExtends) || result.args[0].is(TypeKind::kSuper)))
    return {};
  return result;
}

}  // namespace pawl::monitors::java
