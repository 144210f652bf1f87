extension Thenable {
    /// Cancels a pending promise: stops the work that would have settled it, and rejects the work's promise with
    /// `PromiseError.cancelled`, which this promise receives like any error.
    ///
    /// ```swift
    /// let page = fetch(url).ensure { print("over") }.map(Page.init)
    /// page.cancel()                                  // ends the request, and then prints
    /// ```
    ///
    /// The cancellation climbs the chain from promise to promise, as long as no other handler waits there. The work at
    /// the top ends: a timer is removed from the loop, a read is withdrawn, a resolver calls its `onCancel`. Its
    /// promise is rejected before this call returns, unless the work takes time to end.
    ///
    /// From there the error travels down the chain, in jobs. `then` and `map` skip their closures, `ensure` and `tap`
    /// run theirs, and each clean-up ends before the next begins. `catch` and `recover` ignore the error unless their
    /// policy is `.allErrors`. So this promise settles in a later turn, and is fulfilled if a `recover` replaces the
    /// error. A handler that is already queued receives the cancellation in place of the outcome. A queued `tap`
    /// receives the outcome, and then rejects its promise.
    ///
    /// Work that other handlers wait for continues, and so does an operation that cannot be stopped, such as `close`.
    /// The promise below stops waiting for it, and is rejected.
    ///
    /// A guarantee has no error to report, so its handlers are released without being called. As a promise, it is
    /// rejected with `PromiseError.cancelled`.
    ///
    /// May be called on any thread if the value is `Sendable`. From another thread, the work is cancelled in the next
    /// turn of its loop, unless it has settled by then or the loop has ended.
    public func cancel() { asPromise().core.cancel() }

    /// Cancels the promise, and waits until the cancelled work has ended.
    ///
    /// ```swift
    /// func stop() -> Guarantee<Void> {
    ///     when(guarantees: workers.map { $0.cancelAndWait() }).asVoid()
    /// }
    /// ```
    /// - Returns: a guarantee that is fulfilled when the promise has settled, with any outcome, and its clean-ups and
    ///   the guarantees of `onCancelThen` have ended.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func cancelAndWait(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        let core = asPromise().core
        if core.settled != nil { return .value }
        // Before the cancellation: if the core continues for others, only handlers that already wait are notified.
        let end = core.derive(Notification { _ in }, role: .leavesUnhandled)
        core.cancel()
        return Guarantee<Void>(end.traced("cancelAndWait", after: core, Guarantee<Void>.self, file, line))
    }
}

extension Promise {
    /// Cancels the promise, but rejects it with `error` instead of `PromiseError.cancelled`, once the promises above
    /// have ended.
    ///
    /// Only `tap` and `tapError` receive `error`. The promise's own handler and its sources still receive
    /// `PromiseError.cancelled`.
    /// - Parameter error: if it does not mean "cancelled", it is an ordinary error, which `catch` sees. The first
    ///   cancellation of a promise decides its error.
    public func cancel(with error: any Error) { core.cancel(with: error) }
}

extension Catchable {
    /// True when the promise has been rejected with an error that means "cancelled"; still false while a cancellation
    /// travels down the chain. May be read on any thread. Reading it does not handle the error.
    @inlinable
    public var isCancelled: Bool {
        let result = if let promise = self as? Promise<T> { promise.outcome } else { result }
        guard case .failure(let error) = result else { return false }
        return error.isCancelled
    }
}
