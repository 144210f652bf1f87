#!/usr/bin/env python3
"""Races Examples/kv-server against redis-server, under redis-benchmark.

    swift build -c release --package-path Examples --product kv-server
    Benchmarks/protocols/redis.py

Compared are the CPU time of the server's process for one request, user's and system's, and requests per second. In each
round both servers are started, on one processor, and measured one right after the other, with redis-benchmark on another
processor; every other round begins with the other server. Ratios are of one round; printed are their median and range.
Another program on the machine makes requests per second worth little, and disturbs the CPU time less. The exit status is
0 if all was measured or if there is no redis, whatever came out, and 2 if not.
"""
import argparse
import csv
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from measuring import cpu_nanoseconds, text

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "echo"))
from servers import RaceError, ROOT, Server, choose_cpus, find_product, pinning, run  # noqa: E402

OURS, REDIS = "kv-server", "redis-server"
# By the number of requests that a client sends at once: the most CPU time for one request, and the fewest requests per second,
# both as parts of redis-server's.
TARGETS = {1: (1.3, 0.9), 16: (1.5, 0.8)}
RUN_SECONDS = 120


class RedisServer(Server):
    """Says nothing when it listens, and takes no port 0."""

    def __init__(self, name, command, cpu):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.wanted = free.getsockname()[1]
        options = "--bind 127.0.0.1 --save '' --appendonly no --daemonize no --port"
        super().__init__(name, f"{command} {options} {self.wanted}", cpu)

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


def measure(server, test, pipeline, arguments, cpu):
    """One run of redis-benchmark: the server's CPU time for one request in microseconds, and requests per second."""
    command = ["redis-benchmark", "-p", str(server.port), "-t", test, "-c", str(arguments.clients), "-n",
               str(arguments.requests), "-P", str(pipeline), "--csv"]
    before = cpu_nanoseconds(server.process.pid)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=RUN_SECONDS,
                          preexec_fn=pinning(cpu))
    used = cpu_nanoseconds(server.process.pid) - before
    rows = list(csv.reader(done.stdout.splitlines()))
    if done.returncode != 0 or len(rows) != 2:
        raise RaceError(f"redis-benchmark of {server.name}: {(done.stderr or done.stdout).strip()[-400:]!r}")
    return used / arguments.requests / 1000, float(rows[1][1])


def race(contestants, cells, arguments, cpus):
    samples = {(name, cell): [] for name in contestants for cell in cells}
    for number in range(arguments.rounds):
        order = list(contestants) if number % 2 == 0 else list(reversed(contestants))
        servers = {}
        try:
            for name in order:
                kind, command = contestants[name]
                servers[name] = kind(name, command, cpus[0])
            for test, pipeline in cells:
                for name in order:
                    sample = measure(servers[name], test, pipeline, arguments, cpus[1])
                    samples[name, (test, pipeline)].append(sample)
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        finally:
            for server in servers.values():
                server.stop()
    return samples


def report(samples, cells, ours):
    print(f"{'P':>3} {'':6} {'CPU µs ours':>12} {REDIS:>12} {'ratio':>19}  {'requests/s':>10} {REDIS:>12} {'ratio':>19}")
    for test, pipeline in cells:
        mine, theirs = samples[ours, (test, pipeline)], samples[REDIS, (test, pipeline)]
        columns = []
        for index in (0, 1):
            ratios = [a[index] / b[index] for a, b in zip(mine, theirs)]
            columns.append((statistics.median(a[index] for a in mine), statistics.median(b[index] for b in theirs),
                            ratios))
        (cpu, redis_cpu, cpu_ratios), (rate, redis_rate, rate_ratios) = columns
        verdict = ""
        if pipeline in TARGETS:
            most, fewest = TARGETS[pipeline]
            verdict = f"CPU {'OK' if statistics.median(cpu_ratios) <= most else 'MISS'} ({most}), " \
                      f"rate {'OK' if statistics.median(rate_ratios) >= fewest else 'MISS'} ({fewest})"
        print(f"{pipeline:>3} {test:6} {cpu:>12.2f} {redis_cpu:>12.2f} {text(cpu_ratios):>19}  {rate:>10.0f} "
              f"{redis_rate:>12.0f} {text(rate_ratios):>19}  {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200_000, help="requests of one run")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--tests", default="set,get,incr,lpush")
    parser.add_argument("--pipelines", default="1,16", help="how many requests a client sends at once")
    parser.add_argument("--server", metavar="PATH", action="append", default=[],
                        help="another kv-server, for instance an earlier one; may be repeated")
    parser.add_argument("--no-pin", action="store_true", help="do not bind servers and clients to processors")
    arguments = parser.parse_args()
    for name in ("redis-server", "redis-benchmark"):
        if shutil.which(name) is None:
            print(f"skipped: {name} is not installed")
            return 0
    built = find_product(OURS, ROOT / "Examples")
    if built is None and not arguments.server:
        raise RaceError("no kv-server: swift build -c release --package-path Examples --product kv-server")
    contestants = {OURS: (Server, shlex.quote(built))} if built else {}
    for path in arguments.server:
        contestants[os.path.relpath(path)] = (Server, shlex.quote(path))
    contestants[REDIS] = (RedisServer, REDIS)
    cells = [(test, int(pipeline)) for pipeline in arguments.pipelines.split(",") for test in arguments.tests.split(",")]
    cpus = (None, None) if arguments.no_pin else choose_cpus()
    samples = race(contestants, cells, arguments, cpus)
    for name in contestants:
        if name != REDIS:
            if len(contestants) > 2:
                print(f"\n{name}")
            report(samples, cells, name)
    return 0


if __name__ == "__main__":
    run("redis.py", main)
