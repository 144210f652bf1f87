#!/usr/bin/env python3
"""Builds a package that depends on this one by URL, as its users do, and runs its programs: consumer.py FOLDER TRAITS CONFIGURATION...

FOLDER/swift-reactor is a clone of HEAD with the tag 0.1.0, whatever the latest release is, served by file://. The package is a copy of
Tests/Fixtures/Consumer next to it. TRAITS is `none` or `TLS`, which needs OpenSSL and its command. Each CONFIGURATION, debug or
release, is built into FOLDER/none or FOLDER/TLS. With `served` for TRAITS only the clone is made.

Only the modules that a product needs may be compiled for it. A program that uses TLS without the trait must not compile, and the
compiler must say what to write.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(sys.argv[1]).resolve()
SERVED, PACKAGE = FOLDER / "swift-reactor", FOLDER / "consumer"
# The modules compiled for a client of one product. In this order, so that modules which the first do not need do not exist yet.
ALONE = {"OnlyReactor": {"Reactor"}, "OnlyPromises": {"Reactor", "Promises"}}


def git(*arguments, cwd=ROOT):
    # Allows a checkout of another user, as in a container.
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=cwd, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def serve():
    """Makes the clone, unless there is one of HEAD."""
    if git("status", "--porcelain"):
        print("note: the clone has HEAD, and not what is not committed")
    head = git("rev-parse", "HEAD")
    if SERVED.exists() and git("rev-parse", "0.1.0", cwd=SERVED) == head:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    git("clone", "--quiet", "--bare", "--no-hardlinks", str(ROOT), str(SERVED))
    for tag in git("tag", cwd=SERVED).split():
        git("tag", "--delete", tag, cwd=SERVED)
    git("tag", "0.1.0", head, cwd=SERVED)


def swift(traits, configuration, *arguments, **settings):
    """Builds, with separate caches: shared ones remember an older 0.1.0 of this URL."""
    environment = os.environ | {"REACTOR_URL": f"file://{SERVED}"} | settings
    if traits != "none":
        environment[f"REACTOR_{traits}"] = "1"
    command = ["swift", "build", "--package-path", PACKAGE, "--scratch-path", FOLDER / traits, "--cache-path", FOLDER / "cache",
               "--security-path", FOLDER / "security", "-c", configuration, "-debug-info-format", "none", *arguments]
    return subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def built(*arguments):
    """The same; must succeed without a warning."""
    used = processor_time()
    result = swift(*arguments)
    print(f"{' '.join(arguments)}: {processor_time() - used:.0f} s of processor time", flush=True)
    if result.returncode != 0 or "warning:" in result.stdout:
        print(result.stdout)
        sys.exit(f"error: the build of a package that depends on the library by URL: {' '.join(arguments)}")


def check_alone(bin_path, program, modules):
    """Checks that nothing else was compiled for a program."""
    compiled = {path.stem for path in bin_path.glob("Modules/*.swiftmodule")}
    others = compiled - modules - ALONE.keys()
    if others:
        sys.exit(f"error: for {program} alone the compiler is also given {', '.join(sorted(others))}")


def main():
    traits = sys.argv[2]
    manifest = (ROOT / "Tests/Fixtures/Consumer/Package.swift").read_text()
    for product in re.findall(r'\.library\(name: "(\w+)"', (ROOT / "Package.swift").read_text()):
        if not re.search(rf'program\("Only\w+", [^)]*"{product}"', manifest):
            sys.exit(f"error: Tests/Fixtures/Consumer has no program for {product} alone")
    serve()
    if traits == "served":
        return
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "Tests/Fixtures/Consumer", PACKAGE)
    arguments = []
    if traits == "TLS":
        arguments = [FOLDER / "certificate.pem", FOLDER / "key.pem"]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             arguments[1], "-out", arguments[0], "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    for configuration in sys.argv[3:]:
        bin_path = FOLDER / traits / configuration
        if traits == "none" and configuration == "debug" and not bin_path.exists():
            for program, modules in ALONE.items():
                built(traits, configuration, "--product", program)
                check_alone(bin_path, program, modules)
        built(traits, configuration)
        programs = sorted(path.name for path in (PACKAGE / "Sources").iterdir() if (bin_path / path.name).is_file())
        for program in programs:
            code = subprocess.run([bin_path / program, *arguments], timeout=60).returncode
            if code != 0:
                sys.exit(f"error: {program} in {configuration} has ended with {code}")
        print(f"{traits}, {configuration}: {', '.join(programs)}")
    if traits == "none":
        if re.search("COpenSSL|-lssl", (FOLDER / "none/debug.yaml").read_text()):
            sys.exit("error: without the trait somebody looks for OpenSSL")
        result = swift("none", "debug", "--product", "WithoutTheTrait", REACTOR_FORGOTTEN="1")
        first = re.search(r"\.swift:\d+:\d+: error: .*", result.stdout)
        if result.returncode == 0 or not first or 'traits: ["TLS"]' not in first[0]:
            sys.exit(f"{result.stdout}\nerror: the first error does not say how TLS is turned on")
        print(first[0])


main()
