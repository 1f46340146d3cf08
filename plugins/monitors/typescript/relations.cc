// Which types fit where. Three answers: yes, no, and "maybe" where an open type or something that
// is not followed is in the way. Types that mention themselves are taken to fit while the question
// is being answered (an assumption that only a mismatch elsewhere can overturn).
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

namespace {

Fits Both(Fits a, Fits b) {
  if (a == Fits::kNo || b == Fits::kNo) return Fits::kNo;
  return a == Fits::kMaybe || b == Fits::kMaybe ? Fits::kMaybe : Fits::kYes;
}

// Whether all that the question is asked of fit.
template <typename Items, typename Question>
Fits All(const Items& items, Question fits) {
  Fits all = Fits::kYes;
  for (const auto& item : items) all = Both(all, fits(item));
  return all;
}

// The best of the answers.
template <typename Items, typename Question>
Fits Best(const Items& items, Question fits) {
  Fits best = Fits::kNo;
  for (const auto& item : items) {
    const Fits one = fits(item);
    if (one == Fits::kYes) return one;
    if (one == Fits::kMaybe) best = one;
  }
  return best;
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

// To a type that is a word, from anything but a parameter; nullopt: what `from` is has to tell.
std::optional<Fits> Checker::AssignableToWord(TypeRef from, TypeRef to) {
  Symbol* const enumeration = from->is(T::kEnumMember)                       ? from->symbol->owner
                              : from->is(T::kRef) && from->symbol->is(kEnum) ? from->symbol
                                                                             : nullptr;
  switch (to->kind) {
    case T::kNumber:
      if (from->is(T::kNumberLiteral)) return Fits::kYes;
      if (enumeration != nullptr) return StringEnum(enumeration) ? Fits::kMaybe : Fits::kYes;
      return std::nullopt;
    case T::kString:
      if (from->is(T::kStringLiteral)) return Fits::kYes;
      if (enumeration != nullptr) return StringEnum(enumeration) ? Fits::kMaybe : Fits::kNo;
      return std::nullopt;
    case T::kBoolean:
      return from->is(T::kBooleanLiteral) ? std::optional(Fits::kYes) : std::nullopt;
    case T::kBigInt:
      return from->is(T::kBigIntLiteral) ? std::optional(Fits::kYes) : std::nullopt;
    case T::kVoid:
      return from->is(T::kUndefined) ? Fits::kYes : Fits::kNo;
    case T::kObject:
      switch (from->kind) {
        case T::kRef:
          return enumeration != nullptr ? Fits::kNo : Fits::kYes;
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
      return std::nullopt;
  }
}

// One of the two is an enum or a member of one; nullopt: neither is.
std::optional<Fits> Checker::AssignableEnum(TypeRef from, TypeRef to) {
  if (to->is(T::kRef) && to->symbol->is(kEnum)) {
    if (from->is(T::kEnumMember)) return from->symbol->owner == to->symbol ? Fits::kYes : Fits::kNo;
    if (from->is(T::kNumber) || from->is(T::kNumberLiteral))
      return StringEnum(to->symbol) ? Fits::kNo : Fits::kMaybe;
    return Fits::kNo;
  }
  if (to->is(T::kEnumMember))
    return from->is(T::kRef) && from->symbol == to->symbol->owner ? Fits::kMaybe : Fits::kNo;
  if (from->is(T::kRef) && from->symbol->is(kEnum))
    return to->is(T::kShape) || to->is(T::kRef) ? Fits::kMaybe : Fits::kNo;
  return std::nullopt;
}

Fits Checker::AssignableTuple(TypeRef from, TypeRef to) {
  if (!from->is(T::kTuple) || (from->readonly && !to->readonly) || (from->rest && !to->rest) ||
      (!to->rest && from->parts.size() > to->parts.size()) || from->required < to->required) {
    return Fits::kNo;
  }
  size_t i = 0;
  return All(from->parts, [&](TypeRef part) {
    return Assignable(part, to->parts[std::min(i++, to->parts.size() - 1)]);
  });
}

// Two references to declarations, by their names; nullopt: their members have to tell.
std::optional<Fits> Checker::AssignableRef(TypeRef from, TypeRef to) {
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
  return std::nullopt;
}

Fits Checker::Assignable(TypeRef from, TypeRef to) {
  if (from == to || to->is(T::kAny) || to->is(T::kUnknown)) return Fits::kYes;
  if (from->open() || to->open()) return Fits::kMaybe;
  if (from->is(T::kAny)) return to->is(T::kNever) ? Fits::kNo : Fits::kYes;
  if (from->is(T::kNever)) return Fits::kYes;
  if (to->is(T::kNever)) return Fits::kNo;
  if (depth_ > 60) return Fits::kMaybe;
  Work::Step();
  const Nested nested(depth_);
  const auto part_fits = [&](TypeRef part) { return Assignable(part, to); };
  const auto fits_part = [&](TypeRef part) { return Assignable(from, part); };
  if (from->is(T::kUnion)) return All(from->parts, part_fits);
  if (to->is(T::kUnion)) {
    Work::Step(to->parts.size() / 8);
    if (std::find(to->parts.begin(), to->parts.end(), from) != to->parts.end()) return Fits::kYes;
    return Best(to->parts, fits_part);
  }
  if (to->is(T::kIntersection)) return All(to->parts, fits_part);
  if (from->is(T::kIntersection)) {
    const Fits best = Best(from->parts, part_fits);
    const bool together = best != Fits::kYes && (to->is(T::kShape) || to->is(T::kRef));
    return together ? AssignableShape(from, to) : best;
  }
  const TypeRef regular = pool_.Regular(from);
  to = pool_.Regular(to);
  if (regular == to) return Fits::kYes;
  if (const auto fits = AssignableToWord(from, to)) return *fits;
  if (from->is(T::kParam)) {
    const TypeRef constraint = ConstraintOf(from);
    if (!constraint->is(T::kUnknown)) return Assignable(constraint, to);
    return to->is(T::kShape) && ShapeOf(to)->properties.empty() ? Fits::kMaybe : Fits::kNo;
  }
  if (to->is(T::kParam)) return Fits::kNo;
  if (const auto fits = AssignableEnum(from, to)) return *fits;
  if (to->is(T::kTuple)) return AssignableTuple(from, to);
  if (from->is(T::kTuple) && ArrayLike(to)) {
    if (from->readonly && to->symbol->name == "Array") return Fits::kNo;
    return All(from->parts, [&](TypeRef part) { return Assignable(part, to->parts[0]); });
  }
  if (from->is(T::kRef) && to->is(T::kRef)) {
    if (const auto fits = AssignableRef(from, to)) return *fits;
  }
  const bool structural = to->is(T::kShape) || to->is(T::kRef) || to->is(T::kFunction);
  if (!structural || from->is(T::kNull) || from->is(T::kUndefined) || from->is(T::kVoid) ||
      from->is(T::kUnknown)) {
    return Fits::kNo;
  }
  // Between declarations of other files the answer is the same in every question.
  if (!Settled(from) || !Settled(to) || !assumed_.empty() || depth_ > 30)
    return AssignableShape(from, to);
  const uint64_t pair = uint64_t{from->id} << 32 | to->id;
  const auto known = settled_fits_.find(pair);
  if (known != settled_fits_.end()) return known->second;
  const Fits fits = AssignableShape(from, to);
  settled_fits_[pair] = fits;
  return fits;
}

bool Checker::Settled(TypeRef type) {
  return type->is(T::kRef) && type->parts.empty() && type->symbol->is(kForeign);
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
      fits = Fits::kMaybe;  // methods go in both directions
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

// To a class or interface of the library, which is compared by name and not member by member;
// nullopt: its members have to tell.
std::optional<Fits> Checker::AssignableToLibrary(TypeRef from, TypeRef to) {
  const std::string& name = to->symbol->name;
  if (name == "Object") return Fits::kYes;
  if (name == "Function")
    return CallSignatures(from, false).empty() && !from->is(T::kStatic) ? Fits::kNo : Fits::kYes;
  if (name == "PromiseLike") {
    if (from->is(T::kRef) && from->symbol->name == "Promise")
      return Assignable(from->parts[0], to->parts[0]);
    return from->is(T::kRef) || from->is(T::kShape) ? Fits::kMaybe : Fits::kNo;
  }
  // { length: 3 } is one without elements.
  if (name == "ArrayLike" && from->is(T::kShape) && !ShapeOf(from)->open) return std::nullopt;
  if (name == "Iterable" || name == "ArrayLike" || name == "ReadonlySet" || name == "ReadonlyMap" ||
      name == "ConcatArray" || name == "RelativeIndexable") {
    const TypeRef element = IterationType(from);
    if (element->open() && !(from->is(T::kRef) && !from->parts.empty() && from->parts[0]->open())) {
      return from->is(T::kNumber) || from->is(T::kNumberLiteral) || from->is(T::kBoolean)
                 ? Fits::kNo
                 : Fits::kMaybe;
    }
    if (name == "ReadonlyMap") return Fits::kMaybe;
    return Assignable(element, to->parts.empty() ? pool_.open : to->parts[0]);
  }
  if (!from->is(T::kRef) || !from->symbol->is(kLib)) return std::nullopt;
  const auto wrapped = [](const std::string& n) {
    return n == "Number" || n == "String" || n == "Boolean";
  };
  return wrapped(name) || wrapped(from->symbol->name) ? Fits::kNo : Fits::kMaybe;
}

// The best of the signatures that are offered.
Fits Checker::AssignableToSignature(const std::vector<const Signature*>& offered,
                                    const Signature* wanted) {
  Fits best = Fits::kNo;
  for (const Signature* s : offered) {
    const Fits fits = AssignableSignature(s, wanted);
    if (best == Fits::kNo || fits == Fits::kYes) best = fits;
  }
  return best;
}

// What an index for strings asks of all properties.
Fits Checker::AssignableToStringIndex(const Shape& from, TypeRef wanted) {
  if (from.string_index != nullptr) return Assignable(from.string_index, wanted);
  const Fits all = All(from.properties,
                       [&](const Property& p) { return Assignable(TypeOfProperty(p), wanted); });
  return from.number_index == nullptr ? all : Both(all, Assignable(from.number_index, wanted));
}

Fits Checker::AssignableToNumberIndex(TypeRef from, const Shape* shape, TypeRef wanted) {
  if (from->is(T::kTuple) || ArrayLike(from))
    return Assignable(ElementType(from, pool_.number), wanted);
  if (shape == nullptr) return Fits::kMaybe;
  if (shape->number_index != nullptr) return Assignable(shape->number_index, wanted);
  if (shape->string_index != nullptr) return Assignable(shape->string_index, wanted);
  if (from->is(T::kRef)) return Fits::kMaybe;
  return All(shape->properties, [&](const Property& p) {
    const bool number = !p.name.empty() && p.name[0] >= '0' && p.name[0] <= '9';
    return number ? Assignable(TypeOfProperty(p), wanted) : Fits::kYes;
  });
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
    return All(to->signatures,
               [&](const Signature* wanted) { return AssignableToSignature(offered, wanted); });
  }
  if (to->is(T::kRef) && to->symbol->is(kLib)) {
    if (const auto fits = AssignableToLibrary(from, to)) return *fits;
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
    // Interfaces and classes have no implicit index signature.
    if (given->string_index == nullptr && from->is(T::kRef)) return Fits::kNo;
    all = Both(all, AssignableToStringIndex(*given, wanted->string_index));
  }
  if (wanted->number_index != nullptr && all != Fits::kNo)
    all = Both(all, AssignableToNumberIndex(from, given, wanted->number_index));
  for (const Signature* call : wanted->calls) {
    const auto offered = CallSignatures(from, false);
    if (offered.empty()) return Fits::kNo;
    all = Both(all, AssignableToSignature(offered, call));
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
