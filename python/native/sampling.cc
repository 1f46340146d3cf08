// Samplers for Python: a model, checks that may be Python functions, weighted outputs. What is
// convenient rather than necessary is in python/pawl/sampling.py.
//
// A run goes on without the interpreter lock. Checks and critics come from several threads; each
// takes the lock for as long as its Python function runs. The first exception in one ends the run
// and is raised again by the call that started it.
#include "pawl/sampling.h"

#include <cmath>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "pawl/engine.h"
#include "python/native/bound_engine.h"
#include "src/base/utf8.h"
#include "src/decode/sampling/check_spec.h"
#include "src/decode/sampling/names.h"
#include "src/engine/option_names.h"
#include "src/engine/search_json.h"

namespace pawl::python {
namespace {

// A Python object that any thread may drop.
std::shared_ptr<nb::object> Keep(nb::handle value) {
  return {new nb::object(nb::borrow(value)), [](nb::object* held) {
            nb::gil_scoped_acquire acquire;
            delete held;
          }};
}

// The first exception of Python functions that a run calls.
class FirstRaised {
 public:
  Error Take(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    return Error{ErrorCode::kInvalid, "a Python function raised an exception", ""};
  }
  bool any() const {
    const std::lock_guard lock(mutex_);
    return error_ != nullptr;
  }
  // Raises it, if there is one, and forgets it.
  void Rethrow() {
    const std::exception_ptr error = std::exchange(error_, nullptr);
    if (error) std::rethrow_exception(error);
  }
  void Forget() { error_ = nullptr; }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// As programs see it: a character that is cut at the end is left out, broken ones are U+FFFD.
nb::object TextFor(std::string_view text) {
  text = text.substr(0, CompleteUtf8Prefix(text));
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::object>(made);
}

nb::object Call(const nb::object& function, const CheckQuestion& question) {
  nb::list tokens;
  for (const TokenId token : question.tokens) tokens.append(token);
  return function(TextFor(question.text), tokens, question.ended);
}

Verdict VerdictOf(nb::handle answer) {
  if (PyBool_Check(answer.ptr())) {
    return answer.ptr() == Py_True ? Verdict::kAccept : Verdict::kDead;
  }
  std::string name;
  if (nb::try_cast(answer, name)) {
    if (const auto verdict = OptionOf<Verdict>(name)) return *verdict;
  }
  const std::string got = nb::cast<std::string>(nb::repr(answer));
  throw nb::value_error(
      ("a check answers " + NamesOf<Verdict>() + ", or a bool, not " + got).c_str());
}

class FunctionCheck : public Check {
 public:
  FunctionCheck(nb::handle function, CheckGranularity granularity)
      : function_(Keep(function)), granularity_(granularity) {}
  CheckGranularity granularity() const override { return granularity_; }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    nb::gil_scoped_acquire acquire;
    if (raised->any()) return Error{ErrorCode::kInvalid, "a Python function failed before", ""};
    try {
      return VerdictOf(Call(*function_, question));
    } catch (...) {
      return raised->Take(std::current_exception());
    }
  }

  std::shared_ptr<FirstRaised> raised = std::make_shared<FirstRaised>();

 private:
  std::shared_ptr<nb::object> function_;
  CheckGranularity granularity_;
};

class FunctionCritic : public Critic {
 public:
  FunctionCritic(nb::handle function, FirstRaised& raised)
      : function_(Keep(function)), raised_(raised) {}
  Result<double> Score(const CheckQuestion& question) const override {
    nb::gil_scoped_acquire acquire;
    try {
      const auto score = nb::cast<double>(Call(*function_, question));
      if (std::isnan(score)) throw nb::value_error("a score is a number, not nan");
      return score;
    } catch (...) {
      return raised_.Take(std::current_exception());
    }
  }

 private:
  std::shared_ptr<nb::object> function_;
  FirstRaised& raised_;
};

// What Python holds of a check. The same object in two calls is the same check to an engine.
struct HeldCheck {
  std::shared_ptr<const Check> check;
  std::shared_ptr<FirstRaised> raised;  // of a Python function; else nullptr
};

template <typename Choice>
Choice RequiredOption(const std::string& name, const char* place) {
  Choice choice{};
  const Status status = SetByName(name, place, choice);
  if (!status.ok()) Raise(status.error());
  return choice;
}

CheckSpecOptions Programs(double timeout, int processes) {
  if (!(timeout >= 0.001 && timeout <= 86400)) {
    Raise({ErrorCode::kInvalid, "must be from 0.001 to 86400 seconds", "check_timeout"});
  }
  return {.time_limit = std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000)),
          .processes = std::max(1, processes)};
}

template <typename T>
T Value(nb::handle value, const std::string& name) {
  T out{};
  if (!nb::try_cast(value, out)) {
    throw nb::type_error(("the option " + name + " is of another type or out of range").c_str());
  }
  return out;
}

SamplerOptions OptionsOf(const nb::dict& given) {
  SamplerOptions o;
  for (auto [key, handle] : given) {
    const auto name = nb::cast<std::string>(key);
    const nb::handle value = handle;
    const auto text = [&] { return Value<std::string>(value, name); };
    const auto number = [&](int& field) { field = Value<int>(value, name); };
    if (name == "sampler") {
      o.sampler = RequiredOption<SamplerKind>(text(), "sampler");
    } else if (name == "fidelity") {
      o.fidelity = RequiredOption<Fidelity>(text(), "fidelity");
    } else if (name == "estimator") {
      o.estimator = RequiredOption<Estimator>(text(), "estimator");
    } else if (name == "resampling") {
      o.resampling = RequiredOption<Resampling>(text(), "resampling");
    } else if (name == "n") {
      number(o.n);
    } else if (name == "particles") {
      number(o.particles);
    } else if (name == "max_tokens") {
      number(o.max_tokens);
    } else if (name == "max_rejects") {
      number(o.max_rejects);
    } else if (name == "accepts") {
      number(o.accepts);
    } else if (name == "attempts") {
      number(o.attempts);
    } else if (name == "lookahead") {
      number(o.lookahead);
    } else if (name == "batch") {
      number(o.batch);
    } else if (name == "temperature") {
      o.temperature = Value<double>(value, name);
    } else if (name == "seconds") {
      o.seconds = Value<double>(value, name);
    } else if (name == "ess_threshold") {
      o.ess_threshold = Value<double>(value, name);
    } else if (name == "seed") {
      o.seed = Value<uint64_t>(value, name);
    } else {
      throw nb::type_error(("there is no option " + name).c_str());
    }
  }
  return o;
}

// Whether no signal has come, such as that of Ctrl-C. Its exception is `raised`.
bool NoSignal(FirstRaised& raised) {
  nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() == 0) return true;
  try {
    throw nb::python_error();
  } catch (...) {
    raised.Take(std::current_exception());
  }
  return false;
}

nb::tuple OutputOf(const WeightedOutput& out, const std::optional<Fidelity>& asked) {
  return nb::make_tuple(BytesOf(out.text), out.tokens, out.log_weight, out.log_probability,
                        ReportJson(out.report, asked));
}

// What a run calls of Python: the checks, and what they raised.
class Called {
 public:
  explicit Called(const std::vector<HeldCheck*>& checks) : checks_(checks) {
    for (const HeldCheck* held : checks_) {
      if (held->raised != nullptr) held->raised->Forget();
    }
  }
  std::vector<std::shared_ptr<const Check>> checks() const {
    std::vector<std::shared_ptr<const Check>> made;
    for (const HeldCheck* held : checks_) made.push_back(held->check);
    return made;
  }
  // nullptr for None.
  std::shared_ptr<const Critic> CriticOf(const BoundEngine& self, nb::handle critic) {
    if (PyCallable_Check(critic.ptr()) != 0) {
      return std::make_shared<FunctionCritic>(critic, raised);
    }
    if (critic.is_none()) return nullptr;
    return Take(MakeCriticOf(TextOf(critic, "the critic"),
                             Programs(5, InfoOf(self.engine->model()).threads)));
  }
  void Rethrow() {
    raised.Rethrow();
    for (const HeldCheck* held : checks_) {
      if (held->raised != nullptr) held->raised->Rethrow();
    }
  }

  FirstRaised raised;

 private:
  const std::vector<HeldCheck*>& checks_;
};

nb::tuple Sample(const BoundEngine& self, const nb::tuple& prompt,
                 const std::optional<Grammar>& grammar, const nb::dict& given,
                 const std::vector<HeldCheck*>& checks, nb::handle critic,
                 const BoundEngine* proposal, nb::handle on_output) {
  EngineRequest request = RequestOf(prompt);
  request.grammar = grammar;
  SamplerOptions options = OptionsOf(given);
  const std::optional<Fidelity> fidelity = options.fidelity;
  Called called(checks);
  FirstRaised& raised = called.raised;
  options.checks = called.checks();
  options.critic = called.CriticOf(self, critic);
  if (!on_output.is_none()) {
    options.on_output = [&](const WeightedOutput& out) {
      nb::gil_scoped_acquire acquire;
      try {
        return on_output(OutputOf(out, fidelity)).ptr() != Py_False;
      } catch (...) {
        raised.Take(std::current_exception());
        return false;
      }
    };
  }
  auto result = [&] {
    nb::gil_scoped_release release;
    return self.engine->Sample(request, std::move(options),
                               proposal != nullptr ? proposal->engine : nullptr,
                               [&] { return NoSignal(raised); });
  }();
  called.Rethrow();
  nb::list outputs;
  const SamplerResult done = Take(std::move(result));
  for (const WeightedOutput& out : done.outputs) outputs.append(OutputOf(out, fidelity));
  return nb::make_tuple(outputs, done.effective_size, done.timed_out);
}

// Options and answers are JSON.
// Options come as keywords, so their places are names.
template <typename Parsed>
Parsed Keywords(Result<Parsed> parsed) {
  if (parsed.ok()) return *std::move(parsed);
  Error error = parsed.error();
  if (error.place.starts_with("#/")) error.place.erase(0, 2);
  Raise(error);
}

std::string Search(const BoundEngine& self, const nb::tuple& prompt,
                   const std::optional<Grammar>& grammar, const std::string& given,
                   const std::vector<HeldCheck*>& checks, nb::handle critic) {
  EngineRequest request = RequestOf(prompt);
  request.grammar = grammar;
  SearchOptions options = Keywords(ParseSearchOptions(given));
  Called called(checks);
  options.checks = called.checks();
  options.critic = called.CriticOf(self, critic);
  auto result = [&] {
    nb::gil_scoped_release release;
    return self.engine->Search(request, std::move(options),
                               [&] { return NoSignal(called.raised); });
  }();
  called.Rethrow();
  if (result.ok()) return SearchJson(*result);
  Error error = result.error();
  if (const std::string member = SearchMemberOf(error.place); !member.empty()) error.place = member;
  Raise(error);
}

std::string Classify(const BoundEngine& self, const nb::tuple& prompt, const std::string& given) {
  const EngineRequest request = RequestOf(prompt);
  ClassifyOptions options = Keywords(ParseClassifyOptions(given));
  FirstRaised raised;
  auto result = [&] {
    nb::gil_scoped_release release;
    return self.engine->Classify(request, std::move(options), [&] { return NoSignal(raised); });
  }();
  raised.Rethrow();
  return ClassifyJson(Take(std::move(result)));
}

std::vector<double> Score(const BoundEngine& self, const nb::tuple& prompt,
                          const std::vector<TokenId>& tokens, double temperature) {
  const EngineRequest request = RequestOf(prompt);
  FirstRaised raised;
  auto scores = [&] {
    nb::gil_scoped_release release;
    return self.engine->Score(request, tokens, temperature, [&] { return NoSignal(raised); });
  }();
  raised.Rethrow();
  return Take(std::move(scores));
}

}  // namespace

void BindSampling(nb::module_& module) {
  nb::class_<HeldCheck>(module, "Check")
      .def_static(
          "from_function",
          [](nb::handle function, const std::string& granularity) {
            if (PyCallable_Check(function.ptr()) == 0) throw nb::type_error("is no function");
            const auto check = std::make_shared<FunctionCheck>(
                function, RequiredOption<CheckGranularity>(granularity, "granularity"));
            return HeldCheck{check, check->raised};
          },
          nb::arg("function"), nb::arg("granularity"))
      .def_static(
          "from_grammar",
          [](const Grammar& grammar, const std::string& granularity) {
            const auto when = RequiredOption<CheckGranularity>(granularity, "granularity");
            return HeldCheck{MakeGrammarCheck(grammar, when), nullptr};
          },
          nb::arg("grammar"), nb::arg("granularity"))
      .def_prop_ro("granularity",
                   [](const HeldCheck& held) { return NameOf(held.check->granularity()); });

  module.def("set_check_command", &SetCheckCommand, nb::arg("path"));

  // One engine generates, samples and scores; the other name is for those that know it.
  const auto engine = nb::borrow<nb::class_<BoundEngine>>(module.attr("Engine"));
  module.attr("SamplingEngine") = engine;
  nb::class_<BoundEngine>(engine)
      .def(
          "check_of",
          [](const BoundEngine& self, const std::string& spec, double timeout) {
            const LoadedModel& model = self.engine->model();
            const CheckSpecOptions programs = Programs(timeout, InfoOf(model).threads);
            auto check = [&] {
              nb::gil_scoped_release release;
              return MakeCheckOf(spec, model.vocabulary(), programs);
            }();
            return HeldCheck{Take(std::move(check)), nullptr};
          },
          nb::arg("spec"), nb::arg("timeout"))
      .def("sample", &Sample, nb::arg("prompt"), nb::arg("grammar").none(), nb::arg("options"),
           nb::arg("checks"), nb::arg("critic").none(), nb::arg("proposal").none(),
           nb::arg("on_output").none())
      .def("search", &Search, nb::arg("prompt"), nb::arg("grammar").none(), nb::arg("options"),
           nb::arg("checks"), nb::arg("critic").none())
      .def("classify", &Classify, nb::arg("prompt"), nb::arg("options"))
      .def("score", &Score, nb::arg("prompt"), nb::arg("tokens"), nb::arg("temperature"));
}

}  // namespace pawl::python
