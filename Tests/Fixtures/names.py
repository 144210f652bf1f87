#!/usr/bin/env python3
"""Prints the names of the documentation that programs cannot use: names.py PRODUCTS

Looks at the inline code and the indented code of the pages that `snippets.py` compiles, and compares it with the public symbols of
the modules in PRODUCTS, the folder of a build. A name also exists if a compiled block has it, or one of ini or
yaml. Reported are

    Type.member       of a type of these modules that has no such member
    .member           if no type has such a static member or case
    call(label:)      if no function of that name takes the label
    member            in the first column of a table, of the type that ends the sentence before it: "A `Resolver` has"
    someName          if it is declared in Sources, but not publicly, or if no file of the repository has it

The pages below docs/explanation and CONTRIBUTING.md are about the sources: their names must only be in the repository. Below
docs/coming-from, the first column of a table has another library's names. Modules that the build lacks, those of Integrations and,
without its trait, ReactorTLS, count with the words of their public declarations.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = re.findall(r'\.library\(name: "(\w+)"', (ROOT / "Package.swift").read_text())
# Of the toolchain, for manifests and tests.
OTHERS = ["PackageDescription", "XCTest"]
TOOLS = Path(shutil.which("swiftc")).resolve().parent
# Distributions name their own vendor in it.
TARGET = json.loads(subprocess.check_output(["swiftc", "-print-target-info"]))["target"]["triple"]
MANIFESTS = TOOLS.parent / "lib/swift/pm/ManifestAPI"
TYPES = {f"swift.{kind}" for kind in ("struct", "class", "enum", "protocol", "typealias", "associatedtype")}
NAME = re.compile(r"(?<![\w/.$-])[A-Za-z]\w*(?![\w/-]|\.so\b)")


def base(name):
    return name.split("(")[0]


def graphs(modules, folder, options=()):
    """The symbol graphs of modules in the folder or the toolchain, with their public symbols."""
    with tempfile.TemporaryDirectory() as output:
        for module in modules:
            subprocess.run(
                [TOOLS / "swift-symbolgraph-extract", "-module-name", module, "-target", TARGET,
                 "-I", folder, *options, "-minimum-access-level", "public", "-skip-inherited-docs", "-output-dir", output],
                check=True, stdout=subprocess.DEVNULL)
        for file in Path(output).glob("*.json"):
            yield json.loads(file.read_text())


class API:
    """The public symbols of the modules."""

    def __init__(self, products):
        self.types, self.words = set(), {
            word for graph in graphs(OTHERS, MANIFESTS) for symbol in graph["symbols"] for word in map(base, symbol["pathComponents"])}
        # By a type's name: its members, and the protocols it conforms to. By a function's: the labels of its overloads.
        self.members, self.protocols, self.labels = defaultdict(set), defaultdict(set), defaultdict(set)
        paths, conformances = {}, []
        headers = [*products.glob("*.build/module.modulemap"), *ROOT.glob("Sources/*/module.modulemap")]
        maps = [word for file in headers for word in ("-Xcc", f"-fmodule-map-file={file}")]
        built = [name for name in MODULES if (products / f"Modules/{name}.swiftmodule").exists()]
        for graph in graphs(built, products / "Modules", maps):
            for symbol in graph["symbols"]:
                path, kind = symbol["pathComponents"], symbol["kind"]["identifier"]
                paths[symbol["identifier"]["precise"]] = path
                self.words.update(base(name) for name in path)
                self.words.update(
                    piece["spelling"] for piece in symbol["declarationFragments"] if piece["kind"].endswith("Param"))
                if kind in TYPES:
                    self.types.add(path[-1])
                if len(path) > 1:
                    self.members[path[-2]].add(base(path[-1]))
                called = path[-2] if kind == "swift.init" else base(path[-1])
                self.labels[called].update(re.findall(r"(\w+):", path[-1]))
            conformances += [link for link in graph["relationships"] if link["kind"] in ("conformsTo", "inheritsFrom")]
        for link in conformances:
            if link["source"] in paths:
                target = paths.get(link["target"], [link.get("targetFallback", "").split(".")[-1]])
                self.protocols[paths[link["source"]][-1]].add(target[-1])
        # Types of other libraries have more initializers.
        self.labels = {name: labels for name, labels in self.labels.items() if name[0].islower() or name in self.types}
        self.any_member = set().union(*self.members.values())

    def all_members(self, name, seen=()):
        """The members of a type, its protocols' included."""
        found = set(self.members[name])
        for protocol in self.protocols[name] - {name, *seen}:
            found |= self.all_members(protocol, (*seen, name))
        return found


class Repository:
    """The words of its Swift files, and of the paths of all its files."""

    def __init__(self):
        self.words, self.declared, self.public = set(), set(), set()  # declared: in Sources
        for path in self.files():
            self.words.update(re.findall(r"\w+", str(path.relative_to(ROOT))))
            if path.suffix != ".swift":
                continue
            text = path.read_text()
            words = set(re.findall(r"\w+", text))
            self.words |= words
            if path.is_relative_to(ROOT / "Sources"):
                self.declared.update(re.findall(r"\b(?:func|var|let|case|class|struct|enum|protocol|typealias) +(\w+)", text))
            if path.is_relative_to(ROOT / "Sources/ReactorTLS") or path.is_relative_to(ROOT / "Integrations/Sources"):
                for declaration in re.findall(r"\bpublic ([^{]+)|\bcase (\w+)", text):
                    self.public.update(re.findall(r"\w+", " ".join(declaration)))

    @staticmethod
    def files():
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [name for name in folders if not name.startswith((".build", ".git"))]
            yield from (Path(folder, name) for name in names if folder != str(ROOT))

    def has(self, name):
        return name in self.words and name not in self.declared


def pieces_of(path):
    """The lines of a page: its prose, its tables and its indented code; and the words of its compiled blocks."""
    lines, words, fence = [], set(), None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence else line
            lines.append((number, ""))
        elif fence is None:
            lines.append((number, line))
        elif fence in ("```swift", "```ini", "```yaml"):
            words.update(re.findall(r"\w+", line))
    return lines, words


def spans_of(lines):
    """The code of a page: (line, code, column of a table or None, the type that the table is about or None)."""
    before, subject, in_table, in_list = "", None, False, False
    for number, line in lines:
        is_row = line.startswith("|")
        if is_row and not in_table:
            last = re.split(r"(?<=\.)\s", before.strip())[-1]
            types = re.findall(r"`([A-Z]\w*)(?:<\w+>)?`", last)
            subject = types[0] if len(set(types)) == 1 and not last.endswith(".") else None
        in_table = is_row
        if is_row:
            for column, cell in enumerate(line.replace("\\|", " ").split("|")[1:-1]):
                yield from ((number, code, column, subject) for code in re.findall(r"`([^`]+)`", cell))
            before = ""
            continue
        if line.startswith("    ") and not in_list:
            yield number, line.strip(), None, None
            continue
        yield from ((number, code, None, None) for code in re.findall(r"`([^`]+)`", line))
        if line.strip():
            in_list = bool(re.match(r"\s*([-*]|\d+\.) ", line)) or in_list and line.startswith(" ")
            before = "" if line.startswith("#") else f"{before} {line}"
        elif not before.rstrip().endswith((":", "has", "have")):
            before = ""


def calls(code):
    """The calls in a piece of code: (name, labels)."""
    for match in re.finditer(r"(\w+)\(", code):
        depth, labels, position = 0, [], match.end() - 1
        for position in range(match.end() - 1, len(code)):
            character = code[position]
            if depth == 1 and code[position - 1] in "(, :" and (label := re.match(r"(\w+):", code[position:])):
                labels.append(label[1])
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
            if depth == 0:
                break
        yield match[1], labels


def faults_of(code, column, subject, api, known, repository, is_ours):
    """The names of a piece of code that do not exist. is_ours: they are this library's."""
    for match in re.finditer(r"\b([A-Z]\w*)(?:<[^>]*>)?\.([a-z_]\w*)", code):
        if is_ours and match[1] in api.types and match[2] not in api.all_members(match[1]) | repository.public:
            yield f"{match[1]} has no {match[2]}"
    for match in re.finditer(r"(?:^|(?<=[ (\[]))\.([a-z]\w*)(?![\w/.-])", code):
        if is_ours and match[1] not in api.any_member | api.words | known and not repository.has(match[1]):
            yield f"no type has .{match[1]}"
    if subject in api.types and column == 0 and (match := re.match(r"\.?([a-z]\w*)", code)):
        if match[1] not in api.all_members(subject):
            yield f"{subject} has no {match[1]}"
    for name, labels in calls(code):
        if is_ours and name in api.labels:
            yield from (f"{name} takes no {label}:" for label in labels if label not in api.labels[name] | repository.public)
    declared = set(re.findall(r"\b(?:func|var|let) +(\w+)", code))
    for name in NAME.findall(code):
        if name in api.words | known | declared or not re.search(r"[a-z][A-Z]", name):
            continue
        if is_ours and name in repository.declared:
            yield f"{name} is not public"
        elif name not in repository.words and name[0].islower() | (not is_ours):
            yield f"no file of the repository has {name}"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: names.py PRODUCTS")
    api, repository = API(Path(sys.argv[1])), Repository()
    pages = {path: pieces_of(path) for path in [
        ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]}
    known = set().union(repository.public, *(words for _, words in pages.values()))
    for path, (lines, _) in pages.items():
        page = str(path.relative_to(ROOT))
        is_ours = page != "CONTRIBUTING.md" and not page.startswith("docs/explanation/")
        for number, code, column, subject in spans_of(lines):
            if column == 0 and page.startswith("docs/coming-from/"):
                continue
            for fault in faults_of(code, column, subject, api, known, repository, is_ours):
                print(f"{page}:{number}: {fault}: {code}")


main()
