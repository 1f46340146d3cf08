// How long does a call of a diffusion model wait for its lattice?
//
//   build/bin/lattice_bench SCHEMAS TOKENIZER [SCHEMAS_AT_MOST [CALLS_OF_EACH]]
//   SCHEMAS: a folder of MaskBench files, or of schemas; default: 200 of them, 16 calls of each
//
// A canvas of 256 positions in blocks of 32, 32 candidates and 64 states, stepwise with 8 calls a
// block. The laws are random, so that many states stay; those of a model that is sure have fewer.
// One thread. What is measured is MaskFiller::Take, which has the lattice, its weights, the commits
// and the forced texts behind them. The last line is JSON: milliseconds of the processor for a
// call, and look-ups.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/decode/diffusion/mask_filler.h"
#include "src/text/tokenizer.h"

namespace {

using namespace pawl;

// Of this thread, so that other programs change nothing.
double ProcessorMilliseconds() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e3 + static_cast<double>(at.tv_nsec) / 1e6;
}

constexpr int kCanvas = 256, kBlock = 32, kLaws = 64;

std::vector<std::vector<float>> RandomLaws(int width) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<std::vector<float>> laws(kLaws);
  for (std::vector<float>& law : laws) {
    double sum = 0;
    for (int t = 0; t < width; ++t) {
      law.push_back(normal(random));
      sum += std::exp(static_cast<double>(law.back()));
    }
    for (float& x : law) x -= static_cast<float>(std::log(sum));
  }
  return laws;
}

std::string SchemaOf(const std::filesystem::path& path) {
  const Result<std::string> text = ReadFile(path.string());
  if (!text.ok()) return "";
  const Result<json::Value> value = json::Parse(*text);
  if (!value.ok()) return "";
  const json::Value* const inner = value->Find("schema");
  return inner == nullptr || value->Find("tests") == nullptr ? *text : json::Dump(*inner);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: lattice_bench SCHEMAS TOKENIZER [SCHEMAS_AT_MOST [CALLS]]\n");
    return 2;
  }
  const int most = argc > 3 ? std::atoi(argv[3]) : 200, calls = argc > 4 ? std::atoi(argv[4]) : 16;
  const auto tokenizer = Tokenizer::FromFile(argv[2]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 1;
  }
  const auto vocabulary = *(*tokenizer)->MakeVocabulary();
  const Compiler compiler(vocabulary);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry);
  std::ranges::sort(files);
  std::mt19937 random(7);
  std::ranges::shuffle(files, random);
  const auto laws = RandomLaws(vocabulary->size());
  std::vector<double> milliseconds;
  int64_t looks = 0;
  int schemas = 0;
  for (const std::filesystem::path& file : files) {
    if (schemas == most) break;
    const auto grammar = compiler.CompileJsonSchema(SchemaOf(file));
    if (!grammar.ok()) continue;
    FillTask task;
    task.vocabulary = vocabulary.get();
    task.constraint = ForLoop(MakeConstraint(*grammar), *vocabulary);
    task.rules.ends.assign(vocabulary->end_tokens().begin(), vocabulary->end_tokens().end());
    task.rules.width = vocabulary->size();
    task.length = kCanvas;
    FillOptions options;
    options.block_length = kBlock;
    options.steps = kCanvas / kBlock * 8;
    MaskFiller filler(task, options);
    if (!filler.Start().ok()) continue;
    ++schemas;
    for (int call = 0; call < calls && !filler.done(); ++call) {
      std::vector<std::vector<float>> scores;
      for (size_t n = filler.Wanted().size(); n > 0; --n) scores.push_back(laws[random() % kLaws]);
      const int64_t before = filler.looks();
      const double begin = ProcessorMilliseconds();
      if (!filler.Take(std::move(scores)).ok()) return 1;
      milliseconds.push_back(ProcessorMilliseconds() - begin);
      looks += filler.looks() - before;
    }
  }
  if (milliseconds.empty()) return 1;
  double sum = 0;
  for (const double ms : milliseconds) sum += ms;
  std::ranges::sort(milliseconds);
  const auto at = [&](double share) {
    return milliseconds[static_cast<size_t>(share * static_cast<double>(milliseconds.size() - 1))];
  };
  const auto count = static_cast<double>(milliseconds.size());
  std::printf(
      "{\"schemas\":%d,\"calls\":%zu,\"tokens\":%d,\"block\":%d,\"candidates\":32,\"states\":64,"
      "\"ms\":{\"avg\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f},"
      "\"looks_a_call\":%.1f}\n",
      schemas, milliseconds.size(), vocabulary->size(), kBlock, sum / count, at(0.5), at(0.9),
      at(0.99), milliseconds.back(), static_cast<double>(looks) / count);
  return 0;
}
