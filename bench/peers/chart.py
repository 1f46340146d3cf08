"""The chart of maskbench_peers.py as SVG: times by percentile on a logarithmic scale, and next to them how much passes.

Written by hand, without a plotting library, so that it is the same file on every machine. Text and lines take their colours
from a style sheet that follows the reader's light or dark setting; the colours of the engines are told apart on both, and by
readers who do not see all colours (Okabe and Ito), and each engine has a marker of its own.
"""

import html
import math

KEYS = ("p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "max")
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLE = """
  svg { background: #ffffff; font: 12px system-ui, sans-serif; }
  text { fill: #24292f; } .dim { fill: #57606a; } .title { font-size: 15px; font-weight: 600; } .head { font-weight: 600; }
  .grid { stroke: #d0d7de; stroke-width: 1; } .axis { stroke: #57606a; stroke-width: 1; } .rest { fill: #d0d7de; }
  .line { fill: none; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    text { fill: #e6edf3; } .dim { fill: #9198a1; }
    .grid { stroke: #30363d; } .axis { stroke: #9198a1; } .rest { fill: #30363d; }
  }
"""
WIDTH, TOP, HEIGHT = 1080, 96, 300
PANELS = ((64, 330, "tbm_us", "One token: mask and advance"), (464, 330, "ttfm_us", "From schema to first mask"))
BARS = 854


def time_label(microseconds):
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds * 1e3:g} ns"


def text(x, y, content, css="", anchor="start"):
    extra = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(content)}</text>'


def line(x1, y1, x2, y2, css):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'


def marker(shape, x, y, colour):
    points = {1: [(-4, -4), (4, -4), (4, 4), (-4, 4)], 2: [(0, -5), (5, 4), (-5, 4)], 3: [(0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)],
              4: [(0, 5), (5, -4), (-5, -4)]}.get(shape)
    if points is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in points)
    return f'<polygon points="{corners}" fill="{colour}"/>'


def panel(engines, left, width, field, title):
    values = [e[field][key] for e in engines for key in KEYS if e[field].get(key, 0) > 0]
    out = [text(left, TOP - 14, title, "head")]
    if not values:
        return out + [text(left, TOP + 20, "no measurements", "dim")]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def y_of(value):
        return TOP + HEIGHT * (1 - (math.log10(value) - low) / (high - low))

    for power in range(low, high + 1):
        y = y_of(10.0**power)
        out += [line(left, y, left + width, y, "grid"), text(left - 6, y + 4, time_label(10.0**power), "dim", "end")]
    step = width / len(KEYS)
    for i, key in enumerate(KEYS):
        out.append(text(left + step * (i + 0.5), TOP + HEIGHT + 18, key, "dim", "middle"))
    out.append(line(left, TOP + HEIGHT, left + width, TOP + HEIGHT, "axis"))
    for number, engine in enumerate(engines):
        colour = COLOURS[number % len(COLOURS)]
        at = [(left + step * (i + 0.5), y_of(engine[field][key])) for i, key in enumerate(KEYS) if engine[field].get(key, 0) > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        out.append(f'<polyline points="{path}" class="line" stroke="{colour}"/>')
        out += [marker(number, x, y, colour) for x, y in at]
    return out


def bars(engines):
    """Pass rates; the names here are the legend of the whole chart."""
    out = [text(BARS, TOP - 14, "Schemas that pass", "head")]
    width = WIDTH - BARS - 24
    for number, engine in enumerate(engines):
        y = TOP + 14 + number * 62
        colour = COLOURS[number % len(COLOURS)]
        share = engine["passing"] / max(1, engine["schemas"])
        name = engine["name"] + (f" {engine['version']}" if engine.get("version") else "")
        out += [marker(number, BARS + 5, y - 4, colour), text(BARS + 18, y, name),
                f'<rect x="{BARS}" y="{y + 8}" width="{width}" height="10" class="rest"/>',
                f'<rect x="{BARS}" y="{y + 8}" width="{width * share:.1f}" height="10" fill="{colour}"/>',
                text(BARS, y + 33, f"{share:.1%} of {engine['schemas']}", "dim")]
    return out


def draw(result):
    """The SVG text for what maskbench_peers.py measured."""
    engines = result["engines"]
    height = max(TOP + HEIGHT + 44, TOP + 14 + len(engines) * 62 + 10)
    machine = result["machine"]["cpu"] or "unknown processor"
    mode = {"cold": "cold: every schema with empty caches", "warm": "warm: schema and texts seen once before"}[result["mode"]]
    body = [text(24, 28, "MaskBench: time by percentile", "title"),
            text(24, 48, f"{result['schemas']} schemas, tokenizer {result['tokenizer']}, one core of {machine}, {mode}; lower is "
                         "faster, logarithmic", "dim")]
    for left, width, field, title in PANELS:
        body += panel(engines, left, width, field, title)
    body += bars(engines)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="Mask times of {html.escape(", ".join(e["name"] for e in engines))}">\n<style>{STYLE}</style>\n'
            + "\n".join(body) + "\n</svg>\n")
