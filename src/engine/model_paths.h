// Names of models: from "org/name" to the files in a store of this machine.
//
//   const ModelPaths paths = ModelPathsOf(variable);    // of the environment, read by the caller
//   Result<std::string> path = ResolveModel("Qwen/Qwen3-0.6B-GGUF:Q8_0", paths);
//   if (path.ok()) Engine::Load(*path);
//
// A name is, in this order: a path that exists; ollama:NAME[:TAG]; lmstudio:ORG/NAME[:FILE];
// ORG/NAME[@REVISION][:FILE or TYPE] in a cache of the Hugging Face hub. Nothing is fetched.
#ifndef PAWL_SRC_ENGINE_MODEL_PATHS_H_
#define PAWL_SRC_ENGINE_MODEL_PATHS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"

namespace pawl {

// The value of an environment variable; empty where it is not set.
using Variable = std::function<std::string(const char* name)>;

// The stores that the environment names, and the folder of measured choices: HF_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME, XDG_CONFIG_HOME, OLLAMA_MODELS and HOME. Folders that do not exist are among
// them.
ModelPaths ModelPathsOf(const Variable& variable);

// "~" and "~/..." are in the home folder.
std::string WithHome(std::string path, const Variable& variable);

struct ModelName {
  enum class Store { kHub, kOllama, kLmStudio };
  Store store = Store::kHub;
  std::string repo;      // "org/name"; Ollama: "name", "org/name" or "host/org/name"
  std::string revision;  // kHub: a branch, a tag or a commit
  std::string wanted;    // a file, a type; Ollama: the tag

  // As a server calls it: "Qwen/Qwen3-0.6B-GGUF", "qwen2.5:0.5b".
  std::string Label() const;
};

// nullopt where the text has not the form of a name. Errors: kInvalid for a name of a store that no
// store can have.
Result<std::optional<ModelName>> ParseModelName(std::string_view text);
// The name of a model on the hub, and nothing else. Errors: kInvalid.
Result<ModelName> ParseHubName(std::string_view text);

// The path of a model folder or a GGUF file. A path that exists is returned as it is.
// Errors: kIo where there is no such model, with the places that were looked at and the command
// that fetches it; kInvalid where several files fit, where a manifest is broken, and where a link
// or a manifest leads out of its store. `name` is the place.
Result<std::string> ResolveModel(const std::string& name, const ModelPaths& paths);

// "ORG/NAME" of the folder "models--ORG--NAME"; empty for another folder.
std::string RepoOfFolder(std::string_view folder);
// The commit that a revision is in a repository's folder of a hub's cache; empty: none is there.
std::string CommitOf(const std::string& folder, const std::string& revision);
// 40 hexadecimal digits in lower case.
bool IsCommit(std::string_view text);
// The files of a folder, as ChooseModel takes them, sorted. Folders behind links are left out.
std::vector<std::string> FilesOf(const std::string& folder);

// The GGUF file of one of Ollama's manifests. `store`: the folder with manifests/ and blobs/.
// Errors: those of ResolveModel, without a place.
Result<std::string> OllamaFile(const std::string& store, const std::string& manifest);
// The model of a snapshot of a hub, or of LM Studio's folder: what ChooseModel says of its files.
// `root`: the store; links that lead out of it are errors.
Result<std::string> ModelOfFolder(const std::string& root, const std::string& folder,
                                  std::string_view wanted);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_MODEL_PATHS_H_
