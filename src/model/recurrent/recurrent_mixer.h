// Recurrent layers of a call: from the inputs of its rows to their answers, and the states.
//
//   mixer.Restore(sequences, plan, weights);   // base states are those in front of the call
//   mixer.BeginRows(plan);
//   mixer.BeginBlock(rows);                    // for each block of rows,
//   mixer.Mix(layer, weights[layer], inputs, answers);  // and each recurrent layer
//
// A row's answer is made of the same steps in the same order however the call is made up: from the
// base state along its path, one step for each row.
#ifndef PAWL_SRC_MODEL_RECURRENT_RECURRENT_MIXER_H_
#define PAWL_SRC_MODEL_RECURRENT_RECURRENT_MIXER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "src/base/thread_pool.h"
#include "src/model/kv_sequences.h"
#include "src/model/layer.h"
#include "src/model/model.h"
#include "src/model/recurrent/state_layout.h"
#include "src/model/row_plan.h"

namespace pawl {

struct RecurrentWeights {
  std::vector<float> convolution;       // [taps][channels]
  std::vector<float> convolution_bias;  // [channels], or empty
  // [heads]: with t = max(softplus(input + bias), least_time) the decay is exp(rate * t), and beta
  // is t, or with the delta rule the sigmoid of its input.
  std::vector<float> rates, biases;
  std::vector<float> skips;  // [heads]: of v, added to the answer; or empty
  bool tiled = false;        // head h has q and k of group h % groups, else neighbours share them
};

class RecurrentMixer {
 public:
  // `shapes`: of all layers of the model, those without a state included. Throws std::bad_alloc.
  RecurrentMixer(std::vector<RecurrentShape> shapes, int64_t page_floats, const KernelSet& kernels,
                 ThreadPool& pool, int64_t worth_threads);

  const StateLayout& layout() const { return layout_; }
  bool has_states() const { return layout_.pages().state > 0; }
  const RecurrentShape& shape(int layer) const { return shapes_[static_cast<size_t>(layer)]; }
  // The memory of the pages.
  void SetPages(float* pages) { pages_ = pages; }

  // The base states of the call's sequences become those behind StateChange::from tokens, but for
  // paths that Mix replays.
  void Restore(const KvSequences& sequences, const RowPlan& plan,
               std::span<const RecurrentWeights> weights);
  void BeginRows(const KvSequences& sequences, RowPlan& plan);
  // The next rows of the call. REQUIRES: at most 128.
  void BeginBlock(std::span<const Row> rows);
  // `inputs`: [row][row_floats]; `answers`: [row][heads][values], or [row][channels].
  void Mix(int layer, const RecurrentWeights& weights, const float* inputs, float* answers);

  // Steps of a state that were made for each layer with heads, for tests and bars.
  int64_t steps() const { return step_count_; }

 private:
  // Buffers of a head's states while its rows are computed.
  static constexpr int kBase = -1, kNowhere = -2;
  struct Step {
    int32_t row = -1;      // of the block; -1: what is stored is used again
    int32_t stored = -1;   // its place among the stored rows
    int32_t parent = -1;   // the step before it, -1: the base state
    int32_t from = kBase;  // buffers
    int32_t to = kNowhere;
    int32_t checkpoint = -1;  // of the change, to be written behind this step
  };
  struct Segment {  // the steps of one sequence
    int32_t change = 0;
    int32_t begin = 0, end = 0;
    int32_t moved = -1;  // the last step that moves the base state
  };
  struct Batch {  // of segments, whose steps fit the scratch memory
    int32_t begin, end;
  };

  const SequenceState& StateOf(const Segment& segment) const;
  void AddReplay(int32_t change);
  void AddTree(int32_t change, std::span<const uint64_t> rows);
  void AddRun(int32_t change, std::span<const uint64_t> rows);
  int32_t CheckpointAt(int32_t change, int position) const;
  void Close(Segment segment);
  void MakeBatches();

  float* Page(std::span<const int32_t> pages, const StateLayout::Place& place) const {
    return pages_ + pages[static_cast<size_t>(place.page)] * layout_.page_floats() + place.offset;
  }
  const float* InputOf(int layer, const Segment& segment, const Step& step,
                       const float* inputs) const;
  // The inputs of a step and of those before it, its own the last.
  void Inputs(int layer, const Segment& segment, int32_t step, const float* inputs,
              std::span<const float*> out) const;
  void Convolve(int layer, const RecurrentWeights& weights, const Segment& segment, int32_t step,
                const float* inputs, float* answers);
  void RunHead(int layer, const RecurrentWeights& weights, const Segment& segment, int head,
               float* answers, int thread);
  // The state of the convolution, and inputs that are stored.
  void Store(int layer, const Segment& segment, const float* inputs);
  template <typename Body>
  void Parallel(int64_t n, int64_t cost, const Body& body);

  std::vector<RecurrentShape> shapes_;
  StateLayout layout_;
  const KernelSet& kernels_;
  ThreadPool& pool_;
  const int64_t worth_threads_;
  float* pages_ = nullptr;

  const KvSequences* sequences_ = nullptr;  // of the call
  const RowPlan* plan_ = nullptr;
  std::vector<int32_t> next_;      // by change: rows of it that blocks have had
  std::vector<uint8_t> replayed_;  // by change
  std::vector<uint64_t> order_;    // rows of the block by change
  std::vector<Step> steps_;
  std::vector<Segment> segments_;
  std::vector<Batch> batches_;
  std::vector<int32_t> segment_of_;  // by step
  int32_t batch_first_ = 0;          // the first step of the batch that runs
  int buffers_ = 0;                  // that a segment needs at most
  int64_t step_count_ = 0;

  std::vector<float> mixed_;                // [step of the batch][channels]
  std::vector<float> gates_;                // [step of the batch][head][decay, beta]
  std::vector<std::vector<float>> states_;  // by thread: [buffer][head_floats]
  std::vector<float> key_norm_, query_norm_;
  int64_t widest_ = 0, most_heads_ = 0, largest_head_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_RECURRENT_RECURRENT_MIXER_H_
