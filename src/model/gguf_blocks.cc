// The block types are ggml's (ggml-common.h, ggml-quants.c). The older ones have half-precision
// scales, and minimums, for 32 weights. The K types have 256 weights in groups of 32 or 16, whose
// scales and minimums are small integers times a half for each block. IQ4 and the FP4 types are
// indices into a table of sixteen values, of groups with a half, a product, a power of two
// (MXFP4), or an eight-bit float (NVFP4). TQ has the weights -1, 0 and 1 of one scale for 256.
// Types with grids come last.
//
// A block is one function, and one line of kBlockTypes says what it becomes.
#include "src/model/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "src/base/half.h"

namespace pawl {

namespace {

// FP4's values, doubled, and IQ4's.
constexpr int8_t kFp4Table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr int8_t kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

uint16_t HalfBitsAt(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}
float HalfNumberAt(const uint8_t* p) { return HalfToFloat(HalfBitsAt(p)); }

// Half-bytes: the lower ones are the first half of 2 * count weights.
void Nibbles(const uint8_t* from, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[i] = from[i] & 15;
    out[i + count] = from[i] >> 4;
  }
}

// ---- 32 weights ----

void UnpackQ8(const uint8_t* block, const BlockOut& out) {
  out.scales[0] = HalfBitsAt(block);
  for (int i = 0; i < 32; ++i) out.values[i] = block[2 + i] ^ 128;
}

// A half, and with minimums another one.
template <bool kMinimum>
void UnpackQ4(const uint8_t* block, const BlockOut& out) {
  out.scales[0] = HalfBitsAt(block);
  if (kMinimum) out.minimums[0] = HalfBitsAt(block + 2);
  Nibbles(block + (kMinimum ? 4 : 2), 16, out.values);
}

template <bool kMinimum>
void UnpackQ5(const uint8_t* block, const BlockOut& out) {
  out.scales[0] = HalfBitsAt(block);
  if (kMinimum) out.minimums[0] = HalfBitsAt(block + 2);
  const uint8_t* high = block + (kMinimum ? 4 : 2);
  Nibbles(high + 4, 16, out.values);
  for (int i = 0; i < 32; ++i) {
    out.values[i] = static_cast<uint8_t>(out.values[i] | (high[i / 8] >> i % 8 & 1) << 4);
  }
}

// Weights of a scale below the smallest half: the nearest of the table's, in steps of that half.
void RoundFp4(int shift, uint8_t* values) {
  for (int i = 0; i < 32; ++i) {
    const double size = std::ldexp(std::abs(kFp4Table[values[i]]), -std::min(shift, 100));
    uint8_t best = 0;
    for (uint8_t v = 1; v < 8; ++v) {
      if (std::fabs(kFp4Table[v] - size) < std::fabs(kFp4Table[best] - size)) best = v;
    }
    values[i] = static_cast<uint8_t>((values[i] & 8) | best);
  }
}

void UnpackMxfp4(const uint8_t* block, const BlockOut& out) {
  // The table's values are doubled, so 2^-24 is 104. Sums of products with infinity's next powers
  // would not be exact.
  constexpr int kLeast = 104, kMost = 228, kInfinity = 255;
  const int exponent = block[0];
  Nibbles(block + 1, 16, out.values);
  out.scales[0] = static_cast<uint16_t>(exponent > kMost ? kInfinity : std::max(exponent, kLeast));
  *out.factor = 0.5f;
  if (exponent < kLeast) RoundFp4(kLeast - exponent, out.values);
}

// 64 weights in groups of 16.
void UnpackNvfp4(const uint8_t* block, const BlockOut& out) {
  for (int g = 0; g < 4; ++g) {
    // Four bits of exponent, three of fraction: those of a half that is 2^8 times smaller. The
    // table's values are doubled.
    const int byte = block[g] & 0x7f;
    out.scales[g] = byte == 0x7f ? uint16_t{0} : static_cast<uint16_t>(byte);
    *out.factor = 128.0f;
    Nibbles(block + 4 + 8 * g, 8, out.values + 16 * g);
  }
}

// ---- 256 weights ----

// The byte of an integer with a sign.
uint16_t StepOf(int integer) { return static_cast<uint8_t>(integer); }

void Factors(float d, float dmin, const BlockOut& out) {
  *out.factor = d;
  *out.minimum_factor = -dmin;
}

// Eight scales and eight minimums of six bits in twelve bytes.
void SixBitScales(const uint8_t* packed, const BlockOut& out) {
  for (int g = 0; g < 8; ++g) {
    int scale = packed[g] & 63, minimum = packed[g + 4] & 63;
    if (g >= 4) {
      scale = (packed[g + 4] & 15) | (packed[g - 4] >> 6) << 4;
      minimum = packed[g + 4] >> 4 | (packed[g] >> 6) << 4;
    }
    out.scales[g] = static_cast<uint16_t>(scale);
    out.minimums[g] = static_cast<uint16_t>(minimum);
  }
}

void UnpackQ4K(const uint8_t* block, const BlockOut& out) {
  Factors(HalfNumberAt(block), HalfNumberAt(block + 2), out);
  SixBitScales(block + 4, out);
  for (int i = 0; i < 4; ++i) {
    Nibbles(block + 16 + 32 * i, 32, out.values + 64 * i);
  }
}

void UnpackQ5K(const uint8_t* block, const BlockOut& out) {
  Factors(HalfNumberAt(block), HalfNumberAt(block + 2), out);
  SixBitScales(block + 4, out);
  const uint8_t* high = block + 16;
  for (int i = 0; i < 4; ++i) Nibbles(block + 48 + 32 * i, 32, out.values + 64 * i);
  for (int i = 0; i < 256; ++i) {
    out.values[i] = static_cast<uint8_t>(out.values[i] | (high[i % 32] >> i / 32 & 1) << 4);
  }
}

// The two bits of weight i: halves of 128 are four runs that share 32 bytes.
int PairAt(const uint8_t* bytes, int i) {
  return bytes[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

void UnpackQ6K(const uint8_t* block, const BlockOut& out) {
  const auto* scales = reinterpret_cast<const int8_t*>(block + 192);
  *out.factor = HalfNumberAt(block + 208);
  for (int g = 0; g < 16; ++g) out.scales[g] = StepOf(scales[g]);
  for (int i = 0; i < 2; ++i) Nibbles(block + 64 * i, 64, out.values + 128 * i);
  for (int i = 0; i < 256; ++i) {
    out.values[i] = static_cast<uint8_t>(out.values[i] | PairAt(block + 128, i) << 4);
  }
}

void UnpackQ3K(const uint8_t* block, const BlockOut& out) {
  const uint8_t* packed = block + 96;
  *out.factor = HalfNumberAt(block + 108);
  for (int g = 0; g < 16; ++g) {
    const int low = packed[g % 8] >> g / 8 * 4 & 15, high = packed[8 + g % 4] >> g / 4 * 2 & 3;
    out.scales[g] = StepOf((low | high << 4) - 32);
  }
  for (int i = 0; i < 256; ++i) {
    out.values[i] =
        static_cast<uint8_t>(PairAt(block + 32, i) | (block[i % 32] >> i / 32 & 1) << 2);
  }
}

void UnpackQ2K(const uint8_t* block, const BlockOut& out) {
  Factors(HalfNumberAt(block + 80), HalfNumberAt(block + 82), out);
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = block[g] & 15;
    out.minimums[g] = block[g] >> 4;
  }
  for (int i = 0; i < 256; ++i) out.values[i] = static_cast<uint8_t>(PairAt(block + 16, i));
}

void UnpackIq4Xs(const uint8_t* block, const BlockOut& out) {
  *out.factor = HalfNumberAt(block);
  const int high = HalfBitsAt(block + 2);
  for (int g = 0; g < 8; ++g) {
    const int scale = (block[4 + g / 2] >> g % 2 * 4 & 15) | (high >> 2 * g & 3) << 4;
    out.scales[g] = StepOf(scale - 32);
    Nibbles(block + 8 + 16 * g, 16, out.values + 32 * g);
  }
}

// Ternary weights, 0 to 2 for -1 to 1.
void Ternary(const uint8_t* half, const BlockOut& out) {
  for (int g = 0; g < 4; ++g) out.scales[g] = HalfBitsAt(half);
  for (int i = 0; i < 256; ++i) out.values[i] = static_cast<uint8_t>(out.values[i] + 7);
}

// Five digits of a number to the base 3 in a byte, as a fraction of 256: the first one is what the
// product with 3 leaves above a byte.
void UnpackTq1(const uint8_t* block, const BlockOut& out) {
  uint8_t* to = out.values;
  const auto digits = [&](const uint8_t* bytes, int count, int places) {
    int power = 1;
    for (int p = 0; p < places; ++p, power *= 3) {
      for (int i = 0; i < count; ++i) {
        *to++ = static_cast<uint8_t>(static_cast<uint8_t>(bytes[i] * power) * 3 >> 8);
      }
    }
  };
  digits(block, 32, 5);
  digits(block + 32, 16, 5);
  digits(block + 48, 4, 4);
  Ternary(block + 52, out);
}

void UnpackTq2(const uint8_t* block, const BlockOut& out) {
  for (int i = 0; i < 256; ++i) out.values[i] = static_cast<uint8_t>(PairAt(block, i));
  Ternary(block + 64, out);
}

// Integers, groups of 2^shift, minimums, table; elements and bytes of a block; steps.
using Held = WeightType;
constexpr StepKind kHalves = StepKind::kNone, kWholes = StepKind::kInteger;
constexpr BlockType kBlockTypes[] = {
    {"Q8_0", {Held::kI8, 5, false, nullptr, 32, 34}, UnpackQ8},
    {"Q4_0", {Held::kI4, 5, false, nullptr, 32, 18}, UnpackQ4<false>},
    {"Q4_1", {Held::kI4, 5, true, nullptr, 32, 20}, UnpackQ4<true>},
    {"Q5_0", {Held::kI5, 5, false, nullptr, 32, 22}, UnpackQ5<false>},
    {"Q5_1", {Held::kI5, 5, true, nullptr, 32, 24}, UnpackQ5<true>},
    {"Q2_K", {Held::kI2, 4, true, nullptr, 256, 84, kWholes}, UnpackQ2K},
    {"Q3_K", {Held::kI3, 4, false, nullptr, 256, 110, kWholes}, UnpackQ3K},
    {"Q4_K", {Held::kI4, 5, true, nullptr, 256, 144, kWholes}, UnpackQ4K},
    {"Q5_K", {Held::kI5, 5, true, nullptr, 256, 176, kWholes}, UnpackQ5K},
    {"Q6_K", {Held::kI6, 4, false, nullptr, 256, 210, kWholes}, UnpackQ6K},
    {"IQ4_NL", {Held::kI4, 5, false, kIq4Table, 32, 18}, UnpackQ4<false>},
    {"IQ4_XS", {Held::kI4, 5, false, kIq4Table, 256, 136, kWholes}, UnpackIq4Xs},
    {"MXFP4", {Held::kI4, 5, false, kFp4Table, 32, 17, StepKind::kPower}, UnpackMxfp4},
    {"NVFP4", {Held::kI4, 4, false, kFp4Table, 64, 36, StepKind::kE4m3}, UnpackNvfp4},
    {"TQ1_0", {Held::kI4, 6, false, nullptr, 256, 54}, UnpackTq1},
    {"TQ2_0", {Held::kI4, 6, false, nullptr, 256, 66}, UnpackTq2},
};

const BlockType* FindBlockType(std::string_view dtype) {
  for (const BlockType& type : kBlockTypes) {
    if (dtype == type.name) return &type;
  }
  return FindGridType(dtype);
}

}  // namespace

std::optional<PackedFormat> FormatOfBlocks(std::string_view dtype) {
  const BlockType* type = FindBlockType(dtype);
  if (type == nullptr) return std::nullopt;
  return type->format;
}

std::string_view NamesOfBlocks() {
  return "Q8_0, Q6_K, Q5_0, Q5_1, Q5_K, Q4_0, Q4_1, Q4_K, Q3_K, Q2_K, IQ4_NL, IQ4_XS, MXFP4, "
         "NVFP4, IQ3_*, IQ2_*, IQ1_*, TQ1_0, TQ2_0";
}

void PackBlocks(std::string_view dtype, const std::byte* blocks, int64_t cols, PackedRow& row) {
  const BlockType& type = *FindBlockType(dtype);
  const PackedFormat& format = type.format;
  const int64_t groups = format.block_elements >> format.group_shift;
  row.values.resize(static_cast<size_t>(cols));
  row.scales.resize(static_cast<size_t>(cols >> format.group_shift));
  row.minimums.resize(format.minimums ? row.scales.size() : 0);
  const bool steps = format.steps != kHalves;
  row.factors.resize(steps ? static_cast<size_t>((cols + kStepsBlock - 1) / kStepsBlock) : 0);
  row.minimum_factors.resize(format.minimums ? row.factors.size() : 0);
  for (int64_t b = 0; b < cols / format.block_elements; ++b) {
    const BlockOut out = {
        row.values.data() + b * format.block_elements, row.scales.data() + b * groups,
        format.minimums ? row.minimums.data() + b * groups : nullptr,
        steps ? row.factors.data() + b * format.block_elements / kStepsBlock : nullptr,
        steps && format.minimums
            ? row.minimum_factors.data() + b * format.block_elements / kStepsBlock
            : nullptr};
    type.unpack(reinterpret_cast<const uint8_t*>(blocks) + b * format.block_bytes, out);
  }
}

// ggml's types of two and three bits, IQ1, IQ2 and IQ3, store neither weights nor integers: a
// number of 8 to 11 bits picks a vector of eight (IQ3: four) sizes from a grid that is part of the
// format, and eight bits say which of eight weights are negative. Seven of them do where the number
// of negative weights is even. IQ1's vectors are of -1, 0 and 1, and a bit moves some neighbours by
// an eighth to one side.
//
// Every such weight is one of at most sixteen values times its group's scale. So each type becomes
// indices into a table: a size's place in the type's list of sizes, and behind all places where it
// is negative (IQ1: moved down). IQ3 has eight sizes and indices of four bits; IQ2 and IQ1 have
// three sizes and indices of three bits. In memory a weight then takes 3.4 to 4.4 bits, not 1.6 to
// 3.4. Scales are odd integers below 32 times a part of the block's half.

namespace {

#include "src/model/gguf_grids.inc"

constexpr int8_t kIq2Table[16] = {8, 25, 43, 0, -8, -25, -43};
constexpr int8_t kIq3XxsTable[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                     -4, -12, -20, -28, -36, -44, -52, -62};
constexpr int8_t kIq3STable[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};
// In eighths: -1, 0, 1 moved up, and down.
constexpr int8_t kIq1Table[16] = {-7, 1, 9, 0, -9, -1, 7};

uint32_t Bits16(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}
uint32_t Bits32(const uint8_t* p) {
  uint32_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

// `count` weights of `width` bits each; bit i of `signs` is for the i-th.
void PutVector(uint32_t vector, int width, int count, uint32_t signs, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    const uint32_t size = vector >> width * i & ((1u << width) - 1);
    out[i] = static_cast<uint8_t>(size | (signs >> i & 1) << width);
  }
}

// Eight signs of seven bits: an even number of them are set.
uint32_t EvenSigns(uint32_t seven) {
  seven &= 127;
  return seven | static_cast<uint32_t>(std::popcount(seven) & 1) << 7;
}

uint16_t OddStep(uint32_t half) { return static_cast<uint16_t>(2 * half + 1); }

void UnpackIq2Xxs(const uint8_t* block, const BlockOut& out) {
  *out.factor = HalfNumberAt(block) / 8;
  for (int g = 0; g < 8; ++g) {
    const uint8_t* picks = block + 2 + 8 * g;
    const uint32_t signs = Bits32(picks + 4);
    out.scales[g] = OddStep(signs >> 28);
    for (int v = 0; v < 4; ++v) {
      PutVector(kIq2XxsGrid[picks[v]], 2, 8, EvenSigns(signs >> 7 * v),
                out.values + 32 * g + 8 * v);
    }
  }
}

// Sixteen scales of four bits each.
void OddSteps(const uint8_t* packed, uint16_t* scales) {
  for (int g = 0; g < 16; ++g) scales[g] = OddStep(packed[g / 2] >> g % 2 * 4 & 15u);
}

void UnpackIq2Xs(const uint8_t* block, const BlockOut& out) {
  *out.factor = HalfNumberAt(block) / 8;
  OddSteps(block + 66, out.scales);
  for (int v = 0; v < 32; ++v) {
    const uint32_t pick = Bits16(block + 2 + 2 * v);
    PutVector(kIq2XsGrid[pick & 511], 2, 8, EvenSigns(pick >> 9), out.values + 8 * v);
  }
}

void UnpackIq2S(const uint8_t* block, const BlockOut& out) {
  const uint8_t *low = block + 2, *signs = block + 34, *high = block + 66;
  *out.factor = HalfNumberAt(block) / 8;
  OddSteps(block + 74, out.scales);
  for (int v = 0; v < 32; ++v) {
    const int pick = low[v] | (high[v / 4] >> v % 4 * 2 & 3) << 8;
    PutVector(kIq2SGrid[pick], 2, 8, signs[v], out.values + 8 * v);
  }
}

void UnpackIq3Xxs(const uint8_t* block, const BlockOut& out) {
  *out.factor = HalfNumberAt(block) / 4;
  const uint8_t* picks = block + 2;
  for (int g = 0; g < 8; ++g) {
    const uint32_t signs = Bits32(block + 66 + 4 * g);
    out.scales[g] = OddStep(signs >> 28);
    for (int v = 0; v < 8; ++v) {
      PutVector(kIq3XxsGrid[picks[8 * g + v]], 3, 4, EvenSigns(signs >> v / 2 * 7) >> v % 2 * 4,
                out.values + 32 * g + 4 * v);
    }
  }
}

void UnpackIq3S(const uint8_t* block, const BlockOut& out) {
  *out.factor = HalfNumberAt(block);
  const uint8_t *low = block + 2, *high = block + 66, *signs = block + 74, *scales = block + 106;
  for (int g = 0; g < 8; ++g) {
    out.scales[g] = OddStep(scales[g / 2] >> g % 2 * 4 & 15u);
  }
  for (int v = 0; v < 64; ++v) {
    const int pick = low[v] | (high[v / 8] >> v % 8 & 1) << 8;
    PutVector(kIq3SGrid[pick], 3, 4, static_cast<uint32_t>(signs[v / 2] >> v % 2 * 4),
              out.values + 4 * v);
  }
}

void UnpackIq1S(const uint8_t* block, const BlockOut& out) {
  *out.factor = HalfNumberAt(block) / 8;
  for (int g = 0; g < 8; ++g) {
    const uint32_t high = Bits16(block + 34 + 2 * g);
    out.scales[g] = OddStep(high >> 12 & 7);
    for (int v = 0; v < 4; ++v) {
      const uint32_t pick = block[2 + 4 * g + v] | (high >> 3 * v & 7) << 8;
      PutVector(kIq1Grid[pick], 2, 8, (high >> 15) * 255, out.values + 32 * g + 8 * v);
    }
  }
}

// The half is in the upper bits of four words that have four scales of three bits each below.
void UnpackIq1M(const uint8_t* block, const BlockOut& out) {
  const uint8_t* high = block + 32;
  uint32_t words[4], bits = 0;
  for (int i = 0; i < 4; ++i) {
    words[i] = Bits16(block + 48 + 2 * i);
    bits |= words[i] >> 12 << 4 * i;
  }
  *out.factor = HalfToFloat(static_cast<uint16_t>(bits)) / 8;
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = OddStep(words[g / 4] >> g % 4 * 3 & 7);
  }
  for (int v = 0; v < 32; ++v) {
    const uint32_t upper = high[v / 2] >> v % 2 * 4 & 15u;
    PutVector(kIq1Grid[block[v] | (upper & 7) << 8], 2, 8, (upper >> 3) * 255, out.values + 8 * v);
  }
}

constexpr BlockType kGridTypes[] = {
    {"IQ3_S", {WeightType::kI4, 5, false, kIq3STable, 256, 110, kWholes}, UnpackIq3S},
    {"IQ3_XXS", {WeightType::kI4, 5, false, kIq3XxsTable, 256, 98, kWholes}, UnpackIq3Xxs},
    {"IQ2_S", {WeightType::kI3, 4, false, kIq2Table, 256, 82, kWholes}, UnpackIq2S},
    {"IQ2_XS", {WeightType::kI3, 4, false, kIq2Table, 256, 74, kWholes}, UnpackIq2Xs},
    {"IQ2_XXS", {WeightType::kI3, 5, false, kIq2Table, 256, 66, kWholes}, UnpackIq2Xxs},
    {"IQ1_M", {WeightType::kI3, 4, false, kIq1Table, 256, 56, kWholes}, UnpackIq1M},
    {"IQ1_S", {WeightType::kI3, 5, false, kIq1Table, 256, 50, kWholes}, UnpackIq1S},
};

}  // namespace

const BlockType* FindGridType(std::string_view dtype) {
  for (const BlockType& type : kGridTypes) {
    if (dtype == type.name) return &type;
  }
  return nullptr;
}

}  // namespace pawl
