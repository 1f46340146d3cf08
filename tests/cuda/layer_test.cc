// The small kernels of a layer against their one-line meaning.
#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/reference/kernels.h"
#include "src/model/quantize.h"
#include "tests/cuda/cuda_test_util.h"
#include "tests/cuda/weights_util.h"

namespace pawl::PAWL_GPU {
namespace {

class LayerTest : public GpuTest {};

TEST_F(LayerTest, EmbeddingRowsAreTheCpus) {
  Random random(1);
  const KernelSet& kernels = *FindKernels(KernelVariant::kAuto);
  const int tokens = 40, columns = 72;
  for (const WeightType type :
       {WeightType::kF32, WeightType::kBf16, WeightType::kF16, WeightType::kI8, WeightType::kI4}) {
    Matrix matrix;
    matrix.type = type;
    matrix.rows = tokens;
    matrix.cols = columns;
    std::vector<float> floats = Normal(random, tokens * columns);
    std::vector<uint16_t> halves(tokens * columns);
    for (uint16_t& h : halves)
      h = static_cast<uint16_t>((random() & 0x83ffu) | (random() % 17) << 10);
    std::vector<std::byte> bytes;
    if (IsQuantized(type)) {
      matrix.groups = 3;
      bytes.resize(static_cast<size_t>(MatrixBytes(matrix)));
      PlacePacked(bytes.data(), matrix);
      PackedRow row;
      for (int r = 0; r < tokens; ++r) {
        QuantizeRow(type, floats.data() + r * columns, columns, row);
        StoreRow(row, r, matrix);
      }
    } else {
      matrix.data =
          type == WeightType::kF32 ? static_cast<const void*>(floats.data()) : halves.data();
    }
    const PackedMatrix packed = PackMatrix(matrix);
    const OnDevice<std::byte> data(packed.data);
    const OnDevice<uint16_t> scales(packed.scales);
    EXPECT_EQ(packed.scales.empty(), !IsPacked(packed.shape.type));
    std::vector<DeviceRow> rows(5);
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].token = static_cast<int32_t>(random() % tokens);
    const OnDevice<DeviceRow> device_rows(rows);
    Embed args;
    args.table = packed.shape;
    args.table.data = data.data();
    args.table.scales = scales.data();
    args.rows = device_rows.data();
    args.count = static_cast<int>(rows.size());
    args.scale = 3.0f;
    args.x_stride = columns + 4;
    OnDevice<float> x(rows.size() * (columns + 4));
    args.x = x.data();
    PAWL_EXPECT_OK(RunEmbed(args, nullptr));
    const std::vector<float> got = x.values();
    std::vector<float> expected(columns);
    for (size_t r = 0; r < rows.size(); ++r) {
      kernels.read_row(matrix, rows[r].token, expected.data());
      for (size_t i = 0; i < columns; ++i) {
        ASSERT_EQ(got[r * (columns + 4) + i], expected[i] * 3.0f) << static_cast<int>(type);
      }
      for (size_t i = columns; i < columns + 4; ++i) {
        ASSERT_TRUE(std::isnan(got[r * (columns + 4) + i]));
      }
    }
  }
}

TEST_F(LayerTest, NormAndAdd) {
  Random random(2);
  for (const int columns : {1, 33, 300}) {
    const int count = 3;
    const auto size = static_cast<size_t>(columns);
    const std::vector<float> y = Normal(random, size * count), x = Normal(random, size * count);
    const std::vector<float> norm = Normal(random, size);
    const OnDevice<float> device_y(y), device_norm(norm);
    const std::vector<float> got = InAnyOrder<float>([&] {
      OnDevice<float> device_x(x);
      NormAndAdd args;
      args.y = device_y.data();
      args.y_stride = args.x_stride = columns;
      args.norm = device_norm.data();
      args.epsilon = 1e-5f;
      args.columns = columns;
      args.count = count;
      args.x = device_x.data();
      PAWL_EXPECT_OK(RunNormAndAdd(args, nullptr));
      return device_x.values();
    });
    NormAndAdd host;
    host.y = y.data();
    host.y_stride = columns;
    host.norm = norm.data();
    host.epsilon = 1e-5f;
    host.columns = columns;
    for (size_t r = 0; r < count; ++r) {
      const std::vector<double> expected =
          reference::NormAndAddRow(host, static_cast<int>(r), x.data() + r * size);
      for (size_t i = 0; i < size; ++i) EXPECT_NEAR(got[r * size + i], expected[i], 1e-5);
    }
  }
}

TEST_F(LayerTest, BiasesAreAdded) {
  Random random(7);
  const int columns = 300, count = 3, stride = 320;
  std::vector<float> x = Normal(random, count * stride);
  const std::vector<float> bias = Normal(random, columns);
  const OnDevice<float> device_x(x), device_bias(bias);
  AddBias args;
  args.bias = device_bias.data();
  args.columns = columns;
  args.count = count;
  args.x = device_x.data();
  args.x_stride = stride;
  PAWL_EXPECT_OK(RunAddBias(args, nullptr));
  for (size_t r = 0; r < count; ++r) {
    for (size_t i = 0; i < columns; ++i) x[r * stride + i] += bias[i];
  }
  EXPECT_EQ(device_x.values(), x);
}

// Rows that end anywhere between two stretches of eight; behind them lies what is no number.
TEST_F(LayerTest, RowsBecomeBf16) {
  Random random(4);
  for (const int columns : {3, 40, 4100}) {
    const int64_t stride = (columns + 31) / 32 * 32;
    const int count = 3;
    const auto size = static_cast<size_t>(count * stride);
    std::vector<float> x = Normal(random, size);
    std::vector<float> norm = Normal(random, static_cast<size_t>(stride));
    std::vector<uint16_t> gate(size), up(size);
    for (size_t i = 0; i < size; ++i) {
      gate[i] = Bf16Bits(8 * x[i]);
      up[i] = Bf16Bits(norm[i % static_cast<size_t>(stride)]);
      if (static_cast<int64_t>(i) % stride >= columns) {
        x[i] = kNan;
        gate[i] = up[i] = 0x7fff;
      }
    }
    const OnDevice<float> device_x(x), device_norm(norm);
    const OnDevice<uint16_t> device_up(up);
    const auto check = [&](const std::vector<uint16_t>& got, const auto& expected) {
      for (int r = 0; r < count; ++r) {
        for (int i = 0; i < stride; ++i) {
          const double value = reference::Bf16Value(got[static_cast<size_t>(r * stride + i)]);
          const double right = expected(r, i);
          EXPECT_NEAR(value, right, 1e-5 + std::fabs(right) / 250)
              << columns << " " << r << " " << i;
        }
      }
    };
    for (const bool with_norm : {false, true}) {
      ToBf16 args;
      args.x = device_x.data();
      args.x_stride = args.to_stride = stride;
      args.norm = with_norm ? device_norm.data() : nullptr;
      args.epsilon = 1e-5f;
      args.columns = columns;
      args.count = count;
      const std::vector<uint16_t> got = InAnyOrder<uint16_t>([&] {
        OnDevice<uint16_t> to(size);
        args.to = to.data();
        PAWL_EXPECT_OK(RunToBf16(args, nullptr));
        return to.values();
      });
      args.x = x.data();
      args.norm = with_norm ? norm.data() : nullptr;
      check(got, [&](int r, int i) { return reference::ToBf16At(args, r, i); });
    }
    for (const Gate act : {Gate::kSilu, Gate::kGeluTanh}) {
      GateRows args;
      args.up = device_up.data();
      args.stride = stride;
      args.act = act;
      args.columns = columns;
      args.count = count;
      const std::vector<uint16_t> got = InAnyOrder<uint16_t>([&] {
        OnDevice<uint16_t> to(gate);  // in place
        args.gate = args.to = to.data();
        PAWL_EXPECT_OK(RunGateRows(args, nullptr));
        return to.values();
      });
      args.gate = gate.data();
      args.up = up.data();
      check(got, [&](int r, int i) { return reference::GateAt(args, r, i); });
    }
  }
}

// Weights of any type as rows of bf16, zeros behind them.
TEST_F(LayerTest, WeightsAreUnpacked) {
  Random random(5);
  struct UnpackCase {
    DeviceWeight type;
    int rows, columns, shift;
    bool minimums;
  };
  for (const UnpackCase& c : {UnpackCase{DeviceWeight::kF32, 5, 37, 5, false},
                              {DeviceWeight::kF16, 19, 70, 5, false},
                              {DeviceWeight::kFp8, 21, 1100, 5, false},
                              {DeviceWeight::kI8, 40, 95, 5, false},
                              {DeviceWeight::kI8, 7, 1058, 4, false},
                              {DeviceWeight::kI4, 33, 1057, 5, false},
                              {DeviceWeight::kI4, 16, 200, 6, false},
                              {DeviceWeight::kI4, 30, 67, 5, true}}) {
    const Weights weights = MakeWeights(random, c.type, c.rows, c.columns, c.shift, c.minimums);
    const Uploaded device(weights.packed);
    const int padded = PaddedColumns(c.columns);
    const std::vector<uint16_t> got = InAnyOrder<uint16_t>([&] {
      OnDevice<uint16_t> to(static_cast<size_t>(c.rows * padded));
      PAWL_EXPECT_OK(RunUnpack(device.matrix, to.data(), nullptr));
      return to.values();
    });
    int wrong = 0;
    for (int r = 0; r < c.rows; ++r) {
      for (int k = 0; k < padded; ++k) {
        const double value = reference::Bf16Value(got[static_cast<size_t>(r * padded + k)]);
        const double exact =
            k < c.columns ? weights.exact[static_cast<size_t>(r * c.columns + k)] : 0;
        wrong += !(std::fabs(value - exact) <= std::fabs(exact) / 256 + 1e-6);
      }
    }
    EXPECT_EQ(wrong, 0) << c.rows << " x " << c.columns << ", type " << static_cast<int>(c.type);
  }
}

TEST_F(LayerTest, SlotsMove) {
  Random random(3);
  const int pages = 4, heads = 2, head_dim = 8, layers = 3;
  const size_t layer = pages * heads * kPageSize * head_dim;
  std::vector<float> keys = Normal(random, layer * layers), values = Normal(random, layer * layers);
  OnDevice<float> device_keys(keys), device_values(values);
  const std::vector<int32_t> moves = {3, 40, 17, 5, 60, 18};
  const OnDevice<int32_t> device_moves(moves);
  MoveSlots args;
  args.first = {device_keys.data(), device_values.data(), CacheType::kF32, heads, head_dim};
  args.layer_stride = static_cast<int64_t>(layer * 4);
  args.layers = layers;
  args.moves = device_moves.data();
  args.count = 3;
  PAWL_EXPECT_OK(RunMoveSlots(args, nullptr));
  const auto at = [&](size_t l, int slot, int head) {
    return l * layer +
           static_cast<size_t>(((slot / kPageSize) * heads + head) * kPageSize + slot % kPageSize) *
               head_dim;
  };
  for (size_t l = 0; l < layers; ++l) {
    for (size_t m = 0; m < 3; ++m) {
      for (int h = 0; h < heads; ++h) {
        for (size_t i = 0; i < head_dim; ++i) {
          keys[at(l, moves[2 * m + 1], h) + i] = keys[at(l, moves[2 * m], h) + i];
          values[at(l, moves[2 * m + 1], h) + i] = values[at(l, moves[2 * m], h) + i];
        }
      }
    }
  }
  EXPECT_EQ(device_keys.values(), keys);
  EXPECT_EQ(device_values.values(), values);
}

}  // namespace
}  // namespace pawl::PAWL_GPU
