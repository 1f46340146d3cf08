// Blocks of a model's own files that guess the token behind the next one (multi-token prediction).
//
// Three spellings. Qwen3-Next and Qwen 3.5 have "mtp.fc" and "mtp.layers.0."; what leaves their
// final norm is the state for the next place. DeepSeek-V3 and GLM number the block as one layer
// more than the model has: "eh_proj", "enorm", "hnorm" and "shared_head" next to the tensors of a
// layer. GGUF files have the second form for both, with "nextn." in front. The head is the model's
// where the block has none, and so is the embedding. The layer has the form of the model's last one
// with attention.
#include <algorithm>
#include <new>
#include <utility>

#include "src/model/draft_head.h"
#include "src/model/families/family.h"
#include "src/model/tensor_binder.h"
#include "src/model/transformer_cpu.h"

namespace pawl {
namespace {

struct OwnBlock {
  std::string fc, input_norm, hidden_norm, final_norm, head, embedding;
  std::string layer;   // in front of its names
  std::string second;  // a tensor of a second block
  bool normed_states = false;
};

std::optional<OwnBlock> FindOwnBlock(const TransformerConfig& config,
                                     const TransformerWeights& weights) {
  if (weights.source == nullptr) return std::nullopt;
  const auto has = [&](const std::string& name) { return weights.source->Find(name) != nullptr; };
  if (has("mtp.fc.weight")) {
    return OwnBlock{.fc = "mtp.fc",
                    .input_norm = "mtp.pre_fc_norm_embedding",
                    .hidden_norm = "mtp.pre_fc_norm_hidden",
                    .final_norm = "mtp.norm",
                    .head = "mtp.lm_head.weight",
                    .embedding = "mtp.embed_tokens.weight",
                    .layer = "mtp.layers.0.",
                    .second = "mtp.layers.1.input_layernorm.weight",
                    .normed_states = true};
  }
  const bool deltas = std::ranges::any_of(config.layers, [](const Layer& layer) {
    return std::holds_alternative<GatedDeltaNet>(layer.mixer);
  });
  const auto number = [&](int nth) {
    return weights.names.body + weights.names.layer + std::to_string(config.layer_count() + nth) +
           ".";
  };
  for (const bool gguf : {false, true}) {
    const std::string layer = number(0), at = layer + (gguf ? "nextn." : "");
    if (!has(at + "eh_proj.weight")) continue;
    const std::string shared = gguf ? "shared_head_" : "shared_head.";
    return OwnBlock{.fc = at + "eh_proj",
                    .input_norm = at + "enorm",
                    .hidden_norm = at + "hnorm",
                    .final_norm = at + shared + "norm",
                    .head = at + shared + "head.weight",
                    .embedding = at + "embed_tokens.weight",
                    .layer = layer,
                    .second = number(1) + (gguf ? "nextn." : "") + "eh_proj.weight",
                    .normed_states = gguf && deltas};
  }
  return std::nullopt;
}

// The last layer with attention.
const Layer* LayerWithAttention(const TransformerConfig& config) {
  for (int i = config.layer_count() - 1; i >= 0; --i) {
    const Layer& layer = config.layers[static_cast<size_t>(i)];
    const auto* const attention = std::get_if<Attention>(&layer.mixer);
    if (attention == nullptr && !std::holds_alternative<LatentAttention>(layer.mixer)) continue;
    return &layer;
  }
  return nullptr;
}

// Why there is none that can be attached.
Status CheckOwnBlock(const TransformerCpu* cpu) {
  const auto refused = [](const std::string& why) {
    return Error{ErrorCode::kUnsupported, why, ""};
  };
  if (cpu == nullptr) return refused("the source \"mtp\" drafts for models on the CPU alone");
  const TransformerConfig& config = cpu->config();
  if (config.both_sides)
    return refused("the source \"mtp\" means nothing for a model that fills masks");
  const std::optional<OwnBlock> block = FindOwnBlock(config, cpu->weights());
  if (!block) {
    return refused("the source \"mtp\" needs a block for several tokens, and the files of this " +
                   config.architecture + " have none that is known");
  }
  if (cpu->weights().source->Find(block->second) != nullptr) {
    return refused("the files have several blocks for several tokens; one is supported");
  }
  const Layer* const layer = LayerWithAttention(config);
  const auto* const attention = layer != nullptr ? std::get_if<Attention>(&layer->mixer) : nullptr;
  if (layer == nullptr || std::holds_alternative<std::monostate>(layer->feed_forward) ||
      (attention != nullptr && attention->keys_of >= 0) || config.layer_input_width > 0 ||
      config.layer_norms) {
    return refused("blocks for several tokens of " + config.architecture + " are not supported");
  }
  if (cpu->info().draft_heads.size() >= kMostDraftHeads) {
    return refused("the model has " + std::to_string(kMostDraftHeads) + " heads already");
  }
  return {};
}

Result<DraftHead> LoadOwnHead(const TransformerCpu& model) {
  const TransformerConfig& config = model.config();
  const TransformerWeights& weights = model.weights();
  const TensorSource& source = *weights.source;
  const OwnBlock block = *FindOwnBlock(config, weights);
  const int64_t hidden = config.hidden;
  DraftHead head;
  head.kind = DraftHead::Kind::kMtp;
  head.layer = *LayerWithAttention(config);
  head.epsilon = config.norm_epsilon;
  head.normed_states = block.normed_states;
  Binder binder(head.memory, source, weights.names.norm_offset, weights.dtype, model.info().threads,
                false);
  head.fc = binder.FetchLinear(block.fc, hidden, 2 * hidden, false);
  head.input_norm = binder.FetchNorm(block.input_norm, hidden);
  head.hidden_norm = binder.FetchNorm(block.hidden_norm, hidden);
  head.weights = BindLayer(binder, config, weights.names, block.layer, *head.layer);
  head.final_norm = binder.FetchNorm(block.final_norm, hidden);
  head.head = weights.head;
  if (binder.Has(block.head)) {
    head.head = binder.FetchMatrix(block.head, config.vocabulary, hidden, true);
  }
  if (binder.Has(block.embedding)) {
    head.embedding = binder.FetchMatrix(block.embedding, config.vocabulary, hidden, true);
  }
  if (binder.error()) return *binder.error();
  return head;
}

}  // namespace

void LeaveOutOwnBlock(const TransformerConfig& config, TransformerWeights& weights) {
  const std::optional<OwnBlock> block = FindOwnBlock(config, weights);
  if (!block || weights.source->Find(block->second) != nullptr) return;
  const bool numbered = block->layer != "mtp.layers.0.";
  std::erase_if(weights.unused, [&](const std::string& name) {
    return name.starts_with(numbered ? block->layer : "mtp.");
  });
}

bool HasOwnHead(const Model& model) {
  return CheckOwnBlock(dynamic_cast<const TransformerCpu*>(&model)).ok();
}

Status AttachOwnHead(std::unique_ptr<Model>& model) {
  auto* const cpu = dynamic_cast<TransformerCpu*>(model.get());
  if (Status status = CheckOwnBlock(cpu); !status.ok()) return status;
  Result<DraftHead> head = LoadOwnHead(*cpu);
  if (!head.ok()) return head.error();
  try {
    model = TransformerCpu::WithHead(std::move(*cpu), *std::move(head));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kLimit, "not enough memory to load the block for several tokens", ""};
  }
  return {};
}

}  // namespace pawl
