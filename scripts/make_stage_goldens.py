#!/usr/bin/env python3
"""What llama.cpp keeps of 1,000 rows of logits with typical, top-n-sigma and XTC, and what DRY subtracts.

    scripts/make_stage_goldens.py MODEL.gguf > tests/data/stages.txt

Needs llama-cpp-python. The model gives DRY a vocabulary, and nothing else of it is used. The logits come from a formula
that tests/decode/stage_goldens_test.cc has, too. A line is: the tokens that typical, top-n-sigma and XTC keep, as bits in
hexadecimal, and the penalties of DRY, TOKEN:THOUSANDTHS.
"""

import ctypes
import sys

import llama_cpp
import numpy as np

ROWS, TOKENS, HISTORY = 1000, 32, 40


def mixed(row, index, salt):
    h = (row * 2654435761 + index * 40503 + salt * 97 + 1) & 0xFFFFFFFF
    for _ in range(2):
        h ^= h >> 16
        h = h * 0x45D9F3B & 0xFFFFFFFF
    return h ^ h >> 16


def logit(row, token):
    return np.float32(sum(mixed(row, token, salt) % 4000 for salt in range(3)) - 6000) / np.float32(1000)


def apply(sampler, logits):
    data = (llama_cpp.llama_token_data * TOKENS)(*[(t, float(x), 0.0) for t, x in enumerate(logits)])
    array = llama_cpp.llama_token_data_array(data=data, size=TOKENS, selected=-1, sorted=False)
    llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
    left = {array.data[i].id: array.data[i].logit for i in range(array.size)}
    llama_cpp.llama_sampler_free(sampler)
    return left


def bits(left):
    return sum(1 << token for token, value in left.items() if value > -1e30)


def main():
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    vocab = llama_cpp.llama_model_get_vocab(llama_cpp.llama_model_load_from_file(sys.argv[1].encode(), params))
    for row in range(ROWS):
        logits = [logit(row, token) for token in range(TOKENS)]
        typical = apply(llama_cpp.llama_sampler_init_typical(0.2 + 0.1 * (row % 7), 1), logits)
        sigma = apply(llama_cpp.llama_sampler_init_top_n_sigma(0.5 + 0.5 * (row % 5)), logits)
        xtc = apply(llama_cpp.llama_sampler_init_xtc(1.0, 0.02 + 0.05 * (row % 4), 1, 1), logits)
        dry = llama_cpp.llama_sampler_init_dry(vocab, 0.8, 1.75, row % 4, (40, 17)[row % 2], None, 0)
        for place in range(HISTORY):
            llama_cpp.llama_sampler_accept(dry, mixed(row, place, 7) % 3)
        left = apply(dry, logits)
        penalties = [f"{t}:{round(1000 * float(logits[t] - left[t]))}" for t in range(TOKENS) if left[t] != logits[t]]
        print(f"{bits(typical):08x} {bits(sigma):08x} {bits(xtc):08x}", *penalties)


if __name__ == "__main__":
    main()
