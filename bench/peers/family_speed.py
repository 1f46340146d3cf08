#!/usr/bin/env python3
"""A step and a prompt of models with experts and with recurrent layers, next to llama.cpp: files of random weights.

    PYTHONPATH=LLAMA_CPP_WITHOUT_AMX family_speed.py experts --model SmolLM2.gguf    # Qwen3-30B-A3B's shape, few layers
    PYTHONPATH=LLAMA_CPP_WITHOUT_AMX family_speed.py qwen35 --model SmolLM2.gguf     # Qwen 3.5 0.8B's shape

Matrices have random blocks of type Q4_0. `--model` gives the tokenizer. Both programs run one thread, in turn, and are
timed by processor time; the best counts. Needs what gguf_peers.py needs.
"""

import argparse
import ctypes
import os
import sys
import tempfile
from pathlib import Path

import gguf
import gguf_peers as peers
import llama_cpp
import numpy as np

EXPERTS = dict(arch="qwen3moe", hidden=2048, heads=32, kv_heads=4, head_dim=128, experts=128, chosen=8, width=768, inner=6144)
QWEN35 = dict(arch="qwen35", hidden=1024, heads=8, kv_heads=2, head_dim=256, inner=3584, delta_heads=16, delta_dim=128, taps=4)


class Writer:
    def __init__(self, path, shape, reader, layers, kind):
        self.writer, self.shape = gguf.GGUFWriter(path, shape["arch"]), shape
        self.random, self.kind = np.random.default_rng(1), kind
        for field in reader.fields.values():
            if field.name.startswith("tokenizer.ggml."):
                of = field.types[0]
                self.writer.add_key_value(field.name, field.contents(), of, sub_type=field.types[-1] if of == gguf.GGUFValueType.ARRAY else None)
        words = len(reader.fields["tokenizer.ggml.tokens"].data)
        for key, value in (("context_length", 4096), ("embedding_length", shape["hidden"]), ("feed_forward_length", shape["inner"]),
                           ("block_count", layers), ("head_count", shape["heads"]), ("head_count_kv", shape["kv_heads"]),
                           ("key_length", shape["head_dim"]), ("value_length", shape["head_dim"])):
            getattr(self.writer, "add_" + key)(value)
        self.writer.add_layer_norm_rms_eps(1e-6)
        self.matrix("token_embd", words, shape["hidden"])
        self.vector("output_norm.weight", shape["hidden"])

    def matrix(self, name, rows, cols, experts=0, kind=None):
        kind, count = kind or self.kind, max(experts, 1)
        data = peers.random_blocks(kind, (count * rows, cols), 0.02, self.random)
        if experts:
            data = data.reshape(experts, rows, -1)
        self.writer.add_tensor(name + ".weight", data, raw_dtype=gguf.GGMLQuantizationType[kind])

    def floats(self, name, *shape, spread=0.02):
        self.writer.add_tensor(name, (spread * self.random.standard_normal(shape)).astype(np.float32))

    def vector(self, name, size, value=1.0):
        self.writer.add_tensor(name, np.full(size, value, np.float32))

    def attention(self, at, gates):
        s = self.shape
        self.matrix(at + "attn_q", s["heads"] * s["head_dim"] * gates, s["hidden"])
        for name in ("attn_k", "attn_v"):
            self.matrix(at + name, s["kv_heads"] * s["head_dim"], s["hidden"])
        self.matrix(at + "attn_output", s["hidden"], s["heads"] * s["head_dim"])
        for name in ("attn_q_norm.weight", "attn_k_norm.weight"):
            self.vector(at + name, s["head_dim"])


def experts(writer, layers):
    s, out = writer.shape, writer.writer
    out.add_expert_count(s["experts"])
    out.add_expert_used_count(s["chosen"])
    out.add_expert_feed_forward_length(s["width"])
    out.add_rope_freq_base(1e6)
    for i in range(layers):
        at = f"blk.{i}."
        writer.attention(at, 1)
        writer.floats(at + "ffn_gate_inp.weight", s["experts"], s["hidden"])
        for name in ("ffn_gate_exps", "ffn_up_exps"):
            writer.matrix(at + name, s["width"], s["hidden"], s["experts"])
        writer.matrix(at + "ffn_down_exps", s["hidden"], s["width"], s["experts"])
        for name in ("attn_norm", "ffn_norm"):
            writer.vector(f"{at}{name}.weight", s["hidden"])


def qwen35(writer, layers):
    s, out = writer.shape, writer.writer
    inner = s["delta_heads"] * s["delta_dim"]
    out.add_rope_freq_base(1e7)
    out.add_rope_dimension_count(64)
    out.add_rope_dimension_sections([11, 11, 10, 0])
    for key, value in (("conv_kernel", s["taps"]), ("inner_size", inner), ("state_size", s["delta_dim"]),
                       ("time_step_rank", s["delta_heads"]), ("group_count", s["delta_heads"])):
        getattr(out, "add_ssm_" + key)(value)
    for i in range(layers):
        at = f"blk.{i}."
        if (i + 1) % 4 == 0:
            writer.attention(at, 2)
        else:
            writer.matrix(at + "attn_qkv", 3 * inner, s["hidden"])
            writer.matrix(at + "attn_gate", inner, s["hidden"])
            writer.floats(at + "ssm_conv1d.weight", 3 * inner, s["taps"], spread=0.3)
            writer.vector(at + "ssm_dt.bias", s["delta_heads"], -1.0)
            writer.vector(at + "ssm_a", s["delta_heads"], -0.5)
            for name in ("ssm_alpha", "ssm_beta"):
                writer.matrix(at + name, s["delta_heads"], s["hidden"])
            writer.vector(at + "ssm_norm.weight", s["delta_dim"])
            writer.matrix(at + "ssm_out", s["hidden"], inner)
        for name in ("ffn_gate", "ffn_up"):
            writer.matrix(at + name, s["inner"], s["hidden"])
        writer.matrix(at + "ffn_down", s["hidden"], s["inner"])
        for name in ("attn_norm", "post_attention_norm"):
            writer.vector(f"{at}{name}.weight", s["hidden"])


def compare(args, folder):
    file = folder / "model.gguf"
    shape, layers = (EXPERTS, args.layers or 6) if args.what == "experts" else (QWEN35, args.layers or 24)
    writer = Writer(file, shape, gguf.GGUFReader(args.model), layers, args.type)
    (experts if args.what == "experts" else qwen35)(writer, layers)
    peers.finish(writer.writer)
    ids = peers.tokens_of(args.model, peers.default_text(), args.prompt)
    os.sched_setaffinity(0, {int(args.core)})
    ours, theirs = [], []
    for _ in range(args.runs):
        ours.append(peers.pawl_times(args, file, folder))
        theirs.append(peers.llama_times(args, file, ids))
        print(ours[-1], theirs[-1], file=sys.stderr, flush=True)
    best = {key: min(run[i] for run in runs) for i, side in enumerate(("step_s", "prompt_s"))
            for key, runs in ((side, ours), (side + "_llama", theirs))}
    return best | {"step": best["step_s"] / best["step_s_llama"], "prompt": best["prompt_s"] / best["prompt_s_llama"],
                   "layers": layers, "prompt_tokens": args.prompt, "type": args.type, "shape": shape}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("experts", "qwen35"))
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--pawl", default=str(peers.ROOT / "build/pawl"))
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--type", default="Q4_0")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--core", default="0")
    parser.add_argument("--out")
    args = parser.parse_args()
    args.threads, args.positions, args.spread, args.no_repack = 1, 0, 0.02, False
    llama_cpp.llama_log_set(peers.silent, ctypes.c_void_p(0))
    with tempfile.TemporaryDirectory() as folder:
        print(peers.written(args, compare(args, Path(folder))))


if __name__ == "__main__":
    main()
