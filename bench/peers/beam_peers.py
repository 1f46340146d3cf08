#!/usr/bin/env python3
"""Beam search of `pawl generate --search beam` next to transformers' `generate`, token for token.

    bench/peers/beam_peers.py --pawl build/pawl --model models/tiny-code --texts FOLDER

Needs torch and transformers. Prompts are beginnings of the files in FOLDER. Both run in fp32. Each prompt runs with one
of the settings (4 and 8 beams, length_penalty 0, 1, 2, early_stopping false and true) in turn, or with --all with each.
Prints a line of JSON: how many outputs are equal, how many differ by scores within 1e-5, and how many differ.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys

SETTINGS = list(itertools.product((4, 8), (0.0, 1.0, 2.0), (False, True)))


def pawl_beam(options, prompt, beams, penalty, early):
    command = [options.pawl, "generate", "--model", options.model, "--dtype", "fp32", "--prompt", prompt, "--search", "beam",
               "--num-beams", str(beams), "--length-penalty", str(penalty), "--early-stopping", "true" if early else "false",
               "--max-tokens", str(options.tokens), "--no-merge-spellings", "--no-skip-forced", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)["outputs"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default="build/pawl")
    parser.add_argument("--model", required=True, help="a folder that both read")
    parser.add_argument("--texts", required=True, type=pathlib.Path)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--all", action="store_true", help="each prompt with each setting")
    options = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(pathlib.Path(options.model) / "tokenizer.json"))
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    files = sorted(path for path in options.texts.rglob("*") if path.is_file())
    prompts = []
    for path in itertools.cycle(files):
        text = path.read_text(encoding="utf-8", errors="ignore")
        begin = 37 * len(prompts) % max(1, len(text) - 200)
        prompts.append(text[begin:begin + 40 + 3 * (len(prompts) % 40)])
        if len(prompts) == options.prompts:
            break
    equal = ties = different = 0
    for number, prompt in enumerate(prompts):
        for beams, penalty, early in SETTINGS if options.all else [SETTINGS[number % len(SETTINGS)]]:
            mine = pawl_beam(options, prompt, beams, penalty, early)
            ids = tokenizer(prompt, return_tensors="pt").input_ids
            with torch.no_grad():
                theirs = model.generate(ids, num_beams=beams, length_penalty=penalty, early_stopping=early, do_sample=False,
                                        max_new_tokens=options.tokens, attention_mask=torch.ones_like(ids),
                                        return_dict_in_generate=True, output_scores=True,
                                        pad_token_id=0, repetition_penalty=1.0)
            tokens = theirs.sequences[0, ids.shape[1]:].tolist()
            ends = model.generation_config.eos_token_id
            ends = ends if isinstance(ends, list) else [ends]
            stop = next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))
            if tokens[:stop] == mine["tokens"]:
                equal += 1
            elif abs(float(theirs.sequences_scores[0]) - mine["score"]) <= 1e-5:
                ties += 1
            else:
                different += 1
                print(json.dumps({"prompt": prompt, "setting": [beams, penalty, early], "pawl": mine,
                                  "transformers": {"tokens": tokens[:stop], "score": float(theirs.sequences_scores[0])}}),
                      file=sys.stderr)
    print(json.dumps({"model": options.model, "equal": equal, "ties": ties, "different": different}))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
