// ggml's types of two and three bits, IQ1, IQ2 and IQ3, store neither weights nor integers: a
// number of 8 to 11 bits picks a vector of eight (IQ3: four) sizes from a grid that is part of the
// format, and eight bits say which of eight weights are negative. Seven of them do where the number
// of negative weights is even. IQ1's vectors are of -1, 0 and 1, and a bit moves some neighbours by
// an eighth to one side.
//
// Every such weight is one of at most sixteen values times its group's scale. So each type becomes
// four-bit indices into a table: a size's place in the type's list of sizes, and 8 where it is
// negative (IQ1: moved down). In memory a weight then takes 4.5 or 5 bits, not 1.6 to 3.4.
#include <bit>
#include <cstdint>
#include <cstring>

#include "src/base/half.h"
#include "src/model/gguf_blocks.h"

namespace pawl {
namespace {

#include "src/model/gguf_grids.inc"

constexpr int8_t kIq2Table[16] = {8, 25, 43, 0, 0, 0, 0, 0, -8, -25, -43, 0, 0, 0, 0, 0};
constexpr int8_t kIq3XxsTable[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                     -4, -12, -20, -28, -36, -44, -52, -62};
constexpr int8_t kIq3STable[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};
// In eighths: -1, 0, 1 moved up, and down.
constexpr int8_t kIq1Table[16] = {-7, 1, 9, 0, 0, 0, 0, 0, -9, -1, 7, 0, 0, 0, 0, 0};

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
    out[i] = static_cast<uint8_t>(size | (signs >> i & 1) << 3);
  }
}

// Eight signs of seven bits: an even number of them are set.
uint32_t EvenSigns(uint32_t seven) {
  seven &= 127;
  return seven | static_cast<uint32_t>(std::popcount(seven) & 1) << 7;
}

uint16_t Product(float d, float factor) { return FloatToHalf(d * factor); }

void UnpackIq2Xxs(const uint8_t* block, const BlockOut& out) {
  const float d = HalfToFloat(static_cast<uint16_t>(Bits16(block)));
  for (int g = 0; g < 8; ++g) {
    const uint8_t* picks = block + 2 + 8 * g;
    const uint32_t signs = Bits32(picks + 4);
    out.scales[g] = Product(d, (0.5f + static_cast<float>(signs >> 28)) * 0.25f);
    for (int v = 0; v < 4; ++v) {
      PutVector(kIq2XxsGrid[picks[v]], 2, 8, EvenSigns(signs >> 7 * v),
                out.values + 32 * g + 8 * v);
    }
  }
}

// Sixteen scales of four bits each.
void HalfSteps(const uint8_t* packed, float d, uint16_t* scales) {
  for (int g = 0; g < 16; ++g) {
    const int step = packed[g / 2] >> g % 2 * 4 & 15;
    scales[g] = Product(d, (0.5f + static_cast<float>(step)) * 0.25f);
  }
}

void UnpackIq2Xs(const uint8_t* block, const BlockOut& out) {
  HalfSteps(block + 66, HalfToFloat(static_cast<uint16_t>(Bits16(block))), out.scales);
  for (int v = 0; v < 32; ++v) {
    const uint32_t pick = Bits16(block + 2 + 2 * v);
    PutVector(kIq2XsGrid[pick & 511], 2, 8, EvenSigns(pick >> 9), out.values + 8 * v);
  }
}

void UnpackIq2S(const uint8_t* block, const BlockOut& out) {
  const uint8_t *low = block + 2, *signs = block + 34, *high = block + 66;
  HalfSteps(block + 74, HalfToFloat(static_cast<uint16_t>(Bits16(block))), out.scales);
  for (int v = 0; v < 32; ++v) {
    const int pick = low[v] | (high[v / 4] >> v % 4 * 2 & 3) << 8;
    PutVector(kIq2SGrid[pick], 2, 8, signs[v], out.values + 8 * v);
  }
}

void UnpackIq3Xxs(const uint8_t* block, const BlockOut& out) {
  const float d = HalfToFloat(static_cast<uint16_t>(Bits16(block)));
  const uint8_t* picks = block + 2;
  for (int g = 0; g < 8; ++g) {
    const uint32_t signs = Bits32(block + 66 + 4 * g);
    out.scales[g] = Product(d, (0.5f + static_cast<float>(signs >> 28)) * 0.5f);
    for (int v = 0; v < 8; ++v) {
      PutVector(kIq3XxsGrid[picks[8 * g + v]], 3, 4, EvenSigns(signs >> v / 2 * 7) >> v % 2 * 4,
                out.values + 32 * g + 4 * v);
    }
  }
}

void UnpackIq3S(const uint8_t* block, const BlockOut& out) {
  const float d = HalfToFloat(static_cast<uint16_t>(Bits16(block)));
  const uint8_t *low = block + 2, *high = block + 66, *signs = block + 74, *scales = block + 106;
  for (int g = 0; g < 8; ++g) {
    const int step = scales[g / 2] >> g % 2 * 4 & 15;
    out.scales[g] = Product(d, static_cast<float>(1 + 2 * step));
  }
  for (int v = 0; v < 64; ++v) {
    const int pick = low[v] | (high[v / 8] >> v % 8 & 1) << 8;
    PutVector(kIq3SGrid[pick], 3, 4, static_cast<uint32_t>(signs[v / 2] >> v % 2 * 4),
              out.values + 4 * v);
  }
}

void UnpackIq1S(const uint8_t* block, const BlockOut& out) {
  const float d = HalfToFloat(static_cast<uint16_t>(Bits16(block)));
  for (int g = 0; g < 8; ++g) {
    const uint32_t high = Bits16(block + 34 + 2 * g);
    out.scales[g] = Product(d, static_cast<float>(2 * (high >> 12 & 7) + 1) * 0.125f);
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
  const float d = HalfToFloat(static_cast<uint16_t>(bits));
  for (int g = 0; g < 16; ++g) {
    const uint32_t step = words[g / 4] >> g % 4 * 3 & 7;
    out.scales[g] = Product(d, static_cast<float>(2 * step + 1) * 0.125f);
  }
  for (int v = 0; v < 32; ++v) {
    const uint32_t upper = high[v / 2] >> v % 2 * 4 & 15u;
    PutVector(kIq1Grid[block[v] | (upper & 7) << 8], 2, 8, (upper >> 3) * 255, out.values + 8 * v);
  }
}

constexpr WeightType kIndices = WeightType::kI4;
constexpr BlockType kGridTypes[] = {
    {"IQ3_S", {kIndices, 5, false, kIq3STable, 256, 110}, UnpackIq3S},
    {"IQ3_XXS", {kIndices, 5, false, kIq3XxsTable, 256, 98}, UnpackIq3Xxs},
    {"IQ2_S", {kIndices, 4, false, kIq2Table, 256, 82}, UnpackIq2S},
    {"IQ2_XS", {kIndices, 4, false, kIq2Table, 256, 74}, UnpackIq2Xs},
    {"IQ2_XXS", {kIndices, 5, false, kIq2Table, 256, 66}, UnpackIq2Xxs},
    {"IQ1_M", {kIndices, 4, false, kIq1Table, 256, 56}, UnpackIq1M},
    {"IQ1_S", {kIndices, 5, false, kIq1Table, 256, 50}, UnpackIq1S},
};

}  // namespace

const BlockType* FindGridType(std::string_view dtype) {
  for (const BlockType& type : kGridTypes) {
    if (dtype == type.name) return &type;
  }
  return nullptr;
}

}  // namespace pawl
