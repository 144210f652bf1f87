import Synchronization

@testable import PromisesTestSupport

/// Held by each handler of the operator storm: checks that it is called at most once, in the right place, and released.
final class StormWitness: Sendable {
    private let storm: OperatorStorm
    private let seed: UInt64
    private let place: StormPlan.Place?
    private let home: LoopRemote?
    private let mayRepeat: Bool
    private let calls = Atomic(0)

    init(_ storm: OperatorStorm, _ seed: UInt64, _ place: StormPlan.Place?, _ home: LoopRemote?, _ mayRepeat: Bool) {
        self.storm = storm
        self.seed = seed
        self.place = place
        self.home = home
        self.mayRepeat = mayRepeat
        storm.counts.witnesses.add()
    }

    deinit { storm.counts.ended.add() }

    func call() {
        storm.counts.calls.add()
        if calls.add(1, ordering: .relaxed).newValue > 1 && !mayRepeat {
            storm.complain("a handler has run twice", seed)
        }
        let here = EventLoop.current.remote
        switch place {
        case .here where here != home:
            storm.complain("a handler has run on another thread than the one that attached it", seed)
        case .loop(let index) where here != storm.loops[index]:
            storm.complain("a handler has run elsewhere than on its loop", seed)
        case .pool where storm.loops.contains(here):
            storm.complain("a handler has run elsewhere than on its pool", seed)
        default: break
        }
    }
}

/// Promises of expressions, for others to use.
final class StormExchange: Sendable {
    struct Entry: Sendable {
        let promise: Promise<Int>
        let possible: OutcomeSet
    }

    static let size = 16
    private let slots = Shared<[Entry]>(
        Array(repeating: Entry(promise: .value(1), possible: OutcomeSet(.value(1))), count: size))
    private let puts = StormCount()

    var entries: [Entry] { slots.value }

    func put(_ promise: Promise<Int>, _ possible: OutcomeSet) {
        let index = puts.add() % Self.size
        let entry = Entry(promise: promise, possible: possible)
        // The old one is released outside the lock.
        _ = slots.change { slots in
            defer { slots[index] = entry }
            return slots[index]
        }
    }

    func clear() { for _ in 0..<Self.size { put(.value(1), OutcomeSet(.value(1))) } }
}

/// A plain thread that runs its jobs one after the other, and drives no loop.
final class StormSettler: Sendable {
    private struct Queue: Sendable {
        var jobs: [@Sendable () -> Void] = []
        var isStopped = false
    }

    private let queue = Shared(Queue())
    private let hasWork = Gate()
    private let thread = StormThread()

    init() {
        let (queue, hasWork) = (queue, hasWork)
        thread.keep(
            TestThread {
                while true {
                    hasWork.wait()
                    let jobs = queue.change { queue in
                        defer { queue.jobs = [] }
                        return queue.jobs
                    }
                    for job in jobs { job() }
                    if jobs.isEmpty && queue.value.isStopped { return }
                }
            })
    }

    func submit(_ job: @escaping @Sendable () -> Void) {
        queue.change { $0.jobs.append(job) }
        hasWork.open()
    }

    func stop() {
        queue.change { $0.isStopped = true }
        hasWork.open()
        thread.join()
    }
}

/// A thread that is started after its joiner has been created.
final class StormThread: Sendable {
    private let kept = Shared<TestThread?>(nil)

    func keep(_ thread: TestThread) { kept.change { $0 = thread } }

    func join() { kept.change { $0.take() }?.join() }
}
