import Reactor

/// Connections to servers that are opened when they are needed, kept while they are idle, and used again. The number of
/// connections to each address, and to all addresses together, is limited; requests beyond the limit wait, in their order.
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
public final class ConnectionPool: ParkingOwner {
    let loop: EventLoop
    let configuration: Configuration
    var state: PoolState
    /// What the members of `state` are.
    var members: [PoolState.Member: PoolMember] = [:]
    /// The requests that have no connection yet.
    var resolvers: [PoolState.Request: Resolver<ConnectionLease>] = [:]
    /// Actions of `state` that have not been executed.
    var actions = IndexedQueue<PoolState.PoolAction>()
    /// Why connects have failed, until the actions that follow are executed.
    var connectErrors: [PoolState.Member: any Error] = [:]
    var timer = PoolTimer()
    /// How many of the loop's background sources belong to this pool.
    var backgroundSources = 0
    var draining: PoolDrain?

    struct Configuration {
        let limits: PoolState.Limits
        let connectTimeout: Duration?
        let options: [SocketSetting]
        let lookup: any NameLookup
        let prepareTimeout: Duration?
        let prepare: ((Connection, String) throws -> Promise<Void>)?
        let healthCheckTimeout: Duration?
        let healthCheck: ((Connection) throws -> Promise<Void>)?
        /// What is wrong with the limits.
        let problem: String?
    }

    /// A pool without connections, on this thread's loop.
    /// - Parameters:
    ///   - connectionsPerAddress: how many connections to one address may be open or being opened at once, at least 1;
    ///     otherwise each request is rejected with `PromiseError.badInput`.
    ///   - maxConnections: how many connections may be open or being opened at once to all addresses together, at least 1;
    ///     otherwise each request is rejected with `PromiseError.badInput`. When no place is left, the connection that has
    ///     been idle longest is closed for a request to another address. If none is idle, requests wait, and the
    ///     next place goes to the address whose first request in line has waited longest: a connection that returns is
    ///     closed for it, unless a request for its own address has waited longer.
    ///   - maxWaiting: how many requests may wait for a connection to one address while none can be opened. Further
    ///     ones are rejected with `PoolError.tooManyWaiting`.
    ///   - waitTimeout: how long a request may be without a connection: in line, while one is opened and while one is
    ///     checked. Then it is rejected with `PoolError.timedOut`. `nil` for no limit.
    ///   - connectTimeout: the time limit of each connect; see `connect(to:timeout:)`.
    ///   - idleTimeout: how long a connection may be idle before it is closed. `nil` for no limit.
    ///   - maxLifetime: how long after its connect a connection may be used. Then it is closed, at once if it is idle, and
    ///     after its request otherwise; so connections move to the addresses that a name has now, and to servers that have
    ///     been added. `nil` for no limit.
    ///   - options: the socket options of each connection.
    ///   - lookup: finds the addresses of a name.
    ///   - prepareTimeout: the time limit of each `prepare`, after which it is cancelled and has failed. `nil` for no limit.
    ///   - healthCheckTimeout: the time limit of each `healthCheck`. A check that takes longer is cancelled and counts as
    ///     failed, so that a peer that does not answer does not use up the request's `waitTimeout`. `nil` for no limit.
    ///   - healthCheck: is called with each connection that has been used before, when it is to be used again and the
    ///     pool itself has found nothing wrong. If it throws or its promise is rejected, the connection is closed, and
    ///     the request gets another one. Its time counts as waiting. The pool retains it.
    ///   - prepare: is called once with each new connection, before its first use, and with the address of the requests
    ///     as text: it installs a filter, or logs in. The connection counts as connecting until the promise is fulfilled.
    ///     If it throws or its promise is rejected, the connection is closed, and a request is rejected with that error, as
    ///     after a connect that failed. Filters and socket options that it sets stay; `idleTimeout`, `frameTimeouts`,
    ///     `writeQueueLimit` and `writeWatermarks` get their defaults again. The pool retains it.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public init(
        connectionsPerAddress: Int = 8, maxConnections: Int = .max, maxWaiting: Int = .max,
        waitTimeout: Duration? = .seconds(30), connectTimeout: Duration? = .seconds(10),
        idleTimeout: Duration? = .seconds(60), maxLifetime: Duration? = nil,
        options: [SocketSetting] = [], lookup: any NameLookup = SystemNameLookup.shared,
        prepareTimeout: Duration? = .seconds(10), healthCheckTimeout: Duration? = .seconds(1),
        healthCheck: ((Connection) throws -> Promise<Void>)? = nil,
        prepare: ((_ connection: Connection, _ address: String) throws -> Promise<Void>)? = nil
    ) {
        loop = EventLoop.ofCurrentThread
        let limits = PoolState.Limits(
            connections: connectionsPerAddress, total: maxConnections, waiting: maxWaiting, waitTime: waitTimeout,
            idleTime: idleTimeout, lifetime: maxLifetime)
        var problem: String?
        if connectionsPerAddress < 1 { problem = "connectionsPerAddress: \(connectionsPerAddress) is below 1" }
        if maxConnections < 1 { problem = "maxConnections: \(maxConnections) is below 1" }
        if maxWaiting < 0 { problem = "maxWaiting: \(maxWaiting) is below 0" }
        configuration = Configuration(
            limits: limits, connectTimeout: connectTimeout, options: options, lookup: lookup,
            prepareTimeout: prepareTimeout, prepare: prepare, healthCheckTimeout: healthCheckTimeout,
            healthCheck: healthCheck, problem: problem)
        state = PoolState(limits)
    }

    // Whatever else a pool has, retains it: only idle connections are left. The poller retains these, by their watches.
    deinit {
        loop.performCleanup { [loop, timer, members, backgroundSources] in
            if loop.hasEnded { return }
            timer.cancel()
            loop.changeBackgroundSources(by: -backgroundSources)
            for member in members.values { member.connection.map { Parking.close($0) } }
        }
    }
}

/// What a pool has of a connection.
struct PoolMember {
    /// `nil` while it is being opened, but not while it is being prepared.
    var connection: Connection?
    /// The connect, the check or the request that uses it. Weak: their handlers retain the pool.
    var work = WeakCore(nil)
    /// The filter that the preparation has installed.
    var filter: InstalledFilter?
    /// Whether no request has used it.
    var isFresh = true
}
