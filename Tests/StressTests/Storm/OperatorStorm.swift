import CLinux
import Synchronization

@testable import PromisesTestSupport

/// Random expressions over promises, several at a time on each of two loops, on a pool's threads and for tasks, which
/// settle, cancel and share each other's promises, also with loops that end meanwhile.
final class OperatorStorm: Sendable {
    let episodes = StormCount(), witnesses = StormCount(), ended = StormCount()
    let values = StormCount(), errors = StormCount()
    let exchange = StormExchange()
    let loops: [LoopRemote]
    let pool: ThreadPool
    let complaints = Shared<[String]>([])
    /// Threads whose reports concern the storm. (`pthread_self` may soon be that of a thread of another test.)
    let threads = Shared<Set<pid_t>>([])
    /// Those of loops that end while handlers wait.
    let guests = Shared<Set<pid_t>>([])
    private let bystander: LoopRemote
    /// Its jobs hang, so they must not wait for one another.
    private let crew: ThreadPool
    private let running = Shared<[Int: UInt64]>([:])
    private let sites = Atomic(0)
    private let isOver = Atomic(false)
    private let firstSeed: UInt64
    private let repeatsSeed: Bool
    private static let patience: Duration = .seconds(60)

    init(seed: UInt64, repeatsSeed: Bool) throws {
        firstSeed = seed
        self.repeatsSeed = repeatsSeed
        loops = try (0..<2).map { try EventLoop.spawn(name: "storm-\($0)") }
        bystander = try EventLoop.spawn(name: "storm-tasks")
        pool = try ThreadPool(name: "storm-pool", threads: 2)
        crew = try ThreadPool(name: "storm-crew", threads: 3)
    }

    /// Runs until both the number of expressions and the duration are reached.
    func rage(for duration: Duration?, atLeast count: Int) {
        for (index, loop) in loops.enumerated() {
            for _ in 0..<6 { beginSite { loop.submit { self.goOn(onLoop: index) } } }
            loop.submit { self.note(self.threads) }
        }
        for index in 0..<3 {
            beginSite { self.dispatchToCrew() }
            beginSite { self.startTask(index) }
        }
        let end = duration.map { ContinuousClock.now + $0 }
        var last = (count: 0, at: ContinuousClock.now)
        while episodes.value < count || end.map({ ContinuousClock.now < $0 }) ?? false {
            if episodes.value != last.count { last = (episodes.value, .now) }
            if ContinuousClock.now - last.at > Self.patience || complaints.value.count > 5 { break }
            poll(nil, 0, 1)  // leaves the processor to the storm
        }
        isOver.store(true, ordering: .relaxed)
        finish()
    }

    private func beginSite(_ body: () -> Void) {
        sites.add(1, ordering: .relaxed)
        body()
    }

    private func endSite() { sites.subtract(1, ordering: .releasing) }

    private func note(_ threads: Shared<Set<pid_t>>) {
        let thread = clinux_gettid()
        threads.change { _ = $0.insert(thread) }
    }

    func complain(_ text: String, _ seed: UInt64) { complaints.change { $0.append("STORM_SEED=\(seed): \(text)") } }

    // MARK: Expressions

    /// Builds one on this thread's loop, which must be driven until it has ended. Nothing if the storm is over.
    private func begin() -> Promise<Int>? {
        if isOver.load(ordering: .relaxed) { return nil }
        let number = episodes.add()
        let seed = repeatsSeed ? firstSeed : firstSeed &+ UInt64(number)
        running.change { $0[number] = seed }
        let site = StormSite(storm: self, seed: seed)
        if number % 32 == 0 { visit(site) }
        var expressions = StormExpressions(site)
        let expression = expressions.expression()
        let root = expression.build()
        let witness = site.witness()
        // Before others see it: while it has a handler here, they cannot cancel it.
        root.tap { [self] result in
            witness.call()
            site.check(result, in: expression.possible, "the whole: \(expression)")
            (result.error == nil ? values : errors).add()
            running.change { $0[number] = nil }
        }.ignoringErrors()
        exchange.put(root, expression.possible)
        return root
    }

    /// A loop that ends while its handlers wait: they run there, or are released.
    private func visit(_ site: StormSite) {
        do {
            let guest = try EventLoop.spawn(name: "storm-guest")
            guest.submit { [self] in
                note(guests)
                let site = StormSite(storm: self, seed: site.seed)
                for entry in exchange.entries {
                    let witness = site.witness()
                    entry.promise.tap { _ in witness.call() }.ignoringErrors()
                }
            }
            guest.stop()
            guest.join()
        } catch { complain("no loop: \(error)", site.seed) }
    }

    // MARK: Places

    private func goOn(onLoop index: Int) {
        guard let root = begin() else { return endSite() }
        root.ensure { [self] in loops[index].submit { self.goOn(onLoop: index) } }.ignoringErrors()
    }

    private func dispatchToCrew() {
        do {
            try crew.dispatch { [self] in
                note(threads)
                guard let root = begin() else { return endSite() }
                _ = try? hang(root)
                driveUntilNothingWaits()
                dispatchToCrew()
            }
        } catch { complain("the crew refuses a job: \(error)", 0) }
    }

    private func startTask(_ index: Int) {
        Task.detached(executorPreference: bystander) { [self] in
            while !isOver.load(ordering: .relaxed) {
                let promise = Promise.value(0).then(on: loops[index % 2]) { [self] _ in begin() ?? .value(0) }
                if episodes.value % 8 == 0 {
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
    func perform(on place: StormPlace, _ body: @escaping @Sendable () -> Void) {
        switch place {
        case .now: body()
        case .here: EventLoop.current.enqueue(body)
        case .loop(let index): loops[index].submit(body)
        case .pool: do { try pool.dispatch(body) } catch { complain("the pool refuses a job: \(error)", firstSeed) }
        case .task: Task.detached(executorPreference: bystander) { body() }
        }
    }

    /// Without one a handler runs where the promise is settled.
    func dispatcher(_ place: StormPlace?) -> (any Dispatcher)? {
        switch place {
        case .loop(let index): loops[index]
        case .pool: pool
        default: nil
        }
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
        crew.shutDown()
        pool.shutDown()
        for loop in loops + [bystander] { loop.stop() }
        for loop in loops + [bystander] { loop.join() }
        // Tasks of async bodies may be about to end.
        if !wait(until: { witnesses.value == ended.value }) {
            complain("\(witnesses.value - ended.value) handlers are neither run nor released", firstSeed)
        }
    }
}
