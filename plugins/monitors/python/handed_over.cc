// Classes, objects and modules that a text gives to functions of other modules, which may set
// members on them: map_imperatively(User, table), assign(self, values). A function whose text is
// known is read. What a module does that is not found is not known.
#include <algorithm>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr int kMostHandings = 4;
constexpr size_t kMostObjects = 20;

// The byte before or behind a place that is no white space; 0: there is none.
char Before(std::string_view text, size_t at) {
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\n')) --at;
  return at == 0 ? 0 : text[at - 1];
}

char Behind(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n')) ++at;
  return at == text.size() ? 0 : text[at];
}

// The names of parameters, in their order.
std::vector<std::string_view> ParameterNames(const Node* function) {
  std::vector<std::string_view> names;
  const Node* list = function->at(F::k_parameters);
  if (list == nullptr) return names;
  for (const Node& kid : list->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    const Node* id = kid.is(K::k_identifier) ? &kid : kid.at(F::k_name);
    if (id == nullptr) id = kid.first_named();
    names.push_back(id == nullptr ? std::string_view{} : id->text());
  }
  return names;
}

// parser.parse_args(argv, namespace): what the options are set on.
bool TakesOptions(const Node* call, size_t position, std::string_view keyword) {
  const Node* function = call->at(F::k_function);
  const Node* name = function->is(K::k_attribute) ? function->at(F::k_attribute) : nullptr;
  if (name == nullptr || (keyword.empty() ? position != 1 : keyword != "namespace")) return false;
  return name->text() == "parse_args" || name->text() == "parse_known_args" ||
         name->text() == "parse_intermixed_args" || name->text() == "parse_known_intermixed_args";
}

}  // namespace

// What is called. true: it is of a module that is not found.
bool SymbolTable::Called(Module& module, const Node* function, Type& callee, int depth) {
  std::vector<std::string_view> members;
  const Node* root = function;
  while (root != nullptr && root->is(K::k_attribute)) {
    const Node* name = root->at(F::k_attribute);
    if (name == nullptr) return false;
    members.push_back(name->text());
    root = root->at(F::k_object);
  }
  bool made = false;
  if (root != nullptr && root->is(K::k_call) && depth < kMostHandings) {
    // registry().map(User)
    Type maker;
    const Node* inner = root->at(F::k_function);
    if (inner == nullptr) return false;
    if (Called(module, inner, maker, depth + 1)) return true;
    if (!maker.is(TK::kClass)) return false;
    callee = {.kind = TK::kInstance, .cls = maker.cls};
    made = true;
  } else if (root == nullptr || !root->is(K::k_identifier)) {
    return false;
  }
  if (!made) {
    const std::string name(root->text());
    const std::vector<Binding>* bindings = nullptr;
    for (const Node* up = root->parent; up != nullptr && bindings == nullptr; up = up->parent) {
      if (!up->is(K::k_function_definition)) continue;
      const Scope& scope = LocalScope(up, module);
      const auto own = scope.names.find(name);
      if (own != scope.names.end() && !scope.elsewhere.contains(name)) bindings = &own->second;
    }
    if (const auto own = module.scope.names.find(name);
        bindings == nullptr && own != module.scope.names.end()) {
      bindings = &own->second;
    }
    if (bindings == nullptr) return false;
    for (const Binding& binding : *bindings) {
      Work::Step();
      if (binding.kind == Binding::Kind::kImport) {
        const std::string from = Absolute(binding, module);
        const bool found =
            !from.empty() &&
            (Find(from) != nullptr ||
             (!binding.member.empty() && Find(from + "." + binding.member) != nullptr) ||
             (repository_ && repository_->HasFolder(from)));
        if (!found) return true;
      } else if (binding.kind == Binding::Kind::kAssignment && depth < kMostHandings) {
        // registry = Registry()
        const Node* right = binding.node->at(F::k_right);
        const Node* inner = right != nullptr && right->is(K::k_call) ? right->at(F::k_function)
                            : right != nullptr && right->is(K::k_attribute) ? right
                                                                            : nullptr;
        if (inner == nullptr) continue;
        Type maker;
        if (Called(module, inner, maker, depth + 1)) return true;
        if (maker.is(TK::kClass) && right->is(K::k_call))
          callee = {.kind = TK::kInstance, .cls = maker.cls};
        continue;
      }
      callee = TypeOfBindings({binding}, module, nullptr, 0);
    }
  }
  for (auto member = members.rbegin(); member != members.rend() && callee.known(); ++member)
    callee = Attribute(callee, *member);
  return false;
}

bool SymbolTable::FunctionGives(const Type& callee, size_t position, std::string_view keyword,
                                int depth) {
  Type function = callee;
  if (function.is(TK::kClass)) {
    if (function.cls->module->stub) return false;
    function = Attribute({.kind = TK::kInstance, .cls = function.cls}, "__init__");
  }
  if (!function.is(TK::kFunction) || function.module == nullptr || function.module->stub)
    return false;
  Module& module = *function.module;
  const Changes& changes = ChangesOf(module);
  for (const Node* one : function.functions) {
    const std::vector<std::string_view> names = ParameterNames(one);
    const size_t index = position + (function.bound ? 1 : 0);
    const std::string_view name = !keyword.empty()       ? keyword
                                  : index < names.size() ? names[index]
                                                         : std::string_view{};
    if (name.empty() || std::ranges::find(names, name) == names.end()) continue;
    const auto computes = changes.computes.find(one);
    if (computes != changes.computes.end() && computes->second.contains(std::string(name)))
      return true;
    const Node* body = one->at(F::k_body);
    if (body != nullptr && HandedOver(module, name, body->start, body->end, depth + 1)) return true;
  }
  return false;
}

// Whether a call may give one of its arguments members.
bool SymbolTable::GivesMembers(Module& module, const Node* call, const Node* argument, int depth) {
  const Node* function = call->at(F::k_function);
  const Node* list = call->at(F::k_arguments);
  if (function == nullptr || list == nullptr) return false;
  Type callee;
  if (Called(module, function, callee, 0)) return true;
  size_t position = 0;
  for (const Node& kid : list->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (&kid == argument) break;
    ++position;
  }
  std::string_view keyword;
  if (argument->is(K::k_keyword_argument) && argument->at(F::k_name) != nullptr)
    keyword = argument->at(F::k_name)->text();
  if (TakesOptions(call, position, keyword)) return true;
  return FunctionGives(callee, position, keyword, depth);
}

bool SymbolTable::HandedOver(Module& module, std::string_view name, size_t from, size_t to,
                             int depth) {
  if (depth > kMostHandings || module.tree == nullptr || name.empty()) return false;
  const std::string_view text = module.tree->text();
  to = std::min(to, text.size());
  Work::Bytes(to - std::min(from, to));
  for (size_t at = text.find(name, from); at < to; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at > 0 && NameByte(text[at - 1])) || (end < text.size() && NameByte(text[end]))) continue;
    const char before = Before(text, at);
    const char behind = Behind(text, end);
    if ((before != '(' && before != ',' && before != '=') || (behind != ',' && behind != ')'))
      continue;
    const Node* use = module.tree->Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(end));
    if (use == nullptr || !use->is(K::k_identifier) || use->parent == nullptr) continue;
    const Node* argument = use;
    if (use->parent->is(K::k_keyword_argument) && use->field == F::k_value) argument = use->parent;
    const Node* list = argument->parent;
    if (!list->is(K::k_argument_list) || list->parent == nullptr || !list->parent->is(K::k_call))
      continue;
    if (GivesMembers(module, list->parent, argument, depth)) return true;
  }
  return false;
}

// A class, self in it, and the variables that its objects are assigned to.
bool SymbolTable::ClassHandedOver(Class& c) {
  Module& module = *c.module;
  if (module.stub || module.tree == nullptr || handing_over_ || IsLibrary()) return false;
  handing_over_ = true;
  struct Done {
    bool& now;
    ~Done() { now = false; }
  } done{handing_over_};
  const std::string_view text = module.tree->text();
  if (HandedOver(module, c.name, 0, text.size()) ||
      HandedOver(module, "self", c.node->start, c.node->end)) {
    return true;
  }
  const std::string made = c.name + "(";
  std::unordered_set<std::string> objects;
  Work::Bytes(text.size());
  for (size_t at = text.find(made); at != std::string_view::npos && objects.size() < kMostObjects;
       at = text.find(made, at + 1)) {
    if (at > 0 && NameByte(text[at - 1])) continue;
    const Node* name =
        module.tree->Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(at + c.name.size()));
    const Node* call = name == nullptr ? nullptr : name->parent;
    if (call == nullptr || !call->is(K::k_call) || call->parent == nullptr) continue;
    const Node* argument = call->parent->is(K::k_keyword_argument) ? call->parent : call;
    const Node* list = argument->parent;
    if (list != nullptr && list->is(K::k_argument_list) && list->parent->is(K::k_call)) {
      if (GivesMembers(module, list->parent, argument, 0)) return true;
      continue;
    }
    const Node* left = call->parent->is(K::k_assignment) && call->field == F::k_right
                           ? call->parent->at(F::k_left)
                           : nullptr;
    if (left != nullptr && left->is(K::k_identifier)) objects.emplace(left->text());
  }
  return std::ranges::any_of(objects, [&](const std::string& object) {
    return HandedOver(module, object, 0, text.size());
  });
}

bool SymbolTable::ModuleExtended(std::string_view name, uint32_t to) {
  Module& program = *program_;
  if (program.tree == nullptr) return false;
  if (HandedOver(program, name, 0, program.tree->text().size())) return true;
  if (!ImportsUnknown()) return false;
  for (const Node& kid : program.tree->root()->kids()) {
    Work::Step();
    if (kid.start >= to) break;
    if (!kid.is(K::k_expression_statement)) continue;
    const Node* call = kid.first_named();
    const Node* function =
        call != nullptr && call->is(K::k_call) ? call->at(F::k_function) : nullptr;
    Type callee;
    if (function != nullptr && Called(program, function, callee, 0)) return true;
  }
  return false;
}

}  // namespace pawl::monitors::python
