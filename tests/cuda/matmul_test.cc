// The skinny product against double precision, for each type of weights, and its promise that a row
// has the same bits in any company.
#include <algorithm>
#include <set>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reference/kernels.h"
#include "tests/cuda/weights_util.h"

namespace pawl::PAWL_GPU {
namespace {

struct MatMulCase {
  DeviceWeight type;
  int rows_of_w, columns, rows;
  bool bias, add, norm;
  Gate gate;
  int shift = 5;
  bool minimums = false;  // of kI4
};

const MatMulCase kMatMulCases[] = {
    {DeviceWeight::kBf16, 16, 32, 1, false, false, false, Gate::kNone},
    {DeviceWeight::kBf16, 37, 100, 3, true, false, true, Gate::kNone},
    {DeviceWeight::kBf16, 50, 576, 9, false, true, false, Gate::kNone},
    {DeviceWeight::kBf16, 40, 288, 8, true, false, true, Gate::kSilu},
    {DeviceWeight::kBf16, 33, 64, 64, false, false, true, Gate::kGeluTanh},
    {DeviceWeight::kF16, 20, 97, 2, true, false, false, Gate::kNone},
    {DeviceWeight::kF16, 48, 320, 17, false, false, true, Gate::kSilu},
    {DeviceWeight::kF32, 21, 130, 5, true, true, false, Gate::kNone},
    {DeviceWeight::kF32, 16, 64, 40, false, false, true, Gate::kSilu},
    {DeviceWeight::kFp8, 45, 160, 4, true, false, true, Gate::kNone},
    {DeviceWeight::kFp8, 32, 96, 33, true, false, false, Gate::kGeluTanh},
    {DeviceWeight::kI8, 40, 192, 7, false, true, false, Gate::kNone},
    {DeviceWeight::kI8, 33, 256, 12, true, false, true, Gate::kSilu, 4},
    {DeviceWeight::kI8, 18, 80, 1, true, false, true, Gate::kNone},
    {DeviceWeight::kI4, 70, 192, 2, false, false, true, Gate::kNone},
    {DeviceWeight::kI4, 65, 256, 20, true, true, false, Gate::kNone, 6},
    {DeviceWeight::kI4, 50, 320, 64, false, false, true, Gate::kSilu, 5, true},
    {DeviceWeight::kI4, 40, 160, 3, false, false, true, Gate::kSilu},
    {DeviceWeight::kI4, 37, 512, 2, false, true, true, Gate::kNone, 5, true},
    {DeviceWeight::kI4, 33, 128, 9, true, false, false, Gate::kNone, 6, true},
};

class MatMulTest : public GpuTest {};

TEST_F(MatMulTest, EqualsDoublePrecision) {
  Random random(1);
  for (const MatMulCase& c : kMatMulCases) {
    const auto outputs = static_cast<size_t>(c.rows_of_w), columns = static_cast<size_t>(c.columns);
    const auto rows = static_cast<size_t>(c.rows);
    const std::string label = std::to_string(static_cast<int>(c.type)) + " " +
                              std::to_string(c.rows_of_w) + "x" + std::to_string(c.columns) + " " +
                              std::to_string(c.rows) + " rows";
    const Weights w = MakeWeights(random, c.type, c.rows_of_w, c.columns, c.shift, c.minimums);
    const Weights up = MakeWeights(random, c.type, c.rows_of_w, c.columns, c.shift, c.minimums);
    EXPECT_EQ(w.packed.minimums.empty(), !c.minimums);
    const Uploaded device_w(w.packed), device_up(up.packed);
    const size_t x_stride = (columns + 3) / 4 * 4 + 4;
    const std::vector<float> x = Normal(random, rows * x_stride, 3.0f);
    std::vector<float> norm = Normal(random, columns);
    const std::vector<float> bias = Normal(random, outputs), up_bias = Normal(random, outputs);
    const std::vector<float> before = Normal(random, rows * outputs);
    std::vector<float> padded_norm = norm;
    padded_norm.resize((columns + 31) / 32 * 32);
    const OnDevice<float> device_x(x), device_norm(padded_norm), device_bias(bias),
        device_up_bias(up_bias);

    MatMul args;
    args.parts[0].w = device_w.matrix;
    args.parts[0].bias = c.bias ? device_bias.data() : nullptr;
    args.parts[0].up = device_up.matrix;
    args.parts[0].up_bias = c.bias ? device_up_bias.data() : nullptr;
    args.parts[0].y_stride = c.rows_of_w;
    args.x_stride = static_cast<int64_t>(x_stride);
    args.norm = c.norm ? device_norm.data() : nullptr;
    args.epsilon = 1e-5f;
    args.gate = c.gate;
    args.add = c.add;
    const auto run = [&](size_t first, size_t count) {
      OnDevice<float> y(
          c.add ? std::vector<float>(before.begin() + static_cast<long>(first * outputs),
                                     before.begin() + static_cast<long>((first + count) * outputs))
                : std::vector<float>(count * outputs, kNan));
      args.x = device_x.data() + first * x_stride;
      args.rows = static_cast<int>(count);
      args.parts[0].y = y.data();
      PAWL_EXPECT_OK(RunMatMul(args, nullptr));
      return y.values();
    };
    const std::vector<float> got = InAnyOrder<float>([&] { return run(0, rows); });

    MatMul host = args;
    host.parts[0].w = OnHost(w.packed);
    host.parts[0].up = OnHost(up.packed);
    host.parts[0].bias = c.bias ? bias.data() : nullptr;
    host.parts[0].up_bias = c.bias ? up_bias.data() : nullptr;
    host.x = x.data();
    host.norm = c.norm ? norm.data() : nullptr;
    double error = 0, magnitude = 0;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t o = 0; o < outputs; ++o) {
        const size_t at = r * outputs + o;
        const double expected = reference::MatMulAt(host, 0, static_cast<int>(r),
                                                    static_cast<int>(o), before[at], &magnitude);
        error += (got[at] - expected) * (got[at] - expected);
      }
    }
    // x = hi + lo to 2^-17 or so.
    EXPECT_LT(std::sqrt(error / magnitude), 1e-5) << label;

    // Alone, and a few rows at a time: the same bits.
    const size_t sizes[] = {1, 2, 8, 9, 16, 33};
    for (const size_t size : sizes) {
      if (size >= rows) break;
      const size_t first = random() % (rows - size + 1);
      const std::vector<float> part = run(first, size);
      EXPECT_EQ(std::memcmp(part.data(), got.data() + first * outputs, part.size() * 4), 0)
          << label << ", " << size << " from " << first;
    }
  }
}

// What the reference reads in packed matrices is what they were packed from.
TEST_F(MatMulTest, TheReferencesWeightsAreExact) {
  Random random(6);
  for (const DeviceWeight type : {DeviceWeight::kBf16, DeviceWeight::kF16, DeviceWeight::kF32,
                                  DeviceWeight::kFp8, DeviceWeight::kI8, DeviceWeight::kI4}) {
    for (const int shift : {4, 5, 6}) {
      if (shift != 5 && type != (shift == 4 ? DeviceWeight::kI8 : DeviceWeight::kI4)) continue;
      for (const bool minimums : {false, true}) {
        if (minimums && type != DeviceWeight::kI4) continue;
        const int rows = 35, columns = 100;
        const Weights w = MakeWeights(random, type, rows, columns, shift, minimums);
        const DeviceMatrix matrix = OnHost(w.packed);
        for (int r = 0; r < rows; ++r) {
          for (int k = 0; k < columns; ++k) {
            const double exact = w.exact[static_cast<size_t>(r * columns + k)];
            ASSERT_NEAR(reference::WeightAt(matrix, r, k), exact, 1e-6 * std::fabs(exact))
                << static_cast<int>(type) << " " << r << " " << k;
          }
        }
      }
    }
  }
}

// Rows of w by a list, as the head takes those that a mask allows.
TEST_F(MatMulTest, ListedRowsHaveTheBitsOfAllRows) {
  Random random(2);
  for (const DeviceWeight type : {DeviceWeight::kBf16, DeviceWeight::kF16, DeviceWeight::kF32,
                                  DeviceWeight::kFp8, DeviceWeight::kI8, DeviceWeight::kI4}) {
    const int outputs = 300, columns = 96;
    const Uploaded w(MakeWeights(random, type, outputs, columns).packed);
    for (const int rows : {1, 5, 12}) {
      const OnDevice<float> x(Normal(random, static_cast<size_t>(rows * columns)));
      MatMul args;
      args.parts[0].w = w.matrix;
      args.x = x.data();
      args.x_stride = columns;
      args.rows = rows;
      args.soft_cap = rows == 5 ? 3.0f : 0.0f;
      OnDevice<float> all(static_cast<size_t>(rows * outputs));
      args.parts[0].y = all.data();
      args.parts[0].y_stride = outputs;
      PAWL_EXPECT_OK(RunMatMul(args, nullptr));
      const std::vector<float> expected = all.values();
      for (const int share : {0, 1, 40, 100}) {
        std::vector<int32_t> list;
        for (int o = 0; o < outputs; ++o) {
          if (static_cast<int>(random() % 100) < share) list.push_back(o);
        }
        const auto count = static_cast<int32_t>(list.size());
        const OnDevice<int32_t> device_count(std::vector<int32_t>{count});
        list.resize(static_cast<size_t>(outputs));
        const OnDevice<int32_t> device_list(list);
        args.row_list = device_list.data();
        args.row_list_count = device_count.data();
        const std::vector<float> got = InAnyOrder<float>([&] {
          OnDevice<float> some(static_cast<size_t>(rows * outputs));
          args.parts[0].y = some.data();
          PAWL_EXPECT_OK(RunMatMul(args, nullptr));
          return some.values();
        });
        for (int r = 0; r < rows; ++r) {
          for (int i = 0; i < outputs; ++i) {
            const float value = got[static_cast<size_t>(r * outputs + i)];
            if (i >= count) {
              ASSERT_TRUE(std::isnan(value));
            } else {
              ASSERT_EQ(value,
                        expected[static_cast<size_t>(r * outputs + list[static_cast<size_t>(i)])]);
            }
          }
        }
      }
      args.row_list = nullptr;
    }
  }
}

// Queries, keys and values in one launch.
TEST_F(MatMulTest, PartsAreTheMatricesOneByOne) {
  Random random(3);
  const int columns = 128, rows = 3, sizes[] = {64, 16, 33};
  const OnDevice<float> x(Normal(random, static_cast<size_t>(rows * columns)));
  std::vector<Uploaded> matrices;
  for (const int size : sizes) {
    matrices.emplace_back(
        MakeWeights(random, DeviceWeight::kI4, size, columns, 5, size == 16).packed);
  }
  MatMul args;
  args.x = x.data();
  args.x_stride = columns;
  args.rows = rows;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 3; ++i) {
    OnDevice<float> y(static_cast<size_t>(rows * sizes[i]));
    args.parts[0].w = matrices[static_cast<size_t>(i)].matrix;
    args.parts[0].y = y.data();
    args.parts[0].y_stride = sizes[i];
    PAWL_EXPECT_OK(RunMatMul(args, nullptr));
    expected.push_back(y.values());
  }
  std::vector<OnDevice<float>> y;
  for (int i = 0; i < 3; ++i) {
    y.emplace_back(static_cast<size_t>(rows * sizes[i]));
    args.parts[i].w = matrices[static_cast<size_t>(i)].matrix;
    args.parts[i].y = y.back().data();
    args.parts[i].y_stride = sizes[i];
  }
  args.part_count = 3;
  PAWL_EXPECT_OK(RunMatMul(args, nullptr));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(y[i].values(), expected[i]);
}

TEST_F(MatMulTest, SaysThatAResultIsNotFinite) {
  Random random(4);
  const Uploaded w(MakeWeights(random, DeviceWeight::kBf16, 20, 64).packed);
  std::vector<float> x = Normal(random, 2 * 64);
  OnDevice<int32_t> flags(std::vector<int32_t>{0, 0});
  OnDevice<float> y(2 * 20);
  const auto run = [&] {
    const OnDevice<float> device_x(x);
    MatMul args;
    args.parts[0].w = w.matrix;
    args.parts[0].y = y.data();
    args.parts[0].y_stride = 20;
    args.x = device_x.data();
    args.x_stride = 64;
    args.rows = 2;
    args.not_finite = flags.data();
    PAWL_EXPECT_OK(RunMatMul(args, nullptr));
    return flags.values();
  };
  EXPECT_EQ(run(), (std::vector<int32_t>{0, 0}));
  x[70] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(run(), (std::vector<int32_t>{0, 1}));
}

#if defined(PAWL_CUDA_EMULATED)
// The ring of loads reads every byte of the weights once, however long rows are.
TEST_F(MatMulTest, WeightsAreLoadedOnce) {
  Random random(5);
  for (const DeviceWeight type : {DeviceWeight::kBf16, DeviceWeight::kF16, DeviceWeight::kF32,
                                  DeviceWeight::kFp8, DeviceWeight::kI8, DeviceWeight::kI4}) {
    for (const int columns : {40, 256, 2080, 2336}) {
      for (const bool gated : {false, true}) {
        const int outputs = 48, rows = gated ? 2 : 9;
        const Uploaded w(MakeWeights(random, type, outputs, columns).packed);
        const Uploaded up(MakeWeights(random, type, outputs, columns).packed);
        const OnDevice<float> x(Normal(random, static_cast<size_t>(rows * (columns + 32))));
        OnDevice<float> y(static_cast<size_t>(rows * outputs));
        MatMul args;
        args.parts[0].w = w.matrix;
        args.parts[0].up = up.matrix;
        args.parts[0].y = y.data();
        args.parts[0].y_stride = outputs;
        args.x = x.data();
        args.x_stride = columns + 24;
        args.rows = rows;
        args.gate = gated ? Gate::kSilu : Gate::kNone;
        PAWL_EXPECT_OK(SynchronizeAll());
        std::vector<emulation::Load> loads;
        emulation::Watch(&loads);
        PAWL_EXPECT_OK(RunMatMul(args, nullptr));
        PAWL_EXPECT_OK(Synchronize(nullptr));
        emulation::Watch(nullptr);
        std::set<const unsigned char*> loaded;
        size_t bytes = 0;
        for (const emulation::Load& load : loads) {
          for (size_t i = 0; i < load.bytes; ++i) loaded.insert(load.begin + i);
          bytes += load.bytes;
        }
        const auto whole = static_cast<size_t>(MatrixBytes(type, outputs, columns));
        const std::string label =
            std::to_string(static_cast<int>(type)) + ", " + std::to_string(columns) + " columns";
        EXPECT_EQ(bytes, whole * (gated ? 2 : 1)) << label;
        EXPECT_EQ(loaded.size(), bytes) << label;
      }
    }
  }
}
#endif

}  // namespace
}  // namespace pawl::PAWL_GPU
