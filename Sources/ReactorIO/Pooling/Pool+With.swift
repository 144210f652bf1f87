import Promises

extension Pool {
    /// Calls `body` with a resource, and settles like the promise that `body` returns.
    ///
    /// ```swift
    /// pool.with(.address(.loopback(port: 7000))) { connection in
    ///     connection.write("ping\n").then { connection.readLine() }
    /// }
    /// ```
    ///
    /// `body` gets an idle resource or a new one, or the request waits in line. The resource returns to the pool when
    /// `body`'s promise is *fulfilled*, or rejected with an error that `keepsAfter` accepts. After any other *rejection
    /// or a cancellation*, the resource is closed and its connection aborted: nobody knows how much of an answer is
    /// still to arrive, and the peer must not mistake half a request for a complete one.
    ///
    /// A connection that cannot be reused does not return: if `body` has closed, detached or half-closed it, the peer
    /// has ended its side, a read, a write or a `peerGone()` is pending, unread input is buffered, or `body` has set a
    /// socket option, or installed or removed a filter. To prevent reuse, call `connection.close()` in `body`.
    /// Time-outs, limits and watermarks are reset to their defaults.
    ///
    /// Once its promise has settled, `body` must not use it. Put a time limit outside, `pool.with { … }.timeout(…)`.
    /// Then the resource is closed only when a closure that `body` runs on another thread has returned. With a
    /// `timeout` inside, that thread may still use the closed resource.
    ///
    /// Cancelling the result while the request waits removes the request from the line. The making of a resource that
    /// no other request needs is cancelled too.
    ///
    /// The peer may close a connection while a request is in transit. `body` then sees a reset, or the end of the
    /// stream instead of an answer, although the server works. `isIdempotent: true` repeats the request, whatever the
    /// outcome of `body`, if an earlier request has used the connection and no byte of an answer has arrived. A
    /// restarted server may have closed all connections, so this repeats until there is an answer, the connection is
    /// new, or the pool is closed or drained. Only the caller knows if a request may be repeated.
    ///
    /// - Parameters:
    ///   - key: selects the resources, and is usually a server; `nil` for the pool's default key.
    ///   - isIdempotent: true to permit repeating the request.
    ///   - body: makes the request, in a job on this thread's loop.
    /// - Returns: a promise that settles like that of `body`. Also rejected with `PoolError`, with the error from
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
        // The closure may succeed although its connection was stale.
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

    /// The overload for async functions on the pool's loop. Calls `body` in the task and isolation of its caller.
    ///
    /// ```swift
    /// let rows = try await sessions.with { session in try await session.query("SELECT 1") }
    /// ```
    ///
    /// `body` owns the resource until it returns, even if the task is cancelled. Only a drain's deadline and the loop's
    /// end close the resource earlier.
    /// - Throws: the errors of the overload with promises, `CancellationError` if cancelled while it waits, or
    ///   `PromiseError.badInput` on a thread other than the loop's.
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

    /// Requests a resource, which returns to the pool by `end` or when the lease is released unused.
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
        // A request cancelled on the loop's thread is removed from the line at once, before that job runs.
        promise.core.whenSettled { [self] in if loop.isUsableHere { withdraw(request) } }
        // Retains the pool while the request waits.
        resolver.onCancel { [self] in
            withdraw(request)
            perform()
        }
        return promise
    }

    /// Removes a cancelled request. The caller must call `perform` later.
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

    /// Repeats the request of `outcome` if its connection was stale. Terminates, because each retry uses up a reused
    /// connection, and a new one is never stale. Inlinable, so that it is specialised for types from other modules.
    @inlinable
    func again<Value>(
        _ outcome: Promise<Value>, _ retry: PoolRetry, _ request: @escaping () -> Promise<Value>
    ) -> Promise<Value> {
        outcome.recover { [self] error in
            guard isNeeded(retry) else { throw error }
            return request()
        }
    }

    /// False in a closed or drained pool, which would refuse the repeated request and lose the outcome.
    @usableFromInline
    func isNeeded(_ retry: PoolRetry) -> Bool { retry.isNeeded && state.phase == .open }

    @usableFromInline
    func closed(_ key: PoolKey?) -> PoolError { .closed(key: key ?? defaultKey) }

    /// Works like `with`, but `body` may end its lease by `giveBack` before its promise settles. With `isIdempotent`,
    /// `body` must not succeed without an answer.
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
