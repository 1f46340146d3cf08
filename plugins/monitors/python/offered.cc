// Which of the names that may stand behind a point a list shows. A stub binds names that are not
// those of its module: what it imports for its own annotations, type variables, and what only other
// versions of Python have. These may be written, but nothing proposes them.
#include <algorithm>
#include <charconv>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

// What is proposed exists in this version, 3.x, and later ones.
constexpr int kProposedVersion = 11;

// Of "sys.version_info >= (3, 12)" and the like: whether it holds. nullopt: it is no such
// condition.
std::optional<bool> HoldsForVersion(std::string_view condition) {
  constexpr std::string_view kVersion = "sys.version_info ";
  const size_t at = condition.find(kVersion);
  if (at == std::string_view::npos || condition.find(" or ") != std::string_view::npos)
    return std::nullopt;
  std::string_view rest = condition.substr(at + kVersion.size());
  const bool from = rest.starts_with(">= (3, ");
  if (!from && !rest.starts_with("< (3, ")) return std::nullopt;
  rest.remove_prefix(from ? 7 : 6);
  int version = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), version).ec != std::errc())
    return std::nullopt;
  return from ? kProposedVersion >= version : kProposedVersion < version;
}

bool InProposedVersion(const Node* node) {
  const Node* below = node;
  for (const Node* up = node->parent; up != nullptr; below = up, up = up->parent) {
    Work::Step();
    if (up->is(K::k_class_definition) || up->is(K::k_function_definition)) return true;
    if (!up->is(K::k_if_statement) && !up->is(K::k_elif_clause)) continue;
    const Node* condition = up->at(F::k_condition);
    const auto holds = condition == nullptr ? std::nullopt : HoldsForVersion(condition->text());
    if (!holds) continue;
    if (below->field == F::k_consequence && !*holds) return false;
    const bool whole = condition->text().find(" and ") == std::string_view::npos;
    if (below->field == F::k_alternative && whole && *holds) return false;
  }
  return true;
}

// import x as x, from y import x as x: that is how a stub passes a name on.
bool PassedOn(const Node* import, std::string_view name) {
  return std::ranges::any_of(import->kids(), [&](const Node& kid) {
    if (!kid.is(K::k_aliased_import)) return false;
    const Node* own = kid.at(F::k_name);
    const Node* alias = kid.at(F::k_alias);
    return alias != nullptr && own != nullptr && alias->text() == name && own->text() == name;
  });
}

// In __all__.
bool Exported(const Module& module, std::string_view name) {
  const auto all = module.scope.names.find("__all__");
  if (all == module.scope.names.end()) return false;
  const std::string quoted = "\"" + std::string(name) + "\"";
  return std::ranges::any_of(all->second, [&](const Binding& binding) {
    Work::Bytes(binding.node->text().size());
    return binding.node->text().find(quoted) != std::string_view::npos &&
           InProposedVersion(binding.node);
  });
}

bool OfferedByModule(const Module& module, const std::string& name,
                     const std::vector<Binding>& bindings) {
  const bool is_private = name.starts_with("_") && !name.starts_with("__");
  return std::ranges::any_of(bindings, [&](const Binding& binding) {
    if (binding.node == nullptr) return true;
    if (!InProposedVersion(binding.node)) return false;
    if (binding.kind == Binding::Kind::kImport && !PassedOn(binding.node, name))
      return module.submodules.contains(name) || Exported(module, name);
    if (is_private && binding.kind != Binding::Kind::kFunction) return Exported(module, name);
    return true;
  });
}

}  // namespace

void SymbolTable::Unoffered(const Type& type, std::unordered_set<std::string>& names) {
  std::vector<Type> todo = {type};
  for (size_t i = 0; i < todo.size() && i < 64; ++i) {
    const Type one = todo[i];
    if (one.is(TK::kEither)) {
      todo.insert(todo.end(), one.args.begin(), one.args.end());
    } else if (one.is(TK::kModule)) {
      Module& module = *one.module;
      if (!module.stub) continue;
      if (module.unoffered == nullptr) {
        module.unoffered = std::make_unique<std::unordered_set<std::string>>();
        module.unoffered->insert("__init__");  // the file of a package
        for (const auto& [name, bindings] : module.scope.names) {
          if (!OfferedByModule(module, name, bindings)) module.unoffered->insert(name);
        }
        for (const std::string& name : module.unlisted) {
          if (!module.scope.names.contains(name)) module.unoffered->insert(name);
        }
      }
      names.insert(module.unoffered->begin(), module.unoffered->end());
      for (const Binding& star : module.scope.stars) {
        Module* from = Find(Absolute(star, module));
        if (from != nullptr && from != &module)
          todo.push_back({.kind = TK::kModule, .module = from});
      }
    } else if (one.is(TK::kInstance) || one.is(TK::kClass)) {
      std::vector<std::string> hidden;
      std::unordered_set<std::string> shown;
      Walk(one, [&](Class& c, const Substitution& with) {
        (void)with;
        Work::Step(c.scope.names.size());
        if (!c.module->stub) return false;
        for (const auto& [name, bindings] : c.scope.names) {
          const bool now = std::ranges::any_of(bindings, [](const Binding& binding) {
            return binding.node == nullptr || InProposedVersion(binding.node);
          });
          if (now) {
            shown.insert(name);
          } else {
            hidden.push_back(name);
          }
        }
        const auto& unlisted = SetOnSelf(c);
        hidden.insert(hidden.end(), unlisted.begin(), unlisted.end());
        return false;
      });
      std::erase_if(hidden, [&](const std::string& name) { return shown.contains(name); });
      names.insert(hidden.begin(), hidden.end());
    }
  }
}

}  // namespace pawl::monitors::python
