// Experts: choosing and grouping, and the products, for rows whose router has random scores, so
// that the experts in use are as many as they would be. Bytes are of the weights of those alone.
#include <memory>
#include <set>

#include "bench/kernel_bench.h"
#include "kernels/cuda/reference/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

struct ExpertShape {
  int experts, chosen;
};
// As gpt-oss 20B and Qwen3 30B-A3B have them; rows of w are those of a dense model's MLP by 8.
constexpr ExpertShape kExpertShapes[] = {{32, 4}, {128, 8}};

// Who is chosen, in host and device memory.
struct Routed {
  Routed(const ExpertShape& shape, int rows) : slots(rows * shape.chosen), of(shape) {
    scores = RandomFloats(static_cast<size_t>(rows * shape.experts), 61, 2.0f);
    host_rows.resize(static_cast<size_t>(rows));
    for (DeviceRow& row : host_rows) row.position = 0;
    device_scores = std::make_unique<Device<float>>(scores);
    device_rows = std::make_unique<Device<DeviceRow>>(host_rows);
    const auto count = static_cast<size_t>(slots);
    weights = std::make_unique<Device<float>>(count);
    experts = std::make_unique<Device<int32_t>>(count);
    sorted = std::make_unique<Device<int32_t>>(count);
    rows_of_sorted = std::make_unique<Device<int32_t>>(count);
    runs = std::make_unique<Device<ExpertRun>>(static_cast<size_t>(shape.experts));
    run_count = std::make_unique<Device<int32_t>>(size_t{1});
    choose.scores = device_scores->data();
    choose.scores_stride = shape.experts;
    choose.rows = device_rows->data();
    choose.count = rows;
    choose.experts = shape.experts;
    choose.chosen = shape.chosen;
    choose.normalized = true;
    choose.slot_experts = experts->data();
    choose.slot_weights = weights->data();
    group.slot_experts = experts->data();
    group.count = slots;
    group.experts = shape.experts;
    group.chosen = shape.chosen;
    group.runs = runs->data();
    group.run_count = run_count->data();
    group.slots = sorted->data();
    group.rows = rows_of_sorted->data();
  }
  Status Run(Stream stream) const {
    const Status status = RunChooseExperts(choose, stream);
    return status.ok() ? RunGroupSlots(group, stream) : status;
  }
  std::vector<reference::Chosen> Expected(int row) const {
    ChooseExperts host = choose;
    host.scores = scores.data();
    return reference::ChosenOf(host, row);
  }
  int slots;
  ExpertShape of;
  std::vector<float> scores;
  std::vector<DeviceRow> host_rows;
  std::unique_ptr<Device<float>> device_scores, weights;
  std::unique_ptr<Device<DeviceRow>> device_rows;
  std::unique_ptr<Device<int32_t>> experts, sorted, rows_of_sorted, run_count;
  std::unique_ptr<Device<ExpertRun>> runs;
  ChooseExperts choose;
  GroupSlots group;
};

Case RouteCase(const ExpertShape& shape, int rows) {
  const auto routed = std::make_shared<Routed>(shape, rows);
  Case made;
  made.bytes = 4.0 * rows * shape.experts + 16.0 * routed->slots;
  made.bound = 1e-5;
  made.run = [=](int, Stream stream) { return routed->Run(stream); };
  made.error = [=] {
    Check(routed->Run(nullptr));
    const std::vector<int32_t> experts = routed->experts->Values();
    const std::vector<float> weights = routed->weights->Values();
    Deviation deviation;
    for (int r = 0; r < rows; r += 1 + rows / 8) {
      const std::vector<reference::Chosen> expected = routed->Expected(r);
      for (size_t i = 0; i < expected.size(); ++i) {
        const size_t at = static_cast<size_t>(r * shape.chosen) + i;
        deviation.Same(experts[at] == expected[i].expert);
        deviation.Add(weights[at], expected[i].weight);
      }
    }
    std::vector<int32_t> sorted = routed->sorted->Values();
    for (size_t i = 1; i < sorted.size(); ++i) {
      const auto a = static_cast<size_t>(sorted[i - 1]), b = static_cast<size_t>(sorted[i]);
      deviation.Same(experts[a] < experts[b] || (experts[a] == experts[b] && a < b));
    }
    return deviation.Relative();
  };
  return made;
}

// The matrices of all experts behind each other, and those of the other factor behind them.
ExpertMatrices MatricesOf(const DeviceMatrix& first, int skipped) {
  ExpertMatrices all;
  all.first = first;
  all.data_stride = (MatrixBytes(first.type, first.rows, first.columns) + 255) / 256 * 256;
  all.scales_stride = int64_t{first.groups} * RowTiles(first.rows) * kTileRows;
  all.first.data = static_cast<const char*>(first.data) + skipped * all.data_stride;
  if (first.scales != nullptr) all.first.scales = first.scales + skipped * all.scales_stride;
  return all;
}

Case ProductCase(const WeightPool& pool, const ExpertShape& shape, int outputs, int columns,
                 bool gated, int rows) {
  const auto routed = std::make_shared<Routed>(shape, rows);
  const int64_t width = PaddedColumns(columns);
  const int inputs = gated ? rows : routed->slots;
  const auto host_x = std::make_shared<const std::vector<float>>(
      RandomFloats(static_cast<size_t>(inputs * width), 62));
  const auto x = std::make_shared<Device<float>>(*host_x);
  const auto y = std::make_shared<Device<float>>(static_cast<size_t>(routed->slots) *
                                                 static_cast<size_t>(outputs));
  const auto args = [=, &pool](bool on_host) {
    const DeviceMatrix first =
        on_host ? pool.OnHost(outputs, columns) : pool.OnDevice(outputs, columns, 0);
    ExpertProducts product;
    product.w = MatricesOf(first, 0);
    product.up = MatricesOf(first, shape.experts);
    product.x = on_host ? host_x->data() : x->data();
    product.x_stride = width;
    product.x_rows = gated ? routed->group.rows : routed->group.slots;
    product.runs = routed->group.runs;
    product.run_count = routed->group.run_count;
    product.slots = routed->group.slots;
    product.most_runs = std::min(shape.experts, routed->slots);
    product.slots_a_run = std::min(rows, (routed->slots + shape.experts - 1) / shape.experts);
    product.gate = gated ? Gate::kSilu : Gate::kNone;
    product.y = y->data();
    product.y_stride = outputs;
    return product;
  };
  std::set<int> used;
  for (int r = 0; r < rows; ++r) {
    for (const reference::Chosen& c : routed->Expected(r)) used.insert(c.expert);
  }
  Case made;
  const double matrices = static_cast<double>(used.size()) * (gated ? 2 : 1);
  made.bytes = matrices * static_cast<double>(pool.Bytes(outputs, columns)) +
               4.0 * inputs * columns + 4.0 * routed->slots * outputs;
  made.flops = 2.0 * routed->slots * outputs * columns * (gated ? 2 : 1);
  made.bound = 1e-4;
  Check(routed->Run(nullptr));
  Check(Synchronize(nullptr));
  made.run = [=](int, Stream stream) { return RunExpertProducts(args(false), stream); };
  made.error = [=, run = made.run] {
    y->Poison();
    Check(run(0, nullptr));
    const std::vector<float> got = y->Values();
    const ExpertProducts host = args(true);
    Deviation deviation;
    deviation.Written(got);
    Bits random(63);
    for (int n = 0; n < 24; ++n) {
      const int r = n == 0 ? rows - 1 : static_cast<int>(random.Below(static_cast<uint32_t>(rows)));
      const int k = static_cast<int>(random.Below(static_cast<uint32_t>(shape.chosen)));
      const int o = static_cast<int>(random.Below(static_cast<uint32_t>(outputs)));
      const int slot = r * shape.chosen + k;
      const int expert = routed->Expected(r)[static_cast<size_t>(k)].expert;
      deviation.Add(
          got[static_cast<size_t>(slot) * static_cast<size_t>(outputs) + static_cast<size_t>(o)],
          reference::ExpertAt(host, expert, gated ? r : slot, o));
    }
    return deviation.Relative();
  };
  return made;
}

}  // namespace

void BenchExperts(KernelBench& bench) {
  const BenchSizes& sizes = bench.sizes();
  for (const ExpertShape& shape : kExpertShapes) {
    const std::string of = std::to_string(shape.chosen) + " of " + std::to_string(shape.experts);
    for (const int rows : {1, sizes.rows.back()}) {
      bench.Add("experts.route", of + ", " + std::to_string(rows) + " rows",
                [&] { return RouteCase(shape, rows); });
    }
  }
  const BenchShape& model = sizes.shapes[sizes.shapes.size() > 1 ? 1 : 0];
  const int hidden = model.hidden, inner = std::max(model.inner / 8, 16);
  for (const DeviceWeight type : {DeviceWeight::kBf16, DeviceWeight::kI8, DeviceWeight::kI4}) {
    const ExpertShape& shape = kExpertShapes[0];
    std::unique_ptr<WeightPool> pool;
    const auto weights = [&]() -> const WeightPool& {
      if (pool == nullptr) {
        const int64_t all = shape.experts * std::max(WeightPool::BytesForTwo(type, inner, hidden),
                                                     WeightPool::BytesForTwo(type, hidden, inner));
        pool = std::make_unique<WeightPool>(type, all, std::max(hidden, inner), all);
      }
      return *pool;
    };
    for (const bool gated : {true, false}) {
      for (const int rows : sizes.rows) {
        const std::string what = std::string(model.name) + (gated ? " gate_up " : " down ") +
                                 TypeName(type) + ", " + std::to_string(rows) + " rows";
        bench.Add("experts", what, [&] {
          return ProductCase(weights(), shape, gated ? inner : hidden, gated ? hidden : inner,
                             gated, rows);
        });
      }
    }
  }
}

}  // namespace pawl::PAWL_GPU
