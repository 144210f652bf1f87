#!/usr/bin/env python3
"""Writes the Swift of the documentation as files that compile: snippets.py FOLDER

Every ```swift block of README.md, CONTRIBUTING.md and the pages below docs/ becomes part of a file in FOLDER/Pages, verbatim
but indented; those of docs/guides/http.md, console.md and integrations.md, which need other modules, in FOLDER/HTTP and FOLDER/Integrations. The tests
of DocumentationTests compile and run them; `.ci/run integrations` compiles the last. The compiler names the line of the page.

The content of a block decides where it goes:

    // swift-tools-version: …        a manifest: FOLDER/Manifests
    extension …, @Suite, XCTestCase   at file level; the tests are run
    @Test func …                      in its own suite, and so run
    anything else                     in its own throwing function, which is async if a statement awaits
    … with an assert(…)               the same, and the function is run: see Tests/Fixtures/Pages/Snippet.swift

A comment in the line before the block, invisible to readers, overrides this:

    <!-- snippet: goes on -->             in the function of the block before it
    <!-- snippet: file -->                at file level
    <!-- snippet: program: PATH -->       that file of the repository, which must have the same text
    <!-- snippet: not run: WHY -->        only compiled
    <!-- snippet: not compiled: WHY -->   left out

Imports are moved to the head of the file, except those of the tutorial's own modules. Names that blocks use and do not declare are in
the Stubs.swift of Tests/Fixtures/Pages, Tests/Fixtures/HTTPPages and Integrations/Tests/IntegrationPagesTests.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The pages whose code needs other modules and packages.
FOLDERS = {"docs/guides/console.md": "HTTP", "docs/guides/http.md": "HTTP", "docs/guides/integrations.md": "Integrations"}
# The modules of the tutorial's package, whose code is also in the pages.
OWN_MODULES = {"TutorialServer"}


class Block:
    def __init__(self, page, heading, note, number, lines):
        """number: of the first line, in its page"""
        self.page, self.heading, self.note, self.number = page, heading, note, number
        self.imports = [line for line in lines if line.startswith("import ")]
        self.whole = lines
        # Keeps the line numbers.
        self.lines = ["" if line.startswith("import ") else line for line in lines]
        self.text = "\n".join(self.lines)

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
        if "\n".join(self.whole).startswith("// swift-tools-version"):
            return "manifest"
        if self.has(r"^((public|private|final) )*(extension\b|class \w+: XCTestCase\b)|^@Suite\b"):
            return "file"
        return "suite" if self.has(r"^@Test\b") else "function"


def blocks_of(path):
    """The Swift blocks of a page, in order."""
    page, heading, note, lines, fence = str(path.relative_to(ROOT)), "", "", None, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if lines is not None:
            if line == "```":
                yield Block(page, heading, note, number - len(lines), lines)
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


def indented(blocks, columns):
    return "".join(
        f'#sourceLocation(file: "{block.page}", line: {block.number})\n'
        + "".join(" " * columns + line + "\n" if line else "\n" for line in block.lines) for block in blocks) + "#sourceLocation()\n"


def names(lines):
    """The names declared by a block's statements: a test that compiles without warnings must use them."""
    for line in lines:
        if match := re.match(r"(?:async )?(?:let|var) (?:\(([^)]*)\)|(\w+))", line):
            yield from (name.strip() for name in (match[1] or match[2]).split(","))


def tests_of(blocks):
    """The entries by which XCTest finds its tests."""
    text = "\n".join(block.text for block in blocks)
    for match in re.finditer(r"^final class (\w+): XCTestCase \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        tests = "".join(f'("{name}", {match[1]}.{name}), ' for name in re.findall(r"^    func (test\w+)\(\)", match[2], re.MULTILINE))
        yield f"        testCase([{tests}]),\n"


def written(page, blocks, running, cases, files):
    """The files of one page."""
    stem = page.split("/")[-1].removesuffix(".md")
    words = re.split(r"\W+", stem.lower())
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    imports, parts, number = {"import Promises", "import Reactor", "import ReactorIO"}, [], 0
    for block in blocks:
        if block.kind == "left out":
            continue
        if block.kind == "continuation":
            parts[-1][0].append(block)
            continue
        if block.kind == "program":
            path = block.note.removeprefix("program: ")
            if (ROOT / path).read_text() != "\n".join(block.whole) + "\n":
                sys.exit(f"error: {page}:{block.number}: {path} has another text")
            continue
        number += 1
        if block.kind == "manifest":
            files[f"Manifests/{camel}{number}.swift"] = "\n".join(block.whole) + "\n"
            continue
        imports.update(line for line in block.imports if line.split()[-1] not in OWN_MODULES)
        parts.append(([block], f"{camel}{number}"))
    if not parts:
        return
    text = "".join(f"{line}\n" for line in sorted(imports))
    for group, name in parts:
        first, lines = group[0], [line for block in group for line in block.lines]
        isRun = not first.note.startswith("not run:")
        if first.kind == "file":
            text += indented(group, 0)
        elif first.kind == "suite":
            title = name[0].upper() + name[1:]
            trait = "" if isRun else '(.disabled("the page says so"))'
            text += f"@Suite{trait} struct {title} {{\n{indented(group, 4)}}}\n"
        else:
            awaits = any(re.match(r"[^\s{}][^{]*\bawait\b", line) for line in lines)
            effects = "async throws" if awaits else "throws"
            uses = "".join(f"        _ = {name}\n" for name in names(lines))
            text += f"extension Snippets {{\n    static func {name}() {effects} {{\n{indented(group, 8)}{uses}    }}\n}}\n"
            asserts = sum(block.text.count("assert(") for block in group)
            if asserts and isRun:
                place = f"{page}:{first.number}: {first.heading}"
                running.append(f'        Snippet("{place}", asserts: {asserts}, Snippets.{name}),\n')
        cases.extend(tests_of(group))
    title = camel[0].upper() + camel[1:]
    path = f"{FOLDERS.get(page, 'Pages')}/{title}Page.swift"
    if path in files:
        sys.exit(f"error: {page}: another page with Swift blocks is called {stem}.md")
    files[path] = text


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: snippets.py FOLDER")
    folder, files, running, cases = Path(sys.argv[1]), {}, [], []
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        written(str(path.relative_to(ROOT)), list(blocks_of(path)), running, cases, files)
    files["Pages/Running.swift"] = (
        "import XCTest\n\nextension Snippet {\n    static let all: [Snippet] = [\n" + "".join(running)
        + "    ]\n    static var cases: [XCTestCaseEntry] {\n        [\n" + "".join(cases) + "        ]\n    }\n}\n")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


main()
