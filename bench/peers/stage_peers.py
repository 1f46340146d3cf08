#!/usr/bin/env python3
"""Sampler stages next to llama-cpp-python on the same logits: typical, top-n-sigma, XTC forced on, DRY.

    pip install llama-cpp-python
    bench/peers/stage_peers.py --model SmolLM2-135M-Instruct.Q4_1.gguf --out bench/results/stage_peers-DATE.json

llama.cpp reads texts of bench/extract token by token; the logits behind a token are a row. Each stage gets the same rows,
with parameters that change from row to row. A row counts as different where another set of tokens is left, or where a
penalty of DRY differs by more than 1e-5 of its size. For such rows the report has how far the tokens in question are from
the limit, at most: in logits (top-n-sigma), in probability (XTC), or in the sum of probabilities or in surprise (typical).

With --top N a row has its N most probable tokens alone, as behind top-k. llama.cpp adds up in float32, which tells for
typical over a whole vocabulary; `as_in_float64` counts the different rows of which numpy in float64 keeps what Pawl keeps.
"""

import argparse
import ctypes
import json
import struct
import subprocess
from pathlib import Path

import llama_cpp
import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
STAGES = ("typical", "top-n-sigma", "xtc", "dry")
BREAKERS = (b"\n", b":", b'"', b"*")  # the default of both


def parameters(stage, row):
    return {"typical": (0.2 + 0.15 * (row % 6), 0, 0), "top-n-sigma": (0.5 + 0.5 * (row % 6), 0, 0), "xtc": (1, 0.02 + 0.03 * (row % 6), 0),
            "dry": (1.75, row % 4, (4096, 64, 20)[row % 3])}[stage]


def peer_stage(stage, values, vocab, history):
    if stage == "typical":
        return llama_cpp.llama_sampler_init_typical(values[0], 1)
    if stage == "top-n-sigma":
        return llama_cpp.llama_sampler_init_top_n_sigma(values[0])
    if stage == "xtc":
        return llama_cpp.llama_sampler_init_xtc(values[0], values[1], 1, 1)
    breakers = (ctypes.c_char_p * len(BREAKERS))(*BREAKERS)
    made = llama_cpp.llama_sampler_init_dry(vocab, 0.8, values[0], int(values[1]), int(values[2]), breakers, len(BREAKERS))
    for token in history:
        llama_cpp.llama_sampler_accept(made, token)
    return made


def peer_left(sampler, logits):
    size = len(logits)
    data = (llama_cpp.llama_token_data * size)()
    view = np.frombuffer(data, dtype=np.dtype([("id", "i4"), ("logit", "f4"), ("p", "f4")]))
    view["id"] = np.arange(size)
    view["logit"] = logits
    array = llama_cpp.llama_token_data_array(data=data, size=size, selected=-1, sorted=False)
    llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
    llama_cpp.llama_sampler_free(sampler)
    left = np.full(size, -np.inf, dtype=np.float32)
    # A stage may leave the end of the list.
    first = (ctypes.addressof(array.data.contents) - ctypes.addressof(data)) // ctypes.sizeof(llama_cpp.llama_token_data)
    kept = view[first:first + array.size]
    left[kept["id"]] = kept["logit"]
    return left


def distance(stage, values, logits, tokens):
    """How far these tokens are from the limit of the stage, the one that is furthest."""
    x = logits.astype(np.float64)
    p = np.exp(x - x.max())
    p /= p.sum()
    if stage == "top-n-sigma":
        return float(np.abs(x[tokens] - (x.max() - values[0] * x.std())).max())
    if stage == "xtc":
        return float(np.abs(p[tokens] - values[1]).max())
    surprise = -np.log(np.maximum(p, 1e-300))
    shift = np.abs(surprise - (p * surprise).sum())
    order = np.argsort(shift, kind="stable")
    sums = np.cumsum(p[order])
    last = int(np.searchsorted(sums, values[0]))  # the last one that is kept
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    return float(max(min(abs(sums[place[t]] - values[0]), abs(shift[t] - shift[order[last]])) for t in tokens))


def typical_kept(share, logits):
    x = logits.astype(np.float64)
    p = np.exp(x - x.max())
    p /= p.sum()
    surprise = -np.log(np.maximum(p, 1e-300))
    order = np.argsort(np.abs(surprise - (p * surprise).sum()), kind="stable")
    return set(order[:int(np.searchsorted(np.cumsum(p[order]), share)) + 1].tolist())


def rows_of(options):
    """(tokens before, logits behind them)."""
    model = llama_cpp.Llama(options.model, n_ctx=2048, logits_all=True, n_threads=1, n_threads_batch=1, verbose=False)
    lines = (ROOT / "bench/extract/orders.jsonl").read_text().splitlines()
    count = 0
    for line in lines:
        # Texts that repeat themselves: DRY has something to do.
        text = json.loads(line)["text"]
        tokens = model.tokenize((text + " " + text).encode())[:options.longest]
        model.reset()
        model.eval(tokens)
        for i in range(len(tokens) // 3, len(tokens), 7):
            logits = np.array(model.scores[i], dtype=np.float32)
            if options.top:
                # Numbers of tokens stay small and their order changes; DRY has the whole row.
                logits = np.sort(logits)[:-options.top - 1:-1].copy()
            yield model, tokens[:i + 1], logits
            count += 1
            if count == options.rows:
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tool", default="build/bin/stage_rows")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--longest", type=int, default=400)
    parser.add_argument("--top", type=int, default=0)
    parser.add_argument("--out")
    options = parser.parse_args()
    pawl = subprocess.Popen([options.tool, options.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    report = {"model": Path(options.model).name, "llama_cpp_python": llama_cpp.__version__, "rows": 0, "vocabulary": 0,
              "stages": {stage: {"changed": 0, "different": 0, "furthest_from_the_limit": 0, "left_on_average": 0} for stage in STAGES}}
    for row, (model, history, logits) in enumerate(rows_of(options)):
        report["rows"] += 1
        report["vocabulary"] = len(logits)
        vocab = llama_cpp.llama_model_get_vocab(model.model)
        for number, stage in enumerate(STAGES):
            if options.top and stage == "dry":
                continue
            values = parameters(stage, row)
            pawl.stdin.write(struct.pack("=i3fi", number, *values, len(history)) + np.array(history, dtype=np.int32).tobytes() +
                             struct.pack("=i", len(logits)) + logits.tobytes())
            pawl.stdin.flush()
            own = np.frombuffer(pawl.stdout.read(4 * len(logits)), dtype=np.float32)
            other = peer_left(peer_stage(stage, values, vocab, history), logits)
            counts = report["stages"][stage]
            counts["changed"] += bool((other != logits).any())
            counts["left_on_average"] += int((other > -1e30).sum())
            if stage == "dry":
                lost, wanted = logits.astype(np.float64) - own, logits.astype(np.float64) - other
                counts["different"] += bool((np.abs(lost - wanted) > 1e-5 * np.maximum(1, np.abs(wanted))).any())
                continue
            tokens = np.nonzero((own > -1e30) != (other > -1e30))[0]
            if len(tokens):
                counts["different"] += 1
                if stage == "typical":
                    exact = typical_kept(np.float64(np.float32(values[0])), logits)
                    counts["as_in_float64"] = counts.get("as_in_float64", 0) + (exact == set(np.nonzero(own > -1e30)[0].tolist()))
                counts["furthest_from_the_limit"] = max(counts["furthest_from_the_limit"], distance(stage, values, logits, tokens))
    pawl.stdin.close()
    pawl.wait()
    if options.top:
        del report["stages"]["dry"]
    for counts in report["stages"].values():
        counts["left_on_average"] = round(counts["left_on_average"] / report["rows"], 1)
    print(json.dumps(report, indent=1))
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
