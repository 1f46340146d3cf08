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

Usage: make_model_goldens.py [OUTPUT_FOLDER]
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
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

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
        dtype="bfloat16", mistral=True, config=dict(
            vocab_size=300, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, tie_word_embeddings=True, sliding_window=None,
            max_position_embeddings=256,
            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})),
}


def randomize(model, generator):
    for name, tensor in model.named_parameters():
        if name.endswith("norm.weight"):
            tensor.data = 1.0 + 0.2 * torch.randn(tensor.shape, generator=generator)
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
    if spec.get("mistral"):
        model = MistralForCausalLM(MistralConfig(**config))
    else:
        model = LlamaForCausalLM(LlamaConfig(**config))
    randomize(model, generator)
    return model.eval(), generator


def goldens(model, generator):
    """The golden tensors, and the smallest margin by which a greedy token won."""
    tensors, margin = {}, float("inf")
    for index, length in enumerate(PROMPT_LENGTHS):
        prompt = torch.randint(3, model.config.vocab_size, (length,), generator=generator)
        with torch.no_grad():
            tensors[f"prompt.{index}"] = prompt
            tensors[f"logits.{index}"] = model(prompt[None]).logits[0].float().contiguous()
            text = prompt
            for _ in range(CONTINUATION):
                last = model(text[None]).logits[0, -1]
                best, second = last.topk(2).values
                margin = min(margin, (best - second).item())
                text = torch.cat([text, last.argmax()[None]])
            tensors[f"greedy.{index}"] = text[length:].contiguous()
    return tensors, margin


def make(name, spec, folder):
    for seed in range(1, 200):
        model, generator = build(spec, seed)
        dtype = getattr(torch, spec["dtype"])
        # The stored weights, computed with in fp32. Not model.to(dtype), which would round the
        # RoPE frequencies too.
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype).float()
        tensors, margin = goldens(model, generator)
        texts = [tensors[f"greedy.{i}"].tolist() for i in range(len(PROMPT_LENGTHS))]
        distinct = min(len(set(text)) for text in texts)
        if margin > MIN_MARGIN and distinct > 8:
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
        config["rope_theta"] = rope["rope_theta"]
        config["rope_scaling"] = None
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
        make(name, spec, folder)
    versions = {m.__name__: m.__version__ for m in (torch, transformers, safetensors)}
    (folder / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
    main()
