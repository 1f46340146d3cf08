// How long does a call of a diffusion model wait for its lattice?
//
//   build/bin/lattice_bench SCHEMAS TOKENIZER [SCHEMAS_AT_MOST [CALLS_OF_EACH [SHAPE]]]
//   SCHEMAS: a folder of MaskBench files, or of schemas; default: 200 of them, 16 calls of each
//   SHAPE: 135m, 0.5b, 1b or 8b: how long calls of a model of this shape take, with the tokenizer's
//   vocabulary and random weights
//
// A canvas of 256 positions in blocks of 32, 32 candidates and 64 states, stepwise with 8 calls a
// block. The laws are random, so that many states stay; those of a model that is sure have fewer.
// One thread. What is measured is MaskFiller::Take, which has the lattice, its weights, the commits
// and the forced texts behind them. Calls of a model are those of a canvas behind 64 tokens of a
// prompt: all rows, or with --cache dual those of a block. They run between the lattices, so that
// both have the same machine. The last line is JSON: milliseconds of the processor for a call,
// look-ups, and the lattice's share of lattice and model.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/decode/diffusion/mask_filler.h"
#include "src/model/random_weights.h"
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

class Lattices {
 public:
  Lattices(std::shared_ptr<const Vocabulary> vocabulary, int calls)
      : vocabulary_(std::move(vocabulary)),
        compiler_(vocabulary_),
        laws_(RandomLaws(vocabulary_->size())),
        calls_(calls) {}

  // false: the schema is not used.
  bool Measure(const std::filesystem::path& file) {
    const auto grammar = compiler_.CompileJsonSchema(SchemaOf(file));
    if (!grammar.ok()) return false;
    FillTask task;
    task.vocabulary = vocabulary_.get();
    task.constraint = ForLoop(MakeConstraint(*grammar), *vocabulary_);
    task.rules.ends.assign(vocabulary_->end_tokens().begin(), vocabulary_->end_tokens().end());
    task.rules.width = vocabulary_->size();
    task.length = kCanvas;
    FillOptions options;
    options.block_length = kBlock;
    options.steps = kCanvas / kBlock * 8;
    MaskFiller filler(std::move(task), options);
    if (!filler.Start().ok()) return false;
    ++schemas_;
    for (int call = 0; call < calls_ && !filler.done(); ++call) {
      std::vector<std::vector<float>> scores;
      for (size_t n = filler.Wanted().size(); n > 0; --n) {
        scores.push_back(laws_[random_() % kLaws]);
      }
      const int64_t before = filler.looks();
      const double begin = ProcessorMilliseconds();
      if (!filler.Take(std::move(scores)).ok()) std::abort();
      milliseconds_.push_back(ProcessorMilliseconds() - begin);
      looks_ += filler.looks() - before;
    }
    return true;
  }
  int schemas() const { return schemas_; }
  double Average() const {
    return std::accumulate(milliseconds_.begin(), milliseconds_.end(), 0.0) /
           static_cast<double>(milliseconds_.size());
  }
  std::string Json() {
    std::ranges::sort(milliseconds_);
    const auto at = [&](double share) {
      return milliseconds_[static_cast<size_t>(share *
                                               static_cast<double>(milliseconds_.size() - 1))];
    };
    char text[400];
    std::snprintf(
        text, sizeof text,
        "\"schemas\":%d,\"calls\":%zu,\"tokens\":%d,\"block\":%d,\"candidates\":32,\"states\":64,"
        "\"ms\":{\"avg\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f},"
        "\"looks_a_call\":%.1f",
        schemas_, milliseconds_.size(), vocabulary_->size(), kBlock, Average(), at(0.5), at(0.9),
        at(0.99), milliseconds_.back(),
        static_cast<double>(looks_) / static_cast<double>(milliseconds_.size()));
    return text;
  }

 private:
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const Compiler compiler_;
  const std::vector<std::vector<float>> laws_;
  const int calls_;
  std::mt19937 random_{7};
  std::vector<double> milliseconds_;
  int64_t looks_ = 0;
  int schemas_ = 0;
};

// Calls of a model with random weights: a prompt and a canvas of masks.
class ModelCalls {
 public:
  // Exits where there is no such shape.
  ModelCalls(const std::string& shape, int tokens) {
    auto config = ShapeNamed(shape);
    if (!config) Fail("no shape " + shape);
    config->both_sides = config->shifted_logits = true;
    config->vocabulary = tokens;
    config->mask_token = 0;
    ModelOptions options;
    options.threads = 1;
    auto model = RandomModel(*config, options, 1);
    if (!model.ok()) Fail(model.error().ToString());
    model_ = *std::move(model);
    const auto sequence = model_->NewSequence(kPrompt + kCanvas);
    if (!sequence.ok()) Fail(sequence.error().ToString());
    sequence_ = *sequence;
    logits_.resize(static_cast<size_t>(kBlock) * static_cast<size_t>(tokens));
  }

  // All rows, then those of a block with what stands around it kept.
  void Measure() {
    all_ += Call(0, kPrompt + kCanvas);
    block_ += Call(kPrompt - 1, kPrompt + kBlock - 1);
    ++rounds_;
  }
  std::string Json(double lattice) const {
    const double all = all_ / rounds_, block = block_ / rounds_;
    char text[300];
    std::snprintf(text, sizeof text,
                  ",\"model\":{\"rounds\":%d,\"all_rows_ms\":%.1f,\"block_ms\":%.1f,"
                  "\"share_of_all_rows\":%.4f,\"share_of_block\":%.4f}",
                  rounds_, all, block, lattice / (lattice + all), lattice / (lattice + block));
    return text;
  }

 private:
  static constexpr int kPrompt = 64;
  [[noreturn]] static void Fail(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(1);
  }
  double Call(int from, int to) {
    std::vector<Row> rows;
    for (int i = from; i < to; ++i) {
      const int at = i - (kPrompt - 1);  // the logits of a position come from the row in front
      rows.push_back({.token = i < kPrompt ? i + 1 : 0,
                      .position = i,
                      .sequence = sequence_,
                      .output = at >= 0 && at < kBlock ? at : -1});
    }
    const double begin = ProcessorMilliseconds();
    if (const Status status = model_->Forward(rows, logits_); !status.ok()) {
      Fail(status.error().ToString());
    }
    return ProcessorMilliseconds() - begin;
  }

  std::unique_ptr<Model> model_;
  SequenceId sequence_ = {};
  std::vector<float> logits_;
  double all_ = 0, block_ = 0;
  int rounds_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: lattice_bench SCHEMAS TOKENIZER [SCHEMAS_AT_MOST [CALLS [SHAPE]]]\n");
    return 2;
  }
  const int most = argc > 3 ? std::atoi(argv[3]) : 200, calls = argc > 4 ? std::atoi(argv[4]) : 16;
  const auto tokenizer = Tokenizer::FromFile(argv[2]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 1;
  }
  const std::shared_ptr<const Vocabulary> vocabulary = *(*tokenizer)->MakeVocabulary();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry);
  std::ranges::sort(files);
  std::mt19937 random(7);
  std::ranges::shuffle(files, random);
  Lattices lattices(vocabulary, calls);
  std::unique_ptr<ModelCalls> model;
  if (argc > 5) model = std::make_unique<ModelCalls>(argv[5], vocabulary->size());
  constexpr int kSchemasARound = 20;
  for (const std::filesystem::path& file : files) {
    if (lattices.schemas() == most) break;
    if (lattices.Measure(file) && model != nullptr && lattices.schemas() % kSchemasARound == 0) {
      model->Measure();
    }
  }
  if (lattices.schemas() == 0) return 1;
  const double average = lattices.Average();
  std::printf("{%s%s}\n", lattices.Json().c_str(),
              model != nullptr ? model->Json(average).c_str() : "");
  return 0;
}
