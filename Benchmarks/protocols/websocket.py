#!/usr/bin/env python3
"""Races the WebSocket echo of Examples/http-server and a floor in C against one on NIOWebSocket: texts of 32 bytes.

    swift build -c release --package-path Examples --product http-server
    swift build -c release --package-path Benchmarks --product nio-websocket
    Benchmarks/protocols/websocket.py

measuring.py describes the comparison; a request is an echoed message. The exit status is that of http.py.
"""
import shlex
import subprocess
import tempfile
from pathlib import Path

from measuring import (
    RaceError, Server, are_installed, build, options, other_builds, product_command, race, report, run, run_load)

OURS, NIO, FLOOR = "http-server", "nio-websocket", "floor"
# See `report`. Requests per second have no target. One at a time, the two system calls of a message are more than this target.
TARGETS = {1: (0.5, None), 16: (0.5, None)}


def compile_load(folder):
    source = Path(__file__).resolve().with_name("websocket.c")
    done = subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", folder / "load", source], stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RaceError(f"cc: {done.stderr.strip()[-400:]!r}")
    return folder / "load"


def measure(load, server, cell, cpu, arguments):
    """One run of the load, with its handshakes."""
    command = [load, str(server.port), str(arguments.clients), str(cell[1]), str(arguments.seconds)]
    done, used = run_load(server, command, cpu, arguments.seconds + 30)
    words = done.stdout.split()
    if done.returncode != 0 or words[:1] != ["RESULT"]:
        raise RaceError(f"the load of {server.name}: {(done.stdout + done.stderr).strip()[-400:]!r}")
    messages, nanoseconds = int(words[1]), int(words[2])
    return used / messages, messages / nanoseconds * 1e9


def main():
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="the length of one run")
    parser.set_defaults(clients=64)
    arguments = parser.parse_args()
    if not are_installed("cc"):
        return 0
    contestants = {OURS: (Server, product_command(OURS, "Examples")), NIO: (Server, product_command(NIO, "Benchmarks"))}
    contestants[FLOOR] = (Server, f"{shlex.quote(build(FLOOR))} --web-socket")
    contestants |= other_builds(arguments)
    cells = [("echo", pipeline) for pipeline in arguments.pipelines]
    with tempfile.TemporaryDirectory() as name:
        load = compile_load(Path(name))
        samples = race(
            contestants, cells, lambda server, cell, cpu: measure(load, server, cell, cpu, arguments), arguments)
    return report(samples, cells, NIO, TARGETS, without_target=FLOOR)


if __name__ == "__main__":
    run("websocket.py", main)
