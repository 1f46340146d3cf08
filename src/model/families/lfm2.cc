// LFM2 and LFM2.5 (Liquid AI, 2025): short convolutions, and attention in some layers.
#include <string_view>

#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeLfm2(const ShortConvolution& convolution, const std::vector<bool>& attends,
                  TransformerConfig& config) {
  EachAttention(config, [](Attention& attention, int) { attention.qk_norm = QkNorm::kHead; });
  for (size_t i = 0; i < attends.size(); ++i) {
    if (!attends[i]) config.layers[i].mixer = convolution;
  }
}

// What is made of a width that is stated for an MLP without a gate.
int AdjustedWidth(const JsonReader& in, int width) {
  const int64_t multiple = in["block_multiple_of"].Whole(1, kMaxWidth, 256);
  const double factor = in["block_ffn_dim_multiplier"].Positive(1.0);
  if (!in["block_auto_adjust_ff_dim"].Bool(true)) return width;
  const auto scaled = static_cast<int64_t>(factor * static_cast<double>(int64_t{2} * width / 3));
  return static_cast<int>((scaled + multiple - 1) / multiple * multiple);
}

void ReadLfm2(const JsonReader& in, TransformerConfig& config) {
  const int stated = config.layers[0].mlp().width;
  const int width =
      AdjustedWidth(in, static_cast<int>(in["block_ff_dim"].Whole(1, kMaxWidth, stated)));
  EachMlp(config, [&](Mlp& mlp) { mlp.width = width; });
  config.tied_embeddings = in["tie_embedding"].Bool(config.tied_embeddings);
  config.ropes = {ReadRope(in, config, 1000000.0)};
  ShortConvolution convolution;
  convolution.taps = static_cast<int>(in["conv_L_cache"].Whole(2, kMostTaps, 3));
  convolution.bias = in["conv_bias"].Bool(false);
  const JsonReader listed = in["full_attn_idxs"];
  std::vector<bool> listed_ones(config.layers.size(), !listed.IsArray());
  for (size_t i = 0; listed.IsArray() && i < listed.size(); ++i) {
    listed_ones[static_cast<size_t>(listed.Item(i).Whole(0, config.layer_count() - 1))] = true;
  }
  constexpr std::string_view kKnown[] = {"full_attention", "conv"};
  std::vector<bool> attends;
  for (const std::string_view type : ReadLayerTypes(in, config.layer_count(), kKnown, [&](int i) {
         return kKnown[listed_ones[static_cast<size_t>(i)] ? 0 : 1];
       })) {
    attends.push_back(type == kKnown[0]);
  }
  DescribeLfm2(convolution, attends, config);
  // The model's own width, and how it was trained.
  in.Ignore({"block_dim", "block_norm_eps", "block_use_swiglu", "block_mlp_init_scale",
             "block_out_init_scale", "block_use_xavier_init", "conv_dim", "conv_dim_out",
             "conv_use_xavier_init", "use_pos_enc", "num_heads", "theta"});
}

void ReadLfm2Gguf(GgufKeys& keys, TransformerConfig& config) {
  ShortConvolution convolution;
  convolution.taps = static_cast<int>(keys.Int("shortconv.l_cache", kMostTaps, std::nullopt, 2));
  convolution.bias = keys.file().Find("blk.0.shortconv.in_proj.bias") != nullptr;
  std::vector<bool> attends;
  for (int i = 0; i < config.layer_count(); ++i) {
    attends.push_back(keys.file().Find("blk." + std::to_string(i) + ".attn_q.weight") != nullptr);
  }
  DescribeLfm2(convolution, attends, config);
}

}  // namespace

extern const Family kLfm2Family = {
    .architectures = {"Lfm2ForCausalLM"},
    .wrappers = {"Lfm2VlForConditionalGeneration"},
    .model_type = "lfm2",
    .gguf = {"lfm2"},
    .defaults = {.kv_heads = 8,
                 .context = 128000,
                 .tied_embeddings = true,
                 .epsilon = 1e-5,
                 .epsilon_key = "norm_eps",
                 .intermediate = 12288},
    .read = ReadLfm2,
    .read_gguf = ReadLfm2Gguf,
    .gguf_theta = 1000000.0,
    .rename =
        [](TensorNames& names) {
          names.final_norm = "embedding_norm";
          names.attention_norm = "operator_norm";
          names.mlp_norm = "ffn_norm";
          names.o = "self_attn.out_proj";
          names.q_norm = "self_attn.q_layernorm";
          names.k_norm = "self_attn.k_layernorm";
          names.gate = "feed_forward.w1";
          names.up = "feed_forward.w3";
          names.down = "feed_forward.w2";
          names.mixed = "conv.in_proj";
          names.convolution = "conv.conv";
          names.mixer_out = "conv.out_proj";
        },
    .rename_gguf =
        [](TensorNames& names) {
          names.final_norm = "token_embd_norm";
          names.mixed = "shortconv.in_proj";
          names.convolution = "shortconv.conv";
          names.mixer_out = "shortconv.out_proj";
        },
};

}  // namespace pawl
