// `pawl bench draft`: what drafts give, and that they change nothing.
#include "src/cli/measure/bench_draft.h"

#include <fmt/format.h>

#include <memory>

#include "src/cli/command.h"
#include "src/cli/draft_flags.h"
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
  if (flags.equal && flags.verify != "coupled") {
    return Fail(kBenchDraft,
                Error{ErrorCode::kInvalid,
                      "must be coupled with --equal: outputs under other rules have the "
                      "same law, not the same tokens",
                      "--draft-verify"});
  }
  if (flags.equal) return CheckEqual(flags);
  if (!flags.speed_bench.empty() || flags.goodput) return SpeedBench(flags);
  if (flags.replay.empty()) {
    return Fail(kBenchDraft, Error{ErrorCode::kInvalid,
                                   "or --equal, --speed-bench or --goodput is needed", "--replay"});
  }
  if (flags.tokenizer.empty()) {
    return Fail(kBenchDraft, Error{ErrorCode::kInvalid, "is needed with --replay", "--tokenizer"});
  }
  if (flags.suffix > 0 && !flags.shape.empty()) {
    return Fail(kBenchDraft,
                Error{ErrorCode::kInvalid, "cannot be used together with --shape", "--suffix"});
  }
  if (flags.suffix > 0) return SuffixTimes(flags);
  if (flags.tools) return ReplayTools(flags);
  if (flags.memory_curve) return MemoryCurve(flags);
  return flags.shape.empty() ? ReplayCounts(flags) : ReplayTimes(flags);
}

}  // namespace

void AddBenchDraft(CLI::App& bench, Action& action) {
  CLI::App* command =
      bench.add_subcommand("draft", "What drafts give, and that they change no output");
  const auto flags = std::make_shared<BenchDraftFlags>();
  TextOption(command, "--replay", flags->replay, "DIR",
             "Folder with MaskBench files: their valid instances are what a model writes");
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH",
             "tokenizer.json, or a folder with one");
  TextOption(command, "--sources", flags->sources, "NAMES",
             "Sources with commas between them; all: those that need no model")
      ->capture_default_str();
  CountOption(command, "--nodes", flags->nodes, 1, kMostDraftNodes,
              "Most tokens drafted in a step");
  command
      ->add_option("--shape", flags->shape,
                   "Also run a model of random weights of this shape, and time it")
      ->check(CLI::IsMember(ShapeNames()))
      ->type_name("SHAPE");
  ChoiceOption(command, "--dtype", flags->dtype, DtypeNames(), "TYPE",
               "How weights are kept in memory");
  ChoiceOption(command, "--kernels", flags->kernels, KernelNames(), "NAME", "As in generate");
  CountOption(command, "--threads", flags->threads, 0, 1024, "Threads; 0: all cores");
  command->add_flag("--all-nodes", flags->all_nodes,
                    "With --shape: also trees of 1, 2, 4, ..., 32 nodes whatever they cost");
  command->add_flag("--equal", flags->equal,
                    "Compare outputs with drafts and without; exit code 1 where one differs");
  command->add_flag("--tools", flags->tools,
                    "With --replay: only calls of tools; the third of each tool after two others");
  command->add_flag("--memory-curve", flags->memory_curve,
                    "With --replay: accepted drafts by megabytes of --draft-memory");
  TextOption(command, "--speed-bench", flags->speed_bench, "DIR",
             "Accepted lengths by category and time by batch. DIR has .jsonl files with an object\n"
             "of category and prompt on each line, as in bench/texts/speed_bench");
  command->add_flag("--goodput", flags->goodput,
                    "The drafter's choice against fixed numbers of nodes, on these prompts");
  command->add_flag("--always", flags->always,
                    "With --speed-bench: drafts of --nodes nodes whatever they cost");
  CountOption(command, "--rounds", flags->rounds, 1, kMostCount,
              "With --speed-bench or --goodput: interleaved runs, of which the median counts");
  command
      ->add_option("--batches", flags->batches,
                   "Outputs at a time, with commas between the numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N,...");
  TextOption(command, "--draft-verify", flags->verify, "RULE",
             "With --speed-bench: as in generate");
  TextOption(command, "--draft-shape", flags->shape_of_trees, "SHAPE",
             "With --speed-bench or --equal: as in generate");
  TextOption(command, "--model", flags->model, "MODEL",
             "Model folder, GGUF file or name (default: the model that ships)");
  TextOption(command, "--schema", flags->schemas, "FILE...",
             "With --equal: JSON Schemas; else a small one");
  command->add_option("--prompt", flags->prompt, "With --equal: the prompt")->type_name("TEXT");
  command
      ->add_option("--temperatures", flags->temperatures,
                   "With --equal: temperatures with commas between them")
      ->delimiter(',')
      ->check(FiniteNumber(0, 1e6))
      ->type_name("T,...");
  CountOption(command, "--seeds", flags->seeds, 1, kMostCount,
              "With --equal: outputs for each temperature");
  CountOption(command, "--max-tokens", flags->max_tokens, 1, kMostCount,
              "With --equal: budget of an output");
  command->add_flag("--no-filter", flags->no_filter, "Also drafts that the grammar refuses");
  CountOption(command, "--limit", flags->limit, 0, kMostCount,
              "Only N files, spread evenly; 0: all, or with --shape --per-kind texts");
  CountOption(command, "--per-kind", flags->per_kind, 1, kMostCount,
              "With --shape, without --limit: texts that are mostly of each kind");
  command
      ->add_option("--suffix", flags->suffix,
                   "Store N tokens of the files of --replay in a suffix automaton, and measure it")
      ->transform(WholeNumber(1, 100'000'000))
      ->type_name("N");
  TextOption(command, "--draft-text", flags->text_file, "FILE", "A text for the source \"text\"");
  DraftFlags::AddModels(
      command, flags->draft_models, "DIR",
      "With --equal or --speed-bench: folder of a smaller model or of a trained head, for\n"
      "the source \"model\"; at most twice");
  TextOption(command, "--json", flags->json, "OUT", "Write the figures to this file");
  command->footer(
      "Example:\n  pawl bench draft --replay maskbench/data --tokenizer llama3/tokenizer.json");
  command->callback([flags, &action] { action = [flags] { return BenchDraft(*flags); }; });
}

}  // namespace pawl::cli
