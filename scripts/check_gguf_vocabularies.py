#!/usr/bin/env python3
"""Compares `pawl tokenize` with the golden ids of llama.cpp's vocabulary files.

    pip download --no-binary :all: --no-deps --no-build-isolation llama-cpp-python
    tar xzf llama_cpp_python-*.tar.gz --wildcards '*/vendor/llama.cpp/models/*'
    python3 scripts/check_gguf_vocabularies.py FOLDER [--binary build/pawl]

FOLDER holds ggml-vocab-NAME.gguf with NAME.gguf.inp (texts) and NAME.gguf.out (their ids): the folder
vendor/llama.cpp/models of that distribution. Each vocabulary is loaded and every text compared. WordPiece
(bert) may be refused. Exits with 1 where an id differs or another vocabulary is refused.

Three texts of qwen35 have decomposed characters ("e" and an acute accent). The tokenizer of the model composes them (NFC;
transformers' tokenization_qwen3_5.py), and so does Pawl. llama.cpp does not. For texts that NFC changes the golden ids are
those of the text as it stands, so these vocabularies (COMPOSED) are compared on the other texts only.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import unicodedata

SEPARATOR = "\n__ggml_vocab_test__\n"
COMPOSED = {"qwen2", "qwen35"}


def tokenize(binary, path, text):
    done = subprocess.run([binary, "tokenize", "--tokenizer", path, "--json"], input=text.encode(),
                          capture_output=True, check=False)
    if done.returncode:
        return None, done.stderr.decode().strip()
    return json.loads(done.stdout)["ids"], ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--binary", default="build/pawl")
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_args()
    loaded = passed = 0
    failed = False
    for path in sorted(glob.glob(os.path.join(args.folder, "ggml-vocab-*.gguf"))):
        if not os.path.exists(path + ".out"):
            continue
        name = os.path.basename(path)[len("ggml-vocab-"):-len(".gguf")]
        with open(path + ".inp", encoding="utf-8", newline="") as file:
            texts = file.read().split(SEPARATOR)
        with open(path + ".out", encoding="utf-8") as file:
            golden = [[int(i) for i in line.split()] for line in file.read().split("\n")]
        pairs = [(text, wanted) for text, wanted in zip(texts, golden) if name not in COMPOSED or unicodedata.is_normalized("NFC", text)]
        equal, refused = 0, ""
        for text, wanted in pairs:
            ids, refused = tokenize(args.binary, path, text)
            if ids is None:
                break
            equal += ids == wanted
            if ids != wanted and len(pairs) - equal <= args.show:
                print(f"  {text!r}\n    ours   {ids}\n    golden {wanted}")
        if refused:
            print(f"{name}: refused: {refused.split(': ', 2)[-1]}", flush=True)
            failed |= "bert" not in name
            continue
        loaded += 1
        passed += equal == len(pairs)
        failed |= equal != len(pairs)
        left = f", {len(texts) - len(pairs)} that NFC changes left out" if len(pairs) < len(texts) else ""
        print(f"{name}: {equal} of {len(pairs)}{left}", flush=True)
    print(f"{loaded} vocabularies loaded, {passed} of them equal in every text")
    sys.exit(failed or loaded == 0)


if __name__ == "__main__":
    main()
