#!/usr/bin/env python3
"""Checks the links and the figures of the documentation: links.py

Every relative link of every Markdown page must lead to a file of this repository, and its anchor, if it has one, to a
heading of that file. Every `docs/….md` that a page, a comment or a script names must exist. The README.md of the folder of a
page below docs/, or of one above, must link to it.

A figure that names its count, as in `2,990<!-- count: echo-server instructions -->`, must be within 5 % of that in .ci/counts.txt.
Prints each fault and fails if it found one.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tracked():
    """The files of the repository, including uncommitted new ones."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    names = listed.stdout.splitlines()
    if listed.returncode != 0:  # an archive without a repository
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if ".build" not in str(path)]
    return sorted(name for name in set(names) if (ROOT / name).is_file())


def prose_of(path):
    """The numbered lines outside of code blocks."""
    fence = False
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
        elif not fence:
            yield number, line


def anchors_of(path):
    """The anchors that GitHub gives to the headings of a page."""
    anchors, counts = set(), {}
    for _, line in prose_of(path):
        if match := re.match(r"#{1,6} +(.*?)\s*#*$", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = counts.get(slug, 0)
            counts[slug] = count + 1
            anchors.add(f"{slug}-{count}" if count else slug)
        anchors.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return anchors


def stale_figures(page, counts):
    """The figures of a page that differ from the counts."""
    for number, line in prose_of(page):
        for figure, name in re.findall(r"([\d,.]+)<!-- count: (\S+ \S+) -->", line):
            counted = counts.get(name)
            if counted is None or abs(float(figure.replace(",", "")) - counted) > 0.05 * counted:
                yield f"{page}:{number}: {figure} is given for {name}, and .ci/counts.txt has {counted}"


def main():
    rows = [line.split() for line in (ROOT / ".ci/counts.txt").read_text().splitlines() if line[:1] != "#"]
    kinds = next(row[1:] for row in rows if row[:1] == ["SUBJECT"])
    counts = {f"{row[0]} {kind}": float(figure) for row in rows if len(row) == len(kinds) + 1
              for kind, figure in zip(kinds, row[1:]) if re.fullmatch(r"[\d.]+", figure)}
    faults, files, linked = [], tracked(), {"docs/README.md"}
    pages = [path for path in files if path.endswith(".md")]
    anchors = {}
    for page in pages:
        faults.extend(stale_figures(page, counts))
        for number, line in prose_of(page):
            line = re.sub(r"`[^`]*`", "", line)
            targets = re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", line)
            targets += re.findall(r'(?:src|srcset|href)="([^"]+)"', line)
            targets += re.findall(r"^\[[^\]]+\]: +(\S+)", line)
            for target in targets:
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                if page.startswith("docs/") and page.endswith("/README.md"):
                    linked.add(path)
                if not (ROOT / path).exists():
                    faults.append(f"{page}:{number}: {target}: there is no {path}")
                elif anchor and path.endswith(".md"):
                    if path not in anchors:
                        anchors[path] = anchors_of(path)
                    if anchor not in anchors[path]:
                        faults.append(f"{page}:{number}: {target}: {path} has no heading '{anchor}'")
    for path in files:
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"(?<![\w./-])docs/[\w/-]+\.(?:md|svg)\b", line):
                if not (ROOT / name).exists():
                    faults.append(f"{path}:{number}: there is no {name}")
    for page in pages:
        if page.startswith("docs/"):
            if page not in linked:
                faults.append(f"{page}: no README.md below docs/ links to it")
    for fault in faults:
        print(f"error: {fault}")
    sys.exit(1 if faults else 0)


main()
