// The small kernels of a layer (layer.cu) and activations as bf16 (prefill.cu). Their inputs and
// outputs are in the L2 cache in a model, too, where the kernel in front has just written them.
#include <functional>
#include <memory>

#include "bench/kernel_bench.h"
#include "kernels/cuda/reference/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

Case EmbedCase(const WeightPool& pool, const BenchShape& shape, int rows) {
  Bits random(31);
  const auto host_rows = std::make_shared<std::vector<DeviceRow>>(static_cast<size_t>(rows));
  for (DeviceRow& row : *host_rows) {
    row.token = static_cast<int32_t>(random.Below(static_cast<uint32_t>(shape.vocabulary)));
  }
  const auto device_rows = std::make_shared<Device<DeviceRow>>(*host_rows);
  const auto x = std::make_shared<Device<float>>(static_cast<size_t>(rows) *
                                                 static_cast<size_t>(shape.hidden));
  Embed args;
  args.rows = device_rows->data();
  args.count = rows;
  args.scale = 2.0f;
  args.x = x->data();
  args.x_stride = shape.hidden;
  Case made;
  made.bytes = 6.0 * rows * shape.hidden;
  made.bound = 1e-6;
  made.turns = pool.Turns(shape.vocabulary, shape.hidden);
  made.run = [=, &pool, keep = device_rows](int turn, Stream stream) {
    Embed embed = args;
    embed.table = pool.OnDevice(shape.vocabulary, shape.hidden, turn);
    return RunEmbed(embed, stream);
  };
  made.error = [=, &pool, run = made.run]() {
    x->Poison();
    Check(run(0, nullptr));
    const std::vector<float> got = x->Values();
    Embed host = args;
    host.table = pool.OnHost(shape.vocabulary, shape.hidden);
    host.rows = host_rows->data();
    Deviation deviation;
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < shape.hidden; ++i) {
        deviation.Add(got[static_cast<size_t>(r) * static_cast<size_t>(shape.hidden) +
                          static_cast<size_t>(i)],
                      reference::EmbedAt(host, r, i));
      }
    }
    return deviation.Relative();
  };
  return made;
}

// Of rows of bf16, some elements looked at.
double RoundedDeviation(const std::vector<uint16_t>& got, int rows, int columns,
                        const std::function<double(int, int)>& expected) {
  Deviation deviation;
  for (const uint16_t bits : got) deviation.Same(bits != 0xffff);
  Bits random(40);
  for (int n = 0; n < 200; ++n) {
    const int r = static_cast<int>(random.Below(static_cast<uint32_t>(rows)));
    const int i = static_cast<int>(random.Below(static_cast<uint32_t>(columns)));
    const size_t at = static_cast<size_t>(r) * static_cast<size_t>(columns);
    deviation.Add(reference::Bf16Value(got[at + static_cast<size_t>(i)]), expected(r, i));
  }
  return deviation.Relative();
}

// Rows at the positions 0, 1, ... of a sequence.
Case RotateCase(const BenchShape& shape, int rows, CacheType type) {
  const int heads = shape.heads + 2 * shape.kv_heads, width = heads * shape.head_dim;
  const int pages = (rows + kPageSize - 1) / kPageSize;
  const auto qkv = std::make_shared<std::vector<float>>(
      RandomFloats(static_cast<size_t>(rows) * static_cast<size_t>(width), 32));
  const auto norm =
      std::make_shared<std::vector<float>>(RandomFloats(static_cast<size_t>(shape.head_dim), 33));
  const auto rope = std::make_shared<std::vector<float>>(
      RandomFloats(static_cast<size_t>(rows) * static_cast<size_t>(shape.head_dim), 34));
  const auto host_rows = std::make_shared<std::vector<DeviceRow>>(static_cast<size_t>(rows));
  for (int r = 0; r < rows; ++r) {
    (*host_rows)[static_cast<size_t>(r)].position = r;
    (*host_rows)[static_cast<size_t>(r)].slot = r;
  }
  const auto cache_bytes = static_cast<size_t>(pages * shape.kv_heads * kPageSize *
                                               HeadStride(shape.head_dim) * CacheBytes(type));
  struct OnDevice {
    Device<float> qkv, norm, rope;
    Device<DeviceRow> rows;
    Device<std::byte> keys, values;
  };
  const auto device = std::shared_ptr<OnDevice>(
      new OnDevice{Device<float>(*qkv), Device<float>(*norm), Device<float>(*rope),
                   Device<DeviceRow>(*host_rows), Device<std::byte>(cache_bytes),
                   Device<std::byte>(cache_bytes)});
  RotateAndStore args;
  args.qkv = device->qkv.data();
  args.stride = width;
  args.rows = device->rows.data();
  args.count = rows;
  args.heads = shape.heads;
  args.q_norm = args.k_norm = device->norm.data();
  args.epsilon = 1e-5f;
  args.rope = device->rope.data();
  args.cache = {device->keys.data(), device->values.data(), type, shape.kv_heads, shape.head_dim};
  Case made;
  made.bytes = 4.0 * rows * (width + shape.heads * shape.head_dim) +
               2.0 * CacheBytes(type) * rows * shape.kv_heads * shape.head_dim;
  made.bound = type == CacheType::kF32 ? 1e-5 : type == CacheType::kBf16 ? 4e-3 : 5e-2;
  made.run = [=](int, Stream stream) { return RunRotateAndStore(args, stream); };
  made.error = [=, run = made.run]() {
    device->qkv.Set(*qkv);
    device->keys.Poison();
    device->values.Poison();
    Check(run(0, nullptr));
    const std::vector<float> got = device->qkv.Values();
    std::vector<std::byte> keys = device->keys.Values(), values = device->values.Values();
    RotateAndStore host = args;
    host.qkv = qkv->data();
    host.rows = host_rows->data();
    host.q_norm = host.k_norm = norm->data();
    host.rope = rope->data();
    host.cache.keys = keys.data();
    host.cache.values = values.data();
    Deviation deviation;
    for (int r = 0; r < rows; ++r) {
      for (int h = 0; h < heads; ++h) {
        const std::vector<double> expected = reference::RotatedAt(host, r, h);
        const bool query = h < shape.heads, value = h >= shape.heads + shape.kv_heads;
        for (int i = 0; i < shape.head_dim; ++i) {
          const double its =
              query ? got[static_cast<size_t>(r) * static_cast<size_t>(width) +
                          static_cast<size_t>(h * shape.head_dim + i)]
                    : reference::CacheAt(host.cache, value ? host.cache.values : host.cache.keys, r,
                                         (h - shape.heads) % shape.kv_heads, i);
          deviation.Add(its, expected[static_cast<size_t>(i)]);
        }
      }
    }
    return deviation.Relative();
  };
  return made;
}

Case NormAndAddCase(const BenchShape& shape, int rows) {
  const auto width = static_cast<size_t>(shape.hidden);
  const auto y =
      std::make_shared<std::vector<float>>(RandomFloats(static_cast<size_t>(rows) * width, 35));
  const auto x =
      std::make_shared<std::vector<float>>(RandomFloats(static_cast<size_t>(rows) * width, 36));
  const auto norm = std::make_shared<std::vector<float>>(RandomFloats(width, 37));
  const auto device_y = std::make_shared<Device<float>>(*y);
  const auto device_x = std::make_shared<Device<float>>(*x);
  const auto device_norm = std::make_shared<Device<float>>(*norm);
  NormAndAdd args;
  args.y = device_y->data();
  args.x = device_x->data();
  args.y_stride = args.x_stride = shape.hidden;
  args.norm = device_norm->data();
  args.epsilon = 1e-5f;
  args.columns = shape.hidden;
  args.count = rows;
  Case made;
  made.bytes = 12.0 * rows * shape.hidden;
  made.bound = 1e-5;
  made.run = [=, keep_y = device_y, keep_norm = device_norm](int, Stream stream) {
    return RunNormAndAdd(args, stream);
  };
  made.error = [=, run = made.run]() {
    device_x->Set(*x);
    Check(run(0, nullptr));
    const std::vector<float> got = device_x->Values();
    NormAndAdd host = args;
    host.y = y->data();
    host.norm = norm->data();
    Deviation deviation;
    for (int r = 0; r < rows; ++r) {
      const size_t at = static_cast<size_t>(r) * width;
      const std::vector<double> expected = reference::NormAndAddRow(host, r, x->data() + at);
      for (size_t i = 0; i < width; ++i) deviation.Add(got[at + i], expected[i]);
    }
    return deviation.Relative();
  };
  return made;
}

Case ToBf16Case(const BenchShape& shape, int rows) {
  const int columns = shape.hidden;
  const auto width = static_cast<size_t>(columns);
  const auto x = std::make_shared<std::vector<float>>(
      RandomFloats(static_cast<size_t>(rows) * width, 38, 4.0f));
  const auto norm = std::make_shared<std::vector<float>>(RandomFloats(width, 39));
  const auto device_x = std::make_shared<Device<float>>(*x);
  const auto device_norm = std::make_shared<Device<float>>(*norm);
  const auto to = std::make_shared<Device<uint16_t>>(static_cast<size_t>(rows) * width);
  ToBf16 args;
  args.x = device_x->data();
  args.x_stride = args.to_stride = columns;
  args.norm = device_norm->data();
  args.epsilon = 1e-5f;
  args.columns = columns;
  args.count = rows;
  args.to = to->data();
  Case made;
  made.bytes = 6.0 * rows * columns;
  made.bound = 4e-3;
  made.run = [=, keep_x = device_x, keep_norm = device_norm](int, Stream stream) {
    return RunToBf16(args, stream);
  };
  made.error = [=, run = made.run]() {
    to->Poison();
    Check(run(0, nullptr));
    ToBf16 host = args;
    host.x = x->data();
    host.norm = norm->data();
    return RoundedDeviation(to->Values(), rows, columns,
                            [&](int r, int i) { return reference::ToBf16At(host, r, i); });
  };
  return made;
}

Case GateCase(const BenchShape& shape, int rows) {
  const int columns = shape.inner;
  const size_t size = static_cast<size_t>(rows) * static_cast<size_t>(columns);
  const auto gate = std::make_shared<std::vector<uint16_t>>(RandomBf16(size, 57));
  const auto up = std::make_shared<std::vector<uint16_t>>(RandomBf16(size, 58));
  const auto device_gate = std::make_shared<Device<uint16_t>>(*gate);
  const auto device_up = std::make_shared<Device<uint16_t>>(*up);
  const auto to = std::make_shared<Device<uint16_t>>(size);
  GateRows args;
  args.gate = device_gate->data();
  args.up = device_up->data();
  args.stride = columns;
  args.act = Gate::kSilu;
  args.columns = columns;
  args.count = rows;
  args.to = to->data();
  Case made;
  made.bytes = 6.0 * rows * columns;
  made.bound = 4e-3;
  made.run = [=, keep_gate = device_gate, keep_up = device_up](int, Stream stream) {
    return RunGateRows(args, stream);
  };
  made.error = [=, run = made.run]() {
    to->Poison();
    Check(run(0, nullptr));
    GateRows host = args;
    host.gate = gate->data();
    host.up = up->data();
    return RoundedDeviation(to->Values(), rows, columns,
                            [&](int r, int i) { return reference::GateAt(host, r, i); });
  };
  return made;
}

// As many moves as rows, in 16 layers: from the odd slots to the even ones.
Case MoveCase(const BenchShape& shape, int rows) {
  constexpr int kLayers = 16;
  const int pages = 2 * rows / kPageSize + 1;
  const int64_t layer = int64_t{pages} * shape.kv_heads * kPageSize * HeadStride(shape.head_dim);
  const auto keys = std::make_shared<std::vector<std::byte>>(
      RandomWeights(DeviceWeight::kBf16, 2 * kLayers * layer, 41));
  const auto values = std::make_shared<std::vector<std::byte>>(
      RandomWeights(DeviceWeight::kBf16, 2 * kLayers * layer, 42));
  std::vector<int32_t> moves;
  for (int r = 0; r < rows; ++r) moves.insert(moves.end(), {2 * r + 1, 2 * r});
  const auto device_keys = std::make_shared<Device<std::byte>>(*keys);
  const auto device_values = std::make_shared<Device<std::byte>>(*values);
  const auto device_moves = std::make_shared<Device<int32_t>>(moves);
  MoveSlots args;
  args.first = {device_keys->data(), device_values->data(), CacheType::kBf16, shape.kv_heads,
                shape.head_dim};
  args.layer_stride = 2 * layer;
  args.layers = kLayers;
  args.moves = device_moves->data();
  args.count = rows;
  Case made;
  made.bytes = 2.0 * 2 * 2 * kLayers * rows * shape.kv_heads * HeadStride(shape.head_dim);
  made.bound = 0;
  made.run = [=, keep = device_moves](int, Stream stream) { return RunMoveSlots(args, stream); };
  made.error = [=, run = made.run]() {
    device_keys->Set(*keys);
    device_values->Set(*values);
    Check(run(0, nullptr));
    const std::vector<std::byte> got_keys = device_keys->Values(),
                                 got_values = device_values->Values();
    Deviation deviation;
    Cache cache = args.first;
    for (int l = 0; l < kLayers; ++l) {
      for (int r = 0; r < rows; ++r) {
        for (int h = 0; h < shape.kv_heads; ++h) {
          for (const int d : {0, shape.head_dim - 1}) {
            const auto at = [&](const std::vector<std::byte>& all, int slot) {
              return reference::CacheAt(cache, all.data() + 2 * l * layer, slot, h, d);
            };
            deviation.Add(at(got_keys, 2 * r), at(*keys, 2 * r + 1));
            deviation.Add(at(got_values, 2 * r), at(*values, 2 * r + 1));
          }
        }
      }
    }
    return deviation.Relative();
  };
  return made;
}

}  // namespace

void BenchLayer(KernelBench& bench) {
  const BenchSizes& sizes = bench.sizes();
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
        const std::string what =
            std::string(shape.name) + " " + TypeName(type) + ", " + std::to_string(rows) + " rows";
        bench.Add("embed", what, [&] {
          if (pool == nullptr) pool = std::make_unique<WeightPool>(type, most, most_rows, most);
          return EmbedCase(*pool, shape, rows);
        });
      }
    }
  }
  std::vector<int> all_rows = sizes.rows;
  all_rows.push_back(sizes.prompt);
  for (const BenchShape& shape : sizes.shapes) {
    for (const int rows : all_rows) {
      const std::string of_rows = ", " + std::to_string(rows) + " rows";
      for (const CacheType type : {CacheType::kBf16, CacheType::kFp8, CacheType::kF32}) {
        bench.Add("rotate", std::string(shape.name) + ", cache " + TypeName(type) + of_rows,
                  [&] { return RotateCase(shape, rows, type); });
      }
      bench.Add("norm_and_add", shape.name + of_rows, [&] { return NormAndAddCase(shape, rows); });
      bench.Add("to_bf16", shape.name + of_rows, [&] { return ToBf16Case(shape, rows); });
      bench.Add("gate_rows", shape.name + of_rows, [&] { return GateCase(shape, rows); });
      bench.Add("move_slots", shape.name + of_rows, [&] { return MoveCase(shape, rows); });
    }
  }
}

}  // namespace pawl::PAWL_GPU
