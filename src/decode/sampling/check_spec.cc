// Checks as text, KIND:VALUE or KIND@GRANULARITY:VALUE: what `pawl generate --check` takes, and C
// and Python next to functions of their own.
#include "src/decode/sampling/check_spec.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "pawl/compiler.h"
#include "pawl/sampling.h"
#include "src/base/file.h"
#include "src/base/os/processes.h"
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

// Its errors have the place of the critic of a request.
class PlacedCritic : public Critic {
 public:
  explicit PlacedCritic(std::shared_ptr<const Critic> critic) : critic_(std::move(critic)) {}
  Result<double> Score(const CheckQuestion& question) const override {
    Result<double> score = critic_->Score(question);
    if (score.ok()) return score;
    return Error{score.error().code, score.error().ToString(), "critic"};
  }

 private:
  const std::shared_ptr<const Critic> critic_;
};

// ---- Checks of code ----

std::atomic<CheckMaker> code_check_maker = nullptr;
std::mutex check_command_mutex;
std::string check_command;  // empty: to be searched

// By asking the command. The languages are those of src/completion/code_check.h.
Result<std::shared_ptr<const Check>> MakeCodeCheckOfCommand(const std::string& spec,
                                                            const CheckSpecOptions& options) {
  const auto bad = [&](ErrorCode code, std::string message) {
    return Error{code, std::move(message), spec};
  };
  static constexpr std::array kLanguages = {"typescript", "java", "python", "cpp"};
  const size_t colon = spec.find(':');
  if (spec.find('@') < colon) return bad(ErrorCode::kInvalid, "takes no granularity");
  if (std::ranges::find(kLanguages, spec.substr(colon + 1)) == kLanguages.end()) {
    return bad(ErrorCode::kInvalid, "names none of the languages typescript, java, python, cpp");
  }
  std::string command;
  {
    const std::lock_guard lock(check_command_mutex);
    command = check_command;
  }
  if (command.empty()) command = os::FindProgram("pawl");
  if (command.empty()) {
    return bad(ErrorCode::kUnsupported, "needs the command pawl, which is not in PATH");
  }
  ProgramCheckOptions program;
  program.command = {command, "check", spec};
  program.name = spec;
  program.time_limit = options.time_limit;
  program.processes = options.processes;
  program.granularity =
      spec.starts_with("syntax") ? CheckGranularity::kComplete : CheckGranularity::kToken;
  return MakeProgramCheck(program);
}

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
  constexpr const char* kKinds = "regex, schema, grammar, style, syntax, monitor, program, tests";
  const size_t colon = spec.find(':');
  if (colon == std::string::npos) {
    return bad(std::string("is not KIND:VALUE or KIND@GRANULARITY:VALUE, with the kinds ") +
               kKinds);
  }
  if (IsCodeCheck(spec)) {
    const CheckMaker make = code_check_maker;
    return make != nullptr ? make(spec) : MakeCodeCheckOfCommand(spec, options);
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
    ProgramCheckOptions program = ShellProgram(value, options);
    program.name = spec;
    return MakeTestsCheck(program);
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

void OfferCodeChecks(CheckMaker make) { code_check_maker = make; }

void SetCheckCommand(const std::string& path) {
  const std::lock_guard lock(check_command_mutex);
  check_command = path;
}

bool IsCodeCheck(const std::string& spec) {
  const std::string kind = spec.substr(0, spec.find_first_of(":@"));
  return kind == "syntax" || kind == "monitor";
}

std::string PlaceOfCommand(const CheckSpecs& specs) {
  for (size_t i = 0; i < specs.checks.size(); ++i) {
    const std::string kind = specs.checks[i].substr(0, specs.checks[i].find_first_of(":@"));
    if (kind == "regex" || kind == "style" || IsCodeCheck(specs.checks[i])) continue;
    for (const char* const named : {"schema", "grammar", "program", "tests"}) {
      if (kind == named) return "checks/" + std::to_string(i);
    }
  }
  return specs.critic.empty() ? "" : "critic";
}

Status AddChecks(const CheckSpecs& specs, const std::shared_ptr<const Vocabulary>& vocabulary,
                 int processes, std::vector<std::shared_ptr<const Check>>& checks,
                 std::shared_ptr<const Critic>& critic) {
  if (!(specs.timeout >= 0.001 && specs.timeout <= 86400)) {
    return Error{ErrorCode::kInvalid, "must be from 0.001 to 86400 seconds", "check_timeout"};
  }
  const CheckSpecOptions options = {
      .time_limit = std::chrono::milliseconds(static_cast<int64_t>(specs.timeout * 1000)),
      .processes = std::max(1, processes)};
  // The place of an error is part of its message: it names the text, or what stands in it.
  const auto at = [](const Error& error, std::string place) {
    return Error{error.code, error.ToString(), std::move(place)};
  };
  for (size_t i = 0; i < specs.checks.size(); ++i) {
    std::string place = "checks/" + std::to_string(i);
    auto made = MakeCheckOf(specs.checks[i], vocabulary, options);
    if (!made.ok()) return at(made.error(), std::move(place));
    // Also where it fails later.
    const auto judge = [check = *made, place, at](const CheckQuestion& question) {
      Result<Verdict> verdict = check->Judge(question);
      return verdict.ok() ? verdict : Result<Verdict>(at(verdict.error(), place));
    };
    checks.push_back(MakeCheck((*made)->granularity(), judge));
  }
  if (specs.critic.empty()) return {};
  auto made = MakeCriticOf(specs.critic, options);
  if (!made.ok()) return at(made.error(), "critic");
  critic = std::make_shared<PlacedCritic>(*std::move(made));
  return {};
}

Result<std::shared_ptr<const Critic>> MakeCriticOf(const std::string& spec,
                                                   const CheckSpecOptions& options) {
  constexpr std::string_view kTests = "tests:";
  const size_t begin = spec.starts_with(kTests) ? kTests.size() : 0;
  if (spec.find_first_not_of(" \t\n", begin) == std::string::npos) {
    return Error{ErrorCode::kInvalid, "names no program", spec};
  }
  if (!spec.starts_with(kTests)) return MakeProgramCritic(ShellProgram(spec, options));
  ProgramCheckOptions program = ShellProgram(spec.substr(kTests.size()), options);
  program.name = spec;
  return MakeTestsCritic(program);
}

}  // namespace pawl
