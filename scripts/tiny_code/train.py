"""Trains the tiny code model on a CPU, from scratch: the tokenizer, the weights, the model's folder.

    python corpus.py --out RUN_FOLDER
    python train.py --run RUN_FOLDER --out models/tiny-code [--minutes 12] [--threads 1]

First the embeddings alone learn which token follows which, from the counts of all pairs; that takes a minute and gives a model that writes what
often stands side by side. Then all weights are trained, for so many minutes of processor time. Half of the sequences are windows of a file as it is. The other half have a piece moved to their end, in the form prefix, suffix, middle with the
markers that Qwen's coders use. The network and the optimizer are those of scripts/tiny_extract.
"""

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
EXTRACT = Path(__file__).resolve().parent.parent / "tiny_extract"
sys.path.insert(0, str(EXTRACT))

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer

from model import Config, TinyLlama, hf_state
from train import Muon

SPECIAL = ["<s>", "</s>", "<pad>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
BOS, EOS, PAD, PREFIX, SUFFIX, MIDDLE = range(6)
WORDS = r" ?[\p{L}\p{M}_$]+|\p{N}|\n *| +|[^\s\p{L}\p{M}\p{N}_$]+|\s"
LENGTH = 320
ROWS = 8
TYPESCRIPT_SHARE = 0.65


def make_tokenizer(texts, size):
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Sequence([Split(Regex(WORDS), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = ByteLevelDecoder()
    tokenizer.train_from_iterator(texts, BpeTrainer(vocab_size=size, special_tokens=[AddedToken(t, special=True) for t in SPECIAL],
                                                    initial_alphabet=ByteLevel.alphabet(), show_progress=False))
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", BOS)])
    return tokenizer


class Windows:
    """Sequences of LENGTH + 1 tokens out of encoded files."""

    def __init__(self, files, seed):
        self.random = random.Random(seed)
        self.files = {language: [ids for l, ids in files if l == language] for language in ("typescript", "python")}
        self.weights = {language: [len(ids) for ids in kept] for language, kept in self.files.items()}

    def one(self):
        rng = self.random
        language = "typescript" if rng.random() < TYPESCRIPT_SHARE else "python"
        ids = rng.choices(self.files[language], self.weights[language])[0]
        room = LENGTH - 4
        start = rng.randrange(max(1, len(ids) - room + 1))
        window = ids[start:start + room]
        if rng.random() < 0.5:
            row = [BOS] + window
        else:
            a = rng.randrange(len(window))
            b = min(len(window), a + rng.randint(1, 24))
            row = [BOS, PREFIX] + window[:a] + [SUFFIX] + window[b:] + [MIDDLE] + window[a:b] + [EOS]
        row = row[:LENGTH + 1]
        return row + [PAD] * (LENGTH + 1 - len(row))

    def batch(self, rows):
        return torch.tensor([self.one() for _ in range(rows)])


class CodeModel(TinyLlama):
    """With an output matrix of its own, so that pairs of tokens can be learnt without the layers."""

    def __init__(self, config):
        super().__init__(config)
        self.head = torch.nn.Parameter(torch.randn(config.vocabulary, config.width) * 0.02)

    def logits(self, hidden):
        return F.linear(hidden, self.head)


def learn_pairs(model, files, steps, rate=0.01):
    """Fits the embeddings to the counts of pairs; the layers add nothing yet."""
    size = model.config.vocabulary
    counts = torch.zeros(size * size)
    for _, ids in files:
        ids = torch.tensor([BOS] + ids)
        counts.index_add_(0, ids[:-1] * size + ids[1:], torch.ones(len(ids) - 1))
    counts = counts.view(size, size)
    # A prefix marker begins a text; a middle marker goes on anywhere, as every token does on average.
    counts[PREFIX], counts[MIDDLE] = counts[BOS], counts.sum(0) / 100
    rows = counts.sum(1)
    kept = rows.nonzero()[:, 0]
    share = rows[kept] / rows.sum()
    target = counts[kept] / rows[kept, None]
    parameters = [model.embed, model.head]
    optimizer = torch.optim.Adam(parameters, lr=rate)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, 2 * (1 - step / steps))
        hidden = model.embed[kept]
        hidden = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + model.config.norm_eps)
        loss = -((target * F.log_softmax(F.linear(hidden, model.head), -1)).sum(-1) * share).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == steps - 1:
            print(f"pairs: step {step} loss {loss.item():.3f}", flush=True)
    with torch.no_grad():
        for block in model.blocks:
            block.out.zero_()
            block.down.zero_()


def loss_of(model, ids):
    logits = model.logits(model.hidden(ids[:, :-1].contiguous()))
    return F.cross_entropy(logits, ids[:, 1:].reshape(-1), ignore_index=PAD)


def export(folder: Path, model, tokenizer, about):
    config = model.config
    folder.mkdir(parents=True, exist_ok=True)

    def write(name, value):
        (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    state = hf_state(model) | {"lm_head.weight": model.head.detach().bfloat16().contiguous().clone()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    write("config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": config.width, "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads, "num_key_value_heads": config.heads, "head_dim": config.head_width,
        "intermediate_size": config.inner, "max_position_embeddings": config.context, "rope_theta": config.rope_theta, "rope_scaling": None,
        "rms_norm_eps": config.norm_eps, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "attention_dropout": 0.0,
        "tie_word_embeddings": False, "vocab_size": config.vocabulary, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD,
        "initializer_range": 0.02, "use_cache": True, "torch_dtype": "bfloat16"})
    write("generation_config.json", {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "do_sample": False})
    write("tokenizer.json", json.loads(tokenizer.to_str()))
    write("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
                                    "clean_up_tokenization_spaces": False, "model_max_length": config.context})
    write("training.json", about)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--wall-minutes", type=float, default=60, help="training ends then, whatever processor time it had")
    parser.add_argument("--pair-steps", type=int, default=120)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--vocabulary", type=int, default=3072)
    parser.add_argument("--layers", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    run = Path(options.run)
    train, held = ([json.loads(line) for line in open(run / f"{name}.jsonl")] for name in ("train", "held"))
    tokenizer = make_tokenizer((f["text"] for f in train), options.vocabulary)
    tokenizer.save(str(run / "tokenizer.json"))
    encode = lambda files: [(f["language"], tokenizer.encode(f["text"], add_special_tokens=False).ids) for f in files]
    train, held = encode(train), encode(held)
    windows = Windows(train, options.seed)
    held_batch = Windows(held, 1).batch(64)
    config = Config(192, options.layers, 4, 448, tokenizer.get_vocab_size(), 2048)
    model = CodeModel(config)
    learn_pairs(model, train, options.pair_steps)
    model.dtype_inside = torch.bfloat16
    if options.minutes > 0:
        model.compile_parts()
    muon = Muon(model)
    others = [model.embed, model.head, model.norm] + [p for b in model.blocks for p in (b.input_layernorm, b.post_attention_layernorm)]
    adam = torch.optim.AdamW(others, lr=0.002, betas=(0.9, 0.95), weight_decay=0.0)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {sum(len(i) for _, i in train)} tokens of text", flush=True)
    began, wall, step = time.process_time(), time.time(), 0
    while options.minutes > 0:
        share = max((time.process_time() - began) / (60 * options.minutes), (time.time() - wall) / (60 * options.wall_minutes))
        if share >= 1:
            break
        loss = loss_of(model, windows.batch(ROWS))
        loss.backward()
        scale = min(1.0, (step + 1) / 40) * min(1.0, (1 - share) / 0.5)
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        muon.step(0.02 * scale)
        for group in adam.param_groups:
            group["lr"] = 0.002 * scale
        adam.step()
        for p in model.parameters():
            p.grad = None
        step += 1
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.3f} share {share:.2f}", flush=True)
    with torch.no_grad():
        held_loss = sum(loss_of(model, rows).item() for rows in held_batch.split(16)) / 4
    about = {"seed": options.seed, "steps": step, "tokens": step * ROWS * LENGTH, "minutes": round((time.process_time() - began) / 60, 1),
             "held_loss": round(held_loss, 3)}
    print(about)
    export(Path(options.out), model, tokenizer, about)


if __name__ == "__main__":
    main()
