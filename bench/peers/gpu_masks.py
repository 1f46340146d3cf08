#!/usr/bin/env python3
"""Applies the same masks to the same logits as gpu_bench does (256 rows of 128 k tokens of bf16), with PyTorch and,
where it is installed, XGrammar. Prints microseconds; needs a CUDA device.

    python3 bench/peers/gpu_masks.py [FILE]

FILE, the JSON that gpu_bench wrote, gets the figures and whether gpu_bench's kernel is ahead of them.
"""
import importlib.metadata
import json
import sys

import torch

ROWS, VOCABULARY, ROUNDS, CALLS = 256, 128256, 7, 50


def microseconds(call):
    times = []
    for _ in range(ROUNDS + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return sorted(times[1:])[ROUNDS // 2]


def main():
    try:
        import xgrammar
    except ImportError:
        xgrammar = None
    path = sys.argv[1] if len(sys.argv) > 1 else None
    report = {"results": []}
    if path is not None:
        with open(path) as file:
            report = json.load(file)
    ours = {result["name"]: result["value"] for result in report["results"]}
    figures = []
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(-(2**31), 2**31, (ROWS, VOCABULARY // 32), dtype=torch.int64, generator=generator)
    for share, bits in ((0, torch.zeros_like(words)), (50, words), (100, torch.full_like(words, -1))):
        bitmask = bits.to(torch.int32).cuda()
        logits = torch.zeros(ROWS, VOCABULARY, dtype=torch.bfloat16, device="cuda")
        shifts = torch.arange(32, device="cuda", dtype=torch.int32)

        def by_torch():
            refused = (bitmask[:, :, None] >> shifts & 1).view(ROWS, VOCABULARY) == 0
            logits.masked_fill_(refused, float("-inf"))

        peers = {"PyTorch, bits to masked_fill_": microseconds(by_torch)}
        if xgrammar is not None:
            name = f"XGrammar {importlib.metadata.version('xgrammar')}"
            peers[name] = microseconds(lambda: xgrammar.apply_token_bitmask_inplace(logits, bitmask))
        for name, took in peers.items():
            print(f"{name}, {share} % allowed: {took:.1f} us")
            figures.append({"name": f"mask application, batch 256, {share} % allowed, {name}, microseconds", "value": took})
            own = ours.get(f"mask application, batch 256, {share} % allowed, microseconds")
            if own is not None:
                ratio = own / took
                print(f"  beside it: {ratio:.3f}   bar <= 1.00: {'reached' if ratio <= 1 else 'missed'}")
                figures.append({"name": f"mask application, batch 256, {share} % allowed / {name}", "value": ratio,
                                "bar": "<= 1.00", "reached": ratio <= 1})
    if xgrammar is None:
        print("XGrammar: not installed")
    if path is not None:
        report["results"] += figures
        with open(path, "w") as file:
            json.dump(report, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
