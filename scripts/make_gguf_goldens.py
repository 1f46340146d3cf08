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
HALVES = {
    Type.Q8_0: (0,), Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q5_0: (0,), Type.Q5_1: (0, 2),
    Type.Q2_K: (80, 82), Type.Q3_K: (108,), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,),
    Type.IQ4_NL: (0,), Type.IQ4_XS: (0,), Type.MXFP4: (), Type.NVFP4: (), Type.TQ1_0: (52,), Type.TQ2_0: (64,),
    Type.IQ3_S: (0,), Type.IQ3_XXS: (0,), Type.IQ2_S: (0,), Type.IQ2_XS: (0,), Type.IQ2_XXS: (0,),
    Type.IQ1_S: (0,), Type.IQ1_M: (),
}  # fmt: skip
ELEMENTS = 512


def put_half(blocks, kind, at, halves):
    if kind == Type.IQ1_M:  # in the upper four bits of four words
        for i in range(4):
            byte = blocks[:, 49 + 2 * i]
            blocks[:, 49 + 2 * i] = (byte & 15) | (halves.view(np.uint16) >> 4 * i & 15).astype(np.uint8) << 4
    else:
        blocks[:, at : at + 2] = halves.view(np.uint8).reshape(-1, 2)


def main():
    default = Path(__file__).resolve().parent.parent / "tests/data/models/gguf_blocks.safetensors"
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    random = np.random.default_rng(1)
    tensors = {}
    for kind, halves in HALVES.items():
        elements, size = GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (ELEMENTS // elements, size), dtype=np.uint8)
        for at in (0,) if kind == Type.IQ1_M else halves:
            put_half(blocks, kind, at, (random.standard_normal(len(blocks)) * 0.1).astype(np.float16))
        if kind == Type.MXFP4:  # exponents that halves have, some that they have not, and zero
            blocks[:, 0] = random.integers(98, 130, len(blocks))
            blocks[0, 0] = 0
        tensors[kind.name + ".blocks"] = blocks
        tensors[kind.name + ".values"] = dequantize(blocks, kind).astype(np.float32).ravel()
    save_file(tensors, output)


if __name__ == "__main__":
    main()
