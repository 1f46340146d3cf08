// `pawl bench draft`: what drafts give, and that they change nothing.
#include "src/cli/bench_draft.h"

#include <fmt/format.h>

#include <memory>

#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/decode/draft/drafter.h"

namespace pawl::cli {
namespace {

int BenchDraft(const BenchDraftFlags& flags) {
  if (flags.replay.empty()) {
    return Fail(kBenchDraft, Error{ErrorCode::kInvalid, "is needed", "--replay"});
  }
  if (flags.tokenizer.empty()) {
    return Fail(kBenchDraft, Error{ErrorCode::kInvalid, "is needed with --replay", "--tokenizer"});
  }
  return ReplayCounts(flags);
}

}  // namespace

void AddBenchDraft(CLI::App& bench, Action& action) {
  CLI::App* command =
      bench.add_subcommand("draft", "What drafts give, and that they change no output");
  const auto flags = std::make_shared<BenchDraftFlags>();
  command
      ->add_option("--replay", flags->replay,
                   "Folder with MaskBench files: their valid instances are what a model writes")
      ->check(NotEmpty)
      ->type_name("DIR");
  command->add_option("--tokenizer", flags->tokenizer, "tokenizer.json, or a folder with one")
      ->check(NotEmpty)
      ->type_name("PATH");
  command
      ->add_option("--sources", flags->sources,
                   "Sources with commas between them; all: those that need no model")
      ->check(NotEmpty)
      ->capture_default_str()
      ->type_name("NAMES");
  command->add_option("--nodes", flags->nodes, "Most tokens drafted in a step")
      ->transform(WholeNumber(1, kMostDraftNodes))
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--no-filter", flags->no_filter, "Also drafts that the grammar refuses");
  command->add_option("--limit", flags->limit, "Only N files, spread evenly; 0: all")
      ->transform(WholeNumber(0, kMostCount))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--draft-text", flags->text_file, "A text for the source \"text\"")
      ->check(NotEmpty)
      ->type_name("FILE");
  command->add_option("--json", flags->json, "Write the figures to this file")
      ->check(NotEmpty)
      ->type_name("OUT");
  command->footer(
      "Example:\n  pawl bench draft --replay maskbench/data --tokenizer llama3/tokenizer.json");
  command->callback([flags, &action] { action = [flags] { return BenchDraft(*flags); }; });
}

}  // namespace pawl::cli
