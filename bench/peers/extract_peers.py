#!/usr/bin/env python3
"""Records per second of the shipped model, next to other engines in the same run.

  bench/peers/extract_peers.py --pawl build/pawl --texts 64 --json out.json

All engines get the same weights, the same texts and the same schema (contact), on two threads, and decode greedily:
Pawl with `extract --json-lines` in batches of 8 and of 1, transformers with xgrammar's logits processor in batches of 8 and
of 1, llama-cpp-python with the grammar that it makes of the schema. Loading is not timed. For each engine: records per
second, and how many of its records are valid for the schema.

Needs the packages torch, transformers, xgrammar, gguf, llama-cpp-python, jsonschema; an engine that is not installed says
so in its row.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_TOKENS = 200
NAMES = ["Ann Lee", "Tom Okafor", "Mia Brandt", "Luis Prado", "Sara Holm", "Ken Abe", "Eva Novak", "Omar Said"]
FIRMS = ["Harrow Ltd", "Northwind Traders", "Alder & Sons", "Kestrel Labs", "Blue Finch Books", "Moss Garden Supplies",
         "Ridge Motors", "Tern Shipping"]
JOBS = ["an engineer", "a buyer", "a nurse", "an editor"]
CITIES = ["Leeds", "Porto", "Bergen", "Lyon"]


def make_texts(count):
    texts = []
    for i in range(count):
        name, firm = NAMES[i % 8], FIRMS[(i // 8 + i) % 8]
        mail = name.split()[0].lower() + "@" + firm.split()[0].lower() + ".com"
        texts.append(f"{name} is {JOBS[i % 4]} at {firm} in {CITIES[i // 4 % 4]}. Phone: 020 7946 {i:04d}. Mail: {mail}.")
    return texts


def write_gguf(folder, out):
    """The shipped model as llama.cpp reads it: its weights as they are, in single precision."""
    import gguf
    import numpy
    import torch
    from safetensors import safe_open
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(layers)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    texts = [f"<unused {i}>" for i in range(config["vocab_size"])]
    types = [gguf.TokenType.UNUSED] * len(texts)
    for text, token in tokenizer["model"]["vocab"].items():
        texts[token], types[token] = text, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        texts[added["id"]], types[added["id"]] = added["content"], gguf.TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(texts)
    writer.add_token_types(types)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])

    def halves_to_pairs(weight):  # llama.cpp rotates neighbours, the model the two halves of a head
        rows, columns = weight.shape
        return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)

    places = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
             "lm_head.weight": "output.weight"}
    with safe_open(folder / "model.safetensors", "pt") as tensors:
        for key in tensors.keys():
            weight = tensors.get_tensor(key).to(torch.float32).numpy()
            name = whole.get(key)
            if name is None:
                _, _, layer, part = key.removesuffix(".weight").split(".", 3)
                name = f"blk.{layer}.{places[part]}.weight"
                if part in ("self_attn.q_proj", "self_attn.k_proj"):
                    weight = halves_to_pairs(weight)
            writer.add_tensor(name, numpy.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run_pawl(args, texts, schema, batch):
    command = [args.pawl, "extract", "--schema", str(args.schema), "--json-lines", "--batch", str(batch), "--threads",
               str(args.threads), "--max-tokens", str(MAX_TOKENS), "--draft", "off"]
    lines = [json.dumps(text) for text in texts]
    times = {}
    for part in (lines[:1], lines):  # the first run is loading, and one record
        begin = time.perf_counter()
        done = subprocess.run(command, input="\n".join(part) + "\n", capture_output=True, text=True)
        times[len(part)] = time.perf_counter() - begin
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
    return done.stdout.splitlines(), times[len(lines)] - times[1], len(lines) - 1


def run_transformers(args, texts, schema, batch):
    import torch
    import transformers
    import xgrammar
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model, padding_side="left")
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
    compiled = xgrammar.GrammarCompiler(info).compile_json_schema(json.dumps(schema), any_whitespace=False)
    bos = tokenizer.decode([model.config.bos_token_id])

    def work(some):
        inputs = tokenizer([bos + text + "\n" for text in some], return_tensors="pt", padding=True,
                           add_special_tokens=False)
        inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            out = model.generate(**inputs, max_new_tokens=MAX_TOKENS, do_sample=False,
                                 logits_processor=[xgrammar.contrib.hf.LogitsProcessor(compiled)])
        return tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1]:], skip_special_tokens=True)

    work(texts[:batch])
    begin = time.perf_counter()
    records = [r for i in range(0, len(texts), batch) for r in work(texts[i:i + batch])]
    return records, time.perf_counter() - begin, len(texts)


def run_llama_cpp(args, texts, schema, batch):
    import llama_cpp
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        write_gguf(pathlib.Path(args.model), file.name)
        model = llama_cpp.Llama(file.name, n_ctx=1024, n_threads=args.threads, n_threads_batch=args.threads, verbose=False)
        grammar = llama_cpp.LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False)

        def work(text):
            ids = [model.token_bos()] + model.tokenize((text + "\n").encode(), add_bos=False, special=False)
            done = model.create_completion(ids, max_tokens=MAX_TOKENS, temperature=0, grammar=grammar)
            return done["choices"][0]["text"]

        work(texts[0])
        begin = time.perf_counter()
        records = [work(text) for text in texts]
        return records, time.perf_counter() - begin, len(texts)


def valid_share(records, schema):
    import jsonschema
    good = 0
    for record in records:
        try:
            jsonschema.validate(json.loads(record), schema)
            good += 1
        except (ValueError, jsonschema.ValidationError):
            pass
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default=str(ROOT / "build/pawl"))
    parser.add_argument("--model", default=str(ROOT / "models/tiny-extract"))
    parser.add_argument("--schema", type=pathlib.Path, default=ROOT / "schemas/examples/contact.json")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts, the engines taking turns")
    parser.add_argument("--json", help="write the results to this file")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    texts, schema = make_texts(args.texts), json.loads(args.schema.read_text())
    engines = [("pawl", run_pawl, 8), ("pawl", run_pawl, 1), ("transformers + xgrammar", run_transformers, 8),
               ("transformers + xgrammar", run_transformers, 1), ("llama-cpp-python", run_llama_cpp, 1)]
    rows = [{"engine": name, "batch": batch, "records_per_second": 0, "valid": None, "problem": ""}
            for name, _, batch in engines]
    for _ in range(args.rounds):
        for row, (_, run, batch) in zip(rows, engines):
            if row["problem"]:
                continue
            try:
                records, seconds, count = run(args, texts, schema, batch)
            except Exception as error:  # the engines' own exceptions have no common base
                row["problem"] = f"{type(error).__name__}: {str(error)[:200]}"
                continue
            row["records_per_second"] = max(row["records_per_second"], round(count / seconds, 1))
            row["valid"] = valid_share(records, schema)
    print(f"{'engine':<26}{'batch':>6}{'records/s':>11}{'valid':>8}  of {args.texts}")
    for row in rows:
        print(f"{row['engine']:<26}{row['batch']:>6}{row['records_per_second']:>11}{row['valid'] or 0:>8}  {row['problem']}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"texts": args.texts, "threads": args.threads, "rows": rows}, indent=1)
                                           + "\n")
    return 1 if any(row["problem"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
