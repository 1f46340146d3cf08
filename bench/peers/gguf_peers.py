#!/usr/bin/env python3
"""GGUF files in Pawl and in llama.cpp: what they answer, how fast, and what each writes when it quantizes.

    gguf_peers.py quantize --model SmolLM2.gguf           # pawl quantize next to llama_model_quantize
    gguf_peers.py types --model SmolLM2.gguf --seeds 3    # each type next to its float twin, in both programs
    gguf_peers.py speed --model SmolLM2.gguf              # step and prompt on one thread
    gguf_peers.py memory --model SmolLM2.gguf --hidden 2048 --layers 24 --random-blocks   # peak memory next to the file

`--model` gives the tokenizer, and for `quantize` the weights. `types` and `speed` make models with random weights of
widths that are multiples of 256, so that every type is what it says (`--pure` of llama.cpp). The output is JSON; --out
writes a file too.

Log-probabilities are those of the tokens of a text (--text; default: pages of this project). `types` compares a file with
its twin, whose weights gguf-py dequantizes to F32: rms and largest difference, and the ratio of the sums. `speed` runs both
programs in turn and takes the best, of processor time where there is one thread. `memory` is the peak
of a command that loads the file and writes four tokens, as a share of the file.

Needs llama-cpp-python, gguf, numpy; `types` and `speed` also taskset.
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
import llama_cpp
import numpy as np
from gguf.quants import dequantize
from llama_cpp import Llama

ROOT = Path(__file__).resolve().parent.parent.parent
FTYPES = {
    "F16": 1, "BF16": 32, "Q8_0": 7, "Q6_K": 18, "Q5_K_M": 17, "Q5_K_S": 16, "Q5_1": 9, "Q5_0": 8, "Q4_K_M": 15,
    "Q4_K_S": 14, "Q4_1": 3, "Q4_0": 2, "IQ4_NL": 25, "IQ4_XS": 30, "Q3_K_L": 13, "Q3_K_M": 12, "Q3_K_S": 11, "Q2_K": 10,
}  # fmt: skip
# What `types` compares: the file types whose tensors have one type with `pure`.
PURE = {"Q8_0": 7, "Q6_K": 18, "Q5_K": 16, "Q5_1": 9, "Q5_0": 8, "Q4_K": 14, "Q4_1": 3, "Q4_0": 2, "IQ4_NL": 25,
        "IQ4_XS": 30, "IQ3_S": 26, "Q3_K": 11, "Q2_K": 10, "TQ1_0": 36, "TQ2_0": 37}  # fmt: skip
# Types that llama.cpp writes for other models only (experts) or with measured importances only. Their files are made of
# random blocks.
RANDOM_BLOCKS = ("MXFP4", "NVFP4", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S")
# Places of the halves of other types, where they are not at 0 alone.
HALVES = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "Q4_1": (0, 2), "Q5_1": (0, 2)}


def without_repacking():
    """Weights stay as files have them: llama.cpp's products for AMX end with SIGILL on some virtual machines."""
    defaults = llama_cpp.llama_model_default_params

    def params():
        out = defaults()
        out.use_extra_bufts = False
        return out

    llama_cpp.llama_cpp.llama_model_default_params = llama_cpp.llama_model_default_params = params


@llama_cpp.llama_log_callback
def silent(level, text, data):
    """llama.cpp has a line for each tensor."""


def default_text():
    return "\n".join((ROOT / name).read_text() for name in ("README.md", "docs/architecture.md"))


def llama_quantize(source, target, ftype, pure=False):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize, params.nthread, params.pure = ftype, True, 0, pure
    code = llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params))
    if code != 0:
        raise SystemExit(f"llama.cpp: {target}: error {code}")


def tokens_of(model, text, count):
    llama = Llama(model_path=str(model), vocab_only=True, verbose=False)
    ids = llama.tokenize(text.encode(), add_bos=False)[:count]
    llama.close()
    return ids


def log_probabilities(logits, ids):
    """`logits`: one row for each token, before it."""
    out = []
    for row, token in zip(logits, ids):
        most = row.max()
        out.append(float(row[token]) - float(most) - np.log(np.exp(row - most).sum(dtype=np.float64)))
    return np.array(out)


def by_llama(model, ids):
    llama = Llama(model_path=str(model), n_ctx=len(ids) + 8, n_batch=512, n_threads=1, logits_all=True, verbose=False)
    llama.eval([llama.token_bos(), *ids])  # as pawl score begins where there is no prompt
    out = log_probabilities(llama.scores[: len(ids)], ids)
    llama.close()
    return out


def by_pawl(pawl, model, ids, dtype="stored"):
    command = [pawl, "score", "--model", str(model), "--special", "--prompt", "", "--tokens", ",".join(map(str, ids)), "--json",
               "--dtype", dtype, "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return np.array(json.loads(done.stdout)["log_probabilities"])


def tensors_of(path):
    return {t.name: t for t in gguf.GGUFReader(path).tensors}


def compare_quantizers(args, folder):
    ids = tokens_of(args.model, args.text_content, args.positions)
    results = {}
    for name in args.types or FTYPES:
        ours, theirs = folder / "ours.gguf", folder / "theirs.gguf"
        started = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([args.pawl, "quantize", args.model, str(ours), "--type", name], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        before = time.process_time()
        llama_quantize(args.model, theirs, FTYPES[name])
        seconds = time.process_time() - before
        a, b = tensors_of(ours), tensors_of(theirs)
        equal = sum(np.array_equal(a[key].data, b[key].data) for key in b)
        of_theirs = by_llama(theirs, ids)
        of_ours = of_theirs if equal == len(b) == len(a) else by_llama(ours, ids)
        results[name] = {
            "tensors": len(b), "same_types": all(a[key].tensor_type == b[key].tensor_type for key in b) and len(a) == len(b),
            "same_bytes": equal, "nll_ratio": of_ours.sum() / of_theirs.sum(), "nll": -of_ours.mean(),
            "nll_pawl": -by_pawl(args.pawl, ours, ids).mean(), "bytes": ours.stat().st_size,
            "processor_s": ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime, "processor_s_llama": seconds,
        }
        print(name, results[name], file=sys.stderr)
        written(args, results)
    return results


def random_model(args, path, seed):
    """Like Llama, with the tokenizer of --model."""
    reader = gguf.GGUFReader(args.model)
    hidden, inner, layers, heads, kv_heads = args.hidden, args.hidden * 2, args.layers, args.hidden // 64, args.hidden // 256
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in (("context_length", 4096), ("embedding_length", hidden), ("feed_forward_length", inner), ("block_count", layers),
                       ("head_count", heads), ("head_count_kv", kv_heads)):
        getattr(writer, "add_" + key)(value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    for field in reader.fields.values():
        if field.name.startswith("tokenizer.ggml."):
            kind = field.types[0]
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)
    words = len(reader.fields["tokenizer.ggml.tokens"].data)
    random = np.random.default_rng(seed)

    def put(name, rows, cols, spread):
        writer.add_tensor(name, (spread * random.standard_normal((rows, cols), np.float32)).astype(np.float32))

    put("token_embd.weight", words, hidden, args.spread)
    writer.add_tensor("output_norm.weight", np.ones(hidden, np.float32))
    for i in range(layers):
        for name, rows, cols in (("attn_q", hidden, hidden), ("attn_k", kv_heads * 64, hidden), ("attn_v", kv_heads * 64, hidden),
                                 ("attn_output", hidden, hidden), ("ffn_gate", inner, hidden), ("ffn_up", inner, hidden),
                                 ("ffn_down", hidden, inner)):
            put(f"blk.{i}.{name}.weight", rows, cols, args.spread)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(hidden, np.float32))
    finish(writer)


def with_scales(name, blocks, scales):
    """Sets the scale of each block, as near as its type can. Returns the blocks."""
    if name == "MXFP4":
        blocks[:, 0] = np.clip(np.round(127 + np.log2(scales)), 0, 254)
    elif name == "NVFP4":
        sub = np.repeat(scales[:, None], 4, 1) * np.random.default_rng(7).uniform(0.5, 1.5, (len(blocks), 4))
        blocks[:, :4] = gguf.quants.NVFP4.fp32_to_ue4m3(sub.astype(np.float32))
    elif name == "IQ1_M":
        half = scales.astype(np.float16).view(np.uint16)
        parts = blocks[:, 48:56].view(np.uint16)
        for i in range(4):
            parts[:, i] = (parts[:, i] & 0x0FFF) | (((half >> (4 * i)) & 15) << 12)
        blocks[:, 48:56] = parts.view(np.uint8)
    else:
        for at in HALVES.get(name, (0,)):
            blocks[:, at : at + 2] = scales.astype(np.float16).view(np.uint8).reshape(-1, 2)
    return blocks


def random_blocks(name, shape, spread, random):
    """A matrix of random blocks of the type: weights of about this spread, a scale of its own for each block."""
    kind = gguf.GGMLQuantizationType[name]
    weights, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (shape[0] * shape[1] // weights, size), np.uint8)
    unit = 1.0 if name == "NVFP4" else 2.0**-6
    wide = dequantize(with_scales(name, blocks[:512].copy(), np.full(min(512, len(blocks)), unit)), kind)
    scales = unit * spread / wide.std() * random.uniform(0.5, 1.5, len(blocks))
    return with_scales(name, blocks, scales).reshape(shape[0], -1)


def random_file(source, target, name, seed, spread):
    """The model of `source` with random blocks of a type in place of its matrices."""
    reader, random, kind = gguf.GGUFReader(source), np.random.default_rng(seed), gguf.GGMLQuantizationType[name]
    writer = gguf.GGUFWriter(target, "llama")
    copy_settings(reader, writer)
    for t in reader.tensors:
        shape = [int(n) for n in reversed(t.shape)]
        if len(shape) == 1:
            writer.add_tensor(t.name, t.data)
        else:
            writer.add_tensor(t.name, random_blocks(name, shape, spread, random), raw_dtype=kind)
    finish(writer)


def copy_settings(reader, writer):
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in ("general.architecture", "general.file_type"):
            kind = field.types[0]
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def typed_file(args, plain, file, name, seed):
    """The random model of `plain` with matrices of a type."""
    if name in RANDOM_BLOCKS or args.random_blocks:
        random_file(plain, file, name, seed, args.spread)
    else:
        llama_quantize(plain, file, PURE[name], pure=True)


def float_twin(source, target):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    copy_settings(reader, writer)
    for t in reader.tensors:
        shape = [int(n) for n in reversed(t.shape)]
        writer.add_tensor(t.name, dequantize(t.data, t.tensor_type).astype(np.float32).reshape(shape))
    finish(writer)


def compare_types(args, folder):
    ids = tokens_of(args.model, args.text_content, args.positions)
    results = {}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        plain, file, twin = folder / "plain.gguf", folder / "type.gguf", folder / "twin.gguf"
        random_model(args, plain, seed)
        for name in args.types or [*PURE, *RANDOM_BLOCKS]:
            typed_file(args, plain, file, name, seed)
            float_twin(file, twin)
            theirs, their_twin = by_llama(file, ids), by_llama(twin, ids)
            ours, our_twin = by_pawl(args.pawl, file, ids), by_pawl(args.pawl, twin, ids)
            off, off_llama = ours - our_twin, theirs - their_twin
            results.setdefault(name, []).append({
                "seed": seed, "rms": float(np.sqrt((off**2).mean())), "rms_llama": float(np.sqrt((off_llama**2).mean())),
                "largest": float(abs(off).max()), "largest_llama": float(abs(off_llama).max()),
                "nll_ratio": ours.sum() / our_twin.sum(), "nll_ratio_llama": theirs.sum() / their_twin.sum(),
                "twins_differ": float(abs(our_twin - their_twin).max()),
            })
            print(name, results[name][-1], file=sys.stderr)
            written(args, results)
    return results


def pawl_times(args, model, folder):
    """The best of two rounds of `pawl bench decode`: of a step and of a prompt."""
    report = folder / "bench.json"
    command = ["taskset", "-c", args.core, args.pawl, "bench", "decode", "--model", str(model), "--batch", "1", "--threads", str(args.threads),
               "--context", str(args.prompt), "--prompt", str(args.prompt), "--rounds", "2", "--json", str(report)]  # fmt: skip
    subprocess.run(command, capture_output=True, check=True)
    found = json.loads(report.read_text())
    return found["step_us"] / 1e6, args.prompt / found["prefill_tokens_per_s"]


def llama_times(args, model, ids, steps=32):
    """The same in llama.cpp: each is the best of two, the step the mean of 32. One thread is timed by processor time."""
    clock = time.process_time if args.threads == 1 else time.perf_counter
    llama = Llama(model_path=str(model), n_ctx=1024, n_batch=512, n_threads=args.threads, n_threads_batch=args.threads, verbose=False)
    llama.eval(ids[:2])
    step = prompt = float("inf")
    for _ in range(2):
        llama.reset()
        begin = clock()
        llama.eval(ids)
        prompt = min(prompt, clock() - begin)
        begin = clock()
        for token in ids[:steps]:
            llama.eval([token])
        step = min(step, (clock() - begin) / steps)
    llama.close()
    return step, prompt


def peak_memory(args, model):
    code = ("import resource,subprocess,sys;subprocess.run(sys.argv[1:],capture_output=True,check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    command = [sys.executable, "-c", code, args.pawl, "generate", "--model", str(model), "--prompt", "The", "--max-tokens", "4"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1024


def compare_memory(args, folder):
    plain, file = folder / "plain.gguf", folder / "type.gguf"
    random_model(args, plain, 0)
    results = {}
    for name in args.types or [*PURE, *RANDOM_BLOCKS]:
        typed_file(args, plain, file, name, 0)
        weights = sum(int(np.prod(t.shape)) for t in gguf.GGUFReader(file).tensors)
        peak = peak_memory(args, file)
        results[name] = {"file": file.stat().st_size, "peak": peak, "memory": peak / file.stat().st_size, "bits_a_weight": 8 * peak / weights}
        print(name, results[name], file=sys.stderr)
        written(args, results)
    return results


def compare_speed(args, folder):
    ids = tokens_of(args.model, args.text_content, args.prompt)
    os.sched_setaffinity(0, {int(core) for core in args.core.split(",")})
    plain, file = folder / "plain.gguf", folder / "type.gguf"
    random_model(args, plain, 0)
    results = {}
    for name in args.types or [*PURE, *RANDOM_BLOCKS]:
        typed_file(args, plain, file, name, 0)
        ours, theirs = [], []
        for _ in range(args.runs):
            ours.append(pawl_times(args, file, folder))
            theirs.append(llama_times(args, file, ids))
        best = {key: min(run[i] for run in runs) for i, side in enumerate(("step_s", "prompt_s"))
                for key, runs in ((side, ours), (side + "_llama", theirs))}
        best["step"] = best["step_s"] / best["step_s_llama"]
        best["prompt"] = best["prompt_s"] / best["prompt_s_llama"]
        results[name] = best
        print(name, best, file=sys.stderr)
        written(args, results)
    return results


def written(args, results):
    """The report, and a file of it: after each type, so that a run that is ended leaves what it has."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    report = {"what": args.what, "model": Path(args.model).name, "positions": args.positions, "spread": args.spread, "llama_cpp_python": llama_cpp.__version__,
              "repacked": not args.no_repack, "cpu": cpu, "results": results}
    text = json.dumps(report, indent=1)
    if args.out:
        Path(args.out).write_text(text + "\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quantize", "types", "speed", "memory"))
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--pawl", default=str(ROOT / "build/pawl"))
    parser.add_argument("--types", nargs="*")
    parser.add_argument("--text", help="a file")
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--spread", type=float, default=0.02, help="standard deviation of all weights; transformers initialises them so")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of the prompt that `speed` reads")
    parser.add_argument("--runs", type=int, default=5, help="of both programs in turn, each with two rounds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", default="0", help="as taskset has it: 0, or 0,1")
    parser.add_argument("--random-blocks", action="store_true", help="of all types, not only of those that llama.cpp does not write")
    parser.add_argument("--no-repack", action="store_true", help="llama.cpp uses weights as files have them")
    parser.add_argument("--out")
    args = parser.parse_args()
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    if args.no_repack:
        without_repacking()
    args.text_content = Path(args.text).read_text() if args.text else default_text()
    compare = {"quantize": compare_quantizers, "types": compare_types, "speed": compare_speed, "memory": compare_memory}[args.what]
    with tempfile.TemporaryDirectory() as folder:
        print(written(args, compare(args, Path(folder))))


if __name__ == "__main__":
    main()
