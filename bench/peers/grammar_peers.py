#!/usr/bin/env python3
"""Masks under grammars that are not JSON, next to xgrammar and llguidance in the same run.

  bench/peers/grammar_peers.py --tokenizer ~/llama3_1 --json out.json

For each grammar of grammar/examples with a text in bench/texts: the text's tokens are read one by one, and filling the mask
and advancing by the token is timed, with empty caches. Pawl and xgrammar read the EBNF as it is; llguidance gets what
`pawl grammar --to lark` makes of it. All get the same token ids, one core, one after another; Pawl is timed within its own
process (`pawl bench masks`), the others through their Python packages' fastest public entry (engines.py), whose call costs
about half a microsecond. An engine that refuses the grammar or a token of the text says so in its row, and the times are
those up to there.

Needs the packages xgrammar, llguidance, transformers, torch. Exit code 1 when Pawl refuses something.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import engines  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def summary(ns):
    ns = sorted(ns)
    if not ns:
        return {"avg": 0, "p50": 0, "p99": 0, "max": 0}
    rank = lambda share: ns[max(0, math.ceil(share * len(ns)) - 1)] / 1000
    return {"avg": sum(ns) / len(ns) / 1000, "p50": rank(0.5), "p99": rank(0.99), "max": ns[-1] / 1000}


def run_pawl(args, grammar, text):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run([args.pawl, "bench", "masks", "--grammar", str(grammar), "--tokenizer", args.tokenizer,
                               "--json", out.name, *(["--warm"] if args.warm else []), str(text)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return {"problem": done.stderr.strip()}
        result = json.load(open(out.name, encoding="utf-8"))
    masks = result["tbm_us"]
    return {"tokens": result["tokens"], "tbm_us": {k: masks[k] for k in ("avg", "p50", "p99", "max")},
            "ttfm_us": result["ttfm_us"]["max"], "problem": ""}


def compile_xgrammar(engine, text):
    return engine.compiler.compile_grammar(text)


def compile_llguidance(engine, text):
    matcher = engine.llguidance.LLMatcher(engine.tokenizer, engine.llguidance.grammar_from("lark", text), log_level=0)
    if matcher.is_error():
        raise engines.Refused(matcher.get_error())
    return {"grammar": engine.llguidance.grammar_from("lark", text), "matcher": matcher}


def run_peer(engine, compile_text, grammar_text, ids, warm):
    begin = time.perf_counter_ns()
    try:
        compiled = compile_text(engine, grammar_text)
        engine.mask(engine.start(compiled))
    except Exception as error:  # their own exceptions have no common base
        return {"problem": f"{type(error).__name__}: {str(error)[:200]}"}
    first = (time.perf_counter_ns() - begin) / 1000
    if warm:
        engines.run_test(engine, compiled, ids, [])
    times = []
    fits, end, error = engines.run_test(engine, compiled, ids, times)
    problem = error or ("" if fits == len(ids) and end else f"refuses token {fits} of {len(ids)}" if fits < len(ids) else
                        "does not let the text end")
    return {"tokens": len(times), "tbm_us": summary(times), "ttfm_us": first, "problem": problem}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default=str(ROOT / "build/pawl"))
    parser.add_argument("--tokenizer", required=True, help="folder with tokenizer.json and tokenizer_config.json")
    parser.add_argument("--grammars", nargs="*", default=["arithmetic", "c", "python", "sql", "xml"])
    parser.add_argument("--warm", action="store_true", help="each text once before it counts")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    import tokenizers

    encoder = tokenizers.Tokenizer.from_file(str(pathlib.Path(args.tokenizer) / "tokenizer.json"))
    peers = {"xgrammar": (engines.XGrammar(args.tokenizer, False), compile_xgrammar),
             "llguidance": (engines.LLGuidance(args.tokenizer, False), compile_llguidance)}
    results, failed = {}, False
    print(f"{'grammar':12}{'engine':12}{'tokens':>8}{'avg':>10}{'p50':>10}{'p99':>12}{'max':>12}{'compile':>12}   us")
    for name in args.grammars:
        grammar, text = ROOT / f"grammar/examples/{name}.ebnf", ROOT / f"bench/texts/{name}.txt"
        content = text.read_text(encoding="utf-8")
        ids = encoder.encode(content, add_special_tokens=False).ids
        rows = {"pawl": run_pawl(args, grammar, text)}
        for peer, (engine, compile_text) in peers.items():
            source = grammar.read_text(encoding="utf-8")
            if peer == "llguidance":
                source = subprocess.run([args.pawl, "grammar", str(grammar), "--to", "lark"], capture_output=True,
                                        text=True, check=True).stdout
            rows[peer] = run_peer(engine, compile_text, source, ids, args.warm)
        results[name] = rows
        for peer, row in rows.items():
            failed |= peer == "pawl" and bool(row["problem"])
            times = row.get("tbm_us", {})
            cells = "".join(f"{times.get(key, float('nan')):>{width}.1f}" for key, width in (("avg", 10), ("p50", 10), ("p99", 12), ("max", 12)))
            print(f"{name:12}{peer:12}{row.get('tokens', 0):>8}{cells}{row.get('ttfm_us', float('nan')):>12.0f}   {row['problem'][:90]}", flush=True)
    if args.json:
        versions = {peer: engine.version for peer, (engine, _) in peers.items()}
        pathlib.Path(args.json).write_text(json.dumps({"versions": versions, "warm": args.warm, "results": results}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
