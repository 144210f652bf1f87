#!/usr/bin/env python3
"""Turns a folder into a separate repository: split.py FOLDER URL VERSION DESTINATION

The package in FOLDER, such as Integrations, depends on the library by path. The new repository in DESTINATION depends on
`.package(url: URL, from: VERSION)` instead, with the same traits, as its clients do. It has one commit, with the tag VERSION, of the
folder at HEAD. Links of its pages to files outside of it lead to URL.
"""
import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*arguments, cwd=ROOT):
    return subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=cwd, check=True, capture_output=True).stdout


def main():
    folder, url, version, destination = sys.argv[1], sys.argv[2].removesuffix(".git"), sys.argv[3], Path(sys.argv[4])
    destination.mkdir(parents=True)
    for paths, below in [([folder], folder + "/"), (["LICENSE", ".gitignore"], "")]:
        archive = tarfile.open(fileobj=BytesIO(git("archive", "HEAD", *paths)))
        for member in archive.getmembers():
            if member.name.startswith(below) and len(member.name) > len(below):
                member.name = member.name.removeprefix(below)
                archive.extract(member, destination, filter="tar")
    manifest = destination / "Package.swift"
    text, replaced = re.subn(
        r'( *// Named, [^\n]*\n)?( *)\.package\(name: "swift-reactor", path: "\.\."',
        rf'\2.package(url: "{url}", from: "{version}"', manifest.read_text())
    if replaced != 1 or re.search(r"\bpath:", text):
        sys.exit(f"error: {folder}/Package.swift depends on a path that is not the library's")
    manifest.write_text(text)
    for page in destination.rglob("*.md"):
        depth = len(page.relative_to(destination).parts)
        outside = re.escape("../" * depth) + r"(?!\.\./)"
        page.write_text(re.sub(rf"\]\({outside}", f"]({url}/blob/{version}/", page.read_text()))
    revision = git("rev-parse", "HEAD").decode().strip()
    author = ["-c", "user.name=swift-reactor", "-c", "user.email=swift-reactor@localhost"]
    git("init", "--quiet", "--initial-branch=main", cwd=destination)
    git("add", "--all", cwd=destination)
    git(*author, "commit", "--quiet", "--message", f"{version}: {folder} of {revision}", cwd=destination)
    git("tag", version, cwd=destination)


main()
