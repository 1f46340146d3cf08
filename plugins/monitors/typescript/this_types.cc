// The type `this`. A declaration that mentions it means another type in every class that inherits
// it: `add(): this` of a Builder returns an HtmlBuilder where one is asked. Types are computed once
// for the class that declares a member, with the class itself for `this`. Where the member is found
// through a derived class, a type parameter or an intersection, that one is put in its place.
//
// Too much may be replaced (a method that mentions `this` and returns a new object of its class).
// The receiver has all members of the class, so this refuses nothing that is right.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

namespace {

// Whether the text has the word `this`; a parameter of this name does not count.
bool MentionsThis(std::string_view text) {
  Work::Bytes(text.size());
  for (size_t at = text.find("this"); at != std::string_view::npos;
       at = text.find("this", at + 4)) {
    const auto name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
    };
    if (at > 0 && (name(text[at - 1]) || text[at - 1] == '.')) continue;
    size_t end = at + 4;
    if (end < text.size() && name(text[end])) continue;
    while (end < text.size() && text[end] == ' ') ++end;
    if (end < text.size() && text[end] == ':') continue;
    return true;
  }
  return false;
}

const Node* Annotation(const Node* declaration) {
  const Node* type = declaration->at(F::k_return_type);
  return type != nullptr ? type : declaration->at(F::k_type);
}

bool ResultIsThis(const Node* declaration) {
  const Node* type = Annotation(declaration);
  if (type != nullptr) return MentionsThis(type->text());
  return MentionsThis(declaration->text()) ||
         declaration->text().find("super.") != std::string_view::npos;
}

class Replacement {
 public:
  Replacement(TypePool& pool, Symbol* of, TypeRef receiver)
      : pool_(pool), of_(of), receiver_(receiver) {}

  TypeRef In(TypeRef type, int depth = 0) {
    constexpr int kMostNested = 12;
    if (depth > kMostNested) return type;
    Work::Step();
    switch (type->kind) {
      case T::kStatic:
        return type->symbol == of_ && receiver_->is(T::kRef) ? pool_.Static(receiver_->symbol)
                                                             : type;
      case T::kRef:
        if (type->symbol == of_) return receiver_;
        return type->parts.empty() ? type : pool_.Ref(type->symbol, Parts(type, depth));
      case T::kUnion:
        return pool_.Union(Parts(type, depth));
      case T::kIntersection:
        return pool_.Intersection(Parts(type, depth));
      case T::kTuple:
        return pool_.Tuple(Parts(type, depth), type->required, type->rest, type->readonly);
      case T::kFunction: {
        std::vector<const Signature*> signatures;
        for (const Signature* s : type->signatures)
          signatures.push_back(In(s, true, true, depth + 1));
        return signatures == type->signatures ? type : pool_.Function(std::move(signatures));
      }
      case T::kShape: {
        if (type->node != nullptr || type->shape == nullptr) return type;
        Shape shape = *type->shape;
        for (Property& p : shape.properties) {
          if (p.type != nullptr) p.type = In(p.type, depth + 1);
        }
        return pool_.ShapeOf(std::move(shape), type->literal_object);
      }
      default:
        return type;
    }
  }

  const Signature* In(const Signature* signature, bool parameters, bool result, int depth = 0) {
    Signature made = *signature;
    if (parameters) {
      for (Parameter& p : made.params) p.type = In(p.type, depth + 1);
      if (made.self != nullptr) made.self = In(made.self, depth + 1);
    }
    if (result && made.result != nullptr) made.result = In(made.result, depth + 1);
    if (made.guarded != nullptr) made.guarded = In(made.guarded, depth + 1);
    bool same = made.result == signature->result && made.guarded == signature->guarded &&
                made.self == signature->self;
    for (size_t i = 0; i < made.params.size(); ++i)
      same = same && made.params[i].type == signature->params[i].type;
    if (same) return signature;
    Signature* kept = pool_.NewSignature();
    *kept = std::move(made);
    return kept;
  }

 private:
  std::vector<TypeRef> Parts(TypeRef type, int depth) {
    std::vector<TypeRef> parts;
    for (TypeRef part : type->parts) parts.push_back(In(part, depth + 1));
    return parts;
  }

  TypePool& pool_;
  Symbol* const of_;
  const TypeRef receiver_;
};

}  // namespace

TypeRef Checker::WithReceiver(TypeRef type, const Property& property) {
  const TypeRef receiver = property.receiver;
  Symbol* const member = property.symbol;
  if (receiver == nullptr || member->owner == nullptr || type->loose()) return type;
  if (receiver->is(T::kRef) && receiver->symbol == member->owner) return type;
  if (member->is(kEnumMember)) return type;
  Replacement replacement(pool_, member->owner, receiver);
  if (!member->is(kMethod) || !type->is(T::kFunction)) {
    const bool says = std::any_of(member->declarations.begin(), member->declarations.end(),
                                  [](const Node* d) { return ResultIsThis(d); });
    return says ? replacement.In(type) : type;
  }
  std::vector<const Signature*> signatures = type->signatures;
  for (const Signature*& signature : signatures) {
    const Node* node = signature->node;
    if (node == nullptr) continue;
    const Node* list = node->at(F::k_parameters);
    const bool result = ResultIsThis(node);
    const bool parameters = list != nullptr && MentionsThis(list->text());
    if (!result && !parameters) continue;
    if (result) ResultOf(signature);
    signature = replacement.In(signature, parameters, result);
  }
  return signatures == type->signatures ? type : pool_.Function(std::move(signatures));
}

}  // namespace pawl::monitors::ts
