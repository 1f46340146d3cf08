#!/usr/bin/env python3
"""/v1/rerank and transformers, on tiny models of random weights.

    bench/peers/rerank_peers.py [--pawl build/pawl]

For each of FAMILIES a ...ForSequenceClassification with one label, read by both libraries in fp32, and the logits of DOCUMENTS
for a query. Prints the largest difference; exit code 1 above 1e-4. Needs torch and transformers.
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
FAMILIES = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma2", "Phi3")
QUERY = "Where does Ann work?"
DOCUMENTS = ["Ann Lee works at Harrow Ltd.", "a", "Zwölf Boxkämpfer jagen Viktor", "42 " * 60]
BOUND = 1e-4


def theirs(folder, family):
    """Writes the model, and returns the logits of the documents."""
    import torch
    import transformers
    torch.manual_seed(1)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models/tiny-extract/tokenizer.json"))
    config = getattr(transformers, family + "Config")(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, num_labels=1, pad_token_id=None, bos_token_id=1,
        eos_token_id=2)
    model = getattr(transformers, family + "ForSequenceClassification")(config).eval()
    torch.nn.init.normal_(model.score.weight, std=0.3)
    model.save_pretrained(folder)
    shutil.copy(ROOT / "models/tiny-extract/tokenizer.json", folder / "tokenizer.json")
    out = []
    for document in DOCUMENTS:
        with torch.no_grad():
            out.append(model(**{"input_ids": torch.tensor([tokenizer(QUERY, document)["input_ids"]])}).logits[0, 0].item())
    return out


def ours(pawl, folder):
    server = subprocess.Popen([pawl, "serve", "--model", folder, "--dtype", "fp32", "--port", "0", "--log", "none"],
                              stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip().removeprefix("listening on ")
        body = json.dumps({"query": QUERY, "documents": DOCUMENTS, "raw_scores": True}).encode()
        request = urllib.request.Request(url + "/v1/rerank", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            results = json.load(answer)["results"]
        return [one["relevance_score"] for one in sorted(results, key=lambda one: one["index"])]
    finally:
        server.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pawl", default=str(ROOT / "build/pawl"))
    given = parser.parse_args()
    worst = 0.0
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as temp:
            folder = Path(temp) / "model"
            folder.mkdir()
            expected = theirs(folder, family)
            found = ours(given.pawl, str(folder))
        difference = max(abs(a - b) for a, b in zip(expected, found, strict=True))
        worst = max(worst, difference)
        print(f"{family:10} {difference:.1e} (logits from {min(expected):.2f} to {max(expected):.2f})", flush=True)
    print(f"largest {worst:.1e}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
