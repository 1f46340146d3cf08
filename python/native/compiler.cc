// Compiler and Grammar for Python.
#include "pawl/compiler.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "grammar/languages/option_fields.h"
#include "pawl/combine.h"
#include "python/native/binding.h"

namespace pawl::python {
namespace {

template <typename T>
T OptionValue(nb::handle value, const std::string& name, const char* type) {
  T out{};
  const bool flag = nb::isinstance<nb::bool_>(value) && !std::is_same_v<T, bool>;
  if (flag || !nb::try_cast(value, out)) {
    throw nb::type_error(("the option " + name + " must be " + type).c_str());
  }
  return out;
}

// One option: a choice by its name, a flag, a number or a string.
template <typename Field>
void SetOption(Field& field, nb::handle value, const std::string& name) {
  if constexpr (std::is_enum_v<Field>) {
    const std::optional<Field> choice =
        OptionOf<Field>(OptionValue<std::string>(value, name, "a str"));
    if (choice) {
      field = *choice;
      return;
    }
    std::string list;
    for (const char* known : OptionNames(field))
      list += (list.empty() ? "\"" : ", \"") + std::string(known) + "\"";
    RaiseInvalid("the option " + name + " must be one of " + list);
  } else if constexpr (std::is_same_v<Field, bool>) {
    field = OptionValue<bool>(value, name, "a bool");
  } else if constexpr (std::is_same_v<Field, std::string>) {
    field = OptionValue<std::string>(value, name, "a str");
  } else {
    field = OptionValue<Field>(value, name, "an int");
  }
}

// A Python function that gives the text of another document. Held and called under the lock. An
// Exception of it is an error of the schema. What is none (KeyboardInterrupt, SystemExit) ends the
// compilation, and is raised on from there.
class Resolver {
 public:
  explicit Resolver(nb::handle function)
      : held_(new Held{nb::borrow(function), nullptr}, [](Held* held) {
          nb::gil_scoped_acquire acquire;
          delete held;
        }) {}

  Result<std::string> operator()(std::string_view uri) const {
    nb::gil_scoped_acquire acquire;
    if (held_->raised) return Error{ErrorCode::kIo, "was interrupted", ""};
    try {
      return TextOf(held_->function(nb::str(uri.data(), uri.size())), "a document");
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) held_->raised = std::current_exception();
      return Error{ErrorCode::kIo, std::string(error.what()), ""};
    } catch (const std::exception& error) {
      return Error{ErrorCode::kIo, error.what(), ""};
    }
  }

  // What the function of these options raised that is no Exception.
  static void RaiseOn(const JsonSchemaOptions& options) {
    const auto* const resolver = options.resolve_document.target<Resolver>();
    if (resolver == nullptr || !resolver->held_->raised) return;
    std::rethrow_exception(std::exchange(resolver->held_->raised, nullptr));
  }

 private:
  struct Held {
    nb::object function;
    std::exception_ptr raised;
  };
  std::shared_ptr<Held> held_;
};

JsonSchemaOptions SchemaOptionsOf(const nb::dict& given) {
  JsonSchemaOptions options;
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    bool known = name == "resolve_document";
    if (known && !value.is_none()) options.resolve_document = Resolver(value);
    VisitOptions(options, [&, value = nb::handle(value)](const char* field, auto& slot) {
      if (name != field) return;
      known = true;
      SetOption(slot, value, name);
    });
    if (!known) throw nb::type_error(("there is no option " + name).c_str());
  }
  return options;
}

// Runs `compile` without the interpreter lock. `options`: which it uses.
template <typename F>
Grammar Compile(const F& compile, const JsonSchemaOptions& options = {}) {
  Result<Grammar> grammar = [&] {
    nb::gil_scoped_release release;
    return compile();
  }();
  Resolver::RaiseOn(options);
  return Take(std::move(grammar));
}

// By how many tokens one token can make the shortest completion longer, as far as the grammar's
// specimens show it: the token that opens a large object, or the name of one.
int LongestStep(const Grammar& grammar, size_t limit) {
  constexpr size_t kAtOnce = 3;  // places that one token may go through
  int longest = 0;
  for (const std::string& text : grammar.SampleTexts(limit)) {
    std::optional<State> at = grammar.Start();
    std::vector<int> closings = {at->completion_length()};
    for (const char byte : text) {
      at = at->Advance(std::string_view(&byte, 1));
      if (!at) break;
      if (std::string_view("{[,:\"").find(byte) == std::string_view::npos) continue;
      const int closing = at->completion_length();
      if (closing < 0) continue;
      for (size_t k = 0; k < std::min(kAtOnce, closings.size()); ++k)
        longest = std::max(longest, closing - closings[closings.size() - 1 - k]);
      closings.push_back(closing);
    }
  }
  return longest;
}

std::vector<TokenId> EndTokens(const Grammar& grammar) {
  std::vector<TokenId> ends;
  for (TokenId id = 0; id < grammar.vocabulary().size(); ++id) {
    if (grammar.vocabulary().is_end(id)) ends.push_back(id);
  }
  return ends;
}

}  // namespace

static nb::class_<Grammar> GrammarClass(nb::module_& module) {
  return nb::class_<Grammar>(module, "Grammar")
      .def_prop_ro("unbound", &Grammar::unbound)
      .def(
          "bind",
          [](const Grammar& self, nb::handle text) {
            const std::string of = TextOf(text, "the text");
            return Compile([&] { return self.Bind(of); });
          },
          nb::arg("text"));
}

static Grammar CompileTag(const Compiler& self, nb::handle tag, const nb::dict& options) {
  const std::string text = TextOf(tag, "the structural tag");
  GrammarOptions read;
  read.json_schema = SchemaOptionsOf(options);
  return Compile([&] { return self.CompileStructuralTag(text, read); }, read.json_schema);
}

void BindCompiler(nb::module_& module) {
  module.def("schema_option_names", [] {
    nb::list names;
    JsonSchemaOptions all;
    VisitOptions(all, [&](const char* name, auto&) { names.append(name); });
    names.append("resolve_document");
    return names;
  });
  GrammarClass(module)
      .def_prop_ro("notes", &Grammar::notes)
      .def("record", &Grammar::Record, nb::arg("text"))
      .def_prop_ro("vocabulary_size", [](const Grammar& g) { return g.vocabulary().size(); })
      .def_prop_ro("end_tokens", &EndTokens)
      .def(
          "specimens",
          [](const Grammar& self, size_t limit) {
            const std::vector<std::string> texts = [&] {
              nb::gil_scoped_release release;
              return self.SampleTexts(limit);
            }();
            nb::list out;
            for (const std::string& text : texts) out.append(BytesOf(text));
            return out;
          },
          nb::arg("limit") = 1024)
      .def("longest_step", &LongestStep, nb::arg("limit") = 512,
           nb::call_guard<nb::gil_scoped_release>())
      .def(
          "prepare_masks",
          [](const Grammar& self, const std::vector<TokenId>& tokens) {
            nb::gil_scoped_release release;
            return self.PrepareMasks(tokens);
          },
          nb::arg("tokens"))
      .def(
          "infill",
          [](const Grammar& self, nb::handle prefix, nb::args after) {
            Infilling infilling{TextOf(prefix, "the prefix"), {}};
            for (nb::handle text : after) infilling.after.push_back(TextOf(text, "a text"));
            if (infilling.after.empty()) infilling.after = {""};
            return Compile([&] { return Infill(self, infilling); });
          },
          nb::arg("prefix"), nb::arg("after"))
      .def(
          "require_words",
          [](const Grammar& self, nb::args words) {
            std::vector<std::string> texts;
            for (nb::handle word : words) texts.push_back(TextOf(word, "a word"));
            return Compile([&] { return RequireWords(self, texts); });
          },
          nb::arg("words"))
      .def(
          "__and__",
          [](const Grammar& self, const Grammar& other) {
            return Compile([&] { return Intersect(self, other); });
          },
          nb::arg("other"), nb::is_operator())
      .def("__invert__",
           [](const Grammar& self) { return Compile([&] { return Complement(self); }); });

  nb::class_<Compiler>(module, "Compiler")
      .def(
          "__init__",
          [](Compiler* self, std::shared_ptr<Vocabulary> vocabulary, size_t cached_grammars,
             size_t memory_budget) {
            new (self) Compiler(std::move(vocabulary), {cached_grammars, memory_budget});
          },
          nb::arg("vocabulary"), nb::arg("cached_grammars") = 0,
          nb::arg("memory_budget") = CompilerOptions().memory_budget)
      .def_prop_ro("memory_bytes", &Compiler::memory_bytes,
                   nb::call_guard<nb::gil_scoped_release>())
      .def(
          "json_schema",
          [](const Compiler& self, nb::handle schema, const nb::dict& options) {
            const std::string text = TextOf(schema, "the schema");
            const JsonSchemaOptions read = SchemaOptionsOf(options);
            return Compile([&] { return self.CompileJsonSchema(text, read); }, read);
          },
          nb::arg("schema"), nb::arg("options") = nb::dict())
      .def(
          "regex",
          [](const Compiler& self, nb::handle pattern) {
            const std::string text = TextOf(pattern, "the pattern");
            return Compile([&] { return self.CompileRegex(text); });
          },
          nb::arg("pattern"))
      .def(
          "substring",
          [](const Compiler& self, nb::handle text, bool whole_words) {
            const std::string of = TextOf(text, "the text");
            return Compile([&] { return self.CompileSubstring(of, whole_words); });
          },
          nb::arg("text"), nb::arg("whole_words") = false)
      .def("structural_tag", &CompileTag, nb::arg("tag"), nb::arg("options") = nb::dict())
      .def(
          "choice",
          [](const Compiler& self, nb::iterable choices) {
            std::vector<std::string> texts;
            for (nb::handle choice : choices) texts.push_back(TextOf(choice, "a choice"));
            return Compile([&] { return self.CompileChoice(texts); });
          },
          nb::arg("choices"))
      .def(
          "grammar",
          [](const Compiler& self, nb::handle grammar, const std::string& language,
             const std::string& root, size_t max_bytes, int max_nesting, bool lark_as_xgrammar,
             uint64_t prepare_steps, const nb::dict& options) {
            const std::string text = TextOf(grammar, "the grammar");
            const auto known = GrammarLanguageOf(language);
            if (!known) {
              RaiseInvalid("there is no language \"" + language +
                           "\"; there are \"ebnf\", \"gbnf\", \"lark\" and \"lark_xgrammar\"");
            }
            GrammarOptions read;
            read.root = root;
            read.max_bytes = max_bytes;
            read.max_nesting = max_nesting;
            read.lark_as_xgrammar = lark_as_xgrammar;
            read.prepare_steps = prepare_steps;
            read.json_schema = SchemaOptionsOf(options);
            return Compile([&] { return self.CompileGrammar(text, *known, read); },
                           read.json_schema);
          },
          nb::arg("text"), nb::arg("language"), nb::arg("root") = GrammarOptions{}.root,
          nb::arg("max_bytes") = GrammarOptions{}.max_bytes,
          nb::arg("max_nesting") = GrammarOptions{}.max_nesting,
          nb::arg("lark_as_xgrammar") = false,
          nb::arg("prepare_steps") = GrammarOptions{}.prepare_steps,
          nb::arg("options") = nb::dict());
}

}  // namespace pawl::python
