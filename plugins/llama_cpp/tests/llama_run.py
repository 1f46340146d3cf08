"""llama_run.py MODEL.gguf: both entries into llama.cpp, on a random model.

The module in Python: JSON, regex, choice, greedy and sampled, one processor for several completions, a budget. The sampler in C, from
example/complete.c and from Python: on the CPU and in the graph, which must agree when greedy; clone, copy and reset through
llama.cpp's own chain. LLAMA_INCLUDE names folders with llama.h and ggml.h (colon between them) when the wheel of llama-cpp-python has
none; PAWL_PREFIX the folder of include/ and libpawl (default: this source tree and its build).
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile

import llama_cpp
import pawl
import pawl.llama_cpp

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
SCHEMA = {"type": "object", "required": ["name", "n"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 20}, "n": {"type": "integer", "minimum": 0, "maximum": 99}}}
PHONE = r"\+[1-9][0-9]{1,2} [0-9]{3}-[0-9]{4}"


def is_record(text):
    value = json.loads(text)
    return set(value) == {"name", "n"} and 0 <= value["n"] <= 99


def python_module(llama):
    compiler = pawl.Compiler(pawl.llama_cpp.vocabulary_of(llama))
    cases = [(compiler.json_schema(SCHEMA), is_record),
             (compiler.regex(PHONE), lambda t: re.fullmatch(PHONE, t)),
             (compiler.choice(["red", "green"]), lambda t: t in ("red", "green"))]
    count = 0
    for grammar, check in cases:
        processor = pawl.llama_cpp.LogitsProcessor(grammar)
        for seed, temperature in ((1, 0.0), (1, 1.5), (2, 1.5)):
            out = llama.create_completion(
                "A record:", max_tokens=200, temperature=temperature, top_k=0, seed=seed,
                logits_processor=llama_cpp.LogitsProcessorList([processor]))["choices"][0]
            assert out["finish_reason"] == "stop" and check(out["text"]), out
            count += 1
    processor = pawl.llama_cpp.LogitsProcessor(compiler.json_schema(
        {"type": "array", "items": {"type": "string"}}), max_tokens=60)
    out = llama.create_completion("x", max_tokens=60, temperature=1.5, top_k=0, seed=3,
                                  logits_processor=llama_cpp.LogitsProcessorList([processor]))
    assert isinstance(json.loads(out["choices"][0]["text"]), list) and processor.closed
    what_goes_wrong(llama, compiler)
    return count + 1


def what_goes_wrong(llama, compiler):
    """An exception behind llama.cpp is lost: no completion may go on without its constraint."""
    try:
        pawl.llama_cpp.LogitsProcessor(compiler.regex("a{400}"), max_tokens=9)
        raise AssertionError("a budget that no output fits was taken")
    except pawl.PawlError as error:
        assert error.place == "max_tokens", error

    def forces(input_ids, scores):  # as a processor behind ours would
        scores[:] = -1e9
        scores[ord("?") % len(scores)] = 0.0
        return scores

    processor = pawl.llama_cpp.LogitsProcessor(compiler.regex("(ab){20}"))
    processors = llama_cpp.LogitsProcessorList([processor, forces])
    out = llama.create_completion("x", max_tokens=30, seed=3, logits_processor=processors)
    assert isinstance(processor.error, ValueError) and "does not fit" in str(processor.error)
    try:
        llama.create_completion("x", max_tokens=30, seed=3, logits_processor=processors,
                                stopping_criteria=llama_cpp.StoppingCriteriaList([processor.stop]))
        raise AssertionError(f"nothing was raised; without it there was {out}")
    except ValueError as error:
        assert "does not fit" in str(error)
    # The error ends the output where it happened, and the next completion starts fresh.
    once = [True]

    def forces_once(input_ids, scores):
        return forces(input_ids, scores) if once and once.pop() else scores

    out = llama.create_completion("x", max_tokens=60, temperature=1.5, seed=3, logits_processor=(
        llama_cpp.LogitsProcessorList([processor, forces_once])))["choices"][0]
    assert processor.error and out["finish_reason"] == "stop" and "ab" not in out["text"], out
    out = llama.create_completion("x", max_tokens=60, temperature=1.5, seed=3, logits_processor=(
        llama_cpp.LogitsProcessorList([processor])))["choices"][0]
    assert processor.error is None and out["text"] == "ab" * 20, out


def build(folder):
    package = os.path.dirname(llama_cpp.__file__)
    include = os.environ.get("LLAMA_INCLUDE", os.path.join(package, "include"))
    prefix = os.environ.get("PAWL_PREFIX", ROOT)
    library = os.path.join(folder, "libpawl_llama.so")
    lib = os.path.join(package, "lib")
    subprocess.run([os.path.join(ROOT, "plugins/llama_cpp/build_shared.sh"), library, include, lib, prefix],
                   check=True)
    program = os.path.join(folder, "complete")
    includes = [f"-I{i}" for i in include.split(":")]
    libraries = [os.path.join(lib, f) for f in sorted(os.listdir(lib))
                 if f in ("libllama.so", "libggml.so", "libggml-base.so")]
    pawl_library = next(os.path.join(at, name) for at, _, names in os.walk(prefix) for name in names
                        if name == "libpawl.so")
    subprocess.run(["cc", "-O1", *includes, f"-I{ROOT}/plugins/llama_cpp", f"-I{prefix}/include",
                    f"{ROOT}/plugins/llama_cpp/example/complete.c", "-o", program, library, *libraries,
                    pawl_library, f"-Wl,-rpath,{folder}:{lib}:{os.path.dirname(pawl_library)}"], check=True)
    return library, program


def c_program(program, model):
    count = 0
    for kind, text, check in (("json_schema", json.dumps(SCHEMA), is_record),
                              ("regex", PHONE, lambda t: re.fullmatch(PHONE, t)),
                              ("gbnf", 'root ::= "x" [0-9]{2,5}', lambda t: re.fullmatch("x[0-9]{2,5}", t))):
        outputs = []
        for extra in ([], ["graph"]):
            run = subprocess.run([program, model, kind, text, "A record:", *extra], capture_output=True)
            assert run.returncode == 0, (kind, extra, run.stdout[-200:], run.stderr[-300:])
            outputs.append(run.stdout.decode().rstrip("\n"))
            assert check(outputs[-1]), outputs[-1]
            count += 1
    bad = subprocess.run([program, model, "json_schema", '{"minLength":"x"}', "x"], capture_output=True)
    assert bad.returncode == 1 and b"#/minLength" in bad.stderr
    return count


def sampler_promises(library, llama):
    """Through llama.cpp's own chain: accept, clone, copy, reset."""
    loaded = pawl.llama_cpp.Sampler.load(library)
    vocab = llama_cpp.llama_model_get_vocab(llama._model.model)
    size = llama_cpp.llama_vocab_n_tokens(vocab)

    def chain_of(constraint):
        chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        llama_cpp.llama_sampler_chain_add(chain, ctypes.cast(
            constraint.pointer, ctypes.POINTER(llama_cpp.llama_sampler)))
        return chain

    def allowed(chain):
        data = (llama_cpp.llama_token_data * size)(*[
            llama_cpp.llama_token_data(id=i, logit=0.0, p=0.0) for i in range(size)])
        array = llama_cpp.llama_token_data_array(data=data, size=size, selected=-1, sorted=False)
        llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
        return {array.data[i].id for i in range(array.size)}

    token = {llama.detokenize([i]): i for i in range(3, size)}
    constraint = pawl.llama_cpp.Sampler(loaded, llama, "regex", "ab[cd]")
    chain = chain_of(constraint)
    start = allowed(chain)
    assert token[b"a"] in start
    llama_cpp.llama_sampler_accept(chain, token[b"a"])
    behind = allowed(chain)
    assert token[b"b"] in behind and behind != start
    clone = llama_cpp.llama_sampler_clone(chain)
    llama_cpp.llama_sampler_accept(clone, token[b"b"])
    assert allowed(chain) == behind and allowed(clone) != behind
    if hasattr(llama_cpp, "llama_sampler_copy"):
        llama_cpp.llama_sampler_copy(chain, clone)
        assert allowed(clone) == behind
    llama_cpp.llama_sampler_reset(clone)
    assert allowed(clone) == start and allowed(chain) == behind
    assert constraint.validate([token[b"b"], token[b"c"], token[b"c"]]) == 2
    assert constraint.rollback(1) and allowed(chain) == start and not constraint.rollback(1)
    llama_cpp.llama_sampler_free(clone)
    llama_cpp.llama_sampler_free(chain)
    try:
        pawl.llama_cpp.Sampler(loaded, llama, "regex", "(a")
        raise AssertionError("a bad pattern was taken")
    except pawl.PawlError:
        pass


def main():
    llama = llama_cpp.Llama(sys.argv[1], verbose=False, n_ctx=512)
    outputs = python_module(llama)
    with tempfile.TemporaryDirectory() as folder:
        library, program = build(folder)
        outputs += c_program(program, sys.argv[1])
        sampler_promises(library, llama)
    print(f"{outputs} constrained outputs valid; clone, copy, reset and rollback through llama.cpp's chain; "
          "the mask in the graph")


if __name__ == "__main__":
    main()
