#!/usr/bin/env python3
"""Races Examples/http-server and a floor in C against a server on NIOHTTP1 with the same answer, under wrk.

    swift build -c release --package-path Examples --product http-server
    swift build -c release --package-path Benchmarks --product nio-http
    Benchmarks/protocols/http.py

measuring.py describes the comparison. The exit status is 0 if every target is met or if there is no wrk, 1 at a MISS,
and 2 if not everything was measured.
"""
import re
import shlex
import socket
from pathlib import Path

from measuring import (
    RaceError, Server, are_installed, build, options, other_builds, product_command, race, report, run, run_load)

OURS, NIO, FLOOR = "http-server", "nio-http", "floor"
# See `report`. Requests per second have no target. The floor, which makes two system calls per request and looks for the empty
# line, takes 0.39 to 0.48 of NIO's CPU time for one request at a time, as system calls cost that day.
TARGETS = {1: (0.55, None), 16: (0.55, None)}
ANSWER = ("HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain; charset=utf-8\r\n"
          "Content-Length: 14\r\n\r\nHello, world!\n")
SCRIPT = Path(__file__).resolve().parent / "pipeline.lua"


def check_answers(servers):
    """All must send the same, except for the date."""
    for server in servers:
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            data = client.makefile("rb").read(len(ANSWER)).decode()
        if re.sub("Date: .{29}", "", data) != re.sub("Date: .{29}", "", ANSWER):
            raise RaceError(f"{server.name}: answers {data!r}")


def measure(server, cell, cpu, arguments):
    """One run of wrk."""
    _, pipeline = cell
    command = ["wrk", "-t1", f"-c{arguments.clients}", f"-d{arguments.seconds}", "-s", str(SCRIPT),
               f"http://127.0.0.1:{server.port}/", "--", str(pipeline)]
    done, used = run_load(server, command, cpu, arguments.seconds + 30)
    found = re.search(r"^RESULT (\d+) (\d+) (\d+)$", done.stdout, re.M)
    if done.returncode != 0 or not found or int(found.group(1)) == 0 or int(found.group(3)) != 0:
        raise RaceError(f"wrk of {server.name}: {(done.stdout + done.stderr).strip()[-400:]!r}")
    requests, microseconds = int(found.group(1)), int(found.group(2))
    return used / requests, requests / microseconds * 1e6


def main():
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="the length of one run")
    arguments = parser.parse_args()
    if not are_installed("wrk"):
        return 0
    contestants = {OURS: (Server, product_command(OURS, "Examples")), NIO: (Server, product_command(NIO, "Benchmarks"))}
    contestants[FLOOR] = (Server, f"{shlex.quote(build(FLOOR))} --answer {shlex.quote(ANSWER)}")
    contestants |= other_builds(arguments)
    cells = [("GET /", pipeline) for pipeline in arguments.pipelines]
    samples = race(
        contestants, cells, lambda server, cell, cpu: measure(server, cell, cpu, arguments), arguments, check_answers)
    return report(samples, cells, NIO, TARGETS, without_target=FLOOR)


if __name__ == "__main__":
    run("http.py", main)
