#!/usr/bin/env python3
"""Races Examples/kv-server against redis-server, under redis-benchmark.

    swift build -c release --package-path Examples --product kv-server
    Benchmarks/protocols/redis.py
    Benchmarks/protocols/redis.py --bytes 1000000 --requests 5000 --pipelines 1 --tests set,get --clients 1

The second form is for large values: one client reuses the memory of its last one, fifty (`--clients 50`) have as many at once.
measuring.py describes the comparison. The exit status is 0 if all targets are met or if there is no redis, 1 if one is
missed, and 2 if not all was measured.
"""
import csv
import socket
import time

from measuring import RaceError, Server, are_installed, options, other_builds, product_command, race, report, run, run_load

OURS, REDIS = "kv-server", "redis-server"
# See `report`.
TARGETS = {1: (1.3, 0.9), 16: (1.1, 0.8)}
RUN_SECONDS = 120


class RedisServer(Server):
    """redis-server, which does not print when it listens, and does not accept port 0."""

    OPTIONS = "--bind 127.0.0.1 --save '' --appendonly no --daemonize no --port"

    def __init__(self, name, command, cpu):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.wanted = free.getsockname()[1]
        super().__init__(name, f"{command} {self.OPTIONS} {self.wanted}", cpu)

    def options(self):
        return []

    def wait_for_port(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.wanted), 1).close()
                return self.wanted
            except OSError:
                time.sleep(0.01)
        raise RaceError(f"{self.name}: does not listen: {self.read_output().strip()[-400:]!r}")


def measure(server, cell, cpu, arguments):
    """One run of redis-benchmark."""
    test, pipeline = cell
    # Otherwise a run of pipelined requests would end after a fifth of a second.
    requests = arguments.requests * (5 if pipeline > 1 else 1)
    command = ["redis-benchmark", "-p", str(server.port), "-t", test, "-c", str(arguments.clients), "-n",
               str(requests), "-P", str(pipeline), "-d", str(arguments.bytes), "--csv"]
    done, used = run_load(server, command, cpu, RUN_SECONDS)
    rows = list(csv.reader(done.stdout.splitlines()))
    if done.returncode != 0 or len(rows) != 2:
        raise RaceError(f"redis-benchmark of {server.name}: {(done.stdout + done.stderr).strip()[-400:]!r}")
    return used / requests, float(rows[1][1])


def main():
    parser = options(__doc__)
    parser.add_argument("--requests", type=int, default=200_000, help="requests of one run, of which a pipelined one makes five times as many")
    parser.add_argument("--tests", default="set,get,incr,lpush")
    parser.add_argument("--bytes", type=int, default=3, help="the size of a value")
    arguments = parser.parse_args()
    if not are_installed("redis-server", "redis-benchmark"):
        return 0
    contestants = {OURS: (Server, product_command(OURS, "Examples"))} | other_builds(arguments)
    contestants[REDIS] = (RedisServer, REDIS)
    cells = [(test, pipeline) for pipeline in arguments.pipelines for test in arguments.tests.split(",")]
    samples = race(contestants, cells, lambda server, cell, cpu: measure(server, cell, cpu, arguments), arguments)
    return report(samples, cells, REDIS, TARGETS)


if __name__ == "__main__":
    run("redis.py", main)
