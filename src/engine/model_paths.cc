// A store belongs to another program, and what is in it may be damaged or made by an enemy. So
// names are checked before they become paths, and a file counts only where its real path, links
// followed, is in the store. The layouts are those of huggingface_hub (models--ORG--NAME with refs,
// snapshots and blobs), of Ollama (manifests and blobs) and of LM Studio (ORG/NAME with files).
#include "src/engine/model_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/engine/model_choice.h"
#include "src/engine/model_files.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostManifestBytes = size_t{1} << 20;
constexpr size_t kMostRefBytes = 1024;
constexpr size_t kMostFiles = 20'000;
constexpr int kMostDepth = 4;
// The folder of Ollama's own models.
constexpr const char* kOllamaHost = "registry.ollama.ai";

bool IsNameChar(char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.'; }

// A part of a repository's name, as the hub allows it.
bool IsNamePart(std::string_view part) {
  constexpr size_t kMost = 96;
  if (part.empty() || part.size() > kMost || !std::ranges::all_of(part, IsNameChar)) return false;
  const auto edge = [](char c) { return c == '-' || c == '.'; };
  return !edge(part.front()) && !edge(part.back()) && part.find("..") == std::string_view::npos &&
         part.find("--") == std::string_view::npos;
}

bool IsRevision(std::string_view text) {
  return IsPlainName(text) && text.front() != '-' &&
         std::ranges::all_of(text, [](char c) { return IsNameChar(c) || c == '/' || c == '+'; });
}

// The real path, where it is in `root`; else what is wrong with it.
Result<std::string> RealPath(const std::string& root, const std::string& path) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error) return Error{ErrorCode::kIo, "cannot be read: " + error.message(), root};
  const fs::path real = fs::canonical(path, error);
  if (error) {
    const bool link = fs::is_symlink(fs::symlink_status(path, error));
    return Error{ErrorCode::kIo, link ? "is a link to nothing" : "is missing", path};
  }
  const auto [end, at] = std::ranges::mismatch(real_root, real);
  if (end != real_root.end()) {
    return Error{ErrorCode::kInvalid, "leads out of " + root, path};
  }
  return real.string();
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// "a, b" or "no store of this kind is known".
std::string Places(const std::vector<std::string>& folders) {
  std::string text;
  for (const std::string& folder : folders) text += (text.empty() ? "" : ", ") + folder;
  return text;
}

Error NotThere(const std::string& what, const std::vector<std::string>& looked,
               const std::string& command) {
  return {ErrorCode::kIo,
          "no such model folder or file" +
              (looked.empty() ? std::string() : ", and no " + what + " in " + Places(looked)) +
              (command.empty() ? "" : "; `" + command + "` fetches it"),
          ""};
}

// Whether all weights are there that the folder's index asks for.
Status CheckWhole(const std::string& root, const std::string& folder,
                  const std::vector<std::string>& names) {
  const auto has = [&](const std::string& name) { return std::ranges::binary_search(names, name); };
  std::vector<std::string> needed{"config.json"};
  if (has(kOneShard)) {
    needed.emplace_back(kOneShard);
  } else {
    const std::string index = folder + "/" + kShardIndex;
    if (Result<std::string> real = RealPath(root, index); !real.ok()) return real.error();
    const Result<std::string> text = ReadRegularFile(index);
    if (!text.ok()) return text.error();
    Result<std::vector<std::string>> shards = ShardsOfIndex(*text);
    if (!shards.ok()) return InFile(index, shards.error());
    needed.insert(needed.end(), shards->begin(), shards->end());
  }
  for (const std::string& name : needed) {
    if (!has(name)) return Error{ErrorCode::kIo, "is missing", folder + "/" + name};
  }
  // Loading reads more of the folder than weights, and no link may lead it elsewhere.
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) continue;
    if (Result<std::string> real = RealPath(root, folder + "/" + name); !real.ok()) {
      return real.error();
    }
  }
  return {};
}

std::string Folded(std::string repo) {
  const size_t slash = repo.find('/');
  return "models--" + repo.replace(slash, 1, "--");
}

std::string PullCommand(const ModelName& name) {
  return "pawl pull " + name.repo + (name.revision.empty() ? "" : "@" + name.revision) +
         (name.wanted.empty() ? "" : ":" + name.wanted);
}

Result<std::string> InHub(const ModelName& name, const ModelPaths& paths) {
  const std::string revision = name.revision.empty() ? "main" : name.revision;
  for (const std::string& root : paths.hub) {
    const std::string folder = root + "/" + Folded(name.repo);
    if (!IsDirectory(folder)) continue;
    const std::string commit = CommitOf(folder, revision);
    const std::string snapshot = folder + "/snapshots/" + commit;
    if (commit.empty() || !IsDirectory(snapshot)) {
      return Error{ErrorCode::kIo,
                   "revision " + revision + " is not in " + folder + "; `" + PullCommand(name) +
                       "` fetches it",
                   ""};
    }
    Result<std::string> path = ModelOfFolder(root, snapshot, name.wanted);
    if (path.ok()) return path;
    Error error = path.error();
    if (error.code == ErrorCode::kIo) error.message += "; `" + PullCommand(name) + "` fetches it";
    return error;
  }
  return NotThere(name.repo, paths.hub, PullCommand(name));
}

// Host, organisation and name, as folders of Ollama's manifests.
std::string OllamaFolder(const std::string& repo) {
  const auto slashes = std::ranges::count(repo, '/');
  if (slashes == 0) return std::string(kOllamaHost) + "/library/" + repo;
  return slashes == 1 ? std::string(kOllamaHost) + "/" + repo : repo;
}

Result<std::string> InOllama(const ModelName& name, const ModelPaths& paths) {
  const std::string tag = name.wanted.empty() ? "latest" : name.wanted;
  for (const std::string& root : paths.ollama) {
    const std::string manifest = root + "/manifests/" + OllamaFolder(name.repo) + "/" + tag;
    if (Exists(manifest)) return OllamaFile(root, manifest);
  }
  return NotThere("manifest of " + name.Label(), paths.ollama, "ollama pull " + name.Label());
}

Result<std::string> InLmStudio(const ModelName& name, const ModelPaths& paths) {
  for (const std::string& root : paths.lmstudio) {
    const std::string folder = root + "/" + name.repo;
    if (IsDirectory(folder)) return ModelOfFolder(root, folder, name.wanted);
  }
  return NotThere(name.repo, paths.lmstudio, "lms get " + name.repo);
}

Error BadName(std::string_view what) {
  return {ErrorCode::kInvalid, "is no name of a model; expected " + std::string(what), ""};
}

// "a/b" of names, from `least` to `most` parts.
bool IsRepo(std::string_view repo, int least, int most) {
  int parts = 1;
  for (size_t slash; (slash = repo.find('/')) != std::string_view::npos; ++parts) {
    if (!IsNamePart(repo.substr(0, slash))) return false;
    repo.remove_prefix(slash + 1);
  }
  return IsNamePart(repo) && parts >= least && parts <= most;
}

Result<ModelName> ParseOllama(std::string_view text) {
  ModelName name{ModelName::Store::kOllama, std::string(text), "", ""};
  const size_t slash = text.rfind('/');
  const size_t colon = text.find(':', slash == std::string_view::npos ? 0 : slash);
  if (colon != std::string_view::npos) {
    name.repo = text.substr(0, colon);
    name.wanted = text.substr(colon + 1);
  }
  const bool tagged = colon == std::string_view::npos || IsNamePart(name.wanted);
  if (!tagged || !IsRepo(name.repo, 1, 3)) return BadName("ollama:NAME or ollama:NAME:TAG");
  return name;
}

Result<ModelName> ParseLmStudio(std::string_view text) {
  const size_t colon = text.find(':');
  ModelName name{ModelName::Store::kLmStudio, std::string(text.substr(0, colon)), "", ""};
  if (colon != std::string_view::npos) name.wanted = text.substr(colon + 1);
  const bool fits = colon == std::string_view::npos || IsPlainName(name.wanted);
  if (!fits || !IsRepo(name.repo, 2, 2)) {
    return BadName("lmstudio:ORG/NAME or lmstudio:ORG/NAME:FILE");
  }
  return name;
}

}  // namespace

ModelPaths ModelPathsOf(const Variable& variable) {
  ModelPaths paths;
  const std::string home = variable("HOME");
  const auto first_of = [&](const char* name, const std::string& otherwise) {
    const std::string value = variable(name);
    return value.empty() ? otherwise : WithHome(value, variable);
  };
  const std::string cache = first_of("XDG_CACHE_HOME", home.empty() ? "" : home + "/.cache");
  const std::string hf_home = first_of("HF_HOME", cache.empty() ? "" : cache + "/huggingface");
  const std::string hub = first_of("HF_HUB_CACHE", hf_home.empty() ? "" : hf_home + "/hub");
  if (!hub.empty()) paths.hub.push_back(hub);
  // A variable of its own stands for the user's store; the service's is where the installer puts
  // it.
  const std::string ollama =
      first_of("OLLAMA_MODELS", home.empty() ? "" : home + "/.ollama/models");
  if (!ollama.empty()) paths.ollama.push_back(ollama);
  paths.ollama.emplace_back("/usr/share/ollama/.ollama/models");
  if (!home.empty()) {
    paths.lmstudio.push_back(home + "/.lmstudio/models");
    paths.lmstudio.push_back(home + "/.cache/lm-studio/models");
  }
  const std::string config = first_of("XDG_CONFIG_HOME", home.empty() ? "" : home + "/.config");
  if (!config.empty()) paths.settings = config + "/pawl/models";
  return paths;
}

std::string WithHome(std::string path, const Variable& variable) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const std::string home = variable("HOME");
  return home.empty() ? path : path.replace(0, 1, home);
}

std::string ModelName::Label() const {
  return store == Store::kOllama && !wanted.empty() ? repo + ":" + wanted : repo;
}

Result<ModelName> ParseHubName(std::string_view text) {
  ModelName name;
  const size_t colon = text.find(':');
  const std::string_view front = text.substr(0, colon);
  const size_t at = front.find('@');
  name.repo = front.substr(0, at);
  if (at != std::string_view::npos) name.revision = front.substr(at + 1);
  if (colon != std::string_view::npos) name.wanted = text.substr(colon + 1);
  const bool fits = IsRepo(name.repo, 2, 2) &&
                    (at == std::string_view::npos || IsRevision(name.revision)) &&
                    (colon == std::string_view::npos || IsPlainName(name.wanted));
  if (!fits) return BadName("ORG/NAME, ORG/NAME@REVISION or ORG/NAME:FILE or ORG/NAME:TYPE");
  return name;
}

Result<std::optional<ModelName>> ParseModelName(std::string_view text) {
  constexpr std::string_view kOllama = "ollama:", kLmStudio = "lmstudio:";
  Result<ModelName> name = Error{};
  if (text.starts_with(kOllama)) {
    name = ParseOllama(text.substr(kOllama.size()));
  } else if (text.starts_with(kLmStudio)) {
    name = ParseLmStudio(text.substr(kLmStudio.size()));
  } else {
    // Paths have more slashes than one, or begin with a dot; only what is like a name in front of
    // '@' or ':' is a name with a mistake.
    if (!IsRepo(text.substr(0, text.find_first_of("@:")), 2, 2)) return std::optional<ModelName>();
    name = ParseHubName(text);
  }
  if (!name.ok()) return name.error();
  return std::optional<ModelName>(*std::move(name));
}

Result<std::string> ResolveModel(const std::string& name, const ModelPaths& paths) {
  if (Exists(name)) return name;
  const Result<std::optional<ModelName>> parsed = ParseModelName(name);
  if (!parsed.ok()) return InFile(name, parsed.error());
  if (!parsed->has_value()) return CheckModelPath(name).error();
  const ModelName& model = **parsed;
  Result<std::string> path = model.store == ModelName::Store::kOllama     ? InOllama(model, paths)
                             : model.store == ModelName::Store::kLmStudio ? InLmStudio(model, paths)
                                                                          : InHub(model, paths);
  if (!path.ok()) return InFile(name, path.error());
  return path;
}

std::string RepoOfFolder(std::string_view folder) {
  constexpr std::string_view kBegin = "models--";
  if (!folder.starts_with(kBegin)) return "";
  std::string repo(folder.substr(kBegin.size()));
  const size_t at = repo.find("--");
  if (at == std::string::npos) return "";
  repo.replace(at, 2, "/");
  return IsRepo(repo, 2, 2) ? repo : "";
}

bool IsCommit(std::string_view text) {
  return text.size() == 40 &&
         std::ranges::all_of(text, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

std::string CommitOf(const std::string& folder, const std::string& revision) {
  if (IsCommit(revision)) return revision;
  const std::string file = folder + "/refs/" + revision;
  if (!RealPath(folder, file).ok()) return "";
  Result<std::string> text = ReadRegularFile(file, kMostRefBytes);
  if (!text.ok()) return "";
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return IsCommit(*text) ? *text : "";
}

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end && names.size() < kMostFiles; it.increment(error)) {
    if (it.depth() >= kMostDepth) it.disable_recursion_pending();
    std::error_code ignored;
    if (!it->is_directory(ignored)) {
      names.push_back(it->path().lexically_relative(folder).generic_string());
    }
  }
  std::ranges::sort(names);
  return names;
}

Result<std::string> OllamaFile(const std::string& store, const std::string& manifest) {
  const Result<std::string> real = RealPath(store, manifest);
  if (!real.ok()) return real.error();
  const Result<std::string> text = ReadRegularFile(*real, kMostManifestBytes);
  if (!text.ok()) return text.error();
  const Result<json::Value> value = json::Parse(*text);
  if (!value.ok()) return InFile(manifest, value.error());
  const json::Value* layers = value->Find("layers");
  if (layers == nullptr || layers->type != json::Type::kArray) {
    return Error{ErrorCode::kInvalid, "must be a list", manifest + ": #/layers"};
  }
  std::string digest, size;
  for (const json::Value& layer : layers->items) {
    const json::Value* type = layer.Find("mediaType");
    if (type == nullptr) continue;
    if (type->text == "application/vnd.ollama.image.adapter") {
      return Error{ErrorCode::kUnsupported, "the model has an adapter, which would not be applied",
                   manifest};
    }
    if (type->text != "application/vnd.ollama.image.model") continue;
    if (!digest.empty()) {
      return Error{ErrorCode::kUnsupported, "the model has several files of weights", manifest};
    }
    const json::Value* given = layer.Find("digest");
    const json::Value* bytes = layer.Find("size");
    digest = given == nullptr ? "" : given->text;
    size = bytes == nullptr ? "" : bytes->text;
    constexpr std::string_view kKind = "sha256:";
    const bool good = digest.starts_with(kKind) && digest.size() == kKind.size() + 64 &&
                      std::ranges::all_of(std::string_view(digest).substr(kKind.size()),
                                          [](char c) { return HexDigit(c) >= 0; });
    if (!good) {
      return Error{ErrorCode::kInvalid, "a digest must be sha256: and 64 hexadecimal digits",
                   manifest};
    }
    digest[kKind.size() - 1] = '-';
  }
  if (digest.empty()) {
    return Error{ErrorCode::kUnsupported, "the model has no GGUF file in the store", manifest};
  }
  Result<std::string> blob = RealPath(store, store + "/blobs/" + digest);
  if (!blob.ok()) return blob;
  std::error_code error;
  const auto length = fs::file_size(*blob, error);
  if (!error && !size.empty() && size != std::to_string(length)) {
    return Error{ErrorCode::kInvalid,
                 "has " + std::to_string(length) + " bytes, and the manifest says " + size, *blob};
  }
  return blob;
}

Result<std::string> ModelOfFolder(const std::string& root, const std::string& folder,
                                  std::string_view wanted) {
  if (Result<std::string> real = RealPath(root, folder); !real.ok()) return real;
  const std::vector<std::string> names = FilesOf(folder);
  const Result<ModelChoice> choice = ChooseModel(names, wanted);
  if (!choice.ok()) return InFile(folder, choice.error());
  if (choice->gguf.empty()) {
    if (Status status = CheckWhole(root, folder, names); !status.ok()) return status.error();
    return folder;
  }
  for (const std::string& file : choice->gguf) {
    if (Result<std::string> real = RealPath(root, folder + "/" + file); !real.ok()) return real;
  }
  return folder + "/" + choice->gguf[0];
}

}  // namespace pawl
