// `pawl validate`: feeds JSON texts token by token through the masks of a schema. A text is
// accepted when every one of its tokens is in the mask and the state at its end is accepting:
// exactly the texts a model could have been led to write.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/cli/walk.h"

namespace pawl::cli {
namespace {

constexpr const char* kValidate = "validate";

struct ValidateFlags {
  // Files are written by others: any layout.
  GrammarFlags grammar{LayoutFlags::ForReading()};
  std::string tokenizer;
  std::vector<std::string> files;
  bool captures = false;
};

int Validate(const ValidateFlags& flags) {
  if (Status status = flags.grammar.CheckGiven(); !status.ok())
    return Fail(kValidate, status.error());
  if (std::count(flags.files.begin(), flags.files.end(), "-") +
          static_cast<int>(flags.grammar.schema_file == "-") >
      1) {
    return Fail(kValidate, Error{ErrorCode::kInvalid, "standard input can be read only once", "-"});
  }
  Result<ModelText> text = LoadText(kValidate, flags.tokenizer);
  if (!text.ok()) return Fail(kValidate, text.error());
  Result<Grammar> grammar = flags.grammar.Compile(text->vocabulary);
  if (!grammar.ok()) return Fail(kValidate, grammar.error());
  NoteAnnotations(kValidate, grammar->notes(), flags.grammar.annotations);
  int exit_code = kExitOk;
  Progress progress(kValidate, "validating");
  for (const std::string& file : flags.files) {
    progress.Set("validating " + file);
    Result<std::string> content = ReadInput(file);
    if (!content.ok()) {
      exit_code = std::max(exit_code, Fail(kValidate, content.error()));
      continue;
    }
    Result<std::vector<TokenId>> tokens = SpellText(*text->tokenizer, *text->vocabulary, *content);
    if (!tokens.ok()) {
      exit_code = std::max(exit_code, Fail(kValidate, InFile(file, tokens.error())));
      continue;
    }
    const std::optional<Error> problem = WalkTokens(*grammar, *content, *tokens);
    if (!problem.has_value()) {
      Print(fmt::format("{}: accepted ({} tokens)\n", file, tokens->size()));
      if (flags.captures) {
        std::vector<OutputPiece> pieces;
        for (const TokenId token : *tokens) pieces.push_back({.token = token});
        const auto captures = grammar->FindCaptures(pieces);
        if (!captures.ok()) {
          exit_code = std::max(exit_code, Fail(kValidate, InFile(file, captures.error())));
        } else {
          Print(CapturesJson(*captures) + "\n");
        }
      }
    } else if (problem->code == ErrorCode::kInternal) {
      exit_code = std::max(exit_code, Fail(kValidate, InFile(file, *problem)));
    } else {
      Print(fmt::format("{}: {}\n", file, problem->message));
      exit_code = std::max(exit_code, static_cast<int>(kExitSomeFailed));
    }
  }
  return exit_code;
}

}  // namespace

void AddValidate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      kValidate, "Check texts token by token against the masks of a schema or grammar");
  const auto flags = std::make_shared<ValidateFlags>();
  flags->grammar.AddAllTo(command);
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH", kTokenizerHelp);
  command->add_flag("--captures", flags->captures,
                    "Below each accepted text, a line of JSON: what the grammar's captures hold");
  command->add_option("files", flags->files, "Texts; -: standard input")
      ->required()
      ->type_name("FILE");
  command->footer(
      "Exit codes: 0 all accepted; 1 some refused; 2 bad input or usage.\n"
      "Example:\n  pawl validate --schema schemas/examples/contact.json --tokenizer "
      "models/tiny-extract "
      "record.json");
  command->callback([flags, &action] { action = [flags] { return Validate(*flags); }; });
}

}  // namespace pawl::cli
