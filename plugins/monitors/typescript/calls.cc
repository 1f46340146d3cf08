// Calls: which overload takes these arguments, what stands for its type parameters, what it
// returns. Overloads are tried in order. For one that takes so many arguments, type parameters are
// inferred from the arguments that are no functions, then functions are typed with the parameters
// that follow from that, and what they return is inferred from in turn.
#include <algorithm>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

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

// What may stand for the type parameters of an overload, by what arguments say.
class Candidates {
 public:
  Candidates(Checker& checker, const std::vector<TypeRef>& params) : checker_(checker) {
    for (TypeRef param : params) found_[param] = {};
  }
  const std::vector<TypeRef>& of(TypeRef param) { return found_[param]; }
  // A value of type `from` is given where `to`, which may mention parameters, is wanted.
  void Infer(TypeRef from, TypeRef to, int depth = 0) {
    if (depth > 8) return;
    Work::Step();
    if (to->is(T::kParam)) {
      if (const auto at = found_.find(to); at != found_.end()) at->second.push_back(from);
      return;
    }
    if (from->loose()) {
      // Everything inside is as unknown.
      for (TypeRef part : to->parts) Infer(from, part, depth + 1);
      if (!to->is(T::kFunction)) return;
      for (const Signature* s : to->signatures) {
        if (s->result != nullptr) Infer(from, s->result, depth + 1);
      }
      return;
    }
    if (to->is(T::kUnion)) return InferUnion(from, to, depth + 1);
    if (to->is(T::kIntersection)) {
      for (TypeRef part : to->parts) Infer(from, part, depth + 1);
      return;
    }
    if (from->is(T::kUnion)) {
      for (TypeRef part : from->parts) Infer(part, to, depth + 1);
      return;
    }
    if (to->is(T::kRef) && !to->parts.empty() && InferRef(from, to, depth + 1)) return;
    if (to->is(T::kTuple)) {
      if (from->is(T::kTuple)) return InferParts(from, to, depth + 1);
      const TypeRef element = checker_.IterationType(from);
      for (TypeRef part : to->parts) Infer(element, part, depth + 1);
      return;
    }
    if (to->is(T::kFunction)) return InferFunction(from, to, depth + 1);
    if (to->is(T::kShape) || to->is(T::kRef)) InferShape(from, to, depth + 1);
  }

 private:
  void InferUnion(TypeRef from, TypeRef to, int depth) {
    // What fits a part without parameters is not what the parameter stands for.
    std::vector<TypeRef> left;
    TypePool::Each(from, [&](TypeRef part) {
      for (TypeRef wanted : to->parts) {
        if (!checker_.HasParams(wanted) && checker_.Assignable(part, wanted) == Fits::kYes) return;
      }
      left.push_back(part);
    });
    if (left.empty()) return;
    const TypeRef rest = checker_.pool_.Union(std::move(left));
    const size_t before = size();
    for (TypeRef wanted : to->parts) {
      if (!wanted->is(T::kParam) && checker_.HasParams(wanted)) Infer(rest, wanted, depth);
    }
    if (size() > before) return;
    for (TypeRef wanted : to->parts) {
      if (wanted->is(T::kParam)) Infer(rest, wanted, depth);
    }
  }

  // False: the members have to tell.
  bool InferRef(TypeRef from, TypeRef to, int depth) {
    if (from->is(T::kRef) && from->symbol == to->symbol) {
      InferParts(from, to, depth);
      return true;
    }
    const std::string& name = to->symbol->name;
    if (to->symbol->is(kLib) && to->parts.size() == 1 &&
        (name == "Array" || name == "ReadonlyArray" || name == "Iterable" || name == "ArrayLike" ||
         name == "ConcatArray" || name == "Set" || name == "ReadonlySet")) {
      const bool array_only = name == "Array" || name == "ReadonlyArray" || name == "ConcatArray";
      const bool array = from->is(T::kTuple) ||
                         (from->is(T::kRef) &&
                          (from->symbol->name == "Array" || from->symbol->name == "ReadonlyArray"));
      const TypeRef element = checker_.IterationType(from);
      // An object is not iterated over.
      const bool object = element->open() && (from->is(T::kShape) || !from->is(T::kRef));
      if (!object && (!array_only || array)) Infer(element, to->parts[0], depth);
      return true;
    }
    if (to->symbol->is(kLib) && name == "PromiseLike" && from->is(T::kRef) &&
        from->symbol->name == "Promise") {
      Infer(from->parts[0], to->parts[0], depth);
      return true;
    }
    if (from->is(T::kRef)) {
      for (TypeRef base : checker_.BasesOf(from)) Infer(base, to, depth);
    }
    return to->symbol->is(kLib) && !from->is(T::kShape);
  }

  void InferFunction(TypeRef from, TypeRef to, int depth) {
    const auto offered = checker_.CallSignatures(from, false);
    if (offered.empty()) return;
    const Signature* a = offered.front();
    const Signature* b = to->signatures.front();
    for (size_t i = 0; i < a->params.size() && i < b->params.size(); ++i) {
      if (!a->params[i].rest && !b->params[i].rest)
        Infer(a->params[i].type, b->params[i].type, depth);
    }
    if (b->result != nullptr) Infer(checker_.ResultOf(a), b->result, depth);
  }

  void InferShape(TypeRef from, TypeRef to, int depth) {
    const Shape* wanted = checker_.ShapeOf(to);
    if (wanted == nullptr || (to->is(T::kRef) && to->symbol->is(kLib))) return;
    for (const Property& p : wanted->properties) {
      const TypeRef type = checker_.TypeOfProperty(p);
      if (!checker_.HasParams(type)) continue;
      if (const auto member = checker_.Member(from, p.name))
        Infer(checker_.TypeOfProperty(*member), type, depth);
    }
    const Shape* given = checker_.ShapeOf(from);
    if (wanted->string_index != nullptr && given != nullptr) {
      if (given->string_index != nullptr) Infer(given->string_index, wanted->string_index, depth);
      for (const Property& p : given->properties)
        Infer(checker_.TypeOfProperty(p), wanted->string_index, depth);
      if (given->number_index != nullptr) Infer(given->number_index, wanted->string_index, depth);
    }
    if (wanted->number_index != nullptr)
      Infer(checker_.IterationType(from), wanted->number_index, depth);
  }

  void InferParts(TypeRef from, TypeRef to, int depth) {
    for (size_t i = 0; i < from->parts.size() && i < to->parts.size(); ++i)
      Infer(from->parts[i], to->parts[i], depth);
  }
  size_t size() const {
    size_t n = 0;
    for (const auto& [param, types] : found_) n += types.size();
    return n;
  }

  Checker& checker_;
  std::unordered_map<TypeRef, std::vector<TypeRef>> found_;
};

// One overload, tried with the arguments of a call.
class CallAttempt {
 public:
  CallAttempt(Checker& checker, const Node* call, const Signature* candidate,
              const std::vector<const Node*>& args)
      : checker_(checker),
        pool_(checker.pool_),
        call_(call),
        candidate_(candidate),
        args_(args),
        found_(checker, candidate->type_params) {}

  // False: it cannot be the one. `result.open` stays set when it only may be.
  bool Try(bool spread, Checker::Call& result) {
    if (!TakesSoMany(spread) || !ReadTypeArguments()) return false;
    ShapeLiterals();
    if (!candidate_->type_params.empty() && !InferFromValues()) return false;
    if (!InferFromFunctions()) return false;
    const Mapper mapper = Chosen(true);
    const Signature* made = checker_.Instantiate(candidate_, mapper);
    if (candidate_->type_params.empty()) made = candidate_;
    if (!MeetsConstraints(mapper)) {
      result.bad_argument = args_.empty() ? nullptr : args_.front();
      return false;
    }
    bool maybe = false;
    result.bad_argument = Misfit(mapper, &maybe);
    if (result.bad_argument != nullptr) return false;
    Signature* plain = pool_.NewSignature();
    *plain = *made;
    plain->type_params.clear();
    result.signature = plain;
    result.open = maybe;
    return true;
  }

 private:
  bool TakesSoMany(bool spread) const {
    const size_t most = candidate_->has_rest() ? 100000 : candidate_->params.size();
    if (spread) {
      const auto plain = std::count_if(args_.begin(), args_.end(), [](const Node* arg) {
        return !arg->is(K::k_spread_element);
      });
      return candidate_->has_rest() || static_cast<size_t>(plain) <= most;
    }
    // A parameter of type void may be left out.
    for (size_t i = args_.size(); i < candidate_->required(); ++i) {
      if (!candidate_->params[i].type->is(T::kVoid)) return false;
    }
    return args_.size() <= most;
  }

  // The type of the parameter for an argument.
  TypeRef Wanted(size_t i) {
    if (i < candidate_->params.size() && !candidate_->params[i].rest)
      return candidate_->params[i].type;
    if (!candidate_->has_rest()) return pool_.open;
    const TypeRef rest = candidate_->params.back().type;
    if (!rest->is(T::kTuple)) return checker_.IterationType(rest);
    const size_t k = i - (candidate_->params.size() - 1);
    return k < rest->parts.size() ? rest->parts[k] : pool_.open;
  }

  bool ReadTypeArguments() {
    const Node* list = call_->at(F::k_type_arguments);
    if (list == nullptr) return true;
    const std::vector<TypeRef>& params = candidate_->type_params;
    for (const Node& kid : list->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      if (written_.size() >= params.size()) return false;
      written_.emplace_back(params[written_.size()], checker_.TypeFromNode(&kid));
    }
    while (!written_.empty() && written_.size() < params.size())
      written_.emplace_back(params[written_.size()], pool_.open);
    return true;
  }

  // Literals of arrays and objects take their form from the parameter: a pair or an array of two?
  void ShapeLiterals() {
    Mapper free;
    for (TypeRef param : candidate_->type_params) {
      TypeRef stands = pool_.open;
      for (const auto& [p, type] : written_) stands = p == param ? type : stands;
      free.emplace_back(param, stands);
    }
    for (size_t i = 0; i < args_.size(); ++i) {
      if (args_[i]->is(K::k_array) || args_[i]->is(K::k_object)) {
        checker_.Forget(args_[i]);
        checker_.contextual_[args_[i]] = checker_.Instantiate(Wanted(i), free);
      }
    }
  }

  // What the arguments that are no functions say.
  bool InferFromValues() {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (args_[i]->is(K::k_spread_element)) {
        const TypeRef wanted = Wanted(i);
        found_.Infer(checker_.IterationType(checker_.TypeOf(args_[i]->first_named())), wanted);
        break;
      }
      if (checker_.ContextSensitive(args_[i])) continue;
      const TypeRef wanted = Wanted(i);
      if (!checker_.HasParams(wanted)) continue;
      // A function that is named: filter(isCat).
      const auto guards = checker_.CallSignatures(pool_.NonNull(wanted), false);
      if (guards.size() == 1 && guards[0]->guarded != nullptr &&
          !checker_.TypeOf(args_[i])->loose()) {
        const auto own = checker_.CallSignatures(checker_.TypeOf(args_[i]), false);
        if (own.size() == 1 && own[0]->guarded == nullptr) return false;
        found_.Infer(own.size() == 1 ? own[0]->guarded : pool_.open, guards[0]->guarded);
        continue;
      }
      found_.Infer(checker_.TypeOf(args_[i]), wanted);
    }
    return true;
  }

  bool InferFromFunctions() {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (args_[i]->is(K::k_spread_element)) return true;
      if (!checker_.ContextSensitive(args_[i])) continue;
      const Node* lambda = args_[i];
      while (lambda->is(K::k_parenthesized_expression)) lambda = lambda->first_named();
      if (!InferFromFunction(lambda, pool_.NonNull(Wanted(i)))) return false;
    }
    return true;
  }

  // Types the function with the parameters that follow from what was found so far.
  bool InferFromFunction(const Node* lambda, TypeRef generic) {
    const Mapper mapper = Chosen(false);
    const TypeRef wanted = checker_.Instantiate(generic, mapper);
    const auto signatures = checker_.CallSignatures(wanted, false);
    checker_.Forget(lambda);
    if (wanted->loose() || signatures.empty()) {
      if (!wanted->loose() && !wanted->is(T::kUnknown)) return false;
      checker_.lambda_params_[lambda] = {};
      return true;
    }
    std::vector<TypeRef> types;
    for (const Parameter& p : signatures.front()->params) {
      if (p.rest) {
        for (int k = 0; k < 8; ++k) types.push_back(checker_.IterationType(p.type));
      } else {
        types.push_back(p.type);
      }
    }
    checker_.lambda_params_[lambda] = std::move(types);
    checker_.contextual_[lambda] = wanted;
    widened_ = true;
    return InferFromResult(lambda, generic);
  }

  // What the function returns, or what it guards: filter<S extends T>(predicate: (x: T) => x is S).
  bool InferFromResult(const Node* lambda, TypeRef generic) {
    const auto generics = checker_.CallSignatures(generic, false);
    if (generics.empty()) return true;
    const Signature* wanted = generics.front();
    const bool result = wanted->result != nullptr && checker_.HasParams(wanted->result);
    if (!result && wanted->guarded == nullptr) return true;
    const Signature* own = checker_.TypeOf(lambda)->signatures.front();
    const TypeRef returned = result ? checker_.ResultOf(own) : nullptr;
    if (wanted->guarded == nullptr) {
      found_.Infer(returned, wanted->result);
      return true;
    }
    if (own->guarded == nullptr) return false;
    found_.Infer(own->guarded, wanted->guarded);
    return true;
  }

  // The best of the candidates; nullptr: there is none.
  TypeRef Choose(TypeRef param, bool widen) {
    for (const auto& [p, type] : written_) {
      if (p == param) return type;
    }
    std::vector<TypeRef> candidates = found_.of(param);
    if (candidates.empty()) return nullptr;
    for (TypeRef c : candidates) {
      if (c->open()) return pool_.open;
    }
    bool primitive_constraint = false;
    TypePool::Each(checker_.ConstraintOf(param), [&](TypeRef part) {
      primitive_constraint =
          primitive_constraint || part->is(T::kString) || part->is(T::kNumber) || part->literal();
    });
    for (TypeRef& c : candidates)
      c = widen && !primitive_constraint ? pool_.Widen(c) : pool_.Regular(c);
    const auto takes_all = [&](TypeRef c, const std::vector<TypeRef>& others) {
      return std::all_of(others.begin(), others.end(),
                         [&](TypeRef other) { return checker_.Assignable(other, c) != Fits::kNo; });
    };
    for (TypeRef c : candidates) {
      if (takes_all(c, candidates)) return c;
    }
    // Nullable next to not nullable: the union.
    std::vector<TypeRef> plain;
    for (TypeRef c : candidates) plain.push_back(pool_.NonNull(c));
    for (TypeRef c : plain) {
      if (!c->is(T::kNever) && takes_all(c, plain)) return pool_.Union(candidates);
    }
    return candidates.front();
  }

  // What the place of the call wants helps where the arguments say nothing.
  TypeRef FromContext(TypeRef param) {
    const TypeRef context = checker_.ContextualType(call_);
    if (context == nullptr || context->loose() || candidate_->result == nullptr) return nullptr;
    Candidates wanted(checker_, candidate_->type_params);
    wanted.Infer(pool_.NonNull(context), candidate_->result);
    const auto& types = wanted.of(param);
    return types.empty() || types[0]->open() ? nullptr : pool_.Regular(types[0]);
  }

  // What stands for each type parameter, in the end or as far as it is known now.
  Mapper Chosen(bool final) {
    Mapper mapper;
    for (TypeRef param : candidate_->type_params) {
      const bool top = candidate_->result == param;
      TypeRef type = Choose(param, !final || widened_ || !top);
      if (type == nullptr) type = FromContext(param);
      if (type == nullptr) {
        const Node* declaration = param->symbol->declarations.front();
        const Node* standard = declaration->at(F::k_value);
        type = standard != nullptr && final ? checker_.TypeFromNode(standard->first_named())
               : final ? checker_.Instantiate(checker_.ConstraintOf(param), candidate_->mapper)
                       : pool_.unknown;
        if (!final && checker_.HasParams(checker_.ConstraintOf(param))) type = pool_.open;
      }
      mapper.emplace_back(param, type);
    }
    return mapper;
  }

  bool MeetsConstraints(const Mapper& mapper) {
    for (const auto& [param, type] : mapper) {
      const TypeRef constraint = checker_.Instantiate(
          checker_.Instantiate(checker_.ConstraintOf(param), mapper), candidate_->mapper);
      if (constraint->is(T::kUnknown)) continue;
      if (checker_.Assignable(type, constraint) == Fits::kNo) return false;
    }
    return true;
  }

  // The first argument that does not fit, or nullptr. `maybe`: one only may fit.
  const Node* Misfit(const Mapper& mapper, bool* maybe) {
    bool behind_spread = false;
    for (size_t i = 0; i < args_.size(); ++i) {
      const bool spread = args_[i]->is(K::k_spread_element);
      if (behind_spread && !spread) continue;
      behind_spread = spread;
      TypeRef wanted = checker_.Instantiate(Wanted(i), mapper);
      if (!spread && i < candidate_->params.size() && candidate_->params[i].optional)
        wanted = pool_.Union(wanted, pool_.undefined);
      TypeRef given = checker_.TypeOf(spread ? args_[i]->first_named() : args_[i]);
      if (spread) given = checker_.IterationType(given);
      const Fits fits = checker_.Assignable(given, wanted);
      if (fits == Fits::kNo) return args_[i];
      if (fits == Fits::kMaybe) *maybe = true;
    }
    return nullptr;
  }

  Checker& checker_;
  TypePool& pool_;
  const Node* const call_;
  const Signature* const candidate_;
  const std::vector<const Node*>& args_;
  Candidates found_;
  Mapper written_;  // the type arguments
  bool widened_ = false;
};

// The constructors of a class, its own or those that it inherits; nullopt: not known.
std::optional<std::vector<const Signature*>> Checker::ConstructorsOf(Symbol* symbol) {
  FillMembers(symbol);
  bool known = !OpenSymbol(symbol) || !symbol->constructs.empty();
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
  // Where there are overloads, the one with a body is none of them.
  std::vector<const Node*> nodes;
  bool headers = false;
  for (const Node* n : maker->constructs) headers = headers || n->at(F::k_body) == nullptr;
  for (const Node* n : maker->constructs) {
    if (!headers || n->at(F::k_body) == nullptr) nodes.push_back(n);
  }
  if (nodes.empty()) nodes.push_back(nullptr);
  std::vector<const Signature*> constructors;
  for (const Node* n : nodes) {
    Signature* s = pool_.NewSignature();
    if (n != nullptr) *s = *SignatureOf(n, mapper);
    s->type_params = ParamsOf(symbol);
    s->result = instance;
    constructors.push_back(s);
  }
  return known ? std::optional(std::move(constructors)) : std::nullopt;
}

// Tries the overloads, of which at least one takes so many arguments.
void Checker::ChooseOverload(const Node* call, const std::vector<const Signature*>& overloads,
                             const std::vector<const Node*>& args, bool spread, Call& result) {
  std::vector<Call> tried;
  for (const Signature* s : overloads) {
    Call one;
    if (CallAttempt(*this, call, s, args).Try(spread, one)) {
      tried.push_back(one);
      if (!one.open) break;
    } else if (result.bad_argument == nullptr) {
      result.bad_argument = one.bad_argument;
    }
  }
  if (tried.empty()) {
    result.open = false;
    return;
  }
  result.bad_argument = nullptr;
  if (tried.size() == 1) {
    result = tried[0];
    return;
  }
  // The first that surely fits may be behind some that only may: they have to agree.
  bool agree = true;
  const TypeRef first = ResultOf(tried[0].signature);
  for (const Call& other : tried) agree = agree && ResultOf(other.signature) == first;
  if (agree) result.signature = tried[0].signature;
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
  if (construct && of->is(T::kStatic) && of->symbol->is(kClass)) {
    if (auto constructors = ConstructorsOf(of->symbol)) overloads = std::move(*constructors);
  } else if (!of->is(T::kUnion)) {
    // All parts of a union take the same: a union of arrays, say. Not followed.
    overloads = CallSignatures(of, construct);
  }
  const bool known = !of->loose() && !(callee != nullptr && callee->is(K::k_super));
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
    if (!counted) {
      result.open = false;
      if (overloads.size() == 1 && overloads[0]->type_params.empty())
        result.signature = overloads[0];
    } else if (!call->broken()) {
      ChooseOverload(call, overloads, args, spread, result);
    }
    std::swap(waiting, computing_);
  }
  calling_.erase(call);
  return calls_[call] = std::move(result);
}

}  // namespace pawl::monitors::ts
