// The help lists the registry of sources, so a new one appears by itself. What belongs to a source
// that was not asked for is refused instead of ignored.
#include "src/cli/draft_flags.h"

#include <string>
#include <utility>

#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/engine/engine_parts.h"

namespace pawl::cli {
namespace {

Error AtDraft(Error error) {
  if (error.place == "draft") error.place = "--draft";
  if (error.place == "draft_model") error.place = "--draft-model";
  if (error.place == "draft_lossy") error.place = "--draft-lossy";
  if (error.place == "draft_memory") error.place = "--draft-memory";
  if (error.place == "draft_verify") error.place = "--draft-verify";
  if (error.place == "draft_shape") error.place = "--draft-shape";
  return error;
}

// What can be said of one value alone, so that the place that it comes from is named: the command
// line, a variable, a configuration.
std::string WrongSources(const std::string& given) {
  DraftOptions options;
  options.sources = given;
  options.text_file = options.model = "any";
  const auto parsed = ParseDraftSources(options);
  return parsed.ok() ? "" : parsed.error().message;
}
std::string WrongRule(const std::string& given) {
  DraftOptions options;
  options.verify = given;
  const auto parsed = ParseDraftRules(options);
  return parsed.ok() ? "" : parsed.error().message;
}
std::string WrongShape(const std::string& given) {
  DraftOptions options;
  options.shape = given;
  const auto parsed = ParseDraftRules(options);
  return parsed.ok() ? "" : parsed.error().message;
}

}  // namespace

void DraftFlags::AddModels(CLI::App* command, std::vector<std::string>& models, const char* type,
                           const std::string& help) {
  TextOption(command, "--draft-model", models, type, help)->take_all()->allow_extra_args(false);
}

void DraftFlags::AddTo(CLI::App* command) {
  std::string help = "Guess tokens ahead and verify several in a call, with the same output:";
  help += "\noff, auto, or sources with commas between them:";
  for (const DraftSourceEntry& entry : DraftSources()) {
    help += std::string("\n  ") + entry.name + ": " + entry.help;
  }
  command_ = command->get_name();
  TextOption(command, "--draft", options.sources, "off|auto|NAMES", help)
      ->check(WrongSources)
      ->capture_default_str();
  AddModels(command, options.more_models, "MODEL",
            "A smaller model, which drafts: as --model. Or the folder of\n"
            "a trained head of the model (EAGLE-3, Medusa, Hydra). Given twice, both\n"
            "draft");
  TextOption(command, "--draft-text", options.text_file, "FILE",
             "Text that outputs may quote, for drafts");
  TextOption(command, "--draft-history", options.history_file, "FILE",
             "Past outputs by grammar, for drafts: read where it exists, and written");
  CountOption(
      command, "--draft-nodes", options.nodes, 1, kMostDraftNodes,
      "Most tokens drafted for an output in a call, from 1 to " + std::to_string(kMostDraftNodes));
  CountOption(command, "--draft-memory", options.memory, 1, kMostDraftMemory,
              "Megabytes for what drafts keep between outputs, from 1 to " +
                  std::to_string(kMostDraftMemory))
      ->type_name("MB");
  RealOption(command, "--draft-lossy", options.lossy, 0, 0.999, "THRESHOLD",
             "Not the same output: take a draft in place of the token drawn where its\n"
             "probability is at least 1 - THRESHOLD. Each token's distribution is then off by\n"
             "at most THRESHOLD in total variation; which tokens come depends on the time that\n"
             "calls take. 0: never");
  TextOption(command, "--draft-verify", options.verify, "RULE",
             "Which drafts are taken: coupled, the tokens without drafts; or token, block, rsd,\n"
             "spectr, traversal, the rules of rejection: other tokens, with the same law")
      ->check(WrongRule)
      ->capture_default_str();
  TextOption(command, "--draft-shape", options.shape, "heap|delayed:D,K",
             "Trees of drafts: the likeliest nodes, or a chain of D and then K chains")
      ->check(WrongShape)
      ->capture_default_str();
}

Status DraftFlags::Check() const {
  const auto indices = ParseDraftSources(options);
  if (!indices.ok()) return AtDraft(indices.error());
  const auto rules = ParseDraftRules(options);
  if (!rules.ok()) return AtDraft(rules.error());
  if (indices->empty() && (rules->rejects() || rules->delay >= 0)) {
    return Error{ErrorCode::kInvalid, "needs --draft auto, or some of its sources",
                 rules->rejects() ? "--draft-verify" : "--draft-shape"};
  }
  if (options.lossy > 0 && indices->empty()) {
    return Error{ErrorCode::kInvalid, "needs --draft auto, or some of its sources",
                 "--draft-lossy"};
  }
  const auto needs = [&](const std::string& value, const char* option, const char* source) {
    if (value.empty()) return Status();
    for (const size_t index : *indices) {
      if (std::string(DraftSources()[index].name) == source) return Status();
    }
    return Status(Error{ErrorCode::kInvalid,
                        std::string("needs --draft auto, or ") + source + " among its sources",
                        option});
  };
  const std::string first_model = options.more_models.empty() ? "" : options.more_models[0];
  if (Status status = needs(first_model, "--draft-model", "model"); !status.ok()) return status;
  if (Status status = needs(options.text_file, "--draft-text", "text"); !status.ok()) return status;
  return needs(options.history_file, "--draft-history", "history");
}

const char* DraftFlags::asking() const {
  if (options.sources != "off" && !ChoosesDraftSources(options)) return "--draft";
  if (!options.more_models.empty()) return "--draft-model";
  if (!options.text_file.empty()) return "--draft-text";
  return options.history_file.empty() ? "--draft" : "--draft-history";
}

const char* DraftFlags::manner() const {
  const DraftOptions plain;
  if (options.nodes != plain.nodes) return "--draft-nodes";
  if (options.memory != plain.memory) return "--draft-memory";
  if (options.lossy != plain.lossy) return "--draft-lossy";
  if (options.verify != plain.verify) return "--draft-verify";
  return options.shape != plain.shape ? "--draft-shape" : "";
}

Result<std::shared_ptr<Drafter>> DraftFlags::Make(LoadedModel& model) const {
  DraftOptions found = options;
  for (std::string& given : found.more_models) {
    Result<std::string> path = FindModelFolder(given);
    if (!path.ok()) return path.error();
    given = *std::move(path);
  }
  Result<std::shared_ptr<Drafter>> drafter = model.MakeDrafter(found);
  if (!drafter.ok()) {
    Error error = AtDraft(drafter.error());
    if (error.place == "--draft") error.place = asking();
    return error;
  }
  if (*drafter == nullptr && *manner() != '\0') {
    Note(command_, std::string("note: ") + manner() + " has no effect: no drafts are made");
  }
  return drafter;
}

Result<Engine> DraftFlags::MakeEngine(std::unique_ptr<LoadedModel> model, int max_batch) const {
  Result<std::shared_ptr<Drafter>> drafter = Make(*model);
  if (!drafter.ok()) return drafter.error();
  return EngineAccess::Make({std::move(model), *std::move(drafter)}, max_batch);
}

}  // namespace pawl::cli
