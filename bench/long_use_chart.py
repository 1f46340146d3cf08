#!/usr/bin/env python3
"""Draws what bench/long_use.cc writes: memory of the process, and what the grammars keep, over the outputs.

  bench/long_use_chart.py bench/results/long_use-2026-11-22.json docs/long_use.svg
"""

import json
import sys

STYLE = """
  svg { background: #ffffff; font: 12px system-ui, sans-serif; }
  text { fill: #24292f; } .grid { stroke: #d0d7de; } .line { fill: none; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #30363d; }
  }
"""
LEFT, TOP, WIDTH, HEIGHT = 60, 40, 560, 220
LINES = (("resident_mb", "#0072B2", "process"), ("kept_mb", "#D55E00", "grammars"))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        record = json.load(file)
    points = record["points"]
    top = 10 * (int(max(point["resident_mb"] for point in points)) // 10 + 1)

    def x(point):
        return LEFT + WIDTH * point["outputs"] / record["outputs"]

    def y(megabytes):
        return TOP + HEIGHT * (1 - megabytes / top)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 90}" height="{TOP + HEIGHT + 50}">']
    out.append(f"<style>{STYLE}</style>")
    out.append(f'<text x="{LEFT}" y="22">MB over {record["outputs"]:,} outputs, {record["grammars"]} grammars, '
               f'budget {record["budget_mb"]} MB</text>')
    for megabytes in range(0, top + 1, 10):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(megabytes):.1f}" y2="{y(megabytes):.1f}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(megabytes) + 4:.1f}" text-anchor="end">{megabytes}</text>')
    for share in (0, 0.5, 1):
        out.append(f'<text x="{LEFT + WIDTH * share:.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">'
                   f'{int(record["outputs"] * share):,}</text>')
    for key, colour, name in LINES:
        way = " ".join(f"{x(point):.1f},{y(point[key]):.1f}" for point in points)
        out.append(f'<polyline class="line" stroke="{colour}" points="{way}"/>')
        out.append(f'<text x="{LEFT + WIDTH + 8}" y="{y(points[-1][key]) + 4:.1f}">{name}</text>')
    out.append("</svg>")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
