// `pawl bench draft`: what drafts give, and that they change nothing.
#include "src/cli/measure/bench_draft.h"

#include <fmt/format.h>

#include <memory>

#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/decode/draft/drafter.h"
#include "src/model/random_weights.h"

namespace pawl::cli {
namespace {

int BenchDraft(const BenchDraftFlags& flags) {
  if (flags.equal && (!flags.replay.empty() || !flags.shape.empty() || flags.suffix > 0)) {
    const char* option = !flags.replay.empty()  ? "--replay"
                         : !flags.shape.empty() ? "--shape"
                                                : "--suffix";
    return Fail(kBenchDraft,
                Error{ErrorCode::kInvalid, "cannot be used together with --equal", option});
  }
  if (flags.equal) return CheckEqual(flags);
  if (flags.replay.empty()) {
    return Fail(kBenchDraft, Error{ErrorCode::kInvalid, "or --equal is needed", "--replay"});
  }
  if (flags.tokenizer.empty()) {
    return Fail(kBenchDraft, Error{ErrorCode::kInvalid, "is needed with --replay", "--tokenizer"});
  }
  if (flags.suffix > 0 && !flags.shape.empty()) {
    return Fail(kBenchDraft,
                Error{ErrorCode::kInvalid, "cannot be used together with --shape", "--suffix"});
  }
  if (flags.suffix > 0) return SuffixTimes(flags);
  return flags.shape.empty() ? ReplayCounts(flags) : ReplayTimes(flags);
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
  command
      ->add_option("--shape", flags->shape,
                   "Also run a model of random weights of this shape, and time it")
      ->check(CLI::IsMember(ShapeNames()))
      ->type_name("SHAPE");
  command->add_option("--dtype", flags->dtype, "How weights are kept in memory")
      ->check(CLI::IsMember(DtypeNames()))
      ->type_name("TYPE")
      ->capture_default_str();
  command->add_option("--kernels", flags->kernels, "As in generate")
      ->check(CLI::IsMember(KernelNames()))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads; 0: all cores")
      ->transform(WholeNumber(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--all-nodes", flags->all_nodes,
                    "With --shape: also trees of 1, 2, 4, ..., 32 nodes whatever they cost");
  command->add_flag("--equal", flags->equal,
                    "Compare outputs with drafts and without; exit code 1 where one differs");
  command
      ->add_option("--model", flags->model,
                   "With --equal: model folder, GGUF file or name (default: the model that ships)")
      ->check(NotEmpty)
      ->type_name("MODEL");
  command->add_option("--schema", flags->schemas, "With --equal: JSON Schemas")
      ->check(NotEmpty)
      ->type_name("FILE...");
  command->add_option("--prompt", flags->prompt, "With --equal: the prompt")->type_name("TEXT");
  command
      ->add_option("--temperatures", flags->temperatures,
                   "With --equal: temperatures with commas between them")
      ->delimiter(',')
      ->check(FiniteNumber(0, 1e6))
      ->type_name("T,...");
  command->add_option("--seeds", flags->seeds, "With --equal: outputs for each temperature")
      ->transform(WholeNumber(1, kMostCount))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--max-tokens", flags->max_tokens, "With --equal: budget of an output")
      ->transform(WholeNumber(1, kMostCount))
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--no-filter", flags->no_filter, "Also drafts that the grammar refuses");
  command
      ->add_option("--limit", flags->limit,
                   "Only N files, spread evenly; 0: all, or with --shape --per-kind texts")
      ->transform(WholeNumber(0, kMostCount))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--per-kind", flags->per_kind,
                   "With --shape, without --limit: texts that are mostly of each kind")
      ->transform(WholeNumber(1, kMostCount))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--suffix", flags->suffix,
                   "Store N tokens of the files of --replay in a suffix automaton, and measure it")
      ->transform(WholeNumber(1, 100'000'000))
      ->type_name("N");
  command->add_option("--draft-text", flags->text_file, "A text for the source \"text\"")
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_option("--draft-model", flags->draft_model,
                   "With --equal: folder of a smaller model, for the source \"model\"")
      ->check(NotEmpty)
      ->type_name("DIR");
  command->add_option("--json", flags->json, "Write the figures to this file")
      ->check(NotEmpty)
      ->type_name("OUT");
  command->footer(
      "Example:\n  pawl bench draft --replay maskbench/data --tokenizer llama3/tokenizer.json");
  command->callback([flags, &action] { action = [flags] { return BenchDraft(*flags); }; });
}

}  // namespace pawl::cli
