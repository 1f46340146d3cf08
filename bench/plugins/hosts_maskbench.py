"""MaskBench schemas through an engine with a random model: is every output valid?

    python bench/plugins/hosts_maskbench.py HOST BACKEND --model DIR --data DIR [--count 500] [--skip N] [--json OUT]

HOST: transformers, llama_cpp, vllm or onnxruntime_genai. BACKEND: pawl, or its peer there (transformers: xgrammar; llama_cpp:
gbnf, which is llama.cpp's own; vllm: xgrammar or guidance). onnxruntime_genai is there as a peer: its only backend is guidance, which is
built into it; its MODEL is what `python -m onnxruntime_genai.models.builder -m TINY -i TINY -o MODEL -p fp32 -e cpu` makes. The model is
plugins/testing/tiny_model.py's; temperature 1.5. Each schema gives one output, which is

    valid      the schema's own validator (the package jsonschema, formats not asserted) takes it
    invalid    it does not, or the output is no JSON
    cut        the budget was spent before the output ended
    refused    the backend said no, with a message; "unnamed" when the message names nothing of the schema
    crash      anything else
"""

import argparse
import glob
import json
import multiprocessing
import os
import random
import time

MAX_TOKENS = 256


def schemas(folder, count):
    files = sorted(glob.glob(os.path.join(folder, "**", "*.json"), recursive=True))
    random.Random(7).shuffle(files)
    found = []
    for file in files:
        data = json.load(open(file))
        if isinstance(data.get("schema"), dict):
            found.append((os.path.basename(file), data["schema"]))
        if len(found) == count:
            break
    return found


def verdict(schema, text, ended):
    import jsonschema

    try:
        value = json.loads(text)
    except ValueError:
        return "cut" if not ended else "invalid"
    try:
        kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        kind(schema).validate(value)
    except jsonschema.ValidationError:
        return "invalid"
    except Exception:
        return "valid"  # a reference that the validator would have to fetch, or the like
    return "valid"


OPTIONS = {"max_string": 24, "max_digits": 6, "whitespace": "compact", "additional_properties": False}


def transformers_host(backend, model_dir, cases):
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(model_dir).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_dir)
    prompt = torch.tensor([tokenizer.encode("record:")])
    width = model.config.vocab_size
    if backend == "pawl":
        import pawl
        from pawl.transformers import LogitsProcessor

        compiler = pawl.Compiler(pawl.Vocabulary.from_huggingface(tokenizer, padded_size=width))

        def make(schema):
            return LogitsProcessor(compiler.json_schema(schema, **OPTIONS),
                                   max_new_tokens=MAX_TOKENS)
    else:
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=width)
        compiler = xgrammar.GrammarCompiler(info)

        def make(schema):
            return xgrammar.contrib.hf.LogitsProcessor(
                compiler.compile_json_schema(json.dumps(schema), any_whitespace=False))
        import xgrammar.contrib.hf
    for name, schema in cases:
        processor = make_or_error(make, schema)
        if isinstance(processor, Exception):
            yield name, schema, processor, None, None
            continue
        torch.manual_seed(1)
        try:
            out = model.generate(prompt, max_new_tokens=MAX_TOKENS, do_sample=True, temperature=1.5,
                                 top_k=0, logits_processor=[processor])[0, prompt.shape[1]:]
        except Exception as error:
            yield name, schema, refused_or_crash(error), None, None
            continue
        tokens = out.tolist()
        ended = model.config.eos_token_id in tokens
        yield name, schema, None, tokenizer.decode(tokens, skip_special_tokens=True), ended


def make_or_error(make, schema):
    try:
        return make(schema)
    except Exception as error:
        return error


def refused_or_crash(error):
    """A budget that is too small for any output is refused by name; the rest is a crash."""
    return error if getattr(error, "code", "") == "limit" else RuntimeError(f"crash: {error}")


def llama_cpp_host(backend, model_file, cases):
    import llama_cpp

    llama = llama_cpp.Llama(model_file, verbose=False, n_ctx=1024, seed=1)
    if backend == "pawl":
        import pawl
        import pawl.llama_cpp

        compiler = pawl.Compiler(pawl.llama_cpp.vocabulary_of(llama))

        def make(schema):
            grammar = compiler.json_schema(schema, **OPTIONS)
            processor = pawl.llama_cpp.LogitsProcessor(grammar, max_tokens=MAX_TOKENS)
            return {"logits_processor": llama_cpp.LogitsProcessorList([processor]),
                    "stopping_criteria": llama_cpp.StoppingCriteriaList([processor.stop])}
    else:
        def make(schema):
            grammar = llama_cpp.LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False)
            vocab = llama_cpp.llama_model_get_vocab(llama._model.model)
            sampler = llama_cpp.llama_sampler_init_grammar(vocab, grammar._grammar.encode(), b"root")
            if not sampler:  # generation would end the process
                raise ValueError("unnamed: the grammar that was made of the schema does not parse")
            llama_cpp.llama_sampler_free(sampler)
            return {"grammar": grammar}
    for name, schema in cases:
        arguments = make_or_error(make, schema)
        if isinstance(arguments, Exception):
            yield name, schema, arguments, None, None
            continue
        try:
            out = llama.create_completion("record:", max_tokens=MAX_TOKENS, temperature=1.5, top_k=0,
                                          top_p=1.0, min_p=0.0, repeat_penalty=1.0, **arguments)
        except Exception as error:
            yield name, schema, refused_or_crash(error), None, None
            continue
        choice = out["choices"][0]
        yield name, schema, None, choice["text"], choice["finish_reason"] == "stop"


def vllm_host(backend, model_dir, cases):
    if backend == "pawl":
        import pawl.vllm
        pawl.vllm.register()
    import vllm
    from vllm.sampling_params import StructuredOutputsParams

    extra = {"pawl": {**OPTIONS, "close": True}} if backend == "pawl" else {}
    llm = vllm.LLM(model_dir, structured_outputs_config={"backend": backend}, max_model_len=512,
                   enforce_eager=True, max_num_seqs=32, additional_config=extra, dtype="float32",
                   disable_log_stats=True)
    for name, schema in cases:
        params = vllm.SamplingParams(max_tokens=MAX_TOKENS, temperature=1.5, seed=1,
                                     structured_outputs=StructuredOutputsParams(json=schema))
        try:
            out = llm.generate(["record:"], params, use_tqdm=False)[0].outputs[0]
        except Exception as error:
            yield name, schema, error, None, None
            continue
        if out.finish_reason == "error":
            yield name, schema, ValueError(f"unnamed: {out.stop_reason}"), None, None
            continue
        yield name, schema, None, out.text, out.finish_reason == "stop"


def onnxruntime_genai_host(backend, model_dir, cases):
    """In a process of its own, which is started again when a schema ends it."""
    if backend != "guidance":
        raise SystemExit("ONNX Runtime GenAI has no place for another backend than guidance")
    context = multiprocessing.get_context("spawn")
    process = None
    for name, schema in cases:
        if process is None:
            here, there = context.Pipe()
            process = context.Process(target=onnxruntime_genai_worker, args=(model_dir, there), daemon=True)
            process.start()
            there.close()
        here.send(schema)
        try:
            text, ended, problem = here.recv()
        except EOFError:
            process.join()
            text, ended, problem = None, None, f"crash: the process ended with {process.exitcode}"
            process = None
        yield name, schema, None if problem is None else RuntimeError(problem), text, ended
    if process is not None:
        here.close()
        process.join()


def onnxruntime_genai_worker(model_dir, pipe):
    import onnxruntime_genai

    model = onnxruntime_genai.Model(model_dir)
    tokenizer = onnxruntime_genai.Tokenizer(model)
    prompt = tokenizer.encode("record:")
    while True:
        try:
            schema = pipe.recv()
        except EOFError:  # that was all
            return
        params = onnxruntime_genai.GeneratorParams(model)
        params.set_search_options(do_sample=True, temperature=1.5, top_k=0, top_p=1.0, random_seed=1,
                                  max_length=len(prompt) + MAX_TOKENS)
        try:
            params.set_guidance("json_schema", json.dumps(schema), False)
            generator = onnxruntime_genai.Generator(model, params)
            generator.append_tokens(prompt)
            while not generator.is_done():
                generator.generate_next_token()
        except Exception as error:
            pipe.send((None, None, str(error)))
            continue
        tokens = list(generator.get_sequence(0))[len(prompt):]
        pipe.send((tokenizer.decode(tokens), len(tokens) < MAX_TOKENS, None))


HOSTS = {"onnxruntime_genai": onnxruntime_genai_host, "transformers": transformers_host, "llama_cpp": llama_cpp_host, "vllm": vllm_host}


def processor_seconds():
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("host", choices=sorted(HOSTS))
    parser.add_argument("backend")
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--skip", type=int, default=0, help="this many of them, for a run that goes on where one stopped")
    parser.add_argument("--seconds", type=float, help="stop after so much time; the summary says how many were done")
    parser.add_argument("--json")
    options = parser.parse_args()
    cases = schemas(options.data, options.count)[options.skip:]
    counts, details, begin, started, done = {}, [], processor_seconds(), time.monotonic(), 0
    for name, schema, error, text, ended in HOSTS[options.host](options.backend, options.model, cases):
        if error is not None:
            message = str(error)
            outcome = ("crash" if message.startswith("crash") else
                       "refused" if "unnamed" not in message and message else "unnamed")
        else:
            message = text[:300]
            outcome = verdict(schema, text, ended)
        counts[outcome] = counts.get(outcome, 0) + 1
        done += 1
        if options.seconds and time.monotonic() - started > options.seconds:
            break
        if outcome != "valid":
            details.append({"file": name, "outcome": outcome, "message": message[:300]})
    line = {"host": options.host, "backend": options.backend, "schemas": done, **counts,
            "cpu_seconds": round(processor_seconds() - begin, 1)}
    print(json.dumps(line), flush=True)
    if options.json:
        json.dump({"summary": line, "details": details}, open(options.json, "w"), indent=1)


if __name__ == "__main__":
    main()
