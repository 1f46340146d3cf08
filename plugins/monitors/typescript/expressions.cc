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

namespace pawl::monitors::ts {

using K = Kind;
using F = Field;

namespace {

bool IsFunction(const Node* node) {
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

bool Async(const Node* function) {
  for (const Node& kid : function->kids()) {
    if (!kid.named && kid.text() == "async") return true;
    if (kid.field == F::k_parameters || kid.field == F::k_name) break;
  }
  return false;
}

}  // namespace

TypeRef Checker::TypeOf(const Node* node) {
  if (node == nullptr) return pool_.open;
  const bool lib = node->tree == lib_.get();
  auto& known = lib ? lib_nodes_ : types_;
  if (const auto found = known.find(node); found != known.end()) return found->second;
  if (depth_ > 100 || !computing_.insert(node).second) return pool_.open;
  ++depth_;
  const TypeRef type = ComputeTypeOf(node);
  --depth_;
  computing_.erase(node);
  (lib ? lib_nodes_ : types_)[node] = type;
  return type;
}

TypeRef Checker::ComputeTypeOf(const Node* node) {
  switch (node->kind) {
    case K::k_number: {
      const std::string_view text = node->text();
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
    case K::k_call_expression: {
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
    case K::k_new_expression:
      return TypeOfNew(node);
    case K::k_binary_expression:
      return TypeOfBinary(node);
    case K::k_unary_expression:
    case K::k_update_expression:
      return TypeOfUnary(node);
    case K::k_assignment_expression:
      return TypeOf(node->at(F::k_right));
    case K::k_augmented_assignment_expression: {
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
      if (type->text() == "const") return pool_.open;
      return TypeFromNode(type);
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
  const auto member = Member(on, property->text());
  if (!member) return pool_.open;
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

TypeRef Checker::TypeOfFunction(const Node* node) { return pool_.Function({SignatureOf(node)}); }

// --- variables

TypeRef Checker::TypeOfSymbol(Symbol* symbol) {
  if (symbol->type != nullptr) return symbol->type;
  if (symbol->resolving) return pool_.open;
  symbol->resolving = true;
  TypeRef type = pool_.open;
  if (symbol->is(kImport)) {
    type = pool_.open;
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

// The type that a name in a declaration has: that of the declaration, or of the part that its
// pattern takes.
TypeRef Checker::TypeOfPattern(const Node* name) {
  const Node* parent = name->parent;
  if (parent == nullptr || depth_ > 60) return pool_.open;
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);
  switch (parent->kind) {
    case K::k_variable_declarator: {
      if (const Node* annotation = parent->at(F::k_type)) return TypeFromNode(annotation);
      const Node* value = parent->at(F::k_value);
      if (value == nullptr) return pool_.open;
      const Node* kind = parent->parent == nullptr ? nullptr : parent->parent->at(F::k_kind);
      const bool constant = kind != nullptr && kind->text() == "const";
      const TypeRef type = InitializerType(value, constant);
      // `const found = []` grows by what is pushed.
      if (type->is(T::kRef) && type->parts.size() == 1 && type->parts[0]->is(T::kNever) &&
          value->is(K::k_array) && name->is(K::k_identifier)) {
        return ArrayOf(pool_.open);
      }
      return type;
    }
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
    case K::k_rest_pattern: {
      const Node* above = parent->parent;
      if (above != nullptr &&
          (above->is(K::k_required_parameter) || above->is(K::k_optional_parameter))) {
        return TypeOfParameter(above);
      }
      if (above != nullptr && above->is(K::k_array_pattern)) {
        const TypeRef of = TypeOfPattern(above);
        if (of->is(T::kTuple)) {
          size_t skipped = 0;
          for (const Node& kid : above->kids()) {
            if (&kid == parent) break;
            if (kid.text() == ",") ++skipped;
          }
          std::vector<TypeRef> left(
              of->parts.begin() + static_cast<ptrdiff_t>(std::min(skipped, of->parts.size())),
              of->parts.end());
          return ArrayOf(pool_.Union(std::move(left)));
        }
        return ArrayOf(IterationType(of));
      }
      return pool_.open;
    }
    case K::k_arrow_function:
      return TypeOfParameter(name);
    case K::k_array_pattern: {
      const TypeRef of = TypeOfPattern(parent);
      size_t index = 0;
      for (const Node& kid : parent->kids()) {
        if (&kid == name) break;
        if (kid.text() == ",") ++index;
      }
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
    case K::k_object_assignment_pattern: {
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

// --- what functions return

void Checker::EachReturn(const Node* body, const std::function<void(const Node*)>& visit) {
  for (const Node& kid : body->kids()) {
    if (!kid.named) continue;
    if (kid.is(K::k_return_statement)) {
      visit(&kid);
    } else if (!IsFunction(&kid) && !kid.is(K::k_class_declaration) &&
               !kid.is(K::k_expression_statement) && !kid.is(K::k_lexical_declaration) &&
               !kid.is(K::k_variable_declaration)) {
      EachReturn(&kid, visit);
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
  for (const Node& kid : node->kids()) {
    if (!kid.named) continue;
    if (kid.is(K::k_break_statement)) return true;
    if (kid.is(K::k_for_statement) || kid.is(K::k_for_in_statement) ||
        kid.is(K::k_while_statement) || kid.is(K::k_do_statement) ||
        kid.is(K::k_switch_statement) || IsFunction(&kid)) {
      // With a label it may go further.
      if (kid.text().find("break ") != std::string_view::npos) return true;
      continue;
    }
    if (Breaks(&kid)) return true;
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

// --- what the place of an expression wants it to be

TypeRef Checker::ContextualType(const Node* node) {
  if (const auto given = contextual_.find(node); given != contextual_.end()) return given->second;
  const Node* parent = node->parent;
  if (parent == nullptr || depth_ > 60) return nullptr;
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);
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
    case K::k_pair: {
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
    case K::k_array: {
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
    case K::k_spread_element:
      return nullptr;
    case K::k_return_statement: {
      const Node* function = parent;
      while (function != nullptr && !IsFunction(function)) function = function->parent;
      if (function == nullptr) return nullptr;
      TypeRef result = nullptr;
      if (const Node* annotation = function->at(F::k_return_type)) {
        result = TypeFromNode(annotation);
      } else if (const Signature* context = ContextualSignature(function)) {
        result = context->result;
      }
      if (result != nullptr && Async(function)) result = Awaited(result);
      return result;
    }
    case K::k_arrow_function: {
      if (node->field != F::k_body) return nullptr;
      TypeRef result = nullptr;
      if (const Node* annotation = parent->at(F::k_return_type)) {
        result = TypeFromNode(annotation);
      } else if (const Signature* context = ContextualSignature(parent)) {
        result = context->result;
      }
      if (result != nullptr && Async(parent)) result = Awaited(result);
      return result;
    }
    case K::k_arguments: {
      // The callee's parameter, where all overloads that take so many arguments agree.
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
          // Functions that agree in their parameters are what matters most.
          if (!agreed->is(T::kFunction) || !wanted->is(T::kFunction)) return pool_.open;
          const Signature* a = agreed->signatures.front();
          const Signature* b = wanted->signatures.front();
          Signature* both = pool_.NewSignature();
          *both = a->params.size() >= b->params.size() ? *a : *b;
          for (size_t i = 0; i < std::min(a->params.size(), b->params.size()); ++i) {
            if (a->params[i].type != b->params[i].type) both->params[i].type = pool_.open;
          }
          both->result = a->result == b->result ? a->result : pool_.open;
          wanted = pool_.Function({both});
        }
        agreed = wanted;
      }
      return agreed == nullptr ? pool_.open : agreed;
    }
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
