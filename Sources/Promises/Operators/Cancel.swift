extension Thenable {
    /// Cancels a pending promise: stops the work that would have settled it, and rejects the promise of the work with
    /// `PromiseError.cancelled`. This promise receives the error as it would receive any other.
    ///
    /// ```swift
    /// let page = fetch(url).ensure { print("over") }.map(Page.init)
    /// page.cancel()                                  // ends the request, and then prints
    /// ```
    ///
    /// The cancellation climbs to the promise that this one waits for, and so on up the chain, as long as no other
    /// handler waits there. The work at the top ends: a timer is removed from the loop, a read is withdrawn, a resolver
    /// calls its `onCancel`. Its promise is rejected before this call returns, unless the work takes time to end.
    ///
    /// From there the error travels down the chain, by jobs, as any error: `then` and `map` do not call their closures,
    /// `ensure` and `tap` do, each clean-up ends before the next one begins, and `catch` and `recover` ignore it unless
    /// their policy is `.allErrors`. So this promise is rejected in a later turn, or fulfilled if such a `recover`
    /// replaces the error. A handler that is queued already receives the cancellation in place of the outcome; a `tap`
    /// receives the outcome, and then rejects its promise.
    ///
    /// Work that other handlers wait for continues, as does an operation that cannot be stopped, such as `close`. The
    /// promise below leaves it, and is rejected.
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
        if core.settled != nil { return .value }
        // First: if the core goes on for others, only handlers that wait now receive the cancellation.
        let end = core.derive(Notification { _ in }, role: .leavesUnhandled)
        core.cancel()
        return Guarantee<Void>(end.traced("cancelAndWait", after: core, Guarantee<Void>.self, file, line))
    }
}

extension Promise {
    /// Cancels the promise, but rejects it with `error` in place of `PromiseError.cancelled`, when those above it have
    /// ended, and whatever their outcome.
    ///
    /// The sources of this promise are still cancelled with `PromiseError.cancelled`. So its own handler receives that
    /// too, except `tap` and `tapError`, which receive `error`.
    /// - Parameter error: the error of the rejection. If it does not mean "cancelled", it is an ordinary error, which
    ///   `catch` sees. If the promise has been cancelled before, the first cancellation decides the error.
    public func cancel(with error: any Error) { core.cancel(with: error) }
}

extension Catchable {
    /// True when the promise has been rejected with an error that means "cancelled"; false while that error is on its way.
    /// May be called on any thread. Reading it does not count as handling the error.
    @inlinable
    public var isCancelled: Bool {
        let result = if let promise = self as? Promise<T> { promise.outcome } else { result }
        guard case .failure(let error) = result else { return false }
        return error.isCancelled
    }
}
