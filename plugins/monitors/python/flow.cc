// What variables are, by the assignments that may have run before they are used.
#include <algorithm>

#include "plugins/monitors/python/typer.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

const Node* BlockOf(const Node* node) {
  const Node* up = node->parent;
  while (up != nullptr && !up->is(K::k_block) && up->parent != nullptr) {
    Work::Step();
    up = up->parent;
  }
  return up;
}

}  // namespace

// A parameter that is assigned again: what it says it takes, and what it is given.
Type Typer::FlowOver(Type declared, const std::vector<Binding>& all, const Node* use,
                     const Node* container) {
  if (unfinished_) {
    // In a loop a later line may assign.
    for (const Node* up = use->parent; up != nullptr && up != container; up = up->parent) {
      if (up->is(K::k_for_statement) || up->is(K::k_while_statement)) return {};
    }
  }
  std::vector<Type> types = {std::move(declared)};
  for (const Binding& binding : all) {
    if (binding.kind == Binding::Kind::kOther) return {};
    if (unfinished_ && binding.node->start >= use->start) continue;
    if (Inside(use, binding.node) && binding.kind == Binding::Kind::kAssignment) continue;
    Type type = BindingType(binding);
    if (!type.known()) return {};
    types.push_back(std::move(type));
  }
  return Either(std::move(types));
}

// The type that the annotations of a variable say; unknown: there are none, or several.
Type Typer::DeclaredBy(const std::vector<Binding>& all) {
  const Node* annotation = nullptr;
  for (const Binding& binding : all) {
    if (binding.kind != Binding::Kind::kAssignment) return {};
    const Node* own = binding.node->at(F::k_type);
    if (own == nullptr) continue;
    if (annotation != nullptr && annotation->text() != own->text()) return {};
    annotation = own;
  }
  if (annotation == nullptr) return {};
  Type declared = world_.FromAnnotation(annotation, world_.program());
  if (!declared.known()) return {};
  // pet: Animal = Dog(): what is assigned may be of a class below.
  std::vector<Type> types = {declared};
  for (const Binding& binding : all) {
    Type value = world_.Plainly(binding.node->at(F::k_right), declared, world_.program());
    if (value.known()) types.push_back(std::move(value));
  }
  return Either(std::move(types));
}

Type Typer::Flow(const std::vector<Binding>& all, const Node* use, const Node* container) {
  const uint32_t cursor = world_.cursor();
  Work::Step(all.size());
  if (Type declared = DeclaredBy(all); declared.known()) return declared;
  std::vector<const Binding*> bindings;
  for (const Binding& binding : all) {
    if (binding.kind == Binding::Kind::kOther) return {};
    // for x in x: and x = x.y do not bind before they are over.
    const bool header =
        binding.kind == Binding::Kind::kAssignment ||
        (binding.kind == Binding::Kind::kUnpacked && binding.node->is(K::k_assignment));
    if (header && Inside(use, binding.node)) continue;
    if (unfinished_ && header && binding.node->start <= cursor && cursor <= binding.node->end)
      continue;
    bindings.push_back(&binding);
  }
  const Binding* last = nullptr;
  for (const Binding* binding : bindings) {
    if (binding->node->start >= use->start) continue;
    const Node* block = binding->node->is(K::k_for_statement) ? binding->node->at(F::k_body)
                        : binding->kind == Binding::Kind::kWith
                            ? binding->node->Enclosing(K::k_with_statement)->at(F::k_body)
                        : binding->kind == Binding::Kind::kExcept
                            ? binding->node->Enclosing(K::k_except_clause)
                            : BlockOf(binding->node);
    if (block != nullptr && Inside(use, block) &&
        (last == nullptr || last->node->start < binding->node->start)) {
      last = binding;
    }
  }
  bool escapes = last == nullptr;  // a loop around the use has not the assignment in it
  bool in_loop = false;
  for (const Node* up = use->parent; up != nullptr && up != container; up = up->parent) {
    if (!up->is(K::k_for_statement) && !up->is(K::k_while_statement)) continue;
    in_loop = true;
    if (last != nullptr && !Inside(last->node, up)) escapes = true;
  }
  if (escapes && in_loop && unfinished_) return {};
  std::vector<Type> types;
  for (const Binding* binding : bindings) {
    const uint32_t at = binding->node->start;
    if (!(escapes && in_loop)) {
      if (last != nullptr && at < last->node->start) continue;
      if (at > use->start) continue;
    }
    Type type = BindingType(*binding);
    if (!type.known()) return {};
    types.push_back(std::move(type));
  }
  return Either(std::move(types));
}

// from x import *, behind the last binding of a name, may bind it again.
bool Typer::ReboundByStar(const std::vector<Binding>& bindings, const std::string& name,
                          bool in_function) {
  Module& program = world_.program();
  for (const Binding& star : program.scope.stars) {
    const bool behind = std::ranges::all_of(
        bindings, [&](const Binding& b) { return b.node->start < star.node->start; });
    if (!behind && !in_function) continue;
    if (!behind && std::ranges::any_of(bindings, [&](const Binding& b) {
          return b.node->start > star.node->start;
        })) {
      continue;
    }
    const auto names = world_.NamesBehindStar(star);
    if (!names || std::ranges::binary_search(*names, name)) return true;
  }
  return false;
}

// The type of a member, as declared or as the text gives it.
Type Typer::TypeOfMember(const Type& of, std::string_view name) {
  if (of.is(TK::kEither)) {
    std::vector<Type> types;
    for (const Type& one : of.args) types.push_back(TypeOfMember(one, name));
    return Either(std::move(types));
  }
  const Changes& changes = world_.ChangesOf(world_.program());
  if (changes.all_replaced || changes.replaced.contains(std::string(name))) return {};
  const bool own = of.is(TK::kInstance) && of.cls->module == &world_.program();
  // sys.stdout = io.StringIO(): it is another thing now.
  const std::string text(name);
  const bool library = of.is(TK::kModule) || ((of.is(TK::kInstance) || of.is(TK::kClass)) && !own);
  if (library && (changes.set.contains(text) || changes.given.contains(text) ||
                  (of.is(TK::kModule) && changes.patched.contains(of.module->name)))) {
    return {};
  }
  if (of.is(TK::kModule) && !of.module->stub && PatchedElsewhere(*of.module, text)) return {};
  if (of.is(TK::kModule) && of.module->name == "sys" && name.starts_with("std") && Redirected())
    return {};
  Type type = WithOverrides(of, name, world_.Attribute(of, name));
  if (type.is(TK::kFunction) && (changes.set.contains(text) || changes.given.contains(text)))
    return {};
  if (of.is(TK::kInstance) && (place_ || own)) {
    Type assigned = TypeOfOwnAttribute(*of.cls, name);
    if (!type.known()) return place_ ? assigned : Type{};
    if (assigned.known() && own && !type.is(TK::kFunction)) {
      // What is assigned adds classes; what it says of elements is less than what is declared.
      std::vector<Type> types = {type};
      const std::vector<Type> declared = type.is(TK::kEither) ? type.args : types;
      for (const Type& one :
           assigned.is(TK::kEither) ? assigned.args : std::vector<Type>{assigned}) {
        const bool same = std::ranges::any_of(
            declared, [&](const Type& d) { return d.kind == one.kind && d.cls == one.cls; });
        if (!same) types.push_back(one);
      }
      return Either(std::move(types));
    }
  }
  return type;
}

// with redirect_stdout(io.StringIO()), @patch("sys.stdout")
bool Typer::Redirected() const {
  const std::string& text = world_.program().tree->text();
  Work::Bytes(text.size());
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  return has("redirect_std") ||
         (has("patch") && (has("\"sys.std") || has("'sys.std") || has("(sys, ")));
}

}  // namespace pawl::monitors::python
