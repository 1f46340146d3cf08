#!/usr/bin/env python3
"""LoRA adapters and PEFT, on tiny models of random weights.

    bench/peers/lora_peers.py [--pawl build/pawl]

For each of FAMILIES: a folder and two adapters that PEFT saves, one of them with other ranks and alphas for some modules and
the scale of rank-stabilized LoRA. Both libraries compute in fp32. Prints the largest difference of the log-probabilities of
a text's tokens; exit code 1 above 1e-4. Needs torch, transformers and peft.
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
FAMILIES = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma3Text", "Phi3", "Starcoder2", "Glm4")
BOUND = 1e-4
TOKENS = [300 + 7 * i % 1500 for i in range(60)]


def modules_of(model):
    import torch
    names = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and "lm_head" not in name]
    return names, sorted({name.split(".")[-1] for name in names})


def write_model(folder, family):
    import torch
    import transformers
    torch.manual_seed(1)
    config = getattr(transformers, family + "Config")(
        vocab_size=2048, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model = getattr(transformers, family.removesuffix("Text") + "ForCausalLM")(config).eval()
    model.save_pretrained(folder)
    shutil.copy(ROOT / "models/tiny-extract/tokenizer.json", folder / "tokenizer.json")
    return model


def theirs(model, folder, kind):
    """The log-probabilities, and the adapter in `folder`."""
    import peft
    import torch
    names, targets = modules_of(model)
    more = {}
    if kind == "patterns":
        more = dict(use_rslora=True, rank_pattern={names[0]: 3, targets[-1]: 9}, alpha_pattern={targets[0]: 20})
    config = peft.LoraConfig(r=5, lora_alpha=8, target_modules=targets, bias="none", task_type="CAUSAL_LM", **more)
    adapted = peft.get_peft_model(model, config)
    torch.manual_seed(3)
    for name, weight in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.2)
    adapted.eval()
    adapted.save_pretrained(folder)
    with torch.no_grad():
        logits = adapted(torch.tensor([TOKENS])).logits[0].double()
    logprobs = torch.log_softmax(logits, -1)
    out = [logprobs[i, TOKENS[i + 1]].item() for i in range(len(TOKENS) - 1)]
    adapted.unload()
    return out


def ours(pawl, folder, adapters):
    """By adapter: one server has all of them."""
    options = [option for name, path in adapters.items() for option in ("--lora", f"{name}={path}")]
    server = subprocess.Popen([pawl, "serve", "--model", folder, "--model-name", "base", "--dtype", "fp32", "--port", "0",
                               "--log", "none", *options], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip().removeprefix("listening on ")
        out = {}
        for name in ("base", *adapters):
            body = json.dumps({"model": name, "prompt": TOKENS, "echo": True, "logprobs": 0, "max_tokens": 0}).encode()
            request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                out[name] = json.load(answer)["choices"][0]["logprobs"]["token_logprobs"][1:]
        return out
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
            model = write_model(folder, family)
            adapters = {kind: str(Path(temp) / kind) for kind in ("plain", "patterns")}
            expected = {kind: theirs(model, path, kind) for kind, path in adapters.items()}
            found = ours(given.pawl, str(folder), adapters)
        for kind, logprobs in expected.items():
            difference = max(abs(a - b) for a, b in zip(logprobs, found[kind], strict=True))
            moved = max(abs(a - b) for a, b in zip(found["base"], found[kind], strict=True))
            worst = max(worst, difference)
            print(f"{family:12} {kind:9} {difference:.1e} (the adapter moves them by {moved:.1f})", flush=True)
    print(f"largest {worst:.1e}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
