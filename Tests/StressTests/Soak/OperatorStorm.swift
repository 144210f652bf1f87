import CLinux
import Synchronization

@testable import PromisesTestSupport

/// Random expressions over promises, several at a time on each of two loops, on a plain thread, on a pool's threads and
/// for tasks, which settle, cancel and share each other's promises.
final class OperatorStorm: Sendable {
    struct Counts: Sendable {
        let episodes = StormCount(), promises = StormCount(), witnesses = StormCount(), calls = StormCount()
        let ended = StormCount(), values = StormCount(), errors = StormCount(), cancelled = StormCount()

        var text: String {
            "\(episodes.value) expressions, \(promises.value) promises, \(calls.value) calls of \(witnesses.value) handlers; "
                + "\(values.value) values, \(errors.value) errors, \(cancelled.value) cancelled"
        }
    }

    let counts = Counts()
    let exchange = StormExchange()
    let loops: [LoopRemote]
    let complaints = Shared<[String]>([])
    /// Threads whose reports concern the storm. (`pthread_self` may soon be that of a thread of another test.)
    let threads = Shared<Set<pid_t>>([])
    private let bystander: LoopRemote
    private let pool: ThreadPool
    /// Its jobs hang, so they must not wait for one another.
    private let crew: ThreadPool
    private let settler = StormSettler()
    private let resolvers = Shared<[Resolver<Int>]>([])
    private let running = Shared<[Int: UInt64]>([:])
    private let sites = Atomic(0)
    private let isOver = Atomic(false)
    private let firstSeed: UInt64
    private let repeatsSeed: Bool

    init(seed: UInt64, repeatsSeed: Bool) throws {
        firstSeed = seed
        self.repeatsSeed = repeatsSeed
        loops = try (0..<2).map { try EventLoop.spawn(name: "storm-\($0)") }
        bystander = try EventLoop.spawn(name: "storm-tasks")
        pool = try ThreadPool(name: "storm-pool", threads: 2)
        crew = try ThreadPool(name: "storm-crew", threads: 2)
    }

    /// Runs until both the number of expressions and the duration are reached.
    func rage(for duration: Duration?, atLeast episodes: Int) {
        for (index, loop) in loops.enumerated() {
            for _ in 0..<6 { beginSite { loop.submit { self.goOn(onLoop: index) } } }
            loop.submit { self.noteThread() }
        }
        beginSite { self.plainThread.keep(TestThread { self.goOnHanging() }) }
        for _ in 0..<2 { beginSite { self.dispatchToCrew() } }
        for index in 0..<3 { beginSite { self.startTask(index) } }
        let end = duration.map { ContinuousClock.now + $0 }
        var last = (count: 0, at: ContinuousClock.now)
        while counts.episodes.value < episodes || end.map({ ContinuousClock.now < $0 }) ?? false {
            if counts.episodes.value != last.count { last = (counts.episodes.value, .now) }
            if ContinuousClock.now - last.at > Self.patience || complaints.value.count > 5 { break }
            poll(nil, 0, 1)  // leaves the processor to the storm
        }
        isOver.store(true, ordering: .relaxed)
        finish()
    }

    static let patience: Duration = .seconds(60)
    private let plainThread = StormThread()

    private func beginSite(_ body: () -> Void) {
        sites.add(1, ordering: .relaxed)
        body()
    }

    private func endSite() { sites.subtract(1, ordering: .releasing) }

    func noteThread() {
        let thread = clinux_gettid()
        threads.change { _ = $0.insert(thread) }
    }

    func complain(_ text: String, _ seed: UInt64) { complaints.change { $0.append("STORM_SEED=\(seed): \(text)") } }

    func check(_ outcome: StormOutcome, in possible: OutcomeSet, _ seed: UInt64, _ what: @autoclosure () -> String) {
        if !possible.contains(outcome) { complain("\(outcome) is not among \(possible); \(what())", seed) }
    }

    // MARK: Expressions

    private func next() -> (number: Int, seed: UInt64)? {
        if isOver.load(ordering: .relaxed) { return nil }
        let number = counts.episodes.add()
        return (number, repeatsSeed ? firstSeed : firstSeed &+ UInt64(number))
    }

    /// Builds one on this thread's loop, which must be driven until it has ended.
    private func begin(_ episode: (number: Int, seed: UInt64)) -> Promise<Int> {
        let (number, seed) = episode
        var dice = SplitMix64(seed)
        let plan = StormPlan.random(&dice, depth: 4)
        running.change { $0[number] = seed }
        let builder = StormBuilder(self, seed)
        let possible = plan.possible(builder.sets)
        let root = builder.build(plan)
        let witness = builder.witness()
        // Before others see it: while it has a handler here, they cannot cancel it.
        root.tap { [self] result in
            witness.call()
            let outcome = StormOutcome(result)
            check(outcome, in: possible, seed, "the whole: \(plan)")
            switch outcome {
            case .value: counts.values.add()
            case .cancelled: counts.cancelled.add()
            default: counts.errors.add()
            }
            running.change { $0[number] = nil }
        }.ignoringErrors()
        exchange.put(root, possible)
        return root
    }

    // MARK: Places

    private func goOn(onLoop index: Int) {
        guard let episode = next() else { return endSite() }
        begin(episode).ensure { [self] in loops[index].submit { self.goOn(onLoop: index) } }.ignoringErrors()
    }

    private func goOnHanging() {
        noteThread()
        while let episode = next() { _ = try? hang(begin(episode)) }
        driveUntilNothingWaits()
        endSite()
    }

    private func dispatchToCrew() {
        do {
            try crew.dispatch { [self] in
                noteThread()
                guard let episode = next() else { return endSite() }
                _ = try? hang(begin(episode))
                driveUntilNothingWaits()
                dispatchToCrew()
            }
        } catch { complain("the crew refuses a job: \(error)", 0) }
    }

    private func startTask(_ index: Int) {
        Task.detached(executorPreference: bystander) { [self] in
            while let episode = next() {
                let promise = Promise.value(episode.number).then(on: loops[index % 2]) { [self] _ in begin(episode) }
                if episode.number % 8 == 0 {
                    let task = Task(executorPreference: bystander) { try await promise.value }
                    task.cancel()
                    _ = try? await task.value
                } else {
                    _ = try? await promise.value
                }
            }
            endSite()
        }
    }

    /// Handlers beside the last expression, and handlers of promises that a race has left behind.
    private func driveUntilNothingWaits() {
        let loop = EventLoop.current
        let end = ContinuousClock.now + Self.patience
        while loop.waitingHandlers > 0 && ContinuousClock.now < end { try? loop.turn(.upTo(.milliseconds(50))) }
        if loop.waitingHandlers > 0 { complain("\(loop.waitingHandlers) handlers wait forever", firstSeed) }
    }

    /// Runs `body` there, now or later.
    func perform(on place: StormPlan.Place, _ body: @escaping @Sendable () -> Void) {
        switch place {
        case .now: body()
        case .here: EventLoop.current.enqueue(body)
        case .loop(let index): loops[index].submit(body)
        case .pool: do { try pool.dispatch(body) } catch { complain("the pool refuses a job: \(error)", firstSeed) }
        case .thread: settler.submit(body)
        case .task: Task.detached(executorPreference: bystander) { body() }
        }
    }

    func dispatcher(_ place: StormPlan.Place?) -> (any Dispatcher)? {
        switch place {
        case .loop(let index): loops[index]
        case .pool: pool
        default: nil
        }
    }

    /// Like `endless`, made where no loop is driven.
    func pending() -> Promise<Int> {
        let (promise, resolver) = Promise<Int>.pending()
        // The one that is removed was cancelled long before.
        _ = resolvers.change { resolvers in
            resolvers.append(resolver)
            return resolvers.count > 4096 ? resolvers.removeFirst() : nil
        }
        return promise
    }

    // MARK: The end

    private func wait(until condition: () -> Bool) -> Bool {
        let end = ContinuousClock.now + Self.patience
        while !condition() {
            if ContinuousClock.now > end { return false }
            poll(nil, 0, 1)
        }
        return true
    }

    private func finish() {
        let haveEnded = wait { sites.load(ordering: .acquiring) == 0 && running.value.isEmpty }
        if !haveEnded {
            for seed in running.value.values { complain("does not end", seed) }
            if running.value.isEmpty { complain("a site does not end", firstSeed) }
            // A hanging thread cannot be joined.
            return
        }
        plainThread.join()
        exchange.clear()
        for loop in loops + [bystander] {
            let left = Shared(-1)
            let isIdle = wait {
                left.change { $0 = -1 }
                loop.submit {
                    let count = EventLoop.current.waitingHandlers
                    left.change { $0 = count }
                }
                return wait { left.value >= 0 } && left.value == 0
            }
            if !isIdle { complain("\(left.value) handlers wait forever on \(loop)", firstSeed) }
        }
        settler.stop()
        crew.shutDown()
        pool.shutDown()
        for loop in loops + [bystander] { loop.stop() }
        for loop in loops + [bystander] { loop.join() }
        // Tasks of async bodies may be about to end.
        if !wait(until: { counts.witnesses.value == counts.ended.value }) {
            complain("\(counts.witnesses.value - counts.ended.value) handlers are neither run nor released", firstSeed)
        }
    }
}

/// A number that any thread counts up.
final class StormCount: Sendable {
    private let number = Atomic(0)
    var value: Int { number.load(ordering: .relaxed) }

    @discardableResult
    func add() -> Int { number.add(1, ordering: .relaxed).newValue }
}
