// A trained head that drafts for a model: weights of its own that read the model's states, and what
// they read. TransformerCpu runs it (transformer_cpu_head.cc).
//
//   if (IsDraftHead(folder)) Status status = AttachDraftHead(*model, folder);
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

struct DraftHead {
  // kEagle3: a layer that reads a token's embedding next to the state in front of it. What leaves
  // the layer takes the place of the model's state for the next token.
  // kMedusa: several small heads over the last state; head i guesses the token i + 2 behind it.
  // kHydra: the same over what one layer more makes of the last state, next to the embeddings of
  // the i + 1 tokens behind it.
  enum class Kind { kEagle3, kMedusa, kHydra } kind = Kind::kEagle3;
  std::vector<int> taps;  // kEagle3: as ModelTap::layer, what the state is made of
  std::optional<Layer> layer;
  RopeConfig rope;  // of the layer
  float epsilon = 1e-6f;
  bool norm_before_residual = false;  // the layer adds to the normed state
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
    return kind == Kind::kEagle3 ? "EAGLE-3" : kind == Kind::kMedusa ? "Medusa" : "Hydra";
  }
  // A position has a token and the state in front of it, so there is none at 0.
  bool pairs() const { return kind == Kind::kEagle3; }
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
// layer ModelInfo::layers run the head. All sequences are gone. Errors: those of LoadDraftHead;
// kUnsupported for models on devices, those with recurrent layers, and those that fill masks.
Status AttachDraftHead(std::unique_ptr<Model>& model, const std::string& folder);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_DRAFT_HEAD_H_
