#!/usr/bin/env python3
"""Races other than that of messages: short connections, idle connections, a pinging client beside two flooding ones, and the start of
a process. Each in alternating rounds of one run; see README.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from servers import (FLOOR, ROOT, RaceError, Server, build, choose_cpus, contestants, find_product, pinning,
                     raise_file_limit, run)

CONNECTS = 5000
IDLE = 10000
# As many as fit below a hard limit of 20,000 descriptors together with the pinging ones.
CROWD, PINGING = 15000, 200


def cpu_ns(pid):
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total


def private_bytes(pid):
    """The private memory of the process, without the kernel's memory for sockets and shared pages."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, _ = line.split()
        fields[name] = int(value) * 1024
    return fields["Private_Clean:"] + fields["Private_Dirty:"]


def client(clients, cpu, mode, server, *arguments, **options):
    command = [clients, mode, "127.0.0.1", str(server.port), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pinning(cpu), **options)


def finish(process):
    output, _ = process.communicate(timeout=150)
    if process.returncode != 0:
        raise RaceError(f"a client ended with {process.returncode}")
    return json.loads(output)


def connects(name, command, cpus, clients):
    """CPU time of the server for a connection with one message, in microseconds."""
    with Server(name, command, cpus[0]) as server:
        finish(client(clients, cpus[1], "connects", server, 500))
        before = cpu_ns(server.process.pid)
        finish(client(clients, cpus[1], "connects", server, CONNECTS))
        return (cpu_ns(server.process.pid) - before) / CONNECTS / 1000


def idle(message):
    """User-space memory of the server for an idle connection, in bytes."""
    def measure(name, command, cpus, clients):
        with Server(name, command, cpus[0]) as server:
            finish(client(clients, cpus[1], "connects", server, 100))
            before = private_bytes(server.process.pid)
            sitting = client(clients, cpus[1], "idle", server, IDLE, message, stdin=subprocess.PIPE)
            line = sitting.stdout.readline()
            # The last ones may still wait to be accepted.
            time.sleep(0.5)
            after = private_bytes(server.process.pid)
            sitting.stdin.close()
            if sitting.wait(timeout=150) != 0 or json.loads(line)["connections"] != IDLE:
                raise RaceError(f"{name}: not all connected")
            return (after - before) / IDLE
    return measure


def crowd(name, command, cpus, clients):
    """200 connections with a message in flight each, beside 15,000 idle ones, against the same 200 alone: the 99th percentile
    of a round trip, and the CPU time of the server for a message."""
    # It would serve 10,000 otherwise.
    if name == "swift-reactor":
        command += f" --max-connections {CROWD + PINGING + 1}"

    def load(server):
        command = [build("load"), "--cpu-of", str(server.process.pid), "127.0.0.1", str(server.port), str(PINGING), "64", "1", "2"]
        output = finish(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pinning(cpus[1])))
        return output["p99_us"], output["server_cpu_ns"] / output["messages"]

    with Server(name, command, cpus[0]) as server:
        # The first ones of a server are expensive.
        load(server)
        alone = load(server)
        sitting = client(clients, cpus[1], "idle", server, CROWD, 64, stdin=subprocess.PIPE)
        if json.loads(sitting.stdout.readline())["connections"] != CROWD:
            raise RaceError(f"{name}: not all connected")
        beside = load(server)
        sitting.stdin.close()
        if sitting.wait(timeout=150) != 0:
            raise RaceError(f"{name}: the idle connections were ended")
        return tuple(b / a for a, b in zip(alone, beside))


def giving_way(cpu):
    """Pinned, and yielding the processor to any other program."""
    def place():
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
    return place


def flood(name, command, cpus, clients):
    """The 99th percentile of a ping beside two flooding clients, in milliseconds."""
    with Server(name, command, cpus[0]) as server:
        # The pings must wait for the server, not for a processor.
        command = [clients, "flood", "127.0.0.1", str(server.port), "4"]
        floods = [subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=giving_way(cpus[1]))
                  for _ in range(2)]
        time.sleep(0.5)
        result = finish(client(clients, cpus[1], "ping", server, 3))
        for process in floods:
            process.wait(timeout=30)
        return result["p99_us"] / 1000


def start(program):
    """From the start of a process to its end, in milliseconds; the median of 40."""
    times = []
    for _ in range(40):
        began = time.perf_counter()
        # Not by subprocess, which takes several times as long.
        process = os.posix_spawn(program, [program], os.environ)
        _, status = os.waitpid(process, 0)
        times.append((time.perf_counter() - began) * 1000)
        if status != 0:
            raise RaceError(f"{program} ended with {status}")
    return statistics.median(times)


def table(title, unit, samples, beside_floor=True):
    print(f"\n{title} ({unit})")
    floor = samples[FLOOR]
    for name, values in samples.items():
        beside = ""
        if name != FLOOR and beside_floor:
            ratios = [a / b for a, b in zip(values, floor)]
            beside = f"{statistics.median(ratios):8.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
        print(f"  {name:14} {statistics.median(values):10.2f} {beside}".rstrip(), flush=True)
    return samples


def alternate(servers, rounds, measure):
    samples = {name: [] for name in servers}
    for number in range(rounds):
        for name in list(servers) if number % 2 == 0 else reversed(list(servers)):
            samples[name].append(measure(name, servers[name]))
    return samples


def main():
    parser = argparse.ArgumentParser(description="Connections, memory, fairness and start of echo servers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=["connects", "idle", "crowd", "flood", "start"],
                        default=["connects", "idle", "crowd", "flood", "start"])
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    raise_file_limit(CROWD + PINGING + 64 if "crowd" in options.only else IDLE + 64)
    cpus = choose_cpus()
    clients, servers = build("clients"), contestants()
    results = {}

    def race(key, title, unit, measure, rounds=options.rounds, among=servers, beside_floor=True):
        samples = alternate(among, rounds, lambda name, command: measure(name, command, cpus, clients))
        results[key] = table(title, unit, samples, beside_floor)

    if "connects" in options.only:
        race("connects", f"{CONNECTS} connects and one message each", "CPU us per connection", connects)
    if "idle" in options.only:
        race("idle", f"{IDLE} idle connections", "bytes each", idle(0), 2, beside_floor=False)
        race("idle-after", f"{IDLE} idle connections after one message", "bytes each", idle(64), 2, beside_floor=False)
    if "crowd" in options.only:
        both = alternate(servers, options.rounds, lambda name, command: crowd(name, command, cpus, clients))
        for index, (key, what) in enumerate((("p99", "p99 of a round trip"), ("cpu", "CPU per message"))):
            samples = {name: [values[index] for values in rounds] for name, rounds in both.items()}
            title = f"{PINGING} connections beside {CROWD} idle ones, {what}"
            results[f"crowd-{key}"] = table(title, "of that without them", samples, beside_floor=False)
    if "flood" in options.only:
        greedy = {**servers, "until-empty": servers[FLOOR] + " --until-empty"}
        race("flood", "ping beside two floods", "p99 ms", flood, among=greedy)
    if "start" in options.only:
        programs = {FLOOR: build("empty")}
        ours = find_product("empty-loop", ROOT / "Benchmarks", "--static-swift-stdlib",
                            "--scratch-path", str(ROOT / "Benchmarks" / ".build-static"))
        if ours:
            programs["swift-reactor"] = ours
            samples = alternate(programs, options.rounds, lambda name, program: start(program))
            results["start"] = table("start to exit of an empty loop", "ms", samples)
        else:
            print("without start: swift build --package-path Benchmarks -c release --static-swift-stdlib "
                  "--scratch-path Benchmarks/.build-static --product empty-loop", file=sys.stderr)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    run("others", main)
