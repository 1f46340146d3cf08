// `pawl info`: what this build is, what the machine has, what a model folder holds.
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"

namespace pawl::cli {
namespace {

constexpr const char* kName = "info";

struct Flags {
  std::string model;
  bool json = false;
};

std::string CpuFeatures() {
  std::string out;
  const auto add = [&out](bool has, const char* name) {
    if (has) out += (out.empty() ? "" : " ") + std::string(name);
  };
#if defined(__x86_64__)
  __builtin_cpu_init();
  add(__builtin_cpu_supports("avx2") != 0, "avx2");
  add(__builtin_cpu_supports("fma") != 0, "fma");
  add(__builtin_cpu_supports("avx512f") != 0, "avx512f");
  add(__builtin_cpu_supports("avx512bw") != 0, "avx512bw");
  add(__builtin_cpu_supports("avx512vl") != 0, "avx512vl");
  add(__builtin_cpu_supports("avx512bf16") != 0, "avx512bf16");
#elif defined(__aarch64__)
  add(true, "neon");
#endif
  return out.empty() ? "none that is used" : out;
}

// GPUs that the CUDA driver lists. The driver is looked for at run time, so that any build can
// tell.
std::vector<std::string> Gpus() {
  std::vector<std::string> names;
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return names;
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
  const auto count_of = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
  const auto name_of =
      reinterpret_cast<int (*)(char*, int, int)>(::dlsym(library, "cuDeviceGetName"));
  const auto memory_of =
      reinterpret_cast<int (*)(size_t*, int)>(::dlsym(library, "cuDeviceTotalMem_v2"));
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
  out += PAWL_BUILD_CUDA ? ", CUDA kernels" : ", CPU only";
  if (std::string_view(PAWL_BUILD_SANITIZE).size() > 0) out += ", sanitizers " PAWL_BUILD_SANITIZE;
  return out;
}

int Info(const Flags& flags) {
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("version", PAWL_VERSION);
  rows.emplace_back("build", Build());
  rows.emplace_back(
      "cpu", fmt::format("{} threads, {}", std::thread::hardware_concurrency(), CpuFeatures()));
  const std::vector<std::string> gpus = Gpus();
  std::string gpu = gpus.empty() ? "none" : "";
  for (const std::string& name : gpus) gpu += (gpu.empty() ? "" : ", ") + name;
  rows.emplace_back("gpu", gpu);

  Result<std::string> folder = FindModelFolder(flags.model);
  if (!folder.ok() && !flags.model.empty()) return Fail(kName, folder.error());
  if (!folder.ok()) {
    rows.emplace_back("model", "none found");
  } else {
    Result<Text> text = LoadText(kName, *folder);
    if (!text.ok()) return Fail(kName, text.error());
    Result<std::unique_ptr<Model>> model = LoadWeights(kName, *folder, 0);
    if (!model.ok()) return Fail(kName, model.error());
    const ModelInfo& info = (*model)->info();
    rows.emplace_back("model", *folder);
    rows.emplace_back("architecture", info.architecture);
    rows.emplace_back("parameters", fmt::format("{}", info.parameters));
    rows.emplace_back("weights", fmt::format("{}, {:.2f} MiB", info.dtype,
                                             static_cast<double>(info.weight_bytes) / (1 << 20)));
    rows.emplace_back("shape", fmt::format("{} layers, width {}, {} heads, {} key-value heads",
                                           info.layers, info.hidden, info.heads, info.kv_heads));
    rows.emplace_back("kernels", fmt::format("{}, {} threads", info.kernels, info.threads));
    rows.emplace_back("context", fmt::format("{} tokens", info.context_length));
    rows.emplace_back("vocabulary", fmt::format("{} tokens", text->tokenizer->size()));
    std::string ends;
    for (TokenId id : text->tokenizer->end_tokens()) {
      ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ", id,
                          Readable(text->tokenizer->NameOf(id)));
    }
    rows.emplace_back("end tokens", ends.empty() ? "none" : ends);
  }
  if (flags.json) {
    std::string out;
    for (const auto& [key, value] : rows) {
      out += (out.empty() ? "" : ",") + json::Quote(key) + ":" + json::Quote(value);
    }
    Print("{" + out + "}\n");
  } else {
    for (const auto& [key, value] : rows) Print(fmt::format("{:<13} {}\n", key, value));
  }
  return kExitOk;
}

}  // namespace

void AddInfo(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(kName, "Show the build, the machine and a model");
  const auto flags = std::make_shared<Flags>();
  command->add_option("--model", flags->model, "Model folder (default: the model that ships)")
      ->type_name("DIR");
  command->add_flag("--json", flags->json, "Print JSON");
  command->footer("Example:\n  pawl info --model models/tiny-extract");
  command->callback([flags, &action] { action = [flags] { return Info(*flags); }; });
}

}  // namespace pawl::cli
