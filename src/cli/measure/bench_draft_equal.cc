// `pawl bench draft --equal`: whether outputs with drafts are those without, for a user's own model
// and schemas.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/cli/command.h"
#include "src/cli/draft_flags.h"
#include "src/cli/engine.h"
#include "src/cli/measure/bench_draft.h"
#include "src/cli/options.h"
#include "src/decode/batch.h"
#include "src/engine/prompt.h"

namespace pawl::cli {
namespace {

// Without --schema: text, a choice and numbers.
constexpr const char* kSchemaName = "default schema";
constexpr const char* kSchema = R"({"type": "object", "properties": {
  "name": {"type": "string", "maxLength": 12}, "kind": {"enum": ["small", "medium", "large"]},
  "items": {"type": "array", "maxItems": 3,
            "items": {"type": "integer", "minimum": 0, "maximum": 99}}},
  "required": ["name", "kind", "items"], "additionalProperties": false})";

// The outputs for the seeds 0, 1, ..., or their errors.
std::vector<std::string> Outputs(Model& model, const ModelText& text,
                                 const std::vector<TokenId>& prompt, const Grammar& grammar,
                                 const BenchDraftFlags& flags, float temperature, int batch,
                                 std::shared_ptr<Drafter> drafter, BatchStats& stats) {
  BatchOptions options;
  options.max_batch = batch;
  options.drafter = std::move(drafter);
  BatchEngine engine(model, text.vocabulary, text.encoder(), options);
  std::vector<std::string> outputs(static_cast<size_t>(flags.seeds));
  for (size_t seed = 0; seed < outputs.size(); ++seed) {
    BatchRequest request;
    request.prompt = prompt;
    request.constraint = MakeConstraint(grammar);
    request.options.sampling.temperature = temperature;
    request.options.sampling.seed = seed;
    request.options.max_tokens = flags.max_tokens;
    request.done = [&outputs, seed](Result<Generation> output) {
      outputs[seed] = output.ok() ? output->text : "error: " + output.error().ToString();
    };
    engine.Add(std::move(request));
  }
  while (engine.Step()) {
  }
  stats.steps += engine.stats().steps;
  stats.drafts += engine.stats().drafts;
  stats.accepted += engine.stats().accepted;
  return outputs;
}

}  // namespace

int CheckEqual(const BenchDraftFlags& flags) {
  Result<std::string> folder = FindModelFolder(flags.model);
  if (!folder.ok()) return Fail(kBenchDraft, folder.error());
  Result<std::unique_ptr<LoadedModel>> model = OpenModel(kBenchDraft, *folder);
  if (!model.ok()) return Fail(kBenchDraft, model.error());
  const Compiler compiler((*model)->vocabulary());
  LayoutFlags layout = LayoutFlags::ForWriting();
  std::vector<std::string> names = flags.schemas;
  if (names.empty()) names.emplace_back(kSchemaName);
  std::vector<Grammar> grammars;
  for (const std::string& name : names) {
    const Result<std::string> schema =
        flags.schemas.empty() ? Result<std::string>(kSchema) : ReadInput(name);
    if (!schema.ok()) return Fail(kBenchDraft, schema.error());
    Result<Grammar> grammar = compiler.CompileJsonSchema(*schema, layout.ToOptions());
    if (!grammar.ok()) return Fail(kBenchDraft, InFile(name, grammar.error()));
    grammars.push_back(*std::move(grammar));
  }
  if (Status status = LoadWeights(kBenchDraft, **model, flags.threads, flags.dtype); !status.ok()) {
    return Fail(kBenchDraft, status.error());
  }
  const std::string given = flags.prompt.empty() ? "Write a record: " : flags.prompt;
  const Result<std::vector<TokenId>> prompt = (*model)->EncodePlain(given, false);
  if (!prompt.ok()) return Fail(kBenchDraft, InFile("--prompt", prompt.error()));
  DraftFlags drafts;
  drafts.options.sources = flags.sources;
  drafts.options.nodes = flags.nodes;
  drafts.options.filter = !flags.no_filter;
  drafts.options.text_file = flags.text_file;
  drafts.options.more_models = flags.draft_models;
  drafts.options.shape = flags.shape_of_trees;
  if (Status status = drafts.Check(); !status.ok()) {
    return Fail(kBenchDraft, AtSources(status.error()));
  }
  drafts.options.always = true;
  int64_t compared = 0;
  BatchStats plain, drafted;
  for (size_t i = 0; i < grammars.size(); ++i) {
    for (const float temperature : flags.temperatures) {
      const std::vector<std::string> expected =
          Outputs((*model)->model(), (*model)->text(), *prompt, grammars[i], flags, temperature, 1,
                  nullptr, plain);
      for (const int batch : flags.batches) {
        Result<std::shared_ptr<Drafter>> drafter = drafts.Make(**model);
        if (!drafter.ok()) return Fail(kBenchDraft, AtSources(drafter.error()));
        const std::vector<std::string> outputs =
            Outputs((*model)->model(), (*model)->text(), *prompt, grammars[i], flags, temperature,
                    batch, *drafter, drafted);
        for (size_t seed = 0; seed < outputs.size(); ++seed, ++compared) {
          if (outputs[seed] == expected[seed]) continue;
          Print(fmt::format(
              "{}: temperature {}, seed {}, batch {}: differs\n  off: {}\n  on:  {}\n", names[i],
              temperature, seed, batch, Readable(expected[seed]), Readable(outputs[seed])));
          return kExitSomeFailed;
        }
      }
    }
  }
  Print(fmt::format("{} outputs with drafts are those without; {} of {} drafts came\n", compared,
                    drafted.accepted, drafted.drafts));
  return kExitOk;
}

}  // namespace pawl::cli
