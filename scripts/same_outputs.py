#!/usr/bin/env python3
"""What some 130 commands and requests write, through every door, and one hash of all of it.

    scripts/same_outputs.sh [BUILD_DIR] [--out FOLDER] [--only NAMES]   # runs them; the last line is the hash
    scripts/same_outputs.sh --compare OLD_FOLDER NEW_FOLDER             # exit code 1 when an output differs

For changes that must not change what users get: run it before and after, and once more with PAWL_KERNELS=avx2. Each
output is a file of FOLDER (default: BUILD_DIR/same_outputs), named for its case: standard output, standard error and
exit code of a command, status and body of a request. All seeds are given.

Two rules make outputs comparable, and nothing else touches them:
- FILTERS below cut out ids, dates, times, paths, ports and figures that are measured with a clock.
- In the text that is hashed, numbers with a fraction are rounded to two digits behind the point: kernels for different
  processors add in a different order, and the last digits of log-probabilities differ. The files keep all digits.
  --compare reads the files as they are; with --digits 2 it rounds too, for folders of different kernels.

An output that is meant to differ is a line of tests/expected_differences.txt: the name of the case, and why. The line
stands for one comparison; it is removed when the next release takes the new output as the one to keep.

Cases that need the Python package, a C compiler or the monitors are left out where those are missing. The program says
which, and --all makes that a failure.
"""

import argparse
import difflib
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = ROOT / "tests/expected_differences.txt"
NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
# A key ends so when its value is a time, or a quotient of a time.
TIMED = r'"(?:[a-z_]*(?:seconds|_ms|_us|_duration|per_second)|seconds[a-z_]*|created|created_at|completed_at)"'
FILTERS = [
    # (pattern, what stands in its place): ids
    (r"\b(chatcmpl|cmpl|extract|resp|msg|call|fc|ctc|ctco|rs|req|item|compile|fim)[-_][0-9A-Za-z]{8,}", r"\1-ID"),
    # dates and times
    (rf"({TIMED}: ?){NUMBER}", r"\1TIME"),
    (r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[-+][0-9:]+)", "DATE"),
    # the parts of "seconds": {...} in --stats-json
    (r'("seconds": ?)\{[^{}]*\}', r"\1TIMES"),
    # figures that are measured with a clock, as the command's lines write them
    (r"\b[0-9]+(\.[0-9]+)? ?(s|ms|us|µs|seconds|tokens/s|tokens a second|tokens per second)\b", "TIME"),
    # places of this machine
    (r"127\.0\.0\.1:[0-9]+", "ADDRESS"),
]
# What drafts do depends on the time that calls take, and they are on by default.
DRAFT_FILTERS = [
    (r'"(?:drafted_tokens|accepted_tokens)": ?[0-9]+,', ""),
    (r'"source":"(?:drafted|sampled)"', '"source":"SOURCE"'),
    (r'("(?:model_calls|forward_calls|points)": ?)[0-9]+', r"\1COUNT"),
    (r"\b[0-9]+ of [0-9]+ drafts came", "DRAFTS came"),
]
FRACTION = re.compile(r"(?<![0-9A-Za-z_.])-?[0-9]+\.[0-9]{3,}(?:[eE][-+]?[0-9]+)?(?![0-9A-Za-z_.])")

CONTACT = "schemas/examples/contact.json"
TEXT = "Ann Lee works at Harrow Ltd. Phone: 020 7946 0018."
TEXTS = [TEXT, "Write to Bo Ek at bo.ek@harrow.com.", "Invoice 7 from Acme, 30 EUR", "Joan Ray, Leeds, engineer",
         "Call Pete on 0161 496 0000 or write pete@pete.example", "nothing at all", "Zoë Brontë, Haworth", "X. Y.",
         "Director Mia Wolf of Blue Harbour met Tom."]
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "phone": {"type": ["string", "null"]},
                                           "city": {"enum": ["Leeds", "Porto", None]}},
          "required": ["name", "phone", "city"], "additionalProperties": False}
LOGIC = {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 3, "maximum": 900},
                                          "list": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9},
                                                   "uniqueItems": True, "minItems": 2, "maxItems": 5}},
         "required": ["kind", "n", "list"], "additionalProperties": False,
         "if": {"properties": {"kind": {"const": "a"}}}, "then": {"properties": {"n": {"multipleOf": 7}}}}
TYPESCRIPT = ["interface Point { left: number; topEdge: number }", "class Shape {", "  constructor(private readonly origin: Point) {}",
              "  area(): number { return 1; }", "  sum(): number {", "    return this.origin.", "  }", "}"]
JAVA = ["class Greeter {", "  private final String name;", "  Greeter(String name) { this.name = name; }",
        "  String greeting() { return name; }", "  int size() {", "    return this.", "  }", "}"]
FILES = {
    "person.json": json.dumps(PERSON),
    "logic.json": json.dumps(LOGIC),
    "never.json": '{"type": "integer", "minimum": 5, "maximum": 4}',
    "wrong.json": '{"properties": {"age": {"type": "integer", "minimum": "18"}}}',
    "notes.json": '{"type": "string", "contentEncoding": "base64", "title": "T", "maxLength": 4}',
    "record.json": '{"name": "Ann Lee", "email": "ann@example.org",\n "phone": null, "company": null, "job_title": null, "city": 7}\n',
    "good.json": '{"kind":"a","n":14,"list":[1,2]}',
    "lines.jsonl": "".join(json.dumps(t if i % 2 else {"text": t}) + "\n" for i, t in enumerate(TEXTS)) + "7\n",
    "select.sql": "SELECT name FROM users WHERE age >= 18\n",
    "point.lark": 'start: "(" x "," x ")"\nx[capture="number"]: /[0-9]{1,3}/\n',
    "point.txt": "(12,7)",
    "broken.ebnf": 'root ::= "a" item\n',
    "balanced.gbnf": 'root ::= "(" root ")" root | "x"\n',
    "source.txt": "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "template.jinja": "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<answer>",
    "talk.json": json.dumps([{"role": "system", "content": "Be short."}, {"role": "user", "content": "A colour?"}]),
    "repo/Greeter.java": "\n".join(JAVA) + "\n",
    "repo/shape.ts": "\n".join(TYPESCRIPT) + "\n",
    "repo/whole.ts": "interface Point { x: number; y: number }\nfunction sum(p: Point): number { return p.x + p.y; }\n",
}


def cli_cases():
    """(name, words after `pawl`, standard input)."""
    x = ["extract", "--schema", CONTACT, "--text", TEXT]
    lines = ["extract", "--schema", CONTACT, "--json-lines", "--file", "lines.jsonl"]
    g = ["generate", "--prompt", "A colour: ", "--max-tokens", "40"]
    warm = ["--temperature", "1", "--seed", "3"]
    red = ["--choice", "red", "--choice", "green", "--choice", "blue"]
    phone = ["--regex", r"\+[1-9][0-9]{1,2} [0-9]{3}-[0-9]{4}"]
    tokenizer = ["--tokenizer", "models/tiny-extract"]
    cases = [
        ("extract_one", x), ("extract_seed", x + ["--temperature", "1", "--seed", "7", "--max-tokens", "120"]),
        ("extract_logic", ["extract", "--schema", "logic.json", "--file", "-", "--temperature", "1.5", "--seed", "2"], TEXT),
        ("extract_forms", x + ["--whitespace", "bounded", "--order", "any", "--spelling", "any", "--ascii", "--max-tokens", "200"]),
        ("extract_separators", x + ["--separators", ", ", ": ", "--additional-properties", "forbid", "--max-string", "12"]),
        ("extract_closed", ["extract", "--schema", "person.json", "--text", TEXT, "--temperature", "5", "--max-tokens", "40"]),
        ("extract_draft_auto", x + ["--draft", "auto"]), ("extract_draft_literals", x + ["--draft", "forced,literals,suffix"]),
        ("extract_json_lines", lines + ["--batch", "1"]), ("extract_batch_8", lines + ["--batch", "8"]),
        ("extract_batch_drafts", lines + ["--batch", "8", "--draft", "auto", "--temperature", "0.8", "--seed", "5", "--max-tokens", "150"]),
        ("extract_stats", x + ["--draft", "off", "--stats-json", "/dev/stdout"]), ("extract_threads", x + ["--threads", "1", "--dtype", "fp32"]),
        ("extract_int8", x + ["--dtype", "int8"]), ("extract_never", ["extract", "--schema", "never.json", "--text", "1"]),
        ("extract_wrong", ["extract", "--schema", "wrong.json", "--text", "1"]),
        ("extract_empty", ["extract", "--schema", "person.json", "--text", "  "]),
        ("extract_annotations", ["extract", "--schema", "notes.json", "--text", TEXT, "--annotations"]),
        ("extract_strict", ["extract", "--schema", "logic.json", "--text", TEXT, "--profile", "strict"]),
        ("generate_plain", g + warm), ("generate_greedy", g + ["--draft", "off", "--stats-json", "/dev/stdout"]),
        ("generate_choice", g + red + warm), ("generate_regex", g + phone + warm),
        ("generate_schema", g[:3] + ["--max-tokens", "90", "--schema", "logic.json"] + warm),
        ("generate_ebnf", g + ["--grammar", "grammar/examples/arithmetic.ebnf"] + warm),
        ("generate_gbnf", g + ["--grammar", "balanced.gbnf"] + warm),
        ("generate_lark", g + ["--grammar", "point.lark", "--captures"] + warm),
        ("generate_root", g + ["--grammar", "grammar/examples/sql.ebnf", "--prepare-steps", "200"] + warm),
        ("generate_tag", g + ["--structural-tag", "grammar/examples/tool_calls.structural_tag.json"] + warm),
        ("generate_substring", g + ["--substring", "source.txt"] + warm),
        ("generate_affixes", g + phone + ["--prefix", "+44", "--suffix", "-7777"] + warm),
        ("generate_require", g + ["--require", "red", "--regex", "[a-z ]{4,20}"] + warm),
        ("generate_gaps", g + ["--regex", "[a-z]{1,5} and [a-z]{1,5} or [a-z]{1,5}", "--gap", " and ", "--gap", " or "] + warm),
        ("generate_filters", g + ["--temperature", "1.2", "--seed", "9", "--top-k", "30", "--top-p", "0.9", "--min-p", "0.01",
                                  "--repetition-penalty", "1.1", "--presence-penalty", "0.2", "--frequency-penalty", "0.1"]),
        ("generate_draft_auto", g + ["--grammar", "grammar/examples/sql.ebnf", "--draft", "auto"] + warm),
        ("generate_draft_recycling", g + ["--draft", "recycling,ngram,suffix"] + warm),
        ("generate_draft_text", g + ["--substring", "source.txt", "--draft", "text", "--draft-text", "source.txt"] + warm),
        ("generate_unforced", g[:3] + ["--no-skip-forced", "--schema", "person.json", "--max-tokens", "80"] + warm),
        ("generate_chat", ["generate", "--chat-template", "template.jinja", "--messages", "talk.json", "--now", "2025-03-14",
                           "--max-tokens", "12"]),
        ("generate_no_fit", ["generate", "--prompt", "x", "--regex", "a{400}", "--max-tokens", "3"]),
        ("sampler_fidelity", g + red + ["--fidelity", "exact", "--n", "3", "--seed", "4", "--json-lines"]),
        ("sampler_check", g + ["--regex", "[a-c]{2,3}", "--sampler", "smc", "--n", "2", "--seed", "4", "--check", "regex@complete:[ab]+",
                               "--json-lines"]),
        ("sampler_schema_check", g[:3] + ["--schema", "logic.json", "--max-tokens", "90", "--sampler", "awrs", "--seed", "4", "--check",
                                      "regex:.*[1-9].*", "--json-lines"]),
        ("score_text", ["score", "--prompt", "A colour: ", "--text", "red"]),
        ("score_json", ["score", "--prompt", "A colour: ", "--text", "red and green", "--end", "--json"]),
        ("score_chat", ["score", "--chat-template", "template.jinja", "--messages", "talk.json", "--now", "2025-03-14", "--tokens",
                        "80 81 82", "--temperature", "0.7"]),
        ("sample_schema", ["sample", "--schema", CONTACT, "--n", "4", "--seed", "7", "--max-tokens", "100"]),
        ("sample_logic", ["sample", "--schema", "logic.json", "--n", "6", "--seed", "1"]),
        ("sample_regex", ["sample", "--n", "5", "--seed", "1"] + phone),
        ("sample_grammar", ["sample", "--grammar", "grammar/examples/c.ebnf", "--n", "2", "--seed", "1", "--max-tokens", "300"]),
        ("mask_text", ["mask", "--schema", "person.json", "--prefix", '{"name":"Ann Lee","phone":'] + tokenizer),
        ("mask_json", ["mask", "--schema", "logic.json", "--prefix", '{"kind":"a","n":', "--json", "--limit", "0"] + tokenizer),
        ("mask_grammar", ["mask", "--grammar", "grammar/examples/python.ebnf", "--prefix", "def f(", "--json"] + tokenizer),
        ("mask_dead", ["mask", "--regex", "[0-9]{2,4}", "--prefix", "x"] + tokenizer),
        ("validate_refused", ["validate", "--schema", CONTACT, "record.json"] + tokenizer),
        ("validate_good", ["validate", "--schema", "logic.json", "good.json", "record.json"] + tokenizer),
        ("validate_stdin", ["validate", "--grammar", "grammar/examples/sql.ebnf", "-"] + tokenizer, FILES["select.sql"]),
        ("validate_captures", ["validate", "--grammar", "point.lark", "--captures", "point.txt"] + tokenizer),
        ("grammar_check", ["grammar", "broken.ebnf", "--check"]), ("grammar_print", ["grammar", "grammar/examples/arithmetic.ebnf"]),
        ("tokenize", ["tokenize", "--json"] + tokenizer, "Ann Lee, ann@example.org, Zoë"),
        ("bad_option", ["extract", "--no-such-option"]), ("no_model", ["generate", "--prompt", "x", "--model", "nowhere"]),
        ("bench_draft_equal", ["bench", "draft", "--equal", "--schema", "person.json", "--seeds", "2", "--temperatures", "0,1", "--max-tokens",
                               "60", "--prompt", TEXT]),
    ]
    for sampler in ("gcd", "fvo", "awrs", "smc", "asap", "rs", "ars", "cars"):
        n = ["--n", "3", "--seed", "4", "--json-lines", "--sampler", sampler]
        if sampler in ("rs", "ars"):  # seldom valid here: what they say when they give up
            n += ["--attempts", "40"]
        cases.append((f"sampler_{sampler}", g + ["--regex", "(red|green|blue|[0-9]{2})( and (red|blue))?"] + n))
    place = ["complete", "--model", "models/tiny-code", "--repo", "repo", "--file", "Greeter.java", "--line", "6", "--col", "17", "--json"]
    shape = ["complete", "--model", "models/tiny-code", "--repo", "repo", "--file", "shape.ts", "--line", "6", "--col", "24", "--json"]
    monitors = [("complete_java", place), ("complete_typescript", shape), ("complete_seed", shape + ["--temperature", "1", "--seed", "2"]), ("complete_draft", shape + ["--draft", "auto"]), ("complete_off", shape + ["--no-monitors"]),
                ("complete_prefix", ["complete", "--model", "models/tiny-code", "--language", "typescript", "--prefix",
                                     "const point = { left: 1, top: 2 };\nconst n = point.", "--suffix", ";\n", "--temperature", "1", "--seed", "3"]),
                ("monitor", ["monitor", "repo/whole.ts", "repo/Greeter.java"]), ("index", ["index", "repo"])]
    return [(*case, "")[:3] for case in cases], [(*case, "")[:3] for case in monitors]


def server_cases():
    """(name, method, path, body or None) for the model that ships, one after the other on one server."""
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    message = [{"role": "user", "content": TEXT}]
    tools = [{"type": "function", "function": {"name": "call", "description": "Calls someone", "parameters": PERSON}},
             {"type": "function", "function": {"name": "wait", "parameters": {
                 "type": "object", "properties": {"minutes": {"type": "integer", "minimum": 1, "maximum": 60}}, "required": ["minutes"],
                 "additionalProperties": False}}}]
    chat = {"messages": message, "seed": 1, "max_tokens": 60}
    flat = [{"type": "function", "name": "call", "parameters": PERSON}]
    text = {"format": {"type": "json_schema", "name": "person", "schema": PERSON}}
    choice = {"structured_outputs": {"choice": ["red", "green", "blue"]}, "prompt": "A colour: ", "seed": 2, "temperature": 1}
    lark = 'start: "(" NUMBER ("," NUMBER)* ")"\nNUMBER: /[0-9]{1,2}/'
    post = [
        ("chat_plain", "/v1/chat/completions", {**chat, "max_tokens": 12}),
        ("chat_schema", "/v1/chat/completions", {**chat, "response_format": schema, "temperature": 0}),
        ("chat_logprobs", "/v1/chat/completions", {**chat, "response_format": schema, "n": 2, "temperature": 0.7, "logprobs": True,
                                                   "top_logprobs": 2, "token_report": True}),
        ("chat_stream", "/v1/chat/completions", {**chat, "response_format": schema, "stream": True, "temperature": 1,
                                                 "stream_options": {"include_usage": True}}),
        ("chat_stop", "/v1/chat/completions", {**chat, "stop": ["20 79", "mos"], "temperature": 1, "min_tokens": 1}),
        ("chat_tool_named", "/v1/chat/completions", {**chat, "tools": tools,
                                                     "tool_choice": {"type": "function", "function": {"name": "call"}}, "temperature": 0}),
        ("chat_tools_stream", "/v1/chat/completions", {**chat, "tools": tools, "tool_choice": "required", "stream": True, "temperature": 1,
                                                       "parallel_tool_calls": True, "max_tokens": 120}),
        ("chat_surprise", "/v1/chat/completions", {**chat, "guided_regex": "[a-z]{3,9}", "mask_surprise": True, "temperature": 1}),
        ("chat_budget", "/v1/chat/completions", {**chat, "response_format": schema, "max_tokens": 3, "temperature": 0}),
        ("responses_text", "/v1/responses", {"input": TEXT, "text": text, "max_output_tokens": 80, "temperature": 0}),
        ("responses_stream", "/v1/responses", {"input": TEXT, "text": text, "max_output_tokens": 80, "temperature": 0, "stream": True}),
        ("responses_tool", "/v1/responses", {"input": TEXT, "tools": flat, "tool_choice": "required", "max_output_tokens": 80, "temperature": 0}),
        ("completions_choice", "/v1/completions", choice),
        ("completions_echo", "/v1/completions", {"prompt": ["Ann Lee", "The lazy dog"], "max_tokens": 4, "temperature": 0, "logprobs": 2,
                                                 "echo": True}),
        ("completions_score", "/v1/completions", {"prompt": [1, 80, 81, 82], "max_tokens": 0, "logprobs": 1, "echo": True}),
        ("completions_stream", "/v1/completions", {"prompt": "Ann", "max_tokens": 9, "temperature": 1, "seed": 8, "stream": True, "logprobs": 1,
                                                   "n": 2}),
        ("completions_grammar", "/v1/completions", {"prompt": "Point: ", "response_format": {"type": "grammar", "grammar": lark}, "max_tokens": 30, "temperature": 1, "seed": 5,
                                                    "drafts": False}),
        ("completions_bias", "/v1/completions", {"prompt": "Ann", "max_tokens": 6, "temperature": 0, "logit_bias": {"80": 5, "90": -100}}),
        ("extract_spans", "/v1/extract", {"schema": PERSON, "texts": TEXTS[:5], "spans": True}),
        ("extract_empty", "/v1/extract", {"schema": PERSON, "texts": [TEXT, ""]}),
        ("extract_stream", "/v1/extract", {"schema": PERSON, "text": TEXT, "stream": True, "additional_properties": False}),
        ("compile", "/v1/constraints/compile", {"response_format": schema}),
        ("compile_wrong", "/v1/constraints/compile", {"response_format": {"type": "json_schema", "json_schema": {
            "name": "x", "schema": {"properties": {"a": {"minimum": "1"}}}}}}),
        ("ollama_chat", "/api/chat", {"model": "tiny-extract", "messages": message, "format": PERSON, "stream": False,
                                      "options": {"seed": 1, "temperature": 0}}),
        ("ollama_generate", "/api/generate", {"model": "tiny-extract", "prompt": TEXT, "format": PERSON, "options": {"seed": 1, "temperature": 0}}),
        ("llama_completion", "/completion", {"prompt": "Ann", "n_predict": 5, "temperature": 0, "json_schema": PERSON}),
        ("tokenize", "/tokenize", {"content": "Ann Lee", "prompt": "Ann Lee"}), ("detokenize", "/detokenize", {"tokens": [80, 81, 82]}),
        ("error_two", "/v1/chat/completions", {**chat, "response_format": schema, "guided_regex": "a"}),
        ("error_member", "/v1/chat/completions", {**chat, "temperature": "hot"}),
        ("error_schema", "/v1/chat/completions", {**chat, "guided_json": {"type": "integer", "minimum": 5, "maximum": 4}}),
        ("error_route", "/v1/nowhere", {}),
    ]
    cases = [(name, "POST", path, body) for name, path, body in post]
    get = [("models", "/v1/models"), ("health", "/health"), ("tags", "/api/tags"), ("version", "/api/version"), ("tokenizer", "/tokenizer_info")]
    return cases + [(name, "GET", path, None) for name, path in get] + [("metrics", "GET", "/metrics", None)]


def code_server_cases():
    """The same for the model of code, under the monitors."""
    before, after = "\n".join(JAVA[:6]), "\n" + "\n".join(JAVA[6:]) + "\n"
    shape = {"prompt": "\n".join(TYPESCRIPT[:6]), "suffix": "\n  }\n}\n", "max_tokens": 24, "temperature": 0, "filename": "shape.ts"}
    fim = {"prompt": before, "suffix": after, "max_tokens": 24, "temperature": 0, "language": "java"}
    return [("fim", "POST", "/v1/fim/completions", fim), ("fim_typescript", "POST", "/v1/fim/completions", shape),
            ("fim_free", "POST", "/v1/fim/completions", {**fim, "monitors": False, "seed": 3, "temperature": 1}),
            ("fim_stream", "POST", "/v1/fim/completions", {**shape, "stream": True}),
            ("infill", "POST", "/infill", {"input_prefix": before, "input_suffix": after, "n_predict": 16, "temperature": 0, "filename": "Greeter.java"})]


PYTHON = r'''
import asyncio, json, sys
import numpy, pawl
from pawl import sampling
TEXT, TEXTS, PERSON = json.loads(sys.argv[1])
def show(name, value): print(name, value if isinstance(value, str) else repr(value))
with pawl.Engine() as engine:
    show("extract", json.dumps(engine.extract(TEXT, PERSON)))
    for row in engine.extract(TEXTS[:4], PERSON, errors="return"): show("rows", row)
    for seed in range(3):
        show("generate", engine.generate("A colour: ", regex="[a-z]{3,8}( [0-9]{2})?", temperature=1, seed=seed).text)
    show("choice", engine.generate("A colour: ", choice=["red", "green"]).text)
    show("stream", "".join(engine.stream("A number: ", regex="[1-9][0-9]{2}( [0-9]{3}){4}", temperature=1, seed=1)))
    async def both(): return await asyncio.gather(*(engine.aextract(text, PERSON) for text in TEXTS[:2]))
    show("async", json.dumps(asyncio.run(both())))
vocabulary = pawl.Vocabulary.from_tokenizer_json(pawl.MODEL_DIR + "/tokenizer.json") if hasattr(pawl, "MODEL_DIR") else \
    pawl.Vocabulary([b"{", b"}", b'"a"', b":", b"1", b"<end>"], [5], [5])
grammar = pawl.Compiler(vocabulary).json_schema({"type": "object", "properties": {"a": {"enum": [1, 11]}}, "required": ["a"],
                                                 "additionalProperties": False}, whitespace="compact")
matcher, mask = pawl.Matcher(grammar), pawl.allocate_mask(1, len(vocabulary))
while not matcher.terminated:
    matcher.fill_mask(mask)
    show("mask", mask.view("uint32")[0].tolist())
    matcher.accept(matcher.allowed_tokens()[0])
'''


def examples(build, folder):
    """(name, command) of the examples that are programs: compiled here, against the libraries of the build."""
    out = []
    if not shutil.which("cc") or not shutil.which("c++"):
        return out, ["examples: no compiler"]
    include = ["-I", str(ROOT / "include")]
    if (build / "libpawl.so").exists():
        subprocess.run(["cc", "-std=c11", *include, str(ROOT / "examples/c/print_mask.c"), str(build / "libpawl.so"),
                        f"-Wl,-rpath,{build}", "-o", f"{folder}/c_example"], check=True)
        out.append(("c", [f"{folder}/c_example"]))
        if (build / "bin/capi_test").exists():
            out.append(("c_every_function", [str(build / "bin/capi_test"), str(ROOT / "models/tiny-extract"), str(ROOT)]))
    libraries = [build / "libpawl_engine.a", build / "libpawl_core.a"]
    if all(library.exists() for library in libraries):
        # What a static library asks for besides: that of CUDA, where the build has it.
        package = (build / "package/pawl-engine.pc").read_text(encoding="utf-8")
        others = re.search(r"^Libs\.private:(.*)$", package, re.M)[1].split()
        subprocess.run(["c++", "-std=c++20", "-O0", *include, str(ROOT / "examples/engine/answer.cc"), *map(str, libraries), *others,
                        "-o", f"{folder}/answer"], check=True)
        out.append(("cpp_engine", [f"{folder}/answer", str(ROOT / "models/tiny-extract")]))
        subprocess.run(["c++", "-std=c++20", "-O0", *include, str(ROOT / "examples/cpp_find_package/print_mask.cc"), str(libraries[1]),
                        "-pthread", "-o", f"{folder}/cpp_mask"], check=True)
        out.append(("cpp_core", [f"{folder}/cpp_mask"]))
    missing = [] if len(out) >= 3 else ["examples: libpawl.so, libpawl_engine.a or libpawl_core.a is missing"]
    return out, missing


class Server:
    def __init__(self, build, folder, *options):
        self.errors = open(folder / "server.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([build / "pawl", "serve", "--port", "0", "--log", "none", *options], cwd=folder,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        if "listening" not in line:
            self.errors.seek(0)
            sys.exit("same_outputs.py: the server did not start: " + self.errors.read())
        self.port = int(line.rsplit(":", 1)[1])

    def ask(self, method, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read().decode("utf-8", "backslashreplace")
        connection.close()
        if path == "/metrics":  # the names; most values are counts of calls and bytes
            text = "\n".join(sorted({re.split(r"[ {]", line)[0] for line in text.splitlines() if not line.startswith("#")}))
        if reply.getheader("Content-Type") in ("text/event-stream", "application/x-ndjson"):
            text = joined(text)
        return f"status {reply.status}\n{reply.getheader('Content-Type')}\n{text}\n"

    def stop(self):
        self.process.terminate()
        code = self.process.wait(60)
        self.errors.close()
        return f"exit code {code}\n"


# Where pieces of a stream are cut depends on the time that steps take; joined, they are the same.
PIECES = {"content", "arguments", "text", "response", "delta", "tokens", "token_logprobs", "top_logprobs", "text_offset"}


def join_pieces(into, event):
    for key, value in event.items():
        old = into.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            join_pieces(old, value)
        elif key in PIECES and type(value) is type(old) and isinstance(value, (str, list)):
            into[key] = old + value
        elif isinstance(value, list) and isinstance(old, list) and len(value) == len(old) == 1 and isinstance(value[0], dict):
            join_pieces(old[0], value[0])
        else:
            into[key] = value


def joined(text):
    """The events of a stream, one for each run of pieces of the same kind and choice."""
    runs, last = [], {}
    for line in text.splitlines():
        line = line.removeprefix("data: ")
        if not line.startswith("{"):
            if line and not line.startswith("event: "):
                runs.append(line)
            continue
        event = json.loads(line)
        if "sequence_number" in event:
            event["sequence_number"] = 0
        choice = (event.get("choices") or [{}])[0]
        index = choice.get("index")
        delta = choice.get("delta", {})
        calls = [(call.get("index"), sorted(call)) for call in delta.get("tool_calls") or ()]
        kind = (event.get("type"), event.get("done"), choice.get("finish_reason"), sorted(event), sorted(delta), calls)
        if index in last and last[index][0] == kind:
            join_pieces(last[index][1], event)
        else:
            runs.append(event)
            last[index] = (kind, event)
    # The outputs of a request run side by side: one after the other is how they can be compared.
    order = {id(run): (run.get("choices") or [{}])[0].get("index", 0) if isinstance(run, dict) else 1 << 20 for run in runs}
    runs.sort(key=lambda run: order[id(run)])
    return "\n".join(json.dumps(run, ensure_ascii=False, separators=(",", ":")) if isinstance(run, dict) else run for run in runs)


def command_output(words, folder, stdin="", environment=None):
    run = subprocess.run([str(word) for word in words], cwd=folder, input=stdin.encode(), capture_output=True, timeout=300,
                         check=False, env=environment)
    text = [part.decode("utf-8", "backslashreplace") for part in (run.stdout, run.stderr)]
    return f"{text[0]}\n-- standard error\n{text[1]}\n-- exit code {run.returncode}\n"


def filtered(case, text, folder, build):
    for place, name in ((str(folder), "FOLDER"), (str(build), "BUILD"), (str(ROOT), "ROOT")):
        text = text.replace(place, name)
    for pattern, replacement in FILTERS + DRAFT_FILTERS:
        text = re.sub(pattern, replacement, text)
    return text


def rounded(text, digits=2):
    return FRACTION.sub(lambda match: f"{float(match[0]):.{digits}f}".replace("-0.00", "0.00"), text)


def python_of(build):
    """The interpreter and environment for the package of this build, or why there is none."""
    site = build / "python/site"
    if not list(site.glob("pawl/_pawl*")):
        return None, "python: the package is not built (scripts/install_deps.sh --python, then a build)"
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(r"^_?Python_EXECUTABLE:[A-Z]+=(.*)$", cache, re.M)
    python = found[1] if found else str(build / "venv/bin/python")
    return (python, {**os.environ, "PYTHONPATH": str(site)}), None


def run_all(build, only):
    """Names with outputs, and what was left out."""
    outputs, missing = {}, []
    with tempfile.TemporaryDirectory(prefix="same_outputs_") as name:
        folder = Path(name).resolve()
        for entry in ("schemas", "grammar", "examples", "models"):
            os.symlink(ROOT / entry, folder / entry)
        for file, text in FILES.items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        # Neither the user's files nor their place may matter.
        os.environ.update(HOME=str(folder), XDG_CACHE_HOME=str(folder / "cache"), LC_ALL="C.UTF-8", TZ="UTC")

        def keep(case, output):
            if not only or any(case.startswith(word) for word in only):
                outputs[case] = filtered(case, output() if callable(output) else output, folder, build)

        common, monitored = cli_cases()
        monitors = subprocess.run([build / "pawl", "complete", "--help"], capture_output=True, check=False).returncode == 0
        if not monitors:
            missing.append("monitors: this build has none")
        for case, words, stdin in common + (monitored if monitors else []):
            keep(f"cli_{case}", lambda words=words, stdin=stdin: command_output([build / "pawl", *words], folder, stdin))
        servers = [("serve", server_cases(), ["--model", "models/tiny-extract", "--batch", "4"]),
                   ("serve_drafts", server_cases()[:3] + [("again", *server_cases()[1][1:])], ["--model", "models/tiny-extract", "--draft", "auto"])]
        if monitors:
            servers.append(("serve_code", code_server_cases(), ["--model", "models/tiny-code", "--repo", "repo"]))
        for kind, cases, options in servers:
            if only and not any(f"{kind}_{case[0]}".startswith(word) for case in cases for word in only):
                continue
            server = Server(build, folder, *options)
            try:
                for case, method, path, body in cases:
                    # All of them run, whatever is kept: what a server has seen may show in its answers.
                    keep(f"{kind}_{case}", server.ask(method, path, body))
            finally:
                ended = server.stop()
            keep(f"{kind}_end", ended)
        programs, without = examples(build, folder)
        missing += without
        for case, words in programs:
            keep(f"example_{case}", lambda words=words: command_output(words, folder))
        found, why = python_of(build)
        if found is None:
            missing.append(why)
        else:
            python, environment = found
            data = json.dumps([TEXT, TEXTS, PERSON])
            keep("python_package", lambda: command_output([python, "-c", PYTHON, data], folder, environment=environment))
            for example in ("extract", "mask"):
                script = ROOT / f"examples/python/{example}.py"
                if example == "extract":  # it samples without a seed
                    continue
                keep(f"python_example_{example}", lambda script=script: command_output([python, script], folder, environment=environment))
    return outputs, missing


def expected_differences():
    lines = EXPECTED.read_text(encoding="utf-8").splitlines() if EXPECTED.exists() else []
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    for pair in pairs:
        if len(pair) != 2:
            sys.exit(f"same_outputs.py: {EXPECTED.name}: no reason for {pair[0]}")
    return dict(pairs)


def compare(old, new, digits):
    """0 when the outputs of two folders are the same but for what is expected to differ."""
    names = [{path.stem: path for path in Path(folder).glob("*.txt")} for folder in (old, new)]
    if not names[0] or not names[1]:
        sys.exit("same_outputs.py: --compare: a folder without outputs")
    expected, unexpected, used = expected_differences(), 0, set()
    for case in sorted(set(names[0]) | set(names[1])):
        texts = [known[case].read_text(encoding="utf-8") if case in known else "" for known in names]
        if digits is not None:
            texts = [rounded(text, digits) for text in texts]
        if texts[0] == texts[1]:
            continue
        if case in expected:
            used.add(case)
            print(f"{case}: differs as expected: {expected[case]}")
            continue
        unexpected += 1
        print(f"{case}: differs")
        # Long lines of JSON are compared by members.
        lines = [text.replace(',"', ',\n"').splitlines(True) for text in texts]
        sys.stdout.writelines(line if line.endswith("\n") else line + "\n" for line in difflib.unified_diff(*lines, "old", "new", n=1))
    for case in sorted(set(expected) - used):
        print(f"{case}: is expected to differ, and does not: remove the line from tests/{EXPECTED.name}")
    same = len(set(names[0]) & set(names[1])) - unexpected - len(used)
    print(f"{same} outputs are the same, {len(used)} differ as expected, {unexpected} differ")
    return 1 if unexpected or set(expected) - used else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=os.environ.get("PAWL_BUILD_DIR", ROOT / "build"), help="a build folder")
    parser.add_argument("--out", help="where the outputs go (default: same_outputs in the build folder)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="cases whose names begin so; there is no hash then")
    parser.add_argument("--all", action="store_true", help="fail when a case has to be left out")
    parser.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"), help="two folders that this program wrote")
    parser.add_argument("--digits", type=int, help="with --compare: round numbers to so many digits behind the point")
    options = parser.parse_args()
    if options.compare:
        sys.exit(compare(*options.compare, options.digits))
    build = Path(options.build).resolve()
    if not (build / "pawl").exists():
        sys.exit(f"same_outputs.py: {build}/pawl is missing: run scripts/build.sh first")
    out = Path(options.out or build / "same_outputs")
    outputs, missing = run_all(build, options.only)
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.txt"):
        old.unlink()
    digest = hashlib.sha256()
    for case in sorted(outputs):
        (out / f"{case}.txt").write_text(outputs[case], encoding="utf-8")
        digest.update(f"{case}\n{rounded(outputs[case])}\n".encode())
    for line in missing:
        print("left out:", line)
    print(f"{len(outputs)} outputs in {out}")
    if not options.only:
        print(digest.hexdigest())
    sys.exit(1 if missing and options.all else 0)


if __name__ == "__main__":
    main()
