// `pawl info`: what this build is, what the machine has, what a model folder holds.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/cpu_features.h"
#include "src/base/json.h"
#include "src/base/os/libraries.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/model/model.h"
#include "src/model/tensor_source.h"

namespace pawl::cli {
namespace {

constexpr const char* kInfo = "info";

struct InfoLine {
  std::string key;
  std::string value;
};

struct InfoFlags {
  std::string model;
  std::string dtype = "stored";
  DeviceFlags device;
  bool json = false;
};

// GPUs that the CUDA driver lists. The driver is looked for at run time, so that any build can
// tell.
std::vector<std::string> Gpus() {
  std::vector<std::string> names;
  void* library = os::OpenLibrary("libcuda.so.1");
  if (library == nullptr) return names;
  const auto init = reinterpret_cast<int (*)(unsigned)>(os::FunctionOf(library, "cuInit"));
  const auto count_of =
      reinterpret_cast<int (*)(int*)>(os::FunctionOf(library, "cuDeviceGetCount"));
  const auto name_of =
      reinterpret_cast<int (*)(char*, int, int)>(os::FunctionOf(library, "cuDeviceGetName"));
  const auto memory_of =
      reinterpret_cast<int (*)(size_t*, int)>(os::FunctionOf(library, "cuDeviceTotalMem_v2"));
  int count = 0;
  if (init != nullptr && count_of != nullptr && name_of != nullptr && memory_of != nullptr &&
      init(0) == 0 && count_of(&count) == 0) {
    for (int i = 0; i < count; ++i) {
      std::array<char, 256> name{};
      size_t memory = 0;
      if (name_of(name.data(), static_cast<int>(name.size()) - 1, i) != 0) continue;
      (void)memory_of(&memory, i);
      names.push_back(fmt::format("{} ({:.0f} GiB)", name.data(),
                                  static_cast<double>(memory) / (1024.0 * 1024 * 1024)));
    }
  }
  // Not closed: drivers do not like being unloaded, and the process is about to end.
  return names;
}

std::string Build() {
  std::string out = fmt::format("{}, {}", PAWL_BUILD_TYPE, PAWL_COMPILER);
  out += HasCudaKernels() ? ", CUDA kernels" : ", CPU only";
  if (std::string_view(PAWL_BUILD_SANITIZE).size() > 0) out += ", sanitizers " PAWL_BUILD_SANITIZE;
  return out;
}

double Mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// "92.10 MiB: 98 % Q4_1, 2 % F16"
std::string FilesText(const WeightPlan& plan) {
  std::string types;
  int64_t all = 0;
  for (const auto& [type, bytes] : plan.types) all += bytes;
  for (const auto& [type, bytes] : plan.types) {
    const double percent = 100.0 * static_cast<double>(bytes) / static_cast<double>(all);
    types += fmt::format("{}{:.0f} % {}", types.empty() ? ": " : ", ", percent, type);
  }
  return fmt::format("{:.2f} MiB{}", Mib(plan.file_bytes), types);
}

void PrintRows(std::span<const InfoLine> rows) {
  for (const auto& [key, value] : rows) {
    std::string text;  // further lines stand below the first
    for (const char c : value) text += c == '\n' ? "\n" + std::string(14, ' ') : std::string(1, c);
    Print(fmt::format("{:<13} {}\n", key, text));
  }
}

int Info(const InfoFlags& flags) {
  std::vector<InfoLine> rows;
  const auto add = [&rows](const char* key, std::string value) {
    rows.push_back(InfoLine{key, std::move(value)});
  };
  add("version", PAWL_VERSION);
  add("build", Build());
  add("cpu", fmt::format("{}, {} threads, {}", CpuName(), std::thread::hardware_concurrency(),
                         ToString(DetectCpu())));
  const std::vector<std::string> gpus = Gpus();
  std::string gpu = gpus.empty() ? "none" : "";
  for (const std::string& name : gpus) gpu += (gpu.empty() ? "" : ", ") + name;
  add("gpu", gpu);

  Result<std::string> folder = FindModelFolder(flags.model);
  if (!folder.ok() && !flags.model.empty()) return Fail(kInfo, folder.error());
  if (!folder.ok()) {
    add("model", "none found");
  } else {
    const Result<WeightPlan> plan = PlanWeights(*folder, DtypeNamed(flags.dtype));
    if (!plan.ok()) return Fail(kInfo, plan.error());
    add("files", FilesText(*plan));
    add("description", plan->description);
    add("memory", fmt::format("{:.2f} MiB for weights", Mib(plan->memory_bytes)));
    // Before what may be much is read.
    if (!flags.json) {
      PrintRows(rows);
      rows.clear();
    }
    Result<std::unique_ptr<LoadedModel>> model = OpenModel(kInfo, *folder);
    if (!model.ok()) return Fail(kInfo, model.error());
    if (Status status = LoadWeights(kInfo, **model, 0, flags.dtype, flags.device); !status.ok()) {
      return Fail(kInfo, status.error());
    }
    const ModelInfo& info = (*model)->info();
    const Tokenizer& tokenizer = (*model)->tokenizer();
    add("model", *folder);
    add("architecture", info.architecture);
    add("parameters", fmt::format("{}", info.parameters));
    add("weights", fmt::format("{}, {:.2f} MiB", info.dtype, Mib(info.weight_bytes)));
    add("shape", fmt::format("{} layers, width {}, {} heads, {} key-value heads", info.layers,
                             info.hidden, info.heads, info.kv_heads));
    add("kernels", fmt::format("{}, {} threads", info.kernels, info.threads));
    add("context", fmt::format("{} tokens", info.context_length));
    add("vocabulary", fmt::format("{} tokens", tokenizer.size()));
    std::string ends;
    for (TokenId id : tokenizer.end_tokens()) {
      ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ", id, Readable(tokenizer.NameOf(id)));
    }
    add("end tokens", ends.empty() ? "none" : ends);
  }
  if (flags.json) {
    std::string out;
    for (const auto& [key, value] : rows) {
      out += (out.empty() ? "" : ",") + json::Quote(key) + ":" + json::Quote(value);
    }
    Print("{" + out + "}\n");
  } else {
    PrintRows(rows);
  }
  return kExitOk;
}

}  // namespace

void AddInfo(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(kInfo, "Show the build, the machine and a model");
  const auto flags = std::make_shared<InfoFlags>();
  TextOption(command, "--model,model", flags->model, "MODEL", kModelHelp);
  ChoiceOption(command, "--dtype", flags->dtype, DtypeNames(), "TYPE",
               "How weights are kept in memory");
  flags->device.AddTo(command);
  command->add_flag("--json", flags->json, "Print JSON");
  command->footer("Example:\n  pawl info models/tiny-extract");
  command->callback([flags, &action] { action = [flags] { return Info(*flags); }; });
}

}  // namespace pawl::cli
