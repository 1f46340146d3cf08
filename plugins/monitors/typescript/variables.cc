// Types of variables: what a declaration says or its initializer has, and of a pattern the part
// that a name takes.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

TypeRef Checker::TypeOfSymbol(Symbol* symbol) {
  if (symbol->type != nullptr) return symbol->type;
  if (symbol->resolving) return pool_.open;
  symbol->resolving = true;
  TypeRef type = pool_.open;
  if (symbol->is(kImport)) {
    Symbol* target = Target(symbol);
    if (target != nullptr && !target->is(kImport)) type = TypeOfSymbol(target);
  } else if (symbol->is(kForeign) &&
             std::any_of(symbol->declarations.begin(), symbol->declarations.end(),
                         [&](const Node* d) { return BadlyRead(d); })) {
    type = pool_.open;
  } else if (symbol->expression != nullptr) {
    type = InitializerType(symbol->expression, true);
  } else if (symbol->is(kFunctionName) && !symbol->is(kClass | kVariable | kLet | kConst)) {
    Symbol functions;
    for (const Node* d : symbol->declarations) {
      if (!d->is(K::k_interface_declaration) && !d->is(K::k_internal_module))
        functions.declarations.push_back(d);
    }
    type = functions.declarations.empty() || symbol->is(kNamespace)
               ? pool_.open
               : pool_.Function(SignaturesOf(&functions));
  } else if (symbol->is(kVariable | kLet | kConst | kParameter) && !symbol->values.empty()) {
    type = TypeOfVariable(symbol);
  } else if (symbol->is(kEnumMember)) {
    type = pool_.EnumMember(symbol);
  } else if (symbol->is(kClass | kEnum)) {
    type = pool_.Static(symbol);
  } else if (symbol->is(kNamespace)) {
    type = pool_.Static(symbol);
  } else if (symbol->is(kMethod)) {
    type = pool_.Function(SignaturesOf(symbol));
  } else if (symbol->is(kGetter)) {
    for (const Node* d : symbol->declarations) {
      for (const Node& kid : d->kids()) {
        if (kid.field == F::k_name) break;
        if (kid.text() == "get") type = ResultOf(SignatureOf(d));
      }
    }
  } else if (symbol->is(kSetter)) {
    const Signature* setter = SignatureOf(symbol->declarations.front());
    type = setter->params.empty() ? pool_.open : setter->params[0].type;
  } else if (symbol->is(kProperty)) {
    const Node* d = symbol->declarations.front();
    if (const Node* annotation = d->at(F::k_type)) {
      type = TypeFromNode(annotation);
    } else if (const Node* value = d->at(F::k_value)) {
      type = InitializerType(value, symbol->is(kReadonly));
    } else if (d->is(K::k_property_signature)) {
      type = pool_.any;
    }
  }
  symbol->resolving = false;
  symbol->type = type;
  return type;
}

TypeRef Checker::InitializerType(const Node* value, bool constant) {
  if (Unfinished(value)) return pool_.open;
  const TypeRef type = TypeOf(value);
  if (type->is(T::kNull) || type->is(T::kUndefined))
    return pool_.open;  // grows with what is assigned
  return constant ? pool_.Regular(type) : pool_.Widen(type);
}

TypeRef Checker::TypeOfVariable(Symbol* symbol) {
  const Node* name = symbol->values.front();
  if (symbol->values.size() > 1) {
    // `var` twice: the annotations have to agree, the first one is taken if there is one.
    for (const Node* other : symbol->values) {
      if (other->parent->at(F::k_type) != nullptr) name = other;
    }
  }
  return TypeOfPattern(name);
}

namespace {

size_t CommasBefore(const Node* pattern, const Node* part) {
  size_t commas = 0;
  for (const Node& kid : pattern->kids()) {
    if (&kid == part) break;
    if (kid.text() == ",") ++commas;
  }
  return commas;
}

}  // namespace

namespace {

// What makes the array grow: the values, and the node that holds them.
struct Growth {
  const Node* whole = nullptr;
  std::vector<const Node*> values;
};

// nullopt: what becomes of the array is not followed. No values: the reference only reads.
std::optional<Growth> GrowthBy(const Node* reference) {
  const Node* parent = reference->parent;
  const Node* above = parent == nullptr ? nullptr : parent->parent;
  if (above == nullptr) return Growth{};
  if (parent->is(K::k_assignment_expression) && reference->field == F::k_left) return std::nullopt;
  if (parent->is(K::k_augmented_assignment_expression) || parent->is(K::k_update_expression))
    return std::nullopt;
  if (reference->field != F::k_object) return Growth{};
  if (parent->is(K::k_subscript_expression)) {
    if (!above->is(K::k_assignment_expression) || parent->field != F::k_left) return Growth{};
    return Growth{.whole = above, .values = {above->at(F::k_right)}};
  }
  const Node* method = parent->at(F::k_property);
  const Node* list = above->is(K::k_call_expression) && parent->field == F::k_function
                         ? above->at(F::k_arguments)
                         : nullptr;
  if (method == nullptr || list == nullptr ||
      (method->text() != "push" && method->text() != "unshift")) {
    return Growth{};
  }
  Growth growth{.whole = above};
  for (const Node& kid : list->kids()) {
    if (kid.named && !kid.is(K::k_comment)) growth.values.push_back(&kid);
  }
  return growth;
}

bool Names(const Node* node, std::string_view name) {
  std::vector<const Node*> todo = {node};
  while (!todo.empty()) {
    Work::Step();
    const Node* at = todo.back();
    todo.pop_back();
    if (at->is(K::k_identifier) && at->text() == name) return true;
    for (const Node& kid : at->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return false;
}

}  // namespace

// `const found = []` in a finished text is an array of what is pushed to it or assigned to its
// elements; nullptr: not followed, because a function inside uses it, say, where TypeScript would
// not know its type either.
TypeRef Checker::EvolvedArray(const Node* name) {
  if (!finished_ || name->tree != tree_.get()) return nullptr;
  Symbol* symbol = Resolve(name->text(), name, kVariable | kLet | kConst);
  if (symbol == nullptr || symbol->values.size() != 1 || symbol->is(kImport)) return nullptr;
  const auto home_of = [](const Node* node) {
    while (node->parent != nullptr && !IsFunction(node)) node = node->parent;
    return node;
  };
  const Node* home = home_of(name);
  std::vector<Growth> growths;
  std::vector<const Node*> todo = {home};
  while (!todo.empty()) {
    Work::Step();
    const Node* at = todo.back();
    todo.pop_back();
    const bool named = at->is(K::k_identifier) || at->is(K::k_shorthand_property_identifier);
    if (named && at != name && at->text() == name->text() &&
        Resolve(at->text(), at, kVariable | kLet | kConst) == symbol) {
      auto growth = home_of(at) == home ? GrowthBy(at) : std::nullopt;
      if (!growth) return nullptr;
      if (!growth->values.empty()) growths.push_back(std::move(*growth));
    }
    for (const Node& kid : at->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  // First what does not speak of the array itself.
  TypeRef element = pool_.never;
  for (const bool itself : {false, true}) {
    std::vector<TypeRef> parts = {element};
    for (const Growth& growth : growths) {
      for (const Node* value : growth.values) {
        if (value == nullptr) return nullptr;
        if (Names(value, name->text()) != itself) continue;
        const bool spread = value->is(K::k_spread_element);
        const TypeRef type =
            spread ? IterationType(TypeOf(value->first_named())) : pool_.Base(TypeOf(value));
        if (type->open()) return nullptr;
        parts.push_back(type);
      }
    }
    const TypeRef together = pool_.Union(std::move(parts));
    if (itself && together != element) return nullptr;
    element = together;
    symbol->type = ArrayOf(element);
  }
  symbol->type = nullptr;
  for (const Growth& growth : growths) Forget(growth.whole);
  return element->is(T::kNever) ? nullptr : ArrayOf(element);
}

TypeRef Checker::TypeOfDeclared(const Node* name) {
  const Node* declarator = name->parent;
  if (const Node* annotation = declarator->at(F::k_type)) return TypeFromNode(annotation);
  const Node* value = declarator->at(F::k_value);
  if (value == nullptr) return pool_.open;
  const Node* kind = declarator->parent == nullptr ? nullptr : declarator->parent->at(F::k_kind);
  const bool constant = kind != nullptr && kind->text() == "const";
  const TypeRef type = InitializerType(value, constant);
  // `const found = []` grows by what is pushed.
  if (type->is(T::kRef) && type->parts.size() == 1 && type->parts[0]->is(T::kNever) &&
      value->is(K::k_array) && name->is(K::k_identifier)) {
    const TypeRef evolved = EvolvedArray(name);
    return evolved != nullptr ? evolved : ArrayOf(pool_.open);
  }
  return type;
}

// `...rest` as a parameter, or in the pattern of an array.
TypeRef Checker::TypeOfRest(const Node* rest) {
  const Node* above = rest->parent;
  if (above == nullptr) return pool_.open;
  if (above->is(K::k_required_parameter) || above->is(K::k_optional_parameter))
    return TypeOfParameter(above);
  if (!above->is(K::k_array_pattern)) return pool_.open;
  const TypeRef of = TypeOfPattern(above);
  if (!of->is(T::kTuple)) return ArrayOf(IterationType(of));
  const size_t skipped = std::min(CommasBefore(above, rest), of->parts.size());
  return ArrayOf(pool_.Union(
      std::vector<TypeRef>(of->parts.begin() + static_cast<ptrdiff_t>(skipped), of->parts.end())));
}

TypeRef Checker::TypeOfPatternElement(const Node* name) {
  const TypeRef of = TypeOfPattern(name->parent);
  const size_t index = CommasBefore(name->parent, name);
  std::vector<TypeRef> parts;
  TypePool::Each(of, [&](TypeRef part) {
    if (part->is(T::kTuple)) {
      parts.push_back(index < part->parts.size() ? part->parts[index]
                      : part->rest               ? part->parts.back()
                                                 : pool_.undefined);
    } else {
      parts.push_back(IterationType(part));
    }
  });
  return pool_.Union(std::move(parts));
}

// A part of a pattern with a default value.
TypeRef Checker::TypeOfDefaulted(const Node* name) {
  const Node* parent = name->parent;
  const Node* standard = parent->at(F::k_right);
  TypeRef of = pool_.open;
  if (parent->is(K::k_object_assignment_pattern)) {
    const TypeRef whole = TypeOfPattern(parent->parent);
    const auto member = Member(whole, name->text());
    if (member) of = TypeOfProperty(*member);
  } else {
    of = TypeOfPattern(parent);
  }
  if (of->open()) return of;
  std::vector<TypeRef> parts;
  TypePool::Each(of, [&](TypeRef part) {
    if (!part->is(T::kUndefined)) parts.push_back(part);
  });
  parts.push_back(pool_.Widen(TypeOf(standard)));
  return pool_.Union(std::move(parts));
}

// The type that a name in a declaration has: that of the declaration, or of the part that its
// pattern takes.
TypeRef Checker::TypeOfPattern(const Node* name) {
  const Node* parent = name->parent;
  if (parent == nullptr || depth_ > 60) return pool_.open;
  const Nested nested(depth_);
  switch (parent->kind) {
    case K::k_variable_declarator:
      return TypeOfDeclared(name);
    case K::k_for_in_statement: {
      const Node* op = parent->at(F::k_operator);
      if (op != nullptr && op->text() == "in") return pool_.string;
      const Node* right = parent->at(F::k_right);
      if (right == nullptr || Unfinished(right)) return pool_.open;
      const TypeRef of = IterationType(TypeOf(right));
      return parent->first(K::k_await_expression) != nullptr ? pool_.open : of;
    }
    case K::k_catch_clause:
      return parent->at(F::k_type) != nullptr ? TypeFromNode(parent->at(F::k_type)) : pool_.unknown;
    case K::k_required_parameter:
    case K::k_optional_parameter:
      return TypeOfParameter(parent);
    case K::k_rest_pattern:
      return TypeOfRest(parent);
    case K::k_arrow_function:
      return TypeOfParameter(name);
    case K::k_array_pattern:
      return TypeOfPatternElement(name);
    case K::k_object_pattern:
    case K::k_pair_pattern: {
      const Node* pattern = parent->is(K::k_pair_pattern) ? parent->parent : parent;
      std::string key(name->text());
      if (parent->is(K::k_pair_pattern)) {
        const Node* written = parent->at(F::k_key);
        if (written == nullptr || !written->is(K::k_property_identifier)) return pool_.open;
        key = std::string(written->text());
      }
      const TypeRef of = TypeOfPattern(pattern);
      const auto member = Member(of, key);
      return member ? TypeOfProperty(*member) : pool_.open;
    }
    case K::k_assignment_pattern:
    case K::k_object_assignment_pattern:
      return TypeOfDefaulted(name);
    default:
      return pool_.open;
  }
}

TypeRef Checker::TypeOfParameter(const Node* p) {
  if (const Node* annotation = p->at(F::k_type); annotation != nullptr && !p->is(K::k_identifier)) {
    const TypeRef type = TypeFromNode(annotation);
    return p->is(K::k_optional_parameter) ? pool_.Union(type, pool_.undefined) : type;
  }
  // The context of the function says.
  const Node* list = p->is(K::k_identifier) ? p : p->parent;
  const Node* function = list == nullptr ? nullptr : list->parent;
  if (function != nullptr &&
      (function->is(K::k_arrow_function) || function->is(K::k_function_expression) ||
       (function->is(K::k_method_definition) && function->parent != nullptr &&
        function->parent->is(K::k_object)))) {
    size_t index = 0;
    if (!p->is(K::k_identifier)) {
      for (const Node& kid : list->kids()) {
        if (&kid == p) break;
        if (kid.named && !kid.is(K::k_comment)) ++index;
      }
    }
    const Node* pattern = p->at(F::k_pattern);
    const bool rest = pattern != nullptr && pattern->is(K::k_rest_pattern);
    TypeRef type = nullptr;
    if (const auto given = lambda_params_.find(function); given != lambda_params_.end()) {
      if (index < given->second.size() && !rest) type = given->second[index];
    } else if (const Signature* context = ContextualSignature(function)) {
      if (rest) {
        type = pool_.open;
      } else if (index < context->params.size() && !context->params[index].rest) {
        type = context->params[index].type;
      } else if (context->has_rest()) {
        type = IterationType(context->params.back().type);
      }
    }
    if (type != nullptr) {
      if (HasParams(type) && lambda_params_.count(function) == 0 &&
          ContextualSignature(function) == nullptr) {
        return pool_.open;
      }
      return type;
    }
  }
  if (const Node* value = p->at(F::k_value); value != nullptr && !p->is(K::k_identifier)) {
    const TypeRef type = InitializerType(value, false);
    if (type->is(T::kRef) && type->parts.size() == 1 && type->parts[0]->is(T::kNever))
      return ArrayOf(pool_.open);
    return type;
  }
  return pool_.open;  // an implicit any
}

}  // namespace pawl::monitors::ts
