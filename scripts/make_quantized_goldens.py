#!/usr/bin/env python3
"""Makes the tiny quantized checkpoints of tests/data/models/quantized.

Each folder is a checkpoint (config.json, model.safetensors) in one of the formats that tools write, and
golden.safetensors with what its weights are worth:
  integers.MATRIX  U8 [rows, cols]    the integers, without the packing (formats of integers)
  zeros.MATRIX     U8 [rows, groups]  the zero points (both for two of the matrices)
  values.MATRIX    F32 [rows, cols]   the weights, for one of the matrices
  prompt           I64 [length]
  logits           F32 [length, vocabulary]  of the model with these weights in double precision
                                             (tests/model/numpy_reference.py)
mxfp4.safetensors has blocks and scales of two experts as gpt-oss stores them, and their values.

The packing is written here once more, from the descriptions of the formats, so that the reader of Pawl and this script
are two programs that have to agree.

Usage: make_quantized_goldens.py [OUTPUT_FOLDER]
Needs numpy.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/model"))
import numpy_reference  # noqa: E402

HIDDEN, HEADS, KV_HEADS, HEAD, INNER, WORDS = 64, 4, 2, 16, 128, 40
MATRICES = {
    "self_attn.q_proj": (HEADS * HEAD, HIDDEN), "self_attn.k_proj": (KV_HEADS * HEAD, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * HEAD, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * HEAD),
    "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER),
}
SHOWN = ("self_attn.k_proj", "mlp.down_proj")
LAYER = "model.layers.0."
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER,
    "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD,
    "vocab_size": WORDS, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "hidden_act": "silu",
    "rope_theta": 10000.0, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
}

# ---- numbers of few bits ----


def bf16_bits(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def as_bf16(x):
    return bf16_values(bf16_bits(x))


def e4m3_values():
    values = []
    for i in range(128):
        exponent, fraction = i >> 3, i & 7
        size = fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
        values.append(float("nan") if i == 127 else size)
    return np.array(values, np.float32)


def e4m3_bytes(x):
    """The nearest of the 127 sizes, with a sign."""
    sizes = e4m3_values()[:127]
    middle = (sizes[1:] + sizes[:-1]) / 2
    return (np.searchsorted(middle, np.abs(x)) | np.where(x < 0, 128, 0)).astype(np.uint8)


def e4m3_worth(data):
    return np.where(data < 128, 1, -1).astype(np.float32) * e4m3_values()[data & 127]


# ---- safetensors ----

CODES = {"float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8"}


class Typed:
    """Bytes with a type that numpy lacks."""

    def __init__(self, dtype, array):
        self.dtype, self.array = dtype, array


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        typed = tensor if isinstance(tensor, Typed) else Typed(CODES[str(tensor.dtype)], tensor)
        raw = np.ascontiguousarray(typed.array).tobytes()
        header[name] = {"dtype": typed.dtype, "shape": list(typed.array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


# ---- rounding and packing ----


def pack_words(values, bits, axis):
    """Neighbours along an axis in words of 32 bits, the first one lowest."""
    per = 32 // bits
    values = np.moveaxis(values.astype(np.uint32), axis, -1)
    words = np.zeros((*values.shape[:-1], values.shape[-1] // per), np.uint32)
    for i in range(per):
        words |= values[..., i::per] << np.uint32(bits * i)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis)).view(np.int32)


def rounded(w, bits, group, symmetric, narrow):
    """Integers [rows, cols] from 0 on, zero points and scales [rows, groups]; `narrow` rounds scales as they are stored."""
    rows, cols = w.shape
    parts = w.reshape(rows, -1, group or cols)
    most = 2**bits - 1
    if symmetric:
        scale = narrow(np.abs(parts).max(-1) / (most / 2))
        zero = np.full(scale.shape, 2 ** (bits - 1))
    else:
        low, high = np.minimum(parts.min(-1), 0), np.maximum(parts.max(-1), 0)
        scale = narrow((high - low) / most)
        zero = np.clip(np.round(-low / scale), 0, most)
    q = np.clip(np.round(parts / scale[..., None]) + zero[..., None], 0, most)
    values = ((q - zero[..., None]) * scale[..., None]).reshape(rows, cols)
    return q.reshape(rows, cols).astype(np.uint8), zero.astype(np.uint8), scale, values.astype(np.float32)


class Packed:
    """compressed-tensors, pack-quantized."""

    def __init__(self, bits, group, symmetric, half):
        self.bits, self.group, self.symmetric, self.half = bits, group, symmetric, half
        weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "group_size": group or None,
                   "strategy": "group" if group else "channel", "dynamic": False, "observer": "minmax"}
        self.config = {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
                       "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}},
                       "ignore": ["lm_head"], "kv_cache_scheme": None}

    def write(self, stem, w):
        narrow = (lambda x: x.astype(np.float16).astype(np.float32)) if self.half else as_bf16
        q, zero, scale, values = rounded(w, self.bits, self.group, self.symmetric, narrow)
        tensors = {
            f"{stem}.weight_packed": pack_words(q, self.bits, -1),
            f"{stem}.weight_scale": scale.astype(np.float16) if self.half else Typed("BF16", bf16_bits(scale)),
            f"{stem}.weight_shape": np.array(w.shape, np.int64),
        }
        if not self.symmetric:
            tensors[f"{stem}.weight_zero_point"] = pack_words(zero, self.bits, 0)
        return tensors, values, (q, zero)


class Awq:
    def __init__(self, group):
        self.group = group
        self.config = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm",
                       "modules_to_not_convert": None}

    def write(self, stem, w):
        q, zero, scale, values = rounded(w, 4, self.group, False, lambda x: x.astype(np.float16).astype(np.float32))

        def pack(table):  # [inputs or groups, outputs]
            order = [0, 2, 4, 6, 1, 3, 5, 7]
            eights = table.reshape(table.shape[0], -1, 8)[:, :, order]
            return pack_words(eights.reshape(table.shape[0], -1), 4, -1)

        tensors = {f"{stem}.qweight": pack(q.T), f"{stem}.qzeros": pack(zero.T),
                   f"{stem}.scales": np.ascontiguousarray(scale.T.astype(np.float16))}
        return tensors, values, (q, zero)


class Gptq:
    def __init__(self, bits, group, symmetric, version):
        self.bits, self.group, self.symmetric, self.version = bits, group, symmetric, version
        self.config = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": False, "sym": symmetric,
                       "damp_percent": 0.01, "true_sequential": True, "checkpoint_format": version}

    def write(self, stem, w):
        q, zero, scale, values = rounded(w, self.bits, self.group, self.symmetric, lambda x: x.astype(np.float16).astype(np.float32))
        if self.version == "gptq" and not self.symmetric:  # a zero point of 0 cannot be stored less 1
            zero = np.maximum(zero, 1)
            each = np.repeat(zero, q.shape[1] // zero.shape[1], axis=1).astype(np.float32)
            scales = np.repeat(scale, q.shape[1] // zero.shape[1], axis=1)
            values = ((q.astype(np.float32) - each) * scales).astype(np.float32)
        stored = zero - (1 if self.version == "gptq" else 0)
        tensors = {f"{stem}.qweight": pack_words(q.T, self.bits, 0), f"{stem}.qzeros": pack_words(stored.T, self.bits, -1),
                   f"{stem}.scales": np.ascontiguousarray(scale.T.astype(np.float16)),
                   f"{stem}.g_idx": (np.arange(w.shape[1]) // self.group).astype(np.int32)}
        return tensors, values, (q, zero)


class Float8:
    """`by`: "tensor", "channel", or the sizes of a block."""

    def __init__(self, by, suffix, config):
        self.by, self.suffix, self.config = by, suffix, config

    def write(self, stem, w):
        if self.by == "tensor":
            scale = np.array(np.abs(w).max() / 448, np.float32)
            each, stored = scale, scale
        elif self.by == "channel":
            scale = as_bf16(np.abs(w).max(1, keepdims=True) / 448)
            each, stored = scale, Typed("BF16", bf16_bits(scale))
        else:
            high, wide = self.by
            rows, cols = -(-w.shape[0] // high), -(-w.shape[1] // wide)
            scale = np.array([[np.abs(w[i * high:(i + 1) * high, j * wide:(j + 1) * wide]).max() / 448 for j in range(cols)]
                              for i in range(rows)], np.float32)
            each = np.repeat(np.repeat(scale, high, 0), wide, 1)[:w.shape[0], :w.shape[1]]
            stored = scale
        data = e4m3_bytes(w / each)
        tensors = {f"{stem}.weight": Typed("F8_E4M3", data), f"{stem}.{self.suffix}": stored,
                   f"{stem}.input_scale": np.array([0.5], np.float32)}
        return tensors, (e4m3_worth(data) * each).astype(np.float32), None


def float_quantized(strategy):
    weights = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": strategy, "dynamic": False}
    inputs = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True}
    return {"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs}},
            "ignore": ["lm_head"]}


FORMATS = {
    "packed4": Packed(4, 32, True, False),
    "packed4-zeros": Packed(4, 64, False, True),
    "packed8-row": Packed(8, 0, True, False),
    "packed8-zeros": Packed(8, 32, False, False),
    "awq": Awq(32),
    "gptq": Gptq(4, 64, False, "gptq"),
    "gptq-v2-sym": Gptq(4, 32, True, "gptq_v2"),
    "gptq8": Gptq(8, 32, True, "gptq"),
    "float8-row": Float8("channel", "weight_scale", float_quantized("channel")),
    "float8-tensor": Float8("tensor", "weight_scale_inv",
                            {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}),
    "float8-block": Float8((48, 40), "weight_scale_inv",
                           {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [48, 40]}),
}


def make(folder, number, scheme):
    random = np.random.default_rng(number)
    plain = {"model.embed_tokens.weight": as_bf16(0.5 * random.standard_normal((WORDS, HIDDEN)))}
    for name in ("model.norm", LAYER + "input_layernorm", LAYER + "post_attention_layernorm"):
        plain[name + ".weight"] = as_bf16(1 + 0.2 * random.standard_normal(HIDDEN))
    stored = {name: Typed("BF16", bf16_bits(value)) for name, value in plain.items()}
    golden, worth = {}, dict(plain)
    for name, shape in MATRICES.items():
        w = (1.5 / shape[1] ** 0.5 * random.standard_normal(shape) + 0.02).astype(np.float32)
        tensors, values, integers = scheme.write(LAYER + name, w)
        stored.update(tensors)
        worth[LAYER + name + ".weight"] = values
        if name not in SHOWN:
            continue
        if name == SHOWN[0]:
            golden["values." + name] = values
        if integers is not None:
            golden["integers." + name], golden["zeros." + name] = integers
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, "quantization_config": scheme.config}, indent=1) + "\n")
    save(folder / "model.safetensors", stored)
    model = numpy_reference.Model(folder, {k: v.astype(np.float64) for k, v in worth.items()})
    prompt = random.integers(3, WORDS, 17)
    golden["prompt"] = prompt.astype(np.int64)
    golden["logits"] = model.logits(list(prompt)).astype(np.float32)
    save(folder / "golden.safetensors", golden)


def make_mxfp4(path):
    random = np.random.default_rng(99)
    experts, rows, groups = 2, 16, 3
    blocks = random.integers(0, 256, (experts, rows, groups, 16), dtype=np.uint8)
    scales = random.integers(115, 130, (experts, rows, groups), dtype=np.uint8)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    pairs = np.stack([table[blocks & 15], table[blocks >> 4]], axis=-1).reshape(experts, rows, groups, 32)
    values = pairs * np.exp2(scales.astype(np.float32) - 127)[..., None]
    save(path, {"gate_up_proj_blocks": blocks, "gate_up_proj_scales": scales,
                "values": values.reshape(experts, rows, groups * 32).astype(np.float32)})


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/models/quantized"
    for number, (name, scheme) in enumerate(FORMATS.items()):
        make(folder / name, number, scheme)
    make_mxfp4(folder / "mxfp4.safetensors")


if __name__ == "__main__":
    main()
