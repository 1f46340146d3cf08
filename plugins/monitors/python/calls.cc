// What a call returns: the return types of the overloads that take so many arguments, with what the
// arguments say of the variables in them.
#include <algorithm>
#include <array>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr int kMaxHops = 10;

// An overload that can't take so many arguments is not meant.
bool Takes(const Node* function, int count, bool is_bound) {
  int least = 0;
  int most = 0;
  bool keyword_only = false;
  const Node* list = function->at(F::k_parameters);
  for (const Node& p : list->kids()) {
    if (!p.named || p.is(K::k_comment) || p.is(K::k_positional_separator)) continue;
    if (p.is(K::k_list_splat_pattern) || p.is(K::k_dictionary_splat_pattern) ||
        (p.is(K::k_typed_parameter) && p.first_named() != nullptr &&
         !p.first_named()->is(K::k_identifier))) {
      most = 1 << 20;
      keyword_only = true;
    } else if (p.is(K::k_keyword_separator)) {
      keyword_only = true;
    } else {
      ++most;
      if (!keyword_only && !p.is(K::k_default_parameter) && !p.is(K::k_typed_default_parameter))
        ++least;
    }
  }
  const int bound = is_bound ? 1 : 0;
  return count >= least - bound && count <= most - bound;
}

}  // namespace

// Decorators behind which a function or class still has the members it is written with.
bool HarmlessName(std::string_view decorator) {
  if (const size_t open = decorator.find('('); open != std::string_view::npos)
    decorator = decorator.substr(0, open);
  decorator = decorator.substr(0, decorator.find_first_of(" #"));
  if (const size_t dot = decorator.rfind('.'); dot != std::string_view::npos)
    decorator = decorator.substr(dot + 1);
  static constexpr std::array<std::string_view, 17> kKnown = {"final",
                                                              "runtime_checkable",
                                                              "total_ordering",
                                                              "unique",
                                                              "overload",
                                                              "override",
                                                              "abstractmethod",
                                                              "deprecated",
                                                              "type_check_only",
                                                              "disjoint_base",
                                                              "staticmethod",
                                                              "classmethod",
                                                              "dataclass",
                                                              "no_type_check",
                                                              "define",
                                                              "frozen",
                                                              "attrs"};
  return std::find(kKnown.begin(), kKnown.end(), decorator) != kKnown.end();
}

// A name may mean another thing than the library's: def final(c): ...
bool SymbolTable::Harmless(std::string_view decorator, Module& module) {
  if (!HarmlessName(decorator)) return false;
  if (module.stub) return true;
  std::string name(decorator.substr(0, decorator.find_first_of("(. #")));
  static constexpr std::array<std::string_view, 11> kTrusted = {
      "typing", "typing_extensions", "dataclasses", "functools", "enum", "abc", "warnings", "attr",
      "attrs",  "pydantic",          "types"};
  Module* where = &module;
  for (int hops = 0; hops < kMaxHops; ++hops) {
    const auto found = where->scope.names.find(name);
    if (found == where->scope.names.end()) return where == &module;
    const Binding* import = nullptr;
    for (const Binding& binding : found->second) {
      if (binding.kind != Binding::Kind::kImport) return false;
      import = &binding;
    }
    const std::string from = Absolute(*import, *where);
    const std::string root = from.substr(0, from.find('.'));
    if (std::ranges::find(kTrusted, root) != kTrusted.end()) return true;
    Module* next = from.empty() || import->member.empty() ? nullptr : Find(from);
    if (next == nullptr || next == where) return false;
    where = next;
    name = import->member;
  }
  return false;
}

std::vector<std::string_view> DecoratorsOf(const Node* definition) {
  std::vector<std::string_view> found;
  const Node* around = definition->parent;
  if (around == nullptr || !around->is(K::k_decorated_definition)) return found;
  for (const Node& kid : around->kids()) {
    if (!kid.is(K::k_decorator)) continue;
    std::string_view text = kid.text();
    text.remove_prefix(1);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    found.push_back(text);
  }
  return found;
}

bool Decorated(const Node* definition, std::string_view with) {
  const auto all = DecoratorsOf(definition);
  return std::any_of(all.begin(), all.end(), [&](std::string_view d) {
    return d == with || (d.ends_with(with) && d[d.size() - with.size() - 1] == '.');
  });
}

void SymbolTable::Solve(const Type& parameter, const Type& given, Substitution& with, int depth) {
  if (depth > 10 || !given.known() || !parameter.known()) return;
  Work::Step();
  if (parameter.is(TK::kVariable)) {
    const bool found = std::ranges::any_of(
        with, [&](const auto& one) { return one.first == parameter.name && one.second.known(); });
    if (!found && !given.is(TK::kNone)) with.emplace_back(parameter.name, given);
    return;
  }
  if (parameter.is(TK::kEither)) {
    for (const Type& one : parameter.args) {
      if (one.is(TK::kInstance) || parameter.args.size() == 1) Solve(one, given, with, depth + 1);
    }
    return;
  }
  if (!parameter.is(TK::kInstance) || !given.is(TK::kInstance) || parameter.args.empty()) return;
  if (!parameter.items.empty() && parameter.items.size() == given.items.size()) {
    for (size_t i = 0; i < parameter.items.size(); ++i)
      Solve(parameter.items[i], given.items[i], with, depth + 1);
    return;
  }
  const std::vector<Type> as =
      parameter.cls == given.cls ? given.args : ArgumentsAs(given, parameter.cls->name);
  for (size_t i = 0; i < std::min(as.size(), parameter.args.size()); ++i)
    Solve(parameter.args[i], as[i], with, depth + 1);
}

void SymbolTable::SolveCall(const Node* function, bool bound, Module& module,
                            const std::vector<Type>& given, Substitution& with) {
  const Node* list = function->at(F::k_parameters);
  if (list == nullptr || given.empty()) return;
  size_t at = 0;
  for (const Node& p : list->kids()) {
    if (!p.named || p.is(K::k_comment)) continue;
    if (at == given.size() || p.is(K::k_keyword_separator) || p.is(K::k_dictionary_splat_pattern))
      return;
    if (p.is(K::k_positional_separator)) continue;
    if (bound) {
      bound = false;
      continue;
    }
    const Node* name = p.first_named();
    if (name != nullptr && name->is(K::k_list_splat_pattern)) return;
    Solve(FromAnnotation(p.at(F::k_type), module), given[at++], with);
  }
}

// The object that a class makes: list[int] of list((1, 2)).
Type SymbolTable::Made(Class& c, int count, const std::vector<Type>& given) {
  Type made{.kind = TK::kInstance, .cls = &c};
  ReadHead(c);
  if (c.variables.empty() || !c.module->stub || given.empty()) return made;
  for (const char* maker : {"__init__", "__new__"}) {
    const auto found = c.scope.names.find(maker);
    if (found == c.scope.names.end()) continue;
    const Node* only = nullptr;
    for (const Binding& binding : found->second) {
      if (binding.kind != Binding::Kind::kFunction || !Takes(binding.node, count, true)) continue;
      if (only != nullptr) return made;  // which one is meant is not known
      only = binding.node;
    }
    if (only == nullptr) continue;
    Substitution with;
    SolveCall(only, true, *c.module, given, with);
    const Node* returns = only->at(F::k_return_type);
    if (maker[2] == 'n' && returns != nullptr && returns->text() != "Self") {
      Type other = Substitute(FromAnnotation(returns, *c.module), with, made);
      return other.is(TK::kInstance) && other.cls == &c ? other : made;
    }
    for (const std::string& variable : c.variables)
      made.args.push_back(Substitute({.kind = TK::kVariable, .name = variable}, with, {}));
    return made;
  }
  return made;
}

// A class that makes objects of another one, or may: def __new__(cls): return "text".
bool SymbolTable::MakesOther(Class& c) {
  bool other = false;
  Walk({.kind = TK::kInstance, .cls = &c}, [&](Class& above, const Substitution& with) {
    (void)with;
    if (above.module->stub) return false;
    const auto found = above.scope.names.find("__new__");
    if (found == above.scope.names.end()) return false;
    for (const Binding& binding : found->second) {
      if (binding.kind != Binding::Kind::kFunction) {
        other = true;
        break;
      }
      const Scope& scope = LocalScope(binding.node, *above.module);
      const Node* parameters = binding.node->at(F::k_parameters);
      const Node* own = parameters == nullptr ? nullptr : parameters->first_named();
      const auto from_above = [&](const Node* value) {
        if (own == nullptr || value == nullptr || !value->is(K::k_call)) return false;
        const Node* function = value->at(F::k_function);
        const Node* given = value->at(F::k_arguments);
        const Node* first = given == nullptr ? nullptr : given->first_named();
        return function != nullptr && function->text().ends_with(".__new__") && first != nullptr &&
               first->text() == own->text();
      };
      std::vector<const Node*> todo = {binding.node->at(F::k_body)};
      while (!todo.empty() && !other) {
        const Node* node = todo.back();
        todo.pop_back();
        if (node == nullptr || node->is(K::k_function_definition) || node->is(K::k_lambda))
          continue;
        const Node* value = node->is(K::k_return_statement) ? node->first_named() : nullptr;
        if (value != nullptr && value->is(K::k_identifier)) {
          const auto bound = scope.names.find(std::string(value->text()));
          other =
              bound == scope.names.end() ||
              !std::ranges::all_of(bound->second, [&](const Binding& b) {
                return b.kind == Binding::Kind::kAssignment && from_above(b.node->at(F::k_right));
              });
        } else if (value != nullptr) {
          other = !from_above(value);
        }
        for (const Node& kid : node->kids()) {
          if (kid.named) todo.push_back(&kid);
        }
      }
    }
    return true;
  });
  return other;
}

Type SymbolTable::Call(const Type& callee, int count, const std::vector<Type>& given,
                       const Node* list) {
  switch (callee.kind) {
    case TK::kClass: {
      Class* c = callee.cls;
      if (c->module->name == "builtins" && (c->name == "type" || c->name == "super")) return {};
      // NamedTuple("P", ...) makes a class.
      if (c->module->name == "typing" && c->name == "NamedTuple") return {};
      if (MakesOther(*c)) return {};
      if (count != 1) {
        // Flag("Perm", "R W X") makes a class.
        bool enumeration = false;
        Walk({.kind = TK::kInstance, .cls = c}, [&](Class& above, const Substitution& with) {
          (void)with;
          enumeration = above.name == "Enum" && above.module->name == "enum";
          return enumeration;
        });
        if (enumeration) return {};
      }
      return Made(*c, count, given);
    }
    case TK::kEither: {
      std::vector<Type> types;
      for (const Type& one : callee.args) types.push_back(Call(one, count, given, list));
      return Either(std::move(types));
    }
    case TK::kFunction:
      break;
    default:
      return {};
  }
  std::vector<Type> types;
  Substitution with;
  Type self;
  if (!callee.args.empty()) {
    self = callee.args[0];
    if (self.is(TK::kClass)) self = {.kind = TK::kInstance, .cls = self.cls};
    Walk(self, [&](Class& c, const Substitution& here) {
      if (&c != callee.cls) return false;
      with = here;
      return true;
    });
  }
  const bool overloaded = list != nullptr && callee.functions.size() > 1;
  for (const Node* function : overloaded ? Meant(callee, list) : callee.functions) {
    const Node* returns = function->at(F::k_return_type);
    // async def: a coroutine.
    if (returns == nullptr || function->text().starts_with("async")) return {};
    for (const std::string_view decorator : DecoratorsOf(function)) {
      if (!Harmless(decorator, *callee.module)) return {};
    }
    if (count >= 0 && callee.functions.size() > 1 && !Takes(function, count, callee.bound))
      continue;
    Substitution all = with;
    SolveCall(function, callee.bound, *callee.module, given, all);
    for (const char* name : {"AnyStr", "AnyOrLiteralStr"})
      all.emplace_back(name, Either({InstanceOf("str"), InstanceOf("bytes")}));
    Type type = Substitute(FromAnnotation(returns, *callee.module), all, self);
    // A class that a function of the library makes has more: namedtuple.
    if (!type.known() || (type.is(TK::kClass) && callee.module->stub)) return {};
    types.push_back(std::move(type));
  }
  return types.empty() ? Type{} : Either(std::move(types));
}

Type SymbolTable::Awaited(const Type& callee) {
  if (!callee.is(TK::kFunction) || callee.functions.size() != 1) return {};
  const Node* function = callee.functions.front();
  if (!function->text().starts_with("async")) return {};
  for (const std::string_view decorator : DecoratorsOf(function)) {
    if (!Harmless(decorator, *callee.module)) return {};
  }
  Type self;
  Substitution with;
  if (!callee.args.empty()) self = callee.args[0];
  if (self.is(TK::kClass)) self.kind = TK::kInstance;
  Walk(self, [&](Class& c, const Substitution& here) {
    if (&c != callee.cls) return false;
    with = here;
    return true;
  });
  return Substitute(FromAnnotation(function->at(F::k_return_type), *callee.module), with, self);
}

}  // namespace pawl::monitors::python
