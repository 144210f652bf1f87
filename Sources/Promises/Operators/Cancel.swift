extension Thenable {
    /// Cancels a pending promise: stops the work that would have settled it, and rejects the work's promise with
    /// `PromiseError.cancelled`. This promise receives that error like any other.
    ///
    /// ```swift
    /// let page = fetch(url).ensure { print("over") }.map(Page.init)
    /// page.cancel()                                  // ends the request, and then prints
    /// ```
    ///
    /// The cancellation climbs to the promise that this one waits for, and on up the chain while no other handler waits
    /// there. The work at the top ends: a timer is removed from the loop, a read is withdrawn, a resolver calls its
    /// `onCancel`. Its promise is rejected before this call returns, unless the work takes time to end.
    ///
    /// From there the error travels down the chain, by jobs, like any error. `then` and `map` skip their closures,
    /// `ensure` and `tap` run theirs, and each clean-up ends before the next begins. `catch` and `recover` ignore the
    /// error unless their policy is `.allErrors`. So this promise settles in a later turn, and is fulfilled if such a
    /// `recover` replaces the error. A handler that is already queued receives the cancellation in place of the
    /// outcome. A queued `tap` receives the outcome, and then rejects its promise.
    ///
    /// Work that other handlers wait for continues, and so does an operation that cannot be stopped, such as `close`.
    /// The promise below leaves it, and is rejected.
    ///
    /// A guarantee has no error to report: its handlers are released without being called. Seen as a promise, it is
    /// rejected with `PromiseError.cancelled`.
    ///
    /// May be called on any thread if the value is `Sendable`. Another thread's loop cancels its work in its next turn,
    /// unless the work has settled by then. If that loop has ended, the work is not cancelled.
    public func cancel() { asPromise().core.cancel() }

    /// Cancels the promise, and waits until the cancelled work has ended.
    ///
    /// ```swift
    /// func stop() -> Guarantee<Void> {
    ///     when(guarantees: workers.map { $0.cancelAndWait() }).asVoid()
    /// }
    /// ```
    /// - Returns: a guarantee that is fulfilled when the promise has settled, with any outcome, and its clean-ups and
    ///   the guarantees of `onCancelThen` have ended. Immediately if it has settled already.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func cancelAndWait(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        let core = asPromise().core
        if core.settled != nil { return .value }
        // Before the cancellation: if the core goes on for others, only handlers that already wait receive it.
        let end = core.derive(Notification { _ in }, role: .leavesUnhandled)
        core.cancel()
        return Guarantee<Void>(end.traced("cancelAndWait", after: core, Guarantee<Void>.self, file, line))
    }
}

extension Promise {
    /// Cancels the promise, but rejects it with `error` in place of `PromiseError.cancelled`, once the promises above
    /// have ended with any outcome.
    ///
    /// The sources of this promise are still cancelled with `PromiseError.cancelled`, and its own handler receives that
    /// too. Only `tap` and `tapError` receive `error`.
    /// - Parameter error: the error of the rejection. If it does not mean "cancelled", it is an ordinary error, which
    ///   `catch` sees. The first cancellation of a promise decides its error.
    public func cancel(with error: any Error) { core.cancel(with: error) }
}

extension Catchable {
    /// True when the promise has been rejected with an error that means "cancelled"; false while that error is on its
    /// way. May be called on any thread. Reading it does not count as handling the error.
    @inlinable
    public var isCancelled: Bool {
        let result = if let promise = self as? Promise<T> { promise.outcome } else { result }
        guard case .failure(let error) = result else { return false }
        return error.isCancelled
    }
}
