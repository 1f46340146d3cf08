// The transformer on the CPU, one implementation for all families.
#ifndef PAWL_SRC_MODEL_TRANSFORMER_CPU_H_
#define PAWL_SRC_MODEL_TRANSFORMER_CPU_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "src/base/pages.h"
#include "src/base/thread_pool.h"
#include "src/model/kv_sequences.h"
#include "src/model/model.h"
#include "src/model/recurrent/recurrent_mixer.h"
#include "src/model/row_plan.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_weights.h"

namespace pawl {

// Loops of fewer multiply-adds than this stay on the calling thread: some 40 microseconds of one
// core, a few times what it takes to wake another.
inline constexpr int64_t kWorthThreads = int64_t{1} << 20;

struct DraftHead;

// As in ModelOptions.
struct KvBytes {
  int64_t bytes = ModelOptions().kv_bytes;
  int64_t kept = ModelOptions().kept_kv_bytes;
};

class TransformerCpu final : public Model {
 public:
  // Throws std::bad_alloc.
  TransformerCpu(TransformerConfig config, TransformerWeights weights, const KernelSet& kernels,
                 int threads, int64_t worth_threads = kWorthThreads, const KvBytes& kv = {},
                 const std::vector<std::shared_ptr<const DraftHead>>& heads = {});
  ~TransformerCpu() override;
  // With one head more. What is left of `from` is of no use. Throws std::bad_alloc.
  static std::unique_ptr<TransformerCpu> WithHead(TransformerCpu&& from, DraftHead head);

  // Of the keys and values of kPagePositions positions, or more where states need it.
  static int64_t PageBytes(const TransformerConfig& config);

  const ModelInfo& info() const override { return info_; }
  std::optional<MaskFilling> filling() const override;
  Result<SequenceId> NewSequence(int capacity) override { return NewAdapted(capacity, 0); }
  Result<SequenceId> NewAdapted(int capacity, int adapter) override;
  void FreeSequence(SequenceId sequence) override;
  void Truncate(SequenceId sequence, int length) override;
  int ReusePrefix(SequenceId sequence, std::span<const TokenId> tokens) override;
  int ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens) override;
  KvMemory kv_memory() const override;
  Status Run(const ModelCall& call) override;
  std::span<const int32_t> bad_rows() const override { return bad_rows_; }
  Status CommitTree(SequenceId sequence, int row) override;
  Status CopySequence(SequenceId from, SequenceId to) override;

  const TransformerConfig& config() const { return config_; }
  const TransformerWeights& weights() const { return weights_; }
  bool has_states() const { return mixer_.has_states(); }
  const KvSequences& sequences() const { return sequences_; }
  // Bytes of weights that products of the last call were given.
  int64_t product_bytes() const { return product_bytes_; }

 private:
  static constexpr int kBlockRows = 128;
  // What compressed keys look like to a kernel.
  static Attention SharedKeys(const LatentAttention& latent) {
    return {.heads = latent.heads, .kv_heads = 1, .head_dim = latent.rank + latent.rope_dim};
  }
  // f(keys, layer, parts) for layers that have keys in pages; parts: 2 with values next to them, 1
  // where values are the keys.
  template <typename F>
  static void EachKeys(const TransformerConfig& config, const F& f) {
    for (size_t i = 0; i < config.layers.size(); ++i) {
      const Mixer& mixer = config.layers[i].mixer;
      const auto layer = static_cast<int>(i);
      if (const auto* attention = std::get_if<Attention>(&mixer)) f(*attention, layer, 2);
      if (const auto* latent = std::get_if<LatentAttention>(&mixer)) {
        f(SharedKeys(*latent), layer, 1);
      }
    }
  }
  // Floats of the keys of a page, and of its values.
  static int64_t HalfPage(const Attention& attention) {
    return int64_t{attention.kv_heads} * attention.head_dim * kPagePositions;
  }
  struct Free {
    void operator()(float* p) const;
  };
  // Floats that start on a cache line: a vector load that crosses a line costs two.
  using Floats = std::unique_ptr<float[], Free>;
  // Untouched memory; null when there is not enough.
  static Floats AllocateFloats(int64_t count);

  static int64_t KeyFloats(const TransformerConfig& config);
  void PlaceLayers();
  void FillInfo();
  void AllocateScratch();
  static KvLimits AllocatePages(const KvBytes& kv, const TransformerConfig& config,
                                const StateLayout& states, LazyMemory& memory);
  // The first page's keys (value: 0) or values (1).
  float* CacheAt(int layer, int value, int kv_head) const;
  float* CacheAt(int layer, int value, int kv_head, int32_t slot) const;
  void Copy(std::span<const SlotCopy> copies);
  void ExtendRopeTables(int positions);
  // Each of `heads` heads as the rotation of that position demands.
  void Rotate(const Attention& attention, int position, int heads, float* x) const;
  void NormAndRotate(const Attention& attention, const std::vector<float>& weight, int position,
                     int heads, float* x) const;
  void NormHeads(const Attention& attention, const std::vector<float>& weight, int heads,
                 float* x) const;

  // What a call of a recurrent model does first: states, and rows that are computed again.
  void PrepareStates();
  // The layers that run, and whether the taps of a call can be served.
  Status PrepareLayers(const ModelCall& call);
  // A block of at most kBlockRows rows, `first` being its first in the call.
  void ForwardBlock(const ModelCall& call, std::span<const Row> rows, size_t first);
  // Its parts: which rows there are, their embeddings, and what comes behind the layers.
  void BeginBlock(std::span<const Row> rows);
  void Embed(const ModelCall& call, std::span<const Row> rows, size_t first);
  // Errors: kUnsupported and kInvalid of Row::mix.
  Status CheckMixes(std::span<const Row> rows);
  void EmbedMix(std::span<const TokenWeight> mix, float* x);
  void RunLayers(const ModelCall& call, std::span<const Row> rows, size_t first);
  void FinishBlock(const ModelCall& call, std::span<const Row> rows, size_t first);
  // Of rows that see rows of later blocks: layer by layer, in each first all keys and values.
  void ForwardBothSides(const ModelCall& call);
  void RunLayer(int layer, std::span<const Row> rows, size_t first);
  // These three: what they read is in normed_.
  void AttentionLayer(int layer, std::span<const Row> rows, size_t first);
  void MlpLayer(const Layer& spec, const TransformerLayer& layer);
  void RecurrentLayer(int layer, std::span<const Row> rows);
  // Gates and norms of a row behind the states.
  void FinishMixed(const Layer& spec, const TransformerLayer& layer, int64_t row);
  bool KeepsOutputsAfter(int layer) const;
  // With compressed keys and values.
  void LatentLayer(int layer, std::span<const Row> rows, size_t first);
  void StoreCompressed(int layer, std::span<const Row> rows, size_t first);
  void CompressedQueries(int layer, std::span<const Row> rows);
  void MultiplyHead(const Matrix& matrix, const float* x, int64_t x_stride, float* y,
                    int64_t y_stride, int64_t rows);
  void ExpertsLayer(const Layer& spec, const TransformerLayer& layer);
  void MlpAndExpertsLayer(const Layer& spec, const TransformerLayer& layer);
  // What the MLP's last product reads is packed, and so is that of the experts' first ones.
  void RunMlp(const Mlp& mlp, const TransformerLayer& layer);
  // answer_ += the experts' answers to what is in normed_.
  void RunExperts(const Experts& experts, const ExpertWeights& weights);
  // The numbers that all layers read of each row, and what a layer makes of them.
  void FindLayerInputs(std::span<const Row> rows);
  void AddLayerInput(int index, const TransformerLayer& layer);
  void StoreKeys(int layer, std::span<const Row> rows, size_t first);
  // Of all rows of the block.
  void Tap(const ModelCall& call, int layer, const float* states, size_t rows, size_t first) const;
  // Of active_ the rows with an output stay, moved to the front of x_ and normed_.
  void KeepRowsWithOutput(std::span<const Row> rows);
  struct AttentionChunk {
    int64_t begin, end;   // in active_
    int32_t pages_begin;  // of their sequence, in the plan
  };
  // The rows of active_, `first` being the block's first in the call.
  void FindAttentionChunks(const Attention& attention, size_t first);
  void Attend(int layer, std::span<const Row> rows, size_t first, const AttentionChunk& chunk,
              int kv_head, int thread);
  void AttendCompressed(int layer, size_t first, const AttentionChunk& chunk, int thread);
  // x_ += scale * linear(what is packed), the answer normed first where there is a norm.
  void AddToResidual(const Linear& linear, const std::vector<float>& post_norm, float scale,
                     int64_t rows);
  // x_ += scale * answer_, which is normed first where there is a norm.
  void AddAnswer(const std::vector<float>& post_norm, float scale, int64_t rows);
  // Fills chosen_ and the experts' runs of it from what the router makes of normed_.
  void ChooseExperts(const Experts& experts, const ExpertWeights& weights, int64_t rows);
  // y = the part of each run's expert that `linear` names, of rows of x that lie by slot.
  void MultiplyRuns(const ExpertWeights& weights, Linear ExpertWeights::Expert::*linear,
                    const float* x, float* y);
  // A trained head (transformer_cpu_head.cc).
  struct AttachedHead {
    std::shared_ptr<const DraftHead> head;
    int layer = -1;         // its own one among all layers, or none
    int64_t state_at = 0;   // of a position's states
    Floats taps = nullptr;  // what it reads of the rows of a block
  };
  void AttachHeads(const std::vector<std::shared_ptr<const DraftHead>>& heads);
  static int64_t HeadWidth(const DraftHead& head, int64_t hidden);
  int64_t HeadsWidth() const;
  // The states of a position, of all heads.
  float* HeadStatesAt(int32_t slot) const;
  float* HeadStateAt(const AttachedHead& to, int32_t slot) const {
    return HeadStatesAt(slot) + to.state_at;
  }
  // Of the position in front of a row; -1: there is none.
  int32_t SlotBefore(const Row& row, size_t planned_row) const;
  bool HeadsReadBehind(int layer) const;
  // A layer whose rows do not see position 0.
  bool IsOfPairs(int layer) const;
  // What a call of the whole model keeps.
  void TapForHeads(int layer);
  void TapFinalForHeads();
  void KeepForHeads(std::span<const Row> rows, size_t first);
  void KeepForHead(const AttachedHead& to, std::span<const Row> rows, size_t first);
  void ReadStatesBefore(const AttachedHead& to, std::span<const Row> rows, size_t first);
  void HeadNorm(const DraftHead& head, const float* x, const std::vector<float>& weight,
                float* y) const;
  void MakeHeadInputs(const DraftHead& head, std::span<const Row> rows);
  // The keys and values of the head's layer, of what MakeHeadInputs has made.
  void StoreHeadKeys(const AttachedHead& to, std::span<const Row> rows, size_t first);
  // Calls of a head alone.
  AttachedHead* HeadOf(const ModelCall& call);
  Status PrepareHead(const ModelCall& call);
  void RunHead(const ModelCall& call, std::span<const Row> rows, size_t first);
  void RunEagleLayer(const AttachedHead& to, std::span<const Row> rows, size_t first);
  void RunPrefixLayer(const AttachedHead& to, std::span<const Row> rows, size_t first);
  void RunSteps(const ModelCall& call, std::span<const Row> rows, size_t first);
  void HeadLogits(const DraftHead& head, const Matrix& matrix, const float* x,
                  std::span<float> logits);
  size_t vocabulary_width() const { return static_cast<size_t>(config_.vocabulary); }

  void FindHeadPieces();
  void Head(size_t first, std::span<float> logits);

  // y = linear(what is packed), added to y when `add` is set.
  // `stride`: of the rows of y, 0: they lie one behind the other.
  void MatMul(const Linear& linear, float* y, bool add, int64_t rows, int64_t stride = 0);
  void Multiply(const MatMulArgs& args);
  // Of LoRA adapters (transformer_cpu_lora.cc): which rows of the block have one, and what they add
  // to a product with what is packed, of the rows of active_.
  void FindAdapters(std::span<const Row> rows);
  void AddAdapters(const Linear& linear, float* y, int64_t stride);
  void AllocateAdapters();
  bool HasAdapter(int adapter) const {
    return adapter > 0 && adapter <= static_cast<int>(info_.adapters.size());
  }
  // answer_ = the MLP of what is packed from normed_.
  void SharedExpert(const Experts& experts, const ExpertWeights& weights, int64_t rows);
  // x_ to normed_; as it is where there is no norm.
  void Norm(const std::vector<float>& weight, const std::vector<float>& bias, int64_t rows);
  // gate = activation(gate) * up
  void Activate(Activation activation, float* gate, const float* up, int64_t width) const;
  // Rows of x, packed for products with weights of type `next`. REQUIRES: x stays as it is until
  // the next call; matrices of other types have it packed anew.
  void Pack(WeightType next, const float* x, int64_t width, int64_t rows);
  // body(i, thread) for i < n, on several threads when n * cost (in multiply-adds) is worth it.
  template <typename Body>
  void Parallel(int64_t n, int64_t cost, int64_t multiple, const Body& body);

  TransformerConfig config_;
  TransformerWeights weights_;
  std::vector<AttachedHead> heads_;
  const KernelSet& kernels_;
  ThreadPool pool_;
  const int64_t worth_threads_;
  const KvBytes kv_;
  ModelInfo info_;

  // [page][layer][keys, values][kv head][kPagePositions][head_dim]; the last three differ by layer.
  LazyMemory pages_;
  RecurrentMixer mixer_;
  int64_t page_floats_ = 0;
  struct KeyPlace {
    int64_t at = 0, half = 0;  // where keys begin in a page, and so much further values
    int head_dim = 0;
  };
  std::vector<KeyPlace> cache_at_;  // by layer
  int64_t head_states_at_ = 0;      // in a page
  KvSequences sequences_;
  RowPlan plan_;
  std::vector<SlotCopy> copies_;
  std::vector<int32_t> bad_rows_;
  std::vector<RecurrentWeights> recurrent_;  // by layer
  std::vector<Row> again_rows_;
  RowPlan again_plan_;
  std::vector<int> layers_;               // that the call runs
  bool keys_stored_ = false;              // of the layer that runs
  std::vector<float> mixed_row_;          // an embedding that a mix has a part of
  std::vector<float> stream_;             // of all rows of a call, between the layers
  AttachedHead* running_head_ = nullptr;  // the call is one of this head
  bool taps_behind_last_ = false;         // so that the last of them keeps all rows

  struct RopeTable {
    int width = 0;                 // elements of a head that are rotated
    std::optional<RopeRows> rows;  // where a layer has it
    std::vector<float> table;      // [position][cosines, sines]
  };
  std::vector<RopeTable> ropes_;
  int rope_positions_ = 0;  // how many are filled in
  int largest_capacity_ = 0;

  // Scratch for one block, [row][...].
  struct {
    WeightType type;
    const float* x;
  } packed_from_ = {};
  Floats x_, normed_, packed_, q_, k_, v_, attended_, gate_, up_;
  // Of adapters: by row of the block, those of the block, and of the rows of one: which of active_,
  // what they read, packed, and what is between its two matrices.
  bool adapted_ = false;
  std::vector<int32_t> adapter_of_, adapters_, adapter_rows_;
  Floats adapter_x_, adapter_packed_, adapter_inner_;
  std::vector<float> head_logits_;
  Floats mixed_, z_;         // of recurrent layers; gates of attention
  Floats answer_;            // of attention and MLP, where more than an addition follows
  std::vector<float> ones_;  // in place of what an MLP without a gate lacks
  // Of experts. A slot is a pair of a row and an expert that it has chosen, in the order of
  // experts.
  struct Choice {
    int32_t row, expert;
    float weight;
  };
  struct ExpertRun {
    int32_t expert, begin, end;  // slots
  };
  Floats router_scores_, expert_gate_, expert_up_, expert_rows_, expert_packed_;
  Floats mlp_answer_, layer_inputs_;    // [row][layer][layer_input_width]
  std::vector<float> layer_input_row_;  // of one row
  std::vector<float> compared_;         // scores of one row, as experts are chosen by them
  std::vector<int32_t> expert_order_;   // the best ones first
  std::vector<std::pair<float, size_t>> group_worth_;
  std::vector<Choice> chosen_;
  std::vector<ExpertRun> runs_;
  std::vector<MatMulArgs> products_;
  struct ProductPiece {
    int32_t product;
    int64_t begin, end;
  };
  std::vector<ProductPiece> product_pieces_;
  int64_t product_bytes_ = 0;
  std::vector<std::vector<float>> attention_scratch_;  // by thread
  std::vector<int32_t> active_;  // rows of the block whose results are still wanted
  std::vector<AttentionChunk> attention_chunks_;
  std::vector<int32_t> outputs_;                    // and where their logits go
  std::vector<std::span<const uint32_t>> allowed_;  // and which of them are wanted
  std::vector<uint32_t> allowed_by_any_;
  struct HeadPiece {
    int64_t begin, end;  // tokens
  };
  std::vector<HeadPiece> head_pieces_;  // to be computed
};

template <typename Body>
void TransformerCpu::Parallel(int64_t n, int64_t cost, int64_t multiple, const Body& body) {
  int64_t grain = n;
  if (n * cost >= worth_threads_ && pool_.size() > 1) {
    // A few ranges for each thread even out their speeds.
    grain =
        std::max(n / (int64_t{4} * pool_.size()), worth_threads_ / 4 / std::max<int64_t>(cost, 1));
    grain = (grain / multiple + 1) * multiple;
  }
  pool_.ParallelFor(n, grain, body);
}

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TRANSFORMER_CPU_H_
