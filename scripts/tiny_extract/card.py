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

Try, test and measure structured output offline with this model. It is a very small Llama-shaped language model that
turns short English texts into JSON records, under the grammar of a JSON Schema. It ships with Pawl.

**This model is a demo and a test bed, not a general extractor.** It was trained on generated texts only and knows no
facts. The grammar guarantees that a record fits the schema. It does not guarantee that the values are right, and too
many are wrong.

## Scores

The figures are exact field accuracy under greedy decoding with `pawl extract`. `eval/RESULTS.json` has them by schema,
with the command. A field is a leaf of the record; a whole list counts as one field. *Stated* fields are those whose right
value is not null. The last column is the goal that was set before training.

| set | texts | fields | right | stated fields right | whole records right | goal |
|---|---|---|---|---|---|---|
{rows}{note}
- *Seen templates*: new texts of the training distribution.
- *Held-out templates*: only fields count whose phrasing was not in the training texts.
- *Held-out schemas*: five domains that were not in the training texts (vet visit, rental, donation, match, lost item).
- *Hand-written*: `eval/handwritten.jsonl`, {results["hand-written texts"]["records"]} texts written by hand, most of them with the schemas of
  `schemas/examples`.

## The model

| property | value |
|---|---|
| architecture | `LlamaForCausalLM`, bfloat16 |
| parameters | {parameters:,} |
| layers | {config['layers']}, of width {config['width']}, with {config['heads']} heads of {config['width'] // config['heads']} and SwiGLU {config['inner']} |
| embedding | tied; RoPE theta 10000 |
| context | 4096 tokens; training used about the first 600 positions |
| tokenizer | {config['vocabulary']} tokens, byte-level BPE inside words, trained on the generator's texts |

Every character that is not a letter is a word of its own. So a value has the same tokens in the text and in the record.
The prompt is `<s>`, the schema in short, a line feed, the text and a line feed (`pawl.json`). The record follows as
compact JSON, with the keys in the order of the schema's `properties`.

## Data and training

All data come from the generator in `scripts/tiny_extract`: {len(DOMAINS)} schemas ({len(gen.TRAIN_DOMAINS)} trained), {sum(len(d.slots) for d in DOMAINS.values())} facts and {len(patterns)} phrasings.
{sum(map(is_held_out, patterns))} phrasings are held out by a hash of their text. Some names, places, codes and titles are invented from syllables and
random digits, so that the model learns to copy. Four texts in five are from the eight main schemas.
`scripts/tiny_extract/README.md` has the recipe and the conventions.

- **Amount.** Seed {saved['seed']}; {saved['step']} steps of 15,360 tokens; {saved['tokens'] / 1e6:.1f} M tokens. The loss counts {saved['scored'] / 1e6:.2f} M of them, those
  that the model chooses.
- **Optimizer.** Muon for the matrices (rate 0.02), Adam for embedding and norms (0.003).
- **Cycles.** There were four. The first three had 4 layers. In the first the rates were constant and then fell linearly
  to zero over 45 minutes, up to step 5,797. In the second they fell from the full rate over 100 minutes, in the third
  from half the rate over 43. The fourth cycle started from these weights (`--start`) with two more layers, which
  contributed nothing at first. Its rate fell from the full rate to zero over 125 minutes.
- **Weights of tokens.** From the second cycle on, tokens at which the model decides count three times: the first token
  after forced ones, such as null or not, or which name.
- **Texts.** The first 500 steps prefer short texts. A text has one to three schemas and is read once for all of them.
- **Release.** The released weights are 0.9 of the last weights and 0.1 of those at the start of the fourth cycle. They
  were chosen among four averages, on other texts than those of the table (the averages differ by 0.1).
- **Time.** {saved['spent'] / 60:.0f} minutes on two shared CPU cores, without a GPU. A mistake in the loss mask of lists was corrected at step
  2,200, so the seed alone does not reproduce the weights.

## Limits

- The model reads English only, and short texts (up to about 800 bytes in training).
- It copies or normalises values of the text. It infers, computes and looks up nothing.
- It is weak at free text (ticket summaries, wishes), long lists, and amounts among several numbers. If two names or
  dates could fill a field, it may choose the wrong one.
- It handles unknown schemas only as far as their keys resemble those of the generator.
""")


if __name__ == "__main__":
    main()
