// What conditions and assignments tell about a variable where it is used. From the use upward: at
// each level the statements before it in the same block, then the condition that led there. A
// reference is a name or a path such as `a.b.c`; its type before a node follows from its type
// before the node's parent. What a condition tells is a table of kinds of conditions
// (Narrowing::By), with a function for each kind.
//
// Where a loop assigns to the reference, nothing from before the loop is kept. In a closure only
// what is never assigned again keeps what was known outside.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {
namespace {

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

bool Nullish(TypeRef type) { return type->is(T::kNull) || type->is(T::kUndefined); }

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

// The type of one reference, from its declared type.
class Narrowing {
 public:
  // `key`: of the reference. `root`: the variable that it begins with, nullptr: `this`. `stop`: the
  // node that declares the root, nullptr: not known.
  Narrowing(Checker& checker, std::string key, TypeRef declared, Symbol* root, const Node* stop)
      : checker_(checker),
        pool_(checker.pool_),
        key_(std::move(key)),
        declared_(declared),
        root_(root),
        stop_(stop) {}

  // The type where control flow reaches the node.
  TypeRef Before(const Node* node) {
    const Node* parent = node->parent;
    if (parent == nullptr || checker_.depth_ > 90) return declared_;
    const Nested nested(checker_.depth_);
    if (node == stop_ || (IsFunction(node) && !KnownInClosure(node))) return declared_;
    TypeRef type = Before(parent);
    switch (parent->kind) {
      case K::k_statement_block:
      case K::k_program:
      case K::k_switch_case:
      case K::k_switch_default:
        for (const Node& kid : parent->kids()) {
          if (&kid == node) break;
          if (kid.named && !kid.is(K::k_comment)) type = After(&kid, type);
        }
        return type;
      case K::k_switch_body:
        return InSwitch(parent, node, type);
      case K::k_if_statement:
        if (node->field == F::k_condition) return type;
        if (MentionsAssignment(parent->at(F::k_condition))) type = declared_;
        return By(parent->at(F::k_condition), node->field == F::k_consequence, type);
      case K::k_ternary_expression:
        if (node->field == F::k_condition) return type;
        return By(parent->at(F::k_condition), node->field == F::k_consequence, type);
      case K::k_binary_expression: {
        const std::string_view op = Operator(parent);
        if (node->field != F::k_right || (op != "&&" && op != "||")) return type;
        return By(parent->at(F::k_left), op == "&&", type);
      }
      case K::k_while_statement:
      case K::k_do_statement:
      case K::k_for_statement:
      case K::k_for_in_statement:
        return InLoop(parent, node, type);
      case K::k_try_statement:
        return node->field != F::k_body && MentionsAssignment(parent->at(F::k_body)) ? declared_
                                                                                     : type;
      default:
        return type;
    }
  }

 private:
  // A condition that was found to be true or false.
  struct Condition {
    const Node* node;
    bool truth;
    std::string_view op;         // of unary and binary expressions
    const Node* left = nullptr;  // of binary expressions
    const Node* right = nullptr;
  };
  // `a` was found to equal `b` (same), or not to. loose: by == and !=.
  struct Equation {
    const Node* a;
    const Node* b;
    bool same;
    bool loose;
  };
  using Test = std::function<bool(TypeRef)>;

  // The type after the condition, given the one before it.
  TypeRef By(const Node* condition, bool truth, TypeRef type) {
    struct Row {
      Kind kind;
      std::string_view op;  // empty: any
      TypeRef (Narrowing::*narrow)(const Condition&, TypeRef);
    };
    static constexpr Row kRows[] = {
        {K::k_unary_expression, "!", &Narrowing::ByNegation},
        {K::k_assignment_expression, "", &Narrowing::ByAssignment},
        {K::k_call_expression, "", &Narrowing::ByCall},
        {K::k_binary_expression, "&&", &Narrowing::ByBothOrEither},
        {K::k_binary_expression, "||", &Narrowing::ByBothOrEither},
        {K::k_binary_expression, "instanceof", &Narrowing::ByInstanceOf},
        {K::k_binary_expression, "in", &Narrowing::ByIn},
        {K::k_binary_expression, "===", &Narrowing::ByEquality},
        {K::k_binary_expression, "!==", &Narrowing::ByEquality},
        {K::k_binary_expression, "==", &Narrowing::ByEquality},
        {K::k_binary_expression, "!=", &Narrowing::ByEquality},
        {K::k_binary_expression, "", &Narrowing::ByOrder},
    };
    condition = Unwrapped(condition);
    if (condition == nullptr || checker_.depth_ > 60) return type;
    const Nested nested(checker_.depth_);
    if (Is(condition) && checker_.IsReference(condition)) return checker_.FilterTruthy(type, truth);
    if (truth && Reaches(condition)) type = pool_.NonNull(type);
    Condition c{.node = condition, .truth = truth, .op = {}};
    const bool binary = condition->is(K::k_binary_expression);
    if (binary || condition->is(K::k_unary_expression)) c.op = Operator(condition);
    if (binary) {
      c.left = Unwrapped(condition->at(F::k_left));
      c.right = Unwrapped(condition->at(F::k_right));
      if (c.left == nullptr || c.right == nullptr) return type;
    }
    for (const Row& row : kRows) {
      if (condition->is(row.kind) && (row.op.empty() || row.op == c.op))
        return (this->*row.narrow)(c, type);
    }
    return type;
  }

  TypeRef ByNegation(const Condition& c, TypeRef type) {
    return By(c.node->at(F::k_argument), !c.truth, type);
  }

  TypeRef ByAssignment(const Condition& c, TypeRef type) {
    const Node* left = c.node->at(F::k_left);
    return left != nullptr && Is(left) ? checker_.FilterTruthy(type, c.truth) : type;
  }

  // A function that returns `x is T`.
  TypeRef ByCall(const Condition& c, TypeRef type) {
    const Node* function = c.node->at(F::k_function);
    if (function == nullptr) return type;
    if (GuardsThis(function) && c.truth) return ByThis(function, type);
    const Node* list = c.node->at(F::k_arguments);
    const Node* argument = list == nullptr ? nullptr : list->first_named();
    if (argument == nullptr || !Is(argument)) return type;
    if (function->text() == "Array.isArray") return ByIsArray(c.truth, type);
    const auto signatures = checker_.CallSignatures(checker_.TypeOf(function), false);
    if (signatures.size() != 1 || signatures[0]->guarded == nullptr) return type;
    const TypeRef to = signatures[0]->guarded;
    if (to->open()) return c.truth ? pool_.open : type;
    if (!signatures[0]->type_params.empty() || checker_.HasParams(to)) return pool_.open;
    if (c.truth) return Fitting(type, to);
    return Keep(type, [&](TypeRef part) { return checker_.Assignable(part, to) != Fits::kYes; });
  }

  // A method that returns `this is Path<Function>`, where the reference is a Path too.
  TypeRef ByThis(const Node* function, TypeRef type) {
    // The type of a member comes from the object's, which is narrowed already.
    if (checker_.ReferenceKey(function->at(F::k_object)) != key_) return type;
    const auto signatures = checker_.CallSignatures(checker_.TypeOf(function), false);
    if (signatures.size() != 1 || signatures[0]->guarded == nullptr) return pool_.open;
    TypeRef to = signatures[0]->guarded;
    if (!to->is(T::kRef) || !type->is(T::kRef) || to->symbol != type->symbol ||
        to->parts.size() != type->parts.size()) {
      return pool_.open;
    }
    // is<T>(this: Path<T>): this is Path<T & Function>
    const TypeRef self = signatures[0]->self;
    if (self != nullptr && self->is(T::kRef) && self->symbol == type->symbol &&
        self->parts.size() == type->parts.size()) {
      Mapper mapper;
      for (TypeRef param : signatures[0]->type_params) {
        const auto at = std::find(self->parts.begin(), self->parts.end(), param);
        if (at != self->parts.end())
          mapper.emplace_back(param, type->parts[static_cast<size_t>(at - self->parts.begin())]);
      }
      to = checker_.Instantiate(to, mapper);
    }
    if (checker_.HasParams(to)) return pool_.open;
    std::vector<TypeRef> parts;
    for (size_t i = 0; i < to->parts.size(); ++i) {
      std::vector<TypeRef> both = {type->parts[i], to->parts[i]};
      if (to->parts[i]->is(T::kIntersection)) both = to->parts[i]->parts;
      parts.push_back(Narrowest(both));
    }
    return pool_.Ref(to->symbol, std::move(parts));
  }

  // The type that fits all others, or what is all of them.
  TypeRef Narrowest(const std::vector<TypeRef>& types) {
    for (TypeRef one : types) {
      const bool fits = std::all_of(types.begin(), types.end(), [&](TypeRef other) {
        if (one == other || other->loose()) return true;
        bool within = other->is(T::kUnion);
        TypePool::Each(one, [&](TypeRef part) {
          within = within &&
                   std::find(other->parts.begin(), other->parts.end(), part) != other->parts.end();
        });
        return within || checker_.Assignable(one, other) == Fits::kYes;
      });
      if (fits && !one->loose()) return one;
    }
    return pool_.Intersection(types);
  }

  TypeRef ByIsArray(bool truth, TypeRef type) {
    if (type->is(T::kUnknown) || type->loose()) return truth ? checker_.ArrayOf(pool_.any) : type;
    const TypeRef kept = Keep(type, [&](TypeRef part) {
      if (part->is(T::kOpen) || part->is(T::kParam)) return true;
      const bool array = part->is(T::kTuple) ||
                         (part->is(T::kRef) &&
                          (part->symbol->name == "Array" || part->symbol->name == "ReadonlyArray"));
      return array == truth;
    });
    return truth && kept->is(T::kNever) ? checker_.ArrayOf(pool_.any) : kept;
  }

  TypeRef ByBothOrEither(const Condition& c, TypeRef type) {
    const bool both = (c.op == "&&") == c.truth;
    if (both) return By(c.right, c.truth, By(c.left, c.truth, type));
    const TypeRef right = By(c.right, c.truth, By(c.left, !c.truth, type));
    return pool_.Union(By(c.left, c.truth, type), right);
  }

  TypeRef ByInstanceOf(const Condition& c, TypeRef type) {
    if (!Is(c.left)) return type;
    const TypeRef of = checker_.TypeOf(c.right);
    Symbol* symbol = nullptr;
    if (of->is(T::kStatic) && of->symbol->is(kClass)) {
      symbol = of->symbol;
    } else if (c.right->is(K::k_identifier)) {
      symbol = checker_.Global(c.right->text());
      if (symbol != nullptr && !symbol->is(kInterface)) symbol = nullptr;
    }
    if (symbol == nullptr) return pool_.open;
    const TypeRef instance = checker_.DeclaredType(
        symbol, std::vector<TypeRef>(checker_.ParamsOf(symbol).size(), pool_.any));
    if (instance->open()) return pool_.open;
    if (c.truth) return Fitting(type, instance);
    return Keep(type, [&](TypeRef part) {
      return part->is(T::kAny) || checker_.Assignable(part, instance) != Fits::kYes;
    });
  }

  // "name" in x
  TypeRef ByIn(const Condition& c, TypeRef type) {
    if (!Is(c.right)) return type;
    const TypeRef name = checker_.TypeOf(c.left);
    if (!name->is(T::kStringLiteral)) return type;
    if (!type->is(T::kUnion)) return c.truth ? pool_.open : type;
    return Keep(type, [&](TypeRef part) {
      return checker_.Member(part, name->text).has_value() == c.truth || part->open();
    });
  }

  // a?.b < c is true: a is there.
  TypeRef ByOrder(const Condition& c, TypeRef type) {
    return c.truth && (Reaches(c.left) || Reaches(c.right)) ? pool_.NonNull(type) : type;
  }

  TypeRef ByEquality(const Condition& c, TypeRef type) {
    const bool same = (c.op[0] == '=') == c.truth;
    const bool loose = c.op.size() == 2;
    const Equation equations[] = {{c.left, c.right, same, loose}, {c.right, c.left, same, loose}};
    for (const Equation& e : equations) {
      if (ByTypeof(e, type)) return type;
    }
    for (const Equation& e : equations) {
      if (ByValue(e, type) || ByMember(e, type) || ByChain(e, type)) return type;
    }
    return type;
  }

  // These narrow `type`; true: nothing else about the equation is looked at.
  // typeof x === "string"
  bool ByTypeof(const Equation& e, TypeRef& type) {
    if (!e.a->is(K::k_unary_expression) || Operator(e.a) != "typeof") return false;
    const Node* of = e.a->at(F::k_argument);
    if (of == nullptr) return false;
    if (!Is(of)) {
      if (e.same && Reaches(of) && e.b->text().find("undefined") == std::string_view::npos)
        type = pool_.NonNull(type);
      return false;
    }
    const TypeRef name = checker_.TypeOf(e.b);
    if (!name->is(T::kStringLiteral)) return true;
    if (type->is(T::kUnknown) || type->is(T::kAny)) {
      if (e.same) type = OfTypeofWord(name->text, type);
    } else if (type->is(T::kParam)) {
      type = pool_.open;
    } else {
      type = Keep(type, [&](TypeRef part) {
        const auto answer = TypeofIs(part, name->text);
        return !answer || *answer == e.same;
      });
    }
    return true;
  }

  // x === 1, x === null
  bool ByValue(const Equation& e, TypeRef& type) {
    if (!Is(e.a)) return false;
    const TypeRef other = pool_.Regular(checker_.TypeOf(e.b));
    if (Nullish(other)) {
      if (type->loose() || type->is(T::kUnknown)) return true;
      type = Keep(type, [&](TypeRef part) {
        const bool match =
            e.loose ? Nullish(part) || part->is(T::kVoid) : part->kind == other->kind;
        return match == e.same || part->is(T::kOpen) || part->is(T::kParam);
      });
    } else if (other->literal() || other->is(T::kEnumMember)) {
      if (e.same) {
        const TypeRef fit = Keep(type, [&](TypeRef part) {
          return checker_.Assignable(other, part) != Fits::kNo ||
                 checker_.Assignable(part, other) != Fits::kNo;
        });
        type = fit->is(T::kString) || fit->is(T::kNumber) ? other : fit;
      } else if (type->is(T::kBoolean)) {
        type = other->text == "true" ? pool_.false_ : pool_.true_;
      } else {
        type = Keep(type, [&](TypeRef part) { return pool_.Regular(part) != other; });
      }
    } else if (e.same && !other->loose()) {
      // Equal to something that is never null.
      bool nullable = other->is(T::kUnknown) || other->is(T::kParam);
      TypePool::Each(other, [&](TypeRef part) { nullable = nullable || Nullish(part); });
      if (!nullable) type = pool_.NonNull(type);
    }
    return true;
  }

  // x.kind === "a": the parts whose kind may be "a".
  bool ByMember(const Equation& e, TypeRef& type) {
    if (!e.a->is(K::k_member_expression) || e.a->at(F::k_object) == nullptr ||
        !Is(e.a->at(F::k_object))) {
      return false;
    }
    const TypeRef other = pool_.Regular(checker_.TypeOf(e.b));
    const std::string name(e.a->at(F::k_property)->text());
    const bool chain = e.a->first(K::k_optional_chain) != nullptr;
    if (chain && e.same && !other->is(T::kUndefined) && !other->loose()) type = pool_.NonNull(type);
    if (!type->is(T::kUnion) ||
        !(other->literal() || Nullish(other) || other->is(T::kEnumMember))) {
      return true;
    }
    type = Keep(type, [&](TypeRef part) {
      if (Nullish(part)) return !chain || !e.same || other->is(T::kUndefined);
      const auto member = checker_.Member(part, name);
      if (!member) return true;
      const TypeRef of = pool_.Regular(checker_.TypeOfProperty(*member));
      return e.same ? checker_.Comparable(of, other) != Fits::kNo : of != other;
    });
    return true;
  }

  // a?.b.c === 1: a is there.
  bool ByChain(const Equation& e, TypeRef& type) {
    if (!Reaches(e.a)) return false;
    const TypeRef other = checker_.TypeOf(e.b);
    const bool nothing = other->is(T::kUndefined) || (e.loose && other->is(T::kNull));
    if (e.same == nothing || other->loose()) return false;
    type = pool_.NonNull(type);
    return true;
  }

  // What `any` or `unknown` is when typeof gives the word.
  TypeRef OfTypeofWord(const std::string& word, TypeRef type) {
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

  // Whether typeof gives the word for values of the type; nullopt: not known.
  std::optional<bool> TypeofIs(TypeRef part, const std::string& word) {
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
        return word == (checker_.CallSignatures(part, false).empty() ? "object" : "function");
      case T::kRef:
        if (part->symbol->is(kEnum)) return std::nullopt;
        return word == (part->symbol->name == "Function" ? "function" : "object");
      default:
        return std::nullopt;
    }
  }

  // The type after the statement, given the one before it.
  TypeRef After(const Node* s, TypeRef type) {
    const size_t mark = key_.find_first_of("#.[");
    const std::string root = key_.substr(0, mark);
    const Work::Deeper deeper;
    Work::Bytes(s->end - s->start);
    if (s->text().find(root) == std::string_view::npos) return type;
    switch (s->kind) {
      case K::k_lexical_declaration:
      case K::k_variable_declaration:
        return AfterDeclaration(s, type);
      case K::k_expression_statement:
        return AfterExpression(s, type);
      case K::k_if_statement:
        return AfterIf(s, type);
      case K::k_statement_block:
        for (const Node& kid : s->kids()) {
          if (kid.named && !kid.is(K::k_comment)) type = After(&kid, type);
        }
        return type;
      case K::k_while_statement:
        return AfterWhile(s, type);
      case K::k_for_statement:
      case K::k_for_in_statement:
      case K::k_do_statement:
      case K::k_try_statement:
      case K::k_switch_statement:
      case K::k_labeled_statement:
        return MentionsAssignment(s) ? declared_ : type;
      default:
        return type;
    }
  }

  TypeRef AfterDeclaration(const Node* s, TypeRef type) {
    for (const Node& d : s->kids()) {
      if (!d.is(K::k_variable_declarator)) continue;
      const Node* name = d.at(F::k_name);
      const Node* value = d.at(F::k_value);
      if (name != nullptr && name->is(K::k_identifier) && Is(name)) {
        if (value == nullptr || !declared_->is(T::kUnion) || d.at(F::k_type) == nullptr)
          return declared_;
        return Assigned(checker_.TypeOf(value));
      }
      if (value != nullptr && MentionsAssignment(value)) return declared_;
    }
    return type;
  }

  TypeRef AfterExpression(const Node* s, TypeRef type) {
    const Node* e = s->first_named();
    if (e == nullptr) return type;
    if (e->is(K::k_assignment_expression)) {
      const Node* left = e->at(F::k_left);
      if (left != nullptr && Is(left)) return Assigned(checker_.TypeOf(e->at(F::k_right)));
    }
    if (e->is(K::k_call_expression)) {
      const auto signatures = checker_.CallSignatures(checker_.TypeOf(e->at(F::k_function)), false);
      if (signatures.size() == 1 && signatures[0]->asserts) return pool_.open;
    }
    return MentionsAssignment(e) ? declared_ : type;
  }

  TypeRef AfterIf(const Node* s, TypeRef type) {
    const Node* condition = s->at(F::k_condition);
    const Node* then = s->at(F::k_consequence);
    const Node* otherwise = s->at(F::k_alternative);
    if (condition == nullptr || then == nullptr) return type;
    if (MentionsAssignment(condition)) return declared_;
    std::vector<TypeRef> parts;
    if (checker_.EndReachable(then)) parts.push_back(After(then, By(condition, true, type)));
    const TypeRef left = By(condition, false, type);
    const Node* other = otherwise == nullptr ? nullptr : otherwise->first_named();
    if (other == nullptr) {
      parts.push_back(left);
    } else if (checker_.EndReachable(other)) {
      parts.push_back(After(other, left));
    }
    return pool_.Union(std::move(parts));
  }

  TypeRef AfterWhile(const Node* s, TypeRef type) {
    const TypeRef at = MentionsAssignment(s) ? declared_ : type;
    const Node* condition = s->at(F::k_condition);
    const bool leaves = s->text().find("break") != std::string_view::npos;
    return leaves || condition == nullptr ? at : By(condition, false, at);
  }

  // The declared type, after a value was assigned.
  TypeRef Assigned(TypeRef value) {
    if (!declared_->is(T::kUnion)) return declared_;
    if (value->loose()) return value->open() ? pool_.open : declared_;
    std::vector<TypeRef> parts;
    for (TypeRef part : declared_->parts) {
      bool taken = false;
      TypePool::Each(
          value, [&](TypeRef v) { taken = taken || checker_.Assignable(v, part) != Fits::kNo; });
      if (part->is(T::kBoolean) && !taken) {
        TypePool::Each(value, [&](TypeRef v) { taken = taken || v->is(T::kBooleanLiteral); });
      }
      if (taken) parts.push_back(part);
    }
    return parts.empty() ? declared_ : pool_.Union(std::move(parts));
  }

  // In a clause of a switch: the parts that its labels let through, or for `default` those that no
  // label takes.
  TypeRef InSwitch(const Node* body, const Node* clause, TypeRef type) {
    const Node* statement = body->parent;
    const Node* value = statement == nullptr ? nullptr : Unwrapped(statement->at(F::k_value));
    if (value == nullptr) return type;
    const bool direct = Is(value);
    const bool through = value->is(K::k_member_expression) && value->at(F::k_object) != nullptr &&
                         Is(value->at(F::k_object));
    if (value->is(K::kTrue) && clause->is(K::k_switch_case) && clause->at(F::k_value) != nullptr)
      return type->is(T::kUnion) ? By(clause->at(F::k_value), true, type) : type;
    if (!direct && !through) return MentionsAssignment(body) ? declared_ : type;
    std::vector<TypeRef> labels;   // through which the clause is entered
    std::vector<TypeRef> earlier;  // of the clauses before it
    bool falls = false;
    for (const Node& label : body->kids()) {
      if (!label.is(K::k_switch_case) && !label.is(K::k_switch_default)) continue;
      const Node* of = label.at(F::k_value);
      const TypeRef one = of == nullptr ? nullptr : pool_.Regular(checker_.TypeOf(of));
      if (!falls) labels.clear();
      if (one != nullptr) labels.push_back(one);
      if (&label == clause) break;
      if (one != nullptr) earlier.push_back(one);
      falls = true;
      for (const Node& kid : label.kids()) {
        if (kid.field == F::k_body && !checker_.EndReachable(&kid)) falls = false;
      }
    }
    const bool rest = clause->is(K::k_switch_default);
    const auto enters = [&](TypeRef part) {
      TypeRef at = pool_.Regular(part);
      if (through) {
        const auto member = checker_.Member(at, value->at(F::k_property)->text());
        if (!member) return true;
        at = pool_.Regular(checker_.TypeOfProperty(*member));
      }
      for (TypeRef one : rest ? earlier : labels) {
        if (rest ? at == one : checker_.Comparable(at, one) != Fits::kNo) return !rest;
      }
      return rest;
    };
    const TypeRef kept = Keep(type, enters);
    return rest || type->is(T::kUnion) ? kept : type;
  }

  TypeRef InLoop(const Node* loop, const Node* node, TypeRef type) {
    if (loop->is(K::k_for_statement) && node->field == F::k_initializer) return type;
    if (loop->is(K::k_for_in_statement) && node->field == F::k_right) return type;
    if (MentionsAssignment(loop)) type = declared_;
    if (node->field == F::k_condition || loop->is(K::k_do_statement)) return type;
    const Node* condition = loop->at(F::k_condition);
    if (condition == nullptr) return type;
    if (condition->is(K::k_expression_statement)) condition = condition->first_named();
    return condition == nullptr ? type : By(condition, true, type);
  }

  // Whether what is known outside of a closure, which runs later, is known inside.
  bool KnownInClosure(const Node* function) {
    if (root_ == nullptr) return false;
    if (!root_->is(kConst)) {
      const Node* home = root_->values.empty() ? nullptr : root_->values.front();
      while (home != nullptr && !IsFunction(home) && !home->is(K::k_program)) home = home->parent;
      const std::string name = root_->name + "#" + std::to_string(root_->id);
      if (home == nullptr || MentionsAssignment(home, name)) return false;
    }
    return !function->is(K::k_function_declaration) && !function->is(K::k_method_definition);
  }

  bool MentionsAssignment(const Node* node, const std::string& key) {
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
          const std::string assigned = checker_.ReferenceKey(left);
          if (!assigned.empty() && key.starts_with(assigned)) return true;
          if (left->is(K::k_array_pattern) || left->is(K::k_object_pattern)) {
            if (left->text().find(root) != std::string_view::npos) return true;
          }
        }
      }
      if (n->is(K::k_update_expression)) {
        const Node* argument = n->at(F::k_argument);
        if (argument != nullptr && checker_.ReferenceKey(argument) == key) return true;
      }
      if (n->is(K::k_for_in_statement) && n->at(F::k_kind) == nullptr &&
          n->at(F::k_left) != nullptr && checker_.ReferenceKey(n->at(F::k_left)) == key) {
        return true;
      }
      for (const Node& kid : n->kids()) {
        if (kid.named) todo.push_back(&kid);
      }
    }
    return false;
  }

  bool MentionsAssignment(const Node* node) { return MentionsAssignment(node, key_); }

  bool Is(const Node* node) { return checker_.ReferenceKey(node) == key_; }
  // Whether the function is a member of the reference, or of what it reaches, whose result tells
  // the type of its object: every(isDog), this is Dog[].
  bool GuardsThis(const Node* function) {
    if (!function->is(K::k_member_expression)) return false;
    const std::string object = checker_.ReferenceKey(function->at(F::k_object));
    const bool about = !object.empty() && (key_ == object || key_.starts_with(object + ".") ||
                                           key_.starts_with(object + "["));
    if (!about) return false;
    const auto of = checker_.CallSignatures(checker_.TypeOf(function), false);
    return std::any_of(of.begin(), of.end(),
                       [](const Signature* s) { return s->guards == "this"; });
  }

  // Whether the node goes through the reference by an optional chain: where a?.b has a value, a is
  // there.
  bool Reaches(const Node* node) {
    node = Unwrapped(node);
    while (node != nullptr && (node->is(K::k_member_expression) || node->is(K::k_call_expression) ||
                               node->is(K::k_subscript_expression))) {
      const bool chain = node->first(K::k_optional_chain) != nullptr;
      node = Unwrapped(node->is(K::k_call_expression) ? node->at(F::k_function)
                                                      : node->at(F::k_object));
      if (chain && node != nullptr && Is(node)) return true;
    }
    return false;
  }

  TypeRef Keep(TypeRef type, const Test& test) {
    std::vector<TypeRef> parts;
    TypePool::Each(type, [&](TypeRef part) {
      if (test(part)) parts.push_back(part);
    });
    return pool_.Union(std::move(parts));
  }

  // The parts that fit; none does: the other type, or something that is both.
  TypeRef Fitting(TypeRef type, TypeRef to) {
    const TypeRef fitting =
        Keep(type, [&](TypeRef part) { return checker_.Assignable(part, to) == Fits::kYes; });
    if (!fitting->is(T::kNever)) return fitting;
    const auto object = [](TypeRef t) {
      return t->is(T::kShape) || (t->is(T::kRef) && !t->symbol->is(kEnum | kLib));
    };
    const bool both = object(type) && object(to) && checker_.Assignable(to, type) != Fits::kYes;
    return both ? pool_.Intersection({type, to}) : to;
  }

  Checker& checker_;
  TypePool& pool_;
  const std::string key_;
  const TypeRef declared_;
  Symbol* const root_;
  const Node* const stop_;
};

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
    while (stop != nullptr && !IsFunction(stop) && !stop->is(K::k_statement_block) &&
           !stop->is(K::k_program) && !stop->is(K::k_for_statement) &&
           !stop->is(K::k_for_in_statement) && !stop->is(K::k_catch_clause)) {
      stop = stop->parent;
    }
  }
  return Narrowing(*this, key, declared, root, stop).Before(reference);
}

}  // namespace pawl::monitors::ts
