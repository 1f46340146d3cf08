// Model: the backend interface that the decode loop sees. One implementation runs on the CPU, one will on
// CUDA; both answer the same ragged batch of rows.
//
// A row is one token at one position of one sequence. Decoding one token, prefilling a chunk, and verifying a draft
// tree are the same call with different rows. A row's logits do not depend on what other rows are in the call, bit for bit.
#ifndef PAWL_SRC_MODEL_MODEL_H_
#define PAWL_SRC_MODEL_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

class ThreadPool;

using SequenceId = int32_t;

struct Row {
  TokenId token;
  int32_t position;        // 0-based position in the sequence
  SequenceId sequence;
  uint64_t ancestors = 0;  // draft trees: bit i = this row also sees row i of its tree; 0 for plain rows, which
                           // see every committed position of the sequence and earlier rows of the call
  int32_t output = -1;     // where this row's logits go, -1 when they are not wanted
};

struct ModelInfo {
  std::string architecture;  // "LlamaForCausalLM"
  std::string dtype;         // "bf16", ...
  int vocabulary_size = 0;   // width of the logits
  int context_length = 0;    // longest sequence
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0;
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  std::vector<TokenId> end_tokens;  // from generation_config.json / config.json
  TokenId bos = kNoToken;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;

  // A new, empty sequence with room for `capacity` positions. Errors: kLimit when memory does not allow it.
  virtual Result<SequenceId> NewSequence(int capacity) = 0;
  virtual void FreeSequence(SequenceId sequence) = 0;
  // Forgets positions >= length.
  virtual void Truncate(SequenceId sequence, int length) = 0;

  // Runs the rows; the keys and values of each are written at (sequence, position). Logits of rows with output >= 0 go to
  // logits[output * vocabulary_size ...]. Errors: kInvalid (token or position out of range), kLimit, kInternal (NaN).
  virtual Status Forward(std::span<const Row> rows, std::span<float> logits) = 0;
};

struct ModelOptions {
  int threads = 0;  // 0: all cores
  std::function<void(double fraction)> progress;
};

// Loads a folder with config.json and *.safetensors. Errors name the file and the tensor or key.
Result<std::unique_ptr<Model>> LoadModel(const std::string& folder, const ModelOptions& options = {});

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_MODEL_H_
