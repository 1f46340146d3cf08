// The kernels of the CUDA backend: for each the struct of its arguments and the function that
// launches it. In order: matrix products, what else a transformer layer does, experts, many rows at
// once, the head with the draw, and the sampler.
//
// A launch function returns kInternal when the launch fails.
#ifndef PAWL_KERNELS_CUDA_KERNELS_H_
#define PAWL_KERNELS_CUDA_KERNELS_H_

#include <cstdint>
#include <memory>

#include "kernels/cuda/matrix.h"
#include "kernels/cuda/runtime.h"
#include "pawl/cuda_kernels.h"
#include "src/base/random.h"

namespace pawl::PAWL_GPU {

// Products of weights with few rows of activations (decode, verify, small chunks), with what comes
// before and after them in a transformer layer folded in: matmul.cuh.

constexpr int kMostSkinnyRows = 64;

enum class Gate : uint8_t { kNone, kSilu, kGeluTanh };

// y[r] = w x[r] (+ bias), for one of up to three matrices that read the same x.
struct MatMulPart {
  DeviceMatrix w;
  const float* bias = nullptr;  // or none
  DeviceMatrix up;              // with a gate: y = act(w x + bias) . (up x + up_bias)
  const float* up_bias = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;  // floats from row to row
};

struct MatMul {
  MatMulPart parts[3];
  int part_count = 1;  // of one type of weights
  // Row r at x + r * x_stride, 16-byte aligned; floats.
  const float* x = nullptr;
  int64_t x_stride = 0;
  const int32_t* x_rows = nullptr;  // not null: row r is row x_rows[r] of x
  int rows = 0;                     // at most kMostSkinnyRows
  // Not null: x is normed first, x / sqrt(mean(x^2) + epsilon) * norm. [columns, padded to 32]
  const float* norm = nullptr;
  float epsilon = 0.0f;
  Gate gate = Gate::kNone;
  bool add = false;       // y += instead of y =
  float soft_cap = 0.0f;  // c: results v become c tanh(v / c)
  // Not null: only these rows of w, ascending, results in the order of the list; how many is read
  // from the device. One part, no gate.
  const int32_t* row_list = nullptr;
  const int32_t* row_list_count = nullptr;
  // Not null: not_finite[r] is set to 1 when a result of row r is NaN or infinite.
  int32_t* not_finite = nullptr;
};

// Errors: kInternal when the launch fails.
Status RunMatMul(const MatMul& args, Stream stream);

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
  // Not null: queries go here as bf16 instead, [heads][head_dim] in a row.
  uint16_t* rounded = nullptr;
  int64_t rounded_stride = 0;
};
Status RunRotateAndStore(const RotateAndStore& args, Stream stream);

// Rows of one sequence that follow each other in a call.
struct RowRun {
  int32_t first = 0, count = 0;
};

// out[r] = softmax(soft_cap(q k^T scale)) v for every query head of row r. A head's sink, where
// there are some, is a score more in the sum of its softmax, without a value. [heads]
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
  const float* sinks = nullptr;  // as below
  int most_positions = 0;        // that any row sees
  float* partial = nullptr;      // AttentionWorkspace(...) bytes
  float* out = nullptr;
  int64_t out_stride = 0;
};
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

// x[r] += bias.
struct AddBias {
  const float* bias = nullptr;
  int columns = 0, count = 0;
  float* x = nullptr;
  int64_t x_stride = 0;
};
Status RunAddBias(const AddBias& args, Stream stream);

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

// Experts: of many MLPs a router chooses a few for each row, whose answers are added with weights
// (experts.cu, experts.cuh). All of it depends on what the device alone knows, so that a graph of
// these kernels serves any choice. A slot is a row with one of its experts: row r has the slots
// r * chosen and so on, in the order of the experts' numbers, which is the order of the sum.

constexpr int kMostExperts = 1024, kMostChosen = 32;

// How scores become weights.
enum class ScoreKind : uint8_t { kSoftmax, kSigmoid, kSoftmaxOfChosen };

// The experts of each row's slots, and their weights.
struct ChooseExperts {
  const float* scores = nullptr;  // [rows][experts], of the router
  int64_t scores_stride = 0;
  const DeviceRow* rows = nullptr;  // padding gets no experts: -1
  int count = 0, experts = 0, chosen = 0;
  ScoreKind kind = ScoreKind::kSoftmax;
  bool normalized = false;         // the weights of a row are divided by their sum
  float scale = 1.0f;              // and multiplied by this
  const float* factors = nullptr;  // and each expert's by a number of its own; [experts], or none
  const float* choice_bias = nullptr;  // added where experts are compared; [experts], or none
  int groups = 1, chosen_groups = 1;   // only the best groups are chosen from, by their two best
  int32_t* slot_experts = nullptr;     // [count * chosen]
  float* slot_weights = nullptr;
};
Status RunChooseExperts(const ChooseExperts& args, Stream stream);

// The slots of one expert: slots[begin ..] of GroupSlots.
struct ExpertRun {
  int32_t expert = 0, begin = 0, count = 0;
};

// Slots by their experts, ascending: a run for each expert that has some.
struct GroupSlots {
  const int32_t* slot_experts = nullptr;
  int count = 0, experts = 0, chosen = 0;
  ExpertRun* runs = nullptr;  // at most `experts`, and at most `count`
  int32_t* run_count = nullptr;
  int32_t* slots = nullptr;  // [count]
  int32_t* rows = nullptr;   // [count]: theirs
};
Status RunGroupSlots(const GroupSlots& args, Stream stream);

// Matrices of one shape and type, those of an expert so far behind those of the one before.
struct ExpertMatrices {
  DeviceMatrix first;
  int64_t data_stride = 0;        // bytes
  int64_t scales_stride = 0;      // of scales and minimums, elements
  int64_t row_scales_stride = 0;  // elements
  const float* bias = nullptr;    // or none
  int64_t bias_stride = 0;
};

// y[s] = w x (+ bias) for each slot s, w being its expert's; with a gate act(w x) . (up x), or
// (min(w x, c)) sigmoid(1.702 (w x)) (up x + 1) with up x between -c and c, c being `clamp`.
struct ExpertProducts {
  ExpertMatrices w, up;
  const float* x = nullptr;  // as in MatMul
  int64_t x_stride = 0;
  const int32_t* x_rows = nullptr;  // GroupSlots::rows or GroupSlots::slots
  const ExpertRun* runs = nullptr;
  const int32_t* run_count = nullptr;
  const int32_t* slots = nullptr;
  int most_runs = 0;    // that there can be
  int slots_a_run = 0;  // about; changes no result
  const float* norm = nullptr;
  float epsilon = 0.0f;
  Gate gate = Gate::kNone;
  float clamp = 0.0f;  // 0: none
  float* y = nullptr;
  int64_t y_stride = 0;
};
Status RunExpertProducts(const ExpertProducts& args, Stream stream);

// to[r] = shared[r] and then, slot by slot, weight * y[slot]; or this added to to[r]. Rows without
// experts stay.
struct AddExperts {
  const int32_t* slot_experts = nullptr;
  const float* slot_weights = nullptr;
  int count = 0, chosen = 0;  // rows; slots of each
  const float* y = nullptr;   // of slots
  int64_t y_stride = 0;
  // Or none. Times the sigmoid of shared_scores[r * shared_scores_stride], where there are some.
  // May be `to`.
  const float* shared = nullptr;
  int64_t shared_stride = 0;
  const float* shared_scores = nullptr;
  int64_t shared_scores_stride = 0;
  int columns = 0;
  bool add = false;
  float* to = nullptr;
  int64_t to_stride = 0;
};
Status RunAddExperts(const AddExperts& args, Stream stream);

// What many rows at once need: attention on tensor cores, and activations and weights as bf16 for
// library products. A row's result does not depend on the rows next to it, but its bits are not
// those of the kernels for few rows: activations are rounded to bf16 here.

constexpr int kPrefillTile = 128;

// As Attention, for plain rows (without `extra`), bf16 queries and results, which may be the same
// memory. `scale` is above zero. The rows of a run follow each other in their sequence, unless
// they see both sides.
struct PrefillAttention {
  const uint16_t* q = nullptr;
  int64_t q_stride = 0;
  const DeviceRow* rows = nullptr;
  const RowRun* runs = nullptr;  // of at most kPrefillTile plain rows
  int run_count = 0;
  int heads = 0;
  const int32_t* tables = nullptr;
  Cache cache;
  float scale = 1.0f, soft_cap = 0.0f;
  int window = 0;
  // Rows see all positions in front of their `prefix`, those behind them too; there is no window.
  bool both_sides = false;
  const float* sinks = nullptr;
  uint16_t* out = nullptr;
  int64_t out_stride = 0;
};
Status RunPrefillAttention(const PrefillAttention& args, Stream stream);

// `to` = x, or x / sqrt(mean(x^2) + epsilon) * norm; bf16, zeros from `columns` to `to_stride`.
// Strides are multiples of 8, rows 16-byte aligned.
struct ToBf16 {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* norm = nullptr;
  float epsilon = 0.0f;
  int columns = 0, count = 0;
  uint16_t* to = nullptr;
  int64_t to_stride = 0;
};
Status RunToBf16(const ToBf16& args, Stream stream);

// `to` = act(gate) . up; all bf16, zeros from `columns` to `stride`. `to` may be `gate` or `up`.
// The stride is a multiple of 8, rows are 16-byte aligned.
struct GateRows {
  const uint16_t* gate = nullptr;
  const uint16_t* up = nullptr;
  int64_t stride = 0;  // of all three
  Gate act = Gate::kNone;
  int columns = 0, count = 0;
  uint16_t* to = nullptr;
};
Status RunGateRows(const GateRows& args, Stream stream);

// Weights of any type as rows of PaddedColumns(columns) bf16.
Status RunUnpack(const DeviceMatrix& matrix, uint16_t* to, Stream stream);

// y[r] (+)= w x[r] for many rows: w [outputs][w_stride] and x [rows][x_stride] bf16, y floats, or,
// where nothing is added, bf16.
struct LibraryProduct {
  const uint16_t* w = nullptr;
  int64_t w_stride = 0;
  const uint16_t* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  uint16_t* rounded = nullptr;  // not null: results go here instead
  int64_t y_stride = 0;         // elements
  int outputs = 0, columns = 0, rows = 0;
  bool add = false;
};

// What a Library takes of device memory: its workspace, and about as much for its code.
#if defined(PAWL_CUDA_EMULATED)
constexpr int64_t kLibraryWorkspace = int64_t{1} << 20, kLibraryBytes = kLibraryWorkspace;
#else
constexpr int64_t kLibraryWorkspace = int64_t{32} << 20, kLibraryBytes = 2 * kLibraryWorkspace;
#endif

// cuBLASLt, loaded when first asked for, so that nothing needs it to start or to decode.
class Library {
 public:
  virtual ~Library() = default;
  // One thread at a time. Errors: kUnsupported where the library does not take such a product,
  // kInternal where it failed.
  virtual Status Run(const LibraryProduct& product, Stream stream) = 0;
};
// Errors (kUnsupported): there is none, and where it was looked for.
Result<std::unique_ptr<Library>> OpenLibrary();

// The head and the draw in one launch: tokens from the last rows of a forward pass, without logits
// in memory and without reading rows of the head that no mask allows. Kernel: head.cuh.

// Where the blocks of a launch meet. Zeros before the first launch; each launch leaves zeros.
struct HeadState {
  DrawKey best[kMostSkinnyRows];
  int32_t blocks_done;
};

// What there is to know about the rows, in device memory, so that launches are the same for all.
struct HeadRows {
  // Rows of the masks; kEveryToken, kNoTokenWanted.
  int32_t masks[kMostSkinnyRows];
  int32_t limits[kMostSkinnyRows];  // tokens from here on are not allowed
  float temperatures[kMostSkinnyRows];
  uint64_t seeds[kMostSkinnyRows];
  uint64_t positions[kMostSkinnyRows];
  int32_t list_count;
};
constexpr int32_t kEveryToken = -1;
constexpr int32_t kNoTokenWanted = -2;  // the row is not computed; its token is kNothingAllowed

// What the kernels find.
struct HeadAnswers {
  int32_t tokens[kMostSkinnyRows];      // or kNothingAllowed, kBrokenLogits
  int32_t not_finite[kMostSkinnyRows];  // of products that give logits (MatMul::not_finite)
};

// tokens[r] is what Sampler of src/decode/sampler.h draws from head . norm(x[r]) with a temperature
// and no filters, whatever the number of rows and in whatever order blocks run.
struct HeadSample {
  // One part; bias, up, y, gate, add and the row list are not looked at.
  MatMul product;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;
  const HeadRows* rows = nullptr;
  // Not null: the tokens that any row allows, ascending, rows->list_count of them, at most
  // most_listed. Otherwise blocks find them in the masks.
  const int32_t* list = nullptr;
  int most_listed = 0;
  HeadState* state = nullptr;
  HeadAnswers* answers = nullptr;
};

// Errors: kInternal when the launch fails.
Status RunHeadSample(const HeadSample& args, Stream stream);

// All that can be asked of a sampler, on rows of logits in device memory: penalties, mask,
// temperature, top-k, top-p, min-p, the draw. Rows that want a temperature and a mask only are
// drawn in the head itself (HeadSample).

struct ProcessRow {
  Penalties penalties;
  int32_t seen_begin = 0, seen_count = 0;  // of ProcessLogits::seen
  int32_t top_k = 0;                       // 0: off
  float top_p = 1.0f;                      // 1: off
  float least = -3.402823466e38f;          // log(min_p): the least logit, less the largest, / T
};

// tokens[r] is what Sampler of src/decode/sampler.h draws from row r. Penalties change the logits
// in place.
struct ProcessLogits {
  float* logits = nullptr;
  int64_t logits_stride = 0;
  int count = 0;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;
  const HeadRows* rows = nullptr;
  const ProcessRow* process = nullptr;  // [count]
  const int32_t* seen = nullptr;        // pairs: a token, and how often it is in the output
  HeadAnswers* answers = nullptr;
};
Status RunProcessLogits(const ProcessLogits& args, Stream stream);

// The functions of pawl/cuda_kernels.h in the form that is compiled here (PAWL_GPU).

int64_t WorkspaceBytes(int64_t count, int64_t vocabulary);
Status ApplyBitmask(const BitmaskArgs& args, Stream stream);
Status Sample(const SampleArgs& args, Stream stream);
Status LogSoftmax(const LogSoftmaxArgs& args, Stream stream);
Status TopK(const TopKArgs& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_KERNELS_H_
