#!/usr/bin/env python3
"""Writes the Swift of the documentation into the test target that compiles it: snippets.py [--check]

Every ```swift block of README.md, CONTRIBUTING.md and the pages below docs/ becomes part of
Tests/DocumentationTests/Pages, as it stands, indented; those of docs/guides/http.md, which need other modules, of
Tests/HTTPPagesTests/Pages, and those of integrations.md, which need other packages, of Integrations/Tests/IntegrationPagesTests/Pages.
`--check` writes nothing and fails if a file there is not what it would be. The name of a page names its file: no two pages with Swift blocks may share one.

Where a block goes follows from what is in it:

    // swift-tools-version: …        a manifest: Tests/Fixtures/Manifests, compiled by a test
    extension …, @Suite, XCTestCase   at file level
    @Test func …                      in a suite of its own, and so run
    anything else                     in a function of its own that throws, and is async if a statement awaits
    … with an assert(…)               the same, and the function is run: see Snippet.swift

A comment in the line before the block, which readers do not see, says otherwise:

    <!-- snippet: goes on -->             in the function of the block before it
    <!-- snippet: file -->                at file level
    <!-- snippet: program: PATH -->       the whole of that file
    <!-- snippet: not run: WHY -->        only compiled
    <!-- snippet: not compiled: WHY -->   left out

Imports are moved to the head of the file, except those of the tutorial's own modules. Names that blocks use and do not declare are in Stubs.swift.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = Path("Tests/DocumentationTests/Pages")
# The pages whose code needs other modules and packages, and where it is compiled.
OTHER_PAGES = {
    "docs/guides/http.md": Path("Tests/HTTPPagesTests/Pages"),
    "docs/guides/integrations.md": Path("Integrations/Tests/IntegrationPagesTests/Pages")}
MANIFESTS = Path("Tests/Fixtures/Manifests")
# The modules of the tutorial's package; their code is in the pages too.
OWN_MODULES = {"TutorialServer"}
HEAD = "// Made by .ci/snippets.py from {}; do not edit.\n// swift-format-ignore-file\n"


class Block:
    def __init__(self, page, heading, note, lines):
        self.page, self.heading, self.note = page, heading, note
        self.imports = [line for line in lines if line.startswith("import ")]
        self.whole = lines
        rest = [line for line in lines if not line.startswith("import ")]
        while rest and not rest[0]:
            rest.pop(0)
        self.lines = rest
        self.text = "\n".join(rest)

    def has(self, pattern):
        return re.search(pattern, self.text, re.MULTILINE) is not None

    @property
    def kind(self):
        if self.note.startswith("not compiled:"):
            return "left out"
        if self.note == "file":
            return "file"
        if self.note == "goes on":
            return "continuation"
        if self.note.startswith("program: "):
            return "program"
        if self.text.startswith("// swift-tools-version"):
            return "manifest"
        if self.has(r"^((public|private|final) )*(extension\b|class \w+: XCTestCase\b)|^@Suite\b"):
            return "file"
        return "suite" if self.has(r"^@Test\b") else "function"


def blocks_of(path):
    """The Swift blocks of a page, in their order."""
    page, heading, note, lines, fence = str(path.relative_to(ROOT)), "", "", None, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if lines is not None:
            if line == "```":
                yield Block(page, heading, note, lines)
                lines, note = None, ""
            else:
                lines.append(line)
        elif line == "```swift":
            lines = []
        elif fence or line.startswith("```"):
            fence = not (fence and line == "```")
        elif re.match(r"\s*```+\s*swift|~~~", line):
            sys.exit(f"error: {page}:{number}: a Swift block begins with ```swift at the start of a line")
        elif match := re.fullmatch(r"<!-- snippet: (.*) -->", line):
            note = match[1]
            if not re.fullmatch(r"goes on|file|program: \S+\.swift|not (run|compiled): .+", note):
                sys.exit(f"error: {page}:{number}: what is 'snippet: {note}'?")
        else:
            if note:
                sys.exit(f"error: {page}:{number - 1}: no Swift block follows the comment")
            if match := re.match(r"#+ (.*)", line):
                heading = match[1]


def indented(lines, columns):
    return "".join(" " * columns + line + "\n" if line else "\n" for line in lines)


def names(lines):
    """What the statements of a block declare: a test that compiles without warnings must use it."""
    for line in lines:
        if match := re.match(r"(?:async )?(?:let|var) (?:\(([^)]*)\)|(\w+))", line):
            yield from (name.strip() for name in (match[1] or match[2]).split(","))


def written(page, blocks, running, files):
    """The generated files of one page."""
    stem = page.split("/")[-1].removesuffix(".md")
    words = re.split(r"\W+", stem.lower())
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    imports, parts, number = {"import Promises", "import Reactor"}, [], 0
    for block in blocks:
        place = f"{page}: {block.heading}"
        if block.kind == "left out":
            continue
        if block.kind == "continuation":
            parts[-1][1].append(block)
            continue
        if block.kind == "program":
            files[Path(block.note.removeprefix("program: "))] = "\n".join(block.whole) + "\n"
            continue
        number += 1
        if block.kind == "manifest":
            head = HEAD.format(page).splitlines()
            # The line of the tools version must come first.
            text = "\n".join([block.lines[0], *head, *block.imports, *block.lines[1:]]) + "\n"
            files[MANIFESTS / f"{camel}{number}.swift"] = text
            continue
        imports.update(line for line in block.imports if line.split()[-1] not in OWN_MODULES)
        parts.append((place, [block], f"{camel}{number}"))
    if not parts:
        return
    text = HEAD.format(page) + "".join(f"{line}\n" for line in sorted(imports))
    for place, group, name in parts:
        first, lines = group[0], [line for block in group for line in block.lines]
        isRun = not first.note.startswith("not run:")
        text += f"\n// {place}\n"
        if first.kind == "file":
            text += indented(lines, 0)
        elif first.kind == "suite":
            title = name[0].upper() + name[1:]
            trait = "" if isRun else '(.disabled("the page says so"))'
            text += f"@Suite{trait} struct {title} {{\n{indented(lines, 4)}}}\n"
        else:
            awaits = any(re.match(r"[^\s{}][^{]*\bawait\b", line) for line in lines)
            effects = "async throws" if awaits else "throws"
            uses = "".join(f"        _ = {name}\n" for name in names(lines))
            text += f"extension Snippets {{\n    static func {name}() {effects} {{\n{indented(lines, 8)}{uses}    }}\n}}\n"
            asserts = sum(block.text.count("assert(") for block in group)
            if asserts and isRun:
                running.append(f'        Snippet("{place} ({name})", asserts: {asserts}, Snippets.{name}),\n')
    title = camel[0].upper() + camel[1:]
    path = OTHER_PAGES.get(page, PAGES) / f"{title}Page.swift"
    if path in files:
        sys.exit(f"error: {page}: another page with Swift blocks is called {stem}.md")
    files[path] = text


def main():
    files, running = {}, []
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        written(str(path.relative_to(ROOT)), list(blocks_of(path)), running, files)
    files[PAGES / "Running.swift"] = (
        HEAD.format("the documentation") + "\nextension Snippet {\n    static let all: [Snippet] = [\n"
        + "".join(running) + "    ]\n}\n")
    present = {
        path.relative_to(ROOT) for folder in (PAGES, MANIFESTS, *OTHER_PAGES.values())
        for path in (ROOT / folder).glob("*.swift")}
    # A program stands among files that are not made here.
    present |= {path for path in files if (ROOT / path).exists()}
    stale = sorted(
        str(path) for path in present | files.keys()
        if path not in files or path not in present or (ROOT / path).read_text() != files[path])
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit(f"error: run .ci/snippets.py: the documentation has changed, and not {', '.join(stale)}")
        return
    for path in stale:
        if Path(path) not in files:
            (ROOT / path).unlink()
        else:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(files[Path(path)])
        print(path)


main()
