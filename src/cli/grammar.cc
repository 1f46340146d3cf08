// `pawl grammar`: reads a grammar file and prints it, checks it, or converts it to another
// language.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "grammar/cfg/program.h"
#include "grammar/languages/ebnf.h"
#include "grammar/languages/lark.h"
#include "grammar/languages/print.h"
#include "pawl/compiler.h"
#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/options.h"

namespace pawl::cli {
namespace {

constexpr const char* kGrammar = "grammar";

using GrammarReader = Result<GrammarIr> (*)(std::string_view, const LanguageOptions&);

struct GrammarSource {
  GrammarLanguage language;
  GrammarReader read;
};

// By name, and by extension with a dot before it.
const std::map<std::string, GrammarSource, std::less<>>& Languages() {
  static const std::map<std::string, GrammarSource, std::less<>> languages = {
      {"ebnf", {GrammarLanguage::kEbnf, &ReadEbnf}},
      {"gbnf", {GrammarLanguage::kGbnf, &ReadGbnf}},
      {"lark", {GrammarLanguage::kLark, &ReadLark}},
      {"lark_xgrammar", {GrammarLanguage::kLarkXgrammar, &ReadLark}},
  };
  return languages;
}

struct GrammarCommandFlags {
  std::string file;
  std::string language;
  std::string to;
  std::optional<std::string> root;
  bool check = false;
};

int RunGrammar(const GrammarCommandFlags& flags) {
  const std::string extension = std::filesystem::path(flags.file).extension().string();
  const auto source = Languages().find(
      !flags.language.empty() ? flags.language : extension.substr(extension.empty() ? 0 : 1));
  if (source == Languages().end()) {
    return Fail(kGrammar,
                Error{ErrorCode::kInvalid,
                      "the file's name does not tell its language; give --language", flags.file});
  }
  const Result<std::string> text = ReadInput(flags.file);
  if (!text.ok()) return Fail(kGrammar, text.error());
  LanguageOptions options;
  options.lark_as_xgrammar = source->second.language == GrammarLanguage::kLarkXgrammar;
  if (flags.root &&
      (options.lark_as_xgrammar || source->second.language == GrammarLanguage::kLark)) {
    return Fail(kGrammar,
                Error{ErrorCode::kInvalid,
                      "is for EBNF and GBNF; the root of a Lark grammar is \"start\"", "--root"});
  }
  options.root = flags.root.value_or(options.root);
  // A schema inside is checked and printed as it stands; nothing runs it here.
  options.json_schema = [](std::string_view schema) -> Result<GrammarIr::Automaton> {
    const auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
    if (!vocabulary.ok()) return vocabulary.error();
    if (auto checked = Compiler(*vocabulary).CompileJsonSchema(schema); !checked.ok())
      return checked.error();
    return GrammarIr::Automaton{nullptr, "%json " + std::string(schema)};
  };
  Result<GrammarIr> ir = source->second.read(*text, options);
  if (!ir.ok()) return Fail(kGrammar, InFile(flags.file, ir.error()));
  if (flags.check) {
    if (Status status = CheckCfg(*ir); !status.ok())
      return Fail(kGrammar, InFile(flags.file, status.error()));
    Print(fmt::format("{}: {} rule{}, no errors\n", flags.file, ir->rule_count(),
                      ir->rule_count() == 1 ? "" : "s"));
    return kExitOk;
  }
  const auto target = flags.to.empty() ? source : Languages().find(flags.to);
  const Result<std::string> printed = PrintGrammar(*ir, target->second.language);
  if (!printed.ok()) return Fail(kGrammar, InFile(flags.file, printed.error()));
  Print(*printed);
  return kExitOk;
}

}  // namespace

void AddGrammar(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kGrammar, "Print, check or convert a grammar (EBNF, GBNF, Lark)");
  const auto flags = std::make_shared<GrammarCommandFlags>();
  command->add_option("file", flags->file, "Grammar; -: standard input")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--language", flags->language,
                   "What the file is written in; default: its extension")
      ->check(CLI::IsMember({"ebnf", "gbnf", "lark", "lark_xgrammar"}))
      ->type_name("ebnf|gbnf|lark|lark_xgrammar");
  command->add_option("--to", flags->to, "What to print it in; default: as it was read")
      ->check(CLI::IsMember({"ebnf", "gbnf", "lark"}))
      ->type_name("ebnf|gbnf|lark");
  TextOption(command, "--root", flags->root, "NAME",
             "The rule that the whole text is (EBNF and GBNF)");
  command->add_flag("--check", flags->check, "Only report errors");
  command->footer(
      "Exit codes: 0 fine; 2 bad input or usage, or a grammar that the other language cannot say.\n"
      "Example:\n  pawl grammar grammar/examples/sql.ebnf --to gbnf");
  command->callback([flags, &action] { action = [flags] { return RunGrammar(*flags); }; });
}

}  // namespace pawl::cli
