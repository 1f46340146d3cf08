// Writing and reading rows of integers in their tiles, for loading and for looking tokens up. Four
// neighbours of a row are one 32-bit word, a byte for each; a row's share of a vector is a word
// too. So planes are made and read by shifts and masks of whole words.
#include "kernels/cpu/integers.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "src/base/half.h"

namespace pawl {
namespace {

constexpr int kFours = kQuantBlock / 4;
constexpr size_t kVector = 64;

constexpr uint32_t InEachByte(uint32_t bits) { return bits * 0x01010101u; }

// Calls plane(width, from): a plane has `width` bits of each integer, from bit `from` on.
template <typename Plane>
void ForPlanes(int bits, const Plane& plane) {
  for (int from = 0; from < bits;) {
    const int left = bits - from;
    const int width = left == 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    plane(width, from);
    from += width;
  }
}

// Where a plane of that width has the integers of four j: the vector, and the first bit.
struct Field {
  size_t vector;
  int bit;
};
Field FieldOf(int width, int j) {
  if (width == 8) return {static_cast<size_t>(j), 0};
  if (width == 4) return {static_cast<size_t>(j % 4), j / 4 * 4};
  if (width == 2) return {static_cast<size_t>(j / 4), j % 4 * 2};
  return {0, j};
}

// Where a row's words of a block begin.
size_t BlockAt(WeightType type, int64_t cols, int64_t row, int64_t block) {
  return static_cast<size_t>(row / kQuantTile * QuantBlocks(cols) + block) * kVector *
             static_cast<size_t>(QuantBits(type)) +
         static_cast<size_t>(row % kQuantTile) * 4;
}

// A block of a row, a byte for each integer.
void LoadBlock(const uint8_t* from, int bits, uint8_t* values) {
  uint32_t fours[kFours] = {};
  size_t first = 0;
  ForPlanes(bits, [&](int width, int at) {
    const uint32_t mask = InEachByte((1u << width) - 1);
    for (int j = 0; j < kFours; ++j) {
      const Field field = FieldOf(width, j);
      uint32_t word;
      std::memcpy(&word, from + (first + field.vector) * kVector, sizeof word);
      fours[j] |= (word >> field.bit & mask) << at;
    }
    first += static_cast<size_t>(width);
  });
  std::memcpy(values, fours, sizeof fours);
}

float StepAt(const Matrix& m, int64_t row, int64_t group, uint8_t step, const float* factors) {
  const int64_t block = group << m.group_shift >> 8;
  const int64_t at = (row / kQuantTile * StepBlocks(m) + block) * kQuantTile + row % kQuantTile;
  return StepWorth(m.step_kind, step) * factors[at];
}

}  // namespace

void StoreIntegers(WeightType type, int64_t cols, int64_t row, const uint8_t* values, void* data) {
  const int bits = QuantBits(type);
  for (int64_t b = 0; b < QuantBlocks(cols); ++b) {
    uint8_t* to = static_cast<uint8_t*>(data) + BlockAt(type, cols, row, b);
    uint32_t fours[kFours];
    std::memcpy(fours, values + b * kQuantBlock, sizeof fours);
    ForPlanes(bits, [&](int width, int at) {
      const uint32_t mask = InEachByte((1u << width) - 1);
      uint32_t words[kFours] = {};
      for (int j = 0; j < kFours; ++j) {
        const Field field = FieldOf(width, j);
        words[field.vector] |= (fours[j] >> at & mask) << field.bit;
      }
      for (int v = 0; v < width; ++v, to += kVector) std::memcpy(to, &words[v], sizeof words[v]);
    });
  }
}

void LoadIntegers(const Matrix& matrix, int64_t row, uint8_t* values) {
  const int bits = QuantBits(matrix.type);
  for (int64_t b = 0; b < QuantBlocks(matrix.cols); ++b) {
    const auto* from =
        static_cast<const uint8_t*>(matrix.data) + BlockAt(matrix.type, matrix.cols, row, b);
    LoadBlock(from, bits, values + b * kQuantBlock);
  }
}

float StepWorth(StepKind kind, uint8_t step) {
  if (kind == StepKind::kInteger) return static_cast<int8_t>(step);
  if (kind == StepKind::kPower) return std::bit_cast<float>(uint32_t{step} << 23);
  return HalfToFloat(static_cast<uint16_t>(step << 7));
}

float ScaleAt(const Matrix& m, int64_t row, int64_t group) {
  const int64_t at = GroupIndex(m, row, group);
  return HasSteps(m) ? StepAt(m, row, group, m.steps[at], m.factors) : HalfToFloat(m.scales[at]);
}

float MinimumAt(const Matrix& m, int64_t row, int64_t group) {
  if (!m.has_minimums) return 0.0f;
  const int64_t at = GroupIndex(m, row, group);
  return HasSteps(m) ? StepAt(m, row, group, m.minimum_steps[at], m.minimum_factors)
                     : HalfToFloat(m.minimums[at]);
}

int WorthOf(const Matrix& matrix, uint8_t integer) {
  if (matrix.table != nullptr) return matrix.table[integer];
  return matrix.has_minimums ? integer : integer - (1 << (QuantBits(matrix.type) - 1));
}

void ReadIntegerRow(const Matrix& matrix, int64_t row, float* out) {
  const int bits = QuantBits(matrix.type);
  uint8_t values[kQuantBlock];
  for (int64_t k = 0; k < matrix.cols; ++k) {
    const int64_t within = k % kQuantBlock;
    if (within == 0) {
      const auto* data = static_cast<const uint8_t*>(matrix.data);
      LoadBlock(data + BlockAt(matrix.type, matrix.cols, row, k / kQuantBlock), bits, values);
    }
    const int64_t group = k >> matrix.group_shift;
    // In double precision nothing is rounded before the end.
    const double scale = ScaleAt(matrix, row, group), minimum = MinimumAt(matrix, row, group);
    out[k] = static_cast<float>(WorthOf(matrix, values[within]) * scale + minimum);
  }
}

}  // namespace pawl
