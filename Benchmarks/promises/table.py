#!/usr/bin/env python3
"""Writes the results of run.py as a table of Markdown into docs/explanation/performance.md, between its two marks.

    table.py [RESULTS.json] [PAGE.md]
"""
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / ".build" / "promises" / "results.json"
PAGE = HERE.parent.parent / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def ratio(value):
    return f"{value:.4f}" if value < 0.01 else f"{value:.2f}"


def lines(results):
    yield "| A step | Beside | Ratio (lowest to highest) | ns, ours | Allocations, ours / theirs | Instructions |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in results["rows"]:
        title = row["title"]
        ours = row["ours"]
        for peer in row["peers"]:
            spread = peer["ratio"]
            yield " | ".join([
                f"| {title}", peer["name"],
                f"**{ratio(spread['median'])}** ({ratio(spread['min'])} to {ratio(spread['max'])})",
                number(ours["ns"], 0 if ours["ns"] >= 10 else 1),
                f"{number(ours['allocations'], 1)} / {number(peer['allocations'], 1)}",
                f"{number(ours['instructions'])} / {number(peer['instructions'])} |"])
            title = ""


def main():
    arguments = [Path(name) for name in sys.argv[1:]]
    results = json.loads((arguments[0] if arguments else RESULTS).read_text())
    page = arguments[1] if len(arguments) > 1 else PAGE
    text = page.read_text()
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    page.write_text(head + BEGIN + "\n\n" + "\n".join(lines(results)) + "\n\n" + END + tail)


if __name__ == "__main__":
    main()
