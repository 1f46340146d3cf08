#!/usr/bin/env python3
"""Bias against cost of the samplers of `pawl generate`, as a table and a picture.

    bench/sampling_bias.py --command build/pawl --svg docs/sampling.svg

The language is 00000|1[01]{4}, 17 strings with one spelling each in the tokenizer of the shipped model, so the model's
law given validity is known exactly, from `pawl score`. For each sampler: the total variation between that law and the law
of what the sampler puts out, estimated from many outputs, and the rows of the model that an output costs. The law of an
output of smc is that of one particle drawn by weight; the law of the k-th output of asap is over runs with empty tries.
An estimate from R outputs is too large by at most about sqrt(17 / (2 pi R)); the table has that as "noise".
"""
import argparse
import json
import math
import subprocess

REGEX = "00000|1[01]{4}"


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def strings():
    return ["00000"] + ["1" + format(i, "04b") for i in range(16)]


class Bench:
    def __init__(self, command, prompt, temperature):
        self.command, self.prompt, self.temperature = command, prompt, temperature
        law = {}
        for text in strings():
            law[text] = math.exp(float(run([command, "score", "--prompt", prompt, "--text", text, "--end",
                                            "--temperature", str(temperature)])))
        self.mass = sum(law.values())
        self.law = {text: p / self.mass for text, p in law.items()}

    def lines(self, sampler, n, seed, *more):
        out = run([self.command, "generate", "--prompt", self.prompt, "--regex", REGEX, "--sampler", sampler, "--n",
                   str(n), "--seed", str(seed), "--temperature", str(self.temperature), "--max-tokens", "6",
                   "--json-lines", *more])
        return [json.loads(line) for line in out.splitlines()]

    def variation(self, counts):
        total = sum(counts.values())
        return sum(abs(counts.get(t, 0) / total - p) for t, p in self.law.items()) / 2


def rows_of(lines):
    return sum(line["report"]["model_rows"] for line in lines) / len(lines)


def measure(bench, outputs, runs):
    points = []  # (sampler, setting, rows, variation, noise)

    def add(sampler, setting, rows, counts, independent):
        points.append((sampler, setting, rows, bench.variation(counts), math.sqrt(17 / (2 * math.pi * independent))))

    for sampler, settings in (("gcd", [()]), ("fvo", [("--lookahead", "2"), ("--lookahead", "8")])):
        for more in settings:
            lines = bench.lines(sampler, outputs, 1, *more)
            counts = {}
            for line in lines:
                if line["report"]["valid"]:
                    counts[line["text"]] = counts.get(line["text"], 0) + 1
            add(sampler, " ".join(more), rows_of(lines), counts, outputs)
    for particles in (2, 5, 10, 20, 50):
        lines = bench.lines("smc", outputs * 5, 2, "--particles", str(particles))
        counts = {}
        for begin in range(0, len(lines) - particles + 1, particles):
            population = lines[begin:begin + particles]
            total = sum(math.exp(line["log_weight"]) for line in population)
            for line in population:
                share = math.exp(line["log_weight"]) / total if total > 0 else 0
                counts[line["text"]] = counts.get(line["text"], 0) + share
        add("smc", f"N={particles}", rows_of(lines) * particles, counts, outputs * 5 / particles)
    by_place = {}
    exact, costs = {}, []
    for seed in range(runs):
        for k, line in enumerate(bench.lines("asap", 20, seed)):
            by_place.setdefault(k + 1, []).append(line)
        if seed < runs // 4:
            lines = bench.lines("cars", 20, seed)
            costs += lines
            for line in lines:
                exact[line["text"]] = exact.get(line["text"], 0) + 1
    for k in (1, 2, 3, 5, 10, 20):
        counts = {}
        for line in by_place[k]:
            counts[line["text"]] = counts.get(line["text"], 0) + 1
        # An output that has learnt from others costs what they cost together.
        rows = sum(rows_of(by_place[i]) for i in range(1, k + 1))
        add("asap", f"k={k}", rows, counts, runs)
    add("cars", "", rows_of(costs), exact, len(costs))
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
    parser.add_argument("--prompt", default="Room 10110, code ")
    parser.add_argument("--temperature", type=float, default=2)
    parser.add_argument("--outputs", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=400, help="of asap, each with an empty trie")
    parser.add_argument("--svg")
    options = parser.parse_args()
    bench = Bench(options.command, options.prompt, options.temperature)
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
