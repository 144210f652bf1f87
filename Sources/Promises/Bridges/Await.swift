import Reactor
import Synchronization

extension Promise where T: Sendable {
    /// Waits for the promise in an async function.
    ///
    /// The promise must be settled elsewhere, on a thread that drives its loop or by a resolver; nothing is driven
    /// here. If the task is cancelled while it waits, this throws `CancellationError` at once, and the promise is cancelled
    /// as far as nobody else waits for it.
    ///
    /// ```swift
    /// let answer = try await promise.async()
    /// ```
    /// - Throws: the promise's error; `CancellationError`.
    public func async(isolation: isolated (any Actor)? = #isolation) async throws -> T {
        if let outcome = result { return try outcome.get() }
        let wait = TaskWait<T>(core)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wait.begin($0) }
        } onCancel: {
            wait.cancel()
        }
    }
}

extension Guarantee where T: Sendable {
    /// Waits for the guarantee in an async function; see `Promise.async`.
    ///
    /// It has no error to say that the task was cancelled with, and so waits on then; wait for `asPromise()` where that
    /// matters. Traps, likewise, if the guarantee is cancelled or abandoned.
    public func async(isolation: isolated (any Actor)? = #isolation) async -> T {
        if let value { return value }
        let wait = TaskWait<T>(core)
        do {
            return try await withCheckedThrowingContinuation { wait.begin($0) }
        } catch { fatalError("a Guarantee<\(T.self)> that a task waits for cannot end: \(error)") }
    }
}

/// A task that waits for a promise.
private final class TaskWait<T: Sendable>: Sendable {
    private enum State: Sendable {
        case idle
        /// The waiter is on its way into the promise's list.
        case attaching(CheckedContinuation<T, any Error>)
        case waiting(CheckedContinuation<T, any Error>, Core)
        /// Resumed, or not to wait at all.
        case over
    }

    private let core: Core
    private let state = Mutex(State.idle)

    init(_ core: Core) { self.core = core }

    func begin(_ continuation: CheckedContinuation<T, any Error>) {
        let isCancelled = state.withLock { state in
            if case .over = state { return true }
            state = .attaching(continuation)
            return false
        }
        if isCancelled {
            core.cancelUnlessWanted()
            return continuation.resume(throwing: CancellationError())
        }
        let end = End(self)
        let waiter = Core(inline: Pipe<T> { end.wait.resume(with: $0) })
        core.attach(waiter)
        let isOver = state.withLock { state in
            guard case .attaching(let continuation) = state else { return true }
            state = .waiting(continuation, waiter)
            return false
        }
        // Settled, or cancelled before there was anything to withdraw.
        if isOver { withdraw(waiter) }
    }

    func cancel() {
        let (continuation, waiter) = finish()
        continuation?.resume(throwing: CancellationError())
        if let waiter { withdraw(waiter) }
    }

    private func withdraw(_ waiter: Core) {
        waiter.withdraw()
        core.cancelUnlessWanted()
    }

    private func resume(with result: Result<T, any Error>) {
        guard let continuation = finish().0 else { return }
        guard EventLoop.isEndingOnThisThread else { return continuation.resume(with: result) }
        // A thread that ends has lost what Swift's own pool needs to take a task from it.
        AsyncThreads.shared.run { continuation.resume(with: result) }
    }

    private func finish() -> (CheckedContinuation<T, any Error>?, Core?) {
        state.withLock { state in
            defer { state = .over }
            return switch state {
            case .idle, .over: (nil, nil)
            case .attaching(let continuation): (continuation, nil)
            case .waiting(let continuation, let waiter): (continuation, waiter)
            }
        }
    }

    /// Held by what stands in the promise's list: when that goes without having been told, nobody will settle the promise.
    private final class End: Sendable {
        let wait: TaskWait

        init(_ wait: TaskWait) { self.wait = wait }

        deinit { wait.resume(with: .failure(PromiseError.abandoned)) }
    }
}
