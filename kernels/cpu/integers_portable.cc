// Integer products in plain C++: any processor, and the reference for the bits of the others.
#include <cstdint>
#include <cstring>

#include "kernels/cpu/integers.h"
#include "src/base/half.h"

namespace pawl {
namespace {

struct Ints {
  int32_t lane[16];
};
struct Floats {
  float lane[16];
};

constexpr int kLanes = 16, kRows = 2;
constexpr bool kOffset8 = true, kRowPairs = false;
constexpr int kHalfOffset = 128;
struct Bytes {
  uint8_t byte[64];
};

template <typename Lanes, typename F>
inline Lanes Map(const F& f) {
  Lanes lanes;
  for (int i = 0; i < 16; ++i) lanes.lane[i] = f(i);
  return lanes;
}
inline Floats Set1(float value) {
  return Map<Floats>([=](int) { return value; });
}
inline Floats Zero() { return Set1(0.0f); }
inline Ints SetInts(int32_t value) {
  return Map<Ints>([=](int) { return value; });
}
inline Floats Load(const float* p) {
  return Map<Floats>([=](int i) { return p[i]; });
}
inline void Store(float* p, const Floats& a) { std::memcpy(p, a.lane, sizeof a.lane); }
inline Floats Halves(const uint16_t* p) {
  return Map<Floats>([=](int i) { return HalfToFloat(p[i]); });
}
inline Floats StepIntegers(const uint8_t* p) {
  return Map<Floats>([=](int i) { return static_cast<float>(static_cast<int8_t>(p[i])); });
}
inline Floats StepE4m3(const uint8_t* p) {
  return Map<Floats>([=](int i) { return HalfToFloat(static_cast<uint16_t>(p[i] << 7)); });
}
inline Floats StepPowers(const uint8_t* p) {
  return Map<Floats>([=](int i) {
    const uint32_t bits = uint32_t{p[i]} << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
  });
}
inline Floats Scaled(const Ints& a, const Floats& scale, const Floats&) {
  return Map<Floats>([&](int i) { return static_cast<float>(a.lane[i] - kZero) * scale.lane[i]; });
}
inline Floats operator+(const Floats& a, const Floats& b) {
  return Map<Floats>([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline Floats operator-(const Floats& a, const Floats& b) {
  return Map<Floats>([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline Floats operator*(const Floats& a, const Floats& b) {
  return Map<Floats>([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Floats Fma(const Floats& a, const Floats& b, const Floats& c) {
  return Map<Floats>([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}

template <typename F>
inline Bytes MapBytes(const F& f) {
  Bytes bytes;
  for (int i = 0; i < 64; ++i) bytes.byte[i] = static_cast<uint8_t>(f(i));
  return bytes;
}
inline Bytes LoadBytes(const uint8_t* p) {
  return MapBytes([=](int i) { return p[i]; });
}
inline void StoreBytes(uint8_t* p, const Bytes& a) { std::memcpy(p, a.byte, sizeof a.byte); }
inline Bytes SetBytes(int value) {
  return MapBytes([=](int) { return value; });
}
inline Bytes operator&(const Bytes& a, const Bytes& b) {
  return MapBytes([&](int i) { return a.byte[i] & b.byte[i]; });
}
inline Bytes operator|(const Bytes& a, const Bytes& b) {
  return MapBytes([&](int i) { return a.byte[i] | b.byte[i]; });
}
inline Bytes Plus(const Bytes& a, const Bytes& b) {
  return MapBytes([&](int i) { return a.byte[i] + b.byte[i]; });
}
template <int n>
inline Bytes Shift(const Bytes& a) {
  return MapBytes(
      [&](int i) { return n < 0 ? a.byte[i] << (n < 0 ? -n : 0) : a.byte[i] >> (n < 0 ? 0 : n); });
}
inline Bytes LoadTable(const int8_t* p) {
  return MapBytes([=](int i) { return p[i % 16] + 128; });
}
inline Bytes Lookup(const Bytes& table, const Bytes& index) {
  return MapBytes([&](int i) { return table.byte[index.byte[i]]; });
}
inline Bytes Wide(const Bytes& a) { return a; }

template <int kMost>
using Factor = Bytes;
template <int kMost>
inline Bytes Prepare(const Bytes& a) {
  return a;
}
template <int kMost>
using Sum = Ints;
template <int kMost>
constexpr int kRoom = kQuantBlock / 4;
template <int kMost>
inline Ints Begin(const Ints& ints) {
  return ints;
}
inline void Add(Ints& sum, const Bytes& weights, const InputBlock& input, int j) {
  const int8_t* q = input.q + 4 * j;
  for (int lane = 0; lane < 16; ++lane) {
    for (int i = 0; i < 4; ++i) sum.lane[lane] += weights.byte[4 * lane + i] * q[i];
  }
}
inline Ints End(const Ints& sum, const Ints&) { return sum; }

inline int LargestBits(const float* x) {
  int largest = 0;
  for (int i = 0; i < kQuantBlock; ++i) {
    int bits;
    std::memcpy(&bits, &x[i], sizeof bits);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}
inline void Round(const float* x, float factor, int8_t* q) {
  for (int i = 0; i < kQuantBlock; ++i) {
    // Adding 1.5 * 2^23 rounds to an integer.
    const float shifted = x[i] * factor + 12582912.0f;
    q[i] = static_cast<int8_t>(static_cast<int>(shifted - 12582912.0f));
  }
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/integers_inl.h"

namespace pawl {
const IntegerKernels kPortableIntegers = {Pack, MatMul};
}  // namespace pawl
