// Model: the backend interface that the decode loop sees. One implementation runs on the CPU, one
// on CUDA devices; both answer the same ragged batch of rows.
//
// A row is one token at one position of one sequence. Decoding one token, prefilling a chunk, and
// verifying a draft tree are the same call with different rows. A row's logits depend only on the
// tokens it sees: bit for bit the same alone, in a batch, in a chunk of any size, in a tree, and
// for any number of threads.
//
//   auto model = LoadModel("models/tiny-extract");                       //
//   Result<std::unique_ptr<Model>> const SequenceId s = *(*model)->NewSequence(256);
//   std::vector<float> logits((*model)->info().vocabulary_size);
//   const Row rows[] = {{.token = 7, .position = 0, .sequence = s},
//                       {.token = 9, .position = 1, .sequence = s, .output = 0}};
//   Status status = (*model)->Run({.rows = rows, .logits = logits});     // logits after the tokens
//   7, 9
//
// What a row sees
//   The first row of a sequence in a call is plain (ancestors == 0); its position is the call's
//   base for that sequence and at most the sequence's length. Positions from base on are forgotten
//   first. A plain row sees the committed positions [0, base), the plain rows of its sequence
//   before it in the call, and itself. The plain rows of a sequence have the positions base, base +
//   1, ...: a decode step is one, a prefill chunk is many. A tree row (ancestors != 0) sees [0,
//   base), the rows in its ancestor word, and itself. Bit i stands for the i-th row (from 0) of the
//   same sequence in this call, plain rows counted. The word must be exactly the path: a parent
//   earlier in the call, and the parent's own path (for a plain parent: all plain rows before it).
//   Its position is its parent's plus one, so siblings share a position. A sequence with tree rows
//   has at most kMaxTreeRows rows in the call up to the last of them.
//
// What stays
//   After the call the plain rows are committed: the length is base + their number. Tree rows are
//   not part of the sequence; CommitTree, called before the next Run or Truncate with that
//   sequence, commits the path to one of them. Example: the last sampled token 5 at position 9 with
//   the drafts 6 and 7 after it and 8 after 7:
//     {5, 9, s, 0, 0}  {6, 10, s, 0b0001, 1}  {7, 10, s, 0b0001, 2}  {8, 11, s, 0b0101, 3}
//   CommitTree(s, 3) then keeps 5, 7, 8 (length 12); CommitTree(s, 1) would keep 5, 6 (length 11).
//
// Trees that grow
//   With ModelCall::keep_tree the first row of a sequence may be a tree row. The rows of its last
//   call then stay, and its rows of this call are counted on from them, in ancestor words, in
//   CommitTree and in kMaxTreeRows. All its rows of this call are tree rows. The example in two
//   calls: {5, 9, s, 0, 0}  {6, 10, s, 0b0001, 1}  {7, 10, s, 0b0001, 2}, then {8, 11, s, 0b0101,
//   0}.
//
// Canvases
//   The rows of a model that fills masks see all positions of their sequence, those behind them
//   too. Such a call may leave positions out that the sequence has: they stay as they are. The
//   positions of its rows ascend, and all that are new are there.
//
// Some layers only
//   A call with ModelCall::layers gives the logits of a model made of these layers. It writes keys
//   and values of these layers alone, so none of its rows is committed: the sequences end at their
//   bases. Rows of such a call stay for a call with keep_tree and the same layers.
//
// Trained heads
//   A call with the layer ModelInfo::layers + i runs ModelInfo::draft_heads[i], which drafts. Of
//   EAGLE-3 and blocks of the model's own, a row reads its token and the state in front of it: that
//   of the model; or, of the last rows of the call, `inputs`. The tap behind the layer has the
//   states for the rows behind. Of Medusa, row i of the sequence in the call is step i, on the
//   model's state in front of the first row. Logits of tokens that the head lacks are kNoHeadLogit.
#ifndef PAWL_SRC_MODEL_MODEL_H_
#define PAWL_SRC_MODEL_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pawl/engine.h"
#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/random.h"
#include "src/model/recurrent/state_pages.h"

namespace pawl {

using SequenceId = int32_t;

constexpr int kMaxTreeRows = 64;
constexpr float kNoHeadLogit = -1e9f;
static_assert(kMaxTreeRows == kMostStoredRows);

// A token's part in the input of a row.
struct TokenWeight {
  TokenId token = kNoToken;
  float weight = 0;
};

struct Row {
  TokenId token;
  int32_t position;  // 0-based position in the sequence
  SequenceId sequence;
  uint64_t ancestors =
      0;  // draft trees: bit i = this row also sees row i of its tree; 0 for plain rows, which
          // see every committed position of the sequence and earlier plain rows of the call
  int32_t output = -1;  // where this row's logits go, -1 when they are not wanted
  // Which logits are wanted: bit t % 32 of word t / 32 for token t, tokens beyond the words are
  // not. The others are unspecified after the call. Empty: all are wanted.
  std::span<const uint32_t> allowed = {};
  // Not empty: the row reads the sum of weight times embedding of these, in place of `token`'s. It
  // is plain. No prefix has its keys and values: pages from its position on are not kept.
  std::span<const TokenWeight> mix = {};
};

struct ModelInfo {
  std::string architecture;  // "LlamaForCausalLM"
  std::string dtype;         // "bf16", "fp16", "fp32", "int8", "int4": of the first layer
  int vocabulary_size = 0;   // width of the logits
  int context_length = 0;    // longest sequence
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool classifies = false;  // it has a head for labels and none for tokens
  int64_t parameters = 0;
  int64_t layer_parameters = 0;  // of the matrices of the layers: without embedding and head
  int64_t weight_bytes = 0;
  int64_t step_bytes = 0;           // of weights, read by a call with one row
  std::vector<TokenId> end_tokens;  // from generation_config.json / config.json
  TokenId bos = kNoToken;
  // Trained heads that draft.
  struct DraftHead {
    std::string name;  // "EAGLE-3", "Medusa"
    int steps = 0;     // 0: as many as are asked for
  };
  std::vector<DraftHead> draft_heads;
  std::string kernels;  // "avx512", ...
  int threads = 1;
  struct Adapter {
    std::string name;
    uint64_t key = 0;  // of what its files say; never 0
  };
  std::vector<Adapter> adapters;  // adapter i + 1 of Model::NewAdapted; 0 is none
};

// A token of the output or the prompt, for penalties: how often it is in the output (0: in the
// prompt alone).
struct SeenToken {
  TokenId token = 0;
  int32_t count = 0;
};

// How the token after a row is drawn by a backend that samples: as Sampler of src/decode/sampler.h
// does with these parameters.
struct SampleRequest {
  std::shared_ptr<const Mask> mask;  // nullptr: every token is allowed
  float temperature = 0;
  uint64_t seed = 0, position = 0;
  int top_k = 0;
  float top_p = 1, min_p = 0;
  Penalties penalties;
  std::span<const SeenToken> seen = {};  // each token once
  // Tokens from here on are not drawn, whatever the mask says; negative: the logits' end.
  int vocabulary = -1;
  // Not empty: gets the most probable tokens that the mask allows, in falling order, with their
  // log-probabilities among all allowed ones, as the model has them: before penalties and
  // temperature. At most kMostTopTokens; what there is not is kNoToken.
  std::span<TokenLogprob> top = {};
  bool unwanted = false;  // this one is not awaited any longer: the token is kNoToken
};
constexpr int kMostTopTokens = 64;

// The states of the residual stream, between the layers.
struct ModelTap {
  // Behind so many layers: 0 is the embedding, i + 1 is behind layer i, which has to run.
  int layer = 0;
  std::span<float> states = {};  // [row of the call][hidden]

  static constexpr int kFinal = -1;  // behind the last norm: what the head reads
};

// One call of a model.
struct ModelCall {
  std::span<const Row> rows = {};
  // Logits of rows with output >= 0 go to logits[output * vocabulary_size ...]; those that a row's
  // `allowed` leaves out may be skipped.
  std::span<float> logits = {};
  // Where the model draws (Model::samples), in place of logits a token: tokens[output] for each row
  // with an output >= 0, drawn as requests[output] says. `late` is called once, when the forward
  // pass is under way on a device and before the requests are read, so that the caller fills them
  // (and finds masks for them) meanwhile; it is not called when the call fails before that.
  bool draws = false;
  std::span<const SampleRequest> requests = {};
  std::span<TokenId> tokens = {};
  std::function<void()> late = nullptr;

  // Numbers of layers that run, ascending; empty: all. See "Some layers only" above.
  std::span<const int> layers = {};
  // [row][hidden]: what the first of `layers` reads, in place of the embeddings; empty: these.
  // REQUIRES: layers.
  std::span<const float> inputs = {};
  std::span<const ModelTap> taps = {};
  bool keep_tree = false;  // see "Trees that grow" above
};

// The memory for keys and values, in pages that all sequences draw from.
struct KvMemory {
  int page_positions = 1;
  int64_t pages = std::numeric_limits<int64_t>::max();  // there are
  // That a sequence can still get: not in use, those kept for their tokens included.
  int64_t available = std::numeric_limits<int64_t>::max();
  int64_t page_bytes = 0;
  int64_t made = 0;       // pages that have memory: they keep it
  StatePages state = {};  // what a sequence takes next to its positions

  // For a call with the positions from .. to-1 of a sequence, at most.
  int64_t PagesOf(int64_t from, int64_t to) const {
    const int64_t stored = to - from <= kMostStoredRows ? to - from : 0;
    return (to + page_positions - 1) / page_positions -
           (from + page_positions - 1) / page_positions + state.ForRows(static_cast<int>(stored)) -
           state.ForRows(0);
  }
  // That one sequence can have.
  int64_t positions(int64_t context) const {
    const int64_t left = std::clamp<int64_t>(pages - state.most(), 0, context);
    return std::min(context, left * page_positions);
  }
};

// What the loop of a diffusion model has to know of it: a model whose rows see both sides, so that
// it fills masks in a canvas.
struct MaskFilling {
  TokenId mask = kNoToken;
  bool shifted = false;  // the logits of a position come from the row in front of it
  int block = 0;  // it was trained on canvases that end with blocks of this size; 0: it wasn't
};

// Thread safety: one call at a time.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  // nullopt: the model is causal.
  virtual std::optional<MaskFilling> filling() const { return std::nullopt; }

  // A new, empty sequence of at most `capacity` positions. It takes memory when it grows, not
  // before. Errors: kInvalid for a capacity below 1, kLimit when it exceeds the context length or
  // all of the key-value memory.
  virtual Result<SequenceId> NewSequence(int capacity) = 0;
  // The same, whose rows the weights and a LoRA adapter compute. Sequences of different adapters
  // share calls, but no prefixes. Errors: also kInvalid for a number that there is not.
  virtual Result<SequenceId> NewAdapted(int capacity, int adapter) {
    if (adapter == 0) return NewSequence(capacity);
    return Error{ErrorCode::kUnsupported, "this model has no adapters", "lora"};
  }
  // Ids of freed sequences are given out again. Unknown ids are ignored, here and in Truncate.
  virtual void FreeSequence(SequenceId sequence) = 0;
  // Forgets positions >= length. Where all layers have sliding windows, what no window reaches is
  // freed as the sequence grows: the next call then starts at 0, or at most kMaxTreeRows
  // before the first row of the last one, or is kInvalid.
  virtual void Truncate(SequenceId sequence, int length) = 0;
  // Takes what is in memory already for the next tokens of `tokens`, of which the sequence holds
  // the first ones: whole pages that another sequence has computed, or that are kept since one
  // ended. Returns the sequence's length, which has grown or not; 0 where a backend keeps nothing.
  virtual int ReusePrefix(SequenceId /*sequence*/, std::span<const TokenId> /*tokens*/) {
    return 0;
  }
  // The same, and behind these pages a copy of the positions of the next one that another sequence
  // has computed.
  virtual int ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens) {
    return ReusePrefix(sequence, tokens);
  }
  virtual KvMemory kv_memory() const { return {}; }

  // Runs the rows; see the top of this file. Errors:
  //   kInvalid (token, sequence, position, ancestors or output out of range) and kLimit (position
  //     beyond the capacity, tree too large, no memory for more positions), with the row as place
  //     where there is one: nothing has changed then, and bad_rows() is empty. kInvalid with
  //     "layers", "inputs" or "taps" as place: a layer that there is not, or that does not run, or
  //     a buffer that is too small.
  //   kInvalid where logits are NaN or infinite: bad_rows() names these rows. Their sequences end
  //     at their bases; all others are as after a good call, and their logits are there.
  //   kInvalid where a mask allows nothing, with the output as place (`draws`).
  //   kUnsupported where the backend lacks what is asked for: `draws` where !samples(), layers,
  //     inputs, taps, keep_tree, mix. Nothing has changed then.
  //   Others: the sequences of the call end at their bases.
  virtual Status Run(const ModelCall& call) = 0;
  // The model draws tokens itself.
  virtual bool samples() const { return false; }
  // Short for Run.
  Status Forward(std::span<const Row> rows, std::span<float> logits) {
    ModelCall call;
    call.rows = rows;
    call.logits = logits;
    return Run(call);
  }
  Status ForwardAndSample(std::span<const Row> rows, std::span<const SampleRequest> requests,
                          std::span<TokenId> tokens, std::function<void()> late = {}) {
    ModelCall call;
    call.rows = rows;
    call.draws = true;
    call.requests = requests;
    call.tokens = tokens;
    call.late = std::move(late);
    return Run(call);
  }
  // The rows of the last call whose logits are not finite, in ascending order.
  virtual std::span<const int32_t> bad_rows() const { return {}; }

  // Commits the path to row `row` (counted as in ancestor words) of the sequence's last call; other
  // tree rows, and plain rows off the path, are forgotten. Errors: kInvalid when there is no such
  // row, kUnsupported by backends without trees.
  virtual Status CommitTree(SequenceId /*sequence*/, int /*row*/) {
    return Error{ErrorCode::kUnsupported, "this backend has no draft trees", ""};
  }
  // `to` becomes what `from` is, keys and values copied. Errors: kUnsupported where rows see one
  // side, kInvalid for sequences that there are not, kLimit without memory.
  virtual Status CopySequence(SequenceId /*from*/, SequenceId /*to*/) {
    return Error{ErrorCode::kUnsupported, "this backend copies no sequences", ""};
  }
};

// Loads a folder with config.json and *.safetensors, or a GGUF file. Errors name the file and the
// tensor, key or byte.
// `note` gets what the caller may want to know of a model that loads, such as tensors that it does
// not use.
Result<std::unique_ptr<Model>> LoadModel(const std::string& path, const ModelOptions& options = {},
                                         const std::function<void(const std::string&)>& note = {});

// The positions of a model, from its description alone. Errors: those of LoadModel.
Result<int> ContextLengthOf(const std::string& path);

// Whether this build can run models on CUDA devices, if there are any.
bool HasCudaKernels();

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_MODEL_H_
