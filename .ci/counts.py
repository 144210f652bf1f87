#!/usr/bin/env python3
"""Counts the cost of hot paths, and fails if a count has grown: counts.py [OPTIONS] BUILD-FOLDER

Instructions, allocations, reference counting and system calls are reproducible, unlike nanoseconds. callgrind counts them all in one
run. A figure is the difference between two run lengths, divided by the difference in steps, so one-time work does not count. The
folder is that of a release build with `echo-server`, `http-server`, `counted-rows` and `chunk-echo` (see .ci/steps/counts).

The limits are in .ci/counts.txt, each with the figure that was reached; 2 % above it the count fails. A figure 2 % below it is
printed with the line to put there. Other compilers, C libraries and processors give other figures, so with versions other than
those in the file everything is printed, and nothing fails.

--only PATTERN     only the subjects that match the regular expression
--rows, --servers  only those that are one process, or only those with a client beside it, whose messages arrive as the machine allows
--functions NAME   the 40 functions that execute most instructions of one subject, and how often each is called
"""
import argparse
import collections
import math
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

LIMITS = Path(__file__).resolve().with_name("counts.txt")
# The tolerance above a reached figure, and the allowance for the fraction of a call that occurs once in many steps.
TOLERANCE = 1.02
SLACK = 0.02
PATIENCE = 100

KINDS = ("instructions", "allocations", "references", "system-calls")
ALLOCATIONS = {"malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"}
REFERENCES = re.compile(
    r"swift_((bridgeObject|unknownObject)?(Retain|Release)|retain|release|retain_n|release_n|tryRetain|unownedRetainStrong)")

# Rows of Benchmarks/Counted/Sources/OurRows: units in the shorter stretch (the longer one has three times as many), steps in a unit.
ROWS = {
    "make-settle": (500, 1), "map-pending-10": (100, 10), "map-loop-10": (100, 10), "map-settled": (200, 1),
    "then-settled": (200, 1), "reject-10": (50, 1), "when-10": (50, 10), "race-10": (50, 1), "hang-settled": (2000, 1),
    "hang-timer": (200, 1), "timer-0": (300, 1), "frame-line": (20, 64), "frame-lent": (20, 64), "frame-read": (20, 64),
    "steps-set": (20, 16), "whole-set": (20, 16), "whole-get": (20, 16), "steps-get": (20, 16), "steps-alone": (200, 1),
    "post": (50, 20), "pool-lease": (200, 1), "pool-connection": (50, 1), "fetch": (50, 1),
}
HOST = b"Host: 127.0.0.1:8080\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST
# What a browser adds.
FIELDS = (
    b"Connection: keep-alive\r\nCache-Control: max-age=0\r\nUpgrade-Insecure-Requests: 1\r\n"
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36\r\n"
    b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
    b"Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nAccept-Encoding: gzip, deflate, br\r\n"
    b"Accept-Language: en-GB,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n")
POST = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 64\r\n\r\n" + b"x" * 64
SOCKET = (
    b"GET /socket HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")


def of_length(length):
    return lambda data: len(data) == length


def answered(count):
    """True if `count` responses are complete."""

    def is_complete(data):
        heads = [found.end() for found in re.finditer(b"\r\n\r\n", data)]
        if len(heads) < count:
            return False
        length = re.search(rb"Content-Length: (\d+)", data[data.rindex(b"HTTP/1.1 "):])
        return data.count(b"HTTP/1.1 200 ") == count and len(data) == heads[-1] + int(length[1])

    return is_complete


# Servers: the program, steps in the shorter run, the client's bytes, their number of steps, and the test for a complete answer; for
# some, bytes to send before.
SERVERS = {
    "echo-server": ("echo-server", 800, b"x" * 64, 1, of_length(64)),
    "chunk-echo": ("chunk-echo", 800, b"x" * 64, 1, of_length(64)),
    "connect": ("chunk-echo", 400, b"x" * 64, 1, of_length(64)),
    "http-get": ("http-server", 800, GET + b"\r\n", 1, answered(1)),
    "http-fields": ("http-server", 800, GET + FIELDS + b"\r\n", 1, answered(1)),
    "http-pipelined": ("http-server", 1600, (GET + b"\r\n") * 16, 16, answered(16)),
    "socket-echo": ("http-server", 800, b"\x81\xc0abcd" + b"x" * 64, 1, of_length(66), SOCKET),
    "http-post": ("http-server", 800, POST, 1, answered(1)),
}
# For these, a step is a whole connection, from its beginning to its end.
CONNECTS = {"connect"}


class Counts:
    """The counts of one callgrind file."""

    def __init__(self, path):
        self.own, self.calls, names = collections.Counter(), collections.Counter(), {}

        def name(text):
            number, _, rest = text.rstrip().partition(" ")
            if rest:
                names[number] = re.sub(r"'\d+$", "", rest)
            return names[number]

        function, called, is_call, summary = "", "", False, []
        with open(path, errors="replace") as file:
            for line in file:
                if line.startswith("fn="):
                    function = name(line[3:])
                elif line.startswith("cfn="):
                    called = name(line[4:])
                elif line.startswith("calls="):
                    self.calls[called] += int(line[6:].split()[0])
                    is_call = True
                elif line.startswith("summary:"):
                    summary = [*map(int, line.split()[1:]), 0]
                elif line[:1].isdigit() or line[:1] in "+-*":
                    # The line after `calls=` has the costs of the callees, not the function's own.
                    if not is_call:
                        self.own[function] += int(line.split()[1])
                    is_call = False
        self.totals = {
            "instructions": summary[0], "allocations": sum(self.calls[name] for name in ALLOCATIONS),
            "references": sum(count for name, count in self.calls.items() if REFERENCES.fullmatch(name)),
            "system-calls": summary[1]}


class Difference:
    """The cost of a step, from two runs that differ only in their number of steps."""

    def __init__(self, short, long, steps):
        self.totals = {kind: (long.totals[kind] - short.totals[kind]) / steps for kind in KINDS}
        self.functions = sorted(
            (((long.own[name] - short.own[name]) / steps, (long.calls[name] - short.calls[name]) / steps, name)
             for name in long.own), reverse=True)


def callgrind(out, program, *options):
    return ["valgrind", "--tool=callgrind", "--collect-systime=yes", f"--callgrind-out-file={out}", *options, str(program)]


def count_rows(program, names, folder):
    """All rows in one process. It calls bench_mark before and after each stretch, where callgrind writes its counts, so every second
    file is a stretch. Each row runs three times, the first time to fill caches."""
    lines = "".join(f"{name} {ROWS[name][0]}\n" * 2 + f"{name} {3 * ROWS[name][0]}\n" for name in names)
    out = folder / "rows"
    done = subprocess.run(
        callgrind(out, program, "--dump-before=bench_mark"), input=lines, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise ValueError(f"counted-rows ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-2000:]}")
    for index, name in enumerate(names):
        units, steps = ROWS[name]
        short, long = (Counts(f"{out}.{2 * (3 * index + stretch)}") for stretch in (2, 3))
        yield name, Difference(short, long, 2 * units * steps)


def count_server(program, name, folder):
    _, steps, sent, steps_in_it, is_answered, *opening = SERVERS[name]
    runs = []
    for count in (steps, 3 * steps):
        command = [*callgrind(folder / "counts", program), "--listen", "127.0.0.1:0"]
        talk(command, count // steps_in_it, sent, is_answered, *opening, connects=name in CONNECTS)
        runs.append(Counts(folder / "counts"))
    return Difference(*runs, 2 * steps)


def connect(address):
    peer = socket.create_connection(address, timeout=PATIENCE)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def ask(peer, sent, is_answered):
    peer.sendall(sent)
    back = b""
    while not is_answered(back):
        more = peer.recv(65_536)
        if not more:
            raise ValueError(f"the server ended a connection after {back!r}")
        back += more


def talk(command, times, sent, is_answered, opening=b"", connects=False):
    """Sends the same bytes on four connections in turn, and waits for each answer; or on a connection each, and waits for its
    end."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peers = []
    try:
        said = []
        for line in server.stdout:
            said.append(line)
            if port := re.search(r"127\.0\.0\.1:([1-9]\d*)", line):
                break
        else:
            raise ValueError(f"{command[-3]} does not listen: {''.join(said)[-2000:]}")
        address = ("127.0.0.1", int(port[1]))
        if connects:
            for _ in range(times):
                with connect(address) as peer:
                    ask(peer, sent, is_answered)
                    peer.shutdown(socket.SHUT_WR)
                    peer.recv(1)
        else:
            for _ in range(4):
                peers.append(connect(address))
                if opening:
                    ask(peers[-1], opening, lambda data: data.endswith(b"\r\n\r\n"))
            for index in range(times):
                ask(peers[index % len(peers)], sent, is_answered)
    finally:
        for peer in peers:
            peer.close()
        server.send_signal(signal.SIGTERM)
        try:
            server.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    if server.returncode != 0:
        raise ValueError(f"{command[-3]} ended with {server.returncode}")


def count(build, names, folder):
    def stripped(program):
        # Older versions of valgrind do not understand the debug information.
        subprocess.run(["strip", "--strip-debug", "-o", folder / program, Path(build) / program], check=True)
        return folder / program

    rows = [name for name in ROWS if name in names]
    found = dict(count_rows(stripped("counted-rows"), rows, folder)) if rows else {}
    for name in SERVERS:
        if name in names:
            found[name] = count_server(stripped(SERVERS[name][0]), name, folder)
    return found


def versions():
    compiler = subprocess.run(["swift", "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
    found = re.search(r"Swift version (\S+)", compiler)
    return f"Swift {found[1] if found else '?'}, {' '.join(platform.libc_ver())}, {platform.machine()}"


def read_limits():
    """The versions for which the figures hold, and the figures, by subject and kind."""
    measured_with, limits = "", {}
    for number, line in enumerate(LIMITS.read_text().splitlines(), 1):
        name, *figures = line.partition("#")[0].split() or ["SUBJECT"]
        if name == "with":
            measured_with = line[5:].strip()
        elif name in ROWS | SERVERS and len(figures) == len(KINDS):
            limits |= {(name, kind): float(figure) for kind, figure in zip(KINDS, figures) if figure != "-"}
        elif name != "SUBJECT":
            raise ValueError(f"{LIMITS.name}:{number}: not a subject and {len(KINDS)} figures: {line}")
    return measured_with, limits


def judge(found, limits):
    """Prints a line for each figure; returns the failed ones, and the lines to write for those lower than in the file."""
    failed, lower = [], {}
    print(f"{'subject':<16} {'count, a step':<14} {'measured':>10} {'reached':>10} {'limit':>10}")
    for name, kind in ((name, kind) for name in found for kind in KINDS):
        measured, reached = found[name].totals[kind], limits.get((name, kind))
        if reached is None:
            print(f"{name:<16} {kind:<14} {measured:>10.2f}")
            continue
        limit, verdict = reached * TOLERANCE + SLACK, ""
        if measured > limit:
            verdict = "  GROWN"
            failed.append(
                f"error: {name} takes {measured:.2f} {kind} a step, the limit is {limit:.2f} (2 % above {reached:g}). "
                f"Where they go: .ci/counts.py --functions {name} BUILD-FOLDER, before and after the change")
        elif measured < reached / TOLERANCE - SLACK:
            verdict = "  lower"
            limits[name, kind] = math.ceil(measured) if kind == "instructions" else round(measured, 2)
            figures = (f"{limits[name, kind]:g}" if (name, kind) in limits else "-" for kind in KINDS)
            lower[name] = f"{name:<16}" + "".join(f"{figure:>14}" for figure in figures)
        print(f"{name:<16} {kind:<14} {measured:>10.2f} {reached:>10g} {limit:>10.2f}{verdict}")
    return failed, lower


def print_functions(name, difference):
    print(f"\n{name}: instructions a step, calls a step, function (a tail call counts as a call of its caller's)", flush=True)
    lines = "".join(f"{own:>10.1f} {calls:>8.2f}  {name}\n" for own, calls, name in difference.functions[:40] if own >= 0.5)
    subprocess.run(["swift", "demangle", "--simplified"], input=lines, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", default="")
    parser.add_argument("--rows", action="store_const", dest="subjects", const=ROWS, default=ROWS | SERVERS)
    parser.add_argument("--servers", action="store_const", dest="subjects", const=SERVERS)
    parser.add_argument("--functions", metavar="NAME", choices=[*ROWS, *SERVERS])
    parser.add_argument("build", metavar="BUILD-FOLDER")
    arguments = parser.parse_args()
    pattern = arguments.only or (f"^{arguments.functions}$" if arguments.functions else "")
    names = [name for name in arguments.subjects if re.search(pattern, name)]
    try:
        measured_with, limits = read_limits()
        with tempfile.TemporaryDirectory() as folder:
            found = count(arguments.build, names, Path(folder))
    except (OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
        sys.exit(f"error: the counts cannot be taken: {error!r}")
    failed, lower = judge(found, limits)
    if arguments.functions:
        print_functions(arguments.functions, found[arguments.functions])
    if lower:
        print("lower than in .ci/counts.txt; if it is to stay so, put there:\n" + "\n".join(lower.values()))
    if measured_with != versions():
        print(f"not judged: the figures are of {measured_with}; here is {versions()}")
    elif failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
