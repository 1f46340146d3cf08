#!/usr/bin/env python3
"""Makes tests/data/models/gguf_encoded.safetensors: floats (F32, `floats`) and the blocks that the reference
implementations round them to (NAME, U8). Simple types are those of gguf-py. Others are those of ggml's C code without an
importance matrix.

Usage: make_gguf_encode_goldens.py GGML_LIBRARY [OUTPUT_FILE]
GGML_LIBRARY: libggml-base.so, as llama.cpp builds it. Needs numpy, gguf and safetensors.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import GGML_QUANT_SIZES, quantize
from safetensors.numpy import save_file

SIMPLE = (Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1)
SEARCHED = {
    Type.Q2_K: "quantize_q2_K", Type.Q3_K: "quantize_q3_K", Type.Q4_K: "quantize_q4_K", Type.Q5_K: "quantize_q5_K",
    Type.Q6_K: "quantize_q6_K", Type.IQ4_NL: "quantize_iq4_nl", Type.IQ4_XS: "quantize_iq4_xs",
}  # fmt: skip
COLS = 256


def main():
    library = ctypes.CDLL(sys.argv[1])
    default = Path(__file__).resolve().parent.parent / "tests/data/models/gguf_encoded.safetensors"
    output = Path(sys.argv[2]) if len(sys.argv) > 2 else default
    random = np.random.default_rng(7)
    rows = [random.standard_normal(COLS) * 0.03, random.standard_t(3, COLS) * 0.02, np.abs(random.standard_normal(COLS)),
            random.standard_normal(COLS) - 2, np.zeros(COLS), np.full(COLS, 0.25), random.standard_normal(COLS) * 1e-4]
    rows[0][5] = 3.0  # one weight far out
    rows[1][32:64] = 0
    floats = np.array(rows, np.float32)
    tensors = {"floats": floats}
    for kind in SIMPLE:
        tensors[kind.name] = np.ascontiguousarray(quantize(floats, kind)).view(np.uint8).ravel()
    for kind, name in SEARCHED.items():
        elements, size = GGML_QUANT_SIZES[kind]
        blocks = np.zeros(floats.size // elements * size, np.uint8)
        function = getattr(library, name)
        function.restype = ctypes.c_size_t
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (floats, blocks)]
        written = function(*pointers, ctypes.c_int64(len(floats)), ctypes.c_int64(COLS), None)
        assert written == blocks.size, name
        tensors[kind.name] = blocks
    save_file(tensors, output)


if __name__ == "__main__":
    main()
