extension Resolver {
    /// Calls `body` if the promise is cancelled before it settles, by `cancel()` on it or on a promise that waits for
    /// it, to stop the work that would have settled it. `body` runs at most once, as a job of this thread's loop. If
    /// not called, it is released when the promise settles.
    ///
    /// ```swift
    /// Promise<Answer> { resolver in
    ///     let query = database.start { resolver.resolve($0) }
    ///     resolver.onCancel { [weak query] in query?.stop() }
    /// }
    /// ```
    ///
    /// The promise retains `body`. If `body` retains the resolver, even indirectly (like a query that retains its
    /// callback), the promise can never be detected as abandoned.
    @available(*, noasync, message: "no loop runs the handler in an async function; call it on the loop's thread")
    public func onCancel(_ body: @escaping () -> Void) {
        token.core.attach(WatchingCore(watching: OnCancel(body: body), role: .stopsWork))
    }

    /// Like `onCancel`, but the promise is rejected only when the guarantee of `body` has been fulfilled, so that later
    /// steps wait for the end of the work. Bodies of `onCancel` are also called before that.
    ///
    /// ```swift
    /// resolver.onCancelThen { query.stop() }      // fulfilled when the query has really ended
    /// ```
    /// Register it before the promise can be cancelled: a body that is added later is called after the rejection.
    /// - Parameter body: stops the work. The guarantee is not cancelled with the promise.
    @available(*, noasync, message: "no loop runs the handler in an async function; call it on the loop's thread")
    public func onCancelThen(_ body: @escaping () -> Guarantee<Void>) {
        token.core.attach(WatchingCore(watching: CleanUpOnCancel(body: body), role: .cleansUp))
    }
}

/// Calls the body if the promise was cancelled; see `Resolver.onCancel`. (A closure around it would need a block.)
private struct OnCancel: Operation {
    let body: () -> Void

    func run(_ source: AnySource, _ core: PromiseCore) {
        if source.core.has(.isDecidedByCancellation) { body() }
        core.finish(())
    }
}

private struct CleanUpOnCancel: Operation {
    let body: () -> Guarantee<Void>

    func run(_ source: AnySource, _ core: PromiseCore) {
        guard source.core.has(.isDecidedByCancellation) else { return core.finish(()) }
        core.finish(followingGuarantee: body())
    }
}
