// `pawl quantize`: a model written as a GGUF file with smaller weights.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "src/base/os/signals.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/model/gguf_mixture.h"
#include "src/model/gguf_quantize.h"

namespace pawl::cli {
namespace {

constexpr const char* kQuantize = "quantize";

struct QuantizeFlags {
  std::string in, out, type;
  int threads = 0;
};

// "out.gguf: 87.10 MiB, 5.43 bits a weight: 58 % Q5_0, 42 % Q8_0 (before: 256.63 MiB)"
std::string ReportText(const std::string& out, const QuantizeReport& report) {
  const auto mebibytes = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const double weights = static_cast<double>(report.weights > 0 ? report.weights : 1);
  std::string types;
  int64_t all = 0;
  for (const auto& [type, bytes] : report.types) all += bytes;
  for (const auto& [type, bytes] : report.types) {
    const double percent = 100.0 * static_cast<double>(bytes) / static_cast<double>(all);
    if (percent < 0.5) continue;
    types += fmt::format("{}{:.0f} % {}", types.empty() ? ": " : ", ", percent, type);
  }
  return fmt::format("{}: {:.2f} MiB, {:.2f} bits a weight{} (before: {:.2f} MiB)\n", out,
                     mebibytes(report.bytes_after),
                     static_cast<double>(report.bytes_after) * 8 / weights, types,
                     mebibytes(report.bytes_before));
}

int QuantizeCommand(const QuantizeFlags& flags) {
  // A file that may not grow is an error with a text.
  os::IgnoreFileSizeLimit();
  Result<std::string> in = FindModelFolder(flags.in);
  if (!in.ok()) return Fail(kQuantize, in.error());
  Result<QuantizeReport> report = Error{};
  {
    Progress progress(kQuantize, "reads " + *in);
    QuantizeOptions options;
    options.threads = flags.threads;
    options.progress = [&progress](double share) {
      progress.Set(fmt::format("{:.0f} % of the weights are done", 100 * share));
    };
    report = QuantizeGguf(*in, flags.out, flags.type, options);
  }
  if (!report.ok()) {
    Error error = report.error();
    if (error.place == "type") error.place = "--type";
    return Fail(kQuantize, error);
  }
  if (report->quantized_before > 0) {
    const bool one = report->quantized_before == 1;
    Note(kQuantize, fmt::format("note: {} {} quantized before, and rounded for the second time; a "
                                "file of F16 or BF16 gives better weights",
                                report->quantized_before, one ? "tensor was" : "tensors were"));
  }
  Print(ReportText(flags.out, *report));
  return kExitOk;
}

}  // namespace

void AddQuantize(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kQuantize, "Write a GGUF file of a model with weights of another type");
  const auto flags = std::make_shared<QuantizeFlags>();
  command
      ->add_option("in", flags->in,
                   "GGUF file, folder of safetensors, or the name of a model in a store")
      ->required()
      ->check(NotEmpty)
      ->type_name("IN");
  command->add_option("out", flags->out, "The file to write")
      ->required()
      ->check(NotEmpty)
      ->type_name("OUT");
  command->add_option("--type", flags->type, "Type of the file: " + GgufFileTypeNames())
      ->required()
      ->check(NotEmpty)
      ->type_name("TYPE");
  command->add_option("--threads", flags->threads, "Threads; 0: all cores")
      ->transform(WholeNumber(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  command->footer(
      "Which tensors get which type is the choice of llama.cpp. OUT has its name when it is "
      "whole.\n"
      "Example:\n  pawl quantize model-F16.gguf model-Q4_K_M.gguf --type Q4_K_M");
  command->callback([flags, &action] { action = [flags] { return QuantizeCommand(*flags); }; });
}

}  // namespace pawl::cli
