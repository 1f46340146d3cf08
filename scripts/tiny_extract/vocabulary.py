"""The tokenizer of the tiny model: byte-level BPE inside words, every other character alone.

    python vocabulary.py --out RUN_FOLDER/tokenizer.json [--size 1536]

Words are cut at everything that is not a letter, so a value has the same tokens in the text and, after a quotation mark, in
the record: to copy is to repeat tokens. Digits stand alone, as numbers and dates are put together from them.
"""

import argparse
import random
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer

import gen

SPECIAL = ["<s>", "</s>", "<pad>"]
WORDS = r"[\p{L}\p{M}]+|[^\p{L}\p{M}]"


def encoder(tokenizer: Tokenizer):
    """A function from a text to its tokens, each (id, first byte, byte after the last)."""
    size = [len(tokenizer.id_to_token(i)) for i in range(tokenizer.get_vocab_size())]     # one letter stands for one byte

    def encode(text):
        out, place = [], 0
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            out.append((token, place, place + size[token]))
            place += size[token]
        return out

    return encode


def texts(count: int, seed: int):
    rng = random.Random(f"vocabulary/{seed}")
    for _ in range(count):
        example = gen.make(rng)
        yield example.text
        yield example.output.decode()


def train(size: int, count: int = 20_000, seed: int = 20) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Sequence([Split(Regex(WORDS), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(vocab_size=size, special_tokens=[AddedToken(t, special=True) for t in SPECIAL],
                         initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts(count, seed), trainer)
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", gen.BOS)])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--size", type=int, default=1536)
    options = parser.parse_args()
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    tokenizer = train(options.size)
    tokenizer.save(options.out)
    sample = list(texts(500, 1))
    size = sum(len(t.encode()) for t in sample)
    print(f"{tokenizer.get_vocab_size()} tokens, {size / sum(len(tokenizer.encode(t, add_special_tokens=False).ids) for t in sample):.2f} bytes a token")


if __name__ == "__main__":
    main()
