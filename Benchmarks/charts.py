#!/usr/bin/env python3
"""Draws the charts of the documentation: charts.py

Writes docs/pictures/*-race.svg from the figures of Benchmarks/published.json and the targets of Benchmarks/promises/rows.py. The
other pictures are edited by hand.

The pictures have their own background, and colours for light and dark, selected by `prefers-color-scheme`.
"""
import json
import math
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("docs/pictures")

# Class: property, light, dark.
COLOURS = {
    "page": ("fill", "#ffffff", "#15181c"),
    "ink": ("fill", "#1f2328", "#e6e9ed"),
    "faint": ("fill", "#59636e", "#a3adb8"),
    "box": ("fill", "#f3f5f8", "#22272e"),
    "edge": ("stroke", "#8c96a1", "#6f7a86"),
    "line": ("stroke", "#59636e", "#a3adb8"),
    "head": ("fill", "#59636e", "#a3adb8"),
    "grid": ("stroke", "#dde1e6", "#353b43"),
    "axis": ("stroke", "#1f2328", "#e6e9ed"),
    "blue": ("fill", "#0969da", "#58a6ff"),
    "blueline": ("stroke", "#0969da", "#58a6ff"),
    "green": ("fill", "#1a7f37", "#3fb950"),
    "greenline": ("stroke", "#1a7f37", "#3fb950"),
    "red": ("fill", "#cf222e", "#ff7b72"),
    "redline": ("stroke", "#cf222e", "#ff7b72"),
    "orange": ("fill", "#bc4c00", "#f0883e"),
    "purple": ("fill", "#8250df", "#bc8cff"),
    "grey": ("fill", "#6e7781", "#8b949e"),
}


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def text(self, x, y, words, size=13, colour="ink", anchor="start", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" class="{colour}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>")

    def lines(self, x, y, rows, size=12, colour="faint", anchor="start"):
        for index, words in enumerate(rows):
            self.text(x, y + index * size * 1.4, words, size, colour, anchor)

    def bar(self, x, y, width, height, colour):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" rx="2" class="{colour}"/>')

    def line(self, points, colour="line", width=1.5, dashed=False):
        path = " ".join(f"{'M' if index == 0 else 'L'}{x:.1f} {y:.1f}" for index, (x, y) in enumerate(points))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<path d="{path}" fill="none" class="{colour}" stroke-width="{width}"{dash}/>')

    def svg(self):
        def rules(index):
            return "".join(f".{name}{{{colour[0]}:{colour[index]}}}" for name, colour in COLOURS.items())

        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" role="img"'
            f' viewBox="0 0 {self.width} {self.height}" font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{rules(1)}@media (prefers-color-scheme: dark){{{rules(2)}}}</style>",
            f'<rect width="{self.width}" height="{self.height}" rx="10" class="page"/>',
            *self.parts, "</svg>", ""])


def published():
    return json.loads((ROOT / "Benchmarks" / "published.json").read_text())


PEERS = {
    "SwiftNIO": "blue", "Swift Concurrency": "orange", "libuv": "purple", "echo-server": "green", "forEachChunk": "green",
}


def colour_of(peer):
    return next((colour for name, colour in PEERS.items() if peer.startswith(name)), "grey")


def race(title, subtitle, groups, lowest, highest, ticks, row=16):
    """Bars that begin at 1, on a logarithmic scale. Each group is a name and [(peer, ratio, low, high, target)]."""
    left, right, top = 240, 780, 96
    height = top + sum(24 + row * len(bars) + 8 for _, bars in groups) + 34
    p = Picture(860, height, title)

    def at(ratio):
        share = math.log(min(max(ratio, lowest), highest) / lowest) / math.log(highest / lowest)
        return left + share * (right - left)

    p.text(24, 34, title, 18, bold=True)
    p.lines(24, 54, subtitle)
    bottom = height - 30
    for tick in ticks:
        p.line([(at(tick), top - 4), (at(tick), bottom)], "axis" if tick == 1 else "grid", 1)
        for y in (top - 9, bottom + 14):
            p.text(at(tick), y, f"{tick:g}", 11, "faint", "middle")
    y = top
    for name, bars in groups:
        p.bar(24, y + 2, 812, 18, "box")
        p.text(30, y + 15, name, 12, bold=True)
        y += 24
        for peer, ratio, low, high, target in bars:
            start, end = sorted((at(1), at(ratio)))
            p.text(left - 10, y + 11, peer, 11, "faint", "end")
            p.bar(start, y + 2, end - start, row - 5, colour_of(peer))
            if low is not None:
                p.line([(at(low), y + row / 2 - 0.5), (at(high), y + row / 2 - 0.5)], "axis", 1)
            if target is not None:
                p.line([(at(target), y), (at(target), y + row - 2)], "greenline" if ratio <= target else "redline", 3)
            p.text(right + 10, y + 12, f"{ratio:.4f}" if ratio < 0.01 else f"{ratio:.2f}", 12, bold=True)
            y += row
        y += 8
    return p


def promises_race():
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / "Benchmarks" / "promises"))
    import rows

    targets = {
        (row.title, target.peer): target.limit for row in rows.ROWS for target in row.targets if target.what == "ratio"}
    names = {name: peer for peer, name in rows.NAMES.items()}
    groups = []
    for row in published()["promises"]:
        bars = []
        for peer in row["peers"]:
            name, spread = peer["name"].replace(", isolated", ""), peer["ratio"]
            bars.append((name, spread["median"], spread["min"], spread["max"], targets.get((row["title"], names.get(name)))))
        groups.append((row["title"], bars))
    return race(
        "Promises beside their peers",
        ("Processor time, ours divided by the peer's, on a logarithmic scale. A bar that goes left of 1: ours costs less.",
         "Thin line: the range of the rounds. Thick mark: the target, green if it is met."),
        groups, 0.005, 20, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20))


def echo_race():
    groups = []
    for row in published()["echo"]:
        groups.append((row["load"], [(peer, ratio, None, None, None) for peer, ratio in row["ratios"].items()]))
    return race(
        "An echo server beside a minimal one in C",
        ("Processor time of the server per message, divided by that of an epoll loop in C; bytes and connections.",
         "Green: this library, by promises (echo-server) and by forEachChunk."),
        groups, 0.8, 1.6, (0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6))


CHARTS = {"promises-race": promises_race, "echo-race": echo_race}


def main():
    files = {FOLDER / f"{name}.svg": draw().svg() for name, draw in CHARTS.items()}
    stale = sorted(str(path) for path in files if not (ROOT / path).exists() or (ROOT / path).read_text() != files[path])
    for path in stale:
        (ROOT / path).write_text(files[Path(path)])
        print(path)


main()
