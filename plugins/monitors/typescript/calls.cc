// Calls: which overload takes these arguments, what stands for its type parameters, what it
// returns. Overloads are tried in order. For one that takes so many arguments, type parameters are
// inferred from the arguments that are no functions, then functions are typed with the parameters
// that follow from that, and what they return is inferred from in turn.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

using K = Kind;
using F = Field;

std::vector<const Node*> Checker::Arguments(const Node* call, bool* spread) {
  std::vector<const Node*> args;
  *spread = false;
  const Node* list = call->at(F::k_arguments);
  if (list == nullptr) return args;
  if (list->is(K::k_template_string)) {
    *spread = true;
    return args;
  }
  for (const Node& kid : list->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (kid.is(K::k_spread_element)) {
      const TypeRef of = TypeOf(kid.first_named());
      if (!of->is(T::kTuple) || of->rest) *spread = true;
      *spread = true;
    }
    args.push_back(&kid);
  }
  return args;
}

bool Checker::ContextSensitive(const Node* argument) {
  if (argument->is(K::k_parenthesized_expression)) {
    const Node* inner = argument->first_named();
    return inner != nullptr && ContextSensitive(inner);
  }
  if (!argument->is(K::k_arrow_function) && !argument->is(K::k_function_expression)) return false;
  return true;
}

void Checker::Forget(const Node* inside) {
  Work::Step(1 + (types_.size() + calls_.size() + scopes_.size()) / 4);
  const auto within = [&](const Node* node) {
    return node->tree == inside->tree && inside->start <= node->start && node->end <= inside->end;
  };
  std::erase_if(types_, [&](const auto& entry) { return within(entry.first); });
  std::erase_if(calls_, [&](const auto& entry) { return within(entry.first); });
  std::erase_if(returns_, [&](const auto& entry) { return within(entry.first); });
  std::erase_if(scopes_, [&](const auto& entry) { return within(entry.first); });
  std::erase_if(lambda_params_, [&](const auto& entry) { return within(entry.first); });
  std::erase_if(contextual_, [&](const auto& entry) { return within(entry.first); });
}

void Checker::Infer(TypeRef from, TypeRef to,
                    std::unordered_map<TypeRef, std::vector<TypeRef>>& found, int depth) {
  if (depth > 8) return;
  Work::Step();
  if (to->is(T::kParam)) {
    if (const auto at = found.find(to); at != found.end()) {
      at->second.push_back(from);
    }
    return;
  }
  if (from->loose()) {
    // Everything inside is as unknown.
    for (TypeRef part : to->parts) Infer(from, part, found, depth + 1);
    if (to->is(T::kFunction)) {
      for (const Signature* s : to->signatures) {
        if (s->result != nullptr) Infer(from, s->result, found, depth + 1);
      }
    }
    return;
  }
  if (to->is(T::kUnion)) {
    // What fits a part without parameters is not what the parameter stands for.
    std::vector<TypeRef> left;
    TypePool::Each(from, [&](TypeRef part) {
      for (TypeRef wanted : to->parts) {
        if (!HasParams(wanted) && Assignable(part, wanted) == Fits::kYes) return;
      }
      left.push_back(part);
    });
    if (left.empty()) return;
    const TypeRef rest = pool_.Union(std::move(left));
    bool structured = false;
    for (TypeRef wanted : to->parts) {
      if (!wanted->is(T::kParam) && HasParams(wanted)) {
        const size_t before = [&] {
          size_t n = 0;
          for (const auto& [p, c] : found) n += c.size();
          return n;
        }();
        Infer(rest, wanted, found, depth + 1);
        size_t after = 0;
        for (const auto& [p, c] : found) after += c.size();
        structured = structured || after > before;
      }
    }
    if (structured) return;
    for (TypeRef wanted : to->parts) {
      if (wanted->is(T::kParam)) Infer(rest, wanted, found, depth + 1);
    }
    return;
  }
  if (from->is(T::kUnion)) {
    for (TypeRef part : from->parts) Infer(part, to, found, depth + 1);
    return;
  }
  if (to->is(T::kRef) && !to->parts.empty()) {
    if (from->is(T::kRef) && from->symbol == to->symbol) {
      for (size_t i = 0; i < from->parts.size() && i < to->parts.size(); ++i) {
        Infer(from->parts[i], to->parts[i], found, depth + 1);
      }
      return;
    }
    const std::string& name = to->symbol->name;
    if (to->symbol->is(kLib) && to->parts.size() == 1 &&
        (name == "Array" || name == "ReadonlyArray" || name == "Iterable" || name == "ArrayLike" ||
         name == "ConcatArray" || name == "Set" || name == "ReadonlySet")) {
      const bool array_only = name == "Array" || name == "ReadonlyArray" || name == "ConcatArray";
      const bool array = from->is(T::kTuple) ||
                         (from->is(T::kRef) &&
                          (from->symbol->name == "Array" || from->symbol->name == "ReadonlyArray"));
      const TypeRef element = IterationType(from);
      // An object is not iterated over.
      if (element->open() && (from->is(T::kShape) || !from->is(T::kRef))) return;
      if (!array_only || array) Infer(element, to->parts[0], found, depth + 1);
      return;
    }
    if (to->symbol->is(kLib) && name == "PromiseLike" && from->is(T::kRef) &&
        from->symbol->name == "Promise") {
      Infer(from->parts[0], to->parts[0], found, depth + 1);
      return;
    }
    if (from->is(T::kRef)) {
      for (TypeRef base : BasesOf(from)) Infer(base, to, found, depth + 1);
    }
    if (to->symbol->is(kLib) && !from->is(T::kShape)) return;
  }
  if (to->is(T::kTuple)) {
    if (from->is(T::kTuple)) {
      for (size_t i = 0; i < from->parts.size() && i < to->parts.size(); ++i) {
        Infer(from->parts[i], to->parts[i], found, depth + 1);
      }
    } else {
      const TypeRef element = IterationType(from);
      for (TypeRef part : to->parts) Infer(element, part, found, depth + 1);
    }
    return;
  }
  if (to->is(T::kFunction)) {
    const auto offered = CallSignatures(from, false);
    if (offered.empty()) return;
    const Signature* a = offered.front();
    const Signature* b = to->signatures.front();
    for (size_t i = 0; i < a->params.size() && i < b->params.size(); ++i) {
      if (!a->params[i].rest && !b->params[i].rest)
        Infer(a->params[i].type, b->params[i].type, found, depth + 1);
    }
    if (b->result != nullptr) Infer(ResultOf(a), b->result, found, depth + 1);
    return;
  }
  if (to->is(T::kShape) || to->is(T::kRef)) {
    const Shape* wanted = ShapeOf(to);
    if (wanted == nullptr || (to->is(T::kRef) && to->symbol->is(kLib))) return;
    for (const Property& p : wanted->properties) {
      const TypeRef type = TypeOfProperty(p);
      if (!HasParams(type)) continue;
      if (const auto member = Member(from, p.name))
        Infer(TypeOfProperty(*member), type, found, depth + 1);
    }
    const Shape* given = ShapeOf(from);
    if (wanted->string_index != nullptr && given != nullptr) {
      if (given->string_index != nullptr)
        Infer(given->string_index, wanted->string_index, found, depth + 1);
      for (const Property& p : given->properties)
        Infer(TypeOfProperty(p), wanted->string_index, found, depth + 1);
      if (given->number_index != nullptr)
        Infer(given->number_index, wanted->string_index, found, depth + 1);
    }
    if (wanted->number_index != nullptr)
      Infer(IterationType(from), wanted->number_index, found, depth + 1);
  }
}

// Tries one overload. False: it cannot be the one. `result.open` stays set when it only may be.
bool Checker::TryCall(const Node* call, const Signature* candidate,
                      const std::vector<const Node*>& args, bool spread, Call& result) {
  const size_t most = candidate->has_rest() ? 100000 : candidate->params.size();
  if (!spread && (args.size() > most || args.size() < candidate->required())) {
    // A parameter of type void may be left out.
    for (size_t i = args.size(); i < candidate->required(); ++i) {
      if (!candidate->params[i].type->is(T::kVoid)) return false;
    }
    if (args.size() > most) return false;
  }
  if (spread && !candidate->has_rest()) {
    size_t plain = 0;
    for (const Node* arg : args) plain += arg->is(K::k_spread_element) ? 0 : 1;
    if (plain > most) return false;
  }
  const auto wanted_at = [&](size_t i) -> TypeRef {
    if (i < candidate->params.size() && !candidate->params[i].rest)
      return candidate->params[i].type;
    if (!candidate->has_rest()) return pool_.open;
    const TypeRef rest = candidate->params.back().type;
    if (rest->is(T::kTuple)) {
      const size_t k = i - (candidate->params.size() - 1);
      return k < rest->parts.size() ? rest->parts[k] : pool_.open;
    }
    return IterationType(rest);
  };
  std::unordered_map<TypeRef, std::vector<TypeRef>> found;
  for (TypeRef p : candidate->type_params) found[p] = {};
  Mapper fixed;
  if (const Node* list = call->at(F::k_type_arguments)) {
    size_t i = 0;
    for (const Node& kid : list->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      if (i >= candidate->type_params.size()) return false;
      fixed.emplace_back(candidate->type_params[i++], TypeFromNode(&kid));
    }
    if (i > 0 && i < candidate->type_params.size()) {
      for (; i < candidate->type_params.size(); ++i)
        fixed.emplace_back(candidate->type_params[i], pool_.open);
    }
  }
  const auto choose = [&](TypeRef param, bool widen) -> TypeRef {
    for (const auto& [p, type] : fixed) {
      if (p == param) return type;
    }
    std::vector<TypeRef> candidates = found[param];
    if (candidates.empty()) return nullptr;
    for (TypeRef& c : candidates) {
      if (c->open()) return pool_.open;
    }
    bool primitive_constraint = false;
    TypePool::Each(ConstraintOf(param), [&](TypeRef part) {
      primitive_constraint =
          primitive_constraint || part->is(T::kString) || part->is(T::kNumber) || part->literal();
    });
    for (TypeRef& c : candidates)
      c = widen && !primitive_constraint ? pool_.Widen(c) : pool_.Regular(c);
    for (TypeRef c : candidates) {
      bool all = true;
      for (TypeRef other : candidates) all = all && Assignable(other, c) != Fits::kNo;
      if (all) return c;
    }
    // Nullable beside not nullable: the union.
    std::vector<TypeRef> plain;
    for (TypeRef c : candidates) plain.push_back(pool_.NonNull(c));
    for (TypeRef c : plain) {
      bool all = !c->is(T::kNever);
      for (TypeRef other : plain) all = all && Assignable(other, c) != Fits::kNo;
      if (all) return pool_.Union(candidates);
    }
    return candidates.front();
  };
  // What the place of the call wants helps where the arguments say nothing.
  const auto from_context = [&](TypeRef param) -> TypeRef {
    const TypeRef context = ContextualType(call);
    if (context == nullptr || context->loose() || candidate->result == nullptr) return nullptr;
    std::unordered_map<TypeRef, std::vector<TypeRef>> wanted;
    for (TypeRef p : candidate->type_params) wanted[p] = {};
    Infer(pool_.NonNull(context), candidate->result, wanted, 0);
    const auto& types = wanted[param];
    return types.empty() || types[0]->open() ? nullptr : pool_.Regular(types[0]);
  };
  bool maybe = false;
  bool widened = false;
  const auto mapper_now = [&](bool final) {
    Mapper mapper;
    for (TypeRef param : candidate->type_params) {
      const bool top = candidate->result == param;
      TypeRef type = choose(param, !final || widened || !top);
      if (type == nullptr) type = from_context(param);
      if (type == nullptr) {
        const Node* declaration = param->symbol->declarations.front();
        const Node* standard = declaration->at(F::k_value);
        type = standard != nullptr && final ? TypeFromNode(standard->first_named())
               : final                      ? Instantiate(ConstraintOf(param), candidate->mapper)
                                            : pool_.unknown;
        if (!final && HasParams(ConstraintOf(param))) type = pool_.open;
      }
      mapper.emplace_back(param, type);
    }
    return mapper;
  };
  // Literals of arrays and objects take their form from the parameter: a pair or an array of two?
  Mapper free;
  for (TypeRef param : candidate->type_params) {
    TypeRef stands = pool_.open;
    for (const auto& [p, type] : fixed) stands = p == param ? type : stands;
    free.emplace_back(param, stands);
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i]->is(K::k_array) || args[i]->is(K::k_object)) {
      Forget(args[i]);
      contextual_[args[i]] = Instantiate(wanted_at(i), free);
    }
  }
  if (!candidate->type_params.empty()) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i]->is(K::k_spread_element)) {
        Infer(IterationType(TypeOf(args[i]->first_named())), wanted_at(i), found, 0);
        break;
      }
      if (ContextSensitive(args[i])) continue;
      const TypeRef wanted = wanted_at(i);
      if (!HasParams(wanted)) continue;
      // A function that is named: filter(isCat).
      const auto guards = CallSignatures(pool_.NonNull(wanted), false);
      if (guards.size() == 1 && guards[0]->guarded != nullptr && !TypeOf(args[i])->loose()) {
        const auto own = CallSignatures(TypeOf(args[i]), false);
        if (own.size() == 1 && own[0]->guarded == nullptr) return false;
        Infer(own.size() == 1 ? own[0]->guarded : pool_.open, guards[0]->guarded, found, 0);
        continue;
      }
      Infer(TypeOf(args[i]), wanted, found, 0);
    }
  }
  bool behind_spread = false;
  for (size_t i = 0; i < args.size(); ++i) {
    behind_spread = behind_spread || args[i]->is(K::k_spread_element);
    if (behind_spread || !ContextSensitive(args[i])) continue;
    const Node* lambda = args[i];
    while (lambda->is(K::k_parenthesized_expression)) lambda = lambda->first_named();
    const TypeRef generic = pool_.NonNull(wanted_at(i));
    const Mapper mapper = mapper_now(false);
    const TypeRef wanted = Instantiate(generic, mapper);
    const auto signatures = CallSignatures(wanted, false);
    Forget(lambda);
    if (wanted->loose() || signatures.empty()) {
      if (!wanted->loose() && !wanted->is(T::kUnknown)) return false;
      lambda_params_[lambda] = {};
      continue;
    }
    std::vector<TypeRef> params;
    for (const Parameter& p : signatures.front()->params) {
      if (p.rest) {
        for (int k = 0; k < 8; ++k) params.push_back(IterationType(p.type));
      } else {
        params.push_back(p.type);
      }
    }
    lambda_params_[lambda] = std::move(params);
    contextual_[lambda] = wanted;
    widened = true;
    const auto generics = CallSignatures(generic, false);
    if (!generics.empty() && generics.front()->result != nullptr &&
        HasParams(generics.front()->result)) {
      const TypeRef function = TypeOf(lambda);
      const Signature* own = function->signatures.front();
      TypeRef returned = ResultOf(own);
      if (generics.front()->guarded != nullptr) {
        if (own->guarded == nullptr) return false;
        Infer(own->guarded, generics.front()->guarded, found, 0);
      } else {
        Infer(returned, generics.front()->result, found, 0);
      }
    } else if (!generics.empty() && generics.front()->guarded != nullptr) {
      // filter<S extends T>(predicate: (x: T) => x is S)
      const TypeRef function = TypeOf(lambda);
      const Signature* own = function->signatures.front();
      if (own->guarded == nullptr) return false;
      Infer(own->guarded, generics.front()->guarded, found, 0);
    }
  }
  const Mapper mapper = mapper_now(true);
  const Signature* made = Instantiate(candidate, mapper);
  if (candidate->type_params.empty()) made = candidate;
  // Constraints.
  for (const auto& [param, type] : mapper) {
    const TypeRef constraint =
        Instantiate(Instantiate(ConstraintOf(param), mapper), candidate->mapper);
    if (constraint->is(T::kUnknown)) continue;
    const Fits fits = Assignable(type, constraint);
    if (fits == Fits::kNo) {
      result.bad_argument = args.empty() ? nullptr : args.front();
      return false;
    }
  }
  behind_spread = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i]->is(K::k_spread_element)) {
      behind_spread = true;
      const Fits fits = Assignable(IterationType(TypeOf(args[i]->first_named())),
                                   Instantiate(wanted_at(i), mapper));
      if (fits == Fits::kNo) {
        result.bad_argument = args[i];
        return false;
      }
      if (fits == Fits::kMaybe) maybe = true;
      continue;
    }
    if (behind_spread) continue;
    TypeRef wanted = Instantiate(wanted_at(i), mapper);
    if (i < candidate->params.size() && candidate->params[i].optional)
      wanted = pool_.Union(wanted, pool_.undefined);
    const Fits fits = Assignable(TypeOf(args[i]), wanted);
    if (fits == Fits::kNo) {
      result.bad_argument = args[i];
      return false;
    }
    if (fits == Fits::kMaybe) maybe = true;
  }
  Signature* plain = pool_.NewSignature();
  *plain = *made;
  plain->type_params.clear();
  result.signature = plain;
  result.open = maybe;
  return true;
}

const Checker::Call& Checker::ResolveCall(const Node* call) {
  if (const auto found = calls_.find(call); found != calls_.end()) return found->second;
  static const Call kUnknown{};
  if (Unfinished(call) || calling_.size() > 24 || !calling_.insert(call).second) return kUnknown;
  Call result;
  const bool construct = call->is(K::k_new_expression);
  const Node* callee = call->at(construct ? F::k_constructor : F::k_function);
  TypeRef of = callee == nullptr ? pool_.open : pool_.NonNull(TypeOf(callee));
  if (of->is(T::kParam)) of = Apparent(of);
  std::vector<const Signature*> overloads;
  bool known = !of->loose();
  if (of->is(T::kUnion)) {
    known = false;
    // All parts take the same: a union of arrays, say. Not followed.
  } else if (construct && of->is(T::kStatic) && of->symbol->is(kClass)) {
    Symbol* symbol = of->symbol;
    FillMembers(symbol);
    if (OpenSymbol(symbol) && symbol->constructs.empty()) known = false;
    const TypeRef instance = pool_.Ref(symbol, ParamsOf(symbol));
    Symbol* maker = symbol;
    Mapper mapper;
    TypeRef at = instance;
    // The bases of a declaration never come back to it (CheckBases).
    while (maker->constructs.empty()) {
      Work::Step();
      const auto bases = BasesOf(at);
      if (maker->bases_open ||
          (!bases.empty() && (!bases[0]->is(T::kRef) || !bases[0]->symbol->is(kClass)))) {
        known = false;
        break;
      }
      if (bases.empty()) break;
      at = bases[0];
      maker = at->symbol;
      FillMembers(maker);
      mapper.clear();
      for (size_t i = 0; i < ParamsOf(maker).size() && i < at->parts.size(); ++i) {
        mapper.emplace_back(ParamsOf(maker)[i], at->parts[i]);
      }
    }
    std::vector<const Node*> nodes;
    bool headers = false;
    for (const Node* n : maker->constructs) headers = headers || n->at(F::k_body) == nullptr;
    for (const Node* n : maker->constructs) {
      if (!headers || n->at(F::k_body) == nullptr) nodes.push_back(n);
    }
    for (const Node* n : nodes) {
      Signature* s = pool_.NewSignature();
      *s = *SignatureOf(n, mapper);
      s->type_params = ParamsOf(symbol);
      s->result = instance;
      overloads.push_back(s);
    }
    if (nodes.empty()) {
      Signature* s = pool_.NewSignature();
      s->type_params = ParamsOf(symbol);
      s->result = instance;
      overloads.push_back(s);
    }
  } else {
    overloads = CallSignatures(of, construct);
  }
  if (callee != nullptr && callee->is(K::k_super)) known = false;
  if (known && !overloads.empty()) {
    bool spread = false;
    const auto args = Arguments(call, &spread);
    // Nodes inside the call may be waiting for its result: they are asked again here.
    std::unordered_set<const Node*> waiting;
    std::swap(waiting, computing_);
    bool counted = spread;
    for (const Signature* s : overloads) {
      const size_t most = s->has_rest() ? 100000 : s->params.size();
      size_t least = s->required();
      while (least > 0 && s->params[least - 1].type->is(T::kVoid)) --least;
      counted = counted || (args.size() >= least && args.size() <= most);
    }
    result.bad_count = !counted;
    const bool broken = call->broken();
    if (counted && !broken) {
      std::vector<Call> tried;
      for (const Signature* s : overloads) {
        Call one;
        if (TryCall(call, s, args, spread, one)) {
          const bool sure = !one.open;
          tried.push_back(one);
          if (sure) break;
        } else if (result.bad_argument == nullptr) {
          result.bad_argument = one.bad_argument;
        }
      }
      if (!tried.empty()) {
        result.bad_argument = nullptr;
        if (tried.size() == 1) {
          result.signature = tried[0].signature;
          result.open = tried[0].open;
        } else {
          // The first that surely fits may be behind some that only may: they have to agree.
          bool agree = true;
          const TypeRef first = ResultOf(tried[0].signature);
          for (const Call& other : tried) agree = agree && ResultOf(other.signature) == first;
          if (agree) result.signature = tried[0].signature;
          result.open = true;
        }
      } else {
        result.open = false;
      }
    } else if (!counted) {
      result.open = false;
      if (overloads.size() == 1 && overloads[0]->type_params.empty())
        result.signature = overloads[0];
    }
    std::swap(waiting, computing_);
  }
  calling_.erase(call);
  return calls_[call] = std::move(result);
}

}  // namespace pawl::monitors::ts
