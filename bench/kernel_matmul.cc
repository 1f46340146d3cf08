// Products: those for few rows with what is folded in (matmul.cuh), the library's, and weights
// unpacked for it. 256 rows are four calls of 64, as the engine makes them without a library.
#include <memory>

#include "bench/kernel_bench.h"
#include "kernels/cuda/reference/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

struct Product {
  const char* name;
  int parts;
  int outputs[3];
  int columns;
  bool norm, gated, add;
};
std::vector<Product> ProductsOf(const BenchShape& s) {
  const int q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  return {{"qkv", 3, {q, kv, kv}, s.hidden, true, false, false},
          {"o", 1, {s.hidden}, q, false, false, true},
          {"gate_up", 1, {s.inner}, s.hidden, true, true, false},
          {"down", 1, {s.hidden}, s.inner, false, false, true},
          {"head", 1, {s.vocabulary}, s.hidden, true, false, false}};
}

// Everything that a case holds on to.
struct Given {
  std::unique_ptr<Device<float>> x, norm, y;
  std::vector<float> host_x, host_norm, before;
  MatMul host;
};

Case MatMulCase(const WeightPool& pool, const Product& p, int rows) {
  const auto given = std::make_shared<Given>();
  const int width = PaddedColumns(p.columns), outputs = p.outputs[0] + p.outputs[1] + p.outputs[2];
  const auto count = static_cast<size_t>(rows) * static_cast<size_t>(outputs);
  given->host_x = RandomFloats(static_cast<size_t>(rows) * static_cast<size_t>(width), 1);
  given->host_norm = RandomFloats(static_cast<size_t>(width), 2);
  given->before = RandomFloats(p.add ? count : 0, 3);
  given->x = std::make_unique<Device<float>>(given->host_x);
  given->norm = std::make_unique<Device<float>>(given->host_norm);
  given->y = std::make_unique<Device<float>>(count);

  // With the first part's results, then the second's, then the third's.
  const auto args = [=, &pool](int turn, bool on_host) {
    MatMul matmul;
    matmul.part_count = p.parts;
    float* y = given->y->data();
    for (int i = 0; i < p.parts; ++i) {
      MatMulPart& part = matmul.parts[i];
      part.w = on_host ? pool.OnHost(p.outputs[i], p.columns)
                       : pool.OnDevice(p.outputs[i], p.columns, turn);
      if (p.gated) {
        part.up = on_host ? pool.OnHost(p.outputs[i], p.columns, true)
                          : pool.OnDevice(p.outputs[i], p.columns, turn, true);
      }
      part.y = y;
      part.y_stride = p.outputs[i];
      y += int64_t{rows} * p.outputs[i];
    }
    matmul.x = on_host ? given->host_x.data() : given->x->data();
    matmul.x_stride = width;
    if (p.norm) matmul.norm = on_host ? given->host_norm.data() : given->norm->data();
    matmul.epsilon = 1e-5f;
    matmul.gate = p.gated ? Gate::kSilu : Gate::kNone;
    matmul.add = p.add;
    return matmul;
  };
  Case made;
  for (int i = 0; i < p.parts; ++i) {
    const auto weights = static_cast<double>(pool.Bytes(p.outputs[i], p.columns));
    made.bytes += weights * (p.gated ? 2 : 1);
    made.flops += 2.0 * rows * p.outputs[i] * p.columns * (p.gated ? 2 : 1);
  }
  made.bytes += 4.0 * rows * (p.columns + outputs * (p.add ? 2 : 1));
  made.bound = 1e-4;
  made.turns = pool.Turns(p.outputs[0], p.columns);
  made.run = [=](int turn, Stream stream) -> Status {
    MatMul matmul = args(turn, false);
    for (int first = 0; first < rows; first += kMostSkinnyRows) {
      matmul.rows = std::min(rows - first, kMostSkinnyRows);
      if (Status status = RunMatMul(matmul, stream); !status.ok()) return status;
      matmul.x += int64_t{kMostSkinnyRows} * width;
      for (int i = 0; i < p.parts; ++i) {
        matmul.parts[i].y += int64_t{kMostSkinnyRows} * p.outputs[i];
      }
    }
    return {};
  };
  made.error = [=, run = made.run]() {
    if (p.add) {
      given->y->Set(given->before);
    } else {
      given->y->Poison();
    }
    Check(run(0, nullptr));
    const std::vector<float> got = given->y->Values();
    Deviation deviation;
    deviation.Written(got);
    const MatMul host = args(0, true);
    Bits random(7);
    size_t part_begin = 0;
    for (int i = 0; i < p.parts; ++i) {
      for (int n = 0; n < 24; ++n) {
        const int r =
            n % 2 == 0 ? rows - 1 : static_cast<int>(random.Below(static_cast<uint32_t>(rows)));
        // The last output is one of them.
        const int o = n == 0 ? p.outputs[i] - 1
                             : static_cast<int>(random.Below(static_cast<uint32_t>(p.outputs[i])));
        const size_t at = part_begin + static_cast<size_t>(r) * static_cast<size_t>(p.outputs[i]) +
                          static_cast<size_t>(o);
        deviation.Add(got[at], reference::MatMulAt(host, i, r, o, p.add ? given->before[at] : 0.0));
      }
      part_begin += static_cast<size_t>(rows) * static_cast<size_t>(p.outputs[i]);
    }
    return deviation.Relative();
  };
  return made;
}

Case LibraryCase(const WeightPool& pool, Library& library, const Product& p, int rows) {
  const int width = PaddedColumns(p.columns), outputs = p.outputs[0];
  const auto host_x = std::make_shared<const std::vector<uint16_t>>(
      RandomBf16(static_cast<size_t>(rows) * static_cast<size_t>(width), 4));
  const auto x = std::make_shared<Device<uint16_t>>(*host_x);
  const auto y =
      std::make_shared<Device<float>>(static_cast<size_t>(rows) * static_cast<size_t>(outputs));
  Case made;
  made.bytes = static_cast<double>(pool.Bytes(outputs, p.columns)) +
               double{2.0} * rows * p.columns + 4.0 * rows * outputs;
  made.flops = 2.0 * rows * outputs * p.columns;
  made.bound = 1e-4;
  made.turns = pool.Turns(outputs, p.columns);
  made.run = [=, &pool, &library](int turn, Stream stream) {
    LibraryProduct product;
    product.w = static_cast<const uint16_t*>(pool.OnDevice(outputs, p.columns, turn).data);
    product.x = x->data();
    product.y = y->data();
    product.w_stride = product.x_stride = width;
    product.y_stride = outputs;
    product.outputs = outputs;
    product.columns = p.columns;
    product.rows = rows;
    return library.Run(product, stream);
  };
  made.error = [=, &pool, run = made.run]() {
    y->Poison();
    Check(run(0, nullptr));
    const std::vector<float> got = y->Values();
    const DeviceMatrix w = pool.OnHost(outputs, p.columns);
    Deviation deviation;
    deviation.Written(got);
    Bits random(8);
    for (int n = 0; n < 24; ++n) {
      const int r = static_cast<int>(random.Below(static_cast<uint32_t>(rows)));
      const int o = static_cast<int>(random.Below(static_cast<uint32_t>(outputs)));
      double sum = 0;
      for (int k = 0; k < p.columns; ++k) {
        sum += reference::WeightAt(w, o, k) *
               reference::Bf16Value((*host_x)[static_cast<size_t>(r * width + k)]);
      }
      deviation.Add(
          got[static_cast<size_t>(r) * static_cast<size_t>(outputs) + static_cast<size_t>(o)], sum);
    }
    return deviation.Relative();
  };
  return made;
}

Case UnpackCase(const WeightPool& pool, const Product& p) {
  const int outputs = p.outputs[0], width = PaddedColumns(p.columns);
  const auto to =
      std::make_shared<Device<uint16_t>>(static_cast<size_t>(outputs) * static_cast<size_t>(width));
  Case made;
  made.bytes = static_cast<double>(pool.Bytes(outputs, p.columns)) + 2.0 * outputs * width;
  made.bound = 1.0 / 256;  // bf16
  made.turns = pool.Turns(outputs, p.columns);
  made.run = [=, &pool](int turn, Stream stream) {
    return RunUnpack(pool.OnDevice(outputs, p.columns, turn), to->data(), stream);
  };
  made.error = [=, &pool, run = made.run]() {
    to->Poison();
    Check(run(0, nullptr));
    const std::vector<uint16_t> got = to->Values();
    const DeviceMatrix w = pool.OnHost(outputs, p.columns);
    Deviation deviation;
    for (const uint16_t bits : got) deviation.Same(bits != 0xffff);
    Bits random(9);
    for (int n = 0; n < 500; ++n) {
      const int o = static_cast<int>(random.Below(static_cast<uint32_t>(outputs)));
      const int k = static_cast<int>(random.Below(static_cast<uint32_t>(p.columns)));
      deviation.Add(
          reference::Bf16Value(
              got[static_cast<size_t>(o) * static_cast<size_t>(width) + static_cast<size_t>(k)]),
          reference::WeightAt(w, o, k));
    }
    return deviation.Relative();
  };
  return made;
}

}  // namespace

void BenchMatMul(KernelBench& bench) {
  const BenchSizes& sizes = bench.sizes();
  for (const DeviceWeight type : {DeviceWeight::kBf16, DeviceWeight::kF16, DeviceWeight::kFp8,
                                  DeviceWeight::kI8, DeviceWeight::kI4, DeviceWeight::kF32}) {
    // fp32 weights are for the smallest models.
    std::vector<BenchShape> shapes = sizes.shapes;
    if (type == DeviceWeight::kF32) shapes.resize(1);
    int64_t most = 0;
    int most_rows = 0;
    for (const BenchShape& shape : shapes) {
      for (const Product& p : ProductsOf(shape)) {
        most = std::max(most, p.gated ? WeightPool::BytesForTwo(type, p.outputs[0], p.columns)
                                      : MatrixBytes(type, p.outputs[0], p.columns));
        most_rows = std::max(most_rows, p.outputs[0]);
      }
    }
    std::unique_ptr<WeightPool> pool;  // made when a case is asked for
    const auto weights = [&]() -> const WeightPool& {
      if (pool == nullptr) {
        pool = std::make_unique<WeightPool>(type, most, most_rows, sizes.pool_bytes);
      }
      return *pool;
    };
    const std::string of_type = std::string(" ") + TypeName(type);
    for (const BenchShape& shape : shapes) {
      for (const Product& p : ProductsOf(shape)) {
        for (const int rows : sizes.rows) {
          const std::string what = std::string(shape.name) + " " + p.name + of_type + ", " +
                                   std::to_string(rows) + " rows";
          bench.Add("matmul", what, [&] { return MatMulCase(weights(), p, rows); });
        }
      }
      if (type == DeviceWeight::kBf16) continue;
      for (const Product& p : ProductsOf(shape)) {
        if (std::string(p.name) != "down") continue;
        bench.Add("unpack", std::string(shape.name) + " down" + of_type,
                  [&] { return UnpackCase(weights(), p); });
      }
    }
    if (type != DeviceWeight::kBf16) continue;
    std::unique_ptr<Library> library;
    if (Result<std::unique_ptr<Library>> opened = OpenLibrary(); opened.ok()) {
      library = *std::move(opened);
    }
    if (library == nullptr) continue;  // the main program says so
    for (const BenchShape& shape : shapes) {
      for (const Product& p : ProductsOf(shape)) {
        for (const int rows : {sizes.rows.back(), sizes.prompt}) {
          // Logits are for few rows of a prompt.
          if (rows == sizes.prompt && std::string(p.name) == "head") continue;
          bench.Add("library",
                    std::string(shape.name) + " " + p.name + ", " + std::to_string(rows) + " rows",
                    [&] { return LibraryCase(weights(), *library, p, rows); });
        }
      }
    }
  }
}

}  // namespace pawl::PAWL_GPU
