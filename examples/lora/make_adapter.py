#!/usr/bin/env python3
"""Writes a small LoRA adapter of random numbers for a model folder, in the form that PEFT saves.

    python3 examples/lora/make_adapter.py models/tiny-extract /tmp/random-lora
    build/pawl generate --model models/tiny-extract --lora /tmp/random-lora --prompt "Ann Lee"

What a model says with such an adapter means nothing: the script shows which files an adapter has, and is a quick
way to try the options. Adapters that are worth having come from a training tool, such as PEFT or Axolotl. Only
the standard library is used.
"""
import argparse
import json
import os
import random
import struct
import sys


def shapes_of(folder):
    """The shapes of the tensors of a folder with safetensors."""
    shapes = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        shapes.update({tensor: entry["shape"] for tensor, entry in header.items() if tensor != "__metadata__"})
    return shapes


def write_safetensors(path, tensors):
    """`tensors`: name -> (shape, floats)."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        blob = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a folder with safetensors")
    parser.add_argument("out", help="the folder to write")
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--scale", type=float, default=0.05, help="how far weights are moved, as a standard deviation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modules", default="q_proj,v_proj")
    given = parser.parse_args()
    modules = given.modules.split(",")
    draw = random.Random(given.seed)
    tensors = {}
    for name, shape in shapes_of(given.model).items():
        module = name.removesuffix(".weight")
        if len(shape) != 2 or not name.endswith(".weight") or module.split(".")[-1] not in modules:
            continue
        outputs, inputs = shape
        for part, (rows, columns) in (("A", (given.rank, inputs)), ("B", (outputs, given.rank))):
            values = [draw.gauss(0, given.scale ** 0.5) for _ in range(rows * columns)]
            tensors[f"base_model.model.{module}.lora_{part}.weight"] = ([rows, columns], values)
    if not tensors:
        sys.exit(f"{given.model} has none of the modules {given.modules}")
    os.makedirs(given.out, exist_ok=True)
    write_safetensors(os.path.join(given.out, "adapter_model.safetensors"), tensors)
    with open(os.path.join(given.out, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": given.model,
                   "r": given.rank, "lora_alpha": given.rank, "target_modules": modules, "bias": "none",
                   "use_rslora": False, "use_dora": False, "modules_to_save": None}, file, indent=2)
    print(f"{len(tensors) // 2} matrices of rank {given.rank} to {given.out}")


if __name__ == "__main__":
    main()
