import Glibc
import Reactor

extension ConnectionPool {
    /// Calls `body` with a connection to `address`, and settles as the promise that `body` returns.
    ///
    /// ```swift
    /// pool.withConnection(to: .loopback(port: 7000)) { connection in
    ///     connection.write("ping\n").then { connection.readLine() }
    /// }
    /// ```
    ///
    /// The connection is an idle one or a new one; if neither is possible, the request waits for its turn. When the
    /// promise of `body` is
    /// - *fulfilled*, the connection returns to the pool, unless it is of no further use: `body` has closed, detached
    ///   or half-closed it; the peer has ended; a read, a write or a `peerGone()` is still waiting; input is here that was not
    ///   read; `body` has set an option of the socket, or has installed or removed a filter. So `connection.close()` in `body`
    ///   is how to say that it must not be used again. `idleTimeout`, `frameTimeouts`, `writeQueueLimit` and
    ///   `writeWatermarks` get their defaults again.
    /// - *rejected or cancelled*, the connection is aborted: nothing says how much of an answer is still to arrive, and
    ///   the peer must not take half a request for a whole one.
    ///
    /// `body` must not use the connection after that. Cancelling the result while the request waits takes it out of the
    /// line, and ends a connect that no other request needs.
    ///
    /// A connection that was idle may end as it is used: the peer closes it while the request is on its way. `body` then
    /// meets a reset, or an end where it expects an answer, although nothing is wrong with the server. With
    /// `isIdempotent: true` the request is made again in that case, if not a byte of an answer has arrived: `body` is
    /// called once more, with another connection, whether its promise was rejected or fulfilled, for example with the
    /// `nil` of `readLine`. Only the caller knows whether a request may be made twice.
    ///
    /// Rejected with
    /// - the error of `body`;
    /// - `PoolError`;
    /// - the error of `connect(to:)` or of `prepare`, for the connection that was made for this request or for one behind it;
    /// - `PromiseError.badInput` if the pool's limits are not valid;
    /// - `SystemError` with `ECANCELED` if the loop ends while the request waits.
    ///
    /// - Parameters:
    ///   - address: the address of the server, which is the key of the connections.
    ///   - isIdempotent: whether the request may be made twice.
    ///   - body: makes the request, in a job of this thread's loop.
    /// - Returns: a promise that settles as the one that `body` returns.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func withConnection<Work: Thenable>(
        to address: SocketAddress, isIdempotent: Bool = false,
        _ body: @escaping (Connection) throws -> Work, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Work.T> { begin(.address(address), isIdempotent, body, file, line) }

    /// Calls `body` with a connection to the first of `addresses` that accepts it, as `connect(to:)` finds it. The list
    /// as a whole is the key of the connections; see the form with one address.
    /// - Parameters:
    ///   - addresses: the addresses of the server, in the order of preference.
    ///   - isIdempotent: whether the request may be made twice.
    ///   - body: makes the request, in a job of this thread's loop.
    /// - Returns: as the form with one address.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func withConnection<Work: Thenable>(
        to addresses: [SocketAddress], isIdempotent: Bool = false,
        _ body: @escaping (Connection) throws -> Work, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Work.T> { begin(.addresses(addresses), isIdempotent, body, file, line) }

    /// Calls `body` with a connection to an address given as text, or to a host name and port. The name is the key of
    /// the connections, and is looked up for each new one; see the form with one address.
    /// - Parameters:
    ///   - address: the address, or the name and port, of the server.
    ///   - isIdempotent: whether the request may be made twice.
    ///   - body: makes the request, in a job of this thread's loop.
    /// - Returns: as the form with one address.
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func withConnection<Work: Thenable>(
        to address: String, isIdempotent: Bool = false,
        _ body: @escaping (Connection) throws -> Work, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Work.T> { begin(PoolTarget(address), isIdempotent, body, file, line) }

    private func begin<Work: Thenable>(
        _ target: PoolTarget, _ isIdempotent: Bool, _ body: @escaping (Connection) throws -> Work,
        _ file: StaticString, _ line: UInt
    ) -> Promise<Work.T> {
        var isStale = false
        let outcome = lease(target, file, line).then { [self] lease in
            // The pool has been aborted since it gave the connection to the request.
            if members[lease.member] == nil { throw PoolError.closed(address: target.description) }
            let work = firstly { try body(lease.connection) }.tap { [self] outcome in
                isStale = isIdempotent && lease.isStale(after: outcome)
                end(lease, outcome, isStale)
            }
            members[lease.member]?.work = WeakCore(work.core)
            return work
        }
        if !isIdempotent { return outcome }
        // Ends: each time one connection fewer is left that other requests have used, and a new one is never stale.
        return outcome.get { _ in if isStale { throw PoolError.closed(address: target.description) } }
            .recover { [self] error in
                guard isStale, state.phase == .open else { throw error }
                return begin(target, true, body, file, line)
            }
    }

    /// The promise of a connection, which returns to the pool by `end`, or when the lease is released unused.
    private func lease(_ target: PoolTarget, _ file: StaticString, _ line: UInt) -> Promise<ConnectionLease> {
        loop.assertOwner()
        if let problem = configuration.problem { return Promise(error: PromiseError.badInput(problem), file, line) }
        let (promise, resolver) = Promise<ConnectionLease>.pending(file, line)
        let (request, actions) = state.request(target, at: loop.now)
        resolvers[request] = resolver
        // While the request waits, this closure retains the pool.
        resolver.onCancel { [self] in
            resolvers[request] = nil
            perform(state.cancel(request))
        }
        perform(actions)
        return promise
    }

    private func end<Value>(_ lease: ConnectionLease, _ outcome: Result<Value, any Error>, _ isStale: Bool) {
        lease.isOver = true
        let connection = lease.connection
        members[lease.member]?.work = WeakCore(nil)
        if case .failure = outcome { connection.abort() } else if isStale { connection.abort() }
        let isReusable = Parking.isReusable(connection) && hasOriginalSettings(lease.member)
        if isReusable { Parking.resetSettings(of: connection) } else { Parking.close(connection, linger: .seconds(5)) }
        if isReusable || !connection.lifecycle.hasDescriptor {
            return perform(state.didReturn(lease.member, isReusable: isReusable, at: loop.now))
        }
        // What is queued still has time to leave. Until then the connection counts, and a drain waits for it.
        connection.closed.done { [self] _ in
            perform(state.didReturn(lease.member, isReusable: false, at: loop.now))
        }
    }

    /// A lease was released before its request could begin: the request was cancelled after the connection had been
    /// given to it.
    fileprivate func leaseWasReleased(_ member: PoolState.Member) {
        guard let connection = members[member]?.connection else { return }
        perform(state.didReturn(member, isReusable: Parking.isReusable(connection), at: loop.now))
    }
}

/// A connection that is lent to a request.
final class ConnectionLease {
    let connection: Connection
    let member: PoolState.Member
    private let pool: ConnectionPool
    private let isReused: Bool
    // An object, since a connection has none once it is closed.
    private let filter: InstalledFilter?
    private let bytesBefore: Int
    var isOver = false

    init(_ connection: Connection, _ member: PoolState.Member, of pool: ConnectionPool, isReused: Bool) {
        self.connection = connection
        self.member = member
        self.pool = pool
        self.isReused = isReused
        filter = connection.layer as? InstalledFilter
        bytesBefore = filter?.deliveredCount ?? connection.bytesReceived
    }

    // In a job, since a lease may be released anywhere in the library.
    deinit {
        if !isOver, pool.loop.isUsableHere { pool.loop.enqueue { [pool, member] in pool.leaseWasReleased(member) } }
    }

    /// Whether a request has met the end of a connection that the peer had given up: another request had used it before,
    /// the peer has ended or reset it, and not a byte has been answered.
    func isStale<Value>(after outcome: Result<Value, any Error>) -> Bool {
        if case .failure(let error) = outcome, error.isCancelled { return false }
        // The records of a filter may be none of an answer, as its end record is. One that is incomplete may be.
        let received = filter?.deliveredCount ?? connection.bytesReceived
        let isInsideAnswer = filter.map { $0.isBusy || $0.isRemoved } ?? false
        guard isReused, received == bytesBefore, !isInsideAnswer else { return false }
        return switch connection.failure?.code {
        case ECONNRESET, EPIPE: true
        // The body may have aborted the connection behind the end.
        case nil, ECANCELED: connection.reader.hasEnded
        // A time-out of the connection is not the peer's doing: a server that is slow would be asked again and again.
        default: connection.reportedFailure as? ConnectionFilterError == .truncated
        }
    }
}
