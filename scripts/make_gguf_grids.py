#!/usr/bin/env python3
"""Makes src/model/gguf_grids.inc: the vectors of eight or four values that ggml's types IQ1, IQ2 and IQ3 choose from,
two or three bits for each value, the first value lowest.

Usage: make_gguf_grids.py [OUTPUT_FILE]
Needs numpy and gguf.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import quants

GRIDS = {"kIq2XxsGrid": quants.IQ2_XXS, "kIq2XsGrid": quants.IQ2_XS, "kIq2SGrid": quants.IQ2_S,
         "kIq1Grid": quants.IQ1_S, "kIq3XxsGrid": quants.IQ3_XXS, "kIq3SGrid": quants.IQ3_S}  # fmt: skip


def numbers(kind):
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape)
    index = {float(value): i for i, value in enumerate(kind.grid_map)}
    bits = 3 if len(kind.grid_map) > 4 else 2
    return [sum(index[float(value)] << bits * i for i, value in enumerate(row)) for row in grid]


def main():
    default = Path(__file__).resolve().parent.parent / "src/model/gguf_grids.inc"
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    text = "// Made by scripts/make_gguf_grids.py: the grids of ggml (MIT license).\n"
    for name, kind in GRIDS.items():
        values = [f"{value:#06x}," for value in numbers(kind)]
        text += f"constexpr uint16_t {name}[{len(values)}] = {{\n"
        for at in range(0, len(values), 12):
            text += "    " + " ".join(values[at : at + 12]) + "\n"
        text = text.rstrip(",\n") + "};\n"
    output.write_text(text)


if __name__ == "__main__":
    main()
