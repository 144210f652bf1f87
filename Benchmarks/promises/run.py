#!/usr/bin/env python3
"""Races the promises of this repository against their peers and prints ratios, all taken in this one run.

See Benchmarks/README.md. The exit status is 0 if every target is met, 1 at a MISS, 2 if not everything was measured.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rows import FORMS, NAMES, ROWS
from workers import Trouble, Worker, count_allocations, count_instructions, count_system_calls

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
BUILT = PACKAGE / ".build" / "promises"
BUILD_LIMIT = 1200


def say(text):
    print(text, file=sys.stderr, flush=True)


def build():
    """Builds everything; returns the command of each contestant."""
    say("building ...")
    swift = ["swift", "build", "-c", "release", "--package-path", str(PACKAGE), "--product", "counts"]
    shown = subprocess.run(swift, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_LIMIT)
    if shown.returncode != 0:
        raise Trouble(shown.stdout)
    folder = subprocess.run(swift + ["--show-bin-path"], capture_output=True, text=True, check=True, timeout=60)
    counts = str(Path(folder.stdout.strip()) / "counts")
    BUILT.mkdir(parents=True, exist_ok=True)
    compile_c(["-shared", "-fPIC", "-o", str(preload()), str(HERE / "allocations.c")])
    contestants = {}
    for line in run([counts]).splitlines():
        name, *rows = line.split()
        contestants[name] = Contestant([counts, name], rows)
    contestants["c"] = c_contestant("c", "floor.c")
    contestants["c-reads"] = c_contestant("c-reads", "floor.c", "-DREADS")
    try:
        contestants["uv"] = c_contestant("uv", "uv.c", "-luv")
    except Trouble:
        say("skipped: libuv, whose headers and library are needed (Debian: libuv1-dev)")
    return contestants


@dataclass
class Contestant:
    command: list
    rows: list


def c_contestant(name, source, *options):
    support = PACKAGE / "Counted" / "Sources" / "CSupport"
    binary = BUILT / name
    compile_c(["-I", str(support / "include"), "-o", str(binary), str(HERE / source), str(support / "CSupport.c"),
               "-ldl", "-lpthread", *options])
    return Contestant([str(binary), "-"], run([str(binary)]).split())


def stripped(binary):
    """A copy with symbols but without debug information, which not every valgrind can read."""
    copy = BUILT / f"{Path(binary).name}-without-debug-information"
    if not copy.exists() or copy.stat().st_mtime < Path(binary).stat().st_mtime:
        subprocess.run(["strip", "--strip-debug", "-o", str(copy), binary], check=True, timeout=60)
    return str(copy)


def preload():
    return BUILT / "liballocations.so"


def compile_c(arguments):
    compiler = os.environ.get("CC", "cc")
    done = subprocess.run([compiler, "-O2", "-Wall", "-Wextra", *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Trouble(done.stderr)


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def entrants(row, contestants):
    """The available contestants of a row, ours first."""
    names = ["ours"]
    for peer in row.peers:
        names += FORMS.get(peer, (peer,))
    return [name for name in names if name in contestants and row.key in contestants[name].rows]


class Race:
    """The processes of all contestants, which serve many rows."""

    def __init__(self, contestants, options):
        self.contestants = contestants
        self.options = options
        self.workers = {}

    def times(self, row):
        """Processor nanoseconds per step, a list of rounds for each entrant."""
        names = entrants(row, self.contestants)
        if row.alone:
            self.end()
        sizes = {name: self.calibrate(row, name) for name in names}
        samples = {name: [] for name in names}
        walls = {name: [] for name in names}
        for turn in range(self.options.rounds):
            # A contestant that runs first in one round runs last in another.
            order = names[turn % len(names):] + names[:turn % len(names)]
            for name in order if turn % 2 == 0 else reversed(order):
                cost = self.ask(name, row.key, sizes[name])
                samples[name].append(cost.cpu / sizes[name] / row.steps)
                walls[name].append(cost.wall / sizes[name] / row.steps)
        if row.alone:
            self.end()
        return samples, walls

    def calibrate(self, row, name):
        """The number of units that fill a sample; also warms up."""
        goal = self.options.milliseconds * 1e6
        n = 1
        while True:
            cost = self.ask(name, row.key, n)
            if cost.wall > goal / 8 or n > 1e9:
                break
            n *= 4
        # Once more, warm.
        cost = self.ask(name, row.key, n)
        return max(1, int(n * goal / max(cost.wall, 1)))

    def ask(self, name, key, n):
        if name not in self.workers:
            self.workers[name] = Worker(self.contestants[name].command)
        return self.workers[name].ask(key, n)

    def end(self):
        for worker in self.workers.values():
            worker.end()
        self.workers = {}


def counted(contestants, rows, options):
    """Allocations and instructions per step: {contestant: {row: number}} each."""
    jobs = []
    for name in contestants:
        own = [row for row in rows if name in entrants(row, contestants)]
        groups = [[row for row in own if not row.alone], *([row] for row in own if row.alone)]
        jobs += [(name, group) for group in groups if group]
    allocations = {name: {} for name in contestants}
    instructions = {name: {} for name in contestants}
    if options.allocations:
        say("counting allocations ...")
        for name, group in jobs:
            allocations[name] |= count_allocations(contestants[name].command, group, preload())
    if options.instructions and not shutil.which("valgrind"):
        say("skipped: instructions, for which valgrind is needed")
    elif options.instructions:
        say("counting instructions ...")
        bare = {contestant.command[0]: stripped(contestant.command[0]) for contestant in contestants.values()}
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
            running = []
            for name, group in jobs:
                binary, *rest = contestants[name].command
                running.append((name, pool.submit(count_instructions, [bare[binary], *rest], group, folder)))
            for name, future in running:
                try:
                    instructions[name] |= future.result()
                except (Trouble, OSError, subprocess.SubprocessError) as trouble:
                    say(f"skipped: instructions of {name}: {trouble}")
    return allocations, instructions


def other_figures(contestants, row):
    """Our own figures that a target needs."""
    figures = {}
    wanted = {target.what for target in row.targets}
    command = contestants["ours"].command
    if "system_calls" in wanted and not shutil.which("strace"):
        say("skipped: system calls, for which strace is needed")
    elif "system_calls" in wanted:
        figures["system_calls"] = count_system_calls(command, row)
    if "growth_kib" in wanted:
        short, long = (one_stretch(command, row, n) for n in (row.long // 10, row.long))
        figures |= {"long_steps": row.long, "long_ns": long.cpu / row.long, "peak_kib": long.peak,
                    "growth_kib": long.peak - short.peak}
    return figures


def one_stretch(command, row, n):
    worker = Worker(command)
    try:
        return worker.ask(row.key, n)
    finally:
        worker.end()


def summary(row, samples, walls, allocations, instructions, figures):
    """The entry of a row in the JSON file."""
    def facts(name):
        return {
            "ns": statistics.median(samples[name]),
            "wall_ns": statistics.median(walls[name]),
            "samples_ns": samples[name],
            "allocations": allocations.get(name, {}).get(row.key),
            "instructions": instructions.get(name, {}).get(row.key),
        }

    ours = {**facts("ours"), **figures}
    peers = []
    for peer in row.peers:
        forms = [form for form in FORMS.get(peer, (peer,)) if form in samples]
        if not forms:
            continue
        ranked = sorted(forms, key=lambda form: statistics.median(samples[form]))
        form = ranked[0]
        ratios = [mine / theirs for mine, theirs in zip(samples["ours"], samples[form])]
        peers.append({
            "peer": peer, "form": form, "name": row.names.get(form, NAMES[form]), **facts(form),
            "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)},
            "other_forms": {other: facts(other) for other in ranked[1:]},
        })
    result = {"row": row.key, "title": row.title, "steps": row.steps, "ours": ours, "peers": peers, "targets": []}
    for target in row.targets:
        result["targets"].append(judged(target, result))
    return result


def judged(target, result):
    value = None
    if target.what == "ratio":
        for peer in result["peers"]:
            if peer["peer"] == target.peer:
                value = peer["ratio"]["median"]
    else:
        # Other work on the machine can only add time, so a limit in nanoseconds applies to the quietest round.
        value = min(result["ours"]["samples_ns"]) if target.what == "ns" else result["ours"].get(target.what)
    # Counts are fractions if a stretch had a few more blocks by chance.
    met = None if value is None else value <= target.limit * (1.005 if target.what == "allocations" else 1)
    return {"what": target.what, "peer": target.peer, "limit": target.limit, "value": value, "met": met}


def figure(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def processor():
    """The number of processors and their name."""
    models = {line.split(":", 1)[1].strip()
              for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")}
    return f"{os.cpu_count()} x {', '.join(models) or platform.machine()}"


HEADER = (f"{'row, peer':46} {'ns ours':>9} {'ns peer':>10} {'ratio':>7} {'min-max':>14}"
          f" {'allocs':>13} {'instructions':>17}")


def show(result):
    ours = result["ours"]
    print(result["title"])
    for peer in result["peers"]:
        # Far from 1, two decimals would be too few or too many.
        digits = 4 if peer["ratio"]["median"] < 0.05 else 2
        spread = f"{peer['ratio']['min']:.{digits}f}-{peer['ratio']['max']:.{digits}f}"
        blocks = f"{figure(ours['allocations'])}/{figure(peer['allocations'])}"
        steps = f"{figure(ours['instructions'], 0)}/{figure(peer['instructions'], 0)}"
        print(f"    {peer['name']:42} {figure(ours['ns']):>9} {figure(peer['ns']):>10} {peer['ratio']['median']:>7.{digits}f}"
              f" {spread:>14} {blocks:>13} {steps:>17}")
    if "growth_kib" in ours:
        print(f"      {ours['long_steps']:,} steps: {ours['long_ns']:.0f} ns each, at most {ours['peak_kib']:,} KiB"
              f" resident, {ours['growth_kib']:,} KiB more than a tenth of them")
    for target in result["targets"]:
        what = f"ratio to {NAMES[target['peer']]}" if target["peer"] else target["what"]
        verdict = {True: "OK", False: "MISS", None: "not measured"}[target["met"]]
        digits = 4 if target["limit"] < 0.05 and target["peer"] else 3 if target["peer"] else 1
        print(f"      target: {what} <= {target['limit']:g}: {figure(target['value'], digits)}  {verdict}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: under 2 minutes")
    parser.add_argument("--rounds", type=int, help="rounds a row (15, quick: 5)")
    parser.add_argument("--milliseconds", type=float, help="length of a sample (60, quick: 15)")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="these rows, or those that begin so")
    parser.add_argument("--no-instructions", dest="instructions", action="store_false")
    parser.add_argument("--no-allocations", dest="allocations", action="store_false")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="do not bind contestants to a processor")
    parser.add_argument("--json", type=Path, default=BUILT / "results.json", help="where the results go")
    options = parser.parse_args()
    options.rounds = options.rounds or (5 if options.quick else 15)
    options.milliseconds = options.milliseconds or (15 if options.quick else 60)
    return options


def main():
    options = arguments()
    rows = [row for row in ROWS
            if not options.only or any(row.key.startswith(prefix) for prefix in options.only)]
    if not rows:
        raise Trouble(f"no row begins with {' or '.join(options.only)}")
    contestants = build()
    begun = time.monotonic()
    rows = [row for row in rows if row.key in contestants["ours"].rows]
    allocations, instructions = counted(contestants, rows, options)
    if options.pin:
        # One processor for all, so that other work disturbs all contestants alike.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    race = Race(contestants, options)
    results = []
    say("racing ...")
    print(HEADER)
    try:
        for row in rows:
            results.append(summary(
                row, *race.times(row), allocations, instructions, other_figures(contestants, row)))
            show(results[-1])
            sys.stdout.flush()
    finally:
        race.end()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({
        "system": platform.platform(), "processor": processor(), "rounds": options.rounds, "rows": results,
    }, indent=1))
    say(f"{time.monotonic() - begun:.0f} s; {options.json}")
    return 1 if any(target["met"] is False for result in results for target in result["targets"]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Trouble, subprocess.SubprocessError, OSError) as trouble:
        say(f"run.py: {trouble}")
        sys.exit(2)
