// Hunyuan without experts (Tencent, 2025): queries and keys are normed behind RoPE.
#include <cmath>

#include "src/model/families/family.h"

namespace pawl {
namespace {

void DescribeHunyuan(TransformerConfig& config) {
  EachAttention(config, [](Attention& attention, int) {
    attention.qk_norm = QkNorm::kHead;
    attention.norm_behind_rope = true;
  });
}

void ReadHunyuan(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["hidden_act"], "silu");
  ReadAttentionBias(in, config);
  DescribeHunyuan(config);
  // Of images, of other models, and of what the reference implementation does not read.
  in.Ignore({"eod_token_id",
             "add_classification_head",
             "cla_share_factor",
             "use_qk_norm",
             "attention_head_dim",
             "norm_type",
             "org_vocab_size",
             "class_num",
             "dense_list",
             "pool_type",
             "mask_init_id",
             "im_start_id",
             "im_end_id",
             "im_newline_id",
             "text_start_id",
             "text_end_id",
             "video_start_id",
             "video_end_id",
             "pad_id",
             "anyres_pooling_size",
             "anyres_vit_max_image_size",
             "num_media_embeds",
             "vit_token",
             "vit_input_resolution",
             "vit_mapping_type",
             "vit_norm_type",
             "vit_patch",
             "vit_path",
             "vit_type"});
  ExpectNumber(in["num_experts"], 1);
  const JsonReader scaling = in["rope_scaling"], parameters = in["rope_parameters"];
  const JsonReader& object = scaling.present() ? scaling : parameters;
  const double alpha = object["alpha"].Positive(0.0);
  if (alpha == 0 || !in.ok()) {
    config.ropes = {ReadRope(in, config, 10000.0)};
    return;
  }
  // A larger base, and nothing of the other settings.
  RopeConfig& rope = config.ropes.emplace_back();
  ExpectString(object[object["rope_type"].present() ? "rope_type" : "type"], "dynamic");
  const double width = config.layers[0].attention().head_dim;
  const JsonReader theta = object["rope_theta"];
  rope.theta = (theta.present() ? theta : in["rope_theta"]).Positive(10000.0);
  rope.theta *= std::pow(alpha, width / (width - 2));
  object.Ignore({"type", "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"});
  (void)in["rope_theta"];
  RefuseTheRest(object, "HunYuanDenseV1ForCausalLM");
}

}  // namespace

extern const Family kHunyuanFamily = {
    .architectures = {"HunYuanDenseV1ForCausalLM"},
    .gguf = {"hunyuan-dense"},
    .defaults = {.epsilon = 1e-5},
    .read = ReadHunyuan,
    .read_gguf = [](GgufKeys&, TransformerConfig& config) { DescribeHunyuan(config); },
    .rename =
        [](TensorNames& names) {
          names.q_norm = "self_attn.query_layernorm";
          names.k_norm = "self_attn.key_layernorm";
        },
};

}  // namespace pawl
