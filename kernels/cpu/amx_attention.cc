// Attention with bf16 products on AMX tiles: of up to 32 queries with blocks of 32 keys, and of
// what softmax makes of that with blocks of 32 values. Everything else is float, softmax is the
// AVX-512 kernels'.
//
// Bits: blocks begin at positions that are multiples of 32. A score is a sum over the elements of a
// head in ascending order, 32 at a time; an element of the result is one over the blocks in
// ascending order, where positions that a row does not see count as zeros (so they are zeros also
// where memory holds no number). Both are sums of one row and one column of the instruction, whose
// company changes nothing. Rows of a tree see different slots at the same position, and are
// computed one by one.
#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "kernels/cpu/amx_pack.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/tiles.h"

namespace pawl::amx {
namespace {

constexpr int64_t kBlock = 32;  // positions
// So many blocks of values are packed before they are used.
constexpr int64_t kBatch = 8;
constexpr int64_t kTileBytes = 1024;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The scratch memory of a call.
struct Workspace {
  Workspace(const AttentionArgs& a, int64_t block_count)
      : width(RoundUp(a.head_dim, kStep)), stride(block_count * kBlock + 16) {
    auto* next = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(a.scratch) + 63) / 64 * 64);
    const auto take = [&next](int64_t bytes) {
      char* const memory = next;
      next += bytes;
      return memory;
    };
    q = take(kAttentionQueries * width * 2);
    keys = take(kBlock * width * 2);
    gathered = reinterpret_cast<float*>(take(kBlock * width * 4));
    values = take(kBatch * kBlock * width * 2);
    sums = reinterpret_cast<float*>(take(kAttentionQueries * width * 4));
    scores = reinterpret_cast<float*>(take(0));
  }
  int64_t width;    // of a head, with zeros at its end
  int64_t stride;   // floats from one query's scores to the next
  char* q;          // [query][width] bf16
  char* keys;       // two pages: [width / 2] pairs of 16 positions each
  float* gathered;  // [kBlock][head_dim]
  char* values;     // [block][width / 16] tiles: 16 pairs of positions, 16 elements
  float* sums;      // [query][width]
  float* scores;    // [query][stride], and then bf16 in the lower half
};

// One call of at most kAttentionQueries queries.
class Call {
 public:
  explicit Call(const AttentionArgs& a) : a_(a), count_(a.row_count * a.group) {
    int64_t first = End(a.rows[0]);
    end_ = 0;
    for (int i = 0; i < a.row_count; ++i) {
      first = a.rows[i].first < first ? a.rows[i].first : first;
      end_ = End(a.rows[i]) > end_ ? End(a.rows[i]) : end_;
    }
    first_ = first;
    start_ = first / kBlock * kBlock;
    blocks_ = (end_ - start_ + kBlock - 1) / kBlock;
  }

  // False when a value is not finite, so that not even zero times it is zero, and several rows
  // should not share it.
  bool Run() {
    const Workspace w(a_, blocks_);
    PackQueries(w);
    TileConfig config;
    const int second = count_ > 16 ? count_ - 16 : 16;
    for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64;
    for (const int tile : {0, 1, 4}) config.rows[tile] = static_cast<uint8_t>(Min(count_, 16));
    for (const int tile : {2, 3, 5}) config.rows[tile] = static_cast<uint8_t>(second);
    config.rows[6] = config.rows[7] = 16;
    TileConfigure(config);
    const bool done = count_ > 16 ? RunTiles<true>(w) : RunTiles<false>(w);
    TileRelease();
    if (done) Finish(w);
    return done;
  }

 private:
  static int64_t End(const AttentionRow& row) { return row.prefix + row.extra_count; }
  static int Min(int a, int b) { return a < b ? a : b; }

  // The keys or values of n positions from `from` on, where the first of them begins a page: where
  // they lie, or copied between zeros when some are not seen or lie elsewhere.
  const float* Rows(const float* pages, int64_t from, int64_t n, float* copy) const {
    const int64_t shift = kKvPageShift, dim = a_.head_dim;
    const int64_t prefix = a_.rows[0].prefix;  // of all rows, if there are extra slots
    const bool extra = a_.rows[0].extra_count > 0;
    if (n == kKvPage && from >= first_ && from + n <= (extra ? prefix : end_)) {
      return pages + a_.pages[from >> shift] * a_.page_stride;
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t p = from + i;
      float* to = copy + i * dim;
      if (p < first_ || p >= end_) {
        std::memset(to, 0, static_cast<size_t>(dim) * sizeof(float));
        continue;
      }
      const float* at = pages;
      if (extra && p >= prefix) {
        const int32_t slot = a_.rows[0].extra[p - prefix];
        at += (slot >> shift) * a_.page_stride + (slot & (kKvPage - 1)) * dim;
      } else {
        at += a_.pages[p >> shift] * a_.page_stride + (p & (kKvPage - 1)) * dim;
      }
      std::memcpy(to, at, static_cast<size_t>(dim) * sizeof(float));
    }
    return copy;
  }

  void PackQueries(const Workspace& w) const {
    for (int n = 0; n < count_; ++n) {
      const float* q = a_.rows[n / a_.group].q + int64_t{n % a_.group} * a_.head_dim;
      for (int64_t k = 0; k < a_.head_dim; k += kStep) {
        __m512 x0, x1;
        Load32(q + k, a_.head_dim - k, x0, x1);
        _mm512_storeu_si512(w.q + (n * w.width + k) * 2, Brain(x1, x0));
      }
    }
  }

  template <bool Two>
  bool RunTiles(const Workspace& w) const {
    for (int64_t b = 0; b < blocks_; ++b) Scores<Two>(w, b);
    for (int n = 0; n < count_; ++n) Softmax(w, n);
    std::memset(w.sums, 0, static_cast<size_t>(count_ * w.width) * sizeof(float));
    for (int64_t b = 0; b < blocks_; b += kBatch) {
      const int64_t n = b + kBatch < blocks_ ? kBatch : blocks_ - b;
      bool finite = true;
      for (int64_t i = 0; i < n; ++i) {
        finite = PackValues(w, b + i, w.values + i * kBlock * w.width * 2) && finite;
      }
      if (!finite && a_.row_count > 1) return false;
      WeightedSums<Two>(w, b, n);
    }
    return true;
  }

  // Tiles 0 and 1: the first 16 queries with two pages, 2 and 3: the others.
  template <bool Two>
  void Scores(const Workspace& w, int64_t block) const {
    const int64_t from = start_ + block * kBlock;
    const int64_t half = kKvPage * w.width * 2;
    for (int64_t i = 0; i < 2; ++i) {
      const float* rows = Rows(a_.keys, from + i * kKvPage, kKvPage, w.gathered);
      PackGroup<1>(rows, a_.head_dim, kKvPage, a_.head_dim, w.keys + i * half);
    }
    const auto q_stride = static_cast<size_t>(w.width * 2);
    TileZero<0>();
    TileZero<1>();
    if constexpr (Two) {
      TileZero<2>();
      TileZero<3>();
    }
    const char* q = w.q;
    const char* keys = w.keys;
    for (int64_t k = 0; k < w.width; k += kStep, q += kStep * 2, keys += kTileBytes) {
      TileLoad<4>(q, q_stride);
      TileLoad<6>(keys, 64);
      TileMultiply<0, 4, 6>();
      TileLoad<7>(keys + half, 64);
      TileMultiply<1, 4, 7>();
      if constexpr (Two) {
        TileLoad<5>(q + 16 * q_stride, q_stride);
        TileMultiply<2, 5, 6>();
        TileMultiply<3, 5, 7>();
      }
    }
    float* scores = w.scores + block * kBlock;
    const auto stride = static_cast<size_t>(w.stride) * sizeof(float);
    TileStore<0>(scores, stride);
    TileStore<1>(scores + kKvPage, stride);
    if constexpr (Two) {
      TileStore<2>(scores + 16 * w.stride, stride);
      TileStore<3>(scores + 16 * w.stride + kKvPage, stride);
    }
  }

  // The scores of a query become bf16 numbers e^(score - max), between zeros; its row of `sums`
  // waits for their sum.
  void Softmax(const Workspace& w, int n) const {
    const AttentionRow& row = a_.rows[n / a_.group];
    float* scores = w.scores + n * w.stride;
    const int64_t before = row.first - start_, seen = End(row) - row.first;
    const float* sink = a_.sinks == nullptr ? nullptr : a_.sinks + n % a_.group;
    inverse_[n] = 1.0f / kAvx512Kernels.softmax(scores + before, seen, a_.scale, a_.soft_cap, sink);
    std::memset(scores, 0, static_cast<size_t>(before) * sizeof(float));
    const int64_t behind = blocks_ * kBlock - before - seen;
    std::memset(scores + before + seen, 0, static_cast<size_t>(behind) * sizeof(float));
    // What is written never overtakes what is read.
    for (int64_t i = 0; i < blocks_ * kBlock; i += kStep) {
      const __m512 low = _mm512_loadu_ps(scores + i), high = _mm512_loadu_ps(scores + i + 16);
      _mm512_storeu_si512(reinterpret_cast<char*>(scores) + i * 2, Brain(high, low));
    }
  }

  // Whether all are finite.
  bool PackValues(const Workspace& w, int64_t block, char* out) const {
    const int64_t from = start_ + block * kBlock, dim = a_.head_dim;
    // Of the positions 2d and 2d + 1, element after element.
    alignas(64) static constexpr uint16_t kInterleave[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i interleave = _mm512_load_si512(kInterleave);
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 infinite = 0;
    for (int64_t i = 0; i < 2; ++i) {
      const float* rows = Rows(a_.values, from + i * kKvPage, kKvPage, w.gathered);
      for (int64_t d = 0; d < w.width; d += 16) {
        const int64_t left = dim - d;
        const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff
                                                 : left > 0 ? (1u << left) - 1
                                                            : 0);
        char* tile = out + d / 16 * kTileBytes + i * 8 * 64;
        for (int64_t pair = 0; pair < 8; ++pair) {
          const float* v = rows + 2 * pair * dim + d;
          const __m512i both =
              Brain(_mm512_maskz_loadu_ps(mask, v + dim), _mm512_maskz_loadu_ps(mask, v));
          infinite |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(both, exponent), exponent);
          _mm512_storeu_si512(tile + pair * 64, _mm512_permutexvar_epi16(interleave, both));
        }
      }
    }
    return infinite == 0;
  }

  // sums += p * values of `count` blocks, packed. Tiles 0 and 1: 32 elements of the first 16
  // queries, 2 and 3: of the others.
  template <bool Two>
  void WeightedSums(const Workspace& w, int64_t block, int64_t count) const {
    const auto p_stride = static_cast<size_t>(w.stride) * sizeof(float);
    const auto stride = static_cast<size_t>(w.width) * sizeof(float);
    for (int64_t d = 0; d < w.width; d += 32) {
      float* sums = w.sums + d;
      float* others = sums + 16 * w.width;
      TileLoad<0>(sums, stride);
      TileLoad<1>(sums + 16, stride);
      if constexpr (Two) {
        TileLoad<2>(others, stride);
        TileLoad<3>(others + 16, stride);
      }
      const char* p = reinterpret_cast<const char*>(w.scores) + block * kBlock * 2;
      const char* values = w.values + d / 16 * kTileBytes;
      for (int64_t b = 0; b < count; ++b, p += kBlock * 2, values += kBlock * w.width * 2) {
        TileLoad<4>(p, p_stride);
        TileLoad<6>(values, 64);
        TileMultiply<0, 4, 6>();
        TileLoad<7>(values + kTileBytes, 64);
        TileMultiply<1, 4, 7>();
        if constexpr (Two) {
          TileLoad<5>(p + 16 * p_stride, p_stride);
          TileMultiply<2, 5, 6>();
          TileMultiply<3, 5, 7>();
        }
      }
      TileStore<0>(sums, stride);
      TileStore<1>(sums + 16, stride);
      if constexpr (Two) {
        TileStore<2>(others, stride);
        TileStore<3>(others + 16, stride);
      }
    }
  }

  void Finish(const Workspace& w) const {
    for (int n = 0; n < count_; ++n) {
      const float* sums = w.sums + n * w.width;
      float* out = a_.rows[n / a_.group].out + int64_t{n % a_.group} * a_.head_dim;
      for (int64_t i = 0; i < a_.head_dim; ++i) out[i] = sums[i] * inverse_[n];
    }
  }

  const AttentionArgs& a_;
  const int count_;      // queries
  int64_t first_, end_;  // positions that any row sees
  int64_t start_, blocks_;
  mutable float inverse_[kAttentionQueries];
};

}  // namespace

void Attention(const AttentionArgs& args) {
  AttentionArgs part = args;
  if (args.row_count > 1) {
    bool extra = false;
    for (int i = 0; i < args.row_count; ++i) extra = extra || args.rows[i].extra_count > 0;
    if (!extra && Call(args).Run()) return;
    part.row_count = 1;
    for (int i = 0; i < args.row_count; ++i) {
      part.rows = args.rows + i;
      Attention(part);
    }
    return;
  }
  for (int h = 0; h < args.group; h += kAttentionQueries) {
    AttentionRow row = args.rows[0];
    row.q += int64_t{h} * args.head_dim;
    row.out += int64_t{h} * args.head_dim;
    part.rows = &row;
    part.group = args.group - h < kAttentionQueries ? args.group - h : kAttentionQueries;
    Call(part).Run();
  }
}

}  // namespace pawl::amx
