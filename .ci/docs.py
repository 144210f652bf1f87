#!/usr/bin/env python3
"""Builds the reference of the modules as a site: docs.py

Extracts the symbol graphs of the modules, converts the catalogues Sources/*/*.docc by DocC, with warnings as
errors, and merges them into .build-docs/site. DOCS_BASE_PATH is the path under which the site is hosted.

Below a heading of `## Topics`, a page of a catalogue has comments, each a pattern of symbols, which the links that match replace:

    ### In parallel, in sequence

    <!-- when(* -->

Fails if no pattern matches a symbol of a module, or of a type with a page, or if a pattern without `*` matches none.
"""
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build-docs"
# Each imports only modules before it.
MODULES = ["Reactor", "Promises", "ReactorIO", "ReactorConsole", "ReactorHTTP", "ReactorHTTPJSON", "ReactorTLS"]
AUTOMATIC = {"Default Implementations", "Extended Modules", "Relationships", "Articles"}


def run(*command):
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def archive(module):
    return BUILD / f"{module}.doccarchive"


def extract():
    """The symbol graphs of the modules, without inherited members, such as 200 methods of Collection for LoopGroup."""
    compiled = ROOT / ".build-docs-compiled"
    # And what these depend on, but no tests. The manifest listens only to commands in its own folder.
    os.environ.update(REACTOR_TESTS="ReactorConsole ReactorHTTPJSON ReactorTLS", PWD=str(ROOT))
    run("swift", "package", "--scratch-path", compiled, "--traits", "TLS", "dump-symbol-graph", "--skip-synthesized-members",
        "--skip-inherited-docs", "--emit-extension-block-symbols")
    shutil.rmtree(BUILD, ignore_errors=True)
    for module in MODULES:
        (BUILD / "symbol-graphs" / module).mkdir(parents=True)
        for graph in compiled.glob(f"*/symbolgraph/{module}[.@]*"):
            shutil.copy(graph, BUILD / "symbol-graphs" / module)


def prepared(module, links, faults):
    """A copy of the catalogue of a module, with links for patterns."""
    copy = shutil.copytree(ROOT / f"Sources/{module}/{module}.docc", BUILD / f"{module}.docc")
    for page in sorted(copy.glob("*.md")):
        page.write_text(curate(page, links, faults))
    return copy


def convert(module, *catalogue):
    """Makes the archive of a module. Returns DocC's warnings."""
    found, base = BUILD / f"{module}.diagnostics.json", os.environ.get("DOCS_BASE_PATH")
    run("docc", "convert", *catalogue, "--additional-symbol-graph-dir", BUILD / "symbol-graphs" / module,
        "--fallback-display-name", module, "--fallback-bundle-identifier", f"swift-reactor.{module}",
        "--fallback-default-module-kind", "Module", "--enable-experimental-external-link-support", "--emit-digest",
        "--diagnostics-file", found, "--output-path", archive(module), *(["--hosting-base-path", base] if base else []),
        *(f"--dependency={archive(other)}" for other in MODULES[: MODULES.index(module)]))
    # `#fileID` and `#line` explain `file` and `line`.
    return [f"{note.get('source')}: {note['summary']}" for note in json.loads(found.read_text())["diagnostics"]
            if not re.match(r"Parameter '(file|line)' is missing documentation", note["summary"])]


def symbols(module):
    """The links of all symbols that have a page, such as Promise/init(_:)-1abcd."""
    entities = json.loads((archive(module) / "linkable-entities.json").read_text())
    paths = {entity["referenceURL"].split("/documentation/")[1] for entity in entities if "usr" in entity}
    return sorted(path.split("/", 1)[1] for path in paths if "/" in path)


def plain(link):
    """A link without the suffixes that distinguish overloads, or a type and a property, except for a property's."""
    return re.sub(r"-(?!swift\.(?:type\.)?property)(?:swift\.\w+|[0-9a-z]{1,7})(?=/|$)", "", link)


def matches(link, pattern):
    """True if a pattern matches a symbol: by its whole name, with * for any end, except members of the symbol."""
    names = {link, plain(link), re.sub(r"-swift\.property$", "", link)}
    return link.count("/") == pattern.count("/") and any(fnmatch.fnmatchcase(name, pattern.replace("[", "[[]")) for name in names)


def curate(page, links, faults):
    """The text of a page with the links that its patterns match."""
    head, found, topics = page.read_text().partition("\n## Topics\n")
    used = set()

    def replace(match):
        new = [link for link in links if matches(link, match[1]) and link not in used]
        if not new and not match[1].endswith("*"):
            faults.append(f"{page.relative_to(BUILD)}: the pattern {match[1]} matches no symbol")
        used.update(new)
        return "".join(f"- ``{link}``\n" for link in new)

    return head + found + re.sub(r"<!-- (.+) -->\n", replace, topics)


def uncurated(module):
    """The symbols that DocC has sorted by itself on pages with topics."""
    for path in (archive(module) / "data/documentation").rglob("*.json"):
        page = json.loads(path.read_text())
        sections = page.get("topicSections", [])
        has_topics = not all(section.get("generated") for section in sections)
        for section in sections:
            if has_topics and section.get("generated") and section["title"] not in AUTOMATIC:
                where = page["identifier"]["url"].split("/documentation/")[1]
                what = ", ".join(link.split("/documentation/")[1] for link in section["identifiers"])
                yield f"{where}: no topic has {what}: add patterns that match them"


def main():
    extract()
    faults = []
    for module in MODULES:
        convert(module)
        catalogue = prepared(module, symbols(module), faults)
        faults += convert(module, catalogue)
        faults += uncurated(module)
    if faults:
        sys.exit("\n".join(f"error: {fault}" for fault in faults))
    site = BUILD / "site"
    run("docc", "merge", *map(archive, MODULES), "--output-path", site, "--synthesized-landing-page-name", "swift-reactor")
    # Hosts of static pages omit folders with some names unless this file exists.
    (site / ".nojekyll").touch()
    pages = sum(1 for _ in (site / "data").rglob("*.json"))
    print(f"{pages} pages without a warning; python3 -m http.server -b 127.0.0.1 -d .build-docs/site 8000 shows them")


main()
