#!/usr/bin/env python3
"""Counts the cost of hot paths, and fails if a count has grown: counts.py [OPTIONS] [BUILD-FOLDER]

Instructions, allocations, reference counting and system calls are reproducible, unlike nanoseconds. callgrind counts them all in one
run. A figure is the difference between two run lengths, divided by the difference in steps, so one-time work does not count. The
folder is that of a release build with the programs that .ci/steps/counts builds; by default, the one in which it does so.

The limits are in .ci/counts.txt, each with the figure that was reached; 2 % above it the count fails. A figure 2 % below it is
printed with the line to put there. Other compilers, C libraries and processors give other figures, so with versions other than
those in the file everything is printed, and nothing fails.

--pages            no counting: only whether the figures of pages, such as `2,990<!-- count: echo-server instructions -->`, are
                   within 5 % of those in .ci/counts.txt
--rows, --servers  only those that are one process, or only those with a client beside it, whose messages arrive as the machine allows
--debug            only those whose names begin with `debug-`, of Benchmarks/Counted/Sources/byte-rows: what a byte costs in a debug build,
                   which is the folder; it is compiled and linked here with what is there
--functions NAME   only that subject, and which functions execute most instructions in its longer run, by callgrind_annotate(1)
"""
import argparse
import collections
import contextlib
import json
import platform
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "Examples/Tests"))
from servers import Server, check  # noqa: E402

LIMITS = ROOT / ".ci/counts.txt"
# The tolerance above a reached figure, and the allowance for the fraction of a call that occurs once in many steps.
TOLERANCE, SLACK = 1.02, 0.02
# For a byte in a debug build: threads and buffers of the kernel's choice play a part. A loop over bytes takes a hundred instructions.
DEBUG_TOLERANCE, DEBUG_SLACK = 1.5, 2

KINDS = ("instructions", "allocations", "references", "system-calls")
ALLOCATIONS = r"malloc|calloc|realloc|memalign|posix_memalign|aligned_alloc"
REFERENCES = r"swift_((bridgeObject|unknownObject)?(Retain|Release)|retain|release|retain_n|release_n|tryRetain|unownedRetainStrong)"

HOST = b"Host: 127.0.0.1:8080\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST
# What a browser adds.
FIELDS = (
    b"Connection: keep-alive\r\nCache-Control: max-age=0\r\nUpgrade-Insecure-Requests: 1\r\n"
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36\r\n"
    b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
    b"Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nAccept-Encoding: gzip, deflate, br\r\n"
    b"Accept-Language: en-GB,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n")
INCREMENT = b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n"
POST = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 64\r\n\r\n" + b"x" * 64
SOCKET = (
    b"GET /socket HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")


# Servers: the program, the client's bytes, and the pattern of the answer; for some, bytes to send before, and the pattern of their answer.
# All other subjects are rows of Benchmarks/Counted/Sources/OurRows.
X = b"x" * 64
FRAME = b"\x81\xc0abcd" + bytes(x ^ y for x, y in zip(X, b"abcd" * 16))
OK = rb"HTTP/1.1 200 .*\r\n(.+\r\n)+\r\n"
HELLO, UPGRADED = OK + b"Hello, world!\n", rb"HTTP/1.1 101 .*\r\n(.+\r\n)+\r\n"
SERVERS = {
    "echo-server": ("echo-server", X, X),
    "chunk-echo": ("chunk-echo", X, X),
    "connect": ("chunk-echo", X, X),
    "http-get": ("http-server", GET + b"\r\n", HELLO),
    "http-fields": ("http-server", GET + FIELDS + b"\r\n", HELLO),
    "http-pipelined": ("http-server", (GET + b"\r\n") * 16, HELLO * 16),
    "socket-echo": ("http-server", FRAME, b"\x81\x40" + X, SOCKET, UPGRADED),
    "socket-pipelined": ("http-server", FRAME * 16, (b"\x81\x40" + X) * 16, SOCKET, UPGRADED),
    "kv-increment": ("kv-server", INCREMENT * 16, rb"(:\d+\r\n){16}"),
    "http-post": ("http-server", POST, OK + X),
}


def totals(path):
    """The counts of a callgrind file, in the order of KINDS. A function has a number, and its name at its first mention."""
    text = Path(path).read_text(errors="replace")
    names = dict(re.findall(r"^c?fn=(\(\d+\)) (.+?)(?:'\d+)?$", text, re.M))
    calls = collections.Counter()
    for number, count in re.findall(r"^cfn=(\(\d+\)).*\ncalls=(\d+)", text, re.M):
        calls[names[number]] += int(count)
    instructions, system_calls = re.search(r"^summary: (\d+) ?(\d*)", text, re.M).groups()
    named = (sum(count for name, count in calls.items() if re.fullmatch(kind, name)) for kind in (ALLOCATIONS, REFERENCES))
    return int(instructions), *named, int(system_calls or 0)


def difference(short, long, steps):
    """The cost of a step, from the files of two runs that differ only in their number of steps."""
    return {kind: (more - less) / steps for kind, less, more in zip(KINDS, totals(short), totals(long))}


def callgrind(out, program, *options):
    return ["valgrind", "-q", "--tool=callgrind", "--collect-systime=yes", f"--callgrind-out-file={out}", *options, str(program)]


def count_rows(program, subjects, folder):
    """All rows in one process. It calls bench_mark before and after each stretch, where callgrind writes its counts, so every second
    file is a stretch. Each row runs three times, the first time to fill caches. Returns the figures and the longer run's file."""
    lines = "".join(f"{name} {units}\n" * 2 + f"{name} {3 * units}\n" for name, (units, _) in subjects.items())
    out = folder / "rows"
    subprocess.run(callgrind(out, program, "--dump-before=bench_mark"), input=lines, text=True, timeout=200, check=True)
    for index, (name, (units, steps)) in enumerate(subjects.items()):
        short, long = (f"{out}.{2 * (3 * index + stretch)}" for stretch in (2, 3))
        yield name, (difference(short, long, 2 * units * steps), long)


def count_server(build, name, units, steps, folder):
    program, sent, answer, *opening = SERVERS[name]
    files = [folder / f"{name}.{length}" for length in ("short", "long")]
    for file, times in zip(files, (units, 3 * units)):
        with Server(*callgrind(file, build / program)) as server:
            (connect if name == "connect" else talk)(server, times, sent, answer, *opening)
            server.signal(signal.SIGTERM)
            check(server.exit_code() == 0, f"{program} ended with an error")
    return difference(*files, 2 * units * steps), files[1]


def ask(peer, sent, answer):
    """Waits for an answer of this pattern."""
    peer.send(sent)
    back = b""
    while not re.fullmatch(answer, back):
        more = peer.socket.recv(65_536)
        check(more, f"the server ended a connection after {back!r}")
        back += more


def talk(server, times, sent, answer, *opening):
    """Sends the same bytes on four connections in turn, and waits for each answer."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(server.connect()) for _ in range(4)]
        for peer in peers if opening else []:
            ask(peer, *opening)
        for index in range(times):
            ask(peers[index % len(peers)], sent, answer)


def connect(server, times, sent, answer):
    """Sends the bytes on a connection each, and waits for its end."""
    for _ in range(times):
        with server.connect() as peer:
            ask(peer, sent, answer)
            peer.end()
            peer.read(1)


def byte_rows(build, folder):
    """The program byte-rows, linked with the objects of a debug build. A folder also keeps those of files that the module no longer has."""
    program = folder / "byte-rows"
    objects = set((build / "CLinux.build").glob("*.o"))
    for module in ("ReactorLibc", "Reactor", "Promises", "ReactorIO", "ReactorHTTP"):
        files = json.loads((build / f"{module}.build/output-file-map.json").read_text())
        objects |= {Path(outputs["object"]) for source, outputs in files.items() if source and "object" in outputs}
    compiled = subprocess.run(
        ["swiftc", "-swift-version", "6", "-Onone", "-Xlinker", "--strip-debug", "-module-name", "ByteRows", "-I", build / "Modules", "-o", program,
         "-Xcc", f"-fmodule-map-file={build}/CLinux.build/module.modulemap",
         ROOT / "Benchmarks/Counted/Sources/byte-rows/main.swift", *sorted(objects)], timeout=300)
    check(compiled.returncode == 0, "byte-rows could not be compiled")
    return program


def count(build, subjects, folder):
    rows = {name: times for name, times in subjects.items() if name not in SERVERS}
    debug = {name.removeprefix("debug-"): times for name, times in rows.items() if name.startswith("debug-")}
    if debug:
        return {f"debug-{name}": counts for name, counts in count_rows(byte_rows(build, folder), debug, folder)}
    found = dict(count_rows(build / "counted-rows", rows, folder)) if rows else {}
    return found | {name: count_server(build, name, *times, folder) for name, times in subjects.items() if name in SERVERS}


def versions():
    compiler = subprocess.run(["swift", "--version"], capture_output=True, text=True, timeout=100).stdout
    found = re.search(r"Swift version (\S+)", compiler)
    return f"Swift {found and found[1]}, {' '.join(platform.libc_ver())}, {platform.machine()}"


def read_limits():
    """The versions for which the figures hold, the units and steps of each subject, and its figures by kind."""
    (_, *versions), _, *rows = (line.split() for line in LIMITS.read_text().splitlines() if line and line[0] != "#")
    limits = {(row[0], kind): float(figure) for row in rows for kind, figure in zip(KINDS, row[3:]) if figure != "-"}
    return " ".join(versions), {row[0]: (int(row[1]), int(row[2])) for row in rows}, limits


def judge(found, limits):
    """Prints a line for each figure; returns the errors."""
    errors = []
    print(f"{'subject':<16} {'count, a step':<14} {'measured':>10} {'reached':>10}")
    for name, kind in ((name, kind) for name in found for kind in KINDS):
        measured, reached = found[name][0][kind], limits.get((name, kind))
        is_debug = name.startswith("debug-")
        tolerance, slack = (DEBUG_TOLERANCE, DEBUG_SLACK) if is_debug else (TOLERANCE, SLACK)
        line = f"{name:<16} {kind:<14} {measured:>10.2f} {'-' if reached is None else f'{reached:g}':>10}"
        if reached is not None and measured > reached * tolerance + slack:
            errors.append(
                f"error: {name} takes {measured:.2f} {kind} a step, more than {50 if is_debug else 2} % above {reached:g}. "
                f"Where they go: .ci/counts.py --functions {name}{' --debug DEBUG-BUILD' * is_debug}, before and after the change")
            line += "  GROWN"
        elif reached is not None and measured < reached / tolerance - slack:
            line += "  lower; if it is to stay so, write it to .ci/counts.txt"
        print(line)
    return errors


def stale(limits):
    """The figures in pages that differ from those in the file by more than 5 %."""
    found = subprocess.run(
        ["git", "grep", "-noE", r"[0-9,.]+<!-- count: \S+ \S+ -->", "--", "*.md"], cwd=ROOT, text=True, stdout=subprocess.PIPE).stdout
    for line, figure, name, kind in re.findall(r"^(.+:\d+):([\d,.]+)<!-- count: (\S+) (\S+) -->$", found, re.M):
        reached = limits.get((name, kind), 0)
        if abs(float(figure.replace(",", "")) - reached) > 0.05 * reached:
            yield f"error: {line}: {figure} is given for {name} {kind}, and .ci/counts.txt has {reached:g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--pages", "--rows", "--servers", "--debug"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--functions", metavar="NAME")
    parser.add_argument("build", metavar="BUILD-FOLDER", nargs="?", type=Path, default=ROOT / ".build-ci/release")
    arguments = parser.parse_args()
    measured_with, subjects, limits = read_limits()
    subjects = {name: times for name, times in subjects.items() if name.startswith("debug-") == arguments.debug}
    if arguments.pages:
        sys.exit("\n".join(stale(limits)) or 0)
    if arguments.rows or arguments.servers:
        subjects = {name: times for name, times in subjects.items() if (name in SERVERS) == arguments.servers}
    if name := arguments.functions:  # Longer, so that the start of a server hides nothing.
        subjects = {name: (10 * subjects[name][0], subjects[name][1])}
    with tempfile.TemporaryDirectory() as folder:
        found = count(arguments.build, subjects, Path(folder))
        errors = judge(found, limits)
        if name:
            file = found[name][1]
            subprocess.run(f"callgrind_annotate --show=Ir --tree=calling --threshold=100 {file} | swift demangle --simplified", shell=True, check=True)
    if measured_with != versions():
        print(f"not judged: the figures are of {measured_with}; here is {versions()}")
    else:
        sys.exit("\n".join(errors) or 0)


main()
