// A member by its name, all names of a type, what a type can be called with, and what its elements
// are. A member of a union is one that all its parts have.
#include <algorithm>
#include <unordered_set>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

TypeRef Checker::TypeOfProperty(const Property& property) {
  if (property.type != nullptr) return property.type;
  if (property.symbol == nullptr) return pool_.open;
  TypeRef type = Instantiate(TypeOfSymbol(property.symbol), property.mapper);
  if (property.receiver != nullptr) type = WithReceiver(type, property);
  if (property.symbol->is(kOptional)) type = pool_.Union(type, pool_.undefined);
  return type;
}

namespace {

Property Typed(std::string_view name, TypeRef type) {
  return Property{.name = std::string(name), .type = type};
}

// The names of members of a type and of all above it, each type once.
class NameCollector {
 public:
  NameCollector(Checker& checker, std::vector<std::string>& names)
      : checker_(checker), names_(names) {}

  // False: there may be more members.
  bool Add(TypeRef ref) {
    above_.assign(1, ref);
    while (!above_.empty()) {
      const TypeRef one = above_.back();
      above_.pop_back();
      if (met_.insert(one).second && !AddOne(one)) return false;
    }
    return true;
  }

 private:
  bool AddOne(TypeRef ref) {
    Work::Step();
    if (ref->is(T::kShape)) {
      const Shape* shape = checker_.ShapeOf(ref);
      if (shape == nullptr || shape->open || shape->string_index != nullptr) return false;
      for (const Property& p : shape->properties) names_.push_back(p.name);
      return shape->calls.empty() && shape->constructs.empty();
    }
    if (ref->is(T::kStatic) && ref->symbol->is(kNamespace) && ref->symbol->is(kForeign)) {
      checker_.FillMembers(ref->symbol);
      for (const auto& [name, member] : ref->symbol->statics) names_.push_back(name);
      return !checker_.OpenSymbol(ref->symbol);
    }
    if (!ref->is(T::kRef)) return false;
    Symbol* symbol = ref->symbol;
    checker_.FillMembers(symbol);
    if (symbol->is(kEnum) || checker_.OpenSymbol(symbol)) return false;
    Work::Step(symbol->members.size());
    for (const auto& [name, member] : symbol->members) {
      if (!name.starts_with("@@")) names_.push_back(name);
    }
    for (TypeRef base : checker_.BasesOf(ref)) above_.push_back(base);
    if (symbol->bases_open) return false;
    if (!symbol->indexes.empty() && checker_.ShapeOf(ref)->string_index != nullptr) return false;
    if (!symbol->calls.empty() || !symbol->constructs.empty()) {
      if (symbol->is(kClass)) return true;
      Symbol* function = checker_.Global("Function");
      if (function == nullptr) return false;
      if (symbol != function) above_.push_back(checker_.pool().Ref(function, {}));
    }
    return true;
  }

  Checker& checker_;
  std::vector<std::string>& names_;
  std::unordered_set<TypeRef> met_;
  std::vector<TypeRef> above_;
};

}  // namespace

// In every part; a part that lacks it may have been excluded by a condition that is not followed.
std::optional<Property> Checker::MemberOfUnion(TypeRef type, std::string_view name) {
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

std::optional<Property> Checker::MemberOfStatic(Symbol* symbol, std::string_view name) {
  FillMembers(symbol);
  const auto found = symbol->statics.find(std::string(name));
  if (found != symbol->statics.end()) {
    return Property{
        .name = std::string(name), .readonly = symbol->is(kEnum), .symbol = found->second};
  }
  if (OpenSymbol(symbol)) return Typed(name, pool_.open);
  if (symbol->is(kEnum)) return MemberOfGlobal("Object", name);
  if (!symbol->is(kClass) || symbol->bases_open || name == "prototype")
    return Typed(name, pool_.open);
  for (TypeRef base : BasesOf(pool_.Ref(symbol, ParamsOf(symbol)))) {
    if (!base->is(T::kRef) || !base->symbol->is(kClass)) return Typed(name, pool_.open);
    if (auto member = Member(pool_.Static(base->symbol), name)) {
      const std::vector<TypeRef> args(ParamsOf(symbol).size(), pool_.open);
      if (member->symbol != nullptr) member->receiver = pool_.Ref(symbol, args);
      return member;
    }
  }
  Symbol* function = Global("Function");
  return function == nullptr ? Typed(name, pool_.open) : Member(pool_.Ref(function, {}), name);
}

std::optional<Property> Checker::MemberOfTuple(TypeRef type, std::string_view name) {
  if (!name.empty() &&
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    const size_t i = std::stoul(std::string(name.substr(0, 6)));
    if (i < type->parts.size()) return Typed(name, type->parts[i]);
    return type->rest ? std::optional(Typed(name, type->parts.back())) : std::nullopt;
  }
  if (name == "length" && !type->rest && type->required == type->parts.size()) {
    const std::string count = std::to_string(type->parts.size());
    return Typed(name, pool_.NumberLiteral(static_cast<double>(type->parts.size()), count));
  }
  return Member(Apparent(type), name);
}

// The member of an interface of the library; nullopt: no such interface either.
std::optional<Property> Checker::MemberOfGlobal(std::string_view interface, std::string_view name) {
  Symbol* symbol = Global(interface);
  return symbol == nullptr ? std::nullopt : Member(pool_.Ref(symbol, {}), name);
}

std::optional<Property> Checker::MemberOfRef(TypeRef type, std::string_view name) {
  // Straight from the tables: the shape of a library type has hundreds of members.
  Symbol* symbol = type->symbol;
  if (Symbol* member = MemberSymbol(symbol, std::string(name))) {
    Property property{.name = std::string(name), .symbol = member};
    const std::vector<TypeRef>& params = ParamsOf(symbol);
    for (size_t i = 0; i < params.size() && i < type->parts.size(); ++i) {
      property.mapper.emplace_back(params[i], type->parts[i]);
    }
    property.optional = member->is(kOptional);
    property.readonly = member->is(kReadonly) || (member->is(kGetter) && !member->is(kSetter));
    property.method = member->is(kMethod);
    return property;
  }
  for (TypeRef base : BasesOf(type)) {
    ++depth_;
    auto member = Member(base, name);
    --depth_;
    if (!member) continue;
    if (member->symbol != nullptr) member->receiver = type;
    return member;
  }
  if (symbol->bases_open || OpenSymbol(symbol)) return Typed(name, pool_.open);
  if (!symbol->indexes.empty()) {
    const Shape* shape = ShapeOf(type);
    if (shape->string_index != nullptr) {
      // Object's own members come first: dict.toString().
      auto object = MemberOfGlobal("Object", name);
      return object ? std::move(object) : Typed(name, shape->string_index);
    }
  }
  if ((!symbol->calls.empty() || !symbol->constructs.empty()) && Global("Function") != symbol) {
    if (auto member = MemberOfGlobal("Function", name)) return member;
  }
  return Global("Object") == symbol ? std::nullopt : MemberOfGlobal("Object", name);
}

std::optional<Property> Checker::MemberOfShape(TypeRef type, std::string_view name) {
  const Shape* shape = ShapeOf(type);
  if (const Property* p = shape == nullptr ? nullptr : shape->Find(name)) return *p;
  if (shape == nullptr || shape->open) return Typed(name, pool_.open);
  if (shape->string_index != nullptr) {
    auto object = MemberOfGlobal("Object", name);
    return object ? std::move(object) : Typed(name, shape->string_index);
  }
  if (!shape->calls.empty() || !shape->constructs.empty()) {
    if (auto member = MemberOfGlobal("Function", name)) return member;
  }
  return MemberOfGlobal("Object", name);
}

std::optional<Property> Checker::Member(TypeRef type, std::string_view name) {
  // A constraint may be a union of parameters that have it as a part of theirs.
  constexpr int kMostInner = 60;
  if (depth_ > 80 || member_depth_ > kMostInner) return Typed(name, pool_.open);
  const Nested nested(member_depth_);
  Work::Step();
  switch (type->kind) {
    case T::kOpen:
    case T::kAny:
    case T::kUnknown:
    case T::kNever:
    case T::kObject:
      return Typed(name, pool_.open);
    case T::kVoid:
    case T::kUndefined:
    case T::kNull:
      return std::nullopt;
    case T::kUnion:
      return MemberOfUnion(type, name);
    case T::kIntersection: {
      std::vector<TypeRef> types;
      Property result{.name = std::string(name)};
      for (TypeRef part : type->parts) {
        auto member = Member(part, name);
        if (!member) continue;
        if (member->symbol != nullptr && part->is(T::kRef)) member->receiver = type;
        types.push_back(TypeOfProperty(*member));
      }
      if (types.empty()) return std::nullopt;
      result.type = pool_.Intersection(std::move(types));
      return result;
    }
    case T::kFunction: {
      Symbol* function =
          Global("CallableFunction") != nullptr ? Global("CallableFunction") : Global("Function");
      return function == nullptr ? Typed(name, pool_.open) : Member(pool_.Ref(function, {}), name);
    }
    case T::kStatic:
      return MemberOfStatic(type->symbol, name);
    case T::kTuple:
      return MemberOfTuple(type, name);
    case T::kRef:
      return type->symbol->is(kEnum) ? Typed(name, pool_.open) : MemberOfRef(type, name);
    case T::kShape:
      return MemberOfShape(type, name);
    case T::kParam: {
      const TypeRef seen = Apparent(type);
      auto member = Member(seen, name);
      if (member && member->symbol != nullptr && seen->is(T::kRef)) member->receiver = type;
      return member;
    }
    default:
      return Member(Apparent(type), name);
  }
}

std::optional<std::vector<std::string>> Checker::Members(TypeRef type, const Node* at) {
  std::vector<std::string> names;
  NameCollector above(*this, names);
  bool known = true;
  TypePool::Each(type, [&](TypeRef part) {
    if (!known || part->is(T::kNull) || part->is(T::kUndefined)) return;
    if (part->is(T::kStatic)) {
      const Work::Deeper deeper;
      Symbol* symbol = part->symbol;
      FillMembers(symbol);
      // Another file is complete; a namespace of this one may go on further down.
      const bool space = symbol->is(kNamespace) && !symbol->is(kForeign);
      if (space || OpenSymbol(symbol)) known = false;
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
        if (function == nullptr || !above.Add(pool_.Ref(function, {}))) known = false;
      }
      return;
    }
    if (part->is(T::kFunction)) {
      for (const char* interface : {"CallableFunction", "Function"}) {
        Symbol* function = Global(interface);
        if (function == nullptr || !above.Add(pool_.Ref(function, {}))) known = false;
      }
      return;
    }
    const TypeRef seen = Apparent(part);
    if (seen->is(T::kIntersection)) {
      for (TypeRef inner : seen->parts) {
        if (!above.Add(Apparent(inner))) known = false;
      }
      return;
    }
    if (seen->is(T::kUnion)) {
      constexpr int kMostUnions = 8;
      ++union_depth_;
      const auto inner = union_depth_ > kMostUnions ? std::nullopt : Members(seen, at);
      --union_depth_;
      if (!inner) {
        known = false;
      } else {
        names.insert(names.end(), inner->begin(), inner->end());
      }
      return;
    }
    if (!above.Add(seen)) known = false;
  });
  if (!known || names.empty()) return std::nullopt;
  if (Symbol* object = Global("Object")) above.Add(pool_.Ref(object, {}));
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
