// What an editor shows of TypeScript's names: the kind and type of a member or of a name in scope,
// and the comment above its declaration. The library's declarations have no comments.
#include <algorithm>

#include "plugins/monitors/name_details.h"
#include "plugins/monitors/typescript/check.h"

namespace pawl::monitors::ts {
namespace {

NameDetail::Kind KindOfSymbol(const Symbol& symbol) {
  using DK = NameDetail::Kind;
  if (symbol.is(kMethod)) return DK::kMethod;
  if (symbol.is(kClass)) return DK::kClass;
  if (symbol.is(kEnum)) return DK::kEnum;
  if (symbol.is(kEnumMember)) return DK::kEnumMember;
  if (symbol.is(kFunctionName)) return DK::kFunction;
  if (symbol.is(kGetter | kSetter | kProperty)) return DK::kProperty;
  if (symbol.is(kConst)) return DK::kConstant;
  if (symbol.is(kVariable | kLet | kParameter)) return DK::kVariable;
  if (symbol.is(kNamespace)) return DK::kModule;
  if (symbol.is(kInterface | kAlias)) return DK::kInterface;
  return DK::kUnknown;
}

std::string CommentOf(const Symbol& symbol) {
  for (const Node* node : symbol.declarations) {
    if (node == nullptr || node->tree == nullptr) continue;
    const std::string_view text = node->tree->text();
    // export const a = 1: the comment stands above `export`.
    for (const Node* up = node; up != nullptr && up->parent != nullptr; up = up->parent) {
      std::string found = CommentAbove(text, up->start);
      if (!found.empty()) return found;
      const Node* around = up->parent;
      if (!around->is(K::k_export_statement) && !around->is(K::k_ambient_declaration) &&
          !around->is(K::k_lexical_declaration) && !around->is(K::k_variable_declaration) &&
          !around->is(K::k_variable_declarator) && around->start != up->start) {
        break;
      }
    }
  }
  return "";
}

void FillDetail(Checker& checker, Symbol* symbol, TypeRef type, bool method, NameDetail& detail) {
  if (symbol != nullptr && symbol->is(kImport)) {
    Symbol* target = checker.Target(symbol);
    if (target != nullptr) symbol = target;
  }
  if (symbol != nullptr) {
    detail.kind = KindOfSymbol(*symbol);
    detail.documentation = CommentOf(*symbol);
  }
  if (type != nullptr && !type->open()) detail.detail = OneLine(checker.Describe(type));
  using DK = NameDetail::Kind;
  const bool calls = type != nullptr && type->is(T::kFunction);
  if (method || (calls && (detail.kind == DK::kProperty || detail.kind == DK::kUnknown))) {
    detail.kind = DK::kMethod;
  } else if (detail.kind == DK::kUnknown && type != nullptr) {
    detail.kind = DK::kProperty;
  }
}

void KnownOf(Checker& checker, TypeRef type, std::vector<std::string>& names, int depth) {
  constexpr int kMostAbove = 16;
  if (depth > kMostAbove) return;
  Work::Step();
  if (type->is(T::kUnion) || type->is(T::kIntersection)) {
    for (TypeRef part : type->parts) KnownOf(checker, part, names, depth + 1);
  } else if (type->is(T::kStatic)) {
    checker.FillMembers(type->symbol);
    for (const auto& [name, member] : type->symbol->statics) names.push_back(name);
  } else if (type->is(T::kRef)) {
    checker.FillMembers(type->symbol);
    for (const auto& [name, member] : type->symbol->members) names.push_back(name);
    for (TypeRef base : checker.BasesOf(type)) KnownOf(checker, base, names, depth + 1);
  } else if (type->is(T::kShape)) {
    for (const Property& property : checker.ShapeOf(type)->properties)
      names.push_back(property.name);
  }
}

}  // namespace

void KnownMembers(Checker& checker, const Node* object, std::vector<std::string>& names) {
  if (object == nullptr) return;
  KnownOf(checker, checker.pool().NonNull(checker.TypeOf(object)), names, 0);
  std::erase_if(names, [](const std::string& name) {
    return name.empty() || !NameStart(name[0]) || name == "pawl_name__";
  });
}

void MemberDetails(Checker& checker, const Node* object, std::span<const std::string> names,
                   std::vector<NameDetail>& details) {
  if (object == nullptr) return;
  const TypeRef type = checker.pool().NonNull(checker.TypeOf(object));
  for (size_t i = 0; i < names.size(); ++i) {
    Work::Step();
    const std::optional<Property> member = checker.Member(type, names[i]);
    if (!member) continue;
    FillDetail(checker, member->symbol, checker.TypeOfProperty(*member), member->method,
               details[i]);
  }
}

void ScopeDetails(Checker& checker, const Node* at, std::span<const std::string> names,
                  std::vector<NameDetail>& details) {
  for (size_t i = 0; i < names.size(); ++i) {
    Work::Step();
    Symbol* symbol = checker.Resolve(names[i], at, kValue);
    if (symbol == nullptr) {
      if (ScopeWord(names[i])) details[i].kind = NameDetail::Kind::kKeyword;
      continue;
    }
    FillDetail(checker, symbol, checker.TypeOfSymbol(symbol), false, details[i]);
  }
}

}  // namespace pawl::monitors::ts
