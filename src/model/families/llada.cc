// LLaDA (Nie et al., arXiv 2502.09992): Llama whose rows see both sides, with settings and names of
// its own.
#include "src/model/families/family.h"

namespace pawl {
namespace {

void ExpectBool(const JsonReader& in, bool supported) {
  if (in.Bool(supported) != supported) {
    in.Unsupported(std::string("must be ") + (supported ? "true" : "false"));
  }
}

void ReadLlada(const JsonReader& in, TransformerConfig& config) {
  ExpectString(in["block_type"], "llama");
  ExpectString(in["activation_type"], "silu");
  ExpectString(in["layer_norm_type"], "rms");
  for (const char* key : {"alibi", "attention_layer_norm", "bias_for_layer_norm", "include_bias",
                          "input_emb_norm", "multi_query_attention", "scale_logits"}) {
    ExpectNothing(in[key]);
  }
  ExpectBool(in["rope"], true);
  const bool bias = in["include_qkv_bias"].Bool(false);
  EachAttention(config, [&](Attention& attention, int) { attention.qkv_bias = bias; });
  if (in["embedding_size"].Whole(1, kMaxVocabulary, config.vocabulary) != config.vocabulary) {
    in["embedding_size"].Unsupported("must be vocab_size");
  }
  in.Ignore({"alibi_bias_max", "attention_layer_norm_with_affine", "block_group_size",
             "embedding_dropout", "flash_attention", "init_cutoff_factor", "init_device", "init_fn",
             "init_std", "layer_norm_with_affine", "mlp_ratio", "precision", "residual_dropout",
             "rope_full_precision"});
  config.ropes = {ReadRope(in, config, 10000.0)};
  ReadDiffusion(in, config);
}

void RenameLlada(TensorNames& names) {
  names.body = "model.transformer.";
  names.head = "model.transformer.ff_out";
  names.embedding = "wte";
  names.final_norm = "ln_f";
  names.layer = "blocks.";
  names.attention_norm = "attn_norm";
  names.mlp_norm = "ff_norm";
  names.q = "q_proj";
  names.k = "k_proj";
  names.v = "v_proj";
  names.o = "attn_out";
  names.gate = "ff_proj";
  names.up = "up_proj";
  names.down = "ff_out";
}

}  // namespace

extern const Family kLladaFamily = {
    .architectures = {"LLaDAModelLM"},
    .defaults = {.epsilon = 1e-5},
    .keys = {.hidden = "d_model",
             .intermediate = "mlp_hidden_size",
             .layers = "n_layers",
             .heads = "n_heads",
             .kv_heads = "n_kv_heads",
             .context = "max_sequence_length",
             .tied = "weight_tying"},
    .read = ReadLlada,
    .rename = RenameLlada,
};

}  // namespace pawl
