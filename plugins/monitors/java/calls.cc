// Calls: which methods may be meant, what they return, and what lambdas are given.
//
// Overloads whose number of parameters or whose known parameters can't fit are left out; of those
// that remain, any may be meant, so the type of the call is one of what they return. Type
// parameters of a method are read off the arguments, one level deep; what stays open makes the
// result unknown.
#include <algorithm>
#include <array>
#include <utility>

#include "plugins/monitors/java/typer.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::java {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;
using Answer = SymbolTable::Answer;

bool HasVariable(const Type& type, const std::vector<std::string>& variables) {
  if (type.is(TK::kVariable))
    return std::find(variables.begin(), variables.end(), type.name) != variables.end();
  return std::any_of(type.args.begin(), type.args.end(),
                     [&](const Type& arg) { return HasVariable(arg, variables); });
}

bool Function(const Node* node) {
  return node->is(K::k_lambda_expression) || node->is(K::k_method_reference);
}

// What a function with a parameter of a wildcard type is called with.
Type Given(const Type& type) {
  if ((type.is(TK::kSuper) || type.is(TK::kExtends)) && !type.args.empty()) return type.args[0];
  return type.is(TK::kExtends) ? Type{} : type;
}

}  // namespace

// Above.super.f(): `Above` is a class or interface above, not what f is looked for in as a static
// method.
bool Typer::OfSuper(const Node* access) {
  const Node* super = access->first(K::k_super);
  return super != nullptr && super->field != F::k_object;
}

bool Typer::Unfinished(const Node* node) const {
  const uint32_t cursor = world_.program().cursor;
  return node->start <= cursor && cursor <= node->end;
}

void Typer::Arity(const Member& method, size_t& least, size_t& most) {
  least = most = method.parameters.size();
  if (method.varargs) {
    least = least > 0 ? least - 1 : 0;
    most = SIZE_MAX;
  }
}

std::vector<const Node*> Typer::ArgumentsOf(const Node* call) const {
  std::vector<const Node*> found;
  const Node* list = call->at(F::k_arguments);
  if (list == nullptr) return found;
  for (const Node& kid : list->kids()) {
    if (kid.named && !kid.is(K::k_comment)) found.push_back(&kid);
  }
  return found;
}

std::optional<std::vector<Candidate>> Typer::MethodsOf(const Type& of, std::string_view name) {
  const Type type = ReadFrom(of);
  if (type.is(TK::kVariable))
    return MethodsOf(type.args.empty() ? ClassType("java.lang.Object") : type.args[0], name);
  if (type.is(TK::kArray)) {
    if (name == "clone") return std::nullopt;
    return MethodsOf(ClassType("java.lang.Object"), name);
  }
  if (type.is(TK::kEither)) {
    std::vector<Candidate> all;
    for (const Type& one : type.args) {
      if (one.is(TK::kPrimitive)) continue;
      auto found = MethodsOf(one, name);
      if (!found) return std::nullopt;
      all.insert(all.end(), found->begin(), found->end());
    }
    return all;
  }
  std::vector<Candidate> found;
  bool doubtful = false;
  const bool closed = world_.Walk(type, [&](Class& c, const Substitution& with) {
    world_.ReadClass(c);
    Work::Step(c.members.size() / 4 + found.size());
    for (const Member& m : c.members) {
      if (m.kind != Member::Kind::kMethod || m.name != name) continue;
      // One that overrides it came before.
      const bool overridden = std::any_of(found.begin(), found.end(), [&](const Candidate& other) {
        if (other.method->parameters.size() != m.parameters.size() || other.in == &c) return false;
        for (size_t i = 0; i < m.parameters.size(); ++i) {
          if (!(Substitute(other.method->parameters[i], other.with) ==
                Substitute(m.parameters[i], with))) {
            return false;
          }
        }
        return true;
      });
      if (overridden) continue;
      // Its own type parameters hide the class's.
      Substitution visible = with;
      std::erase_if(visible, [&](const auto& v) {
        return std::find(m.variables.begin(), m.variables.end(), v.first) != m.variables.end();
      });
      found.push_back({&m, &c, std::move(visible)});
    }
    if (c.open && !c.unfinished) doubtful = true;
    return false;
  });
  if (doubtful) return std::nullopt;
  if (!closed) {
    // Only because a class is not finished: what it has so far counts.
    bool unknown = false;
    world_.Walk(type, [&](Class& c, const Substitution& with) {
      (void)with;
      for (const Type& super : c.supers) {
        if (!super.is(TK::kClass) || world_.Find(super.name) == nullptr) unknown = true;
      }
      return false;
    });
    if (unknown || !type.is(TK::kClass) || world_.Find(type.name) == nullptr || found.empty())
      return std::nullopt;
  }
  return found;
}

std::optional<std::vector<Candidate>> Typer::CandidatesOf(const Node* call) {
  if (call->is(K::k_object_creation_expression)) {
    const Type type = world_.TypeFromNode(call->at(F::k_type), world_.program());
    Class* c = type.is(TK::kClass) ? world_.Find(type.name) : nullptr;
    if (c == nullptr || c->is_interface) return std::nullopt;
    world_.ReadClass(*c);
    // Constructors of inner classes have a hidden parameter in class files.
    if (c->open || (c->file == nullptr && !c->outer.empty() && !c->is_static)) return std::nullopt;
    // Of `new Box<>(..)` and `new Box(..)` the arguments are not known.
    Substitution with;
    const bool given = type.args.size() == c->variables.size();
    for (size_t i = 0; i < c->variables.size(); ++i)
      with.emplace_back(c->variables[i], given ? type.args[i] : Type{});
    std::vector<Candidate> found;
    for (const Member& m : c->members) {
      if (m.kind == Member::Kind::kConstructor) found.push_back({&m, c, with});
    }
    return found;
  }
  const Node* name = call->at(F::k_name);
  const Node* object = call->at(F::k_object);
  if (name == nullptr || OfSuper(call)) return std::nullopt;
  if (object != nullptr) {
    const Value receiver = Evaluate(object);
    if (!receiver.type.known()) return std::nullopt;
    return MethodsOf(receiver.type, name->text());
  }
  // f(x): of the nearest class around that has a method of this name.
  for (const Node* up = call->parent; up != nullptr; up = up->parent) {
    const bool body =
        up->is(K::k_class_body) && up->parent != nullptr &&
        (up->parent->is(K::k_object_creation_expression) || up->parent->is(K::k_enum_constant));
    if (!body && !up->is(K::k_class_declaration) && !up->is(K::k_interface_declaration) &&
        !up->is(K::k_enum_declaration) && !up->is(K::k_record_declaration)) {
      continue;
    }
    Class* c = world_.ClassOf(body ? up->parent : up, world_.program());
    Type self = ClassType(c->name);
    for (const std::string& v : c->variables)
      self.args.push_back(Type{.kind = TK::kVariable, .name = v, .args = {Type{}}});
    auto found = MethodsOf(self, name->text());
    if (!found) return std::nullopt;
    if (!found->empty()) return found;
  }
  for (const Import& import : world_.program().imports) {
    if (!import.is_static) continue;
    std::string owner = import.name;
    if (!import.all) {
      if (!import.name.ends_with("." + std::string(name->text()))) continue;
      owner = import.name.substr(0, import.name.size() - name->text().size() - 1);
    }
    auto found = MethodsOf(ClassType(owner), name->text());
    if (!found) return std::nullopt;
    if (!found->empty()) return found;
  }
  return std::nullopt;
}

Type Typer::ParameterAt(const Candidate& candidate, size_t i, size_t count) const {
  const auto& parameters = candidate.method->parameters;
  if (candidate.method->varargs && !parameters.empty() && i + 1 >= parameters.size()) {
    const Type& last = parameters.back();
    // An array may be given as a whole.
    if (i + 1 == parameters.size() && count == parameters.size()) return {};
    return last.is(TK::kArray) ? Substitute(last.args[0], candidate.with) : Type{};
  }
  return i < parameters.size() ? Substitute(parameters[i], candidate.with) : Type{};
}

// Whether an argument can be given for a parameter. No only where it is sure.
Answer Typer::Fits(const Node* argument, const Type& parameter, const Member& method) {
  if (!parameter.known() || HasVariable(parameter, method.variables)) return Answer::kMaybe;
  if (Function(argument)) {
    if (parameter.is(TK::kPrimitive) || parameter.is(TK::kArray)) return Answer::kNo;
    if (!parameter.is(TK::kClass)) return Answer::kMaybe;
    Class* c = world_.Find(parameter.name);
    if (c == nullptr) return Answer::kMaybe;
    if (!c->is_interface) return Answer::kNo;
    const auto function = FunctionOf(parameter);
    if (!function || !argument->is(K::k_lambda_expression)) return Answer::kMaybe;
    const Node* list = argument->at(F::k_parameters);
    if (list == nullptr) return Answer::kMaybe;
    size_t count = list->is(K::k_identifier) ? 1 : 0;
    if (!list->is(K::k_identifier)) {
      for (const Node& kid : list->kids()) count += kid.named && !kid.is(K::k_comment) ? 1 : 0;
    }
    return count == function->method->parameters.size() ? Answer::kMaybe : Answer::kNo;
  }
  if (Unfinished(argument)) return Answer::kMaybe;
  const Type type = ReadFrom(TypeOf(argument));
  if (type.is(TK::kNull)) return parameter.is(TK::kPrimitive) ? Answer::kNo : Answer::kMaybe;
  if (type.is(TK::kPrimitive) && parameter.is(TK::kPrimitive)) {
    if (type == parameter) return Answer::kYes;
    if ((type.name == "boolean") != (parameter.name == "boolean")) return Answer::kNo;
    static constexpr std::array<std::string_view, 6> kWider = {"byte", "short", "int",
                                                               "long", "float", "double"};
    const auto from =
        std::find(kWider.begin(), kWider.end(), type.name == "char" ? "int" : type.name);
    const auto to = std::find(kWider.begin(), kWider.end(), parameter.name);
    if (from == kWider.end() || to == kWider.end()) return Answer::kMaybe;
    return from <= to ? Answer::kMaybe : Answer::kNo;
  }
  if (type.is(TK::kClass) && parameter.is(TK::kPrimitive)) {
    const Type box = Boxed(parameter);
    return type.name.starts_with("java.lang.") && type.name != "java.lang.String" &&
                   type.name != "java.lang.Object"
               ? Answer::kMaybe
               : (type.name == "java.lang.String" && box.known() ? Answer::kNo : Answer::kMaybe);
  }
  if (type.is(TK::kArray) && parameter.is(TK::kPrimitive)) return Answer::kNo;
  if (type.is(TK::kArray) && parameter.is(TK::kClass)) {
    return parameter.name == "java.lang.Object" || parameter.name == "java.lang.Cloneable" ||
                   parameter.name == "java.io.Serializable"
               ? Answer::kYes
               : Answer::kNo;
  }
  if (type.is(TK::kClass) && parameter.is(TK::kArray)) return Answer::kNo;
  if (type.is(TK::kPrimitive) && parameter.is(TK::kClass))
    return world_.IsSubtype(Boxed(type), parameter.name);
  if (type.is(TK::kPrimitive) && parameter.is(TK::kArray)) return Answer::kNo;
  if (type.is(TK::kClass) && parameter.is(TK::kClass)) {
    if (type == parameter) return Answer::kYes;
    return world_.IsSubtype(type, parameter.name);
  }
  return Answer::kMaybe;
}

std::vector<Candidate> Typer::Fitting(const Node* call, const std::vector<Candidate>& candidates) {
  const std::vector<const Node*> arguments = ArgumentsOf(call);
  const Node* list = call->at(F::k_arguments);
  const bool unfinished =
      list == nullptr || (Unfinished(list) && list->end > world_.program().cursor);
  std::vector<Candidate> fitting;
  for (const Candidate& candidate : candidates) {
    size_t least = 0;
    size_t most = 0;
    Arity(*candidate.method, least, most);
    if (arguments.size() > most || (!unfinished && arguments.size() < least)) continue;
    bool fits = true;
    for (size_t i = 0; i < arguments.size() && fits; ++i) {
      fits = Fits(arguments[i], ParameterAt(candidate, i, arguments.size()), *candidate.method) !=
             Answer::kNo;
    }
    if (fits) fitting.push_back(candidate);
  }
  if (fitting.size() < 2 || unfinished) return fitting;
  // One whose parameters are what is given, exactly, is the one that is meant.
  for (const Candidate& candidate : fitting) {
    if (candidate.method->varargs || candidate.method->parameters.size() != arguments.size())
      continue;
    bool exact = true;
    for (size_t i = 0; i < arguments.size() && exact; ++i) {
      const Type parameter = ParameterAt(candidate, i, arguments.size());
      exact = parameter.known() && !Function(arguments[i]) && TypeOf(arguments[i]) == parameter;
    }
    if (exact) return {candidate};
  }
  return fitting;
}

void Typer::Infer(const Type& parameter, const Type& given,
                  const std::vector<std::string>& variables, Substitution& found, int depth) {
  if (depth > 10 || !given.known()) return;
  if (parameter.is(TK::kVariable)) {
    if (std::find(variables.begin(), variables.end(), parameter.name) == variables.end()) return;
    const Type type = Boxed(ReadFrom(given));
    if (type.is(TK::kNull) || type.is(TK::kVoid)) return;
    for (auto& [name, value] : found) {
      if (name != parameter.name) continue;
      if (!(value == type)) value = {};  // their common super type is not computed
      return;
    }
    found.emplace_back(parameter.name, type);
    return;
  }
  if ((parameter.is(TK::kExtends) || parameter.is(TK::kSuper)) && !parameter.args.empty()) {
    const bool wild = given.is(TK::kExtends) || given.is(TK::kSuper);
    if (wild && given.args.empty()) return;
    Infer(parameter.args[0], wild ? given.args[0] : given, variables, found, depth + 1);
    return;
  }
  if (parameter.is(TK::kArray) && given.is(TK::kArray)) {
    Infer(parameter.args[0], given.args[0], variables, found, depth + 1);
    return;
  }
  if (!parameter.is(TK::kClass) || !given.is(TK::kClass)) return;
  const Type as = world_.As(given, parameter.name);
  if (as.args.size() != parameter.args.size()) return;
  for (size_t i = 0; i < as.args.size(); ++i)
    Infer(parameter.args[i], as.args[i], variables, found, depth + 1);
}

std::optional<Candidate> Typer::FunctionOf(const Type& type) {
  if (!type.is(TK::kClass)) return std::nullopt;
  Class* top = world_.Find(type.name);
  if (top == nullptr || !top->is_interface) return std::nullopt;
  std::vector<Candidate> found;
  const bool closed = world_.Walk(type, [&](Class& c, const Substitution& with) {
    world_.ReadClass(c);
    if (!c.is_interface) return false;
    for (const Member& m : c.members) {
      if (m.kind != Member::Kind::kMethod || !m.is_abstract) continue;
      if (m.name == "equals" || m.name == "hashCode" || m.name == "toString") continue;
      const bool again = std::any_of(found.begin(), found.end(), [&](const Candidate& other) {
        return other.method->name == m.name &&
               other.method->parameters.size() == m.parameters.size();
      });
      if (!again) found.push_back({&m, &c, with});
    }
    return false;
  });
  if (!closed || found.size() != 1) return std::nullopt;
  return found.front();
}

// What a lambda or a method reference returns says what the function type's result is.
void Typer::InferFromFunction(const Node* argument, const Type& parameter,
                              const std::vector<std::string>& variables, Substitution& found) {
  const auto function = FunctionOf(parameter);
  if (!function) return;
  // R apply(T t) of Function<? super T, ? extends R>
  const Type result = Given(Substitute(function->method->type, function->with));
  if (!HasVariable(result, variables)) return;
  Type type;
  if (argument->is(K::k_lambda_expression)) {
    const Node* body = argument->at(F::k_body);
    if (body == nullptr || body->is(K::k_block) || Unfinished(body)) return;
    type = TypeOf(body);
  } else {
    const Node* object = argument->first_named();
    const auto kids = argument->kids();
    if (object == nullptr || kids.empty()) return;
    const Node& name = kids.back();
    Value of = Evaluate(object);
    if (!of.type.known() && !object->is(K::k_identifier) && !object->is(K::k_field_access)) {
      of = {.type = world_.TypeFromNode(object, world_.program()), .names_type = true};
    }
    if (!of.type.is(TK::kClass)) return;
    Class* c = world_.Find(of.type.name);
    if (c == nullptr) return;
    if (name.text() == "new") {
      if (c->variables.empty()) type = of.type;
    } else {
      const auto methods = MethodsOf(of.type, name.text());
      if (!methods || methods->empty()) return;
      std::vector<Type> types;
      for (const Candidate& candidate : *methods) {
        if (HasVariable(candidate.method->type, candidate.method->variables)) return;
        types.push_back(Boxed(Substitute(candidate.method->type, candidate.with)));
      }
      type = Either(std::move(types));
      if (type.is(TK::kEither)) return;
    }
  }
  Infer(result, type, variables, found, 0);
}

Type Typer::ResultOf(const Node* call, const Candidate& candidate, const Type& receiver) {
  const Member& method = *candidate.method;
  if (method.name == "getClass" && method.parameters.empty()) {
    Type type = ClassType("java.lang.Class");
    type.args.push_back({.kind = TK::kExtends, .name = {}, .args = {ReadFrom(receiver)}});
    return type;
  }
  Type result = Substitute(method.type, candidate.with);
  if (method.variables.empty() || !HasVariable(result, method.variables)) return ReadFrom(result);
  Substitution found;
  if (const Node* list = call->at(F::k_type_arguments)) {
    size_t i = 0;
    for (const Node& arg : list->kids()) {
      if (!arg.named || arg.is(K::k_comment)) continue;
      if (i < method.variables.size())
        found.emplace_back(method.variables[i], world_.TypeFromNode(&arg, world_.program()));
      ++i;
    }
  } else {
    const std::vector<const Node*> arguments = ArgumentsOf(call);
    for (const bool functions : {false, true}) {
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (Function(arguments[i]) != functions) continue;
        Type parameter = ParameterAt(candidate, i, arguments.size());
        const auto& all = method.parameters;
        if (!parameter.known() && method.varargs && !all.empty() && i + 1 == all.size()) {
          // f(x) for f(T... t): the one argument, or an array.
          const Type type = TypeOf(arguments[i]);
          if (type.is(TK::kArray)) continue;
          parameter =
              all.back().is(TK::kArray) ? Substitute(all.back().args[0], candidate.with) : Type{};
        }
        if (functions) {
          InferFromFunction(arguments[i], Substitute(parameter, found), method.variables, found);
        } else {
          Infer(parameter, TypeOf(arguments[i]), method.variables, found, 0);
        }
      }
    }
  }
  for (const std::string& name : method.variables) {
    if (std::none_of(found.begin(), found.end(), [&](const auto& f) { return f.first == name; }))
      found.emplace_back(name, Type{});
  }
  return ReadFrom(Substitute(result, found));
}

Type Typer::CallResult(const Node* call, std::vector<Candidate> candidates, const Type& receiver) {
  std::vector<Type> types;
  for (const Candidate& candidate : Fitting(call, candidates)) {
    Type type = ResultOf(call, candidate, receiver);
    if (!type.known()) return {};
    types.push_back(std::move(type));
  }
  return Either(std::move(types));
}

Type Typer::CallType(const Node* call) {
  auto candidates = CandidatesOf(call);
  if (!candidates || candidates->empty()) return {};
  const Node* object = call->at(F::k_object);
  return CallResult(call, std::move(*candidates),
                    object == nullptr ? SelfType(call) : Evaluate(object).type);
}

// The function type that a lambda is written for.
Type Typer::TargetOf(const Node* lambda, size_t which) {
  (void)which;
  const Node* parent = lambda->parent;
  while (parent != nullptr && parent->is(K::k_parenthesized_expression)) parent = parent->parent;
  if (parent == nullptr) return {};
  if (parent->is(K::k_variable_declarator) && parent->parent != nullptr &&
      (parent->parent->is(K::k_local_variable_declaration) ||
       parent->parent->is(K::k_field_declaration))) {
    return world_.TypeFromNode(parent->parent->at(F::k_type), world_.program());
  }
  if (parent->is(K::k_assignment_expression)) return TypeOf(parent->at(F::k_left));
  if (parent->is(K::k_cast_expression))
    return world_.TypeFromNode(parent->at(F::k_type), world_.program());
  if (parent->is(K::k_return_statement)) {
    for (const Node* up = parent->parent; up != nullptr; up = up->parent) {
      if (up->is(K::k_lambda_expression)) return {};
      if (up->is(K::k_method_declaration))
        return world_.TypeFromNode(up->at(F::k_type), world_.program());
    }
  }
  return {};
}

std::optional<Type> Typer::LambdaParameter(const Node* lambda, size_t which) {
  const Node* parent = lambda->parent;
  const auto parameter_of = [&](const Type& target) -> Type {
    const auto function = FunctionOf(target);
    if (!function || which >= function->method->parameters.size()) return {};
    return Given(Substitute(function->method->parameters[which], function->with));
  };
  if (parent == nullptr || !parent->is(K::k_argument_list)) {
    return parameter_of(TargetOf(lambda, which));
  }
  const Node* call = parent->parent;
  if (call == nullptr ||
      (!call->is(K::k_method_invocation) && !call->is(K::k_object_creation_expression))) {
    return Type{};
  }
  const auto candidates = CandidatesOf(call);
  if (!candidates) return Type{};
  const std::vector<const Node*> arguments = ArgumentsOf(call);
  const auto place = std::find(arguments.begin(), arguments.end(), lambda);
  if (place == arguments.end()) return Type{};
  const auto at = static_cast<size_t>(place - arguments.begin());
  std::vector<Type> types;
  for (const Candidate& candidate : Fitting(call, *candidates)) {
    Type target = ParameterAt(candidate, at, arguments.size());
    if (!candidate.method->variables.empty()) {
      Substitution found;
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (!Function(arguments[i]) && !Unfinished(arguments[i])) {
          Infer(ParameterAt(candidate, i, arguments.size()), TypeOf(arguments[i]),
                candidate.method->variables, found, 0);
        }
      }
      for (const std::string& name : candidate.method->variables) {
        if (std::none_of(found.begin(), found.end(),
                         [&](const auto& f) { return f.first == name; }))
          found.emplace_back(name, Type{});
      }
      target = Substitute(target, found);
    }
    Type type = parameter_of(target);
    if (!type.known()) return Type{};
    types.push_back(std::move(type));
  }
  return Either(std::move(types));
}

}  // namespace pawl::monitors::java
