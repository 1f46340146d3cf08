#!/usr/bin/env python3
"""Applies the same masks to the same logits as gpu_bench does (256 rows of 128 k tokens of bf16), with PyTorch and,
where it is installed, XGrammar. Prints microseconds; needs a CUDA device.

    python3 bench/peers/gpu_masks.py
"""
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
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(-(2**31), 2**31, (ROWS, VOCABULARY // 32), dtype=torch.int64, generator=generator)
    for share, bits in ((0, torch.zeros_like(words)), (50, words), (100, torch.full_like(words, -1))):
        bitmask = bits.to(torch.int32).cuda()
        logits = torch.zeros(ROWS, VOCABULARY, dtype=torch.bfloat16, device="cuda")
        shifts = torch.arange(32, device="cuda", dtype=torch.int32)

        def by_torch():
            refused = (bitmask[:, :, None] >> shifts & 1).view(ROWS, VOCABULARY) == 0
            logits.masked_fill_(refused, float("-inf"))

        print(f"PyTorch, bits to masked_fill_, {share} % allowed: {microseconds(by_torch):.1f} us")
        if xgrammar is not None:
            took = microseconds(lambda: xgrammar.apply_token_bitmask_inplace(logits, bitmask))
            print(f"XGrammar {xgrammar.__version__}, {share} % allowed: {took:.1f} us")
    if xgrammar is None:
        print("XGrammar: not installed")


if __name__ == "__main__":
    main()
