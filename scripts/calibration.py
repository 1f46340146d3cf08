#!/usr/bin/env python3
"""Measures whether `probability` says how often values are right, and how well it and `surprise` tell wrong values from right ones.

    scripts/calibration.py --data TEXTS.jsonl --model MODEL [--model MODEL ...] --svg FILE.svg --json FILE.json [-- OPTIONS of pawl eval]
    scripts/calibration.py --report REPORT.html [--report ...] --svg FILE.svg    # reports of pawl eval that are there already

`pawl eval --report` extracts the texts, and its report has the figures of each value that was written, and whether it is right. Values
that are missing have no figures and are left out. The result has, for each model:

  bins       values by probability, ten bins of equal width: how many, their mean probability, the share that is right
  ece        the expected calibration error: the mean over the bins, by their sizes, of the difference of the two
  brier      the mean of (probability - right)^2
  auroc      of a wrong and a right value drawn at random, how often the wrong one is the more doubtful one (ties count half), by
             probability, by surprise, and by their sum (-log probability + surprise); 0.5 is chance
  worst      the share of wrong values among the tenth that is the most doubtful by the sum, and among all
  interval   of auroc.sum: 95 %, by drawing the documents again a thousand times

`copied` has the figures of values that are not null, `nulls` of nulls, `outside_lists` of values that are in no list. A drawing has reliability at the left and wrong values found at the right.
"""

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'<script type="application/json" (class="document"|id="about")>(.*?)</script>', re.S)
COLOURS = ["#0b57a4", "#c2571a", "#1a7f4b", "#8250a8"]


def values_of(report):
    """(document, probability, surprise, right, JSON, field) of each value that was written and scored."""
    out = []
    page, pages = 1, 1
    while page <= pages:
        path = report if page == 1 else report.with_name(f"{report.stem}-{page}.html")
        page += 1
        for number, (kind, text) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8"))):
            block = json.loads(text)
            if kind.startswith("id"):
                pages = block["pages"]
                continue
            for value in block["values"]:
                if "v" in value and "ok" in value and "q" in value and block["setting"] == 0:
                    out.append(((str(path), number), value["q"], value.get("u", 0), value["ok"], value["v"], value.get("f", "")))
    return out


def auroc(doubts, right):
    """By ranks: the chance that a wrong value is the more doubtful one; None where all are alike."""
    wrong_count = sum(not ok for ok in right)
    right_count = len(right) - wrong_count
    if not wrong_count or not right_count:
        return None
    order = sorted(range(len(doubts)), key=lambda i: doubts[i])
    rank_sum, i = 0.0, 0
    while i < len(order):
        j = i
        while j < len(order) and doubts[order[j]] == doubts[order[i]]:
            j += 1
        rank_sum += sum((i + j + 1) / 2 for k in order[i:j] if not right[k])
        i = j
    return (rank_sum - wrong_count * (wrong_count + 1) / 2) / (wrong_count * right_count)


def doubt(value, kind):
    probability, surprise = value[1:3]
    log = -math.log(max(probability, 1e-300))
    return {"probability": log, "surprise": surprise, "sum": log + surprise}[kind]


def bins_of(values, count=10):
    out = []
    for i in range(count):
        some = [v for v in values if min(int(v[1] * count), count - 1) == i]
        if some:
            out.append({"from": i / count, "to": (i + 1) / count, "values": len(some),
                        "probability": sum(v[1] for v in some) / len(some), "right": sum(v[3] for v in some) / len(some)})
    return out


def figures(values):
    if not values:
        return {"values": 0}
    bins = bins_of(values)
    right = [v[3] for v in values]
    by_doubt = sorted(values, key=lambda v: -doubt(v, "sum"))
    tenth = by_doubt[: max(1, len(values) // 10)]
    return {
        "values": len(values), "right": sum(right) / len(right), "mean_probability": sum(v[1] for v in values) / len(values),
        "ece": sum(one["values"] * abs(one["probability"] - one["right"]) for one in bins) / len(values),
        "brier": sum((v[1] - v[3]) ** 2 for v in values) / len(values),
        "auroc": {kind: auroc([doubt(v, kind) for v in values], right) for kind in ("probability", "surprise", "sum")},
        "worst": {"tenth": sum(not v[3] for v in tenth) / len(tenth), "all": sum(not ok for ok in right) / len(right)},
        "bins": bins,
    }


def interval(values, draws=1000, seed=1):
    """95 % of auroc.sum, documents drawn again."""
    rng = random.Random(seed)
    documents = {}
    for value in values:
        documents.setdefault(value[0], []).append((doubt(value, "sum"), value[3]))
    groups = list(documents.values())
    found = []
    for _ in range(draws):
        some = [one for group in rng.choices(groups, k=len(groups)) for one in group]
        area = auroc([one[0] for one in some], [one[1] for one in some])
        if area is not None:
            found.append(area)
    found.sort()
    return [found[int(0.025 * len(found))], found[int(0.975 * len(found)) - 1]] if found else None


def measure(name, values):
    out = {"model": name, **figures(values)}
    out["interval"] = interval(values)
    nulls = [v for v in values if v[4] == "null"]
    out["copied"] = figures([v for v in values if v[4] != "null"])
    out["nulls"] = figures(nulls)
    out["outside_lists"] = figures([v for v in values if "[]" not in v[5]])
    return out


def curve(values, kind):
    """Wrong values found against values looked at, the most doubtful ones first."""
    wrong = sum(not v[3] for v in values)
    points, found = [(0.0, 0.0)], 0
    for i, v in enumerate(sorted(values, key=lambda v: -doubt(v, kind))):
        found += not v[3]
        points.append(((i + 1) / len(values), found / wrong if wrong else 0))
    step = max(1, len(points) // 150)
    return points[::step] + [points[-1]]


def drawing(results):
    """`results`: (figures, values) of each model."""
    side, left, top, gap = 300, 62, 46, 110
    width, height = left + 2 * side + gap + 50, top + side + 80 + 20 * len(results)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        "<title>Calibration of probability, and wrong values found by doubt</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]

    def text(x, y, what, anchor="middle", more=""):
        parts.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="#1f2328"{more}>{what}</text>')

    def panel(x, title, across, up):
        parts.append(f'<rect x="{x}" y="{top}" width="{side}" height="{side}" fill="#fbfaf7" stroke="#d1d5da"/>')
        for i in range(6):
            at = i * side / 5
            parts.append(f'<path d="M{x} {top + at:.0f}h{side}M{x + at:.0f} {top}v{side}" stroke="#e5e7ea" fill="none"/>')
            text(x - 8, top + side - at + 4, f"{20 * i} %", "end")
            text(x + at, top + side + 18, f"{20 * i} %")
        parts.append(f'<path d="M{x} {top + side}L{x + side} {top}" stroke="#8b949e" stroke-dasharray="4 4" fill="none"/>')
        text(x + side / 2, top - 18, title, more=' font-weight="600"')
        text(x + side / 2, top + side + 38, across)
        parts.append(f'<text transform="translate({x - 46} {top + side / 2}) rotate(-90)" text-anchor="middle" fill="#1f2328">{up}</text>')

    second = left + side + gap
    panel(left, "Does probability say how often?", "probability of the value", "values that are right")
    panel(second, "Do doubtful values come first?", "values looked at, most doubtful first", "wrong values found")
    for index, (found, values) in enumerate(results):
        colour = COLOURS[index % len(COLOURS)]
        points = [(left + side * one["probability"], top + side * (1 - one["right"]), one["values"]) for one in found["bins"]]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)}"/>')
        for x, y, count in points:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 + min(8, math.sqrt(count) / 2.5):.1f}" fill="{colour}" fill-opacity="0.6"><title>{count} values</title></circle>')
        for kind, dash in (("sum", ""), ("probability", ' stroke-dasharray="2 3"')):
            line = " ".join(f"{second + side * x:.1f},{top + side * (1 - y):.1f}" for x, y in curve(values, kind))
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="{line}"/>')
        y = top + side + 62 + 20 * index
        parts.append(f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        areas = found["auroc"]
        shown = " / ".join("-" if areas[kind] is None else f"{areas[kind]:.2f}" for kind in ("probability", "surprise", "sum"))
        name = found["model"].replace("&", "&amp;").replace("<", "&lt;")
        text(left + 18, y, f'{name}: {found["values"]} values, error {found["ece"]:.3f}, AUROC {shown}', "start", ' font-size="12"')
    text(left, y + 22, "error: expected calibration error. AUROC of probability / surprise / both. Dotted: by probability alone", "start", ' font-size="12"')
    return "\n".join([*parts, "</svg>", ""])


def main():
    options = sys.argv[1:]
    more = options[options.index("--") + 1 :] if "--" in options else []
    options = options[: options.index("--")] if "--" in options else options
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pawl", default=ROOT / "build/pawl", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--report", action="append", default=[], type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(options)
    if bool(arguments.data) != bool(arguments.model) or not (arguments.model or arguments.report):
        parser.error("give --data with --model, or --report")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        reports = [(path.stem, path) for path in arguments.report]
        for index, model in enumerate(arguments.model):
            path = Path(folder) / f"report{index}.html"
            done = subprocess.run([arguments.pawl, "eval", "--data", arguments.data, "--model", model, "--report", path, *more], check=False)
            if done.returncode > 1:
                return done.returncode
            reports.append((Path(model).stem, path))
        for name, path in reports:
            values = values_of(path)
            if not values:
                print(f"{path}: no value has a probability and is scored", file=sys.stderr)
                return 2
            found.append((measure(name, values), values))
    text = json.dumps({"data": str(arguments.data or ""), "options": more, "models": [one for one, _ in found]}, indent=1) + "\n"
    for one, _ in found:
        print({key: one[key] for key in ("model", "values", "right", "mean_probability", "ece", "brier", "auroc", "worst", "interval")})
    if arguments.json:
        arguments.json.write_text(text)
    if arguments.svg:
        outside = [(f"{one['model']}, outside lists", [v for v in values if "[]" not in v[5]]) for one, values in found]
        arguments.svg.write_text(drawing(found + [(measure(name, values), values) for name, values in outside if values]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
