#!/usr/bin/env python3
"""Quantized GGUF files in Pawl and in llama.cpp: exactness, speed and memory of each type, side by side.

    bench/peers/gguf_peers.py --pawl build/pawl --json out.json [--types Q4_K Q5_0] [--only exactness|speed]

The files are made here, with random weights: llama.cpp's own quantizer (ggml_quantize_chunk) packs every matrix with the
type, and gguf-py unpacks the same bytes into a twin with F32 weights.

Exactness. A small model, `--seeds` of them, reads `--positions` random tokens. The log-probability of each token is compared
with that of the F32 twin, in each engine: root mean square (rms) and largest difference, and the ratio of the summed
log-probabilities (NLL ratio).

Speed. One stack of layers of width 2048 (some 240 M weights), one thread pinned to a core. The engines run in turn; the best
run of each counts. Both are timed by processor time: a step reads one token after 16, a prompt has 128 tokens.

Memory. The largest resident set of `pawl score` with one token, over the size of the file. Pages of the file count.

Needs gguf, numpy and llama-cpp-python.
"""
import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gguf
import numpy as np

TYPES = ["Q8_0", "Q6_K", "Q5_K", "Q5_1", "Q5_0", "Q4_K", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "MXFP4", "Q3_K", "Q2_K",
         "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ2_0", "TQ1_0"]
SMALL = {"width": 512, "inner": 1024, "layers": 4, "heads": 8, "kv_heads": 4, "vocabulary": 4096}
WIDE = {"width": 2048, "inner": 8192, "layers": 4, "heads": 32, "kv_heads": 8, "vocabulary": 4096}


def ggml():
    import llama_cpp

    folder = Path(llama_cpp.__file__).parent / "lib"
    library = ctypes.CDLL(str(folder / "libggml-base.so"))
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return library


def quantized(library, kind, matrix):
    """The bytes of a matrix (rows, columns) as llama.cpp packs it."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rows, columns = matrix.shape
    out = np.zeros((rows, columns // block * size), np.uint8)
    source = np.ascontiguousarray(matrix, np.float32)
    # Some types below three bits want the importance of each column; all are alike here.
    importance = np.ones(columns, np.float32)
    library.ggml_quantize_chunk(int(kind), source.ctypes.data, out.ctypes.data, 0, rows, columns, importance.ctypes.data)
    return out


def tensors(shape, seed):
    """(name, values) of a llama: norms near 1, matrices scaled so that the logits spread."""
    rng = np.random.default_rng(seed)
    head = shape["width"] // shape["heads"]
    size = {"attn_q": (shape["width"], shape["width"]), "attn_k": (shape["kv_heads"] * head, shape["width"]),
            "attn_v": (shape["kv_heads"] * head, shape["width"]), "attn_output": (shape["width"], shape["width"]),
            "ffn_gate": (shape["inner"], shape["width"]), "ffn_up": (shape["inner"], shape["width"]), "ffn_down": (shape["width"], shape["inner"])}

    def matrix(rows, columns, gain=1.0):
        return (rng.standard_normal((rows, columns), np.float32) * np.float32(gain / columns**0.5))

    yield "token_embd.weight", matrix(shape["vocabulary"], shape["width"], shape["width"] ** 0.5)
    for layer in range(shape["layers"]):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", (1 + 0.1 * rng.standard_normal(shape["width"])).astype(np.float32)
        for name, (rows, columns) in size.items():
            yield f"blk.{layer}.{name}.weight", matrix(rows, columns)
    yield "output_norm.weight", np.ones(shape["width"], np.float32)
    yield "output.weight", matrix(shape["vocabulary"], shape["width"], 2.0)


def head_of(path, shape):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(shape["layers"])
    writer.add_context_length(4096)
    writer.add_embedding_length(shape["width"])
    writer.add_feed_forward_length(shape["inner"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape["width"] // shape["heads"])
    writer.add_vocab_size(shape["vocabulary"])
    # A vocabulary of bytes and of filler tokens: what is measured reads ids, not texts.
    writer.add_tokenizer_model("llama")
    names = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{byte:02X}>".encode() for byte in range(256)]
    names += [f"filler{i}".encode() for i in range(len(names), shape["vocabulary"])]
    writer.add_token_list(names)
    writer.add_token_scores([0.0] * len(names))
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (len(names) - 259))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    return writer


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_pair(library, folder, shape, kind, seed, twin):
    """A file of the type, and its F32 twin if it is asked for."""
    paths = [folder / f"{kind.name}-{seed}.gguf", folder / f"{kind.name}-{seed}-f32.gguf"]
    writers = [head_of(path, shape) for path in (paths if twin else paths[:1])]
    for name, values in tensors(shape, seed):
        if values.ndim == 1:
            for writer in writers:
                writer.add_tensor(name, values)
            continue
        # The table of embeddings is a row a token and stays exact in both.
        packed = gguf.GGMLQuantizationType.Q8_0 if name == "token_embd.weight" else kind
        data = quantized(library, packed, values)
        writers[0].add_tensor(name, data, raw_dtype=packed)
        if twin:
            writers[1].add_tensor(name, gguf.quants.dequantize(data, packed).astype(np.float32).reshape(values.shape))
    for writer in writers:
        finish(writer)
    return paths


# -- exactness --------------------------------------------------------------------------------------------------------


def llama_scores(path, ids, threads=1):
    from llama_cpp import Llama

    model = Llama(model_path=str(path), n_ctx=len(ids) + 8, n_batch=512, n_threads=threads, n_threads_batch=threads, logits_all=True, verbose=False)
    model.eval(ids)
    logits = np.array(model.scores[:len(ids)], np.float64)
    model.close()
    logits -= logits.max(1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(1, keepdims=True))
    return np.array([logits[i, ids[i + 1]] for i in range(len(ids) - 1)])


def pawl_scores(options, path, ids):
    run = subprocess.run([options.pawl, "score", "--model", path, "--prompt", "", "--tokens", ",".join(map(str, ids[1:])), "--json", "--threads", "1"],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"gguf_peers.py: pawl: {run.stderr.strip()}")
    return np.array(json.loads(run.stdout)["log_probabilities"])[-(len(ids) - 1):]


def exactness(options, library, kind):
    """rms, largest difference and NLL ratio against the F32 twin, for each engine; the worst of the seeds."""
    worst = {}
    for seed in range(1, options.seeds + 1):
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            path, twin = write_pair(library, Path(folder), SMALL, kind, seed, True)
            rng = np.random.default_rng(seed)
            ids = [1] + [int(i) for i in rng.integers(259, SMALL["vocabulary"], options.positions)]
            for engine, scores in (("pawl", lambda file: pawl_scores(options, file, ids)), ("llama.cpp", lambda file: llama_scores(file, ids))):  # pylint: disable=cell-var-from-loop
                ours, exact = scores(path), scores(twin)
                off = ours - exact
                found = {"rms": float(np.sqrt(np.mean(off**2))), "largest": float(np.abs(off).max()), "nll_off": float(abs(ours.sum() / exact.sum() - 1))}
                worst[engine] = {key: max(value, worst.get(engine, {}).get(key, 0)) for key, value in found.items()}
    return worst


# -- speed ------------------------------------------------------------------------------------------------------------

LLAMA_SPEED = """
import sys, time
from llama_cpp import Llama
model = Llama(model_path=sys.argv[1], n_ctx=512, n_batch=512, n_threads=int(sys.argv[2]), n_threads_batch=int(sys.argv[2]), verbose=False)
ids = [259 + 7919 * i % 3800 for i in range(128)]
def best(work, rounds):
    times = []
    for _ in range(rounds):
        begin = time.process_time() if sys.argv[2] == "1" else time.perf_counter()
        work()
        times.append((time.process_time() if sys.argv[2] == "1" else time.perf_counter()) - begin)
    return min(times)
def prompt():
    model.reset()
    model.eval(ids)
model.eval(ids[:16])
def step():
    model.n_tokens = 16
    model.eval(ids[16:17])
print(best(step, 12), best(prompt, 2))
"""


def llama_speed(options, path, threads):
    run = subprocess.run([*options.pin, sys.executable, "-c", LLAMA_SPEED, path, str(threads)], capture_output=True, text=True, check=True)
    step, prompt = map(float, run.stdout.split()[-2:])
    return {"step_ms": step * 1e3, "prompt_ms": prompt * 1e3}


def pawl_speed(options, path, threads):
    run = subprocess.run([*options.pin, options.pawl, "bench", "decode", "--model", path, "--threads", str(threads), "--batch", "1", "--context", "16",
                          "--prompt", "128", "--rounds", "2", "--json", "-"], capture_output=True, text=True, check=True)
    report = json.loads(run.stdout)
    return {"step_ms": report["step_us"] / 1e3, "prompt_ms": 128e3 / report["prefill_tokens_per_s"]}


def speed(options, library, kind):
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        path, _ = write_pair(library, Path(folder), WIDE, kind, 1, False)
        best = {}
        for _ in range(options.rounds):
            for engine, run in (("pawl", pawl_speed), ("llama.cpp", llama_speed)):
                for key, value in run(options, str(path), 1).items():
                    entry = best.setdefault(engine, {})
                    entry[key] = min(value, entry.get(key, value))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        del before
        subprocess.run([sys.executable, "-c", "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
                        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", options.pawl, "score", "--model", path, "--prompt", "", "--tokens", "300"],
                       check=True, stdout=(out := tempfile.TemporaryFile("w+")))
        out.seek(0)
        best["file_mb"] = path.stat().st_size / 1e6
        best["peak_of_file"] = int(out.read().split()[-1]) * 1024 / path.stat().st_size
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--types", nargs="+", default=TYPES, choices=TYPES)
    parser.add_argument("--only", choices=["exactness", "speed"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cpu", type=int, default=0, help="the core that speed runs on; -1: not pinned")
    parser.add_argument("--scratch", help="folder for the models")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.pin = ["taskset", "-c", str(options.cpu)] if options.cpu >= 0 else []
    library, rows = ggml(), {}
    begin = time.time()
    for name in options.types:
        kind, row = gguf.GGMLQuantizationType[name], {}
        if options.only != "speed":
            row["exactness"] = exactness(options, library, kind)
            (ours, theirs) = row["exactness"]["pawl"], row["exactness"]["llama.cpp"]
            print(f"{name:8} rms {ours['rms']:.5f} ({ours['rms'] / theirs['rms']:.2f} of llama.cpp's)  largest {ours['largest']:.4f} ({theirs['largest']:.4f})"
                  f"  NLL off {ours['nll_off']:.1e} ({theirs['nll_off']:.1e})", flush=True)
        if options.only != "exactness":
            row["speed"] = speed(options, library, kind)
            (ours, theirs) = row["speed"]["pawl"], row["speed"]["llama.cpp"]
            print(f"{name:8} step {ours['step_ms']:.2f} ms ({ours['step_ms'] / theirs['step_ms']:.2f} of llama.cpp's)  prompt {ours['prompt_ms']:.0f} ms "
                  f"({ours['prompt_ms'] / theirs['prompt_ms']:.2f})  memory {row['speed']['peak_of_file']:.2f} of the file", flush=True)
        rows[name] = row
        if options.json:
            report = {"threads": 1, "seeds": options.seeds, "positions": options.positions, "rounds": options.rounds, "seconds": round(time.time() - begin),
                      "load": os.getloadavg()[0], "types": rows}
            Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
