#!/usr/bin/env python3
"""`pawl serve` next to llama.cpp's server (the one of the package llama-cpp-python): the same GGUF file, the same
schemas and texts, one run, the two in turn.

  python3 -m venv VENV && VENV/bin/pip install "llama-cpp-python[server]" gguf safetensors numpy jsonschema
  VENV/bin/python bench/server/peer_llamacpp.py [--rounds 3] [--texts 40] [--json FILE]

The model that ships is written as GGUF (bf16 weights as f32, the same tokens), with a chat template that is its prompt.
Both servers get one thread for the model. Told is, for 1 and for 8 clients: the time to the first piece of content, the
output's characters per second (both write the same language, but not in the same tokens), requests per second, the
processor time that an output took, and how many outputs are valid for their schema. Greedy, at most --max-tokens tokens.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import load  # noqa: E402

TEMPLATE = "{{ bos_token }}{{ messages[-1]['content'] }}\n"


def write_gguf(folder, path):
    import gguf
    import numpy as np
    from safetensors import safe_open

    config = json.load(open(os.path.join(folder, "config.json")))
    tokenizer = json.load(open(os.path.join(folder, "tokenizer.json")))["model"]
    heads, width = config["num_attention_heads"], config["head_dim"]
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tiny-extract")
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(heads)
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_key_length(width)
    out.add_value_length(width)
    out.add_rope_dimension_count(width)
    out.add_rope_freq_base(config["rope_theta"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_vocab_size(config["vocab_size"])
    tokens = sorted(tokenizer["vocab"], key=tokenizer["vocab"].get)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([3 if i < 3 else 1 for i in range(len(tokens))])
    out.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["merges"]])
    out.add_bos_token_id(config["bos_token_id"])
    out.add_eos_token_id(config["eos_token_id"])
    out.add_add_bos_token(False)  # the template writes it
    out.add_chat_template(TEMPLATE)
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    with safe_open(os.path.join(folder, "model.safetensors"), "pt") as file:
        for name in file.keys():
            value = file.get_tensor(name).float().numpy()
            if name == "model.embed_tokens.weight":
                out.add_tensor("token_embd.weight", value)
                continue
            if name == "model.norm.weight":
                out.add_tensor("output_norm.weight", value)
                continue
            if name == "lm_head.weight":
                continue
            _, _, layer, rest = name.split(".", 3)
            short = names[rest.removesuffix(".weight")]
            if short in ("attn_q", "attn_k"):  # GGUF has the halves of a rotation next to each other
                rows, columns = value.shape
                value = value.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
            out.add_tensor(f"blk.{layer}.{short}.weight", np.ascontiguousarray(value))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


class LlamaServer:
    name = "llama.cpp"

    def __init__(self, model):
        import socket
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "llama_cpp.server", "--model", model, "--port", str(self.port), "--n_threads", "1",
             "--n_threads_batch", "1", "--n_ctx", "2048", "--interrupt_requests", "False", "--verbose", "False"],
            stdout=self.errors, stderr=self.errors)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
            if self.process.poll() is not None:
                break
        self.errors.seek(0)
        sys.exit("llama.cpp's server does not start: " + self.errors.read().decode()[-2000:])

    @staticmethod
    def form(schema):
        return {"type": "json_object", "schema": schema}

    cpu = load.Server.cpu

    def stop(self):
        self.process.terminate()
        self.process.wait()


class PawlServer(load.Server):
    name = "pawl"

    def __init__(self, args, model):
        args.model = model
        super().__init__(args, "--threads", "1", "--batch", "8")

    @staticmethod
    def form(schema):
        return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


async def stream(server, text, schema, max_tokens):
    body = {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": max_tokens, "stream": True,
            "response_format": server.form(schema)}
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 20)
    begin = time.perf_counter()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: " + str(len(data)).encode() + b"\r\n\r\n" + data)
    first, content = 0.0, ""
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if "error" in event:
            break
        piece = event["choices"][0]["delta"].get("content") if event["choices"] else None
        if piece:
            first = first or time.perf_counter() - begin
            content += piece
    writer.close()
    return first, time.perf_counter() - begin, content


def measure(server, cases, clients, max_tokens, valid):
    async def main():
        queue, done = iter(cases), []

        async def client():
            for text, schema in queue:
                done.append((*await stream(server, text, schema, max_tokens), schema))

        await asyncio.gather(*(client() for _ in range(clients)))
        return done

    cpu, begin = server.cpu(), time.perf_counter()
    done = asyncio.run(main())
    seconds = time.perf_counter() - begin
    return {"first_p50": load.percentile([d[0] for d in done], 50), "first_p95": load.percentile([d[0] for d in done], 95),
            "requests_per_second": len(done) / seconds, "characters_per_second": sum(len(d[2]) for d in done) / seconds,
            "cpu_per_output": (server.cpu() - cpu) / len(done), "valid": sum(valid(d[2], d[3]) for d in done) / len(done)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default=os.path.join(load.ROOT, "build/pawl"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--json", help="results, for a machine")
    args = parser.parse_args()
    import jsonschema

    def valid(content, schema):
        try:
            jsonschema.validate(json.loads(content), schema)
            return True
        except (ValueError, jsonschema.ValidationError):
            return False

    forms, texts = list(load.schemas().values()), load.texts()
    cases = [(texts[i % len(texts)], forms[i % len(forms)]) for i in range(args.texts)]
    results = {}
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "tiny-extract.gguf")
        write_gguf(os.path.join(load.ROOT, "models/tiny-extract"), path)
        for _ in range(args.rounds):
            for make in (lambda: PawlServer(args, path), lambda: LlamaServer(path)):
                server = make()
                measure(server, cases[:8], 1, args.max_tokens, valid)  # warm
                for clients in (1, 8):
                    results.setdefault((server.name, clients), []).append(measure(server, cases, clients, args.max_tokens, valid))
                server.stop()
    print(f"{args.texts} texts, {len(forms)} schemas, {args.rounds} rounds in turn, medians; one thread for the model")
    print("| server | clients | first piece p50 (ms) | p95 (ms) | outputs/s | characters/s | processor ms per output | valid |")
    print("|---|---|---|---|---|---|---|---|")
    table = []
    for (name, clients), rounds in sorted(results.items()):
        row = {key: load.percentile([r[key] for r in rounds], 50) for key in rounds[0]}
        table.append({"server": name, "clients": clients, **row})
        print(f"| {name} | {clients} | {1e3 * row['first_p50']:.1f} | {1e3 * row['first_p95']:.1f} | {row['requests_per_second']:.1f} | "
              f"{row['characters_per_second']:.0f} | {1e3 * row['cpu_per_output']:.1f} | {100 * row['valid']:.0f} % |")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
