#!/usr/bin/env python3
"""The samplers on the evaluation set of the shipped model: what particles gain, and what checks cost.

    bench/sampling_eval.py --command build/pawl --texts 104

For each text with its schema, at --temperature: one output by masks alone (gcd) and one drawn from a population of
--particles (smc) with the same seed; the paired difference of their log-probabilities under the model, with a 95 %
confidence interval. Then --check-texts of them again, --check-outputs for each, in three forms: the schema as a mask,
which is what checking the whole vocabulary at every step gives, at as many questions as there are steps and tokens; the
schema as a check behind a mask that knows the keys alone (awrs); and as a check without any mask. For each the share of
outputs that are valid, and questions as a share of what the whole vocabulary at its own steps would have cost.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile


def run(options, prompt, schema, seed, more):
    out = subprocess.run(
        [options.command, "generate", "--model", options.model, "--prompt", prompt, "--seed", str(seed),
         "--temperature", str(options.temperature), "--max-tokens", str(options.max_tokens), "--json-lines", "--threads",
         "1"] + [word.replace("SCHEMA", schema) for word in more], capture_output=True, text=True, check=False)
    if out.returncode not in (0, 1):
        sys.exit(out.stderr)
    return [json.loads(line) for line in out.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/pawl")
    parser.add_argument("--model", default="models/tiny-extract")
    parser.add_argument("--data", default="models/tiny-extract/eval/handwritten.jsonl")
    parser.add_argument("--texts", type=int, default=104)
    parser.add_argument("--check-texts", type=int, default=20)
    parser.add_argument("--check-outputs", type=int, default=3)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--particles", type=int, default=5)
    parser.add_argument("--temperature", type=float, default=1)
    parser.add_argument("--max-tokens", type=int, default=300)
    options = parser.parse_args()
    with open(options.data, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file][:options.texts]
    differences, invalid = [], 0
    ways = {"schema as a mask": [], "as a check behind a mask of the keys": [], "as a check without a mask": []}
    with tempfile.TemporaryDirectory() as folder:
        schema = os.path.join(folder, "schema.json")
        for seed, case in enumerate(cases):
            with open(schema, "w", encoding="utf-8") as file:
                json.dump(case["schema"], file)
            prompt = case["text"] + "\n"
            mask = run(options, prompt, schema, seed, ["--sampler", "gcd", "--schema", "SCHEMA"])[0]
            smc = run(options, prompt, schema, seed, ["--sampler", "smc", "--particles", str(options.particles),
                                                      "--schema", "SCHEMA"])[0]
            if mask["report"]["valid"] and smc["report"]["valid"]:
                differences.append(smc["log_probability"] - mask["log_probability"])
            else:
                invalid += 1
            if seed >= options.check_texts:
                continue
            wide = os.path.join(folder, "wide.json")
            keys = dict.fromkeys(case["schema"]["properties"], True)
            with open(wide, "w", encoding="utf-8") as file:
                json.dump({"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False},
                          file)
            count = ["--n", str(options.check_outputs)]
            check = ["--sampler", "awrs", "--check", "schema:SCHEMA"]
            for way, more in zip(ways, (["--sampler", "gcd", "--schema", "SCHEMA"], check + ["--schema", wide], check)):
                ways[way] += run(options, prompt, schema, seed, more + count)
    n = len(differences)
    mean = sum(differences) / n
    error = math.sqrt(sum((d - mean) ** 2 for d in differences) / (n - 1) / n)
    print(f"log-probability, smc N={options.particles} less masks: {mean:.3f} "
          f"[{mean - 1.96 * error:.3f}, {mean + 1.96 * error:.3f}] over {n} texts ({invalid} left out: not valid)")
    figures = {"texts": n, "left_out": invalid, "particles": options.particles, "difference": mean,
               "interval": [mean - 1.96 * error, mean + 1.96 * error], "ways": {}}
    with open(os.path.join(options.model, "config.json"), encoding="utf-8") as file:
        vocabulary = json.load(file)["vocab_size"]
    for way, lines in ways.items():
        if not lines:
            continue
        steps = sum(len(line["report"]["removed"]) for line in lines)
        # A mask is made of the verdicts on all tokens.
        asked = sum(line["report"]["evaluations"] for line in lines) or steps * vocabulary
        valid = sum(line["report"]["valid"] for line in lines)
        print(f"schema {way.removeprefix('schema ')}: {valid} of {len(lines)} outputs valid; {asked / steps:.2f} questions "
              f"by step, {100 * asked / steps / vocabulary:.3f} % of the vocabulary of {vocabulary}")
        figures["ways"][way] = {"outputs": len(lines), "valid": valid, "steps": steps, "questions": asked,
                                "vocabulary": vocabulary}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
