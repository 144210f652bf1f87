#!/usr/bin/env python3
"""Removes test targets from a manifest, and what nothing else needs: manifest.py MANIFEST TEST-TARGET...

Other targets, their products and constants go if no target that is left names them; the programs go too. So only what the other tests
use is compiled.
"""
import re
import sys
from pathlib import Path


def declaration(name):
    """A target with the comment above it."""
    return re.compile(rf'(?:\n *//[^\n]*)*\n *\.\w+\(\s*name: "{re.escape(name)}"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\),')


def main():
    path = Path(sys.argv[1])
    head, targets = path.read_text().split("\n    targets: [\n", 1)
    targets = "\n" + targets
    for name in sys.argv[2:]:
        targets, found = declaration(name).subn("", targets)
        if found != 1:
            sys.exit(f"error: {path} has no test target {name}")
    while True:
        named = targets
        for constant, value in re.findall(r"^let (\w+)\b[^=\n]* = (.*)$", head, re.MULTILINE):
            if constant != "package" and re.search(rf"\b{constant}\b", targets):
                named += value
        for kind, name in re.findall(r'\n *\.(\w+)\(\s*name: "([^"]+)"', targets):
            if kind != "testTarget" and named.count(f'"{name}"') == 1:
                targets = declaration(name).sub("", targets)
                head = re.sub(rf'\n *\.\w+\(name: "[^"]*", targets: \["{re.escape(name)}"\]\),', "", head)
                break
        else:
            break
    # The file may be a link to the manifest of the repository, which stays as it is.
    path.unlink()
    path.write_text(head + "\n    targets: [" + targets)


main()
