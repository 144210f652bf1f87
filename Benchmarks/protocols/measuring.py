"""Common to the races of protocols: our server beside another one of its protocol, under a load of requests.

Compared are the CPU time of the server's process for one request, user's and system's, and requests per second. In each
round all servers are started, on one processor, and measured one right after the other, with the load on another processor;
every other round takes them in the reversed order. Ratios are of one round; printed are their median and range. Other
programs on the machine distort requests per second strongly, and CPU time less.

A cell of a race is the request and the number that a client sends at once: ("get", 16).
"""
import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "echo"))
from servers import RaceError, ROOT, Server, build, choose_cpus, find_product, pinning, run  # noqa: E402,F401


def options(description):
    """A parser with the common options of all races of protocols."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pipelines", type=lambda text: [int(number) for number in text.split(",")], default=[1, 16],
                        help="how many requests a client sends at once")
    parser.add_argument("--server", metavar="PATH", action="append", default=[],
                        help="another build of our server, for instance an earlier one; may be repeated")
    parser.add_argument("--no-pin", action="store_true", help="do not bind servers and clients to processors")
    return parser


def are_installed(*programs):
    """True if all these programs are installed; prints the first missing one."""
    for program in programs:
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed")
            return False
    return True


def product_command(product, package):
    """The command of a product, which must have a release build."""
    path = find_product(product, ROOT / package)
    if path is None:
        raise RaceError(f"no {product}: swift build -c release --package-path {package} --product {product}")
    return shlex.quote(path)


def other_builds(arguments):
    """The contestants that the option --server names."""
    return {os.path.relpath(path): (Server, shlex.quote(path)) for path in arguments.server}


def run_load(server, command, cpu, seconds):
    """Runs a program that sends requests. Returns its result, and the server's CPU time in microseconds meanwhile."""
    before = cpu_nanoseconds(server.process.pid)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds,
                          preexec_fn=pinning(cpu))
    return done, (cpu_nanoseconds(server.process.pid) - before) / 1000


def cpu_nanoseconds(pid):
    """The CPU time of all threads of a process, which needs no rounding to ticks. See clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def race(contestants, cells, measure, arguments, check=lambda servers: None):
    """Runs all rounds. Returns the samples by contestant and cell, one a round.

    `contestants` are, by name, the class that runs the server, and its command. `measure` is given a server, a cell and a
    processor for the load, and returns the sample: microseconds of CPU time for one request, and requests per second.
    `check` is given the servers of a round, and raises a RaceError if they cannot be compared.
    """
    server_cpu, load_cpu = (None, None) if arguments.no_pin else choose_cpus()
    samples = {(name, cell): [] for name in contestants for cell in cells}
    for number in range(arguments.rounds):
        order = list(contestants) if number % 2 == 0 else list(reversed(contestants))
        servers = {}
        try:
            for name in order:
                kind, command = contestants[name]
                servers[name] = kind(name, command, server_cpu)
            check(servers.values())
            for cell in cells:
                for name in order:
                    samples[name, cell].append(measure(servers[name], cell, load_cpu))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        finally:
            for server in servers.values():
                server.stop()
    return samples


def report(samples, cells, theirs, targets, without_target=None):
    """Prints a table for each contestant beside the other server, and returns 1 if one misses a target, 0 otherwise.

    `targets` are, by the number of requests that a client sends at once, the most CPU time for one request and the fewest
    requests per second, as parts of the other server's; None is no target, as all are for the contestant `without_target`.
    """
    ours = list(dict.fromkeys(name for name, _ in samples if name != theirs))
    misses = 0
    for name in ours:
        if len(ours) > 1:
            print(f"\n{name}")
        print(f"{'P':>3} {'':6} {'CPU µs ours':>12} {theirs:>12} {'ratio':>19}  "
              f"{'requests/s':>10} {theirs:>12} {'ratio':>19}")
        for cell in cells:
            target = (None, None) if name == without_target else targets.get(cell[1], (None, None))
            misses += print_row(cell, samples[name, cell], samples[theirs, cell], *target)
    return min(misses, 1)


def print_row(cell, mine, theirs, most_cpu, fewest_requests):
    cpu, their_cpu, cpu_ratios = columns(mine, theirs, 0)
    rate, their_rate, rate_ratios = columns(mine, theirs, 1)
    verdicts = []
    if most_cpu is not None:
        verdicts.append(f"CPU {'OK' if statistics.median(cpu_ratios) <= most_cpu else 'MISS'} ({most_cpu})")
    if fewest_requests is not None:
        verdicts.append(f"rate {'OK' if statistics.median(rate_ratios) >= fewest_requests else 'MISS'} ({fewest_requests})")
    print(f"{cell[1]:>3} {cell[0]:6} {cpu:>12.2f} {their_cpu:>12.2f} {ratio_text(cpu_ratios):>19}  {rate:>10.0f} "
          f"{their_rate:>12.0f} {ratio_text(rate_ratios):>19}  {', '.join(verdicts)}")
    return sum("MISS" in verdict for verdict in verdicts)


def columns(mine, theirs, index):
    """The medians of a column of both servers' samples, and the ratios of all rounds."""
    return (statistics.median(sample[index] for sample in mine), statistics.median(sample[index] for sample in theirs),
            [one[index] / other[index] for one, other in zip(mine, theirs)])


def ratio_text(ratios):
    """The median of ratios, and their range."""
    return f"{statistics.median(ratios):.2f} [{min(ratios):.2f}–{max(ratios):.2f}]"
