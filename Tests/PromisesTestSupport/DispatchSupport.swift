import Glibc
import Reactor
import Synchronization
import TestSupport

/// Keeps jobs until a test runs or releases them.
final class Shelf: Dispatcher {
    private let jobs = Mutex<[@Sendable () -> Void]>([])

    func dispatch(_ job: @escaping @Sendable () -> Void) { jobs.withLock { $0.append(job) } }

    /// The number of jobs.
    var count: Int { jobs.withLock { $0.count } }

    /// Runs the jobs on this thread, and releases them.
    func run() {
        for job in take() { job() }
    }

    /// Releases the jobs without running them.
    func clear() { _ = take() }

    func take() -> [@Sendable () -> Void] {
        jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
    }
}

/// Refuses everything.
struct Refuser: Dispatcher {
    func dispatch(_ job: @escaping @Sendable () -> Void) throws { throw Flaw(503) }
}

/// Accepts everything and runs nothing.
struct Shredder: Dispatcher {
    func dispatch(_ job: @escaping @Sendable () -> Void) {}
}

/// Runs jobs at once, inside the call.
struct Immediate: Dispatcher {
    func dispatch(_ job: @escaping @Sendable () -> Void) { job() }
}

/// Gives each job its own thread, which has ended when the test joins it.
final class Spawner: Dispatcher {
    private let threads = Mutex<[TestThread]>([])

    func dispatch(_ job: @escaping @Sendable () -> Void) {
        let thread = TestThread(job)
        threads.withLock { $0.append(thread) }
    }

    func join() {
        let all = threads.withLock { $0 }
        for thread in all { thread.join() }
    }
}

extension Tally.Token {
    /// Returns its argument, from a closure that holds it.
    func with<Value>(_ value: Value) -> Value { value }
}
