// What an editor shows of Python's names: a function's head, a variable's annotation, and the
// docstring of what a source declares. Stubs have no docstrings.
#include "plugins/monitors/python/details.h"

#include <algorithm>

#include "plugins/monitors/name_details.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using DK = NameDetail::Kind;

std::string TextOfType(const Type& type, int depth = 0) {
  if (depth > 3) return "...";
  switch (type.kind) {
    case Type::Kind::kNone:
      return "None";
    case Type::Kind::kModule:
      return type.module != nullptr ? "module " + type.module->name : "module";
    case Type::Kind::kClass:
      return type.cls != nullptr ? "type[" + type.cls->name + "]" : "type";
    case Type::Kind::kInstance: {
      if (type.cls == nullptr) return "";
      std::string args;
      for (const Type& arg : type.args) {
        const std::string text = TextOfType(arg, depth + 1);
        args += (args.empty() ? "" : ", ") + (text.empty() ? "Any" : text);
      }
      return type.cls->name + (args.empty() ? "" : "[" + args + "]");
    }
    case Type::Kind::kVariable:
      return type.name;
    case Type::Kind::kSelf:
      return "Self";
    case Type::Kind::kEither: {
      std::string out;
      for (const Type& one : type.args) {
        const std::string text = TextOfType(one, depth + 1);
        if (text.empty()) return "";
        out += (out.empty() ? "" : " | ") + text;
      }
      return out;
    }
    default:
      return "";
  }
}

// The string that a body begins with.
std::string DocstringIn(const Node* declaration) {
  const Node* body = declaration->at(Field::k_body);
  const Node* first = body != nullptr ? body->first_named() : nullptr;
  const Node* literal = first != nullptr ? first->first_named() : nullptr;
  if (literal == nullptr || !first->is(Kind::k_expression_statement) ||
      !literal->is(Kind::k_string)) {
    return "";
  }
  return Docstring(literal->text());
}

void OfFunction(const Node* node, size_t overloads, bool in_class, NameDetail& detail) {
  if (node->is(Kind::k_decorated_definition)) {
    if (const Node* inner = node->at(Field::k_definition)) node = inner;
  }
  detail.kind = in_class ? DK::kMethod : DK::kFunction;
  const Node* parameters = node->at(Field::k_parameters);
  const Node* result = node->at(Field::k_return_type);
  const Node* around = node->parent;
  if (around != nullptr && around->is(Kind::k_decorated_definition)) {
    for (const Node& kid : around->kids()) {
      const bool decorator = kid.named && &kid != node;
      if (decorator && kid.text().find("property") != std::string_view::npos)
        detail.kind = DK::kProperty;
    }
  }
  if (detail.kind == DK::kProperty) {
    detail.detail = result != nullptr ? OneLine(result->text()) : "";
  } else {
    const Node* name = node->at(Field::k_name);
    std::string head = "def " + (name != nullptr ? std::string(name->text()) : "");
    head += parameters != nullptr ? std::string(parameters->text()) : "()";
    if (result != nullptr) head += " -> " + std::string(result->text());
    detail.detail = OneLine(head);
    if (overloads > 1) detail.detail += " (+" + std::to_string(overloads - 1) + ")";
  }
  detail.documentation = DocstringIn(node);
}

void OfClass(const Node* node, NameDetail& detail) {
  if (node->is(Kind::k_decorated_definition)) {
    if (const Node* inner = node->at(Field::k_definition)) node = inner;
  }
  detail.kind = DK::kClass;
  const Node* name = node->at(Field::k_name);
  const Node* bases = node->at(Field::k_superclasses);
  detail.detail = OneLine("class " + (name != nullptr ? std::string(name->text()) : "") +
                          (bases != nullptr ? std::string(bases->text()) : ""));
  detail.documentation = DocstringIn(node);
}

void OfType(const Type& type, bool in_class, NameDetail& detail) {
  if (type.is(Type::Kind::kFunction) && !type.functions.empty()) {
    OfFunction(type.functions.front(), type.functions.size(), in_class, detail);
  } else if (type.is(Type::Kind::kClass) && type.cls != nullptr && type.cls->node != nullptr) {
    OfClass(type.cls->node, detail);
  } else if (type.known()) {
    detail.kind = type.is(Type::Kind::kModule) ? DK::kModule
                  : in_class                   ? DK::kField
                                               : DK::kVariable;
    detail.detail = OneLine(TextOfType(type));
  }
}

void OfBindings(const std::vector<Binding>& bindings, bool in_class, NameDetail& detail) {
  if (bindings.empty() || bindings.back().node == nullptr) return;
  const Binding& last = bindings.back();
  switch (last.kind) {
    case Binding::Kind::kFunction:
      OfFunction(last.node, bindings.size(), in_class, detail);
      break;
    case Binding::Kind::kClass:
      OfClass(last.node, detail);
      break;
    case Binding::Kind::kImport:
      detail.kind = last.member.empty() ? DK::kModule : DK::kVariable;
      break;
    default: {
      detail.kind = in_class ? DK::kField : DK::kVariable;
      const Node* type = last.node->at(Field::k_type);
      if (type != nullptr) detail.detail = OneLine(type->text());
    }
  }
}

}  // namespace

void MemberDetails(SymbolTable& world, const Type& type, std::span<const std::string> names,
                   std::vector<NameDetail>& details) {
  if (type.is(Type::Kind::kEither)) {
    // The first of them that has the name.
    for (const Type& one : type.args) MemberDetails(world, one, names, details);
    return;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    Work::Step();
    if (details[i].kind != DK::kUnknown) continue;
    bool in_class = true;
    if (type.is(Type::Kind::kModule)) {
      in_class = false;
      const auto found = type.module->scope.names.find(names[i]);
      if (found != type.module->scope.names.end()) OfBindings(found->second, false, details[i]);
      if (type.module->submodules.contains(names[i])) details[i].kind = DK::kModule;
    } else {
      world.Walk(type, [&](Class& c, const Substitution&) {
        const auto found = c.scope.names.find(names[i]);
        if (found != c.scope.names.end()) {
          OfBindings(found->second, true, details[i]);
        } else if (c.set_on_self.contains(names[i])) {
          details[i].kind = DK::kField;
        }
        return details[i].kind != DK::kUnknown;
      });
    }
    // What it is for this object: `list[int].pop` gives an int.
    const bool plain = details[i].kind != DK::kMethod && details[i].kind != DK::kFunction &&
                       details[i].kind != DK::kClass && details[i].kind != DK::kProperty;
    if (plain && details[i].detail.empty())
      OfType(world.Attribute(type, names[i]), in_class, details[i]);
  }
}

void KnownMembers(SymbolTable& world, const Type& type, std::vector<std::string>& names) {
  if (type.is(Type::Kind::kEither)) {
    for (const Type& one : type.args) KnownMembers(world, one, names);
  } else if (type.is(Type::Kind::kModule)) {
    for (const auto& [name, bindings] : type.module->scope.names) names.push_back(name);
    names.insert(names.end(), type.module->submodules.begin(), type.module->submodules.end());
  } else if (type.known()) {
    // It finds what methods set on `self`.
    (void)world.Attribute(type, "pawl_name__");
    world.Walk(type, [&](Class& c, const Substitution&) {
      Work::Step(c.scope.names.size());
      for (const auto& [name, bindings] : c.scope.names) names.push_back(name);
      names.insert(names.end(), c.set_on_self.begin(), c.set_on_self.end());
      return false;
    });
  }
  std::unordered_set<std::string> unoffered{"pawl_name__"};
  world.Unoffered(type, unoffered);
  std::erase_if(names, [&](const std::string& name) { return unoffered.contains(name); });
}

}  // namespace pawl::monitors::python
