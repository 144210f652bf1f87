import Exploring
import Glibc
import ModelThreads
import Synchronization

@testable import Promises
@testable import Reactor

/// A scenario whose first thread has a loop, which ends with the body.
func onLoop(_ name: String, _ body: @escaping (EventLoop) throws -> Void) -> Scenario {
    Scenario(name) { onLoop(body) }
}

/// Calls `body` with a loop of this thread, whose beginning is no step.
func onLoop(_ body: (EventLoop) throws -> Void) {
    model_be_quiet(true)
    do {
        try EventLoop.withLoop {
            model_be_quiet(false)
            try body($0)
        }
    } catch { check(false, "\(error)") }
}

/// What happened, as the digits of a number in their order. No access to it is a step, or orders others.
final class Digits: Sendable {
    private let word = Atomic<Int>(0)

    func add(_ digit: Int) { word.store(word.load(ordering: .relaxed) * 10 + digit, ordering: .relaxed) }

    var value: Int { word.load(ordering: .relaxed) }
}

/// Counts objects that closures have captured.
final class Tally: Sendable {
    fileprivate let alive = Atomic(0)
    fileprivate let elsewhere = Atomic(0)
    private let home = pthread_self()

    final class Token: Sendable {
        private let tally: Tally
        fileprivate init(_ tally: Tally) {
            self.tally = tally
            tally.alive.wrappingAdd(1, ordering: .relaxed)
        }
        deinit {
            tally.alive.subtract(1, ordering: .relaxed)
            if pthread_equal(pthread_self(), tally.home) == 0 { tally.elsewhere.wrappingAdd(1, ordering: .relaxed) }
        }
        func use() {}
    }

    func token() -> Token { Token(self) }

    /// Checks, in the end, that all are released; and, unless they may go anywhere, that this thread has released them.
    func areReleased(anywhere: Bool = false) {
        atEnd {
            checkEqual(self.alive.load(ordering: .relaxed), 0)
            if !anywhere { checkEqual(self.elsewhere.load(ordering: .relaxed), 0) }
        }
    }
}

/// An action of a signal that counts its calls, set before the signal is watched.
struct FormerAction {
    // Of the process, as a signal's action is; each scenario begins at zero.
    private static let count = Atomic<Int>(0)

    init(of signal: CInt) {
        Self.count.store(0, ordering: .relaxed)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in FormerAction.count.add(1, ordering: .relaxed) }
        sigaction(signal, &action, nil)
    }

    var calls: Int { Self.count.load(ordering: .relaxed) }
}

/// Calls a closure when it is released.
final class AtRelease {
    private let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
    deinit { body() }
    func use() {}
}

/// Runs each job on a thread of its own.
struct OwnThreads: Dispatcher {
    func dispatch(_ job: @escaping @Sendable () -> Void) { thread(job) }
}

/// Runs no job: the thread that it starts only releases it.
struct NoThread: Dispatcher {
    func dispatch(_ job: @escaping @Sendable () -> Void) { thread { withExtendedLifetime(job) {} } }
}

struct Failure: Error {}

/// The value, or -1 after a cancellation, -2 after any other error.
func outcome(of promise: Promise<Int>) -> Int {
    do { return try hang(promise) } catch { return error.isCancelled ? -1 : -2 }
}

/// A promise that waits for another one, to which only the resolver refers that `use` receives.
func pendingChild(_ use: (Resolver<Int>) -> Void) -> Promise<Int> {
    let (source, resolver) = Promise<Int>.pending()
    let child = source.map { $0 }
    use(resolver)
    return child
}

/// A promise that waits for one that waits for it: nothing of its loop leads to it.
func circle(_ loop: EventLoop) -> Promise<Int> {
    final class Box { var promise: Promise<Int>! }
    let box = Box()
    box.promise = Promise.value(1).then { _ in box.promise.map { $0 } }
    inOneStep { for _ in 0..<2 { try? loop.turn(.poll) } }
    return box.promise
}

func checkOneOf(_ value: Int, _ allowed: Int..., file: StaticString = #fileID, line: UInt = #line) {
    check(allowed.contains(value), "\(value) is none of \(allowed)", file: file, line: line)
}

/// For calls under a lock that the model does not know, as those of a task's cancellation handlers.
func inOneStep(_ body: () -> Void) {
    model_be_quiet(true)
    body()
    model_be_quiet(false)
}
