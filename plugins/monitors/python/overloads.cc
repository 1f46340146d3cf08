// Which overloads of a function a call means: those that take its arguments by number and name, and
// whose parameters of literal types (`Literal["rb"]`) take the literals that are given. An overload
// that surely is the one that is meant leaves out those behind it.
#include <algorithm>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr int kMaxLiteralDepth = 12;
constexpr size_t kMaxLiterals = 2000;

struct OverloadParameter {
  std::string_view name;
  const Node* annotation = nullptr;
  bool optional = false;
};

struct OverloadParameters {
  std::vector<OverloadParameter> positional;
  size_t only_positional = 0;
  std::vector<OverloadParameter> by_name;
  bool any_positions = false;
  bool any_names = false;
};

OverloadParameters ReadParameters(const Node* function, bool bound) {
  OverloadParameters found;
  bool names = false;
  const Node* list = function->at(F::k_parameters);
  if (list == nullptr) return found;
  for (const Node& p : list->kids()) {
    if (!p.named || p.is(K::k_comment)) continue;
    if (p.is(K::k_positional_separator)) {
      found.only_positional = found.positional.size();
      continue;
    }
    if (p.is(K::k_keyword_separator)) {
      names = true;
      continue;
    }
    const Node* inner = p.is(K::k_typed_parameter) ? p.first_named() : &p;
    if (inner == nullptr) continue;
    if (inner->is(K::k_list_splat_pattern)) {
      found.any_positions = names = true;
      continue;
    }
    if (inner->is(K::k_dictionary_splat_pattern)) {
      found.any_names = true;
      continue;
    }
    if (bound) {
      bound = false;
      continue;
    }
    const Node* name = p.at(F::k_name) != nullptr ? p.at(F::k_name) : inner;
    (names ? found.by_name : found.positional)
        .push_back(
            {.name = name->text(),
             .annotation = p.at(F::k_type),
             .optional = p.is(K::k_default_parameter) || p.is(K::k_typed_default_parameter)});
  }
  return found;
}

// A literal as it is compared; empty: it is none.
std::string LiteralText(const Node* node) {
  if (node == nullptr) return {};
  if (node->is(K::kTrue) || node->is(K::kFalse) || node->is(K::k_none) || node->is(K::k_integer))
    return std::string(node->text());
  if (node->is(K::k_unary_operator)) {
    const Node* argument = node->at(F::k_argument);
    return argument != nullptr && argument->is(K::k_integer) ? std::string(node->text())
                                                             : std::string{};
  }
  if (!node->is(K::k_string)) return {};
  const std::string_view text = node->text();
  const size_t quote = text.find_first_of("\"'");
  if (quote == std::string_view::npos || quote > 1 || text.size() < quote + 2) return {};
  if (quote == 1 && text[0] != 'b' && text[0] != 'u') return {};
  if (text.substr(quote).starts_with(text[quote] == '"' ? "\"\"\"" : "'''")) return {};
  const std::string_view inside = text.substr(quote + 1, text.size() - quote - 2);
  if (inside.find('\\') != std::string_view::npos) return {};
  return (text[0] == 'b' ? "b'" : "'") + std::string(inside);
}

// What an argument says of the overloads of a function.
struct Fit {
  bool takes = true;
  std::vector<std::pair<std::string_view, bool>> sure;  // the annotation, whether a literal fits it
};

}  // namespace

// The values of an annotation that is Literal[...], or None, or a union of such; false: it is not.
bool SymbolTable::LiteralsOf(const Node* annotation, Module& module,
                             std::vector<std::string>& values, int depth) {
  if (annotation == nullptr || depth > kMaxLiteralDepth || values.size() > kMaxLiterals)
    return false;
  Work::Step();
  switch (annotation->kind) {
    case K::k_type:
    case K::k_parenthesized_expression:
      return LiteralsOf(annotation->first_named(), module, values, depth + 1);
    case K::k_none:
      values.emplace_back("None");
      return true;
    case K::k_union_type:
    case K::k_binary_operator:
      for (const Node& kid : annotation->kids()) {
        if (!kid.named && kid.text() != "|") return false;
        if (kid.named && !kid.is(K::k_comment) && !LiteralsOf(&kid, module, values, depth + 1))
          return false;
      }
      return true;
    case K::k_subscript:
    case K::k_generic_type: {
      const Node* head =
          annotation->is(K::k_subscript) ? annotation->at(F::k_value) : annotation->first_named();
      if (head == nullptr || (head->text() != "Literal" && !head->text().ends_with(".Literal")))
        return false;
      for (const Node* arg : TypeArguments(annotation)) {
        std::string value = LiteralText(arg->is(K::k_type) ? arg->first_named() : arg);
        if (value.empty()) return false;
        values.push_back(std::move(value));
      }
      return true;
    }
    case K::k_identifier:
      break;
    default:
      return false;
  }
  // An alias: OpenTextMode = Literal["r", "w"].
  Module* where = &module;
  std::string name(annotation->text());
  for (int hops = 0; hops < kMaxLiteralDepth; ++hops) {
    const auto found = where->scope.names.find(name);
    if (found == where->scope.names.end() || found->second.size() != 1) return false;
    const Binding& binding = found->second.front();
    if (binding.kind == Binding::Kind::kAssignment)
      return LiteralsOf(binding.node->at(F::k_right), *where, values, depth + 1);
    if (binding.kind != Binding::Kind::kImport || binding.member.empty()) return false;
    const std::string from = Absolute(binding, *where);
    where = from.empty() ? nullptr : Find(from);
    if (where == nullptr) return false;
    name = binding.member;
  }
  return false;
}

std::vector<const Node*> SymbolTable::Meant(const Type& callee, const Node* list) {
  std::vector<const Node*> positions;
  std::vector<const Node*> named;
  for (const Node& kid : list->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (kid.is(K::k_list_splat) || kid.is(K::k_dictionary_splat)) return callee.functions;
    (kid.is(K::k_keyword_argument) ? named : positions).push_back(&kid);
  }
  if (!list->is(K::k_argument_list)) return callee.functions;
  const auto fit = [&](const Node* function) {
    Fit result;
    const OverloadParameters all = ReadParameters(function, callee.bound);
    std::vector<const OverloadParameter*> taken;
    const auto judge = [&](const OverloadParameter& p, const Node* value) {
      taken.push_back(&p);
      std::vector<std::string> values;
      const std::string_view text = p.annotation == nullptr ? "" : p.annotation->text();
      const std::string literal = LiteralText(value);
      if (!LiteralsOf(p.annotation, *callee.module, values)) {
        result.sure.emplace_back(text, false);
        return;
      }
      const bool one = std::ranges::find(values, literal) != values.end();
      if (!literal.empty() && !one) result.takes = false;
      result.sure.emplace_back(text, !literal.empty());
    };
    for (size_t i = 0; i < positions.size(); ++i) {
      if (i < all.positional.size()) {
        judge(all.positional[i], positions[i]);
      } else if (all.any_positions) {
        result.sure.emplace_back("", false);
      } else {
        result.takes = false;
        return result;
      }
    }
    for (const Node* argument : named) {
      const Node* name = argument->at(F::k_name);
      const OverloadParameter* meant = nullptr;
      for (size_t i = all.only_positional; i < all.positional.size(); ++i) {
        if (name != nullptr && all.positional[i].name == name->text()) meant = &all.positional[i];
      }
      for (const OverloadParameter& p : all.by_name) {
        if (name != nullptr && p.name == name->text()) meant = &p;
      }
      if (meant != nullptr) {
        judge(*meant, argument->at(F::k_value));
      } else if (all.any_names) {
        result.sure.emplace_back("", false);
      } else {
        result.takes = false;
        return result;
      }
    }
    for (const auto* group : {&all.positional, &all.by_name}) {
      for (const OverloadParameter& p : *group) {
        if (!p.optional && std::ranges::find(taken, &p) == taken.end()) result.takes = false;
      }
    }
    return result;
  };
  std::vector<const Node*> meant;
  std::vector<Fit> before;
  for (const Node* function : callee.functions) {
    Fit own = fit(function);
    if (!own.takes) continue;
    // One before it is taken for sure: where they differ, a literal says so.
    const bool never = std::ranges::any_of(before, [&](const Fit& first) {
      if (first.sure.size() != own.sure.size()) return false;
      for (size_t i = 0; i < own.sure.size(); ++i) {
        const auto& [annotation, literal] = first.sure[i];
        if (!literal && (annotation.empty() || annotation != own.sure[i].first)) return false;
      }
      return true;
    });
    if (never) continue;
    meant.push_back(function);
    before.push_back(std::move(own));
  }
  return meant;
}

// What a plain value is: "a", [], Dog(). The types of elements are those that are declared.
Type SymbolTable::Plainly(const Node* value, const Type& declared, Module& module) {
  while (value != nullptr && value->is(K::k_parenthesized_expression)) value = value->first_named();
  if (value == nullptr) return {};
  const char* name = nullptr;
  switch (value->kind) {
    case K::k_list:
    case K::k_list_comprehension:
      name = "list";
      break;
    case K::k_set:
    case K::k_set_comprehension:
      name = "set";
      break;
    case K::k_dictionary:
    case K::k_dictionary_comprehension:
      name = "dict";
      break;
    case K::k_tuple:
      name = "tuple";
      break;
    case K::k_integer:
      name = "int";
      break;
    case K::k_float:
      name = "float";
      break;
    case K::kTrue:
    case K::kFalse:
      name = "bool";
      break;
    case K::k_string:
      name =
          value->text().find_first_of("bB") < value->text().find_first_of("\"'") ? "bytes" : "str";
      break;
    case K::k_call: {
      const Node* function = value->at(F::k_function);
      if (function == nullptr ||
          (!function->is(K::k_identifier) && !function->is(K::k_attribute))) {
        return {};
      }
      Type made = FromAnnotation(function, module);
      if (!made.is(TK::kInstance)) return {};
      if (declared.is(TK::kInstance) && made.args.empty() && made.cls->module->stub)
        made.args = declared.args;
      return made;
    }
    default:
      return {};
  }
  Type made = InstanceOf(name);
  Class* c = made.cls;
  if (c == nullptr) return {};
  ReadHead(*c);
  for (size_t i = 0; i < c->variables.size(); ++i) {
    const bool same = declared.is(TK::kInstance) && declared.args.size() == c->variables.size();
    made.args.push_back(same ? declared.args[i] : Type{});
  }
  return made;
}

}  // namespace pawl::monitors::python
