#!/usr/bin/env python3
"""Races echo servers against a minimal epoll server written in C (floor.c).

What is compared is the CPU time a server spends per echoed message. See
README.md for how to read the table.
"""

import argparse
import json
import os
import platform
import re
import resource
import select
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = HERE / ".build"

FLOOR = "floor"
DEFAULT_SERVER = "swift-reactor"
DEFAULT_CELLS = "64x64x1,1000x64x1,64x64x16,16x16384x4"
WARMUP_SECONDS = 0.5

START_SECONDS = 10
STOP_SECONDS = 3


class RaceError(Exception):
    pass


# Building


def build(name):
    source, program = HERE / f"{name}.c", BUILD / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(exist_ok=True)
        command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-Wall", "-Wextra"]
        try:
            subprocess.run(command + ["-o", str(program), str(source)], check=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as error:
            raise RaceError(f"cannot build {source.name}: {error}")
    return str(program)


def find_swift_server():
    try:
        answer = subprocess.run(
            ["swift", "build", "-c", "release", "--show-bin-path"],
            cwd=ROOT, check=True, timeout=120, stdout=subprocess.PIPE, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RaceError(f"cannot find the release build: {error}")
    program = Path(answer.stdout.strip().splitlines()[-1]) / "echo-server"
    if not program.exists():
        raise RaceError("there is no release build; run: swift build -c release --product echo-server")
    return str(program)


# CPUs


def cpus_of_core(cpu):
    """The CPUs that share a core with this one, itself included."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
        cpus = set()
        for part in text.strip().split(","):
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
        return cpus
    except (OSError, ValueError):
        return {cpu}


def choose_cpus():
    """One CPU for the server and one for the load, on two cores if possible."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        return None, None
    server = available[-1]
    others = [cpu for cpu in available if cpu != server]
    apart = [cpu for cpu in others if cpu not in cpus_of_core(server)]
    return server, (apart or others)[0]


def pinning(cpu):
    # Before exec, so that threads the program starts inherit it.
    return None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})


# Servers


class Server:
    """A running server. Use with `with`: it is ended whatever happens."""

    def __init__(self, name, command, cpu):
        self.name = name
        self.output = tempfile.TemporaryFile()
        arguments = shlex.split(command) + ["--listen", "127.0.0.1:0"]
        try:
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=self.output,
                stderr=subprocess.STDOUT, preexec_fn=pinning(cpu))
        except (OSError, subprocess.SubprocessError) as error:
            self.output.close()
            raise RaceError(f"{name}: cannot start: {error}")
        try:
            self.port = self.wait_for_port()
            self.check_owner()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def read_output(self):
        size = os.fstat(self.output.fileno()).st_size
        return os.pread(self.output.fileno(), min(size, 4096), 0).decode(errors="replace")

    def wait_for_port(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            match = re.search(r"^listening on 127\.0\.0\.1:(\d+)\s*\n", self.read_output(), re.M)
            if match and not ended:
                return int(match.group(1))
            if ended:
                raise RaceError(f"{self.name}: ended at once: {self.read_output().strip()!r}")
            time.sleep(0.01)
        raise RaceError(f"{self.name}: did not say where it listens: {self.read_output()!r}")

    def check_owner(self):
        """The listening socket must belong to the very process whose CPU time is
        measured: not to another program, nor to a child of a wrapper script."""
        address = f"0100007F:{self.port:04X}" if sys.byteorder == "little" else f"7F000001:{self.port:04X}"
        inodes = set()
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1] == address and fields[3] == "0A":
                inodes.add(f"socket:[{fields[9]}]")
        directory = f"/proc/{self.process.pid}/fd"
        for fd in os.listdir(directory):
            try:
                if os.readlink(f"{directory}/{fd}") in inodes:
                    return
            except OSError:
                pass
        raise RaceError(f"{self.name}: port {self.port} is not listened on by process {self.process.pid}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"{self.name}: did not end on SIGTERM, killed", file=sys.stderr)
                self.process.kill()
                self.process.wait()
        elif self.process.returncode != 0:
            print(f"{self.name}: ended by itself with {self.process.returncode}: "
                  f"{self.read_output().strip()!r}", file=sys.stderr)
        self.output.close()


def check_echo(name, command, cpu, total=24 << 20):
    """One big transfer to a client that does not read until nothing more can be
    written, so that the server meets partial writes. All must come back, then
    the end of the stream."""
    data = (b"".join(i.to_bytes(4, "little") for i in range(1 << 16)) * (total // (1 << 18) + 1))[:total]
    with Server(name, command, cpu) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        client.settimeout(5)
        client.connect(("127.0.0.1", server.port))
        client.setblocking(False)
        sent, received, reading, ended = 0, bytearray(), False, False
        view = memoryview(data)
        deadline = time.monotonic() + 30
        try:
            while not ended:
                if time.monotonic() > deadline:
                    raise RaceError(f"{name}: {len(received)} of {total} bytes came back in 30 s")
                readable, writable, _ = select.select(
                    [client] if reading else [], [client] if sent < total else [], [], 0.2)
                if writable:
                    sent += client.send(view[sent:sent + (1 << 20)])
                    if sent == total:
                        client.shutdown(socket.SHUT_WR)
                else:
                    reading = True
                if readable:
                    piece = client.recv(1 << 20)
                    received += piece
                    ended = not piece
        except OSError as error:
            raise RaceError(f"{name}: connection lost after {len(received)} of {total} bytes: {error}")
        if received != data:
            raise RaceError(f"{name}: does not echo: {len(received)} of {total} bytes came back"
                            + (", altered" if len(received) == total else ""))


# Measuring


def measure(name, command, cell, seconds, cpus, load):
    """One run of one server in one cell, in a fresh process."""
    server_cpu, load_cpu = cpus
    with Server(name, command, server_cpu) as server:
        arguments = [load, "--cpu-of", str(server.process.pid), "127.0.0.1", str(server.port),
                     *map(str, cell), str(seconds), str(WARMUP_SECONDS)]
        try:
            run = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 timeout=seconds + 60, preexec_fn=pinning(load_cpu))
        except subprocess.TimeoutExpired:
            raise RaceError(f"{name}: the load did not end")
        if run.stderr:
            print(f"{name}: {run.stderr.strip()}", file=sys.stderr)
        if run.returncode not in (0, 1):
            raise RaceError(f"{name}: the load ended with {run.returncode}")
        sample = json.loads(run.stdout)
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
        # Cells are inside rounds, so that a slow spell of the machine is
        # spread over all cells; every other round runs the other way round, so
        # that nobody always goes first.
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
    head = ["cell", "server", "ratio", "min-max", "CPU ns/msg", "min-max",
            "busy", "msg/s", "p50 us", "p99 us", "errors"]
    lines = [head]
    for row in rows:
        is_floor = row["server"] == FLOOR
        lines.append([
            row["cell"], row["server"],
            "1" if is_floor else f"{row['ratio']:.3f}",
            "" if is_floor else f"{row['ratio_min']:.3f}-{row['ratio_max']:.3f}",
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
                             f"(may be repeated; {DEFAULT_SERVER}=... replaces the default one)")
    parser.add_argument("--no-default", action="store_true",
                        help=f"leave out {DEFAULT_SERVER}, the release build of this package's echo-server")
    parser.add_argument("--rounds", type=positive(int), default=5)
    parser.add_argument("--seconds", type=positive(float), default=2.0, help="length of one measurement")
    parser.add_argument("--cells", type=parse_cells, default=DEFAULT_CELLS,
                        metavar="CONNECTIONSxBYTESxDEPTH,...", help=f"default: {DEFAULT_CELLS}")
    parser.add_argument("--json", metavar="FILE", help="write all samples there")
    parser.add_argument("--no-pin", action="store_true", help="let the scheduler place server and load")
    options = parser.parse_args()

    # So that the servers are ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # inherited by servers and load
    most = max(cell[0] for cell in options.cells)
    if hard != resource.RLIM_INFINITY and hard < most + 64:
        raise RaceError(f"{most} connections need more open files than the {hard} allowed")

    servers = {FLOOR: shlex.quote(build(FLOOR))}
    load = build("load")
    servers.update(options.server)
    if not options.no_default and DEFAULT_SERVER not in servers:
        servers[DEFAULT_SERVER] = shlex.quote(find_swift_server())
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
    try:
        sys.exit(main())
    except RaceError as error:
        print(f"race: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
