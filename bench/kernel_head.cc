// The end of a step: the head with masks and the draw (head.cuh), and filters on logits
// (process.cu).
#include <algorithm>
#include <memory>

#include "bench/kernel_bench.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reference/kernels.h"
#include "pawl/grammar.h"
#include "src/decode/sampler.h"

namespace pawl::PAWL_GPU {
namespace {

enum class Allowed { kAll, kHalf, kEight };
const char* NameOf(Allowed allowed) {
  return allowed == Allowed::kAll ? "all" : allowed == Allowed::kHalf ? "half" : "eight tokens";
}

struct Given {
  std::vector<float> host_x;
  std::vector<uint32_t> host_mask;
  std::vector<int32_t> host_list;
  HeadRows host_rows = {};
  std::unique_ptr<Device<float>> x, norm, logits;
  std::unique_ptr<Device<uint32_t>> mask;
  std::unique_ptr<Device<int32_t>> list;
  std::unique_ptr<Device<HeadRows>> rows;
  std::unique_ptr<Device<HeadState>> state;
  std::unique_ptr<Device<HeadAnswers>> answers;
};

// One mask for all rows, or none.
std::shared_ptr<Given> MakeGiven(int vocabulary, int rows, Allowed allowed) {
  auto given = std::make_shared<Given>();
  Bits random(21);
  given->host_mask.resize(static_cast<size_t>(vocabulary + 31) / 32);
  for (int t = 0; t < vocabulary; ++t) {
    const bool in = allowed == Allowed::kAll ||
                    (allowed == Allowed::kHalf && random() >> 63 != 0) ||
                    (allowed == Allowed::kEight && t % (vocabulary / 8) == 5);
    if (!in) continue;
    given->host_mask[static_cast<size_t>(t / 32)] |= 1u << t % 32;
    given->host_list.push_back(t);
  }
  for (int r = 0; r < rows; ++r) {
    given->host_rows.masks[r] = allowed == Allowed::kAll ? kEveryToken : 0;
    given->host_rows.limits[r] = vocabulary;
    given->host_rows.temperatures[r] = 0.8f;
    given->host_rows.seeds[r] = random();
    given->host_rows.positions[r] = static_cast<uint64_t>(r);
  }
  given->host_rows.list_count = static_cast<int32_t>(given->host_list.size());
  given->mask = std::make_unique<Device<uint32_t>>(given->host_mask);
  given->list = std::make_unique<Device<int32_t>>(given->host_list);
  given->rows = std::make_unique<Device<HeadRows>>(std::vector<HeadRows>{given->host_rows});
  given->state = std::make_unique<Device<HeadState>>(std::vector<HeadState>{HeadState{}});
  given->answers = std::make_unique<Device<HeadAnswers>>(size_t{1});
  return given;
}

// The tokens drawn are those that the host draws from the logits of the product, which has the same
// bits (and is checked against its own reference).
Case HeadCase(const WeightPool& pool, const BenchShape& shape, int rows, Allowed allowed) {
  const auto given = MakeGiven(shape.vocabulary, rows, allowed);
  const int width = PaddedColumns(shape.hidden);
  given->x = std::make_unique<Device<float>>(
      RandomFloats(static_cast<size_t>(rows) * static_cast<size_t>(width), 22));
  given->norm = std::make_unique<Device<float>>(RandomFloats(static_cast<size_t>(width), 23));
  const auto args = [=, &pool](int turn) {
    HeadSample sample;
    sample.product.parts[0].w = pool.OnDevice(shape.vocabulary, shape.hidden, turn);
    sample.product.x = given->x->data();
    sample.product.x_stride = width;
    sample.product.rows = rows;
    sample.product.norm = given->norm->data();
    sample.product.epsilon = 1e-5f;
    sample.masks = given->mask->data();
    sample.masks_stride = static_cast<int64_t>(given->host_mask.size());
    sample.rows = given->rows->data();
    if (allowed == Allowed::kEight) {
      sample.list = given->list->data();
      sample.most_listed = given->host_rows.list_count;
    }
    sample.state = given->state->data();
    sample.answers = given->answers->data();
    return sample;
  };
  const double share = given->host_rows.list_count / static_cast<double>(shape.vocabulary);
  Case made;
  made.bytes = share * static_cast<double>(pool.Bytes(shape.vocabulary, shape.hidden)) +
               4.0 * rows * shape.hidden + 4.0 * static_cast<double>(given->host_mask.size());
  made.flops = share * 2.0 * rows * shape.vocabulary * shape.hidden;
  made.bound = 0;
  made.turns = pool.Turns(shape.vocabulary, shape.hidden);
  made.run = [=](int turn, Stream stream) { return RunHeadSample(args(turn), stream); };
  made.error = [=, run = made.run]() {
    given->answers->Poison();
    Check(run(0, nullptr));
    const HeadAnswers got = given->answers->Values()[0];
    const Device<float> logits(static_cast<size_t>(rows) * static_cast<size_t>(shape.vocabulary));
    MatMul product = args(0).product;
    product.parts[0].y = logits.data();
    product.parts[0].y_stride = shape.vocabulary;
    Check(RunMatMul(product, nullptr));
    Deviation deviation;
    for (const int r : {0, rows - 1}) {
      const std::vector<float> row =
          logits.Values(static_cast<size_t>(r) * static_cast<size_t>(shape.vocabulary),
                        static_cast<size_t>(shape.vocabulary));
      MaskedRows host;
      host.logits = row.data();
      host.vocabulary = shape.vocabulary;
      host.masks = given->host_mask.data();
      host.masks_stride = static_cast<int64_t>(given->host_mask.size());
      host.count = 1;
      deviation.Same(got.tokens[r] == reference::Draw(host, 0, given->host_rows.temperatures[r],
                                                      given->host_rows.seeds[r],
                                                      given->host_rows.positions[r]));
    }
    return deviation.Relative();
  };
  return made;
}

// Top-k and top-p, next to the sampler.
Case ProcessCase(const BenchShape& shape, int rows) {
  const auto given = MakeGiven(shape.vocabulary, rows, Allowed::kHalf);
  const auto width = static_cast<size_t>(shape.vocabulary);
  const auto logits = std::make_shared<const std::vector<float>>(
      RandomFloats(static_cast<size_t>(rows) * width, 24, 8.0f));
  given->logits = std::make_unique<Device<float>>(*logits);
  std::vector<ProcessRow> process(static_cast<size_t>(rows));
  for (ProcessRow& row : process) {
    row.top_k = 50;
    row.top_p = 0.9f;
  }
  const auto device_process = std::make_shared<Device<ProcessRow>>(process);
  const auto seen = std::make_shared<Device<int32_t>>(size_t{2});
  Case made;
  // What half of the tokens are worth: no sector is left out.
  made.bytes = rows * (4.0 * shape.vocabulary + 4.0 * static_cast<double>(given->host_mask.size()));
  made.bound = 0;
  made.run = [=](int, Stream stream) {
    ProcessLogits args;
    args.logits = given->logits->data();
    args.logits_stride = shape.vocabulary;
    args.count = rows;
    args.masks = given->mask->data();
    args.masks_stride = static_cast<int64_t>(given->host_mask.size());
    args.rows = given->rows->data();
    args.process = device_process->data();
    args.seen = seen->data();
    args.answers = given->answers->data();
    return RunProcessLogits(args, stream);
  };
  made.error = [=, run = made.run]() {
    given->answers->Poison();
    Check(run(0, nullptr));
    const HeadAnswers got = given->answers->Values()[0];
    const Mask mask(0, given->host_mask);
    Deviation deviation;
    for (const int r : {0, rows - 1}) {
      SamplingParams params;
      params.temperature = given->host_rows.temperatures[r];
      params.seed = given->host_rows.seeds[r];
      params.top_k = 50;
      params.top_p = 0.9f;
      Sampler sampler(params);
      const Result<TokenId> expected =
          sampler.Sample(std::span(*logits).subspan(static_cast<size_t>(r) * width, width), &mask,
                         given->host_rows.positions[r], {});
      deviation.Same(expected.ok() && got.tokens[r] == *expected);
    }
    return deviation.Relative();
  };
  return made;
}

}  // namespace

void BenchHead(KernelBench& bench) {
  const BenchSizes& sizes = bench.sizes();
  const auto rows_of_a_call = [](int rows) { return std::min(rows, kMostSkinnyRows); };
  for (const DeviceWeight type : {DeviceWeight::kBf16, DeviceWeight::kI8}) {
    int64_t most = 0;
    int most_rows = 0;
    for (const BenchShape& shape : sizes.shapes) {
      most = std::max(most, MatrixBytes(type, shape.vocabulary, shape.hidden));
      most_rows = std::max(most_rows, shape.vocabulary);
    }
    std::unique_ptr<WeightPool> pool;
    for (const BenchShape& shape : sizes.shapes) {
      for (const int rows : sizes.rows) {
        for (const Allowed allowed : {Allowed::kAll, Allowed::kHalf, Allowed::kEight}) {
          const std::string what = std::string(shape.name) + " " + TypeName(type) + ", " +
                                   std::to_string(rows_of_a_call(rows)) + " rows, " +
                                   NameOf(allowed);
          bench.Add("head", what, [&] {
            if (pool == nullptr) {
              pool = std::make_unique<WeightPool>(type, most, most_rows, sizes.pool_bytes);
            }
            return HeadCase(*pool, shape, rows_of_a_call(rows), allowed);
          });
        }
      }
    }
  }
  for (const BenchShape& shape : sizes.shapes) {
    for (const int rows : sizes.rows) {
      bench.Add("process",
                std::string(shape.name) + ", " + std::to_string(rows_of_a_call(rows)) +
                    " rows, top-k and top-p",
                [&] { return ProcessCase(shape, rows_of_a_call(rows)); });
    }
  }
}

}  // namespace pawl::PAWL_GPU
