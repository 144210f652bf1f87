extension Promise {
    /// The promise's value, for an async function to await.
    ///
    /// ```swift
    /// let answer = try await promise.value
    /// ```
    ///
    /// A settled promise returns at once, without suspension or allocation. A pending one suspends the task until
    /// another thread drives the promise's loop or calls its resolver. `value` itself does not drive a loop.
    ///
    /// A cancellation of the waiting task cancels the promise, unless another handler waits for it, and throws
    /// `CancellationError`. On the thread of the promise's loop, this happens at once. On other threads it happens when
    /// that loop handles it, unless the promise has settled by then.
    ///
    /// The getter runs where its caller runs, in the promise's isolation, so the value need not be `Sendable`.
    ///
    /// In synchronous code, use `settledValue`, `then`, `map` or `done`, or `hang(promise)` to wait on the loop's
    /// thread.
    /// - Throws: the promise's error, `CancellationError`, or `PromiseError.badInput` if only an undriven loop, on a
    ///   thread of Swift's pool or of a `ThreadPool`, can settle the promise. The function that made such a promise is
    ///   async, not `nonisolated(nonsending)`, and not on an actor that lives on a loop.
    @inlinable
    public nonisolated(nonsending) var value: T {
        // Sound for a T that is not Sendable. Promise<T> and Resolver<T> are then not Sendable either, so the promise,
        // its copies, its resolver, the captures of its handlers and the awaiting code are in one isolation region. The
        // getter and its result stay in that region (`nonsending`). The fulfilling code is in it too, so the value is
        // made, copied and released in sequence. A cancellation may come from any thread, but it accesses only words of
        // state, and the promise that it settles is rejected. (Regions do not know threads: see docs/guides/async.md.)
        get async throws {
            if let outcome = result { return try outcome.get() }
            return try await AwaitingTask.suspendOrCancel(until: core, T.self).outcome()
        }
    }
}

extension Guarantee {
    /// The guarantee's value, for an async function to await; see `Promise.value`.
    ///
    /// A cancellation of the task does not end the wait, since a guarantee cannot report it. To be notified, wait for
    /// `asPromise().value`. If the guarantee's loop has ended, or the guarantee was cancelled or abandoned, nothing can
    /// fulfill it any more. The task then waits forever, which is logged as `LogEvent.awaitStalled`.
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
    /// Waits forever, for a caller that can neither return a value nor throw.
    @usableFromInline
    func waitForever(
        _ type: String, _ error: any Error, _ isolation: isolated (any Actor)? = #isolation
    ) async -> Never {
        conf.log(.awaitStalled(provenance(type: type, callSite: root.callSite), error))
        while true { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
    }
}
