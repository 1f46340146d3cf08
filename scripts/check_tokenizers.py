#!/usr/bin/env python3
"""Compares Pawl's tokenizers with Hugging Face's `tokenizers` on the files of real models.

    python3 scripts/check_tokenizers.py --data DIR [--binary build/bin/tokenize_tool] [--count 5000] [--seed 1]

DIR holds one folder with a tokenizer.json for each model. For each: the ids of --count strings, with the text of
special tokens as plain text and again parsed as special tokens; what the ids decode to; that bytes that are not
UTF-8 come back as they were; the time to load; and the speed of encoding a text of about 4 MB. Exits with 1 if
anything differs. Needs the Python packages `tokenizers` and nothing else.
"""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import time
import unicodedata

import tokenizers

SAMPLES = r"""The quick brown fox jumps over the lazy dog. It's what they'd said; we'll see, I'm sure you've DON'T'S
don’t it’s 'tis 'Twas rock'n'roll O'REILLY'S WE'LL THEY'RE i'M 'ſ 'LLAMA x'd'D'd
def f(x, *args, **kw):\n    return {k: v for k, v in kw.items() if x != 0x7f}  # TODO\n\treturn None\n
#include <vector>\r\nint main() { std::vector<int> v{1, 2, 3}; return v[0] << 3 | ~v.at(1); }\r\n\r\n
{"name": "Ada", "born": "1815-12-10", "tags": ["a", "b"], "n": -1.5e-7, "nested": {"x": [[], {}, null]}}
<html><body class="x">&nbsp;&amp;<br/></body></html> <!-- note --> <table><tr><td>1</td></tr></table>
SELECT * FROM t WHERE a >= 10 AND b LIKE '%x%';-- end
https://example.org/a/b?q=1&r=%20#frag user@example.com C:\\Users\\x ~/.config ../../etc
Straße, naïve café, Ångström, İstanbul ıssız, ǅungla, ﬁne ﬂow, ½ cup, x² + y³, Ⅻ, ①②③, ㎏ № ™
Привет, мир! Ёжик съел 25 яблок. Київ. Ђорђе. ӘҒҚҢ
Γειά σου Κόσμε ΣΊΣΥΦΟΣ ᾳ ᾧ ΐ
שלום עולם, מה שלומך? נִקּוּד
مرحبا بالعالم ١٢٣٤٥ سُكُون لا إله ﷺ ۱۲۳۴ اُردُو
नमस्ते दुनिया १२३४५ क्षत्रिय हिन्दी में लिखा
বাংলা ভাষা ১২৩ কোনো কৌশল
தமிழ் மொழி கொடு ௧௨௩ తెలుగు భాష ಕನ್ನಡ ಕೊಡು മലയാളം කොළඹ ගෞරව
ภาษาไทยไม่มีช่องว่าง ๑๒๓ ພາສາລາວ ខ្មែរ မြန်မာ བོད་ཡིག་ འདི་
你好,世界!今天天气很好。《三体》是刘慈欣写的。 這是繁體中文,測試。
こんにちは世界。カタカナ、ガギグゲゴ、ハンカク ハンカク ー々〆
안녕하세요 세계 각 각힣 가나다 한국어
Ελλάδα ქართული Հայերեն ትግርኛ ᓀᐦᐃᔭᐍᐏᐣ ᏣᎳᎩ 𐌰𐍄𐍄𐌰 𓂀𓃭 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙𝟚 𒀀𒁀
👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🇩🇪🇫🇷 ❤️‍🔥 🤷🏿‍♀️ ☺️ ✈ 🧑‍🚀 1️⃣ #️⃣ ©️ 😀😃
e\u0301 a\u030a\u0323 o\u0323\u0302 q\u0307\u0323 \u1100\u1161\u11a8 \u0958 \u2126 \u212b \u00c5 \u0344 \uf900
∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β = ¬(¬α ∨ β), ℕ ⊆ ℕ₀ ⊂ ℤ ⊂ ℚ, ⊥ < a ≠ b ≡ c ≤ d ≪ ⊤ ⇒ ∫√2
▁leading ▁▁ marks <0x0A> <0xE2> Ġword Ċ ġ ĉ
12345678901234567890 3.14159 1,000,000 1_000 0b1010 ٣٫١٤ 2024-02-29T23:59:60Z +49 (0)30 12 34 $1.50 €2""".split("\n")
SAMPLES = [re.sub(r"\\u(\w{4})", lambda m: chr(int(m[1], 16)), line).replace("\\n", "\n").replace("\\r", "\r")
           .replace("\\t", "\t") for line in SAMPLES]
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\n ", "\r", "\u00a0", "\u3000", "\u2009",
          "\u200b", "\u2028", "\x0b", "\x0c", "\x85", "\u1680", "\ufeff", "\x1c", "\u200d", "\u00ad"]
MARKS = [c for c in range(0x300, 0x370)] + [0x5b0, 0x64b, 0x93c, 0x94d, 0x9be, 0xe49, 0x1161, 0x11a8, 0x20dd, 0x3099]


def assigned():
    # Recent additions to Unicode differ between libraries' tables; all that is older must agree.
    return [c for c in range(0x20, 0x110000)
            if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co") and not 0x17000 <= c < 0x18d09]


def make_strings(rng, count, special):
    letters = assigned()
    words = [w for line in SAMPLES for w in line.split(" ") if w]
    strings = ["", " ", "\n", "a", "\x00", " a", "a ", "  a  b  ", *SAMPLES, *special[:40]]
    while len(strings) < count:
        kind = rng.randrange(10)
        if kind == 0:
            s = " ".join(rng.choices(words, k=rng.randrange(1, 30)))
        elif kind == 1:  # pieces of samples, cut anywhere
            s = ""
            for _ in range(rng.randrange(1, 6)):
                line = rng.choice(SAMPLES)
                i = rng.randrange(len(line))
                s += line[i:i + rng.randrange(1, 40)] + rng.choice(["", *SPACES])
        elif kind == 2:  # white space
            s = "".join(rng.choice(words) + "".join(rng.choices(SPACES, k=rng.randrange(1, 6)))
                        for _ in range(rng.randrange(1, 12)))
        elif kind == 3:  # any code points
            s = "".join(chr(rng.choice(letters)) for _ in range(rng.randrange(1, 40)))
        elif kind == 4:  # digits in a crowd
            s = "".join(rng.choice("0123456789") if rng.random() < 0.7 else rng.choice(" .,-:٣५abZ½²")
                        for _ in range(rng.randrange(1, 60)))
        elif kind == 5:  # combining marks and Hangul
            s = "".join(chr(rng.choice(letters[:2000])) if rng.random() < 0.4 else
                        chr(rng.choice(MARKS)) if rng.random() < 0.7 else
                        chr(rng.choice([0x1100, 0x1112, 0x1161, 0x1175, 0x11a8, 0x11c2, 0xac00, 0xac01, 0xd7a3]))
                        for _ in range(rng.randrange(1, 30)))
        elif kind == 6:  # contractions and quotes, in both cases
            s = "".join(rng.choice(["'s", "'S", "'t", "'RE", "'ve", "'Ll", "'d", "'ſ", "’s", "a", "B", "é", " ", "9", "_",
                                    "''", "\n'm"]) for _ in range(rng.randrange(1, 25)))
        elif kind == 7:  # special tokens inside text
            s = "".join(rng.choice([rng.choice(special), rng.choice(words), " ", "\n", ""])
                        for _ in range(rng.randrange(1, 10)))
        elif kind == 8:  # long words and runs
            s = rng.choice(words) + rng.choice(["a", "ab", " ", "\n", "=", "é", "语", "👍", "▁", "0", "-", "Ab"]) * rng.randrange(
                1, 300) + rng.choice(words)
        else:  # punctuation
            s = "".join(rng.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \nabcABC01") for _ in range(rng.randrange(1, 60)))
        strings.append(s)
    return strings[:count]


def run(binary, path, blobs, *flags):
    data = b"".join(struct.pack("<I", len(b)) + b for b in blobs)
    done = subprocess.run([binary, path, *flags], input=data, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr.decode()}")
    out = []
    for line in done.stdout.decode().splitlines():
        ids, _, text = line.partition("\t")
        out.append(([int(i) for i in ids.split()], bytes.fromhex(text)))
    return out, json.loads(done.stderr)


def compare(name, what, strings, ours, theirs, show):
    wrong = [i for i in range(len(strings)) if ours[i] != theirs[i]]
    for i in wrong[:show]:
        print(f"  {name} {what}: {strings[i]!r}\n    ours   {ours[i]}\n    theirs {theirs[i]}")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--binary", default="build/bin/tokenize_tool")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_args()
    failed = False
    header = ["tokenizer", "ids", "ids, parsed", "with BOS", "decode", "not UTF-8", "load s", "MB/s", "HF MB/s"]
    print(" | ".join(header))
    for name in sorted(os.listdir(args.data)):
        path = os.path.join(args.data, name)
        if not os.path.exists(os.path.join(path, "tokenizer.json")):
            continue
        peer = tokenizers.Tokenizer.from_file(os.path.join(path, "tokenizer.json"))
        with open(os.path.join(path, "tokenizer.json"), encoding="utf-8") as file:
            added = json.load(file)["added_tokens"]
        rng = random.Random(args.seed)
        special = [t["content"] for t in added]
        strings = make_strings(rng, args.count, special)
        blobs = [s.encode() for s in strings]
        row, bad = [name], 0
        decodes = []
        for flags in [[], ["parse_special"], ["add_special"]]:
            peer.encode_special_tokens = "parse_special" not in flags
            theirs = [e.ids for e in peer.encode_batch(strings, add_special_tokens="add_special" in flags)]
            ours, times = run(args.binary, path, blobs, *flags)
            if len(ours) != len(strings):
                sys.exit(f"{name}: {len(ours)} answers to {len(strings)} strings")
            n = compare(name, "ids", strings, [o[0] for o in ours], theirs, args.show)
            row.append(f"{len(strings) - n}/{len(strings)}")
            bad += n
            keep = "parse_special" in flags
            decodes.append(compare(name, "decode", strings, [o[1] for o in ours],
                                   [t.encode() for t in peer.decode_batch(theirs, skip_special_tokens=not keep)],
                                   args.show))
        row.append(f"{len(strings) - max(decodes)}/{len(strings)}")
        bad += max(decodes)
        # Bytes that are not UTF-8: no other library takes them, so the round trip is the check.
        raw = []
        for blob in blobs[:1000]:
            cut = bytearray(blob or b"x")
            for _ in range(rng.randrange(1, 4)):
                cut.insert(rng.randrange(len(cut) + 1), rng.randrange(128, 256))
            raw.append(bytes(cut))
        if peer.normalizer and "NFC" in str(peer.normalizer):  # which changes text by design
            raw = [b for b in raw if unicodedata.normalize("NFC", b.decode(errors="surrogateescape")).encode(
                errors="surrogateescape") == b]
        if name.startswith("gemma") or name.startswith("llama2"):  # spaces are written as U+2581
            raw = [b for b in raw if b"\xe2\x96\x81" not in b]
        back, _ = run(args.binary, path, raw)
        n = compare(name, "round trip", raw, [b[1] for b in back], raw, args.show)
        row.append(f"{len(raw) - n}/{len(raw)}")
        bad += n
        long_text = "\n".join(rng.choices(SAMPLES, k=3) + ["The five boxing wizards jump quickly over 13 lazy dogs."] * 3)
        corpus = [(long_text + "\n") * (1_000_000 // len(long_text.encode()))] * 4
        size = sum(len(t.encode()) for t in corpus) / 1e6
        _, times = run(args.binary, path, [t.encode() for t in corpus])
        start = time.time()
        for text in corpus[:1]:
            peer.encode(text, add_special_tokens=False)
        peer_speed = size / 4 / (time.time() - start)
        row += [f"{times['load']:.2f}", f"{size / times['encode']:.1f}", f"{peer_speed:.1f}"]
        print(" | ".join(row), flush=True)
        failed |= bad > 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
