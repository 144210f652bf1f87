extension Promise {
    /// Cancels the promise, if it is pending: it is rejected with `PromiseError.cancelled`, and the work that would have
    /// settled it is stopped, as far as that can be.
    ///
    /// What that is: the closure of the operator that made the promise is released, unrun, except those of `ensure`,
    /// `ensureThen`, `tap` and `tapError(policy: .allErrors)`, which are called in any case; a timer leaves the loop; the
    /// `onCancel` of a resolver is called. Then the same happens to the promise that this one waits for, and so on
    /// upwards, as long as no other handler waits there. Handlers run as for any rejection, as jobs, never inside this
    /// call; note that `catch` and `recover` do not see cancellations unless their policy is `.allErrors`.
    ///
    /// An operator of these whose source has settled by then is told of that outcome, and the cancellation is what becomes of
    /// its promise. Cancelling twice is cancelling once.
    ///
    /// What others wait for goes on for them. That holds too for a promise that a handler has returned: if others wait for
    /// it, the handlers of this promise are told that it was cancelled, and this promise itself then shows how the other
    /// ends.
    ///
    /// Any thread, if the value is `Sendable`. What belongs to another thread's loop is cancelled there, when it next
    /// turns, unless it has settled by then; if that loop has ended, it is not.
    public func cancel() { core.cancel() }

    /// The same, and rejects this promise with `error` in place of `PromiseError.cancelled`.
    ///
    /// One that does not mean "cancelled" is an error like others: `catch` sees it. What the promise waits for is
    /// rejected with `PromiseError.cancelled` all the same.
    public func cancel(with error: any Error) { core.cancel(with: error) }
}

extension Guarantee {
    /// Cancels the guarantee, if it is pending; see `Promise.cancel`. It has no error to say so with: its handlers are
    /// released without being called; seen as a promise it is rejected with `PromiseError.cancelled`.
    public func cancel() { core.cancel() }
}
