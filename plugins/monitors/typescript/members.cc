// Members. A class or interface has a table of its own members, filled from its declarations, and
// base types that are asked when the table does not have a name; both speak of the declaration's
// type parameters, which are replaced by the arguments of the type at hand. Primitive types are
// looked up in the interface that the library has for them.
//
// A class or interface in which the cursor stands may get more members: it is open, and so is
// everything that derives from it, and everything with a base that is not known.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

namespace {

// "a", 'a', a, 1; empty: computed.
std::string KeyText(const Node* name) {
  if (name == nullptr) return "";
  switch (name->kind) {
    case K::k_property_identifier:
    case K::k_private_property_identifier:
    case K::k_identifier:
    case K::k_number:
    case K::k_shorthand_property_identifier:
      return std::string(name->text());
    case K::k_string: {
      const std::string_view text = name->text();
      return text.size() >= 2 ? std::string(text.substr(1, text.size() - 2)) : "";
    }
    case K::k_computed_property_name: {
      const std::string_view text = name->text();
      if (text.starts_with("[Symbol.") && text.ends_with("]")) {
        return "@@" + std::string(text.substr(8, text.size() - 9));
      }
      return "";
    }
    default:
      return "";
  }
}

}  // namespace

void Checker::AddParameterProperties(Symbol* symbol, const Node* constructor) {
  const Node* list = constructor->at(F::k_parameters);
  if (list == nullptr) return;
  for (const Node& p : list->kids()) {
    if (!p.is(K::k_required_parameter) && !p.is(K::k_optional_parameter)) continue;
    const Node* pattern = p.at(F::k_pattern);
    if (pattern == nullptr || !pattern->is(K::k_identifier)) continue;
    const bool access = p.first(K::k_accessibility_modifier) != nullptr;
    bool readonly = false;
    for (const Node& kid : p.kids())
      readonly = readonly || (!kid.named && kid.text() == "readonly");
    if (!access && !readonly) continue;
    Symbol* member = NewSymbol(pattern->text(), kProperty | (readonly ? kReadonly : 0U), &p);
    if (p.is(K::k_optional_parameter)) member->flags |= kOptional;
    member->owner = symbol;
    symbol->members[member->name] = member;
  }
}

void Checker::AddMembers(Symbol* symbol, const Node* body) {
  for (const Node& m : body->kids()) {
    switch (m.kind) {
      case K::k_call_signature:
        symbol->calls.push_back(&m);
        continue;
      case K::k_construct_signature:
        symbol->constructs.push_back(&m);
        continue;
      case K::k_index_signature:
        symbol->indexes.push_back(&m);
        continue;
      case K::k_property_signature:
      case K::k_method_signature:
      case K::k_abstract_method_signature:
      case K::k_method_definition:
      case K::k_public_field_definition:
        break;
      default:
        continue;
    }
    const std::string name = KeyText(m.at(F::k_name));
    if (name.empty()) {
      symbol->bases_open = true;  // a computed name
      continue;
    }
    uint32_t flags = kProperty;
    if (m.is(K::k_method_signature) || m.is(K::k_abstract_method_signature) ||
        m.is(K::k_method_definition)) {
      flags = HasWord(&m, "get") ? kGetter : HasWord(&m, "set") ? kSetter : kMethod;
    }
    if (HasWord(&m, "readonly")) flags |= kReadonly;
    if (HasQuestionMark(&m)) flags |= kOptional;
    const bool is_static = HasWord(&m, "static");
    if (name == "constructor" && m.is(K::k_method_definition) && !is_static) {
      symbol->constructs.push_back(&m);
      AddParameterProperties(symbol, &m);
      continue;
    }
    if (name == "constructor" && m.is(K::k_method_signature) && body->is(K::k_class_body)) {
      symbol->constructs.insert(symbol->constructs.begin(), &m);
      continue;
    }
    Symbol*& member = (is_static ? symbol->statics : symbol->members)[name];
    if (member == nullptr || (member->flags & (kMethod | kGetter | kSetter)) == 0) {
      if (member == nullptr) member = NewSymbol(name, flags, &m);
      member->owner = symbol;
      member->flags |= flags;
    } else {
      member->declarations.push_back(&m);
      member->flags |= flags;
    }
  }
}

void Checker::FillMembers(Symbol* symbol) {
  if (symbol->members_known) return;
  symbol->members_known = true;
  const Binding binding(*this, symbol->is(kLib)       ? lib_.get()
                               : symbol->is(kForeign) ? nullptr
                                                      : tree_.get());
  Scope space;  // of all parts of a namespace: what one of them declares another may go on with
  for (const Node* d : symbol->declarations) {
    const Node* body = d->at(F::k_body);
    if (body == nullptr) continue;
    if (body->is(K::k_class_body) || body->is(K::k_interface_body) || body->is(K::k_object_type)) {
      AddMembers(symbol, body);
    } else if (body->is(K::k_enum_body)) {
      for (const Node& kid : body->kids()) {
        const Node* name = kid.is(K::k_enum_assignment) ? kid.at(F::k_name) : &kid;
        if (name == nullptr || !name->named || name->is(K::k_comment)) continue;
        const std::string key = KeyText(name);
        if (key.empty()) continue;
        Symbol* member = NewSymbol(key, kEnumMember, &kid);
        member->owner = symbol;
        symbol->statics[key] = member;
      }
    } else if (body->is(K::k_statement_block)) {  // a namespace
      for (const Node& kid : body->kids()) {
        if (!kid.named) continue;
        BindStatement(&kid, space, false);
        BindVars(&kid, space);
      }
    }
  }
  for (auto& [name, member] : space.names) symbol->statics.emplace(name, member);
}

Symbol* Checker::MemberSymbol(Symbol* of, const std::string& name) {
  FillMembers(of);
  const auto found = of->members.find(name);
  return found == of->members.end() ? nullptr : found->second;
}

bool Checker::OpenSymbol(Symbol* symbol) {
  Work::Step();
  FillMembers(symbol);
  if (symbol->bases_open && !symbol->is(kLib)) return true;
  if (!symbol->is(kLib) && (augmented_.contains(symbol->name) ||
                            (script_ && !symbol->is(kForeign) && Shared(symbol->name)))) {
    return true;
  }
  for (const Node* d : symbol->declarations) {
    if (Unfinished(d) || (symbol->is(kForeign) && BadlyRead(d))) return true;
    for (const Node& kid : d->kids()) {
      if (kid.is(K::k_decorator)) return true;
    }
  }
  return false;
}

// What `extends` names: Base, or Base of a namespace; nullptr: not known.
Symbol* Checker::BaseNamed(const Node* value, const Node* declaration) {
  if (value->is(K::k_identifier)) return Resolve(value->text(), declaration, kClass | kInterface);
  if (!value->is(K::k_member_expression)) return nullptr;
  const Node* object = value->at(F::k_object);
  const Node* property = value->at(F::k_property);
  if (object == nullptr || property == nullptr || !object->is(K::k_identifier)) return nullptr;
  Symbol* space = Resolve(object->text(), declaration, kNamespace);
  if (space == nullptr || space->is(kImport)) return nullptr;
  FillMembers(space);
  const auto found = space->statics.find(std::string(property->text()));
  Symbol* base =
      found == space->statics.end() ? nullptr : Meant(found->second, kClass | kInterface);
  return base == nullptr || base->is(kImport) ? nullptr : base;
}

void Checker::ReadBases(Symbol* symbol) {
  if (!symbol->bases_known) {
    symbol->bases_known = true;
    for (const Node* d : symbol->declarations) {
      if (d->is(K::k_interface_declaration)) {
        const Node* clause = d->first(K::k_extends_type_clause);
        if (clause == nullptr) continue;
        for (const Node& kid : clause->kids()) {
          if (!kid.named || kid.is(K::k_comment)) continue;
          const TypeRef whole = TypeFromNode(&kid);
          const std::vector<TypeRef> one = {whole};
          for (TypeRef base : whole->is(T::kIntersection) ? whole->parts : one) {
            // interface A extends Typed {}, where type Typed = typeof all & B.
            const bool space =
                base->is(T::kStatic) && base->symbol->is(kForeign) && base->symbol->is(kNamespace);
            if (base->is(T::kRef) || base->is(T::kShape) || space) {
              symbol->bases.push_back(base);
            } else {
              symbol->bases_open = true;
            }
          }
        }
        continue;
      }
      const Node* heritage = d->first(K::k_class_heritage);
      if (heritage == nullptr) continue;
      const Node* clause = heritage->first(K::k_extends_clause);
      if (clause == nullptr) continue;
      const Node* value = clause->at(F::k_value);
      Symbol* base = value == nullptr ? nullptr : BaseNamed(value, d);
      if (base == nullptr || base == symbol) {
        symbol->bases_open = true;
        continue;
      }
      std::vector<TypeRef> args;
      if (const Node* list = clause->at(F::k_type_arguments)) {
        for (const Node& kid : list->kids()) {
          if (kid.named && !kid.is(K::k_comment)) args.push_back(TypeFromNode(&kid));
        }
      }
      symbol->bases.push_back(DeclaredType(base, std::move(args)));
    }
  }
}

// `class A extends B {} class B extends A {}` is what a text says for a moment while it is written.
// A declaration whose bases come back to it has bases that are not known. Each declaration is
// visited once, with a stack of the search's own.
void Checker::CheckBases(Symbol* start) {
  using State = Symbol::Bases;
  if (start->bases_state != State::kUnseen) return;
  struct Entry {
    Symbol* symbol;
    size_t next = 0;
  };
  std::vector<Entry> path;
  const auto enter = [&](Symbol* symbol) {
    symbol->bases_state = State::kOnPath;
    ReadBases(symbol);
    path.push_back({symbol});
  };
  enter(start);
  while (!path.empty()) {
    Work::Step();
    Symbol* const symbol = path.back().symbol;
    if (path.back().next == symbol->bases.size()) {
      symbol->bases_state = State::kDone;
      if (symbol->bases_cyclic) {
        symbol->bases.clear();
        symbol->bases_open = true;
      }
      path.pop_back();
      continue;
    }
    const TypeRef base = symbol->bases[path.back().next++];
    if (!base->is(T::kRef)) continue;
    if (base->symbol->bases_state == State::kUnseen) {
      enter(base->symbol);
    } else if (base->symbol->bases_state == State::kOnPath) {
      // All from the base to here are on the cycle; a base that is not on this path is on that of
      // a search around this one.
      size_t i = path.size();
      while (i > 0 && path[i - 1].symbol != base->symbol) --i;
      if (i == 0) {
        symbol->bases_cyclic = true;
        continue;
      }
      for (--i; i < path.size(); ++i) path[i].symbol->bases_cyclic = true;
    }
  }
}

std::vector<TypeRef> Checker::BasesOf(TypeRef type) {
  Symbol* symbol = type->symbol;
  CheckBases(symbol);
  Work::Step(1 + symbol->bases.size());
  const std::vector<TypeRef>& params = ParamsOf(symbol);
  Mapper mapper;
  for (size_t i = 0; i < params.size() && i < type->parts.size(); ++i) {
    mapper.emplace_back(params[i], type->parts[i]);
  }
  std::vector<TypeRef> bases;
  for (TypeRef base : symbol->bases) bases.push_back(Instantiate(base, mapper));
  return bases;
}

TypeRef Checker::Apparent(TypeRef type) {
  // A parameter is seen as its constraint, which may be a parameter too.
  while (type->is(T::kParam)) {
    Work::Step();
    const TypeRef constraint = ConstraintOf(type);
    if (constraint->is(T::kUnknown)) break;
    type = constraint;
  }
  const auto global = [&](const char* name) -> TypeRef {
    Symbol* symbol = Global(name);
    return symbol == nullptr ? pool_.open : pool_.Ref(symbol, {});
  };
  switch (type->kind) {
    case T::kNumber:
    case T::kNumberLiteral:
      return global("Number");
    case T::kString:
    case T::kStringLiteral:
      return global("String");
    case T::kBoolean:
    case T::kBooleanLiteral:
      return global("Boolean");
    case T::kBigInt:
    case T::kBigIntLiteral:
      return global("BigInt");
    case T::kSymbol:
      return global("Symbol");
    case T::kTuple: {
      std::vector<TypeRef> parts = type->parts;
      const TypeRef element = pool_.Union(std::move(parts));
      Symbol* array = Global(type->readonly ? "ReadonlyArray" : "Array");
      return array == nullptr ? pool_.open : pool_.Ref(array, {element});
    }
    case T::kParam:
      return global("Object");
    case T::kEnumMember:
      return pool_.open;
    default:
      return type;
  }
}

// The parameters and the result of a declaration, signature or function expression.
const Signature* Checker::SignatureOf(const Node* node, const Mapper& mapper) {
  Signature* signature = pool_.NewSignature();
  signature->node = node;
  TypeRef for_this = nullptr;
  if (node->at(F::k_type_parameters) != nullptr) {
    const Table& names = ScopeOf(node).names;
    for (const Node& kid : node->at(F::k_type_parameters)->kids()) {
      if (!kid.is(K::k_type_parameter) || kid.at(F::k_name) == nullptr) continue;
      const auto found = names.find(std::string(kid.at(F::k_name)->text()));
      if (found != names.end()) signature->type_params.push_back(pool_.Param(found->second));
    }
  }
  if (const Node* list = node->at(F::k_parameters)) {
    for (const Node& p : list->kids()) {
      if (!p.is(K::k_required_parameter) && !p.is(K::k_optional_parameter)) continue;
      const Node* pattern = p.at(F::k_pattern);
      Parameter parameter;
      parameter.name = pattern == nullptr ? "" : std::string(pattern->text());
      if (parameter.name == "this") {
        // create<T>(this: new () => T): what T stands for comes from the object of the call.
        for_this = p.at(F::k_type) == nullptr ? nullptr : TypeFromNode(p.at(F::k_type));
        signature->self = for_this;
        continue;
      }
      parameter.optional = p.is(K::k_optional_parameter) || p.at(F::k_value) != nullptr;
      parameter.rest = pattern != nullptr && pattern->is(K::k_rest_pattern);
      parameter.type = TypeOfParameter(&p);
      signature->params.push_back(std::move(parameter));
    }
  } else if (const Node* single = node->at(F::k_parameter);
             single != nullptr && node->is(K::k_arrow_function)) {
    signature->params.push_back(
        Parameter{.name = std::string(single->text()), .type = TypeOfParameter(single)});
  }
  const Node* result = node->at(F::k_return_type);
  if (result == nullptr && (node->is(K::k_call_signature) || node->is(K::k_method_signature) ||
                            node->is(K::k_construct_signature))) {
    result = node->at(F::k_type);
  }
  if (result != nullptr) {
    if (result->is(K::k_asserts_annotation) || result->is(K::k_type_predicate_annotation) ||
        result->is(K::k_type_predicate)) {
      const Node* predicate =
          result->is(K::k_type_predicate) ? result : result->first(K::k_type_predicate);
      signature->asserts = result->is(K::k_asserts_annotation);
      if (predicate == nullptr && signature->asserts) {
        if (const Node* inner = result->first(K::k_asserts)) {
          predicate = inner->first(K::k_type_predicate);
          if (predicate == nullptr) {
            signature->guards =
                inner->first_named() == nullptr ? "" : std::string(inner->first_named()->text());
          }
        }
      }
      if (predicate != nullptr) {
        const Node* name = predicate->at(F::k_name);
        signature->guards = name == nullptr ? "" : std::string(name->text());
        signature->guarded = TypeFromNode(predicate->at(F::k_type));
      }
      signature->result = signature->asserts ? pool_.void_ : pool_.boolean;
    } else {
      signature->result = TypeFromNode(result);
    }
  }
  if (signature->result == nullptr && Ambient(node)) signature->result = pool_.any;
  if (for_this != nullptr && !signature->type_params.empty() && HasParams(for_this))
    signature->result = pool_.open;
  if (signature->result == nullptr && signature->guarded == nullptr) InferGuard(node, signature);
  return mapper.empty() ? signature : Instantiate(signature, mapper);
}

// A function that says nothing of its result and returns one condition on a parameter may be a type
// guard: (x) => x instanceof Dog. What it then guards is not computed.
void Checker::InferGuard(const Node* node, Signature* signature) {
  const Node* body = node->at(F::k_body);
  if (body == nullptr || signature->params.empty() || body->tree == lib_.get()) return;
  const std::string_view text = body->text();
  if (body->is(K::k_statement_block) && text.find("return") == std::string_view::npos) return;
  bool guards = false;
  std::vector<const Node*> todo = {body};
  while (!todo.empty() && !guards) {
    Work::Step();
    const Node* at = todo.back();
    todo.pop_back();
    if (at->is(K::k_binary_expression)) {
      const Node* op = at->at(F::k_operator);
      guards = op != nullptr && (op->text() == "instanceof" || op->text() == "in");
    } else if (at->is(K::k_call_expression)) {
      const Node* callee = at->at(F::k_function);
      Symbol* symbol = callee == nullptr || !callee->is(K::k_identifier)
                           ? nullptr
                           : Resolve(callee->text(), callee, kFunctionName | kConst);
      for (const Node* d : symbol == nullptr ? std::vector<const Node*>() : symbol->declarations) {
        const std::string_view head = d->text();
        guards = guards || head.find(" is ") != std::string_view::npos ||
                 head.find("instanceof") != std::string_view::npos;
      }
    }
    for (const Node& kid : at->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  if (!guards) return;
  signature->guards = signature->params.front().name;
  signature->guarded = pool_.open;
}

TypeRef Checker::ResultOf(const Signature* signature) {
  if (signature->result == nullptr) {
    signature->result = signature->node == nullptr
                            ? pool_.open
                            : Instantiate(ReturnTypeFromBody(signature->node), signature->mapper);
  }
  return signature->result;
}

std::vector<const Signature*> Checker::SignaturesOf(Symbol* symbol) {
  // Overloads come without a body; the body that follows them is not called directly.
  std::vector<const Node*> nodes;
  bool bodies = false;
  bool headers = false;
  for (const Node* d : symbol->declarations) {
    (d->at(F::k_body) != nullptr ? bodies : headers) = true;
  }
  for (const Node* d : symbol->declarations) {
    const bool body = d->at(F::k_body) != nullptr;
    if (bodies && headers && body) continue;
    nodes.push_back(d);
  }
  std::vector<const Signature*> signatures;
  for (const Node* d : nodes) signatures.push_back(SignatureOf(d));
  return signatures;
}

void Checker::AddSignatureMembers(const Node* body, const Mapper& mapper, Shape& shape) {
  for (const Node& m : body->kids()) {
    switch (m.kind) {
      case K::k_call_signature:
        shape.calls.push_back(SignatureOf(&m, mapper));
        break;
      case K::k_construct_signature:
        shape.constructs.push_back(SignatureOf(&m, mapper));
        break;
      case K::k_index_signature: {
        if (m.first(K::k_mapped_type_clause) != nullptr) {
          shape.open = true;
          break;
        }
        const Node* key = m.at(F::k_index_type);
        const Node* value = m.at(F::k_type);
        if (key == nullptr || value == nullptr) {
          shape.open = true;
          break;
        }
        const TypeRef type = Instantiate(TypeFromNode(value), mapper);
        const TypeRef key_type = TypeFromNode(key);
        (key_type->is(T::kNumber) ? shape.number_index : shape.string_index) = type;
        break;
      }
      case K::k_property_signature:
      case K::k_method_signature: {
        const std::string name = KeyText(m.at(F::k_name));
        if (name.empty()) {
          shape.open = true;
          break;
        }
        Property property{.name = name};
        property.optional = HasQuestionMark(&m);
        property.readonly = HasWord(&m, "readonly");
        if (m.is(K::k_method_signature)) {
          property.method = true;
          std::vector<const Signature*> signatures = {SignatureOf(&m, mapper)};
          for (Property& earlier : shape.properties) {
            if (earlier.name == name && earlier.type->is(T::kFunction)) {
              signatures.insert(signatures.begin(), earlier.type->signatures.begin(),
                                earlier.type->signatures.end());
              earlier.type = pool_.Function(signatures);
              property.name.clear();
            }
          }
          if (property.name.empty()) break;
          property.type = pool_.Function(std::move(signatures));
        } else {
          property.type = m.at(F::k_type) == nullptr
                              ? pool_.any
                              : Instantiate(TypeFromNode(m.at(F::k_type)), mapper);
        }
        if (property.optional) property.type = pool_.Union(property.type, pool_.undefined);
        shape.properties.push_back(std::move(property));
        break;
      }
      default:
        break;
    }
  }
}

const Shape* Checker::ShapeFromNode(const Node* node, const Mapper& mapper) {
  Shape* shape = pool_.NewShape();
  AddSignatureMembers(node, mapper, *shape);
  if (Unfinished(node) || node->broken()) shape->open = true;
  return shape;
}

// The own shape of an object type, with those of its bases for a class or interface of the program;
// nullptr when it has none.
const Shape* Checker::ShapeOf(TypeRef type) {
  if (type->is(T::kShape)) {
    if (type->shape == nullptr) {
      // const_cast-free: `shape` is filled once.
      const Work::Deeper deeper;
      type->shape = const_cast<Shape*>(ShapeFromNode(type->node, type->mapper));
    }
    return type->shape;
  }
  if (!type->is(T::kRef)) return nullptr;
  auto& known = Settled(type) ? settled_shapes_ : shapes_;
  if (const auto found = known.find(type); found != known.end()) return found->second;
  const Work::Deeper deeper;
  Shape* shape = pool_.NewShape();
  known[type] = shape;
  Symbol* symbol = type->symbol;
  FillMembers(symbol);
  const std::vector<TypeRef>& params = ParamsOf(symbol);
  Mapper mapper;
  for (size_t i = 0; i < params.size() && i < type->parts.size(); ++i) {
    mapper.emplace_back(params[i], type->parts[i]);
  }
  for (const auto& [name, member] : symbol->members) {
    Work::Step(4);
    Property property{.name = name, .symbol = member, .mapper = mapper};
    property.optional = member->is(kOptional);
    property.readonly = member->is(kReadonly) || (member->is(kGetter) && !member->is(kSetter));
    property.method = member->is(kMethod);
    shape->properties.push_back(std::move(property));
  }
  std::sort(shape->properties.begin(), shape->properties.end(),
            [](const Property& a, const Property& b) { return a.symbol->id < b.symbol->id; });
  for (const Node* index : symbol->indexes) {
    if (index->first(K::k_mapped_type_clause) != nullptr) {
      shape->open = true;
      continue;
    }
    const Node* key = index->at(F::k_index_type);
    const Node* value = index->at(F::k_type);
    if (key == nullptr || value == nullptr) continue;
    const TypeRef stands = Instantiate(TypeFromNode(value), mapper);
    (TypeFromNode(key)->is(T::kNumber) ? shape->number_index : shape->string_index) = stands;
  }
  for (const Node* call : symbol->calls) shape->calls.push_back(SignatureOf(call, mapper));
  if (!symbol->is(kClass)) {
    for (const Node* c : symbol->constructs) shape->constructs.push_back(SignatureOf(c, mapper));
  }
  for (TypeRef base : BasesOf(type)) {
    const Shape* inherited = ShapeOf(base);
    if (inherited == nullptr) {
      shape->open = true;
      continue;
    }
    for (const Property& p : inherited->properties) {
      Work::Step(4 + shape->properties.size() / 8);
      if (shape->Find(p.name) == nullptr) shape->properties.push_back(p);
    }
    if (shape->string_index == nullptr) shape->string_index = inherited->string_index;
    if (shape->number_index == nullptr) shape->number_index = inherited->number_index;
    shape->calls.insert(shape->calls.end(), inherited->calls.begin(), inherited->calls.end());
    shape->open = shape->open || inherited->open;
  }
  if (OpenSymbol(symbol) || symbol->bases_open) shape->open = true;
  return shape;
}

}  // namespace pawl::monitors::ts
