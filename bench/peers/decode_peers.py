#!/usr/bin/env python3
"""Decoding and prompts side by side: `pawl bench decode` and transformers on the same weights.

Writes a model folder with random weights of a well-known shape (or takes one), runs both on the
same number of threads, one after the other in rounds, and prints a table; the best round of each
counts. transformers runs in bfloat16 and in float32, greedily, with its key-value cache, no mask.

  bench/peers/decode_peers.py --pawl build/pawl --shape 135m --threads 1 --json out.json

Needs torch, transformers and safetensors.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

SHAPES = {
    "135m": ("llama", dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
                           num_attention_heads=9, num_key_value_heads=3, vocab_size=49152,
                           max_position_embeddings=8192, rope_theta=100000.0)),
    "0.5b": ("qwen2", dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
                           num_attention_heads=14, num_key_value_heads=2, vocab_size=151936,
                           max_position_embeddings=32768, rope_theta=1000000.0)),
    "1b": ("llama", dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                         num_attention_heads=32, num_key_value_heads=8, vocab_size=128256,
                         max_position_embeddings=131072, rope_theta=500000.0)),
}


def write_model(shape, folder):
    import torch
    import transformers

    family, sizes = SHAPES[shape]
    make = {"llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
            "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM)}[family]
    torch.manual_seed(1)
    config = make[0](tie_word_embeddings=True, **sizes)
    make[1](config).to(torch.bfloat16).save_pretrained(folder)


def best(function, rounds):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def run_transformers(folder, dtype, args):
    import torch
    import transformers

    torch.set_num_threads(args.threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    vocabulary = model.config.vocab_size
    tokens = torch.tensor([[7919 * (i + 1) % vocabulary for i in range(args.prompt)]])

    def step_time(batch):
        context = tokens[:, :args.context].repeat(batch, 1)
        past = model(context, use_cache=True, logits_to_keep=1).past_key_values
        token = context[:, :1]

        def step():
            model(token, past_key_values=past, use_cache=True)
            past.crop(-1)

        return best(step, args.steps)

    with torch.inference_mode():
        one, many = step_time(1), step_time(args.batch)
        prompt = best(lambda: model(tokens, use_cache=True, logits_to_keep=1), args.rounds)
    return {"engine": f"transformers {transformers.__version__} {str(dtype).split('.')[1]}",
            "step_ms": one * 1e3, "tokens_per_s": 1 / one, "batch_step_ms": many * 1e3,
            "batch_tokens_per_s": args.batch / many, "prefill_tokens_per_s": args.prompt / prompt}


def run_pawl(folder, args, dtype):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([args.pawl, "bench", "decode", "--model", folder, "--dtype", dtype,
                        "--threads", str(args.threads), "--batch", str(args.batch), "--context",
                        str(args.context), "--prompt", str(args.prompt), "--rounds",
                        str(args.rounds), "--json", out.name], check=True,
                       stdout=subprocess.DEVNULL)
        r = json.load(open(out.name))
    return {"engine": f"pawl {r['dtype']} ({r['kernels']})", "step_ms": r["step_us"] / 1e3,
            "tokens_per_s": r["tokens_per_s"], "batch_step_ms": r["batch_step_us"] / 1e3,
            "batch_tokens_per_s": r["batch_tokens_per_s"],
            "prefill_tokens_per_s": r["prefill_tokens_per_s"], "bench": r}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--shape", choices=SHAPES, default="135m")
    parser.add_argument("--model", help="a model folder instead of random weights")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        folder = args.model or scratch
        if not args.model:
            write_model(args.shape, scratch)
        rows = [run_pawl(folder, args, "stored"), run_pawl(folder, args, "int8"),
                run_transformers(folder, torch.bfloat16, args),
                run_transformers(folder, torch.float32, args)]
    print(f"{'engine':34}{'step ms':>10}{'tokens/s':>10}{'batch ms':>10}{'tokens/s':>10}"
          f"{'prompt tokens/s':>17}")
    for r in rows:
        print(f"{r['engine']:34}{r['step_ms']:10.3f}{r['tokens_per_s']:10.1f}"
              f"{r['batch_step_ms']:10.3f}{r['batch_tokens_per_s']:10.1f}"
              f"{r['prefill_tokens_per_s']:17.1f}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"shape": args.model or args.shape, "threads": args.threads,
                       "batch": args.batch, "context": args.context, "prompt": args.prompt,
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
