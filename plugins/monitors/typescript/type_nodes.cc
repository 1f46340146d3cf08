// Written types: `number[]`, `Map<string, T>`, `{a: number}`, `(x: T) => U`. Object types are
// resolved when their members are first asked for, so that a type may mention itself; what stands
// for the type parameters around waits with them.
//
// Conditional and mapped types are open, but for those of the library that everybody uses (Partial,
// Record, Exclude, ...), which are computed here when their arguments are known.
#include <algorithm>
#include <charconv>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

TypeRef Checker::ArrayOf(TypeRef element) {
  Symbol* array = Global("Array");
  return array == nullptr ? pool_.open : pool_.Ref(array, {element});
}

TypeRef Checker::PromiseOf(TypeRef type) {
  Symbol* promise = Global("Promise");
  return promise == nullptr ? pool_.open : pool_.Ref(promise, {type});
}

TypeRef Checker::Awaited(TypeRef type) {
  const Work::Deeper deeper;
  Work::Step();
  std::vector<TypeRef> parts;
  TypePool::Each(type, [&](TypeRef part) {
    if (part->is(T::kRef) &&
        (part->symbol->name == "Promise" || part->symbol->name == "PromiseLike") &&
        part->parts.size() == 1) {
      parts.push_back(Awaited(part->parts[0]));
    } else if (part->is(T::kShape) || part->is(T::kIntersection) ||
               (part->is(T::kRef) && !part->symbol->is(kLib | kEnum))) {
      // A class that derives from Promise, or another object with a `then`.
      TypeRef base = part;
      for (int up = 0; up < 8 && base->is(T::kRef) && !base->symbol->is(kLib); ++up) {
        const auto bases = BasesOf(base);
        if (bases.size() != 1) break;
        base = bases[0];
      }
      const bool promise = base != part && base->is(T::kRef) && base->symbol->is(kLib) &&
                           base->symbol->name == "Promise" && base->parts.size() == 1;
      parts.push_back(promise ? Awaited(base->parts[0]) : Member(part, "then") ? pool_.open : part);
    } else {
      parts.push_back(part);
    }
  });
  return pool_.Union(std::move(parts));
}

const std::vector<TypeRef>& Checker::ParamsOf(Symbol* symbol) {
  if (symbol->params_known) return symbol->params;
  symbol->params_known = true;
  for (const Node* declaration : symbol->declarations) {
    const Node* list = declaration->at(F::k_type_parameters);
    if (list == nullptr) continue;
    const Table& names = ScopeOf(declaration).names;
    for (const Node& kid : list->kids()) {
      if (!kid.is(K::k_type_parameter) || kid.at(F::k_name) == nullptr) continue;
      const auto found = names.find(std::string(kid.at(F::k_name)->text()));
      if (found != names.end()) symbol->params.push_back(pool_.Param(found->second));
    }
    break;
  }
  return symbol->params;
}

TypeRef Checker::ConstraintOf(TypeRef param) {
  Symbol* symbol = param->symbol;
  if (symbol->declared != nullptr) return symbol->declared;
  if (symbol->resolving_declared) return pool_.open;
  symbol->resolving_declared = true;
  TypeRef result = pool_.unknown;
  if (!symbol->declarations.empty()) {
    const Node* declaration = symbol->declarations.front();
    if (declaration->is(K::k_type_parameter)) {
      if (const Node* constraint = declaration->at(F::k_constraint)) {
        result = TypeFromNode(constraint->first_named());
      }
    } else {
      result = pool_.open;
    }
  }
  symbol->resolving_declared = false;
  // <T extends U, U extends T>: what comes back to the parameter says nothing.
  for (TypeRef at = result; at != nullptr && at->is(T::kParam); at = at->symbol->declared) {
    Work::Step();
    if (at == param) {
      result = pool_.open;
      break;
    }
  }
  symbol->declared = result;
  return result;
}

TypeRef Checker::DeclaredType(Symbol* symbol, std::vector<TypeRef> args) {
  if (symbol->is(kTypeParameter)) return pool_.Param(symbol);
  if (symbol->is(kImport)) {
    Symbol* target = Target(symbol);
    return target == nullptr || target->is(kImport) ? pool_.open
                                                    : DeclaredType(target, std::move(args));
  }
  if (!symbol->is(kTypeName)) return pool_.open;
  if (symbol->is(kEnumMember)) return pool_.EnumMember(symbol);
  if (symbol->is(kAlias)) {
    const std::vector<TypeRef> params = ParamsOf(symbol);
    bool known = false;
    const TypeRef utility = Utility(symbol, args, &known);
    if (known) return utility;
    if (symbol->declared == nullptr) {
      if (symbol->resolving_declared) return pool_.open;
      symbol->resolving_declared = true;
      const Node* alias = symbol->declarations.front();
      for (const Node* d : symbol->declarations) {
        if (d->is(K::k_type_alias_declaration)) alias = d;
      }
      const Node* value = alias->at(F::k_value);
      symbol->declared = value == nullptr || Unfinished(alias) ? pool_.open : TypeFromNode(value);
      symbol->resolving_declared = false;
    }
    if (params.empty()) return symbol->declared;
    Mapper mapper;
    for (size_t i = 0; i < params.size(); ++i) {
      TypeRef arg = i < args.size() ? args[i] : nullptr;
      if (arg == nullptr) {
        const Node* declaration = params[i]->symbol->declarations.front();
        const Node* standard = declaration->at(F::k_value);
        arg = standard != nullptr ? TypeFromNode(standard->first_named()) : pool_.open;
      }
      mapper.emplace_back(params[i], arg);
    }
    return symbol->declared->open() ? AliasOfGeneric(symbol, mapper)
                                    : Instantiate(symbol->declared, mapper);
  }
  const std::vector<TypeRef> params = ParamsOf(symbol);
  args.resize(std::min(args.size(), params.size()));
  while (args.size() < params.size()) {
    const Node* declaration = params[args.size()]->symbol->declarations.front();
    const Node* standard = declaration->at(F::k_value);
    TypeRef fill = standard != nullptr ? TypeFromNode(standard->first_named()) : pool_.open;
    Mapper mapper;
    for (size_t i = 0; i < args.size(); ++i) mapper.emplace_back(params[i], args[i]);
    args.push_back(Instantiate(fill, mapper));
  }
  return pool_.Ref(symbol, std::move(args));
}

// type Unsaved<T> = Omit<T, "id">: what Omit makes of it depends on what T stands for.
TypeRef Checker::AliasOfGeneric(Symbol* alias, const Mapper& mapper) {
  const Node* declaration = alias->declarations.front();
  const Node* value = declaration->at(F::k_value);
  if (value == nullptr || !value->is(K::k_generic_type) || depth_ > 40 || BadlyRead(declaration))
    return pool_.open;
  const Node* name = value->at(F::k_name);
  const Node* list = value->at(F::k_type_arguments);
  if (name == nullptr || list == nullptr || !name->is(K::k_type_identifier)) return pool_.open;
  Symbol* symbol = Resolve(name->text(), value, kTypeName);
  if (symbol == nullptr || symbol == alias || !symbol->is(kAlias)) return pool_.open;
  const Work::Deeper deeper;
  const Nested nested(depth_);
  std::vector<TypeRef> args;
  for (const Node& kid : list->kids()) {
    if (kid.named && !kid.is(K::k_comment)) args.push_back(Instantiate(TypeFromNode(&kid), mapper));
  }
  return DeclaredType(symbol, std::move(args));
}

TypeRef Checker::TypeOfLiteralNode(const Node* node) {
  const Node* inner = node->is(K::k_literal_type) ? node->first_named() : node;
  if (inner == nullptr) return pool_.open;
  switch (inner->kind) {
    case K::k_string:
    case K::k_number:
    case K::kTrue:
    case K::kFalse:
    case K::k_unary_expression:
      return pool_.Regular(TypeOf(inner));
    case K::k_null:
      return pool_.null;
    case K::k_undefined:
      return pool_.undefined;
    default:
      return pool_.open;
  }
}

TypeRef Checker::TupleFromNode(const Node* node) {
  std::vector<TypeRef> parts;
  uint32_t required = 0;
  bool rest = false;
  for (const Node& kid : node->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (rest) return pool_.open;  // elements behind a rest
    if (kid.is(K::k_optional_type)) {
      parts.push_back(pool_.Union(TypeFromNode(kid.first_named()), pool_.undefined));
    } else if (kid.is(K::k_rest_type)) {
      const TypeRef array = TypeFromNode(kid.first_named());
      if (!array->is(T::kRef) || array->symbol != Global("Array")) return pool_.open;
      parts.push_back(array->parts[0]);
      rest = true;
    } else if (kid.is(K::k_required_parameter) || kid.is(K::k_optional_parameter)) {
      const Node* type = kid.at(F::k_type);
      const Node* name = kid.at(F::k_name) != nullptr ? kid.at(F::k_name) : kid.at(F::k_pattern);
      if (type == nullptr || (name != nullptr && name->is(K::k_rest_pattern))) return pool_.open;
      parts.push_back(TypeFromNode(type));
      if (kid.is(K::k_optional_parameter)) {
        parts.back() = pool_.Union(parts.back(), pool_.undefined);
      } else {
        required = static_cast<uint32_t>(parts.size());
      }
    } else {
      parts.push_back(TypeFromNode(&kid));
      required = static_cast<uint32_t>(parts.size());
    }
  }
  return pool_.Tuple(std::move(parts), required, rest, false);
}

TypeRef Checker::TypeOfReferenceNode(const Node* node) {
  const Node* name = node->is(K::k_generic_type) ? node->at(F::k_name) : node;
  if (name == nullptr) return pool_.open;
  std::vector<TypeRef> args;
  if (node->is(K::k_generic_type)) {
    if (const Node* list = node->at(F::k_type_arguments)) {
      for (const Node& kid : list->kids()) {
        if (kid.named && !kid.is(K::k_comment)) args.push_back(TypeFromNode(&kid));
      }
    }
  }
  if (name->is(K::k_nested_type_identifier)) {
    const Node* module = name->kids().empty() ? nullptr : name->first_named();
    const Node* last = name->at(F::k_name);
    if (module == nullptr || last == nullptr || !module->is(K::k_identifier)) return pool_.open;
    Symbol* space = Resolve(module->text(), node, kNamespace | kEnum);
    if (space == nullptr) return pool_.open;
    FillMembers(space);
    const auto found = space->statics.find(std::string(last->text()));
    if (found == space->statics.end()) return pool_.open;
    Symbol* meant = Meant(found->second, kTypeName);
    return meant == nullptr || meant->is(kImport) ? pool_.open
                                                  : DeclaredType(meant, std::move(args));
  }
  Symbol* symbol = Resolve(name->text(), node, kTypeName);
  if (symbol == nullptr || symbol->is(kImport)) return pool_.open;
  return DeclaredType(symbol, std::move(args));
}

TypeRef Checker::TypeOfWord(std::string_view word) {
  return word == "number"    ? pool_.number
         : word == "string"  ? pool_.string
         : word == "boolean" ? pool_.boolean
         : word == "any"     ? pool_.any
         : word == "void"    ? pool_.void_
         : word == "unknown" ? pool_.unknown
         : word == "never"   ? pool_.never
         : word == "object"  ? pool_.object
         : word == "symbol"  ? pool_.symbol
                             : pool_.open;
}

TypeRef Checker::Readonly(TypeRef type) {
  if (type->is(T::kTuple)) return pool_.Tuple(type->parts, type->required, type->rest, true);
  Symbol* array = Global("ReadonlyArray");
  const bool mutable_array = type->is(T::kRef) && type->symbol == Global("Array");
  return mutable_array && array != nullptr ? pool_.Ref(array, type->parts) : pool_.open;
}

namespace {

// The parts of a union or an intersection, which the grammar nests as deeply as they are many.
std::vector<const Node*> FlatParts(const Node* whole) {
  std::vector<const Node*> flat;
  std::vector<const Node*> todo = {whole};
  while (!todo.empty()) {
    Work::Step();
    const Node* n = todo.back();
    todo.pop_back();
    if (n != whole && n->kind != whole->kind) {
      flat.push_back(n);
      continue;
    }
    const auto kids = n->kids();
    for (auto kid = kids.rbegin(); kid != kids.rend(); ++kid) {
      if (kid->named && !kid->is(K::k_comment)) todo.push_back(&*kid);
    }
  }
  return flat;
}

}  // namespace

TypeRef Checker::ReadonlyFromNode(const Node* inner) {
  if (inner == nullptr || !inner->is(K::k_union_type)) return Readonly(TypeFromNode(inner));
  // The grammar takes `readonly T[] | null` for `readonly (T[] | null)`.
  std::vector<TypeRef> parts;
  for (const Node* part : FlatParts(inner))
    parts.push_back(parts.empty() ? Readonly(TypeFromNode(part)) : TypeFromNode(part));
  return pool_.Union(std::move(parts));
}

TypeRef Checker::ReadTypeNode(const Node* node) {
  switch (node->kind) {
    case K::k_type_annotation:
    case K::k_opting_type_annotation:
    case K::k_omitting_type_annotation:
    case K::k_adding_type_annotation:
    case K::k_parenthesized_type:
    case K::k_constraint:
    case K::k_default_type:
      return TypeFromNode(node->first_named());
    case K::k_predefined_type:
      return TypeOfWord(node->text());
    case K::k_type_identifier:
      return node->text() == "bigint" && Resolve("bigint", node, kTypeName) == nullptr
                 ? pool_.bigint
                 : TypeOfReferenceNode(node);
    case K::k_generic_type:
    case K::k_nested_type_identifier:
    case K::k_identifier:
      return TypeOfReferenceNode(node);
    case K::k_literal_type:
    case K::k_undefined:
    case K::k_null:
    case K::k_string:
      return TypeOfLiteralNode(node);
    case K::k_array_type:
      return ArrayOf(TypeFromNode(node->first_named()));
    case K::k_readonly_type:
      return ReadonlyFromNode(node->first_named());
    case K::k_tuple_type:
      return TupleFromNode(node);
    case K::k_union_type:
    case K::k_intersection_type: {
      std::vector<TypeRef> parts;
      for (const Node* part : FlatParts(node)) parts.push_back(TypeFromNode(part));
      return node->is(K::k_union_type) ? pool_.Union(std::move(parts))
                                       : pool_.Intersection(std::move(parts));
    }
    case K::k_function_type:
    case K::k_constructor_type: {
      const Signature* signature = SignatureOf(node);
      if (node->is(K::k_function_type)) return pool_.Function({signature});
      Shape shape;
      shape.constructs.push_back(signature);
      return pool_.ShapeOf(std::move(shape));
    }
    case K::k_object_type:
      return node->first(K::k_index_signature) != nullptr &&
                     node->first(K::k_index_signature)->first(K::k_mapped_type_clause) != nullptr
                 ? pool_.open
                 : pool_.ShapeAt(node, {});
    case K::k_index_type_query:
      return KeyOf(TypeFromNode(node->first_named()));
    case K::k_lookup_type: {
      std::vector<const Node*> parts;
      for (const Node& kid : node->kids()) {
        if (kid.named && !kid.is(K::k_comment)) parts.push_back(&kid);
      }
      if (parts.size() != 2) return pool_.open;
      const TypeRef object = TypeFromNode(parts[0]);
      const TypeRef index = TypeFromNode(parts[1]);
      return HasParams(object) || HasParams(index) ? pool_.open : ElementType(object, index);
    }
    case K::k_type_query: {
      const Node* name = node->first(K::k_identifier);
      Symbol* symbol = name == nullptr ? nullptr : Resolve(name->text(), node, kValue);
      return symbol == nullptr ? pool_.open : pool_.Regular(TypeOfSymbol(symbol));
    }
    case K::k_this_type:
      return ThisType(node);
    case K::k_type_predicate_annotation:
    case K::k_type_predicate:
      return pool_.boolean;
    case K::k_asserts_annotation:
    case K::k_asserts:
      return pool_.void_;
    default:
      return pool_.open;
  }
}

TypeRef Checker::TypeFromNode(const Node* node) {
  if (node == nullptr) return pool_.open;
  const bool lib = Kept(node);
  auto& known = lib ? lib_nodes_ : types_;
  if (const auto found = known.find(node); found != known.end()) return found->second;
  if (depth_ > 60 || (lib && node->broken())) return pool_.open;
  ++depth_;
  const TypeRef type = ReadTypeNode(node);
  --depth_;
  (lib ? lib_nodes_ : types_)[node] = type;
  return type;
}

TypeRef Checker::ThisType(const Node* node) {
  for (const Node* at = node; at != nullptr; at = at->parent) {
    Work::Step();
    if (at->is(K::k_function_declaration) || at->is(K::k_function_expression) ||
        at->is(K::k_generator_function) || at->is(K::k_generator_function_declaration)) {
      // function f(this: Path)
      const Node* list = at->at(F::k_parameters);
      for (const Node& p : list == nullptr ? std::span<const Node>() : list->kids()) {
        const Node* pattern = p.is(K::k_required_parameter) ? p.at(F::k_pattern) : nullptr;
        if (pattern != nullptr && pattern->text() == "this" && p.at(F::k_type) != nullptr)
          return TypeFromNode(p.at(F::k_type));
      }
      return pool_.open;
    }
    if ((at->is(K::k_method_definition) || at->is(K::k_public_field_definition)) &&
        at->parent != nullptr && at->parent->is(K::k_class_body)) {
      const Node* owner = at->parent->parent;
      const Node* name = owner->at(F::k_name);
      if (name == nullptr) return pool_.open;
      Symbol* symbol = Resolve(name->text(), owner, kClass);
      if (symbol == nullptr) return pool_.open;
      for (const Node& kid : at->kids()) {
        if (kid.text() == "static") return pool_.Static(symbol);
        if (kid.field == F::k_name) break;
      }
      return pool_.Ref(symbol, ParamsOf(symbol));
    }
    if (at->is(K::k_interface_declaration)) {
      const Node* name = at->at(F::k_name);
      Symbol* symbol = name == nullptr ? nullptr : Resolve(name->text(), at->parent, kInterface);
      return symbol == nullptr ? pool_.open : pool_.Ref(symbol, ParamsOf(symbol));
    }
    if (at->is(K::k_class_static_block)) return pool_.open;
    if (at->is(K::k_method_definition)) return pool_.open;
  }
  return pool_.open;
}

bool Checker::HasParams(TypeRef type, int depth) {
  if (depth > 6) return true;
  Work::Step();
  switch (type->kind) {
    case T::kParam:
      return true;
    case T::kUnion:
    case T::kIntersection:
    case T::kRef:
    case T::kTuple:
      return std::any_of(type->parts.begin(), type->parts.end(),
                         [&](TypeRef part) { return HasParams(part, depth + 1); });
    case T::kFunction:
      for (const Signature* s : type->signatures) {
        for (const Parameter& p : s->params) {
          if (HasParams(p.type, depth + 1)) return true;
        }
        if (s->result != nullptr && HasParams(s->result, depth + 1)) return true;
        if (s->guarded != nullptr && HasParams(s->guarded, depth + 1)) return true;
        if (s->result == nullptr) return true;
      }
      return false;
    case T::kShape:
      if (type->node != nullptr && type->mapper.empty()) {
        // Written inside something generic?
        for (const Node* at = type->node; at != nullptr; at = at->parent) {
          if (at->at(F::k_type_parameters) != nullptr) return true;
        }
        return false;
      }
      if (const Shape* shape = ShapeOf(type)) {
        for (const Property& p : shape->properties) {
          if (p.type != nullptr && HasParams(p.type, depth + 1)) return true;
        }
        if (shape->string_index != nullptr && HasParams(shape->string_index, depth + 1))
          return true;
        if (shape->number_index != nullptr && HasParams(shape->number_index, depth + 1))
          return true;
        return !shape->calls.empty() || !shape->constructs.empty();
      }
      return true;
    default:
      return false;
  }
}

namespace {

// Whether a node stands where a type parameter is known. A type that mentions itself would take
// along more and more parameters otherwise, and never be the same type twice.
bool Sees(const Node* node, TypeRef param) {
  if (!param->is(T::kParam) || param->symbol->declarations.empty()) return true;
  const Node* declaration = param->symbol->declarations.front();
  if (declaration->tree != node->tree || !declaration->is(K::k_type_parameter)) return true;
  const Node* list = declaration->parent;
  const Node* owner = list == nullptr ? nullptr : list->parent;
  // The parts of an interface share their parameters.
  if (owner == nullptr || owner->is(K::k_interface_declaration)) return true;
  return owner->start <= node->start && node->end <= owner->end;
}

}  // namespace

TypeRef Checker::Instantiate(TypeRef type, const Mapper& mapper) {
  if (mapper.empty()) return type;
  if (depth_ > 60) return pool_.open;
  Work::Step(1 + mapper.size() / 4 + type->parts.size() / 4);
  const Nested nested(depth_);
  const auto parts = [&] {
    std::vector<TypeRef> result;
    for (TypeRef part : type->parts) result.push_back(Instantiate(part, mapper));
    return result;
  };
  switch (type->kind) {
    case T::kParam:
      for (const auto& [param, stands] : mapper) {
        if (param == type) return stands;
      }
      return type;
    case T::kUnion:
      return pool_.Union(parts());
    case T::kIntersection:
      return pool_.Intersection(parts());
    case T::kRef:
      return type->parts.empty() ? type : pool_.Ref(type->symbol, parts());
    case T::kTuple:
      return pool_.Tuple(parts(), type->required, type->rest, type->readonly);
    case T::kFunction: {
      if (!HasParams(type)) return type;
      std::vector<const Signature*> signatures;
      for (const Signature* s : type->signatures) signatures.push_back(Instantiate(s, mapper));
      return pool_.Function(std::move(signatures));
    }
    case T::kShape: {
      if (type->node != nullptr) {
        Mapper inner;
        for (const auto& [param, stands] : type->mapper) {
          inner.emplace_back(param, Instantiate(stands, mapper));
        }
        for (const auto& pair : mapper) {
          if (pair.first == pair.second || !Sees(type->node, pair.first)) continue;
          if (std::none_of(inner.begin(), inner.end(),
                           [&](const auto& p) { return p.first == pair.first; })) {
            inner.push_back(pair);
          }
        }
        return pool_.ShapeAt(type->node, std::move(inner));
      }
      if (!HasParams(type)) return type;
      Shape shape = *type->shape;
      for (Property& p : shape.properties) {
        if (p.type != nullptr) p.type = Instantiate(p.type, mapper);
      }
      if (shape.string_index != nullptr)
        shape.string_index = Instantiate(shape.string_index, mapper);
      if (shape.number_index != nullptr)
        shape.number_index = Instantiate(shape.number_index, mapper);
      for (const Signature*& s : shape.calls) s = Instantiate(s, mapper);
      for (const Signature*& s : shape.constructs) s = Instantiate(s, mapper);
      return pool_.ShapeOf(std::move(shape), type->literal_object);
    }
    default:
      return type;
  }
}

const Signature* Checker::Instantiate(const Signature* signature, const Mapper& mapper) {
  if (mapper.empty()) return signature;
  Signature* made = pool_.NewSignature();
  *made = *signature;
  for (Parameter& p : made->params) p.type = Instantiate(p.type, mapper);
  if (made->result != nullptr) made->result = Instantiate(made->result, mapper);
  if (made->guarded != nullptr) made->guarded = Instantiate(made->guarded, mapper);
  if (made->self != nullptr) made->self = Instantiate(made->self, mapper);
  for (auto& [param, stands] : made->mapper) stands = Instantiate(stands, mapper);
  made->mapper.insert(made->mapper.end(), mapper.begin(), mapper.end());
  return made;
}

TypeRef Checker::KeyOf(TypeRef type) {
  if (type->loose() || HasParams(type)) return pool_.open;
  if (type->is(T::kUnion) || type->is(T::kIntersection)) return pool_.open;
  const Shape* shape = ShapeOf(type);
  if (shape == nullptr || shape->open) return pool_.open;
  if (type->is(T::kRef) && type->symbol->is(kLib)) return pool_.open;
  if (type->is(T::kRef) && type->symbol->is(kClass) && !BasesOf(type).empty()) return pool_.open;
  std::vector<TypeRef> keys;
  for (const Property& p : shape->properties) keys.push_back(pool_.StringLiteral(p.name));
  if (shape->string_index != nullptr) {
    keys.push_back(pool_.string);
    keys.push_back(pool_.number);
  }
  if (shape->number_index != nullptr) keys.push_back(pool_.number);
  return pool_.Union(std::move(keys));
}

// Whether a property of both has literal types that exclude each other.
bool Checker::Discriminated(TypeRef a, TypeRef b) {
  const Shape* wanted = ShapeOf(b);
  if (wanted == nullptr) return b->literal() || b->is(T::kString) || b->is(T::kNumber);
  return std::any_of(wanted->properties.begin(), wanted->properties.end(), [&](const Property& p) {
    const TypeRef type = TypeOfProperty(p);
    const auto other = type->literal() || type->is(T::kUnion) ? Member(a, p.name) : std::nullopt;
    return other && TypeOfProperty(*other)->literal() &&
           Assignable(TypeOfProperty(*other), type) == Fits::kNo;
  });
}

TypeRef Checker::Utility(Symbol* symbol, const std::vector<TypeRef>& args, bool* known) {
  *known = false;
  if (!symbol->is(kLib)) return nullptr;
  const std::string& name = symbol->name;
  const auto finish = [&](TypeRef type) {
    *known = true;
    return type;
  };
  if (name == "PropertyKey") {
    return finish(pool_.Union({pool_.string, pool_.number, pool_.symbol}));
  }
  if (args.empty()) return nullptr;
  for (TypeRef arg : args) {
    if (arg->loose() || HasParams(arg)) return finish(pool_.open);
  }
  if (name == "NonNullable") return finish(pool_.NonNull(args[0]));
  if (name == "Awaited") return finish(Awaited(args[0]));
  if (name == "NoInfer") return finish(args[0]);
  if ((name == "Exclude" || name == "Extract") && args.size() == 2) {
    std::vector<TypeRef> parts;
    bool sure = true;
    TypePool::Each(args[0], [&](TypeRef part) {
      const Fits fits = Assignable(part, args[1]);
      if (fits == Fits::kMaybe) sure = false;
      // Without strictNullChecks an object may fit all the same, unless a literal tells.
      if (fits == Fits::kNo && Settled(part) && !Discriminated(part, args[1])) sure = false;
      if ((fits == Fits::kYes) == (name == "Extract")) parts.push_back(part);
    });
    return finish(sure ? pool_.Union(std::move(parts)) : pool_.open);
  }
  if (name == "Record" && args.size() == 2) {
    Shape shape;
    bool sure = true;
    TypePool::Each(args[0], [&](TypeRef key) {
      if (key->is(T::kString)) {
        shape.string_index = args[1];
      } else if (key->is(T::kNumber)) {
        shape.number_index = args[1];
      } else if (key->is(T::kStringLiteral) || key->is(T::kNumberLiteral)) {
        shape.properties.push_back(Property{.name = key->text, .type = args[1]});
      } else if (!key->is(T::kSymbol)) {
        sure = false;
      }
    });
    return finish(sure ? pool_.ShapeOf(std::move(shape)) : pool_.open);
  }
  if (name == "Partial" || name == "Required" || name == "Readonly" || name == "Pick" ||
      name == "Omit") {
    if (name == "Readonly") {
      if (args[0]->is(T::kTuple)) {
        return finish(pool_.Tuple(args[0]->parts, args[0]->required, args[0]->rest, true));
      }
      if (args[0]->is(T::kRef) && args[0]->symbol == Global("Array")) {
        return finish(pool_.Ref(Global("ReadonlyArray"), args[0]->parts));
      }
    }
    const bool user =
        args[0]->is(T::kShape) || (args[0]->is(T::kRef) && !args[0]->symbol->is(kLib));
    const auto names = user ? Members(args[0], nullptr) : std::nullopt;
    const Shape* source = user ? ShapeOf(args[0]) : nullptr;
    if (!names || source == nullptr || source->open) return finish(pool_.open);
    Shape shape;
    shape.string_index = source->string_index;
    shape.number_index = source->number_index;
    for (const Property& p : source->properties) {
      if (name == "Pick" || name == "Omit") {
        if (args.size() != 2) return finish(pool_.open);
        const Fits listed = Assignable(pool_.StringLiteral(p.name), args[1]);
        if (listed == Fits::kMaybe) return finish(pool_.open);
        if ((listed == Fits::kYes) != (name == "Pick")) continue;
      }
      Property copy = p;
      copy.type = TypeOfProperty(p);
      if (name == "Partial") {
        copy.optional = true;
        copy.type = pool_.Union(copy.type, pool_.undefined);
      }
      if (name == "Required") {
        copy.optional = false;
        copy.type = pool_.NonNull(copy.type);
      }
      if (name == "Readonly") copy.readonly = true;
      shape.properties.push_back(std::move(copy));
    }
    return finish(pool_.ShapeOf(std::move(shape)));
  }
  if (name == "ReturnType") {
    const auto signatures = CallSignatures(args[0], false);
    return finish(signatures.size() == 1 ? ResultOf(signatures[0]) : pool_.open);
  }
  if (name == "Uppercase" || name == "Lowercase" || name == "Capitalize" ||
      name == "Uncapitalize" || name == "Parameters" || name == "ConstructorParameters" ||
      name == "InstanceType" || name == "ThisType" || name == "OmitThisParameter" ||
      name == "ThisParameterType") {
    return finish(pool_.open);
  }
  return nullptr;
}

}  // namespace pawl::monitors::ts
