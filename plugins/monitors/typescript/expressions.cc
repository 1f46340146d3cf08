// Types of expressions and variables. Each node's type is found once and kept until the program
// changes; asking for it again while it is being found (a variable whose initializer mentions it)
// gives an open type.
//
// What stands around the cursor is unfinished: the initializer that is being written, the body
// whose `return` may still come. Types that depend on it are open.
#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

namespace {

// What a `!` can stand behind; a larger expression that ends there too is not what is asserted.
bool Assertable(Kind kind) {
  return kind == K::k_identifier || kind == K::k_member_expression ||
         kind == K::k_subscript_expression || kind == K::k_call_expression ||
         kind == K::k_parenthesized_expression || kind == K::k_this;
}

}  // namespace

TypeRef Checker::TypeOf(const Node* node) {
  if (node == nullptr) return pool_.open;
  const bool lib = Kept(node);
  auto& known = lib ? lib_nodes_ : types_;
  if (const auto found = known.find(node); found != known.end()) return found->second;
  if (lib && node->broken()) return pool_.open;
  if (depth_ > 100 || !computing_.insert(node).second) return pool_.open;
  Work::Step();
  ++depth_;
  TypeRef type = ComputeTypeOf(node);
  if (node->tree->Asserted(node->end) && Assertable(node->kind)) type = pool_.NonNull(type);
  --depth_;
  computing_.erase(node);
  (lib ? lib_nodes_ : types_)[node] = type;
  return type;
}

TypeRef Checker::TypeOfNumber(std::string_view text) {
  if (text.ends_with('n')) return pool_.BigIntLiteral(std::string(text), true);
  std::string clean;
  for (const char c : text) {
    if (c != '_') clean += c;
  }
  double value = 0;
  if (clean.size() > 2 && clean[0] == '0' && (clean[1] == 'x' || clean[1] == 'X')) {
    value = static_cast<double>(std::strtoull(clean.c_str() + 2, nullptr, 16));
  } else if (clean.size() > 2 && clean[0] == '0' && (clean[1] == 'b' || clean[1] == 'B')) {
    value = static_cast<double>(std::strtoull(clean.c_str() + 2, nullptr, 2));
  } else {
    std::from_chars(clean.data(), clean.data() + clean.size(), value);
  }
  return pool_.NumberLiteral(value, std::string(text), true);
}

TypeRef Checker::TypeOfCall(const Node* node) {
  const Call& call = ResolveCall(node);
  TypeRef type = call.signature == nullptr ? pool_.open : ResultOf(call.signature);
  // f?.() and a?.b()
  const Node* function = node->at(F::k_function);
  const bool chained = node->at(F::k_optional_chain) != nullptr ||
                       node->first(K::k_optional_chain) != nullptr ||
                       (function != nullptr && function->is(K::k_member_expression) &&
                        function->first(K::k_optional_chain) != nullptr);
  if (chained) type = pool_.Union(type, pool_.undefined);
  return type;
}

// a += b
TypeRef Checker::TypeOfAugmented(const Node* node) {
  const Node* op = node->at(F::k_operator);
  const std::string_view text = op == nullptr ? "" : op->text();
  const TypeRef left = TypeOf(node->at(F::k_left));
  const TypeRef right = TypeOf(node->at(F::k_right));
  if (text == "+=") {
    if (left->loose() || right->loose()) return pool_.open;
    return Assignable(left, pool_.number) == Fits::kYes &&
                   Assignable(right, pool_.number) == Fits::kYes
               ? pool_.number
               : pool_.string;
  }
  if (text == "&&=" || text == "||=" ||
      text ==
          "?"
          "?=") {
    return pool_.Union(text == "?"
                               "?="
                           ? pool_.NonNull(left)
                           : left,
                       right);
  }
  return Assignable(left, pool_.bigint) == Fits::kYes ? pool_.bigint : pool_.number;
}

TypeRef Checker::ComputeTypeOf(const Node* node) {
  switch (node->kind) {
    case K::k_number:
      return TypeOfNumber(node->text());
    case K::k_string: {
      const std::string_view text = node->text();
      return pool_.StringLiteral(
          text.size() >= 2 ? std::string(text.substr(1, text.size() - 2)) : "", true);
    }
    case K::k_template_string:
      return node->first(K::k_template_substitution) == nullptr && node->text().size() >= 2
                 ? pool_.StringLiteral(std::string(node->text().substr(1, node->text().size() - 2)),
                                       true)
                 : pool_.string;
    case K::kTrue:
      return pool_.BooleanLiteral(true, true);
    case K::kFalse:
      return pool_.BooleanLiteral(false, true);
    case K::k_null:
      return pool_.null;
    case K::k_undefined:
      return pool_.undefined;
    case K::k_regex: {
      Symbol* regexp = Global("RegExp");
      return regexp == nullptr ? pool_.open : pool_.Ref(regexp, {});
    }
    case K::k_identifier:
    case K::k_shorthand_property_identifier:
      return TypeOfIdentifier(node);
    case K::k_this:
      return ThisType(node);
    case K::k_super: {
      const TypeRef self = ThisType(node);
      if (!self->is(T::kRef)) return pool_.open;
      const auto bases = BasesOf(self);
      return bases.empty() ? pool_.open : bases[0];
    }
    case K::k_parenthesized_expression: {
      const Node* inner = node->first_named();
      if (inner != nullptr && inner->is(K::k_sequence_expression)) {
        return TypeOf(&inner->kids().back());
      }
      return TypeOf(inner);
    }
    case K::k_sequence_expression:
      return TypeOf(&node->kids().back());
    case K::k_member_expression:
      return TypeOfMember(node);
    case K::k_subscript_expression:
      return TypeOfSubscript(node);
    case K::k_call_expression:
      return TypeOfCall(node);
    case K::k_new_expression:
      return TypeOfNew(node);
    case K::k_binary_expression:
      return TypeOfBinary(node);
    case K::k_unary_expression:
    case K::k_update_expression:
      return TypeOfUnary(node);
    case K::k_assignment_expression:
      return TypeOf(node->at(F::k_right));
    case K::k_augmented_assignment_expression:
      return TypeOfAugmented(node);
    case K::k_ternary_expression:
      return pool_.Union(TypeOf(node->at(F::k_consequence)), TypeOf(node->at(F::k_alternative)));
    case K::k_object:
      return TypeOfObject(node);
    case K::k_array:
      return TypeOfArray(node);
    case K::k_arrow_function:
    case K::k_function_expression:
    case K::k_generator_function:
      return TypeOfFunction(node);
    case K::k_await_expression:
      return Awaited(TypeOf(node->first_named()));
    case K::k_as_expression: {
      const Node* type = &node->kids().back();
      return type->text() == "const" ? TypeOfConst(node->first_named()) : TypeFromNode(type);
    }
    case K::k_satisfies_expression:
      return TypeOf(node->first_named());
    case K::k_type_assertion: {
      const Node* args = node->first(K::k_type_arguments);
      return args == nullptr || args->first_named() == nullptr ? pool_.open
                                                               : TypeFromNode(args->first_named());
    }
    case K::k_non_null_expression:
      return pool_.NonNull(TypeOf(node->first_named()));
    case K::k_spread_element:
      return TypeOf(node->first_named());
    default:
      return pool_.open;
  }
}

TypeRef Checker::TypeOfIdentifier(const Node* node) {
  const std::string_view name = node->text();
  if (name == "undefined") return pool_.undefined;
  Symbol* symbol = Resolve(name, node, kValue);
  if (symbol == nullptr) return pool_.open;
  const TypeRef declared = TypeOfSymbol(symbol);
  if (!symbol->is(kVariable | kLet | kConst | kParameter) || symbol->is(kLib)) return declared;
  return Narrowed(node, declared);
}

TypeRef Checker::TypeOfMember(const Node* node) {
  const Node* object = node->at(F::k_object);
  const Node* property = node->at(F::k_property);
  if (object == nullptr || property == nullptr) return pool_.open;
  const TypeRef on = TypeOf(object);
  const bool chain = node->first(K::k_optional_chain) != nullptr;
  auto member = Member(on, property->text());
  if (!member) return pool_.open;
  if (object->is(K::k_super) && member->symbol != nullptr) {
    const TypeRef self = ThisType(object);
    if (self->is(T::kRef)) member->receiver = self;
  }
  TypeRef type = TypeOfProperty(*member);
  if (IsReference(node)) type = Narrowed(node, type);
  bool nullable = false;
  if (chain) {
    TypePool::Each(
        on, [&](TypeRef p) { nullable = nullable || p->is(T::kNull) || p->is(T::kUndefined); });
  }
  return nullable ? pool_.Union(type, pool_.undefined) : type;
}

TypeRef Checker::TypeOfSubscript(const Node* node) {
  const Node* object = node->at(F::k_object);
  const Node* index = node->at(F::k_index);
  if (object == nullptr || index == nullptr) return pool_.open;
  TypeRef on = TypeOf(object);
  const bool chain = node->first(K::k_optional_chain) != nullptr;
  const TypeRef whole = on;
  on = pool_.NonNull(on);
  if (on->is(T::kParam)) on = Apparent(on);
  TypeRef type = ElementType(on, pool_.Regular(TypeOf(index)));
  if (IsReference(node)) type = Narrowed(node, type);
  return chain && whole != on ? pool_.Union(type, pool_.undefined) : type;
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

TypeRef Checker::TypeOfBinary(const Node* node) {
  const Node* op = node->at(F::k_operator);
  const Node* left = node->at(F::k_left);
  const Node* right = node->at(F::k_right);
  if (op == nullptr || left == nullptr || right == nullptr) return pool_.open;
  const std::string_view o = op->text();
  if (o == "&&") {
    const TypeRef a = TypeOf(left);
    const TypeRef b = TypeOf(right);
    return pool_.Union(FilterTruthy(a, false), b);
  }
  if (o == "||") return pool_.Union(FilterTruthy(TypeOf(left), true), TypeOf(right));
  if (o ==
      "?"
      "?")
    return pool_.Union(pool_.NonNull(TypeOf(left)), TypeOf(right));
  if (o == "==" || o == "!=" || o == "===" || o == "!==" || o == "<" || o == ">" || o == "<=" ||
      o == ">=" || o == "in" || o == "instanceof") {
    return pool_.boolean;
  }
  const TypeRef a = TypeOf(left);
  const TypeRef b = TypeOf(right);
  if (o == "+") {
    const auto all = [&](TypeRef type, TypeRef of) { return Assignable(type, of) == Fits::kYes; };
    if (a->open() || b->open()) {
      return (!a->loose() && all(a, pool_.string)) || (!b->loose() && all(b, pool_.string))
                 ? pool_.string
                 : pool_.open;
    }
    if (!a->is(T::kAny) && !b->is(T::kAny)) {
      if (all(a, pool_.number) && all(b, pool_.number)) return pool_.number;
      if (all(a, pool_.bigint) && all(b, pool_.bigint)) return pool_.bigint;
    }
    if ((!a->is(T::kAny) && all(a, pool_.string)) || (!b->is(T::kAny) && all(b, pool_.string))) {
      return pool_.string;
    }
    return pool_.any;
  }
  if (a->open() || b->open()) {
    if (a->loose() && b->loose()) return pool_.open;
    const TypeRef known = a->loose() ? b : a;
    return Assignable(known, pool_.bigint) == Fits::kYes ? pool_.bigint : pool_.number;
  }
  if (Assignable(a, pool_.bigint) == Fits::kYes && !a->is(T::kAny)) return pool_.bigint;
  return pool_.number;
}

TypeRef Checker::TypeOfUnary(const Node* node) {
  const Node* op = node->at(F::k_operator);
  const Node* argument = node->at(F::k_argument);
  if (op == nullptr || argument == nullptr) return pool_.open;
  const std::string_view o = op->text();
  if (o == "!" || o == "delete") return pool_.boolean;
  if (o == "void") return pool_.undefined;
  if (o == "typeof") return pool_.string;
  const TypeRef of = TypeOf(argument);
  if (of->is(T::kNumberLiteral) && of->fresh && o == "-") {
    return pool_.NumberLiteral(-of->number, "-" + of->text, true);
  }
  if (of->is(T::kNumberLiteral) && o == "+") return of;
  if (of->open() && o != "+") return pool_.open;
  if (o != "+" && !of->loose() && Assignable(of, pool_.bigint) == Fits::kYes) return pool_.bigint;
  return pool_.number;
}

TypeRef Checker::TypeOfObject(const Node* node) {
  Shape shape;
  const TypeRef context = ContextualType(node);
  for (const Node& kid : node->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (kid.is(K::k_spread_element)) {
      const TypeRef spread = TypeOf(kid.first_named());
      const Shape* source =
          spread->is(T::kShape) || (spread->is(T::kRef) && !spread->symbol->is(kLib))
              ? ShapeOf(spread)
              : nullptr;
      if (source == nullptr || source->open) {
        shape.open = true;
        continue;
      }
      for (const Property& p : source->properties) {
        std::erase_if(shape.properties,
                      [&](const Property& q) { return q.name == p.name && !p.optional; });
        if (shape.Find(p.name) == nullptr) {
          Property copy = p;
          copy.type = TypeOfProperty(p);
          copy.readonly = false;
          shape.properties.push_back(std::move(copy));
        } else {
          for (Property& q : shape.properties) {
            if (q.name == p.name) q.type = pool_.Union(q.type, TypeOfProperty(p));
          }
        }
      }
      if (source->string_index != nullptr) shape.string_index = source->string_index;
      if (source->number_index != nullptr) shape.number_index = source->number_index;
      continue;
    }
    std::string name;
    TypeRef type = pool_.open;
    bool method = false;
    if (kid.is(K::k_pair)) {
      const Node* key = kid.at(F::k_key);
      const Node* value = kid.at(F::k_value);
      if (key == nullptr) continue;
      type = TypeOf(value);
      if (key->is(K::k_computed_property_name)) {
        const TypeRef index = TypeOf(key->first_named());
        if (index->is(T::kStringLiteral) || index->is(T::kNumberLiteral)) {
          name = index->text;
        } else if (Assignable(index, pool_.number) == Fits::kYes && !index->loose()) {
          shape.number_index = shape.number_index == nullptr
                                   ? pool_.Widen(type)
                                   : pool_.Union(shape.number_index, pool_.Widen(type));
          continue;
        } else if (Assignable(index, pool_.string) == Fits::kYes && !index->loose()) {
          shape.string_index = shape.string_index == nullptr
                                   ? pool_.Widen(type)
                                   : pool_.Union(shape.string_index, pool_.Widen(type));
          continue;
        } else {
          shape.open = true;
          continue;
        }
      } else if (key->is(K::k_string)) {
        const std::string_view text = key->text();
        name = text.size() >= 2 ? std::string(text.substr(1, text.size() - 2)) : "";
      } else {
        name = std::string(key->text());
      }
    } else if (kid.is(K::k_shorthand_property_identifier)) {
      name = std::string(kid.text());
      type = TypeOf(&kid);
    } else if (kid.is(K::k_method_definition)) {
      const Node* key = kid.at(F::k_name);
      name = key == nullptr ? "" : std::string(key->text());
      bool accessor = false;
      for (const Node& word : kid.kids()) {
        if (word.field == F::k_name) break;
        accessor = accessor || word.text() == "get" || word.text() == "set";
      }
      method = true;
      type = accessor ? pool_.open : pool_.Function({SignatureOf(&kid)});
    } else {
      shape.open = true;
      continue;
    }
    // Literals stay where the context asks for them.
    TypeRef wanted = nullptr;
    if (context != nullptr && !context->loose()) {
      if (const auto member = Member(context, name)) wanted = TypeOfProperty(*member);
    }
    bool keep = false;
    if (wanted != nullptr) {
      TypePool::Each(wanted, [&](TypeRef part) {
        keep = keep || part->literal() || part->is(T::kParam) || part->is(T::kOpen);
      });
    }
    if (!keep) type = pool_.Widen(type);
    std::erase_if(shape.properties, [&](const Property& p) { return p.name == name; });
    shape.properties.push_back(Property{.name = std::move(name), .type = type, .method = method});
  }
  if (node->broken() || Unfinished(node)) shape.open = true;
  return pool_.ShapeOf(std::move(shape), true);
}

TypeRef Checker::TypeOfArray(const Node* node) {
  if (Unfinished(node)) return ArrayOf(pool_.open);
  const TypeRef context = ContextualType(node);
  TypeRef tuple = nullptr;
  TypeRef element = nullptr;
  bool spread = false;
  if (context != nullptr) {
    TypePool::Each(context, [&](TypeRef part) {
      if (part->is(T::kTuple)) tuple = part;
      if (part->is(T::kRef) && part->parts.size() == 1) element = part->parts[0];
    });
  }
  std::vector<TypeRef> parts;
  for (const Node& kid : node->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (kid.is(K::k_spread_element)) {
      spread = true;
      parts.push_back(IterationType(TypeOf(kid.first_named())));
      continue;
    }
    TypeRef type = TypeOf(&kid);
    bool keep = false;
    const TypeRef wanted = tuple != nullptr && parts.size() < tuple->parts.size()
                               ? tuple->parts[parts.size()]
                               : element;
    if (wanted != nullptr) {
      TypePool::Each(wanted, [&](TypeRef part) {
        keep = keep || part->literal() || part->is(T::kParam) || part->is(T::kOpen);
      });
    }
    if (!keep) type = pool_.Widen(type);
    parts.push_back(type);
  }
  if (tuple != nullptr && !spread) {
    const auto count = static_cast<uint32_t>(parts.size());
    return pool_.Tuple(std::move(parts), count, false, false);
  }
  if (parts.empty()) {
    if (element != nullptr && !HasParams(element)) return ArrayOf(element);
    return ArrayOf(pool_.never);
  }
  return ArrayOf(pool_.Union(std::move(parts)));
}

TypeRef Checker::TypeOfNew(const Node* node) {
  const Node* constructor = node->at(F::k_constructor);
  if (constructor == nullptr) return pool_.open;
  const TypeRef of = TypeOf(constructor);
  if (!of->is(T::kStatic) && CallSignatures(of, true).empty()) return pool_.open;
  const Call& call = ResolveCall(node);
  if (call.signature != nullptr) return ResultOf(call.signature);
  if (of->is(T::kStatic) && of->symbol->is(kClass)) {
    // The class is known even where its arguments are not.
    return DeclaredType(of->symbol, std::vector<TypeRef>(ParamsOf(of->symbol).size(), pool_.open));
  }
  const auto signatures = CallSignatures(of, true);
  TypeRef result = nullptr;
  for (const Signature* s : signatures) {
    Mapper mapper;
    for (TypeRef p : s->type_params) mapper.emplace_back(p, pool_.open);
    const TypeRef type = Instantiate(ResultOf(s), mapper);
    if (result == nullptr) result = type;
    if (type->is(T::kRef) && result->is(T::kRef) && type->symbol == result->symbol) {
      if (type != result) {
        result = pool_.Ref(type->symbol, std::vector<TypeRef>(type->parts.size(), pool_.open));
      }
    } else if (type != result) {
      return pool_.open;
    }
  }
  return result == nullptr ? pool_.open : result;
}

// `as const`: literals stay what they are, arrays become tuples that are read-only.
TypeRef Checker::TypeOfConst(const Node* node) {
  const Work::Deeper deeper;
  Work::Step();
  if (node == nullptr || node->broken() || Unfinished(node)) return pool_.open;
  if (node->is(K::k_parenthesized_expression)) return TypeOfConst(node->first_named());
  if (node->is(K::k_array)) {
    std::vector<TypeRef> parts;
    for (const Node& kid : node->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      if (kid.is(K::k_spread_element)) return pool_.open;
      parts.push_back(TypeOfConst(&kid));
    }
    const auto count = static_cast<uint32_t>(parts.size());
    return pool_.Tuple(std::move(parts), count, false, true);
  }
  if (!node->is(K::k_object)) return pool_.Regular(TypeOf(node));
  Shape shape;
  for (const Node& kid : node->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    const bool pair = kid.is(K::k_pair);
    const Node* key = pair ? kid.at(F::k_key) : &kid;
    if (key == nullptr || key->is(K::k_computed_property_name) ||
        (!pair && !kid.is(K::k_shorthand_property_identifier))) {
      return pool_.open;
    }
    std::string name(key->text());
    if (key->is(K::k_string) && name.size() >= 2) name = name.substr(1, name.size() - 2);
    std::erase_if(shape.properties, [&](const Property& p) { return p.name == name; });
    const TypeRef type = pair ? TypeOfConst(kid.at(F::k_value)) : pool_.Regular(TypeOf(&kid));
    shape.properties.push_back(Property{.name = std::move(name), .type = type, .readonly = true});
  }
  return pool_.ShapeOf(std::move(shape));
}

TypeRef Checker::TypeOfFunction(const Node* node) { return pool_.Function({SignatureOf(node)}); }

}  // namespace pawl::monitors::ts
