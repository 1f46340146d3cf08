// Checks as text, KIND:VALUE or KIND@GRANULARITY:VALUE: what `pawl generate --check` takes, and C
// and Python beside functions of their own.
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
  constexpr const char* kKinds = "regex, schema, grammar, program";
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
    Result<std::shared_ptr<const Check>> check = MakeProgramCheck(program);
    if (!check.ok()) return InFile(spec, check.error());
    return check;
  }
  if (kind != "regex" && kind != "schema" && kind != "grammar") {
    return bad(std::string("has another kind than ") + kKinds);
  }
  const Compiler compiler(vocabulary);
  const Result<Grammar> grammar =
      kind == "regex" ? compiler.CompileRegex(value) : CompileFile(compiler, kind, value);
  if (!grammar.ok()) return InFile(spec, grammar.error());
  return MakeGrammarCheck(*grammar, granularity.value_or(CheckGranularity::kByte));
}

}  // namespace pawl
