"""Time of vLLM's StructuredOutputManager for a step's masks, with Pawl, xgrammar and guidance in one run.

    python plugins/vllm/tests/mask_time.py --tokenizer DIR --schemas DIR [--count N] [--batch N...] [--json OUT]

Requests of MaskBench schemas walk along their valid examples; every backend sees the same tokens. A step is one call of
grammar_bitmask over a batch, with or without drafts of 4 tokens (which are right but for the last now and then). Measured is processor
time of the process, since other work may run next to it: `mask` is the time in the backend's own fills (what the manager calls), `call`
that of the whole of grammar_bitmask. Steps of the backends alternate. `first`: each schema is new, and Pawl makes the parts of its
grammar and its masks when they are asked for. `again`: the same requests once more. `compile` is what a schema takes before its first
step (the others find there what Pawl finds in the steps), and `whole`, for batches of 1, a schema's compile and all of its masks
together. A schema that one of them refuses is left out for all.
"""

import argparse
import glob
import json
import os
import random
import statistics
import time
from types import SimpleNamespace

import pawl.vllm as plugin

plugin.register()

import transformers  # noqa: E402
import vllm.v1.structured_output as host  # noqa: E402
from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: E402
from vllm.v1.structured_output.request import StructuredOutputRequest  # noqa: E402


def manager_of(name, tokenizer, vocab, batch, drafts):
    config = SimpleNamespace(
        additional_config={}, num_speculative_tokens=drafts,
        speculative_config=SimpleNamespace(num_speculative_tokens=drafts) if drafts else None,
        structured_outputs_config=SimpleNamespace(
            backend=name, disable_any_whitespace=False, disable_additional_properties=False,
            reasoning_parser="", reasoning_parser_plugin="", enable_in_reasoning=False),
        scheduler_config=SimpleNamespace(max_num_seqs=batch),
        parallel_config=SimpleNamespace(distributed_executor_backend="external_launcher"),
        model_config=SimpleNamespace(skip_tokenizer_init=True, is_diffusion=False,
                                     hf_config=SimpleNamespace(model_type="llama"),
                                     get_vocab_size=lambda: vocab))
    made = host.StructuredOutputManager(config)
    made.tokenizer = tokenizer
    return made


class Request(SimpleNamespace):
    use_structured_output = True


def start(manager, backend, name, schema, eos):
    params = SamplingParams(structured_outputs=StructuredOutputsParams(json=schema))
    params.structured_outputs._backend = backend
    params._all_stop_token_ids = {eos}
    request = Request(request_id=name, sampling_params=params, prompt_token_ids=[], all_token_ids=[],
                      structured_output_request=StructuredOutputRequest.from_sampling_params(params))
    manager.grammar_init(request)
    grammar = request.structured_output_request.grammar
    if isinstance(grammar, Exception):
        raise grammar
    return request


def cases_of(folder, tokenizer, count, seed):
    cases = []
    files = sorted(glob.glob(os.path.join(folder, "**", "*.json"), recursive=True))
    random.Random(seed).shuffle(files)
    for file in files:
        if len(cases) >= count:
            break
        data = json.load(open(file))
        valid = [t["data"] for t in data.get("tests", []) if t.get("valid")]
        if not valid:
            continue
        text = json.dumps(valid[0], ensure_ascii=False)
        tokens = tokenizer.encode(text, add_special_tokens=False)
        if 8 <= len(tokens) <= 400:
            cases.append((json.dumps(data["schema"]), tokens))
    return cases


class Timer:
    """Adds up the processor time of calls of a method."""

    def __init__(self, owner, name):
        self.total, original = 0.0, getattr(owner, name)

        def timed(*arguments):
            begin = time.process_time_ns()
            try:
                return original(*arguments)
            finally:
                self.total += time.process_time_ns() - begin
        setattr(owner, name, timed)


def run(backends, cases, tokenizer, vocab, batch, drafts, eos):
    """Median microseconds of a step, for the mask and for the call, by backend."""
    rng = random.Random(5)
    managers, live, left_out = {}, [], []
    compiles = {name: [] for name in backends}
    for name in backends:
        managers[name] = manager_of(name, tokenizer, vocab, batch, drafts)
        start(managers[name], name, "begin", '{"type": "boolean"}', eos)  # makes the backend
    for at, (schema, tokens) in enumerate(cases):
        made, spent = {}, {}
        try:
            for name in backends:
                begin = time.process_time_ns()
                made[name] = start(managers[name], name, str(at), schema, eos)
                spent[name] = time.process_time_ns() - begin
                prefix = made[name].structured_output_request.grammar.validate_tokens(list(tokens))
                if len(prefix) != len(tokens):
                    raise ValueError("the example does not fit")
        except Exception as error:
            left_out.append(f"{name}: {error}"[:150])
            continue
        live.append((made, tokens))
        for name in backends:
            compiles[name].append(spent[name] / 1e3)
    print(f"{len(live)} schemas, {len(left_out)} left out", *left_out[:3], sep="\n    ", flush=True)
    print("compile, us a schema:", *(f"{name} {statistics.mean(times):.0f} (median "
                                     f"{statistics.median(times):.0f})" for name, times in compiles.items()))
    passes = []
    for _ in range(2):
        passes.append(one_pass(backends, managers, live, batch, drafts, rng))
        for made, _ in live:
            for name in backends:
                grammar = made[name].structured_output_request.grammar
                if hasattr(grammar, "ll_matcher"):
                    grammar.ll_matcher.reset()
                else:
                    grammar.reset()
    return passes, {name: statistics.mean(times) for name, times in compiles.items()}, len(live)


def one_pass(backends, managers, live, batch, drafts, rng):
    """Every request from its first token to its last, `batch` at a time."""
    steps = {name: ([], []) for name in backends}
    waiting = list(range(len(live)))
    running = {}
    while True:
        while waiting and len(running) < batch:
            running[waiting.pop()] = 0
        if len(running) < batch:
            break
        scheduled = {}
        for at, position in running.items():
            draft = live[at][1][position:position + drafts]
            scheduled[str(at)] = draft[:-1] if draft and rng.random() < 0.2 else draft
        order = list(backends)
        rng.shuffle(order)
        for name in order:
            requests = {str(at): live[at][0][name] for at in running}
            fills = timers[name]
            fills.total = 0
            begin = time.process_time_ns()
            managers[name].grammar_bitmask(requests, list(requests), scheduled if drafts else {})
            call = time.process_time_ns() - begin
            steps[name][0].append(fills.total / 1e3)
            steps[name][1].append(call / 1e3)
            for at, position in running.items():
                live[at][0][name].structured_output_request.grammar.accept_tokens(
                    str(at), [live[at][1][position]])
        for at in list(running):
            running[at] += 1
            if running[at] >= len(live[at][1]):
                del running[at]
    return {name: (statistics.mean(a), statistics.median(a), statistics.mean(b),
                   statistics.median(b), len(a)) for name, (a, b) in steps.items() if a}


timers = {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--schemas", required=True)
    parser.add_argument("--count", type=int, default=128)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--json")
    options = parser.parse_args()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(options.tokenizer, "tokenizer.json"))
    vocab = len(tokenizer)
    eos = vocab - 1
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(eos)
    backends = ["pawl", "xgrammar", "guidance"]
    from vllm.v1.structured_output.backend_guidance import GuidanceGrammar
    from vllm.v1.structured_output.backend_xgrammar import XgrammarGrammar

    # The fills of the peers: a row, and with drafts the steps to the next row and back.
    timers["pawl"] = Timer(plugin.backend_class(), "fill")
    for name, owner in (("xgrammar", XgrammarGrammar), ("guidance", GuidanceGrammar)):
        timers[name] = Timer(owner, "fill_bitmask")
    cases = cases_of(options.schemas, tokenizer, options.count, 1)
    report = []
    for batch in options.batch:
        for drafts in (0, 4):
            both, compiles, schemas = run(backends, cases, tokenizer, vocab, batch, drafts, eos)
            whole = {}
            if batch == 1:  # a larger batch that is no longer full ends before its requests do
                whole = {name: compiles[name] + both[0][name][0] * both[0][name][4] / schemas
                         for name in backends}
                best = min(whole[name] for name in backends[1:])
                print("    compile and all masks of the first use, us a schema:",
                      *(f"{name} {whole[name]:.0f}" for name in backends),
                      f"  pawl / better {whole['pawl'] / best:.3f}")
            for when, result in zip(("first", "again"), both):
                best_mask = min(result[name][0] for name in backends[1:])
                best_call = min(result[name][2] for name in backends[1:])
                for name in backends:
                    mean, median, call, call_median, steps = result[name]
                    print(f"batch {batch:2} drafts {drafts} {when}  {name:9} mask {mean:9.1f} us "
                          f"(median {median:8.1f})  call {call:9.1f} us (median "
                          f"{call_median:8.1f})  {steps} steps", flush=True)
                    report.append({"batch": batch, "drafts": drafts, "pass": when, "backend": name,
                                   "mask_us": mean, "mask_median_us": median, "call_us": call,
                                   "call_median_us": call_median, "steps": steps,
                                   "schemas": schemas, "compile_us": compiles[name],
                                   "whole_us": whole.get(name) if when == "first" else None})
                ours = result["pawl"]
                print(f"    pawl / better of the others: mask {ours[0] / best_mask:.3f} "
                      f"(bar 0.25), call {ours[2] / best_call:.3f} (bar 0.5)", flush=True)
    if options.json:
        json.dump(report, open(options.json, "w"), indent=1)


if __name__ == "__main__":
    main()
