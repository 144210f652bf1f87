import Reactor

extension Promise {
    /// Waits for the promise in an async function, and is its value.
    ///
    /// ```swift
    /// let answer = try await promise.value
    /// ```
    ///
    /// A promise that has settled is there at once: nothing is suspended, and nothing allocated. Otherwise the task is
    /// suspended until the promise is settled elsewhere, on a thread that drives its loop or by a resolver; nothing is
    /// driven here. If the task is cancelled while it waits, the promise is cancelled as far as nobody else waits for it, and
    /// this throws `CancellationError`: at once on the thread of the promise's loop, and elsewhere as soon as that loop
    /// comes to it, unless the promise has settled by then.
    ///
    /// Runs where the caller does, so the value need not be `Sendable`: it stays with the promise it came from.
    ///
    /// In code that is not async there is nothing to suspend: write `settledValue` to look whether the value is there,
    /// `then`, `map` or `done` to be told of it, `hang(promise)` to wait on the thread of the loop.
    /// - Throws: the promise's error; `CancellationError`.
    @inlinable
    public nonisolated(nonsending) var value: T {
        // Sound for a T that is not Sendable: Promise<T> and Resolver<T> are not either, so the promise, its copies, its
        // resolver and what its handlers capture are of one isolation region, and the code that awaits is in it. The
        // getter stays there (`nonsending`), and so does its result. Whoever fulfills is of the caller's isolation too:
        // the value is made, copied and let go there, one after the other. A cancellation may come from any thread, but
        // touches words of state only, and a promise that it settles is rejected. (Regions know nothing of threads: of
        // what they let pass, docs/architecture.md speaks under "Threads and ownership".)
        get async throws {
            if let outcome = result { return try outcome.get() }
            return try await AwaitingTask.suspendOrCancel(until: core).outcome()
        }
    }

    /// The same as `value`, in the words of PromiseKit.
    /// - Throws: as `value`.
    @inlinable
    public nonisolated(nonsending) func async() async throws -> T { try await value }
}

extension Guarantee {
    /// Waits for the guarantee in an async function, and is its value; see `Promise.value`.
    ///
    /// It has no error to say that the task was cancelled with, and so waits on then; wait for `asPromise().value` where that
    /// matters. If nobody is left who could fulfill it, since its loop has ended or it was cancelled or abandoned, the task waits
    /// for ever; that is logged, as `LogEvent.awaitStalled`.
    @inlinable
    public nonisolated(nonsending) var value: T {
        get async {
            if let value = settledValue { return value }
            do { return try await AwaitingTask.suspend(until: core).outcome() } catch {
                await core.waitForEver("Guarantee<\(T.self)>", error)
            }
        }
    }

    /// The same as `value`, in the words of PromiseKit.
    @inlinable
    public nonisolated(nonsending) func async() async -> T { await value }
}

extension PromiseCore {
    /// For who can neither bring a value nor throw.
    @usableFromInline
    func waitForEver(
        _ type: String, _ error: any Error, _ isolation: isolated (any Actor)? = #isolation
    ) async -> Never {
        conf.log(.awaitStalled(provenance(type: type, origin: root.creationSite), error))
        while true { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
    }
}
