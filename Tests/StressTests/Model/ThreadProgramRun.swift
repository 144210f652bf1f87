import Synchronization

@testable import PromisesTestSupport

/// Lets a number of threads wait for one another, any number of times. They spin, so they start together.
final class Barrier: Sendable {
    private let size: Int
    private let arrived = Atomic<Int>(0)
    private let generation = Atomic<Int>(0)

    init(_ size: Int) { self.size = size }

    func wait() {
        let mine = generation.load(ordering: .acquiring)
        if arrived.add(1, ordering: .acquiringAndReleasing).newValue == size {
            arrived.store(0, ordering: .relaxed)
            generation.store(mine + 1, ordering: .releasing)
            return
        }
        var spins = 0
        while generation.load(ordering: .acquiring) == mine {
            spins += 1
            if spins > 200 { sched_yield() }
        }
    }
}

/// One inline handler of a thread program, which any thread may run.
final class PipeRecord: Sendable {
    private let calls = Atomic<Int>(0)
    private let code = Atomic<Int>(0)

    func take(_ outcome: Outcome) {
        calls.add(1, ordering: .relaxed)
        code.store(Self.code(outcome), ordering: .relaxed)
    }

    var count: Int { calls.load(ordering: .relaxed) }
    func saw(_ outcome: Outcome) -> Bool { code.load(ordering: .relaxed) == Self.code(outcome) }

    private static func code(_ outcome: Outcome) -> Int {
        switch outcome {
        case .value(let number): number << 4
        case .error(.flaw(let number)): number << 4 | 1
        case .error(.returnedSelf): 2
        case .error(.abandoned): 3
        case .error(.cancelled): 4
        case .error: 5
        }
    }
}

/// The observations of one thread in a round.
struct ThreadLog {
    var trace: [Event] = []
    var states: [Int: String] = [:]
    var pipes: [PipeRecord] = []
    /// Cancelled promises that were pending when all threads were idle.
    var ignoring: [Int] = []
    var unhandled: [Fault] = []
    var otherReports: [String] = []
    var waitingHandlers = 0
}

/// Threads that run rounds together.
// @unchecked: a member's `seat` is written only by its thread, and read by others only after a barrier.
final class ThreadProgramRun: @unchecked Sendable {
    let size: Int
    private let barrier: Barrier
    private let isBusy = Atomic<Bool>(false)
    private let seats: [Seat]
    /// The first failure; written only by the first member, and read after all have been joined.
    private var complaint: String?
    private let isLast = Atomic<Bool>(false)
    private let isOver = Atomic<Bool>(false)

    private final class Seat {
        /// Asked for by any thread that logs something.
        let thread = Atomic<UInt>(0)
        var log = ThreadLog()
        var board: [(name: Int, promise: any Sendable, resolver: (any Sendable)?)] = []
        var onAbandoned: (Int) -> Void = { _ in }
    }

    init(_ size: Int) {
        self.size = size
        barrier = Barrier(size)
        seats = (0..<size).map { _ in Seat() }
    }

    /// Runs the rounds of `seeds`, or as many as there is time for; returns the first failure.
    ///
    /// On a busy implementation, threads that wait for one another take very long.
    func run(_ seeds: [UInt64], within limit: Duration?) -> String? {
        let end = limit.map { ContinuousClock.now + $0 }
        let recorder = LogRecorder(where: { [self] event in
            // Claimed and handled: the recorder's own list would be shared.
            guard let seat = seatOfThisThread else { return false }
            note(event, seat)
            return true
        })
        let threads = (0..<size).map { member in
            TestThread { [self] in
                seats[member].thread.store(UInt(pthread_self()), ordering: .relaxed)
                barrier.wait()
                for seed in seeds where !isOver.load(ordering: .acquiring) {
                    if member == 0, let end, ContinuousClock.now > end { isLast.store(true, ordering: .releasing) }
                    switch seed % 3 {
                    case 0: round(seed, member, PlainValue.self)
                    case 1: round(seed, member, CountedValue.self)
                    default: round(seed, member, WideValue.self)
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        recorder.stop()
        return complaint
    }

    private var seatOfThisThread: Seat? {
        let here = UInt(pthread_self())
        return seats.first { $0.thread.load(ordering: .relaxed) == here }
    }

    private func note(_ event: LogEvent, _ seat: Seat) {
        switch event {
        case .abandoned(let promise): seat.onAbandoned(Int(promise.callSite?.line ?? 0))
        case .unhandledRejection(let error, _): seat.log.unhandled.append(Fault(error))
        default: seat.log.otherReports.append(event.description)
        }
    }

    /// Belongs to the round; set by the first member between two barriers.
    private var census = Census()

    private func round<Value: ModelValue>(_ seed: UInt64, _ member: Int, _ type: Value.Type) {
        let plans = ThreadProgram.plans(seed: seed, threads: size)
        let plan = plans[member]
        let seat = seats[member]
        seat.log = ThreadLog()
        if member == 0 {
            census = Census()
            if Setting.isVerbose { print("seed \(seed) on \(size) threads") }
        }
        barrier.wait()
        let census = census
        inLoop { loop in
            let implementation = LibraryPromises<Value>(loop, census)
            implementation.keepsPipes = true
            let execution = Execution(implementation)
            seat.onAbandoned = { [unowned implementation] in implementation.onAbandoned($0) }
            execution.run(plan.prelude)
            seat.board = execution.promises.map { ($0.key, $0.value, execution.resolver($0.key)) }
            barrier.wait()
            for other in seats where other !== seat {
                for (name, promise, resolver) in other.board {
                    execution.adopt(promise as! Promise<Value>, resolver: resolver as! Resolver<Value>?, as: name)
                }
            }
            barrier.wait()
            seat.board = []
            execution.run(plan.script)
            if seed % 2 == 0 {
                comeToRest(loop, seed)
                seat.log.ignoring = execution.pendingDespiteCancellation
                barrier.wait()
            }
            execution.releaseResolvers()
            comeToRest(loop, seed)
            seat.log.states = execution.states
            barrier.wait()
            execution.releasePromises()
            comeToRest(loop, seed)
            seat.log.trace = execution.trace
            seat.log.pipes = implementation.pipes
            seat.log.waitingHandlers = loop.waitingHandlers
            seat.onAbandoned = { seat.log.otherReports.append("p\($0) is abandoned too late") }
        }
        barrier.wait()
        if member == 0 {
            var rules = ThreadProgramRules(plans, seats.map(\.log))
            rules.check()
            if census.count != 0 { rules.complain("\(census.count) witnesses are alive") }
            if census.strays != 0 {
                rules.complain("\(census.strays) handlers ran or were released on another thread")
            }
            if !rules.complaints.isEmpty {
                complaint = "MODEL_SEED=\(seed) on \(size) threads, with \(type)s:\n\(rules)"
                isOver.store(true, ordering: .releasing)
            }
        }
        if member == 0 && isLast.load(ordering: .relaxed) { isOver.store(true, ordering: .releasing) }
        barrier.wait()
    }

    /// Turns until no loop of these threads has anything left to do.
    private func comeToRest(_ loop: EventLoop, _ seed: UInt64) {
        for _ in 0..<10_000 {
            do { try loop.turn(.poll) } catch { fatalError("a turn without descriptors failed: \(error)") }
            // No thread runs anything between these, so no work is in transit.
            barrier.wait()
            if loop.isAlive { isBusy.store(true, ordering: .relaxed) }
            barrier.wait()
            let goesOn = isBusy.load(ordering: .relaxed)
            barrier.wait()
            if !goesOn { return }
            isBusy.store(false, ordering: .relaxed)
        }
        fatalError("MODEL_SEED=\(seed) on \(size) threads never comes to rest")
    }
}
