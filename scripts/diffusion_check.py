#!/usr/bin/env python3
"""Fills canvases of tiny random diffusion models under MaskBench schemas, and judges each with Python's jsonschema.

  scripts/diffusion_check.py --data ~/maskbench/data --results check.jsonl [--pawl build/pawl] [--seconds S] [--summary FILE]

A mode is a cache (none, prefix, dual, dkv) with a schedule (stepwise, threshold, prophet, localleap, ssd), and a family: LLaDA with
low_confidence, or Dream with entropy. Each mode fills canvases of 256 positions for 200 schemas whose shortest output fits: in 32 steps, or
with a threshold of 0.2 or 0.15, which takes about as many calls. There are 5 seeds: seeds 1 to 3 in blocks of 32, 4 and 5 in one block of 256. That
is 40,000 outputs. The models have random weights, so an output is valid because of its lattice, or not at all.

Each line of the results is one output: mode, schema, seed, verdict; or says whether a schema is used. A run goes on where the results end.
All outputs of a schema are made together, in an order drawn by a seed: the servers (pawl serve, one of each family) then know its grammar.
Schemas with slow outputs wait: a round ends a schema's turn after 5 seconds, the next one after 60, the last one at its end. The summary by
mode is printed at the end, and is written to --summary. Exit code: 1 where an output is invalid or failed. Needs: jsonschema, numpy,
safetensors.
"""

import argparse
import collections
import itertools
import http.client
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import jsonschema
import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHES = ("none", "prefix", "dual", "dkv")
SCHEDULES = ("stepwise", "threshold", "prophet", "localleap", "ssd")
FAMILIES = {"llada": {"remasking": "low_confidence"}, "dream": {"alg": "entropy"}}
CANVAS, SEEDS = 256, range(1, 6)
TURNS = (5, 60, float("inf"))  # seconds of a schema in a round
STEPS, THRESHOLD = 32, {"llada": 0.2, "dream": 0.15}  # a random model is rarely surer: with 0.9 a call commits one token
SHARPNESS = 3  # logits are spread as those of a model that is rather sure


def tiny_model(family, folder):
    """A random model with the tokenizer of models/tiny-extract-diffusion: one of make_diffusion_goldens.py, smaller, of another vocabulary."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import make_diffusion_goldens as goldens
    source = ROOT / "models/tiny-extract-diffusion"
    tokens = json.loads((source / "config.json").read_text())["vocab_size"]
    goldens.VOCABULARY = tokens
    config = dict(goldens.CONFIGS[family], mask_token_id=2, eos_token_id=1, vocab_size=tokens)
    config.update({"embedding_size": tokens, "max_sequence_length": 512} if family == "llada" else {"max_position_embeddings": 512})
    tensors = goldens.weights(family, np.random.default_rng(7))
    tensors[goldens.NAMES[family]["head"] + ".weight"] *= SHARPNESS
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, folder / name)


class Server:
    """`pawl serve` of a model, for one client."""

    def __init__(self, pawl, model):
        self.process = subprocess.Popen([pawl, "serve", "--model", str(model), "--port", "0", "--threads", "1", "--max-string", "0", "--log", "none",
                                         "--batch", "1", "--grammar-mb", "512"], stdout=subprocess.PIPE, text=True)
        port = next(re.search(r":(\d+)", line).group(1) for line in self.process.stdout if "http://" in line)
        self.port = int(port)

    def complete(self, schema, seed, temperature, diffusion):
        """(status, the text or the error)"""
        body = {"prompt": "a", "max_tokens": CANVAS, "seed": seed, "temperature": temperature, "diffusion": diffusion,
                "response_format": {"type": "json_schema", "schema": schema}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer["choices"][0]["text"] if response.status == 200 else answer["error"]["message"]

    def close(self):
        self.process.terminate()
        self.process.wait()


class Judged:
    """A schema and its validator."""

    def __init__(self, path):
        self.schema = json.loads(path.read_text(encoding="utf-8"))["schema"]
        validator = jsonschema.validators.validator_for(self.schema)
        validator.check_schema(self.schema)
        self.validator = validator(self.schema)

    def judge(self, text):
        try:
            self.validator.validate(json.loads(text))
        except (ValueError, jsonschema.ValidationError) as error:
            return f"invalid: {str(error).splitlines()[0]}: {text[:200]}"
        except Exception as error:  # references that cannot be followed, patterns that are not Python's
            return f"unjudged: {type(error).__name__}"
        return "valid"

    def fill(self, server, family, cache, schedule, seed):
        steps = {"steps": STEPS} if schedule in ("stepwise", "prophet", "ssd") else {"threshold": THRESHOLD[family]}
        diffusion = dict(FAMILIES[family], cache=cache, schedule=schedule, block_length=32 if seed <= 3 else CANVAS, **steps)
        status, text = server.complete(self.schema, seed, (0, 0.5, 1)[seed % 3], diffusion)
        return self.judge(text) if status == 200 else f"failed: {status}: {text}"


def usable(path, server):
    """None where pawl or jsonschema does not take the schema, or no output fits the canvas."""
    try:
        schema = Judged(path)
    except jsonschema.SchemaError:
        return None
    status, text = server.complete(schema.schema, 0, 0, {"threshold": 0})
    return None if status != 200 or schema.judge(text).startswith("unjudged") else schema


class Check:
    """Runs of (family, cache, schedule, schema, seed), with what the file of results has of them."""

    def __init__(self, options, servers):
        self.options, self.servers = options, servers
        self.done, self.used, self.judged = {}, {}, {}
        lines = options.results.read_text().splitlines() if options.results.exists() else []
        for line in map(json.loads, lines):
            if "run" in line:
                self.done[tuple(line["run"])] = line
            else:
                self.used[line["schema"]] = line["used"]
        self.begin = time.monotonic()

    def write(self, line):
        with self.options.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def schemas(self):
        """Names of those that are used; what is not known yet is tried."""
        paths = sorted(self.options.data.glob("*.json"))
        random.Random(43).shuffle(paths)
        count = 0
        for path in paths:
            if count == self.options.schemas or self.over():
                return
            if path.name not in self.used:
                self.judged[path.name] = usable(path, self.servers["llada"])
                self.used[path.name] = self.judged[path.name] is not None
                self.write({"schema": path.name, "used": self.used[path.name]})
            if self.used[path.name]:
                count += 1
                yield path.name

    def over(self):
        return time.monotonic() - self.begin > self.options.seconds

    def run(self):
        modes = list(itertools.product(FAMILIES, CACHES, SCHEDULES, SEEDS))
        for turn in TURNS:
            for name in self.schemas():
                runs = [(family, cache, schedule, name, seed) for family, cache, schedule, seed in modes]
                random.Random(f"44 {name}").shuffle(runs)
                end = time.monotonic() + turn
                for run in runs:
                    if run in self.done or run[4] not in self.options.seeds:
                        continue
                    if self.over():
                        return
                    if time.monotonic() > end:
                        break
                    self.make(run)

    def make(self, run):
        family, cache, schedule, name, seed = run
        if name not in self.judged:
            self.judged[name] = Judged(self.options.data / name)
        at = time.monotonic()
        one = {"run": run, "verdict": self.judged[name].fill(self.servers[family], family, cache, schedule, seed)}
        self.done[run] = dict(one, seconds=round(time.monotonic() - at, 3))
        self.write(self.done[run])


def summary(done):
    counts = collections.Counter(one["verdict"].split(":")[0] for one in done)
    modes = {}
    for one in done:
        mode = modes.setdefault(" ".join(one["run"][:3]), collections.Counter())
        mode[one["verdict"].split(":")[0]] += 1
    return {"outputs": len(done), "of": 200 * len(FAMILIES) * len(CACHES) * len(SCHEDULES) * len(SEEDS), "verdicts": counts,
            "one_block": sum(one["run"][4] > 3 for one in done), "schemas": len({one["run"][3] for one in done}),
            "modes": {name: modes[name] for name in sorted(modes)},
            "bad": [one for one in done if one["verdict"].split(":")[0] in ("invalid", "failed")][:20]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder of MaskBench's schemas")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="JSON lines, read where they exist")
    parser.add_argument("--pawl", default=str(ROOT / "build/pawl"))
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="of this run: 4 and 5 take much longer than the others")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of this run")
    parser.add_argument("--summary", type=pathlib.Path, help="a file for the summary")
    options = parser.parse_args()
    servers = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for family in FAMILIES:
                tiny_model(family, pathlib.Path(folder) / family)
                servers[family] = Server(options.pawl, pathlib.Path(folder) / family)
            check = Check(options, servers)
            check.run()
        finally:
            for server in servers.values():
                server.close()
    result = summary(list(check.done.values()))
    print(json.dumps(result, indent=1))
    if options.summary:
        options.summary.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if result["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
