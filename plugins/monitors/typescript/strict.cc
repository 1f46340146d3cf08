// The strict subset: a program is accepted only when everything in it is followed and fits. What
// the compiler would refuse under --strict is refused, and so is what the checker has no opinion
// about: an open type, a relation that only may hold, a construct that is not in the list below. So
// "accepted" means that the program type-checks.
//
// The subset: functions with generics and overloads, classes, interfaces, type aliases, enums; all
// statements but `with`, labels included; all operators; template strings, arrow functions,
// destructuring, spread; types built of primitives, literals, arrays, tuples, objects, functions,
// unions, and the library. Not in it: modules, namespaces, decorators, generators, conditional and
// mapped types, names of the host.
#include <algorithm>
#include <functional>

#include "plugins/monitors/typescript/check.h"
#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

namespace {

class Strict {
 public:
  Strict(Checker& checker, std::vector<Problem>& problems)
      : checker_(checker), pool_(checker.pool()), problems_(problems) {}

  void Walk(const Node* root) {
    std::vector<const Node*> todo = {root};
    while (!todo.empty() && problems_.empty()) {
      const Node* node = todo.back();
      todo.pop_back();
      Visit(node);
      const auto kids = node->kids();
      for (auto kid = kids.rbegin(); kid != kids.rend(); ++kid) {
        if (kid->named) todo.push_back(&*kid);
      }
    }
  }

 private:
  void Add(const Node* node, std::string message) {
    problems_.push_back(Problem{.byte = node->start,
                                .identifier = std::string(node->text().substr(0, 60)),
                                .monitor = "strict",
                                .message = std::move(message)});
  }

  // A value where a type is wanted.
  void Fit(const Node* value, TypeRef to, const char* what) {
    if (value == nullptr) return;
    const TypeRef from = checker_.TypeOf(value);
    if (from->open()) return Add(value, "its type is not followed");
    switch (checker_.Assignable(from, to)) {
      case Fits::kYes:
        Excess(value, to);
        return;
      case Fits::kNo:
        return Add(value, std::string(what) + ": " + checker_.Describe(from) + " does not fit " +
                              checker_.Describe(to));
      case Fits::kMaybe:
        return Add(value, std::string(what) + ": whether " + checker_.Describe(from) + " fits " +
                              checker_.Describe(to) + " is not followed");
    }
  }

  // An object literal has no property that was not asked for.
  void Excess(const Node* value, TypeRef to) {
    while (value->is(K::k_parenthesized_expression)) value = value->first_named();
    if (value->is(K::k_array) && to->is(T::kRef) && to->parts.size() == 1) {
      for (const Node& kid : value->kids()) {
        if (kid.named && !kid.is(K::k_spread_element) && !kid.is(K::k_comment))
          Excess(&kid, to->parts[0]);
      }
      return;
    }
    if (!value->is(K::k_object)) return;
    bool any = false;
    std::vector<TypeRef> shapes;
    TypePool::Each(to, [&](TypeRef part) {
      if (part->is(T::kShape) || (part->is(T::kRef) && !part->symbol->is(kLib))) {
        shapes.push_back(part);
      } else if (!part->is(T::kNull) && !part->is(T::kUndefined)) {
        any = true;
      }
    });
    if (any || shapes.empty()) return;
    for (const Property& p : checker_.ShapeOf(checker_.TypeOf(value))->properties) {
      bool known = false;
      for (TypeRef shape : shapes) {
        const Shape* s = checker_.ShapeOf(shape);
        known = known || s == nullptr || s->open || s->Find(p.name) != nullptr ||
                s->string_index != nullptr || s->number_index != nullptr || s->properties.empty();
      }
      if (!known) return Add(value, "has a property \"" + p.name + "\" that is not asked for");
    }
  }

  void NotNull(const Node* node) {
    const TypeRef type = checker_.TypeOf(node);
    bool bad = type->is(T::kUnknown) || type->is(T::kVoid);
    TypePool::Each(type, [&](TypeRef p) { bad = bad || p->is(T::kNull) || p->is(T::kUndefined); });
    if (bad) Add(node, "may be nothing: " + checker_.Describe(type));
  }

  bool Numeric(TypeRef type) {
    bool all = !type->is(T::kNever);
    TypePool::Each(type, [&](TypeRef p) {
      all = all && (p->is(T::kNumber) || p->is(T::kNumberLiteral) || p->is(T::kAny) ||
                    p->is(T::kBigInt) || p->is(T::kBigIntLiteral) ||
                    ((p->is(T::kRef) && p->symbol->is(kEnum)) || p->is(T::kEnumMember)));
    });
    return all;
  }

  void Operands(const Node* node, std::string_view op, const Node* left, const Node* right) {
    const TypeRef a = checker_.TypeOf(left);
    const TypeRef b = checker_.TypeOf(right);
    if (a->open() || b->open()) return Add(a->open() ? left : right, "its type is not followed");
    if (op == "&&" || op == "||") return Tested(left, right);
    if (op ==
            "?"
            "?" ||
        op == ",")
      return;
    if (op == "instanceof") {
      bool object = true;
      TypePool::Each(a, [&](TypeRef p) {
        object = object && !p->literal() && !p->is(T::kNumber) && !p->is(T::kString) &&
                 !p->is(T::kBoolean);
      });
      if (!object) Add(left, "is no object");
      return;
    }
    if (op == "in") {
      if (!b->is(T::kAny) && checker_.Assignable(b, pool_.object) != Fits::kYes)
        Add(right, "is no object");
      return;
    }
    if (op == "===" || op == "!==" || op == "==" || op == "!=") {
      if (checker_.Comparable(a, b) != Fits::kYes) {
        Add(node, "compares " + checker_.Describe(a) + " and " + checker_.Describe(b));
      }
      for (const Node* side : {left, right}) {
        const Node* inner = side;
        while (inner->is(K::k_parenthesized_expression)) inner = inner->first_named();
        const bool nan = inner->text() == "NaN" || inner->text() == "Number.NaN";
        if (nan || inner->is(K::k_object) || inner->is(K::k_array) || inner->is(K::k_regex)) {
          Add(side, "is equal to nothing else");
        }
      }
      return;
    }
    NotNull(left);
    NotNull(right);
    if (!problems_.empty()) return;
    const bool bigint_a = checker_.Assignable(a, pool_.bigint) == Fits::kYes && !a->is(T::kAny);
    const bool bigint_b = checker_.Assignable(b, pool_.bigint) == Fits::kYes && !b->is(T::kAny);
    if (op == "<" || op == ">" || op == "<=" || op == ">=") {
      if (a->is(T::kAny) || b->is(T::kAny) || (Numeric(a) && Numeric(b))) return;
      if (checker_.Comparable(pool_.Widen(a), pool_.Widen(b)) != Fits::kYes) {
        Add(node, "compares " + checker_.Describe(a) + " and " + checker_.Describe(b));
      }
      return;
    }
    if (op == "+" || op == "+=") {
      if (a->is(T::kAny) || b->is(T::kAny)) return;
      const auto text = [&](TypeRef type) {
        return checker_.Assignable(type, pool_.string) == Fits::kYes;
      };
      if (text(a) || text(b)) {
        const TypeRef other = text(a) ? b : a;
        if (other->is(T::kSymbol)) Add(node, "adds a symbol");
        return;
      }
      if (Numeric(a) && Numeric(b) && bigint_a == bigint_b) return;
      return Add(node, "adds " + checker_.Describe(a) + " and " + checker_.Describe(b));
    }
    if (!Numeric(a)) return Add(left, "is no number: " + checker_.Describe(a));
    if (!Numeric(b)) return Add(right, "is no number: " + checker_.Describe(b));
    if (bigint_a != bigint_b && !a->is(T::kAny) && !b->is(T::kAny))
      Add(node, "mixes bigint and number");
  }

  // What is asked whether it is true: not always the same, and no function or promise that was
  // meant to be called or awaited. `then`: what runs when it is true, and may do so.
  void Tested(const Node* condition, const Node* then) {
    while (condition != nullptr && condition->is(K::k_parenthesized_expression))
      condition = condition->first_named();
    if (condition == nullptr) return;
    switch (condition->kind) {
      case K::k_object:
      case K::k_array:
      case K::k_arrow_function:
      case K::k_function_expression:
      case K::k_regex:
      case K::k_string:
      case K::k_null:
      case K::k_undefined:
        return Add(condition, "is always true, or never");
      case K::k_number:
        if (condition->text() != "0" && condition->text() != "1")
          Add(condition, "is always true, or never");
        return;
      case K::k_identifier:
      case K::k_member_expression:
      case K::k_call_expression:
        break;
      default:
        return;
    }
    const TypeRef type = checker_.TypeOf(condition);
    const bool promise = type->is(T::kRef) && type->symbol->name == "Promise";
    const bool function = type->is(T::kFunction) && !condition->is(K::k_call_expression);
    if (!promise && !function) return;
    const Node* name =
        condition->is(K::k_member_expression) ? condition->at(F::k_property) : condition;
    const bool used = name != nullptr && then != nullptr && function &&
                      then->text().find(name->text()) != std::string_view::npos;
    if (!used) Add(condition, "is always true: " + checker_.Describe(type));
  }

  void VisitFunction(const Node* node) {
    if (HasWord(node, "*")) return Add(node, "generators are not in the subset");
    const Node* body = node->at(F::k_body);
    const Node* annotation = node->at(F::k_return_type);
    if (body == nullptr) return;
    const bool async = HasWord(node, "async");
    if (annotation == nullptr) {
      if (checker_.ReturnTypeFromBody(node)->open()) Add(node, "what it returns is not followed");
      return;
    }
    TypeRef result = checker_.SignatureOf(node)->result;
    if (async) {
      if (!result->is(T::kRef) || result->symbol->name != "Promise")
        return Add(annotation, "an async function returns a Promise");
      result = checker_.Awaited(result);
    }
    if (result->open()) return Add(annotation, "is not followed");
    if (!body->is(K::k_statement_block)) {
      if (!(result->is(T::kVoid))) FitReturn(body, result, async);
      return;
    }
    bool returns_nothing = false;
    TypePool::Each(result, [&](TypeRef p) {
      returns_nothing =
          returns_nothing || p->is(T::kVoid) || p->is(T::kAny) || p->is(T::kUndefined);
    });
    if (returns_nothing && !result->is(T::kVoid) && !result->is(T::kAny)) {
      // `: string | undefined` needs no return at its end, but one somewhere.
    }
    if ((!returns_nothing || result->is(T::kNever)) && checker_.BodyEndReachable(body)) {
      Add(annotation, "its end is reached without a value");
    }
  }

  void FitReturn(const Node* value, TypeRef result, bool async) {
    if (!async) return Fit(value, result, "returned");
    const TypeRef from = checker_.Awaited(checker_.TypeOf(value));
    if (from->open() || checker_.Assignable(from, result) != Fits::kYes) {
      Add(value,
          "returned: " + checker_.Describe(from) + " does not fit " + checker_.Describe(result));
    }
  }

  void VisitReturn(const Node* node) {
    const Node* function = node;
    while (function != nullptr && !IsFunction(function)) function = function->parent;
    if (function == nullptr) return Add(node, "returns from no function");
    const Node* annotation = function->at(F::k_return_type);
    if (annotation == nullptr) return;
    const bool async = HasWord(function, "async");
    TypeRef result = checker_.SignatureOf(function)->result;
    if (async) result = checker_.Awaited(result);
    const Node* value = node->first_named();
    if (value == nullptr) {
      if (!result->is(T::kVoid) && checker_.Assignable(pool_.undefined, result) != Fits::kYes) {
        Add(node, "returns nothing");
      }
      return;
    }
    FitReturn(value, result, async);
  }

  void VisitParameter(const Node* node) {
    const Node* pattern = node->at(F::k_pattern);
    const Node* annotation = node->at(F::k_type);
    const Node* value = node->at(F::k_value);
    if (annotation != nullptr && value != nullptr)
      return Fit(value, checker_.TypeFromNode(annotation), "default");
    if (annotation == nullptr && pattern != nullptr && pattern->text() != "this") {
      if (checker_.TypeOfParameter(node)->open()) Add(node, "has no type");
    }
  }

  void VisitAssignment(const Node* node) {
    const Node* left = node->at(F::k_left);
    const Node* right = node->at(F::k_right);
    if (left == nullptr || right == nullptr) return;
    while (left->is(K::k_parenthesized_expression) || left->is(K::k_non_null_expression))
      left = left->first_named();
    if (left->is(K::k_array_pattern)) return VisitSwap(left, right);
    if (left->is(K::k_object_pattern)) return Add(left, "is not in the subset");
    TypeRef to = pool_.open;
    if (left->is(K::k_identifier)) {
      Symbol* symbol = checker_.Resolve(left->text(), left, kValue);
      if (symbol != nullptr) to = checker_.TypeOfSymbol(symbol);
    } else {
      to = checker_.TypeOf(left);
    }
    if (to->open()) return Add(left, "its type is not followed");
    if (node->is(K::k_augmented_assignment_expression)) {
      const Node* op = node->at(F::k_operator);
      const std::string_view text = op == nullptr ? "" : op->text();
      if (text == "&&=" || text == "||=" ||
          text ==
              "?"
              "?=")
        return Fit(right, to, "assigned");
      Operands(node, text == "+=" ? "+" : text.substr(0, text.size() - 1), left, right);
      if (problems_.empty() && checker_.Assignable(checker_.TypeOf(node), to) != Fits::kYes) {
        Add(node,
            checker_.Describe(checker_.TypeOf(node)) + " does not fit " + checker_.Describe(to));
      }
      return;
    }
    Fit(right, to, "assigned");
  }

  void VisitSwap(const Node* left, const Node* right) {
    const TypeRef from = checker_.TypeOf(right);
    std::vector<const Node*> values;
    if (right->is(K::k_array)) {
      for (const Node& kid : right->kids()) {
        if (kid.named && !kid.is(K::k_comment)) values.push_back(&kid);
      }
    }
    size_t i = 0;
    for (const Node& kid : left->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      if (!kid.is(K::k_identifier) && !kid.is(K::k_member_expression) &&
          !kid.is(K::k_subscript_expression)) {
        return Add(&kid, "is not in the subset");
      }
      TypeRef to = checker_.TypeOf(&kid);
      if (kid.is(K::k_identifier)) {
        Symbol* symbol = checker_.Resolve(kid.text(), &kid, kValue);
        if (symbol != nullptr) to = checker_.TypeOfSymbol(symbol);
      }
      if (to->open()) return Add(&kid, "its type is not followed");
      if (i < values.size() && !values[i]->is(K::k_spread_element)) {
        Fit(values[i], to, "assigned");
      } else if (checker_.Assignable(checker_.IterationType(from), to) != Fits::kYes) {
        Add(&kid, "does not fit");
      }
      ++i;
    }
  }

  void VisitCall(const Node* node) {
    const bool construct = node->is(K::k_new_expression);
    const Node* callee = node->at(construct ? F::k_constructor : F::k_function);
    if (callee == nullptr) return;
    const TypeRef of = checker_.TypeOf(callee);
    if (of->is(T::kAny)) return;
    if (callee->is(K::k_super)) return Add(node, "is not in the subset");
    if (of->open()) return Add(callee, "its type is not followed");
    const bool chained = node->first(K::k_optional_chain) != nullptr ||
                         callee->first(K::k_optional_chain) != nullptr;
    if (!chained) NotNull(callee);
    if (!problems_.empty()) return;
    const auto& call = checker_.ResolveCall(node);
    if (call.signature == nullptr || call.open) {
      const Node* place = call.bad_argument != nullptr ? call.bad_argument : callee;
      return Add(place,
                 call.open ? "whether this call fits is not followed" : "no overload takes this");
    }
    bool spread = false;
    const auto args = checker_.Arguments(node, &spread);
    for (size_t i = 0; i < args.size() && i < call.signature->params.size(); ++i) {
      if (args[i]->is(K::k_object)) Excess(args[i], call.signature->params[i].type);
    }
    if (checker_.ResultOf(call.signature)->open()) Add(node, "what it returns is not followed");
  }

  void VisitDeclarator(const Node* node) {
    const Node* name = node->at(F::k_name);
    const Node* annotation = node->at(F::k_type);
    const Node* value = node->at(F::k_value);
    if (name == nullptr) return;
    if (annotation != nullptr) {
      const TypeRef type = checker_.TypeFromNode(annotation);
      if (type->open()) return Add(annotation, "is not followed");
      if (value != nullptr) {
        Fit(value, type, "initializer");
      } else if (name->is(K::k_identifier)) {
        UsedBeforeAssigned(node, name, type);
      }
      return;
    }
    if (value == nullptr) {
      // `let x;` takes the type of what is assigned.
      const Node* statement = node->parent;
      if (statement != nullptr && statement->parent != nullptr &&
          !statement->parent->is(K::k_for_in_statement)) {
        Add(node, "has no type");
      }
      return;
    }
    if (checker_.TypeOf(value)->open()) return Add(value, "its type is not followed");
    if (name->is(K::k_identifier)) {
      if (checker_.TypeOfPattern(name)->open()) Add(name, "its type is not followed");
      return;
    }
    if (name->is(K::k_array_pattern) && checker_.IterationType(checker_.TypeOf(value))->open()) {
      Add(value, "is nothing to iterate over");
    }
    if (name->is(K::k_object_pattern)) {
      NotNull(value);
      for (const Node& kid : name->kids()) {
        if (kid.is(K::k_shorthand_property_identifier_pattern) &&
            checker_.TypeOfPattern(&kid)->open()) {
          Add(&kid, "is no member");
        }
      }
    }
  }

  // let x: number; before anything is assigned to it: only where the next statements surely do.
  void UsedBeforeAssigned(const Node* node, const Node* name, TypeRef type) {
    if (checker_.Assignable(pool_.undefined, type) == Fits::kYes) return;
    const Node* statement = node->parent;
    const Node* block = statement == nullptr ? nullptr : statement->parent;
    if (block == nullptr || block->is(K::k_for_statement) || block->is(K::k_for_in_statement))
      return;
    bool behind = false;
    for (const Node& kid : block->kids()) {
      if (&kid == statement) {
        behind = true;
        continue;
      }
      if (!behind || !kid.named || kid.is(K::k_comment)) continue;
      if (Assigns(&kid, name->text())) return;
      if (Mentions(&kid, name->text()))
        return Add(node, "may be used before anything is assigned to it");
    }
  }
  static bool Mentions(const Node* node, std::string_view name) {
    std::vector<const Node*> todo = {node};
    while (!todo.empty()) {
      const Node* at = todo.back();
      todo.pop_back();
      if (at->is(K::k_identifier) && at->text() == name) return true;
      const bool chained = at->parent != nullptr && at->kind == at->parent->kind;
      if (!chained) Work::Bytes(at->end - at->start);
      if (!chained && at->text().find(name) == std::string_view::npos) continue;
      for (const Node& kid : at->kids()) {
        if (kid.named) todo.push_back(&kid);
      }
    }
    return false;
  }
  // Whether running the statement surely assigns before it reads.
  static bool Assigns(const Node* s, std::string_view name) {
    switch (s->kind) {
      case K::k_expression_statement: {
        const Node* e = s->first_named();
        return e != nullptr && e->is(K::k_assignment_expression) && e->at(F::k_left) != nullptr &&
               e->at(F::k_left)->text() == name && !Mentions(e->at(F::k_right), name);
      }
      case K::k_statement_block:
        for (const Node& kid : s->kids()) {
          if (!kid.named) continue;
          if (Assigns(&kid, name)) return true;
          if (Mentions(&kid, name)) return false;
          if (kid.is(K::k_return_statement) || kid.is(K::k_throw_statement)) return true;
        }
        return false;
      case K::k_if_statement: {
        const Node* otherwise = s->at(F::k_alternative);
        return otherwise != nullptr && !Mentions(s->at(F::k_condition), name) &&
               Assigns(s->at(F::k_consequence), name) && otherwise->first_named() != nullptr &&
               Assigns(otherwise->first_named(), name);
      }
      case K::k_return_statement:
      case K::k_throw_statement:
        return !Mentions(s, name);
      default:
        return false;
    }
  }

  void VisitMember(const Node* node) {
    const Node* object = node->at(F::k_object);
    if (object == nullptr) return;
    const TypeRef of = checker_.TypeOf(object);
    if (of->open()) return Add(object, "its type is not followed");
    if (node->first(K::k_optional_chain) == nullptr) NotNull(object);
    if (!problems_.empty()) return;
    if (of->is(T::kUnion)) {
      for (TypeRef part : of->parts) {
        if (part->is(T::kNull) || part->is(T::kUndefined)) continue;
        if (!checker_.Member(part, node->at(F::k_property)->text()))
          return Add(node, "is no member of every part");
      }
    } else if (!checker_.Member(of, node->at(F::k_property)->text())) {
      return Add(node->at(F::k_property), "is no member");
    }
    const bool written = node->field == F::k_left;
    if (!written && checker_.TypeOf(node)->open()) Add(node, "its type is not followed");
  }

  void VisitSubscript(const Node* node) {
    const Node* object = node->at(F::k_object);
    const Node* index = node->at(F::k_index);
    if (object == nullptr || index == nullptr) return;
    if (checker_.TypeOf(object)->is(T::kAny)) return;
    if (node->first(K::k_optional_chain) == nullptr) NotNull(object);
    if (problems_.empty()) NotNull(index);
    if (problems_.empty() && checker_.TypeOf(node)->open()) Add(node, "its type is not followed");
  }

  void VisitUnary(const Node* node) {
    const Node* op = node->at(F::k_operator);
    const Node* argument = node->at(F::k_argument);
    if (op == nullptr || argument == nullptr) return;
    const TypeRef of = checker_.TypeOf(argument);
    if (op->text() == "!") return Tested(argument, node->parent);
    if (op->text() == "typeof" || op->text() == "void") return;
    if (of->open()) return Add(argument, "its type is not followed");
    if (op->text() == "delete") {
      if (!of->is(T::kAny) && !argument->is(K::k_subscript_expression))
        Add(node, "is not in the subset");
      return;
    }
    if (op->text() == "++" || op->text() == "--") {
      if (!Numeric(of)) Add(argument, "is no number: " + checker_.Describe(of));
    } else {
      NotNull(argument);
    }
  }

  void VisitForIn(const Node* node) {
    const Node* op = node->at(F::k_operator);
    const Node* right = node->at(F::k_right);
    if (op == nullptr || right == nullptr) return;
    const TypeRef of = checker_.TypeOf(right);
    if (of->open()) return Add(right, "its type is not followed");
    NotNull(right);
    if (op->text() == "of" && checker_.IterationType(of)->open())
      Add(right, "is nothing to iterate over");
    if (op->text() == "of" && of->is(T::kUnknown)) Add(right, "is unknown");
  }

  void VisitCast(const Node* node) {
    if (node->text().ends_with("as const")) return Add(node, "is not in the subset");
    const TypeRef to = checker_.TypeOf(node);
    const TypeRef from = pool_.Widen(checker_.TypeOf(
        node->is(K::k_type_assertion) ? &node->kids().back() : node->first_named()));
    if (to->open() || from->open()) return Add(node, "its type is not followed");
    if (checker_.Comparable(from, to) != Fits::kYes) {
      Add(node, checker_.Describe(from) + " is no " + checker_.Describe(to));
    }
  }

  void VisitObject(const Node* node) {
    std::vector<std::string_view> seen;
    for (const Node& kid : node->kids()) {
      const Node* key = kid.is(K::k_pair) ? kid.at(F::k_key) : nullptr;
      if (key == nullptr || key->is(K::k_computed_property_name)) continue;
      std::string_view name = key->text();
      if (key->is(K::k_string) && name.size() >= 2) name = name.substr(1, name.size() - 2);
      if (std::find(seen.begin(), seen.end(), name) != seen.end())
        return Add(key, "is there twice");
      seen.push_back(name);
    }
  }

  void Visit(const Node* node) {
    switch (node->kind) {
      case K::k_generator_function:
      case K::k_generator_function_declaration:
      case K::k_yield_expression:
      case K::k_import_statement:
      case K::k_export_statement:
      case K::k_decorator:
      case K::k_internal_module:
      case K::k_module:
      case K::k_ambient_declaration:
      case K::k_conditional_type:
      case K::k_mapped_type_clause:
      case K::k_index_type_query:
      case K::k_satisfies_expression:
      case K::k_class_static_block:
      case K::k_meta_property:
        return Add(node, "is not in the subset");
      case K::k_identifier:
        return VisitName(node);
      case K::k_function_declaration:
        Redeclared(node);
        [[fallthrough]];
      case K::k_function_expression:
      case K::k_arrow_function:
      case K::k_method_definition:
        return VisitFunction(node);
      case K::k_required_parameter:
      case K::k_optional_parameter:
        if (node->parent != nullptr && node->parent->is(K::k_formal_parameters))
          VisitParameter(node);
        return;
      case K::k_return_statement:
        return VisitReturn(node);
      case K::k_variable_declarator:
        Redeclared(node);
        return VisitDeclarator(node);
      case K::k_public_field_definition:
        if (node->at(F::k_type) != nullptr && node->at(F::k_value) != nullptr) {
          Fit(node->at(F::k_value), checker_.TypeFromNode(node->at(F::k_type)), "initializer");
        }
        return;
      case K::k_call_expression:
      case K::k_new_expression:
        return VisitCall(node);
      case K::k_assignment_expression:
      case K::k_augmented_assignment_expression:
        return VisitAssignment(node);
      case K::k_member_expression:
        return VisitMember(node);
      case K::k_subscript_expression:
        return VisitSubscript(node);
      case K::k_binary_expression: {
        const Node* op = node->at(F::k_operator);
        if (op != nullptr && node->at(F::k_left) != nullptr && node->at(F::k_right) != nullptr) {
          Operands(node, op->text(), node->at(F::k_left), node->at(F::k_right));
        }
        return;
      }
      case K::k_if_statement:
      case K::k_ternary_expression:
        return Tested(node->at(F::k_condition), node->at(F::k_consequence));
      case K::k_while_statement:
      case K::k_do_statement:
        return Tested(node->at(F::k_condition), node->at(F::k_body));
      case K::k_update_expression:
      case K::k_unary_expression:
        return VisitUnary(node);
      case K::k_for_in_statement:
        return VisitForIn(node);
      case K::k_spread_element: {
        const Node* of = node->first_named();
        if (of == nullptr || (node->parent != nullptr && node->parent->is(K::k_object))) return;
        if (checker_.IterationType(checker_.TypeOf(of))->open())
          Add(of, "is nothing to iterate over");
        return;
      }
      case K::k_as_expression:
      case K::k_type_assertion:
        return VisitCast(node);
      case K::k_class_declaration: {
        const Node* heritage = node->first(K::k_class_heritage);
        if (heritage != nullptr) Add(heritage, "is not in the subset");
        return;
      }
      case K::k_object:
        return VisitObject(node);
      case K::k_type_identifier:
        if (HostName(node->text())) Add(node, "belongs to the host");
        return;
      default:
        return;
    }
  }

  void VisitName(const Node* node) {
    const Node* parent = node->parent;
    if (parent == nullptr) return;
    if (HostName(node->text()) &&
        checker_.Resolve(node->text(), node, kValue | kTypeName) == nullptr) {
      return Add(node, "belongs to the host");
    }
    // Only a type, used as a value.
    Symbol* symbol = checker_.Resolve(node->text(), node, kValue);
    if (symbol == nullptr) {
      if (node->text() != "undefined" && node->text() != "arguments" &&
          checker_.Resolve(node->text(), node, kTypeName) != nullptr &&
          !parent->is(K::k_type_predicate)) {
        Add(node, "is only a type");
      }
      if (node->text() == "arguments") Add(node, "is not in the subset");
      return;
    }
    if (symbol->is(kLib) || !symbol->is(kLet | kConst | kClass)) return;
    // Block-scoped, used above its declaration in the same function.
    const Node* declared =
        symbol->values.empty() ? symbol->declarations.front() : symbol->values.front();
    if (declared->tree != node->tree || node->start >= declared->start) return;
    const Node* a = node;
    while (a != nullptr && !IsFunction(a) && !a->is(K::k_program)) a = a->parent;
    const Node* b = declared;
    while (b != nullptr && !IsFunction(b) && !b->is(K::k_program)) b = b->parent;
    if (a == b) Add(node, "is used above its declaration");
  }

  void Redeclared(const Node* node) {
    const Node* name = node->at(F::k_name);
    if (name == nullptr || !name->is(K::k_identifier)) return;
    Symbol* symbol = checker_.Resolve(name->text(), name, kValue);
    if (symbol == nullptr || symbol->is(kLib)) return;
    if (symbol->is(kLet | kConst) &&
        symbol->values.size() + (symbol->is(kFunctionName) ? 1 : 0) > 1) {
      return Add(name, "is declared twice");
    }
    if (symbol->is(kParameter) && symbol->values.size() > 1) return Add(name, "is declared twice");
    if (node->is(K::k_function_declaration)) {
      size_t bodies = 0;
      for (const Node* d : symbol->declarations) bodies += d->at(F::k_body) != nullptr ? 1 : 0;
      if (bodies > 1) return Add(name, "is declared twice");
      // The library's global function of this name.
    }
    if (symbol->is(kVariable) && symbol->values.size() > 1 && !symbol->is(kParameter)) {
      return Add(name, "is declared twice");
    }
    // A script's globals share a scope with the library's.
    if (node->parent != nullptr) {
      const Node* home = node->is(K::k_variable_declarator) ? node->parent->parent : node->parent;
      Symbol* lib = checker_.Global(name->text());
      if (home != nullptr && home->is(K::k_program) && lib != nullptr && lib->is(kValue)) {
        Add(name, "is a name of the library");
      }
    }
  }

  Checker& checker_;
  TypePool& pool_;
  std::vector<Problem>& problems_;
};

}  // namespace

void FindStrictProblems(Checker& checker, std::vector<Problem>& problems) {
  if (!problems.empty()) return;
  Strict(checker, problems).Walk(checker.tree()->root());
}

}  // namespace pawl::monitors::ts
