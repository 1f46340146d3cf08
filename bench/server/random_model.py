#!/usr/bin/env python3
"""Writes a folder with random weights of the shape of Qwen2.5-0.5B, to serve and to load where no such model is at hand.

  bench/server/random_model.py --tokenizer DIR --out DIR [--layers 24]

DIR of --tokenizer has the tokenizer.json of Qwen 2.5. Needs numpy. The file of bf16 weights takes 1 GB. What the model says is
noise: under a grammar its outputs are valid all the same, and they cost what those of the true model would.
"""

import argparse
import json
import os
import shutil

import numpy as np

CONFIG = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
          "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 4096,
          "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": True, "hidden_act": "silu",
          "bos_token_id": 151643, "eos_token_id": 151645, "torch_dtype": "bfloat16"}


def tensors(config, layers):
    width, inner = config["hidden_size"], config["intermediate_size"]
    keys = width // config["num_attention_heads"] * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", (width,)
        yield at + "post_attention_layernorm.weight", (width,)
        for name, rows in (("q", width), ("k", keys), ("v", keys)):
            yield at + f"self_attn.{name}_proj.weight", (rows, width)
            yield at + f"self_attn.{name}_proj.bias", (rows,)
        yield at + "self_attn.o_proj.weight", (width, width)
        yield at + "mlp.gate_proj.weight", (inner, width)
        yield at + "mlp.up_proj.weight", (inner, width)
        yield at + "mlp.down_proj.weight", (width, inner)
    yield "model.norm.weight", (width,)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--layers", type=int, default=24)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if os.path.exists(os.path.join(args.tokenizer, name)):
            shutil.copy(os.path.join(args.tokenizer, name), args.out)
    with open(os.path.join(args.out, "config.json"), "w") as file:
        json.dump({**CONFIG, "num_hidden_layers": args.layers}, file, indent=1)
    with open(os.path.join(args.out, "pawl.json"), "w") as file:
        json.dump({"extract": {"prompt": "{text}\n"}}, file)
    header, at = {}, 0
    for name, shape in tensors(CONFIG, args.layers):
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(header).encode()
    rng = np.random.default_rng(1)
    with open(os.path.join(args.out, "model.safetensors"), "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for name, shape in tensors(CONFIG, args.layers):
            if name.endswith("norm.weight"):
                values = np.ones(shape, np.float32)
            else:
                values = rng.standard_normal(shape, np.float32) * np.float32(0.02)
            file.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    print(f"{args.out}: {at / 1e9:.2f} GB of weights")


if __name__ == "__main__":
    main()
