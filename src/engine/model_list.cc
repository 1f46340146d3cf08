// First the names of all stores are listed, then each is looked up as a user would ask for it. So
// the list shows what --model takes, and a damaged model is in it with its error.
#include "src/engine/model_list.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "src/base/json_file.h"
#include "src/engine/loaded_model.h"
#include "src/engine/model_choice.h"
#include "src/engine/model_paths.h"
#include "src/model/gguf.h"
#include "src/model/tensor_source.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 10'000;

// The names in a folder, sorted; none where it cannot be read.
std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(folder, error), end;
  for (; !error && it != end && names.size() < kMostNames; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// What stands behind the colon for each model of a folder; "" for the folder itself.
std::vector<std::string> WantedOf(const std::string& folder) {
  const std::vector<std::string> names = FilesOf(folder);
  std::vector<std::string> wanted;
  if (std::ranges::binary_search(names, kOneShard) ||
      std::ranges::binary_search(names, kShardIndex)) {
    wanted.emplace_back();
  }
  for (const std::string& name : GgufModels(names)) {
    const std::string type = TypeInName(name);
    const Result<ModelChoice> choice = ChooseModel(names, type);
    const bool unique = !type.empty() && choice.ok() && choice->gguf[0] == name;
    wanted.push_back(unique ? type : name);
  }
  return wanted;
}

void AddFolder(const std::string& name, const std::string& folder,
               std::vector<std::string>& names) {
  for (const std::string& wanted : WantedOf(folder)) {
    names.push_back(name + (wanted.empty() ? "" : ":" + wanted));
  }
}

void AddHub(const std::string& root, std::vector<std::string>& names) {
  for (const std::string& entry : EntriesOf(root)) {
    const std::string repo = RepoOfFolder(entry);
    if (repo.empty()) continue;
    const std::string folder = root + "/" + entry;
    // The branch "main" needs no name, other branches go by theirs, and what has none by its
    // commit.
    std::map<std::string, std::string> by_commit;
    for (const std::string& commit : EntriesOf(folder + "/snapshots")) {
      if (IsCommit(commit)) by_commit[commit] = "@" + commit;
    }
    for (const std::string& revision : FilesOf(folder + "/refs")) {
      const std::string commit = CommitOf(folder, revision);
      const auto found = by_commit.find(commit);
      if (found == by_commit.end() || found->second.empty()) continue;
      found->second = revision == "main" ? "" : "@" + revision;
    }
    for (const auto& [commit, revision] : by_commit) {
      AddFolder(repo + revision, folder + "/snapshots/" + commit, names);
    }
  }
}

void AddOllama(const std::string& root, std::vector<std::string>& names) {
  const std::string own = "registry.ollama.ai/", library = own + "library/";
  for (std::string name : FilesOf(root + "/manifests")) {
    const size_t slash = name.rfind('/');
    if (slash == std::string::npos) continue;
    name[slash] = ':';
    const size_t cut = name.starts_with(library) ? library.size()
                       : name.starts_with(own)   ? own.size()
                                                 : 0;
    names.push_back("ollama:" + name.substr(cut));
  }
}

void AddLmStudio(const std::string& root, std::vector<std::string>& names) {
  for (const std::string& org : EntriesOf(root)) {
    for (const std::string& name : EntriesOf(root + "/" + org)) {
      AddFolder("lmstudio:" + org + "/" + name, root + "/" + org + "/" + name, names);
    }
  }
}

uint64_t SizeOfFile(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::string FamilyOfFolder(const std::string& folder) {
  const Result<json::Value> config = ReadSettingsFile(folder + "/config.json");
  if (!config.ok()) return "";
  const json::Value* list = config->Find("architectures");
  return list != nullptr && !list->items.empty() ? list->items[0].text : "";
}

void DescribeFolder(ListedModel& model) {
  model.family = FamilyOfFolder(model.path);
  for (const std::string& name : EntriesOf(model.path)) {
    if (name.ends_with(".safetensors")) model.bytes += SizeOfFile(fs::path(model.path) / name);
  }
}

void DescribeGguf(ListedModel& model) {
  const fs::path path = model.path;
  const std::vector<std::string> names = EntriesOf(path.parent_path().string());
  const Result<ModelChoice> parts = ChooseModel(names, path.filename().string());
  if (parts.ok()) {
    for (const std::string& name : parts->gguf) {
      model.bytes += SizeOfFile(path.parent_path() / name);
    }
  } else {
    model.bytes = SizeOfFile(path);
  }
  model.type = TypeInName(path.filename().string());
  const Result<GgufFile> file = GgufFile::Open(model.path);
  if (!file.ok()) return;
  const GgufValue* family = file->FindValue("general.architecture");
  if (family != nullptr) model.family = family->text.substr(0, 100);
}

ListedModel Describe(const std::string& name, const ModelPaths& paths) {
  ListedModel model;
  model.name = name;
  Result<std::string> path = ResolveModel(name, paths);
  if (!path.ok()) {
    model.problem = path.error();
    return model;
  }
  model.path = *std::move(path);
  std::error_code ignored;
  if (fs::is_directory(model.path, ignored)) {
    DescribeFolder(model);
  } else {
    DescribeGguf(model);
  }
  if (const auto loaded = LoadedModel::Open(model.path); !loaded.ok()) {
    model.problem = loaded.error();
  }
  const Result<WeightPlan> plan = PlanWeights(model.path, WeightDtype::kAsStored);
  if (!plan.ok()) {
    if (!model.problem) model.problem = plan.error();
  } else if (model.type.empty() && !plan->types.empty()) {
    model.type = plan->types[0].first;
  }
  return model;
}

}  // namespace

std::vector<ListedModel> ListModels(const ModelPaths& paths) {
  std::vector<std::string> names;
  for (const std::string& root : paths.hub) AddHub(root, names);
  for (const std::string& root : paths.ollama) AddOllama(root, names);
  for (const std::string& root : paths.lmstudio) AddLmStudio(root, names);
  std::vector<ListedModel> models;
  std::set<std::string> seen;  // of two stores of a kind the first one has a name
  for (const std::string& name : names) {
    if (seen.insert(name).second) models.push_back(Describe(name, paths));
  }
  return models;
}

}  // namespace pawl
