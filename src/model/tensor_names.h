// Names of a model's tensors and in which form a file has them: what differs between files of the
// same model and is no part of its description.
#ifndef PAWL_SRC_MODEL_TENSOR_NAMES_H_
#define PAWL_SRC_MODEL_TENSOR_NAMES_H_

#include <string>

namespace pawl {

// Those of a layer come between `body`, `layer`, its number and "." and ".weight" or ".bias". A
// role that a model lacks is never asked for. By default as the reference implementation saves
// them.
struct TensorNames {
  std::string body = "model.";  // before all but the head's
  std::string head = "lm_head";
  const char* embedding = "embed_tokens";
  const char* final_norm = "norm";
  const char* layer = "layers.";
  const char* attention_norm = "input_layernorm";
  const char* attention_post_norm = "post_attention_layernorm";  // where it has post norms
  const char* mlp_norm = "post_attention_layernorm";
  const char* mlp_post_norm = "post_feedforward_layernorm";
  const char* q = "self_attn.q_proj";
  const char* k = "self_attn.k_proj";
  const char* v = "self_attn.v_proj";
  const char* o = "self_attn.o_proj";
  const char* q_norm = "self_attn.q_norm";
  const char* k_norm = "self_attn.k_norm";
  const char* gate = "mlp.gate_proj";
  const char* up = "mlp.up_proj";
  const char* down = "mlp.down_proj";
  // One tensor with the rows of several, one behind the other; nullptr: each has its own.
  const char* qkv = nullptr;
  const char* gate_up = nullptr;
  const char* shared_gate_up = nullptr;  // of the expert that all rows take
  // Experts. Behind `experts` comes the number and "."; where they are stacked, one tensor has all.
  const char* router = "mlp.gate";
  const char* choice_bias = "mlp.gate.e_score_correction_bias";  // all of the name
  const char* experts = "mlp.experts.";
  const char* expert_gate = "gate_proj";
  const char* expert_up = "up_proj";
  const char* expert_down = "down_proj";
  const char* shared_gate = "mlp.shared_expert.gate_proj";
  const char* shared_up = "mlp.shared_expert.up_proj";
  const char* shared_down = "mlp.shared_expert.down_proj";
  const char* shared_weight = "mlp.shared_expert_gate";  // of the shared one's answer
  const char* expert_gate_up = nullptr;  // stacked, gate's rows, then up's; all of the name
  const char* expert_factors = "router.per_expert_scale";  // all of the name
  // Of layers with an MLP and experts; the first is all of the name.
  const char* router_norm = "router.scale";
  const char* experts_norm = "pre_feedforward_layernorm_2";
  const char* mlp_own_norm = "post_feedforward_layernorm_1";
  const char* experts_own_norm = "post_feedforward_layernorm_2";
  // Of inputs of layers: of the model, then of each layer; and a layer's number, all of the name.
  const char* layer_embedding = "embed_tokens_per_layer";
  const char* layer_projection = "per_layer_model_projection";
  const char* layer_projection_norm = "per_layer_projection_norm";
  const char* input_gate = "per_layer_input_gate";
  const char* input_projection = "per_layer_projection";
  const char* input_norm = "post_per_layer_input_norm";
  const char* factor = "layer_scalar";
  const char* sinks = "self_attn.sinks";  // all of the name
  // Each expert has tensors of its own; one tensor [experts, outputs, inputs] has all; or it is
  // [experts, inputs, outputs] with the rows of gate and up in turn, and its name has no suffix, or
  // its blocks of MXFP4.
  enum class Experts { kSingle, kStacked, kInTurn } experts_form = Experts::kSingle;

  // Of recurrent layers. `mixed` makes what the convolution sees, `z` what gates the answer. Where
  // `z` is nullptr its rows stand in `mixed`, and those of `decay` in `beta`: in a delta net side
  // by side for each key head, in Mamba-2 all three in `mixed`.
  const char* mixed = "linear_attn.in_proj_qkv";
  const char* z = "linear_attn.in_proj_z";
  const char* decay = "linear_attn.in_proj_a";
  const char* beta = "linear_attn.in_proj_b";
  const char* convolution = "linear_attn.conv1d";
  const char* rates = "linear_attn.A_log";  // a whole name, as the next one
  const char* rate_biases = "linear_attn.dt_bias";
  const char* skips = nullptr;
  const char* state_norm = "linear_attn.norm";
  const char* mixer_out = "linear_attn.out_proj";
  // Of compressed keys and values. `kv_b` makes both of a head, one behind the other; or `k_b`,
  // with the parts of its heads transposed, and `v_b`.
  const char* q_a = "self_attn.q_a_proj";
  const char* q_a_norm = "self_attn.q_a_layernorm";
  const char* q_b = "self_attn.q_b_proj";
  const char* kv_a = "self_attn.kv_a_proj_with_mqa";
  const char* kv_norm = "self_attn.kv_a_layernorm";
  const char* kv_b = "self_attn.kv_b_proj";
  const char* k_b = nullptr;
  const char* v_b = nullptr;
  bool log_rates = true;      // a rate r is kept as log(-r)
  bool tiled_values = false;  // value head i belongs to key head i % key_heads, else to neighbours

  float norm_offset = 0.0f;  // added to the weights of all norms
  // Rows of q and k stand in the order of a rotation of neighbours; the loader puts them in that of
  // halves.
  bool paired_rotation = false;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_TENSOR_NAMES_H_
