// The simple types, of 32 weights a block, state the extremes of a block and round what lies
// between. The order of operations is that of gguf-py (github.com/ggml-org/llama.cpp,
// gguf-py/gguf/quants.py), in single precision, so that the bytes are the same. Scales are rounded
// to halves after the weights were divided by them.
//
// IQ4_NL has a table of sixteen values that are not evenly spaced. Its scale is the best of several
// tries: for each try the weights get their nearest values, and the least squares of these say the
// scale and its error. A weight counts by its square.
#include "src/model/gguf_encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/half.h"
#include "src/model/gguf_blocks.h"

namespace pawl {
namespace {

constexpr int kSmallBlock = 32;

void PutHalf(float value, uint8_t* out) {
  const uint16_t bits = FloatToHalf(value);
  std::memcpy(out, &bits, sizeof bits);
}

float InverseOf(float scale) {
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

// The first of the weights that are largest in size.
float ExtremeOf(const float* x, int count) {
  float extreme = 0.0f;
  for (int i = 0; i < count; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

// Half-bytes: the first half of the weights are the lower ones; a fifth bit is apart.
void PutNibbles(const uint8_t* q, uint8_t* out) {
  for (int i = 0; i < kSmallBlock / 2; ++i) {
    out[i] = static_cast<uint8_t>((q[i] & 15) | (q[i + kSmallBlock / 2] & 15) << 4);
  }
}
void PutFifthBits(const uint8_t* q, uint8_t* out) {
  std::memset(out, 0, 4);
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i / 8] = static_cast<uint8_t>(out[i / 8] | (q[i] >> 4 & 1) << i % 8);
  }
}

void EncodeQ8(const float* x, uint8_t* block) {
  const float scale = std::fabs(ExtremeOf(x, kSmallBlock)) / 127.0f;
  const float inverse = InverseOf(scale);
  PutHalf(scale, block);
  for (int i = 0; i < kSmallBlock; ++i) {
    // Halves away from zero. The difference to the whole part is exact.
    const float value = x[i] * inverse, size = std::fabs(value), whole = std::floor(size);
    const float rounded = whole + std::floor(2.0f * (size - whole));
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(value < 0.0f ? -rounded : rounded));
  }
}

// Unsigned integers of four or five bits around a zero in the middle.
template <int kBits>
void EncodeMiddle(const float* x, uint8_t* block) {
  constexpr int kZero = 1 << (kBits - 1);
  const float scale = ExtremeOf(x, kSmallBlock) / static_cast<float>(-kZero);
  const float inverse = InverseOf(scale);
  PutHalf(scale, block);
  uint8_t q[kSmallBlock];
  for (int i = 0; i < kSmallBlock; ++i) {
    const auto value = static_cast<int>(x[i] * inverse + (static_cast<float>(kZero) + 0.5f));
    q[i] = static_cast<uint8_t>(std::clamp(value, 0, 2 * kZero - 1));
  }
  if (kBits == 5) PutFifthBits(q, block + 2);
  PutNibbles(q, block + (kBits == 5 ? 6 : 2));
}

// From the least weight to the largest.
template <int kBits>
void EncodeBetween(const float* x, uint8_t* block) {
  constexpr int kMost = (1 << kBits) - 1;
  const auto [least, most] = std::minmax_element(x, x + kSmallBlock);
  const float minimum = *least, scale = (*most - minimum) / static_cast<float>(kMost);
  const float inverse = InverseOf(scale);
  PutHalf(scale, block);
  PutHalf(minimum, block + 2);
  uint8_t q[kSmallBlock];
  for (int i = 0; i < kSmallBlock; ++i) {
    const auto value = static_cast<int>((x[i] - minimum) * inverse + 0.5f);
    q[i] = static_cast<uint8_t>(std::clamp(value, 0, kMost));
  }
  if (kBits == 5) PutFifthBits(q, block + 4);
  PutNibbles(q, block + (kBits == 5 ? 8 : 4));
}

// The value of IQ4's table that is nearest to a number. The middles between neighbours are
// multiples of a half, so the halves from -128 on have an entry each.
struct Iq4Values {
  const int8_t* table = FormatOfBlocks("IQ4_NL")->table;
  uint8_t nearest[512];
  float value[512];

  Iq4Values() {
    for (int i = 0; i < 512; ++i) {
      uint8_t index = 0;
      while (index < 15 && i - 256 >= table[index] + table[index + 1]) ++index;
      nearest[i] = index;
      value[i] = table[index];
    }
  }
  static int Place(float x) {
    // Truncated above zero, which is rounding down.
    return static_cast<int>(std::clamp(2.0f * x + 256.0f, 0.0f, 511.0f));
  }
};
const Iq4Values& Iq4() {
  static const Iq4Values values;
  return values;
}

void EncodeIq4Nl(const float* x, uint8_t* block) {
  const float scale = FitIq4(x, kSmallBlock);
  const float inverse = InverseOf(scale);
  PutHalf(scale, block);
  uint8_t q[kSmallBlock];
  for (int i = 0; i < kSmallBlock; ++i) {
    q[i] = static_cast<uint8_t>(NearestIq4(x[i] * inverse));
  }
  PutNibbles(q, block + 2);
}

void EncodeF32(const float* x, uint8_t* block) { std::memcpy(block, x, sizeof *x); }
void EncodeF16(const float* x, uint8_t* block) { PutHalf(*x, block); }
void EncodeBf16(const float* x, uint8_t* block) {
  uint32_t bits;
  std::memcpy(&bits, x, sizeof bits);
  const auto half = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  std::memcpy(block, &half, sizeof half);
}

constexpr BlockEncoder kSmallEncoders[] = {
    {"F32", 1, 4, EncodeF32},
    {"F16", 1, 2, EncodeF16},
    {"BF16", 1, 2, EncodeBf16},
    {"Q8_0", kSmallBlock, 34, EncodeQ8},
    {"Q5_0", kSmallBlock, 22, EncodeMiddle<5>},
    {"Q5_1", kSmallBlock, 24, EncodeBetween<5>},
    {"Q4_0", kSmallBlock, 18, EncodeMiddle<4>},
    {"Q4_1", kSmallBlock, 20, EncodeBetween<4>},
    {"IQ4_NL", kSmallBlock, 18, EncodeIq4Nl},
};

const BlockEncoder* FindEncoder(std::string_view dtype) {
  for (const BlockEncoder& encoder : kSmallEncoders) {
    if (dtype == encoder.name) return &encoder;
  }
  return FindSuperBlockEncoder(dtype);
}

}  // namespace

int NearestIq4(float x) { return Iq4().nearest[Iq4Values::Place(x)]; }

float FitIq4(const float* x, int count) {
  constexpr int kTries = 7;
  const Iq4Values& iq4 = Iq4();
  const float extreme = ExtremeOf(x, count), end = static_cast<float>(iq4.table[0]);
  if (std::fabs(extreme) < 1e-15f) return 0.0f;
  float best = 0.0f, best_scale = 0.0f;
  // The extreme becomes the least value of the table, or up to seven steps from it. The first try
  // has its other sign.
  for (int i = -kTries - 1; i <= kTries; ++i) {
    const float inverse = i < -kTries ? -end / extreme : (static_cast<float>(i) + end) / extreme;
    float products = 0.0f, squares = 0.0f;
    for (int k = 0; k < count; ++k) {
      const float value = iq4.value[Iq4Values::Place(x[k] * inverse)];
      const float weight = x[k] * x[k];
      products += weight * value * x[k];
      squares += weight * value * value;
    }
    if (squares > 0.0f && products * products > best * squares) {
      best_scale = products / squares;
      best = best_scale * products;
    }
  }
  return best_scale;
}

bool CanEncode(std::string_view dtype) { return FindEncoder(dtype) != nullptr; }

void EncodeBlocks(std::string_view dtype, const float* row, int64_t cols, std::byte* out) {
  const BlockEncoder& encoder = *FindEncoder(dtype);
  auto* block = reinterpret_cast<uint8_t*>(out);
  for (int64_t k = 0; k < cols; k += encoder.elements, block += encoder.bytes) {
    encoder.encode(row + k, block);
  }
}

}  // namespace pawl
