#!/usr/bin/env python3
"""Processor time of two builds for the same work, in turn.

    scripts/compare_builds.sh OLD NEW [--rounds 7] [--data DIR] [--only decode families maskbench] [--json FILE]

OLD and NEW are build folders (or commands). Each round runs the work with both builds, one after the other, and the order
changes from round to round. A row of the table is the median of the rounds' ratios NEW / OLD, with the smallest and
largest. Exit code 1 when a median is above 1.03 (p99.9 of masks: 1.15): --bound, --tail-bound.

  decode       pawl bench decode, one thread: microseconds of a step, of a step of 8 sequences and of a token of a prompt, the
               least of --steps tries. By the clock: the process also reads memory for a fixed time, so its own time says little
  families     the same for small models of random weights of each of FAMILIES, as int8. Needs numpy
  masks        pawl maskbench over 300 files, --thread-time: average, p99, p99.9 of the masks; time to the first mask
  maskbench    the same, processor time of the whole process
  server       processor time of `pawl serve` for the requests of bench/server/load.py (/v1/extract, 2 clients for each of
               1 and 8 places). They prefer no text ("prefer_text": 0), so that a build
               without that default does the same work
  draft        pawl bench draft --replay, processor time of the process

Between 2 and 4 % a median says little on a busy machine: count instructions (valgrind --tool=callgrind) and decide by
those, within 1 %. The files of MaskBench and a tokenizer are looked for in --data, or in PAWL_DATA_DIR; without them the
rows that need them are left out, and the last line says so.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/server"))
import load  # noqa: E402

TEXTS = ["Ann Lee works at Harrow Ltd. Phone: 020 7946 0018.", "Write to Bo Ek at bo.ek@harrow.com.", "Joan Ray, engineer, Leeds.",
         "Call Pete on 0161 496 0000 or write to pete@pete.example.", "Director Mia Wolf of Blue Harbour met Tom in Porto."]


def seconds_of(words):
    """Processor time of a command and of what it starts, and its output."""
    begin = os.times()
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    end = os.times()
    if run.returncode != 0:
        sys.exit(f"compare_builds.py: {' '.join(map(str, words))}: exit code {run.returncode}\n{run.stderr}")
    return end.children_user + end.children_system - begin.children_user - begin.children_system


# Their settings next to those of all.
GEMMA = dict(hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=64, sliding_window=4096)
FAMILIES = {"Llama": {}, "Mistral": dict(sliding_window=None), "Qwen2": {}, "Qwen3": {},
            "Gemma2": dict(GEMMA, attn_logit_softcapping=50.0, final_logit_softcapping=30.0), "Gemma3": dict(GEMMA, rope_local_base_freq=1e4)}


def decode(pawl, options, name="decode", words=()):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        seconds_of([pawl, "bench", "decode", "--threads", "1", "--rounds", options.steps, *(words or ("--model", options.model)), "--json", out])
        report = json.loads(out.read_text(encoding="utf-8"))
    return {f"{name}, step": report["step_us"], f"{name}, batch of 8": report["batch_step_us"],
            f"{name}, prompt": 1e6 / report["prefill_tokens_per_s"]}


def write_family(folder, name):
    """A model of four layers and random halves."""
    import numpy
    random = numpy.random.default_rng(1)
    tokenizer = (ROOT / "models/tiny-extract/tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    words = json.loads((ROOT / "models/tiny-extract/config.json").read_text(encoding="utf-8"))["vocab_size"]
    hidden, inner, layers, heads, kv_heads, head = 768, 2048, 4, 12, 4, 64
    config = dict(architectures=[name + "ForCausalLM"], model_type=name.lower(), hidden_size=hidden, intermediate_size=inner,
                  num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head, vocab_size=words,
                  max_position_embeddings=4096, rms_norm_eps=1e-6, rope_theta=1e4, tie_word_embeddings=True) | FAMILIES[name]
    if name.startswith("Gemma"):
        config["model_type"] += "_text" if name == "Gemma3" else ""
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shapes = {"model.embed_tokens.weight": (words, hidden), "model.norm.weight": (hidden,)}
    for i in range(layers):
        at = f"model.layers.{i}."
        for part, rows in (("q", heads * head), ("k", kv_heads * head), ("v", kv_heads * head)):
            shapes[f"{at}self_attn.{part}_proj.weight"] = (rows, hidden)
            if name == "Qwen2":
                shapes[f"{at}self_attn.{part}_proj.bias"] = (rows,)
        shapes[at + "self_attn.o_proj.weight"] = (hidden, heads * head)
        for part in ("gate", "up"):
            shapes[f"{at}mlp.{part}_proj.weight"] = (inner, hidden)
        shapes[at + "mlp.down_proj.weight"] = (hidden, inner)
        norms = ["input_layernorm", "post_attention_layernorm"]
        if name.startswith("Gemma"):
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        for norm in norms:
            shapes[f"{at}{norm}.weight"] = (hidden,)
        if name in ("Qwen3", "Gemma3"):
            shapes |= {f"{at}self_attn.{part}_norm.weight": (head,) for part in "qk"}
    header, data = {}, []
    for tensor, shape in shapes.items():
        begin = sum(map(len, data))
        data.append((0.03 * random.standard_normal(shape)).astype(numpy.float16).tobytes())
        header[tensor] = {"dtype": "F16", "shape": shape, "data_offsets": [begin, begin + len(data[-1])]}
    told = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(told).to_bytes(8, "little") + told + b"".join(data))


def families(pawl, options):
    figures = {}
    for name in FAMILIES:
        folder = Path(options.scratch) / name
        if not folder.is_dir():
            folder.mkdir()
            write_family(folder, name)
        figures |= decode(pawl, options, name, ("--dtype", "int8", "--model", folder))
    return figures


def maskbench(pawl, options):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [pawl, "maskbench", "--tokenizer", options.tokenizer, "--data", options.files, "--limit", options.limit, "--thread-time", "--json", out]
        whole = seconds_of(words)
        report = json.loads(out.read_text(encoding="utf-8"))
    return {"masks, average": report["tbm_us"]["avg"], "masks, p99": report["tbm_us"]["p99"], "masks, p99.9": report["tbm_us"]["p99.9"],
            "first mask, average": report["ttfm_us"]["avg"], "maskbench": whole}


def draft(pawl, options):
    return {"draft": seconds_of([pawl, "bench", "draft", "--replay", options.files, "--tokenizer", options.tokenizer, "--limit", options.drafted])}


def server(pawl, options):
    schema = json.loads((ROOT / "schemas/examples/contact.json").read_text(encoding="utf-8"))
    out = {}
    for batch in (1, 8):
        one = load.Server(argparse.Namespace(attach=None, pawl=str(pawl), model=str(options.model)), "--threads", "1", "--batch", str(batch))

        async def send(count, port=one.port, batch=batch):
            texts = iter([TEXTS[i % len(TEXTS)] for i in range(count)])

            async def client():
                for text in texts:
                    reply = await load.call(port, "/v1/extract", {"schema": schema, "text": text, "max_tokens": 100, "prefer_text": 0})
                    if reply.status != 200:
                        sys.exit(f"compare_builds.py: the server answered {reply.status}: {reply.body[:200]}")

            await asyncio.gather(*(client() for _ in range(2 * batch)))

        try:
            asyncio.run(send(10))  # the grammar is compiled, and its masks are found
            begin = one.cpu()
            asyncio.run(send(options.requests))
            out[f"server, batch {batch}"] = one.cpu() - begin
        finally:
            one.process.terminate()
            one.process.wait()
    return out


WORK = {"decode": decode, "families": families, "maskbench": maskbench, "server": server, "draft": draft}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=list(WORK), default=list(WORK))
    parser.add_argument("--data", default=os.environ.get("PAWL_DATA_DIR"), help="folder with maskbench-dev and tokenizers (default: PAWL_DATA_DIR)")
    parser.add_argument("--model", type=Path, default=ROOT / "models/tiny-extract", help="a folder that both builds can read (default: the model that ships)")
    parser.add_argument("--tokenizer-name", default="llama3_1", help="in the folder tokenizers of --data")
    parser.add_argument("--limit", type=int, default=300, help="files of MaskBench")
    parser.add_argument("--drafted", type=int, default=60, help="files of MaskBench for drafts")
    parser.add_argument("--requests", type=int, default=200, help="requests to the server for each batch size")
    parser.add_argument("--steps", type=int, default=5, help="rounds of bench decode in each of ours")
    parser.add_argument("--bound", type=float, default=1.03)
    parser.add_argument("--tail-bound", type=float, default=1.15)
    parser.add_argument("--json", type=Path, help="writes all figures to this file")
    options = parser.parse_args()
    builds = []
    for place in (options.old, options.new):
        pawl = place / "pawl" if place.is_dir() else place
        if not pawl.is_file():
            sys.exit(f"compare_builds.py: {pawl} is missing")
        builds.append(pawl.resolve())
    work, left_out = list(options.only), []
    data = Path(options.data) if options.data else None
    options.files = data / "maskbench-dev" if data else None
    options.tokenizer = data / "tokenizers" / options.tokenizer_name if data else None
    if not data or not options.files.is_dir() or not options.tokenizer.exists():
        left_out = [name for name in work if name in ("maskbench", "draft")]
        work = [name for name in work if name not in left_out]

    figures = {}  # row to a pair of lists
    scratch = tempfile.TemporaryDirectory()
    options.scratch = scratch.name
    for number in range(options.rounds):
        for name in work:
            for which in ((0, 1), (1, 0))[number % 2]:
                for row, value in WORK[name](builds[which], options).items():
                    figures.setdefault(row, ([], []))[which].append(value)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        if options.json:  # each round, for runs that are cut
            options.json.write_text(json.dumps({"rounds": number + 1, "figures": figures}, indent=1) + "\n", encoding="utf-8")

    slower = []
    print(f"{'':22} {'old':>10} {'new':>10} {'ratio':>7}  smallest to largest")
    for row, (old, new) in figures.items():
        ratios = [b / a for a, b in zip(old, new) if a > 0]
        if not ratios:
            left_out.append(row)
            continue
        median = statistics.median(ratios)
        bound = options.tail_bound if "p99.9" in row else options.bound
        if median > bound:
            slower.append(row)
        print(f"{row:22} {statistics.median(old):10.4g} {statistics.median(new):10.4g} {median:7.3f}  {min(ratios):.3f} to {max(ratios):.3f}"
              + (f"  above {bound}" if median > bound else ""))
    for name in left_out:
        print(f"left out: {name} (needs --data with maskbench-dev and tokenizers/{options.tokenizer_name})")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
