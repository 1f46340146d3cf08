#!/usr/bin/env python3
"""Makes the tiny random draft heads of tests/data/models/heads, and the model that they draft for.

`target` is a Llama of six layers in fp32. `eagle3`, `eagle3-training` and `eagle3-wide` are EAGLE-3 heads for it, in the two
spellings of their tensors, with fewer tokens than the model and with all of them; `medusa` and `medusa-blocks` are Medusa heads,
`hydra` is a Hydra head.
Each folder of a head has config.json, model.safetensors and golden.safetensors: for each prompt what this program, in double
precision, finds with the head: its logits behind the prompt's last token but one, and five draft steps. It is written from the
description of the heads, not from their code.

`cycle` is a model of sixteen tokens that writes them in turn, and `cycle-eagle3` and `cycle-medusa` are heads whose weights are
chosen such that every guess is right.

Usage: make_head_goldens.py [--output FOLDER]
Needs numpy and safetensors.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

VOCABULARY, WIDTH, INNER, LAYERS, HEADS, KV_HEADS = 130, 32, 40, 6, 4, 2
HEAD = WIDTH // HEADS
DRAFT = 70                                 # tokens of the smaller heads
STEPS = 5
EPSILON, THETA = 1e-5, 10000.0
HEAD_EPSILON, HEAD_THETA = 1e-6, 500000.0  # of the head's layer, which need not be the model's
PROMPTS = (2, 7, 40, 150)                  # tokens; the longest fills more than a block of rows
MISSING = -1e9                             # the logit of a token that a head lacks

TARGET = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": INNER,
    "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "hidden_act": "silu",
    "max_position_embeddings": 512, "rms_norm_eps": EPSILON, "rope_theta": THETA, "tie_word_embeddings": False,
    "vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2}
EAGLE = {
    "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": 48,
    "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": 1, "head_dim": 12, "hidden_act": "silu",
    "max_position_embeddings": 512, "rms_norm_eps": HEAD_EPSILON, "rope_theta": HEAD_THETA, "vocab_size": VOCABULARY,
    "draft_vocab_size": DRAFT}
# A head's folder: its kind, the layers that it reads, whether it adds to the normed state, whether it has all tokens, and how
# its tensors are named.
CASES = {
    "eagle3": dict(kind="eagle3", layers=None, normed=False, all_tokens=False, body="", layer="midlayer."),
    "eagle3-training": dict(kind="eagle3", layers=[0, 3, 5], normed=True, all_tokens=False, body="model.", layer="layers.0."),
    "eagle3-wide": dict(kind="eagle3", layers=[1, 2, 4], normed=False, all_tokens=True, body="", layer="layers.0."),
    "medusa": dict(kind="medusa", heads=3, blocks=1, names="plain"),
    "medusa-blocks": dict(kind="medusa", heads=2, blocks=2, names="blocks"),
    "hydra": dict(kind="hydra", heads=3, blocks=2),
}


class Tensors(dict):
    def __init__(self, seed):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def put(self, name, *shape, around=0.0, spread=0.3):
        self[name] = (around + spread * self.random.standard_normal(shape)).astype(np.float32)

    def wide(self, name):
        return self[name].astype(np.float64)


def norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def rotate(x, positions, theta):
    """x[position, head, element]"""
    half = x.shape[-1] // 2
    frequencies = (theta ** (-np.arange(half) / half)).astype(np.float32)
    angles = (np.asarray(positions, np.float32)[:, None] * frequencies).astype(np.float64)
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attention(q, k, v, group):
    """Of rows that see those before them. q[i, head, element]; k, v[j, kv head, element], the last len(q) of them the rows' own."""
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
    first = len(k) - len(q)
    scores = np.where(np.arange(len(k))[None, None, :] > first + np.arange(len(q))[None, :, None], -np.inf, scores)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", shares, v).reshape(len(q), -1)


def target_weights():
    out = Tensors(40)
    out.put("model.embed_tokens.weight", VOCABULARY, WIDTH, spread=1.0)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            out.put(at + name + ".weight", WIDTH, around=1.0)
        for part, rows, columns in (("self_attn.q_proj", WIDTH, WIDTH), ("self_attn.k_proj", KV_HEADS * HEAD, WIDTH),
                                    ("self_attn.v_proj", KV_HEADS * HEAD, WIDTH), ("self_attn.o_proj", WIDTH, WIDTH),
                                    ("mlp.gate_proj", INNER, WIDTH), ("mlp.up_proj", INNER, WIDTH), ("mlp.down_proj", WIDTH, INNER)):
            out.put(at + part + ".weight", rows, columns)
    out.put("model.norm.weight", WIDTH, around=1.0)
    out.put("lm_head.weight", VOCABULARY, WIDTH)
    return out


def run_target(weights, tokens):
    """The residual stream behind 0 .. LAYERS layers, and what the head of the model reads."""
    x = weights.wide("model.embed_tokens.weight")[tokens]
    states = [x]
    for layer in range(LAYERS):
        linear = lambda y, part: y @ weights.wide(f"model.layers.{layer}.{part}.weight").T
        y = norm(x, weights.wide(f"model.layers.{layer}.input_layernorm.weight"), EPSILON)
        q, k, v = (linear(y, f"self_attn.{part}_proj").reshape(len(tokens), -1, HEAD) for part in "qkv")
        positions = np.arange(len(tokens))
        y = attention(rotate(q, positions, THETA), rotate(k, positions, THETA), v, HEADS // KV_HEADS)
        x = x + linear(y, "self_attn.o_proj")
        y = norm(x, weights.wide(f"model.layers.{layer}.post_attention_layernorm.weight"), EPSILON)
        x = x + linear(silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"), "mlp.down_proj")
        states.append(x)
    return states, norm(x, weights.wide("model.norm.weight"), EPSILON)


def eagle_weights(case, seed):
    out = Tensors(seed)
    body, at = case["body"], case["body"] + case["layer"]
    rows = VOCABULARY if case["all_tokens"] else DRAFT
    out.put(body + "fc.weight", WIDTH, 3 * WIDTH, spread=0.2)
    for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
        out.put(at + name + ".weight", WIDTH, around=1.0)
    width = EAGLE["head_dim"]
    for part, outputs, inputs in (("self_attn.q_proj", HEADS * width, 2 * WIDTH), ("self_attn.k_proj", width, 2 * WIDTH),
                                  ("self_attn.v_proj", width, 2 * WIDTH), ("self_attn.o_proj", WIDTH, HEADS * width),
                                  ("mlp.gate_proj", 48, WIDTH), ("mlp.up_proj", 48, WIDTH), ("mlp.down_proj", WIDTH, 48)):
        out.put(at + part + ".weight", outputs, inputs)
    out.put(body + "norm.weight", WIDTH, around=1.0)
    out.put("lm_head.weight", rows, WIDTH)
    if not case["all_tokens"]:
        kept = np.sort(out.random.permutation(VOCABULARY)[:DRAFT])
        out["d2t"] = (kept - np.arange(DRAFT)).astype(np.int64)
        out["t2d"] = np.isin(np.arange(VOCABULARY), kept)
    if case["normed"]:
        out.put(body + "embed_tokens.weight", VOCABULARY, WIDTH, spread=1.0)
    return out


def spread(weights, logits):
    """The head's logits by the model's tokens."""
    if "d2t" not in weights:
        return logits
    out = np.full(VOCABULARY, MISSING)
    out[np.arange(len(logits)) + weights["d2t"]] = logits
    return out


def draft_with_eagle(case, weights, target, states, tokens):
    """Behind `tokens`, of which the model has run all but the last."""
    body, at = case["body"], case["body"] + case["layer"]
    layers = case["layers"] or [1, LAYERS // 2 - 1, LAYERS - 4]
    width = EAGLE["head_dim"]
    linear = lambda y, part: y @ weights.wide(at + part + ".weight").T
    embedding = weights if body + "embed_tokens.weight" in weights else target
    table = embedding.wide(body + "embed_tokens.weight" if embedding is weights else "model.embed_tokens.weight")
    taps = np.concatenate([states[layer + 1][:-1] for layer in layers], -1)
    g = list(taps @ weights.wide(body + "fc.weight").T)
    ahead, logits, guesses = list(tokens[1:]), [], []
    for step in range(STEPS):
        # The pair of token t + 1 and state t stands at t.
        state = np.array(g)
        normed = norm(state, weights.wide(at + "hidden_norm.weight"), HEAD_EPSILON)
        z = np.concatenate([norm(table[ahead], weights.wide(at + "input_layernorm.weight"), HEAD_EPSILON), normed], -1)
        q, k, v = (linear(z, f"self_attn.{part}_proj").reshape(len(z), -1, width) for part in "qkv")
        positions = np.arange(len(z))
        y = attention(rotate(q, positions, HEAD_THETA), rotate(k, positions, HEAD_THETA), v, HEADS)
        h = (normed if case["normed"] else state) + linear(y, "self_attn.o_proj")
        y = norm(h, weights.wide(at + "post_attention_layernorm.weight"), HEAD_EPSILON)
        out = h + linear(silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"), "mlp.down_proj")
        last = norm(out[-1], weights.wide(body + "norm.weight"), HEAD_EPSILON)
        logits.append(spread(weights, last @ weights.wide("lm_head.weight").T))
        guesses.append(int(np.argmax(logits[-1])))
        ahead.append(guesses[-1])
        g.append(out[-1])
    return logits, guesses


def medusa_names(case):
    step = lambda i, j: f"{i}.{j}.linear" if case["names"] == "plain" else f"blocks.{i}.layers.{j}"
    last = lambda i: f"{i}.{case['blocks']}.weight" if case["names"] == "plain" else f"lm_heads.{i}.weight"
    return step, last


def medusa_weights(case, seed):
    out = Tensors(seed)
    step, last = medusa_names(case)
    for i in range(case["heads"]):
        for j in range(case["blocks"]):
            out.put(step(i, j) + ".weight", WIDTH, WIDTH)
            out.put(step(i, j) + ".bias", WIDTH)
        out.put(last(i), VOCABULARY, WIDTH)
    return out


def draft_with_medusa(case, weights, final):
    step, last = medusa_names(case)
    logits = []
    for i in range(case["heads"]):
        x = final[-2]
        for j in range(case["blocks"]):
            x = x + silu(weights.wide(step(i, j) + ".weight") @ x + weights.wide(step(i, j) + ".bias"))
        logits.append(weights.wide(last(i)) @ x)
    return logits, [int(np.argmax(one)) for one in logits]


def hydra_weights(case, seed):
    out = Tensors(seed)
    layer = "prefix_embeding_layer.layers.0."
    out.put("prefix_embeding_layer.norm.weight", WIDTH, around=1.0)
    for name in ("input_layernorm", "post_attention_layernorm"):
        out.put(layer + name + ".weight", WIDTH, around=1.0)
    for part, rows, columns in (("self_attn.q_proj", WIDTH, WIDTH), ("self_attn.k_proj", KV_HEADS * HEAD, WIDTH),
                                ("self_attn.v_proj", KV_HEADS * HEAD, WIDTH), ("self_attn.o_proj", WIDTH, WIDTH),
                                ("mlp.gate_proj", INNER, WIDTH), ("mlp.up_proj", INNER, WIDTH), ("mlp.down_proj", WIDTH, INNER)):
        out.put(layer + part + ".weight", rows, columns)
    for i in range(case["heads"]):
        inputs = WIDTH * (i + 2)
        out.put(f"hydra_mlp.{i}.1.res_connection.weight", WIDTH, inputs)
        out.put(f"hydra_mlp.{i}.1.res_connection.bias", WIDTH)
        for j in range(case["blocks"]):  # the even numbers are dropouts
            out.put(f"hydra_mlp.{i}.{2 * j + 1}.linear.weight", WIDTH, inputs if j == 0 else WIDTH)
            out.put(f"hydra_mlp.{i}.{2 * j + 1}.linear.bias", WIDTH)
        out.put(f"hydra_lm_head.{i}.1.weight", VOCABULARY, WIDTH)
        out.put(f"hydra_lm_head.{i}.1.bias", VOCABULARY)
    return out


def draft_with_hydra(case, weights, target, final, tokens):
    """Each guess is an input of the next one."""
    linear = lambda y, part: y @ weights.wide(f"prefix_embeding_layer.layers.0.{part}.weight").T
    x = final[:-1]
    y = norm(x, weights.wide("prefix_embeding_layer.layers.0.input_layernorm.weight"), EPSILON)
    q, k, v = (linear(y, f"self_attn.{part}_proj").reshape(len(x), -1, HEAD) for part in "qkv")
    positions = np.arange(len(x))
    x = x + linear(attention(rotate(q, positions, THETA), rotate(k, positions, THETA), v, HEADS // KV_HEADS), "self_attn.o_proj")
    y = norm(x, weights.wide("prefix_embeding_layer.layers.0.post_attention_layernorm.weight"), EPSILON)
    x = x + linear(silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"), "mlp.down_proj")
    prefix = norm(x, weights.wide("prefix_embeding_layer.norm.weight"), EPSILON)[-1]
    table, ahead, logits = target.wide("model.embed_tokens.weight"), [int(tokens[-1])], []
    for i in range(case["heads"]):
        z = np.concatenate([prefix] + [table[token] for token in ahead])
        affine = lambda name, y: weights.wide(f"hydra_{name}.weight") @ y + weights.wide(f"hydra_{name}.bias")
        block = lambda j, y: silu(affine(f"mlp.{i}.{2 * j + 1}.linear", y))
        x = affine(f"mlp.{i}.1.res_connection", z) + block(0, z)
        for j in range(1, case["blocks"]):
            x = x + block(j, x)
        logits.append(affine(f"lm_head.{i}.1", x))
        ahead.append(int(np.argmax(logits[-1])))
    return logits, ahead[1:]


# ---- A model that counts, and heads that count with it ----

LETTERS = 16


def successor(steps):
    out = np.zeros((LETTERS, WIDTH), np.float32)
    out[(np.arange(LETTERS) + steps) % LETTERS, np.arange(LETTERS)] = 1
    return out


def cycle_target():
    """Layers that add nothing: the state of a token says which one it is."""
    out = {name: np.zeros_like(tensor) for name, tensor in target_weights().items()}
    out["model.embed_tokens.weight"] = np.eye(LETTERS, WIDTH, dtype=np.float32)
    out["lm_head.weight"] = successor(1)
    out["model.norm.weight"] = np.ones(WIDTH, np.float32)
    return {**TARGET, "vocab_size": LETTERS, "eos_token_id": None, "bos_token_id": None}, out


def cycle_eagle():
    """Each pair sees itself; what it takes from there is its token less the state in front of it, so that the two add up to the
    token."""
    one = np.eye(WIDTH, dtype=np.float32)
    none, sharp = np.zeros((WIDTH, WIDTH), np.float32), np.concatenate([one * 3, one * 0], 1)
    out = {"fc.weight": np.zeros((WIDTH, 3 * WIDTH), np.float32), "norm.weight": np.ones(WIDTH, np.float32),
           "lm_head.weight": successor(1), "midlayer.self_attn.q_proj.weight": sharp, "midlayer.self_attn.k_proj.weight": sharp.copy(),
           "midlayer.self_attn.v_proj.weight": np.concatenate([one, -one], 1), "midlayer.self_attn.o_proj.weight": one}
    for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
        out[f"midlayer.{name}.weight"] = np.ones(WIDTH, np.float32)
    for name in ("gate", "up", "down"):
        out[f"midlayer.mlp.{name}_proj.weight"] = none.copy()
    config = {**EAGLE, "intermediate_size": WIDTH, "num_attention_heads": 1, "head_dim": WIDTH, "vocab_size": LETTERS,
              "draft_vocab_size": LETTERS}
    return config, out


def cycle_medusa():
    out = {}
    for i in range(3):
        out[f"{i}.0.linear.weight"], out[f"{i}.0.linear.bias"] = np.zeros((WIDTH, WIDTH), np.float32), np.zeros(WIDTH, np.float32)
        out[f"{i}.1.weight"] = successor(i + 2)
    return {"medusa_num_heads": 3, "medusa_num_layers": 1}, out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parents[1] / "tests/data/models/heads")
    options = parser.parse_args()
    target = target_weights()

    def write(name, config, tensors):
        folder = options.output / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        save_file(dict(tensors), folder / "model.safetensors")
        return folder

    write("target", TARGET, target)
    for name, make in (("cycle", cycle_target), ("cycle-eagle3", cycle_eagle), ("cycle-medusa", cycle_medusa)):
        write(name, *make())
    for number, (name, case) in enumerate(CASES.items()):
        if case["kind"] == "eagle3":
            config = dict(EAGLE)
            if case["layers"]:
                config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": case["layers"]}
            if case["normed"]:
                config["norm_before_residual"] = True
            if case["all_tokens"]:
                config["draft_vocab_size"] = VOCABULARY
            weights = eagle_weights(case, 400 + number)
        elif case["kind"] == "hydra":
            config = {"hydra_num_heads": case["heads"], "hydra_num_layers": case["blocks"], "grounded_heads": True}
            weights = hydra_weights(case, 400 + number)
        else:
            config = {"medusa_num_heads": case["heads"], "medusa_num_layers": case["blocks"], "base_model_name_or_path": "target"}
            if case["names"] == "blocks":
                config = {"architectures": ["MedusaModel"], "num_heads": case["heads"], "num_hidden_layers": case["blocks"],
                          "hidden_size": WIDTH, "vocab_size": VOCABULARY}
            weights = medusa_weights(case, 400 + number)
        folder = write(name, config, weights)
        golden, random = {}, np.random.default_rng(number)
        for length in PROMPTS:
            tokens = random.integers(3, VOCABULARY, length)
            states, final = run_target(target, tokens)
            logits, guesses = (draft_with_eagle(case, weights, target, states, tokens) if case["kind"] == "eagle3"
                               else draft_with_medusa(case, weights, final) if case["kind"] == "medusa"
                               else draft_with_hydra(case, weights, target, final, tokens))
            golden[f"tokens.{length}"] = tokens.astype(np.int64)
            golden[f"logits.{length}"] = np.array(logits, np.float32)
            golden[f"guesses.{length}"] = np.array(guesses, np.int64)
        save_file(golden, folder / "golden.safetensors")


if __name__ == "__main__":
    main()
