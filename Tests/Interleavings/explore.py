#!/usr/bin/env python3
"""Runs the lock-free parts of the library in every interleaving of the scenarios of Tests/Interleavings.

    Tests/Interleavings/explore.py [--seconds 60] [SCENARIO]   some 60 seconds: without a bound, or with two preemptions
    Tests/Interleavings/explore.py --seconds 3600 --preemptions 9 --limit 1000000000
    Tests/Interleavings/explore.py --sanitize              the same under the thread sanitizer, which sees only what is declared
    Tests/Interleavings/explore.py --mutants [NUMBER...]   each mistake of the list below must be found

See docs/explanation/interleavings.md.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "Tests/Interleavings"

# Mistakes, each as a file, the correct text, and its replacement. All are compiled at once: a run enables the one whose number is
# in MUTANT. Those after the line are wrong memory orderings, which an x86 machine hides; the sanitizer finds them.
CORE, REACTOR = "Promises/Core/", "Reactor/"
MUTANTS = [
    ("no second look before a settlement by a store", CORE + "PromiseCore+Settle.swift",
     "isReferencedOnce && state.load() == seen", "isReferencedOnce && (isMutant(#) || state.load() == seen)"),
    ("claim is no atomic operation", CORE + "PromiseCore+Settle.swift",
     "            if state.tryToReplace(&seen, by: seen.claimed) { return true }",
     "            if isMutant(#) {\n                state.store(seen.claimed)\n                return true\n            }\n"
     "            if state.tryToReplace(&seen, by: seen.claimed) { return true }"),
    ("the list is taken while it is locked", CORE + "PromiseCore+Settle.swift",
     "            if seen.isLocked {\n", "            if seen.isLocked && !isMutant(#) {\n"),
    ("unlock forgets what was pushed", CORE + "LockedWaiters.swift",
     "            var seen = core.state.load()\n            while seen.waiters == newest {",
     "            var seen = core.state.load()\n            if isMutant(#) { return core.state.store(seen.unlocked(withWaiterAt: kept?.address ?? 0)) }\n"
     "            while seen.waiters == newest {"),
    ("late waiters overtake", CORE + "PromiseCore+Settle.swift",
     "if state.replace(seen, by: outcome.settling) {", "if state.replace(seen, by: isMutant(#) ? outcome : outcome.settling) {"),
    ("the waiter of a hang is used again before it has arrived", "Promises/Awaiting/Hang.swift",
     "if wakeUp.borrow({ $0.hasArrived }) {", "if wakeUp.borrow({ $0.hasArrived || isMutant(#) }) {"),
    ("a waiter is not retained at the end of its loop", CORE + "PromiseCore.swift",
     "let node = CoreRef.retaining(self)\n        defer", "let node = isMutant(#) ? ref : CoreRef.retaining(self)\n        defer"),
    ("park is no atomic operation", REACTOR + "Jobs/Mailbox.swift",
     "    package func park() -> Bool {\n",
     "    package func park() -> Bool {\n        if isMutant(#) {\n            if !isEmpty { return false }\n"
     "            word.store(Self.parked, ordering: .releasing)\n            return true\n        }\n        return "),
    ("a push is no atomic operation", CORE + "StateWord.swift",
     "        let (done, now) = word.compareExchange(\n            expected: seen.bits, desired: seen.pushing",
     "        if isMutant(#) {\n            store(seen.pushing(waiterAt: address))\n            return true\n        }\n"
     "        let (done, now) = word.compareExchange(\n            expected: seen.bits, desired: seen.pushing"),
    ("a settlement without waiters is no atomic operation", CORE + "PromiseCore+Settle.swift",
     "            guard state.replace(seen, by: outcome) else { return false }\n            if passingReference { release() }",
     "            if isMutant(#) { state.store(outcome) } else if !state.replace(seen, by: outcome) { return false }\n"
     "            if passingReference { release() }"),
    ("a waiter receives its source without a reference", CORE + "Delivery.swift",
     "        core.retain()\n        let word", "        if !isMutant(#) { core.retain() }\n        let word"),
    ("a waiter is withdrawn and delivered to", CORE + "Delivery.swift",
     "        // Its own thread may be withdrawing it.\n",
     "        if isMutant(#), node.borrow({ $0.sourceWord.load() == .waiting(forCoreAt: address) }) {\n"
     "            node.borrow { $0.sourceWord.store(word) }\n            return true\n        }\n"),
    ("unlock forgets that the core was claimed", CORE + "StateWord.swift",
     "StateWord(bits: address | bits & ~Self.addressMask & ~Self.busyBit)",
     "StateWord(bits: address | bits & ~Self.addressMask & ~Self.busyBit & ~(isMutant(#) ? Self.markBit : 0))"),
    ("close of a mailbox is no atomic operation", REACTOR + "Jobs/Mailbox.swift",
     "        let last = word.exchange(Self.closed, ordering: .acquiringAndReleasing)\n",
     "        let last = isMutant(#) ? word.load(ordering: .acquiring) : word.exchange(Self.closed, ordering: .acquiringAndReleasing)\n"
     "        if isMutant(#) { word.store(Self.closed, ordering: .releasing) }\n"),
    ("nobody wakes a loop that sleeps", REACTOR + "Jobs/Mailbox.swift",
     "if done { return seen == Self.parked ?", "if done { return seen == Self.parked && !isMutant(#) ?"),
    ("late waiters are forgotten", CORE + "Delivery.swift",
     "        rest = rest?.reverseInPlace()\n", "        if isMutant(#) { rest = nil }\n        rest = rest?.reverseInPlace()\n"),
    ("a lease is given back twice", REACTOR + "Groups/LoopGroup.swift",
     "            if isCancelled.exchange(true, ordering: .relaxed) { return false }\n            member.load.subtract",
     "            if isMutant(#) {\n                if isCancelled.load(ordering: .relaxed) { return false }\n"
     "                isCancelled.store(true, ordering: .relaxed)\n            } else if isCancelled.exchange(true, ordering: .relaxed) {\n"
     "                return false\n            }\n            member.load.subtract"),
    ("the end of a wait of a task is no atomic operation", "Promises/Awaiting/AwaitingTask.swift",
     "        while seen < WaitPhase.notified {\n",
     "        while seen < WaitPhase.notified {\n            if isMutant(#) {\n                phase.store(end, ordering: .releasing)\n"
     "                break\n            }\n"),
    ("every end of several loops is the last", "Promises/Combinators/Remote+Ended.swift",
     "return left == 0", "return left == 0 || isMutant(#)"),
    ("the job that reports the end of external work is sent once", REACTOR + "Loop/ExternalWork.swift",
     "InternalJob { _ = self.shared", "InternalJob { if !isMutant(#) { _ = self.shared"),
    ("a loop that has ended takes the waiter of a hang", "Promises/Awaiting/Hang.swift",
     "    try loop.borrow { try $0.checkWhetherItCanWait() }\n",
     "    if !isMutant(#) { try loop.borrow { try $0.checkWhetherItCanWait() } }\n"),
    ("a promise is linked that another thread knows", CORE + "PromiseCore+Adopt.swift",
     "} && inner.referenceCount == 2", "} && (isMutant(#) || inner.referenceCount == 2)"),
    ("the marks of a promise are read before its count", CORE + "PromiseCore+Adopt.swift",
     "        inner.borrow { $0.loop.is(here)",
     "        if isMutant(#) {\n            let isMarked = inner.borrow { $0.has(.isDetached) }\n"
     "            return inner.referenceCount == 2 && !isMarked\n        }\n        return inner.borrow { $0.loop.is(here)"),
    ("who has withdrawn does not look again at the source", CORE + "Cancellation.swift",
     "if core !== start && (core.role", "if !isMutant(#) && core !== start && (core.role"),
    ("two parties take the same step of a dispatched promise", "Promises/Operators/DispatchedPromise.swift",
     "guard progress.stage == stage else { return nil }", "guard isMutant(#) || progress.stage == stage else { return nil }"),
    ("a source is not retained before its waiter withdraws", CORE + "PromiseCore+Cancel.swift",
     "        guard let source = word.source, sourceWord",
     "        if isMutant(#) {\n            guard word.isWaiting, sourceWord.replace(word, by: .taken) else { return nil }\n"
     "            leaveCrossThreadWaiters()\n            return word.core.object\n        }\n"
     "        guard let source = word.source, sourceWord"),
    ("the end of a watch forgets the signal that has arrived", REACTOR + "Signals/SignalRegistry.swift",
     "        if takeUnhandled(bit(signal)) { clinux", "        if !isMutant(#), takeUnhandled(bit(signal)) { clinux"),
    ("a reference to a loop is ended by no atomic operation", REACTOR + "LoopParts/SharedLoopState.swift",
     "    func remove() -> Bool { count.subtract",
     "    func remove() -> Bool {\n        if isMutant(#) {\n            let left = count.load(ordering: .relaxed) - 1\n"
     "            count.store(left, ordering: .relaxed)\n            return left == 0\n        }\n        return count.subtract"),
    ("a loop that has references does not own itself", REACTOR + "Loop/EventLoop+References.swift",
     "        let reference = Unmanaged.passRetained(self)\n",
     "        let reference = isMutant(#) ? Unmanaged.passUnretained(self) : Unmanaged.passRetained(self)\n"),
    ("a cancellation is lost that comes when the waiter has been delivered to", CORE + "PromiseCore+Cancel.swift",
     "} else if loop != nil {", "} else if loop != nil && !isMutant(#) {"),
    ("a closure begins inline after its cancellation", "Promises/Operators/DispatchedPromise.swift",
     "if previous.awaitsCancellation && !isCancellation { cancel() }", "if previous.awaitsCancellation && !isCancellation && !isMutant(#) { cancel() }"),
    ("an outcome passes an inline handler after its cancellation", "Promises/Operators/DispatchedPromise.swift",
     "let isLate = previous.awaitsCancellation &&", "let isLate = !isMutant(#) && previous.awaitsCancellation &&"),
    ("a dispatched handler waits for what nobody wants", "Promises/Operators/DispatchedPromise.swift",
     "            return progress.awaitsCancellation ||", "            return !isMutant(#) && progress.awaitsCancellation ||"),
    ("the claim of a cancellation is taken for a settlement", CORE + "PromiseCore+Cancel.swift",
     "!seen.isClaimable && seen.isLocked { sched_yield() }", "!seen.isClaimable && seen.isLocked && !isMutant(#) { sched_yield() }"),
    ("an observer does not look again whether the handler has changed", REACTOR + "Diagnostics/LoopProbe.swift",
     "if number & 1 == 0, sequence.load(ordering: .relaxed) == number",
     "if number & 1 == 0, isMutant(#) || sequence.load(ordering: .relaxed) == number"),
    # ----
    ("relaxed: a load of the state", CORE + "StateWord.swift",
     "func load() -> StateWord { StateWord(bits: word.load(ordering: .acquiring)) }",
     "func load() -> StateWord { StateWord(bits: word.load(ordering: isMutant(#) ? .relaxed : .acquiring)) }"),
    ("relaxed: a push", CORE + "StateWord.swift", "successOrdering: .releasing,", "successOrdering: isMutant(#) ? .relaxed : .releasing,"),
    ("relaxed: a settlement", CORE + "StateWord.swift",
     "word.compareExchange(expected: seen.bits, desired: state.bits, ordering: .acquiringAndReleasing).exchanged",
     "word.compareExchange(expected: seen.bits, desired: state.bits, ordering: isMutant(#) ? .relaxed : .acquiringAndReleasing).exchanged"),
    ("no fence after a look whether a reference is the only one", CORE + "CoreRef.swift",
     "\n    atomicMemoryFence(ordering: .acquiring)\n", "\n    if !isMutant(#) { atomicMemoryFence(ordering: .acquiring) }\n"),
    ("relaxed: mail is taken", REACTOR + "Jobs/Mailbox.swift",
     "word.exchange(0, ordering: .acquiring)", "word.exchange(0, ordering: isMutant(#) ? .relaxed : .acquiring)"),
    ("relaxed: the end of a reference to a loop", REACTOR + "LoopParts/SharedLoopState.swift",
     "count.subtract(1, ordering: .acquiringAndReleasing)", "count.subtract(1, ordering: isMutant(#) ? .relaxed : .acquiringAndReleasing)"),
    ("the marks of a promise are read before its loop is known", CORE + "PromiseCore+Adopt.swift",
     "own.isOpen, inner.borrow({ $0.state.load() == .pending }),",
     "own.isOpen, inner.borrow({ $0.state.load() == .pending && (!isMutant(#) || !$0.marks.contains(.hasHadNextStep)) }),"),
]
FIRST_OF_ORDERINGS = next(i for i, mutant in enumerate(MUTANTS) if mutant[0].startswith("relaxed:")) + 1


def build(package, scratch, sanitize):
    command = ["swift", "build", "-c", "release", "--package-path", package, "--scratch-path", ROOT / scratch,
               "-Xswiftc", "-enable-testing"] + (["--sanitize=thread"] if sanitize else [])
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout[-8000:])
    return ROOT / scratch / "release/interleavings"


def mutated():
    """A copy of the sources with all mistakes, each enabled by its number."""
    tree = ROOT / ".build-interleavings/tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "Sources", tree / "Sources")
    shutil.copytree(ROOT / PACKAGE, tree / PACKAGE, symlinks=True, ignore=shutil.ignore_patterns(".build*"))
    for number, (title, file, old, new) in enumerate(MUTANTS, 1):
        path = tree / "Sources" / file
        text = path.read_text()
        if text.count(old) != 1:
            sys.exit(f"error: mutant {number} ({title}): {text.count(old)} places in {file} are as the list says")
        text = text.replace(old, new.replace("#", str(number)))
        if "InternalJob { if" in new:
            text = text.replace("ordering: .acquiringAndReleasing) })", "ordering: .acquiringAndReleasing) } })")
        path.write_text(text)
    for folder in ("Reactor", "Promises/Core"):
        (tree / "Sources" / folder / "Mutant.swift").write_text(
            'import Glibc\n\n@usableFromInline let mutant = getenv("MUTANT").flatMap { Int(String(cString: $0)) }\n'
            "@usableFromInline func isMutant(_ number: Int) -> Bool { mutant == number }\n")
    return tree / PACKAGE


def run_mutants(package, wanted, sanitize, options):
    program = build(package, ".build-interleavings-mutants" + ("-tsan" if sanitize else ""), sanitize)
    missed = []
    for number in wanted or (range(FIRST_OF_ORDERINGS, len(MUTANTS) + 1) if sanitize else range(1, FIRST_OF_ORDERINGS)):
        began = time.monotonic()
        done = subprocess.run([program] + options, env={**os.environ, "MUTANT": str(number)}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        verdict = "NOT FOUND"
        if done.returncode == 0:
            missed.append(number)
        else:
            found = re.search(r"^failed: .*$", done.stdout, re.M)
            verdict = f"found in {time.monotonic() - began:.1f} s; {found.group(0) if found else 'the process ended'}"
        print(f"mutant {number}, {MUTANTS[number - 1][0]}: {verdict}", flush=True)
    if missed:
        sys.exit(f"error: {len(missed)} mutants were not found: {missed}")


def located(line, symbolizer):
    """The line of a step, with the place in the sources and where that is called for the place in the program."""
    place = re.search(r"  (0x[0-9a-f]+)$", line)
    if not place or not symbolizer:
        return line
    symbolizer.stdin.write(place[1] + "\n")
    symbolizer.stdin.flush()
    # A function, then its file, line and column, for each that is inlined into the next, and an empty line.
    frames = [frame.strip() for frame in iter(symbolizer.stdout.readline, "\n")][1::2]
    known = [re.sub(r".*/(.*):\d+$", r"\1", frame) for frame in frames if "/Sources/Model" not in frame and ":0" not in frame]
    return line[:place.start()] + "  " + " < ".join(known[:2]) + "\n"


def run(program, options):
    """Runs the program, and shows what it prints."""
    tool = shutil.which("llvm-symbolizer")
    symbolizer = tool and subprocess.Popen([tool, "--no-demangle", f"--obj={program}"], text=True, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE)
    process = subprocess.Popen([program] + options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in process.stdout:
        print(located(line, symbolizer), end="", flush=True)
    return process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", nargs="*", type=int)
    parser.add_argument("--sanitize", action="store_true")
    arguments, options = parser.parse_known_args()
    package = mutated()  # also without mutants, so that the list does not become stale
    if arguments.mutants is not None:
        return run_mutants(package, arguments.mutants, arguments.sanitize, options)
    program = build(ROOT / PACKAGE, ".build-interleavings" + ("-tsan" if arguments.sanitize else ""), arguments.sanitize)
    sys.exit(run(program, options))


main()
