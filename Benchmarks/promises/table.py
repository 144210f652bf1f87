#!/usr/bin/env python3
"""Keeps the results of run.py in Benchmarks/published.json, and writes their table into docs/explanation/performance.md, between
its two marks.

    table.py [RESULTS.json]

Without results it writes the table from the published ones.
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PUBLISHED = ROOT / "Benchmarks" / "published.json"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
# Left out of the page, as redundant with another row or peer; the chart has all of them.
LEFT_OUT = {
    "map on a pending promise, chain of 1", "map on a fulfilled promise, one hang for a hundred, each", "race of 2",
    "then with a settled promise, one hang for a hundred, each", "recursion through after and then, per step",
    "to another thread and back, with handlers instead of hang", "a call, in C", "C, reading the eventfd",
}
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def ratio(value):
    return f"{value:.4f}" if value < 0.01 else f"{value:.2f}"


def lines(rows):
    yield "| Step | SwiftNIO | Swift Concurrency | Others | Allocations |"
    yield "| --- | --- | --- | --- | --- |"
    for row in (row for row in rows if row["title"] not in LEFT_OUT):
        cells = {"SwiftNIO": "", "Swift Concurrency": ""}
        for peer in (peer for peer in row["peers"] if peer["name"] not in LEFT_OUT):
            name = peer["name"].replace(", isolated", "")
            own = name in cells
            cells[name] = ratio(peer["ratio"]["median"]) if own else f"{name} {ratio(peer['ratio']['median'])}"
        first, second, *others = cells.values()
        yield f"| {row['title']} | {first} | {second} | {', '.join(others)} | {row['ours']['allocations']:.1f} |"


def text_of(published):
    """One line per row, for readable diffs."""
    groups = (
        f'  "{name}": [\n' + ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n  ]"
        for name, rows in published.items())
    return "{\n" + ",\n".join(groups) + "\n}\n"


def kept(row):
    """What the page and the chart show of a row: no samples, and figures that a reader can compare."""

    def measured(side):
        return {key: round(side[key], 1) for key in ("ns", "allocations", "instructions") if side.get(key) is not None}

    def peer(side):
        ratio = {key: round(side["ratio"][key], 4 if side["ratio"]["median"] < 0.01 else 2) for key in ("median", "min", "max")}
        return {"name": side["name"], "ratio": ratio, **measured({**side, "ns": None})}

    return {"title": row["title"], "ours": measured(row["ours"]), "peers": [peer(side) for side in row["peers"]]}


def main():
    published = json.loads(PUBLISHED.read_text())
    if sys.argv[1:]:
        published["promises"] = [kept(row) for row in json.loads(Path(sys.argv[1]).read_text())["rows"]]
        PUBLISHED.write_text(text_of(published))
    head, rest = PAGE.read_text().split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    PAGE.write_text(head + BEGIN + "\n\n" + "\n".join(lines(published["promises"])) + "\n\n" + END + tail)


if __name__ == "__main__":
    main()
