// Loading what a command runs on: a tokenizer, or a whole model folder.
#ifndef PAWL_SRC_CLI_ENGINE_H_
#define PAWL_SRC_CLI_ENGINE_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/engine/loaded_model.h"

namespace pawl::cli {

// An environment variable; empty where it is not set.
std::string EnvironmentVariable(const char* name);
// The stores of models that the environment names, read once.
const ModelPaths& StorePaths();

// The path of `given`, which is one or the name of a model in a store. When it is empty, the model
// that ships with Pawl, which is in ../models or ../share/pawl/models of the executable, or in the
// source tree. Errors: those of ResolveModel; kIo when it is no model.
Result<std::string> FindModelFolder(const std::string& given,
                                    const std::string& shipped = "tiny-extract");

// What a server calls the model where nothing else is said: "ORG/NAME" of a name; empty for a path.
std::string LabelOf(const std::string& given);

inline constexpr const char* kModelHelp =
    "Model folder, GGUF file or name: ORG/NAME, ollama:NAME, lmstudio:ORG/NAME (default: the model "
    "that ships)";
inline constexpr const char* kTokenizerHelp =
    "tokenizer.json, or a folder with one (default: that of the model that ships)";
// `path`: a tokenizer.json, a folder with one, a GGUF file, or the name of a model; empty: that of
// the model that ships.
Result<ModelText> LoadText(const std::string& command, const std::string& path);
// `path`: a model folder or a GGUF file.
Result<std::unique_ptr<LoadedModel>> OpenModel(const std::string& command, const std::string& path,
                                               const ChatOverride& chat = {});

// The names of --dtype: "stored", "fp32", "bf16", "fp16", "int8", "int4", "fp8".
const std::vector<std::string>& DtypeNames();
// REQUIRES: one of those names.
WeightDtype DtypeNamed(const std::string& name);
// The names of --kernels: "auto", "portable", "avx2", ... (src/engine/option_names.h).
const std::vector<std::string>& KernelNames();
// REQUIRES: one of those names.
KernelVariant KernelsNamed(const std::string& name);
// --device, --kv-dtype and --kernels.
struct DeviceFlags {
  std::string device = "cpu";
  std::string kv_dtype = "bf16";
  std::string kernels = "auto";
  void AddTo(CLI::App* command);
};
// --lora: an adapter that all requests of the command have.
struct LoraFlag {
  std::string given;
  void AddTo(CLI::App* command);
};
// `threads` 0: all cores. `dtype`: one of those names. on_fallback says so on stderr.
ModelOptions ModelOptionsOf(const std::string& command, int threads, const std::string& dtype,
                            const DeviceFlags& device);
// The same, loaded. Where --device auto falls back to the CPU, a line on stderr says why.
Status LoadWeights(const std::string& command, LoadedModel& model, int threads,
                   const std::string& dtype = "stored", const DeviceFlags& device = {},
                   const LoraFlag& lora = {});
// The weights of a model of which nothing else is used.
Result<std::unique_ptr<Model>> LoadWeightsOnly(const std::string& command,
                                               const std::string& folder, int threads,
                                               const std::string& dtype = "stored",
                                               const DeviceFlags& device = {});

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_ENGINE_H_
