// The instructions of AMX-BF16, under names that take tile numbers as template arguments:
//
//   TileLoad<T>(data, stride)   rows of tile T from data, data + stride, ...
//   TileStore<T>(data, stride)  and back
//   TileZero<T>()
//   TileMultiply<C, A, B>()     C += A B, in bf16 pairs
//
// With PAWL_EMULATED_TILES they are plain loops over memory that does for the tiles, so that tests
// run everything that is written for AMX on processors without it (tests/kernels). What a product
// adds up, and in which order, is that of Intel's Software Developer's Manual, except that
// subnormal numbers are not taken as zero.
#ifndef PAWL_KERNELS_CPU_TILES_H_
#define PAWL_KERNELS_CPU_TILES_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels.h"

namespace pawl {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

#if defined(PAWL_EMULATED_TILES)

struct EmulatedTiles {
  TileConfig config;
  uint8_t data[8][16][64];
};
inline EmulatedTiles& ThisThreadsTiles() {
  static thread_local EmulatedTiles tiles;
  return tiles;
}

inline void TileConfigure(const TileConfig& config) {
  ThisThreadsTiles().config = config;
  std::memset(ThisThreadsTiles().data, 0, sizeof(EmulatedTiles::data));
}
inline void TileRelease() { ThisThreadsTiles().config = {0}; }

template <int T>
void TileZero() {
  std::memset(ThisThreadsTiles().data[T], 0, sizeof(EmulatedTiles::data[T]));
}
template <int T>
void TileLoad(const void* from, size_t stride) {
  EmulatedTiles& t = ThisThreadsTiles();
  TileZero<T>();
  for (size_t r = 0; r < t.config.rows[T]; ++r) {
    std::memcpy(t.data[T][r], static_cast<const char*>(from) + r * stride, t.config.row_bytes[T]);
  }
}
template <int T>
void TileStore(void* to, size_t stride) {
  const EmulatedTiles& t = ThisThreadsTiles();
  for (size_t r = 0; r < t.config.rows[T]; ++r) {
    std::memcpy(static_cast<char*>(to) + r * stride, t.data[T][r], t.config.row_bytes[T]);
  }
}
template <int C, int A, int B>
void TileMultiply() {
  EmulatedTiles& t = ThisThreadsTiles();
  const int columns = t.config.row_bytes[C] / 4, pairs = t.config.row_bytes[A] / 4;
  const auto word = [](const uint8_t* row, int i) {
    uint32_t bits;
    std::memcpy(&bits, row + 4 * i, sizeof bits);
    return bits;
  };
  const auto value = [](uint32_t bits) {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
  };
  for (int m = 0; m < t.config.rows[C]; ++m) {
    float even[16] = {}, odd[16] = {};
    for (int k = 0; k < pairs; ++k) {
      const uint32_t a = word(t.data[A][m], k);
      const float low = value(a << 16), high = value(a & 0xffff0000u);
      for (int n = 0; n < columns; ++n) {
        const uint32_t b = word(t.data[B][k], n);
        even[n] = __builtin_fmaf(low, value(b << 16), even[n]);
        odd[n] = __builtin_fmaf(high, value(b & 0xffff0000u), odd[n]);
      }
    }
    for (int n = 0; n < columns; ++n) {
      const float sum = value(word(t.data[C][m], n)) + (even[n] + odd[n]);
      std::memcpy(t.data[C][m] + 4 * n, &sum, sizeof sum);
    }
  }
}

#else

// The compilers' own are macros that paste a number into the instruction, and GCC's tell the
// compiler nothing of the memory that is read.
inline void TileConfigure(const TileConfig& config) { _tile_loadconfig(&config); }
inline void TileRelease() { _tile_release(); }

template <int T>
__attribute__((always_inline)) inline void TileZero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(T));
}
template <int T>
__attribute__((always_inline)) inline void TileLoad(const void* from, size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(T) : "memory");
}
template <int T>
__attribute__((always_inline)) inline void TileStore(void* to, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(T) : "memory");
}
template <int C, int A, int B>
__attribute__((always_inline)) inline void TileMultiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}

#endif

}  // namespace pawl

namespace pawl::amx {

// As KernelSet::attention. Queries, keys, what softmax makes of their products, and values are
// rounded to bf16. REQUIRES: RequestAmx() is true.
void Attention(const AttentionArgs& args);

}  // namespace pawl::amx

#endif  // PAWL_KERNELS_CPU_TILES_H_
