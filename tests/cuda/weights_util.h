// Matrices of each type of weights for the tests of products.
#ifndef PAWL_TESTS_CUDA_WEIGHTS_UTIL_H_
#define PAWL_TESTS_CUDA_WEIGHTS_UTIL_H_

#include <algorithm>
#include <vector>

#include "kernels/cuda/pack.h"
#include "src/base/half.h"
#include "src/model/quantize.h"
#include "tests/cuda/cuda_test_util.h"

namespace pawl::PAWL_GPU {

// A matrix of one type: as the device has it, and what its weights are worth.
struct Weights {
  PackedMatrix packed;
  std::vector<double> exact;
};

// minimums: kI4 has them, else they are -8 scale.
inline Weights MakeWeights(Random& random, DeviceWeight type, int rows, int columns, int shift = 5,
                           bool minimums = false) {
  const auto r = static_cast<size_t>(rows), c = static_cast<size_t>(columns);
  Weights weights;
  Matrix matrix;
  matrix.rows = rows;
  matrix.cols = columns;
  std::vector<float> values = Normal(random, r * c);
  std::vector<uint16_t> halves(r * c);
  const KernelSet& kernels = *FindKernels(KernelVariant::kAuto);
  std::vector<std::byte> data;
  if (type == DeviceWeight::kF32 || type == DeviceWeight::kFp8) {
    matrix.type = WeightType::kF32;
    matrix.data = values.data();
  } else if (type == DeviceWeight::kBf16) {
    matrix.type = WeightType::kBf16;
    for (size_t i = 0; i < values.size(); ++i) halves[i] = Bf16Bits(values[i]);
    matrix.data = halves.data();
  } else if (type == DeviceWeight::kF16) {
    matrix.type = WeightType::kF16;
    for (uint16_t& h : halves) {
      h = static_cast<uint16_t>((random() & 0x83ffu) | (random() % 17) << 10);
    }
    matrix.data = halves.data();
  } else {
    matrix.type = type == DeviceWeight::kI8 ? WeightType::kI8 : WeightType::kI4;
    const size_t padded = (c + 63) / 64 * 64;
    matrix.group_shift = shift;
    matrix.groups = static_cast<int64_t>(((c + 31) / 32 * 32) >> shift);
    if (shift == 6) matrix.groups = static_cast<int64_t>(padded / 64);
    matrix.has_minimums = minimums;
    data.resize(static_cast<size_t>(MatrixBytes(matrix)));
    PlacePacked(data.data(), matrix);
    PackedRow row;
    for (int o = 0; o < rows; ++o) {
      row.values.resize(padded);
      for (uint8_t& value : row.values) {
        value = static_cast<uint8_t>(random() & (type == DeviceWeight::kI8 ? 255u : 15u));
      }
      row.scales.clear();
      row.minimums.clear();
      for (int64_t g = 0; g < matrix.groups; ++g) {
        // Some are zero or subnormal.
        const int exponent = random() % 4 == 0 ? -static_cast<int>(random() % 30) : 0;
        row.scales.push_back(FloatToHalf(std::ldexp(Normal(random, 1)[0], exponent)));
        row.minimums.push_back(FloatToHalf(Normal(random, 1, 8.0f)[0]));
      }
      StoreRow(row, o, matrix);
    }
  }
  weights.packed = type == DeviceWeight::kFp8 ? PackMatrixFp8(matrix, kernels) : PackMatrix(matrix);
  std::vector<float> row(c);
  for (int o = 0; o < rows; ++o) {
    kernels.read_row(matrix, o, row.data());
    for (size_t k = 0; k < c; ++k) {
      double value = row[k];
      if (type == DeviceWeight::kFp8) {
        // The nearest of all codes.
        const double scale = weights.packed.row_scales[static_cast<size_t>(o)];
        double best = 0;
        for (int code = 0; code < 127; ++code) {
          const int e = code >> 3;
          const double size =
              e == 0 ? std::ldexp(code & 7, -9) : std::ldexp(8 + (code & 7), e - 10);
          const double candidate = std::copysign(size * scale, value);
          if (std::fabs(candidate - value) < std::fabs(best - value)) best = candidate;
        }
        value = best;
      }
      weights.exact.push_back(value);
    }
  }
  return weights;
}

// A packed matrix in host memory, for the references.
inline DeviceMatrix OnHost(const PackedMatrix& packed) {
  DeviceMatrix matrix = packed.shape;
  matrix.data = packed.data.data();
  matrix.scales = packed.scales.data();
  matrix.minimums = packed.minimums.empty() ? nullptr : packed.minimums.data();
  matrix.row_scales = packed.row_scales.data();
  return matrix;
}

// A packed matrix in device memory.
struct Uploaded {
  explicit Uploaded(const PackedMatrix& packed)
      : data(packed.data),
        scales(packed.scales),
        minimums(packed.minimums),
        row_scales(packed.row_scales),
        matrix(packed.shape) {
    matrix.data = data.data();
    matrix.scales = packed.scales.empty() ? nullptr : scales.data();
    matrix.minimums = packed.minimums.empty() ? nullptr : minimums.data();
    matrix.row_scales = packed.row_scales.empty() ? nullptr : row_scales.data();
  }
  OnDevice<std::byte> data;
  OnDevice<uint16_t> scales, minimums;
  OnDevice<float> row_scales;
  DeviceMatrix matrix;
};

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_TESTS_CUDA_WEIGHTS_UTIL_H_
