"""Calls, tokens a call and fields right of a diffusion model, by schedule and cache: the table of docs/diffusion.md.

    python loops.py --pawl build/pawl [--texts 104] [--only NAME,...] [--out bench/results/diffusion_loops.json]

The texts are the hand-written ones of models/tiny-extract, greedy, one thread. Rows of a call are not counted here: with a cache a call
has fewer. Seconds are those of the model's calls.
"""

import argparse
import json
from pathlib import Path

import evaluate

ROOT = Path(__file__).resolve().parents[2]
LOOPS = {
    "stepwise": "", "threshold 0.9": "--threshold 0.9", "threshold 0.7": "--threshold 0.7", "factor 1": "--factor 1",
    "localleap": "--schedule localleap", "prophet": "--schedule prophet", "ssd": "--schedule ssd",
    "guidance 0.5": "--threshold 0.9 --cfg-scale 0.5", "prefix": "--threshold 0.9 --cache prefix", "dual": "--threshold 0.9 --cache dual",
    "dkv": "--threshold 0.9 --cache dkv", "ssd with prefix": "--schedule ssd --cache prefix",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default=str(ROOT / "build/pawl"))
    parser.add_argument("--model", default=str(ROOT / "models/tiny-extract-diffusion"))
    parser.add_argument("--texts", type=int, default=104)
    parser.add_argument("--only", default=",".join(LOOPS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    examples = evaluate.handwritten(ROOT / "models/tiny-extract/eval/handwritten.jsonl")[:options.texts]
    results = {}
    for name in options.only.split(","):
        stats = []
        outputs = evaluate.extract(options.pawl, options.model, examples, more=LOOPS[name].split(), stats=stats)
        got = evaluate.score(outputs, examples)
        calls, tokens = (sum(one[key] for one in stats) for key in ("forward_calls", "output_tokens"))
        seconds = sum(one["seconds"]["output"] for one in stats)
        results[name] = {"options": LOOPS[name], "calls": calls, "tokens": tokens, "tokens_a_call": round(tokens / calls, 2),
                         "model_seconds": round(seconds, 1), "fields": got["fields"], "field_accuracy": got["field_accuracy"], "unfinished": got["unfinished"]}
        print(f"| `{LOOPS[name] or '(default)'}` | {calls} | {tokens / calls:.1f} | {seconds:.1f} | {100 * got['field_accuracy']:.1f} % |", flush=True)
    if options.out:
        options.out.write_text(json.dumps({"texts": len(examples), "loops": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
