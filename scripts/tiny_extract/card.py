"""Writes the model card from the scores, the checkpoint and the generator's counts.

    python card.py --run RUN_FOLDER --model models/tiny-extract
"""

import argparse
import json
from pathlib import Path

import torch

import gen
from grammar import DOMAINS, is_held_out

GOALS = {"seen templates, new values": 97, "held-out templates": 85, "held-out schemas": None, "hand-written texts": 60}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    folder = Path(options.model)
    results = json.loads((folder / "eval" / "RESULTS.json").read_text())
    saved = torch.load(Path(options.run) / "checkpoint.pt", weights_only=False)
    config = saved["config"]
    parameters = sum(p.numel() for p in saved["model"].values())
    rows, missed = "", []
    for name, goal in GOALS.items():
        r = results[name]
        rows += (f"| {name} | {r['records']} | {r['fields']} | **{100 * r['field_accuracy']:.1f} %** | {100 * r['stated_field_accuracy']:.1f} % | "
                 f"{100 * r['record_accuracy']:.1f} % | {f'{goal} %' if goal else '-'} |\n")
        if goal and 100 * r["field_accuracy"] < goal:
            missed.append(name)
    note = (f"Missed: {', '.join(missed)}. The run had {saved['tokens'] / 1e6:.0f} M tokens, on a processor; accuracy was still rising when it ended.\n"
            if missed else "")
    patterns = [p for d in DOMAINS.values() for s in d.slots.values() for p in s.patterns + [q for qs in s.says.values() for q in qs]]
    patterns += [p for d in DOMAINS.values() for p in d.multi + d.frames]
    (folder / "README.md").write_text(f"""# tiny-extract

A very small Llama-shaped language model that turns short English texts into JSON records, under the control of a JSON Schema
grammar. It ships with Pawl so that structured output can be tried, tested and measured offline.

**It is a demo and a test bed, not a general extractor.** It has learnt from generated texts only and knows no facts. The grammar
guarantees that a record fits the schema; it cannot guarantee that the values are right, and too many are not.

## Scores

Exact field accuracy under greedy decoding with `pawl extract` (`eval/RESULTS.json` has the figures by schema and the command).
A field is a leaf of the record, a whole list counts as one field; "stated" leaves out the fields whose right value is null.
The last column is the goal that was set before training.

| set | texts | fields | right | stated fields right | whole records right | goal |
|---|---|---|---|---|---|---|
{rows}{note}
- *Seen templates*: fresh texts from the training distribution.
- *Held-out templates*: only fields said by a phrasing that training never used are counted.
- *Held-out schemas*: five domains training never saw (vet visit, rental, donation, match, lost item).
- *Hand-written*: `eval/handwritten.jsonl`, {results["hand-written texts"]["records"]} texts written by hand, not from the generator, most of them with the
  schemas of `schemas/examples`.

## The model

`LlamaForCausalLM`: {parameters:,} parameters ({config['layers']} layers, width {config['width']}, {config['heads']} heads of {config['width'] // config['heads']}, SwiGLU {config['inner']}, tied
embedding, RoPE theta 10000, context 4096 of which training saw about the first 600 positions), bfloat16. The tokenizer has {config['vocabulary']}
tokens: byte-level BPE inside words, trained on the generator's texts; every character that is no letter is a word of its own, so
that a value has the same tokens in the text and in the record. The prompt is `<s>`, the text and a line feed (`pawl.json`); the
schema is not in the prompt. The record follows as compact JSON with the keys in the order of the schema's `properties`.

## Data and training

All data come from the generator in `scripts/tiny_extract`: {len(DOMAINS)} schemas ({len(gen.TRAIN_DOMAINS)} trained), {sum(len(d.slots) for d in DOMAINS.values())} facts, {len(patterns)} phrasings of which
{sum(map(is_held_out, patterns))} are held out by a hash of their text. Names, places, codes and titles are partly invented from syllables and random
digits so that copying is learnt and not memory. Four texts in five are from the eight main schemas. See
`scripts/tiny_extract/README.md` for the recipe and the conventions (dates with slashes are month/day/year; honorifics and
leading articles are not part of a value; what is not said is null).

- Seed {saved['seed']}; {saved['step']} steps of 15,360 tokens; {saved['tokens'] / 1e6:.1f} M tokens, of which {saved['scored'] / 1e6:.2f} M were scored (only what the model chooses is
  in the loss).
- Muon for the matrices (rate 0.02), Adam for embedding and norms (0.003). Four cycles. The first three with 4 layers: rates constant, then
  linear to zero over 45 minutes, up to step 5,797; from the full rate linearly to zero over 100 minutes; from half the rate over 43. The fourth
  took up their weights (`--start`) with two layers more, which added nothing at first, and went from the full rate to zero over 125 minutes. From
  the second cycle on, tokens where the model decides (the first after forced ones: null or not, which name) are weighted three times. The first
  500 steps prefer short texts. One to three schemas per text, which is read once for all of them.
- The released weights are 0.9 of those at the end and 0.1 of those with which the fourth cycle began, chosen among four averages on other texts
  than those of the table (they differ by 0.1).
- {saved['spent'] / 60:.0f} minutes on two shared CPU cores; no GPU. A mistake in the loss mask of lists was corrected at step 2,200, so the weights
  cannot be reproduced from the seed alone.

## Limits

- English only, short texts (up to about 800 bytes were seen in training).
- Values are copied or normalised from the text; nothing is inferred, computed or looked up.
- Free text (ticket summaries, wishes), long lists and amounts with several numbers around are weak; where two names or dates
  compete for a field, the wrong one may win.
- Unknown schemas work only as far as their keys resemble those of the generator.
""")


if __name__ == "__main__":
    main()
