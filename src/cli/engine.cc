// Finding and loading tokenizers and models for the command line.
#include "src/cli/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/engine/lora_names.h"
#include "src/engine/model_files.h"
#include "src/engine/model_paths.h"
#include "src/engine/option_names.h"

namespace pawl::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> NamesOf(std::span<const char* const> names) {
  return {names.begin(), names.end()};
}

const std::vector<std::string> kDevices = NamesOf(OptionNames(Device()));
const std::vector<std::string> kKvDtypes = NamesOf(OptionNames(KvDtype()));

ptrdiff_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}

}  // namespace

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const ModelPaths& StorePaths() {
  static const ModelPaths paths = ModelPathsOf(EnvironmentVariable);
  return paths;
}

std::string LabelOf(const std::string& given) {
  std::error_code ignored;
  if (given.empty() || fs::exists(given, ignored)) return "";
  const Result<std::optional<ModelName>> name = ParseModelName(given);
  return name.ok() && name->has_value() ? (*name)->Label() : "";
}

Result<std::string> FindModelFolder(const std::string& given, const std::string& shipped) {
  if (!given.empty()) {
    Result<std::string> found = ResolveModel(given, StorePaths());
    if (!found.ok()) return found;
    if (Status status = CheckModelPath(*found); !status.ok()) return status.error();
    return found;
  }
  std::vector<std::string> places;
  const std::string executable = ExecutableFolder();
  if (!executable.empty()) {
    places.push_back(executable + "/../models/" + shipped);
    places.push_back(executable + "/../share/pawl/models/" + shipped);
  }
#ifdef PAWL_SOURCE_DIR
  places.push_back(std::string(PAWL_SOURCE_DIR "/models/") + shipped);
#endif
  std::string looked;
  for (const std::string& place : places) {
    const std::string path = fs::path(place).lexically_normal().string();
    if (CheckModelPath(path).ok()) return path;
    looked += (looked.empty() ? "" : ", ") + path;
  }
  return Error{ErrorCode::kIo,
               "no model is given and the one that ships was not found (looked for " + looked + ")",
               "--model"};
}

Result<ModelText> LoadText(const std::string& command, const std::string& given) {
  std::string path = given;
  // A tokenizer.json that is not there is no name of a model.
  std::error_code ignored;
  const bool may_be_name = !path.ends_with(".json") && !fs::exists(path, ignored);
  const auto name = ParseModelName(path);
  if (path.empty() || (may_be_name && (!name.ok() || name->has_value()))) {
    Result<std::string> folder = FindModelFolder(path);
    if (!folder.ok()) return folder.error();
    path = *std::move(folder);
  }
  Progress progress(command, "loading the tokenizer of " + path);
  return LoadModelText(path);
}

Result<std::unique_ptr<LoadedModel>> OpenModel(const std::string& command, const std::string& path,
                                               const ChatOverride& chat) {
  Progress progress(command, "loading the tokenizer of " + path);
  return LoadedModel::Open(path, chat, StorePaths().settings);
}

const std::vector<std::string>& DtypeNames() {
  static const std::vector<std::string> names = NamesOf(OptionNames(WeightDtype()));
  return names;
}

WeightDtype DtypeNamed(const std::string& name) {
  const auto& names = DtypeNames();
  return static_cast<WeightDtype>(std::find(names.begin(), names.end(), name) - names.begin());
}

const std::vector<std::string>& KernelNames() {
  static const std::vector<std::string> names = NamesOf(OptionNames(KernelVariant()));
  return names;
}

KernelVariant KernelsNamed(const std::string& name) {
  return static_cast<KernelVariant>(IndexOf(KernelNames(), name));
}

void DeviceFlags::AddTo(CLI::App* command) {
  ChoiceOption(command, "--device", device, kDevices, "DEVICE",
               "Where the model runs; auto: on a CUDA device if there is one, else on the CPU");
  ChoiceOption(command, "--kv-dtype", kv_dtype, kKvDtypes, "TYPE",
               "Keys and values on a CUDA device (the CPU's are fp32)");
  ChoiceOption(command, "--kernels", kernels, KernelNames(), "NAME",
               "The instructions on the CPU; amx-bf16 and avx512-bf16 round inputs to 8 bits "
               "next to bf16 weights, faster on long prompts; auto: the best of the others");
}

void LoraFlag::AddTo(CLI::App* command) {
  TextOption(command, "--lora", given, "DIR",
             "A LoRA adapter of the model, as PEFT saves it: DIR or NAME=DIR");
}

ModelOptions ModelOptionsOf(const std::string& command, int threads, const std::string& dtype,
                            const DeviceFlags& device) {
  ModelOptions options;
  options.threads = threads;
  options.dtype = DtypeNamed(dtype);
  options.device = static_cast<Device>(IndexOf(kDevices, device.device));
  options.kv_dtype = static_cast<KvDtype>(IndexOf(kKvDtypes, device.kv_dtype));
  options.kernels = KernelsNamed(device.kernels);
  options.on_fallback = [command](const std::string& reason) {
    Note(command, "note: no CUDA device is used: " + reason + "; the model runs on the CPU");
  };
  return options;
}

namespace {

// Calls `load` with the options of the flags, while a line on stderr says how far the weights are.
template <typename Load>
auto WithProgress(const std::string& command, const std::string& folder, ModelOptions options,
                  const Load& load) {
  Progress progress(command, "loading " + folder);
  options.progress = [&](double fraction) {
    progress.Set(fmt::format("loading {}: {:.0f} %", folder, fraction * 100));
  };
  return load(options,
              [&](const std::string& note) { Note(command, "note: " + folder + ": " + note); });
}

}  // namespace

Status LoadWeights(const std::string& command, LoadedModel& model, int threads,
                   const std::string& dtype, const DeviceFlags& device, const LoraFlag& lora) {
  ModelOptions given = ModelOptionsOf(command, threads, dtype, device);
  const auto at_option = [](Error error) {
    if (error.place == "lora") error.place = "--lora";
    return error;
  };
  if (!lora.given.empty()) {
    Result<std::vector<LoraAdapter>> adapters = ParseLoraAdapters({lora.given});
    if (!adapters.ok()) return at_option(adapters.error());
    given.lora = *std::move(adapters);
  }
  Status status = WithProgress(command, model.path(), given,
                               [&](const ModelOptions& options, const auto& note) {
                                 return model.LoadWeights(options, note);
                               });
  if (!status.ok()) return at_option(status.error());
  if (!given.lora.empty()) model.UseAdapter(1);
  return {};
}

Result<std::unique_ptr<Model>> LoadWeightsOnly(const std::string& command,
                                               const std::string& folder, int threads,
                                               const std::string& dtype,
                                               const DeviceFlags& device) {
  return WithProgress(command, folder, ModelOptionsOf(command, threads, dtype, device),
                      [&](const ModelOptions& options, const auto& note) {
                        return LoadModel(folder, options, note);
                      });
}

}  // namespace pawl::cli
