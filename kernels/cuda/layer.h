// What a transformer layer does beside its matrix products: embedding, rotation and the key-value
// cache, attention, norms behind a sublayer.
#ifndef PAWL_KERNELS_CUDA_LAYER_H_
#define PAWL_KERNELS_CUDA_LAYER_H_

#include <cstdint>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/matrix.h"
#include "kernels/cuda/runtime.h"

namespace pawl::PAWL_GPU {

// A row of a forward pass as kernels see it, 32 bytes. Slots are physical: page * kPageSize +
// offset. A row sees the positions first .. prefix-1, found through the page table that starts at
// tables[table_begin], and then the slots extra[extra_begin ..], whose positions follow; `first`
// comes from a layer's window. A row with position < 0 is padding and sees nothing.
struct DeviceRow {
  int32_t token = 0;
  int32_t position = -1;
  int32_t slot = 0;  // where its keys and values go
  int32_t prefix = 0;
  int32_t extra_begin = 0, extra_count = 0;
  int32_t table_begin = 0;
  int32_t output = -1;  // where its logits go; -1: nowhere
};

constexpr int kPageSize = 16;      // positions
constexpr int kMostHeadDim = 256;  // and even

enum class CacheType : uint8_t { kF32, kBf16, kFp8 };
PAWL_HOST_DEVICE constexpr int CacheBytes(CacheType type) {
  return type == CacheType::kF32 ? 4 : type == CacheType::kBf16 ? 2 : 1;
}

// Heads are stored with a multiple of 8 elements, so that 8 can be loaded at once; kernels write
// the first head_dim of them, and the rest must be finite.
PAWL_HOST_DEVICE constexpr int HeadStride(int head_dim) { return (head_dim + 7) / 8 * 8; }

// Keys or values of one layer: [page][kv_head][kPageSize][HeadStride(head_dim)].
struct Cache {
  void* keys = nullptr;
  void* values = nullptr;
  CacheType type = CacheType::kBf16;
  int32_t kv_heads = 0, head_dim = 0;
};

// x[r] = the embedding of the token of row r, times `scale`.
struct Embed {
  DeviceMatrix table;
  const DeviceRow* rows = nullptr;
  int count = 0;
  float scale = 1.0f;
  float* x = nullptr;
  int64_t x_stride = 0;
};
Status RunEmbed(const Embed& args, Stream stream);

// Rows of [heads queries][kv_heads keys][kv_heads values]: queries and keys are normed (where there
// are weights) and rotated, keys and values stored in the cache, queries left in place.
struct RotateAndStore {
  float* qkv = nullptr;
  int64_t stride = 0;
  const DeviceRow* rows = nullptr;
  int count = 0;
  int heads = 0;
  // Added first; [heads or kv_heads][head_dim], or none.
  const float* q_bias = nullptr;
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* q_norm = nullptr;  // [head_dim], or none
  const float* k_norm = nullptr;
  float epsilon = 0.0f;
  const float* rope = nullptr;  // [position][head_dim / 2 cosines, head_dim / 2 sines]
  Cache cache;
};
Status RunRotateAndStore(const RotateAndStore& args, Stream stream);

// Rows of one sequence that follow each other in a call.
struct RowRun {
  int32_t first = 0, count = 0;
};
constexpr int kMostGroupRows = 8;

// out[r] = softmax(soft_cap(q k^T scale)) v for every query head of row r.
struct Attention {
  const float* q = nullptr;
  int64_t q_stride = 0;
  const DeviceRow* rows = nullptr;
  int count = 0;
  int heads = 0;
  const int32_t* tables = nullptr;
  const int32_t* extra = nullptr;
  Cache cache;
  float scale = 1.0f, soft_cap = 0.0f;
  int window = 0;
  int most_positions = 0;  // that any row sees
  // Not null: rows in groups, each of one page table and at most kMostGroupRows rows; groups of no
  // rows may follow. The bits are the same without.
  const RowRun* groups = nullptr;
  int group_count = 0;
  float* partial = nullptr;  // AttentionWorkspace(...) bytes
  float* out = nullptr;
  int64_t out_stride = 0;
};
// Whether groups fit the shared memory that a block can have: 163 KB on compute capability 8.0, 99
// on 8.6 and 8.9, 227 on 9.0 (DeviceFacts::shared_bytes).
bool AttentionTakesGroups(CacheType type, int heads, int kv_heads, int head_dim,
                          int64_t shared_bytes);
// How many rows to put into a group so that blocks still fill a device; 1: do without.
int AttentionGroupRows(int rows, int heads, int kv_heads, int positions, int multiprocessors);
int64_t AttentionWorkspace(int rows, int heads, int head_dim, int most_positions);
Status RunAttention(const Attention& args, Stream stream);

// x[r] += y[r] / sqrt(mean(y[r]^2) + epsilon) * norm.
struct NormAndAdd {
  const float* y = nullptr;
  int64_t y_stride = 0;
  const float* norm = nullptr;
  float epsilon = 0.0f;
  int columns = 0, count = 0;
  float* x = nullptr;
  int64_t x_stride = 0;
};
Status RunNormAndAdd(const NormAndAdd& args, Stream stream);

// Keys and values of the slots moves[2i] go to the slots moves[2i + 1], in `layers` caches whose
// bytes lie `layer_stride` apart. No slot is both read and written.
struct MoveSlots {
  Cache first;
  int64_t layer_stride = 0;
  int layers = 0;
  const int32_t* moves = nullptr;
  int count = 0;
};
Status RunMoveSlots(const MoveSlots& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_LAYER_H_
