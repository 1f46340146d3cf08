// What conditions and assignments tell about a variable where it is used. From the use upward: at
// each level the statements before it in the same block, then the condition that led there. A
// reference is a name or a path such as `a.b.c`; its type before a node follows from its type
// before the node's parent.
//
// Where a loop assigns to the reference, nothing from before the loop is kept. In a closure only
// what is never assigned again keeps what was known outside.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

using K = Kind;
using F = Field;

namespace {

bool IsFunctionNode(const Node* node) {
  switch (node->kind) {
    case K::k_arrow_function:
    case K::k_function_expression:
    case K::k_function_declaration:
    case K::k_generator_function:
    case K::k_generator_function_declaration:
    case K::k_method_definition:
      return true;
    default:
      return false;
  }
}

const Node* Unwrapped(const Node* node) {
  while (node != nullptr &&
         (node->is(K::k_parenthesized_expression) || node->is(K::k_non_null_expression))) {
    node = node->first_named();
  }
  return node;
}

std::string_view Operator(const Node* node) {
  const Node* op = node->at(F::k_operator);
  return op == nullptr ? "" : op->text();
}

}  // namespace

bool Checker::IsReference(const Node* node) const {
  // Longer paths are not followed.
  constexpr int kMostLinks = 48;
  for (int links = 0; node != nullptr && links < kMostLinks; ++links) {
    switch (node->kind) {
      case K::k_identifier:
      case K::k_this:
        return true;
      case K::k_member_expression:
        node = node->at(F::k_object);
        break;
      case K::k_non_null_expression:
      case K::k_parenthesized_expression:
        node = node->first_named();
        break;
      case K::k_subscript_expression: {
        const Node* index = node->at(F::k_index);
        if (index == nullptr ||
            (!index->is(K::k_string) && !index->is(K::k_number) && !index->is(K::k_identifier))) {
          return false;
        }
        node = node->at(F::k_object);
        break;
      }
      default:
        return false;
    }
  }
  return false;
}

std::string Checker::ReferenceKey(const Node* node) {
  node = Unwrapped(node);
  if (node == nullptr || !IsReference(node)) return "";
  switch (node->kind) {
    case K::k_identifier: {
      Symbol* symbol = Resolve(node->text(), node, kValue);
      return std::string(node->text()) + "#" + std::to_string(symbol == nullptr ? 0 : symbol->id);
    }
    case K::k_this:
      return "this";
    case K::k_member_expression: {
      const std::string object = ReferenceKey(node->at(F::k_object));
      return object.empty() ? "" : object + "." + std::string(node->at(F::k_property)->text());
    }
    case K::k_subscript_expression: {
      const std::string object = ReferenceKey(node->at(F::k_object));
      const Node* index = node->at(F::k_index);
      if (index->is(K::k_identifier)) {
        Symbol* symbol = Resolve(index->text(), index, kValue);
        if (symbol == nullptr || !symbol->is(kConst | kParameter)) return "";
        return object + "[" + ReferenceKey(index) + "]";
      }
      return object.empty() ? "" : object + "[" + std::string(index->text()) + "]";
    }
    default:
      return "";
  }
}

TypeRef Checker::FilterTruthy(TypeRef type, bool truthy) {
  std::vector<TypeRef> parts;
  TypePool::Each(type, [&](TypeRef part) {
    switch (part->kind) {
      case T::kNull:
      case T::kUndefined:
      case T::kVoid:
        if (!truthy) parts.push_back(part);
        return;
      case T::kBooleanLiteral:
        if ((part->text == "true") == truthy) parts.push_back(part);
        return;
      case T::kBoolean:
        parts.push_back(truthy ? pool_.true_ : pool_.false_);
        return;
      case T::kNumberLiteral:
        if ((part->number != 0) == truthy) parts.push_back(part);
        return;
      case T::kStringLiteral:
        if (part->text.empty() != truthy) parts.push_back(part);
        return;
      case T::kNumber:
        parts.push_back(truthy ? part : part);
        return;
      case T::kRef:
        if (part->symbol->is(kEnum) || truthy) parts.push_back(part);
        return;
      case T::kShape:
      case T::kFunction:
      case T::kTuple:
      case T::kStatic:
      case T::kObject:
      case T::kSymbol:
        if (truthy) parts.push_back(part);
        return;
      default:
        parts.push_back(part);
    }
  });
  return pool_.Union(std::move(parts));
}

TypeRef Checker::NarrowBy(const Node* condition, bool truth, const std::string& key, TypeRef type,
                          const Node* reference) {
  condition = Unwrapped(condition);
  if (condition == nullptr || depth_ > 60) return type;
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);
  if (ReferenceKey(condition) == key && IsReference(condition)) return FilterTruthy(type, truth);
  // a?.b is truthy: a is there.
  const auto reaches = [&](const Node* node) {
    node = Unwrapped(node);
    while (node != nullptr && (node->is(K::k_member_expression) || node->is(K::k_call_expression) ||
                               node->is(K::k_subscript_expression))) {
      const bool chain = node->first(K::k_optional_chain) != nullptr;
      node = Unwrapped(node->is(K::k_call_expression) ? node->at(F::k_function)
                                                      : node->at(F::k_object));
      if (chain && node != nullptr && ReferenceKey(node) == key) return true;
    }
    return false;
  };
  const auto keep = [&](const std::function<bool(TypeRef)>& test) {
    std::vector<TypeRef> parts;
    TypePool::Each(type, [&](TypeRef part) {
      if (test(part)) parts.push_back(part);
    });
    return pool_.Union(std::move(parts));
  };
  if (truth && reaches(condition)) type = pool_.NonNull(type);
  if (condition->is(K::k_unary_expression) && Operator(condition) == "!") {
    return NarrowBy(condition->at(F::k_argument), !truth, key, type, reference);
  }
  if (condition->is(K::k_assignment_expression)) {
    const Node* left = condition->at(F::k_left);
    if (left != nullptr && ReferenceKey(left) == key) return FilterTruthy(type, truth);
    return type;
  }
  if (condition->is(K::k_call_expression)) {
    const Node* function = condition->at(F::k_function);
    if (function == nullptr) return type;
    if (function->is(K::k_member_expression)) {
      // every(isDog): this is Dog[]; what it makes of the object is not computed.
      const std::string object = ReferenceKey(function->at(F::k_object));
      const bool about = !object.empty() && (key == object || key.starts_with(object + ".") ||
                                             key.starts_with(object + "["));
      const auto of =
          about ? CallSignatures(TypeOf(function), false) : std::vector<const Signature*>();
      const bool guards =
          std::any_of(of.begin(), of.end(), [](const Signature* s) { return s->guards == "this"; });
      if (guards && truth) return pool_.open;
    }
    const Node* list = condition->at(F::k_arguments);
    const Node* argument = list == nullptr ? nullptr : list->first_named();
    if (argument == nullptr || ReferenceKey(argument) != key) return type;
    if (function->text() == "Array.isArray") {
      if (type->is(T::kUnknown) || type->loose()) return truth ? ArrayOf(pool_.any) : type;
      const TypeRef kept = keep([&](TypeRef part) {
        const bool array = part->is(T::kTuple) || part->is(T::kOpen) || part->is(T::kParam) ||
                           (part->is(T::kRef) && (part->symbol->name == "Array" ||
                                                  part->symbol->name == "ReadonlyArray"));
        return array == truth || part->is(T::kOpen) || part->is(T::kParam);
      });
      return truth && kept->is(T::kNever) ? ArrayOf(pool_.any) : kept;
    }
    const auto signatures = CallSignatures(TypeOf(function), false);
    if (signatures.size() != 1 || signatures[0]->guarded == nullptr) return type;
    const TypeRef to = signatures[0]->guarded;
    if (to->open()) return truth ? pool_.open : type;
    if (!signatures[0]->type_params.empty() || HasParams(to)) return pool_.open;
    if (truth) {
      const TypeRef matching =
          keep([&](TypeRef part) { return Assignable(part, to) == Fits::kYes; });
      return matching->is(T::kNever) ? to : matching;
    }
    return keep([&](TypeRef part) { return Assignable(part, to) != Fits::kYes; });
  }
  if (!condition->is(K::k_binary_expression)) return type;
  const std::string_view op = Operator(condition);
  const Node* left = Unwrapped(condition->at(F::k_left));
  const Node* right = Unwrapped(condition->at(F::k_right));
  if (left == nullptr || right == nullptr) return type;
  if (op == "&&" || op == "||") {
    const bool both = (op == "&&") == truth;
    if (both)
      return NarrowBy(right, truth, key, NarrowBy(left, truth, key, type, reference), reference);
    return pool_.Union(
        NarrowBy(left, truth, key, type, reference),
        NarrowBy(right, truth, key, NarrowBy(left, !truth, key, type, reference), reference));
  }
  if (op == "instanceof") {
    if (ReferenceKey(left) != key) return type;
    const TypeRef of = TypeOf(right);
    TypeRef instance = pool_.open;
    if (of->is(T::kStatic) && of->symbol->is(kClass)) {
      instance =
          DeclaredType(of->symbol, std::vector<TypeRef>(ParamsOf(of->symbol).size(), pool_.any));
    } else if (right->is(K::k_identifier)) {
      Symbol* symbol = Global(right->text());
      if (symbol != nullptr && symbol->is(kInterface)) {
        instance = DeclaredType(symbol, std::vector<TypeRef>(ParamsOf(symbol).size(), pool_.any));
      }
    }
    if (instance->open()) return pool_.open;
    if (truth) {
      const TypeRef matching =
          keep([&](TypeRef part) { return Assignable(part, instance) == Fits::kYes; });
      return matching->is(T::kNever) ? instance : matching;
    }
    return keep([&](TypeRef part) {
      return part->is(T::kAny) || Assignable(part, instance) != Fits::kYes;
    });
  }
  if (op == "in") {
    if (ReferenceKey(right) != key) return type;
    const TypeRef name = TypeOf(left);
    if (!name->is(T::kStringLiteral)) return type;
    if (!type->is(T::kUnion)) return truth ? pool_.open : type;
    return keep([&](TypeRef part) {
      return Member(part, name->text).has_value() == truth || part->open();
    });
  }
  const bool equal = op == "===" || op == "==";
  if (!equal && op != "!==" && op != "!=") {
    // a < b, with a chain on one side, says that it is there.
    if (truth && (reaches(left) || reaches(right))) return pool_.NonNull(type);
    return type;
  }
  const bool same = equal == truth;
  const bool loose = op == "==" || op == "!=";
  // typeof x === "string"
  for (const auto& [a, b] : {std::pair(left, right), std::pair(right, left)}) {
    if (a->is(K::k_unary_expression) && Operator(a) == "typeof") {
      const Node* of = a->at(F::k_argument);
      if (of == nullptr) continue;
      if (ReferenceKey(of) != key) {
        if (same && reaches(of) && b->text().find("undefined") == std::string_view::npos)
          type = pool_.NonNull(type);
        continue;
      }
      const TypeRef name = TypeOf(b);
      if (!name->is(T::kStringLiteral)) return type;
      const std::string& word = name->text;
      const auto is = [&](TypeRef part) -> std::optional<bool> {
        switch (part->kind) {
          case T::kNumber:
          case T::kNumberLiteral:
            return word == "number";
          case T::kString:
          case T::kStringLiteral:
            return word == "string";
          case T::kBoolean:
          case T::kBooleanLiteral:
            return word == "boolean";
          case T::kBigInt:
          case T::kBigIntLiteral:
            return word == "bigint";
          case T::kSymbol:
            return word == "symbol";
          case T::kUndefined:
          case T::kVoid:
            return word == "undefined";
          case T::kNull:
          case T::kTuple:
          case T::kObject:
            return word == "object";
          case T::kFunction:
          case T::kStatic:
            return word == "function";
          case T::kShape:
            return CallSignatures(part, false).empty() ? word == "object" : word == "function";
          case T::kRef:
            if (part->symbol->is(kEnum)) return std::nullopt;
            if (part->symbol->name == "Function") return word == "function";
            return word == "object";
          default:
            return std::nullopt;
        }
      };
      if (type->is(T::kUnknown) || type->is(T::kAny)) {
        if (!same) return type;
        return word == "number"                            ? pool_.number
               : word == "string"                          ? pool_.string
               : word == "boolean"                         ? pool_.boolean
               : word == "bigint"                          ? pool_.bigint
               : word == "undefined"                       ? pool_.undefined
               : word == "symbol"                          ? pool_.symbol
               : word == "object" && type->is(T::kUnknown) ? pool_.Union(pool_.object, pool_.null)
               : type->is(T::kAny)                         ? type
                                                           : pool_.open;
      }
      if (type->is(T::kParam)) return pool_.open;
      return keep([&](TypeRef part) {
        const auto answer = is(part);
        return !answer || *answer == same;
      });
    }
  }
  for (const auto& [a, b] : {std::pair(left, right), std::pair(right, left)}) {
    if (ReferenceKey(a) == key) {
      const TypeRef other = pool_.Regular(TypeOf(b));
      if (other->is(T::kNull) || other->is(T::kUndefined)) {
        if (type->loose() || type->is(T::kUnknown)) return type;
        return keep([&](TypeRef part) {
          const bool nothing = part->is(T::kNull) || part->is(T::kUndefined) || part->is(T::kVoid);
          const bool match = loose ? nothing : part->kind == other->kind;
          if (part->is(T::kOpen) || part->is(T::kParam)) return true;
          return match == same;
        });
      }
      if (other->literal() || other->is(T::kEnumMember)) {
        if (same) {
          const TypeRef fit = keep([&](TypeRef part) {
            return Assignable(other, part) != Fits::kNo || Assignable(part, other) != Fits::kNo;
          });
          if (fit->is(T::kString) || fit->is(T::kNumber)) return other;
          return fit;
        }
        if (type->is(T::kBoolean)) return other->text == "true" ? pool_.false_ : pool_.true_;
        return keep([&](TypeRef part) { return pool_.Regular(part) != other; });
      }
      if (same && !other->loose()) {
        // Equal to something that is never null.
        bool nullable = other->is(T::kUnknown) || other->is(T::kParam);
        TypePool::Each(other, [&](TypeRef part) {
          nullable = nullable || part->is(T::kNull) || part->is(T::kUndefined);
        });
        if (!nullable) return pool_.NonNull(type);
      }
      return type;
    }
    // x.kind === "a": the parts whose kind may be "a".
    if (a->is(K::k_member_expression) && a->at(F::k_object) != nullptr &&
        ReferenceKey(a->at(F::k_object)) == key) {
      const TypeRef other = pool_.Regular(TypeOf(b));
      const std::string name(a->at(F::k_property)->text());
      const bool chain = a->first(K::k_optional_chain) != nullptr;
      if (chain && same && !other->is(T::kUndefined) && !other->loose()) type = pool_.NonNull(type);
      if (!type->is(T::kUnion) || !(other->literal() || other->is(T::kUndefined) ||
                                    other->is(T::kNull) || other->is(T::kEnumMember))) {
        return type;
      }
      return keep([&](TypeRef part) {
        if (part->is(T::kNull) || part->is(T::kUndefined))
          return chain ? !same || other->is(T::kUndefined) : true;
        const auto member = Member(part, name);
        if (!member) return true;
        const TypeRef of = pool_.Regular(TypeOfProperty(*member));
        if (same) return Comparable(of, other) != Fits::kNo;
        return of != other;
      });
    }
    if (reaches(a)) {
      const TypeRef other = TypeOf(b);
      const bool nothing = other->is(T::kUndefined) || (loose && other->is(T::kNull));
      if (same != nothing && !other->loose()) return pool_.NonNull(type);
    }
  }
  return type;
}

bool Checker::MentionsAssignment(const Node* node, const std::string& key) {
  const size_t mark = key.find('#');
  const std::string root = key.substr(0, mark == std::string::npos ? key.size() : mark);
  if (node->text().find(root) == std::string_view::npos) return false;
  Work::Bytes(node->end - node->start);
  std::vector<const Node*> todo = {node};
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    // A chain of operators would be searched again and again.
    const bool chained = n->parent != nullptr && n->kind == n->parent->kind;
    if (!chained) Work::Bytes(n->end - n->start);
    if (!chained && n->text().find(root) == std::string_view::npos) continue;
    if (n->is(K::k_assignment_expression) || n->is(K::k_augmented_assignment_expression)) {
      const Node* left = n->at(F::k_left);
      if (left != nullptr) {
        const std::string assigned = ReferenceKey(left);
        if (!assigned.empty() && key.starts_with(assigned)) return true;
        if (left->is(K::k_array_pattern) || left->is(K::k_object_pattern)) {
          if (left->text().find(root) != std::string_view::npos) return true;
        }
      }
    }
    if (n->is(K::k_update_expression)) {
      const Node* argument = n->at(F::k_argument);
      if (argument != nullptr && ReferenceKey(argument) == key) return true;
    }
    if (n->is(K::k_for_in_statement) && n->at(F::k_kind) == nullptr &&
        n->at(F::k_left) != nullptr && ReferenceKey(n->at(F::k_left)) == key) {
      return true;
    }
    for (const Node& kid : n->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return false;
}

// The type behind a statement, given the one before it. `before` stands for the reference's
// declared type.
TypeRef Checker::AssignedIn(const Node* s, const std::string& key, const Node* reference,
                            TypeRef type) {
  const size_t mark = key.find_first_of("#.[");
  const std::string root = key.substr(0, mark);
  const Work::Deeper deeper;
  Work::Bytes(s->end - s->start);
  if (s->text().find(root) == std::string_view::npos) return type;
  const TypeRef declared = assumed_declared_;
  switch (s->kind) {
    case K::k_lexical_declaration:
    case K::k_variable_declaration: {
      for (const Node& d : s->kids()) {
        if (!d.is(K::k_variable_declarator)) continue;
        const Node* name = d.at(F::k_name);
        const Node* value = d.at(F::k_value);
        if (name != nullptr && name->is(K::k_identifier) && ReferenceKey(name) == key) {
          if (value == nullptr || !declared->is(T::kUnion) || d.at(F::k_type) == nullptr)
            return declared;
          return AssignNarrow(declared, TypeOf(value));
        }
        if (value != nullptr && MentionsAssignment(value, key)) return declared;
      }
      return type;
    }
    case K::k_expression_statement: {
      const Node* e = s->first_named();
      if (e == nullptr) return type;
      if (e->is(K::k_assignment_expression)) {
        const Node* left = e->at(F::k_left);
        const std::string assigned = left == nullptr ? "" : ReferenceKey(left);
        if (assigned == key) return AssignNarrow(declared, TypeOf(e->at(F::k_right)));
      }
      if (e->is(K::k_call_expression)) {
        const auto signatures = CallSignatures(TypeOf(e->at(F::k_function)), false);
        if (signatures.size() == 1 && signatures[0]->asserts) return pool_.open;
      }
      return MentionsAssignment(e, key) ? declared : type;
    }
    case K::k_if_statement: {
      const Node* condition = s->at(F::k_condition);
      const Node* then = s->at(F::k_consequence);
      const Node* otherwise = s->at(F::k_alternative);
      if (condition == nullptr || then == nullptr) return type;
      if (MentionsAssignment(condition, key)) return declared;
      std::vector<TypeRef> parts;
      if (EndReachable(then)) {
        parts.push_back(
            AssignedIn(then, key, reference, NarrowBy(condition, true, key, type, reference)));
      }
      const TypeRef left = NarrowBy(condition, false, key, type, reference);
      const Node* other = otherwise == nullptr ? nullptr : otherwise->first_named();
      if (other == nullptr) {
        parts.push_back(left);
      } else if (EndReachable(other)) {
        parts.push_back(AssignedIn(other, key, reference, left));
      }
      return pool_.Union(std::move(parts));
    }
    case K::k_statement_block: {
      for (const Node& kid : s->kids()) {
        if (kid.named && !kid.is(K::k_comment)) type = AssignedIn(&kid, key, reference, type);
      }
      return type;
    }
    case K::k_while_statement: {
      const bool assigned = MentionsAssignment(s, key);
      const TypeRef at = assigned ? declared : type;
      const Node* condition = s->at(F::k_condition);
      const bool leaves = s->text().find("break") != std::string_view::npos;
      return leaves || condition == nullptr ? at : NarrowBy(condition, false, key, at, reference);
    }
    case K::k_for_statement:
    case K::k_for_in_statement:
    case K::k_do_statement:
    case K::k_try_statement:
    case K::k_switch_statement:
    case K::k_labeled_statement:
      return MentionsAssignment(s, key) ? declared : type;
    default:
      return type;
  }
}

TypeRef Checker::AssignNarrow(TypeRef declared, TypeRef assigned) {
  if (!declared->is(T::kUnion)) return declared;
  if (assigned->loose()) return assigned->open() ? pool_.open : declared;
  std::vector<TypeRef> parts;
  for (TypeRef part : declared->parts) {
    bool taken = false;
    TypePool::Each(assigned, [&](TypeRef a) { taken = taken || Assignable(a, part) != Fits::kNo; });
    if (part->is(T::kBoolean) && !taken) {
      TypePool::Each(assigned, [&](TypeRef a) { taken = taken || a->is(T::kBooleanLiteral); });
    }
    if (taken) parts.push_back(part);
  }
  return parts.empty() ? declared : pool_.Union(std::move(parts));
}

TypeRef Checker::FlowBefore(const Node* node, const std::string& key, const Node* stop,
                            Symbol* root, const Node* reference) {
  const TypeRef declared = assumed_declared_;
  const Node* parent = node->parent;
  if (parent == nullptr || depth_ > 90) return declared;
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);
  if (node == stop) return declared;
  if (IsFunctionNode(node)) {
    // A closure runs later.
    if (root == nullptr) return declared;
    bool reassigned = false;
    if (!root->is(kConst)) {
      const Node* home = root->values.empty() ? nullptr : root->values.front();
      while (home != nullptr && !IsFunctionNode(home) && !home->is(K::k_program))
        home = home->parent;
      const std::string name = root->name + "#" + std::to_string(root->id);
      reassigned = home == nullptr || MentionsAssignment(home, name);
    }
    if (reassigned || node->is(K::k_function_declaration) || node->is(K::k_method_definition))
      return declared;
  }
  TypeRef type = FlowBefore(parent, key, stop, root, reference);
  switch (parent->kind) {
    case K::k_statement_block:
    case K::k_program:
    case K::k_switch_case:
    case K::k_switch_default:
      for (const Node& kid : parent->kids()) {
        if (&kid == node) break;
        if (kid.named && !kid.is(K::k_comment)) type = AssignedIn(&kid, key, reference, type);
      }
      if (parent->is(K::k_switch_case) || parent->is(K::k_switch_default)) {
        if (node->field == F::k_value) return type;
      }
      return type;
    case K::k_switch_body: {
      const Node* statement = parent->parent;
      const Node* value = statement == nullptr ? nullptr : Unwrapped(statement->at(F::k_value));
      if (value == nullptr) return type;
      const bool direct = ReferenceKey(value) == key;
      const bool through = value->is(K::k_member_expression) && value->at(F::k_object) != nullptr &&
                           ReferenceKey(value->at(F::k_object)) == key;
      const bool truthy = value->is(K::kTrue);
      if (truthy && node->is(K::k_switch_case) && node->at(F::k_value) != nullptr) {
        return type->is(T::kUnion) ? NarrowBy(node->at(F::k_value), true, key, type, reference)
                                   : type;
      }
      if (!direct && !through) return MentionsAssignment(parent, key) ? declared : type;
      std::vector<TypeRef> labels;
      std::vector<TypeRef> earlier;
      bool falls = false;
      for (const Node& label : parent->kids()) {
        if (!label.is(K::k_switch_case) && !label.is(K::k_switch_default)) continue;
        const Node* of = label.at(F::k_value);
        const TypeRef one = of == nullptr ? nullptr : pool_.Regular(TypeOf(of));
        if (&label == node) {
          if (!falls) labels.clear();
          if (one != nullptr) labels.push_back(one);
          break;
        }
        if (one != nullptr) earlier.push_back(one);
        bool end = true;
        for (const Node& kid : label.kids()) {
          if (kid.field == F::k_body && !EndReachable(&kid)) end = false;
        }
        if (!falls) labels.clear();
        if (one != nullptr) labels.push_back(one);
        falls = end;
      }
      const auto matches = [&](TypeRef part, const std::vector<TypeRef>& among, bool exact) {
        TypeRef at = part;
        if (through) {
          const auto member = Member(part, value->at(F::k_property)->text());
          if (!member) return !exact;
          at = pool_.Regular(TypeOfProperty(*member));
        }
        for (TypeRef one : among) {
          if (exact ? at == one : Comparable(at, one) != Fits::kNo) return true;
        }
        return false;
      };
      std::vector<TypeRef> parts;
      TypePool::Each(type, [&](TypeRef part) {
        if (node->is(K::k_switch_default) ? !matches(pool_.Regular(part), earlier, true)
                                          : matches(pool_.Regular(part), labels, false)) {
          parts.push_back(part);
        }
      });
      return node->is(K::k_switch_default) || type->is(T::kUnion) ? pool_.Union(std::move(parts))
                                                                  : type;
    }
    case K::k_if_statement:
      if (node->field == F::k_condition) return type;
      if (MentionsAssignment(parent->at(F::k_condition), key)) type = declared;
      return NarrowBy(parent->at(F::k_condition), node->field == F::k_consequence, key, type,
                      reference);
    case K::k_ternary_expression:
      if (node->field == F::k_condition) return type;
      return NarrowBy(parent->at(F::k_condition), node->field == F::k_consequence, key, type,
                      reference);
    case K::k_binary_expression: {
      const std::string_view op = Operator(parent);
      if (node->field != F::k_right) return type;
      if (op == "&&") return NarrowBy(parent->at(F::k_left), true, key, type, reference);
      if (op == "||") return NarrowBy(parent->at(F::k_left), false, key, type, reference);
      return type;
    }
    case K::k_while_statement:
    case K::k_do_statement:
    case K::k_for_statement:
    case K::k_for_in_statement: {
      if (parent->is(K::k_for_statement) && node->field == F::k_initializer) return type;
      if (parent->is(K::k_for_in_statement) && node->field == F::k_right) return type;
      if (MentionsAssignment(parent, key)) type = declared;
      if (node->field == F::k_condition || parent->is(K::k_do_statement)) return type;
      const Node* condition = parent->at(F::k_condition);
      if (condition == nullptr) return type;
      if (condition->is(K::k_expression_statement)) condition = condition->first_named();
      return condition == nullptr ? type : NarrowBy(condition, true, key, type, reference);
    }
    case K::k_try_statement:
      return node->field != F::k_body && MentionsAssignment(parent->at(F::k_body), key) ? declared
                                                                                        : type;
    default:
      return type;
  }
}

TypeRef Checker::Narrowed(const Node* reference, TypeRef declared) {
  // Nothing to learn about what is one thing already, or is being assigned to.
  if (declared->open() || declared->is(T::kNever)) return declared;
  const bool narrowable = declared->is(T::kUnion) || declared->is(T::kUnknown) ||
                          declared->is(T::kAny) || declared->is(T::kParam) ||
                          declared->is(T::kRef) || declared->is(T::kObject) ||
                          declared->is(T::kShape) || declared->is(T::kBoolean);
  if (!narrowable || reference->tree != tree_.get()) return declared;
  if (reference->field == F::k_left && reference->parent != nullptr &&
      reference->parent->is(K::k_assignment_expression)) {
    return declared;
  }
  const std::string key = ReferenceKey(reference);
  if (key.empty()) return declared;
  const Node* base = Unwrapped(reference);
  while (base->is(K::k_member_expression) || base->is(K::k_subscript_expression)) {
    base = Unwrapped(base->at(F::k_object));
  }
  Symbol* root = base->is(K::k_identifier) ? Resolve(base->text(), base, kValue) : nullptr;
  const Node* stop = nullptr;
  if (root != nullptr && !root->values.empty()) {
    // The function whose parameter it is, or the block that declares it.
    stop = root->values.front();
    while (stop != nullptr && !IsFunctionNode(stop) && !stop->is(K::k_statement_block) &&
           !stop->is(K::k_program) && !stop->is(K::k_for_statement) &&
           !stop->is(K::k_for_in_statement) && !stop->is(K::k_catch_clause)) {
      stop = stop->parent;
    }
  }
  const TypeRef before = assumed_declared_;
  assumed_declared_ = declared;
  const TypeRef type = FlowBefore(reference, key, stop, root, reference);
  assumed_declared_ = before;
  return type;
}

}  // namespace pawl::monitors::ts
