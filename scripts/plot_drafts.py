#!/usr/bin/env python3
"""Draws docs/images/tokens_per_step.svg from what `pawl bench draft --replay ... --json OUT` wrote.

scripts/plot_drafts.py OUT PICTURE
"""
import json
import sys
from xml.sax.saxutils import escape

COLOURS = {"forced": "#9db8d2", "unfiltered": "#d9b38c", "all": "#2f6f9f"}
NAMES = {"forced": "forced text alone", "unfiltered": "all sources, no filter", "all": "all sources"}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        run = json.load(file)
    rows = [("all texts", run["tokens_per_step"])]
    for name, values in run["categories"].items():
        if values["tokens"]:
            rows.append((name, {**values, "all": values["tokens_per_step"]}))
    series = [s for s in ("forced", "unfiltered", "all") if s in rows[0][1]]
    left, width, bar, gap, top = 130, 560, 11, 14, 40
    most = max(values[s] for _, values in rows for s in series)
    group = bar * len(series) + gap
    height = top + group * len(rows) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 50}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{left + width + 50}" height="{height}" fill="white"/>']
    x = left
    for s in series:
        out.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{COLOURS[s]}"/>')
        out.append(f'<text x="{x + 17}" y="22" fill="#333">{escape(NAMES[s])}</text>')
        x += 160
    scale = width / most
    one = left + scale
    out.append(f'<line x1="{one:.1f}" y1="{top - 6}" x2="{one:.1f}" y2="{height - 24}" stroke="#999" '
               'stroke-dasharray="3,3"/>')
    out.append(f'<text x="{one:.1f}" y="{height - 8}" text-anchor="middle" fill="#666">1 without drafts</text>')
    y = top
    for name, values in rows:
        middle = y + bar * len(series) / 2 + 4
        out.append(f'<text x="{left - 8}" y="{middle}" text-anchor="end" fill="#333">{escape(name)}</text>')
        for s in series:
            length = values[s] * scale
            out.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 1}" fill="{COLOURS[s]}"/>')
            out.append(f'<text x="{left + length + 4:.1f}" y="{y + 9}" font-size="10" fill="#333">{values[s]:.2f}</text>')
            y += bar
        y += gap
    out.append("</svg>")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
