"""The engines that run next to `pawl maskbench`, each through the fastest entry of its public Python interface, and the worker that times them.

Run as a program it is that worker, one process for each engine: a JSON line per schema on standard input,
{"schema": TEXT, "tests": [{"ids": [...], "valid": true}], "warm": false}, and a JSON line with the outcome on standard output.
maskbench_peers.py starts it, pins it to a core, and starts it again when a schema crashed it or took too long.

What is timed, with perf_counter_ns: TTFM is everything from the schema's text to the first mask. TBM is, for each token of a
text, filling the mask and advancing by the token. Looking at the mask, and making the matcher of a further text, is not.
"""

import json
import os
import pathlib
import resource
import sys
import time


def end_token(tokenizer_dir):
    """(name, id) of the end of output, from tokenizer_config.json."""
    folder = pathlib.Path(tokenizer_dir)
    name = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["eos_token"]
    name = name["content"] if isinstance(name, dict) else name
    whole = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for token in whole["added_tokens"]:
        if token["content"] == name:
            return name, token["id"]
    return name, whole["model"]["vocab"][name]


class Refused(Exception):
    """The engine does not take the schema."""


class PawlPython:
    """Pawl through its Python package, so that no engine is favoured by a language."""

    def __init__(self, tokenizer_dir, warm):
        import importlib.metadata

        import pawl

        self.pawl, self.warm = pawl, warm
        self.version = importlib.metadata.version("pawl")
        self.vocabulary = pawl.Vocabulary.from_tokenizer_json(str(tokenizer_dir))
        _, self.end = end_token(tokenizer_dir)
        self.compiler = pawl.Compiler(self.vocabulary, cached_grammars=1000 if warm else 0)
        self.rows = pawl.allocate_mask(1, len(self.vocabulary))
        self.words = self.rows[0]

    def compile(self, schema):
        if not self.warm:  # as `pawl maskbench --cold`: only what belongs to the tokenizer stays
            self.compiler = self.pawl.Compiler(self.vocabulary)
        try:
            return self.compiler.json_schema(schema, order="any", whitespace="any", canonical_spelling=False,
                                             allow_exponents=True)
        except self.pawl.PawlError as error:
            raise Refused(str(error)) from None

    def start(self, compiled):
        return self.pawl.Matcher(compiled)

    def mask(self, matcher):
        matcher.fill_mask(self.rows)

    def advance(self, matcher, token):
        return matcher.accept(token)

    def problem(self, matcher):
        return ""


class XGrammar:
    """Masks through GrammarMatcher.fill_next_token_bitmask, as the documentation says for one request."""

    def __init__(self, tokenizer_dir, warm, **schema_options):
        import importlib.metadata

        import torch
        import transformers
        import xgrammar

        torch.set_num_threads(1)
        name, end = end_token(tokenizer_dir)
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(pathlib.Path(tokenizer_dir) / "tokenizer.json"), eos_token=name)
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, stop_token_ids=[end])
        self.xgrammar, self.end, self.schema_options = xgrammar, end, schema_options
        self.version = importlib.metadata.version("xgrammar")
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=warm)
        self.bitmask = xgrammar.allocate_token_bitmask(1, info.vocab_size)
        self.words = self.bitmask.numpy()[0]

    def compile(self, schema):
        try:
            return self.compiler.compile_json_schema(schema, **self.schema_options)
        except Exception as error:  # its own exceptions have no common base
            raise Refused(f"{type(error).__name__}: {error}") from None

    def start(self, compiled):
        return self.xgrammar.GrammarMatcher(compiled)

    def mask(self, matcher):
        matcher.fill_next_token_bitmask(self.bitmask)

    def advance(self, matcher, token):
        return matcher.accept_token(token)

    def problem(self, matcher):
        return ""


class LLGuidance:
    """Masks through LLMatcher.unsafe_compute_mask_ptr: it writes them in place, compute_bitmask allocates."""

    def __init__(self, tokenizer_dir, warm):
        import importlib.metadata

        import llguidance
        import numpy

        self.llguidance = llguidance
        self.version = importlib.metadata.version("llguidance")
        _, self.end = end_token(tokenizer_dir)
        text = (pathlib.Path(tokenizer_dir) / "tokenizer.json").read_text(encoding="utf-8")
        self.tokenizer = llguidance.LLTokenizer(text, eos_token=self.end,
                                                slices=llguidance.LLTokenizer.json_slices())
        self.words = numpy.zeros((self.tokenizer.vocab_size + 31) // 32, dtype=numpy.int32)
        self.pointer, self.bytes = self.words.ctypes.data, self.words.nbytes

    def compile(self, schema):
        try:
            grammar = self.llguidance.LLMatcher.grammar_from_json_schema(schema)
        except ValueError as error:
            raise Refused(str(error)) from None
        matcher = self.llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise Refused(matcher.get_error())
        return {"grammar": grammar, "matcher": matcher}

    def start(self, compiled):
        if compiled["matcher"].is_error():  # it never leaves that state
            compiled["matcher"] = self.llguidance.LLMatcher(self.tokenizer, compiled["grammar"], log_level=0)
        else:
            compiled["matcher"].reset()  # keeps what its lexer has learnt
        return compiled["matcher"]

    def mask(self, matcher):
        matcher.unsafe_compute_mask_ptr(self.pointer, self.bytes)

    def advance(self, matcher, token):
        return matcher.consume_token(token)

    def problem(self, matcher):
        return matcher.get_error() if matcher.is_error() else ""


# name -> how to make it. xgrammar by default allows only the properties that a schema names; "compliant" is the setting
# that means what JSON Schema says.
ENGINES = {
    "pawl-python": lambda folder, warm: PawlPython(folder, warm),
    "xgrammar": lambda folder, warm: XGrammar(folder, warm),
    "xgrammar-compliant": lambda folder, warm: XGrammar(folder, warm, any_whitespace=True, strict_mode=False),
    "llguidance": lambda folder, warm: LLGuidance(folder, warm),
}


def run_test(engine, compiled, ids, times):
    """How far the masks let the text come: (number of tokens allowed, end allowed, error). Appends to times in ns."""
    matcher = engine.start(compiled)
    words, clock = engine.words, time.perf_counter_ns
    for i, token in enumerate(ids):
        begin = clock()
        engine.mask(matcher)
        filled = clock()
        if not int(words[token >> 5]) >> (token & 31) & 1:
            return i, False, engine.problem(matcher)
        resumed = clock()
        taken = engine.advance(matcher, token)
        times.append(filled - begin + clock() - resumed)
        if not taken:
            return i, False, engine.problem(matcher) or "the mask allows a token that the matcher refuses"
    engine.mask(matcher)
    return len(ids), bool(int(words[engine.end >> 5]) >> (engine.end & 31) & 1), engine.problem(matcher)


def run_schema(engine, request):
    schema, tests = request["schema"], request["tests"]
    if request["warm"]:
        try:
            compiled = engine.compile(schema)
            for test in tests:
                run_test(engine, compiled, test["ids"], [])
        except Refused:
            pass  # said below
    begin = time.perf_counter_ns()
    try:
        fresh = engine.compile(schema)
    except Refused as error:
        return {"refused": str(error)[:500]}
    engine.mask(engine.start(fresh))
    ttfm = time.perf_counter_ns() - begin
    # Warm: the masks of the object that has seen the texts before. An engine with a cache of schemas gave the same one again.
    used = compiled if request["warm"] else fresh
    times, failures = [], []
    for number, test in enumerate(tests):
        ids, valid = test["ids"], test["valid"]
        fits, end, error = run_test(engine, used, ids, times)
        if error:
            failures.append({"kind": "engine_error", "detail": f"test {number}, token {fits}: {error[:300]}"})
        elif valid and fits < len(ids):
            failures.append({"kind": "valid_rejected", "detail": f"test {number}, token {fits} of {len(ids)}"})
        elif valid and not end:
            failures.append({"kind": "end_refused", "detail": f"test {number}"})
        elif not valid and fits == len(ids) and end:
            failures.append({"kind": "invalid_accepted", "detail": f"test {number}"})
    return {"ttfm_ns": ttfm, "tbm_ns": times, "failures": failures}


def main():
    name, tokenizer_dir, warm = sys.argv[1], sys.argv[2], sys.argv[3] == "warm"
    answers = os.fdopen(os.dup(1), "w")  # what the engines print must not get between the answers
    os.dup2(2, 1)
    engine = ENGINES[name](tokenizer_dir, warm)
    # Whatever an engine makes for the tokenizer when it is first used.
    run_schema(engine, {"schema": '{"type": "object", "properties": {"a": {"type": "number"}}}', "tests": [], "warm": False})
    print(json.dumps({"version": engine.version}), file=answers, flush=True)
    for line in sys.stdin:
        outcome = run_schema(engine, json.loads(line))
        outcome["rss_kb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps(outcome), file=answers, flush=True)


if __name__ == "__main__":
    main()
