import Promises

extension Pool {
    /// Calls `body` with a resource, and settles as the promise that `body` returns.
    ///
    /// ```swift
    /// pool.with(.address(.loopback(port: 7000))) { connection in
    ///     connection.write("ping\n").then { connection.readLine() }
    /// }
    /// ```
    ///
    /// `body` gets an idle resource or a new one, or the request waits in line. The resource returns to the pool when
    /// the promise of `body` is *fulfilled*, or rejected with an error that `keepsAfter` accepts. After another
    /// *rejection or a cancellation* the resource is closed, and a connection aborted: nobody knows how much of an
    /// answer is still to arrive, and the peer must not take half a request for a complete one.
    ///
    /// A connection does not return if it cannot be reused: `body` has closed, detached or half-closed it, the peer has
    /// ended, a read, a write or a `peerGone()` is pending, unread input is buffered, or `body` has set a socket
    /// option, or installed or removed a filter. To prevent reuse, call `connection.close()` in `body`. Time-outs,
    /// limits and watermarks are reset to their defaults.
    ///
    /// `body` must not use the resource after that. Put a time limit outside, `pool.with { … }.timeout(…)`, so that the
    /// resource is closed when the closure of `body` on another thread has returned. With a `timeout` inside, that
    /// thread may still use the closed resource.
    ///
    /// Cancelling the result while the request waits removes it from the line, and cancels the making of a resource
    /// that no other request needs.
    ///
    /// The peer may close a connection while a request is on its way. `body` then sees a reset, or an end instead of an
    /// answer, although the server is well. `isIdempotent: true` retries the request, whatever the outcome of `body`,
    /// if a request has used the connection before and no byte of an answer has arrived. A restarted server may have
    /// closed all connections, so this repeats until there is an answer, a connection is new, or the pool is closed or
    /// drained. Only the caller knows whether a request may be repeated.
    ///
    /// - Parameters:
    ///   - key: selects the resources, usually a server; `nil` for the pool's default key.
    ///   - isIdempotent: true if the request may be repeated.
    ///   - body: makes the request, in a job of this thread's loop.
    /// - Returns: a promise that settles as the promise of `body`. Also rejected with `PoolError`, with the error of
    ///   making a resource for this or a later request, with `PromiseError.badInput` if the pool's limits are invalid,
    ///   or with `SystemError` (`ECANCELED`) if the loop ends while the request waits.
    @available(*, noasync, message: "an async function on the loop calls the form with an async body")
    @inlinable
    public func with<Work: Thenable>(
        _ key: PoolKey? = nil, isIdempotent: Bool = false, _ body: @escaping (Resource) throws -> Work,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Work.T> {
        let retry = isIdempotent ? PoolRetry() : nil
        let outcome = lease(key, file, line).then { [self] lease in try use(lease, retry, body) }
        guard let retry else { return outcome }
        // A body may succeed although it has met a stale connection.
        let checked = outcome.get { [self] _ in if isNeeded(retry) { throw closed(key) } }
        return again(checked, retry) { [self] in with(key, isIdempotent: true, body, file: file, line: line) }
    }

    @inlinable
    func use<Work: Thenable>(
        _ lease: PoolRequest, _ retry: PoolRetry?, _ body: (Resource) throws -> Work
    ) throws -> Promise<Work.T> {
        let box = try begin(lease, retry)
        let work = firstly { try body(box.resource) }
        if !work.isPending {
            end(lease, work.error)
            return work
        }
        let ended = work.tap { [self] in end(lease, $0.failure) }
        lease.note(ended.core)
        return ended
    }

    /// The form for async functions on the pool's loop. Calls `body` in the task and the isolation of its caller.
    ///
    /// ```swift
    /// let rows = try await sessions.with { session in try await session.query("SELECT 1") }
    /// ```
    ///
    /// The body owns the resource until it returns, even if the task is cancelled. Only a drain's deadline and the
    /// loop's end close the resource earlier.
    /// - Throws: the errors of the form with promises, `CancellationError` while it waits, or `PromiseError.badInput`
    ///   on a thread other than the loop's.
    public nonisolated(nonsending) func with<Value>(
        _ key: PoolKey? = nil, isIdempotent: Bool = false,
        _ body: nonisolated(nonsending) (Resource) async throws -> Value,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws -> Value {
        guard loop.isDrivenHere else {
            throw PromiseError.badInput("pool.with was called on a thread that is not that of the pool's loop")
        }
        while true {
            let retry = isIdempotent ? PoolRetry() : nil
            let lease = try await lease(key, file, line).value
            let box = try begin(lease, retry)
            let outcome: Result<Value, any Error>
            do { outcome = .success(try await body(box.resource)) } catch { outcome = .failure(error) }
            end(lease, outcome.failure)
            guard let retry, isNeeded(retry) else { return try outcome.get() }
        }
    }

    /// The resource returns to the pool by `end`, or when the lease is released unused.
    @usableFromInline
    func lease(_ key: PoolKey?, _ file: StaticString, _ line: UInt) -> Promise<PoolRequest> {
        loop.assertOwner()
        if let problem = state.limits.problem { return Promise(error: PromiseError.badInput(problem), file, line) }
        let request = state.request(key ?? defaultKey, at: loop.now)
        perform()
        if request.member != nil { return .value(request) }
        if let refusal = request.refusal { return Promise(error: refusal, file, line) }
        let (promise, resolver) = Promise<PoolRequest>.pending(file, line)
        request.resolver = resolver
        // On the loop's thread a cancelled request leaves the line at once, before that job runs.
        promise.core.whenSettled { [self] in if loop.isUsableHere { withdraw(request) } }
        // While the request waits, this closure retains the pool.
        resolver.onCancel { [self] in
            withdraw(request)
            perform()
        }
        return promise
    }

    /// Removes a cancelled request. `perform` is called later.
    private func withdraw(_ request: PoolRequest) { if request.resolver.take() != nil { state.cancel(request) } }

    @usableFromInline
    func begin(_ lease: PoolRequest, _ retry: PoolRetry?) throws -> PoolBox<Resource> {
        // The pool may have been aborted since it lent the resource.
        guard let member = lease.member, member.isLeased else { throw PoolError.closed(key: lease.line.key) }
        lease.retry = retry
        return member.box(of: Resource.self)
    }

    @usableFromInline
    func end(_ lease: PoolRequest, _ error: (any Error)?) {
        guard lease.finish(), let member = lease.member else { return }
        member.work = nil
        guard member.isLeased else { return }
        var isKept = error.map { !$0.isCancelled && keepsAfter($0) } ?? true
        if let retry = lease.retry, lease.isStale(after: error) {
            retry.isNeeded = true
            isKept = false
        }
        if let connection = member.connection {
            release(connection, of: member, isKept: isKept)
        } else {
            didReturn(member, isReusable: isKept)
        }
    }

    func didFinish(_ lease: PoolRequest) { end(lease, nil) }

    func didReturn(_ member: PoolMember, isReusable: Bool) {
        state.didReturn(member, isReusable: isReusable, at: loop.now)
        perform()
    }

    func didNotUse(_ member: PoolMember) {
        didReturn(member, isReusable: member.connection.map(ParkedConnection.isReusable) ?? true)
    }

    /// Repeats the request of `outcome` if it has met a stale connection. Terminates: each retry leaves one reused
    /// connection fewer, and a new one is never stale. Inlinable, to be specialised for the types of other modules.
    @inlinable
    func again<Value>(
        _ outcome: Promise<Value>, _ retry: PoolRetry, _ request: @escaping () -> Promise<Value>
    ) -> Promise<Value> {
        outcome.recover { [self] error in
            guard isNeeded(retry) else { throw error }
            return request()
        }
    }

    /// False in a closed or drained pool, which would refuse the request and lose the outcome.
    @usableFromInline
    func isNeeded(_ retry: PoolRetry) -> Bool { retry.isNeeded && state.phase == .open }

    @usableFromInline
    func closed(_ key: PoolKey?) -> PoolError { .closed(key: key ?? defaultKey) }

    /// Like `with`, for a body that may end its lease by `giveBack` before its promise settles. With `isIdempotent` the
    /// body must not succeed without an answer.
    @inlinable
    package func lend<Work: Thenable>(
        _ key: PoolKey, isIdempotent: Bool, _ body: @escaping (Resource, PoolRequest) throws -> Work
    ) -> Promise<Work.T> {
        let retry = isIdempotent ? PoolRetry() : nil
        let outcome = lease(key, #fileID, #line).then { [self] lease in
            try use(lease, retry) { try body($0, lease) }
        }
        guard let retry else { return outcome }
        return again(outcome, retry) { [self] in lend(key, isIdempotent: true, body) }
    }
}

extension Result {
    @usableFromInline var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
