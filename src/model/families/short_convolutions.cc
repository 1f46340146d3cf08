// What families with short convolutions share.
#include <string_view>

#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeShortConvolutions(const ShortConvolution& convolution,
                               const std::vector<bool>& attends, TransformerConfig& config) {
  EachAttention(config, [](Attention& attention, int) { attention.qk_norm = QkNorm::kHead; });
  for (size_t i = 0; i < attends.size(); ++i) {
    if (!attends[i]) config.layers[i].mixer = convolution;
  }
}

}  // namespace

void ReadShortConvolutions(const JsonReader& in, TransformerConfig& config) {
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
  DescribeShortConvolutions(convolution, attends, config);
}

void ReadShortConvolutions(GgufKeys& keys, TransformerConfig& config) {
  ShortConvolution convolution;
  convolution.taps = static_cast<int>(keys.Int("shortconv.l_cache", kMostTaps, std::nullopt, 2));
  convolution.bias = keys.file().Find("blk.0.shortconv.in_proj.bias") != nullptr;
  std::vector<bool> attends;
  for (int i = 0; i < config.layer_count(); ++i) {
    attends.push_back(keys.file().Find("blk." + std::to_string(i) + ".attn_q.weight") != nullptr);
  }
  DescribeShortConvolutions(convolution, attends, config);
}

void RenameShortConvolutions(TensorNames& names) {
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
}

void RenameGgufShortConvolutions(TensorNames& names) {
  names.final_norm = "token_embd_norm";
  names.mixed = "shortconv.in_proj";
  names.convolution = "shortconv.conv";
  names.mixer_out = "shortconv.out_proj";
}

}  // namespace pawl
