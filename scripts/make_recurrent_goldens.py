#!/usr/bin/env python3
"""Makes the tiny models of tests/data/models/families, which have recurrent layers or compressed keys.

As make_model_goldens.py, whose functions it uses; the weights of states are drawn so that they
remember some tens of tokens. Usage and needs are those of make_family_goldens.py.
"""

import json

import torch
from transformers import DeepseekV2Config, Glm4MoeLiteConfig, GraniteMoeHybridConfig
from transformers import Lfm2Config, Lfm2MoeConfig, NemotronHConfig
from transformers import Qwen3_5MoeTextConfig, Qwen3_5TextConfig, Qwen3NextConfig

import make_family_goldens as family
import make_model_goldens as base

SMALL = base.SMALL
DELTA = dict(num_hidden_layers=4, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
             linear_key_head_dim=12, linear_value_head_dim=16)
# llama.cpp insists on keys and values of one width.
EVEN = dict(DELTA, linear_key_head_dim=16)
EXPERTS = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=16,
               shared_expert_intermediate_size=16)
SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25,
            "mrope_section": [1, 1, 0], "mrope_interleaved": True}
LATENT = dict({**SMALL, "vocab_size": 96, "num_hidden_layers": 3, "num_key_value_heads": 4},
              kv_lora_rank=16,
              qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=16, n_routed_experts=8,
              num_experts_per_tok=2, moe_intermediate_size=16)
NEMOTRON = dict({**SMALL, "vocab_size": 96, "tie_word_embeddings": False}, head_dim=16,
                ssm_state_size=16, mamba_num_heads=4, mamba_head_dim=16, n_groups=2,
                n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=16,
                moe_shared_expert_intermediate_size=24, routed_scaling_factor=2.5)
LONG = (1, 11, 45)


def dense_nemotron(config):
    names = {"linear_attention": "M", "full_attention": "*", "mlp": "-"}
    config["hybrid_override_pattern"] = "".join(names[n] for n in config.pop("layers_block_type"))
    config["num_hidden_layers"] = len(config["hybrid_override_pattern"])
    config["time_step_limit"] = [0.0, float("inf")]
    for key in [k for k in config if "expert" in k or k.startswith("moe_") or k.startswith("mtp_")]:
        del config[key]


MODELS = {
    # Three gated delta nets to one attention with gates, value heads in pairs.
    "qwen3_5-bf16": dict(
        dtype="bfloat16", margin=0.005, family=Qwen3_5TextConfig, prompts=LONG,
        config=dict(SMALL, **DELTA)),
    # Attention in the middle, as many key heads as value heads, another part that is rotated.
    "qwen3_5-fp32-untied": dict(
        dtype="float32", margin=0.005, family=Qwen3_5TextConfig, prompts=LONG,
        config=dict(SMALL, **{**EVEN, "num_hidden_layers": 3, "linear_num_value_heads": 2},
                    hidden_size=32, tie_word_embeddings=False, linear_conv_kernel_dim=3,
                    layer_types=["linear_attention", "full_attention", "linear_attention"],
                    rope_parameters={"rope_type": "default", "rope_theta": 5000.0,
                                     "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1],
                                     "mrope_interleaved": True})),
    # The same with experts, one of them for all rows.
    "qwen3_5_moe-bf16": dict(
        dtype="bfloat16", margin=0.001, family=Qwen3_5MoeTextConfig, prompts=LONG,
        config=dict(SMALL, **EVEN, **EXPERTS, rope_parameters=SECTIONS)),
    # With what a key head needs in one matrix. The margin leaves seed 2 out, whose log-probabilities
    # are 1.08e-4 from the reference's with the portable kernels: over the bound of 1e-4.
    "qwen3_next-bf16": dict(
        dtype="bfloat16", margin=0.011, family=Qwen3NextConfig, prompts=LONG,
        config=dict(SMALL, **EVEN, **EXPERTS)),
    # The same with keys narrower than values, which GGUF has no form for.
    "qwen3_next-uneven": dict(
        dtype="float32", margin=0.005, family=Qwen3NextConfig, prompts=LONG, folder_only=True,
        config=dict({**SMALL, "vocab_size": 96}, **{**DELTA, "num_hidden_layers": 2}, **EXPERTS,
                    layer_types=["linear_attention", "full_attention"])),
    # Short convolutions, attention in one layer.
    "lfm2-bf16": dict(
        dtype="bfloat16", family=Lfm2Config, prompts=LONG,
        config=dict(SMALL, num_hidden_layers=4, block_auto_adjust_ff_dim=False,
                    layer_types=["conv", "conv", "full_attention", "conv"])),
    # Biases, another width of the convolution, the last layer with attention, an adjusted MLP.
    "lfm2-fp16-bias": dict(
        dtype="float16", family=Lfm2Config, prompts=LONG,
        config=dict(SMALL, num_hidden_layers=2, conv_bias=True, conv_L_cache=4,
                    block_multiple_of=8, full_attn_idxs=[1])),
    # Mamba-2 in three of four layers, no positions, the factors of Granite.
    "granite4_h-bf16": dict(
        dtype="bfloat16", margin=0.001, family=GraniteMoeHybridConfig, prompts=LONG,
        config=dict({**SMALL, "vocab_size": 96, "tie_word_embeddings": False,
                        "num_hidden_layers": 4}, num_local_experts=0,
                    shared_intermediate_size=56, mamba_n_heads=8, mamba_d_head=12,
                    mamba_d_state=16, mamba_n_groups=2, mamba_expand=2, mamba_chunk_size=16,
                    embedding_multiplier=0.5, logits_scaling=2.0, residual_multiplier=1.5,
                    attention_multiplier=0.2, position_embedding_type="nope",
                    layer_types=["linear_attention", "linear_attention", "full_attention",
                                 "linear_attention"])),
    # Compressed keys and values, and queries as they are; YaRN that sharpens attention.
    "deepseek_v2-bf16": dict(
        dtype="bfloat16", margin=0.001, family=DeepseekV2Config, prompts=LONG,
        config=dict(LATENT, q_lora_rank=None, first_k_dense_replace=1, n_shared_experts=2,
                    rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0,
                                     "mscale": 0.7, "mscale_all_dim": 0.7,
                                     "original_max_position_embeddings": 32})),
    # Compressed queries too, experts by sigmoids.
    "glm4_moe_lite-bf16": dict(
        dtype="bfloat16", margin=0.001, family=Glm4MoeLiteConfig, prompts=LONG,
        config=dict(LATENT, q_lora_rank=24, n_shared_experts=1)),
    # Layers of one part, experts without gates.
    "nemotron_h-bf16": dict(
        dtype="bfloat16", margin=0.001, family=NemotronHConfig, prompts=LONG,
        config=dict(NEMOTRON, layers_block_type=["linear_attention", "moe", "full_attention", "moe",
                                                 "linear_attention"])),
    # An MLP in place of experts, the last layer with attention; the list of layers as letters, and
    # what Python writes of infinity.
    "nemotron_h-fp32-dense": dict(
        dtype="float32", margin=0.001, family=NemotronHConfig, prompts=LONG, edit=dense_nemotron,
        config=dict(NEMOTRON, use_bias=True, mlp_bias=True, layers_block_type=[
            "linear_attention", "mlp", "linear_attention", "full_attention"])),
    # Sigmoids with a bias of the choice, behind a layer with an MLP.
    "lfm2_moe-bf16": dict(
        dtype="bfloat16", margin=0.001, family=Lfm2MoeConfig, prompts=LONG,
        config=dict(SMALL, num_hidden_layers=3, num_dense_layers=1, num_experts=8,
                    num_experts_per_tok=2, moe_intermediate_size=16,
                    layer_types=["conv", "full_attention", "conv"])),
}
GRANITE = MODELS["granite4_h-bf16"]
# The same with experts next to the MLP.
MODELS["granite4_h-experts"] = dict(GRANITE, config=dict(
    GRANITE["config"], num_local_experts=6, num_experts_per_tok=2, intermediate_size=24,
    num_hidden_layers=2, layer_types=["linear_attention", "full_attention"]))


def randomize(model, generator):
    # Norms of Qwen 3.5 add 1 to their weights, but for the one behind the states.
    offset = 0.0 if model.config.model_type.startswith("qwen3") else 1.0
    for name, tensor in model.named_parameters():
        normal = torch.randn(tensor.shape, generator=generator)
        if name.endswith("A_log"):
            tensor.data = -1.0 + 0.7 * normal
        elif name.endswith("dt_bias"):
            tensor.data = -1.5 + 0.5 * normal
        elif name.endswith("mamba.D"):
            tensor.data = 1.0 + 0.5 * normal
        elif name.endswith("linear_attn.norm.weight"):
            tensor.data = 1.0 + 0.2 * normal
        elif name.endswith("norm.weight"):
            tensor.data = offset + 0.2 * normal
        elif name.endswith("bias"):
            tensor.data = 0.2 * normal
        elif "conv" in name and tensor.dim() == 3:
            tensor.data = normal / tensor.shape[2] ** 0.5
        elif "embed" in name or "lm_head" in name:
            tensor.data = (0.5 if model.config.model_type == "lfm2" else 0.3) * normal
        else:
            tensor.data = 1.5 / tensor.shape[-1] ** 0.5 * normal
    for name, tensor in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            bias = 0.2 * torch.randn(tensor.shape, generator=generator)
            tensor.data = bias.bfloat16().float()
    model.tie_weights()


def make(name, folder, converter):
    spec = MODELS[name]
    base.make(name, spec, folder)
    path = folder / name / "config.json"
    if "edit" in spec:
        config = json.loads(path.read_text())
        spec["edit"](config)
        path.write_text(json.dumps(config, indent=2) + "\n")
    # A model that is edited is one that the converter takes for another.
    if converter and "edit" not in spec and "folder_only" not in spec:
        kind = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}[spec["dtype"]]
        print(family.convert(path.parent, converter, path.parent / "model.gguf", kind), flush=True)


if __name__ == "__main__":
    base.randomize = randomize
    family.make_all(MODELS, make)
