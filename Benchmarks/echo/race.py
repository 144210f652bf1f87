#!/usr/bin/env python3
"""Races echo servers against a minimal epoll server written in C (floor.c).

Compares the CPU time of a server per echoed message. See README.md for
how to read the table.
"""

import argparse
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

from servers import (FLOOR, RaceError, Server, build, check_echo, choose_cpus, contestants, pinning,
                     raise_file_limit, run)

DEFAULT_CELLS = "1x64x1,64x64x1,1000x64x1,10000x64x1,64x64x16,16x16384x4"
WARMUP_SECONDS = 0.5


# Measuring


def measure(name, command, cell, seconds, cpus, load):
    """One run of one server in one cell, in a fresh process."""
    server_cpu, load_cpu = cpus
    with Server(name, command, server_cpu) as server:
        arguments = [load, "--cpu-of", str(server.process.pid), "127.0.0.1", str(server.port),
                     *map(str, cell), str(seconds), str(WARMUP_SECONDS)]
        try:
            done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 timeout=seconds + 60, preexec_fn=pinning(load_cpu))
        except subprocess.TimeoutExpired:
            raise RaceError(f"{name}: the load did not end")
        if done.stderr:
            print(f"{name}: {done.stderr.strip()}", file=sys.stderr)
        if done.returncode not in (0, 1):
            raise RaceError(f"{name}: the load ended with {done.returncode}")
        sample = json.loads(done.stdout)
    if not sample["messages"] or not sample["server_cpu_ns"]:
        raise RaceError(f"{name}: nothing measured: {sample}")
    sample["cpu_ns_per_message"] = sample["server_cpu_ns"] / sample["messages"]
    sample["server_busy"] = sample["server_cpu_ns"] / (sample["seconds"] * 1e9)
    return sample


def race(servers, cells, rounds, seconds, cpus, load):
    """samples[cell][server] is a list with one sample per round."""
    samples = {cell: {name: [] for name in servers} for cell in cells}
    show = (lambda text: print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)
            ) if sys.stderr.isatty() else (lambda text: None)
    for number in range(rounds):
        # Cells are inside rounds, so that a slow period of the machine is
        # spread over all cells; every other round is reversed, so that no
        # server always goes first.
        order = list(servers) if number % 2 == 0 else list(reversed(servers))
        for cell in cells:
            for name in order:
                show(f"round {number + 1}/{rounds}  {cell_name(cell)}  {name}")
                samples[cell][name].append(
                    measure(name, servers[name], cell, seconds, cpus, load))
    show("")
    return samples


# Reporting


def cell_name(cell):
    return "x".join(map(str, cell))


def lower_quartile(values):
    """The values least disturbed by other programs, which can only add time."""
    return sorted(values)[len(values) // 4]


def summarize(samples):
    rows = []
    for cell, by_name in samples.items():
        floor = [sample["cpu_ns_per_message"] for sample in by_name[FLOOR]]
        for name, runs in by_name.items():
            own = [sample["cpu_ns_per_message"] for sample in runs]
            ratios = [a / b for a, b in zip(own, floor)]

            def median(key):
                return statistics.median(sample[key] for sample in runs)

            rows.append({
                "cell": cell_name(cell),
                "server": name,
                "ratio": statistics.median(ratios),
                "ratio_min": min(ratios),
                "ratio_max": max(ratios),
                "ratio_low": lower_quartile(own) / lower_quartile(floor),
                "cpu_ns_per_message": statistics.median(own),
                "cpu_ns_min": min(own),
                "cpu_ns_max": max(own),
                "server_busy": median("server_busy"),
                "messages_per_second": median("messages_per_second"),
                "p50_us": median("p50_us"),
                "p99_us": median("p99_us"),
                "errors": sum(sample["errors"] for sample in runs),
            })
    return rows


def print_table(rows):
    head = ["cell", "server", "ratio", "min-max", "low", "CPU ns/msg", "min-max",
            "busy", "msg/s", "p50 us", "p99 us", "errors"]
    lines = [head]
    for row in rows:
        is_floor = row["server"] == FLOOR
        lines.append([
            row["cell"], row["server"],
            "1" if is_floor else f"{row['ratio']:.3f}",
            "" if is_floor else f"{row['ratio_min']:.3f}-{row['ratio_max']:.3f}",
            "" if is_floor else f"{row['ratio_low']:.3f}",
            f"{row['cpu_ns_per_message']:.0f}",
            f"{row['cpu_ns_min']:.0f}-{row['cpu_ns_max']:.0f}",
            f"{row['server_busy']:.0%}", f"{row['messages_per_second']:.0f}",
            f"{row['p50_us']:.0f}", f"{row['p99_us']:.0f}", str(row["errors"]),
        ])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for number, line in enumerate(lines):
        if number > 1 and line[0] != lines[number - 1][0]:
            print()
        print("  ".join(text.ljust(width) if i < 2 else text.rjust(width)
                        for i, (text, width) in enumerate(zip(line, widths))).rstrip())


def cpu_model():
    try:
        match = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
        return match.group(1) if match else platform.machine()
    except OSError:
        return platform.machine()


# The command line


def parse_cells(text):
    cells = []
    for part in text.split(","):
        match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)", part.strip())
        if not match:
            raise argparse.ArgumentTypeError(f"not CONNECTIONSxBYTESxDEPTH: {part!r}")
        cells.append(tuple(map(int, match.groups())))
    return list(dict.fromkeys(cells))


def parse_server(text):
    name, equals, command = text.partition("=")
    if not name or not equals or not command or name == FLOOR:
        raise argparse.ArgumentTypeError(f"not NAME=COMMAND: {text!r}")
    return name, command


def positive(kind):
    def parse(text):
        value = kind(text)
        if not 0 < value <= 3600:
            raise argparse.ArgumentTypeError(f"not between 0 and 3600: {text}")
        return value
    return parse


def main():
    parser = argparse.ArgumentParser(description="Races echo servers against a minimal C epoll server.")
    parser.add_argument("--server", metavar="NAME=COMMAND", type=parse_server, action="append", default=[],
                        help="race this server too; the command gets ` --listen 127.0.0.1:0` appended "
                             "(may be repeated; the name of another one replaces that)")
    parser.add_argument("--no-default", action="store_true",
                        help="only the floor, and what --server names")
    parser.add_argument("--rounds", type=positive(int), default=5)
    parser.add_argument("--seconds", type=positive(float), default=2.0, help="length of one measurement")
    parser.add_argument("--cells", type=parse_cells, default=DEFAULT_CELLS,
                        metavar="CONNECTIONSxBYTESxDEPTH,...", help=f"default: {DEFAULT_CELLS}")
    parser.add_argument("--json", metavar="FILE", help="write all samples there")
    parser.add_argument("--no-pin", action="store_true", help="let the scheduler place server and load")
    options = parser.parse_args()

    raise_file_limit(max(cell[0] for cell in options.cells) + 64)
    load = build("load")
    servers = {FLOOR: shlex.quote(build(FLOOR))} if options.no_default else contestants()
    servers.update(options.server)
    if len(servers) < 2:
        raise RaceError("nothing to race against the floor")

    cpus = (None, None) if options.no_pin else choose_cpus()
    load_average = os.getloadavg()[0]
    placing = "not pinned" if cpus[0] is None else f"server on CPU {cpus[0]}, load on CPU {cpus[1]}"
    print(f"{cpu_model()}, Linux {platform.release()}, {os.cpu_count()} CPUs, {placing}")
    print(f"{options.rounds} rounds of {options.seconds:g} s, load average at the start {load_average:.2f}\n",
          flush=True)

    for name, command in servers.items():
        check_echo(name, command, cpus[0])
    samples = race(servers, options.cells, options.rounds, options.seconds, cpus, load)
    rows = summarize(samples)
    print_table(rows)

    if options.json:
        with open(options.json, "w") as file:
            json.dump({
                "cpu": cpu_model(), "cpus": os.cpu_count(), "kernel": platform.release(),
                "server_on_cpu": cpus[0], "load_on_cpu": cpus[1], "load_average": load_average,
                "rounds": options.rounds, "seconds": options.seconds, "summary": rows,
                "samples": {cell_name(cell): by_name for cell, by_name in samples.items()},
            }, file, indent=1)
            file.write("\n")
    if any(row["errors"] for row in rows):
        print("\nrows with errors say nothing about speed")
        return 1
    return 0


if __name__ == "__main__":
    run("race", main)
