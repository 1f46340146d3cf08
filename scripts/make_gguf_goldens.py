#!/usr/bin/env python3
"""Makes tests/data/models/gguf_blocks.safetensors: random blocks of ggml's quantized types (NAME.blocks, U8) and
what the reference implementation says they are worth (NAME.values, F32).

Usage: make_gguf_goldens.py [OUTPUT_FILE]
Needs numpy, gguf and safetensors.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import GGML_QUANT_SIZES, dequantize
from safetensors.numpy import save_file

# Where the half-precision numbers of a block are: random bits would make some of them infinite.
HALVES = {Type.Q8_0: (0,), Type.Q4_0: (0,), Type.Q4_K: (0, 2), Type.Q6_K: (208,)}


def main():
    default = Path(__file__).resolve().parent.parent / "tests/data/models/gguf_blocks.safetensors"
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    random = np.random.default_rng(1)
    tensors = {}
    for kind, halves in HALVES.items():
        elements, size = GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (1024 // elements, size), dtype=np.uint8)
        for at in halves:
            scales = (random.standard_normal(len(blocks)) * 0.1).astype(np.float16)
            blocks[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
        tensors[kind.name + ".blocks"] = blocks
        tensors[kind.name + ".values"] = dequantize(blocks, kind).astype(np.float32).ravel()
    save_file(tensors, output)


if __name__ == "__main__":
    main()
