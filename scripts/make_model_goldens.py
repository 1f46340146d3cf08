#!/usr/bin/env python3
"""Makes the tiny random models of tests/data/models and what the reference implementation answers.

Each folder is a checkpoint as `transformers` saves it (config.json, generation_config.json,
safetensors) and golden.safetensors:
  prompt.N   I64 [length]         a prompt
  logits.N   F32 [length, vocab]  logits after each token, computed in fp32 on the stored weights
  greedy.N   I64 [64]             its greedy continuation
Weights are drawn with a spread that makes the logits far from flat, and a seed is taken only if no
choice in the greedy continuations is a near tie, so that they say something about the forward pass
and nothing about rounding.

Usage: make_model_goldens.py [OUTPUT_FOLDER [NAME...]]
Needs torch, transformers and safetensors; versions.json has the versions that were used.
"""

import json
import shutil
import sys
from pathlib import Path

import safetensors
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, DynamicCache
from transformers import Gemma2Config, Gemma3TextConfig, LlamaConfig, MistralConfig
from transformers import Qwen2Config, Qwen3Config

CONTINUATION = 64
MIN_MARGIN = 0.02
PROMPT_LENGTHS = (1, 11, 29)

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 50000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}

DYNAMIC_ROPE = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
YARN_ROPE = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "original_max_position_embeddings": 32,
}
# What the later models have in common: small enough for a repository.
SMALL = dict(hidden_size=48, vocab_size=130, intermediate_size=56, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
             max_position_embeddings=256)
GEMMA_TIED = dict(SMALL, head_dim=16)
LONG = (1, 11, 45)

MODELS = {
    # Tied, default RoPE, old spelling of config.json, a vocabulary that fills no whole vector.
    "llama-fp32-tied": dict(
        dtype="float32", old_spelling=True, config=dict(
            vocab_size=257, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=256,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0})),
    # Untied, llama3 scaling with all three of its frequency ranges in use, three layers.
    "llama-bf16-llama3": dict(
        dtype="bfloat16", config=dict(
            vocab_size=320, intermediate_size=72, num_hidden_layers=3, num_attention_heads=8,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=256,
            rope_parameters=LLAMA3_ROPE)),
    # Explicit head_dim that is no multiple of 16, one key-value head, biases, linear scaling,
    # shards, a list of end tokens.
    "llama-fp16-headdim-sharded": dict(
        dtype="float16", shard="100KB", config=dict(
            vocab_size=320, intermediate_size=100, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=1, head_dim=24, attention_bias=True, mlp_bias=True,
            max_position_embeddings=256, eos_token_id=[2, 7],
            rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0})),
    # The same computation under another name.
    "mistral-bf16": dict(
        dtype="bfloat16", family=MistralConfig, config=dict(
            vocab_size=300, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, tie_word_embeddings=True, sliding_window=None,
            max_position_embeddings=256,
            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})),
    # A window shorter than the prompts, heads wider than the hidden size says.
    "mistral-fp16-window": dict(
        dtype="float16", family=MistralConfig, prompts=LONG,
        config=dict(SMALL, head_dim=20, sliding_window=17)),
    # Longer than its context: the frequencies follow the length. Answered token by token, see
    # src/model/transformer_config.cc.
    "llama-bf16-dynamic": dict(
        dtype="bfloat16", prompts=(1, 11, 80), incremental=True,
        config=dict(SMALL, max_position_embeddings=64, rope_parameters=DYNAMIC_ROPE)),
    # Heads in threes, as in the smallest SmolLM2.
    "smollm2-bf16": dict(
        dtype="bfloat16",
        config=dict(SMALL, num_attention_heads=6, num_key_value_heads=2,
                    rope_parameters={"rope_type": "default", "rope_theta": 100000.0})),
    # Biases of q, k and v; the upper layer with a window; yarn in the old spelling.
    "qwen2-bf16-window-yarn": dict(
        dtype="bfloat16", family=Qwen2Config, prompts=LONG, old_spelling=True,
        config=dict(SMALL, use_sliding_window=True, sliding_window=20, max_window_layers=1,
                    rope_parameters=YARN_ROPE)),
    "qwen2-fp32-untied": dict(
        dtype="float32", family=Qwen2Config,
        config=dict(SMALL, hidden_size=32, tie_word_embeddings=False)),
    # Norms of queries and keys; yarn with every setting of its own.
    "qwen3-bf16": dict(
        dtype="bfloat16", family=Qwen3Config,
        config=dict(SMALL, head_dim=24)),
    "qwen3-fp16-yarn": dict(
        dtype="float16", family=Qwen3Config, prompts=LONG,
        config=dict(SMALL, head_dim=16, attention_bias=True, rope_parameters=dict(
            YARN_ROPE, rope_theta=100.0, attention_factor=1.3, beta_fast=4.0, beta_slow=0.5,
            truncate=False))),
    # Soft caps that bend, a local and a global layer.
    "gemma2-bf16": dict(
        dtype="bfloat16", margin=0.005, family=Gemma2Config, prompts=LONG,
        config=dict(GEMMA_TIED, sliding_window=14, query_pre_attn_scalar=20,
                    attn_logit_softcapping=3.0, final_logit_softcapping=20.0)),
    # Two local layers to a global one, with a RoPE of its own each.
    "gemma3-bf16": dict(
        dtype="bfloat16", margin=0.005, family=Gemma3TextConfig, prompts=LONG,
        config=dict(GEMMA_TIED, num_hidden_layers=3, sliding_window=13, query_pre_attn_scalar=16,
                    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                    rope_parameters={
                        "full_attention": {"rope_type": "linear", "factor": 4.0,
                                           "rope_theta": 50000.0},
                        "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0}})),
    # The same in the old spelling, where a pattern stands for the list of layers.
    "gemma3-fp16-pattern": dict(
        dtype="float16", margin=0.005, family=Gemma3TextConfig, prompts=LONG, old_spelling=True,
        config=dict(GEMMA_TIED, sliding_window=13, query_pre_attn_scalar=16,
                    sliding_window_pattern=2, final_logit_softcapping=10.0,
                    rope_parameters={
                        "full_attention": {"rope_type": "default", "rope_theta": 50000.0},
                        "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0}})),
}


def randomize(model, generator):
    # Gemma adds 1 to the weights of its norms.
    gemma = model.config.model_type.startswith("gemma")
    one = 0.0 if gemma else 1.0
    for name, tensor in model.named_parameters():
        if gemma and ("embed_tokens" in name or name == "model.norm.weight"):
            # Its embeddings are scaled up on the way in: small ones, or each token repeats itself.
            normal = torch.randn(tensor.shape, generator=generator)
            tensor.data = 0.1 * normal if "embed_tokens" in name else 8.0 + normal
            continue
        if gemma and "post_" in name:
            tensor.data = 1.0 + 0.5 * torch.randn(tensor.shape, generator=generator)
            continue
        if name.endswith("norm.weight"):
            tensor.data = one + 0.2 * torch.randn(tensor.shape, generator=generator)
        elif name.endswith("bias"):
            tensor.data = 0.2 * torch.randn(tensor.shape, generator=generator)
        elif "embed_tokens" in name or "lm_head" in name:
            tensor.data = 0.5 * torch.randn(tensor.shape, generator=generator)
        else:
            spread = 1.5 / tensor.shape[1] ** 0.5
            tensor.data = spread * torch.randn(tensor.shape, generator=generator)
    model.tie_weights()


def build(spec, seed):
    generator = torch.Generator().manual_seed(seed)
    common = dict(hidden_size=64, bos_token_id=1, use_cache=False, attn_implementation="eager")
    config = {**common, "eos_token_id": 2, **spec["config"]}
    model = AutoModelForCausalLM.from_config(spec.get("family", LlamaConfig)(**config),
                                             attn_implementation="eager")
    randomize(model, generator)
    return model.eval(), generator


def answer(model, tokens, incremental):
    """Logits after each token: from one pass, or as a decode loop has them."""
    if not incremental:
        return model(tokens[None]).logits[0]
    cache = DynamicCache(config=model.config)
    rows = [model(t[None, None], past_key_values=cache, use_cache=True).logits[0] for t in tokens]
    return torch.cat(rows)


def goldens(model, generator, spec):
    """The golden tensors, and the smallest margin by which a greedy token won."""
    tensors, margin = {}, float("inf")
    incremental = spec.get("incremental", False)
    for index, length in enumerate(spec.get("prompts", PROMPT_LENGTHS)):
        prompt = torch.randint(3, model.config.vocab_size, (length,), generator=generator)
        with torch.no_grad():
            tensors[f"prompt.{index}"] = prompt
            tensors[f"logits.{index}"] = answer(model, prompt, incremental).float().contiguous()
            text = prompt
            for _ in range(CONTINUATION):
                last = answer(model, text, incremental)[-1]
                best, second = last.topk(2).values
                margin = min(margin, (best - second).item())
                if margin <= spec.get("margin", MIN_MARGIN):
                    return tensors, margin
                text = torch.cat([text, last.argmax()[None]])
            tensors[f"greedy.{index}"] = text[length:].contiguous()
    return tensors, margin


def make(name, spec, folder):
    for seed in range(1, 400):
        model, generator = build(spec, seed)
        dtype = getattr(torch, spec["dtype"])
        # The stored weights, computed with in fp32. Not model.to(dtype), which would round the
        # RoPE frequencies too.
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype).float()
        tensors, margin = goldens(model, generator, spec)
        texts = [tensors.get(f"greedy.{i}", torch.zeros(1)).tolist() for i in range(3)]
        distinct = min(len(set(text)) for text in texts)
        if margin > spec.get("margin", MIN_MARGIN) and distinct > 8:
            break
    else:
        raise SystemExit(f"{name}: no seed without near ties")
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    model = model.to(dtype)
    model.config.use_cache = True
    model.save_pretrained(target, max_shard_size=spec.get("shard", "10MB"))
    if spec.get("old_spelling"):
        path = target / "config.json"
        config = json.loads(path.read_text())
        rope = config.pop("rope_parameters")
        if "full_attention" in rope:
            config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
            config["sliding_window_pattern"] = config.pop("_sliding_window_pattern", 2)
            rope = rope["full_attention"]
        config.pop("layer_types", None)
        config["rope_theta"] = rope.pop("rope_theta")
        kind = rope.pop("rope_type")
        config["rope_scaling"] = {"type": kind, **rope} if kind != "default" else None
        config["torch_dtype"] = config.pop("dtype")
        path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(tensors, target / "golden.safetensors")
    for file in target.iterdir():
        file.chmod(0o644)
    size = sum(f.stat().st_size for f in target.iterdir())
    print(f"{name}: seed {seed}, margin {margin:.3f}, {distinct}+ tokens, {size / 1024:.0f} KiB")


def main():
    default = Path(__file__).resolve().parent.parent / "tests" / "data" / "models"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name, spec in MODELS.items():
        if len(sys.argv) < 3 or name in sys.argv[2:]:
            make(name, spec, folder)
    versions = {m.__name__: m.__version__ for m in (torch, transformers, safetensors)}
    (folder / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
    main()