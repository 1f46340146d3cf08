#!/usr/bin/env python3
"""The tiny models of tests/data/models in Pawl, in llama.cpp and in transformers.

For each GGUF file of type F32 in FILES: the largest differences of log-probabilities of the tokens of the longest
prompt, between each two of the three, or why llama.cpp does not run the file. The reference's are those of
golden.safetensors. Where the prompt begins with a token that is no text, the two programs are compared from the
first token that is one. Each file is read by a process of its own, since some end llama.cpp.

Usage: family_peers.py FILES [NAME...] [--pawl build/pawl] [--out FILE], after
make_family_goldens.py and make_recurrent_goldens.py with --converter LLAMA_CPP --f32 FILES; the families that the first
version knew: make_family_goldens.py ... --output tests/data/models NAME...
Needs llama-cpp-python, gguf, numpy and safetensors.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "data" / "models"
PRINTABLE = range(3, 3 + ord("~") - ord("!") + 1)  # token 3 is the byte "!", and so on


def log_probabilities(logits, tokens):
    """Of each token but the first one."""
    import numpy
    rows = logits[: len(tokens) - 1].astype(numpy.float64)
    most = rows.max(axis=1, keepdims=True)
    rows = rows - most - numpy.log(numpy.exp(rows - most).sum(axis=1, keepdims=True))
    return rows[numpy.arange(len(rows)), tokens[1:]]


def by_llama(file, tokens, vocabulary, answers, errors):
    import gguf_peers
    import llama_cpp
    import numpy
    from gguf import GGUFReader
    from llama_cpp import Llama
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    gguf_peers.without_repacking()
    said = []

    @llama_cpp.llama_log_callback
    def listen(level, text, _):
        if level == 4:  # an error
            said.append(text.decode())

    llama_cpp.llama_log_set(listen, ctypes.c_void_p(0))
    try:
        family = GGUFReader(str(file)).fields["general.architecture"].contents()
        # Their vocabularies are of single bytes, without the merges that llama.cpp insists on.
        other = {"tokenizer.ggml.model": "none", f"{family}.vocab_size": vocabulary}
        model = Llama(str(file), kv_overrides=other, type_k=0, type_v=0, n_ctx=128, n_batch=128, n_threads=1, logits_all=True,
                      verbose=True)
        model.eval(tokens)
        answers.put(log_probabilities(numpy.array(model.scores[: len(tokens)]), tokens))
    except Exception as error:
        told = [line.split(": error loading model: ")[1].strip() for line in said if ": error loading model: " in line]
        answers.put(f"refused: {told[0] if told else error}".replace(str(file), file.name))


def by_pawl(pawl, file, tokens):
    import numpy
    first = chr(tokens[0] - 3 + ord("!"))
    command = [pawl, "score", "--model", str(file), "--prompt", first, "--tokens", ",".join(map(str, tokens[1:])),
               "--json", "--kernels", "avx2", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{file}: {done.stderr}")
    return numpy.array(json.loads(done.stdout)["log_probabilities"])


def compare(pawl, file):
    from safetensors.numpy import load_file
    folder = FOLDER / "families" / file.stem
    golden = load_file((folder if folder.is_dir() else FOLDER / file.stem) / "golden.safetensors")
    tokens = golden["prompt.2"].tolist()
    skipped = next(i for i, token in enumerate(tokens) if token in PRINTABLE)
    tokens = tokens[skipped:]
    reference = None if skipped else log_probabilities(golden["logits.2"], tokens)
    ours = by_pawl(pawl, file, tokens)
    result = {"skipped": skipped} if skipped else {"pawl": abs(ours - reference).max()}
    answers = multiprocessing.Queue()
    with tempfile.NamedTemporaryFile() as errors:
        process = multiprocessing.Process(target=by_llama, args=(file, tokens, golden["logits.2"].shape[1], answers, errors.name))
        process.start()
        process.join(120)
        lines = Path(errors.name).read_text(errors="replace").splitlines()
    asserted = [line[line.index("GGML_ASSERT"):] for line in lines if "GGML_ASSERT" in line]
    theirs = answers.get() if process.exitcode == 0 and not answers.empty() else f"ended with {process.exitcode}: {asserted[:1]}"
    if isinstance(theirs, str):
        result["llama_cpp_says"] = theirs
    else:
        if not skipped:
            result["llama_cpp"] = abs(theirs - reference).max()
        result["between"] = abs(ours - theirs).max()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--pawl", default=str(ROOT / "build" / "pawl"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results = {}
    for file in sorted(given.files.glob("*.gguf")):
        if not given.names or file.stem in given.names:
            results[file.stem] = compare(given.pawl, file)
            print(f"{file.stem:20}", {k: v if isinstance(v, str | int) else f"{v:.1e}" for k, v in results[file.stem].items()}, flush=True)
    if given.out:
        import llama_cpp
        told = {"what": "largest differences of log-probabilities: of each program from transformers, and between them",
                "llama_cpp_python": llama_cpp.__version__, "results": results}
        given.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
