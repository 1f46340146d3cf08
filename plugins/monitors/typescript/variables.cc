// Types of variables: what a declaration says or its initializer has, and of a pattern the part
// that a name takes.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"

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
    return ArrayOf(pool_.open);
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
