// Which types fit where. Three answers: yes, no, and "maybe" where an open type or something that
// is not followed is in the way. Types that mention themselves are taken to fit while the question
// is being answered (an assumption that only a mismatch elsewhere can overturn).
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

using F = Field;

namespace {

Fits Both(Fits a, Fits b) {
  if (a == Fits::kNo || b == Fits::kNo) return Fits::kNo;
  return a == Fits::kMaybe || b == Fits::kMaybe ? Fits::kMaybe : Fits::kYes;
}

bool ArrayLike(TypeRef type) {
  return type->is(T::kRef) && type->symbol->is(kLib) &&
         (type->symbol->name == "Array" || type->symbol->name == "ReadonlyArray");
}

bool StringEnum(Symbol* symbol) {
  for (const Node* d : symbol->declarations) {
    const Node* body = d->at(F::k_body);
    if (body == nullptr) continue;
    for (const Node& kid : body->kids()) {
      const Node* value = kid.is(Kind::k_enum_assignment) ? kid.at(F::k_value) : nullptr;
      if (value != nullptr && value->is(Kind::k_string)) return true;
    }
  }
  return false;
}

}  // namespace

Fits Checker::Assignable(TypeRef from, TypeRef to) {
  if (from == to || to->is(T::kAny) || to->is(T::kUnknown)) return Fits::kYes;
  if (from->open() || to->open()) return Fits::kMaybe;
  if (from->is(T::kAny)) return to->is(T::kNever) ? Fits::kNo : Fits::kYes;
  if (from->is(T::kNever)) return Fits::kYes;
  if (to->is(T::kNever)) return Fits::kNo;
  if (depth_ > 60) return Fits::kMaybe;
  Work::Step();
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);
  if (from->is(T::kUnion)) {
    Fits all = Fits::kYes;
    for (TypeRef part : from->parts) all = Both(all, Assignable(part, to));
    return all;
  }
  if (to->is(T::kUnion)) {
    Fits best = Fits::kNo;
    for (TypeRef part : to->parts) {
      const Fits fits = Assignable(from, part);
      if (fits == Fits::kYes) return fits;
      if (fits == Fits::kMaybe) best = fits;
    }
    return best;
  }
  if (to->is(T::kIntersection)) {
    Fits all = Fits::kYes;
    for (TypeRef part : to->parts) all = Both(all, Assignable(from, part));
    return all;
  }
  if (from->is(T::kIntersection)) {
    Fits best = Fits::kNo;
    for (TypeRef part : from->parts) {
      const Fits fits = Assignable(part, to);
      if (fits == Fits::kYes) return fits;
      if (fits == Fits::kMaybe) best = fits;
    }
    if (to->is(T::kShape) || to->is(T::kRef)) return AssignableShape(from, to);
    return best;
  }
  const TypeRef regular = pool_.Regular(from);
  to = pool_.Regular(to);
  if (regular == to) return Fits::kYes;
  switch (to->kind) {
    case T::kNumber:
      if (from->is(T::kNumberLiteral)) return Fits::kYes;
      if (from->is(T::kRef) && from->symbol->is(kEnum))
        return StringEnum(from->symbol) ? Fits::kMaybe : Fits::kYes;
      if (from->is(T::kEnumMember))
        return StringEnum(from->symbol->owner) ? Fits::kMaybe : Fits::kYes;
      break;
    case T::kString:
      if (from->is(T::kStringLiteral)) return Fits::kYes;
      if (from->is(T::kRef) && from->symbol->is(kEnum))
        return StringEnum(from->symbol) ? Fits::kMaybe : Fits::kNo;
      if (from->is(T::kEnumMember))
        return StringEnum(from->symbol->owner) ? Fits::kMaybe : Fits::kNo;
      break;
    case T::kBoolean:
      if (from->is(T::kBooleanLiteral)) return Fits::kYes;
      break;
    case T::kBigInt:
      if (from->is(T::kBigIntLiteral)) return Fits::kYes;
      break;
    case T::kVoid:
      return from->is(T::kUndefined) ? Fits::kYes : Fits::kNo;
    case T::kObject:
      switch (from->kind) {
        case T::kRef:
          return from->symbol->is(kEnum) ? Fits::kNo : Fits::kYes;
        case T::kShape:
        case T::kFunction:
        case T::kTuple:
        case T::kStatic:
          return Fits::kYes;
        case T::kParam:
          return Assignable(ConstraintOf(from), to);
        default:
          return Fits::kNo;
      }
    default:
      break;
  }
  if (from->is(T::kParam)) {
    const TypeRef constraint = ConstraintOf(from);
    if (constraint->is(T::kUnknown)) {
      return to->is(T::kShape) && ShapeOf(to)->properties.empty() ? Fits::kMaybe : Fits::kNo;
    }
    return Assignable(constraint, to);
  }
  if (to->is(T::kParam)) return Fits::kNo;
  if (to->is(T::kRef) && to->symbol->is(kEnum)) {
    if (from->is(T::kEnumMember)) return from->symbol->owner == to->symbol ? Fits::kYes : Fits::kNo;
    if (from->is(T::kNumber) || from->is(T::kNumberLiteral)) {
      return StringEnum(to->symbol) ? Fits::kNo : Fits::kMaybe;
    }
    return Fits::kNo;
  }
  if (to->is(T::kEnumMember))
    return from->is(T::kRef) && from->symbol == to->symbol->owner ? Fits::kMaybe : Fits::kNo;
  if (from->is(T::kRef) && from->symbol->is(kEnum)) {
    return to->is(T::kShape) || to->is(T::kRef) ? Fits::kMaybe : Fits::kNo;
  }
  if (to->is(T::kTuple)) {
    if (!from->is(T::kTuple)) return Fits::kNo;
    if (from->readonly && !to->readonly) return Fits::kNo;
    if (from->rest && !to->rest) return Fits::kNo;
    if (!to->rest && from->parts.size() > to->parts.size()) return Fits::kNo;
    if (from->required < to->required) return Fits::kNo;
    Fits all = Fits::kYes;
    for (size_t i = 0; i < from->parts.size(); ++i) {
      all = Both(all, Assignable(from->parts[i], to->parts[std::min(i, to->parts.size() - 1)]));
    }
    return all;
  }
  if (from->is(T::kTuple) && ArrayLike(to)) {
    if (from->readonly && to->symbol->name == "Array") return Fits::kNo;
    Fits all = Fits::kYes;
    for (TypeRef part : from->parts) all = Both(all, Assignable(part, to->parts[0]));
    return all;
  }
  if (from->is(T::kRef) && to->is(T::kRef)) {
    if (from->symbol == to->symbol || (ArrayLike(from) && ArrayLike(to))) {
      if (from->symbol->name == "ReadonlyArray" && to->symbol->name == "Array" &&
          from->symbol->is(kLib)) {
        return Fits::kNo;
      }
      Fits all = Fits::kYes;
      for (size_t i = 0; i < from->parts.size() && i < to->parts.size(); ++i) {
        all = Both(all, Assignable(from->parts[i], to->parts[i]));
      }
      return all;
    }
    for (TypeRef base : BasesOf(from)) {
      if (Assignable(base, to) == Fits::kYes) return Fits::kYes;
    }
  }
  const bool structural = to->is(T::kShape) || to->is(T::kRef) || to->is(T::kFunction);
  if (!structural) return Fits::kNo;
  if (from->is(T::kNull) || from->is(T::kUndefined) || from->is(T::kVoid) ||
      from->is(T::kUnknown)) {
    return Fits::kNo;
  }
  return AssignableShape(from, to);
}

Fits Checker::AssignableSignature(const Signature* from, const Signature* to) {
  if (!from->type_params.empty() || !to->type_params.empty()) return Fits::kMaybe;
  const size_t offered = to->has_rest() ? 1000 : to->params.size();
  if (from->required() > offered) return Fits::kNo;
  Fits all = Fits::kYes;
  for (size_t i = 0; i < from->params.size() && i < to->params.size(); ++i) {
    if (from->params[i].rest || to->params[i].rest) {
      all = Both(all, Fits::kMaybe);
      break;
    }
    const TypeRef a = from->params[i].type;
    const TypeRef b = to->params[i].type;
    Fits fits = Assignable(b, a);
    if (fits == Fits::kNo && Assignable(a, b) != Fits::kNo)
      fits = Fits::kMaybe;  // methods go both ways
    all = Both(all, fits);
  }
  const TypeRef wanted = to->result == nullptr ? pool_.open : to->result;
  if (to->guarded != nullptr && !to->asserts) {
    if (from->guarded == nullptr || from->asserts) return Fits::kNo;
    all = Both(all, Assignable(from->guarded, to->guarded));
  }
  if (wanted->is(T::kVoid)) return all;
  return Both(all, Assignable(ResultOf(from), wanted));
}

Fits Checker::AssignableShape(TypeRef from, TypeRef to) {
  const std::pair<TypeRef, TypeRef> question(from, to);
  if (std::find(assumed_.begin(), assumed_.end(), question) != assumed_.end()) return Fits::kYes;
  if (assumed_.size() > 10) return Fits::kMaybe;
  assumed_.push_back(question);
  struct Done {
    std::vector<std::pair<TypeRef, TypeRef>>& stack;
    explicit Done(std::vector<std::pair<TypeRef, TypeRef>>& s) : stack(s) {}
    ~Done() { stack.pop_back(); }
  } done(assumed_);
  if (to->is(T::kFunction)) {
    const auto offered = CallSignatures(from, false);
    if (offered.empty()) return from->is(T::kStatic) ? Fits::kMaybe : Fits::kNo;
    Fits all = Fits::kYes;
    for (const Signature* wanted : to->signatures) {
      Fits best = Fits::kNo;
      for (const Signature* s : offered)
        best = std::max(best, AssignableSignature(s, wanted), [](Fits a, Fits b) {
          const auto rank = [](Fits f) { return f == Fits::kNo ? 0 : f == Fits::kMaybe ? 1 : 2; };
          return rank(a) < rank(b);
        });
      all = Both(all, best);
    }
    return all;
  }
  // A class of the library is compared by name, not member by member.
  if (to->is(T::kRef) && to->symbol->is(kLib)) {
    const std::string& name = to->symbol->name;
    if (name == "Object") return Fits::kYes;
    if (name == "Function")
      return CallSignatures(from, false).empty() && !from->is(T::kStatic) ? Fits::kNo : Fits::kYes;
    if (name == "Iterable" || name == "ArrayLike" || name == "PromiseLike" ||
        name == "ReadonlySet" || name == "ReadonlyMap" || name == "ConcatArray" ||
        name == "RelativeIndexable") {
      if (name == "PromiseLike") {
        if (!(from->is(T::kRef) && from->symbol->name == "Promise")) {
          return from->is(T::kRef) || from->is(T::kShape) ? Fits::kMaybe : Fits::kNo;
        }
        return Assignable(from->parts[0], to->parts[0]);
      }
      const TypeRef element = IterationType(from);
      if (element->open() &&
          !(from->is(T::kRef) && !from->parts.empty() && from->parts[0]->open())) {
        return from->is(T::kNumber) || from->is(T::kNumberLiteral) || from->is(T::kBoolean)
                   ? Fits::kNo
                   : Fits::kMaybe;
      }
      if (name == "ReadonlyMap") return Fits::kMaybe;
      return Assignable(element, to->parts.empty() ? pool_.open : to->parts[0]);
    }
    if (from->is(T::kRef) && from->symbol->is(kLib)) {
      const auto wrapped = [](const std::string& n) {
        return n == "Number" || n == "String" || n == "Boolean";
      };
      return wrapped(name) || wrapped(from->symbol->name) ? Fits::kNo : Fits::kMaybe;
    }
  }
  const Shape* wanted = ShapeOf(to);
  if (wanted == nullptr || wanted->open) return Fits::kMaybe;
  const bool primitive = from->literal() || from->is(T::kNumber) || from->is(T::kString) ||
                         from->is(T::kBoolean) || from->is(T::kBigInt) || from->is(T::kSymbol);
  Fits all = Fits::kYes;
  bool shared = false;
  for (const Property& p : wanted->properties) {
    if (p.name.starts_with("@@")) continue;
    auto member = Member(from, p.name);
    if (!member) {
      if (p.optional) continue;
      return Fits::kNo;
    }
    shared = true;
    if (member->optional && !p.optional) return Fits::kNo;
    TypeRef want = TypeOfProperty(p);
    all = Both(all, Assignable(TypeOfProperty(*member), want));
    if (all == Fits::kNo) return all;
  }
  if (!shared && !wanted->properties.empty() && (primitive || from->is(T::kFunction)))
    return Fits::kNo;
  if (primitive && (wanted->string_index != nullptr || !wanted->calls.empty())) return Fits::kNo;
  const Shape* given = ShapeOf(from);
  if (wanted->string_index != nullptr) {
    if (given == nullptr) return Fits::kMaybe;
    if (given->string_index != nullptr) {
      all = Both(all, Assignable(given->string_index, wanted->string_index));
    } else if (from->is(T::kRef)) {
      return Fits::kNo;  // interfaces and classes have no implicit index signature
    } else {
      for (const Property& p : given->properties) {
        all = Both(all, Assignable(TypeOfProperty(p), wanted->string_index));
      }
      if (given->number_index != nullptr)
        all = Both(all, Assignable(given->number_index, wanted->string_index));
    }
  }
  if (wanted->number_index != nullptr && all != Fits::kNo) {
    if (from->is(T::kTuple) || ArrayLike(from)) {
      all = Both(all, Assignable(ElementType(from, pool_.number), wanted->number_index));
    } else if (given != nullptr && given->number_index != nullptr) {
      all = Both(all, Assignable(given->number_index, wanted->number_index));
    } else if (given != nullptr && given->string_index != nullptr) {
      all = Both(all, Assignable(given->string_index, wanted->number_index));
    } else if (given != nullptr && !from->is(T::kRef)) {
      for (const Property& p : given->properties) {
        if (!p.name.empty() && p.name[0] >= '0' && p.name[0] <= '9') {
          all = Both(all, Assignable(TypeOfProperty(p), wanted->number_index));
        }
      }
    } else {
      all = Both(all, Fits::kMaybe);
    }
  }
  for (const Signature* call : wanted->calls) {
    const auto offered = CallSignatures(from, false);
    if (offered.empty()) return Fits::kNo;
    Fits best = Fits::kNo;
    for (const Signature* s : offered) {
      const Fits fits = AssignableSignature(s, call);
      if (best == Fits::kNo || fits == Fits::kYes) best = fits;
    }
    all = Both(all, best);
  }
  if (!wanted->constructs.empty()) all = Both(all, Fits::kMaybe);
  if (given != nullptr && given->open && all == Fits::kNo) return Fits::kMaybe;
  return all;
}

// Whether a == b can be asked: one fits the other, part by part.
Fits Checker::Comparable(TypeRef a, TypeRef b) {
  if (a->loose() || b->loose() || a->is(T::kUnknown) || b->is(T::kUnknown)) return Fits::kYes;
  Fits best = Fits::kNo;
  TypePool::Each(pool_.Regular(a), [&](TypeRef x) {
    TypePool::Each(pool_.Regular(b), [&](TypeRef y) {
      if (x->is(T::kNull) || x->is(T::kUndefined) || y->is(T::kNull) || y->is(T::kUndefined)) {
        best = Fits::kYes;
        return;
      }
      for (const Fits fits : {Assignable(x, y), Assignable(y, x)}) {
        if (fits == Fits::kYes) best = fits;
        if (fits == Fits::kMaybe && best == Fits::kNo) best = fits;
      }
    });
  });
  if (best == Fits::kNo && (a->is(T::kParam) || b->is(T::kParam))) return Fits::kMaybe;
  return best;
}

}  // namespace pawl::monitors::ts
