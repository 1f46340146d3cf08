// What a call of half of a model's layers takes next to a step of all layers, for drafts by the
// model's own layers (src/decode/draft/self.cc).
//
//   build/bin/layer_calls [SHAPE [ROUNDS]]
//
// Random weights of the shape ("1b") as int8, one row, one thread, 128 tokens before it. A step of
// all layers and calls of the first half of them take turns: with the whole head, under a mask that
// leaves the first tenth of the head, and under one that leaves every tenth row. A figure is the
// median of the ratios of processor time, with the least and the most.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <vector>

#include "src/model/random_weights.h"

namespace {

using namespace pawl;

constexpr int kContext = 128;

double Spent() {
  timespec spent = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

class Caller {
 public:
  Caller(Model& model, SequenceId sequence)
      : model_(model),
        sequence_(sequence),
        logits_(static_cast<size_t>(model.info().vocabulary_size)) {}

  // Seconds of one row behind the context; negative: it failed.
  double Run(std::span<const int> layers, std::span<const uint32_t> allowed) {
    model_.Truncate(sequence_, kContext);
    const Row row = {.token = 7,
                     .position = kContext,
                     .sequence = sequence_,
                     .ancestors = 0,
                     .output = 0,
                     .allowed = allowed};
    const double begin = Spent();
    ModelCall call;
    call.rows = {&row, 1};
    call.logits = logits_;
    call.layers = layers;
    const Status ran = model_.Run(call);
    return ran.ok() ? Spent() - begin : -1;
  }
  bool Fill() {
    std::vector<Row> rows;
    for (int i = 0; i < kContext; ++i) {
      rows.push_back(
          {.token = i, .position = i, .sequence = sequence_, .ancestors = 0, .output = -1});
    }
    ModelCall call;
    call.rows = rows;
    call.logits = logits_;
    return model_.Run(call).ok();
  }

 private:
  Model& model_;
  const SequenceId sequence_;
  std::vector<float> logits_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* const shape = argc > 1 ? argv[1] : "1b";
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 15;
  const std::optional<TransformerConfig> config = ShapeNamed(shape);
  if (!config) {
    std::fprintf(stderr, "%s: no shape\n", shape);
    return 1;
  }
  ModelOptions options;
  options.dtype = WeightDtype::kInt8;
  options.threads = 1;
  const Result<std::unique_ptr<Model>> model = RandomModel(*config, options, 1);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().ToString().c_str());
    return 1;
  }
  const Result<SequenceId> sequence = (*model)->NewSequence(2 * kContext);
  if (!sequence.ok()) return 1;
  const ModelInfo& info = (*model)->info();
  const auto words = static_cast<size_t>(info.vocabulary_size + 31) / 32;
  std::vector<uint32_t> piece(words, 0), scattered(words, 0);
  for (size_t t = 0; t < static_cast<size_t>(info.vocabulary_size); ++t) {
    if (t < static_cast<size_t>(info.vocabulary_size) / 10) piece[t / 32] |= 1u << t % 32;
    if (t % 10 == 0) scattered[t / 32] |= 1u << t % 32;
  }
  std::vector<int> half(static_cast<size_t>(info.layers) / 2);
  std::iota(half.begin(), half.end(), 0);
  Caller caller(**model, *sequence);
  if (!caller.Fill()) return 1;
  struct Case {
    const char* name;
    std::span<const uint32_t> allowed;
    std::vector<double> ratios = {};
  };
  Case cases[] = {{"whole head", {}}, {"first tenth", piece}, {"every tenth row", scattered}};
  for (int round = -1; round < rounds; ++round) {
    for (Case& one : cases) {
      const double all = caller.Run({}, {}), part = caller.Run(half, one.allowed);
      if (all <= 0 || part <= 0) return 1;
      if (round >= 0) one.ratios.push_back(part / all);
    }
  }
  for (Case& one : cases) {
    std::sort(one.ratios.begin(), one.ratios.end());
    std::printf("%zu of %d layers, %s: %.3f of a step (%.3f to %.3f)\n", half.size(), info.layers,
                one.name, one.ratios[one.ratios.size() / 2], one.ratios.front(), one.ratios.back());
  }
  return 0;
}
