import Synchronization

@testable import PromisesTestSupport

/// Four loops that attach to, settle, cancel, await and drop each other's promises at random, hop between each other,
/// and are stopped and replaced meanwhile.
///
/// A fixed number of steps in each run; `STORM_SECONDS=60` runs for that long, for
/// `swift test --sanitize=thread --filter LoopStorm`.
@Suite(.serialized, .ownThread) struct LoopStormTests {
    @Test func everyHandlerRunsOnceOrIsReleased() throws {
        let seconds = environmentNumber("STORM_SECONDS")
        let storm = try Storm()
        // Abandoned promises, and those that a stopped loop leaves behind, are reported; both happen here.
        let reports = LogRecorder(where: { event in
            switch event {
            case .abandoned(let promise): promise.callSite?.file.hasSuffix("LoopStormTests.swift") == true
            case .undeliveredHandlers, .taskOnEndedLoop: true
            default: false
            }
        })
        defer { reports.stop() }
        try storm.rage(for: seconds.map { .seconds($0) }, atLeast: seconds == nil ? scaled(20_000) : 1)
        let counts = storm.counts
        if seconds != nil { print("storm: \(counts.text), \(reports.count) reports") }
        expectEqual(counts.twice.value, 0, "a handler has run more than once")
        expectEqual(counts.strays.value, 0, "a handler has run on another loop than the one that attached it")
        expectEqual(counts.tickets.value, counts.ended.value, "a handler is neither run nor released")
        expectEqual(counts.waits.value, counts.resumed.value, "a task waits forever, or has been resumed twice")
        expect(counts.ran.value > 0 && counts.stops.value > 0)
    }
}

private struct Counts: Sendable {
    let steps = StormCount(), tickets = StormCount(), ran = StormCount(), ended = StormCount(), twice = StormCount(),
        strays = StormCount()
    let settled = StormCount(), cancelled = StormCount(), dropped = StormCount(), hops = StormCount(),
        stops = StormCount()
    let waits = StormCount(), resumed = StormCount()

    var text: String {
        "\(steps.value) steps, \(tickets.value) handlers of which \(ran.value) ran, \(settled.value) settled, "
            + "\(cancelled.value) cancelled, \(dropped.value) dropped, \(hops.value) hops, \(waits.value) awaited, "
            + "\(stops.value) loops stopped"
    }
}

/// Held by a handler: checks that it is called at most once, on its own thread, and released.
private final class Ticket: Sendable {
    private let calls = Atomic(0)
    private let counts: Counts
    private let loop: LoopRemote

    init(_ counts: Counts, _ loop: LoopRemote) {
        self.counts = counts
        self.loop = loop
        counts.tickets.add()
    }

    func call() {
        if calls.add(1, ordering: .relaxed).newValue > 1 { counts.twice.add() }
        if EventLoop.current.remote != loop { counts.strays.add() }
        counts.ran.add()
    }

    deinit { counts.ended.add() }
}

private final class Storm: Sendable {
    private struct Slot: Sendable {
        let promise: Promise<Int>
        let resolver: Resolver<Int>

        init() { (promise, resolver) = Promise.pending() }
    }

    let counts = Counts()
    private let slots = Shared<[Slot]>((0..<32).map { _ in Slot() })
    private let loops = Shared<[LoopRemote]>([])
    private let isOver = Atomic(false)
    /// Outlives the others.
    private let bystander: LoopRemote

    init() throws { bystander = try EventLoop.spawn(name: "bystander") }

    func rage(for duration: Duration?, atLeast steps: Int) throws {
        for seed in 0..<4 { try addLoop(UInt64(seed)) }
        let end = duration.map { ContinuousClock.now + $0 }
        var dice = SplitMix64(4)
        var next = 0
        repeat {
            next = min(next + 500, counts.steps.value + 500)
            while counts.steps.value < next && (end.map { ContinuousClock.now < $0 } ?? true) { poll(nil, 0, 1) }
            let index = dice.below(4)
            let gone = loops.change { $0.remove(at: index) }
            gone.stop()
            counts.stops.add()
            try addLoop(dice.next())
            if dice.once(in: 2) { gone.join() }
        } while end.map({ ContinuousClock.now < $0 }) ?? (counts.steps.value < steps)
        isOver.store(true, ordering: .relaxed)
        let last = loops.change { loops in
            defer { loops = [] }
            return loops
        }
        for loop in last { loop.stop() }
        for loop in last { loop.join() }
        // With the last resolvers every promise is settled, and every task continues.
        _ = slots.change { slots in
            defer { slots = [] }
            return slots
        }
        let patience = ContinuousClock.now + .seconds(20)
        while counts.tickets.value != counts.ended.value || counts.waits.value != counts.resumed.value {
            if ContinuousClock.now > patience { break }
            poll(nil, 0, 1)
        }
        bystander.stop()
        bystander.join()
    }

    private func addLoop(_ seed: UInt64) throws {
        let loop = try EventLoop.spawn(name: "storm")
        loops.change { $0.append(loop) }
        for walker in 0..<4 { walk(on: loop, SplitMix64(seed &* 4 &+ UInt64(walker))) }
    }

    /// Some steps there, and on to another loop. A stopped loop takes its walkers with it.
    private func walk(on loop: LoopRemote, _ dice: SplitMix64) {
        loop.submit { [self] in
            var dice = dice
            for _ in 0..<10 { step(loop, &dice) }
            let all = loops.value
            if isOver.load(ordering: .relaxed) || all.isEmpty { return }
            walk(on: dice.pick(all), dice)
        }
    }

    private func slot(_ dice: inout SplitMix64) -> Slot? {
        let index = dice.below(32)
        return slots.change { index < $0.count ? $0[index] : nil }
    }

    private func step(_ loop: LoopRemote, _ dice: inout SplitMix64) {
        counts.steps.add()
        guard let slot = slot(&dice) else { return }
        let ticket = Ticket(counts, loop)
        switch dice.below(12) {
        case 0...2: slot.promise.done { _ in ticket.call() }.cauterizeInSilence()
        case 3: slot.promise.map { $0 + 1 }.then { Promise.value($0) }.ensure { ticket.call() }.cauterizeInSilence()
        case 4:
            let other = dice.below(32)
            let second = slots.change { other < $0.count ? $0[other].promise : nil }
            race(slot.promise, second ?? .value(1)).done { _ in ticket.call() }.cauterizeInSilence()
        case 5, 6:
            counts.settled.add()
            if dice.once(in: 4) { slot.resolver.reject(Flaw(1)) } else { slot.resolver.fulfill(dice.below(100)) }
        case 7:
            counts.cancelled.add()
            slot.promise.map { _ in ticket.call() }.cancel()
            if dice.once(in: 4) { slot.promise.cancel() }
        case 8: wait(for: slot.promise, on: dice.once(in: 2) ? bystander : loop, cancelling: dice.once(in: 2))
        case 9:
            counts.hops.add()
            guard let other = loops.value.first else { return }
            slot.promise.map(on: other) { $0 * 2 }.done { _ in ticket.call() }.cauterizeInSilence()
        case 10:
            after(.microseconds(dice.below(200))).then { slot.promise }.done { _ in ticket.call() }.cauterizeInSilence()
        default:
            counts.dropped.add()
            let index = dice.below(32)
            let fresh = Slot()
            // The old one is released outside the lock.
            _ = slots.change { slots -> Slot? in
                guard index < slots.count else { return nil }
                defer { slots[index] = fresh }
                return slots[index]
            }
        }
    }

    // Not on Swift's pool: other tests may block its threads, as this one does.
    private func wait(for promise: Promise<Int>, on executor: LoopRemote, cancelling: Bool) {
        counts.waits.add()
        let task = Task.detached(executorPreference: executor) { [counts] in
            _ = try? await promise.value
            counts.resumed.add()
        }
        if cancelling { task.cancel() }
    }
}

extension Promise {
    fileprivate func cauterizeInSilence() { self.catch(policy: .allErrors) { _ in } }
}
