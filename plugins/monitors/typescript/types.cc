// The pool of types. A union is kept flat, without duplicates, sorted by the numbers of its parts;
// "any" and open types swallow what they are united with, true | false is boolean, a literal goes
// into its primitive type.
#include "plugins/monitors/typescript/types.h"

#include <algorithm>
#include <set>

#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

TypePool::TypePool() {
  open = New(T::kOpen);
  any = New(T::kAny);
  unknown = New(T::kUnknown);
  never = New(T::kNever);
  void_ = New(T::kVoid);
  undefined = New(T::kUndefined);
  null = New(T::kNull);
  number = New(T::kNumber);
  string = New(T::kString);
  boolean = New(T::kBoolean);
  bigint = New(T::kBigInt);
  symbol = New(T::kSymbol);
  object = New(T::kObject);
  true_ = BooleanLiteral(true);
  false_ = BooleanLiteral(false);
}

Type* TypePool::New(T kind) {
  Work::Step(4);
  types_.push_back(Type{.kind = kind, .id = static_cast<uint32_t>(types_.size())});
  return &types_.back();
}

TypeRef TypePool::NumberLiteral(double value, std::string text, bool fresh) {
  Type*& type = interned_["n" + std::string(fresh ? "!" : "") + std::to_string(value) + "/" +
                          (value == static_cast<double>(static_cast<int64_t>(value)) ? "" : text)];
  if (type == nullptr) {
    type = New(T::kNumberLiteral);
    type->text = std::move(text);
    type->number = value;
    type->fresh = fresh;
  }
  return type;
}

TypeRef TypePool::StringLiteral(std::string text, bool fresh) {
  Type*& type = interned_["s" + std::string(fresh ? "!" : "=") + text];
  if (type == nullptr) {
    type = New(T::kStringLiteral);
    type->text = std::move(text);
    type->fresh = fresh;
  }
  return type;
}

TypeRef TypePool::BooleanLiteral(bool value, bool fresh) {
  Type*& type = interned_["b" + std::string(fresh ? "!" : "=") + (value ? "true" : "false")];
  if (type == nullptr) {
    type = New(T::kBooleanLiteral);
    type->text = value ? "true" : "false";
    type->fresh = fresh;
  }
  return type;
}

TypeRef TypePool::BigIntLiteral(std::string text, bool fresh) {
  Type*& type = interned_["i" + std::string(fresh ? "!" : "=") + text];
  if (type == nullptr) {
    type = New(T::kBigIntLiteral);
    type->text = std::move(text);
    type->fresh = fresh;
  }
  return type;
}

TypeRef TypePool::Interned(const std::string& key, T kind, std::vector<TypeRef> parts, Symbol* of) {
  Type*& type = interned_[key];
  if (type == nullptr) {
    type = New(kind);
    type->parts = std::move(parts);
    type->symbol = of;
  }
  return type;
}

namespace {

std::string Key(std::string_view start, const std::vector<TypeRef>& parts) {
  Work::Step(1 + parts.size() / 4);
  std::string key(start);
  for (TypeRef part : parts) key += std::to_string(part->id) + ",";
  return key;
}

}  // namespace

TypeRef TypePool::Union(std::vector<TypeRef> parts) {
  std::vector<TypeRef> flat;
  for (TypeRef part : parts) {
    Each(part, [&](TypeRef p) {
      if (!p->is(T::kNever)) flat.push_back(p);
    });
  }
  Work::Step(1 + flat.size() / 2);
  std::set<T> primitives;
  for (TypeRef part : flat) {
    if (part->is(T::kOpen)) return open;
    primitives.insert(part->kind);
  }
  if (primitives.contains(T::kAny)) return any;
  if (primitives.contains(T::kUnknown)) return unknown;
  std::erase_if(flat, [&](TypeRef part) {
    return (part->is(T::kNumberLiteral) && primitives.contains(T::kNumber)) ||
           (part->is(T::kStringLiteral) && primitives.contains(T::kString)) ||
           (part->is(T::kBooleanLiteral) && primitives.contains(T::kBoolean)) ||
           (part->is(T::kBigIntLiteral) && primitives.contains(T::kBigInt));
  });
  // A fresh literal and the same regular one are one.
  for (TypeRef& part : flat) {
    if (part->literal() && part->fresh &&
        std::find(flat.begin(), flat.end(), Regular(part)) != flat.end()) {
      part = Regular(part);
    }
  }
  std::sort(flat.begin(), flat.end(), [](TypeRef a, TypeRef b) { return a->id < b->id; });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  bool yes = false;
  bool no = false;
  for (TypeRef part : flat) {
    if (part->is(T::kBooleanLiteral)) (part->text == "true" ? yes : no) = true;
  }
  if (yes && no) {
    std::erase_if(flat, [](TypeRef part) { return part->is(T::kBooleanLiteral); });
    flat.push_back(boolean);
    return Union(std::move(flat));
  }
  if (flat.empty()) return never;
  if (flat.size() == 1) return flat.front();
  return Interned(Key("|", flat), T::kUnion, flat, nullptr);
}

TypeRef TypePool::Intersection(std::vector<TypeRef> parts) {
  std::vector<TypeRef> flat;
  for (TypeRef part : parts) {
    if (part->is(T::kOpen)) return open;
    if (part->is(T::kAny)) return any;
    if (part->is(T::kNever)) return never;
    if (part->is(T::kUnknown)) continue;
    if (part->is(T::kIntersection)) {
      flat.insert(flat.end(), part->parts.begin(), part->parts.end());
    } else if (std::find(flat.begin(), flat.end(), part) == flat.end()) {
      flat.push_back(part);
    }
  }
  if (flat.empty()) return unknown;
  if (flat.size() == 1) return flat.front();
  return Interned(Key("&", flat), T::kIntersection, flat, nullptr);
}

TypeRef TypePool::Ref(Symbol* of, std::vector<TypeRef> args) {
  const std::string key = Key("r" + std::to_string(of->id) + "<", args);
  return Interned(key, T::kRef, std::move(args), of);
}

TypeRef TypePool::Tuple(std::vector<TypeRef> parts, uint32_t required, bool rest, bool readonly) {
  const std::string key =
      Key("t" + std::to_string(required) + (rest ? "." : "") + (readonly ? "c" : "") + ":", parts);
  Type*& type = interned_[key];
  if (type == nullptr) {
    type = New(T::kTuple);
    type->parts = std::move(parts);
    type->required = required;
    type->rest = rest;
    type->readonly = readonly;
  }
  return type;
}

TypeRef TypePool::Static(Symbol* of) {
  return Interned("c" + std::to_string(of->id), T::kStatic, {}, of);
}

TypeRef TypePool::EnumMember(Symbol* of) {
  return Interned("e" + std::to_string(of->id), T::kEnumMember, {}, of);
}

TypeRef TypePool::Param(Symbol* of) {
  return Interned("p" + std::to_string(of->id), T::kParam, {}, of);
}

TypeRef TypePool::Function(std::vector<const Signature*> signatures) {
  Type* type = New(T::kFunction);
  type->signatures = std::move(signatures);
  return type;
}

TypeRef TypePool::ShapeOf(Shape shape, bool literal_object) {
  Type* type = New(T::kShape);
  shapes_.push_back(std::move(shape));
  type->shape = &shapes_.back();
  type->literal_object = literal_object;
  return type;
}

TypeRef TypePool::ShapeAt(const Node* node, Mapper mapper) {
  Type* type = New(T::kShape);
  type->node = node;
  type->mapper = std::move(mapper);
  return type;
}

Signature* TypePool::NewSignature() {
  Work::Step(4);
  return &signatures_.emplace_back();
}

Shape* TypePool::NewShape() {
  Work::Step(4);
  return &shapes_.emplace_back();
}

TypeRef TypePool::Widen(TypeRef type) {
  switch (type->kind) {
    case T::kNumberLiteral:
      return type->fresh ? number : type;
    case T::kStringLiteral:
      return type->fresh ? string : type;
    case T::kBooleanLiteral:
      return type->fresh ? boolean : type;
    case T::kBigIntLiteral:
      return type->fresh ? bigint : type;
    case T::kUnion: {
      std::vector<TypeRef> parts;
      for (TypeRef part : type->parts) parts.push_back(Widen(part));
      return Union(std::move(parts));
    }
    default:
      return type;
  }
}

TypeRef TypePool::Base(TypeRef type) {
  std::vector<TypeRef> parts;
  Each(type, [&](TypeRef part) {
    parts.push_back(part->is(T::kNumberLiteral)    ? number
                    : part->is(T::kStringLiteral)  ? string
                    : part->is(T::kBooleanLiteral) ? boolean
                    : part->is(T::kBigIntLiteral)  ? bigint
                                                   : part);
  });
  return Union(std::move(parts));
}

TypeRef TypePool::Regular(TypeRef type) {
  if (type->kind == T::kUnion) {
    std::vector<TypeRef> parts;
    for (TypeRef part : type->parts) parts.push_back(Regular(part));
    return Union(std::move(parts));
  }
  if (!type->fresh) return type;
  switch (type->kind) {
    case T::kNumberLiteral:
      return NumberLiteral(type->number, type->text);
    case T::kStringLiteral:
      return StringLiteral(type->text);
    case T::kBooleanLiteral:
      return BooleanLiteral(type->text == "true");
    case T::kBigIntLiteral:
      return BigIntLiteral(type->text);
    default:
      return type;
  }
}

TypeRef TypePool::NonNull(TypeRef type) {
  if (type->is(T::kNull) || type->is(T::kUndefined)) return never;
  if (!type->is(T::kUnion)) return type;
  std::vector<TypeRef> parts;
  for (TypeRef part : type->parts) {
    if (!part->is(T::kNull) && !part->is(T::kUndefined)) parts.push_back(part);
  }
  return Union(std::move(parts));
}

}  // namespace pawl::monitors::ts
