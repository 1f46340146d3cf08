// The arithmetic of a transformer layer on the CPU, behind one table of functions.
//
//   const pawl::KernelSet& k = *pawl::FindKernels(pawl::KernelVariant::kAuto);
//   k.rmsnorm(x, weight, 1e-5f, hidden, y);
//   k.pack(args.w.type, y, hidden, 1, hidden, packed);
//   k.matmul(args, 0, args.w.rows);  // args.x = packed
//
// There are four variants of the same source (kernels_inl.h), compiled for plain C++, AVX2+FMA,
// AVX-512, the last with and without AVX-512 VNNI for integer weights (integers.h), and 64-bit
// ARM's NEON, with integer weights in three forms. All of them do
// the same operations on 16 lanes in the same order, so their results are equal bit for bit; only
// speed differs. One for AMX (amx.cc) differs in products with bf16 weights: it takes 16 bits of
// each input and adds in the order of the tile unit. So does one for BFMMLA (neon_bfmmla.cc), in
// the order of that instruction. Two others, which are never chosen unless they
// are asked for, take 8 bits of each input (a bf16 number) there, and of all that attention
// multiplies: half the work, and less exact; one is for AMX, one for AVX-512 BF16 (avx512_bf16.cc).
// In each variant the order of additions for an element of a result depends on the length of the
// sum alone: not on how many rows are in the call, where a row stands in it, or how the work is cut
// between threads.
//
// Everything here is thread-safe: functions touch only what their arguments name. Pointers need the
// alignment of their element type and no more. Nothing is allocated.
#ifndef PAWL_KERNELS_CPU_KERNELS_H_
#define PAWL_KERNELS_CPU_KERNELS_H_

#include <cstdint>

namespace pawl {

// kI8 and those behind it hold unsigned integers u of so many bits in groups of neighbours of a
// row. A group has a scale and may have a minimum: half-precision numbers, or steps, which are
// bytes times a float that 256 neighbours share (StepKind). A weight is worth
//   (u - 2^(bits - 1)) scale   without minimums
//   u scale + minimum          with them
//   table[u] scale             of a kI4 or kI3 matrix that has a table
// Where the integers lie: kernels/cpu/integers.h.
enum class WeightType : uint8_t { kF32, kBf16, kF16, kI8, kI6, kI5, kI4, kI3, kI2 };

// Integers come in blocks of so many neighbours of a row, those of so many rows side by side; the
// last ones are padded.
constexpr int64_t kQuantBlock = 32;
constexpr int64_t kQuantTile = 16;
constexpr int64_t kStepsBlock = 256;  // neighbours whose steps share a factor
// What the byte b of a step stands for: an integer with a sign; the float of eight bits of NVFP4,
// whose bits are those of a half, shifted to the right by 7; 2^(b - 127), or 0 for b = 0.
enum class StepKind : uint8_t { kNone, kInteger, kE4m3, kPower };
inline bool IsQuantized(WeightType type) { return type >= WeightType::kI8; }
// Bits of an integer.
inline int QuantBits(WeightType type) {
  constexpr int kBits[] = {8, 6, 5, 4, 3, 2};
  return kBits[static_cast<int>(type) - static_cast<int>(WeightType::kI8)];
}
// Bytes of one element of the types that are not quantized.
inline int WeightBytes(WeightType type) { return type == WeightType::kF32 ? 4 : 2; }
inline int64_t QuantBlocks(int64_t cols) { return (cols + kQuantBlock - 1) / kQuantBlock; }
inline int64_t QuantTiles(int64_t rows) { return (rows + kQuantTile - 1) / kQuantTile; }
// Bytes of the integers.
inline int64_t QuantBytes(WeightType type, int64_t rows, int64_t cols) {
  return QuantTiles(rows) * kQuantTile * QuantBlocks(cols) * kQuantBlock / 8 * QuantBits(type);
}

// A row-major matrix in memory that someone else owns, such as a mapped file.
struct Matrix {
  const void* data = nullptr;
  WeightType type = WeightType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  // Of group g of row r at (r / kQuantTile * groups + g) * kQuantTile + r % kQuantTile, for all
  // rows of the last tile.
  const uint16_t* scales = nullptr;
  const uint16_t* minimums = nullptr;
  bool has_minimums = false;      // kI5, kI4; always of kI2
  const int8_t* table = nullptr;  // kI4, kI3 without minimums: what the integers stand for; 16
  // With steps, in place of halves: a byte, and what it is multiplied with, which has at most 15
  // bits that are not zero. The factor of 256 neighbours is where the scale of a group is, with
  // their number in place of the group's. There are integers of kI5 and kI4 with minimums, of kI4
  // with groups of 32 and a table, always of kI6, kI3 and kI2; powers of kI4 with groups of 32 and
  // a table; kE4m3 of kI4 with groups of 16 and a table, which has steps always.
  StepKind step_kind = StepKind::kNone;
  const uint8_t *steps = nullptr, *minimum_steps = nullptr;
  const float *factors = nullptr, *minimum_factors = nullptr;
  // 2^shift weights are a group. 5 or 6; always 4 of kI6, kI2 and of kI3 without a table; 4 or 5 of
  // kI3 with a table; 4 to 6 of kI4 with one.
  int group_shift = 5;
  int64_t groups = 0;  // of a padded row
};

inline int64_t StepBlocks(const Matrix& m) { return (m.cols + kStepsBlock - 1) / kStepsBlock; }
inline bool HasSteps(const Matrix& m) { return m.step_kind != StepKind::kNone; }
// Bytes of a matrix with its scales.
inline int64_t MatrixBytes(const Matrix& m) {
  if (!IsQuantized(m.type)) return m.rows * m.cols * WeightBytes(m.type);
  const int64_t of_row = HasSteps(m) ? m.groups + 4 * StepBlocks(m) : 2 * m.groups;
  return QuantBytes(m.type, m.rows, m.cols) +
         QuantTiles(m.rows) * kQuantTile * of_row * (m.has_minimums ? 2 : 1);
}

// Whether inputs that are packed for products with the one can be used with the other.
inline bool PackedAlike(WeightType a, WeightType b) {
  const auto paired = [](WeightType type) { return type == WeightType::kBf16; };
  return IsQuantized(a) == IsQuantized(b) && paired(a) == paired(b);
}

// Inputs of a matrix product are packed: put into the order that the kernels read them in. Groups
// of kPackRows rows are packed each on its own, the group of row r at r * PackedWidth(n) of the
// output.
constexpr int kPackRows = 16;
inline int64_t PackedWidth(int64_t n) { return (n + 31) / 32 * 32; }
// Floats that packing `rows` rows of n inputs needs; what lies behind the rows is read, not used.
inline int64_t PackedFloats(int64_t rows, int64_t n) { return rows * PackedWidth(n) + 32; }

// y[r] = w x[r] + bias for each of `rows` input rows; added to what y holds when `add` is set.
struct MatMulArgs {
  Matrix w;                     // rows: outputs, cols: inputs (the layout of nn.Linear)
  const float* bias = nullptr;  // [w.rows], or none
  const float* x = nullptr;     // `rows` rows, packed for w.type
  int rows = 0;
  float* y = nullptr;  // row r at y + (y_rows ? y_rows[r] : r) * y_stride
  int64_t y_stride = 0;
  const int32_t* y_rows = nullptr;
  bool add = false;
};

// Keys and values lie in pages of 2^kKvPageShift positions. A slot is page * 2^kKvPageShift +
// offset.
constexpr int kKvPageShift = 4;
constexpr int64_t kKvPage = int64_t{1} << kKvPageShift;

// Keys and values of one sequence that one key-value head stands for: what a row of queries sees of
// them.
struct AttentionRow {
  const float* q = nullptr;  // [group][head_dim]
  float* out = nullptr;      // [group][head_dim]
  // The positions first .. prefix + extra_count - 1 are seen, at least one. Those from the prefix
  // on are the slots of `extra`.
  int64_t first = 0, prefix = 0;
  const int32_t* extra = nullptr;
  int extra_count = 0;
};

// Several rows of one sequence, all query heads that share one key-value head. What is computed for
// a row depends on the keys and values that it sees in the order of their positions: not on the
// pages that they lie in, nor on the other rows. Slots of a page that no row sees may be read.
struct AttentionArgs {
  const AttentionRow* rows = nullptr;
  int row_count = 0;               // at most AttentionRows(group)
  const float* keys = nullptr;     // page p: [kKvPage][head_dim] at keys + p * page_stride
  const float* values = nullptr;   // likewise
  int64_t page_stride = 0;         // floats
  const int32_t* pages = nullptr;  // position j is in pages[j / kKvPage] at offset j % kKvPage
  int group = 0;
  int head_dim = 0;
  float scale = 1.0f;
  float soft_cap = 0.0f;         // c: scaled scores s become c tanh(s / c); 0: they stay
  const float* sinks = nullptr;  // [group]: of each head, one more score without a value; or none
  float* scratch = nullptr;      // AttentionScratch floats
};

// Rows share what is read of keys and values, and pay for it with room for their scores.
constexpr int kAttentionQueries = 32;
inline int AttentionRows(int group) {
  return group < kAttentionQueries ? kAttentionQueries / group : 1;
}
// Room for the scores of a query that sees so many positions.
inline int64_t AttentionStride(int64_t positions) { return (positions + 15) / 16 * 16; }
// Where there are `positions` from the first that any row sees to the last.
inline int64_t AttentionScratch(int64_t positions, int rows, int group, int head_dim) {
  const int64_t queries = int64_t{rows} * group;
  return (queries < kAttentionQueries ? queries : kAttentionQueries) *
             (AttentionStride(positions) + head_dim + 96) +
         PackedWidth(head_dim) * 224 + 64;
}

// A token's step of a linear recurrence (gated delta net, Mamba-2), in one head:
//   S' = decay S + k d^T,  d = beta (v - decay S^T k) with `delta`, else beta v;  out = S'^T q
// Each element of a column of S is used in the order of the keys: bits do not depend on the call.
struct StateStepArgs {
  const float* from = nullptr;  // S: [keys][values]
  float* to = nullptr;          // S', where it is wanted; may be `from`
  const float* k = nullptr;     // [keys]
  const float* q = nullptr;     // [keys]
  const float* v = nullptr;     // [values]
  float* out = nullptr;         // [values], where it is wanted
  int keys = 0, values = 0;
  float decay = 1.0f, beta = 1.0f;
  bool delta = false;
};

// A token's output of a causal convolution over positions, each channel on its own (depthwise).
struct ConvolutionArgs {
  const float* const* inputs = nullptr;  // [taps] -> [channels]; the token's own is the last
  const float* weights = nullptr;        // [taps][channels]
  const float* bias = nullptr;           // [channels], or none
  float* y = nullptr;                    // [channels]; none of the inputs
  int taps = 0;
  int64_t channels = 0;
  bool silu = false;  // of the answer
};

struct KernelSet {
  const char* name;  // "portable", "avx2", "avx512", "avx512-vnni", "amx", "amx-bf16",
                     // "avx512-bf16", "neon", "neon-dot", "neon-i8mm", "neon-bfmmla"

  // Packs rows of n inputs for products with weights of that type, row r at x + r * x_stride.
  // Writes at most 4 bytes for each that it reads.
  void (*pack)(WeightType type, const float* x, int64_t x_stride, int rows, int64_t n, float* out);
  // Outputs begin .. end-1 of a matrix product. Reads (end - begin) * w.cols * WeightBytes bytes of
  // weights from memory once, whatever the number of rows, as long as the rows of x fit the L2
  // cache.
  void (*matmul)(const MatMulArgs& args, int64_t begin, int64_t end);
  // y = x / sqrt(mean(x^2) + eps) * weight. y may be x. 3 * 4 * n bytes.
  void (*rmsnorm)(const float* x, const float* weight, float eps, int64_t n, float* y);
  // Rotates each of `heads` heads of x in place, element i with element i + head_dim/2 (the
  // "rotate_half" order of Hugging Face files). cos_sin: head_dim/2 cosines, then as many sines.
  void (*rope)(float* x, const float* cos_sin, int heads, int head_dim);
  // softmax(soft_cap(q k^T * scale)) v. Reads 2 * 4 * head_dim bytes per position, once for the
  // rows.
  void (*attention)(const AttentionArgs& args);
  // scores[0 .. n-1] -> e^(s - max), s = soft_cap(score * scale); returns their sum. Zeros follow
  // up to a multiple of 16. `sink`, where there is one, counts in the maximum and in the sum.
  float (*softmax)(float* scores, int64_t n, float scale, float soft_cap, const float* sink);
  // y = gate / (1 + exp(-gate)) * up. y may be gate or up. 3 * 4 * n bytes.
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* y);
  // y = gelu(gate) * up with gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). As above.
  void (*gelu_mul)(const float* gate, const float* up, int64_t n, float* y);
  // x = cap * tanh(x / cap), in place. NaN stays NaN. 2 * 4 * n bytes.
  void (*soft_cap)(float* x, float cap, int64_t n);
  // out = the n values at `data`, exactly.
  void (*to_float)(const void* data, WeightType type, int64_t n, float* out);
  // out = row `row` of a matrix, every weight as matmul sees it.
  void (*read_row)(const Matrix& matrix, int64_t row, float* out);
  // Whether no value is infinite or NaN. 4 * n bytes.
  bool (*all_finite)(const float* x, int64_t n);
  // The sum of n floats, in an order of its own: for measuring how fast memory can be read.
  float (*read_sum)(const float* x, int64_t n);
  // y = up / (1 + exp(-gate)). y may be gate or up. 3 * 4 * n bytes.
  void (*sigmoid_mul)(const float* gate, const float* up, int64_t n, float* y);
  // Reads S once, of the delta rule twice, and writes it once.
  void (*state_step)(const StateStepArgs& args);
  void (*convolution)(const ConvolutionArgs& args);
};

enum class KernelVariant : int {
  kAuto,
  kPortable,
  kAvx2,
  kAvx512,
  kAvx512Vnni,
  kAmx,
  kAmxBf16,
  kAvx512Bf16,
  kNeon,
  kNeonDot,
  kNeonI8mm,
  kNeonBfmmla
};

// The kernels of that variant, or nullptr when this processor or this build lacks them. kAuto
// always finds some, and never kAmxBf16 or kAvx512Bf16.
const KernelSet* FindKernels(KernelVariant variant);

// The tables of the compiled variants; kernels.cc picks one.

extern const KernelSet kPortableKernels;
#if defined(PAWL_X86_KERNELS)
extern const KernelSet kAvx2Kernels;
extern const KernelSet kAvx512Kernels;
// The same with AVX-512 VNNI for integer weights.
extern const KernelSet kAvx512VnniKernels;
// The same with inputs next to bf16 weights rounded to bf16. It needs AVX-512 BF16 too.
extern const KernelSet kAvx512Bf16Kernels;
// REQUIRES: RequestAmx() is true.
const KernelSet& AmxKernels();
const KernelSet& AmxBf16Kernels();
#elif defined(PAWL_ARM_KERNELS)
extern const KernelSet kNeonKernels;
// The same with SDOT, and SMMLA, for integer weights.
extern const KernelSet kNeonDotKernels;
extern const KernelSet kNeonI8mmKernels;
// The last one with BFMMLA for bf16 weights.
const KernelSet& NeonBfmmlaKernels();
#endif

}  // namespace pawl

#endif  // PAWL_KERNELS_CPU_KERNELS_H_
