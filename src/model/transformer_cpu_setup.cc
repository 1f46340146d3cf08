// What a model on the CPU is made of: facts, scratch memory, and the pages of keys and values.
#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "src/base/os/memory.h"
#include "src/model/draft_head.h"
#include "src/model/lora.h"
#include "src/model/mask_filling.h"
#include "src/model/transformer_cpu.h"

namespace pawl {
namespace {

// The most positions that a row sees in any layer, 0 where one has no window.
int32_t WindowOf(const TransformerConfig& config) {
  int window = 0;
  bool all = false;
  EachAttention(config, [&](const Attention& attention, int) {
    all = all || attention.window == 0;
    window = std::max(window, attention.window);
  });
  for (const Layer& layer : config.layers) {
    all = all || std::holds_alternative<LatentAttention>(layer.mixer);
  }
  return all ? 0 : window;
}

}  // namespace

TransformerCpu::TransformerCpu(TransformerConfig config, TransformerWeights weights,
                               const KernelSet& kernels, int threads, int64_t worth_threads,
                               const KvBytes& kv,
                               const std::vector<std::shared_ptr<const DraftHead>>& heads)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      kernels_(kernels),
      pool_(threads),
      worth_threads_(worth_threads),
      kv_(kv),
      mixer_(RecurrentShapes(config_), KeyFloats(config_), kernels, pool_, worth_threads),
      page_floats_(mixer_.layout().page_floats()),
      sequences_(AllocatePages(kv, config_, mixer_.layout(), pages_), config_.context_length),
      ropes_(config_.ropes.size()) {
  AttachHeads(heads);
  mixer_.SetPages(static_cast<float*>(pages_.data()));
  PlaceLayers();
  FillInfo();
  AllocateScratch();
}

TransformerCpu::~TransformerCpu() = default;

// Where a layer's keys are in a page, and which layers share a table of rotations.
void TransformerCpu::PlaceLayers() {
  cache_at_.resize(config_.layers.size());
  int64_t at = 0;
  EachKeys(config_, [&](const Attention& keys, int layer, int parts) {
    KeyPlace& place = cache_at_[static_cast<size_t>(layer)];
    if (keys.keys_of >= 0) {
      place = cache_at_[static_cast<size_t>(keys.keys_of)];
      return;
    }
    place = {at, HalfPage(keys), keys.head_dim};
    at += parts * HalfPage(keys);
  });
  head_states_at_ = at;
  const auto place_rope = [&](int index, int head_dim) {
    if (index == kNoRope) return;
    const auto rope = static_cast<size_t>(index);
    ropes_[rope].width = config_.ropes[rope].WidthIn(head_dim);
    ropes_[rope].rows = RopeRows(config_.ropes[rope], head_dim);
  };
  for (size_t i = 0; i < config_.layers.size(); ++i) {
    if (auto* const latent = std::get_if<LatentAttention>(&config_.layers[i].mixer)) {
      if (latent->scale == 0.0f) {
        latent->scale = 1.0f / std::sqrt(static_cast<float>(latent->key_dim + latent->rope_dim));
      }
      place_rope(latent->rope, latent->rope_dim);
    }
    auto* const attention = std::get_if<Attention>(&config_.layers[i].mixer);
    if (attention == nullptr) continue;
    if (attention->scale == 0.0f) {
      attention->scale = 1.0f / std::sqrt(static_cast<float>(attention->head_dim));
    }
    place_rope(attention->rope, attention->head_dim);
  }
}

void TransformerCpu::FillInfo() {
  info_.architecture = config_.architecture;
  info_.vocabulary_size = config_.vocabulary;
  int64_t idle = 0;  // of experts that a call with one row leaves alone
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const TransformerLayer& layer = weights_.layers[i];
    const auto& experts = layer.experts.experts;
    const Matrix& up = (experts.empty() ? layer.up : experts[0].up).w;
    if (info_.dtype.empty() && up.data != nullptr) info_.dtype = DtypeName(up.type);
    const auto count = [&](const Linear& linear) {
      info_.layer_parameters += linear.w.rows * linear.w.cols;
    };
    for (const Linear* linear : {&layer.q,
                                 &layer.k,
                                 &layer.v,
                                 &layer.o,
                                 &layer.gate,
                                 &layer.up,
                                 &layer.down,
                                 &layer.mixed,
                                 &layer.z,
                                 &layer.decay,
                                 &layer.beta,
                                 &layer.q_a,
                                 &layer.kv_a,
                                 &layer.experts.router,
                                 &layer.experts.shared.gate,
                                 &layer.experts.shared.up,
                                 &layer.experts.shared.down,
                                 &layer.experts.shared_weight,
                                 &layer.input_gate,
                                 &layer.input_projection}) {
      count(*linear);
    }
    const FeedForward& part = config_.layers[i].feed_forward;
    const auto* const both = std::get_if<MlpAndExperts>(&part);
    const auto* const spec = both ? &both->experts : std::get_if<Experts>(&part);
    int64_t bytes = 0;
    for (const ExpertWeights::Expert& expert : experts) {
      for (const Linear* linear : {&expert.gate, &expert.up, &expert.down}) {
        count(*linear);
        bytes += MatrixBytes(linear->w);
      }
    }
    if (spec != nullptr) idle += bytes / spec->count * (spec->count - spec->chosen);
  }
  EachKeys(config_, [&](const Attention& attention, int layer, int) {
    if (layer >= config_.layer_count()) return;
    info_.heads = attention.heads;
    info_.kv_heads = attention.kv_heads;
    info_.head_dim = attention.head_dim;
  });
  info_.context_length = config_.context_length;
  info_.layers = config_.layer_count();
  info_.hidden = config_.hidden;
  info_.classifies = config_.classifies;
  info_.parameters = weights_.parameters;
  info_.weight_bytes = weights_.bytes;
  for (const AttachedHead& one : heads_) {
    info_.draft_heads.push_back({one.head->name(), static_cast<int>(one.head->steps.size())});
    info_.weight_bytes += one.head->memory.bytes;
  }
  info_.step_bytes = weights_.bytes - idle;
  if (weights_.head.data != weights_.embedding.data) {
    info_.step_bytes -= MatrixBytes(weights_.embedding);
  }
  if (config_.layer_input_width > 0) info_.step_bytes -= MatrixBytes(weights_.layer_embedding);
  info_.end_tokens = config_.end_tokens;
  info_.bos = config_.bos;
  if (weights_.lora != nullptr) info_.adapters = weights_.lora->adapters;
  info_.kernels = kernels_.name;
  info_.threads = pool_.size();
}

void TransformerCpu::AllocateScratch() {
  // LoadModel turns bad_alloc into an error.
  const auto allocate = [](int64_t count) {
    Floats floats = AllocateFloats(count);
    if (floats == nullptr) throw std::bad_alloc();
    return floats;
  };
  const auto scratch = [&](int64_t width) { return allocate(width * kBlockRows); };
  int64_t q_width = 0, kv_width = 0, inner = config_.layer_input_width, mixed = 0, z = 0;
  int64_t slots = 0, slot_width = 0, scores = 0;
  bool answers = config_.layer_input_width > 0;
  for (const Layer& layer : config_.layers) {
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) {
      q_width = std::max(q_width, int64_t{attention->heads} * attention->head_dim);
      kv_width = std::max(kv_width, int64_t{attention->kv_heads} * attention->head_dim);
      if (attention->output_gate) z = std::max(z, 2 * q_width);
    }
    if (const auto* latent = std::get_if<LatentAttention>(&layer.mixer)) {
      const Attention keys = SharedKeys(*latent);
      q_width =
          std::max({q_width, int64_t{keys.heads} * keys.head_dim, int64_t{latent->query_rank}});
      kv_width = std::max<int64_t>(kv_width, keys.head_dim);
      z = std::max({z, int64_t{latent->heads} * (latent->key_dim + latent->rope_dim),
                    int64_t{latent->heads} * latent->value_dim});
    }
    const auto* const both = std::get_if<MlpAndExperts>(&layer.feed_forward);
    if (const auto* mlp = both ? &both->mlp : std::get_if<Mlp>(&layer.feed_forward)) {
      inner = std::max<int64_t>(inner, mlp->width);
    }
    if (const auto* experts = both ? &both->experts : std::get_if<Experts>(&layer.feed_forward)) {
      inner = std::max<int64_t>(inner, experts->shared_width);
      answers = true;
      slots = std::max<int64_t>(slots, experts->chosen);
      slot_width = std::max<int64_t>(slot_width, experts->width);
      scores = std::max<int64_t>(scores, experts->count);
    }
    answers = answers || layer.post_norms || layer.scale != 1.0f;
  }
  for (size_t i = 0; i < config_.layers.size(); ++i) {
    const RecurrentShape& shape = mixer_.shape(static_cast<int>(i));
    if (shape.channels == 0) continue;
    const int64_t answer = shape.heads == 0 ? shape.channels : shape.heads * shape.values;
    mixed = std::max(mixed, shape.row_floats());
    // Without heads: b, c and x.
    z = std::max(z, shape.heads == 0 ? 3 * answer : answer);
    q_width = std::max(q_width, answer);
    recurrent_.resize(config_.layers.size());
    recurrent_[i] = std::move(weights_.layers[i].recurrent);
  }
  x_ = scratch(config_.hidden);
  normed_ = scratch(std::max<int64_t>(config_.hidden, HeadsWidth()));
  for (AttachedHead& one : heads_) one.taps = scratch(HeadWidth(*one.head, config_.hidden));
  q_ = scratch(q_width);
  k_ = scratch(kv_width);
  v_ = scratch(kv_width);
  attended_ = scratch(q_width);
  mixed_ = scratch(mixed);
  z_ = scratch(z);
  gate_ = scratch(inner);
  up_ = scratch(inner);
  packed_ = allocate(
      PackedFloats(kBlockRows, std::max({int64_t{config_.hidden}, q_width, inner, HeadsWidth()})));
  if (answers) answer_ = scratch(config_.hidden);
  const int64_t layer_inputs = int64_t{config_.layer_count()} * config_.layer_input_width;
  layer_inputs_ = scratch(std::max<int64_t>(layer_inputs, 1));
  layer_input_row_.resize(static_cast<size_t>(layer_inputs));
  ones_.assign(static_cast<size_t>(std::max({inner, kv_width, slot_width})), 1.0f);
  if (slots > 0) {
    router_scores_ = scratch(scores);
    expert_gate_ = scratch(slots * slot_width);
    expert_up_ = scratch(slots * slot_width);
    expert_rows_ = scratch(slots * config_.hidden);
    mlp_answer_ = scratch(config_.hidden);
    expert_packed_ =
        allocate(PackedFloats(kBlockRows * slots, std::max(int64_t{config_.hidden}, slot_width)));
  }
  if (weights_.lora != nullptr) AllocateAdapters();
  attention_scratch_.resize(static_cast<size_t>(pool_.size()));
  active_.reserve(kBlockRows);
  attention_chunks_.reserve(kBlockRows);
  outputs_.reserve(kBlockRows);
  layers_.reserve(config_.layers.size());
  allowed_.reserve(kBlockRows);
}

void TransformerCpu::Free::operator()(float* p) const { os::FreeAligned(p); }

TransformerCpu::Floats TransformerCpu::AllocateFloats(int64_t count) {
  constexpr size_t kCacheLine = 64;
  const size_t bytes =
      (static_cast<size_t>(count) * sizeof(float) + kCacheLine - 1) / kCacheLine * kCacheLine;
  return Floats(static_cast<float*>(os::AllocateAligned(kCacheLine, bytes)));
}

// Of the keys and values of a page. Below 2^11 * 2^20 * 2^12: no overflow.
int64_t TransformerCpu::KeyFloats(const TransformerConfig& config) {
  int64_t floats = 0;
  EachKeys(config, [&](const Attention& keys, int, int parts) {
    if (keys.keys_of < 0) floats += parts * HalfPage(keys);
  });
  floats += int64_t{config.head_state} * kPagePositions;
  return floats;
}

int64_t TransformerCpu::PageBytes(const TransformerConfig& config) {
  return StateLayout(RecurrentShapes(config), KeyFloats(config)).page_floats() *
         static_cast<int64_t>(sizeof(float));
}

KvLimits TransformerCpu::AllocatePages(const KvBytes& kv, const TransformerConfig& config,
                                       const StateLayout& states, LazyMemory& memory) {
  constexpr int64_t kLeastKept = int64_t{64} << 20;
  const int64_t page_bytes = states.page_floats() * static_cast<int64_t>(sizeof(float));
  constexpr int64_t kUnknownMachine = int64_t{4} << 30;
  int64_t bytes = kv.bytes;
  if (bytes <= 0) {
    const int64_t physical = PhysicalMemory();
    bytes = std::max(physical > 0 ? physical / 2 : kUnknownMachine, page_bytes);
  }
  const auto pages_in = [page_bytes](int64_t of) {
    return static_cast<int32_t>(std::min<int64_t>(of / page_bytes, kMostPages));
  };
  for (;;) {
    const int64_t whole = pages_in(bytes) * page_bytes;
    if (whole > 0) memory = LazyMemory(static_cast<size_t>(whole));
    if (memory.data() != nullptr) {
      int64_t kept = kv.kept;
      if (kept < 0) {
        kept = std::max(PagesFor(config.context_length) * page_bytes, kLeastKept);
        kept = std::min(kept, bytes / 4);
      }
      const bool recurrent = states.pages().state > 0;  // what is dropped cannot be computed again
      return {pages_in(bytes), pages_in(kept), recurrent ? 0 : WindowOf(config), states.pages()};
    }
    // Where addresses are rationed the default makes do with less.
    if (kv.bytes > 0 || bytes < page_bytes) throw std::bad_alloc();
    bytes /= 2;
  }
}

std::optional<MaskFilling> FillingOf(const TransformerConfig& config) {
  if (!config.both_sides) return std::nullopt;
  return MaskFilling{config.mask_token, config.shifted_logits, config.mask_block};
}

std::optional<MaskFilling> TransformerCpu::filling() const { return FillingOf(config_); }

Status CheckCausal(const Model& model, const char* place) {
  if (!model.filling()) return {};
  return Error{ErrorCode::kUnsupported,
               "searches, samplers and scores need a causal model, and this one fills masks",
               place};
}

}  // namespace pawl
