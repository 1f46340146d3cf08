// `pawl models`: what is in the stores of this machine, under the names that --model takes.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/progress.h"
#include "src/engine/model_list.h"

namespace pawl::cli {
namespace {

constexpr const char* kModels = "models";

std::string SizeText(uint64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  if (mebibytes >= 1024) return fmt::format("{:.1f} GiB", mebibytes / 1024);
  return fmt::format("{:.1f} MiB", mebibytes);
}

// What a store's files say must not speak to the terminal.
std::string Plain(std::string text) {
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  return text;
}

void PrintTable(const std::vector<ListedModel>& models) {
  std::vector<std::vector<std::string>> rows{{"NAME", "FAMILY", "TYPE", "SIZE", "RUNS"}};
  for (const ListedModel& model : models) {
    const auto known = [](const std::string& text) { return text.empty() ? "-" : Plain(text); };
    rows.push_back({Plain(model.name), known(model.family), known(model.type),
                    model.path.empty() ? "-" : SizeText(model.bytes),
                    model.problem ? "no: " + Plain(model.problem->ToString()) : "yes"});
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    Print(line + row.back() + "\n");
  }
}

void PrintJson(const std::vector<ListedModel>& models) {
  std::string out = "[";
  for (const ListedModel& model : models) {
    out += fmt::format(
        R"({}{{"name":{},"path":{},"family":{},"type":{},"bytes":{},"runs":{},"problem":{}}})",
        out.size() > 1 ? "," : "", json::Quote(model.name), json::Quote(model.path),
        json::Quote(model.family), json::Quote(model.type), model.bytes,
        model.problem ? "false" : "true",
        model.problem ? json::Quote(model.problem->ToString()) : "null");
  }
  Print(out + "]\n");
}

int Models(bool as_json) {
  std::vector<ListedModel> models;
  {
    const Progress progress(kModels, "reads the stores");
    models = ListModels(StorePaths());
  }
  if (as_json) {
    PrintJson(models);
  } else if (!models.empty()) {
    PrintTable(models);
  }
  if (models.empty()) {
    std::string places;
    const ModelPaths& paths = StorePaths();
    for (const auto* folders : {&paths.hub, &paths.ollama, &paths.lmstudio}) {
      for (const std::string& folder : *folders) places += (places.empty() ? "" : ", ") + folder;
    }
    Note(kModels, "no model is in " + places + "; `pawl pull ORG/NAME` fetches one");
  }
  return kExitOk;
}

}  // namespace

void AddModels(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      kModels, "List the models in the stores of this machine (Hugging Face, Ollama, LM Studio)");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->footer("Example:\n  pawl models");
  command->callback([as_json, &action] { action = [as_json] { return Models(*as_json); }; });
}

}  // namespace pawl::cli
