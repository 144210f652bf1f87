"""Processes that do stretches of work on request, and the counts of their work."""
import os
import select
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 120  # seconds for one stretch
COUNTING = 400  # seconds for all that one contestant has counted


class Trouble(Exception):
    """An error that ends the run, with a message for the user."""


@dataclass
class Cost:
    wall: int
    cpu: int
    allocations: int
    peak: int


class Worker:
    """A contestant. Lines `ROW N` go in, a line of costs comes out for each."""

    def __init__(self, command, environment=None):
        self.command = command
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            env={**os.environ, **(environment or {})})

    def ask(self, row, n):
        self.process.stdin.write(f"{row} {n}\n".encode())
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            part = self.process.stdout.read(200) if ready else b""
            if not part:
                self.process.kill()
                raise Trouble(f"{' '.join(self.command)}: {'died' if ready else 'no answer'} at `{row} {n}`")
            line += part
        return Cost(*map(int, line.split()))

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def count_allocations(command, rows, library):
    """Blocks allocated per step, by the difference of two lengths."""
    worker = Worker(command, {"LD_PRELOAD": str(library)})
    counts = {}
    try:
        for row in rows:
            worker.ask(row.key, row.count)
            short = worker.ask(row.key, row.count)
            long = worker.ask(row.key, 3 * row.count)
            if short.allocations >= 0:
                counts[row.key] = (long.allocations - short.allocations) / (2 * row.count * row.steps)
    finally:
        worker.end()
    return counts


def count_instructions(command, rows, folder):
    """Instructions per step, by the difference of two lengths, under callgrind.

    One process does all rows. It calls bench_mark before and after each stretch, and callgrind writes out and resets
    its counts there, so every second of its files is a stretch.
    """
    if not rows:
        return {}
    lines = "".join(f"{row.key} {row.count}\n" * 2 + f"{row.key} {3 * row.count}\n" for row in rows)
    prefix = Path(tempfile.mkdtemp(dir=folder)) / "out"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--dump-before=bench_mark", f"--callgrind-out-file={prefix}", *command],
        input=lines, capture_output=True, text=True, timeout=COUNTING)
    if done.returncode != 0:
        raise Trouble(f"callgrind: {done.stderr[-2000:]}")

    def stretch(number):
        with open(f"{prefix}.{2 * number}") as file:
            for line in file:
                if line.startswith("summary:"):
                    return int(line.split()[1])
        raise Trouble("callgrind's file has no summary")

    counts = {}
    for index, row in enumerate(rows):
        short, long = stretch(3 * index + 2), stretch(3 * index + 3)
        counts[row.key] = (long - short) / (2 * row.count * row.steps)
    return counts


def count_system_calls(command, row):
    """System calls per step, by the difference of two lengths; None if strace is not permitted."""
    totals = []
    for times in (1, 3):
        with tempfile.NamedTemporaryFile("r") as report:
            done = subprocess.run(
                ["strace", "-f", "-c", "-o", report.name, *command, row.key, str(times * row.count)],
                capture_output=True, text=True, timeout=PATIENCE)
            # Share, seconds, microseconds per call, calls, perhaps errors, name.
            lines = [line.split() for line in report.read().splitlines()]
        calls = [int(words[3]) for words in lines if len(words) > 4 and words[3].isdigit() and words[-1] != "total"]
        if done.returncode != 0 or not calls:
            return None
        totals.append(sum(calls))
    return (totals[1] - totals[0]) / (2 * row.count * row.steps)
