#!/usr/bin/env python3
"""Draws the ratios that run.py has measured: chart.py [RESULTS.json] [CHART.svg]

A bar starts at 1, where both cost the same, and goes left where ours costs less, on a logarithmic scale.
"""
import json
import math
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / ".build" / "promises" / "results.json"
CHART = HERE.parent.parent / "docs" / "explanation" / "performance.svg"

WIDTH = 980
MARGIN = 24
NAMES_END = 190  # peers' names end here
LEFT, RIGHT = 204, 800  # the scale
VALUES = 812
LOWEST, HIGHEST = 0.005, 20.0  # what lies beyond is cut off, and marked so
TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
TITLE, BAR, GAP = 20, 17, 12

INK, FAINT, GRID = "#1f2328", "#656d76", "#e4e7eb"
GOOD, BAD = "#1a7f37", "#cf222e"
COLOURS = {
    "nio": "#0969da", "tasks": "#f05138", "floor": "#8c959f", "c": "#57606a", "c-reads": "#57606a", "uv": "#8250df",
    "ours-unnested": "#2da44e",
}


def position(ratio):
    share = (math.log(ratio) - math.log(LOWEST)) / (math.log(HIGHEST) - math.log(LOWEST))
    return LEFT + share * (RIGHT - LEFT)


def text(x, y, words, size=12, colour=INK, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
            f' font-weight="{weight}">{escape(words)}</text>')


def line(x, top, bottom, colour, width=1.0):
    return f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def shown(ratio):
    return f"{ratio:.4f}" if ratio < 0.01 else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def own_figures(ours):
    """What ours costs by itself, for the right end of a row's title."""
    words = [f"{ours['ns']:,.0f} ns"]
    for what in ("allocations", "instructions"):
        if ours.get(what) is not None:
            number = f"{ours[what]:,.1f}".removesuffix(".0") if what == "allocations" else f"{ours[what]:,.0f}"
            words.append(f"{number} {what[:-1] if number == '1' else what}")
    return ", ".join(words)


def bar(peer, target, y):
    """One peer's line: name, bar, range of the rounds, mark of the target, value."""
    ratio = peer["ratio"]["median"]
    cut = min(max(ratio, LOWEST), HIGHEST)
    start, end = sorted((position(1), position(cut)))
    middle = y + BAR / 2
    parts = [
        text(NAMES_END, middle + 4, peer["name"], 11, FAINT, "end"),
        f'<rect x="{start:.1f}" y="{y + 3:.1f}" width="{max(end - start, 1):.1f}" height="{BAR - 6}" rx="2"'
        f' fill="{COLOURS[peer["peer"]]}"/>',
    ]
    if cut != ratio:  # an arrow's head at the end that was cut off
        tip, base = (LEFT - 6, LEFT) if ratio < LOWEST else (RIGHT + 6, RIGHT)
        parts.append(f'<path d="M{tip} {middle} L{base} {y + 2} L{base} {y + BAR - 2} Z"'
                     f' fill="{COLOURS[peer["peer"]]}"/>')
    low, high = (position(min(max(peer["ratio"][end], LOWEST), HIGHEST)) for end in ("min", "max"))
    parts.append(f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" stroke="{INK}" stroke-width="1"/>')
    parts.append(text(VALUES, middle + 4, shown(ratio), 12, INK, weight="bold"))
    if target:
        colour = GOOD if target["met"] else BAD
        where = position(min(max(target["limit"], LOWEST), HIGHEST))
        parts.append(line(where, y, y + BAR, colour, 3))
        parts.append(text(VALUES + 52, middle + 4, f"target {target['limit']:g}", 11, colour))
    return "".join(parts)


def draw(results):
    rows = [row for row in results["rows"] if row["peers"]]
    top = 118
    height = top + sum(TITLE + BAR * len(row["peers"]) + GAP for row in rows) + 40
    bottom = height - 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(MARGIN, 36, "Promises beside their peers", 20, weight="bold"),
        text(MARGIN, 58, "Processor time, ours divided by the peer's. Bars that go left of 1: ours costs less. "
             "Thin line: the range of the rounds.", 12, FAINT),
        text(MARGIN, 76, f"{results['processor']}; median of {results['rounds']} alternating rounds of one run.", 12,
             FAINT),
    ]
    for tick in TICKS:
        parts.append(line(position(tick), top - 8, bottom, INK if tick == 1 else GRID, 1.2 if tick == 1 else 1))
        for y in (top - 14, bottom + 16):
            parts.append(text(position(tick), y, f"{tick:g}", 11, FAINT, "middle"))
    y = top
    for row in rows:
        # Over the scale's lines, so that the title can be read.
        parts.append(f'<rect x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{TITLE - 2}" fill="#f6f8fa"/>')
        parts.append(text(MARGIN + 6, y + 13, row["title"], 12, weight="bold"))
        parts.append(text(WIDTH - MARGIN - 6, y + 13, own_figures(row["ours"]), 11, FAINT, "end"))
        y += TITLE
        targets = {target["peer"]: target for target in row["targets"] if target["what"] == "ratio"}
        for peer in row["peers"]:
            parts.append(bar(peer, targets.get(peer["peer"]), y))
            y += BAR
        y += GAP
    return "\n".join([*parts, "</svg>", ""])


def main():
    if len(sys.argv) > 3 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    chart = Path(sys.argv[2]) if len(sys.argv) > 2 else CHART
    chart.write_text(draw(json.loads(source.read_text())))


if __name__ == "__main__":
    main()
