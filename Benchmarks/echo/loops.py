#!/usr/bin/env python3
"""Servers with several loops under two loads at a time: the gain of a second loop, and, with --spread, the best way to distribute
connections to the loops. Nothing is pinned, unless --one-cpu is given: the threads of the server and both loads share all CPUs.
See README.md.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path

from race import cell_name, cpu_model, parse_cells, parse_server, positive
from servers import ROOT, RaceError, Server, build, check_echo, choose_cpus, find_product, raise_file_limit, run

LOADS = 2
WARMUP_SECONDS = 0.5
DEFAULT_CELLS = "64x64x1,1000x64x1,16x16384x4"
CONNECTS = 5000


def default_servers(spread):
    if not spread:
        program = find_product("echo-server")
        if not program:
            raise RaceError("swift build -c release --product echo-server")
        return {f"--threads {count}": f"{program} --quiet --threads {count}" for count in (1, 2)}
    program = find_product("loops-echo", ROOT / "Benchmarks")
    if not program:
        raise RaceError("swift build --package-path Benchmarks -c release --product loops-echo")
    floor = build("floor")
    return {"one loop": f"{program} --threads 1", "hand-off": f"{program} --threads 2 --by hand-off",
            "reuse-port": f"{program} --threads 2 --by reuse-port", "C, one loop": f"{floor} --threads 1",
            "C, hand-off": f"{floor} --threads 2"}


def cpu_of_threads(pid):
    """CPU nanoseconds of each thread."""
    times = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        times[task.name] = int((task / "schedstat").read_text().split()[0])
    return times


def finish(processes):
    results = []
    for process in processes:
        output, errors = process.communicate(timeout=180)
        if process.returncode not in (0, 1):
            raise RaceError(f"a load ended with {process.returncode}: {errors}")
        results.append(json.loads(output))
    return results


def start(command):
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def busiest(before, after):
    """The busiest thread's share of all work."""
    work = [after[thread] - before.get(thread, 0) for thread in after]
    return max(work) / max(sum(work), 1)


def messages(load, command, cell, seconds):
    connections, size, depth = cell
    with Server("", command, None) as server:
        pid = server.process.pid
        before = cpu_of_threads(pid)
        results = finish([
            start([load, "--cpu-of", pid, "127.0.0.1", server.port, connections // LOADS or 1, size, depth, seconds,
                   WARMUP_SECONDS]) for _ in range(LOADS)])
        share = busiest(before, cpu_of_threads(pid))
    total = sum(result["messages"] for result in results)
    return {
        "rate": sum(result["messages_per_second"] for result in results),
        # Both loads used the same server, for about the same time.
        "cpu": statistics.mean(result["server_cpu_ns"] for result in results) / total,
        "p50": max(result["p50_us"] for result in results),
        "p99": max(result["p99_us"] for result in results),
        "busiest": share,
        "errors": sum(result["errors"] for result in results),
    }


def connects(clients, command):
    with Server("", command, None) as server:
        pid = server.process.pid
        finish([start([clients, "connects", "127.0.0.1", server.port, 500])])
        before = cpu_of_threads(pid)
        results = finish([
            start([clients, "connects", "127.0.0.1", server.port, CONNECTS // LOADS]) for _ in range(LOADS)])
        after = cpu_of_threads(pid)
    work = sum(after.values()) - sum(before.values())
    return {
        "rate": sum(result["connections"] / result["seconds"] for result in results),
        "cpu": work / CONNECTS, "busiest": busiest(before, after), "errors": 0,
    }


def kernels_choice(clients=16, trials=200):
    """The number of clients that the kernel gives to the busier one of two listeners at one address."""
    largest = []
    with socket.socket() as first, socket.socket() as second:
        for listener in (first, second):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(first.getsockname() if listener is second else ("127.0.0.1", 0))
            listener.listen(clients)
            listener.setblocking(False)
        for _ in range(trials):
            connected = [socket.create_connection(first.getsockname()) for _ in range(clients)]
            counts = [0, 0]
            for index, listener in enumerate((first, second)):
                try:
                    while True:
                        listener.accept()[0].close()
                        counts[index] += 1
                except BlockingIOError:
                    pass
            for client in connected:
                client.close()
            largest.append(max(counts))
    largest.sort()
    print(f"\nof {clients} clients one of two listeners with SO_REUSEPORT gets {clients // 2} at best; in {trials} trials the "
          f"one with more had {largest[len(largest) // 2]} (median), {largest[len(largest) * 9 // 10]} (nine tenths), "
          f"{largest[-1]} (worst)")


def median(samples, key):
    return statistics.median(sample[key] for sample in samples)


def ratio(samples, first, key):
    ratios = [a[key] / b[key] for a, b in zip(samples, first)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def print_table(title, samples, has_latency):
    print(f"\n{title}")
    first = next(iter(samples.values()))
    head = ["", "a second", "ratio", "CPU us", "ratio", "busiest"] + (["p50 us", "p99 us", "ratio"] if has_latency else [])
    lines = [head]
    for name, runs in samples.items():
        line = [name, f"{median(runs, 'rate'):.0f}", ratio(runs, first, "rate"), f"{median(runs, 'cpu') / 1000:.2f}",
                ratio(runs, first, "cpu"), f"{median(runs, 'busiest'):.0%}"]
        if has_latency:
            line += [f"{median(runs, 'p50'):.0f}", f"{median(runs, 'p99'):.0f}", ratio(runs, first, "p99")]
        lines.append(line)
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  " + "  ".join(text.ljust(width) if i == 0 else text.rjust(width)
                               for i, (text, width) in enumerate(zip(line, widths))).rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Echo servers with several loops, under two loads.")
    parser.add_argument("--server", metavar="NAME=COMMAND", type=parse_server, action="append", default=[],
                        help="these instead; the first is what the others are compared with")
    parser.add_argument("--spread", action="store_true", help="one listener that hands over, and one for each loop")
    parser.add_argument("--rounds", type=positive(int), default=7)
    parser.add_argument("--seconds", type=positive(float), default=1.0)
    parser.add_argument("--cells", type=parse_cells, default=DEFAULT_CELLS, metavar="CONNECTIONSxBYTESxDEPTH,...")
    parser.add_argument("--one-cpu", action="store_true",
                        help="bind everything to one processor: steadier, and nothing runs beside anything else")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()

    raise_file_limit(max(cell[0] for cell in options.cells) + 64)
    load, clients = build("load"), build("clients")
    servers = dict(options.server) or default_servers(options.spread)
    if options.one_cpu:
        # Servers and loads inherit it.
        os.sched_setaffinity(0, {choose_cpus()[0] or 0})
    print(f"{cpu_model()}, {os.cpu_count()} CPUs, {LOADS} loads, {'all on one CPU' if options.one_cpu else 'nothing pinned'}, {options.rounds} rounds of "
          f"{options.seconds:g} s, load average at the start {os.getloadavg()[0]:.2f}", flush=True)
    for name, command in servers.items():
        check_echo(name, command, None)

    kinds = {f"{cell_name(cell)}, messages": lambda command, cell=cell: messages(load, command, cell, options.seconds)
             for cell in options.cells}
    kinds[f"{CONNECTS} connects and one message each"] = lambda command: connects(clients, command)
    samples = {kind: {name: [] for name in servers} for kind in kinds}
    for number in range(options.rounds):
        order = list(servers) if number % 2 == 0 else list(reversed(servers))
        for kind, measure in kinds.items():
            for name in order:
                samples[kind][name].append(measure(servers[name]))
    for kind, by_name in samples.items():
        print_table(kind, by_name, "messages" in kind)
    if options.spread:
        kernels_choice()
    if options.json:
        Path(options.json).write_text(json.dumps(samples, indent=1) + "\n")
    errors = sum(sample["errors"] for by_name in samples.values() for runs in by_name.values() for sample in runs)
    if errors:
        print(f"\n{errors} errors: this says nothing about speed")
    return 1 if errors else 0


if __name__ == "__main__":
    run("loops", main)
