#!/usr/bin/env python3
"""Races Examples/http-server against a server on NIOHTTP1 with the same answer, under wrk.

    swift build -c release --package-path Examples --product http-server
    swift build -c release --package-path Benchmarks --product nio-http
    Benchmarks/protocols/http.py

Compared are the CPU time of the server's process for one request, user's and system's, and requests per second. In each
round both servers are started, on one processor, and measured one right after the other, with wrk on another processor;
every other round begins with the other server. Ratios are of one round; printed are their median and range. Another program
on the machine makes requests per second worth little, and disturbs the CPU time less. The exit status is 0 if all was
measured or if there is no wrk, whatever came out, and 2 if not.
"""
import argparse
import os
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
from pathlib import Path

from measuring import cpu_nanoseconds, text

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "echo"))
from servers import RaceError, ROOT, Server, choose_cpus, find_product, pinning, run  # noqa: E402

OURS, NIO = "http-server", "nio-http"
# By the number of requests that a client sends at once: the most CPU time for one request, as a part of NIOHTTP1's.
TARGETS = {1: 0.45, 16: 0.55}
SCRIPT = Path(__file__).resolve().parent / "pipeline.lua"


def answer_length(server):
    """Both must send the same, but for the second of the date."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        data = b""
        while piece := client.recv(65_536):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 OK\r\n") or body != b"Hello, world!\n":
        raise RaceError(f"{server.name}: answers {data!r}")
    return len(data)


def measure(server, pipeline, arguments, cpu):
    """One run of wrk: the server's CPU time for one request in microseconds, and requests per second."""
    command = ["wrk", "-t1", f"-c{arguments.clients}", f"-d{arguments.seconds}", "-s", str(SCRIPT),
               f"http://127.0.0.1:{server.port}/", "--", str(pipeline)]
    before = cpu_nanoseconds(server.process.pid)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=arguments.seconds + 30, preexec_fn=pinning(cpu))
    used = cpu_nanoseconds(server.process.pid) - before
    found = re.search(r"^RESULT (\d+) (\d+) (\d+)$", done.stdout, re.M)
    if done.returncode != 0 or not found or int(found.group(1)) == 0 or int(found.group(3)) != 0:
        raise RaceError(f"wrk of {server.name}: {done.stdout.strip()[-400:]!r}")
    requests, microseconds = int(found.group(1)), int(found.group(2))
    return used / requests / 1000, requests / microseconds * 1e6


def race(contestants, arguments, cpus):
    samples = {(name, pipeline): [] for name in contestants for pipeline in arguments.pipelines}
    for number in range(arguments.rounds):
        order = list(contestants) if number % 2 == 0 else list(reversed(contestants))
        servers = {}
        try:
            for name in order:
                servers[name] = Server(name, shlex.quote(contestants[name]), cpus[0])
            if len({answer_length(server) for server in servers.values()}) != 1:
                raise RaceError("the answers have different lengths")
            for pipeline in arguments.pipelines:
                for name in order:
                    samples[name, pipeline].append(measure(servers[name], pipeline, arguments, cpus[1]))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        finally:
            for server in servers.values():
                server.stop()
    return samples


def report(samples, pipelines, ours):
    print(f"{'P':>3} {'CPU µs ours':>12} {'NIOHTTP1':>9} {'ratio':>19}  {'requests/s':>10} {'NIOHTTP1':>9} {'ratio':>19}")
    for pipeline in pipelines:
        mine, theirs = samples[ours, pipeline], samples[NIO, pipeline]
        columns = []
        for index in (0, 1):
            ratios = [a[index] / b[index] for a, b in zip(mine, theirs)]
            columns.append((statistics.median(a[index] for a in mine), statistics.median(b[index] for b in theirs), ratios))
        (cpu, nio_cpu, cpu_ratios), (rate, nio_rate, rate_ratios) = columns
        most = TARGETS.get(pipeline)
        verdict = "" if most is None else f"CPU {'OK' if statistics.median(cpu_ratios) <= most else 'MISS'} ({most})"
        print(f"{pipeline:>3} {cpu:>12.2f} {nio_cpu:>9.2f} {text(cpu_ratios):>19}  {rate:>10.0f} {nio_rate:>9.0f} "
              f"{text(rate_ratios):>19}  {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="the length of one run")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pipelines", type=lambda text: [int(number) for number in text.split(",")], default=[1, 16],
                        help="how many requests a client sends at once")
    parser.add_argument("--server", metavar="PATH", action="append", default=[],
                        help="another http-server, for instance an earlier one; may be repeated")
    parser.add_argument("--no-pin", action="store_true", help="do not bind servers and clients to processors")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        print("skipped: wrk is not installed")
        return 0
    contestants = {}
    for name, package in ((OURS, "Examples"), (NIO, "Benchmarks")):
        contestants[name] = find_product(name, ROOT / package)
        if contestants[name] is None:
            raise RaceError(f"no {name}: swift build -c release --package-path {package} --product {name}")
    for path in arguments.server:
        contestants[os.path.relpath(path)] = path
    cpus = (None, None) if arguments.no_pin else choose_cpus()
    samples = race(contestants, arguments, cpus)
    for name in contestants:
        if name != NIO:
            if len(contestants) > 2:
                print(f"\n{name}")
            report(samples, arguments.pipelines, name)
    return 0


if __name__ == "__main__":
    run("http.py", main)
