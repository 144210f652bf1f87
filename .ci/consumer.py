#!/usr/bin/env python3
"""Builds a package that depends on this one by URL, as its users do, and runs its programs: consumer.py FOLDER [OPTION...] [-- OPTION-OF-SWIFT...]

FOLDER/swift-reactor is a clone of HEAD with the tag 0.1.0, whatever the latest release is, served by file://. The package is a copy of
Tests/Fixtures/Consumer next to it. Options:

    alone      the products below, without the trait TLS: only the modules that each needs may be compiled, nobody may look for OpenSSL,
               and the compiler must say how to turn TLS on to a program that uses it
    none TLS   all programs, without and with that trait, which needs OpenSSL and its command
    release    the same in release too
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
END = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
FOLDER, OPTIONS, FOR_SWIFT = Path(sys.argv[1]).resolve(), sys.argv[2:END], sys.argv[END + 1:]
SERVED, PACKAGE = FOLDER / "swift-reactor", FOLDER / "consumer"
# In this order, so that modules which the first do not need do not exist yet.
ALONE = {"OnlyReactor": {"Reactor"}, "OnlyPromises": {"Reactor", "Promises"}}


def git(*arguments, cwd=ROOT):
    # Allows a checkout of another user, as in a container.
    return subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments], cwd=cwd, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def serve():
    """Makes the clone, unless there is one of HEAD, and the package."""
    if git("status", "--porcelain"):
        print("note: the clone has HEAD, and not what is not committed")
    head = git("rev-parse", "HEAD")
    if not SERVED.exists() or git("rev-parse", "0.1.0", cwd=SERVED) != head:
        shutil.rmtree(FOLDER, ignore_errors=True)
        git("clone", "--quiet", "--bare", "--no-tags", "--no-hardlinks", str(ROOT), str(SERVED))
        git("tag", "0.1.0", head, cwd=SERVED)
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "Tests/Fixtures/Consumer", PACKAGE)


def build(trait, *arguments, **settings):
    """The exit code and the output of a build, with separate caches: shared ones remember an older 0.1.0 of this URL."""
    settings |= {"REACTOR_URL": f"file://{SERVED}"} | ({"REACTOR_TLS": "1"} if trait == "TLS" else {})
    done = subprocess.run(
        ["swift", "build", "--package-path", PACKAGE, "--scratch-path", FOLDER / trait, "--cache-path", FOLDER / "cache",
         "--security-path", FOLDER / "security", *FOR_SWIFT, *arguments],
        env=os.environ | settings, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def built(*arguments):
    code, output = build(*arguments)
    if code != 0 or "warning:" in output:
        sys.exit(f"{output}\nerror: the build of a package that depends on the library by URL: {' '.join(arguments)}")


def test_alone():
    bin_path = FOLDER / "none/debug"
    for program, modules in ALONE.items():
        built("none", "--product", program)
        others = {path.stem for path in bin_path.glob("Modules/*.swiftmodule")} - modules - ALONE.keys()
        if others:
            sys.exit(f"error: for {program} alone the compiler is also given {', '.join(sorted(others))}")
        subprocess.run([bin_path / program], check=True, timeout=60)
    if re.search("COpenSSL|-lssl", (FOLDER / "none/debug.yaml").read_text()):
        sys.exit("error: without the trait somebody looks for OpenSSL")
    code, output = build("none", "--product", "WithoutTheTrait", REACTOR_FORGOTTEN="1")
    first = re.search(r"\.swift:\d+:\d+: error: .*", output)
    if code == 0 or not first or 'traits: ["TLS"]' not in first[0]:
        sys.exit(f"{output}\nerror: the first error does not say how TLS is turned on")
    print(f"alone: {', '.join(ALONE)}; {first[0]}", flush=True)


def test_all(trait, configuration):
    built(trait, "-c", configuration)
    arguments = []
    if trait == "TLS":
        arguments = [FOLDER / "certificate.pem", FOLDER / "key.pem"]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", arguments[1],
             "-out", arguments[0], "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
            check=True, capture_output=True)
    bin_path = FOLDER / trait / configuration
    programs = sorted(path.name for path in (PACKAGE / "Sources").iterdir() if (bin_path / path.name).is_file())
    for program in programs:
        subprocess.run([bin_path / program, *arguments], check=True, timeout=60)
    print(f"{trait}, {configuration}: {', '.join(programs)}", flush=True)


manifest = (ROOT / "Tests/Fixtures/Consumer/Package.swift").read_text()
for product in re.findall(r'\.library\(name: "(\w+)"', (ROOT / "Package.swift").read_text()):
    if not re.search(rf'program\("Only\w+", [^)]*"{product}"', manifest):
        sys.exit(f"error: Tests/Fixtures/Consumer has no program for {product} alone")
serve()
if "alone" in OPTIONS:
    shutil.rmtree(FOLDER / "none", ignore_errors=True)
    test_alone()
for trait in ("none", "TLS"):
    if trait in OPTIONS:
        for configuration in ["debug"] + [option for option in OPTIONS if option == "release"]:
            test_all(trait, configuration)
