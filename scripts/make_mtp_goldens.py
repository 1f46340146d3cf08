#!/usr/bin/env python3
"""Makes the tiny models of tests/data/models/mtp: models of tests/data/models/families in fp32, with a random block that guesses
the token behind the next one.

Each folder has config.json, model.safetensors and golden.safetensors: for each prompt what this program, in double precision, finds
with the block: its logits behind the prompt's last token but one, and five draft steps. The block's code is written from its
description; the model's last states, which it reads, are those of `transformers`. Two of them also have model.gguf, which is that of
the family with the block as one layer more.

Usage: make_mtp_goldens.py [--output FOLDER]
Needs numpy, torch, transformers, safetensors and gguf.
"""

import argparse
import json
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

MODELS = Path(__file__).resolve().parents[1] / "tests/data/models"
CASES = {"qwen3_5": "qwen3_5-fp32-untied", "qwen3_5_moe": "qwen3_5_moe-bf16", "glm4_moe_lite": "glm4_moe_lite-bf16",
         "qwen3_next": "qwen3_next-bf16"}
WITH_GGUF = ("qwen3_5", "glm4_moe_lite")
STEPS = 5
PROMPTS = (2, 7, 40, 150)  # tokens; the longest fills more than a block of rows


def norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def angles(positions, width, theta):
    frequencies = (theta ** (-np.arange(width // 2) / (width // 2))).astype(np.float32)
    return (np.asarray(positions, np.float32)[:, None] * frequencies).astype(np.float64)[:, None, :]


def rotate_halves(x, positions, width, theta):
    """x[position, head, element]: the first `width` elements, the halves of which are the pairs."""
    at, half = angles(positions, width, theta), width // 2
    a, b = x[..., :half], x[..., half:width]
    return np.concatenate([a * np.cos(at) - b * np.sin(at), b * np.cos(at) + a * np.sin(at), x[..., width:]], -1)


def rotate_neighbours(x, positions, theta):
    at = angles(positions, x.shape[-1], theta)
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * np.cos(at) - b * np.sin(at), b * np.cos(at) + a * np.sin(at)], -1).reshape(x.shape)


def attention(q, k, v):
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(np.arange(len(k))[None, None, :] > np.arange(len(q))[None, :, None], -np.inf, scores)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,jhd->ihd", shares / shares.sum(-1, keepdims=True), v)


class Block:
    """The tensors of a block, and what it computes. `at`: in front of the names of its layer."""

    def __init__(self, config, seed):
        self.config, self.random, self.tensors = config, np.random.default_rng(seed), {}
        self.width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.qwen = config["model_type"].startswith("qwen")
        self.at = "mtp.layers.0." if self.qwen else f"model.layers.{config['num_hidden_layers']}."
        self.epsilon, self.theta = config["rms_norm_eps"], config["rope_parameters"]["rope_theta"]
        fc, embedded, before, last = (("mtp.fc", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm") if self.qwen else
                                      [self.at + name for name in ("eh_proj", "enorm", "hnorm", "shared_head.norm")])
        self.fc, self.embedded, self.before, self.last = fc, embedded, before, last
        self.put(fc, self.width, 2 * self.width, spread=0.2)
        for name in (embedded, before, last, self.at + "input_layernorm", self.at + "post_attention_layernorm"):
            self.put_norm(name, self.width)
        if self.qwen:
            self.put_gated()
        else:
            self.put_latent()
            self.put(self.at + "shared_head.head", config["vocab_size"], self.width)
        if "moe_intermediate_size" in config:
            self.put_experts()
        else:
            self.put_mlp("mlp.", config["intermediate_size"])

    def put(self, name, *shape, around=0.0, spread=0.3):
        self.tensors[name + ".weight"] = (around + spread * self.random.standard_normal(shape)).astype(np.float32)

    def put_norm(self, name, size):
        self.put(name, size, around=0.0 if self.qwen else 1.0)

    def put_mlp(self, part, inner):
        for name, rows, columns in (("gate", inner, self.width), ("up", inner, self.width), ("down", self.width, inner)):
            self.put(f"{self.at}{part}{name}_proj", rows, columns)

    def put_gated(self):
        head, own = self.config["head_dim"], self.at + "self_attn."
        for name, rows in (("q", 2 * self.heads * head), ("k", self.config["num_key_value_heads"] * head),
                           ("v", self.config["num_key_value_heads"] * head)):
            self.put(f"{own}{name}_proj", rows, self.width)
        self.put(own + "o_proj", self.width, self.heads * head)
        for name in "qk":
            self.put_norm(f"{own}{name}_norm", head)

    def put_latent(self):
        c, own = self.config, self.at + "self_attn."
        self.put(own + "q_a_proj", c["q_lora_rank"], self.width)
        self.put_norm(own + "q_a_layernorm", c["q_lora_rank"])
        self.put(own + "q_b_proj", self.heads * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"]), c["q_lora_rank"])
        self.put(own + "kv_a_proj_with_mqa", c["kv_lora_rank"] + c["qk_rope_head_dim"], self.width)
        self.put_norm(own + "kv_a_layernorm", c["kv_lora_rank"])
        self.put(own + "kv_b_proj", self.heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), c["kv_lora_rank"])
        self.put(own + "o_proj", self.width, self.heads * c["v_head_dim"])

    def put_experts(self):
        c = self.config
        self.count = c.get("num_experts", c.get("n_routed_experts"))
        self.put(self.at + "mlp.gate", self.count, self.width)
        for expert in range(self.count):
            self.put_mlp(f"mlp.experts.{expert}.", c["moe_intermediate_size"])
        if self.qwen:
            self.put_mlp("mlp.shared_expert.", c["shared_expert_intermediate_size"])
            self.put(self.at + "mlp.shared_expert_gate", 1, self.width)
        else:
            self.put_mlp("mlp.shared_experts.", c["moe_intermediate_size"] * c["n_shared_experts"])
            self.tensors[self.at + "mlp.gate.e_score_correction_bias"] = (
                0.1 * self.random.standard_normal(self.count)).astype(np.float32)

    def get(self, name):
        return self.tensors[name + ".weight"].astype(np.float64)

    def norm(self, name, x, epsilon=None):
        return norm(x, self.get(name) + (1 if self.qwen else 0), epsilon or self.epsilon)

    def linear(self, part, x):
        return x @ self.get(self.at + part).T

    def mlp(self, part, x):
        return self.linear(part + "down_proj", silu(self.linear(part + "gate_proj", x)) * self.linear(part + "up_proj", x))

    def feed_forward(self, x):
        if "moe_intermediate_size" not in self.config:
            return self.mlp("mlp.", x)
        scores = self.linear("mlp.gate", x)
        if self.qwen:
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            out, compared = sigmoid(self.linear("mlp.shared_expert_gate", x)) * self.mlp("mlp.shared_expert.", x), scores
        else:
            scores = sigmoid(scores)
            out = self.mlp("mlp.shared_experts.", x)
            compared = scores + self.tensors[self.at + "mlp.gate.e_score_correction_bias"]
        for row in range(len(x)):
            chosen = np.argsort(-compared[row])[:self.config["num_experts_per_tok"]]
            shares = scores[row][chosen] / scores[row][chosen].sum() * self.config.get("routed_scaling_factor", 1.0)
            for expert, share in zip(chosen, shares):
                out[row] += share * self.mlp(f"mlp.experts.{expert}.", x[row])
        return out

    def mix(self, x):
        positions = np.arange(len(x))
        if self.qwen:
            head = self.config["head_dim"]
            turned = int(head * self.config["rope_parameters"]["partial_rotary_factor"])
            both = self.linear("self_attn.q_proj", x).reshape(len(x), self.heads, 2 * head)
            q, gates = both[..., :head], both[..., head:]
            k, v = (self.linear(f"self_attn.{name}_proj", x).reshape(len(x), -1, head) for name in "kv")
            q, k = (rotate_halves(self.norm(f"{self.at}self_attn.{name}_norm", y), positions, turned, self.theta)
                    for name, y in (("q", q), ("k", k)))
            group = self.heads // k.shape[1]
            y = attention(q, np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)) * sigmoid(gates)
            return self.linear("self_attn.o_proj", y.reshape(len(x), -1))
        c = self.config
        plain, rank = c["qk_nope_head_dim"], c["kv_lora_rank"]
        own = self.at + "self_attn."
        q = self.linear("self_attn.q_b_proj", self.norm(own + "q_a_layernorm", self.linear("self_attn.q_a_proj", x), 1e-6))
        q = q.reshape(len(x), self.heads, -1)
        packed = self.linear("self_attn.kv_a_proj_with_mqa", x)
        both = self.linear("self_attn.kv_b_proj", self.norm(own + "kv_a_layernorm", packed[:, :rank], 1e-6))
        both = both.reshape(len(x), self.heads, -1)
        turned = rotate_neighbours(packed[:, None, rank:], positions, self.theta)
        k = np.concatenate([both[..., :plain], np.repeat(turned, self.heads, axis=1)], -1)
        q = np.concatenate([q[..., :plain], rotate_neighbours(q[..., plain:], positions, self.theta)], -1)
        return self.linear("self_attn.o_proj", attention(q, k, both[..., plain:]).reshape(len(x), -1))

    def draft(self, target, final, tokens):
        """Behind `tokens`, of which the model has run all but the last; `final`: what its head reads."""
        table = target["model.embed_tokens.weight"].astype(np.float64)
        head = self.tensors.get(self.at + "shared_head.head.weight", target.get("lm_head.weight", table)).astype(np.float64)
        states, ahead, logits, guesses = list(final[:-1]), list(tokens[1:]), [], []
        for _ in range(STEPS):
            pairs = np.concatenate([self.norm(self.embedded, table[ahead]), self.norm(self.before, np.array(states))], -1)
            x = pairs @ self.get(self.fc).T
            x = x + self.mix(self.norm(self.at + "input_layernorm", x))
            x = x + self.feed_forward(self.norm(self.at + "post_attention_layernorm", x))
            last = self.norm(self.last, x[-1])
            states.append(last if self.qwen else x[-1])
            logits.append(head @ last)
            guesses.append(int(np.argmax(logits[-1])))
            ahead.append(guesses[-1])
        return logits, guesses


def gguf_tensors(block, number):
    """The block's tensors as the layer `number` of a GGUF file."""
    names = {"mtp.fc": "nextn.eh_proj", "mtp.pre_fc_norm_embedding": "nextn.enorm", "mtp.pre_fc_norm_hidden": "nextn.hnorm",
             "mtp.norm": "nextn.shared_head_norm", "eh_proj": "nextn.eh_proj", "enorm": "nextn.enorm", "hnorm": "nextn.hnorm",
             "shared_head.norm": "nextn.shared_head_norm", "shared_head.head": "nextn.shared_head_head",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm" if block.qwen else "ffn_norm",
             **{f"self_attn.{one}_proj": f"attn_{one}" for one in "qkv"}, "self_attn.o_proj": "attn_output",
             **{f"self_attn.{one}_norm": f"attn_{one}_norm" for one in "qk"},
             "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
             "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
             "mlp.gate": "ffn_gate_inp", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
             **{f"mlp.{one}_proj": f"ffn_{one}" for one in ("gate", "up", "down")},
             **{f"mlp.shared_experts.{one}_proj": f"ffn_{one}_shexp" for one in ("gate", "up", "down")}}
    out, experts = {}, {}
    for name, tensor in block.tensors.items():
        role = name.removeprefix(block.at).removesuffix(".weight")
        if role == "self_attn.kv_b_proj":
            plain = block.config["qk_nope_head_dim"]
            both = tensor.reshape(block.heads, -1, tensor.shape[1])
            out["attn_k_b.weight"] = np.ascontiguousarray(both[:, :plain].transpose(0, 2, 1))
            out["attn_v_b.weight"] = np.ascontiguousarray(both[:, plain:])
        elif role.startswith("mlp.experts."):
            experts.setdefault(role.split(".")[3].removesuffix("_proj"), []).append(tensor)
        else:
            normed = block.qwen and tensor.ndim == 1
            out[names[role] + ("" if role.endswith("bias") else ".weight")] = tensor + 1 if normed else tensor
    out.update({f"ffn_{one}_exps.weight": np.stack(tensors) for one, tensors in experts.items()})
    return {f"blk.{number}.{role}": tensor for role, tensor in out.items()}


def write_gguf(source, block, out):
    """The file of the family with the block as its last layer."""
    reader = gguf.GGUFReader(source)
    kind = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(out, kind)
    layers = int(reader.fields[kind + ".block_count"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", kind + ".nextn_predict_layers"):
            continue
        value = field.contents() + 1 if name == kind + ".block_count" else field.contents()
        writer.add_key_value(name, value, field.types[0], sub_type=field.types[1] if len(field.types) > 1 else None)
    writer.add_uint32(kind + ".nextn_predict_layers", 1)
    for tensor in reader.tensors:
        shape = [int(extent) for extent in reversed(tensor.shape)]
        plain = tensor.tensor_type in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16)
        writer.add_tensor(tensor.name, tensor.data if plain else np.asarray(tensor.data),
                          raw_shape=shape if plain else None, raw_dtype=tensor.tensor_type)
    for name, tensor in gguf_tensors(block, layers).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=MODELS / "mtp")
    options = parser.parse_args()
    for number, (name, family) in enumerate(CASES.items()):
        source, folder = MODELS / "families" / family, options.output / name
        folder.mkdir(parents=True, exist_ok=True)
        config = json.loads((source / "config.json").read_text())
        target = {key: value.float().numpy() for key, value in load_file(source / "model.safetensors").items()}
        block = Block(config, 500 + number)
        config["mtp_num_hidden_layers" if block.qwen else "num_nextn_predict_layers"] = 1
        config["dtype"] = "float32"
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        save_file({**target, **block.tensors}, folder / "model.safetensors")
        if name in WITH_GGUF:
            write_gguf(source / "model.gguf", block, folder / "model.gguf")
        model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float64, experts_implementation="eager").eval()
        golden, random = {}, np.random.default_rng(number)
        for length in PROMPTS:
            tokens = random.integers(3, config["vocab_size"], length)
            with torch.no_grad():
                final = model.model(torch.from_numpy(tokens)[None]).last_hidden_state[0].double().numpy()
            logits, guesses = block.draft(target, final, tokens)
            golden[f"tokens.{length}"] = tokens.astype(np.int64)
            golden[f"logits.{length}"] = np.array(logits, np.float32)
            golden[f"guesses.{length}"] = np.array(guesses, np.int64)
        save_file(golden, folder / "golden.safetensors")
        print(name, {key: value.tolist() for key, value in golden.items() if key.startswith("guesses")})


if __name__ == "__main__":
    main()
