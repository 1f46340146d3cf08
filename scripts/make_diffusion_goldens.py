#!/usr/bin/env python3
"""Makes the tiny random diffusion models of tests/data/models/diffusion, LLaDA and Dream.

Each folder has config.json and model.safetensors with the names that the published checkpoints have, in fp32, and
golden.safetensors: the tokens of a canvas longer than a block of rows, and its logits by this program, in double precision. It is
written from the description of the two models, not from their code: Llama's and Qwen 2's layers, whose rows see the whole canvas.

Usage: make_diffusion_goldens.py [--output FOLDER]
Needs numpy and safetensors.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

VOCABULARY, WIDTH, INNER, LAYERS, HEADS, KV_HEADS, CANVAS = 48, 32, 40, 2, 4, 2, 150
HEAD = WIDTH // HEADS
EPSILON = {"llada": 1e-5, "dream": 1e-6}
THETA = {"llada": 500000.0, "dream": 1000000.0}
CONFIGS = {
    "llada": {
        "architectures": ["LLaDAModelLM"], "model_type": "llada", "activation_type": "silu", "alibi": False, "attention_layer_norm": False,
        "bias_for_layer_norm": False, "block_type": "llama", "d_model": WIDTH, "embedding_size": VOCABULARY, "include_bias": False,
        "include_qkv_bias": False, "input_emb_norm": False, "layer_norm_type": "rms", "layer_norm_with_affine": True, "mask_token_id": 46,
        "max_sequence_length": 256, "mlp_hidden_size": INNER, "n_heads": HEADS, "n_kv_heads": KV_HEADS, "n_layers": LAYERS, "rms_norm_eps": EPSILON["llada"],
        "rope": True, "rope_theta": THETA["llada"], "scale_logits": False, "vocab_size": VOCABULARY, "weight_tying": False, "eos_token_id": 47},
    "dream": {
        "architectures": ["DreamModel"], "model_type": "Dream", "hidden_act": "silu", "hidden_size": WIDTH, "intermediate_size": INNER,
        "mask_token_id": 46, "max_position_embeddings": 256, "max_window_layers": LAYERS, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS, "rms_norm_eps": EPSILON["dream"], "rope_scaling": None, "rope_theta": THETA["dream"], "sliding_window": None,
        "tie_word_embeddings": False, "use_mrope": False, "use_sliding_window": False, "vocab_size": VOCABULARY, "eos_token_id": 47},
}
NAMES = {
    "llada": dict(body="model.transformer.", embedding="wte", layer="blocks.{}.", norm="attn_norm", q="q_proj", k="k_proj", v="v_proj", o="attn_out",
                  mlp_norm="ff_norm", gate="ff_proj", up="up_proj", down="ff_out", final="ln_f", head="model.transformer.ff_out"),
    "dream": dict(body="model.", embedding="embed_tokens", layer="layers.{}.", norm="input_layernorm", q="self_attn.q_proj", k="self_attn.k_proj",
                  v="self_attn.v_proj", o="self_attn.o_proj", mlp_norm="post_attention_layernorm", gate="mlp.gate_proj", up="mlp.up_proj",
                  down="mlp.down_proj", final="norm", head="lm_head"),
}


def weights(name, rng):
    names, out = NAMES[name], {}

    def put(key, *shape, around=0.0, spread=0.3):
        out[key] = (around + spread * rng.standard_normal(shape)).astype(np.float32)

    put(names["body"] + names["embedding"] + ".weight", VOCABULARY, WIDTH, spread=1.0)
    for layer in range(LAYERS):
        at = names["body"] + names["layer"].format(layer)
        for norm in ("norm", "mlp_norm"):
            put(at + names[norm] + ".weight", WIDTH, around=1.0)
        for part, rows, columns in (("q", WIDTH, WIDTH), ("k", KV_HEADS * HEAD, WIDTH), ("v", KV_HEADS * HEAD, WIDTH), ("o", WIDTH, WIDTH),
                                    ("gate", INNER, WIDTH), ("up", INNER, WIDTH), ("down", WIDTH, INNER)):
            put(at + names[part] + ".weight", rows, columns)
            if name == "dream" and part in "qkv":
                put(at + names[part] + ".bias", rows)
    put(names["body"] + names["final"] + ".weight", WIDTH, around=1.0)
    put(names["head"] + ".weight", VOCABULARY, WIDTH)
    return out


def forward(name, tensors, tokens):
    names = NAMES[name]
    get = lambda key: tensors[key].astype(np.float64)
    norm = lambda x, key: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON[name]) * get(key + ".weight")
    half = HEAD // 2
    frequencies = THETA[name] ** (-np.arange(half) / half)
    angles = (np.arange(len(tokens), dtype=np.float32)[:, None] * frequencies.astype(np.float32)).astype(np.float64)
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]

    def rotate(x):
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = get(names["body"] + names["embedding"] + ".weight")[tokens]
    for layer in range(LAYERS):
        at = names["body"] + names["layer"].format(layer)

        def linear(y, part):
            y = y @ get(at + names[part] + ".weight").T
            bias = at + names[part] + ".bias"
            return y + get(bias) if bias in tensors else y

        y = norm(x, at + names["norm"])
        q, k, v = (linear(y, part).reshape(len(tokens), -1, HEAD) for part in "qkv")
        q, k = rotate(q), rotate(k)
        k, v = (np.repeat(t, HEADS // KV_HEADS, axis=1) for t in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(HEAD)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hij,jhd->ihd", shares, v).reshape(len(tokens), WIDTH), "o")
        y = norm(x, at + names["mlp_norm"])
        gate = linear(y, "gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, "up"), "down")
    return norm(x, names["body"] + names["final"]) @ get(names["head"] + ".weight").T


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parents[1] / "tests/data/models/diffusion")
    options = parser.parse_args()
    for number, name in enumerate(CONFIGS):
        rng = np.random.default_rng(43 + number)
        folder = options.output / name
        folder.mkdir(parents=True, exist_ok=True)
        tensors = weights(name, rng)
        tokens = rng.integers(0, VOCABULARY, CANVAS)
        tokens[40:] = np.where(rng.random(CANVAS - 40) < 0.7, 46, tokens[40:])
        (folder / "config.json").write_text(json.dumps(CONFIGS[name], indent=1) + "\n")
        save_file(tensors, folder / "model.safetensors")
        golden = {}
        for length in (1, 29, CANVAS):                # a prompt, a canvas of one block of rows, one of two
            golden[f"tokens.{length}"] = tokens[:length].astype(np.int32)
            golden[f"logits.{length}"] = forward(name, tensors, tokens[:length]).astype(np.float32)
        save_file(golden, folder / "golden.safetensors")


if __name__ == "__main__":
    main()
