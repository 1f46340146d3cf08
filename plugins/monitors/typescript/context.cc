// What the place of an expression wants it to be: the parameter that an argument is for, the
// annotation of the variable that it initializes. Arrow functions without annotations get their
// parameters from it.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"

namespace pawl::monitors::ts {

// The member that a property of an object literal is for.
TypeRef Checker::ContextOfProperty(const Node* node) {
  const Node* parent = node->parent;
  if (node->field != F::k_value || parent->parent == nullptr) return nullptr;
  const TypeRef object = ContextualType(parent->parent);
  const Node* key = parent->at(F::k_key);
  if (object == nullptr || key == nullptr) return nullptr;
  if (object->open()) return pool_.open;
  std::string name(key->text());
  if (key->is(K::k_string) && name.size() >= 2) name = name.substr(1, name.size() - 2);
  if (key->is(K::k_computed_property_name)) {
    const Shape* shape = ShapeOf(object);
    return shape == nullptr                 ? nullptr
           : shape->string_index != nullptr ? shape->string_index
                                            : shape->number_index;
  }
  const auto member = Member(pool_.NonNull(object), name);
  if (!member) {
    const Shape* shape = ShapeOf(object);
    return shape == nullptr ? nullptr : shape->number_index;
  }
  return TypeOfProperty(*member);
}

TypeRef Checker::ContextOfElement(const Node* node) {
  const Node* parent = node->parent;
  const TypeRef array = ContextualType(parent);
  if (array == nullptr) return nullptr;
  size_t index = 0;
  for (const Node& kid : parent->kids()) {
    if (&kid == node) break;
    if (kid.named && !kid.is(K::k_comment)) ++index;
  }
  std::vector<TypeRef> parts;
  TypePool::Each(pool_.NonNull(array), [&](TypeRef part) {
    if (part->is(T::kTuple)) {
      if (index < part->parts.size()) parts.push_back(part->parts[index]);
    } else if (part->is(T::kRef) && !part->parts.empty()) {
      parts.push_back(IterationType(part));
    } else if (part->open()) {
      parts.push_back(part);
    }
  });
  return parts.empty() ? nullptr : pool_.Union(std::move(parts));
}

// What the function should return.
TypeRef Checker::ContextOfResult(const Node* function) {
  TypeRef result = nullptr;
  if (const Node* annotation = function->at(F::k_return_type)) {
    result = TypeFromNode(annotation);
  } else if (const Signature* context = ContextualSignature(function)) {
    result = context->result;
  }
  return result != nullptr && Async(function) ? Awaited(result) : result;
}

// A function with what the two agree in; the rest is open. Their parameters matter most.
TypeRef Checker::AgreedFunction(const Signature* a, const Signature* b) {
  Signature* both = pool_.NewSignature();
  *both = a->params.size() >= b->params.size() ? *a : *b;
  for (size_t i = 0; i < std::min(a->params.size(), b->params.size()); ++i) {
    if (a->params[i].type != b->params[i].type) both->params[i].type = pool_.open;
  }
  both->result = a->result == b->result ? a->result : pool_.open;
  return pool_.Function({both});
}

// The callee's parameter, where all overloads that take so many arguments agree.
TypeRef Checker::ContextOfArgument(const Node* node) {
  const Node* parent = node->parent;
  const Node* call = parent->parent;
  if (call == nullptr) return nullptr;
  size_t index = 0;
  for (const Node& kid : parent->kids()) {
    if (&kid == node) break;
    if (kid.is(K::k_spread_element)) return pool_.open;
    if (kid.named && !kid.is(K::k_comment)) ++index;
  }
  const bool construct = call->is(K::k_new_expression);
  const Node* callee = call->at(construct ? F::k_constructor : F::k_function);
  if (callee == nullptr) return nullptr;
  const TypeRef of = pool_.NonNull(TypeOf(callee));
  if (of->loose()) return pool_.open;
  TypeRef agreed = nullptr;
  for (const Signature* s : CallSignatures(of, construct)) {
    TypeRef wanted = nullptr;
    if (index < s->params.size() && !s->params[index].rest) {
      wanted = s->params[index].type;
    } else if (s->has_rest()) {
      wanted = IterationType(s->params.back().type);
    } else {
      continue;
    }
    Mapper free;
    for (TypeRef p : s->type_params) free.emplace_back(p, pool_.open);
    wanted = Instantiate(wanted, free);
    if (agreed != nullptr && agreed != wanted) {
      if (!agreed->is(T::kFunction) || !wanted->is(T::kFunction)) return pool_.open;
      wanted = AgreedFunction(agreed->signatures.front(), wanted->signatures.front());
    }
    agreed = wanted;
  }
  return agreed == nullptr ? pool_.open : agreed;
}

TypeRef Checker::ContextualType(const Node* node) {
  if (const auto given = contextual_.find(node); given != contextual_.end()) return given->second;
  const Node* parent = node->parent;
  if (parent == nullptr || depth_ > 60) return nullptr;
  const Nested nested(depth_);
  switch (parent->kind) {
    case K::k_variable_declarator:
    case K::k_public_field_definition:
    case K::k_required_parameter:
    case K::k_optional_parameter:
      return node->field == F::k_value && parent->at(F::k_type) != nullptr
                 ? TypeFromNode(parent->at(F::k_type))
                 : nullptr;
    case K::k_assignment_expression: {
      if (node->field != F::k_right) return nullptr;
      const Node* left = parent->at(F::k_left);
      if (left == nullptr) return nullptr;
      if (left->is(K::k_identifier)) {
        Symbol* symbol = Resolve(left->text(), left, kValue);
        return symbol == nullptr ? nullptr : TypeOfSymbol(symbol);
      }
      return left->is(K::k_member_expression) || left->is(K::k_subscript_expression) ? TypeOf(left)
                                                                                     : nullptr;
    }
    case K::k_parenthesized_expression:
    case K::k_ternary_expression:
      if (node->field == F::k_condition) return nullptr;
      return ContextualType(parent);
    case K::k_binary_expression: {
      const Node* op = parent->at(F::k_operator);
      const std::string_view o = op == nullptr ? "" : op->text();
      if (o != "||" &&
          o != "?"
               "?" &&
          o != "&&")
        return nullptr;
      if (const TypeRef outer = ContextualType(parent)) return outer;
      if (node->field == F::k_right && o != "&&") return TypeOf(parent->at(F::k_left));
      return nullptr;
    }
    case K::k_as_expression:
    case K::k_satisfies_expression: {
      const Node* type = &parent->kids().back();
      return node != type && type->text() != "const" ? TypeFromNode(type) : nullptr;
    }
    case K::k_pair:
      return ContextOfProperty(node);
    case K::k_array:
      return ContextOfElement(node);
    case K::k_return_statement: {
      const Node* function = parent;
      while (function != nullptr && !IsFunction(function)) function = function->parent;
      return function == nullptr ? nullptr : ContextOfResult(function);
    }
    case K::k_arrow_function:
      return node->field == F::k_body ? ContextOfResult(parent) : nullptr;
    case K::k_arguments:
      return ContextOfArgument(node);
    default:
      return nullptr;
  }
}

const Signature* Checker::ContextualSignature(const Node* function) {
  // A call that is complete says more than its overloads do.
  const Node* parent = function->parent;
  if (parent != nullptr && parent->is(K::k_arguments) && parent->parent != nullptr &&
      !Unfinished(parent->parent) && calling_.count(parent->parent) == 0 &&
      (parent->parent->is(K::k_call_expression) || parent->parent->is(K::k_new_expression))) {
    ResolveCall(parent->parent);
    if (const auto given = lambda_params_.find(function); given != lambda_params_.end()) {
      Signature* made = pool_.NewSignature();
      for (TypeRef type : given->second) made->params.push_back(Parameter{.type = type});
      const auto context = contextual_.find(function);
      if (context != contextual_.end()) {
        for (const Signature* s : CallSignatures(context->second, false)) made->result = s->result;
      }
      return made;
    }
  }
  const TypeRef context = ContextualType(function);
  if (context == nullptr || context->loose()) return nullptr;
  const Signature* only = nullptr;
  bool several = false;
  TypePool::Each(context, [&](TypeRef part) {
    for (const Signature* s : CallSignatures(part, false)) {
      several = several || only != nullptr;
      only = s;
    }
  });
  return several ? nullptr : only;
}

}  // namespace pawl::monitors::ts
