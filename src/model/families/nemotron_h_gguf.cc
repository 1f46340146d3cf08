// Nemotron-H and Nemotron 3 Nano (NVIDIA, 2025): each layer is Mamba-2, attention without
// positions, an MLP, or experts; the last two square what is positive and have no gates.
#include "src/model/families/nemotron_h.h"

namespace pawl {

Experts NemotronExperts() {
  Experts experts;
  experts.activation = Activation::kSquaredRelu;
  experts.gated = false;
  experts.weights = Experts::Weights::kSigmoid;
  experts.normalized = experts.choice_bias = true;
  return experts;
}

void KeepOnePart(Layer& layer, bool mixer) {
  if (auto* attention = std::get_if<Attention>(&layer.mixer)) attention->rope = kNoRope;
  if (auto* mlp = std::get_if<Mlp>(&layer.feed_forward)) {
    mlp->activation = Activation::kSquaredRelu;
    mlp->gated = false;
  }
  if (mixer) {
    layer.feed_forward = std::monostate();
  } else {
    layer.mixer = std::monostate();
  }
}

namespace {

void ReadNemotronHGguf(GgufKeys& keys, TransformerConfig& config) {
  const int64_t guessing = keys.Int("nextn_predict_layers", config.layer_count() - 1, 0, 0);
  config.layers.resize(config.layers.size() - static_cast<size_t>(guessing), {});
  ReadGgufMamba(keys, config);
  if (keys.Stands("expert_count")) ReadGgufExperts(keys, config, NemotronExperts());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    Layer& layer = config.layers[i];
    auto* const mamba = std::get_if<Mamba2>(&layer.mixer);
    if (mamba != nullptr) mamba->least_time = static_cast<float>(kNemotronLeastTime);
    const std::string query = "blk." + std::to_string(i) + ".attn_q.weight";
    KeepOnePart(layer, mamba != nullptr || keys.file().Find(query) != nullptr);
  }
  config.ropes.clear();
  for (const char* key : {"rope.scaling.finetuned", "attention.layer_norm_rms_epsilon"})
    keys.Find(key);
}

void RenameNemotronH(TensorNames& names) {
  names.body = "backbone.";
  names.embedding = "embeddings";
  names.final_norm = "norm_f";
  names.attention_norm = names.mlp_norm = "norm";
  names.q = "mixer.q_proj";
  names.k = "mixer.k_proj";
  names.v = "mixer.v_proj";
  names.o = "mixer.o_proj";
  names.up = "mixer.up_proj";
  names.down = "mixer.down_proj";
  names.router = "mixer.gate";
  names.choice_bias = "mixer.gate.e_score_correction_bias";
  names.experts = "mixer.experts.";
  names.shared_up = "mixer.shared_experts.up_proj";
  names.shared_down = "mixer.shared_experts.down_proj";
  names.mixed = "mixer.in_proj";
  names.z = names.decay = nullptr;
  names.convolution = "mixer.conv1d";
  names.rates = "mixer.A_log";
  names.rate_biases = "mixer.dt_bias";
  names.skips = "mixer.D";
  names.state_norm = "mixer.norm";
  names.mixer_out = "mixer.out_proj";
}

}  // namespace

extern const Family kNemotronHFamily = {
    .architectures = {"NemotronHForCausalLM"},
    .gguf = {"nemotron_h_moe", "nemotron_h"},
    .defaults = {.kv_heads = 8,
                 .head_dim = 128,
                 .context = 4096,
                 .epsilon = 1e-5,
                 .epsilon_key = "layer_norm_epsilon",
                 .intermediate = 21504,
                 .layers = "layers_block_type"},
    .read = ReadNemotronH,
    .read_gguf = ReadNemotronHGguf,
    .gguf_by_layer = true,
    .gguf_epsilon_key = "attention.layer_norm_epsilon",
    .rename = RenameNemotronH,
    .rename_gguf =
        [](TensorNames& names) {
          RenameGgufMamba(names);
          names.paired_rotation = true;  // so the converter writes queries and keys
          names.mlp_norm = "attn_norm";
        },
};

}  // namespace pawl
