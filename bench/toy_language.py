#!/usr/bin/env python3
"""A model folder whose law can be written down, for benches of samplers.

    bench/toy_language.py FOLDER [--vocabulary 2048]

A transformer of the Llama family with one layer that does nothing: the logits are a table of the last token. It writes
"0" and "1" with probability 0.4 each, ends with 0.1, and all its other tokens, bytes and words of letters, share the
last 0.1. So the strings of 00000|1[01]{4}, which a mask alone gets badly wrong, are P = 0.4^5 * 0.1 each.
"""
import argparse
import itertools
import json
import math
import os
import string
import struct

WIDTH = 32
REGEX = "00000|1[01]{4}"
PROMPT = "1"


def strings():
    return ["00000"] + ["1" + format(i, "04b") for i in range(16)]


def write(folder, vocabulary=2048):
    # The bytes in GPT-2's alphabet, then words.
    shifted = itertools.count(256)
    names = [chr(b) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174 else chr(next(shifted)) for b in range(256)]
    for length in itertools.count(2):
        words = ("".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=length))
        names += itertools.islice(words, vocabulary - 2 - len(names))
        if len(names) == vocabulary - 2:
            break
    begin, end = vocabulary - 2, vocabulary - 1
    masses = [0.1 / (vocabulary - 3)] * vocabulary
    masses[ord("0")] = masses[ord("1")] = 0.4
    masses[end] = 0.1
    # All embeddings are the first unit vector, which the norm scales to sqrt(WIDTH).
    unit = [1.0] + [0.0] * (WIDTH - 1)
    head = [[math.log(mass) / math.sqrt(WIDTH)] + [0.0] * (WIDTH - 1) for mass in masses]
    tensors = {"model.embed_tokens.weight": [unit] * vocabulary, "lm_head.weight": head,
               "model.norm.weight": [1.0] * WIDTH}
    for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
                 "mlp.up_proj", "mlp.down_proj"):
        tensors[f"model.layers.0.{name}.weight"] = [[0.0] * WIDTH] * WIDTH
    for name in ("input_layernorm", "post_attention_layernorm"):
        tensors[f"model.layers.0.{name}.weight"] = [1.0] * WIDTH
    header, data = {}, b""
    for name, rows in tensors.items():
        matrix = isinstance(rows[0], list)
        flat = [x for row in rows for x in row] if matrix else rows
        shape = [len(rows), len(rows[0])] if matrix else [len(rows)]
        packed = struct.pack(f"<{len(flat)}f", *flat)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    special = [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i, name in ((begin, "<s>"), (end, "</s>"))]
    files = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
            "intermediate_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
            "head_dim": WIDTH, "vocab_size": vocabulary, "max_position_embeddings": 512, "rms_norm_eps": 1e-12,
            "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, "attention_bias": False,
            "mlp_bias": False, "bos_token_id": begin, "eos_token_id": end, "torch_dtype": "float32"},
        "generation_config.json": {"bos_token_id": begin, "eos_token_id": end},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
                                  "model_max_length": 512, "clean_up_tokenization_spaces": False},
        "tokenizer.json": {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "vocab": {name: i for i, name in enumerate(names)}, "merges": []}}}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--vocabulary", type=int, default=2048, help="at least 258")
    options = parser.parse_args()
    write(options.folder, options.vocabulary)


if __name__ == "__main__":
    main()
