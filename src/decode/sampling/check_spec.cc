// Checks as text, KIND:VALUE or KIND@GRANULARITY:VALUE: what `pawl generate --check` takes, and C
// and Python beside functions of their own.
#include "src/decode/sampling/check_spec.h"

#include <string>
#include <utility>

#include "pawl/compiler.h"
#include "pawl/sampling.h"
#include "src/base/file.h"
#include "src/decode/sampling/names.h"

namespace pawl {
namespace {

// As others write JSON, not as models are made to.
JsonSchemaOptions ForReading() {
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kAny;
  options.order = JsonSchemaOptions::Order::kAny;
  options.canonical_spelling = false;
  options.allow_exponents = true;
  options.max_string = 0;
  return options;
}

// No part of a text matches. `grammar`: of texts that end with a match.
class StyleCheck : public Check {
 public:
  StyleCheck(Grammar grammar, std::string style, CheckGranularity granularity)
      : grammar_(std::move(grammar)), style_(std::move(style)), granularity_(granularity) {}
  CheckGranularity granularity() const override { return granularity_; }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    std::optional<State> state = grammar_.Start();
    bool matches = state->accepting();
    for (size_t i = 0; i < question.text.size() && !matches; ++i) {
      state = state->Advance(question.text.substr(i, 1));
      // Bytes that are no text: what stands behind them is looked at by itself.
      if (!state) state = grammar_.Start();
      matches = state->accepting();
    }
    if (!matches) return question.ended ? Verdict::kAccept : Verdict::kLive;
    if (question.why != nullptr) *question.why = "has a part that matches " + style_;
    return Verdict::kDead;
  }

 private:
  const Grammar grammar_;
  const std::string style_;
  const CheckGranularity granularity_;
};

Result<Grammar> CompileFile(const Compiler& compiler, const std::string& kind,
                            const std::string& file) {
  if (kind == "schema") {
    const JsonSchemaOptions options = ForReading();
    const Result<std::string> text = ReadFile(file, static_cast<size_t>(options.max_schema_bytes));
    if (!text.ok()) return text.error();
    Result<Grammar> grammar = compiler.CompileJsonSchema(*text, options);
    if (!grammar.ok()) return InFile(file, grammar.error());
    return grammar;
  }
  const size_t dot = file.rfind('.');
  const auto language = GrammarLanguageOf(dot == std::string::npos ? "" : file.substr(dot + 1));
  if (!language.has_value()) {
    return Error{ErrorCode::kInvalid, "its name does not end in .ebnf, .gbnf or .lark", file};
  }
  GrammarOptions options;
  options.json_schema = ForReading();
  const Result<std::string> text = ReadFile(file, options.max_bytes);
  if (!text.ok()) return text.error();
  Result<Grammar> grammar = compiler.CompileGrammar(*text, *language, options);
  if (!grammar.ok()) return InFile(file, grammar.error());
  return grammar;
}

}  // namespace

ProgramCheckOptions ShellProgram(const std::string& command, const CheckSpecOptions& options) {
  ProgramCheckOptions program;
  program.command = {"/bin/sh", "-c", command};
  program.name = command;
  program.time_limit = options.time_limit;
  program.processes = options.processes;
  return program;
}

Result<std::shared_ptr<const Check>> MakeCheckOf(
    const std::string& spec, const std::shared_ptr<const Vocabulary>& vocabulary,
    const CheckSpecOptions& options) {
  const auto bad = [&](std::string message) {
    return Error{ErrorCode::kInvalid, std::move(message), spec};
  };
  constexpr const char* kKinds = "regex, schema, grammar, style, program, tests";
  const size_t colon = spec.find(':');
  if (colon == std::string::npos) {
    return bad(std::string("is not KIND:VALUE or KIND@GRANULARITY:VALUE, with the kinds ") +
               kKinds);
  }
  std::string kind = spec.substr(0, colon);
  const std::string value = spec.substr(colon + 1);
  std::optional<CheckGranularity> granularity;
  if (const size_t at = kind.find('@'); at != std::string::npos) {
    granularity = OptionOf<CheckGranularity>(kind.substr(at + 1));
    if (!granularity.has_value()) {
      return bad("has another granularity than " + NamesOf<CheckGranularity>());
    }
    kind.resize(at);
  }
  if (kind == "program") {
    if (value.find_first_not_of(" \t\n") == std::string::npos) return bad("names no program");
    ProgramCheckOptions program = ShellProgram(value, options);
    program.granularity = granularity.value_or(CheckGranularity::kToken);
    program.name = spec;
    Result<std::shared_ptr<const Check>> check = MakeProgramCheck(program);
    if (!check.ok()) return InFile(spec, check.error());
    return check;
  }
  if (kind == "tests") {
    if (value.find_first_not_of(" \t\n") == std::string::npos) return bad("names no program");
    if (granularity.value_or(CheckGranularity::kComplete) != CheckGranularity::kComplete) {
      return bad("has another granularity than complete");
    }
    return MakeTestsCheck(ShellProgram(value, options));
  }
  if (kind != "regex" && kind != "schema" && kind != "grammar" && kind != "style") {
    return bad(std::string("has another kind than ") + kKinds);
  }
  const Compiler compiler(vocabulary);
  if (kind == "style") {
    // What is wrong with the value, at its own bytes.
    const Result<Grammar> style = compiler.CompileRegex(value);
    if (!style.ok()) return InFile(spec, style.error());
    if (style->Start().accepting()) {
      return bad(value.empty() ? "needs a regex"
                               : "matches the empty text, so it would refuse every output");
    }
  }
  const Result<Grammar> grammar = kind == "style"
                                      ? compiler.CompileRegex("[\\s\\S]*(" + value + ")")
                                  : kind == "regex" ? compiler.CompileRegex(value)
                                                    : CompileFile(compiler, kind, value);
  if (!grammar.ok()) return InFile(spec, grammar.error());
  if (kind == "style") {
    return std::shared_ptr<const Check>(std::make_shared<StyleCheck>(
        *grammar, value, granularity.value_or(CheckGranularity::kByte)));
  }
  return MakeGrammarCheck(*grammar, granularity.value_or(CheckGranularity::kByte));
}

Result<std::shared_ptr<const Critic>> MakeCriticOf(const std::string& spec,
                                                   const CheckSpecOptions& options) {
  constexpr std::string_view kTests = "tests:";
  if (!spec.starts_with(kTests)) return MakeProgramCritic(ShellProgram(spec, options));
  return MakeTestsCritic(ShellProgram(spec.substr(kTests.size()), options));
}

}  // namespace pawl
