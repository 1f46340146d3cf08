#!/usr/bin/env python3
"""What the inner loops of kernels cost, by llvm-mca: no processor is needed, and no emulator is timed.

    scripts/kernel_cycles.py            # compiles kernels/cpu/*.cc for ARM and AVX2, prints a table

For the shortest and the longest loop of each size: instructions, and cycles that llvm-mca counts for 32 weights times one
input row. Loads count as hits of the
level 1 cache. Loops with branches count all their instructions, prefetches included. Needs g++, aarch64-linux-gnu-g++
(scripts/install_deps.sh --arm) and llvm-mca-19, or another that LLVM_MCA names.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = "-std=c++20 -O3 -ffp-contract=off -fno-math-errno -DNDEBUG -fPIC -I. -Iinclude -S".split()
ARM = ["aarch64-linux-gnu-g++", "-DPAWL_ARM_KERNELS"]
# Name, compiler with its flags, source, the instruction that multiplies, weights times inputs in one of them, and the
# processors.
KERNELS = [
    ("neon", ARM, "integers_neon.cc", r"smlal2?\b.*8h|smull2?\b.*8h", 8, ["neoverse-n1"]),
    ("neon-dot", ARM + ["-march=armv8.2-a+dotprod"], "integers_neon_dot.cc", r"sdot\b", 16, ["neoverse-n1", "neoverse-v1"]),
    ("neon-i8mm", ARM + ["-march=armv8.2-a+dotprod+i8mm"], "integers_neon_i8mm.cc", r"smmla\b", 32, ["neoverse-v1"]),
    ("neon-bfmmla", ARM + ["-march=armv8.2-a+bf16"], "neon_bfmmla.cc", r"bfmmla\b", 8, ["neoverse-v1"]),
    ("avx2", ["g++", "-DPAWL_X86_KERNELS", "-mavx2", "-mfma", "-mf16c"], "integers_avx2.cc", r"vpmaddubsw\b", 32,
     ["skylake", "znver3"]),
]


def inner_loops(assembly, multiply):
    """Loops that multiply and hold no other that does: lists of instructions."""
    lines = [line.split("//")[0].strip() for line in assembly.splitlines()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if re.match(r"\.L\w+:$", line)}
    spans = []
    for end, line in enumerate(lines):
        branch = re.match(r"(?:b\.?\w*|cbn?z|tbn?z|j\w+)\b.*?(\.L\w+)$", line)
        if branch and branch[1] in labels and labels[branch[1]] < end:
            begin = labels[branch[1]]
            if end - begin < 1500 and any(re.match(multiply, other) for other in lines[begin:end]):
                spans.append((begin, end + 1))
    for begin, end in spans:
        if not any((b, e) != (begin, end) and b >= begin and e <= end for b, e in spans):
            yield [line for line in lines[begin:end] if line and not line.startswith((".", "#"))]


def cycles(loop, mca, triple, processor):
    """Cycles of one iteration; calls and returns are none of a loop's."""
    run = subprocess.run([mca, f"-mtriple={triple}", f"-mcpu={processor}", "-iterations=100", "-"], input="\n".join(loop),
                         text=True, capture_output=True)
    found = re.search(r"Total Cycles:\s+(\d+)", run.stdout)
    return int(found[1]) / 100 if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assembly", type=Path, help="a folder with NAME.s, compiled before, for each kernel")
    arguments = parser.parse_args()
    os.chdir(Path(__file__).resolve().parent.parent)
    mca = os.environ.get("LLVM_MCA", "llvm-mca-19")
    print("| kernels | products in a loop | instructions | processor | cycles | cycles for 32 weights |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, compiler, source, multiply, each, processors in KERNELS:
            path = Path(arguments.assembly or scratch) / f"{name}.s"
            if not path.exists():
                subprocess.run([*compiler, *FLAGS, f"kernels/cpu/{source}", "-o", path], check=True)
            triple = "x86_64" if compiler[0] == "g++" else "aarch64"
            loops = {}  # by the number of products
            for loop in inner_loops(path.read_text(), multiply):
                loops.setdefault(sum(bool(re.match(multiply, line)) for line in loop), []).append(loop)
            for count, alike in sorted(loops.items()):
                # Bytes need no unpacking; the longest loop unpacks most.
                ends = {len(loop): loop for loop in (min(alike, key=len), max(alike, key=len))}
                for loop in ends.values():
                    for processor in processors:
                        taken = cycles(loop, mca, triple, processor)
                        if taken is None:
                            print(f"kernel_cycles.py: llvm-mca does not know a loop of {name}", file=sys.stderr)
                            continue
                        products = count * each
                        print(f"| {name} | {products} | {len(loop)} | {processor} | {taken:.0f} | {taken * 32 / products:.2f} |")


if __name__ == "__main__":
    main()
