#!/usr/bin/env python3
"""Builds the reference of the modules as a site: docs.py

Extracts the symbol graphs of the modules, converts the catalogues Sources/*/*.docc by DocC, with warnings as
errors, and merges them into .build-docs/site; docs/start and docs/guides become articles of it. DOCS_BASE_PATH is the path
under which the site is hosted.

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
MODULES = ["Reactor", "Promises", "ReactorHTTP", "ReactorHTTPJSON", "ReactorTLS"]
TUTORIAL = [
    "first-promises", "first-server", "first-protocol", "first-tests", "first-client", "first-cancellation", "first-service"]
AUTOMATIC = {"Default Implementations", "Extended Modules", "Relationships", "Articles"}

def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, check=True, text=True, **options)


def extract():
    """The symbol graphs of the modules, without inherited members, such as 200 methods of Collection for LoopGroup.

    The modules are compiled without code, which takes a tenth of the time of a build."""
    triple = json.loads(run("swift", "-print-target-info", stdout=subprocess.PIPE).stdout)["target"]["unversionedTriple"]
    modules = BUILD / "modules"
    modules.mkdir(parents=True, exist_ok=True)
    c_module = modules / "CLinux.modulemap"
    c_module.write_text(f'module CLinux {{ umbrella "{ROOT}/Sources/CLinux/include" export * }}\n')
    openssl = ROOT / "Sources/COpenSSL/module.modulemap"
    common = ["-I", modules, "-Xcc", f"-fmodule-map-file={c_module}", "-Xcc", f"-fmodule-map-file={openssl}", "-target", triple]
    for module in MODULES:
        run("swiftc", "-emit-module", "-o", modules / f"{module}.swiftmodule", "-module-name", module, "-parse-as-library",
            "-package-name", "swift_reactor", "-swift-version", "6", "-enable-experimental-feature", "Lifetimes", "-whole-module-optimization",
            "-D", "TLS",
            *common,
            *sorted((ROOT / "Sources" / module).rglob("*.swift")))
        graphs = BUILD / "symbol-graphs" / module
        shutil.rmtree(graphs, ignore_errors=True)
        graphs.mkdir(parents=True)
        run("swift-symbolgraph-extract", "-module-name", module, *common, "-minimum-access-level", "public",
            "-skip-synthesized-members", "-skip-inherited-docs", "-emit-extension-block-symbols", "-output-dir", graphs)


def prepared(module, links, faults):
    """A copy of the catalogue of a module, with links for patterns. That of Promises gets an article for each guide and for each page
    of the tutorial, which is listed first."""
    copy = BUILD / f"{module}.docc"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / f"Sources/{module}/{module}.docc", copy)
    for page in sorted(copy.glob("*.md")):
        page.write_text(curate(page, links, faults))
    if module == "Promises":
        guides = sorted(page.stem for page in (ROOT / "docs/guides").glob("*.md"))
        for name, text in [*articles("docs/start", TUTORIAL), *articles("docs/guides", guides)]:
            (copy / name).write_text(text)
        shutil.copytree(ROOT / "docs/pictures", copy, dirs_exist_ok=True)
        tutorial = "".join(f"- <doc:{name}>\n" for name in TUTORIAL)
        page = copy / "Promises.md"
        page.write_text(page.read_text().replace("\n## Topics\n", f"\n## Topics\n\n### A tutorial in seven steps\n\n{tutorial}", 1))
    return copy


def convert(module, catalogue, strict):
    """Makes the archive of a module. Without `strict`, warnings are ignored."""
    archive = BUILD / f"{module}.doccarchive"
    shutil.rmtree(archive, ignore_errors=True)
    command = ["docc", "convert", *([catalogue] if catalogue else []),
               "--additional-symbol-graph-dir", BUILD / "symbol-graphs" / module,
               "--fallback-display-name", module, "--fallback-bundle-identifier", f"swift-reactor.{module}",
               "--fallback-default-module-kind", "Module", "--enable-experimental-external-link-support",
               "--emit-digest", "--transform-for-static-hosting", "--output-path", archive]
    if base := os.environ.get("DOCS_BASE_PATH"):
        command += ["--hosting-base-path", base]
    for other in MODULES[: MODULES.index(module)]:
        command += ["--dependency", BUILD / f"{other}.doccarchive"]
    if strict:
        found = BUILD / f"{module}.diagnostics.json"
        run(*command, "--diagnostics-file", found, stdout=subprocess.DEVNULL)
        # `#fileID` and `#line` explain `file` and `line`.
        texts = [f"{note.get('source')}: {note['summary']}" for note in json.loads(found.read_text())["diagnostics"]
                 if not re.match(r"Parameter '(file|line)' is missing documentation", note["summary"])]
        if texts:
            sys.exit("\n".join(["error: warnings of DocC:", *texts]))
    else:
        run(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return archive


def symbols(archive):
    """The links of all symbols that have a page, such as Promise/init(_:)-1abcd."""
    entities = json.loads((archive / "linkable-entities.json").read_text())
    paths = {entity["referenceURL"].split("/documentation/")[1] for entity in entities if "usr" in entity}
    return sorted(path.split("/", 1)[1] for path in paths if "/" in path)


def plain(link):
    """A link without the suffixes that distinguish overloads, or a type and a property, except for a property's."""
    return re.sub(r"-(?!swift\.(?:type\.)?property)(?:swift\.\w+|[0-9a-z]{1,7})(?=/|$)", "", link)


def matches(link, pattern):
    """True if a pattern matches a symbol: by its whole name, with * for any end, except members of the symbol."""
    if link.count("/") != pattern.count("/"):
        return False
    names = {link, plain(link), re.sub(r"-swift\.property$", "", link)}
    return any(fnmatch.fnmatchcase(name, pattern.replace("[", "[[]")) for name in names)


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


def articles(folder, names):
    """Pages as articles of DocC: links between these become references, those to other pages their paths."""
    for name in names:
        text = (ROOT / folder / f"{name}.md").read_text()

        def link(match):
            label, path = match[1], match[2].split("#")[0]
            target = Path(path).stem
            if target in names:
                return f"[{label}](doc:{target})"
            if re.match(r"\w+:", path) or not path:
                return match[0] if path else label
            return f"{label} (`{os.path.normpath(os.path.join(folder, path))}`)"

        text = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", link, text).replace("](../pictures/", "](")
        yield f"{name}.md", text


def uncurated(archive, faults):
    """The symbols that DocC has sorted by itself on pages with topics."""
    for path in (archive / "data" / "documentation").rglob("*.json"):
        page = json.loads(path.read_text())
        sections = page.get("topicSections", [])
        if all(section.get("generated") for section in sections):
            continue
        for section in sections:
            if section.get("generated") and section["title"] not in AUTOMATIC:
                where = page["identifier"]["url"].split("/documentation/")[1]
                what = ", ".join(link.split("/documentation/")[1] for link in section["identifiers"])
                faults.append(f"{where}: no topic has {what}: add patterns that match them")


def main():
    extract()
    faults = []
    for module in MODULES:
        links = symbols(convert(module, None, strict=False))
        catalogue = prepared(module, links, faults)
        uncurated(convert(module, catalogue, strict=not faults), faults)
    for fault in faults:
        print(f"error: {fault}")
    if faults:
        return 1
    site = BUILD / "site"
    shutil.rmtree(site, ignore_errors=True)
    run("docc", "merge", *(BUILD / f"{module}.doccarchive" for module in MODULES), "--output-path", site,
        "--synthesized-landing-page-name", "swift-reactor")
    # Hosts of static pages omit folders with some names unless this file exists.
    (site / ".nojekyll").touch()
    pages = sum(1 for _ in (site / "data").rglob("*.json"))
    print(f"{pages} pages without a warning; python3 -m http.server -b 127.0.0.1 -d .build-docs/site 8000 shows them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
