#!/usr/bin/env python3
"""The Llama forward pass once more, in numpy and double precision, from the papers' formulas alone:
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


def rope_frequencies(config, head_dim):
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    frequencies = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "linear":
        return frequencies / rope["factor"]
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
        return np.array(out)
    assert kind == "default", kind
    return frequencies


class Model:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = {}
        for path in sorted(folder.glob("model*.safetensors")):
            self.weights.update(read_safetensors(path))
        c = self.config
        self.heads = c["num_attention_heads"]
        self.kv_heads = c.get("num_key_value_heads") or self.heads
        self.head_dim = c.get("head_dim") or c["hidden_size"] // self.heads
        self.frequencies = rope_frequencies(c, self.head_dim)

    def linear(self, x, name):
        y = x @ self.weights[name + ".weight"].T
        return y + self.weights[name + ".bias"] if name + ".bias" in self.weights else y

    def norm(self, x, name):
        scale = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.config["rms_norm_eps"])
        return x / scale * self.weights[name + ".weight"]

    def rotate(self, x):
        """x[head, position, head_dim]: elements i and i + head_dim/2 are one complex number."""
        half = self.head_dim // 2
        angles = np.arange(x.shape[1])[:, None] * self.frequencies
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
        return np.concatenate([turned.real, turned.imag], axis=-1)

    def attention(self, x, prefix):
        n = x.shape[0]
        split = lambda y, heads: y.reshape(n, heads, self.head_dim).transpose(1, 0, 2)
        q = self.rotate(split(self.linear(x, prefix + "q_proj"), self.heads))
        k = self.rotate(split(self.linear(x, prefix + "k_proj"), self.kv_heads))
        v = split(self.linear(x, prefix + "v_proj"), self.kv_heads)
        out = np.empty_like(q)
        for head in range(self.heads):
            group = head // (self.heads // self.kv_heads)
            scores = q[head] @ k[group].T / np.sqrt(self.head_dim)
            scores[np.triu_indices(n, 1)] = -np.inf
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            out[head] = weights / weights.sum(axis=-1, keepdims=True) @ v[group]
        return self.linear(out.transpose(1, 0, 2).reshape(n, -1), prefix + "o_proj")

    def mlp(self, x, prefix):
        gate = self.linear(x, prefix + "gate_proj")
        inner = gate / (1 + np.exp(-gate)) * self.linear(x, prefix + "up_proj")
        return self.linear(inner, prefix + "down_proj")

    def logits(self, tokens):
        x = self.weights["model.embed_tokens.weight"][tokens]
        for i in range(self.config["num_hidden_layers"]):
            layer = f"model.layers.{i}."
            x = x + self.attention(self.norm(x, layer + "input_layernorm"), layer + "self_attn.")
            x = x + self.mlp(self.norm(x, layer + "post_attention_layernorm"), layer + "mlp.")
        head = "model.embed_tokens" if self.config.get("tie_word_embeddings") else "lm_head"
        return self.norm(x, "model.norm") @ self.weights[head + ".weight"].T


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
