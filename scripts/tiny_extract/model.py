"""The tiny Llama-shaped network: training forward pass, cached decoding, and export in the Hugging Face layout.

The parameter names and the rotate-half position convention are those of `LlamaForCausalLM`, so an exported folder
loads there without conversion. Training runs the position-wise parts on a flat (tokens, width) matrix: with a fixed
number of tokens per step the compiler sees one shape only, whatever the sequence length of the batch is.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    width: int = 192
    layers: int = 4
    heads: int = 4
    inner: int = 384
    vocabulary: int = 2048
    context: int = 1024
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def rope_tables(config: Config, length: int):
    half = config.head_width // 2
    inverse = config.rope_theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.arange(length, dtype=torch.float32)[:, None] * inverse[None, :]
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rms_norm(x, weight, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos + turned * sin


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        width, inner = config.width, config.inner
        self.config = config
        self.input_layernorm = nn.Parameter(torch.ones(width))
        self.post_attention_layernorm = nn.Parameter(torch.ones(width))
        deviation = 1 / math.sqrt(width)
        # q, k and v in one matrix, gate and up in one: fewer, larger products.
        self.qkv = nn.Parameter(torch.randn(3 * width, width) * deviation)
        self.out = nn.Parameter(torch.randn(width, width) * deviation / math.sqrt(2 * config.layers))
        self.gate_up = nn.Parameter(torch.randn(2 * inner, width) * deviation)
        self.down = nn.Parameter(torch.randn(width, inner) / math.sqrt(inner) / math.sqrt(2 * config.layers))


def attention_inputs(x, norm, qkv, cos, sin, heads: int, eps: float, dtype: torch.dtype):
    """Flat (N, width) residual -> rotated q, k and v, each (N, heads, head_width)."""
    h = rms_norm(x, norm, eps).to(dtype)
    q, k, v = F.linear(h, qkv.to(dtype)).view(x.shape[0], 3, heads, -1).unbind(1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return rotate(q.float(), cos, sin).to(dtype), rotate(k.float(), cos, sin).to(dtype), v


def attend(q, k, v, visible):
    """Plain attention: on this scale two batched products and a softmax beat the fused CPU kernel."""
    scores = torch.matmul(q, k.transpose(-1, -2)).float() * (q.shape[-1] ** -0.5)
    scores = torch.where(visible, scores, -1e9)
    return torch.matmul(torch.softmax(scores, -1).to(v.dtype), v)


def attend_fused(q, k, v, visible):
    """The same in one kernel, which is faster on a device."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)


def after_attention(x, attended, out, norm, gate_up, down, eps: float, dtype: torch.dtype):
    x = x + F.linear(attended.reshape(x.shape[0], -1), out.to(dtype)).float()
    h = rms_norm(x, norm, eps).to(dtype)
    gate, up = F.linear(h, gate_up.to(dtype)).chunk(2, dim=-1)
    return x + F.linear(F.silu(gate) * up, down.to(dtype)).float()


class TinyLlama(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embed = nn.Parameter(torch.randn(config.vocabulary, config.width) * 0.05)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.width))
        cos, sin = rope_tables(config, config.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.attention_inputs, self.after_attention, self.attend = attention_inputs, after_attention, attend
        self.after_attention_some = after_attention
        self.both_sides = False
        self.dtype_inside = torch.float32

    def compile_parts(self):
        self.attention_inputs = torch.compile(attention_inputs, dynamic=False)
        self.after_attention = torch.compile(after_attention, dynamic=False)
        self.after_attention_some = torch.compile(after_attention, dynamic=True)
        self.attend = torch.compile(attend, dynamic=False)

    def hidden(self, ids, chosen=None, places=None, parts=None):
        """ids (B, T) -> final normed residual (B*T, width), or only its rows `chosen`.

        `places` are positions and `parts` part numbers: a token sees earlier tokens of part 0 (the prompt) and of its own part.
        With `both_sides` it sees all tokens of part 0.
        """
        config, dtype = self.config, self.dtype_inside
        batch, length = ids.shape
        flat = torch.arange(length).repeat(batch) if places is None else places.reshape(-1)
        cos, sin = self.cos[flat], self.sin[flat]
        visible = torch.ones(length, length, dtype=torch.bool).tril().expand(batch, 1, length, length)
        if self.both_sides:
            keys = torch.zeros_like(ids) if parts is None else parts
            visible = (keys == 0)[:, None, None, :].expand(batch, 1, length, length)
        elif parts is not None:
            keys = parts[:, None, None, :]
            visible = visible & ((keys == 0) | (keys == parts[:, None, :, None]))
        x = F.embedding(ids.reshape(-1), self.embed)
        for number, block in enumerate(self.blocks):
            q, k, v = self.attention_inputs(x, block.input_layernorm, block.qkv, cos, sin, config.heads,
                                            config.norm_eps, dtype)
            q, k, v = (t.view(batch, length, config.heads, -1).transpose(1, 2) for t in (q, k, v))
            attended = self.attend(q, k, v, visible).transpose(1, 2).reshape(batch * length, -1)
            after = self.after_attention
            if chosen is not None and number == config.layers - 1:
                # Only the scored places need the rest of the last block.
                x, attended, after = x[chosen], attended[chosen], self.after_attention_some
            x = after(x, attended, block.out, block.post_attention_layernorm, block.gate_up, block.down,
                      config.norm_eps, dtype)
        return rms_norm(x, self.norm, config.norm_eps)

    def logits(self, hidden):
        return F.linear(hidden, self.embed)


def hf_state(model: TinyLlama, dtype=torch.bfloat16):
    """Parameters under the names of Hugging Face's LlamaForCausalLM."""
    config = model.config
    state = {"model.embed_tokens.weight": model.embed, "model.norm.weight": model.norm}
    for number, block in enumerate(model.blocks):
        prefix = f"model.layers.{number}."
        q, k, v = block.qkv.chunk(3)
        gate, up = block.gate_up.chunk(2)
        assert q.shape[0] == config.width
        state |= {
            prefix + "input_layernorm.weight": block.input_layernorm,
            prefix + "post_attention_layernorm.weight": block.post_attention_layernorm,
            prefix + "self_attn.q_proj.weight": q,
            prefix + "self_attn.k_proj.weight": k,
            prefix + "self_attn.v_proj.weight": v,
            prefix + "self_attn.o_proj.weight": block.out,
            prefix + "mlp.gate_proj.weight": gate,
            prefix + "mlp.up_proj.weight": up,
            prefix + "mlp.down_proj.weight": block.down,
        }
    return {name: tensor.detach().to(dtype).contiguous().clone() for name, tensor in state.items()}


def load_hf_folder(folder) -> TinyLlama:
    """Reads an exported folder back into the training network (float32)."""
    from safetensors.torch import load_file

    folder = Path(folder)
    raw = json.loads((folder / "config.json").read_text())
    config = Config(raw["hidden_size"], raw["num_hidden_layers"], raw["num_attention_heads"],
                    raw["intermediate_size"], raw["vocab_size"], raw["max_position_embeddings"], raw["rope_theta"], raw["rms_norm_eps"])
    model = TinyLlama(config)
    state = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
    with torch.no_grad():
        model.embed.copy_(state["model.embed_tokens.weight"])
        model.norm.copy_(state["model.norm.weight"])
        for number, block in enumerate(model.blocks):
            part = {name.removeprefix(f"model.layers.{number}."): tensor for name, tensor in state.items()}
            block.input_layernorm.copy_(part["input_layernorm.weight"])
            block.post_attention_layernorm.copy_(part["post_attention_layernorm.weight"])
            block.qkv.copy_(torch.cat([part[f"self_attn.{x}_proj.weight"] for x in "qkv"]))
            block.out.copy_(part["self_attn.o_proj.weight"])
            block.gate_up.copy_(torch.cat([part["mlp.gate_proj.weight"], part["mlp.up_proj.weight"]]))
            block.down.copy_(part["mlp.down_proj.weight"])
    return model


@torch.no_grad()
def take_weights(model: TinyLlama, smaller: TinyLlama):
    """Copies the weights of a network with as many or fewer layers, so that `model` computes the same function.

    A layer more than `smaller` has repeats the one before it, with output matrices of zeros: it adds nothing until it is trained.
    """
    model.embed.copy_(smaller.embed)
    model.norm.copy_(smaller.norm)
    layers, have = model.config.layers, smaller.config.layers
    before = -1
    for number, block in enumerate(model.blocks):
        source = number * have // layers
        for name, parameter in block.named_parameters():
            parameter.copy_(getattr(smaller.blocks[source], name))
        if source == before:
            block.out.zero_()
            block.down.zero_()
        before = source


def config_dict(config: Config):
    return asdict(config)
