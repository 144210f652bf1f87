extension Promise {
    /// The value of the promise, awaited by an async function.
    ///
    /// ```swift
    /// let answer = try await promise.value
    /// ```
    ///
    /// If the promise has settled, this returns at once, without a suspension and without an allocation. Otherwise the
    /// task is suspended until another thread drives the promise's loop or calls its resolver. `value` itself does not
    /// drive a loop.
    ///
    /// If the task is cancelled while it waits, the promise is cancelled, unless another handler waits for it, and
    /// `value` throws `CancellationError`. On the thread of the promise's loop this happens immediately. On another
    /// thread it happens when that loop handles the cancellation, unless the promise has settled by then.
    ///
    /// The getter runs where its caller runs. The value therefore need not be `Sendable`: it stays in the isolation of
    /// the promise.
    ///
    /// Synchronous code cannot be suspended. Use `settledValue` to test for the value, `then`, `map` or `done` to be
    /// called with it, and `hang(promise)` to wait on the thread of the loop.
    /// - Throws: the promise's error; `CancellationError` if the task is cancelled; `PromiseError.badInput` if the
    ///   promise is one of a thread of Swift's pool or of a `ThreadPool`, whose loop nothing drives, and no other thread
    ///   can settle it: the function that made it is async, and neither `nonisolated(nonsending)` nor of an actor that
    ///   lives on a loop.
    @inlinable
    public nonisolated(nonsending) var value: T {
        // Sound for a T that is not Sendable. Promise<T> and Resolver<T> are then not Sendable either, so the promise,
        // its copies, its resolver and the captures of its handlers are in one isolation region, and the awaiting code
        // is in it. The getter stays there (`nonsending`), and so does its result. The code that fulfills is in the
        // caller's isolation too: the value is made, copied and released there, in sequence. A cancellation may come
        // from any thread, but it accesses only words of state, and a promise that it settles is rejected. (Regions do
        // not know threads: docs/guides/async.md describes what they let pass.)
        get async throws {
            if let outcome = result { return try outcome.get() }
            return try await AwaitingTask.suspendOrCancel(until: core, T.self).outcome()
        }
    }
}

extension Guarantee {
    /// The value of the guarantee, awaited by an async function; see `Promise.value`.
    ///
    /// A guarantee cannot report that the task was cancelled, so the wait then continues. Where that matters, wait for
    /// `asPromise().value`. If nothing is left that could fulfill the guarantee, because its loop has ended or because
    /// it was cancelled or abandoned, the task waits forever, and this is logged as `LogEvent.awaitStalled`.
    @inlinable
    public nonisolated(nonsending) var value: T {
        get async {
            if let value = settledValue { return value }
            do { return try await AwaitingTask.suspend(until: core).outcome() } catch {
                await core.waitForever("Guarantee<\(T.self)>", error)
            }
        }
    }
}

extension PromiseCore {
    /// Suspends forever, for a caller that can neither return a value nor throw.
    @usableFromInline
    func waitForever(
        _ type: String, _ error: any Error, _ isolation: isolated (any Actor)? = #isolation
    ) async -> Never {
        conf.log(.awaitStalled(provenance(type: type, callSite: root.callSite), error))
        while true { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
    }
}
