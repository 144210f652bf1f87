extension Thenable {
    /// Cancels a pending promise: rejects it with `PromiseError.cancelled` and stops the work that would have settled
    /// it.
    ///
    /// ```swift
    /// let page = fetch(url).ensure { print("over") }.map(Page.init)
    /// page.cancel()                                  // ends the request, and then prints
    /// ```
    ///
    /// What is stopped depends on the producer. An operator releases its closure without calling it, even if its job is
    /// queued already; a timer is removed from the loop; a resolver calls its `onCancel`. Then the source of this
    /// promise is cancelled in the same way, and so on up the chain, as long as no other handler waits there. The
    /// closures of `ensure`, `ensureThen`, `tap` and `tapError(policy: .allErrors)` are called in any case. If the
    /// source of such an operator has already settled, its closure receives that outcome, and the operator's own promise
    /// is rejected as cancelled.
    ///
    /// These clean-ups run in the order in which an error would reach them, and each ends before the next one begins.
    /// This promise is rejected after those above it have ended, and before this call returns if there are none.
    ///
    /// Handlers run as for any rejection: as jobs, never inside this call. `catch` and `recover` ignore cancellations
    /// unless their policy is `.allErrors`. Cancelling twice has no further effect.
    ///
    /// Work that other handlers wait for continues. This includes a promise that a handler has returned. The promise of
    /// an operation that cannot be stopped, such as `close`, stays pending; those that wait for it are rejected.
    ///
    /// A guarantee has no error to report. Its handlers are released without being called; seen as a promise, it is
    /// rejected with `PromiseError.cancelled`.
    ///
    /// May be called on any thread if the value is `Sendable`. Work of another thread's loop is cancelled in the next
    /// turn of that loop, unless it has settled by then. If that loop has ended, the work is not cancelled.
    public func cancel() { asPromise().core.cancel() }

    /// Cancels the promise, and waits until the cancelled work has ended.
    ///
    /// ```swift
    /// func stop() -> Guarantee<Void> {
    ///     when(guarantees: workers.map { $0.cancelAndWait() }).asVoid()
    /// }
    /// ```
    /// - Returns: a guarantee that is fulfilled when the promise has settled, in whatever way: after its clean-ups and
    ///   the guarantees of `onCancelThen`. Immediately if it has settled already.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func cancelAndWait(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        let core = asPromise().core
        // A handler would receive, and so handle, its error.
        if core.settled != nil { return .value }
        // First: if the core goes on for others, only handlers that wait now receive the cancellation.
        let end = core.derive(Notification { _ in })
        core.cancel()
        return Guarantee<Void>(end.traced("cancelAndWait", after: core, Guarantee<Void>.self, file, line))
    }
}

extension Promise {
    /// Cancels the promise, but rejects it with `error` in place of `PromiseError.cancelled`.
    ///
    /// The sources of this promise are still rejected with `PromiseError.cancelled`.
    /// - Parameter error: the error of the rejection. If it does not mean "cancelled", it is an ordinary error, which
    ///   `catch` sees.
    public func cancel(with error: any Error) { core.cancel(with: error) }
}

extension Catchable {
    /// Whether the promise is rejected with an error that means "cancelled"; false while a cancelled promise waits for
    /// clean-ups. May be called on any thread. Reading it does not count as handling the error.
    @inlinable
    public var isCancelled: Bool {
        let result = if let promise = self as? Promise<T> { promise.outcome } else { result }
        guard case .failure(let error) = result else { return false }
        return error.isCancelled
    }
}
