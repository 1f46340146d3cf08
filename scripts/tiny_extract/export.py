"""Writes a checkpoint as a Hugging Face Llama folder and checks that `transformers` gives the same logits.

    python export.py --run RUN_FOLDER --out models/tiny-extract [--average] [--no-check]

A run with `--diffusion` becomes a folder of Dream's layout, which is that of Qwen 2 with biases, all zeros, and a mask token.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from safetensors.torch import save_file

from canvas import MASK
from gen import BOS, EOS, PAD
from model import Config, TinyLlama, hf_state, load_hf_folder

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--average", action="store_true", help="take the moving average of the weights")
    parser.add_argument("--no-check", action="store_true")
    options = parser.parse_args()
    saved = torch.load(Path(options.run) / "checkpoint.pt", weights_only=False, map_location="cpu")
    config = Config(**saved["config"])
    model = TinyLlama(config)
    model.load_state_dict(saved["average"] if options.average else saved["model"])
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)

    def write(name, value):
        (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    diffusion = saved.get("diffusion", False)
    state = hf_state(model)
    if diffusion:
        state |= {f"model.layers.{n}.self_attn.{x}_proj.bias": torch.zeros(config.width, dtype=torch.bfloat16) for n in range(config.layers) for x in "qkv"}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    kind = {"architectures": ["DreamModel"], "model_type": "Dream", "mask_token_id": MASK, "block_size": 16} if diffusion else {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    pad = EOS if diffusion else PAD
    write("config.json", kind | {
        "hidden_size": config.width, "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads, "num_key_value_heads": config.heads, "head_dim": config.head_width, "intermediate_size": config.inner,
        "max_position_embeddings": 4096,  # records may be longer than any text of the training
        "rope_theta": config.rope_theta, "rope_scaling": None, "rms_norm_eps": config.norm_eps,
        "hidden_act": "silu", **({} if diffusion else {"attention_bias": False, "mlp_bias": False}), "attention_dropout": 0.0, "tie_word_embeddings": True,
        "vocab_size": config.vocabulary, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": pad, "initializer_range": 0.02,
        "torch_dtype": "bfloat16"})
    write("generation_config.json", {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": pad, "do_sample": False})
    tokenizer = (Path(options.run) / "tokenizer.json").read_text()
    write("tokenizer.json", json.loads(tokenizer.replace('"<pad>"', '"<mask>"') if diffusion else tokenizer))
    names = {"pad_token": "</s>", "mask_token": "<mask>"} if diffusion else {"pad_token": "<pad>"}
    write("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", **names,
                                    "clean_up_tokenization_spaces": False, "model_max_length": 4096})
    write("pawl.json", {"extract": {"prompt": "{fields}\n{text}\n", "bos": True, "prefer_text": 0}})
    write("training.json", {name: saved[name] for name in ("seed", "step", "tokens", "scored", "spent")})  # `train.py --start` goes on from here
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    print(f"step {saved['step']}, {saved['tokens']} tokens, {saved['scored']} scored, {saved['spent'] / 60:.1f} min, "
          f"{sum(p.numel() for p in model.parameters())} parameters, folder {size / 1e6:.2f} MB")
    assert size <= 12_000_000
    if options.no_check or diffusion:      # transformers has no Dream
        return
    from tokenizers import Tokenizer
    from transformers import LlamaForCausalLM

    text = "Jürgen owes $1,200.50 by 3 May 2024 — “soon”.\n{\"name\":\""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = tokenizer.encode(text).ids
    assert ids[0] == BOS and tokenizer.decode(ids[1:]) == text, ids
    other = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    mine = load_hf_folder(folder)
    with torch.no_grad():
        a = other(torch.tensor([ids])).logits[0]
        b = mine.logits(mine.hidden(torch.tensor([ids])))
    difference = (a - b).abs().max().item()
    print(f"largest difference to transformers: {difference:.2e}")
    assert difference < 1e-3


if __name__ == "__main__":
    main()
