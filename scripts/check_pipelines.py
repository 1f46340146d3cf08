#!/usr/bin/env python3
"""Compares 26 pre-tokenizer pipelines with those of Hugging Face's `tokenizers`, on fuzzed texts.

    python3 scripts/check_pipelines.py [--count 10000] [--seed 1] [NAME...]

Needs the Python package `tokenizers`, and tokenize_tool built. Each pipeline stands in front of a small
byte-level BPE trained on the samples of scripts/check_tokenizers.py; all ids must be equal.
"""
import argparse
import json
import os
import random
import sys
import tempfile

from check_tokenizers import SAMPLES, make_strings, run
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"


def cased(less="", suffix=""):
    start = r"[^\r\n\p{L}\p{N}]?"
    return (f"{start}[{UPPER}{less}]*[{LOWER}{less}]+{suffix}|{start}[{UPPER}{less}]+[{LOWER}{less}]*{suffix}")


SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
OMNI = cased("", SUFFIX) + r"|\p{N}{1,3}" + REST
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPLITS = {
    "llama3": [LLAMA3],
    "qwen2": [QWEN2],
    "qwen35": [QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"\s\p{L}\p{N}]+", r"\s\p{L}\p{M}\p{N}]+")],
    "gpt4o": [OMNI],
    "tekken": [cased() + r"|\p{N}" + REST],
    "deepseek3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                  r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
                  r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
    "bailing": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
                r"\s+(?!\S)|\s+"],
    "kimi-k2": [r"[\p{Han}]+|" + cased(r"&&[^\p{Han}]", SUFFIX) +
                r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "seed-coder": [QWEN2.replace(r"\p{N}|", r"\p{N}{1}|").replace(r"\p{N}]+[\r\n]*", r"\p{N}\r\n]+")],
    "tiny-aya": [r"\d{1,3}(?=(?:\d{3})*\b)", OMNI],
    "exaone-moe": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|"
                   r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "bloom": [r" ?[^(\s|[.,!?…。，、।۔،])]+"],
    "cl100k": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
               r"\s*[\r\n]|\s+(?!\S)|\s+"],
}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
WORDS = {**BYTES, "use_regex": True}


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


PIPELINES = {
    "gpt2": [WORDS],
    **{name: [split(p) for p in patterns] + [BYTES] for name, patterns in SPLITS.items()},
    "falcon": [{"type": "Punctuation", "behavior": "Contiguous"}, WORDS,
               {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")],
    "starcoder": [{"type": "Digits", "individual_digits": True}, WORDS],
    "metaspace": [{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}, BYTES],
    "whitespace": [{"type": "Whitespace"}, BYTES],
    "whitespacesplit": [{"type": "WhitespaceSplit"}, BYTES],
    "bert": [{"type": "BertPreTokenizer"}, BYTES],
    "unicodescripts": [{"type": "UnicodeScripts"}, BYTES],
    "delimiter": [{"type": "CharDelimiterSplit", "delimiter": "-"}, BYTES],
    "fixed": [{"type": "FixedLength", "length": 3}, BYTES],
}


def base():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    # Trained on pieces that cross the words of every pipeline, so that a cut shows in the ids.
    tokenizer.train_from_iterator([s[i:i + 12] for s in SAMPLES for i in range(0, len(s), 5)] * 4, trainer)
    return json.loads(tokenizer.to_str())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="pipelines; all where none is given")
    parser.add_argument("--binary", default="build/bin/tokenize_tool")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_args()
    root = base()
    strings = make_strings(random.Random(args.seed), args.count, ["<s>"])
    equal = 0
    names = args.names or list(PIPELINES)
    for name in names:
        root["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": PIPELINES[name]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(root, file)
            theirs = [e.ids for e in Tokenizer.from_file(path).encode_batch(strings, add_special_tokens=False)]
            ours, _ = run(args.binary, path, [s.encode() for s in strings])
        wrong = [i for i in range(len(strings)) if ours[i][0] != theirs[i]]
        for i in wrong[:args.show]:
            print(f"  {strings[i]!r}\n    ours   {ours[i][0]}\n    theirs {theirs[i]}")
        print(f"{name}: {len(strings) - len(wrong)} of {len(strings)}", flush=True)
        equal += not wrong
    print(f"{equal} of {len(names)} pipelines equal")
    sys.exit(equal != len(names))


if __name__ == "__main__":
    main()
