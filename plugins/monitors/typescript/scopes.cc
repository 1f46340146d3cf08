// Scopes. A node that opens one is gathered when a name is first looked for in it: the declarations
// among its statements, and for the body of a function also every `var` in the blocks inside, since
// those are hoisted to it. Looking up a name climbs from node to node to the program and on to the
// library.
//
// A program's interface with the name of one of the library's adds its members to that one, as in
// TypeScript, and they are taken away again with the program.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

using K = Kind;
using F = Field;

std::shared_ptr<Tree> Checker::ReadLibrary(std::string library) {
  const Work file(Work::Limits(), Work::Limits().file_steps);
  Parser parser(Language::kTypeScript);
  return parser.Parse(std::move(library));
}

Checker::Checker(std::string library) : Checker(ReadLibrary(std::move(library))) {}

Checker::Checker(std::shared_ptr<Tree> library) : lib_(std::move(library)) {
  const Work file(Work::Limits(), Work::Limits().file_steps);
  const Binding binding(*this, lib_.get());
  Bind(lib_->root(), globals_);
}

Checker::~Checker() = default;

void Checker::SetProgram(std::unique_ptr<Tree> tree, uint32_t cursor) {
  for (const auto& [symbol, name] : overlay_) symbol->members.erase(name);
  overlay_.clear();
  scopes_.clear();
  types_.clear();
  calls_.clear();
  lambda_params_.clear();
  contextual_.clear();
  shapes_.clear();
  returns_.clear();
  returning_.clear();
  computing_.clear();
  calling_.clear();
  assumed_.clear();
  symbols_.clear();
  tree_ = std::move(tree);
  home_ = 0;
  Work::Bytes(tree_->text().size() / 16);
  cursor_ = cursor;
  finished_ = cursor >= tree_->text().size();
  ReadAmbient();
  script_ = files_ != nullptr && IsScript();
  // What the program adds to interfaces of the library counts for all types from here on.
  if (tree_->text().find("interface ") != std::string::npos) {
    ScopeOf(tree_->root());
    if (files_ != nullptr) Augment(tree_->root());
  }
}

Symbol* Checker::NewSymbol(std::string_view name, uint32_t flags, const Node* declaration) {
  std::deque<Symbol>& home = home_ != 0 ? lib_symbols_ : symbols_;
  Symbol& symbol = home.emplace_back();
  symbol.name = std::string(name);
  symbol.id = next_symbol_++;
  symbol.flags = flags | home_;
  if (declaration != nullptr) symbol.declarations.push_back(declaration);
  return &symbol;
}

Symbol* Checker::Declare(Scope& scope, std::string_view name, uint32_t flags,
                         const Node* declaration) {
  Symbol*& symbol = scope.names[std::string(name)];
  if (symbol == nullptr) {
    symbol = NewSymbol(name, flags, declaration);
  } else {
    symbol->flags |= flags;
    symbol->declarations.push_back(declaration);
  }
  return symbol;
}

void Checker::BindPattern(const Node* pattern, const Node* declaration, uint32_t flag,
                          Scope& scope) {
  if (pattern == nullptr) return;
  switch (pattern->kind) {
    case K::k_identifier:
    case K::k_shorthand_property_identifier_pattern: {
      Symbol* symbol = Declare(scope, pattern->text(), flag, declaration);
      symbol->values.push_back(pattern);
      return;
    }
    case K::k_assignment_pattern:
    case K::k_object_assignment_pattern:
      BindPattern(pattern->at(F::k_left), declaration, flag, scope);
      return;
    case K::k_pair_pattern:
      BindPattern(pattern->at(F::k_value), declaration, flag, scope);
      return;
    case K::k_object_pattern:
    case K::k_array_pattern:
    case K::k_rest_pattern:
      for (const Node& kid : pattern->kids()) {
        if (kid.named) BindPattern(&kid, declaration, flag, scope);
      }
      return;
    default:
      return;
  }
}

void Checker::BindVars(const Node* statement, Scope& scope) {
  switch (statement->kind) {
    case K::k_variable_declaration:
      for (const Node& kid : statement->kids()) {
        if (kid.is(K::k_variable_declarator)) {
          BindPattern(kid.at(F::k_name), &kid, kVariable, scope);
        }
      }
      return;
    case K::k_for_in_statement:
      if (const Node* kind = statement->at(F::k_kind); kind != nullptr && kind->text() == "var") {
        BindPattern(statement->at(F::k_left), statement, kVariable, scope);
      }
      break;
    case K::k_statement_block:
    case K::k_if_statement:
    case K::k_else_clause:
    case K::k_for_statement:
    case K::k_while_statement:
    case K::k_do_statement:
    case K::k_try_statement:
    case K::k_catch_clause:
    case K::k_finally_clause:
    case K::k_switch_statement:
    case K::k_switch_body:
    case K::k_switch_case:
    case K::k_switch_default:
    case K::k_labeled_statement:
    case K::k_export_statement:
    case K::k_ERROR:
      break;
    default:
      return;
  }
  for (const Node& kid : statement->kids()) {
    if (kid.named) BindVars(&kid, scope);
  }
}

void Checker::BindStatement(const Node* s, Scope& scope, bool var_only) {
  switch (s->kind) {
    case K::k_lexical_declaration: {
      const Node* kind = s->at(F::k_kind);
      const uint32_t flag = kind != nullptr && kind->text() == "const" ? kConst : kLet;
      for (const Node& kid : s->kids()) {
        if (kid.is(K::k_variable_declarator)) BindPattern(kid.at(F::k_name), &kid, flag, scope);
      }
      return;
    }
    case K::k_function_declaration:
    case K::k_generator_function_declaration:
    case K::k_function_signature:
      if (const Node* name = s->at(F::k_name)) Declare(scope, name->text(), kFunctionName, s);
      return;
    case K::k_class_declaration:
      if (const Node* name = s->at(F::k_name)) Declare(scope, name->text(), kClass, s);
      return;
    case K::k_abstract_class_declaration:
      if (const Node* name = s->at(F::k_name)) Declare(scope, name->text(), kClass | kAbstract, s);
      return;
    case K::k_interface_declaration:
      if (const Node* name = s->at(F::k_name)) Declare(scope, name->text(), kInterface, s);
      return;
    case K::k_type_alias_declaration:
      if (const Node* name = s->at(F::k_name)) Declare(scope, name->text(), kAlias, s);
      return;
    case K::k_enum_declaration:
      if (const Node* name = s->at(F::k_name)) Declare(scope, name->text(), kEnum, s);
      return;
    case K::k_internal_module:
    case K::k_module:
      if (const Node* name = s->at(F::k_name)) {
        Declare(scope, name->text(), kNamespace, s);
        // namespace A.B {}: A has more than this part says.
        if (name->is(K::k_nested_identifier)) {
          const std::string_view text = name->text();
          Declare(scope, text.substr(0, text.find('.')), kNamespace, s)->bases_open = true;
        }
      }
      return;
    case K::k_import_statement: {
      const std::function<void(const Node*)> names = [&](const Node* n) {
        if (n->is(K::k_import_specifier)) {
          const Node* name = n->at(F::k_alias) != nullptr ? n->at(F::k_alias) : n->at(F::k_name);
          if (name != nullptr) Declare(scope, name->text(), kImport, n);
        } else if (n->is(K::k_identifier)) {
          Declare(scope, n->text(), kImport, n);
        } else {
          for (const Node& kid : n->kids()) {
            if (kid.named) names(&kid);
          }
        }
      };
      for (const Node& kid : s->kids()) {
        if (kid.named && !kid.is(K::k_string)) names(&kid);
      }
      return;
    }
    case K::k_import_alias:
      if (const Node* name = s->first(K::k_identifier)) {
        Declare(scope, name->text(), kImport, s);
      }
      return;
    case K::k_export_statement:
    case K::k_ambient_declaration:
    case K::k_expression_statement:  // `namespace a {}` is an expression statement to the grammar
    case K::k_labeled_statement:
    case K::k_statement_block:
      if (s->is(K::k_statement_block) && !s->parent->is(K::k_ambient_declaration)) break;
      for (const Node& kid : s->kids()) {
        if (!kid.named) continue;
        if (kid.is(K::k_variable_declaration) && home_ == kLib) BindVars(&kid, scope);
        BindStatement(&kid, scope, var_only);
        if (s->is(K::k_ambient_declaration)) BindVars(&kid, scope);
      }
      return;
    case K::k_ERROR:
      for (const Node& kid : s->kids()) {
        if (kid.named) BindStatement(&kid, scope, var_only);
      }
      return;
    default:
      return;
  }
}

void Checker::BindTypeParams(const Node* declaration, Scope& scope) {
  const Node* list = declaration->at(F::k_type_parameters);
  if (list == nullptr) return;
  // The parts of an interface have one set of parameters, whatever each calls them.
  std::vector<Symbol*> shared;
  if (declaration->is(K::k_interface_declaration) && declaration->at(F::k_name) != nullptr) {
    Symbol* whole = Resolve(declaration->at(F::k_name)->text(), declaration->parent, kInterface);
    const Node* first = nullptr;
    if (whole != nullptr) {
      for (const Node* part : whole->declarations) {
        if (first == nullptr && part->is(K::k_interface_declaration) &&
            part->at(F::k_type_parameters) != nullptr) {
          first = part;
        }
      }
    }
    if (first != nullptr && first != declaration) {
      const Table& names = ScopeOf(first).names;
      for (const Node& kid : first->at(F::k_type_parameters)->kids()) {
        if (!kid.is(K::k_type_parameter)) continue;
        shared.push_back(names.at(std::string(kid.at(F::k_name)->text())));
      }
    }
  }
  size_t i = 0;
  for (const Node& kid : list->kids()) {
    if (!kid.is(K::k_type_parameter)) continue;
    if (const Node* name = kid.at(F::k_name)) {
      if (i < shared.size()) {
        scope.names[std::string(name->text())] = shared[i];
      } else {
        Declare(scope, name->text(), kTypeParameter, &kid);
      }
    }
    ++i;
  }
}

void Checker::Overlay(Scope& scope) {
  for (auto& [name, symbol] : scope.names) {
    if (!symbol->is(kInterface) || symbol->is(kClass)) continue;
    const auto lib = globals_.names.find(name);
    if (lib == globals_.names.end() || !lib->second->is(kInterface)) continue;
    FillMembers(symbol);
    FillMembers(lib->second);
    for (auto& [member, of] : symbol->members) {
      if (lib->second->members.emplace(member, of).second)
        overlay_.emplace_back(lib->second, member);
    }
    symbol = lib->second;
  }
}

// declare global { interface Array<T> { ... } }
void Checker::BindGlobalBlocks(const Node* program) {
  for (const Node& statement : program->kids()) {
    if (!statement.is(K::k_ambient_declaration)) continue;
    const Node* body = statement.first(K::k_statement_block);
    if (body == nullptr) continue;
    ScopeOf(body);
  }
}

void Checker::Bind(const Node* node, Scope& scope) {
  switch (node->kind) {
    case K::k_program:
      for (const Node& kid : node->kids()) {
        if (!kid.named) continue;
        BindStatement(&kid, scope, false);
        BindVars(&kid, scope);
      }
      if (node->tree == tree_.get()) {
        Overlay(scope);
        BindGlobalBlocks(node);
      }
      return;
    case K::k_statement_block:
    case K::k_class_static_block:
      for (const Node& kid : node->kids()) {
        if (kid.named) BindStatement(&kid, scope, false);
      }
      if (node->parent != nullptr && !node->parent->is(K::k_statement_block)) BindVars(node, scope);
      // declare global { ... }: its interfaces are parts of the library's.
      if (node->tree == tree_.get() && node->parent->is(K::k_ambient_declaration)) Overlay(scope);
      return;
    case K::k_switch_body:
      for (const Node& label : node->kids()) {
        if (!label.named) continue;
        for (const Node& kid : label.kids()) {
          if (kid.named) BindStatement(&kid, scope, false);
        }
      }
      return;
    case K::k_for_statement:
      if (const Node* first = node->at(F::k_initializer)) BindStatement(first, scope, false);
      return;
    case K::k_for_in_statement:
      if (const Node* kind = node->at(F::k_kind); kind != nullptr && kind->text() != "var") {
        BindPattern(node->at(F::k_left), node, kind->text() == "const" ? kConst : kLet, scope);
      }
      return;
    case K::k_catch_clause:
      BindPattern(node->at(F::k_parameter), node, kLet, scope);
      return;
    case K::k_mapped_type_clause:
      if (const Node* name = node->at(F::k_name))
        Declare(scope, name->text(), kTypeParameter, node);
      return;
    case K::k_infer_type:
      return;
    case K::k_conditional_type: {
      std::vector<const Node*> todo = {node};
      while (!todo.empty()) {
        const Node* n = todo.back();
        todo.pop_back();
        if (n->is(K::k_infer_type)) {
          if (const Node* name = n->first(K::k_type_identifier)) {
            Declare(scope, name->text(), kTypeParameter, n);
          }
        }
        const auto kids = n->kids();
        for (auto kid = kids.rbegin(); kid != kids.rend(); ++kid) {
          if (kid->named) todo.push_back(&*kid);
        }
      }
      return;
    }
    default:
      break;
  }
  // Functions, classes, interfaces, aliases, signatures.
  BindTypeParams(node, scope);
  if (const Node* list = node->at(F::k_parameters)) {
    for (const Node& kid : list->kids()) {
      if (kid.is(K::k_required_parameter) || kid.is(K::k_optional_parameter)) {
        BindPattern(kid.at(F::k_pattern), &kid, kVariable | kParameter, scope);
      }
    }
  }
  if (const Node* single = node->at(F::k_parameter);
      single != nullptr && node->is(K::k_arrow_function)) {
    BindPattern(single, single, kVariable | kParameter, scope);
  }
  if (node->is(K::k_function_expression) || node->is(K::k_generator_function)) {
    if (const Node* name = node->at(F::k_name)) {
      if (!scope.names.contains(std::string(name->text()))) {
        Declare(scope, name->text(), kFunctionName, node);
      }
    }
  }
  // A class expression; tree-sitter names it like the keyword.
  if (node->at(F::k_body) != nullptr && node->at(F::k_body)->is(K::k_class_body)) {
    if (const Node* name = node->at(F::k_name); name != nullptr &&
                                                !node->is(K::k_class_declaration) &&
                                                !node->is(K::k_abstract_class_declaration)) {
      Declare(scope, name->text(), kClass, node);
    }
  }
}

namespace {

bool OpensScope(const Node* node) {
  switch (node->kind) {
    case K::k_statement_block:
      // What a namespace declares is found in all of its parts at once.
      return node->parent == nullptr ||
             !(node->parent->is(K::k_internal_module) || node->parent->is(K::k_module));
    case K::k_program:
    case K::k_class_static_block:
    case K::k_switch_body:
    case K::k_for_statement:
    case K::k_for_in_statement:
    case K::k_catch_clause:
    case K::k_mapped_type_clause:
    case K::k_conditional_type:
    case K::k_function_declaration:
    case K::k_generator_function_declaration:
    case K::k_function_signature:
    case K::k_function_expression:
    case K::k_generator_function:
    case K::k_arrow_function:
    case K::k_method_definition:
    case K::k_method_signature:
    case K::k_abstract_method_signature:
    case K::k_call_signature:
    case K::k_construct_signature:
    case K::k_function_type:
    case K::k_constructor_type:
    case K::k_class_declaration:
    case K::k_abstract_class_declaration:
    case K::k_interface_declaration:
    case K::k_type_alias_declaration:
      return true;
    default:
      return node->named && node->at(Field::k_body) != nullptr &&
             node->at(Field::k_body)->is(K::k_class_body);
  }
}

}  // namespace

Checker::Scope& Checker::ScopeOf(const Node* node) {
  if (node == lib_->root()) return globals_;
  std::unique_ptr<Scope>& scope = (Kept(node) ? lib_scopes_ : scopes_)[node];
  if (scope == nullptr) {
    scope = std::make_unique<Scope>();
    const Binding binding(*this, node->tree);
    Scope& filled = *scope;
    Bind(node, filled);
    return filled;
  }
  return *scope;
}

namespace {

// The nearest node above that Resolve looks at. What was climbed over remembers it, so that many
// names below one another climb once.
const Node* ScopeAbove(const Node* node) {
  const Node* at = node->parent;
  size_t passed = 0;
  for (const Node* below = node; at != nullptr; below = at, at = at->parent, ++passed) {
    if (below->scope != nullptr) {
      at = below->scope;
      break;
    }
    Work::Step();
    if (at->is(K::k_internal_module) || at->is(K::k_module) || at->is(K::k_enum_body) ||
        at->is(K::k_index_signature) || OpensScope(at)) {
      break;
    }
  }
  if (at == nullptr) return nullptr;
  const Node* below = node;
  for (size_t i = 0; i <= passed && below != at; ++i, below = below->parent) below->scope = at;
  return at;
}

}  // namespace

Symbol* Checker::Global(std::string_view name) {
  const auto found = globals_.names.find(std::string(name));
  return found == globals_.names.end() ? nullptr : found->second;
}

// An import stands for what the other file declares, when that has the meaning that is asked for.
Symbol* Checker::Meant(Symbol* found, uint32_t meaning) {
  if (found->is(kImport)) {
    Symbol* target = Target(found);
    if (target != nullptr && target->is(meaning)) return target;
  }
  return found->is(meaning) ? found : nullptr;
}

Symbol* Checker::Resolve(std::string_view name, const Node* node, uint32_t meaning) {
  const Work::Deeper deeper;
  const std::string key(name);
  for (const Node* at = node; at != nullptr; at = ScopeAbove(at)) {
    Work::Step();
    if (at->is(K::k_internal_module) || at->is(K::k_module)) {
      // Everything exported from any part of the namespace.
      if (Symbol* space = Resolve(at->at(F::k_name)->text(), at->parent, kNamespace)) {
        FillMembers(space);
        const auto found = space->statics.find(key);
        if (found != space->statics.end()) {
          if (Symbol* meant = Meant(found->second, meaning)) return meant;
        }
      }
      continue;
    }
    if (at->is(K::k_enum_body)) {
      // Members of an enum see each other.
      const Node* owner = at->parent->at(F::k_name);
      Symbol* whole = owner == nullptr ? nullptr : Resolve(owner->text(), at->parent, kEnum);
      if (whole == nullptr || !(meaning & kEnumMember)) continue;
      FillMembers(whole);
      const auto found = whole->statics.find(key);
      if (found != whole->statics.end() && found->second->is(kEnumMember)) return found->second;
      continue;
    }
    // { [K in Keys]: Value }: the value stands next to the clause that names K.
    const Node* opens = at->is(K::k_index_signature) ? at->first(K::k_mapped_type_clause)
                        : OpensScope(at)             ? at
                                                     : nullptr;
    if (opens == nullptr) continue;
    Scope& scope = ScopeOf(opens);
    const auto found = scope.names.find(key);
    if (found == scope.names.end()) continue;
    if (Symbol* meant = Meant(found->second, meaning)) return meant;
    if (found->second->is(kImport)) return nullptr;  // it hides what is further out
  }
  const auto found = globals_.names.find(key);
  return found != globals_.names.end() && found->second->is(meaning) ? found->second : nullptr;
}

void Checker::NamesAt(const Node* node, uint32_t meaning, std::vector<std::string>& names) {
  const auto add = [&](const Table& table) {
    for (const auto& [name, symbol] : table) {
      Work::Step();
      if (symbol->is(meaning)) names.push_back(name);
    }
  };
  for (const Node* at = node; at != nullptr; at = at->parent) {
    Work::Step();
    if (at->is(K::k_internal_module) || at->is(K::k_module)) {
      if (Symbol* space = Resolve(at->at(F::k_name)->text(), at->parent, kNamespace)) {
        FillMembers(space);
        add(space->statics);
      }
    } else if (at->is(K::k_enum_body)) {
      const Node* owner = at->parent->at(F::k_name);
      Symbol* whole = owner == nullptr ? nullptr : Resolve(owner->text(), at->parent, kEnum);
      if (whole == nullptr) continue;
      FillMembers(whole);
      add(whole->statics);
    } else if (OpensScope(at)) {
      add(ScopeOf(at).names);
    }
  }
  add(globals_.names);
}

}  // namespace pawl::monitors::ts
