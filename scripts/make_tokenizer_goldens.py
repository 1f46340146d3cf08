#!/usr/bin/env python3
"""Makes tests/data/tokenizers: small tokenizers of every kind, and what Hugging Face's `tokenizers` does with them.

    python3 scripts/make_tokenizer_goldens.py

Needs the Python package `tokenizers`. NAME.tokenizer.json is a tokenizer trained on the text below;
NAME.golden.json holds for each string of strings.json its ids with the text of special tokens left as text
("ids"), the ids where special tokens are parsed ("parsed", by index, only where they differ), the ids with what
the post-processor adds ("added", by index, of a few), and what "ids" decode to ("decoded", by index, only where
that is not the string itself). normalization.json holds strings on which Python's unicodedata and `tokenizers` agree.
"""
import json
import os
import random
import unicodedata

from check_tokenizers import MARKS, SAMPLES, assigned, make_strings
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "data", "tokenizers")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?"
          r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{L}++|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
HAN = r"\p{Han}+|[\p{L}\p{M}&&[^\p{Han}]]+|[\p{N}&&[^0-9]]"
CORPUS = [" ".join(SAMPLES)] + SAMPLES * 3 + [
    "to be or not to be that is the question whether it is nobler in the mind to suffer", "The man. The woman. The end.",
    "one two three four five six seven eight nine ten eleven twelve", "    return self.value\n" * 3]
SPECIAL = ["<s>", "</s>", "<|end|>"]


def added(content, **flags):
    return AddedToken(content, **flags)


def byte_level(pattern=None, prefix=False):
    if pattern is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(normalizer, pre_tokenizer, decoder, size, alphabet=(), special=SPECIAL, unk=None, **options):
    tokenizer = Tokenizer(models.BPE(unk_token=unk, **options))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=list(alphabet),
                                  show_progress=False, max_token_length=16)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def bos(tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", tokenizer.token_to_id("<s>")),
                                                                           ("</s>", tokenizer.token_to_id("</s>"))])
    return tokenizer


def sentencepiece_decoder(strip):
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()] +
                             ([decoders.Strip(" ", 1, 0)] if strip else []))


def with_bytes(tokenizer, **model):
    """The <0xNN> tokens, which only training as special tokens puts in, become ordinary ones."""
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    data["model"].update(model)
    return data


def tokenizers_to_make():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bl = decoders.ByteLevel()
    yield "gpt2", train(None, byte_level(), bl, 420, alphabet)
    yield "gpt2_prefix", train(normalizers.Sequence([normalizers.Strip(), normalizers.Lowercase()]),
                               byte_level(prefix=True), bl, 380, alphabet)
    llama3 = json.loads(bos(train(None, byte_level(LLAMA3), bl, 420, alphabet)).to_str())
    # Words that no merge leads to, for ignore_merges.
    for word in ["Ġnobler", "question", "Ġ,", "123"]:
        llama3["model"]["vocab"].setdefault(word, len(llama3["model"]["vocab"]))
    llama3["model"]["ignore_merges"] = True
    yield "llama3", llama3
    qwen2 = train(normalizers.NFC(), byte_level(QWEN2), bl, 420, alphabet)
    qwen2.add_tokens([added("<tool>", normalized=False), added("<TOOL>", normalized=True), added("é!", normalized=True)])
    yield "qwen2", qwen2
    yield "tekken", train(None, byte_level(TEKKEN), bl, 400, alphabet)
    yield "cased", train(normalizers.NFKC(), byte_level(CASED), bl, 400, alphabet)
    yield "digits", train(None, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()]),
                          bl, 380, alphabet)
    yield "bytes", train(None, byte_level(LLAMA3), bl, 259, alphabet)

    special = ["<unk>", *SPECIAL, *(f"<0x{i:02X}>" for i in range(256))]
    llama2 = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield "llama2", with_bytes(bos(train(llama2, None, sentencepiece_decoder(True), 800, special=special, unk="<unk>",
                                         fuse_unk=True, byte_fallback=True)))
    gemma = train(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"),
                  sentencepiece_decoder(False), 800, special=special, unk="<unk>", fuse_unk=True, byte_fallback=True)
    gemma.add_tokens([added("\n\n", normalized=False), added("▁▁▁▁", normalized=False), added("<b>", normalized=False)])
    yield "gemma", with_bytes(gemma)
    for scheme in ["always", "first", "never"]:
        space = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        yield f"metaspace_{scheme}", train(None, space, decoders.Metaspace(prepend_scheme=scheme), 500,
                                           special=["<unk>", *SPECIAL], unk="<unk>", fuse_unk=scheme == "first")

    words = train(normalizers.Sequence([normalizers.NFKD(), normalizers.Replace(Regex("[\\s--]+".replace("--", "_")), " ")]),
                  pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"),
                                           pre_tokenizers.Digits(False)]),
                  None, 420, special=["<unk>", *SPECIAL], unk="<unk>")
    yield "words", words
    flags = train(normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]), byte_level(), bl, 330, alphabet)
    flags.add_special_tokens([added("<L>", lstrip=True), added("<R>", rstrip=True),
                              added("<LR>", lstrip=True, rstrip=True), added("<W>", single_word=True)])
    flags.add_tokens([added("word", single_word=True), added("Norm", normalized=True), added("raw", normalized=False),
                      added("rawhide", normalized=False), added(" gap ", normalized=False, lstrip=True, rstrip=True)])
    yield "flags", flags
    for behavior in ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]:
        for invert in [False, True]:
            split = train(None, pre_tokenizers.Sequence([
                pre_tokenizers.Split(Regex(r"[aeiou]{2}|[,.]|(?=[A-Z])|\d"), behavior, invert),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), bl, 420, alphabet, special=["</s>"])
            yield f"split_{behavior}{'_inverted' if invert else ''}", split
    # Splits behind ByteLevel see the letters that stand for bytes.
    yield "falcon", train(None, pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), byte_level(), pre_tokenizers.Digits(False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]), bl, 420, alphabet, special=["</s>"])
    for name, first in [("bert", pre_tokenizers.BertPreTokenizer()), ("fixed", pre_tokenizers.FixedLength(3)),
                        ("scripts", pre_tokenizers.UnicodeScripts()), ("han", pre_tokenizers.Split(Regex(HAN), "isolated")),
                        ("thousands", pre_tokenizers.Split(Regex(r"\d{1,3}(?=(?:\d{3})*\b)"), "isolated"))]:
        yield name, train(None, pre_tokenizers.Sequence([
            first, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), bl, 420, alphabet, special=["</s>"])


def main():
    rng = random.Random(20)
    special = ["<s>", "</s>", "<|end|>", "<L>", "<R>", "<LR>", "<W>", "word", "Norm", "raw", "rawhide", "NORM",
               " <L> ", " <R> \n", " <LR> ", "<W>", " gap ", "  gap  ", "<tool>", "<TOOL>", "é!", "e\u0301!", "<b>", "\n\n", "▁▁▁▁"]
    strings = make_strings(rng, 200, special)
    os.makedirs(OUT, exist_ok=True)
    write("strings.json", strings)
    for number, (name, tokenizer) in enumerate(tokenizers_to_make()):
        data = tokenizer if isinstance(tokenizer, dict) else json.loads(tokenizer.to_str())
        if number % 2 == 0:  # the older way to write merges
            data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
        write(f"{name}.tokenizer.json", data)
        peer = Tokenizer.from_str(json.dumps(data))
        mine = strings if "split" not in name else strings[:100]
        peer.encode_special_tokens = True
        ids = [peer.encode(s, add_special_tokens=False).ids for s in mine]
        with_added = {i: peer.encode(mine[i]).ids for i in range(0, len(mine), 20)}
        # The reference takes the added token "é!" for two letters of the byte-level alphabet.
        decoded = {i: peer.decode(t, skip_special_tokens=True).replace("\ufffd!", "é!") for i, t in enumerate(ids)}
        peer.encode_special_tokens = False
        parsed = {i: peer.encode(s, add_special_tokens=False).ids for i, s in enumerate(mine)}
        write(f"{name}.golden.json", {
            "ids": ids, "parsed": {i: t for i, t in parsed.items() if t != ids[i]}, "added": with_added,
            "decoded": {i: t for i, t in decoded.items() if t != mine[i]}})

    letters = assigned()
    changing = [c for c in letters if unicodedata.normalize("NFKD", chr(c)) != chr(c) or unicodedata.combining(chr(c))]
    texts = ["".join(chr(rng.choice(changing if rng.random() < 0.6 else MARKS if rng.random() < 0.5 else letters))
                     for _ in range(rng.randrange(1, 12))) for _ in range(400)]
    forms = ["NFC", "NFD", "NFKC", "NFKD"]
    texts = [t for t in texts
             if all(getattr(normalizers, f)().normalize_str(t) == unicodedata.normalize(f, t) for f in forms)]
    write("normalization.json", [[t, *(unicodedata.normalize(f, t) for f in forms),
                                  "".join(c.lower() for c in t)] for t in texts])


def write(name, data):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
