extension Resolver {
    /// Calls `body`, to stop the work, if the promise is cancelled before it settles, by `cancel()` on it or on a
    /// promise that waits for it. `body` runs at most once, as a job of this thread's loop; if not called, it is
    /// released when the promise settles.
    ///
    /// ```swift
    /// Promise<Answer> { resolver in
    ///     let query = database.start { resolver.resolve($0) }
    ///     resolver.onCancel { [weak query] in query?.stop() }
    /// }
    /// ```
    ///
    /// The promise retains `body`. If `body` retains the resolver, even indirectly (like a query that retains its
    /// callback), the library cannot detect that the promise is abandoned.
    @available(*, noasync, message: "no loop runs the handler in an async function; call it on the loop's thread")
    public func onCancel(_ body: @escaping () -> Void) {
        token.core.attach(WatchingCore(watching: OnCancel(body: body), role: .stopsWork))
    }

    /// Like `onCancel`, but the promise is rejected only when the guarantee that `body` returns is fulfilled, so that
    /// later steps wait for the work to end. Handlers added with `onCancel` are also called before that.
    ///
    /// ```swift
    /// resolver.onCancelThen { query.stop() }      // fulfilled when the query has really ended
    /// ```
    /// Call this before the promise can be cancelled: a `body` that is added later is called after the rejection.
    /// - Parameter body: stops the work. Its guarantee is not cancelled with the promise.
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
