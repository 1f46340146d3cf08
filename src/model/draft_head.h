// A trained head that drafts for a model: weights of its own that read the model's states, and what
// they read. TransformerCpu runs it (transformer_cpu_head.cc).
//
//   if (IsDraftHead(folder)) Status status = AttachDraftHead(model, folder);
//   if (HasOwnHead(*model)) Status status = AttachOwnHead(model);
#ifndef PAWL_SRC_MODEL_DRAFT_HEAD_H_
#define PAWL_SRC_MODEL_DRAFT_HEAD_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/model/layer.h"
#include "src/model/model.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_weights.h"

namespace pawl {

inline constexpr size_t kMostDraftHeads = 4;

struct DraftHead {
  // kEagle3: a layer that reads a token's embedding next to the state in front of it. What leaves
  // the layer takes the place of the model's state for the next token.
  // kMedusa: several small heads over the last state; head i guesses the token i + 2 behind it.
  // kHydra: the same over what one layer more makes of the last state, next to the embeddings of
  // the i + 1 tokens behind it.
  // kMtp: a block of the model's own files, in the form of one of its layers. It reads a linear map
  // of a token's embedding and the state in front of it.
  enum class Kind { kEagle3, kMedusa, kHydra, kMtp } kind = Kind::kEagle3;
  std::vector<int> taps;  // kEagle3: as ModelTap::layer, what the state is made of
  std::optional<Layer> layer;
  std::optional<RopeConfig> rope;  // of the layer, where it is none of the model's
  float epsilon = 1e-6f;
  bool norm_before_residual = false;  // the layer adds to the normed state
  bool normed_states = false;         // the states for the rows behind come from the final norm
  // From the model's states to the head's.
  Linear fc;
  std::vector<float> input_norm, hidden_norm, final_norm;
  TransformerLayer weights;         // of `layer`
  std::optional<Matrix> embedding;  // nullopt: the model's
  Matrix head;
  std::vector<TokenId> targets;  // by row of `head`: the model's token; empty: the same
  // kMedusa, kHydra: x + SiLU(A x + b) for each block, then a head. Of Hydra's first block x stands
  // for R z and z for x: the state and the embeddings.
  struct Step {
    std::vector<Linear> blocks;
    Linear residual;  // R, or none
    Matrix head;
    std::vector<float> bias;  // of the head, or empty
  };
  std::vector<Step> steps;
  TransformerWeights memory;  // that all of these point into

  const char* name() const {
    constexpr const char* kNames[] = {"EAGLE-3", "Medusa", "Hydra", "MTP"};
    return kNames[static_cast<size_t>(kind)];
  }
  // A position has a token and the state in front of it, so there is none at 0. What leaves the
  // layer is the state for the next one.
  bool pairs() const { return kind == Kind::kEagle3 || kind == Kind::kMtp; }
  // Of all rows, the state behind the model's last layer.
  bool reads_all_final() const { return kind == Kind::kHydra || kind == Kind::kMtp; }
  // Of the state behind the last norm, or of some layers.
  bool reads_final() const { return taps.empty(); }
};

// Whether config.json of the folder describes a head and no model. False where it cannot be read.
bool IsDraftHead(const std::string& folder);
// Of a folder that may be a head. Errors: those of a config.json that is there and is no JSON.
Status CheckHeadConfig(const std::string& folder);

// For a model of this description. Errors: kIo; kInvalid and kUnsupported with the file and the key
// or tensor, where the head is damaged or is another model's.
Result<DraftHead> LoadDraftHead(const std::string& folder, const TransformerConfig& model,
                                int threads);

// From here on the model keeps what the head reads next to its keys and values, and calls with the
// layer ModelInfo::layers, or the next number where there is a head already, run it. All sequences
// are gone. Errors: those of LoadDraftHead; kUnsupported for models on devices, those that fill
// masks, and a head too many.
Status AttachDraftHead(std::unique_ptr<Model>& model, const std::string& folder);

// What such a block has is no longer in TransformerWeights::unused.
void LeaveOutOwnBlock(const TransformerConfig& config, TransformerWeights& weights);
// Whether the model's own files have a block that guesses tokens, and it can be attached.
bool HasOwnHead(const Model& model);
// As AttachDraftHead. kUnsupported, without a place, also where there is no such block.
Status AttachOwnHead(std::unique_ptr<Model>& model);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_DRAFT_HEAD_H_
