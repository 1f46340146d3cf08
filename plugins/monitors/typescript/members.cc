// Members. A class or interface has a table of its own members, filled from its declarations, and
// base types that are asked when the table does not have a name; both speak of the declaration's
// type parameters, which are replaced by the arguments of the type at hand. Primitive types are
// looked up in the interface that the library has for them.
//
// A class or interface in which the cursor stands may get more members: it is open, and so is
// everything that derives from it, and everything with a base that is not known.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"

namespace pawl::monitors::ts {

using K = Kind;
using F = Field;

namespace {

bool HasWord(const Node* node, std::string_view word) {
  for (const Node& kid : node->kids()) {
    if (kid.field == F::k_name || kid.field == F::k_body || kid.field == F::k_parameters) break;
    if (kid.text() == word) return true;
  }
  return false;
}

bool HasQuestionMark(const Node* node) {
  bool after = false;
  for (const Node& kid : node->kids()) {
    if (kid.field == F::k_name) after = true;
    if (after && !kid.named && kid.text() == "?") return true;
  }
  return false;
}

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
  const bool before = binding_lib_;
  binding_lib_ = symbol->is(kLib);
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
      Scope scope;
      for (const Node& kid : body->kids()) {
        if (!kid.named) continue;
        BindStatement(&kid, scope, false);
        BindVars(&kid, scope);
      }
      for (auto& [name, member] : scope.names) symbol->statics.emplace(name, member);
    }
  }
  binding_lib_ = before;
}

Symbol* Checker::MemberSymbol(Symbol* of, const std::string& name) {
  FillMembers(of);
  const auto found = of->members.find(name);
  return found == of->members.end() ? nullptr : found->second;
}

bool Checker::OpenSymbol(Symbol* symbol) {
  FillMembers(symbol);
  if (symbol->bases_open && !symbol->is(kLib)) return true;
  for (const Node* d : symbol->declarations) {
    if (Unfinished(d)) return true;
    for (const Node& kid : d->kids()) {
      if (kid.is(K::k_decorator)) return true;
    }
  }
  return false;
}

std::vector<TypeRef> Checker::BasesOf(TypeRef type) {
  Symbol* symbol = type->symbol;
  if (!symbol->bases_known) {
    symbol->bases_known = true;
    for (const Node* d : symbol->declarations) {
      if (d->is(K::k_interface_declaration)) {
        const Node* clause = d->first(K::k_extends_type_clause);
        if (clause == nullptr) continue;
        for (const Node& kid : clause->kids()) {
          if (!kid.named || kid.is(K::k_comment)) continue;
          const TypeRef base = TypeFromNode(&kid);
          if (base->is(T::kRef)) {
            symbol->bases.push_back(base);
          } else if (base->is(T::kShape)) {
            symbol->bases.push_back(base);
          } else {
            symbol->bases_open = true;
          }
        }
        continue;
      }
      const Node* heritage = d->first(K::k_class_heritage);
      if (heritage == nullptr) continue;
      const Node* clause = heritage->first(K::k_extends_clause);
      if (clause == nullptr) continue;
      const Node* value = clause->at(F::k_value);
      if (value == nullptr || !value->is(K::k_identifier)) {
        symbol->bases_open = true;
        continue;
      }
      Symbol* base = Resolve(value->text(), d, kClass | kInterface);
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
    case T::kParam: {
      const TypeRef constraint = ConstraintOf(type);
      return constraint->is(T::kUnknown) ? global("Object") : Apparent(constraint);
    }
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
      if (parameter.name == "this") continue;
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
  if (signature->result == nullptr && node->tree == lib_.get()) signature->result = pool_.any;
  return mapper.empty() ? signature : Instantiate(signature, mapper);
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
      type->shape = const_cast<Shape*>(ShapeFromNode(type->node, type->mapper));
    }
    return type->shape;
  }
  if (!type->is(T::kRef)) return nullptr;
  if (const auto found = shapes_.find(type); found != shapes_.end()) return found->second;
  Shape* shape = pool_.NewShape();
  shapes_[type] = shape;
  Symbol* symbol = type->symbol;
  FillMembers(symbol);
  const std::vector<TypeRef>& params = ParamsOf(symbol);
  Mapper mapper;
  for (size_t i = 0; i < params.size() && i < type->parts.size(); ++i) {
    mapper.emplace_back(params[i], type->parts[i]);
  }
  for (const auto& [name, member] : symbol->members) {
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
    if (inherited == nullptr) continue;
    for (const Property& p : inherited->properties) {
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

TypeRef Checker::TypeOfProperty(const Property& property) {
  if (property.type != nullptr) return property.type;
  if (property.symbol == nullptr) return pool_.open;
  TypeRef type = Instantiate(TypeOfSymbol(property.symbol), property.mapper);
  if (property.symbol->is(kOptional)) type = pool_.Union(type, pool_.undefined);
  return type;
}

std::optional<Property> Checker::Member(TypeRef type, std::string_view name) {
  const auto open = [&] { return Property{.name = std::string(name), .type = pool_.open}; };
  if (depth_ > 80) return open();
  switch (type->kind) {
    case T::kOpen:
    case T::kAny:
    case T::kUnknown:
    case T::kNever:
    case T::kObject:
      return open();
    case T::kVoid:
    case T::kUndefined:
    case T::kNull:
      return std::nullopt;
    case T::kUnion: {
      // In every part; a part that lacks it may have been excluded by a condition that is not
      // followed.
      std::vector<TypeRef> types;
      bool all = true;
      bool some = false;
      Property result{.name = std::string(name)};
      for (TypeRef part : type->parts) {
        if (part->is(T::kNull) || part->is(T::kUndefined)) continue;
        const auto member = Member(part, name);
        if (!member) {
          // Object literals that stand side by side have each other's properties as optional ones.
          if (part->literal_object) {
            types.push_back(pool_.undefined);
            continue;
          }
          all = false;
          continue;
        }
        some = true;
        types.push_back(TypeOfProperty(*member));
        result.optional = result.optional || member->optional;
        result.readonly = result.readonly || member->readonly;
        result.method = result.method || member->method;
      }
      if (!some) return std::nullopt;
      result.type = all ? pool_.Union(std::move(types)) : pool_.open;
      return result;
    }
    case T::kIntersection: {
      std::vector<TypeRef> types;
      Property result{.name = std::string(name)};
      for (TypeRef part : type->parts) {
        if (const auto member = Member(part, name)) types.push_back(TypeOfProperty(*member));
      }
      if (types.empty()) return std::nullopt;
      result.type = pool_.Intersection(std::move(types));
      return result;
    }
    case T::kFunction: {
      Symbol* function =
          Global("CallableFunction") != nullptr ? Global("CallableFunction") : Global("Function");
      return function == nullptr ? open() : Member(pool_.Ref(function, {}), name);
    }
    case T::kStatic: {
      Symbol* symbol = type->symbol;
      FillMembers(symbol);
      const auto found = symbol->statics.find(std::string(name));
      if (found != symbol->statics.end()) {
        return Property{
            .name = std::string(name), .readonly = symbol->is(kEnum), .symbol = found->second};
      }
      if (OpenSymbol(symbol)) return open();
      if (symbol->is(kEnum)) {
        Symbol* object = Global("Object");
        return object == nullptr ? std::nullopt : Member(pool_.Ref(object, {}), name);
      }
      if (!symbol->is(kClass) || symbol->bases_open) return open();
      if (name == "prototype") return open();
      for (TypeRef base : BasesOf(pool_.Ref(symbol, ParamsOf(symbol)))) {
        if (base->is(T::kRef) && base->symbol->is(kClass)) {
          if (auto member = Member(pool_.Static(base->symbol), name)) return member;
        } else {
          return open();
        }
      }
      Symbol* function = Global("Function");
      return function == nullptr ? open() : Member(pool_.Ref(function, {}), name);
    }
    case T::kTuple: {
      if (!name.empty() &&
          std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        const size_t i = std::stoul(std::string(name.substr(0, 6)));
        if (i < type->parts.size()) {
          return Property{.name = std::string(name), .type = type->parts[i]};
        }
        if (type->rest) return Property{.name = std::string(name), .type = type->parts.back()};
        return std::nullopt;
      }
      if (name == "length" && !type->rest && type->required == type->parts.size()) {
        const std::string count = std::to_string(type->parts.size());
        return Property{
            .name = "length",
            .type = pool_.NumberLiteral(static_cast<double>(type->parts.size()), count)};
      }
      return Member(Apparent(type), name);
    }
    case T::kRef:
    case T::kShape: {
      if (type->is(T::kRef) && type->symbol->is(kEnum)) return open();
      if (type->is(T::kRef)) {
        // Straight from the tables: the shape of a library type has hundreds of members.
        Symbol* symbol = type->symbol;
        if (Symbol* member = MemberSymbol(symbol, std::string(name))) {
          Property property{.name = std::string(name), .symbol = member};
          const std::vector<TypeRef>& params = ParamsOf(symbol);
          for (size_t i = 0; i < params.size() && i < type->parts.size(); ++i) {
            property.mapper.emplace_back(params[i], type->parts[i]);
          }
          property.optional = member->is(kOptional);
          property.readonly =
              member->is(kReadonly) || (member->is(kGetter) && !member->is(kSetter));
          property.method = member->is(kMethod);
          return property;
        }
        for (TypeRef base : BasesOf(type)) {
          ++depth_;
          auto member = Member(base, name);
          --depth_;
          if (member) return member;
        }
        if (symbol->bases_open || OpenSymbol(symbol)) return open();
        if (!symbol->indexes.empty()) {
          const Shape* shape = ShapeOf(type);
          if (shape->string_index != nullptr) {
            return Property{.name = std::string(name), .type = shape->string_index};
          }
        }
        if (!symbol->calls.empty() || !symbol->constructs.empty()) {
          Symbol* function = Global("Function");
          if (function != nullptr && symbol != function) {
            if (auto member = Member(pool_.Ref(function, {}), name)) return member;
          }
        }
      } else {
        const Shape* shape = ShapeOf(type);
        if (shape == nullptr || shape->open) {
          if (const Property* p = shape == nullptr ? nullptr : shape->Find(name)) return *p;
          return open();
        }
        if (const Property* p = shape->Find(name)) return *p;
        if (shape->string_index != nullptr) {
          return Property{.name = std::string(name), .type = shape->string_index};
        }
        if (!shape->calls.empty() || !shape->constructs.empty()) {
          Symbol* function = Global("Function");
          if (function != nullptr) {
            if (auto member = Member(pool_.Ref(function, {}), name)) return member;
          }
        }
      }
      Symbol* object = Global("Object");
      if (object == nullptr || (type->is(T::kRef) && type->symbol == object)) return std::nullopt;
      return Member(pool_.Ref(object, {}), name);
    }
    default:
      return Member(Apparent(type), name);
  }
}

std::optional<std::vector<std::string>> Checker::Members(TypeRef type, const Node* at) {
  std::vector<std::string> names;
  const auto add_ref = [&](auto&& self, TypeRef ref) -> bool {
    if (ref->is(T::kShape)) {
      const Shape* shape = ShapeOf(ref);
      if (shape == nullptr || shape->open || shape->string_index != nullptr) return false;
      for (const Property& p : shape->properties) names.push_back(p.name);
      return shape->calls.empty() && shape->constructs.empty();
    }
    if (!ref->is(T::kRef)) return false;
    Symbol* symbol = ref->symbol;
    FillMembers(symbol);
    if (symbol->is(kEnum) || OpenSymbol(symbol)) return false;
    for (const auto& [name, member] : symbol->members) {
      if (!name.starts_with("@@")) names.push_back(name);
    }
    for (TypeRef base : BasesOf(ref)) {
      if (!self(self, base)) return false;
    }
    if (symbol->bases_open) return false;
    if (!symbol->indexes.empty() && ShapeOf(ref)->string_index != nullptr) return false;
    if (!symbol->calls.empty() || !symbol->constructs.empty()) {
      if (symbol->is(kClass)) return true;
      Symbol* function = Global("Function");
      if (function == nullptr) return false;
      if (symbol != function && !self(self, pool_.Ref(function, {}))) return false;
    }
    return true;
  };
  bool known = true;
  TypePool::Each(type, [&](TypeRef part) {
    if (!known || part->is(T::kNull) || part->is(T::kUndefined)) return;
    if (part->is(T::kStatic)) {
      Symbol* symbol = part->symbol;
      FillMembers(symbol);
      if (!symbol->is(kEnum) && !symbol->is(kClass)) known = false;
      if (symbol->is(kNamespace) || OpenSymbol(symbol)) known = false;
      for (const auto& [name, member] : symbol->statics) names.push_back(name);
      if (symbol->is(kClass)) {
        names.push_back("prototype");
        for (TypeRef base : BasesOf(pool_.Ref(symbol, ParamsOf(symbol)))) {
          const auto inherited = base->is(T::kRef) && base->symbol->is(kClass)
                                     ? Members(pool_.Static(base->symbol), at)
                                     : std::nullopt;
          if (!inherited) {
            known = false;
          } else {
            names.insert(names.end(), inherited->begin(), inherited->end());
          }
        }
        if (symbol->bases_open) known = false;
        Symbol* function = Global("Function");
        if (function == nullptr || !add_ref(add_ref, pool_.Ref(function, {}))) known = false;
      }
      return;
    }
    if (part->is(T::kFunction)) {
      for (const char* interface : {"CallableFunction", "Function"}) {
        Symbol* function = Global(interface);
        if (function == nullptr || !add_ref(add_ref, pool_.Ref(function, {}))) known = false;
      }
      return;
    }
    const TypeRef seen = Apparent(part);
    if (seen->is(T::kIntersection)) {
      for (TypeRef inner : seen->parts) {
        if (!add_ref(add_ref, Apparent(inner))) known = false;
      }
      return;
    }
    if (seen->is(T::kUnion)) {
      const auto inner = Members(seen, at);
      if (!inner) {
        known = false;
      } else {
        names.insert(names.end(), inner->begin(), inner->end());
      }
      return;
    }
    if (!add_ref(add_ref, seen)) known = false;
  });
  if (!known || names.empty()) return std::nullopt;
  if (Symbol* object = Global("Object")) add_ref(add_ref, pool_.Ref(object, {}));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<const Signature*> Checker::CallSignatures(TypeRef type, bool construct) {
  std::vector<const Signature*> result;
  switch (type->kind) {
    case T::kFunction:
      if (!construct) result = type->signatures;
      break;
    case T::kShape:
      if (const Shape* shape = ShapeOf(type)) result = construct ? shape->constructs : shape->calls;
      break;
    case T::kRef: {
      if (type->symbol->is(kEnum)) break;
      FillMembers(type->symbol);
      if (type->symbol->calls.empty() && type->symbol->constructs.empty()) break;
      if (const Shape* shape = ShapeOf(type)) result = construct ? shape->constructs : shape->calls;
      break;
    }
    case T::kIntersection:
      for (TypeRef part : type->parts) {
        for (const Signature* s : CallSignatures(part, construct)) result.push_back(s);
      }
      break;
    default:
      break;
  }
  return result;
}

TypeRef Checker::ElementType(TypeRef type, TypeRef index) {
  if (type->loose()) return type;
  if (index->loose()) return pool_.open;
  if (type->is(T::kUnion)) {
    std::vector<TypeRef> parts;
    for (TypeRef part : type->parts) parts.push_back(ElementType(part, index));
    return pool_.Union(std::move(parts));
  }
  if (index->is(T::kUnion)) {
    std::vector<TypeRef> parts;
    for (TypeRef part : index->parts) parts.push_back(ElementType(type, part));
    return pool_.Union(std::move(parts));
  }
  const bool numeric =
      index->is(T::kNumber) || index->is(T::kNumberLiteral) || index->is(T::kEnumMember);
  if (index->literal()) {
    if (const auto member = Member(type, index->text)) {
      if (!(numeric && !type->is(T::kTuple) && !type->is(T::kShape)))
        return TypeOfProperty(*member);
    }
    if (type->is(T::kTuple)) return index->is(T::kNumberLiteral) ? pool_.undefined : pool_.open;
  }
  if (numeric) {
    if (type->is(T::kString) || type->is(T::kStringLiteral)) return pool_.string;
    if (type->is(T::kTuple)) {
      std::vector<TypeRef> parts = type->parts;
      return pool_.Union(std::move(parts));
    }
    if (type->is(T::kRef) &&
        (type->symbol->name == "Array" || type->symbol->name == "ReadonlyArray") &&
        type->symbol->is(kLib)) {
      return type->parts[0];
    }
  }
  if (type->is(T::kStatic) && type->symbol->is(kEnum)) {
    return numeric || index->is(T::kRef) || index->is(T::kEnumMember) ? pool_.string : pool_.open;
  }
  const Shape* shape = ShapeOf(type);
  if (shape == nullptr || shape->open) return pool_.open;
  if (numeric && shape->number_index != nullptr) return shape->number_index;
  if ((numeric || index->is(T::kString) || index->is(T::kStringLiteral)) &&
      shape->string_index != nullptr) {
    return shape->string_index;
  }
  return pool_.open;
}

TypeRef Checker::IterationType(TypeRef type) {
  std::vector<TypeRef> parts;
  TypePool::Each(type, [&](TypeRef part) {
    if (part->is(T::kString) || part->is(T::kStringLiteral)) {
      parts.push_back(pool_.string);
    } else if (part->is(T::kTuple)) {
      for (TypeRef p : part->parts) parts.push_back(p);
    } else if (part->is(T::kRef) && part->symbol->is(kLib) && !part->parts.empty()) {
      const std::string& name = part->symbol->name;
      if (name == "Map" || name == "ReadonlyMap") {
        parts.push_back(pool_.Tuple({part->parts[0], part->parts[1]}, 2, false, false));
      } else if (name == "Array" || name == "ReadonlyArray" || name == "Set" ||
                 name == "ReadonlySet" || name == "IterableIterator" || name == "Iterable" ||
                 name == "Generator" || name == "Iterator" || name == "ArrayIterator" ||
                 name == "MapIterator" || name == "SetIterator" || name == "StringIterator") {
        parts.push_back(part->parts[0]);
      } else {
        parts.push_back(pool_.open);
      }
    } else if (part->is(T::kAny)) {
      parts.push_back(pool_.any);
    } else {
      parts.push_back(pool_.open);
    }
  });
  return pool_.Union(std::move(parts));
}

}  // namespace pawl::monitors::ts
