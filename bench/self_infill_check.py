#!/usr/bin/env python3
"""Self-infilled outputs under a grammar, of a model with random weights: all have to be texts of the grammar.

    PYTHONPATH=build/python/site bench/self_infill_check.py --outputs 1000 --out bench/results/self_infill-DATE.json

The weights of models/tiny-code are drawn anew, so the model says nothing and the grammar decides what may be. Each output
has a seed of its own. It is read again by a matcher, byte by byte, and by Python's own parser. With 0 loops it has to be
the plain output, token for token.
"""

import argparse
import ast
import json
import shutil
import struct
import tempfile
from pathlib import Path

import numpy

import pawl
from pawl import sampling

ROOT = Path(__file__).resolve().parent.parent


def random_weights(source, folder, seed):
    shutil.copytree(source, folder)
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    rng = numpy.random.default_rng(seed)
    for name, tensor in header.items():
        if name == "__metadata__" or len(tensor["shape"]) < 2:
            continue
        begin, end = tensor["data_offsets"]
        drawn = rng.normal(0, 1 / numpy.sqrt(tensor["shape"][-1]), size=tensor["shape"]).astype(numpy.float32)
        if tensor["dtype"] == "BF16":
            raw = (drawn.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
        else:
            raw = drawn.astype({"F16": numpy.float16, "F32": numpy.float32}[tensor["dtype"]]).tobytes()
        data[8 + size + begin:8 + size + end] = raw
    path.write_bytes(bytes(data))


def is_text(compiler_grammar, text):
    matcher = pawl.Matcher(compiler_grammar)
    return matcher.accept_bytes(text) and matcher.accepting


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "models/tiny-code"))
    parser.add_argument("--grammar", default=str(ROOT / "grammar/examples/python.ebnf"))
    parser.add_argument("--outputs", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--out")
    options = parser.parse_args()
    report = {"outputs": 0, "texts_of_the_grammar": 0, "parsed_by_python": 0, "no_loops_equal": 0, "limits": 0, "longer_than_20": 0}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "random"
        random_weights(Path(options.model), folder, 1)
        model = sampling.Model(folder, threads=1)
        grammar = model._grammar(None, None, None, options.grammar, {})
        for seed in range(options.outputs):
            prompt = f"# {seed}\n"
            common = dict(strategy="self-infill", grammar=grammar, max_tokens=options.tokens, seed=seed)
            temperature = 1 if seed % 2 else 0.5
            found = model.search(prompt, search_arg={"temperature": temperature, "threshold": 0.5, "loops": 2}, **common)
            plain = model.search(prompt, search_arg={"temperature": temperature, "loops": 0}, **common)
            drawn = model.search(prompt, strategy="cntp", search_arg={"max_trials": 1, "temperature": temperature}, grammar=grammar,
                                 max_tokens=options.tokens, seed=seed)
            text = found.outputs[0].text
            report["outputs"] += 1
            report["limits"] += found.at_limit is not None
            report["longer_than_20"] += len(text) > 20
            report["texts_of_the_grammar"] += is_text(grammar, text)
            report["no_loops_equal"] += plain.outputs[0].tokens == drawn.outputs[0].tokens
            try:
                ast.parse(text)
                report["parsed_by_python"] += 1
            except SyntaxError:
                pass
            if seed % 50 == 49:
                print(json.dumps(report), flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
