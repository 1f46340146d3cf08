#!/usr/bin/env python3
"""The tiny models of tests/data/models/families in llama.cpp: how far its log-probabilities are from the reference's.

For each model that has a GGUF file of type F32 in FILES: the largest difference at the last position of the longest prompt, or why llama.cpp
does not run the file. Each file is read by a process of its own, since some end it.

Usage: family_peers.py FILES [NAME...], after make_family_goldens.py --converter LLAMA_CPP --f32 FILES
Needs llama-cpp-python, gguf, numpy and safetensors.
"""

import multiprocessing
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "models" / "families"


def log_probabilities(logits, numpy):
    shifted = logits.astype(numpy.float64) - logits.max()
    return shifted - numpy.log(numpy.exp(shifted).sum())


def compare(file, answers):
    import gguf_peers
    import numpy
    from gguf import GGUFReader
    from llama_cpp import Llama
    from safetensors.numpy import load_file
    gguf_peers.without_repacking()
    golden = load_file(FOLDER / file.stem / "golden.safetensors")
    tokens = golden["prompt.2"].tolist()
    try:
        path = str(file)
        family = GGUFReader(path).fields["general.architecture"].contents()
        # Their vocabularies are of single bytes, without the merges that llama.cpp insists on.
        other = {"tokenizer.ggml.model": "none", f"{family}.vocab_size": golden["logits.2"].shape[1]}
        model = Llama(path, kv_overrides=other, type_k=0, type_v=0, n_ctx=128, n_batch=128, n_threads=1, logits_all=True,
                      verbose=False)
        model.eval(tokens)
    except Exception as error:
        return answers.put(f"refused: {error}"[:100])
    ours = log_probabilities(golden["logits.2"][-1], numpy)
    theirs = log_probabilities(numpy.array(model.scores[len(tokens) - 1]), numpy)
    answers.put(f"{numpy.abs(ours - theirs).max():.5f}")


def main():
    for file in sorted(Path(sys.argv[1]).glob("*.gguf")):
        if len(sys.argv) > 2 and file.stem not in sys.argv[2:]:
            continue
        answers = multiprocessing.Queue()
        process = multiprocessing.Process(target=compare, args=(file, answers))
        process.start()
        process.join(120)
        told = answers.get() if process.exitcode == 0 and not answers.empty() else f"ended with {process.exitcode}"
        print(f"{file.stem:18} {told}", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
