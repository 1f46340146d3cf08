// Imports. A name that is imported stands for a declaration of another file, which is looked up
// there when its type or members are first asked for, so a file is read only when it is needed and
// files may import each other. What a file exports is a table, filled once from its export
// statements; `export * from` is followed name by name.
//
// Symbols and types of other files live as long as those of the library do. The file that is being
// written is never read from disk: what another file takes from it is open.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

namespace {

constexpr int kMaxImports = 40;  // in each other

std::string Unquoted(const Node* string) {
  const std::string_view text = string->text();
  return text.size() < 2 ? "" : std::string(text.substr(1, text.size() - 2));
}

bool HasToken(const Node* node, std::string_view token) {
  return std::any_of(node->kids().begin(), node->kids().end(),
                     [&](const Node& kid) { return !kid.named && kid.text() == token; });
}

// The name and the other name of `a as b`; a keyword counts as a name.
std::pair<std::string, std::string> NamesOf(const Node* specifier) {
  const Node* name = specifier->at(F::k_name);
  const Node* alias = specifier->at(F::k_alias);
  const auto text = [](const Node* node) {
    if (node == nullptr) return std::string("default");
    return node->is(K::k_string) ? Unquoted(node) : std::string(node->text());
  };
  std::string first = text(name);
  if (alias == nullptr) return {first, first};
  return {std::move(first), text(alias)};
}

void PatternNames(const Node* pattern, std::vector<std::string_view>& names) {
  std::vector<const Node*> todo = {pattern};
  while (!todo.empty()) {
    const Node* at = todo.back();
    todo.pop_back();
    if (at->is(K::k_identifier) || at->is(K::k_shorthand_property_identifier_pattern)) {
      names.push_back(at->text());
      continue;
    }
    for (const Node& kid : at->kids()) {
      if (kid.named && kid.field != F::k_right && kid.field != F::k_key) todo.push_back(&kid);
    }
  }
}

}  // namespace

void DeclaredNames(const Node* declaration, std::vector<std::string_view>& names) {
  switch (declaration->kind) {
    case K::k_lexical_declaration:
    case K::k_variable_declaration:
      for (const Node& kid : declaration->kids()) {
        if (kid.is(K::k_variable_declarator) && kid.at(F::k_name) != nullptr)
          PatternNames(kid.at(F::k_name), names);
      }
      return;
    case K::k_ambient_declaration:
    case K::k_expression_statement:
      for (const Node& kid : declaration->kids()) {
        if (kid.named) DeclaredNames(&kid, names);
      }
      return;
    case K::k_import_alias:
      if (const Node* name = declaration->first(K::k_identifier)) names.push_back(name->text());
      return;
    default:
      if (const Node* name = declaration->at(F::k_name)) names.push_back(name->text());
      return;
  }
}

bool Checker::Ambient(const Node* node) const {
  if (node->tree == lib_.get()) return true;
  const auto text = module_texts_.find(node->tree);
  return text != module_texts_.end() && text->second->declarations;
}

// Whether a declaration of another file may have lost a part: it has a syntax error, or stands
// next to one.
bool Checker::BadlyRead(const Node* declaration) {
  if (!Kept(declaration) || !declaration->tree->root()->broken()) return false;
  const Node* statement = declaration;
  while (statement->parent != nullptr && !statement->parent->is(K::k_program) &&
         !statement->parent->is(K::k_statement_block)) {
    if (statement->is(K::k_ERROR)) return true;
    statement = statement->parent;
  }
  if (statement->broken() || statement->parent == nullptr) return true;
  const auto kids = statement->parent->kids();
  const auto at = static_cast<size_t>(statement - kids.data());
  return statement->parent->is(K::k_ERROR) || (at > 0 && kids[at - 1].is(K::k_ERROR)) ||
         (at + 1 < kids.size() && kids[at + 1].is(K::k_ERROR));
}

Symbol* Checker::Target(Symbol* import) {
  if (!import->is(kImport)) return import;
  if (import->target_known) return import->target;
  if (import->finding_target || files_ == nullptr || depth_ > kMaxImports) return nullptr;
  const Work::Deeper deeper;
  const Nested nested(depth_);
  Work::Step();
  import->finding_target = true;
  Symbol* found = FindTarget(import);
  import->finding_target = false;
  import->target_known = true;
  import->target = found == import || (found != nullptr && found->is(kImport)) ? nullptr : found;
  return import->target;
}

Symbol* Checker::FindTarget(const Symbol* import) {
  // Declared here as well: the parts are not put together.
  constexpr uint32_t kHomes = kLib | kForeign;
  if ((import->flags & ~kHomes) != kImport || import->declarations.size() != 1) return nullptr;
  const Node* d = import->declarations.front();
  const Node* statement = d;
  while (statement != nullptr && !statement->is(K::k_import_statement) &&
         !statement->is(K::k_export_statement) && !statement->is(K::k_import_alias)) {
    statement = statement->parent;
  }
  if (statement == nullptr) return nullptr;
  if (statement->is(K::k_import_alias)) return TargetOfAlias(statement);
  const Node* source = statement->at(F::k_source);
  const Node* clause = d->parent;
  if (clause != nullptr && clause->is(K::k_import_require_clause))
    source = clause->first(K::k_string);
  if (source == nullptr) return nullptr;
  Module* module = ModuleNamed(source);
  if (module == nullptr) return nullptr;
  if (d->is(K::k_import_specifier) || d->is(K::k_export_specifier))
    return ExportOf(*module, NamesOf(d).first);
  if (d->is(K::k_namespace_export)) return SpaceOf(*module);
  if (clause == nullptr) return nullptr;
  if (clause->is(K::k_namespace_import) || clause->is(K::k_import_require_clause))
    return SpaceOf(*module);
  return ExportOf(*module, "default");
}

// import a = b.c
Symbol* Checker::TargetOfAlias(const Node* alias) {
  const Node* name = alias->first(K::k_identifier);
  const Node* path = nullptr;
  for (const Node& kid : alias->kids()) {
    if (kid.named && &kid != name && !kid.is(K::k_comment)) path = &kid;
  }
  if (path == nullptr || alias->parent == nullptr) return nullptr;
  const std::string text(path->text());
  Symbol* at = nullptr;
  for (size_t from = 0; from <= text.size();) {
    const size_t dot = std::min(text.find('.', from), text.size());
    const std::string part = text.substr(from, dot - from);
    from = dot + 1;
    if (at == nullptr) {
      if (name != nullptr && part == name->text()) return nullptr;
      at = Resolve(part, alias->parent, kValue | kTypeName);
    } else {
      FillMembers(at);
      const auto found = at->statics.find(part);
      at = found == at->statics.end() ? nullptr : Target(found->second);
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

Checker::Module* Checker::ModuleNamed(const Node* source) {
  std::string from = path_;
  if (source->tree != tree_.get()) {
    const auto text = module_texts_.find(source->tree);
    if (text == module_texts_.end()) return nullptr;
    from = text->second->path;
  }
  const std::string specifier = Unquoted(source);
  const auto path = files_->Find(specifier, from);
  if (!path || *path == path_) return nullptr;
  const ModuleText* text = files_->Read(*path);
  return text == nullptr ? nullptr : ModuleIn(*text, specifier);
}

Checker::Module* Checker::ModuleIn(const ModuleText& text, const std::string& specifier) {
  const Node* root = text.tree->root();
  AugmentBy(text);
  const bool has_exports =
      std::any_of(root->kids().begin(), root->kids().end(), [](const Node& kid) {
        return kid.is(K::k_export_statement) || kid.is(K::k_import_statement);
      });
  std::string key = text.path;
  const Node* container = root;
  const Table* locals = &ScopeOf(root).names;
  if (!has_exports) {
    // A file of ambient modules: declare module "fs" { ... }
    Symbol* ambient = nullptr;
    std::string bare = specifier.starts_with("node:") ? specifier.substr(5) : specifier;
    for (const std::string& name :
         {"'" + bare + "'", '"' + bare + '"', "'node:" + bare + "'", "\"node:" + bare + '"'}) {
      const auto found = locals->find(name);
      if (ambient == nullptr && found != locals->end() && found->second->declarations.size() == 1)
        ambient = found->second;
    }
    if (ambient == nullptr) return nullptr;
    container = ambient->declarations.front()->at(F::k_body);
    if (container == nullptr) return nullptr;
    FillMembers(ambient);
    locals = &ambient->statics;
    key += "\n" + ambient->name;
  }
  auto& module = modules_[key];
  if (module == nullptr) {
    module = std::make_unique<Module>();
    module->container = container;
    module->locals = locals;
    module->declarations = text.declarations;
    module->open = root->broken();
    FillExports(*module);
  }
  return module.get();
}

void Checker::FillExports(Module& module) {
  const Binding binding(*this, module.container->tree);
  bool explicit_only = false;
  for (const Node& kid : module.container->kids()) {
    if (!kid.is(K::k_export_statement)) continue;
    Work::Step();
    FillExport(module, &kid);
    explicit_only = explicit_only || kid.first(K::k_export_clause) != nullptr ||
                    HasToken(&kid, "=") || HasToken(&kid, "default");
  }
  // In declarations everything is exported, unless something says what is.
  if (module.declarations && !explicit_only) {
    for (const auto& [name, symbol] : *module.locals) {
      if (!symbol->is(kImport)) module.exports.emplace(name, symbol);
    }
  }
}

Symbol* Checker::LocalOf(const Module& module, std::string_view name) {
  const auto found = module.locals->find(std::string(name));
  return found == module.locals->end() ? nullptr : found->second;
}

void Checker::FillExport(Module& module, const Node* statement) {
  if (HasToken(statement, "default") && statement->first(K::k_export_clause) == nullptr)
    return ExportDefault(module, statement);
  if (const Node* clause = statement->first(K::k_export_clause)) {
    const bool from = statement->at(F::k_source) != nullptr;
    for (const Node& kid : clause->kids()) {
      if (!kid.is(K::k_export_specifier)) continue;
      const auto [name, as] = NamesOf(&kid);
      Symbol* symbol = from ? NewSymbol(as, kImport, &kid) : LocalOf(module, name);
      if (symbol == nullptr) module.open = true;
      if (symbol != nullptr) module.exports[as] = symbol;
    }
    return;
  }
  if (const Node* all = statement->first(K::k_namespace_export)) {
    std::vector<std::string_view> names;
    PatternNames(all, names);
    for (const std::string_view name : names)
      module.exports[std::string(name)] = NewSymbol(name, kImport, all);
    return;
  }
  if (HasToken(statement, "*")) {
    module.stars.push_back(statement);
    return;
  }
  if (HasToken(statement, "=")) {
    const Node* value = statement->first_named();
    module.open = true;
    if (value != nullptr && value->is(K::k_identifier)) {
      module.assigned = LocalOf(module, value->text());
      module.open = module.assigned == nullptr;
    }
    return;
  }
  if (const Node* declaration = statement->at(F::k_declaration)) {
    std::vector<std::string_view> names;
    DeclaredNames(declaration, names);
    for (const std::string_view name : names) {
      if (Symbol* symbol = LocalOf(module, name)) module.exports[std::string(name)] = symbol;
    }
    return;
  }
  if (!HasToken(statement, "namespace")) module.open = true;  // export import a = b
}

void Checker::ExportDefault(Module& module, const Node* statement) {
  const Node* declared = statement->at(F::k_declaration);
  const Node* value = statement->at(F::k_value);
  Symbol* symbol = nullptr;
  if (declared != nullptr) {
    std::vector<std::string_view> names;
    DeclaredNames(declared, names);
    if (!names.empty()) symbol = LocalOf(module, names.front());
  } else if (value != nullptr && value->is(K::k_identifier)) {
    symbol = LocalOf(module, value->text());
  } else if (value != nullptr && value->at(F::k_body) != nullptr &&
             value->at(F::k_body)->is(K::k_class_body)) {
    symbol = NewSymbol("default", kClass, value);
  } else if (value != nullptr) {
    symbol = NewSymbol("default", kConst, value);
    symbol->expression = value;
  }
  if (symbol != nullptr) module.exports["default"] = symbol;
}

// What the module exports under this name; nullptr: nothing, or it is not known.
Symbol* Checker::ExportOf(Module& module, const std::string& name) {
  Work::Step();
  const auto found = module.exports.find(name);
  if (found != module.exports.end()) return Target(found->second);
  if (module.assigned != nullptr) {
    Symbol* assigned = Target(module.assigned);
    if (assigned == nullptr || name == "default") return assigned;
    FillMembers(assigned);
    const auto member = assigned->statics.find(name);
    return member == assigned->statics.end() ? nullptr : Target(member->second);
  }
  if (name == "default") return module.declarations ? SpaceOf(module) : nullptr;
  if (module.searching) return nullptr;
  module.searching = true;
  Symbol* symbol = nullptr;
  for (const Node* star : module.stars) {
    const Node* source = star->at(F::k_source);
    Module* from = source == nullptr ? nullptr : ModuleNamed(source);
    if (from != nullptr) symbol = ExportOf(*from, name);
    if (symbol != nullptr) break;
  }
  module.searching = false;
  return symbol;
}

// False: there may be more.
bool Checker::AddExports(Module& module, Table& names) {
  if (module.searching) return true;
  Work::Step(1 + module.exports.size());
  for (const auto& [name, symbol] : module.exports) names.emplace(name, symbol);
  bool complete = !module.open && module.assigned == nullptr;
  module.searching = true;
  for (const Node* star : module.stars) {
    const Node* source = star->at(F::k_source);
    Module* from = source == nullptr ? nullptr : ModuleNamed(source);
    if (from == nullptr || !AddExports(*from, names)) complete = false;
  }
  module.searching = false;
  return complete;
}

// import * as all from "module"
Symbol* Checker::SpaceOf(Module& module) {
  if (module.assigned != nullptr) return Target(module.assigned);
  if (module.space != nullptr) return module.space;
  const Binding binding(*this, module.container->tree);
  Symbol* space = NewSymbol("*", kNamespace, nullptr);
  module.space = space;
  space->members_known = true;
  space->bases_open = !AddExports(module, space->statics);
  return space;
}

}  // namespace pawl::monitors::ts
