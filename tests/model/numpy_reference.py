#!/usr/bin/env python3
"""The forward pass once more, in numpy and double precision, from the papers' formulas alone:
no torch, no transformers, no safetensors package. Re-derives the golden logits and greedy
continuations of tests/data/models, so that two independent programs have to agree before the C++
one is compared with either.

Usage: numpy_reference.py FOLDER...
Exit status 0: all agree; 1: some do not; 77: numpy is not installed.
"""

import json
import struct
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed")
    sys.exit(77)

BOUND = 1e-5  # the goldens are fp32
DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8"}


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = np.frombuffer(raw[begin:end], DTYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":  # the upper half of an fp32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        if entry["dtype"] != "I64":
            values = values.astype(np.float64)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def rope_settings(config, sliding):
    """The settings of one kind of layer, in either spelling, with theta filled in."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = config.get("rope_theta", 10000.0)
    if config["model_type"] == "gemma3_text":
        nested = config.get("rope_parameters") or {}
        if sliding:
            rope = nested.get("sliding_attention") or {}
            theta = config.get("rope_local_base_freq", 10000.0)
        else:
            rope = nested.get("full_attention") or config.get("rope_scaling") or {}
            theta = config.get("rope_theta", 1000000.0)
    return {"rope_theta": theta, **rope}


def rope_angles(config, head_dim, rope, positions):
    """Angles[position, head_dim / 2], and the factor of cosines and sines."""
    theta = rope["rope_theta"]
    steps = np.arange(0, head_dim, 2) / head_dim
    frequencies = theta ** -steps
    position = np.arange(positions)[:, None]
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "linear":
        return position * frequencies / rope["factor"], 1.0
    if kind == "dynamic":  # each position with the base of a context that ends there
        context, factor = config["max_position_embeddings"], rope["factor"]
        length = np.maximum(position + 1, context)
        base = theta * (factor * length / context - (factor - 1)) ** (head_dim / (head_dim - 2))
        return position * base**-steps, 1.0
    if kind == "llama3":
        out = []
        for f in frequencies:
            wavelength = 2 * np.pi / f
            old, low, high = (rope[k] for k in (
                "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
            if wavelength < old / high:
                out.append(f)
            elif wavelength > old / low:
                out.append(f / rope["factor"])
            else:
                smooth = (old / wavelength - low) / (high - low)
                out.append((1 - smooth) * f / rope["factor"] + smooth * f)
        return position * np.array(out), 1.0
    if kind == "yarn":
        old = rope["original_max_position_embeddings"]
        bounds = [head_dim * np.log(old / (2 * np.pi * turns)) / (2 * np.log(theta))
                  for turns in (rope.get("beta_fast", 32), rope.get("beta_slow", 1))]
        if rope.get("truncate", True):
            bounds = [np.floor(bounds[0]), np.ceil(bounds[1])]
        low, high = max(bounds[0], 0), min(bounds[1], head_dim - 1)
        ramp = np.clip((np.arange(head_dim // 2) - low) / (high - low), 0, 1)
        mixed = frequencies / rope["factor"] * ramp + frequencies * (1 - ramp)
        return position * mixed, rope.get("attention_factor") or 0.1 * np.log(rope["factor"]) + 1
    assert kind == "default", kind
    return position * frequencies, 1.0


def sliding_layers(config):
    layers = config["num_hidden_layers"]
    kind = config["model_type"]
    if kind == "mistral":
        return [config["sliding_window"] is not None] * layers
    if "layer_types" in config:
        return [t == "sliding_attention" for t in config["layer_types"]]
    if kind in ("qwen2", "qwen3") and config["use_sliding_window"]:
        return [i >= config["max_window_layers"] for i in range(layers)]
    if kind == "gemma3_text":
        return [(i + 1) % config["sliding_window_pattern"] != 0 for i in range(layers)]
    return [False] * layers


class Model:
    def __init__(self, folder, weights=None):
        """`weights`: by name; otherwise those of the folder."""
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = dict(weights or {})
        for path in sorted(folder.glob("model*.safetensors")) if weights is None else ():
            self.weights.update(read_safetensors(path))
        c = self.config
        self.heads = c["num_attention_heads"]
        self.kv_heads = c.get("num_key_value_heads") or self.heads
        self.head_dim = c.get("head_dim") or c["hidden_size"] // self.heads
        self.gemma = c["model_type"].startswith("gemma")
        self.sliding = sliding_layers(c)

    def linear(self, x, name):
        y = x @ self.weights[name + ".weight"].T
        return y + self.weights[name + ".bias"] if name + ".bias" in self.weights else y

    def norm(self, x, name):
        scale = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.config["rms_norm_eps"])
        return x / scale * (self.weights[name + ".weight"] + (1 if self.gemma else 0))

    def rotate(self, x, sliding):
        """x[head, position, head_dim]: elements i and i + head_dim/2 are one complex number."""
        half = self.head_dim // 2
        rope = rope_settings(self.config, sliding)
        angles, factor = rope_angles(self.config, self.head_dim, rope, x.shape[1])
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles) * factor
        return np.concatenate([turned.real, turned.imag], axis=-1)

    def attention(self, x, prefix, sliding):
        n = x.shape[0]
        c = self.config

        def heads(name, count):
            y = self.linear(x, prefix + name + "_proj").reshape(n, count, self.head_dim)
            if name != "v" and prefix + name + "_norm.weight" in self.weights:
                y = self.norm(y, prefix + name + "_norm")
            return y.transpose(1, 0, 2)

        q = self.rotate(heads("q", self.heads), sliding)
        k = self.rotate(heads("k", self.kv_heads), sliding)
        v = heads("v", self.kv_heads)
        scale = (c["query_pre_attn_scalar"] if self.gemma else self.head_dim) ** -0.5
        cap = c.get("attn_logit_softcapping")
        hidden = np.triu(np.ones((n, n), bool), 1)
        if sliding:
            hidden |= np.tril(np.ones((n, n), bool), -c["sliding_window"])
        out = np.empty_like(q)
        for head in range(self.heads):
            group = head // (self.heads // self.kv_heads)
            scores = q[head] @ k[group].T * scale
            if cap:
                scores = cap * np.tanh(scores / cap)
            scores[hidden] = -np.inf
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            out[head] = weights / weights.sum(axis=-1, keepdims=True) @ v[group]
        return self.linear(out.transpose(1, 0, 2).reshape(n, -1), prefix + "o_proj")

    def mlp(self, x, prefix):
        gate = self.linear(x, prefix + "gate_proj")
        if self.gemma:
            gate = gate / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        inner = gate * self.linear(x, prefix + "up_proj")
        return self.linear(inner, prefix + "down_proj")

    def logits(self, tokens):
        x = self.weights["model.embed_tokens.weight"][tokens]
        if self.gemma:
            x = x * np.sqrt(self.config["hidden_size"])
        for i in range(self.config["num_hidden_layers"]):
            layer = f"model.layers.{i}."
            y = self.attention(
                self.norm(x, layer + "input_layernorm"), layer + "self_attn.", self.sliding[i])
            if self.gemma:
                x = x + self.norm(y, layer + "post_attention_layernorm")
                y = self.mlp(self.norm(x, layer + "pre_feedforward_layernorm"), layer + "mlp.")
                x = x + self.norm(y, layer + "post_feedforward_layernorm")
            else:
                x = x + y
                x = x + self.mlp(self.norm(x, layer + "post_attention_layernorm"), layer + "mlp.")
        head = "model.embed_tokens" if self.config.get("tie_word_embeddings") else "lm_head"
        logits = self.norm(x, "model.norm") @ self.weights[head + ".weight"].T
        cap = self.config.get("final_logit_softcapping")
        return cap * np.tanh(logits / cap) if cap else logits


def check(folder):
    model = Model(folder)
    golden = read_safetensors(folder / "golden.safetensors")
    worst, equal, prompts = 0.0, True, 0
    while f"prompt.{prompts}" in golden:
        text = list(golden[f"prompt.{prompts}"])
        got, expected = model.logits(text), golden[f"logits.{prompts}"]
        errors = np.linalg.norm(got - expected, axis=1) / np.linalg.norm(expected, axis=1)
        worst = max(worst, errors.max())
        continuation = list(golden[f"greedy.{prompts}"])
        # Causal: one pass over prompt and continuation shows every choice.
        choices = model.logits(text + continuation)[len(text) - 1 : -1].argmax(axis=1)
        equal = equal and list(choices) == continuation
        prompts += 1
    good = prompts > 0 and worst < BOUND and equal
    print(f"{folder.name}: {prompts} prompts, relative error of logits {worst:.1e} "
          f"(bound {BOUND:.0e}), continuations {'equal' if equal else 'DIFFER'}: "
          f"{'ok' if good else 'FAILED'}")
    return good


if __name__ == "__main__":
    results = [check(Path(folder)) for folder in sys.argv[1:]]
    sys.exit(0 if results and all(results) else 1)
