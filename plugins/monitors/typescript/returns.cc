// What functions return, and whether the end of a body is reached: the types of all `return`s, and
// `undefined` where control falls out of the body.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

void Checker::EachReturn(const Node* body, const std::function<void(const Node*)>& visit) {
  std::vector<const Node*> todo = {body};
  while (!todo.empty()) {
    const Node* at = todo.back();
    todo.pop_back();
    if (at->is(K::k_return_statement) && at != body) {
      visit(at);
      continue;
    }
    const auto kids = at->kids();
    for (auto kid = kids.rbegin(); kid != kids.rend(); ++kid) {
      if (kid->named && !IsFunction(&*kid) && !kid->is(K::k_class_declaration) &&
          !kid->is(K::k_expression_statement) && !kid->is(K::k_lexical_declaration) &&
          !kid->is(K::k_variable_declaration)) {
        todo.push_back(&*kid);
      }
    }
  }
}

TypeRef Checker::ReturnTypeFromBody(const Node* function) {
  if (const auto found = returns_.find(function); found != returns_.end()) return found->second;
  const Node* body = function->at(F::k_body);
  if (body == nullptr || Unfinished(function) || body->broken() ||
      function->is(K::k_generator_function) || function->is(K::k_generator_function_declaration) ||
      !returning_.insert(function).second) {
    return pool_.open;
  }
  for (const Node& kid : function->kids()) {
    if (!kid.named && kid.text() == "*") {
      returning_.erase(function);
      return pool_.open;
    }
  }
  TypeRef type = pool_.open;
  if (!body->is(K::k_statement_block)) {
    type = TypeOf(body);
  } else {
    std::vector<TypeRef> parts;
    bool nothing = true;
    EachReturn(body, [&](const Node* statement) {
      const Node* value = statement->first_named();
      if (value != nullptr) nothing = false;
      parts.push_back(value == nullptr ? pool_.undefined : TypeOf(value));
    });
    if (nothing) {
      type = parts.empty() && !BodyEndReachable(body) ? pool_.never : pool_.void_;
      if (type->is(T::kNever) && !function->is(K::k_arrow_function) &&
          !function->is(K::k_function_expression)) {
        type = pool_.void_;
      }
    } else {
      if (BodyEndReachable(body)) parts.push_back(pool_.undefined);
      type = pool_.Union(std::move(parts));
    }
  }
  if (!type->is(T::kUnion) || type->fresh) {
    const TypeRef context = ContextualType(function);
    bool keep = false;
    if (context != nullptr) {
      for (const Signature* s : CallSignatures(context, false)) {
        if (s->result != nullptr) {
          TypePool::Each(s->result, [&](TypeRef part) {
            keep = keep || part->literal() || part->is(T::kParam);
          });
        }
      }
    }
    if (!keep) type = pool_.Widen(type);
  } else {
    type = pool_.Regular(type);
  }
  if (Async(function)) type = PromiseOf(Awaited(type));
  returning_.erase(function);
  // Found while something else was still being found: it may be open only because of that.
  if (!type->open() || computing_.empty()) returns_[function] = type;
  return type;
}

bool Checker::BodyEndReachable(const Node* body) {
  for (const Node& kid : body->kids()) {
    if (kid.named && !kid.is(K::k_comment) && !EndReachable(&kid)) return false;
  }
  return true;
}

namespace {

// A `break` that leaves this statement, not one inside.
bool Breaks(const Node* node) {
  std::vector<const Node*> todo = {node};
  while (!todo.empty()) {
    const Node* at = todo.back();
    todo.pop_back();
    for (const Node& kid : at->kids()) {
      if (!kid.named) continue;
      if (kid.is(K::k_break_statement)) return true;
      if (kid.is(K::k_for_statement) || kid.is(K::k_for_in_statement) ||
          kid.is(K::k_while_statement) || kid.is(K::k_do_statement) ||
          kid.is(K::k_switch_statement) || IsFunction(&kid)) {
        // With a label it may go further.
        Work::Bytes(kid.end - kid.start);
        if (kid.text().find("break ") != std::string_view::npos) return true;
        continue;
      }
      todo.push_back(&kid);
    }
  }
  return false;
}

}  // namespace

bool Checker::EndReachable(const Node* s) {
  switch (s->kind) {
    case K::k_return_statement:
    case K::k_throw_statement:
    case K::k_break_statement:
    case K::k_continue_statement:
      return false;
    case K::k_statement_block:
      return BodyEndReachable(s);
    case K::k_if_statement: {
      const Node* otherwise = s->at(F::k_alternative);
      const Node* then = s->at(F::k_consequence);
      if (otherwise == nullptr || then == nullptr) return true;
      const Node* inner = otherwise->first_named();
      return EndReachable(then) || inner == nullptr || EndReachable(inner);
    }
    case K::k_while_statement: {
      const Node* condition = s->at(F::k_condition);
      const Node* inner = condition == nullptr ? nullptr : condition->first_named();
      return inner == nullptr || !inner->is(K::kTrue) || Breaks(s);
    }
    case K::k_for_statement: {
      const Node* condition = s->at(F::k_condition);
      return !(condition == nullptr || condition->is(K::k_empty_statement) ||
               condition->text() == "true" || condition->text() == "true;") ||
             Breaks(s);
    }
    case K::k_do_statement: {
      const Node* body = s->at(F::k_body);
      const Node* condition = s->at(F::k_condition);
      const Node* inner = condition == nullptr ? nullptr : condition->first_named();
      if (Breaks(s)) return true;
      if (inner != nullptr && inner->is(K::kTrue)) return false;
      return body == nullptr || EndReachable(body) ||
             s->text().find("continue") != std::string_view::npos;
    }
    case K::k_try_statement: {
      const Node* finalizer = s->at(F::k_finalizer);
      if (finalizer != nullptr && finalizer->at(F::k_body) != nullptr &&
          !BodyEndReachable(finalizer->at(F::k_body))) {
        return false;
      }
      const Node* body = s->at(F::k_body);
      const Node* handler = s->at(F::k_handler);
      const Node* handler_body = handler == nullptr ? nullptr : handler->at(F::k_body);
      return body == nullptr || BodyEndReachable(body) ||
             (handler_body != nullptr && BodyEndReachable(handler_body));
    }
    case K::k_switch_statement: {
      const Node* body = s->at(F::k_body);
      if (body == nullptr || Breaks(body)) return true;
      bool standard = false;
      bool last_falls = true;
      for (const Node& label : body->kids()) {
        if (!label.is(K::k_switch_case) && !label.is(K::k_switch_default)) continue;
        standard = standard || label.is(K::k_switch_default);
        last_falls = true;
        for (const Node& kid : label.kids()) {
          if (kid.field == F::k_body && !EndReachable(&kid)) last_falls = false;
        }
      }
      if (!standard) {
        // All cases of a union may be there.
        const Node* value = s->at(F::k_value);
        TypeRef left = value == nullptr ? pool_.open : pool_.Regular(TypeOf(value->first_named()));
        std::vector<TypeRef> parts;
        bool literals = true;
        TypePool::Each(left, [&](TypeRef part) {
          literals = literals && (part->literal() || part->is(T::kEnumMember));
          parts.push_back(part);
        });
        if (!literals) return true;
        for (const Node& label : body->kids()) {
          if (!label.is(K::k_switch_case)) continue;
          const TypeRef one = pool_.Regular(TypeOf(label.at(F::k_value)));
          std::erase(parts, one);
        }
        if (!parts.empty()) return true;
      }
      return last_falls;
    }
    case K::k_labeled_statement: {
      const Node* body = s->at(F::k_body);
      return body == nullptr || EndReachable(body) ||
             s->text().find("break ") != std::string_view::npos;
    }
    default:
      return true;
  }
}

}  // namespace pawl::monitors::ts
