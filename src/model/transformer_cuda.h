// The transformer on a CUDA device, one implementation for all families. Compiled in two forms, for
// devices and for the host emulation (kernels/cuda/runtime.h).
#ifndef PAWL_SRC_MODEL_TRANSFORMER_CUDA_H_
#define PAWL_SRC_MODEL_TRANSFORMER_CUDA_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/runtime.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "src/base/thread_pool.h"
#include "src/model/kv_sequences.h"
#include "src/model/mask_filling.h"
#include "src/model/model.h"
#include "src/model/row_plan.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_weights.h"

namespace pawl::PAWL_GPU {

// The masks that were used last, mirrored in device memory, so that a step sends the numbers of
// masks and not their bits.
// Keeps a reference to each mask in it, so equal addresses are equal masks. One thread at a time.
class DeviceMasks {
 public:
  // Room for `rows` masks over `vocabulary` tokens. Errors: kLimit.
  static Result<std::unique_ptr<DeviceMasks>> Make(int vocabulary, int rows);
  ~DeviceMasks();
  DeviceMasks(const DeviceMasks&) = delete;
  DeviceMasks& operator=(const DeviceMasks&) = delete;

  // The row of the mask; uploads it on the stream when it is not there, in place of the one that
  // was asked for longest ago. Rows asked for since the last call of NextStep stay: with more
  // different masks in a step than there are rows, kLimit.
  Result<int32_t> RowOf(const std::shared_ptr<const Mask>& mask, Stream stream);
  // REQUIRES: what was uploaded so far has arrived.
  void NextStep();

  const uint32_t* words() const { return memory_.as<uint32_t>(); }
  int64_t stride() const { return stride_; }
  int64_t uploads() const { return uploads_; }

 private:
  struct Entry {
    std::shared_ptr<const Mask> mask;
    int32_t row;
    int64_t step;
  };
  DeviceMasks() = default;

  DeviceMemory memory_;
  uint32_t* pinned_ = nullptr;  // as many rows as the device memory has
  int64_t stride_ = 0;          // words
  int rows_ = 0;
  int64_t step_ = 0, uploads_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<const Mask*, std::list<Entry>::iterator> found_;
};

constexpr int kMostPrefillRows = 2048;

struct TransformerCudaOptions {
  CacheType cache = CacheType::kBf16;
  bool fp8_weights = false;  // matrices are rounded to e4m3 with a scale for each row
  // 0: nine tenths of what is free when the weights are in place and all else that will be needed
  // is put aside.
  int64_t kv_bytes = 0;
  int64_t kept_kv_bytes = -1;  // as in ModelOptions
  bool graphs = true;
  // Kernels are set up while the one in front still runs, from compute capability 9.0 on. This, and
  // then `graphs`, is taken back where a driver cannot put it into graphs: see given_up().
  bool dependent_launch = true;
  // More than 64 plain rows that follow each other in a call go through cuBLASLt, where it is
  // found. false: always the own kernels, in blocks of 64 rows.
  bool library = true;
  int threads = 1;  // that bring experts into the kernels' order; 0: all
};

// What all layers of a model have in common here.
struct SameLayer {
  int heads = 0, kv_heads = 0, head_dim = 0;
  float attention_scale = 0.0f, attention_soft_cap = 0.0f;
  bool post_norms = false;

  bool operator==(const SameLayer&) const = default;
};

// The layers of a model that runs here (transformer_cuda_layers.cc).
struct LayerFacts {
  SameLayer same;
  // The most of any layer: of an MLP, shared ones included, of an expert, of those chosen and of
  // all.
  int inner = 0, expert_inner = 0, chosen = 0, experts = 0;
  bool mlp_bias = false;  // of some MLP
  bool shared = false;    // some experts have a shared MLP
};
// Errors (kUnsupported): the part that the kernels lack, by name.
Result<LayerFacts> LayersOnCuda(const TransformerConfig& config);

// A row's logits have the same bits in any company, as model.h promises, but for rows that went
// through the library (TransformerCudaOptions::library), whose activations are rounded to bf16.
// They differ from the CPU's by roundings: docs/cuda.md has the bounds.
class TransformerCuda final : public Model {
 public:
  // Uploads the weights. Errors: kUnsupported (no device, shapes that the kernels do not take),
  // kLimit (device memory, with numbers).
  static Result<std::unique_ptr<Model>> Make(TransformerConfig config,
                                             const TransformerWeights& weights,
                                             const TransformerCudaOptions& options);
  ~TransformerCuda() override;
  TransformerCuda(const TransformerCuda&) = delete;
  TransformerCuda& operator=(const TransformerCuda&) = delete;

  const ModelInfo& info() const override { return info_; }
  Result<SequenceId> NewSequence(int capacity) override { return sequences_->New(capacity); }
  void FreeSequence(SequenceId sequence) override { sequences_->Free(sequence); }
  void Truncate(SequenceId sequence, int length) override {
    sequences_->Truncate(sequence, length);
  }
  int ReusePrefix(SequenceId sequence, std::span<const TokenId> tokens) override {
    return sequences_->ReusePrefix(sequence, tokens);
  }
  int ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens) override;
  Status CopySequence(SequenceId from, SequenceId to) override;
  std::optional<MaskFilling> filling() const override { return FillingOf(config_); }
  KvMemory kv_memory() const override;
  // kUnsupported for some layers only, taps and trees that are kept.
  Status Run(const ModelCall& call) override;
  bool samples() const override { return true; }
  std::span<const int32_t> bad_rows() const override { return bad_rows_; }
  Status CommitTree(SequenceId sequence, int row) override;
  // What turned out not to work here, and why, and is done by other means since: dependent
  // launches, graphs, the library. "" if all does. One thread at a time, with Run.
  const std::string& given_up() const { return given_up_; }
  // How many graphs have been made so far.
  int64_t graphs_made() const { return graphs_made_; }

 private:
  struct DeviceLinear {
    DeviceMatrix w;
    const float* bias = nullptr;
  };
  struct DeviceExperts {
    DeviceLinear router, shared_weight;  // shared_weight: or none
    const float *choice_bias = nullptr, *factors = nullptr;
    ExpertMatrices gate, up, down;
  };
  struct DeviceLayer {
    const float *attention_norm = nullptr, *mlp_norm = nullptr;
    const float *q_norm = nullptr, *k_norm = nullptr, *sinks = nullptr;
    const float *attention_post_norm = nullptr, *mlp_post_norm = nullptr;
    DeviceLinear q, k, v, o;
    DeviceLinear gate, up, down;  // of the MLP, or of the experts' shared one, or none
    DeviceExperts experts;        // or none
    Activation activation = Activation::kSilu;
    int inner = 0;  // of the MLP
  };
  // Between the kernels of experts, for some number of rows. `numbers`: weights of slots, then
  // slots' experts, slots in order and their rows, then runs and how many.
  struct ExpertScratch {
    DeviceMemory scores, numbers, inner, answers;
  };
  // What becomes of the last rows: logits, all of them or those of a list of tokens; tokens drawn
  // in the head, which finds what is allowed in the masks or in a list; tokens drawn from logits.
  enum class HeadMode { kLogits, kListedLogits, kSample, kSampleListed, kProcess };
  struct Head {
    HeadMode mode = HeadMode::kLogits;
    int listed = 0;  // tokens in the list
    int top = 0;     // the most that a row wants of the most probable tokens
    int limit = 0;   // tokens that can be drawn
  };
  // What graphs name that may move, as bits.
  enum Movable : unsigned { kNothing = 0, kTables = 1, kExtra = 2, kPartial = 4 };
  // Memory that grows; what it held is lost then, and graphs that name it with it.
  struct Buffer {
    Movable movable = kNothing;
    DeviceMemory device = {};
    void* pinned = nullptr;
    int64_t bytes = 0;
  };
  struct MadeGraph {
    Graph graph;
    unsigned names = kNothing;
  };
  // How many rows and how many positions any of them sees, rounded up to powers of two, whether
  // some have outputs, whether attention takes the rows of a sequence together: what a graph is
  // made for.
  struct Shape {
    int rows = 0, positions = 0;
    bool outputs = false;
    bool operator<(const Shape& other) const {
      return std::tie(rows, positions, outputs) <
             std::tie(other.rows, other.positions, other.outputs);
    }
  };
  struct Prefill;
  // Rows of a block, what they see at most, and where their residuals and their queries, keys and
  // values are.
  struct BlockRows {
    int count = 0, positions = 0;
    const DeviceRow* rows = nullptr;
    float *x = nullptr, *qkv = nullptr;
  };
  // Of the rows that a block's kernels are told: those with outputs, and what they see at most.
  struct SentRows {
    std::vector<size_t> outputs;
    int positions = 0;
  };
  // What a call wants: logits, or tokens.
  struct Wanted {
    std::span<float> logits;
    std::span<const SampleRequest> requests;
    std::span<TokenId> tokens;
    bool sample = false;
    std::function<void()> late;  // emptied when it has been called
  };
  TransformerCuda(TransformerConfig config, const LayerFacts& layers,
                  const TransformerCudaOptions& options)
      : config_(std::move(config)), facts_(layers), same_(layers.same), options_(options) {}
  Status Upload(const TransformerWeights& weights);
  Result<void*> UploadBytes(const void* data, int64_t bytes);
  // `exact`: not in fp8. Errors (kUnsupported): weights that devices do not have.
  Status CheckPack(const Matrix& matrix, bool exact) const;
  PackedMatrix Pack(const Matrix& matrix, bool exact) const;
  Result<DeviceMatrix> UploadMatrix(const Matrix& matrix, bool exact = false);
  Status UploadLinear(const Linear& from, DeviceLinear& to, bool exact = false);
  Result<DeviceLayer> UploadLayer(const TransformerLayer& from, const Layer& spec);
  void FillInfo(const TransformerWeights& weights, int64_t idle);
  // Padded with zeros as norms need; null for an empty vector.
  Result<const float*> UploadVector(const std::vector<float>& values);
  // Whether answers of a part of a layer wait somewhere before they are added to the residuals.
  bool Answers() const { return same_.post_norms || facts_.shared; }
  Status AllocateScratch();
  Status AllocateCache();
  // transformer_cuda_experts.cc. Of a layer's experts; `one`: gate, up or down.
  Status UploadExperts(const ExpertWeights& from, const Experts& spec, DeviceExperts& to);
  Result<ExpertMatrices> UploadEach(const ExpertWeights& from, Linear ExpertWeights::Expert::*one,
                                    ThreadPool& pool);
  Status UploadOne(const PackedMatrix& packed, int64_t expert, int64_t count, ExpertMatrices& to);
  // Where the pieces of device memory for so many rows go. visit(DeviceMemory ExpertScratch::*,
  // bytes).
  template <typename Visit>
  void ForExpertPieces(int64_t rows, const Visit& visit) const;
  int64_t ExpertBytes(int64_t rows) const;
  Status AllocateExperts(int64_t rows, ExpertScratch& scratch) const;
  // Adds what the experts of some layer answer to `rows` rows of x, whose shared MLP's answer, if
  // it has one, is in `answer`.
  struct ExpertRows {
    const ExpertScratch& scratch;
    const DeviceRow* rows;
    int count;
    float *x, *answer;  // of hidden_stride_
  };
  Status RunExperts(int layer, const ExpertRows& rows);
  Status RouteExperts(const DeviceLayer& layer, const Experts& spec, const ExpertRows& rows);
  // Of device memory, what is allocated only when it is first needed.
  int64_t BytesLater() const;
  Status Grow(Buffer& buffer, int64_t bytes, bool with_pinned);
  Status ExtendRopeTables(int positions);
  Status Copy(std::span<const SlotCopy> copies);

  Status RunRows(std::span<const Row> rows, Wanted& wanted);
  Status SendPlan(std::span<const Row> rows);
  // Writes `count` rows from `first` on to `to`, and the numbers of those with outputs to `listed`.
  SentRows SendRows(std::span<const Row> rows, size_t first, size_t count, DeviceRow* to,
                    int32_t* listed) const;
  // The most that a block takes of these rows.
  size_t RowsOfBlock(std::span<const Row> rows) const;
  Status ForwardBlocks(std::span<const Row> rows, Wanted& wanted);
  // At most kMostSkinnyRows rows from `first` on.
  Status ForwardBlock(std::span<const Row> rows, size_t first, size_t count, Wanted& wanted);
  // transformer_cuda_canvas.cc. Rows that see both sides.
  Status ForwardCanvases(std::span<const Row> rows, Wanted& wanted);
  // Each layer makes the keys and values of all `count` rows before a row looks at them.
  Status ForwardLayers(std::span<const Row> rows, size_t first, size_t count, Wanted& wanted);
  // Rows of x as the list says.
  Status RunHeads(std::span<const Row> rows, std::span<const size_t> outputs, const float* x,
                  const int32_t* list, Wanted& wanted);
  int64_t CanvasBytes() const;
  // From `first` on, how many rows are plain: what ForwardPrefill takes.
  size_t PlainRows(std::span<const Row> rows, size_t first) const;
  bool UsesLibrary();
  void WithoutLibrary(const Error& why);
  void GiveUp(const std::string& what, const Error& why);
  // transformer_cuda_prefill.cc. At most kMostPrefillRows plain rows from `first` on, or the rows
  // of a canvas, as many as there are.
  Status ForwardPrefill(std::span<const Row> rows, size_t first, size_t count, Wanted& wanted);
  Status AllocatePrefill(int64_t rows);
  void FreePrefill();
  // Where the pieces of device memory for so many rows go, and how large they are.
  // visit(DeviceMemory Prefill::*, bytes).
  template <typename Visit>
  void ForPrefillPieces(int64_t rows, const Visit& visit) const;
  int64_t PrefillBytes() const;
  Status PrefillNorm(const float* weight, int count);
  Status PrefillResidual(const DeviceLinear& linear, const uint16_t* from, int64_t stride,
                         const float* post_norm, int count);
  Status PrefillBias(const DeviceLinear& linear, float* to, int count);
  Status PrefillFeedForward(int layer, int count);
  Status PrefillLayer(int layer, int count, int runs, int most_positions, bool last);
  Status AttendRowByRow(int layer, int count, int most_positions);
  Status GrowPartial(int64_t bytes);
  // Of a call to attention by splits, so that there is room for its parts.
  int RowsAttended(int positions) const;
  Status PrefillProduct(const DeviceMatrix& w, LibraryProduct product);  // of w: filled in here
  // transformer_cuda_head.cc. What is to become of the outputs (rows of the call, at most
  // kMostSkinnyRows; their activations are rows of x by the device's list), once the forward pass
  // is on the stream: calls wanted.late, sends what the head needs to know, runs it, waits.
  Status RunHead(std::span<const Row> rows, std::span<const size_t> outputs, const float* x,
                 const int32_t* list, Wanted& wanted);
  Status AllocateHead();
  int64_t HeadBytes() const;
  Result<Head> PrepareLogits(std::span<const Row> rows, std::span<const size_t> outputs);
  Result<Head> PrepareSampling(std::span<const Row> rows, std::span<const size_t> outputs,
                               const Wanted& wanted);
  Status SendList(std::span<const int32_t> tokens);
  Status EnqueueHead(const float* x, const int32_t* list, int count, const Head& head);
  Status FetchLogits(std::span<const Row> rows, std::span<const size_t> outputs, const Head& head,
                     const Wanted& wanted);
  Status FetchTokens(std::span<const Row> rows, std::span<const size_t> outputs, const Head& head,
                     const Wanted& wanted);
  Status GrowLogits(int count);
  // The graph of a shape that has none, and whose kernels have run before; the end where it cannot
  // be made.
  std::map<Shape, MadeGraph>::iterator Capture(const Shape& shape);
  // The kernels of a block, on the stream.
  Status Enqueue(const Shape& shape);
  Status EnqueueEmbedding(const BlockRows& block);
  // Of a layer, queries, keys and values of these rows, and then all that follows.
  Status EnqueueKeys(const BlockRows& block, int layer);
  Status EnqueueRest(const BlockRows& block, int layer);
  Status EnqueueAttention(const BlockRows& block, int layer);
  Status EnqueueFeedForward(const BlockRows& block, int layer);
  Status AddToResidual(const BlockRows& block, const DeviceLinear& linear, const float* x,
                       int64_t x_stride, const float* post_norm);
  Cache CacheOf(int layer) const;
  // Those that name some of `movable`.
  void DropGraphs(unsigned movable);

  TransformerConfig config_;
  LayerFacts facts_;
  SameLayer same_;
  TransformerCudaOptions options_;
  ModelInfo info_;
  std::string given_up_;
  Stream stream_ = nullptr;

  std::vector<DeviceMemory> memory_;  // weights
  DeviceMatrix embedding_, head_;
  const float* final_norm_ = nullptr;
  std::vector<DeviceLayer> layers_;

  DeviceMemory cache_;      // [layer][keys, values][page][kv_head][kPageSize][head_dim]
  int64_t cache_half_ = 0;  // bytes of the keys of a layer
  std::unique_ptr<KvSequences> sequences_;
  RowPlan plan_;
  std::vector<SlotCopy> copies_;
  std::vector<int32_t> bad_rows_;

  std::vector<RopeRows> rope_rows_;
  std::vector<DeviceMemory> rope_tables_;
  std::vector<float> rope_row_;
  int rope_positions_ = 0;

  // Of a block. Strides are padded to 32 floats.
  int64_t hidden_stride_ = 0, qkv_stride_ = 0, q_stride_ = 0, inner_stride_ = 0, logits_stride_ = 0;
  int64_t scores_stride_ = 0, expert_stride_ = 0;
  DeviceMemory x_, qkv_, attended_, inner_, answer_;
  ExpertScratch experts_;
  // DeviceRow[kMostSkinnyRows], then as many int32_t: the rows with outputs.
  Buffer rows_;
  Buffer tables_{.movable = kTables};  // page tables of a call
  Buffer extra_{.movable = kExtra};    // slots of a call
  Buffer moves_;                       // pairs of slots
  Buffer logits_;                      // [outputs][logits_stride_]
  // What the head needs to know takes another path than the forward pass, at the same time.
  Stream uploads_ = nullptr;
  Fence uploaded_;
  Buffer head_rows_;     // HeadRows, then ProcessRow[kMostSkinnyRows]
  Buffer head_list_;     // tokens
  Buffer head_seen_;     // pairs
  Buffer head_answers_;  // HeadAnswers
  Buffer head_top_;      // [outputs][kMostTopTokens] tokens, then as many log-probabilities
  DeviceMemory head_state_, top_workspace_;
  std::unique_ptr<DeviceMasks> masks_;
  std::vector<uint32_t> any_;    // bits
  std::vector<int32_t> listed_;  // tokens
  DeviceMemory partial_;
  Buffer canvas_rows_, canvas_x_, canvas_qkv_;  // of ForwardLayers
  std::map<Shape, MadeGraph> graphs_;
  std::set<Shape> run_before_;  // whose kernels are loaded
  unsigned named_ = kNothing;   // by what has been enqueued
  int64_t graphs_made_ = 0;

  // Of many rows; made when first needed.
  struct Prefill {
    int64_t capacity = 0;                    // rows
    DeviceMemory x, qkv;                     // floats
    DeviceMemory normed, attended, gate_up;  // bf16
    DeviceMemory answer;                     // floats, where answers are normed
    DeviceMemory unpacked;                   // bf16, a matrix whose weights are not
    ExpertScratch experts;
    Buffer rows;  // DeviceRow, then RowRun, then int32_t: rows, runs, rows with logits
  };
  std::unique_ptr<Prefill> prefill_;
  std::unique_ptr<Library> library_;
  bool library_tried_ = false;
};

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_SRC_MODEL_TRANSFORMER_CUDA_H_
