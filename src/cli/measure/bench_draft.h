// The parts of `pawl bench draft`: one file for each.
#ifndef PAWL_SRC_CLI_MEASURE_BENCH_DRAFT_H_
#define PAWL_SRC_CLI_MEASURE_BENCH_DRAFT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pawl/generation.h"
#include "src/cli/engine.h"

namespace pawl::cli {

struct BenchDraftFlags {
  // --replay
  std::string replay, tokenizer, sources = "all", json;
  int nodes = 16, limit = 0;
  bool no_filter = false;
  std::string text_file;
  // --replay --shape
  std::string shape, dtype = "stored", kernels = "auto";
  int threads = 0;
  int per_kind = 6;
  bool all_nodes = false;
  // --replay --suffix
  int64_t suffix = 0;
  // --replay --tools, --memory-curve
  bool tools = false, memory_curve = false;
  // --speed-bench, --goodput
  std::string speed_bench;
  bool goodput = false, always = false;
  int rounds = 3;
  std::string verify = "coupled", shape_of_trees = "heap";
  // --equal
  bool equal = false;
  std::string model;
  std::vector<std::string> draft_models;
  std::vector<std::string> schemas;
  std::string prompt;
  std::vector<float> temperatures = {0, 0.7f, 1.5f};
  int seeds = 20, max_tokens = 200;
  std::vector<int> batches = {1, 8};
};

// Relative to the source tree.
inline constexpr const char* kSpeedBenchTexts = "bench/texts/speed_bench";
inline constexpr const char* kBenchDraft = "bench draft";

// Errors of the sources and of what they need, at their options.
inline Error AtSources(Error error) {
  if (error.place == "draft" || error.place == "--draft") error.place = "--sources";
  return error;
}

// Each returns the exit code.
int ReplayCounts(const BenchDraftFlags& flags);
int ReplayTimes(const BenchDraftFlags& flags);
int SuffixTimes(const BenchDraftFlags& flags);
int CheckEqual(const BenchDraftFlags& flags);
int ReplayTools(const BenchDraftFlags& flags);
int MemoryCurve(const BenchDraftFlags& flags);
int SpeedBench(const BenchDraftFlags& flags);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MEASURE_BENCH_DRAFT_H_
