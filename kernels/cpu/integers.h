// Products with integer weights (kI8 to kI2): how weights and inputs lie, and one table of
// functions for each instruction set. kernels.h's functions come here for these types.
//
// Inputs are rounded to integers too, in blocks of 32: q = round(127 x / max |x|), nearest, ties to
// even, which is off by at most max |x| / 254. The products of a block, or of half of one where
// groups have 16 weights, are then summed exactly, as 32-bit integers. These sums, times the scale
// of the weights, rounded, times the scale of the inputs, are added as floats by fused multiply-add
// in the order of the blocks. So there is nothing that could differ between the variants, nor with
// the number of rows or threads: all results are equal bit for bit.
//
// Weights lie so that a vector of 16 lanes has four inputs of each of 16 rows (outputs), as
// VPDPBUSD takes them, and is multiplied with four inputs that all lanes share: vector j of a block
// (j = 0 to 7) has in byte 4 l + i the weight of row 16 t + l and input 32 b + 4 j + i. Only kI8's
// vectors lie like this in memory. Integers of fewer bits are cut into planes, each of which has
// some bits of all 32 x 16 weights of a block:
//   bytes    8 vectors of 64 bytes: those above
//   nibbles  4 vectors: byte k of vector j % 4 has four bits for vector j, from bit j / 4 * 4 on
//   pairs    2 vectors: byte k of vector j / 4 has two bits for vector j, from bit j % 4 * 2 on
//   bits     1 vector: byte k has a bit for vector j at bit j
// kI4 is nibbles, kI5 nibbles and bits, kI6 nibbles and pairs, kI2 pairs, kI3 pairs and bits; the
// lower bits of an integer are in the plane named first. The planes of a block follow one another,
// and block b of tile t begins at byte (t * blocks + b) * 64 * bits.
#ifndef PAWL_KERNELS_CPU_INTEGERS_H_
#define PAWL_KERNELS_CPU_INTEGERS_H_

#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace pawl {

// Sums of integers count from here: a float of these bits plus n is 1.5 * 2^23 + n, so that floats
// are made of sums without a conversion. Sums are below 2^22.
constexpr int32_t kZero = 0x4b400000;
constexpr float kZeroFloat = 12582912.0f;

// 32 inputs of a row, on a cache line. NaN and infinities make the scale NaN.
struct alignas(4) InputBlock {
  int8_t q[kQuantBlock];  // -127 to 127
  float scale;
  float sum, sum_second;  // of the q, and of those of the second half, times scale
  // What a sum over stored weights starts from to be one over weights: kZero less 8, 16 and 128
  // times the sum of the q, and less kHalfOffset times that of each half.
  int32_t start4, start5, start8, start_half[2];
};
static_assert(sizeof(InputBlock) == 64);

struct IntegerKernels {
  // As KernelSet's functions of these names.
  void (*pack)(const float* x, int64_t x_stride, int rows, int64_t n, float* out);
  void (*matmul)(const MatMulArgs& args, int64_t begin, int64_t end);
};

extern const IntegerKernels kPortableIntegers;
#if defined(PAWL_X86_KERNELS)
extern const IntegerKernels kAvx2Integers;
extern const IntegerKernels kVnniIntegers;  // AVX-512 F, BW, VL, VNNI
#elif defined(PAWL_ARM_KERNELS)
extern const IntegerKernels kNeonIntegers;
extern const IntegerKernels kNeonDotIntegers;
extern const IntegerKernels kNeonI8mmIntegers;  // with dot products
#endif

// The integers of a row as they are stored, padded to whole blocks.
void StoreIntegers(WeightType type, int64_t cols, int64_t row, const uint8_t* values, void* data);
void LoadIntegers(const Matrix& matrix, int64_t row, uint8_t* values);
// Where the scale and the minimum of a group are.
inline int64_t GroupIndex(const Matrix& m, int64_t row, int64_t group) {
  return (row / kQuantTile * m.groups + group) * kQuantTile + row % kQuantTile;
}
// The scale and the minimum (0 where there are none) of a group, exactly.
float ScaleAt(const Matrix& m, int64_t row, int64_t group);
float MinimumAt(const Matrix& m, int64_t row, int64_t group);
float StepWorth(StepKind kind, uint8_t step);
// What an integer as it is stored stands for, in steps of its group's scale, above the minimum.
int WorthOf(const Matrix& matrix, uint8_t integer);
// out = row `row`, every weight rounded to float once.
void ReadIntegerRow(const Matrix& matrix, int64_t row, float* out);

}  // namespace pawl

#endif  // PAWL_KERNELS_CPU_INTEGERS_H_
