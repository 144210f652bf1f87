import Reactor

/// Connections to servers that are opened when they are needed, kept while they are idle, and used again. The number of
/// connections to each address is limited; requests beyond the limit wait, in their order.
///
/// ```swift
/// let pool = ConnectionPool(connectionsPerAddress: 4)
/// func ask(_ question: String) -> Promise<String?> {
///     pool.withConnection(to: "cache.internal:7000") { connection in
///         connection.write(question + "\n").then { connection.readLine() }
///     }
/// }
/// ```
///
/// A pool belongs to this thread's loop, as its connections do: a server on several loops has a pool on each, in a
/// `LoopLocal`.
///
/// Of several idle connections to an address the one that was used last is used first, so that those which are not
/// needed reach `idleTimeout`. An idle connection does not keep the loop alive. When its peer ends or resets it, it is
/// closed at once; nothing is read for that. Before it is used again, it is checked: if the peer has gone, or has sent
/// anything since the last request, it is closed, and the request gets another one.
///
/// Requests that wait, connections that are being opened and connections that are in use retain the pool. When the last
/// reference to it is released, it closes the idle ones.
public final class ConnectionPool {
    let loop: EventLoop
    let configuration: Configuration
    var state: PoolState
    /// What the members of `state` are.
    var members: [PoolState.Member: PoolMember] = [:]
    /// The requests that have no connection yet.
    var resolvers: [PoolState.Request: Resolver<ConnectionLease>] = [:]
    /// Actions of `state` that have not been executed.
    var actions = IndexedQueue<PoolState.Action>()
    /// Why connects have failed, until the actions that follow are executed.
    var connectErrors: [PoolState.Member: any Error] = [:]
    var timer = PoolTimer()
    var draining: PoolDrain?

    struct Configuration {
        let limits: PoolState.Limits
        let connectTimeout: Duration?
        let options: [SocketSetting]
        let lookup: any NameLookup
        let healthCheckTimeout: Duration?
        let healthCheck: ((Connection) throws -> Promise<Void>)?
        /// What is wrong with the limits.
        let problem: String?
    }

    /// A pool without connections, on this thread's loop.
    /// - Parameters:
    ///   - connectionsPerAddress: how many connections to one address may be open or being opened at once, at least 1;
    ///     otherwise each request is rejected with `PromiseError.badInput`.
    ///   - maxWaiting: how many requests may wait for a connection to one address while none can be opened. Further
    ///     ones are rejected with `PoolError.tooManyWaiting`.
    ///   - waitTimeout: how long a request may be without a connection: in line, while one is opened and while one is
    ///     checked. Then it is rejected with `PoolError.timedOut`. `nil` for no limit.
    ///   - connectTimeout: the time limit of each connect; see `connect(to:timeout:)`.
    ///   - idleTimeout: how long a connection may be idle before it is closed. `nil` for no limit.
    ///   - options: the socket options of each connection.
    ///   - lookup: finds the addresses of a name.
    ///   - healthCheckTimeout: the time limit of each `healthCheck`. A check that takes longer is cancelled and counts as
    ///     failed, so that a peer that does not answer does not use up the request's `waitTimeout`. `nil` for no limit.
    ///   - healthCheck: is called with each connection that has been used before, when it is to be used again and the
    ///     pool itself has found nothing wrong. If it throws or its promise is rejected, the connection is closed, and
    ///     the request gets another one. Its time counts as waiting. The pool retains it.
    @available(*, noasync, message: "an async function has no loop of its own")
    public init(
        connectionsPerAddress: Int = 8, maxWaiting: Int = .max, waitTimeout: Duration? = .seconds(30),
        connectTimeout: Duration? = .seconds(10), idleTimeout: Duration? = .seconds(60),
        options: [SocketSetting] = [], lookup: any NameLookup = SystemNameLookup.shared,
        healthCheckTimeout: Duration? = .seconds(1), healthCheck: ((Connection) throws -> Promise<Void>)? = nil
    ) {
        loop = EventLoop.ofCurrentThread
        let limits = PoolState.Limits(
            connections: connectionsPerAddress, waiting: maxWaiting, waitTime: waitTimeout, idleTime: idleTimeout)
        var problem: String?
        if connectionsPerAddress < 1 { problem = "connectionsPerAddress: \(connectionsPerAddress) is below 1" }
        if maxWaiting < 0 { problem = "maxWaiting: \(maxWaiting) is below 0" }
        configuration = Configuration(
            limits: limits, connectTimeout: connectTimeout, options: options, lookup: lookup,
            healthCheckTimeout: healthCheckTimeout, healthCheck: healthCheck, problem: problem)
        state = PoolState(limits)
    }

    // Whatever else a pool has, retains it: only idle connections are left. The poller retains these, by their watches.
    deinit {
        loop.performCleanup { [loop, timer, members] in
            if loop.hasEnded { return }
            timer.cancel()
            for member in members.values { member.connection?.closeForPool() }
        }
    }

    // MARK: Counts

    /// How many connections and requests a pool has.
    public struct Counts: Hashable, Sendable {
        /// Connections that are being opened.
        public let connecting: Int
        /// Connections that are open: in use, idle, or with writes in their queue after their last request.
        public let open: Int
        /// Open connections that wait for their next request.
        public let idle: Int
        /// Requests that have no connection yet.
        public let waiting: Int
    }

    /// The counts of all addresses together, for metrics. In constant time.
    public var counts: Counts {
        loop.assertOwner()
        return Counts(
            connecting: state.connectingCount, open: state.memberCount - state.connectingCount, idle: state.idleCount,
            waiting: state.waitingCount)
    }
}

/// What a pool has of a connection.
struct PoolMember {
    /// `nil` while it is being opened.
    var connection: Connection?
    /// The connect, the check or the request that uses it. Weak: their handlers retain the pool.
    weak var work: PromiseCore?
    /// Whether no request has used it.
    var isFresh = true
}
