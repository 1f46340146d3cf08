#!/usr/bin/env python3
"""/v1/embeddings and sentence-transformers, on tiny models of random weights.

    bench/peers/embedding_peers.py [--pawl build/pawl]

For each of FAMILIES and each way of pooling, with and without vectors of length 1: a folder with modules.json, read by both
libraries in fp32, and TEXTS. Prints the largest difference of a number; exit code 1 above 1e-4. Needs torch, transformers and
sentence-transformers.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = ("Qwen3", "Llama", "Gemma3Text", "Mistral")
TEXTS = ["Ann Lee works at Harrow Ltd.", "a", "Zwölf Boxkämpfer jagen Viktor", "42 " * 60]
BOUND = 1e-4


def write_model(folder, family, pooling, normalize):
    import torch
    import transformers
    torch.manual_seed(1)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models/tiny-extract/tokenizer.json"))
    config = getattr(transformers, family + "Config")(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512)
    model = getattr(transformers, family.removesuffix("Text") + "ForCausalLM")(config).eval()
    model.save_pretrained(folder)
    tokenizer.add_special_tokens({"pad_token": tokenizer.convert_ids_to_tokens(0)})
    tokenizer.save_pretrained(folder)
    shutil.copy(ROOT / "models/tiny-extract/tokenizer.json", folder / "tokenizer.json")
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")] + ([("2_Normalize", "Normalize")] if normalize else [])
    modules = [dict(idx=i, name=str(i), path=path, type="sentence_transformers.models." + kind)
               for i, (path, kind) in enumerate(parts)]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    for path, _ in parts[1:]:
        (folder / path).mkdir()
    modes = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_max_tokens": False,
             "pooling_mode_lasttoken": pooling == "last"}
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 64, **modes}), encoding="utf-8")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 512, "do_lower_case": False}), encoding="utf-8")


def ours(pawl, folder):
    server = subprocess.Popen([pawl, "serve", "--model", folder, "--port", "0", "--log", "none"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip().removeprefix("listening on ")
        body = json.dumps({"input": TEXTS}).encode()
        request = urllib.request.Request(url + "/v1/embeddings", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return [one["embedding"] for one in json.load(answer)["data"]]
    finally:
        server.terminate()
        server.wait()


def theirs(folder):
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(str(folder), device="cpu")
    return [model.encode(text).tolist() for text in TEXTS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pawl", default=ROOT / "build/pawl")
    pawl = str(parser.parse_args().pawl)
    worst = 0.0
    for family in FAMILIES:
        for pooling in ("mean", "last"):
            for normalize in (False, True):
                with tempfile.TemporaryDirectory() as name:
                    folder = Path(name)
                    write_model(folder, family, pooling, normalize)
                    apart = max(abs(a - b) for one, other in zip(ours(pawl, name), theirs(folder), strict=True)
                                for a, b in zip(one, other, strict=True))
                print(f"{family:12} {pooling:5} {'length 1' if normalize else 'as is':9} {apart:.2e}", flush=True)
                worst = max(worst, apart)
    sys.exit(f"above {BOUND}" if worst > BOUND else 0)


if __name__ == "__main__":
    main()
