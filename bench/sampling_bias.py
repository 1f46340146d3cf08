#!/usr/bin/env python3
"""Bias against cost of the samplers of `pawl generate`, as a table and a picture.

    bench/sampling_bias.py --command build/pawl --svg docs/sampling.svg

The language is 00000|1[01]{4}, 17 strings, under the model of bench/toy_language.py (or --model, which has to spell them
in one way each), so the model's law Q given validity is known exactly, from `pawl score`. For each sampler: the total
variation between Q and the law of what the sampler puts out, and the rows of the model that an output costs.

A weight of gcd, fvo and asap is P / q with the probability q that this output was drawn with, so the total variation is
the mean of max(0, 1 - Q / q) over outputs. The k-th output of asap is averaged over runs that begin with empty tries, and
costs what the first k cost together. The law of smc is that of one particle drawn by weight; its total variation is
taken from counts, which makes it too large by at most about the "noise". cars is exact.
"""
import argparse
import json
import math
import subprocess
import tempfile

import toy_language
from toy_language import REGEX, strings


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


class Bench:
    def __init__(self, command, model, prompt, temperature):
        self.command, self.prompt, self.temperature = command, prompt, temperature
        self.model = ["--model", model]
        law = {}
        for text in strings():
            law[text] = math.exp(float(run([command, "score", *self.model, "--prompt", prompt, "--text", text,
                                            "--end", "--temperature", str(temperature)])))
        self.mass = sum(law.values())
        self.law = {text: p / self.mass for text, p in law.items()}

    def lines(self, sampler, n, seed, *more):
        out = run([self.command, "generate", *self.model, "--prompt", self.prompt, "--regex", REGEX, "--sampler", sampler, "--n",
                   str(n), "--seed", str(seed), "--temperature", str(self.temperature), "--max-tokens", "6",
                   "--json-lines", *more])
        return [json.loads(line) for line in out.splitlines()]

    def variation(self, counts):
        total = sum(counts.values())
        return sum(abs(counts.get(t, 0) / total - p) for t, p in self.law.items()) / 2


def rows_of(lines):
    return sum(line["report"]["model_rows"] for line in lines) / len(lines)


def mean_excess(bench, lines):
    """The total variation, from what each output was drawn with."""
    total = 0
    for line in lines:
        if line["report"]["valid"]:
            q = math.exp(line["log_probability"] - line["log_weight"])
            total += max(0, 1 - bench.law[line["text"]] / q)
        else:
            total += 1
    return total / len(lines)


def measure(bench, outputs, runs):
    points = []  # (sampler, setting, rows, variation, noise)
    for sampler, more in (("gcd", ()), ("fvo", ("--lookahead", "2"))):
        lines = bench.lines(sampler, outputs // 4, 1, *more)
        setting = f"K={more[1]}" if more else ""
        points.append((sampler, setting, rows_of(lines), mean_excess(bench, lines), 0))
    for particles in (2, 5, 10, 20, 50):
        lines = bench.lines("smc", outputs * 5, 2, "--particles", str(particles))
        counts = {}
        for begin in range(0, len(lines) - particles + 1, particles):
            population = lines[begin:begin + particles]
            total = sum(math.exp(line["log_weight"]) for line in population)
            for line in population:
                share = math.exp(line["log_weight"]) / total if total > 0 else 0
                counts[line["text"]] = counts.get(line["text"], 0) + share
        noise = math.sqrt(17 / (2 * math.pi * outputs * 5 / particles))
        points.append(("smc", f"N={particles}", rows_of(lines) * particles, bench.variation(counts), noise))
    by_place, costs = {}, []
    for seed in range(runs):
        for k, line in enumerate(bench.lines("asap", 40, seed)):
            by_place.setdefault(k + 1, []).append(line)
        if seed < runs // 4:
            costs += bench.lines("cars", 40, seed)
    for k in (1, 2, 5, 10, 20, 40):
        rows = sum(rows_of(by_place[i]) for i in range(1, k + 1))
        points.append(("asap", f"k={k}", rows, mean_excess(bench, by_place[k]), 0))
    points.append(("cars", "", rows_of(costs), 0, 0))
    return points


COLOURS = {"gcd": "#c0392b", "fvo": "#e67e22", "smc": "#2471a3", "asap": "#7d3c98", "cars": "#1e8449"}


def draw(points):
    width, height, left, bottom = 640, 400, 70, 50
    most = max(p[2] for p in points) * 1.3
    least = min(p[2] for p in points) / 1.3
    top = max(p[3] for p in points) * 1.08

    def x(rows):
        return left + (width - left - 20) * math.log(rows / least) / math.log(most / least)

    def y(variation):
        return height - bottom - (height - bottom - 20) * variation / top

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        if least <= tick <= most:
            out.append(f'<line x1="{x(tick):.1f}" y1="20" x2="{x(tick):.1f}" y2="{height - bottom}" stroke="#ddd"/>')
            out.append(f'<text x="{x(tick):.1f}" y="{height - bottom + 16}" text-anchor="middle">{tick}</text>')
    for i in range(6):
        v = top * i / 5
        out.append(f'<line x1="{left}" y1="{y(v):.1f}" x2="{width - 20}" y2="{y(v):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.2f}</text>')
    out.append(f'<text x="{(width + left) / 2}" y="{height - 12}" text-anchor="middle">rows of the model for an '
               'output</text>')
    out.append(f'<text x="16" y="{height / 2 - 20}" transform="rotate(-90 16 {height / 2 - 20})" '
               'text-anchor="middle">total variation from the model\'s law</text>')
    for sampler, colour in COLOURS.items():
        of = [p for p in points if p[0] == sampler]
        path = " ".join(f"{x(p[2]):.1f},{y(p[3]):.1f}" for p in of)
        if len(of) > 1:
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        for p in of:
            out.append(f'<circle cx="{x(p[2]):.1f}" cy="{y(p[3]):.1f}" r="4" fill="{colour}"/>')
        last = of[0]
        name = f"{sampler} {last[1]}".strip()
        out.append(f'<text x="{x(last[2]) + 7:.1f}" y="{y(last[3]) - 6:.1f}" fill="{colour}">{name}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/pawl")
    parser.add_argument("--model", help="default: that of bench/toy_language.py")
    parser.add_argument("--prompt", default=toy_language.PROMPT)
    parser.add_argument("--temperature", type=float, default=1)
    parser.add_argument("--outputs", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=200, help="of asap, each with an empty trie")
    parser.add_argument("--svg")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.model is None:
            toy_language.write(folder)
        run_bench(options, Bench(options.command, options.model or folder, options.prompt, options.temperature))


def run_bench(options, bench):
    print(f"mass of what is valid: {bench.mass:.3g}; P(00000 | valid): {bench.law['00000']:.4f}")
    points = measure(bench, options.outputs, options.runs)
    print(f"{'sampler':8} {'setting':14} {'rows':>8} {'variation':>10} {'noise':>7}")
    for sampler, setting, rows, variation, noise in points:
        print(f"{sampler:8} {setting:14} {rows:8.1f} {variation:10.4f} {noise:7.4f}")
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(draw(points))


if __name__ == "__main__":
    main()
