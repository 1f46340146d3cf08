// Inputs rounded to bf16 (Load32, Brain), and as AMX's instruction reads them: the pairs of 16 rows
// side by side. Only for files that are compiled for AVX-512 BF16.
#ifndef PAWL_KERNELS_CPU_AMX_PACK_H_
#define PAWL_KERNELS_CPU_AMX_PACK_H_

#include <immintrin.h>

#include <cstdint>

namespace pawl::amx {

constexpr int kStep = 32;  // inputs that one instruction takes

// v[i][j] -> v[j][i], 32 bits each.
inline void Transpose16(__m512i* v) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // v[4a + b] now holds in its 128-bit lane l the column 4l + b of rows 4a .. 4a+3.
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
    const __m512i even01 = _mm512_shuffle_i32x4(v[b], v[4 + b], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(v[b], v[4 + b], 0xdd);
    const __m512i even23 = _mm512_shuffle_i32x4(v[8 + b], v[12 + b], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(v[8 + b], v[12 + b], 0xdd);
    t[b] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    t[8 + b] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    t[4 + b] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    t[12 + b] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = t[i];
}

inline __m512i Brain(__m512 upper, __m512 lower) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(upper, lower));
}

// 32 inputs of a row, those beyond n being 0.
inline void Load32(const float* x, int64_t n, __m512& x0, __m512& x1) {
  if (n >= kStep) {
    x0 = _mm512_loadu_ps(x);
    x1 = _mm512_loadu_ps(x + 16);
  } else {
    const uint32_t mask = (uint32_t{1} << n) - 1;
    x0 = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x);
    x1 = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + 16);
  }
}

// Their 16 pairs: what is nearest to them, and to what that leaves of them, and so on.
template <int Terms>
inline void Split(const float* x, int64_t n, __m512i (&pairs)[Terms]) {
  __m512 x0, x1;
  Load32(x, n, x0, x1);
  for (int t = 0; t < Terms; ++t) {
    pairs[t] = Brain(x1, x0);
    const __m512i even = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(pairs[t]));
    const __m512i odd = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(pairs[t], 1));
    x0 = _mm512_sub_ps(x0, _mm512_castsi512_ps(_mm512_slli_epi32(even, 16)));
    x1 = _mm512_sub_ps(x1, _mm512_castsi512_ps(_mm512_slli_epi32(odd, 16)));
  }
}

// What R <= 16 rows of n inputs are packed to: for each pair of inputs the pairs of all rows, then
// those of the second terms; 4 R Terms bytes.
template <int Terms>
void PackGroup(const float* x, int64_t x_stride, int rows, int64_t n, char* out) {
  static_assert(Terms == 1 || Terms == 2);
  const int64_t width = 4 * rows, pitch = width * Terms;
  // Few rows: both terms are transposed in one go.
  const bool together = rows * Terms <= 16;
  const auto columns = static_cast<__mmask16>((1u << (together ? rows * Terms : rows)) - 1);
  for (int64_t k = 0; k < n; k += kStep, out += pitch * (kStep / 2)) {
    __m512i pairs[Terms], v[Terms][16];
    if (rows == 1) {
      Split<Terms>(x + k, n - k, pairs);
      if constexpr (Terms == 1) {
        _mm512_storeu_si512(out, pairs[0]);
      } else {
        const __m512i low = _mm512_unpacklo_epi32(pairs[0], pairs[1]);
        const __m512i high = _mm512_unpackhi_epi32(pairs[0], pairs[1]);
        const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
        _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi64(low, second, high));
      }
      continue;
    }
    for (int t = 0; t < Terms; ++t) {
      for (int r = 0; r < 16; ++r) v[t][r] = _mm512_setzero_si512();
    }
    for (int r = 0; r < rows; ++r) {
      Split<Terms>(x + r * x_stride + k, n - k, pairs);
      for (int t = 0; t < Terms; ++t) {
        if (together) {
          v[0][t * rows + r] = pairs[t];
        } else {
          v[t][r] = pairs[t];
        }
      }
    }
    for (int t = 0; t < (together ? 1 : Terms); ++t) {
      Transpose16(v[t]);
      for (int p = 0; p < 16; ++p) {
        _mm512_mask_storeu_epi32(out + p * pitch + t * width, columns, v[t][p]);
      }
    }
  }
}

}  // namespace pawl::amx

#endif  // PAWL_KERNELS_CPU_AMX_PACK_H_
